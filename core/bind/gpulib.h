// Between runlib.c and gpulib.c, the two halves of the face of running.
#ifndef CUTE_GPULIB_H
#define CUTE_GPULIB_H

#include "bind/face.h"

// Opens the GPU's part into the table on top of the stack.
void gpulib_open(lua_State *L);

// A new host buffer, pushed; an open one given as argument; a count >= 0.
HostBuf *runlib_new_buffer(lua_State *L, DType t, size_t count);
HostBuf *runlib_check_buffer(lua_State *L, int idx);
size_t runlib_check_count(lua_State *L, int idx);

// Tells the garbage collector of memory it cannot see.
void runlib_grew(lua_State *L, size_t bytes);

#endif
