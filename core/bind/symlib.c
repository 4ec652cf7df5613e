// Placeholders among the arguments of a kernel: constants of the trace, and
// symbolic integers and tensors, which get their values only at the launch.
#include "bind/argkey.h"

#include <string.h>

#include "bind/laylib.h"
#include "bind/tensorlib.h"

// ---- constants ----

// constexpr(x): makes an argument x of a kernel a constant of the program,
// which the kernel receives unchanged. Inside a kernel, returns x.
static int l_constexpr(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checkany(L, 1);
  lua_settop(L, 1);
  if (ir_fn(cx) || luaL_testudata(L, 1, MT_CONSTEXPR)) {
    if (luaL_testudata(L, 1, MT_VALUE))
      face_error(L, ERR_STATIC, "cute.constexpr: %s is known only on the "
                 "device", face_show(L, 1));
    return 1;
  }
  lua_newuserdatauv(L, 1, 1);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  luaL_setmetatable(L, MT_CONSTEXPR);
  return 1;
}

// Implements c.value: returns the argument of constexpr(x).
static int constexpr_index(lua_State *L) {
  face_check(L, 1, MT_CONSTEXPR, "constexpr");
  if (strcmp(face_checkstr(L, 2), "value") != 0)
    face_nofield(L, 0, "value");
  lua_getiuservalue(L, 1, 1);
  return 1;
}

static int constexpr_tostring(lua_State *L) {
  face_check(L, 1, MT_CONSTEXPR, "constexpr");
  lua_getiuservalue(L, 1, 1);
  lua_pushfstring(L, "constexpr %s", face_show(L, -1));
  return 1;
}

// ---- symbols ----

// symbol(id, bits, divides) -> a symbolic integer, a multiple of `divides`.
// Symbols with equal ids stand for the same number.
static int l_symbol(lua_State *L) {
  face_enter(L);
  Symbol s = {.id = (uint32_t)face_checkint(L, 1),
              .type = face_checkint(L, 2) == 64 ? DT_I64 : DT_I32,
              .divides = face_checkint(L, 3)};
  *(Symbol *)lua_newuserdatauv(L, sizeof s, 0) = s;
  luaL_setmetatable(L, MT_SYMBOL);
  return 1;
}

static int symbol_index(lua_State *L) {
  const Symbol *s = face_check(L, 1, MT_SYMBOL, "symbol");
  const char *k = face_checkstr(L, 2);
  if (strcmp(k, "id") == 0) lua_pushinteger(L, s->id);
  else if (strcmp(k, "width") == 0) lua_pushinteger(L, dtype_bits(s->type));
  else if (strcmp(k, "divisibility") == 0) lua_pushinteger(L, s->divides);
  else face_nofield(L, 0, "id width divisibility");
  return 1;
}

static int symbol_tostring(lua_State *L) {
  const Symbol *s = face_check(L, 1, MT_SYMBOL, "symbol");
  if (s->divides > 1) lua_pushfstring(L, "?{div=%I}", (LUAI_UACINT)s->divides);
  else lua_pushliteral(L, "?");
  return 1;
}

// ---- symbolic tensors ----

static int64_t entry(lua_State *L, const char *list, int i) {
  lua_getfield(L, 4, list);
  face_checktype(L, -1, LUA_TTABLE);
  lua_rawgeti(L, -1, i + 1);
  int64_t v = face_checkint(L, -1);
  lua_pop(L, 2);
  return v;
}

static void read_marks(lua_State *L, TensorMarks *m, int n) {
  *m = (TensorMarks){.n = n, .symbolic = true};
  m->align = face_get_int(L, 4, "align", 1);
  m->wide = face_get_bool(L, 4, "wide");
  for (int i = 0; i < n; i++) {
    m->shape[i] = entry(L, "shape", i);
    m->stride[i] = entry(L, "stride", i);
    m->shape_symbol[i] = (uint32_t)entry(L, "shape_symbol", i);
    m->stride_symbol[i] = (uint32_t)entry(L, "stride_symbol", i);
  }
}

// Replaces dynamic extents and strides by `_`, so that they are not used as
// numbers.
static void hide_numbers(Tensor *t, const TensorMarks *m) {
  // Only this tensor refers to these words, so they can be changed.
  Dim *shape = (Dim *)t->l.shape, *stride = (Dim *)t->l.stride;
  for (size_t i = 0, leaf = 0, n = tup_words(shape); i < n; i++) {
    if (!tup_is_leaf(shape + i)) continue;
    if (m->shape[leaf]) shape[i] = dim_any();
    if (m->stride[leaf]) stride[leaf] = dim_any();
    leaf++;
  }
}

// symbolic_tensor(dtype, shape, stride, marks) -> a tensor without memory.
// `marks` has two lists for the extents and two for the strides. One of the two
// has the divisibility of each dynamic extent or stride (0: static), and the
// other one has its symbol. `marks` also has the fields align and wide (64-bit
// strides).
static int l_symbolic_tensor(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_settop(L, 4);
  face_checktype(L, 4, LUA_TTABLE);
  Layout l = layout_make(cx, face_check_tup(cx, L, 2),
                         face_check_tup(cx, L, 3));
  size_t n = tup_leaves(l.shape);
  if (n > TENSOR_MAX_MARKS)
    face_error(L, ERR_LIMIT, "a symbolic tensor has at most %d modes, got "
               "%d", TENSOR_MAX_MARKS, (int)n);
  Tensor t = {.space = SP_HOST, .type = face_check_dtype(L, 1), .l = l,
              .off = dim_int(cx, 0)};
  TensorMarks m;
  read_marks(L, &m, (int)n);
  t.align = m.align;
  face_push_tensor(L, &t, 0);
  hide_numbers(&tensorlib_box(L, -1)->t, &m);
  *(TensorMarks *)lua_newuserdatauv(L, sizeof m, 0) = m;
  lua_setiuservalue(L, -2, 2);
  return 1;
}

// ---- module ----

void symlib_open(lua_State *L) {
  static const luaL_Reg constant[] = {
    {"__index", constexpr_index}, {"__tostring", constexpr_tostring},
    {NULL, NULL}};
  static const luaL_Reg funcs[] = {
    {"constexpr(x)", l_constexpr}, {"symbol", l_symbol},
    {"symbolic_tensor", l_symbolic_tensor}, {NULL, NULL}};
  static const luaL_Reg symbol[] = {
    {"__index", symbol_index}, {"__tostring", symbol_tostring}, {NULL, NULL}};
  face_newtype(L, MT_CONSTEXPR, constant);
  face_newtype(L, MT_SYMBOL, symbol);
  lua_pop(L, 2);
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
