// Results that their type cannot hold (exact.c).
#ifndef CUTE_WATCH_EXACT_H
#define CUTE_WATCH_EXACT_H

#include "watch/finite.h"

// Returns one of WATCH_INDEX to WATCH_SUMBF16 if the results of instruction d
// are watched, else WATCH_NONE.
SimWatch exact_rule(Ctx *cx, const Fn *fn, const SimIns *d);
// Records the results of instruction i of w that differ from the exact ones.
void exact_note(SimWarp *w, const SimIns *i);
// Reports whether instruction i is watched as the sum of a loop.
static inline bool exact_is_sum(const SimIns *i) {
  return i->watch >= WATCH_SUMF16;
}
// Returns the first of the origins that is reported, or NULL.
const SimOrigin *exact_first(const SimOrigins *all);

#endif
// SPDX-License-Identifier: MIT
