// Explains deadlocks. A stop is a barrier, an mbarrier phase or a polled flag
// at which warps wait. The parts of a diverged warp may wait at different
// stops. A stop depends on the stops of the threads that could end its wait.
// The root cause is among the stops that depend only on each other. Among
// these, the candidates are, most likely first: a stop that no thread can end;
// the first wait of a producer for an empty stage, with the wrong parity; a
// phase with a wrong arrival count; a stop of producers; a stop of consumers.
#include "ir/operands.h"
#include "sim/barrier.h"
#include "sim/divergence.h"
#include "sim/mbar.h"
#include "sim/tcgen05.h"
#include "sim/wgmma.h"
#include "watch/deadlock.h"
#include "watch/livelock.h"
#include "watch/warp_roles.h"

#include <string.h>

enum { MOST_STOPS = 64 };

typedef struct Stop {
  SimWarp *w;              // view of the first warp that waits at this stop
  SimStuck how;
  int bar;                 // STUCK_BARRIER: number of the named barrier
  SimLack lack;
  int rank;  // a stop with a lower rank is more likely to be the cause
  // mask of the stops on which this stop depends; contains this stop if its own
  // warps could end the wait
  uint64_t behind;
} Stop;
// The stops, and views of the parts of all warps (divergence.h), in the order
// of the warps.
typedef struct Stops {
  SimCluster *c;
  Stop s[MOST_STOPS];
  int n;
  SimWarp *view;
  uint32_t nview;
} Stops;

// ---- stops ----

// Reports whether warps w and u wait at the same barrier, phase or flag.
static bool same_place(const SimWarp *w, const SimWarp *u) {
  if (u->cta != w->cta) return false;
  if (livelock_stuck(w)) return livelock_same(w, u);
  if (w->state == SW_RUN || w->state == SW_MBAR)
    return (u->state == SW_MBAR || (u->state == SW_RUN && u->polling)) &&
           u->mbar == w->mbar;
  if (w->state == SW_TEAM && w->in / 4 != u->in / 4) return false;
  if (w->state == SW_BARRIER && w->bar != u->bar) return false;
  return u->state == w->state;
}

// Makes views of the parts of all warps. Returns false if memory is exhausted.
static bool make_views(Stops *all) {
  SimCluster *c = all->c;
  uint32_t n = 0;
  for (int k = 0; k < c->prog->nall; k++) n += divergence_parts(&c->warp[k]);
  all->view = base_realloc(NULL, n * sizeof *all->view);
  if (!all->view) return false;
  for (int k = 0; k < c->prog->nall; k++)
    for (uint32_t j = 0; j < divergence_parts(&c->warp[k]); j++)
      all->view[all->nview++] = divergence_view(&c->warp[k], j);
  return true;
}

static bool how_stuck(const SimWarp *w, SimStuck *how) {
  switch (w->state) {
    case SW_BARRIER: *how = STUCK_BARRIER; return true;
    case SW_CLUSTER: *how = STUCK_CLUSTER; return true;
    case SW_REGISTERS: *how = STUCK_REGISTERS; return true;
    case SW_TEAM: *how = STUCK_TEAM; return true;
    case SW_TMEM: *how = STUCK_TMEM; return true;
    case SW_MBAR: *how = STUCK_MBAR; return true;
    case SW_RUN:
      *how = w->polling ? STUCK_MBAR : STUCK_FLAG;
      return w->polling || livelock_stuck(w);
    case SW_DONE: break;
  }
  return false;
}

static int stop_of(const Stops *all, const SimWarp *u) {
  for (int k = 0; k < all->n; k++)
    if (all->s[k].w == u || same_place(all->s[k].w, u)) return k;
  return -1;
}

static void collect(Stops *all) {
  SimStuck how;
  for (int barriers = 1; barriers >= 0; barriers--)
    for (uint32_t k = 0; k < all->nview && all->n < MOST_STOPS; k++) {
      SimWarp *w = &all->view[k];
      if (barriers != (w->state == SW_BARRIER) || !how_stuck(w, &how) ||
          stop_of(all, w) >= 0)
        continue;
      all->s[all->n++] = (Stop){.w = w, .how = how, .bar = w->bar};
    }
}

