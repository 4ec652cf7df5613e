// What the parts of the `cutelua` program share: the Lua files that it
// carries, and the C functions that only a program needs.
#ifndef CUTE_PROGRAM_H
#define CUTE_PROGRAM_H

#include <stddef.h>

#include "bind/face.h"

// One Lua file of lua/ or kernels/, or one document, made into C by
// tools/embed.lua.
typedef struct Embedded {
  const char *name;   // what `require` asks for: "cute.report"; "docs/ops.md"
  const char *chunk;  // chunk name: "=[cute.report]"
  size_t size;        // of its text, bytes
  const char *packed;  // by gzip
  size_t packed_size;
} Embedded;

extern const Embedded embedded_files[];  // sorted by name
extern const size_t embedded_count;

bool embedded_is_document(const Embedded *e);

// A Lua state with nothing in it yet; NULL: no memory.
lua_State *program_state(void);
// Opens Lua's libraries, the faces and the embedded files: a lua_CFunction.
int program_open(lua_State *L);

// Pushes the text of an embedded file.
void embedded_push(lua_State *L, const Embedded *e);
// package.searchers: preload, embedded, then the file system as in lua.
void embedded_open(lua_State *L);

// In WebAssembly, weblib.c: a state that a page asks, see there.
const char *web_open(void);
const char *web_ask(const char *request);
double web_heap(void);
double web_memory(void);

// require "cute.sys": terminal, signals, folders, embedded files; child
// processes are proclib.c's, line editing linelib.c's (or weblib.c's, where
// there is no terminal): these add their functions to the table on top.
int luaopen_cute_sys(lua_State *L);
void proclib_open(lua_State *L);
void linelib_open(lua_State *L);

#endif
