// GPU tensors of finished calls from Python that serve as arguments of later
// calls. A tensor of Lua costs more than most launches: its two objects, their
// finalizers and the garbage collection.
#ifndef CUTE_RECYCLE_H
#define CUTE_RECYCLE_H

#include <stdbool.h>

#include <lua.h>

#include "base/dlpack.h"

// Pushes a Lua tensor on the memory of a managed tensor, which the Lua tensor
// then owns. This is a kept tensor of an earlier call with the same type,
// layout and alignment, or a new tensor. Returns false and pushes nothing if m
// cannot be kept or all entries are in use. The caller must not refer to the
// tensor after recycle_end.
bool recycle_push(lua_State *L, DLManagedTensorVersioned *m);
// Closes the tensors that recycle_push pushed since the last recycle_end. keep:
// whether later calls may use these tensors. If so, no object that outlives the
// call may refer to them.
void recycle_end(lua_State *L, bool keep);

#endif
// SPDX-License-Identifier: MIT
