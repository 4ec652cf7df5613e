// Lua bindings of zlib, for ZIP archives such as .npz files, and of SHA-256.
#include "bind/face.h"

#include <string.h>

#include <zlib.h>

#include "base/sha256.h"

// maximum factor by which a DEFLATE stream expands
enum { MOST_RATIO = 1032 };

static void *zip_alloc(void *ud, unsigned n, unsigned size) {
  (void)ud;
  return base_realloc(NULL, base_bytes(n, size));
}

static void zip_free(void *ud, void *p) {
  (void)ud;
  base_free(p);
}

// Returns n, limited to the largest number of bytes that zlib can count.
static uInt part(size_t n) { return n > 1u << 30 ? 1u << 30 : (uInt)n; }

// Runs inflate until the stream ends, and returns zlib's result. Sets *left to
// the number of bytes of `out` that were not written.
static int inflate_all(z_stream *z, size_t in, size_t out, size_t *left) {
  int rc = Z_OK;
  while (rc == Z_OK) {
    uInt give = part(in), room = part(out);
    z->avail_in = give, z->avail_out = room;
    rc = inflate(z, Z_NO_FLUSH);
    in -= give - z->avail_in;
    out -= room - z->avail_out;
    bool stuck = (in == 0 || out == 0) && give == z->avail_in &&
                 room == z->avail_out;
    if (rc == Z_OK && stuck) rc = Z_BUF_ERROR;
  }
  *left = out;
  return rc;
}

// inflate(bytes, size) -> the `size` bytes to which a raw DEFLATE stream
// expands | nil, reason
static int l_inflate(lua_State *L) {
  size_t n, left = 0;
  const char *s = face_checklstr(L, 1, &n);
  lua_Integer size = face_checkint(L, 2);
  if (size < 0 || (uint64_t)size / MOST_RATIO > n) {
    lua_pushnil(L);
    lua_pushliteral(L, "its compressed data cannot expand to its size");
    return 2;
  }
  luaL_Buffer b;
  char *to = luaL_buffinitsize(L, &b, (size_t)size + 1);
  z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)s,
                .next_out = (Bytef *)to, .zalloc = zip_alloc,
                .zfree = zip_free};
  int rc = inflateInit2(&z, -MAX_WBITS);
  if (rc == Z_OK) {
    rc = inflate_all(&z, n, (size_t)size, &left);
    inflateEnd(&z);
  }
  if (rc == Z_MEM_ERROR) face_error(L, ERR_MEMORY, "out of memory");
  luaL_pushresultsize(&b, rc == Z_STREAM_END ? (size_t)size : 0);
  if (rc == Z_STREAM_END && left == 0) return 1;
  lua_pushnil(L);
  lua_pushliteral(L, "its compressed data is damaged");
  return 2;
}

// deflate(bytes) -> the bytes as a raw DEFLATE stream
static int l_deflate(lua_State *L) {
  size_t n;
  const char *s = face_checklstr(L, 1, &n);
  z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)s, .zalloc = zip_alloc,
                .zfree = zip_free};
  luaL_Buffer b;
  // Incompressible data grows by less than 1/1000.
  size_t room = n + n / 1000 + 64, all = room;
  z.next_out = (Bytef *)luaL_buffinitsize(L, &b, room);
  int rc = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                        Z_DEFAULT_STRATEGY);
  while (rc == Z_OK) {
    uInt give = part(n), take = part(room);
    z.avail_in = give, z.avail_out = take;
    rc = deflate(&z, n > give ? Z_NO_FLUSH : Z_FINISH);
    n -= give - z.avail_in;
    room -= take - z.avail_out;
  }
  if (z.state) deflateEnd(&z);
  if (rc != Z_STREAM_END) face_error(L, ERR_MEMORY, "out of memory");
  luaL_pushresultsize(&b, all - room);
  return 1;
}

// crc32(bytes) -> the CRC-32 of ZIP archives
static int l_crc32(lua_State *L) {
  size_t n;
  const char *s = face_checklstr(L, 1, &n);
  uLong crc = crc32(0, NULL, 0);
  for (size_t at = 0; at < n; at += part(n - at))
    crc = crc32(crc, (const Bytef *)s + at, part(n - at));
  lua_pushinteger(L, (lua_Integer)crc);
  return 1;
}

// sha256(bytes) -> 64 hexadecimal digits
static int l_sha256(lua_State *L) {
  size_t n;
  char digits[65];
  const char *s = face_checklstr(L, 1, &n);
  sha256_hex(s, n, digits);
  lua_pushstring(L, digits);
  return 1;
}

void ziplib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {{"inflate", l_inflate},
                                   {"deflate", l_deflate},
                                   {"crc32", l_crc32},
                                   {"sha256", l_sha256}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
