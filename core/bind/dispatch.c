// Calls functions of core/ from Lua, as their table rows (row.h) specify:
// selects one of several alternatives by the arguments, and converts arguments
// and results.
#include "bind/row.h"

#include <assert.h>
#include <string.h>

#include "bind/laylib.h"
#include "bind/public.h"
#include "bind/tensorlib.h"
#include "tensor/place.h"

enum { MOST_ARGS = 4 };

typedef union Slot {
  LayoutOperand o;  // starts with a Layout, so the field l is o's layout
  Layout l;
  Tiler t;
  Tup p;
  Dim d;
  int64_t i;
  int m;
  bool b;
  DType type;
  Swizzle z;
  Tensor x;
  struct { int *at, n; } modes;
} Slot;

// ---- kinds of arguments ----

// Types of userdata, with their kinds of argument (KIND_...). dispatch_open
// stores the kind at index 1 of the type's metatable.
static const struct { const char *name; int kind; } typed[] = {
  {MT_TENSOR, KIND_TENSOR}, {MT_VALUE, KIND_VALUE}, {MT_VECTOR, KIND_VECTOR},
  {MT_TILED, KIND_TILED}};

void dispatch_open(lua_State *L) {
  for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
    luaL_getmetatable(L, typed[i].name);
    lua_pushinteger(L, typed[i].kind);
    lua_rawseti(L, -2, 1);
    lua_pop(L, 1);
  }
}

static int kind_of_userdata(lua_State *L, int idx) {
  const ConstBox *c = laylib_const(L, idx);
  if (c)
    switch (c->kind) {
    case CONST_ANY: case CONST_X: return KIND_ANY;
    case CONST_SWIZZLE: return KIND_SWIZZLE;
    case CONST_BASIS: case CONST_F2: return KIND_BASIS;
    case CONST_LEFT: case CONST_RIGHT: return KIND_OTHER;
    }
  if (!lua_getmetatable(L, idx)) return KIND_OTHER;
  lua_rawgeti(L, -1, 1);
  int kind = (int)lua_tointeger(L, -1);
  lua_pop(L, 2);
  return kind ? kind : KIND_OTHER;
}

int dispatch_kind(lua_State *L, int idx) {
  if (laylib_box(L, idx)) return KIND_LAYOUT;
  switch (lua_type(L, idx)) {
  case LUA_TNONE: return KIND_NONE;
  case LUA_TNIL: return KIND_NIL;
  case LUA_TNUMBER: return KIND_NUMBER;
  case LUA_TTABLE: return KIND_TABLE;
  case LUA_TUSERDATA: return kind_of_userdata(L, idx);
  default: return KIND_OTHER;
  }
}

// The kinds of arguments that each letter of a row's types accepts.
static const int kinds[128] = {
  ['L'] = KIND_LAYOUT | KIND_TENSOR, ['l'] = KIND_LAYOUT,
  ['W'] = KIND_LAYOUT | KIND_TENSOR,
  ['K'] = KIND_LAYOUT | KIND_TENSOR | KIND_REST,
  ['V'] = KIND_TUPLE | KIND_LAYOUT, ['T'] = KIND_TUPLE | KIND_LAYOUT,
  ['R'] = KIND_TUPLE | KIND_LAYOUT, ['S'] = KIND_SHAPE, ['Y'] = KIND_SHAPE,
  ['H'] = KIND_SHAPE | KIND_REST, ['s'] = KIND_SHAPE | KIND_ABSENT,
  ['P'] = KIND_TUPLE, ['p'] = KIND_TUPLE | KIND_ABSENT, ['d'] = KIND_DIM,
  ['t'] = KIND_OTHER, ['O'] = ~0,
  ['i'] = KIND_NUMBER, ['m'] = KIND_NUMBER, ['X'] = KIND_TENSOR,
  ['Z'] = KIND_SWIZZLE,
  ['b'] = KIND_NUMBER | KIND_ABSENT, ['e'] = KIND_NUMBER | KIND_ABSENT,
  ['M'] = KIND_NUMBER | KIND_TABLE | KIND_ABSENT | KIND_REST, ['*'] = ~0,
  ['A'] = ~(KIND_ABSENT | KIND_REST),
  ['N'] = KIND_NUMBER | KIND_VALUE | KIND_VECTOR, ['B'] = KIND_TILED,
  ['F'] = KIND_SWIZZLE | KIND_ANY};

