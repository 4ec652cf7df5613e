// Dim: one extent or stride, which is a static or a traced integer. Arithmetic
// on static operands computes on the host; arithmetic on traced operands
// appends instructions to the traced function. So one implementation of the
// algebra serves static and traced numbers.
#ifndef CUTE_DIM_H
#define CUTE_DIM_H

#include "ir/ir.h"

// Encoding, to be used only through the functions below. A static integer v,
// |v| < 2^60, is the word itself, so its top four bits are 0 or -1. In all
// other Dims, the top four bits are a tag.
typedef enum DimTag {
  TAG_TUP = 1, TAG_DYN, TAG_ANY, TAG_BASIS, TAG_BASISREF, TAG_LAYOUT, TAG_XOR
} DimTag;
typedef union Dim {
  int64_t w;
  // TAG_LAYOUT: a pointer to the layout; TAG_XOR: the value of the stride
  struct { uint64_t bits : 60, tag : 4; } of;
  // TAG_DYN and TAG_BASISREF: `value` is a Ref. TAG_BASIS: `value` is a 32-bit
  // integer. For a basis, `path` has the mode number of each level, in six
  // bits.
  struct { uint64_t value : 32, path : 24, levels : 4, tag : 4; } basis;
  struct { uint64_t words : 24, leaves : 24, rank : 12, tag : 4; } tup;
} Dim;
_Static_assert(sizeof(Dim) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tags lie on top of the words that they tag");
typedef struct Layout Layout;

typedef enum DimKind {
  DIM_INT,    // static integer
  DIM_DYN,  // a value of the traced function; its Fact has the known divisor
  DIM_ANY,    // `_`
  // The basis v@j@i: a coordinate that is v in mode j of mode i, and 0 in all
  // other modes. v is a static integer of 32 bits or a Ref. A basis has at most
  // 4 levels, and mode numbers below 64.
  DIM_BASIS,
  DIM_TUP,    // a tuple node of an IntTuple (tuple.h)
  // An XORed stride, such as F9 for the stride 9. A multiple of this stride is
  // a carry-less product, and a sum with this stride is an XOR.
  DIM_XOR,
  // a layout as a leaf of a tiler. Only functions that edit modes, such as
  // tup_append, accept it.
  DIM_LAYOUT
} DimKind;
#define DIM_MAX (((int64_t)1 << 60) - 1)
#define DIM_LEVELS 4

static inline bool dim_static(Dim d) {     // whether d is a static integer
  return (uint64_t)d.w + (1ull << 60) < (1ull << 61);
}
static inline DimTag dim_tag(Dim d) { return (DimTag)(d.w >> 60); }
// d must be a static integer
static inline int64_t dim_value(Dim d) { return d.w; }
static inline bool dim_is(Dim d, int64_t v) { return d.w == v; }
// whether a and b have the same encoding
static inline bool dim_eq(Dim a, Dim b) { return a.w == b.w; }
DimKind dim_kind(Dim d);
Dim dim_int(Ctx *cx, int64_t v);  // fails with ERR_OVERFLOW beyond DIM_MAX
Dim dim_ref(Ref r);
// Returns value r as a Dim, which is a static integer if r is an IR constant.
Dim dim_fold(Ctx *cx, Ref r);
Dim dim_any(void);
Dim dim_basis(Ctx *cx, Dim value, const int *path, int n);
// Returns a Dim that points to l, without a copy.
Dim dim_layout(const Layout *l);
// Returns NULL if d is not a DIM_LAYOUT.
const Layout *dim_getlayout(Dim d);
// Returns the XORed stride v >= 0 (see DIM_XOR). For 0, returns the integer 0.
Dim dim_xor(Ctx *cx, int64_t v);
// d must be a DIM_XOR or a static integer.
int64_t dim_xor_value(Dim d);
// Returns a ^ b for integers a and b.
Dim dim_bit_xor(Ctx *cx, Dim a, Dim b);
Dim dim_basis_value(Dim d);
// Writes the path of basis d to `path` and returns the number of levels.
int dim_basis_path(Dim d, int path[DIM_LEVELS]);
// Converts d to an IR value, which may be a constant.
Ref dim_asref(Ctx *cx, Dim d);
// d must be a DIM_DYN or a traced basis.
Ref dim_getref(Dim d);
// whether d is a DIM_DYN or a traced basis
static inline bool dim_dynamic(Dim d) {
  return dim_tag(d) == TAG_DYN || dim_tag(d) == TAG_BASISREF;
}
// Returns the known divisor of d: |v| for a static integer v (0 for 0), else
// the divisor in the Fact of d.
int64_t dim_div(Ctx *cx, Dim d);
Dim dim_add(Ctx *cx, Dim a, Dim b);        // two bases must have the same path
Dim dim_sub(Ctx *cx, Dim a, Dim b);
Dim dim_neg(Ctx *cx, Dim a);
Dim dim_abs(Ctx *cx, Dim a);
Dim dim_mul(Ctx *cx, Dim a, Dim b);        // one operand may be a basis
Dim dim_quo(Ctx *cx, Dim a, Dim b);        // rounds down
Dim dim_rem(Ctx *cx, Dim a, Dim b);
// Division and remainder that round toward zero, as in C++. Layouts split
// coordinates with them, so a layout l maps negative coordinates to mirrored
// values: l(-i) = -l(i).
Dim dim_tquo(Ctx *cx, Dim a, Dim b);
Dim dim_trem(Ctx *cx, Dim a, Dim b);
Dim dim_ceil_div(Ctx *cx, Dim a, Dim b);
Dim dim_min(Ctx *cx, Dim a, Dim b);
Dim dim_max(Ctx *cx, Dim a, Dim b);
// uses the known divisor of a traced operand
Dim dim_gcd(Ctx *cx, Dim a, Dim b);
// Comparisons, which return a Dim: a static 0 or 1, or a traced predicate.
Dim dim_lt(Ctx *cx, Dim a, Dim b);
Dim dim_same(Ctx *cx, Dim a, Dim b);       // a == b
Dim dim_and(Ctx *cx, Dim a, Dim b);
Dim dim_or(Ctx *cx, Dim a, Dim b);
Dim dim_not(Ctx *cx, Dim a);
Dim dim_sel(Ctx *cx, Dim p, Dim a, Dim b);  // returns p ? a : b

#endif
// SPDX-License-Identifier: MIT
