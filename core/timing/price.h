// Cost of arithmetic instructions in a quarter of an SM: the number of issued
// instructions, and the cycles for which each of the quarter's pipes is busy.
#ifndef CUTE_TIMING_PRICE_H
#define CUTE_TIMING_PRICE_H

#include "sim/machine.h"

typedef struct SimPrice {
  float issue;  // number of instructions to issue
  float fma;    // cycles of the FMA pipe: f32, f16, integer multiply-add
  float alu;    // cycles of the ALU pipe: integers, comparisons, conversions
  // cycles of the special function unit: approximations, conversions f64 <->
  // f32
  float xu;
  float f64;
} SimPrice;

typedef struct SimPrices SimPrices;
// Prepares the costs of a function: counts the uses of its values, and finds
// the operations that the compiler merges into other instructions.
SimPrices *price_new(Ctx *cx, const Fn *fn);
// Returns the cost of arithmetic instruction i: a scalar operation, selection,
// conversion, function or intrinsic. `fixed` is true if i's second operand is
// computed before the enclosing loop.
SimPrice price_of(const SimPrices *p, const SimIns *i, bool fixed);

#endif
// SPDX-License-Identifier: MIT
