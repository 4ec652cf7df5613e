// Finds sums that count values more than once:
// - Each thread of a block adds the sum of the block to a total.
// - A reduction adds 32 lanes, but fewer than 32 lanes have distinct values.
// - Each block computes the same total.
//
// Also finds the opposite mistake: blocks store different sums to the same
// element.
//
// A forward pass finds, for each value, whether all lanes, all warps and all
// blocks have the same value. The pass begins with the assumption that they do,
// and is repeated until nothing changes. The index of the thread or block
// differs between threads or blocks, and so do values that depend on it. Loads
// at the same address have the same value if the kernel does not write this
// memory, or if threads of one block load from shared memory.
#include "lint/repeated_sums.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"

enum { DEPTH = 256, WARP = 32, NEAR = 8 };
enum { THREADS = SAME_LANES | SAME_WARPS, ALL = THREADS | SAME_BLOCKS };
// Inputs of a value: elements of global memory, sums of several lanes.
enum { DATA = 1, REDUCED = 2 };

typedef struct Sums {
  const Fn *fn;
  // For each instruction. same: mask SAME_* of its result, of the elements of
  // the object that it declares, of the value of the VAR or, for the head of a
  // region, of the conditions that leave the region. of: a mask of DATA and
  // REDUCED.
  uint8_t *same, *of;
  // For each shared tensor to which only one instruction stores: mask SAME_* of
  // the threads of a block for which this instruction stores the same value.
  uint8_t *equal;
  bool *used;  // for each instruction: whether it is an operand of another one
  bool changed;
} Sums;

// ---- indices of threads ----

