// Handles the arguments of kernels. Replaces them by traced values during a
// trace, checks whether a traced program is still valid, and finds the memory
// of arguments.
#include "bind/buflib.h"
#include "bind/trace.h"
#include "bind/argkey.h"
#include "tensor/place.h"

#include <string.h>

#include "ir/fold.h"
#include "bind/laylib.h"
#include "bind/tma.h"
#include "layout/composed.h"

// ---- validity of a program ----

// Reports whether a trace would treat two values as equal: equal numbers of the
// same type (and sign of zero), equal layouts, or the same object.
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

// Pops the value on top. Reports whether the trace treats it as the same value
// as entry i of the list below it.
static bool is_entry(lua_State *L, lua_Integer i) {
  lua_rawgeti(L, -2, i);
  bool same = same_value(L, -1, -2);
  lua_pop(L, 2);
  return same;
}

// Pushes the list in field `name` of the table at stack index `read`, in which
// the trace recorded what it read. Returns the list's length.
static lua_Integer push_list(lua_State *L, int read, const char *name) {
  lua_getfield(L, read, name);
  face_checktype(L, -1, LUA_TTABLE);
  lua_getfield(L, -1, "n");
  lua_Integer n = face_checkint(L, -1);
  lua_pop(L, 1);
  return n;
}

// Reports whether the upvalues that the trace read are unchanged. The list
// "upvalues" is {function, index, value, ...}.
static bool same_upvalues(lua_State *L, int read) {
  lua_Integer n = push_list(L, read, "upvalues");
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

// Pops a key and, below it, a table t. Pushes t[key], found in t itself or
// along its chain of __index tables.
static void get_field(lua_State *L) {
  for (int level = 0; level < 8; level++) {  // stack: table key
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) != LUA_TNIL || !lua_getmetatable(L, -3)) break;
    lua_pushliteral(L, "__index");
    if (lua_rawget(L, -2) != LUA_TTABLE) {
      lua_pop(L, 2);  // stack: table key nil
      break;
    }
    lua_copy(L, -1, -5);
    lua_pop(L, 3);
  }
  lua_copy(L, -1, -3);
  lua_pop(L, 2);
}

// Reports whether the fields of tables that the trace read are unchanged. The
// list "keys" is {table, key, value, ...}.
static bool same_keys(lua_State *L, int read) {
  lua_Integer n = push_list(L, read, "keys");
  int list = lua_gettop(L);
  for (lua_Integer i = 1; i < n; i += 3) {
    if (lua_rawgeti(L, list, i) != LUA_TTABLE) return false;
    lua_rawgeti(L, list, i + 1);
    get_field(L);
    if (!is_entry(L, i + 2)) return false;
  }
  return true;
}

// Reports whether the table on top has n fields, equal to those of the copy
// below it.
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

