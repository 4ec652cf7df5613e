// The program in a browser. The web page edits lines in place of linelib.c, and
// sends requests in place of a command line. web_open creates a Lua state that
// persists, and web_ask answers requests in it (lua/cutelua/workshop/).
#include <emscripten.h>
#include <emscripten/heap.h>
#include <stdio.h>
#include <string.h>

#include "program/program.h"

// editor(complete) -> nil, since a browser has no terminal
static int web_editor(lua_State *L) {
  (void)L;
  return 0;
}

void linelib_open(lua_State *L) {
  lua_pushcfunction(L, web_editor);
  lua_setfield(L, -2, "editor");
  lua_pushnumber(L, web_memory());
  lua_setfield(L, -2, "memory");
}

// ---- interface for the page ----

static lua_State *web;  // the page's Lua state
static char failed[1024];

// Returns an answer (JSON) that reports an error after which the Lua state is
// unusable.
static const char *failure(const char *message) {
  char *p = failed;
  p += sprintf(p, "{\"ok\":false,\"dead\":true,\"error\":{\"message\":\"");
  for (; *message && p < failed + sizeof failed - 8; message++)
    if (*message >= ' ' && *message < 127 && *message != '"' &&
        *message != '\\')
      *p++ = *message;
  strcpy(p, "\"}}");
  return failed;
}

static const char *failure_of(int status) {
  return failure(status == LUA_ERRMEM
    ? "not enough memory even for an answer: the program was restarted"
    : "the script crashed the program, which was restarted");
}

// web_protected(request) -> answer. The registry keeps the answer until the
// next request.
static int web_protected(lua_State *L) {
  lua_pushstring(L, lua_touserdata(L, 1));
  lua_getglobal(L, "require");
  lua_pushliteral(L, "cutelua.workshop");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "answer");
  lua_pushvalue(L, 2);
  lua_call(L, 1, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, "cute.web");
  return 0;
}

// Creates the Lua state. Returns NULL, or the reason of a failure.
EMSCRIPTEN_KEEPALIVE const char *web_open(void) {
  static char lines[1 << 12];
  setvbuf(stdout, lines, _IOLBF, sizeof lines);
  web = program_state();
  if (!web) return "not enough memory";
  lua_pushcfunction(web, program_open);
  int status = lua_pcall(web, 0, 0, 0);
  return status == LUA_OK ? NULL : lua_tostring(web, -1);
}

// Answers a request. Request and answer are JSON
// (lua/cutelua/workshop/init.lua). The answer is valid until the next call. Lua
// errors become answers.
EMSCRIPTEN_KEEPALIVE const char *web_ask(const char *request) {
  if (!web) return failure("web_open was not called, or failed");
  lua_settop(web, 0);
  lua_pushcfunction(web, web_protected);
  lua_pushlightuserdata(web, (void *)request);
  int status = lua_pcall(web, 1, 0, 0);
  fflush(stdout);
  if (status != LUA_OK) return failure_of(status);
  lua_getfield(web, LUA_REGISTRYINDEX, "cute.web");
  return lua_tostring(web, -1);
}

// Returns the current size of WebAssembly's memory in bytes. This memory never
// shrinks.
EMSCRIPTEN_KEEPALIVE double web_heap(void) {
  return (double)emscripten_get_heap_size();
}

// Returns the maximum size of WebAssembly's memory in bytes.
EMSCRIPTEN_KEEPALIVE double web_memory(void) {
  return (double)emscripten_get_heap_max();
}
// SPDX-License-Identifier: MIT
