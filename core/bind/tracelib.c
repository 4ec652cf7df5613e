// Tracing: runs a Lua function once as a kernel, and appends its operations to
// an Fn. Loops and branches are Lua code in lua/cute/lang/trace.lua, which
// calls the primitives here. hooklib.c has the debug hook.
#include "bind/trace.h"

#include <stdio.h>
#include <string.h>

#include "bind/interrupt.h"
#include "bind/veclib.h"
#include "emit/emit.h"
#include "ir/fold.h"
#include "ir/operands.h"
#include "ir/target.h"
#include "tensor/preflight.h"

// ---- functions ----

static int fn_gc(lua_State *L) {
  FnBox *b = face_checkudata(L, 1, MT_FN);
  ir_clear(&b->fn);
  return 0;
}

void face_set_place(lua_State *L, const Fn *fn, const char *file,
                    const char *line, uint32_t src) {
  if (!src) return;
  face_set_str(L, file, ir_str(fn, fn->src.p[src].file));
  face_set_int(L, line, fn->src.p[src].line);
}

Fn *face_check_fn(lua_State *L, int idx) {
  FnBox *b = face_check(L, idx, MT_FN, "traced function");
  if (!b->fn.ins.n)
    face_error(L, ERR_CLOSED, "the traced function was closed: trace it again");
  return &b->fn;
}

static int fn_dump(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_check_fn(L, 1);
  Buf b = {0};
  dump_fn(cx, fn, lua_toboolean(L, 2), &b);
  lua_pushlstring(L, b.p, b.n);
  buf_free(&b);
  return 1;
}

static int emit_gc(lua_State *L) {
  emit_free(lua_touserdata(L, 1));
  return 0;
}

// fn:emit(sm) -> text, lines, name, options: CUDA C for the traced function.
// lines[i] is the script's {file, line} for line i of the text. name is the
// function's name in the text. options are options of the compiler.
static int fn_emit(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_check_fn(L, 1);
  int sm = (int)face_checkint(L, 2);
  EmitOut *out = lua_newuserdatauv(L, sizeof *out, 0);
  memset(out, 0, sizeof *out);
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, emit_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  emit_fn(cx, fn, sm, out);
  lua_pushlstring(L, out->text.p, out->text.n);
  lua_createtable(L, (int)out->lines.n, 0);
  for (size_t i = 0; i < out->lines.n; i++) {
    const Src *s = &fn->src.p[out->lines.p[i]];
    lua_createtable(L, 2, 0);
    lua_pushstring(L, ir_str(fn, s->file));
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, s->line);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_pushstring(L, out->name);
  lua_pushstring(L, out->options);
  return 4;
}

// fn:check_smem(sm): raises an error if the shared objects need more memory
// than architecture sm has. The message contains a table of the objects.
static int fn_check_smem(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_check_fn(L, 1);
  preflight_smem(cx, fn, (int)face_checkint(L, 2));
  return 0;
}

static void push_mem(lua_State *L, const Fn *fn, const Mem *m) {
  lua_newtable(L);
  face_set_str(L, "space", ir_space(m->space));
  face_set_str(L, "name", ir_str(fn, m->name));
  face_set_str(L, "layout", ir_str(fn, m->layout));
  face_push_dtype(L, m->type);
  lua_setfield(L, -2, "dtype");
  face_set_int(L, "ref", m->ref);
  if (mem_is_global(m) && m->arg != NO_ARG)
    face_set_int(L, "arg", m->arg + 1);
  face_set_int(L, "count", m->count);
  face_set_int(L, "align", m->align);
  face_set_int(L, "offset", m->offset);
  face_set_bool(L, "partial_ok", m->partial_ok);
  face_set_bool(L, "undefined_ok", m->undefined_ok);
}

// Reports whether a kernel reads an argument, but has no effect.
static bool has_no_effect(const Fn *fn) {
  bool reads = false;
  for (size_t i = 0; i < fn->arg.n; i++)
    reads |= fn->arg.p[i].pointer && fn->arg.p[i].read;
  return reads && ir_is_idle(fn) && !((const FnBox *)fn)->ptx_sm;
}

static void use(const Fn *fn, Ref r, bool *used) {
  if (ir_get(fn, r)->op == OP_ARG) used[ir_get(fn, r)->imm] = true;
}

// Marks the arguments that instructions and assertions use.
static void find_used(const Fn *fn, bool *used) {
  Operand o;
  for (size_t k = 0; k < fn->claim.n; k++) {
    use(fn, fn->claim.p[k].v, used);
    use(fn, fn->claim.p[k].limit, used);
  }
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      use(fn, o.ref, used);
      use(fn, o.off, used);
      if (!o.ref || !ir_is_mem(fn, o.ref)) continue;
      const Mem *m = ir_memof(fn, o.ref);
      bool global = mem_is_global(m);
      if (global && m->arg != NO_ARG) used[m->arg] = true;
    }
  }
}

