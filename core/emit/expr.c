// Writes an instruction as a C expression, with the parentheses that C requires
// or readability suggests.
#include "emit/expr.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/target.h"

// ---- constants ----

static Prec const_f32(Emit *e, double v) {
  char s[40];
  if (isnan(v) || isinf(v)) {
    text_puts(e, isnan(v) ? "__int_as_float(0x7fffffff)"
                  : v < 0  ? "__int_as_float(0xff800000)"
                           : "__int_as_float(0x7f800000)");
    return PR_POST;
  }
  snprintf(s, sizeof s, "%.9g", v);
  text_printf(e, "%s%sf", s, strpbrk(s, ".e") ? "" : ".0");
  return s[0] == '-' ? PR_UNARY : PR_POST;
}

static Prec const_f64(Emit *e, double v) {
  char s[40];
  if (isnan(v) || isinf(v)) {
    text_printf(e, "__longlong_as_double(0x%sll)",
                isnan(v) ? "7fffffffffffffff"
                : v < 0  ? "fff0000000000000"
                          : "7ff0000000000000");
    return PR_POST;
  }
  snprintf(s, sizeof s, "%.17g", v);
  text_printf(e, "%s%s", s, strpbrk(s, ".e") ? "" : ".0");
  return s[0] == '-' ? PR_UNARY : PR_POST;
}

static Prec const_int(Emit *e, DType t, int64_t v) {
  if (t == DT_I32 && v == INT32_MIN) {
    text_puts(e, "(-2147483647 - 1)");
    return PR_POST;
  }
  if (t == DT_I64 && v == INT64_MIN) {
    text_puts(e, "(-9223372036854775807ll - 1)");
    return PR_POST;
  }
  if (t == DT_U32)
    text_printf(e, v >> 16 ? "0x%xu" : "%uu", (unsigned)v);
  else if (t == DT_U64) text_printf(e, "%" PRIu64 "ull", (uint64_t)v);
  else if (t == DT_I4) text_printf(e, "%d", (int)(v &= 15));
  else text_printf(e, "%" PRId64 "%s", v, t == DT_I64 ? "ll" : "");
  return v < 0 && dtype_class(t) == 'I' ? PR_UNARY : PR_POST;
}

static Prec emit_const(Emit *e, const Ins *i) {
  DType t = (DType)i->type;
  uint64_t u = (uint64_t)i->imm;
  switch ((int)t) {
    case DT_BOOL: text_puts(e, u ? "true" : "false"); return PR_POST;
    case DT_F32: return const_f32(e, dtype_to_double(t, u));
    case DT_F64: return const_f64(e, dtype_to_double(t, u));
    case DT_TF32: text_printf(e, "0x%08xu", (unsigned)u); return PR_POST;
    case DT_F16: case DT_BF16: case DT_E4M3: case DT_E5M2: case DT_E2M1:
    case DT_E2M3: case DT_E3M2: case DT_UE8M0:
      text_printf(e, "(%s)0x%x", dtype_cuda(t), (unsigned)u);
      return PR_UNARY;
    case DT_U128:
      text_printf(e, "make_uint4(%uu, %uu, 0u, 0u)", (unsigned)u,
                  (unsigned)(u >> 32));
      return PR_POST;
    case DT_C64:
      text_puts(e, "make_double2(");
      const_f64(e, dtype_to_double(DT_F64, u));
      text_puts(e, ", 0.0)");
      return PR_POST;
    default: return const_int(e, t, i->imm);
  }
}

// ---- small helpers for operators ----

static bool small_int(DType t) { return dtype_is_int(t) && dtype_bits(t) < 32; }
bool expr_small_float(DType t) {
  return dtype_is_float(t) && t != DT_F32 && t != DT_F64 && t != DT_C64;
}

void expr_f32(Emit *e, Ref r, Prec min) {
  const Ins *i = ir_get(e->fn, r);
  DType t = (DType)i->type;
  if (!expr_small_float(t)) {
    expr_val(e, r, min);
  } else if (i->op == OP_CONST) {
    size_t at = e->out->text.n;
    if (const_f32(e, dtype_to_double(t, (uint64_t)i->imm)) < min)
      text_parens(e, at);
  } else {
    text_printf(e, "%s(", convert_to_f32(e, i, t));
    expr_val(e, r, PR_ANY);
    text_puts(e, ")");
  }
}

static Prec call(Emit *e, const char *f, const Ins *i, int n) {
  text_printf(e, "%s(", f);
  for (int k = 0; k < n; k++) {
    if (k) text_puts(e, ", ");
    expr_val(e, i->a[k], PR_ANY);
  }
  text_puts(e, ")");
  return PR_POST;
}

static Prec prefixed(Emit *e, const char *op, Ref r) {
  text_puts(e, op);
  size_t at = e->out->text.n;
  expr_val(e, r, PR_UNARY);
  // Write -(-x), because --x is a decrement.
  if (e->out->text.p[at] == op[0]) text_parens(e, at);
  return PR_UNARY;
}

// ---- sums ----

// A sum of integers: constant k plus n terms. minus[i] says that term[i] is
// subtracted.
enum { LIN_MAX = 24, MOST_BEYOND = 1 << 26 };
typedef struct Lin {
  Ref term[LIN_MAX];
  bool minus[LIN_MAX];
  int n;
  int64_t k;
} Lin;

