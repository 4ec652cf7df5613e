// Cache of calls of cute.ops. For each argument key (argkey.c), an operation
// decides only once which kernels to run. The decision is the plan. A later
// call with an equal key finds its prepared kernels here and launches them
// without Lua code. The parameters of the kernels come from the arguments of
// the call.
//
// The key of a call has words that the key of a kernel lacks:
//   the device of each memory
//   the values of dynamic extents
//   the distances between operands that share memory
//   the code and the upvalues of functions
#include "bind/argkey.h"
#include "bind/gpulib.h"
#include "bind/laylib.h"
#include "bind/tensorlib.h"
#include "bind/tma.h"

#include <string.h>

#define MT_CALLS "cute.calls"
#define MT_ENTRY "cute.calls.entry"
#define MT_RUN "cute.calls.run"

typedef struct Calls {
  lua_Integer count, most;  // current and maximum number of entries
} Calls;
enum { CALLS_ENTRIES = 1, CALLS_FORM, CALLS_SEEN, CALLS_FORMS, CALLS_CODES,
       CALLS_VALUES = CALLS_CODES };

// The entry of an argument key. Its uservalues are its plan, the objects whose
// addresses are in the key, and its prepared runs, indexed by stream number.
typedef struct Entry {
  size_t n;
  uint64_t w[];
} Entry;
enum { ENTRY_PLAN = 1, ENTRY_HOLD, ENTRY_RUNS, ENTRY_VALUES = ENTRY_RUNS };

// ---- functions ----

// maximum number of functions whose forms (see push_form) are kept
enum { SEEN = 64 };

static uint64_t mixed(uint64_t h, const unsigned char *p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t x;
    memcpy(&x, p, 8);
    h = (h ^ x) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
  }
  for (; n; n--, p++) h = (h ^ *p) * 0x100000001b3ull;
  return h;
}

typedef struct Code {
  uint64_t hash[2];
} Code;

static int hash_code(lua_State *L, const void *p, size_t n, void *to) {
  Code *c = to;
  (void)L;
  c->hash[0] = mixed(c->hash[0], p, n);
  c->hash[1] = mixed(c->hash[1] ^ n, p, n);
  return 0;
}

// Pushes the form (push_form) of the function on top. Functions with equal code
// have the same form. A Lua function computes it once for each code, and
// CALLS_CODES caches it.
static void push_by_code(Walk *w) {
  lua_State *L = w->L;
  int f = lua_gettop(L);
  Code c = {{0x6a09e667f3bcc908ull, 0xbb67ae8584caa73bull}};
  lua_dump(L, hash_code, &c, 0);
  lua_getiuservalue(L, w->calls, CALLS_CODES);
  lua_pushlstring(L, (const char *)c.hash, sizeof c.hash);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, f + 1) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_getiuservalue(L, w->calls, CALLS_FORM);
    lua_pushvalue(L, f);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, f + 1);
  }
  lua_replace(L, f + 1);
  lua_settop(L, f + 1);
}

// Pushes the form of the function at idx: a list that determines which words
// represent the function in a key. Entry 0 is the number of its code. The other
// entries describe each upvalue: its index, a number n, and the keys of the n
// fields that the function uses; n = 0 stands for the whole value. If the
// function's address represents the function, pushes false instead.
static void push_form(Walk *w, int idx) {
  lua_State *L = w->L;
  lua_Integer at = (lua_Integer)((uintptr_t)lua_topointer(L, idx) / 16 % SEEN);
  int top = lua_gettop(L);
  lua_getiuservalue(L, w->calls, CALLS_SEEN);
  lua_getiuservalue(L, w->calls, CALLS_FORMS);
  lua_rawgeti(L, top + 1, at + 1);
  if (lua_rawequal(L, -1, idx)) {
    lua_rawgeti(L, top + 2, at + 1);
  } else {
    lua_pushvalue(L, idx);
    push_by_code(w);
    lua_pushvalue(L, idx);
    lua_rawseti(L, top + 1, at + 1);
    lua_pushvalue(L, -1);
    lua_rawseti(L, top + 2, at + 1);
  }
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
}

static bool is_value(lua_State *L, int idx) {
  return lua_type(L, idx) == LUA_TNUMBER || tensorlib_box(L, idx) ||
         luaL_testudata(L, idx, MT_CONSTEXPR);
}

