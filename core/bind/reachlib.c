// For lua/cute/lang/region.lua: finds the upvalues that the body of a traced
// loop or branch can reach, and reports which of them changed.
#include "bind/face.h"

#include <string.h>

// Stack indices in l_reach: the argument `view`, and the tables in its fields.
enum { VIEW = 1, SEEN, FIXED, CHUNKS, HELPERS, LOCALS, PENDING, UPVALUES,
       BASE = UPVALUES };
static const char *const tables[] = {
  NULL, NULL, "seen", "fixed", "chunks", "helpers", "locals", "pending",
  "upvalues"};

// Positions of the four entries that each upvalue has in the list `upvalues`
// (see l_reach).
enum { FUNCTION = 1, NUMBER, INITIAL, NAME, ENTRY = NAME };

typedef struct Reach {
  lua_Integer pending, found;  // lengths of the lists `pending` and `upvalues`
  // number of fields searched so far, and its limit
  lua_Integer fields, most;
  lua_Debug frame;             // the function whose locals are in `locals`
} Reach;

// The address of this variable serves as a value that no script variable has.
static const char sentinel = 0;

// Adds the value at idx to the set `seen`. Returns whether it was there before.
static bool was_seen(lua_State *L, int idx) {
  lua_pushvalue(L, idx);
  bool seen = lua_rawget(L, SEEN) != LUA_TNIL;
  lua_pop(L, 1);
  if (seen) return true;
  lua_pushvalue(L, idx);
  lua_pushboolean(L, 1);
  lua_rawset(L, SEEN);
  return false;
}

// Reports whether the search skips the table on top: a table in `fixed`, which
// scripts do not change. The table of globals is never skipped.
static bool is_fixed(lua_State *L) {
  lua_pushvalue(L, -1);
  bool fixed = lua_rawget(L, FIXED) != LUA_TNIL;
  lua_pop(L, 1);
  if (!fixed) return false;
  lua_pushglobaltable(L);
  fixed = !lua_rawequal(L, -1, -2);
  lua_pop(L, 1);
  return fixed;
}

// Pops a function that the body may call, and queues it. If it is a result of
// cute.func, queues the function that was passed to cute.func instead.
static void queue(lua_State *L, Reach *r) {
  lua_pushvalue(L, -1);
  if (lua_rawget(L, HELPERS) == LUA_TNIL) lua_pop(L, 1);
  else lua_remove(L, -2);
  lua_rawseti(L, PENDING, ++r->pending);
}

// Pops a value and queues its functions: the value itself, or the functions in
// a table and in the tables that it contains. The stack has the tables that are
// being searched, each with its number of fields so far and its current key.
static void see(lua_State *L, Reach *r) {
  int base = lua_gettop(L) - 1;
  for (;;) {
    if (lua_type(L, -1) == LUA_TFUNCTION) {
      queue(L, r);
    } else if (!lua_istable(L, -1) || r->fields > r->most || is_fixed(L) ||
               was_seen(L, -1)) {
      lua_pop(L, 1);
    } else {
      luaL_checkstack(L, LUA_MINSTACK, "tables in tables");
      lua_pushinteger(L, 0);
      lua_pushnil(L);
    }
    bool inner = false;
    while (!inner && lua_gettop(L) > base) {
      if (lua_next(L, -3)) {
        lua_pushinteger(L, lua_tointeger(L, -3) + 1);
        lua_replace(L, -4);
        inner = lua_istable(L, -1) || lua_isfunction(L, -1);
        if (!inner) lua_pop(L, 1);
      } else {
        r->fields += lua_tointeger(L, -1);
        lua_pop(L, 1);
        inner = lua_getmetatable(L, -1);
        if (inner) lua_remove(L, -2);
        else lua_pop(L, 1);
      }
    }
    if (!inner) return;
  }
}

// Reports whether upvalue n, called `name`, of the function on top is a local
// in `locals`. To find out, sets the local to the sentinel for a moment, and
// tests whether the upvalue changes, too.
static bool is_local(lua_State *L, Reach *r, int n, const char *name) {
  bool same = false;
  lua_pushstring(L, name);
  while (!same && lua_rawget(L, LOCALS) != LUA_TNIL) {
    int at = (int)lua_tointeger(L, -1);
    lua_getlocal(L, &r->frame, at);
    lua_pushlightuserdata(L, (void *)&sentinel);
    lua_setlocal(L, &r->frame, at);
    lua_getupvalue(L, -3, n);
    same = lua_touserdata(L, -1) == &sentinel;
    lua_pop(L, 1);
    lua_setlocal(L, &r->frame, at);
  }
  lua_pop(L, 1);
  return same;
}

