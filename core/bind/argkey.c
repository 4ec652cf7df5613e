// Visits the arguments of a launch, which may be nested tables, and builds the
// argument key. Properties for which a program is compiled become words of the
// key. Values that each launch passes become leaves. During a trace, the walk
// replaces each argument by a traced value for the kernel.
#include "bind/trace.h"
#include "bind/argkey.h"

#include <stdlib.h>
#include <string.h>

#include "bind/gpulib.h"
#include "bind/laylib.h"
#include "bind/tma.h"
#include "bind/tensorlib.h"
#include "layout/composed.h"

// ---- growing arrays in scratch ----

static void *grow(Ctx *cx, const void *p, size_t n, size_t *cap, size_t size) {
  if (n < *cap) return (void *)p;
  *cap = *cap ? 2 * *cap : 32;
  void *more = arena_alloc(cx, &cx->scratch, *cap * size);
  if (n) memcpy(more, p, n * size);
  return more;
}

static void put(Walk *w, uint64_t x) {
  w->w = grow(w->cx, w->w, w->n, &w->cap, sizeof *w->w);
  w->w[w->n++] = x;
}

void argkey_put(Walk *w, uint64_t word) { put(w, word); }

static void put_bytes(Walk *w, const void *p, size_t n) {
  const char *s = p;
  for (size_t i = 0; i < n; i += 8) {
    uint64_t x = 0;
    memcpy(&x, s + i, n - i < 8 ? n - i : 8);
    put(w, x);
  }
}

static void put_string(Walk *w, const char *s, size_t n) {
  put(w, ARG_HEAD(ARG_STRING, n));
  put_bytes(w, s, n);
}

static Leaf *add_leaf(Walk *w, DType type) {
  if (w->nleaf == ARG_LEAVES)
    face_error(w->L, ERR_LIMIT, "%s: a kernel takes at most %d tensors, "
               "numbers and dynamic extents\n  pass numbers that never change "
               "as a table: cute.constexpr(t)", argkey_path(w),
               ARG_LEAVES);
  w->leaf = grow(w->cx, w->leaf, w->nleaf, &w->leafcap, sizeof *w->leaf);
  Leaf *l = &w->leaf[w->nleaf++];
  *l = (Leaf){.type = type, .argument = w->argument, .place = w->nleaf};
  return l;
}

// Pops an object and keeps it alive, because its address is a word of the key.
static void hold(Walk *w) {
  if (!w->hold) lua_pop(w->L, 1);
  else
    lua_rawseti(w->L, w->hold, (lua_Integer)lua_rawlen(w->L, w->hold) + 1);
}

static void put_object(Walk *w, int idx) {
  put(w, (uint64_t)(uintptr_t)lua_topointer(w->L, idx));
  lua_pushvalue(w->L, idx);
  hold(w);
}

void argkey_object(Walk *w, int idx) {
  put(w, ARG_HEAD(ARG_OBJECT, 0));
  put_object(w, idx);
}

// ---- numbers ----

static void see_number(Walk *w, int idx, DType type) {
  w->numbers = true;
  if (w->depth) w->in_table = true;
  if (!w->see) return;
  w->see->number(w, type);
  lua_replace(w->L, idx);
}

static void walk_number(Walk *w, int idx) {
  int64_t v = lua_isinteger(w->L, idx) ? lua_tointeger(w->L, idx) : 0;
  DType type = !lua_isinteger(w->L, idx) ? DT_F32
               : v == (int32_t)v ? DT_I32 : DT_I64;
  put(w, ARG_HEAD(ARG_NUMBER, type));
  Leaf *l = add_leaf(w, type);
  l->number = v;
  l->real = lua_tonumber(w->L, idx);
  l->bits = face_number_bits(w->L, idx, type);
  see_number(w, idx, type);
}

static void walk_symbol(Walk *w, int idx) {
  const Symbol *s = lua_touserdata(w->L, idx);
  put(w, ARG_HEAD(ARG_NUMBER, s->type));
  add_leaf(w, s->type)->symbol = s->id;
  w->symbolic = true;
  see_number(w, idx, s->type);
}

// ---- layouts and tensors ----

