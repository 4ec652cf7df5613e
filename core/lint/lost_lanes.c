// Finds sums over the lanes of a warp that are wrong in a lane whose sum is
// used:
// - If shfl.up or shfl.down has no source lane, a lane gets its own value and
//   adds it twice.
// - If the distances of a chain of shuffles do not cover the warp, or a scan
//   lacks a step, the sum omits the values of some lanes.
// - If each lane adds elements in a loop, and only one lane's sum is used, a
//   reduction over the lanes is missing. The same holds if each lane selects a
//   value by comparing its elements.
// - If each warp adds elements, and only one warp's sum is used, a reduction
//   over the warps is missing.
//
// A backward pass finds, for each value, the lanes in which a store or another
// effect needs the value. A store by lane 0 needs lane 0 of its operand. If
// lane 0 of a shuffle down by 16 is needed, then lane 16 of its operand is
// needed, too. The pass evaluates conditions that depend only on the thread's
// index. For a bounds check, the pass considers both results. It ignores
// effects under any other condition.
#include "lint/lost_lanes.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "lint/thread_value.h"
#include "lint/updates.h"

enum { DEPTH = 64, WARP = 32, NEAR = 12 };
static const uint32_t ALL = 0xffffffff;

typedef struct Lanes {
  const Fn *fn;
  // for each instruction: the lanes that may execute it (active), and the lanes
  // in which an effect needs its result (need). For a VAR or a register object,
  // `need` applies to its contents.
  uint32_t *active, *need;
  // for each condition: the lanes in which it may be false (where[0]) or true
  // (where[1]); met: whether `where` is computed
  uint32_t *where[2];
  bool *met[2];
  bool changed;
  // whether bits stand for warps of the block, not for lanes; a shuffle then
  // moves no value from one bit to another
  bool warps;
} Lanes;

// ---- conditions that depend on the thread's index alone ----

// Returns the lanes in which condition p may have the value `yes`.
static uint32_t lanes_where(Lanes *g, Ref p, bool yes);

// Reports whether a comparison may be a bounds check such as `i < n`, which
// holds in all lanes of most warps. Other comparisons, if unknown, may select
// exactly the lanes whose sums are correct.
static bool is_bound(Op op) {
  return op == OP_LT || op == OP_LE;
}

static uint32_t find_where(Lanes *g, Ref p, bool yes) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, p);
  int32_t threads = ir_threads(fn);
  if (i->op == OP_NOT) return lanes_where(g, i->a[0], !yes);
  if (i->op == (yes ? OP_AND : OP_OR))
    return lanes_where(g, i->a[0], yes) & lanes_where(g, i->a[1], yes);
  // elect.sync chooses the first lane
  if (yes && i->op == OP_ASK && intrin_id(i->imm) == IN_ELECT)
    return g->warps ? ALL : 1;
  if (yes && i->op == OP_NE && ir_get(fn, i->a[0])->op == OP_ASK &&
      intrin_id(ir_get(fn, i->a[0])->imm) == IN_ELECT)
    return g->warps ? ALL : 1;
  uint32_t lanes = 0;
  for (int32_t t = 0; t < threads && lanes != ALL; t++) {
    uint64_t is;
    if (!thread_value_of(fn, p, t, NEAR, &is))
      return is_bound((Op)i->op) ? ALL : 0;
    if ((is & 1) == yes) lanes |= 1u << (g->warps ? t / WARP : t % WARP);
  }
  return threads ? lanes : ALL;
}

static uint32_t lanes_where(Lanes *g, Ref p, bool yes) {
  if (!g->met[yes][p]) g->where[yes][p] = find_where(g, p, yes);
  g->met[yes][p] = true;
  return g->where[yes][p];
}

