// Finds sums that lack a reduction over lanes or warps. The threads of a row
// share its elements: thread t adds the elements t, t + 32, t + 64 ... If each
// thread then divides its own elements by its own sum, the results of a row are
// divided by different numbers. A sum (or maximum) is partial in three cases:
// - A loop adds elements, and its counter starts at the thread's index.
// - Unrolled additions of loaded elements, if the elements of a thread are
//   interleaved with those of other threads along one mode of the tensor.
// - Unrolled additions of accumulators of an MMA, because several lanes hold
//   the accumulators of a row.
//
// For each partial sum, a bit is set for each distance between lanes that hold
// other elements of the row. A butterfly shuffle by this distance clears the
// bit; any other shuffle clears all bits.
//
// A forward pass finds the values that combine a partial sum with the thread's
// own elements by an operation other than a sum. A kernel that stores such a
// value to global memory is reported. Shuffles and shared memory combine values
// of several threads and end the search.
#include "lint/partial_sums.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "lint/thread_value.h"
#include "lint/updates.h"

#include <stdio.h>

// Properties of a value.
// - THREAD: an index that depends on the thread.
// - OWN: computed from elements that the thread's index selects.
// - MIXED: computed from OWN elements and a partial sum.
// - ACC: accumulators of an MMA.
// - PART: computed from a partial sum that lacks a reduction. LANE << k: over
//   lanes at a distance of 1 << k; SOME: over lanes at unknown distances;
//   LANES: any of these bits; WARPS: over warps.
enum { THREAD = 1, OWN = 2, MIXED = 4, ACC = 8, LANE = 16, SOME = LANE << 5,
       LANES = 2 * SOME - LANE, WARPS = 2 * SOME, PART = LANES | WARPS };
enum { NEAR = 24, WARP = 32, BITS = 5, TERMS = 4, MOST = 64,
       // depth of searches that may visit an operand several times
       SHALLOW = 10 };

typedef struct Search {
  const Fn *fn;
  uint16_t *of;     // the bits of each value, variable and object
  // for each value or variable that is a partial sum: the bits of PART
  uint16_t *part;
  bool *joined;     // variables and objects that hold shuffled values
  bool changed;
  Ref *at;          // for each partial sum: the instruction that adds to the
                    // sum
  Ref only;         // the partial sum to consider; all others are ignored
  bool extreme;     // whether `only` is a maximum or minimum
  uint32_t *met, search;
} Search;

// ---- differences between threads ----

// Sets *d to the value of integer r in thread t minus its value in thread 0.
// Returns false if the difference is unknown.
static bool difference(const Fn *fn, Ref r, int32_t t, int depth, int64_t *d) {
  const Ins *i = ir_get(fn, r);
  int64_t a, b, c;
  uint64_t first, other;
  if (thread_value_of(fn, r, 0, NEAR - 1, &first) &&
      thread_value_of(fn, r, t, NEAR - 1, &other)) {
    *d = (int64_t)other - (int64_t)first;
    return true;
  }
  *d = 0;
  if (i->op == OP_SREG || i->op == OP_ARG) return true;
  if (depth == 0) return false;
  if (i->op == OP_CVT || i->op == OP_FOR)
    return difference(fn, i->a[0], t, depth - 1, d);
  if (i->op == OP_ADD || i->op == OP_SUB) {
    if (!difference(fn, i->a[0], t, depth - 1, &a) ||
        !difference(fn, i->a[1], t, depth - 1, &b))
      return false;
    *d = i->op == OP_ADD ? a + b : a - b;
    return true;
  }
  if ((i->op != OP_MUL && i->op != OP_SHL) || !ir_const(fn, i->a[1], &c) ||
      !difference(fn, i->a[0], t, depth - 1, &a))
    return false;
  *d = i->op == OP_MUL ? a * c : c >= 0 && c < 32 ? a << c : 0;
  return true;
}

