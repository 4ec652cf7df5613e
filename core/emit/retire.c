// Keeps the compiler from reading registers before the wait for the
// asynchronous operation that writes them.
//
// The compiler assumes that an asm statement has completed when the next one
// starts. Therefore an empty asm statement follows each wait. It names the
// registers of the wgmmas or tcgen05.lds that the wait completes, so reads of
// these registers cannot move above it.
#include "emit/retire.h"

#include <string.h>

#include "atoms/atom.h"
#include "emit/asm.h"
#include "emit/expr.h"
#include "ir/async_regs.h"

// The registers that a pending asynchronous operation writes.
typedef struct Written {
  Operand o;
  char constraint;   // constraint letter of the registers' asm operands
  const char *type;  // C type
  bool refs;         // whether helpers take the registers one by one
} Written;

static Written written_by(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  Written w = {.constraint = 'r', .type = "unsigned"};
  bool mma = op_rows[i->op].imm == IMM_MMA;
  Operands all = operands_of(e->fn, i);
  operands_next(&all, &w.o);
  if (mma) {
    const AtomMma *row = atom_mma((int)i->imm);
    w.constraint = row->regs[0];
    w.type = atomtext_reg_type(row->regs[0], row->d_type);
  }
  w.refs = uses_atom(e, mma, i->imm)->refs;
  return w;
}

static void note_done(void *ud, Ref wait, Ref of) {
  Emit *e = ud;
  Written w = written_by(e, of);
  for (size_t k = 0; k < e->nretire; k++) {
    const Retire *r = &e->retire[k];
    Written p = written_by(e, r->of);
    if (r->wait == wait && operands_same(&w.o, &p.o)) return;
  }
  Retire *v = NEW(e->cx, Retire, e->nretire + 1);
  if (e->nretire) memcpy(v, e->retire, e->nretire * sizeof *v);
  v[e->nretire++] = (Retire){wait, of};
  e->retire = v;
}

void retire_note(Emit *e) {
  async_regs_run(e->cx, e->fn, note_done, e);
}

// Returns the name of a helper, such as "wgmma_retire_f32x64". The helper
// contains the empty asm statement for the registers of an operation.
static const char *name_of(Emit *e, Ref of) {
  Written w = written_by(e, of);
  bool load = ir_get(e->fn, of)->op == OP_TCLD;
  return arena_printf(e->cx, &e->cx->scratch, "%s_retire_%sx%d",
                      load ? "tmem" : "wgmma",
                      w.constraint == 'f' ? "f32"
                      : strcmp(w.type, "int") == 0 ? "s32" : "u32", w.o.n);
}

void retire_at(Emit *e, Ref r) {
  for (size_t k = 0; k < e->nretire; k++) {
    if (e->retire[k].wait != r) continue;
    Written w = written_by(e, e->retire[k].of);
    text_indent(e);
    text_printf(e, "%s(", name_of(e, e->retire[k].of));
    expr_regs(e, w.refs, &w.o, w.type);
    text_puts(e, ")");
    text_end(e);
  }
}

// Writes the helpers, one for each type and number of registers.
void retire_print(Emit *e) {
  for (size_t k = 0; k < e->nretire; k++) {
    Written w = written_by(e, e->retire[k].of);
    const char *name = name_of(e, e->retire[k].of);
    bool told = false;
    for (size_t j = 0; j < k && !told; j++)
      told = strcmp(name, name_of(e, e->retire[j].of)) == 0;
    if (told) continue;
    AsmFn f = {.e = e, .result = "void", .name = name,
               .over = "// behind the wait: no use of these can move before "
                       "it\n"};
    asm_registers(&f, w.refs, true, w.type, "d", w.o.n);
    asm_print(&f, "\"\"",
              PTX(e, "\n      : %s :: \"memory\"",
                  asm_constraints(e, w.refs, "+", w.constraint, "d", w.o.n)));
  }
}

void retire_reserve(Emit *e) {
  for (size_t k = 0; k < e->nretire; k++)
    names_reserve(e, name_of(e, e->retire[k].of));
}
// SPDX-License-Identifier: MIT
