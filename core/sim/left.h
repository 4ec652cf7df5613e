// Outputs that a kernel leaves unwritten in part (left.c).
#ifndef CUTE_SIMLEFT_H
#define CUTE_SIMLEFT_H

#include "sim/blocks.h"

typedef struct SimLeft SimLeft;
// What is to be looked at behind the launch, before it begins.
SimLeft *simleft_make(Ctx *cx, const SimProg *p);
// Behind it: how many elements are unwritten; found (NULL: nobody) is told.
int64_t simleft_find(const SimProg *p, const SimLeft *t, Found found, void *ud);
// A grid that is too small, as far as that can be told from what it stored.
SimShort simleft_short(Ctx *cx, const SimProg *p);

#endif
