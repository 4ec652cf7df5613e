// The warps of a cluster: initial values, scheduling, barriers, deadlock.
#include "sim/inside.h"

#include <string.h>

// ---- beginning ----

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
  w->vc = c->clocks + (size_t)id * (size_t)p->nactor;
  int threads = p->nthread - w->in * LANES;
  w->state = SW_RUN;
  w->pc = w->depth = w->src = w->gone = 0;
  w->valid = threads >= LANES ? FULL : (1u << threads) - 1;
  w->active = w->valid;
  w->clk = 1;
  w->count = 0;
  w->tainted = false;
  w->text.n = 0;
  w->first = w->end = 0;
  w->seen = w->pending = w->fenced = 0;
  w->late = w->unfenced = w->sent = 0;
  w->level = false;
  memset(w->vc, 0, (size_t)p->nactor * sizeof *w->vc);
  memset(w->committed, 0, sizeof w->committed);
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
  c->cta = base_realloc(NULL, (size_t)p->ncta * sizeof *c->cta);
  if (!c->cta) return false;
  memset(c->cta, 0, (size_t)p->ncta * sizeof *c->cta);
  size_t warps = (size_t)p->nall;
  c->clocks = base_realloc(NULL, (warps + bars) * n * sizeof *c->clocks);
  if (!c->clocks) return false;
  for (size_t k = 0; k < bars; k++)
    c->cta[k / MAX_BARS].bar[k % MAX_BARS].past.vc =
      c->clocks + (warps + k) * n;
  return true;
}

void simcluster_free(SimCluster *c) {
  for (int k = 0; c->cta && k < c->prog->ncta; k++)
    for (int id = 0; id < MAX_BARS; id++)
      base_free(c->cta[k].bar[id].past.row);
  base_free(c->cta);
  base_free(c->clocks);
}

// ---- barriers ----

static void forget(const SimCluster *c, SimBar *b) {
  b->expected = b->arrived = 0;
  b->members = b->waiting = 0;
  simorder_forget(c, &b->past);
}

static void release(SimCluster *c, SimCta *a, SimBar *b) {
  SimWarp *warp = &c->warp[(a - c->cta) * c->prog->nwarp];
  for (uint32_t left = b->waiting; left; left &= left - 1) {
    SimWarp *w = &warp[__builtin_ctz(left)];
    simorder_take(w, w->valid, &b->past);
    w->state = SW_RUN;
  }
  forget(c, b);
}

void simcluster_misuse(SimWarp *w, const SimIns *i, uint32_t src2,
                       SimMisuse how, int64_t id, int64_t n, int64_t others) {
  SimFault *f = simreport_fault(w, SIM_BARRIER, 0, i->src, src2, -1, 0);
  if (f) {
    f->barrier.how = how;
    f->barrier.id = id;
    f->barrier.n = n;
    f->barrier.others = others;
  }
  w->cluster->stop = true;
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
  b->expected = (int)need;
  b->arrived += __builtin_popcount(w->valid);
  b->members |= me;
  b->src[w->in] = i->src;
  if (wait) simorder_meet(w, w->valid);
  simorder_give(w, w->valid, &b->past);
  if (wait) {
    b->waiting |= me;
    w->state = SW_BARRIER;
    w->bar = (int)id;
    w->src = i->src;
  }
  if (b->arrived >= b->expected) release(c, w->cta, b);
}

// ---- scheduling ----

// Warps of a CTA that wait at one of its barriers.
static void stuck(SimCluster *c, SimCta *a, int id) {
  SimBar *b = &a->bar[id];
  SimWarp *warp = &c->warp[(a - c->cta) * c->prog->nwarp];
  SimWarp *w = &warp[__builtin_ctz(b->waiting)];
  uint32_t src2 = 0, done = 0;
  for (uint32_t m = b->waiting; m; m &= m - 1) {
    uint32_t s = warp[__builtin_ctz(m)].src;
    if (s != w->src) src2 = s;
  }
  for (int k = 0; k < c->prog->nwarp; k++)
    if (warp[k].state == SW_DONE) done |= 1u << k;
  c->serial++;
  SimFault *f = simreport_fault(w, SIM_DEADLOCK, 0, w->src, src2, -1, 0);
  if (!f) return;
  f->deadlock.waiting = b->waiting;
  f->deadlock.ended = done & ~b->members;
  f->deadlock.barrier = id;
  f->deadlock.came = b->arrived;
  f->deadlock.needed = b->expected;
}

static void deadlock(SimCluster *c) {
  for (int k = 0; k < c->prog->ncta; k++)
    for (int id = 0; id < MAX_BARS; id++)
      if (c->cta[k].bar[id].waiting) stuck(c, &c->cta[k], id);
}

// The warp that runs next, by chance; NULL: none can.
static SimWarp *pick(SimCluster *c) {
  SimWarp *can[MAX_ALL];
  uint64_t n = 0;
  for (int k = 0; k < c->prog->nall; k++)
    if (c->warp[k].state == SW_RUN) can[n++] = &c->warp[k];
  return n ? can[base_random(&c->rng) % n] : NULL;
}

// What the warps printed, one after the other, whatever their order was.
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
  for (int id = 0; id < MAX_BARS; id++) forget(c, &a->bar[id]);
}

void simcluster_begin(SimCluster *c, uint64_t index) {
  simmem_reset(c);
  c->stop = false;
  c->mmas = 0;
  for (int k = 0; k < c->prog->ncta; k++) init_cta(c, k, index);
  for (int k = 0; k < c->prog->nall; k++) init_warp(c, k);
  c->told = c->tick ? base_nanotime() : 0;
}

bool simcluster_run(SimCluster *c) {
  enum { PATIENCE = 256 };  // polls before others have their turn
  SimWarp *w;
  c->polls = 0;
  for (int n = 0; !c->stop && (w = pick(c)); n++) {
    if (c->polls > PATIENCE) return false;
    simexec_warp(w);
    if (n % 16) continue;
    if (__atomic_load_n(c->quit, __ATOMIC_RELAXED)) c->stop = true;
    if (c->tick && base_nanotime() - c->told > 50000000) {
      c->tick(c->tick_ud);
      c->told = base_nanotime();
    }
  }
  bool waiting = false;
  for (int k = 0; k < c->prog->nall; k++) {
    c->out->instructions += c->warp[k].count;
    waiting |= c->warp[k].state == SW_BARRIER;
  }
  c->out->mmas += c->mmas;
  print_all(c);
  if (waiting && !c->stop) deadlock(c);
  return true;
}
