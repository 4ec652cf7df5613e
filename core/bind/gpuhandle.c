// Functions that the bindings of the GPU share: the GPU object, the objects
// that belong to it, the results of driver calls, and the list of objects that
// a captured graph keeps alive.
#include "bind/gpulib.h"

#include <stdio.h>
#include <string.h>

#include "gpu/dl.h"

// The first kind of error (base/errors.h) that is a failure of the environment.
// The kinds before it are mistakes of the script.
#define FIRST_WORLD ERR_IO

int gpulib_failed(lua_State *L, const Why *w) {
  if (w->kind < FIRST_WORLD) face_error(L, w->kind, "%s", w->msg);
  return face_fail2(L, w->kind, "%s", w->msg);
}

int gpulib_done(lua_State *L, bool ok, const Why *w) {
  if (!ok) face_error(L, w->kind, "%s", w->msg);
  lua_pushboolean(L, 1);
  return 1;
}

Gpu *gpulib_check(lua_State *L, int idx) {
  return face_check(L, idx, MT_GPU, "gpu");
}

bool gpulib_open_gpu(lua_State *L, lua_Integer ordinal, Why *w) {
  int top = lua_gettop(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, "cute.gpus");
  if (lua_rawgeti(L, -1, ordinal + 1) != LUA_TUSERDATA) {
    Gpu *g = lua_newuserdatauv(L, sizeof *g, 1);
    memset(g, 0, sizeof *g);
    luaL_setmetatable(L, MT_GPU);
    if (!gpu_init(g, (int)ordinal, w)) {
      lua_settop(L, top);
      return false;
    }
    lua_pushvalue(L, -1);
    lua_rawseti(L, top + 1, ordinal + 1);
  }
  lua_replace(L, top + 1);
  lua_settop(L, top + 1);
  return true;
}

Gpu *gpulib_known(lua_State *L, lua_Integer ordinal) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, "cute.gpus");
  lua_rawgeti(L, -1, ordinal + 1);
  Gpu *g = lua_touserdata(L, -1);
  lua_pop(L, 2);
  return g;
}

CUcontext gpulib_context(void) {
  Why w;
  CUcontext now = NULL;
  const CudaApi *api = dl_cuda(&w);
  if (api) api->cuCtxGetCurrent(&now);
  return now;
}

void gpulib_ran(lua_State *L, Gpu *g, const char *who) {
  face_outside(L);
  char at[64];
  if (gpu_ran(g, who)) return;
  gpu_runs(g, who, face_line(L, at) ? at : NULL, 0);
}

void *gpulib_handle(lua_State *L, int gpu, size_t size, const char *tname) {
  face_outside(L);
  gpu = lua_absindex(L, gpu);
  GpuOwned *o = lua_newuserdatauv(L, size, 2);
  memset(o, 0, size);
  o->gpu = lua_touserdata(L, gpu);
  o->closed = true;
  luaL_setmetatable(L, tname);
  lua_pushvalue(L, gpu);
  lua_setiuservalue(L, -2, 1);
  return o;
}

const char *gpulib_name(const Gpu *g, char name[16]) {
  if (g->ordinal) snprintf(name, 16, "gpu:%d", g->ordinal);
  else snprintf(name, 16, "gpu");
  return name;
}

int gpulib_times(lua_State *L, int idx) {
  lua_Integer n = face_checkint(L, idx);
  if (n < 0 || n > INT32_MAX)
    face_error(L, ERR_LAUNCH, "%lld launches: 0 to %d are possible",
               (long long)n, INT32_MAX);
  return (int)n;
}

GpuStream *gpulib_stream(lua_State *L, int idx) {
  if (lua_isnoneornil(L, idx)) return NULL;
  return face_check(L, idx, MT_STREAM, "stream");
}

void gpulib_joins(lua_State *L, const Gpu *g, int idx) {
  if (!g->capture) return;
  lua_getfield(L, LUA_REGISTRYINDEX, GPULIB_KEPT);
  if (lua_getfield(L, -1, GPULIB_BRANCHES) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, GPULIB_BRANCHES);
  }
  lua_pushvalue(L, idx);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 2);
}

void gpulib_keep(lua_State *L, const Gpu *g, int idx) {
  if (!g->capture) return;
  const DevBuf *b = face_test(L, idx, MT_DEVBUF);
  if (b && b->own.gpu == g) return;
  HostBuf *h = face_test(L, idx, MT_BUFFER);
  if (h) h->kept = true;
  lua_pushvalue(L, idx);
  lua_getfield(L, LUA_REGISTRYINDEX, GPULIB_KEPT);
  lua_insert(L, -2);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 1);
}
// SPDX-License-Identifier: MIT
