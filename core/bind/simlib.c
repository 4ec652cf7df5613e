// Lua bindings of the simulator: sim_run(fn, options) -> report.
#include "bind/buflib.h"
#include "bind/debug.h"
#include "bind/fidelitylib.h"
#include "bind/gpulib.h"
#include "bind/patch.h"
#include "bind/limit.h"
#include "bind/requests.h"
#include "bind/tma.h"

#include <string.h>

#include "faults/facts.h"
#include "ir/operands.h"
#include "layout/composed.h"
#include "layout/notation.h"
#include "lint/reach.h"
#include "timing/cost_model.h"
#include "sim/sim.h"
#include "explore/interleave.h"
#include "watch/watch.h"

// Owns all memory that a run of the simulator allocates, so that an error leaks
// nothing. The run has a separate context, because the function `progress` may
// call other bindings, which empty the usual scratch arena.
typedef struct SimBox {
  Ctx cx;
  SimResult *result;
  lua_State *L;
  int progress;       // stack index of the function `progress`, or 0
  // whether `progress` raised an error, which is then on top of the stack
  bool failed;
} SimBox;

static void box_free(SimBox *b) {
  sim_free(b->result);
  b->result = NULL;
  arena_free(&b->cx.scratch);
}

static int box_gc(lua_State *L) {
  box_free(lua_touserdata(L, 1));
  return 0;
}

static SimBox *push_box(lua_State *L, const Ctx *cx) {
  SimBox *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  b->cx.fail = cx->fail;
  b->cx.ud = L;
  b->L = L;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, box_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  return b;
}

static bool call_progress(void *ud, double part) {
  SimBox *b = ud;
  lua_State *L = b->L;
  lua_pushvalue(L, b->progress);
  lua_pushnumber(L, part);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
    b->failed = true;
    return false;
  }
  bool go = !lua_isboolean(L, -1) || lua_toboolean(L, -1);
  lua_pop(L, 1);
  return go;
}

// ---- options ----

static void get_extents(lua_State *L, int t, const char *name, int32_t *out) {
  lua_getfield(L, t, name);
  if (lua_type(L, -1) != LUA_TTABLE)
    face_error(L, ERR_ARG, "sim_run: %s must be a table of three integers",
               name);
  for (int k = 0; k < 3; k++) {
    lua_rawgeti(L, -1, k + 1);
    out[k] = (int32_t)face_optint(L, -1, 1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

// A buffer with undefined elements. `bits` has one bit for each byte, which is
// set if the byte is defined. All arguments in the buffer share these bits.
typedef struct Track {
  HostBuf *buf;
  uint8_t *bits;
} Track;

static uint8_t *track(SimBox *b, Track *all, size_t *n, HostBuf *buf) {
  if (buf->defined) return NULL;
  for (size_t k = 0; k < *n; k++)
    if (all[k].buf == buf) return all[k].bits;
  uint8_t *bits = arena_zero(&b->cx, &b->cx.scratch, buf->bytes / 8 + 1);
  all[*n] = (Track){buf, bits};
  return all[(*n)++].bits;
}

// ---- the preceding launch ----

// Key in the registry of a weak table {[buffer that owns memory] = uses}. The
// low bits of `uses` state how the preceding launch used the memory. The bits
// from SIM_FAR on state how launches before it used the memory
// (LaunchArg.before).
static const char FRONT = 0;

static uint8_t front_of(lua_State *L, int buf) {
  uint8_t how = 0;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &FRONT) == LUA_TTABLE) {
    buflib_push_owner(L, buf);
    lua_rawget(L, -2);
    how = (uint8_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return how;
}

// Copies the recorded uses of buffers by the preceding launch to the table on
// top. There they become uses by an earlier launch (shifted by SIM_FAR bits).
static void push_back(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &FRONT) == LUA_TTABLE) {
    for (lua_pushnil(L); lua_next(L, -2);) {
      int how = (int)lua_tointeger(L, -1);
      lua_pop(L, 1);
      lua_pushvalue(L, -1);
      lua_pushinteger(L, (how | how >> SIM_FAR) % (1 << SIM_FAR) << SIM_FAR);
      lua_rawset(L, -5);
    }
  }
  lua_pop(L, 1);
}

// Records the launch of fn, with the options at t, as the preceding launch.
// With programmatic dependent launch, all blocks of fn may start the next
// launch before they wait for the launches that precede fn. Those launches may
// still run during the next launch, so the record keeps their uses of buffers.
static void set_front(lua_State *L, const Fn *fn, int t, const SimResult *r) {
  lua_createtable(L, 0, (int)fn->arg.n);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "k");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  if (r->early && r->early == r->ctas) push_back(L);
  lua_getfield(L, t, "args");
  for (size_t k = 0; k < fn->arg.n; k++) {
    const Arg *a = &fn->arg.p[k];
    if (!a->pointer) continue;
    lua_rawgeti(L, -1, (lua_Integer)k + 1);
    lua_rawgeti(L, -1, 1);
    buflib_push_owner(L, -1);
    lua_replace(L, -2);
    lua_pushvalue(L, -1);
    lua_rawget(L, -5);
    int how = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    how |= (a->read ? SIM_READ : 0) | (a->written ? SIM_WRITTEN : 0);
    lua_pushinteger(L, how);
    lua_rawset(L, -5);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &FRONT);
}

// ---- arguments ----

static LaunchArg pointer_arg(lua_State *L, SimBox *b, Track *all, size_t *n) {
  lua_rawgeti(L, -1, 1);
  HostBuf *buf = luaL_testudata(L, -1, MT_BUFFER);
  uint8_t before = buf ? front_of(L, lua_gettop(L)) : 0;
  if (!buf)
    face_error(L, ERR_ARG, "the simulator takes tensors in host memory, "
               "not %s", face_typename(L, -1));
  if (!hostbuf_open(buf)) face_error(L, ERR_CLOSED, "the buffer is closed");
  lua_rawgeti(L, -2, 2);
  lua_Integer off = face_optint(L, -1, 0);
  lua_rawgeti(L, -3, 3);
  lua_Integer bytes = face_optint(L, -1, (lua_Integer)buf->bytes - off);
  lua_pop(L, 3);
  if (off < 0 || bytes < 0 || (uint64_t)off > buf->bytes ||
      (uint64_t)bytes > buf->bytes - (size_t)off)
    face_error(L, ERR_ARG, "bytes %lld to %lld are outside of the buffer of "
               "%zu",
               (long long)off, (long long)off + (long long)bytes, buf->bytes);
  uint8_t *bits = track(b, all, n, buf);
  // If the tensor begins inside a byte of `bits`, treat the whole buffer as
  // defined.
  if (bits && off % 8)
    memset(bits, 0xff, buf->bytes / 8 + 1), bits = NULL;
  return (LaunchArg){.p = (char *)buf->p + off, .bytes = (size_t)bytes,
                     .defined = bits ? bits + off / 8 : NULL,
                     .before = before};
}