static void find_active(Lanes *g) {
  uint32_t lanes[DEPTH + 1] = {ALL};
  Ref head[DEPTH + 1] = {0};
  int depth = 0, deep = 0;
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    g->active[r] = lanes[depth];
    if (op_opens((Op)i->op)) {
      if (depth == DEPTH || deep) { deep++; continue; }
      lanes[depth + 1] = lanes[depth];
      if (i->op == OP_IF) lanes[depth + 1] &= lanes_where(g, i->a[0], true);
      head[++depth] = r;
    } else if (i->op == OP_ELSE && !deep) {
      Ref p = ir_get(g->fn, head[depth])->a[0];
      lanes[depth] = lanes[depth - 1] & lanes_where(g, p, false);
    } else if (i->op == OP_END) {
      if (deep) deep--;
      else if (depth) depth--;
    }
  }
}

// ---- shuffles ----

// Returns the lane from which lane l gets its value in shuffle i, or -1 if the
// lane is unknown. Sets *own if lane l gets its own value because the shuffle
// has no source lane for it.
static int source_of(const Fn *fn, const Ins *i, int l, bool *own) {
  int64_t d;
  int from;
  *own = false;
  if (!ir_const(fn, i->a[1], &d)) return -1;
  *own = !intrin_source(intrin_shuffle(intrin_id(i->imm)), intrin_imm(i->imm),
                        l, (int)d, &from);
  return from;
}

// ---- the lanes that are needed ----

static void want(Lanes *g, Ref r, uint32_t lanes) {
  if (!r || (g->need[r] & lanes) == lanes) return;
  g->need[r] |= lanes;
  g->changed = true;
}

static void want_shuffle(Lanes *g, const Ins *i, uint32_t lanes) {
  for (int l = 0; l < WARP; l++) {
    bool own;
    if (!(lanes >> l & 1)) continue;
    int from = source_of(g->fn, i, l, &own);
    want(g, i->a[0], from < 0 ? ALL : 1u << from);
  }
  want(g, i->a[1], lanes);
}

// If instruction i adds a value and a shuffle of this value, returns the
// shuffle, and stores the value in *of. Otherwise returns 0.
static Ref shuffle_in(const Fn *fn, const Ins *i, Ref *of) {
  return i->op == OP_ADD ? intrin_shuffled(fn, i, of) : 0;
}

// Reports whether instruction i is a maximum or minimum of a value and a
// shuffle of this value.
static bool is_extreme_in(const Fn *fn, const Ins *i) {
  Ref of;
  return op_class((Op)i->op) == CLASS_EXTREME && intrin_shuffled(fn, i, &of);
}

// Like shuffle_in, but instruction i may also be a maximum or minimum of a
// value and its shuffle, or a selection between a value and its butterfly
// shuffle.
static Ref combined(const Fn *fn, const Ins *i, Ref *of) {
  Ref s = shuffle_in(fn, i, of);
  if (op_class((Op)i->op) == CLASS_EXTREME) return intrin_shuffled(fn, i, of);
  for (int k = 1; k < 3 && i->op == OP_SEL && !s; k++) {
    const Ins *x = ir_get(fn, i->a[k]);
    *of = i->a[3 - k];
    if (intrin_shuffles(x) && x->a[0] == *of &&
        intrin_shuffle(intrin_id(x->imm)) == SH_BFLY)
      s = i->a[k];
  }
  return s;
}

static bool is_registers(const Fn *fn, Ref r) {
  return r && ir_get(fn, r)->op == OP_RMEM;
}

// Reports whether instruction i has no effect except on its result, variables
// and registers.
static bool computes(const Fn *fn, const Ins *i) {
  Op op = (Op)i->op;
  if (op == OP_VAR) return false;
  if (op_effect(op) & (EF_PURE | EF_VAR) || op == OP_LD || op == OP_PICK)
    return true;
  return op == OP_ST && is_registers(fn, i->a[0]);
}