// Returns a mask of PART. It has bit LANE << k if integer r is larger in lane
// 1 << k than in lane 0, by less than `end`. It has the bit WARPS if adjacent
// warps have different values of r.
static uint16_t sharers(const Fn *fn, Ref r, int64_t end) {
  int64_t d;
  uint16_t who = 0;
  if (ir_threads(fn) < WARP) return 0;
  for (int k = 0; k < BITS; k++)
    if (difference(fn, r, 1 << k, NEAR, &d) && d > 0 && d < end)
      who |= (uint16_t)(LANE << k);
  if (ir_threads(fn) > WARP && difference(fn, r, WARP, NEAR, &d) && d)
    who |= WARPS;
  return who;
}

// ---- partial sums ----

static bool is_global_load(const Fn *fn, const Ins *i) {
  return i->op == OP_LD && ir_get(fn, i->a[0])->op == OP_GMEM;
}

// Reports whether r is computed from a loaded element whose index depends on
// the counter of loop l. `index` states whether r is part of an index.
static bool loads_by(Search *s, Ref r, Ref l, bool index, int depth) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  if (r == l) return index;
  if (!r || depth == 0 || r < l) return false;
  if (is_global_load(fn, i)) return loads_by(s, i->a[1], l, true, SHALLOW);
  if (!op_pure((Op)i->op)) return false;
  for (int k = 0; k < 3; k++)
    if (loads_by(s, i->a[k], l, index, depth - 1)) return true;
  return false;
}

// Reports whether instruction w updates a maximum or minimum.
static bool is_extreme(const Fn *fn, const Ins *w) {
  const Ins *i = ir_get(fn, operand_ref(fn, w, ROLE_VALUE));
  if (op_class((Op)i->op) != CLASS_EXTREME) return false;
  return updates_reads_back(fn, i->a[0], w) ||
         updates_reads_back(fn, i->a[1], w);
}

// Marks the target of instruction w as a partial sum if w adds elements to it
// in a loop that starts at the thread's index.
static void look_at_loop(Search *s, Ref w) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, w);
  if (i->op != OP_VSET && i->op != OP_ST) return;
  if (i->op == OP_ST && ir_get(fn, i->a[0])->op != OP_RMEM) return;
  Ref value = operand_ref(fn, i, ROLE_VALUE);
  if (!dtype_is_float(ir_type(fn, value)) ||
      (!updates_adds(fn, i) && !is_extreme(fn, i)))
    return;
  Ref l = ir_loop_around(fn, w);
  int64_t step;
  if (!l || ir_get(fn, l)->op != OP_FOR ||
      !ir_const(fn, ir_get(fn, l)->a[2], &step))
    return;
  uint16_t who = sharers(fn, ir_get(fn, l)->a[0], step);
  Ref to = i->op == OP_VSET ? updates_root(fn, i->a[0]) : i->a[0];
  // If the loop declares the target, the sum begins anew in each iteration.
  if (!(who & LANES) || to > l || s->joined[to] ||
      !loads_by(s, value, l, false, SHALLOW))
    return;
  s->part[to] |= who;
  s->at[to] = w;
}

// The terms of an unrolled sum.
typedef struct Chain { Ref term[MOST]; int n; } Chain;

// Reports whether instruction i combines a value with its shuffle.
static bool is_combined(const Fn *fn, const Ins *i) {
  Ref value;
  return intrin_shuffled(fn, i, &value) != 0;
}

static void add_chain(const Fn *fn, Ref r, Op op, Chain *c, int depth) {
  while (c->n < MOST && depth > 0) {
    const Ins *i = ir_get(fn, r);
    bool sum = (Op)i->op == op && !is_combined(fn, i);
    bool product = i->op == OP_FMA && op == OP_ADD;
    if (sum) add_chain(fn, i->a[1], op, c, depth - 1);
    else c->term[c->n++] = product ? i->a[0] : r;
    if (!sum && !product) return;
    r = i->a[product ? 2 : 0];
  }
}

