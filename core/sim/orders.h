// What a run with a systematic schedule (turns.h) found out about other
// schedules.
#ifndef CUTE_SIMORDERS_H
#define CUTE_SIMORDERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct SimSwap {   // two steps in the opposite order
  uint32_t src, src2;      // line of the first step; of the other one
  uint64_t *turn;          // required first steps of such a schedule: their
                           // actors
  size_t nturn;
} SimSwap;
enum { SIM_FULL = 1,       // there is more than was kept
       SIM_LANES = 2,      // lanes of one instruction conflict at `src`
       SIM_MISSED = 4,     // SimOpts.turn could not be followed to its end
       SIM_IDLE = 8,       // its last step had no effect: a poll failed
       SIM_MANY = 16,      // too many warps: nothing was recorded
       SIM_CLOCK = 32,     // `src` reads a clock, or the SM number
       SIM_SUMS = 64,      // `src` adds floats by atomics, in any order
       SIM_APART = 128,    // in the end no warp, or only other lanes, could run
       SIM_TRIES = 256 };  // the result of a try_wait was for another wait than
                           // the one it decided about: see Launch.tries
// Schedules of a cluster, or of all if clusters communicate.
typedef struct SimOrders {
  uint64_t cluster;        // the first one
  uint64_t count, hash;    // steps; hash of their order, up to commutation
  uint64_t switches;       // switches from a warp that could have continued
  uint32_t flags, src;
  SimSwap *swap;
  size_t nswap;
  uint64_t *turn;          // SimOpts.turn only: actors of the steps
  uint32_t *line;          // and their lines (Fn.src)
  size_t nturn;
} SimOrders;

#endif
// SPDX-License-Identifier: MIT
