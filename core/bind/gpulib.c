// Lua bindings of the GPU: streams, events, kernels, prepared launches. If a
// query fails (for a GPU, a buffer, information), it returns nil, message. If
// an action fails (a launch, a copy, a wait), it raises an error. Misuse always
// raises an error.
#include "bind/gpulib.h"
#include "bind/tma.h"

#include <string.h>

#include "base/shared.h"
#include "gpu/dl.h"

#define MAX_ARGS 1024  // maximum number of arguments of a kernel
// ---- the device ----

// gpu_open([ordinal]) -> the GPU with this number | nil, message. Repeated
// calls return the same object.
static int l_gpu_open(lua_State *L) {
  lua_Integer n = face_optint(L, 1, 0);
  Why w;
  if (n < 0 || n > 1023) face_argerror(L, 1, "number of a GPU");
  return gpulib_open_gpu(L, n, &w) ? 1 : gpulib_failed(L, &w);
}

static int gpu_gc(lua_State *L) {
  gpu_close(gpulib_check(L, 1));
  return 0;
}

static int gpu_info(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  lua_createtable(L, 0, 10);
  face_set_str(L, "name", g->name);
  lua_pushfstring(L, "sm_%d%d%s", g->major, g->minor,
                  g->major >= 9 ? "a" : "");
  lua_setfield(L, -2, "arch");
  lua_pushfstring(L, "%d.%d", g->driver / 1000, g->driver % 1000 / 10);
  lua_setfield(L, -2, "cuda");
  face_set_int(L, "ordinal", g->ordinal);
  face_set_int(L, "sms", g->sms);
  face_set_int(L, "memory", (lua_Integer)g->memory);
  face_set_int(L, "smem", g->smem_optin);
  face_set_int(L, "l2", g->l2);
  face_set_int(L, "khz", g->khz);
  face_set_int(L, "epoch", (lua_Integer)g->epoch);
  return 1;
}

static int gpu_l_sync(lua_State *L) {
  Why w;
  face_outside(L);
  return gpulib_done(L, gpu_sync(gpulib_check(L, 1), &w), &w);
}

// gpu:alive() -> true | nil, message: whether this process can use the GPU. An
// error in a kernel can make the GPU unusable for the process.
static int gpu_alive(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  Why w;
  return g->epoch == 0 || gpu_use(g, &w) ? gpulib_done(L, true, &w)
                                         : gpulib_failed(L, &w);
}

// gpu:begin(): starts to create the context, in a separate thread. The first
// call that needs the context waits for it.
static int gpu_l_begin(lua_State *L) {
  gpu_begin(gpulib_check(L, 1));
  return 0;
}

// gpu:memory() -> {used = bytes in buffers, peak = the largest value of `used`,
// pool = bytes allocated from the driver, hits = number of buffers that got a
// block from the pool, misses = number of buffers that got one from the driver,
// free = and total = bytes as the driver reports them}.
static int gpu_memory(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  static const GpuPool none;
  const GpuPool *p = g->pool ? g->pool : &none;
  size_t left;
  Why w;
  if (!gpu_free_memory(g, &left, &w)) return gpulib_failed(L, &w);
  lua_createtable(L, 0, 7);
  face_set_int(L, "used", (lua_Integer)p->used);
  face_set_int(L, "peak", (lua_Integer)p->peak);
  face_set_int(L, "pool", (lua_Integer)p->held);
  face_set_int(L, "hits", (lua_Integer)p->hits);
  face_set_int(L, "misses", (lua_Integer)p->misses);
  face_set_int(L, "free", (lua_Integer)left);
  face_set_int(L, "total", (lua_Integer)g->memory);
  return 1;
}

// gpu:trim() -> number of bytes: returns all free blocks of the pool to the
// driver
static int gpu_trim(lua_State *L) {
  size_t bytes;
  Why w;
  lua_gc(L, LUA_GCCOLLECT);
  gpulib_done(L, pool_trim(gpulib_check(L, 1), &bytes, &w), &w);
  lua_pushinteger(L, (lua_Integer)bytes);
  return 1;
}

