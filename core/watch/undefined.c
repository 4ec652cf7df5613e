// Finds uses of undefined values: uninitialized registers, and quotients by
// zero. Reading an undefined value is not a fault by itself. For example, a
// predicated load may leave registers undefined that affect only results that
// are never stored, and cute.where computes both branches. It is a fault to use
// undefined bits as an address, as a condition, or in a store outside
// registers. Each value has a mask of the lanes in which it is undefined, and a
// mask of the bits that are undefined in some lane. Single bits matter, because
// compilers leave half of a register undefined if nothing reads that half.
// Kernels that never read an undefined register have no extra cost
// (w->taints.some).
#include "ir/eval.h"
#include "ir/intrin.h"
#include "watch/undefined.h"

static SimTaint *taint_at(SimWarp *w, uint32_t slot) {
  return &w->taints.value[(slot - w->cluster->prog->value_base) / SLOT];
}

uint32_t undefined_mask(SimWarp *w, uint32_t slot) {
  return w->taints.some && slot ? taint_at(w, slot)->mask : 0;
}

static void fault(SimWarp *w, const SimIns *i, uint32_t mask,
                  const SimTaint *t) {
  SimKind kind = t->mem < 0 ? SIM_DIVZERO : SIM_UNINIT;
  simreport_fault(w, kind, __builtin_ctz(mask), i->src,
                  t->src == i->src ? 0 : t->src, t->mem, t->elem);
}

static void use(SimWarp *w, const SimIns *i, uint32_t slot, uint32_t mask) {
  if (!slot) return;
  SimTaint *t = taint_at(w, slot);
  uint32_t hit = t->mask & mask;
  if (!hit) return;
  // clear the mask, so that each undefined value is reported once
  t->mask &= ~hit;
  fault(w, i, hit, t);
}

// ---- registers ----

// Returns the reason why unit number `unit` of register object m is undefined
// in the lanes of `lack`.
static SimTaint cause(const SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t lack, int64_t unit) {
  if (w->taints.quotient.mem == m)
    return (SimTaint){lack, w->taints.quotient.src, -1, 0, UINT64_MAX};
  return (SimTaint){lack, i->src, m->index,
                    (uint32_t)(unit * m->unit / m->own), UINT64_MAX};
}

// If the value in `slot` is undefined because of a division by zero, records
// that it is stored to registers m.
static void keep(SimWarp *w, const SimMem *m, uint32_t slot) {
  if (!(undefined_mask(w, slot) & w->active)) return;
  const SimTaint *t = taint_at(w, slot);
  if (t->mem >= 0) return;
  w->taints.quotient.mem = m;
  w->taints.quotient.src = t->src;
}

void undefined_registers(SimWarp *w, const SimIns *i, const SimMem *m,
                         int64_t unit, uint32_t mask) {
  uint32_t *def = rmem_def(w, m) + unit;
  uint32_t lack = mask & ~*def;
  if (!lack || m->lax) return;
  *def |= lack;
  SimTaint t = cause(w, i, m, lack, unit);
  fault(w, i, lack, &t);
}

static void begin(SimWarp *w) {
  if (w->taints.some) return;
  memset(w->taints.value, 0, w->cluster->prog->ntaint * sizeof(SimTaint));
  w->taints.some = true;
}

void undefined_pick(SimWarp *w, const SimIns *i, const SimMem *m, int64_t at,
                    uint32_t lack) {
  if (m->lax) lack = 0;
  if (!lack && !w->taints.some) return;
  begin(w);
  *taint_at(w, i->d) = cause(w, i, m, lack, at);
}

void undefined_load(SimWarp *w, const SimIns *i, const SimSide *s) {
  uint32_t lack = 0;
  for (int k = 0; k < s->mem->per; k++)
    lack |= w->active & ~rmem_def(w, s->mem)[s->konst + k];
  undefined_pick(w, i, s->mem, s->konst, lack);
}

// ---- values ----

static void clear(SimWarp *w, const SimIns *i) {
  taint_at(w, i->d)->mask = 0;
}

// Returns the lanes in which the divisor of integer division i is 0. A uniform
// divisor is only stored for lane 0.
static uint32_t divides_by_zero(SimWarp *w, const SimIns *i) {
  DType t = (DType)i->type;
  if ((i->op != OP_DIV && i->op != OP_MOD) || dtype_is_float(t)) return 0;
  if (i->uniform) return lane_bits(w, i->b, sim_wide(t), 0) ? 0 : w->active;
  uint32_t zero = 0;
  for (int l = 0; l < LANES; l++)
    zero |= (uint32_t)(lane_bits(w, i->b, sim_wide(t), l) == 0) << l;
  return zero & w->active;
}

void undefined_divide(SimWarp *w, const SimIns *i) {
  uint32_t zero = divides_by_zero(w, i);
  if (!zero && !w->taints.some) return;
  begin(w);
  *taint_at(w, i->d) = (SimTaint){zero, i->src, -1, 0, UINT64_MAX};
}

// Reports whether an intrinsic moves bits of its first two operands to
// positions that its third operand selects.
static bool moves_bits(IntrinId id) {
  return id == IN_PRMT || id == IN_BFI || id == IN_BFI64 ||
         id == IN_FUNNEL_L || id == IN_FUNNEL_R || id == IN_FUNNEL_LC ||
         id == IN_FUNNEL_RC;
}

