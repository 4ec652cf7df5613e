// Writes tcgen05 operations: MMAs with accumulators in tensor memory, copies
// between tensor memory and registers, and the allocation of tensor memory. An
// address of tensor memory is an unsigned integer, lane << 16 | column.
#include "emit/tcgen05.h"

#include <inttypes.h>
#include <string.h>

#include "atoms/atom.h"
#include "emit/asm.h"
#include "emit/expr.h"

// ---- statements ----

void tcgen05_object(Emit *e, Ref r, const char *name) {
  const Ins *i = ir_get(e->fn, r);
  const Mem *m = &e->fn->mem.p[i->imm];
  // A view has the same address as its object, because an address in tensor
  // memory has no element type.
  if (m->ref != r) {
    e->use[r].name = e->use[m->ref].name;
    return;
  }
  e->use[r].name = names_new(e, name);
  text_begin(e, i);
  text_printf(e, "const unsigned %s = ", e->use[r].name);
  expr_val(e, i->a[0], PR_ANY);
  text_end(e);
}

// Writes the address of element `off` of an object of tensor memory.
static void put_address(Emit *e, const Operand *o) {
  int bits = dtype_bits(ir_type(e->fn, o->ref));
  int64_t k;
  text_puts(e, e->use[o->ref].name);
  if (ir_const(e->fn, o->off, &k)) {
    if (k) text_printf(e, " + 0x%" PRIx64 "u", (uint64_t)(k * bits / 32));
    return;
  }
  text_puts(e, " + ");
  expr_val(e, o->off, bits == 32 ? PR_ADD : PR_MUL);
  if (bits < 32) text_printf(e, " / %d", 32 / bits);
}

// Writes the instruction descriptor of an MMA with scale factors. Its two
// fields select the bytes (0 to 3) of a column of tensor memory at which the
// factors of A and of B start.
static void put_descriptor(Emit *e, const Ins *i) {
  const Role role[2] = {ROLE_SFA, ROLE_SFB};
  uint32_t known = atom_umma_descriptor(atom_mma((int)i->imm));
  Ref off[2];
  int64_t k;
  for (int s = 0; s < 2; s++) {
    off[s] = operand_of(e->fn, i, role[s]).off;
    if (!ir_const(e->fn, off[s], &k)) continue;
    known |= (uint32_t)(k & 3) << (s ? UMMA_SFB_BIT : UMMA_SFA_BIT);
    off[s] = 0;
  }
  text_printf(e, ", 0x%08xu", known);
  for (int s = 0; s < 2; s++) {
    if (!off[s]) continue;
    text_puts(e, " | ((unsigned)(");
    expr_val(e, off[s], PR_ANY);
    text_printf(e, ") & 3) << %d", s ? UMMA_SFB_BIT : UMMA_SFA_BIT);
  }
}

void tcgen05_mma(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const AtomUse *u = uses_atom(e, true, i->imm);
  Operand o;
  const char *between = "";
  text_begin(e, i);
  text_printf(e, "%s(", atomtext_name(e, true, u->id));
  for (Operands w = operands_of(e->fn, i); operands_next(&w, &o);) {
    text_puts(e, between);
    if (o.kind == OPERAND_MEM) put_address(e, &o);
    else expr_val(e, o.ref, PR_ANY);
    between = ", ";
  }
  if (atom_mma(u->id)->flags & AMF_SCALE) put_descriptor(e, i);
  text_puts(e, ")");
  text_end(e);
}

void tcgen05_copy(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const AtomUse *u = uses_atom(e, false, i->imm);
  Operand o[OPERANDS];
  int n = operands_all(e->fn, i, o);
  text_begin(e, i);
  text_printf(e, "%s(", atomtext_name(e, false, u->id));
  for (int k = 0; k < n; k++) {
    if (k) text_puts(e, ", ");
    if (o[k].kind == OPERAND_MEM) put_address(e, &o[k]);
    else if (o[k].kind == OPERAND_RUN) expr_regs(e, u->refs, &o[k], "unsigned");
    else expr_val(e, o[k].ref, PR_ANY);
  }
  text_puts(e, ")");
  text_end(e);
}

static Helper helper_of(const Emit *e, const Ins *i) {
  if (i->op == OP_TCALLOC) return H_TMEM_ALLOC;
  if (i->op == OP_TCDEALLOC) return H_TMEM_DEALLOC;
  if (i->op == OP_TCSHIFT) return H_TMEM_SHIFT;
  return operand_ref(e->fn, i, ROLE_MASK) ? H_UMMA_COMMIT_MULTICAST
                                          : H_UMMA_COMMIT;
}

