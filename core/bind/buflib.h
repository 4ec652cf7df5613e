// What other faces need of host buffers (MT_BUFFER).
#ifndef CUTE_BUFLIB_H
#define CUTE_BUFLIB_H

#include "bind/face.h"

// A new host buffer, pushed; an open one given as argument; a count >= 0.
HostBuf *buflib_new(lua_State *L, DType t, size_t count);
HostBuf *buflib_new_pages(lua_State *L, DType t, size_t count);
HostBuf *buflib_check(lua_State *L, int idx);
size_t buflib_count(lua_State *L, int idx);
// n elements, which are not too many for any memory here.
size_t buflib_size(lua_State *L, int64_t n);

// Field 2 of a buffer of the host or a GPU at 1: what both have, its methods,
// or an error; and its text.
int buflib_field(lua_State *L, DType t, size_t count, size_t bytes,
                 bool closed);
int buflib_text(lua_State *L, DType t, size_t count, bool closed);

// Where an open buffer at idx is: from now on kernels may have the number.
lua_Integer buflib_address(lua_State *L, int idx);
// Pushes a list of the open buffers of which that was asked; how many.
size_t buflib_addressed(lua_State *L);

// The function being traced takes element i, as type t, of the host buffer on
// top, which is popped, as a constant.
void buflib_note(lua_State *L, DType t, size_t i);

// Tells the garbage collector of memory it cannot see.
void buflib_grew(lua_State *L, size_t bytes);

#endif
