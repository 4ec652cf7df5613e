// Lua bindings of the layout algebra. An operation that changes only the layout
// of a tensor also accepts tensors.
#include "bind/row.h"

#include <string.h>

#include "bind/laylib.h"
#include "layout/composed.h"
#include "layout/notation.h"

// ---- construction ----

static Layout from_shape(Ctx *cx, lua_State *L, Tup shape) {
  if (laylib_is(L, 2, CONST_RIGHT)) return layout_compact_right(cx, shape);
  if (lua_isnoneornil(L, 2) || laylib_is(L, 2, CONST_LEFT))
    return layout_compact(cx, shape);
  return layout_make(cx, shape, face_check_tup(cx, L, 2));
}

// make_layout(shape[, stride]) -> a layout. make_layout(layout, ...) -> a
// layout whose modes are the given layouts.
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
    if (!lua_isnoneornil(L, 3))
      face_argerror(L, 3, "no argument after shape and stride");
    face_push_layout(L, from_shape(cx, L, shape));
  }
  return 1;
}

// Returns the argument at idx as an offset, which is an integer or a tuple of
// coordinates.
static Tup offset_arg(Ctx *cx, lua_State *L, int idx) {
  Dim d;
  if (!lua_istable(L, idx) && !face_test_dim(cx, L, idx, &d))
    face_argerror(L, idx, "offset");
  Tup o = face_check_tup(cx, L, idx);
  for (size_t i = 0, n = tup_words(o); i < n; i++)
    if (tup_is_leaf(o + i) && dim_kind(o[i]) != DIM_INT &&
        dim_kind(o[i]) != DIM_DYN)
      face_argerror(L, idx, "offset");
  return o;
}

// composed(f, offset, layout or tensor [, options]) -> the composition f o
// offset o layout. f is a swizzle, a layout or a Lua function. The options
// apply to a Lua function (layoutfn.c).
static int l_composed(lua_State *L) {
  Ctx *cx = face_enter(L);
  Outer f = {.kind = OUTER_LAYOUT};
  lua_settop(L, 4);
  if (laylib_test_swizzle(L, 1, &f.sw)) f.kind = OUTER_SWIZZLE;
  else if (lua_isfunction(L, 1)) f.kind = OUTER_FN;
  else if (!face_test_layout(L, 1, &f.l))
    face_argerror(L, 1, "swizzle, layout or function");
  Tup o = offset_arg(cx, L, 2);
  LayoutOperand x = laylib_operand(L, 3);
  if (f.kind == OUTER_FN) f.fn = layoutfn_make(L, 1, 4);
  else if (!lua_isnoneornil(L, 4)) face_argerror(L, 4, "nothing");
  if (f.kind == OUTER_SWIZZLE && tup_is_leaf(o))
    return laylib_push_operand(L, &x, layout_swizzled(cx, f.sw, *o, x.l));
  return laylib_push_operand(L, &x, layout_led(cx, f, o, x.l));
}

static int l_layout_tv(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup tiler;
  Layout thr = face_check_layout(L, 1), val = face_check_layout(L, 2);
  Layout tv = layout_tv(cx, thr, val, &tiler);
  laylib_push_any(L, tiler);
  face_push_layout(L, tv);
  return 2;
}

// make_layout_image_mask(l, coord, mode) -> a bit mask, for a multicast. Bit k
// is set if l has offset k at a coordinate that equals coord outside `mode`.
static int l_image_mask(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = face_check_layout(L, 1);
  Tup c = tup_wrap(cx, face_check_tup(cx, L, 2));
  int mode = laylib_mode(L, 3);
  c = tup_replace(cx, c, mode, tup_leaf(cx, dim_any()));
  Dim off;
  Layout s = layout_slice(cx, l, c, &off);
  if (!layout_static(s) || !dim_static(off))
    face_error(L, ERR_STATIC, "make_layout_image_mask: the layout and "
               "the coordinate must be static");
  int64_t n = dim_value(layout_size(cx, s)), mask = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t x = off.w + dim_value(layout_eval_at(cx, s, dim_int(cx, i)));
    if (x < 0 || x > 62)
      face_error(L, ERR_LIMIT, "make_layout_image_mask: offset %d is outside "
                 "of the mask, which has bits 0 to 62", (int)x);
    mask |= (int64_t)1 << x;
  }
  lua_pushinteger(L, mask);
  return 1;
}

// ---- queries ----

static Tup same(Tup t) { return t; }

