// Memory and streams of a GPU that belong to the application.
#ifndef CUTE_FOREIGN_H
#define CUTE_FOREIGN_H

#include "bind/gpulib.h"

// Pushes a buffer of `count` elements on memory of GPU `ordinal` that the
// application owns. Raises an error if there is no such GPU.
void foreign_buffer(lua_State *L, int ordinal, DType t, void *p, size_t count);
// Pushes an object for a stream that the application owns.
void foreign_stream(lua_State *L, int ordinal, void *stream);

#endif
// SPDX-License-Identifier: MIT
