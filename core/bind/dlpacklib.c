// Lua bindings of DLPack: imports tensors of other libraries, and exports
// tensors to other libraries, without copying memory.
#include "bind/gpulib.h"

#include <stdio.h>
#include <string.h>

#include "bind/dlpacklib.h"
#include "bind/tensorlib.h"
#include "gpu/memory.h"
#include "layout/composed.h"

// ---- element types ----

static const struct TypeRow {
  DType t;
  uint8_t code, bits;
} types[] = {
  {DT_BOOL, DL_BOOL, 8}, {DT_I8, DL_INT, 8}, {DT_I16, DL_INT, 16},
  {DT_I32, DL_INT, 32}, {DT_I64, DL_INT, 64}, {DT_U8, DL_UINT, 8},
  {DT_U16, DL_UINT, 16}, {DT_U32, DL_UINT, 32}, {DT_U64, DL_UINT, 64},
  {DT_F16, DL_FLOAT, 16}, {DT_F32, DL_FLOAT, 32}, {DT_F64, DL_FLOAT, 64},
  {DT_BF16, DL_BFLOAT, 16}, {DT_E4M3, DL_E4M3FN, 8}, {DT_E5M2, DL_E5M2, 8},
  {DT_UE8M0, DL_E8M0FNU, 8}, {DT_E2M3, DL_E2M3FN, 6}, {DT_E3M2, DL_E3M2FN, 6},
  {DT_E2M1, DL_E2M1FN, 4}, {DT_I4, DL_INT, 4}, {DT_U4, DL_UINT, 4},
  // only for exports, because an import finds f32 in an earlier row
  {DT_TF32, DL_FLOAT, 32}};

enum { TYPES = sizeof types / sizeof *types };

// Names of type codes, for messages.
static const char *const codes[] = {
  "int", "uint", "float", "handle", "bfloat", "complex", "bool", "float8_e3m4",
  "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
  "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
  "float6_e3m2fn", "float4_e2m1fn"};

// Returns the DType for an element type of DLPack. If there is none, raises an
// error that names the type.
static DType type_of(lua_State *L, DLDataType d) {
  for (int i = 0; d.lanes == 1 && i < TYPES; i++)
    if (types[i].code == d.code && types[i].bits == d.bits) return types[i].t;
  char lanes[16] = "", bits[16] = "";
  if (d.lanes != 1) snprintf(lanes, sizeof lanes, " x%d", d.lanes);
  if (d.code < DL_E3M4) snprintf(bits, sizeof bits, "%d", d.bits);
  if (d.code < sizeof codes / sizeof *codes)
    face_error(L, ERR_TYPE, "from_dlpack: elements of %s%s%s are not "
               "supported", codes[d.code], bits, lanes);
  face_error(L, ERR_TYPE, "from_dlpack: elements of the unknown type code %d "
             "(%d bits) are not supported", d.code, d.bits);
}

bool dlpacklib_type(DType t, DLDataType *out) {
  for (int i = 0; i < TYPES; i++) {
    if (types[i].t != t) continue;
    *out = (DLDataType){types[i].code, types[i].bits, 1};
    return true;
  }
  return false;
}

static DLDataType type_out(lua_State *L, DType t) {
  DLDataType d;
  if (dlpacklib_type(t, &d)) return d;
  face_error(L, ERR_TYPE, "to_dlpack: DLPack has no type for elements of %s",
             dtype_name(t));
}

// ---- import ----

// A managed tensor from another library, with or without a version.
typedef struct Given {
  const DLTensor *t;
  bool versioned, readonly, padded;
  void *managed;
} Given;

static void delete_old(void *p, size_t bytes) {
  (void)bytes;
  DLManagedTensor *m = p;
  if (m->deleter) m->deleter(m);
}

void dlpacklib_release(void *p, size_t bytes) {
  (void)bytes;
  DLManagedTensorVersioned *m = p;
  if (m->deleter) m->deleter(m);
}

// Returns the pointer at idx. It must be light userdata, which scripts cannot
// create.
static void *check_pointer(lua_State *L, int idx) {
  void *p = lua_islightuserdata(L, idx) ? lua_touserdata(L, idx) : NULL;
  if (!p) face_argerror(L, idx, "pointer to a managed tensor of DLPack");
  return p;
}