// Pops a buffer, and returns its memory as a launch argument.
static LaunchArg known_memory(lua_State *L, SimBox *b, Track *all, size_t *n) {
  HostBuf *buf = buflib_check(L, -1);
  LaunchArg a = {.p = buf->p, .bytes = buf->bytes,
                 .defined = track(b, all, n, buf),
                 .before = front_of(L, lua_gettop(L))};
  lua_pop(L, 1);
  return a;
}

// Returns the tensor map of the kernel argument on top of the stack. The memory
// of the argument begins at p.
static const TensorMap *map_arg(lua_State *L, SimBox *b, const void *p) {
  lua_getfield(L, -1, "tma");
  const TmaBox *t = tmalib_box(L, -1);
  if (!t) face_error(L, ERR_LAUNCH, "an argument needs a tensor map, but "
                     "its field tma is not a TMA atom");
  lua_getiuservalue(L, -1, 1);
  Tensor x = face_check_tensor(L, -1);
  uint64_t at = (uint64_t)(uintptr_t)p, words[TENSORMAP_WORDS];
  // The call raises an error if the driver would reject the tensor map.
  tmalib_encode(&b->cx, &t->a, &x, at, words);
  TensorMap *m = NEW(&b->cx, TensorMap, 1);
  *m = tma_map(&b->cx, &t->a, &x, at);
  lua_pop(L, 2);
  return m;
}

// Reads the list `args` of the options at t. An entry is {buffer, offset,
// bytes} for a pointer, or {dtype, value} for a scalar.
static LaunchArg *get_args(lua_State *L, SimBox *b, const Fn *fn, int t,
                           Track *all, size_t *n) {
  LaunchArg *a = arena_zero(&b->cx, &b->cx.scratch,
                            (fn->arg.n + 1) * sizeof *a);
  lua_getfield(L, t, "args");
  face_checktype(L, -1, LUA_TTABLE);
  for (size_t k = 0; k < fn->arg.n; k++) {
    lua_rawgeti(L, -1, (lua_Integer)k + 1);
    if (lua_type(L, -1) != LUA_TTABLE)
      face_error(L, ERR_LAUNCH, "kernel argument %d is missing", (int)k + 1);
    if (fn->arg.p[k].pointer) {
      a[k] = pointer_arg(L, b, all, n);
      if (fn->arg.p[k].map) a[k].map = map_arg(L, b, a[k].p);
    } else {
      lua_rawgeti(L, -1, 2);
      if (!lua_isboolean(L, -1)) face_checknum(L, -1);
      a[k].bits = face_number_bits(L, -1, fn->arg.p[k].type);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return a;
}

// Marks buffers as defined if the run wrote to them.
static void settle(const Track *all, size_t n) {
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i <= all[k].buf->bytes / 8; i++)
      if (all[k].bits[i]) {
        all[k].buf->defined = true;
        break;
      }
}

// ---- saving and restoring buffers (cutelua.program.memory) ----

// A copy of the bytes of a buffer. Uservalue 1 is the buffer.
typedef struct Kept {
  size_t bytes;
  bool defined;
  char p[];
} Kept;

// buffer_keep(buffer) -> a copy of the buffer's bytes, for buffer_restore
static int l_keep(lua_State *L) {
  const HostBuf *b = buflib_check(L, 1);
  Kept *k = lua_newuserdatauv(L, sizeof *k + b->bytes, 1);
  *k = (Kept){.bytes = b->bytes, .defined = b->defined};
  memcpy(k->p, b->p, b->bytes);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  return 1;
}

// buffer_restore(kept): copies the bytes back to their buffer
static int l_restore(lua_State *L) {
  const Kept *k = lua_touserdata(L, 1);
  lua_getiuservalue(L, 1, 1);
  HostBuf *b = buflib_check(L, -1);
  memcpy(b->p, k->p, k->bytes);
  b->defined = k->defined;
  return 0;
}

// buffer_sum(buffer, sum) -> a hash of the buffer's bytes, continued from the
// integer `sum`
static int l_sum(lua_State *L) {
  const HostBuf *b = buflib_check(L, 1);
  uint64_t h = (uint64_t)face_checkint(L, 2);
  const uint8_t *p = b->p;
  for (size_t i = 0; i < b->bytes; i += 8) {
    uint64_t u = 0;
    memcpy(&u, p + i, b->bytes - i < 8 ? b->bytes - i : 8);
    h = (h ^ u) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
  }
  lua_pushinteger(L, (lua_Integer)h);
  return 1;
}

// buffer_signs(buffer, offset, bytes) -> two booleans: whether some float in
// these bytes is below 0, and whether some float is above 0
static int l_signs(lua_State *L) {
  const HostBuf *b = buflib_check(L, 1);
  bool below = false, above = false;
  size_t size = (size_t)dtype_bits(b->t) / 8;
  int64_t from = face_checkint(L, 2), n = face_checkint(L, 3);
  bool inside = from >= 0 && n >= 0 && (size_t)from <= b->bytes &&
                (size_t)n <= b->bytes - (size_t)from;
  const uint8_t *p = (const uint8_t *)b->p + (inside ? from : 0);
  size_t count = inside && dtype_is_float(b->t) && size ? (size_t)n / size : 0;
  for (size_t i = 0; i < count && !(below && above); i++) {
    uint64_t u = 0;
    memcpy(&u, p + i * size, size);
    double x = dtype_to_double(b->t, u);
    below |= x < 0;
    above |= x > 0;
  }
  lua_pushboolean(L, below);
  lua_pushboolean(L, above);
  return 2;
}

// sim_front([front]) -> the record of the preceding launch, or false if there
// is none. If `front` is given, it becomes the record first.
static int l_front(lua_State *L) {
  lua_settop(L, 1);
  bool set = !lua_isnil(L, 1);
  if (set) lua_rawsetp(L, LUA_REGISTRYINDEX, &FRONT);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &FRONT) == LUA_TNIL)
    lua_pushboolean(L, 0);  // false: no launch precedes the next one
  return 1;
}

