// Records the tables to which the body of a loop or branch writes, with their
// contents before the body, and the coroutines that the body starts. The count
// hook calls these functions at each instruction that writes to a table,
// creates one, or calls a function. Calls matter because some library functions
// write to tables or resume coroutines.
//
// The record is a table that core.note sets. Its fields:
//   [t] = a copy of table t, made before its first write; false: the body
//         created t
//   [i] = table number i that has a copy, in the order of their first writes
//   [coroutine] = true: the body started this coroutine
//   metatables = {[t] = metatable, or false, of t before setmetatable}
#include "bind/trace.h"

#include <lualib.h>

// maximum length of a __newindex chain; Lua allows longer ones
#define MAX_CHAIN 100

// Called before a write to the table on top. Stores a copy of it in the table
// at index `writes`, unless there already is one.
static void note(lua_State *L, int writes) {
  lua_pushvalue(L, -1);
  if (lua_rawget(L, writes) != LUA_TNIL) {
    lua_pop(L, 1);
    return;
  }
  lua_pop(L, 1);
  int t = lua_gettop(L);
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, t); ) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, t + 1);
  }
  lua_pushvalue(L, t);
  lua_insert(L, -2);
  lua_rawset(L, writes);
  lua_pushvalue(L, t);
  lua_rawseti(L, writes, (lua_Integer)lua_rawlen(L, writes) + 1);
}

void table_writes_note(lua_State *L, int writes) {
  note(L, writes);
  lua_pop(L, 1);
}

// Pops a value. If it is a table, records a write to it, and to the tables that
// its __newindex chain reaches.
static void note_target(lua_State *L, int writes) {
  int top = lua_gettop(L) - 1;
  for (int i = 0; i < MAX_CHAIN && lua_istable(L, -1); i++) {
    note(L, writes);
    if (luaL_getmetafield(L, -1, "__newindex") == LUA_TNIL) break;
  }
  lua_settop(L, top);
}

// Pops a value that is about to be resumed. Raises an error if it is a
// coroutine that was started outside of the body. The state of a coroutine
// cannot be copied and restored, so each trace of the body would advance it.
static void note_resume(lua_State *L, lua_Debug *ar, int writes) {
  lua_State *co = lua_tothread(L, -1);
  lua_pushvalue(L, -1);
  if (!co || lua_rawget(L, writes) != LUA_TNIL) {
    lua_pop(L, 2);
    return;
  }
  lua_pop(L, 1);
  if (lua_status(co) == LUA_YIELD) {
    lua_getinfo(L, "Sl", ar);
    face_error_at(L, ar->source, ar->currentline, ERR_LOOPEXIT,
                  "a coroutine that started outside of this traced loop or "
                  "branch continues inside it\n  create the coroutine inside, "
                  "or take its values before the loop or branch");
  }
  lua_pushboolean(L, 1);
  lua_rawset(L, writes);
}

// Called before setmetatable. Records the previous metatable of its first
// argument, unless the body created this table. `reg` is the register of the
// called function.
static void note_metatable(lua_State *L, lua_Debug *ar, int reg, int writes) {
  int top = lua_gettop(L);
  bytecode_register(L, ar, reg + 1);
  lua_pushvalue(L, -1);
  if (lua_istable(L, -1) && lua_rawget(L, writes) != LUA_TBOOLEAN) {
    lua_pushliteral(L, "metatables");
    if (lua_rawget(L, writes) == LUA_TNIL) {
      lua_newtable(L);
      lua_pushliteral(L, "metatables");
      lua_pushvalue(L, -2);
      lua_rawset(L, writes);
    }
    lua_pushvalue(L, top + 1);
    lua_pushvalue(L, top + 1);
    if (lua_rawget(L, -3) == LUA_TNIL) {
      if (!lua_getmetatable(L, top + 1)) lua_pushboolean(L, 0);
      lua_replace(L, -2);
      lua_rawset(L, -3);
    }
  }
  lua_settop(L, top);
}

// Records to which tables the library function in register `reg` is about to
// write, and which coroutine it is about to resume.
static void note_call(lua_State *L, const Writers *w, lua_Debug *ar, int reg,
                      int writes) {
  bytecode_register(L, ar, reg);
  lua_CFunction f = lua_tocfunction(L, -1);
  if (f && f == w->wrapped && lua_getupvalue(L, -1, 1))
    note_resume(L, ar, writes);
  lua_pop(L, 1);
  if (!f) return;
  if (f == w->setmetatable) {
    note_metatable(L, ar, reg, writes);
    return;
  }
  if (f == w->resume) {
    bytecode_register(L, ar, reg + 1);
    note_resume(L, ar, writes);
    return;
  }
  for (int i = 0; i < WRITERS; i++) {
    if (f != w->f[i]) continue;
    bytecode_register(L, ar, reg + 1);
    note_target(L, writes);
    // table.move(from, f, e, t, to) writes `to`, its fifth argument
    bytecode_register(L, ar, reg + 5);
    note_target(L, writes);
    return;
  }
}