static void pass_on(Lanes *g, Ref r) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  uint32_t lanes = g->need[r], at = g->active[r];
  if (i->op == OP_NOP || ir_is_mem(fn, r) || i->op == OP_VAR) {
    if (i->op == OP_VAR) want(g, i->a[0], lanes);
    return;
  }
  if (i->op == OP_SEL) {
    Ref of;
    want(g, i->a[0], lanes);
    // The data decides from which of two lanes each lane takes the value, so
    // both operands are needed in all lanes.
    if (combined(fn, i, &of)) {
      want(g, i->a[1], lanes);
      want(g, i->a[2], lanes);
      return;
    }
    want(g, i->a[1], lanes & lanes_where(g, i->a[0], true));
    want(g, i->a[2], lanes & lanes_where(g, i->a[0], false));
    return;
  }
  if (intrin_shuffles(i) && !g->warps) {
    want_shuffle(g, i, lanes);
    return;
  }
  bool pure = computes(fn, i);
  if (i->op == OP_VSET) lanes = g->need[i->a[0]] & at;
  if (i->op == OP_ST && pure) lanes = g->need[i->a[0]] & at;
  bool moved = intrin_shuffles(i) && g->warps;
  if (!pure && !moved) lanes = i->op == OP_ASK ? ALL : at;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (!o.ref) continue;
    bool target = i->op == OP_VSET && o.kind == OPERAND_VAR;
    bool object = o.kind == OPERAND_MEM || o.kind == OPERAND_RUN ||
                  o.kind == OPERAND_OBJECT;
    if (o.kind == OPERAND_MEM) want(g, o.off, lanes);
    if (object && (!is_registers(fn, o.ref) || !o.read)) continue;
    if (!target) want(g, o.ref, object && !pure ? ALL : lanes);
  }
}

// ---- reports ----

// Reports whether value r depends on the index of the thread or lane. Sets *ok
// to false if r contains operations that may produce equal values in several
// lanes.
static bool varies(const Fn *fn, Ref r, bool *ok, int depth) {
  const Ins *i = ir_get(fn, r);
  if (!r || depth == 0) return false;
  if (i->op == OP_SREG)
    return i->imm == SR_TID_X || i->imm == SR_LANE;
  OpClass c = op_class((Op)i->op);
  bool mixes = c == CLASS_QUOTIENT || c == CLASS_EXTREME ||
               c == CLASS_SELECT || c == CLASS_ASK || i->op == OP_AND ||
               i->op == OP_SHR;
  if (mixes) *ok = false;
  bool found = i->op == OP_FOR && varies(fn, i->a[0], ok, depth - 1);
  if (!op_pure((Op)i->op)) return found;
  for (int k = 0; k < 3; k++) found |= varies(fn, i->a[k], ok, depth - 1);
  return found;
}

// Reports whether lanes may have values of r that come from different elements
// of global memory. r is then a loaded element, or a sum of such elements in a
// loop, whose address depends on the index of the thread or lane. Sets *ok to
// false if the address contains operations that may produce equal values in
// several lanes.
static bool is_input(const Fn *fn, Ref r, bool *ok, int depth) {
  const Ins *i = ir_get(fn, r);
  if (!r || depth == 0) return false;
  if (i->op == OP_LD)
    return ir_get(fn, i->a[0])->op == OP_GMEM &&
           varies(fn, i->a[1], ok, NEAR);
  bool found = false;
  if (i->op == OP_VGET) {
    for (Ref s = 1; s < fn->ins.n; s++) {
      const Ins *set = ir_get(fn, s);
      if (set->op == OP_VSET && set->a[0] == i->a[0] && s != r)
        found |= is_input(fn, set->a[1], ok, depth - 1);
    }
    return found;
  }
  if (i->op == OP_ASK || i->op == OP_SEL) *ok = false;
  if (!op_pure((Op)i->op)) return false;
  for (int k = 0; k < 3; k++) found |= is_input(fn, i->a[k], ok, depth - 1);
  return found;
}

