// The foundation: the context of every function that can fail, arenas, and
// growing buffers. This file does not depend on Lua, layouts or GPUs.
#ifndef CUTE_BASE_H
#define CUTE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#else
#define PRINTF_LIKE(f, a)
#endif

// Error kinds. The kind is the short stable name in brackets at the end of a
// message's first line, as in "... [inadmissible]". docs/errors.md shows a
// wrong and a corrected example for each kind.
typedef enum ErrKind {
#define ERR(id, name) ERR_##id,
#include "base/errors.h"
#undef ERR
  ERR_COUNT
} ErrKind;

// Returns the name of a kind of error, such as "bad-argument".
const char *err_name(ErrKind kind);

// An error of the environment, such as a missing driver, or source that NVRTC
// rejects. A function with a Why parameter reports such an error in it and
// returns false or NULL. Its Lua binding then returns nil, "message [kind]".
typedef struct Why {
  ErrKind kind;
  char msg[1400];
} Why;

// Fills w (which may be NULL) and returns false.
bool why(Why *w, ErrKind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

// Bump allocator. Memory lives until the arena is reset or freed. Single
// allocations are never freed.
typedef struct ArenaChunk ArenaChunk;
typedef struct Arena {
  ArenaChunk *head;  // newest chunk
  char *at, *end;    // free part of the newest chunk
} Arena;

// The context. A function whose first parameter is `Ctx *cx` may fail. It then
// calls `fail`, which never returns (the Lua bindings raise a Lua error), so
// the function cannot release anything. It must therefore keep resources in
// arenas, or in objects that other code frees.
typedef struct Ctx Ctx;
struct Ctx {
  void (*fail)(Ctx *cx, ErrKind kind, const char *msg);  // never returns
  void *ud;  // data of the context's owner: a lua_State in the Lua bindings
  // Memory for the results of one call from Lua or from another program. The
  // arena is reset when the next call starts.
  Arena scratch;
  struct Work *work;  // trace in progress (defined in ir/ir.h), or NULL
};

// Raises an error of `kind` with a printf-style message. The message has no
// position. The binding adds "file:line: " before the message and " [kind]"
// after its first line.
_Noreturn void ctx_fail(Ctx *cx, ErrKind kind, const char *fmt, ...)
  PRINTF_LIKE(3, 4);

// All heap memory goes through these functions, so that a test can make the Nth
// allocation fail (CUTELUA_MEMERR=N in the environment of a `make memerr`
// build).
void *base_realloc(void *p, size_t n);  // NULL when out of memory
// Makes room for n elements in the array *p, which has room for *max elements
// of `size` bytes. Returns false, with nothing changed, if memory is exhausted.
bool base_room(void **p, uint32_t *max, uint32_t n, size_t size);
// Allocates memory that may outlive the Lua state of the running call.
void *base_lasting(size_t n);
// Returns n zeroed bytes. Pages that are never accessed cost nothing.
void *base_zeros(size_t n);
void base_free(void *p);
// Returns n * size. If the product overflows, returns a size that no allocation
// can satisfy.
static inline size_t base_bytes(uint64_t n, size_t size) {
  return n > (SIZE_MAX >> 1) / size ? SIZE_MAX >> 1 : (size_t)n * size;
}
// Reallocates like base_realloc, but fails with ERR_MEMORY instead of returning
// NULL.
void *ctx_realloc(Ctx *cx, void *p, size_t n);

// Returns n bytes aligned to 16: uninitialised (alloc) or zeroed (zero).
void *arena_alloc(Ctx *cx, Arena *a, size_t n);
void *arena_zero(Ctx *cx, Arena *a, size_t n);
char *arena_printf(Ctx *cx, Arena *a, const char *fmt, ...) PRINTF_LIKE(3, 4);
void arena_reset(Arena *a);  // frees all chunks but the newest, which it reuses
void arena_free(Arena *a);

#define NEW(cx, T, n) \
  ((T *)arena_alloc((cx), &(cx)->scratch, base_bytes((n), sizeof(T))))

// Declares a growing array of T. Example: VEC(int) v = {0}; vec_push(cx, v, 7)
// makes v.n 1 and v.p[0] 7.
#define VEC(T) struct { T *p; size_t n, cap; }
void *vec_grow(Ctx *cx, void *p, size_t *cap, size_t need, size_t size);
#define vec_reserve(cx, v, need) \
  ((v).p = vec_grow((cx), (v).p, &(v).cap, (need), sizeof *(v).p))
#define vec_push(cx, v, x) \
  (vec_reserve((cx), (v), (v).n + 1), (void)((v).p[(v).n++] = (x)))
#define vec_free(v) (base_free((v).p), (v).p = NULL, (v).n = (v).cap = 0)

// Growing text. `p` is NUL-terminated after the first addition.
typedef struct Buf {
  char *p;
  size_t n, cap;
} Buf;
void buf_add(Ctx *cx, Buf *b, const char *s, size_t n);
void buf_puts(Ctx *cx, Buf *b, const char *s);
void buf_printf(Ctx *cx, Buf *b, const char *fmt, ...) PRINTF_LIKE(3, 4);
void buf_free(Buf *b);

// Reports whether `what` is one of the comma-separated words of CUTELUA_DEBUG.
bool base_debug(const char *what);

// Asserts that the enumerators from `first` to `last` are n consecutive
// numbers. Code that compares or subtracts enumerators must be preceded by this
// assertion (tools/check.lua enforces it).
#define CONSECUTIVE(n, first, last) \
  _Static_assert((int)(last) - (int)(first) == (n) - 1, #first " to " #last)

// Returns the greatest common divisor of a and b, which is at least 0. Returns
// 1 if it does not fit in an int64_t.
int64_t base_gcd(int64_t a, int64_t b);

// Divide two integers, rounding down, as Lua's // and % do. b is not 0. The
// quotient INT64_MIN / -1 wraps.
static inline int64_t base_floor_div(int64_t a, int64_t b) {
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  int64_t q = a / b;
  return q - (a % b != 0 && (a % b < 0) != (b < 0));
}
static inline int64_t base_floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r && (r < 0) != (b < 0) ? r + b : r;
}

// Returns the 64-bit FNV-1a hash of n bytes, continued from h. Pass HASH_INIT
// first.
#define HASH_INIT 14695981039346656037ull
uint64_t base_hash(uint64_t h, const void *p, size_t n);

// Returns the next number of a splitmix64 generator. Any seed is valid,
// including 0.
uint64_t base_random(uint64_t *state);

// Returns the time of a monotonic clock in nanoseconds.
uint64_t base_nanotime(void);

#endif
// SPDX-License-Identifier: MIT
