// The userdata of a traced scalar, and functions for tracing that files of
// core/bind share: tracelib.c (functions, regions), hooklib.c (hooks), vallib.c
// (traced scalars) and others.
#ifndef CUTE_TRACE_H
#define CUTE_TRACE_H

#include "bind/face.h"

// The userdata of a traced scalar. `r` is the IR instruction that computes it.
// IR instructions may be removed and traced again, as when a loop is traced a
// second time. `birth` distinguishes the instruction from a later one with the
// same r.
typedef struct Value {
  uint32_t serial, birth;
  Ref r;
  // address of the Lua bytecode instruction that follows the one that created
  // the value
  const void *made;
  uint32_t tested;   // for a boolean: line where Lua tested it, or 0
  bool consumed;  // for a boolean: whether a kernel operation used it
  // for a boolean: whether it may stay unused without an error
  bool lazy;
  // whether the value replaces a Lua boolean that changes in a loop or branch;
  // Lua must not test it
  bool truth;
  // whether the value selects between two plain numbers, its uservalues
  bool choice;
  // If not 0, the value is undefined (see tracelib.c): each use raises an
  // error. This is the error's message, an index into Fn.text.
  uint32_t undefined;
} Value;

// vallib.c
Value *trace_push(lua_State *L, Ctx *cx, Ref r);
// Pushes value r, which selects one of the numbers at stack indices a and b. In
// an operation with a traced operand, it takes the operand's type, as a plain
// number does.
void trace_push_choice(lua_State *L, Ctx *cx, Ref r, int a, int b);
bool trace_is_choice(lua_State *L, int idx);
// returns the traced scalar at idx, or NULL
Value *trace_value(lua_State *L, int idx);
// Raises an error if v cannot be used: it belongs to another kernel, it is
// undefined, or its instruction was removed.
void trace_own(Ctx *cx, const Value *v);

// tracelib.c: a copy of a layout in scratch. `dyn` has the addresses, in the
// copy, of its traced extents, strides and offsets.
typedef struct TraceLeaves {
  Layout *l;
  Dim **dyn;
  size_t n;
} TraceLeaves;
TraceLeaves trace_leaves(Ctx *cx, Layout l);

// kernlib.c: replaces the n arguments of the kernel function at `func`, from
// stack index `first` on, by the traced values for the kernel.
void kernlib_see_arguments(Ctx *cx, lua_State *L, int func, int first, int n);

// Checks of a finished trace (donelib.c). donelib_check_use runs when the
// kernel's Lua function has returned, donelib_check when the verifier has
// accepted the IR. Both raise a Lua error if the check fails.
void donelib_check_use(Ctx *cx, lua_State *L);
void donelib_check(Ctx *cx, lua_State *L);

// hooklib.c: the debug hook of a trace. hooklib_start creates the state of the
// hook for a new trace. hooklib_on switches the hook on or off.
void hooklib_start(lua_State *L);
void hooklib_on(lua_State *L, bool on);
// Pops a table, in which the hook records writes to tables from now on. If nil
// is popped, the hook records none.
void hooklib_note(lua_State *L);
// Records that C code is about to write the table at idx.
void hooklib_wrote(lua_State *L, int idx);
// Makes the hook watch for uses of undefined values from now on.
void hooklib_undefined(lua_State *L);

// Pops a traced value, and adds it to the list of values that the kernel must
// use.
void trace_watch(lua_State *L);

// bytecode.c: an instruction of a Lua function, found by a count hook. Valid
// only if bytecodelib.c has confirmed that the internal structures of this Lua
// version are known.
typedef struct VmIns {
  uint8_t op, a, b, c;
  bool k;  // whether c is the index of a constant, not of a register
} VmIns;
enum { VM_GETTABLE = 12, VM_SETTABUP = 15, VM_SETTABLE = 16, VM_SETI = 17,
       VM_SETFIELD = 18, VM_NEWTABLE = 19, VM_NOT = 51, VM_LEN = 52,
       VM_EQ = 57, VM_EQK = 60, VM_EQI = 61, VM_TEST = 66, VM_TESTSET = 67,
       VM_CALL = 68, VM_TAILCALL = 69, VM_FORPREP = 74, VM_TFORPREP = 75,
       VM_TFORCALL = 76, VM_SETLIST = 78 };
VmIns bytecode_at(const lua_Debug *ar);
// Returns the instruction after the one that bytecode_at returns.
VmIns bytecode_behind(const lua_Debug *ar);
// Returns the address after the instruction that bytecode_at returns.
const void *bytecode_place(const lua_Debug *ar);
// Pushes the value of register `reg` (counted from 0) of the running function.
// Returns its name if it is a local variable, else NULL.
const char *bytecode_register(lua_State *L, lua_Debug *ar, int reg);

// bytecodelib.c: to be called by an __index that returns an element type.
// Detects scripts that compare the type with a string, which is always false.
void trace_typed(lua_State *L);

// table_writes.c: records what a region changes in Lua's state: tables and
// coroutines. `writes` is the stack index of the table that contains the
// record.
enum { WRITERS = 5 };
typedef struct Writers {     // library functions that change state, or NULL
  lua_CFunction f[WRITERS];
  // `wrapped` is the C function that coroutine.wrap returns
  lua_CFunction resume, wrapped;
  lua_CFunction setmetatable;
} Writers;
enum { READERS = 18 };
// library functions that examine their arguments, or NULL
typedef struct Readers {
  lua_CFunction f[READERS];
} Readers;
void table_writes_find(lua_State *L, Writers *w, Readers *r);
bool table_writes_reads(const Readers *r, lua_CFunction f);
// Records the effects of the next instruction if it writes to or creates a
// table, or calls a function. Returns true if it creates a table. The caller
// must then call table_writes_born after the instruction.
bool table_writes_see(lua_State *L, const Writers *w, lua_Debug *ar, VmIns in,
                      int writes);
void table_writes_born(lua_State *L, lua_Debug *ar, int reg, int writes);
// Pops a table to which something is about to write, and records this.
void table_writes_note(lua_State *L, int writes);

// Key in the registry of the state of the current trace, a table with
//   watched: list of traced booleans that must be used, in order
//   lines: {[chunk source] = {[line] = names that the line assigns}}
//   lex: function(chunk source), which returns that chunk's entry of `lines`
//   ran: {[user function that ran] = true}
//   elements: list of the elements of host buffers that were read (buflib.c)
//   accumulate, tiled: fields of tiled MMAs (atomlib.c)
//   known: whether hooks can read this Lua's instructions
//   constant: function(f, i), which returns constant i of a function's code
//   surplus: function(callee, fixed, inner): see cutelua.text.surplus
//   kernel: the traced function
//   truth: function(register, this table): see cute.lang.truth
//   record: function(n), called for each line of the user's code, or nil
//   undefined: {tested = function(value), which returns the value that Lua
//     tests instead of an undefined one; holders = {[table with undefined
//     values] = true}; read = function(table), which raises an error for one}
#define TRACE_STATE "cute.trace"

#endif
// SPDX-License-Identifier: MIT
