// Raises errors with their kind, at the line of the user's script that caused
// them.
#include "bind/face.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns the length of the folder in a chunk's name, such as "@kernels/" for a
// file or "=[kernels." for an embedded file. Returns 0 if there is no folder.
static size_t folder_length(const char *src) {
  if (src[0] != '@' && strncmp(src, "=[", 2) != 0) return 0;
  const char *end = strrchr(src, src[0] == '@' ? '/' : '.');
  return end ? (size_t)(end - src) + 1 : 0;
}

// Reports whether the chunk src belongs to a library, because error messages do
// not name lines of libraries. Kernels that are embedded in the program or
// installed by LuaRocks belong to a library. If `caller` is not NULL, so do the
// files in the folder of the chunk `caller`, and the file FOLDER.lua beside
// this folder.
static bool is_library(const char *src, const char *caller) {
  if (strncmp(src, "=[kernels.", 10) == 0) return true;
  if (src[0] == '@' && strstr(src, "lua/5.4/kernels/")) return true;
  size_t n = caller ? folder_length(caller) : 0;
  if (n == 0 || strncmp(src, caller, n - 1) != 0) return false;
  return src[n - 1] == caller[n - 1] || strcmp(src + n - 1, ".lua") == 0;
}

// Finds the stack frame whose line an error reports: the innermost frame
// outside libraries or, if there is none, the innermost frame of a user
// function.
static bool blamed_frame(lua_State *L, lua_Debug *ar, const char *caller) {
  for (int level = 0; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "Sl", ar);
    if (ar->currentline > 0 && !face_own_source(ar->source) &&
        !is_library(ar->source, caller))
      return true;
  }
  return face_user(L, ar);
}

static void push_where(lua_State *L, const char *caller) {
  lua_Debug ar;
  if (blamed_frame(L, &ar, caller))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else
    lua_pushliteral(L, "");
}

// Escapes characters in the message on top of the stack that a terminal would
// interpret as commands (bind/visible.c).
static void make_visible(lua_State *L) {
  size_t n;
  const char *s = lua_tolstring(L, -1, &n);
  face_push_message(L, s, n);
  lua_remove(L, -2);
}

// Pushes msg with " [kind]" after its first line.
static void push_kinded(lua_State *L, ErrKind kind, const char *msg) {
  const char *nl = strchr(msg, '\n');
  size_t first = nl ? (size_t)(nl - msg) : strlen(msg);
  lua_pushlstring(L, msg, first);
  lua_pushfstring(L, " [%s]%s", err_name(kind), msg + first);
  lua_concat(L, 2);
}

// Raises the error msg. The position, which precedes msg, is on top of the
// stack.
static _Noreturn void raise_kinded(lua_State *L, ErrKind kind,
                                   const char *msg) {
  push_kinded(L, kind, msg);
  lua_concat(L, 2);
  make_visible(L);
  lua_error(L);
  abort();
}

// Reports whether an error of this kind concerns the call of a function, so
// that the message must name the function.
static bool of_a_call(ErrKind kind) {
  switch ((int)kind) {
  case ERR_ARG: case ERR_PARSE: case ERR_INADMISSIBLE: case ERR_OVERFLOW:
  case ERR_LIMIT: case ERR_NAME: case ERR_TYPE: case ERR_SHAPE:
  case ERR_ALIGN: case ERR_REGS: case ERR_ARCH: case ERR_STATIC:
  case ERR_LAUNCH: case ERR_CLOSED: case ERR_NOTRACE: case ERR_INTRACE:
    return true;
  default: return false;
  }
}

// Skips the name of an operation at the start of msg, such as "composition: ".
// The operation may be a step of the function that the user called.
static const char *after_operation(lua_State *L, const char *msg) {
  size_t n = strspn(msg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "_0123456789");
  if (msg[n] != ':' || msg[n + 1] != ' ') return msg;
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.core");
  lua_pushlstring(L, msg, n);
  bool known = lua_rawget(L, -2) == LUA_TFUNCTION;
  lua_pop(L, 2);
  return known ? msg + n + 2 : msg;
}

// Pushes msg. If msg does not contain the name of the public function that the
// user called, the name precedes it.
static void push_named(lua_State *L, ErrKind kind, const char *msg) {
  char name[96];
  if (of_a_call(kind) && face_public(L, name) && face_colon(L)) {
    lua_pushfstring(L, "%s was called with ':', which passes its table as the "
                    "first argument\n  write %s(...)", name, name);
    return;
  }
  if (!of_a_call(kind) || !face_public(L, name) || strstr(msg, name) ||
      strncmp(msg, "kernel ", 7) == 0) {
    lua_pushstring(L, msg);
    return;
  }
  const char *base = name;
  for (const char *at = name; *at; at++)
    if (*at == '.' || *at == ':') base = at + 1;
  size_t n = strlen(base);
  const char *rest = strncmp(msg, base, n) == 0 ? msg + n : "";
  if (strchr(":,(", *rest) ? *rest != '\0' : strncmp(rest, " of ", 4) == 0 ||
      strncmp(rest, " takes ", 7) == 0)
    lua_pushfstring(L, "%s%s", name, msg + n);
  else
    lua_pushfstring(L, "%s: %s", name, after_operation(L, msg));
}

void face_raise(lua_State *L, ErrKind kind, const char *msg,
                const char *caller) {
  push_named(L, kind, msg);
  push_where(L, caller);
  raise_kinded(L, kind, lua_tostring(L, -2));
}

void face_error(lua_State *L, ErrKind kind, const char *fmt, ...) {
  char msg[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(msg, sizeof msg, fmt, ap);
  va_end(ap);
  luaL_checkstack(L, 16, "error message");
  face_raise(L, kind, msg, NULL);
}

void face_error_at(lua_State *L, const char *chunk, int line, ErrKind kind,
                   const char *fmt, ...) {
  char msg[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(msg, sizeof msg, fmt, ap);
  va_end(ap);
  bool named = chunk[0] == '@' || chunk[0] == '=';
  luaL_checkstack(L, 8, "error message");
  lua_pushfstring(L, "%s:%d: ", named ? chunk + 1 : "(chunk)", line);
  raise_kinded(L, kind, msg);
}

int face_fail2(lua_State *L, ErrKind kind, const char *fmt, ...) {
  char msg[4096];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(msg, sizeof msg, fmt, ap);
  va_end(ap);
  lua_pushnil(L);
  push_kinded(L, kind, msg);
  make_visible(L);
  return 2;
}
// SPDX-License-Identifier: MIT
