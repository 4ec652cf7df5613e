// Declarations that the files of the `cutelua` program share: embedded Lua
// files, and C functions that only the program has.
#ifndef CUTE_PROGRAM_H
#define CUTE_PROGRAM_H

#include <stddef.h>

#include "bind/face.h"

// An embedded document, or Lua file of lua/ or kernels/. tools/embed.lua writes
// it as C.
typedef struct Embedded {
  const char *name;  // "cute.report" for a module, "docs/ops.md" for a document
  const char *chunk;  // chunk name: "=[cute.report]"
  const char *packed;  // text compressed by gzip
  // number of bytes of the packed text and of the unpacked text
  size_t packed_size, size;
  const char *code;  // the module's bytecode, compressed by gzip, or NULL
  size_t code_packed_size, code_size;
} Embedded;

// an array of all embedded files, sorted by name
extern const Embedded embedded_files[];
extern const size_t embedded_count;

bool embedded_is_document(const Embedded *e);
// Finds the embedded module of this name. Returns NULL if there is none.
const Embedded *embedded_module(const char *name);

// Creates a Lua state without libraries. Returns NULL if memory is exhausted.
lua_State *program_state(void);
// Opens Lua's libraries, the bindings and the embedded files in a state. Call
// it as a lua_CFunction.
int program_open(lua_State *L);

// Pushes the text of an embedded file.
void embedded_push(lua_State *L, const Embedded *e);
// Pushes the function that an embedded module compiles to.
void embedded_load(lua_State *L, const Embedded *e);
// Sets package.searchers: package.preload, then the embedded files, then the
// file system as in the standalone lua.
void embedded_open(lua_State *L);

// For the program in a browser (weblib.c): web_open creates a Lua state, in
// which web_ask answers requests of the web page.
const char *web_open(void);
const char *web_ask(const char *request);
double web_heap(void);
double web_memory(void);

// Opens the module "cute.sys": terminal, signals, folders, embedded files. The
// next functions add fields to the module's table on top of the stack: child
// processes (proclib.c), and line editing (linelib.c, or weblib.c in a
// browser).
int luaopen_cute_sys(lua_State *L);
void proclib_open(lua_State *L);
void linelib_open(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
