// Public functions: reads their signatures, and finds the one that the user
// called. A public function has a signature, such as "size(layout, modes...)".
// Optional parameters end in `?`. A parameter that ends in `...` takes all
// remaining arguments. The signature of a C function is the name in its
// luaL_Reg row. The signature of a function of lua/cute
// (lua/cute/lang/signature.lua) also has types, as in "wait(state: table, n?:
// integer|value)". There, "{limit unroll}" is a table of options with these
// keys, and "dtype|string" is an element type or its name.
// Registry["cute.names"] maps each Lua function to its signature, with the name
// as users write it: "gpu.open(...)". A C function stores its own signature,
// and the prefix "cute." or "tensor:". A row without parentheses has no public
// name: it is a primitive for lua/cute.
#include "bind/public.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

// ---- signatures ----

// Reads the parameter at *s, and moves *s to the next one. Returns false if
// there is no parameter.
bool public_param(const char **s, Param *p) {
  const char *at = *s + strspn(*s, " ,(");
  if (*at == ')' || !*at) return false;
  size_t n = strcspn(at, ",)"), name = strcspn(at, "?:.,) ");
  const char *colon = memchr(at, ':', n);
  memset(p, 0, sizeof *p);
  p->name = at;
  p->name_len = name;
  p->optional = at[name] == '?';
  p->rest = n - name >= 3 && memcmp(at + name, "...", 3) == 0;
  if (colon) {
    p->type = colon + 1 + strspn(colon + 1, " ");
    p->type_len = (size_t)(at + n - p->type);
  }
  *s = at + n;
  return true;
}

int public_count(const char *sig) {
  const char *s = strchr(sig, '(');
  Param p;
  int n = 0;
  while (public_param(&s, &p)) {
    if (p.rest) return INT_MAX - 1;
    n++;
  }
  return n;
}

bool public_has_colon(const char *sig) {
  return memchr(sig, ':', strcspn(sig, "(")) != NULL;
}

// ---- the called function ----

// The entry point of each public C function. Upvalue 2 is its Entry.
static int enter(lua_State *L) {
  const Entry *e = lua_touserdata(L, lua_upvalueindex(2));
  return e->enter(L, e);
}

void public_push(lua_State *L, void *cx, const Entry *e) {
  lua_pushlightuserdata(L, cx);
  lua_pushlightuserdata(L, (void *)e);
  lua_pushcclosure(L, enter, 2);
}

// Pops a function and finds its prefix and signature. Returns false if it is
// not public.
bool public_pop(lua_State *L, const char **prefix,
                          const char **sig) {
  if (lua_tocfunction(L, -1) == enter) {
    lua_getupvalue(L, -1, 2);
    const Entry *e = lua_touserdata(L, -1);
    lua_pop(L, 2);
    *prefix = e->prefix;
    *sig = e->sig;
    return strchr(e->sig, '(') != NULL;
  }
  lua_getfield(L, LUA_REGISTRYINDEX, PUBLIC_NAMES);
  lua_insert(L, -2);
  lua_rawget(L, -2);
  *prefix = "";
  // the table in the registry keeps the string alive
  *sig = lua_tostring(L, -1);
  lua_pop(L, 2);
  return *sig != NULL;
}

// Reports whether the value on top is a table whose field `name` is the
// function that p describes.
static bool holds_it(lua_State *L, Public *p, const char *name) {
  if (!lua_istable(L, -1)) return false;
  lua_pushstring(L, name);
  lua_rawget(L, -2);
  lua_getinfo(L, "f", &p->ar);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same;
}

// Finds the public function that the innermost user function called. Ignores
// further public functions that the found function calls.
bool public_find(lua_State *L, Public *p) {
  lua_Debug ar;
  const char *prefix, *sig;
  p->sig = NULL;
  p->colon = false;
  for (int level = 0; lua_getstack(L, level, &ar); level++) {
    lua_getinfo(L, "Slnf", &ar);
    if (public_pop(L, &prefix, &sig)) {
      p->prefix = prefix;
      p->sig = sig;
      p->ar = ar;
      p->level = level;
    }
    if (ar.currentline > 0 && !face_own_source(ar.source)) break;
  }
  if (!p->sig) return false;
  const char *what = p->ar.namewhat;
  p->own = p->method = strchr(p->prefix, ':') || public_has_colon(p->sig);
  snprintf(p->name, sizeof p->name, "%s%.*s", p->prefix,
           (int)strcspn(p->sig, "("), p->sig);
  if (p->method || !what || strcmp(what, "method") != 0) return true;
  p->method = true;  // for example, cute.size was called as layout:size
  if (lua_getlocal(L, &p->ar, *p->ar.what == 'C' ? 1 : -1)) {
    char base[sizeof p->name];
    const char *dot = strrchr(p->name, '.');
    snprintf(base, sizeof base, "%s", dot ? dot + 1 : p->name);
    p->colon = holds_it(L, p, base);
    p->method = !p->colon;
    if (p->method)
      snprintf(p->name, sizeof p->name, "%.40s:%.50s", face_typename(L, -1),
               base);
    lua_pop(L, 1);
  }
  return true;
}

// Writes how to call the function, such as "cute.size(x, modes...)".
void public_usage(const Public *p, char *out, size_t size) {
  const char *s = strchr(p->sig, '(');
  Param q;
  if (p->method && !p->own) public_param(&s, &q);  // omits self
  size_t at = (size_t)snprintf(out, size, "%s(", p->name);
  for (int n = 0; public_param(&s, &q) && at + q.name_len + 8 < size; n++)
    at += (size_t)snprintf(out + at, size - at, "%s%.*s%s%s", n ? ", " : "",
                           (int)q.name_len, q.name, q.optional ? "?" : "",
                           q.rest ? "..." : "");
  snprintf(out + at, size - at, ")");
}

// Returns the number of the argument of public function p that equals the value
// at idx, or 0.
int public_argument(lua_State *L, const Public *p, int idx) {
  int step = *p->ar.what == 'C' ? 1 : -1, most = public_count(p->sig);
  bool none = lua_isnoneornil(L, idx);
  if (none) lua_pushnil(L);
  else lua_pushvalue(L, idx);
  for (int n = 1; n <= most + 1; n++) {
    bool has = lua_getlocal(L, &p->ar, step * n) != NULL;
    bool same = has ? lua_rawequal(L, -1, -2) : none && n <= most;
    if (has) lua_pop(L, 1);
    if (same) return lua_pop(L, 1), n;
    if (!has) break;
  }
  lua_pop(L, 1);
  return 0;
}

bool face_colon(lua_State *L) {
  Public p;
  return public_find(L, &p) && p.colon;
}

const char *face_public(lua_State *L, char name[96]) {
  Public p;
  if (!public_find(L, &p)) return NULL;
  snprintf(name, 96, "%s", p.name);
  return name;
}
// SPDX-License-Identifier: MIT
