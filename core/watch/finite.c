// Finds the origins of NaNs and infinities. A result is recorded if it is a NaN
// or an infinity although all operands of its operation are finite. It is also
// recorded if it is a NaN although no operand is a NaN, as in -inf - -inf.
// Infinities that a kernel writes as constants, such as the first maximum of a
// softmax, are operands and are never recorded. Many recorded results are
// harmless: exp(x) may be infinite in 1 / (1 + exp(x)). Therefore a launch is
// reported only if all its inputs are finite and an output has a NaN or an
// infinity.
#include "watch/finite.h"
#include "watch/undefined.h"

#include <math.h>
#include <string.h>

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"
#include "sim/regs.h"
#include "watch/exact.h"

// ---- rules ----

// A test for NaNs and infinities of a type. Bits u are a NaN or an infinity if
// (u & mask) + add >= bit.
typedef struct Pattern {
  DType type;
  uint32_t mask, add, bit;
} Pattern;
static const Pattern rules[] = {
  [WATCH_F32] = {DT_F32, 0x7fffffff, 0x00800000, 0x80000000},
  [WATCH_F16] = {DT_F16, 0x7fff, 0x0400, 0x8000},
  [WATCH_BF16] = {DT_BF16, 0x7fff, 0x0080, 0x8000},
  [WATCH_E5M2] = {DT_E5M2, 0x7f, 0x04, 0x80},
  [WATCH_E4M3] = {DT_E4M3, 0x7f, 0x01, 0x80},
};

static SimWatch rule_of(DType t) {
  switch ((int)t) {
    case DT_F32: case DT_TF32: return WATCH_F32;
    case DT_F16: return WATCH_F16;
    case DT_BF16: return WATCH_BF16;
    case DT_E5M2: return WATCH_E5M2;
    case DT_E4M3: return WATCH_E4M3;
    case DT_F64: return WATCH_F64;
    default: return WATCH_NONE;
  }
}

static SimWatch rule_of_intrinsic(IntrinId id) {
  switch ((int)id) {
    case IN_ADDF162: case IN_SUBF162: case IN_MULF162: case IN_FMAF162:
    case IN_PACKF162:
      return WATCH_F16X2;
    case IN_ADDBF2: case IN_SUBBF2: case IN_MULBF2: case IN_FMABF2:
    case IN_PACKBF2:
      return WATCH_BF16X2;
    case IN_ADDF322: case IN_SUBF322: case IN_MULF322: case IN_FMAF322:
      return WATCH_F32X2;
    default: return WATCH_NONE;
  }
}

SimWatch finite_rule(const SimIns *d) {
  Op op = (Op)d->op;
  if (op == OP_CVT) return rule_of((DType)d->to);
  if (op == OP_INTRIN) return rule_of_intrinsic(intrin_id(d->imm));
  OpClass c = op_class(op);
  bool makes = c == CLASS_SUM || c == CLASS_PRODUCT || c == CLASS_QUOTIENT ||
               c == CLASS_FUSED || c == CLASS_FUNCTION;
  return makes ? rule_of((DType)d->type) : WATCH_NONE;
}

// Returns the type of the numbers in i's result. Sets *parts to how many
// numbers the result has.
static DType part_of(const SimIns *i, int *parts) {
  SimWatch rule = (SimWatch)i->watch;
  *parts = 1;
  if (rule == WATCH_SCALE) return (DType)i->to;
  if (rule == WATCH_SUMF16) return DT_F16;
  if (rule == WATCH_SUMBF16) return DT_BF16;
  if (rule >= WATCH_F16X2 && rule != WATCH_F64) *parts = 2;
  if (rule == WATCH_F16X2) return DT_F16;
  if (rule == WATCH_BF16X2) return DT_BF16;
  if (rule == WATCH_F64) return DT_F64;
  return rule == WATCH_F32X2 ? DT_F32 : rules[rule].type;
}

bool finite_wanted(const Fn *fn) {
  bool output = false;
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    if (!mem_outlives(m)) continue;
    if (m->arg == NO_ARG || m->ptx) return false;
    output |= fn->arg.p[m->arg].written && !m->nonfinite_ok &&
              rule_of(m->type);
  }
  return output;
}

