// Expressions of atomics.
#include <inttypes.h>

#include "emit/inside.h"

// The function of an atomic, by kind and type.
static const char *atomic_name(Emit *e, const Ins *i, DType t) {
  bool add = i->imm == AT_ADD;
  bool i32 = t == DT_I32 || t == DT_U32, wide = t == DT_I64 || t == DT_U64;
  if (t == DT_F32 && i->imm == AT_MIN) return helper_use(e, H_ATOMIC_MIN);
  if (t == DT_F32 && i->imm == AT_MAX) return helper_use(e, H_ATOMIC_MAX);
  if (t == DT_F16 && add) return helper_use(e, H_ATOMIC_ADD_F16);
  if (t == DT_BF16 && add && e->sm >= 90)
    return helper_use(e, H_ATOMIC_ADD_BF16);
  bool ok = i32 || wide || (add && (t == DT_F32 || t == DT_F64)) ||
            (t == DT_F32 && i->imm == AT_EXCH);
  if (!ok) expr_no_way(e, i, "this atomic");
  return atomic_row((AtomicKind)i->imm)->cuda;
}

// i64 goes as u64 where only that exists: the bits are the same.
Prec warp_atomic(Emit *e, const Ins *i) {
  if (i->flags) return ptx_access(e, i);
  DType t = ir_type(e->fn, i->a[2]);
  bool as_u64 = t == DT_I64 && i->imm != AT_MIN && i->imm != AT_MAX;
  const char *arg = as_u64 ? "(unsigned long long)" : "";
  if (as_u64) expr_puts(e, "(long long)");
  bool view = !as_u64 && t != ir_type(e->fn, i->a[0]);
  expr_printf(e, "%s(%s", atomic_name(e, i, t),
              as_u64 ? "(unsigned long long *)(" : "");
  if (view) expr_printf(e, "(%s *)(", dtype_cuda(t));
  expr_pointer(e, i->a[0], i->a[1], PR_ADD);
  expr_puts(e, as_u64 || view ? "), " : ", ");
  if (i->imm == AT_CAS) {
    expr_puts(e, arg);
    expr_val(e, operands_ref(e->fn, i, 3), as_u64 ? PR_UNARY : PR_ANY);
    expr_puts(e, ", ");
  }
  expr_puts(e, arg);
  expr_val(e, i->a[2], as_u64 ? PR_UNARY : PR_ANY);
  expr_puts(e, ")");
  return as_u64 ? PR_UNARY : PR_POST;
}
