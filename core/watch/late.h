// Explains accesses to the bytes of a copy before its mbarrier orders them
// (late.c).
#ifndef CUTE_WATCH_LATE_H
#define CUTE_WATCH_LATE_H

#include "sim/mbar.h"

// Sets the fields of f that state why lane l of warp w accesses the bytes of a
// copy too early. `b` is the mbarrier of the copy. `phase` is the number of b's
// phase when the copy started. `landed` is true if the copy is complete.
void late_explain(SimFault *f, const SimWarp *w, int l, const SimMbar *b,
                  uint32_t phase, bool landed);

#endif
// SPDX-License-Identifier: MIT
