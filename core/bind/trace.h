// Interface between tracelib.c (functions, regions, hooks) and vallib.c (traced
// scalars): the userdata of a traced scalar.
#ifndef CUTE_TRACE_H
#define CUTE_TRACE_H

#include "bind/face.h"

// A traced scalar. `birth` distinguishes its instruction from one of a later
// pass with the same index.
typedef struct Value {
  uint32_t serial, birth;
  Ref r;
  const void *made;  // address after the script's instruction that created it
  uint32_t tested;   // booleans: line where Lua tested it; 0: none
  bool consumed;  // booleans: it was used
  bool lazy;      // whether it may stay unused unless Lua's `if` tested it
  bool truth;     // whether it stands for a Lua boolean at the start or end of
                  // a region: Lua must not test it
  bool choice;    // whether it is a select between the numbers in its user
                  // values
  uint32_t undefined;  // undefined: message for uses of it, index into Fn.text
                       // (core.undefined)
} Value;

// vallib.c
Value *trace_push(lua_State *L, Ctx *cx, Ref r);
// Pushes a value that selects between the numbers at a and b. Like a plain
// number, it takes the type of the other operand.
void trace_push_choice(lua_State *L, Ctx *cx, Ref r, int a, int b);
bool trace_is_choice(lua_State *L, int idx);
Value *trace_value(lua_State *L, int idx);  // NULL: not a traced scalar
// Raises an error unless v belongs to the traced function and is not stale.
void trace_own(Ctx *cx, const Value *v);

// tracelib.c: a copy of a layout in scratch, with the addresses of its dynamic
// leaves and of the offsets of its functions.
typedef struct TraceLeaves {
  Layout *l;
  Dim **dyn;
  size_t n;
} TraceLeaves;
TraceLeaves trace_leaves(Ctx *cx, Layout l);

// kernlib.c: replaces the n arguments of the kernel function at stack index
// func, from `first` on, by what the kernel sees.
void kernlib_see_arguments(Ctx *cx, lua_State *L, int func, int first, int n);

// donelib.c: raise errors about the kernel, after its function returned, and
// after its IR was verified.
void donelib_check_use(Ctx *cx, lua_State *L);
void donelib_check(Ctx *cx, lua_State *L);

// hooklib.c: the hook for lines and returns; set anew for each trace.
void hooklib_start(lua_State *L);
void hooklib_on(lua_State *L, bool on);
// Pops a table or nil. Writes to tables are recorded in that table from now on.
void hooklib_note(lua_State *L);
// Called before C code writes the table at idx.
void hooklib_wrote(lua_State *L, int idx);
// Makes the hook examine instructions for undefined values from now on.
void hooklib_undefined(lua_State *L);

// Pops a traced value and lists it as one that must be used.
void trace_watch(lua_State *L);

// The instruction at which a count hook runs (bytecode.c). It is read only if
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
VmIns bytecode_behind(const lua_Debug *ar);  // the next instruction
const void *bytecode_place(const lua_Debug *ar);  // address of the instruction
// Pushes the value of register `reg` of the running function, from 0 on.
// Returns its name if it is a local, else NULL.
const char *bytecode_register(lua_State *L, lua_Debug *ar, int reg);

// table_writes.c: changes of Lua state in a region: tables, coroutines.
// `writes` is the stack index of the table with the record.
enum { WRITERS = 5 };
typedef struct Writers {     // functions of Lua's library; NULL: absent
  lua_CFunction f[WRITERS];
  // wrapped is the function that coroutine.wrap returns.
  lua_CFunction resume, wrapped;
  lua_CFunction setmetatable;
} Writers;
enum { READERS = 18 };
typedef struct Readers {     // functions that examine their arguments; NULL:
                             // absent
  lua_CFunction f[READERS];
} Readers;
void table_writes_find(lua_State *L, Writers *w, Readers *r);
bool table_writes_reads(const Readers *r, lua_CFunction f);
// Called before an instruction that writes or creates a table, or calls.
// Returns true if it creates one; then table_writes_born must be called.
bool table_writes_see(lua_State *L, const Writers *w, lua_Debug *ar, VmIns in,
                      int writes);
void table_writes_born(lua_State *L, lua_Debug *ar, int reg, int writes);
// Pops a table that is about to be written.
void table_writes_note(lua_State *L, int writes);

// Registry: the state of the current trace, a table with
//   watched: array of traced booleans, in order
//   lines: {[chunk source] = {[line] = names that it assigns}}
//   lex: function(chunk source), which gives the latter
//   ran: {[function of the user's that ran] = true}
//   elements: of host buffers that were read, {n = , ...}: see buflib.c
//   accumulate, tiled: fields of tiled MMAs, see atomlib.c
//   known: hooks can read this Lua's instructions
//   constant: function(f, i), constant number i of a function's code
//   surplus: function(callee, fixed, inner), see cute.lang.surplus
//   kernel: the traced function
//   truth: function(register, state), see cute.lang.truth
//   record: function(n), called for each line of the user's code, or nil
//   undefined: {tested = function(value), which returns what Lua tests
//     instead of an undefined value; holders = {[table with some] = true};
//     read = function(table), which raises an error if a table has one}
#define TRACE_STATE "cute.trace"

#endif
// SPDX-License-Identifier: MIT