static void lin_add(Emit *e, Lin *l, Ref r, DType t, bool minus) {
  const Ins *i = ir_get(e->fn, r);
  int64_t v;
  if (ir_const(e->fn, r, &v)) {
    uint64_t k = minus ? 0 - (uint64_t)v : (uint64_t)v;
    l->k = (int64_t)((uint64_t)l->k + k);
    return;
  }
  bool sum = (i->op == OP_ADD || i->op == OP_SUB) && i->type == t &&
             e->use[r].how == HOW_INLINE && l->n < LIN_MAX - 2;
  if (sum) {
    lin_add(e, l, i->a[0], t, minus);
    lin_add(e, l, i->a[1], t, minus != (i->op == OP_SUB));
    return;
  }
  l->term[l->n] = r;
  l->minus[l->n++] = minus;
}

// Keeps the sum from starting with a minus: if the first term is subtracted,
// exchanges it with a term that is added, if there is one.
static void lin_order(Lin *l) {
  for (int k = 1; k < l->n && l->minus[0]; k++) {
    if (l->minus[k]) continue;
    Ref x = l->term[k];
    l->term[k] = l->term[0];
    l->minus[k] = true;
    l->term[0] = x;
    l->minus[0] = false;
  }
}

static Lin lin_of_sum(Emit *e, const Ins *i) {
  DType t = (DType)i->type;
  Lin l = {.n = 0};
  lin_add(e, &l, i->a[0], t, false);
  lin_add(e, &l, i->a[1], t, i->op == OP_SUB);
  if (t == DT_I32) l.k = (int32_t)l.k;
  if (t == DT_U32) l.k = (uint32_t)l.k;
  lin_order(&l);
  return l;
}

static Lin lin_of(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  bool is_sum = i->op == OP_ADD || i->op == OP_SUB;
  if (is_sum && e->use[r].how == HOW_INLINE) return lin_of_sum(e, i);
  Lin l = {.n = 0};
  lin_add(e, &l, r, (DType)i->type, false);
  return l;
}

// Writes the terms of a sum without its constant.
static Prec lin_terms(Emit *e, const Lin *l) {
  if (l->n == 1 && !l->minus[0]) return expr_val(e, l->term[0], PR_ANY);
  if (l->minus[0]) prefixed(e, "-", l->term[0]);
  else expr_val(e, l->term[0], PR_MUL);
  for (int k = 1; k < l->n; k++) {
    text_puts(e, l->minus[k] ? " - " : " + ");
    expr_val(e, l->term[k], PR_MUL);
  }
  return l->n == 1 ? PR_UNARY : PR_ADD;
}

static Prec lin_put(Emit *e, const Lin *l, DType t) {
  if (l->n == 0) return const_int(e, t, l->k);
  if (l->minus[0] && l->k > 0) {  // Write 2 - x instead of -x + 2.
    const_int(e, t, l->k);
    for (int k = 0; k < l->n; k++) {
      text_puts(e, " - ");
      expr_val(e, l->term[k], PR_MUL);
    }
    return PR_ADD;
  }
  size_t at = e->out->text.n;
  Prec p = lin_terms(e, l);
  if (l->k == 0) return p;
  if (p < PR_ADD) text_parens(e, at);
  bool minus = l->k < 0 && l->k != INT64_MIN && dtype_class(t) == 'I';
  text_puts(e, minus ? " - " : " + ");
  const_int(e, t, minus ? -l->k : l->k);
  return PR_ADD;
}

static Prec sum(Emit *e, const Ins *i) {
  Lin l = lin_of_sum(e, i);
  return lin_put(e, &l, (DType)i->type);
}

// ---- operators ----

// Writes an infix operator. Small floats are computed in f32.
static Prec infix(Emit *e, const Ins *i, const char *op, Prec p, Prec left,
                  Prec right) {
  expr_f32(e, i->a[0], left);
  text_printf(e, " %s ", op);
  expr_f32(e, i->a[1], right);
  return p;
}

// Writes a bit operator. Operands get parentheses, because readers rarely know
// the precedence of C's bit operators. A chain of the same operator needs none.
static Prec bitwise(Emit *e, const Ins *i, const char *op, Prec p) {
  const Ins *a = ir_get(e->fn, i->a[0]);
  bool chain = a->op == i->op && a->type == i->type;
  return infix(e, i, op, p, chain ? p : PR_UNARY, PR_UNARY);
}

static Prec logic(Emit *e, const Ins *i) {
  bool chain = ir_get(e->fn, i->a[0])->op == i->op;
  if (i->op == OP_AND) return infix(e, i, "&&", PR_ANDAND, PR_ANDAND, PR_OR);
  if (i->op == OP_OR)
    return infix(e, i, "||", PR_OROR, chain ? PR_OROR : PR_OR, PR_OR);
  return infix(e, i, "!=", PR_EQ, PR_REL, PR_REL);
}

static int log2_exact(int64_t v) {
  if (v <= 0 || (v & (v - 1))) return -1;
  int n = 0;
  while (v >>= 1) n++;
  return n;
}