// Returns the bits of i's result in lane l that depend on undefined bits of its
// operands. u[k] has the undefined bits of operand k. If i moves bits, applies
// i to u.
static uint64_t undefined_bits(SimWarp *w, const SimIns *i,
                               const uint64_t u[3], int l) {
  DType t = (DType)i->type, to = (DType)i->to;
  bool wide = sim_wide(t);
  uint64_t a = u[0], b = u[1];
  switch (i->op) {
    case OP_AND:
      return (a & (b | lane_bits(w, i->b, wide, l))) |
             (b & (a | lane_bits(w, i->a, wide, l)));
    case OP_OR:
      return (a & (b | ~lane_bits(w, i->b, wide, l))) |
             (b & (a | ~lane_bits(w, i->a, wide, l)));
    case OP_XOR: return a | b;
    // each bit of the result depends on all lower bits of the operands
    case OP_ADD: case OP_SUB: case OP_MUL:
      if (!dtype_is_int(t)) return UINT64_MAX;
      return 0 - ((a | b) & (0 - (a | b)));
    case OP_SHL: case OP_SHR:
      if (b) return UINT64_MAX;
      return eval_scalar((Op)i->op, t, a, lane_bits(w, i->b, false, l), 0);
    case OP_CVT:
      if (!dtype_is_int(t) || !dtype_is_int(to)) return UINT64_MAX;
      return (uint64_t)eval_widen(t, a);
    case OP_SEL:
      if (a) return UINT64_MAX;
      return lane_bits(w, i->a, false, l) ? b : u[2];
    case OP_INTRIN:
      if (u[2] || !moves_bits(intrin_id(i->imm))) return UINT64_MAX;
      return intrin_eval(intrin_id(i->imm), intrin_imm(i->imm),
                         (uint64_t[3]){a, b, lane_bits(w, i->c, false, l)});
    case OP_BITCAST: case OP_NOT: case OP_VAR: case OP_VGET: return a;
    default: return UINT64_MAX;
  }
}

// Returns those lanes of `out` in which i's result depends on undefined bits.
// Sets *bits to the undefined bits of the result.
static uint32_t undefined_lanes(SimWarp *w, const SimIns *i, uint32_t out,
                                uint64_t *bits) {
  uint32_t slot[3] = {i->a, i->b, i->c}, lanes = 0;
  int width = i->to == DT_BOOL ? 1 : dtype_bits((DType)i->to);
  uint64_t kept = width > 0 && width < 64 ? ((uint64_t)1 << width) - 1
                                          : UINT64_MAX;
  for (; out; out &= out - 1) {
    int l = __builtin_ctz(out);
    uint64_t u[3];
    for (int k = 0; k < 3; k++) {
      bool bad = undefined_mask(w, slot[k]) >> l & 1;
      u[k] = bad ? taint_at(w, slot[k])->bits : 0;
    }
    uint64_t r = undefined_bits(w, i, u, l) & kept;
    *bits |= r;
    lanes |= (uint32_t)(r != 0) << l;
  }
  return lanes;
}

static void propagate(SimWarp *w, const SimIns *i) {
  uint32_t slot[3] = {i->a, i->b, i->c}, out = 0;
  SimTaint from = {0};
  for (int k = 0; k < 3; k++) {
    uint32_t m = undefined_mask(w, slot[k]);
    if (m && !from.mask) from = *taint_at(w, slot[k]);
    out |= m;
  }
  uint32_t zero = divides_by_zero(w, i);
  if (zero && !out) from = (SimTaint){0, i->src, -1, 0, 0};
  from.bits = zero ? UINT64_MAX : 0;
  if (out) out = undefined_lanes(w, i, out, &from.bits);
  from.mask = out | zero;
  *taint_at(w, i->d) = from;
}

static void assign(SimWarp *w, const SimIns *i) {
  SimTaint *d = taint_at(w, i->d);
  uint32_t keep = d->mask & ~w->active;
  uint32_t set = undefined_mask(w, i->a) & w->active;
  uint64_t bits = keep ? d->bits : 0;
  if (set) *d = *taint_at(w, i->a), d->bits |= bits;
  d->mask = keep | set;
}

void undefined_shuffle(SimWarp *w, const SimIns *i, const int *from) {
  if (!w->taints.some) return;
  SimTaint t = *taint_at(w, i->a);
  uint32_t m = taint_at(w, i->d)->mask & ~w->active;
  if (m) t.bits |= taint_at(w, i->d)->bits;
  for (int l = 0; l < LANES; l++)
    if (w->active >> l & 1) m |= (t.mask >> from[l] & 1) << l;
  t.mask = m;
  *taint_at(w, i->d) = t;
}

// ---- around an instruction ----

// Reports undefined values that i uses. Undefined operands of arithmetic are
// not reported; they only make the result undefined. MMAs check the registers
// that they read.
void undefined_before(SimWarp *w, const SimIns *i) {
  const SimUses *u = i->uses;
  for (int k = 0; u && k < u->n; k++) use(w, i, u->slot[k], w->active);
  if (u && u->to) keep(w, u->to, u->value);
}

// Reports whether i is a shuffle, which only moves values between lanes.
static bool moves(const SimIns *i) {
  return i->op == OP_ASK && intrin_is_shuffle(intrin_id(i->imm));
}

void undefined_after(SimWarp *w, const SimIns *i) {
  unsigned effect = op_effect((Op)i->op);
  bool element = i->op == OP_PICK ||
                 (i->op == OP_LD &&
                  sim_in_registers(((const SimSide *)i->x)->mem));
  // for results that are read from registers, undefined_load and undefined_pick
  // set the masks
  if (i->uniform || element) return;
  if (i->op == OP_VSET) assign(w, i);
  else if (effect & (EF_PURE | EF_VAR)) propagate(w, i);
  else if (i->d && !moves(i)) clear(w, i);
}
// SPDX-License-Identifier: MIT
