// Computes the fragment layouts of MMA and matrix-copy atoms from their TV
// layouts: the element of a tile that each value of each thread holds.
#include "decode/fragments.h"

#include <string.h>

#include "hardware/descriptor.h"
#include "ir/operands.h"
#include "layout/notation.h"

// ---- the two modes of a TV layout ----

enum { MAX_LEAVES = 12 };
typedef struct Mode { int n; int shape[MAX_LEAVES], stride[MAX_LEAVES]; } Mode;
typedef struct Tv { Mode mode[2]; } Tv;

static Mode read_mode(Ctx *cx, Layout l) {
  Layout f = layout_flatten(cx, l);
  Mode m = {.n = (int)tup_leaves(f.shape)};
  if (m.n > MAX_LEAVES)
    ctx_fail(cx, ERR_INTERNAL, "an atom's layout has %d modes", m.n);
  Tup s = tup_first(f.shape);
  for (int k = 0; k < m.n; k++, s = tup_next(s)) {
    m.shape[k] = (int)dim_value(*s);
    m.stride[k] = (int)dim_value(f.stride[k]);
  }
  return m;
}

static Tv read_tv(Ctx *cx, const char *s) {
  Layout l = layout_parse(cx, s, strlen(s));
  return (Tv){{read_mode(cx, layout_mode(cx, l, 0)),
               read_mode(cx, layout_mode(cx, l, 1))}};
}

static int mode_size(const Mode *m) {
  int n = 1;
  for (int k = 0; k < m->n; k++) n *= m->shape[k];
  return n;
}

static int mode_at(const Mode *m, int i) {
  int at = 0;
  for (int k = 0; k < m->n; k++) {
    at += (i % m->shape[k]) * m->stride[k];
    i /= m->shape[k];
  }
  return at;
}

// ---- MMA ----

// Returns the description of an operand: a row-major tile (rows x cols), and
// the elements of it that each lane holds. The TV layout tv_text maps to a
// linear index of the tile in column-major order.
static SimOperand tile_of(Ctx *cx, const SimMmaIns *mi, const char *tv_text,
                          DType t, int rows, int cols) {
  Tv tv = read_tv(cx, tv_text);
  SimOperand o = {.type = t, .nval = mode_size(&tv.mode[1]),
                  .size = rows * cols};
  uint16_t *at = arena_zero(cx, &cx->scratch,
                            (size_t)o.nval * LANES * sizeof *at);
  for (int g = 0; g < mi->groups; g++)
    for (int th = 0; th < mi->threads; th++)
      for (int v = 0; v < o.nval; v++) {
        int c = mode_at(&tv.mode[0], th) + mode_at(&tv.mode[1], v);
        int place = c % rows * cols + c / rows;
        at[v * LANES + mi->lane[g * mi->threads + th]] = (uint16_t)place;
      }
  o.at = at;
  return o;
}

// Raises an error for an MMA that uses the registers of mem from element `at`
// on, which are too few.
_Noreturn static void out_of_range(Ctx *cx, const SimMem *mem, uint32_t at) {
  ctx_fail(cx, ERR_INTERNAL, "an MMA uses registers from element %u of %u on",
           (unsigned)at, (unsigned)mem->count);
}

// Sets the registers of MMA operand o from the IR operand `from`.
static void set_registers(Ctx *cx, const SimMem **mem, const Operand *from,
                          SimOperand *o) {
  o->mem = mem[from->ref];
  uint32_t n = (uint32_t)from->n, per = (uint32_t)o->nval / n;
  uint32_t *reg = NEW(cx, uint32_t, (size_t)o->nval);
  for (uint32_t r = 0; r < n; r++)
    for (uint32_t k = 0; k < per; k++)
      reg[r * per + k] = (from->reg[r] + k) * (uint32_t)o->mem->per;
  for (int v = 0; v < o->nval; v++)
    if (reg[v] + (uint32_t)o->mem->per > o->mem->count)
      out_of_range(cx, o->mem, reg[v]);
  o->reg = reg;
}

// Returns the location of operand o, a single 32-bit register.
static SimWord word(Ctx *cx, const SimMem **mem, const Operand *o) {
  SimWord x = {.mem = mem[o->ref]};
  x.unit = o->reg[0] * (uint32_t)x.mem->per;
  if (x.mem->unit > 32 || x.unit + (uint32_t)(32 / x.mem->unit) > x.mem->count)
    out_of_range(cx, x.mem, x.unit);
  return x;
}

