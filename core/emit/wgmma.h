// Emits a warpgroup's MMA (wgmma.c).
#ifndef CUTE_EMITWGMMA_H
#define CUTE_EMITWGMMA_H

#include "emit/inside.h"

// Accumulators of an MMA that may complete at a wait.
typedef struct Retire {
  Ref wait, mma;
} Retire;

void wgmma_note(Emit *e);      // finds the MMAs that each wait completes; runs
                               // first
void wgmma_reserve(Emit *e);   // names
void wgmma_descriptor(Emit *e, Ref r);  // DESC, before the kernel's body
void wgmma_mma(Emit *e, Ref r);         // statements
void wgmma_wait(Emit *e, Ref r);
void wgmma_helper(Emit *e, const AtomUse *u);  // helpers
void wgmma_print(Emit *e);

#endif
// SPDX-License-Identifier: MIT