// Pops a value that a function argument uses: an upvalue, or a field of one. A
// number or tensor is treated as an argument of the call. Other values become
// words of the key.
static void captured(Walk *w) {
  int at = lua_gettop(w->L), type = lua_type(w->L, at);
  if (is_value(w->L, at) || type == LUA_TNIL || type == LUA_TBOOLEAN ||
      type == LUA_TSTRING)
    argkey_value(w, at);
  else
    argkey_object(w, at);
  lua_settop(w->L, at - 1);
}

static void walk_function(Walk *w, int idx) {
  lua_State *L = w->L;
  int top = lua_gettop(L), form = top + 1, value = top + 2;
  luaL_checkstack(L, LUA_MINSTACK, "functions of a call");
  if (lua_iscfunction(L, idx)) lua_pushboolean(L, 0);
  else push_form(w, idx);
  if (!lua_istable(L, form)) {
    argkey_object(w, idx);
    lua_settop(L, top);
    return;
  }
  if (!argkey_met(w, lua_topointer(L, idx))) {
    lua_rawgeti(L, form, 0);
    argkey_put(w, ARG_HEAD(ARG_CODE, lua_tointeger(L, -1)));
    lua_pop(L, 1);
    lua_Integer n = (lua_Integer)lua_rawlen(L, form), keys;
    for (lua_Integer i = 1; i <= n; i += 2 + keys) {
      lua_rawgeti(L, form, i);
      lua_rawgeti(L, form, i + 1);
      lua_Integer up = lua_tointeger(L, -2);
      keys = lua_tointeger(L, -1);
      lua_settop(L, form);
      lua_getupvalue(L, idx, (int)up);
      if (keys && lua_istable(L, value)) {
        for (lua_Integer k = 0; k < keys; k++) {
          lua_rawgeti(L, form, i + 2 + k);
          lua_gettable(L, value);
          captured(w);
        }
      } else if (lua_isfunction(L, value)) {
        walk_function(w, value);
      } else {
        captured(w);
      }
      lua_settop(L, form);
    }
  }
  lua_settop(L, top);
}

// ---- lookup ----

// Builds the argument key of a call of the cache. The cache is at stack index
// 1, and the arguments are at indices first to last, without trailing nils.
static Walk walk_call(Ctx *cx, lua_State *L, int first, int last, int hold) {
  Walk w = argkey_begin(cx, L, 0);
  while (last >= first && lua_isnil(L, last)) last--;
  w.calls = 1;
  w.function = walk_function;
  w.hold = hold;
  luaL_checkstack(L, LUA_MINSTACK, "arguments of a call");
  for (int i = first; i <= last; i++) argkey_add(&w, i);
  argkey_end(&w);
  return w;
}

static bool is_entry(const Entry *e, const Walk *w) {
  return e && e->n == w->n && memcmp(e->w, w->w, w->n * sizeof *w->w) == 0;
}

// Pushes the entry for the argument key of a walk, and returns it. If there is
// none, pushes nothing and returns NULL.
static const Entry *find(lua_State *L, const Walk *w) {
  lua_getiuservalue(L, 1, CALLS_ENTRIES);
  lua_rawgeti(L, -1, (lua_Integer)argkey_hash(w));
  lua_remove(L, -2);
  const Entry *e = lua_touserdata(L, -1);
  if (is_entry(e, w)) return e;
  lua_pop(L, 1);
  return NULL;
}

// Returns the GPU whose memory the arguments use, or NULL if none is in GPU
// memory.
static Gpu *gpu_of(const Walk *w) {
  for (size_t i = 0; i < w->nleaf; i++)
    if (w->leaf[i].dev) return w->leaf[i].dev->own.gpu;
  return NULL;
}

static int stream_number(const Walk *w, const Gpu *g) {
  const GpuStream *s = w->stream ? w->stream : g->now;
  return s ? s->number : 0;
}