static void find_lanes(Ctx *cx, SimMmaIns *mi) {
  const char *id = mi->row->thr;
  Mode flat = read_mode(cx, layout_parse(cx, id, strlen(id)));
  mi->threads = mode_size(&flat);
  if (LANES % mi->threads)
    ctx_fail(cx, ERR_ARG, "the simulator has no %s (%d threads) yet",
             mi->row->name, mi->threads);
  mi->groups = LANES / mi->threads;
  uint8_t *lane = NEW(cx, uint8_t, LANES);
  for (int g = 0; g < mi->groups; g++)
    for (int t = 0; t < mi->threads; t++) {
      int l = mode_at(&flat, t) + g * (mi->threads == 8 ? 4 : 1);
      lane[g * mi->threads + t] = (uint8_t)(l % LANES);
    }
  mi->lane = lane;
}

// Describes operand A. If the atom is sparse, only half of A is stored, and the
// metadata is described, too.
static void set_a(Ctx *cx, SimMmaIns *mi) {
  const AtomMma *row = mi->row;
  bool sparse = row->flags & AMF_SPARSE;
  if (sparse)
    mi->meta = tile_of(cx, mi, row->meta, DT_U16, row->m, atom_mma_words(row));
  if (!(row->flags & AMF_SMEM_A))
    mi->a = tile_of(cx, mi, sparse ? row->stored : row->a, row->a_type,
                    row->m, atom_mma_depth(row));
}

// Sets mi->arranged: whether the accumulators are in the order of mma_place.
static void find_arrangement(SimMmaIns *mi) {
  int n = mi->row->n;
  mi->arranged = mi->groups == 1 && mi->rows == MMA_ROWS;
  for (int k = 0; mi->arranged && k < mi->d.nval * LANES; k++)
    mi->arranged = mi->d.at[k] == mi->c.at[k] &&
                   mma_place(mi->d.at[k] / n, mi->d.at[k] % n) == k;
}

// Describes MMA atom `row` on architecture sm_<sm>.
static void describe(Ctx *cx, const AtomMma *row, int sm, SimMmaIns *mi) {
  mi->row = row;
  mi->m = (SimMma){.a = row->a_type, .b = row->b_type, .c = row->d_type,
                   .k = row->k, .arch = sm,
                   .sat = (row->flags & AMF_SAT) != 0,
                   .op = row->flags & AMF_XORPOPC ? MMA_XOR
                       : row->flags & AMF_ANDPOPC ? MMA_AND : MMA_MUL};
  if (!atom_mma_runs(row) || row->m * row->k > 4096 ||
      row->n * row->k > 4096 || row->m * row->n > 4096)
    ctx_fail(cx, ERR_ARG, "the simulator has no %s yet", row->name);
  find_lanes(cx, mi);
  // matrix.c of the simulator computes these atoms without mma.h, so mma_known
  // does not apply to them.
  bool own = atom_mma_alone(row) || row->flags & (AMF_SPARSE | AMF_SCALE) ||
             row->a_type == DT_C64;
  if (!own && !mma_known(&mi->m))
    ctx_fail(cx, ERR_ARG, "the simulator has no %s for sm_%d", row->name, sm);
  mi->d = tile_of(cx, mi, row->c, row->d_type, row->m, row->n);
  set_a(cx, mi);
  mi->b = tile_of(cx, mi, row->b, row->b_type, row->n, row->k);
  mi->c = tile_of(cx, mi, row->c, row->c_type, row->m, row->n);
  mi->rows = row->m;
  find_arrangement(mi);
}

SimMmaIns *fragments_mma(Ctx *cx, const Launch *l, const SimMem **mem,
                         const Ins *i, const SimMmaIns *last) {
  const AtomMma *row = atom_mma((int)i->imm);
  SimMmaIns *mi = arena_zero(cx, &cx->scratch, sizeof *mi);
  if (last && last->row == row) *mi = *last;
  else describe(cx, row, l->sm, mi);
  SimOperand *main[4] = {&mi->d, &mi->a, &mi->b, &mi->c};
  Operand o[OPERANDS];
  int n = operands_all(l->fn, i, o);
  for (int k = 0; k < 4; k++) set_registers(cx, mem, &o[k], main[k]);
  for (int k = 4; k < n; k++) mi->more[k - 4] = word(cx, mem, &o[k]);
  return mi;
}

