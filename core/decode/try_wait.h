// Finds try_waits whose results only decide whether a wait follows
// (try_wait.c).
#ifndef CUTE_DECODE_TRY_WAIT_H
#define CUTE_DECODE_TRY_WAIT_H

#include "decode/prog.h"

// Returns an array indexed by Ref. For each try_wait whose result only decides
// whether a wait follows, and for each such wait, the array has the first of
// these instructions in the function. For other instructions it has 0.
Ref *try_wait_find(Ctx *cx, const Fn *fn);

#endif
// SPDX-License-Identifier: MIT
