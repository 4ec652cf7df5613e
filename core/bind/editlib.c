// What the surgeon (lua/cute/check/surgeon.lua) sees of a function, and its
// changes of one: sim_sites(fn), and edits of sim_run.
#include "bind/edit.h"

#include <string.h>

#include "ir/operands.h"
#include "ir/rows.h"

// Ops that may stand where nothing did: they have no operands; a wait at
// mbarriers has `mem` and `count`.
static const Op put[] = {OP_BAR, OP_SYNCWARP, OP_CPWAIT, OP_WGWAIT, OP_BULKWAIT,
                         OP_FENCE, OP_CLUSTERARRIVE, OP_CLUSTERWAIT,
                         OP_MBARWAIT};

static bool is_site(const Ins *i) {
  unsigned e = op_effect((Op)i->op);
  return i->op != OP_NOP && !(e & (EF_PURE | EF_FIXED | EF_OBJECT));
}

static const char *class_of(const Ins *i) {
  unsigned e = op_effect((Op)i->op);
  if (e & EF_OPENS) return "open";
  if (e & EF_CLOSES) return "close";
  if (e & EF_ORDERED) return "order";
  return e & (EF_MEMORY | EF_LATER) ? "memory" : "value";
}

// sim_sites(fn) -> {{ref =, op =, class =, file =, line =, imm =, flags =,
// sem =, scope =, mem =}, ...}: instructions that do something, in their order.
static int l_sim_sites(lua_State *L) {
  const Fn *fn = face_check_fn(L, 1);
  lua_Integer n = 0;
  lua_createtable(L, 0, 0);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (!is_site(i)) continue;
    lua_createtable(L, 0, 10);
    face_set_int(L, "ref", r);
    face_set_str(L, "op", op_name((Op)i->op));
    face_set_str(L, "class", class_of(i));
    face_set_str(L, "file", i->src ? ir_str(fn, fn->src.p[i->src].file) : "?");
    face_set_int(L, "line", i->src ? fn->src.p[i->src].line : 0);
    face_set_int(L, "imm", i->imm);
    face_set_int(L, "flags", i->flags);
    bool access = i->op == OP_LD || i->op == OP_ST || i->op == OP_ATOMIC ||
                  i->op == OP_MBARARRIVE;
    if (access) {
      face_set_int(L, "sem", (int)hint_get(i->flags, HINT_SEM));
      face_set_int(L, "scope", (int)hint_get(i->flags, HINT_SCOPE));
    }
    int64_t threads;
    bool bar = i->op == OP_BAR || i->op == OP_BARARRIVE;
    if (bar && i->a[0] && ir_const(fn, i->a[0], &threads))
      face_set_int(L, "count", threads);
    if (i->op == OP_MBARINIT) face_set_int(L, "mem", i->a[0]);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

// The read of registers that a value comes of, through what is computed of it;
// NULL: none of its first operands is one.
static const Ins *read_of(const Fn *fn, Ref r) {
  for (;;) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_LD && ir_memof(fn, i->a[0])->space == SP_RMEM) return i;
    if (!op_pure((Op)i->op) || !i->a[0]) return NULL;
    r = i->a[0];
  }
}

// sim_value(fn, ref) -> of the registers that instruction ref stores: their
// name, the first element, how many; nil: it stores none that are known.
static int l_sim_value(lua_State *L) {
  const Fn *fn = face_check_fn(L, 1);
  lua_Integer r = face_checkint(L, 2);
  if (r < 1 || r >= (lua_Integer)fn->ins.n) return 0;
  const Ins *i = ir_get(fn, (Ref)r), *ld = NULL;
  Ref mem = 0, off = 0;
  if (i->op == OP_COPY) mem = i->a[2], off = operands_ref(fn, i, 3);
  if (i->op == OP_ST && (ld = read_of(fn, i->a[2])))
    mem = ld->a[0], off = ld->a[1];
  const Mem *m = mem ? ir_memof(fn, mem) : NULL;
  if (!m || m->space != SP_RMEM || ir_get(fn, off)->op != OP_CONST) return 0;
  int bits = dtype_bits((DType)ir_get(fn, mem)->type);
  lua_pushstring(L, ir_str(fn, m->name));
  lua_pushinteger(L, ir_get(fn, off)->imm);
  lua_pushinteger(L, i->op == OP_COPY ? i->imm / bits : 1);
  return 3;
}

// Functions of floats that are the same bits on every card; some of f32 alone.
static const MathFn exact[] = {MF_SQRT, MF_RCP, MF_FLOOR, MF_CEIL, MF_TRUNC,
                               MF_ROUND, MF_RINT, MF_COPYSIGN, MF_FMOD};

static bool is_exact(const Fn *fn, const Ins *i) {
  MathFn f = (MathFn)i->imm;
  if (i->op != OP_MATH || math_is_approx(f)) return true;
  for (size_t k = 0; k < sizeof exact / sizeof *exact; k++)
    if (exact[k] == f) return true;
  bool f32 = ir_type(fn, i->a[0]) == DT_F32;
  return f32 && (f == MF_EXP2 || f == MF_RSQRT);
}

