// Lua bindings of host buffers: elements, bulk operations, and reference
// products.
#define _POSIX_C_SOURCE 200809L  // fileno
#include "bind/gpulib.h"
#include "bind/trace.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/gemmcheck.h"
#include "base/platform.h"
#include "base/shared.h"

#define MT_FILLING "cute.filling"

// ---- lifetime ----

// Frees the memory that a buffer allocated, or ends the mapping of a file if
// `mapped` is not 0.
static void release(void *raw, size_t mapped) {
  if (mapped) platform_unmap(raw, mapped);
  else base_free(raw);
}

// Frees the buffer's memory. Memory with several owners is freed when the last
// owner drops it.
static void buffer_free(HostBuf *b) {
  if (b->unpin) b->unpin(b);
  b->unpin = NULL;
  if (b->shared) shared_drop(b->shared);
  else release(b->raw, b->mapped);
  b->p = b->raw = NULL;
  b->shared = NULL;
  b->mapped = 0;
  b->closed = true;
}

// Allocates zeroed memory at a multiple of `align` bytes. At least `align` more
// bytes than requested are accessible.
static void *aligned(HostBuf *b, size_t bytes, size_t align) {
  b->raw = base_zeros(bytes + 2 * align);
  if (!b->raw) return NULL;
  uintptr_t at = (uintptr_t)b->raw + align - 1;
  return (void *)(at & ~(uintptr_t)(align - 1));
}

void buflib_grew(lua_State *L, size_t bytes) {
  size_t kib = bytes >> 10;
  if (kib >= 1024) lua_gc(L, LUA_GCSTEP, kib > 1 << 30 ? 1 << 30 : (int)kib);
}

// number of the process's newest buffer
static atomic_uint_least64_t newest;

uint64_t buflib_newest(void) { return atomic_load(&newest); }

// Pushes a buffer without memory. If it will use the memory of another buffer,
// the caller must set uservalue 1 to that buffer.
static HostBuf *push_closed(lua_State *L) {
  HostBuf *b = lua_newuserdatauv(L, sizeof *b, 1);
  memset(b, 0, sizeof *b);
  b->closed = true;
  b->serial = atomic_fetch_add(&newest, 1) + 1;
  luaL_setmetatable(L, MT_BUFFER);
  return b;
}

static HostBuf *new_buffer(lua_State *L, DType t, size_t count,
                           size_t align) {
  size_t bits = (size_t)dtype_bits(t);
  if (bits > 64)
    face_error(L, ERR_TYPE, "a buffer cannot have elements of %s",
               dtype_name(t));
  // limited to half of SIZE_MAX, so that differences of bit positions fit in
  // int64_t
  if (count > (SIZE_MAX >> 1) / bits)
    face_error(L, ERR_LIMIT, "%zu elements of %s are too many for a buffer",
               count, dtype_name(t));
  HostBuf *b = push_closed(L);
  size_t bytes = (count * bits + 7) / 8;
  buflib_grew(L, bytes);
  void *p = aligned(b, bytes, align);
  if (!p) {
    lua_gc(L, LUA_GCCOLLECT);
    p = aligned(b, bytes, align);
  }
  if (!p) face_error(L, ERR_MEMORY, "out of memory (%zu bytes requested)",
                     bytes);
  b->t = t;
  b->count = count;
  b->bytes = bytes;
  b->p = p;
  b->closed = false;
  return b;
}

HostBuf *buflib_new(lua_State *L, DType t, size_t count) {
  return new_buffer(L, t, count, HOSTBUF_ALIGN);
}

HostBuf *buflib_new_pages(lua_State *L, DType t, size_t count) {
  return new_buffer(L, t, count, 4096);
}

// map_file(file, dtype, at, count) -> a buffer, and an index in the buffer.
// Maps `count` elements of type dtype from byte `at` of the file on into
// memory. The index is the position in the buffer of the first of these
// elements. Changes of the buffer do not reach the file. Returns nothing if the
// elements cannot be mapped; the caller must then read them. The file must not
// become shorter.
static int l_map_file(lua_State *L) {
  luaL_Stream *s = face_checkudata(L, 1, LUA_FILEHANDLE);
  DType t = face_check_dtype(L, 2);
  lua_Integer at = face_checkint(L, 3), bits = dtype_bits(t);
  size_t count = buflib_count(L, 4), page = platform_page(), all;
  if (!s->closef || at < 0 || !count || bits % 8 || bits > 64 ||
      count > SIZE_MAX / 16)
    return 0;
  size_t size = (size_t)bits / 8, before = (size_t)at % page;
  if (before % size) return 0;
  size_t bytes = before + count * size;
  HostBuf *b = push_closed(L);
  void *p = platform_map(fileno(s->f), (uint64_t)at - before, bytes, &all);
  if (!p) return 0;
  b->t = t;
  b->count = bytes / size;
  b->bytes = bytes;
  b->p = b->raw = p;
  b->mapped = all;
  b->closed = false;
  b->defined = true;
  lua_pushinteger(L, (lua_Integer)(before / size));
  return 2;
}

