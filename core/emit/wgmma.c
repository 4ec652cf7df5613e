// Writes wgmma instructions: the statements, the helpers and the descriptors.
#include <stdio.h>
#include <string.h>

#include "atoms/atom.h"
#include "emit/asm.h"
#include "emit/expr.h"
#include "emit/wgmma.h"

// ---- statements ----

void wgmma_mma(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const AtomUse *u = uses_atom(e, true, i->imm);
  const AtomMma *row = atom_mma(u->id);
  Operand o;
  int run = 0, n = 0;
  text_begin(e, i);
  text_printf(e, "%s(", atomtext_name(e, true, u->id));
  for (Operands w = operands_of(e->fn, i); operands_next(&w, &o); n++) {
    text_puts(e, n ? ", " : "");
    if (o.kind != OPERAND_RUN) {
      expr_val(e, o.ref, PR_ANY);
      continue;
    }
    int which = atom_mma_run(row, run++);
    expr_regs(e, u->refs, &o, atomtext_reg_type(row->regs[which],
                                                atom_mma_type(row, which)));
  }
  text_puts(e, ")");
  text_end(e);
}

// Writes a descriptor: `const unsigned long long tCrA = smem_desc(sA_addr,
// ...);`.
void wgmma_descriptor(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const char *own = ir_str(e->fn, i->name), *of = e->use[i->a[0]].name;
  // Reuse an equal descriptor that was traced in another region.
  for (Ref k = 1; k < r; k++) {
    const Ins *j = ir_get(e->fn, k);
    if (j->op != OP_DESC || !e->use[k].name || j->a[0] != i->a[0] ||
        j->imm != i->imm)
      continue;
    e->use[r].name = e->use[k].name;
    return;
  }
  if (!*own) own = arena_printf(e->cx, &e->cx->scratch, "%s_desc", of);
  e->use[r].name = names_new(e, own);
  text_indent(e);
  text_printf(e, "const unsigned long long %s =", e->use[r].name);
  text_newline(e);
  text_printf(e, "      %s(%s_addr, 0x%016llxull)", helper_use(e, H_SMEM_DESC),
              of, (unsigned long long)i->imm);
  text_end(e);
}

// ---- helpers ----

// Returns the asm operands after the descriptors: the predicate that adds the
// product to D, the signs of A and B (1: unchanged), and the majors.
static const char *tail(Emit *e, const AtomMma *row) {
  bool shared = row->flags & AMF_SMEM_A;
  if (dtype_is_int(row->d_type)) return "p";
  if (dtype_bits(row->a_type) != 16) return "p, 1, 1";
  if (!shared) return row->mn_major[1] ? "p, 1, 1, 1" : "p, 1, 1, 0";
  return arena_printf(e->cx, &e->cx->scratch, "p, 1, 1, %d, %d",
                      row->mn_major[0], row->mn_major[1]);
}

void wgmma_helper(Emit *e, const AtomUse *u) {
  const AtomMma *row = atom_mma(u->id);
  bool shared = row->flags & AMF_SMEM_A, sparse = row->flags & AMF_SPARSE;
  int d = row->nreg[0], a = row->nreg[1], at = 0;
  AsmFn f = {.e = e, .result = "void", .name = atomtext_name(e, true, u->id),
             .lines = ASM_SPLIT};
  asm_registers(&f, u->refs, true,
                atomtext_reg_type(row->regs[0], row->d_type), "d", d);
  if (shared) asm_param(&f, "unsigned long long", "a");
  else asm_registers(&f, u->refs, false, "unsigned", "a", a);
  asm_param(&f, "unsigned long long", "b");
  f.line = true;
  asm_param(&f, "unsigned", "accumulate");
  if (sparse) asm_registers(&f, u->refs, false, "unsigned", "e", 1);
  const char *s = PTX(e, "\n"
                      "      \"{ .reg .pred p; setp.ne.b32 p, %%%d, 0;\\n\"\n"
                      "      \"%s \"\n      \"%s", d + a + 1, row->ptx,
                      asm_braces(e, d, &at));
  s = PTX(e, "%s, %s", s,
          shared ? PTX(e, "%%%d", at++) : asm_braces(e, a, &at));
  s = PTX(e, "%s, %%%d, ", s, at);
  if (sparse) s = PTX(e, "%s%%%d, %d, ", s, at + 2, row->selector);
  const char *in = shared
    ? "\"l\"(a)" : asm_constraints(e, u->refs, "", row->regs[1], "a", a);
  in = PTX(e, "%s, \"l\"(b), \"r\"(accumulate)%s", in,
           !sparse ? "" : u->refs ? ", \"r\"(e0)" : ", \"r\"(e[0])");
  asm_print(&f, PTX(e, "%s%s; }\"", s, tail(e, row)),
            PTX(e, "\n      : %s\n      : %s",
                asm_constraints(e, u->refs, "+", row->regs[0], "d", d), in));
}
// SPDX-License-Identifier: MIT
