// Finds results that their type cannot represent:
// - an index, such as that of a maximum, that is rounded in a conversion to a
//   float of 16 or 8 bits
// - sums and products of i8 or i16 that wrap around
// - sums and products of i32 that wrap around and from which a float is
//   computed
// - quotients of integer sums that lose a fraction before they become floats
// - sums of 16-bit floats in a loop that are so large that further addends do
//   not change them
// - scales that become 0 in a narrow type
//
// In this file, an index is a value that is computed from the indices of
// threads, blocks and loops. Loaded data may select an index, but its values
// are not part of the index.
#include "watch/exact.h"

#include <math.h>

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"
#include "lint/conversions.h"
#include "sim/regs.h"
#include "watch/overflow.h"

// A search through the values from which a value is computed. met[r] is the
// number of the last search that visited value r. known[r] is the result of the
// search that began at r.
typedef enum Found { FOUND_UNKNOWN, FOUND_INDEX, FOUND_OTHER } Found;
typedef struct Search {
  const Fn *fn;
  uint32_t *met, number;
  uint8_t *known;
  bool index, data;
} Search;

static void look(Search *s, Ref r);

// Visits all values that are stored to a variable or a memory object.
static void look_at_writers(Search *s, Ref target) {
  const Fn *fn = s->fn;
  Operand o, v;
  for (Ref r = 1; r < fn->ins.n && !s->data; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (o.ref != target || !o.written || o.barrier) continue;
      bool plain = i->op == OP_ST || op_rows[i->op].rule == RULE_SET;
      s->data |= !plain;
      for (Operands u = operands_of(fn, i); plain && operands_next(&u, &v);)
        if (v.kind == OPERAND_VALUE) look(s, v.ref);
    }
  }
}

static void look(Search *s, Ref r) {
  const Fn *fn = s->fn;
  if (!r || s->met[r] == s->number || s->data) return;
  s->met[r] = s->number;
  const Ins *i = ir_get(fn, r);
  Op op = (Op)i->op;
  if (op == OP_CONST || op == OP_ARG) return;
  if (op == OP_SREG || op == OP_FOR) {
    s->index = true;
  } else if (op == OP_RMEM || op == OP_SMEM) {
    look_at_writers(s, r);
  } else if (op == OP_VAR) {
    look(s, i->a[0]);
    look_at_writers(s, r);
  } else if (op == OP_VGET || op == OP_LD) {
    look(s, i->a[0]);
  } else if (op == OP_SEL) {
    look(s, i->a[1]);
    look(s, i->a[2]);
  } else if (op == OP_ASK) {
    s->data |= !intrin_is_shuffle(intrin_id(i->imm));
    look(s, i->a[0]);
  } else if (op_pure(op) && op != OP_INTRIN && op != OP_MATH &&
             dtype_is_int((DType)i->type)) {
    for (int k = 0; k < 3; k++) look(s, i->a[k]);
  } else {
    s->data = true;
  }
}

// Reports whether value r is an index. All loads of one object share one
// search, because they have the same result. The same holds for all reads of
// one variable.
static bool is_index(Ctx *cx, Search *s, Ref r) {
  size_t n = s->fn->ins.n;
  const Ins *i = ir_get(s->fn, r);
  if (i->op == OP_VGET || i->op == OP_LD) r = i->a[0];
  if (!s->met) {
    s->met = arena_zero(cx, &cx->scratch, n * sizeof *s->met);
    s->known = arena_zero(cx, &cx->scratch, n);
  }
  if (!s->known[r]) {
    s->number++;
    s->index = s->data = false;
    look(s, r);
    s->known[r] = s->index && !s->data ? FOUND_INDEX : FOUND_OTHER;
  }
  return s->known[r] == FOUND_INDEX;
}

// Reports whether r adds to a sum of 16-bit floats that is kept in a variable.
static bool is_sum(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r), *old = ir_get(fn, i->a[0]);
  if (old->op != OP_VGET) return false;
  for (Ref s = r + 1; s < fn->ins.n; s++) {
    const Ins *set = ir_get(fn, s);
    if (set->op == OP_VSET && set->a[0] == old->a[0] && set->a[1] == r)
      return true;
  }
  return false;
}

// Returns the rule (WATCH_INDEX to WATCH_SCALE) for comparing the results of
// instruction d with exact results, or WATCH_NONE if they are not compared.
static SimWatch rule_of(Ctx *cx, Search *s, const SimIns *d,
                        const uint8_t *loss) {
  const Fn *fn = s->fn;
  Op op = (Op)d->op;
  if (loss && op == (Op)ir_get(fn, d->ref)->op) {
    Loss l = (Loss)loss[d->ref];
    if (l == LOSS_FRACTION) return WATCH_FRACTION;
    if (l == LOSS_SCALE) return WATCH_SCALE;
    if (l == LOSS_WRAPS && overflow_possible(fn, d->ref, true))
      return WATCH_WRAPS;
  }
  DType t = (DType)d->type, to = (DType)d->to;
  bool narrow = op_class(op) == CLASS_SUM || op_class(op) == CLASS_PRODUCT;
  if (narrow && (t == DT_I8 || t == DT_I16)) return WATCH_NARROW;
  if (op == OP_ADD && (t == DT_F16 || t == DT_BF16))
    return !is_sum(fn, d->ref) ? WATCH_NONE
         : t == DT_F16 ? WATCH_SUMF16 : WATCH_SUMBF16;
  bool rounds = op == OP_CVT && dtype_is_float(to) && dtype_bits(to) <= 16 &&
                dtype_is_int(t) && dtype_bits(t) >= 16;
  return rounds && is_index(cx, s, ir_get(fn, d->ref)->a[0]) ? WATCH_INDEX
                                                             : WATCH_NONE;
}

