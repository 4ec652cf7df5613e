// The warps of a cluster: initial values, scheduling, barriers, register
// reallocation, and detection of deadlocks.
#include "base/guard.h"
#include "sim/async.h"
#include "sim/bulk.h"
#include "sim/lanes.h"
#include "sim/mbar.h"
#include "sim/wgmma.h"

#include <string.h>

// The last access of a warp to shared memory of another CTA: epoch, lanes and
// line.
struct SimReach { uint32_t clk, lanes, src; };

// ---- initial state ----

static uint64_t sreg_of(const SimWarp *w, int64_t s, int l) {
  const SimCta *c = w->cta;
  const Launch *k = w->cluster->prog->launch;
  int t = w->in * LANES + l;
  int nx = k->block[0], ny = k->block[1];
  const int32_t *m = k->cluster;
  switch ((SReg)s) {
    case SR_TID_X: return (uint64_t)(t % nx);
    case SR_TID_Y: return (uint64_t)(t / nx % ny);
    case SR_TID_Z: return (uint64_t)(t / nx / ny);
    case SR_CTAID_X: case SR_CTAID_Y: case SR_CTAID_Z:
      return (uint64_t)c->id[s - SR_CTAID_X];
    case SR_NTID_X: case SR_NTID_Y: case SR_NTID_Z:
      return (uint64_t)k->block[s - SR_NTID_X];
    case SR_NCTAID_X: case SR_NCTAID_Y: case SR_NCTAID_Z:
      return (uint64_t)k->grid[s - SR_NCTAID_X];
    case SR_LANE: return (uint64_t)l;
    case SR_WARP: return (uint64_t)w->in;
    case SR_SMID: return c->number & 127;
    case SR_CLUSTERID_X: case SR_CLUSTERID_Y: case SR_CLUSTERID_Z:
      return (uint64_t)(c->id[s - SR_CLUSTERID_X] / m[s - SR_CLUSTERID_X]);
    case SR_NCLUSTERID_X: case SR_NCLUSTERID_Y: case SR_NCLUSTERID_Z:
      return (uint64_t)(k->grid[s - SR_NCLUSTERID_X] /
                        m[s - SR_NCLUSTERID_X]);
    case SR_CLUSTER_CTAID_X: case SR_CLUSTER_CTAID_Y: case SR_CLUSTER_CTAID_Z:
      return (uint64_t)(c->id[s - SR_CLUSTER_CTAID_X] %
                        m[s - SR_CLUSTER_CTAID_X]);
    case SR_CLUSTER_NCTAID_X: case SR_CLUSTER_NCTAID_Y:
    case SR_CLUSTER_NCTAID_Z:
      return (uint64_t)m[s - SR_CLUSTER_NCTAID_X];
    case SR_CLUSTER_CTARANK: return (uint64_t)(c - w->cluster->cta);
    case SR_CLUSTER_NCTARANK: return (uint64_t)w->cluster->prog->ncta;
    case SR_COUNT: break;
  }
  return 0;
}

static void init_values(SimWarp *w) {
  const SimProg *p = w->cluster->prog;
  for (uint32_t k = 0; k < p->ninit; k++) {
    const SimInit *n = &p->init[k];
    int lanes = n->spread ? LANES : 1;
    for (int l = 0; l < lanes; l++) {
      uint64_t u = n->kind == OP_SREG ? sreg_of(w, n->imm, l)
                                      : (uint64_t)n->imm;
      if (n->wide) memcpy(w->v + n->slot + l * 8, &u, 8);
      else {
        uint32_t v = (uint32_t)u;
        memcpy(w->v + n->slot + l * 4, &v, 4);
      }
    }
  }
}

