// Checks at the end of a trace: finds unused comparisons, regions left open,
// early uses of a warpgroup MMA's registers, and mbarrier tokens used as
// numbers.
#include "bind/trace.h"

#include <stdio.h>

#include "bind/veclib.h"
#include "ir/async_regs.h"
#include "ir/opaque.h"

// Raises the error that nothing uses a traced boolean (or vector of booleans),
// or that Lua tested it. src is the line of the boolean, an index into Fn.src.
static _Noreturn void unused_error(Ctx *cx, lua_State *L, uint32_t src,
                                   const char *what) {
  const Src *s = &ir_fn(cx)->src.p[src];
  face_error_at(L, ir_str(ir_fn(cx), s->file), (int)s->line, ERR_BOOL, "%sa "
                "traced boolean is always true in Lua's if, and, or, not, "
                "while\n  branch with cute.when(cond, function() ... end), "
                "choose with cute.where, combine with & | ~", what);
}

static void find_unused(Ctx *cx, lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "watched");
  lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, i);
    const Vector *of = luaL_testudata(L, -1, MT_VECTOR);
    const Value *v = of ? NULL : lua_touserdata(L, -1);
    const char *unused = "this comparison was never used: ";
    if (of && !of->consumed) unused_error(cx, L, of->src, unused);
    if (v && !v->lazy && (v->truth || !v->consumed))
      unused_error(cx, L, ir_get(ir_fn(cx), v->r)->src, v->consumed
                   ? "this comparison was tested by Lua: " : unused);
    if (v && v->tested) unused_error(cx, L, v->tested, "");
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
}

// Raises an error if a coroutine left a loop or branch of the kernel open.
static void find_open(Ctx *cx, lua_State *L) {
  Fn *fn = ir_fn(cx);
  if (!fn->region.n) return;
  const Src *s = &fn->src.p[ir_get(fn, fn->region.p[fn->region.n - 1])->src];
  face_error_at(L, ir_str(fn, s->file), (int)s->line, ERR_LOOPEXIT,
                "a coroutine left this traced loop or branch, and nothing "
                "resumed it\n  let the coroutine yield outside of loops and "
                "branches of the kernel");
}

// Raises an error if registers of a warpgroup MMA or of a load from tensor
// memory are accessed before the wait for the operation. For kernels in PTX,
// the simulator reports this mistake instead.
static void check_flight(Ctx *cx, lua_State *L) {
  static const char *const how[] = {
    [FLIGHT_READ] = "used", [FLIGHT_WRITE] = "written",
    [FLIGHT_SHAPE] = "accumulated into by an MMA of another shape"};
  Fn *fn = ir_fn(cx);
  Flight f = async_regs_run(cx, fn, NULL, NULL);
  if (((const FnBox *)fn)->ptx_sm) fn->flight = f;
  if (!f.kind || ((const FnBox *)fn)->ptx_sm) return;
  const Src *s = &fn->src.p[ir_get(fn, f.at)->src];
  unsigned line = f.other ? fn->src.p[ir_get(fn, f.other)->src].line : 0;
  const char *name = ir_str(fn, fn->mem.p[f.mem].name);
  char what[128], when[64] = "at its beginning";
  snprintf(what, sizeof what, "register %d of %s", (int)f.elem,
           *name ? name : "a fragment");
  if (line) snprintf(when, sizeof when, "used in line %u", line);
  if (f.kind == FLIGHT_FENCE)
    face_error_at(L, ir_str(fn, s->file), (int)s->line, ERR_FLIGHT, "no fence "
                  "is between this MMA and %s, %s\n  call "
                  "cute.nvgpu.warpgroup.fence() before the first MMA, after "
                  "every other use of its registers", what, when);
  if (f.kind == FLIGHT_LOAD)
    face_error_at(L, ir_str(fn, s->file), (int)s->line, ERR_FLIGHT, "%s is "
                  "used before the load from tensor memory in line %u has "
                  "completed\n  call cute.arch.fence_view_async_tmem_load() "
                  "(tcgen05.wait::ld) before this use", what, line);
  face_error_at(L, ir_str(fn, s->file), (int)s->line, ERR_FLIGHT, "%s is %s "
                "while the MMA of line %u is still in flight\n  commit it with "
                "cute.nvgpu.warpgroup.commit_group(), and before this use call "
                "wait_group(0), or wait_group(n) with the n groups committed "
                "since", what,
                how[f.kind], line);
}

// Raises an error if a kernel uses an mbarrier token for anything but copies,
// selects and waits.
static void check_tokens(Ctx *cx, lua_State *L) {
  static const char *const what[] = {
    [OPAQUE_USED] = "the token of an mbarrier is used as a number: it is opaque"
      "\n  keep it as it is, and give it to mbarrier_wait, try_wait or "
      "test_wait of the same mbarrier",
    [OPAQUE_STORED] = "the token of an mbarrier is stored in global memory, "
      "where its bits mean nothing\n  keep it in a local, in registers or in "
      "shared memory",
    [OPAQUE_PHASE] = "the phase to wait for is a 64-bit value that is not a "
                     "token\n  give a parity, 0 or 1 as an i32, or the token "
                     "of mbarrier_arrive(..., {token = true})"};
  const Fn *fn = ir_fn(cx);
  Ref at;
  OpaqueKind k = opaque_check(cx, fn, &at);
  if (!k) return;
  const Src *s = &fn->src.p[ir_get(fn, at)->src];
  face_error_at(L, ir_str(fn, s->file), (int)s->line, ERR_TYPE, "%s", what[k]);
}

void donelib_check_use(Ctx *cx, lua_State *L) {
  find_open(cx, L);
  find_unused(cx, L);
}

void donelib_check(Ctx *cx, lua_State *L) {
  check_flight(cx, L);
  check_tokens(cx, L);
}
// SPDX-License-Identifier: MIT
