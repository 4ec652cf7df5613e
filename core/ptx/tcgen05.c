// tcgen05.c: instructions that sm_100 introduced: tensor memory, MMAs with
// accumulators there, and the cancellation of clusters.
#include <string.h>

#include "atoms/atom.h"
#include "ptx/inside.h"

static void emit(PtxOp *o, Op op, unsigned flags, const Ref *x, uint32_t n) {
  operands_emit(o->b->cx, o->b->fn, (Ins){.op = (uint8_t)op,
                .flags = (uint16_t)flags}, x, n, NULL, 0);
}

// Rejects an instruction that does not have n operands.
static void check_operands(PtxOp *o, uint32_t n) {
  if (o->i->args == n) return;
  ptx_fail(o->b, "'%s' cannot have %u operands", o->i->op, o->i->args);
}

// Returns the flags of .cta_group. Every instruction that belongs to a CTA or
// to a pair of CTAs must have this modifier.
static unsigned group_of(PtxOp *o) {
  if (op_has(o, "cta_group::1")) return 0;
  if (op_has(o, "cta_group::2")) return TCF_PAIR;
  ptx_fail(o->b, "'%s' needs .cta_group::1 or .cta_group::2", o->i->op);
}

// Appends to x an object of tensor memory at address `at`, and the offset of
// the object's first element.
static void put_object(PtxOp *o, Ref at, DType t, Ref off, Ref *x) {
  PtxBuild *b = o->b;
  Mem m = {.space = SP_TMEM, .type = t, .count = -1, .align = 16,
           .arg = NO_ARG, .ptx = true};
  m.name = ir_text(b->cx, b->fn, "tensor memory", 13);
  x[0] = ir_mem_of(b->cx, b->fn, m, at, 0);
  x[1] = off;
}

// Returns the address [a] in tensor memory.
static Ref tensor_address(PtxOp *o, const PtxArg *a) {
  return op2(o, OP_ADD, op_value(o, op_base(o, a), DT_U32),
             number(o, DT_U32, a->value));
}

// Appends to x an object of tensor memory at [a], and the offset of the
// object's first element.
static void put_tensor(PtxOp *o, const PtxArg *a, DType t, Ref *x) {
  put_object(o, tensor_address(o, a), t, number(o, DT_I32, 0), x);
}

// ---- allocation, order, shifts ----

void row_tmem_alloc(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  unsigned flags = group_of(o);
  o->used = UINT32_MAX;  // The row lists the other allowed modifiers.
  check_operands(o, 2);
  Place p = op_place(o, op_arg(o, 0), IN_SHARED);
  op_count_in(o, &p, DT_U32, 4, "the address of tensor memory");
  Ref x[3] = {p.mem, p.off, op_operand(o, 1, DT_U32)};
  emit(o, OP_TCALLOC, flags, x, 3);
  if (b->flags & PTX_ALLOC_FENCED)
    ir_emit(b->cx, b->fn, (Ins){.op = OP_FENCE, .imm = FE_ASYNC_CTA});
}

// Translates an instruction of tensor memory whose operands are n integers.
static void row_integers(PtxOp *o, Op op, uint32_t n) {
  unsigned flags = group_of(o);
  o->used = UINT32_MAX;
  check_operands(o, n);
  Ref x[2];
  for (uint32_t q = 0; q < n; q++) x[q] = op_operand(o, q, DT_U32);
  emit(o, op, flags, x, n);
}

void row_tmem_dealloc(PtxOp *o, int k) { row_integers(o, (Op)k, 2); }
void row_tmem_relinquish(PtxOp *o, int k) { row_integers(o, (Op)k, 0); }

void row_tmem_shift(PtxOp *o, int k) {
  (void)k;
  unsigned flags = group_of(o);
  check_operands(o, 1);
  if (!op_has(o, "down")) op_reject(o, "its direction");
  Ref x = tensor_address(o, op_arg(o, 0));
  emit(o, OP_TCSHIFT, flags, &x, 1);
}

void row_tmem_wait(PtxOp *o, int k) {
  o->used = UINT32_MAX;
  check_operands(o, 0);
  emit(o, (Op)k, 0, NULL, 0);
}

void row_tmem_fence(PtxOp *o, int k) {
  check_operands(o, 0);
  emit(o, OP_TCFENCE, (unsigned)k, NULL, 0);
}