HostBuf *buflib_foreign(lua_State *L, DType t, size_t count, void *p) {
  HostBuf *b = push_closed(L);
  b->t = t;
  b->count = count;
  b->bytes = (count * (size_t)dtype_bits(t) + 7) / 8;
  b->p = p;
  b->closed = false;
  b->defined = true;
  return b;
}

Shared *buflib_share(HostBuf *b) {
  if (!b->shared) b->shared = shared_new(release, b->raw, b->mapped);
  if (b->shared) shared_keep(b->shared);
  return b->shared;
}

void buflib_push_owner(lua_State *L, int idx) {
  lua_pushvalue(L, idx);
  if (lua_getiuservalue(L, -1, 1) == LUA_TNIL) lua_pop(L, 1);
  else lua_remove(L, -2);
}

HostBuf *buflib_reuse(lua_State *L, int idx, DType t, size_t count) {
  buflib_push_owner(L, idx);
  const HostBuf *owner = lua_touserdata(L, -1);
  HostBuf *b = push_closed(L);
  b->t = t;
  b->count = count;
  b->bytes = (count * (size_t)dtype_bits(t) + 7) / 8;
  b->p = owner->p;
  b->closed = false;
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, 1);
  return b;
}

HostBuf *buflib_check(lua_State *L, int idx) {
  HostBuf *b = face_check(L, idx, MT_BUFFER, "buffer");
  if (b->closed) face_error(L, ERR_CLOSED, "the buffer was closed");
  return b;
}

void buflib_check_writable(lua_State *L, bool readonly) {
  if (readonly)
    face_error(L, ERR_ARG, "the memory is another library's, which shares it "
               "for reading only\n  t:clone() is a copy that can be written");
}

// Returns the open buffer at idx. Raises an error if it is read-only.
static HostBuf *check_target(lua_State *L, int idx) {
  HostBuf *b = buflib_check(L, idx);
  buflib_check_writable(L, b->readonly);
  return b;
}

size_t buflib_size(lua_State *L, int64_t n) {
  size_t size = (size_t)n;
  if (n < 0 || (uint64_t)n != size)
    face_error(L, ERR_LIMIT, "%lld elements are too many for a buffer",
               (long long)n);
  return size;
}

size_t buflib_count(lua_State *L, int idx) {
  int ok;
  lua_Integer n = lua_tointegerx(L, idx, &ok);
  if (!ok || n < 0) face_argerror(L, idx, "count of elements");
  return buflib_size(L, n);
}

static size_t opt_count(lua_State *L, int idx, size_t def) {
  return lua_isnoneornil(L, idx) ? def : buflib_count(L, idx);
}

// Raises an error unless elements [at, at + n) are in a buffer of count
// elements.
static void check_range(lua_State *L, size_t at, size_t n, size_t count) {
  if (at > count || n > count - at)
    face_error(L, ERR_ARG, "elements %zu to %zu are outside of the buffer of "
               "%zu", at,
               at + n, count);
}

static int buffer_gc(lua_State *L) {
  buffer_free(face_check(L, 1, MT_BUFFER, "buffer"));
  return 0;
}

// b:close() closes the buffer and frees its memory, with two exceptions. If a
// CUDA graph accesses the memory, the garbage collector frees it later. While a
// graph of the simulator is being recorded, the graph keeps the memory and
// reuses it.
static int buffer_close(lua_State *L) {
  HostBuf *b = face_check(L, 1, MT_BUFFER, "buffer");
  if (b->closed) return 0;
  bool recording = recordlib_recording(L);
  if (!recording && !b->kept) return buffer_gc(L);
  b->closed = true;
  if (recording) recordlib_closed(L, 1, !b->unpin);
  return 0;
}