// Returns a load (of global memory or a register) from which `depth` operations
// compute value r without a reduction over lanes, or 0.
static Ref load_at(const Fn *fn, Ref r, int depth) {
  const Ins *i = ir_get(fn, r);
  Ref found = 0;
  if (i->op == OP_LD) return depth == 0 ? r : 0;
  if (depth == 0 || !op_pure((Op)i->op) || is_combined(fn, i)) return 0;
  for (int k = 0; k < 3 && !found; k++)
    if (i->a[k]) found = load_at(fn, i->a[k], depth - 1);
  return found;
}

// Returns the load from which the fewest operations compute term r, or 0.
static Ref load_in(const Fn *fn, Ref r) {
  Ref found = 0;
  for (int n = 0; n < SHALLOW && !found; n++) found = load_at(fn, r, n);
  return found;
}

// Splits offset r into the sum of a value and a constant. Returns the value,
// and stores the constant in *c.
static Ref base_of(const Fn *fn, Ref r, int64_t *c) {
  const Ins *i = ir_get(fn, r);
  int64_t more;
  for (*c = 0; i->op == OP_ADD && ir_const(fn, i->a[1], &more); *c += more)
    i = ir_get(fn, r = i->a[0]);
  return r;
}

// Reports whether the elements of two threads all lie along one mode of tensor
// m, which has two modes.
// - d: distance between elements of the two threads.
// - part: divisor of the distances between the elements of one thread.
// - span: the largest of these distances.
static bool same_mode(const Fn *fn, const Mem *m, int64_t d, int64_t part,
                      int64_t span) {
  long long n[2], stride[2];
  if (sscanf(ir_str(fn, m->layout), "(%lld,%lld):(%lld,%lld)", &n[0], &n[1],
             &stride[0], &stride[1]) != 4)
    return false;
  for (int k = 0; k < 2; k++)
    if (stride[k] > 0 && d % stride[k] == 0 && part % stride[k] == 0 &&
        span < n[k] * stride[k])
      return true;
  return false;
}

static int64_t divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t c = a % b;
    a = b;
    b = c;
  }
  return a < 0 ? -a : a;
}

// Returns the bits of PART for the lanes and warps that load further terms of
// the same sum. c is a chain of loads of one tensor.
static uint16_t of_loads(const Search *s, const Chain *c) {
  const Fn *fn = s->fn;
  Ref mem = 0, base = 0;
  int64_t least = INT64_MAX, most = INT64_MIN, part = 0, d;
  int n = 0;
  for (int k = 0; k < c->n; k++) {
    Ref r = load_in(fn, c->term[k]);
    if (!r) continue;
    const Ins *i = ir_get(fn, r);
    int64_t at;
    Ref b = base_of(fn, i->a[1], &at);
    if (!is_global_load(fn, i) || (n && (i->a[0] != mem || b != base)))
      return 0;
    mem = i->a[0];
    base = b;
    if (n++) part = divisor(part, at - most);
    if (at < least) least = at;
    if (at > most) most = at;
  }
  if (n < 2) return 0;
  uint16_t who = sharers(fn, base, most - least), same = 0;
  if (!(who & LANES)) return 0;
  // Each lane or warp may add a row of its own, which is a complete sum.
  for (int k = 0; k <= BITS; k++)
    if (difference(fn, base, 1 << k, NEAR, &d) &&
        same_mode(fn, ir_memof(fn, mem), d, part,
                  d > most - least ? d : most - least))
      same |= (uint16_t)(k < BITS ? LANE << k : WARPS);
  return who & same;
}

