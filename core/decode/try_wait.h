// Finds try_waits whose results only decide whether a wait follows
// (try_wait.c).
#ifndef CUTE_DECODE_TRY_WAIT_H
#define CUTE_DECODE_TRY_WAIT_H

#include "decode/prog.h"

// Finds groups of try_waits and waits such that the results of the try_waits
// only decide whether these waits follow. Returns an array indexed by Ref. For
// a member of a group, it has the group's first instruction, else 0.
Ref *try_wait_find(Ctx *cx, const Fn *fn);

#endif
// SPDX-License-Identifier: MIT
