// Detects livelock: warps whose polls of memory keep failing. If a warp returns
// to an earlier state (including its registers) while memory is unchanged, it
// will return to this state forever. If all runnable warps return to earlier
// states, they are deadlocked: each waits for a flag that no warp will set. A
// loop that counts, or that reads a clock, never returns to an earlier state.
#include "watch/livelock.h"

#include "ir/rows.h"
#include "sim/addressed.h"
#include "sim/regs.h"
#include "watch/hb_grid.h"
#include "watch/shadow.h"

#include <string.h>

static uint64_t mix(uint64_t h, uint64_t u) {
  h = (h ^ u) * 0x9e3779b97f4a7c15ull;
  return h ^ h >> 29;
}

static uint64_t state_of(const SimWarp *w) {
  const SimProg *p = w->cluster->prog;
  uint64_t h = mix(w->active, w->gone);
  for (uint32_t k = 0; k < w->depth; k++)
    h = mix(mix(h, w->frame[k].head),
            (uint64_t)w->frame[k].mask << 32 | w->frame[k].other);
  for (uint32_t at = 0; at < p->value_bytes; at += 8) {
    uint64_t u;
    memcpy(&u, w->v + at, sizeof u);
    h = mix(h, u);
  }
  return h;
}

// Clears the value of instruction i, so that states can be compared. The next
// iteration of the loop recomputes this value.
static void clear(SimWarp *w, const SimIns *i) {
  const Ins *from = ir_get(w->cluster->prog->fn, i->ref);
  if (i->op == OP_VSET || i->op == OP_VAR || from->type == DT_NONE || !i->d)
    return;
  bool one = i->uniform && !i->spread;
  // use the type of the value, because i->wide may describe an operand
  bool wide = sim_wide((DType)from->type);
  memset(w->v + i->d, 0, one ? 8 : (wide ? 8 : 4) * LANES);
}

// Returns the innermost LOOP that warp w executes, or NULL. Ignores FOR loops.
static const SimIns *loop_of(const SimWarp *w) {
  const SimIns *ins = w->cluster->prog->ins;
  for (uint32_t k = w->depth; k-- > 0;)
    if (ins[w->frame[k].head].op == OP_LOOP) return &ins[w->frame[k].head];
  return NULL;
}

uint64_t livelock_state(SimWarp *w) {
  const SimIns *ins = w->cluster->prog->ins, *loop = loop_of(w);
  if (!loop) return 0;
  for (uint32_t k = w->pc; k < loop->jump; k++) clear(w, &ins[k]);
  return state_of(w);
}

void livelock_ask(SimWarp *w, const SimIns *i) {
  enum { OFTEN = 16 };  // number of polls after which the state is compared
  SimCluster *c = w->cluster;
  SimPoll *s = &w->poll;
  uint64_t stamp = simmem_stamp(c);
  if (s->stamp != stamp || !s->asked) *s = (SimPoll){.stamp = stamp};
  const SimSide *side = i->x;
  int64_t off[LANES];
  s->i = i;
  s->m = side->mem;
  s->lane = __builtin_ctz(w->active);
  simmem_offsets(w, side, off);
  s->at = simprog_bit(side->mem, off[s->lane]) / 8;
  s->home = !s->m->rank ? w->home : u32_at(w, s->m->rank)[s->lane] *
                                    (uint32_t)c->prog->smem_bytes;
  if (++s->asked < OFTEN || s->stuck) return;
  uint64_t h = state_of(w);
  if (s->asked > OFTEN && h == s->hash && s->pc == w->pc) {
    s->stuck = c->calm.look = true;
    return;
  }
  if (s->asked & (s->asked - 1)) return;
  s->hash = h;
  s->pc = w->pc;
}

bool livelock_stuck(const SimWarp *w) {
  const SimPoll *s = &w->poll;
  return w->state == SW_RUN && s->stuck &&
         s->stamp == simmem_stamp(w->cluster);
}

bool livelock_same(const SimWarp *w, const SimWarp *u) {
  const SimPoll *a = &w->poll;
  const SimPoll *b = &u->poll;
  return livelock_stuck(u) && a->m->index == b->m->index && a->at == b->at &&
         a->home == b->home;
}

bool livelock_all(const SimCluster *c, bool *global) {
  bool some = false;
  *global = false;
  for (int k = 0; k < c->prog->nall; k++) {
    const SimWarp *w = &c->warp[k];
    if (w->state != SW_RUN) continue;
    if (!livelock_stuck(w)) return false;
    some = true;
    *global |= w->poll.m->memory == MEMORY_GLOBAL;
  }
  return some && !c->agents.landing;
}

// ---- trial runs of polls ----

// Returns the number of bytes of w->wraps.lanes, which a trial run changes.
static size_t wrap_bytes(const SimProg *p) {
  return p->wraps.n * sizeof(uint32_t);
}

static size_t frame_bytes(const SimProg *p) {
  return p->depth * sizeof(SimFrame);
}

size_t livelock_room(const SimProg *p) {
  return p->value_bytes + frame_bytes(p) + wrap_bytes(p);
}

static void keep(const SimWarp *w, char *room) {
  const SimProg *p = w->cluster->prog;
  memcpy(room, w->v, p->value_bytes);
  room += p->value_bytes;
  memcpy(room, w->frame, frame_bytes(p));
  memcpy(room + frame_bytes(p), w->wraps.lanes, wrap_bytes(p));
}

static void put_back(SimWarp *w, const SimWarp *was, const char *room) {
  const SimProg *p = w->cluster->prog;
  *w = *was;
  memcpy(w->v, room, p->value_bytes);
  room += p->value_bytes;
  memcpy(w->frame, room, frame_bytes(p));
  memcpy(w->wraps.lanes, room + frame_bytes(p), wrap_bytes(p));
}

