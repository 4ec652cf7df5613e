// rows.c: what each opcode becomes. A row whose function leaves a modifier
// unread is rejected with that modifier's name: nothing is guessed.
#include <string.h>

#include "atoms/atom.h"
#include "ir/intrin.h"
#include "ir/operands.h"
#include "ptx/inside.h"

// ---- values into registers that are wider ----

// A value of type t into the register of operand a: extended by its sign or by
// zeros where the register is wider.
static void set_wider(PtxOp *o, const PtxArg *a, Ref v, PtxType t) {
  if (a->kind == PTX_A_REG) {
    const PtxBuild *b = o->b;
    PtxType own = b->m->regs.p[b->f->reg + (uint32_t)a->value].type;
    if (own.bits > t.bits && own.kind != PTX_P) {
      v = as(o, t.kind == PTX_S ? signed_of(t.bits) : unsigned_of(t.bits), v);
      v = to(o, t.kind == PTX_S ? signed_of(own.bits) : unsigned_of(own.bits),
             v);
    }
  }
  op_set(o, a, v);
}

// The low bits of operand a, as type t.
static Ref low(PtxOp *o, const PtxArg *a, PtxType t) {
  DType want = op_dtype(t);
  if (a->kind == PTX_A_REG) {
    const PtxBuild *b = o->b;
    PtxType own = b->m->regs.p[b->f->reg + (uint32_t)a->value].type;
    if (own.bits > t.bits && own.kind != PTX_P) {
      Ref v = op_value(o, a, unsigned_of(own.bits));
      return as(o, want, to(o, unsigned_of(t.bits), v));
    }
  }
  return op_value(o, a, want);
}

// ---- mov, cvta ----

static void mov(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  const PtxArg *d = op_arg(o, 0), *s = op_arg(o, 1);
  if (s->kind == PTX_A_VECTOR) {  // packs: the first is the low part
    int each = t.bits / (int)s->parts;
    DType wide = unsigned_of(t.bits), narrow = unsigned_of(each);
    Ref all = number(o, wide, 0);
    for (uint32_t q = 0; q < s->parts; q++) {
      Ref v = to(o, wide, op_value(o, &o->b->m->args.p[s->part + q], narrow));
      v = op2(o, OP_SHL, v, number(o, DT_U32, (int64_t)q * each));
      all = op2(o, OP_OR, all, v);
    }
    op_set(o, d, all);
    return;
  }
  if (d->kind == PTX_A_VECTOR) {
    int each = t.bits / (int)d->parts;
    Ref all = op_value(o, s, unsigned_of(t.bits));
    for (uint32_t q = 0; q < d->parts; q++) {
      Ref v = op2(o, OP_SHR, all, number(o, DT_U32, (int64_t)q * each));
      op_set(o, &o->b->m->args.p[d->part + q], to(o, unsigned_of(each), v));
    }
    return;
  }
  if (op_root(o, d) >= 0) {
    op_set(o, d, op_offset(o, s));
    return;
  }
  op_set(o, d, op_value(o, s, op_dtype(t)));
}

static void cvta(PtxOp *o, int k) {
  (void)k;
  op_has(o, "to");
  if (!op_has(o, "global") && !op_has(o, "param")) {
    ptx_fail(o->b, "'%s' is not modelled: only pointers to global memory are",
             o->i->op);
  }
  const PtxArg *d = op_arg(o, 0);
  op_set(o, d, op_root(o, d) >= 0 ? op_offset(o, op_arg(o, 1))
                                  : op_value(o, op_arg(o, 1), DT_I64));
}

// ---- arithmetic ----

static bool rounding(PtxOp *o) {
  op_has(o, "rn");
  return true;
}

static Ref trunc_div(PtxOp *o, DType t, Ref a, Ref b) {
  Ref q = op2(o, OP_DIV, a, b);
  if (dtype_class(t) != 'I') return q;
  Ref r = op2(o, OP_SUB, a, op2(o, OP_MUL, q, b));
  Ref zero = number(o, t, 0);
  Ref part = op2(o, OP_NE, r, zero);
  Ref apart = op2(o, OP_LT, op2(o, OP_XOR, a, b), zero);
  Ref fix = op3(o, OP_SEL, op2(o, OP_AND, part, apart), number(o, t, 1), zero);
  return op2(o, OP_ADD, q, fix);
}

// Signed and unsigned sums and products have the same bits; as unsigned ones
// they wrap.
static DType wrapping(PtxType t) {
  return t.kind == PTX_F ? op_dtype(t) : unsigned_of(t.bits);
}

// Arithmetic on two floats of 16 bits in a register.
static bool packed(PtxOp *o, int k) {
  bool bf = op_has(o, "bf16x2"), half = op_has(o, "f16x2");
  if (!bf && !half) return false;
  op_has(o, "rn");
  static const IntrinId ids[][2] = {{IN_ADDF162, IN_ADDBF2},
    {IN_SUBF162, IN_SUBBF2}, {IN_MULF162, IN_MULBF2}, {IN_FMAF162, IN_FMABF2},
    {IN_MINF162, IN_MINBF2}, {IN_MAXF162, IN_MAXBF2}};
  IntrinId id = ids[k][bf];
  Ref c = intrin_arity(id) > 2 ? op_operand(o, 3, DT_U32) : 0;
  op_result(o, op_intrin(o, id, 0, op_operand(o, 1, DT_U32),
                      op_operand(o, 2, DT_U32), c));
  return true;
}

