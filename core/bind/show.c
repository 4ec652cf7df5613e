// Formats values for messages, as users write them, and shortened.
#include "bind/face.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 60 };  // maximum number of characters of a value

typedef struct Shown {
  char p[SHOWN + 16];
  size_t n;
} Shown;

static void put(Shown *out, const char *s, size_t n) {
  for (size_t i = 0; i < n && out->n < SHOWN; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c >= 32 && c != 127)
      out->p[out->n++] = (char)c;
    else
      out->n += (size_t)snprintf(out->p + out->n, 8, "\\%d", c);
    if (out->n >= SHOWN && i + 1 < n)
      out->n += (size_t)snprintf(out->p + out->n, 4, "...");
  }
  out->p[out->n] = '\0';
}

static void puts_(Shown *out, const char *s) { put(out, s, strlen(s)); }

static void put_value(lua_State *L, int idx, Shown *out, int depth);

// Appends a table as users write it, such as {8, {4, 2}} or {block = 32}.
static void put_table(lua_State *L, int idx, Shown *out, int depth) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
  const char *key = NULL;  // the alphabetically first string key
  luaL_checkstack(L, 4, "table");
  puts_(out, "{");
  for (lua_Integer i = 1; i <= n && out->n < SHOWN; i++) {
    if (i > 1) puts_(out, ", ");
    lua_rawgeti(L, idx, i);
    put_value(L, lua_gettop(L), out, depth + 1);
    lua_pop(L, 1);
  }
  lua_pushnil(L);
  while (lua_next(L, idx)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) continue;
    const char *k = lua_tostring(L, -1);
    if (!key || strcmp(k, key) < 0) key = k;
  }
  if (key) {
    lua_pushstring(L, key);
    lua_rawget(L, idx);
    puts_(out, n ? ", " : "");
    puts_(out, key);
    puts_(out, " = ");
    put_value(L, lua_gettop(L), out, depth + 1);
    lua_pop(L, 1);
  }
  puts_(out, "}");
}

static int l_text(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  return 1;
}

// Appends the type of an object of cutelua, and its text (__tostring). If
// __tostring raises an error, appends only the type.
static void put_object(lua_State *L, int idx, Shown *out) {
  const char *what = face_typename(L, idx);
  int top = lua_gettop(L);
  bool text = luaL_getmetafield(L, idx, "__tostring") != LUA_TNIL;
  // Another library's userdata has only an address as text, which is not shown.
  if (text && lua_type(L, idx) == LUA_TUSERDATA)
    text = luaL_getmetafield(L, idx, "__name") == LUA_TSTRING &&
           strncmp(lua_tostring(L, -1), "cute.", 5) == 0;
  lua_settop(L, top);
  lua_pushcfunction(L, l_text);
  lua_pushvalue(L, idx);
  if (!text || lua_pcall(L, 1, 1, 0) != LUA_OK) {
    lua_settop(L, top);
    puts_(out, "a ");
    puts_(out, what);
    return;
  }
  size_t n;
  const char *s = lua_tolstring(L, -1, &n);
  if (strncmp(s, what, strlen(what)) != 0 && strcmp(what, "table") != 0 &&
      strcmp(what, "value") != 0 && strcmp(what, "dtype") != 0) {
    puts_(out, what);
    puts_(out, " ");
  }
  put(out, s, n);
  lua_pop(L, 1);
}

static void put_value(lua_State *L, int idx, Shown *out, int depth) {
  size_t n;
  const char *s;
  switch (lua_type(L, idx)) {
  case LUA_TNONE: puts_(out, "no value"); return;
  case LUA_TSTRING:
    s = lua_tolstring(L, idx, &n);
    puts_(out, "\"");
    put(out, s, n);
    if (out->n < SHOWN) puts_(out, "\"");
    return;
  case LUA_TFUNCTION: puts_(out, "a function"); return;
  case LUA_TTHREAD: puts_(out, "a coroutine"); return;
  case LUA_TLIGHTUSERDATA: puts_(out, "a light userdata"); return;
  case LUA_TUSERDATA: put_object(L, idx, out); return;
  case LUA_TTABLE:
    if (luaL_getmetafield(L, idx, "__tostring") != LUA_TNIL) {
      lua_pop(L, 1);
      put_object(L, idx, out);
    } else if (depth > 3) {
      puts_(out, "{...}");
    } else {
      put_table(L, idx, out, depth);
    }
    return;
  default:
    luaL_tolstring(L, idx, NULL);
    puts_(out, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
}

const char *face_show(lua_State *L, int idx) {
  Shown out = {.n = 0};
  luaL_checkstack(L, LUA_MINSTACK, "value");
  put_value(L, lua_absindex(L, idx), &out, 0);
  return lua_pushlstring(L, out.p, out.n);
}
// SPDX-License-Identifier: MIT
