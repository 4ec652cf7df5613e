// Operators and comparisons of traced values and register vectors. Comparison
// methods also accept plain numbers, because a variable may hold a number in
// one iteration of a loop and a traced value in the next.
#include <string.h>

#include "bind/row.h"
#include "bind/trace.h"
#include "bind/veclib.h"

// Metamethods, with the IR operations that they append: A(name, op) for
// arithmetic, C(name, op, whether the operands are swapped) for comparisons.
#define ARITHMETIC(A) \
  A(add, OP_ADD) A(sub, OP_SUB) A(mul, OP_MUL) A(idiv, OP_DIV) \
  A(mod, OP_MOD) A(band, OP_AND) A(bor, OP_OR) A(bxor, OP_XOR) \
  A(shl, OP_SHL) A(shr, OP_SHR)
#define COMPARISONS(C) \
  C(lt, OP_LT, false) C(le, OP_LE, false) C(gt, OP_LT, true) \
  C(ge, OP_LE, true) C(eq, OP_EQ, false) C(ne, OP_NE, false)

typedef struct Sign {
  const char *name;
  Op op;
  bool swap;
} Sign;

static const Sign signs[] = {
#define SIGN(name, op) {"__" #name, op, false},
#define COMPARISON(name, op, swap) {#name, op, swap},
  ARITHMETIC(SIGN) COMPARISONS(COMPARISON)
#undef SIGN
#undef COMPARISON
};
enum {
#define SIGN(name, op) SIGN_##name,
#define COMPARISON(name, op, swap) SIGN_##name,
  ARITHMETIC(SIGN) COMPARISONS(COMPARISON)
#undef SIGN
#undef COMPARISON
};

// If an operand is a table or a constant such as a basis, calls its metamethod
// `event`. Returns false if there is no such operand or metamethod.
static bool other_takes(lua_State *L, const char *event) {
  for (int i = 1; i <= 2; i++) {
    int kind = dispatch_kind(L, i);
    if (!(kind & (KIND_TABLE | KIND_CONSTANT))) continue;
    if (luaL_getmetafield(L, i, event) == LUA_TNIL) return false;
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 1);
    return true;
  }
  return false;
}

// ---- operators ----

// Computes a // b of floats as Lua does: rounds the quotient down.
static Ref floor_of_quotient(Ctx *cx, int how, const Ref *a) {
  Ref q = veclib_apply2(cx, how, a);
  return veclib_apply_math(cx, MF_FLOOR, &q);
}

static int arithmetic(lua_State *L, int sign) {
  Op op = signs[sign].op;
  if (other_takes(L, signs[sign].name)) return 1;
  Ctx *cx = face_enter(L);
  Elements a = veclib_operators(cx, L, 1, 2);
  const char *many = a.shape ? "vectors of " : "";
  bool bits = op_class(op) == CLASS_LOGIC;
  bool shift = op_class(op) == CLASS_SHIFT;
  if ((bits || shift) && dtype_is_float(a.type))
    face_error(L, ERR_TYPE, "%s of %s%s: integers %sare needed", op_name(op),
               many, dtype_name(a.type),
               bits && !a.shape ? "or booleans " : "");
  if (!bits && a.type == DT_BOOL)
    face_error(L, ERR_TYPE, "%s of %sbooleans: convert with :to(cute.i32)",
               op_name(op), many);
  int64_t n;
  if ((op == OP_DIV || op == OP_MOD) && !a.o[1].r &&
      ir_const(ir_fn(cx), a.o[1].s, &n) && n == 0)
    face_error(L, ERR_ARG, "an integer %s 0", op == OP_DIV ? "//" : "%");
  bool floors = op == OP_DIV && dtype_is_float(a.type);
  return veclib_map(L, cx, &a, a.type,
                    floors ? floor_of_quotient : veclib_apply2, (int)op);
}

// Computes a / b or a ^ b. As in Lua, both are floats.
static int op_div(lua_State *L) {
  if (other_takes(L, "__div")) return 1;
  Ctx *cx = face_enter(L);
  Elements a = veclib_operators(cx, L, 1, 2);
  return veclib_map(L, cx, &a, veclib_float(a.type), veclib_apply2, OP_DIV);
}

static int op_pow(lua_State *L) {
  if (other_takes(L, "__pow")) return 1;
  Ctx *cx = face_enter(L);
  Elements a = veclib_operators(cx, L, 1, 2);
  return veclib_map(L, cx, &a, veclib_float(a.type), veclib_apply_math, MF_POW);
}

static int op_unm(lua_State *L) {
  Ctx *cx = face_enter(L);
  Elements a = veclib_operators(cx, L, 1, 1);
  return veclib_map(L, cx, &a, a.type, veclib_apply1, OP_NEG);
}

static int op_bnot(lua_State *L) {
  Ctx *cx = face_enter(L);
  Elements a = veclib_operators(cx, L, 1, 1);
  if (dtype_is_float(a.type))
    face_error(L, ERR_TYPE, "operator '~' does not apply to %s%s",
               a.shape ? "a vector of " : "", dtype_name(a.type));
  return veclib_map(L, cx, &a, a.type, veclib_apply1, OP_NOT);
}

// ---- comparisons ----

static int compare_numbers(lua_State *L, const Sign *s) {
  int a = s->swap ? 2 : 1;
  int op = s->op == OP_LT ? LUA_OPLT : s->op == OP_LE ? LUA_OPLE : LUA_OPEQ;
  face_checkany(L, 2);
  if (op != LUA_OPEQ) {
    face_checknum(L, 1);
    face_checknum(L, 2);
  }
  lua_pushboolean(L, lua_compare(L, a, 3 - a, op) != (s->op == OP_NE));
  return 1;
}