static int gpu_capturing(lua_State *L) {
  const Gpu *g = gpulib_check(L, 1);
  lua_pushboolean(L, g->capture || g->captured);
  return 1;
}

// gpu:use_stream(stream or nil) -> the stream that was current before. Makes
// the given stream the current one.
static int gpu_use_stream(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  GpuStream *s = gpulib_stream(L, 2);
  Why w;
  face_outside(L);
  lua_settop(L, 2);
  if (s) gpulib_done(L, gpu_usable(&s->own, "stream", &w), &w);
  if (s && s->own.gpu != g)
    face_error(L, ERR_ARG, "the stream belongs to another GPU");
  if (g->capture)
    face_error(L, ERR_CAPTURE, "a stream cannot be chosen while a graph is "
               "captured: the capture has a stream of its own");
  lua_settop(L, 2);
  lua_getiuservalue(L, 1, 1);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 1, 1);
  g->now = s;
  return 1;
}

// gpu:stream_number([stream]) -> number of the given or current stream, or 0
// for the driver's default stream.
static int gpu_stream_number(lua_State *L) {
  const Gpu *g = gpulib_check(L, 1);
  const GpuStream *s = gpulib_stream(L, 2);
  if (!s) s = g->now;
  lua_pushinteger(L, s ? s->number : 0);
  return 1;
}

static int gpu_l_free(lua_State *L) {
  Why w;
  size_t left;
  if (!gpu_free_memory(gpulib_check(L, 1), &left, &w))
    return gpulib_failed(L, &w);
  lua_pushinteger(L, (lua_Integer)left);
  return 1;
}

// ---- streams and events ----

static GpuStream *check_stream(lua_State *L, int idx) {
  face_outside(L);
  return face_check(L, idx, MT_STREAM, "stream");
}

static int gpu_stream(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  GpuStream *s = gpulib_handle(L, 1, sizeof *s, MT_STREAM);
  Why w;
  if (gpustream_new(s, g, 0, &w)) return 1;
  if (w.kind != ERR_LIMIT) return gpulib_failed(L, &w);
  lua_gc(L, LUA_GCCOLLECT);
  return gpustream_new(s, g, 0, &w) ? 1 : gpulib_failed(L, &w);
}

static int stream_close(lua_State *L) {
  gpustream_close(face_check(L, 1, MT_STREAM, "stream"));
  return 0;
}

// stream:wait(event or stream): makes later work on the stream wait for the
// event, or for all work submitted to the other stream so far.
static int stream_wait(lua_State *L) {
  GpuStream *s = check_stream(L, 1), *other = face_test(L, 2, MT_STREAM);
  Why w;
  gpulib_joins(L, s->own.gpu, 1);
  if (other) return gpulib_done(L, gpustream_wait(s, other, &w), &w);
  GpuEvent *e = face_check(L, 2, MT_EVENT, "event or stream");
  return gpulib_done(L, gpuevent_wait(e, s, &w), &w);
}

static int stream_done(lua_State *L) {
  Why w;
  bool all;
  gpulib_done(L, gpustream_done(check_stream(L, 1), &all, &w), &w);
  lua_pushboolean(L, all);
  return 1;
}

// stream.device is the name of the stream's GPU, such as "gpu:1"
static int stream_index(lua_State *L) {
  const GpuStream *s = face_check(L, 1, MT_STREAM, "stream");
  const char *k = face_checkstr(L, 2);
  char name[16];
  if (strcmp(k, "device") == 0)
    lua_pushstring(L, gpulib_name(s->own.gpu, name));
  else if (luaL_getmetafield(L, 1, k) == LUA_TNIL)
    face_nofield(L, 0, "device");
  return 1;
}

static int stream_sync(lua_State *L) {
  Why w;
  return gpulib_done(L, gpustream_sync(check_stream(L, 1), &w), &w);
}