// Sets part[l] to the mask of the lanes whose values are in lane l's value of
// r, if r is a chain of sums of a value and its shuffle. Any other value
// contains only the value of its own lane. Unknown conditions end the chain.
static void find_parts(Lanes *g, Ref r, uint32_t part[WARP], int depth) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  uint32_t a[WARP], b[WARP];
  Ref of;
  for (int l = 0; l < WARP; l++) part[l] = 1u << l;
  if (depth == 0) return;
  if (intrin_shuffles(i)) {
    find_parts(g, i->a[0], a, depth - 1);
    for (int l = 0; l < WARP; l++) {
      bool own;
      int from = source_of(fn, i, l, &own);
      part[l] = from < 0 ? 0 : a[from];
    }
  } else if (i->op == OP_SEL) {
    uint32_t yes = lanes_where(g, i->a[0], true);
    if (yes & lanes_where(g, i->a[0], false)) return;
    find_parts(g, i->a[1], a, depth - 1);
    find_parts(g, i->a[2], b, depth - 1);
    for (int l = 0; l < WARP; l++) part[l] = yes >> l & 1 ? a[l] : b[l];
  } else if (shuffle_in(fn, i, &of) || is_extreme_in(fn, i)) {
    find_parts(g, i->a[0], a, depth - 1);
    find_parts(g, i->a[1], b, depth - 1);
    for (int l = 0; l < WARP; l++) part[l] = a[l] | b[l];
  }
}

// Checks a step of a scan: a selection r between a value and its sum with a
// shuffle. Reports the step if the last lane's sum lacks the values of some,
// but fewer than half, of the lanes.
static void look_at_scan(Lanes *g, Ref r, LostLanes *l) {
  enum { STEPS = 16 };
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  Ref of, s = 0;
  for (int k = 1; k < 3 && !s; k++)
    s = shuffle_in(fn, ir_get(fn, i->a[k]), &of);
  if (!s || intrin_shuffle(intrin_id(ir_get(fn, s)->imm)) != SH_UP) return;
  uint32_t part[WARP];
  find_parts(g, r, part, STEPS);
  int n = __builtin_popcount(part[WARP - 1]);
  if (n > WARP / 2 && n < WARP)
    *l = (LostLanes){.at = r, .shuffle = s, .lanes = ~part[WARP - 1],
                     .scan = true};
}

// Returns the value that instruction i adds to a variable. Returns 0 if i does
// not add, or adds a constant.
static Ref added(const Fn *fn, const Ins *i) {
  if (i->op != OP_VSET || ir_get(fn, i->a[1])->op != OP_ADD) return 0;
  const Ins *sum = ir_get(fn, i->a[1]);
  for (int k = 0; k < 2; k++)
    if (updates_reads_back(fn, sum->a[k], i) &&
        ir_get(fn, sum->a[1 - k])->op != OP_CONST)
      return sum->a[1 - k];
  return 0;
}

// If instruction i sets a variable to a new value only where a comparison is
// true, returns the comparison. Otherwise returns 0.
static Ref selected(const Fn *fn, const Ins *i) {
  const Ins *sel = ir_get(fn, i->a[1]);
  if (i->op != OP_VSET || sel->op != OP_SEL) return 0;
  bool keeps = updates_reads_back(fn, sel->a[1], i) ||
               updates_reads_back(fn, sel->a[2], i);
  bool compares = op_class((Op)ir_get(fn, sel->a[0])->op) == CLASS_COMPARE;
  return keeps && compares ? sel->a[0] : 0;
}

// Reports whether value r contains elements that differ between lanes
// (is_input).
static bool is_own(const Fn *fn, Ref r) {
  bool ok = true;
  return is_input(fn, r, &ok, NEAR) && ok;
}

// Checks instruction r if it updates a variable in a loop: r adds an element to
// the variable, or keeps one of two values by comparing elements, like a
// running maximum. If only one lane's result is used, a reduction over the
// lanes is missing. In this case, describes the update in *l.
static void look_at_loop(const Lanes *g, Ref r, LostLanes *l) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  uint32_t need = g->need[i->a[0]];
  if (g->active[r] != ALL || !need || need & (need - 1)) return;
  Ref value = added(fn, i), p = selected(fn, i);
  bool selects = p && (is_own(fn, ir_get(fn, p)->a[0]) ||
                       is_own(fn, ir_get(fn, p)->a[1]));
  if ((value && is_own(fn, value)) || selects)
    *l = (LostLanes){.at = updates_place(fn, r), .lanes = ~need,
                     .selects = selects};
}