// Returns the mask of the stops at which view u waits. Lanes that wait at no
// stop wait for other lanes of their warp.
static uint64_t stops_of(const Stops *all, const SimWarp *u) {
  int at = stop_of(all, u);
  uint64_t m = 0;
  if (at >= 0) return (uint64_t)1 << at;
  for (uint32_t k = 0; k < all->nview; k++) {
    const SimWarp *v = &all->view[k];
    at = v->id == u->id ? stop_of(all, v) : -1;
    if (at >= 0) m |= (uint64_t)1 << at;
  }
  return m;
}

// ---- threads that could end a stop ----

static bool comes_to(const SimIns *i, const void *ud) {
  const Stop *s = ud;
  return (i->op == OP_BAR || i->op == OP_BARARRIVE) &&
         (i->b || i->imm == s->bar);
}

static bool is_op(const SimIns *i, const void *ud) {
  return i->op == *(const Op *)ud;
}

typedef struct Bring {
  const SimProg *p;
  const SimMbar *b;
  int64_t at;
  bool own;
} Bring;

// Reports whether the mbarrier that d describes (address d->at) may be in
// memory object m.
static bool is_there(const Bring *d, const SimMem *m) {
  return (m->rank || d->own) && d->at >= m->base &&
         d->at < (int64_t)m->base + m->bytes;
}

// Reports whether i is an asynchronous copy that may complete bytes at the
// mbarrier that d describes.
static bool brings_bytes(const SimIns *i, const Bring *d) {
  const Fn *fn = d->p->fn;
  const Ins *own = ir_get(fn, i->ref);
  Ref bar = operand_ref(fn, own, ROLE_BAR);
  if (!(op_effect((Op)i->op) & EF_LATER) || own->op != i->op || !bar)
    return false;
  // a multicast may complete bytes at mbarriers in any CTA of the cluster
  if (i->op == OP_TMALOAD && !d->own) return true;
  SimMem m = *d->p->mem[bar];
  // the operand is in another CTA's memory
  if (operand_ref(fn, own, ROLE_RANK)) m.rank = 1;
  return is_there(d, &m);
}

static bool brings(const SimIns *i, const void *ud) {
  const Bring *d = ud;
  if (d->b->bytes > 0 && brings_bytes(i, d)) return true;
  bool arrives = i->op == OP_MBARARRIVE || i->op == OP_MBARCPASYNC ||
                 i->op == OP_TCCOMMIT ||
                 (i->op == OP_MBARTX && i->flags & MBF_ARRIVE);
  if (!d->b->missing) arrives = i->op == OP_MBARTX && d->b->bytes < 0;
  return arrives && is_there(d, ((const SimSide *)i->x)->mem);
}

static bool could_bring(const SimWarp *u, const SimMbar *b) {
  int64_t size = u->cluster->prog->smem_bytes;
  Bring d = {.p = u->cluster->prog, .b = b, .at = b->at % size,
             .own = b->at / size == u->home / size};
  return warp_roles_ahead(u, brings, &d);
}

static bool could_end(const Stop *s, const SimWarp *u) {
  static const Op arrive = OP_CLUSTERARRIVE, registers = OP_SETMAXNREG,
                  wgmma = OP_WGMMA, dealloc = OP_TCDEALLOC,
                  alloc = OP_TCALLOC;
  switch (s->how) {
    case STUCK_BARRIER:
      return u->cta == s->w->cta &&
             !(u->cta->bar[s->bar].members >> u->in & 1) &&
             warp_roles_ahead(u, comes_to, s);
    case STUCK_MBAR:
      return could_bring(u, &u->cluster->mbars.p[s->w->mbar]);
    case STUCK_CLUSTER:
      return simbarrier_missing(u) && warp_roles_ahead(u, is_op, &arrive);
    case STUCK_REGISTERS:
      return u->cta == s->w->cta && warp_roles_ahead(u, is_op, &registers);
    case STUCK_TEAM:
      return u->cta == s->w->cta && u->in / 4 == s->w->in / 4 &&
             u->state != SW_TEAM && warp_roles_ahead(u, is_op, &wgmma);
    case STUCK_TMEM:
      return simtcgen05_alone(s->w)
        ? u->cta != s->w->cta && warp_roles_ahead(u, is_op, &alloc)
        : u->cta == s->w->cta && warp_roles_ahead(u, is_op, &dealloc);
    // any thread may store to the flag, so the report names no thread
    case STUCK_FLAG: break;
  }
  return false;
}

