// Ground floor: the context every fallible function takes, arenas, growing
// buffers. Nothing here knows of Lua, layouts or GPUs.
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

// Error kinds: the short stable names that stand in brackets at the end of
// the first line of a message, e.g. "... [inadmissible]". docs/errors.md
// lists each with a wrong and a mended example.
typedef enum ErrKind {
#define ERR(id, name, summary) ERR_##id,
#include "base/errors.h"
#undef ERR
  ERR_COUNT
} ErrKind;

// Name of a kind ("bad-argument") and its one-line summary.
const char *err_name(ErrKind kind);
const char *err_summary(ErrKind kind);

// What went wrong in the world outside (no driver, NVRTC refused, ...).
// Functions that take a Why return false (or NULL) and fill it in; their
// faces return nil, "msg [kind]".
typedef struct Why {
  ErrKind kind;
  char msg[1400];
} Why;

// Fills w (which may be NULL) and returns false.
bool why(Why *w, ErrKind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

// Bump allocator. Blocks live until the arena is reset or freed; nothing in
// an arena is freed singly.
typedef struct ArenaChunk ArenaChunk;
typedef struct Arena {
  ArenaChunk *head;  // newest chunk
  char *at, *end;    // free part of the newest chunk
} Arena;

// The context: `Ctx *cx` as first parameter means "may fail". A failure
// calls `fail`, which never returns (a Lua face raises a Lua error), so a
// function holds resources only in arenas or in objects owned elsewhere.
typedef struct Ctx Ctx;
struct Ctx {
  void (*fail)(Ctx *cx, ErrKind kind, const char *msg);  // never returns
  void *ud;       // the owner's: a lua_State for the Lua faces
  Arena scratch;  // results of one outermost call; reset at its start
  struct Work *work;  // what the rooms above are at (ir/ir.h); NULL: nothing
};

// Raises kind with a printf-style message (without position; the face adds
// "file:line: " in front and " [kind]" behind the first line).
_Noreturn void ctx_fail(Ctx *cx, ErrKind kind, const char *fmt, ...)
  PRINTF_LIKE(3, 4);

// All heap memory goes through these, so that a spec can fail the Nth
// allocation (CUTELUA_MEMERR=N in the environment of a `make memerr` build).
void *base_realloc(void *p, size_t n);  // NULL when out of memory
// Room for n elements of `size` bytes in a growing array *p, which has *max;
// false: out of memory, and nothing changed.
bool base_room(void **p, uint32_t *max, uint32_t n, size_t size);
void *base_zeros(size_t n);  // the same, zeros; large ones cost no memory yet
void base_free(void *p);
// Bytes of n elements of `size` each; where no size_t can say how many, as
// many as no memory has.
static inline size_t base_bytes(uint64_t n, size_t size) {
  return n > (SIZE_MAX >> 1) / size ? SIZE_MAX >> 1 : (size_t)n * size;
}
void *ctx_realloc(Ctx *cx, void *p, size_t n);  // fails with ERR_MEMORY

// n zero-initialised / uninitialised bytes aligned to 16.
void *arena_alloc(Ctx *cx, Arena *a, size_t n);
void *arena_zero(Ctx *cx, Arena *a, size_t n);
char *arena_printf(Ctx *cx, Arena *a, const char *fmt, ...) PRINTF_LIKE(3, 4);
void arena_reset(Arena *a);  // keeps the newest chunk for reuse
void arena_free(Arena *a);

#define NEW(cx, T, n) \
  ((T *)arena_alloc((cx), &(cx)->scratch, base_bytes((n), sizeof(T))))

// Growing array of T: VEC(T) v = {0}; vec_push(cx, v, x); v.p[i]; v.n.
#define VEC(T) struct { T *p; size_t n, cap; }
void *vec_grow(Ctx *cx, void *p, size_t *cap, size_t need, size_t size);
#define vec_reserve(cx, v, need) \
  ((v).p = vec_grow((cx), (v).p, &(v).cap, (need), sizeof *(v).p))
#define vec_push(cx, v, x) \
  (vec_reserve((cx), (v), (v).n + 1), (void)((v).p[(v).n++] = (x)))
#define vec_free(v) (base_free((v).p), (v).p = NULL, (v).n = (v).cap = 0)

// Growing text. `p` is NUL-terminated once anything was added.
typedef struct Buf {
  char *p;
  size_t n, cap;
} Buf;
void buf_add(Ctx *cx, Buf *b, const char *s, size_t n);
void buf_puts(Ctx *cx, Buf *b, const char *s);
void buf_printf(Ctx *cx, Buf *b, const char *fmt, ...) PRINTF_LIKE(3, 4);
void buf_free(Buf *b);

// Is `what` one of the words, with commas between, of CUTELUA_DEBUG?
bool base_debug(const char *what);

// Greatest common divisor, not negative; 1 where that is no int64_t.
int64_t base_gcd(int64_t a, int64_t b);

// Division that rounds down, as the language's // and %; b is not 0, and the
// quotient wraps.
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

// 64-bit FNV-1a of n bytes, continued from h (start with HASH_INIT).
#define HASH_INIT 14695981039346656037ull
uint64_t base_hash(uint64_t h, const void *p, size_t n);

// xorshift-multiply generator; seed 0 is as good as any other.
uint64_t base_random(uint64_t *state);

// Monotonic clock, nanoseconds.
uint64_t base_nanotime(void);

#endif
