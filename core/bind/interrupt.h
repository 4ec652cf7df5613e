// Ctrl-C in the program: a hook that raises an error stops the running code.
// Hooks belong to a coroutine, so `resume` and `wrap` of the coroutine library
// are replaced by versions that record which one runs.
#ifndef CUTE_INTERRUPT_H
#define CUTE_INTERRUPT_H

#include <lua.h>

// lua_sethook that keeps a pending Ctrl-C pending.
void interrupt_sethook(lua_State *L, lua_Hook f, int mask, int count);

// While the prompt waits for a key, it handles Ctrl-C itself. interrupt_watch
// records Ctrl-C from now until the program ends (outside of sys.call, no error
// is raised).
void interrupt_watch(void);
void interrupt_answered(void);

// call(f, handler, ...): xpcall in which Ctrl-C raises "interrupted".
int interrupt_call(lua_State *L);
// Replaces coroutine.resume and coroutine.wrap.
void interrupt_open(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