// fn:info() -> {name=, smem=, barriers=, instructions=, args={...},
// mems={...}}: properties of the traced function
static int fn_info(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_check_fn(L, 1);
  lua_newtable(L);
  face_set_str(L, "name", ir_str(fn, fn->name));
  face_set_int(L, "smem", fn->smem_bytes);
  face_set_int(L, "barriers", ir_barriers(fn));
  face_set_int(L, "instructions", (lua_Integer)fn->ins.n - 1);
  bool prints = false;
  for (Ref r = 1; r < fn->ins.n; r++)
    prints |= ir_get(fn, r)->op == OP_PRINTF;
  face_set_bool(L, "prints", prints);
  face_set_bool(L, "idle", has_no_effect(fn));
  face_set_bool(L, "ptx", ((const FnBox *)fn)->ptx_sm != 0);
  face_set_bool(L, "addresses", ir_has_addresses(fn));
  lua_createtable(L, (int)fn->arg.n, 0);
  bool *used = arena_zero(cx, &cx->scratch, fn->arg.n + 1);
  find_used(fn, used);
  for (size_t i = 0; i < fn->arg.n; i++) {
    const Arg *a = &fn->arg.p[i];
    lua_newtable(L);
    face_set_str(L, "name", ir_str(fn, a->name));
    face_push_dtype(L, a->type);
    lua_setfield(L, -2, "dtype");
    face_set_bool(L, "pointer", a->pointer);
    face_set_bool(L, "map", a->map);
    face_set_bool(L, "used", used[i]);
    face_set_bool(L, "written", a->written);
    face_set_bool(L, "read", a->read);
    face_set_bool(L, "shared", ir_arg_shared(fn, i));
    face_set_int(L, "align", a->align);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "args");
  lua_createtable(L, (int)fn->mem.n, 0);
  for (size_t i = 0; i < fn->mem.n; i++) {
    push_mem(L, fn, &fn->mem.p[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, "mems");
  return 1;
}

// fn:lines() -> {{file, line}...}: the source lines of the function's
// instructions, in their order
static int fn_lines(lua_State *L) {
  const Fn *fn = face_check_fn(L, 1);
  lua_createtable(L, (int)fn->src.n, 0);
  uint32_t last = 0;
  for (Ref r = 1, n = 0; r < fn->ins.n; r++) {
    uint32_t src = ir_get(fn, r)->src;
    if (!src || src == last) continue;
    last = src;
    lua_createtable(L, 2, 0);
    lua_pushstring(L, ir_str(fn, fn->src.p[src].file));
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, fn->src.p[src].line);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

// Returns the asynchronous unit that accesses shared object number `mem`:
// "wgmma" if MMAs read it, else "tma", else "bulk". Returns NULL if only
// threads access it.
static const char *agent_of(const Fn *fn, size_t mem) {
  const char *who = NULL;
  Operand o;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_DESC && (size_t)ir_get(fn, i->a[0])->imm == mem)
      return "wgmma";
    if (op_flag_kind((Op)i->op) != FLAGS_BULK) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (o.kind != OPERAND_MEM || o.barrier ||
          (size_t)ir_get(fn, o.ref)->imm != mem)
        continue;
      if (operand_has((Op)i->op, ROLE_MAP)) who = "tma";
      else if (!who) who = "bulk";
    }
  }
  return who;
}

