// Results of runs with systematic schedules (interleave.h).
#ifndef CUTE_SIMORDERS_H
#define CUTE_SIMORDERS_H

#include <stddef.h>
#include <stdint.h>

// Two scheduling steps that another schedule can execute in the opposite order.
typedef struct SimSwap {
  // src: source line of the step that was executed first. src2: source line of
  // the other step.
  uint32_t src, src2;
  // the actors (decode/actors.h) that make the first steps in the opposite
  // order
  uint64_t *turn;
  size_t nturn;
} SimSwap;
// Flags of SimOrders. SIM_FULL: results were dropped for lack of memory.
enum { SIM_FULL = 1,
       // lanes of one instruction conflict with each other at line `src`
       SIM_LANES = 2,
       // SimOpts.turn requires steps that could not all be executed
       SIM_MISSED = 4,
       // the last step that SimOpts.turn requires was a poll that failed
       SIM_IDLE = 8,
       // the launch has too many warps, so no scheduling steps were recorded
       SIM_MANY = 16,
       SIM_CLOCK = 32,     // line `src` reads a clock or the number of the SM
       // line `src` adds floats by atomics, so that the result depends on their
       // order
       SIM_SUMS = 64,
       // no scheduling step was possible, so the run ended
       SIM_APART = 128,
       // the kernel executes a wait only if a try_wait fails, but the wait was
       // for another phase than the try_wait (Launch.tries)
       SIM_TRIES = 256 };
// Results of a run with a systematic schedule: of one cluster, or of all
// clusters if they communicate.
typedef struct SimOrders {
  uint64_t cluster;        // index of the first cluster
  // `count` is the number of scheduling steps. `hash` is a hash of their order.
  // Two orders that differ only in the order of commuting steps have equal
  // hashes.
  uint64_t count, hash;
  // number of switches to another warp, although the current warp could have
  // continued
  uint64_t switches;
  uint32_t flags, src;
  SimSwap *swap;
  size_t nswap;
  uint64_t *turn;  // actor of each step; set only if SimOpts.turn is set
  uint32_t *line;          // line of each step, an index into Fn.src
  size_t nturn;
} SimOrders;

#endif
// SPDX-License-Identifier: MIT
