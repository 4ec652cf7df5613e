// Lua face of layouts: the layout userdata, IntTuples as tables, and the
// small constants (`_`, X, bases, swizzles).
#include "bind/row.h"

#include <string.h>

#include "bind/laylib.h"
#include "bind/tensorlib.h"
#include "layout/composed.h"

static const char layout_mark = 'L', const_mark = 'C', tuple_key = 'T';

#define MT_TUPLE "cute.tuple"

// ---- telling types ----

LayoutBox *laylib_box(lua_State *L, int idx) {
  LayoutBox *b = lua_touserdata(L, idx);
  if (!b || lua_rawlen(L, idx) < sizeof *b || b->mark != &layout_mark)
    return NULL;
  return b;
}

ConstBox *laylib_const(lua_State *L, int idx) {
  ConstBox *b = lua_touserdata(L, idx);
  if (!b || lua_rawlen(L, idx) < sizeof *b || b->mark != &const_mark)
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

// Fails unless b's traced extents can be used now.
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
  leftlib_hold(L, l, 1);
  b->mark = &layout_mark;
  b->serial = b->born = 0;
  layout_copy(&b->l, l);
  if (!layout_static(l)) {
    Ctx *cx = face_state(L);
    b->serial = ir_fn(cx) ? ir_fn(cx)->serial : UINT32_MAX;
    b->born = ir_fn(cx) ? ir_fn(cx)->births : 0;
  }
  lua_rawgetp(L, LUA_REGISTRYINDEX, &layout_mark);
  lua_setmetatable(L, -2);
}

void face_push_layout(lua_State *L, Layout l) {
  push_layout(L, l, leftlib_count(l));
}

void laylib_push_markable(lua_State *L, Layout l) { push_layout(L, l, 2); }

// ---- constants ----

static ConstBox *push_const(lua_State *L, ConstKind kind) {
  ConstBox *b = lua_newuserdatauv(L, sizeof *b, 0);
  memset(b, 0, sizeof *b);
  b->mark = &const_mark;
  b->kind = kind;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &const_mark);
  lua_setmetatable(L, -2);
  return b;
}

void laylib_push_swizzle(lua_State *L, Swizzle sw) {
  push_const(L, CONST_SWIZZLE)->sw = sw;
}

bool laylib_test_swizzle(lua_State *L, int idx, Swizzle *sw) {
  ConstBox *b = laylib_const(L, idx);
  if (!b || b->kind != CONST_SWIZZLE) return false;
  *sw = b->sw;
  return true;
}

static void push_basis(lua_State *L, Dim d) {
  ConstBox *b = push_const(L, CONST_BASIS);
  b->d = d;
  if (!dim_dynamic(d)) return;
  Ctx *cx = face_state(L);
  b->serial = ir_fn(cx) ? ir_fn(cx)->serial : UINT32_MAX;
}

static Dim basis_of(lua_State *L, const ConstBox *b) {
  const Fn *fn = b->serial ? ir_fn(face_state(L)) : NULL;
  if (b->serial && (!fn || fn->serial != b->serial))
    face_error(L, ERR_FOREIGN, "a traced basis was used outside its kernel");
  return b->d;
}

// ---- dims and tuples ----

// As arithmetic of indices has it: i32, or i64.
static Ref as_index(Ctx *cx, Ref r) {
  DType t = ir_type(ir_fn(cx), r);
  if (t == DT_I32 || t == DT_I64) return r;
  return ir_cvt(cx, ir_fn(cx), dtype_bits(t) == 64 ? DT_I64 : DT_I32, r);
}

bool face_test_dim(Ctx *cx, lua_State *L, int idx, Dim *d) {
  int isnum;
  switch (lua_type(L, idx)) {
  case LUA_TNUMBER: {
    lua_Integer v = lua_tointegerx(L, idx, &isnum);
    if (!isnum)
      face_error(L, ERR_ARG, "an integer is needed, got %g",
                 lua_tonumber(L, idx));
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
      *d = basis_of(L, b);
      return true;
    }
    Ref r;
    if (b || laylib_box(L, idx) || !face_test_value(cx, L, idx, &r))
      return false;
    if (!dtype_is_int(ir_type(ir_fn(cx), r)))
      face_error(L, ERR_TYPE, "an integer is needed, got a traced %s: convert "
                 "it with :to(cute.i32)", dtype_name(ir_type(ir_fn(cx), r)));
    *d = dim_fold(cx, as_index(cx, r));
    return true;
  }
  default:
    return false;
  }
}

