// Applies a kernel's float options while it is traced, so that CUDA text and
// the simulator compute the same results. The option fmad contracts a product
// and a sum to one FMA. The option fastmath uses the hardware's approximations.
#include <stdio.h>

#include "ir/fold.h"

// Logs that instruction `to` replaces operation `from`, if CUTELUA_DEBUG=trace
// is set.
static Ref tell(const Fn *fn, const char *from, Ref to) {
  const Ins *i = ir_get(fn, to);
  if (to && fn->tell)
    fprintf(stderr, "line %u: %s becomes %s\n", fn->src.p[fn->at].line, from,
            i->op == OP_MATH ? math_name((MathFn)i->imm)
                             : op_name((Op)i->op));
  return to;
}

static bool contracts(DType t) {
  return t == DT_F32 || t == DT_F64 || t == DT_F16 || t == DT_BF16;
}

// Contracts a + b or a - b to an FMA x * y + c, if a (or, failing that, b) is a
// product x * y. For a difference, negates c or a factor. Returns 0 if neither
// a nor b is a product.
static Ref contract(Ctx *cx, Fn *fn, Op op, Ref a, Ref b) {
  bool left = ir_get(fn, a)->op == OP_MUL;
  Ref p = left ? a : b, c = left ? b : a;
  const Ins *i = ir_get(fn, p);
  if (i->op != OP_MUL || !contracts((DType)i->type)) return 0;
  Ref x = i->a[0], y = i->a[1];
  if (op == OP_SUB && left) c = ir_op1(cx, fn, OP_NEG, c);
  if (op == OP_SUB && !left) x = ir_op1(cx, fn, OP_NEG, x);
  return ir_op3(cx, fn, OP_FMA, x, y, c);
}

Ref irfast_op2(Ctx *cx, Fn *fn, Op op, Ref a, Ref b) {
  if (fn->fmad && (op == OP_ADD || op == OP_SUB))
    return tell(fn, op_name(op), contract(cx, fn, op, a, b));
  if (fn->fastmath && op == OP_DIV && ir_type(fn, a) == DT_F32)
    return tell(fn, op_name(op), ir_math(cx, fn, MF_DIVAPPROX, a, b));
  return 0;
}

static Ref scaled(Ctx *cx, Fn *fn, Ref a, double by) {
  return ir_op2(cx, fn, OP_MUL, a, ir_float(cx, fn, DT_F32, by));
}

static Ref approximate(Ctx *cx, Fn *fn, MathFn f, Ref a, Ref b) {
  switch ((int)f) {
    case MF_SQRT: return ir_math(cx, fn, MF_SQRTAPPROX, a, 0);
    case MF_RSQRT: return ir_math(cx, fn, MF_RSQRTAPPROX, a, 0);
    case MF_RCP: return ir_math(cx, fn, MF_RCPAPPROX, a, 0);
    case MF_SIN: return ir_math(cx, fn, MF_SINAPPROX, a, 0);
    case MF_COS: return ir_math(cx, fn, MF_COSAPPROX, a, 0);
    case MF_EXP2: return ir_math(cx, fn, MF_EX2APPROX, a, 0);
    case MF_TANH: return ir_math(cx, fn, MF_TANHAPPROX, a, 0);
    case MF_LOG2: return ir_math(cx, fn, MF_LG2APPROX, a, 0);
    case MF_EXP:  // 2^(x * log2 e)
      a = scaled(cx, fn, a, 1.4426950408889634);
      return ir_math(cx, fn, MF_EX2APPROX, a, 0);
    case MF_LOG:  // log2 x * ln 2
      return scaled(cx, fn, ir_math(cx, fn, MF_LG2APPROX, a, 0),
                    0.69314718055994531);
    case MF_LOG10:
      return scaled(cx, fn, ir_math(cx, fn, MF_LG2APPROX, a, 0),
                    0.30102999566398120);
    case MF_TAN:
      b = ir_math(cx, fn, MF_COSAPPROX, a, 0);
      return ir_math(cx, fn, MF_DIVAPPROX,
                     ir_math(cx, fn, MF_SINAPPROX, a, 0), b);
    case MF_POW:  // 2^(y * log2 x)
      a = ir_op2(cx, fn, OP_MUL, ir_math(cx, fn, MF_LG2APPROX, a, 0), b);
      return ir_math(cx, fn, MF_EX2APPROX, a, 0);
    default: return 0;
  }
}

Ref irfast_math(Ctx *cx, Fn *fn, MathFn f, Ref a, Ref b) {
  if (!fn->fastmath || ir_type(fn, a) != DT_F32) return 0;
  return tell(fn, math_name(f), approximate(cx, fn, f, a, b));
}
// SPDX-License-Identifier: MIT
