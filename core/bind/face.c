// Helpers of all bindings that raise no errors: contexts, the user's function,
// type names, table fields, element types as userdata.
#include "bind/face.h"

#include <stdio.h>
#include <string.h>

// ---- context ----

Ctx *face_ctx(lua_State *L) {
  Ctx *cx = lua_touserdata(L, lua_upvalueindex(1));
  cx->ud = L;
  return cx;
}

Ctx *face_state(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  Ctx *cx = lua_touserdata(L, -1);
  lua_pop(L, 1);
  cx->ud = L;
  return cx;
}

// ---- user functions ----

// Reports whether src is the path of a file of lua/cutelua/ROOM/. The name of
// the room is checked, too, because a folder named lua may contain a clone of
// cutelua with users' scripts.
static bool workshop_source(const char *src) {
  const char *at = strstr(src, "lua/cutelua/");
  if (!at && !(at = strstr(src, "lua/5.4/cutelua/"))) return false;
  at = strstr(at, "cutelua/") + 8;
  if (strcmp(at, "init.lua") == 0) return true;
  return strchr(at, '/') && strncmp(at, "scripts/", 8) != 0 &&
         strncmp(at, "kernels/", 8) != 0 && strncmp(at, "spec/", 5) != 0;
}

// Reports whether a chunk is a Lua file of cutelua. Embedded files are named
// "=[cute.xxx]" or "=[cutelua.xxx]". Other files are in lua/cute/ or
// lua/cutelua/ or, in a rock, below lua/5.4/.
bool face_own_source(const char *src) {
  if (strncmp(src, "=[cute", 6) == 0) return true;
  return src[0] == '@' &&
         (strstr(src, "lua/cute/") || strstr(src, "lua/5.4/cute/") ||
          workshop_source(src));
}

bool face_user(lua_State *L, lua_Debug *ar) {
  for (int level = 0; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "S", ar);
    if (face_own_source(ar->source)) continue;
    lua_getinfo(L, "l", ar);
    if (ar->currentline > 0) return true;
  }
  return false;
}

bool face_where(lua_State *L, char src[512], int *line, lua_Debug *ar) {
  if (!face_user(L, ar)) return false;
  size_t n = ar->srclen < 511 ? ar->srclen : 511;
  memcpy(src, ar->source, n);
  src[n] = '\0';
  *line = ar->currentline;
  return true;
}

bool face_line(lua_State *L, char out[64]) {
  lua_Debug ar;
  if (!face_user(L, &ar) || *ar.source != '@') return false;
  const char *file = strrchr(ar.short_src, '/');
  snprintf(out, 64, "%.50s:%d", file ? file + 1 : ar.short_src,
           ar.currentline);
  return true;
}

// ---- values ----

const char *face_typename(lua_State *L, int idx) {
  if (lua_type(L, idx) == LUA_TUSERDATA &&
      luaL_getmetafield(L, idx, "__name") == LUA_TSTRING) {
    // The metatable keeps the string alive.
    const char *s = lua_tostring(L, -1);
    lua_pop(L, 1);
    return strncmp(s, "cute.", 5) == 0 ? s + 5 : s;
  }
  return luaL_typename(L, idx);
}

void face_push_buf(lua_State *L, Buf *b) {
  lua_pushlstring(L, b->p ? b->p : "", b->n);
  buf_free(b);
}

void *face_test(lua_State *L, int idx, const char *tname) {
  return luaL_testudata(L, idx, tname);
}

void face_push_dtype(lua_State *L, DType t) {
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.dtypes");
  lua_rawgeti(L, -1, (lua_Integer)t);
  lua_remove(L, -2);
}

DType face_test_dtype(lua_State *L, int idx) {
  DType *t = luaL_testudata(L, idx, MT_DTYPE);
  return t ? *t : DT_NONE;
}

// ---- fields of tables ----

void face_set_int(lua_State *L, const char *k, lua_Integer v) {
  lua_pushinteger(L, v);
  lua_setfield(L, -2, k);
}

void face_set_num(lua_State *L, const char *k, lua_Number v) {
  lua_pushnumber(L, v);
  lua_setfield(L, -2, k);
}

void face_set_bool(lua_State *L, const char *k, bool v) {
  lua_pushboolean(L, v);
  lua_setfield(L, -2, k);
}

void face_set_str(lua_State *L, const char *k, const char *v) {
  lua_pushstring(L, v);
  lua_setfield(L, -2, k);
}
// SPDX-License-Identifier: MIT
