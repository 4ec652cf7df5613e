// Element types as Lua values, and basic functions for lua/cute: errors, source
// lines, times.
#include "bind/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- element types ----

static int dtype_tostring(lua_State *L) {
  lua_pushstring(L, dtype_name(*(DType *)luaL_checkudata(L, 1, MT_DTYPE)));
  return 1;
}

static int dtype_index(lua_State *L) {
  DType t = *(DType *)luaL_checkudata(L, 1, MT_DTYPE);
  const char *k = face_checkstr(L, 2);
  if (strcmp(k, "bits") == 0 || strcmp(k, "width") == 0)
    lua_pushinteger(L, dtype_bits(t));
  else if (strcmp(k, "name") == 0)
    lua_pushstring(L, dtype_name(t));
  else if (strcmp(k, "is_float") == 0)
    lua_pushboolean(L, dtype_is_float(t));
  else if (strcmp(k, "is_integer") == 0)
    lua_pushboolean(L, dtype_is_int(t));
  else if (dtype_is_float(t) && strcmp(k, "inf") == 0 &&
           isinf(dtype_to_double(t, dtype_from_double(t, INFINITY))))
    lua_pushnumber(L, (lua_Number)INFINITY);
  else if (dtype_is_float(t) && strcmp(k, "nan") == 0 &&
           isnan(dtype_to_double(t, dtype_from_double(t, NAN))))
    lua_pushnumber(L, (lua_Number)NAN);
  else if (strcmp(k, "signed") == 0)
    lua_pushboolean(L, dtype_class(t) == 'I' || dtype_class(t) == 'F');
  else
    face_nofield(L, 0, "bits width name is_float is_integer signed");
  return 1;
}

// Raises the error that an element type was called, as in cute.Float32(1).
static int dtype_call(lua_State *L) {
  DType t = *(DType *)luaL_checkudata(L, 1, MT_DTYPE);
  bool number = lua_type(L, 2) == LUA_TNUMBER;
  face_error(L, ERR_ARG, "the element type %s was called like a function, with "
             "%s\n  write %s%s%s:to(cute.%s)", dtype_name(t),
             lua_gettop(L) > 1 ? face_show(L, 2) : "no value",
             number ? "(" : "", number ? face_show(L, 2) : "x",
             number ? ")" : "", dtype_name(t));
}

// to_bits(dtype, number) -> the number rounded to this type, as raw bits (an
// integer)
static int l_to_bits(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  bool whole = lua_isinteger(L, 2) && dtype_is_int(t) && dtype_bits(t) == 64;
  lua_pushinteger(L, whole ? lua_tointeger(L, 2) : (lua_Integer)
                  dtype_from_double(t, face_checknum(L, 2)));
  return 1;
}

// from_bits(dtype, integer) -> the number that these raw bits encode
static int l_from_bits(lua_State *L) {
  DType t = face_check_dtype(L, 1);
  int64_t u = face_checkint(L, 2);
  double x = dtype_to_double(t, (uint64_t)u);
  if (!dtype_is_int(t) || dtype_bits(t) > 64) lua_pushnumber(L, x);
  else lua_pushinteger(L, dtype_bits(t) == 64 ? u : (lua_Integer)x);
  return 1;
}

// find_dtype(name or alias) -> the element type, or nil
static int l_find_dtype(lua_State *L) {
  DType t = dtype_find(face_checkstr(L, 1));
  if (t == DT_NONE) lua_pushnil(L);
  else face_push_dtype(L, t);
  return 1;
}

static void dtypes_open(lua_State *L) {
  static const luaL_Reg meta[] = {
    {"__tostring", dtype_tostring}, {"__index", dtype_index},
    {"__call", dtype_call}, {NULL, NULL}};
  face_newtype(L, MT_DTYPE, meta);
  lua_pop(L, 1);
  lua_createtable(L, DT_COUNT, 0);
  for (int t = 1; t < DT_COUNT; t++) {
    DType *p = lua_newuserdatauv(L, sizeof *p, 0);
    *p = (DType)t;
    luaL_setmetatable(L, MT_DTYPE);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, dtype_name(*p));
    lua_rawseti(L, -2, t);
  }
  lua_setfield(L, LUA_REGISTRYINDEX, "cute.dtypes");
}