void row_commit(PtxOp *o, int k) {
  (void)k;
  unsigned flags = group_of(o);
  bool many = op_has(o, "multicast::cluster");
  o->used = UINT32_MAX;
  check_operands(o, many ? 2 : 1);
  Ref rank;
  Place p = op_barrier(o, op_arg(o, 0), &rank);
  Ref x[3] = {p.mem, p.off, 0};
  // A multicast arrives at the same offset in the shared memory of each CTA of
  // the mask.
  if (many) x[2] = to(o, DT_I32, op_operand(o, 1, DT_U16));
  else if (rank) x[2] = op2(o, OP_SHL, number(o, DT_I32, 1), rank);
  emit(o, OP_TCCOMMIT, flags, x, x[2] ? 3 : 2);
}

// ---- copies to and from registers ----

void row_tmem_copy(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  bool load = k == OP_TCLD;
  int id = atom_tmem_find(o->i->op);
  if (id < 0) op_reject(o, "its shape and number");
  const AtomCopy *row = atom_copy(id);
  bool half = op_has(o, "16x32bx2");
  o->used = UINT32_MAX;
  check_operands(o, half ? 3 : 2);
  int columns = row->flags & CPF_PACK ? 2 * row->num : row->num;
  if (half && op_constant(o, load ? 2 : 1) != columns) {
    op_reject(o, "the columns of the second half do not follow those of the "
              "first");
  }
  Runs r = {.n = 0};
  op_run(o, &r, op_arg(o, load ? 0 : half ? 2 : 1), DT_NONE);
  if (r.regs != (uint32_t)row->num)
    op_reject(o, "its number of registers does not match .num");
  Ref x[3];
  put_tensor(o, op_arg(o, load ? 1 : 0), DT_U32, load ? x + 1 : x);
  x[load ? 0 : 2] = r.mem[0];
  Ref made = operands_emit(b->cx, b->fn, (Ins){.op = (uint8_t)k, .imm = id}, x,
                           3, r.reg, r.regs);
  if (load) b->load = made;
}

// Translates tcgen05.cp, from shared to tensor memory.
void row_tmem_rows(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  unsigned flags = group_of(o);
  o->used = UINT32_MAX;  // The row lists the other allowed modifiers.
  check_operands(o, 2);
  int id = atom_tmem_find(o->i->op);
  if (id < 0) op_reject(o, "its shape");
  Ref x[3];
  put_tensor(o, op_arg(o, 0), DT_U32, x);
  x[2] = op_operand(o, 1, DT_U64);
  operands_emit(b->cx, b->fn, (Ins){.op = OP_TCCP, .imm = id,
                .flags = (uint16_t)flags}, x, 3, NULL, 0);
}

// ---- MMAs ----

// Returns the atom of a tcgen05.mma that has instruction descriptor `desc`, or
// -1.
static int find_umma(PtxOp *o, const char *text, bool smem_a, uint32_t desc) {
  PtxBuild *b = o->b;
  for (int k = 0; k < UMMAS && b->umma[k].op; k++) {
    const PtxUmma *u = &b->umma[k];
    if (u->op == o->i->op && u->desc == desc && u->smem_a == smem_a)
      return u->id;
  }
  int id = atom_umma_find(text, smem_a, desc);
  if (id >= 0 && !atom_mma_runs(atom_mma(id))) id = -1;
  memmove(b->umma + 1, b->umma, (UMMAS - 1) * sizeof *b->umma);
  b->umma[0] = (PtxUmma){o->i->op, desc, smem_a, id};
  return id;
}

// The values that an instruction descriptor may have. The bits `ids` are left
// out. n: number of values; 0: the values are not known.
enum { DESCRIPTORS = 16 };
typedef struct Descriptors {
  uint32_t v[DESCRIPTORS], ids;
  int n;
} Descriptors;

// Fields of the descriptor that select the bytes of the scale factors.
static const uint32_t scale_ids = 3u << UMMA_SFA_BIT | 3u << UMMA_SFB_BIT;

// Returns a field of an instruction descriptor, as u32.
static Ref field(PtxOp *o, Ref desc, int bit, uint32_t mask) {
  Ref x = op2(o, OP_SHR, desc, number(o, DT_U32, bit));
  return op2(o, OP_AND, x, number(o, DT_U32, mask));
}

static void add_value(Descriptors *d, uint32_t v) {
  int k = 0;
  v &= ~d->ids;
  while (k < d->n && d->v[k] != v) k++;
  if (k == d->n && k < DESCRIPTORS) d->v[d->n++] = v;
}

