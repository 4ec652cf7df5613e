// Recording graphs of the simulator: calls of launches and copies are appended
// to a list, and not executed.
#include "bind/gpulib.h"

// registry: the list of calls while a graph is recorded.
#define RECORDING "cute.recording"

// record(list, f): while f() runs, appends its launches and copies to the list
// instead of executing them; f cannot yield. record(nil): executes calls again.
static int l_record(lua_State *L) {
  lua_settop(L, 2);
  lua_pushvalue(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, RECORDING);
  if (!lua_isnil(L, 2)) lua_call(L, 0, 0);
  return 0;
}

// recording() -> the list, or nil if no graph is being recorded
static int l_recording(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, RECORDING);
  return 1;
}

// Appends a call, a function and its arguments from stack index `first` on, to
// the list. Returns false if no graph is being recorded.
static bool record(lua_State *L, int first) {
  int top = lua_gettop(L);
  if (lua_getfield(L, LUA_REGISTRYINDEX, RECORDING) != LUA_TTABLE) {
    lua_settop(L, top);
    return false;
  }
  lua_createtable(L, top - first + 1, 1);
  for (int i = first; i <= top; i++) {
    lua_pushvalue(L, i);
    lua_rawseti(L, -2, i - first + 1);
  }
  face_set_int(L, "n", top - first + 1);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_settop(L, top);
  return true;
}

// recorded(f, arguments...) -> whether the call was recorded, and so must not
// be executed
static int l_recorded(lua_State *L) {
  lua_pushboolean(L, record(L, 1));
  return 1;
}

bool recordlib_recording(lua_State *L) {
  bool is = lua_getfield(L, LUA_REGISTRYINDEX, RECORDING) == LUA_TTABLE;
  lua_pop(L, 1);
  return is;
}

void recordlib_call(lua_State *L, const char *method, int n) {
  int first = lua_gettop(L) - n + 1;
  lua_getfield(L, first, method);
  lua_insert(L, first);
  record(L, first);
  lua_settop(L, first - 1);
}

bool recordlib_recorded(lua_State *L) {
  lua_Debug ar;
  int top = lua_gettop(L);
  lua_getstack(L, 0, &ar);
  lua_getinfo(L, "f", &ar);
  lua_insert(L, 1);
  bool is = record(L, 1);
  lua_remove(L, 1);
  lua_settop(L, top);
  return is;
}

void recordlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"record", l_record}, {"recording", l_recording},
    {"recorded", l_recorded}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
