// Lua bindings of IntTuples, and of functions that rearrange the modes of
// tuples, layouts and tensors.
#include "bind/row.h"

#include <string.h>

#include "bind/laylib.h"

static int push(lua_State *L, Tup t) {
  laylib_push_any(L, t);
  return 1;
}

int tuplelib_index(lua_State *L) {
  Ctx *cx = face_enter(L);
  int isint;
  lua_Integer k = lua_tointegerx(L, 2, &isint);
  if (lua_type(L, 2) == LUA_TNUMBER && isint && k < 1)
    face_error(L, ERR_ARG, "%s[%d]: a tuple counts from 1, as Lua's tables do; "
               "modes in calls, such as size(x, 0), count from 0",
               tup_text(cx, face_check_tup(cx, L, 1)), (int)k);
  lua_pushnil(L);
  return 1;
}

// ---- modes of tuples, layouts, tensors ----

static Layout whole(Ctx *cx, Layout l) {
  (void)cx;
  return l;
}

// get(t, modes...) -> an entry of tuple t, selected by the modes. Leaves of t
// may be layouts.
static int l_get(lua_State *L) {
  Ctx *cx = face_enter(L);
  int n, *m = laylib_modes(cx, L, 2, &n);
  Tup t = laylib_tree(cx, L, 1);
  for (int i = 0; i < n; i++) {
    const Layout *l = dim_getlayout(*t);
    if (l) {
      Layout mode = layout_mode(cx, *l, m[i]);
      t = tup_leaf(cx, dim_layout(memcpy(NEW(cx, Layout, 1), &mode,
                                         sizeof mode)));
    } else {
      t = tup_get(cx, t, m[i]);
    }
  }
  return push(L, t);
}

// Implements append(x, e[, rank]) and, if `front`, prepend. Adds e to x once.
// If a rank is given, adds e until x has this rank.
static int extend(lua_State *L, int front) {
  Ctx *cx = face_enter(L);
  LayoutOperand o;
  bool ranked = !lua_isnoneornil(L, 3);
  int rank = ranked ? laylib_mode(L, 3) : 0;
  if (laylib_test_operand(L, 1, &o)) {
    Layout x = lua_isnoneornil(L, 2)
                 ? layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0))
                 : face_check_layout(L, 2);
    Layout r = front ? (ranked ? layout_prepend_to(cx, o.l, rank, x)
                               : layout_prepend(cx, o.l, x))
                     : (ranked ? layout_append_to(cx, o.l, rank, x)
                               : layout_append(cx, o.l, x));
    return laylib_push_operand(L, &o, r);
  }
  Tup t = laylib_tree(cx, L, 1), x = laylib_tree(cx, L, 2);
  if (front)
    return push(L, ranked ? tup_prepend_to(cx, t, rank, x)
                          : tup_prepend(cx, t, x));
  return push(L, ranked ? tup_append_to(cx, t, rank, x)
                        : tup_append(cx, t, x));
}

// Implements zip(a, b, ..), zip{a, b, ..}, zip(layout) and zip(layout, layout,
// ..).
static int l_zip(lua_State *L) {
  Ctx *cx = face_enter(L);
  LayoutOperand o;
  int n = lua_gettop(L);
  if (laylib_test_operand(L, 1, &o)) {
    Layout *l = NEW(cx, Layout, (size_t)n);
    for (int i = 1; i < n; i++) l[i] = face_check_layout(L, i + 1);
    l[0] = o.l;
    return laylib_push_operand(L, &o, n > 1 ? layout_zip_of(cx, l, n)
                                            : layout_zip(cx, o.l));
  }
  Tup *t = NEW(cx, Tup, (size_t)n + 1);
  t[0] = face_check_tup(cx, L, 1);
  for (int i = 1; i < n; i++) t[i] = face_check_tup(cx, L, i + 1);
  return push(L, tup_zip(cx, n > 1 ? tup_pack(cx, t, n) : t[0]));
}

// ---- tuples only ----

static Tup filter_zeros(Ctx *cx, Tup guide, Tup t) {
  return tup_filter_zeros(cx, guide, t ? t : guide);
}

