// Merges two operations on 16-bit floats into one packed operation such as
// add.bf16x2, if elements 2k and 2k + 1 of fragments undergo the same
// operation. Conversions of 8-bit floats are also merged in pairs. Only the
// emitter uses the rewritten function. The packed instructions return the same
// bits as the single operations of ops.h (computed in f32, rounded once; NaN is
// 0x7fff). This was verified on an H200 for all pairs of operands.
//
// Pairs start at loads: two loaded halves of a word form a word. If both
// operands of an operation are such pairs, its two results also form a word.
// Two constants form a word, and so does one value that is used for both
// halves. An instruction that uses only one half extracts it from the word.
// uses.c removes instructions that are no longer used.
#include <string.h>

#include "emit/inside.h"
#include "ir/fold.h"
#include "ir/intrin.h"

// maximum number of operations that wait for a partner
enum { OPEN = 32 };

// The last load or store of one half of a word. `version` is the number of
// accesses to the memory object up to this one. For a load it counts writes,
// for a store reads and writes.
typedef struct Half {
  Ref r;
  uint32_t version, epoch;
} Half;

typedef struct Pairs {
  Ctx *cx;
  const Fn *from;
  Fn *to;
  size_t cap;          // allocated length of to->ins and to->fact
  Ref *at;             // for each Ref of `from`: the Ref of this value in `to`
  Ref *lower;  // for a value that is an upper half: its lower half, or 0
  Ref *word;  // for a value that is an upper half: the word, a Ref in `to`
  Ref *view;           // for each object of from->mem: its view as words
  // for each object of from->mem: number of writes and of accesses so far
  uint32_t *written, *touched;
  Half **loaded;  // for each object of from->mem: the last load of each element
  Half *stored;  // for each object of from->mem: last store to a lower half
  // Number of the current region. Only operations of one region are merged.
  uint32_t epoch;
  // a ring of the operations of this region that have no partner yet
  Ref open[OPEN];
  uint32_t nopen;
  uint32_t found;      // number of merged pairs of operations so far
  int sm;
} Pairs;

static bool half(DType t) { return t == DT_BF16 || t == DT_F16; }
static bool quarter(DType t) { return t == DT_E4M3 || t == DT_E5M2; }

// Returns the type of a word that holds two elements of type t, or DT_NONE if
// elements of t are not merged.
static DType word_type(DType t) {
  return half(t) ? DT_U32 : quarter(t) ? DT_U16 : DT_NONE;
}

// ---- the new function ----

static Ref add(Pairs *p, Ins i, Fact f) {
  Fn *to = p->to;
  if (to->ins.n == p->cap) {
    p->cap = 2 * p->cap + 64;
    Ins *ins = NEW(p->cx, Ins, p->cap);
    Fact *fact = NEW(p->cx, Fact, p->cap);
    if (to->ins.n) {
      memcpy(ins, to->ins.p, to->ins.n * sizeof *ins);
      memcpy(fact, to->fact.p, to->ins.n * sizeof *fact);
    }
    to->ins.p = ins;
    to->fact.p = fact;
  }
  to->ins.p[to->ins.n] = i;
  to->fact.p[to->ins.n] = f;
  to->fact.n = to->ins.n + 1;
  return (Ref)to->ins.n++;
}

// Appends an operation with the source line of `by`.
static Ref make(Pairs *p, const Ins *by, Op op, DType t, Ref a, Ref b) {
  Ins i = {.op = (uint8_t)op, .type = (uint8_t)t, .src = by->src,
           .a = {a, b, 0}};
  return add(p, i, fold_full(t));
}

static Ref constant(Pairs *p, const Ins *by, DType t, int64_t v) {
  Ins i = {.op = OP_CONST, .type = (uint8_t)t, .src = by->src, .imm = v};
  return add(p, i, fact_const(v));
}

