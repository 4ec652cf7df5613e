// Public functions: signatures, and the one that the user called (public.c).
#ifndef CUTE_PUBLIC_H
#define CUTE_PUBLIC_H

#include "bind/face.h"

#define PUBLIC_NAMES "cute.names"  // registry: signatures by Lua function

typedef struct Param {
  const char *name, *type;  // type: NULL: any
  size_t name_len, type_len;
  bool optional, rest;
} Param;

// Reads the parameter at *s, and advances *s. Returns false if there is none.
bool public_param(const char **s, Param *p);
// Returns the number of parameters; INT_MAX - 1: variadic.
int public_count(const char *sig);
// Reports whether `sig` is that of a method, "tensor:fill(x)".
bool public_has_colon(const char *sig);

// Description of a public function of C. It is upvalue 2 of the closure.
typedef struct Entry {
  const char *prefix;        // "cute."
  const char *sig;           // "size(x, modes...)"
  int (*enter)(lua_State *L, const struct Entry *e);  // checks and calls
  lua_CFunction f;           // NULL: use the rows
  const struct FnRow *rows;  // n alternatives
  int n;
  int most;                  // maximum number of arguments, including the
                             // receiver
  int method;                // 1 if it has a receiver
} Entry;

// Pushes the function of an entry, with the context as upvalue 1.
void public_push(lua_State *L, void *cx, const Entry *e);

// An active public function.
typedef struct Public {
  lua_Debug ar;
  int level;
  const char *prefix, *sig;
  char name[96];
  bool own;         // a method by its signature, which omits the receiver
  bool method;      // called as x:f(...)
  bool colon;       // called as cute:f(...)
} Public;

// Pops a function and finds its signature. Returns false if it has none.
bool public_pop(lua_State *L, const char **prefix, const char **sig);
// Finds the public function that the innermost code of a user called: the
// outermost one above that code.
bool public_find(lua_State *L, Public *p);
// Writes how the function is to be called.
void public_usage(const Public *p, char *out, size_t size);
// Returns the position of the value at idx among the arguments of p, or 0 if it
// is none of them.
int public_argument(lua_State *L, const Public *p, int idx);

// ---- arglib.c: setting functions into the table on top ----

typedef struct Setting {
  void *cx;
  const char *prefix;
  Entry *next;  // next free entry; the registry keeps the entries alive
} Setting;

Setting arglib_setting(lua_State *L, size_t n);
void arglib_set(lua_State *L, Setting *s, Entry e);
// Raises an error at a public function of C that was given too many arguments.
void arglib_check_count(lua_State *L, const Entry *e);

#endif
// SPDX-License-Identifier: MIT
