// Lua bindings of device buffers, of the devices (host or GPU) of tensors, and
// of copies between devices.
#include "bind/gpulib.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/argkey.h"
#include "bind/tensorlib.h"
#include "layout/composed.h"

// ---- device buffers ----

DevBuf *devlib_check(lua_State *L, int idx) {
  DevBuf *b = face_check(L, idx, MT_DEVBUF, "device buffer");
  Why w;
  if (!gpu_usable(&b->own, "device buffer", &w))
    face_error(L, w.kind, "%s", w.msg);
  return b;
}

// Creates a device buffer. If the pool has no block that fits, the garbage
// collector may run first. It runs only if at least 1/64 of the GPU's memory
// was requested since its last such run.
DevBuf *devlib_new(lua_State *L, int gpu, DType t, size_t count, Why *w) {
  DevBuf *b = gpulib_handle(L, gpu, sizeof *b, MT_DEVBUF);
  Gpu *g = b->own.gpu;
  if (!gpu_use(g, w)) return NULL;
  g->since += count / 8 * (size_t)dtype_bits(t);
  if (devbuf_reuse(b, g, t, count)) return b;
  if (g->since >= g->memory / 64) {
    buflib_grew(L, g->since);
    g->since = 0;
  }
  if (devbuf_alloc(b, g, t, count, w)) return b;
  if (w->kind != ERR_MEMORY) return NULL;
  lua_gc(L, LUA_GCCOLLECT);
  return devbuf_alloc(b, g, t, count, w) ? b : NULL;
}

// gpu:buffer(dtype, count) -> a buffer with undefined elements. gpu:buffer(h)
// -> a copy of host buffer h.
int devlib_buffer(lua_State *L) {
  gpulib_check(L, 1);
  Why w;
  bool copy = face_test(L, 2, MT_BUFFER) != NULL;
  HostBuf *h = copy ? buflib_check(L, 2) : NULL;
  DType t = h ? h->t : face_check_dtype(L, 2);
  size_t count = h ? h->count : buflib_count(L, 3);
  DevBuf *b = devlib_new(L, 1, t, count, &w);
  if (!b || (h && !devbuf_upload(b, 0, h->p, h->bytes, &w)))
    return gpulib_failed(L, &w);
  return 1;
}

static int devbuf_l_close(lua_State *L) {
  devbuf_close(face_check(L, 1, MT_DEVBUF, "device buffer"));
  return 0;
}

static HostBuf *check_twin(lua_State *L, const DevBuf *b, int idx) {
  HostBuf *h = buflib_check(L, idx);
  if (h->t != b->t || h->count != b->count)
    face_error(L, ERR_SHAPE, "the buffers differ: %zu elements of %s on "
               "the GPU, %zu of %s on the host", b->count, dtype_name(b->t),
               h->count, dtype_name(h->t));
  return h;
}

// d:upload(host buffer): copies a host buffer of the same type and count to d.
static int devbuf_l_upload(lua_State *L) {
  face_outside(L);
  DevBuf *b = devlib_check(L, 1);
  HostBuf *h = check_twin(L, b, 2);
  Why w;
  return gpulib_done(L, devbuf_upload(b, 0, h->p, h->bytes, &w), &w);
}

// d:download([host buffer]) -> the host buffer, after copying d's elements to
// it. Without an argument, creates a host buffer.
static int devbuf_l_download(lua_State *L) {
  face_outside(L);
  DevBuf *b = devlib_check(L, 1);
  lua_settop(L, 2);
  Why w;
  if (lua_isnil(L, 2)) {
    buflib_new(L, b->t, b->count);
    lua_replace(L, 2);
  }
  HostBuf *h = check_twin(L, b, 2);
  gpulib_done(L, devbuf_download(b, 0, h->p, h->bytes, &w), &w);
  h->defined = true;
  lua_settop(L, 2);
  return 1;
}

// d:memset(byte [, stream])
static int devbuf_l_memset(lua_State *L) {
  face_outside(L);
  DevBuf *b = devlib_check(L, 1);
  Why w;
  lua_Integer byte = face_checkint(L, 2);
  bool ok = devbuf_fill(b, 0, b->bytes, (uint64_t)byte & 255, 1,
                        gpulib_stream(L, 3), &w);
  return gpulib_done(L, ok, &w);
}

