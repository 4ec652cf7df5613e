// Writes a warpgroup's MMA (wgmma.c).
#ifndef CUTE_EMITWGMMA_H
#define CUTE_EMITWGMMA_H

#include "emit/inside.h"

// An MMA that may complete at a wait. The wait retires its accumulators.
typedef struct Retire {
  Ref wait, mma;
} Retire;

// Finds the MMAs that each wait may complete. Called before the other
// functions.
void wgmma_note(Emit *e);
void wgmma_reserve(Emit *e);   // chooses the names of helpers
// Writes a DESC. All DESCs are written at the start of the kernel's body.
void wgmma_descriptor(Emit *e, Ref r);
// Writes the MMA as a statement.
void wgmma_mma(Emit *e, Ref r);
void wgmma_wait(Emit *e, Ref r);
// Writes the helper of the MMA.
void wgmma_helper(Emit *e, const AtomUse *u);
void wgmma_print(Emit *e);

#endif
// SPDX-License-Identifier: MIT
