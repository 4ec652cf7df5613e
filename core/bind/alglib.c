// Lua face of the layout algebra: functions on layouts, which take tensors
// too where the operation only changes how a tensor is looked at.
#include "bind/laylib.h"

#include <string.h>

// ---- making ----

static Layout from_shape(Ctx *cx, lua_State *L, Tup shape) {
  if (laylib_is(L, 2, CONST_RIGHT)) return layout_compact_right(cx, shape);
  if (lua_isnoneornil(L, 2) || laylib_is(L, 2, CONST_LEFT))
    return layout_compact(cx, shape);
  return layout_make(cx, shape, face_check_tup(cx, L, 2));
}

// make_layout(shape[, stride]), or (layout, layout, ..)
static int l_make_layout(lua_State *L) {
  Ctx *cx = face_enter(L);
  Swizzle sw;
  if (laylib_box(L, 1)) {
    int n = lua_gettop(L);
    Layout *l = NEW(cx, Layout, (size_t)n);
    for (int i = 0; i < n; i++) l[i] = face_check_layout(L, i + 1);
    face_push_layout(L, layout_concat(cx, l, n));
  } else if (laylib_test_swizzle(L, 1, &sw)) {
    int n = sw.m + sw.b + (sw.s < 0 ? -sw.s : sw.s);
    Layout l = layout_leaf(cx, dim_int(cx, n), dim_int(cx, 1));
    face_push_layout(L, layout_swizzled(cx, sw, dim_int(cx, 0), l));
  } else {
    Tup shape = face_check_tup(cx, L, 1);
    face_push_layout(L, from_shape(cx, L, shape));
  }
  return 1;
}

static int l_ordered(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup shape = face_check_tup(cx, L, 1);
  Tup order = laylib_order(cx, L, 2, shape);
  face_push_layout(L, order ? layout_ordered(cx, shape, order)
                            : layout_compact(cx, shape));
  return 1;
}

static int l_like(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_push_layout(L, layout_like(cx, laylib_operand(L, 1).l));
  return 1;
}

static int l_fragment_like(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  Layout l = laylib_test_operand(L, 1, &o)
               ? layout_fragment_like(cx, o.l)
               : layout_compact(cx, face_check_tup(cx, L, 1));
  face_push_layout(L, l);
  return 1;
}

static int l_identity(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_push_layout(L, layout_identity(cx, face_check_tup(cx, L, 1)));
  return 1;
}

// The swizzle or layout at 1 o the offset at 2 o the layout or tensor at 3.
static int push_composed(Ctx *cx, lua_State *L) {
  Dim o = {0};
  Swizzle sw;
  Layout a;
  bool swizzled = laylib_test_swizzle(L, 1, &sw);
  if (!swizzled && !face_test_layout(L, 1, &a))
    face_argerror(L, 1, "swizzle or layout");
  if (!face_test_dim(cx, L, 2, &o) ||
      (dim_kind(o) != DIM_INT && dim_kind(o) != DIM_DYN))
    face_argerror(L, 2, "offset");
  Operand x = laylib_operand(L, 3);
  return laylib_push_operand(L, &x, swizzled
                                      ? layout_swizzled(cx, sw, o, x.l)
                                      : layout_composed(cx, a, o, x.l));
}

// make_composed_layout(swizzle or layout, offset, layout)
static int l_composed(lua_State *L) { return push_composed(face_enter(L), L); }

static int l_layout_tv(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup tiler;
  Layout thr = face_check_layout(L, 1), val = face_check_layout(L, 2);
  Layout tv = layout_tv(cx, thr, val, &tiler);
  laylib_push_any(L, tiler);
  face_push_layout(L, tv);
  return 2;
}

