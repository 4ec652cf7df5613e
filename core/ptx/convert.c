// convert.c: cvt and cvt.pack.
#include <string.h>

#include "ptx/inside.h"

// Returns the rounding to an integer that the modifiers name, or SOFT_RNA if
// they name no rounding.
static SoftRound integral(PtxOp *o) {
  static const char *const names[] = {"rni", "rzi", "rmi", "rpi"};
  for (int k = 0; k < 4; k++) {
    if (op_has(o, names[k])) return (SoftRound)k;
  }
  return SOFT_RNA;
}

// Describes the current conversion for soft.h.
static Soft descriptor(PtxOp *o) {
  Soft s = {.op = SOFT_CVT, .type = (uint8_t)o->elem[0],
            .from = (uint8_t)o->elem[1]};
  bool from = dtype_is_float(o->elem[1]), float_result =
    dtype_is_float(o->elem[0]);
  SoftRound to_int = integral(o);
  s.mode = (uint8_t)op_rounding(o);
  s.flags = op_flags(o);
  bool given = strstr(o->i->op, ".rn.") || s.mode != SOFT_RN;
  bool wider = dtype_bits(o->elem[0]) > dtype_bits(o->elem[1]);
  if (to_int != SOFT_RNA) {
    if (!from) op_reject(o, "rounding to an integer needs a float source");
    if (float_result && o->elem[0] != o->elem[1]) {
      op_reject(o, "rounding to an integer needs one float type, not two");
    }
    if (float_result) s.op = SOFT_RINT;
    s.mode = (uint8_t)to_int;
  } else if (from && !float_result) {
    op_reject(o, "one of .rni, .rzi, .rmi, .rpi is needed");
  } else if (float_result && !given && (!from ||
             (dtype_bits(o->elem[1]) > 16 && !wider &&
              o->elem[0] != o->elem[1]))) {
    op_reject(o, "a rounding modifier such as .rn is needed");
  }
  return s;
}

// Reports whether the IR's own conversion has the same result. It needs fewer
// steps than an operation of soft.h.
static bool is_plain(Soft s) {
  bool from = dtype_is_float((DType)s.from), number =
    dtype_is_float((DType)s.type);
  if (s.op != SOFT_CVT || s.flags) return false;
  if (!from && !number) return true;
  if (!from) {
    return s.mode == SOFT_RN && s.type != DT_BF16 &&
           dtype_bits((DType)s.from) <= 32;
  }
  if (!number) return s.mode == SOFT_RZ && s.from == DT_F32;
  if (s.mode != SOFT_RN || s.type == s.from) return false;
  return s.from == DT_F32 ? s.type == DT_F16 || s.type == DT_BF16
         : s.type == DT_F32 && s.from != DT_F64;
}

// Converts two values to the halves of one register, or the halves of one
// register to two values.
static void pair(PtxOp *o, Soft s) {
  int bits = 2 * dtype_bits(o->elem[0]);
  bool two = !o->pair[1];
  if (s.op != SOFT_CVT) op_reject(o, "pairs cannot be rounded to integers");
  bool eight = dtype_bits(o->elem[1]) == 8;
  if (eight && s.type != DT_F16) op_reject(o, "it needs sm_100");
  if (two && o->elem[1] != DT_F32)
    op_reject(o, "two values that become a pair must be of .f32");
  bool simple = s.mode == SOFT_RN && !s.flags;
  if (two && simple && (s.type == DT_F16 || s.type == DT_BF16)) {
    IntrinId id = s.type == DT_BF16 ? IN_PACKBF2 : IN_PACKF162;
    op_result(o, op_intrin(o, id, 0, op_operand(o, 2, DT_F32),
                           op_operand(o, 1, DT_F32), 0));
    return;
  }
  if (bits == 16 && !(s.flags & SOFT_FINITE))
    op_reject(o, ".satfinite is missing");
  DType raw = unsigned_of(op_type(o, 1).bits);
  s.flags |= SOFT_PAIR;
  op_result(o, op_soft(o, s, bits, op_operand(o, 1, raw),
                       two ? op_operand(o, 2, raw) : 0, 0));
}

void row_cvt(PtxOp *o, int k) {
  (void)k;
  if (o->types != 2) op_reject(o, "two types are needed, .dtype.atype");
  PtxType d = op_type(o, 0), from = op_type(o, 1);
  // The operand is the address of a kernel parameter; the cvt only widens it.
  if (op_root(o, op_arg(o, 0)) >= 0) {
    op_set(o, op_arg(o, 0), op_offset(o, op_arg(o, 1)));
    return;
  }
  Soft s = descriptor(o);
  if (o->pair[0]) {
    pair(o, s);
    return;
  }
  if (o->pair[1]) op_reject(o, "a pair cannot become one value");
  if (o->i->args != 2) op_reject(o, "a third operand needs sm_100");
  if (s.type == DT_TF32 && s.mode != SOFT_RNA && s.flags & SOFT_FINITE) {
    op_reject(o, "it needs sm_100");
  }
  if (s.mode == SOFT_RNA && s.type != DT_TF32)
    op_reject(o, ".rna needs the result type .tf32");
  Ref v = op_low(o, op_arg(o, 1), from);
  if (is_plain(s)) {
    if (dtype_is_float((DType)s.from)) v = as(o, (DType)s.from, v);
    v = to(o, (DType)s.type, v);
  } else {
    v = op_soft(o, s, d.bits, v, 0, 0);
  }
  op_set_wider(o, op_arg(o, 0), as(o, unsigned_of(d.bits), v), d);
}

// Translates cvt.pack.sat.type.s32[.b32] d, a, b[, c].
void row_cvt_pack(PtxOp *o, int k) {
  (void)k;
  static const struct { const char *name; uint8_t bits; bool sign; } types[] = {
    {"s16", 16, true}, {"u16", 16, false}, {"s8", 8, true}, {"u8", 8, false},
    {"s4", 4, true}, {"u4", 4, false}, {"s2", 2, true}, {"u2", 2, false}};
  op_has(o, "sat");
  op_has(o, "s32");
  op_has(o, "b32");
  for (size_t q = 0; q < sizeof types / sizeof *types; q++) {
    if (!op_has(o, types[q].name)) continue;
    bool third = types[q].bits < 16;
    if (o->i->args != (third ? 4u : 3u))
      op_reject(o, "16-bit types need 3 operands, narrower types 4");
    Soft s = {.op = SOFT_PACK, .type = types[q].sign ? DT_I32 : DT_U32,
              .mode = types[q].bits};
    op_result(o, op_soft(o, s, 32, op_operand(o, 1, DT_U32),
                         op_operand(o, 2, DT_U32),
                         third ? op_operand(o, 3, DT_U32) : 0));
    return;
  }
  op_reject(o, "its result type must be one of 2, 4, 8 or 16 bits");
}
// SPDX-License-Identifier: MIT
