// Shared by the parts of the `cutelua` program: embedded Lua files, and C
// functions that only a program needs.
#ifndef CUTE_PROGRAM_H
#define CUTE_PROGRAM_H

#include <stddef.h>

#include "bind/face.h"

// A Lua file of lua/ or kernels/, or a document, converted to C by
// tools/embed.lua.
typedef struct Embedded {
  const char *name;   // name for `require`, "cute.report"; or the path
                      // "docs/ops.md"
  const char *chunk;  // chunk name: "=[cute.report]"
  size_t size;        // bytes of the text
  const char *packed;  // text compressed by gzip
  size_t packed_size;
} Embedded;

extern const Embedded embedded_files[];  // sorted by name
extern const size_t embedded_count;

bool embedded_is_document(const Embedded *e);

// Creates an empty Lua state; NULL: out of memory.
lua_State *program_state(void);
// Opens Lua's libraries, the bindings and the embedded files: a lua_CFunction.
int program_open(lua_State *L);

// Pushes the text of an embedded file.
void embedded_push(lua_State *L, const Embedded *e);
// Sets package.searchers: preload, embedded, then the file system as in lua.
void embedded_open(lua_State *L);

// In WebAssembly: weblib.c, a state that answers a page's requests.
const char *web_open(void);
const char *web_ask(const char *request);
double web_heap(void);
double web_memory(void);

// require "cute.sys": terminal, signals, folders, embedded files. proclib.c has
// child processes, linelib.c line editing (weblib.c, if there is no terminal).
// They add their functions to the table on top.
int luaopen_cute_sys(lua_State *L);
void proclib_open(lua_State *L);
void linelib_open(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
