// Derivatives of traced values: applies the chain rule forward, from x to y, to
// the instructions between them.
#include "ir/derivative.h"

#include <math.h>

#include "ir/intrin.h"
#include "ir/operands.h"

typedef struct Chain {
  Ctx *cx;
  Fn *fn;
  Ref x;
  Ref *known;       // known derivative of each Ref below `end`; 0: the
                    // derivative is zero
  uint8_t *is_known;
  uint32_t end;
  int depth;
  const char *op;   // name of an operation that has no derivative, or NULL
  bool failed;
} Chain;

static Ref derive(Chain *c, Ref r);

static Ref number(Chain *c, DType t, double v) {
  return ir_float(c->cx, c->fn, t, v);
}

// Returns -a. In this file, a Ref of 0 stands for the number 0.
static Ref minus(Chain *c, Ref a) {
  return a ? ir_op1(c->cx, c->fn, OP_NEG, a) : 0;
}

// Return a + b (sum) and a * b (product).
static Ref sum(Chain *c, Ref a, Ref b) {
  return !a ? b : !b ? a : ir_op2(c->cx, c->fn, OP_ADD, a, b);
}

static Ref product(Chain *c, Ref a, Ref b) {
  return a && b ? ir_op2(c->cx, c->fn, OP_MUL, a, b) : 0;
}

static Ref quotient(Chain *c, Ref a, Ref b) {
  return a ? ir_op2(c->cx, c->fn, OP_DIV, a, b) : 0;
}

static Ref math(Chain *c, MathFn f, Ref a) {
  return ir_math(c->cx, c->fn, f, a, 0);
}

// Returns k * a.
static Ref scaled(Chain *c, double k, Ref a) {
  return product(c, number(c, ir_type(c->fn, a), k), a);
}

// Returns k + a.
static Ref shifted(Chain *c, double k, Ref a) {
  return sum(c, number(c, ir_type(c->fn, a), k), a);
}

static Ref square(Chain *c, Ref a) { return product(c, a, a); }

// Returns p ? a : b. Each of a and b may be 0, which stands for the number 0.
static Ref chosen(Chain *c, Ref p, DType t, Ref a, Ref b) {
  if (!a && !b) return 0;
  return ir_op3(c->cx, c->fn, OP_SEL, p, a ? a : number(c, t, 0),
                b ? b : number(c, t, 0));
}

static Ref fail(Chain *c, const char *op) {
  if (!c->failed) c->op = op;
  c->failed = true;
  return 0;
}

// ---- functions of one argument: the slope of f at a, where y = f(a) ----

static Ref one(Chain *c, Ref a) { return number(c, ir_type(c->fn, a), 1); }

static Ref of_sqrt(Chain *c, Ref a, Ref y) {
  return quotient(c, number(c, ir_type(c->fn, a), 0.5), y);
}

static Ref of_rsqrt(Chain *c, Ref a, Ref y) {
  (void)a;
  return scaled(c, -0.5, product(c, y, square(c, y)));
}

static Ref of_rcp(Chain *c, Ref a, Ref y) {
  (void)a;
  return minus(c, square(c, y));
}

static Ref of_exp(Chain *c, Ref a, Ref y) {
  (void)c, (void)a;
  return y;
}

static Ref of_exp2(Chain *c, Ref a, Ref y) {
  (void)a;
  return scaled(c, log(2), y);
}

static Ref of_expm1(Chain *c, Ref a, Ref y) {
  (void)a;
  return shifted(c, 1, y);
}

static Ref of_log(Chain *c, Ref a, Ref y) {
  (void)y;
  return quotient(c, one(c, a), a);
}

static Ref of_log2(Chain *c, Ref a, Ref y) {
  return scaled(c, 1 / log(2), of_log(c, a, y));
}

static Ref of_log10(Chain *c, Ref a, Ref y) {
  return scaled(c, 1 / log(10), of_log(c, a, y));
}

static Ref of_log1p(Chain *c, Ref a, Ref y) {
  (void)y;
  return quotient(c, one(c, a), shifted(c, 1, a));
}





static Ref of_tan(Chain *c, Ref a, Ref y) {
  (void)a;
  return shifted(c, 1, square(c, y));
}