// d:copy(device buffer [, stream]): copies a buffer of the same size on the
// same GPU to d.
static int devbuf_l_copy(lua_State *L) {
  face_outside(L);
  DevBuf *b = devlib_check(L, 1), *src = devlib_check(L, 2);
  if (src->bytes != b->bytes || src->own.gpu != b->own.gpu)
    face_error(L, ERR_SHAPE, "a buffer of %zu bytes on %s cannot be "
               "copied from one of %zu bytes on %s",
               b->bytes, b->own.gpu->name, src->bytes, src->own.gpu->name);
  Why w;
  bool ok = devbuf_copy(b, 0, src, 0, b->bytes, gpulib_stream(L, 3), &w);
  return gpulib_done(L, ok, &w);
}

static int devbuf_index(lua_State *L) {
  DevBuf *b = face_check(L, 1, MT_DEVBUF, "device buffer");
  const char *k = face_checkstr(L, 2);
  char name[16];
  if (strcmp(k, "device") == 0)
    lua_pushstring(L, gpulib_name(b->own.gpu, name));
  else if (strcmp(k, "readonly") == 0)
    lua_pushboolean(L, b->readonly);
  else if (strcmp(k, "address") == 0)
    lua_pushinteger(L, (lua_Integer)b->ptr);
  else
    return buflib_field(L, b->t, b->count, b->bytes, !gpu_owns(&b->own));
  return 1;
}

static int devbuf_tostring(lua_State *L) {
  DevBuf *b = face_check(L, 1, MT_DEVBUF, "device buffer");
  return buflib_text(L, b->t, b->count, !gpu_owns(&b->own));
}

// ---- devices ----

// Returns the number of the GPU that s names, such as 1 for "gpu:1". Returns -1
// for the host, or -2 if s is not the name of a device.
static lua_Integer ordinal_of(const char *s) {
  if (strcmp(s, "host") == 0 || strcmp(s, "cpu") == 0 ||
      strcmp(s, "sim") == 0 || strncmp(s, "sim:", 4) == 0)
    return -1;
  if (strcmp(s, "gpu") == 0 || strcmp(s, "auto") == 0) return 0;
  size_t digits = strncmp(s, "gpu:", 4) ? 0 : strspn(s + 4, "0123456789");
  if (!digits || digits > 3 || s[4 + digits]) return -2;
  return strtol(s + 4, NULL, 10);
}

Gpu *devlib_place(lua_State *L, int idx) {
  idx = lua_absindex(L, idx);
  Why w;
  // A table stands for a device: the simulator or a GPU.
  if (lua_istable(L, idx)) {
    lua_pushliteral(L, "kind");
    if (lua_rawget(L, idx) == LUA_TSTRING) {
      bool sim = strcmp(lua_tostring(L, -1), "sim") == 0;
      lua_pushliteral(L, "dev");
      lua_rawget(L, idx);
      lua_remove(L, -2);
      if (sim || face_test(L, -1, MT_GPU)) return lua_touserdata(L, -1);
    }
    lua_pop(L, 1);
  } else if (lua_type(L, idx) == LUA_TSTRING) {
    const char *s = lua_tostring(L, idx);
    lua_Integer n = ordinal_of(s);
    if (n == -2)
      face_error(L, ERR_ARG, "no device '%s'%s: devices are host, gpu, gpu:1, "
                 "auto, sim", s,
                 strncmp(s, "cuda", 4) == 0 ? " (did you mean gpu?)" : "");
    if (n >= 0 && gpulib_open_gpu(L, n, &w)) return lua_touserdata(L, -1);
    if (n >= 0 && strcmp(s, "auto") != 0) face_error(L, w.kind, "%s", w.msg);
  }
  if (face_test_dtype(L, idx) != DT_NONE)
    face_error(L, ERR_ARG, "%s is an element type, not a device: devices are "
               "host, gpu, gpu:1, auto, sim\n  write cute.ops.convert(x, "
               "cute.%s)",
               face_show(L, idx), face_show(L, idx));
  if (lua_type(L, idx) != LUA_TSTRING && !lua_isnoneornil(L, idx))
    face_error(L, ERR_ARG, "no device %s: devices are host, gpu, gpu:1, auto, "
               "sim", face_show(L, idx));
  lua_pushnil(L);
  return NULL;
}

// ---- memory of tensors ----