static void find_behind(Stops *all) {
  for (uint32_t k = 0; k < all->nview; k++) {
    uint64_t at = stops_of(all, &all->view[k]);
    for (int j = 0; at && j < all->n; j++)
      if (could_end(&all->s[j], &all->view[k])) all->s[j].behind |= at;
  }
}

// ---- root cause ----

// Finds an mbarrier, in the same CTA as `of`, at which a warp passed more waits
// than phases have ended. Returns the line of the warp's wait, or 0 if there is
// none.
static uint32_t hasty_wait(const SimCluster *c, const SimMbar *of) {
  int64_t size = c->prog->smem_bytes;
  for (int k = 0; k < c->mbars.n; k++) {
    const SimMbar *b = &c->mbars.p[k];
    if (b->at / size != of->at / size) continue;
    for (int j = 0; j < c->prog->nall; j++)
      if (simmbar_ahead(&c->warp[j], b) > b->early)
        return b->use[j].waited;
  }
  return 0;
}

// Reports whether w skips a phase: it waits at b for the phase after the one
// for which it should wait next. The wait then has the wrong parity.
static bool skips(const SimWarp *w, const SimMbar *b) {
  // a producer's first wait passes before any phase has ended
  bool early = b->early && *simmbar_waits(w->cluster, w->id, b) != b->born;
  return simmbar_ahead(w, b) == (early ? 0 : -1);
}

static void judge_mbarrier(Stop *s, bool nobody) {
  const SimProg *p = s->w->cluster->prog;
  const SimMbar *b = &s->w->cluster->mbars.p[s->w->mbar];
  bool some = b->missing < b->expected || b->begun;
  bool fills = warp_roles_fills(s->w);
  int64_t ahead = simmbar_ahead(s->w, b);
  // A producer waits for an empty stage, but the readers of the stage have
  // exited. The producer is one phase ahead, because its first wait did not
  // block.
  bool last = nobody && b->early && !some && ahead == 1;
  if (simmbar_stays(s->w, false)) {
    s->lack = LACK_STAY;
  } else if (!b->missing) {
    s->lack = LACK_BYTES;
  } else if (!fills && ahead > 0 && !last) {
    s->lack = LACK_PARITY;
  } else if (!some && skips(s->w, b) &&
             (ahead < 0 || !(nobody || hasty_wait(s->w->cluster, b)))) {
    s->lack = fills ? LACK_FIRST : LACK_PARITY;
    s->rank = 2;
  } else if (b->expected > (uint32_t)(p->nthread * p->ncta) ||
             (nobody && b->missing < b->expected)) {
    s->lack = LACK_COUNT;
  } else if (nobody && simtcgen05_open(s->w)) {
    s->lack = LACK_COMMIT;
  } else if (nobody) {
    s->lack = LACK_NOBODY;
    s->rank = 1;
  } else if (!some && !b->phase && !b->early && fills) {
    s->lack = LACK_FIRST;
    s->rank = 2;
  } else if (some) {
    s->lack = LACK_COUNT;
    s->rank = 3;
  } else {
    s->rank = fills ? 4 : 5;
  }
}

static void judge(Stops *all) {
  for (int k = 0; k < all->n; k++) {
    Stop *s = &all->s[k];
    bool nobody = !(s->behind & ~((uint64_t)1 << k));
    if (s->how == STUCK_MBAR) judge_mbarrier(s, nobody);
    else if (s->how != STUCK_FLAG && s->how != STUCK_REGISTERS &&
             s->how != STUCK_TMEM)
      s->rank = s->how == STUCK_TEAM ? 6 : nobody ? 1 : 5;
    if (s->how == STUCK_BARRIER && nobody) s->lack = LACK_NOBODY;
  }
}

