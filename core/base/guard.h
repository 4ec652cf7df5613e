// Limits of a call into a Lua state that an application embeds: a budget of
// instructions, a deadline, and requests from other threads to end the call.
// The Lua interpreter, the simulator and other long loops count their
// instructions and end when a limit is reached.
#ifndef CUTE_GUARD_H
#define CUTE_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reasons to end a call; GUARD_GOES_ON: none.
typedef enum GuardEnd {
  GUARD_GOES_ON, GUARD_BUDGET, GUARD_TIME, GUARD_ASKED
} GuardEnd;

typedef struct Guard {
  _Atomic int end;             // a GuardEnd
  // number of instructions that the call may still execute
  _Atomic int64_t left;
  // time (base_nanotime) at which the call must end; 0: no deadline
  _Atomic uint64_t deadline;
  // The state's memory in bytes: `most` is the limit, `used` the current use,
  // and `peak` the largest use so far.
  size_t most;
  _Atomic size_t used, peak;
  // Number of Lua instructions between two checks of the limits; 0: no checks.
  int step;
  bool untrusted;  // whether the call is forbidden to open CUDA libraries
  // A Lua state has one debug hook. While the budget needs it, the tracer's
  // hook is saved here with its mask and count, and the budget's hook calls it
  // (bind/limit.c).
  void (*hook)(void);
  int mask, count;
} Guard;

// The guard of the running call; NULL outside of the library libcutelua.
// Threads that the call starts use the same guard.
extern _Thread_local Guard *guard_now;

// Counts n instructions against the running call's budget, and reads the clock.
// Returns false if the call must end.
bool guard_spend(uint64_t n);
// Reports whether the running call must end, without reading the clock.
static inline bool guard_ended(void) {
  return guard_now &&
         atomic_load_explicit(&guard_now->end, memory_order_relaxed);
}

#endif
// SPDX-License-Identifier: MIT
