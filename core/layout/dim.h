// One extent or stride: a static integer, or a traced one. Arithmetic folds
// static operands, and otherwise appends to the function being traced, so that
// one algebra serves both.
#ifndef CUTE_DIM_H
#define CUTE_DIM_H

#include "ir/ir.h"

// Encoding, to be used only through the functions below. A static integer v,
// |v| < 2^60, is the word itself, so its top four bits are 0 or -1. Otherwise
// they are a tag.
typedef enum DimTag {
  TAG_TUP = 1, TAG_DYN, TAG_ANY, TAG_BASIS, TAG_BASISREF, TAG_LAYOUT, TAG_XOR
} DimTag;
typedef union Dim {
  int64_t w;
  struct { uint64_t bits : 60, tag : 4; } of;  // LAYOUT: pointer; XOR: value
  // DYN, BASIS, BASISREF: a Ref or a 32-bit integer; for a basis also the mode
  // of each level, six bits each
  struct { uint64_t value : 32, path : 24, levels : 4, tag : 4; } basis;
  struct { uint64_t words : 24, leaves : 24, rank : 12, tag : 4; } tup;
} Dim;
_Static_assert(sizeof(Dim) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tags lie on top of the words that they tag");
typedef struct Layout Layout;

typedef enum DimKind {
  DIM_INT,    // static integer
  DIM_DYN,    // a Ref of the traced Fn; its divisibility is a Fact
  DIM_ANY,    // `_`
  DIM_BASIS,  // v@j@i: v in mode j of mode i; v static (32 bits) or a Ref; up
              // to 4 levels, < 64
  DIM_TUP,    // a tuple node of an IntTuple (tuple.h)
  DIM_XOR,    // an XORed stride (over the field of two elements): F9
  DIM_LAYOUT  // a layout as a leaf of a tiler, which only mode edits accept
} DimKind;
#define DIM_MAX (((int64_t)1 << 60) - 1)
#define DIM_LEVELS 4

static inline bool dim_static(Dim d) {     // a static integer
  return (uint64_t)d.w + (1ull << 60) < (1ull << 61);
}
static inline DimTag dim_tag(Dim d) { return (DimTag)(d.w >> 60); }
static inline int64_t dim_value(Dim d) { return d.w; }  // requires a static
                                                        // integer
static inline bool dim_is(Dim d, int64_t v) { return d.w == v; }
static inline bool dim_eq(Dim a, Dim b) { return a.w == b.w; }  // structural
DimKind dim_kind(Dim d);
Dim dim_int(Ctx *cx, int64_t v);           // ERR_OVERFLOW beyond DIM_MAX
Dim dim_ref(Ref r);
// dim_ref, but an IR constant becomes a static integer.
Dim dim_fold(Ctx *cx, Ref r);
Dim dim_any(void);
Dim dim_basis(Ctx *cx, Dim value, const int *path, int n);
Dim dim_layout(const Layout *l);    // does not copy l
const Layout *dim_getlayout(Dim d);  // NULL if d is no DIM_LAYOUT
// Makes a stride whose multiples are carry-less products and are added by XOR;
// v >= 0, and 0 yields the integer 0.
Dim dim_xor(Ctx *cx, int64_t v);
int64_t dim_xor_value(Dim d);              // requires a DIM_XOR or a static
                                           // integer
Dim dim_bit_xor(Ctx *cx, Dim a, Dim b);    // requires integers
Dim dim_basis_value(Dim d);
int dim_basis_path(Dim d, int path[DIM_LEVELS]);  // returns the level count
Ref dim_asref(Ctx *cx, Dim d);             // converts to an IR value, also a
                                           // constant
Ref dim_getref(Dim d);                     // requires a DIM_DYN (or its basis)
static inline bool dim_dynamic(Dim d) {    // DIM_DYN or a basis of one
  return dim_tag(d) == TAG_DYN || dim_tag(d) == TAG_BASISREF;
}
// Returns the known divisibility: |v| of a static Dim (0 for 0), else from its
// Fact.
int64_t dim_div(Ctx *cx, Dim d);
Dim dim_add(Ctx *cx, Dim a, Dim b);        // bases must have the same path
Dim dim_sub(Ctx *cx, Dim a, Dim b);
Dim dim_neg(Ctx *cx, Dim a);
Dim dim_abs(Ctx *cx, Dim a);
Dim dim_mul(Ctx *cx, Dim a, Dim b);        // scalar * basis allowed
Dim dim_quo(Ctx *cx, Dim a, Dim b);        // floor division
Dim dim_rem(Ctx *cx, Dim a, Dim b);
// Division and remainder that round toward zero, as in C++, for splitting
// coordinates. Negative coordinates then mirror positive ones: l(-i) = -l(i).
Dim dim_tquo(Ctx *cx, Dim a, Dim b);
Dim dim_trem(Ctx *cx, Dim a, Dim b);
Dim dim_ceil_div(Ctx *cx, Dim a, Dim b);
Dim dim_min(Ctx *cx, Dim a, Dim b);
Dim dim_max(Ctx *cx, Dim a, Dim b);
Dim dim_gcd(Ctx *cx, Dim a, Dim b);        // exact for static operands,
                                           // otherwise decided by facts
// Truth values as a Dim: static 0 or 1, or a traced predicate.
Dim dim_lt(Ctx *cx, Dim a, Dim b);
Dim dim_same(Ctx *cx, Dim a, Dim b);       // equal in value
Dim dim_and(Ctx *cx, Dim a, Dim b);
Dim dim_or(Ctx *cx, Dim a, Dim b);
Dim dim_not(Ctx *cx, Dim a);
Dim dim_sel(Ctx *cx, Dim p, Dim a, Dim b);  // p ? a : b

#endif
// SPDX-License-Identifier: MIT