// layouts: may leaves be layouts, too?
static void build(Ctx *cx, lua_State *L, int idx, TupB *b, bool layouts);

// The length of the list at idx; fails when it has other keys, as after a
// hole: {8, [3] = 4}. Only the `n` of table.pack is let pass.
static lua_Integer list_length(lua_State *L, int idx, const char *what) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, idx);
  luaL_checkstack(L, 4, "tuple");
  if (n) lua_pushinteger(L, n);
  else lua_pushnil(L);
  while (lua_next(L, idx)) {
    lua_Integer k = lua_isinteger(L, -2) ? lua_tointeger(L, -2) : 0;
    bool ours = k >= 1 && k <= n;  // in the order of the hash
    bool pack = n && lua_type(L, -2) == LUA_TSTRING &&
                strcmp(lua_tostring(L, -2), "n") == 0;
    if (!ours && !pack)
      face_error(L, ERR_ARG, "a %s is a list such as {8, {8, 8}}, but this "
                 "table has the key %s", what, luaL_tolstring(L, -2, NULL));
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
  case DIM_XOR: push_const(L, CONST_F2)->d = d; break;
  case DIM_INT: lua_pushinteger(L, dim_value(d)); break;
  case DIM_LAYOUT: face_push_layout(L, *dim_getlayout(d)); break;
  case DIM_ANY: case DIM_TUP:
    lua_rawgetp(L, LUA_REGISTRYINDEX, &tuple_key);
    lua_getfield(L, -1, "_");
    lua_remove(L, -2);
  }
}

void laylib_set_tuple(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &tuple_key);
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

bool laylib_test_operand(lua_State *L, int idx, LayoutOperand *o) {
  o->tensor = 0;
  if (face_test_layout(L, idx, &o->l)) return true;
  if (lua_type(L, idx) != LUA_TUSERDATA || laylib_const(L, idx) ||
      !face_test_tensor(L, idx, &o->t))
    return false;
  o->l = o->t.l;
  o->tensor = idx;
  return true;
}

LayoutOperand laylib_operand(lua_State *L, int idx) {
  LayoutOperand o;
  if (!laylib_test_operand(L, idx, &o)) face_argerror(L, idx, "layout");
  return o;
}

int laylib_push_operand(lua_State *L, const LayoutOperand *o, Layout l) {
  if (!o->tensor) {
    face_push_layout(L, l);
    return 1;
  }
  Tensor t = tensor_with_layout(o->t, l);
  tensorlib_push_view(L, &t, o->tensor);
  return 1;
}

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
    bool named = lua_rawget(L, first) == LUA_TTABLE;  // {mode = {0, 2}}
    if (named) lua_replace(L, first);
    else lua_pop(L, 1);
    *n = (int)lua_rawlen(L, first);
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
  if (top < first) face_error(L, ERR_ARG, "a coordinate is missing");
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

// ---- methods of layouts ----

// l(i), l(i,j,..) of a flat static layout with integers: no scratch needed.
static bool call_fast(lua_State *L, const Layout *l, int n) {
  bool flat = tup_words(l->shape) == (size_t)n + 1;  // or has () inside
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

// l(i) of a static layout of any profile.
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
    if (tup_is_leaf(x) || tup_leaves(l.shape) != 1)
      laylib_push_any(L, x);
    else  // one basis alone stays a basis, as in CuTe
      face_push_dim(L, dim_mul(cx, *tup_unwrap(c), l.stride[0]));
  }
  return 1;
}

static int layout_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  LayoutBox *b = laylib_box(L, 1);
  if (!b) face_argerror(L, 1, "layout");
  Fn *fn = ir_fn(cx);  // facts are shown only while they can be looked up
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

