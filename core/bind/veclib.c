// Register vectors, the Python DSL's TensorSSA: immutable lists of traced
// values with a shape. mathlib.c has functions on them.
#include "bind/veclib.h"

#include <string.h>

#include "bind/row.h"
#include "bind/trace.h"
#include "ir/fold.h"

enum { MAX_ELEMENTS = 4096 };

// ---- userdata ----

Vector *veclib_push(lua_State *L, DType type, Tup shape, const Ref *r,
                    int64_t n) {
  Ctx *cx = face_state(L);
  size_t rb = ((size_t)n * sizeof *r + 7) & ~(size_t)7;
  size_t words = tup_words(shape);
  Vector *v = lua_newuserdatauv(L, sizeof *v + rb + words * sizeof(Dim), 0);
  v->serial = ir_fn(cx)->serial;
  v->born = ir_fn(cx)->births;
  v->src = ir_fn(cx)->at;
  v->type = type;
  v->consumed = false;
  v->n = n;
  memcpy(v->r, r, (size_t)n * sizeof *r);
  Dim *w = (Dim *)(void *)((char *)v->r + rb);
  memcpy(w, shape, words * sizeof *w);
  v->shape = w;
  luaL_setmetatable(L, MT_VECTOR);
  if (type == DT_BOOL) {
    lua_pushvalue(L, -1);
    trace_watch(L);
  }
  return v;
}

Vector *veclib_test(lua_State *L, int idx) {
  Vector *v =
    lua_isuserdata(L, idx) ? luaL_testudata(L, idx, MT_VECTOR) : NULL;
  if (!v) return NULL;
  Ctx *cx = face_state(L);
  if (!ir_fn(cx))
    face_error(L, ERR_FOREIGN, "a vector of a kernel was used outside of it");
  if (v->serial != ir_fn(cx)->serial)
    face_error(L, ERR_FOREIGN, "a vector of another kernel was used in '%s'",
               ir_str(ir_fn(cx), ir_fn(cx)->name));
  for (int64_t i = 0; i < v->n; i++) {
    Ref r = v->r[i];
    if (r < ir_fn(cx)->ins.n && ir_get(ir_fn(cx), r)->birth > v->born)
      face_error(L, ERR_REGION, "a vector from an earlier pass over a loop's "
                 "body was used\n  keep it in a local, not in a table "
                 "or a global");
    ir_use(cx, ir_fn(cx), r);
  }
  v->consumed = true;
  return v;
}

Vector *veclib_check(lua_State *L, int idx) {
  Vector *v = veclib_test(L, idx);
  if (!v) face_argerror(L, idx, "vector (of t:load())");
  return v;
}

// ---- operands ----

static int64_t check_count(Ctx *cx, Tup shape) {
  if (!tup_static(shape) || tup_has_any(shape))
    ctx_fail(cx, ERR_STATIC, "a vector needs a static shape, got %s",
             tup_text(cx, shape));
  int64_t n = dim_value(tup_size(cx, shape));
  if (n < 0 || n > MAX_ELEMENTS)
    ctx_fail(cx, ERR_LIMIT, "a vector of %lld elements is too large: at most "
             "%d",
             (long long)n, MAX_ELEMENTS);
  return n;
}

static Tup common_shape(Ctx *cx, Tup a, Tup b) {
  if (!a || !b || tup_eq(a, b)) return a ? a : b;
  Tup t = tup_broadcast(cx, a, b);
  if (!t)
    ctx_fail(cx, ERR_SHAPE, "vectors of shape %s and %s cannot be broadcast "
             "together\n  modes must be equal, or 1 in one of them; missing "
             "modes at the end count as 1", tup_text(cx, a), tup_text(cx, b));
  return t;
}

// Broadcasts the elements r from shape `from` to `shape`. Returns one element
// for each coordinate of `shape`.
static const Ref *broadcast(Ctx *cx, const Ref *r, Tup from, Tup shape) {
  if (tup_eq(from, shape)) return r;
  Layout l = layout_broadcast(cx, from, shape);
  int64_t n = check_count(cx, shape);
  Ref *out = NEW(cx, Ref, (size_t)n);
  for (int64_t i = 0; i < n; i++)
    out[i] = r[dim_value(layout_eval_at(cx, l, dim_int(cx, i)))];
  return out;
}

static void reshape(Ctx *cx, Elements *a, Tup shape) {
  for (int i = 0; i < a->n; i++)
    if (a->o[i].r)
      a->o[i].r = broadcast(cx, a->o[i].r, a->shape, shape);
  a->shape = shape;
  a->count = check_count(cx, shape);
}

