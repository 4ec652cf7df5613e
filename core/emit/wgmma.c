// Writes a warpgroup's MMA: its statement and helper, descriptors, and the wait
// before its accumulators are read.
//
// The compiler assumes that an asm statement has completed when the next one
// starts. Therefore an empty asm statement after the wait names the registers
// of each wgmma that the wait completes, so that reads of these registers
// cannot move before the asm statement.
#include <stdio.h>
#include <string.h>

#include "atoms/atom.h"
#include "emit/asm.h"
#include "emit/expr.h"
#include "emit/wgmma.h"
#include "ir/async_regs.h"

// ---- analysis, before anything is written ----

static Operand accumulators(const Emit *e, Ref mma) {
  Operands w = operands_of(e->fn, ir_get(e->fn, mma));
  Operand o = {0};
  operands_next(&w, &o);
  return o;
}

static void note_done(void *ud, Ref wait, Ref mma) {
  Emit *e = ud;
  Operand o = accumulators(e, mma);
  for (size_t k = 0; k < e->nretire; k++) {
    const Retire *r = &e->retire[k];
    Operand p = accumulators(e, r->mma);
    if (r->wait == wait && operands_same(&o, &p)) return;
  }
  Retire *v = NEW(e->cx, Retire, e->nretire + 1);
  if (e->nretire) memcpy(v, e->retire, e->nretire * sizeof *v);
  v[e->nretire++] = (Retire){wait, mma};
  e->retire = v;
}

void wgmma_note(Emit *e) {
  async_regs_run(e->cx, e->fn, note_done, e);
}

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

// Returns the name of the empty asm statement's helper for the accumulators of
// an MMA, e.g. "wgmma_retire_f32x64".
static const char *retire_name(Emit *e, const AtomMma *row) {
  const char *type = row->regs[0] == 'f' ? "f32"
                     : row->d_type == DT_I32 ? "s32" : "u32";
  return arena_printf(e->cx, &e->cx->scratch, "wgmma_retire_%sx%d", type,
                      row->nreg[0]);
}

void wgmma_wait(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  text_begin(e, i);
  text_printf(e, "asm volatile(\"wgmma.wait_group.sync.aligned %d;\" ::: "
              "\"memory\")", (int)i->imm);
  text_end(e);
  for (size_t k = 0; k < e->nretire; k++) {
    if (e->retire[k].wait != r) continue;
    const Ins *mma = ir_get(e->fn, e->retire[k].mma);
    const AtomMma *row = atom_mma((int)mma->imm);
    Operand o = accumulators(e, e->retire[k].mma);
    text_indent(e);
    text_printf(e, "%s(", retire_name(e, row));
    expr_regs(e, uses_atom(e, true, mma->imm)->refs, &o,
              atomtext_reg_type(row->regs[0], row->d_type));
    text_puts(e, ")");
    text_end(e);
  }
}

// Writes a descriptor: `const unsigned long long tCrA = smem_desc(sA_addr,
// ...);`.
void wgmma_descriptor(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const char *own = ir_str(e->fn, i->name), *of = e->use[i->a[0]].name;
  // an equal descriptor was written earlier, but in another region
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

// Appends an item to a list whose current line begins at *from. After column 66
// the list continues on a new line that starts with `line`.
static const char *join(Emit *e, size_t *from, const char *list,
                        const char *item, const char *line) {
  if (!*list) return item;
  bool full = strlen(list) + 1 - *from > 66;
  list = PTX(e, "%s,%s", list, full ? line : " ");
  if (full) *from = strlen(list);
  return PTX(e, "%s%s", list, item);
}

// Returns the asm operands of n registers, such as {%4, %5}, inside a string.
// Their numbers start at *at.
static const char *braces(Emit *e, int n, int *at) {
  size_t from = 0;
  const char *s = "";
  for (int k = 0; k < n; k++)
    s = join(e, &from, s, PTX(e, "%s%%%d", k ? "" : "{", (*at)++),
             " \"\n      \"");
  return PTX(e, "%s}", s);
}

// Returns the asm operands of n registers with their constraints.
static const char *constraints(Emit *e, bool refs, const char *mode, char c,
                               const char *name, int n) {
  const char *each = refs ? "\"%s%c\"(%s%d)" : "\"%s%c\"(%s[%d])";
  size_t from = 0;
  const char *s = "";
  for (int k = 0; k < n; k++)
    s = join(e, &from, s, PTX(e, each, mode, c, name, k), "\n        ");
  return s;
}

// Returns the asm operands after the descriptors: whether D is added, unchanged
// signs (1), which modes are major.
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
                      braces(e, d, &at));
  s = PTX(e, "%s, %s", s, shared ? PTX(e, "%%%d", at++) : braces(e, a, &at));
  s = PTX(e, "%s, %%%d, ", s, at);
  if (sparse) s = PTX(e, "%s%%%d, %d, ", s, at + 2, row->selector);
  const char *in = shared ? "\"l\"(a)"
                          : constraints(e, u->refs, "", row->regs[1], "a", a);
  in = PTX(e, "%s, \"l\"(b), \"r\"(accumulate)%s", in,
           !sparse ? "" : u->refs ? ", \"r\"(e0)" : ", \"r\"(e[0])");
  asm_print(&f, PTX(e, "%s%s; }\"", s, tail(e, row)),
            PTX(e, "\n      : %s\n      : %s",
                constraints(e, u->refs, "+", row->regs[0], "d", d), in));
}

// Writes the retire helpers, one for each type and number of accumulators.
void wgmma_print(Emit *e) {
  for (size_t k = 0; k < e->nretire; k++) {
    const Ins *i = ir_get(e->fn, e->retire[k].mma);
    const AtomMma *row = atom_mma((int)i->imm);
    const char *name = retire_name(e, row);
    bool refs = uses_atom(e, true, i->imm)->refs, told = false;
    for (size_t j = 0; j < k && !told; j++)
      told = strcmp(name, retire_name(e, atom_mma((int)ir_get(
                            e->fn, e->retire[j].mma)->imm))) == 0;
    if (told) continue;
    AsmFn f = {.e = e, .result = "void", .name = name,
               .over = "// behind the wait: no use of these can move before "
                       "it\n"};
    asm_registers(&f, refs, true,
                  atomtext_reg_type(row->regs[0], row->d_type), "d",
                  row->nreg[0]);
    asm_print(&f, "\"\"",
              PTX(e, "\n      : %s :: \"memory\"",
                  constraints(e, refs, "+", row->regs[0], "d", row->nreg[0])));
  }
}

void wgmma_reserve(Emit *e) {
  for (size_t k = 0; k < e->nretire; k++)
    names_reserve(e, retire_name(e, atom_mma((int)ir_get(
                                   e->fn, e->retire[k].mma)->imm)));
}
// SPDX-License-Identifier: MIT
