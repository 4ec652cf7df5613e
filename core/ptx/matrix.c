// matrix.c: tensor core instructions of a warp.
#include <string.h>

#include "atoms/atom.h"
#include "ptx/inside.h"

// Appends to `text` the words of an opcode that begin with `with`. If `with` is
// NULL, appends the words that begin with none of `heads`.
static void append_words(char *text, const char *op, const char *with,
                         const char *const *heads) {
  for (size_t n; *op; op += n + (op[n] == '.')) {
    n = strcspn(op, ".");
    bool known = false;
    for (const char *const *h = heads; !with && *h; h++)
      known = known || strncmp(op, *h, strlen(*h)) == 0;
    if (with ? strncmp(op, with, strlen(with)) != 0 : known) continue;
    if (*text) strcat(text, ".");
    strncat(text, op, n);
  }
}

// Returns an mma's opcode with the order of modifiers that the table of atoms
// uses: those that belong to .kind follow .aligned. The PTX ISA writes them
// after the shape, and ptxas accepts both orders. With one scale factor for 32
// elements, kind mxf4nvf4 is kind mxf4.
static const char *by_kind(PtxBuild *b, const char *op) {
  static const char *const heads[] = {"mma", "sync", "aligned", "kind::",
    "sp::", "block_scale", "scale_vec::", NULL};
  if (strncmp(op, "mma.", 4) != 0 || !strstr(op, ".kind::")) return op;
  char *text = arena_zero(b->cx, &b->cx->scratch, strlen(op) + 2);
  for (const char *const *h = heads; *h; h++) append_words(text, op, *h, heads);
  append_words(text, op, NULL, heads);
  char *nv = strstr(text, "nvf4.block_scale.scale_vec::2X");
  if (nv) memmove(nv, nv + 4, strlen(nv + 4) + 1);
  return text;
}

// Returns the atoms of an opcode, cached by the address of op. Equal opcodes
// have the same address.
const PtxMma *ptx_mma(PtxBuild *b, const char *op) {
  PtxMma *m = &b->mma[((uintptr_t)op >> 4) % MMAS];
  if (m->text == op) return m;
  m->text = op;
  m->n = atom_mma_ptx(by_kind(b, op), m->id, MMA_ATOMS);
  return m;
}

// Returns the atom that an instruction's text names, or -1.
static int find_mma(PtxBuild *b, const char *op) {
  const PtxMma *m = ptx_mma(b, op);
  return m->n ? m->id[0] : -1;
}

bool ptxrow_metadata(const PtxIns *i, uint32_t k) {
  return k == 3 && strncmp(i->op, "wgmma.mma_async.sp.", 19) == 0;
}

// Returns the index, among the atom's operands, of operand k of an mma, or -1.
// In the mma, a selector follows the metadata of a sparse A. After each scale
// factor come two numbers: the byte, and the lanes of a quad, that hold the
// factor.
static int mma_operand(const AtomMma *row, uint32_t k) {
  if (k < 4) return (int)k;
  if (row->flags & AMF_SPARSE) {
    if (k < 6) return k == 4 ? row->nop - 1 : -1;
    k -= 2;
  }
  bool scale = row->flags & AMF_SCALE && (k == 4 || k == 6);
  return scale ? (int)k / 2 + 2 : -1;
}

DType ptxrow_elements(PtxBuild *b, const PtxIns *i, uint32_t k) {
  bool wg = strncmp(i->op, "wgmma.mma", 9) == 0;
  if (!wg && strncmp(i->op, "mma.", 4)) return DT_NONE;
  if (ptxrow_metadata(i, k)) return DT_U32;
  int id = find_mma(b, i->op);
  if (id < 0) return DT_NONE;
  int q = !wg ? mma_operand(atom_mma(id), k) : k < 2 ? (int)k : -1;
  return q < 0 ? DT_NONE : atom_mma_type(atom_mma(id), q);
}

