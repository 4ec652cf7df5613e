// Finds operations whose results lose digits, because the kernel converts them
// too late or to a type with too small a range. An integer sum that wraps
// around is wrong if a float is computed from it; only a hash may wrap on
// purpose. The quotient of an integer sum, such as a mean, is also wrong if it
// becomes a float, because it was rounded before the conversion.
//
// The search begins at conversions and visits the values from which their
// operands are computed. It ends at bitwise operations and at products with
// large constants, because hash functions and random number generators contain
// these.
#include "lint/conversions.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"
#include "lint/updates.h"

// HASH: constants above this number are taken to belong to hash functions.
enum { HASH = 1 << 16, NEAR = 24 };

typedef struct Search {
  const Fn *fn;
  Writers by;
  uint8_t *loss;
  // met: for each value, the number of the last search that visited it
  uint32_t *met, search;
} Search;

// Reports whether an operand of sum or product i is a large constant, or a
// product with a large constant.
static bool is_hash(const Fn *fn, const Ins *i) {
  OpClass c = op_class((Op)i->op);
  int64_t v;
  if (c != CLASS_SUM && c != CLASS_PRODUCT) return false;
  for (int k = 0; k < 2; k++) {
    const Ins *x = ir_get(fn, i->a[k]);
    if (ir_const(fn, i->a[k], &v) && (v > HASH || v < -HASH)) return true;
    if (op_class((Op)x->op) == CLASS_PRODUCT && is_hash(fn, x)) return true;
  }
  return false;
}

// Calls look(value) for each value that an instruction writes to variable or
// object `target`, until a call returns true. Reports whether one did.
static bool any_written(Search *s, Ref target, int depth,
                        bool (*look)(Search *, Ref, int)) {
  for (Ref w = s->by.last[target]; w; w = s->by.before[w]) {
    Ref value = operand_ref(s->fn, ir_get(s->fn, w), ROLE_VALUE);
    if (value && look(s, value, depth)) return true;
  }
  return false;
}

// Returns the variable, register object or shared tensor that instruction i
// reads. Returns 0 if it reads anything else.
static Ref target_of(const Fn *fn, const Ins *i) {
  if (i->op == OP_VGET) return i->a[0];
  if (i->op != OP_LD) return 0;
  Op op = (Op)ir_get(fn, i->a[0])->op;
  return op == OP_RMEM || op == OP_SMEM ? i->a[0] : 0;
}

// Marks the sums and products from which integer r is computed. Always returns
// false, for any_written.
static bool mark(Search *s, Ref r, int depth) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  OpClass c = op_class((Op)i->op);
  bool arithmetic = c == CLASS_SUM || c == CLASS_PRODUCT;
  if (!r || depth == 0 || s->met[r] == s->search) return false;
  s->met[r] = s->search;
  if (is_hash(fn, i)) return false;
  if (arithmetic && i->type == DT_I32 && !s->loss[r]) s->loss[r] = LOSS_WRAPS;
  Ref target = target_of(fn, i);
  if (target) any_written(s, target, depth - 1, mark);
  if (target && i->op == OP_VGET)
    mark(s, ir_get(fn, target)->a[0], depth - 1);
  bool passes = arithmetic || c == CLASS_SIGN || c == CLASS_EXTREME ||
                c == CLASS_SELECT;
  for (int k = c == CLASS_SELECT; passes && k < 3; k++)
    mark(s, i->a[k], depth - 1);
  if (intrin_shuffles(i)) mark(s, i->a[0], depth - 1);
  return false;
}

// Reports whether integer r is a sum that a loop computes, or a sum of lanes.
static bool is_total(Search *s, Ref r, int depth) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  Ref of;
  if (!r || depth == 0 || s->met[r] == s->search) return false;
  s->met[r] = s->search;
  if (i->op == OP_ADD && intrin_shuffled(fn, i, &of)) return true;
  Ref target = target_of(fn, i);
  for (Ref w = target ? s->by.last[target] : 0; w; w = s->by.before[w])
    if (updates_adds(fn, ir_get(fn, w))) return true;
  if (target) return any_written(s, target, depth - 1, is_total);
  if (op_class((Op)i->op) == CLASS_CONVERT || intrin_shuffles(i))
    return is_total(s, i->a[0], depth - 1);
  return i->op == OP_ADD && (is_total(s, i->a[0], depth - 1) ||
                             is_total(s, i->a[1], depth - 1));
}