// fn:shared() -> a list of the shared objects of fn. An entry has the fields of
// an entry of info().mems, and these:
//   index, from 1 on; file; line; bytes
//   view: the layout by which the kernel accesses the object
//   views: whether the kernel also uses other swizzles
//   agent: the asynchronous unit that accesses the object
static int fn_shared(lua_State *L) {
  Fn *fn = face_check_fn(L, 1);
  lua_newtable(L);
  for (size_t i = 0; i < fn->mem.n; i++) {
    const Mem *m = &fn->mem.p[i];
    if (m->space != SP_SMEM) continue;
    push_mem(L, fn, m);
    face_set_int(L, "index", (lua_Integer)i + 1);
    const Src *s = &fn->src.p[ir_get(fn, m->ref)->src];
    face_set_str(L, "file", ir_str(fn, s->file));
    face_set_int(L, "line", s->line);
    face_set_int(L, "bytes", preflight_bytes(m));
    face_set_str(L, "view", ir_str(fn, m->view));
    face_set_bool(L, "views", m->views);
    const char *agent = agent_of(fn, i);
    if (agent) face_set_str(L, "agent", agent);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  return 1;
}

// Records that source line src needs feature n. If the table at 3 has the
// feature, increments its count. Otherwise appends the feature to the list at
// 2, and adds it to the table.
static void note_need(lua_State *L, const Fn *fn, Need n, uint32_t src) {
  if (lua_getfield(L, 3, n.name) == LUA_TTABLE) {
    face_set_int(L, "count", face_get_int(L, lua_gettop(L), "count", 0) + 1);
    lua_pop(L, 1);
    return;
  }
  lua_pop(L, 1);
  lua_createtable(L, 0, 7);
  face_set_str(L, "name", n.name);
  face_set_int(L, "least", n.least);
  face_set_int(L, "most", n.most);
  face_set_bool(L, "specific", n.specific);
  face_set_int(L, "count", 1);
  face_set_place(L, fn, "file", "line", src);
  lua_pushvalue(L, -1);
  lua_setfield(L, 3, n.name);
  lua_rawseti(L, 2, (lua_Integer)lua_rawlen(L, 2) + 1);
}

// fn:needs() -> the features that the function needs, but some targets lack:
// {{name=, least=, most= (sm versions; most = 0: no maximum), specific=,
// count=, file=, line=}, ...}
static int fn_needs(lua_State *L) {
  const Fn *fn = face_check_fn(L, 1);
  const int32_t *c = fn->cluster;
  lua_settop(L, 1);
  lua_newtable(L);
  lua_newtable(L);
  if (c[0] * c[1] * c[2] > 1)
    note_need(L, fn, target_feature(FT_CLUSTER), 0);
  for (Ref r = 1; r < fn->ins.n; r++) {
    Need n = target_need(fn, ir_get(fn, r));
    if (n.name) note_need(L, fn, n, ir_get(fn, r)->src);
  }
  lua_settop(L, 2);
  return 1;
}

static int fn_tostring(lua_State *L) {
  Fn *fn = face_check_fn(L, 1);
  lua_pushfstring(L, "traced %s: %d instructions", ir_str(fn, fn->name),
                  (int)fn->ins.n - 1);
  return 1;
}

// ---- the trace ----

// Reports whether the values that a kernel returned, from stack index `first`
// on, contain traced values. No caller could use these.
static bool returns(lua_State *L, int first) {
  for (int i = first; i <= lua_gettop(L); i++)
    if (trace_value(L, i) || veclib_test(L, i)) return true;
  return false;
}

static int run_traced(lua_State *L) {
  Ctx *cx = lua_touserdata(L, 1);
  int n = lua_gettop(L) - 2;
  luaL_checkstack(L, LUA_MINSTACK, "kernel arguments");
  lua_Debug ar;
  kernlib_see_arguments(cx, L, 2, 3, n);
  lua_pushvalue(L, 2);
  lua_getinfo(L, ">S", &ar);
  lua_call(L, n, LUA_MULTRET);
  FnBox *box = (FnBox *)ir_fn(cx);
  if (returns(L, 2)) box->returned = ar.lastlinedefined;
  lua_settop(L, 1);
  cx->ud = L;
  donelib_check_use(cx, L);
  arena_reset(&cx->scratch);
  check_fn(cx, ir_fn(cx));
  donelib_check(cx, L);
  ir_mark_arguments(ir_fn(cx));
  return 0;
}

// Reads opts.overlap, which has the number of the overlap group
// (argkey_overlaps) of each kernel argument.
static void set_overlap(lua_State *L, Fn *fn, int opts) {
  bool any = lua_getfield(L, opts, "overlap") == LUA_TTABLE;
  for (size_t k = 0; any && k < fn->arg.n; k++) {
    lua_rawgeti(L, -1, (lua_Integer)k + 1);
    if (fn->arg.p[k].pointer)
      fn->arg.p[k].overlap = (int32_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

// Reads the extents in field `name` of the options, if it is present.
static void set_extents(lua_State *L, int opts, const char *name,
                        int32_t out[3]) {
  if (lua_getfield(L, opts, name) == LUA_TTABLE)
    for (int i = 0; i < 3; i++) {
      lua_rawgeti(L, -1, i + 1);
      lua_Integer n = lua_isnil(L, -1) ? 1 : face_checkint(L, -1);
      if (n < 1 || n > 1024)
        face_error(L, ERR_LAUNCH, "a %s of %lld", name, (long long)n);
      out[i] = (int32_t)n;
      lua_pop(L, 1);
    }
  lua_pop(L, 1);
}

static void set_options(lua_State *L, Fn *fn, int opts) {
  if (!lua_istable(L, opts)) return;
  set_extents(L, opts, "block", fn->block);
  set_extents(L, opts, "cluster", fn->cluster);
  lua_getfield(L, opts, "min_blocks");
  fn->min_blocks = (int32_t)face_optint(L, -1, 0);
  lua_getfield(L, opts, "fmad");
  fn->fmad = lua_toboolean(L, -1);
  lua_getfield(L, opts, "fastmath");
  fn->fastmath = lua_toboolean(L, -1);
  fn->tell = base_debug("trace");
  lua_pop(L, 3);
}

// trace(name, func, opts, handler, args...) -> fn: traces func(args...). opts:
// block = {x, y, z}, cluster = {x, y, z}, min_blocks, fmad, fastmath, overlap,
// state (the table to store as TRACE_STATE). If an error occurs,
// handler(message) returns the message with which it is raised again.
static int l_trace(lua_State *L) {
  Ctx *cx = face_enter(L);
  const char *name = face_checkstr(L, 1);
  face_checktype(L, 2, LUA_TFUNCTION);
  face_checktype(L, 3, LUA_TTABLE);
  face_checktype(L, 4, LUA_TFUNCTION);
  if (ir_fn(cx))
    face_error(L, ERR_INTRACE, "a trace cannot start while kernel '%s' is "
               "being traced",
               ir_str(ir_fn(cx), ir_fn(cx)->name));
  int nargs = lua_gettop(L) - 4;
  FnBox *box = lua_newuserdatauv(L, sizeof *box, 0);
  memset(box, 0, sizeof *box);
  luaL_setmetatable(L, MT_FN);
  lua_insert(L, 1);  // stack: fn name func opts handler args...
  ir_init(cx, &box->fn, name);
  box->fn.serial = ++cx->work->fns;
  set_options(L, &box->fn, 4);
  lua_getfield(L, 4, "state");
  lua_getfield(L, -1, "known");
  box->known = lua_toboolean(L, -1);
  lua_pop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  luaL_checkstack(L, nargs + LUA_MINSTACK, "kernel arguments");
  lua_pushcfunction(L, run_traced);
  lua_pushlightuserdata(L, cx);
  lua_pushvalue(L, 3);
  for (int i = 1; i <= nargs; i++) lua_pushvalue(L, 5 + i);
  lua_Hook hook = lua_gethook(L);
  int mask = lua_gethookmask(L), count = lua_gethookcount(L);
  ir_trace(cx, &box->fn);
  hooklib_start(L);
  int status = lua_pcall(L, nargs + 2, 0, 5);
  interrupt_sethook(L, hook, mask, count);
  ir_trace(cx, NULL);
  lua_pushnil(L);
  lua_setfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  if (status != LUA_OK) {
    ir_clear(&box->fn);
    return lua_error(L);
  }
  set_overlap(L, &box->fn, 4);
  lua_settop(L, 1);
  return 1;
}

// hook(on): switches the hook on or off. cutelua's own Lua code runs with the
// hook off.
static int l_hook(lua_State *L) {
  if (ir_fn(face_ctx(L))) hooklib_on(L, lua_toboolean(L, 1));
  return 0;
}

// note(writes): records writes to tables, from now on, in the table `writes`.
// note(nil) ends the recording.
static int l_note(lua_State *L) {
  lua_settop(L, 1);
  if (ir_fn(face_ctx(L))) hooklib_note(L);
  return 0;
}

// tracing() -> false, or true and the name of the kernel being traced
static int l_tracing(lua_State *L) {
  const Fn *fn = ir_fn(face_ctx(L));
  lua_pushboolean(L, fn != NULL);
  if (fn) lua_pushstring(L, ir_str(fn, fn->name));
  return fn ? 2 : 1;
}

// ---- primitives for loops and branches ----

#define MT_MARK "cute.mark"

// mark() -> the current position of the trace. rollback(mark): removes all
// operations after this position and returns true. If the position no longer
// exists, returns false.
static int l_mark(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "cute.range");
  IrMark *m = lua_newuserdatauv(L, sizeof *m, 0);
  *m = ir_mark(fn);
  luaL_setmetatable(L, MT_MARK);
  return 1;
}

static int l_rollback(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "rollback");
  const IrMark *m = face_check(L, 1, MT_MARK, "mark");
  lua_pushboolean(L, ir_rollback(fn, *m));
  return 1;
}

// digest(mark) -> a hash, as an integer, of the operations since the mark
static int l_digest(lua_State *L) {
  Ctx *cx = face_enter(L);
  const IrMark *m = face_check(L, 1, MT_MARK, "mark");
  lua_pushinteger(L, (lua_Integer)ir_digest(ir_fn(cx), *m));
  return 1;
}

static DType opt_dtype(lua_State *L, int idx) {
  return lua_isnoneornil(L, idx) ? DT_NONE : face_check_dtype(L, idx);
}

// var(init[, dtype][, name]) -> a variable of the kernel
static int l_var(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "cute.var");
  DType t = opt_dtype(L, 2);
  Ref a = face_check_value(cx, L, 1, DT_NONE);
  if (t != DT_NONE) a = ir_cvt(cx, fn, t, a);
  Ins i = {.op = OP_VAR, .type = (uint8_t)ir_type(fn, a), .a = {a, 0, 0}};
  Ref r = ir_emit(cx, fn, i);
  if (lua_isstring(L, 3)) ir_name(cx, fn, r, lua_tostring(L, 3));
  trace_push(L, cx, r)->consumed = true;
  return 1;
}

static Ref check_var(Ctx *cx, lua_State *L) {
  Ref r;
  if (!face_test_value(cx, L, 1, &r) || ir_get(ir_fn(cx), r)->op != OP_VAR)
    face_argerror(L, 1, "variable");
  return r;
}

static int l_vget(lua_State *L) {
  Ctx *cx = face_enter(L);
  Ref r = check_var(cx, L);
  Ins i = {.op = OP_VGET, .type = (uint8_t)ir_type(ir_fn(cx), r),
           .a = {r, 0, 0}};
  trace_push(L, cx, ir_emit(cx, ir_fn(cx), i));
  return 1;
}

// set(var, value): stores a value in a variable. A number takes the variable's
// type. A traced value must have this type.
static int l_vset(lua_State *L) {
  Ctx *cx = face_enter(L);
  Ref r = check_var(cx, L);
  Ref v = face_check_value(cx, L, 2, lua_type(L, 2) == LUA_TNUMBER
                                       ? ir_type(ir_fn(cx), r) : DT_NONE);
  if (ir_type(ir_fn(cx), v) != ir_type(ir_fn(cx), r))
    face_error(L, ERR_TYPE, "a variable of type %s cannot be set to a value "
               "of %s",
               dtype_name(ir_type(ir_fn(cx), r)),
               dtype_name(ir_type(ir_fn(cx), v)));
  ir_emit(cx, ir_fn(cx), (Ins){.op = OP_VSET, .a = {r, v, 0}});
  return 0;
}

// open_for(lo, hi, step, unroll) -> counter: opens a loop whose counter begins
// at lo and stays below hi
static int l_open_for(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "cute.range");
  Ref a[3];
  DType t = DT_I32;
  for (int i = 0; i < 3; i++) {
    a[i] = face_check_value(cx, L, i + 1, DT_NONE);
    if (!dtype_is_int(ir_type(fn, a[i])))
      face_error(L, ERR_TYPE, "cute.range: a limit is of type %s, not an "
                 "integer",
                 dtype_name(ir_type(fn, a[i])));
    if (dtype_bits(ir_type(fn, a[i])) > 32) t = DT_I64;
  }
  for (int i = 0; i < 3; i++) a[i] = ir_cvt(cx, fn, t, a[i]);
  Ins ins = {.op = OP_FOR, .type = (uint8_t)t, .a = {a[0], a[1], a[2]},
             .imm = face_optint(L, 4, 0)};
  trace_push(L, cx, ir_open(cx, fn, ins));
  return 1;
}

