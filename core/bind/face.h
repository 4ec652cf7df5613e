// Declarations that the Lua bindings share. They belong to face.c, visible.c,
// show.c, error.c, context.c and arglib.c, and to files for one kind of value.
// A binding is a lua_CFunction whose upvalue 1 is the Ctx (set by
// face_setfuncs). It begins with `Ctx *cx = face_enter(L)`, which stores L in
// cx and empties cx->scratch. Caution: a Lua function that a binding calls may
// call other bindings, which empty cx->scratch again.
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

// Each of these functions adds the functions of its file to the table on top of
// the stack. open.c calls them in this order.
void arglib_open(lua_State *L);
void cutelib_open(lua_State *L);
void filelib_open(lua_State *L);
void ziplib_open(lua_State *L);
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
void reachlib_open(lua_State *L);
void bytecodelib_open(lua_State *L);
void intrinlib_open(lua_State *L);
void printlib_open(lua_State *L);
void kernlib_open(lua_State *L);
void atomlib_open(lua_State *L);
void buflib_open(lua_State *L);
void gpulib_open(lua_State *L);
void devlib_open(lua_State *L);
void dlpacklib_open(lua_State *L);
void graphlib_open(lua_State *L);
void recordlib_open(lua_State *L);
void jitlib_open(lua_State *L);
void launchlib_open(lua_State *L);
void bundlelib_open(lua_State *L);
void plan_cache_open(lua_State *L);
void symlib_open(lua_State *L);
void tmalib_open(lua_State *L);
void requestlib_open(lua_State *L);
void ptxlib_open(lua_State *L);
void patchlib_open(lua_State *L);
void lintlib_open(lua_State *L);
void simlib_open(lua_State *L);
void debuglib_open(lua_State *L);
void generic_open(lua_State *L);
void dispatch_open(lua_State *L);

// Creates the context of a Lua state (context.c).
void context_new(lua_State *L);
Ctx *face_enter(lua_State *L);
// Returns the context like face_enter, but does not empty cx->scratch. Used by
// metamethods such as __index and __gc.
Ctx *face_ctx(lua_State *L);
// Returns the context like face_ctx. Used by functions that do not have the Ctx
// as upvalue 1.
Ctx *face_state(lua_State *L);

// Stores functions in the table on top, each with the Ctx as upvalue 1. If a
// name has parameters, as in "size(layout, modes...)", the function is public
// (public.h).
void face_setfuncs(lua_State *L, const luaL_Reg *regs);
// Stores the functions that rows (row.h) describe, in the same way as
// face_setfuncs.
struct FnRow;
void face_setrows(lua_State *L, const struct FnRow *rows);
// Creates the metatable `tname` with the functions in regs, and leaves it on
// top. Unless regs has its own __index, the functions become methods.
void face_newtype(lua_State *L, const char *tname, const luaL_Reg *regs);

// Completes the metatable on top. face_newtype does this for its metatables.
// Afterwards, the use of an operator or method that the type lacks raises an
// error that names it.
void face_complete(lua_State *L);
// Raises the error that the object at 1 has no field with the key at 2. Used by
// types with their own __index. Suggests a name among `fields` (separated by
// spaces) and the methods. The methods are in the table at `methods` (0: in the
// metatable).
_Noreturn void face_nofield(lua_State *L, int methods, const char *fields);
// Returns a suggestion such as " (did you mean stride?)", or "" if none of the
// names offered to n is similar.
const char *face_meant(lua_State *L, const Nearest *n);
// Raises an error if the table at idx has a key that is not among `names`,
// which are separated by spaces.
void face_check_options(lua_State *L, int idx, const char *names);

// Raises the error "file:line: msg [kind]". The position is in the innermost
// Lua function outside of cutelua (lua/cute, "=[cute...]"). If msg has several
// lines, " [kind]" follows the first one.
_Noreturn void face_error(lua_State *L, ErrKind kind, const char *fmt, ...)
  PRINTF_LIKE(3, 4);
