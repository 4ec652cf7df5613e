// What the Lua faces (core/*lib.c) share; the only header that sees lua.h.
//
// A face function is a plain lua_CFunction whose first upvalue is the Ctx
// (registered with face_setfuncs). It begins with `Ctx *cx = face_enter(L)`,
// which points cx at this lua_State and empties cx->scratch. Whatever it has
// in scratch is lost when it calls back into Lua.
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

// Registry: each opens its part into the table on top of the stack.
void arglib_open(lua_State *L);
void cutelib_open(lua_State *L);
void filelib_open(lua_State *L);
void layoutlib_open(lua_State *L);
void tensorlib_open(lua_State *L);
void vallib_open(lua_State *L);
void tracelib_open(lua_State *L);
void intrinlib_open(lua_State *L);
// HINT_PREFETCH as the table idx says it, level_prefetch_size = "size_128b".
unsigned intrinlib_prefetch(lua_State *L, int idx);
void printlib_open(lua_State *L);
void kernlib_open(lua_State *L);
void atomlib_open(lua_State *L);
void buflib_open(lua_State *L);
void gpulib_open(lua_State *L);
void jitlib_open(lua_State *L);
void launchlib_open(lua_State *L);
void callslib_open(lua_State *L);
void symlib_open(lua_State *L);
void tmalib_open(lua_State *L);
void requestlib_open(lua_State *L);
void editlib_open(lua_State *L);
void simlib_open(lua_State *L);
void debuglib_open(lua_State *L);
void oplib_open(lua_State *L);  // after tensorlib_open and vallib_open
void anylib_open(lua_State *L);

Ctx *face_enter(lua_State *L);
// The same without emptying scratch (metamethods such as __index, __gc).
Ctx *face_ctx(lua_State *L);
Ctx *face_state(lua_State *L);  // the same where no upvalue holds it

// Sets functions into the table on top, each with the Ctx as upvalue 1. A
// row's name with parameters, "size(layout, modes...)", makes a public one:
// see arglib.c.
void face_setfuncs(lua_State *L, const luaL_Reg *regs);
// The same of rows, see row.h.
struct FnRow;
void face_setrows(lua_State *L, const struct FnRow *rows);
// Makes metatable `tname` (left on the stack) with these functions; methods
// are also reachable through __index unless regs has its own __index.
void face_newtype(lua_State *L, const char *tname, const luaL_Reg *regs);

// Operators that the type whose metatable is on top lacks, and fields, become
// errors that say so (face_newtype does it).
void face_complete(lua_State *L);
// The same of field 2 of object 1, for types with an __index of their own:
// `fields` are its names, separated by spaces; its methods are in the table at
// `methods`, or in its metatable where that is 0.
_Noreturn void face_nofield(lua_State *L, int methods, const char *fields);
// " (did you mean stride?)", or "" where none of the offered is near.
const char *face_meant(lua_State *L, const Nearest *n);
// Raises unless all keys of the table at idx, if there is one, are among
// `names`, which spaces separate.
void face_check_options(lua_State *L, int idx, const char *names);

// Raises "file:line: msg [kind]" with the position of the innermost Lua
// function that is not cutelua's own (lua/, "=[cute...]"). A message may
// have further lines; the kind goes behind the first.
_Noreturn void face_error(lua_State *L, ErrKind kind, const char *fmt, ...)
  PRINTF_LIKE(3, 4);
// The same at a line of a chunk (as in lua_Debug.source).
_Noreturn void face_error_at(lua_State *L, const char *chunk, int line,
                             ErrKind kind, const char *fmt, ...)
  PRINTF_LIKE(5, 6);
// "bad argument #2 to 'cute.composition' (layout expected, got nil)".
_Noreturn void face_argerror(lua_State *L, int arg, const char *want);
// Pushes the value at idx as users would write it, shortened.
const char *face_show(lua_State *L, int idx);
// The public function that users called, "cute.size"; NULL: none.
const char *face_public(lua_State *L, char name[96]);
bool face_colon(lua_State *L);  // was it called as cute:f(...)?
// Arguments of basic types; numbers are never taken from strings.
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
// For the world's failures: pushes nil and "msg [kind]"; returns 2.
int face_fail2(lua_State *L, ErrKind kind, const char *fmt, ...);

// Pushes text from outside (file names, headers, names that users choose) as
// a terminal may show it: control characters, what reorders a line and bytes
// that are no UTF-8 as \x1b and \u{202e}. `lines`: newlines and tabs stay.
void face_push_visible(lua_State *L, const char *s, size_t n, bool lines);
// So with lines, of which a long one is shown by its front and its end: what a
// message quotes can be as long as a file.
void face_push_message(lua_State *L, const char *s, size_t n);
// Characters in a line of what is printed there: COLUMNS, if that is a number
// from 1 on, else what the terminal says; 0: it is none, or does not know.
int face_terminal_columns(int fd);

