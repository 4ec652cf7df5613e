// Checks, before a kernel is compiled, that its memory and registers fit the
// target.
#include "tensor/preflight.h"

#include <inttypes.h>
#include <stdio.h>

#include "ir/operands.h"
#include "ir/target.h"

// ---- shared memory ----

int64_t preflight_bytes(const Mem *m) {
  int64_t bits;
  if (__builtin_mul_overflow(m->count, (int64_t)dtype_bits(m->type), &bits) ||
      bits > INT64_MAX - 7)
    return INT64_MAX / 8;
  return (bits + 7) / 8;
}

static void budget_row(Ctx *cx, const Fn *fn, const Mem *m, int i, Buf *b) {
  char name[24];
  snprintf(name, sizeof name, "#%d", i);
  buf_printf(cx, b, "\n  %-12s %-5s %-34s %9" PRId64 " bytes",
             m->name ? ir_str(fn, m->name) : name, dtype_name(m->type),
             m->layout ? ir_str(fn, m->layout) : "", preflight_bytes(m));
}

void preflight_smem(Ctx *cx, const Fn *fn, int sm) {
  int64_t budget = target_smem(sm);
  if (fn->smem_bytes <= budget) return;
  Buf b = {0};
  int shown = 0, n = 0;
  for (size_t i = 0; i < fn->mem.n; i++) {
    const Mem *m = &fn->mem.p[i];
    if (m->space != SP_SMEM) continue;
    if (shown < 8) budget_row(cx, fn, m, n, &b), shown++;
    n++;
  }
  if (n > shown) buf_printf(cx, &b, "\n  ... and %d more", n - shown);
  buf_printf(cx, &b, "\n  %-53s %9" PRId64 " bytes", "total, aligned",
             fn->smem_bytes);
  char arch[16] = "any GPU";
  if (sm) snprintf(arch, sizeof arch, "sm_%d", sm);
  char *rows = arena_printf(cx, &cx->scratch, "%s", b.p);
  buf_free(&b);
  ctx_fail(cx, ERR_SMEM, "shared memory of %" PRId64 " bytes is over the "
           "budget of %s, %" PRId64 " bytes (%" PRId64 " KiB)%s\n  "
           "fewer stages or a smaller tile would fit", fn->smem_bytes, arch,
           budget, budget / 1024, rows);
}

// ---- registers ----

// Returns an instruction that selects one of more than PICK_SELECTS registers
// of m by a traced index. Returns 0 if there is none.
static Ref chooses(const Fn *fn, const Mem *m) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (!operand_has((Op)i->op, ROLE_INDEX)) continue;
    Ref at = operand_ref(fn, i, ROLE_INDEX);
    if (i->imm > PICK_SELECTS && ir_memof(fn, i->a[0]) == m &&
        !ir_unrolled(fn, at))
      return r;
  }
  return 0;
}

// Reports whether m is a fragment. Registers that were read from PTX have no
// layout, so they are not fragments.
static bool is_fragment(const Mem *m) {
  return m->space == SP_RMEM && m->layout != 0;
}

const char *preflight_indexed(Ctx *cx, const Fn *fn, const Mem *m) {
  Ref r = is_fragment(m) ? chooses(fn, m) : 0;
  if (!r) return NULL;
  const Src *s = &fn->src.p[ir_get(fn, m->ref)->src];
  return arena_printf(cx, &cx->scratch, "line %u: the fragment %s%s%s of %"
                      PRId64 " %s values lies in local memory: line %u indexes "
                      "%" PRId64 " of them by a traced value (only up to %d "
                      "become selects)", s->line,
                      m->name ? ir_str(fn, m->name) : "", m->name ? " " : "",
                      ir_str(fn, m->layout), m->count, dtype_name(m->type),
                      fn->src.p[ir_get(fn, r)->src].line, ir_get(fn, r)->imm,
                      PICK_SELECTS);
}

const char *preflight_fragment(Ctx *cx, const Fn *fn, const Mem *m) {
  enum { THREAD_REGS = 255 };
  int bits = dtype_bits(m->type);
  int64_t regs = (m->count * (bits == 6 ? 8 : bits) + 31) / 32;
  if (!is_fragment(m) || regs <= THREAD_REGS) return NULL;
  const Src *s = &fn->src.p[ir_get(fn, m->ref)->src];
  return arena_printf(cx, &cx->scratch, "line %u: the fragment %s%s%s of %"
                      PRId64 " %s values takes %" PRId64 " registers; a thread "
                      "has %d, the rest spills to memory", s->line,
                      m->name ? ir_str(fn, m->name) : "", m->name ? " " : "",
                      ir_str(fn, m->layout), m->count, dtype_name(m->type),
                      regs, THREAD_REGS);
}
// SPDX-License-Identifier: MIT
