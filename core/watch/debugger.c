// Implements the debugger's interface (debugger.h): stop conditions, and
// functions that read the state at a stop.
#include "watch/debugger.h"

#include <string.h>

#include "ir/rows.h"
#include "faults/facts.h"
#include "sim/async.h"
#include "sim/mbar.h"
#include "sim/regs.h"
#include "sim/wgmma.h"
#include "watch/shadow.h"

// The state of a watched element after the last executed instruction. `clk`,
// `src` and `warp` are the epoch, the line and the warp of the last write to
// the element. They change even if a store writes an equal value.
typedef struct SimKept {
  SimThere there;
  // bits: value of the element. cluster: number of the first CTA of the cluster
  // whose shadow memory `clk` comes from.
  uint64_t bits, cluster;
  uint32_t clk, src;
  uint16_t warp;
  bool known;
} SimKept;

// ---- position ----

static SimAt at_of(const SimDebug *d, const SimWarp *w, const SimIns *i) {
  SimAt a = {.step = d->step, .cta = (int64_t)w->cta->number, .warp = w->in,
             .lanes = w->active, .src = w->src};
  memcpy(a.block, w->cta->id, sizeof a.block);
  if (!i) return a;
  a.src = i->src;
  a.ref = i->ref;
  a.op = op_name((Op)i->op);
  return a;
}

SimAt debugger_at(const SimDebug *d) { return at_of(d, d->w, d->i); }

bool debugger_fault(const SimDebug *d, SimReport *out) {
  const SimOut *o = d->c->out;
  if (!o->nfault) return false;
  *out = o->fault[o->nfault - 1].r;
  out->fact = facts_of(d->c->prog, &o->fault[o->nfault - 1], &out->nfact);
  return out->fact;
}

int debugger_warps(const SimDebug *d) { return d->c->prog->nall; }

int debugger_warp(const SimDebug *d, int64_t cta, int warp) {
  const SimProg *p = d->c->prog;
  int64_t rank = cta - (int64_t)d->c->cta[0].number;
  if (rank < 0 || rank >= p->ncta || warp < 0 || warp >= p->nwarp) return -1;
  return (int)rank * p->nwarp + warp;
}

// ---- memory ----

static const SimMem *mem_of(const SimDebug *d, Ref mem) {
  const Fn *fn = d->c->prog->fn;
  return mem && mem < fn->ins.n && ir_is_mem(fn, mem) ? d->c->prog->mem[mem]
                                                      : NULL;
}

// Returns `bits` bits from bit `at` of p on.
static uint64_t bits_at(const uint8_t *p, int64_t at, int bits) {
  uint64_t u = 0;
  memcpy(&u, p + at / 8, (size_t)(at % 8 + bits + 7) / 8);
  u >>= at % 8;
  return bits < 64 ? u & (((uint64_t)1 << bits) - 1) : u;
}

static SimThere registers(SimWarp *w, const SimMem *m, int64_t e, int lane,
                          uint64_t *out) {
  SimThere there = THERE;
  *out = 0;
  if (e < 0 || (e + 1) * m->per > m->count) return THERE_NOT;
  for (int k = 0; k < m->per; k++) {
    int64_t unit = e * m->per + k;
    uint64_t u = rmem_get(rmem_at(w, m, unit), m->size, lane) & unit_mask(m);
    *out |= u << k * m->unit;
    if (!(rmem_def(w, m)[unit] >> lane & 1)) there = THERE_UNDEFINED;
    if (simwgmma_flies(w, m, unit)) there = THERE_FLYING;
  }
  return there;
}

// Returns the first byte of the shared memory of the CTA that owns m.
static uint32_t home_of(SimWarp *w, const SimMem *m, int lane) {
  if (!m->rank) return w->home;
  return u32_at(w, m->rank)[lane] * (uint32_t)w->cluster->prog->smem_bytes;
}