void veclib_join(Ctx *cx, Elements *a, Elements *b) {
  Tup shape = common_shape(cx, a->shape, b->shape);
  if (!shape) return;
  reshape(cx, a, shape);
  reshape(cx, b, shape);
}

// Reports whether one of the n arguments from `first` on is a vector or a
// traced value.
bool veclib_any_traced(lua_State *L, int first, int n) {
  for (int i = first; i < first + n; i++)
    if (lua_isuserdata(L, i) && (luaL_testudata(L, i, MT_VECTOR) ||
                                 luaL_testudata(L, i, MT_VALUE)))
      return true;
  return false;
}

// Reads n operands from argument `first` on. If `exact`, and the operands are
// scalars, numbers must fit the type of the traced ones.
static Elements operands(Ctx *cx, lua_State *L, int first, int n, bool exact) {
  Elements a = {.n = n, .count = 1};
  const Vector *v[MAX_OPERANDS];
  bool number[MAX_OPERANDS], traced = false;
  for (int i = 0; i < n; i++) {
    Element *o = &a.o[i];
    v[i] = veclib_test(L, first + i);
    number[i] = !v[i] && (!lua_isuserdata(L, first + i) ||
                          trace_is_choice(L, first + i));
    if (v[i]) {
      a.shape = common_shape(cx, a.shape, v[i]->shape);
      a.type = dtype_common(a.type, v[i]->type);
    } else if (!number[i]) {
      o->s = face_check_value(cx, L, first + i, DT_NONE);
      a.type = dtype_common(a.type, ir_type(ir_fn(cx), o->s));
      traced = true;
    }
  }
  if (a.shape) a.count = check_count(cx, a.shape);
  for (int i = 0; i < n; i++)
    if (v[i]) a.o[i].r = broadcast(cx, v[i]->r, v[i]->shape, a.shape);
  exact = exact && traced && !a.shape;
  for (int i = 0; i < n; i++)
    if (number[i]) {
      bool wide = !exact && !dtype_is_float(a.type) && lua_type(L, first + i) ==
                  LUA_TNUMBER && !lua_isinteger(L, first + i);
      a.o[i].s = face_check_value(cx, L, first + i,
                                  wide ? DT_NONE : a.type);
      a.type = dtype_common(a.type, ir_type(ir_fn(cx), a.o[i].s));
    }
  return a;
}

Elements veclib_operands(Ctx *cx, lua_State *L, int first, int n) {
  return operands(cx, L, first, n, false);
}

Elements veclib_operators(Ctx *cx, lua_State *L, int first, int n) {
  return operands(cx, L, first, n, true);
}

// Returns the tuple at idx, or the shape of a layout.
static Tup check_shape(Ctx *cx, lua_State *L, int idx) {
  Layout l;
  Tup t = face_test_layout(L, idx, &l) ? l.shape : face_check_tup(cx, L, idx);
  check_count(cx, t);
  return layout_compact(cx, t).shape;
}

// ---- mapping ----

int veclib_result(lua_State *L, const Elements *a, DType type, const Ref *r) {
  if (a->shape) veclib_push(L, type, a->shape, r, a->count);
  else face_push_value(L, r[0]);
  return 1;
}

int veclib_map(lua_State *L, Ctx *cx, const Elements *a, DType in, Apply *f,
               int how) {
  Ref *out = NEW(cx, Ref, (size_t)a->count);
  for (int64_t i = 0; i < a->count; i++) {
    Ref x[MAX_OPERANDS];
    for (int k = 0; k < a->n; k++)
      x[k] = ir_cvt(cx, ir_fn(cx), in, veclib_at(&a->o[k], i));
    out[i] = f(cx, how, x);
  }
  return veclib_result(L, a, a->count ? ir_type(ir_fn(cx), out[0]) : in, out);
}

Ref veclib_apply1(Ctx *cx, int how, const Ref *a) {
  return ir_op1(cx, ir_fn(cx), (Op)how, a[0]);
}

Ref veclib_apply2(Ctx *cx, int how, const Ref *a) {
  return ir_op2(cx, ir_fn(cx), (Op)how, a[0], a[1]);
}

Ref veclib_apply_math(Ctx *cx, int how, const Ref *a) {
  return ir_math(cx, ir_fn(cx), (MathFn)how, a[0],
                 math_arity((MathFn)how) == 2 ? a[1] : 0);
}