static int gpu_event(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  GpuEvent *e = gpulib_handle(L, 1, sizeof *e, MT_EVENT);
  Why w;
  return gpuevent_new(e, g, &w) ? 1 : gpulib_failed(L, &w);
}

static GpuEvent *check_event(lua_State *L, int idx) {
  face_outside(L);
  return face_check(L, idx, MT_EVENT, "event");
}

static int event_close(lua_State *L) {
  gpuevent_close(face_check(L, 1, MT_EVENT, "event"));
  return 0;
}

static int event_record(lua_State *L) {
  Why w;
  bool ok = gpuevent_record(check_event(L, 1), gpulib_stream(L, 2), &w);
  return gpulib_done(L, ok, &w);
}

// stream:record([event]) -> an event that completes when all work submitted to
// the stream so far has completed.
static int stream_record(lua_State *L) {
  GpuStream *s = check_stream(L, 1);
  Why w;
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) {
    lua_getiuservalue(L, 1, 1);
    GpuEvent *e = gpulib_handle(L, -1, sizeof *e, MT_EVENT);
    lua_replace(L, 2);
    gpulib_done(L, gpuevent_new(e, s->own.gpu, &w), &w);
  }
  gpulib_done(L, gpuevent_record(check_event(L, 2), s, &w), &w);
  lua_settop(L, 2);
  return 1;
}

static int event_done(lua_State *L) {
  Why w;
  bool all;
  gpulib_done(L, gpuevent_done(check_event(L, 1), &all, &w), &w);
  lua_pushboolean(L, all);
  return 1;
}

static int event_sync(lua_State *L) {
  Why w;
  return gpulib_done(L, gpuevent_sync(check_event(L, 1), &w), &w);
}

// from:elapsed(to) -> milliseconds between two recorded events.
static int event_elapsed(lua_State *L) {
  Why w;
  double ms;
  bool ok = gpuevent_elapsed(check_event(L, 1), check_event(L, 2), &ms, &w);
  gpulib_done(L, ok, &w);
  lua_pushnumber(L, ms);
  return 1;
}

// ---- kernels ----

// gpu:load(image, name [, parameters [, level]]) -> the kernel. The image is
// machine code, or PTX that begins with ".version". `parameters` is the number
// of the kernel's parameters. Without it, a launch asks the driver for the
// number. `level` is the driver's optimisation level for PTX, 0 to 4 (default
// 4).
static int gpu_load(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  size_t n;
  const char *cubin = face_checklstr(L, 2, &n);
  const char *name = face_checkstr(L, 3);
  if (n < 64) face_argerror(L, 2, "CUBIN");
  lua_Integer params = face_optint(L, 4, -1), level = face_optint(L, 5, 4);
  GpuFn *f = gpulib_handle(L, 1, sizeof *f, MT_GPUFN);
  Why w;
  if (!gpufn_load(f, g, cubin, name, (int)level, &w))
    return gpulib_failed(L, &w);
  if (params >= 0 && params <= MAX_ARGS) f->nparam = (int)params;
  return 1;
}

static GpuFn *check_kernel(lua_State *L, int idx) {
  return face_check(L, idx, MT_GPUFN, "loaded kernel");
}

static void keep_variable(void *what, size_t bytes) { (void)what, (void)bytes; }

// gpu:variable(kernel, name) -> a buffer of u8 on a variable of the kernel's
// module. It must not be used after the kernel is closed.
static int gpu_variable(lua_State *L) {
  Gpu *g = gpulib_check(L, 1);
  const GpuFn *f = check_kernel(L, 2);
  const char *name = face_checkstr(L, 3);
  uint64_t ptr;
  size_t bytes;
  Why w = {ERR_MEMORY, "out of memory"};
  DevBuf *b = gpulib_handle(L, 1, sizeof *b, MT_DEVBUF);
  if (!gpufn_variable(f, name, &ptr, &bytes, &w)) return gpulib_failed(L, &w);
  Shared *s = shared_new(keep_variable, NULL, 0);
  if (s && devbuf_foreign(b, g, DT_U8, bytes, ptr, s, &w)) return 1;
  base_free(s);
  return gpulib_failed(L, &w);
}