// Return the first leaf (front) or the last leaf (back) of a tuple.
static Tup front(Ctx *cx, Tup t) {
  while (!tup_is_leaf(t)) t = tup_get(cx, t, 0);
  return t;
}

static Tup back(Ctx *cx, Tup t) {
  while (!tup_is_leaf(t)) t = tup_get(cx, t, tup_rank(t) - 1);
  return t;
}

static int l_repeat_like(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim d;
  // The order of arguments is (profile, x) in C++, (x, profile) in the Python
  // DSL.
  int at = lua_type(L, 1) == LUA_TTABLE ? 1 : 2;
  if (lua_type(L, 1) != LUA_TTABLE && lua_type(L, 2) != LUA_TTABLE) at = 1;
  if (!face_test_dim(cx, L, 3 - at, &d)) face_argerror(L, 3 - at, "integer");
  return push(L, tup_repeat_like(cx, laylib_shape(cx, L, at), d));
}

static int l_repeat(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup x = laylib_tree(cx, L, 1);
  int64_t n = face_checkint(L, 2);
  if (n < 0 || n > TUP_RANK_MAX)
    face_error(L, ERR_LIMIT, "repeat_as_tuple: a tuple has 0 to %d modes, not "
               "%lld", TUP_RANK_MAX, (long long)n);
  TupB b = {0};
  tupb_open(cx, &b);
  for (int i = 0; i < n; i++) tupb_put(cx, &b, x);
  tupb_close(cx, &b);
  return push(L, tupb_done(cx, &b));
}

static int l_tuple_cat(lua_State *L) {
  Ctx *cx = face_enter(L);
  int n = lua_gettop(L);
  Tup *t = NEW(cx, Tup, (size_t)n + 1);
  for (int i = 0; i < n; i++) t[i] = laylib_tree(cx, L, i + 1);
  return push(L, tup_cat(cx, t, n));
}

// find(t, x) -> the index of the mode of t that equals x, or nil
static int l_find(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup t = laylib_tree(cx, L, 1), x = laylib_tree(cx, L, 2);
  Tup m = tup_first(t);
  for (int i = 0, n = tup_rank(t); i < n; i++, m = tup_next(m)) {
    if (!tup_eq(m, x)) continue;
    lua_pushinteger(L, i);
    return 1;
  }
  lua_pushnil(L);
  return 1;
}

// ---- predicates ----

static int l_is_integer(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checkany(L, 1);
  Dim d;
  bool is = (lua_type(L, 1) != LUA_TNUMBER || lua_isinteger(L, 1)) &&
            face_test_dim(cx, L, 1, &d) &&
            (dim_kind(d) == DIM_INT || dim_kind(d) == DIM_DYN);
  lua_pushboolean(L, is);
  return 1;
}

static bool int_tuple(Ctx *cx, lua_State *L, int idx, int depth) {
  Dim d;
  if (lua_type(L, idx) != LUA_TTABLE) {
    if (lua_type(L, idx) == LUA_TNUMBER && !lua_isinteger(L, idx)) return false;
    return face_test_dim(cx, L, idx, &d) && dim_kind(d) != DIM_ANY;
  }
  if (depth == TUP_DEPTH_MAX) return false;
  luaL_checkstack(L, 2, "tuple");
  for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, idx); i <= n; i++) {
    lua_rawgeti(L, idx, i);
    bool is = int_tuple(cx, L, lua_gettop(L), depth + 1);
    lua_pop(L, 1);
    if (!is) return false;
  }
  return true;
}

static int l_is_int_tuple(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_checkany(L, 1);
  lua_pushboolean(L, int_tuple(cx, L, 1, 0));
  return 1;
}

// All comparisons use less-than. SWAP: with swapped operands. NEGATE: with a
// negated result.
enum { SWAP = 4, NEGATE = 8, LESS = 0, LEQ = SWAP | NEGATE, GTR = SWAP,
       GEQ = NEGATE };

static Dim compare(Ctx *cx, int how, Tup a, Tup b) {
  TupOrder o = (TupOrder)(how & 3);
  Dim d = how & SWAP ? tup_less(cx, o, b, a) : tup_less(cx, o, a, b);
  return how & NEGATE ? dim_not(cx, d) : d;
}

