// Lua bindings of the compiler NVRTC, which compiles CUDA C to a CUBIN and a
// log, and of its caches.
#include <string.h>

#include "bind/face.h"
#include "gpu/cache.h"
#include "gpu/dl.h"
#include "gpu/jit.h"
#include "gpu/nvrtc.h"
#include "ir/target.h"

#define MT_JIT "cute.jit"
#define MT_CACHE "cute.cache"

static int jit_gc(lua_State *L) {
  jit_free(face_check(L, 1, MT_JIT, "compiler output"));
  return 0;
}

static void set_bytes(lua_State *L, const char *name, const char *p,
                      size_t n) {
  if (!n) return;
  lua_pushlstring(L, p, n);
  lua_setfield(L, -2, name);
}

// Pushes a list of notes, such as the reasons why a cache does not work.
static void push_notes(lua_State *L, const JitOut *out) {
  lua_newtable(L);
  for (size_t i = 0; i < sizeof out->notes / sizeof *out->notes; i++) {
    if (!*out->notes[i]) continue;
    lua_pushstring(L, out->notes[i]);
    lua_rawseti(L, -2, luaL_len(L, -2) + 1);
  }
}

// jit_compile(source, arch [, options [, no_cache [, waiting, patience [, name
// [, into]]]]]) -> {cubin=, ptx=, log=, cached=, image=, seconds=, nvrtc=,
// notes=} | nil, message, log, warning about the cache's folder. `waiting` is a
// text to print on stderr if the compilation takes longer than `patience`
// seconds. `name` is the path of the source. If `into` is present, the result
// is also stored in this folder, the cache of a container image.
static int l_jit_compile(lua_State *L) {
  uint64_t start = base_nanotime();
  const char *options[32];
  JitJob job = {.options = options};
  job.source = face_checkstr(L, 1);
  job.arch = face_checkstr(L, 2);
  job.no_cache = lua_toboolean(L, 4);
  job.waiting = lua_tostring(L, 5);
  job.patience = lua_tonumber(L, 6);
  job.name = lua_tostring(L, 7);
  job.into = lua_tostring(L, 8);
  lua_settop(L, 8);
  lua_Integer n = lua_istable(L, 3) ? luaL_len(L, 3) : 0;
  if (n > 32) face_error(L, ERR_LIMIT, "more than 32 compiler options");
  luaL_checkstack(L, 48, "compiler options");
  for (lua_Integer i = 1; i <= n; i++) {
    lua_geti(L, 3, i);
    options[job.noptions++] = face_checkstr(L, -1);
  }
  JitOut *out = lua_newuserdatauv(L, sizeof *out, 0);
  memset(out, 0, sizeof *out);
  luaL_setmetatable(L, MT_JIT);
  Why w;
  if (!jit_compile(&job, out, &w)) {
    face_fail2(L, w.kind, "%s", w.msg);
    lua_pushlstring(L, out->log, out->log_n);
    lua_pushstring(L, out->notes[3]);
    jit_free(out);
    return 4;
  }
  lua_createtable(L, 0, 9);
  lua_pushlstring(L, out->log, out->log_n), lua_setfield(L, -2, "log");
  set_bytes(L, "cubin", out->cubin, out->cubin_n);
  set_bytes(L, "ptx", out->ptx, out->ptx_n);
  push_notes(L, out);
  lua_setfield(L, -2, "notes");
  face_set_bool(L, "cached", out->cached);
  face_set_bool(L, "image", out->image);
  lua_pushfstring(L, "%d.%d", out->major, out->minor);
  lua_setfield(L, -2, "nvrtc");
  jit_free(out);
  face_set_num(L, "seconds", (double)(base_nanotime() - start) * 1e-9);
  return 1;
}

// ---- compilers ----

// nvrtc_version() -> a version such as "13.0" | nil, message.
static int l_nvrtc_version(lua_State *L) {
  Why w;
  const Nvrtc *v = nvrtc_pick(NULL, &w);
  if (!v) return face_fail2(L, ERR_NONVRTC, "%s", w.msg);
  lua_pushfstring(L, "%d.%d", v->major, v->minor);
  return 1;
}

