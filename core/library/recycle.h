// GPU tensors of finished calls from Python that serve as arguments of later
// calls. A tensor of Lua costs more than most launches: its two objects, their
// finalizers and the garbage collection.
#ifndef CUTE_RECYCLE_H
#define CUTE_RECYCLE_H

#include <stdbool.h>

#include <lua.h>

#include "base/dlpack.h"

// Pushes a tensor on the memory of a managed tensor, which it owns from then
// on: one of an earlier call that has the same type, layout and alignment, or a
// new one. Returns false and pushes nothing if such a tensor is not kept. The
// caller keeps no reference after recycle_end.
bool recycle_push(lua_State *L, DLManagedTensorVersioned *m);
// Closes the tensors that recycle_push pushed since the last recycle_end. keep:
// whether they may serve again. Objects that outlive the call must not refer to
// them in this case.
void recycle_end(lua_State *L, bool keep);

#endif
// SPDX-License-Identifier: MIT
