// Swizzles, layouts and composed layouts: construction and queries.
//
// Results are in cx->scratch unless stated otherwise. Lua bindings copy layouts
// that outlive a call (layout_bytes, layout_copy).
#ifndef CUTE_LAYOUT_H
#define CUTE_LAYOUT_H

#include "layout/tuple.h"

typedef struct Swizzle { int8_t b, m, s; } Swizzle;  // the swizzle Sw<b,m,s>

// A layout shape:stride, with one stride for each leaf of the shape, in order.
// Thus shape and strides are always congruent. A composed layout applies an
// outer function, which may itself have an outer function:
//   value = outer(offset + shape:stride(c))
struct Layout {
  Tup shape;
  const Dim *stride;
  Dim offset;                 // offset of a composed layout, else 0
  // if the layout's values are coordinates: the offset as coordinates, which
  // replaces `offset`; else NULL
  Tup at;
  const struct Outer *outer;  // NULL if the layout is plain
};

// A user's function from an integer or coordinates to an offset or to other
// coordinates.
typedef struct LayoutFn {
  Tup (*call)(Ctx *cx, const struct LayoutFn *f, Tup x);
  // identity: two functions are equal if their `id` and `run` are equal
  const void *id;
  const char *name;
  int mode;  // mode of x along which `run` holds; -1: x is an integer
  // Length of the runs of adjacent values that the function maps to adjacent
  // values. Runs start at multiples of their length.
  int64_t run;
} LayoutFn;

// The outer function of a composed layout: a swizzle, a layout or a user's
// function. `l` continues the chain by its own offset and outer function. In Sw
// o 3 o A o 2 o B, the layout is B with offset 2 and outer function A. A has
// offset 3 and outer function Sw.
typedef struct Outer {
  enum { OUTER_SWIZZLE, OUTER_LAYOUT, OUTER_FN } kind;
  Swizzle sw;
  const LayoutFn *fn;
  // The layout of an OUTER_LAYOUT, else 1:0. The offset and the outer function
  // of `l` are the next ones of the chain.
  Layout l;
} Outer;

// Returns the layout in l's outer function, which continues the chain. Returns
// NULL if l has no outer function.
static inline const Layout *layout_next(const Layout *l) {
  return l->outer ? &l->outer->l : NULL;
}
// Returns l's outer function if it is a swizzle and the only outer function,
// else NULL.
static inline const Swizzle *layout_swizzle(Layout l) {
  const Outer *f = l.outer;
  return f && f->kind == OUTER_SWIZZLE && !f->l.outer ? &f->sw : NULL;
}

// Functions have CuTe's names with the prefix layout_. A parameter `by` is a
// profile: the function applies to the sub-layouts at the leaves of the
// profile. layout_make fails unless shape and stride are congruent.
Layout layout_make(Ctx *cx, Tup shape, Tup stride);
Layout layout_leaf(Ctx *cx, Dim shape, Dim stride);   // returns s:d
Layout layout_unit(Ctx *cx);                          // returns 1:0
Layout layout_compact(Ctx *cx, Tup shape);  // strides as in LayoutLeft
Layout layout_compact_right(Ctx *cx, Tup shape);  // strides as in LayoutRight
// make_ordered_layout; if `order` is NULL, the order is LayoutLeft
Layout layout_ordered(Ctx *cx, Tup shape, Tup order);
Layout layout_like(Ctx *cx, Layout l);                // make_layout_like
Layout layout_fragment_like(Ctx *cx, Layout l);       // make_fragment_like
Layout layout_identity(Ctx *cx, Tup shape);
// Returns a layout that broadcasts the elements of shape `from` to `shape`: it
// maps a coordinate of `shape` to a colexicographic index in `from`.
Layout layout_broadcast(Ctx *cx, Tup from, Tup shape);
Layout layout_concat(Ctx *cx, const Layout *l, int n);  // plain layouts only
Tup layout_stride(Ctx *cx, Layout l);                 // returns the strides as
                                                      // an IntTuple
Layout layout_inner(Layout l);  // returns l without its outer functions
// returns plain l with the outer functions of `like`
Layout layout_outer(Layout l, Layout like);
bool layout_static(Layout l);  // whether all numbers of l are static
bool layout_has_basis(Layout l);
// whether a and b have the same structure and numbers
bool layout_eq(Layout a, Layout b);
// whether the static layouts a and b are the same function
bool layout_equals(Ctx *cx, Layout a, Layout b);

Layout layout_mode(Ctx *cx, Layout l, int i);         // get(l, i)
int layout_rank(Layout l);
Dim layout_size(Ctx *cx, Layout l);
Tup layout_coshape(Ctx *cx, Layout l);
Dim layout_cosize(Ctx *cx, Layout l);
// Returns 1 plus the largest value of l: the number of elements of memory that
// l needs from its origin on.
Dim layout_reach(Ctx *cx, Layout l);
// Returns minus the smallest value of l, or 0 if no stride is negative: the
// number of elements that l needs before its origin.
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
// if `by` is NULL, coalesces without a profile
Layout layout_coalesce_by(Ctx *cx, Layout l, Tup by);
// if `guide` is NULL, uses l's strides
Layout layout_filter_zeros(Ctx *cx, Layout l, Tup guide);
Layout layout_filter(Ctx *cx, Layout l);
Layout layout_filter_by(Ctx *cx, Layout l, Tup by);

// Returns the value at a coordinate (linear, flat or hierarchical). Fails if
// the strides are bases. For such layouts, layout_eval_tup returns the
// coordinates.
Dim layout_eval(Ctx *cx, Layout l, Tup coord);
Dim layout_eval_at(Ctx *cx, Layout l, Dim i);          // i: a linear index
Tup layout_eval_tup(Ctx *cx, Layout l, Tup coord);
// Slices by a coordinate that may contain `_`. Returns the modes with `_`, and
// in *offset the offset of the other coordinates. In a composed layout, this
// offset becomes part of the result, and *offset receives only the part that a
// swizzle does not affect.
Layout layout_slice(Ctx *cx, Layout l, Tup coord, Dim *offset);
Layout layout_slice_tup(Ctx *cx, Layout l, Tup coord, Tup *offset);
Layout layout_dice(Ctx *cx, Layout l, Tup coord);
Layout layout_domain_offset(Ctx *cx, Layout l, Tup coord, Tup *offset);
// get_hier_coord and variants: return the coordinate whose offset is x, for
// layouts with compact strides in some order.
Tup layout_hier_coord(Ctx *cx, Layout l, Tup x);
Tup layout_flat_coord(Ctx *cx, Layout l, Tup x);
Dim layout_1d_coord(Ctx *cx, Layout l, Tup x);

// ---- in CuTe notation (notation.c) ----
void layout_print(Ctx *cx, Layout l, Buf *out);
const char *layout_text(Ctx *cx, Layout l);           // in cx->scratch

// layout_bytes returns the size of a layout that is stored as one block
// (header, shape, strides). layout_copy copies a layout to such a block at
// `mem` (8-aligned), and returns it.
size_t layout_bytes(Layout l);
Layout layout_copy(void *mem, Layout l);

#endif
// SPDX-License-Identifier: MIT