static Ref of_atan(Chain *c, Ref a, Ref y) {
  (void)y;
  return quotient(c, one(c, a), shifted(c, 1, square(c, a)));
}



static Ref of_tanh(Chain *c, Ref a, Ref y) {
  (void)a;
  return shifted(c, 1, minus(c, square(c, y)));
}

static Ref of_asinh(Chain *c, Ref a, Ref y) {
  (void)y;
  return math(c, MF_RSQRT, shifted(c, 1, square(c, a)));
}

static Ref of_atanh(Chain *c, Ref a, Ref y) {
  (void)y;
  return quotient(c, one(c, a), shifted(c, 1, minus(c, square(c, a))));
}

static Ref of_erf(Chain *c, Ref a, Ref y) {
  (void)y;
  return scaled(c, 2 / sqrt(acos(-1)), math(c, MF_EXP, minus(c, square(c, a))));
}

static Ref of_cbrt(Chain *c, Ref a, Ref y) {
  return quotient(c, number(c, ir_type(c->fn, a), 1. / 3), square(c, y));
}

static Ref of_steps(Chain *c, Ref a, Ref y) {
  (void)c, (void)a, (void)y;
  return 0;
}

typedef Ref Slope(Chain *c, Ref a, Ref y);

// Functions f whose derivative f'(a) is slope(a) or, if `minus` is set,
// -slope(a).
static const struct { MathFn f, slope; bool minus; } FUNCTIONS[] = {
  {MF_SIN, MF_COS, false}, {MF_COS, MF_SIN, true}, {MF_SINH, MF_COSH, false},
  {MF_COSH, MF_SINH, false}, {MF_SINAPPROX, MF_COSAPPROX, false},
  {MF_COSAPPROX, MF_SINAPPROX, true}};

static Slope *const slopes[MF_COUNT] = {
  [MF_SQRT] = of_sqrt, [MF_SQRTAPPROX] = of_sqrt, [MF_RSQRT] = of_rsqrt,
  [MF_RSQRTAPPROX] = of_rsqrt, [MF_RCP] = of_rcp, [MF_RCPAPPROX] = of_rcp,
  [MF_EXP] = of_exp, [MF_EXP2] = of_exp2, [MF_EX2APPROX] = of_exp2,
  [MF_EXPM1] = of_expm1, [MF_LOG] = of_log, [MF_LOG2] = of_log2,
  [MF_LG2APPROX] = of_log2, [MF_LOG10] = of_log10, [MF_LOG1P] = of_log1p,
  [MF_TAN] = of_tan, [MF_ATAN] = of_atan, [MF_TANH] = of_tanh,
  [MF_TANHAPPROX] = of_tanh, [MF_ASINH] = of_asinh, [MF_ATANH] = of_atanh,
  [MF_ERF] = of_erf, [MF_CBRT] = of_cbrt, [MF_FLOOR] = of_steps,
  [MF_CEIL] = of_steps, [MF_TRUNC] = of_steps, [MF_ROUND] = of_steps,
  [MF_RINT] = of_steps};

// ---- other operations ----

// Returns the derivative of the quotient y = a / b by the quotient rule: (da -
// y * db) / b.
static Ref divided(Chain *c, Ref da, Ref db, Ref b, Ref y) {
  return quotient(c, sum(c, da, minus(c, product(c, y, db))), b);
}

static Ref power(Chain *c, Ref a, Ref b, Ref y, Ref da, Ref db) {
  Ref less = shifted(c, -1, b);
  Ref by_base = da ? product(c, b, ir_math(c->cx, c->fn, MF_POW, a, less)) : 0;
  Ref by_exponent = db ? product(c, y, math(c, MF_LOG, a)) : 0;
  return sum(c, product(c, by_base, da), product(c, by_exponent, db));
}

static Ref of_math(Chain *c, MathFn f, Ref a, Ref b, Ref y) {
  Ref da = derive(c, a), db = b ? derive(c, b) : 0;
  if (!da && !db) return 0;
  if (f == MF_DIVAPPROX) return divided(c, da, db, b, y);
  if (f == MF_POW) return power(c, a, b, y, da, db);
  if (f == MF_FMOD && !db) return da;
  for (size_t k = 0; k < sizeof FUNCTIONS / sizeof *FUNCTIONS; k++) {
    if (FUNCTIONS[k].f != f) continue;
    Ref g = product(c, math(c, FUNCTIONS[k].slope, a), da);
    return FUNCTIONS[k].minus ? minus(c, g) : g;
  }
  if (!slopes[f]) return fail(c, math_name(f));
  return product(c, slopes[f](c, a, y), da);
}

