// Scalars on raw bits.
#ifndef CUTE_EVAL_H
#define CUTE_EVAL_H

#include "ir/ir.h"

// A SCALAR of ops.h whose operands have type t; of integers it may be given
// what has its sign in front. A quotient by zero is the hardware's.
uint64_t eval_scalar(Op op, DType t, uint64_t a, uint64_t b, uint64_t c);
// An integer of t as int64_t: with its sign in front, or zeros.
int64_t eval_widen(DType t, uint64_t u);
// A function of MATHS (rows.h) that the hardware approximates, of f32.
uint32_t eval_approx(MathFn f, uint32_t x, uint32_t y);
uint64_t eval_narrow(DType t, uint64_t u);  // the bits of t alone
uint64_t eval_quiet(uint64_t u);  // an f64 whose NaN does not signal
// The sum of a value in memory and v as global memory's reductions compute it.
// The result is a NaN of f64 as it is, v's before old's. `ftz` flushes
// subnormal operands and results of f32.
uint64_t eval_reduce(DType t, uint64_t old, uint64_t v, bool ftz);

#endif