static bool fits(lua_State *L, const char *types) {
  int idx = 1, top = lua_gettop(L);
  for (const char *t = types; *t && *t != '>'; t++) {
    int may = kinds[(unsigned char)*t];
    if (!(may & dispatch_kind(L, idx++))) return false;
    if (may & KIND_REST) return true;
  }
  while (idx <= top)
    if (!lua_isnil(L, idx++)) return false;
  return true;
}

// ---- arguments and results ----

static void take_modes(Ctx *cx, lua_State *L, char letter, int idx, Slot *a) {
  int n, *m;
  if (letter == 'H') a->p = laylib_shape(cx, L, idx++);
  if (letter == 'K') a->o = laylib_operand(L, idx++);
  m = laylib_modes(cx, L, idx, &n);
  if (letter == 'M') {
    a->modes.at = m;
    a->modes.n = n;
  }
  for (int i = 0; i < n && letter == 'H'; i++) a->p = tup_get(cx, a->p, m[i]);
  for (int i = 0; i < n && letter == 'K'; i++)
    a->l = layout_mode(cx, a->l, m[i]);
}

static Tup modes_of(Ctx *cx, lua_State *L, int idx) {
  LayoutOperand o;
  return laylib_test_operand(L, idx, &o) ? o.l.shape : laylib_tree(cx, L, idx);
}

static bool absent(lua_State *L, int idx) { return lua_isnoneornil(L, idx); }

static void take(Ctx *cx, lua_State *L, char letter, int idx, Slot *a) {
  switch (letter) {
  case 'L': case 'W':
    if (!laylib_test_operand(L, idx, &a->o)) face_argerror(L, idx, "layout");
    break;
  case 'l': a->l = face_check_layout(L, idx); break;
  case 'V': a->l = laylib_layout(cx, L, idx); break;
  case 'T': a->t = laylib_tiler(cx, L, idx); break;
  case 'S': a->p = laylib_shape(cx, L, idx); break;
  case 's': a->p = absent(L, idx) ? NULL : laylib_shape(cx, L, idx); break;
  case 'Y': a->p = modes_of(cx, L, idx); break;
  case 'R': a->p = laylib_tree(cx, L, idx); break;
  case 'P': a->p = face_check_tup(cx, L, idx); break;
  case 'p': a->p = absent(L, idx) ? NULL : face_check_tup(cx, L, idx); break;
  case 'A': case '*': a->p = laylib_coord(cx, L, idx); break;
  case 'O': a->p = laylib_order(cx, L, idx, a[-1].p); break;
  case 'X': a->x = face_check_tensor(L, idx); break;
  case 'i': a->i = face_checkint(L, idx); break;
  case 'm': a->m = laylib_mode(L, idx); break;
  case 'b': a->m = absent(L, idx) ? 0 : laylib_mode(L, idx); break;
  case 'e': a->m = absent(L, idx) ? -1 : laylib_mode(L, idx); break;
  case 't': a->type = face_check_dtype(L, idx); break;
  case 'd':
    if (!face_test_dim(cx, L, idx, &a->d)) face_argerror(L, idx, "integer");
    break;
  case 'Z':
    if (!laylib_test_swizzle(L, idx, &a->z)) face_argerror(L, idx, "swizzle");
    break;
  default: take_modes(cx, L, letter, idx, a);
  }
}

// Returns the stack index of the argument with type letter X, a tensor.
static int tensor_place(const char *t) { return (int)(strchr(t, 'X') - t) + 1; }

static int push(lua_State *L, const FnRow *row, char letter, const Slot *x,
                const Slot *a) {
  switch (letter) {
  case 'L': return laylib_push_operand(L, &a[0].o, x->l);
  case 'l': face_push_layout(L, x->l); break;
  case 'P': laylib_push_any(L, x->p); break;
  case 'd': face_push_dim(L, x->d); break;
  case 'i': lua_pushinteger(L, x->i); break;
  case 'q': laylib_push_truth(L, x->d); break;
  case 'Q': lua_pushboolean(L, x->b); break;
  case 'Z': laylib_push_swizzle(L, x->z); break;
  case 'X': tensorlib_push_view(L, &x->x, tensor_place(row->types)); break;
  }
  return 1;
}

// ---- calls ----