// Returns the mask of the stops (places where warps wait) on which stop k
// depends, directly or through other stops.
static uint64_t reach(const Stops *all, int k) {
  uint64_t seen = 0, next = all->s[k].behind;
  while (next & ~seen) {
    int j = __builtin_ctzll(next & ~seen);
    seen |= (uint64_t)1 << j;
    next |= all->s[j].behind;
  }
  return seen;
}

// Reports whether every stop (place where warps wait) on which stop k depends
// also depends on k. behind[j] is the mask of the stops on which stop j
// depends.
static bool is_last(const uint64_t *behind, int k) {
  for (uint64_t m = behind[k]; m; m &= m - 1)
    if (!(behind[__builtin_ctzll(m)] >> k & 1) && __builtin_ctzll(m) != k)
      return false;
  return true;
}

static void put_cause_first(Stops *all) {
  uint64_t behind[MOST_STOPS];
  int best = 0, least = INT32_MAX;
  for (int k = 0; k < all->n; k++) behind[k] = reach(all, k);
  for (int k = 0; k < all->n; k++) {
    int rank = all->s[k].rank + (is_last(behind, k) ? 0 : 100);
    if (rank >= least) continue;
    least = rank;
    best = k;
  }
  Stop first = all->s[best];
  memmove(&all->s[1], &all->s[0], (size_t)best * sizeof first);
  all->s[0] = first;
}

// ---- reports ----

// Adds to f, the fault at stop s, which warps wait there.
static void tell_warps(const Stops *all, const Stop *s, SimFault *f) {
  if (!f) return;
  f->deadlock.how = s->how;
  f->r.lack = s->lack;
  for (uint32_t k = 0; k < all->nview; k++) {
    const SimWarp *u = &all->view[k];
    uint32_t me = u->cta == s->w->cta ? 1u << u->in : 0;
    if (u->state == SW_DONE) f->deadlock.ended |= me;
    if (u != s->w && !same_place(s->w, u)) continue;
    f->deadlock.waiting |= me;
    if (u->split.here != (u->valid & ~u->gone))
      f->deadlock.lanes += __builtin_popcount(u->active);
  }
}

// Reports the deadlock at stop s: the fault names what the warps of the stop
// wait for, and which warps wait.
static SimFault *tell(const Stops *all, const Stop *s, int32_t mem,
                      int64_t element, uint64_t state, uint32_t src2) {
  SimCluster *c = s->w->cluster;
  for (uint32_t k = 0; !src2 && k < all->nview; k++) {
    const SimWarp *u = &all->view[k];
    if (same_place(s->w, u) && u->src != s->w->src) src2 = u->src;
  }
  c->serial++;
  SimFault *f = simreport_state(s->w, SIM_DEADLOCK, __builtin_ctz(s->w->active),
                                s->w->src, src2, mem, element, state);
  tell_warps(all, s, f);
  return f;
}

static void tell_barrier(const Stops *all, const Stop *s) {
  const SimBar *b = &s->w->cta->bar[s->bar];
  SimFault *f = tell(all, s, -1, 0, 0, 0);
  if (!f) return;
  f->deadlock.ended &= ~b->members;
  f->deadlock.some = s->lack && warp_roles_some(s->w);
  f->deadlock.barrier = s->bar;
  f->deadlock.came = b->arrived;
  f->deadlock.needed = b->expected;
}

// Reports whether the last arrival of a thread at b was by tcgen05.commit.
static bool is_committed(const SimProg *p, const SimMbar *b) {
  for (uint32_t k = 0; k < p->nins; k++)
    if (p->ins[k].op == OP_TCCOMMIT && p->ins[k].src == b->last) return true;
  return false;
}

// Finds the same mbarrier in another CTA of the cluster, if it has arrivals or
// bytes that b lacks, and adds it to f.
static void find_twin(SimFault *f, const SimCluster *c, const SimMbar *b) {
  for (int k = 0; k < c->mbars.n; k++) {
    const SimMbar *t = &c->mbars.p[k];
    if (t == b || t->mem != b->mem || t->element != b->element) continue;
    bool arrivals = f->r.lack == LACK_NOBODY &&
                    (t->phase > b->phase || t->missing < t->expected);
    bool bytes = f->r.lack == LACK_BYTES && b->bytes > 0 && t->bytes < 0;
    if (!arrivals && !bytes) continue;
    f->deadlock.twin = bytes ? -t->bytes : 1 + is_committed(c->prog, t);
    memcpy(f->spin.cta, c->cta[t->at / c->prog->smem_bytes].id,
           sizeof f->spin.cta);
    return;
  }
}