// Writes a division or remainder that rounds down. A divisor that is a power of
// two becomes a shift or a mask, which is also correct for negative numbers. If
// no operand can be negative, writes C's operator.
static Prec divide(Emit *e, const Ins *i) {
  DType t = (DType)i->type;
  int64_t v;
  int k = ir_const(e->fn, i->a[1], &v) ? log2_exact(v) : -1;
  bool mod = i->op == OP_MOD;
  if (k >= 0) {
    expr_val(e, i->a[0], PR_UNARY);
    text_puts(e, mod ? " & " : " >> ");
    const_int(e, mod ? t : DT_I32, mod ? v - 1 : k);
    return mod ? PR_AND : PR_SHIFT;
  }
  bool plain = dtype_class(t) == 'U' || (ir_fact(e->fn, i->a[0]).lo >= 0 &&
                                         ir_fact(e->fn, i->a[1]).lo >= 0);
  if (plain) return infix(e, i, mod ? "%" : "/", PR_MUL, PR_MUL, PR_UNARY);
  bool wide = dtype_bits(t) > 32;
  Helper h = mod ? (wide ? H_FLOOR_MOD_I64 : H_FLOOR_MOD_I32)
                 : (wide ? H_FLOOR_DIV_I64 : H_FLOOR_DIV_I32);
  return call(e, helper_use(e, h), i, 2);
}

static Prec int_abs(Emit *e, const Ins *i) {
  if (dtype_class((DType)i->type) == 'U') {
    expr_val(e, i->a[0], PR_POST);
    return PR_POST;
  }
  return call(e, dtype_bits((DType)i->type) > 32 ? "llabs" : "abs", i, 1);
}

static Prec prefix(Emit *e, const Ins *i, const char *op) {
  return prefixed(e, op, i->a[0]);
}

// Writes a shift by any amount. A shift by the width or more is undefined in C,
// but not in PTX. Therefore calls a helper, unless the amount is known to be
// smaller.
static Prec shift(Emit *e, const Ins *i) {
  DType t = (DType)i->type;
  bool left = i->op == OP_SHL, wide = dtype_bits(t) > 32;
  Fact f = ir_fact(e->fn, i->a[1]);
  if (f.lo >= 0 && f.hi < (wide ? 64 : 32))
    return infix(e, i, left ? "<<" : ">>", PR_SHIFT, PR_UNARY, PR_UNARY);
  bool sign = dtype_class(t) == 'I';
  Helper h = left ? (wide ? H_SHL_B64 : H_SHL_B32)
             : wide ? (sign ? H_SHR_S64 : H_SHR_U64)
                    : sign ? H_SHR_S32 : H_SHR_U32;
  if (left && sign) text_puts(e, wide ? "(long long)" : "(int)");
  call(e, helper_use(e, h), i, 2);
  return left && sign ? PR_UNARY : PR_POST;
}

static Prec int_op(Emit *e, const Ins *i) {
  switch ((Op)i->op) {
    case OP_ADD: case OP_SUB: return sum(e, i);
    case OP_MUL: return infix(e, i, "*", PR_MUL, PR_MUL, PR_UNARY);
    case OP_DIV: case OP_MOD: return divide(e, i);
    case OP_MIN: return call(e, "min", i, 2);
    case OP_MAX: return call(e, "max", i, 2);
    case OP_NEG: return prefix(e, i, "-");
    case OP_ABS: return int_abs(e, i);
    case OP_AND: return bitwise(e, i, "&", PR_AND);
    case OP_OR: return bitwise(e, i, "|", PR_OR);
    case OP_XOR: return bitwise(e, i, "^", PR_XOR);
    case OP_SHL: case OP_SHR: return shift(e, i);
    case OP_NOT: return prefix(e, i, "~");
    case OP_FMA: case OP_LT: case OP_LE: case OP_EQ: case OP_NE:
    case OP_COUNT:
#define OP(id, ...) case OP_##id:
#define SCALAR(...)
#include "ir/ops.h"
      break;
  }
  text_no_way(e, i, op_name((Op)i->op));
}

// Writes an operation on integers of 8 or 16 bits, with a cast of the result.
// (C promotes char and short to int, but NVRTC's min() and max() need operands
// of one type.)
static Prec small_int_op(Emit *e, const Ins *i) {
  text_printf(e, "(%s)", dtype_cuda((DType)i->type));
  size_t at = e->out->text.n;
  if (int_op(e, i) < PR_UNARY) text_parens(e, at);
  return PR_UNARY;
}

void expr_at_run_time(Emit *e, Ref r) {
  text_printf(e, "%s(", helper_use(e, H_AT_RUN_TIME));
  expr_f32(e, r, PR_ANY);
  text_puts(e, ")");
}

// Reports whether constant folding by the compiler may give a result of i that
// differs from the GPU's.
static bool folds(const Ins *i) {
  if (i->op != OP_MATH || i->type == DT_F64) return false;
  switch ((int)i->imm) {
    case MF_SQRT: case MF_RCP: case MF_FLOOR: case MF_CEIL: case MF_TRUNC:
    case MF_ROUND: case MF_RINT: case MF_COPYSIGN: case MF_FMOD:
    case MF_TANHAPPROX:
      return false;
    default: return true;
  }
}

static Prec float_call(Emit *e, const Ins *i, const char *f, int n) {
  bool hide = folds(i) && known_is(e, i, n);
  // The compiler also folds the part of a power that depends only on the base.
  bool base = folds(i) && i->imm == MF_POW && known_is(e, i, 1);
  text_printf(e, "%s(", f);
  for (int k = 0; k < n; k++) {
    if (k) text_puts(e, ", ");
    if (hide || (base && k == 0)) expr_at_run_time(e, i->a[k]);
    else expr_f32(e, i->a[k], PR_ANY);
  }
  text_puts(e, ")");
  return PR_POST;
}

