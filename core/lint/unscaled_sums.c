// Finds the missing step of an online softmax. A loop keeps a running maximum m
// and adds exp(x - m), or products with it, to sums. When m grows, the loop
// must multiply the earlier sums by exp(old m - new m). A sum is reported if
// both m and the sum live through the loop, and the loop only adds to the sum.
//
// Also finds two related mistakes. In one, each lane has its own maximum, which
// a loop or an unrolled reduction computes, but the sums of the lanes are added
// without rescaling them to a common maximum.
// In the other, the accumulators of scores are not cleared before the next
// iteration.
//
// For each running maximum, a forward pass finds the values that depend on it,
// and marks those that are computed from an exponential. The pass is repeated
// until nothing changes, because variables, registers and shared memory are
// mutable.
#include "lint/unscaled_sums.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "lint/updates.h"

// Properties of a value.
// - ON: depends on the running maximum.
// - MAX: is a maximum, or a value computed from a maximum, that depends on it.
// - POWER: computed from an exponential whose exponent depends on the running
//   maximum.
// - RAW, RAW_POWER: like ON and POWER, but without a shuffle between the
//   maximum and the value.
enum { ON = 1, MAX = 2, POWER = 4, RAW = 8, RAW_POWER = 16 };

typedef struct Search {
  const Fn *fn;
  uint8_t *of;      // the bits of each value, variable and object
  bool changed;
} Search;

// If variable r is a copy of another variable, returns the other one. Otherwise
// returns r.
static Ref target_of(const Fn *fn, Ref r) {
  return ir_get(fn, r)->op == OP_VAR ? updates_root(fn, r) : r;
}

static bool is_global(const Fn *fn, Ref r) {
  if (!ir_is_mem(fn, r)) return false;
  Space s = ir_memof(fn, r)->space;
  return s == SP_GMEM || s == SP_TMAP;
}

static bool is_power(const Ins *i) {
  MathFn f = (MathFn)i->imm;
  return i->op == OP_MATH &&
         (f == MF_EXP || f == MF_EXP2 || f == MF_EX2APPROX);
}

static void add(Search *s, Ref r, uint8_t of) {
  s->changed |= (s->of[r] | of) != s->of[r];
  s->of[r] |= of;
}

// Passes the bits of i's operands to its result and to what it writes, but not
// to the running maximum `top` itself.
static void pass_on(Search *s, Ref r, Ref top) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  uint8_t of = 0;
  Operand o;
  if (i->op == OP_VAR || i->op == OP_NOP) return;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    bool place = o.kind == OPERAND_VAR || o.kind == OPERAND_RUN ||
                 o.kind == OPERAND_MEM || o.kind == OPERAND_MAP;
    if (!o.ref || o.barrier || (place && !o.read)) continue;
    of |= s->of[target_of(fn, o.ref)];
  }
  bool extreme = op_class((Op)i->op) == CLASS_EXTREME || i->op == OP_SEL;
  if (extreme && of & ON) of |= MAX;
  if (is_power(i) && of & ON) of |= POWER;
  if (is_power(i) && of & RAW) of |= RAW_POWER;
  Ref value;
  if (i->op == OP_ASK || intrin_shuffled(fn, i, &value))
    of &= (uint8_t)~(RAW | RAW_POWER);
  if (op_class((Op)i->op) == CLASS_COMPARE) of = 0;
  if (!ir_is_mem(fn, r)) add(s, r, of);
  if (op_pure((Op)i->op)) return;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    bool place = o.kind == OPERAND_VAR || o.kind == OPERAND_RUN ||
                 o.kind == OPERAND_MEM;
    if (!o.ref || o.barrier || !place || !o.written) continue;
    Ref to = target_of(fn, o.ref);
    if (to != top && !is_global(fn, to)) add(s, to, of);
  }
}

static void find_dependent(Search *s, Ref top) {
  const Fn *fn = s->fn;
  for (Ref r = 0; r < fn->ins.n; r++) s->of[r] = 0;
  s->of[top] = ON | RAW;
  do {
    s->changed = false;
    for (Ref r = 1; r < fn->ins.n; r++) pass_on(s, r, top);
  } while (s->changed);
}

