// The layout algebra: composition, complement, inverses, divides, products.
#ifndef CUTE_ALGEBRA_H
#define CUTE_ALGEBRA_H

#include "layout/layout.h"

// The right operand of a composition, divide or product: `_`, a layout (an
// integer n is n:1), or a tuple of them, applied mode by mode.
typedef struct Tiler {
  enum { TILER_ANY, TILER_LAYOUT, TILER_TUPLE } kind;
  int n;
  const struct Tiler *mode;  // TILER_TUPLE: n of them
  Layout l;                  // TILER_LAYOUT
  bool extent;               // l is n:1, from the integer n
} Tiler;
Tiler tiler_layout(Layout l);
Tiler tiler_tup(Ctx *cx, Tup t);           // by-mode shape tiler
void tiler_print(Ctx *cx, Tiler t, Buf *out);
const char *tiler_text(Ctx *cx, Tiler t);

Layout layout_compose(Ctx *cx, Layout a, Layout b);
Layout layout_compose_tiler(Ctx *cx, Layout a, Tiler b);
Layout layout_compose_swizzle(Ctx *cx, Layout a, Swizzle b);  // a o Sw
Layout layout_with_shape(Ctx *cx, Layout l, Tup shape);
Layout layout_complement(Ctx *cx, Layout l, Tup cotarget);  // NULL: the cosize
                                                            // of l
Layout layout_right_inverse(Ctx *cx, Layout l);
Layout layout_left_inverse(Ctx *cx, Layout l);
Layout layout_nullspace(Ctx *cx, Layout l);
Layout layout_max_common_layout(Ctx *cx, Layout a, Layout b);
int64_t layout_max_common_vector(Ctx *cx, Layout a, Layout b);
int64_t layout_max_alignment(Ctx *cx, Layout l);
Layout layout_domain_distribute(Ctx *cx, Tup shape, int64_t n);
Layout layout_logical_divide(Ctx *cx, Layout l, Tiler t);
// Reports whether the tiles and the rest of a divide of `shape` by t cover the
// shape exactly.
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
Layout layout_tile_to_shape(Ctx *cx, Layout block, Tup shape, Tup order);
                                           // order NULL: LayoutLeft
Tup layout_ceil_div(Ctx *cx, Tup shape, Tiler t);
Layout layout_upcast(Ctx *cx, Layout l, int64_t n);
Layout layout_downcast(Ctx *cx, Layout l, int64_t n);
Layout layout_recast(Ctx *cx, Layout l, int64_t old_bits, int64_t new_bits);
// make_layout_tv(thr, val): sets *tiler to the tile shape and returns
// (thread,value) -> coordinate in the tile.
Layout layout_tv(Ctx *cx, Layout thr, Layout val, Tup *tiler);

// ---- layouts whose extents are known only at launch (traced.c) ----
typedef enum TracedRule {
  TRACED_NONE, TRACED_COMPOSE, TRACED_DIVIDE, TRACED_PRODUCT,
  TRACED_COMPLEMENT,          // b is a layout with the codomain's shape
  TRACED_UPCAST               // b is a layout of n elements
} TracedRule;
// Reads the n words of an assertion, all known now, as the layouts a, b and r.
void traced_read(const Dim *word, Layout l[3]);
// Returns the word of an assertion whose traced value is v.
Dim traced_word(Ctx *cx, Dim word, int64_t v);
// Compares static r with the result of the rule for a and b. Returns a
// description of the first difference, or NULL if up to 2^20 elements of each
// mode agree. An inadmissible step fails.
const char *traced_differs(Ctx *cx, TracedRule rule, Layout a, Layout b,
                           Layout r);

// ---- XORed strides (xor.c) ----
bool layout_has_xor(Layout l);             // on the right side
// Returns the same function as a layout with integer strides, whose values pass
// through the former right side.
Layout layout_linear(Ctx *cx, Layout l);

// ---- domains and codomains (domain.c) ----
Tup layout_coprofile(Ctx *cx, Layout l);   // zeros, in the profile of l's
                                           // values
// Returns the common factors of both shapes in order, as modes whose strides
// are the indices where they start. (1):(0) if there are none.
Layout layout_greatest_common_domain(Ctx *cx, Tup a, Tup b);
Layout layout_add(Ctx *cx, Layout a, Layout b);  // returns a(i) + b(i)

// ---- the steps of the algebra as text (notation.c) ----
// Return and set the buffer that receives the steps for cute.explain, if any.
// Callers test explain_on first, so that steps cost nothing otherwise.
static inline Buf *explain_on(const Ctx *cx) {
  return cx->work ? cx->work->steps : NULL;
}
static inline void explain_to(Ctx *cx, Buf *b) { cx->work->steps = b; }
void explain_say(Ctx *cx, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
// SPDX-License-Identifier: MIT
