// Reuses Lua tensors: those that a finished Python call made for its GPU
// tensors serve as arguments of later calls. Creating a Lua tensor costs more
// than most launches: two objects, their finalizers and garbage collection.
#ifndef CUTE_RECYCLE_H
#define CUTE_RECYCLE_H

#include <stdbool.h>

#include <lua.h>

#include "base/dlpack.h"

// Pushes a Lua tensor in the memory of managed tensor m, and makes it the owner
// of m. The Lua tensor is either new, or kept from an earlier call and has the
// type, layout and alignment of m. Returns false and pushes nothing if m cannot
// be kept, or if this call uses all entries of the cache. The caller must not
// refer to the tensor after recycle_end.
bool recycle_push(lua_State *L, DLManagedTensorVersioned *m);
// Closes the tensors that recycle_push pushed since the last recycle_end. keep:
// whether later calls may use these tensors. If so, no object that outlives the
// call may refer to them.
void recycle_end(lua_State *L, bool keep);

#endif
// SPDX-License-Identifier: MIT
