// Lua bindings of tensors: t(coord) loads an element or slices t; t[coord]
// reads or writes an element; methods and constructors.
#include "bind/row.h"

#include <string.h>

#include "ir/fold.h"
#include "bind/gpulib.h"
#include "bind/laylib.h"
#include "bind/tensorlib.h"
#include "bind/trace.h"
#include "layout/composed.h"
#include "tensor/place.h"

// ---- elements ----

// Computes the offset of t(i, j, ...) for n coordinates that begin at stack
// index `first`. Returns false unless they are integers inside of modes that
// are not nested. Does not create an IntTuple, so that loops on the host are
// fast.
static bool plain_offset(Ctx *cx, lua_State *L, const Tensor *t, int first,
                         int n, Dim *off) {
  if (t->mem || t->space == SP_COORD || t->l.outer || t->l.at ||
      n != tup_rank(t->l.shape) || !dim_static(t->off))
    return false;
  const Dim *shape = tup_first(t->l.shape), *stride = t->l.stride;
  int64_t sum = dim_value(t->off), step;
  for (int i = 0; i < n; i++) {
    if (!dim_static(shape[i]) || !dim_static(stride[i]) ||
        !lua_isinteger(L, first + i))
      return false;
    int64_t c = lua_tointeger(L, first + i);
    if (c < 0 || c >= dim_value(shape[i]) ||
        __builtin_mul_overflow(c, dim_value(stride[i]), &step) ||
        __builtin_add_overflow(sum, step, &sum))
      return false;
  }
  *off = dim_int(cx, sum);
  return true;
}

// Reports whether a layout is that of an iterator: one element.
static bool is_iterator(const Layout *l) {
  return tup_is_leaf(l->shape) && dim_is(*l->shape, 1);
}

// Moves an iterator by coordinate c, and sets the coordinate to 0: like p[c] in
// C++, t[c] is the element that lies c elements after iterator t.
static Tensor at_iterator(Ctx *cx, Tensor t, Tup *c) {
  if (t.space == SP_COORD || !is_iterator(&t.l) || !tup_is_leaf(*c)) return t;
  t = tensor_offset(cx, t, **c);
  *c = tup_int(cx, 0);
  return t;
}

static void push_element(Ctx *cx, lua_State *L, int idx, Tensor t, Tup c) {
  t = at_iterator(cx, t, &c);
  if (t.space == SP_COORD) {
    tensor_check_coord(cx, &t, c);
    Tup at = tensor_coord(cx, t, c);
    if (tup_is_leaf(at)) face_push_dim(L, *at);
    else face_push_tup(L, at);
  } else if (t.mem) {
    face_push_value(L, tensor_load(cx, t, c));
  } else {
    tensor_check_coord(cx, &t, c);
    Dim off = dim_add(cx, t.off, layout_eval(cx, t.l, c));
    hostlib_get(cx, L, idx, &t, off);
  }
}

static void set_element(Ctx *cx, lua_State *L, Tensor t, Tup c, int value) {
  if (t.space == SP_COORD)
    face_error(L, ERR_ARG, "a coordinate tensor cannot be written");
  if (tup_has_any(c))
    face_error(L, ERR_ARG, "one element is set at a time, not a slice: "
               "t(coord):fill(x) or t(coord):store(v)\n  coordinate %s",
               tup_text(cx, c));
  t = at_iterator(cx, t, &c);
  if (t.mem) {
    tensor_store(cx, t, c, face_check_value(cx, L, value, t.type));
    return;
  }
  tensor_check_coord(cx, &t, c);
  Dim off = dim_add(cx, t.off, layout_eval(cx, t.l, c));
  hostlib_set(cx, L, 1, &t, off, value);
}

// t(coord...) -> the element at coord, or a slice of t if coord contains `_`
static int tensor_call(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  Dim off;
  if (plain_offset(cx, L, &t, 2, lua_gettop(L) - 1, &off))
    return hostlib_get(cx, L, 1, &t, off), 1;
  Tup c = tensorlib_coord(cx, L, 2);
  if (tup_has_any(c)) {
    Tensor s = tensor_slice(cx, t, c);
    tensorlib_push_view(L, &s, 1);
  } else {
    push_element(cx, L, 1, t, c);
  }
  return 1;
}

