// What the surgeon (lua/cute/check/surgeon.lua) sees of a function, and its
// changes of one: sim_sites(fn), and edits of sim_run.
#include "bind/edit.h"

#include <string.h>

// Ops that may stand where nothing did: they have no operands.
static const Op put[] = {OP_BAR, OP_SYNCWARP, OP_CPWAIT, OP_WGWAIT, OP_BULKWAIT,
                         OP_FENCE, OP_CLUSTERARRIVE, OP_CLUSTERWAIT};

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
// sem =, operands =}, ...}: instructions that do something, in their order.
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
    if (access) face_set_int(L, "sem", (int)hint_get(i->flags, HINT_SEM));
    lua_rawseti(L, -2, ++n);
  }
  return 1;
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
                     .imm = face_get_int(L, at, "imm", 0)};
    lua_settop(L, list);
    bool needs = e[k].how == EDIT_AS || e[k].how == EDIT_BEFORE;
    if (e[k].ref < 1 || e[k].ref >= fn->ins.n ||
        !is_site(ir_get(fn, e[k].ref)) || (needs && e[k].op == OP_NOP))
      face_error(L, ERR_ARG, "sim_run: edit %d is none", (int)k + 1);
  }
  lua_pop(L, 1);
  *out = e;
  return n;
}

void editlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {{"sim_sites", l_sim_sites}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
