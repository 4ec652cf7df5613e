// Patches to a launch, for `cutelua check` (editlib.c).
#ifndef CUTE_BINDEDIT_H
#define CUTE_BINDEDIT_H

#include "bind/face.h"
#include "sim/edit.h"

// Reads field `edits` of the table at t: {{ref =, how = "drop" "as" "before"
// "sem" "value", op =, fence =, sem =, scope = names, read = boolean, imm =,
// flags =, count =, mem =}, ...} (sim/edit.h), into cx->scratch; returns their
// number.
size_t editlib_get(lua_State *L, Ctx *cx, int t, const Fn *fn,
                   const SimEdit **out);

#endif
// SPDX-License-Identifier: MIT