// calls:add(plan, arguments...): stores a plan for the key of these arguments.
// If the cache is full, removes all other entries first.
static int l_add(lua_State *L) {
  Ctx *cx = face_enter(L);
  Calls *c = face_check(L, 1, MT_CALLS, "calls");
  int n = lua_gettop(L);
  lua_newtable(L);
  Walk w = walk_call(cx, L, 3, n, n + 1);
  Entry *e = lua_newuserdatauv(L, sizeof *e + w.n * sizeof *w.w, ENTRY_VALUES);
  e->n = w.n;
  memcpy(e->w, w.w, w.n * sizeof *w.w);
  luaL_setmetatable(L, MT_ENTRY);
  lua_pushvalue(L, 2), lua_setiuservalue(L, n + 2, ENTRY_PLAN);
  lua_pushvalue(L, n + 1), lua_setiuservalue(L, n + 2, ENTRY_HOLD);
  lua_newtable(L), lua_setiuservalue(L, n + 2, ENTRY_RUNS);
  if (c->count == c->most) {
    lua_newtable(L), lua_setiuservalue(L, 1, CALLS_ENTRIES);
    c->count = 0;
  }
  c->count++;
  lua_getiuservalue(L, 1, CALLS_ENTRIES);
  lua_pushvalue(L, n + 2);
  lua_rawseti(L, -2, (lua_Integer)argkey_hash(&w));
  return 0;
}

// ---- runs ----

// The source of a kernel parameter, which is a number or an address.
// - CALL: an argument of the call.
// - NEW: a tensor that the call creates.
// - WORK: the workspace.
// - KEPT: memory or a constant that is the same in all calls.
typedef enum From { FROM_CALL, FROM_NEW, FROM_WORK, FROM_KEPT } From;
typedef enum Part { PART_ALL, PART_LOW, PART_HIGH } Part;

typedef struct Slot {
  From from;
  bool pointer;
  // Depending on `from`: index of an argument's leaf, of a new tensor, or of
  // kept memory.
  size_t of;
  int64_t offset;   // byte offset in the memory that `of` selects
  uint64_t *map;    // a tensor map, as words without its address; or NULL
  DType type;       // type of the parameter, if it is a number
  Part part;        // which part of a 64-bit number to pass
  uint64_t bits;    // value of a constant number
} Slot;

typedef struct Step {
  const GpuLaunch *launch;
  Slot *slot;
  size_t n;
} Step;

// A tensor that each call creates.
typedef struct Made {
  Tensor t;
  size_t count;  // number of elements that the tensor's memory needs
} Made;

// The prepared launches of one cached call on one stream. Uservalue 1: the
// objects that these launches keep alive. Uservalue 2: the GPU. Uservalue 3:
// the Lua values on which the launched kernels depend because tracing read
// them, or nil.
typedef struct Run {
  Step *step;
  Made *made;
  DevBuf **kept;     // device memory that the kernels use in every call
  size_t nstep, nmade, nkept;
  size_t work;       // bytes of temporary memory that the launches share (the
                     // workspace)
  bool reads;        // whether uservalue 3 is present
  bool alone;        // whether the launches cannot be captured in a graph
} Run;
enum { RUN_HOLD = 1, RUN_GPU, RUN_READ, RUN_VALUES = RUN_READ };

// Allocates n zero bytes. The list at stack index `hold` keeps them alive.
static void *held(lua_State *L, int hold, size_t n) {
  void *p = lua_newuserdatauv(L, n ? n : 1, 0);
  memset(p, 0, n);
  lua_rawseti(L, hold, (lua_Integer)lua_rawlen(L, hold) + 1);
  return p;
}

static void keep_alive(lua_State *L, int hold, int idx) {
  lua_pushvalue(L, idx);
  lua_rawseti(L, hold, (lua_Integer)lua_rawlen(L, hold) + 1);
}

static int64_t begin_of(const Leaf *l) {
  return dim_value(l->t->off) * dtype_bits(l->type) / 8;
}

// State of the construction of a run.
typedef struct Make {
  lua_State *L;
  Ctx *cx;
  const Walk *w;     // the walk over the arguments of the call
  Run *r;
  // stack index of the description, and of the list that keeps objects alive
  int desc, hold;
  const DevBuf *work;
  const DevBuf **fresh;  // buffers of the tensors that the call created
} Make;

