// The line hook of a trace: names values by the locals that hold them, and
// finds `==` and `~=` on traced values, which Lua does not let through. It
// runs at every line of the user's code, so what it knows of the running
// function is kept from line to line.
#include <stdio.h>
#include <string.h>

#include "irfold.h"
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

// Pushes local or upvalue `name` of the running function; false if none.
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
  return false;
}

// The list of names on top: those beside == or ~= of the line about to run.
static void check_names(lua_State *L, lua_Debug *ar) {
  int list = lua_gettop(L);
  lua_Integer n = (lua_Integer)lua_rawlen(L, list);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, list, i);
    const char *name = lua_tostring(L, -1);
    if (push_variable(L, ar, name)) {
      if (trace_value(L, -1))
        face_error(L, ERR_DYNAMIC, "'==' or '~=' beside the traced value '%s' "
                   "is always false or true in Lua\n  write %s:eq(x) or "
                   "%s:ne(x), and cute.when(...) to branch on it",
                   name, name, name);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
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

// Names what the line that ran last assigned; its entry is on top.
static void name_assigned(lua_State *L, Hook *h, lua_Debug *ar) {
  lua_getfield(L, -1, "set");
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
}

// A line of func, or its end, is reached; hook userdata at `at`.
static void look(lua_State *L, Hook *h, int at, lua_Debug *ar) {
  if (ar->event == LUA_HOOKRET) h->named = 0;  // tables may have grown
  name_locals(L, h, ar);
  lua_getiuservalue(L, at, 1);
  int lines = lua_gettop(L);
  if (lua_rawgeti(L, lines, h->line) == LUA_TTABLE) name_assigned(L, h, ar);
  if (ar->event != LUA_HOOKLINE) return;
  lua_getinfo(L, "l", ar);
  h->line = ar->currentline;
  if (lua_rawgeti(L, lines, h->line) == LUA_TTABLE) check_names(L, ar);
}

static void hooklib_line(lua_State *L, lua_Debug *ar) {
  int top = lua_gettop(L);
  luaL_checkstack(L, 16, "line hook");
  lua_getinfo(L, "f", ar);
  if (!lua_iscfunction(L, -1)) {
    const void *func = lua_topointer(L, -1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &hook_key);
    Hook *h = lua_touserdata(L, -1);
    if (h->cx->fn && func != h->skip) {
      if (func != h->func) enter_function(L, h, top + 2, ar, func);
      if (func == h->func) look(L, h, top + 2, ar);
    }
  }
  lua_settop(L, top);
}

void hooklib_on(lua_State *L, bool on) {
  lua_sethook(L, on ? hooklib_line : NULL,
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