void exact_rules(Ctx *cx, SimProg *p) {
  Search s = {.fn = p->fn};
  const uint8_t *loss = conversions(cx, p->fn);
  for (uint32_t k = 0; k < p->nins; k++)
    p->ins[k].watch = (uint8_t)rule_of(cx, &s, &p->ins[k], loss);
}

// ---- recording ----

// Returns the value of an operand of i in lane l as a number. The operand has
// i's type.
static double operand(SimWarp *w, const SimIns *i, uint32_t slot, int l) {
  DType t = (DType)i->type;
  uint64_t u = lane_bits(w, slot, sim_wide(t), l);
  return dtype_is_float(t) ? dtype_to_double(t, u) : (double)dtype_int(t, u);
}

// Returns the exact result of instruction i (a sum, difference, product or
// quotient) for the operands v[0] and v[1].
static double exact_result(const SimIns *i, const double v[2]) {
  if (i->op == OP_ADD) return v[0] + v[1];
  if (i->op == OP_SUB) return v[0] - v[1];
  return i->op == OP_DIV ? v[0] / v[1] : v[0] * v[1];
}

static void note_lane(SimWarp *w, const SimIns *i, int l) {
  // A scale of at most LEAST times its lower bound (conversions_floor) belongs
  // to elements that are all 0.
  static const double LEAST = 1 + 1e-6;
  const Fn *fn = w->cluster->prog->fn;
  bool converts = i->op == OP_CVT;
  DType to = (DType)(converts ? i->to : i->type);
  uint64_t d = lane_bits(w, i->d, i->wide, l);
  double v[2] = {operand(w, i, i->a, l), converts ? 0 : operand(w, i, i->b, l)};
  double result = dtype_is_float(to) ? dtype_to_double(to, d)
                                     : (double)dtype_int(to, d);
  double exact = converts ? v[0] : exact_result(i, v);
  // Record a sum only if its addend did not change it, and a scale only if it
  // is 0.
  if (exact_is_sum(i) && (result != v[0] || v[1] == 0)) return;
  if (i->watch == WATCH_SCALE &&
      (result != 0 || v[0] <= LEAST * conversions_floor(fn, i->ref)))
    return;
  if (result == exact || isnan(result) || isnan(exact)) return;
  SimOrigin *o = finite_origin(w, &w->cluster->out->inexact, i, l, false);
  if (!o) return;
  o->n = converts ? 1 : 2;
  o->v[0] = v[0];
  o->v[1] = v[1];
  o->result = result;
}

const char *exact_key(const SimIns *i) {
  switch ((int)i->watch) {
    case WATCH_INDEX: return "rounded_index";
    case WATCH_NARROW: return "wrapped";
    case WATCH_WRAPS: return "wrapped_sum";
    case WATCH_FRACTION: return "lost_fraction";
    case WATCH_SCALE: return "lost_scale";
    default: return "stuck_sum";
  }
}

const SimOrigin *exact_first(const SimOrigins *all) {
  // number of additions that may leave a sum unchanged without a report
  enum { FEW = 32 };
  for (int k = 0; k < all->n; k++) {
    const SimOrigin *o = &all->at[k];
    if (!exact_is_sum(o->i) || o->count > FEW) return o;
  }
  return NULL;
}

// Reports whether a sum, difference or product of i32 wraps in some lane. Tests
// inactive lanes too, because a loop without branches is fast.
static bool any_wraps(SimWarp *w, const SimIns *i) {
  const int32_t *a = (const int32_t *)u32_at(w, i->a);
  const int32_t *b = (const int32_t *)u32_at(w, i->b);
  int64_t any = 0;
  for (int l = 0; l < (i->uniform ? 1 : LANES); l++) {
    int64_t v = i->op == OP_ADD ? (int64_t)a[l] + b[l]
              : i->op == OP_SUB ? (int64_t)a[l] - b[l] : (int64_t)a[l] * b[l];
    any |= v ^ (int32_t)v;
  }
  return any != 0;
}

void exact_note(SimWarp *w, const SimIns *i) {
  if (i->watch == WATCH_WRAPS && !any_wraps(w, i)) return;
  uint32_t left = i->uniform ? w->active != 0 : w->active;
  for (; left; left &= left - 1) note_lane(w, i, __builtin_ctz(left));
}
// SPDX-License-Identifier: MIT