static bool from_call(const Make *m, const DevBuf *b, int64_t at, Slot *s) {
  for (size_t i = 0; i < m->w->nleaf; i++) {
    const Leaf *l = &m->w->leaf[i];
    if (!l->pointer || l->dev != b) continue;
    int64_t from = begin_of(l);
    int64_t bytes = (l->after * dtype_bits(l->type) + 7) / 8;
    if (at < from || at - from >= bytes) continue;
    s->of = i;
    s->offset = at - from;
    return true;
  }
  return false;
}

static void keep_buffer(Make *m, DevBuf *b, Slot *s) {
  Run *r = m->r;
  while (s->of < r->nkept && r->kept[s->of] != b) s->of++;
  if (s->of < r->nkept) return;
  DevBuf **more = held(m->L, m->hold, (r->nkept + 1) * sizeof *more);
  if (r->nkept) memcpy(more, r->kept, r->nkept * sizeof *more);
  r->kept = more;
  r->kept[r->nkept++] = b;
}

// Makes memory the source s of a kernel parameter. The list {buffer, offset,
// bytes, tma =} at stack index `value` describes the memory. b is the buffer,
// which is at stack index `buffer`.
static void set_memory(Make *m, DevBuf *b, int buffer, int value, Slot *s) {
  lua_State *L = m->L;
  lua_rawgeti(L, value, 2);
  int64_t at = lua_tointeger(L, -1);
  s->pointer = true;
  s->offset = at;
  s->of = 0;
  if (b == m->work && b) {
    s->from = FROM_WORK;
  } else {
    while (s->of < m->r->nmade && m->fresh[s->of] != b) s->of++;
    s->from = s->of < m->r->nmade ? FROM_NEW : FROM_CALL;
    if (s->from == FROM_CALL && !from_call(m, b, at, s)) {
      s->from = FROM_KEPT;
      s->of = 0;
      keep_buffer(m, b, s);
      keep_alive(L, m->hold, buffer);
    }
  }
  lua_getfield(L, value, "tma");
  const TmaBox *tma = tmalib_box(L, -1);
  if (!tma) return;
  lua_getiuservalue(L, -1, 1);
  Tensor t = face_check_tensor(L, -1);
  s->map = held(L, m->hold, TENSORMAP_WORDS * sizeof *s->map);
  tmalib_encode(m->cx, &tma->a, &t, b->ptr + (uint64_t)at, s->map);
}

// Makes the number {type, value} at stack index `value` the source s of a
// kernel parameter. The value at stack index `mark` is nil if the number is a
// constant. Otherwise it is {argument of the call, index of the number in that
// argument, part}.
static void set_number(Make *m, int value, int mark, Slot *s) {
  lua_State *L = m->L;
  lua_rawgeti(L, value, 1);
  s->type = face_check_dtype(L, -1);
  s->from = FROM_KEPT;
  lua_rawgeti(L, value, 2);
  s->bits = face_number_bits(L, lua_gettop(L), s->type);
  if (!lua_istable(L, mark)) return;
  for (int i = 1; i <= 3; i++) lua_rawgeti(L, mark, i);
  lua_Integer argument = lua_tointeger(L, -3), nth = lua_tointeger(L, -2);
  s->part = (Part)lua_tointeger(L, -1);
  for (size_t i = 0; i < m->w->nleaf; i++) {
    const Leaf *l = &m->w->leaf[i];
    if (l->argument != argument || l->pointer || --nth) continue;
    s->from = FROM_CALL;
    s->of = i;
    return;
  }
  face_error(L, ERR_ARG, "the field `from` refers to a number that argument "
             "%d does not contain", (int)argument);
}

// Builds a step, which is one launch, from the table {launch =, values =, from
// =} on top of the stack. Pops the table.
static void make_step(Make *m, Step *s) {
  lua_State *L = m->L;
  int step = lua_gettop(L), values = step + 2, from = step + 3;
  lua_getfield(L, step, "launch");
  lua_getfield(L, step, "values");
  lua_getfield(L, step, "from");
  s->launch = face_check(L, step + 1, MT_LAUNCH, "launch");
  keep_alive(L, m->hold, step + 1);
  s->n = (size_t)lua_rawlen(L, values);
  s->slot = held(L, m->hold, s->n * sizeof *s->slot);
  for (size_t i = 0; i < s->n; i++) {
    // pushes the entry at stack index step + 4
    lua_rawgeti(L, values, (lua_Integer)i + 1);
    lua_rawgeti(L, step + 4, 1);
    DevBuf *b = face_test(L, step + 5, MT_DEVBUF);
    if (b) {
      set_memory(m, b, step + 5, step + 4, &s->slot[i]);
    } else {
      lua_getfield(L, step + 4, "argument");
      if (lua_istable(L, from)) lua_gettable(L, from);
      set_number(m, step + 4, lua_gettop(L), &s->slot[i]);
    }
    lua_settop(L, from);
  }
  lua_settop(L, step - 1);
}

