// Shared declarations of the Lua bindings: face.c, visible.c, show.c, error.c,
// context.c, arglib.c, and the values that have files of their own.
//
// A binding is a plain lua_CFunction whose first upvalue is the Ctx (registered
// with face_setfuncs). It starts with `Ctx *cx = face_enter(L)`, which sets
// cx's lua_State and empties cx->scratch. Data in scratch is lost when the
// function calls Lua.
#ifndef CUTE_FACE_H
#define CUTE_FACE_H

#include <lua.h>
#include <lauxlib.h>

#include "base/base.h"
#include "base/dtype.h"
#include "base/nearest.h"

#if defined(__GNUC__)
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

EXPORT int luaopen_cute_core(lua_State *L);  // require "cute.core"

// Each adds its part to the table on top of the stack, in this order (open.c).
void arglib_open(lua_State *L);
void cutelib_open(lua_State *L);
void filelib_open(lua_State *L);
void layoutlib_open(lua_State *L);
void layoutfn_open(lua_State *L);
void tuplelib_open(lua_State *L);
void alglib_open(lua_State *L);
void tensorlib_open(lua_State *L);
void hostlib_open(lua_State *L);
void veclib_open(lua_State *L);
void vallib_open(lua_State *L);
void oplib_open(lua_State *L);
void mathlib_open(lua_State *L);
void tracelib_open(lua_State *L);
void bytecodelib_open(lua_State *L);
void intrinlib_open(lua_State *L);
void printlib_open(lua_State *L);
void kernlib_open(lua_State *L);
void atomlib_open(lua_State *L);
void buflib_open(lua_State *L);
void gpulib_open(lua_State *L);
void devlib_open(lua_State *L);
void graphlib_open(lua_State *L);
void recordlib_open(lua_State *L);
void jitlib_open(lua_State *L);
void launchlib_open(lua_State *L);
void plan_cache_open(lua_State *L);
void symlib_open(lua_State *L);
void tmalib_open(lua_State *L);
void requestlib_open(lua_State *L);
void ptxlib_open(lua_State *L);
void editlib_open(lua_State *L);
void simlib_open(lua_State *L);
void debuglib_open(lua_State *L);
void generic_open(lua_State *L);
void dispatch_open(lua_State *L);

// Creates the context of a Lua state (context.c).
void context_new(lua_State *L);
Ctx *face_enter(lua_State *L);
// Returns the context without emptying scratch, for metamethods such as __index
// and __gc.
Ctx *face_ctx(lua_State *L);
Ctx *face_state(lua_State *L);  // face_ctx for functions without an upvalue

// Sets functions into the table on top, each with the Ctx as upvalue 1. A
// row's name with parameters, "size(layout, modes...)", makes a public one:
// see public.c.
void face_setfuncs(lua_State *L, const luaL_Reg *regs);
// face_setfuncs for rows, see row.h.
struct FnRow;
void face_setrows(lua_State *L, const struct FnRow *rows);
// Creates metatable `tname` (left on the stack) with these functions. Methods
// are also reachable through __index unless regs has its own __index.
void face_newtype(lua_State *L, const char *tname, const luaL_Reg *regs);

// Turns missing operators and fields of the type whose metatable is on top into
// errors that name them (called by face_newtype).
void face_complete(lua_State *L);
// Raises the error for an unknown field 2 of object 1, for types with their own
// __index. `fields` lists the names of fields, separated by spaces. The methods
// are in the table at `methods` or, if that is 0, in the metatable.
_Noreturn void face_nofield(lua_State *L, int methods, const char *fields);
// Returns " (did you mean stride?)", or "" if no offered name is similar.
const char *face_meant(lua_State *L, const Nearest *n);
// Raises an error unless all keys of the table at idx, if any, are among
// `names`, separated by spaces.
void face_check_options(lua_State *L, int idx, const char *names);

// Raises "file:line: msg [kind]" with the position of the innermost Lua
// function that is not cutelua's own (lua/cute, "=[cute...]"). The kind is
// appended to the first line of the message.
_Noreturn void face_error(lua_State *L, ErrKind kind, const char *fmt, ...)
  PRINTF_LIKE(3, 4);
