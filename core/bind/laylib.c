// Layouts, constants of the algebra (`_`, X, bases, swizzles) and IntTuples as
// Lua values, and as arguments of bindings.
#include "bind/laylib.h"

#include <string.h>

#include "layout/composed.h"

const char laylib_layout_key = 'L', laylib_const_key = 'C';
const char laylib_tuple_key = 'T';

// ---- type tests ----

LayoutBox *laylib_box(lua_State *L, int idx) {
  LayoutBox *b = lua_touserdata(L, idx);
  if (!b || lua_rawlen(L, idx) < sizeof *b || b->mark != &laylib_layout_key)
    return NULL;
  return b;
}

ConstBox *laylib_const(lua_State *L, int idx) {
  ConstBox *b = lua_touserdata(L, idx);
  if (!b || lua_rawlen(L, idx) < sizeof *b || b->mark != &laylib_const_key)
    return NULL;
  return b;
}

bool laylib_is(lua_State *L, int idx, ConstKind kind) {
  ConstBox *b = laylib_const(L, idx);
  return b && b->kind == kind;
}

// ---- the layout userdata ----

static void use_ref(lua_State *L, Ctx *cx, Dim d, uint32_t born) {
  if (!dim_dynamic(d)) return;
  Ref r = dim_getref(d);
  if (r >= ir_fn(cx)->ins.n || ir_get(ir_fn(cx), r)->birth > born ||
      !ir_visible(ir_fn(cx), r))
    face_error(L, ERR_REGION, "a layout's traced extent is not known here: it "
               "was computed inside a loop or branch that has ended");
}

// Raises an error if a traced extent of b cannot be used here, because it
// belongs to another kernel or to a region that has ended.
static void own_layout(lua_State *L, const LayoutBox *b) {
  Ctx *cx = face_state(L);
  if (!ir_fn(cx) || ir_fn(cx)->serial != b->serial)
    face_error(L, ERR_FOREIGN,
               "a layout with traced extents was used outside its kernel");
  for (const Layout *p = &b->l; p; p = layout_next(p)) {
    size_t n = tup_words(p->shape);
    for (size_t i = 0; i < n; i++) use_ref(L, cx, p->shape[i], b->born);
    n = tup_leaves(p->shape);
    for (size_t i = 0; i < n; i++) use_ref(L, cx, p->stride[i], b->born);
    use_ref(L, cx, p->offset, b->born);
    n = p->at ? tup_words(p->at) : 0;
    for (size_t i = 0; i < n; i++) use_ref(L, cx, p->at[i], b->born);
  }
}

bool face_test_layout(lua_State *L, int idx, Layout *l) {
  const LayoutBox *b = laylib_box(L, idx);
  if (!b) return false;
  if (b->serial) own_layout(L, b);
  *l = b->l;
  return true;
}

Layout face_check_layout(lua_State *L, int idx) {
  Layout l;
  if (!face_test_layout(L, idx, &l)) face_argerror(L, idx, "layout");
  return l;
}

static void push_layout(lua_State *L, Layout l, int uservalues) {
  size_t head = offsetof(LayoutBox, l);
  LayoutBox *b = lua_newuserdatauv(L, head + layout_bytes(l), uservalues);
  layoutfn_hold(L, l, 1);
  b->mark = &laylib_layout_key;
  b->serial = b->born = 0;
  layout_copy(&b->l, l);
  if (!layout_static(l)) {
    Ctx *cx = face_state(L);
    b->serial = ir_fn(cx) ? ir_fn(cx)->serial : UINT32_MAX;
    b->born = ir_fn(cx) ? ir_fn(cx)->births : 0;
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &laylib_layout_key);
  lua_setmetatable(L, -2);
}

void face_push_layout(lua_State *L, Layout l) {
  push_layout(L, l, layoutfn_count(l));
}

void laylib_push_markable(lua_State *L, Layout l) { push_layout(L, l, 2); }

// ---- constants ----

ConstBox *laylib_push_const(lua_State *L, ConstKind kind) {
  ConstBox *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  b->mark = &laylib_const_key;
  b->kind = kind;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &laylib_const_key);
  lua_setmetatable(L, -2);
  return b;
}

void laylib_push_swizzle(lua_State *L, Swizzle sw) {
  laylib_push_const(L, CONST_SWIZZLE)->sw = sw;
}