// Appends an upvalue to the list `upvalues`. The upvalue's value is on top of
// the stack, and its function is below the value.
static void add(lua_State *L, Reach *r, int n, const char *name) {
  lua_pushvalue(L, -2);
  lua_rawseti(L, UPVALUES, r->found + FUNCTION);
  lua_pushinteger(L, n);
  lua_rawseti(L, UPVALUES, r->found + NUMBER);
  lua_pushvalue(L, -1);
  lua_rawseti(L, UPVALUES, r->found + INITIAL);
  lua_pushstring(L, name);
  lua_rawseti(L, UPVALUES, r->found + NAME);
  r->found += ENTRY;
}

// Pops a function and lists its upvalues. A function of lua/cute is searched
// only if `chunks` contains its file.
static void see_upvalues(lua_State *L, Reach *r) {
  lua_Debug ar;
  const char *name;
  bool skip = lua_iscfunction(L, -1) || was_seen(L, -1);
  if (!skip) {
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    skip = face_own_source(ar.source) &&
           lua_getfield(L, CHUNKS, ar.source) == LUA_TNIL;
    if (face_own_source(ar.source)) lua_pop(L, 1);
  }
  for (int n = 1; !skip && (name = lua_getupvalue(L, -1, n)); n++) {
    lua_pushlightuserdata(L, lua_upvalueid(L, -2, n));
    bool seen = was_seen(L, -1);
    lua_pop(L, 1);
    if (seen) {
      lua_pop(L, 1);
      continue;
    }
    if (strcmp(name, "_ENV") != 0) {
      lua_pushvalue(L, -2);
      bool local = is_local(L, r, n, name);
      lua_pop(L, 1);
      if (!local) add(L, r, n, name);
    }
    see(L, r);
  }
  lua_pop(L, 1);
}

// reach(view, level): finds the upvalues that can be reached, through functions
// and tables, from the lists view.functions and view.values. Adds four entries
// for each upvalue to view.upvalues: a function, the number of the upvalue, its
// value, its name. The field n is the number of entries. Other fields of view:
//   seen, pending = two empty tables for the search
//   fixed = the set of tables that are not searched
//   most = the number of fields of tables after which no table is searched
//   chunks = the set of files of lua/cute whose functions are searched
//   helpers = {[function of cute.func] = the function inside}
//   locals = locals of the function at `level`, which are no upvalues here:
//     {[name] = number of the last local with this name, [number] = number of
//     the local before it with the same name}
static int l_reach(lua_State *L) {
  Reach r = {0};
  int level = (int)face_optint(L, 2, 0);
  lua_settop(L, VIEW);
  for (int i = SEEN; i <= BASE; i++) lua_getfield(L, VIEW, tables[i]);
  lua_getfield(L, VIEW, "most");
  r.most = lua_tointeger(L, -1);
  lua_pop(L, 1);
  lua_getstack(L, level, &r.frame);
  lua_getfield(L, VIEW, "values");
  for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) see(L, &r);
  lua_pop(L, 2);
  lua_getfield(L, VIEW, "functions");
  for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
    lua_rawseti(L, PENDING, ++r.pending);
  lua_pop(L, 2);
  while (r.pending > 0) {
    lua_rawgeti(L, PENDING, r.pending--);
    see_upvalues(L, &r);
  }
  lua_pushinteger(L, r.found);
  lua_setfield(L, UPVALUES, "n");
  return 0;
}

// changed(upvalues) -> a list of indices in `upvalues` (the list that l_reach
// makes), where the entries of changed upvalues begin. Returns nothing if no
// value changed. Skips an entry whose NUMBER is not a number.
static int l_changed(lua_State *L) {
  lua_settop(L, 1);
  lua_getfield(L, 1, "n");
  lua_Integer n = lua_tointeger(L, -1), found = 0;
  lua_settop(L, 1);
  for (lua_Integer i = 0; i < n; i += ENTRY) {
    if (lua_rawgeti(L, 1, i + NUMBER) == LUA_TNUMBER) {
      lua_rawgeti(L, 1, i + FUNCTION);
      lua_getupvalue(L, -1, (int)lua_tointeger(L, -2));
      lua_rawgeti(L, 1, i + INITIAL);
      if (!lua_rawequal(L, -1, -2) ||
          lua_isinteger(L, -1) != lua_isinteger(L, -2)) {
        if (!found) {
          lua_newtable(L);
          lua_insert(L, 2);
        }
        lua_pushinteger(L, i + FUNCTION);
        lua_rawseti(L, 2, ++found);
      }
    }
    lua_settop(L, found ? 2 : 1);
  }
  return found ? 1 : 0;
}

void reachlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"reach", l_reach}, {"changed", l_changed}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