#define FIELDS "shape stride layout element_type dtype memspace alignment " \
               "device iterator address"

static bool push_field(Ctx *cx, lua_State *L, const char *k) {
  Tensor t = face_check_tensor(L, 1);
  if (strcmp(k, "shape") == 0) {
    face_push_tup(L, t.l.shape);
  } else if (strcmp(k, "stride") == 0) {
    face_push_tup(L, layout_stride(cx, t.l));
  } else if (strcmp(k, "layout") == 0) {
    face_push_layout(L, t.l);
  } else if (strcmp(k, "element_type") == 0 || strcmp(k, "dtype") == 0) {
    trace_typed(L);
    face_push_dtype(L, t.type);
  } else if (strcmp(k, "memspace") == 0) {
    lua_pushstring(L, ir_space(t.space));
  } else if (strcmp(k, "alignment") == 0) {
    lua_pushinteger(L, t.align);
  } else if (strcmp(k, "device") == 0) {
    devlib_push_device(L, 1);
  } else if (strcmp(k, "address") == 0) {
    kernlib_push_address(L);
  } else if (strcmp(k, "iterator") == 0) {
    t = tensor_iterator(cx, t);
    tensorlib_push_view(L, &t, 1);
  } else {
    return false;
  }
  return true;
}

// Implements __index: a field, a method, or the element t[coord].
static int tensor_index(lua_State *L) {
  if (lua_type(L, 2) != LUA_TSTRING) return tensor_call(L);
  const char *k = lua_tostring(L, 2);
  if (luaL_getmetafield(L, 1, k) != LUA_TNIL) return 1;
  Ctx *cx = face_ctx(L);
  if (!push_field(cx, L, k))
    face_nofield(L, 0, FIELDS);
  return 1;
}

// t[coord] = value
static int tensor_newindex(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  if (lua_type(L, 2) == LUA_TSTRING)
    face_error(L, ERR_NAME, "a tensor has no field '%s' to set",
               lua_tostring(L, 2));
  Dim off;
  if (plain_offset(cx, L, &t, 2, 1, &off))
    return hostlib_set(cx, L, 1, &t, off, 3), 0;
  set_element(cx, L, t, face_check_tup(cx, L, 2), 3);
  return 0;
}

// t:set(coord, value), or t:set(i, j, ..., value): writes an element
static int tensor_set(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  if (lua_gettop(L) < 3) face_error(L, ERR_ARG, "set(coord, value)");
  lua_rotate(L, 2, 1);  // move the value to index 2
  Tup c = tensorlib_coord(cx, L, 3);
  set_element(cx, L, t, c, 2);
  return 0;
}

static int tensor_tostring(lua_State *L) {
  Ctx *cx = face_ctx(L);
  TensorBox *b = face_check(L, 1, MT_TENSOR, "tensor");
  Fn *fn = ir_fn(cx);
  if (!fn || b->serial != fn->serial) ir_aside(cx);
  Buf out = {0};
  tensor_print(cx, b->t, &out);
  char *host = b->dev && out.p ? strstr(out.p, ",host]") : NULL;
  if (host) {
    memmove(host + 5, host + 6, strlen(host + 6) + 1);
    memcpy(host, ",gpu]", 5);
    out.n--;
  }
  ir_back(cx);
  face_push_buf(L, &out);
  return 1;
}

// ---- operators ----

// operators(f): registers a function f(sign, a, b) of lua/cute, which applies
// an operator to whole tensors, element by element.
#define OPERATORS "cute.operators"  // key of f in the registry
static int l_operators(lua_State *L) {
  face_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, OPERATORS);
  return 0;
}

// Reports whether the value at idx is a tensor in memory whose elements a host
// program can use in arithmetic. Returns false for iterators and coordinate
// tensors.
static bool is_whole(lua_State *L, int idx) {
  const TensorBox *b = tensorlib_box(L, idx);
  if (!b || b->t.mem || b->t.space == SP_COORD) return false;
  return !is_iterator(&b->t.l);
}