static int fn_close(lua_State *L) {
  gpufn_close(check_kernel(L, 1));
  return 0;
}

// f:usable() -> false if the kernel is closed or was lost with its CUDA
// context, else true.
static int fn_usable(lua_State *L) {
  const GpuFn *f = check_kernel(L, 1);
  lua_pushboolean(L, gpu_owns(&f->own));
  return 1;
}

// f:attributes() -> a table of the kernel's attributes, as the driver reports
// them.
static int fn_attributes(lua_State *L) {
  GpuFn *f = check_kernel(L, 1);
  lua_createtable(L, 0, 6);
  face_set_int(L, "registers", f->registers);
  face_set_int(L, "local_bytes", f->local);
  face_set_int(L, "smem_static", f->smem_static);
  face_set_int(L, "const_bytes", f->constant);
  face_set_int(L, "max_threads", f->max_threads);
  face_set_int(L, "binary", f->binary);
  return 1;
}

// ---- prepared launches ----

static void get_extents(lua_State *L, const char *name, unsigned v[3],
                        unsigned def) {
  v[0] = def;
  v[1] = v[2] = 1;
  int type = lua_getfield(L, 2, name);
  // A grid may have no blocks, so an extent may be 0.
  bool grid = strcmp(name, "grid") == 0;
  if (type == LUA_TNUMBER) {
    v[0] = (unsigned)lua_tointeger(L, -1);
    if (lua_tointeger(L, -1) < !grid || lua_tointeger(L, -1) > INT32_MAX)
      face_error(L, ERR_LAUNCH, "%s of %lld; %d to 2^31 - 1 is needed", name,
                 (long long)lua_tointeger(L, -1), !grid);
  } else if (type == LUA_TTABLE) {
    for (int i = 0; i < 3; i++) {
      int t = lua_geti(L, -1, i + 1);
      lua_Integer x = t == LUA_TNIL ? 1 : lua_tointeger(L, -1);
      if (x < !grid || x > (i && grid ? 65535 : INT32_MAX))
        face_error(L, ERR_LAUNCH, "%s extent %d is %lld; %d to %d is needed",
                   name, i + 1, (long long)x, !grid,
                   i && grid ? 65535 : INT32_MAX);
      v[i] = (unsigned)x;
      lua_pop(L, 1);
    }
  } else if (type != LUA_TNIL || def != 1) {
    face_error(L, ERR_ARG, "%s must be a number or a table of extents", name);
  }
  lua_pop(L, 1);
}

// Packs address p as a kernel argument, and returns the packed size. If the
// table at idx has an atom in field `tma`, packs a tensor map of this atom
// instead, for a tensor at p.
static size_t pack_address(lua_State *L, int idx, uint64_t p, char *to) {
  lua_getfield(L, idx, "tma");
  const TmaBox *b = tmalib_box(L, -1);
  uint64_t words[TENSORMAP_WORDS] = {p};
  if (b && to) {
    lua_getiuservalue(L, -1, 1);
    Tensor t = face_check_tensor(L, -1);
    tmalib_encode(face_state(L), &b->a, &t, p, words);
  }
  size_t n = b ? sizeof words : sizeof p;
  if (to) memcpy(to, words, n);
  return n;
}

