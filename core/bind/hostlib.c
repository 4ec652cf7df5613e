// Host tensors: their memory, elements and constructors, and the marks that
// make extents and strides dynamic for kernels.
#include <math.h>
#include <string.h>

#include "base/bulk.h"
#include "bind/gpulib.h"
#include "bind/laylib.h"
#include "bind/tensorlib.h"

// ---- elements ----

// Returns the open host buffer of the tensor at idx, or raises an error.
static HostBuf *buffer_of(lua_State *L, int idx) {
  idx = lua_absindex(L, idx);
  lua_getiuservalue(L, idx, 1);
  // the tensor keeps the buffer alive
  HostBuf *b = face_test(L, -1, MT_BUFFER);
  bool gpu = !b && face_test(L, -1, MT_DEVBUF);
  lua_pop(L, 1);
  if (gpu)
    face_error(L, ERR_ARG, "the tensor's elements are on a GPU\n  t:to "
               "\"host\" returns a copy on the host");
  if (!b) face_error(L, ERR_ARG, "the tensor has no host memory");
  if (!hostbuf_open(b)) face_error(L, ERR_CLOSED, "the buffer was closed");
  return b;
}

// Returns the index into buffer b of the element at offset off of tensor t.
// Raises an error if there is no such element.
static size_t host_index(Ctx *cx, lua_State *L, const HostBuf *b,
                         const Tensor *t, Dim off) {
  if (!dim_static(off))
    face_error(L, ERR_STATIC, "a host tensor was indexed by a traced value\n"
               "  %s\n  pass the tensor to the kernel as an argument, and read "
               "it in the kernel", tensor_show(cx, t));
  int64_t i = dim_value(off);
  uint64_t n = t->type == b->t  // otherwise, t is recast
    ? b->count : b->bytes * 8 / (uint64_t)dtype_bits(t->type);
  if (i < 0 || (uint64_t)i >= n)
    face_error(L, ERR_ARG, "element %lld is outside of the buffer of %lld\n"
               "  %s", (long long)i, (long long)n, tensor_show(cx, t));
  return (size_t)i;
}

static uint64_t check_bits(lua_State *L, int idx, DType t) {
  if (lua_isboolean(L, idx) || lua_type(L, idx) == LUA_TNUMBER)
    return face_number_bits(L, idx, t);
  if (luaL_testudata(L, idx, MT_VALUE))
    face_error(L, ERR_INTRACE, "a traced value cannot be stored to a host "
               "tensor\n  pass the tensor to the kernel as an argument");
  face_error(L, ERR_TYPE, "an element of type %s cannot be a %s",
             dtype_name(t), face_typename(L, idx));
}

void hostlib_get(Ctx *cx, lua_State *L, int idx, const Tensor *t, Dim off) {
  HostBuf *b = buffer_of(L, idx);
  size_t i = host_index(cx, L, b, t, off);
  if (ir_fn(cx)) {
    lua_getiuservalue(L, idx, 1);
    buflib_note(L, t->type, i);
  }
  face_push_bits(L, t->type, dtype_load(t->type, b->p, i));
}

static void check_writable(Ctx *cx, lua_State *L) {
  if (ir_fn(cx))
    face_error(L, ERR_INTRACE, "a host tensor cannot be written while a "
               "kernel is traced\n  pass the tensor to the kernel as an "
               "argument");
}

void hostlib_set(Ctx *cx, lua_State *L, int idx, const Tensor *t, Dim off,
                 int value) {
  HostBuf *b = buffer_of(L, idx);
  check_writable(cx, L);
  buflib_check_writable(L, b->readonly);
  size_t i = host_index(cx, L, b, t, off);
  dtype_store(t->type, b->p, i, check_bits(L, value, t->type));
  b->defined = true;
}