bool laylib_test_swizzle(lua_State *L, int idx, Swizzle *sw) {
  ConstBox *b = laylib_const(L, idx);
  if (!b || b->kind != CONST_SWIZZLE) return false;
  *sw = b->sw;
  return true;
}

static void push_basis(lua_State *L, Dim d) {
  ConstBox *b = laylib_push_const(L, CONST_BASIS);
  b->d = d;
  if (!dim_dynamic(d)) return;
  Ctx *cx = face_state(L);
  b->serial = ir_fn(cx) ? ir_fn(cx)->serial : UINT32_MAX;
}

Dim laylib_basis(lua_State *L, const ConstBox *b) {
  const Fn *fn = b->serial ? ir_fn(face_state(L)) : NULL;
  if (b->serial && (!fn || fn->serial != b->serial))
    face_error(L, ERR_FOREIGN, "a traced basis was used outside its kernel");
  return b->d;
}

// ---- dims and tuples ----

// Converts traced value r to i32 or i64, the types of index arithmetic.
static Ref as_index(Ctx *cx, Ref r) {
  DType t = ir_type(ir_fn(cx), r);
  if (t == DT_I32 || t == DT_I64) return r;
  return ir_cvt(cx, ir_fn(cx), dtype_bits(t) == 64 ? DT_I64 : DT_I32, r);
}

// Raises the error that the traced value r is a float where an index is needed.
static _Noreturn void not_an_integer(lua_State *L, Ref r) {
  const Fn *fn = ir_fn(face_ctx(L));
  const char *type = dtype_name(ir_type(fn, r));
  if (ir_get(fn, r)->op == OP_DIV)
    face_error(L, ERR_TYPE, "an integer is needed, but a / b is a traced %s\n  "
               "write a // b for an integer", type);
  face_error(L, ERR_TYPE, "an integer is needed, got a traced %s: convert it "
             "with :to(cute.i32)", type);
}

bool face_test_dim(Ctx *cx, lua_State *L, int idx, Dim *d) {
  int isnum;
  switch (lua_type(L, idx)) {
  case LUA_TNUMBER: {
    lua_Integer v = lua_tointegerx(L, idx, &isnum);
    if (!isnum)
      face_error(L, ERR_ARG, "an integer is needed, got %g\n  write a // b for "
                 "an integer: a / b is a float", lua_tonumber(L, idx));
    *d = dim_int(cx, v);
    return true;
  }
  case LUA_TUSERDATA: {
    ConstBox *b = laylib_const(L, idx);
    if (b && (b->kind == CONST_ANY || b->kind == CONST_X)) {
      *d = dim_any();
      return true;
    }
    if (b && (b->kind == CONST_BASIS || b->kind == CONST_F2)) {
      *d = laylib_basis(L, b);
      return true;
    }
    Ref r;
    if (b || laylib_box(L, idx) || !face_test_value(cx, L, idx, &r))
      return false;
    if (!dtype_is_int(ir_type(ir_fn(cx), r)))
      not_an_integer(L, r);
    *d = dim_fold(cx, as_index(cx, r));
    return true;
  }
  default:
    return false;
  }
}

// Appends the tuple at idx to b. If `layouts`, its leaves may be layouts.
static void build(Ctx *cx, lua_State *L, int idx, TupB *b, bool layouts);

// Reports whether the key at stack index -2 is the string `word`.
static bool is_word(lua_State *L, const char *word) {
  return lua_type(L, -2) == LUA_TSTRING &&
         strcmp(lua_tostring(L, -2), word) == 0;
}

// Returns the length of the list at idx. Raises an error if the table has other
// keys, as in {8, [3] = 4}. The `n` of table.pack is allowed.
static lua_Integer list_length(lua_State *L, int idx, const char *what) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
  luaL_checkstack(L, 4, "tuple");
  if (n) lua_pushinteger(L, n);
  else lua_pushnil(L);
  while (lua_next(L, idx)) {
    lua_Integer k = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
    bool ours = k >= 1 && k <= n;  // lua_next returns keys 1 to n in any order
    bool pack = n && is_word(L, "n");
    if (!ours && !pack) {
      const char *more = is_word(L, "stride")
        ? "\n  write make_layout(shape, stride)" : "";
      face_error(L, ERR_ARG, "a %s is a list such as {8, {8, 8}}, but this "
                 "table has the key %s%s", what, luaL_tolstring(L, -2, NULL),
                 more);
    }
    lua_pop(L, 1);
  }
  return n;
}

