// Tensors of the application in GPU memory.
#ifndef CUTE_LIBRARY_FOREIGN_H
#define CUTE_LIBRARY_FOREIGN_H

#include "library/state.h"

// Pushes a Lua tensor for the application's GPU tensor t. `shape` and `stride`
// have t->rank entries.
void foreign_tensor(lua_State *L, const cutelua_tensor *t, DType type,
                    const int64_t *shape, const int64_t *stride);

#endif
// SPDX-License-Identifier: MIT