static bool is_power(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Reports whether value r is (index of the thread & *mask) >> *shift.
static bool is_thread_bits(const Fn *fn, Ref r, int64_t *mask, int *shift,
                           int depth) {
  const Ins *i = ir_get(fn, r);
  int64_t c;
  *shift = 0;
  if (i->op == OP_SREG) {
    *mask = i->imm == SR_LANE ? WARP - 1 : i->imm == SR_WARP ? -WARP : -1;
    if (i->imm == SR_WARP) *shift = 5;
    return i->imm == SR_LANE || i->imm == SR_WARP || i->imm == SR_TID_X;
  }
  if (depth == 0 || i->op == OP_NOP) return false;
  if (i->op == OP_CVT && dtype_is_int((DType)i->type))
    return is_thread_bits(fn, i->a[0], mask, shift, depth - 1);
  bool low = i->op == OP_AND || i->op == OP_MOD;
  bool high = i->op == OP_DIV || i->op == OP_SHR;
  if ((!low && !high) || !ir_const(fn, i->a[1], &c) ||
      !is_thread_bits(fn, i->a[0], mask, shift, depth - 1))
    return false;
  if (i->op == OP_SHR && c >= 0 && c < WARP) c = (int64_t)1 << c;
  if (i->op == OP_AND) c++;
  if (!is_power(c)) return false;
  if (low) {
    *mask &= (c - 1) << *shift;
    return true;
  }
  *shift += __builtin_ctzll((uint64_t)c);
  if (*shift > WARP) return false;
  *mask &= -((int64_t)1 << *shift);
  return true;
}

static uint8_t of_special(const Fn *fn, SReg s) {
  bool rows = fn->block[0] % WARP == 0;
  if (s == SR_LANE) return SAME_WARPS | SAME_BLOCKS;
  if (s == SR_WARP) return SAME_LANES | SAME_BLOCKS;
  if (s == SR_TID_X) return SAME_BLOCKS;
  if (s == SR_TID_Y || s == SR_TID_Z)
    return rows ? SAME_LANES | SAME_BLOCKS : SAME_BLOCKS;
  bool size = (s >= SR_NTID_X && s <= SR_NTID_Z) ||
              (s >= SR_NCTAID_X && s <= SR_NCTAID_Z);
  return size ? ALL : THREADS;
}

// ---- masks of equal values ----

static bool is_redux(const Ins *i) {
  IntrinId id = intrin_id(i->imm);
  return i->op == OP_ASK && id >= IN_REDADD && id <= IN_REDXOR;
}

// If i is a butterfly shuffle, returns the bit of the lane index that it
// changes (a bit of SAME_LANES). Otherwise returns 0.
static uint8_t butterfly(const Fn *fn, const Ins *i) {
  int64_t d;
  bool bfly = intrin_shuffles(i) &&
              intrin_shuffle(intrin_id(i->imm)) == SH_BFLY;
  if (!bfly || !ir_const(fn, i->a[1], &d) || !is_power(d) || d >= WARP)
    return 0;
  return (uint8_t)d;
}

// If instruction i combines a value with a butterfly shuffle of this value,
// returns the bits of the shuffle's distance, and stores the value in *of.
// Otherwise returns 0.
static uint8_t combined(const Fn *fn, const Ins *i, Ref *of) {
  OpClass c = op_class((Op)i->op);
  bool either = (c == CLASS_SUM && i->op != OP_SUB) || c == CLASS_PRODUCT ||
                c == CLASS_EXTREME || c == CLASS_LOGIC;
  Ref s = either ? intrin_shuffled(fn, i, of) : 0;
  return s ? butterfly(fn, ir_get(fn, s)) : 0;
}

static uint8_t of_ask(const Sums *g, const Ins *i) {
  IntrinId id = intrin_id(i->imm);
  uint8_t all = ALL;
  for (int k = 0; k < 3; k++)
    if (i->a[k]) all &= g->same[i->a[k]];
  if (is_redux(i)) return all | SAME_LANES;
  if (intrin_shuffles(i)) {
    if (butterfly(g->fn, i)) return all;
    bool one = intrin_shuffle(id) == SH_IDX && !intrin_segment(i->imm >> 16) &&
               (g->same[i->a[1]] & SAME_LANES) == SAME_LANES;
    return one ? all | SAME_LANES : all & (uint8_t)~SAME_LANES;
  }
  bool vote = id >= IN_VOTEANY && id <= IN_VOTEBALLOT;
  if (vote) return all | SAME_LANES;
  return id == IN_ELECT ? all & (uint8_t)~SAME_LANES : 0;
}

// Reports whether all threads store the same sum to a shared tensor, so that
// its elements are equal.
static bool is_equal(const Sums *g, Ref tensor) {
  return g->equal[tensor] == THREADS &&
         (g->of[tensor] & (DATA | REDUCED)) == (DATA | REDUCED);
}

// Returns the mask SAME_* of the memory elements that operand o reads. Adds the
// inputs of these elements to *of.
static uint8_t of_memory(const Sums *g, const Operand *o, uint8_t *of) {
  const Fn *fn = g->fn;
  if (o->barrier) return ALL;
  const Mem *m = ir_memof(fn, o->ref);
  uint8_t at = o->kind == OPERAND_MEM && o->off ? g->same[o->off] : ALL;
  if (is_equal(g, o->ref)) at |= THREADS;
  *of |= g->of[o->ref];
  if (m->space == SP_RMEM) return at & g->same[o->ref];
  if (m->space == SP_SMEM)
    return at & (g->same[o->ref] | THREADS);
  *of |= DATA;
  bool constant = mem_is_global(m) &&
                  m->arg != NO_ARG && !fn->arg.p[m->arg].written &&
                  !ir_arg_shared(fn, (size_t)m->arg);
  return constant ? at : 0;
}

static uint8_t of_operand(const Sums *g, const Operand *o, uint8_t *of) {
  OperandKind k = (OperandKind)o->kind;
  bool memory = k == OPERAND_MEM || k == OPERAND_RUN || k == OPERAND_OBJECT ||
                k == OPERAND_MAP;
  if (!memory) {
    if (k == OPERAND_VAR && !o->read) return ALL;
    *of |= g->of[o->ref];
    return g->same[o->ref];
  }
  if (k == OPERAND_MEM && !o->read)
    // The operand is only written, so only its address matters.
    return o->off && !o->barrier ? g->same[o->off] : ALL;
  return o->read || k == OPERAND_OBJECT ? of_memory(g, o, of) : ALL;
}

// Reports whether the analysis knows nothing about the results of an operation.
static bool is_unknown(Op op) {
  bool place = operand_has(op, ROLE_OBJECT) || operand_has(op, ROLE_TMAP) ||
               operand_has(op, ROLE_ADDRESS);
  bool wgmma = op_class(op) == CLASS_MMA && op_effect(op) & EF_LATER;
  return place || wgmma || op == OP_MAPWORD || op == OP_ATOMIC ||
         op_effect(op) & EF_VISIBLE;
}

static uint8_t of_result(const Sums *g, Ref r, uint8_t *of) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  int64_t mask;
  int shift;
  Ref half;
  Operand o;
  uint8_t same = ALL;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.ref) same &= of_operand(g, &o, of);
  if (i->op == OP_SREG) return of_special(fn, (SReg)i->imm);
  if (is_unknown((Op)i->op)) return 0;
  if (i->op == OP_MMA || i->op == OP_MATRIX || intrin_shuffles(i) ||
      is_redux(i))
    *of |= REDUCED;
  if (i->op == OP_MMA || i->op == OP_MATRIX) return same & SAME_BLOCKS;
  if (i->op == OP_ASK) return of_ask(g, i);
  if (i->op == OP_INTRIN && intrin_row(intrin_id(i->imm))->class == INTRIN_L)
    return 0;
  if (fn->block[0] % WARP == 0 && is_thread_bits(fn, r, &mask, &shift, NEAR))
    same |= (uint8_t)(~mask & SAME_LANES) |
            (mask & -WARP ? 0 : SAME_WARPS);
  return same | combined(fn, i, &half);
}

