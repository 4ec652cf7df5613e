// Handles Ctrl-C in the program (interrupt.h).
#define _POSIX_C_SOURCE 200809L
#include "bind/interrupt.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/platform.h"
#include "base/signals.h"
#include "bind/limit.h"

// After the first "interrupted" error, code may execute GRACE more Lua
// instructions, to close files and exit. Then each instruction raises the error
// again, even if a pcall catches it. The hook counts instructions in steps of
// STEP.
enum { GRACE = 1000000, STEP = 1000 };

// State of the handling of Ctrl-C. It is global, because signal handlers have
// no argument for it.
typedef struct Stop {
  pthread_t thread;  // thread that runs Lua, which receives the signals
  // The coroutine that runs, or NULL if no interrupt_call is active.
  lua_State *volatile running;
  // number of "interrupted" errors raised, at most 2
  volatile sig_atomic_t raised;
  int grace;                     // remaining instructions of the grace period
  // hook that a script set by debug.sethook, kept while no interrupt_call is
  // active
  lua_Hook hook;
  int mask, count;
} Stop;

static Stop stop;

static void stop_hook(lua_State *L, lua_Debug *ar);

static bool in_grace(void) { return stop.raised == 1 && signals_asked == 1; }

// Makes Lua call stop_hook at every instruction. In the grace period after the
// first error, it is called every STEP instructions.
static void arm(lua_State *L) {
  if (!in_grace())
    lua_sethook(L, stop_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE |
                LUA_MASKCOUNT, 1);
  else if (lua_gethook(L) != stop_hook || lua_gethookcount(L) != STEP)
    lua_sethook(L, stop_hook, LUA_MASKCOUNT, STEP);
}

static void stop_hook(lua_State *L, lua_Debug *ar) {
  // The Ctrl-C was handled while coroutine L was suspended, so this hook is no
  // longer needed.
  if (!signals_asked) {
    lua_sethook(L, NULL, 0, 0);
    return;
  }
  if (in_grace() && (stop.grace -= STEP) > 0) return;
  if (stop.raised == 0) stop.grace = GRACE;
  if (stop.raised < 2) stop.raised++;
  arm(L);
  lua_getinfo(L, "Sl", ar);
  if (ar->currentline > 0)
    lua_pushfstring(L, "%s:%d: interrupted", ar->short_src, ar->currentline);
  else
    lua_pushliteral(L, "interrupted");
  lua_error(L);
}

void interrupt_sethook(lua_State *L, lua_Hook f, int mask, int count) {
  if (limit_active()) limit_sethook(L, f, mask, count);
  else lua_sethook(L, f, mask, count);
  if (signals_asked && stop.running) arm(L);
}

// ---- the signal ----

static void end_program(int sig) {
  signal(sig, SIG_DFL);
  raise(sig);
}

// Handles the signal of Ctrl-C. The first two signals ask the program to stop.
// A third signal ends the program if the first two are still unhandled.
static void on_interrupt(int sig) {
  static const char note[] =
    "\n(stopping; Ctrl-C once more ends the program)\n";
  int e = errno;
  if (!pthread_equal(pthread_self(), stop.thread)) {
    platform_signal(stop.thread, sig);
    errno = e;
    return;
  }
  if (signals_asked < 3) signals_asked++;
  lua_State *L = stop.running;
  if (L) arm(L);
  if (L && signals_asked == 2 &&
      write(STDERR_FILENO, note, sizeof note - 1) < 0)
    signals_asked = 3;
  if (L && signals_asked == 3) end_program(sig);
  errno = e;
}

static void catch_interrupt(struct sigaction *old) {
  struct sigaction sa;
  memset(&sa, 0, sizeof sa);
  sa.sa_handler = on_interrupt;
  sigemptyset(&sa.sa_mask);
  stop.thread = pthread_self();
  sigaction(SIGINT, &sa, old);
}

void interrupt_watch(void) { catch_interrupt(NULL); }

void interrupt_answered(void) { signals_asked = stop.raised = 0; }