// The bytes [at, at + bytes) of a buffer, in which a tensor lies. `at` is a
// multiple of HOSTBUF_ALIGN, so that a copy of these bytes has the same
// alignment.
typedef struct Span {
  int64_t at, bytes;
  Tensor t;       // the tensor, with an offset counted from `at`
  // The buffer. `host` is NULL if it is on a GPU, `dev` is NULL if it is on the
  // host.
  HostBuf *host;
  DevBuf *dev;
} Span;

static Span span_of(Ctx *cx, lua_State *L, int idx) {
  idx = lua_absindex(L, idx);
  const TensorBox *box = tensorlib_box(L, idx);
  Walk w = argkey_begin(cx, L, 0);
  argkey_add(&w, idx);
  const Leaf *l = w.nleaf ? w.leaf : NULL;
  if (!l || !l->pointer || (!l->host && !l->dev))
    face_error(L, ERR_ARG, "the tensor has neither host nor GPU memory");
  Span s = {.t = box->t};
  lua_getiuservalue(L, idx, 1);  // the tensor keeps the buffer alive
  if (l->dev) s.dev = devlib_check(L, -1);
  else s.host = buflib_check(L, -1);
  lua_pop(L, 1);
  int64_t bits = dtype_bits(s.t.type), off = dim_value(s.t.off);
  int64_t unit = bits % 3 ? HOSTBUF_ALIGN : 3 * HOSTBUF_ALIGN;
  int64_t all = (int64_t)(s.host ? s.host->bytes : s.dev->bytes);
  int64_t from = (off - l->before) * bits / 8;
  int64_t to = ((off + l->after) * bits + 7) / 8;
  if (from < 0 || to > all)
    face_error(L, ERR_SHAPE, "the tensor reaches beyond its buffer of %lld "
               "bytes\n  %s", (long long)all, tensor_show(cx, &s.t));
  s.at = from / unit * unit;
  s.bytes = to > s.at ? to - s.at : 0;
  s.t.off = dim_int(cx, off - s.at * 8 / bits);
  return s;
}

void devlib_push_device(lua_State *L, int idx) {
  const TensorBox *b = tensorlib_box(L, idx);
  char name[16];
  if (b->dev) lua_pushstring(L, gpulib_name(b->dev->own.gpu, name));
  else if (b->host) lua_pushliteral(L, "host");
  else lua_pushnil(L);
}

// Replaces the buffer on top, a copy of the bytes of span s, by a tensor on it:
// s->t with the dynamic marks of the tensor at `like`.
static void push_twin(lua_State *L, const Span *s, int like) {
  face_push_tensor(L, &s->t, -1);
  lua_remove(L, -2);
  lua_getiuservalue(L, like, 2);
  lua_setiuservalue(L, -2, 2);
}

static size_t span_count(const Span *s) {
  return (size_t)((s->bytes * 8 + dtype_bits(s->t.type) - 1) /
                  dtype_bits(s->t.type));
}

// How to copy: the stream, and whether to return before the copy ends.
typedef struct Way {
  GpuStream *stream;
  bool queued;  // asynchronous
} Way;

// Reads the options {stream =} of a copy, at stack index idx.
static Way way_of(lua_State *L, int idx) {
  Way w = {0};
  face_check_options(L, idx, "stream");
  if (!lua_istable(L, idx)) return w;
  lua_getfield(L, idx, "stream");
  w.queued = !lua_isnil(L, -1);
  if (!lua_istable(L, -1) || !face_get_bool(L, -1, "simulated"))
    w.stream = gpulib_stream(L, -1);
  else if (face_get_bool(L, -1, "closed"))
    face_error(L, ERR_CLOSED, "the stream was closed");
  lua_pop(L, 1);
  return w;
}

static void must(lua_State *L, bool ok, const Why *w) {
  if (!ok) face_error(L, w->kind, "%s", w->msg);
}

// Raises the error that a graph can copy only pinned host memory.
void devlib_refuse_copy(lua_State *L) {
  face_error(L, ERR_CAPTURE, "a copy in a graph needs pinned memory of the "
             "host: cute.empty(shape, dtype, {pinned = true})");
}

static void check_pinned(lua_State *L, const Gpu *g, const HostBuf *h) {
  if (g->capture && !h->unpin) devlib_refuse_copy(L);
}

