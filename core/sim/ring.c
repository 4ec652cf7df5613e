// Finds rings of stages, and mistaken stages. A tensor in shared memory is a
// ring if the last mode of its layout has 2 to 8 coordinates and the largest
// stride. A read probably has the wrong stage if the data of another stage is
// complete and waited for, but nothing has read it.
#include "sim/ring.h"

#include "layout/notation.h"
#include "sim/inside.h"
#include "sim/mbar.h"
#include "sim/roles.h"

#include <string.h>

enum { MOST_STAGES = 8 };

// Returns the index of the last mode with more than one coordinate, or -1.
static int last_mode(const Dim *shape, size_t n) {
  while (n && dim_is(shape[n - 1], 1)) n--;
  return (int)n - 1;
}

void simring_find(Ctx *cx, const Fn *fn, const Mem *m, SimMem *s) {
  const char *text = ir_str(fn, m->layout);
  if (!*text || strchr(text, '?') || strchr(text, '_')) return;
  Layout l = layout_parse(cx, text, strlen(text));
  if ((l.outer && !layout_swizzle(l)) || !layout_static(l)) return;
  size_t n = tup_leaves(l.shape);
  Dim *shape = NEW(cx, Dim, n);
  tup_collect(l.shape, shape);
  int last = last_mode(shape, n);
  if (last < 1) return;
  int64_t stages = dim_value(shape[last]), stride = dim_value(l.stride[last]);
  if (stages > MOST_STAGES) return;
  for (int k = 0; k < last; k++)
    if (dim_value(shape[k]) > 1 && dim_value(l.stride[k]) >= stride) return;
  s->stages = (int)stages;
  s->stage = stride * s->own / 8;
}

static bool copies(const SimProg *p, uint32_t src, bool grouped) {
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    if (i->src != src) continue;
    if (i->op == OP_CPASYNC) return true;
    if (!grouped && (i->op == OP_TMALOAD || i->op == OP_BULKLOAD)) return true;
  }
  return false;
}

// Reports whether the copy that wrote granule q happens before lane l of x, and
// nothing has read q.
static bool is_ready(const Access *x, int l, const SimGran *q) {
  int busy = GF_PENDING | GF_FAR;
  return q->flags & GF_DEFINED && !(q->flags & busy) && !q->readers &&
         simorder_before(x->w, l, q->warp, q->lanes, q->clk) &&
         copies(x->w->cluster->prog, q->src, false);
}

// Reports whether one group has the cp.async to granules a and b.
static bool share_group(const SimCluster *c, uint32_t a, uint32_t b) {
  const SimGran *p = &c->gran[a], *q = &c->gran[b];
  int lane[2];
  uint32_t group[2];
  return p->flags & q->flags & GF_PENDING && p->warp == q->warp &&
         p->warp < c->prog->nall && copies(c->prog, q->src, true) &&
         simmem_group(&c->warp[p->warp], a, &lane[0], &group[0]) &&
         simmem_group(&c->warp[p->warp], b, &lane[1], &group[1]) &&
         lane[0] == lane[1] && group[0] == group[1];
}

// Reports whether a cp.async that is in no group fills granule b, while granule
// a waits for a group of the same warp.
static bool is_open(const SimCluster *c, uint32_t a, uint32_t b) {
  const SimGran *p = &c->gran[a], *q = &c->gran[b];
  return p->flags & q->flags & GF_PENDING && p->warp == q->warp &&
         p->warp < c->prog->nall && copies(c->prog, q->src, true) &&
         simmem_open(&c->warp[p->warp], b);
}

// Reports whether a cp.async of the threads that execute line `src` fills
// granule q.
static bool is_filled(const SimProg *p, uint32_t src, const SimGran *q) {
  return q->flags & (GF_DEFINED | GF_PENDING) && copies(p, q->src, true) &&
         !simroles_apart(p, src, q->src);
}

void simring_stray(SimFault *f, const Access *x, uint32_t g, const SimWarp *u,
                   uint32_t clk) {
  const SimCluster *c = x->w->cluster;
  const SimMem *m = x->m;
  const SimMbar *b = &c->mbar[x->w->mbar];
  if (!m->stages || m->rank || simmbar_array(c, b) != m->stages) return;
  int64_t k = (shadow_byte(c, g) - x->w->home - m->base) / m->stage;
  if (b->element != k) {
    f->r.elsewhere = f->r.offset + (b->element - k) * m->stage * 8 / m->own;
    f->r.strays = x->write ? STRAY_WRITE : STRAY_READ;
  } else if (u && simmbar_arrived(b, u, clk)) {
    f->r.strays = STRAY_RELEASED;
  }
}

void simring_look(SimFault *f, const Access *x, int l, uint32_t g) {
  SimCluster *c = x->w->cluster;
  const SimMem *m = x->m;
  if (!m->stages || m->rank) return;
  int64_t first = x->w->home + m->base, at = shadow_byte(c, g) - first;
  for (int k = 0; k < m->stages; k++) {
    int64_t to = at % m->stage + k * m->stage;
    if (to == at || to >= m->bytes) continue;
    uint32_t other = shadow_shared(c, (uint32_t)(first + to));
    const SimGran *q = &c->gran[other];
    bool ready = is_ready(x, l, q);
    bool pending = f->r.lack == LACK_PENDING;
    bool same = pending && share_group(c, g, other);
    bool open = pending && is_open(c, g, other);
    bool filled = f->r.kind == SIM_UNINIT && is_filled(c->prog, f->r.src, q);
    if (!ready && (f->r.elsewhere >= 0 || !(same || open || filled))) continue;
    f->r.elsewhere = f->r.offset + (to - at) * 8 / m->own;
    f->r.ready = ready;
    f->r.same = same;
    f->r.open = open;
    if (ready) return;
  }
}
// SPDX-License-Identifier: MIT
