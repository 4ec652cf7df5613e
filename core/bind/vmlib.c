// The instruction that a hook for counts is at: what Lua's debug library does
// not tell, and all that an operation without metamethods (`==` of a traced
// value and a number) leaves to look at.
//
// It is read where every Lua 5.4 keeps it, in a structure that is Lua's own:
// so first a function whose code is known runs under a hook, and nothing is
// read through what was found there unless it walks as that code does.
#include "bind/trace.h"

#include <string.h>

// lua_Debug.i_ci leads to {func, top, previous, next, savedpc, ...}.
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

VmIns vmlib_at(const lua_Debug *ar) {
  return decoded(next_instruction(ar)[-1]);
}

VmIns vmlib_behind(const lua_Debug *ar) {
  return decoded(next_instruction(ar)[0]);
}

const char *vmlib_register(lua_State *L, lua_Debug *ar, int reg) {
  const char *name = lua_getlocal(L, ar, reg + 1);
  if (!name) lua_pushnil(L);
  return name && name[0] != '(' ? name : NULL;
}

// ---- the trial ----

#define TRIAL_MAX 64

typedef struct Trial {
  uintptr_t at[TRIAL_MAX];  // where each instruction seems to be
  int n;
} Trial;

static const char trial_key = 0;  // its address keys the registry

static void trial_hook(lua_State *L, lua_Debug *ar) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &trial_key);
  Trial *t = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (t && t->n < TRIAL_MAX)
    t->at[t->n++] = (uintptr_t)next_instruction(ar) - sizeof(uint32_t);
}

// Did it see each of these n instructions, one after the other?
static bool walked(const Trial *t, const char *code, size_t n) {
  if ((size_t)t->n != n) return false;
  for (size_t i = 0; i < n; i++)
    if (t->at[i] != t->at[0] + i * sizeof(uint32_t) ||
        t->at[i] % sizeof(uint32_t) != 0)
      return false;
  return memcmp((const void *)t->at[0], code, n * sizeof(uint32_t)) == 0;
}

// vm_trial(f, code) -> bool: runs f, whose code has no jump, and tells whether
// hooks find its instructions.
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
  lua_pushboolean(L, status == LUA_OK && walked(t, code, n / 4));
  return 1;
}

// ---- code ----

static int count_dumped(lua_State *L, const void *p, size_t n, void *left) {
  (void)L;
  (void)p;
  size_t *l = left;
  if (n > *l) return 1;  // no more is asked for
  *l -= n;
  return 0;
}

// dumps_more(f, most) -> bool: is string.dump(f, true) of more than so many
// bytes?
static int l_dumps_more(lua_State *L) {
  face_checktype(L, 1, LUA_TFUNCTION);
  size_t left = (size_t)face_checkint(L, 2);
  lua_settop(L, 1);
  bool more = !lua_iscfunction(L, 1) && lua_dump(L, count_dumped, &left, 1);
  lua_pushboolean(L, more);
  return 1;
}

void vmlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"vm_trial", l_vm_trial}, {"dumps_more", l_dumps_more}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