// Returns the option `versioned` of the table at idx, or true if there is no
// table.
static bool is_versioned(lua_State *L, int idx) {
  face_check_options(L, idx, "versioned");
  if (!lua_istable(L, idx)) return true;
  bool yes = lua_getfield(L, idx, "versioned") == LUA_TNIL ||
             lua_toboolean(L, -1);
  lua_pop(L, 1);
  return yes;
}

static Given given_of(lua_State *L, void *managed, bool versioned) {
  Given g = {.managed = managed, .versioned = versioned};
  if (!versioned) {
    g.t = &((DLManagedTensor *)g.managed)->t;
    return g;
  }
  DLManagedTensorVersioned *m = g.managed;
  if (m->version.major != DLPACK_MAJOR)
    face_error(L, ERR_ARG, "from_dlpack: the tensor has DLPack version "
               "%u.%u; version %d is supported", m->version.major,
               m->version.minor, DLPACK_MAJOR);
  g.t = &m->t;
  g.readonly = (m->flags & DL_READ_ONLY) != 0;
  g.padded = (m->flags & DL_PADDED) != 0;
  return g;
}

// The range [lo, hi) of elements that a tensor's layout reaches, counted from
// its first element. lo is not positive.
typedef struct Reach { int64_t lo, hi; } Reach;

// Returns the strides of a tensor. If it has none, or if it is empty (its
// strides may then be any numbers), returns row-major strides.
static int64_t *strides_of(Ctx *cx, const DLTensor *t) {
  int64_t *s = NEW(cx, int64_t, (size_t)t->ndim + 1), step = 1;
  bool own = t->strides != NULL;
  for (int i = 0; i < t->ndim; i++) own = own && t->shape[i] != 0;
  for (int i = t->ndim - 1; i >= 0; i--) {
    s[i] = own ? t->strides[i] : step;
    if (t->shape[i] > 0 && step <= INT64_MAX / 2 / t->shape[i])
      step *= t->shape[i];
  }
  return s;
}

static Reach reach_of(lua_State *L, const DLTensor *t, const int64_t *stride) {
  Reach r = {0, 1};
  for (int i = 0; i < t->ndim; i++) {
    if (t->shape[i] < 0)
      face_error(L, ERR_SHAPE, "from_dlpack: extent %d is %lld; 0 or more is "
                 "needed", i + 1, (long long)t->shape[i]);
    if (t->shape[i] == 0) return (Reach){0, 0};
  }
  for (int i = 0; i < t->ndim; i++) {
    int64_t far;
    if (__builtin_mul_overflow(t->shape[i] - 1, stride[i], &far) ||
        (far < 0 ? __builtin_add_overflow(r.lo, far, &r.lo)
                 : __builtin_add_overflow(r.hi, far, &r.hi)) ||
        r.hi > INT64_MAX / 128 || r.lo < -INT64_MAX / 128)
      face_error(L, ERR_LIMIT, "from_dlpack: extent %lld with stride %lld "
                 "reaches beyond any memory", (long long)t->shape[i],
                 (long long)stride[i]);
  }
  return r;
}

// Returns the layout of a tensor. Without dimensions, it has one mode of extent
// 1.
static Layout layout_from(Ctx *cx, const DLTensor *t, const int64_t *stride) {
  TupB shape = {0}, strides = {0};
  tupb_open(cx, &shape), tupb_open(cx, &strides);
  for (int i = 0; i < t->ndim; i++) {
    tupb_leaf(cx, &shape, dim_int(cx, t->shape[i]));
    tupb_leaf(cx, &strides, dim_int(cx, stride[i]));
  }
  if (t->ndim == 0) {
    tupb_leaf(cx, &shape, dim_int(cx, 1));
    tupb_leaf(cx, &strides, dim_int(cx, 1));
  }
  tupb_close(cx, &shape), tupb_close(cx, &strides);
  return layout_make(cx, tupb_done(cx, &shape), tupb_done(cx, &strides));
}

