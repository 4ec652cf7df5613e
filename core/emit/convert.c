// Writes conversions between element types as expressions: casts, calls of
// helpers for small floats, and bitcasts.
#include "emit/expr.h"

#include <string.h>

// Return the names of the functions that convert small floats to f32, and from
// f32.
const char *convert_to_f32(Emit *e, const Ins *i, DType t) {
  switch ((int)t) {
    case DT_F16: return helper_use(e, H_F16_TO_F32);
    case DT_BF16: return helper_use(e, H_BF16_TO_F32);
    case DT_TF32: return helper_use(e, H_TF32_TO_F32);
    case DT_E4M3: return helper_use(e, H_E4M3_TO_F32);
    case DT_E5M2: return helper_use(e, H_E5M2_TO_F32);
    case DT_E2M1: return helper_use(e, H_E2M1_TO_F32);
    case DT_E2M3: return helper_use(e, H_E2M3_TO_F32);
    case DT_E3M2: return helper_use(e, H_E3M2_TO_F32);
    case DT_UE8M0: return helper_use(e, H_UE8M0_TO_F32);
    default: text_no_way(e, i, "this conversion");
  }
}

// Reports whether the 16-bit value of i becomes half of a register word: i is
// inlined in a store to registers.
static bool is_half(const Emit *e, const Ins *i) {
  Ref r = (Ref)(i - e->fn->ins.p), at = e->use[r].root;
  if (e->use[r].how != HOW_INLINE || !at) return false;
  const Ins *s = ir_get(e->fn, at);
  return s->op == OP_ST && s->a[2] == r &&
         ir_get(e->fn, s->a[0])->op == OP_RMEM;
}

const char *convert_from_f32(Emit *e, const Ins *i, DType t) {
  bool half = t == DT_BF16 && e->sm >= 80 && is_half(e, i);
  if (half) return helper_use(e, H_F32_TO_BF16_HALF);
  switch ((int)t) {
    case DT_F16: return helper_use(e, H_F32_TO_F16);
    case DT_BF16: return helper_use(e, H_F32_TO_BF16);
    case DT_TF32: return helper_use(e, H_F32_TO_TF32);
    case DT_E4M3: return helper_use(e, H_F32_TO_E4M3);
    case DT_E5M2: return helper_use(e, H_F32_TO_E5M2);
    case DT_E2M1: return helper_use(e, H_F32_TO_E2M1);
    case DT_E2M3: return helper_use(e, H_F32_TO_E2M3);
    case DT_E3M2: return helper_use(e, H_F32_TO_E3M2);
    case DT_UE8M0: return helper_use(e, H_F32_TO_UE8M0);
    default: text_no_way(e, i, "this conversion");
  }
}

static Prec cast(Emit *e, DType t, Ref r) {
  bool nibble = ir_type(e->fn, r) == DT_I4;
  text_printf(e, "(%s)", dtype_cuda(t));
  if (nibble) text_printf(e, "%s(", helper_use(e, H_I4_TO_INT));
  expr_val(e, r, nibble ? PR_ANY : PR_UNARY);
  if (nibble) text_puts(e, ")");
  return PR_UNARY;
}

// Writes a conversion to an integer narrower than a byte: keeps the low bits.
static Prec cut(Emit *e, DType t, Ref r) {
  text_puts(e, "(unsigned char)(");
  expr_val(e, r, PR_UNARY);
  text_printf(e, " & 0x%x)", (1u << dtype_bits(t)) - 1);
  return PR_UNARY;
}

// Writes a conversion that rounds toward zero and saturates, as cvt.rzi does.
static Prec float_to_int(Emit *e, DType t, Ref r) {
  bool f64 = ir_type(e->fn, r) == DT_F64, u = dtype_class(t) == 'U';
  int bits = dtype_bits(t);
  if (bits < 32) {
    int hi = (1 << (u ? bits : bits - 1)) - 1;
    text_printf(e, bits < 8 ? "(%s)(min(max(" : "(%s)min(max(",
                dtype_cuda(t));
    text_printf(e, "__%s2int_rz(", f64 ? "double" : "float");
    expr_f32(e, r, PR_ANY);
    text_printf(e, "), %d), %d)", u ? 0 : -hi - 1, hi);
    if (bits < 8) text_printf(e, " & 0x%x)", (1u << bits) - 1);
    return PR_UNARY;
  }
  text_printf(e, "__%s2%s%s_rz(", f64 ? "double" : "float", u ? "u" : "",
              bits > 32 ? "ll" : "int");
  expr_f32(e, r, PR_ANY);
  text_puts(e, ")");
  return PR_POST;
}

