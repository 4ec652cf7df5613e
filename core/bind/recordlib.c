// Records graphs of the simulator: appends launches and copies to a list
// instead of executing them.
#include "bind/gpulib.h"
#include "bind/tensorlib.h"

// Key in the registry of the list of calls while a graph is recorded. Field
// `closed` of the list has the buffers that were closed during the recording.
// Field `spare` has the closed buffers whose memory no open buffer uses.
#define RECORDING "cute.recording"

// record(list, f): calls f(), and appends the launches and copies of f to the
// list instead of executing them. f cannot yield. record(nil) ends the
// recording, so that later calls are executed.
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

// Appends a call to the list: the function at stack index `first`, followed by
// its arguments. Returns false if no graph is being recorded.
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

// Calls f with each buffer in the value on top, which is a buffer, a tensor, or
// a list of such values. During the call, the buffer is on top of the stack.
static void each_buffer(lua_State *L, void (*f)(lua_State *L, size_t *),
                        size_t *arg) {
  luaL_checkstack(L, LUA_MINSTACK, "arguments of a call");
  int top = lua_gettop(L);
  size_t n = lua_istable(L, top) ? (size_t)lua_rawlen(L, top) : 0;
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, top, (lua_Integer)i);
    each_buffer(L, f, arg);
    lua_pop(L, 1);
  }
  if (tensorlib_box(L, top)) lua_getiuservalue(L, top, 1);
  if (luaL_testudata(L, -1, MT_BUFFER)) f(L, arg);
  lua_settop(L, top);
}

static void check_open(lua_State *L, size_t *unused) {
  (void)unused;
  buflib_check(L, -1);
}

// recorded(f, arguments...) -> whether the call f(arguments...) was recorded.
// If so, the caller must not execute it.
static int l_recorded(lua_State *L) {
  for (int i = 2; recordlib_recording(L) && i <= lua_gettop(L); i++)
    lua_pushvalue(L, i), each_buffer(L, check_open, NULL), lua_pop(L, 1);
  lua_pushboolean(L, record(L, 1));
  return 1;
}

bool recordlib_recording(lua_State *L) {
  bool is = lua_getfield(L, LUA_REGISTRYINDEX, RECORDING) == LUA_TTABLE;
  lua_pop(L, 1);
  return is;
}

// Appends the value at idx to the list in field `field` of the table on top,
// the recording. Creates the list if it is absent.
static void append(lua_State *L, const char *field, int idx) {
  luaL_getsubtable(L, -1, field);
  lua_pushvalue(L, idx);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  lua_pop(L, 1);
}

void recordlib_closed(lua_State *L, int idx, bool spare) {
  lua_getfield(L, LUA_REGISTRYINDEX, RECORDING);
  append(L, "closed", idx);
  if (spare) append(L, "spare", idx);
  lua_pop(L, 1);
}

bool recordlib_reuse(lua_State *L, DType t, size_t count) {
  int top = lua_gettop(L);
  size_t n = (count * (size_t)dtype_bits(t) + 7) / 8;
  if (lua_getfield(L, LUA_REGISTRYINDEX, RECORDING) == LUA_TTABLE &&
      lua_getfield(L, -1, "spare") == LUA_TTABLE) {
    lua_Integer last = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = last; i > 0; i--) {
      lua_rawgeti(L, -1, i);
      buflib_push_owner(L, -1);
      size_t bytes = ((const HostBuf *)lua_touserdata(L, -1))->bytes;
      if (bytes >= n && bytes <= n + n / 8) {
        lua_rawgeti(L, top + 2, last);
        lua_rawseti(L, top + 2, i);
        lua_pushnil(L);
        lua_rawseti(L, top + 2, last);
        buflib_reuse(L, -1, t, count);
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return true;
      }
      lua_pop(L, 2);
    }
  }
  lua_settop(L, top);
  return false;
}

// replaying(list, is): if `is` is true, reopens the buffers that were closed
// while the list was recorded, so that the recorded calls can be executed.
// Otherwise closes them again.
static int l_replaying(lua_State *L) {
  if (lua_getfield(L, 1, "closed") != LUA_TTABLE) return 0;
  for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 0; i--) {
    lua_rawgeti(L, -1, i);
    ((HostBuf *)lua_touserdata(L, -1))->closed = !lua_toboolean(L, 2);
    lua_pop(L, 1);
  }
  return 0;
}

// Adds the size of the memory that the buffer on top uses to *bytes, and the
// owner of this memory to the table at stack index 2. Does nothing if the table
// already has the owner.
static void add_bytes(lua_State *L, size_t *bytes) {
  buflib_push_owner(L, -1);
  lua_pushvalue(L, -1);
  if (lua_rawget(L, 2) != LUA_TNIL) return;
  lua_pop(L, 1);
  *bytes += ((const HostBuf *)lua_touserdata(L, -1))->bytes;
  lua_pushboolean(L, 1);
  lua_rawset(L, 2);
}

// recorded_bytes(list) -> number of bytes of all memory that the recorded calls
// use
static int l_bytes(lua_State *L) {
  size_t bytes = 0;
  lua_settop(L, 1);
  lua_newtable(L);
  lua_pushvalue(L, 1);
  each_buffer(L, add_bytes, &bytes);
  lua_pushinteger(L, (lua_Integer)bytes);
  return 1;
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
    {"recorded", l_recorded}, {"replaying", l_replaying},
    {"recorded_bytes", l_bytes}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
