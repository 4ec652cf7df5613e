// Finds sums over the lanes of a warp that lack the values of some lanes, or
// count them twice (lost_lanes.c).
#ifndef CUTE_LOST_LANES_H
#define CUTE_LOST_LANES_H

#include "ir/ir.h"

typedef struct LostLanes {
  // the instruction that adds a value and its shuffle; 0: no mistake was found
  Ref at;
  // the shuffle; 0: each lane computes a sum in a loop, and nothing adds the
  // lanes' sums
  Ref shuffle;
  // true: the lanes in the mask `lanes` add their own value twice, because the
  // shuffle has no source lane for them; false: no sum contains their values
  bool twice;
  uint32_t lanes;
  // without a shuffle: whether the loop does not add elements, but selects a
  // value by comparing elements, such as the index of a maximum
  bool selects;
  // whether `lanes` is a mask of warps, whose sums no instruction uses
  bool warps;
  // whether `at` is a step of a scan, in which the last lane lacks the values
  // of `lanes`
  bool scan;
  // whether `at` is a maximum or minimum that is complete in other lanes, but
  // in `lanes` lacks the values of some lanes
  bool extreme;
  // mask of the distances (powers of two) that a chain of butterfly shuffles
  // skips; 0: none. If distances are skipped, `lanes` is the mask of the
  // chain's distances.
  uint32_t gap;
} LostLanes;

// Calls `found` for each wrong sum.
void lost_lanes(Ctx *cx, const Fn *fn,
                void (*found)(void *ud, const LostLanes *l), void *ud);

#endif
// SPDX-License-Identifier: MIT