// Applies an operator to the whole tensors and numbers at stack indices 1 and
// 2, outside of a kernel. Returns false inside of a kernel, and for other
// operands.
static bool apply_whole(lua_State *L, Ctx *cx, const char *sign) {
  if (ir_fn(cx) || !(is_whole(L, 1) || is_whole(L, 2))) return false;
  for (int i = 1; i <= 2; i++)
    if (!is_whole(L, i) && lua_type(L, i) != LUA_TNUMBER) return false;
  if (lua_getfield(L, LUA_REGISTRYINDEX, OPERATORS) == LUA_TNIL) {
    lua_pop(L, 1);
    return false;
  }
  lua_pushstring(L, sign);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  bool step = *sign == '+' && (lua_isinteger(L, 1) || lua_isinteger(L, 2));
  lua_call(L, 3, 1);
  TensorBox *result = tensorlib_box(L, -1);
  if (result) result->sum = step;
  return true;
}

// iterator + n, n + iterator -> the iterator advanced by n elements. Outside of
// a kernel, tensor + tensor and tensor + number add the elements.
static int tensor_add(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (apply_whole(L, cx, "+")) return 1;
  int at = tensorlib_box(L, 1) ? 1 : 2;
  Tensor t = face_check_tensor(L, at);
  Dim o;
  if (!ir_fn(cx) && is_whole(L, at) && lua_type(L, 3 - at) != LUA_TNUMBER)
    face_error(L, ERR_ARG, "operator '+' does not apply to %s and %s",
               face_show(L, 1), face_show(L, 2));
  if (!face_test_dim(cx, L, 3 - at, &o))
    face_error(L, ERR_ARG, "only an integer can be added to an iterator, not "
               "a %s; elements are added with a:load() + b:load()",
               face_typename(L, 3 - at));
  t = tensor_offset(cx, t, o);
  tensorlib_push_view(L, &t, at);
  return 1;
}

// Binary and unary operators: O(metamethod, sign).
#define BINARY(O) \
  O(sub, "-") O(mul, "*") O(div, "/") O(idiv, "//") O(mod, "%") O(pow, "^") \
  O(band, "&") O(bor, "|") O(bxor, "~") O(shl, "<<") O(shr, ">>")
#define UNARY(O) O(unm, "-") O(bnot, "~")

enum {
#define SIGN(name, sign) SIGN_##name,
  BINARY(SIGN) UNARY(SIGN)
#undef SIGN
};
static const char *const signs[] = {
#define SIGN(name, sign) sign,
  BINARY(SIGN) UNARY(SIGN)
#undef SIGN
};

// Applies the operator signs[k] to tensors and numbers.
static int tensor_operator(lua_State *L, int k) {
  const char *sign = signs[k];
  Ctx *cx = face_enter(L);
  if (apply_whole(L, cx, sign)) return 1;
  const char *a = face_show(L, 1), *b = face_show(L, 2);
  if (!ir_fn(cx))
    face_error(L, ERR_ARG, "operator '%s' does not apply to %s and %s", sign,
               a, b);
  face_error(L, ERR_ARG, "operator '%s' in a kernel needs elements or vectors, "
             "not %s and %s\n  write x[i] %s y[i], or x:load() %s y:load()",
             sign, a, b, sign, sign);
}

// Computes -t or ~t.
static int tensor_unary(lua_State *L, int k) {
  Ctx *cx = face_enter(L);
  if (apply_whole(L, cx, k == SIGN_unm ? "unm" : "bnot")) return 1;
  face_error(L, ERR_ARG, "operator '%s' does not apply to %s%s", signs[k],
             face_show(L, 1), ir_fn(cx) ? "\n  write an element, x[i], or a "
             "vector, x:load()" : "");
}

// Raises the error for t < u and t <= u. They cannot compare element by
// element, because Lua converts the result to one boolean.
static int tensor_less(lua_State *L, int equal) {
  face_error(L, ERR_ARG, "operator '%s' does not apply to %s and %s\n  write "
             "cute.ops.elementwise(cute.%s, x, y) to compare each element",
             equal ? "<=" : "<", face_show(L, 1), face_show(L, 2),
             equal ? "le" : "lt");
}