static void sum(PtxOp *o, int k) {
  if (packed(o, k == OP_ADD ? 0 : 1)) return;
  PtxType t = op_type(o, 0);
  const PtxArg *a = op_arg(o, 1), *b = op_arg(o, 2);
  if (t.kind == PTX_F) rounding(o);
  if (op_root(o, op_arg(o, 0)) >= 0) {
    op_result(o, op2(o, (Op)k, op_offset(o, a), op_offset(o, b)));
    return;
  }
  op_result(o, op2(o, (Op)k, op_value(o, a, wrapping(t)),
                   op_value(o, b, wrapping(t))));
}

// a * b, twice as wide.
static Ref wide_product(PtxOp *o, PtxType t) {
  bool sign = t.kind == PTX_S;
  DType own = op_dtype(t), twice = sign ? signed_of(t.bits * 2)
                                        : unsigned_of(t.bits * 2);
  Ref a = to(o, twice, op_operand(o, 1, own));
  Ref b = to(o, twice, op_operand(o, 2, own));
  DType u = unsigned_of(t.bits * 2);
  if (ir_type(o->b->fn, a) == DT_I64) return op2(o, OP_MUL, a, b);
  return op2(o, OP_MUL, as(o, u, a), as(o, u, b));
}

static Ref high_product(PtxOp *o, PtxType t) {
  bool sign = t.kind == PTX_S;
  if (t.bits == 16) {
    Ref p = wide_product(o, t);
    p = op2(o, OP_SHR, as(o, DT_U32, p), number(o, DT_U32, 16));
    return to(o, DT_U16, p);
  }
  DType own = op_dtype(t);
  IntrinId id = t.bits == 32 ? (sign ? IN_MULHI : IN_MULHIU)
                             : (sign ? IN_MULHI64 : IN_MULHIU64);
  return op_intrin(o, id, 0, op_operand(o, 1, own), op_operand(o, 2, own), 0);
}

static void mul(PtxOp *o, int k) {
  (void)k;
  if (packed(o, 2)) return;
  PtxType t = op_type(o, 0);
  if (t.kind == PTX_F) {
    rounding(o);
    op_result(o, op2(o, OP_MUL, op_operand(o, 1, op_dtype(t)),
                     op_operand(o, 2, op_dtype(t))));
  } else if (op_has(o, "wide")) {
    op_result(o, wide_product(o, t));
  } else if (op_has(o, "hi")) {
    op_result(o, high_product(o, t));
  } else {
    op_has(o, "lo");
    op_result(o, op2(o, OP_MUL, op_operand(o, 1, wrapping(t)),
                     op_operand(o, 2, wrapping(t))));
  }
}

static void mad(PtxOp *o, int k) {
  (void)k;
  if (packed(o, 3)) return;
  PtxType t = op_type(o, 0);
  if (t.kind == PTX_F) {
    rounding(o);
    op_result(o, op3(o, OP_FMA, op_operand(o, 1, op_dtype(t)),
                     op_operand(o, 2, op_dtype(t)),
                     op_operand(o, 3, op_dtype(t))));
    return;
  }
  const PtxArg *c = op_arg(o, 3);
  Ref p;
  if (op_has(o, "wide")) {
    p = wide_product(o, t);
  } else if (op_has(o, "hi")) {
    p = high_product(o, t);
  } else {
    op_has(o, "lo");
    p = op2(o, OP_MUL, op_operand(o, 1, wrapping(t)),
            op_operand(o, 2, wrapping(t)));
  }
  if (op_root(o, op_arg(o, 0)) >= 0) {
    op_result(o, op2(o, OP_ADD, as(o, DT_I64, p), op_offset(o, c)));
    return;
  }
  DType w = unsigned_of(dtype_bits(ir_type(o->b->fn, p)));
  op_result(o, op2(o, OP_ADD, as(o, w, p), op_value(o, c, w)));
}

static void divide(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t);
  Ref a = op_operand(o, 1, own), b = op_operand(o, 2, own);
  if (t.kind == PTX_F) {
    if (op_has(o, "full") && t.bits == 32) {
      op_result(o, ir_math(o->b->cx, o->b->fn, MF_DIVAPPROX, a, b));
      return;
    }
    if (!op_has(o, "rn")) ptx_fail(o->b, "'%s' is not modelled", o->i->op);
    op_result(o, op2(o, OP_DIV, a, b));
    return;
  }
  Ref q = trunc_div(o, own, a, b);
  if (k) q = op2(o, OP_SUB, as(o, wrapping(t), a),
                 op2(o, OP_MUL, as(o, wrapping(t), q), as(o, wrapping(t), b)));
  op_result(o, q);
}

static void binary(PtxOp *o, int k) {
  if (packed(o, k == OP_MIN ? 4 : 5)) return;
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t);
  op_result(o, op2(o, (Op)k, op_operand(o, 1, own), op_operand(o, 2, own)));
}

static void unary(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  DType own = k == OP_NEG && t.kind != PTX_F ? wrapping(t) : op_dtype(t);
  op_result(o, op1(o, (Op)k, op_operand(o, 1, own)));
}

// and, or, xor, not; and of pointers that are masked: rejected by op_value
static void logic(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t);
  if (t.kind == PTX_P) {
    Ref a = op_pred(o, op_arg(o, 1));
    op_result(o, op2(o, (Op)k, a, op_pred(o, op_arg(o, 2))));
    return;
  }
  op_result(o, op2(o, (Op)k, op_operand(o, 1, own), op_operand(o, 2, own)));
}

