// Lua bindings of the compiler NVRTC, which makes a CUBIN and a log of CUDA C.
#include <string.h>

#include "bind/face.h"
#include "gpu/dl.h"
#include "gpu/jit.h"

#define MT_JIT "cute.jit"

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

// jit_compile(source, arch [, options [, no_cache [, waiting, patience [,
// name]]]]) -> {cubin=, ptx=, log=, cached=, seconds=, nvrtc=, note=} or, if
// the compilation fails, nil, a message and the log. `waiting` is a text to
// print on stderr if the compilation takes longer than `patience` seconds.
// `name` is the source's path.
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
  lua_settop(L, 7);
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
    jit_free(out);
    return 3;
  }
  lua_createtable(L, 0, 8);
  lua_pushlstring(L, out->log, out->log_n), lua_setfield(L, -2, "log");
  set_bytes(L, "cubin", out->cubin, out->cubin_n);
  set_bytes(L, "ptx", out->ptx, out->ptx_n);
  set_bytes(L, "note", out->note, strlen(out->note));
  face_set_bool(L, "cached", out->cached);
  lua_pushfstring(L, "%d.%d", out->major, out->minor);
  lua_setfield(L, -2, "nvrtc");
  jit_free(out);
  face_set_num(L, "seconds", (double)(base_nanotime() - start) * 1e-9);
  return 1;
}

// nvrtc_version() -> a version such as "13.0" | nil, message.
static int l_nvrtc_version(lua_State *L) {
  Why w;
  int major, minor;
  const NvrtcApi *api = dl_nvrtc(&w);
  if (!api || api->nvrtcVersion(&major, &minor) != NVRTC_SUCCESS)
    return face_fail2(L, ERR_NONVRTC, "%s", api ? "no version" : w.msg);
  lua_pushfstring(L, "%d.%d", major, minor);
  return 1;
}

void jitlib_open(lua_State *L) {
  static const luaL_Reg meta[] = {{"__gc", jit_gc}, {NULL, NULL}};
  static const luaL_Reg funcs[] = {
    {"jit_compile", l_jit_compile}, {"nvrtc_version()", l_nvrtc_version},
    {NULL, NULL}};
  face_newtype(L, MT_JIT, meta);
  lua_pop(L, 1);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
