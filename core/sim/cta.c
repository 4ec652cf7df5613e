// The warps of a CTA: initial values, scheduling, barriers, deadlock.
#include "sim/inside.h"

#include <string.h>

// ---- beginning ----

static uint64_t sreg_of(const SimWarp *w, int64_t s, int l) {
  const SimCta *c = w->cta;
  const Launch *k = c->prog->launch;
  int t = w->id * LANES + l;
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
    case SR_WARP: return (uint64_t)w->id;
    case SR_SMID: return c->index & 127;
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
    case SR_CLUSTER_CTARANK:
      return (uint64_t)(c->id[0] % m[0] + m[0] * (c->id[1] % m[1] +
                        m[1] * (c->id[2] % m[2])));
    case SR_CLUSTER_NCTARANK: return (uint64_t)(m[0] * m[1] * m[2]);
    case SR_COUNT: break;
  }
  return 0;
}

static void init_values(SimWarp *w) {
  const SimProg *p = w->cta->prog;
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

static void init_warp(SimCta *c, int id) {
  SimWarp *w = &c->warp[id];
  int threads = c->prog->nthread - id * LANES;
  w->cta = c;
  w->id = id;
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
  memset(w->vc, 0, sizeof w->vc);
  memset(w->committed, 0, sizeof w->committed);
  init_values(w);
}

// ---- barriers ----

static void release(SimCta *c, SimBar *b) {
  for (uint32_t left = b->waiting; left; left &= left - 1) {
    SimWarp *w = &c->warp[__builtin_ctz(left)];
    simorder_leave(w, b);
    w->state = SW_RUN;
  }
  memset(b, 0, sizeof *b);
}

void simcta_misuse(SimWarp *w, const SimIns *i, uint32_t src2, SimMisuse how,
                   int64_t id, int64_t n, int64_t others) {
  SimFault *f = simreport_fault(w, SIM_BARRIER, 0, i->src, src2, -1, 0);
  if (f) {
    f->barrier.how = how;
    f->barrier.id = id;
    f->barrier.n = n;
    f->barrier.others = others;
  }
  w->cta->stop = true;
}

void simcta_arrive(SimWarp *w, const SimIns *i, int64_t id, int64_t threads,
                   bool wait) {
  SimCta *c = w->cta;
  const SimProg *p = c->prog;
  if (id < 0 || id >= MAX_BARS) {
    simcta_misuse(w, i, 0, BAR_RANGE, id, 0, 0);
    return;
  }
  SimBar *b = &c->bar[id];
  int64_t need = threads ? threads : p->nthread;
  if (need < 1 || need > p->nthread ||
      (need % LANES && need != p->nthread)) {
    simcta_misuse(w, i, 0, BAR_ODD, id, need, 0);
    return;
  }
  uint32_t me = 1u << w->id;
  if (b->arrived) {
    uint32_t src2 = b->src[__builtin_ctz(b->members)];
    if (b->expected != need) {
      simcta_misuse(w, i, src2, BAR_DIFFERS, id, need, b->expected);
      return;
    }
    if (b->members & me) {
      simcta_misuse(w, i, b->src[w->id], BAR_TWICE, id, 0, 0);
      return;
    }
  }
  b->expected = (int)need;
  b->arrived += __builtin_popcount(w->valid);
  b->members |= me;
  b->src[w->id] = i->src;
  simorder_arrive(w, b, wait);
  if (wait) {
    b->waiting |= me;
    w->state = SW_BARRIER;
    w->bar = (int)id;
    w->src = i->src;
  }
  if (b->arrived >= b->expected) release(c, b);
}

// ---- scheduling ----

static void deadlock(SimCta *c) {
  uint32_t done = 0;
  for (int k = 0; k < c->prog->nwarp; k++)
    if (c->warp[k].state == SW_DONE) done |= 1u << k;
  for (int id = 0; id < MAX_BARS; id++) {
    SimBar *b = &c->bar[id];
    if (!b->waiting) continue;
    SimWarp *w = &c->warp[__builtin_ctz(b->waiting)];
    uint32_t src2 = 0;
    for (uint32_t m = b->waiting; m; m &= m - 1) {
      uint32_t s = c->warp[__builtin_ctz(m)].src;
      if (s != w->src) src2 = s;
    }
    c->serial++;
    SimFault *f = simreport_fault(w, SIM_DEADLOCK, 0, w->src, src2, -1, 0);
    if (!f) continue;
    f->deadlock.waiting = b->waiting;
    f->deadlock.ended = done & ~b->members;
    f->deadlock.barrier = id;
    f->deadlock.came = b->arrived;
    f->deadlock.needed = b->expected;
  }
}

// The warp that runs next, by chance; NULL: none can.
static SimWarp *pick(SimCta *c) {
  uint32_t can = 0;
  for (int k = 0; k < c->prog->nwarp; k++)
    if (c->warp[k].state == SW_RUN) can |= 1u << k;
  if (!can) return NULL;
  int skip = (int)(base_random(&c->rng) %
                   (uint64_t)__builtin_popcount(can));
  while (skip--) can &= can - 1;
  return &c->warp[__builtin_ctz(can)];
}

// What the warps printed, one after the other, whatever their order was.
static void print_all(SimCta *c) {
  for (int k = 0; k < c->prog->nwarp; k++) {
    const SimText *t = &c->warp[k].text;
    if (t->n && !simreport_printf(&c->out->text, "%.*s", (int)t->n, t->p))
      c->oom = true;
  }
}

void simcta_run(SimCta *c) {
  simmem_reset(c);
  memset(c->bar, 0, sizeof c->bar);
  c->stop = false;
  c->mmas = 0;
  for (int k = 0; k < c->prog->nwarp; k++) init_warp(c, k);
  SimWarp *w;
  uint64_t told = c->tick ? base_nanotime() : 0;
  for (int n = 0; !c->stop && (w = pick(c)); n++) {
    simexec_warp(w);
    if (n % 16) continue;
    if (__atomic_load_n(c->quit, __ATOMIC_RELAXED)) c->stop = true;
    if (c->tick && base_nanotime() - told > 50000000) {
      c->tick(c->tick_ud);
      told = base_nanotime();
    }
  }
  bool waiting = false;
  for (int k = 0; k < c->prog->nwarp; k++) {
    c->out->instructions += c->warp[k].count;
    waiting |= c->warp[k].state == SW_BARRIER;
  }
  c->out->mmas += c->mmas;
  print_all(c);
  if (waiting && !c->stop) deadlock(c);
}
