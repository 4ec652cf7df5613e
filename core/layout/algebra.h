// The layout algebra: composition, complement, inverses, divides, products.
#ifndef CUTE_ALGEBRA_H
#define CUTE_ALGEBRA_H

#include "layout/layout.h"

// The right operand of a composition, divide or product: `_`, a layout (an
// integer n is n:1), or a tuple of tilers, which apply mode by mode.
typedef struct Tiler {
  enum { TILER_ANY, TILER_LAYOUT, TILER_TUPLE } kind;
  int n;
  const struct Tiler *mode;  // TILER_TUPLE: one tiler for each of the n modes
  Layout l;                  // TILER_LAYOUT: the layout
  bool extent;  // whether the tiler is an integer n, stored as the layout n:1
} Tiler;
Tiler tiler_layout(Layout l);
Tiler tiler_tup(Ctx *cx, Tup t);  // returns a tiler from a tuple of extents
void tiler_print(Ctx *cx, Tiler t, Buf *out);
const char *tiler_text(Ctx *cx, Tiler t);

Layout layout_compose(Ctx *cx, Layout a, Layout b);
Layout layout_compose_tiler(Ctx *cx, Layout a, Tiler b);
// returns a o b, the composition of a layout and a swizzle
Layout layout_compose_swizzle(Ctx *cx, Layout a, Swizzle b);
Layout layout_with_shape(Ctx *cx, Layout l, Tup shape);
// if `cotarget` is NULL, uses the cosize of l
Layout layout_complement(Ctx *cx, Layout l, Tup cotarget);
Layout layout_right_inverse(Ctx *cx, Layout l);
Layout layout_left_inverse(Ctx *cx, Layout l);
Layout layout_nullspace(Ctx *cx, Layout l);
Layout layout_max_common_layout(Ctx *cx, Layout a, Layout b);
int64_t layout_max_common_vector(Ctx *cx, Layout a, Layout b);
int64_t layout_max_alignment(Ctx *cx, Layout l);
Layout layout_domain_distribute(Ctx *cx, Tup shape, int64_t n);
Layout layout_logical_divide(Ctx *cx, Layout l, Tiler t);
// Reports whether a division of `shape` by t covers the shape exactly, so that
// no extent is rounded up.
bool layout_evenly_divides(Ctx *cx, Tup shape, Tiler t);
Layout layout_zipped_divide(Ctx *cx, Layout l, Tiler t);
Layout layout_tiled_divide(Ctx *cx, Layout l, Tiler t);
Layout layout_flat_divide(Ctx *cx, Layout l, Tiler t);
Layout layout_logical_product(Ctx *cx, Layout l, Tiler t);
Layout layout_zipped_product(Ctx *cx, Layout l, Tiler t);
Layout layout_tiled_product(Ctx *cx, Layout l, Tiler t);
Layout layout_flat_product(Ctx *cx, Layout l, Tiler t);
Layout layout_blocked_product(Ctx *cx, Layout l, Layout t);
Layout layout_raked_product(Ctx *cx, Layout l, Layout t);
Layout layout_tile_unzip(Ctx *cx, Layout l, Tiler t);
// if `order` is NULL, the order is that of LayoutLeft
Layout layout_tile_to_shape(Ctx *cx, Layout block, Tup shape, Tup order);
Tup layout_ceil_div(Ctx *cx, Tup shape, Tiler t);
Layout layout_upcast(Ctx *cx, Layout l, int64_t n);
Layout layout_downcast(Ctx *cx, Layout l, int64_t n);
Layout layout_recast(Ctx *cx, Layout l, int64_t old_bits, int64_t new_bits);
// make_layout_tv(thr, val): returns the layout (thread,value) -> coordinate in
// the tile, and sets *tiler to the tile's shape.
Layout layout_tv(Ctx *cx, Layout thr, Layout val, Tup *tiler);

// ---- layouts whose extents are known only at launch (traced.c) ----
typedef enum TracedRule {
  TRACED_NONE, TRACED_COMPOSE, TRACED_DIVIDE, TRACED_PRODUCT,
  TRACED_COMPLEMENT,          // r is the complement of a in b's shape
  TRACED_UPCAST  // r is a upcast by the number of b's elements
} TracedRule;
// Decodes an assertion, which is stored as words (Claim in ir/fn.h), into the
// layouts a, b and r of traced_differs. The caller must have replaced traced
// values by numbers.
void traced_read(const Dim *word, Layout l[3]);
// Returns `word`, a word of an assertion, with v in place of its traced value.
Dim traced_word(Ctx *cx, Dim word, int64_t v);
// Compares r with the layout that the rule's operation computes from a and b.
// All three layouts must be static. Compares up to 2^20 elements of each mode.
// Returns a description of the first difference, or NULL. Fails if the
// operation rejects a and b.
const char *traced_differs(Ctx *cx, TracedRule rule, Layout a, Layout b,
                           Layout r);

// ---- XORed strides (xor.c) ----
// whether l, without its outer functions, has XORed strides
bool layout_has_xor(Layout l);
// Returns an equal layout whose strides are integers. XORed strides of l move
// to an outer function of the result.
Layout layout_linear(Ctx *cx, Layout l);

// ---- domains and codomains (domain.c) ----
// returns a tuple of zeros in the profile of l's values
Tup layout_coprofile(Ctx *cx, Layout l);
// Returns a layout with one mode for each factor that an extent of a has in
// common with an extent of b. The mode's extent is the factor. Its stride is
// the distance between adjacent coordinates of the mode in the linear index.
// Returns (1):(0) if there are no common factors.
Layout layout_greatest_common_domain(Ctx *cx, Tup a, Tup b);
// returns the layout i -> a(i) + b(i)
Layout layout_add(Ctx *cx, Layout a, Layout b);

// ---- the steps of the algebra as text (notation.c) ----

// Functions for cute.explain: explain_on returns the buffer for the text of the
// steps, or NULL. Callers test this buffer first, so that no text is formatted
// without cute.explain.
static inline Buf *explain_on(const Ctx *cx) {
  return cx->work ? cx->work->steps : NULL;
}
static inline void explain_to(Ctx *cx, Buf *b) { cx->work->steps = b; }
void explain_say(Ctx *cx, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
// SPDX-License-Identifier: MIT
