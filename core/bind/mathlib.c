// Element-wise functions of vectors, traced scalars and plain Lua numbers
// alike: the float functions of ir/ir.h, max, min, where and their kin.
#include <math.h>
#include <stdio.h>

#include "bind/veclib.h"

static double m_rsqrt(double x) { return 1 / sqrt(x); }
static double m_rcp(double x) { return 1 / x; }

static double m_div(double x, double y) { return x / y; }

typedef struct MathRow {
  const char *name;
  double (*f1)(double);
  double (*f2)(double, double);
} MathRow;

// By MathFn: how plain Lua numbers are computed.
static const MathRow maths[MF_COUNT] = {
#define F1(id, name, f) [MF_##id] = {name, f, NULL}
#define F2(id, name, f) [MF_##id] = {name, NULL, f}
  F1(SQRT, "sqrt", sqrt), F1(RSQRT, "rsqrt", m_rsqrt), F1(RCP, "rcp", m_rcp),
  F1(EXP, "exp", exp), F1(EXP2, "exp2", exp2), F1(EXPM1, "expm1", expm1),
  F1(LOG, "log", log), F1(LOG2, "log2", log2), F1(LOG10, "log10", log10),
  F1(LOG1P, "log1p", log1p), F1(SIN, "sin", sin), F1(COS, "cos", cos),
  F1(TAN, "tan", tan), F1(ASIN, "asin", asin), F1(ACOS, "acos", acos),
  F1(ATAN, "atan", atan), F1(SINH, "sinh", sinh), F1(COSH, "cosh", cosh),
  F1(TANH, "tanh", tanh), F1(ASINH, "asinh", asinh),
  F1(ACOSH, "acosh", acosh), F1(ATANH, "atanh", atanh), F1(ERF, "erf", erf),
  F1(ERFC, "erfc", erfc), F1(CBRT, "cbrt", cbrt), F1(FLOOR, "floor", floor),
  F1(CEIL, "ceil", ceil), F1(TRUNC, "trunc", trunc),
  F1(ROUND, "round", round), F1(RINT, "roundeven", rint),
  F2(POW, "pow", pow), F2(ATAN2, "atan2", atan2),
  F2(COPYSIGN, "copysign", copysign), F2(FMOD, "fmod", fmod),
  F1(EX2APPROX, "ex2_approx", exp2), F1(TANHAPPROX, "tanh_approx", tanh),
  F1(RCPAPPROX, "rcp_approx", m_rcp), F1(SINAPPROX, "sin_approx", sin),
  F1(COSAPPROX, "cos_approx", cos), F1(LG2APPROX, "lg2_approx", log2),
  F1(SQRTAPPROX, "sqrt_approx", sqrt),
  F1(RSQRTAPPROX, "rsqrt_approx", m_rsqrt), F2(DIVAPPROX, "div_full", m_div)};

// Narrow floats compute in f32 and come back.
static int math_traced(lua_State *L, Ctx *cx, MathFn f, int n) {
  Operands a = veclib_operands(cx, L, 1, n);
  DType t = veclib_float(a.type);
  if (t == DT_F32 || t == DT_F64)
    return veclib_map(L, cx, &a, t, veclib_apply_math, (int)f);
  veclib_map(L, cx, &a, DT_F32, veclib_apply_math, (int)f);
  Operands r = veclib_operands(cx, L, lua_gettop(L), 1);
  Ref *out = NEW(cx, Ref, (size_t)(r.like ? r.like->n : 1));
  for (int64_t i = 0; i < (r.like ? r.like->n : 1); i++)
    out[i] = ir_cvt(cx, ir_fn(cx), t, veclib_at(&r.o[0], i));
  if (r.like) veclib_push(L, t, r.like->shape, out, r.like->n);
  else face_push_value(L, out[0]);
  return 1;
}

// OWN: the MathFn.
static int l_math(lua_State *L) {
  Ctx *cx = face_enter(L);
  MathFn f = (MathFn)lua_tointeger(L, OWN);
  int n = math_arity(f);
  if (veclib_any_traced(L, 1, n)) return math_traced(L, cx, f, n);
  double x = face_checknum(L, 1);
  lua_pushnumber(L, n == 1 ? maths[f].f1(x)
                           : maths[f].f2(x, face_checknum(L, 2)));
  return 1;
}

// Arguments at indices a and b: pushes the smaller (larger) one.
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
  Operands o = veclib_operands(cx, L, lua_gettop(L) - 1, 2);
  veclib_map(L, cx, &o, o.type, veclib_apply2, (int)op);
}