static void shift(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  Ref a = op_operand(o, 1, op_dtype(t));
  op_result(o, op2(o, (Op)k, a, op_operand(o, 2, DT_U32)));
}

// ---- comparisons ----

static Ref compare(PtxOp *o, PtxType t, const PtxArg *x, const PtxArg *y) {
  DType own = op_dtype(t);
  Ref a, b;
  if (op_root(o, x) >= 0 && op_root(o, x) == op_root(o, y)) {
    a = op_offset(o, x);
    b = op_offset(o, y);
  } else {
    bool low_high = op_has(o, "lo") || op_has(o, "ls") || op_has(o, "hi") ||
                    op_has(o, "hs");
    if (low_high) own = unsigned_of(t.bits);
    a = op_value(o, x, own);
    b = op_value(o, y, own);
  }
  bool f = t.kind == PTX_F;
  if (op_has(o, "eq")) return op2(o, OP_EQ, a, b);
  if (op_has(o, "ne")) {
    if (!f) return op2(o, OP_NE, a, b);
    return op2(o, OP_OR, op2(o, OP_LT, a, b), op2(o, OP_LT, b, a));
  }
  if (op_has(o, "lt") || op_has(o, "lo")) return op2(o, OP_LT, a, b);
  if (op_has(o, "le") || op_has(o, "ls")) return op2(o, OP_LE, a, b);
  if (op_has(o, "gt") || op_has(o, "hi")) return op2(o, OP_LT, b, a);
  if (op_has(o, "ge") || op_has(o, "hs")) return op2(o, OP_LE, b, a);
  // true where an operand is NaN
  if (op_has(o, "equ")) {
    Ref other = op2(o, OP_OR, op2(o, OP_LT, a, b), op2(o, OP_LT, b, a));
    return op1(o, OP_NOT, other);
  }
  if (op_has(o, "neu")) return op1(o, OP_NOT, op2(o, OP_EQ, a, b));
  if (op_has(o, "ltu")) return op1(o, OP_NOT, op2(o, OP_LE, b, a));
  if (op_has(o, "leu")) return op1(o, OP_NOT, op2(o, OP_LT, b, a));
  if (op_has(o, "gtu")) return op1(o, OP_NOT, op2(o, OP_LE, a, b));
  if (op_has(o, "geu")) return op1(o, OP_NOT, op2(o, OP_LT, a, b));
  Ref both = op2(o, OP_AND, op2(o, OP_EQ, a, a), op2(o, OP_EQ, b, b));
  if (op_has(o, "num")) return both;
  if (op_has(o, "nan")) return op1(o, OP_NOT, both);
  ptx_fail(o->b, "'%s': no comparison", o->i->op);
}

static Ref combine(PtxOp *o, Ref p) {
  if (o->i->args < 4) return p;
  Ref c = op_pred(o, op_arg(o, 3));
  if (op_has(o, "and")) return op2(o, OP_AND, p, c);
  if (op_has(o, "or")) return op2(o, OP_OR, p, c);
  if (op_has(o, "xor")) return op2(o, OP_XOR, p, c);
  ptx_fail(o->b, "'%s': a third operand without and, or, xor", o->i->op);
}

static void setp(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  Ref p = compare(o, t, op_arg(o, 1), op_arg(o, 2));
  const PtxArg *d = op_arg(o, 0);
  if (d->kind != PTX_A_PAIR) {
    op_set(o, d, combine(o, p));
    return;
  }
  Ref q = combine(o, op1(o, OP_NOT, p));
  op_set(o, &o->b->m->args.p[d->part], combine(o, p));
  op_set(o, &o->b->m->args.p[d->part + 1], q);
}

static void selp(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  const PtxArg *a = op_arg(o, 1), *b = op_arg(o, 2);
  Ref p = op_pred(o, op_arg(o, 3));
  bool pointer = op_root(o, op_arg(o, 0)) >= 0;
  Ref x = pointer ? op_offset(o, a) : op_value(o, a, op_dtype(t));
  Ref y = pointer ? op_offset(o, b) : op_value(o, b, op_dtype(t));
  op_result(o, op3(o, OP_SEL, p, x, y));
}

// ---- conversions ----

static Ref rounded(PtxOp *o, Ref v, bool *integral) {
  MathFn f = MF_COUNT;
  if (op_has(o, "rni")) f = MF_RINT;
  else if (op_has(o, "rzi")) f = MF_TRUNC;
  else if (op_has(o, "rmi")) f = MF_FLOOR;
  else if (op_has(o, "rpi")) f = MF_CEIL;
  *integral = f != MF_COUNT;
  return *integral ? ir_math(o->b->cx, o->b->fn, f, v, 0) : v;
}

// Conversions of two values into one register, and those of bf16.
static bool cvt_packed(PtxOp *o) {
  const char *op = o->i->op;
  if (strcmp(op, "cvt.rn.bf16x2.f32") == 0 ||
      strcmp(op, "cvt.rn.f16x2.f32") == 0) {
    op_has(o, "rn");
    IntrinId id = strstr(op, "bf16") ? IN_PACKBF2 : IN_PACKF162;
    op_result(o, op_intrin(o, id, 0, op_operand(o, 2, DT_F32),
                        op_operand(o, 1, DT_F32), 0));  // a is the high part
    return true;
  }
  if (strcmp(op, "cvt.rn.bf16.f32") == 0) {
    op_has(o, "rn");
    op_result(o, as(o, DT_U16, to(o, DT_BF16, op_operand(o, 1, DT_F32))));
    return true;
  }
  if (strcmp(op, "cvt.f32.bf16") == 0) {
    op_result(o, to(o, DT_F32, as(o, DT_BF16, op_operand(o, 1, DT_U16))));
    return true;
  }
  return false;
}