// Reports whether the tables that the trace read as a whole are unchanged. The
// list "tables" has their state during the trace: {table, copy, number of
// fields, metatable, ...}.
static bool same_tables(lua_State *L, int read) {
  lua_Integer n = push_list(L, read, "tables");
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

static lua_Integer entry(lua_State *L, int list, lua_Integer i) {
  lua_rawgeti(L, list, i);
  lua_Integer v = lua_tointeger(L, -1);
  lua_pop(L, 1);
  return v;
}

static bool same_elements(lua_State *L, int read) {
  lua_Integer n = push_list(L, read, "elements");
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

bool kernlib_unchanged(lua_State *L, int idx) {
  static bool (*const same[])(lua_State *L, int read) = {
    same_upvalues, same_keys, same_tables, same_elements};
  int top = lua_gettop(L);
  bool all = true;
  face_checktype(L, idx, LUA_TTABLE);
  for (size_t i = 0; i < sizeof same / sizeof *same && all; i++) {
    all = same[i](L, idx);
    lua_settop(L, top);
  }
  return all;
}

// unchanged(read) -> whether the values that a trace read, and listed in
// `read`, are unchanged
static int l_unchanged(lua_State *L) {
  lua_settop(L, 1);
  lua_pushboolean(L, kernlib_unchanged(L, 1));
  return 1;
}

// ---- the kernel's arguments ----

// Returns the script's name for a number among the arguments, such as
// "cfg.scale[3]", as an index into Fn.text. In CUDA C, the name becomes
// cfg_scale_3.
static uint32_t leaf_name(const Walk *w, const char *more, int leaf) {
  lua_State *L = w->L;
  Buf b = {0};
  lua_pushvalue(L, w->func);
  const char *name = lua_getlocal(L, NULL, w->argument);
  lua_pop(L, 1);  // the function
  if (name) buf_puts(w->cx, &b, name);
  else buf_printf(w->cx, &b, "arg%d", w->argument);
  for (int i = 0; i < w->depth; i++) {
    int at = w->open[i].key;
    if (lua_type(L, at) == LUA_TSTRING)
      buf_printf(w->cx, &b, ".%.40s", lua_tostring(L, at));
    else
      buf_printf(w->cx, &b, "[%lld]", (long long)lua_tointeger(L, at));
  }
  if (more) buf_printf(w->cx, &b, "_%s%d", more, leaf);
  uint32_t text = ir_text(w->cx, ir_fn(w->cx), b.p, b.n);
  buf_free(&b);
  return text;
}

static Ref new_arg(Ctx *cx, Arg a) {
  Fn *fn = ir_fn(cx);
  vec_push(cx, fn->arg, a);
  Ins i = {.op = OP_ARG, .type = (uint8_t)a.type, .name = a.name,
           .imm = (int64_t)fn->arg.n - 1};
  return ir_append(cx, fn, i, fold_full(a.type));
}

static void see_number(const Walk *w, DType type) {
  Arg a = {.name = leaf_name(w, NULL, 0), .type = type};
  trace_push(w->L, w->cx, new_arg(w->cx, a));
}

// Adds a scalar argument to the kernel: a dynamic extent or stride of a layout.
// `leaf` is its number in the layout, and its values are multiples of div.
static Dim dynamic_leaf(const Walk *w, bool shape, int leaf, int64_t div,
                        bool wide) {
  Fn *fn = ir_fn(w->cx);
  Arg a = {.name = leaf_name(w, shape ? "shape" : "stride", leaf),
           .type = wide && !shape ? DT_I64 : DT_I32};
  Ref r = new_arg(w->cx, a);
  ir_assume(w->cx, fn, r, (Fact){shape ? 0 : INT64_MIN, INT64_MAX, div});
  return dim_ref(r);
}

static Layout dynamic_layout(const Walk *w, Layout l, const TensorMarks *m,
                             bool wide) {
  size_t nw = tup_words(l.shape), nl = tup_leaves(l.shape);
  Dim *shape = NEW(w->cx, Dim, nw), *stride = NEW(w->cx, Dim, nl);
  int leaf = 0;
  for (size_t i = 0; i < nw; i++) {
    shape[i] = l.shape[i];
    if (dim_kind(shape[i]) == DIM_TUP) continue;
    if (m->shape[leaf])
      shape[i] = dynamic_leaf(w, true, leaf, m->shape[leaf], wide);
    leaf++;
  }
  for (int i = 0; i < (int)nl; i++)
    stride[i] = m->stride[i] ? dynamic_leaf(w, false, i, m->stride[i], wide)
                             : l.stride[i];
  l.shape = shape;
  l.stride = stride;
  return l;
}

static void see_layout(const Walk *w, Layout l, const TensorMarks *m,
                       bool wide) {
  face_push_layout(w->L, dynamic_layout(w, l, m, wide));
}

static void see_tensor(const Walk *w, Tensor t, const TensorMarks *m,
                       bool wide, int64_t count) {
  Ctx *cx = w->cx;
  Fn *fn = ir_fn(cx);
  if (t.space == SP_COORD) {
    t.l = dynamic_layout(w, t.l, m, wide);
    face_push_tensor(w->L, &t, 0);
    return;
  }
  Arg a = {.name = leaf_name(w, NULL, 0), .type = t.type, .pointer = true,
           .align = t.align};
  vec_push(cx, fn->arg, a);
  int32_t arg = (int32_t)fn->arg.n - 1;
  if (wide) fn->wide = true;
  if (m) t.l = dynamic_layout(w, t.l, m, wide);
  Buf text = {0};
  buf_puts(cx, &text, "");
  if (!layout_has_fn(t.l)) layout_print(cx, t.l, &text);
  Mem mem = {.space = SP_GMEM, .type = t.type, .align = a.align, .arg = arg,
             .count = m ? -1 : count, .name = a.name,
             .layout = ir_text(cx, fn, text.p, text.n)};
  buf_free(&text);
  Tensor k = {.space = SP_GMEM, .type = t.type, .mem = ir_mem(cx, fn, mem),
              .off = dim_int(cx, 0), .l = t.l, .align = a.align,
              .place = place_whole(cx, t.l)};
  face_push_tensor(w->L, &k, 0);
}

// Returns the text of a tensor map's box, for dumps of the IR.
static const char *box_text(Ctx *cx, const TensorMap *m) {
  Buf b = {0};
  for (int i = 0; i < m->rank; i++)
    buf_printf(cx, &b, "%s%d", i ? "," : "box (", (int)m->box[i]);
  buf_puts(cx, &b, ")");
  if (m->swizzle) buf_printf(cx, &b, " swizzle %d", 16 << m->swizzle);
  const char *s = arena_printf(cx, &cx->scratch, "%s", b.p);
  buf_free(&b);
  return s;
}

static void see_tma(const Walk *w, const TmaBox *b) {
  Ctx *cx = w->cx;
  Fn *fn = ir_fn(cx);
  Arg a = {.name = leaf_name(w, NULL, 0), .type = b->a.unit, .pointer = true,
           .map = true, .align = 64};
  vec_push(cx, fn->arg, a);
  const char *text = box_text(cx, &b->a.map);
  Mem m = {.space = SP_TMAP, .type = a.type, .align = 64, .count = -1,
           .arg = (int32_t)fn->arg.n - 1, .name = a.name,
           .layout = ir_text(cx, fn, text, strlen(text))};
  m.ref = ir_mem(cx, fn, m);
  tmalib_push_traced(w->L, b, &m);
}

static const Seen seen = {see_number, see_layout, see_tensor, see_tma};

void kernlib_see_arguments(Ctx *cx, lua_State *L, int func, int first, int n) {
  lua_newtable(L);
  Walk w = argkey_begin(cx, L, 0);
  w.see = &seen;
  w.func = func;
  w.copies = lua_gettop(L);
  for (int i = 0; i < n; i++) argkey_add(&w, first + i);
  lua_pop(L, 1);
}

// ---- the memory of a tensor ----

// param_memory(tensor or TMA atom) -> the tensor's buffer, the byte offset of
// its first element in the buffer, the number of bytes that its layout spans
static int l_param_memory(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (!tmalib_box(L, 1)) face_check_tensor(L, 1);
  lua_newtable(L);
  Walk w = argkey_begin(cx, L, 0);
  w.buffers = lua_gettop(L);
  argkey_add(&w, 1);
  if (!w.nleaf || !w.leaf->pointer)
    face_error(L, ERR_ARG, "the tensor has neither host nor GPU memory");
  LeafMemory m = argkey_memory(cx, w.leaf);
  lua_rawgeti(L, -1, 1);
  lua_pushinteger(L, m.offset);
  lua_pushinteger(L, m.bytes);
  return 3;
}

void kernlib_push_address(lua_State *L) {
  Tensor t = face_check_tensor(L, 1);
  if (tensor_in_kernel(&t))
    face_error(L, ERR_ARG, "address: a kernel's tensor has no address while "
               "the kernel is traced\n  pass addresses as elements of type "
               "i64");
  lua_settop(L, 1);
  int n = l_param_memory(L);
  lua_Integer offset = lua_tointeger(L, -n + 1);
  lua_pop(L, n - 1);
  lua_Integer address;
  if (luaL_testudata(L, -1, MT_BUFFER)) {
    address = buflib_address(L, -1);
  } else {
    lua_getfield(L, -1, "address");
    address = lua_tointeger(L, -1);
  }
  lua_pushinteger(L, address + offset);
}

// on_device(tensor, device buffer) -> a tensor with the same layout on the
// device buffer
static int l_on_device(lua_State *L) {
  face_enter(L);
  Tensor t = face_check_tensor(L, 1);
  face_check(L, 2, MT_DEVBUF, "device buffer");
  lua_settop(L, 2);
  face_push_tensor(L, &t, 2);
  // copy the marks of dynamic modes from the first tensor to the new one
  lua_getiuservalue(L, 1, 2);
  lua_setiuservalue(L, 3, 2);
  return 1;
}

void kernlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"unchanged", l_unchanged}, {"param_memory", l_param_memory},
    {"on_device(tensor, memory)", l_on_device}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