// nvrtc_list([arch]) -> {{path=, version=, chosen=, why=}, ...}, driver. The
// list contains the NVRTC libraries that were found, newest first. `chosen`
// marks the library that compiles for `arch`. `driver` is the driver's version
// of CUDA, or nil.
static int l_nvrtc_list(lua_State *L) {
  enum { MOST = 32 };
  const Nvrtc *list[MOST];
  const Nvrtc *chosen = nvrtc_pick(lua_tostring(L, 1), NULL);
  int n = nvrtc_list(list, MOST), driver = nvrtc_driver();
  lua_newtable(L);
  for (int i = 0; i < n; i++) {
    lua_createtable(L, 0, 4);
    lua_pushstring(L, list[i]->path), lua_setfield(L, -2, "path");
    if (list[i]->major) {
      lua_pushfstring(L, "%d.%d", list[i]->major, list[i]->minor);
      lua_setfield(L, -2, "version");
    }
    face_set_bool(L, "chosen", list[i] == chosen);
    set_bytes(L, "why", list[i]->why, strlen(list[i]->why));
    lua_rawseti(L, -2, i + 1);
  }
  if (driver <= 0) return 1;
  lua_pushfstring(L, "%d.%d", driver / 1000, driver % 1000 / 10);
  return 2;
}

// dry_gpu(sm, multiprocessors [, name]) -> true | nil, message: replaces the
// driver, for the rest of the process, by one that needs no GPU (gpu/dry.h).
static int l_dry_gpu(lua_State *L) {
  int sm = (int)luaL_checkinteger(L, 1), sms = (int)luaL_checkinteger(L, 2);
  int kb = (int)(target_smem(sm) / 1024);
  if (!dl_dry(sm, sms, kb, lua_tostring(L, 3)))
    return face_fail2(L, ERR_DRIVER, "the driver is open already");
  lua_pushboolean(L, 1);
  return 1;
}

// ---- caches ----

// An open cache, and memory that the garbage collector frees even after an
// error.
typedef struct CacheBox {
  Cache c;
  CacheFile *list;
  void *mem;
} CacheBox;

static int cache_gc(lua_State *L) {
  CacheBox *b = face_check(L, 1, MT_CACHE, "cache");
  cache_close(&b->c);
  base_free(b->list);
  base_free(b->mem);
  b->list = NULL;
  b->mem = NULL;
  return 0;
}

static CacheBox *push_box(lua_State *L) {
  CacheBox *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  luaL_setmetatable(L, MT_CACHE);
  return b;
}

// Pushes a box with a cache: the cache of the container image if `image`, else
// the user's own cache.
static CacheBox *push_cache(lua_State *L, bool image) {
  CacheBox *b = push_box(L);
  if (image) cache_open_image(&b->c);
  else cache_open(&b->c);
  return b;
}

// Reads the file of a cache entry, and adds its state, key text and NVRTC
// version to the table on top.
static void set_look(lua_State *L, CacheBox *b, const CacheFile *f,
                     bool verify) {
  static const char *const STATES[] = {"good", "broken", "old", "foreign",
                                       "gone"};
  CachePart text;
  int major = 0, minor = 0;
  CacheState state = cache_look(&b->c, f->name, verify, &text, &major, &minor,
                                &b->mem);
  lua_pushstring(L, STATES[state]), lua_setfield(L, -2, "state");
  if (state == CACHE_GOOD) {
    set_bytes(L, "key", text.p, text.n);
    lua_pushfstring(L, "%d.%d", major, minor);
    lua_setfield(L, -2, "nvrtc");
  }
  base_free(b->mem);
  b->mem = NULL;
}

