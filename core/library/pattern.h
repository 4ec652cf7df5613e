// Lua's pattern functions for untrusted scripts. Matching counts against the
// call's budget of instructions, which stops a pattern that would need
// exponential time.
#ifndef CUTE_PATTERN_H
#define CUTE_PATTERN_H

#include <lua.h>

// Replaces find, match, gmatch and gsub in the table on top of the stack.
void pattern_open(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
