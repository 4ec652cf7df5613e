// Finds sums that are lost. A warpgroup MMA whose field ACCUMULATE is false
// overwrites its accumulator. The earlier sums are lost if it does so in each
// iteration of a loop in which nothing else reads the accumulator, or after
// another MMA with no read in between. A loop also loses sums if each iteration
// begins by resetting the accumulators of an MMA, or a variable, and only adds
// to them afterwards.
#include "ir/lost_sums.h"

#include "ir/operands.h"

#include <string.h>

// Returns the index in Fn.mem of the registers that the MMA writes, and in *reg
// the first of these registers.
static int64_t target(const Fn *fn, const Ins *i, uint32_t *reg) {
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (o.kind != OPERAND_RUN || !o.written) continue;
    *reg = o.reg[0];
    return ir_get(fn, o.ref)->imm;
  }
  return -1;
}

// Reports whether i is an MMA that never accumulates.
static bool overwrites(const Fn *fn, const Ins *i) {
  if (i->op != OP_WGMMA) return false;
  Operand o;
  int64_t add = 1;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if ((o.kind == OPERAND_PRED || o.kind == OPERAND_VALUE) && o.ref &&
        ir_type(fn, o.ref) == DT_BOOL && !ir_const(fn, o.ref, &add))
      return false;
  return !add;
}

// Reports whether i reads registers `mem`, other than by accumulating in them.
static bool reads(const Fn *fn, const Ins *i, int64_t mem) {
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    bool registers = o.kind == OPERAND_RUN || o.kind == OPERAND_MEM ||
                     o.kind == OPERAND_OBJECT;
    if (!registers || !o.ref || ir_get(fn, o.ref)->imm != mem) continue;
    if (!ir_is_mem(fn, o.ref)) continue;
    if (i->op == OP_WGMMA ? !o.written : o.read) return true;
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

// Returns the instruction that begins the region that contains r, and the
// region's END. Returns 0 if no region contains r.
static Ref region_of(const Fn *fn, Ref r, Ref *end) {
  int depth = 0;
  Ref first = r - 1;
  for (; first > 0; first--) {
    const Ins *i = ir_get(fn, first);
    if (i->op == OP_END) depth++;
    else if (op_opens((Op)i->op) && depth-- == 0) break;
  }
  if (first) *end = ir_region_end(fn, first);
  return first;
}

// Reports whether the region that contains r is a loop that executes r in each
// iteration, and another instruction of it reads registers `mem`.
static bool loop_reads(const Fn *fn, Ref r, int64_t mem, bool *in_loop) {
  Ref end, first = region_of(fn, r, &end);
  Op op = (Op)ir_get(fn, first)->op;
  *in_loop = (op == OP_FOR || op == OP_LOOP) && !runs_once(fn, first);
  for (Ref j = first + 1; *in_loop && j < end; j++)
    if (reads(fn, ir_get(fn, j), mem)) return true;
  return false;
}

// Reports whether an MMA before r in the same region wrote the same registers,
// and nothing read them since.
static bool follows_mma(const Fn *fn, Ref r, int64_t mem, uint32_t reg) {
  for (Ref j = r - 1; j > 0; j--) {
    const Ins *i = ir_get(fn, j);
    uint32_t its;
    if (op_effect((Op)i->op) & (EF_OPENS | EF_CLOSES) || reads(fn, i, mem))
      return false;
    if (i->op == OP_WGMMA && target(fn, i, &its) == mem && its == reg)
      return true;
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

static bool is_mma(const Ins *i) {
  return i->op == OP_MMA || i->op == OP_WGMMA;
}

// Reports whether i only adds to the sum `what`: by an MMA that accumulates, or
// by setting the variable to a sum that contains its old value. Sets bits in
// `sum` for results that contain the variable's value.
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
  if (mma) return is_mma(i);
  bool get = i->op == OP_VGET && i->a[0] == what;
  bool plus = reads_sum && (i->op == OP_ADD || i->op == OP_FMA);
  if (get || plus)
    sum[(r - base) / 64] |= (uint64_t)1 << ((r - base) & 63);
  if (i->op == OP_VSET && i->a[0] == what) return true;
  return get || plus || (!reads_sum && !uses(fn, i, what));
}

// Returns the loop that executes instruction r in each iteration and may have
// several iterations, or 0.
static Ref loop_of(const Fn *fn, Ref r, Ref *end) {
  Ref first = region_of(fn, r, end);
  bool loop = ir_get(fn, first)->op == OP_FOR && !runs_once(fn, first);
  return loop ? first : 0;
}

// Reports whether instruction r resets a sum in each iteration of a loop that
// only adds to the sum, and later instructions use the sum.
static bool resets_sum(Ctx *cx, const Fn *fn, Ref r) {
  Ref what = reset_by(fn, r), end = 0;
  Ref first = what ? loop_of(fn, r, &end) : 0;
  if (!first || what > first || !dtype_is_float(ir_type(fn, what)))
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
    adding |= is_mma(i) ? uses(fn, i, what)
            : i->op == OP_VSET && i->a[0] == what && !reset_by(fn, j);
  }
  for (Ref j = end; j < fn->ins.n && !used; j++)
    used = uses(fn, ir_get(fn, j), what) && reset_by(fn, j) != what;
  return adding && used;
}

Ref lost_sums(Ctx *cx, const Fn *fn, Ref after) {
  for (Ref r = after + 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    uint32_t reg;
    bool in_loop = false;
    if (resets_sum(cx, fn, r)) return r;
    if (!overwrites(fn, i)) continue;
    int64_t mem = target(fn, i, &reg);
    if (follows_mma(fn, r, mem, reg)) return r;
    if (!loop_reads(fn, r, mem, &in_loop) && in_loop) return r;
  }
  return 0;
}
// SPDX-License-Identifier: MIT