// ---- functions for lua/cute ----

// Sets field error_kinds of the table on top: the set of the kinds of errors.
static void kinds_open(lua_State *L) {
  lua_createtable(L, 0, ERR_COUNT);
  for (int k = 0; k < ERR_COUNT; k++)
    face_set_bool(L, err_name((ErrKind)k), true);
  lua_setfield(L, -2, "error_kinds");
}

// fail(kind, message): raises an error as the C bindings do. If the caller is a
// library, the error's position is the line that called into the library's
// folder.
static int l_fail(lua_State *L) {
  const char *kind = face_checkstr(L, 1);
  const char *msg = face_checkstr(L, 2);
  lua_Debug ar;
  bool known = lua_getstack(L, 1, &ar) && lua_getinfo(L, "S", &ar);
  for (int k = 0; k < ERR_COUNT; k++)
    if (strcmp(err_name((ErrKind)k), kind) == 0)
      face_raise(L, (ErrKind)k, msg, known ? ar.source : NULL);
  return luaL_error(L, "no error kind '%s'", kind);
}

// outside(): raises an error if a kernel is being traced, for functions that
// may be called only outside of kernels.
static int l_outside(lua_State *L) {
  face_outside(L);
  return 0;
}

static int l_typename(lua_State *L) {
  face_checkany(L, 1);
  lua_pushstring(L, face_typename(L, 1));
  return 1;
}

// debugs(word) -> whether CUTELUA_DEBUG contains the word
static int l_debugs(lua_State *L) {
  lua_pushboolean(L, base_debug(face_checkstr(L, 1)));
  return 1;
}

// own_source(source of a chunk) -> whether the chunk belongs to lua/cute
static int l_own_source(lua_State *L) {
  lua_pushboolean(L, face_own_source(face_checkstr(L, 1)));
  return 1;
}

// script_line() -> source, line: the position of the innermost user function
// that is running. Returns nothing if no user function is running.
static int l_script_line(lua_State *L) {
  lua_Debug ar;
  if (!face_user(L, &ar)) return 0;
  lua_pushstring(L, ar.source);
  lua_pushinteger(L, ar.currentline);
  return 2;
}

// own_chunk(f) -> the source of f if f is a function of lua/cute, nil for
// another Lua function, or false for a C function.
static int l_own_chunk(lua_State *L) {
  lua_Debug ar;
  face_checktype(L, 1, LUA_TFUNCTION);
  bool c = lua_iscfunction(L, 1);
  lua_settop(L, 1);
  lua_getinfo(L, ">S", &ar);
  if (c) lua_pushboolean(L, false);
  else if (face_own_source(ar.source)) lua_pushstring(L, ar.source);
  else lua_pushnil(L);
  return 1;
}

static int l_clock(lua_State *L) {
  lua_pushnumber(L, (double)base_nanotime() * 1e-9);
  return 1;
}

void cutelib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"fail", l_fail}, {"outside", l_outside}, {"typename", l_typename},
    {"own_source", l_own_source}, {"own_chunk", l_own_chunk},
    {"script_line", l_script_line}, {"debugs", l_debugs}, {"clock", l_clock},
    {"to_bits(dtype, x)", l_to_bits}, {"from_bits(dtype, bits)", l_from_bits},
    {"find_dtype", l_find_dtype}, {NULL, NULL}};
  face_setfuncs(L, funcs);
  lua_pushliteral(L, CUTE_VERSION);
  lua_setfield(L, -2, "version");
  dtypes_open(L);
  kinds_open(L);
}
// SPDX-License-Identifier: MIT
