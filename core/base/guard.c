// Counts the instructions of a call into an embedded Lua state against its
// budget.
#include "base/guard.h"

#include "base/base.h"

_Thread_local Guard *guard_now;

static bool end(Guard *g, GuardEnd why) {
  int none = GUARD_GOES_ON;
  atomic_compare_exchange_strong(&g->end, &none, (int)why);
  return false;
}

bool guard_spend(uint64_t n) {
  Guard *g = guard_now;
  if (!g) return true;
  if (atomic_load_explicit(&g->end, memory_order_relaxed)) return false;
  int64_t cost = n > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)n;
  int64_t left = atomic_fetch_sub_explicit(&g->left, cost,
                                           memory_order_relaxed);
  if (left < cost) return end(g, GUARD_BUDGET);
  uint64_t deadline = atomic_load_explicit(&g->deadline, memory_order_relaxed);
  if (deadline && base_nanotime() > deadline) return end(g, GUARD_TIME);
  return true;
}
// SPDX-License-Identifier: MIT
