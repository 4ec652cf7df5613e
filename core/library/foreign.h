// Tensors in memory of a GPU that the application owns.
#ifndef CUTE_LIBRARY_FOREIGN_H
#define CUTE_LIBRARY_FOREIGN_H

#include "library/state.h"

// Pushes a tensor of the application on a GPU, with `rank` extents and strides.
void foreign_tensor(lua_State *L, const cutelua_tensor *t, DType type,
                    const int64_t *shape, const int64_t *stride);

#endif
// SPDX-License-Identifier: MIT
