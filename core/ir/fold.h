// Functions that ir.c and fold.c share: appending instructions, and facts about
// integers.
#ifndef CUTE_IRFOLD_H
#define CUTE_IRFOLD_H

#include "ir/ir.h"

// ir_append always appends ins. ir_cons returns an equal instruction if one is
// visible here, and otherwise appends ins.
Ref ir_append(Ctx *cx, Fn *fn, Ins ins, Fact fact);
Ref ir_cons(Ctx *cx, Fn *fn, Ins ins, Fact fact);
// Fails with ERR_REGION if r is not visible at the position where instructions
// are appended.
void ir_use(Ctx *cx, const Fn *fn, Ref r);

// ---- fast.c ---- Return the value that replaces `a op b` or f(a, b) under the
// kernel's options fmad and fastmath, or 0 if they keep the operation.
Ref irfast_op2(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);
Ref irfast_math(Ctx *cx, Fn *fn, MathFn f, Ref a, Ref b);

// ---- fold.c ----
Fact fold_full(DType t);  // returns the range of type t
Fact fold_counter(const Fn *fn, Ref lo, Ref hi, Ref step);
Fact fact_const(int64_t v);
Fact fact_join(Fact a, Fact b);      // returns the fact that both a and b imply
// Returns fact_join(a, b), except that each bound that differs from a's bound
// becomes infinite.
Fact fact_widen(Fact a, Fact b);
bool fact_within(Fact a, Fact b);    // reports whether a implies b

#endif
// SPDX-License-Identifier: MIT