// ---- warpgroup MMAs ----

// Collects the shared-memory objects to which the descriptors of A and B may
// point.
static void find_shared(Ctx *cx, const Launch *l, const SimMem **mem,
                        const SimMem ***smem, int *n) {
  const Fn *fn = l->fn;
  const SimMem **all = *smem = NEW(cx, const SimMem *, fn->mem.n + 1);
  *n = 0;
  for (size_t k = 0; k < fn->mem.n; k++)
    if (fn->mem.p[k].space == SP_SMEM)
      all[(*n)++] = mem[fn->mem.p[k].ref];
}

// Describes the rows of a wgmma's tile that the first warp of the warpgroup
// holds. Each other warp holds the next rows in the same way.
static void describe_group(Ctx *cx, const Launch *l, const SimMem **mem,
                           const AtomMma *row, SimMmaIns *mi) {
  mi->row = row;
  mi->m = (SimMma){.a = row->a_type, .b = row->b_type, .c = row->d_type,
                   .k = atom_mma_depth(row), .arch = l->sm, .wgmma = true,
                   .sat = (row->flags & AMF_SAT) != 0};
  if (!mma_known(&mi->m))
    ctx_fail(cx, ERR_ARG, "the simulator has no %s for sm_%d", row->name,
             l->sm);
  uint8_t *lane = NEW(cx, uint8_t, LANES);
  for (int k = 0; k < LANES; k++) lane[k] = (uint8_t)k;
  mi->groups = 1, mi->threads = LANES, mi->lane = lane;
  mi->d = tile_of(cx, mi, row->c, row->d_type, row->m, row->n);
  mi->c = tile_of(cx, mi, row->c, row->c_type, row->m, row->n);
  mi->rows = MMA_ROWS;
  find_arrangement(mi);
  set_a(cx, mi);
  find_shared(cx, l, mem, &mi->smem, &mi->nsmem);
}

SimMmaIns *fragments_wgmma(Ctx *cx, const Launch *l, const SimMem **mem,
                           const uint32_t *slot, const Ins *i,
                           const SimMmaIns *last) {
  const AtomMma *row = atom_mma((int)i->imm);
  SimMmaIns *mi = arena_zero(cx, &cx->scratch, sizeof *mi);
  if (last && last->row == row) *mi = *last;
  else describe_group(cx, l, mem, row, mi);
  Operand acc = operand_of(l->fn, i, ROLE_ACC);
  Operand a = operand_of(l->fn, i, ROLE_A), b = operand_of(l->fn, i, ROLE_B);
  Operand meta = operand_of(l->fn, i, ROLE_META);
  set_registers(cx, mem, &acc, &mi->d);
  set_registers(cx, mem, &acc, &mi->c);
  if (a.kind == OPERAND_RUN) set_registers(cx, mem, &a, &mi->a);
  mi->desc[0] = a.kind == OPERAND_RUN ? 0 : slot[a.ref];
  mi->desc[1] = slot[b.ref];
  mi->add = slot[operand_ref(l->fn, i, ROLE_ADD)];
  if (meta.ref) mi->more[0] = word(cx, mem, &meta);
  return mi;
}

// ---- tensor memory ----

// Describes operand o in tensor memory.
static SimTensorPlace place(const Launch *l, const SimMem **mem,
                            const uint32_t *slot, const Operand *o) {
  return (SimTensorPlace){
    .mem = mem[o->ref], .address = slot[ir_get(l->fn, o->ref)->a[0]],
    .off = slot[o->off], .wide = sim_wide(ir_type(l->fn, o->off))};
}

