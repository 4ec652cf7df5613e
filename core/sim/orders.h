// What a run whose schedule is decided (turns.h) says of other schedules.
#ifndef CUTE_SIMORDERS_H
#define CUTE_SIMORDERS_H

#include <stddef.h>
#include <stdint.h>

typedef struct SimSwap {   // two turns, the other way round
  uint32_t src, src2;      // the first one's line, and the other's
  uint64_t *turn;          // a schedule that begins so: who has the first turns
  size_t nturn;
} SimSwap;
enum { SIM_FULL = 1,       // more of it than is kept
       SIM_LANES = 2,      // lanes of one instruction at one place: `src`
       SIM_MISSED = 4,     // SimOpts.turn could not be followed to its end
       SIM_IDLE = 8,       // ... which came to nothing: somebody asked in vain
       SIM_MANY = 16,      // too many warps: nothing was looked at
       SIM_CLOCK = 32,     // the kernel asks what time it is, or which SM: src
       SIM_SUMS = 64,      // floats that atomics add, in any order: src
       SIM_APART = 128,    // in the end nobody could go on, or lanes apart
       SIM_TRIES = 256 };  // an answer of try_wait was for another wait than
                           // the one it decided about: see Launch.tries
// Of a cluster, or of all where they hand over.
typedef struct SimOrders {
  uint64_t cluster;        // the first of them
  uint64_t count, hash;    // turns; of their order, as far as it matters
  uint64_t switches;       // turns of another warp though one could go on
  uint32_t flags, src;
  SimSwap *swap;
  size_t nswap;
  uint64_t *turn;          // of SimOpts.turn only: who had them, and where
  uint32_t *line;          // (Fn.src)
  size_t nturn;
} SimOrders;

#endif
