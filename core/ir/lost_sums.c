// Sums of warpgroup MMAs that are lost. An MMA whose field ACCUMULATE is false
// overwrites its accumulator. If it does so in each iteration of a loop in
// which nothing else reads the accumulator, or after another MMA with no read
// in between, the earlier sums are lost.
#include "ir/lost_sums.h"

#include "ir/operands.h"

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

// Reports whether i reads registers `mem` otherwise than by accumulating.
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

static bool begins(const Ins *i) {
  return i->op == OP_FOR || i->op == OP_LOOP || i->op == OP_IF ||
         i->op == OP_ONCE;
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

// Reports whether an instruction of the region that contains r reads registers
// `mem`, if r is in a loop that executes r in each iteration.
static bool loop_reads(const Fn *fn, Ref r, int64_t mem, bool *in_loop) {
  int depth = 0;
  Ref first = r - 1;
  for (; first > 0; first--) {
    const Ins *i = ir_get(fn, first);
    if (i->op == OP_END) depth++;
    else if (begins(i) && depth-- == 0) break;
  }
  const Ins *head = first ? ir_get(fn, first) : NULL;
  *in_loop = head && (head->op == OP_FOR || head->op == OP_LOOP) &&
             !runs_once(fn, first);
  depth = 0;
  for (Ref j = first + 1; *in_loop && j < fn->ins.n; j++) {
    const Ins *i = ir_get(fn, j);
    if (i->op == OP_END && depth-- == 0) break;
    if (begins(i)) depth++;
    if (reads(fn, i, mem)) return true;
  }
  return false;
}

// Reports whether an MMA before r in the same region wrote the same registers,
// and nothing read them since.
static bool follows_mma(const Fn *fn, Ref r, int64_t mem, uint32_t reg) {
  for (Ref j = r - 1; j > 0; j--) {
    const Ins *i = ir_get(fn, j);
    uint32_t its;
    if (begins(i) || i->op == OP_ELSE || i->op == OP_END || reads(fn, i, mem))
      return false;
    if (i->op == OP_WGMMA && target(fn, i, &its) == mem && its == reg)
      return true;
  }
  return false;
}

Ref lost_sums(const Fn *fn, Ref after) {
  for (Ref r = after + 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    uint32_t reg;
    bool in_loop = false;
    if (!overwrites(fn, i)) continue;
    int64_t mem = target(fn, i, &reg);
    if (follows_mma(fn, r, mem, reg)) return r;
    if (!loop_reads(fn, r, mem, &in_loop) && in_loop) return r;
  }
  return 0;
}
// SPDX-License-Identifier: MIT