// Appends a composed layout to the key: its text, a 0 byte, and an id for each
// Lua function in it. Keeps these functions alive. They are uservalues of the
// object at idx, beginning with number `first`.
static void put_composed(Walk *w, Layout l, int idx, int first) {
  Buf b = {0};
  layout_print(w->cx, l, &b);
  buf_add(w->cx, &b, "", 1);
  for (const Outer *f = l.outer; f; f = f->l.outer) {
    if (f->kind != OUTER_FN) continue;
    buf_printf(w->cx, &b, "%p/%d/%lld ", f->fn->id, f->fn->mode,
               (long long)f->fn->run);
    lua_getiuservalue(w->L, idx, first++);
    hold(w);
  }
  put_string(w, b.p, b.n);
  buf_free(&b);
}

static void put_layout(Walk *w, Layout l, const TensorMarks *m) {
  size_t n = tup_words(l.shape), leaves = tup_leaves(l.shape), leaf = 0;
  put(w, n);
  for (size_t i = 0; i < n; i++) {
    bool tup = dim_kind(l.shape[i]) == DIM_TUP;
    put(w, m && !tup && m->shape[leaf] ? 0 : (uint64_t)l.shape[i].w);
    leaf += !tup;
  }
  for (size_t i = 0; i < leaves; i++)
    put(w, m && m->stride[i] ? 0 : (uint64_t)l.stride[i].w);
  for (size_t i = 0; m && i < leaves; i++) put(w, (uint64_t)m->shape[i]);
  for (size_t i = 0; m && i < leaves; i++) put(w, (uint64_t)m->stride[i]);
}

static Leaf *add_extent(Walk *w, Dim d, uint32_t symbol, DType type) {
  Leaf *leaf = add_leaf(w, type);
  leaf->symbol = symbol;
  leaf->number = dim_static(d) ? dim_value(d) : 0;
  leaf->bits = type == DT_I32 ? (uint32_t)leaf->number
                              : (uint64_t)leaf->number;
  return leaf;
}

// Adds leaves (values that each launch passes) for the dynamic extents of l,
// then for its dynamic strides.
static void add_extents(Walk *w, Layout l, const TensorMarks *m, bool wide) {
  if (!m) return;
  Dim leaf[TENSOR_MAX_MARKS];
  tup_collect(l.shape, leaf);
  for (int i = 0; i < m->n; i++)
    if (m->shape[i]) add_extent(w, leaf[i], m->shape_symbol[i], DT_I32);
  for (int i = 0; i < m->n; i++)
    if (m->stride[i])
      add_extent(w, l.stride[i], m->stride_symbol[i], wide ? DT_I64 : DT_I32)
        ->free = dim_is(leaf[i], 1);
}

// Returns the marks of the object at idx: which extents and strides may differ
// between launches. Returns NULL for a cached call (plan_cache.c), because its
// key contains the values of all extents.
static const TensorMarks *marks_of(const Walk *w, int idx) {
  return w->calls ? NULL : tensor_marks(w->L, idx);
}

static void walk_layout(Walk *w, int idx) {
  Layout l = face_check_layout(w->L, idx);
  const TensorMarks *m = l.outer ? NULL : marks_of(w, idx);
  bool wide = m && tensor_wide(w->cx, l);
  put(w, ARG_HEAD(ARG_LAYOUT, (wide ? ARG_WIDE : 0)
                  | (m ? ARG_DYNAMIC : 0) | (l.outer ? ARG_COMPOSED : 0)));
  if (l.outer) put_composed(w, l, idx, 1);
  else put_layout(w, l, m);
  add_extents(w, l, m, wide);
  if (!w->see || !m) return;
  w->see->layout(w, l, m, wide);
  lua_replace(w->L, idx);
}

// Returns the host tensor in box b. Its alignment is the one in its marks m, if
// m declares one. Raises an error if the tensor belongs to a kernel.
static Tensor host_tensor(Walk *w, const TensorBox *b, const TensorMarks *m) {
  Tensor t = b->t;
  if (b->serial) tensorlib_outside(w->L);
  if (m && m->align) t.align = m->align;
  return t;
}

