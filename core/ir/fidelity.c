// Fidelity of executed instructions (fidelity.h). A value may differ on a GPU
// if its instruction guarantees only an error bound, or if the value depends on
// another value that may differ. The analysis follows dependences through
// values, variables, registers and memory, regardless of order. A memory object
// is treated as one unit. An access at a computed address may be to any global
// memory.
#include "ir/fidelity.h"

#include <string.h>

#include "atoms/atom.h"
#include "base/soft.h"
#include "ir/intrin.h"
#include "ir/operands.h"

static const struct { const char *name, *text; uint8_t what; } classes[] = {
#define FI(id, name, what, text) {name, text, AGREE_##what},
  FIDELITIES(FI)
#undef FI
};

const char *fidelity_name(Fidelity f) { return classes[f].name; }
const char *fidelity_text(Fidelity f) { return classes[f].text; }

const char *agreement_name(Agreement a) {
  static const char *const t[] = {"exact", "measured", "bounded", "weaker"};
  return t[a];
}

const char *reach_name(Reach r) {
  static const char *const t[] = {"", "control flow", "address",
                                  "synchronization", "selection"};
  return t[r];
}

// ---- classes ----

static Fidelity mma_class(const AtomMma *row) {
  switch (row->kind) {
    case MK_FMA: case MK_DP4A: case MK_DP2A: case MK_FMA2: return FI_EXACT;
    case MK_MMA: case MK_WGMMA: case MK_TCGEN05: break;
  }
  return dtype_is_float(row->d_type) ? FI_TENSOR : FI_EXACT;
}

static Fidelity atomic_class(const Fn *fn, const Ins *i, AtomicKind k) {
  Operand o;
  Fidelity f = (Fidelity)atomic_row(k)->fidelity;
  if (f != FI_ORDER) return f;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    bool memory = o.kind == OPERAND_MEM || o.kind == OPERAND_MAP;
    if (memory && o.written && dtype_is_float(ir_type(fn, o.ref))) return f;
    if (o.kind == OPERAND_VALUE && i->op == OP_ATOMIC && o.ref &&
        dtype_is_float(ir_type(fn, o.ref)))
      return f;
  }
  return FI_EXACT;
}

static Fidelity intrin_class(const Ins *i) {
  Fidelity f = (Fidelity)intrin_row(intrin_id(i->imm))->fidelity;
  if (f != FI_ROW) return f;
  return soft_fidelity((SoftOp)soft_unpack(intrin_imm(i->imm)).op);
}

// Returns the fidelity that the tables state for instruction i. Ignores entries
// of Fn.loose for i.
static Fidelity class_of(const Fn *fn, const Ins *i) {
  Fidelity f = (Fidelity)op_rows[i->op].fidelity;
  if (f != FI_ROW) return f;
  switch ((ImmKind)op_rows[i->op].imm) {
    case IMM_MATH:
      f = math_fidelity((MathFn)i->imm);
      return f == FI_CUDA && i->type == DT_F64 ? FI_LIBRARY : f;
    case IMM_INTRIN: return intrin_class(i);
    case IMM_MMA: return mma_class(atom_mma((int)i->imm));
    case IMM_ATOMIC: return atomic_class(fn, i, (AtomicKind)i->imm);
    case IMM_BITS:  // bulk stores
      if (!(i->flags & BKF_REDUCES)) return FI_EXACT;
      return atomic_class(fn, i, (AtomicKind)(i->flags & BKF_ATOMIC));
    case IMM_NONE: case IMM_RAW: case IMM_ARG: case IMM_MEM: case IMM_TEXT:
    case IMM_SREG: case IMM_ELEMENTS: case IMM_COPY: case IMM_UNROLL:
    case IMM_BARRIER: case IMM_GROUPS: case IMM_FENCE: case IMM_REGISTERS:
    case IMM_MODE: case IMM_LEVELS:
      break;
  }
  return FI_EXACT;
}

static Agreement agreement(Fidelity f, int sm) {
  Agreement a = (Agreement)classes[f].what;
  return a == AGREE_SM90 && sm / 10 != 9 ? AGREE_BOUND : a;
}

// ---- contraction ----

// Returns the instruction that computes the float r. Skips later negations,
// bitcasts and integer conversions.
static Ref computed(const Fn *fn, Ref r) {
  for (;;) {
    const Ins *i = ir_get(fn, r);
    bool same = i->op == OP_BITCAST || i->op == OP_NEG ||
                (i->op == OP_CVT && !dtype_is_float((DType)i->type) &&
                 !dtype_is_float(ir_type(fn, i->a[0])));
    if (!same) return r;
    r = i->a[0];
  }
}

typedef enum Part { PART_NONE, PART_PRODUCT, PART_SUM } Part;