// Pushes tensor t on a new buffer: `count` elements at p, on the device of the
// given tensor. The buffer then owns the given tensor, unless an error is
// raised.
static void push_on(lua_State *L, const Given *g, const Tensor *t, size_t count,
                    char *p) {
  int kind = g->t->device.kind;
  void (*release)(void *, size_t) = g->versioned ? dlpacklib_release
                                                 : delete_old;
  Why w = {ERR_MEMORY, "out of memory"};
  if (kind == DL_CPU || kind == DL_CUDA_HOST) {
    HostBuf *b = buflib_foreign(L, t->type, count, p);
    b->readonly = g->readonly;
    face_push_tensor(L, t, -1);
    b->shared = shared_new(release, g->managed, 0);
    if (!b->shared) face_error(L, w.kind, "%s", w.msg);
    return;
  }
  if (!gpulib_open_gpu(L, g->t->device.id, &w))
    face_error(L, w.kind, "%s", w.msg);
  Gpu *gpu = lua_touserdata(L, -1);
  DevBuf *b = gpulib_handle(L, -1, sizeof *b, MT_DEVBUF);
  face_push_tensor(L, t, -1);
  Shared *s = shared_new(release, g->managed, 0);
  if (!s || !devbuf_foreign(b, gpu, t->type, count, (uint64_t)(uintptr_t)p, s,
                            &w)) {
    base_free(s);
    face_error(L, w.kind, "%s", w.msg);
  }
  b->readonly = g->readonly;
}

static void check_device(lua_State *L, DLDevice d) {
  static const char *const names[] = {
    [4] = "OpenCL", [7] = "Vulkan", [8] = "Metal", [9] = "VPI", [10] = "ROCm",
    [11] = "ROCm host", [14] = "oneAPI", [15] = "WebGPU", [16] = "Hexagon",
    [17] = "MAIA", [18] = "Trainium"};
  enum { NAMES = sizeof names / sizeof *names };
  if (d.kind == DL_CPU || d.kind == DL_CUDA_HOST || d.kind == DL_CUDA ||
      d.kind == DL_CUDA_MANAGED)
    return;
  const char *name = d.kind > 0 && d.kind < NAMES ? names[d.kind] : NULL;
  face_error(L, ERR_ARG, "from_dlpack: memory of %s (device type %d) is not "
             "supported; CPU and CUDA memory are", name ? name : "an unknown "
             "device", d.kind);
}

static void check_given(lua_State *L, const Given *g, DType type) {
  const DLTensor *t = g->t;
  check_device(L, t->device);
  if (t->ndim < 0 || t->ndim > DLPACK_RANK || (t->ndim && !t->shape))
    face_error(L, ERR_SHAPE, "from_dlpack: the tensor has %d dimensions; 0 to "
               "%d are supported", t->ndim, DLPACK_RANK);
  if (g->padded && dtype_bits(type) < 8)
    face_error(L, ERR_TYPE, "from_dlpack: elements of %s that are padded to "
               "bytes are not supported: pack them", dtype_name(type));
}

// Describes each pair of e2m1 (PyTorch's float4_e2m1fn_x2) as two elements:
// doubles the extent of the innermost dimension.
static void split_pairs(Ctx *cx, lua_State *L, DLTensor *d, int64_t *stride) {
  int inner = d->ndim - 1;
  while (inner >= 0 && stride[inner] != 1) inner--;
  if (inner < 0)
    face_error(L, ERR_ALIGN, "from_dlpack: pairs of float4_e2m1fn need a "
               "dimension with stride 1");
  int64_t *shape = NEW(cx, int64_t, (size_t)d->ndim);
  for (int i = 0; i < d->ndim; i++) {
    bool overflow = i == inner
      ? __builtin_mul_overflow(d->shape[i], 2, &shape[i])
      : __builtin_mul_overflow(stride[i], 2, &stride[i]);
    if (overflow) face_error(L, ERR_LIMIT, "from_dlpack: dimension %d of pairs "
                             "is too large", i + 1);
    if (i != inner) shape[i] = d->shape[i];
  }
  d->shape = shape;
  d->strides = stride;
}

// Returns the alignment that kernels may assume for an address. It is one of
// few values, because each alignment requires a separate program.
static int64_t alignment(uintptr_t at) {
  uintptr_t a = at ? at & -at : HOSTBUF_ALIGN;
  return a >= 64 ? 64 : a >= 16 ? 16 : (int64_t)a;
}

