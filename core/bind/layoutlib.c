// Lua bindings of layouts: methods of layouts, tuples and constants (`_`, X,
// bases, swizzles), and constructors of constants.
#include "bind/row.h"

#include <string.h>

#include "bind/laylib.h"
#include "layout/composed.h"

#define MT_TUPLE "cute.tuple"

// ---- methods of layouts ----

// Computes l(i) or l(i, j, ...) for integers if l is static and not nested.
// Returns false otherwise. Uses no memory of cx->scratch.
static bool call_fast(lua_State *L, const Layout *l, int n) {
  // A flat tuple of n numbers has n + 1 words and n leaves.
  bool flat = tup_words(l->shape) == (size_t)n + 1;
  if (l->outer || !flat || tup_leaves(l->shape) != (size_t)n) return false;
  int64_t sum = 0;
  for (int i = 0; i < n; i++) {
    int isint;
    Dim d = l->stride[i];
    int64_t c = lua_tointegerx(L, i + 2, &isint), x;
    if (!isint || !dim_static(d) || lua_type(L, i + 2) != LUA_TNUMBER ||
        __builtin_mul_overflow(c, d.w, &x) ||
        __builtin_add_overflow(sum, x, &sum))
      return false;
  }
  if (!dim_static((Dim){sum})) return false;
  lua_pushinteger(L, sum);
  return true;
}

// Computes l(i) for an integer if l is static. Returns false otherwise.
static bool call_linear(lua_State *L, const Layout *l) {
  int isint;
  int64_t c = lua_tointegerx(L, 2, &isint), sum = 0;
  const Swizzle *sw = layout_swizzle(*l);
  if (!isint || c < 0 || lua_type(L, 2) != LUA_TNUMBER || (l->outer && !sw))
    return false;
  size_t n = tup_words(l->shape), left = tup_leaves(l->shape);
  const Dim *d = l->stride;
  if (!left || !dim_static(l->offset)) return false;
  for (size_t i = 0; i < n; i++) {
    if (!tup_is_leaf(l->shape + i)) continue;
    int64_t s = l->shape[i].w, x, own;
    if (!dim_static(l->shape[i]) || !s || !dim_static(*d)) return false;
    own = --left ? c % s : c;
    c /= s;
    if (__builtin_mul_overflow(own, d->w, &x) ||
        __builtin_add_overflow(sum, x, &sum))
      return false;
    d++;
  }
  if (__builtin_add_overflow(sum, l->offset.w, &sum) ||
      !dim_static((Dim){sum}))
    return false;
  lua_pushinteger(L, sw ? swizzle_bits(*sw, sum) : sum);
  return true;
}

static int layout_call(lua_State *L) {
  LayoutBox *b = laylib_box(L, 1);
  int n = lua_gettop(L) - 1;
  if (b && !b->serial) {
    if (n == 1 && call_linear(L, &b->l)) return 1;
    if (n > 1 && call_fast(L, &b->l, n)) return 1;
  }
  Ctx *cx = face_enter(L);
  Layout l = face_check_layout(L, 1);
  Tup c = laylib_coord(cx, L, 2);
  if (tup_has(c, DIM_ANY)) {
    Tup off;
    face_push_layout(L, layout_slice_tup(cx, l, c, &off));
  } else {
    Tup x = layout_eval_tup(cx, l, c);
    // If l has only one stride, and it is a basis, the value is also a basis,
    // as in CuTe.
    if (tup_is_leaf(x) || tup_leaves(l.shape) != 1)
      laylib_push_any(L, x);
    else
      face_push_dim(L, dim_mul(cx, *tup_unwrap(c), l.stride[0]));
  }
  return 1;
}

static int layout_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  LayoutBox *b = laylib_box(L, 1);
  if (!b) face_argerror(L, 1, "layout");
  // Bounds and divisors of traced extents are known only while their kernel is
  // traced. Otherwise print the layout without them.
  Fn *fn = ir_fn(cx);
  if (fn && fn->serial != b->serial) ir_aside(cx);
  Buf out = {0};
  layout_print(cx, b->l, &out);
  ir_back(cx);
  face_push_buf(L, &out);
  return 1;
}

static int any_concat(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  luaL_tolstring(L, 2, NULL);
  lua_concat(L, 2);
  return 1;
}

static int layout_leq(lua_State *L) {
  LayoutBox *a = laylib_box(L, 1), *b = laylib_box(L, 2);
  lua_pushboolean(L, a && b && a->serial == b->serial &&
                       layout_eq(a->l, b->l));
  return 1;
}

