// Barriers of a CTA, the barrier of a cluster, and setmaxnreg.
#include "sim/barrier.h"
#include "sim/mbar.h"

#include <string.h>

// ---- barriers of a CTA ----

void simbarrier_forget(const SimCluster *c, SimBar *b) {
  b->expected = b->arrived = 0;
  b->before = b->members;
  b->knows = b->waiting;
  memcpy(b->last, b->clk, sizeof b->last);
  b->members = b->waiting = 0;
  c->hooks->forget(c, &b->past);
}

static void release(SimCluster *c, SimCta *a, SimBar *b) {
  SimWarp *warp = &c->warp[(a - c->cta) * c->prog->nwarp];
  for (uint32_t left = b->waiting; left; left &= left - 1) {
    SimWarp *w = &warp[__builtin_ctz(left)];
    w->cluster->hooks->take(w, w->valid, &b->past);
    if (c->steps) c->steps->take(w, (int)(b - a->bar));
    w->state = SW_RUN;
  }
  if (c->steps) c->steps->forget(warp, (int)(b - a->bar));
  c->moved++;
  simbarrier_forget(c, b);
}

static void misuse(SimWarp *w, const SimIns *i, uint32_t src2, SimMisuse how,
                   int64_t id, int64_t n, int64_t others) {
  SimFault *f = simreport_fault(w, SIM_BARRIER, 0, i->src, src2, -1, 0);
  if (!f) return;
  f->barrier.how = how;
  f->barrier.id = id;
  f->barrier.n = n;
  f->barrier.others = others;
}

void simbarrier_misuse(SimWarp *w, const SimIns *i, uint32_t src2,
                       SimMisuse how, int64_t id, int64_t n, int64_t others) {
  misuse(w, i, src2, how, id, n, others);
  w->cluster->stop = true;
}

// Reports whether warp u's arrival in epoch clk happens before the current
// instruction of some lane of w. `u` is the number of the warp in w's CTA.
static bool knows_of(SimWarp *w, int u, uint32_t clk) {
  const SimWarp *o = w - w->in + u;
  return w->cluster->hooks->before_some(w, o->id, o->valid, clk);
}

// Checks that the arrivals of the previous round happen before w's arrival.
// Otherwise another schedule could count w's arrival in that round. `need` is
// the number of threads that a round counts.
static void check_round(SimWarp *w, const SimIns *i, const SimBar *b, int id,
                        int64_t need) {
  if (b->knows >> w->in & 1) return;
  for (uint32_t m = b->before & ~(1u << w->in); m; m &= m - 1) {
    int u = __builtin_ctz(m);
    if (knows_of(w, u, b->last[u])) continue;
    int n = 0;  // threads of the warps that used the barrier lately
    for (m = b->before | b->members | 1u << w->in; m; m &= m - 1)
      n += __builtin_popcount((w - w->in + __builtin_ctz(m))->valid);
    misuse(w, i, b->src[u], BAR_EARLY, id, n, need);
    return;
  }
}

void simbarrier_arrive(SimWarp *w, const SimIns *i, int64_t id,
                       int64_t threads, bool wait) {
  SimCluster *c = w->cluster;
  const SimProg *p = c->prog;
  if (id < 0 || id >= MAX_BARS) {
    simbarrier_misuse(w, i, 0, BAR_RANGE, id, 0, 0);
    return;
  }
  SimBar *b = &w->cta->bar[id];
  int64_t need = threads ? threads : p->nthread;
  if (need < 1 || need > p->nthread ||
      (need % LANES && need != p->nthread)) {
    simbarrier_misuse(w, i, 0, BAR_ODD, id, need, 0);
    return;
  }
  uint32_t me = 1u << w->in;
  if (b->arrived) {
    uint32_t src2 = b->src[__builtin_ctz(b->members)];
    if (b->expected != need) {
      simbarrier_misuse(w, i, src2, BAR_DIFFERS, id, need, b->expected);
      return;
    }
    if (b->members & me) {
      simbarrier_misuse(w, i, b->src[w->in], BAR_TWICE, id, 0, 0);
      return;
    }
  }
  check_round(w, i, b, (int)id, need);
  b->expected = (int)need;
  b->arrived += __builtin_popcount(w->valid);
  b->members |= me;
  b->src[w->in] = i->src;
  b->clk[w->in] = w->clk;
  if (wait) w->cluster->hooks->meet(w, w->valid);
  w->cluster->hooks->give(w, w->valid, &b->past, GIVE_ALL);
  if (c->log) c->log->give(w, &b->past.gate, false);
  if (c->log && wait) c->log->need(w, b->past.gate);
  if (c->steps) c->steps->give(w, (int)id);
  if (wait) {
    b->waiting |= me;
    w->state = SW_BARRIER;
    w->bar = (int)id;
    w->src = i->src;
  }
  if (b->arrived >= b->expected) release(c, w->cta, b);
}

