// A launch: a function, its grid, and its arguments in host memory.
#ifndef CUTE_DECODE_LAUNCH_H
#define CUTE_DECODE_LAUNCH_H

#include "base/tensormap.h"
#include "decode/patch.h"

enum { SIM_READ = 1, SIM_WRITTEN = 2, SIM_FAR = 2 };
typedef struct LaunchArg {
  void *p;           // pointer argument: host memory
  size_t bytes;      // size of the host memory
  // one bit for each byte: whether it was written; NULL: all bytes were written
  uint8_t *defined;
  const TensorMap *map;  // tensor-map argument: the map
  uint64_t bits;     // scalar argument: its raw bits
  // How earlier launches use this memory. SIM_READ, SIM_WRITTEN: the preceding
  // launch reads or writes it. SIM_READ << SIM_FAR, SIM_WRITTEN << SIM_FAR: a
  // launch before the preceding one reads or writes it, and may still run.
  uint8_t before;
} LaunchArg;
typedef struct Launch {
  const Fn *fn;
  int32_t grid[3], block[3], cluster[3];
  const LaunchArg *arg;  // the fn->arg.n arguments
  // other memory to which raw pointers of the kernel may point
  const LaunchArg *known;
  size_t nknown;
  int sm;                // architecture of the target: 80, 90, ...
  // whether the launch may start before the preceding launch completes
  bool pdl;
  // whether every try_wait is a scheduling step, even if its result only
  // decides whether a wait follows (try_wait.h)
  bool tries;
  const SimPatch *patch;   // patches of fn (patch.h)
  size_t npatch;
  struct SimDebug *debug;  // the attached debugger (debugger.h), or NULL
  // for each instruction of fn, a counter of executions by warps, which the run
  // increases; NULL: not counted
  uint64_t *executed;
} Launch;

// A counter in global memory that threads may increment atomically, and that is
// not 0 when the launch begins. `mem` is 1 + its object's index into Fn.mem, or
// 0 if no counter was found. `at` is its element of the object. `value` is its
// value at the start of the launch.
typedef struct SimCounter { int32_t mem; int64_t at, value; } SimCounter;

#endif
// SPDX-License-Identifier: MIT
