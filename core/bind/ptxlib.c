// Lua bindings for PTX from other sources: queries of PTX modules, and the
// translation of an entry to the IR while a kernel is traced.
#include <stdlib.h>
#include <string.h>

#include "bind/tensorlib.h"
#include "bind/tma.h"
#include "bind/trace.h"
#include "ptx/translate.h"

#define MT_PTX "cute.ptx"

// ptx_parse(text) -> module
static int l_parse(lua_State *L) {
  Ctx *cx = face_enter(L);
  size_t n;
  const char *text = face_checklstr(L, 1, &n);
  PtxModule *m = lua_newuserdatauv(L, sizeof *m, 0);
  *m = (PtxModule){.version = 0};
  luaL_setmetatable(L, MT_PTX);
  ptx_parse(cx, m, text, n);
  return 1;
}

static PtxModule *check_module(lua_State *L, int idx) {
  return luaL_checkudata(L, idx, MT_PTX);
}

static int l_gc(lua_State *L) {
  PtxModule *m = check_module(L, 1);
  ptx_free(m);
  return 0;
}

static void push_extent(lua_State *L, const uint32_t x[3], const char *name) {
  if (!x[0]) return;
  lua_createtable(L, 3, 0);
  for (int k = 0; k < 3; k++) {
    lua_pushinteger(L, x[k]);
    lua_rawseti(L, -2, k + 1);
  }
  lua_setfield(L, -2, name);
}

// ptx_entry(module, name) -> {name, parameters = {{name, bits, kind, count,
// offset, align, array}, ...}, shared, dynamic, reqntid, maxntid, cluster,
// line}: a kernel of the module
static int l_entry(lua_State *L) {
  Ctx *cx = face_enter(L);
  const PtxModule *m = check_module(L, 1);
  const PtxFunc *f = ptx_entry(cx, m, face_checkstr(L, 2));
  lua_newtable(L);
  lua_pushstring(L, f->name);
  lua_setfield(L, -2, "name");
  face_set_int(L, "line", f->line);
  lua_createtable(L, (int)f->params, 0);
  for (uint32_t k = 0; k < f->params; k++) {
    const PtxVar *v = &m->vars.p[f->param + k];
    lua_createtable(L, 0, 7);
    lua_pushstring(L, v->name);
    lua_setfield(L, -2, "name");
    lua_pushlstring(L, &"busfp?"[v->type.kind], 1);
    lua_setfield(L, -2, "kind");
    face_set_int(L, "bits", v->type.bits);
    face_set_int(L, "count", v->count);
    face_set_int(L, "offset", v->offset);
    face_set_int(L, "align", v->align);
    face_set_bool(L, "array", v->array);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "parameters");
  bool dynamic;
  face_set_int(L, "shared", ptx_shared(m, f, &dynamic));
  face_set_bool(L, "dynamic", dynamic);
  push_extent(L, f->reqntid, "reqntid");
  push_extent(L, f->maxntid, "maxntid");
  push_extent(L, f->reqnctapercluster, "cluster");
  return 1;
}

// Pushes the initial contents of a variable as a string. Addresses of variables
// are replaced by zeros.
static void push_contents(lua_State *L, const PtxModule *m, const PtxVar *v) {
  luaL_Buffer text;
  size_t each = v->type.bits / 8u;
  luaL_buffinit(L, &text);
  for (uint32_t k = 0; k < v->inits; k++) {
    const PtxInit *e = &m->inits.p[v->init + k];
    int64_t value = e->symbol ? ptx_function(m, e->symbol) : e->value;
    luaL_addlstring(&text, (const char *)&value, each);
  }
  luaL_pushresult(&text);
}

// Pushes {{byte, name, offset}}: where the contents of a variable have
// addresses of other variables or functions, plus an offset.
static void push_addresses(lua_State *L, const PtxModule *m, const PtxVar *v) {
  lua_Integer n = 0;
  lua_newtable(L);
  for (uint32_t k = 0; k < v->inits; k++) {
    const PtxInit *e = &m->inits.p[v->init + k];
    if (!e->symbol) continue;
    lua_createtable(L, 3, 0);
    lua_pushinteger(L, k * (v->type.bits / 8));
    lua_rawseti(L, -2, 1);
    lua_pushstring(L, e->symbol);
    lua_rawseti(L, -2, 2);
    lua_pushinteger(L, e->value);
    lua_rawseti(L, -2, 3);
    lua_rawseti(L, -2, ++n);
  }
}

