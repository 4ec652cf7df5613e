// The exchange of tensors by DLPack (dlpacklib.c), for the library's calls from
// Python.
#ifndef CUTE_DLPACKLIB_H
#define CUTE_DLPACKLIB_H

#include <stdbool.h>

#include <lua.h>

#include "base/dlpack.h"
#include "base/dtype.h"
#include "base/shared.h"

// Sets *out to DLPack's type of elements. Returns false if DLPack has no type
// for t.
bool dlpacklib_type(DType t, DLDataType *out);
// Pushes a Lua tensor on the memory of a managed tensor, and transfers
// ownership of the managed tensor to the Lua tensor. After an error, the caller
// still owns the managed tensor.
void dlpacklib_import(lua_State *L, void *managed, bool versioned);
// Calls the deleter of a managed tensor of the versioned form: a function for
// shared_new, which ignores `bytes`.
void dlpacklib_release(void *managed, size_t bytes);
// Returns a managed tensor on the memory of the tensor at idx.
DLManagedTensorVersioned *dlpacklib_export(lua_State *L, int idx);

#endif
// SPDX-License-Identifier: MIT