static int compare(lua_State *L, int sign) {
  const Sign *s = &signs[sign];
  if (other_takes(L, s->name)) return 1;
  if (!veclib_any_traced(L, 1, 2)) return compare_numbers(L, s);
  Ctx *cx = face_enter(L);
  Elements a = veclib_operators(cx, L, 1, 2);
  if (s->swap) {
    Element o = a.o[0];
    a.o[0] = a.o[1];
    a.o[1] = o;
  }
  return veclib_map(L, cx, &a, a.type, veclib_apply2, (int)s->op);
}

// ---- comparisons that need the result at trace time ----

static _Noreturn void needs_now(lua_State *L, const char *sign,
                                const char *method) {
  lua_Debug ar;
  bool vector = dispatch_kind(L, 1) == KIND_VECTOR ||
                dispatch_kind(L, 2) == KIND_VECTOR;
  const char *what = vector ? "vector" : "traced value";
  if (lua_getstack(L, 1, &ar) && lua_getinfo(L, "Sn", &ar) && ar.name &&
      strcmp(ar.what, "C") == 0) {
    bool ours = strcmp(ar.name, "min") == 0 || strcmp(ar.name, "max") == 0;
    face_error(L, ERR_DYNAMIC, "'%s' on a %s: Lua would need its value "
               "during the trace\n  %s%s%s", ar.name, what, ours
               ? "use cute." : "compare with methods such as a:lt(b)",
               ours ? ar.name : "",
               ours ? "(...), or methods such as a:lt(b)" : "");
  }
  face_error(L, ERR_DYNAMIC, "'%s' on a %s: Lua would need the result "
             "during the trace\n  write a:%s(b), and %s", sign, what,
             method, vector ? "cute.where(cond, x, y)"
             : "cute.when(...) to branch on it");
}

static int op_lt(lua_State *L) { needs_now(L, "<", "lt"); }
static int op_le(lua_State *L) { needs_now(L, "<=", "le"); }

static int op_eq(lua_State *L) {
  const int traced = KIND_VALUE | KIND_VECTOR;
  const Value *a = trace_value(L, 1), *b = trace_value(L, 2);
  if (a && b && a->serial == b->serial && a->r == b->r &&
      a->birth == b->birth && !a->undefined && !b->undefined) {
    lua_pushboolean(L, 1);
    return 1;
  }
  if ((dispatch_kind(L, 1) & traced && dispatch_kind(L, 2) & traced) ||
      !(a || b))
    needs_now(L, "==", "eq");
  // Other pairs, such as a traced value and a layout, are unequal, as in Lua.
  lua_pushboolean(L, 0);
  return 1;
}

// ---- module ----

static const FnRow events[] = {
#define EVENT(name, op) {"__" #name, "", NUMBERED(arithmetic, SIGN_##name)},
  ARITHMETIC(EVENT)
#undef EVENT
  {"__div", "", FN(op_div)},
  {"__pow", "", FN(op_pow)},
  {"__unm", "", FN(op_unm)},
  {"__bnot", "", FN(op_bnot)},
  {"__lt", "", FN(op_lt)},
  {"__le", "", FN(op_le)},
  {"__eq", "", FN(op_eq)},
  LAST_ROW};

static const FnRow methods[] = {
#define METHOD(name, op, swap) \
  {#name "(other)", "", NUMBERED(compare, SIGN_##name)},
  COMPARISONS(METHOD)
#undef METHOD
  LAST_ROW};

static const FnRow functions[] = {
#define FUNCTION(name, op, swap) \
  {#name "(a, b)", "", NUMBERED(compare, SIGN_##name)},
  COMPARISONS(FUNCTION)
#undef FUNCTION
  LAST_ROW};

// Implements the methods for & | ~ of plain booleans, and of a plain boolean
// and a traced value.
static int host_bits(lua_State *L, int sign) {
  if (veclib_any_traced(L, 1, 2)) return arithmetic(L, sign);
  bool a = lua_toboolean(L, 1), b = lua_toboolean(L, 2);
  lua_pushboolean(L, sign == SIGN_band ? a && b
                     : sign == SIGN_bor ? a || b : a != b);
  return 1;
}

static int host_not(lua_State *L) {
  lua_pushboolean(L, !lua_toboolean(L, 1));
  return 1;
}

static const FnRow booleans[] = {
  {"__band", "", NUMBERED(host_bits, SIGN_band)},
  {"__bor", "", NUMBERED(host_bits, SIGN_bor)},
  {"__bxor", "", NUMBERED(host_bits, SIGN_bxor)},
  {"__bnot", "", FN(host_not)},
  LAST_ROW};

void oplib_open(lua_State *L) {
  static const char *const types[] = {MT_VALUE, MT_VECTOR};
  face_setrows(L, functions);
  for (int i = 0; i < 2; i++) {
    luaL_getmetatable(L, types[i]);
    face_setrows(L, events);
    lua_pop(L, 1);
  }
  luaL_getmetatable(L, MT_VECTOR);
  face_setrows(L, methods);
  lua_getfield(L, -2, "value_methods");
  face_setrows(L, methods);
  lua_pushboolean(L, 0);
  lua_getmetatable(L, -1);
  face_setrows(L, booleans);
  lua_pop(L, 4);
}
// SPDX-License-Identifier: MIT
