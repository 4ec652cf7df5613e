// The hook of a trace for lines and returns: names values by the locals that
// hold them, and finds `==`, `~=` and `t[k]` with traced values, which Lua
// does not let through. It runs at every line of the user's code, so what it
// knows of the running function is kept from line to line.
#include <stdio.h>
#include <string.h>

#include "irfold.h"
#include "stop.h"
#include "trace.h"

// What is known of the user's function whose line ran last: a userdata in the
// registry, with what cute.lex tells of its source as uservalue 1.
typedef struct Hook {
  Ctx *cx;
  const void *func;
  const void *skip;  // a function of cutelua's own: left alone
  int named;         // locals seen before the current line
  int line;          // the line that ran last
} Hook;

#define MAX_FIELDS 64  // of a table, looked at for names

static const char hook_key = 0;  // its address keys the registry

// Names the variable of a cute.var (a table with it at 1) on top.
static void name_var(lua_State *L, Ctx *cx, const char *name) {
  lua_rawgeti(L, -1, 1);
  Value *v = trace_value(L, -1);
  lua_pop(L, 1);
  Fn *fn = cx->fn;
  if (!v || v->serial != fn->serial || v->r >= fn->ins.n) return;
  const Ins *i = ir_get(fn, v->r);
  if (i->birth == v->birth && i->op == OP_VAR) ir_name(cx, fn, v->r, name);
}

// Names a traced value or a tensor's registers / shared memory by the local
// that holds it.
static void name_local(lua_State *L, Ctx *cx, const char *name) {
  Fn *fn = cx->fn;
  Value *v = trace_value(L, -1);
  if (v) {
    if (v->serial == fn->serial && v->r < fn->ins.n &&
        ir_get(fn, v->r)->birth == v->birth)
      ir_name(cx, fn, v->r, name);
    return;
  }
  const Tensor *t = face_live_tensor(L, -1);
  if (t && t->mem) ir_name(cx, fn, t->mem, name);
}

// Names the tensors in the fields of the plain table on top: A.smem becomes
// A_smem.
static void name_fields(lua_State *L, Ctx *cx, const char *name) {
  char full[80];
  int fields = 0;
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    if (++fields > MAX_FIELDS) {
      lua_pop(L, 2);
      return;
    }
    if (!lua_isuserdata(L, -1) || lua_type(L, -2) != LUA_TSTRING) continue;
    const Tensor *t = face_live_tensor(L, -1);
    if (!t || !t->mem) continue;
    snprintf(full, sizeof full, "%s_%s", name, lua_tostring(L, -2));
    ir_name(cx, cx->fn, t->mem, full);
  }
}

static void name_table(lua_State *L, Ctx *cx, const char *name) {
  if (luaL_getmetafield(L, -1, "__index") == LUA_TNIL) {
    name_fields(L, cx, name);
    return;
  }
  lua_pop(L, 1);
  name_var(L, cx, name);
}