// ---- calls ----

// Removes the hook of L after a call, because nothing would catch an error that
// it raises. The hook may be one that a script set by debug.sethook. If `keep`,
// it is stored in stop.hook for the next call. Otherwise (the call failed) it
// is lost.
static void park_hook(lua_State *L, bool keep) {
  lua_Hook f = lua_gethook(L);
  if (!keep || f == stop_hook) f = NULL;
  stop.hook = f;
  stop.mask = lua_gethookmask(L);
  stop.count = lua_gethookcount(L);
  lua_sethook(L, NULL, 0, 0);
}

int interrupt_call(lua_State *L) {
  int n = lua_gettop(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_pushvalue(L, 1);
  lua_copy(L, 2, 1);
  lua_replace(L, 2);  // the stack is now: handler, f, ...
  struct sigaction old;
  lua_State *outer = stop.running;
  if (!outer) {
    interrupt_answered();
    catch_interrupt(&old);
    if (stop.hook) lua_sethook(L, stop.hook, stop.mask, stop.count);
  }
  stop.running = L;
  if (signals_asked) arm(L);
  int status = lua_pcall(L, n - 2, LUA_MULTRET, 1);
  stop.running = outer;
  if (!outer) {
    sigaction(SIGINT, &old, NULL);
    park_hook(L, status == LUA_OK);
    interrupt_answered();
  }
  lua_pushboolean(L, status == LUA_OK);
  lua_replace(L, 1);
  return lua_gettop(L);
}

// ---- coroutines ----

static void runs_now(lua_State *L) {
  if (!stop.running) return;  // no call of interrupt_call is active
  stop.running = L;
  if (signals_asked) arm(L);
}

// Moves n values from L to coroutine co and resumes co. Leaves the results, or
// the error, on top of co. Returns the number of results, or -1 for an error.
static int run_coroutine(lua_State *L, lua_State *co, int n) {
  int results = 0;
  if (!lua_checkstack(co, n)) {
    lua_pushliteral(L, "too many arguments to resume");
    lua_xmove(L, co, 1);
    return -1;
  }
  lua_xmove(L, co, n);
  runs_now(co);
  int status = lua_resume(co, L, n, &results);
  runs_now(L);
  if (status != LUA_OK && status != LUA_YIELD) return -1;
  if (lua_checkstack(L, results + 1)) return results;
  lua_pop(co, results);
  lua_pushliteral(co, "too many results to resume");
  return -1;
}

static int co_resume(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  luaL_argexpected(L, co, 1, "thread");
  int n = run_coroutine(L, co, lua_gettop(L) - 1);
  int count = n < 0 ? 1 : n;
  lua_xmove(co, L, count);
  lua_pushboolean(L, n >= 0);
  lua_insert(L, -(count + 1));
  return count + 1;
}

static int wrapped(lua_State *L) {
  lua_State *co = lua_tothread(L, lua_upvalueindex(1));
  int n = run_coroutine(L, co, lua_gettop(L));
  if (n < 0) {
    int status = lua_status(co);
    bool failed = status != LUA_OK && status != LUA_YIELD;
    // Close the to-be-closed variables of the coroutine. The error stays on top
    // of co.
    if (failed) lua_resetthread(co);
    lua_xmove(co, L, 1);
    if (lua_type(L, -1) == LUA_TSTRING && !signals_asked &&
        status != LUA_ERRMEM) {
      luaL_where(L, 1);
      lua_insert(L, -2);
      lua_concat(L, 2);
    }
    return lua_error(L);
  }
  lua_xmove(co, L, n);
  return n;
}

static int co_wrap(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_pushcclosure(L, wrapped, 1);
  return 1;
}

void interrupt_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"resume", co_resume}, {"wrap", co_wrap}, {NULL, NULL}};
  lua_getglobal(L, LUA_COLIBNAME);
  luaL_setfuncs(L, funcs, 0);
  lua_pop(L, 1);
}
// SPDX-License-Identifier: MIT