static Part part_of(const Ins *i) {
  if (i->op == OP_MUL) return PART_PRODUCT;
  if (i->op == OP_ADD || i->op == OP_SUB) return PART_SUM;
  if (i->op != OP_INTRIN) return PART_NONE;
  switch ((int)intrin_id(i->imm)) {
    case IN_MULF162: case IN_MULBF2: return PART_PRODUCT;
    case IN_ADDF162: case IN_ADDBF2: case IN_SUBF162: case IN_SUBBF2:
      return PART_SUM;
    case IN_SOFT: case IN_SOFT64: break;
    default: return PART_NONE;
  }
  SoftOp op = (SoftOp)soft_unpack(intrin_imm(i->imm)).op;
  return op == SOFT_MUL ? PART_PRODUCT
         : op == SOFT_ADD || op == SOFT_SUB ? PART_SUM : PART_NONE;
}

typedef struct Search {
  const Fn *fn;
  Faith *of;
  // from: for each instruction, the instruction that makes its value inexact;
  // object: the same for the contents of each object of Fn.mem; 0: exact
  Ref *from, *object;
  // for each instruction: whether it is a product that ptxas may contract with
  // a sum to an FMA
  uint8_t *product;
  bool changed;
} Search;

// Reports whether r is a product that ptxas may contract with a sum to an FMA,
// or a variable that was set to such a product.
static bool is_product(const Search *s, Ref r) {
  r = computed(s->fn, r);
  const Ins *i = ir_get(s->fn, r);
  return s->product[i->op == OP_VGET ? i->a[0] : r];
}

// Marks each sum that ptxas may contract with a product to an FMA, because
// neither the sum nor the product has the suffix .rn.
static void find_contractions(Search *s) {
  const Fn *fn = s->fn;
  for (size_t k = 0; k < fn->loose.n; k++) {
    Ref r = computed(fn, fn->loose.p[k].at);
    if (fn->loose.p[k].how == FI_CONTRACTED)
      s->product[r] = part_of(ir_get(fn, r)) == PART_PRODUCT;
  }
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_VSET && is_product(s, i->a[1])) s->product[i->a[0]] = 1;
    if (i->op == OP_VAR && is_product(s, i->a[0])) s->product[r] = 1;
  }
  for (size_t k = 0; k < fn->loose.n; k++) {
    const Loose *l = &fn->loose.p[k];
    Ref r = computed(fn, l->at);
    const Ins *i = ir_get(fn, r);
    if (l->how != FI_CONTRACTED) {
      s->of[l->at].how = l->how;
    } else if (part_of(i) == PART_SUM &&
               (is_product(s, i->a[0]) || is_product(s, i->a[1]))) {
      s->of[r].how = FI_CONTRACTED;
    }
  }
}

// ---- flow ----

static void set(Search *s, Ref *to, Ref from) {
  if (!from || *to) return;
  *to = from;
  s->changed = true;
}

// Reports whether two memory objects may share memory.
static bool shares(const Search *s, const Mem *a, const Mem *b) {
  bool ga = mem_is_global(a);
  bool gb = mem_is_global(b);
  if (ga && gb) {
    if (a->arg == NO_ARG || b->arg == NO_ARG || a->arg == b->arg) return true;
    int32_t o = s->fn->arg.p[a->arg].overlap;
    return o && o == s->fn->arg.p[b->arg].overlap;
  }
  bool sa = mem_is_shared(a);
  bool sb = mem_is_shared(b);
  if (a->space == SP_TMEM && b->space == SP_TMEM) return true;
  return sa && sb && ir_overlaps(a, b);
}

static Ref contents(const Search *s, Ref object) {
  return s->object[ir_get(s->fn, object)->imm];
}

static void store(Search *s, Ref object, Ref from) {
  size_t own = (size_t)ir_get(s->fn, object)->imm;
  if (!from || s->object[own]) return;
  set(s, &s->object[own], from);
  for (size_t k = 0; k < s->fn->mem.n; k++)
    if (shares(s, &s->fn->mem.p[own], &s->fn->mem.p[k]))
      set(s, &s->object[k], from);
}

// Returns the instruction that made the value or the contents of operand o
// inexact, or 0 if they are exact. o is an operand of i.
static Ref origin(const Search *s, const Ins *i, const Operand *o) {
  switch ((OperandKind)o->kind) {
    case OPERAND_VALUE: case OPERAND_PRED: case OPERAND_LANES:
      return s->from[o->ref];
    case OPERAND_VAR: return o->read ? s->from[o->ref] : 0;
    case OPERAND_MEM:
      if (s->from[o->off]) return s->from[o->off];
      return o->read && !o->barrier ? contents(s, o->ref) : 0;
    case OPERAND_MAP: return o->read ? contents(s, o->ref) : 0;
    case OPERAND_RUN:  // a warpgroup's MMA also reads the registers of D
      return o->read || i->op == OP_WGMMA ? contents(s, o->ref) : 0;
    case OPERAND_OBJECT: break;
  }
  return 0;
}

