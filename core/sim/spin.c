// Warps that ask memory in vain. A warp that comes twice to the same state,
// registers and all, while nobody changed memory will come to it for ever: so a
// deadlock on flags is known as soon as all that could run are there, and loops
// that count, or look at a clock, are none.
#include "sim/spin.h"

#include "sim/relay.h"
#include "sim/shadow.h"

#include <string.h>

uint64_t simspin_stamp(const SimCluster *c) {
  const uint64_t *all = c->prog->changes;
  return c->moved + (all ? *all : 0);
}

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

// Nobody needs what i computed: the round before.
static void clear(SimWarp *w, const SimIns *i) {
  const Ins *from = ir_get(w->cluster->prog->fn, i->ref);
  if (i->op == OP_VSET || i->op == OP_VAR || from->type == DT_NONE || !i->d)
    return;
  bool one = i->uniform && !i->spread;
  memset(w->v + i->d, 0, one ? 8 : (i->wide ? 8 : 4) * LANES);
}

uint64_t simspin_state(SimWarp *w) {
  const SimProg *p = w->cluster->prog;
  uint32_t upto = 0;
  for (uint32_t k = w->depth; k-- > 0 && !upto;)
    if (p->ins[w->frame[k].head].op == OP_LOOP)
      upto = p->ins[w->frame[k].head].jump;
  for (uint32_t k = w->pc; k < upto; k++) clear(w, &p->ins[k]);
  return upto ? state_of(w) : 0;
}

void simspin_ask(SimWarp *w, const SimIns *i) {
  enum { OFTEN = 16 };  // before it is looked at closely
  SimCluster *c = w->cluster;
  SimSpin *s = &c->spin[w->id];
  uint64_t stamp = simspin_stamp(c);
  if (s->stamp != stamp || !s->asked) *s = (SimSpin){.stamp = stamp};
  const SimSide *side = i->x;
  int64_t off[LANES];
  s->i = i;
  s->m = side->mem;
  s->lane = __builtin_ctz(w->active);
  simmem_offsets(w, side, off);
  s->at = off[s->lane] * side->mem->bits / 8;
  if (++s->asked < OFTEN || s->stuck) return;
  uint64_t h = state_of(w);
  if (s->asked > OFTEN && h == s->hash && s->pc == w->pc) {
    s->stuck = c->look = true;
    return;
  }
  if (s->asked & (s->asked - 1)) return;
  s->hash = h;
  s->pc = w->pc;
}

bool simspin_stuck(const SimWarp *w) {
  const SimSpin *s = &w->cluster->spin[w->id];
  return w->state == SW_RUN && s->stuck &&
         s->stamp == simspin_stamp(w->cluster);
}

bool simspin_same(const SimWarp *w, const SimWarp *u) {
  const SimSpin *a = &w->cluster->spin[w->id], *b = &u->cluster->spin[u->id];
  return simspin_stuck(u) && a->m->index == b->m->index && a->at == b->at;
}

bool simspin_all(const SimCluster *c, bool *global) {
  bool some = false;
  *global = false;
  for (int k = 0; k < c->prog->nall; k++) {
    const SimWarp *w = &c->warp[k];
    if (w->state != SW_RUN) continue;
    if (!simspin_stuck(w)) return false;
    some = true;
    *global |= c->spin[k].m->space == SP_GMEM;
  }
  return some && !c->landing;
}

// ---- what is told ----

// The byte that w asks for, in memory; NULL: outside.
static const uint8_t *asked(const SimWarp *w, const SimSpin *s) {
  if (s->at < 0 || s->at + s->m->bits / 8 > s->m->bytes) return NULL;
  if (s->m->space == SP_GMEM) return s->m->p + s->at;
  if (s->m->rank) return NULL;
  return w->cluster->smem + w->home + s->m->base + s->at;
}

// Who of this cluster wrote that last.
static void find_writer(const SimWarp *w, const SimSpin *s, SimFault *f) {
  SimCluster *c = w->cluster;
  const SimProg *p = c->prog;
  int64_t g = NO_GRANULE;
  if (s->m->space == SP_GMEM && shadow_has(s->m))
    g = shadow_granule(c, s->m->area, shadow_place(s->m, s->at));
  else if (s->m->space == SP_SMEM && !s->m->rank)
    g = (w->home + s->m->base + s->at) >> p->shift;
  if (g < 0 || !(c->gran[g].flags & GF_DEFINED)) return;
  const SimGran *q = &c->gran[g];
  if (q->warp >= p->nall) return;
  f->spin.written = true;
  f->r.src2 = q->src;
  memcpy(f->spin.cta, c->cta[q->warp / p->nwarp].id, sizeof f->spin.cta);
  f->r.other = q->warp % p->nwarp * LANES + __builtin_ctz(q->lanes | 1u << 31);
}

void simspin_tell(SimWarp *w) {
  SimCluster *c = w->cluster;
  const SimSpin *s = &c->spin[w->id];
  SimFault f = {.r = {.other = -1}};
  const uint8_t *p = asked(w, s);
  if (!p) return;
  uint64_t state = (uint64_t)s->at * 0x9e3779b97f4a7c15ull | 1;
  if (simrelay_writer(c->prog, s->m, s->at, &f.r.src2, f.spin.cta))
    f.spin.written = true;
  else
    find_writer(w, s, &f);
  c->serial++;
  SimFault *to = simreport_state(w, SIM_DEADLOCK, s->lane, s->i->src,
                                 f.r.src2, s->m->index,
                                 s->at * 8 / s->m->own, state);
  if (!to) return;
  to->r.other = f.r.other;
  to->deadlock.how = STUCK_FLAG;
  for (int k = 0; k < c->prog->nwarp; k++) {
    const SimWarp *u = w - w->in + k;
    if (u->state == SW_DONE) to->deadlock.ended |= 1u << k;
    if (simspin_same(w, u)) to->deadlock.waiting |= 1u << k;
  }
  to->deadlock.needed = c->unborn;
  to->spin.written = f.spin.written;
  memcpy(to->spin.cta, f.spin.cta, sizeof to->spin.cta);
  to->spin.type = s->m->type;
  memcpy(&to->spin.value, p, (size_t)(s->m->bits < 64 ? s->m->bits / 8 : 8));
}
