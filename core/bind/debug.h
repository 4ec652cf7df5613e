// Interface between simlib.c, which runs a kernel, and debuglib.c, which stops
// the run.
#ifndef CUTE_BINDDEBUG_H
#define CUTE_BINDDEBUG_H

#include "bind/face.h"
#include "watch/debugger.h"

// Starts the debugger with the options in the table at t, and pushes the
// userdata that owns its state. The option `debug` is a function, called at
// each stop of the run. It returns the goal of the next stop. The option `goal`
// is the goal of the first stop. Without `debug`, pushes nil and returns NULL.
SimDebug *debuglib_start(lua_State *L, int t, const Fn *fn);
// Ends the debugger after the run. If the function `debug` raised an error,
// raises it again.
void debuglib_end(lua_State *L, SimDebug *d);
// Adds the number of steps to the report on top of the stack. If the goal has
// `recall`, also adds the last breakpoint or change that the run met, in the
// form of stop:where().
void debuglib_told(lua_State *L, const SimDebug *d);
// Pushes a fault as a table, in the form of the entries of the lists `reports`
// and `relies` in the simulator's report.
void simlib_push_report(lua_State *L, Ctx *cx, const Fn *fn,
                        const SimReport *r);

#endif
// SPDX-License-Identifier: MIT
