// Element types: one table of their properties, and bit-exact conversions.
#ifndef CUTE_DTYPE_H
#define CUTE_DTYPE_H

#include <string.h>

#include "base/base.h"

// Convert an f32 or f64 to its bits and back.
static inline uint32_t float_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

// Returns the bits of an f32 that arithmetic computed. All NaNs become
// 0x7fffffff, as on the GPU.
static inline uint32_t float_result(float x) {
  return x == x ? float_bits(x) : 0x7fffffff;
}
static inline float bits_float(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

static inline uint64_t double_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, 8);
  return u;
}

static inline double bits_double(uint64_t u) {
  double x;
  memcpy(&x, &u, 8);
  return x;
}

// DT(id, name, bits, class, cuda): `name` is the name in Lua (cute.bf16). The
// class is P (predicate), I (signed), U (unsigned) or F (float). `cuda` is the
// C type in which emitted code stores an element. Floats of 16 bits or less are
// stored as raw bits.
#define DTYPES(DT) \
  DT(BOOL, "boolean", 8, P, "bool") \
  DT(I8, "i8", 8, I, "signed char") \
  DT(U8, "u8", 8, U, "unsigned char") \
  DT(I16, "i16", 16, I, "short") \
  DT(U16, "u16", 16, U, "unsigned short") \
  DT(I32, "i32", 32, I, "int") \
  DT(U32, "u32", 32, U, "unsigned") \
  DT(I64, "i64", 64, I, "long long") \
  DT(U64, "u64", 64, U, "unsigned long long") \
  DT(F16, "f16", 16, F, "unsigned short") \
  DT(BF16, "bf16", 16, F, "unsigned short") \
  DT(TF32, "tf32", 32, F, "unsigned") \
  DT(F32, "f32", 32, F, "float") \
  DT(F64, "f64", 64, F, "double") \
  DT(E4M3, "e4m3", 8, F, "unsigned char") \
  DT(E5M2, "e5m2", 8, F, "unsigned char") \
  DT(U128, "u128", 128, U, "uint4") \
  DT(B1, "b1", 1, U, "unsigned char") \
  DT(I4, "i4", 4, I, "unsigned char") \
  DT(U4, "u4", 4, U, "unsigned char") \
  DT(E2M1, "e2m1", 4, F, "unsigned char") \
  DT(E2M3, "e2m3", 6, F, "unsigned char") \
  DT(E3M2, "e3m2", 6, F, "unsigned char") \
  DT(UE8M0, "ue8m0", 8, F, "unsigned char") \
  DT(C64, "complex_f64", 128, F, "double2")

typedef enum DType {
  DT_NONE,
#define DT(id, name, bits, cls, cuda) DT_##id,
  DTYPES(DT)
#undef DT
  DT_COUNT
} DType;

const char *dtype_name(DType t);  // "bf16"
const char *dtype_cuda(DType t);  // "unsigned short"
int dtype_bits(DType t);
char dtype_class(DType t);        // class of the type: 'P' 'I' 'U' or 'F'
// Returns the type with this name or alias (bfloat16, Float32, int32, float
// ...), or DT_NONE if the name is unknown.
DType dtype_find(const char *name);
static inline bool dtype_is_float(DType t) { return dtype_class(t) == 'F'; }
static inline bool dtype_is_float8(DType t) {
  return dtype_class(t) == 'F' && dtype_bits(t) == 8;
}
static inline bool dtype_is_int(DType t) {
  char c = dtype_class(t);
  return c == 'I' || c == 'U';
}

// dtype_least and dtype_most return the limits of an integer type or boolean.
// dtype_int returns the number that raw bits encode. For u64 and types that are
// not integers, the first two return the limits of int64_t, and dtype_int
// returns the bits unchanged.
int64_t dtype_least(DType t);
int64_t dtype_most(DType t);
int64_t dtype_int(DType t, uint64_t u);

// Returns the type in which an operation on types a and b computes: the wider
// one. A float type takes precedence over an integer, and any type over a
// boolean or DT_NONE. f16 and bf16 together yield f32.
DType dtype_common(DType a, DType b);

// Returns the value of an element's raw bits (the low bits of u) as a double.
// The value is exact, including NaNs and infinities, except that large 64-bit
// integers are rounded.
double dtype_to_double(DType t, uint64_t u);

// Returns the raw bits of x in type t. Floats round to nearest even. e4m3, e5m2
// and smaller types saturate to the largest finite value, as cvt.rn.satfinite
// does. NaN becomes the canonical NaN of the hardware's cvt. Integers truncate
// toward zero and saturate, as cvt.rzi does.
uint64_t dtype_from_double(DType t, double x);

// Convert between f32 and the raw bits of an element, faster than the functions
// for doubles. The conversion from f32 rounds once.
float dtype_to_float(DType t, uint64_t u);
uint64_t dtype_from_float(DType t, float x);

// Load or store element i of a packed array (sub-byte types: low bits first).
uint64_t dtype_load(DType t, const void *p, size_t i);
void dtype_store(DType t, void *p, size_t i, uint64_t bits);

#endif
// SPDX-License-Identifier: MIT
