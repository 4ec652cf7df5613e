// Patches of a traced function, with which `cutelua check` tries out repairs
// (patchlib.c).
#ifndef CUTE_BIND_PATCH_H
#define CUTE_BIND_PATCH_H

#include "bind/face.h"
#include "decode/patch.h"

// Reads the patches (decode/patch.h) in field `edits` of the table at t: {{ref
// =, how = one of "drop", "as", "before", "sem" and "value", op =, fence =, sem
// =, scope = names, read = boolean, imm =, flags =, count =, mem =}, ...}. *out
// points into cx->scratch. Returns the number of patches.
size_t patchlib_get(lua_State *L, Ctx *cx, int t, const Fn *fn,
                    const SimPatch **out);

#endif
// SPDX-License-Identifier: MIT
