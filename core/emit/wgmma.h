// Writes a warpgroup's MMA (wgmma.c).
#ifndef CUTE_EMITWGMMA_H
#define CUTE_EMITWGMMA_H

#include "emit/inside.h"

// Writes a DESC. All DESCs are written at the start of the kernel's body.
void wgmma_descriptor(Emit *e, Ref r);
// Writes the MMA as a statement.
void wgmma_mma(Emit *e, Ref r);
// Writes the helper of the MMA.
void wgmma_helper(Emit *e, const AtomUse *u);

#endif
// SPDX-License-Identifier: MIT