void hostlib_fill(Ctx *cx, lua_State *L, int idx, const Tensor *t,
                  int value) {
  if (tensorlib_box(L, idx)->dev) {
    check_writable(cx, L);
    devlib_fill(cx, L, idx, t, check_bits(L, value, t->type));
    return;
  }
  int64_t n = tensor_count(cx, t, "fill");
  if (n == 0) return;
  HostBuf *b = buffer_of(L, idx);
  check_writable(cx, L);
  buflib_check_writable(L, b->readonly);
  uint64_t bits = check_bits(L, value, t->type);
  if (tensor_dense(cx, t->l)) {
    size_t first = host_index(cx, L, b, t, t->off);
    host_index(cx, L, b, t, dim_add(cx, t->off, dim_int(cx, n - 1)));
    bulk_fill(t->type, b->p, first, (size_t)n, bits);
  // The first iteration checks all elements, the second one writes them.
  } else {
    for (int write = 0; write < 2; write++)
      for (int64_t i = 0; i < n; i++) {
        size_t at = host_index(cx, L, b, t, tensor_at(cx, *t, dim_int(cx, i)));
        if (write) dtype_store(t->type, b->p, at, bits);
      }
  }
  b->defined = true;
}

// ---- constructors ----

// Returns a host tensor with layout l, which has no memory yet. Sets *n to the
// number of elements that its memory needs.
static Tensor new_tensor(Ctx *cx, lua_State *L, DType type, Layout l,
                         size_t *n) {
  if (ir_fn(cx))
    face_error(L, ERR_INTRACE, "a host tensor cannot be made inside a kernel"
               "\n  use make_rmem_tensor or make_smem_tensor there");
  l = layout_linear(cx, l);
  Dim reach = layout_reach(cx, l), below = layout_below(cx, l);
  if (!dim_static(reach) || dim_value(reach) < 0)
    face_error(L, ERR_ARG, "a host tensor needs a static layout, got %s",
               layout_text(cx, l));
  if (l.outer ? !dim_is(below, 0) : layout_has_basis(l))
    face_error(L, ERR_ARG, "a host tensor needs offsets of 0 or more, not %s",
               layout_text(cx, l));
  Tensor t = {.space = SP_HOST, .type = type, .l = l,
              .align = HOSTBUF_ALIGN};
  *n = buflib_size(L, dim_value(reach));
  return dim_is(below, 0) ? t : tensor_offset(cx, t, below);
}

// The device on which to allocate a new tensor.
typedef struct Place {
  Gpu *gpu;     // the GPU, or NULL for the host
  int at;       // stack index of the GPU's object
  bool pinned;  // whether host memory is pinned
  bool named;   // whether the options contain a device
  bool sim;  // whether that device is the simulator, which uses host memory
} Place;

// Reads the options {device =, pinned =, seed =} at idx. If the device is a
// GPU, leaves the GPU on the stack.
static Place place_of(lua_State *L, int idx) {
  Place p = {0};
  face_check_options(L, idx, "device pinned seed");
  if (!lua_istable(L, idx)) return p;
  p.pinned = face_get_bool(L, idx, "pinned");
  p.named = lua_getfield(L, idx, "device") != LUA_TNIL;
  p.gpu = devlib_place(L, -1);
  p.at = lua_gettop(L);
  p.sim = p.named && !p.gpu && (lua_type(L, p.at - 1) != LUA_TSTRING ||
                                strcmp(lua_tostring(L, p.at - 1), "host") != 0);
  return p;
}

// Pins the memory of the host buffer on top. Does nothing without a GPU.
static void pin(lua_State *L) {
  Why w;
  if (gpulib_open_gpu(L, 0, &w)) {
    devlib_pin(L, -2, lua_touserdata(L, -1));
    lua_pop(L, 1);
  }
}

