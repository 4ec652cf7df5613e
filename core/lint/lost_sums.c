// Finds sums that are lost. An MMA of a warpgroup or of tcgen05 whose field
// ACCUMULATE is false overwrites its accumulator. The earlier sums are lost in
// two cases: the MMA overwrites them in the second iteration of a loop in which
// nothing else reads the accumulator, or after another MMA with no read in
// between. Sums in tensor memory are not lost if other warps read them as often
// as the MMA writes them. The field may depend on the loop's counter: with
// `k:gt(1)` instead of `k:gt(0)`, the second iteration overwrites the sums. A
// loop also loses the sums of its earlier iterations if each iteration begins
// by resetting the accumulators of an MMA, or a variable, and only adds to them
// afterwards.
#include "lint/lost_sums.h"

#include "ir/operands.h"
#include "lint/thread_value.h"

#include <string.h>

// The accumulators of an MMA. mem: the object's index into Fn.mem. first: the
// first register number, or in tensor memory the Ref of the offset.
typedef struct Target {
  int64_t mem;
  uint32_t first;
} Target;

static Target target(const Fn *fn, const Ins *i) {
  Operand o = operand_of(fn, i, ROLE_ACC);
  return (Target){ir_get(fn, o.ref)->imm,
                  o.kind == OPERAND_RUN ? o.reg[0] : o.off};
}

// Reports whether i is an MMA that has a field ACCUMULATE.
static bool may_overwrite(const Fn *fn, const Ins *i) {
  return op_class((Op)i->op) == CLASS_MMA && operand_ref(fn, i, ROLE_ADD);
}

// Computes value r in the iteration of `loop` in which its counter is
// `counter`. Returns false if r depends on anything else.
static bool value_at(const Fn *fn, Ref r, Ref loop, int64_t counter, int depth,
                     uint64_t *value) {
  const Ins *i = ir_get(fn, r);
  uint64_t v[3] = {0};
  *value = (uint64_t)counter;
  if (r == loop) return true;
  if (i->op == OP_SREG || !thread_value_has(fn, i) || depth == 0) return false;
  for (int k = 0; k < 3; k++)
    if (i->a[k] && !value_at(fn, i->a[k], loop, counter, depth - 1, &v[k]))
      return false;
  return thread_value(fn, i, 0, v, value);
}

// Reports whether MMA i does not accumulate in iteration number k of `loop` (0:
// i is in no loop).
static bool overwrites(const Fn *fn, const Ins *i, Ref loop, int64_t k) {
  enum { NEAR = 8 };
  Ref add = operand_ref(fn, i, ROLE_ADD);
  const Ins *l = ir_get(fn, loop);
  int64_t first = 0, step = 0, is;
  uint64_t value;
  if (ir_const(fn, add, &is)) return !is;
  if (l->op != OP_FOR || !ir_const(fn, l->a[0], &first) ||
      !ir_const(fn, l->a[2], &step))
    return false;
  return value_at(fn, add, loop, first + k * step, NEAR, &value) && !value;
}

// Reports whether i reads object `mem`, other than as an accumulator to which
// it adds. Objects in tensor memory may overlap, so a read of any of them
// counts.
static bool reads(const Fn *fn, const Ins *i, int64_t mem) {
  Operand o;
  bool tensor = fn->mem.p[mem].space == SP_TMEM;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    bool object = o.kind == OPERAND_RUN || o.kind == OPERAND_MEM ||
                  o.kind == OPERAND_OBJECT;
    if (!object || !o.ref || !ir_is_mem(fn, o.ref)) continue;
    if (ir_get(fn, o.ref)->imm != mem &&
        !(tensor && ir_memof(fn, o.ref)->space == SP_TMEM))
      continue;
    if (may_overwrite(fn, i) ? o.role != ROLE_ACC : o.read) return true;
  }
  return false;
}

// Reports whether the loop at r executes its body at most once.
static bool runs_once(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  int64_t v[3];
  if (i->op != OP_FOR) return false;
  for (int k = 0; k < 3; k++)
    if (!ir_const(fn, i->a[k], &v[k])) return false;
  return v[2] > 0 ? v[1] - v[0] <= v[2] : v[0] - v[1] <= -v[2];
}

// Returns the loop whose body directly contains instruction r, if it may have
// several iterations. Otherwise returns 0. Sets *end to the loop's END.
static Ref repeats(const Fn *fn, Ref r, Ref *end) {
  Ref first = ir_region_around(fn, r);
  if (!op_loops((Op)ir_get(fn, first)->op) || runs_once(fn, first)) return 0;
  *end = ir_region_end(fn, first);
  return first;
}

// Reports whether an instruction from `first` to `end` reads registers `mem`.
static bool any_reads(const Fn *fn, Ref first, Ref end, int64_t mem) {
  while (first < end && !reads(fn, ir_get(fn, first), mem)) first++;
  return first < end;
}

// Returns the number of loops around r that wait at an mbarrier directly, not
// in an inner loop. Warps with different roles that pass tiles to each other
// wait once for each tile.
static int waiting_loops(const Fn *fn, Ref r) {
  int n = 0;
  for (Ref loop = ir_loop_around(fn, r); loop;
       loop = ir_loop_around(fn, loop)) {
    Ref end = ir_region_end(fn, loop), j = loop + 1;
    while (j < end && ir_get(fn, j)->op != OP_MBARWAIT)
      j = op_loops((Op)ir_get(fn, j)->op) ? ir_region_end(fn, j) : j + 1;
    n += j < end;
  }
  return n;
}

