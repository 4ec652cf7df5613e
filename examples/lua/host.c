// An application that has its own Lua interpreter, and lets scripts use cutelua
// as a Lua module.
//
//     luarocks make --local                      # in cutelua's source folder
//     eval "$(luarocks path)"
//     cc host.c -I/usr/include/lua5.4 -Wl,-E -l:liblua5.4.a -lm -ldl -o host
//     ./host app.lua
//
// -Wl,-E exports Lua's functions to the module, which does not contain Lua.
#include <stdio.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

// Implements host.readings, which scripts call.
static int readings(lua_State *L) {
  static const double values[] = {1, 2, 3, 4};
  lua_createtable(L, 4, 0);
  for (int i = 0; i < 4; i++) {
    lua_pushnumber(L, values[i]);
    lua_seti(L, -2, i + 1);
  }
  return 1;
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  if (argc < 2 || !L) return 2;
  luaL_openlibs(L);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, readings);
  lua_setfield(L, -2, "readings");
  lua_setglobal(L, "host");
  // an error of cutelua is a table; luaL_tolstring returns its text
  int bad = luaL_dofile(L, argv[1]) != LUA_OK;
  fprintf(bad ? stderr : stdout, "%s\n", luaL_tolstring(L, -1, NULL));
  lua_close(L);
  return bad;
}
// SPDX-License-Identifier: MIT
