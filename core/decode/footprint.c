// Computes footprints: the elements of an argument's memory that its layout
// reaches. The elements between them are gaps, such as the padding after the
// rows of a matrix.
#include "decode/footprint.h"

#include "layout/algebra.h"
#include "layout/notation.h"

#include <string.h>

// Returns the layout of argument k as text. The dynamic numbers of the layout
// are the values of the arguments that follow argument k.
static const char *layout_of(Ctx *cx, const Launch *l, const char *text,
                             size_t k) {
  const char *s = "";
  for (const char *q; (q = strchr(text, '?')); text = q + 1) {
    if (++k >= l->fn->arg.n || l->fn->arg.p[k].pointer) return "";
    bool wide = dtype_bits(l->fn->arg.p[k].type) > 32;
    int64_t n = wide ? (int64_t)l->arg[k].bits : (int32_t)l->arg[k].bits;
    s = arena_printf(cx, &cx->scratch, "%s%.*s%lld", s, (int)(q - text), text,
                     (long long)n);
    // Skip the known divisor of the number, which is in braces.
    if (q[1] == '{') q = strchr(q, '}');
  }
  return arena_printf(cx, &cx->scratch, "%s%s", s, text);
}

static bool put_mode(SimFootprint *t, int64_t extent, int64_t stride) {
  if (t->n == FOOTPRINT_MODES || stride < 0 || extent < 1) return false;
  // A mode with stride 0 repeats one element, so its extent counts as 1.
  t->extent[t->n] = stride ? extent : 1;
  t->stride[t->n++] = stride;
  return true;
}

bool footprint_parse(Ctx *cx, const Launch *l, const Mem *m, Layout *to) {
  const char *text = layout_of(cx, l, ir_str(l->fn, m->layout),
                               (size_t)m->arg);
  if (!*text || strchr(text, '_')) return false;
  *to = layout_parse(cx, text, strlen(text));
  return !to->outer && layout_static(*to);
}

bool footprint_map(SimFootprint *t, const TensorMap *m, int bits) {
  bool good = !m->im2col && put_mode(t, m->extent[0], 1);
  for (int64_t k = 1; k < m->rank; k++)
    good = good && put_mode(t, m->extent[k], m->stride[k - 1] * 8 / bits);
  return good;
}

// Writes the layout of object m, flattened, to *y. Returns the extents of its
// modes, or NULL if the layout is unknown.
static const Dim *extents_of(Ctx *cx, const Launch *l, const Mem *m,
                             Layout *y) {
  if (!footprint_parse(cx, l, m, y)) return NULL;
  *y = layout_flatten(cx, *y);
  Dim *shape = NEW(cx, Dim, tup_leaves(y->shape));
  tup_collect(y->shape, shape);
  return shape;
}

bool footprint_layout(Ctx *cx, SimFootprint *t, const Launch *l,
                      const Mem *m) {
  Layout y;
  const Dim *shape = extents_of(cx, l, m, &y);
  if (!shape) return false;
  for (size_t k = 0; k < tup_leaves(y.shape); k++)
    if (!put_mode(t, dim_value(shape[k]), dim_value(y.stride[k])))
      return false;
  return true;
}

bool footprint_repeats(Ctx *cx, const Launch *l, const Mem *m) {
  Layout y;
  const Dim *shape = extents_of(cx, l, m, &y);
  if (!shape) return false;
  for (size_t k = 0; k < tup_leaves(y.shape); k++)
    if (dim_value(shape[k]) > 1 && dim_value(y.stride[k]) == 0) return true;
  return false;
}

// Returns the mode of t with the largest stride below `below`, or -1 if there
// is none.
static int next_mode(const SimFootprint *t, int64_t below) {
  int best = -1;
  for (int k = 0; k < t->n; k++)
    if (t->extent[k] > 1 && t->stride[k] < below &&
        (best < 0 || t->stride[k] > t->stride[best]))
      best = k;
  return best;
}

const SimFootprint *footprint_gaps(Ctx *cx, const Launch *l, const Mem *m) {
  SimFootprint t = {0};
  if (!footprint_layout(cx, &t, l, m)) return NULL;
  bool gaps = false;
  int64_t below = INT64_MAX;
  for (int k; (k = next_mode(&t, below)) >= 0; below = t.stride[k]) {
    int j = next_mode(&t, t.stride[k]);
    // Two modes with the same stride overlap, so the gaps are unknown.
    for (int i = 0; i < t.n; i++)
      if (i != k && t.extent[i] > 1 && t.stride[i] == t.stride[k]) return NULL;
    int64_t inner = j < 0 ? 1 : t.extent[j] * t.stride[j];
    // The modes overlap, so the gaps are unknown.
    if (inner > t.stride[k]) return NULL;
    gaps |= inner < t.stride[k];
  }
  if (!gaps) return NULL;
  SimFootprint *p = NEW(cx, SimFootprint, 1);
  *p = t;
  return p;
}

bool footprint_has(const SimFootprint *t, int64_t element, int64_t *coord) {
  bool in = true;
  int64_t below = INT64_MAX;
  if (coord) memset(coord, 0, (size_t)t->n * sizeof *coord);
  for (int k; (k = next_mode(t, below)) >= 0; below = t->stride[k]) {
    int64_t c = element / t->stride[k];
    in &= c < t->extent[k];
    element -= c * t->stride[k];
    if (coord) coord[k] = c;
  }
  return in && element == 0;
}
// SPDX-License-Identifier: MIT