// Reports whether other threads may read accumulators `mem` of MMA r, in tensor
// memory, in each iteration of the loop from `first` to `end`. This holds if
// code outside the loop reads them within at least as many waiting loops as r.
static bool others_read(const Fn *fn, Ref r, Ref first, Ref end, int64_t mem) {
  if (fn->mem.p[mem].space != SP_TMEM) return false;
  int loops = waiting_loops(fn, r);
  for (Ref j = 1; loops && j < fn->ins.n; j++)
    if ((j < first || j > end) && reads(fn, ir_get(fn, j), mem) &&
        waiting_loops(fn, j) >= loops)
      return true;
  return false;
}

// Reports whether an MMA before r in the same region wrote accumulators t, and
// nothing between that MMA and r reads them.
static bool follows_mma(const Fn *fn, Ref r, Target t) {
  for (Ref j = r - 1; j > 0; j--) {
    const Ins *i = ir_get(fn, j);
    if (op_effect((Op)i->op) & (EF_OPENS | EF_CLOSES) || reads(fn, i, t.mem))
      return false;
    if (!may_overwrite(fn, i)) continue;
    Target its = target(fn, i);
    if (its.mem == t.mem && its.first == t.first) return true;
  }
  return false;
}

// ---- resets in loops ----

// Returns the object or the variable that instruction r sets to a constant, or
// 0.
static Ref reset_by(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  if (i->op == OP_VSET && ir_get(fn, i->a[1])->op == OP_CONST) return i->a[0];
  bool fills = i->op == OP_FILL && ir_get(fn, i->a[2])->op == OP_CONST;
  return fills ? i->a[0] : 0;
}

static bool uses(const Fn *fn, const Ins *i, Ref r) {
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.ref == r || (o.off && o.off == r)) return true;
  return false;
}

// Reports whether instruction r does nothing with the sum in `what` except to
// add to it. An MMA that accumulates adds, and so does an instruction that sets
// variable `what` to a sum that contains its old value. Sets bit r - base of
// `sum` if the result of r contains the variable's value.
static bool adds(const Fn *fn, Ref r, Ref what, uint64_t *sum, Ref base) {
  const Ins *i = ir_get(fn, r);
  bool mma = false, reads_sum = false;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (o.kind == OPERAND_RUN && o.ref == what && o.written) mma = true;
    Ref v = o.kind == OPERAND_MEM ? o.off : o.ref;
    if (v > base && sum[(v - base) / 64] >> ((v - base) & 63) & 1)
      reads_sum = true;
  }
  if (mma) return op_class((Op)i->op) == CLASS_MMA;
  bool get = i->op == OP_VGET && i->a[0] == what;
  bool plus = reads_sum && (i->op == OP_ADD || i->op == OP_FMA);
  if (get || plus)
    sum[(r - base) / 64] |= (uint64_t)1 << ((r - base) & 63);
  if (i->op == OP_VSET && i->a[0] == what) return true;
  return get || plus || (!reads_sum && !uses(fn, i, what));
}

// Reports whether instruction r resets a sum at the start of each iteration of
// a loop that otherwise only adds to it, although later instructions use the
// sum.
static bool resets_sum(Ctx *cx, const Fn *fn, Ref r) {
  Ref what = reset_by(fn, r), end = 0;
  Ref first = what ? repeats(fn, r, &end) : 0;
  if (!first || ir_get(fn, first)->op != OP_FOR || what > first ||
      !dtype_is_float(ir_type(fn, what)))
    return false;
  for (Ref j = first + 1; j < r; j++)
    if (uses(fn, ir_get(fn, j), what)) return false;
  uint64_t *sum = NEW(cx, uint64_t, (end - first) / 64 + 1);
  memset(sum, 0, ((end - first) / 64 + 1) * sizeof *sum);
  bool adding = false, used = false;
  for (Ref j = r + 1; j < end; j++) {
    if (reset_by(fn, j) == what && j != r && ir_get(fn, j)->op == OP_FILL)
      continue;
    if (!adds(fn, j, what, sum, first)) return false;
    const Ins *i = ir_get(fn, j);
    adding |= op_class((Op)i->op) == CLASS_MMA ? uses(fn, i, what)
            : i->op == OP_VSET && i->a[0] == what && !reset_by(fn, j);
  }
  for (Ref j = end; j < fn->ins.n && !used; j++)
    used = uses(fn, ir_get(fn, j), what) && reset_by(fn, j) != what;
  return adding && used;
}

// Reports whether instruction r is an MMA that overwrites unread sums.
static bool overwrites_sum(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  int64_t is;
  Ref end;
  if (!may_overwrite(fn, i)) return false;
  if (ir_const(fn, operand_ref(fn, i, ROLE_ADD), &is) && is) return false;
  Target t = target(fn, i);
  Ref first = repeats(fn, r, &end);
  if (overwrites(fn, i, first, 0) && follows_mma(fn, r, t)) return true;
  return first && overwrites(fn, i, first, 1) &&
         !any_reads(fn, first + 1, end, t.mem) &&
         !others_read(fn, r, first, end, t.mem);
}

Ref lost_sums(Ctx *cx, const Fn *fn, Ref after) {
  for (Ref r = after + 1; r < fn->ins.n; r++)
    if (resets_sum(cx, fn, r) || overwrites_sum(fn, r)) return r;
  return 0;
}
// SPDX-License-Identifier: MIT