// Returns SOME if chain c consists of several accumulators of one MMA, because
// other lanes hold further terms of the sum. Otherwise returns 0.
static uint16_t of_accumulators(const Search *s, const Chain *c) {
  const Fn *fn = s->fn;
  Ref mem = 0;
  int n = 0;
  for (int k = 0; k < c->n; k++) {
    Ref r = load_in(fn, c->term[k]);
    const Ins *i = ir_get(fn, r);
    if (!r || !(s->of[i->a[0]] & ACC) || (n && i->a[0] != mem)) continue;
    mem = i->a[0];
    n++;
  }
  return n >= TERMS ? SOME : 0;
}

// If r ends a chain of sums or maxima, marks r as a partial sum where the terms
// show that it is one. inner[r]: whether a later sum or maximum continues the
// chain.
static void look_at_chain(Search *s, Ref r, const bool *inner) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  bool extreme = op_class((Op)i->op) == CLASS_EXTREME;
  if ((i->op != OP_ADD && i->op != OP_FMA && !extreme) || inner[r] ||
      is_combined(fn, i) || !dtype_is_float((DType)i->type))
    return;
  Chain c = {.n = 0};
  add_chain(fn, r, extreme ? (Op)i->op : OP_ADD, &c, NEAR);
  if (c.n < 2) return;
  uint16_t who = of_loads(s, &c);
  if (!who) who = of_accumulators(s, &c);
  s->part[r] |= who;
  s->at[r] = r;
}

// Returns, for each instruction, whether its result is a term of a later sum or
// maximum.
static bool *inner_terms(Ctx *cx, const Fn *fn) {
  bool *inner = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *inner);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (is_combined(fn, i)) continue;
    for (int k = 0; k < 2; k++)
      if (i->op == OP_ADD || op_class((Op)i->op) == CLASS_EXTREME) {
        Op of = (Op)ir_get(fn, i->a[k])->op;
        inner[i->a[k]] |= of == i->op || (of == OP_FMA && i->op == OP_ADD);
      }
    if (i->op == OP_FMA) inner[i->a[2]] = true;
  }
  return inner;
}

// ---- values that depend on partial sums ----

// Reports whether value r is a sum or maximum of values of several lanes.
static bool is_joined(Search *s, Ref r, int depth) {
  const Ins *i = ir_get(s->fn, r);
  OpClass c = op_class((Op)i->op);
  if (!r || depth == 0 || s->met[r] == s->search) return false;
  s->met[r] = s->search;
  if (i->op == OP_ASK) return true;
  return (c == CLASS_EXTREME || c == CLASS_SUM || c == CLASS_CONVERT) &&
         (is_joined(s, i->a[0], depth - 1) || is_joined(s, i->a[1], depth - 1));
}

static void find_joined(Search *s) {
  const Fn *fn = s->fn;
  for (Ref w = 1; w < fn->ins.n; w++) {
    const Ins *i = ir_get(fn, w);
    if (i->op != OP_VSET && i->op != OP_ST) continue;
    Ref to = i->op == OP_VSET ? updates_root(fn, i->a[0]) : i->a[0];
    s->search++;
    if (is_joined(s, operand_ref(fn, i, ROLE_VALUE), NEAR))
      s->joined[to] = true;
  }
}

// Returns the bits of PART that the sum of a value and its shuffle clears: the
// bits for the distances between lanes over which the shuffle moves values.
static uint16_t joined_by(const Fn *fn, const Ins *i) {
  Ref value, r = intrin_shuffled(fn, i, &value);
  const Ins *shuffle = ir_get(fn, r);
  int64_t d;
  if (!r) return 0;
  if (intrin_shuffle(intrin_id(shuffle->imm)) != SH_BFLY ||
      !ir_const(fn, shuffle->a[1], &d))
    return LANES;
  return (uint16_t)((d * LANE & LANES) | SOME);
}

// Reports whether a factor with the bits `by` corrects a value with the bits
// `of` for its partial maximum: exp(x - own maximum) becomes
// exp(x - common maximum) if it is multiplied by
// exp(own maximum - common maximum).
static bool rescales(uint16_t by, uint16_t of) {
  return of & MIXED && by & PART && !(by & (OWN | MIXED));
}