static int64_t swizzle_alignment(Ctx *cx, Swizzle sw) {
  (void)cx;
  return (int64_t)1 << sw.m;
}

// Returns the swizzle that l applies last, and sets *rest to l without this
// swizzle. Returns NULL if the last step of l is not a swizzle.
static const Swizzle *last_swizzle(Ctx *cx, Layout l, Layout *rest) {
  const Outer *f = layout_last(cx, l, rest);
  return f && f->kind == OUTER_SWIZZLE ? &f->sw : NULL;
}

static Swizzle get_swizzle(Ctx *cx, Layout l) {
  Layout rest;
  const Swizzle *sw = last_swizzle(cx, l, &rest);
  return sw ? *sw : SWIZZLE_NONE;
}

static Layout nonswizzle(Ctx *cx, Layout l) {
  Layout rest;
  return last_swizzle(cx, l, &rest) ? rest : l;
}

// stride(layout, modes...)
static int l_stride(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = laylib_operand(L, 1).l;
  int n, *m = laylib_modes(cx, L, 2, &n);
  for (int i = 0; i < n; i++) l = layout_mode(cx, l, m[i]);
  laylib_push_any(L, laylib_stride(cx, L, l));
  return 1;
}

// ---- coordinates ----

static int l_crd2idx(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup c = face_check_tup(cx, L, 1);
  LayoutOperand o;
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

static bool is_source(lua_State *L, int idx) {
  LayoutOperand o;
  return laylib_test_operand(L, idx, &o);
}

// Finds the two arguments of a slice, in either order: a coordinate, and the
// layout or tensor to slice (at stack index *src). If both arguments are
// tuples, the one that contains `_` is the coordinate.
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
  LayoutOperand o;
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
  LayoutOperand o;
  if (laylib_test_operand(L, src, &o))
    return laylib_push_operand(L, &o, layout_dice(cx, o.l, c));
  laylib_push_any(L, tup_dice(cx, c, face_check_tup(cx, L, src)));
  return 1;
}

// slice_and_offset(coord, layout) -> slice of the layout, offset of its first
// element
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

static Tensor offset_tensor(Ctx *cx, Tup coord, Tensor t) {
  return tensor_domain_offset(cx, t, coord);
}

// domain_offset(coord, layout) -> the layout that starts at coord, and the
// offset of coord in `layout`
static int l_domain_offset(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup off, c = face_check_tup(cx, L, 1);
  Layout l = face_check_layout(L, 2);
  face_push_layout(L, layout_domain_offset(cx, l, c, &off));
  laylib_push_any(L, off);
  return 2;
}

// Returns the inverse of a swizzle: the swizzle itself.
static int l_first(lua_State *L) {
  lua_settop(L, 1);
  return 1;
}

// ---- composition, divides, products ----

// composition(a, b): the types of a and b select the operation. Two layouts are
// tested first, because they are the most frequent arguments.
static int l_composition(lua_State *L) {
  Ctx *cx = face_enter(L);
  LayoutOperand o;
  Layout b;
  Swizzle sw, sw2;
  if (lua_gettop(L) >= 3) return l_composed(L);
  if (laylib_test_operand(L, 1, &o) && face_test_layout(L, 2, &b))
    return laylib_push_operand(L, &o, layout_compose(cx, o.l, b));
  if (laylib_test_swizzle(L, 1, &sw)) {
    if (laylib_test_swizzle(L, 2, &sw2)) {
      laylib_push_swizzle(L, swizzle_compose(cx, sw, sw2));
      return 1;
    }
    o = laylib_operand(L, 2);
    return laylib_push_operand(L, &o, layout_swizzled(cx, sw, (Dim){0}, o.l));
  }
  o = laylib_operand(L, 1);
  b = laylib_test_swizzle(L, 2, &sw)
        ? layout_compose_swizzle(cx, o.l, sw)
        : layout_compose_tiler(cx, o.l, laylib_tiler(cx, L, 2));
  return laylib_push_operand(L, &o, b);
}

// Pushes `made`, a layout whose modes are ordered by `order`. As in CuTe, modes
// with equal order may overlap. In this case, prints a warning once for each
// source line.
static int push_ordered(lua_State *L, Ctx *cx, const char *op, Tup shape,
                        Tup order, Layout made) {
  bool ties = order && tup_order_ties(cx, shape, order);
  face_push_layout(L, made);
  if (!ties) return 1;
  luaL_where(L, 1);
  lua_pushfstring(L, "%s%s: modes of the same order overlap in %s (order %s)",
                  lua_tostring(L, -1), op, layout_text(cx, made),
                  tup_text(cx, order));
  lua_getglobal(L, "require");
  lua_pushliteral(L, "cute.lang.report");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "note");
  lua_pushvalue(L, -3);
  lua_call(L, 1, 0);
  lua_pop(L, 3);
  return 1;
}

