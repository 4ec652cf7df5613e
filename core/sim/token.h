// Finds try_waits whose results only decide whether a wait follows (token.c).
#ifndef CUTE_SIMTOKEN_H
#define CUTE_SIMTOKEN_H

#include "sim/machine.h"

// Returns an array indexed by Ref. For each try_wait whose result only decides
// whether a wait follows, and for each such wait, the array has the first of
// these instructions in the function. For other instructions it has 0.
Ref *simtoken_find(Ctx *cx, const Fn *fn);

// simtoken_try records that lane l tests the mbarrier at addr for the phase of
// parity `parity`. simtoken_same reports whether a wait matches lane l's last
// test, or lane l made no test.
void simtoken_try(SimWarp *w, const SimIns *i, int l, uint32_t addr,
                  int64_t parity);
bool simtoken_same(const SimWarp *w, const SimIns *i, int l, uint32_t addr,
                   int64_t parity);

#endif
// SPDX-License-Identifier: MIT