static void look_at(const Lanes *g, Ref r, LostLanes *l) {
  const Fn *fn = g->fn;
  Ref of, s = combined(fn, ir_get(fn, r), &of);
  if (!s || !g->need[r]) return;
  uint32_t lanes = g->need[r] & g->active[r];
  *l = (LostLanes){.shuffle = s, .twice = true};
  for (int k = 0; k < WARP && ir_get(fn, r)->op == OP_ADD; k++) {
    bool own;
    if (lanes >> k & 1 && source_of(fn, ir_get(fn, s), k, &own) >= 0 && own)
      l->lanes |= 1u << k;
  }
  if (l->lanes) {
    l->at = r;
    return;
  }
  bool ok = true;
  uint32_t none = g->active[of] & ~g->need[of];
  Ref inner, first = combined(fn, ir_get(fn, of), &inner);
  if (first || !none || !is_input(fn, of, &ok, NEAR) || !ok) return;
  *l = (LostLanes){.at = r, .shuffle = s, .lanes = none};
}

// If instruction r combines a value with a butterfly shuffle of this value,
// returns the shuffle's distance, and stores the value in *of. Otherwise
// returns 0.
static uint32_t distance_of(const Fn *fn, Ref r, Ref *of) {
  Ref s = combined(fn, ir_get(fn, r), of);
  const Ins *i = ir_get(fn, s);
  int64_t d;
  if (!s || intrin_shuffle(intrin_id(i->imm)) != SH_BFLY ||
      !ir_const(fn, i->a[1], &d) || d < 1 || d >= WARP)
    return 0;
  return (uint32_t)d;
}

// Reports whether at least one lane uses value r, and the indices of all lanes
// that use r are equal in the bits of the mask `gap`.
static bool agree_in(const Lanes *g, Ref r, uint32_t gap) {
  uint32_t used = g->need[r] & g->active[r];
  for (uint32_t l = 0; l < WARP; l++)
    if (used >> l & 1 && (l ^ (uint32_t)__builtin_ctz(used)) & gap)
      return false;
  return used;
}

// Looks for chains of butterfly shuffles that skip a power of two between their
// distances. If two lanes at the skipped distance both use their results, their
// separate sums are intended, and the chain is not reported. inner[r]: whether
// another butterfly shuffle of a chain combines r.
static void look_at_gaps(Ctx *cx, const Lanes *g,
                         void (*found)(void *ud, const LostLanes *l),
                         void *ud) {
  const Fn *fn = g->fn;
  bool *inner = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *inner);
  Ref of;
  for (Ref r = 1; r < fn->ins.n; r++)
    if (distance_of(fn, r, &of)) inner[of] = true;
  for (Ref r = 1; r < fn->ins.n; r++) {
    uint32_t all = 0, d;
    if (inner[r]) continue;
    for (Ref k = r; (d = distance_of(fn, k, &of)) != 0; k = of) all |= d;
    if (!all) continue;
    uint32_t least = all & -all;
    uint32_t gap = ~all & (ALL >> __builtin_clz(all)) & ~(least - 1);
    if (gap && agree_in(g, r, gap))
      found(ud, &(LostLanes){.at = r, .lanes = all, .gap = gap});
  }
}

// Returns the lanes to which shuffle i gives the value of another lane.
static uint32_t with_source(const Fn *fn, const Ins *i) {
  uint32_t lanes = 0;
  for (int l = 0; l < WARP; l++) {
    bool own;
    int from = source_of(fn, i, l, &own);
    lanes |= (uint32_t)(from >= 0 && !own) << l;
  }
  return lanes;
}

// Checks maximum or minimum r, the last of a chain of shuffles. Reports the
// lanes that use an incomplete maximum, if another lane's maximum includes the
// values of all lanes. Does not report the last step of a scan, whose result
// only lanes with a source lane use.
static void look_at_extreme(Lanes *g, Ref r, const bool *inner,
                            LostLanes *l) {
  enum { STEPS = 16 };
  uint32_t part[WARP], used = g->need[r] & g->active[r], full = 0;
  if (inner[r] || !used || !is_extreme_in(g->fn, ir_get(g->fn, r))) return;
  find_parts(g, r, part, STEPS);
  for (int k = 0; k < WARP; k++) full |= (uint32_t)(part[k] == ALL) << k;
  Ref of, s = combined(g->fn, ir_get(g->fn, r), &of);
  uint32_t from = with_source(g->fn, ir_get(g->fn, s));
  if (from != ALL && !(used & ~from)) return;
  if (full && used & ~full)
    *l = (LostLanes){.at = r, .shuffle = s, .lanes = used & ~full,
                     .extreme = true};
}

