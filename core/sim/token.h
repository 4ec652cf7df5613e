// Answers of try_wait that only decide whether a wait follows (token.c).
#ifndef CUTE_SIMTOKEN_H
#define CUTE_SIMTOKEN_H

#include "sim/inside.h"

// Of each such try, and of the waits that it decides about: the first of these
// in the function; 0: of all else.
Ref *simtoken_find(Ctx *cx, const Fn *fn);

// Lane l of a try, or of such a wait, is at the mbarrier at addr, for the phase
// of that parity. Was its last try there, too, if it had one?
void simtoken_try(SimWarp *w, const SimIns *i, int l, uint32_t addr,
                  int64_t parity);
bool simtoken_same(const SimWarp *w, const SimIns *i, int l, uint32_t addr,
                   int64_t parity);

#endif
