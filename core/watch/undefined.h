// Finds uses of undefined values in registers (undefined.c).
#ifndef CUTE_WATCH_UNDEFINED_H
#define CUTE_WATCH_UNDEFINED_H

#include "sim/regs.h"

// Reports a fault if unit number `unit` of register object m is undefined in a
// lane of mask.
void undefined_registers(SimWarp *w, const SimIns *i, const SimMem *m,
                         int64_t unit, uint32_t mask);
// Makes the result of register load i undefined in the lanes in which the
// register is undefined.
void undefined_load(SimWarp *w, const SimIns *i, const SimSide *s);
// Handles instruction i, which selects a register by an index: makes its result
// undefined in the lanes of `lack`. `at` is the index of the unit (element)
// that the lowest lane in `lack` selects.
void undefined_pick(SimWarp *w, const SimIns *i, const SimMem *m, int64_t at,
                    uint32_t lack);

void undefined_divide(SimWarp *w, const SimIns *i);  // called after DIV and MOD
uint32_t undefined_mask(SimWarp *w, uint32_t slot);
void undefined_shuffle(SimWarp *w, const SimIns *i, const int *from);
// undefined_before and undefined_after are called around every instruction of a
// warp that has undefined values. They report uses of undefined values, and
// mark results that depend on such values as undefined.
void undefined_before(SimWarp *w, const SimIns *i);
void undefined_after(SimWarp *w, const SimIns *i);

#endif
// SPDX-License-Identifier: MIT
