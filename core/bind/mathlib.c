// Element-wise functions of vectors, traced scalars and plain Lua numbers: the
// float functions MATHS (ir/rows.h), and max, min, where and others.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bind/row.h"
#include "bind/trace.h"
#include "bind/veclib.h"
#include "ir/derivative.h"
#include "ir/eval.h"

static double m_rsqrt(double x) { return 1 / sqrt(x); }
static double m_rcp(double x) { return 1 / x; }

// Functions of one argument, then functions of two arguments. F(name, function
// of MATHS (ir/rows.h), C function for plain Lua numbers, or NULL). With NULL,
// plain numbers are computed in f32, as the hardware does. OPT(name): a call
// may pass {fastmath = ...}.
#define OPT(name) name "(x, opts?)"
#define MATHS1(F) \
  F(OPT("sqrt"), SQRT, sqrt) F(OPT("rsqrt"), RSQRT, m_rsqrt) \
  F(OPT("rcp"), RCP, m_rcp) F(OPT("exp"), EXP, exp) \
  F(OPT("exp2"), EXP2, exp2) F(OPT("expm1"), EXPM1, expm1) \
  F(OPT("log"), LOG, log) F(OPT("log2"), LOG2, log2) \
  F(OPT("log10"), LOG10, log10) F(OPT("log1p"), LOG1P, log1p) \
  F(OPT("sin"), SIN, sin) F(OPT("cos"), COS, cos) F(OPT("tan"), TAN, tan) \
  F(OPT("asin"), ASIN, asin) F(OPT("acos"), ACOS, acos) \
  F(OPT("atan"), ATAN, atan) F(OPT("sinh"), SINH, sinh) \
  F(OPT("cosh"), COSH, cosh) F(OPT("tanh"), TANH, tanh) \
  F(OPT("asinh"), ASINH, asinh) F(OPT("acosh"), ACOSH, acosh) \
  F(OPT("atanh"), ATANH, atanh) F(OPT("erf"), ERF, erf) \
  F(OPT("erfc"), ERFC, erfc) F(OPT("cbrt"), CBRT, cbrt) \
  F("floor(x)", FLOOR, floor) F("ceil(x)", CEIL, ceil) \
  F("trunc(x)", TRUNC, trunc) F("round(x)", ROUND, round) \
  F("roundeven(x)", RINT, rint) F("ex2_approx(x)", EX2APPROX, NULL) \
  F("tanh_approx(x)", TANHAPPROX, NULL) F("rcp_approx(x)", RCPAPPROX, NULL) \
  F("sin_approx(x)", SINAPPROX, NULL) F("cos_approx(x)", COSAPPROX, NULL) \
  F("lg2_approx(x)", LG2APPROX, NULL) F("sqrt_approx(x)", SQRTAPPROX, NULL) \
  F("rsqrt_approx(x)", RSQRTAPPROX, NULL)
#define MATHS2(F) \
  F("pow(x, y, opts?)", POW, pow) F("atan2(x, y, opts?)", ATAN2, atan2) \
  F("copysign(x, y)", COPYSIGN, copysign) F("fmod(x, y)", FMOD, fmod) \
  F("div_full(x, y)", DIVAPPROX, NULL)

typedef struct OfNumbers {
  double (*f1)(double);
  double (*f2)(double, double);
} OfNumbers;

static const OfNumbers of_numbers[MF_COUNT] = {
#define F1(sig, id, f) [MF_##id] = {f, NULL},
#define F2(sig, id, f) [MF_##id] = {NULL, f},
  MATHS1(F1) MATHS2(F2)
#undef F1
#undef F2
};

// Returns the field fastmath of the table at idx. If it is absent, returns
// `otherwise`, the kernel's option.
static bool check_fastmath(lua_State *L, int idx, bool otherwise) {
  if (lua_isnoneornil(L, idx)) return otherwise;
  face_check_options(L, idx, "fastmath");
  if (lua_getfield(L, idx, "fastmath") != LUA_TNIL) {
    if (!lua_isboolean(L, -1))
      face_error(L, ERR_ARG, "fastmath = %s: a boolean is needed",
                 face_show(L, -1));
    otherwise = lua_toboolean(L, -1);
  }
  lua_pop(L, 1);
  return otherwise;
}

