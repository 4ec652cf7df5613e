// Finds NaNs and infinities that operations produce from finite operands
// (finite.c).
#ifndef CUTE_WATCH_FINITE_H
#define CUTE_WATCH_FINITE_H

#include "decode/fragments.h"
#include "sim/machine.h"

// Rules for checking the results of instructions (SimIns.watch). A rule
// recognizes the bits of a NaN or an infinity of a type.
typedef enum SimWatch {
  WATCH_NONE, WATCH_F32, WATCH_F16, WATCH_BF16, WATCH_E5M2, WATCH_E4M3,
  WATCH_F16X2, WATCH_BF16X2, WATCH_F64, WATCH_F32X2,
  // rules for results that must be exact (exact.h)
  WATCH_INDEX, WATCH_NARROW, WATCH_WRAPS, WATCH_FRACTION, WATCH_SUMF16,
  WATCH_SUMBF16, WATCH_SCALE
} SimWatch;
// Rules for results that are one number in one 32-bit word come before rules
// for results of two numbers or two words.
CONSECUTIVE(6, 0, WATCH_E4M3);
CONSECUTIVE(4, WATCH_F16X2, WATCH_F32X2);
CONSECUTIVE(2, WATCH_E4M3, WATCH_F16X2);
// Among the rules for exact results, the rules for floats come last. Such
// results are also watched for NaNs.
CONSECUTIVE(7, WATCH_INDEX, WATCH_SCALE);
CONSECUTIVE(3, WATCH_SUMF16, WATCH_SCALE);

// Returns the rule for the results of instruction d. Returns WATCH_NONE if d
// cannot produce a NaN or infinity from finite operands.
SimWatch finite_rule(const SimIns *d);
// Reports whether launches of function fn are watched for NaNs and infinities.
// They are not watched if the inputs of fn are unknown. They are also not
// watched if every output has a type without infinities and NaNs, or is
// declared by cute.nonfinite_ok.
bool finite_wanted(const Fn *fn);
// Clears the rules of instructions whose NaNs and infinities the kernel
// replaces by cute.where.
void finite_guards(Ctx *cx, SimProg *p);
// Records the NaNs and infinities that instruction i of warp w computed from
// finite operands.
void finite_note(SimWarp *w, const SimIns *i);
// Records that lane l computed the multiply-add a * b + c = result in type t.
// All four numbers are given as bits.
void finite_fma(SimWarp *w, const SimIns *i, int l, DType t, uint64_t a,
                uint64_t b, uint64_t c, uint64_t result);
// Records that an MMA of lane group g computed a NaN or an infinity in d. The
// MMA computes d (m,n) = a (m,k) * b (n,k) + c.
void finite_tile(SimWarp *w, const SimIns *i, int g, const SimTile *t);

// Records instruction i in lane l as the origin of a NaN, an infinity or an
// inexact result. Returns the new entry of the list `all`, or NULL if the list
// already has an entry for i or is full.
SimOrigin *finite_origin(SimWarp *w, SimOrigins *all, const SimIns *i, int l,
                         bool nan);

typedef struct SimInputs SimInputs;
// Called before the launch. Looks for NaNs and infinities in the arguments'
// memory.
SimInputs *finite_make(Ctx *cx, const SimProg *p);
void finite_merge(SimOrigins *all, const SimOrigins *more);
// Returns the first recorded operation whose NaN or infinity may have reached
// an output. Returns NULL if an input had a NaN or infinity, or if no output
// has one.
const SimOrigin *finite_first(const SimProg *p, const SimInputs *t,
                              const SimOrigins *all);
// Returns what the report of an origin (finite_origin) names.
SimNonfinite finite_facts(const SimOrigin *o);

#endif
// SPDX-License-Identifier: MIT