// Returns how many elements fit between t's first element and the end of its
// memory. The reach of a layout with a Lua function is unknown, and is limited
// to this number.
static int64_t rest_of(const Leaf *l, const Tensor *t) {
  size_t bytes = l->host ? l->host->bytes : l->dev ? l->dev->bytes : 0;
  return (int64_t)(bytes * 8 / (size_t)dtype_bits(t->type))
         - dim_value(t->off);
}

// Sets leaf->before and leaf->after: how many elements before and after the
// leaf's first element the static layout l reaches. Returns false if the layout
// is not static, or if an extent or stride does not fit in 31 bits.
static bool quick_reach(Layout l, Leaf *leaf) {
  int64_t most = INT32_MAX, before = 0, after = 1;
  const Dim *stride = l.stride;
  for (size_t i = 0, n = tup_words(l.shape); i < n; i++) {
    Dim s = l.shape[i];
    if (!tup_is_leaf(&s)) continue;
    Dim d = *stride++;
    if (s.w < 1 || s.w > most || d.w < -most || d.w > most) return false;
    int64_t far = (s.w - 1) * d.w;
    if (far < 0) before -= far;
    else after += far;
    if (before > most * most / 2 || after > most * most / 2) return false;
  }
  leaf->before = before;
  leaf->after = after;
  return true;
}

static void set_reach(Walk *w, Leaf *l, const Tensor *t) {
  if (layout_has_fn(t->l)) {
    l->after = rest_of(l, t);
  } else if (t->l.outer || !quick_reach(t->l, l)) {
    l->before = dim_value(layout_below(w->cx, t->l));
    l->after = dim_value(layout_cosize(w->cx, t->l));
  }
  tensor_check_reach(w->cx, dim_int(w->cx, l->after));
}

static Leaf *add_memory(Walk *w, int idx, const Tensor *t, const TensorBox *b,
                        const TensorMarks *m) {
  Leaf *l = add_leaf(w, t->type);
  l->pointer = true;
  l->t = &b->t;
  l->host = b->host;
  l->dev = b->dev;
  if (w->buffers) {
    lua_getiuservalue(w->L, idx, 1);
    lua_rawseti(w->L, w->buffers, (lua_Integer)w->nleaf);
  }
  if (m && m->symbolic) w->symbolic = true;
  else set_reach(w, l, t);
  return l;
}

// In a cached call, appends a word for the device of an argument's memory (leaf
// l). A launch needs no such word, because all its memory is on one device.
static void put_place(Walk *w, const Leaf *l) {
  if (w->calls) put(w, l->dev ? (uint64_t)(uintptr_t)l->dev->own.gpu : 0);
}

static void walk_tensor(Walk *w, int idx, const TensorBox *b) {
  const TensorMarks *m = marks_of(w, idx);
  Tensor t = host_tensor(w, b, m);
  bool coord = t.space == SP_COORD, wide = false;
  int64_t count = 0;
  if (!coord) {
    const Leaf *l = add_memory(w, idx, &t, b, m);
    put_place(w, l);
    count = l->after;
    wide = m && m->symbolic ? m->wide
           : t.l.outer ? tensor_wide(w->cx, t.l) : l->after > INT32_MAX;
  }
  put(w, ARG_HEAD(ARG_TENSOR, t.type | (coord ? ARG_COORD : 0)
                  | (wide ? ARG_WIDE : 0) | (m ? ARG_DYNAMIC : 0)
                  | (t.l.outer ? ARG_COMPOSED : 0)));
  put(w, (uint64_t)t.align);
  if (coord) {
    const char *base = tup_text(w->cx, t.base);
    put_string(w, base, strlen(base));
  }
  if (t.l.outer) put_composed(w, t.l, idx, 3);
  else put_layout(w, t.l, m);
  add_extents(w, t.l, m, wide);
  if (!w->see || (coord && !m)) return;
  w->see->tensor(w, t, m, wide, count);
  lua_replace(w->L, idx);
}