// The function that a composed layout's values go through: a swizzle, a
// layout or a Lua function.
static void push_outer(lua_State *L, const Outer *f) {
  if (f->kind == OUTER_FN && !f->l.outer)
    leftlib_push(L, f->fn);
  else if (f->kind == OUTER_LAYOUT)
    face_push_layout(L, f->l);
  else if (!f->l.outer)
    laylib_push_swizzle(L, f->sw);
  else
    face_error(L, ERR_ARG, "the left side is a layout after a swizzle or a "
               "function, without a shape of its own: no value stands for it");
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
  } else if (strcmp(k, "inner") == 0) {  // the left side
    if (l.outer) push_outer(L, l.outer);
    else lua_pushnil(L);
  } else if (strcmp(k, "outer") == 0) {  // as in the Python DSL
    face_push_layout(L, layout_inner(l));
  } else if (strcmp(k, "is_composed") == 0) {
    lua_pushboolean(L, l.outer != NULL);
  } else {
    return false;
  }
  return true;
}

// l.shape and so on; methods are the entries of upvalue 2.
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

// sw(x)
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
    face_push_dim(L, dim_basis_value(basis_of(L, b)));
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

// 3 * E(0), E(0) * 3
static int const_mul(lua_State *L) {
  Ctx *cx = face_enter(L);
  Dim a, b;
  if (!face_test_dim(cx, L, 1, &a)) face_argerror(L, 1, "integer or basis");
  if (!face_test_dim(cx, L, 2, &b)) face_argerror(L, 2, "integer or basis");
  face_push_dim(L, dim_mul(cx, a, b));
  return 1;
}

// A basis as the tuple it stands for.
static Tup arithmetic(Ctx *cx, Tup t) {
  return tup_is_leaf(t) && dim_kind(*t) == DIM_BASIS ? tup_from_terms(cx, t, 1)
                                                     : t;
}

// Bases and coordinate tuples add up to coordinate tuples.
static int any_add(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tup a = face_check_tup(cx, L, 1), b = face_check_tup(cx, L, 2);
  laylib_push_any(L, tup_add(cx, arithmetic(cx, a), arithmetic(cx, b)));
  return 1;
}

// v in the mode that the arguments from `first` on lead to.
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

// ScaledBasis(value, mode, ..): value@..@mode
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

// basis_get(e, t): the entry of t that e points at.
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

// make_swizzle(b, m, s), or (yyy_mask, zzz_mask)
static int l_swizzle(lua_State *L) {
  Ctx *cx = face_enter(L);
  int64_t b = face_checkint(L, 1), m = face_checkint(L, 2);
  laylib_push_swizzle(L, lua_isnoneornil(L, 3)
                           ? swizzle_from_masks(cx, b, m)
                           : swizzle_make(cx, b, m, face_checkint(L, 3)));
  return 1;
}

// ---- tuples as tables ----

// Pushes the text of the table at idx: from the table itself, since this may
// run inside another function of ours, whose scratch must stay.
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

// ---- opening ----

static void types_open(lua_State *L) {
  static const luaL_Reg layout_meta[] = {
    {"__call", layout_call}, {"__tostring", layout_tostring},
    {"__eq", layout_leq}, {"__newindex", layout_newindex},
    {"__concat", any_concat},
    {"mark_layout_dynamic(opts?)", hostlib_mark_layout}, {NULL, NULL}};
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
  lua_pushvalue(L, -2);  // methods are looked up in the metatable itself
  lua_pushcclosure(L, layout_index, 2);
  lua_setfield(L, -2, "__index");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &layout_mark);
  luaL_newmetatable(L, MT_CONST);
  face_setfuncs(L, const_meta);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &const_mark);
  face_newtype(L, MT_TUPLE, tuple_meta);
  push_const(L, CONST_ANY);
  lua_setfield(L, -2, "_");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &tuple_key);
}

static void constants_open(lua_State *L) {
  face_push_dim(L, dim_any());
  lua_setfield(L, -2, "_");
  push_const(L, CONST_X);
  lua_setfield(L, -2, "X");
  push_const(L, CONST_LEFT);
  lua_setfield(L, -2, "LayoutLeft");
  push_const(L, CONST_RIGHT);
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
  leftlib_open(L);
  tuplelib_open(L);
  alglib_open(L);
}
