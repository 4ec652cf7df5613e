// Swizzles, layouts and composed layouts: construction and queries.
//
// Results are in cx->scratch unless stated otherwise. A binding copies what it
// keeps (layout_bytes, layout_copy).
#ifndef CUTE_LAYOUT_H
#define CUTE_LAYOUT_H

#include "layout/tuple.h"

typedef struct Swizzle { int8_t b, m, s; } Swizzle;  // Sw<b,m,s>

// A layout shape:stride, with one stride Dim per leaf of the shape, in order
// (so both are congruent by construction). The values of a composed layout pass
// through an outer function, which may have a further one:
//   value = outer(offset + shape:stride(c))
struct Layout {
  Tup shape;
  const Dim *stride;
  Dim offset;                 // composed layouts only, else 0
  Tup at;                     // coordinates that are added if the values are
                              // coordinates, else NULL
  const struct Outer *outer;  // NULL: a plain layout
};

// A user's function from an integer, or coordinates, to an offset (or further
// coordinates).
typedef struct LayoutFn {
  Tup (*call)(Ctx *cx, const struct LayoutFn *f, Tup x);
  const void *id;             // functions with equal id and run are the same
  const char *name;
  int mode;                   // mode of x, -1: x is an integer
  int64_t run;                // this many adjacent values along it, from a
                              // multiple of run, are adjacent in the image
} LayoutFn;

// The left side of a composed layout: a swizzle, a layout or a function. The
// offset and the outer function of `l` continue the chain:
// Sw o 3 o A o 2 o B is the layout B, offset 2, whose outer is A, offset 3,
// whose outer is Sw.
typedef struct Outer {
  enum { OUTER_SWIZZLE, OUTER_LAYOUT, OUTER_FN } kind;
  Swizzle sw;
  const LayoutFn *fn;
  Layout l;                   // 1:0 except for OUTER_LAYOUT
} Outer;

// Returns the next layout in the chain that values pass through, from the
// inside out.
static inline const Layout *layout_next(const Layout *l) {
  return l->outer ? &l->outer->l : NULL;
}
// Returns the swizzle of a layout whose only outer function is one, else NULL.
static inline const Swizzle *layout_swizzle(Layout l) {
  const Outer *f = l.outer;
  return f && f->kind == OUTER_SWIZZLE && !f->l.outer ? &f->sw : NULL;
}

// Functions have CuTe's names with the prefix layout_. Those with a profile
// (`by`) apply to the sub-layouts at its terminals.
Layout layout_make(Ctx *cx, Tup shape, Tup stride);   // fails unless shape and
                                                      // stride are congruent
Layout layout_leaf(Ctx *cx, Dim shape, Dim stride);   // s:d
Layout layout_unit(Ctx *cx);                          // 1:0
Layout layout_compact(Ctx *cx, Tup shape);            // LayoutLeft
Layout layout_compact_right(Ctx *cx, Tup shape);      // LayoutRight
Layout layout_ordered(Ctx *cx, Tup shape, Tup order); // make_ordered_layout;
                                           // order NULL: LayoutLeft
Layout layout_like(Ctx *cx, Layout l);                // make_layout_like
Layout layout_fragment_like(Ctx *cx, Layout l);       // make_fragment_like
Layout layout_identity(Ctx *cx, Tup shape);
// Broadcasts `from` to `shape`: returns a layout that maps coordinates of shape
// to the elements of `from` in colexicographic order.
Layout layout_broadcast(Ctx *cx, Tup from, Tup shape);
Layout layout_concat(Ctx *cx, const Layout *l, int n);  // plain layouts only
Tup layout_stride(Ctx *cx, Layout l);                 // returns the strides as
                                                      // an IntTuple
Layout layout_inner(Layout l);                        // the plain right side
Layout layout_outer(Layout l, Layout like);  // plain l under like's outer
                                             // functions
bool layout_static(Layout l);                         // nothing is traced
bool layout_has_basis(Layout l);
bool layout_eq(Layout a, Layout b);                   // structural equality
bool layout_equals(Ctx *cx, Layout a, Layout b);      // equality as functions,
                                                      // for static layouts

Layout layout_mode(Ctx *cx, Layout l, int i);         // get
int layout_rank(Layout l);
Dim layout_size(Ctx *cx, Layout l);
Tup layout_coshape(Ctx *cx, Layout l);
Dim layout_cosize(Ctx *cx, Layout l);
// Returns the number of elements that memory for l needs from its origin,
// counting values of 0 or more.
Dim layout_reach(Ctx *cx, Layout l);
// Returns how far the values of negative strides extend below 0, or 0.
Dim layout_below(Ctx *cx, Layout l);
Layout layout_take(Ctx *cx, Layout l, int b, int e);
Layout layout_select(Ctx *cx, Layout l, const int *i, int n);
Layout layout_group(Ctx *cx, Layout l, int b, int e);
Layout layout_append(Ctx *cx, Layout l, Layout x);
Layout layout_prepend(Ctx *cx, Layout l, Layout x);
Layout layout_append_to(Ctx *cx, Layout l, int rank, Layout x);
Layout layout_prepend_to(Ctx *cx, Layout l, int rank, Layout x);
Layout layout_replace(Ctx *cx, Layout l, int i, Layout x);
Layout layout_flatten(Ctx *cx, Layout l);
Layout layout_unflatten(Ctx *cx, Layout l, Tup profile);
Layout layout_zip(Ctx *cx, Layout l);
Layout layout_zip_of(Ctx *cx, const Layout *l, int n);
Layout layout_coalesce(Ctx *cx, Layout l);
Layout layout_coalesce_by(Ctx *cx, Layout l, Tup by);  // by NULL: plain
Layout layout_filter_zeros(Ctx *cx, Layout l, Tup guide);  // NULL: strides
Layout layout_filter(Ctx *cx, Layout l);
Layout layout_filter_by(Ctx *cx, Layout l, Tup by);

// Returns the offset of a coordinate (1-D, flat or hierarchical). Fails for
// basis strides, whose coordinates layout_eval_tup returns.
Dim layout_eval(Ctx *cx, Layout l, Tup coord);
Dim layout_eval_at(Ctx *cx, Layout l, Dim i);          // 1-D coordinate
Tup layout_eval_tup(Ctx *cx, Layout l, Tup coord);
// Slices by a coordinate that may contain `_`. Returns the remaining part and
// the offset of the removed one. For a composed layout the offset moves into
// the result's own offset, except for a part that can be moved out of a
// swizzle.
Layout layout_slice(Ctx *cx, Layout l, Tup coord, Dim *offset);
Layout layout_slice_tup(Ctx *cx, Layout l, Tup coord, Tup *offset);
Layout layout_dice(Ctx *cx, Layout l, Tup coord);
Layout layout_domain_offset(Ctx *cx, Layout l, Tup coord, Tup *offset);
// get_hier_coord and variants: return the coordinate with offset x, for layouts
// with compact strides in some order.
Tup layout_hier_coord(Ctx *cx, Layout l, Tup x);
Tup layout_flat_coord(Ctx *cx, Layout l, Tup x);
Dim layout_1d_coord(Ctx *cx, Layout l, Tup x);

// ---- in CuTe notation (notation.c) ----
void layout_print(Ctx *cx, Layout l, Buf *out);
const char *layout_text(Ctx *cx, Layout l);           // in scratch

// layout_bytes returns the size of a layout as one block (header, shape,
// strides). layout_copy copies the block to `mem` (8-aligned), and returns the
// layout there.
size_t layout_bytes(Layout l);
Layout layout_copy(void *mem, Layout l);

#endif
// SPDX-License-Identifier: MIT