// Returns the helper of a function that the hardware approximates, or H_COUNT
// for other functions.
static Helper approximation(MathFn f) {
  switch ((int)f) {
    case MF_EX2APPROX: return H_EX2_APPROX;
    case MF_TANHAPPROX: return H_TANH_APPROX;
    case MF_RCPAPPROX: return H_RCP_APPROX;
    case MF_SINAPPROX: return H_SIN_APPROX;
    case MF_COSAPPROX: return H_COS_APPROX;
    case MF_LG2APPROX: return H_LG2_APPROX;
    case MF_SQRTAPPROX: return H_SQRT_APPROX;
    case MF_RSQRTAPPROX: return H_RSQRT_APPROX;
    case MF_DIVAPPROX: return H_DIV_FULL;
    default: return H_COUNT;
  }
}

static Prec math_call(Emit *e, const Ins *i, bool f64) {
  MathFn f = (MathFn)i->imm;
  Helper h = approximation(f);
  char name[32];
  if (f == MF_RCP) {
    text_puts(e, f64 ? "1.0 / " : "1.0f / ");
    expr_f32(e, i->a[0], PR_UNARY);
    return PR_MUL;
  }
  if (h == H_COUNT) {
    snprintf(name, sizeof name, "%s%s", math_name(f), f64 ? "" : "f");
    return float_call(e, i, name, math_arity(f));
  }
  return float_call(e, i, helper_use(e, h), math_arity(f));
}

// Writes min or max. If the compiler might fold it, writes the PTX instruction,
// because folding may confuse -0 and +0.
static Prec extreme(Emit *e, const Ins *i, bool f64) {
  bool max = i->op == OP_MAX, known = known_is(e, i, 2);
  const char *f = f64 ? (max ? "fmax" : "fmin") : max ? "fmaxf" : "fminf";
  Helper h = f64 ? (max ? H_MAX_F64 : H_MIN_F64) : max ? H_MAX_F32 : H_MIN_F32;
  return float_call(e, i, known ? helper_use(e, h) : f, 2);
}

// Writes an operation whose operands and result are f32 or f64.
static Prec float_op(Emit *e, const Ins *i) {
  bool f64 = i->type == DT_F64;
  if (i->op == OP_MATH) return math_call(e, i, f64);
  switch ((Op)i->op) {
    case OP_ADD: return infix(e, i, "+", PR_ADD, PR_ADD, PR_MUL);
    case OP_SUB: return infix(e, i, "-", PR_ADD, PR_ADD, PR_MUL);
    case OP_MUL: return infix(e, i, "*", PR_MUL, PR_MUL, PR_UNARY);
    case OP_DIV: return infix(e, i, "/", PR_MUL, PR_MUL, PR_UNARY);
    case OP_MIN: case OP_MAX: return extreme(e, i, f64);
    case OP_NEG: return prefix(e, i, "-");
    case OP_ABS: return float_call(e, i, f64 ? "fabs" : "fabsf", 1);
    case OP_FMA: return float_call(e, i, f64 ? "fma" : "fmaf", 3);
    case OP_MOD:
      return float_call(
        e, i, helper_use(e, f64 ? H_LUA_MOD_F64 : H_LUA_MOD_F32), 2);
    case OP_AND: case OP_OR: case OP_XOR: case OP_NOT: case OP_SHL:
    case OP_SHR: case OP_LT: case OP_LE: case OP_EQ: case OP_NE:
    case OP_COUNT:
#define OP(id, ...) case OP_##id:
#define SCALAR(...)
#include "ir/ops.h"
      break;
  }
  text_no_way(e, i, op_name((Op)i->op));
}

// Writes an operation on small floats. NEG and ABS change the sign bit in
// place. Other operations compute in f32 and round once.
static Prec small_float_op(Emit *e, const Ins *i) {
  DType t = (DType)i->type;
  unsigned sign = 1u << (dtype_bits(t) - 1);
  if (i->op == OP_NEG || i->op == OP_ABS) {
    text_printf(e, "(%s)(", dtype_cuda(t));
    expr_val(e, i->a[0], PR_UNARY);
    if (i->op == OP_NEG) text_printf(e, " ^ 0x%xu)", sign);
    else text_printf(e, " & 0x%xu)", sign - 1);
    return PR_UNARY;
  }
  if (i->op == OP_FMA && (t == DT_F16 || t == DT_BF16))
    return call(e, helper_use(e, t == DT_F16 ? H_FMA_F16 : H_FMA_BF16), i, 3);
  text_printf(e, "%s(", convert_from_f32(e, i, t));
  float_op(e, i);
  text_puts(e, ")");
  return PR_POST;
}

static Prec arith(Emit *e, const Ins *i) {
  DType t = (DType)i->type;
  if (t == DT_BOOL) {
    if (op_class((Op)i->op) == CLASS_LOGIC) return logic(e, i);
    text_no_way(e, i, op_name((Op)i->op));
  }
  if (t == DT_C64 || t == DT_U128) text_no_way(e, i, op_name((Op)i->op));
  if (small_int(t)) return small_int_op(e, i);
  if (expr_small_float(t)) return small_float_op(e, i);
  return dtype_is_float(t) ? float_op(e, i) : int_op(e, i);
}

static Prec compare(Emit *e, const Ins *i, bool negate) {
  static const char *const text[OP_COUNT][2] = {
    [OP_LT] = {"<", ">="}, [OP_LE] = {"<=", ">"}, [OP_EQ] = {"==", "!="},
    [OP_NE] = {"!=", "=="}};
  static const char *const turned[OP_COUNT][2] = {
    [OP_LT] = {">", "<="}, [OP_LE] = {">=", "<"}, [OP_EQ] = {"==", "!="},
    [OP_NE] = {"!=", "=="}};
  Prec p = i->op == OP_EQ || i->op == OP_NE ? PR_EQ : PR_REL;
  Ins j = *i;
  // Write v > 0 instead of 0 < v.
  bool turn = ir_get(e->fn, i->a[0])->op == OP_CONST;
  if (turn) j.a[0] = i->a[1], j.a[1] = i->a[0];
  return infix(e, &j, (turn ? turned : text)[i->op][negate], p, PR_SHIFT,
               PR_SHIFT);
}