// max(a, b, ...); of one tuple: what had the name before.
static int pick_all(lua_State *L, Op op) {
  int n = lua_gettop(L);
  if (n == 0) face_argerror(L, 1, "number, traced value or vector");
  if (n == 1 && !veclib_any_traced(L, 1, n) && !lua_isnumber(L, 1))
    return face_previous(L);
  Ctx *cx = face_enter(L);
  lua_pushvalue(L, 1);
  for (int i = 2; i <= n; i++) pick(L, cx, -1, i, op);
  return 1;
}

static int l_max(lua_State *L) { return pick_all(L, OP_MAX); }
static int l_min(lua_State *L) { return pick_all(L, OP_MIN); }

static int l_abs(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (veclib_any_traced(L, 1, 1)) {
    Operands a = veclib_operands(cx, L, 1, 1);
    return veclib_map(L, cx, &a, a.type, veclib_apply1, OP_ABS);
  }
  if (lua_isinteger(L, 1)) {
    lua_Integer v = lua_tointeger(L, 1);  // that of mininteger is itself
    lua_pushinteger(L, v < 0 ? (lua_Integer)(0u - (lua_Unsigned)v) : v);
  } else {
    lua_pushnumber(L, fabs(face_checknum(L, 1)));
  }
  return 1;
}

static Ref apply3(Ctx *cx, int how, const Ref *a) {
  return ir_op3(cx, ir_fn(cx), (Op)how, a[0], a[1], a[2]);
}

// fma(a, b, c): a * b + c with one rounding.
static int l_fma(lua_State *L) {
  Ctx *cx = face_enter(L);
  if (veclib_any_traced(L, 1, 3)) {
    Operands a = veclib_operands(cx, L, 1, 3);
    return veclib_map(L, cx, &a, veclib_float(a.type), apply3, OP_FMA);
  }
  lua_pushnumber(L, fma(face_checknum(L, 1), face_checknum(L, 2),
                        face_checknum(L, 3)));
  return 1;
}

// where(cond, a, b) with a vector among the operands; the scalar one, which
// had the name before, otherwise.
static int l_where(lua_State *L) {
  if (!luaL_testudata(L, 1, MT_VECTOR) && !luaL_testudata(L, 2, MT_VECTOR) &&
      !luaL_testudata(L, 3, MT_VECTOR))
    return face_previous(L);
  Ctx *cx = face_enter(L);
  Operands c = veclib_operands(cx, L, 1, 1), a = veclib_operands(cx, L, 2, 2);
  if (c.type != DT_BOOL)
    face_error(L, ERR_TYPE, "where: the condition is of type %s, not boolean",
               dtype_name(c.type));
  if (c.like && a.like) veclib_same_shape(cx, c.like, a.like);
  const Vector *like = a.like ? a.like : c.like;
  int64_t n = like ? like->n : 1;
  Ref *out = NEW(cx, Ref, (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    Ref x = ir_cvt(cx, ir_fn(cx), a.type, veclib_at(&a.o[0], i));
    Ref y = ir_cvt(cx, ir_fn(cx), a.type, veclib_at(&a.o[1], i));
    out[i] = ir_op3(cx, ir_fn(cx), OP_SEL, veclib_at(&c.o[0], i), x, y);
  }
  if (like) veclib_push(L, a.type, like->shape, out, n);
  else face_push_value(L, out[0]);
  return 1;
}

static int fold_bool(lua_State *L, Op op) {
  Ctx *cx = face_enter(L);
  const Vector *v = veclib_check(L, 1);
  if (v->type != DT_BOOL || v->n == 0)
    face_error(L, ERR_TYPE, "a vector of booleans is needed, not of %s",
               dtype_name(v->type));
  Ref acc = v->r[0];
  for (int64_t i = 1; i < v->n; i++)
    acc = ir_op2(cx, ir_fn(cx), op, acc, v->r[i]);
  face_push_value(L, acc);
  return 1;
}

static int l_any(lua_State *L) { return fold_bool(L, OP_OR); }
static int l_all(lua_State *L) { return fold_bool(L, OP_AND); }

// ---- opening ----

static void maths_open(lua_State *L) {
  for (int f = 0; f < MF_COUNT; f++) {
    char sig[40];
    snprintf(sig, sizeof sig, "%s(%s)", maths[f].name,
             maths[f].f1 ? "x" : "x, y");
    lua_pushinteger(L, f);
    face_setfunc(L, sig, l_math);
  }
}

void mathlib_open(lua_State *L) {
  static const luaL_Reg funcs[] = {
    {"abs(x)", l_abs}, {"fma(a, b, c)", l_fma}, {"any_(x)", l_any},
    {"all_(x)", l_all}, {NULL, NULL}};
  face_setfuncs(L, funcs);
  maths_open(L);
  face_extend(L, "max(x, values...)", l_max);
  face_extend(L, "min(x, values...)", l_min);
  face_extend(L, "where(cond, a, b)", l_where);
}
