// Cost of arithmetic in a quarter of a multiprocessor: instructions, and cycles
// of its pipes.
#ifndef CUTE_SIMPRICE_H
#define CUTE_SIMPRICE_H

#include "sim/inside.h"

typedef struct SimPrice {
  float issue;  // instructions
  float fma;    // FMA pipe: f32, f16, integer multiply-add
  float alu;    // ALU pipe: integers, comparisons, conversions
  float xu;     // special function unit: approximations, f64 <-> f32
  float f64;
} SimPrice;

typedef struct SimPrices SimPrices;
// Counts the uses of a function's values, and finds the operations that are
// folded into other instructions.
SimPrices *simprice_new(Ctx *cx, const Fn *fn);
// Returns the cost of arithmetic: scalar operations, selections, conversions,
// functions and intrinsics. fixed: its second operand is known before the
// enclosing loop.
SimPrice simprice_of(const SimPrices *p, const SimIns *i, bool fixed);

#endif
// SPDX-License-Identifier: MIT