static void copy_in(lua_State *L, DevBuf *b, int64_t at, HostBuf *h,
                    int64_t from, int64_t n, Way way) {
  Gpu *g = b->own.gpu;
  Why w;
  const char *p = (const char *)h->p + from;
  check_pinned(L, g, h);
  if (!way.queued && !g->now) {
    must(L, devbuf_upload(b, (size_t)at, p, (size_t)n, &w), &w);
    return;
  }
  must(L, devbuf_write(b, (size_t)at, p, (size_t)n, way.stream, &w), &w);
  if (!way.queued && h->unpin && !g->capture)
    must(L, gpu_sync(g, &w), &w);
}

static void copy_out(lua_State *L, HostBuf *h, int64_t at, DevBuf *b,
                     int64_t from, int64_t n, Way way) {
  Gpu *g = b->own.gpu;
  Why w;
  char *p = (char *)h->p + at;
  check_pinned(L, g, h);
  if (way.queued || g->capture)
    must(L, devbuf_read(b, (size_t)from, p, (size_t)n, way.stream, &w), &w);
  else
    must(L, devbuf_download(b, (size_t)from, p, (size_t)n, &w), &w);
  h->defined = true;
}

// Copies the bytes of a span to position `at` of h or d. One of the two is
// NULL.
static void copy_span(lua_State *L, const Span *s, HostBuf *h, DevBuf *d,
                      int64_t at, Way way) {
  Why w;
  char *from = s->host && h && s->bytes ? s->host->p : NULL;
  if (from)
    memmove((char *)h->p + at, from + s->at, (size_t)s->bytes);
  else if (s->host && !h)
    copy_in(L, d, at, s->host, s->at, s->bytes, way);
  else if (h && s->dev)
    copy_out(L, h, at, s->dev, s->at, s->bytes, way);
  else if (s->dev)
    must(L, devbuf_copy(d, (size_t)at, s->dev, (size_t)s->at,
                        (size_t)s->bytes, way.stream, &w), &w);
  if (s->host && h && s->host->defined) h->defined = true;
}

static void unpin(HostBuf *b) { gpu_unpin(b->gpu, b->epoch, b->p); }

void devlib_pin(lua_State *L, int idx, Gpu *g) {
  HostBuf *b = buflib_check(L, idx);
  Why w;
  must(L, gpu_pin(g, b->p, (b->bytes | 4095) + 1, &w), &w);
  b->gpu = g;
  b->epoch = g->epoch;
  b->unpin = unpin;
}

// Copies the span of the tensor at idx to the GPU at stack index `gpu`, or to
// the host if the value there is nil. Pushes a tensor with the same layout on
// the copied memory.
static void push_copy(Ctx *cx, lua_State *L, int idx, int gpu, Way way) {
  Span s = span_of(cx, L, idx);
  DType t = s.t.type;
  Why w;
  if (lua_isnil(L, gpu)) {
    HostBuf *h = way.queued ? buflib_new_pages(L, t, span_count(&s))
                            : buflib_new(L, t, span_count(&s));
    if (way.queued && s.dev) devlib_pin(L, -1, s.dev->own.gpu);
    else if (s.dev) must(L, devbuf_download(s.dev, 0, h->p, 0, &w), &w);
    copy_span(L, &s, h, NULL, 0, way);
  } else {
    DevBuf *d = devlib_new(L, gpu, t, span_count(&s), &w);
    must(L, d != NULL, &w);
    copy_span(L, &s, NULL, d, 0, way);
  }
  const Gpu *g = s.dev ? s.dev->own.gpu : lua_touserdata(L, gpu);
  if (g) gpulib_keep(L, g, -1);
  lua_getiuservalue(L, idx, 1);
  if (g) gpulib_keep(L, g, -1);
  lua_pop(L, 1);
  push_twin(L, &s, idx);
}

void devlib_move(Ctx *cx, lua_State *L, int idx, int gpu) {
  idx = lua_absindex(L, idx);
  push_copy(cx, L, idx, lua_absindex(L, gpu), (Way){0});
  lua_replace(L, idx);
}

static Tensor check_outside(Ctx *cx, lua_State *L, int idx) {
  if (ir_fn(cx))
    face_error(L, ERR_INTRACE, "data can be moved only outside of kernels");
  return face_check_tensor(L, idx);
}

