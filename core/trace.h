// Between tracelib.c (functions, regions, hooks) and vallib.c (traced
// scalars): the userdata of a traced scalar.
#ifndef CUTE_TRACE_H
#define CUTE_TRACE_H

#include "face.h"

// A traced scalar. `birth` tells an instruction of an earlier, rolled-back
// pass from the one that took its place.
typedef struct Value {
  uint32_t serial, birth;
  Ref r;
  uint32_t at;    // Fn.src of the line with == or ~= that it came to, or 0
  bool consumed;  // of those watched: did anything use it?
} Value;

// vallib.c
Value *trace_push(lua_State *L, Ctx *cx, Ref r);
Value *trace_value(lua_State *L, int idx);  // NULL when it is none
// Fails unless v belongs to the function being traced and is not stale.
void trace_own(Ctx *cx, const Value *v);

// kernlib.c: replaces argument number `param` of the kernel function at
// stack index func, which is at idx, by what the kernel sees, and adds to the
// signature at sig.
void kernlib_param(Ctx *cx, lua_State *L, int func, int sig, int param,
                   int idx);

// hooklib.c: the hook for lines and returns; started anew for each trace.
void hooklib_start(lua_State *L);
void hooklib_on(lua_State *L, bool on);

// Lists the traced value on top, and pops it: something must use it.
void trace_watch(lua_State *L);

// Registry: the trace's state while one is on, a table with
//   watched: array of traced booleans, and of values that came to be on a
//     line with == or ~=, in order
//   lines: {[chunk source] = what cute.lex tells of its lines}
#define TRACE_STATE "cute.trace"

#endif