// Reports whether i affects only values and branches of its warp.
static bool is_own(const SimIns *i) {
  Op op = (Op)i->op;
  return (op_pure(op) && i->who <= WHO_LANE) ||
         op_effect(op) & (EF_VAR | EF_OPENS | EF_CLOSES) || op == OP_BREAKIF;
}

static bool is_load(const SimIns *i) {
  if (i->op == OP_PTR) i = ((const SimAddressed *)i->x)->ins;
  return i->op == OP_LD;
}

bool livelock_only_reads(const SimWarp *w) {
  const SimIns *i = loop_of(w), *end = i ? w->cluster->prog->ins + i->jump : i;
  for (; i < end; i++)
    if (!is_own(i) && i->op != OP_FENCE && !is_load(i)) return false;
  return end != NULL;
}

// Runs w to its next scheduling step, as a trial in which fences have no
// effect. Returns false if an instruction before that step affects anything
// outside of the warp.
static bool goes_on(SimWarp *w) {
  enum { MOST = 4096 };  // maximum number of instructions
  const SimIns *ins = w->cluster->prog->ins;
  for (int n = 0; n < MOST; n++) {
    if (simexec_is_turn(&ins[w->pc])) return true;
    if (ins[w->pc].op == OP_FENCE) w->pc++;
    else if (is_own(&ins[w->pc])) simexec_turn(w);
    else return false;
  }
  return false;
}

// Executes the next poll of w as a trial, as if the poll read the values of
// `a`. Returns the number of scheduling steps after which w is in the same
// state again, or 0 if w is not known to return to it.
static int turns_back(SimWarp *w, SimAsk *a, uint64_t hash) {
  enum { MOST = 8 };  // maximum number of scheduling steps
  uint32_t first = w->pc;
  for (int n = 1; n <= MOST; n++) {
    const SimIns *i = addressed_next(w);
    w->pc++;
    if (!simmem_stays(w, i, a->found)) return 0;
    bool wide = sim_wide((DType)((const SimSide *)i->x)->type);
    for (int l = 0; l < LANES; l++)
      if (i->op == OP_LD || w->active >> l & 1)
        set_lane(w, i->d, wide, l, a->found[l]);
    if (!goes_on(w)) return 0;
    if (w->pc == first && livelock_state(w) == hash) return n;
    if (!simmem_ask(w, addressed_next(w), a)) return 0;
  }
  return 0;
}

int livelock_fails(SimWarp *w, const SimAsk *a, char *room) {
  uint64_t hash = livelock_state(w);
  if (!hash || w->taints.some || w->split.part) return 0;
  SimWarp was = *w;
  SimAsk next = *a;
  keep(w, room);
  int n = turns_back(w, &next, hash);
  put_back(w, &was, room);
  return n;
}

// ---- reports ----

static DType type_of(const SimPoll *s) {
  return (DType)((const SimSide *)s->i->x)->type;
}

// Returns the host address of the value that w polls, or NULL if the polled
// address is out of bounds.
static const uint8_t *asked(const SimWarp *w, const SimPoll *s) {
  const SimProg *p = w->cluster->prog;
  if (s->at < 0 || s->at + dtype_bits(type_of(s)) / 8 > s->m->bytes)
    return NULL;
  if (s->m->rank && s->home >= (uint32_t)(p->ncta * p->smem_bytes)) return NULL;
  return simmem_first(w, s->m) + s->at + (int64_t)s->home - w->home;
}

// Adds to fault f the last write by this cluster to the polled bytes.
static void find_writer(const SimWarp *w, const SimPoll *s, SimFault *f) {
  SimCluster *c = w->cluster;
  const SimProg *p = c->prog;
  int64_t g = shadow_find(c, s->m, s->home, s->at);
  if (g < 0 || !(shadow_of(c)->gran[g].flags & GF_DEFINED)) return;
  const SimGran *q = &shadow_of(c)->gran[g];
  if (q->warp >= p->nall) return;
  f->spin.written = true;
  f->r.src2 = q->src;
  memcpy(f->spin.cta, c->cta[q->warp / p->nwarp].id, sizeof f->spin.cta);
  f->r.other = q->warp % p->nwarp * LANES + __builtin_ctz(q->lanes | 1u << 31);
}

SimFault *livelock_tell(SimWarp *w) {
  SimCluster *c = w->cluster;
  const SimPoll *s = &w->poll;
  SimFault f = {.r = {.other = -1}};
  const uint8_t *p = asked(w, s);
  if (!p) return NULL;
  uint64_t state = (uint64_t)s->at * 0x9e3779b97f4a7c15ull | 1;
  if (hb_grid_writer(c->prog, s->m, s->at, &f.r.src2, f.spin.cta))
    f.spin.written = true;
  else
    find_writer(w, s, &f);
  c->serial++;
  SimFault *to = simreport_state(w, SIM_DEADLOCK, s->lane, s->i->src,
                                 f.r.src2, s->m->index,
                                 s->at * 8 / s->m->own, state);
  if (!to) return NULL;
  to->r.other = f.r.other;
  to->deadlock.needed = c->sleep.unborn;
  to->spin.written = f.spin.written;
  memcpy(to->spin.cta, f.spin.cta, sizeof to->spin.cta);
  to->spin.type = type_of(s);
  int bits = dtype_bits(type_of(s));
  memcpy(&to->spin.value, p, (size_t)(bits < 64 ? bits / 8 : 8));
  return to;
}
// SPDX-License-Identifier: MIT