// ---- coordinates ----

// Returns the coordinate with offset idx in a plain layout. Only its mode with
// the largest stride may exceed the extent. Returns NULL if no coordinate has
// this offset.
static Tup coord_at(Ctx *cx, Layout l, int64_t idx) {
  size_t n = tup_leaves(l.shape);
  Dim *shape = NEW(cx, Dim, n), *coord = NEW(cx, Dim, n);
  bool *done = arena_zero(cx, &cx->scratch, n);
  tup_collect(l.shape, shape);
  for (size_t k = 0; k < n; k++) {
    coord[k] = (Dim){0};
    if (!dim_static(shape[k]) || !dim_static(l.stride[k])) return NULL;
    if (dim_value(l.stride[k]) <= 0 || dim_is(shape[k], 1)) done[k] = true;
  }
  for (bool first = true;; first = false) {
    size_t best = n;
    for (size_t k = 0; k < n; k++)
      if (!done[k] && (best == n || dim_value(l.stride[k]) >
                                      dim_value(l.stride[best])))
        best = k;
    if (best == n) return idx == 0 ? tup_like(cx, l.shape, coord) : NULL;
    int64_t s = dim_value(l.stride[best]), c = idx / s;
    int64_t most = dim_value(shape[best]) - 1;
    if (!first && c > most) c = most;
    coord[best] = dim_int(cx, c);
    idx -= c * s;
    done[best] = true;
  }
}

// Returns the coordinate with offset idx in a composed layout, or NULL. Tries
// all coordinates, if there are at most 2^16.
static Tup coord_found(Ctx *cx, Layout l, int64_t idx) {
  int64_t n = dim_value(layout_size(cx, l));
  for (Dim i = {0}; i.w < n && n <= 1 << 16; i.w++)
    if (dim_is(layout_eval_at(cx, l, i), idx))
      return tup_idx2crd(cx, &i, l.shape, NULL);
  return NULL;
}

// Returns the text of the coordinate with offset idx in a layout, which is also
// given as text. Returns NULL if no coordinate has this offset.
static const char *coord_text(Ctx *cx, const char *text, int64_t idx) {
  if (!*text || strchr(text, '?') || strchr(text, '_') || idx < 0) return NULL;
  Layout l = layout_parse(cx, text, strlen(text));
  const Swizzle *sw = layout_swizzle(l);
  // a second application of a swizzle reverses the first
  if (sw) idx = swizzle_bits(*sw, idx) - dim_value(l.offset);
  Tup c = l.outer && !sw ? coord_found(cx, l, idx)
          : idx >= 0     ? coord_at(cx, l, idx) : NULL;
  return c ? tup_text(cx, c) : NULL;
}

// Finds up to two coordinates with offset idx in a plain layout, and returns
// their number. Tries all coordinates, if there are at most 2^18. If `zeros` is
// false, tries only coordinate 0 in modes of stride 0.
static int coords_at(Ctx *cx, Layout l, int64_t idx, bool zeros,
                     Tup found[2]) {
  enum { MOST = 1 << 18 };
  size_t n = tup_leaves(l.shape);
  Dim *shape = NEW(cx, Dim, n), *coord = NEW(cx, Dim, n);
  int64_t offset = 0;
  int count = 0;
  tup_collect(l.shape, shape);
  for (size_t k = 0; k < n; k++) {
    if (!dim_static(shape[k]) || !dim_static(l.stride[k])) return 0;
    if (!zeros && !dim_value(l.stride[k])) shape[k] = dim_int(cx, 1);
    coord[k] = (Dim){0};
  }
  for (int tries = 0; tries < MOST; tries++) {
    if (offset == idx) found[count++] = tup_like(cx, l.shape, coord);
    size_t k = 0;
    while (k < n && coord[k].w + 1 == dim_value(shape[k])) {
      offset -= coord[k].w * dim_value(l.stride[k]);
      coord[k++] = (Dim){0};
    }
    if (count == 2 || k == n) return count;
    offset += dim_value(l.stride[k]);
    coord[k] = dim_int(cx, coord[k].w + 1);
  }
  return 0;
}

// If the layout maps several coordinates to offset idx, sets t.twins = {a, b}:
// the texts of two of them. Modes of stride 0 repeat elements on purpose, as in
// tensors of scale factors. They are a mistake only if one line made both
// accesses (one_line).
static void set_twins(lua_State *L, Ctx *cx, const char *text, int64_t idx,
                      bool one_line) {
  Tup found[2];
  if (!*text || strchr(text, '?') || strchr(text, '_') || idx < 0) return;
  Layout l = layout_parse(cx, text, strlen(text));
  const Swizzle *sw = layout_swizzle(l);
  if (sw) idx = swizzle_bits(*sw, idx) - dim_value(l.offset);
  else if (l.outer) return;
  if (coords_at(cx, l, idx, one_line, found) < 2) return;
  lua_createtable(L, 2, 0);
  for (int k = 0; k < 2; k++) {
    lua_pushstring(L, tup_text(cx, found[k]));
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "twins");
}

// Returns the text of r->coord, the coordinate that the kernel accessed.
static const char *asked_text(Ctx *cx, const SimReport *r) {
  const char *s = "(";
  for (int k = 0; k < r->modes; k++)
    s = arena_printf(cx, &cx->scratch, "%s%s%lld", s, k ? "," : "",
                     (long long)r->coord[k]);
  return arena_printf(cx, &cx->scratch, "%s)", s);
}

// ---- the report ----

static void set_string(lua_State *L, const char *k, const char *v) {
  if (v && *v) face_set_str(L, k, v);
}

static void set_triple(lua_State *L, const char *k, const int32_t v[3]) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    lua_pushinteger(L, v[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, k);
}

static void set_place(lua_State *L, const Fn *fn, const char *file,
                      const char *line, uint32_t src) {
  if (!src) return;
  set_string(L, file, ir_str(fn, fn->src.p[src].file));
  face_set_int(L, line, fn->src.p[src].line);
}

static const char *mem_name(const Fn *fn, const Mem *m) {
  const char *s = ir_str(fn, m->name);
  if (!*s && m->space == SP_GMEM && m->arg != NO_ARG)
    s = ir_str(fn, fn->arg.p[m->arg].name);
  return s;
}