// Writes a conversion from a type wider than f32 to f16 or bf16, with a single
// rounding.
static Prec wide_to_half(Emit *e, const Ins *i, DType t, Ref r) {
  if (t == DT_F16) {
    text_printf(e, "%s(", helper_use(e, H_F64_TO_F16));
    expr_val(e, r, PR_ANY);
  } else {
    DType s = ir_type(e->fn, r);
    text_printf(e, "%s(%s(", convert_from_f32(e, i, t),
                helper_use(e, s == DT_I64 ? H_I64_TO_ODD
                              : s == DT_U64 ? H_U64_TO_ODD : H_F64_TO_ODD));
    expr_val(e, r, PR_ANY);
    text_puts(e, ")");
  }
  text_puts(e, ")");
  return PR_POST;
}

static Prec to_float(Emit *e, const Ins *i, DType t, Ref r) {
  DType s = ir_type(e->fn, r);
  if (t == DT_F64 || t == DT_F32) {
    if (expr_small_float(s)) {
      if (t == DT_F64) text_puts(e, "(double)");
      expr_f32(e, r, PR_UNARY);
      return t == DT_F64 ? PR_UNARY : PR_POST;
    }
    return cast(e, t, r);
  }
  Fact f = ir_fact(e->fn, r);
  bool exact = f.lo >= -(1 << 24) && f.hi <= 1 << 24;
  if (s == DT_F64 || (dtype_is_int(s) && !exact))
    return wide_to_half(e, i, t, r);
  text_printf(e, "%s(", convert_from_f32(e, i, t));
  if (dtype_is_float(s)) expr_f32(e, r, PR_ANY);
  else cast(e, DT_F32, r);
  text_puts(e, ")");
  return PR_POST;
}

Prec convert_convert(Emit *e, const Ins *i) {
  DType t = (DType)i->type, s = ir_type(e->fn, i->a[0]);
  if (t == s) {
    expr_val(e, i->a[0], PR_POST);
    return PR_POST;
  }
  if (t == DT_C64 || s == DT_C64 || t == DT_U128 || s == DT_U128)
    text_no_way(e, i, "this conversion");
  if (t == DT_BOOL) {
    expr_f32(e, i->a[0], PR_REL);
    text_puts(e, dtype_is_float(s) ? " != 0.0f" : " != 0");
    return PR_EQ;
  }
  if (dtype_is_float(t)) return to_float(e, i, t, i->a[0]);
  if (dtype_is_float(s)) return float_to_int(e, t, i->a[0]);
  return dtype_bits(t) < 8 ? cut(e, t, i->a[0]) : cast(e, t, i->a[0]);
}

const char *convert_bits(DType from, DType to) {
  bool u = dtype_class(to) == 'U' || to == DT_TF32;
  if (from == DT_F32) return u ? "__float_as_uint" : "__float_as_int";
  if (from == DT_F64) return "__double_as_longlong";
  if (to == DT_F64) return "__longlong_as_double";
  bool un = dtype_class(from) == 'U' || from == DT_TF32;
  return un ? "__uint_as_float" : "__int_as_float";
}

Prec convert_bitcast(Emit *e, const Ins *i) {
  DType t = (DType)i->type, s = ir_type(e->fn, i->a[0]);
  bool f = (t == DT_F32 || t == DT_F64) != (s == DT_F32 || s == DT_F64);
  if (strcmp(dtype_cuda(t), dtype_cuda(s)) == 0)
    return expr_val(e, i->a[0], PR_ANY);
  if (dtype_bits(t) < dtype_bits(s)) return cut(e, t, i->a[0]);
  if (!f) {
    text_printf(e, "(%s)", dtype_cuda(t));
    expr_val(e, i->a[0], PR_UNARY);
    return PR_UNARY;
  }
  if (t == DT_U64) text_puts(e, "(unsigned long long)");
  text_printf(e, "%s(", convert_bits(s, t));
  expr_val(e, i->a[0], PR_ANY);
  text_puts(e, ")");
  return t == DT_U64 ? PR_UNARY : PR_POST;
}
// SPDX-License-Identifier: MIT
