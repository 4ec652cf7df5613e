// Between ir.c and fold.c: appending, and what is known of integers.
#ifndef CUTE_IRFOLD_H
#define CUTE_IRFOLD_H

#include "ir/ir.h"

// Initialises a zeroed Fn in place; frees its parts but not itself (for
// owners that hold the Fn inside a larger block).
Fn *ir_init(Ctx *cx, Fn *fn, const char *name);
void ir_clear(Fn *fn);

// Appends without looking; ir_cons looks for an equal visible one first.
Ref ir_append(Ctx *cx, Fn *fn, Ins ins, Fact fact);
Ref ir_cons(Ctx *cx, Fn *fn, Ins ins, Fact fact);
// Fails with ERR_REGION when r cannot be used here.
void ir_use(Ctx *cx, const Fn *fn, Ref r);

// ---- fast.c ----
// What the options of the kernel make of `a op b`, of f(a, b); 0: nothing.
Ref irfast_op2(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);
Ref irfast_math(Ctx *cx, Fn *fn, MathFn f, Ref a, Ref b);

// ---- fold.c ----
Fact fold_full(DType t);  // all that a type holds
Fact fold_counter(const Fn *fn, Ref lo, Ref hi, Ref step);
Fact fact_const(int64_t v);
Fact fact_join(Fact a, Fact b);      // holds for either value
Fact fact_widen(Fact a, Fact b);     // the same, at once to an end that moves
bool fact_within(Fact a, Fact b);    // a says at least what b says

#endif