// Pushes the variable `name` of the running function, without asking any
// metamethod; false if there is none.
static bool push_variable(lua_State *L, lua_Debug *ar, const char *name) {
  const char *s;
  int found = 0;
  for (int n = 1; (s = lua_getlocal(L, ar, n)); n++) {
    if (strcmp(s, name) == 0) found = n;  // the innermost of that name
    lua_pop(L, 1);
  }
  if (found) return lua_getlocal(L, ar, found) != NULL;
  lua_getinfo(L, "f", ar);
  for (int n = 1; (s = lua_getupvalue(L, -1, n)); n++) {
    if (strcmp(s, name) == 0) {
      lua_remove(L, -2);
      return true;
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  lua_pushglobaltable(L);
  lua_pushstring(L, name);
  lua_rawget(L, -2);
  lua_remove(L, -2);
  if (!lua_isnil(L, -1)) return true;
  lua_pop(L, 1);
  return false;
}

// Replaces the table on top by its field `key` (n characters; digits: an
// index); false, and nothing on top, when it is no table.
static bool push_field(lua_State *L, const char *key, size_t n) {
  if (!lua_istable(L, -1)) {
    lua_pop(L, 1);
    return false;
  }
  lua_pushlstring(L, key, n);
  if (key[0] >= '0' && key[0] <= '9') {
    lua_pushinteger(L, lua_tointeger(L, -1));
    lua_remove(L, -2);
  }
  lua_rawget(L, -2);
  lua_remove(L, -2);
  return true;
}

// Pushes what a path of cute.lex ("a.b.1") leads to.
static bool push_path(lua_State *L, lua_Debug *ar, const char *path) {
  const char *dot = strchr(path, '.');
  if (!dot) return push_variable(L, ar, path);
  lua_pushlstring(L, path, (size_t)(dot - path));
  bool found = push_variable(L, ar, lua_tostring(L, -1));
  lua_remove(L, found ? -2 : -1);
  while (found && dot) {
    const char *key = dot + 1;
    dot = strchr(key, '.');
    found = push_field(L, key, dot ? (size_t)(dot - key) : strlen(key));
  }
  return found;
}

// Does path number i of the list at `list` hold a traced value?
static bool holds_value(lua_State *L, lua_Debug *ar, int list, lua_Integer i,
                        const char **path) {
  lua_rawgeti(L, list, i);
  *path = lua_tostring(L, -1);  // kept alive by the list
  lua_pop(L, 1);
  if (!push_path(L, ar, *path)) return false;
  bool traced = trace_value(L, -1) != NULL;
  lua_pop(L, 1);
  return traced;
}

// The list at `list`: paths beside == or ~= of that line.
static void check_compared(lua_State *L, lua_Debug *ar, int list, int line) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, list);
  const char *path;
  for (lua_Integer i = 1; i <= n; i++)
    if (holds_value(L, ar, list, i, &path)) {
      lua_getinfo(L, "S", ar);
      face_error_at(L, ar->source, line, ERR_DYNAMIC, "'==' or '~=' beside "
                    "the traced value '%s' is always false or true in Lua\n"
                    "  write %s:eq(x) or %s:ne(x), and cute.when(...) to "
                    "branch on it", path, path, path);
    }
}

// The list at `list`: pairs, what is indexed and by what.
static void check_keys(lua_State *L, lua_Debug *ar, int list, int line) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, list);
  const char *base, *key;
  for (lua_Integer i = 1; i < n; i += 2) {
    if (!holds_value(L, ar, list, i + 1, &key)) continue;
    lua_rawgeti(L, list, i);
    base = lua_tostring(L, -1);
    if (push_path(L, ar, base)) {
      if (lua_istable(L, -1) && !lua_getmetatable(L, -1)) {
        lua_getinfo(L, "S", ar);
        face_error_at(L, ar->source, line, ERR_DYNAMIC, "the traced value "
                      "'%s' is a key of the plain table '%s', which finds "
                      "nothing under it\n  use a tensor, or cute.where("
                      "%s:eq(i), x, y)", key, base, key);
      }
    }
    lua_settop(L, list);
  }
}

// The line about to run has the entry at `entry`.
static void check_line(lua_State *L, Hook *h, lua_Debug *ar, int entry) {
  check_compared(L, ar, entry, h->line);
  lua_getfield(L, entry, "keys");
  check_keys(L, ar, lua_gettop(L), h->line);
}

static const char *local_at(lua_State *L, lua_Debug *ar, int n) {
  const char *name = n > 0 ? lua_getlocal(L, ar, n) : NULL;
  if (!name) return NULL;
  if (strcmp(name, "(temporary)") != 0 && strcmp(name, "(C temporary)") != 0)
    return name;
  lua_pop(L, 1);
  return NULL;
}

// Names what the locals hold that came since the last line.
static void name_locals(lua_State *L, Hook *h, lua_Debug *ar) {
  const char *name;
  while (h->named > 0 && !local_at(L, ar, h->named)) h->named--;
  if (h->named > 0) lua_pop(L, 1);
  for (int n = h->named + 1; (name = local_at(L, ar, n)); n++) {
    if (name[0] != '(' && lua_isuserdata(L, -1)) name_local(L, h->cx, name);
    if (name[0] != '(' && lua_istable(L, -1)) name_table(L, h->cx, name);
    h->named = n;
    lua_pop(L, 1);
  }
}

// Pushes state.lines[source]; a source is lexed when first met.
static void push_lines(lua_State *L, const char *source) {
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "lines");
  if (lua_getfield(L, -1, source) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_getfield(L, -2, "lex");
    lua_pushstring(L, source);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, source);
  }
}

