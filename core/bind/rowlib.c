// Calls functions of core/ from Lua by what their rows say: chooses among
// alternatives, converts arguments and result.
#include "bind/row.h"

#include <string.h>

#include "bind/laylib.h"
#include "bind/tensorlib.h"

enum { MOST_ARGS = 4 };

typedef union Slot {
  Operand o;  // begins with its layout
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

// Bits, by what alternatives are told apart.
enum {
  K_NONE = 1, K_NIL = 2, K_NUMBER = 4, K_TABLE = 8, K_LAYOUT = 16,
  K_TENSOR = 32, K_SWIZZLE = 64, K_ANY = 128, K_BASIS = 256, K_VALUE = 512,
  K_VECTOR = 1024, K_TILED = 2048, K_OTHER = 4096,
  K_REST = 8192,  // of a letter: it takes all that is left
  K_ABSENT = K_NONE | K_NIL,
  K_DIM = K_NUMBER | K_ANY | K_BASIS | K_VALUE,
  K_TUPLE = K_DIM | K_TABLE,
  K_SHAPE = K_TUPLE | K_LAYOUT | K_TENSOR
};

// Types whose metatables say their kind, at 1.
static const struct { const char *name; int kind; } typed[] = {
  {MT_TENSOR, K_TENSOR}, {MT_VALUE, K_VALUE}, {MT_VECTOR, K_VECTOR},
  {MT_TILED, K_TILED}};

void rowlib_open(lua_State *L) {
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
    case CONST_ANY: case CONST_X: return K_ANY;
    case CONST_SWIZZLE: return K_SWIZZLE;
    case CONST_BASIS: case CONST_F2: return K_BASIS;
    case CONST_LEFT: case CONST_RIGHT: return K_OTHER;
    }
  if (!lua_getmetatable(L, idx)) return K_OTHER;
  lua_rawgeti(L, -1, 1);
  int kind = (int)lua_tointeger(L, -1);
  lua_pop(L, 2);
  return kind ? kind : K_OTHER;
}

static int kind_of(lua_State *L, int idx) {
  if (laylib_box(L, idx)) return K_LAYOUT;
  switch (lua_type(L, idx)) {
  case LUA_TNONE: return K_NONE;
  case LUA_TNIL: return K_NIL;
  case LUA_TNUMBER: return K_NUMBER;
  case LUA_TTABLE: return K_TABLE;
  case LUA_TUSERDATA: return kind_of_userdata(L, idx);
  default: return K_OTHER;
  }
}

// The kinds that a letter takes, as the first alternatives need them.
static const int kinds[128] = {
  ['L'] = K_LAYOUT | K_TENSOR, ['l'] = K_LAYOUT,
  ['K'] = K_LAYOUT | K_TENSOR | K_REST,
  ['P'] = K_TUPLE, ['p'] = K_TUPLE | K_ABSENT, ['S'] = K_SHAPE,
  ['i'] = K_NUMBER, ['m'] = K_NUMBER, ['X'] = K_TENSOR, ['Z'] = K_SWIZZLE,
  ['b'] = K_NUMBER | K_ABSENT, ['e'] = K_NUMBER | K_ABSENT,
  ['M'] = K_NUMBER | K_TABLE | K_ABSENT | K_REST, ['*'] = ~0,
  ['A'] = ~(K_ABSENT | K_REST), ['v'] = K_VECTOR,
  ['N'] = K_NUMBER | K_VALUE | K_VECTOR, ['B'] = K_TILED,
  ['F'] = K_SWIZZLE | K_ANY};

static bool fits(lua_State *L, const char *types) {
  int idx = 1, top = lua_gettop(L);
  for (const char *t = types; *t && *t != '>'; t++) {
    int may = kinds[(unsigned char)*t];
    if (!(may & kind_of(L, idx++))) return false;
    if (may & K_REST) return true;
  }
  while (idx <= top)
    if (!lua_isnil(L, idx++)) return false;
  return true;
}

// ---- arguments and result ----

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
  Operand o;
  return laylib_test_operand(L, idx, &o) ? o.l.shape : laylib_tree(cx, L, idx);
}

static bool absent(lua_State *L, int idx) { return lua_isnoneornil(L, idx); }

static void take(Ctx *cx, lua_State *L, char letter, int idx, Slot *a) {
  switch (letter) {
  case 'L': a->o = laylib_operand(L, idx); break;
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
  case 'i': a->i = laylib_int(L, idx); break;
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

// Where the tensor among the arguments is.
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
  case SHAPE_FACE: case SHAPE_NUMBERED: break;  // done by rowlib_call
#define APPLY(name, type, field, takes, from) \
  case SHAPE_##name: x->field = ((Fn_##name *)row->f) from; break;
  SHAPES(APPLY)
#undef APPLY
  }
}

int rowlib_call(lua_State *L, const FnRow *row, int n) {
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
  return push(L, row, t[1], &x, a);
}

// ---- the check of the rows ----

// What a letter is in C, as names of shapes have it.
static char in_c(char letter) {
  switch (letter) {
  case 'l': case 'V': case 'K': return 'L';
  case 'S': case 's': case 'Y': case 'R': case 'p': case 'O': case 'H':
  case 'A': case '*': return 'P';
  case 'b': case 'e': return 'm';
  case 'q': return 'd';
  default: return letter;
  }
}

bool rowlib_consistent(const FnRow *row) {
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
