// The budget of a call into an embedded Lua state (base/guard.h). It is
// enforced by a debug hook, which raises an error when the call must end.
#ifndef CUTE_LIMIT_H
#define CUTE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

// Sets the hook of the budget in L. New coroutines inherit it. If the running
// call has no guard, or the guard's `step` is 0, removes the hook.
void limit_start(lua_State *L);
// Sets a hook like lua_sethook, but does not replace the hook of the budget.
void limit_sethook(lua_State *L, lua_Hook f, int mask, int count);
// Reports whether the running call has a hook of the budget.
bool limit_active(void);
// Counts n instructions against the budget. Raises an error if the call must
// end.
void limit_spend(lua_State *L, uint64_t n);
// Returns the reason why a call ended, such as "exceeded its budget of
// instructions".
const char *limit_reason(int end);

#endif
// SPDX-License-Identifier: MIT