static int l_make_ordered_layout(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup shape = face_check_tup(cx, L, 1), order = laylib_order(cx, L, 2, shape);
  return push_ordered(L, cx, "make_ordered_layout", shape, order,
                      layout_ordered(cx, shape, order));
}

static int l_tile_to_shape(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l = face_check_layout(L, 1);
  Tup shape = face_check_tup(cx, L, 2);
  Tup order = laylib_order(cx, L, 3, tup_product_each(cx, shape));
  Layout made = layout_tile_to_shape(cx, l, shape, order);
  l = layout_append_to(cx, layout_inner(l), tup_rank(shape), layout_unit(cx));
  Tup times = tup_ceil_div(cx, tup_product_each(cx, shape),
                           tup_product_each(cx, l.shape));
  return push_ordered(L, cx, "tile_to_shape", times, order, made);
}

// Reports whether the argument is a layout, or a list that contains one.
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

// ceil_div(shape or integer, tiler) -> number of tiles in each mode, rounded up
static int l_ceil_div(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup s = laylib_shape(cx, L, 1);
  if (has_layout(L, 2))
    laylib_push_any(L, layout_ceil_div(cx, s, laylib_tiler(cx, L, 2)));
  else
    laylib_push_any(L, tup_ceil_div(cx, s, face_check_tup(cx, L, 2)));
  return 1;
}

// ---- recasts ----

static int64_t bits_arg(lua_State *L, int idx) {
  DType t = face_test_dtype(L, idx);
  return t == DT_NONE ? face_checkint(L, idx) : dtype_bits(t);
}

// recast_layout(new, old, layout), or (layout, old, new) as in C++. `new` and
// `old` are element types, or numbers of bits per element.
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

// layout "(8,8):(8,1)" -> the layout that the string denotes. A layout is
// returned unchanged.
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

// parse(s) -> the integer, tuple, layout, tiler or swizzle that s denotes in
// CuTe's notation
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

// ---- explain ----

// explain_begin() -> token. explain_end(token) -> text that explains the steps
// of all operations since explain_begin.
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
  face_push_buf(L, b);
  return 1;
}

static int explain_gc(lua_State *L) {
  Ctx *cx = face_ctx(L);
  Buf *b = face_checkudata(L, 1, "cute.explain");
  if (explain_on(cx) == b) explain_to(cx, NULL);
  buf_free(b);
  return 0;
}