// Another function runs than at the last line; hook userdata at `at`.
static void enter_function(lua_State *L, Hook *h, int at, lua_Debug *ar,
                           const void *func) {
  lua_getinfo(L, "S", ar);
  if (face_own_source(ar->source)) {
    h->skip = func;
    return;
  }
  h->func = func;
  h->named = 0;
  h->line = 0;
  push_lines(L, ar->source);
  lua_setiuservalue(L, at, 1);
}

// The line that ran last has the entry at `entry`: names what it assigned,
// and looks at what it compared after that.
static void leave_line(lua_State *L, Hook *h, lua_Debug *ar, int entry) {
  lua_getfield(L, entry, "set");
  int list = lua_gettop(L);
  lua_Integer n = (lua_Integer)lua_rawlen(L, list);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, list, i);
    const char *name = lua_tostring(L, -1);
    if (push_variable(L, ar, name)) {
      if (lua_isuserdata(L, -1)) name_local(L, h->cx, name);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  lua_getfield(L, entry, "late");
  check_compared(L, ar, lua_gettop(L), h->line);
  lua_getfield(L, entry, "late_keys");
  check_keys(L, ar, lua_gettop(L), h->line);
}

// A line of func, or its end, is reached; hook userdata at `at`.
static void look(lua_State *L, Hook *h, int at, lua_Debug *ar) {
  if (ar->event == LUA_HOOKRET) h->named = 0;  // tables may have grown
  name_locals(L, h, ar);
  lua_getiuservalue(L, at, 1);
  int lines = lua_gettop(L);
  if (lua_rawgeti(L, lines, h->line) == LUA_TTABLE)
    leave_line(L, h, ar, lua_gettop(L));
  if (ar->event != LUA_HOOKLINE) return;
  lua_getinfo(L, "l", ar);
  h->line = ar->currentline;
  if (lua_rawgeti(L, lines, h->line) == LUA_TTABLE)
    check_line(L, h, ar, lua_gettop(L));
}

// A function returns to a line of the user's that compares what it computes
// by == or ~=: a traced value that comes back must be used by something, or
// Lua compared it.
static void see_result(lua_State *L, Ctx *cx, lua_Debug *ar) {
  lua_Debug up;
  lua_getinfo(L, "r", ar);
  if (ar->ntransfer == 0 || !lua_getlocal(L, ar, ar->ftransfer)) return;
  Value *v = trace_value(L, -1);
  if (!v || !lua_getstack(L, 1, &up)) return;
  lua_getinfo(L, "n", ar);
  if (strcmp(ar->namewhat, "for iterator") == 0) return;  // a counter may idle
  bool index = ar->name && strcmp(ar->namewhat, "metamethod") == 0 &&
               strcmp(ar->name, "index") == 0;
  lua_getinfo(L, "Sl", &up);
  if (up.currentline <= 0 || face_own_source(up.source)) return;
  int value = lua_gettop(L);
  push_lines(L, up.source);
  if (lua_rawgeti(L, -1, up.currentline) != LUA_TTABLE) return;
  lua_getfield(L, -1, "eq");
  const char *how = lua_tostring(L, -1);
  if (!how || (strcmp(how, "index") == 0 && !index)) return;
  ir_at(cx, cx->fn, up.source, (uint32_t)up.currentline);
  v->at = cx->fn->at;
  v->consumed = false;
  lua_pushvalue(L, value);
  trace_watch(L);
}

static void hooklib_line(lua_State *L, lua_Debug *ar) {
  int top = lua_gettop(L);
  luaL_checkstack(L, 24, "line hook");
  lua_getinfo(L, "f", ar);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
  Hook *h = lua_touserdata(L, -1);
  if (h->cx->fn && !lua_iscfunction(L, -2)) {
    const void *func = lua_topointer(L, -2);
    if (func != h->skip) {
      if (func != h->func) enter_function(L, h, top + 2, ar, func);
      if (func == h->func) look(L, h, top + 2, ar);
    }
  }
  if (h->cx->fn && ar->event == LUA_HOOKRET) see_result(L, h->cx, ar);
  lua_settop(L, top);
}

void hooklib_on(lua_State *L, bool on) {
  stop_sethook(L, on ? hooklib_line : NULL,
               on ? LUA_MASKLINE | LUA_MASKRET : 0, 0);
}

void hooklib_start(lua_State *L) {
  Hook *h = lua_newuserdatauv(L, sizeof *h, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  *h = (Hook){.cx = lua_touserdata(L, -1)};
  lua_pop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &hook_key);
  hooklib_on(L, true);
}
