// Finds NaNs and infinities that operations produce from finite operands
// (finite.c).
#ifndef CUTE_WATCH_FINITE_H
#define CUTE_WATCH_FINITE_H

#include "decode/fragments.h"
#include "sim/machine.h"

// Rules that recognize a NaN or infinity of a type by its bits. SimIns.watch is
// the rule for the results of an instruction.
typedef enum SimWatch {
  WATCH_NONE, WATCH_F32, WATCH_F16, WATCH_BF16, WATCH_E5M2, WATCH_E4M3,
  WATCH_F16X2, WATCH_BF16X2, WATCH_F64, WATCH_F32X2,
  // rules for results that must be exact (exact.h)
  WATCH_INDEX, WATCH_NARROW, WATCH_WRAPS, WATCH_FRACTION, WATCH_SUMF16,
  WATCH_SUMBF16, WATCH_SCALE
} SimWatch;
// Rules for results of one number in one 32-bit word precede rules for results
// of two numbers or two words.
CONSECUTIVE(6, 0, WATCH_E4M3);
CONSECUTIVE(4, WATCH_F16X2, WATCH_F32X2);
CONSECUTIVE(2, WATCH_E4M3, WATCH_F16X2);
// Rules for floats, which are also watched for NaNs, follow those for others.
CONSECUTIVE(7, WATCH_INDEX, WATCH_SCALE);
CONSECUTIVE(3, WATCH_SUMF16, WATCH_SCALE);

// Returns the rule for the results of instruction d, or WATCH_NONE if d cannot
// produce a NaN or infinity from finite operands.
SimWatch finite_rule(const SimIns *d);
// Reports whether launches of function fn are watched for NaNs and infinities.
// They are not watched if fn's inputs are unknown, or if every output has a
// type without infinities and NaNs or is declared by cute.nonfinite_ok.
bool finite_wanted(const Fn *fn);
// Clears the rules of results that the kernel guards by cute.where.
void finite_guards(Ctx *cx, SimProg *p);
// Records the results of instruction i of warp w that are NaNs or infinities
// although the operands of i are finite.
void finite_note(SimWarp *w, const SimIns *i);
// Records the multiply-add a * b + c of type t that lane l computed. The
// operands and the result are given as bits.
void finite_fma(SimWarp *w, const SimIns *i, int l, DType t, uint64_t a,
                uint64_t b, uint64_t c, uint64_t result);
// Records the results d of an MMA of lane group g, d (m,n) = a (m,k) * b (n,k)
// + c, which has a NaN or an infinity.
void finite_tile(SimWarp *w, const SimIns *i, int g, const SimTile *t);

// Adds an origin for instruction i in lane l to the list `all`. Returns the new
// origin, or NULL if the list already has an origin for i or is full.
SimOrigin *finite_origin(SimWarp *w, SimOrigins *all, const SimIns *i, int l,
                         bool nan);

typedef struct SimInputs SimInputs;
// Called before the launch: looks for NaNs and infinities in the arguments'
// memory.
SimInputs *finite_make(Ctx *cx, const SimProg *p);
void finite_merge(SimOrigins *all, const SimOrigins *more);
// Returns the first origin whose NaN or infinity may have reached an output.
// Returns NULL if the inputs had NaNs or infinities, or if no output has a NaN
// or infinity.
const SimOrigin *finite_first(const SimProg *p, const SimInputs *t,
                              const SimOrigins *all);
// Returns the facts about an origin that the report's sentence names.
SimNonfinite finite_facts(const SimOrigin *o);

#endif
// SPDX-License-Identifier: MIT