static int l_open_loop(lua_State *L) {
  Ctx *cx = face_enter(L);
  ir_open(cx, face_tracing(cx, L, "cute.loop"), (Ins){.op = OP_LOOP});
  return 0;
}

// open_once(): opens a region that is executed once, and that leave_if can
// leave
static int l_open_once(lua_State *L) {
  Ctx *cx = face_enter(L);
  ir_open(cx, face_tracing(cx, L, "cute.func"), (Ins){.op = OP_ONCE});
  return 0;
}

static int l_break_unless(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "cute.loop");
  Ref c = ir_op1(cx, fn, OP_NOT, face_check_value(cx, L, 1, DT_BOOL));
  ir_emit(cx, fn, (Ins){.op = OP_BREAKIF, .a = {c, 0, 0}, .imm = 1});
  return 0;
}

// leave_if(condition, n): if the condition holds, leaves the n innermost open
// regions or, if n is nil, the kernel.
static int l_leave_if(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "cute.break_if");
  Ref c = face_check_value(cx, L, 1, DT_BOOL);
  int64_t levels = face_optint(L, 2, 0);
  ir_emit(cx, fn, (Ins){.op = levels ? OP_BREAKIF : OP_EXITIF,
                        .a = {c, 0, 0}, .imm = levels});
  return 0;
}