static DevBuf *buffer_of(lua_State *L, int idx) {
  const TensorBox *b = tensorlib_box(L, idx);
  return b ? b->dev : NULL;
}

// Reads from the description which tensors the call created, and stores their
// layouts for later calls.
static void make_results(Make *m) {
  lua_State *L = m->L;
  Run *r = m->r;
  lua_getfield(L, m->desc, "made");
  int list = lua_gettop(L);
  r->nmade = lua_istable(L, list) ? (size_t)lua_rawlen(L, list) : 0;
  r->made = held(L, m->hold, r->nmade * sizeof *r->made);
  m->fresh = NEW(m->cx, const DevBuf *, r->nmade + 1);
  for (size_t i = 0; i < r->nmade; i++) {
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    Tensor t = face_check_tensor(L, -1);
    m->fresh[i] = buffer_of(L, -1);
    face_push_layout(L, t.l);
    keep_alive(L, m->hold, lua_gettop(L));
    t.l = laylib_box(L, -1)->l;
    r->made[i] = (Made){t, (size_t)dim_value(layout_cosize(m->cx, t.l))};
    lua_settop(L, list);
  }
  lua_pop(L, 1);
}

// calls:ready(description, arguments...): makes later calls with the key of
// these arguments, on the same stream, run the launches of the description. The
// fields of the description:
//   steps = {{launch =, values = (as launch_values), from = {[kernel argument]
//     = {argument of the call, index of the number in it, part}}}, ...}
//   made = {new tensors}
//   work = workspace tensor
//   reads = the Lua values that tracing the kernels read (kernlib.c)
//   alone = whether a graph cannot capture the launches
static int l_ready(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_check(L, 1, MT_CALLS, "calls");
  face_checktype(L, 2, LUA_TTABLE);
  Walk w = walk_call(cx, L, 3, lua_gettop(L), 0);
  Gpu *g = gpu_of(&w);
  if (!g || !find(L, &w)) return 0;
  int entry = lua_gettop(L);
  Run *r = lua_newuserdatauv(L, sizeof *r, RUN_VALUES);
  *r = (Run){.nstep = 0};
  luaL_setmetatable(L, MT_RUN);
  lua_newtable(L);
  Make m = {.L = L, .cx = cx, .w = &w, .r = r, .desc = 2, .hold = entry + 2};
  lua_pushvalue(L, -1), lua_setiuservalue(L, entry + 1, RUN_HOLD);
  gpulib_open_gpu(L, g->ordinal, &(Why){0});
  lua_setiuservalue(L, entry + 1, RUN_GPU);
  r->alone = face_get_bool(L, 2, "alone");
  lua_getfield(L, 2, "reads");
  r->reads = lua_istable(L, -1);
  lua_setiuservalue(L, entry + 1, RUN_READ);
  lua_getfield(L, 2, "work");
  if ((m.work = buffer_of(L, -1))) r->work = m.work->bytes;
  make_results(&m);
  lua_getfield(L, 2, "steps");
  int steps = lua_gettop(L);
  size_t n = (size_t)lua_rawlen(L, steps);
  r->step = held(L, m.hold, n * sizeof *r->step);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, steps, (lua_Integer)i + 1);
    make_step(&m, &r->step[i]);
  }
  r->nstep = n;
  lua_getiuservalue(L, entry, ENTRY_RUNS);
  lua_pushvalue(L, entry + 1);
  lua_rawseti(L, -2, stream_number(&w, g));
  return 0;
}

// ---- execution ----

