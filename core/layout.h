// Ring 2: Dim, IntTuple, Swizzle, Layout. The algebra is written once, for
// static and for traced (dynamic) extents: arithmetic on Dims folds when
// both are static and appends to cx->fn otherwise.
//
// All results live in cx->scratch unless said otherwise; a face copies what
// it keeps (layout_words, layout_copy).
#ifndef CUTE_LAYOUT_H
#define CUTE_LAYOUT_H

#include "ir.h"

// ---- Dim: one word ----
// A static integer v with |v| < 2^60, or (bits 62..60 of a negative word
// below -2^61) something else. Use the functions, not the encoding.
typedef struct Dim { int64_t w; } Dim;
typedef enum DimKind {
  DIM_INT,    // static integer
  DIM_DYN,    // traced value: a Ref of cx->fn; its divisibility is a Fact
  DIM_ANY,    // `_`
  DIM_BASIS,  // v@i@j..: v static (32 bits) or a Ref; up to 4 levels, < 64
  DIM_TUP     // a tuple node of an IntTuple (below)
} DimKind;
#define DIM_MAX (((int64_t)1 << 60) - 1)

DimKind dim_kind(Dim d);
Dim dim_int(Ctx *cx, int64_t v);           // ERR_OVERFLOW beyond DIM_MAX
Dim dim_ref(Ref r);
Dim dim_any(void);
Dim dim_basis(Ctx *cx, Dim value, const int *path, int n);
bool dim_is(Dim d, int64_t v);             // static and equal to v
bool dim_static(Dim d);
int64_t dim_value(Dim d);                  // of a static one
Ref dim_asref(Ctx *cx, Dim d);             // as IR value (constants too)
int64_t dim_div(Ctx *cx, Dim d);           // known divisibility, >= 0
Dim dim_add(Ctx *cx, Dim a, Dim b);        // bases: same path only
Dim dim_sub(Ctx *cx, Dim a, Dim b);
Dim dim_mul(Ctx *cx, Dim a, Dim b);        // scalar * basis allowed
Dim dim_quo(Ctx *cx, Dim a, Dim b);        // floor division
Dim dim_rem(Ctx *cx, Dim a, Dim b);
Dim dim_ceil_div(Ctx *cx, Dim a, Dim b);
Dim dim_min(Ctx *cx, Dim a, Dim b);
Dim dim_max(Ctx *cx, Dim a, Dim b);
bool dim_eq(Dim a, Dim b);                 // structurally equal

// ---- IntTuple: words in preorder ----
// A leaf is one Dim. A tuple is a node word (rank, words, leaves) followed
// by its modes. `Tup` points at the first word of a (sub)tuple, so every
// mode of a tuple is itself a Tup, in place.
typedef const Dim *Tup;
bool tup_is_leaf(Tup t);
int tup_rank(Tup t);                       // of a leaf: 1
size_t tup_words(Tup t);                   // words taken, node included
size_t tup_leaves(Tup t);
Tup tup_first(Tup t);                      // first mode (a leaf: itself)
Tup tup_next(Tup t);                       // the mode after t
Tup tup_get(Ctx *cx, Tup t, int i);        // ERR_ARG when out of range
int tup_depth(Tup t);
// Builder: tupb_open / tupb_leaf / tupb_put / tupb_close; tupb_done.
typedef struct TupB { VEC(Dim) w; int open[64]; int nopen; } TupB;

// ---- Layout ----
typedef struct Swizzle { int8_t b, m, s; } Swizzle;  // Sw<b,m,s>

// shape:stride, the strides being one Dim per leaf of the shape, in order
// (congruence holds by construction). A composed layout also has a swizzle
// and an offset: value = sw(offset + inner(c)).
typedef struct Layout {
  Tup shape;
  const Dim *stride;
  Dim offset;        // composed only, else 0
  Swizzle sw;        // composed only
  bool composed;
} Layout;

// Everything CuTe offers is declared in this header under CuTe's names with
// the prefix layout_ (tup_ for IntTuples, swizzle_ for swizzles), e.g.
Layout layout_make(Ctx *cx, Tup shape, Tup stride);   // congruent or fails
Layout layout_compact(Ctx *cx, Tup shape);            // LayoutLeft
Layout layout_mode(Ctx *cx, Layout l, int i);
Layout layout_concat(Ctx *cx, const Layout *l, int n);
int layout_rank(Layout l);
Dim layout_size(Ctx *cx, Layout l);
Dim layout_cosize(Ctx *cx, Layout l);
Layout layout_coalesce(Ctx *cx, Layout l);
Layout layout_compose(Ctx *cx, Layout a, Layout b);
Layout layout_complement(Ctx *cx, Layout l, Dim cotarget);
Layout layout_parse(Ctx *cx, const char *s, size_t n);
void layout_print(Ctx *cx, Layout l, Buf *out);
void tup_print(Ctx *cx, Tup t, Buf *out);
// Slice by a coordinate that may hold `_`: the part that stays, and the
// offset of the part that went (a Dim, or a tuple for basis strides).
Layout layout_slice(Ctx *cx, Layout l, Tup coord, Dim *offset);
// Offset of a coordinate (1-D, flat or hierarchical). Composed: swizzled.
Dim layout_eval(Ctx *cx, Layout l, Tup coord);
// sw(x) for a static or traced x, folding what is known of x's bits.
Dim swizzle_apply(Ctx *cx, Swizzle sw, Dim x);

// ---- storage ----
// Words of a layout as one block (shape words, strides, header): size, and
// copy into `mem` (8-aligned), returning the layout that lives there.
size_t layout_bytes(Layout l);
Layout layout_copy(void *mem, Layout l);

#endif