// Pushes a new tensor with layout l on a new host buffer, and returns the
// buffer. With `reuse`, while a graph of the simulator is recorded, takes the
// memory of a closed tensor if one is large enough.
static HostBuf *push_host(Ctx *cx, lua_State *L, DType type, Layout l,
                          bool pinned, bool reuse) {
  size_t n;
  Tensor t = new_tensor(cx, L, type, l, &n);
  if (pinned) buflib_new_pages(L, type, n), pin(L);
  else if (!reuse || !recordlib_reuse(L, type, n)) buflib_new(L, type, n);
  HostBuf *b = lua_touserdata(L, -1);
  face_push_tensor(L, &t, -1);
  lua_remove(L, -2);
  return b;
}

// Pushes a new tensor on the device that the options at `opts` name. All
// elements get the value *bits or, if bits is NULL, are undefined.
static int push_filled(Ctx *cx, lua_State *L, DType type, Layout l, int opts,
                       const uint64_t *bits) {
  Place p = place_of(L, opts);
  if (!p.gpu) {
    HostBuf *b = push_host(cx, L, type, l, p.pinned, p.sim);
    if (!bits) return 1;
    // A new buffer already contains zeros. A buffer in reused memory must be
    // filled at each launch of the graph, so the fill is recorded.
    if (*bits && b->raw) bulk_fill(type, b->p, 0, b->count, *bits);
    b->defined = true;
    if (p.named && recordlib_recording(L)) {
      lua_pushvalue(L, -1);
      face_push_bits(L, type, *bits);
      recordlib_call(L, "fill", 2);
    }
    return 1;
  }
  size_t n;
  Why w;
  Tensor t = new_tensor(cx, L, type, l, &n);
  DevBuf *d = devlib_new(L, p.at, type, n, &w);
  if (!d) face_error(L, w.kind, "%s", w.msg);
  if (bits) devlib_set(L, d, *bits);
  face_push_tensor(L, &t, -1);
  return 1;
}

// Moves the host tensor on top to the device that the options name. While a
// graph of the simulator is recorded, rejects this copy, as a graph of a GPU
// does.
static int push_moved(Ctx *cx, lua_State *L, Place p) {
  if (p.sim && recordlib_recording(L)) devlib_refuse_copy(L);
  if (p.gpu) devlib_move(cx, L, lua_gettop(L), p.at);
  return 1;
}

// Returns the layout at stack index idx. For a shape at idx, returns its
// row-major layout.
static Layout check_layout(Ctx *cx, lua_State *L, int idx) {
  Layout l;
  return face_test_layout(L, idx, &l)
           ? l : layout_compact_right(cx, face_check_tup(cx, L, idx));
}

// zeros(shape or layout, dtype [, options]) -> a tensor of zeros. A shape
// stands for its row-major layout, as in numpy and torch.
static int l_zeros(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = check_layout(cx, L, 1);
  uint64_t none = 0;
  return push_filled(cx, L, face_check_dtype(L, 2), l, 3, &none);
}

// empty(shape or layout, dtype [, options]) -> a tensor of undefined elements.
// The simulator reports reads of elements that were not written.
static int l_empty(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = check_layout(cx, L, 1);
  return push_filled(cx, L, face_check_dtype(L, 2), l, 3, NULL);
}

static int l_ones(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = check_layout(cx, L, 1);
  DType t = face_check_dtype(L, 2);
  uint64_t one = dtype_from_double(t, 1);
  return push_filled(cx, L, t, l, 3, &one);
}

// full(shape or layout, x, dtype [, options]) -> a tensor in which all elements
// are x
int hostlib_full(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = check_layout(cx, L, 1);
  DType t = face_check_dtype(L, 3);
  uint64_t bits = check_bits(L, 2, t);
  return push_filled(cx, L, t, l, 4, &bits);
}