// buffer(dtype, count) -> a buffer of zeros, which the simulator treats as
// undefined
static int l_buffer(lua_State *L) {
  face_outside(L);
  DType t = face_check_dtype(L, 1);
  buflib_new(L, t, buflib_count(L, 2));
  return 1;
}

// ---- elements ----

static uint64_t check_element(lua_State *L, int idx, DType t) {
  if (!lua_isboolean(L, idx) && lua_type(L, idx) != LUA_TNUMBER)
    face_argerror(L, idx, "number");
  return face_number_bits(L, idx, t);
}

static size_t check_index(lua_State *L, int idx, const HostBuf *b) {
  int ok;
  lua_Integer i = lua_tointegerx(L, idx, &ok);
  if (!ok) face_argerror(L, idx, "index");
  if (i < 0 || (uint64_t)i >= b->count)
    face_error(L, ERR_ARG, "element %lld is outside of the buffer of %zu",
               (long long)i, b->count);
  return (size_t)i;
}

static int buffer_get(lua_State *L) {
  HostBuf *b = buflib_check(L, 1);
  size_t i = check_index(L, 2, b);
  if (ir_fn(face_ctx(L))) {
    lua_pushvalue(L, 1);
    buflib_note(L, b->t, i);
  }
  face_push_bits(L, b->t, dtype_load(b->t, b->p, i));
  return 1;
}

static int buffer_set(lua_State *L) {
  face_outside(L);
  HostBuf *b = check_target(L, 1);
  size_t i = check_index(L, 2, b);
  dtype_store(b->t, b->p, i, check_element(L, 3, b->t));
  b->defined = true;
  return 0;
}

int buflib_field(lua_State *L, DType t, size_t count, size_t bytes,
                 bool closed) {
  const char *k = face_checkstr(L, 2);
  if (strcmp(k, "dtype") == 0)
    face_push_dtype(L, t);
  else if (strcmp(k, "count") == 0)
    lua_pushinteger(L, (lua_Integer)count);
  else if (strcmp(k, "nbytes") == 0)
    lua_pushinteger(L, (lua_Integer)bytes);
  else if (strcmp(k, "closed") == 0)
    lua_pushboolean(L, closed);
  else if (luaL_getmetafield(L, 1, k) == LUA_TNIL)
    face_nofield(L, 0, "dtype count nbytes closed");
  return 1;
}

int buflib_text(lua_State *L, DType t, size_t count, bool closed) {
  const char *what = face_typename(L, 1);
  if (closed) lua_pushfstring(L, "%s (closed)", what);
  else lua_pushfstring(L, "%s of %I %s", what, (LUAI_UACINT)count,
                       dtype_name(t));
  return 1;
}

// Implements b[key]. An integer selects an element. A string selects a field,
// such as "dtype" or "count", or a method.
static int buffer_index(lua_State *L) {
  if (lua_type(L, 2) == LUA_TNUMBER) return buffer_get(L);
  HostBuf *b = face_check(L, 1, MT_BUFFER, "buffer");
  const char *k = face_checkstr(L, 2);
  bool readonly = strcmp(k, "readonly") == 0;
  if (!readonly && strcmp(k, "defined") != 0)
    return buflib_field(L, b->t, b->count, b->bytes, b->closed);
  lua_pushboolean(L, readonly ? b->readonly : b->defined);
  return 1;
}

static int buffer_len(lua_State *L) {
  HostBuf *b = face_check(L, 1, MT_BUFFER, "buffer");
  lua_pushinteger(L, (lua_Integer)b->count);
  return 1;
}

static int buffer_tostring(lua_State *L) {
  HostBuf *b = face_check(L, 1, MT_BUFFER, "buffer");
  return buflib_text(L, b->t, b->count, b->closed);
}

// ---- addresses ----

// Key in the registry of a weak list of buffers, which is sorted by address.
static const char ADDRESSED = 0;

lua_Integer buflib_address(lua_State *L, int idx) {
  const HostBuf *b = buflib_check(L, idx);
  idx = lua_absindex(L, idx);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &ADDRESSED) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &ADDRESSED);
  }
  lua_pushvalue(L, idx);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
  return (lua_Integer)(uintptr_t)b->p;
}