static void cvt(PtxOp *o, int k) {
  (void)k;
  if (cvt_packed(o)) return;
  if (o->types != 2) ptx_fail(o->b, "'%s' is not modelled", o->i->op);
  PtxType d = op_type(o, 0), s = op_type(o, 1);
  const PtxArg *a = op_arg(o, 1);
  Ref v = low(o, a, s);
  if (s.kind == PTX_F && s.bits == 16) v = as(o, DT_F16, v);
  bool integral = false;
  if (s.kind == PTX_F) {
    v = rounded(o, v, &integral);
    if (!integral) op_has(o, "rn");
    if (d.kind != PTX_F && !integral) {
      ptx_fail(o->b, "'%s': no rounding to an integer", o->i->op);
    }
  } else if (d.kind == PTX_F) {
    op_has(o, "rn");
  }
  DType want = d.kind == PTX_F && d.bits == 16 ? DT_F16 : op_dtype(d);
  if (ir_type(o->b->fn, v) != want) v = to(o, want, v);
  if (want == DT_F16) v = as(o, DT_U16, v);
  set_wider(o, op_arg(o, 0), v, d);
}

// ---- memory ----

// Caches, order and scope of an access.
static uint16_t hints(PtxOp *o) {
  unsigned flags = 0;
  for (int f = 0; f < HINT_COUNT; f++) {
    const HintField *h = hint_field((HintId)f);
    for (unsigned v = 1; v < 8; v++) {
      const char *text = h->value[v].ptx;
      if (text && text[0] == '.' && op_has(o, text + 1)) {
        flags |= v << h->shift;
      }
    }
  }
  op_has(o, "weak");
  op_has(o, "nc");
  return (uint16_t)flags;
}

static void load_param(PtxOp *o) {
  PtxBuild *b = o->b;
  PtxType t = op_type(o, 0);
  const PtxArg *a = op_arg(o, 1), *d = op_arg(o, 0);
  const PtxArg *base = &b->m->args.p[a->part];
  if (a->kind != PTX_A_ADDRESS || base->kind != PTX_A_VAR) {
    ptx_fail(b, "'%s': a parameter's name is expected", o->i->op);
  }
  uint32_t at = b->m->vars.p[base->value].offset + (uint32_t)a->value;
  if (d->kind == PTX_A_REG && b->slot[d->value].root >= 0) {
    op_set(o, d, number(o, DT_I64, 0));
    return;
  }
  uint32_t n = d->kind == PTX_A_VECTOR ? d->parts : 1;
  for (uint32_t q = 0; q < n; q++) {
    const PtxArg *x = d->kind == PTX_A_VECTOR ? &b->m->args.p[d->part + q] : d;
    uint32_t want = at + q * t.bits / 8;
    Ref v = op_param(o, want, t.bits);
    set_wider(o, x, as(o, op_dtype(t), v), t);
  }
}

static int vector(PtxOp *o) {
  return op_has(o, "v2") ? 2 : op_has(o, "v4") ? 4 : op_has(o, "v8") ? 8 : 1;
}

// Registers through which n elements of type t move at once.
static Ref through(PtxOp *o, DType t, int n) {
  Mem m = {.space = SP_RMEM, .type = t, .align = 16, .count = n};
  return ir_mem(o->b->cx, o->b->fn, m);
}

static void load(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  if (op_has(o, "param")) {
    vector(o);
    load_param(o);
    return;
  }
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t);
  const PtxArg *d = op_arg(o, 0);
  int n = vector(o);
  Place p = op_place(o, op_arg(o, 1), op_where(o));
  uint16_t flags = hints(o);
  if (op_has(o, "volatile")) {
    flags |= SEM_RELAXED << hint_field(HINT_SEM)->shift |
             SCOPE_SYS << hint_field(HINT_SCOPE)->shift;
  }
  if (n == 1) {
    Ref v = ir_emit(b->cx, b->fn, (Ins){.op = OP_LD, .type = (uint8_t)own,
                                        .a = {p.mem, p.off}, .flags = flags});
    set_wider(o, d, v, t);
    return;
  }
  if (d->kind != PTX_A_VECTOR || d->parts != (uint32_t)n) {
    ptx_fail(b, "'%s' has %u registers", o->i->op, (unsigned)d->parts);
  }
  Ref regs = through(o, own, n);
  Ref x[4] = {regs, number(o, DT_I32, 0), p.mem, p.off};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_COPY, .imm = n * t.bits,
                .flags = (uint16_t)(flags & 7u << 12)}, x, 4, NULL, 0);
  for (int q = 0; q < n; q++) {
    Ref v = ir_emit(b->cx, b->fn, (Ins){.op = OP_LD, .type = (uint8_t)own,
                    .a = {regs, number(o, DT_I32, q)}});
    set_wider(o, &b->m->args.p[d->part + (uint32_t)q], v, t);
  }
}