// Writes a logical or bitwise NOT. !(a < b) becomes a >= b unless an operand
// may be a NaN.
static Prec negation(Emit *e, const Ins *i) {
  if (i->type != DT_BOOL) return arith(e, i);
  const Ins *a = ir_get(e->fn, i->a[0]);
  bool cmp = op_class((Op)a->op) == CLASS_COMPARE &&
             e->use[i->a[0]].how == HOW_INLINE &&
             (a->op == OP_EQ || a->op == OP_NE ||
              !dtype_is_float(ir_type(e->fn, a->a[0])));
  return cmp ? compare(e, a, true) : prefix(e, i, "!");
}

// ---- memory ----

void expr_word(Emit *e, Ref mem, int64_t bit) {
  const Ins *i = ir_get(e->fn, mem);
  const Regs *g = &e->regs[i->imm];
  text_printf(e, g->scalars ? "%s_%" PRId64 : "%s[%" PRId64 "]",
              e->use[mem].name, bit / g->wbits);
}

void expr_reg(Emit *e, Ref mem, int64_t off, DType t) {
  const Ins *i = ir_get(e->fn, mem);
  const Regs *g = &e->regs[i->imm];
  int64_t bits = uses_bits((DType)i->type), bit = off * bits;
  if (bits > g->wbits) {
    text_printf(e, "*(%s *)&", dtype_cuda(t));
    expr_word(e, mem, bit);
    return;
  }
  if (bits == g->wbits) {
    bool f = g->type == DT_F32 || g->type == DT_F64;
    bool tf = t == DT_F32 || t == DT_F64;
    if (f != tf) text_printf(e, "%s(", convert_bits(g->type, t));
    else if (dtype_class(g->type) != dtype_class(t) && t != DT_TF32)
      text_printf(e, "(%s)", dtype_cuda(t));
    expr_word(e, mem, bit);
    if (f != tf) text_puts(e, ")");
    return;
  }
  int64_t shift = bit % g->wbits;
  text_printf(e, "(%s)", dtype_cuda(t));
  bool paren = shift || bits < 8;
  if (paren) text_puts(e, "(");
  expr_word(e, mem, bit);
  if (shift) text_printf(e, " >> %" PRId64, shift);
  if (bits < 8) text_printf(e, " & 0x%xu", (1u << bits) - 1);
  if (paren) text_puts(e, ")");
}

void expr_as_word(Emit *e, Ref r, DType t) {
  DType s = ir_type(e->fn, r);
  bool f = (t == DT_F32 || t == DT_F64) != (s == DT_F32 || s == DT_F64);
  if (f) text_printf(e, "%s(", convert_bits(s, t));
  expr_val(e, r, PR_ANY);
  if (f) text_puts(e, ")");
}

void expr_reg_open(Emit *e, Ref mem, int64_t off, DType t, bool fresh) {
  const Ins *i = ir_get(e->fn, mem);
  const Regs *g = &e->regs[i->imm];
  int bits = uses_bits((DType)i->type);
  int64_t bit = off * bits;
  if (bits > g->wbits) {
    expr_reg(e, mem, off, t);
    text_puts(e, " = ");
    return;
  }
  expr_word(e, mem, bit);
  text_puts(e, " = ");
  if (bits == g->wbits) {
    bool f = g->type == DT_F32 || g->type == DT_F64;
    bool tf = t == DT_F32 || t == DT_F64;
    if (f != tf) text_printf(e, "%s(", convert_bits(t, g->type));
    return;
  }
  unsigned mask = ((1u << bits) - 1) << (bit % 32);
  if (!fresh) {
    text_puts(e, "(");
    expr_word(e, mem, bit);
    text_printf(e, " & 0x%08xu) | ", ~mask);
  }
  text_puts(e, "(unsigned)");
  if (dtype_class(t) == 'I')
    text_printf(e, "(unsigned %s)", bits == 16 ? "short" : "char");
}

void expr_reg_close(Emit *e, Ref mem, int64_t off, DType t) {
  const Ins *i = ir_get(e->fn, mem);
  const Regs *g = &e->regs[i->imm];
  int bits = uses_bits((DType)i->type);
  int64_t shift = off * bits % g->wbits;
  if (bits == g->wbits) {
    bool f = g->type == DT_F32 || g->type == DT_F64;
    bool tf = t == DT_F32 || t == DT_F64;
    text_puts(e, f != tf ? ")" : "");
  } else if (bits < g->wbits && shift) {
    text_printf(e, " << %" PRId64, shift);
  }
}

void expr_regs(Emit *e, bool refs, const Operand *o, const char *type) {
  const Ins *m = ir_get(e->fn, o->ref);
  const Regs *g = &e->regs[m->imm];
  bool same = strcmp(g->ctype, type) == 0;
  int64_t bits = uses_bits((DType)m->type);
  for (int k = 0; k < (refs ? o->n : 1); k++) {
    text_puts(e, k ? ", " : "");
    if (!same) text_printf(e, refs ? "(%s &)" : "(%s *)", type);
    if (!refs) text_puts(e, "&");
    expr_word(e, o->ref, o->reg[k] * bits);
  }
}