// cache_list(image [, verify]) -> {dir=, on=, note=, warning=, max=, bytes=,
// {name=, bytes=, used=, state=, key=, nvrtc=}, ...}: the entries of a cache,
// the least recently used first. It is the container image's cache if `image`
// is true, else the user's own. If `verify` is true, the state is "good" only
// if the checksum is correct. If `verify` is nil, the entries' files are not
// read, and state, key and nvrtc are missing.
static int l_cache_list(lua_State *L) {
  bool image = lua_toboolean(L, 1), verify = lua_toboolean(L, 2);
  bool look = !lua_isnoneornil(L, 2);
  CacheBox *b = push_cache(L, image);
  size_t n, total;
  b->list = cache_list(&b->c, &n, &total);
  lua_createtable(L, (int)n, 5);
  set_bytes(L, "dir", b->c.dir, strlen(b->c.dir));
  set_bytes(L, "note", b->c.note, strlen(b->c.note));
  set_bytes(L, "warning", b->c.warning, strlen(b->c.warning));
  face_set_bool(L, "on", b->c.on);
  face_set_num(L, "max", (double)cache_cap());
  face_set_num(L, "bytes", (double)total);
  for (size_t i = 0; i < n; i++) {
    lua_createtable(L, 0, 6);
    lua_pushstring(L, b->list[i].name), lua_setfield(L, -2, "name");
    lua_pushinteger(L, (lua_Integer)b->list[i].size);
    lua_setfield(L, -2, "bytes");
    lua_pushinteger(L, b->list[i].used / 1000000000);
    lua_setfield(L, -2, "used");
    if (look) set_look(L, b, &b->list[i], verify);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

// cache_clear(keep) -> number of removed entries, their bytes, warning about
// the folder or "" | nil, message.
static int l_cache_clear(lua_State *L) {
  lua_Integer keep = luaL_checkinteger(L, 1);
  CacheBox *b = push_cache(L, false);
  size_t bytes;
  if (!b->c.on)
    return face_fail2(L, ERR_IO, "%s", *b->c.note ? b->c.note
                      : "the cache is disabled");
  size_t n = cache_clear(&b->c, keep > 0 ? (size_t)keep : 0, &bytes);
  lua_pushinteger(L, (lua_Integer)n);
  lua_pushinteger(L, (lua_Integer)bytes);
  lua_pushstring(L, b->c.warning);
  return 3;
}

// Pushes a box with the cache in the folder that argument 1 names. The folder
// may contain other files.
static CacheBox *push_cache_in(lua_State *L) {
  const char *dir = face_checkstr(L, 1);
  CacheBox *b = push_box(L);
  cache_open_into(&b->c, dir);
  return b;
}

static CacheKey key_argument(lua_State *L) {
  size_t n;
  const char *text = face_checklstr(L, 2, &n);
  return cache_key(text, n);
}

// cache_load(dir, key) -> the text that cache_store stored in folder `dir`
// under `key`, or nil and a reason. The reason is "" if the folder can be used
// but has no such text.
static int l_cache_load(lua_State *L) {
  CacheKey key = key_argument(L);
  CacheBox *b = push_cache_in(L);
  CacheEntry e;
  if (cache_get(&b->c, &key, &e, &b->mem)) {
    lua_pushlstring(L, e.part[0].p, e.part[0].n);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, b->c.note);
  return 2;
}

// cache_store(dir, key, text) -> true | nil, reason: stores `text` in folder
// `dir` under `key`, for cache_load
static int l_cache_store(lua_State *L) {
  CacheKey key = key_argument(L);
  size_t n;
  const char *text = face_checklstr(L, 3, &n);
  CacheBox *b = push_cache_in(L);
  CacheEntry e = {.part = {{text, n}}};
  if (cache_put(&b->c, &key, &e)) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, b->c.note);
  return 2;
}

void jitlib_open(lua_State *L) {
  static const luaL_Reg meta[] = {{"__gc", jit_gc}, {NULL, NULL}};
  static const luaL_Reg cache_meta[] = {{"__gc", cache_gc}, {NULL, NULL}};
  static const luaL_Reg funcs[] = {
    {"jit_compile", l_jit_compile}, {"nvrtc_version()", l_nvrtc_version},
    {"nvrtc_list", l_nvrtc_list}, {"cache_list", l_cache_list},
    {"cache_clear", l_cache_clear}, {"cache_load", l_cache_load},
    {"cache_store", l_cache_store}, {"dry_gpu", l_dry_gpu}, {NULL, NULL}};
  face_newtype(L, MT_JIT, meta);
  lua_pop(L, 1);
  face_newtype(L, MT_CACHE, cache_meta);
  lua_pop(L, 1);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
