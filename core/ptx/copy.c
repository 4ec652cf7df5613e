// copy.c: cp.async.
#include <string.h>

#include "atoms/atom.h"
#include "ptx/inside.h"

// The source bytes that a cp.async reads. `pred` is the predicate that states
// whether the cp.async reads any bytes; 0: it always reads. `bytes` is the
// number of bytes to read; 0: all bytes.
typedef struct Source {
  Ref pred, bytes;
} Source;

static Source source_of(PtxOp *o, uint32_t k, int64_t bytes) {
  const PtxBuild *b = o->b;
  const PtxArg *a = op_arg(o, k);
  bool ignores = a->kind == PTX_A_REG &&
    b->m->regs.p[b->f->reg + (uint32_t)a->value].type.kind == PTX_P;
  if (ignores) return (Source){op1(o, OP_NOT, op_pred(o, a)), 0};
  Ref n = op_value(o, a, DT_U32), zero = number(o, DT_U32, 0);
  int64_t v, yes, no;
  if (ir_const(b->fn, n, &v) && v == bytes) return (Source){0, 0};
  Ref some = op2(o, OP_NE, n, zero);
  if (ir_const(b->fn, n, &v) && v == 0) return (Source){some, 0};
  const Ins *i = ir_get(b->fn, n);
  if (i->op == OP_BITCAST) i = ir_get(b->fn, i->a[0]);
  bool either = i->op == OP_SEL && ir_const(b->fn, i->a[1], &yes) &&
                ir_const(b->fn, i->a[2], &no);
  if (either && (yes == 0 || yes == bytes) && (no == 0 || no == bytes)) {
    return (Source){some, 0};
  }
  return (Source){some, op2(o, OP_MIN, n, number(o, DT_U32, bytes))};
}

void row_copy_wait(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  (void)k;
  bool all = strcmp(o->i->op, "cp.async.wait_all") == 0;
  bool wait = strcmp(o->i->op, "cp.async.wait_group") == 0;
  if (!wait) ir_emit(b->cx, b->fn, (Ins){.op = OP_CPCOMMIT});
  if (!wait && !all) return;
  ir_emit(b->cx, b->fn, (Ins){.op = OP_CPWAIT,
                              .imm = wait ? op_constant_in(o, 0, 0, INT32_MAX)
                                          : 0});
}

void row_copy(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  unsigned flags = op_has(o, "cg") ? CPF_GLOBAL : 0;
  if (!flags) op_has(o, "ca");
  op_where(o);
  op_has(o, "global");
  Place d = op_place(o, op_arg(o, 0), IN_SHARED);
  Place s = op_place(o, op_arg(o, 1), IN_GLOBAL);
  bool hint = op_has(o, "L2::cache_hint");
  op_hints(o);  // Mark cache hints as used. OP_CPASYNC has no flags for them.
  int64_t bytes = op_constant(o, 2);
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    op_reject(o, "its size is not 4, 8 or 16 bytes");
  }
  Source from = {0, 0};
  if (o->i->args > (hint ? 4u : 3u)) from = source_of(o, 3, bytes);
  if (from.pred) flags |= CPF_ZFILL;
  Ref x[6] = {d.mem, d.off, s.mem, s.off, from.pred, from.bytes};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_CPASYNC, .imm = bytes * 8,
                .flags = (uint16_t)flags}, x, from.bytes ? 6 : 5, NULL, 0);
}
// SPDX-License-Identifier: MIT
