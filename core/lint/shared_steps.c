// Finds steps of scans and reductions in shared memory that lack elements.
//
// In a scan, thread i adds element i - d if this element exists, which means i
// >= d. With the condition i > d, the scan lacks element 0 in thread d.
//
// In a reduction by halves, each thread i < d adds element i + d to element i.
// If the thread stores only element i + d, without adding element i, element i
// is lost. A single step of this kind may be an intended copy of a half.
// Several of them are a mistake.
#include "lint/shared_steps.h"

#include "ir/rows.h"

enum { NEAR = 8 };

typedef struct Search {
  const Fn *fn;
  // for each instruction: the innermost IF that executes the instruction if the
  // IF's condition is true, or 0
  Ref *branch;
} Search;

static void find_branches(Search *s) {
  enum { DEPTH = 64 };
  Ref open[DEPTH] = {0};
  int depth = 0, deep = 0;
  for (Ref r = 1; r < s->fn->ins.n; r++) {
    Op op = (Op)ir_get(s->fn, r)->op;
    s->branch[r] = open[depth];
    if (op == OP_ELSE && !deep) open[depth] = 0;
    if (op == OP_END) {
      if (deep) deep--;
      else if (depth) depth--;
    }
    if (!op_opens(op)) continue;
    if (depth + 1 == DEPTH || deep) deep++;
    else open[++depth] = op == OP_IF ? r : 0;
  }
}

// Reports whether two integers are equal: the same value, equal constants, or
// reads of the same variable.
static bool is_same(const Fn *fn, Ref a, Ref b) {
  const Ins *x = ir_get(fn, a), *y = ir_get(fn, b);
  int64_t v, u;
  if (a == b) return true;
  if (ir_const(fn, a, &v) && ir_const(fn, b, &u)) return v == u;
  return x->op == OP_VGET && y->op == OP_VGET && x->a[0] == y->a[0];
}

// Reports whether r is i + d, or i - d if `minus` is set.
static bool is_apart(const Fn *fn, Ref r, Ref i, Ref d, bool minus) {
  const Ins *x = ir_get(fn, r);
  int64_t v, u;
  bool first = is_same(fn, x->a[0], i) && is_same(fn, x->a[1], d);
  bool second = is_same(fn, x->a[1], i) && is_same(fn, x->a[0], d);
  if (minus && x->op == OP_SUB) return first;
  if (x->op != OP_ADD) return false;
  if (is_same(fn, x->a[0], i) && ir_const(fn, x->a[1], &v) &&
      ir_const(fn, d, &u))
    return v == (minus ? -u : u);
  return !minus && (first || second);
}

// Reports whether value r is computed from element `at` of a shared tensor or,
// if d is not 0, from element at + d.
static bool has_element(const Fn *fn, Ref r, Ref mem, Ref at, Ref d,
                        int depth) {
  const Ins *i = ir_get(fn, r);
  if (!r || depth == 0) return false;
  if (i->op == OP_LD)
    return i->a[0] == mem && (d ? is_apart(fn, i->a[1], at, d, false)
                                : is_same(fn, i->a[1], at));
  if (!op_pure((Op)i->op)) return false;
  for (int k = 0; k < 3; k++)
    if (has_element(fn, i->a[k], mem, at, d, depth - 1)) return true;
  return false;
}

static bool is_shared(const Fn *fn, const Ins *i) {
  return op_class((Op)i->op) == CLASS_ACCESS &&
         ir_get(fn, i->a[0])->op == OP_SMEM;
}

// Reports whether the kernel stores element `at` of a shared tensor.
static bool is_stored(const Fn *fn, Ref mem, Ref at) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_ST && i->a[0] == mem && is_same(fn, i->a[1], at))
      return true;
  }
  return false;
}

// Reports whether r is i - (d - 1) for a constant d above 1.
static bool is_one_nearer(const Fn *fn, Ref r, Ref i, Ref d) {
  const Ins *x = ir_get(fn, r);
  int64_t v, u;
  return x->op == OP_ADD && is_same(fn, x->a[0], i) &&
         ir_const(fn, x->a[1], &v) && ir_const(fn, d, &u) && u > 1 &&
         v == 1 - u;
}

// Reports whether the branch of load r loads a third element, other than `at`
// and the element that r loads. The branch's condition may then guard that
// element.
static bool is_window(const Search *s, Ref r, Ref at) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  for (Ref o = s->branch[r]; o < ir_region_end(fn, s->branch[r]); o++) {
    const Ins *x = ir_get(fn, o);
    if (x->op == OP_LD && ir_get(fn, x->a[0])->op != OP_RMEM &&
        !is_same(fn, x->a[1], at) && !is_same(fn, x->a[1], i->a[1]))
      return true;
  }
  return false;
}

// Reports whether load r reads element i - d although its condition is i > d,
// or i >= d + 1.
static bool omits_first(const Search *s, Ref r) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  const Ins *p = ir_get(fn, ir_get(fn, s->branch[r])->a[0]);
  Ref d = p->a[0], at = p->a[1];
  if (!s->branch[r] || !is_stored(fn, i->a[0], at) || is_window(s, r, at))
    return false;
  return (p->op == OP_LT && is_apart(fn, i->a[1], at, d, true)) ||
         (p->op == OP_LE && is_one_nearer(fn, i->a[1], at, d));
}

// Reports whether store r to element i, under the condition i < d, stores a
// value that contains element i + d but not element i.
static bool loses_own(const Search *s, Ref r) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  const Ins *p = ir_get(fn, ir_get(fn, s->branch[r])->a[0]);
  if (!s->branch[r] || p->op != OP_LT || !is_same(fn, p->a[0], i->a[1]))
    return false;
  return has_element(fn, i->a[2], i->a[0], i->a[1], p->a[1], NEAR) &&
         !has_element(fn, i->a[2], i->a[0], i->a[1], 0, NEAR);
}

void shared_steps(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const SharedStep *s), void *ud) {
  Search s = {.fn = fn};
  Ref lost = 0;
  bool again = false;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (!is_shared(fn, i)) continue;
    if (!s.branch) {
      s.branch = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.branch);
      find_branches(&s);
    }
    if (i->op == OP_LD && omits_first(&s, r))
      found(ud, &(SharedStep){.at = r, .mem = ir_memof(fn, i->a[0])});
    if (i->op != OP_ST || !loses_own(&s, r)) continue;
    again |= lost || ir_loop_around(fn, r);
    if (!lost) lost = r;
  }
  if (again)
    found(ud, &(SharedStep){.at = lost, .lost = true,
                            .mem = ir_memof(fn, ir_get(fn, lost)->a[0])});
}
// SPDX-License-Identifier: MIT