static int l_open_if(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "cute.when");
  Ref c = face_check_value(cx, L, 1, DT_BOOL);
  ir_open(cx, fn, (Ins){.op = OP_IF, .a = {c, 0, 0}});
  return 0;
}

static int l_open_else(lua_State *L) {
  Ctx *cx = face_enter(L);
  ir_else(cx, face_tracing(cx, L, "cute.when"));
  return 0;
}

static int l_close(lua_State *L) {
  Ctx *cx = face_enter(L);
  ir_close(cx, face_tracing(cx, L, "cute.range"));
  return 0;
}

// region_depth() -> number of open regions
static int l_depth(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_pushinteger(L, (lua_Integer)face_tracing(cx, L, "cute.range")->region.n);
  return 1;
}

TraceLeaves trace_leaves(Ctx *cx, Layout l) {
  size_t bytes = layout_bytes(l);
  TraceLeaves v = {.dyn = NEW(cx, Dim *, bytes / sizeof(Dim))};
  v.l = (Layout *)NEW(cx, Dim, bytes / sizeof(Dim));
  layout_copy(v.l, l);
  for (const Layout *p = v.l; p; p = layout_next(p)) {
    // the words are a copy, so they may be changed
    Dim *shape = (Dim *)p->shape, *stride = (Dim *)p->stride;
    for (size_t i = 0, n = tup_words(shape); i < n; i++)
      if (dim_kind(shape[i]) == DIM_DYN) v.dyn[v.n++] = &shape[i];
    for (size_t i = 0, n = tup_leaves(shape); i < n; i++)
      if (dim_kind(stride[i]) == DIM_DYN) v.dyn[v.n++] = &stride[i];
    Layout *own = (Layout *)p;
    Dim *at = (Dim *)p->at;
    for (size_t i = 0, n = at ? tup_words(at) : 0; i < n; i++)
      if (tup_is_leaf(at + i)) v.dyn[v.n++] = &at[i];
    if (p->outer && !at) v.dyn[v.n++] = &own->offset;
  }
  return v;
}