static int map_math(lua_State *L, Ctx *cx, const Elements *a, DType t,
                    MathFn f, bool fast) {
  Fn *fn = ir_fn(cx);
  bool was = fn->fastmath;
  fn->fastmath = fast;
  int n = veclib_map(L, cx, a, t, veclib_apply_math, (int)f);
  fn->fastmath = was;
  return n;
}

// Applies f to n traced arguments. Floats narrower than f32 are computed in
// f32.
static int math_traced(lua_State *L, Ctx *cx, MathFn f, int n) {
  Elements a = veclib_operands(cx, L, 1, n);
  bool fast = check_fastmath(L, n + 1, ir_fn(cx)->fastmath);
  DType t = veclib_float(a.type);
  if (t == DT_F32 || t == DT_F64) return map_math(L, cx, &a, t, f, fast);
  map_math(L, cx, &a, DT_F32, f, fast);
  Elements r = veclib_operands(cx, L, lua_gettop(L), 1);
  Ref *out = NEW(cx, Ref, (size_t)r.count);
  for (int64_t i = 0; i < r.count; i++)
    out[i] = ir_cvt(cx, ir_fn(cx), t, veclib_at(&r.o[0], i));
  return veclib_result(L, &r, t, out);
}

static int l_math(lua_State *L, int id) {
  Ctx *cx = face_enter(L);
  const OfNumbers *f = &of_numbers[id];
  int n = math_arity((MathFn)id);
  if (veclib_any_traced(L, 1, n)) return math_traced(L, cx, (MathFn)id, n);
  check_fastmath(L, n + 1, false);
  double x = face_checknum(L, 1), y = n == 1 ? 0 : face_checknum(L, 2);
  if (math_is_approx((MathFn)id))
    lua_pushnumber(L, bits_float(eval_math((MathFn)id, float_bits((float)x),
                                           float_bits((float)y))));
  else
    lua_pushnumber(L, n == 1 ? f->f1(x) : f->f2(x, y));
  return 1;
}

// Pushes the smaller (OP_MIN) or larger (OP_MAX) of the arguments at a and b.
static void pick(lua_State *L, Ctx *cx, int a, int b, Op op) {
  a = lua_absindex(L, a);
  b = lua_absindex(L, b);
  if (!veclib_any_traced(L, a, 1) && !veclib_any_traced(L, b, 1)) {
    face_checknum(L, a);
    face_checknum(L, b);
    bool less = lua_compare(L, a, b, LUA_OPLT);
    lua_pushvalue(L, less == (op == OP_MIN) ? a : b);
    return;
  }
  lua_pushvalue(L, a);
  lua_pushvalue(L, b);
  Elements o = veclib_operands(cx, L, lua_gettop(L) - 1, 2);
  veclib_map(L, cx, &o, o.type, veclib_apply2, (int)op);
}

int mathlib_pick(lua_State *L, int op) {
  int n = lua_gettop(L);
  if (n == 0 || lua_isnil(L, 1))
    face_argerror(L, 1, "number, traced value or vector");
  Ctx *cx = face_enter(L);
  lua_pushvalue(L, 1);
  for (int i = 2; i <= n; i++) pick(L, cx, -1, i, (Op)op);
  return 1;
}

static int l_abs(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (veclib_any_traced(L, 1, 1)) {
    Elements a = veclib_operands(cx, L, 1, 1);
    return veclib_map(L, cx, &a, a.type, veclib_apply1, OP_ABS);
  }
  if (lua_isinteger(L, 1)) {
    // Negate as unsigned, so that math.mininteger wraps to itself.
    lua_Integer v = lua_tointeger(L, 1);
    lua_pushinteger(L, v < 0 ? (lua_Integer)(0u - (lua_Unsigned)v) : v);
  } else {
    lua_pushnumber(L, fabs(face_checknum(L, 1)));
  }
  return 1;
}

static Ref apply3(Ctx *cx, int how, const Ref *a) {
  return ir_op3(cx, ir_fn(cx), (Op)how, a[0], a[1], a[2]);
}

// fma(a, b, c) -> a * b + c with one rounding.
static int l_fma(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (veclib_any_traced(L, 1, 3)) {
    Elements a = veclib_operands(cx, L, 1, 3);
    return veclib_map(L, cx, &a, veclib_float(a.type), apply3, OP_FMA);
  }
  lua_pushnumber(L, fma(face_checknum(L, 1), face_checknum(L, 2),
                        face_checknum(L, 3)));
  return 1;
}