// Reports whether float r is computed from an absolute value by maxima, moves,
// and divisions by or products with constants.
static bool is_largest(Search *s, Ref r, int depth) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  OpClass c = op_class((Op)i->op);
  if (!r || depth == 0 || s->met[r] == s->search) return false;
  s->met[r] = s->search;
  if (i->op == OP_ABS) return true;
  Ref target = target_of(fn, i);
  if (target) return any_written(s, target, depth - 1, is_largest);
  if (c == CLASS_QUOTIENT || c == CLASS_CONVERT || intrin_shuffles(i))
    return is_largest(s, i->a[0], depth - 1);
  if (c != CLASS_EXTREME && c != CLASS_PRODUCT) return false;
  return is_largest(s, i->a[0], depth - 1) ||
         is_largest(s, i->a[1], depth - 1);
}

// Reports whether float r is the largest absolute value of some elements,
// multiplied or divided by a constant.
static bool is_scale(Search *s, Ref r) {
  const Ins *i = ir_get(s->fn, r);
  while (op_class((Op)i->op) == CLASS_EXTREME) i = ir_get(s->fn, i->a[0]);
  if (i->op != OP_DIV && i->op != OP_MUL) return false;
  Ref by = i->a[1], of = i->a[0];
  if (ir_get(s->fn, of)->op == OP_CONST) of = by, by = i->a[0];
  Op op = (Op)ir_get(s->fn, of)->op;
  s->search++;
  return ir_get(s->fn, by)->op == OP_CONST && op != OP_ABS &&
         is_largest(s, of, NEAR);
}

double conversions_floor(const Fn *fn, Ref r) {
  const Ins *scale = ir_get(fn, ir_get(fn, r)->a[0]);
  double by, least;
  for (int k = 0; k < 2; k++) {
    const Ins *most = ir_get(fn, scale->a[k]);
    if (most->op != OP_MAX ||
        !updates_constant(fn, scale->a[1 - k], &by))
      continue;
    for (int j = 0; j < 2; j++)
      if (updates_constant(fn, most->a[j], &least))
        return scale->op == OP_DIV ? least / by : least * by;
  }
  return 0;
}

// Reports whether instruction i converts an integer to a float, or a float to a
// narrow type whose range is smaller.
static bool is_candidate(const Fn *fn, const Ins *i) {
  DType to = (DType)i->type;
  if (i->op != OP_CVT || !dtype_is_float(to)) return false;
  return dtype_is_int(ir_type(fn, i->a[0])) ||
         (dtype_bits(to) <= 16 && to != DT_BF16);
}

static void look_at(Search *s, Ref r) {
  const Fn *fn = s->fn;
  Ref of = ir_get(fn, r)->a[0];
  if (dtype_is_float(ir_type(fn, of))) {
    if (is_scale(s, of)) s->loss[r] = LOSS_SCALE;
    return;
  }
  s->search++;
  if (ir_type(fn, of) == DT_I32) mark(s, of, NEAR);
  const Ins *q = ir_get(fn, of);
  s->search++;
  if (q->op == OP_DIV && is_total(s, q->a[0], NEAR))
    s->loss[of] = LOSS_FRACTION;
}

uint8_t *conversions(Ctx *cx, const Fn *fn) {
  Search s = {.fn = fn};
  for (Ref r = 1; r < fn->ins.n; r++) {
    if (!is_candidate(fn, ir_get(fn, r))) continue;
    if (!s.loss) {
      s.by = updates_writers(cx, fn);
      s.loss = arena_zero(cx, &cx->scratch, fn->ins.n);
      s.met = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.met);
    }
    look_at(&s, r);
  }
  return s.loss;
}
// SPDX-License-Identifier: MIT