// ---- guards ----

// A search for results that a kernel guards. For example, in
// cute.where(sum:ne(0), 1 / sum, 0) the condition replaces the infinity. A
// result is guarded if its value reaches only selections (cute.where), and the
// condition of one of them depends on an operand of the result.
typedef struct Guards {
  const Fn *fn;
  // for each value: whether it reaches uses other than selections (cute.where)
  bool *escapes;
  // for each value: whether the condition of a selection depends on an operand
  // of the value
  bool *tested;
  // decides: for each value, the last selection whose condition depends on it.
  // reaches: for each value, the last selection whose result depends on it.
  Ref *decides, *reaches;
} Guards;

// maximum depths of searches through operands
enum { DEPTH = 6, NEAR = 3 };

static void find_escapes(Guards *g) {
  for (Ref r = (Ref)g->fn->ins.n - 1; r > 0; r--) {
    const Ins *i = ir_get(g->fn, r);
    bool pure = op_pure((Op)i->op);
    if (i->op == OP_SEL || op_rows[i->op].rule == RULE_CMP ||
        (pure && !g->escapes[r]))
      continue;
    Operand o;
    for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
      if (o.kind == OPERAND_VALUE) g->escapes[o.ref] = true;
  }
}

static void find_condition(Guards *g, Ref select, Ref r, int depth) {
  const Ins *i = ir_get(g->fn, r);
  if (!r || i->op == OP_CONST || g->decides[r] == select) return;
  g->decides[r] = select;
  for (int k = 0; depth && op_pure((Op)i->op) && k < 3; k++)
    find_condition(g, select, i->a[k], depth - 1);
}

// Reports whether the condition of `select` depends on value r.
static bool depends(const Guards *g, Ref select, Ref r, int depth) {
  const Ins *i = ir_get(g->fn, r);
  if (!r || i->op == OP_CONST) return false;
  if (g->decides[r] == select) return true;
  for (int k = 0; depth && op_pure((Op)i->op) && k < 3; k++)
    if (depends(g, select, i->a[k], depth - 1)) return true;
  return false;
}

static void find_tested(Guards *g, Ref select, Ref r, int depth) {
  const Ins *i = ir_get(g->fn, r);
  if (!r || !op_pure((Op)i->op) || g->reaches[r] == select) return;
  g->reaches[r] = select;
  for (int k = 0; k < 3; k++) {
    if (depends(g, select, i->a[k], NEAR)) g->tested[r] = true;
    if (depth) find_tested(g, select, i->a[k], depth - 1);
  }
}

void finite_guards(Ctx *cx, SimProg *p) {
  if (!p->watched) return;
  size_t n = p->fn->ins.n;
  Guards g = {.fn = p->fn, .escapes = arena_zero(cx, &cx->scratch, n),
              .tested = arena_zero(cx, &cx->scratch, n),
              .decides = arena_zero(cx, &cx->scratch, n * sizeof(Ref)),
              .reaches = arena_zero(cx, &cx->scratch, n * sizeof(Ref))};
  find_escapes(&g);
  for (Ref r = 1; r < n; r++) {
    const Ins *i = ir_get(p->fn, r);
    if (i->op != OP_SEL) continue;
    find_condition(&g, r, i->a[0], DEPTH);
    find_tested(&g, r, i->a[1], DEPTH);
    find_tested(&g, r, i->a[2], DEPTH);
  }
  for (uint32_t k = 0; k < p->nins; k++) {
    Ref r = p->ins[k].ref;
    if (g.tested[r] && !g.escapes[r]) p->ins[k].watch = WATCH_NONE;
  }
}

// ---- recording ----

// Adds n to the count of the recorded origin of NaNs or infinities that has i's
// line and operation. Returns false if no such origin is recorded.
static bool count_again(SimOrigins *all, const SimIns *i, bool nan,
                        uint64_t n) {
  for (int k = 0; k < all->n; k++) {
    SimOrigin *o = &all->at[k];
    if (o->i->src != i->src || o->i->op != i->op || o->nan != nan) continue;
    o->count += n;
    return true;
  }
  return false;
}