// Reports whether loop l carries variable or object r from iteration to
// iteration: r exists before l, and `updates` is true for every instruction in
// l that writes r.
static bool carries(const Search *s, Ref l, Ref r,
                    bool (*updates)(const Search *s, Ref w)) {
  const Fn *fn = s->fn;
  Ref end = ir_region_end(fn, l);
  if (r > l) return false;
  bool any = false;
  for (Ref w = l + 1; w < end; w++) {
    const Ins *i = ir_get(fn, w);
    Operand o;
    if (i->op == OP_NOP || i->op == OP_VAR) continue;
    for (Operands k = operands_of(fn, i); operands_next(&k, &o);) {
      if (!o.ref || !o.written || o.barrier || target_of(fn, o.ref) != r)
        continue;
      if (!updates(s, w)) return false;
      any = true;
    }
  }
  return any;
}

// Reports whether instruction w sets the running maximum to a value that
// depends on the maximum's old value.
static bool raises(const Search *s, Ref w) {
  Ref value = operand_ref(s->fn, ir_get(s->fn, w), ROLE_VALUE);
  return value && s->of[value] & ON;
}

static bool adds(const Search *s, Ref w) {
  const Ins *i = ir_get(s->fn, w);
  Ref value = operand_ref(s->fn, i, ROLE_VALUE);
  return updates_adds(s->fn, i) ||
         (value && updates_reads_back(s->fn, value, i));
}

// Reports whether an instruction in a loop stores a single float to variable or
// object `top`.
static bool is_stored_in_loop(const Search *s, Ref top) {
  const Fn *fn = s->fn;
  for (Ref w = top + 1; w < fn->ins.n; w++) {
    const Ins *i = ir_get(fn, w);
    bool sets = (i->op == OP_VSET || i->op == OP_ST) &&
                target_of(fn, i->a[0]) == top;
    if (sets && dtype_is_float(ir_type(fn, operand_ref(fn, i, ROLE_VALUE))) &&
        ir_loop_around(fn, w))
      return true;
  }
  return false;
}

// Reports whether an instruction sets variable or object `top` to a maximum
// that depends on the old value of `top`.
static bool is_running(const Search *s, Ref top) {
  const Fn *fn = s->fn;
  for (Ref w = top + 1; w < fn->ins.n; w++) {
    const Ins *i = ir_get(fn, w);
    Ref value = operand_ref(fn, i, ROLE_VALUE);
    bool sets = i->op == OP_VSET || i->op == OP_ST;
    if (sets && target_of(fn, i->a[0]) == top && s->of[value] & MAX)
      return true;
  }
  return false;
}

// Reports whether instruction w adds exponentials to a sum that an enclosing
// loop carries together with the running maximum `top`.
static bool is_unscaled(const Search *s, Ref w, Ref top) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, w);
  Ref to = i->a[0], value = operand_ref(fn, i, ROLE_VALUE);
  uint8_t of = value ? s->of[value] : 0;
  if (op_class((Op)i->op) == CLASS_MMA) {
    Operand a = operand_of(fn, i, ROLE_A), b = operand_of(fn, i, ROLE_B);
    to = operand_ref(fn, i, ROLE_ACC);
    of = s->of[a.ref] | s->of[b.ref];
  } else if (i->op != OP_VSET && i->op != OP_ST) {
    return false;
  }
  if (!to || is_global(fn, to) || !(of & POWER)) return false;
  to = target_of(fn, to);
  for (Ref l = ir_loop_around(fn, w); l; l = ir_loop_around(fn, l))
    if (to != top && carries(s, l, top, raises) && carries(s, l, to, adds))
      return true;
  return false;
}

// Reports whether value r may depend on data of other threads of the block.
static bool is_shared(const Fn *fn, Ref r, int depth) {
  const Ins *i = ir_get(fn, r);
  if (!r || depth == 0) return false;
  if (i->op == OP_ASK) return true;
  if (i->op == OP_LD) return ir_memof(fn, i->a[0])->space == SP_SMEM;
  if (!op_pure((Op)i->op)) return false;
  for (int k = 0; k < 3; k++)
    if (is_shared(fn, i->a[k], depth - 1)) return true;
  return false;
}

enum { NEAR = 10 };

// Reports whether each lane has its own maximum in `top`: neither the value
// `top` nor a value that is stored in `top` depends on other threads.
static bool is_own(const Search *s, Ref top) {
  const Fn *fn = s->fn;
  if (is_shared(fn, top, NEAR)) return false;
  for (Ref w = top + 1; w < fn->ins.n; w++) {
    const Ins *i = ir_get(fn, w);
    if ((i->op == OP_VSET || i->op == OP_ST) && target_of(fn, i->a[0]) == top &&
        is_shared(fn, operand_ref(fn, i, ROLE_VALUE), NEAR))
      return false;
  }
  return true;
}

