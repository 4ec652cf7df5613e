// Which tables the body of a loop or branch writes, and what they held before:
// the hook for counts comes here with every instruction that writes a table,
// makes one, or calls what Lua's library writes tables with.
//
// What is noted, and where core.note says, is a table
//   [t] = a copy of t, made before its first write; false: t was made inside
//   [i] = the tables that have a copy, in the order of their first writes
//   [coroutine] = true: it began inside
#include "bind/trace.h"

#define MAX_CHAIN 100  // of __newindex; Lua's own limit is higher

// Notes the table on top in that at index `writes`.
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

// The same for what is on top, if it is a table, and for those that its
// __newindex leads to. Pops it.
static void note_target(lua_State *L, int writes) {
  int top = lua_gettop(L) - 1;
  for (int i = 0; i < MAX_CHAIN && lua_istable(L, -1); i++) {
    note(L, writes);
    if (luaL_getmetafield(L, -1, "__newindex") == LUA_TNIL) break;
  }
  lua_settop(L, top);
}

static void push_register(lua_State *L, lua_Debug *ar, int reg) {
  if (!lua_getlocal(L, ar, reg + 1)) lua_pushnil(L);
}

// What is on top is resumed, if it is a coroutine. Where it is cannot be
// copied: one that goes on in a body would do so from pass to pass. Pops it.
static void note_resume(lua_State *L, lua_Debug *ar, int writes) {
  lua_State *co = lua_tothread(L, -1);
  if (!co || lua_rawget(L, writes) != LUA_TNIL) {
    lua_pop(L, 1);
    return;
  }
  lua_pop(L, 1);
  if (lua_status(co) == LUA_YIELD) {
    lua_getinfo(L, "Sl", ar);
    face_error_at(L, ar->source, ar->currentline, ERR_LOOPEXIT,
                  "a coroutine that began outside of this traced loop or "
                  "branch goes on in it\n  make it inside, or take before "
                  "what it gives");
  }
  lua_pushthread(co);
  lua_xmove(co, L, 1);
  lua_pushboolean(L, 1);
  lua_rawset(L, writes);
}

// A function is about to be called: one that writes a table, or that lets a
// coroutine go on?
static void note_call(lua_State *L, const Writers *w, lua_Debug *ar, int reg,
                      int writes) {
  push_register(L, ar, reg);
  lua_CFunction f = lua_tocfunction(L, -1);
  if (f && f == w->wrapped && lua_getupvalue(L, -1, 1))
    note_resume(L, ar, writes);
  lua_pop(L, 1);
  if (!f) return;
  if (f == w->resume) {
    push_register(L, ar, reg + 1);
    note_resume(L, ar, writes);
    return;
  }
  for (int i = 0; i < WRITERS; i++) {
    if (f != w->f[i]) continue;
    push_register(L, ar, reg + 1);
    note_target(L, writes);
    push_register(L, ar, reg + 5);  // where table.move moves to
    note_target(L, writes);
    return;
  }
}

bool writelib_see(lua_State *L, const Writers *w, lua_Debug *ar, VmIns in,
                  int writes) {
  switch (in.op) {
    case VM_NEWTABLE: return true;
    case VM_CALL: case VM_TAILCALL: case VM_TFORCALL:
    case VM_TFORPREP:  // makes the first call, too
      note_call(L, w, ar, in.a, writes);
      return false;
    case VM_SETTABUP:
      lua_getinfo(L, "f", ar);
      if (!lua_getupvalue(L, -1, in.a + 1)) lua_pushnil(L);
      break;
    default: push_register(L, ar, in.a);
  }
  note_target(L, writes);
  return false;
}

void writelib_born(lua_State *L, lua_Debug *ar, int reg, int writes) {
  push_register(L, ar, reg);
  if (lua_istable(L, -1)) {
    lua_pushboolean(L, 0);
    lua_rawset(L, writes);
  }
}

void writelib_find(lua_State *L, Writers *w) {
  static const char *const names[] = {"insert", "remove", "sort", "move"};
  lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, "table");
  for (int i = 0; i < WRITERS - 1; i++) {
    if (lua_istable(L, -1)) lua_getfield(L, -1, names[i]);
    else lua_pushnil(L);
    w->f[i] = lua_tocfunction(L, -1);
    lua_pop(L, 1);
  }
  lua_pushglobaltable(L);
  lua_getfield(L, -1, "rawset");
  w->f[WRITERS - 1] = lua_tocfunction(L, -1);
  lua_pop(L, 3);
  lua_getfield(L, -1, "coroutine");
  w->resume = w->wrapped = NULL;
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "resume");
    w->resume = lua_tocfunction(L, -1);
    if (lua_getfield(L, -2, "wrap") == LUA_TFUNCTION) {
      lua_pushvalue(L, -2);
      if (lua_pcall(L, 1, 1, 0) == LUA_OK)
        w->wrapped = lua_tocfunction(L, -1);
    }
    lua_pop(L, 2);
  }
  lua_pop(L, 2);
}