static const FnRow operators[] = {
#define EVENT(name, sign) {"__" #name, "", NUMBERED(tensor_operator, \
                                                   SIGN_##name)},
  BINARY(EVENT)
#undef EVENT
#define EVENT(name, sign) {"__" #name, "", NUMBERED(tensor_unary, SIGN_##name)},
  UNARY(EVENT)
#undef EVENT
  {"__lt", "", NUMBERED(tensor_less, 0)},
  {"__le", "", NUMBERED(tensor_less, 1)}, LAST_ROW};

// t:fill(x): sets every element to x.
static int tensor_lfill(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  if (t.space == SP_COORD)
    face_error(L, ERR_ARG, "a coordinate tensor cannot be written");
  if (!t.mem && !ir_fn(cx) && tensorlib_box(L, 1)->host &&
      recordlib_recorded(L))
    return lua_settop(L, 1), 1;
  if (t.mem)
    tensor_fill(cx, t, face_check_value(cx, L, 2, t.type));
  else
    hostlib_fill(cx, L, 1, &t, 2);
  lua_settop(L, 1);
  return 1;
}

// Iterates for `for i, x in t:elements() do`: returns the next i and x, where i
// is the 1-D coordinate of element x.
static int next_element(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  Dim i = dim_int(cx, face_checkint(L, 2) + 1);
  if (i.w >= tensor_count(cx, &t, "elements")) return 0;
  lua_pushinteger(L, i.w);
  push_element(cx, L, 1, t, &i);
  return 2;
}

static int tensor_elements(lua_State *L) {
  face_check_tensor(L, 1);
  lua_pushlightuserdata(L, face_state(L));
  lua_pushcclosure(L, next_element, 1);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, -1);
  return 3;
}

// ---- construction ----

static void check_offsets(Ctx *cx, lua_State *L, Layout l) {
  if (layout_has_basis(l) && !l.outer)
    face_error(L, ERR_ARG, "make_tensor: %s gives coordinates, not offsets "
               "into memory", layout_text(cx, l));
}

static Layout check_fits(Ctx *cx, lua_State *L, const HostBuf *b, Layout l) {
  l = layout_linear(cx, l);
  check_offsets(cx, L, l);
  // The range of a Lua function is unknown, so each access is checked instead.
  if (layout_has_fn(l)) return l;
  Dim need = layout_cosize(cx, l), below = layout_below(cx, l);
  if (!dim_is(below, 0))
    face_error(L, ERR_SHAPE, "make_tensor: %s reaches %lld elements before the "
               "buffer's first: start the iterator later", layout_text(
               cx, l), (long long)below.w);
  if (dim_static(need) && dim_value(need) > (int64_t)b->count)
    face_error(L, ERR_SHAPE, "a buffer of %lld elements is too small for %s, "
               "which needs %lld", (long long)b->count,
               layout_text(cx, l), (long long)dim_value(need));
  return l;
}

// Returns the coordinate tensor of layout l that begins at the coordinate in
// argument 1, such as (1,2) o (4,4):(1@0,1@1), or 5 o 4:2.
static Tensor counting(Ctx *cx, lua_State *L, Layout l) {
  Tensor t = {.space = SP_COORD, .type = DT_I32, .l = l, .align = 1,
              .base = face_check_tup(cx, L, 1)};
  Tup at = layout_eval_tup(cx, l, tup_int(cx, 0));
  if (tup_is_leaf(at) ? !tup_is_leaf(t.base)
                      : !tup_weakly_congruent(at, t.base))
    face_error(L, ERR_SHAPE, "make_tensor: coordinate %s cannot be the "
               "origin of layout %s, whose values have the form %s",
               tup_text(cx, t.base), layout_text(cx, l), tup_text(cx, at));
  return t;
}