// make_layout_image_mask(l, coord, mode): a bit for every offset that l
// reaches from coord along that mode (multicast masks).
static int l_image_mask(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = face_check_layout(L, 1);
  Tup c = tup_wrap(cx, face_check_tup(cx, L, 2));
  int mode = laylib_mode(L, 3);
  c = tup_replace(cx, c, mode, tup_leaf(cx, dim_any()));
  Dim off;
  Layout s = layout_slice(cx, l, c, &off);
  if (!layout_static(s) || !dim_static(off))
    face_error(L, ERR_STATIC, "make_layout_image_mask: static operands only");
  int64_t n = dim_value(layout_size(cx, s)), mask = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t x = off.w + dim_value(layout_eval_at(cx, s, dim_int(cx, i)));
    if (x < 0 || x > 62)
      face_error(L, ERR_LIMIT, "make_layout_image_mask: offset %d is no bit "
                 "of a mask", (int)x);
    mask |= (int64_t)1 << x;
  }
  lua_pushinteger(L, mask);
  return 1;
}

// ---- looking ----

// The shape of the layout, tensor or tuple at 1, by the modes after it.
static Tup shape_arg(Ctx *cx, lua_State *L) {
  Tup t = laylib_shape(cx, L, 1);
  int n, *m = laylib_modes(cx, L, 2, &n);
  for (int i = 0; i < n; i++) t = tup_get(cx, t, m[i]);
  return t;
}

static Layout layout_arg(Ctx *cx, lua_State *L) {
  Layout l = laylib_operand(L, 1).l;
  int n, *m = laylib_modes(cx, L, 2, &n);
  for (int i = 0; i < n; i++) l = layout_mode(cx, l, m[i]);
  return l;
}

static int l_size(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_push_dim(L, tup_size(cx, shape_arg(cx, L)));
  return 1;
}

static int l_rank(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_pushinteger(L, tup_rank(shape_arg(cx, L)));
  return 1;
}

static int l_depth(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_pushinteger(L, tup_depth(shape_arg(cx, L)));
  return 1;
}

static int l_shape(lua_State *L) {
  Ctx *cx = face_enter(L);
  laylib_push_any(L, shape_arg(cx, L));
  return 1;
}

static int l_stride(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = layout_arg(cx, L);
  laylib_push_any(L, laylib_stride(cx, L, l));
  return 1;
}

static int l_cosize(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_push_dim(L, layout_cosize(cx, layout_arg(cx, L)));
  return 1;
}

static int l_coshape(lua_State *L) {
  Ctx *cx = face_enter(L);
  laylib_push_any(L, layout_coshape(cx, layout_arg(cx, L)));
  return 1;
}

static int l_max_alignment(lua_State *L) {
  Ctx *cx = face_enter(L);
  Swizzle sw;
  lua_pushinteger(L, laylib_test_swizzle(L, 1, &sw)
                       ? (lua_Integer)1 << sw.m
                       : layout_max_alignment(cx, laylib_operand(L, 1).l));
  return 1;
}

static int l_get_swizzle(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout rest;
  const Outer *f = layout_last(cx, laylib_operand(L, 1).l, &rest);
  bool is = f && f->kind == OUTER_SWIZZLE;
  laylib_push_swizzle(L, is ? f->sw : SWIZZLE_NONE);
  return 1;
}

static int l_nonswizzle(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o = laylib_operand(L, 1);
  Layout rest;
  const Outer *f = layout_last(cx, o.l, &rest);
  bool is = f && f->kind == OUTER_SWIZZLE;
  return laylib_push_operand(L, &o, is ? rest : o.l);
}

// is_static(x): nothing traced in a layout, tensor or tuple
static int l_is_static(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o;
  if (laylib_test_operand(L, 1, &o))
    lua_pushboolean(L, layout_static(o.l));
  else
    lua_pushboolean(L, tup_static(laylib_tree(cx, L, 1)));
  return 1;
}

static int l_divisibility(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim d;
  if (!face_test_dim(cx, L, 1, &d)) face_argerror(L, 1, "integer");
  lua_pushinteger(L, dim_div(cx, d));
  return 1;
}

// ---- coordinates ----