static void copy_ins(Pairs *p, Ref r) {
  Ins i = *ir_get(p->from, r);
  for (int k = 0; k < 3; k++) i.a[k] = p->at[i.a[k]];
  for (uint32_t k = 0; k < i.nx; k++)
    p->to->ext.p[i.ext + k] = p->at[p->from->ext.p[i.ext + k]];
  p->at[r] = add(p, i, ir_fact(p->from, r));
  if (!ir_is_mem(p->from, r)) return;
  if (p->from->mem.p[i.imm].ref == r) p->to->mem.p[i.imm].ref = p->at[r];
  DType words = word_type((DType)i.type);
  if (i.op != OP_RMEM || !words || p->view[i.imm]) return;
  i.type = (uint8_t)words;
  i.name = 0;
  p->view[i.imm] = add(p, i, fold_full(words));
}

// ---- pairs of values ----

static void note_pair(Pairs *p, Ref lo, Ref hi, Ref word) {
  p->lower[hi] = lo;
  p->word[hi] = word;
}

// Reports whether the values lo and hi can form a word. Sets *pair unless both
// are constants, or both are one value.
static bool together(const Pairs *p, Ref lo, Ref hi, bool *pair) {
  bool both = ir_get(p->from, lo)->op == OP_CONST &&
              ir_get(p->from, hi)->op == OP_CONST;
  if (lo == hi || both) return true;
  *pair = true;
  return p->lower[hi] == lo;
}

static Ref word_of(Pairs *p, const Ins *by, Ref lo, Ref hi) {
  const Ins *x = ir_get(p->from, lo), *y = ir_get(p->from, hi);
  if (x->op == OP_CONST && y->op == OP_CONST)
    return constant(p, by, DT_U32, (x->imm & 0xffff) | (y->imm & 0xffff) << 16);
  if (lo != hi) return p->word[hi];
  Ref u = make(p, by, OP_BITCAST, DT_U16, p->at[lo], 0);
  u = make(p, by, OP_CVT, DT_U32, u, 0);
  return make(p, by, OP_MUL, DT_U32, u, constant(p, by, DT_U32, 0x10001));
}

static Ref half_of(Pairs *p, const Ins *by, DType t, Ref word, bool upper) {
  if (upper)
    word = make(p, by, OP_SHR, DT_U32, word, constant(p, by, DT_U32, 16));
  word = make(p, by, OP_CVT, DT_U16, word, 0);
  return make(p, by, OP_BITCAST, t, word, 0);
}

static Ref intrinsic(Pairs *p, const Ins *by, IntrinId id, Ref a, Ref b,
                     Ref c) {
  DType t = intrin_result(id);
  Ins i = {.op = OP_INTRIN, .type = (uint8_t)t, .src = by->src,
           .a = {a, b, c}, .imm = intrin_pack(id, 0)};
  return add(p, i, fold_full(t));
}

// Records that word w replaces the pair (lo, hi). Later uses of lo and hi
// extract them from w.
static void replace(Pairs *p, const Ins *by, Ref lo, Ref hi, Ref w) {
  note_pair(p, lo, hi, w);
  p->at[lo] = half_of(p, by, (DType)by->type, w, false);
  p->at[hi] = half_of(p, by, (DType)by->type, w, true);
  p->found++;
}

// ---- operations ----