SimOrigin *finite_origin(SimWarp *w, SimOrigins *all, const SimIns *i, int l,
                         bool nan) {
  SimCluster *c = w->cluster;
  if (count_again(all, i, nan, 1) || all->n == SIM_ORIGINS) return NULL;
  SimOrigin *o = &all->at[all->n++];
  *o = (SimOrigin){.i = i, .nan = nan, .count = 1};
  memcpy(o->block, w->cta->id, sizeof o->block);
  simreport_thread(c->prog, w->in * LANES + l, o->thread);
  return o;
}

static void record(SimWarp *w, const SimIns *i, int l, int n, const double *v,
                   double result) {
  for (int k = 0; k < n; k++)
    if (isnan(v[k]) || (!isnan(result) && !isfinite(v[k]))) return;
  SimOrigin *o = finite_origin(w, &w->cluster->out->origins, i, l,
                               isnan(result));
  if (!o) return;
  o->n = n;
  memcpy(o->v, v, (size_t)n * sizeof *v);
  o->result = result;
}

// Returns one number of value u: the number at position p. The value is an
// operand or the result of i, and consists of numbers of type t.
static double number(const SimIns *i, uint64_t u, DType t, int p) {
  if (i->op == OP_CVT && !dtype_is_float(t))
    return t == DT_U64 ? (double)u : (double)dtype_int(t, u);
  return dtype_to_double(t, u >> (p * dtype_bits(t)));
}

static void note_lane(SimWarp *w, const SimIns *i, int l) {
  int parts, n = !i->b ? 1 : !i->c ? 2 : 3;
  DType t = part_of(i, &parts), from = (DType)i->type;
  bool pack = false;
  if (i->op == OP_INTRIN) {
    IntrinId id = intrin_id(i->imm);
    pack = id == IN_PACKF162 || id == IN_PACKBF2;
    from = pack ? DT_F32 : t;
  }
  uint64_t r = lane_bits(w, i->d, i->wide, l);
  const uint32_t slot[3] = {i->a, i->b, i->c};
  bool wide = i->op == OP_INTRIN ? i->wide : sim_wide(from);
  for (int p = 0; p < parts; p++) {
    double result = number(i, r, t, p), v[3];
    if (isfinite(result)) continue;
    for (int k = 0; k < n; k++)
      v[k] = number(i, lane_bits(w, slot[k], wide, l), from, pack ? 0 : p);
    if (pack) v[0] = v[p];
    record(w, i, l, pack ? 1 : n, v, result);
  }
}

// Reports whether a result of i may be a NaN or infinity. Tests inactive lanes
// too, because a loop without branches is fast.
static inline bool is_special(SimWarp *w, const SimIns *i) {
  const uint32_t *d = u32_at(w, i->d);
  if (i->watch > WATCH_E4M3) return true;
  const Pattern *r = &rules[i->watch];
  uint32_t mask = r->mask, add = r->add, any = 0;
  if (i->uniform) return ((d[0] & mask) + add) & r->bit;
  for (int l = 0; l < LANES; l++) any |= (d[l] & mask) + add;
  return any & r->bit;
}

void finite_note(SimWarp *w, const SimIns *i) {
  if (!is_special(w, i)) return;
  if (i->watch >= WATCH_INDEX) {
    exact_note(w, i);
    if (i->watch < WATCH_SUMF16) return;
  }
  uint32_t left = w->active;
  left &= ~(undefined_mask(w, i->a) | undefined_mask(w, i->b) |
            undefined_mask(w, i->c));
  if (i->uniform) left = left ? 1 : 0;
  for (; left; left &= left - 1) note_lane(w, i, __builtin_ctz(left));
}

void finite_fma(SimWarp *w, const SimIns *i, int l, DType t, uint64_t a,
                uint64_t b, uint64_t c, uint64_t result) {
  double r = dtype_to_double(t, result);
  if (isfinite(r)) return;
  double v[3] = {dtype_to_double(t, a), dtype_to_double(t, b),
                 dtype_to_double(t, c)};
  record(w, i, l, 3, v, r);
}

// ---- MMAs ----