// t:to(device [, {stream =}]) -> t if it is already on the device. Otherwise a
// tensor with the same layout, on a copy of t's memory on the device.
static int tensor_to(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = check_outside(cx, L, 1);
  Way way = way_of(L, 3);
  lua_settop(L, 3);
  if (lua_isnil(L, 2)) face_argerror(L, 2, "device");
  Gpu *g = devlib_place(L, 2);  // stack index 4: the GPU, or nil
  const TensorBox *b = tensorlib_box(L, 1);
  bool there = g ? b->dev && b->dev->own.gpu == g : b->host != NULL;
  if (there || t.space == SP_COORD) lua_pushvalue(L, 1);
  else push_copy(cx, L, 1, 4, way);
  return 1;
}

// t:clone([{stream =}]) -> a tensor with the same layout, on a copy of t's
// memory on the same device.
static int tensor_clone(lua_State *L) {
  Ctx *cx = face_enter(L);
  check_outside(cx, L, 1);
  Way way = way_of(L, 2);
  Span s = span_of(cx, L, 1);
  lua_settop(L, 2);
  if (s.dev) {
    lua_getiuservalue(L, 1, 1);  // stack index 3: the buffer
    lua_getiuservalue(L, 3, 1);  // stack index 4: the buffer's GPU
  } else {
    lua_pushnil(L), lua_pushnil(L);
    way.queued = false;
  }
  push_copy(cx, L, 1, 4, way);
  if (s.host && recordlib_recording(L)) {
    lua_pushvalue(L, -1);
    lua_pushvalue(L, 1);
    recordlib_call(L, "copy_from", 2);
  }
  return 1;
}

// ---- copies from one tensor to another ----

static void check_alike(Ctx *cx, lua_State *L, const Tensor *to,
                        const Tensor *from) {
  if (to->type != from->type)
    face_error(L, ERR_TYPE, "copy_from: %s cannot be copied to %s: convert the "
               "source first", dtype_name(from->type), dtype_name(to->type));
  // the shapes 4 and (4) are treated as equal
  Tup a = to->l.shape, b = from->l.shape;
  if (!tup_eq(a, b) && !(tup_leaves(a) == 1 && tup_leaves(b) == 1 &&
                         dim_eq(tup_size(cx, a), tup_size(cx, b))))
    face_error(L, ERR_SHAPE, "copy_from: a tensor of shape %s cannot be copied "
               "to one of %s", tup_text(cx, from->l.shape),
               tup_text(cx, to->l.shape));
}

// Copies a tensor element by element. Both tensors are on the host.
static void copy_elements(Ctx *cx, const Span *to, const Span *from) {
  DType t = to->t.type;
  int64_t n = tensor_count(cx, &to->t, "copy_from");
  int64_t a = to->at * 8 / dtype_bits(t), b = from->at * 8 / dtype_bits(t);
  for (int64_t i = 0; i < n; i++) {
    int64_t d = dim_value(tensor_at(cx, to->t, dim_int(cx, i)));
    int64_t s = dim_value(tensor_at(cx, from->t, dim_int(cx, i)));
    dtype_store(t, to->host->p, (size_t)(a + d),
                dtype_load(t, from->host->p, (size_t)(b + s)));
  }
  to->host->defined = true;
}

// Reports whether two spans share bytes of a buffer.
static bool meet(const Span *a, const Span *b) {
  return a->host == b->host && a->dev == b->dev &&
         a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

// Reduces the span of a tensor without gaps to the bytes of its elements.
static void narrow(Ctx *cx, Span *s) {
  int64_t bits = dtype_bits(s->t.type);
  s->at += dim_value(s->t.off) * bits / 8;
  s->bytes = tensor_count(cx, &s->t, "copy_from") * bits / 8;
}

// Replaces the tensor at idx by a copy on the same device, made with the
// options of copy_from at `opts`.
static void clone_at(lua_State *L, int idx, int opts) {
  lua_getfield(L, idx, "clone");
  lua_pushvalue(L, idx);
  lua_pushvalue(L, opts);
  lua_call(L, 2, 1);
  lua_replace(L, idx);
}

// If the tensor at idx is on a GPU, replaces it by a copy on the host. Returns
// the span of the tensor that is then at idx.
static Span to_host(Ctx *cx, lua_State *L, int idx) {
  Span s = span_of(cx, L, idx);
  if (s.host) return s;
  lua_pushnil(L);
  push_copy(cx, L, idx, lua_gettop(L), (Way){0});
  lua_replace(L, idx);
  lua_pop(L, 1);
  return span_of(cx, L, idx);
}

// mover(f): registers a function f(to, from, stream) of lua/cute. f copies one
// tensor to another on the same GPU by a kernel, or returns false.
#define MOVER "cute.mover"  // key of f in the registry
static int l_mover(lua_State *L) {
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, MOVER);
  return 0;
}