DType veclib_float(DType t) { return dtype_is_float(t) ? t : DT_F32; }

// ---- methods ----

static int convert(lua_State *L, int bitcast) {
  Ctx *cx = face_enter(L);
  const Vector *v = veclib_check(L, 1);
  DType t = face_check_dtype(L, 2);
  Ref *out = NEW(cx, Ref, (size_t)v->n);
  for (int64_t i = 0; i < v->n; i++)
    out[i] = bitcast ? ir_bitcast(cx, ir_fn(cx), t, v->r[i])
                     : ir_cvt(cx, ir_fn(cx), t, v->r[i]);
  veclib_push(L, t, v->shape, out, v->n);
  return 1;
}

typedef struct Reduction {
  const char *name;
  Op op;
} Reduction;

static Op check_reduction(lua_State *L, int idx) {
  static const Reduction all[] = {
    {"add", OP_ADD}, {"mul", OP_MUL}, {"max", OP_MAX}, {"min", OP_MIN},
    {"and", OP_AND}, {"or", OP_OR}, {NULL, OP_NOP}};
  const char *s = lua_tostring(L, idx);
  for (const Reduction *r = all; s && r->name; r++)
    if (strcmp(r->name, s) == 0) return r->op;
  face_error(L, ERR_NAME, "no reduction '%s'; possible are add, mul, max, min, "
             "and, or", s ? s : face_typename(L, idx));
}

