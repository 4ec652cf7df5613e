// memory.c: moves, loads and stores, atomics, cp.async.
#include <string.h>

#include "atoms/atom.h"
#include "ptx/inside.h"

// ---- mov, cvta ----

void row_mov(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  const PtxArg *d = op_arg(o, 0), *s = op_arg(o, 1);
  if (t.bits == 128) op_reject(o, "registers of 128 bits");
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

void row_cvta(PtxOp *o, int k) {
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
  op_has(o, "L2::cache_hint");
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
    op_set_wider(o, x, as(o, op_dtype(t), v), t);
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

void row_load(PtxOp *o, int k) {
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
    op_set_wider(o, d, v, t);
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
    op_set_wider(o, &b->m->args.p[d->part + (uint32_t)q], v, t);
  }
}

void row_store(PtxOp *o, int k) {
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
    ir_emit(b->cx, b->fn, (Ins){.op = OP_ST, .flags = flags,
                                .a = {p.mem, p.off, op_low(o, s, t)}});
    return;
  }
  if (s->kind != PTX_A_VECTOR || s->parts != (uint32_t)n) {
    ptx_fail(b, "'%s' has %u registers", o->i->op, (unsigned)s->parts);
  }
  Ref regs = through(o, own, n);
  for (int q = 0; q < n; q++) {
    Ref v = op_low(o, &b->m->args.p[s->part + (uint32_t)q], t);
    ir_emit(b->cx, b->fn, (Ins){.op = OP_ST,
                                .a = {regs, number(o, DT_I32, q), v}});
  }
  Ref x[4] = {p.mem, p.off, regs, number(o, DT_I32, 0)};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_COPY, .imm = n * t.bits}, x, 4,
                NULL, 0);
}

// ---- atom, red ----

static AtomicKind atomic_kind(PtxOp *o) {
  for (int a = 0; a < AT_COUNT; a++) {
    if (op_has(o, atomic_row((AtomicKind)a)->name)) return (AtomicKind)a;
  }
  op_reject(o, "no operation");
}

// Rejects types that the kind has not.
static void atomic_type(PtxOp *o, AtomicKind kind, int n) {
  DType e = o->elem[0];
  bool number = dtype_is_float(e), small = number && dtype_bits(e) == 16;
  bool least = kind == AT_MIN || kind == AT_MAX;
  if (op_type(o, 0).bits == 128) op_reject(o, "128 bits");
  if (small && !op_has(o, "noftz")) op_reject(o, "16-bit floats need .noftz");
  if (number && kind != AT_ADD && !(least && small && n > 1)) {
    op_reject(o, "this operation on floats");
  }
  if (n > 1 && !number) op_reject(o, "vectors of integers");
}

// One element, `at` bytes behind the address.
static Ref atomic_one(PtxOp *o, AtomicKind kind, Place p, int64_t at, Ref v,
                      Ref cmp, uint16_t flags) {
  const PtxBuild *b = o->b;
  Ref off = op2(o, OP_ADD, p.off, number(o, ir_type(b->fn, p.off), at));
  Ref x[4] = {p.mem, off, v, cmp};
  return operands_emit(b->cx, b->fn, (Ins){.op = OP_ATOMIC,
    .type = (uint8_t)ir_type(b->fn, v), .imm = kind, .flags = flags}, x,
    cmp ? 4 : 3, NULL, 0);
}

// The elements of one register, which is `at` bytes behind the address: each
// is an operation of its own. -> what was there
static Ref atomic_word(PtxOp *o, AtomicKind kind, Place p, int64_t at,
                       const PtxArg *a, uint16_t flags) {
  DType e = o->elem[0];
  if (!o->pair[0]) {
    Ref v = as(o, e, op_value(o, a, op_dtype(op_type(o, 0))));
    return atomic_one(o, kind, p, at, v, 0, flags);
  }
  Ref v = op_value(o, a, DT_U32), all = number(o, DT_U32, 0);
  for (int h = 0; h < 2; h++) {
    Ref n = number(o, DT_U32, 16 * h);
    Ref half = as(o, e, to(o, DT_U16, op2(o, OP_SHR, v, n)));
    Ref was = atomic_one(o, kind, p, at + 2 * h, half, 0, flags);
    was = to(o, DT_U32, as(o, DT_U16, was));
    all = op2(o, OP_OR, all, op2(o, OP_SHL, was, n));
  }
  return all;
}