static void store(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t);
  int n = vector(o);
  Place p = op_place(o, op_arg(o, 0), op_where(o));
  const PtxArg *s = op_arg(o, 1);
  uint16_t flags = hints(o);
  if (op_has(o, "volatile")) {
    flags |= SEM_RELAXED << hint_field(HINT_SEM)->shift |
             SCOPE_SYS << hint_field(HINT_SCOPE)->shift;
  }
  if (n == 1) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_ST, .a = {p.mem, p.off, low(o, s, t)},
                                .flags = flags});
    return;
  }
  if (s->kind != PTX_A_VECTOR || s->parts != (uint32_t)n) {
    ptx_fail(b, "'%s' has %u registers", o->i->op, (unsigned)s->parts);
  }
  Ref regs = through(o, own, n);
  for (int q = 0; q < n; q++) {
    Ref v = low(o, &b->m->args.p[s->part + (uint32_t)q], t);
    ir_emit(b->cx, b->fn, (Ins){.op = OP_ST,
                                .a = {regs, number(o, DT_I32, q), v}});
  }
  Ref x[4] = {p.mem, p.off, regs, number(o, DT_I32, 0)};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_COPY, .imm = n * t.bits}, x, 4,
                NULL, 0);
}

static void atomic(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  PtxType t = op_type(o, 0);
  uint32_t first = k ? 0 : 1;  // red has no result
  AtomicKind kind = AT_COUNT;
  for (int a = 0; a < AT_COUNT; a++) {
    if (op_has(o, atomic_row((AtomicKind)a)->name)) kind = (AtomicKind)a;
  }
  if (kind == AT_COUNT) ptx_fail(b, "'%s' is not modelled", o->i->op);
  DType own = op_dtype(t);
  Place p = op_place(o, op_arg(o, first), op_where(o));
  uint16_t flags = hints(o);
  Ref v = op_operand(o, first + 1, own);
  Ref x[4] = {p.mem, p.off, v, 0};
  if (kind == AT_CAS) {  // PTX: compare, then the new value
    x[3] = v;
    x[2] = op_operand(o, first + 2, own);
  }
  Ref r = operands_emit(b->cx, b->fn, (Ins){.op = OP_ATOMIC,
    .type = (uint8_t)own, .imm = kind, .flags = flags}, x,
    kind == AT_CAS ? 4 : 3, NULL, 0);
  if (!k) op_result(o, r);
}

// ---- threads together ----

static void barrier(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  if (strncmp(o->i->op, "barrier.cluster", 15) == 0) {
    ptx_cluster(o, k);
    return;
  }
  bool plain = op_has(o, "sync") || op_has(o, "arrive");
  bool arrive = strstr(o->i->op, "arrive") != NULL;
  op_has(o, "cta");
  op_has(o, "arrive");
  if (!plain) ptx_fail(b, "'%s' is not modelled", o->i->op);
  bool aligned = k || op_has(o, "aligned");
  Ins i = {.op = arrive ? OP_BARARRIVE : OP_BAR};
  if (!aligned) i.flags = BRF_UNALIGNED;
  Ref x[2] = {0, 0};
  const PtxArg *id = op_arg(o, 0);
  if (id->kind == PTX_A_INT) i.imm = id->value;
  else x[1] = op_operand(o, 0, DT_I32);
  if (o->i->args > 1) x[0] = op_operand(o, 1, DT_I32);
  i.a[0] = x[0];
  i.a[1] = x[1];
  ir_emit(b->cx, b->fn, i);
}

static void fence(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  if (strstr(o->i->op, ".proxy") || strstr(o->i->op, ".mbarrier")) {
    ptx_proxy(o, k);
    return;
  }
  FenceKind f = FE_COUNT;
  op_has(o, "acq_rel");
  op_has(o, "sc");
  if (op_has(o, "cta")) f = FE_CTA;
  else if (op_has(o, "cluster")) f = FE_CLUSTER;
  else if (op_has(o, "gpu") || op_has(o, "gl")) f = FE_GPU;
  else if (op_has(o, "sys")) f = FE_SYS;
  (void)k;
  if (f == FE_COUNT) ptx_fail(b, "'%s' is not modelled", o->i->op);
  ir_emit(b->cx, b->fn, (Ins){.op = OP_FENCE, .imm = f});
}

// Is the lane that a shuffle reads in the segment? (PTX ISA, shfl.sync)
static Ref in_segment(PtxOp *o, IntrinId id, Ref by, int64_t c) {
  int64_t seg = c >> 8 & 31, clamp = c & 31;
  Ref lane = ir_sreg(o->b->cx, o->b->fn, SR_LANE);
  Ref least = op2(o, OP_AND, lane, number(o, DT_I32, seg));
  Ref most = op2(o, OP_OR, least, number(o, DT_I32, clamp & ~seg));
  by = op2(o, OP_AND, by, number(o, DT_I32, 31));
  if (id == IN_SHUFUP) return op2(o, OP_LE, most, op2(o, OP_SUB, lane, by));
  Ref from = id == IN_SHUFDOWN ? op2(o, OP_ADD, lane, by)
             : id == IN_SHUFBFLY ? op2(o, OP_XOR, lane, by)
             : op2(o, OP_OR, least, op2(o, OP_AND, by,
                                        number(o, DT_I32, ~seg & 31)));
  return op2(o, OP_LE, from, most);
}

