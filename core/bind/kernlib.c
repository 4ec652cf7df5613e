// The arguments of kernels: what distinguishes one specialisation from
// another, what the kernel sees in their place while it is traced, and where
// their bytes are at a launch.
#include "bind/trace.h"
#include "gpu/cuda.h"

#include <stdio.h>
#include <string.h>

#include "ir/fold.h"
#include "bind/laylib.h"
#include "layout/composed.h"

// ---- what an argument is to a kernel ----

// A number is an argument of this type; DT_NONE: it is no number.
static DType scalar_type(lua_State *L, int idx) {
  if (lua_type(L, idx) != LUA_TNUMBER) return DT_NONE;
  if (!lua_isinteger(L, idx)) return DT_F32;
  lua_Integer v = lua_tointeger(L, idx);
  return v == (int32_t)v ? DT_I32 : DT_I64;
}

// Elements from the first on that the tensor at idx may reach: where a
// function leads is not known before, so the rest of its memory.
static Dim span_of(Ctx *cx, lua_State *L, int idx, const Tensor *t) {
  if (!layout_has_fn(t->l)) return layout_cosize(cx, t->l);
  lua_getiuservalue(L, idx, 1);
  const HostBuf *host = face_test(L, -1, MT_BUFFER);
  const DevBuf *dev = face_test(L, -1, MT_DEVBUF);
  lua_pop(L, 1);  // the tensor keeps it alive
  int bits = dtype_bits(t->type);
  size_t n = host ? host->bytes * 8 / (size_t)bits
             : dev ? dev->bytes * 8 / (size_t)bits : 0;
  return dim_sub(cx, dim_int(cx, (int64_t)n), t->off);
}

// The tensor at idx as it is on the host, also while a kernel is traced.
static Tensor host_tensor(Ctx *cx, lua_State *L, int idx) {
  Fn *fn = ir_trace(cx, NULL);
  Tensor t = face_check_tensor(L, idx);
  ir_trace(cx, fn);
  const TensorMarks *m = tensor_marks(L, idx);
  if (m && m->align) t.align = m->align;
  if (t.space == SP_HOST) tensor_check_reach(cx, span_of(cx, L, idx, &t));
  return t;
}

// ---- the key of a specialisation ----

static void key_layout(Ctx *cx, Layout l, const TensorMarks *m, Buf *b) {
  for (const Outer *f = l.outer; f; f = f->l.outer)
    if (f->kind == OUTER_FN)
      buf_printf(cx, b, "%p/%d/%lld ", f->fn->id, f->fn->mode,
                 (long long)f->fn->run);
  if (!m) {
    layout_print(cx, l, b);
    return;
  }
  Layout bare = l;
  Dim *shape = NEW(cx, Dim, tup_words(l.shape));
  size_t leaf = 0;
  for (size_t i = 0; i < tup_words(l.shape); i++) {
    shape[i] = l.shape[i];
    if (dim_kind(shape[i]) == DIM_TUP) continue;
    if (m->shape[leaf]) {
      buf_printf(cx, b, "s%zu{%lld} ", leaf, (long long)m->shape[leaf]);
      shape[i] = dim_int(cx, 0);
    }
    leaf++;
  }
  Dim *stride = NEW(cx, Dim, leaf);
  for (size_t i = 0; i < leaf; i++) {
    stride[i] = l.stride[i];
    if (!m->stride[i]) continue;
    buf_printf(cx, b, "d%zu{%lld} ", i, (long long)m->stride[i]);
    stride[i] = dim_int(cx, 0);
  }
  bare.shape = shape;
  bare.stride = stride;
  layout_print(cx, bare, b);
}