void expr_element(Emit *e, Ref mem, Ref off) {
  text_printf(e, "%s[", e->use[mem].name);
  expr_val(e, off, PR_ANY);
  text_puts(e, "]");
}

// Returns the constant part, in bytes, of an offset that counts elements of
// `bits` bits. If the constant is not a whole number of bytes, returns 0.
// put_terms then writes the constant.
static int64_t beyond(const Lin *l, int bits) {
  return l->k * bits % 8 == 0 || !l->n ? l->k * bits / 8 : 0;
}

// Writes the rest of an offset, without the constant that beyond() returns, in
// bytes: ` + (3 * x >> 1)`. `off` counts elements narrower than a byte. A shift
// rounds down, so the sum of the rest and the constant is correct even if one
// of the two is negative.
static void put_terms(Emit *e, Ref off, const Lin *l, int bits) {
  if (!l->n) return;
  text_puts(e, " + (");
  size_t at = e->out->text.n;
  if (l->k * bits % 8) expr_val(e, off, PR_MUL);
  else if (lin_terms(e, l) < PR_MUL) text_parens(e, at);
  if (bits == 6) text_puts(e, " * 6 >> 3)");
  else text_printf(e, " >> %d)", __builtin_ctz(8u / (unsigned)bits));
}

static int mem_bits(const Emit *e, Ref mem) {
  return dtype_bits((DType)ir_get(e->fn, mem)->type);
}

// Writes a pointer to the element of mem at offset `off`, minus the constant
// part of the offset.
static void put_base(Emit *e, Ref mem, Ref off, const Lin *l) {
  int bits = mem_bits(e, mem);
  text_puts(e, e->use[mem].name);
  if (bits < 8) {
    put_terms(e, off, l, bits);
  } else if (l->n) {
    text_puts(e, " + ");
    size_t at = e->out->text.n;
    if (lin_terms(e, l) < PR_MUL) text_parens(e, at);
  }
}

void expr_pointer(Emit *e, Ref mem, Ref off, Prec min) {
  size_t start = e->out->text.n;
  int bits = mem_bits(e, mem);
  Lin l = lin_of(e, off);
  int64_t k = bits < 8 ? beyond(&l, bits) : l.k;
  put_base(e, mem, off, &l);
  if (k) text_printf(e, " %c %" PRId64, k < 0 ? '-' : '+', k < 0 ? -k : k);
  if ((l.n || k) && PR_ADD < min) text_parens(e, start);
}

int64_t expr_beyond(Emit *e, Ref mem, Ref off) {
  Lin l = lin_of(e, off);
  bool far = l.k <= -MOST_BEYOND || l.k >= MOST_BEYOND;
  return far ? 0 : beyond(&l, mem_bits(e, mem));
}

void expr_base(Emit *e, Ref mem, Ref off) {
  if (!expr_beyond(e, mem, off)) {
    expr_pointer(e, mem, off, PR_ANY);
    return;
  }
  Lin l = lin_of(e, off);
  put_base(e, mem, off, &l);
}

void expr_address(Emit *e, Ref mem, Ref off) {
  int bits = mem_bits(e, mem);
  text_printf(e, "%s_addr", e->use[mem].name);
  Lin l = lin_of(e, off);
  if (bits < 8) {
    put_terms(e, off, &l, bits);
    return;
  }
  if (!l.n) return;
  text_puts(e, " + ");
  size_t at = e->out->text.n;
  bool wide = ir_type(e->fn, off) == DT_I64;
  Prec p = lin_terms(e, &l);
  if (wide || p < PR_MUL) text_parens(e, at);
  if (wide) {
    buf_puts(e->cx, &e->out->text, "(unsigned)");
    Buf *b = &e->out->text;
    memmove(b->p + at + 10, b->p + at, b->n - 10 - at);
    memcpy(b->p + at, "(unsigned)", 10);
  }
  if (bits >= 16) text_printf(e, " * %du", bits / 8);
}

void expr_place(Emit *e, Ref mem, Ref off) {
  int64_t k = expr_beyond(e, mem, off);
  expr_address(e, mem, off);
  if (k) text_printf(e, " %c %" PRId64 "u", k < 0 ? '-' : '+', k < 0 ? -k : k);
}

// ---- elements below a byte ----

// Writes two arguments, such as `A, x * 6ll`: a pointer to the object, and the
// position of the element in bits.
static void put_bit(Emit *e, Ref mem, Ref off, int bits) {
  text_printf(e, "%s, ", e->use[mem].name);
  size_t at = e->out->text.n;
  if (expr_val(e, off, PR_ANY) < PR_MUL) text_parens(e, at);
  if (bits > 1) text_printf(e, " * %dll", bits);
}

static Prec load_bits(Emit *e, const Ins *i) {
  int bits = dtype_bits((DType)i->type);
  text_printf(e, "%s(", helper_use(e, H_LD_BITS));
  put_bit(e, i->a[0], i->a[1], bits);
  text_printf(e, ", %d)", bits);
  return PR_POST;
}

void expr_store_bits(Emit *e, const Ins *i) {
  int bits = dtype_bits((DType)ir_get(e->fn, i->a[0])->type);
  text_printf(e, "%s(", helper_use(e, H_ST_BITS));
  put_bit(e, i->a[0], i->a[1], bits);
  text_printf(e, ", %d, ", bits);
  expr_val(e, i->a[2], PR_ANY);
  text_puts(e, ")");
}