bool table_writes_see(lua_State *L, const Writers *w, lua_Debug *ar, VmIns in,
                      int writes) {
  switch (in.op) {
    case VM_NEWTABLE: return true;
    case VM_CALL: case VM_TAILCALL: case VM_TFORCALL:
    // The start of a generic `for`, which calls its iterator.
    case VM_TFORPREP:
      note_call(L, w, ar, in.a, writes);
      return false;
    case VM_SETTABUP:
      lua_getinfo(L, "f", ar);
      if (!lua_getupvalue(L, -1, in.a + 1)) lua_pushnil(L);
      break;
    default: bytecode_register(L, ar, in.a);
  }
  note_target(L, writes);
  return false;
}

void table_writes_born(lua_State *L, lua_Debug *ar, int reg, int writes) {
  bytecode_register(L, ar, reg);
  if (lua_istable(L, -1)) {
    lua_pushboolean(L, 0);
    lua_rawset(L, writes);
  }
}

// Pushes field `name` of a library, or nil.
static void push_member(lua_State *L, const char *lib, const char *name) {
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, lib);
  if (lua_istable(L, -1)) lua_getfield(L, -1, name);
  else lua_pushnil(L);
  lua_replace(L, -3);
  lua_pop(L, 1);
}

static lua_CFunction pop_function(lua_State *L) {
  lua_CFunction f = lua_tocfunction(L, -1);
  lua_pop(L, 1);
  return f;
}

bool table_writes_reads(const Readers *r, lua_CFunction f) {
  for (int i = 0; i < READERS; i++)
    if (r->f[i] == f) return true;
  return false;
}

// Finds library functions whose result depends on whether an argument is nil,
// or on the length of a table.
static void find_readers(lua_State *L, Readers *r) {
  static const struct { const char *lib, *name; } readers[READERS] = {
    {LUA_GNAME, "type"}, {LUA_GNAME, "rawequal"}, {LUA_GNAME, "assert"},
    {LUA_GNAME, "tonumber"}, {LUA_GNAME, "next"}, {LUA_GNAME, "pairs"},
    {LUA_GNAME, "ipairs"}, {LUA_GNAME, "rawlen"}, {LUA_MATHLIBNAME, "type"},
    {LUA_TABLIBNAME, "unpack"}, {LUA_TABLIBNAME, "concat"},
    {LUA_TABLIBNAME, "insert"}, {LUA_TABLIBNAME, "remove"},
    {LUA_TABLIBNAME, "sort"}, {LUA_TABLIBNAME, "pack"},
    {LUA_TABLIBNAME, "move"}, {LUA_GNAME, "tostring"},
    {LUA_STRLIBNAME, "format"}};
  for (int i = 0; i < READERS; i++) {
    push_member(L, readers[i].lib, readers[i].name);
    r->f[i] = pop_function(L);
  }
}

void table_writes_find(lua_State *L, Writers *w, Readers *r) {
  static const struct { const char *lib, *name; } writers[WRITERS] = {
    {LUA_TABLIBNAME, "insert"}, {LUA_TABLIBNAME, "remove"},
    {LUA_TABLIBNAME, "sort"}, {LUA_TABLIBNAME, "move"},
    {LUA_GNAME, "rawset"}};
  for (int i = 0; i < WRITERS; i++) {
    push_member(L, writers[i].lib, writers[i].name);
    w->f[i] = pop_function(L);
  }
  find_readers(L, r);
  push_member(L, LUA_GNAME, "setmetatable");
  w->setmetatable = pop_function(L);
  push_member(L, LUA_COLIBNAME, "resume");
  w->resume = pop_function(L);
  push_member(L, LUA_COLIBNAME, "wrap");
  // Call coroutine.wrap once to learn which C function it returns. This C
  // function is the same for all coroutines, and only its upvalue differs.
  lua_pushvalue(L, -1);
  w->wrapped = lua_pcall(L, 1, 1, 0) == LUA_OK ? lua_tocfunction(L, -1) : NULL;
  lua_pop(L, 1);
}
// SPDX-License-Identifier: MIT