// Describes a copy between registers and tensor memory: for each register, its
// cell (lane and column) of tensor memory.
static void describe_copy(Ctx *cx, const SimMem **mem, const Operand *regs,
                          SimTensorIns *x) {
  const AtomCopy *row = x->copy;
  bool load = row->op == CO_TMEM_LOAD;
  Tv tv = read_tv(cx, load ? row->dst : row->src);
  int lanes = strstr(row->ptx, "32x32b") ? 32 : 16;
  // bits: number of bits that the copy accesses in one lane of tensor memory.
  // wide: number of bits that it accesses in one column.
  int bits = LANES * row->bits / lanes, wide = row->flags & CPF_PACK ? 16 : 32;
  uint16_t *at = NEW(cx, uint16_t, (size_t)row->num * LANES);
  for (int v = 0; v < row->num; v++)
    for (int l = 0; l < LANES; l++) {
      int bit = mode_at(&tv.mode[0], l) + mode_at(&tv.mode[1], v * 32);
      at[v * LANES + l] =
        (uint16_t)(bit / bits * TMEM_COLUMNS + bit % bits / wide);
    }
  x->at = at;
  x->span = bits / wide;
  x->rmem = mem[regs->ref];
  if (x->rmem->unit > 32)
    ctx_fail(cx, ERR_INTERNAL, "%s: not registers", row->name);
  uint32_t *reg = NEW(cx, uint32_t, (size_t)row->num);
  for (int v = 0; v < row->num; v++)
    reg[v] = regs->reg[v] * (uint32_t)x->rmem->per;
  x->reg = reg;
}

// For each 16-byte piece of tensor memory that a tcgen05.cp writes, finds its
// address, and the piece of the source that is copied there. The layouts map to
// bits. The first two modes of `to` are the rows, and the bits of a row. Each
// other mode repeats these rows. It reads further source rows or, if its source
// stride is 0, the same source rows again.
static void describe_rows(Ctx *cx, SimTensorIns *x) {
  enum { BITS = 8 * PIECE };
  const AtomCopy *row = x->copy;
  Tv src = read_tv(cx, row->src), dst = read_tv(cx, row->dst);
  Mode tmem = read_mode(cx, layout_parse(cx, row->tmem, strlen(row->tmem)));
  const Mode *to = dst.mode[1].n > 1 ? &dst.mode[1] : &tmem;
  int rows = to->shape[0], bits = to->shape[1], per = bits / BITS;
  int parts = mode_size(to) / (rows * bits);
  uint16_t *at = NEW(cx, uint16_t, (size_t)(parts * rows * per));
  uint8_t *piece = NEW(cx, uint8_t, (size_t)(parts * rows * per));
  for (int part = 0, k = 0; part < parts; part++) {
    int more = mode_at(&src.mode[1], part * rows * bits) / bits;
    for (int r = 0; r < rows; r++)
      for (int c = 0; c < per; c++, k++) {
        int v = r + rows * (c * BITS + bits * part);
        int bit = mode_at(&tmem, mode_at(&dst.mode[1], v));
        int lane = bit >> 21, column = bit % (1 << 21) / 32;
        at[k] = (uint16_t)(lane * TMEM_COLUMNS + column);
        piece[k] = (uint8_t)((more + r) * per + c);
        x->groups |= 1u << lane / TMEM_GROUP;
        x->lanes |= 1u << lane % TMEM_GROUP;
        if (more + r >= x->rows) x->rows = more + r + 1;
      }
  }
  x->pieces = parts * rows * per;
  x->at = at, x->piece = piece;
  x->bytes = bits / 8, x->span = bits / 32;
}

// Returns the kind of a tcgen05.mma: the word after ".kind::" in its PTX text.
static UmmaKind kind_of(const AtomMma *row) {
  const char *name = strrchr(row->ptx, ':') + 1;
  size_t n = strcspn(name, ".");
  int k = 0;
  for (; k < UMMA_KIND_COUNT - 1; k++) {
    const char *own = umma_kind((UmmaKind)k)->name;
    if (strlen(own) == n && memcmp(own, name, n) == 0) break;
  }
  return (UmmaKind)k;
}

