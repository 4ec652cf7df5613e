// Exchange of tensors by DLPack (dlpacklib.c), for calls of the library from
// Python.
#ifndef CUTE_DLPACKLIB_H
#define CUTE_DLPACKLIB_H

#include <stdbool.h>

#include <lua.h>

#include "base/dlpack.h"
#include "base/dtype.h"
#include "base/shared.h"

// Sets *out to the DLPack type for elements of type t. Returns false if there
// is none.
bool dlpacklib_type(DType t, DLDataType *out);
// Pushes a Lua tensor on the memory of a managed tensor, and transfers
// ownership of the managed tensor to the Lua tensor. After an error, the caller
// still owns the managed tensor.
void dlpacklib_import(lua_State *L, void *managed, bool versioned);
// Calls the deleter of a versioned managed tensor. It has the type that
// shared_new requires, so it has a parameter `bytes`, which it ignores.
void dlpacklib_release(void *managed, size_t bytes);
// Returns a managed tensor on the memory of the tensor at idx.
DLManagedTensorVersioned *dlpacklib_export(lua_State *L, int idx);

#endif
// SPDX-License-Identifier: MIT
