// Layouts whose values go on through a function: a swizzle, or a layout.
#ifndef CUTE_COMPOSED_H
#define CUTE_COMPOSED_H

#include "layout/layout.h"

// ---- swizzles (swizzle.c) ----
#define SWIZZLE_NONE ((Swizzle){0, 4, 3})
Swizzle swizzle_make(Ctx *cx, int64_t b, int64_t m, int64_t s);
Swizzle swizzle_from_masks(Ctx *cx, int64_t yyy, int64_t zzz);
bool swizzle_test_masks(int64_t yyy, int64_t zzz, Swizzle *sw);
int64_t swizzle_yyy(Swizzle sw);           // bits read
int64_t swizzle_zzz(Swizzle sw);           // bits changed
int64_t swizzle_bits(Swizzle sw, int64_t x);  // sw(x)
// sw(x) for a static or traced x, folding what is known of x's bits.
Dim swizzle_apply(Ctx *cx, Swizzle sw, Dim x);
Swizzle swizzle_compose(Ctx *cx, Swizzle a, Swizzle b);
Swizzle swizzle_upcast(Ctx *cx, Swizzle sw, int64_t n);
Swizzle swizzle_downcast(Ctx *cx, Swizzle sw, int64_t n);
// For layouts that go through one swizzle:
// What layout_slice_composed leaves of l: rest, at x of l's right side.
Layout layout_slice_swizzled(Ctx *cx, Layout l, Layout rest, Dim x,
                             Tup *offset);
Layout layout_product_swizzled(Ctx *cx, Layout l, Layout tiler);

// ---- composed layouts (composed.c) ----
// f o offset o l; the identity swizzle with offset 0 gives l.
Layout layout_swizzled(Ctx *cx, Swizzle sw, Dim offset, Layout l);
Layout layout_after_swizzle(Ctx *cx, Swizzle sw, Dim offset, Layout l);
                                           // the same, whatever sw
Layout layout_composed(Ctx *cx, Layout a, Dim offset, Layout l);
// f (of a layout: its l) o offset o l; the offset an integer, or coordinates
// where these are what l gives.
Layout layout_led(Ctx *cx, Outer f, Tup offset, Layout l);
Layout layout_with_offset(Layout l, Tup offset);
bool layout_has_fn(Layout l);  // does it go through a function?
// The same function of 1-D coordinates: its right side gives integers, where
// it gave coordinates that go on through a function.
Layout layout_indexed(Ctx *cx, Layout l);
// l seen through what like goes through: its outer function and offset.
Layout layout_seen_through(Ctx *cx, Layout l, Layout like);
Tup layout_shifted(Ctx *cx, Layout l, Tup x);  // x from l's offset on
// What becomes of x, a value of l's right side.
Tup layout_through(Ctx *cx, Layout l, Tup x);
Dim layout_through_dim(Ctx *cx, Layout l, Dim x);
Layout layout_slice_composed(Ctx *cx, Layout l, Tup coord, Tup *offset);
// The function that values go through last: *rest is l without it (and
// without the offset before it).
const Outer *layout_last(Ctx *cx, Layout l, Layout *rest);
// A power of two: runs of so many values, aligned to it, stay runs (2^24 of a
// plain layout). Traced numbers count by what is known of their divisors.
int64_t layout_grain(Ctx *cx, Layout l);
// The least and the largest value of a static layout, by looking at all of
// them (ERR_LIMIT beyond 2^20).
void layout_range(Ctx *cx, Layout l, int64_t *lo, int64_t *hi);
// Runs of so many neighbours along mode i of l, from a multiple on, are
// neighbours in memory, from a multiple on, whatever the other modes are, and
// end where the mode ends.
int64_t layout_run_along(Ctx *cx, Layout l, int mode);
// No value of a static layout is beyond this in magnitude.
int64_t layout_bound(Ctx *cx, Layout l);

#endif