// param_key(x) -> text: arguments with one key share a specialisation. Objects
// whose text does not say all of them go by their address.
static int l_param_key(lua_State *L) {
  Ctx *cx = face_enter(L);
  DType scalar = scalar_type(L, 1);
  if (luaL_testudata(L, 1, MT_TENSOR)) {
    Tensor t = host_tensor(cx, L, 1);
    Buf b = {0};
    buf_printf(cx, &b, "%s a%lld ", dtype_name(t.type), (long long)t.align);
    key_layout(cx, t.l, tensor_marks(L, 1), &b);
    if (tensor_wide(cx, t.l)) buf_puts(cx, &b, " wide");
    lua_pushlstring(L, b.p, b.n);
    buf_free(&b);
  } else if (scalar != DT_NONE) {
    lua_pushstring(L, dtype_name(scalar));
  } else if (lua_type(L, 1) == LUA_TSTRING) {
    lua_pushfstring(L, "%I:", (LUAI_UACINT)lua_rawlen(L, 1));
    lua_pushvalue(L, 1);
    lua_concat(L, 2);
  } else if (luaL_testudata(L, 1, MT_LAYOUT)) {
    Buf b = {0};
    key_layout(cx, face_check_layout(L, 1), NULL, &b);
    lua_pushlstring(L, b.p, b.n);
    buf_free(&b);
  } else if (lua_isboolean(L, 1) || luaL_testudata(L, 1, MT_DTYPE) ||
             laylib_const(L, 1)) {
    luaL_tolstring(L, 1, NULL);
  } else {
    lua_pushfstring(L, "%p", lua_topointer(L, 1));
  }
  return 1;
}

// ---- does a program still stand? ----

// Are two values the same for a trace? Numbers of one type and sign, layouts
// that are equal, and else one object.
static bool same_value(lua_State *L, int a, int b) {
  if (lua_type(L, a) == LUA_TNUMBER && lua_type(L, b) == LUA_TNUMBER) {
    if (lua_isinteger(L, a) != lua_isinteger(L, b)) return false;
    if (lua_isinteger(L, a)) return lua_rawequal(L, a, b);
    lua_Number x = lua_tonumber(L, a), y = lua_tonumber(L, b);
    return memcmp(&x, &y, sizeof x) == 0;
  }
  if (lua_rawequal(L, a, b)) return true;
  return luaL_testudata(L, a, MT_LAYOUT) && luaL_testudata(L, b, MT_LAYOUT) &&
         lua_compare(L, a, b, LUA_OPEQ);
}

// Is the value on top, which is popped, entry i of the list on the next place?
static bool is_entry(lua_State *L, lua_Integer i) {
  lua_rawgeti(L, -2, i);
  bool same = same_value(L, -1, -2);
  lua_pop(L, 2);
  return same;
}

// Pushes list `name` of the table at 1; the count of its entries.
static lua_Integer push_list(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  face_checktype(L, -1, LUA_TTABLE);
  lua_getfield(L, -1, "n");
  lua_Integer n = face_checkint(L, -1);
  lua_pop(L, 1);
  return n;
}

// {function, index, value, ...}
static bool same_upvalues(lua_State *L) {
  lua_Integer n = push_list(L, "upvalues");
  int list = lua_gettop(L);
  for (lua_Integer i = 1; i < n; i += 3) {
    lua_rawgeti(L, list, i);
    lua_rawgeti(L, list, i + 1);
    int up = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (!lua_isfunction(L, -1) || !lua_getupvalue(L, -1, up)) return false;
    lua_remove(L, -2);
    if (!is_entry(L, i + 2)) return false;
  }
  return true;
}

// Replaces the key on top by what the table below holds under it, itself or
// through tables that are its __index; both are popped.
static void get_field(lua_State *L) {
  for (int level = 0; level < 8; level++) {  // table key
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) != LUA_TNIL || !lua_getmetatable(L, -3)) break;
    lua_pushliteral(L, "__index");
    if (lua_rawget(L, -2) != LUA_TTABLE) {
      lua_pop(L, 2);  // table key nil
      break;
    }
    lua_copy(L, -1, -5);
    lua_pop(L, 3);
  }
  lua_copy(L, -1, -3);
  lua_pop(L, 2);
}

