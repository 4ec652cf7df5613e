// The algebra: composition, complements, inverses, divides, products.
#ifndef CUTE_ALGEBRA_H
#define CUTE_ALGEBRA_H

#include "layout/layout.h"

// What may stand on the right of a composition, divide or product: `_`, a
// layout (an integer n is n:1), or a tuple of such, applied mode by mode.
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
Layout layout_complement(Ctx *cx, Layout l, Tup cotarget);  // NULL: cosize
Layout layout_right_inverse(Ctx *cx, Layout l);
Layout layout_left_inverse(Ctx *cx, Layout l);
Layout layout_nullspace(Ctx *cx, Layout l);
Layout layout_max_common_layout(Ctx *cx, Layout a, Layout b);
int64_t layout_max_common_vector(Ctx *cx, Layout a, Layout b);
int64_t layout_max_alignment(Ctx *cx, Layout l);
Layout layout_domain_distribute(Ctx *cx, Tup shape, int64_t n);
Layout layout_logical_divide(Ctx *cx, Layout l, Tiler t);
// Are tiles and rest of such a divide all of the shape, and no more?
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
// make_layout_tv(thr, val): *tiler gets the tile shape, the result is
// (thread,value) -> coordinate in the tile.
Layout layout_tv(Ctx *cx, Layout thr, Layout val, Tup *tiler);

// ---- layouts whose extents are known at the launch only (traced.c) ----
typedef enum TracedRule {
  TRACED_NONE, TRACED_COMPOSE, TRACED_DIVIDE, TRACED_PRODUCT,
  TRACED_COMPLEMENT,          // b: a layout of the room's shape
  TRACED_UPCAST               // b: a layout of n elements
} TracedRule;
// Reads n words of a claim, all known now, as the layouts a, b and r.
void traced_read(const Dim *word, Layout l[3]);
// The word of a claim whose traced value is v.
Dim traced_word(Ctx *cx, Dim word, int64_t v);
// Is r what the rule makes of a and b, all static? Else the first difference,
// in words; NULL: it is, as far as 2^20 elements of a mode say. An inadmissible
// step fails.
const char *traced_differs(Ctx *cx, TracedRule rule, Layout a, Layout b,
                           Layout r);

// ---- XORed strides (xor.c) ----
bool layout_has_xor(Layout l);             // of its right side
// The same function with integers as strides of the right side, which then
// goes through what was the right side.
Layout layout_linear(Ctx *cx, Layout l);

// ---- domains and codomains (domain.c) ----
Tup layout_coprofile(Ctx *cx, Layout l);   // of zeros, as l's values are
// The factors by which both shapes count, in order, at the indices where they
// do: shape (s0,s1,..), strides those indices. (1):(0) without any.
Layout layout_greatest_common_domain(Ctx *cx, Tup a, Tup b);
Layout layout_add(Ctx *cx, Layout a, Layout b);  // a(i) + b(i)

// ---- the steps of the algebra, told (notation.c) ----
// Tells a step to the listener of cute.explain, if there is one. Callers
// test explain_on first, so that steps cost nothing otherwise.
static inline Buf *explain_on(const Ctx *cx) {
  return cx->work ? cx->work->steps : NULL;
}
static inline void explain_to(Ctx *cx, Buf *b) { cx->work->steps = b; }
void explain_say(Ctx *cx, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
