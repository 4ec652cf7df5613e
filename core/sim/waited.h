// Records of waits for asynchronous operations (waits.c).
#ifndef CUTE_SIMWAITED_H
#define CUTE_SIMWAITED_H

#include "decode/prog.h"

// The last wait of a warp for groups of asynchronous operations of one kind,
// for example bulk groups.
// - lanes: the waiting lanes.
// - idle: waiting lanes that had committed no group.
// - still: waiting lanes that had committed no group since their previous wait.
// - clk: epoch of the wait.
// - pending: number of groups that the wait allowed to stay pending.
// - read: the wait was only for reads of the sources.
// - groups: for each lane, number of groups that it had committed.
// - src: line of the wait.
// - times: number of waits so far.
typedef struct SimWaited {
  uint32_t lanes, idle, still, clk, pending, src, times;
  bool read;
  uint32_t groups[LANES];
} SimWaited;

#endif
// SPDX-License-Identifier: MIT