// {table, key, value, ...}
static bool same_keys(lua_State *L) {
  lua_Integer n = push_list(L, "keys");
  int list = lua_gettop(L);
  for (lua_Integer i = 1; i < n; i += 3) {
    if (lua_rawgeti(L, list, i) != LUA_TTABLE) return false;
    lua_rawgeti(L, list, i + 1);
    get_field(L);
    if (!is_entry(L, i + 2)) return false;
  }
  return true;
}

// Does the table on top hold just the n fields of the table below?
static bool same_fields(lua_State *L, lua_Integer n) {
  int table = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    lua_pushvalue(L, -2);
    lua_rawget(L, table - 1);
    bool same = same_value(L, -1, -2);
    lua_pop(L, 1);
    if (!same || n-- == 0) return false;
  }
  return n == 0;
}

// {table, {its fields}, their count, metatable, ...}
static bool same_tables(lua_State *L) {
  lua_Integer n = push_list(L, "tables");
  int list = lua_gettop(L);
  for (lua_Integer i = 1; i < n; i += 4) {
    lua_rawgeti(L, list, i + 2);
    lua_Integer fields = lua_tointeger(L, -1);
    lua_pop(L, 1);
    lua_rawgeti(L, list, i + 1);
    if (lua_rawgeti(L, list, i) != LUA_TTABLE || !lua_istable(L, -2) ||
        !same_fields(L, fields))
      return false;
    lua_remove(L, -2);
    if (!lua_getmetatable(L, -1)) lua_pushnil(L);
    lua_remove(L, -2);
    if (!is_entry(L, i + 3)) return false;
  }
  return true;
}

// Lists {buffer, type, index, bits, ...} in the trace's state.
void kernlib_note(lua_State *L, DType t, size_t i) {
  const HostBuf *b = lua_touserdata(L, -1);
  lua_getfield(L, LUA_REGISTRYINDEX, TRACE_STATE);
  lua_getfield(L, -1, "elements");
  lua_getfield(L, -1, "n");
  lua_Integer n = lua_tointeger(L, -1);
  lua_pushvalue(L, -4);
  lua_rawseti(L, -3, n + 1);
  lua_pushinteger(L, t);
  lua_rawseti(L, -3, n + 2);
  lua_pushinteger(L, (lua_Integer)i);
  lua_rawseti(L, -3, n + 3);
  lua_pushinteger(L, (lua_Integer)dtype_load(t, b->p, i));
  lua_rawseti(L, -3, n + 4);
  lua_pop(L, 1);
  face_set_int(L, "n", n + 4);
  lua_pop(L, 3);
}

static lua_Integer entry(lua_State *L, int list, lua_Integer i) {
  lua_rawgeti(L, list, i);
  lua_Integer v = lua_tointeger(L, -1);
  lua_pop(L, 1);
  return v;
}

static bool same_elements(lua_State *L) {
  lua_Integer n = push_list(L, "elements");
  int list = lua_gettop(L);
  for (lua_Integer i = 1; i < n; i += 4) {
    lua_rawgeti(L, list, i);
    const HostBuf *b = face_test(L, -1, MT_BUFFER);
    lua_pop(L, 1);
    lua_Integer t = entry(L, list, i + 1), at = entry(L, list, i + 2);
    if (!b || !hostbuf_open(b) || t <= DT_NONE || t >= DT_COUNT || at < 0 ||
        (uint64_t)at >= b->bytes * 8 / (size_t)dtype_bits((DType)t) ||
        dtype_load((DType)t, b->p, (size_t)at) !=
          (uint64_t)entry(L, list, i + 3))
      return false;
  }
  return true;
}