// ---- cluster barrier ----

static void cluster_fault(SimWarp *w, const SimIns *i, SimMisuse how) {
  simbarrier_misuse(w, i, 0, how, 0, 0, 0);
}

uint32_t simbarrier_missing(const SimWarp *w) {
  if (w->state == SW_DONE) return 0;
  return w->valid & ~w->gone & ~w->round.came;
}

// Completes the round of the cluster barrier if all threads arrived or exited.
static void look(SimCluster *c) {
  const SimProg *p = c->prog;
  for (int k = 0; k < p->nall; k++)
    if (simbarrier_missing(&c->warp[k])) return;
  SimPast was = c->round.done;
  c->round.done = c->round.open;
  c->round.open = was;
  c->hooks->forget(c, &c->round.open);
  if (c->steps) c->steps->meet(c);
  simmbar_share(c, ++c->round.met);
  c->moved++;
  c->round.meets = false;
  c->calm.vain = 0;
  for (int k = 0; k < p->nall; k++) {
    SimWarp *w = &c->warp[k];
    w->round.passed |= w->round.came;
    w->round.came = 0;
    if (w->state == SW_CLUSTER) w->state = SW_RUN;
  }
}

void simbarrier_exited(SimCluster *c) {
  if (c->round.meets) look(c);
}

void simbarrier_meet(SimWarp *w, const SimIns *i) {
  SimCluster *c = w->cluster;
  if ((w->round.came | w->round.passed) & w->active) {
    cluster_fault(w, i, BAR_TWICE_CLUSTER);
    return;
  }
  w->round.came |= w->active;
  if (i->flags & CLF_RELAXED) {
    w->cluster->hooks->give(w, w->active, &c->round.open, GIVE_FENCED);
    c->hooks->give_turns(w, w->active,
                         simmbar_turns(c->prog, c->round.open.vc));
  } else {
    w->cluster->hooks->give(w, w->active, &c->round.open, GIVE_ALL);
  }
  if (c->steps) c->steps->give(w, CAUSE_OPEN);
  c->round.meets = true;
  w->src = i->src;
  if (c->log) c->log->give(w, &c->round.open.gate, false);
  look(c);
}

bool simbarrier_wait(SimWarp *w, const SimIns *i) {
  SimCluster *c = w->cluster;
  if (w->active & ~(w->round.came | w->round.passed)) {
    cluster_fault(w, i, BAR_UNCAME_CLUSTER);
    return true;
  }
  if (w->active & w->round.came) {
    w->state = SW_CLUSTER;
    w->src = i->src;
    return false;
  }
  w->cluster->hooks->take(w, w->active, &c->round.done);
  if (c->log) c->log->need(w, c->round.done.gate);
  if (c->steps) c->steps->take(w, CAUSE_DONE);
  w->round.passed &= ~w->active;
  w->round.met = c->round.met;
  return true;
}

// Reports a barrier at which too few threads arrived to complete the round.
static void tell_left(SimCluster *c, int rank, int id) {
  const SimBar *b = &c->cta[rank].bar[id];
  int k = __builtin_ctz(b->members);
  SimFault *f = simreport_fault(&c->warp[rank * c->prog->nwarp + k],
                                SIM_BARRIER, 0, b->src[k], 0, -1, 0);
  if (!f) return;
  f->barrier.how = BAR_LEFT;
  f->barrier.id = id;
  f->barrier.n = b->arrived;
  f->barrier.others = b->expected;
}

void simbarrier_left(SimCluster *c) {
  for (int k = 0; k < c->prog->ncta; k++)
    for (int id = 0; id < MAX_BARS; id++)
      if (c->cta[k].bar[id].arrived) tell_left(c, k, id);
}