size_t buflib_addressed(lua_State *L) {
  size_t n = 0;
  lua_newtable(L);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &ADDRESSED) == LUA_TTABLE)
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
      const HostBuf *b = luaL_testudata(L, -2, MT_BUFFER);
      if (!b || !hostbuf_open(b)) continue;
      lua_Integer at = (lua_Integer)++n;
      // keep the list sorted by address: move buffers with higher addresses up
      for (; at > 1; at--) {
        lua_rawgeti(L, -4, at - 1);
        const HostBuf *other = lua_touserdata(L, -1);
        if ((uintptr_t)other->p < (uintptr_t)b->p) break;
        lua_rawseti(L, -5, at);
      }
      if (at > 1) lua_pop(L, 1);
      lua_pushvalue(L, -2);
      lua_rawseti(L, -5, at);
    }
  lua_pop(L, 1);
  return n;
}

// addressed_buffers() -> the buffers whose address a script requested
static int l_addressed(lua_State *L) {
  buflib_addressed(L);
  return 1;
}

// ---- reads while a kernel is traced ----

// Records in the list TRACE_STATE.elements that the trace has read an element
// as a constant: appends the buffer, the type, the index and the bits. Pops the
// buffer on top.
void buflib_note(lua_State *L, DType t, size_t i) {
  const HostBuf *b = lua_touserdata(L, -1);
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "elements");
  lua_getfield(L, -1, "n");
  lua_Integer n = lua_tointeger(L, -1);
  lua_pushvalue(L, -4);
  lua_rawseti(L, -3, n + 1);
  lua_pushinteger(L, t);
  lua_rawseti(L, -3, n + 2);
  lua_pushinteger(L, (lua_Integer)i);
  lua_rawseti(L, -3, n + 3);
  lua_pushinteger(L, (lua_Integer)dtype_load(t, b->p, i));
  lua_rawseti(L, -3, n + 4);
  lua_pop(L, 1);
  face_set_int(L, "n", n + 4);
  lua_pop(L, 3);
}

// ---- fill and copy ----

static int self(lua_State *L) {
  lua_settop(L, 1);
  return 1;
}

// b:fill(value)
static int buffer_fill(lua_State *L) {
  face_outside(L);
  HostBuf *b = check_target(L, 1);
  bulk_fill(b->t, b->p, 0, b->count, check_element(L, 2, b->t));
  b->defined = true;
  return self(L);
}

// b:fill_normal(seed [, mean [, deviation]]): fills b with normally distributed
// numbers.
static int buffer_fill_normal(lua_State *L) {
  face_outside(L);
  HostBuf *b = check_target(L, 1);
  lua_Integer seed = face_optint(L, 2, 0);
  double mean = face_optnum(L, 3, 0), sd = face_optnum(L, 4, 1);
  bulk_normal(b->t, b->p, b->count, (uint64_t)seed, mean, sd);
  b->defined = true;
  return self(L);
}

// A thread that fills a buffer. Until filling:wait(), the thread is an owner of
// `memory`, the buffer's memory.
typedef struct Filling {
  pthread_t thread;
  bool runs;
  DType t;
  void *p;
  size_t count;
  uint64_t seed;
  struct Shared *memory;
} Filling;

static void *filling_run(void *p) {
  Filling *f = p;
  bulk_normal(f->t, f->p, f->count, f->seed, 0, 1);
  return NULL;
}

// filling:wait(): waits until the buffer is filled.
static int filling_wait(lua_State *L) {
  Filling *f = face_check(L, 1, MT_FILLING, "filling");
  if (f->runs) pthread_join(f->thread, NULL);
  f->runs = false;
  if (f->memory) shared_drop(f->memory);
  f->memory = NULL;
  return 0;
}

// begin_normal(b, seed) -> filling: starts b:fill_normal(seed) in a thread.
// Call filling:wait() before any other use of the buffer.
static int l_begin_normal(lua_State *L) {
  face_outside(L);
  HostBuf *b = check_target(L, 1);
  uint64_t seed = (uint64_t)face_checkint(L, 2);
  Filling *f = lua_newuserdatauv(L, sizeof *f, 0);
  *f = (Filling){.t = b->t, .p = b->p, .count = b->count, .seed = seed};
  luaL_setmetatable(L, MT_FILLING);
  buflib_push_owner(L, 1);
  f->memory = buflib_share(lua_touserdata(L, -1));
  lua_pop(L, 1);
  f->runs = f->memory && pthread_create(&f->thread, NULL, filling_run, f) == 0;
  if (!f->runs) filling_run(f);
  b->defined = true;
  return 1;
}