// Sets t.rounds = {[name] = number of phases} for arrays of mbarriers. If
// several arrays have one name, the number is -1. Sets t.ring to the name of
// the array that the fault concerns.
static void set_rounds(lua_State *L, const Fn *fn, const SimReport *r) {
  if (!r->nround) return;
  lua_createtable(L, 0, r->nround);
  for (int k = 0; k < r->nround; k++) {
    const char *name = mem_name(fn, &fn->mem.p[r->round[k].mem]);
    bool twice = lua_getfield(L, -1, name) != LUA_TNIL;
    lua_pop(L, 1);
    face_set_int(L, name, twice ? -1 : r->round[k].phases);
  }
  lua_setfield(L, -2, "rounds");
  set_string(L, "ring", mem_name(fn, &fn->mem.p[r->round[0].mem]));
}

// Reports whether the function has copies to several CTAs of the cluster.
static bool multicasts(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    bool load = i->op == OP_TMALOAD || i->op == OP_BULKLOAD;
    if (load && operand_ref(fn, i, ROLE_MASK)) return true;
  }
  return false;
}

// Reports whether the function has tcgen05 operations of pairs of CTAs.
static bool has_pairs(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_TCALLOC && i->flags & TCF_PAIR) return true;
  }
  return false;
}

// Pushes the memory object of a fault as {space=, name=, ptx=, map=, raw=}.
// `map` states whether it is the tensor of a tensor map, and `raw` whether it
// is global memory to which no kernel argument points.
static void push_memory(lua_State *L, const Fn *fn, const Mem *m) {
  lua_createtable(L, 0, 5);
  face_set_str(L, "space", ir_space_word(m->space));
  set_string(L, "name", mem_name(fn, m));
  face_set_bool(L, "ptx", m->ptx);
  face_set_bool(L, "map", m->space == SP_TMAP);
  face_set_bool(L, "raw", m->arg == NO_ARG && m->space == SP_GMEM);
}

// Sets t.facts = {[name] = value}: the values that the message of a fault
// contains.
static void set_facts(lua_State *L, const Fn *fn, const SimReport *r) {
  lua_createtable(L, 0, r->nfact);
  for (int k = 0; k < r->nfact; k++) {
    const SimFact *f = &r->fact[k];
    switch (f->type) {
      case FACT_FLAG: lua_pushboolean(L, true); break;
      case FACT_NUMBER: lua_pushinteger(L, f->v[0]); break;
      case FACT_REAL: lua_pushnumber(L, f->real); break;
      case FACT_TEXT: lua_pushstring(L, f->text); break;
      case FACT_MEM: push_memory(L, fn, &fn->mem.p[f->v[0]]); break;
      case FACT_LIST:
        lua_createtable(L, f->n, 0);
        for (int i = 0; i < f->n; i++) {
          lua_pushinteger(L, f->v[i]);
          lua_rawseti(L, -2, i + 1);
        }
        break;
    }
    lua_setfield(L, -2, f->name);
  }
  lua_setfield(L, -2, "facts");
}

void simlib_push_report(lua_State *L, Ctx *cx, const Fn *fn,
                        const SimReport *r) {
  static const char *const way[] = {"", "straight", "again", "loop"};
  static const char *const stray[] = {"", "write", "read", "released"};
  lua_createtable(L, 0, 12);
  set_string(L, "kind", facts_kind_name(r->kind));
  set_facts(L, fn, r);
  set_place(L, fn, "file", "line", r->src);
  set_place(L, fn, "file2", "line2", r->src2);
  set_place(L, fn, "wait_file", "wait", r->waited);
  set_triple(L, "block", r->block);
  set_triple(L, "thread", r->thread);
  face_set_int(L, "count", (int64_t)r->count);
  if (r->other >= 0) face_set_int(L, "other", r->other);
  if (r->leads >= 0) face_set_int(L, "leads", r->leads + 1);
  set_string(L, "lack", facts_lack_name(r->lack));
  if (r->lack == LACK_PENDING) {
    face_set_int(L, "most", r->most);
    if (r->same) face_set_bool(L, "same", true);
    if (r->open) face_set_bool(L, "open", true);
    if (r->idle) face_set_bool(L, "idle", true);
  }
  if (r->mbar >= 0) {
    face_set_int(L, "mbar", fn->mem.p[r->mbar].ref);
    face_set_int(L, "arrivals", r->arrivals);
    face_set_int(L, "bytes", r->bytes);
  }
  set_rounds(L, fn, r);
  set_string(L, "way", way[r->way]);
  set_place(L, fn, "loop_file", "loop", r->loop);
  if (r->outside) face_set_bool(L, "outside", true);
  if (r->counter.mem) {
    set_string(L, "counter", mem_name(fn, &fn->mem.p[r->counter.mem - 1]));
    face_set_int(L, "counter_at", r->counter.at);
    face_set_int(L, "counter_value", r->counter.value);
  }
  if (r->refill) face_set_bool(L, "refill", true);
  if (r->before) face_set_bool(L, "before", true);
  if (r->lack == LACK_BYTES && multicasts(fn))
    face_set_bool(L, "multicast", true);
  if (has_pairs(fn)) face_set_bool(L, "pair", true);
  if (r->mem < 0) return;
  const Mem *m = &fn->mem.p[r->mem];
  set_string(L, "tensor", mem_name(fn, m));
  face_set_int(L, "offset", r->offset);
  const char *layout = m->space == SP_TMAP ? "" : ir_str(fn, m->layout);
  set_string(L, "layout", layout);
  set_string(L, "coord", r->modes ? asked_text(cx, r)
                                  : coord_text(cx, layout, r->offset));
  if (m->space == SP_SMEM && r->src2)
    set_twins(L, cx, layout, r->offset, r->src == r->src2);
  set_string(L, "strays", stray[r->strays]);
  int64_t threads = (int64_t)fn->block[0] * fn->block[1] * fn->block[2];
  if (r->filled && threads > 0 && r->filled % threads == 0) {
    face_set_int(L, "filled", r->filled);
    face_set_int(L, "elements", m->count);
    face_set_int(L, "threads", threads);
  }
  if (r->stages) {
    face_set_int(L, "stages", r->stages);
    face_set_int(L, "stage", r->stage);
  }
  if (r->elsewhere < 0) return;
  set_string(L, "elsewhere", coord_text(cx, layout, r->elsewhere));
  if (r->ready) face_set_bool(L, "ready", true);
}

