// Emits a warpgroup's MMA (wgmma.c).
#ifndef CUTE_EMITWGMMA_H
#define CUTE_EMITWGMMA_H

#include "emit/inside.h"

// Accumulators of an MMA that may complete at a wait.
typedef struct Retire {
  Ref wait, mma;
} Retire;

void wgmma_note(Emit *e);      // finds the MMAs that each wait completes;
                               // called first
void wgmma_reserve(Emit *e);   // chooses names
void wgmma_descriptor(Emit *e, Ref r);  // writes each DESC, before the kernel's
                                        // body
void wgmma_mma(Emit *e, Ref r);         // writes statements
void wgmma_wait(Emit *e, Ref r);
void wgmma_helper(Emit *e, const AtomUse *u);  // writes helpers
void wgmma_print(Emit *e);

#endif
// SPDX-License-Identifier: MIT