// Packs argument i, which is on top of the stack, into `to` (NULL: only
// computes the size), and returns the packed size. An argument is a device
// buffer (packed as its address), {buffer, byte offset, tma =}, {dtype, number}
// or a string of raw bytes. Sets *buf to the device buffer, if any.
static size_t pack(lua_State *L, lua_Integer i, char *to, DevBuf **buf) {
  int at = lua_gettop(L), type = lua_type(L, at);
  *buf = NULL;
  if (type == LUA_TSTRING) {
    size_t n;
    const char *s = lua_tolstring(L, at, &n);
    if (to) memcpy(to, s, n);
    return n;
  }
  if (face_test(L, at, MT_DEVBUF)) {
    *buf = devlib_check(L, at);
    if (to) memcpy(to, &(*buf)->ptr, 8);
    return 8;
  }
  if (type != LUA_TTABLE)
    face_error(L, ERR_ARG, "kernel argument %d is a %s: a device buffer, "
               "{buffer, offset}, {dtype, number} or a string is needed",
               (int)i, face_typename(L, at));
  lua_geti(L, at, 1);
  lua_geti(L, at, 2);
  size_t size = 8;
  if (face_test(L, at + 1, MT_DEVBUF)) {
    *buf = devlib_check(L, at + 1);
    uint64_t p = (*buf)->ptr + (uint64_t)face_checkint(L, at + 2);
    size = pack_address(L, at, p, to);
  } else {
    DType t = face_check_dtype(L, at + 1);
    if (dtype_bits(t) % 8 || dtype_bits(t) > 64)
      face_error(L, ERR_TYPE, "kernel argument %d: %s is not a scalar", (int)i,
                 dtype_name(t));
    size = (size_t)dtype_bits(t) / 8;
    if (!lua_isboolean(L, at + 2)) face_checknum(L, at + 2);
    if (to) dtype_store(t, to, 0, face_number_bits(L, at + 2, t));
  }
  lua_settop(L, at);
  return size;
}

// Raises an error if the packed size of an argument differs from the size of
// the kernel's parameter. Ignores parameters whose sizes the driver does not
// report.
static void check_params(lua_State *L, GpuFn *f, const size_t *sizes, int n) {
  int size = 0, m = 0;
  while (m < n && (size = gpufn_param(f, m)) > 0) {
    if ((size_t)size != sizes[m])
      face_error(L, ERR_LAUNCH, "kernel argument %d has %d bytes, not %zu",
                 m + 1, size, sizes[m]);
    m++;
  }
  if (size < 0) return;
  if (f->nparam < 0 && m == n)
    while (m < MAX_ARGS && gpufn_param(f, m) > 0) m++;
  if (f->nparam < 0) f->nparam = m;
  if (f->nparam != n)
    face_error(L, ERR_LAUNCH, "the kernel has %d parameters, got %d",
               f->nparam, n);
}

// Creates a launch with the list of arguments at stack index 3. Its userdata
// consists of the struct, nargs + 1 pointers to parameters, the list of
// buffers, and the packed arguments.
static GpuLaunch *new_prepared(lua_State *L, GpuFn *f) {
  lua_Integer n = luaL_len(L, 3);
  size_t sizes[MAX_ARGS], bytes = 0;
  DevBuf *buf;
  if (n > MAX_ARGS)
    face_error(L, ERR_LIMIT, "more than %d kernel arguments", MAX_ARGS);
  for (lua_Integer i = 0; i < n; i++) {
    lua_geti(L, 3, i + 1);
    sizes[i] = pack(L, i + 1, NULL, &buf);
    bytes += (sizes[i] + 15) & ~(size_t)15;
    lua_pop(L, 1);
  }
  check_params(L, f, sizes, (int)n);
  size_t list = ((size_t)n + 1) * sizeof(void *);
  GpuLaunch *l = lua_newuserdatauv(L, sizeof *l + 2 * list + bytes + 16, 3);
  memset(l, 0, sizeof *l);
  l->params = (void **)(l + 1);
  l->bufs = (DevBuf **)((char *)l->params + list);
  char *at = (char *)l->bufs + list;
  at += -(uintptr_t)at & 15;
  for (lua_Integer i = 0; i < n; i++) {
    lua_geti(L, 3, i + 1);
    pack(L, i + 1, at, &buf);
    l->params[i] = at;
    if (buf) l->bufs[l->nbufs++] = buf;
    at += (sizes[i] + 15) & ~(size_t)15;
    lua_pop(L, 1);
  }
  l->params[n] = NULL;
  return l;
}