// Pushes the left side f of a composed layout: a swizzle, a layout or a Lua
// function.
static void push_outer(lua_State *L, const Outer *f) {
  if (f->kind == OUTER_FN && !f->l.outer)
    layoutfn_push(L, f->fn);
  else if (f->kind == OUTER_LAYOUT)
    face_push_layout(L, f->l);
  else if (!f->l.outer)
    laylib_push_swizzle(L, f->sw);
  else
    face_error(L, ERR_ARG, "the left side of this composed layout is a layout "
               "composed with a swizzle or function; no Lua value can "
               "represent it");
}

#define LAYOUT_FIELDS \
  "shape stride layout offset swizzle inner outer is_composed"

static bool push_layout_field(Ctx *cx, lua_State *L, Layout l,
                              const char *k) {
  if (strcmp(k, "shape") == 0) {
    laylib_push_any(L, l.shape);
  } else if (strcmp(k, "stride") == 0) {
    laylib_push_any(L, laylib_stride(cx, L, l));
  } else if (strcmp(k, "layout") == 0) {
    lua_pushvalue(L, 1);
  } else if (strcmp(k, "offset") == 0) {
    laylib_push_any(L, l.at ? l.at : &l.offset);
  } else if (strcmp(k, "swizzle") == 0) {
    const Swizzle *sw = layout_swizzle(l);
    if (sw) laylib_push_swizzle(L, *sw);
    else lua_pushnil(L);
  } else if (strcmp(k, "inner") == 0) {
    // The Python DSL calls the left side `inner` and the right side `outer`.
    if (l.outer) push_outer(L, l.outer);
    else lua_pushnil(L);
  } else if (strcmp(k, "outer") == 0) {  // right side
    face_push_layout(L, layout_inner(l));
  } else if (strcmp(k, "is_composed") == 0) {
    lua_pushboolean(L, l.outer != NULL);
  } else {
    return false;
  }
  return true;
}

// Implements l.key: looks up methods in upvalue 2, then fields of the layout,
// such as l.shape.
static int layout_index(lua_State *L) {
  if (lua_type(L, 2) == LUA_TSTRING) {
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(2)) != LUA_TNIL) return 1;
    Ctx *cx = face_enter(L);
    if (push_layout_field(cx, L, face_check_layout(L, 1),
                          lua_tostring(L, 2)))
      return 1;
  }
  face_nofield(L, lua_upvalueindex(2), LAYOUT_FIELDS);
}

static int layout_newindex(lua_State *L) {
  face_error(L, ERR_ARG, "layouts are immutable: no field '%s' to set",
             luaL_tolstring(L, 2, NULL));
}

// ---- methods of constants ----

static int const_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  ConstBox *b = laylib_const(L, 1);
  if (!b) face_argerror(L, 1, "constant");
  Buf out = {0};
  switch (b->kind) {
  case CONST_ANY: lua_pushliteral(L, "_"); return 1;
  case CONST_X: lua_pushliteral(L, "X"); return 1;
  case CONST_LEFT: lua_pushliteral(L, "LayoutLeft"); return 1;
  case CONST_RIGHT: lua_pushliteral(L, "LayoutRight"); return 1;
  case CONST_BASIS: case CONST_F2:
    dim_print(cx, b->d, &out);
    face_push_buf(L, &out);
    return 1;
  case CONST_SWIZZLE:
    lua_pushfstring(L, "Sw<%d,%d,%d>", b->sw.b, b->sw.m, b->sw.s);
    return 1;
  }
  return 0;
}

static int const_eq(lua_State *L) {
  ConstBox *a = laylib_const(L, 1), *b = laylib_const(L, 2);
  lua_pushboolean(L, a && b && a->kind == b->kind && dim_eq(a->d, b->d) &&
                       memcmp(&a->sw, &b->sw, sizeof a->sw) == 0);
  return 1;
}

// sw(x) -> x with the swizzle applied
static int const_call(lua_State *L) {
  Ctx *cx = face_enter(L);
  Swizzle sw;
  Dim d;
  if (!laylib_test_swizzle(L, 1, &sw)) face_argerror(L, 1, "swizzle");
  if (!face_test_dim(cx, L, 2, &d)) face_argerror(L, 2, "integer");
  face_push_dim(L, swizzle_apply(cx, sw, d));
  return 1;
}