// unchanged(read) -> bool: is all that cute.reach noted as it was?
static int l_unchanged(lua_State *L) {
  face_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  bool same = same_upvalues(L);
  lua_settop(L, 1);
  same = same && same_keys(L);
  lua_settop(L, 1);
  same = same && same_tables(L);
  lua_settop(L, 1);
  lua_pushboolean(L, same && same_elements(L));
  return 1;
}

// ---- what the kernel sees ----

static uint32_t param_name(Ctx *cx, lua_State *L, int func, int i) {
  lua_pushvalue(L, func);
  const char *name = lua_getlocal(L, NULL, i);  // leaves the function
  lua_pop(L, 1);
  char alt[24];
  if (!name) {
    snprintf(alt, sizeof alt, "arg%d", i);
    name = alt;
  }
  return ir_text(cx, ir_fn(cx), name, strlen(name));
}

static Ref new_arg(Ctx *cx, Arg a) {
  Fn *fn = ir_fn(cx);
  vec_push(cx, fn->arg, a);
  Ins i = {.op = OP_ARG, .type = (uint8_t)a.type, .name = a.name,
           .imm = (int64_t)fn->arg.n - 1};
  return ir_append(cx, fn, i, fold_full(a.type));
}

// Appends {param=, what=, leaf=} to the signature (table at `sig`): where
// the launch finds the argument's value.
static void sign(lua_State *L, int sig, int param, const char *what,
                 int leaf) {
  lua_createtable(L, 0, 3);
  face_set_int(L, "param", param);
  face_set_str(L, "what", what);
  face_set_int(L, "leaf", leaf);
  lua_rawseti(L, sig, (lua_Integer)lua_rawlen(L, sig) + 1);
}

typedef struct ParamAt {
  lua_State *L;
  int sig, param;
  uint32_t name;
} ParamAt;

// Leaves of a marked layout that are dynamic become scalar arguments.
static Dim dynamic_leaf(Ctx *cx, ParamAt *p, const char *what, int leaf,
                        Dim was, int64_t div) {
  if (div == 0) return was;
  char name[96];
  snprintf(name, sizeof name, "%s_%s%d", ir_str(ir_fn(cx), p->name), what,
           leaf);
  bool shape = strcmp(what, "shape") == 0;
  Arg a = {.name = ir_text(cx, ir_fn(cx), name, strlen(name)),
           .type = ir_fn(cx)->wide && !shape ? DT_I64 : DT_I32};
  Ref r = new_arg(cx, a);
  ir_assume(ir_fn(cx), r, (Fact){shape ? 1 : INT64_MIN, INT64_MAX, div});
  sign(p->L, p->sig, p->param, what, leaf);
  return dim_ref(r);
}

static Layout dynamic_layout(Ctx *cx, ParamAt *p, Layout l,
                             const TensorMarks *marks) {
  size_t nw = tup_words(l.shape), nl = tup_leaves(l.shape);
  Dim *shape = NEW(cx, Dim, nw), *stride = NEW(cx, Dim, nl);
  int leaf = 0;
  for (size_t i = 0; i < nw; i++) {
    shape[i] = l.shape[i];
    if (dim_kind(shape[i]) == DIM_TUP) continue;
    shape[i] = dynamic_leaf(cx, p, "shape", leaf, shape[i],
                            marks->shape[leaf]);
    leaf++;
  }
  for (size_t i = 0; i < nl; i++)
    stride[i] = dynamic_leaf(cx, p, "stride", (int)i, l.stride[i],
                             marks->stride[i]);
  l.shape = shape;
  l.stride = stride;
  return l;
}

