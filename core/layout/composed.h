// Composed layouts: layouts to whose values a swizzle, a layout or a user's
// function applies.
#ifndef CUTE_COMPOSED_H
#define CUTE_COMPOSED_H

#include "layout/layout.h"

// ---- swizzles (swizzle.c) ----
#define SWIZZLE_NONE ((Swizzle){0, 4, 3})
Swizzle swizzle_make(Ctx *cx, int64_t b, int64_t m, int64_t s);
Swizzle swizzle_from_masks(Ctx *cx, int64_t yyy, int64_t zzz);
bool swizzle_test_masks(int64_t yyy, int64_t zzz, Swizzle *sw);
int64_t swizzle_yyy(Swizzle sw);  // returns the mask of the bits that sw reads
// returns the mask of the bits that sw changes
int64_t swizzle_zzz(Swizzle sw);
int64_t swizzle_bits(Swizzle sw, int64_t x);  // returns sw(x)
// Returns sw(x) for a static or traced x. Known bits of x simplify the result.
Dim swizzle_apply(Ctx *cx, Swizzle sw, Dim x);
Swizzle swizzle_compose(Ctx *cx, Swizzle a, Swizzle b);
Swizzle swizzle_upcast(Ctx *cx, Swizzle sw, int64_t n);
Swizzle swizzle_downcast(Ctx *cx, Swizzle sw, int64_t n);
// Completes a slice of layout l, whose only outer function is a swizzle. `rest`
// contains the remaining modes. x is the offset, before the swizzle, that the
// coordinates of the removed modes add. Stores in *offset the offset to add
// after the swizzle.
Layout layout_slice_swizzled(Ctx *cx, Layout l, Layout rest, Dim x,
                             Tup *offset);
Layout layout_product_swizzled(Ctx *cx, Layout l, Layout tiler);

// ---- composed layouts (composed.c) ----
// layout_swizzled returns Sw o offset o l, or l for the identity swizzle and
// offset 0. layout_after_swizzle keeps the identity swizzle.
Layout layout_swizzled(Ctx *cx, Swizzle sw, Dim offset, Layout l);
Layout layout_after_swizzle(Ctx *cx, Swizzle sw, Dim offset, Layout l);
// Returns a o offset o l.
Layout layout_composed(Ctx *cx, Layout a, Dim offset, Layout l);
// Returns f o offset o l. If f is a layout, f.l is that layout. The offset is
// an integer, or coordinates if l's values are coordinates.
Layout layout_led(Ctx *cx, Outer f, Tup offset, Layout l);
Layout layout_with_offset(Layout l, Tup offset);
// whether an outer function of l is a Lua function
bool layout_has_fn(Layout l);
// Returns a layout with l's values at all linear indices. Its innermost layout
// has integer values, even if that of l has coordinates.
Layout layout_indexed(Ctx *cx, Layout l);
// Returns l followed by the outer function and the offset of `like`.
Layout layout_seen_through(Ctx *cx, Layout l, Layout like);
Tup layout_shifted(Ctx *cx, Layout l, Tup x);  // returns x plus l's offset
// Return the value of l where its innermost layout, shape:stride, has the value
// x: apply l's offset and outer functions to x.
Tup layout_through(Ctx *cx, Layout l, Tup x);
Dim layout_through_dim(Ctx *cx, Layout l, Dim x);
Layout layout_slice_composed(Ctx *cx, Layout l, Tup coord, Tup *offset);
// Returns the function that is applied last to l's values. Sets *rest to l
// without this function and without the offset before it.
const Outer *layout_last(Ctx *cx, Layout l, Layout *rest);
// Returns the length of the aligned runs of consecutive values that l's outer
// functions keep consecutive. The length is a power of two, and 2^24 for a
// plain layout. Uses the known divisors of traced numbers.
int64_t layout_grain(Ctx *cx, Layout l);
// Finds the least and the largest value of a static layout by evaluating every
// element (ERR_LIMIT beyond 2^20).
void layout_range(Ctx *cx, Layout l, int64_t *lo, int64_t *hi);
// Returns the length of the runs of coordinates along one mode of l whose
// elements are adjacent in memory. A run starts at a multiple of its length,
// both as a coordinate and in memory. The length holds for all coordinates in
// other modes, and divides the extent of the mode.
int64_t layout_run_along(Ctx *cx, Layout l, int mode);
// Returns a bound on the magnitude of a static layout's values.
int64_t layout_bound(Ctx *cx, Layout l);

#endif
// SPDX-License-Identifier: MIT