static SimThere shared(SimWarp *w, const SimMem *m, int64_t e, int lane,
                       uint64_t *out) {
  const SimCluster *c = w->cluster;
  uint32_t at = home_of(w, m, lane) + m->base + (uint32_t)(e * m->bits / 8);
  int64_t all = c->prog->ncta * c->prog->smem_bytes;
  if ((int64_t)at + (m->bits + 7) / 8 > all) return THERE_NOT;
  *out = bits_at(c->smem + at, e * m->bits % 8, m->bits);
  unsigned flags = shadow_at(c, at)->flags;
  if (flags & GF_PENDING) return THERE_FLYING;
  return flags & GF_DEFINED ? THERE : THERE_UNDEFINED;
}

static SimThere global(const SimMem *m, int64_t e, uint64_t *out) {
  int64_t at = e * m->bits;
  *out = bits_at(m->p + at / 8, at % 8, m->bits);
  if (!m->defined) return THERE;
  for (int64_t b = at / 8; b <= (at + m->bits - 1) / 8; b++)
    if (!(m->defined[b / 8] >> b % 8 & 1)) return THERE_UNDEFINED;
  return THERE;
}

SimThere debugger_element(const SimDebug *d, Ref mem, int64_t e, int k,
                          int lane, uint64_t *out) {
  const SimMem *m = mem_of(d, mem);
  SimWarp *w = &d->c->warp[k];
  *out = 0;
  if (!m || m->bits > 64) return THERE_NOT;
  bool in = e >= 0 && e < m->count && m->bits;
  switch (m->memory) {
    case MEMORY_REGISTERS: return registers(w, m, e, lane, out);
    case MEMORY_SHARED: return in ? shared(w, m, e, lane, out) : THERE_NOT;
    case MEMORY_GLOBAL: return in ? global(m, e, out) : THERE_NOT;
    case MEMORY_TENSOR: case MEMORY_NONE: break;
  }
  return THERE_NOT;
}

// Returns the shadow granule of an element, or NULL if it has none.
static const SimGran *granule(const SimDebug *d, Ref mem, int64_t e, int k,
                              int lane) {
  const SimMem *m = mem_of(d, mem);
  SimCluster *c = d->c;
  if (!m || e < 0 || e >= m->count) return NULL;
  int64_t g = shadow_find(c, m, home_of(&c->warp[k], m, lane), e * m->bits / 8);
  return g == NO_GRANULE ? NULL : &shadow_of(c)->gran[g];
}

SimAt debugger_writer(const SimDebug *d, Ref mem, int64_t e, int k, int lane) {
  const SimGran *q = granule(d, mem, e, k, lane);
  const SimProg *p = d->c->prog;
  SimAt a = {0};
  if (!q || !q->src) return a;
  bool flies = actors_is(&p->actors, ACTOR_CPASYNC, q->warp);
  int u = flies ? q->warp - actors_clocked(&p->actors) : q->warp;
  a.step = 1;
  a.src = q->src;
  a.lanes = q->lanes;
  a.warp = -1;  // -1: an asynchronous copy wrote the element
  a.op = flies ? "cp.async" : "an agent";
  if (u >= p->nall) return a;
  const SimWarp *w = &d->c->warp[u];
  a.cta = (int64_t)w->cta->number;
  memcpy(a.block, w->cta->id, sizeof a.block);
  a.warp = w->in;
  if (!flies) a.op = "thread";
  return a;
}

bool debugger_value(const SimDebug *d, Ref r, int k, int lane, uint64_t *out) {
  const SimProg *p = d->c->prog;
  if (!r || r >= p->fn->ins.n || !p->slot[r]) return false;
  DType t = ir_type(p->fn, r);
  *out = lane_bits(&d->c->warp[k], p->slot[r], sim_wide(t), lane);
  return true;
}

// ---- other warps and barriers ----

static const char *const states[] = {
  [SW_RUN] = "runs", [SW_BARRIER] = "barrier", [SW_MBAR] = "mbarrier",
  [SW_CLUSTER] = "cluster", [SW_REGISTERS] = "registers",
  [SW_TEAM] = "warpgroup", [SW_TMEM] = "tensor memory", [SW_DONE] = "ended"};