// make_tensor(iterator or buffer, layout or shape) -> a tensor.
// make_tensor(coordinate, layout or shape) -> a coordinate tensor that begins
// at this coordinate.
static int l_make_tensor(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = {.space = SP_HOST};
  Dim d;
  Layout l = laylib_layout(cx, L, 2);
  if (face_test_tensor(L, 1, &t)) {
    if (tensorlib_box(L, 1)->sum)
      face_error(L, ERR_ARG, "an iterator is needed, but x + n is %s, a tensor "
                 "of sums\n  write x.iterator + n for a view that begins n "
                 "elements later, or (x + n).iterator", face_show(L, 1));
    if (t.space != SP_COORD) check_offsets(cx, L, l);
    t = tensor_view(cx, t, l);
    tensorlib_push_view(L, &t, 1);
    return 1;
  }
  if (lua_istable(L, 1) || face_test_dim(cx, L, 1, &d)) {
    t = counting(cx, L, l);
    face_push_tensor(L, &t, 0);
    return 1;
  }
  HostBuf *b = face_test(L, 1, MT_BUFFER);
  if (!b) face_argerror(L, 1, "iterator, tensor, buffer or coordinate");
  if (!hostbuf_open(b)) face_error(L, ERR_CLOSED, "the buffer was closed");
  t.type = b->t;
  t.l = check_fits(cx, L, b, l);
  t.align = HOSTBUF_ALIGN;
  face_push_tensor(L, &t, 1);
  return 1;
}

static int l_make_rmem_tensor(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_tracing(cx, L, "make_rmem_tensor");
  Layout l = laylib_layout(cx, L, 1);
  Tensor t = tensor_make_rmem(cx, face_check_dtype(L, 2), l);
  face_push_tensor(L, &t, 0);
  return 1;
}

static int l_make_smem_tensor(lua_State *L) {
  Ctx *cx = face_enter(L);
  face_tracing(cx, L, "make_smem_tensor");
  DType type = face_check_dtype(L, 1);
  Layout l = laylib_layout(cx, L, 2);
  Tensor t = tensor_make_smem(cx, type, l, face_optint(L, 3, 0));
  face_push_tensor(L, &t, 0);
  return 1;
}

// make_fragment_like(t or layout, dtype) -> a tensor in registers
int tensorlib_fragment_like(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t;
  DType type = DT_NONE;
  bool tensor = face_test_tensor(L, 1, &t);
  if (!lua_isnoneornil(L, 2)) type = face_check_dtype(L, 2);
  else if (!tensor) face_argerror(L, 1, "tensor, or a layout and a type");
  face_tracing(cx, L, "make_fragment_like");
  Layout l = tensor ? t.l : face_check_layout(L, 1);
  Tensor r = tensor_make_like(cx, type ? type : t.type, l);
  face_push_tensor(L, &r, 0);
  return 1;
}

static int l_make_identity_tensor(lua_State *L) {
  Ctx *cx = face_enter(L);
  Layout l;
  Tup shape = face_test_layout(L, 1, &l) ? l.shape : face_check_tup(cx, L, 1);
  Tensor t = tensor_identity(cx, shape);
  face_push_tensor(L, &t, 0);
  return 1;
}

// ---- tiling ----

// local_partition(t, thread layout, index [, proj]) -> the elements of t that
// belong to thread `index`
static int l_local_partition(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  Layout thr = laylib_layout(cx, L, 2);
  Dim idx;
  if (!face_test_dim(cx, L, 3, &idx)) face_argerror(L, 3, "thread index");
  if (!lua_isnoneornil(L, 4)) {
    Tup proj = face_check_tup(cx, L, 4);
    int keep[32], n = 0, rank = tup_rank(proj);
    if (rank != layout_rank(thr) || rank > 32)
      face_error(L, ERR_SHAPE, "local_partition: the projection %s does not "
                 "fit the thread layout %s", tup_text(cx, proj),
                 layout_text(cx, thr));
    Tup p = tup_first(proj);
    for (int i = 0; i < rank; i++, p = tup_next(p))
      if (dim_kind(*p) != DIM_ANY) keep[n++] = i;
    thr = layout_select(cx, thr, keep, n);
  }
  t = tensor_local_partition(cx, t, thr, idx);
  tensorlib_push_view(L, &t, 1);
  return 1;
}

// ---- methods of the Python DSL's MemRange ----

static int tensor_data_ptr(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = tensor_iterator(cx, face_check_tensor(L, 1));
  tensorlib_push_view(L, &t, 1);
  return 1;
}