// Returns the bits of a kernel parameter: a number among the call's arguments,
// converted to the parameter's type.
static uint64_t number_bits(const Slot *s, const Leaf *l) {
  uint64_t whole;
  if (s->part != PART_ALL) {
    memcpy(&whole, &l->real, sizeof whole);
    return s->part == PART_LOW ? (uint32_t)whole : whole >> 32;
  }
  if (s->type == l->type) return l->bits;
  if (s->type == DT_I32 || s->type == DT_I64) return (uint64_t)l->number;
  return dtype_from_double(s->type, l->real);
}

// State of a call that is executing prepared launches.
typedef struct Going {
  lua_State *L;
  Ctx *cx;
  const Walk *w;
  const Run *r;
  DevBuf work, **made;
} Going;

// Returns the buffer to which a kernel parameter points, and sets *at to the
// address.
static DevBuf *memory_of(Going *c, const Slot *s, uint64_t *at) {
  DevBuf *b = NULL;
  int64_t offset = s->offset;
  switch (s->from) {
  case FROM_CALL:
    b = c->w->leaf[s->of].dev;
    offset += begin_of(&c->w->leaf[s->of]);
    break;
  case FROM_NEW: b = c->made[s->of]; break;
  case FROM_WORK: b = &c->work; break;
  case FROM_KEPT: b = c->r->kept[s->of]; break;
  }
  *at = b->ptr + (uint64_t)offset;
  return b;
}

static bool run_step(Going *c, const Step *s, Why *why) {
  GpuLaunch l = *s->launch;
  l.stream = c->w->stream;
  uint64_t *value = NEW(c->cx, uint64_t, s->n + 1);
  l.params = NEW(c->cx, void *, s->n + 1);
  l.params[s->n] = NULL;
  l.bufs = NEW(c->cx, DevBuf *, s->n + 1);
  l.nbufs = 0;
  for (size_t i = 0; i < s->n; i++) {
    const Slot *slot = &s->slot[i];
    l.params[i] = &value[i];
    if (slot->pointer) {
      l.bufs[l.nbufs++] = memory_of(c, slot, &value[i]);
      if (!slot->map) continue;
      slot->map[0] = value[i];
      l.params[i] = slot->map;
    } else {
      value[i] = slot->from == FROM_KEPT
                   ? slot->bits : number_bits(slot, &c->w->leaf[slot->of]);
    }
  }
  gpulib_ran(c->L, l.fn->own.gpu, l.fn->name);
  return gpulaunch_run(&l, 1, why);
}

// Reports whether the run at idx can be executed. Its kernels and its kept
// memory must still be valid, and the Lua values that tracing read must be
// unchanged. A graph capture in progress must allow its launches.
static bool can_run(lua_State *L, const Run *r, int idx, const Gpu *g) {
  for (size_t i = 0; i < r->nstep; i++)
    if (!gpu_owns(&r->step[i].launch->fn->own)) return false;
  for (size_t i = 0; i < r->nkept; i++)
    if (!gpu_owns(&r->kept[i]->own)) return false;
  if (r->alone && g->capture) return false;
  if (!r->reads) return true;
  lua_getiuservalue(L, idx, RUN_READ);
  bool same = kernlib_unchanged(L, lua_gettop(L));
  lua_pop(L, 1);
  return same;
}

// Creates the tensors that a call returns, and pushes them.
static void push_results(Going *c, int run) {
  lua_State *L = c->L;
  c->made = NEW(c->cx, DevBuf *, c->r->nmade + 1);
  luaL_checkstack(L, (int)c->r->nmade + LUA_MINSTACK, "results of a call");
  for (size_t i = 0; i < c->r->nmade; i++) {
    const Made *m = &c->r->made[i];
    Why why;
    lua_getiuservalue(L, run, RUN_GPU);
    c->made[i] = devlib_new(L, lua_gettop(L), m->t.type, m->count, &why);
    if (!c->made[i]) face_error(L, why.kind, "%s", why.msg);
    tensorlib_push_of(L, &m->t, c->made[i], -1);
    lua_replace(L, -3);
    lua_pop(L, 1);
  }
}