// ---- the pass ----

static void narrow(Sums *g, Ref r, uint8_t same, uint8_t of) {
  uint8_t now = g->same[r] & same, made = g->of[r] | of;
  g->changed |= now != g->same[r] || made != g->of[r];
  g->same[r] = now;
  g->of[r] = made;
}

static void equate(Sums *g, Ref tensor, uint8_t same) {
  g->changed |= (g->equal[tensor] & ~same) != 0;
  g->equal[tensor] &= same;
}

// Narrows the masks of the result of instruction r, and of the variables and
// objects that r writes. `control` is the mask of the conditions around r.
static void pass_on(Sums *g, Ref r, uint8_t control) {
  const Ins *i = ir_get(g->fn, r);
  uint8_t of = 0, same = of_result(g, r, &of);
  if (!ir_is_mem(g->fn, r) && i->op != OP_VAR) narrow(g, r, same, of);
  if (i->op == OP_VAR) narrow(g, r, g->same[i->a[0]], g->of[i->a[0]]);
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    bool target = o.kind == OPERAND_VAR || o.kind == OPERAND_RUN ||
                  (o.kind == OPERAND_MEM && !o.barrier);
    if (!target || !o.ref || !o.written) continue;
    uint8_t to = same & control;
    if (i->op == OP_ST && g->equal[o.ref]) equate(g, o.ref, g->same[i->a[2]]);
    if (ir_get(g->fn, o.ref)->op == OP_SMEM) to |= THREADS;
    narrow(g, o.ref, to, of);
    if (ir_get(g->fn, o.ref)->op == OP_DSMEM)
      narrow(g, ir_get(g->fn, o.ref)->a[0], THREADS, of);
  }
}

// Calls each(ud, r, control) for each instruction. `control` is the mask SAME_*
// of the threads for which the conditions of all enclosing regions, and of all
// earlier exits, are equal.
static void walk(Sums *g, void (*each)(void *ud, Ref r, uint8_t control),
                 void *ud) {
  const Fn *fn = g->fn;
  uint8_t control[DEPTH + 1] = {ALL}, exits = ALL;
  Ref open[DEPTH];
  int depth = 0, deep = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    each(ud, r, control[depth] & exits);
    unsigned effect = op_effect((Op)i->op);
    bool opens = effect & EF_OPENS, closes = effect & EF_CLOSES;
    if (opens && !closes) {
      if (depth == DEPTH || deep) { deep++; continue; }
      open[depth] = r;
      control[depth + 1] = control[depth] & g->same[r];
      depth++;
    } else if (closes && !opens) {
      if (deep) deep--;
      else if (depth) depth--;
    } else if (effect & EF_LEAVES) {
      if (i->op == OP_EXITIF)
        exits &= g->same[i->a[0]];
      else if (!deep && i->imm > 0 && i->imm <= depth)
        narrow(g, open[depth - i->imm], g->same[i->a[0]] & control[depth], 0);
    }
  }
}

