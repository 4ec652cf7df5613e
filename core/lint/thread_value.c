// Evaluates values that depend only on constants and on the thread's index:
// conditions that select threads, and offsets of elements.
#include "lint/thread_value.h"

#include "ir/eval.h"

enum { WARP = 32 };

static bool special(const Fn *fn, SReg s, int32_t t, uint64_t *value) {
  const int32_t *b = fn->block;
  int32_t v;
  switch ((int)s) {
    case SR_TID_X: v = t % b[0]; break;
    case SR_TID_Y: v = t / b[0] % b[1]; break;
    case SR_TID_Z: v = t / b[0] / b[1]; break;
    case SR_NTID_X: v = b[0]; break;
    case SR_NTID_Y: v = b[1]; break;
    case SR_NTID_Z: v = b[2]; break;
    case SR_LANE: v = t % WARP; break;
    case SR_WARP: v = t / WARP; break;
    default: return false;
  }
  *value = (uint64_t)v;
  return true;
}

static DType type_of(const Fn *fn, const Ins *i) {
  return i->a[0] ? ir_type(fn, i->a[0]) : (DType)i->type;
}

bool thread_value_has(const Fn *fn, const Ins *i) {
  Op op = (Op)i->op;
  // Scalar arguments and addresses are known only at a launch.
  if (op_effect(op) & EF_FIXED && op != OP_CONST && op != OP_SREG) return false;
  bool scalar = op_class(op) != CLASS_FUNCTION &&
                op_class(op) != CLASS_INTRIN && op != OP_BITCAST;
  return op_pure(op) && scalar &&
         !dtype_is_float((DType)i->type) && !dtype_is_float(type_of(fn, i));
}

bool thread_value(const Fn *fn, const Ins *i, int32_t t, const uint64_t v[3],
                  uint64_t *value) {
  Op op = (Op)i->op;
  DType type = type_of(fn, i), to = (DType)i->type;
  if (op == OP_SREG) return special(fn, (SReg)i->imm, t, value);
  uint64_t u[3] = {0};
  for (int k = 0; k < 3; k++)
    if (i->a[k]) u[k] = (uint64_t)eval_widen(ir_type(fn, i->a[k]), v[k]);
  if (op == OP_CONST) *value = (uint64_t)i->imm;
  else if (op == OP_SEL) *value = u[0] & 1 ? u[1] : u[2];
  else if (op == OP_CVT && to == DT_BOOL) *value = u[0] != 0;
  else if (op == OP_CVT) *value = eval_narrow(to, u[0]);
  else *value = eval_scalar(op, type, u[0], u[1], u[2]);
  return true;
}

bool thread_value_of(const Fn *fn, Ref r, int32_t t, int depth,
                     uint64_t *value) {
  const Ins *i = ir_get(fn, r);
  bool leaf = i->op == OP_CONST || i->op == OP_SREG;
  if (!thread_value_has(fn, i) || (depth == 0 && !leaf)) return false;
  uint64_t v[3] = {0};
  for (int k = 0; k < 3; k++)
    if (i->a[k] && !thread_value_of(fn, i->a[k], t, depth - 1, &v[k]))
      return false;
  return thread_value(fn, i, t, v, value);
}
// SPDX-License-Identifier: MIT
