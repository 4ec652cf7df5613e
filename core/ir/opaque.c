// Follows the tokens of mbarriers through a function (opaque.h). The following
// values may be tokens: the result of an arrival, a select of tokens, a
// variable that may hold a token, and a loaded value.
#include "ir/opaque.h"

#include "ir/operands.h"

// Marks the result of instruction r, and the variable that r sets, if they may
// be tokens. Returns true if a mark was added.
static bool follow(const Fn *fn, bool *is, Ref r) {
  const Ins *i = ir_get(fn, r);
  Ref to = r;
  bool token = false;
  if (i->op == OP_SEL) token = is[i->a[1]] || is[i->a[2]];
  else if (i->op == OP_VAR || i->op == OP_VGET) token = is[i->a[0]];
  else if (i->op == OP_VSET) token = is[i->a[1]], to = i->a[0];
  else token = i->op == OP_MBARTOKEN;
  if (!token || is[to]) return false;
  is[to] = true;
  return true;
}

static bool is_wait(const Ins *i) {
  return i->op == OP_MBARWAIT || i->op == OP_MBARTRY;
}

// Reports whether value r may be a token of an mbarrier.
static bool may_be(const Fn *fn, const bool *is, Ref r) {
  const Ins *i = ir_get(fn, r);
  return is[r] || i->op == OP_LD || i->op == OP_PICK;
}

// Reports whether an operation is allowed to have a token as a value operand.
static bool keeps(Op op) {
  return op == OP_SEL || op == OP_VAR || op == OP_VSET || op == OP_MBARWAIT ||
         op == OP_MBARTRY || op == OP_ST || op == OP_FILL || op == OP_PUT ||
         op == OP_PRINTF;
}

// Classifies the use of a token as a value operand of i.
static OpaqueKind use_of(const Fn *fn, const Ins *i) {
  if (!keeps((Op)i->op)) return OPAQUE_USED;
  bool global = i->op == OP_ST && ir_memof(fn, i->a[0])->space == SP_GMEM;
  return global ? OPAQUE_STORED : OPAQUE_NONE;
}

static OpaqueKind check(const Fn *fn, const bool *is, const Ins *i) {
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (o.kind == OPERAND_MEM && o.off && is[o.off]) return OPAQUE_USED;
    if (o.kind != OPERAND_VALUE || !o.ref) continue;
    if (is[o.ref] && use_of(fn, i)) return use_of(fn, i);
    if (is_wait(i) && ir_type(fn, o.ref) == DT_U64 && !may_be(fn, is, o.ref))
      return OPAQUE_PHASE;
  }
  return OPAQUE_NONE;
}

OpaqueKind opaque_check(Ctx *cx, const Fn *fn, Ref *at) {
  size_t n = fn->ins.n;
  bool *is = arena_zero(cx, &cx->scratch, n), more = true;
  while (more) {
    more = false;
    for (Ref r = 1; r < n; r++) more |= follow(fn, is, r);
  }
  for (*at = 1; *at < n; ++*at) {
    OpaqueKind k = check(fn, is, ir_get(fn, *at));
    if (k) return k;
  }
  return OPAQUE_NONE;
}
// SPDX-License-Identifier: MIT