// Allocates the workspace from the pool. The call returns it right after its
// launches. This is safe, because later uses of the memory follow these
// launches in the order of the stream. A graph keeps the workspace of its
// capture.
static bool take_work(Going *c, Gpu *g, Why *why) {
  size_t n = c->r->work;
  const GpuStream *s = c->w->stream;
  if (!n || devbuf_scratch(&c->work, g, n, s, why)) return true;
  if (why->kind != ERR_MEMORY) return false;
  lua_gc(c->L, LUA_GCCOLLECT);
  return devbuf_scratch(&c->work, g, n, s, why);
}

// calls(arguments...) -> true, new tensors: the call was launched. -> false,
// plan: a plan is known, but Lua code must execute it. -> nothing: there is no
// entry for these arguments.
static int l_call(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_check(L, 1, MT_CALLS, "calls");
  Walk w = walk_call(cx, L, 2, lua_gettop(L), 0);
  if (ir_fn(cx) || !find(L, &w)) return 0;
  int entry = lua_gettop(L), run = entry + 2;
  Gpu *g = gpu_of(&w);
  lua_getiuservalue(L, entry, ENTRY_RUNS);
  if (g) lua_rawgeti(L, entry + 1, stream_number(&w, g));
  else lua_pushnil(L);
  const Run *r = lua_touserdata(L, run);
  bool good = !w.stream || (!w.stream->own.closed && w.stream->own.gpu == g);
  if (!r || !good || !can_run(L, r, run, g)) {
    lua_pushboolean(L, 0);
    lua_getiuservalue(L, entry, ENTRY_PLAN);
    return 2;
  }
  Going c = {.L = L, .cx = cx, .w = &w, .r = r};
  Why why;
  gpulib_keep(L, g, run);
  lua_pushboolean(L, 1);
  push_results(&c, run);
  bool ok = take_work(&c, g, &why);
  if (!ok)
    face_error(L, why.kind, "out of memory for the operation's workspace of "
               "%zu bytes: %s", r->work, why.msg);
  for (size_t i = 0; ok && i < r->nstep; i++)
    ok = run_step(&c, &r->step[i], &why);
  if (r->work) devbuf_close(&c.work);
  if (!ok) face_error(L, why.kind, "%s", why.msg);
  return 1 + (int)r->nmade;
}

// calls:rest(): removes the prepared launches of all entries, but keeps the
// plans.
static int l_rest(lua_State *L) {
  face_check(L, 1, MT_CALLS, "calls");
  lua_getiuservalue(L, 1, CALLS_ENTRIES);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    lua_newtable(L);
    lua_setiuservalue(L, -2, ENTRY_RUNS);
  }
  return 0;
}

// calls:forget(): removes all entries.
static int l_forget(lua_State *L) {
  Calls *c = face_check(L, 1, MT_CALLS, "calls");
  lua_newtable(L);
  lua_setiuservalue(L, 1, CALLS_ENTRIES);
  c->count = 0;
  return 0;
}

// calls(most, form) -> a cache of at most `most` entries. form(f) returns the
// form (see push_form) of a Lua function f.
static int l_calls(lua_State *L) {
  lua_Integer most = face_checkint(L, 1);
  face_checktype(L, 2, LUA_TFUNCTION);
  Calls *c = lua_newuserdatauv(L, sizeof *c, CALLS_VALUES);
  *c = (Calls){.most = most};
  luaL_setmetatable(L, MT_CALLS);
  int at = lua_gettop(L);
  for (int i = CALLS_ENTRIES; i <= CALLS_VALUES; i++) {
    if (i == CALLS_FORM) lua_pushvalue(L, 2);
    else lua_newtable(L);
    lua_setiuservalue(L, at, i);
  }
  lua_getiuservalue(L, at, CALLS_SEEN);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_settop(L, at);
  return 1;
}

void plan_cache_open(lua_State *L) {
  static const luaL_Reg funcs[] = {{"calls", l_calls}, {NULL, NULL}};
  static const luaL_Reg calls[] = {
    {"__call", l_call}, {"add(plan, arguments...)", l_add},
    {"ready(run, arguments...)", l_ready}, {"rest()", l_rest},
    {"forget()", l_forget}, {NULL, NULL}};
  static const luaL_Reg none[] = {{NULL, NULL}};
  face_newtype(L, MT_CALLS, calls);
  face_newtype(L, MT_ENTRY, none);
  face_newtype(L, MT_RUN, none);
  lua_pop(L, 3);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