// Raises an error like face_error, with a literal message. caller is NULL, or
// the chunk of the library that raises the error; the position is then outside
// of the library's folder.
_Noreturn void face_raise(lua_State *L, ErrKind kind, const char *msg,
                          const char *caller);
// Raises an error like face_error, at a line of a chunk (as in
// lua_Debug.source).
_Noreturn void face_error_at(lua_State *L, const char *chunk, int line,
                             ErrKind kind, const char *fmt, ...)
  PRINTF_LIKE(5, 6);
// "bad argument #2 to 'cute.composition' (layout expected, got nil)".
_Noreturn void face_argerror(lua_State *L, int arg, const char *want);
// Returns the value at idx as users would write it, shortened.
const char *face_show(lua_State *L, int idx);
// Returns the name of the public function that the user called, "cute.size";
// NULL if there is none.
const char *face_public(lua_State *L, char name[96]);
bool face_colon(lua_State *L);  // called as cute:f(...)
// Arguments of basic types; strings are not converted to numbers.
int64_t face_checkint(lua_State *L, int idx);
double face_checknum(lua_State *L, int idx);
const char *face_checkstr(lua_State *L, int idx);
const char *face_checklstr(lua_State *L, int idx, size_t *n);
void face_checktype(lua_State *L, int idx, int type);
int64_t face_optint(lua_State *L, int idx, int64_t otherwise);
double face_optnum(lua_State *L, int idx, double otherwise);
const char *face_optstr(lua_State *L, int idx, const char *otherwise);
void *face_checkudata(lua_State *L, int idx, const char *tname);
void face_checkany(lua_State *L, int idx);
// For failures that are no misuse: pushes nil and "msg [kind]"; returns 2.
int face_fail2(lua_State *L, ErrKind kind, const char *fmt, ...);

// Pushes external text (file names, headers, names chosen by users) in a form
// that a terminal may show. Control characters, characters that reorder a line,
// and bytes that are not UTF-8 become \x1b or \u{202e}. lines: newlines and
// tabs stay.
void face_push_visible(lua_State *L, const char *s, size_t n, bool lines);
// Pushes external text with its lines. Long lines are shortened in the middle,
// since a message may quote a whole file.
void face_push_message(lua_State *L, const char *s, size_t n);
// Returns the characters per line of a terminal: COLUMNS if it is a number from
// 1 on, else the terminal's answer; 0: not a terminal, or unknown.
int face_terminal_columns(int fd);

void face_push_buf(lua_State *L, Buf *b);  // pushes the text, frees b

// Sets field k of the table on top.
void face_set_int(lua_State *L, const char *k, lua_Integer v);
void face_set_num(lua_State *L, const char *k, lua_Number v);
void face_set_bool(lua_State *L, const char *k, bool v);
void face_set_str(lua_State *L, const char *k, const char *v);

// Return field k of the table at t.
int64_t face_get_int(lua_State *L, int t, const char *k, int64_t otherwise);
double face_get_num(lua_State *L, int t, const char *k, double otherwise);
bool face_get_bool(lua_State *L, int t, const char *k);

// Returns the type of a value as users know it ("layout", "tensor", "number").
const char *face_typename(lua_State *L, int idx);
// Finds the innermost user function. Returns false if there is none.
bool face_user(lua_State *L, lua_Debug *ar);
// Finds the position of the innermost user function: chunk source (as in
// lua_Debug.source), current line and function name. Returns false if there is
// none.
bool face_where(lua_State *L, char src[512], int *line, lua_Debug *ar);
// Writes the position of the innermost user function as "file.lua:31". Returns
// false if no file is known.
bool face_line(lua_State *L, char out[64]);
bool face_own_source(const char *src);  // whether the chunk is part of cutelua

// Return userdata with exactly metatable `tname`, or NULL; face_check raises an
// argument error.
void *face_test(lua_State *L, int idx, const char *tname);
void *face_check(lua_State *L, int idx, const char *tname, const char *want);

// Element types: a dtype is a light, interned userdata.
void face_push_dtype(lua_State *L, DType t);
DType face_test_dtype(lua_State *L, int idx);  // DT_NONE: not a dtype
DType face_check_dtype(lua_State *L, int idx);  // accepts its name, too

