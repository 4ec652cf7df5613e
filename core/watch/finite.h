// NaNs and infinities that operations make from finite operands (finite.c).
#ifndef CUTE_WATCH_FINITE_H
#define CUTE_WATCH_FINITE_H

#include "sim/tables.h"

// Rules that recognize a NaN or infinity of a type by its bits. SimIns.watch is
// the rule for the results of an instruction.
typedef enum SimWatch {
  WATCH_NONE, WATCH_F32, WATCH_F16, WATCH_BF16, WATCH_E5M2, WATCH_E4M3,
  WATCH_F16X2, WATCH_BF16X2, WATCH_F64, WATCH_F32X2,
  // results that must be exact (exact.h)
  WATCH_INDEX, WATCH_NARROW, WATCH_SUMF16, WATCH_SUMBF16
} SimWatch;
// one number, then pairs of numbers and two words
CONSECUTIVE(6, 0, WATCH_E4M3);
CONSECUTIVE(4, WATCH_F16X2, WATCH_F32X2);
CONSECUTIVE(2, WATCH_E4M3, WATCH_F16X2);
CONSECUTIVE(4, WATCH_INDEX, WATCH_SUMBF16);
CONSECUTIVE(2, WATCH_SUMF16, WATCH_SUMBF16);

// Returns the rule for the results of instruction d, WATCH_NONE if it cannot
// make a NaN or infinity from finite operands.
SimWatch finite_rule(const SimIns *d);
// Reports whether a launch of this function is watched at all. It is not if its
// inputs are unknown or if no output has a type with infinities or NaNs, except
// outputs declared by cute.nonfinite_ok.
bool finite_wanted(const Fn *fn);
// Clears the rules of results that the kernel guards by cute.where.
void finite_guards(Ctx *cx, SimProg *p);
// Records the results of instruction i of w that are NaNs or infinities
// although the operands are finite.
void finite_note(SimWarp *w, const SimIns *i);
// Records a multiply-add a * b + c of type t in lane l, with its operands and
// result as bits.
void finite_fma(SimWarp *w, const SimIns *i, int l, DType t, uint64_t a,
                   uint64_t b, uint64_t c, uint64_t result);
// Does the same for the results d of an MMA of group g, after finite_any
// found one. d (m,n) = a (m,k) * b (n,k) + c.
void finite_tile(SimWarp *w, const SimIns *i, int g, const SimTile *t);
// Reports whether any of n numbers is a NaN or infinity.
bool finite_any(const float *x, int n);

// Returns a new origin for instruction i in lane l, or NULL if the list has one
// or is full.
SimOrigin *finite_origin(SimWarp *w, SimOrigins *all, const SimIns *i, int l,
                         bool nan);

typedef struct SimInputs SimInputs;
// Looks through the launch's memory before it runs.
SimInputs *finite_make(Ctx *cx, const SimProg *p);
void finite_merge(SimOrigins *all, const SimOrigins *more);
// Returns the first origin that may have reached an output, NULL if the inputs
// had NaNs or infinities or no output has.
const SimOrigin *finite_first(const SimProg *p, const SimInputs *t,
                                 const SimOrigins *all);
// Returns what the sentence about an origin names.
SimNonfinite finite_facts(const SimOrigin *o);

#endif
// SPDX-License-Identifier: MIT
