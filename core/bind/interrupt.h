// Ctrl-C in the program: a debug hook raises an error that stops the running
// code. A hook belongs to one coroutine, so coroutine.resume and coroutine.wrap
// are replaced by versions that record which coroutine runs.
#ifndef CUTE_INTERRUPT_H
#define CUTE_INTERRUPT_H

#include <lua.h>

// Sets a hook like lua_sethook, but does not replace the hook of an unhandled
// Ctrl-C or the hook of a budget (limit.h).
void interrupt_sethook(lua_State *L, lua_Hook f, int mask, int count);

// After interrupt_watch, each Ctrl-C increments signals_asked. It raises an
// error only in interrupt_call, because the prompt handles Ctrl-C itself while
// it waits for a key. interrupt_answered resets the count.
void interrupt_watch(void);
void interrupt_answered(void);

// call(f, handler, ...): calls f(...) as xpcall does. During the call, Ctrl-C
// raises the error "interrupted".
int interrupt_call(lua_State *L);
// Replaces coroutine.resume and coroutine.wrap by versions that record which
// coroutine runs.
void interrupt_open(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