// Implements full_like(t, x[, dtype]) -> a compact tensor on t's device, whose
// modes have the order of t's strides. xi and ti are the stack indices of x and
// dtype. If xi is 0, the elements are `number`.
int hostlib_like(lua_State *L, int xi, int number, int ti) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  DType type = lua_isnoneornil(L, ti) ? t.type : face_check_dtype(L, ti);
  if (xi) face_checkany(L, xi);
  else lua_pushinteger(L, number);
  uint64_t bits = check_bits(L, xi ? xi : lua_gettop(L), type);
  lua_newtable(L);
  int opts = lua_gettop(L);
  devlib_push_device(L, 1);
  lua_setfield(L, opts, "device");
  return push_filled(cx, L, type, layout_like(cx, layout_inner(t.l)), opts,
                     &bits);
}

// ---- random elements ----

// Key in the registry of the seed for the next random tensor without the option
// `seed`.
#define SEED "cute.seed"

static uint64_t next_seed(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, SEED);
  uint64_t state = (uint64_t)lua_tointeger(L, -1), seed = base_random(&state);
  lua_pop(L, 1);
  lua_pushinteger(L, (lua_Integer)state);
  lua_setfield(L, LUA_REGISTRYINDEX, SEED);
  return seed;
}

// manual_seed(n): sets the seed of the random tensors that are created from now
// on.
static int l_manual_seed(lua_State *L) {
  face_outside(L);
  lua_pushinteger(L, face_checkint(L, 1));
  lua_setfield(L, LUA_REGISTRYINDEX, SEED);
  return 0;
}

// Pushes a tensor of random elements. The Lua arguments from stack index `at`
// on are its shape, type and options. The numbers are generated on the host, so
// they do not depend on the device.
static int push_random(lua_State *L, int at, char how) {
  Ctx *cx = face_enter(L);
  Layout l = check_layout(cx, L, at);
  DType t = face_check_dtype(L, at + 1);
  if (how != 'i' && !dtype_is_float(t))
    face_error(L, ERR_TYPE, "%s is an integer type: use randint for random "
               "integers",
               dtype_name(t));
  Place p = place_of(L, at + 2);
  bool told = lua_istable(L, at + 2) &&
              lua_getfield(L, at + 2, "seed") != LUA_TNIL;
  if (told && !lua_isinteger(L, -1))
    face_error(L, ERR_ARG, "seed = %s: an integer is needed", face_show(L, -1));
  uint64_t seed = told ? (uint64_t)lua_tointeger(L, -1) : next_seed(L);
  HostBuf *b = push_host(cx, L, t, l, p.pinned && !p.gpu, false);
  if (how == 'i')
    bulk_ints(t, b->p, b->count, seed, face_checkint(L, 1),
              face_checkint(L, 2) - 1);
  else if (how == 'n')
    bulk_normal(t, b->p, b->count, seed, 0, 1);
  else
    bulk_uniform(t, b->p, b->count, seed);
  b->defined = true;
  return push_moved(cx, L, p);
}

// rand(shape, dtype [, {seed =, device =, pinned =}]) -> a tensor of uniform
// numbers in [0, 1). randn(...) -> a tensor of normally distributed numbers
// with mean 0 and deviation 1
static int l_rand(lua_State *L) { return push_random(L, 1, 'u'); }
static int l_randn(lua_State *L) { return push_random(L, 1, 'n'); }

// randint(lo, hi, shape, dtype [, options]) -> a tensor of random integers from
// lo to hi - 1
static int l_randint(lua_State *L) {
  int64_t lo = face_checkint(L, 1), hi = face_checkint(L, 2);
  DType t = face_check_dtype(L, 4);
  if (hi <= lo)
    face_error(L, ERR_ARG, "the lower bound %lld must be below the upper "
               "bound %lld",
               (long long)lo, (long long)hi);
  if (dtype_is_int(t)) {
    face_check_fits(L, 1, t);
    lua_pushinteger(L, hi - 1);
    face_check_fits(L, lua_gettop(L), t);
    lua_pop(L, 1);
  }
  return push_random(L, 3, 'i');
}