static uint16_t of_arithmetic(const Search *s, const Ins *i) {
  uint16_t of = 0, own = 0, part = 0, x[3];
  OpClass c = op_class((Op)i->op);
  for (int k = 0; k < 3; k++) {
    x[k] = i->a[k] ? s->of[i->a[k]] : 0;
    of |= x[k];
    // A sum of a partial sum and an element is another partial sum.
    bool factor = c != CLASS_FUSED || k < 2 || s->extreme;
    if (factor && x[k] & OWN) own |= 1 << k;
    if (factor && x[k] & PART) part |= 1 << k;
  }
  bool mixes = c == CLASS_PRODUCT || c == CLASS_QUOTIENT || c == CLASS_FUSED ||
               i->op == OP_SUB || (i->op == OP_ADD && s->extreme);
  if (mixes && own && part && own != part) of |= MIXED;
  for (int k = 0; k < 2; k++)
    if (mixes && c != CLASS_SUM && rescales(x[k], x[1 - k]))
      of &= (uint16_t)~(MIXED | PART);
  if (c == CLASS_COMPARE || c == CLASS_LOGIC) of &= THREAD;
  uint16_t joined = joined_by(s->fn, i);
  if (joined) of &= (uint16_t)~(joined | MIXED | OWN);
  return of;
}

static uint16_t of_operand(const Search *s, const Operand *o) {
  const Fn *fn = s->fn;
  if (!o->ref || o->barrier) return 0;
  if (o->kind == OPERAND_MEM || o->kind == OPERAND_MAP) {
    if (!o->read) return 0;
    Space space = ir_memof(fn, o->ref)->space;
    if (space == SP_RMEM) return s->of[o->ref];
    return space == SP_GMEM && s->of[o->off] & THREAD ? OWN : 0;
  }
  if ((o->kind == OPERAND_RUN || o->kind == OPERAND_VAR) && !o->read) return 0;
  Ref r = ir_get(fn, o->ref)->op == OP_VAR ? updates_root(fn, o->ref) : o->ref;
  return s->of[r];
}

static uint16_t of_result(const Search *s, Ref r) {
  const Ins *i = ir_get(s->fn, r);
  uint16_t of = 0;
  Operand o;
  if (r == s->only) return s->part[r];
  if (i->op == OP_SREG) {
    SReg id = (SReg)i->imm;
    return id == SR_LANE || id == SR_WARP ||
           (id >= SR_TID_X && id <= SR_TID_Z) ? THREAD : 0;
  }
  if (i->op == OP_ASK) {
    // A shuffle moves a value of other lanes but not of other warps. The sum
    // that combines both decides which lanes remain (joined_by).
    uint16_t x = i->a[0] ? s->of[i->a[0]] : 0;
    return x & (WARPS | THREAD);
  }
  if (op_class((Op)i->op) == CLASS_MMA) {
    Operand a = operand_of(s->fn, i, ROLE_A), b = operand_of(s->fn, i, ROLE_B);
    return ACC | OWN | ((of_operand(s, &a) | of_operand(s, &b)) & MIXED);
  }
  if (op_pure((Op)i->op)) return of_arithmetic(s, i) & (uint16_t)~ACC;
  for (Operands w = operands_of(s->fn, i); operands_next(&w, &o);)
    of |= of_operand(s, &o);
  bool loads = i->op == OP_LD || i->op == OP_COPY;
  return of & (uint16_t)~(loads ? ACC | THREAD : ACC);
}

static void add(Search *s, Ref r, uint16_t of) {
  s->changed |= (s->of[r] | of) != s->of[r];
  s->of[r] |= of;
}

