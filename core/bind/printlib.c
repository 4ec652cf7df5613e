// Lua bindings for lua/cutelua/draw/printing.lua: printf in kernels, and the
// traced numbers in the text of layouts and tensors.
#include <stdio.h>
#include <string.h>

#include "bind/face.h"
#include "ir/operands.h"

enum { MAX_TEXT = 4096, MAX_VALUES = 32 };
#define BY_TYPE '\1'  // a conversion letter to be chosen by the value's type

// ---- printf ----

// Returns the length of the longest prefix of s with only characters of `set`,
// at most n.
static size_t span(const char *s, const char *set, size_t n) {
  size_t k = strspn(s, set);
  return k < n ? k : n;
}

// Returns a pointer to the letter of a conversion. s is the text after its %.
// Skips flags, a width and a precision of at most three digits, and a length.
// If anything else follows the %, the result points to a character that the
// caller rejects.
static const char *conversion_letter(const char *s) {
  static const char digits[] = "0123456789";
  s += span(s, "-+ #0", 5);
  s += span(s, digits, 3);
  if (*s == '.') s += 1 + span(s + 1, digits, 3);
  return s + span(s, "hlqjzt", 2);
}

static char own_letter(DType t) {
  return t == DT_BOOL ? 's' : dtype_is_float(t) ? 'g' : 'd';
}

// Writes the length modifier and the letter for *v, where the user's format has
// letter c. Both must match the type of the value, because otherwise C's printf
// is undefined, and the simulator and the GPU might print different text. If c
// is for floats, an integer is converted to a float, as in Lua. If c is for
// integers, a float is printed by %g. A boolean is printed as a word by %s,
// else as 0 or 1.
static size_t put_letter(Ctx *cx, char c, Ref *v, char *out, size_t at) {
  Fn *fn = ir_fn(cx);
  DType t = ir_type(fn, *v);
  if (c == BY_TYPE) c = own_letter(t);
  if ((t == DT_BOOL && c != 's') || (dtype_is_int(t) && dtype_bits(t) < 8))
    *v = ir_cvt(cx, fn, t = DT_I32, *v);
  bool f = strchr("eEfFgGaA", c) != NULL;
  if (t == DT_BOOL) {
    // Keep %s, which prints a boolean as a word.
  } else if (dtype_is_float(t)) {
    if (!f) c = 'g';
  } else if (f) {
    *v = ir_cvt(cx, fn, DT_F64, *v);
  } else {
    if ((c == 'd' || c == 'i') && dtype_class(t) == 'U') c = 'u';
    if (dtype_bits(t) > 32) out[at++] = 'l', out[at++] = 'l';
  }
  out[at++] = c;
  return at;
}

static void check_letter(lua_State *L, const char *s, const char *e,
                         DType t) {
  if (*e && strchr("0123456789", *e))
    face_error(L, ERR_LIMIT, "printf: '%.*s...': a width or precision has at "
               "most three digits", (int)(e - s + 1), s);
  if (*e == BY_TYPE || (*e == 's' && t == DT_BOOL)) return;
  if (!*e || !strchr("diuxXocfFgGeEaA", *e))
    face_error(L, ERR_ARG, "printf: '%.*s' is not a conversion of numbers",
               (int)(e - s + (*e != 0)), s);
}

// Builds the C format for the emitter and the simulator from the user's format
// s. The types of the values determine the length modifiers.
static void format(Ctx *cx, lua_State *L, const char *s, Ref *v, int n,
                   char *out) {
  size_t at = 0;
  int k = 0;
  while (*s && at < MAX_TEXT - 8) {
    if (s[0] == '%' && s[1] == '%') {
      out[at++] = *s++;
      out[at++] = *s++;
    } else if (s[0] == '%') {
      const char *e = conversion_letter(s + 1);
      if (k == n) luaL_error(L, "printf: a value is missing");
      check_letter(L, s, e, ir_type(ir_fn(cx), v[k]));
      for (; s < e && at < MAX_TEXT - 8; s++)
        if (!strchr("hlqjzt", *s)) out[at++] = *s;
      at = put_letter(cx, *e, &v[k++], out, at);
      s = e + 1;
    } else {
      out[at++] = *s++;
    }
  }
  out[at] = '\0';
  if (*s) face_error(L, ERR_LIMIT, "printf: the format exceeds 4000 bytes");
}

// printf(format, values...): prints scalars by C's conversions. If a conversion
// has the letter BY_TYPE, the value's type selects the letter.
static int l_printf(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "cute.printf");
  const char *s = face_checkstr(L, 1);
  int n = lua_gettop(L) - 1;
  if (n > MAX_VALUES)
    return luaL_error(L, "printf of %d values; at most %d are possible", n,
                      MAX_VALUES);
  Ref v[MAX_VALUES];
  for (int k = 0; k < n; k++) v[k] = face_check_value(cx, L, 2 + k, DT_NONE);
  char out[MAX_TEXT];
  format(cx, L, s, v, n, out);
  Ins i = {.op = OP_PRINTF, .imm = ir_text(cx, fn, out, strlen(out))};
  operands_emit(cx, fn, i, v, (uint32_t)n, NULL, 0);
  return 0;
}

// ---- layouts and tensors ----

// Appends the traced numbers among the n words d to the list on top, in order.
static void add_words(lua_State *L, const Dim *d, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (!dim_dynamic(d[i])) continue;
    face_push_value(L, dim_getref(d[i]));
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
}

static void add_plain(lua_State *L, Layout l) {
  add_words(L, l.shape, tup_words(l.shape));
  add_words(L, l.stride, tup_leaves(l.shape));
}

// Appends the traced numbers of the layouts and offsets with which l is
// composed, in the order in which layout_print prints them.
static void add_outer(lua_State *L, Layout l) {
  const Outer *f = l.outer;
  if (!f) return;
  add_outer(L, f->l);
  if (f->kind == OUTER_LAYOUT) add_plain(L, f->l);
  if (l.at) add_words(L, l.at, tup_words(l.at));
  else add_words(L, &l.offset, 1);
}

// traced_numbers(layout or tensor) -> list of the values behind each `?` in the
// text of the argument, in order
static int l_traced_numbers(lua_State *L) {
  face_enter(L);
  Layout l;
  Tensor t = {.space = SP_HOST};
  bool tensor = face_test_tensor(L, 1, &t);
  if (tensor) l = t.l;
  else l = face_check_layout(L, 1);
  lua_newtable(L);
  if (tensor && t.space == SP_COORD) add_words(L, t.base, tup_words(t.base));
  else if (tensor) add_words(L, &t.off, 1);
  add_outer(L, l);
  add_plain(L, l);
  return 1;
}

void printlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"printf", l_printf}, {"traced_numbers", l_traced_numbers}, {NULL, NULL}};
  face_setfuncs(L, funcs);
}
// SPDX-License-Identifier: MIT
