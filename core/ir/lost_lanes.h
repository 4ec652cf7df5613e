// Finds sums of a warp that lack the values of some lanes, or count values of
// some lanes twice (lost_lanes.c).
#ifndef CUTE_LOST_LANES_H
#define CUTE_LOST_LANES_H

#include "ir/ir.h"

typedef struct LostLanes {
  Ref at;         // the sum of a value and its shuffle; 0 if there is none
  Ref shuffle;  // the shuffle; 0: a loop computes the sum, and nothing combines
                // the sums of the lanes
  // true: `lanes` add their own value twice, because no lane is at the
  // shuffle's distance; false: no sum contains the values of `lanes`
  bool twice;
  uint32_t lanes;
  bool warps;  // whether `lanes` are warps, which compute a sum for nothing
  bool scan;  // whether `at` is a step of a scan whose last lane lacks them
} LostLanes;

// Calls `found` for each sum of a value and its shuffle.
void lost_lanes(Ctx *cx, const Fn *fn,
                void (*found)(void *ud, const LostLanes *l), void *ud);

#endif
// SPDX-License-Identifier: MIT