void dlpacklib_import(lua_State *L, void *managed, bool versioned) {
  Ctx *cx = face_state(L);
  int top = lua_gettop(L) + 1;
  Given g = given_of(L, managed, versioned);
  DLTensor t = *g.t, *d = &t;
  bool pairs = t.dtype.code == DL_E2M1FN && t.dtype.lanes == 2;
  if (pairs) t.dtype.lanes = 1;
  DType type = type_of(L, t.dtype);
  check_given(L, &g, type);
  int64_t *stride = strides_of(cx, d);
  if (pairs) split_pairs(cx, L, d, stride);
  Reach r = reach_of(L, d, stride);
  int64_t bits = dtype_bits(type);
  if (r.hi > 0 && !d->data)
    face_error(L, ERR_ARG, "from_dlpack: the tensor has elements, but its data "
               "pointer is NULL");
  if (r.lo * bits % 8)
    face_error(L, ERR_ALIGN, "from_dlpack: the tensor starts inside a byte");
  uintptr_t at = (uintptr_t)d->data + (uintptr_t)d->byte_offset;
  Tensor x = {.space = SP_HOST, .type = type, .l = layout_from(cx, d, stride),
              .off = dim_int(cx, -r.lo), .align = alignment(at)};
  if (r.hi > 0 && x.align * 8 < bits)
    face_error(L, ERR_ALIGN, "from_dlpack: the first element of %s is at an "
               "address that is a multiple of only %lld bytes",
               dtype_name(type), (long long)x.align);
  push_on(L, &g, &x, (size_t)(r.hi - r.lo), (char *)at + r.lo * bits / 8);
  lua_replace(L, top);
  lua_settop(L, top);
}

// from_dlpack(pointer [, {versioned =}]) -> a tensor on the memory of a managed
// tensor of DLPack. Its deleter is called when the memory is no longer used.
// After an error, the caller still owns the managed tensor.
static int l_from_dlpack(lua_State *L) {
  face_enter(L);
  face_outside(L);
  dlpacklib_import(L, check_pointer(L, 1), is_versioned(L, 2));
  return 1;
}

// ---- export ----

// A managed tensor that this file creates, with or without a version.
typedef struct Made {
  union {
    DLManagedTensor old;
    DLManagedTensorVersioned versioned;
  } m;
  Shared *memory;
  int64_t extents[];  // shape, then strides
} Made;

static void made_delete(Made *m) {
  shared_drop(m->memory);
  base_free(m);
}

static void made_delete_old(DLManagedTensor *m) { made_delete(m->owner); }

static void made_delete_versioned(DLManagedTensorVersioned *m) {
  made_delete(m->owner);
}

// Writes the shape and the strides of t to `to`. Each leaf of the layout
// becomes a dimension.
static void fill_extents(Tensor *t, int64_t *to, int n) {
  size_t words = tup_words(t->l.shape);
  const Dim *stride = t->l.stride;
  int k = 0;
  for (size_t i = 0; i < words; i++) {
    Dim s = t->l.shape[i];
    if (!tup_is_leaf(&s)) continue;
    to[k] = dim_value(s);
    to[n + k++] = dim_value(*stride++);
  }
}

// Raises an error if DLPack cannot describe the tensor.
static void check_out(Ctx *cx, lua_State *L, int idx, const Tensor *t) {
  const TensorBox *b = tensorlib_box(L, idx);
  if (t->l.outer || !layout_static(t->l) || layout_has_basis(t->l))
    face_error(L, ERR_ARG, "to_dlpack: DLPack describes tensors by strides, "
               "which %s does not have", layout_text(cx, t->l));
  if (!b->host && !b->dev)
    face_error(L, ERR_ARG, "to_dlpack: the tensor has neither host nor GPU "
               "memory");
  if (dim_value(t->off) * dtype_bits(t->type) % 8)
    face_error(L, ERR_ALIGN, "to_dlpack: the tensor starts inside a byte");
}