// Appends a TMA atom. The atom is part of the program, but each launch passes
// the address, extents and strides of its tensor.
static void walk_tma(Walk *w, int idx, const TmaBox *b) {
  if (b->a.runs) {  // The key of a bulk copy is the atom's address.
    put(w, ARG_HEAD(ARG_OBJECT, 0));
    put_object(w, idx);
    return;
  }
  put(w, ARG_HEAD(ARG_TMA, sizeof b->a));
  put_bytes(w, &b->a, sizeof b->a);
  lua_getiuservalue(w->L, idx, 1);
  int at = lua_gettop(w->L);
  const TensorBox *x = tensorlib_box(w->L, at);
  const TensorMarks *m = tensor_marks(w->L, at);
  Tensor t = host_tensor(w, x, m);
  add_memory(w, at, &t, x, m)->tma = b;
  lua_pop(w->L, 1);
  if (w->buffers) {
    lua_pushvalue(w->L, idx);
    lua_rawseti(w->L, w->buffers, -(lua_Integer)w->nleaf);
  }
  if (!w->see) return;
  w->see->tma(w, b);
  lua_replace(w->L, idx);
}

// ---- tables ----

// Reports whether the table at idx has a metatable with the field __closed.
// Such a table is a constant object and is passed to the kernel without a copy.
static bool is_closed(Walk *w, int idx) {
  lua_State *L = w->L;
  if (!lua_getmetatable(L, idx)) return false;
  lua_pushliteral(L, "__closed");
  bool closed = lua_rawget(L, -2) != LUA_TNIL;
  lua_pop(L, 2);
  return closed;
}

static void put_metatable(Walk *w, int idx) {
  static const char *const refused[] = {"__gc", "__close", "__mode"};
  lua_State *L = w->L;
  if (!lua_getmetatable(L, idx)) {
    put(w, 0);
    return;
  }
  for (int i = 0; i < 3; i++) {
    lua_pushstring(L, refused[i]);
    if (lua_rawget(L, -2) != LUA_TNIL)
      face_error(L, ERR_ARG, "%s has a metatable with %s: the kernel would get "
                 "a copy of it\n  pass only the fields that the kernel needs",
                 argkey_path(w), refused[i]);
    lua_pop(L, 1);
  }
  put_object(w, lua_gettop(L));
  lua_pop(L, 1);
}

// A key of a table. `at` is its stack index.
typedef struct Key {
  const char *s;  // text of a string key; NULL if the key is the integer i
  size_t n;
  lua_Integer i;
  int at;
  bool boolean;
} Key;

static int key_order(const void *pa, const void *pb) {
  const Key *a = pa, *b = pb;
  if (a->boolean != b->boolean) return a->boolean - b->boolean;
  if (!a->s != !b->s) return a->s ? 1 : -1;
  if (!a->s) return a->i < b->i ? -1 : a->i > b->i;
  size_t n = a->n < b->n ? a->n : b->n;
  int order = memcmp(a->s, b->s, n);
  return order ? order : a->n < b->n ? -1 : a->n > b->n;
}

static Key key_at(Walk *w, int at) {
  lua_State *L = w->L;
  Key k = {.at = at};
  switch (lua_type(L, at)) {
  case LUA_TSTRING: k.s = lua_tolstring(L, at, &k.n); break;
  case LUA_TBOOLEAN: k.i = lua_toboolean(L, at), k.boolean = true; break;
  default:
    k.i = lua_tointeger(L, at);
    if (!lua_isinteger(L, at))
      face_error(L, ERR_ARG, "%s has the key %s: keys of kernel arguments must "
                 "be strings, integers or booleans", argkey_path(w),
                 face_show(L, at));
  }
  return k;
}

// Pushes all keys of the table at idx, and returns them. The keys are sorted,
// so that their order is the same in every process.
static Key *push_keys(Walk *w, int idx, size_t *n) {
  lua_State *L = w->L;
  Key *keys = NULL;
  size_t cap = 0;
  bool sorted = true;
  int top = lua_gettop(L);
  *n = 0;
  for (lua_pushnil(L); lua_next(L, idx);) {
    lua_pop(L, 1);
    if (!lua_checkstack(L, LUA_MINSTACK)) {
      lua_settop(L, top);  // make room on the stack for the error message
      face_error(L, ERR_LIMIT, "%s is a table of more than %zu fields, which "
                 "do not fit on Lua's stack\n  pass many numbers as a tensor",
                 argkey_path(w), *n);
    }
    keys = grow(w->cx, keys, *n, &cap, sizeof *keys);
    keys[(*n)++] = key_at(w, lua_gettop(L));
    if (*n > 1 && key_order(&keys[*n - 2], &keys[*n - 1]) > 0) sorted = false;
    lua_pushvalue(L, -1);
  }
  if (!sorted) qsort(keys, *n, sizeof *keys, key_order);
  return keys;
}