static void shuffle(PtxOp *o, int k) {
  (void)k;
  const PtxBuild *b = o->b;
  op_has(o, "sync");
  op_type(o, 0);
  IntrinId id = op_has(o, "idx") ? IN_SHUFIDX : op_has(o, "up") ? IN_SHUFUP
                : op_has(o, "down") ? IN_SHUFDOWN : IN_SHUFBFLY;
  if (id == IN_SHUFBFLY) op_has(o, "bfly");
  const PtxArg *d = op_arg(o, 0), *p = NULL;
  if (d->kind == PTX_A_PAIR) {
    p = &b->m->args.p[d->part + 1];
    d = &b->m->args.p[d->part];
  }
  int64_t c = op_constant(o, 3);
  Ref by = op_operand(o, 2, DT_I32);
  Ref mask = op_operand(o, 4, DT_U32);
  Ref v = op_intrin(o, id, c, op_operand(o, 1, DT_U32), by, mask);
  if (p) op_set(o, p, in_segment(o, id, by, c));
  op_set(o, d, v);
}

static void vote(PtxOp *o, int k) {
  (void)k;
  op_has(o, "sync");
  IntrinId id = op_has(o, "any") ? IN_VOTEANY : op_has(o, "all") ? IN_VOTEALL
                : op_has(o, "uni") ? IN_VOTEUNI : IN_VOTEBALLOT;
  if (id == IN_VOTEBALLOT) op_has(o, "ballot");
  Ref p = op_pred(o, op_arg(o, 1));
  op_result(o, op_intrin(o, id, 0, p, op_operand(o, 2, DT_U32), 0));
}

static void approximate(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  Ref a = op_operand(o, 1, op_dtype(t));
  MathFn f = (MathFn)k;
  static const struct { MathFn f; IntrinId id; } flush[] = {
    {MF_EX2APPROX, IN_EX2FTZ}, {MF_LG2APPROX, IN_LG2FTZ},
    {MF_RCPAPPROX, IN_RCPFTZ}, {MF_SQRTAPPROX, IN_SQRTFTZ},
    {MF_RSQRTAPPROX, IN_RSQRTFTZ}, {MF_SINAPPROX, IN_SINFTZ},
    {MF_COSAPPROX, IN_COSFTZ}};
  for (size_t q = 0; q < sizeof flush / sizeof *flush; q++) {
    if (flush[q].f != f || t.bits != 32 || !strstr(o->i->op, ".approx.ftz")) {
      continue;
    }
    op_has(o, "approx");
    op_has(o, "ftz");
    op_result(o, op_intrin(o, flush[q].id, 0, a, 0, 0));
    return;
  }
  if (op_has(o, "rn") && (f == MF_SQRTAPPROX || f == MF_RCPAPPROX)) {
    f = f == MF_SQRTAPPROX ? MF_SQRT : MF_RCP;
  } else if (!op_has(o, "approx") || t.bits != 32) {
    ptx_fail(o->b, "'%s' is not modelled", o->i->op);
  }
  if (f == MF_RCP) {
    Ref one = ir_float(o->b->cx, o->b->fn, op_dtype(t), 1);
    op_result(o, op2(o, OP_DIV, one, a));
    return;
  }
  op_result(o, ir_math(o->b->cx, o->b->fn, f, a, 0));
}

// Of one operand, or more, all as the rows of intrin.h have them: 32 bits, and
// the row behind for 64.
static void bits(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  IntrinId id = (IntrinId)k;
  if (t.bits == 64) id = (IntrinId)(k + (k == IN_BFIND ? 2 : 1));
  op_result(o, op_intrin(o, id, 0, op_operand(o, 1, unsigned_of(t.bits)), 0, 0));
}

static void lop3(PtxOp *o, int k) {
  (void)k;
  op_type(o, 0);
  op_result(o, op_intrin(o, IN_LOP3, op_constant(o, 4), op_operand(o, 1, DT_U32),
                      op_operand(o, 2, DT_U32), op_operand(o, 3, DT_U32)));
}

static void prmt(PtxOp *o, int k) {
  (void)k;
  op_type(o, 0);
  op_result(o, op_intrin(o, IN_PRMT, 0, op_operand(o, 1, DT_U32),
                      op_operand(o, 2, DT_U32), op_operand(o, 3, DT_U32)));
}

static void funnel(PtxOp *o, int k) {
  (void)k;
  op_type(o, 0);
  bool clamp = op_has(o, "clamp"), left = op_has(o, "l");
  op_has(o, "wrap");
  op_has(o, "r");
  IntrinId id = left ? (clamp ? IN_FUNNEL_LC : IN_FUNNEL_L)
                     : (clamp ? IN_FUNNEL_RC : IN_FUNNEL_R);
  op_result(o, op_intrin(o, id, 0, op_operand(o, 1, DT_U32),
                      op_operand(o, 2, DT_U32), op_operand(o, 3, DT_U32)));
}

static void active(PtxOp *o, int k) {
  (void)k;
  op_type(o, 0);
  op_result(o, op_intrin(o, IN_ACTIVE, 0, 0, 0, 0));
}

static void trap(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  uint32_t text = ir_text(b->cx, b->fn, "trap", 4);
  ir_emit(b->cx, b->fn, (Ins){.op = OP_TRAP, .imm = text,
                              .a = {number(o, DT_BOOL, 0)}});
}

static void syncwarp(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  if (!op_has(o, "warp") || !op_has(o, "sync")) {
    ptx_fail(b, "'%s' is not modelled", o->i->op);
  }
  ir_emit(b->cx, b->fn, (Ins){.op = OP_SYNCWARP,
                              .a = {op_operand(o, 0, DT_U32)}});
}

