// Swizzle, Layout, composed layouts: what they are, and looking at them.
//
// All results live in cx->scratch unless said otherwise; a face copies what
// it keeps (layout_bytes, layout_copy).
#ifndef CUTE_LAYOUT_H
#define CUTE_LAYOUT_H

#include "layout/tuple.h"

typedef struct Swizzle { int8_t b, m, s; } Swizzle;  // Sw<b,m,s>

// shape:stride, the strides being one Dim per leaf of the shape, in order
// (congruence holds by construction). The values of a composed layout go on
// through a function, which may lead to a further one:
// value = outer(offset + shape:stride(c)).
struct Layout {
  Tup shape;
  const Dim *stride;
  Dim offset;                 // composed only, else 0
  Tup at;                     // where its values are coordinates: what is
                              // added to them; else NULL
  const struct Outer *outer;  // NULL: a plain layout
};

// A function of the user's: from an integer, or coordinates, to an offset (or
// further coordinates).
typedef struct LayoutFn {
  Tup (*call)(Ctx *cx, const struct LayoutFn *f, Tup x);
  const void *id;             // two of one id and run are the same
  const char *name;
  int mode;                   // of x, -1: x is an integer. Along it
  int64_t run;                // this many neighbours, from a multiple of it
                              // on, are neighbours, too, from a multiple on
} LayoutFn;

// The left side of a composed layout: a swizzle, a layout or a function. The
// offset and the outer function of `l` say where the values go on:
// Sw o 3 o A o 2 o B is the layout B, offset 2, whose outer is A, offset 3,
// whose outer is Sw.
typedef struct Outer {
  enum { OUTER_SWIZZLE, OUTER_LAYOUT, OUTER_FN } kind;
  Swizzle sw;
  const LayoutFn *fn;
  Layout l;                   // 1:0 but for OUTER_LAYOUT
} Outer;

// The layouts that values go through, from the inside out: l itself first.
static inline const Layout *layout_next(const Layout *l) {
  return l->outer ? &l->outer->l : NULL;
}
// The swizzle of a layout that goes through one swizzle alone, else NULL.
static inline const Swizzle *layout_swizzle(Layout l) {
  const Outer *f = l.outer;
  return f && f->kind == OUTER_SWIZZLE && !f->l.outer ? &f->sw : NULL;
}

// Functions have CuTe's names with the prefix layout_. Those that take a
// profile (`by`) work on the sub-layouts at its terminals.
Layout layout_make(Ctx *cx, Tup shape, Tup stride);   // congruent or fails
Layout layout_leaf(Ctx *cx, Dim shape, Dim stride);   // s:d
Layout layout_unit(Ctx *cx);                          // 1:0
Layout layout_compact(Ctx *cx, Tup shape);            // LayoutLeft
Layout layout_compact_right(Ctx *cx, Tup shape);      // LayoutRight
Layout layout_ordered(Ctx *cx, Tup shape, Tup order); // make_ordered_layout;
                                           // order NULL: LayoutLeft
Layout layout_like(Ctx *cx, Layout l);                // make_layout_like
Layout layout_fragment_like(Ctx *cx, Layout l);       // make_fragment_like
Layout layout_identity(Ctx *cx, Tup shape);
// From coordinates of `shape`, which `from` broadcasts to, to the elements of
// `from` in colexicographic order.
Layout layout_broadcast(Ctx *cx, Tup from, Tup shape);
Layout layout_concat(Ctx *cx, const Layout *l, int n);  // plain ones
Tup layout_stride(Ctx *cx, Layout l);                 // as an IntTuple
Layout layout_inner(Layout l);                        // the plain right side
Layout layout_outer(Layout l, Layout like);  // plain l under like's outer
bool layout_static(Layout l);                         // nothing traced
bool layout_has_basis(Layout l);
bool layout_eq(Layout a, Layout b);                   // structurally
bool layout_equals(Ctx *cx, Layout a, Layout b);      // as functions, static

Layout layout_mode(Ctx *cx, Layout l, int i);         // get
int layout_rank(Layout l);
Dim layout_size(Ctx *cx, Layout l);
Tup layout_coshape(Ctx *cx, Layout l);
Dim layout_cosize(Ctx *cx, Layout l);
// Elements that memory for l must have from its origin on, where values are
// at least 0.
Dim layout_reach(Ctx *cx, Layout l);
// How far the values of negative strides go below 0; 0 without any.
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

// Offset of a coordinate (1-D, flat or hierarchical).
// Fails for basis strides: layout_eval_tup gives their coordinate tuple.
Dim layout_eval(Ctx *cx, Layout l, Tup coord);
Dim layout_eval_at(Ctx *cx, Layout l, Dim i);          // 1-D coordinate
Tup layout_eval_tup(Ctx *cx, Layout l, Tup coord);
// Slice by a coordinate that may hold `_`: the part that stays, and the
// offset of the part that went. Of a composed layout that goes into the
// result's own offset, but for what may leave a swizzle.
Layout layout_slice(Ctx *cx, Layout l, Tup coord, Dim *offset);
Layout layout_slice_tup(Ctx *cx, Layout l, Tup coord, Tup *offset);
Layout layout_dice(Ctx *cx, Layout l, Tup coord);
Layout layout_domain_offset(Ctx *cx, Layout l, Tup coord, Tup *offset);
// get_hier_coord and its kin: the coordinate whose offset is x, for layouts
// whose strides are compact in some order.
Tup layout_hier_coord(Ctx *cx, Layout l, Tup x);
Tup layout_flat_coord(Ctx *cx, Layout l, Tup x);
Dim layout_1d_coord(Ctx *cx, Layout l, Tup x);

// ---- in CuTe notation (notation.c) ----
void layout_print(Ctx *cx, Layout l, Buf *out);
const char *layout_text(Ctx *cx, Layout l);           // in scratch

// ---- storage ----
// Words of a layout as one block (header, shape words, strides): size, and
// copy into `mem` (8-aligned), returning the layout that lives there.
size_t layout_bytes(Layout l);
Layout layout_copy(void *mem, Layout l);

#endif
