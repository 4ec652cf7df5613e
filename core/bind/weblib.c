// In place of linelib.c in a browser, where a page edits lines.
#include "bind/program.h"

// editor(complete) -> nil: there is no terminal
static int web_editor(lua_State *L) {
  (void)L;
  return 0;
}

void linelib_open(lua_State *L) {
  lua_pushcfunction(L, web_editor);
  lua_setfield(L, -2, "editor");
}