// Pairs of an intrinsic and a math function that have the same results, except
// for subnormals.
static const struct { IntrinId intrin; MathFn f; } SAME[] = {
  {IN_EX2FTZ, MF_EX2APPROX}, {IN_LG2FTZ, MF_LG2APPROX},
  {IN_RCPFTZ, MF_RCPAPPROX}, {IN_SQRTFTZ, MF_SQRTAPPROX},
  {IN_RSQRTFTZ, MF_RSQRTAPPROX}, {IN_SINFTZ, MF_SINAPPROX},
  {IN_COSFTZ, MF_COSAPPROX}};

// Reports whether an operand of i may depend on x. Registers and variables are
// assumed to depend on it.
static bool depends(Chain *c, const Ins *i) {
  Operand o;
  for (Operands w = operands_of(c->fn, i); operands_next(&w, &o);) {
    if (o.kind == OPERAND_VALUE && o.ref && derive(c, o.ref)) return true;
    bool memory = o.kind == OPERAND_MEM || o.kind == OPERAND_RUN;
    if (memory && ir_get(c->fn, o.ref)->op == OP_RMEM) return true;
  }
  return i->op == OP_VGET || i->op == OP_VAR;
}

static Ref of_other(Chain *c, Ref r, const Ins *i) {
  (void)r;
  return depends(c, i) ? fail(c, op_name((Op)i->op)) : 0;
}

static Ref of_add(Chain *c, Ref r, const Ins *i) {
  (void)r;
  return sum(c, derive(c, i->a[0]), derive(c, i->a[1]));
}

static Ref of_sub(Chain *c, Ref r, const Ins *i) {
  (void)r;
  return sum(c, derive(c, i->a[0]), minus(c, derive(c, i->a[1])));
}

static Ref of_mul(Chain *c, Ref r, const Ins *i) {
  (void)r;
  return sum(c, product(c, derive(c, i->a[0]), i->a[1]),
             product(c, i->a[0], derive(c, i->a[1])));
}

// The option fmad contracts a product and a sum into one FMA. If the product
// was x or -x, then x is not an operand of the FMA. Therefore this function
// computes the product again and compares it with x.
static Ref of_fma(Chain *c, Ref r, const Ins *i) {
  Ref d = derive(c, i->a[2]), a = i->a[0];
  Ins first = *ir_get(c->fn, a);
  if (ir_op2(c->cx, c->fn, OP_MUL, a, i->a[1]) == c->x)
    return sum(c, d, one(c, c->x));
  if (first.op == OP_NEG &&
      ir_op2(c->cx, c->fn, OP_MUL, first.a[0], i->a[1]) == c->x)
    return sum(c, d, minus(c, one(c, c->x)));
  return sum(c, d, of_mul(c, r, i));
}

static Ref of_div(Chain *c, Ref r, const Ins *i) {
  return divided(c, derive(c, i->a[0]), derive(c, i->a[1]), i->a[1], r);
}

static Ref of_neg(Chain *c, Ref r, const Ins *i) {
  (void)r;
  return minus(c, derive(c, i->a[0]));
}

static Ref of_abs(Chain *c, Ref r, const Ins *i) {
  DType t = ir_type(c->fn, r);
  Ref d = derive(c, i->a[0]);
  if (!d) return 0;
  Ref below = ir_op2(c->cx, c->fn, OP_LT, i->a[0], number(c, t, 0));
  return chosen(c, below, t, minus(c, d), d);
}

static Ref of_least(Chain *c, Ref r, const Ins *i) {
  Ref da = derive(c, i->a[0]), db = derive(c, i->a[1]);
  if (!da && !db) return 0;
  bool min = i->op == OP_MIN;
  Ref first = ir_op2(c->cx, c->fn, OP_LE, i->a[!min], i->a[min]);
  return chosen(c, first, ir_type(c->fn, r), da, db);
}

