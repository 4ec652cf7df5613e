// Between tracelib.c (functions, regions, hooks) and vallib.c (traced
// scalars): the userdata of a traced scalar.
#ifndef CUTE_TRACE_H
#define CUTE_TRACE_H

#include "bind/face.h"

// A traced scalar. `birth` tells an instruction of an earlier, rolled-back
// pass from the one that took its place.
typedef struct Value {
  uint32_t serial, birth;
  Ref r;
  const void *made;  // behind the script's instruction that made it
  uint32_t tested;   // of booleans: where Lua tested it, 0: nowhere
  bool consumed;  // of booleans: did anything use it?
  bool lazy;      // something must only if Lua's `if` has tested it
  bool truth;     // a boolean of Lua at an end of a region: no test is right
  bool choice;    // a select of the numbers that are its user values
  uint32_t undefined;  // stands for nothing; what to say where it is used, an
                       // index into Fn.text (core.undefined)
} Value;

// vallib.c
Value *trace_push(lua_State *L, Ctx *cx, Ref r);
// One that chooses between the numbers at a and b: it takes the type that it
// meets, as they would.
void trace_push_choice(lua_State *L, Ctx *cx, Ref r, int a, int b);
bool trace_is_choice(lua_State *L, int idx);
Value *trace_value(lua_State *L, int idx);  // NULL when it is none
// Fails unless v belongs to the function being traced and is not stale.
void trace_own(Ctx *cx, const Value *v);

// tracelib.c: a layout of its own in scratch, with where its dynamic leaves
// (and what its functions add) are.
typedef struct TraceLeaves {
  Layout *l;
  Dim **dyn;
  size_t n;
} TraceLeaves;
TraceLeaves trace_leaves(Ctx *cx, Layout l);

// kernlib.c: replaces the n arguments of the kernel function at stack index
// func, which are from `first` on, by what the kernel sees.
void kernlib_see_arguments(Ctx *cx, lua_State *L, int func, int first, int n);

// donelib.c: raise for what a kernel did wrong, when its function returned and
// when its IR was verified.
void donelib_check_use(Ctx *cx, lua_State *L);
void donelib_check(Ctx *cx, lua_State *L);

// hooklib.c: the hook for lines and returns; started anew for each trace.
void hooklib_start(lua_State *L);
void hooklib_on(lua_State *L, bool on);
// Pops a table, in which writes to tables are noted from now on, or nil.
void hooklib_note(lua_State *L);
// The table at idx is about to be written, by C.
void hooklib_wrote(lua_State *L, int idx);
// From now on there are undefined values: instructions are checked for them.
void hooklib_undefined(lua_State *L);

// Lists the traced value on top, and pops it: something must use it.
void trace_watch(lua_State *L);

// bytecode.c: the instruction that a hook for counts is at. Only where
// cute.bytecode knows this Lua.
typedef struct VmIns {
  uint8_t op, a, b, c;
  bool k;  // c is a constant
} VmIns;
enum { VM_GETTABLE = 12, VM_SETTABUP = 15, VM_SETTABLE = 16, VM_SETI = 17,
       VM_SETFIELD = 18, VM_NEWTABLE = 19, VM_NOT = 51, VM_LEN = 52,
       VM_EQ = 57, VM_EQK = 60, VM_EQI = 61, VM_TEST = 66, VM_TESTSET = 67,
       VM_CALL = 68, VM_TAILCALL = 69, VM_FORPREP = 74, VM_TFORPREP = 75,
       VM_TFORCALL = 76, VM_SETLIST = 78 };
VmIns bytecode_at(const lua_Debug *ar);
VmIns bytecode_behind(const lua_Debug *ar);  // the one after it
const void *bytecode_place(const lua_Debug *ar);  // where that stands
// Pushes what is at stack index `reg` of the running function, from 0 on. Its
// name when it is a local, else NULL.
const char *bytecode_register(lua_State *L, lua_Debug *ar, int reg);

// table_writes.c: what a region changes of Lua: tables, coroutines. `writes` is
// the stack index of the table that it is noted in.
enum { WRITERS = 5 };
typedef struct Writers {     // functions of Lua's library; NULL: not there
  lua_CFunction f[WRITERS];
  lua_CFunction resume, wrapped;  // wrapped: what coroutine.wrap gives
  lua_CFunction setmetatable;
} Writers;
enum { READERS = 18 };
typedef struct Readers {     // functions that look at what they get; likewise
  lua_CFunction f[READERS];
} Readers;
void table_writes_find(lua_State *L, Writers *w, Readers *r);
bool table_writes_reads(const Readers *r, lua_CFunction f);
// An instruction that writes a table, makes one, or calls is about to run;
// true when it makes one, of which table_writes_born then has to be told.
bool table_writes_see(lua_State *L, const Writers *w, lua_Debug *ar, VmIns in,
                      int writes);
void table_writes_born(lua_State *L, lua_Debug *ar, int reg, int writes);
// The table on top is about to be written. Pops it.
void table_writes_note(lua_State *L, int writes);

// Registry: the trace's state while one is on, a table with
//   watched: array of traced booleans, in order
//   lines: {[chunk source] = {[line] = names that it assigns}}
//   lex: function(chunk source), which gives the latter
//   ran: {[function of the user's that ran] = true}
//   elements: of host buffers that were read, {n = , ...}: see buflib.c
//   accumulate, tiled: fields of tiled MMAs, see atomlib.c
//   known: is this a Lua whose instructions hooks can look at?
//   constant: function(f, i), constant number i of a function's code
//   surplus: function(callee, fixed, inner), see cute.lang.surplus
//   kernel: the function that is traced
//   truth: function(register, state), see cute.lang.truth
//   record: function(n), told of each line of the user's code, or nil
//   undefined: {tested = function(value), which gives what Lua is to test
//     instead of an undefined value; holders = {[table with some] = true};
//     read = function(table), which fails where a table has one}
#define TRACE_STATE "cute.trace"

#endif
