// Fragments of tcgen05.mma in tensor memory.
#include "tensor/inside.h"

#include <inttypes.h>

enum { LANE = 1 << 16 };  // distance of two lanes in columns

// Appends the rest modes of a partition to the n layouts in `mode`, with
// strides from `next` on in elements. halves: the first factor of 2 has the
// stride of 16 lanes.
static void put_rest(Ctx *cx, Layout part, int64_t next, int64_t lane,
                     bool halves, Layout *mode, int *n) {
  for (int k = 1; k < layout_rank(part); k++) {
    int64_t size = count(cx, layout_mode(cx, part, k), "make_fragment");
    if (size > 1 && halves && size % 2 == 0) {
      Layout two[2] = {
        layout_leaf(cx, dim_int(cx, 2), dim_int(cx, 16 * lane)),
        layout_leaf(cx, dim_int(cx, size / 2),
                    dim_int(cx, size > 2 ? next : 0))};
      mode[(*n)++] = size == 2 ? two[0] : layout_concat(cx, two, 2);
      next *= size / 2;
    } else {
      mode[(*n)++] = layout_leaf(cx, dim_int(cx, size),
                                 dim_int(cx, size > 1 ? next : 0));
      next *= size;
    }
    if (size > 1) halves = false;
  }
}

Layout umma_fragment(Ctx *cx, const MmaAtom *a, char which, Layout part) {
  const AtomMma *r = a->row;
  int bits = dtype_bits(which == 'C' ? r->d_type : r->a_type);
  // Elements of A are packed in columns. Each element of D has a column.
  int64_t step = which == 'C' ? 32 / bits : 1;
  int64_t lane = LANE * (32 / bits), cols = which == 'C' ? r->n : r->k;
  Layout v = layout_rank(part) < 2 ? part : layout_mode(cx, part, 0);
  if (layout_rank(part) < 2 || layout_rank(part) > 8 ||
      count(cx, v, "make_fragment") != r->m * cols)
    ctx_fail(cx, ERR_SHAPE, "make_fragment_%c: %s is not a partition (V,%s) "
             "for %s, whose V is (%d,%" PRId64 ")", which,
             layout_text(cx, part), which == 'C' ? "M,N" : "M,K", r->name,
             r->m, cols);
  Layout mode[8], rows[2] = {
    layout_leaf(cx, dim_int(cx, 16), dim_int(cx, lane)),
    layout_leaf(cx, dim_int(cx, 4), dim_int(cx, 32 * lane))};
  Layout both[2] = {
    r->m == 64 ? layout_concat(cx, rows, 2)
               : layout_leaf(cx, dim_int(cx, r->m), dim_int(cx, lane)),
    layout_leaf(cx, dim_int(cx, cols), dim_int(cx, step))};
  mode[0] = layout_concat(cx, both, 2);
  int n = 1;
  put_rest(cx, part, cols * step, lane, r->m == 64 && which == 'C', mode, &n);
  return layout_concat(cx, mode, n);
}
// SPDX-License-Identifier: MIT
