// The context of a Lua state: the start of each call from Lua, and checks of
// which functions may be called during a trace.
#include "bind/trace.h"

#include <string.h>

// Maximum number of operations that one source line may trace. A line with more
// is an endless `while`, because unrolled loops that can be compiled have far
// fewer operations.
#define LINE_BUDGET 131072

// Makes the current line of the user's script the source line of the following
// IR instructions.
static void at_line(lua_State *L, Ctx *cx) {
  char src[512];
  int line;
  lua_Debug ar;
  if (!face_where(L, src, &line, &ar)) return;
  Fn *fn = ir_fn(cx);
  FnBox *box = (FnBox *)fn;
  if (box->known) box->at = bytecode_place(&ar);
  ir_at(cx, fn, src, (uint32_t)line);
  vec_reserve(cx, fn->hits, fn->at + 1);
  while (fn->hits.n <= fn->at) fn->hits.p[fn->hits.n++] = 0;
  if (++fn->hits.p[fn->at] > LINE_BUDGET)
    face_error(L, ERR_RUNAWAY, "this line traced over %d operations: Lua loops "
               "are unrolled, and a `while` on a traced boolean never ends\n"
               "  write cute.range(n) or cute.loop(cond, body) for a loop of "
               "the kernel", LINE_BUDGET);
}

Ctx *face_enter(lua_State *L) {
  Ctx *cx = face_ctx(L);
  arena_reset(&cx->scratch);
  if (ir_fn(cx)) at_line(L, cx);
  return cx;
}

static void fail_hook(Ctx *cx, ErrKind kind, const char *msg) {
  ir_back(cx);
  face_error(cx->ud, kind, "%s", msg);
}

static int ctx_gc(lua_State *L) {
  Ctx *cx = lua_touserdata(L, 1);
  arena_free(&cx->scratch);
  return 0;
}

void context_new(lua_State *L) {
  typedef struct Own { Ctx cx; struct Work work; } Own;
  Own *own = lua_newuserdatauv(L, sizeof *own, 0);
  memset(own, 0, sizeof *own);
  Ctx *cx = &own->cx;
  cx->work = &own->work;
  cx->fail = fail_hook;
  cx->ud = L;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, ctx_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_setfield(L, LUA_REGISTRYINDEX, "cute.ctx");
}

Fn *face_tracing(Ctx *cx, lua_State *L, const char *what) {
  if (!ir_fn(cx))
    face_error(L, ERR_NOTRACE, "%s is only meaningful inside a kernel", what);
  return ir_fn(cx);
}

void face_outside(lua_State *L) {
  const Fn *fn = ir_fn(face_ctx(L));
  if (fn)
    face_error(L, ERR_INTRACE, "a host function was called in kernel '%s', "
               "which would call it only once, while it is traced\n"
               "  call it outside of the kernel",
               ir_str(fn, fn->name));
}
// SPDX-License-Identifier: MIT
