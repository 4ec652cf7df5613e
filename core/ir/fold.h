// The interface between ir.c and fold.c: appending, and facts about integers.
#ifndef CUTE_IRFOLD_H
#define CUTE_IRFOLD_H

#include "ir/ir.h"

// ir_init initialises a zeroed Fn in place. ir_clear frees its parts but not
// the Fn itself, which may be inside a larger block.
Fn *ir_init(Ctx *cx, Fn *fn, const char *name);
void ir_clear(Fn *fn);

// ir_append always appends; ir_cons first looks for an equal visible
// instruction.
Ref ir_append(Ctx *cx, Fn *fn, Ins ins, Fact fact);
Ref ir_cons(Ctx *cx, Fn *fn, Ins ins, Fact fact);
// Fails with ERR_REGION if r is not visible here.
void ir_use(Ctx *cx, const Fn *fn, Ref r);

// ---- fast.c ----
// Return the replacement of `a op b` or f(a, b) under the kernel's fmad and
// fastmath options; 0: none.
Ref irfast_op2(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);
Ref irfast_math(Ctx *cx, Fn *fn, MathFn f, Ref a, Ref b);

// ---- fold.c ----
Fact fold_full(DType t);  // the range of a type
Fact fold_counter(const Fn *fn, Ref lo, Ref hi, Ref step);
Fact fact_const(int64_t v);
Fact fact_join(Fact a, Fact b);      // a fact that holds for either value
Fact fact_widen(Fact a, Fact b);     // fact_join, except that a bound that
                                     // moves becomes infinite
bool fact_within(Fact a, Fact b);    // a implies b

#endif
// SPDX-License-Identifier: MIT