static void push_tensor_param(Ctx *cx, lua_State *L, ParamAt *p, int idx) {
  Fn *fn = ir_fn(cx);
  const TensorMarks *marks = tensor_marks(L, idx);
  Tensor t = host_tensor(cx, L, idx);
  Arg a = {.name = p->name, .type = t.type, .pointer = true,
           .align = t.align};
  vec_push(cx, fn->arg, a);
  int32_t arg = (int32_t)fn->arg.n - 1;
  sign(L, p->sig, p->param, "pointer", 0);
  if (tensor_wide(cx, t.l)) fn->wide = true;
  if (marks) t.l = dynamic_layout(cx, p, t.l, marks);
  Buf text = {0};
  buf_puts(cx, &text, "");
  if (!layout_has_fn(t.l)) layout_print(cx, t.l, &text);
  Mem m = {.space = SP_GMEM, .type = t.type, .align = a.align, .arg = arg,
           .count = marks ? -1 : dim_value(span_of(cx, L, idx, &t)),
           .name = p->name,
           .layout = ir_text(cx, fn, text.p, text.n)};
  buf_free(&text);
  Tensor k = {.space = SP_GMEM, .type = t.type, .mem = ir_mem(cx, fn, m),
              .off = dim_int(cx, 0), .l = t.l, .align = a.align};
  face_push_tensor(L, &k, 0);
}

void kernlib_param(Ctx *cx, lua_State *L, int func, int sig, int param,
                   int idx) {
  DType scalar = scalar_type(L, idx);
  ParamAt p = {L, sig, param, param_name(cx, L, func, param)};
  if (luaL_testudata(L, idx, MT_TENSOR)) {
    push_tensor_param(cx, L, &p, idx);
  } else if (scalar != DT_NONE) {
    Arg a = {.name = p.name, .type = scalar};
    Ref r = new_arg(cx, a);
    sign(L, sig, param, "scalar", 0);
    trace_push(L, cx, r);
  } else {
    return;  // tables, layouts, functions, booleans: constants of the trace
  }
  lua_replace(L, idx);
}

// ---- overlap ----

// Bits [from, to) of the host's or a GPU's memory that a tensor spans.
typedef struct Span {
  uint64_t from, to;
  size_t param;  // from 1 on
} Span;

// False: x is no tensor with bytes in open memory.
static bool bits_of(Ctx *cx, lua_State *L, int idx, Span *s) {
  Tensor t;
  if (!luaL_testudata(L, idx, MT_TENSOR) || !face_test_tensor(L, idx, &t) ||
      t.space != SP_HOST)
    return false;
  lua_getiuservalue(L, idx, 1);
  const HostBuf *host = face_test(L, -1, MT_BUFFER);
  const DevBuf *dev = face_test(L, -1, MT_DEVBUF);
  lua_pop(L, 1);  // the tensor keeps it alive
  bool open = host ? hostbuf_open(host) : dev && gpu_owns(&dev->own);
  Dim below = {0}, span = span_of(cx, L, idx, &t);
  if (!layout_has_fn(t.l)) below = layout_below(cx, t.l);
  if (!open || !dim_static(t.off) || !dim_static(below) ||
      !dim_static(span) || dim_value(span) <= 0)
    return false;
  uint64_t base = host ? (uint64_t)(uintptr_t)host->p : dev->ptr;
  uint64_t bits = (uint64_t)dtype_bits(t.type);
  s->from = base * 8 + (uint64_t)(dim_value(t.off) - dim_value(below)) * bits;
  s->to = base * 8 + (uint64_t)(dim_value(t.off) + dim_value(span)) * bits;
  return true;
}

// Numbers the arguments that overlap, one number for all that are connected;
// gives the count of numbers.
static int group_spans(const Span *s, size_t n, int *group) {
  int groups = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++) {
      if (s[i].from >= s[j].to || s[j].from >= s[i].to) continue;
      int *a = &group[s[i].param], *b = &group[s[j].param], old = *a;
      if (!*b) *b = *a ? *a : ++groups;
      for (size_t k = 0; old && k < n; k++)
        if (group[s[k].param] == old) group[s[k].param] = *b;
      *a = *b;
    }
  return groups;
}