// Adds an owner to the memory of the tensor at idx, and returns the memory.
// Sets *at, *device and *readonly.
static Shared *memory_out(lua_State *L, int idx, const Tensor *t, char **at,
                          DLDevice *device, bool *readonly) {
  lua_getiuservalue(L, idx, 1);
  int64_t from = dim_value(t->off) * dtype_bits(t->type) / 8;
  Shared *s;
  if (face_test(L, -1, MT_DEVBUF)) {
    DevBuf *b = devlib_check(L, -1);
    *at = (char *)(uintptr_t)b->ptr + from;
    *device = (DLDevice){DL_CUDA, b->own.gpu->ordinal};
    *readonly = b->readonly;
    s = devbuf_share(b);
  } else {
    HostBuf *b = buflib_check(L, -1);
    *at = (char *)b->p + from;
    *device = (DLDevice){DL_CPU, 0};
    *readonly = b->readonly;
    buflib_push_owner(L, -1);
    s = buflib_share(lua_touserdata(L, -1));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  if (!s) face_error(L, ERR_MEMORY, "out of memory");
  return s;
}

// Makes a managed tensor on the memory of the tensor at idx.
static Made *make(lua_State *L, int idx, bool versioned) {
  Ctx *cx = face_state(L);
  Tensor t = face_check_tensor(L, idx);
  check_out(cx, L, idx, &t);
  int n = (int)tup_leaves(t.l.shape);
  DLTensor d = {.ndim = n, .dtype = type_out(L, t.type)};
  bool readonly;
  char *at;
  Shared *memory = memory_out(L, idx, &t, &at, &d.device, &readonly);
  Made *m = base_zeros(sizeof *m + 2 * (size_t)n * sizeof *m->extents);
  if (!m) {
    shared_drop(memory);
    face_error(L, ERR_MEMORY, "out of memory");
  }
  m->memory = memory;
  fill_extents(&t, m->extents, n);
  d.data = at;
  d.shape = m->extents;
  d.strides = m->extents + n;
  if (versioned)
    m->m.versioned = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR, DLPACK_MINOR}, .owner = m,
      .deleter = made_delete_versioned, .flags = readonly ? DL_READ_ONLY : 0,
      .t = d};
  else
    m->m.old = (DLManagedTensor){d, m, made_delete_old};
  return m;
}

DLManagedTensorVersioned *dlpacklib_export(lua_State *L, int idx) {
  return &make(L, lua_absindex(L, idx), true)->m.versioned;
}

// t:to_dlpack([{versioned =}]) -> a managed tensor of DLPack on t's memory, as
// light userdata. The consumer must call its deleter once.
static int tensor_to_dlpack(lua_State *L) {
  face_enter(L);
  face_outside(L);
  bool versioned = is_versioned(L, 2);
  lua_pushlightuserdata(L, make(L, 1, versioned));
  return 1;
}

// delete_dlpack(pointer [, {versioned =}]): calls the deleter of a managed
// tensor that has no consumer.
static int l_delete_dlpack(lua_State *L) {
  void *p = check_pointer(L, 1);
  if (is_versioned(L, 2)) dlpacklib_release(p, 0);
  else delete_old(p, 0);
  return 0;
}

// ---- streams ----

// Returns the driver's stream handle at idx, which is light userdata or an
// integer.
static void *stream_handle(lua_State *L, int idx) {
  return lua_islightuserdata(L, idx) ? lua_touserdata(L, idx)
         : (void *)(uintptr_t)face_checkint(L, idx);
}

// gpu:foreign_stream(handle) -> an object for a stream that another library
// owns. `handle` is the driver's handle of the stream.
int dlpacklib_stream(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  CUstream h = (CUstream)stream_handle(L, 2);
  GpuStream *s = gpulib_handle(L, 1, sizeof *s, MT_STREAM);
  Why w;
  if (gpustream_foreign(s, g, h, &w)) return 1;
  if (w.kind != ERR_LIMIT) return gpulib_failed(L, &w);
  lua_gc(L, LUA_GCCOLLECT);
  return gpustream_foreign(s, g, h, &w) ? 1 : gpulib_failed(L, &w);
}

const luaL_Reg dlpacklib_methods[] = {
  {"to_dlpack(opts?: {versioned})", tensor_to_dlpack}, {NULL, NULL}};

void dlpacklib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"from_dlpack(pointer, opts?: {versioned})", l_from_dlpack},
    {"delete_dlpack", l_delete_dlpack}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
