// Layouts whose values pass through further functions: swizzles, layouts, or
// functions of the user.
#ifndef CUTE_COMPOSED_H
#define CUTE_COMPOSED_H

#include "layout/layout.h"

// ---- swizzles (swizzle.c) ----
#define SWIZZLE_NONE ((Swizzle){0, 4, 3})
Swizzle swizzle_make(Ctx *cx, int64_t b, int64_t m, int64_t s);
Swizzle swizzle_from_masks(Ctx *cx, int64_t yyy, int64_t zzz);
bool swizzle_test_masks(int64_t yyy, int64_t zzz, Swizzle *sw);
int64_t swizzle_yyy(Swizzle sw);           // mask of the bits that are read
int64_t swizzle_zzz(Swizzle sw);           // mask of the bits that are changed
int64_t swizzle_bits(Swizzle sw, int64_t x);  // sw(x)
// Returns sw(x) for a static or traced x, folded by what is known of x's bits.
Dim swizzle_apply(Ctx *cx, Swizzle sw, Dim x);
Swizzle swizzle_compose(Ctx *cx, Swizzle a, Swizzle b);
Swizzle swizzle_upcast(Ctx *cx, Swizzle sw, int64_t n);
Swizzle swizzle_downcast(Ctx *cx, Swizzle sw, int64_t n);
// For layouts that pass through one swizzle: slices l. rest: the remaining
// modes; x: the value of the removed part.
Layout layout_slice_swizzled(Ctx *cx, Layout l, Layout rest, Dim x,
                             Tup *offset);
Layout layout_product_swizzled(Ctx *cx, Layout l, Layout tiler);

// ---- composed layouts (composed.c) ----
// Returns f o offset o l; the identity swizzle with offset 0 returns l.
Layout layout_swizzled(Ctx *cx, Swizzle sw, Dim offset, Layout l);
Layout layout_after_swizzle(Ctx *cx, Swizzle sw, Dim offset, Layout l);
                                           // does not drop the identity
Layout layout_composed(Ctx *cx, Layout a, Dim offset, Layout l);
// Returns f (for a layout: its l) o offset o l. The offset is an integer, or
// coordinates if l's values are coordinates.
Layout layout_led(Ctx *cx, Outer f, Tup offset, Layout l);
Layout layout_with_offset(Layout l, Tup offset);
bool layout_has_fn(Layout l);  // reports whether values pass through a function
// Returns the same function of 1-D coordinates, as a layout whose right side
// yields integers instead of coordinates for an outer function.
Layout layout_indexed(Ctx *cx, Layout l);
// Returns l composed with like's outer function and offset.
Layout layout_seen_through(Ctx *cx, Layout l, Layout like);
Tup layout_shifted(Ctx *cx, Layout l, Tup x);  // adds l's offset to x
// Return the value of l for x, a value of its right side.
Tup layout_through(Ctx *cx, Layout l, Tup x);
Dim layout_through_dim(Ctx *cx, Layout l, Dim x);
Layout layout_slice_composed(Ctx *cx, Layout l, Tup coord, Tup *offset);
// Returns the last function that values pass through. *rest becomes l without
// it (and without the offset before it).
const Outer *layout_last(Ctx *cx, Layout l, Layout *rest);
// Returns a power of two such that runs of that many values, aligned to it,
// remain runs (2^24 for a plain layout). Traced numbers count with their known
// divisors.
int64_t layout_grain(Ctx *cx, Layout l);
// Finds the least and the largest value of a static layout by evaluating every
// element (ERR_LIMIT beyond 2^20).
void layout_range(Ctx *cx, Layout l, int64_t *lo, int64_t *hi);
// Returns the run length along mode i of l. Runs of that many adjacent
// elements, starting at a multiple of it, are adjacent in memory at a multiple
// of it, whatever the other modes are, and end where the mode ends.
int64_t layout_run_along(Ctx *cx, Layout l, int mode);
// Returns a bound on the magnitude of a static layout's values.
int64_t layout_bound(Ctx *cx, Layout l);

#endif
// SPDX-License-Identifier: MIT
