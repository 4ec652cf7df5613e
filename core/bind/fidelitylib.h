// The Lua table of a launch's fidelity: how closely the simulator matches a
// GPU.
#ifndef CUTE_FIDELITYLIB_H
#define CUTE_FIDELITYLIB_H

#include "bind/face.h"
#include "ir/ir.h"

// Pushes the fidelity of a launch on architecture sm. executed[r] is the number
// of executions of instruction r. The table has {exact, measured, bounded,
// weaker: numbers of executions, lines = {{file, line, op, class, agreement,
// why, count}, ...}, reached = {{kind, file, line, op, count, from_file,
// from_line, from_op, from_class}, ...}}. An entry of `lines` without `op`
// counts all exact operations of a line.
void fidelitylib_push(lua_State *L, Ctx *cx, const Fn *fn, int sm,
                      const uint64_t *executed);

#endif
// SPDX-License-Identifier: MIT