// Reports whether any of the n numbers at x is a NaN or infinity.
static bool any_special(const float *x, int n) {
  uint32_t any = 0;
  for (int k = 0; k < n; k++)
    any |= (float_bits(x[k]) & 0x7fffffff) + 0x00800000;
  return any >> 31;
}

// Returns the lane that holds element `at` of the result of MMA x. `g` is the
// group of lanes that executes the MMA.
static int lane_of(const SimMmaIns *x, int g, int at) {
  for (int v = 0; v < x->d.nval; v++)
    for (int t = 0; t < x->threads; t++) {
      int l = x->lane[g * x->threads + t];
      if (x->d.at[v * LANES + l] == at) return l;
    }
  return 0;
}

void finite_tile(SimWarp *w, const SimIns *i, int g, const SimTile *t) {
  for (int e = 0; e < t->m * t->n; e++) {
    const float *a = t->a + e / t->n * t->k, *b = t->b + e % t->n * t->k;
    if (isfinite(t->d[e]) || !isfinite(t->c[e])) continue;
    if (any_special(a, t->k) || any_special(b, t->k)) continue;
    SimOrigin *o = finite_origin(w, &w->cluster->out->origins, i,
                                 lane_of(i->x, g, e), isnan(t->d[e]));
    if (!o) continue;
    int most = 0;
    for (int k = 1; k < t->k; k++)
      if (fabs((double)a[k] * b[k]) > fabs((double)a[most] * b[most]))
        most = k;
    o->sum = true;
    o->n = 3;
    o->v[0] = t->c[e];
    o->v[1] = a[most];
    o->v[2] = b[most];
    o->result = t->d[e];
  }
}

// ---- inputs and outputs ----

// For each memory object (index in Fn.mem): whether it had a NaN or infinity
// before the launch.
struct SimInputs { bool *had; };

static bool is_defined(const LaunchArg *a, size_t at, size_t bytes) {
  for (size_t k = at; a->defined && k < at + bytes; k++)
    if (!(a->defined[k / 8] >> (k & 7) & 1)) return false;
  return true;
}

// Reports whether one of the n numbers at p is a NaN or infinity.
#define ANY(TYPE, wide, mask, add, bit) { \
  const TYPE *u = (const TYPE *)(const void *)p; \
  wide any = 0; \
  for (size_t k = 0; k < n; k++) any |= (wide)(u[k] & (mask)) + (add); \
  return any & (bit); }

static bool any_in(SimWatch rule, const uint8_t *p, size_t n) {
  switch ((int)rule) {
    case WATCH_F64:
      ANY(uint64_t, uint64_t, UINT64_MAX >> 1, (uint64_t)1 << 52,
          (uint64_t)1 << 63)
    case WATCH_F32: ANY(uint32_t, uint32_t, 0x7fffffff, 0x800000, 1u << 31)
    case WATCH_F16: ANY(uint16_t, uint16_t, 0x7fff, 0x400, 0x8000)
    case WATCH_BF16: ANY(uint16_t, uint16_t, 0x7fff, 0x80, 0x8000)
    case WATCH_E5M2: ANY(uint8_t, uint8_t, 0x7f, 4, 0x80)
    case WATCH_E4M3: ANY(uint8_t, uint8_t, 0x7f, 1, 0x80)
    default: return false;
  }
}

// Kinds of special numbers, as bits of a set.
enum { HAS_INF = 1, HAS_MINUS = 2, HAS_NAN = 4 };

static int kind_of(double x) {
  return isnan(x) ? HAS_NAN : x < 0 ? HAS_MINUS : HAS_INF;
}

// Returns the kinds of NaNs and infinities that were written to the memory of
// argument a. The memory has numbers of type t.
static int specials(const LaunchArg *a, DType t) {
  int found = 0;
  enum { BLOCK = 4096 };
  SimWatch rule = rule_of(t);
  size_t size = (size_t)dtype_bits(t) / 8, n = rule ? a->bytes / size : 0;
  const uint8_t *p = a->p;
  for (size_t from = 0; from < n; from += BLOCK) {
    size_t to = from + BLOCK < n ? from + BLOCK : n;
    if (!any_in(rule, p + from * size, to - from)) continue;
    for (size_t k = from; k < to; k++) {
      if (!any_in(rule, p + k * size, 1) || !is_defined(a, k * size, size))
        continue;
      found |= kind_of(dtype_to_double(t, dtype_load(t, p, k)));
      if (found & HAS_NAN) return found;
    }
  }
  return found;
}