static void bar(PtxOp *o, int k) {
  if (strncmp(o->i->op, "bar.warp", 8) == 0) syncwarp(o, k);
  else barrier(o, k);
}

// ---- tensor cores ----

// The atom whose text an instruction is, or -1.
static int find_mma(PtxBuild *b, const char *op) {
  if (b->mma_text == op) return b->mma;
  b->mma_text = op;
  b->mma = -1;
  for (int id = 0, n = atom_mma_count(); id < n && b->mma < 0; id++) {
    const AtomMma *a = atom_mma(id);
    if (a && a->ptx && strcmp(a->ptx, op) == 0) b->mma = id;
  }
  return b->mma;
}

DType ptxrow_elements(PtxBuild *b, const PtxIns *i, uint32_t k) {
  bool wg = strncmp(i->op, "wgmma.mma", 9) == 0;
  if (!wg && strncmp(i->op, "mma.", 4)) return DT_NONE;
  int id = find_mma(b, i->op);
  if (id < 0 || k >= (wg ? 2u : (uint32_t)atom_mma(id)->nop)) return DT_NONE;
  return atom_mma_type(atom_mma(id), (int)k);
}

static void mma(PtxOp *o, int k) {
  (void)k;
  int id = find_mma(o->b, o->i->op);
  if (id < 0 || !atom_mma_runs(atom_mma(id))) {
    ptx_fail(o->b, "'%s' is not modelled", o->i->op);
  }
  o->used = UINT32_MAX;
  const AtomMma *a = atom_mma(id);
  Runs r = {.n = 0};
  for (uint32_t q = 0; q < (uint32_t)a->nop; q++) {
    uint32_t before = r.regs;
    op_run(o, &r, op_arg(o, q), atom_mma_type(a, (int)q));
    if (r.regs - before != a->nreg[q]) {
      ptx_fail(o->b, "'%s': operand %u has %u registers, not %u", o->i->op,
               q + 1, r.regs - before, a->nreg[q]);
    }
  }
  operands_emit(o->b->cx, o->b->fn, (Ins){.op = OP_MMA, .imm = id}, r.mem, r.n,
                r.reg, r.regs);
}

static void matrix(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  int id = -1;
  for (int q = 0, n = atom_copy_count(); q < n && id < 0; q++) {
    const AtomCopy *a = atom_copy(q);
    if (a && a->ptx && strcmp(a->ptx, o->i->op) == 0) id = q;
  }
  if (id < 0) ptx_fail(b, "'%s' is not modelled", o->i->op);
  bool load = k == 0;
  Runs r = {.n = 0};
  op_run(o, &r, op_arg(o, load ? 0 : 1), DT_NONE);
  Place p = op_place(o, op_arg(o, load ? 1 : 0), IN_SHARED);
  o->used = UINT32_MAX;
  Ref in[3] = {r.mem[0], p.mem, p.off}, out[3] = {p.mem, p.off, r.mem[0]};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_MATRIX, .imm = id},
                load ? in : out, 3, r.reg, r.regs);
}

// ---- cp.async ----

// Whether a copy takes place, where its source's size is a number that is
// chosen: 0: always.
static Ref source_size(PtxOp *o, const PtxArg *a, int64_t bytes) {
  PtxBuild *b = o->b;
  Ref n = op_value(o, a, DT_U32);
  int64_t v;
  if (ir_const(b->fn, n, &v)) {
    if (v == bytes) return 0;
    if (v == 0) return number(o, DT_BOOL, 0);
    ptx_fail(b, "'%s' of %lld of %lld bytes is not modelled", o->i->op,
             (long long)v, (long long)bytes);
  }
  return op2(o, OP_NE, n, number(o, DT_U32, 0));
}

static void cp_async(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  if (strstr(o->i->op, ".bulk")) {
    ptx_bulk(o, k);
    return;
  }
  op_has(o, "async");
  if (op_has(o, "commit_group")) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_CPCOMMIT});
    return;
  }
  if (op_has(o, "wait_group")) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_CPWAIT, .imm = op_constant(o, 0)});
    return;
  }
  if (op_has(o, "wait_all")) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_CPCOMMIT});
    ir_emit(b->cx, b->fn, (Ins){.op = OP_CPWAIT});
    return;
  }
  if (op_has(o, "mbarrier")) ptx_fail(b, "'%s' is not modelled", o->i->op);
  unsigned flags = op_has(o, "cg") ? CPF_GLOBAL : 0;
  op_has(o, "ca");
  op_where(o);
  op_has(o, "global");
  Place d = op_place(o, op_arg(o, 0), IN_SHARED);
  Place s = op_place(o, op_arg(o, 1), IN_GLOBAL);
  flags |= hints(o);
  int64_t bytes = op_constant(o, 2);
  Ref pred = 0;
  if (o->i->args > 3) {
    const PtxArg *a = op_arg(o, 3);
    pred = source_size(o, a, bytes);
    flags |= CPF_ZFILL;
  }
  if (!pred) flags &= ~(unsigned)CPF_ZFILL;
  Ref x[5] = {d.mem, d.off, s.mem, s.off, pred};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_CPASYNC, .imm = bytes * 8,
                .flags = (uint16_t)flags}, x, 5, NULL, 0);
}

