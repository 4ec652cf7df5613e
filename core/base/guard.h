// Limits of a call into a Lua state that an application embeds: a budget of
// instructions, a deadline, and requests of other threads to end the call.
// Interpreters and long loops spend the budget, and end when it is exhausted.
#ifndef CUTE_GUARD_H
#define CUTE_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Why a call must end.
typedef enum GuardEnd {
  GUARD_GOES_ON, GUARD_BUDGET, GUARD_TIME, GUARD_ASKED
} GuardEnd;

typedef struct Guard {
  _Atomic int end;             // a GuardEnd
  _Atomic int64_t left;        // number of instructions that may be executed
  _Atomic uint64_t deadline;   // value of base_nanotime; 0: none
  // The state's memory in bytes: the limit, the current use, and the maximum so
  // far.
  size_t most;
  _Atomic size_t used, peak;
  // Number of Lua instructions between two checks; 0: Lua runs without checks.
  int step;
  bool untrusted;              // whether no library of CUDA may be opened
  // The tracer's hook, which the hook of the budget calls (bind/limit.c).
  void (*hook)(void);
  int mask, count;
} Guard;

// The guard of the running call; NULL outside of the library libcutelua. A
// thread that a call starts inherits the guard of the call.
extern _Thread_local Guard *guard_now;

// Spends n instructions of the running call's budget, and reads the clock.
// Returns false if the call must end.
bool guard_spend(uint64_t n);
// Reports whether the running call must end, without reading the clock.
static inline bool guard_ended(void) {
  return guard_now &&
         atomic_load_explicit(&guard_now->end, memory_order_relaxed);
}

#endif
// SPDX-License-Identifier: MIT