static void atomic_cas(PtxOp *o, Place p, uint32_t first, uint16_t flags) {
  DType own = op_dtype(op_type(o, 0));
  Ref cmp = op_operand(o, first + 1, own), v = op_operand(o, first + 2, own);
  Ref was = atomic_one(o, AT_CAS, p, 0, v, cmp, flags);
  if (first) op_result(o, was);
}

void row_atomic(PtxOp *o, int k) {
  uint32_t first = k ? 0 : 1;  // red has no result
  AtomicKind kind = atomic_kind(o);
  int n = vector(o);
  atomic_type(o, kind, n);
  Place p = op_place(o, op_arg(o, first), op_where(o));
  uint16_t flags = hints(o);
  if (kind == AT_CAS) {
    atomic_cas(o, p, first, flags);
    return;
  }
  const PtxArg *d = op_arg(o, 0), *v = op_arg(o, first + 1);
  Ref was[8];
  for (int q = 0; q < n; q++) {
    const PtxArg *a = n > 1 ? op_part(o, v, (uint32_t)q) : v;
    was[q] = atomic_word(o, kind, p, q * op_type(o, 0).bits / 8, a, flags);
  }
  for (int q = 0; q < n && !k; q++) {
    op_set(o, n > 1 ? op_part(o, d, (uint32_t)q) : d, was[q]);
  }
}
// ---- cp.async ----

// Bytes of the source of a cp.async: whether there are any, and how many where
// these are not all. 0: all.
typedef struct Source {
  Ref pred, bytes;
} Source;

static Source source_of(PtxOp *o, uint32_t k, int64_t bytes) {
  const PtxBuild *b = o->b;
  const PtxArg *a = op_arg(o, k);
  bool ignores = a->kind == PTX_A_REG &&
    b->m->regs.p[b->f->reg + (uint32_t)a->value].type.kind == PTX_P;
  if (ignores) return (Source){op1(o, OP_NOT, op_pred(o, a)), 0};
  Ref n = op_value(o, a, DT_U32), zero = number(o, DT_U32, 0);
  int64_t v, yes, no;
  if (ir_const(b->fn, n, &v) && v == bytes) return (Source){0, 0};
  Ref some = op2(o, OP_NE, n, zero);
  if (ir_const(b->fn, n, &v) && v == 0) return (Source){some, 0};
  const Ins *i = ir_get(b->fn, n);
  if (i->op == OP_BITCAST) i = ir_get(b->fn, i->a[0]);
  bool either = i->op == OP_SEL && ir_const(b->fn, i->a[1], &yes) &&
                ir_const(b->fn, i->a[2], &no);
  if (either && (yes == 0 || yes == bytes) && (no == 0 || no == bytes)) {
    return (Source){some, 0};
  }
  return (Source){some, op2(o, OP_MIN, n, number(o, DT_U32, bytes))};
}

void row_copy_wait(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  (void)k;
  bool all = strcmp(o->i->op, "cp.async.wait_all") == 0;
  bool wait = strcmp(o->i->op, "cp.async.wait_group") == 0;
  if (!wait) ir_emit(b->cx, b->fn, (Ins){.op = OP_CPCOMMIT});
  if (!wait && !all) return;
  ir_emit(b->cx, b->fn, (Ins){.op = OP_CPWAIT,
                              .imm = wait ? op_constant(o, 0) : 0});
}

void row_copy(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  unsigned flags = op_has(o, "cg") ? CPF_GLOBAL : 0;
  if (!flags) op_has(o, "ca");
  op_where(o);
  op_has(o, "global");
  Place d = op_place(o, op_arg(o, 0), IN_SHARED);
  Place s = op_place(o, op_arg(o, 1), IN_GLOBAL);
  bool hint = op_has(o, "L2::cache_hint");
  flags |= hints(o);
  int64_t bytes = op_constant(o, 2);
  Source from = {0, 0};
  if (o->i->args > (hint ? 4u : 3u)) from = source_of(o, 3, bytes);
  if (from.pred) flags |= CPF_ZFILL;
  Ref x[6] = {d.mem, d.off, s.mem, s.off, from.pred, from.bytes};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_CPASYNC, .imm = bytes * 8,
                .flags = (uint16_t)flags}, x, from.bytes ? 6 : 5, NULL, 0);
}
