// Results that do not fit 32 bits, where an address or a comparison rests on
// them (wrap.c).
#ifndef CUTE_SIMWRAP_H
#define CUTE_SIMWRAP_H

#include "sim/inside.h"

enum { SIM_WRAPS = 8 };      // of an address
// Those that an access rests on: instructions of the IR; once decoded, numbers
// from 0 on.
typedef struct SimWraps {
  int n;
  int32_t mem[SIM_WRAPS];    // in which object they lead to (index into Fn.mem)
  uint32_t of[SIM_WRAPS];
} SimWraps;
struct Access;

// Numbers the results that may wrap, of all that p's instructions use so.
void simwrap_find(Ctx *cx, SimProg *p);
// Such a result was computed: i->jump is its number + 1.
void simwrap_note(SimWarp *w, const SimIns *i);
// The lanes of mask use the address of x; returns those that were reported.
uint32_t simwrap_check(const struct Access *x, uint32_t mask);
// i compares, divides or shifts what rests on i->wraps.
void simwrap_compare(SimWarp *w, const SimIns *i);

#endif