static int packed_row(const Ins *i) {
  static const struct { Op op; IntrinId of[2]; } rows[] = {
    {OP_ADD, {IN_ADDF162, IN_ADDBF2}}, {OP_SUB, {IN_SUBF162, IN_SUBBF2}},
    {OP_MUL, {IN_MULF162, IN_MULBF2}}, {OP_MIN, {IN_MINF162, IN_MINBF2}},
    {OP_MAX, {IN_MAXF162, IN_MAXBF2}}, {OP_FMA, {IN_FMAF162, IN_FMABF2}}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    if (rows[k].op == (Op)i->op) return (int)rows[k].of[i->type == DT_BF16];
  return -1;
}

static bool packs(const Ins *i) {
  return half((DType)i->type) &&
         (packed_row(i) >= 0 || op_class((Op)i->op) == CLASS_SIGN ||
          i->op == OP_DIV);
}

static Ref as_f32(Pairs *p, const Ins *by, Ref r) {
  const Ins *i = ir_get(p->from, r);
  if (i->op != OP_CONST) return make(p, by, OP_CVT, DT_F32, p->at[r], 0);
  float x = dtype_to_float((DType)i->type, (uint64_t)i->imm);
  return constant(p, by, DT_F32, (int64_t)float_bits(x));
}

// Rounds two f32 to type t and packs them.
static Ref rounded(Pairs *p, const Ins *by, DType t, Ref lo, Ref hi) {
  IntrinId id = t == DT_BF16   ? IN_PACKBF2
                : t == DT_F16  ? IN_PACKF162
                : t == DT_E4M3 ? IN_PACKE4M3 : IN_PACKE5M2;
  return intrinsic(p, by, id, lo, hi, 0);
}

// Divides two 16-bit floats and returns the quotient in f32. For bf16, the
// result of div.full rounds to the same bf16 as the exact quotient, as measured
// on an H200. For f16 it does not.
static Ref divided(Pairs *p, const Ins *i) {
  Ref x = as_f32(p, i, i->a[0]), y = as_f32(p, i, i->a[1]);
  bool full = i->type == DT_BF16 && p->sm == 90;
  Ref q = make(p, i, full ? OP_MATH : OP_DIV, DT_F32, x, y);
  if (full) p->to->ins.p[q].imm = MF_DIVAPPROX;
  return q;
}

static Ref packed(Pairs *p, const Ins *lo, const Ins *hi) {
  Ref x[3] = {0, 0, 0};
  if (hi->op == OP_DIV) {
    Ref q = divided(p, lo);
    return rounded(p, hi, (DType)hi->type, q, divided(p, hi));
  }
  for (int k = 0; k < 3 && lo->a[k]; k++)
    x[k] = word_of(p, hi, lo->a[k], hi->a[k]);
  if (hi->op == OP_NEG)
    return make(p, hi, OP_XOR, DT_U32, x[0],
                constant(p, hi, DT_U32, 0x80008000));
  if (hi->op == OP_ABS)
    return make(p, hi, OP_AND, DT_U32, x[0],
                constant(p, hi, DT_U32, 0x7fff7fff));
  return intrinsic(p, hi, (IntrinId)packed_row(hi), x[0], x[1], x[2]);
}

static bool halves_of_one(const Pairs *p, const Ins *lo, const Ins *hi) {
  if (lo->op != hi->op || lo->type != hi->type) return false;
  bool pair = false;
  for (int k = 0; k < 3 && lo->a[k]; k++)
    if (!together(p, lo->a[k], hi->a[k], &pair)) return false;
  return pair;
}

// Looks among the operations without a partner for the same operation on the
// other half of r's word. If it is there, merges both. Otherwise adds r to
// these operations.
static void pair_operation(Pairs *p, Ref r) {
  const Ins *i = ir_get(p->from, r);
  for (uint32_t k = 0; k < OPEN; k++) {
    Ref q = p->open[k];
    const Ins *j = ir_get(p->from, q);
    bool lower = q && halves_of_one(p, j, i);
    if (!lower && !(q && halves_of_one(p, i, j))) continue;
    Ref lo = lower ? q : r, hi = lower ? r : q;
    replace(p, i, lo, hi, packed(p, ir_get(p->from, lo),
                                 ir_get(p->from, hi)));
    p->open[k] = 0;
    return;
  }
  p->open[p->nopen++ % OPEN] = r;
}

// ---- conversions ----

// Converts two 8-bit floats through f16, which represents every 8-bit float.
static void from_quarters(Pairs *p, Ref lo, Ref hi) {
  const Ins *i = ir_get(p->from, hi);
  DType t = (DType)i->type, s = ir_type(p->from, i->a[0]);
  Ref h = intrinsic(p, i, s == DT_E4M3 ? IN_E4M3F16 : IN_E5M2F16,
                    p->word[i->a[0]], 0, 0), x[2];
  if (t == DT_F16) {
    replace(p, i, lo, hi, h);
    return;
  }
  for (int k = 0; k < 2; k++)
    x[k] = make(p, i, OP_CVT, DT_F32, half_of(p, i, DT_F16, h, k), 0);
  if (t == DT_BF16) {
    replace(p, i, lo, hi, rounded(p, i, t, x[0], x[1]));
    return;
  }
  p->at[lo] = x[0];
  p->at[hi] = x[1];
  p->found++;
}

// Merges two conversions to a type narrower than f32. Only instructions that
// use both halves use the packed result. Other instructions use the single
// conversions.
static void to_narrow(Pairs *p, Ref lo, Ref hi, DType s) {
  const Ins *i = ir_get(p->from, hi), *j = ir_get(p->from, lo);
  DType t = (DType)i->type;
  if (quarter(t) && s == DT_F16 && p->lower[i->a[0]] == j->a[0]) {
    note_pair(p, lo, hi, intrinsic(p, i, t == DT_E4M3 ? IN_F16E4M3
                                         : IN_F16E5M2, p->word[i->a[0]], 0, 0));
    return;
  }
  Ref x = p->at[j->a[0]], y = p->at[i->a[0]];
  if (s != DT_F32) {
    x = make(p, i, OP_CVT, DT_F32, x, 0);
    y = make(p, i, OP_CVT, DT_F32, y, 0);
  }
  note_pair(p, lo, hi, rounded(p, i, t, x, y));
}

// Merges conversion r with the instruction before it, if both are the same
// conversion from one script line.
static void pair_conversion(Pairs *p, Ref r) {
  const Ins *i = ir_get(p->from, r), *j = ir_get(p->from, r - 1);
  if (j->op != OP_CVT || j->type != i->type || j->src != i->src ||
      p->lower[r - 1])
    return;
  DType t = (DType)i->type, s = ir_type(p->from, i->a[0]);
  // whether the target has instructions for 8-bit floats
  bool quarters = p->sm >= 89;
  if (ir_type(p->from, j->a[0]) != s || !(quarter(t) || half(t) ||
                                         t == DT_F32))
    return;
  if (quarter(s)) {
    if (quarters && !quarter(t) && p->lower[i->a[0]] == j->a[0])
      from_quarters(p, r - 1, r);
  } else if (half(t) ? s == DT_F32
                     : quarter(t) && quarters && (half(s) || s == DT_F32)) {
    to_narrow(p, r - 1, r, s);
  }
}

// ---- registers ----

// Returns the index of the element that load or store i accesses, or -1 if
// elements of this type are not merged.
static int64_t element(const Pairs *p, const Ins *i) {
  const Ins *m = ir_get(p->from, i->a[0]);
  int64_t v;
  if (m->op != OP_RMEM || !word_type((DType)m->type) || !p->view[m->imm] ||
      !ir_const(p->from, i->a[1], &v))
    return -1;
  return v;
}

static Ref word_at(Pairs *p, const Ins *by, int64_t element, Ref value) {
  Ref off = constant(p, by, DT_I32, element / 2);
  Ref mem = p->view[ir_get(p->from, by->a[0])->imm];
  DType t = ir_type(p->to, mem);
  Ins i = {.op = value ? OP_ST : OP_LD, .type = value ? DT_NONE : (uint8_t)t,
           .src = by->src, .a = {mem, off, value}};
  return add(p, i, fold_full(t));
}

static void pair_load(Pairs *p, Ref r) {
  const Ins *i = ir_get(p->from, r);
  int64_t e = element(p, i);
  if (e < 0 || i->type != ir_type(p->from, i->a[0])) return;
  int64_t m = ir_get(p->from, i->a[0])->imm;
  Half *mine = &p->loaded[m][e], *other = &p->loaded[m][e ^ 1];
  *mine = (Half){r, p->written[m], p->epoch};
  if (!other->r || other->version != mine->version ||
      other->epoch != p->epoch || ir_type(p->from, other->r) != i->type)
    return;
  Ref lo = e & 1 ? other->r : r, hi = e & 1 ? r : other->r;
  if (p->lower[hi]) return;
  note_pair(p, lo, hi, word_at(p, i, e, 0));
}

// Merges r, a store to an upper half, with the store before it, if that one
// stored to the lower half.
static void pair_store(Pairs *p, Ref r) {
  const Ins *i = ir_get(p->from, r);
  int64_t e = element(p, i);
  if (e < 0) return;
  int64_t m = ir_get(p->from, i->a[0])->imm;
  Half *last = &p->stored[m];
  const Ins *j = ir_get(p->from, last->r);
  if (!(e & 1)) {
    *last = (Half){r, p->touched[m] + 1, p->epoch};
    return;
  }
  if (!last->r || last->version != p->touched[m] || last->epoch != p->epoch ||
      element(p, j) != e - 1 || p->lower[i->a[2]] != j->a[2])
    return;
  p->to->ins.p[p->at[last->r]].op = OP_NOP;
  p->to->ins.p[p->at[r]].op = OP_NOP;
  word_at(p, i, e, p->word[i->a[2]]);
  p->found += quarter(ir_type(p->from, i->a[0]));
}

// Counts the accesses and the writes of i to register arrays.
static void note_accesses(Pairs *p, const Ins *i) {
  Operand o;
  if (!(op_effect((Op)i->op) & (EF_REGS | EF_MEMORY))) return;
  for (Operands w = operands_of(p->from, i); operands_next(&w, &o);) {
    if (o.kind != OPERAND_MEM && o.kind != OPERAND_RUN) continue;
    int64_t m = ir_get(p->from, o.ref)->imm;
    p->touched[m]++;
    p->written[m] += o.written;
  }
}

// ---- the walk ----

static void step(Pairs *p, Ref r) {
  const Ins *i = ir_get(p->from, r);
  copy_ins(p, r);
  if (op_effect((Op)i->op) & (EF_OPENS | EF_CLOSES) || i->op == OP_BREAKIF) {
    p->epoch++;
    memset(p->open, 0, sizeof p->open);
  }
  if (i->op == OP_ST) pair_store(p, r);
  note_accesses(p, i);
  if (i->op == OP_LD) pair_load(p, r);
  else if (packs(i)) pair_operation(p, r);
  else if (i->op == OP_CVT) pair_conversion(p, r);
}

static bool any_packs(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (packs(i) || (i->op == OP_CVT && (quarter((DType)i->type) ||
                                         quarter(ir_type(fn, i->a[0])))))
      return true;
  }
  return false;
}