// t:get_tensor(layout [, swizzle [, dtype]]) -> a tensor with this layout,
// which begins at t's first element
static int tensor_get_tensor(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_settop(L, 4);
  Tensor t = tensor_iterator(cx, face_check_tensor(L, 1));
  Layout l = laylib_layout(cx, L, 2);
  Swizzle sw;
  if (laylib_test_swizzle(L, 3, &sw)) {
    t = tensor_unswizzled(cx, t);
    l = layout_swizzled(cx, sw, (Dim){0}, l);
  } else if (!lua_isnil(L, 3))
    face_argerror(L, 3, "swizzle");
  if (!lua_isnil(L, 4)) {
    DType to = face_check_dtype(L, 4);
    int n = (int)dtype_bits(to) / (int)dtype_bits(t.type);
    Layout some = layout_leaf(cx, dim_int(cx, n < 1 ? 1 : n), dim_int(cx, 1));
    t = tensor_recast(cx, tensor_view(cx, t, some), to);
    t = tensor_iterator(cx, t);
  }
  check_offsets(cx, L, l);
  t = tensor_view(cx, t, l);
  tensorlib_push_view(L, &t, 1);
  return 1;
}

// ---- module ----

static void methods_open(lua_State *L) {
  static const luaL_Reg meta[] = {
    {"__call", tensor_call}, {"__index", tensor_index},
    {"__newindex", tensor_newindex}, {"__tostring", tensor_tostring},
    {"__add", tensor_add}, {"set(values...)", tensor_set},
    {"fill(x)", tensor_lfill}, {"elements()", tensor_elements},
    {"data_ptr()", tensor_data_ptr},
    {"get_tensor(layout, swizzle?, dtype?)", tensor_get_tensor}, {NULL, NULL}};
  face_newtype(L, MT_TENSOR, meta);
  face_setrows(L, operators);
  face_setfuncs(L, hostlib_methods);
  face_setfuncs(L, devlib_methods);
  face_setfuncs(L, dlpacklib_methods);
  lua_pop(L, 1);
}

static const FnRow rows[] = {
  {"make_tensor(iterator, layout)", "", FN(l_make_tensor)},
  {"make_rmem_tensor(layout, dtype)", "", FN(l_make_rmem_tensor)},
  {"make_fragment(layout, dtype)", "", FN(l_make_rmem_tensor)},
  {"make_rmem_tensor_like(x, dtype?)", "", FN(tensorlib_fragment_like)},
  {"make_smem_tensor(dtype, layout, alignment?)", "", FN(l_make_smem_tensor)},
  {"make_identity_tensor(shape)", "", FN(l_make_identity_tensor)},
  {"local_tile(tensor, tiler, coord, proj?)", "XTPp>X", FN(tensor_local_tile)},
  {"inner_partition(tensor, tiler, coord, proj?)", "XTPp>X",
   FN(tensor_local_tile)},
  {"outer_partition(tensor, tiler, coord)", "XTP>X",
   FN(tensor_outer_partition)},
  {"local_partition(tensor, threads, index, proj?)", "",
   FN(l_local_partition)},
  {"partial_ok(tensor)", "X>X", FN(tensor_partial_ok)},
  {"undefined_ok(tensor)", "X>X", FN(tensor_undefined_ok)},
  {"nonfinite_ok(tensor)", "X>X", FN(tensor_nonfinite_ok)},
  {"recast_tensor(tensor, dtype)", "Xt>X", FN(tensor_recast)},
  {"recast(tensor, dtype)", "Xt>X", FN(tensor_recast)},
  LAST_ROW};

// unswizzled(tensor) -> a tensor without the swizzle. It begins at the address
// to which the swizzle is applied.
static int l_unswizzled(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = tensor_unswizzled(cx, face_check_tensor(L, 1));
  tensorlib_push_view(L, &t, 1);
  return 1;
}

void tensorlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {{"unswizzled", l_unswizzled},
                                   {"operators", l_operators}, {NULL, NULL}};
  face_setfuncs(L, funcs);
  methods_open(L);
  face_setrows(L, rows);
}
// SPDX-License-Identifier: MIT