static void apply(Ctx *cx, const FnRow *row, const Slot *a, Slot *x) {
  switch (row->shape) {
  // call() itself calls functions of SHAPE_FACE and SHAPE_NUMBERED
  case SHAPE_FACE: case SHAPE_NUMBERED: break;
#define APPLY(name, type, field, takes, from) \
  case SHAPE_##name: x->field = ((Fn_##name *)row->f) from; break;
  SHAPES(APPLY)
#undef APPLY
  }
}

// A layout operation that is applied not only to a tensor's layout, but also to
// Tensor.place, which states where the elements are in the kernel's argument.
// a[0] receives the layout to which it is applied.
typedef struct Applied {
  const FnRow *row;
  Slot *a;
} Applied;

static Tensor applied(Ctx *cx, Tensor t, const void *x) {
  const Applied *p = x;
  Slot out;
  p->a[0].l = t.l;
  apply(cx, p->row, p->a, &out);
  t.l = out.l;
  return t;
}

static int push_placed(Ctx *cx, lua_State *L, const FnRow *row, Slot *a,
                       const Slot *x) {
  int src = a[0].o.tensor;
  Tensor t = tensor_with_layout(a[0].o.t, x->l);
  Applied p = {row, a};
  t.place = place_along(cx, a[0].o.t.place, x->l.shape, applied, &p);
  tensorlib_push_view(L, &t, src);
  return 1;
}

// Calls the first of n alternative rows whose types fit the arguments. If none
// of the rows before the last one fits, calls the last one.
static int call(lua_State *L, const FnRow *row, int n) {
  while (--n > 0 && !fits(L, row->types)) row++;
  if (row->shape == SHAPE_FACE) return ((lua_CFunction)row->f)(L);
  if (row->shape == SHAPE_NUMBERED)
    return ((NumberedFace *)row->f)(L, row->number);
  Ctx *cx = face_enter(L);
  Slot a[MOST_ARGS], x;
  const char *t = row->types;
  int idx = 1;
  for (Slot *to = a; *t != '>'; t++, to++)
    if (*t == 'k') to->m = row->number;
    else take(cx, L, *t, idx++, to);
  apply(cx, row, a, &x);
  if (*row->types == 'W' && a[0].o.tensor)
    return push_placed(cx, L, row, a, &x);
  return push(L, row, t[1], &x, a);
}

// ---- check of the rows ----

// Maps an argument's type letter in a row (row.h) to the letter of its C type
// in the names SHAPE_....
static char in_c(char letter) {
  switch (letter) {
  case 'l': case 'V': case 'K': case 'W': return 'L';
  case 'S': case 's': case 'Y': case 'R': case 'p': case 'O': case 'H':
  case 'A': case '*': return 'P';
  case 'b': case 'e': return 'm';
  case 'q': return 'd';
  default: return letter;
  }
}

static bool consistent(const FnRow *row) {
  static const char *const names[] = {
    [SHAPE_FACE] = NULL, [SHAPE_NUMBERED] = NULL,
#define NAME(name, type, field, takes, from) [SHAPE_##name] = #name,
    SHAPES(NAME)
#undef NAME
  };
  const char *s = names[row->shape], *t = row->types, *end = strchr(t, '>');
  if (!s) return !end;
  if (!end || *s++ != in_c(end[1]) || *s++ != '_') return false;
  for (s += *s == '_'; t < end; s++, t++)
    if (*s != in_c(*t)) return false;
  return *s == '\0' && end - row->types <= MOST_ARGS;
}

// ---- registration ----

static int enter_rows(lua_State *L, const Entry *e) {
  arglib_check_count(L, e);
  return e->f ? e->f(L) : call(L, e->rows, e->n);
}

void face_setrows(lua_State *L, const FnRow *rows) {
  size_t count = 0;
  while (rows[count].sig) count++;
  Setting s = arglib_setting(L, count);
  while (rows->sig) {
    int n = 0;
    do assert(consistent(&rows[n]));
    while (rows[++n].sig && strcmp(rows[n].sig, OR) == 0);
    Entry e = {.sig = rows->sig, .enter = enter_rows, .rows = rows, .n = n};
    if (n == 1 && rows->shape == SHAPE_FACE) e.f = (lua_CFunction)rows->f;
    arglib_set(L, &s, e);
    rows += n;
  }
}
// SPDX-License-Identifier: MIT