// b:fill_int(seed, lo, hi): fills b with random integers from lo to hi.
static int buffer_fill_int(lua_State *L) {
  face_outside(L);
  HostBuf *b = check_target(L, 1);
  lua_Integer seed = face_checkint(L, 2);
  lua_Integer lo = face_checkint(L, 3), hi = face_checkint(L, 4);
  if (hi < lo || (uint64_t)hi - (uint64_t)lo >= (uint64_t)1 << 53)
    face_error(L, ERR_ARG, "bounds %lld and %lld: the first must not exceed "
               "the second, and they must be less than 2^53 apart",
               (long long)lo, (long long)hi);
  for (int i = 3; i <= 4 && dtype_is_int(b->t); i++)
    face_check_fits(L, i, b->t);
  bulk_ints(b->t, b->p, b->count, (uint64_t)seed, lo, hi);
  b->defined = true;
  return self(L);
}

// Updates b->defined after a write of elements [at, at + n). If the source is
// `defined`, the whole buffer becomes defined, even if only a part was written.
// (A kernel's writes have the same effect.) If an undefined source replaces all
// elements, the buffer becomes undefined.
static void wrote(HostBuf *b, size_t at, size_t n, bool defined) {
  if (defined || (at == 0 && n == b->count)) b->defined = defined;
}

// b:copy(src [, at [, from [, n]]]): copies n elements of src, beginning with
// `from`, to b, beginning at `at`. Converts their type.
static int buffer_copy(lua_State *L) {
  face_outside(L);
  HostBuf *b = check_target(L, 1), *s = buflib_check(L, 2);
  size_t at = opt_count(L, 3, 0), from = opt_count(L, 4, 0);
  check_range(L, from, 0, s->count);
  size_t n = opt_count(L, 5, s->count - from);
  check_range(L, from, n, s->count);
  check_range(L, at, n, b->count);
  bulk_convert(b->t, b->p, at, s->t, s->p, from, n);
  wrote(b, at, n, s->defined);
  return self(L);
}

// b:to(dtype) -> a copy of b with its elements converted.
static int buffer_to(lua_State *L) {
  face_outside(L);
  HostBuf *s = buflib_check(L, 1);
  HostBuf *b = buflib_new(L, face_check_dtype(L, 2), s->count);
  bulk_convert(b->t, b->p, 0, s->t, s->p, 0, s->count);
  b->defined = s->defined;
  return 1;
}

// b:cut(bits): clears the lowest bits of every f32.
static int buffer_cut(lua_State *L) {
  face_outside(L);
  HostBuf *b = check_target(L, 1);
  lua_Integer bits = face_checkint(L, 2);
  if (b->t != DT_F32 || bits < 0 || bits > 23)
    face_error(L, ERR_TYPE, "cut: 0 to 23 bits of f32 elements can be "
               "cleared, not %lld bits of %s", (long long)bits,
               dtype_name(b->t));
  bulk_cut(b->p, b->count, (int)bits);
  return self(L);
}

// b:transpose(rows, cols) -> a transposed copy of b, a row-major matrix.
static int buffer_transpose(lua_State *L) {
  face_outside(L);
  HostBuf *s = buflib_check(L, 1);
  lua_Integer rows = face_checkint(L, 2), cols = face_checkint(L, 3);
  if (rows < 0 || cols < 0 || (cols && rows > (lua_Integer)s->count / cols) ||
      (size_t)(rows * cols) != s->count)
    face_error(L, ERR_SHAPE, "a matrix of %lld x %lld elements does not "
               "match the buffer's %zu elements",
               (long long)rows, (long long)cols, s->count);
  HostBuf *b = buflib_new(L, s->t, s->count);
  bulk_transpose(s->t, b->p, s->p, (size_t)rows, (size_t)cols);
  b->defined = s->defined;
  return 1;
}

// Returns the byte offset of element `at`, and sets *bytes to the bytes of n
// elements. If elements are narrower than a byte, only the whole buffer is
// accepted as a range.
static size_t byte_range(lua_State *L, const HostBuf *b, size_t at, size_t n,
                         size_t *bytes) {
  size_t bits = (size_t)dtype_bits(b->t);
  check_range(L, at, n, b->count);
  if (bits % 8 != 0 && (at != 0 || n != b->count))
    face_error(L, ERR_TYPE, "elements of %s share bytes, so a range of them "
               "has no bytes of its own: pass no range, for the whole buffer",
               dtype_name(b->t));
  *bytes = (n * bits + 7) / 8;
  return at * bits / 8;
}