// Returns a mask of the bits that may be 1 in value r, a u32.
static uint32_t bits_of(PtxOp *o, Ref r, int depth) {
  const Ins i = *ir_get(o->b->fn, r);
  int64_t v;
  if (ir_const(o->b->fn, r, &v)) return (uint32_t)v;
  if (depth && i.op == OP_BITCAST) return bits_of(o, i.a[0], depth - 1);
  bool both = i.op == OP_AND;
  if (!depth || (!both && i.op != OP_OR)) return UINT32_MAX;
  uint32_t x = bits_of(o, i.a[0], depth - 1), y = bits_of(o, i.a[1], depth - 1);
  return both ? x & y : x | y;
}

// Returns the possible values of r, without the bits `ids`. r must be computed
// from constants, between which conditions may select, and from values that
// have only bits of `ids`.
static Descriptors values_of(PtxOp *o, Ref r, uint32_t ids, int depth) {
  Descriptors d = {.ids = ids};
  Fn *fn = o->b->fn;
  int64_t v;
  if (ir_const(fn, r, &v)) add_value(&d, (uint32_t)v);
  else if (!(bits_of(o, r, 8) & ~ids)) add_value(&d, 0);
  const Ins i = *ir_get(fn, r);
  if (d.n || !depth) return d;
  if (i.op == OP_BITCAST) return values_of(o, i.a[0], ids, depth - 1);
  bool either = i.op == OP_SEL, two = op_pure((Op)i.op) && i.a[1] && !i.a[2];
  if (!either && !two) return d;
  if (i.op != OP_OR && !either) ids = 0;
  Ref a = i.a[either ? 1 : 0], b = i.a[either ? 2 : 1];
  Descriptors x = values_of(o, a, ids, depth - 1);
  Descriptors y = values_of(o, b, ids, depth - 1);
  if (!x.n || !y.n || x.n * y.n > DESCRIPTORS) return d;
  for (int j = 0; either && j < x.n; j++) add_value(&d, x.v[j]);
  for (int k = 0; either && k < y.n; k++) add_value(&d, y.v[k]);
  for (int k = 0; two && k < x.n * y.n; k++) {
    Ref folded = op2(o, (Op)i.op,
                     number(o, ir_type(fn, a), x.v[k % x.n]),
                     number(o, ir_type(fn, b), y.v[k / x.n]));
    if (ir_const(fn, folded, &v)) add_value(&d, (uint32_t)v);
  }
  return d;
}

// Checks that the operand disable-output-lane is 0. Rejects any other constant,
// and emits a report for threads in which a computed mask is not 0.
static void check_lanes(PtxOp *o, const PtxArg *mask) {
  Ref all = number(o, DT_U32, 0);
  for (uint32_t q = 0; q < mask->parts; q++) {
    all = op2(o, OP_OR, all, op_value(o, op_part(o, mask, q), DT_U32));
  }
  int64_t known = 0;
  Ref none = op2(o, OP_EQ, all, number(o, DT_U32, 0));
  if (!ir_const(o->b->fn, none, &known)) {
    op_require(o, none, "the mask disable-output-lane of tcgen05.mma is not 0, "
               "which is not modelled");
  } else if (!known) {
    op_reject(o, "its mask disable-output-lane is not 0");
  }
}

// Returns the name of the instruction in the table of atoms. It contains the
// number of elements that share a scale factor. With 32 such elements, kind
// mxf4nvf4 is the same as kind mxf4.
static const char *text_of(PtxOp *o, bool pair) {
  Ctx *cx = o->b->cx;
  const char *kind = NULL, *scales = "";
  for (int q = 0; q < o->n; q++) {
    if (strncmp(o->mod[q], "kind::", 6) == 0) kind = o->mod[q];
  }
  if (!kind) ptx_fail(o->b, "'%s' needs a .kind", o->i->op);
  if (op_has(o, "block_scale")) {
    bool small = op_has(o, "block16") || op_has(o, "scale_vec::4X");
    scales = small ? ".block_scale.block16" : ".block_scale.block32";
    if (!small && strcmp(kind, "kind::mxf4nvf4") == 0) kind = "kind::mxf4";
  }
  return arena_printf(cx, &cx->scratch, "tcgen05.mma%s%s.cta_group::%d.%s%s",
                      op_has(o, "ws") ? ".ws" : "",
                      op_has(o, "sp") ? ".sp" : "", pair ? 2 : 1, kind,
                      scales);
}

