// Fragments of tcgen05.mma in tensor memory.
#include "tensor/inside.h"

#include <inttypes.h>

enum { LANE = 1 << 16 };  // distance of adjacent lanes, as a number of columns

// Appends the rest modes of a partition to `mode`, which has n layouts. Their
// strides, in elements, start at `next`. With `halves`, the first factor of 2
// gets a stride of 16 lanes.
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

// Returns the layout (n0,n1):(d0,d1).
static Layout two(Ctx *cx, int64_t n0, int64_t n1, int64_t d0, int64_t d1) {
  Layout l[2] = {layout_leaf(cx, dim_int(cx, n0), dim_int(cx, d0)),
                 layout_leaf(cx, dim_int(cx, n1), dim_int(cx, d1))};
  return layout_concat(cx, l, 2);
}

int umma_rows(const AtomMma *r, char which) {
  bool all = atom_mma_ctas(r) == 2 || r->flags & AMF_WS;
  return all && which == 'A' ? 128 : r->m / atom_mma_ctas(r);
}

Layout umma_fragment(Ctx *cx, const MmaAtom *a, char which, Layout part) {
  const AtomMma *r = a->row;
  bool pair = atom_mma_ctas(r) == 2, sums = which == 'C';
  int bits = dtype_bits(sums ? r->d_type : r->a_type);
  // elements of A are packed in columns, each element of D has its own column
  int64_t step = sums ? 32 / bits : 1, m = r->m / atom_mma_ctas(r);
  int64_t lane = LANE * (32 / bits), cols = sums ? r->n : atom_mma_depth(r);
  Layout v = layout_rank(part) < 2 ? part : layout_mode(cx, part, 0);
  if (layout_rank(part) < 2 || layout_rank(part) > 8 ||
      count(cx, v, "make_fragment") != m * cols)
    ctx_fail(cx, ERR_SHAPE, "make_fragment_%c: %s is not a partition (V,%s) "
             "for %s, whose V is (%" PRId64 ",%" PRId64 ")", which,
             layout_text(cx, part), sums ? "M,N" : "M,K", r->name, m, cols);
  // A CTA of a pair, and an MMA with .ws, use all lanes. If there are fewer
  // rows than lanes, the other lanes contain the other columns of D and, in a
  // pair, a copy of A.
  bool windows = m == 64 && !pair && !(r->flags & AMF_WS);
  int parts = sums ? atom_umma_parts(r) : 1;
  Layout mode[8], both[2] = {
    windows ? two(cx, 16, 4, lane, 32 * lane)
      : layout_leaf(cx, dim_int(cx, umma_rows(r, which)), dim_int(cx, lane)),
    parts > 1 ? two(cx, cols / parts, parts, step, m * lane)
              : layout_leaf(cx, dim_int(cx, cols), dim_int(cx, step))};
  cols /= parts;
  mode[0] = layout_concat(cx, both, 2);
  int n = 1;
  put_rest(cx, part, cols * step, lane, sums && windows, mode, &n);
  return layout_concat(cx, mode, n);
}
// SPDX-License-Identifier: MIT
