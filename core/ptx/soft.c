// soft.c: operands of those PTX instructions that base/soft.h computes.
// Modifiers become flags, and registers become words.
#include "ptx/inside.h"

#include <string.h>

void op_reject(PtxOp *o, const char *what) {
  ptx_fail(o->b, "'%s' is not modelled: %s", o->i->op, what);
}

uint8_t op_flags(PtxOp *o) {
  static const struct { const char *mod; uint8_t flag; } rows[] = {
    {"ftz", SOFT_FTZ}, {"sat", SOFT_SAT}, {"relu", SOFT_RELU},
    {"satfinite", SOFT_FINITE}, {"oob", SOFT_OOB}, {"NaN", SOFT_NAN},
    {"xorsign", SOFT_XORSIGN}};
  unsigned flags = 0;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (op_has(o, rows[k].mod)) flags |= rows[k].flag;
  }
  if (flags & SOFT_XORSIGN) op_has(o, "abs");
  return (uint8_t)flags;
}

SoftRound op_rounding(PtxOp *o) {
  static const char *const names[] = {"rn", "rz", "rm", "rp", "rna"};
  for (int k = 0; k < 5; k++) {
    if (op_has(o, names[k])) return (SoftRound)k;
  }
  return SOFT_RN;
}

// Returns value `a` zero-extended to a word of 32 bits, or of 64 bits if `wide`
// is set.
static Ref word(PtxOp *o, Ref a, bool wide) {
  DType t = wide ? DT_U64 : DT_U32;
  if (!a) return number(o, t, 0);
  int bits = dtype_bits(ir_type(o->b->fn, a));
  return to(o, t, as(o, unsigned_of(bits), a));
}

static bool is_wide(PtxOp *o, Ref a) {
  return a && dtype_bits(ir_type(o->b->fn, a)) == 64;
}

Ref op_soft(PtxOp *o, Soft s, int bits, Ref a, Ref b, Ref c) {
  bool wide = bits == 64 || is_wide(o, a) || is_wide(o, b) || is_wide(o, c);
  Ref x[3] = {word(o, a, wide), word(o, b, wide), word(o, c, wide)};
  Ref r = intrin_emit(o->b->cx, o->b->fn, wide ? IN_SOFT64 : IN_SOFT,
                      soft_pack(s), x);
  return to(o, unsigned_of(bits), r);
}
// SPDX-License-Identifier: MIT