// sim_inexact(fn) -> name, file, line of the first function that a card may
// round in another way; nil: there is none.
static int l_sim_inexact(lua_State *L) {
  const Fn *fn = face_check_fn(L, 1);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (is_exact(fn, i)) continue;
    lua_pushstring(L, math_name((MathFn)i->imm));
    lua_pushstring(L, i->src ? ir_str(fn, fn->src.p[i->src].file) : "?");
    lua_pushinteger(L, i->src ? fn->src.p[i->src].line : 0);
    return 3;
  }
  return 0;
}

static Op find_op(lua_State *L, int t) {
  lua_getfield(L, t, "op");
  const char *name = luaL_optstring(L, -1, "");
  Op op = OP_NOP;
  for (size_t k = 0; k < sizeof put / sizeof *put; k++)
    if (strcmp(op_name(put[k]), name) == 0) op = put[k];
  lua_pop(L, 1);
  return op;
}

// Are there so many mbarriers, and as many as it says?
static bool is_ring(const Fn *fn, const SimEdit *e) {
  if (e->mem < 1 || e->mem >= fn->ins.n || !ir_is_mem(fn, e->mem)) return false;
  const Mem *m = ir_memof(fn, e->mem);
  return m->space == SP_SMEM && dtype_bits(m->type) == 64 &&
         dtype_bits((DType)ir_get(fn, e->mem)->type) == 64 &&
         e->how == EDIT_BEFORE && e->count >= 1 && e->count <= m->count;
}

size_t editlib_get(lua_State *L, Ctx *cx, int t, const Fn *fn,
                   const SimEdit **out) {
  static const char *const how[] = {"drop", "as", "before", "sem", NULL};
  if (lua_getfield(L, t, "edits") != LUA_TTABLE) {
    lua_pop(L, 1);
    return 0;
  }
  int list = lua_gettop(L);
  size_t n = (size_t)luaL_len(L, list);
  SimEdit *e = NEW(cx, SimEdit, n + 1);
  for (size_t k = 0; k < n; k++) {
    lua_rawgeti(L, list, (lua_Integer)k + 1);
    face_checktype(L, -1, LUA_TTABLE);
    int at = lua_gettop(L);
    lua_getfield(L, at, "how");
    e[k] = (SimEdit){.ref = (Ref)face_get_int(L, at, "ref", 0),
                     .how = (uint8_t)luaL_checkoption(L, -1, NULL, how),
                     .op = (uint8_t)find_op(L, at),
                     .flags = (uint16_t)face_get_int(L, at, "flags", 0),
                     .count = (uint32_t)face_get_int(L, at, "count", 0),
                     .mem = (Ref)face_get_int(L, at, "mem", 0),
                     .imm = face_get_int(L, at, "imm", 0)};
    lua_settop(L, list);
    bool needs = e[k].how == EDIT_AS || e[k].how == EDIT_BEFORE;
    bool ring = e[k].op == OP_MBARWAIT;
    if (e[k].ref < 1 || e[k].ref >= fn->ins.n ||
        !is_site(ir_get(fn, e[k].ref)) || (needs && e[k].op == OP_NOP) ||
        (ring && !is_ring(fn, &e[k])) || (e[k].mem && !ring))
      face_error(L, ERR_ARG, "sim_run: edit %d is none", (int)k + 1);
  }
  lua_pop(L, 1);
  *out = e;
  return n;
}

// The IR as an edit makes it: nothing is put in.
static Ins edited(lua_State *L, const Ins *was, const SimEdit *e) {
  Ins i = *was;
  unsigned shift = hint_field(HINT_SEM)->shift;
  if (e->how == EDIT_SEM)
    i.flags = (uint16_t)((i.flags & ~(7u << shift)) |
                         (unsigned)e->imm << shift);
  else if (e->how == EDIT_DROP)
    i = (Ins){.op = OP_NOP, .src = i.src, .birth = i.birth};
  else
    face_error(L, ERR_ARG, "with_edits: nothing is put in");
  return i;
}

// with_edits(fn, {edits =}, f): calls f while the function is changed; what f
// gives.
static int l_with_edits(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_check_fn(L, 1);
  const SimEdit *e = NULL;
  lua_settop(L, 3);
  size_t n = editlib_get(L, cx, 2, fn, &e);
  Ins *was = lua_newuserdatauv(L, 2 * n * sizeof *was + 1, 0), *now = was + n;
  for (size_t k = 0; k < n; k++)
    now[k] = edited(L, ir_get(fn, e[k].ref), &e[k]);
  Ref *ref = lua_newuserdatauv(L, n * sizeof *ref + 1, 0);
  for (size_t k = 0; k < n; k++) {
    ref[k] = e[k].ref;
    was[k] = fn->ins.p[ref[k]];
    fn->ins.p[ref[k]] = now[k];
  }
  lua_pushvalue(L, 3);
  int rc = lua_pcall(L, 0, LUA_MULTRET, 0);
  for (size_t k = n; k-- > 0;) fn->ins.p[ref[k]] = was[k];
  return rc != LUA_OK ? lua_error(L) : lua_gettop(L) - 5;
}

void editlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {{"sim_sites", l_sim_sites},
                                  {"sim_value", l_sim_value},
                                  {"sim_inexact", l_sim_inexact},
                                  {"with_edits", l_with_edits},
                                  {NULL, NULL}};
  face_setfuncs(L, funcs);
}