// Returns the shape of nested lists of numbers. The extent of each level is
// taken from the first list of the level.
static Tup nested_shape(Ctx *cx, lua_State *L, int idx) {
  Dim extent[8];
  size_t n = 0;
  lua_pushvalue(L, idx);
  while (lua_istable(L, -1)) {
    if (n == 8) face_error(L, ERR_LIMIT, "a tensor has at most 8 modes");
    lua_Integer k = luaL_len(L, -1);
    extent[n++] = dim_int(cx, k);
    if (k == 0) break;
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }
  lua_pop(L, 1);
  return n == 1 ? tup_leaf(cx, extent[0]) : tup_of(cx, extent, n);
}

typedef struct Nest {
  lua_State *L;
  HostBuf *b;
  const Dim *extent;
  size_t levels, at;
} Nest;

// Raises an error if the table on top has keys other than 1 to n. lua_next
// returns such keys after the array part.
static void check_rest(lua_State *L, int64_t n) {
  if (n) lua_pushinteger(L, n);
  else lua_pushnil(L);
  while (lua_next(L, -2)) {
    lua_pop(L, 1);
    if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1 ||
        lua_tointeger(L, -1) > n)
      face_error(L, ERR_ARG, "tensor: a list of length %lld also has the key "
                 "%s", (long long)n, face_show(L, -1));
  }
}

// Appends the elements of the list on top of the stack, which is at nesting
// level `level`, in row-major order.
static void read_nested(Nest *n, size_t level) {
  lua_State *L = n->L;
  int64_t want = dim_value(n->extent[level]);
  if (!lua_istable(L, -1) || (int64_t)luaL_len(L, -1) != want)
    face_error(L, ERR_SHAPE, "tensor: the tables are ragged: %lld entries are "
               "expected at depth %d", (long long)want, (int)level + 1);
  luaL_checkstack(L, 4, "nested tables");
  for (int64_t i = 1; i <= want; i++) {
    lua_rawgeti(L, -1, i);
    if (level + 1 < n->levels)
      read_nested(n, level + 1);
    else
      dtype_store(n->b->t, n->b->p, n->at++, check_bits(L, -1, n->b->t));
    lua_pop(L, 1);
  }
  check_rest(L, want);
}

// tensor(nested lists of numbers [, dtype [, options]]) -> a tensor with these
// elements, f32 by default.
static int l_tensor(lua_State *L) {
  Ctx *cx = face_enter(L);
  Place p = place_of(L, 3);
  face_checktype(L, 1, LUA_TTABLE);
  DType t = lua_isnoneornil(L, 2) ? DT_F32 : face_check_dtype(L, 2);
  Tup shape = nested_shape(cx, L, 1);
  HostBuf *b = push_host(cx, L, t, layout_compact_right(cx, shape),
                         p.pinned && !p.gpu, false);
  Nest n = {L, b, tup_first(shape), (size_t)tup_rank(shape), 0};
  lua_pushvalue(L, 1);
  read_nested(&n, 0);
  lua_pop(L, 1);
  b->defined = true;
  return push_moved(cx, L, p);
}

// ---- marks of dynamic modes ----

// Returns the dynamic marks of tensor t, which is at index 1. If it has none,
// creates marks in which all extents and strides are static.
static TensorMarks *edit_marks(lua_State *L, const Tensor *t) {
  size_t n = tup_leaves(t->l.shape);
  bool has = t->space == SP_HOST || t->space == SP_COORD;
  if (!has || t->l.outer || !layout_static(t->l))
    face_error(L, ERR_ARG, "only a host tensor with a plain layout can be "
               "marked dynamic");
  if (n > TENSOR_MAX_MARKS)
    face_error(L, ERR_LIMIT, "modes of a tensor can be marked dynamic only "
               "if it has at most %d modes", TENSOR_MAX_MARKS);
  TensorMarks *m = (TensorMarks *)tensor_marks(L, 1);
  if (m) return m;
  m = lua_newuserdatauv(L, sizeof *m, 0);
  memset(m, 0, sizeof *m);
  m->n = (int)n;
  lua_setiuservalue(L, 1, 2);
  return m;
}