static void pass_each(void *ud, Ref r, uint8_t control) {
  pass_on(ud, r, control);
}

// ---- reports ----

typedef struct Look {
  Sums *g;
  void (*found)(void *ud, const RepeatedSum *s);
  void *ud;
  // whether blocks exchange values, so that they may have equal values in a way
  // that the analysis cannot see
  bool unknown;
} Look;

// Returns `same` without SAME_WARPS if the block has only one warp.
static uint8_t several(const Fn *fn, uint8_t same) {
  int32_t n = ir_threads(fn);
  return n > WARP ? same : same & (uint8_t)~SAME_WARPS;
}

// Returns the mask SAME_* of the threads whose atomic addition r has the same
// value, address and enclosing conditions.
static uint8_t of_atomic(const Sums *g, Ref r, uint8_t control) {
  const Ins *i = ir_get(g->fn, r);
  uint8_t of = 0, same = control;
  Operand o;
  if (i->op != OP_ATOMIC || i->imm != AT_ADD || g->used[r]) return 0;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    if (!o.ref) continue;
    if (o.kind == OPERAND_MEM && o.off) same &= g->same[o.off];
    else if (o.kind != OPERAND_MEM) same &= of_operand(g, &o, &of);
  }
  return of & DATA ? same : 0;
}

// Returns SAME_BLOCKS if all blocks store the same sum of several lanes, each
// to a different element.
static uint8_t of_store(const Sums *g, Ref r, uint8_t control) {
  const Ins *i = ir_get(g->fn, r);
  if (i->op != OP_ST || ir_get(g->fn, i->a[0])->op != OP_GMEM) return 0;
  uint8_t value = g->same[i->a[2]], at = g->same[i->a[1]], of = g->of[i->a[2]];
  bool one = (control & THREADS) != THREADS || (at & THREADS) == THREADS;
  bool own = !(at & SAME_BLOCKS) && control & SAME_BLOCKS;
  return one && own && of == (DATA | REDUCED) ? value & SAME_BLOCKS : 0;
}

// Returns the mask SAME_* of the lanes, warps and blocks that store different
// values to the same element. Each value is computed from elements that only
// this lane, warp or block loads.
static uint8_t of_apart(const Sums *g, Ref r, uint8_t control) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  uint8_t value = ALL, same = control, of = 0;
  Operand o;
  if (i->op != OP_ST && i->op != OP_COPY) return 0;
  if (ir_get(fn, i->a[0])->op != OP_GMEM) return 0;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (!o.ref) continue;
    if (o.kind == OPERAND_MEM && o.written) same &= g->same[o.off];
    else if (o.kind == OPERAND_PRED) same &= g->same[o.ref];
    else value &= of_operand(g, &o, &of);
  }
  uint8_t apart = same & (uint8_t)~value & (SAME_BLOCKS | SAME_WARPS);
  bool lanes = (same & SAME_LANES) == SAME_LANES;
  if (lanes && (value & SAME_LANES) != SAME_LANES) apart |= SAME_LANES;
  return of & DATA ? several(fn, apart) : 0;
}

// Returns the shared tensor of which r is an element, or a sum of elements, if
// all threads store the same sum to it. Returns 0 for other values.
static Ref equal_sum(const Sums *g, Ref r, int depth) {
  const Ins *i = ir_get(g->fn, r);
  if (i->op == OP_LD && is_equal(g, i->a[0])) return i->a[0];
  if (i->op != OP_ADD || depth == 0) return 0;
  Ref a = equal_sum(g, i->a[0], depth - 1);
  return a && a == equal_sum(g, i->a[1], depth - 1) ? a : 0;
}

