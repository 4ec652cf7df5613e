// The surgeon's changes of a launch (editlib.c).
#ifndef CUTE_BINDEDIT_H
#define CUTE_BINDEDIT_H

#include "bind/face.h"
#include "sim/edit.h"

// Field `edits` of the table at t: {{ref =, how = "drop" "as" "before" "sem"
// "value", op =, fence =, sem =, scope = names, read = boolean, imm =,
// flags =, count =, mem =}, ...} (sim/edit.h), in cx->scratch; how many.
size_t editlib_get(lua_State *L, Ctx *cx, int t, const Fn *fn,
                   const SimEdit **out);

#endif