static void walk(Walk *w, int idx);

// Reports whether field k of the table at idx is a constant of the program,
// because the `__constants` of the table's metatable list it.
static bool is_constant(Walk *w, int idx, const Key *k) {
  lua_State *L = w->L;
  if (!lua_getmetatable(L, idx)) return false;
  lua_pushliteral(L, "__constants");
  bool constant = false;
  if (lua_rawget(L, -2) == LUA_TTABLE) {
    lua_pushvalue(L, k->at);
    constant = lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 1);
  }
  lua_pop(L, 2);
  return constant;
}

static void walk_field(Walk *w, int idx, const Key *k, int copy) {
  lua_State *L = w->L;
  bool before = w->constant;
  w->constant = before || is_constant(w, idx, k);
  if (k->s) put_string(w, k->s, k->n);
  else if (k->boolean) put(w, ARG_HEAD(k->i ? ARG_TRUE : ARG_FALSE, 0));
  else put(w, ARG_HEAD(ARG_INT, 0)), put(w, (uint64_t)k->i);
  lua_pushvalue(L, k->at);
  if (copy) lua_pushvalue(L, -1);
  lua_rawget(L, idx);
  w->open[w->depth - 1].key = k->at;
  walk(w, lua_gettop(L));
  w->constant = before;
  if (copy) lua_rawset(L, copy);
  else lua_pop(L, 1);
}

bool argkey_met(Walk *w, const void *p) {
  for (size_t i = 0; i < w->ntable; i++) {
    if (w->table[i] != p) continue;
    put(w, ARG_HEAD(ARG_SAME, i));
    return true;
  }
  w->table = grow(w->cx, w->table, w->ntable, &w->tablecap, sizeof *w->table);
  w->table[w->ntable++] = p;
  return false;
}

// Reports whether the walk has met table p, at idx, before. During a trace,
// also replaces such a table by the copy that was made for the kernel.
static bool met(Walk *w, int idx, const void *p) {
  for (int i = 0; i < w->depth; i++)
    if (w->open[i].table == p)
      face_error(w->L, ERR_ARG, "%s is a table that contains itself: kernel "
                 "arguments cannot be cyclic", argkey_path(w));
  if (!argkey_met(w, p)) return false;
  if (w->see) {
    lua_rawgeti(w->L, w->copies, (lua_Integer)ARG_MORE(w->w[w->n - 1]) + 1);
    lua_replace(w->L, idx);
  }
  return true;
}

// Rejects an argument that is a host-only object of lua/cute. In a field of a
// table, such an object is accepted, because the kernel may ignore it.
static void refuse_host(Walk *w, int idx) {
  lua_State *L = w->L;
  if (w->calls || w->depth) return;
  if (luaL_getmetafield(L, idx, "__host") == LUA_TNIL) return;
  face_error(L, ERR_ARG, "%s is a %s, which a kernel cannot take\n  pass "
             "tensors and numbers; a function called inside a kernel must be a "
             "plain Lua function", argkey_path(w), lua_tostring(L, -1));
}

static void walk_table(Walk *w, int idx) {
  lua_State *L = w->L;
  const void *p = lua_topointer(L, idx);
  if (is_closed(w, idx)) {
    refuse_host(w, idx);
    put(w, ARG_HEAD(ARG_OBJECT, 0));
    put_object(w, idx);
    return;
  }
  if (met(w, idx, p)) return;
  if (w->depth == ARG_DEPTH)
    face_error(L, ERR_LIMIT, "%s: tables that a kernel takes nest at "
               "most %d deep", argkey_path(w), ARG_DEPTH);
  size_t n;
  int top = lua_gettop(L), copy = 0;
  Key *keys = push_keys(w, idx, &n);
  put(w, ARG_HEAD(ARG_TABLE, n));
  put_metatable(w, idx);
  if (w->see) {
    // allocate as many list entries as the original table has
    lua_createtable(L, (int)lua_rawlen(L, idx), 0);
    copy = lua_gettop(L);
    lua_pushvalue(L, copy);
    lua_rawseti(L, w->copies, (lua_Integer)w->ntable);
  }
  w->open[w->depth++].table = p;
  for (size_t i = 0; i < n; i++) walk_field(w, idx, &keys[i], copy);
  w->depth--;
  if (copy) {
    if (lua_getmetatable(L, idx)) lua_setmetatable(L, copy);
    lua_pushvalue(L, copy);
    lua_replace(L, idx);
  }
  lua_settop(L, top);
}