static Prec load(Emit *e, const Ins *i) {
  const Ins *m = ir_get(e->fn, i->a[0]);
  DType t = (DType)i->type, s = (DType)m->type;
  if (m->op == OP_RMEM) {
    expr_reg(e, i->a[0], uses_int(e, i->a[1]), t);
    return PR_UNARY;
  }
  if (dtype_bits(t) < 8) return load_bits(e, i);
  if (i->flags) return ptx_access(e, i);
  bool f = (t == DT_F32 || t == DT_F64) != (s == DT_F32 || s == DT_F64);
  if (f) text_printf(e, "%s(", convert_bits(s, t));
  else if (t != s) text_printf(e, "(%s)", dtype_cuda(t));
  expr_element(e, i->a[0], i->a[1]);
  if (f) text_puts(e, ")");
  return t != s ? PR_UNARY : PR_POST;
}

// ---- registers at an index that is known only on the device ----

// Writes the arguments of the helper for a PICK or PUT i, which selects one of
// several registers: a pointer to words, and the index `which`. If a word holds
// several elements, also writes the number of bits of an element. If an element
// is wider than a word, the pointer has the element's type.
void expr_choice(Emit *e, const Ins *i, Ref which) {
  const Ins *m = ir_get(e->fn, i->a[0]);
  const Regs *g = &e->regs[m->imm];
  int64_t bits = uses_bits((DType)m->type);
  int64_t bit = uses_int(e, i->a[1]) * bits, word = bit / g->wbits;
  int64_t skip = bits < g->wbits ? bit % g->wbits / bits : 0;
  bool few = i->imm <= PICK_SELECTS;
  if (bits > g->wbits) text_printf(e, "(%s *)", dtype_cuda((DType)m->type));
  if (word) text_printf(e, "&%s[%" PRId64 "]", e->use[i->a[0]].name, word);
  else text_puts(e, e->use[i->a[0]].name);
  int64_t per = bits < g->wbits ? g->wbits / bits : 1;
  if (few)
    text_printf(e, ", %" PRId64, (skip + i->imm + per - 1) / per);
  text_puts(e, ", ");
  expr_val(e, which, skip ? PR_ADD : PR_ANY);
  if (skip) text_printf(e, " + %" PRId64, skip);
  if (bits < g->wbits) text_printf(e, ", %" PRId64, bits);
}

bool expr_chosen(Emit *e, const Ins *i, Ref which) {
  const Ins *m = ir_get(e->fn, i->a[0]);
  if (uses_bits((DType)m->type) != e->regs[m->imm].wbits ||
      !ir_unrolled(e->fn, which))
    return false;
  int64_t first = uses_int(e, i->a[1]);
  text_printf(e, "%s[", e->use[i->a[0]].name);
  expr_val(e, which, first ? PR_ADD : PR_ANY);
  if (first) text_printf(e, " + %" PRId64, first);
  text_puts(e, "]");
  return true;
}

static Prec pick(Emit *e, const Ins *i) {
  static const Helper choice[2][2] = {{H_LOCAL_REGISTER, H_LOCAL_PART},
                                      {H_PICK_REGISTER, H_PICK_PART}};
  DType t = (DType)i->type;
  const Regs *g = &e->regs[ir_get(e->fn, i->a[0])->imm];
  int bits = uses_bits(t);
  bool few = i->imm <= PICK_SELECTS, part = bits < g->wbits;
  DType w = bits > g->wbits ? t : g->type;
  bool f = !part && (w == DT_F32 || w == DT_F64) !=
                      (t == DT_F32 || t == DT_F64);
  if (f) text_printf(e, "%s(", convert_bits(w, t));
  else if (part) text_printf(e, "(%s)", dtype_cuda(t));
  if (expr_chosen(e, i, i->a[2])) {
    if (f) text_puts(e, ")");
    return PR_POST;
  }
  text_printf(e, "%s(", helper_use(e, choice[few][part]));
  expr_choice(e, i, i->a[2]);
  text_puts(e, f ? "))" : ")");
  return part ? PR_UNARY : PR_POST;
}

// ---- instructions without operands, and effects with a value ----

static Prec special(Emit *e, const Ins *i) {
  const int32_t *b = e->fn->block;
  bool flat = b[1] == 1 && b[2] == 1;
  Helper h = i->imm == SR_LANE            ? H_LANE_ID
             : i->imm == SR_SMID          ? H_SM_ID
             : i->imm == SR_WARP && !flat ? H_WARP_ID
                                          : H_COUNT;
  const char *cuda = sreg_row((SReg)i->imm)->cuda;
  if (h != H_COUNT) text_printf(e, "%s()", helper_use(e, h));
  else if (cuda) text_puts(e, cuda);
  else text_printf(e, "%s()", ptx_sreg(e, (SReg)i->imm));
  return i->imm == SR_WARP && flat ? PR_MUL : PR_POST;
}

// Returns the CUDA function for an atomic operation on elements of type t.
static const char *atomic_name(Emit *e, const Ins *i, DType t) {
  bool add = i->imm == AT_ADD;
  bool i32 = t == DT_I32 || t == DT_U32, wide = t == DT_I64 || t == DT_U64;
  if (t == DT_F32 && i->imm == AT_MIN) return helper_use(e, H_ATOMIC_MIN);
  if (t == DT_F32 && i->imm == AT_MAX) return helper_use(e, H_ATOMIC_MAX);
  if (t == DT_F16 && add) return helper_use(e, H_ATOMIC_ADD_F16);
  if (t == DT_BF16 && add && target_has(e->sm, FT_ATOMIC_BF16))
    return helper_use(e, H_ATOMIC_ADD_BF16);
  bool ok = i32 || wide || (add && (t == DT_F32 || t == DT_F64)) ||
            (t == DT_F32 && i->imm == AT_EXCH) ||
            (t == DT_U16 && i->imm == AT_CAS);
  if (!ok) text_no_way(e, i, "this atomic");
  return atomic_row((AtomicKind)i->imm)->cuda;
}