static void *zeroes(Ctx *cx, size_t n, size_t size) {
  return arena_zero(cx, &cx->scratch, (n + 1) * size);
}

const Fn *pack16_run(Ctx *cx, const Fn *fn, int sm) {
  if (sm < 80 || !any_packs(fn)) return fn;
  size_t n = fn->ins.n, mems = fn->mem.n;
  Pairs p = {.cx = cx, .from = fn, .to = zeroes(cx, 1, sizeof(Fn)),
             .sm = sm};
  *p.to = *fn;
  p.to->ins.p = NULL;
  p.to->ins.n = 0;
  p.to->ext.p = zeroes(cx, fn->ext.n, sizeof(Ref));
  p.to->mem.p = zeroes(cx, mems, sizeof(Mem));
  if (mems) memcpy(p.to->mem.p, fn->mem.p, mems * sizeof(Mem));
  p.at = zeroes(cx, n, sizeof *p.at);
  p.lower = zeroes(cx, n, sizeof *p.lower);
  p.word = zeroes(cx, n, sizeof *p.word);
  p.view = zeroes(cx, mems, sizeof *p.view);
  p.written = zeroes(cx, mems, sizeof *p.written);
  p.touched = zeroes(cx, mems, sizeof *p.touched);
  p.stored = zeroes(cx, mems, sizeof *p.stored);
  p.loaded = zeroes(cx, mems, sizeof *p.loaded);
  for (size_t k = 0; k < mems; k++)
    if (fn->mem.p[k].space == SP_RMEM)
      p.loaded[k] = zeroes(cx, (size_t)(fn->mem.p[k].count *
                                        dtype_bits(fn->mem.p[k].type) / 8) +
                                 1, sizeof **p.loaded);
  add(&p, *ir_get(fn, 0), ir_fact(fn, 0));
  for (Ref r = 1; r < n; r++) step(&p, r);
  return p.found ? p.to : fn;
}
// SPDX-License-Identifier: MIT
