// Public functions: reads their signatures, and finds the one that the user
// called (public.c).
#ifndef CUTE_PUBLIC_H
#define CUTE_PUBLIC_H

#include "bind/face.h"

// Key in the registry of a table {[Lua function] = signature}.
#define PUBLIC_NAMES "cute.names"

typedef struct Param {
  const char *name, *type;  // `type` is NULL if every type is allowed
  size_t name_len, type_len;
  bool optional, rest;
} Param;

// Reads the parameter at *s, and moves *s to the next one. Returns false if
// there is no parameter.
bool public_param(const char **s, Param *p);
// Returns the number of parameters of a signature, or INT_MAX - 1 if the
// signature is variadic.
int public_count(const char *sig);
// Reports whether `sig` is the signature of a method, such as "tensor:fill(x)".
bool public_has_colon(const char *sig);

// Description of a public C function, which is upvalue 2 of its closure.
typedef struct Entry {
  const char *prefix;        // "cute."
  const char *sig;           // "size(x, modes...)"
  // the function to call first, which checks the arguments
  int (*enter)(lua_State *L, const struct Entry *e);
  // the C function; NULL: the function is one of the n alternatives `rows`
  lua_CFunction f;
  const struct FnRow *rows;  // n alternatives
  int n;
  // maximum number of arguments, including a method's receiver
  int most;
  int method;                // 1 for a method, which has a receiver; else 0
} Entry;

// Pushes the function of an entry, with the context as upvalue 1.
void public_push(lua_State *L, void *cx, const Entry *e);

// A public function that is being called.
typedef struct Public {
  lua_Debug ar;
  int level;
  const char *prefix, *sig;
  char name[96];
  // whether the signature is that of a method, which does not list the receiver
  bool own;
  bool method;      // whether it is called as x:f(...), so that argument 1 is x
  bool colon;       // whether it is called as cute:f(...), which is a mistake
} Public;

// Pops a function and finds its prefix and signature. Returns false if it is
// not public.
bool public_pop(lua_State *L, const char **prefix, const char **sig);
// Finds the public function that the innermost user function called. Ignores
// further public functions that the found function calls.
bool public_find(lua_State *L, Public *p);
// Writes how to call the function, such as "cute.size(x, modes...)".
void public_usage(const Public *p, char *out, size_t size);
// Returns the number of the argument of public function p that equals the value
// at idx, or 0.
int public_argument(lua_State *L, const Public *p, int idx);

// ---- arglib.c: storing functions in the table on top ----

typedef struct Setting {
  void *cx;
  const char *prefix;
  // next free element of an array of Entry, which the registry keeps alive
  Entry *next;
} Setting;

Setting arglib_setting(lua_State *L, size_t n);
void arglib_set(lua_State *L, Setting *s, Entry e);
// Raises an error if e's public C function, which is being called, received too
// many arguments.
void arglib_check_count(lua_State *L, const Entry *e);

#endif
// SPDX-License-Identifier: MIT