static void bitfield(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  bool wide = t.bits == 64;
  DType own = op_dtype(t);
  if (k) {  // bfi: field, base, position, length
    Ref at = op2(o, OP_AND, op_operand(o, 3, DT_U32), number(o, DT_U32, 255));
    Ref n = op2(o, OP_AND, op_operand(o, 4, DT_U32), number(o, DT_U32, 255));
    Ref packed = op2(o, OP_ADD, at, op2(o, OP_SHL, n, number(o, DT_U32, 8)));
    op_result(o, op_intrin(o, wide ? IN_BFI64 : IN_BFI, 0, op_operand(o, 1, own),
                        op_operand(o, 2, own), packed));
    return;
  }
  bool sign = t.kind == PTX_S;
  IntrinId id = wide ? (sign ? IN_BFES64 : IN_BFE64) : sign ? IN_BFES : IN_BFE;
  op_result(o, op_intrin(o, id, 0, op_operand(o, 1, own), op_operand(o, 2, DT_U32),
                      op_operand(o, 3, DT_U32)));
}

static const PtxRow rows[] = {
  {"mapa", 1, ptx_mapa, 0, false, ""},
  {"mbarrier", 1, ptx_mbarrier, 0, false, ""}, {"prefetch", 0, ptx_proxy, 0, false, ""},
  {"wgmma", 1, ptx_wgmma, 0, true, ""}, {"setmaxnreg", 0, ptx_cluster, 0, false, ""},
  {"elect", 1, ptx_cluster, 0, false, ""}, {"griddepcontrol", 0, ptx_cluster, 0, false, ""},
  {"mma", 1, mma, 0, true, ""}, {"ldmatrix", 1, matrix, 0, true, ""},
  {"stmatrix", 0, matrix, 1, true, ""}, {"cp", 0, cp_async, 0, false, ""},
  {"bfe", 1, bitfield, 0, false, ""}, {"bfi", 1, bitfield, 1, false, ""},
  {"mov", 1, mov, 0, false, ""}, {"cvta", 1, cvta, 0, false, ""},
  {"ld", 1, load, 0, false, ""}, {"ldu", 1, load, 0, false, ""}, {"st", 0, store, 0, false, ""},
  {"atom", 1, atomic, 0, false, ""}, {"red", 0, atomic, 1, false, ""},
  {"add", 1, sum, OP_ADD, false, ""}, {"sub", 1, sum, OP_SUB, false, ""},
  {"mul", 1, mul, 0, false, ""}, {"mad", 1, mad, 0, false, ""}, {"fma", 1, mad, 0, false, ""},
  {"div", 1, divide, 0, false, ""}, {"rem", 1, divide, 1, false, ""},
  {"min", 1, binary, OP_MIN, false, ""}, {"max", 1, binary, OP_MAX, false, ""},
  {"neg", 1, unary, OP_NEG, false, ""}, {"abs", 1, unary, OP_ABS, false, ""},
  {"not", 1, unary, OP_NOT, false, ""},
  {"and", 1, logic, OP_AND, false, ""}, {"or", 1, logic, OP_OR, false, ""},
  {"xor", 1, logic, OP_XOR, false, ""},
  {"shl", 1, shift, OP_SHL, false, ""}, {"shr", 1, shift, OP_SHR, false, ""},
  {"setp", 1, setp, 0, false, ""}, {"selp", 1, selp, 0, false, ""}, {"cvt", 1, cvt, 0, false, ""},
  {"bar", 0, bar, 1, false, ""}, {"barrier", 0, barrier, 0, false, ""},
  {"membar", 0, fence, 0, false, "fence.sc as acq_rel"},
  {"fence", 0, fence, 0, false, "fence.sc as acq_rel"},
  {"shfl", 1, shuffle, 0, false, ""}, {"vote", 1, vote, 0, false, ""},
  {"sqrt", 1, approximate, MF_SQRTAPPROX, false, ""},
  {"rcp", 1, approximate, MF_RCPAPPROX, false, ""},
  {"rsqrt", 1, approximate, MF_RSQRTAPPROX, false, ""},
  {"ex2", 1, approximate, MF_EX2APPROX, false, ""},
  {"lg2", 1, approximate, MF_LG2APPROX, false, ""},
  {"sin", 1, approximate, MF_SINAPPROX, false, ""},
  {"cos", 1, approximate, MF_COSAPPROX, false, ""},
  {"tanh", 1, approximate, MF_TANHAPPROX, false, ""},
  {"popc", 1, bits, IN_POPC, false, ""}, {"clz", 1, bits, IN_CLZ, false, ""},
  {"brev", 1, bits, IN_BREV, false, ""},
  {"lop3", 1, lop3, 0, false, ""}, {"prmt", 1, prmt, 0, false, ""}, {"shf", 1, funnel, 0, false, ""},
  {"trap", 0, trap, 0, false, ""}, {"activemask", 1, active, 0, false, ""},
};

const PtxRow *ptxrow_find(const char *op) {
  size_t n = strcspn(op, ".");
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (strncmp(rows[k].name, op, n) == 0 && rows[k].name[n] == 0) {
      return &rows[k];
    }
  }
  return NULL;
}

bool ptxrow_homes(const char *op) {
  return strncmp(op, "mma.", 4) == 0 || strncmp(op, "ldmatrix.", 9) == 0 ||
         strncmp(op, "stmatrix.", 9) == 0 || strncmp(op, "wgmma.mma", 9) == 0;
}
