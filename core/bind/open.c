// Opens all bindings: require "cute.core".
#include "bind/face.h"

// Returns the module. Each Lua state has only one, which later calls return
// again. (A module loader may forget the module and require it again, as busted
// does for each spec file. Metatables belong to the state, and their functions
// keep the context with which they were created.)
int luaopen_cute_core(lua_State *L) {
  if (lua_getfield(L, LUA_REGISTRYINDEX, "cute.core") == LUA_TTABLE) return 1;
  context_new(L);
  lua_newtable(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, LUA_REGISTRYINDEX, "cute.core");
  arglib_open(L);
  cutelib_open(L);
  filelib_open(L);
  ziplib_open(L);
  layoutlib_open(L);
  layoutfn_open(L);
  tuplelib_open(L);
  alglib_open(L);
  static const char *const types[] = {MT_LAYOUT, MT_CONST};
  for (int i = 0; i < 2; i++) {
    luaL_getmetatable(L, types[i]);
    face_complete(L);
    lua_pop(L, 1);
  }
  tensorlib_open(L);
  hostlib_open(L);
  veclib_open(L);
  vallib_open(L);
  oplib_open(L);
  mathlib_open(L);
  tracelib_open(L);
  reachlib_open(L);
  bytecodelib_open(L);
  intrinlib_open(L);
  printlib_open(L);
  kernlib_open(L);
  atomlib_open(L);
  buflib_open(L);
  gpulib_open(L);
  devlib_open(L);
  dlpacklib_open(L);
  graphlib_open(L);
  recordlib_open(L);
  jitlib_open(L);
  launchlib_open(L);
  bundlelib_open(L);
  plan_cache_open(L);
  symlib_open(L);
  tmalib_open(L);
  requestlib_open(L);
  ptxlib_open(L);
  patchlib_open(L);
  lintlib_open(L);
  simlib_open(L);
  debuglib_open(L);
  generic_open(L);
  dispatch_open(L);
  return 1;
}
// SPDX-License-Identifier: MIT