static void init_warp(SimCluster *c, int id) {
  const SimProg *p = c->prog;
  SimWarp *w = &c->warp[id];
  int rank = id / p->nwarp;
  w->cluster = c;
  w->cta = &c->cta[rank];
  w->id = id;
  w->in = id % p->nwarp;
  w->home = (uint32_t)rank * (uint32_t)p->smem_bytes;
  w->vc = c->clocks + 3 * (size_t)id * (size_t)p->nactor;
  int threads = p->nthread - w->in * LANES;
  w->state = SW_RUN;
  w->pc = w->depth = w->src = w->line = w->gone = 0;
  w->valid = threads >= LANES ? FULL : (1u << threads) - 1;
  w->active = w->here = w->valid;
  simlanes_reset(w);
  w->waits = w->tries = 0;
  w->poll = (SimPoll){0};
  w->clk = 1;
  w->mbar = -1;
  w->count = 0;
  w->tainted = w->wraps = false;
  w->quotient.mem = NULL;
  memset(w->wrapped, 0, p->nwrap * sizeof *w->wrapped);
  w->text.n = 0;
  w->first = w->end = 0;
  w->seen = w->pending = w->distant = w->fenced = 0;
  w->sent = 0;
  w->level = false;
  w->proxied = w->vc + p->nactor;
  memset(w->vc, 0, 3 * (size_t)p->nactor * sizeof *w->vc);
  w->batches = 0;
  w->issued = w->teamwork = w->wider = w->fresh[0] = w->fresh[1] = 0;
  w->met = w->came = w->passed = 0;
  w->refused = w->polling = w->vain = false;
  w->ring = 0;
  w->registers = p->registers;
  w->wanted = 0;
  w->started = 0;
  memset(&w->allot, 0, sizeof w->allot);
  memset(w->groups, 0, sizeof w->groups);
  w->nfence = 0;
  memset(w->committed, 0, sizeof w->committed);
  memset(w->waited, 0, sizeof w->waited);
  init_values(w);
}

void simcluster_place(const SimProg *p, uint64_t number, int32_t id[3]) {
  const int32_t *grid = p->launch->grid, *size = p->launch->cluster;
  uint64_t at = number / (uint64_t)p->ncta, in = number % (uint64_t)p->ncta;
  for (int k = 0; k < 3; k++) {
    uint64_t n = (uint64_t)size[k], all = (uint64_t)grid[k] / n;
    id[k] = (int32_t)(at % all * n + in % n);
    at /= all;
    in /= n;
  }
}

bool simcluster_init(SimCluster *c) {
  const SimProg *p = c->prog;
  size_t n = (size_t)p->nactor, bars = (size_t)p->ncta * MAX_BARS;
  size_t warps = (size_t)p->nall, each = 3 * n;
  c->cta = base_realloc(NULL, (size_t)p->ncta * sizeof *c->cta);
  if (!c->cta) return false;
  memset(c->cta, 0, (size_t)p->ncta * sizeof *c->cta);
  size_t all = warps * each + (bars + 2) * n;
  c->clocks = base_realloc(NULL, all * sizeof *c->clocks);
  c->reach = base_realloc(NULL, (size_t)p->ncta * warps * sizeof *c->reach);
  if (!c->clocks || !c->reach) return false;
  uint32_t *vc = c->clocks + warps * each;
  for (size_t k = 0; k < bars; k++, vc += n)
    c->cta[k / MAX_BARS].bar[k % MAX_BARS].past.vc = vc;
  c->open.vc = vc;
  c->done.vc = vc + n;
  return true;
}

void simcluster_free(SimCluster *c) {
  for (int k = 0; c->cta && k < c->prog->ncta; k++)
    for (int id = 0; id < MAX_BARS; id++)
      base_free(c->cta[k].bar[id].past.row);
  base_free(c->open.row);
  base_free(c->done.row);
  base_free(c->cta);
  base_free(c->clocks);
  base_free(c->reach);
}

// ---- barriers ----

