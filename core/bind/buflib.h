// Host buffers (MT_BUFFER) for other bindings.
#ifndef CUTE_BUFLIB_H
#define CUTE_BUFLIB_H

#include "bind/face.h"

// buflib_new pushes a new host buffer. buflib_check returns an open one from an
// argument, buflib_count a count >= 0.
HostBuf *buflib_new(lua_State *L, DType t, size_t count);
HostBuf *buflib_new_pages(lua_State *L, DType t, size_t count);
HostBuf *buflib_check(lua_State *L, int idx);
size_t buflib_count(lua_State *L, int idx);
// Returns n as a number of elements; raises an error if no memory could hold as
// many.
size_t buflib_size(lua_State *L, int64_t n);

// Implement access to field 2 of the host or GPU buffer at 1 (a common field or
// method, or an error), and the buffer's text.
int buflib_field(lua_State *L, DType t, size_t count, size_t bytes,
                 bool closed);
int buflib_text(lua_State *L, DType t, size_t count, bool closed);

// Returns the address of an open buffer at idx, which kernels may use from now
// on.
lua_Integer buflib_address(lua_State *L, int idx);
// Pushes a list of the open buffers whose address was requested; returns its
// length.
size_t buflib_addressed(lua_State *L);

// Records that the traced function uses element i of the host buffer on top as
// a constant of type t. Pops the buffer.
void buflib_note(lua_State *L, DType t, size_t i);

// Reports memory to the garbage collector that it cannot see.
void buflib_grew(lua_State *L, size_t bytes);

#endif
// SPDX-License-Identifier: MIT