// ---- coordinates and strides ----

// is_major(mode, stride) -> whether the stride of that mode is 1; for a nested
// mode, its first stride
static int l_is_major(lua_State *L) {
  Ctx *cx = face_enter(L);
  int mode = laylib_mode(L, 1);
  LayoutOperand o;
  Tup d = laylib_test_operand(L, 2, &o) ? laylib_stride(cx, L, o.l)
                                        : face_check_tup(cx, L, 2);
  Tup m = tup_get(cx, d, mode);
  while (!tup_is_leaf(m) && tup_rank(m)) m = tup_first(m);
  lua_pushboolean(L, dim_is(*m, 1));
  return 1;
}

// leading_dim(shape, stride) -> the mode with stride 1 and more than one
// element, or nil
static int l_leading_dim(lua_State *L) {
  Ctx *cx = face_enter(L);
  LayoutOperand o;
  Tup s, d;
  if (laylib_test_operand(L, 1, &o)) {
    s = o.l.shape;
    d = laylib_stride(cx, L, o.l);
  } else {
    s = face_check_tup(cx, L, 1);
    d = face_check_tup(cx, L, 2);
  }
  if (!tup_congruent(s, d))
    face_error(L, ERR_SHAPE, "leading_dim: shape %s and stride %s are not "
               "congruent",
               tup_text(cx, s), tup_text(cx, d));
  Tup a = tup_first(s), b = tup_first(d);
  for (int i = 0, n = tup_rank(s); i < n; i++) {
    size_t w = tup_words(a);
    for (size_t k = 0; k < w; k++)
      if (tup_is_leaf(a + k) && dim_is(b[k], 1) && !dim_is(a[k], 1)) {
        lua_pushinteger(L, i);
        return 1;
      }
    a = tup_next(a);
    b = tup_next(b);
  }
  lua_pushnil(L);
  return 1;
}

