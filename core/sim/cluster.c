// The warps of a cluster: initial values, scheduling, barriers, register
// reallocation, and detection of deadlocks.
#include "sim/async.h"
#include "sim/barrier.h"
#include "sim/divergence.h"
#include "sim/mbar.h"
#include "sim/tcgen05.h"
#include "sim/tensormap_ops.h"
#include "sim/wgmma.h"

#include <string.h>

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
  int threads = p->nthread - w->in * LANES;
  w->state = SW_RUN;
  w->pc = w->depth = w->src = w->line = w->gone = 0;
  w->valid = threads >= LANES ? FULL : (1u << threads) - 1;
  w->active = w->split.here = w->valid;
  divergence_reset(w);
  w->split.waits = w->split.tries = 0;
  w->poll = (SimPoll){0};
  w->clk = 1;
  w->mbar = -1;
  w->count = 0;
  w->taints.some = w->wraps.some = false;
  w->taints.quotient.mem = NULL;
  memset(w->wraps.lanes, 0, p->wraps.n * sizeof *w->wraps.lanes);
  w->text.n = 0;
  w->copies.first = w->copies.end = 0;
  w->copies.count = 0;
  w->agents.issued = w->agents.teamwork = 0;
  w->round.met = w->round.came = w->round.passed = 0;
  w->refused = w->polling = w->vain = false;
  w->ring = 0;
  w->regs.n = p->registers;
  w->regs.wanted = 0;
  memset(&w->regs.allot, 0, sizeof w->regs.allot);
  memset(w->agents.groups, 0, sizeof w->agents.groups);
  memset(w->copies.committed, 0, sizeof w->copies.committed);
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
  size_t n = (size_t)actors_clocked(&p->actors);
  size_t bars = (size_t)p->ncta * MAX_BARS;
  c->cta = base_realloc(NULL, (size_t)p->ncta * sizeof *c->cta);
  if (!c->cta) return false;
  memset(c->cta, 0, (size_t)p->ncta * sizeof *c->cta);
  c->clocks = base_realloc(NULL, (bars + 2) * n * sizeof *c->clocks);
  if (!c->clocks) return false;
  uint32_t *vc = c->clocks;
  for (size_t k = 0; k < bars; k++, vc += n)
    c->cta[k / MAX_BARS].bar[k % MAX_BARS].past.vc = vc;
  c->round.open.vc = vc;
  c->round.done.vc = vc + n;
  return true;
}

void simcluster_free(SimCluster *c) {
  for (int k = 0; c->cta && k < c->prog->ncta; k++)
    for (int id = 0; id < MAX_BARS; id++)
      base_free(c->cta[k].bar[id].past.row);
  base_free(c->round.open.row);
  base_free(c->round.done.row);
  base_free(c->cta);
  base_free(c->clocks);
}

// ---- scheduling ----

// Reports whether all runnable warps have long polled mbarriers in vain.
static bool in_vain(SimCluster *c) {
  enum { MANY = 10000 };
  if (c->calm.vain < MANY) return false;
  c->calm.vain = 0;
  for (int k = 0; k < c->prog->nall; k++)
    if (c->warp[k].state == SW_RUN && !c->warp[k].polling) return false;
  return !c->agents.landing;
}

// Returns a random warp among those that can run, or NULL if none can run.
static SimWarp *pick(SimCluster *c) {
  SimWarp *can[MAX_ALL];
  uint64_t n = 0;
  for (int k = 0; k < c->prog->nall; k++)
    if (c->warp[k].state == SW_RUN) can[n++] = &c->warp[k];
  return n ? can[base_random(&c->rng) % n] : NULL;
}

// Appends the printf output of all warps in the order of their numbers, so that
// the output does not depend on the schedule.
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
    simbarrier_forget(c, &a->bar[id]);
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
  tensormap_ops_reset(c);
  simwgmma_reset(c);
  simtcgen05_reset(c);
  c->stop = c->round.meets = false;
  c->mmas = c->calm.vain = 0;
  c->round.met = 0;
  c->index = (uint32_t)index;
  c->refused = false;
  c->sleep.hopeless = false;
  c->moved = c->changed = c->calm.still = c->calm.since = c->calm.quiet = 0;
  c->sleep.since = UINT64_MAX;  // this cluster does not wait for other clusters
  for (int k = 0; k < p->ncta; k++) init_cta(c, k, index);
  for (int k = 0; k < p->nall; k++) init_warp(c, k);
  c->hooks->forget(c, &c->round.open);
  c->hooks->forget(c, &c->round.done);
}

// Reports whether all runnable warps poll memory that no warp of this cluster
// will change. Sets *others to whether another cluster may change that memory.
static bool is_stuck(SimCluster *c, bool *others) {
  bool global;
  c->calm.look = false;
  if (!c->hooks->stuck(c, &global)) return false;
  *others = global && c->prog->common && !c->sleep.hopeless;
  return true;
}

// Returns the next warp to run, or NULL if none can run.
static SimWarp *next(SimCluster *c, bool *others) {
  if (c->agents.landing) simasync_chance(c);
  for (;;) {
    bool vain = (c->calm.look && is_stuck(c, others)) || in_vain(c);
    SimWarp *w = vain ? NULL : pick(c);
    if (w) return w;
    if (!vain && simasync_press(c)) continue;
    if (!divergence_press(c)) break;
    *others = false;
  }
  is_stuck(c, others);
  return NULL;
}

bool simcluster_run(SimCluster *c) {
  SimWarp *w;
  bool others = false;
  // number of failed polls after which other clusters run
  int patience = c->prog->common ? (int)(base_random(&c->rng) % 32) : 256;
  c->calm.polls = 0;
  c->calm.look = true;
  for (int n = 0; !c->stop && (w = next(c, &others)); n++) {
    if (c->calm.polls > patience) return false;
    simexec_warp(w);
    if (n % 16 == 0) simexec_tick(c, w->src);
  }
  if (others) {
    c->sleep.since = c->prog->common->changes;
    return false;
  }
  simcluster_end(c);
  return true;
}

void simcluster_end(SimCluster *c) {
  bool waiting = false;
  simexec_spend(c);
  for (int k = 0; k < c->prog->nall; k++) {
    c->out->instructions += c->warp[k].count;
    waiting |= c->warp[k].state != SW_DONE;
  }
  c->out->mmas += c->mmas;
  for (int k = 0; k < c->prog->ncta; k++) c->out->early += c->cta[k].early;
  print_all(c);
  if (!c->stop && c->prog->registers) simbarrier_allotments(c);
  if (waiting && !c->stop) c->hooks->deadlock(c);
  if (!waiting && !c->stop) simbarrier_left(c);
  if (!waiting && !c->stop) c->hooks->exited(c);
  if (!waiting && !c->stop) simmbar_end(c);
  if (!waiting && !c->stop) simwgmma_end(c);
  if (!waiting && !c->stop) simtcgen05_end(c);
  simasync_end(c);
  c->hooks->end(c);
}
// SPDX-License-Identifier: MIT