// A tcgen05.mma. `rest` is the index of the first operand after the descriptor.
// `predicate` is the index of the operand enable-input-d.
typedef struct Umma {
  unsigned flags;
  Ref desc;
  bool scaled, sparse;
  uint32_t rest, predicate;
} Umma;

// Appends to x the scale factors at [a]. CuTe stores the byte within a column
// in the two highest bits, which do not belong to the address.
static void put_scales(PtxOp *o, const PtxArg *a, DType t, Ref desc, int bit,
                       Ref *x) {
  Ref at = op2(o, OP_AND, tensor_address(o, a), number(o, DT_U32, 0x3fffffff));
  put_object(o, at, t, as(o, DT_I32, field(o, desc, bit, 3)), x);
}

// Appends to x the metadata at [a]. If the metadata has one column, the
// selector in the descriptor chooses one of the two columns at the address.
static void put_metadata(PtxOp *o, const PtxArg *a, const AtomMma *row,
                         Ref desc, Ref *x) {
  Ref at = tensor_address(o, a), selector = field(o, desc, 0, UMMA_SELECTOR);
  bool selects = atom_umma_metadata(row) == 1;
  Ref zero = number(o, DT_U32, 0);
  op_require(o, op2(o, OP_EQ, op2(o, OP_AND, selector,
                                  number(o, DT_U32, selects ? 2 : 3)), zero),
             selects ? "the sparsity selector of tcgen05.mma is not 0 or 1"
                     : "the sparsity selector of tcgen05.mma is not 0; this "
                       ".kind needs 0");
  if (selects)
    op_require(o, op2(o, OP_EQ, op2(o, OP_AND, at, number(o, DT_U32, 1)), zero),
               "the metadata of tcgen05.mma is at an odd column, not at a pair "
               "of columns, one of which the sparsity selector selects");
  put_object(o, op2(o, OP_ADD, at, selector), DT_U8, number(o, DT_I32, 0), x);
}

// Emits the MMA of an atom.
static void emit_umma(PtxOp *o, int id, const Umma *u) {
  const AtomMma *row = atom_mma(id);
  Ref x[OPERANDS];
  uint32_t n = 2;
  put_tensor(o, op_arg(o, 0), row->d_type, x);
  if (row->flags & AMF_SMEM_A) {
    x[n++] = op_operand(o, 1, DT_U64);
  } else {
    put_tensor(o, op_arg(o, 1), row->a_type, x + n);
    n += 2;
  }
  x[n++] = op_operand(o, 2, DT_U64);
  x[n++] = op_pred(o, op_arg(o, u->predicate));
  for (uint32_t k = 0; u->scaled && k < 2; k++, n += 2) {
    put_scales(o, op_arg(o, u->rest + k), row->sf_type, u->desc,
               k ? UMMA_SFB_BIT : UMMA_SFA_BIT, x + n);
  }
  if (u->sparse) {
    put_metadata(o, op_arg(o, 3), row, u->desc, x + n);
    n += 2;
  }
  operands_emit(o->b->cx, o->b->fn, (Ins){.op = OP_TCMMA, .imm = id,
                .flags = (uint16_t)u->flags}, x, n, NULL, 0);
}

// Checks the operands of a tcgen05.mma that follow its descriptor.
static void check_rest(PtxOp *o, Umma *u) {
  uint32_t at = u->rest;
  if (u->scaled) at += 2;
  else if (op_arg(o, at)->kind == PTX_A_VECTOR) check_lanes(o, op_arg(o, at++));
  bool shift = !u->scaled && o->i->args == at + 2;
  check_operands(o, at + (shift ? 2 : 1));
  if (shift && op_has(o, "ws")) op_reject(o, "its zero-column mask");
  if (shift && op_constant(o, at + 1) != 0) {
    op_reject(o, "its scale-input-d is not 0");
  }
  u->predicate = at;
}