void face_push_buf(lua_State *L, Buf *b);  // and frees it

// Sets field k of the table on top.
void face_set_int(lua_State *L, const char *k, lua_Integer v);
void face_set_num(lua_State *L, const char *k, lua_Number v);
void face_set_bool(lua_State *L, const char *k, bool v);
void face_set_str(lua_State *L, const char *k, const char *v);

// Field k of the table at t.
int64_t face_get_int(lua_State *L, int t, const char *k, int64_t otherwise);
double face_get_num(lua_State *L, int t, const char *k, double otherwise);
bool face_get_bool(lua_State *L, int t, const char *k);

// Pushes the value's type as users know it ("layout", "tensor", "number").
const char *face_typename(lua_State *L, int idx);
// Position of the innermost user Lua function: chunk source (as in
// lua_Debug.source), current line and function name; false when none.
bool face_where(lua_State *L, char src[512], int *line, lua_Debug *ar);
// The same as "file.lua:31"; false where no file is known.
bool face_line(lua_State *L, char out[64]);
bool face_own_source(const char *src);  // is a chunk cutelua's own?

// Userdata of exactly metatable `tname`, or NULL / an argument error.
void *face_test(lua_State *L, int idx, const char *tname);
void *face_check(lua_State *L, int idx, const char *tname, const char *want);

// Element types: userdata-free; a dtype is a light, interned userdata.
void face_push_dtype(lua_State *L, DType t);
DType face_test_dtype(lua_State *L, int idx);  // DT_NONE when it is none
DType face_check_dtype(lua_State *L, int idx);  // accepts its name too

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

// ---- shared by the faces that handle layouts and traced values ----
#include "base/bulk.h"
#include "tensor/tensor.h"

// layoutlib.c
void face_push_layout(lua_State *L, Layout l);       // copies
bool face_test_layout(lua_State *L, int idx, Layout *l);
Layout face_check_layout(lua_State *L, int idx);
// IntTuples: nested tables of integers, `_`, traced values and bases; a
// layout's shape also prints so. Result in cx->scratch.
Tup face_check_tup(Ctx *cx, lua_State *L, int idx);
void face_push_tup(lua_State *L, Tup t);
void face_push_dim(lua_State *L, Dim d);  // integer, traced value, _, basis
bool face_test_dim(Ctx *cx, lua_State *L, int idx, Dim *d);

// tracelib.c: traced scalars (MT_VALUE)
void face_push_value(lua_State *L, Ref r);           // of the Fn being traced
bool face_test_value(Ctx *cx, lua_State *L, int idx, Ref *r);
// A number, boolean or traced value as IR value of type t (DT_NONE: its own
// type; integers i32 or i64, floats f32).
Ref face_check_value(Ctx *cx, lua_State *L, int idx, DType t);
// The number at idx as an integer of type t, which it must fit, and that or a
// boolean as bits of any type: kernels and stores of the host alike. (u32
// takes -1, too.)
lua_Integer face_check_fits(lua_State *L, int idx, DType t);
uint64_t face_number_bits(lua_State *L, int idx, DType t);
void face_push_bits(lua_State *L, DType t, uint64_t bits);
// The function being traced, or an error naming the operation.
Fn *face_tracing(Ctx *cx, lua_State *L, const char *what);
// Fails while a kernel is traced: what follows is the host's to do.
void face_outside(lua_State *L);

// A traced function: MT_FN userdata hold one in place.
typedef struct FnBox {
  Fn fn;
  int returned;  // the line of the end of a kernel that returns values of it
  bool known;    // is this a Lua whose instructions can be looked at?
  const void *at;  // then: behind the script's instruction that is at work
} FnBox;
Fn *face_check_fn(lua_State *L, int idx);

// tensorlib.c
void face_push_tensor(lua_State *L, const Tensor *t, int owner);  // copies;
// owner: stack index of the host buffer or Fn the tensor belongs to, 0: none
bool face_test_tensor(lua_State *L, int idx, Tensor *t);
Tensor face_check_tensor(lua_State *L, int idx);
// Without any check of where it is used: NULL when it is none.
const Tensor *face_peek_tensor(lua_State *L, int idx);
// NULL, too, where face_test_tensor would fail (foreign, out of region).
const Tensor *face_live_tensor(lua_State *L, int idx);
// kernlib.c: the function being traced takes element i, as type t, of the host
// buffer on top, which is popped, as a constant.
void kernlib_note(lua_State *L, DType t, size_t i);
// Pushes the address of the tensor at 1, which is the only value then.
void kernlib_push_address(lua_State *L);

// veclib.c (opened by tensorlib_open), mathlib.c (after vallib_open)
void veclib_open(lua_State *L);
void mathlib_open(lua_State *L);
// What mark_layout_dynamic noted on the tensor at idx, or NULL.
const TensorMarks *tensor_marks(lua_State *L, int idx);

#endif