static const FnRow rows[] = {
  {"get(x, modes...)", "K>L", FN(whole)},
  {OR, "", FN(l_get)},
  {"select(x, modes...)", "WM>L", FN(layout_select)},
  {OR, "RM>P", FN(tup_select)},
  {"take(x, b, e?)", "Wme>L", FN(layout_take)},
  {OR, "Rme>P", FN(tup_take)},
  {"group(x, b?, e?)", "Wbe>L", FN(layout_group)},
  {OR, "Rbe>P", FN(tup_group)},
  {"group_modes(x, b?, e?)", "Wbe>L", FN(layout_group)},
  {OR, "Rbe>P", FN(tup_group)},
  {"flatten(x)", "W>L", FN(layout_flatten)},
  {OR, "R>P", FN(tup_flatten)},
  {"unflatten(x, profile)", "LS>L", FN(layout_unflatten)},
  {OR, "RS>P", FN(tup_unflatten)},
  {"append(x, e?, rank?)", "", NUMBERED(extend, false)},
  {"prepend(x, e?, rank?)", "", NUMBERED(extend, true)},
  {"replace(x, i, e)", "Lml>L", FN(layout_replace)},
  {OR, "RmR>P", FN(tup_replace)},
  {"zip(tuples...)", "", FN(l_zip)},
  {"filter_zeros(x, t?)", "Lp>L", FN(layout_filter_zeros)},
  {OR, "Pp>P", FN(filter_zeros)},
  {"flatten_to_tuple(t)", "Y>P", FN(tup_flatten_to_tuple)},
  {"get_leaves(t)", "Y>P", FN(tup_flatten_to_tuple)},
  {"product_each(t)", "S>P", FN(tup_product_each)},
  {"product_like(t, guide)", "SS>P", FN(tup_product_like)},
  {"wrap(t)", "Y>P", FN(tup_wrap)},
  {"unwrap(t)", "R>P", FN(tup_unwrap)},
  {"reverse(t)", "Y>P", FN(tup_reverse)},
  {"make_basis_like(t)", "S>P", FN(tup_basis_like)},
  {"sum(tuple...)", "*>d", FN(tup_sum)},
  {"gcd(values...)", "*>d", FN(tup_gcd)},
  {"front(t)", "Y>P", FN(front)},
  {"back(t)", "Y>P", FN(back)},
  {"remove(t, i)", "Rm>P", FN(tup_remove)},
  {"insert(t, i, x)", "RmR>P", FN(tup_insert)},
  {"repeat_like(profile, x)", "", FN(l_repeat_like)},
  {"repeat_as_tuple(x, n)", "", FN(l_repeat)},
  {"tuple_cat(tuples...)", "", FN(l_tuple_cat)},
  {"find(t, x)", "", FN(l_find)},
  {"shape_div(a, b)", "SS>P", FN(tup_shape_div)},
  {"round_up(a, b)", "SS>P", FN(tup_round_up)},
  {"elem_scale(a, b)", "SS>P", FN(tup_elem_scale)},
  {"inner_product(a, b)", "PP>d", FN(tup_inner_product)},
  {"increment_coord(coord, shape)", "SS>P", FN(tup_increment)},
  {"increment(coord, shape)", "SS>P", FN(tup_increment)},
  {"congruent(a, b)", "SS>Q", FN(tup_congruent)},
  {"is_congruent(a, b)", "SS>Q", FN(tup_congruent)},
  {"weakly_congruent(a, b)", "SS>Q", FN(tup_weakly_congruent)},
  {"is_weakly_congruent(a, b)", "SS>Q", FN(tup_weakly_congruent)},
  {"compatible(a, b)", "SS>Q", FN(tup_compatible)},
  {"weakly_compatible(a, b)", "SS>Q", FN(tup_weakly_compatible)},
  {"evenly_divides(a, b)", "ST>Q", FN(layout_evenly_divides)},
  {"has_underscore(t)", "P>Q", FN(tup_has_any)},
  {"is_integer(x)", "", FN(l_is_integer)},
  {"is_int_tuple(x)", "", FN(l_is_int_tuple)},
  {"lex_less(a, b)", "kPP>q", NUMBERED(compare, TUP_LEX | LESS)},
  {"lex_leq(a, b)", "kPP>q", NUMBERED(compare, TUP_LEX | LEQ)},
  {"lex_gtr(a, b)", "kPP>q", NUMBERED(compare, TUP_LEX | GTR)},
  {"lex_geq(a, b)", "kPP>q", NUMBERED(compare, TUP_LEX | GEQ)},
  {"colex_less(a, b)", "kPP>q", NUMBERED(compare, TUP_COLEX | LESS)},
  {"colex_leq(a, b)", "kPP>q", NUMBERED(compare, TUP_COLEX | LEQ)},
  {"colex_gtr(a, b)", "kPP>q", NUMBERED(compare, TUP_COLEX | GTR)},
  {"colex_geq(a, b)", "kPP>q", NUMBERED(compare, TUP_COLEX | GEQ)},
  {"elem_less(a, b)", "kPP>q", NUMBERED(compare, TUP_ELEM | LESS)},
  {"elem_leq(a, b)", "kPP>q", NUMBERED(compare, TUP_ELEM | LEQ)},
  {"elem_gtr(a, b)", "kPP>q", NUMBERED(compare, TUP_ELEM | GTR)},
  {"elem_geq(a, b)", "kPP>q", NUMBERED(compare, TUP_ELEM | GEQ)},
  {"idx2crd(idx, shape, stride?)", "PSp>P", FN(tup_idx2crd)},
  {"crd2crd(coord, src, dst)", "PSS>P", FN(tup_crd2crd)},
  {"compact_col_major(shape, first?)", "Spk>P", NUMBERED(tup_compact, false)},
  {"compact_row_major(shape, first?)", "Spk>P", NUMBERED(tup_compact, true)},
  {"compact_order(shape, order?)", "SO>P", FN(tup_compact_order)},
  {"is_major(mode, stride)", "", FN(l_is_major)},
  {"leading_dim(shape, stride?)", "", FN(l_leading_dim)},
  LAST_ROW};

void tuplelib_open(lua_State *L) { face_setrows(L, rows); }
// SPDX-License-Identifier: MIT
