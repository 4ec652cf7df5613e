// atomic.c: atom and red, an element at a time.
#include "ptx/inside.h"

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
  int n = op_vector(o);
  atomic_type(o, kind, n);
  Place p = op_place(o, op_arg(o, first), op_where(o));
  uint16_t flags = op_hints(o);
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
