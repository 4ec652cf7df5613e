// Ctrl-C in the program: what runs is stopped by a hook that raises. The
// hook is a thread's (a coroutine's) own, so `resume` and `wrap` of the
// coroutine library are ours, and tell which one runs.
#ifndef CUTE_INTERRUPT_H
#define CUTE_INTERRUPT_H

#include <lua.h>

// lua_sethook that leaves a pending Ctrl-C pending.
void interrupt_sethook(lua_State *L, lua_Hook f, int mask, int count);

// Waiting for a key, the prompt answers Ctrl-C itself: notes it from here on
// and until the program ends (outside of sys.call nothing is raised).
void interrupt_watch(void);
void interrupt_answered(void);

// call(f, handler, ...): xpcall in which Ctrl-C raises "interrupted".
int interrupt_call(lua_State *L);
// Replaces coroutine.resume and coroutine.wrap.
void interrupt_open(lua_State *L);

#endif
