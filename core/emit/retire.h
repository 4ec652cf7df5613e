// Waits for asynchronous operations that write registers (retire.c).
#ifndef CUTE_EMITRETIRE_H
#define CUTE_EMITRETIRE_H

#include "emit/inside.h"

// An MMA, or a load from tensor memory, that may complete at a wait. After the
// wait, the text may use its registers.
typedef struct Retire {
  Ref wait, of;
} Retire;

// Finds the operations that each wait may complete. Must be called before the
// other functions.
void retire_note(Emit *e);
void retire_reserve(Emit *e);  // chooses the names of helpers
// Writes the asm statements that follow the wait at r.
void retire_at(Emit *e, Ref r);
void retire_print(Emit *e);    // writes the needed helper functions

#endif
// SPDX-License-Identifier: MIT