static int const_index(lua_State *L) {
  ConstBox *b = laylib_const(L, 1);
  const char *k = face_checkstr(L, 2);
  if (!b) face_argerror(L, 1, "constant");
  lua_pushnil(L);
  if (b->kind == CONST_BASIS && strcmp(k, "value") == 0) {
    face_push_dim(L, dim_basis_value(laylib_basis(L, b)));
  } else if (b->kind == CONST_BASIS && strcmp(k, "mode") == 0) {
    int path[DIM_LEVELS], n = dim_basis_path(b->d, path);
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
      lua_pushinteger(L, path[i]);
      lua_rawseti(L, -2, i + 1);
    }
  } else if (b->kind == CONST_F2 && strcmp(k, "value") == 0) {
    lua_pushinteger(L, dim_xor_value(b->d));
  } else if (b->kind == CONST_SWIZZLE) {
    const char *names[6] = {"num_bits", "num_base", "num_shift",
                            "b", "m", "s"};
    int v[3] = {b->sw.b, b->sw.m, b->sw.s};
    for (int i = 0; i < 6; i++)
      if (strcmp(k, names[i]) == 0) lua_pushinteger(L, v[i % 3]);
  }
  if (lua_isnil(L, -1))
    face_nofield(L, 0, b->kind == CONST_SWIZZLE
                   ? "num_bits num_base num_shift b m s"
                   : b->kind == CONST_BASIS ? "value mode" : "value");
  return 1;
}

// Multiplies a basis by an integer: 3 * E(0), E(0) * 3.
static int const_mul(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim a, b;
  if (!face_test_dim(cx, L, 1, &a)) face_argerror(L, 1, "integer or basis");
  if (!face_test_dim(cx, L, 2, &b)) face_argerror(L, 2, "integer or basis");
  face_push_dim(L, dim_mul(cx, a, b));
  return 1;
}

// Converts a basis to its coordinate tuple. Returns other tuples unchanged.
static Tup arithmetic(Ctx *cx, Tup t) {
  return tup_is_leaf(t) && dim_kind(*t) == DIM_BASIS ? tup_from_terms(cx, t, 1)
                                                     : t;
}

// Adds bases and coordinate tuples. The sum is a coordinate tuple.
static int any_add(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup a = face_check_tup(cx, L, 1), b = face_check_tup(cx, L, 2);
  laylib_push_any(L, tup_add(cx, arithmetic(cx, a), arithmetic(cx, b)));
  return 1;
}

// Pushes the basis v@..@mode, whose modes are the arguments from `first` on.
static int push_in_modes(Ctx *cx, lua_State *L, Dim v, int first) {
  int path[DIM_LEVELS], n = lua_gettop(L) - first + 1;
  if (n > DIM_LEVELS)
    face_error(L, ERR_LIMIT, "a basis has at most %d levels", DIM_LEVELS);
  for (int i = 0; i < n; i++) path[i] = laylib_mode(L, first + i);
  face_push_dim(L, dim_basis(cx, v, path, n));
  return 1;
}

static int l_basis(lua_State *L) {
  return push_in_modes(face_enter(L), L, (Dim){1}, 1);
}

// ScaledBasis(value, mode, ...) -> the basis value@...@mode
static int l_scaled(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim v;
  if (!face_test_dim(cx, L, 1, &v)) face_argerror(L, 1, "integer");
  return push_in_modes(cx, L, v, 2);
}

static int l_basis_value(lua_State *L) {
  Dim d;
  if (!face_test_dim(face_enter(L), L, 1, &d)) face_argerror(L, 1, "basis");
  face_push_dim(L, dim_basis_value(d));
  return 1;
}

// basis_get(e, t) -> the entry of tuple t that basis e selects.
static int l_basis_get(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim d;
  if (!face_test_dim(cx, L, 1, &d)) face_argerror(L, 1, "basis");
  Tup t = laylib_shape(cx, L, 2);
  int path[DIM_LEVELS], n = dim_basis_path(d, path);
  for (int i = 0; i < n; i++) t = tup_get(cx, t, path[i]);
  laylib_push_any(L, t);
  return 1;
}

// make_swizzle(b, m, s), make_swizzle(yyy_mask, zzz_mask) -> a swizzle
static int l_swizzle(lua_State *L) {
  Ctx *cx = face_enter(L);
  int64_t b = face_checkint(L, 1), m = face_checkint(L, 2);
  Swizzle w;
  if (lua_isnoneornil(L, 3) && !swizzle_test_masks(b, m, &w))
    face_error(L, ERR_INADMISSIBLE, "cute.make_swizzle: two arguments are "
               "masks, and 0x%llx and 0x%llx do not form a swizzle: they must "
               "have equally many contiguous bits and not overlap\n  write "
               "cute.make_swizzle(b, m, s) to xor the b bits from bit m + s "
               "on into those from bit m on", (unsigned long long)b,
               (unsigned long long)m);
  laylib_push_swizzle(L, lua_isnoneornil(L, 3)
                           ? swizzle_from_masks(cx, b, m)
                           : swizzle_make(cx, b, m, face_checkint(L, 3)));
  return 1;
}