SimWarpAt debugger_warp_at(const SimDebug *d, int k) {
  const SimWarp *w = &d->c->warp[k];
  bool waits = w->state != SW_RUN && w->state != SW_DONE;
  SimWarpAt a = {.cta = (int64_t)w->cta->number, .warp = w->in,
                 .state = states[w->state], .active = w->active,
                 .count = w->count, .bar = -1, .mbar = -1};
  const SimProg *p = d->c->prog;
  const SimIns *i = &p->ins[w->pc < p->nins ? w->pc : p->nins - 1];
  a.ref = i->ref;
  a.src = waits || w->state == SW_DONE ? w->src : i->src;
  if (w->state == SW_BARRIER) a.bar = w->bar;
  if (w->state == SW_MBAR) a.mbar = w->mbar;
  a.copies = (int)(w->copies.end - w->copies.first);
  for (size_t n = 0; n < d->c->agents.n; n++)
    a.agents += d->c->agents.p[n]->w == w;
  return a;
}

int debugger_bars(const SimDebug *d, SimBarAt *out, int max) {
  const SimProg *p = d->c->prog;
  int n = 0;
  for (int k = 0; k < p->ncta; k++)
    for (int id = 0; id < MAX_BARS && n < max; id++) {
      const SimBar *b = &d->c->cta[k].bar[id];
      if (!b->arrived) continue;
      out[n++] = (SimBarAt){.cta = (int64_t)d->c->cta[k].number, .mem = -1,
                            .element = id, .arrived = b->arrived,
                            .expected = b->expected};
    }
  for (int k = 0; k < d->c->mbars.n && n < max; k++) {
    const SimMbar *b = &d->c->mbars.p[k];
    if (b->gone) continue;
    int64_t cta = (int64_t)(d->c->cta[0].number +
                            b->at / (uint64_t)p->smem_bytes);
    out[n++] = (SimBarAt){.cta = cta, .mem = b->mem, .element = b->element,
                          .phase = b->phase, .expected = b->expected,
                          .arrived = (int64_t)b->expected - b->missing,
                          .bytes = b->bytes};
  }
  return n;
}

// ---- stopping ----

static bool same_line(const Fn *fn, uint32_t a, uint32_t b) {
  return a == b || (fn->src.p[a].line == fn->src.p[b].line &&
                    fn->src.p[a].file == fn->src.p[b].file);
}

static bool is_met(const SimDebug *d, const SimPoint *p) {
  const Fn *fn = d->c->prog->fn;
  const SimWarp *w = d->w;
  const Src *s = &fn->src.p[d->i->src];
  if (p->cta >= 0 && (uint64_t)p->cta != w->cta->number) return false;
  if (p->warp >= 0 && p->warp != w->in) return false;
  if (p->every) return true;
  if (p->line && (p->line != s->line ||
                  strcmp(p->file, ir_str(fn, s->file)) != 0))
    return false;
  return d->i->src && (!w->line || !same_line(fn, w->line, d->i->src));
}

// Returns the index of a warp of the cluster that can access element e: warp
// e->warp of CTA e->cta, or warp 0 for global memory. Returns -1 if the CTA is
// in another cluster.
static int eye_of(const SimDebug *d, const SimElement *e) {
  const SimMem *m = mem_of(d, e->mem);
  return m && m->memory == MEMORY_GLOBAL ? 0
                                         : debugger_warp(d, e->cta, e->warp);
}

static SimKept look_at(SimDebug *d, const SimElement *e) {
  SimKept n = {.there = THERE_NOT, .cluster = d->c->cta[0].number};
  int k = eye_of(d, e);
  if (k < 0) return n;
  n.known = true;
  n.there = debugger_element(d, e->mem, e->element, k, e->lane, &n.bits);
  const SimGran *q = granule(d, e->mem, e->element, k, e->lane);
  if (!q) return n;
  n.clk = q->clk;
  n.src = q->src;
  n.warp = q->warp;
  return n;
}

