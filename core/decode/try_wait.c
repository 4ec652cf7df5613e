// Finds each mbarrier try_wait that only decides whether a wait follows, and
// links it to this wait. If the try_wait returns true, it acquires what the
// wait would acquire. If it returns false, it orders nothing. Therefore the
// systematic schedules let such a try_wait return false, so that only the wait
// is a scheduling step. This is valid if the result affects only branches that
// do nothing but wait. It may reach them through variables and booleans.
//
// The wait must be for the phase that the try_wait tested. If a run shows a
// wait for another phase, all try_waits become scheduling steps (Launch.tries).
#include "decode/try_wait.h"

#include "ir/operands.h"

// A union-find structure. A set contains all values to which one try_wait's
// result flows, and the waits that depend on this result.
// - of: another value of the same set, or the value itself if it is the root.
// - bad: at the root, whether the set has other uses, so that its try_wait must
//   be a scheduling step.
typedef struct Tokens {
  const Fn *fn;
  Ref *of;
  bool *bad;
} Tokens;

static Ref root(const Tokens *t, Ref r) {
  while (t->of[r] != r) r = t->of[r];
  return r;
}

// Merges the sets of a and b. Returns true if they were different.
static bool unite(Tokens *t, Ref a, Ref b) {
  if (!t->of[a]) t->of[a] = a;
  Ref x = root(t, a), y = root(t, b);
  t->of[x] = y;
  t->bad[y] |= t->bad[x];
  return x != y;
}

// Returns the value or variable that receives the operand of instruction i
// (number r), or 0 if i does not pass its operand on.
static Ref passes(const Ins *i, Ref r) {
  if (i->op == OP_VSET) return i->a[0];
  if (i->op == OP_VAR || i->op == OP_VGET || op_pure((Op)i->op)) return r;
  return 0;
}

static bool follow(Tokens *t) {
  bool news = false;
  Operand o;
  for (Ref r = 1; r < t->fn->ins.n; r++) {
    const Ins *i = ir_get(t->fn, r);
    if (i->op == OP_MBARTRY && !t->of[r]) t->of[r] = r, news = true;
    for (Operands w = operands_of(t->fn, i); operands_next(&w, &o);) {
      if (o.kind == OPERAND_MEM && t->of[o.off]) t->bad[root(t, o.off)] = true;
      bool list = o.kind == OPERAND_RUN || !o.ref || !t->of[o.ref];
      if (list || (i->op == OP_VSET && o.ref == i->a[0])) continue;
      Ref to = passes(i, r);
      if (to) news |= unite(t, to, o.ref);
      else if (i->op != OP_IF) t->bad[root(t, o.ref)] = true;
    }
  }
  return news;
}

// Handles the branch at r, whose condition is in a set. If the branch only
// waits, adds its waits to this set. Otherwise marks the set as bad.
static void take_waits(Tokens *t, Ref r) {
  Ref token = ir_get(t->fn, r)->a[0];
  for (int depth = 1; depth > 0;) {
    const Ins *i = ir_get(t->fn, ++r);
    if (i->op == OP_IF) depth++;
    else if (i->op == OP_END) depth--;
    else if (i->op == OP_MBARWAIT) unite(t, r, token);
    else if (i->op != OP_ELSE && i->op != OP_VGET && i->op != OP_NOP &&
             !op_pure((Op)i->op))
      t->bad[root(t, token)] = true;
  }
}

Ref *try_wait_find(Ctx *cx, const Fn *fn) {
  size_t n = fn->ins.n;
  Tokens t = {.fn = fn, .of = arena_zero(cx, &cx->scratch, n * sizeof *t.of),
              .bad = arena_zero(cx, &cx->scratch, n)};
  Ref *token = arena_zero(cx, &cx->scratch, n * sizeof *token);
  Ref *first = arena_zero(cx, &cx->scratch, n * sizeof *first);
  while (follow(&t)) {}
  for (Ref r = 1; r < n; r++)
    if (ir_get(fn, r)->op == OP_IF && t.of[ir_get(fn, r)->a[0]])
      take_waits(&t, r);
  for (Ref r = 1; r < n; r++) {
    Op op = (Op)ir_get(fn, r)->op;
    if (!t.of[r] || (op != OP_MBARTRY && op != OP_MBARWAIT)) continue;
    Ref of = root(&t, r);
    if (t.bad[of]) continue;
    if (!first[of]) first[of] = r;
    token[r] = first[of];
  }
  return token;
}
// SPDX-License-Identifier: MIT