// Reports whether instruction r adds the sums of exponentials that several
// lanes computed.
static bool merges(const Search *s, Ref r) {
  Ref value;
  const Ins *i = ir_get(s->fn, r);
  if (i->op != OP_ADD || !intrin_shuffled(s->fn, i, &value)) return false;
  Op op = (Op)ir_get(s->fn, value)->op;
  bool sum = op == OP_VGET || op == OP_LD || op_class(op) == CLASS_SUM;
  return sum && s->of[value] & RAW_POWER;
}

// Reports whether instruction w adds to the sums for which *s was computed, or
// changes them in another way that depends on their old values.
static bool keeps(const Search *s, Ref w) {
  return adds(s, w) || raises(s, w);
}

// Returns an MMA that adds to registers `sums` in a loop which computes
// exponentials of them but never clears them. Returns 0 if there is none.
static Ref growing(const Search *s, Ref sums) {
  const Fn *fn = s->fn;
  for (Ref r = sums + 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (op_class((Op)i->op) != CLASS_MMA ||
        operand_ref(fn, i, ROLE_ACC) != sums)
      continue;
    for (Ref l = ir_loop_around(fn, r); l; l = ir_loop_around(fn, l)) {
      Ref end = ir_region_end(fn, l);
      if (!carries(s, l, sums, keeps)) continue;
      for (Ref k = l + 1; k < end; k++)
        if (is_power(ir_get(fn, k)) && s->of[k] & POWER) return r;
    }
  }
  return 0;
}

// Returns the number of values of which r is the maximum (minimum). Returns a
// smaller number if r combines many values.
static int operands(const Fn *fn, Ref r, Op op, int depth) {
  const Ins *i = ir_get(fn, r);
  if ((Op)i->op != op || depth == 0) return 1;
  return operands(fn, i->a[0], op, depth - 1) +
         operands(fn, i->a[1], op, depth - 1);
}

// Reports whether value r is the last of the operations that compute a maximum
// of at least 4 floats in registers. inner[r]: whether such an operation
// continues with r.
static bool is_unrolled(const Fn *fn, Ref r, const bool *inner) {
  const Ins *i = ir_get(fn, r);
  return op_class((Op)i->op) == CLASS_EXTREME && !inner[r] &&
         dtype_is_float((DType)i->type) &&
         operands(fn, r, (Op)i->op, 3) >= 4;
}

// Calls `found` for each new mistake with the maximum `top`.
static void look_at(const Search *s, Ref top, bool *known,
                    void (*found)(void *ud, const UnscaledSum *u), void *ud) {
  bool own = is_own(s, top);
  for (Ref w = top + 1; w < s->fn->ins.n; w++) {
    UnscaledSum u = {.at = updates_place(s->fn, w)};
    bool merged = own && merges(s, w);
    if (known[w] || (!merged && !is_unscaled(s, w, top))) continue;
    u.kind = merged ? SUM_MERGED : SUM_UNSCALED;
    known[w] = true;
    found(ud, &u);
  }
}

void unscaled_sums(Ctx *cx, const Fn *fn,
                   void (*found)(void *ud, const UnscaledSum *u), void *ud) {
  bool powers = false, loops = false;
  bool *inner = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *inner);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    powers |= is_power(i);
    loops |= op_loops((Op)i->op);
    if (op_class((Op)i->op) == CLASS_EXTREME)
      for (int k = 0; k < 2; k++)
        inner[i->a[k]] |= ir_get(fn, i->a[k])->op == i->op;
  }
  if (!powers) return;
  Search s = {.fn = fn};
  s.of = arena_zero(cx, &cx->scratch, fn->ins.n);
  bool *known = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *known);
  for (Ref top = 1; top < fn->ins.n; top++) {
    Op op = (Op)ir_get(fn, top)->op;
    bool sums = op == OP_RMEM && ir_memof(fn, top)->operand == 'C';
    bool place = op == OP_VAR ? updates_root(fn, top) == top
                              : ir_is_mem(fn, top) && !is_global(fn, top);
    bool runs = loops && place && !sums && is_stored_in_loop(&s, top);
    bool unrolled = is_unrolled(fn, top, inner) && is_own(&s, top);
    if (!runs && !unrolled && !(sums && loops)) continue;
    find_dependent(&s, top);
    Ref grows = sums ? growing(&s, top) : 0;
    if (grows) found(ud, &(UnscaledSum){.kind = SUM_GROWING, .at = grows});
    if (unrolled || (runs && is_running(&s, top)))
      look_at(&s, top, known, found, ud);
  }
}
// SPDX-License-Identifier: MIT