// Reports whether the previous instruction changed watched element k. Records
// the element's new state.
static bool changed(SimDebug *d, int k) {
  SimKept now = look_at(d, &d->change[k]), *was = &d->kept[k];
  bool anew = now.cluster == was->cluster &&
              (now.clk != was->clk || now.src != was->src ||
               now.warp != was->warp);
  bool other = now.known && was->known &&
               (now.bits != was->bits || now.there != was->there || anew);
  *was = now;
  return other;
}

// Records the current state of the watched elements, if the caller changed the
// list of elements at this stop. Returns false if memory is exhausted.
static bool keep_elements(SimDebug *d) {
  if (d->nkept == d->nchange) return true;
  base_free(d->kept);
  d->kept = base_realloc(NULL, (size_t)d->nchange * sizeof *d->kept + 1);
  d->nkept = d->kept ? d->nchange : 0;
  for (int k = 0; k < d->nkept; k++) d->kept[k] = look_at(d, &d->change[k]);
  return d->kept;
}

static void ask(SimDebug *d, SimWhy why, int which) {
  d->why = why;
  d->which = which;
  if (!d->stop(d)) d->over = true;
}

// Returns the instruction that changed watched element k. This is the element's
// last writer or, if that is unknown, the previous instruction.
static SimAt changed_by(const SimDebug *d, int k) {
  const SimElement *e = &d->change[k];
  if (debugger_warp(d, d->before.cta, 0) < 0) return d->before;
  SimAt a = debugger_writer(d, e->mem, e->element, eye_of(d, e), e->lane);
  if (a.src == d->before.src) a.ref = d->before.ref;
  return a.step ? a : d->before;
}

// Handles a stop condition that is met: stops the run or, with `recall`, only
// records the instruction in d->met. Returns false if the run continues.
static bool meet(SimDebug *d, SimWhy why, int which) {
  d->met = why == WHY_CHANGE ? changed_by(d, which) : at_of(d, d->w, d->i);
  d->met.step = d->step;
  if (d->recall) return false;
  ask(d, why, which);
  return true;
}

static void look_around(SimDebug *d) {
  SimOut *o = d->c->out;
  for (int k = 0; k < d->nkept; k++)
    if (changed(d, k) && meet(d, WHY_CHANGE, k)) return;
  if (d->faults && o->nfault > o->shown) {
    o->shown = o->nfault;
    if (meet(d, WHY_FAULT, 0)) return;
  }
  if (d->step >= d->until) {
    ask(d, WHY_STEP, 0);
    return;
  }
  for (int k = 0; k < d->npoint; k++)
    if (is_met(d, &d->point[k]) && meet(d, WHY_POINT, k)) return;
}

bool debugger_before(SimWarp *w, const SimIns *i) {
  SimCluster *c = w->cluster;
  SimDebug *d = c->prog->launch->debug;
  d->c = c;
  d->w = w;
  d->i = i;
  d->step++;
  if (!d->over && !keep_elements(d)) c->oom = d->over = true;
  if (!d->over) look_around(d);
  if (!d->over && !keep_elements(d)) c->oom = d->over = true;
  d->before = at_of(d, w, i);
  w->line = i->src;
  if (d->over) c->stop = true;
  return !d->over;
}

void debugger_end(SimCluster *c) {
  SimDebug *d = c->prog->launch->debug;
  if (d->over || !d->w || d->c != c) return;
  for (int k = 0; k < d->nkept && d->recall; k++)
    if (changed(d, k)) meet(d, WHY_CHANGE, k);
  if (!d->faults || c->out->nfault <= c->out->shown) return;
  c->out->shown = c->out->nfault;
  d->i = NULL;
  meet(d, WHY_END, 0);
}

void debugger_free(SimDebug *d) {
  base_free(d->kept);
  d->kept = NULL;
  d->nkept = 0;
}
// SPDX-License-Identifier: MIT
