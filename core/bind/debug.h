// Between simlib.c, which runs a kernel, and debuglib.c, which holds it.
#ifndef CUTE_BINDDEBUG_H
#define CUTE_BINDDEBUG_H

#include "bind/face.h"
#include "sim/debug.h"

// Options at t: `debug` is called in each stop with what looks at it, and
// gives what to run to next, `goal` being that of the beginning. Pushes what
// holds all that; NULL, and nil: there is no such option.
SimDebug *debuglib_start(lua_State *L, int t, const Fn *fn);
// The run is over; raises what the function raised.
void debuglib_end(lua_State *L, SimDebug *d);
// Of the run, into the report on top: how many steps it had, and what was met
// last on the way (`recall`), as stop:where() has it.
void debuglib_told(lua_State *L, const SimDebug *d);

#endif
