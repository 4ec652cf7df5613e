// Finds the bytecode instruction before which Lua calls a count hook. Lua's
// debug library does not report it. It is needed for operations that call no
// metamethod, such as `==` of a traced value and a number: only the bytecode
// shows them.
//
// The program counter is read from an internal structure of Lua, which has the
// same layout in all of Lua 5.4. It is read only if the trial in bytecodelib.c
// has confirmed this layout.
#include "bind/trace.h"

#include <string.h>

// lua_Debug.i_ci points to {func, top, previous, next, savedpc, ...}.
static const uint32_t *next_instruction(const lua_Debug *ar) {
  const uint32_t *pc;
  memcpy(&pc, (const char *)ar->i_ci + 4 * sizeof(void *), sizeof pc);
  return pc;
}

static VmIns decoded(uint32_t w) {
  return (VmIns){.op = (uint8_t)(w & 0x7f), .a = (uint8_t)(w >> 7),
                 .b = (uint8_t)(w >> 16), .c = (uint8_t)(w >> 24),
                 .k = (w >> 15 & 1) != 0};
}

VmIns bytecode_at(const lua_Debug *ar) {
  return decoded(next_instruction(ar)[-1]);
}

VmIns bytecode_behind(const lua_Debug *ar) {
  return decoded(next_instruction(ar)[0]);
}

const void *bytecode_place(const lua_Debug *ar) { return next_instruction(ar); }

const char *bytecode_register(lua_State *L, lua_Debug *ar, int reg) {
  const char *name = lua_getlocal(L, ar, reg + 1);
  if (!name) lua_pushnil(L);
  return name && name[0] != '(' ? name : NULL;
}
// SPDX-License-Identifier: MIT
