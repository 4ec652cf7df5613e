// Checks the assertions of a program (assertions.c).
#ifndef CUTE_WATCH_ASSERTIONS_H
#define CUTE_WATCH_ASSERTIONS_H

#include "decode/assertion.h"
#include "sim/machine.h"

// Checks assertion i->x, a SimAssertion. Reports the active lanes that violate
// it.
void assertions_check(SimWarp *w, const SimIns *i);

#endif
// SPDX-License-Identifier: MIT