// Metatable names.
#define MT_DTYPE "cute.dtype"
#define MT_LAYOUT "cute.layout"
#define MT_CONST "cute.constant"  // `_`, bases, swizzles
#define MT_VALUE "cute.value"    // a traced scalar
#define MT_VECTOR "cute.vector"  // a traced register vector (TensorSSA)
#define MT_TENSOR "cute.tensor"
#define MT_ATOM "cute.atom"
#define MT_TILED "cute.tiled"
#define MT_SLICE "cute.slice"    // thr_mma, thr_copy
#define MT_FN "cute.fn"          // a traced function (IR)
#define MT_BUFFER "cute.buffer"  // host memory
#define MT_DEVBUF "cute.devbuf"  // device memory
#define MT_STREAM "cute.stream"
#define MT_LAUNCH "cute.launch"

// ---- shared by bindings of layouts and traced values ----
#include "base/bulk.h"
#include "tensor/tensor.h"

// laylib.c
void face_push_layout(lua_State *L, Layout l);       // copies
bool face_test_layout(lua_State *L, int idx, Layout *l);
Layout face_check_layout(lua_State *L, int idx);
// IntTuples: nested tables of integers, `_`, traced values and bases. A
// layout's shape prints in the same way. The result is in cx->scratch.
Tup face_check_tup(Ctx *cx, lua_State *L, int idx);
void face_push_tup(lua_State *L, Tup t);
void face_push_dim(lua_State *L, Dim d);  // integer, traced value, _, basis
bool face_test_dim(Ctx *cx, lua_State *L, int idx, Dim *d);

// vallib.c: traced scalars (MT_VALUE)
void face_push_value(lua_State *L, Ref r);           // pushes a value of the Fn
                                                     // being traced
bool face_test_value(Ctx *cx, lua_State *L, int idx, Ref *r);
// Returns a number, boolean or traced value as an IR value of type t (DT_NONE:
// its own type; integers i32 or i64, floats f32).
Ref face_check_value(Ctx *cx, lua_State *L, int idx, DType t);
// face_check_fits returns the number at idx as an integer of type t, which it
// must fit. face_number_bits returns a number or boolean as bits of any type,
// for kernels and stores of the host alike. (u32 accepts -1, too.)
lua_Integer face_check_fits(lua_State *L, int idx, DType t);
uint64_t face_number_bits(lua_State *L, int idx, DType t);
void face_push_bits(lua_State *L, DType t, uint64_t bits);
// Returns the traced function, or raises an error that names the operation.
Fn *face_tracing(Ctx *cx, lua_State *L, const char *what);
// Raises an error while a kernel is traced.
void face_outside(lua_State *L);

// A traced function, stored in MT_FN userdata.
typedef struct FnBox {
  Fn fn;
  int returned;  // last line of a kernel that returns traced values
  bool known;    // bytecode.c can read this Lua's instructions
  const void *at;  // if so, the address after the script's current instruction
  int ptx_sm;      // the target that its PTX was written for, or 0
  bool ptx_only;   // whether the PTX runs on no later target
} FnBox;
Fn *face_check_fn(lua_State *L, int idx);

// tensorbox.c
void face_push_tensor(lua_State *L, const Tensor *t, int owner);  // copies;
// owner: stack index of the host buffer or Fn the tensor belongs to, 0: none
bool face_test_tensor(lua_State *L, int idx, Tensor *t);
Tensor face_check_tensor(lua_State *L, int idx);
// Returns the tensor without any check of its use, or NULL if it is none.
const Tensor *face_peek_tensor(lua_State *L, int idx);
// Returns NULL also where face_test_tensor would fail (foreign, out of region).
const Tensor *face_live_tensor(lua_State *L, int idx);
// intrinlib.c: returns the flags HINT_PREFETCH for the field
// level_prefetch_size, such as "size_128b", of the table at idx.
unsigned intrinlib_prefetch(lua_State *L, int idx);
// kernlib.c: pushes the address of the tensor at 1, and removes all other
// values.
void kernlib_push_address(lua_State *L);

// Returns the marks of mark_layout_dynamic on the tensor at idx, or NULL.
const TensorMarks *tensor_marks(lua_State *L, int idx);

#endif
// SPDX-License-Identifier: MIT
