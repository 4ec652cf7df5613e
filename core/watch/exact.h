// Finds arithmetic results that the result's type cannot represent (exact.c).
#ifndef CUTE_WATCH_EXACT_H
#define CUTE_WATCH_EXACT_H

#include "watch/finite.h"

// Sets SimIns.watch of all instructions: WATCH_INDEX to WATCH_SCALE if their
// results are compared with exact results, or WATCH_NONE if they are not.
void exact_rules(Ctx *cx, SimProg *p);
// Records the results of instruction i of warp w that differ from the exact
// results.
void exact_note(SimWarp *w, const SimIns *i);
// Reports whether instruction i is watched as the sum of a loop.
static inline bool exact_is_sum(const SimIns *i) {
  return i->watch == WATCH_SUMF16 || i->watch == WATCH_SUMBF16;
}
// Returns the key of the note (cutelua.text.notes) on results of instruction i.
const char *exact_key(const SimIns *i);
// Returns the first origin in the list `all` that must be reported, or NULL.
const SimOrigin *exact_first(const SimOrigins *all);

#endif
// SPDX-License-Identifier: MIT