// Writes an atomic operation. Some atomics exist in CUDA only for u64, so an
// i64 is passed as a u64 with the same bits.
static Prec atomic(Emit *e, const Ins *i) {
  if (i->flags) return ptx_access(e, i);
  DType t = ir_type(e->fn, i->a[2]);
  bool as_u64 = t == DT_I64 && i->imm != AT_MIN && i->imm != AT_MAX;
  const char *arg = as_u64 ? "(unsigned long long)" : "";
  if (as_u64) text_puts(e, "(long long)");
  bool view = !as_u64 && t != ir_type(e->fn, i->a[0]);
  text_printf(e, "%s(%s", atomic_name(e, i, t),
              as_u64 ? "(unsigned long long *)(" : "");
  if (view) text_printf(e, "(%s *)(", dtype_cuda(t));
  expr_pointer(e, i->a[0], i->a[1], PR_ADD);
  text_puts(e, as_u64 || view ? "), " : ", ");
  if (i->imm == AT_CAS) {
    text_puts(e, arg);
    expr_val(e, operand_ref(e->fn, i, ROLE_COMPARED),
             as_u64 ? PR_UNARY : PR_ANY);
    text_puts(e, ", ");
  }
  text_puts(e, arg);
  expr_val(e, i->a[2], as_u64 ? PR_UNARY : PR_ANY);
  text_puts(e, ")");
  return as_u64 ? PR_UNARY : PR_POST;
}

// ---- mbarriers ----

// Writes the call for an mbarrier operation or a st.async, with the operands in
// order. Functions for single arrivals have no parameter for the number of
// arrivals.
void expr_mbar(Emit *e, const Ins *i) {
  bool many;
  const char *between = "";
  Operand o;
  text_printf(e, "%s(", mbar_function(e, i, &many));
  for (Operands w = operands_of(e->fn, i); operands_next(&w, &o);) {
    if (!o.ref || (o.role == ROLE_EACH && !many)) continue;
    text_puts(e, between);
    if (o.kind == OPERAND_MEM) expr_place(e, o.ref, o.off);
    else expr_val(e, o.ref, PR_ANY);
    between = ", ";
  }
  text_puts(e, ")");
}

static Prec select(Emit *e, const Ins *i) {
  expr_val(e, i->a[0], PR_OROR);
  text_puts(e, " ? ");
  expr_val(e, i->a[1], PR_OROR);
  text_puts(e, " : ");
  expr_val(e, i->a[2], PR_COND);
  return PR_COND;
}

Prec expr_def(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  switch ((Op)i->op) {
    case OP_CONST: return emit_const(e, i);
    case OP_SREG: return special(e, i);
    case OP_ADDRESS:
      text_puts(e, "(long long)");
      text_puts(e, e->use[i->a[0]].name);
      return PR_UNARY;
    case OP_MAPWORD:
      text_printf(e, "%s.words[%d]", e->use[i->a[0]].name, (int)i->imm);
      return PR_POST;
    case OP_ADD: case OP_SUB: case OP_MUL: case OP_DIV: case OP_MOD:
    case OP_MIN: case OP_MAX: case OP_NEG: case OP_ABS: case OP_FMA:
    case OP_AND: case OP_OR: case OP_XOR: case OP_SHL: case OP_SHR:
    case OP_MATH: return arith(e, i);
    case OP_NOT: return negation(e, i);
    case OP_LT: case OP_LE: case OP_EQ: case OP_NE:
      return compare(e, i, false);
    case OP_SEL: return select(e, i);
    case OP_CVT: return convert_convert(e, i);
    case OP_BITCAST: return convert_bitcast(e, i);
    case OP_INTRIN: case OP_ASK: return ptx_value(e, i);
    case OP_LD: return load(e, i);
    case OP_PICK: return pick(e, i);
    case OP_ATOMIC: return atomic(e, i);
    case OP_MBARTRY: case OP_MBARTOKEN: expr_mbar(e, i); return PR_POST;
    case OP_VGET: text_puts(e, e->use[i->a[0]].name); return PR_POST;
    case OP_ARG: case OP_DESC: case OP_GMEM: case OP_TMAP: case OP_TMAPAT:
    case OP_PTR: case OP_TMEM: case OP_SMEM: case OP_DSMEM: case OP_RMEM:
    case OP_VAR: case OP_FOR:
      text_puts(e, e->use[r].name);
      return PR_POST;
    case OP_COUNT:
#define OP(...)
#define DO(id, ...) case OP_##id:
#define SCALAR(...)
#include "ir/ops.h"
      break;
  }
  ctx_fail(e->cx, ERR_INTERNAL, "instruction %%%u (%s) has no value", r,
           op_name((Op)i->op));
}

Prec expr_val(Emit *e, Ref r, Prec min) {
  const Use *u = &e->use[r];
  if (u->name) {
    text_puts(e, u->name);
    return PR_POST;
  }
  size_t at = e->out->text.n;
  Prec p = expr_def(e, r);
  if (p >= min) return p;
  text_parens(e, at);
  return PR_POST;
}
// SPDX-License-Identifier: MIT
