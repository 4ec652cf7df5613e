// What stands in arguments for something else: constants of a trace, and what
// a launch will tell (symbolic integers and tensors).
#include "bind/kind.h"

#include <string.h>

#include "bind/laylib.h"

// ---- constants ----

// constexpr(x): in the arguments of a kernel x as it is, a constant. In a
// kernel x itself.
static int l_constexpr(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checkany(L, 1);
  lua_settop(L, 1);
  if (ir_fn(cx) || luaL_testudata(L, 1, MT_CONSTEXPR)) {
    if (luaL_testudata(L, 1, MT_VALUE))
      face_error(L, ERR_STATIC, "cute.constexpr: %s is known only on the "
                 "device", face_show(L, 1));
    return 1;
  }
  lua_newuserdatauv(L, 1, 1);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, MT_CONSTEXPR);
  return 1;
}

// constexpr.value
static int constexpr_index(lua_State *L) {
  face_check(L, 1, MT_CONSTEXPR, "constexpr");
  if (strcmp(face_checkstr(L, 2), "value") != 0) face_nofield(L);
  lua_getiuservalue(L, 1, 1);
  return 1;
}

static int constexpr_tostring(lua_State *L) {
  face_check(L, 1, MT_CONSTEXPR, "constexpr");
  lua_getiuservalue(L, 1, 1);
  lua_pushfstring(L, "constexpr %s", face_show(L, -1));
  return 1;
}

// ---- opening ----

void symlib_open(lua_State *L) {
  static const luaL_Reg constant[] = {
    {"__index", constexpr_index}, {"__tostring", constexpr_tostring},
    {NULL, NULL}};
  static const luaL_Reg funcs[] = {
    {"constexpr(x)", l_constexpr}, {NULL, NULL}};
  static const luaL_Reg none[] = {{NULL, NULL}};
  face_newtype(L, MT_CONSTEXPR, constant);
  face_newtype(L, MT_SYMBOL, none);
  lua_pop(L, 2);
  face_setfuncs(L, funcs);
}