// f:prepare{args = {...}, grid =, block =, smem =, stream =, cluster =, pdl =,
// cooperative =} -> a prepared launch. Checks and packs everything, so that
// launching takes one driver call.
static int fn_prepare(lua_State *L) {
  GpuFn *f = check_kernel(L, 1);
  face_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  if (lua_getfield(L, 2, "args") == LUA_TNIL) {
    lua_newtable(L);
    lua_replace(L, 3);
  }
  face_checktype(L, 3, LUA_TTABLE);
  lua_newtable(L);  // a table that keeps the arguments alive, at stack index 4
  for (lua_Integer i = luaL_len(L, 3); i > 0; i--) {
    lua_geti(L, 3, i);
    if (lua_istable(L, -1)) lua_geti(L, -1, 1), lua_remove(L, -2);
    lua_rawseti(L, 4, i);
  }
  Why w;
  if (!gpu_usable(&f->own, "kernel", &w))
    return gpulib_failed(L, &w);
  GpuLaunch *l = new_prepared(L, f);  // stack index 5: the launch
  l->fn = f;
  get_extents(L, "grid", l->grid, 0);
  get_extents(L, "block", l->block, 0);
  get_extents(L, "cluster", l->cluster, 1);
  lua_Integer smem = face_get_int(L, 2, "smem", 0);
  if (smem < 0 || smem > INT32_MAX)
    face_error(L, ERR_LAUNCH, "smem = %lld: 0 to 2^31 - 1 bytes of shared "
               "memory are possible", (long long)smem);
  l->smem = (unsigned)smem;
  l->pdl = face_get_bool(L, 2, "pdl");
  l->cooperative = face_get_bool(L, 2, "cooperative");
  lua_getfield(L, 2, "stream");
  l->stream = gpulib_stream(L, -1);
  lua_setiuservalue(L, 5, 3);
  lua_pushvalue(L, 1), lua_setiuservalue(L, 5, 1);
  lua_pushvalue(L, 4), lua_setiuservalue(L, 5, 2);
  lua_settop(L, 5);
  uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
  if (threads > 1024)
    face_error(L, ERR_LAUNCH, "%llu threads a block are too many: at most 1024",
               (unsigned long long)threads);
  luaL_setmetatable(L, MT_LAUNCH);
  return gpulaunch_prepare(l, &w) ? 1 : gpulib_failed(L, &w);
}

// Executes the prepared launch at stack index 1 n times, on the stream at index
// `at`. If there is nil at this index, uses the launch's own stream.
static int launch_on(lua_State *L, int n, int at) {
  const GpuLaunch *l = face_checkudata(L, 1, MT_LAUNCH);
  const GpuStream *stream = gpulib_stream(L, at);
  GpuLaunch other;
  if (stream) {
    other = *l;
    other.stream = stream;
    l = &other;
  }
  gpulib_ran(L, l->fn->own.gpu, l->fn->name);
  gpulib_keep(L, l->fn->own.gpu, 1);
  Why w;
  return gpulib_done(L, gpulaunch_run(l, n, &w), &w);
}

static int launch_run(lua_State *L) { return launch_on(L, 1, 2); }

static int launch_n(lua_State *L) {
  return launch_on(L, gpulib_times(L, 2), 3);
}

// launch:max_active_clusters() -> number of clusters of the launch that can run
// on the GPU at a time
static int launch_clusters(lua_State *L) {
  int n = 0;
  Why w;
  if (!gpulaunch_clusters(face_checkudata(L, 1, MT_LAUNCH), &n, &w))
    return gpulib_failed(L, &w);
  lua_pushinteger(L, n);
  return 1;
}

// ---- tensor maps ----

