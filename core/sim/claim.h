// Claims as they are decoded, and a look at one (claim.c).
#ifndef CUTE_SIMCLAIM_H
#define CUTE_SIMCLAIM_H

#include "sim/inside.h"

// A value, or konst where it has no slot; what is to hold of it; as many of
// them as a coordinate has, of an element of mem, or (-1) one that was assumed.
typedef struct SimTerm {
  uint32_t slot;
  bool wide, uniform;
  int64_t konst;
} SimTerm;
typedef struct SimTold {
  SimTerm value, limit;
  int64_t lo, hi, div;
} SimTold;
typedef struct SimClaim {
  int n;
  int32_t mem;
  bool write;
  SimTerm when;        // looked at where this is true
  uint32_t note;       // 0, or a name, which begins or ends
  bool begins;
  SimTold *part;
  uint32_t rule;       // 0, or a TracedRule: the parts are words of layouts
  uint64_t *good;      // a hash of values for which it was seen to hold
} SimClaim;

// TRAP, whose x is a SimClaim: the active lanes for which it does not hold are
// told.
void simclaim_check(SimWarp *w, const SimIns *i);

#endif