static void forget(const SimCluster *c, SimBar *b) {
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
  forget(c, b);
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

void simcluster_misuse(SimWarp *w, const SimIns *i, uint32_t src2,
                       SimMisuse how, int64_t id, int64_t n, int64_t others) {
  misuse(w, i, src2, how, id, n, others);
  w->cluster->stop = true;
}

// Reports whether some lane of w happens after warp u's arrival in epoch clk. u
// is the number of warp u in w's CTA.
static bool knows_of(SimWarp *w, int u, uint32_t clk) {
  const SimWarp *o = w - w->in + u;
  for (int l = 0; l < LANES; l++) {
    if (w->cluster->hooks->before(w, l, o->id, o->valid, clk)) return true;
    if (!w->seen) return false;
  }
  return false;
}

// Checks that the arrivals of the previous round happen before w's arrival.
// Otherwise another schedule could count w's arrival in the previous round.
static void check_round(SimWarp *w, const SimIns *i, const SimBar *b, int id) {
  if (b->knows >> w->in & 1) return;
  for (uint32_t m = b->before & ~(1u << w->in); m; m &= m - 1) {
    int u = __builtin_ctz(m);
    if (knows_of(w, u, b->last[u])) continue;
    misuse(w, i, b->src[u], BAR_EARLY, id, 0, 0);
    return;
  }
}

void simcluster_arrive(SimWarp *w, const SimIns *i, int64_t id,
                       int64_t threads, bool wait) {
  SimCluster *c = w->cluster;
  const SimProg *p = c->prog;
  if (id < 0 || id >= MAX_BARS) {
    simcluster_misuse(w, i, 0, BAR_RANGE, id, 0, 0);
    return;
  }
  SimBar *b = &w->cta->bar[id];
  int64_t need = threads ? threads : p->nthread;
  if (need < 1 || need > p->nthread ||
      (need % LANES && need != p->nthread)) {
    simcluster_misuse(w, i, 0, BAR_ODD, id, need, 0);
    return;
  }
  uint32_t me = 1u << w->in;
  if (b->arrived) {
    uint32_t src2 = b->src[__builtin_ctz(b->members)];
    if (b->expected != need) {
      simcluster_misuse(w, i, src2, BAR_DIFFERS, id, need, b->expected);
      return;
    }
    if (b->members & me) {
      simcluster_misuse(w, i, b->src[w->in], BAR_TWICE, id, 0, 0);
      return;
    }
  }
  check_round(w, i, b, (int)id);
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
  simcluster_misuse(w, i, 0, how, 0, 0, 0);
}

uint32_t simcluster_missing(const SimWarp *w) {
  if (w->state == SW_DONE) return 0;
  return w->valid & ~w->gone & ~w->came;
}

// Completes the round of the cluster barrier if all threads arrived or exited.
static void look(SimCluster *c) {
  const SimProg *p = c->prog;
  for (int k = 0; k < p->nall; k++)
    if (simcluster_missing(&c->warp[k])) return;
  SimPast was = c->done;
  c->done = c->open;
  c->open = was;
  c->hooks->forget(c, &c->open);
  if (c->steps) c->steps->meet(c);
  simmbar_share(c, ++c->met);
  c->moved++;
  c->meets = false;
  c->vain = 0;
  for (int k = 0; k < p->nall; k++) {
    SimWarp *w = &c->warp[k];
    w->passed |= w->came;
    w->came = 0;
    if (w->state == SW_CLUSTER) w->state = SW_RUN;
  }
}

void simcluster_left(SimCluster *c) {
  if (c->meets) look(c);
}

void simcluster_meet(SimWarp *w, const SimIns *i) {
  SimCluster *c = w->cluster;
  if ((w->came | w->passed) & w->active) {
    cluster_fault(w, i, BAR_TWICE_CLUSTER);
    return;
  }
  w->came |= w->active;
  if (i->flags & CLF_RELAXED) {
    w->cluster->hooks->give(w, w->active, &c->open, GIVE_FENCED);
    c->hooks->give_turns(w, w->active, simmbar_turns(c->prog, c->open.vc));
  } else {
    w->cluster->hooks->give(w, w->active, &c->open, GIVE_ALL);
  }
  if (c->steps) c->steps->give(w, CAUSE_OPEN);
  c->meets = true;
  w->src = i->src;
  if (c->log) c->log->give(w, &c->open.gate, false);
  look(c);
}

bool simcluster_wait(SimWarp *w, const SimIns *i) {
  SimCluster *c = w->cluster;
  if (w->active & ~(w->came | w->passed)) {
    cluster_fault(w, i, BAR_UNCAME_CLUSTER);
    return true;
  }
  if (w->active & w->came) {
    w->state = SW_CLUSTER;
    w->src = i->src;
    return false;
  }
  w->cluster->hooks->take(w, w->active, &c->done);
  if (c->log) c->log->need(w, c->done.gate);
  if (c->steps) c->steps->take(w, CAUSE_DONE);
  w->passed &= ~w->active;
  w->met = c->met;
  return true;
}

// ---- memory of other CTAs ----

static bool is_gone(const SimCluster *c, int rank) {
  const SimWarp *w = &c->warp[rank * c->prog->nwarp];
  for (int k = 0; k < c->prog->nwarp; k++)
    if (w[k].state != SW_DONE) return false;
  return true;
}

// Reports that a CTA may have exited. `landed` is the mbarrier of a copy that
// is not waited for; NULL: an access of a thread.
static void tell_gone(SimWarp *w, uint32_t src, int lane, int rank,
                      const SimMbar *landed) {
  SimFault *f = simreport_fault(w, SIM_EXIT, lane, src, 0, -1, 0);
  if (!f) return;
  memcpy(f->gone.cta, w->cluster->cta[rank].id, sizeof f->gone.cta);
  f->gone.landed = landed;
  if (landed) simmbar_rounds(w->cluster, landed, &f->r);
}

// A CTA is known to run if w synchronized with a thread of the CTA, directly or
// through other threads. It is also known to run if w acquired what such a
// thread released.
bool simcluster_runs(SimWarp *w, int l, int rank) {
  const SimProg *p = w->cluster->prog;
  int n = p->nwarp, first = rank * n, turn = simmbar_turn(p);
  if (w->started >> rank & 1) return true;
  for (int u = first; u < first + n; u++) {
    if (w->vc[turn + u] || w->vc[u]) {
      w->started |= 1u << rank;
      return true;
    }
    if (w->cluster->hooks->before(w, l, turn + u, 1, 1)) return true;
    for (int k = 0; k < LANES; k++)
      if (w->cluster->hooks->before(w, l, u, 1u << k, 1)) return true;
  }
  return false;
}

void simcluster_reach(SimWarp *w, const SimIns *i, int l, int rank,
                      bool keep) {
  SimCluster *c = w->cluster;
  if (is_gone(c, rank)) tell_gone(w, i->src, l, rank, NULL);
  if (!keep) return;
  SimReach *r = &c->reach[rank * c->prog->nall + w->id];
  if (r->clk != w->clk) r->lanes = 0;
  r->clk = w->clk;
  r->lanes |= 1u << l;
  r->src = i->src;
}

// Reports whether an access by `lanes` of warp u in epoch clk happens before
// some thread of CTA `rank`.
static bool knows(SimCluster *c, int rank, int u, uint32_t lanes,
                  uint32_t clk) {
  SimWarp *w = &c->warp[rank * c->prog->nwarp];
  for (int k = 0; k < c->prog->nwarp; k++, w++)
    for (int l = 0; l < LANES; l++) {
      if (w->cluster->hooks->before(w, l, u, lanes, clk)) return true;
      if (!w->seen) break;
    }
  return false;
}

// Reports a barrier at which some threads arrived but not enough to complete
// the round.
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

// Reports three kinds of faults after all warps exited: incomplete rounds of
// barriers, CTAs that may have exited before other CTAs accessed their shared
// memory, and agents that may still access shared memory.
static void check_ends(SimCluster *c) {
  const SimProg *p = c->prog;
  for (int k = 0; k < p->ncta; k++)
    for (int id = 0; id < MAX_BARS; id++)
      if (c->cta[k].bar[id].arrived) tell_left(c, k, id);
  for (int k = 0; k < p->ncta * p->nall && p->ncta > 1; k++) {
    const SimReach *r = &c->reach[k];
    SimWarp *w = &c->warp[k % p->nall];
    int rank = k / p->nall;
    if (r->clk && !knows(c, rank, w->id, r->lanes, r->clk))
      tell_gone(w, r->src, __builtin_ctz(r->lanes), rank, NULL);
  }
  for (int k = 0; k < c->nmbar; k++) {
    const SimMbar *b = &c->mbar[k];
    int rank = (int)(b->at / p->smem_bytes);
    if (!b->landed || knows(c, rank, simmbar_actor(c, b), 1, b->landed))
      continue;
    if (b->moved || !knows(c, rank, b->lander, 1u << b->lane, b->left))
      tell_gone(&c->warp[b->lander], b->land, b->lane, rank,
                b->moved ? b : NULL);
  }
}

// ---- registers ----

static void misallot(SimWarp *w, const SimIns *i, uint32_t src2,
                     SimAllotment how, const SimWarp *other) {
  SimFault *f = simreport_fault(w, SIM_REGISTERS, 0, i->src, src2, -1, 0);
  if (!f) return;
  f->registers.how = how;
  f->registers.had = w->registers;
  f->registers.wanted = (int)i->imm;
  f->registers.warp = w->in;
  f->registers.other = other ? other->in : -1;
  f->registers.theirs = other && other->allot.i ? (int)other->allot.i->imm : 0;
}

// Checks the warps of w's warpgroup before setmaxnreg i: all must execute i,
// and only after all executed the previous setmaxnreg. Reports misuse and then
// returns false.
static bool comes_along(SimWarp *w, const SimIns *i) {
  SimWarp *first = w - w->in % 4;
  w->allot.n++;
  w->allot.i = i;
  w->allot.clk = w->clk;
  int l = __builtin_ctz(w->active), n = w->cluster->prog->nwarp - first->in;
  for (const SimWarp *u = first; u < first + (n < 4 ? n : 4); u++) {
    const SimIns *last = u->allot.i;
    SimAllotment how = ALLOT_COUNT;
    if (u->allot.n == w->allot.n && last != i)
      how = ALLOT_DIFFERS;
    else if (u != w && u->allot.n < w->allot.n && w->allot.n > 1 &&
             (u->allot.n + 1 < w->allot.n ||
              !w->cluster->hooks->before(w, l, u->id, u->valid, u->allot.clk)))
      how = ALLOT_APART;
    if (how == ALLOT_COUNT) continue;
    misallot(w, i, last && last->src != i->src ? last->src : 0, how, u);
    w->cluster->stop = true;
    return false;
  }
  return true;
}

bool simcluster_registers(SimWarp *w, const SimIns *i) {
  int *pool = &w->cta->pool[w->in % 4], n = (int)i->imm;
  bool more = i->flags & RGF_INC;
  // A setmaxnreg for the number that the warp has needs no synchronization:
  // Triton executes the same setmaxnreg.dec twice in a row.
  if (n == w->registers) return true;
  if (!w->wanted && !comes_along(w, i)) return true;
  // Without .maxnreg, ptxas may choose fewer registers at the start than fit.
  bool chosen = w->cluster->prog->fn->registers < 0;
  if (more ? n < w->registers && !chosen : n > w->registers) {
    misallot(w, i, 0, ALLOT_COUNT, NULL);
    return true;
  }
  w->src = i->src;
  w->wanted = n;
  if (n - w->registers > *pool) {
    w->state = SW_REGISTERS;
    return false;
  }
  *pool -= n - w->registers;
  w->registers = n;
  w->wanted = 0;
  SimWarp *all = w - w->in;
  for (int k = 0; k < w->cluster->prog->nwarp; k++)
    if (all[k].state == SW_REGISTERS) all[k].state = SW_RUN;
  return true;
}

// Reports warps that exited without a setmaxnreg that other warps of their
// warpgroup executed.
static void check_allotments(SimCluster *c) {
  for (int k = 0; k < c->prog->nall; k++) {
    SimWarp *w = &c->warp[k];
    const SimWarp *u = w - w->in % 4;
    int n = c->prog->nwarp - u->in;
    for (const SimWarp *end = u + (n < 4 ? n : 4); u < end; u++) {
      if (w->state != SW_DONE || u->allot.n <= w->allot.n) continue;
      misallot(w, u->allot.i, 0, ALLOT_LACKS, u);
      break;
    }
  }
}

// ---- scheduling ----

// Reports whether all runnable warps have tested phases of mbarriers for a long
// time without success.
static bool in_vain(SimCluster *c) {
  enum { MANY = 10000 };
  if (c->vain < MANY) return false;
  c->vain = 0;
  for (int k = 0; k < c->prog->nall; k++)
    if (c->warp[k].state == SW_RUN && !c->warp[k].polling) return false;
  return !c->landing;
}

// Returns a random warp that can run, or NULL.
static SimWarp *pick(SimCluster *c) {
  SimWarp *can[MAX_ALL];
  uint64_t n = 0;
  for (int k = 0; k < c->prog->nall; k++)
    if (c->warp[k].state == SW_RUN) can[n++] = &c->warp[k];
  return n ? can[base_random(&c->rng) % n] : NULL;
}

// Appends the printf output of all warps in the order of their numbers, so that
// it does not depend on the schedule.
static void print_all(SimCluster *c) {
  for (int k = 0; k < c->prog->nall; k++) {
    const SimText *t = &c->warp[k].text;
    if (t->n && !simreport_printf(&c->out->text, "%.*s", (int)t->n, t->p))
      c->oom = true;
  }
}

static void init_cta(SimCluster *c, int k, uint64_t index) {
  SimCta *a = &c->cta[k];
  a->number = index * (uint64_t)c->prog->ncta + (uint64_t)k;
  simcluster_place(c->prog, a->number, a->id);
  for (int id = 0; id < MAX_BARS; id++) {
    forget(c, &a->bar[id]);
    a->bar[id].before = 0;
  }
  memset(a->pool, 0, sizeof a->pool);
  a->early = false;
}

void simcluster_begin(SimCluster *c, uint64_t index) {
  const SimProg *p = c->prog;
  simmem_reset(c);
  simmbar_reset(c);
  simasync_reset(c);
  simmaps_reset(c);
  simwgmma_reset(c);
  c->stop = c->meets = false;
  c->mmas = c->vain = 0;
  c->met = 0;
  c->index = (uint32_t)index;
  c->hopeless = false;
  c->moved = c->changed = c->still = c->since = c->quiet = 0;
  c->asleep = UINT64_MAX;  // this cluster is not waiting for others
  for (int k = 0; k < p->ncta; k++) init_cta(c, k, index);
  for (int k = 0; k < p->nall; k++) init_warp(c, k);
  c->hooks->forget(c, &c->open);
  c->hooks->forget(c, &c->done);
  memset(c->reach, 0, (size_t)(p->ncta * p->nall) * sizeof *c->reach);
}

// Reports whether all runnable warps poll memory that no warp of this cluster
// will change. Sets *others if other clusters may still change that memory.
static bool is_stuck(SimCluster *c, bool *others) {
  bool global;
  c->look = false;
  if (!c->hooks->stuck(c, &global)) return false;
  *others = global && c->prog->common && !c->hopeless;
  return true;
}

// Returns the next warp to run, or NULL if none can run.
static SimWarp *next(SimCluster *c, bool *others) {
  if (c->landing) simasync_chance(c);
  for (;;) {
    bool vain = (c->look && is_stuck(c, others)) || in_vain(c);
    SimWarp *w = vain ? NULL : pick(c);
    if (w) return w;
    if (!vain && simasync_press(c)) continue;
    if (!simlanes_press(c)) break;
    *others = false;
  }
  is_stuck(c, others);
  return NULL;
}

// Spends the guard's budget for the instructions since the last call.
static void spend(SimCluster *c) {
  if (!guard_spend(c->serial - c->beat.spent)) c->stop = true;
  c->beat.spent = c->serial;
}

void simcluster_tick(SimCluster *c) {
  spend(c);
  if (c->tick) c->tick(c->tick_ud);
  if (__atomic_load_n(c->quit, __ATOMIC_RELAXED)) c->stop = true;
}

bool simcluster_run(SimCluster *c) {
  SimWarp *w;
  bool others = false;
  // After this many failed polls, other clusters run.
  int patience = c->prog->common ? (int)(base_random(&c->rng) % 32) : 256;
  c->polls = 0;
  c->look = true;
  for (int n = 0; !c->stop && (w = next(c, &others)); n++) {
    if (c->polls > patience) return false;
    simexec_warp(w);
    if (n % 16 == 0) simcluster_tick(c);
  }
  if (others) {
    c->asleep = c->prog->common->changes;
    return false;
  }
  simcluster_end(c);
  return true;
}

void simcluster_end(SimCluster *c) {
  bool waiting = false;
  spend(c);
  for (int k = 0; k < c->prog->nall; k++) {
    c->out->instructions += c->warp[k].count;
    waiting |= c->warp[k].state != SW_DONE;
  }
  c->out->mmas += c->mmas;
  for (int k = 0; k < c->prog->ncta; k++) c->out->early += c->cta[k].early;
  print_all(c);
  if (!c->stop && c->prog->registers) check_allotments(c);
  if (waiting && !c->stop) c->hooks->deadlock(c);
  if (!waiting && !c->stop) check_ends(c);
  if (!waiting && !c->stop) simmbar_end(c);
  if (!waiting && !c->stop) simwgmma_end(c);
  simasync_end(c);
  c->hooks->end(c);
}
// SPDX-License-Identifier: MIT