void row_umma(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  Umma u = {.flags = group_of(o)};
  bool pair = u.flags & TCF_PAIR;
  if (pair && op_has(o, "ws"))
    op_reject(o, "its .cta_group: .ws has .cta_group::1 only");
  const char *text = text_of(o, pair);
  u.scaled = op_has(o, "block_scale");
  u.sparse = op_has(o, "sp");
  u.rest = u.sparse ? 5 : 4;
  // .collector is only a hint, so mark all modifiers as used.
  o->used = UINT32_MAX;
  bool smem_a = op_arg(o, 1)->kind != PTX_A_ADDRESS;
  check_rest(o, &u);
  u.desc = op_operand(o, u.rest - 1, DT_U32);
  uint32_t ids = (u.scaled ? scale_ids : 0) | (u.sparse ? UMMA_SELECTOR : 0);
  Descriptors all = values_of(o, u.desc, ids, 8);
  if (!all.n) op_reject(o, "its instruction descriptor is not a constant");
  // Emits an MMA for each value of the descriptor that the simulator models,
  // and a report for other values.
  Ref known = 0;
  for (int q = 0; q < all.n; q++) {
    int id = find_umma(o, text, smem_a, all.v[q]);
    if (id < 0) continue;
    Ref own = op2(o, OP_AND, u.desc, number(o, DT_U32, ~ids));
    own = op2(o, OP_EQ, own, number(o, DT_U32, all.v[q]));
    known = known ? op2(o, OP_OR, known, own) : own;
    if (all.n > 1) ir_open(b->cx, b->fn, (Ins){.op = OP_IF, .a = {own}});
    emit_umma(o, id, &u);
    if (all.n == 1) return;
    ir_else(b->cx, b->fn);
    ir_close(b->cx, b->fn);
  }
  uint32_t v = all.v[0];
  const char *why = arena_printf(
    b->cx, &b->cx->scratch, "no instruction that is modelled has the "
    "descriptor 0x%08x: M = %u, N = %u, formats %u of D, %u of A, %u of B", v,
    (v >> 24 & 31) * 16, (v >> 17 & 63) * 8, v >> 4 & 3, v >> 7 & 7,
    v >> 10 & 7);
  if (!known) ptx_fail(b, "'%s': %s", o->i->op, why);
  op_require(o, known, "tcgen05.mma has an instruction descriptor that is not "
             "modelled");
}

// ---- cancellation of clusters ----

void row_cancel(PtxOp *o, int k) {
  (void)k;
  check_operands(o, 2);
  const int32_t *c = o->b->fn->cluster;
  bool all = op_has(o, "multicast::cluster::all");
  o->used = UINT32_MAX;
  if (!all && (int64_t)c[0] * c[1] * c[2] > 1) {
    op_reject(o, "in a cluster of several CTAs it needs "
              ".multicast::cluster::all");
  }
  Place d = op_place(o, op_arg(o, 0), IN_SHARED);
  Ref rank;
  Place bar = op_barrier(o, op_arg(o, 1), &rank);
  Ref x[4] = {d.mem, d.off, bar.mem, bar.off};
  operands_emit(o->b->cx, o->b->fn, (Ins){.op = OP_CLCTRY, .imm = 128}, x, 4,
                NULL, 0);
}

// Translates query_cancel: reads the response in a 128-bit register.
void row_canceled(PtxOp *o, int k) {
  (void)k;
  static const struct { const char *mod; IntrinId id; } all[] = {
    {"get_first_ctaid::x", IN_CLCX}, {"get_first_ctaid::y", IN_CLCY},
    {"get_first_ctaid::z", IN_CLCZ}};
  check_operands(o, 2);
  bool asks = op_has(o, "is_canceled"), vector = op_has(o, "get_first_ctaid");
  const PtxArg *d = op_arg(o, 0), *from = op_arg(o, 1);
  Ref half[2];
  for (int q = 0; q < 2; q++) half[q] = op_half(o, from, q);
  if (asks) {
    o->used = UINT32_MAX;
    Ref v = op_intrin(o, IN_CLCVALID, 0, half[0], half[1], 0);
    op_set(o, d, op2(o, OP_NE, v, number(o, DT_U32, 0)));
    return;
  }
  if (vector != (d->kind == PTX_A_VECTOR) || (vector && d->parts != 4)) {
    op_reject(o, "its operands");
  }
  bool found = vector;
  for (uint32_t q = 0; q < 3; q++) {
    if (!vector && !op_has(o, all[q].mod)) continue;
    found = true;
    op_set(o, vector ? op_part(o, d, q) : d,
           op_intrin(o, all[q].id, 0, half[0], half[1], 0));
  }
  if (!found) op_reject(o, "its modifiers");
  o->used = UINT32_MAX;
}
// SPDX-License-Identifier: MIT