SimTensorIns *fragments_tensor(Ctx *cx, const Launch *l, const SimMem **mem,
                               const uint32_t *slot, const Ins *i) {
  SimTensorIns *x = arena_zero(cx, &cx->scratch, sizeof *x);
  Operand o[OPERANDS];
  operands_all(l->fn, i, o);
  x->ctas = i->flags & TCF_PAIR ? 2 : 1;
  if (i->op == OP_TCSHIFT) return x;
  if (i->op == OP_TCCP) {
    x->copy = atom_copy((int)i->imm);
    x->acc = place(l, mem, slot, &o[0]);
    x->desc[1] = slot[o[1].ref];
    describe_rows(cx, x);
    find_shared(cx, l, mem, &x->smem, &x->nsmem);
    return x;
  }
  if (op_rows[i->op].imm == IMM_COPY) {
    int regs = i->op == OP_TCLD ? 0 : 1;
    x->copy = atom_copy((int)i->imm);
    x->acc = place(l, mem, slot, &o[1 - regs]);
    describe_copy(cx, mem, &o[regs], x);
    return x;
  }
  const AtomMma *row = x->row = atom_mma((int)i->imm);
  x->u = (SimUmma){.kind = kind_of(row), .a = row->a_type, .b = row->b_type,
                   .d = row->d_type, .scale = row->sf_type,
                   .scales = row->vs ? row->k / row->vs : 0,
                   .sparse = (row->flags & AMF_SPARSE) != 0,
                   .sat = (row->flags & AMF_SAT) != 0};
  if (!atom_mma_runs(row) || !ummamath_known(&x->u))
    ctx_fail(cx, ERR_ARG, "the simulator has no %s for sm_%d", row->name,
             l->sm);
  x->acc = place(l, mem, slot, &o[0]);
  if (o[1].kind == OPERAND_MEM) x->a = place(l, mem, slot, &o[1]);
  else x->desc[0] = slot[o[1].ref];
  x->desc[1] = slot[o[2].ref];
  x->add = slot[o[3].ref];
  for (int k = 0; x->u.scales && k < 2; k++)
    x->sf[k] = place(l, mem, slot, &o[4 + k]);
  if (x->u.sparse)
    x->meta = place(l, mem, slot, &o[x->u.scales ? 6 : 4]);
  find_shared(cx, l, mem, &x->smem, &x->nsmem);
  return x;
}

// ---- ldmatrix, stmatrix, movmatrix ----

// Returns a table for ldmatrix or stmatrix of `num` matrices. For each
// register, 16-bit half and lane, the table has the index of the half among the
// 16-bit pieces of the matrices. tv_text is the layout (thread,bit) -> bit of
// the registers.
static uint8_t *halves(Ctx *cx, const char *tv_text, int num) {
  Tv tv = read_tv(cx, tv_text);
  uint8_t *half = NEW(cx, uint8_t, (size_t)num * 2 * LANES);
  int threads = mode_size(&tv.mode[0]);
  for (int r = 0; r < num * 2; r++)
    for (int t = 0; t < LANES; t++) {
      int bit = mode_at(&tv.mode[0], t % threads) +
                mode_at(&tv.mode[1], r * 16);
      half[r * LANES + t] = (uint8_t)(bit / 16);
    }
  return half;
}

SimMatrix *fragments_matrix(Ctx *cx, const Launch *l, const SimMem **mem,
                            const Ins *i) {
  const AtomCopy *row = atom_copy((int)i->imm);
  SimMatrix *m = arena_zero(cx, &cx->scratch, sizeof *m);
  Operand src = operand_of(l->fn, i, ROLE_SRC);
  m->row = row;
  m->num = row->num;
  m->store = row->op == CO_STSM;
  if (!src.ref)
    ctx_fail(cx, ERR_ARG, "the simulator has no %s yet", row->name);
  Operand r = m->store ? src : operand_of(l->fn, i, ROLE_DST);
  m->rmem = mem[r.ref];
  if (m->rmem->unit > 32)
    ctx_fail(cx, ERR_INTERNAL, "%s: not registers", row->name);
  int per = 32 / m->rmem->unit;
  uint32_t *reg = NEW(cx, uint32_t, (size_t)row->num);
  for (int k = 0; k < row->num; k++)
    reg[k] = r.reg[k] * (uint32_t)m->rmem->per;
  m->reg = reg;
  for (int k = 0; k < row->num; k++)
    if (m->reg[k] + (uint32_t)per > m->rmem->count)
      ctx_fail(cx, ERR_INTERNAL, "%s: register out of range", row->name);
  m->half = halves(cx, m->store ? row->src : row->dst, row->num);
  if (row->op == CO_MOVM) m->from = word(cx, mem, &src);
  return m;
}
// SPDX-License-Identifier: MIT