// Raises an error like face_error, but msg is not a format. If a library raises
// the error, `caller` is the library's chunk, and the reported position is
// outside of its folder. Otherwise caller is NULL.
_Noreturn void face_raise(lua_State *L, ErrKind kind, const char *msg,
                          const char *caller);
// Raises an error like face_error, but at the given line of a chunk. `chunk`
// has the form of lua_Debug.source.
_Noreturn void face_error_at(lua_State *L, const char *chunk, int line,
                             ErrKind kind, const char *fmt, ...)
  PRINTF_LIKE(5, 6);
// Raises the error that argument `arg` is bad, such as "bad argument #2 to
// 'cute.composition' (layout expected, got nil)" for the `want` "layout".
_Noreturn void face_argerror(lua_State *L, int arg, const char *want);
// Returns the value at idx as text for messages, as a user would write it, and
// shortened.
const char *face_show(lua_State *L, int idx);
// Returns the name of the public function that the user called, such as
// "cute.size", or NULL if there is none.
const char *face_public(lua_State *L, char name[96]);
bool face_colon(lua_State *L);  // whether the user wrote cute:f(...)
// Return an argument of a basic type, or raise an error. Strings are not
// converted to numbers.
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
// Pushes nil and "msg [kind]", for failures that are no mistake of the user.
// Returns 2, the number of results.
int face_fail2(lua_State *L, ErrKind kind, const char *fmt, ...);

// Pushes external text (file names, headers, names chosen by users) in a form
// that is safe for a terminal. Control characters, characters that change the
// direction of text, and bytes that are not UTF-8 become escapes such as \x1b
// or \u{202e}. With `lines`, newlines and tabs are unchanged.
void face_push_visible(lua_State *L, const char *s, size_t n, bool lines);
// Pushes external text of several lines for a message. Long lines are shortened
// in the middle, because the text may be a whole file.
void face_push_message(lua_State *L, const char *s, size_t n);
// Returns the width, in columns, of the terminal with file descriptor fd. The
// environment variable COLUMNS takes precedence if it is a positive number.
// Returns 0 if fd is not a terminal, or if the width is unknown.
int face_terminal_columns(int fd);

void face_push_buf(lua_State *L, Buf *b);  // pushes b's text and frees b

// Set field k of the table on top to v.
void face_set_int(lua_State *L, const char *k, lua_Integer v);
void face_set_num(lua_State *L, const char *k, lua_Number v);
void face_set_bool(lua_State *L, const char *k, bool v);
void face_set_str(lua_State *L, const char *k, const char *v);

// Return field k of the table at t, or `otherwise` (for booleans: false) if the
// field is nil.
int64_t face_get_int(lua_State *L, int t, const char *k, int64_t otherwise);
double face_get_num(lua_State *L, int t, const char *k, double otherwise);
bool face_get_bool(lua_State *L, int t, const char *k);

// Returns the type of the value at idx, named as in documentation: "layout",
// "tensor", "number".
const char *face_typename(lua_State *L, int idx);
// Finds the stack frame of the innermost user function. Returns false if there
// is none.
bool face_user(lua_State *L, lua_Debug *ar);
// Finds the innermost user function on the call stack. Sets src to the source
// of its chunk (as in lua_Debug.source), *line to its current line, and *ar to
// its name. Returns false if there is no user function.
bool face_where(lua_State *L, char src[512], int *line, lua_Debug *ar);
// Writes the line that the innermost user function executes, as "file.lua:31".
// Returns false if that line is not in a file.
bool face_line(lua_State *L, char out[64]);
// Reports whether the chunk is one of cutelua's own Lua files.
bool face_own_source(const char *src);

// face_test returns the userdata at idx if its metatable is `tname`, else NULL.
// face_check raises an argument error instead of returning NULL.
void *face_test(lua_State *L, int idx, const char *tname);
void *face_check(lua_State *L, int idx, const char *tname, const char *want);

// Element types. There is one userdata for each type.
void face_push_dtype(lua_State *L, DType t);
// Returns the element type at idx, or DT_NONE if the value is not an element
// type.
DType face_test_dtype(lua_State *L, int idx);
DType face_check_dtype(lua_State *L, int idx);  // also accepts a type's name