// Extents and strides of all modes of a tensor as plain integers.
typedef struct Leaves {
  int n;
  int64_t shape[TENSOR_MAX_MARKS], stride[TENSOR_MAX_MARKS];
} Leaves;

static Leaves leaves_of(const Tensor *t) {
  Leaves v = {.n = (int)tup_leaves(t->l.shape)};
  Dim leaf[TENSOR_MAX_MARKS];
  tup_collect(t->l.shape, leaf);
  for (int i = 0; i < v.n; i++) {
    v.shape[i] = dim_value(leaf[i]);
    // For a coordinate tensor, the strides are bases, not integers.
    Dim d = t->l.stride[i];
    v.stride[i] = dim_static(d) && t->space != SP_COORD ? dim_value(d) : 0;
  }
  return v;
}

static void check_divides(lua_State *L, const char *what, int mode,
                          int64_t v, int64_t div) {
  if (div < 1)
    face_error(L, ERR_ARG, "a divisibility must be at least 1, got %lld",
               (long long)div);
  if (v % div)
    face_error(L, ERR_ARG, "%s %lld of mode %d is not a multiple of %lld", what,
               (long long)v, mode, (long long)div);
}

// Returns option `key` of the table at 2 for a mode. The option is an integer
// for all modes, or a list with one integer for each mode. If it is absent,
// returns def.
static int64_t option_of(lua_State *L, const char *key, int mode,
                         int64_t def) {
  if (!lua_istable(L, 2)) return def;
  int64_t v = def;
  if (lua_getfield(L, 2, key) == LUA_TTABLE) {
    if (lua_geti(L, -1, mode + 1) != LUA_TNIL) v = face_checkint(L, -1);
    lua_pop(L, 1);
  } else if (!lua_isnil(L, -1)) {
    v = face_checkint(L, -1);
  }
  lua_pop(L, 1);
  return v;
}

// Returns the mode with stride 1, or -1 if there is none. If several modes have
// stride 1, returns the one with more than one element, and raises an error if
// there are several of these.
static int deduce_leading(lua_State *L, const Leaves *v) {
  int found = -1, any = -1;
  for (int i = 0; i < v->n; i++) {
    if (v->stride[i] != 1) continue;
    any = i;
    if (v->shape[i] <= 1) continue;
    if (found >= 0)
      face_error(L, ERR_ARG, "modes %d and %d both have stride 1: pass "
                 "leading_dim = %d or %d", found, i, found, i);
    found = i;
  }
  return found >= 0 ? found : any;
}

// Returns a number that divides stride i for all values of the dynamic extents.
// If the strides are compact, it follows from the marks of the faster modes.
// Otherwise it is 1.
static int64_t compact_div(const Leaves *v, const TensorMarks *m, int i) {
  int64_t cur = 1, div = 1;
  for (int steps = 0; steps <= v->n && cur < v->stride[i]; steps++) {
    int next = -1;
    for (int k = 0; k < v->n; k++)
      if (k != i && v->shape[k] > 1 && v->stride[k] == cur) next = k;
    if (next < 0) return 1;
    cur *= v->shape[next];
    div *= m->shape[next] ? m->shape[next] : v->shape[next];
  }
  return cur == v->stride[i] && div > 0 ? div : 1;
}

// Returns the tensor at stack index 1, which is to be marked. If there is a
// layout, replaces it by a copy, and returns a tensor with this copy.
static Tensor check_subject(lua_State *L) {
  if (!laylib_box(L, 1)) return face_check_tensor(L, 1);
  Tensor t = {.space = SP_HOST, .l = face_check_layout(L, 1)};
  laylib_push_markable(L, t.l);
  lua_replace(L, 1);
  return t;
}

