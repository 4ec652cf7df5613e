// Bytecode of Lua functions, for lua/cute: finds the current instruction, and
// the instruction that created a value. A trial tests whether bytecode.c works
// with this version of Lua.
//
// The trial runs a function with known bytecode under a hook, and checks that
// the hook found the function's instructions in order. Other functions read
// Lua's internal structures only if the trial has succeeded.
#include "bind/trace.h"

#include <string.h>

// ---- functions ----

// Copies of Lua's internal structures (LClosure, Proto), up to the last field
// that is needed here. A closure refers to its prototype, which all closures of
// the same source text share.
typedef struct Shared {
  void *next;
  uint8_t tt, marked, parameters, vararg, registers;
  int counts[9];  // numbers of upvalues, constants, instructions ...
  void *constants;
  const uint32_t *code;
} Shared;
typedef struct Closure {
  void *next;
  uint8_t tt, marked, upvalues;
  void *list;
  const Shared *shared;
} Closure;
// index in Shared.counts of the number of instructions
enum { INSTRUCTIONS = 2 };

static const Shared *shared_of(lua_State *L, int idx) {
  return ((const Closure *)lua_topointer(L, idx))->shared;
}

// Returns the index (from 0) of the instruction that precedes address `place`
// in the function at idx. Returns -1 if `place` is in another function.
static lua_Integer number_of(lua_State *L, int idx, const void *place) {
  const Shared *s = shared_of(L, idx);
  uintptr_t first = (uintptr_t)s->code;
  uintptr_t at = (uintptr_t)place - sizeof *s->code;
  uintptr_t n = (uintptr_t)s->counts[INSTRUCTIONS];
  if (at < first || at - first >= n * sizeof *s->code) return -1;
  return (lua_Integer)((at - first) / sizeof *s->code);
}

// vm_at(level) -> index of the current instruction of the Lua function at stack
// level `level`
static int l_vm_at(lua_State *L) {
  lua_Debug ar;
  if (!lua_getstack(L, (int)face_checkint(L, 1), &ar)) return 0;
  lua_getinfo(L, "fS", &ar);
  if (*ar.what == 'C') return 0;
  lua_pushinteger(L, number_of(L, -1, bytecode_place(&ar)));
  return 1;
}

// vm_made(value, f) -> index of the instruction of f that created the traced
// value, or nil if another function created the value
static int l_vm_made(lua_State *L) {
  const Value *v = trace_value(L, 1);
  face_checktype(L, 2, LUA_TFUNCTION);
  lua_Integer n = !v || !v->made || lua_iscfunction(L, 2)
                    ? -1 : number_of(L, 2, v->made);
  if (n < 0) return 0;
  lua_pushinteger(L, n);
  return 1;
}

// ---- the trial ----

#define TRIAL_MAX 64

typedef struct Trial {
  uintptr_t at[TRIAL_MAX];  // addresses of the instructions that trial_hook
                            // recorded
  int n;
} Trial;

// The address of this variable is the key of the Trial in the registry.
static const char trial_key = 0;

static void trial_hook(lua_State *L, lua_Debug *ar) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &trial_key);
  Trial *t = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (t && t->n < TRIAL_MAX)
    t->at[t->n++] = (uintptr_t)bytecode_place(ar) - sizeof(uint32_t);
}

// Reports whether the hook recorded n consecutive instructions, and the memory
// at their addresses contains the bytes of `code`.
static bool walked(const Trial *t, const char *code, size_t n) {
  if ((size_t)t->n != n) return false;
  for (size_t i = 0; i < n; i++)
    if (t->at[i] != t->at[0] + i * sizeof(uint32_t) ||
        t->at[i] % sizeof(uint32_t) != 0)
      return false;
  return memcmp((const void *)t->at[0], code, n * sizeof(uint32_t)) == 0;
}

// vm_trial(f, code) -> bool: runs f, whose code has no jumps, and reports
// whether hooks find its instructions.
static int l_vm_trial(lua_State *L) {
  size_t n;
  face_checktype(L, 1, LUA_TFUNCTION);
  const char *code = face_checklstr(L, 2, &n);
  Trial *t = lua_newuserdatauv(L, sizeof *t, 0);
  t->n = 0;
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &trial_key);
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_sethook(co, trial_hook, LUA_MASKCOUNT, 1);
  int status = lua_pcall(co, 0, 0, 0);
  lua_pushnil(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &trial_key);
  bool good = status == LUA_OK && walked(t, code, n / 4);
  lua_pushboolean(L, good && (uintptr_t)shared_of(L, 1)->code == t->at[0]);
  return 1;
}

// ---- comparisons of element types ----

// The address of this variable is the key in the registry of the function f of
// vm_advise.
static const char advise_key = 0;

// vm_advise(f): from now on, calls f() when a script reads the element type of
// a tensor, a traced value or a vector. In f, the script's function is at stack
// level 3.
static int l_vm_advise(lua_State *L) {
  face_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &advise_key);
  return 0;
}

void trace_typed(lua_State *L) {
  lua_Debug ar;
  if (!lua_getstack(L, 1, &ar)) return;
  lua_getinfo(L, "S", &ar);
  if (*ar.what == 'C' || face_own_source(ar.source)) return;
  VmIns next = bytecode_behind(&ar);
  if (next.op != VM_EQ && next.op != VM_EQK) return;
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &advise_key) == LUA_TFUNCTION)
    lua_call(L, 0, 0);
  else
    lua_pop(L, 1);
}

// ---- code ----

static int count_dumped(lua_State *L, const void *p, size_t n, void *left) {
  (void)L;
  (void)p;
  size_t *l = left;
  if (n > *l) return 1;  // stop here
  *l -= n;
  return 0;
}

// dumps_more(f, most) -> whether string.dump(f, true) has more than `most`
// bytes
static int l_dumps_more(lua_State *L) {
  face_checktype(L, 1, LUA_TFUNCTION);
  size_t left = (size_t)face_checkint(L, 2);
  lua_settop(L, 1);
  bool more = !lua_iscfunction(L, 1) && lua_dump(L, count_dumped, &left, 1);
  lua_pushboolean(L, more);
  return 1;
}

void bytecodelib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"vm_trial", l_vm_trial}, {"dumps_more", l_dumps_more},
    {"vm_at", l_vm_at}, {"vm_advise", l_vm_advise},
    {"vm_made", l_vm_made}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
