// Instructions that update variables, registers and shared memory
// (updates.c).
#ifndef CUTE_UPDATES_H
#define CUTE_UPDATES_H

#include "ir/ir.h"

// Linked lists of the instructions that write a variable or an object: last[v]
// is the last one, and before[r] the one that precedes r in its list; 0: none.
typedef struct Writers { Ref *last, *before; } Writers;
Writers updates_writers(Ctx *cx, const Fn *fn);

// Reports whether value r is a constant number. If so, sets *v to the number.
bool updates_constant(const Fn *fn, Ref r, double *v);
// Reports whether value r is the constant 0.
bool updates_is_zero(const Fn *fn, Ref r);
// Returns the variable from which `var` was copied in a branch, or `var`
// itself.
Ref updates_root(const Fn *fn, Ref var);
// Reports whether r reads the variable or the element that instruction `set`
// writes.
bool updates_reads_back(const Fn *fn, Ref r, const Ins *set);
// Returns the instruction whose script line a report of update r should name:
// for a variable, the operation that computes its new value; else r.
Ref updates_place(const Fn *fn, Ref r);
// Reports whether instruction i adds to its target: it stores a sum of the
// target's old value and other terms, or it is an MMA that accumulates. A
// selection between such a sum and the old value also counts.
bool updates_adds(const Fn *fn, const Ins *i);

#endif
// SPDX-License-Identifier: MIT
