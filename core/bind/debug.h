// Interface between simlib.c, which runs a kernel, and debuglib.c, which stops
// it.
#ifndef CUTE_BINDDEBUG_H
#define CUTE_BINDDEBUG_H

#include "bind/face.h"
#include "sim/debug.h"

// Reads the options at t. The function `debug` is called at every stop, and
// returns the next goal. `goal` is the first goal. Pushes the owner of the
// debugger's state. Without such an option, returns NULL and pushes nil.
SimDebug *debuglib_start(lua_State *L, int t, const Fn *fn);
// Called after the run. If the option's function raised an error, raises it
// again.
void debuglib_end(lua_State *L, SimDebug *d);
// Adds to the report on top: the number of steps, and (recall) the last
// condition met, as in stop:where().
void debuglib_told(lua_State *L, const SimDebug *d);

#endif
// SPDX-License-Identifier: MIT