// Sets t[key] = {largest coordinate of each mode...}, -1 if unknown.
static void set_most(lua_State *L, const char *key, const Reach *r) {
  lua_createtable(L, r->modes, 0);
  for (int k = 0; k < r->modes; k++) {
    lua_pushinteger(L, r->most[k]);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, key);
}

static void exchange(int32_t axis[3]) {
  int32_t x = axis[0];
  axis[0] = axis[1];
  axis[1] = x;
}

// For an access outside of an object, sets t.reach: the largest coordinates
// that the line of the access computes. Also computes them for other launches,
// in which the sizes x and y of the grid, or of the block, are exchanged.
// cute.lang.simreport describes the fields.
static void set_reach(lua_State *L, Ctx *cx, const Fn *fn, const int32_t *grid,
                      const SimReport *r) {
  Reach reach, other;
  if (r->kind != SIM_OOB || !reach_of(cx, fn, grid, r->mem, r->src, &reach))
    return;
  lua_createtable(L, 0, 8);
  set_most(L, "most", &reach);
  lua_createtable(L, reach.modes, 0);
  for (int k = 0; k < reach.modes; k++) {
    lua_createtable(L, 0, 2);
    face_set_int(L, "block", reach.block[k]);
    face_set_int(L, "thread", reach.thread[k]);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "modes");
  face_set_bool(L, "guarded", reach.guarded);
  set_triple(L, "grid", grid);
  set_triple(L, "block", fn->block);
  int32_t turned[3] = {grid[0], grid[1], grid[2]};
  exchange(turned);
  if (reach_of(cx, fn, turned, r->mem, r->src, &other))
    set_most(L, "other_grid", &other);
  Fn twin = *fn;  // the same kernel, launched with exchanged sizes of the block
  exchange(twin.block);
  if (reach_of(cx, &twin, grid, r->mem, r->src, &other))
    set_most(L, "other_block", &other);
  if (reach.atomic)
    face_set_place(L, fn, "file", "line", ir_get(fn, reach.atomic)->src);
  lua_setfield(L, -2, "reach");
}

static void push_line(lua_State *L, const Fn *fn, const SimLine *s) {
  const SimStat *n = &s->sum;
  lua_createtable(L, 0, 12);
  set_place(L, fn, "file", "line", s->src);
  set_string(L, "op", s->op);
  if (s->smem >= 0) {
    set_string(L, "shared", mem_name(fn, &fn->mem.p[s->smem]));
    face_set_int(L, "mem", s->smem + 1);
  }
  if (s->gmem >= 0) set_string(L, "global", mem_name(fn, &fn->mem.p[s->gmem]));
  face_set_bool(L, "out", s->out);
  face_set_int(L, "count", (int64_t)n->count);
  face_set_int(L, "wavefronts", (int64_t)n->wavefronts);
  face_set_int(L, "conflicts", (int64_t)(n->wavefronts - n->least));
  face_set_int(L, "requests", (int64_t)n->requests);
  face_set_int(L, "sectors", (int64_t)n->sectors);
  face_set_int(L, "least_sectors", (int64_t)n->least_sectors);
  face_set_int(L, "bytes", (int64_t)n->bytes);
}

// Pushes a schedule (the actor of each step) as a string of 64-bit words, the
// form of the option `turns` of sim_run.
static void push_turns(lua_State *L, const uint64_t *turn, size_t n) {
  lua_pushlstring(L, n ? (const char *)turn : "", n * sizeof *turn);
}

static void push_swap(lua_State *L, const Fn *fn, const SimSwap *s) {
  lua_createtable(L, 0, 5);
  set_place(L, fn, "file", "line", s->src);
  set_place(L, fn, "file2", "line2", s->src2);
  push_turns(L, s->turn, s->nturn);
  lua_setfield(L, -2, "turns");
}