static int l_crd2idx(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup c = face_check_tup(cx, L, 1);
  Operand o;
  if (laylib_test_operand(L, 2, &o)) {
    laylib_push_any(L, layout_eval_tup(cx, o.l, c));
    return 1;
  }
  Tup s = face_check_tup(cx, L, 2);
  const Dim *d = lua_isnoneornil(L, 3)
                   ? NULL
                   : layout_make(cx, s, face_check_tup(cx, L, 3)).stride;
  laylib_push_any(L, tup_crd2idx(cx, c, s, d));
  return 1;
}

static int coord_of(lua_State *L, Tup (*f)(Ctx *, Layout, Tup)) {
  Ctx *cx = face_enter(L);
  Layout l = laylib_operand(L, 1).l;
  laylib_push_any(L, f(cx, l, face_check_tup(cx, L, 2)));
  return 1;
}

static int l_hier(lua_State *L) { return coord_of(L, layout_hier_coord); }
static int l_flat(lua_State *L) { return coord_of(L, layout_flat_coord); }

static int l_1d(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = laylib_operand(L, 1).l;
  face_push_dim(L, layout_1d_coord(cx, l, face_check_tup(cx, L, 2)));
  return 1;
}

static bool is_source(lua_State *L, int idx) {
  Operand o;
  return laylib_test_operand(L, idx, &o);
}

// The coordinate and the source of a slice, in either order: the source is
// the layout or tensor; of two tuples the coordinate is the one with `_`.
static void slice_args(Ctx *cx, lua_State *L, int *src, Tup *coord) {
  *src = 1;
  if (is_source(L, 2) ||
      (!is_source(L, 1) && tup_has(face_check_tup(cx, L, 1), DIM_ANY)))
    *src = 2;
  *coord = face_check_tup(cx, L, 3 - *src);
}

static int l_slice(lua_State *L) {
  Ctx *cx = face_enter(L);
  int src;
  Tup c, off;
  slice_args(cx, L, &src, &c);
  Operand o;
  if (!laylib_test_operand(L, src, &o)) {
    laylib_push_any(L, tup_slice(cx, c, face_check_tup(cx, L, src)));
  } else if (o.tensor) {
    Tensor t = tensor_slice(cx, o.t, c);
    o.t = t;
    laylib_push_operand(L, &o, t.l);
  } else {
    face_push_layout(L, layout_slice_tup(cx, o.l, c, &off));
  }
  return 1;
}

static int l_dice(lua_State *L) {
  Ctx *cx = face_enter(L);
  int src;
  Tup c;
  slice_args(cx, L, &src, &c);
  Operand o;
  if (laylib_test_operand(L, src, &o))
    return laylib_push_operand(L, &o, layout_dice(cx, o.l, c));
  laylib_push_any(L, tup_dice(cx, c, face_check_tup(cx, L, src)));
  return 1;
}

// slice_and_offset(coord, layout): the slice and where it begins
static int l_slice_and_offset(lua_State *L) {
  Ctx *cx = face_enter(L);
  int src;
  Tup c, off;
  slice_args(cx, L, &src, &c);
  Layout l = face_check_layout(L, src);
  face_push_layout(L, layout_slice_tup(cx, l, c, &off));
  laylib_push_any(L, off);
  return 2;
}

static int l_domain_offset(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup off, c = face_check_tup(cx, L, 1);
  Layout l = face_check_layout(L, 2);
  face_push_layout(L, layout_domain_offset(cx, l, c, &off));
  laylib_push_any(L, off);
  return 2;
}

// ---- one layout to another ----

typedef Layout Unary(Ctx *cx, Layout l);
typedef Layout ByProfile(Ctx *cx, Layout l, Tup by);

// Of a tensor too, the layout: its values are coordinates.
static int to_layout(lua_State *L, Unary *f) {
  Ctx *cx = face_enter(L);
  face_push_layout(L, f(cx, laylib_operand(L, 1).l));
  return 1;
}

static int by_profile(lua_State *L, Unary *f, ByProfile *g) {
  Ctx *cx = face_enter(L);
  Operand o = laylib_operand(L, 1);
  Layout l = lua_isnoneornil(L, 2) ? f(cx, o.l)
                                   : g(cx, o.l, face_check_tup(cx, L, 2));
  return laylib_push_operand(L, &o, l);
}