// param_overlaps{args, n =} -> nil, or where memory of some is that of
// others: their numbers as a list (0: alone, else alike for all that are
// connected), and as text. Byte ranges decide, not what lies between strides.
static int l_param_overlaps(lua_State *L) {
  Ctx *cx = face_enter(L);
  lua_getfield(L, 1, "n");
  size_t n = (size_t)face_checkint(L, -1), spans = 0;
  lua_pop(L, 1);
  Span *s = NEW(cx, Span, n + 1);
  int *group = NEW(cx, int, n + 1);
  memset(group, 0, (n + 1) * sizeof *group);
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, 1, (lua_Integer)i);
    s[spans].param = i;
    if (bits_of(cx, L, lua_gettop(L), &s[spans])) spans++;
    lua_pop(L, 1);
  }
  if (!group_spans(s, spans, group)) return 0;
  Buf text = {0};
  lua_createtable(L, (int)n, 0);
  for (size_t i = 1; i <= n; i++) {
    lua_pushinteger(L, group[i]);
    lua_rawseti(L, -2, (lua_Integer)i);
    buf_printf(cx, &text, "~%d", group[i]);
  }
  lua_pushlstring(L, text.p, text.n);
  buf_free(&text);
  return 2;
}

// ---- where its bytes are ----

// param_leaf(tensor, "shape" | "stride", i) -> the number there
static int l_param_leaf(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  bool shape = strcmp(face_checkstr(L, 2), "shape") == 0;
  lua_Integer i = face_checkint(L, 3);
  size_t n = tup_leaves(t.l.shape);
  if (i < 0 || (size_t)i >= n)
    face_error(L, ERR_ARG, "no leaf %lld in %d", (long long)i, (int)n);
  Dim *leaf = NEW(cx, Dim, n);
  tup_collect(t.l.shape, leaf);
  Dim d = shape ? leaf[i] : t.l.stride[i];
  lua_pushinteger(L, dim_static(d) ? dim_value(d) : 0);
  return 1;
}

// param_memory(tensor) -> buffer, byte offset, bytes that the layout spans
static int l_param_memory(lua_State *L) {
  Ctx *cx = face_enter(L);
  Tensor t = host_tensor(cx, L, 1);
  if (t.space != SP_HOST)
    face_error(L, ERR_ARG, "the tensor has no memory of the host or a GPU");
  if (!layout_has_fn(t.l) && !dim_is(layout_below(cx, t.l), 0))
    face_error(L, ERR_ARG, "a tensor with negative strides cannot be given to "
               "a kernel\n  %s\n  give it with strides >= 0; the kernel can "
               "turn it: make_tensor(A.iterator + n, layout)", tensor_show(
               cx, &t));
  int64_t bits = dtype_bits(t.type);
  if (dim_value(t.off) * bits % 8)
    face_error(L, ERR_ALIGN, "a tensor that starts inside a byte cannot be "
               "given to a kernel\n  %s\n  give the whole one; the kernel can "
               "move: make_tensor(A.iterator + n, layout)",
               tensor_show(cx, &t));
  Dim span = span_of(cx, L, 1, &t);
  lua_getiuservalue(L, 1, 1);
  lua_pushinteger(L, dim_value(t.off) * bits / 8);
  lua_pushinteger(L, (dim_value(span) * bits + 7) / 8);
  return 3;
}

// on_device(tensor, device buffer) -> the same view over the GPU's memory
static int l_on_device(lua_State *L) {
  face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  face_check(L, 2, MT_DEVBUF, "device buffer");
  lua_settop(L, 2);
  face_push_tensor(L, &t, 2);
  lua_getiuservalue(L, 1, 2);  // its marks
  lua_setiuservalue(L, 3, 2);
  return 1;
}

void kernlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"param_key", l_param_key}, {"unchanged", l_unchanged},
    {"param_overlaps", l_param_overlaps}, {"param_leaf", l_param_leaf},
    {"param_memory", l_param_memory},
    {"on_device(tensor, memory)", l_on_device}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
