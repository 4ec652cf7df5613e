// Finds arithmetic results that the result's type cannot represent (exact.c).
#ifndef CUTE_WATCH_EXACT_H
#define CUTE_WATCH_EXACT_H

#include "watch/finite.h"

// Returns the rule, WATCH_INDEX to WATCH_SUMBF16, by which the results of
// instruction d are compared with exact results, or WATCH_NONE if they are not
// compared.
SimWatch exact_rule(Ctx *cx, const Fn *fn, const SimIns *d);
// Records the results of instruction i of warp w that differ from the exact
// results.
void exact_note(SimWarp *w, const SimIns *i);
// Reports whether instruction i is watched as the sum of a loop.
static inline bool exact_is_sum(const SimIns *i) {
  return i->watch >= WATCH_SUMF16;
}
// Returns the first origin in the list `all` that is reported, or NULL if none
// is reported.
const SimOrigin *exact_first(const SimOrigins *all);

#endif
// SPDX-License-Identifier: MIT