static void build_table(Ctx *cx, lua_State *L, int idx, TupB *b,
                        bool layouts) {
  lua_Integer n = list_length(L, idx, "tuple");
  tupb_open(cx, b);
  for (lua_Integer i = 1; i <= n; i++) {
    if (lua_rawgeti(L, idx, i) == LUA_TNIL)
      face_error(L, ERR_ARG, "entry %d of a tuple of %d is nil", (int)i,
                 (int)n);
    build(cx, L, lua_gettop(L), b, layouts);
    lua_pop(L, 1);
  }
  tupb_close(cx, b);
}

static void build(Ctx *cx, lua_State *L, int idx, TupB *b, bool layouts) {
  Dim d;
  LayoutBox *l = layouts ? laylib_box(L, idx) : NULL;
  if (l) {
    if (l->serial) own_layout(L, l);
    tupb_leaf(cx, b, dim_layout(&l->l));
  } else if (face_test_dim(cx, L, idx, &d))
    tupb_leaf(cx, b, d);
  else if (lua_type(L, idx) == LUA_TTABLE)
    build_table(cx, L, idx, b, layouts);
  else
    face_error(L, ERR_ARG, "a tuple holds integers and tuples, not %s",
               face_show(L, idx));
}

Tup face_check_tup(Ctx *cx, lua_State *L, int idx) {
  TupB b = {0};
  Dim d;
  if (lua_type(L, idx) == LUA_TTABLE)
    build_table(cx, L, lua_absindex(L, idx), &b, false);
  else if (face_test_dim(cx, L, idx, &d))
    tupb_leaf(cx, &b, d);
  else
    face_argerror(L, idx, "integer or tuple");
  return tupb_done(cx, &b);
}

Tup laylib_tree(Ctx *cx, lua_State *L, int idx) {
  Dim d;
  TupB b = {0};
  if (lua_type(L, idx) != LUA_TTABLE && !laylib_box(L, idx) &&
      !face_test_dim(cx, L, idx, &d))
    face_argerror(L, idx, "integer or tuple");
  build(cx, L, lua_absindex(L, idx), &b, true);
  return tupb_done(cx, &b);
}

void face_push_dim(lua_State *L, Dim d) {
  switch (dim_kind(d)) {
  case DIM_DYN: face_push_value(L, dim_getref(d)); break;
  case DIM_BASIS: push_basis(L, d); break;
  case DIM_XOR: laylib_push_const(L, CONST_F2)->d = d; break;
  case DIM_INT: lua_pushinteger(L, dim_value(d)); break;
  case DIM_LAYOUT: face_push_layout(L, *dim_getlayout(d)); break;
  case DIM_ANY: case DIM_TUP:
    lua_rawgetp(L, LUA_REGISTRYINDEX, &laylib_tuple_key);
    lua_getfield(L, -1, "_");
    lua_remove(L, -2);
  }
}

void laylib_set_tuple(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &laylib_tuple_key);
  lua_setmetatable(L, -2);
}

static void push_table(lua_State *L, Tup t) {
  int n = tup_rank(t);
  luaL_checkstack(L, 4, "tuple");
  lua_createtable(L, n, 0);
  Tup m = t + 1;
  for (int i = 1; i <= n; i++, m = tup_next(m)) {
    laylib_push_any(L, m);
    lua_rawseti(L, -2, i);
  }
  laylib_set_tuple(L);
}

void laylib_push_any(lua_State *L, Tup t) {
  if (tup_is_leaf(t))
    face_push_dim(L, *t);
  else
    push_table(L, t);
}

void face_push_tup(lua_State *L, Tup t) { laylib_push_any(L, t); }

void laylib_push_truth(lua_State *L, Dim d) {
  if (dim_static(d))
    lua_pushboolean(L, dim_value(d) != 0);
  else
    face_push_dim(L, d);
}

// ---- arguments ----

int laylib_mode(lua_State *L, int idx) {
  int64_t v = face_checkint(L, idx);
  if (v < 0 || v > TUP_RANK_MAX)
    face_error(L, ERR_ARG, "no mode %lld: modes count from 0", (long long)v);
  return (int)v;
}