static void look_each(void *ud, Ref r, uint8_t control) {
  const Look *l = ud;
  const Sums *g = l->g;
  const Ins *i = ir_get(g->fn, r);
  Ref of;
  uint8_t same = of_atomic(g, r, control) | of_store(g, r, control);
  uint8_t d = i->op == OP_ADD ? combined(g->fn, i, &of) : 0;
  if (d && g->of[of] & DATA) same = g->same[of] & d;
  if (i->op == OP_ASK && intrin_id(i->imm) == IN_REDADD && g->of[r] & DATA)
    same = g->same[i->a[0]] & SAME_LANES;
  same = several(g->fn, same);
  if (same) l->found(l->ud, &(RepeatedSum){.at = r, .same = same});
  Ref tensor = i->op == OP_ADD ? equal_sum(g, r, NEAR) : 0;
  if (tensor)
    l->found(l->ud, &(RepeatedSum){.at = r, .mem = ir_memof(g->fn, tensor)});
  uint8_t apart = l->unknown ? 0 : of_apart(g, r, control);
  if (apart)
    l->found(l->ud, &(RepeatedSum){.at = r, .same = apart, .apart = true});
}

// Finds the shared tensors to which only one instruction stores, and
// initializes `equal` for them.
static void find_equal(Sums *g) {
  const Fn *fn = g->fn;
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    bool own = m->space == SP_SMEM && m->ref && !m->ptx;
    for (size_t j = 0; j < fn->mem.n && own; j++) {
      const Mem *o = &fn->mem.p[j];
      own = o->space != SP_DSMEM &&
            (j == k || o->space != SP_SMEM || !ir_overlaps(o, m));
    }
    if (own) g->equal[m->ref] = THREADS;
  }
  bool *stored = g->used;  // borrows the array, which is not set yet
  for (Ref r = 1; r < fn->ins.n; r++) {
    Operand o;
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      bool writes = o.written || o.kind == OPERAND_OBJECT;
      if (!o.ref || !g->equal[o.ref] || !writes) continue;
      if (i->op != OP_ST || stored[o.ref]) g->equal[o.ref] = 0;
      stored[o.ref] = true;
    }
  }
}

// Computes the masks. Returns false if they cannot be computed.
static bool analyse(Ctx *cx, Sums *g) {
  const Fn *fn = g->fn;
  int32_t threads = ir_threads(fn);
  if (threads % WARP || !threads || ir_has_addresses(fn)) return false;
  g->same = arena_zero(cx, &cx->scratch, fn->ins.n);
  g->of = arena_zero(cx, &cx->scratch, fn->ins.n);
  g->equal = arena_zero(cx, &cx->scratch, fn->ins.n);
  g->used = arena_zero(cx, &cx->scratch, fn->ins.n);
  for (Ref r = 0; r < fn->ins.n; r++) g->same[r] = ALL;
  find_equal(g);
  for (Ref r = 1; r < fn->ins.n; r++) {
    Operand o;
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      g->used[o.ref] = true;
      if (o.kind == OPERAND_MEM) g->used[o.off] = true;
    }
  }
  do {
    g->changed = false;
    walk(g, pass_each, g);
  } while (g->changed);
  return true;
}

const uint8_t *same_values(Ctx *cx, const Fn *fn) {
  Sums g = {.fn = fn};
  return analyse(cx, &g) ? g.same : NULL;
}

void repeated_sums(Ctx *cx, const Fn *fn,
                   void (*found)(void *ud, const RepeatedSum *s), void *ud) {
  bool unknown = false;
  for (Ref r = 1; r < fn->ins.n; r++) {
    Op op = (Op)ir_get(fn, r)->op;
    unknown |= op == OP_DSMEM || op == OP_ATOMIC;
  }
  Sums g = {.fn = fn};
  if (!analyse(cx, &g)) return;
  walk(&g, look_each, &(Look){.g = &g, .found = found, .ud = ud,
                              .unknown = unknown});
}
// SPDX-License-Identifier: MIT
