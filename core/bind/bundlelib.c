// Functions of cute.core with which `cutelua bundle` records launches.
// kind_leaves describes the values that a launch passes, and the properties for
// which the program was compiled. buffer_origin reports how a host buffer was
// made.
#include "bind/argkey.h"
#include "bind/buflib.h"
#include "bind/laylib.h"

// A walk over the words of an argument key. It appends a description of each
// leaf to the list at stack index `list`.
typedef struct Scan {
  lua_State *L;
  Ctx *cx;
  const ArgKey *k;
  const uint64_t *at;
  int list;
  lua_Integer n;
} Scan;

// Appends the table on top, which describes the next leaf, to the list. Sets
// its fields `argument` and, if the leaf is a cute.sym_int, `symbol`.
static void append(Scan *s, int argument) {
  face_set_int(s->L, "argument", argument);
  if (s->k->symbol[s->n])
    face_set_int(s->L, "symbol", (lua_Integer)s->k->symbol[s->n]);
  lua_rawseti(s->L, s->list, ++s->n);
}

// Sets the field `name` of the table on top to the list of n words.
static void set_words(lua_State *L, const char *name, const uint64_t *w,
                      size_t n) {
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    lua_pushinteger(L, (lua_Integer)w[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_setfield(L, -2, name);
}

// Reads the layout at s->at, which is not a composed layout. Sets fields of the
// table on top: `shape` and `stride` are the lists of the extents and strides
// of all leaves. For a dynamic layout, sets shape_div and stride_div, too.
// Appends an entry to the list of arguments for each dynamic extent and stride.
// Its field `of` is the number of the tensor's entry (0: a tensor without
// memory).
static void scan_plain(Scan *s, uint64_t flags, int argument, lua_Integer of) {
  lua_State *L = s->L;
  bool dynamic = flags & ARG_DYNAMIC;
  ArgLayout v = argmatch_layout(&s->at, dynamic);
  uint64_t *shape = NEW(s->cx, uint64_t, v.leaves + 1);
  size_t leaves = 0;
  for (size_t i = 0; i < v.n; i++)
    if (dim_kind(argmatch_dim(v.shape[i])) != DIM_TUP)
      shape[leaves++] = v.shape[i];
  set_words(L, "shape", shape, leaves);
  set_words(L, "stride", v.stride, leaves);
  if (!dynamic) return;
  set_words(L, "shape_div", v.shape_div, leaves);
  set_words(L, "stride_div", v.stride_div, leaves);
  for (size_t i = 0; i < 2 * leaves; i++) {
    bool extent = i < leaves;
    if (!(extent ? v.shape_div[i] : v.stride_div[i - leaves])) continue;
    lua_createtable(L, 0, 5);
    face_set_str(L, "kind", extent ? "extent" : "stride");
    face_push_dtype(L, !extent && flags & ARG_WIDE ? DT_I64 : DT_I32);
    lua_setfield(L, -2, "dtype");
    face_set_int(L, "of", of);
    face_set_int(L, "mode", (lua_Integer)(extent ? i : i - leaves) + 1);
    append(s, argument);
  }
}

// Reads the layout of a tensor or layout argument at s->at, and advances s->at
// past it. The table on top describes this argument and receives the fields
// that scan_plain sets. A composed layout sets no fields.
static void scan_layout(Scan *s, uint64_t flags, int argument, lua_Integer of) {
  if (flags & ARG_COMPOSED) s->at += argmatch_words(s->at);
  else scan_plain(s, flags, argument, of);
}

static void scan_tensor(Scan *s, int argument) {
  lua_State *L = s->L;
  uint64_t flags = ARG_MORE(s->at[0]), align = s->at[1];
  s->at += 2;
  lua_createtable(L, 0, 9);
  face_set_str(L, "kind", flags & ARG_COORD ? "coordinates" : "tensor");
  face_push_dtype(L, (DType)(flags & 255));
  lua_setfield(L, -2, "dtype");
  face_set_int(L, "align", (lua_Integer)align);
  face_set_bool(L, "wide", flags & ARG_WIDE);
  if (flags & ARG_COORD) {
    s->at += argmatch_words(s->at);
    scan_layout(s, flags, argument, 0);
    lua_pop(L, 1);
    return;
  }
  lua_pushvalue(L, -1);
  append(s, argument);
  scan_layout(s, flags, argument, s->n);
  lua_pop(L, 1);
}

static void scan_value(Scan *s, int argument);

static void scan_table(Scan *s, int argument) {
  size_t n = ARG_MORE(*s->at);
  s->at += 2;
  for (size_t i = 0; i < n; i++) {
    s->at += argmatch_words(s->at);  // the key
    scan_value(s, argument);
  }
}

static void scan_value(Scan *s, int argument) {
  lua_State *L = s->L;
  uint64_t head = *s->at;
  luaL_checkstack(L, LUA_MINSTACK, "arguments of a kernel");
  switch ((int)ARG_TAG(head)) {
  case ARG_TABLE: scan_table(s, argument); return;
  case ARG_TENSOR: scan_tensor(s, argument); return;
  case ARG_LAYOUT:
    s->at++;
    lua_newtable(L);
    scan_layout(s, ARG_MORE(head), argument, 0);
    lua_pop(L, 1);
    return;
  case ARG_TMA:
    lua_createtable(L, 0, 3);
    face_set_str(L, "kind", "map");
    append(s, argument);
    break;
  case ARG_NUMBER:
    lua_createtable(L, 0, 4);
    face_set_str(L, "kind", "number");
    face_push_dtype(L, (DType)ARG_MORE(head));
    lua_setfield(L, -2, "dtype");
    append(s, argument);
    break;
  default: break;
  }
  s->at += argmatch_words(s->at);
}

// kind_leaves(kind) -> a list of the values that each launch of a program with
// this argument key passes, in order: {kind = "tensor", dtype, align, wide[,
// shape, stride[, shape_div, stride_div]]}, {kind = "map"}, {kind = "number",
// dtype}, {kind = "extent" or "stride", dtype, of = number of the tensor's
// value, mode = from 1 on}. Each entry also has `argument`, the number of the
// launch's argument. The entry of a cute.sym_int has its number in `symbol`.
static int l_kind_leaves(lua_State *L) {
  Ctx *cx = face_enter(L);
  const ArgKey *k = argkey_box(L, 1);
  lua_settop(L, 1);
  lua_createtable(L, (int)k->nleaf, 0);
  Scan s = {.L = L, .cx = cx, .k = k, .at = k->w + 1, .list = 2};
  for (int i = 1; i <= k->arguments; i++) scan_value(&s, i);
  return 1;
}

// buffer_origin(buffer) -> the buffer's number, in the order of creation, and
// whether the host wrote the whole buffer. buffer_origin() -> the number of the
// newest buffer.
static int l_buffer_origin(lua_State *L) {
  if (lua_isnoneornil(L, 1)) {
    lua_pushinteger(L, (lua_Integer)buflib_newest());
    return 1;
  }
  const HostBuf *b = buflib_check(L, 1);
  lua_pushinteger(L, (lua_Integer)b->serial);
  lua_pushboolean(L, b->defined);
  return 2;
}

void bundlelib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"kind_leaves", l_kind_leaves}, {"buffer_origin", l_buffer_origin},
    {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