// Returns `shape` with extent 1 in the modes that the profile reduces.
static Tup kept_shape(Ctx *cx, Tup profile, Tup shape) {
  if (tup_is_leaf(profile))
    return dim_kind(*profile) == DIM_ANY ? shape : tup_int(cx, 1);
  TupB b = {0};
  tupb_open(cx, &b);
  Tup p = tup_first(profile), s = tup_first(shape);
  for (int n = tup_rank(profile); n-- > 0; p = tup_next(p), s = tup_next(s))
    tupb_put(cx, &b, kept_shape(cx, p, s));
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

// v:reduce(op, init [, profile [, {keep = true}]]) -> a scalar. With a profile
// such as {_, 1}, a vector with the modes marked `_`. Begins with init and
// combines the elements in their order.
static int vec_reduce(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Vector *v = veclib_check(L, 1);
  Op op = check_reduction(L, 2);
  Ref init = face_check_value(cx, L, 3, v->type);
  face_check_options(L, 5, "keep");
  bool keep = lua_istable(L, 5) && face_get_bool(L, 5, "keep");
  Tup profile = lua_isnoneornil(L, 4) ? tup_int(cx, 0)
                                      : face_check_tup(cx, L, 4);
  if (!tup_weakly_congruent(profile, v->shape))
    face_error(L, ERR_SHAPE, "the reduction profile %s does not fit the shape "
               "%s", tup_text(cx, profile), tup_text(cx, v->shape));
  Tup kept = kept_shape(cx, profile, v->shape);
  Layout at = layout_broadcast(cx, kept, v->shape);
  int64_t n = dim_value(tup_size(cx, kept));
  Ref *out = NEW(cx, Ref, (size_t)n);
  for (int64_t i = 0; i < n; i++) out[i] = init;
  for (int64_t i = 0; i < v->n; i++) {
    Ref *o = &out[dim_value(layout_eval_at(cx, at, dim_int(cx, i)))];
    *o = ir_op2(cx, ir_fn(cx), op, *o, v->r[i]);
  }
  bool scalar = tup_is_leaf(profile) && dim_kind(*profile) != DIM_ANY;
  if (scalar && !keep) face_push_value(L, out[0]);
  else veclib_push(L, v->type, keep ? kept : tup_slice(cx, profile, v->shape),
                   out, n);
  return 1;
}

// ---- shapes ----

static int vec_broadcast_to(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Vector *v = veclib_check(L, 1);
  Tup to = check_shape(cx, L, 2);
  int64_t n = check_count(cx, to);
  Tup t = tup_broadcast(cx, v->shape, to);
  if (!t || dim_value(tup_size(cx, t)) != n)
    face_error(L, ERR_SHAPE, "a vector of shape %s cannot be broadcast to %s"
               "\n  its modes must be equal to those, or 1; missing modes at "
               "the end count as 1", tup_text(cx, v->shape), tup_text(cx, to));
  veclib_push(L, v->type, to, broadcast(cx, v->r, v->shape, t), n);
  return 1;
}

static int vec_reshape(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Vector *v = veclib_check(L, 1);
  Tup to = check_shape(cx, L, 2);
  if (dim_value(tup_size(cx, to)) != v->n)
    face_error(L, ERR_SHAPE, "a vector of shape %s has %lld elements, "
               "but shape %s has a different number of elements",
               tup_text(cx, v->shape), (long long)v->n, tup_text(cx, to));
  veclib_push(L, v->type, to, v->r, v->n);
  return 1;
}

// broadcast(x...) -> the arguments. Vectors are broadcast to one shape, other
// values are unchanged.
static int l_broadcast(lua_State *L) {
  Ctx *cx = face_enter(L);
  int n = lua_gettop(L);
  Tup shape = NULL;
  for (int i = 1; i <= n; i++) {
    const Vector *v = veclib_test(L, i);
    if (v) shape = common_shape(cx, shape, v->shape);
  }
  int64_t count = shape ? check_count(cx, shape) : 0;
  for (int i = 1; i <= n; i++) {
    const Vector *v = veclib_test(L, i);
    if (!v) continue;
    veclib_push(L, v->type, shape, broadcast(cx, v->r, v->shape, shape),
                count);
    lua_replace(L, i);
  }
  return n;
}

// Reads the element of v at a coordinate known only on the device: copies v to
// a register fragment, which can be indexed.
static int traced_element(lua_State *L, Ctx *cx, const Vector *v, Layout l,
                          Tup c) {
  if (tup_has_any(c))
    face_error(L, ERR_REGS, "a vector must be sliced by numbers that are known "
               "while tracing, not %s\n  unroll with a plain Lua loop, or "
               "slice a fragment: r:store(v)", tup_text(cx, c));
  Tensor r = tensor_make_rmem(cx, v->type, l);
  tensor_store_all(cx, r, v->r);
  face_push_value(L, tensor_load(cx, r, c));
  return 1;
}

// v[i], v(i, j) -> the element at a coordinate. If the coordinate contains `_`,
// a vector with these modes.
static int vec_call(lua_State *L) {
  Ctx *cx = face_enter(L);
  const Vector *v = veclib_check(L, 1);
  Tup c = tensorlib_coord(cx, L, 2);
  Layout l = layout_compact(cx, v->shape);
  tensor_check_index(cx, v->shape, c);
  if (!tup_static(c)) return traced_element(L, cx, v, l, c);
  if (!tup_has_any(c)) {
    face_push_value(L, v->r[dim_value(layout_eval(cx, l, c))]);
    return 1;
  }
  Dim o;
  l = layout_slice(cx, l, c, &o);
  int64_t n = dim_value(layout_size(cx, l));
  Ref *out = NEW(cx, Ref, (size_t)n);
  for (int64_t i = 0; i < n; i++)
    out[i] = v->r[dim_value(o) +
                  dim_value(layout_eval_at(cx, l, dim_int(cx, i)))];
  veclib_push(L, v->type, l.shape, out, n);
  return 1;
}

static int vec_index(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return vec_call(L);
  const char *k = lua_tostring(L, 2);
  if (luaL_getmetafield(L, 1, k) != LUA_TNIL) return 1;
  const Vector *v = veclib_check(L, 1);
  if (strcmp(k, "shape") == 0)
    face_push_tup(L, v->shape);
  else if (strcmp(k, "dtype") != 0 && strcmp(k, "element_type") != 0)
    face_nofield(L, 0, "shape dtype element_type");
  else {
    trace_typed(L);
    face_push_dtype(L, v->type);
  }
  return 1;
}

static int vec_newindex(lua_State *L) {
  face_error(L, ERR_ARG, "a vector is immutable: build a new one, or store to "
             "a tensor of make_rmem_tensor");
}

static int vec_len(lua_State *L) {
  lua_pushinteger(L, veclib_check(L, 1)->n);
  return 1;
}

static int vec_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  const Vector *v = face_check(L, 1, MT_VECTOR, "vector");
  Buf out = {0};
  buf_printf(cx, &out, "vector[%s] ", dtype_name(v->type));
  tup_print(cx, v->shape, &out);
  face_push_buf(L, &out);
  return 1;
}

// ---- load and store ----

static int tensor_load_vector(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  face_tracing(cx, L, "t:load()");
  int64_t n = tensor_count(cx, &t, "load");
  Ref *r = NEW(cx, Ref, (size_t)n);
  tensor_load_all(cx, t, r);
  veclib_push(L, t.type, t.l.shape, r, n);
  return 1;
}