void tcgen05_call(Emit *e, const Ins *i) {
  bool pair = i->flags & TCF_PAIR;
  const char *between = "";
  Operand o;
  text_begin(e, i);
  text_printf(e, "%s<%d>(", helper_use(e, helper_of(e, i)), pair ? 2 : 1);
  for (Operands w = operands_of(e->fn, i); operands_next(&w, &o);) {
    if (!o.ref) continue;
    text_puts(e, between);
    if (o.kind == OPERAND_MEM) expr_place(e, o.ref, o.off);
    else expr_val(e, o.ref, PR_ANY);
    between = ", ";
  }
  text_puts(e, ")");
  text_end(e);
}

// ---- helpers ----

void tcgen05_mma_helper(Emit *e, const AtomUse *u) {
  const AtomMma *row = atom_mma(u->id);
  bool shared = row->flags & AMF_SMEM_A;
  AsmFn f = {.e = e, .result = "void", .name = atomtext_name(e, true, u->id),
             .lines = ASM_SPLIT};
  asm_arg(&f, "unsigned", "d", 'r');
  if (shared) asm_arg(&f, "unsigned long long", "a", 'l');
  else asm_arg(&f, "unsigned", "a", 'r');
  asm_arg(&f, "unsigned long long", "b", 'l');
  asm_arg(&f, "unsigned", "accumulate", 'r');
  bool scale = row->flags & AMF_SCALE, sparse = row->flags & AMF_SPARSE;
  bool selects = sparse && atom_umma_metadata(row) == 1;
  // the instruction descriptor: types, majors and shape
  const char *descriptor = PTX(e, "0x%08xu", atom_umma_descriptor(row));
  const char *scales = "", *meta = "";
  int n = 4;  // operands so far
  if (scale) {
    asm_arg(&f, "unsigned", "sfa", 'r');
    asm_arg(&f, "unsigned", "sfb", 'r');
    scales = "[%4], [%5], ", n = 6;
  }
  if (sparse) {
    asm_param(&f, "unsigned", "e");
    // The operand is the address of a pair of columns. Bit 0 of e selects one
    // column of the pair.
    asm_in(&f, 'r', selects ? "e & ~1u" : "e");
    meta = PTX(e, "[%%%d], ", n++);
  }
  if (scale) asm_param(&f, "unsigned", descriptor = "descriptor");
  asm_in(&f, 'r', selects ? PTX(e, "%s | (e & 1)", descriptor) : descriptor);
  asm_print(&f, PTX(e, "\n      \"{ .reg .pred p; setp.ne.b32 p, %%3, 0;\\n\"\n"
                    "      \"%s \"\n      \"[%%0], %s, %%2, %s%%%d, %sp; }\"",
                    row->ptx, shared ? "%1" : "[%1]", meta, n, scales),
            "\n      :: $i : \"memory\"");
}

void tcgen05_rows_helper(Emit *e, const AtomUse *u) {
  AsmFn f = {.e = e, .result = "void", .name = atomtext_name(e, false, u->id),
             .lines = ASM_SPLIT};
  asm_arg(&f, "unsigned", "tmem", 'r');
  asm_arg(&f, "unsigned long long", "rows", 'l');
  asm_print(&f, PTX(e, "\"%s \"\n      \"[%%0], %%1;\"",
                    atom_copy(u->id)->ptx),
            "\n      :: $i : \"memory\"");
}

void tcgen05_copy_helper(Emit *e, const AtomUse *u) {
  const AtomCopy *row = atom_copy(u->id);
  bool load = row->op == CO_TMEM_LOAD;
  int n = row->num, at = load ? 0 : 1;
  AsmFn f = {.e = e, .result = "void", .name = atomtext_name(e, false, u->id),
             .lines = ASM_SPLIT};
  if (!load) asm_param(&f, "unsigned", "tmem");
  asm_registers(&f, u->refs, load, "unsigned", "r", n);
  if (load) asm_param(&f, "unsigned", "tmem");
  const char *regs = asm_braces(e, n, &at);
  const char *list = asm_constraints(e, u->refs, load ? "=" : "", 'r', "r", n);
  // In the form .16x32bx2, the columns of lanes 16 to 31 follow those of lanes
  // 0 to 15.
  bool packed = row->flags & CPF_PACK;
  const char *half = strstr(row->ptx, "bx2")
    ? PTX(e, ", %d", packed ? 2 * n : n) : "";
  char name[TMEM_TEXT];
  atom_tmem_text(row, name);
  if (load)
    asm_print(&f, PTX(e, "\"%s \"\n      \"%s, [%%%d]%s;\"", name, regs, n,
                      half),
              PTX(e, "\n      : %s\n      : \"r\"(tmem) : \"memory\"", list));
  else
    asm_print(&f, PTX(e, "\"%s \"\n      \"[%%0]%s, %s;\"", name, half, regs),
              PTX(e, "\n      :: \"r\"(tmem), %s : \"memory\"", list));
}
// SPDX-License-Identifier: MIT