// Lets the registered function copy the tensor at `from` to the tensor at `to`,
// both on one GPU. Returns false if no function is registered, or if it cannot
// copy these tensors.
static bool move_elements(lua_State *L, int to, int from, int stream) {
  const Tensor *t = &tensorlib_box(L, to)->t;
  if (dtype_bits(t->type) % 8) return false;
  if (lua_getfield(L, LUA_REGISTRYINDEX, MOVER) == LUA_TNIL) {
    lua_pop(L, 1);
    return false;
  }
  lua_pushvalue(L, to);
  lua_pushvalue(L, from);
  lua_pushvalue(L, stream);
  lua_call(L, 3, 1);
  bool moved = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return moved;
}

// Copies the tensor at 2 to the tensor at 1 one element at a time, because
// their layouts differ or have gaps. Copies on the GPU of the tensor at 1 if
// possible, else on the host. `stream` is the stack index of the stream.
static void copy_general(Ctx *cx, lua_State *L, const Span *to,
                         const Span *from, int stream, Way way) {
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  int at = lua_gettop(L) - 1;
  if (to->dev && (!from->dev || from->dev->own.gpu != to->dev->own.gpu)) {
    lua_getiuservalue(L, at, 1);
    lua_getiuservalue(L, -1, 1);  // pushes the GPU of the result
    push_copy(cx, L, at + 1, at + 3, way);
    lua_replace(L, at + 1);
    lua_settop(L, at + 1);
  }
  if (to->dev && move_elements(L, at, at + 1, stream)) return;
  face_enter(L);
  Span d = to_host(cx, L, at), s = to_host(cx, L, at + 1);
  if (meet(&d, &s)) {
    lua_pushnil(L);
    clone_at(L, at + 1, lua_gettop(L));
    face_enter(L);
    d = to_host(cx, L, at), s = to_host(cx, L, at + 1);
  }
  copy_elements(cx, &d, &s);
  if (to->dev) copy_span(L, &d, NULL, to->dev, to->at, (Way){0});
}

// t:copy_from(tensor [, {stream =}]): copies all elements of `tensor` to t. Its
// shape and type must be those of t. It may be on any device.
static int tensor_copy_from(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor to = check_outside(cx, L, 1), from = check_outside(cx, L, 2);
  Way way = way_of(L, 3);
  lua_settop(L, 3);
  check_alike(cx, L, &to, &from);
  Span d = span_of(cx, L, 1), s = span_of(cx, L, 2);
  if (tensor_count(cx, &to, "copy_from") == 0) return lua_settop(L, 1), 1;
  buflib_check_writable(L, d.host ? d.host->readonly : d.dev->readonly);
  if (d.host && s.host && recordlib_recorded(L)) return lua_settop(L, 1), 1;
  int64_t bits = dtype_bits(to.type);
  if (bits % 8 || !tensor_dense(cx, to.l) ||
      !layout_equals(cx, to.l, from.l)) {
    lua_pushnil(L);
    if (lua_istable(L, 3)) lua_getfield(L, 3, "stream");
    copy_general(cx, L, &d, &s, lua_gettop(L), way);
  } else {
    narrow(cx, &d), narrow(cx, &s);
    if (s.dev && meet(&d, &s)) {
      clone_at(L, 2, 3);
      face_enter(L);
      s = span_of(cx, L, 2);
      narrow(cx, &s);
    }
    copy_span(L, &s, d.host, d.dev, d.at, way);
  }
  const Gpu *g = d.dev ? d.dev->own.gpu : s.dev ? s.dev->own.gpu : NULL;
  for (int i = 1; g && i <= 2; i++) {
    lua_getiuservalue(L, i, 1);
    gpulib_keep(L, g, -1);
  }
  lua_settop(L, 1);
  return 1;
}