// ---- other values ----

// Rejects a value that cannot be an argument of a kernel. In a cached call
// (plan_cache.c), the called operation checks the value, so its address is
// appended instead.
static void refuse(Walk *w, int idx) {
  static const char *const advice[][2] = {
    {"devbuf", "\n  give a tensor of it: cute.on_device(tensor, buffer)"},
    {"value", "\n  it belongs to another kernel"},
    {"vector", "\n  it belongs to another kernel"}};
  if (w->calls) {
    argkey_object(w, idx);
    return;
  }
  const char *type = face_typename(w->L, idx), *more = "";
  for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
    if (strcmp(type, advice[i][0]) == 0) more = advice[i][1];
  face_error(w->L, ERR_ARG, "%s is a %s, which a kernel cannot take%s",
             argkey_path(w), type, more);
}

// Appends the words of a constant of the layout algebra, such as cute._, a
// basis or a swizzle.
static void put_const(Walk *w, const ConstBox *c) {
  uint64_t sw = 0;
  memcpy(&sw, &c->sw, sizeof c->sw);
  put(w, ARG_HEAD(ARG_CONST, c->kind));
  put(w, (uint64_t)c->d.w);
  put(w, sw);
}

static void walk_userdata(Walk *w, int idx) {
  static const char *const objects[] = {MT_ATOM, MT_TILED, "cute.slice",
                                        MT_BUFFER};
  lua_State *L = w->L;
  const ConstBox *c = laylib_const(L, idx);
  DType type = face_test_dtype(L, idx);
  if (c) {
    put_const(w, c);
  } else if (type != DT_NONE) {
    put(w, ARG_HEAD(ARG_DTYPE, type));
  } else if (luaL_testudata(L, idx, MT_SYMBOL)) {
    walk_symbol(w, idx);
  } else if (tmalib_box(L, idx)) {
    walk_tma(w, idx, tmalib_box(L, idx));
  } else {
    size_t i = 0, n = sizeof objects / sizeof *objects;
    while (i < n && !luaL_testudata(L, idx, objects[i])) i++;
    if (i == n) refuse(w, idx);
    else argkey_object(w, idx);
  }
}

// Appends a number that is a constant of the program.
static void put_number(Walk *w, int at) {
  lua_State *L = w->L;
  uint64_t bits;
  lua_Integer i = lua_tointeger(L, at);
  lua_Number x = lua_tonumber(L, at);
  bool whole = lua_isinteger(L, at);
  memcpy(&bits, whole ? (void *)&i : (void *)&x, sizeof bits);
  put(w, ARG_HEAD(whole ? ARG_INT : ARG_FLOAT, 0));
  put(w, bits);
}

// Appends the content of a cute.constexpr: the value of a number, or the
// address of a table or tensor.
static void walk_constant(Walk *w, int idx) {
  lua_State *L = w->L;
  lua_getiuservalue(L, idx, 1);
  int at = lua_gettop(L);
  if (lua_type(L, at) == LUA_TNUMBER) {
    put_number(w, at);
  } else if (lua_istable(L, at) || tensorlib_box(L, at)) {
    put(w, ARG_HEAD(ARG_OBJECT, 0));
    put_object(w, at);
  } else {
    walk(w, at);
  }
  if (w->see) lua_replace(L, idx);
  else lua_pop(L, 1);
}

static void walk_stream(Walk *w, int idx) {
  w->stream = lua_touserdata(w->L, idx);
  put(w, ARG_HEAD(ARG_STREAM, 0));
}

