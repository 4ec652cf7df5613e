// Lua functions as left sides of composed layouts: functions from a coordinate
// to an offset. A userdata owns the LayoutFn and the Lua function. Each object
// with such a layout keeps this userdata alive.
#include "bind/row.h"

#include <stdio.h>
#include <string.h>

#include "bind/laylib.h"

// key in the registry of a weak table {[LayoutFn] = its userdata}
static const char layoutfn_key = 0;

typedef struct Left {
  LayoutFn fn;
  char name[64];
} Left;

// ---- ownership ----

int layoutfn_count(Layout l) {
  int n = 0;
  for (const Outer *f = l.outer; f; f = f->l.outer) n += f->kind == OUTER_FN;
  return n;
}

void layoutfn_hold(lua_State *L, Layout l, int first) {
  for (const Outer *f = l.outer; f; f = f->l.outer) {
    if (f->kind != OUTER_FN) continue;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &layoutfn_key);
    lua_rawgetp(L, -1, f->fn);
    lua_setiuservalue(L, -3, first++);
    lua_pop(L, 1);
  }
}

void layoutfn_push(lua_State *L, const LayoutFn *fn) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &layoutfn_key);
  lua_rawgetp(L, -1, fn);
  lua_getiuservalue(L, -1, 1);
  lua_replace(L, -3);
  lua_pop(L, 1);
}

// ---- calls ----

// Pushes the arguments of the Lua function for coordinate x: the integer x, or
// each mode of the tuple x. Returns the number of arguments.
static int push_modes(lua_State *L, Tup x) {
  int n = tup_rank(x);
  luaL_checkstack(L, n + LUA_MINSTACK, "coordinates");
  Tup m = tup_first(x);
  for (int i = 0; i < n; i++, m = tup_next(m)) laylib_push_any(L, m);
  return n;
}

static _Noreturn void bad_result(lua_State *L, Ctx *cx, const LayoutFn *f,
                                 Tup x) {
  face_error(L, ERR_ARG, "the function %s returned %s for %s: it must return "
             "an offset (an integer) or coordinates", f->name,
             face_show(L, -1), tup_text(cx, x));
}

// Calls the Lua function. It may empty cx->scratch. Therefore the caller's
// arena is set aside during the call, and restored afterwards.
static Tup call(Ctx *cx, const LayoutFn *f, Tup x) {
  lua_State *L = cx->ud;
  int top = lua_gettop(L);
  luaL_checkstack(L, LUA_MINSTACK, "a layout's function");
  layoutfn_push(L, f);
  int n = push_modes(L, x);
  Arena own = cx->scratch;
  memset(&cx->scratch, 0, sizeof cx->scratch);
  int status = lua_pcall(L, n, 1, 0);
  arena_free(&cx->scratch);
  cx->scratch = own;
  cx->ud = L;
  if (status != LUA_OK) lua_error(L);
  Dim d;
  int at = lua_gettop(L);
  bool table = lua_istable(L, at);
  bool odd = lua_type(L, at) == LUA_TNUMBER && !lua_isinteger(L, at);
  if (!table && (odd || !face_test_dim(cx, L, at, &d)))
    bad_result(L, cx, f, x);
  Tup r = table ? face_check_tup(cx, L, at) : tup_leaf(cx, d);
  lua_settop(L, top);
  return r;
}

// ---- construction ----

// Reads the option `vector`: for how many adjacent coordinates the function
// returns adjacent offsets. The option has a number for each mode, as in
// {1, 8}. If the function takes an integer, the option is an integer.
static void read_vector(lua_State *L, int opts, LayoutFn *fn) {
  face_check_options(L, opts, "vector");
  int type = lua_getfield(L, opts, "vector");
  if (type == LUA_TNUMBER) {
    fn->run = face_checkint(L, -1);
  } else if (type == LUA_TTABLE) {
    lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer i = 1; i <= n; i++) {
      lua_rawgeti(L, -1, i);
      int64_t run = face_checkint(L, -1);
      lua_pop(L, 1);
      if (run == 1) continue;
      if (fn->mode >= 0)
        face_error(L, ERR_ARG, "make_composed_layout: two numbers of the "
                   "option 'vector' are above 1, but elements are contiguous "
                   "along one mode only");
      fn->mode = (int)i - 1;
      fn->run = run;
    }
  } else if (type != LUA_TNIL) {
    face_error(L, ERR_ARG, "make_composed_layout: vector must be an integer, "
               "or one for each mode, not %s", face_show(L, -1));
  }
  if (fn->run < 1 || (fn->run & (fn->run - 1)))
    face_error(L, ERR_ARG, "make_composed_layout: a vector of %lld elements: "
               "a power of two is needed", (long long)fn->run);
  lua_pop(L, 1);
}

const LayoutFn *layoutfn_make(lua_State *L, int f, int opts) {
  Left *v = lua_newuserdatauv(L, sizeof *v, 1);
  memset(v, 0, sizeof *v);
  v->fn = (LayoutFn){.call = call, .id = lua_topointer(L, f),
                     .name = v->name, .mode = -1, .run = 1};
  lua_pushvalue(L, f);
  lua_setiuservalue(L, -2, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &layoutfn_key);
  lua_pushvalue(L, -2);
  lua_rawsetp(L, -2, v);
  lua_pop(L, 1);
  lua_Debug ar;
  lua_pushvalue(L, f);
  lua_getinfo(L, ">S", &ar);
  const char *file = strrchr(ar.short_src, '/');
  snprintf(v->name, sizeof v->name, "f<%.40s:%d>",
           file ? file + 1 : ar.short_src, ar.linedefined);
  if (!lua_isnoneornil(L, opts)) {
    face_checktype(L, opts, LUA_TTABLE);
    read_vector(L, opts, &v->fn);
  }
  return &v->fn;
}

void layoutfn_open(lua_State *L) {
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &layoutfn_key);
}
// SPDX-License-Identifier: MIT