// where(cond, a, b) -> a if cond is true, else b. If a or b is a plain number
// and the other is not, the number takes the type of the other.
static int l_where(lua_State *L) {
  int all = 0;
  for (int i = 1; i <= 3; i++) all |= dispatch_kind(L, i);
  bool vector = all & KIND_VECTOR;
  face_checkany(L, 3);
  if (!vector && lua_isboolean(L, 1)) {
    lua_pushvalue(L, lua_toboolean(L, 1) ? 2 : 3);
    return 1;
  }
  Ctx *cx = face_enter(L);
  if (!vector) face_check_value(cx, L, 1, DT_BOOL);
  Elements c = veclib_operands(cx, L, 1, 1);
  Elements a = vector ? veclib_operands(cx, L, 2, 2)
                      : veclib_operators(cx, L, 2, 2);
  if (c.type != DT_BOOL)
    face_error(L, ERR_TYPE, "where: the condition is of type %s, not boolean",
               dtype_name(c.type));
  veclib_join(cx, &c, &a);
  Ref *out = NEW(cx, Ref, (size_t)a.count);
  for (int64_t i = 0; i < a.count; i++) {
    Ref x = ir_cvt(cx, ir_fn(cx), a.type, veclib_at(&a.o[0], i));
    Ref y = ir_cvt(cx, ir_fn(cx), a.type, veclib_at(&a.o[1], i));
    out[i] = ir_op3(cx, ir_fn(cx), OP_SEL, veclib_at(&c.o[0], i), x, y);
  }
  if (!vector && lua_type(L, 2) == LUA_TNUMBER &&
      lua_type(L, 3) == LUA_TNUMBER && ir_get(ir_fn(cx), *out)->op == OP_SEL) {
    trace_push_choice(L, cx, *out, 2, 3);
    return 1;
  }
  return veclib_result(L, &a, a.type, out);
}

static int fold_bool(lua_State *L, int op) {
  Ctx *cx = face_enter(L);
  const Vector *v = veclib_check(L, 1);
  if (v->type != DT_BOOL || v->n == 0)
    face_error(L, ERR_TYPE, "a vector of booleans is needed, not of %s",
               dtype_name(v->type));
  Ref acc = v->r[0];
  for (int64_t i = 1; i < v->n; i++)
    acc = ir_op2(cx, ir_fn(cx), (Op)op, acc, v->r[i]);
  face_push_value(L, acc);
  return 1;
}

// derivative(y, x) -> the derivative of the traced float y with respect to x
static int l_derivative(lua_State *L) {
  Ctx *cx = face_enter(L);
  Fn *fn = face_tracing(cx, L, "derivative");
  Ref x = face_check_value(cx, L, 2, DT_NONE);
  if (lua_type(L, 1) == LUA_TNUMBER) {
    lua_pushnumber(L, 0);
    return 1;
  }
  Ref y = face_check_value(cx, L, 1, DT_NONE);
  DType of_x = ir_type(fn, x), of_y = ir_type(fn, y);
  if (!dtype_is_float(of_x) || !dtype_is_float(of_y))
    face_error(L, ERR_TYPE, "the values have types %s and %s; floats are "
               "needed", dtype_name(of_y), dtype_name(of_x));
  const char *op;
  Ref d = ir_derivative(cx, fn, y, x, &op);
  if (!d && op)
    face_error(L, ERR_ARG, "the derivative of '%s' is not known", op);
  if (!d)
    face_error(L, ERR_ARG, "more than %d operations lead from one value to the "
               "other; a derivative needs at most %d", IR_LONGEST_CHAIN,
               IR_LONGEST_CHAIN);
  face_push_value(L, d);
  return 1;
}

// ---- module ----

static const FnRow rows[] = {
  {"derivative(y, x)", "", FN(l_derivative)},
  {"abs(x)", "", FN(l_abs)},
  {"fma(a, b, c)", "", FN(l_fma)},
  {"where(cond, a, b)", "", FN(l_where)},
  {"any_(x)", "", NUMBERED(fold_bool, OP_OR)},
  {"all_(x)", "", NUMBERED(fold_bool, OP_AND)},
#define ROW(sig, id, f) {sig, "", NUMBERED(l_math, MF_##id)},
  MATHS1(ROW) MATHS2(ROW)
#undef ROW
  LAST_ROW};

void mathlib_open(lua_State *L) { face_setrows(L, rows); }
// SPDX-License-Identifier: MIT
