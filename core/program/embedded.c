// Lua files and documents embedded in the program, by name. Each file is
// compressed with gzip, because as plain text the files would make up two
// thirds of the program's size. A file is unpacked when a script requires it or
// a message quotes it. Modules that nearly every script requires are also
// embedded as bytecode.
#include <string.h>

#include <zlib.h>

#include "program/program.h"

static void *embedded_alloc(void *ud, unsigned n, unsigned size) {
  (void)ud;
  return base_realloc(NULL, (size_t)n * size);
}

static void embedded_free(void *ud, void *p) {
  (void)ud;
  base_free(p);
}

// Unpacks packed_size bytes of gzip data, which contain n bytes, and pushes
// these as a string.
static void unpack(lua_State *L, const char *name, const char *packed,
                   size_t packed_size, size_t n) {
  luaL_Buffer b;
  z_stream z = {
    .next_in = (z_const Bytef *)packed, .avail_in = (uInt)packed_size,
    .next_out = (Bytef *)luaL_buffinitsize(L, &b, n), .avail_out = (uInt)n,
    .zalloc = embedded_alloc, .zfree = embedded_free};
  // Adding 16 makes zlib expect a gzip header.
  int rc = inflateInit2(&z, 16 + MAX_WBITS);
  if (rc == Z_OK) {
    rc = inflate(&z, Z_FINISH);
    inflateEnd(&z);
  }
  if (rc == Z_MEM_ERROR) luaL_error(L, "not enough memory");
  if (rc != Z_STREAM_END || z.avail_out != 0)
    luaL_error(L, "embedded module '%s' cannot be unpacked", name);
  luaL_pushresultsize(&b, n);
}

void embedded_push(lua_State *L, const Embedded *e) {
  unpack(L, e->name, e->packed, e->packed_size, e->size);
}

bool embedded_is_document(const Embedded *e) { return strchr(e->name, '/'); }

const Embedded *embedded_module(const char *name) {
  size_t lo = 0, hi = embedded_count;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    int c = strcmp(embedded_files[mid].name, name);
    const Embedded *e = &embedded_files[mid];
    if (c == 0) return embedded_is_document(e) ? NULL : e;
    if (c < 0) lo = mid + 1;
    else hi = mid;
  }
  return NULL;
}

// Compiles the string on top of the stack, which is Lua text (mode "t") or
// bytecode ("b"), and replaces it by the function.
static int load_top(lua_State *L, const Embedded *e, const char *mode) {
  size_t size;
  const char *s = lua_tolstring(L, -1, &size);
  int rc = luaL_loadbufferx(L, s, size, e->chunk, mode);
  lua_remove(L, -2);
  return rc;
}

void embedded_load(lua_State *L, const Embedded *e) {
  if (e->code) {
    unpack(L, e->name, e->code, e->code_packed_size, e->code_size);
    int rc = load_top(L, e, "b");
    if (rc == LUA_OK) return;
    // A syntax error means that another version of Lua wrote the bytecode. Load
    // the text instead.
    if (rc != LUA_ERRSYNTAX) lua_error(L);
    lua_pop(L, 1);
  }
  embedded_push(L, e);
  if (load_top(L, e, "t") != LUA_OK) lua_error(L);
}

// Finds a module among the embedded files: a function of package.searchers.
static int embedded_search(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  const Embedded *e = embedded_module(name);
  if (!e) {
    lua_pushfstring(L, "no embedded module '%s'", name);
    return 1;
  }
  embedded_load(L, e);
  lua_pushstring(L, e->chunk + 1);
  return 2;
}

void embedded_open(lua_State *L) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchers");
  for (lua_Integer i = luaL_len(L, -1); i >= 2; i--) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushcfunction(L, embedded_search);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 2);
}
// SPDX-License-Identifier: MIT
