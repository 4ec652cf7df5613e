// bits.c: logic, shifts, fields and masks of bits.
#include <string.h>

#include "ptx/inside.h"

void row_logic(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t);
  if (t.kind == PTX_P) {
    Ref a = op_pred(o, op_arg(o, 1));
    op_result(o, op2(o, (Op)k, a, op_pred(o, op_arg(o, 2))));
    return;
  }
  op_result(o, op2(o, (Op)k, op_operand(o, 1, own), op_operand(o, 2, own)));
}

void row_not(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  Ref a = t.kind == PTX_P ? op_pred(o, op_arg(o, 1))
                          : op_operand(o, 1, op_dtype(t));
  op_result(o, op1(o, OP_NOT, a));
}

void row_cnot(PtxOp *o, int k) {
  (void)k;
  DType t = op_dtype(op_type(o, 0));
  Ref zero = op2(o, OP_EQ, op_operand(o, 1, t), number(o, t, 0));
  op_result(o, to(o, t, zero));
}

// A shift by more than the width gives zero or, if arithmetic, copies of the
// sign.
void row_shift(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t);
  Ref a = op_operand(o, 1, own), n = op_operand(o, 2, DT_U32);
  bool sign = k == OP_SHR && t.kind == PTX_S;
  int64_t v;
  if (ir_const(o->b->fn, n, &v) && v >= t.bits) {
    n = number(o, DT_U32, t.bits - 1);
    if (!sign) a = number(o, own, 0);
  }
  op_result(o, op2(o, (Op)k, a, n));
}

void row_funnel(PtxOp *o, int k) {
  (void)k;
  op_type(o, 0);
  bool clamp = op_has(o, "clamp"), left = op_has(o, "l");
  if (!clamp) op_has(o, "wrap");
  if (!left) op_has(o, "r");
  IntrinId id = left ? (clamp ? IN_FUNNEL_LC : IN_FUNNEL_L)
                     : (clamp ? IN_FUNNEL_RC : IN_FUNNEL_R);
  op_result(o, op_intrin(o, id, 0, op_operand(o, 1, DT_U32),
                         op_operand(o, 2, DT_U32), op_operand(o, 3, DT_U32)));
}

// Translates popc, clz and brev. The 64-bit operation follows the 32-bit
// operation in the table.
void row_count(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  IntrinId id = (IntrinId)(t.bits == 64 ? k + 1 : k);
  Ref a = op_operand(o, 1, unsigned_of(t.bits));
  op_result(o, op_intrin(o, id, 0, a, 0, 0));
}

void row_bfind(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  bool sign = t.kind == PTX_S;
  IntrinId id = t.bits == 64 ? (sign ? IN_BFINDS64 : IN_BFIND64)
                             : (sign ? IN_BFINDS : IN_BFIND);
  Ref at = as(o, DT_U32, op_intrin(o, id, 0, op_operand(o, 1, op_dtype(t)),
                                   0, 0));
  // .shiftamt returns the number of bits above the bit found. If no bit was
  // found, the result stays -1.
  if (op_has(o, "shiftamt")) {
    Ref none = op2(o, OP_EQ, at, number(o, DT_U32, UINT32_MAX));
    Ref above = op2(o, OP_SUB, number(o, DT_U32, t.bits - 1), at);
    at = op3(o, OP_SEL, none, at, above);
  }
  op_result(o, at);
}

// Returns operand k of a 64-bit bfi, limited to `most`. The limit is necessary
// because the instruction reads whole registers, but IN_BFI64 uses only eight
// bits of each of these operands. If the position is beyond the end of the
// word, bfi inserts nothing. A field that would extend beyond the end of the
// word ends there.
static Ref bounded(PtxOp *o, uint32_t k, int64_t most) {
  return op2(o, OP_MIN, op_operand(o, k, DT_U32), number(o, DT_U32, most));
}

static void insert(PtxOp *o, PtxType t) {
  DType own = op_dtype(t);
  bool wide = t.bits == 64;
  Ref mask = number(o, DT_U32, 255);
  Ref at = wide ? bounded(o, 3, 64)
                : op2(o, OP_AND, op_operand(o, 3, DT_U32), mask);
  Ref n = wide ? bounded(o, 4, 64)
               : op2(o, OP_AND, op_operand(o, 4, DT_U32), mask);
  Ref both = op2(o, OP_ADD, at, op2(o, OP_SHL, n, number(o, DT_U32, 8)));
  op_result(o, op_intrin(o, wide ? IN_BFI64 : IN_BFI, 0, op_operand(o, 1, own),
                         op_operand(o, 2, own), both));
}

void row_bitfield(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t);
  if (k) {
    insert(o, t);
    return;
  }
  bool sign = t.kind == PTX_S, wide = t.bits == 64;
  IntrinId id = wide ? (sign ? IN_BFES64 : IN_BFE64) : sign ? IN_BFES : IN_BFE;
  op_result(o, op_intrin(o, id, 0, op_operand(o, 1, own),
                         op_operand(o, 2, DT_U32), op_operand(o, 3, DT_U32)));
}

// Translates bmsk, szext and fns.
void row_mask(PtxOp *o, int k) {
  bool clamp = op_has(o, "clamp");
  op_type(o, 0);
  if (!clamp) op_has(o, "wrap");
  Soft s = {.op = (uint8_t)k, .type = (uint8_t)o->elem[0], .mode = clamp};
  Ref c = k == SOFT_FNS ? op_operand(o, 3, DT_U32) : 0;
  op_result(o, op_soft(o, s, 32, op_operand(o, 1, DT_U32),
                       op_operand(o, 2, DT_U32), c));
}

void row_lop3(PtxOp *o, int k) {
  (void)k;
  op_type(o, 0);
  Ref v = op_intrin(o, IN_LOP3, op_constant_in(o, 4, 0, 255),
                    op_operand(o, 1, DT_U32), op_operand(o, 2, DT_U32),
                    op_operand(o, 3, DT_U32));
  const PtxArg *d = op_arg(o, 0);
  if (d->kind != PTX_A_PAIR) {
    op_set(o, d, v);
    return;
  }
  Op op = op_has(o, "and") ? OP_AND : OP_OR;
  if (op == OP_OR) op_has(o, "or");
  Ref p = op2(o, OP_NE, as(o, DT_U32, v), number(o, DT_U32, 0));
  p = op2(o, op, p, op_pred(o, op_arg(o, 5)));
  op_set(o, op_part(o, d, 0), v);
  op_set(o, op_part(o, d, 1), p);
}

void row_prmt(PtxOp *o, int k) {
  (void)k;
  static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr",
                                      "rc16"};
  op_type(o, 0);
  Ref a = op_operand(o, 1, DT_U32), b = op_operand(o, 2, DT_U32);
  Ref c = op_operand(o, 3, DT_U32);
  for (uint8_t m = 0; m < 6; m++) {
    if (!op_has(o, modes[m])) continue;
    op_result(o, op_soft(o, (Soft){.op = SOFT_PRMT, .type = DT_U32, .mode = m},
                         32, a, b, c));
    return;
  }
  op_result(o, op_intrin(o, IN_PRMT, 0, a, b, c));
}
// SPDX-License-Identifier: MIT