// Pushes a text that describes a tensor without its scalars, then the list of
// its scalars: the offset, and the traced extents, strides and offsets of its
// layout.
static int push_tensor_parts(lua_State *L, Ctx *cx, const Tensor *t) {
  TraceLeaves v = trace_leaves(cx, t->l);
  lua_createtable(L, 2 + (int)v.n, 0);
  int n = 0;
  face_push_dim(L, t->off);
  lua_rawseti(L, -2, ++n);
  for (size_t i = 0; i < v.n; i++) {
    face_push_dim(L, *v.dyn[i]);
    lua_rawseti(L, -2, ++n);
    *v.dyn[i] = dim_any();
  }
  Buf b = {0};
  layout_print(cx, *v.l, &b);
  lua_pushfstring(L, "tensor %d %s of memory %d, %s", (int)t->space,
                  dtype_name(t->type), (int)t->mem, b.p);
  buf_free(&b);
  lua_insert(L, -2);
  return 2;
}

// Returns the scalar at index *at of the list at stack index 2, and increments
// *at.
static Dim next_dim(Ctx *cx, lua_State *L, lua_Integer *at) {
  Dim d;
  lua_rawgeti(L, 2, (*at)++);
  if (!face_test_dim(cx, L, -1, &d)) face_argerror(L, 2, "list of integers");
  lua_pop(L, 1);
  return d;
}

static int push_vector_parts(lua_State *L, Ctx *cx) {
  const Vector *v = veclib_check(L, 1);
  lua_pushfstring(L, "vector %s %s", dtype_name(v->type),
                  tup_text(cx, v->shape));
  lua_createtable(L, (int)v->n, 0);
  for (int64_t i = 0; i < v->n; i++) {
    trace_push(L, cx, v->r[i])->consumed = true;
    lua_rawseti(L, -2, i + 1);
  }
  return 2;
}

// parts(x) -> signature, {scalars}: the scalars of x that a loop carries from
// iteration to iteration. Values with equal signatures differ only in their
// scalars. Returns nil if a loop cannot carry x.
static int l_parts(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (lua_type(L, 1) == LUA_TNUMBER || lua_type(L, 1) == LUA_TBOOLEAN ||
      trace_value(L, 1)) {
    lua_pushliteral(L, "scalar");
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, 1);
    return 2;
  }
  if (!lua_isuserdata(L, 1)) return 0;
  if (luaL_testudata(L, 1, MT_VECTOR)) return push_vector_parts(L, cx);
  Tensor t;
  if (!luaL_testudata(L, 1, MT_TENSOR) || !face_test_tensor(L, 1, &t) ||
      t.space == SP_HOST || t.space == SP_COORD)
    return 0;
  return push_tensor_parts(L, cx, &t);
}

static void rebuild_vector(lua_State *L, Ctx *cx, lua_Integer *at) {
  const Vector *v = face_checkudata(L, 1, MT_VECTOR);
  Ref *r = NEW(cx, Ref, (size_t)v->n);
  for (int64_t i = 0; i < v->n; i++) {
    lua_rawgeti(L, 2, (*at)++);
    r[i] = face_check_value(cx, L, -1, v->type);
    lua_pop(L, 1);
  }
  veclib_push(L, v->type, v->shape, r, v->n)->consumed = true;
}

static void rebuild_tensor(lua_State *L, Ctx *cx, lua_Integer *at) {
  Tensor t = *face_peek_tensor(L, 1);
  TraceLeaves v = trace_leaves(cx, t.l);
  t.off = next_dim(cx, L, at);
  t.place = NULL;
  if (t.origin.kind != ORIGIN_LAYOUT) t.origin.kind = ORIGIN_LOST;
  for (size_t i = 0; i < v.n; i++) *v.dyn[i] = next_dim(cx, L, at);
  t.l = *v.l;
  face_push_tensor(L, &t, 0);
}

// rebuild(x, {scalars}, at) -> a value like x, but with the scalars from index
// `at` on of the list, and the index after the last scalar used. x may come
// from a region that has ended.
static int l_rebuild(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checktype(L, 2, LUA_TTABLE);
  lua_Integer at = face_checkint(L, 3);
  if (!lua_isuserdata(L, 1) || trace_value(L, 1))
    lua_rawgeti(L, 2, at++);
  else if (luaL_testudata(L, 1, MT_VECTOR))
    rebuild_vector(L, cx, &at);
  else
    rebuild_tensor(L, cx, &at);
  lua_pushinteger(L, at);
  return 2;
}

