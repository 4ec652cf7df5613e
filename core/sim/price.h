// What arithmetic asks of a quarter of a multiprocessor: instructions, and what
// they ask of its pipes.
#ifndef CUTE_SIMPRICE_H
#define CUTE_SIMPRICE_H

#include "sim/inside.h"

typedef struct SimPrice {
  float issue;  // instructions
  float fma;    // of the pipe that multiplies and adds (f32, f16, integers)
  float alu;    // of the one for integers, comparisons, conversions
  float xu;     // of the special function unit: approximations, f64 <-> f32
  float f64;
} SimPrice;

typedef struct SimPrices SimPrices;
// Uses of a function's values, and which operations of it become part of
// another one's instruction.
SimPrices *simprice_new(Ctx *cx, const Fn *fn);
// The price of arithmetic: scalar operations, selections, conversions,
// functions and intrinsics. fixed: its second operand is known before the loop
// that it stands in.
SimPrice simprice_of(const SimPrices *p, const SimIns *i, bool fixed);

#endif
