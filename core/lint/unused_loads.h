// Finds script lines that load elements and use few of them (unused_loads.c).
#ifndef CUTE_UNUSED_LOADS_H
#define CUTE_UNUSED_LOADS_H

#include "ir/ir.h"

typedef struct UnusedLoads {
  Ref at;            // the first load whose value nothing uses
  int64_t n, count;  // number of the line's unused loads and of all its loads
  // true if an unused load follows a used load, or if the offsets of the loads
  // are not all sums of `base` and constants
  bool mixed;
  Ref base;
} UnusedLoads;

// Calls `found` for each line with unused loads (unused_loads.c).
void unused_loads(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const UnusedLoads *u), void *ud);

#endif
// SPDX-License-Identifier: MIT