Ref mma_run(PtxOp *o, Runs *r, uint32_t k, const AtomMma *row, int q) {
  uint32_t before = r->regs;
  const PtxArg *a = op_arg(o, k);
  op_run(o, r, a, atom_mma_type(row, q));
  if (r->regs - before != row->nreg[q]) {
    ptx_fail(o->b, "'%s': operand %u has %u registers, not %u", o->i->op,
             (unsigned)k + 1, (unsigned)(r->regs - before), row->nreg[q]);
  }
  const PtxArg *first = a->kind == PTX_A_VECTOR ? op_part(o, a, 0) : a;
  int bits = o->b->m->regs.p[o->b->f->reg + (uint32_t)first->value].type.bits;
  int want = row->regs[q] == 'd' || row->regs[q] == 'z' ? 64 : 32;
  if (bits != want) {
    ptx_fail(o->b, "'%s': operand %u has registers of %d bits, not %d",
             o->i->op, (unsigned)k + 1, bits, want);
  }
  return r->mem[r->n - 1];
}

// Adds the scale factors in operand k of an mma to r: those of B if of_b is
// set, else those of A. The atom reads the lowest byte in the lowest lanes of a
// quad. Operand k + 1 of the mma may select another byte and other lanes.
static void scale_run(PtxOp *o, Runs *r, uint32_t k, const AtomMma *row,
                      bool of_b) {
  PtxBuild *b = o->b;
  Ref id[2];
  int64_t at[2];
  bool known = true;
  op_registers(o, op_arg(o, k + 1), 2);
  for (uint32_t q = 0; q < 2; q++) {
    id[q] = to(o, DT_U32, op_value(o, op_part(o, op_arg(o, k + 1), q), DT_U16));
    known = ir_const(b->fn, id[q], &at[q]) && at[q] == 0 && known;
  }
  Ref own = mma_run(o, r, k, row, of_b ? 5 : 4);
  if (known) return;
  int64_t bits = (int64_t)r->reg[r->regs - 1] * dtype_bits(row->sf_type);
  own = ir_emit(b->cx, b->fn, (Ins){.op = OP_LD, .type = DT_U32,
    .a = {op_view(o, own, DT_U32), number(o, DT_I32, bits / 32)}});
  Ref lane = as(o, DT_U32, ir_sreg(b->cx, b->fn, SR_LANE));
  Ref kept = number(o, DT_U32, of_b ? -4 : -3);
  Ref from = op2(o, OP_SHL, id[1], number(o, DT_U32, of_b ? 0 : 1));
  from = op2(o, OP_ADD, op2(o, OP_AND, lane, kept), from);
  Ref v = op_intrin(o, IN_SHUFIDX, 31, own, from,
                    number(o, DT_U32, UINT32_MAX));
  v = op2(o, OP_SHR, as(o, DT_U32, v),
          op2(o, OP_SHL, id[0], number(o, DT_U32, 3)));
  Mem m = {.space = SP_RMEM, .type = DT_U32, .align = 16, .count = 1,
           .ptx = true};
  Ref mem = ir_mem(b->cx, b->fn, m);
  ir_emit(b->cx, b->fn, (Ins){.op = OP_ST,
                              .a = {mem, number(o, DT_I32, 0), v}});
  r->mem[r->n - 1] = op_view(o, mem, row->sf_type);
  r->reg[r->regs - 1] = 0;
}

void row_mma(PtxOp *o, int k) {
  (void)k;
  int id = find_mma(o->b, o->i->op);
  if (id < 0 || !atom_mma_runs(atom_mma(id))) {
    ptx_fail(o->b, "'%s' is not modelled", o->i->op);
  }
  o->used = UINT32_MAX;
  const AtomMma *a = atom_mma(id);
  bool sparse = a->flags & AMF_SPARSE, scale = a->flags & AMF_SCALE;
  uint32_t factor = sparse ? 6 : 4, n = scale ? factor + 4 : factor;
  if (o->i->args != n) {
    ptx_fail(o->b, "'%s' cannot have %u operands", o->i->op, o->i->args);
  }
  if (sparse && op_constant(o, 5) != 0) {
    op_reject(o, "its sparsity selector is not 0");
  }
  Runs r = {.n = 0};
  for (uint32_t q = 0; q < 4; q++) mma_run(o, &r, q, a, (int)q);
  for (uint32_t q = 0; q < 2 && scale; q++) {
    scale_run(o, &r, factor + 2 * q, a, q == 1);
  }
  if (sparse) mma_run(o, &r, 4, a, a->nop - 1);
  operands_emit(o->b->cx, o->b->fn, (Ins){.op = OP_MMA, .imm = id}, r.mem, r.n,
                r.reg, r.regs);
}

