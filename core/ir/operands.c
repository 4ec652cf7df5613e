// Iterates over an instruction's operands, which the row of its operation in
// ops.h describes.
#include "ir/operands.h"

#include <string.h>

#include "atoms/atom.h"
#include "ir/fold.h"
#include "ir/intrin.h"

// ---- operands that rows of other tables specify ----

static const char *intrin_operands(const Ins *i) {
  static const char *const each[] = {"", "v", "vv", "vvv"};
  static const char *const masked[] = {"", "l", "vl", "vvl"};
  IntrinId id = intrin_id(i->imm);
  bool m = intrin_row(id)->class == INTRIN_M;
  return (m ? masked : each)[intrin_arity(id)];
}

static const char *wgmma_operands(const AtomMma *row) {
  bool sparse = row->flags & AMF_SPARSE;
  if (row->flags & AMF_SMEM_A) return sparse ? "WvvpR" : "Wvvp";
  return sparse ? "WRvpR" : "WRvp";
}

static const char *row_operands(const Ins *i) {
  static const char *const mma[] = {"", "W", "WR", "WRR", "WRRR", "WRRRR",
                                    "WRRRRR", "WRRRRRR"};
  if (i->op == OP_WGMMA) return wgmma_operands(atom_mma((int)i->imm));
  if (i->op == OP_MMA) return mma[atom_mma((int)i->imm)->nop];
  if (i->op != OP_MATRIX) return intrin_operands(i);
  switch (atom_copy((int)i->imm)->op) {
    case CO_LDSM: return "Wr.s";
    case CO_STSM: return "w.sR";
    case CO_MOVM: return "WR";
    case CO_UNIVERSAL: case CO_AUTOVEC: case CO_CPASYNC: case CO_SHUFFLE:
    case CO_LOAD: case CO_STORE: case CO_BULK: case CO_TABLE:
      break;  // other operations are no matrix instructions
  }
  return "";
}

// Sets the number and the width of the registers in run k of i's atom.
static void run_of(const Ins *i, int k, Operand *o) {
  o->bits = 32;
  if (op_rows[i->op].imm != IMM_MMA) {
    o->n = atom_copy((int)i->imm)->num;
    return;
  }
  const AtomMma *row = atom_mma((int)i->imm);
  k = atom_mma_run(row, k);
  char c = row->regs[k];
  o->n = row->nreg[k];
  if (c == 'z') o->bits = 128;
  if (c == 'd' || c == 'l') o->bits = 64;
}

static int64_t moved(const Fn *fn, const Ins *i, Ref mem) {
  int64_t bits = dtype_bits(ir_type(fn, mem));
  switch ((ImmKind)op_rows[i->op].imm) {
    case IMM_ELEMENTS: return bits * i->imm;
    case IMM_BITS: return i->imm;
    // One row of an 8x8 matrix of 16-bit elements.
    case IMM_COPY: return 128;
    case IMM_NONE: case IMM_RAW: case IMM_ARG: case IMM_MEM: case IMM_TEXT:
    case IMM_SREG: case IMM_MATH: case IMM_INTRIN: case IMM_MMA:
    case IMM_UNROLL: case IMM_BARRIER: case IMM_GROUPS: case IMM_FENCE:
    case IMM_ATOMIC: case IMM_REGISTERS: case IMM_MODE: case IMM_LEVELS:
      break;
  }
  return bits;
}

// ---- the walk ----

Operands operands_of(const Fn *fn, const Ins *i) {
  const char *sig = op_rows[i->op].operands;
  return (Operands){.fn = fn, .i = i,
                    .sig = *sig == '=' ? row_operands(i) : sig};
}

static Ref take(Operands *w) { return operands_ref(w->fn, w->i, w->ref++); }

// Reads a suffix `.g`, `.s` or `.r`, which restricts the operand's memory
// space.
static void take_space(Operands *w, Operand *o) {
  if (*w->sig != '.') return;
  o->space = w->sig[1] == 'g' ? SP_GMEM : w->sig[1] == 's' ? SP_SMEM : SP_RMEM;
  w->sig += 2;
}

static void take_mem(Operands *w, Operand *o) {
  o->ref = take(w);
  o->off = take(w);
  o->bits = o->barrier ? 64 : o->map ? 1024 : moved(w->fn, w->i, o->ref);
  take_space(w, o);
}

static void take_run(Operands *w, Operand *o) {
  o->space = SP_RMEM;
  o->ref = take(w);
  o->reg = w->fn->reg.p + w->i->reg + w->reg;
  run_of(w->i, w->run++, o);
  w->reg += (uint32_t)o->n;
}

