// Counts faults while a cluster runs.
#include "sim/report.h"

#include <stdio.h>
#include <string.h>

#include "sim/state.h"

// ---- counting ----

void simreport_thread(const SimProg *p, int linear, int32_t out[3]) {
  const int32_t *b = p->launch->block;
  out[0] = linear % b[0];
  out[1] = linear / b[0] % b[1];
  out[2] = linear / b[0] / b[1];
}

bool simreport_same(const SimReport *a, const SimReport *b) {
  return a->kind == b->kind && a->src == b->src && a->src2 == b->src2 &&
         a->mem == b->mem && a->state == b->state;
}

const SimReport *simreport_of(const SimWarp *w, SimKind kind, uint32_t src,
                              int32_t mem) {
  const SimOut *o = w->cluster->out;
  for (uint32_t k = 0; k < o->nfault; k++) {
    const SimReport *r = &o->fault[k].r;
    if (r->kind == kind && r->src == src && r->mem == mem) return r;
  }
  return NULL;
}

// Finds the report in `all`, of n reports, that equals r, and adds 1 to its
// count. Returns false if no report equals r.
static bool count_again(const SimCluster *c, SimFault *all, uint32_t n,
                        const SimReport *r) {
  for (uint32_t k = 0; k < n; k++) {
    SimFault *f = &all[k];
    if (!simreport_same(&f->r, r)) continue;
    if (f->serial != c->serial) f->r.count++;
    f->serial = c->serial;
    return true;
  }
  return false;
}

// Fills in f, the report of a fault by a lane of w.
static SimFault *begin(const SimWarp *w, SimFault *f, int lane,
                       const SimReport *r) {
  SimCluster *c = w->cluster;
  memset(f, 0, sizeof *f);
  f->r = *r;
  memcpy(f->r.block, w->cta->id, sizeof f->r.block);
  simreport_thread(c->prog, w->in * LANES + (lane < 0 ? 0 : lane),
                   f->r.thread);
  f->serial = c->serial;
  return f;
}

static SimReport report_of(SimKind kind, uint32_t src, uint32_t src2,
                           int32_t mem, int64_t offset, uint64_t state) {
  return (SimReport){.kind = kind, .mem = mem, .offset = offset, .src = src,
                     .src2 = src2, .count = 1, .other = -1, .state = state,
                     .leads = -1, .elsewhere = -1};
}

SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset) {
  return simreport_state(w, kind, lane, src, src2, mem, offset, 0);
}

SimFault *simreport_state(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset,
                          uint64_t state) {
  SimCluster *c = w->cluster;
  SimOut *o = c->out;
  SimReport r = report_of(kind, src, src2, mem, offset, state);
  if (count_again(c, o->fault, o->nfault, &r)) return NULL;
  if (o->nfault >= (uint32_t)c->host.max_reports) {
    c->stop = true;
    return NULL;
  }
  return begin(w, &o->fault[o->nfault++], lane, &r);
}

SimFault *simreport_note(SimWarp *w, SimKind kind, int lane, uint32_t src,
                         uint32_t src2, int32_t mem, int64_t offset) {
  SimOut *o = w->cluster->out;
  if (w->cluster->host.strict)
    return simreport_fault(w, kind, lane, src, src2, mem, offset);
  SimReport r = report_of(kind, src, src2, mem, offset, 0);
  if (count_again(w->cluster, o->note, o->nnote, &r) || o->nnote == MAX_NOTES)
    return NULL;
  return begin(w, &o->note[o->nnote++], lane, &r);
}

void simreport_flight(const SimProg *p, SimFault *out) {
  const Flight *f = &p->fn->flight;
  uint32_t src = ir_get(p->fn, f->at)->src;
  uint32_t other = f->other ? ir_get(p->fn, f->other)->src : 0;
  memset(out, 0, sizeof *out);
  out->r = report_of(SIM_FLIGHT, src, other, -1, 0, 0);
}

// ---- text ----

bool simreport_printf(SimText *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (n < 0) return false;
  size_t need = t->n + (size_t)n + 1;
  if (need > t->cap) {
    size_t cap = t->cap * 2 > need ? t->cap * 2 : need;
    char *p = base_realloc(t->p, cap);
    if (!p) return false;
    t->p = p;
    t->cap = cap;
  }
  va_start(ap, fmt);
  vsnprintf(t->p + t->n, (size_t)n + 1, fmt, ap);
  va_end(ap);
  t->n += (size_t)n;
  return true;
}
// SPDX-License-Identifier: MIT