// Walks over the value at idx: an argument, or a value in a table.
static void walk(Walk *w, int idx) {
  lua_State *L = w->L;
  size_t n;
  const char *s;
  const TensorBox *box;
  switch (lua_type(L, idx)) {
  case LUA_TNUMBER:
    if (w->constant) put_number(w, idx);
    else walk_number(w, idx);
    break;
  case LUA_TNIL: put(w, ARG_HEAD(ARG_NIL, 0)); break;
  case LUA_TBOOLEAN:
    put(w, ARG_HEAD(lua_toboolean(L, idx) ? ARG_TRUE : ARG_FALSE, 0));
    break;
  case LUA_TSTRING:
    s = lua_tolstring(L, idx, &n);
    put_string(w, s, n);
    break;
  case LUA_TTABLE: walk_table(w, idx); break;
  case LUA_TFUNCTION:
    if (w->function) w->function(w, idx);
    else argkey_object(w, idx);
    break;
  case LUA_TUSERDATA:
    if ((box = tensorlib_box(L, idx))) walk_tensor(w, idx, box);
    else if (laylib_box(L, idx)) walk_layout(w, idx);
    else if (luaL_testudata(L, idx, MT_CONSTEXPR)) walk_constant(w, idx);
    else if (w->calls && luaL_testudata(L, idx, MT_STREAM))
      walk_stream(w, idx);
    else walk_userdata(w, idx);
    break;
  case LUA_TLIGHTUSERDATA: walk_userdata(w, idx); break;
  default: refuse(w, idx);
  }
}

Walk argkey_begin(Ctx *cx, lua_State *L, uint64_t launch) {
  Walk w = {.cx = cx, .L = L};
  put(&w, launch);
  return w;
}

void argkey_add(Walk *w, int idx) {
  luaL_checkstack(w->L, LUA_MINSTACK, "arguments of a kernel");
  w->argument++;
  walk(w, idx);
}

void argkey_value(Walk *w, int idx) { walk(w, idx); }

// Returns the position in memory of the first element of argument l, in bits
// from address 0.
static uint64_t start_of(const Leaf *l) {
  uint64_t base = l->host ? (uint64_t)(uintptr_t)l->host->p
                  : l->dev ? l->dev->ptr : 0;
  return base * 8 + (uint64_t)dim_value(l->t->off)
                    * (uint64_t)dtype_bits(l->type);
}

// Arguments (leaves) whose memory overlaps form a group. Appends the distance
// of each leaf from the first leaf of its group. In calls with equal keys, the
// arguments then overlap in the same way.
static void put_distances(Walk *w, const int *group) {
  for (size_t i = 0; i < w->nleaf; i++) {
    size_t first = 0;
    while (group[first] != group[i]) first++;
    if (group[i] && first != i)
      put(w, start_of(&w->leaf[i]) - start_of(&w->leaf[first]));
  }
}

void argkey_end(Walk *w) {
  int *group = NEW(w->cx, int, w->nleaf + 1);
  if (argkey_overlaps(w->cx, w->leaf, w->nleaf, group)) {
    put(w, ARG_HEAD(ARG_OVERLAP, 0));
    put_bytes(w, group, w->nleaf * sizeof *group);
    if (w->calls) put_distances(w, group);
  }
}

uint64_t argkey_hash(const Walk *w) {
  uint64_t h = HASH_INIT;
  for (size_t i = 0; i < w->n; i++) {
    h = (h ^ w->w[i]) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 32;
  }
  return h;
}

// ---- paths in messages ----

const char *argkey_name(lua_State *L, int call) {
  static const char *const fields[] = {"kernel", "name"};
  const char *name = NULL;
  lua_pushvalue(L, call);
  for (int i = 0; i < 2 && lua_istable(L, -1); i++) {
    lua_pushstring(L, fields[i]);
    lua_rawget(L, -2);
    lua_remove(L, -2);
  }
  if (lua_type(L, -1) == LUA_TSTRING)
    name = lua_tostring(L, -1);  // the kernel's table keeps the string alive
  lua_pop(L, 1);
  return name;
}

bool argkey_is_name(const char *s, size_t n) {
  size_t good = 0;
  while (good < n && (s[good] == '_' || (s[good] >= '0' && s[good] <= '9') ||
                      ((s[good] | 32) >= 'a' && (s[good] | 32) <= 'z')))
    good++;
  return n > 0 && good == n && (*s < '0' || *s > '9');
}