// ptx_variables(module, entry) -> {{index, name, bytes, contents, addresses,
// constant}}: the module's variables that the entry uses
static int l_variables(lua_State *L) {
  Ctx *cx = face_enter(L);
  PtxModule *m = check_module(L, 1);
  const PtxFunc *f = ptx_entry(cx, m, face_checkstr(L, 2));
  f = ptx_whole(cx, m, f);
  PtxVars used = {0};
  ptx_variables(cx, m, f, &used);
  size_t n = used.n;
  uint32_t *list = NEW(cx, uint32_t, n + 1);
  if (n) memcpy(list, used.p, n * sizeof *list);
  vec_free(used);
  lua_createtable(L, (int)n, 0);
  for (size_t k = 0; k < n; k++) {
    const PtxVar *v = &m->vars.p[list[k]];
    lua_createtable(L, 0, 6);
    face_set_int(L, "index", list[k] + 1);
    lua_pushstring(L, v->name);
    lua_setfield(L, -2, "name");
    face_set_int(L, "bytes", v->type.bits / 8 * v->type.lanes * v->count);
    face_set_bool(L, "constant", v->space == PTX_CONST);
    push_contents(L, m, v);
    lua_setfield(L, -2, "contents");
    push_addresses(L, m, v);
    lua_setfield(L, -2, "addresses");
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  return 1;
}

// ptx_opcodes(module, entry) -> {opcode = {count, line, place, why}}: the
// opcodes that the entry uses. `count` is the number of uses, and `line` is the
// first line of the PTX with the opcode. `place` is the position of this line
// in the source of the PTX. `why` is the reason why the opcode cannot be
// translated, or nil.
static int l_opcodes(lua_State *L) {
  Ctx *cx = face_enter(L);
  const PtxModule *m = check_module(L, 1);
  const PtxFunc *f = ptx_entry(cx, m, face_checkstr(L, 2));
  lua_newtable(L);
  for (uint32_t k = f->ins; k < f->ins + f->n_ins; k++) {
    const PtxIns *i = &m->ins.p[k];
    lua_Integer count = 0;
    if (lua_getfield(L, -1, i->op) == LUA_TTABLE) {
      lua_getfield(L, -1, "count");
      count = lua_tointeger(L, -1);
      lua_pop(L, 1);
    } else {
      lua_pop(L, 1);
      lua_createtable(L, 0, 3);
      face_set_int(L, "line", i->line);
      const char *place = ptx_place(cx, m, i->loc);
      if (place) face_set_str(L, "place", place);
      const char *why = ptx_rejects(cx, i->op);
      if (why) face_set_str(L, "why", why);
      lua_pushvalue(L, -1);
      lua_setfield(L, -3, i->op);
    }
    face_set_int(L, "count", count + 1);
    lua_pop(L, 1);
  }
  return 1;
}

// ptx_head(module) -> version of PTX (such as 80 for 8.0), target
static int l_head(lua_State *L) {
  const PtxModule *m = check_module(L, 1);
  lua_pushinteger(L, m->version);
  lua_pushstring(L, m->target);
  return 2;
}

// ptx_entries(module) -> list of the names of the entries
static int l_entries(lua_State *L) {
  const PtxModule *m = check_module(L, 1);
  lua_newtable(L);
  lua_Integer n = 0;
  for (size_t k = 0; k < m->funcs.n; k++) {
    if (!m->funcs.p[k].entry || !m->funcs.p[k].body) continue;
    lua_pushstring(L, m->funcs.p[k].name);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

// Reads one kernel argument from the list at idx: {offset, tensor, TMA atom or
// bytes}, or {offset, value, kind, bits}. An empty `kind` stands for the type
// of the value.
static PtxBound bound_of(Ctx *cx, lua_State *L, int idx) {
  Fn *fn = ir_fn(cx);
  for (int k = 1; k <= 4; k++) lua_rawgeti(L, idx, k);
  int at = lua_gettop(L) - 3;
  PtxBound b = {.offset = (uint32_t)face_checkint(L, at)};
  if (lua_type(L, at + 2) == LUA_TSTRING &&
      strcmp(face_checkstr(L, at + 2), "variable") == 0) {
    b.var = b.offset;
    b.offset = UINT32_MAX;
  }
  const TmaBox *box = tmalib_box(L, at + 1);
  if (box && box->a.ref) {
    b.mem = box->a.ref;
    b.map = &box->a.map;
  } else if (luaL_testudata(L, at + 1, MT_TENSOR)) {
    b.mem = face_check_tensor(L, at + 1).mem;
  } else if (lua_type(L, at + 1) == LUA_TSTRING) {
    size_t n;
    // the caller's table keeps the string alive
    b.bytes = face_checklstr(L, at + 1, &n);
    b.size = (uint32_t)n;
  } else {
    const char *kind = face_checkstr(L, at + 2);
    int64_t bits = face_checkint(L, at + 3);
    DType t = strcmp(kind, "f") == 0 ? (bits == 64 ? DT_F64 : DT_F32)
              : bits == 64 ? DT_I64 : bits == 32 ? DT_I32
              : bits == 16 ? DT_U16 : bits == 8 ? DT_U8 : DT_NONE;
    bool traced = luaL_testudata(L, at + 1, MT_VALUE);
    // For an .f64 parameter, a traced integer is the bits of the number.
    if (traced && t == DT_F64 &&
        !dtype_is_float(ir_type(fn, face_check_value(cx, L, at + 1, DT_NONE))))
      t = DT_I64;
    Ref v = face_check_value(cx, L, at + 1, traced ? DT_NONE : t);
    b.value = t == DT_NONE || ir_type(fn, v) == t ? v : ir_cvt(cx, fn, t, v);
  }
  lua_settop(L, at - 1);
  return b;
}

// Returns the flags PTX_* that the table at stack index t sets to true.
static unsigned translation_flags(lua_State *L, int t) {
  static const struct { const char *name; unsigned flag; } flags[] = {
    {"lines", PTX_LINES}, {"init_fenced", PTX_INIT_FENCED},
    {"store_once", PTX_STORE_ONCE}, {"alloc_fenced", PTX_ALLOC_FENCED},
    {"loads_ordered", PTX_LOADS_ORDERED},
    {"setmaxnreg_alike", PTX_SETMAXNREG_ALIKE}};
  unsigned all = 0;
  for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
    lua_getfield(L, t, flags[k].name);
    if (lua_toboolean(L, -1)) all |= flags[k].flag;
    lua_pop(L, 1);
  }
  return all;
}

// ptx_translate(module, entry, list of arguments, bytes of dynamic shared
// memory, chunk name, flags): appends the operations of the entry to the trace.
// `flags` has `lines` (whether reports name lines of the PTX), and the flags of
// translate.h and fn.h.
static int l_translate(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "ptx");
  PtxModule *m = check_module(L, 1);
  const PtxFunc *f = ptx_entry(cx, m, face_checkstr(L, 2));
  f = ptx_whole(cx, m, f);
  face_checktype(L, 3, LUA_TTABLE);
  face_checktype(L, 6, LUA_TTABLE);
  size_t n = (size_t)lua_rawlen(L, 3);
  PtxBound *bound = NEW(cx, PtxBound, n + 1);
  for (size_t k = 0; k < n; k++) {
    lua_rawgeti(L, 3, (lua_Integer)k + 1);
    bound[k] = bound_of(cx, L, lua_gettop(L));
    lua_pop(L, 1);
  }
  FnBox *box = (FnBox *)fn;
  box->ptx_sm = atoi(m->target + 3);
  box->ptx_only = m->target[strlen(m->target) - 1] == 'a';
  ptx_translate(cx, fn, m, f, bound, n, face_checkint(L, 4),
                face_checkstr(L, 5), translation_flags(L, 6));
  return 0;
}

void ptxlib_open(lua_State *L) {
  static const luaL_Reg fns[] = {{"ptx_parse", l_parse},
    {"ptx_head", l_head}, {"ptx_entry", l_entry}, {"ptx_entries", l_entries},
    {"ptx_translate", l_translate},
    {"ptx_variables", l_variables}, {"ptx_opcodes", l_opcodes}, {NULL, NULL}};
  static const luaL_Reg methods[] = {{"__gc", l_gc}, {NULL, NULL}};
  face_newtype(L, MT_PTX, methods);
  lua_pop(L, 1);
  face_setfuncs(L, fns);
}
// SPDX-License-Identifier: MIT