// coalesce(layout[, profile]), or of a shape
static int l_coalesce(lua_State *L) {
  int t = lua_type(L, 1);
  if ((t == LUA_TTABLE || t == LUA_TNUMBER) && lua_isnoneornil(L, 2)) {
    Ctx *cx = face_enter(L);
    laylib_push_any(L, tup_coalesce(cx, face_check_tup(cx, L, 1)));
    return 1;
  }
  return by_profile(L, layout_coalesce, layout_coalesce_by);
}

static int l_filter(lua_State *L) {
  return by_profile(L, layout_filter, layout_filter_by);
}

// Swizzles are their own inverses.
static int inverse(lua_State *L, Unary *f) {
  ConstBox *c = laylib_const(L, 1);
  if (!c || (c->kind != CONST_SWIZZLE && c->kind != CONST_ANY))
    return to_layout(L, f);
  lua_settop(L, 1);
  return 1;
}

static int l_right_inverse(lua_State *L) {
  return inverse(L, layout_right_inverse);
}

static int l_left_inverse(lua_State *L) {
  return inverse(L, layout_left_inverse);
}

static int l_nullspace(lua_State *L) {
  return to_layout(L, layout_nullspace);
}

static int l_coprofile(lua_State *L) {
  Ctx *cx = face_enter(L);
  laylib_push_any(L, layout_coprofile(cx, layout_arg(cx, L)));
  return 1;
}

// greatest_common_domain(a, b): of shapes, or those of layouts and tensors
static int l_common_domain(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup a = laylib_shape(cx, L, 1), b = laylib_shape(cx, L, 2);
  face_push_layout(L, layout_greatest_common_domain(cx, a, b));
  return 1;
}

static int l_layout_add(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout a = laylib_operand(L, 1).l, b = laylib_operand(L, 2).l;
  face_push_layout(L, layout_add(cx, a, b));
  return 1;
}

static int l_complement(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = laylib_operand(L, 1).l;
  Tup t = lua_isnoneornil(L, 2) ? NULL : laylib_shape(cx, L, 2);
  face_push_layout(L, layout_complement_shape(cx, l, t));
  return 1;
}

static int l_with_shape(lua_State *L) {
  Ctx *cx = face_enter(L);
  Operand o = laylib_operand(L, 1);
  Tup s = laylib_coord(cx, L, 2);
  return laylib_push_operand(L, &o, layout_with_shape(cx, o.l, s));
}

static int l_max_common_layout(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout a = laylib_operand(L, 1).l, b = laylib_operand(L, 2).l;
  face_push_layout(L, layout_max_common_layout(cx, a, b));
  return 1;
}

static int l_max_common_vector(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout a = laylib_operand(L, 1).l, b = laylib_operand(L, 2).l;
  lua_pushinteger(L, layout_max_common_vector(cx, a, b));
  return 1;
}

static int l_domain_distribute(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup s = laylib_shape(cx, L, 1);
  Dim n = dim_int(cx, laylib_int(L, 2));
  face_push_layout(L, layout_domain_distribute(cx, s, n));
  return 1;
}

// ---- composition, divides, products ----

static int l_composition(lua_State *L) {
  Ctx *cx = face_enter(L);
  Swizzle sw, sw2;
  if (lua_gettop(L) >= 3) return push_composed(cx, L);
  if (laylib_test_swizzle(L, 1, &sw)) {
    if (laylib_test_swizzle(L, 2, &sw2)) {
      laylib_push_swizzle(L, swizzle_compose(cx, sw, sw2));
      return 1;
    }
    Operand x = laylib_operand(L, 2);
    return laylib_push_operand(L, &x, layout_swizzled(cx, sw, (Dim){0}, x.l));
  }
  Operand o = laylib_operand(L, 1);
  if (laylib_test_swizzle(L, 2, &sw))
    return laylib_push_operand(L, &o, layout_compose_swizzle(cx, o.l, sw));
  Layout b;
  if (face_test_layout(L, 2, &b))
    return laylib_push_operand(L, &o, layout_compose(cx, o.l, b));
  Tiler t = laylib_tiler(cx, L, 2);
  return laylib_push_operand(L, &o, layout_compose_tiler(cx, o.l, t));
}