static const FnRow rows[] = {
  {"make_layout(shape, stride?, layouts...)", "", FN(l_make_layout)},
  {"make_ordered_layout(shape, order?)", "", FN(l_make_ordered_layout)},
  {"make_layout_like(layout)", "L>l", FN(layout_like)},
  {"make_identity_layout(shape)", "P>l", FN(layout_identity)},
  {"run_along", "Lm>i", FN(layout_run_along)},
  {"make_composed_layout(left, offset, layout, options?)", "", FN(l_composed)},
  {"make_layout_tv(thr, val)", "", FN(l_layout_tv)},
  {"make_layout_image_mask(layout, coord, mode)", "", FN(l_image_mask)},
  {"rank(x, modes...)", "H>i", FN(tup_rank)},
  {"depth(x, modes...)", "H>i", FN(tup_depth)},
  {"product(x, modes...)", "H>d", FN(tup_size)},
  {"shape(x, modes...)", "H>P", FN(same)},
  {"stride(x, modes...)", "", FN(l_stride)},
  {"cosize(x, modes...)", "K>d", FN(layout_cosize)},
  {"coshape(x, modes...)", "K>P", FN(layout_coshape)},
  {"max_alignment(x)", "Z>i", FN(swizzle_alignment)},
  {OR, "L>i", FN(layout_max_alignment)},
  {"get_swizzle(x)", "L>Z", FN(get_swizzle)},
  {"get_swizzle_portion(x)", "L>Z", FN(get_swizzle)},
  {"get_nonswizzle_portion(x)", "L>L", FN(nonswizzle)},
  {"is_static(x)", "L>Q", FN(layout_static)},
  {OR, "R>Q", FN(tup_static)},
  {"get_divisibility(x)", "d>i", FN(dim_div)},
  {"crd2idx(coord, shape, stride?)", "", FN(l_crd2idx)},
  {"get_hier_coord(layout, offset)", "LP>P", FN(layout_hier_coord)},
  {"get_flat_coord(layout, offset)", "LP>P", FN(layout_flat_coord)},
  {"get_1d_coord(layout, offset)", "LP>d", FN(layout_1d_coord)},
  {"slice_(src, coord)", "", FN(l_slice)},
  {"slice(src, coord)", "", FN(l_slice)},
  {"dice(src, coord)", "", FN(l_dice)},
  {"slice_and_offset(coord, layout)", "", FN(l_slice_and_offset)},
  {"domain_offset(coord, x)", "PX>X", FN(offset_tensor)},
  {OR, "", FN(l_domain_offset)},
  {"coalesce(layout, profile?)", "P>P", FN(tup_coalesce)},
  {OR, "Lp>L", FN(layout_coalesce_by)},
  {"filter(layout, profile?)", "Lp>L", FN(layout_filter_by)},
  {"right_inverse(layout)", "F", FN(l_first)},
  {OR, "L>l", FN(layout_right_inverse)},
  {"left_inverse(layout)", "F", FN(l_first)},
  {OR, "L>l", FN(layout_left_inverse)},
  {"nullspace(layout)", "L>l", FN(layout_nullspace)},
  {"complement(layout, cotarget?)", "Ls>l", FN(layout_complement)},
  {"with_shape(layout, shape...)", "L*>L", FN(layout_with_shape)},
  {"coprofile(layout, modes...)", "K>P", FN(layout_coprofile)},
  {"layout_add(a, b)", "LL>l", FN(layout_add)},
  {"greatest_common_domain(a, b)", "SS>l", FN(layout_greatest_common_domain)},
  {"max_common_layout(a, b)", "LL>l", FN(layout_max_common_layout)},
  {"max_common_vector(a, b)", "LL>i", FN(layout_max_common_vector)},
  {"domain_distribute(shape, n)", "Si>l", FN(layout_domain_distribute)},
  {"composition(a, b, c?)", "", FN(l_composition)},
  {"logical_divide(layout, tiler)", "WT>L", FN(layout_logical_divide)},
  {"zipped_divide(layout, tiler)", "WT>L", FN(layout_zipped_divide)},
  {"tiled_divide(layout, tiler)", "WT>L", FN(layout_tiled_divide)},
  {"flat_divide(layout, tiler)", "WT>L", FN(layout_flat_divide)},
  {"logical_product(layout, tiler)", "LT>L", FN(layout_logical_product)},
  {"zipped_product(layout, tiler)", "LT>L", FN(layout_zipped_product)},
  {"tiled_product(layout, tiler)", "LT>L", FN(layout_tiled_product)},
  {"flat_product(layout, tiler)", "LT>L", FN(layout_flat_product)},
  {"tile_unzip(layout, tiler)", "LT>L", FN(layout_tile_unzip)},
  {"blocked_product(layout, t)", "LV>L", FN(layout_blocked_product)},
  {"raked_product(layout, t)", "LV>L", FN(layout_raked_product)},
  {"tile_to_shape(block, shape, order?)", "", FN(l_tile_to_shape)},
  {"ceil_div(shape, tiler)", "", FN(l_ceil_div)},
  {"upcast(layout, n)", "Zi>Z", FN(swizzle_upcast)},
  {OR, "li>l", FN(layout_upcast)},
  {"downcast(layout, n)", "Zi>Z", FN(swizzle_downcast)},
  {OR, "li>l", FN(layout_downcast)},
  {"recast_layout(new, old, layout)", "", FN(l_recast_layout)},
  {"layout(text)", "", FN(l_layout)},
  {"parse(text)", "", FN(l_parse)},
  {"tuple(t)", "R>P", FN(same)},
  {"explain_begin", "", FN(l_explain_begin)},
  {"explain_end", "", FN(l_explain_end)},
  LAST_ROW};

void alglib_open(lua_State *L) {
  static const luaL_Reg explain_meta[] = {{"__gc", explain_gc}, {NULL, NULL}};
  face_newtype(L, "cute.explain", explain_meta);
  lua_pop(L, 1);
  face_setrows(L, rows);
}
// SPDX-License-Identifier: MIT