void devlib_set(lua_State *L, DevBuf *b, uint64_t bits) {
  int size = dtype_bits(b->t);
  // 192 bytes contain whole elements of every type below 8 bits
  char some[192];
  Why w;
  if (size >= 8) {
    must(L, devbuf_fill(b, 0, b->count, bits, size / 8, NULL, &w), &w);
    return;
  }
  bulk_fill(b->t, some, 0, sizeof some * 8 / (size_t)size, bits);
  bool same = memcmp(some, some + 1, sizeof some - 1) == 0;
  if (same) {
    must(L, devbuf_fill(b, 0, b->bytes, (unsigned char)*some, 1, NULL, &w),
         &w);
    return;
  }
  HostBuf *h = buflib_new(L, b->t, b->count);
  bulk_fill(b->t, h->p, 0, b->count, bits);
  copy_in(L, b, 0, h, 0, (int64_t)b->bytes, (Way){0});
  lua_pop(L, 1);
}

void devlib_fill(Ctx *cx, lua_State *L, int idx, const Tensor *t,
                 uint64_t bits) {
  Span s = span_of(cx, L, idx);
  int64_t n = tensor_count(cx, t, "fill"), size = dtype_bits(t->type);
  Why w;
  if (n == 0) return;
  buflib_check_writable(L, s.dev->readonly);
  if (size >= 8 && tensor_dense(cx, t->l)) {
    size_t at = (size_t)(s.at + dim_value(s.t.off) * size / 8);
    must(L, devbuf_fill(s.dev, at, (size_t)n, bits, (int)size / 8, NULL, &w),
         &w);
    return;
  }
  // Copy from a tensor with one element and strides of 0, which repeat the
  // element.
  size_t leaves = tup_leaves(t->l.shape);
  Dim *stride = NEW(cx, Dim, leaves);
  for (size_t i = 0; i < leaves; i++) stride[i] = dim_int(cx, 0);
  lua_getiuservalue(L, idx, 1);
  lua_getiuservalue(L, -1, 1);  // its GPU
  DevBuf *b = devlib_new(L, -1, t->type, 1, &w);
  must(L, b != NULL, &w);
  devlib_set(L, b, bits);
  Tensor u = {.space = SP_HOST, .type = t->type, .align = HOSTBUF_ALIGN,
              .l = {.shape = t->l.shape, .stride = stride}};
  face_push_tensor(L, &u, -1);
  lua_pushnil(L);
  int top = lua_gettop(L);
  if (move_elements(L, idx, top - 1, top)) return;
  face_enter(L);
  lua_pushvalue(L, idx);
  Span h = to_host(cx, L, lua_gettop(L));
  for (int64_t i = 0; i < n; i++)
    dtype_store(t->type, h.host->p, (size_t)dim_value(
                tensor_at(cx, h.t, dim_int(cx, i))), bits);
  copy_span(L, &h, NULL, s.dev, s.at, (Way){0});
}

// t:close(): frees the memory of t, even if t is a view of a part of it.
static int tensor_close(lua_State *L) {
  if (ir_fn(face_enter(L)))
    face_error(L, ERR_INTRACE, "tensors can be closed only outside of kernels");
  face_check_tensor(L, 1);
  if (lua_getiuservalue(L, 1, 1) != LUA_TUSERDATA) return 0;
  lua_getfield(L, -1, "close");
  lua_insert(L, -2);
  lua_call(L, 1, 0);
  return 0;
}

const luaL_Reg devlib_methods[] = {
  {"close()", tensor_close}, {"__close", tensor_close},
  {"to(device, opts?)", tensor_to}, {"clone(opts?)", tensor_clone},
  {"copy_from(source, opts?)", tensor_copy_from}, {NULL, NULL}};

void devlib_open(lua_State *L) {
  static const luaL_Reg buffer[] = {
    {"upload(buffer)", devbuf_l_upload},
    {"download(buffer?)", devbuf_l_download},
    {"memset(byte, stream?)", devbuf_l_memset},
    {"copy(source, stream?)", devbuf_l_copy}, {"__index", devbuf_index},
    {"__tostring", devbuf_tostring}, {"close()", devbuf_l_close},
    {"__gc", devbuf_l_close}, {"__close", devbuf_l_close}, {NULL, NULL}};
  static const luaL_Reg funcs[] = {{"mover", l_mover}, {NULL, NULL}};
  face_newtype(L, MT_DEVBUF, buffer);
  lua_pop(L, 1);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