static int tensor_store_vector(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  face_tracing(cx, L, "t:store(v)");
  const Vector *v = veclib_check(L, 2);
  int64_t n = tensor_count(cx, &t, "store");
  if (n != v->n)
    face_error(L, ERR_SHAPE, "a vector of shape %s cannot be stored to the "
               "%lld elements of\n  %s", tup_text(cx, v->shape), (long long)n,
               tensor_show(cx, &t));
  if (v->type != t.type)
    face_error(L, ERR_TYPE, "a vector of %s cannot be stored to a tensor of "
               "%s\n  %s\n  convert it with :to(cute.%s)", dtype_name(v->type),
               dtype_name(t.type), tensor_show(cx, &t), dtype_name(t.type));
  tensor_store_all(cx, t, v->r);
  return 0;
}

// ---- construction ----

static int push_full(lua_State *L, Ctx *cx, DType t, Tup shape, Ref x) {
  int64_t n = check_count(cx, shape);
  Ref *r = NEW(cx, Ref, (size_t)n);
  for (int64_t i = 0; i < n; i++) r[i] = x;
  veclib_push(L, t, shape, r, n);
  return 1;
}

// full(shape, x, dtype [, options]) -> a vector in kernels, a tensor elsewhere
static int l_full(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (!ir_fn(cx)) return hostlib_full(L);
  Tup shape = check_shape(cx, L, 1);
  DType t = face_check_dtype(L, 3);
  return push_full(L, cx, t, shape, face_check_value(cx, L, 2, t));
}

// Pushes a vector with the shape of argument 1, a vector or tensor. All
// elements equal the value at index xi or, if xi is 0, `number`. ti is the
// index of the type.
static int full_like(lua_State *L, int xi, int number, int ti) {
  Ctx *cx = face_enter(L);
  Tensor t;
  if (!ir_fn(cx) && face_test_tensor(L, 1, &t))
    return hostlib_like(L, xi, number, ti);
  face_tracing(cx, L, "full_like");
  const Vector *v = veclib_test(L, 1);
  DType type = v ? v->type : DT_NONE;
  if (!v) {
    t = face_check_tensor(L, 1);
    type = t.type;
  }
  if (!lua_isnoneornil(L, ti)) type = face_check_dtype(L, ti);
  lua_settop(L, 3);
  if (!xi) lua_pushinteger(L, number);
  Ref x = face_check_value(cx, L, xi ? xi : 4, type);
  return push_full(L, cx, type, v ? v->shape : t.l.shape, x);
}

static int l_full_like(lua_State *L) { return full_like(L, 2, 0, 3); }
static int l_some_like(lua_State *L, int x) { return full_like(L, 0, x, 2); }

// ---- module ----

static const FnRow vector_rows[] = {
  {"to(dtype)", "", NUMBERED(convert, false)},
  {"bitcast(dtype)", "", NUMBERED(convert, true)},
  {"reduce(op, init, modes?, options?)", "", FN(vec_reduce)},
  {"broadcast_to(shape)", "", FN(vec_broadcast_to)},
  {"reshape(shape)", "", FN(vec_reshape)},
  LAST_ROW};

static const luaL_Reg vector_meta[] = {
  {"__len", vec_len}, {"__tostring", vec_tostring}, {"__index", vec_index},
  {"__newindex", vec_newindex}, {"__call", vec_call}, {NULL, NULL}};

static const luaL_Reg tensor_methods[] = {
  {"load()", tensor_load_vector}, {"store(vector)", tensor_store_vector},
  {NULL, NULL}};

static const FnRow rows[] = {
  {"full(shape, x, dtype?, opts?)", "", FN(l_full)},
  {"full_like(x, value, dtype?)", "", FN(l_full_like)},
  {"zeros_like(x, dtype?)", "", NUMBERED(l_some_like, 0)},
  {"ones_like(x, dtype?)", "", NUMBERED(l_some_like, 1)},
  {"broadcast", "", FN(l_broadcast)},
  LAST_ROW};

void veclib_open(lua_State *L) {
  face_newtype(L, MT_VECTOR, vector_meta);
  face_setrows(L, vector_rows);
  luaL_getmetatable(L, MT_TENSOR);
  face_setfuncs(L, tensor_methods);
  lua_pop(L, 2);
  face_setrows(L, rows);
}
// SPDX-License-Identifier: MIT
