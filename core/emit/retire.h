// Registers that asynchronous operations write before a wait (retire.c).
#ifndef CUTE_EMITRETIRE_H
#define CUTE_EMITRETIRE_H

#include "emit/inside.h"

// An operation `of` (an MMA, or a load from tensor memory) that `wait` may
// complete. After the wait, the text may use the operation's registers.
typedef struct Retire {
  Ref wait, of;
} Retire;

// Finds the operations that each wait may complete. Call it before the other
// functions.
void retire_note(Emit *e);
void retire_reserve(Emit *e);  // chooses the names of helpers
// Writes the asm statements that follow the wait at r.
void retire_at(Emit *e, Ref r);
void retire_print(Emit *e);    // writes the needed helper functions

#endif
// SPDX-License-Identifier: MIT