// same(a, b) -> whether a and b are the same value. If they are the same traced
// value, a later use of one is treated as a use of both.
static int l_same(lua_State *L) {
  if (lua_rawequal(L, 1, 2)) {
    lua_pushboolean(L, lua_type(L, 1) != LUA_TNUMBER ||
                       lua_isinteger(L, 1) == lua_isinteger(L, 2));
    return 1;
  }
  Value *a = trace_value(L, 1), *b = trace_value(L, 2);
  bool same = a && b && a->r == b->r && a->birth == b->birth &&
              a->serial == b->serial && !a->undefined && !b->undefined;
  if (same) a->consumed = b->consumed = a->consumed || b->consumed;
  lua_pushboolean(L, same);
  return 1;
}

// dtype_of(scalar) -> type of a traced value or boolean, or nil for a number
static int l_dtype_of(lua_State *L) {
  Ctx *cx = face_ctx(L);
  Value *v = trace_value(L, 1);
  if (!v) {
    if (lua_type(L, 1) != LUA_TBOOLEAN) return 0;
    face_push_dtype(L, DT_BOOL);
    return 1;
  }
  trace_own(cx, v);
  face_push_dtype(L, ir_type(ir_fn(cx), v->r));
  return 1;
}

// carried(boolean[, truth]) -> the traced boolean, marked as carried by a loop.
// It may stay unused without an error, even if the body sets it. If truth is
// true, it replaces a Lua boolean, and testing it in Lua is an error.
static int l_carried(lua_State *L) {
  Value *v = face_checkudata(L, 1, MT_VALUE);
  v->lazy = true;
  v->truth = lua_toboolean(L, 2);
  v->consumed = false;
  lua_settop(L, 1);
  return 1;
}

// truth(x) -> whether x is a Lua boolean, or a traced boolean that replaces a
// Lua boolean in a loop or branch
static int l_truth(lua_State *L) {
  const Value *v = trace_value(L, 1);
  lua_pushboolean(L, lua_isboolean(L, 1) || (v && v->truth));
  return 1;
}

// known(value) -> the integer or boolean that a traced value always has, or nil
// if it is not constant. If it is constant, it is treated as used.
static int l_known(lua_State *L) {
  Ctx *cx = face_ctx(L);
  Value *v = face_checkudata(L, 1, MT_VALUE);
  trace_own(cx, v);
  int64_t k;
  if (!ir_const(ir_fn(cx), v->r, &k)) return 0;
  v->consumed = true;
  if (ir_type(ir_fn(cx), v->r) == DT_BOOL) lua_pushboolean(L, k != 0);
  else lua_pushinteger(L, k);
  return 1;
}

// cvt(scalar, dtype) -> the scalar as a traced value of this type. A plain
// number must fit the type.
static int l_cvt(lua_State *L) {
  Ctx *cx = face_enter(L);
  DType t = face_check_dtype(L, 2);
  bool num = lua_type(L, 1) == LUA_TNUMBER;
  Ref r = face_check_value(cx, L, 1, num ? t : DT_NONE);
  trace_push(L, cx, ir_cvt(cx, ir_fn(cx), t, r))->consumed = true;
  return 1;
}

// ---- arch operations ----

// sreg(name) -> value of a special register. ir/kinds.h has the names.
static int l_sreg(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "a special register");
  const char *name = face_checkstr(L, 1);
  SReg r = sreg_find(name);
  if (r == SR_COUNT) return luaL_error(L, "no special register '%s'", name);
  trace_push(L, cx, ir_sreg(cx, fn, r));
  return 1;
}