typedef Layout WithTiler(Ctx *cx, Layout l, Tiler t);

static int with_tiler(lua_State *L, WithTiler *f) {
  Ctx *cx = face_enter(L);
  Operand o = laylib_operand(L, 1);
  return laylib_push_operand(L, &o, f(cx, o.l, laylib_tiler(cx, L, 2)));
}

#define TILED(name) \
  static int l_##name(lua_State *L) { return with_tiler(L, layout_##name); }
TILED(logical_divide)
TILED(zipped_divide)
TILED(tiled_divide)
TILED(flat_divide)
TILED(logical_product)
TILED(zipped_product)
TILED(tiled_product)
TILED(flat_product)
TILED(tile_unzip)
#undef TILED

static int rank_product(lua_State *L, Layout (*f)(Ctx *, Layout, Layout)) {
  Ctx *cx = face_enter(L);
  Operand o = laylib_operand(L, 1);
  return laylib_push_operand(L, &o, f(cx, o.l, laylib_layout(cx, L, 2)));
}

static int l_blocked_product(lua_State *L) {
  return rank_product(L, layout_blocked_product);
}

static int l_raked_product(lua_State *L) {
  return rank_product(L, layout_raked_product);
}

static int l_tile_to_shape(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = face_check_layout(L, 1);
  Tup shape = face_check_tup(cx, L, 2);
  Tup order = laylib_order(cx, L, 3, tup_product_each(cx, shape));
  face_push_layout(L, layout_tile_to_shape(cx, l, shape, order));
  return 1;
}

// Is it a layout, or a list with one in it?
static bool has_layout(lua_State *L, int idx) {
  if (laylib_box(L, idx)) return true;
  if (lua_type(L, idx) != LUA_TTABLE || lua_gettop(L) > TUP_DEPTH_MAX)
    return false;
  luaL_checkstack(L, 2, "tiler");
  bool has = false;
  for (lua_Integer i = 1, n = (lua_Integer)lua_rawlen(L, idx);
       i <= n && !has; i++) {
    lua_rawgeti(L, idx, i);
    has = has_layout(L, lua_gettop(L));
    lua_pop(L, 1);
  }
  return has;
}

// ceil_div(shape or integer, tiler)
static int l_ceil_div(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup s = laylib_shape(cx, L, 1);
  if (has_layout(L, 2))
    laylib_push_any(L, layout_ceil_div(cx, s, laylib_tiler(cx, L, 2)));
  else
    laylib_push_any(L, tup_ceil_div(cx, s, face_check_tup(cx, L, 2)));
  return 1;
}

// ---- widths ----

static int64_t bits_arg(lua_State *L, int idx) {
  DType t = face_test_dtype(L, idx);
  return t == DT_NONE ? laylib_int(L, idx) : dtype_bits(t);
}

static int cast(lua_State *L, Layout (*f)(Ctx *, Layout, int64_t),
                Swizzle (*g)(Ctx *, Swizzle, int64_t)) {
  Ctx *cx = face_enter(L);
  Swizzle sw;
  int64_t n = laylib_int(L, 2);
  if (laylib_test_swizzle(L, 1, &sw))
    laylib_push_swizzle(L, g(cx, sw, n));
  else
    face_push_layout(L, f(cx, face_check_layout(L, 1), n));
  return 1;
}

static int l_upcast(lua_State *L) {
  return cast(L, layout_upcast, swizzle_upcast);
}

static int l_downcast(lua_State *L) {
  return cast(L, layout_downcast, swizzle_downcast);
}

// recast_layout(new, old, layout), or (layout, old, new) as in C++; widths in
// bits or element types
static int l_recast_layout(lua_State *L) {
  Ctx *cx = face_enter(L);
  int at = laylib_box(L, 1) ? 1 : 3;
  int64_t from = bits_arg(L, 2), to = bits_arg(L, 4 - at);
  Layout l = face_check_layout(L, at);
  face_push_layout(L, layout_recast(cx, l, from, to));
  return 1;
}