// ---- tuples as tables ----

// Pushes the text of the tuple in the table at idx. Reads the table without
// scratch, because another binding may be using scratch.
static void table_text(lua_State *L, int idx, int depth) {
  luaL_Buffer out;
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
  if (depth > TUP_DEPTH_MAX)
    face_error(L, ERR_LIMIT, "tuples nest at most %d deep", TUP_DEPTH_MAX);
  luaL_checkstack(L, LUA_MINSTACK, "tuple");
  luaL_buffinit(L, &out);
  luaL_addchar(&out, '(');
  for (lua_Integer i = 1; i <= n; i++) {
    if (i > 1) luaL_addchar(&out, ',');
    if (lua_rawgeti(L, idx, i) == LUA_TTABLE)
      table_text(L, lua_gettop(L), depth + 1);
    else
      luaL_tolstring(L, -1, NULL);
    lua_remove(L, -2);
    luaL_addvalue(&out);
  }
  luaL_addchar(&out, ')');
  luaL_pushresult(&out);
}

static int tuple_tostring(lua_State *L) {
  if (lua_type(L, 1) != LUA_TTABLE) face_argerror(L, 1, "tuple");
  table_text(L, 1, 0);
  return 1;
}

static int tuple_eq(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup a = laylib_tree(cx, L, 1), b = laylib_tree(cx, L, 2);
  lua_pushboolean(L, tup_eq(a, b));
  return 1;
}

// ---- module ----

static void types_open(lua_State *L) {
  static const luaL_Reg layout_meta[] = {
    {"__call", layout_call}, {"__tostring", layout_tostring},
    {"__eq", layout_leq}, {"__newindex", layout_newindex},
    {"__concat", any_concat}, {NULL, NULL}};
  static const FnRow layout_rows[] = {
    {"equals(other)", "ll>Q", FN(layout_equals)}, LAST_ROW};
  static const luaL_Reg const_meta[] = {
    {"__call", const_call}, {"__tostring", const_tostring},
    {"__eq", const_eq}, {"__mul", const_mul}, {"__add", any_add},
    {"__index", const_index}, {"__concat", any_concat}, {NULL, NULL}};
  static const luaL_Reg tuple_meta[] = {
    {"__tostring", tuple_tostring}, {"__eq", tuple_eq}, {"__add", any_add},
    {"__concat", any_concat}, {"__index", tuplelib_index}, {NULL, NULL}};
  luaL_newmetatable(L, MT_LAYOUT);
  face_setfuncs(L, layout_meta);
  face_setrows(L, layout_rows);
  lua_getfield(L, LUA_REGISTRYINDEX, "cute.ctx");
  lua_pushlightuserdata(L, lua_touserdata(L, -1));
  lua_remove(L, -2);
  lua_pushvalue(L, -2);  // the metatable also contains the methods
  lua_pushcclosure(L, layout_index, 2);
  lua_setfield(L, -2, "__index");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &laylib_layout_key);
  luaL_newmetatable(L, MT_CONST);
  face_setfuncs(L, const_meta);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &laylib_const_key);
  face_newtype(L, MT_TUPLE, tuple_meta);
  laylib_push_const(L, CONST_ANY);
  lua_setfield(L, -2, "_");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &laylib_tuple_key);
}

static void constants_open(lua_State *L) {
  face_push_dim(L, dim_any());
  lua_setfield(L, -2, "_");
  laylib_push_const(L, CONST_X);
  lua_setfield(L, -2, "X");
  laylib_push_const(L, CONST_LEFT);
  lua_setfield(L, -2, "LayoutLeft");
  laylib_push_const(L, CONST_RIGHT);
  lua_setfield(L, -2, "LayoutRight");
}

static const FnRow rows[] = {
  {"make_swizzle(b, m, s?)", "", FN(l_swizzle)},
  {"Swizzle(b, m, s?)", "", FN(l_swizzle)},
  {"E(modes...)", "", FN(l_basis)},
  {"F2(v)", "i>d", FN(dim_xor)},
  {"ScaledBasis(value, modes...)", "", FN(l_scaled)},
  {"ArithmeticTuple(values...)", "*>P", FN(tup_wrap)},
  {"basis_value(e)", "", FN(l_basis_value)},
  {"basis_get(e, t)", "", FN(l_basis_get)},
  LAST_ROW};

void layoutlib_open(lua_State *L) {
  types_open(L);
  face_setrows(L, rows);
  constants_open(L);
}
// SPDX-License-Identifier: MIT