// effect(op, imm[, a[, b]]): traces an operation that has no result. a and b
// are its operands, or nil.
static int l_effect(lua_State *L) {
  static const struct { const char *name; Op op; uint16_t flags; } ops[] = {
    {"bar", OP_BAR, 0}, {"bar_arrive", OP_BARARRIVE, 0},
    {"bar_unaligned", OP_BAR, BRF_UNALIGNED},
    {"bar_arrive_unaligned", OP_BARARRIVE, BRF_UNALIGNED},
    {"syncwarp", OP_SYNCWARP, 0}, {"cp_commit", OP_CPCOMMIT, 0},
    {"cp_wait", OP_CPWAIT, 0}, {"bulk_commit", OP_BULKCOMMIT, 0},
    {"bulk_wait", OP_BULKWAIT, 0}, {"bulk_wait_read", OP_BULKWAIT, BKF_READ},
    {"cluster_arrive", OP_CLUSTERARRIVE, 0},
    {"cluster_arrive_relaxed", OP_CLUSTERARRIVE, CLF_RELAXED},
    {"cluster_arrive_unaligned", OP_CLUSTERARRIVE, CLF_UNALIGNED},
    {"cluster_arrive_relaxed_unaligned", OP_CLUSTERARRIVE,
     CLF_RELAXED | CLF_UNALIGNED},
    {"cluster_wait", OP_CLUSTERWAIT, 0},
    {"cluster_wait_unaligned", OP_CLUSTERWAIT, CLF_UNALIGNED},
    {"setmaxnreg_inc", OP_SETMAXNREG, RGF_INC},
    {"setmaxnreg_dec", OP_SETMAXNREG, 0},
    {"grid_wait", OP_GRIDWAIT, 0}, {"grid_launch", OP_GRIDLAUNCH, 0},
    {"wgmma_fence", OP_WGFENCE, 0}, {"wgmma_commit", OP_WGCOMMIT, 0},
    {"wgmma_wait", OP_WGWAIT, 0}, {"tmem_wait_load", OP_TCWAITLD, 0},
    {"tmem_wait_store", OP_TCWAITST, 0}, {"tmem_before_sync", OP_TCFENCE, 0},
    {"tmem_after_sync", OP_TCFENCE, TCF_AFTER},
    {"tmem_shift", OP_TCSHIFT, 0}, {"tmem_shift_pair", OP_TCSHIFT, TCF_PAIR},
    {"tmem_relinquish", OP_TCRELINQUISH, 0},
    {"tmem_relinquish_pair", OP_TCRELINQUISH, TCF_PAIR}};
  Ctx *cx = face_enter(L);
  const char *name = face_checkstr(L, 1);
  Fn *fn = face_tracing(cx, L, "it");
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
    if (strcmp(ops[k].name, name) != 0) continue;
    Ins i = {.op = (uint8_t)ops[k].op, .imm = face_optint(L, 2, 0),
             .flags = ops[k].flags};
    DType t = op_who(ops[k].op) == WHO_MASK ? DT_U32 : DT_I32;
    for (int n = 0; n < 2; n++)
      if (!lua_isnoneornil(L, 3 + n))
        i.a[n] = ir_cvt(cx, fn, t, face_check_value(cx, L, 3 + n, t));
    ir_emit(cx, fn, i);
    return 0;
  }
  return luaL_error(L, "no effect '%s'", name);
}

// fence(name): traces the fence with this name in FENCES, such as "cta" or
// "async".
static int l_fence(lua_State *L) {
  Ctx *cx = face_enter(L);
  const char *name = face_checkstr(L, 1);
  Fn *fn = face_tracing(cx, L, "a fence");
  FenceKind k = fence_find(name);
  if (k == FE_COUNT) return luaL_error(L, "no fence '%s'", name);
  ir_emit(cx, fn, (Ins){.op = OP_FENCE, .imm = k});
  return 0;
}

// undefined(text[, value]) -> a value whose use raises an error with this text.
// It replaces the given traced value, if any. If that value was computed in a
// region that has ended, a use raises the error about the region instead.
static int l_undefined(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = ir_fn(cx);
  size_t n;
  const char *text = luaL_checklstring(L, 1, &n);
  const Value *of = trace_value(L, 2);
  Value *v = lua_newuserdatauv(L, sizeof *v, 0);
  *v = (Value){.serial = fn->serial, .undefined = ir_text(cx, fn, text, n)};
  if (of && !of->undefined && of->serial == fn->serial) {
    v->r = of->r;
    v->birth = of->birth;
  }
  luaL_setmetatable(L, MT_VALUE);
  hooklib_undefined(L);
  return 1;
}

// ---- module ----

void tracelib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"trace", l_trace}, {"hook", l_hook}, {"note", l_note},
    {"tracing", l_tracing}, {"mark", l_mark}, {"rollback", l_rollback},
    {"digest", l_digest},
    {"var", l_var}, {"vget", l_vget}, {"vset", l_vset},
    {"open_for", l_open_for}, {"open_loop", l_open_loop},
    {"open_once", l_open_once},
    {"break_unless", l_break_unless}, {"leave_if", l_leave_if},
    {"open_if", l_open_if}, {"open_else", l_open_else}, {"close", l_close},
    {"region_depth", l_depth}, {"parts", l_parts}, {"rebuild", l_rebuild},
    {"same", l_same}, {"dtype_of", l_dtype_of}, {"cvt", l_cvt},
    {"carried", l_carried}, {"truth", l_truth},
    {"known", l_known}, {"sreg", l_sreg},
    {"effect", l_effect}, {"fence", l_fence}, {"undefined", l_undefined},
    {NULL, NULL}};
  static const luaL_Reg fnmeta[] = {
    {"__gc", fn_gc}, {"__tostring", fn_tostring}, {"dump", fn_dump},
    {"emit", fn_emit}, {"check_smem", fn_check_smem}, {"info", fn_info},
    {"lines", fn_lines}, {"shared", fn_shared}, {"needs", fn_needs},
    {NULL, NULL}};
  face_setfuncs(L, funcs);
  static const luaL_Reg none[] = {{NULL, NULL}};
  face_newtype(L, MT_FN, fnmeta);
  face_newtype(L, MT_MARK, none);
  lua_pop(L, 2);
}
// SPDX-License-Identifier: MIT
