// Lua face of IntTuples, and of the functions that move modes about, which
// tuples, layouts and tensors share.
#include "bind/laylib.h"

#include <string.h>

// ---- arguments ----

Tup laylib_shape(Ctx *cx, lua_State *L, int idx) {
  Operand o;
  return laylib_test_operand(L, idx, &o)
           ? o.l.shape
           : tup_shape(cx, laylib_tree(cx, L, idx));
}

Layout laylib_layout(Ctx *cx, lua_State *L, int idx) {
  Layout l;
  if (face_test_layout(L, idx, &l)) return l;
  return layout_compact(cx, face_check_tup(cx, L, idx));
}

Tup laylib_stride(Ctx *cx, lua_State *L, Layout l) {
  if (l.outer && !layout_swizzle(l))
    face_error(L, ERR_INADMISSIBLE, "the values of a composed layout do not go "
               "by strides: %s\n  those of its right side are "
               "get_nonswizzle_portion(l).stride or l.outer.stride",
               layout_text(cx, l));
  return layout_stride(cx, l);
}

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

static int l_get(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  int n, *m = laylib_modes(cx, L, 2, &n);
  if (laylib_test_operand(L, 1, &o)) {
    for (int i = 0; i < n; i++) o.l = layout_mode(cx, o.l, m[i]);
    return laylib_push_operand(L, &o, o.l);
  }
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

static int l_select(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  int n, *m = laylib_modes(cx, L, 2, &n);
  if (laylib_test_operand(L, 1, &o))
    return laylib_push_operand(L, &o, layout_select(cx, o.l, m, n));
  return push(L, tup_select(cx, laylib_tree(cx, L, 1), m, n));
}

static int end_mode(lua_State *L, int idx) {
  return lua_isnoneornil(L, idx) ? -1 : laylib_mode(L, idx);
}

static int l_take(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  int b = laylib_mode(L, 2), e = end_mode(L, 3);
  if (laylib_test_operand(L, 1, &o))
    return laylib_push_operand(L, &o, layout_take(cx, o.l, b, e));
  return push(L, tup_take(cx, laylib_tree(cx, L, 1), b, e));
}

static int l_group(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  int b = lua_isnoneornil(L, 2) ? 0 : laylib_mode(L, 2), e = end_mode(L, 3);
  if (laylib_test_operand(L, 1, &o))
    return laylib_push_operand(L, &o, layout_group(cx, o.l, b, e));
  return push(L, tup_group(cx, laylib_tree(cx, L, 1), b, e));
}

static int l_flatten(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  if (laylib_test_operand(L, 1, &o))
    return laylib_push_operand(L, &o, layout_flatten(cx, o.l));
  return push(L, tup_flatten(cx, laylib_tree(cx, L, 1)));
}

static int l_unflatten(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  Tup p = laylib_shape(cx, L, 2);
  if (laylib_test_operand(L, 1, &o))
    return laylib_push_operand(L, &o, layout_unflatten(cx, o.l, p));
  return push(L, tup_unflatten(cx, laylib_tree(cx, L, 1), p));
}

// append(x, e[, rank]): with a rank, e as often as it takes
static int extend(lua_State *L, bool front) {
  Ctx *cx = face_enter(L);
  Operand o;
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

static int l_append(lua_State *L) { return extend(L, false); }
static int l_prepend(lua_State *L) { return extend(L, true); }

static int l_replace(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  int i = laylib_mode(L, 2);
  if (laylib_test_operand(L, 1, &o)) {
    Layout x = face_check_layout(L, 3);
    return laylib_push_operand(L, &o, layout_replace(cx, o.l, i, x));
  }
  Tup t = laylib_tree(cx, L, 1);
  return push(L, tup_replace(cx, t, i, laylib_tree(cx, L, 3)));
}

// zip(a, b, ..), zip{a, b, ..}, zip(layout), zip(layout, layout, ..)
static int l_zip(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
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

static int l_filter_zeros(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  bool two = !lua_isnoneornil(L, 2);
  if (laylib_test_operand(L, 1, &o)) {
    Layout l = two ? layout_filter_zeros_by(cx, o.l, face_check_tup(cx, L, 2))
                   : layout_filter_zeros(cx, o.l);
    return laylib_push_operand(L, &o, l);
  }
  Tup g = face_check_tup(cx, L, 1);
  return push(L, tup_filter_zeros(cx, g, two ? face_check_tup(cx, L, 2) : g));
}

// ---- tuples alone ----

typedef Tup Unary(Ctx *cx, Tup t);
typedef Dim Fold(Ctx *cx, Tup t);
typedef Tup Binary(Ctx *cx, Tup a, Tup b);

static int unary(lua_State *L, Unary *f) {
  Ctx *cx = face_enter(L);
  return push(L, f(cx, laylib_shape(cx, L, 1)));
}

// Of a layout's or tensor's shape, or a tuple's modes.
static int modes(lua_State *L, Unary *f) {
  Ctx *cx = face_enter(L);
  Operand o;
  return push(L, f(cx, laylib_test_operand(L, 1, &o)
                         ? o.l.shape : laylib_tree(cx, L, 1)));
}

static int binary(lua_State *L, Binary *f) {
  Ctx *cx = face_enter(L);
  Tup a = laylib_shape(cx, L, 1), b = laylib_shape(cx, L, 2);
  return push(L, f(cx, a, b));
}

// Of one tuple, or of the arguments.
static int fold(lua_State *L, Fold *f) {
  Ctx *cx = face_enter(L);
  face_push_dim(L, f(cx, laylib_coord(cx, L, 1)));
  return 1;
}

#define UNARY(name) \
  static int l_##name(lua_State *L) { return unary(L, tup_##name); }
#define MODES(name) \
  static int l_##name(lua_State *L) { return modes(L, tup_##name); }
#define BINARY(name) \
  static int l_##name(lua_State *L) { return binary(L, tup_##name); }
#define FOLD(name) \
  static int l_##name(lua_State *L) { return fold(L, tup_##name); }
MODES(flatten_to_tuple)
UNARY(product_each)
MODES(wrap)
MODES(reverse)
UNARY(basis_like)
FOLD(sum)
FOLD(min)
FOLD(max)
FOLD(gcd)
BINARY(shape_div)
BINARY(round_up)
BINARY(elem_scale)
BINARY(product_like)
BINARY(increment)

static int l_unwrap(lua_State *L) {
  Ctx *cx = face_enter(L);
  return push(L, tup_unwrap(laylib_tree(cx, L, 1)));
}

// The first or last leaf.
static Tup front(Ctx *cx, Tup t) {
  while (!tup_is_leaf(t)) t = tup_get(cx, t, 0);
  return t;
}

static Tup back(Ctx *cx, Tup t) {
  while (!tup_is_leaf(t)) t = tup_get(cx, t, tup_rank(t) - 1);
  return t;
}

static int l_front(lua_State *L) { return modes(L, front); }
static int l_back(lua_State *L) { return modes(L, back); }

static int l_remove(lua_State *L) {
  Ctx *cx = face_enter(L);
  return push(L, tup_remove(cx, laylib_tree(cx, L, 1), laylib_mode(L, 2)));
}

static int l_insert(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup t = laylib_tree(cx, L, 1), x = laylib_tree(cx, L, 3);
  return push(L, tup_insert(cx, t, laylib_mode(L, 2), x));
}

static int l_repeat_like(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim d;
  // (profile, x) as in C++, (x, profile) as in the Python DSL
  int at = lua_type(L, 1) == LUA_TTABLE ? 1 : 2;
  if (lua_type(L, 1) != LUA_TTABLE && lua_type(L, 2) != LUA_TTABLE) at = 1;
  if (!face_test_dim(cx, L, 3 - at, &d)) face_argerror(L, 3 - at, "integer");
  return push(L, tup_repeat_like(cx, laylib_shape(cx, L, at), d));
}

static int l_repeat(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup x = laylib_tree(cx, L, 1);
  int64_t n = laylib_int(L, 2);
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

static int l_inner_product(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup a = face_check_tup(cx, L, 1), b = face_check_tup(cx, L, 2);
  face_push_dim(L, tup_inner_product(cx, a, b));
  return 1;
}

static int l_get_leaves(lua_State *L) {
  return modes(L, tup_flatten_to_tuple);
}

// find(t, x): the mode of t that is x, or nil
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

static int l_congruent(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup a = laylib_shape(cx, L, 1), b = laylib_shape(cx, L, 2);
  lua_pushboolean(L, tup_congruent(a, b));
  return 1;
}

static int l_weakly_congruent(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup a = laylib_shape(cx, L, 1), b = laylib_shape(cx, L, 2);
  lua_pushboolean(L, tup_weakly_congruent(a, b));
  return 1;
}

static int test2(lua_State *L, bool (*f)(Ctx *, Tup, Tup)) {
  Ctx *cx = face_enter(L);
  Tup a = laylib_shape(cx, L, 1), b = laylib_shape(cx, L, 2);
  lua_pushboolean(L, f(cx, a, b));
  return 1;
}

static int l_compatible(lua_State *L) { return test2(L, tup_compatible); }
static int l_weakly_compatible(lua_State *L) {
  return test2(L, tup_weakly_compatible);
}
static int l_evenly_divides(lua_State *L) {
  return test2(L, tup_evenly_divides);
}

static int l_has_underscore(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_pushboolean(L, tup_has(face_check_tup(cx, L, 1), DIM_ANY));
  return 1;
}

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

// Comparisons: swap exchanges the operands, negate the answer.
static int compare(lua_State *L, TupOrder o, bool swap, bool negate) {
  Ctx *cx = face_enter(L);
  Tup a = face_check_tup(cx, L, 1), b = face_check_tup(cx, L, 2);
  Dim d = swap ? tup_less(cx, o, b, a) : tup_less(cx, o, a, b);
  laylib_push_truth(L, negate ? dim_not(cx, d) : d);
  return 1;
}

#define COMPARES(p, o) \
  static int l_##p##_less(lua_State *L) { \
    return compare(L, o, false, false); \
  } \
  static int l_##p##_leq(lua_State *L) { return compare(L, o, true, true); } \
  static int l_##p##_gtr(lua_State *L) { return compare(L, o, true, false); } \
  static int l_##p##_geq(lua_State *L) { return compare(L, o, false, true); }
COMPARES(lex, TUP_LEX)
COMPARES(colex, TUP_COLEX)
COMPARES(elem, TUP_ELEM)

// ---- coordinates and strides ----

static int l_idx2crd(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup i = face_check_tup(cx, L, 1), s = laylib_shape(cx, L, 2);
  Tup d = lua_isnoneornil(L, 3) ? NULL : face_check_tup(cx, L, 3);
  return push(L, tup_idx2crd(cx, i, s, d));
}

static int l_crd2crd(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup c = face_check_tup(cx, L, 1), s = laylib_shape(cx, L, 2);
  return push(L, tup_crd2crd(cx, c, s, laylib_shape(cx, L, 3)));
}

static int compact(lua_State *L, bool right) {
  Ctx *cx = face_enter(L);
  Tup s = laylib_shape(cx, L, 1);
  Tup first = lua_isnoneornil(L, 2) ? NULL : face_check_tup(cx, L, 2);
  return push(L, tup_compact(cx, s, first, right));
}

static int l_compact_col_major(lua_State *L) { return compact(L, false); }
static int l_compact_row_major(lua_State *L) { return compact(L, true); }

static int l_compact_order(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup s = laylib_shape(cx, L, 1), o = laylib_order(cx, L, 2, s);
  return push(L, o ? tup_compact_order(cx, s, o)
                   : tup_compact(cx, s, NULL, false));
}

// is_major(mode, stride): is the stride of that mode (its first leaf) 1?
static int l_is_major(lua_State *L) {
  Ctx *cx = face_enter(L);
  int mode = laylib_mode(L, 1);
  Operand o;
  Tup d = laylib_test_operand(L, 2, &o) ? laylib_stride(cx, L, o.l)
                                        : face_check_tup(cx, L, 2);
  Tup m = tup_get(cx, d, mode);
  while (!tup_is_leaf(m) && tup_rank(m)) m = tup_first(m);
  lua_pushboolean(L, dim_is(*m, 1));
  return 1;
}

// leading_dim(shape, stride): the mode with stride 1 (and more than one
// element), or nil
static int l_leading_dim(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  Tup s, d;
  if (laylib_test_operand(L, 1, &o)) {
    s = o.l.shape;
    d = laylib_stride(cx, L, o.l);
  } else {
    s = face_check_tup(cx, L, 1);
    d = face_check_tup(cx, L, 2);
  }
  if (!tup_congruent(s, d))
    face_error(L, ERR_SHAPE, "leading_dim: shape %s and stride %s differ",
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

void tuplelib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"get(x, modes...)", l_get}, {"select(x, modes...)", l_select},
    {"take(x, b, e?)", l_take}, {"group(x, b?, e?)", l_group},
    {"group_modes(x, b?, e?)", l_group}, {"flatten(x)", l_flatten},
    {"unflatten(x, profile)", l_unflatten}, {"append(x, e?, rank?)", l_append},
    {"prepend(x, e?, rank?)", l_prepend}, {"replace(x, i, e)", l_replace},
    {"zip(tuples...)", l_zip}, {"filter_zeros(x, t?)", l_filter_zeros},
    {"flatten_to_tuple(t)", l_flatten_to_tuple},
    {"product_each(t)", l_product_each},
    {"product_like(t, guide)", l_product_like}, {"wrap(t)", l_wrap},
    {"unwrap(t)", l_unwrap}, {"reverse(t)", l_reverse},
    {"make_basis_like(t)", l_basis_like}, {"sum(tuple...)", l_sum},
    {"min(x, values...)", l_min}, {"max(x, values...)", l_max},
    {"gcd(values...)", l_gcd}, {"front(t)", l_front}, {"back(t)", l_back},
    {"remove(t, i)", l_remove}, {"insert(t, i, x)", l_insert},
    {"repeat_like(profile, x)", l_repeat_like},
    {"repeat_as_tuple(x, n)", l_repeat}, {"tuple_cat(tuples...)", l_tuple_cat},
    {"get_leaves(t)", l_get_leaves}, {"find(t, x)", l_find},
    {"shape_div(a, b)", l_shape_div}, {"round_up(a, b)", l_round_up},
    {"elem_scale(a, b)", l_elem_scale},
    {"inner_product(a, b)", l_inner_product},
    {"increment_coord(coord, shape)", l_increment},
    {"increment(coord, shape)", l_increment}, {"congruent(a, b)", l_congruent},
    {"is_congruent(a, b)", l_congruent},
    {"weakly_congruent(a, b)", l_weakly_congruent},
    {"is_weakly_congruent(a, b)", l_weakly_congruent},
    {"compatible(a, b)", l_compatible},
    {"weakly_compatible(a, b)", l_weakly_compatible},
    {"evenly_divides(a, b)", l_evenly_divides},
    {"has_underscore(t)", l_has_underscore}, {"is_integer(x)", l_is_integer},
    {"is_int_tuple(x)", l_is_int_tuple}, {"lex_less(a, b)", l_lex_less},
    {"lex_leq(a, b)", l_lex_leq}, {"lex_gtr(a, b)", l_lex_gtr},
    {"lex_geq(a, b)", l_lex_geq}, {"colex_less(a, b)", l_colex_less},
    {"colex_leq(a, b)", l_colex_leq}, {"colex_gtr(a, b)", l_colex_gtr},
    {"colex_geq(a, b)", l_colex_geq}, {"elem_less(a, b)", l_elem_less},
    {"elem_leq(a, b)", l_elem_leq}, {"elem_gtr(a, b)", l_elem_gtr},
    {"elem_geq(a, b)", l_elem_geq}, {"idx2crd(idx, shape, stride?)", l_idx2crd},
    {"crd2crd(coord, src, dst)", l_crd2crd},
    {"compact_col_major(shape, first?)", l_compact_col_major},
    {"compact_row_major(shape, first?)", l_compact_row_major},
    {"compact_order(shape, order?)", l_compact_order},
    {"is_major(mode, stride)", l_is_major},
    {"leading_dim(shape, stride?)", l_leading_dim}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