// Returns, for each instruction, whether another instruction combines the
// result with a shuffle of this result.
static bool *inner_values(Ctx *cx, const Fn *fn) {
  bool *inner = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *inner);
  for (Ref r = 1; r < fn->ins.n; r++) {
    Ref of;
    if (combined(fn, ir_get(fn, r), &of)) inner[of] = true;
  }
  return inner;
}

// Checks sum r, which a warp computes by shuffles. Reports r if several warps
// compute it from different elements, but only some of these warps use it.
static void look_at_warps(const Lanes *g, Ref r, LostLanes *l) {
  const Fn *fn = g->fn;
  Ref of, inner, s = shuffle_in(fn, ir_get(fn, r), &of);
  bool ok = true;
  if (!s || !g->need[r] || shuffle_in(fn, ir_get(fn, of), &inner)) return;
  int32_t n = ir_threads(fn) / WARP;
  uint32_t none = g->active[r] & ~g->need[r] & ALL >> (WARP - n);
  if (!none || !is_input(fn, of, &ok, NEAR) || !ok) return;
  *l = (LostLanes){.at = r, .shuffle = s, .lanes = none, .warps = true};
}

static void find_needs(Ctx *cx, Lanes *g) {
  const Fn *fn = g->fn;
  g->active = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *g->active);
  g->need = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *g->need);
  for (int k = 0; k < 2; k++) {
    g->where[k] = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof(uint32_t));
    g->met[k] = arena_zero(cx, &cx->scratch, fn->ins.n);
  }
  find_active(g);
  do {
    g->changed = false;
    for (Ref r = (Ref)fn->ins.n - 1; r > 0; r--) pass_on(g, r);
  } while (g->changed);
}

void lost_lanes(Ctx *cx, const Fn *fn,
                void (*found)(void *ud, const LostLanes *l), void *ud) {
  Ref of;
  bool any = false, combines = false;
  for (Ref r = 1; r < fn->ins.n && !combines; r++) {
    combines = combined(fn, ir_get(fn, r), &of) != 0;
    any |= combines || added(fn, ir_get(fn, r)) || selected(fn, ir_get(fn, r));
  }
  if (!any || fn->block[0] < WARP) return;
  Lanes g = {.fn = fn};
  find_needs(cx, &g);
  if (combines) look_at_gaps(cx, &g, found, ud);
  any = false;
  const bool *inner = inner_values(cx, fn);
  for (Ref r = 1; r < fn->ins.n; r++) {
    LostLanes l = {0};
    if (ir_get(fn, r)->op == OP_SEL) look_at_scan(&g, r, &l);
    if (!l.at) look_at(&g, r, &l);
    if (!l.at) look_at_extreme(&g, r, inner, &l);
    if (l.at) found(ud, &l);
    any |= l.at != 0;
  }
  // Search for missing reductions only if no shuffle is wrong, because a wrong
  // shuffle also leaves the sums of some lanes unused.
  for (Ref r = 1; r < fn->ins.n && !any; r++) {
    LostLanes l = {0};
    if (ir_get(fn, r)->op == OP_VSET) look_at_loop(&g, r, &l);
    if (l.at) found(ud, &l);
    any |= l.at != 0;
  }
  int32_t threads = ir_threads(fn);
  if (any || !combines || threads <= WARP || threads % WARP ||
      threads > WARP * WARP)
    return;
  g = (Lanes){.fn = fn, .warps = true};
  find_needs(cx, &g);
  for (Ref r = 1; r < fn->ins.n; r++) {
    LostLanes l = {0};
    look_at_warps(&g, r, &l);
    if (l.at) found(ud, &l);
  }
}
// SPDX-License-Identifier: MIT