// b:bytes([at [, n]]) -> the raw bytes of elements as a string.
static int buffer_bytes(lua_State *L) {
  HostBuf *b = buflib_check(L, 1);
  size_t at = opt_count(L, 2, 0), bytes;
  check_range(L, at, 0, b->count);
  size_t n = opt_count(L, 3, b->count - at);
  size_t first = byte_range(L, b, at, n, &bytes);
  lua_pushlstring(L, (char *)b->p + first, bytes);
  return 1;
}

// b:list([at [, n]]) -> a list of the values of n elements from `at` on.
static int buffer_list(lua_State *L) {
  face_outside(L);
  HostBuf *b = buflib_check(L, 1);
  size_t at = opt_count(L, 2, 0);
  check_range(L, at, 0, b->count);
  size_t n = opt_count(L, 3, b->count - at);
  check_range(L, at, n, b->count);
  if (n > INT_MAX)
    face_error(L, ERR_LIMIT, "a list of %zu elements is too long", n);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    face_push_bits(L, b->t, dtype_load(b->t, b->p, at + i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

// b:set_bytes(string [, at]): sets the elements from `at` on from raw bytes.
static int buffer_set_bytes(lua_State *L) {
  face_outside(L);
  HostBuf *b = check_target(L, 1);
  size_t len, bytes, at = opt_count(L, 3, 0);
  const char *s = face_checklstr(L, 2, &len);
  size_t bits = (size_t)dtype_bits(b->t);
  size_t n = bits % 8 ? b->count : len / (bits / 8);
  size_t first = byte_range(L, b, at, n, &bytes);
  if (bytes != len)
    face_error(L, ERR_ARG, "%zu bytes are not a whole number of elements of %s",
               len,
               dtype_name(b->t));
  memcpy((char *)b->p + first, s, len);
  wrote(b, at, n, true);
  return self(L);
}

// buffer_from(dtype, elements) -> a new buffer with these elements, which are a
// string of raw bytes or a list of numbers
static int l_buffer_from(lua_State *L) {
  face_outside(L);
  DType t = face_check_dtype(L, 1);
  if (lua_type(L, 2) == LUA_TSTRING) {
    size_t n = (size_t)lua_rawlen(L, 2);
    size_t count = n * 8 / (size_t)dtype_bits(t);
    HostBuf *b = buflib_new(L, t, count);
    if (b->bytes != n)
      face_error(L, ERR_ARG, "%zu bytes are not a whole number of elements of "
                 "%s", n,
                 dtype_name(t));
    memcpy(b->p, lua_tostring(L, 2), n);
    b->defined = true;
    return 1;
  }
  if (!lua_istable(L, 2)) face_argerror(L, 2, "string or list of numbers");
  size_t n = (size_t)luaL_len(L, 2);
  HostBuf *b = buflib_new(L, t, n);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    if (!lua_isnumber(L, -1) && !lua_isboolean(L, -1))
      face_error(L, ERR_ARG, "list item %zu is a %s, not a number", i + 1,
                 luaL_typename(L, -1));
    dtype_store(t, b->p, i, check_element(L, lua_gettop(L), t));
    lua_pop(L, 1);
  }
  b->defined = true;
  return 1;
}

// ---- comparison ----

static int push_diff(lua_State *L, const BulkDiff *d) {
  lua_createtable(L, 0, 7);
  face_set_num(L, "max_abs", d->max_abs);
  face_set_num(L, "max_rel", d->max_rel);
  face_set_num(L, "max_scaled", d->max_scaled);
  face_set_num(L, "frobenius", d->frobenius);
  face_set_int(L, "worst", (lua_Integer)d->worst);
  face_set_int(L, "nans", (lua_Integer)d->nans);
  face_set_int(L, "count", (lua_Integer)d->count);
  return 1;
}

static HostBuf *check_peer(lua_State *L, const HostBuf *a, int idx) {
  HostBuf *b = buflib_check(L, idx);
  if (a->count != b->count)
    face_error(L, ERR_SHAPE, "the buffers differ in size: %zu and %zu elements",
               a->count,
               b->count);
  return b;
}

// b:diff(reference) -> a table of error measures between the elements of two
// buffers, whose types may differ.
static int buffer_diff(lua_State *L) {
  HostBuf *a = buflib_check(L, 1), *b = check_peer(L, a, 2);
  BulkDiff d = bulk_diff(a->t, a->p, b->t, b->p, a->count);
  return push_diff(L, &d);
}

// b:equal(other) -> true, or false and the index of the first element whose
// bits differ.
static int buffer_equal(lua_State *L) {
  HostBuf *a = buflib_check(L, 1), *b = check_peer(L, a, 2);
  if (a->t != b->t)
    face_error(L, ERR_TYPE, "%s and %s cannot be compared bit by bit",
               dtype_name(a->t), dtype_name(b->t));
  size_t i = bulk_difference(a->t, a->p, b->p, a->count);
  lua_pushboolean(L, i == a->count);
  if (i == a->count) return 1;
  lua_pushinteger(L, (lua_Integer)i);
  return 2;
}

// ---- the CPU's matrix product ----

// Returns the matrix in the buffer at arg. Its strides {row stride, column
// stride} are in field `name` of the table at opts. By default it is row-major.
static BulkMat check_mat(lua_State *L, int arg, int opts, const char *name,
                         size_t rows, size_t cols) {
  HostBuf *b = buflib_check(L, arg);
  BulkMat m = {b->t, b->p, {cols, 1}};
  if (lua_istable(L, opts) && lua_getfield(L, opts, name) != LUA_TNIL) {
    for (int i = 0; i < 2; i++) {
      if (lua_geti(L, -1, i + 1) != LUA_TNUMBER || lua_tointeger(L, -1) < 0)
        face_error(L, ERR_ARG, "%s is not {row stride, column stride}", name);
      m.stride[i] = buflib_size(L, lua_tointeger(L, -1));
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  size_t last, more;
  if (rows && cols &&
      (__builtin_mul_overflow(rows - 1, m.stride[0], &last) ||
       __builtin_mul_overflow(cols - 1, m.stride[1], &more) ||
       __builtin_add_overflow(last, more, &last) || last >= b->count))
    face_error(L, ERR_SHAPE, "a matrix of %zu by %zu elements does not fit "
               "in a buffer of %zu", rows, cols, b->count);
  return m;
}

// gemm_reference(A, B, D, m, n, k [, {a =, b =, d =}]): computes D = A B^T on
// the host. The options a, b and d are the {row stride, column stride} of A, B
// and D.
static int l_gemm_reference(lua_State *L) {
  face_outside(L);
  size_t m = buflib_count(L, 4), n = buflib_count(L, 5);
  size_t k = buflib_count(L, 6);
  BulkMat a = check_mat(L, 1, 7, "a", m, k), b = check_mat(L, 2, 7, "b", n, k);
  BulkMat d = check_mat(L, 3, 7, "d", m, n);
  HostBuf *out = check_target(L, 3);
  if (dtype_bits(d.t) < 8)
    face_error(L, ERR_TYPE, "gemm_reference: D cannot have elements of %s",
               dtype_name(d.t));
  if (!bulk_gemm(&a, &b, &d, m, n, k))
    face_error(L, ERR_MEMORY, "out of memory in gemm_reference");
  if (m * n == out->count) out->defined = true;
  lua_settop(L, 3);
  return 1;
}

// Reads a row-major m x n matrix, whose buffer is in field `name` of the
// options. Returns false if the field is nil.
static bool opt_mat(lua_State *L, const char *name, size_t m, size_t n,
                    BulkMat *out) {
  if (lua_getfield(L, 7, name) == LUA_TNIL) {
    lua_pop(L, 1);
    return false;
  }
  HostBuf *b = buflib_check(L, lua_gettop(L));
  if (b->count != m * n)
    face_error(L, ERR_SHAPE, "%s has %zu elements, %zu by %zu needed", name,
               b->count, m, n);
  *out = (BulkMat){b->t, b->p, {n, 1}};
  lua_pop(L, 1);  // the table keeps the buffer alive
  return true;
}

static int push_verdict(lua_State *L, const GemmVerdict *v) {
  lua_createtable(L, 0, 9);
  face_set_bool(L, "ok", v->wrong == 0);
  face_set_int(L, "count", (lua_Integer)v->count);
  face_set_int(L, "wrong", (lua_Integer)v->wrong);
  face_set_int(L, "nans", (lua_Integer)v->nans);
  face_set_int(L, "row", (lua_Integer)v->row);
  face_set_int(L, "col", (lua_Integer)v->col);
  face_set_num(L, "got", v->got);
  face_set_num(L, "want", v->want);
  face_set_num(L, "bound", v->bound);
  face_set_num(L, "frobenius", v->frobenius);
  return 1;
}

// gemm_check(A, B, D, m, n, k, {ref =, samples =, seed =, unit =, sums = dtype,
// alpha =, beta =, c0 =, a =, b =, d =}) -> a table that states whether D is
// alpha A B^T + beta c0 up to rounding, and which element has the largest error
// (base/gemmcheck.h). `ref` is A B^T in f64. Without it, only `samples`
// elements are checked. a, b and d are strides as in gemm_reference.
static int l_gemm_check(lua_State *L) {
  size_t m = buflib_count(L, 4), n = buflib_count(L, 5);
  size_t k = buflib_count(L, 6);
  face_checktype(L, 7, LUA_TTABLE);
  BulkMat a = check_mat(L, 1, 7, "a", m, k), b = check_mat(L, 2, 7, "b", n, k);
  BulkMat d = check_mat(L, 3, 7, "d", m, n), ref, c0;
  lua_getfield(L, 7, "sums");
  DType sums = lua_isnil(L, -1) ? DT_F32 : face_check_dtype(L, -1);
  if (!gemmcheck_type(d.t))
    face_error(L, ERR_TYPE, "gemm_check: no rounding error bound is known for "
               "a D of %s: use f16, bf16, f32, f64 or an integer type",
               dtype_name(d.t));
  GemmCheck g = {.a = &a, .b = &b, .d = &d, .m = m, .n = n, .k = k,
                 .sums = sums, .alpha = face_get_num(L, 7, "alpha", 1),
                 .beta = face_get_num(L, 7, "beta", 0),
                 .unit = face_get_num(L, 7, "unit", 0x1p-24),
                 .samples = (size_t)face_get_num(L, 7, "samples", 4096),
                 .seed = (uint64_t)face_get_num(L, 7, "seed", 0)};
  if (opt_mat(L, "ref", m, n, &ref)) g.ref = &ref;
  if (opt_mat(L, "c0", m, n, &c0)) g.c0 = &c0;
  if (m == 0 || n == 0)
    face_error(L, ERR_ARG, "gemm_check: D has %zu by %zu elements; both "
               "extents must be 1 or more", m, n);
  GemmVerdict v;
  if (!gemmcheck_run(&g, &v))
    face_error(L, ERR_MEMORY, "out of memory in gemm_check");
  return push_verdict(L, &v);
}

// ---- module ----

void buflib_open(lua_State *L) {
  static const luaL_Reg buffer[] = {
    {"get(i)", buffer_get}, {"set(i, value)", buffer_set},
    {"fill(value)", buffer_fill},
    {"fill_normal(seed?, mean?, deviation?)", buffer_fill_normal},
    {"fill_int(seed, lo, hi)", buffer_fill_int},
    {"copy(source, at?, from?, n?)", buffer_copy}, {"to(dtype)", buffer_to},
    {"bytes(at?, n?)", buffer_bytes},
    {"transpose(rows, columns)", buffer_transpose}, {"cut(bits)", buffer_cut},
    {"set_bytes(bytes, at?)", buffer_set_bytes},
    {"list(at?, n?)", buffer_list}, {"diff(reference)", buffer_diff},
    {"equal(other)", buffer_equal}, {"close()", buffer_close},
    {"__gc", buffer_gc},
    {"__close", buffer_close}, {"__index", buffer_index},
    {"__newindex", buffer_set}, {"__len", buffer_len},
    {"__tostring", buffer_tostring}, {NULL, NULL}};
  static const luaL_Reg filling[] = {
    {"wait()", filling_wait}, {"__gc", filling_wait}, {NULL, NULL}};
  static const luaL_Reg funcs[] = {
    {"buffer(dtype, count)", l_buffer},
    {"buffer_from(dtype, values)", l_buffer_from},
    {"map_file", l_map_file}, {"addressed_buffers", l_addressed},
    {"begin_normal", l_begin_normal},
    {"gemm_reference(A, B, D, m, n, k, strides?)", l_gemm_reference},
    {"gemm_check(A, B, D, m, n, k, opts)", l_gemm_check},
    {NULL, NULL}};
  face_newtype(L, MT_BUFFER, buffer);
  face_newtype(L, MT_FILLING, filling);
  lua_pop(L, 2);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