// ---- registers ----

static void misallot(SimWarp *w, const SimIns *i, uint32_t src2,
                     SimAllotment how, const SimWarp *other) {
  SimFault *f = simreport_fault(w, SIM_REGISTERS, 0, i->src, src2, -1, 0);
  if (!f) return;
  f->registers.how = how;
  f->registers.had = w->regs.n;
  f->registers.wanted = (int)i->imm;
  f->registers.warp = w->in;
  f->registers.other = other ? other->in : -1;
  const SimIns *theirs = other ? other->regs.allot.i : NULL;
  f->registers.theirs = theirs ? (int)theirs->imm : 0;
}

// Reports whether setmaxnreg `last` of another warp counts as the same as i.
static bool is_same(const SimWarp *w, const SimIns *last, const SimIns *i) {
  if (last == i) return true;
  return w->cluster->prog->fn->setmaxnreg_alike && last->imm == i->imm &&
         last->flags == i->flags;
}

// Checks that all warps of w's warpgroup execute setmaxnreg i: none may execute
// another one instead, and each must have executed the previous one before.
// Returns false after reporting misuse.
static bool comes_along(SimWarp *w, const SimIns *i) {
  SimWarp *first = w - w->in % 4;
  w->regs.allot.n++;
  w->regs.allot.i = i;
  w->regs.allot.clk = w->clk;
  int l = __builtin_ctz(w->active), n = w->cluster->prog->nwarp - first->in;
  for (const SimWarp *u = first; u < first + (n < 4 ? n : 4); u++) {
    const SimIns *last = u->regs.allot.i;
    SimAllotment how = ALLOT_COUNT;
    if (u->regs.allot.n == w->regs.allot.n && !is_same(w, last, i))
      how = ALLOT_DIFFERS;
    else if (u != w && u->regs.allot.n < w->regs.allot.n &&
             w->regs.allot.n > 1 &&
             (u->regs.allot.n + 1 < w->regs.allot.n ||
              !w->cluster->hooks->before(w, l, u->id, u->valid,
                                         u->regs.allot.clk)))
      how = ALLOT_APART;
    if (how == ALLOT_COUNT) continue;
    misallot(w, i, last && last->src != i->src ? last->src : 0, how, u);
    w->cluster->stop = true;
    return false;
  }
  return true;
}

bool simbarrier_registers(SimWarp *w, const SimIns *i) {
  int *pool = &w->cta->pool[w->in % 4], n = (int)i->imm;
  bool more = i->flags & RGF_INC;
  // A setmaxnreg that requests the warp's present number of registers needs no
  // synchronization. Triton executes the same setmaxnreg.dec twice in a row.
  if (n == w->regs.n) return true;
  if (!w->regs.wanted && !comes_along(w, i)) return true;
  // If PTX has no .maxnreg, ptxas chooses the number of registers. A kernel may
  // then start with fewer registers than the simulator assumes.
  bool chosen = w->cluster->prog->fn->registers < 0;
  if (more ? n < w->regs.n && !chosen : n > w->regs.n) {
    misallot(w, i, 0, ALLOT_COUNT, NULL);
    return true;
  }
  w->src = i->src;
  w->regs.wanted = n;
  if (n - w->regs.n > *pool) {
    w->state = SW_REGISTERS;
    return false;
  }
  *pool -= n - w->regs.n;
  w->regs.n = n;
  w->regs.wanted = 0;
  SimWarp *all = w - w->in;
  for (int k = 0; k < w->cluster->prog->nwarp; k++)
    if (all[k].state == SW_REGISTERS) all[k].state = SW_RUN;
  return true;
}

// Reports warps that exited without executing a setmaxnreg that other warps of
// their warpgroup executed.
void simbarrier_allotments(SimCluster *c) {
  for (int k = 0; k < c->prog->nall; k++) {
    SimWarp *w = &c->warp[k];
    const SimWarp *u = w - w->in % 4;
    int n = c->prog->nwarp - u->in;
    for (const SimWarp *end = u + (n < 4 ? n : 4); u < end; u++) {
      if (w->state != SW_DONE || u->regs.allot.n <= w->regs.allot.n) continue;
      misallot(w, u->regs.allot.i, 0, ALLOT_LACKS, u);
      break;
    }
  }
}
// SPDX-License-Identifier: MIT