// ---- notation ----

static void push_tiler(lua_State *L, Tiler t) {
  if (t.extent) {
    laylib_push_any(L, t.l.shape);
  } else if (t.kind == TILER_LAYOUT) {
    face_push_layout(L, t.l);
  } else if (t.kind == TILER_ANY) {
    face_push_dim(L, dim_any());
  } else {
    luaL_checkstack(L, 4, "tiler");
    lua_createtable(L, t.n, 0);
    for (int i = 0; i < t.n; i++) {
      push_tiler(L, t.mode[i]);
      lua_rawseti(L, -2, i + 1);
    }
    laylib_set_tuple(L);
  }
}

// layout "(8,8):(8,1)"; a layout stays as it is.
static int l_layout(lua_State *L) {
  Ctx *cx = face_enter(L);
  size_t n;
  if (laylib_box(L, 1)) {
    lua_settop(L, 1);
    return 1;
  }
  if (lua_type(L, 1) != LUA_TSTRING) face_argerror(L, 1, "layout notation");
  const char *s = lua_tolstring(L, 1, &n);
  face_push_layout(L, layout_parse(cx, s, n));
  return 1;
}

// parse(s): whatever s is: integer, tuple, layout, tiler, swizzle.
static int l_parse(lua_State *L) {
  Ctx *cx = face_enter(L);
  size_t n;
  if (lua_type(L, 1) != LUA_TSTRING) face_argerror(L, 1, "notation");
  const char *s = lua_tolstring(L, 1, &n);
  Notation v = note_parse(cx, s, n);
  switch (v.kind) {
  case NOTE_TUP: laylib_push_any(L, v.t); break;
  case NOTE_LAYOUT: face_push_layout(L, v.l); break;
  case NOTE_SWIZZLE: laylib_push_swizzle(L, v.sw); break;
  case NOTE_TILER: push_tiler(L, v.tiler); break;
  }
  return 1;
}

// tuple{8,{8,8}}: a copy that prints in CuTe notation.
static int l_tuple(lua_State *L) {
  Ctx *cx = face_enter(L);
  laylib_push_any(L, laylib_tree(cx, L, 1));
  return 1;
}

// ---- explain ----

// explain_begin() -> token; explain_end(token) -> text of the steps since.
static int l_explain_begin(lua_State *L) {
  Ctx *cx = face_enter(L);
  Buf *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  luaL_setmetatable(L, "cute.explain");
  explain_to(cx, b);
  return 1;
}

static int l_explain_end(lua_State *L) {
  Ctx *cx = face_enter(L);
  Buf *b = face_checkudata(L, 1, "cute.explain");
  if (explain_on(cx) == b) explain_to(cx, NULL);
  lua_pushlstring(L, b->p ? b->p : "", b->n);
  buf_free(b);
  return 1;
}

static int explain_gc(lua_State *L) {
  Ctx *cx = face_ctx(L);
  Buf *b = face_checkudata(L, 1, "cute.explain");
  if (explain_on(cx) == b) explain_to(cx, NULL);
  buf_free(b);
  return 0;
}

// ---- the modes of layouts; of tuples in tuplelib.c ----

static const char *const methods[] = {
  "size", "rank", "depth", "cosize", "coshape", "get_hier_coord",
  "get_flat_coord", "get_1d_coord", "coalesce", "filter", "filter_zeros",
  "flatten", "unflatten", "composition", "complement", "right_inverse",
  "left_inverse", "nullspace", "with_shape", "logical_divide",
  "zipped_divide", "tiled_divide", "flat_divide", "logical_product",
  "zipped_product", "tiled_product", "flat_product", "blocked_product",
  "raked_product", "tile_to_shape", "upcast", "downcast", "get", "take",
  "select", "group", "group_modes", "append", "prepend", "replace",
  "max_alignment", "is_static", "get_swizzle_portion",
  "get_nonswizzle_portion", "dice", NULL};