static void pass_on(Search *s, Ref r) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  Operand o;
  if (i->op == OP_NOP || i->op == OP_VAR) return;
  uint16_t of = of_result(s, r);
  if (!ir_is_mem(fn, r)) add(s, r, of);
  if (op_pure((Op)i->op)) return;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    bool place = o.kind == OPERAND_VAR || o.kind == OPERAND_RUN ||
                 o.kind == OPERAND_MEM;
    if (!o.ref || o.barrier || !place || !o.written) continue;
    Ref to = ir_get(fn, o.ref)->op == OP_VAR ? updates_root(fn, o.ref) : o.ref;
    if (ir_is_mem(fn, to) && ir_memof(fn, to)->space != SP_RMEM) continue;
    if (s->joined[to]) of &= (uint16_t)~(PART | MIXED);
    add(s, to, to == s->only ? s->part[to] : of);
  }
}

static void find_dependent(Search *s) {
  do {
    s->changed = false;
    for (Ref r = 1; r < s->fn->ins.n; r++) pass_on(s, r);
  } while (s->changed);
}

// Returns the properties of the values that instruction i stores to global
// memory, or 0 if it stores none there.
static uint16_t of_stored(const Search *s, const Ins *i) {
  Operand o;
  uint16_t of = 0;
  bool out = false;
  for (Operands w = operands_of(s->fn, i); operands_next(&w, &o);) {
    if (o.kind == OPERAND_MEM && o.written && !o.barrier)
      out |= ir_memof(s->fn, o.ref)->space == SP_GMEM;
    else of |= of_operand(s, &o);
  }
  return out ? of : 0;
}

// Returns the bits LANES and WARPS of partial sum r that reach a stored value
// which is MIXED, or 0 if there is none. Ignores all other partial sums.
static uint16_t of_mixed(Search *s, Ref r) {
  const Fn *fn = s->fn;
  uint16_t own = s->part[r], of = 0;
  for (Ref k = 0; k < fn->ins.n; k++) s->of[k] = 0;
  s->only = r;
  find_dependent(s);
  for (Ref k = 1; k < fn->ins.n; k++) {
    uint16_t stored = of_stored(s, ir_get(fn, k));
    if (stored & MIXED) of |= stored;
  }
  return of & MIXED ? of & own : 0;
}

// Returns the number of lanes that a reduction over the distances `of` covers.
static int lanes_of(unsigned of) {
  int n = 1;
  for (int k = 0; k < BITS; k++)
    if (of & (unsigned)LANE << k) n *= 2;
  return n;
}

// Reports whether an operation adds floats, or is a maximum or minimum of
// floats.
static bool has_sums(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    OpClass c = op_class((Op)i->op);
    bool sum = c == CLASS_EXTREME || c == CLASS_FUSED || i->op == OP_ADD;
    if (sum && dtype_is_float((DType)i->type)) return true;
  }
  return false;
}

void partial_sums(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const PartialSum *s), void *ud) {
  if (ir_threads(fn) < WARP || ir_has_addresses(fn) || !has_sums(fn)) return;
  Search s = {.fn = fn};
  s.of = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.of);
  s.part = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.part);
  s.joined = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.joined);
  s.met = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.met);
  s.at = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.at);
  find_joined(&s);
  find_dependent(&s);
  const bool *inner = inner_terms(cx, fn);
  for (Ref r = 1; r < fn->ins.n; r++) {
    look_at_loop(&s, r);
    look_at_chain(&s, r, inner);
  }
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, s.at[r]);
    s.extreme = op_class((Op)i->op) == CLASS_EXTREME ||
                (i->op == OP_VSET && is_extreme(fn, i));
    uint16_t of = s.part[r] ? of_mixed(&s, r) : 0;
    if (!of) continue;
    found(ud, &(PartialSum){.at = updates_place(fn, s.at[r]),
      .lanes = lanes_of(s.part[r] & ~of), .warps = !(of & LANES),
      .extreme = s.extreme});
    return;
  }
}
// SPDX-License-Identifier: MIT
