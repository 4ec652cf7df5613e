// The numbers of the checks that have records. A check's records for a launch
// are SimProg.own[number], for a cluster SimCluster.own[number], and for a warp
// SimWarp.own[number].
#ifndef CUTE_WATCH_OWN_H
#define CUTE_WATCH_OWN_H

#include "decode/prog.h"

enum { OWN_SHADOW, OWN_HB_CLUSTER, OWN_HB_GRID, OWN_MEANT, OWN_UNREAD,
       OWN_UNWRITTEN, OWN_PEER, OWN_FINITE, OWN_TENSOR, OWN_SAME_READS,
       OWN_RACES, OWN_SCALES, OWN_COUNT };
_Static_assert((int)OWN_COUNT <= (int)SIM_OWNERS, "SimProg.own is too short");

#endif
// SPDX-License-Identifier: MIT