static Ref of_sel(Chain *c, Ref r, const Ins *i) {
  return chosen(c, i->a[0], ir_type(c->fn, r), derive(c, i->a[1]),
                derive(c, i->a[2]));
}

static Ref of_cvt(Chain *c, Ref r, const Ins *i) {
  Ref d = derive(c, i->a[0]);
  return d ? ir_cvt(c->cx, c->fn, ir_type(c->fn, r), d) : 0;
}

static Ref of_function(Chain *c, Ref r, const Ins *i) {
  return of_math(c, (MathFn)i->imm, i->a[0], i->a[1], r);
}

static Ref of_intrin(Chain *c, Ref r, const Ins *i) {
  for (size_t k = 0; k < sizeof SAME / sizeof *SAME; k++) {
    if ((i->imm & 0xffff) == (int64_t)SAME[k].intrin)
      return of_math(c, SAME[k].f, i->a[0], 0, r);
  }
  return of_other(c, r, i);
}

static Ref (*const rules[OP_COUNT])(Chain *c, Ref r, const Ins *i) = {
  [OP_ADD] = of_add, [OP_SUB] = of_sub, [OP_MUL] = of_mul, [OP_FMA] = of_fma,
  [OP_DIV] = of_div, [OP_NEG] = of_neg, [OP_ABS] = of_abs,
  [OP_MIN] = of_least, [OP_MAX] = of_least, [OP_SEL] = of_sel,
  [OP_CVT] = of_cvt, [OP_MATH] = of_function, [OP_INTRIN] = of_intrin};

static Ref derive(Chain *c, Ref r) {
  if (r == c->x) return number(c, ir_type(c->fn, r), 1);
  // A value that was computed before x does not depend on x.
  if (r < c->x || r >= c->end || !dtype_is_float(ir_type(c->fn, r))) return 0;
  if (c->is_known[r - c->x]) return c->known[r - c->x];
  if (c->failed) return 0;
  if (++c->depth > IR_LONGEST_CHAIN) return fail(c, NULL);
  // a copy, because appended instructions may move Fn.ins
  Ins i = *ir_get(c->fn, r);
  Ref d = (rules[i.op] ? rules[i.op] : of_other)(c, r, &i);
  c->depth--;
  c->known[r - c->x] = d;
  c->is_known[r - c->x] = 1;
  return d;
}

Ref ir_derivative(Ctx *cx, Fn *fn, Ref y, Ref x, const char **op) {
  *op = NULL;
  Chain c = {.cx = cx, .fn = fn, .x = x, .end = (uint32_t)fn->ins.n};
  size_t n = c.end > x ? c.end - x : 0;
  c.known = arena_zero(cx, &cx->scratch, (n + 1) * sizeof *c.known);
  c.is_known = arena_zero(cx, &cx->scratch, n + 1);
  Ref d = derive(&c, y);
  *op = c.op;
  if (c.failed) return 0;
  return d ? d : number(&c, ir_type(fn, y), 0);
}

// ---- loads ----

typedef struct Loads {
  const Fn *fn;
  Ref mem, *out;
  uint32_t n, most;
  uint8_t *seen;  // whether each Ref was visited
} Loads;

static void visit(Loads *l, Ref r, int depth) {
  if (!r || l->seen[r] || depth > IR_LONGEST_CHAIN) return;
  l->seen[r] = 1;
  const Ins *i = ir_get(l->fn, r);
  if (i->op == OP_LD) {
    if (i->a[0] == l->mem && l->n < l->most) l->out[l->n++] = r;
    return;
  }
  Operand o;
  for (Operands w = operands_of(l->fn, i); operands_next(&w, &o);)
    if (o.kind == OPERAND_VALUE) visit(l, o.ref, depth + 1);
}

uint32_t ir_loads(Ctx *cx, Fn *fn, Ref y, Ref mem, Ref *out, uint32_t most) {
  Loads l = {.fn = fn, .mem = mem, .out = out, .most = most};
  l.seen = arena_zero(cx, &cx->scratch, fn->ins.n);
  visit(&l, y, 0);
  return l.n;
}
// SPDX-License-Identifier: MIT
