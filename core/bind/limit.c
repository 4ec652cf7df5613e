// Ends a call into an embedded Lua state whose budget is exhausted. Catching
// the error by pcall gains no time, because each further instruction raises it
// again.
#include "bind/limit.h"

#include <stdlib.h>

#include "base/guard.h"
#include "bind/face.h"

const char *limit_reason(int end) {
  return end == GUARD_TIME ? "exceeded its time limit"
         : end == GUARD_ASKED ? "was interrupted by the application"
                              : "exceeded its budget of instructions";
}

static void limit_hook(lua_State *L, lua_Debug *ar);
static void limit_both(lua_State *L, lua_Debug *ar);

static _Noreturn void end_call(lua_State *L) {
  lua_Debug ar;
  luaL_checkstack(L, 8, "message of an ended call");
  if (guard_now->step)
    lua_sethook(L, limit_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE |
                LUA_MASKCOUNT, 1);
  if (face_user(L, &ar))
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
  else lua_pushliteral(L, "");
  lua_pushfstring(L, "the script %s [%s]", limit_reason(guard_now->end),
                  err_name(ERR_LIMIT));
  lua_concat(L, 2);
  lua_error(L);
  abort();
}

void limit_spend(lua_State *L, uint64_t n) {
  if (!guard_spend(n)) end_call(L);
}

static void limit_hook(lua_State *L, lua_Debug *ar) {
  const Guard *g = guard_now;
  if (!g) return;
  int count = lua_gethookcount(L);
  if (ar->event == LUA_HOOKCOUNT) limit_spend(L, (uint64_t)count);
  else if (guard_ended()) end_call(L);
  // The counts differ if an earlier call set the hook of this coroutine, and
  // ended while the coroutine was suspended. Set the hook of this call instead.
  if (count != g->step) limit_start(L);
}

static void limit_both(lua_State *L, lua_Debug *ar) {
  const Guard *g = guard_now;
  if (!g) return;
  bool counts = ar->event == LUA_HOOKCOUNT;
  if (counts) limit_spend(L, (uint64_t)lua_gethookcount(L));
  if (!counts || g->mask & LUA_MASKCOUNT) ((lua_Hook)g->hook)(L, ar);
}

void limit_start(lua_State *L) {
  if (guard_now && guard_now->step)
    lua_sethook(L, limit_hook, LUA_MASKCOUNT, guard_now->step);
  else if (lua_gethook(L) == limit_hook)
    lua_sethook(L, NULL, 0, 0);
}

bool limit_active(void) { return guard_now && guard_now->step; }

void limit_sethook(lua_State *L, lua_Hook f, int mask, int count) {
  Guard *g = guard_now;
  if (!f || f == limit_hook) {
    limit_start(L);
    return;
  }
  if (f != limit_both) {
    g->hook = (void (*)(void))f;
    g->mask = mask;
    g->count = count;
  }
  bool counts = g->mask & LUA_MASKCOUNT;
  lua_sethook(L, limit_both, g->mask | LUA_MASKCOUNT,
              counts ? g->count : g->step);
}
// SPDX-License-Identifier: MIT