static void push_path(lua_State *L, const Fn *fn, const SimOrders *o) {
  lua_createtable(L, (int)o->nturn, 0);
  for (size_t k = 0; k < o->nturn; k++) {
    lua_createtable(L, 0, 4);
    face_set_int(L, "warp", (int64_t)(uint32_t)o->turn[k]);
    if (o->turn[k] >> 32)
      face_set_int(L, "agent", (int64_t)(o->turn[k] >> 32));
    set_place(L, fn, "file", "line", o->line[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
}

static void push_ranges(lua_State *L, const SimRanges *r) {
  lua_createtable(L, 0, 6);
  face_set_int(L, "mode", r->mode);
  face_set_int(L, "extent", r->extent);
  face_set_int(L, "n", r->n);
  if (r->period) face_set_int(L, "period", r->period);
  if (r->tail) face_set_int(L, "tail", r->tail);
  int64_t n = r->n < SIM_RANGES ? r->n : SIM_RANGES;
  lua_createtable(L, (int)n, 0);
  for (int64_t k = 0; k < n; k++) {
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, r->from[k]);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, r->to[k]);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "ranges");
}

// Pushes an entry of a report's list `gaps`: a part of an argument that was
// never read or never stored.
static void push_gap(lua_State *L, const Fn *fn, const SimGap *g) {
  const Mem *m = &fn->mem.p[g->mem];
  const char *name = ir_str(fn, m->name);
  lua_createtable(L, 0, 11);
  face_set_str(L, "tensor", *name ? name : ir_str(fn, fn->arg.p[m->arg].name));
  if (g->src) set_place(L, fn, "file", "line", g->src);
  face_set_bool(L, "stored", g->stored);
  face_set_bool(L, "map", g->map);
  face_set_bool(L, "all", g->all);
  face_set_bool(L, "few", g->few);
  face_set_bool(L, "blocks", g->blocks);
  face_set_int(L, "rank", g->rank);
  face_set_int(L, "none", g->none);
  face_set_int(L, "size", g->size);
  lua_createtable(L, g->n, 0);
  for (int k = 0; k < g->n; k++) {
    push_ranges(L, &g->of[k]);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "modes");
}

// Pushes a list of the gaps that are doubtful, or of those that are not.
static void push_gaps(lua_State *L, const Fn *fn, const SimParts *p,
                      bool doubtful) {
  lua_newtable(L);
  for (int k = 0; k < p->ngap; k++) {
    if (p->gap[k].doubtful != doubtful) continue;
    push_gap(L, fn, &p->gap[k]);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
}

// Pushes an entry of a report's list `unread`: a shared tensor with elements
// that were stored, but never read.
static void push_unread(lua_State *L, const Fn *fn, const SimUnread *u) {
  const Mem *m = &fn->mem.p[u->mem];
  lua_createtable(L, 0, 8);
  face_set_str(L, "name", ir_str(fn, m->name));
  face_set_str(L, "layout", ir_str(fn, m->layout));
  if (u->src) set_place(L, fn, "file", "line", u->src);
  face_set_bool(L, "whole", u->whole);
  face_set_bool(L, "stale", u->stale);
  face_set_int(L, "count", u->count);
  face_set_int(L, "n", u->n);
  face_set_int(L, "first", u->first);
}

// Sets field `twins` of a report if several blocks store equal sums.
static void push_twins(lua_State *L, const Fn *fn, const SimTwins *t) {
  if (!t->src) return;
  lua_createtable(L, 0, 4);
  set_place(L, fn, "file", "line", t->src);
  set_triple(L, "block", t->block[0]);
  set_triple(L, "other", t->block[1]);
  lua_setfield(L, -2, "twins");
}

// Sets field `scale` of a report if blocks of elements have wrong scale
// factors.
static void push_scale(lua_State *L, const Fn *fn, const SimWrongScale *s) {
  static const char *const names[2][4] = {
    {"block", "block_at", "factor", "factor_at"},
    {"other", "other_at", "other_factor", "other_factor_at"}};
  if (!s->src) return;
  lua_createtable(L, 0, 11);
  set_place(L, fn, "file", "line", s->src);
  face_set_int(L, "n", s->n);
  for (int k = 0; k < 2; k++) {
    set_string(L, names[k][0], mem_name(fn, &fn->mem.p[s->block[k]]));
    face_set_int(L, names[k][1], s->block_at[k]);
    if (s->factor[k] < 0) continue;
    set_string(L, names[k][2], mem_name(fn, &fn->mem.p[s->factor[k]]));
    face_set_int(L, names[k][3], s->factor_at[k]);
  }
  lua_setfield(L, -2, "scale");
}

// Pushes the text of a coordinate of n modes, such as "(3,_)".
static void push_coordinate(lua_State *L, const int64_t *at, int n) {
  lua_pushstring(L, n ? "(" : "(0)");
  for (int k = 0; k < n; k++) {
    const char *end = k + 1 < n ? "," : ")";
    if (at[k] < 0) lua_pushfstring(L, "_%s", end);
    else lua_pushfstring(L, "%I%s", (LUAI_UACINT)at[k], end);
    lua_concat(L, 2);
  }
}

// Sets field `wrong` of a report if the shapes suggest a sum or product for an
// output, and the output differs from it.
static void push_wrong(lua_State *L, const Fn *fn, const SimWrongSum *w) {
  if (!w->src) return;
  lua_createtable(L, 0, 14);
  set_place(L, fn, "file", "line", w->src);
  face_set_str(L, "out", ir_str(fn, fn->arg.p[w->out].name));
  push_coordinate(L, w->at, w->modes);
  lua_setfield(L, -2, "at");
  for (int k = 0; k < w->n; k++) {
    face_set_str(L, k ? "b" : "a", ir_str(fn, fn->arg.p[w->in[k]].name));
    push_coordinate(L, w->inat[k], w->inmodes[k]);
    lua_setfield(L, -2, k ? "b_at" : "a_at");
  }
  face_set_num(L, "got", w->got);
  face_set_num(L, "want", w->want);
  face_set_bool(L, "copies", w->copies);
  face_set_bool(L, "scaled", w->scaled);
  face_set_bool(L, "shifted", w->shifted);
  face_set_int(L, "tile", w->tile);
  lua_setfield(L, -2, "wrong");
}

// Sets field `name` of a report to a table that describes an operation, if
// there is one. "nonfinite" is the first operation that computed a NaN or
// infinity. "inexact" is the first operation whose result its type cannot
// represent.
static void push_operation(lua_State *L, const Fn *fn, const char *name,
                           const SimNonfinite *f) {
  if (!f->op) return;
  lua_createtable(L, 0, 10);
  face_set_str(L, "op", f->op);
  set_string(L, "to", f->to);
  for (int k = 0; k < f->n; k++) {
    lua_pushnumber(L, f->v[k]);
    lua_rawseti(L, -2, k + 1);
  }
  face_set_num(L, "result", f->result);
  face_set_bool(L, "nan", f->nan);
  set_string(L, "key", f->key);
  set_place(L, fn, "file", "line", f->src);
  set_triple(L, "block", f->block);
  set_triple(L, "thread", f->thread);
  face_set_int(L, "count", (int64_t)f->count);
  lua_setfield(L, -2, name);
}

static void push_orders(lua_State *L, const Fn *fn, const SimOrders *o) {
  static const struct { uint32_t flag; const char *name; } FLAGS[] = {
    {SIM_FULL, "full"}, {SIM_LANES, "lanes"}, {SIM_MISSED, "missed"},
    {SIM_IDLE, "idle"}, {SIM_MANY, "many"}, {SIM_CLOCK, "clock"},
    {SIM_SUMS, "sums"}, {SIM_APART, "apart"}, {SIM_TRIES, "tries"}};
  lua_createtable(L, 0, 13);
  face_set_int(L, "cluster", (int64_t)o->cluster);
  face_set_int(L, "count", (int64_t)o->count);
  face_set_int(L, "hash", (int64_t)o->hash);
  face_set_int(L, "switches", (int64_t)o->switches);
  for (size_t k = 0; k < sizeof FLAGS / sizeof *FLAGS; k++)
    if (o->flags & FLAGS[k].flag) face_set_bool(L, FLAGS[k].name, true);
  set_place(L, fn, "file", "line", o->src);
  lua_createtable(L, (int)o->nswap, 0);
  for (size_t k = 0; k < o->nswap; k++) {
    push_swap(L, fn, &o->swap[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "swaps");
  push_turns(L, o->turn, o->nturn);
  lua_setfield(L, -2, "turns");
  push_path(L, fn, o);
  lua_setfield(L, -2, "path");
}

static void push_result(lua_State *L, Ctx *cx, const Fn *fn,
                        const int32_t *grid, const SimResult *r) {
  lua_createtable(L, 0, 12);
  face_set_bool(L, "ok", r->nreport == 0 && !r->stopped);
  lua_createtable(L, (int)r->nreport, 0);
  for (size_t k = 0; k < r->nreport; k++) {
    simlib_push_report(L, cx, fn, &r->report[k]);
    set_reach(L, cx, fn, grid, &r->report[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "reports");
  lua_createtable(L, (int)r->nnote, 0);
  for (size_t k = 0; k < r->nnote; k++) {
    simlib_push_report(L, cx, fn, &r->note[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "relies");
  lua_createtable(L, (int)r->nline, 0);
  for (size_t k = 0; k < r->nline; k++) {
    push_line(L, fn, &r->line[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "lines");
  if (r->norder) {
    lua_createtable(L, (int)r->norder, 0);
    for (size_t k = 0; k < r->norder; k++) {
      push_orders(L, fn, &r->order[k]);
      lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "orders");
  }
  face_set_int(L, "turns", (int64_t)r->turns);
  face_set_int(L, "instructions", (int64_t)r->instructions);
  face_set_int(L, "mmas", (int64_t)r->mmas);
  face_set_int(L, "ctas", (int64_t)r->ctas);
  face_set_bool(L, "empty", r->empty);
  face_set_int(L, "granules", (int64_t)r->granules);
  face_set_int(L, "left", r->left);
  push_operation(L, fn, "nonfinite", &r->nonfinite);
  push_operation(L, fn, "inexact", &r->inexact);
  push_gaps(L, fn, &r->parts, false);
  lua_setfield(L, -2, "gaps");
  push_gaps(L, fn, &r->parts, true);
  lua_setfield(L, -2, "skipped");
  lua_createtable(L, r->parts.nunread, 0);
  for (int k = 0; k < r->parts.nunread; k++) {
    push_unread(L, fn, &r->parts.unread[k]);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, "unread");
  push_twins(L, fn, &r->parts.twins);
  push_scale(L, fn, &r->parts.scale);
  push_wrong(L, fn, &r->parts.wrong);
  face_set_num(L, "seconds", r->seconds);
  face_set_bool(L, "stopped", r->stopped);
  set_place(L, fn, "cut_file", "cut", r->cut);
  lua_pushlstring(L, r->output ? r->output : "", r->noutput);
  lua_setfield(L, -2, "output");
}

// ---- cost model ----

// Rates of SimMachine, each with the name of its field in the option `machine`.
static const struct { const char *name; size_t at; } RATES[] = {
#define RATE(name) {#name, offsetof(SimMachine, name)}
#define FENCE(name, field) {"fence" name, offsetof(SimMachine, fence.field)}
  RATE(mma), RATE(wgmma), RATE(mma_f4), RATE(tcgen05), RATE(tcgen05_i8),
  RATE(tcgen05_f4), RATE(mma_again), RATE(f64), RATE(integer),
  RATE(special), RATE(l2), RATE(bulk), RATE(store), RATE(fill), RATE(atomic),
  RATE(copy), RATE(peer), RATE(cas), RATE(alu), RATE(shared), RATE(matrix),
  RATE(tensor), RATE(l1_hit), RATE(global), RATE(tma), RATE(far_shared),
  RATE(swapped), RATE(barrier), RATE(start), RATE(meet), RATE(round),
  RATE(cluster), RATE(loop), FENCE("_cta", cta), FENCE("_cta_each", cta_each),
  FENCE("", gpu), FENCE("_each", gpu_each), FENCE("_sys", sys),
  FENCE("_sys_each", sys_each), FENCE("_async", async), RATE(cluster_each)
#undef FENCE
#undef RATE
};
enum { NRATE = sizeof RATES / sizeof *RATES };

static void get_machine(lua_State *L, SimMachine *m) {
  int t = lua_gettop(L);
  face_checktype(L, t, LUA_TTABLE);
  m->clusters = face_get_int(L, t, "clusters", 1);
  m->resident = face_get_int(L, t, "resident", 1);
  m->l1 = face_get_int(L, t, "l1", 0);
  m->events = face_get_bool(L, t, "events");
  m->steps = (uint64_t)face_get_int(L, t, "steps", 0);
  for (int k = 0; k < NRATE; k++) {
    lua_getfield(L, t, RATES[k].name);
    *(double *)(void *)((char *)m + RATES[k].at) = luaL_checknumber(L, -1);
    lua_pop(L, 1);
  }
}

// Pushes an event of the timeline: {kind, cluster, cta, warp, begin, end, name
// or operation, file, line}.
static void push_event(lua_State *L, const Fn *fn, const SimEvent *e) {
  static const char *const kind[] = {"warp", "begin", "end", "agent"};
  lua_createtable(L, 0, 8);
  face_set_str(L, "kind", kind[e->kind]);
  face_set_int(L, "cluster", e->cluster);
  face_set_int(L, "cta", e->cta);
  face_set_int(L, "warp", e->warp);
  face_set_num(L, "t", e->t);
  face_set_num(L, "stop", e->end);
  if (e->kind == EVENT_AGENT) {
    face_set_str(L, "name", e->op);
    set_place(L, fn, "file", "line", e->what);
  } else if (e->kind != EVENT_WARP) {
    face_set_str(L, "name", ir_str(fn, e->what));
  }
}

static void push_timing(lua_State *L, const Fn *fn, const SimTiming *t) {
  static const char *const pipe[PIPES] = {
    "issue", "fma", "alu", "special", "f64", "tensor", "shared", "l1", "memory",
    "fill", "peer"};
  lua_createtable(L, 0, 5);
  face_set_num(L, "cycles", t->cycles);
  face_set_bool(L, "full", t->full);
  face_set_int(L, "steps", (int64_t)t->steps);
  lua_createtable(L, 0, PIPES);
  for (int k = 0; k < PIPES; k++) face_set_num(L, pipe[k], t->busy[k]);
  lua_setfield(L, -2, "busy");
  lua_createtable(L, (int)t->ncost, 0);
  for (size_t k = 0; k < t->ncost; k++) {
    const SimCost *c = &t->cost[k];
    lua_createtable(L, 0, 8);
    set_place(L, fn, "file", "line", c->src);
    face_set_int(L, "slots", (int64_t)c->slots);
    face_set_int(L, "passes", (int64_t)c->passes);
    face_set_int(L, "sectors", (int64_t)c->sectors);
    face_set_int(L, "missed", (int64_t)c->missed);
    face_set_num(L, "flops", c->flops);
    face_set_num(L, "stall", c->stall);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "costs");
  lua_createtable(L, (int)t->nevent, 0);
  for (size_t k = 0; k < t->nevent; k++) {
    push_event(L, fn, &t->event[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "events");
}

// sim_run(fn, {grid=, block=, cluster=, args=, sm=, seed=, threads=, reports=,
// budget=, progress=, pdl=, debug=, goal=, record=, decided=, turns=, unit=,
// all=, tries=, edits=, strict=}) -> report. Runs a traced function on the CPU.
// `cluster` is needed unless the trace fixed it. debuglib.c describes `debug`
// and `goal`, and patchlib.c describes `edits`. With `record`, the report has
// the field `requests` (requestlib.c).
static int l_sim_run(lua_State *L) {
  face_outside(L);
  Ctx *cx = face_enter(L);
  const Fn *fn = face_check_fn(L, 1);
  face_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  SimBox *b = push_box(L, cx);
  lua_getfield(L, 2, "progress");
  if (!lua_isnil(L, -1)) b->progress = lua_gettop(L);
  Launch l = {.fn = fn, .sm = (int)face_get_int(L, 2, "sm", 0),
              .pdl = face_get_bool(L, 2, "pdl")};
  if (face_get_bool(L, 2, "fidelity"))
    l.executed = arena_zero(&b->cx, &b->cx.scratch,
                            fn->ins.n * sizeof *l.executed);
  for (int k = 0; k < 3; k++)
    l.cluster[k] = fn->cluster[k] ? fn->cluster[k] : 1;
  get_extents(L, 2, "grid", l.grid);
  get_extents(L, 2, "block", l.block);
  if (lua_getfield(L, 2, "cluster") != LUA_TNIL)
    get_extents(L, 2, "cluster", l.cluster);
  size_t nknown = ir_has_addresses(fn) ? buflib_addressed(L) : 0;
  int list = lua_gettop(L);  // the list keeps the buffers alive during the run
  LaunchArg *known = arena_zero(&b->cx, &b->cx.scratch,
                                (nknown + 1) * sizeof *known);
  Track *all = arena_zero(&b->cx, &b->cx.scratch,
                          (fn->arg.n + nknown + 1) * sizeof *all);
  size_t ntrack = 0;
  l.arg = get_args(L, b, fn, 2, all, &ntrack);
  l.known = known;
  l.nknown = nknown;
  for (size_t k = 0; k < nknown; k++) {
    lua_rawgeti(L, list, (lua_Integer)k + 1);
    known[k] = known_memory(L, b, all, &ntrack);
  }
  SimOpts o = {.seed = (uint64_t)face_get_int(L, 2, "seed", 0),
               .threads = (int)face_get_int(L, 2, "threads", 0),
               .max_reports = (int)face_get_int(L, 2, "reports", 0),
               .budget = (uint64_t)face_get_int(L, 2, "budget", 0),
               .record = face_get_bool(L, 2, "record"),
               .strict = face_get_bool(L, 2, "strict"), .hooks = &watch_hooks,
               .progress = b->progress ? call_progress : NULL, .ud = b};
  l.npatch = patchlib_get(L, &b->cx, 2, fn, &l.patch);
  o.steps = face_get_bool(L, 2, "decided") ? &turns_steps : NULL;
  o.unit = face_get_int(L, 2, "unit", -1);
  o.all = o.unit >= 0 && face_get_bool(L, 2, "all");
  l.tries = face_get_bool(L, 2, "tries");
  size_t bytes = 0;
  if (lua_getfield(L, 2, "turns") != LUA_TNIL) {
    const char *turns = luaL_checklstring(L, -1, &bytes);
    o.nturn = bytes / sizeof *o.turn;
    uint64_t *copy = NEW(&b->cx, uint64_t, o.nturn + 1);
    memcpy(copy, turns, o.nturn * sizeof *copy);
    o.turn = copy;
  }
  l.debug = debuglib_start(L, 2, fn);
  SimMachine m = {0};
  if (lua_getfield(L, 2, "machine") != LUA_TNIL) {
    get_machine(L, &m);
    o.machine = &m;
    o.log = &clock_log;
  }
  lua_pop(L, 1);
  b->result = sim_run(&b->cx, &l, &o);
  if (l.debug) debuglib_end(L, l.debug);
  limit_spend(L, 0);
  if (b->failed) return lua_error(L);
  settle(all, ntrack);
  set_front(L, fn, 2, b->result);
  push_result(L, &b->cx, fn, l.grid, b->result);
  if (l.executed) {
    fidelitylib_push(L, &b->cx, fn, l.sm, l.executed);
    lua_setfield(L, -2, "fidelity");
  }
  if (l.debug) debuglib_told(L, l.debug);
  if (b->result->requests) {
    *requestlib_push(L) = *b->result->requests;
    *b->result->requests = (SimRequests){0};
    lua_setfield(L, -2, "requests");
  }
  if (o.machine) {
    push_timing(L, fn, &b->result->timing);
    lua_setfield(L, -2, "timing");
  }
  box_free(b);  // free megabytes that the garbage collector does not count
  return 1;
}

// layout_coord(text of a layout, offset) -> text of the coordinate with this
// offset, or nil if there is none
static int l_layout_coord(lua_State *L) {
  Ctx *cx = face_enter(L);
  const char *s = coord_text(cx, face_checkstr(L, 1), face_checkint(L, 2));
  lua_pushstring(L, s);
  return 1;
}

// Sets field report_kinds of the table on top: the set of the kinds of the
// simulator's reports.
static void kinds_open(lua_State *L) {
  lua_createtable(L, 0, SIM_KIND_COUNT);
  for (int k = 0; k < SIM_KIND_COUNT; k++)
    face_set_bool(L, facts_kind_name((SimKind)k), true);
  lua_setfield(L, -2, "report_kinds");
}

void simlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"sim_run", l_sim_run}, {"layout_coord", l_layout_coord},
    {"buffer_keep", l_keep}, {"buffer_restore", l_restore},
    {"buffer_sum", l_sum}, {"buffer_signs", l_signs},
    {"sim_front", l_front}, {NULL, NULL}};
  face_setfuncs(L, funcs);
  kinds_open(L);
}
// SPDX-License-Identifier: MIT