const char *argkey_path(const Walk *w) {
  Buf b = {0};
  const char *name = w->call ? argkey_name(w->L, w->call) : NULL;
  if (name) buf_printf(w->cx, &b, "kernel %s: ", name);
  buf_printf(w->cx, &b, "argument %d", w->argument);
  for (int i = 0; i < w->depth; i++) {
    int at = w->open[i].key;
    size_t n;
    const char *s = lua_type(w->L, at) == LUA_TSTRING
                      ? lua_tolstring(w->L, at, &n) : NULL;
    if (s && argkey_is_name(s, n))
      buf_printf(w->cx, &b, ".%s", s);
    else
      buf_printf(w->cx, &b, "[%s]", face_show(w->L, at));
  }
  const char *text = arena_printf(w->cx, &w->cx->scratch, "%s", b.p);
  buf_free(&b);
  return text;
}

// ---- memory ----

// The bits [from, to) of host or GPU memory that an argument (leaf) may access.
typedef struct Span {
  uint64_t from, to;
  size_t leaf;
} Span;

// Computes the memory that an argument (leaf) may access. Returns false if
// there is none: for a number, an empty tensor, or a closed tensor.
static bool span_of(const Leaf *l, Span *s) {
  if (!l->pointer) return false;
  // A symbolic tensor has no memory. Its span is the address of the tensor
  // object, so that all leaves of this tensor overlap.
  if (!l->host && !l->dev) {
    *s = (Span){(uint64_t)(uintptr_t)l->t, (uint64_t)(uintptr_t)l->t + 1,
                s->leaf};
    return true;
  }
  bool open = l->host ? hostbuf_open(l->host) : gpu_owns(&l->dev->own);
  if (!open || l->after <= 0 || !dim_static(l->t->off)) return false;
  uint64_t at = start_of(l), bits = (uint64_t)dtype_bits(l->type);
  s->from = at - (uint64_t)l->before * bits;
  s->to = at + (uint64_t)l->after * bits;
  return true;
}

// Groups the arguments (leaves) whose memory spans overlap, directly or through
// other spans. Sets group[] of each such leaf to the number of its group, from
// 1 on. Returns the largest number.
static int group_spans(const Span *s, size_t n, int *group) {
  int groups = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++) {
      if (s[i].from >= s[j].to || s[j].from >= s[i].to) continue;
      int *a = &group[s[i].leaf], *b = &group[s[j].leaf], old = *a;
      if (!*b) *b = *a ? *a : ++groups;
      for (size_t k = 0; old && k < n; k++)
        if (group[s[k].leaf] == old) group[s[k].leaf] = *b;
      *a = *b;
    }
  return groups;
}

bool argkey_overlaps(Ctx *cx, const Leaf *l, size_t n, int *group) {
  Span *s = NEW(cx, Span, n + 1);
  size_t spans = 0;
  memset(group, 0, n * sizeof *group);
  for (size_t i = 0; i < n; i++) {
    s[spans].leaf = i;
    if (span_of(&l[i], &s[spans])) spans++;
  }
  return group_spans(s, spans, group) > 0;
}

LeafMemory argkey_memory(Ctx *cx, const Leaf *l) {
  const Tensor *t = l->t;
  int64_t bits = dtype_bits(t->type);
  if (!l->host && !l->dev)
    ctx_fail(cx, ERR_ARG, "the tensor has neither host nor GPU memory");
  if (l->before)
    ctx_fail(cx, ERR_ARG, "a tensor with negative strides cannot be given to a "
             "kernel\n  %s\n  pass it with strides >= 0 and reverse it in the "
             "kernel: make_tensor(A.iterator + n, layout)",
             tensor_show(cx, t));
  if (dim_value(t->off) * bits % 8)
    ctx_fail(cx, ERR_ALIGN, "a tensor that starts inside a byte cannot be "
             "given to a kernel\n  %s\n  pass the whole tensor and add the "
             "offset in the kernel: make_tensor(A.iterator + n, layout)",
             tensor_show(cx, t));
  return (LeafMemory){dim_value(t->off) * bits / 8,
                      (l->after * bits + 7) / 8};
}
// SPDX-License-Identifier: MIT
