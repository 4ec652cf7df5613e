// Finds arithmetic results that are not exact because their type cannot
// represent the exact result (exact.c).
#ifndef CUTE_WATCH_EXACT_H
#define CUTE_WATCH_EXACT_H

#include "watch/finite.h"

// Sets SimIns.watch of all instructions. If an instruction's results are
// compared with exact results, the rule is one of WATCH_INDEX to WATCH_SCALE,
// otherwise WATCH_NONE.
void exact_rules(Ctx *cx, SimProg *p);
// Records those results of instruction i of warp w that differ from the exact
// results.
void exact_note(SimWarp *w, const SimIns *i);
// Reports whether the results of instruction i are watched as sums of a loop.
static inline bool exact_is_sum(const SimIns *i) {
  return i->watch == WATCH_SUMF16 || i->watch == WATCH_SUMBF16;
}
// Returns the key under which cutelua.text.notes has the message about inexact
// results of instruction i.
const char *exact_key(const SimIns *i);
// Returns the first recorded inexact result in `all` that must be reported, or
// NULL if none must.
const SimOrigin *exact_first(const SimOrigins *all);

#endif
// SPDX-License-Identifier: MIT