// Metatable names.
#define MT_DTYPE "cute.dtype"
#define MT_LAYOUT "cute.layout"
#define MT_CONST "cute.constant"  // `_`, a basis or a swizzle
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
// IntTuples are nested Lua tables of integers, `_`, traced values and bases.
// face_check_tup returns a tuple in cx->scratch. face_push_tup also pushes the
// shapes of layouts.
Tup face_check_tup(Ctx *cx, lua_State *L, int idx);
void face_push_tup(lua_State *L, Tup t);
// Pushes an integer, traced value, _ or basis.
void face_push_dim(lua_State *L, Dim d);
bool face_test_dim(Ctx *cx, lua_State *L, int idx, Dim *d);

// vallib.c: pushes r, a value of the function being traced, as a traced scalar
// (MT_VALUE).
void face_push_value(lua_State *L, Ref r);
bool face_test_value(Ctx *cx, lua_State *L, int idx, Ref *r);
// Converts the number, boolean or traced value at idx to an IR value of type t.
// If t is DT_NONE, a traced value keeps its type, integers become i32 or i64,
// and other numbers become f32.
Ref face_check_value(Ctx *cx, lua_State *L, int idx, DType t);
// face_check_fits returns the number at idx as an integer, and raises an error
// if type t cannot represent it. face_number_bits returns the number or boolean
// at idx as raw bits of type t. They are used in kernels and for stores on the
// host. Both accept -1 as a u32.
lua_Integer face_check_fits(lua_State *L, int idx, DType t);
uint64_t face_number_bits(lua_State *L, int idx, DType t);
void face_push_bits(lua_State *L, DType t, uint64_t bits);
// Returns the function being traced. If there is none, raises an error that
// names the operation `what`.
Fn *face_tracing(Ctx *cx, lua_State *L, const char *what);
// Raises an error if a kernel is being traced.
void face_outside(lua_State *L);

// The userdata MT_FN: a traced function.
typedef struct FnBox {
  Fn fn;
  // the last line of the kernel if the kernel returns traced values, else 0
  int returned;
  bool known;    // whether bytecode.c can read this Lua's instructions
  // if `known`: the address after the script's current bytecode instruction
  const void *at;
  // target of the PTX that the kernel runs; 0: the kernel runs no PTX
  int ptx_sm;
  bool ptx_only;   // whether the PTX cannot run on later targets
} FnBox;
Fn *face_check_fn(lua_State *L, int idx);
// Sets the fields `file` and `line` of the table on top to the file and the
// line of entry src of Fn.src. Sets none if src is 0.
void face_set_place(lua_State *L, const Fn *fn, const char *file,
                    const char *line, uint32_t src);

// tensorbox.c: pushes a copy of a tensor. `owner` is the stack index of the
// host buffer or function to which the tensor belongs, or 0.
void face_push_tensor(lua_State *L, const Tensor *t, int owner);
bool face_test_tensor(lua_State *L, int idx, Tensor *t);
Tensor face_check_tensor(lua_State *L, int idx);
// Returns the tensor at idx, or NULL if there is none. Unlike face_live_tensor,
// does not check whether the tensor can be used at this point of a trace.
const Tensor *face_peek_tensor(lua_State *L, int idx);
// Returns the tensor at idx. Returns NULL if there is none, or if the tensor
// cannot be used here: it belongs to another kernel, or to a region that has
// ended.
const Tensor *face_live_tensor(lua_State *L, int idx);
// intrinlib.c: returns the flags HINT_PREFETCH or HINT_LEVEL2 for the field
// level_prefetch_size or level2_eviction_priority of the table at idx, such as
// "size_128b". The table may have one of these fields.
unsigned intrinlib_hints(lua_State *L, int idx);
// kernlib.c: pushes the address of the tensor at 1, and removes all other
// values from the stack.
void kernlib_push_address(lua_State *L);

// Returns the marks that mark_layout_dynamic set on the tensor or layout at
// idx, or NULL.
const TensorMarks *tensor_marks(lua_State *L, int idx);

#endif
// SPDX-License-Identifier: MIT
