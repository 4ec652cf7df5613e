// Evaluates scalar operations on raw bits of their operands.
#ifndef CUTE_EVAL_H
#define CUTE_EVAL_H

#include "ir/ir.h"

// Evaluates a SCALAR operation of ops.h whose operands are raw bits of type t.
// Integers may be sign-extended. Division by zero returns the hardware's
// result.
uint64_t eval_scalar(Op op, DType t, uint64_t a, uint64_t b, uint64_t c);
// Returns the integer of type t in the low bits of u, sign- or zero-extended.
int64_t eval_widen(DType t, uint64_t u);
// Evaluates a function of MATHS (rows.h) for f32, as CUDA and the hardware do.
uint32_t eval_math(MathFn f, uint32_t x, uint32_t y);
// Evaluates a function of MATHS for f64, by C's function.
uint64_t eval_math_f64(MathFn f, uint64_t x, uint64_t y);
// Truncates u to the bits of type t.
uint64_t eval_narrow(DType t, uint64_t u);
// Makes an f64 NaN quiet. Returns other values unchanged.
uint64_t eval_quiet(uint64_t u);
// Returns old + v as a reduction in global memory computes it. If v is an f64
// NaN, returns v unchanged. If only old is an f64 NaN, returns old. `ftz`
// flushes subnormal operands and results of f32 to zero.
uint64_t eval_reduce(DType t, uint64_t old, uint64_t v, bool ftz);

#endif
// SPDX-License-Identifier: MIT