// driver_tensor_map(parameters) -> a tiled tensor map as the driver encodes it,
// in words, or nil if the driver rejects the parameters.
static int l_driver_tensor_map(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checktype(L, 1, LUA_TTABLE);
  Why w;
  const CudaApi *api = dl_cuda(&w);
  if (!api) return gpulib_failed(L, &w);
  if (!api->cuTensorMapEncodeTiled)
    return face_fail2(L, ERR_DRIVER,
                      "this driver does not support tensor maps");
  TensorMap m;
  tmalib_parameters(L, &m);
  enum { N = TENSORMAP_RANK };
  cuuint64_t extent[N], stride[N] = {0};
  cuuint32_t box[N], step[N];
  for (int i = 0; i < N; i++) {
    extent[i] = (cuuint64_t)m.extent[i];
    if (i < N - 1) stride[i] = (cuuint64_t)m.stride[i];
    box[i] = (cuuint32_t)m.box[i];
    step[i] = (cuuint32_t)m.step[i];
  }
  char *p = arena_alloc(cx, &cx->scratch, 2 * sizeof(CUtensorMap));
  CUtensorMap *out = (CUtensorMap *)(void *)(p + (-(uintptr_t)p & 63));
  if (api->cuInit(0) != CUDA_SUCCESS || api->cuTensorMapEncodeTiled(
        out, (CUtensorMapDataType)m.type, (cuuint32_t)m.rank,
        (void *)(uintptr_t)m.address, extent, stride, box, step,
        (CUtensorMapInterleave)m.interleave, (CUtensorMapSwizzle)m.swizzle,
        (CUtensorMapL2promotion)m.l2, (CUtensorMapFloatOOBfill)m.fill))
    return 0;
  tmalib_push_words(L, (const uint64_t *)out);
  return 1;
}

// ---- module ----

// Types of objects that belong to a GPU. A method `close` also serves as
// __close and __gc of the type.
static const struct Handle {
  const char *name;
  lua_CFunction close;
  luaL_Reg methods[24];  // a row with the name NULL ends the list
} handles[] = {
  {MT_GPU, NULL, {
    {"info()", gpu_info}, {"alive()", gpu_alive}, {"sync()", gpu_l_sync},
    {"begin()", gpu_l_begin},
    {"free_memory()", gpu_l_free}, {"memory()", gpu_memory},
    {"trim()", gpu_trim}, {"capturing()", gpu_capturing},
    {"use_stream(stream?)", gpu_use_stream},
    {"stream_number(stream?)", gpu_stream_number},
    {"buffer(dtype, count?)", devlib_buffer},
    {"stream()", gpu_stream}, {"event()", gpu_event},
    {"foreign_stream(handle)", dlpacklib_stream},
    {"load(cubin, name, parameters?, level?)", gpu_load},
    {"variable(kernel, name)", gpu_variable},
    {"cublas(options)", blaslib_cublas},
    {"cublaslt(options)", blaslib_cublaslt},
    {"cublaslt_first(options)", blaslib_first},
    {"cublas_version()", blaslib_version}, {"__gc", gpu_gc}}},
  {MT_STREAM, stream_close, {
    {"sync()", stream_sync}, {"wait(event)", stream_wait},
    {"record(event?)", stream_record}, {"done()", stream_done},
    {"__index", stream_index}}},
  {MT_EVENT, event_close, {
    {"record(stream?)", event_record}, {"sync()", event_sync},
    {"done()", event_done}, {"elapsed(to)", event_elapsed}}},
  {MT_GPUFN, fn_close, {
    {"attributes()", fn_attributes}, {"prepare(options)", fn_prepare},
    {"usable()", fn_usable}}},
  {MT_LAUNCH, NULL, {
    {"launch(stream?)", launch_run}, {"launch_n(n, stream?)", launch_n},
    {"max_active_clusters()", launch_clusters}}},
  {MT_BLAS, blaslib_close, {
    {"launch(stream?)", blaslib_run}, {"launch_n(n, stream?)", blaslib_run_n}}},
};

void gpulib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"gpu_open", l_gpu_open}, {"driver_tensor_map", l_driver_tensor_map},
    {NULL, NULL}};
  for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
    const struct Handle *h = &handles[i];
    const luaL_Reg closing[] = {{"close()", h->close}, {"__gc", h->close},
                                {"__close", h->close}, {NULL, NULL}};
    face_newtype(L, h->name, h->methods);
    if (h->close) face_setfuncs(L, closing);
    lua_pop(L, 1);
  }
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