static void write_operand(Search *s, const Operand *o, Ref from) {
  if (!o->written || o->barrier || o->map) return;
  if (o->kind == OPERAND_VAR) set(s, &s->from[o->ref], from);
  else store(s, o->ref, from);
}

// Returns an instruction that made a value in shared memory inexact, or 0. An
// operation that reads through descriptors may read any shared memory.
static Ref any_shared(const Search *s) {
  for (size_t k = 0; k < s->fn->mem.n; k++)
    if (s->fn->mem.p[k].space == SP_SMEM && s->object[k]) return s->object[k];
  return 0;
}

static void flow(Search *s, Ref r) {
  const Ins *i = ir_get(s->fn, r);
  Ref from = s->of[r].agree == AGREE_BOUND && s->of[r].count ? r : 0;
  Operand o;
  for (Operands w = operands_of(s->fn, i); !from && operands_next(&w, &o);)
    if (o.ref) from = origin(s, i, &o);
  bool shared = i->op == OP_TCCP || (op_rows[i->op].imm == IMM_MMA &&
                                     op_effect((Op)i->op) & EF_LATER);
  if (!from && shared) from = any_shared(s);
  if (!from) return;
  if (op_rows[i->op].rule != RULE_NONE && op_rows[i->op].rule != RULE_SET)
    set(s, &s->from[r], from);
  for (Operands w = operands_of(s->fn, i); operands_next(&w, &o);)
    if (o.ref) write_operand(s, &o, from);
}

// ---- uses ----

// Returns how instruction i uses operand o. Returns REACH_NONE if a small
// difference in o changes only the rounding of results.
static Reach use_of(const Ins *i, const Operand *o) {
  bool opens = op_effect((Op)i->op) & EF_OPENS;
  bool address = o->role == ROLE_AT || o->role == ROLE_ADDRESS;
  if (o->kind == OPERAND_LANES || role_synchronizes((Role)o->role))
    return REACH_SYNC;
  if (o->kind == OPERAND_PRED)
    return i->op == OP_SEL ? REACH_CHOICE : REACH_CONTROL;
  if (o->kind != OPERAND_VALUE) return REACH_NONE;
  if (opens) return REACH_CONTROL;
  if (address) return REACH_ADDRESS;
  return REACH_NONE;
}

// Returns the operand by which PICK or PUT chooses a register, or by which a
// shuffle chooses a lane.
static Ref index_of(const Fn *fn, const Ins *i) {
  Ref index = operand_ref(fn, i, ROLE_INDEX);
  if (index) return index;
  if (intrin_shuffles(i)) return i->a[1];
  return 0;
}

static void find_use(Search *s, Ref r) {
  const Ins *i = ir_get(s->fn, r);
  Faith *f = &s->of[r];
  Operand o;
  if (!f->count || i->op == OP_TRAP) return;
  Ref index = index_of(s->fn, i);
  if (index && s->from[index])
    f->reach = REACH_ADDRESS, f->from = s->from[index];
  for (Operands w = operands_of(s->fn, i); operands_next(&w, &o);) {
    if (f->reach || !o.ref) continue;
    bool memory = o.kind == OPERAND_MEM;
    Ref from = memory ? s->from[o.off]
               : o.kind == OPERAND_VALUE || o.kind == OPERAND_PRED ||
                 o.kind == OPERAND_LANES ? s->from[o.ref] : 0;
    if (!from) continue;
    f->reach = memory ? REACH_ADDRESS : use_of(i, &o);
    f->from = from;
  }
}

Faith *fidelity_find(Ctx *cx, const Fn *fn, int sm, const uint64_t *executed) {
  size_t n = fn->ins.n;
  Search s = {.fn = fn,
    .of = arena_zero(cx, &cx->scratch, n * sizeof *s.of),
    .from = arena_zero(cx, &cx->scratch, n * sizeof *s.from),
    .object = arena_zero(cx, &cx->scratch, (fn->mem.n + 1) * sizeof(Ref)),
    .product = arena_zero(cx, &cx->scratch, n)};
  for (Ref r = 1; r < n; r++)
    s.of[r] = (Faith){.count = executed[r], .how = class_of(fn, ir_get(fn, r))};
  find_contractions(&s);
  for (Ref r = 1; r < n; r++) s.of[r].agree = agreement(s.of[r].how, sm);
  do {
    s.changed = false;
    for (Ref r = 1; r < n; r++)
      if (s.of[r].count || op_pure((Op)ir_get(fn, r)->op) ||
          ir_get(fn, r)->op == OP_PTR)
        flow(&s, r);
  } while (s.changed);
  for (Ref r = 1; r < n; r++) find_use(&s, r);
  return s.of;
}
// SPDX-License-Identifier: MIT