// Reports whether the kernel has MMAs on tensor memory, and no instruction that
// arrives at b.
static bool is_for_mmas(const SimCluster *c, const SimMbar *b) {
  const SimProg *p = c->prog;
  Bring d = {.p = p, .b = b, .at = b->at % p->smem_bytes, .own = true};
  for (uint32_t k = 0; k < p->nins; k++)
    if (brings(&p->ins[k], &d)) return false;
  return b->expected == 1 && warp_roles_has(p, OP_TCMMA);
}

static void tell_mbarrier(const Stops *all, const Stop *s) {
  const SimMbar *b = &s->w->cluster->mbars.p[s->w->mbar];
  uint64_t state = (uint64_t)b->phase << 42 ^ (uint64_t)b->missing << 21 ^
                   (uint64_t)b->bytes ^ (uint64_t)b->element << 56;
  uint32_t src2 = s->lack == LACK_BYTES ? b->expect
    : s->lack == LACK_COMMIT ? simtcgen05_open(s->w)
    : s->lack == LACK_COUNT || s->lack == LACK_NOBODY ? b->src : 0;
  SimFault *f = tell(all, s, b->mem, b->element, state, src2);
  if (!f) return;
  f->deadlock.barrier = b->phase;
  f->deadlock.came = b->missing;
  f->deadlock.needed = b->expected;
  f->deadlock.bytes = b->bytes;
  if (s->lack == LACK_NOBODY) f->r.waited = hasty_wait(s->w->cluster, b);
  find_twin(f, s->w->cluster, b);
  f->deadlock.mmas = s->lack == LACK_NOBODY && is_for_mmas(s->w->cluster, b);
  simmbar_rounds(s->w->cluster, b, &f->r);
}

static void tell_cluster(const Stops *all, const Stop *s) {
  SimCluster *c = s->w->cluster;
  SimFault *f = tell(all, s, -1, 0, 0, 0);
  if (!f) return;
  for (int k = 0; k < c->prog->nall; k++)
    f->deadlock.came += __builtin_popcount(simbarrier_missing(&c->warp[k]));
  f->deadlock.needed = c->prog->nthread * c->prog->ncta;
}

static void tell_registers(const Stops *all, const Stop *s) {
  SimFault *f = tell(all, s, -1, 0, 0, 0);
  if (!f) return;
  f->deadlock.came = s->w->cta->pool[s->w->in % 4];
  f->deadlock.needed = s->w->regs.wanted;
  f->deadlock.bytes = s->w->regs.n;
}

static void tell_team(const Stops *all, const Stop *s) {
  SimFault *f = tell(all, s, -1, 0, 0, 0);
  if (f) f->deadlock.came = simwgmma_lacks(s->w);
}

static void tell_columns(const Stops *all, const Stop *s) {
  SimFault *f = tell(all, s, -1, 0, 0, 0);
  if (!f) return;
  f->deadlock.came = simtcgen05_left(s->w);
  f->deadlock.needed = simtcgen05_alone(s->w);
}

void deadlock_tell(SimCluster *c) {
  Stops all = {.c = c};
  if (!make_views(&all)) {
    c->oom = true;
    return;
  }
  collect(&all);
  find_behind(&all);
  judge(&all);
  put_cause_first(&all);
  for (int k = 0; k < all.n; k++) {
    const Stop *s = &all.s[k];
    switch (s->how) {
      case STUCK_BARRIER: tell_barrier(&all, s); break;
      case STUCK_MBAR: tell_mbarrier(&all, s); break;
      case STUCK_CLUSTER: tell_cluster(&all, s); break;
      case STUCK_REGISTERS: tell_registers(&all, s); break;
      case STUCK_TEAM: tell_team(&all, s); break;
      case STUCK_TMEM: tell_columns(&all, s); break;
      case STUCK_FLAG: tell_warps(&all, s, livelock_tell(s->w)); break;
    }
  }
  base_free(all.view);
}
// SPDX-License-Identifier: MIT