// x:mark_layout_dynamic{leading_dim =, divisibility =, stride_divisibility =}:
// marks all extents of a tensor or layout as dynamic, and all strides except
// the stride of the leading mode, which is 1.
static int mark_layout(lua_State *L) {
  face_enter(L);
  Tensor t = check_subject(L);
  face_check_options(L, 2, "leading_dim divisibility stride_divisibility");
  TensorMarks *m = edit_marks(L, &t);
  Leaves v = leaves_of(&t);
  TensorMarks now = {.n = v.n, .align = m->align};
  int64_t lead = option_of(L, "leading_dim", 0, -1);
  if (lead < 0) lead = deduce_leading(L, &v);
  if (lead >= v.n || (lead >= 0 && v.stride[lead] != 1))
    face_error(L, ERR_ARG, "leading_dim %lld does not have stride 1",
               (long long)lead);
  for (int i = 0; i < v.n; i++) {
    now.shape[i] = option_of(L, "divisibility", i, 1);
    check_divides(L, "extent", i, v.shape[i], now.shape[i]);
  }
  for (int i = 0; i < v.n; i++) {
    if (i == lead || v.stride[i] == 0) continue;
    int64_t div = compact_div(&v, &now, i);
    now.stride[i] = option_of(L, "stride_divisibility", i, div);
    check_divides(L, "stride", i, v.stride[i], now.stride[i]);
  }
  *m = now;
  lua_settop(L, 1);
  return 1;
}

// t:mark_compact_shape_dynamic{mode =, divisibility =}: marks as dynamic the
// extent of one mode, and the strides of all slower modes.
static int tensor_mark_compact(lua_State *L) {
  face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  face_check_options(L, 2, "mode divisibility");
  TensorMarks *m = edit_marks(L, &t);
  Leaves v = leaves_of(&t);
  int64_t mode = option_of(L, "mode", 0, -1);
  if (mode < 0 || mode >= v.n)
    face_error(L, ERR_ARG, "mark_compact_shape_dynamic needs a mode of 0 to "
               "%d", v.n - 1);
  TensorMarks now = *m;
  now.shape[mode] = option_of(L, "divisibility", (int)mode, 1);
  check_divides(L, "extent", (int)mode, v.shape[mode], now.shape[mode]);
  for (int i = 0; i < v.n; i++) {
    if (v.stride[i] <= v.stride[mode] || i == mode) continue;
    if (v.stride[i] % (v.stride[mode] * v.shape[mode]))
      face_error(L, ERR_ARG, "the layout is not compact: stride %lld of mode "
                 "%d is not a multiple of %lld", (long long)v.stride[i], i,
                 (long long)(v.stride[mode] * v.shape[mode]));
    now.stride[i] = compact_div(&v, &now, i);
  }
  *m = now;
  lua_settop(L, 1);
  return 1;
}

const luaL_Reg hostlib_methods[] = {
  {"mark_layout_dynamic(opts?)", mark_layout},
  {"mark_compact_shape_dynamic(opts)", tensor_mark_compact}, {NULL, NULL}};

void hostlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"tensor(values, dtype?, opts?)", l_tensor},
    {"zeros(shape, dtype, opts?)", l_zeros},
    {"empty(shape, dtype, opts?)", l_empty},
    {"ones(shape, dtype, opts?)", l_ones},
    {"rand(shape, dtype, opts?)", l_rand},
    {"randn(shape, dtype, opts?)", l_randn},
    {"randint(lo, hi, shape, dtype, opts?)", l_randint},
    {"manual_seed(seed)", l_manual_seed}, {NULL, NULL}};
  static const luaL_Reg of_layouts[] = {
    {"mark_layout_dynamic(opts?)", mark_layout}, {NULL, NULL}};
  face_setfuncs(L, funcs);
  luaL_getmetatable(L, MT_LAYOUT);
  face_setfuncs(L, of_layouts);
  lua_pop(L, 1);
}
// SPDX-License-Identifier: MIT
