// Waits for registers in flight (retire.c).
#ifndef CUTE_EMITRETIRE_H
#define CUTE_EMITRETIRE_H

#include "emit/inside.h"

// An MMA, or a load from tensor memory, that may complete at a wait. The wait
// retires its registers.
typedef struct Retire {
  Ref wait, of;
} Retire;

// Finds what each wait may complete. Called before the other functions.
void retire_note(Emit *e);
void retire_reserve(Emit *e);  // chooses the names of helpers
// Writes what follows the wait at r.
void retire_at(Emit *e, Ref r);
void retire_print(Emit *e);    // writes the helpers

#endif
// SPDX-License-Identifier: MIT