// Returns the argument whose memory contains object m, or NULL if m is not in
// global memory.
static const LaunchArg *arg_of(const SimProg *p, const Mem *m) {
  bool in = mem_outlives(m);
  return in && m->arg != NO_ARG ? &p->launch->arg[m->arg] : NULL;
}

SimInputs *finite_make(Ctx *cx, const SimProg *p) {
  if (!p->watched) return NULL;
  const Fn *fn = p->fn;
  SimInputs *t = arena_zero(cx, &cx->scratch, sizeof *t);
  t->had = arena_zero(cx, &cx->scratch, fn->mem.n + 1);
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    const LaunchArg *a = arg_of(p, m);
    // Memory that the kernel does not write is searched after the run, if
    // necessary.
    if (a && fn->arg.p[m->arg].written) t->had[k] = specials(a, m->type);
  }
  return t;
}

// Reports whether the inputs of a launch are finite.
static bool inputs_finite(const SimProg *p, const SimInputs *t) {
  const Fn *fn = p->fn;
  for (size_t k = 0; k < fn->arg.n; k++)
    if (!fn->arg.p[k].pointer && dtype_is_float(fn->arg.p[k].type) &&
        !isfinite(dtype_to_double(fn->arg.p[k].type, p->launch->arg[k].bits)))
      return false;
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    const LaunchArg *a = arg_of(p, m);
    if (!a || !fn->arg.p[m->arg].read) continue;
    if (fn->arg.p[m->arg].written ? t->had[k] : specials(a, m->type) != 0)
      return false;
  }
  return true;
}

void finite_merge(SimOrigins *all, const SimOrigins *more) {
  for (int k = 0; k < more->n; k++) {
    const SimOrigin *m = &more->at[k];
    if (!count_again(all, m->i, m->nan, m->count) && all->n < SIM_ORIGINS)
      all->at[all->n++] = *m;
  }
}

const SimOrigin *finite_first(const SimProg *p, const SimInputs *t,
                              const SimOrigins *all) {
  const Fn *fn = p->fn;
  int found = 0;
  if (!t || !all->n || !inputs_finite(p, t)) return NULL;
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    const LaunchArg *a = arg_of(p, m);
    if (!a || !fn->arg.p[m->arg].written || t->had[k] || m->nonfinite_ok)
      continue;
    found |= specials(a, m->type);
  }
  // An infinity in an output comes from an infinity of the same sign. A NaN may
  // come from any origin.
  for (int k = 0; k < all->n; k++)
    if (found & (HAS_NAN | kind_of(all->at[k].result))) return &all->at[k];
  return NULL;
}

// ---- facts ----

SimNonfinite finite_facts(const SimOrigin *o) {
  static const char *const sign[OP_COUNT] = {[OP_ADD] = "+", [OP_SUB] = "-",
                                             [OP_MUL] = "*", [OP_DIV] = "/",
                                             [OP_MOD] = "%"};
  const SimIns *i = o->i;
  SimNonfinite f = {.n = o->n, .nan = o->nan, .result = o->result,
                    .src = i->src, .count = o->count,
                    .key = i->watch >= WATCH_INDEX ? exact_key(i) : NULL};
  memcpy(f.v, o->v, sizeof f.v);
  memcpy(f.block, o->block, sizeof f.block);
  memcpy(f.thread, o->thread, sizeof f.thread);
  if (o->sum) f.op = "mma";
  else if (i->op == OP_CVT) f.op = "cvt", f.to = dtype_name((DType)i->to);
  else if (o->n == 3) f.op = "fma";
  else if (o->n == 2 && sign[i->op]) f.op = sign[i->op];
  else if (i->op == OP_MATH) f.op = math_name((MathFn)i->imm);
  else f.op = intrin_row(intrin_id(i->imm))->name;
  return f;
}
// SPDX-License-Identifier: MIT