// Returns the atom of an ldmatrix or stmatrix, or -1. ptxas accepts the
// modifiers in any order, for example .x4.trans.m8n8 from tilelang.
static int find_matrix(PtxOp *o) {
  static const char *const order[] = {
    "sync", "aligned", "m8n8", "m16n8", "x1", "x2", "x4", "trans", "shared",
    "shared::cta", "b16", "b8"};
  int id = atom_copy_ptx(o->i->op), found = 0;
  if (id >= 0) return id;
  Ctx *cx = o->b->cx;
  size_t name = strcspn(o->i->op, ".");
  char *op = arena_printf(cx, &cx->scratch, "%.*s", (int)name, o->i->op);
  for (size_t q = 0; q < sizeof order / sizeof *order; q++) {
    for (int j = 0; j < o->n; j++) {
      if (strcmp(o->mod[j], order[q])) continue;
      op = arena_printf(cx, &cx->scratch, "%s.%s", op, order[q]);
      found++;
    }
  }
  return found == o->n ? atom_copy_ptx(op) : -1;
}

void row_matrix(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  int id = find_matrix(o);
  if (id < 0) ptx_fail(b, "'%s' is not modelled", o->i->op);
  bool load = k == 0;
  Runs r = {.n = 0};
  op_run(o, &r, op_arg(o, load ? 0 : 1), DT_NONE);
  if (r.regs != (uint32_t)atom_copy(id)->num)
    op_reject(o, "its number of registers does not match .num");
  Place p = op_place(o, op_arg(o, load ? 1 : 0), IN_SHARED);
  o->used = UINT32_MAX;
  Ref in[3] = {r.mem[0], p.mem, p.off}, out[3] = {p.mem, p.off, r.mem[0]};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_MATRIX, .imm = id},
                load ? in : out, 3, r.reg, r.regs);
}

// Transposes a matrix of 8 x 8 16-bit elements. Each lane holds two elements of
// a row, and collects two elements of its row of the result from other lanes.
void row_movmatrix(PtxOp *o, int k) {
  (void)k;
  if (strcmp(o->i->op, "movmatrix.sync.aligned.m8n8.trans.b16")) {
    op_reject(o, "only .m8n8.trans.b16 is supported");
  }
  o->used = UINT32_MAX;
  Ref v = op_operand(o, 1, DT_U32), all = number(o, DT_U32, UINT32_MAX);
  Ref lane = ir_sreg(o->b->cx, o->b->fn, SR_LANE);
  Ref three = number(o, DT_I32, 3), sixteen = number(o, DT_U32, 16);
  Ref row = op2(o, OP_SHR, lane, number(o, DT_U32, 2));
  Ref pair = op2(o, OP_AND, lane, three), half[2];
  Ref odd = op2(o, OP_NE, op2(o, OP_AND, row, number(o, DT_I32, 1)),
                number(o, DT_I32, 0));
  for (int j = 0; j < 2; j++) {
    Ref from = op2(o, OP_SHL, pair, number(o, DT_U32, 3));  // lane of row 2 *
                                                            // pair + j
    from = op2(o, OP_ADD, from, number(o, DT_I32, 4 * j));
    from = op2(o, OP_ADD, from, op2(o, OP_SHR, row, number(o, DT_U32, 1)));
    Ref w = op_intrin(o, IN_SHUFIDX, 31, v, from, all);
    w = as(o, DT_U32, w);
    half[j] = op3(o, OP_SEL, odd, op2(o, OP_SHR, w, sixteen),
                  op2(o, OP_AND, w, number(o, DT_U32, 0xffff)));
  }
  op_result(o, op2(o, OP_OR, half[0], op2(o, OP_SHL, half[1], sixteen)));
}
// SPDX-License-Identifier: MIT
