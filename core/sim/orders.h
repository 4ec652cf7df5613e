// What a run with a systematic schedule (turns.h) found out about other
// schedules.
#ifndef CUTE_SIMORDERS_H
#define CUTE_SIMORDERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct SimSwap {   // a pair of steps that could be in the opposite
                           // order
  uint32_t src, src2;      // src: line of the first step; src2: line of the
                           // other step
  uint64_t *turn;          // actors of the required first steps of a schedule
                           // with the opposite order
  size_t nturn;
} SimSwap;
enum { SIM_FULL = 1,       // some results were not kept
       SIM_LANES = 2,      // lanes of one instruction conflict at `src`
       SIM_MISSED = 4,     // SimOpts.turn could not be followed to its end
       SIM_IDLE = 8,       // the last step of SimOpts.turn had no effect: a
                           // poll failed
       SIM_MANY = 16,      // too many warps: nothing was recorded
       SIM_CLOCK = 32,     // `src` reads a clock, or the SM number
       SIM_SUMS = 64,      // `src` adds floats by atomics, in any order
       SIM_APART = 128,    // in the end no warp could run, or only other lanes
                           // of a warp
       SIM_TRIES = 256 };  // a try_wait's result decided about a wait for
                           // another phase: see Launch.tries
// Results of the systematic schedule of a cluster, or of all clusters if they
// communicate.
typedef struct SimOrders {
  uint64_t cluster;        // index of the first cluster
  uint64_t count, hash;    // count: number of steps; hash: of their order,
                           // equal for orders that commute
  uint64_t switches;       // switches from a warp that could have continued
  uint32_t flags, src;
  SimSwap *swap;
  size_t nswap;
  uint64_t *turn;          // actors of the steps; only with SimOpts.turn
  uint32_t *line;          // lines of the steps (index into Fn.src)
  size_t nturn;
} SimOrders;

#endif
// SPDX-License-Identifier: MIT