// The meaning of each letter of a row's operands, without the suffix for the
// space.
static const Operand letters['x' + 1] = {
  ['v'] = {.kind = OPERAND_VALUE},
  ['p'] = {.kind = OPERAND_PRED},
  ['l'] = {.kind = OPERAND_LANES},
  ['x'] = {.kind = OPERAND_VAR, .read = true},
  ['X'] = {.kind = OPERAND_VAR, .written = true},
  ['r'] = {.kind = OPERAND_MEM, .read = true},
  ['w'] = {.kind = OPERAND_MEM, .written = true},
  ['a'] = {.kind = OPERAND_MEM, .read = true, .written = true},
  ['b'] = {.kind = OPERAND_MEM, .space = SP_SMEM, .read = true,
           .written = true, .barrier = true},
  ['o'] = {.kind = OPERAND_OBJECT},
  ['d'] = {.kind = OPERAND_MEM, .read = true, .map = true},
  ['D'] = {.kind = OPERAND_MEM, .read = true, .written = true, .map = true},
  ['m'] = {.kind = OPERAND_MAP, .read = true},
  ['M'] = {.kind = OPERAND_MAP, .written = true},
  ['R'] = {.kind = OPERAND_RUN, .read = true},
  ['W'] = {.kind = OPERAND_RUN, .written = true},
};

// Reports whether the next operand belongs to a list (`*`). Skips lists whose
// elements have all been read.
static bool listed(Operands *w) {
  for (; *w->sig && w->sig[1] == '*'; w->sig += 2)
    if (w->list < (*w->sig == 'X' ? w->i->flags : w->i->nx)) return true;
  return false;
}

bool operands_next(Operands *w, Operand *o) {
  while (*w->sig == ' ') w->sig++;
  bool list = listed(w);
  if (!*w->sig) return false;
  *o = letters[(unsigned char)*w->sig];
  if (list) {
    o->ref = w->fn->ext.p[w->i->ext + w->list++];
    return true;
  }
  w->sig++;
  if (o->kind == OPERAND_RUN) take_run(w, o);
  else if (o->kind == OPERAND_MEM) take_mem(w, o);
  else o->ref = take(w);
  if (o->kind == OPERAND_OBJECT) take_space(w, o);
  if (*w->sig == '/') {
    o->role = w->sig[1];
    w->sig += 2;
  }
  if (*w->sig == '?') o->optional = *w->sig++;
  return true;
}

int operands_all(const Fn *fn, const Ins *i, Operand o[OPERANDS]) {
  int n = 0;
  for (Operands w = operands_of(fn, i); n < OPERANDS; n++)
    if (!operands_next(&w, &o[n])) break;
  return n;
}

const Ref *operands_list(const Fn *fn, const Ins *i, uint32_t *n) {
  uint32_t outs = i->op == OP_ASM ? i->flags : 0;
  *n = i->nx - outs;
  return fn->ext.p + i->ext + outs;
}

bool operands_same(const Operand *a, const Operand *b) {
  return a->ref == b->ref && a->n == b->n &&
         memcmp(a->reg, b->reg, (size_t)a->n * sizeof *a->reg) == 0;
}

void ir_mark_arguments(Fn *fn) {
  Operand o;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (!(op_effect((Op)i->op) & EF_MEMORY)) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (o.kind != OPERAND_MEM && o.kind != OPERAND_MAP) continue;
      const Mem *m = ir_memof(fn, o.ref);
      if (m->space != SP_GMEM && m->space != SP_TMAP) continue;
      if (m->arg == NO_ARG) continue;
      fn->arg.p[m->arg].written |= o.written;
      fn->arg.p[m->arg].read |= o.read;
    }
  }
}

// ---- building ----

Ref operands_emit(Ctx *cx, Fn *fn, Ins ins, const Ref *ref, uint32_t nref,
                  const uint32_t *reg, uint32_t nreg) {
  bool list = strchr(op_rows[ins.op].operands, '*') != NULL;
  // number of Refs in Ins.a[]
  uint32_t n = list ? 0 : nref < 3 ? nref : 3;
  for (uint32_t k = 0; k < n; k++) ins.a[k] = ref[k];
  for (uint32_t k = n; k < nref; k++) ir_use(cx, fn, ref[k]);
  ins.ext = (uint32_t)fn->ext.n;
  ins.nx = nref - n;
  vec_reserve(cx, fn->ext, fn->ext.n + ins.nx);
  if (ins.nx) memcpy(fn->ext.p + ins.ext, ref + n, ins.nx * sizeof *ref);
  fn->ext.n += ins.nx;
  ins.reg = (uint32_t)fn->reg.n;
  vec_reserve(cx, fn->reg, fn->reg.n + nreg);
  if (nreg) memcpy(fn->reg.p + ins.reg, reg, nreg * sizeof *reg);
  fn->reg.n += nreg;
  return ir_emit(cx, fn, ins);
}
// SPDX-License-Identifier: MIT