void alglib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"make_layout(shape, stride?, layouts...)", l_make_layout},
    {"make_ordered_layout(shape, order?)", l_ordered},
    {"make_layout_like(layout)", l_like},
    {"make_fragment_like(x, dtype?)", l_fragment_like},
    {"make_identity_layout(shape)", l_identity},
    {"make_composed_layout(left, offset, layout)", l_composed},
    {"make_layout_tv(thr, val)", l_layout_tv},
    {"make_layout_image_mask(layout, coord, mode)", l_image_mask},
    {"size(x, modes...)", l_size}, {"rank(x, modes...)", l_rank},
    {"depth(x, modes...)", l_depth}, {"product(x, modes...)", l_size},
    {"shape(x, modes...)", l_shape}, {"stride(x, modes...)", l_stride},
    {"cosize(x, modes...)", l_cosize}, {"coshape(x, modes...)", l_coshape},
    {"max_alignment(x)", l_max_alignment}, {"get_swizzle(x)", l_get_swizzle},
    {"get_swizzle_portion(x)", l_get_swizzle},
    {"get_nonswizzle_portion(x)", l_nonswizzle}, {"is_static(x)", l_is_static},
    {"get_divisibility(x)", l_divisibility},
    {"crd2idx(coord, shape, stride?)", l_crd2idx},
    {"get_hier_coord(layout, offset)", l_hier},
    {"get_flat_coord(layout, offset)", l_flat},
    {"get_1d_coord(layout, offset)", l_1d}, {"slice_(src, coord)", l_slice},
    {"slice(src, coord)", l_slice}, {"dice(src, coord)", l_dice},
    {"slice_and_offset(coord, layout)", l_slice_and_offset},
    {"domain_offset(coord, x)", l_domain_offset},
    {"coalesce(layout, profile?)", l_coalesce},
    {"filter(layout, profile?)", l_filter},
    {"right_inverse(layout)", l_right_inverse},
    {"left_inverse(layout)", l_left_inverse},
    {"nullspace(layout)", l_nullspace},
    {"complement(layout, cotarget?)", l_complement},
    {"with_shape(layout, shape...)", l_with_shape},
    {"coprofile(layout, modes...)", l_coprofile},
    {"layout_add(a, b)", l_layout_add},
    {"greatest_common_domain(a, b)", l_common_domain},
    {"max_common_layout(a, b)", l_max_common_layout},
    {"max_common_vector(a, b)", l_max_common_vector},
    {"domain_distribute(shape, n)", l_domain_distribute},
    {"composition(a, b, c?)", l_composition},
    {"logical_divide(layout, tiler)", l_logical_divide},
    {"zipped_divide(layout, tiler)", l_zipped_divide},
    {"tiled_divide(layout, tiler)", l_tiled_divide},
    {"flat_divide(layout, tiler)", l_flat_divide},
    {"logical_product(layout, tiler)", l_logical_product},
    {"zipped_product(layout, tiler)", l_zipped_product},
    {"tiled_product(layout, tiler)", l_tiled_product},
    {"flat_product(layout, tiler)", l_flat_product},
    {"tile_unzip(layout, tiler)", l_tile_unzip},
    {"blocked_product(layout, t)", l_blocked_product},
    {"raked_product(layout, t)", l_raked_product},
    {"tile_to_shape(block, shape, order?)", l_tile_to_shape},
    {"ceil_div(shape, tiler)", l_ceil_div}, {"upcast(layout, n)", l_upcast},
    {"downcast(layout, n)", l_downcast},
    {"recast_layout(new, old, layout)", l_recast_layout},
    {"layout(text)", l_layout}, {"parse(text)", l_parse}, {"tuple(t)", l_tuple},
    {"explain_begin", l_explain_begin}, {"explain_end", l_explain_end},
    {NULL, NULL}};
  static const luaL_Reg explain_meta[] = {{"__gc", explain_gc}, {NULL, NULL}};
  face_newtype(L, "cute.explain", explain_meta);
  lua_pop(L, 1);
  face_setfuncs(L, funcs);
  laylib_methods(L, MT_LAYOUT, methods);
}