int *laylib_modes(Ctx *cx, lua_State *L, int first, int *n) {
  int top = lua_gettop(L);
  if (lua_type(L, first) == LUA_TTABLE) {
    lua_pushliteral(L, "mode");
    // modes can also be passed as {mode = {0, 2}} or {mode = 1}
    int named = lua_rawget(L, first);
    if (named == LUA_TNIL) lua_pop(L, 1);
    else lua_replace(L, first);
    if (named == LUA_TNUMBER) {
      int *one = NEW(cx, int, 1);
      *n = 1;
      *one = laylib_mode(L, first);
      return one;
    }
    *n = (int)list_length(L, first, "list of modes");
    int *m = NEW(cx, int, (size_t)*n + 1);
    for (int i = 0; i < *n; i++) {
      lua_rawgeti(L, first, i + 1);
      m[i] = laylib_mode(L, lua_gettop(L));
      lua_pop(L, 1);
    }
    return m;
  }
  *n = top < first ? 0 : top - first + 1;
  int *m = NEW(cx, int, (size_t)*n + 1);
  for (int i = 0; i < *n; i++) m[i] = laylib_mode(L, first + i);
  return m;
}

Tup laylib_coord(Ctx *cx, lua_State *L, int first) {
  int top = lua_gettop(L);
  if (top < first && face_public(L, (char[96]){0}))
    face_argerror(L, first, "integer or tuple");
  if (top < first)
    face_error(L, ERR_ARG, "a coordinate is missing: write an index, or an "
               "index for each mode");
  TupB b = {0};
  if (top == first) {
    build(cx, L, first, &b, false);
    return tupb_done(cx, &b);
  }
  tupb_open(cx, &b);
  for (int i = first; i <= top; i++) {
    if (lua_isnil(L, i))
      face_error(L, ERR_ARG, "coordinate %d is nil", i - first);
    build(cx, L, i, &b, false);
  }
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

static bool tiler_entry(lua_State *L) {
  int t = lua_type(L, -1);
  return t == LUA_TNUMBER || t == LUA_TTABLE || t == LUA_TUSERDATA;
}

Tiler laylib_tiler(Ctx *cx, lua_State *L, int idx) {
  Layout l;
  Dim d;
  if (face_test_layout(L, idx, &l)) return tiler_layout(l);
  if (lua_type(L, idx) == LUA_TTABLE) {
    idx = lua_absindex(L, idx);
    luaL_checkstack(L, 4, "tiler");
    int n = (int)list_length(L, idx, "tiler");
    if (n > TUP_RANK_MAX)
      face_error(L, ERR_LIMIT, "a tuple has at most %d modes", TUP_RANK_MAX);
    if (lua_gettop(L) > 4 * TUP_DEPTH_MAX)
      face_error(L, ERR_LIMIT, "tuples nest at most %d deep", TUP_DEPTH_MAX);
    Tiler *m = NEW(cx, Tiler, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
      if (lua_rawgeti(L, idx, i + 1) == LUA_TNIL)
        face_error(L, ERR_ARG, "entry %d of a tiler of %d is nil", i + 1, n);
      if (!tiler_entry(L))
        face_error(L, ERR_ARG, "a tiler holds layouts, integers, `_` and "
                   "tuples of these, not %s", face_show(L, -1));
      m[i] = laylib_tiler(cx, L, lua_gettop(L));
      lua_pop(L, 1);
    }
    return (Tiler){.kind = TILER_TUPLE, .n = n, .mode = m};
  }
  if (!face_test_dim(cx, L, idx, &d))
    face_argerror(L, idx, "tiler: a layout, an integer, `_` or a tuple of "
                  "these");
  return tiler_tup(cx, tup_leaf(cx, d));
}

Tup laylib_order(Ctx *cx, lua_State *L, int idx, Tup shape) {
  if (lua_isnoneornil(L, idx) || laylib_is(L, idx, CONST_LEFT)) return NULL;
  if (!laylib_is(L, idx, CONST_RIGHT)) return face_check_tup(cx, L, idx);
  size_t n = tup_leaves(shape);
  Dim *o = NEW(cx, Dim, n + 1);
  for (size_t i = 0; i < n; i++) o[i] = dim_int(cx, (int64_t)(n - i));
  return tup_like(cx, shape, o);
}
// SPDX-License-Identifier: MIT
