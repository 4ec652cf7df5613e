// Rewrites a function in scalar form, in which an operand is the instruction
// that computes the value. Thus a search needs no code of its own for rows in
// registers, vectors and pairs:
// - A load of a register becomes the value that straight-line code stored there
//   before. At the start of a loop, registers that the loop writes, and
//   registers that hold constants, become unknown. Thus searches still find the
//   loads of registers that the loop fails to update.
// - A vector copy to registers also loads its elements one by one. A vector
//   copy from registers becomes stores of its elements.
// - An operation on a packed pair (add.f32x2) becomes two operations.
#include "lint/scalar_form.h"

#include <string.h>

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"

typedef struct Halves { Ref of[2]; } Halves;

typedef struct Form {
  Ctx *cx;
  const Fn *fn;
  Fn *out;
  Ref *to;          // for each instruction of fn: the instruction of out
  Halves *halves;   // for each packed pair of fn: values of out; 0: unknown
  // element: for each element of a register object, its value in `out`; 0:
  // unknown. first: for each object of Fn.mem, index of its first element.
  Ref *element;
  size_t *first;
  uint32_t src;     // source line of the current instruction
} Form;

// ---- building ----

static Ref push(Form *f, Ins i) {
  Fn *out = f->out;
  static const Fact ANY = {INT64_MIN, INT64_MAX, 1};
  if (out->ins.n == out->ins.cap) {
    size_t cap = out->ins.cap * 2;
    Ins *ins = NEW(f->cx, Ins, cap);
    Fact *fact = NEW(f->cx, Fact, cap);
    memcpy(ins, out->ins.p, out->ins.n * sizeof *ins);
    memcpy(fact, out->fact.p, out->fact.n * sizeof *fact);
    out->ins.p = ins;
    out->fact.p = fact;
    out->ins.cap = out->fact.cap = cap;
  }
  out->ins.p[out->ins.n] = i;
  out->fact.p[out->fact.n++] = ANY;
  return (Ref)out->ins.n++;
}

static Ref emit(Form *f, Op op, DType t, Ref a, Ref b, Ref c) {
  return push(f, (Ins){.op = (uint8_t)op, .type = (uint8_t)t, .src = f->src,
                       .a = {a, b, c}});
}

static Ref number(Form *f, DType t, int64_t v) {
  return push(f, (Ins){.op = OP_CONST, .type = (uint8_t)t, .imm = v});
}

// Returns offset `off` of fn plus k.
static Ref offset(Form *f, Ref off, int64_t k) {
  int64_t at;
  DType t = ir_type(f->fn, off);
  if (!k) return f->to[off];
  if (ir_const(f->fn, off, &at)) return number(f, t, at + k);
  return emit(f, OP_ADD, t, f->to[off], number(f, t, k), 0);
}

// Copies instruction r of fn to out.
static void copy(Form *f, Ref r) {
  Ins i = *ir_get(f->fn, r);
  for (int k = 0; k < 3; k++) i.a[k] = f->to[i.a[k]];
  for (uint32_t k = i.ext; k < i.ext + i.nx; k++)
    f->out->ext.p[k] = f->to[f->fn->ext.p[k]];
  f->to[r] = push(f, i);
  f->out->fact.p[f->to[r]] = ir_fact(f->fn, r);
  if (ir_is_mem(f->fn, r)) f->out->mem.p[i.imm].ref = f->to[r];
}

// ---- elements of registers ----

static bool is_registers(const Fn *fn, Ref r) {
  return r && ir_get(fn, r)->op == OP_RMEM;
}

static void forget(Form *f, Ref object, int64_t from, int64_t end) {
  Ref *element = f->element + f->first[ir_get(f->fn, object)->imm];
  for (int64_t k = from; k < end; k++) element[k] = 0;
}

// Forgets the registers that instruction r may write.
static void forget_written(Form *f, Ref r) {
  const Fn *fn = f->fn;
  Operand o;
  int64_t from, end;
  for (Operands w = operands_of(fn, ir_get(fn, r)); operands_next(&w, &o);) {
    if (!is_registers(fn, o.ref)) continue;
    if (o.kind != OPERAND_OBJECT && !o.written) continue;
    int n = o.kind == OPERAND_RUN ? o.n : 1;
    for (int k = 0; k < n; k++) {
      bool known = operand_range(fn, &o, k, &from, &end);
      if (!known) from = 0, end = ir_memof(fn, o.ref)->count;
      forget(f, o.ref, from, end);
    }
  }
}

static void forget_region(Form *f, Ref open, Ref end) {
  for (Ref r = open + 1; r < end; r++) forget_written(f, r);
}

static void forget_constants(Form *f) {
  size_t n = f->first[f->fn->mem.n];
  for (size_t k = 0; k < n; k++)
    if (ir_get(f->out, f->element[k])->op == OP_CONST) f->element[k] = 0;
}

// Returns the place that holds the value of element k of operand o in
// registers, or NULL if there is none.
static Ref *element_of(Form *f, const Operand *o, int64_t k) {
  const Fn *fn = f->fn;
  int64_t at;
  if (!is_registers(fn, o->ref) || !ir_const(fn, o->off, &at)) return NULL;
  const Mem *m = ir_memof(fn, o->ref);
  bool inside = at + k >= 0 && at + k < m->count;
  if (ir_type(fn, o->ref) != m->type || !inside) return NULL;
  return f->element + f->first[ir_get(fn, o->ref)->imm] + at + k;
}

// Returns the value of element k of operand o of type t, or 0 if it is unknown.
static Ref load(Form *f, const Operand *o, DType t, int64_t k) {
  const Fn *fn = f->fn;
  if (is_registers(fn, o->ref)) {
    const Ref *e = element_of(f, o, k);
    return e && *e && ir_type(f->out, *e) == t ? *e : 0;
  }
  if (dtype_bits(ir_type(fn, o->ref)) != dtype_bits(t)) return 0;
  return emit(f, OP_LD, t, f->to[o->ref], offset(f, o->off, k), 0);
}

// ---- instructions ----

static void scalar_load(Form *f, Ref r) {
  Operand src = operand_of(f->fn, ir_get(f->fn, r), ROLE_SRC);
  if (is_registers(f->fn, src.ref))
    f->to[r] = load(f, &src, ir_type(f->fn, r), 0);
  if (!f->to[r]) copy(f, r);
}

static void scalar_store(Form *f, Ref r, int64_t n) {
  const Ins *i = ir_get(f->fn, r);
  Operand dst = operand_of(f->fn, i, ROLE_DST);
  copy(f, r);
  forget_written(f, r);
  for (int64_t k = 0; k < n; k++) {
    Ref *e = element_of(f, &dst, k);
    if (e) *e = f->to[operand_ref(f->fn, i, ROLE_VALUE)];
  }
}

// Loads the elements that copy r writes to registers.
static void copy_to_registers(Form *f, const Operand *dst, const Operand *src,
                              Ref pred) {
  DType t = ir_type(f->fn, dst->ref);
  int64_t n = dst->bits / dtype_bits(t);
  for (int64_t k = 0; k < n; k++) {
    Ref *e = element_of(f, dst, k), old = e ? *e : 0;
    Ref v = e ? load(f, src, t, k) : 0;
    if (v && pred) v = old ? emit(f, OP_SEL, t, f->to[pred], v, old) : 0;
    if (e) *e = v;
  }
}

// Stores the elements that a copy writes from registers to memory. Returns
// false, and stores nothing, if an element is unknown.
static bool copy_from_registers(Form *f, const Operand *dst,
                                const Operand *src) {
  DType t = ir_type(f->fn, src->ref);
  int64_t n = src->bits / dtype_bits(t);
  if (t != ir_type(f->fn, dst->ref)) return false;
  for (int64_t k = 0; k < n; k++)
    if (!load(f, src, t, k)) return false;
  for (int64_t k = 0; k < n; k++)
    emit(f, OP_ST, DT_NONE, f->to[dst->ref], offset(f, dst->off, k),
         load(f, src, t, k));
  return true;
}

static void scalar_copy(Form *f, Ref r) {
  const Fn *fn = f->fn;
  const Ins *i = ir_get(fn, r);
  Operand dst = operand_of(fn, i, ROLE_DST), src = operand_of(fn, i, ROLE_SRC);
  Ref pred = operand_ref(fn, i, ROLE_PRED);
  if (is_registers(fn, dst.ref)) {
    copy(f, r);
    copy_to_registers(f, &dst, &src, pred);
  } else if (pred || !is_registers(fn, src.ref) ||
             !copy_from_registers(f, &dst, &src)) {
    copy(f, r);
  }
}

// ---- packed pairs ----

// If value r is half `high` of a packed pair, extended to the pair's width,
// returns the instruction that computes the half. Otherwise returns 0.
static Ref half_in(const Fn *fn, Ref r, bool high) {
  const Ins *i = ir_get(fn, r);
  int64_t by;
  if (high && (i->op != OP_SHL || !ir_const(fn, i->a[1], &by) ||
               by * 2 != dtype_bits((DType)i->type)))
    return 0;
  if (high) i = ir_get(fn, i->a[0]);
  const Ins *bits = ir_get(fn, i->a[0]);
  bool widens = i->op == OP_CVT && bits->op == OP_BITCAST &&
                dtype_bits((DType)bits->type) * 2 ==
                dtype_bits((DType)i->type);
  return widens ? bits->a[0] : 0;
}

// Finds the halves of pair r = low | high << width.
static void pack(Form *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  for (int k = 0; k < 2; k++) {
    Ref low = half_in(f->fn, i->a[k], false);
    Ref high = half_in(f->fn, i->a[1 - k], true);
    if (low && high) f->halves[r] = (Halves){{f->to[low], f->to[high]}};
  }
}

// If value r reinterprets a half of a pair as a float of type t, returns the
// half's value. Otherwise returns 0.
static Ref unpack(const Form *f, Ref r, DType t) {
  const Fn *fn = f->fn;
  const Ins *i = ir_get(fn, ir_get(fn, r)->a[0]);
  if (i->op != OP_CVT || dtype_bits((DType)i->type) != dtype_bits(t)) return 0;
  const Ins *from = ir_get(fn, i->a[0]);
  int64_t by;
  bool high = from->op == OP_SHR && ir_const(fn, from->a[1], &by) &&
              by == dtype_bits(t);
  Ref half = f->halves[high ? from->a[0] : i->a[0]].of[high];
  return half && ir_type(f->out, half) == t ? half : 0;
}

// If intrinsic i is an operation on pairs, such as add.f32x2, returns the
// operation, and stores the elements' type in *t. Otherwise returns OP_NOP.
static Op paired(const Ins *i, DType *t) {
  char type[8] = "";
  const char *name = intrin_row(intrin_id(i->imm))->name;
  size_t n = strcspn(name, "."), size = strlen(name);
  if (size < n + 4 || size - n - 3 >= sizeof type ||
      strcmp(name + size - 2, "x2") != 0)
    return OP_NOP;
  memcpy(type, name + n + 1, size - n - 3);
  *t = dtype_find(type);
  if (*t == DT_NONE) return OP_NOP;
  for (int op = OP_NOP + 1; op < OP_COUNT; op++)
    if (strlen(op_name((Op)op)) == n && memcmp(op_name((Op)op), name, n) == 0)
      return op_rows[op].rule == RULE_SAME || op_rows[op].rule == RULE_FLT
             ? (Op)op : OP_NOP;
  return OP_NOP;
}

static void scalar_pair(Form *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  DType t;
  Op op = paired(i, &t);
  if (op == OP_NOP) return;
  for (int k = 0; k < 3; k++)
    if (i->a[k] && !f->halves[i->a[k]].of[0]) return;
  for (int h = 0; h < 2; h++) {
    Ref a[3];
    for (int k = 0; k < 3; k++) a[k] = f->halves[i->a[k]].of[h];
    f->halves[r].of[h] = emit(f, op, t, a[0], a[1], a[2]);
  }
}

// ---- functions ----

static void scalar_region(Form *f, Ref r) {
  const Fn *fn = f->fn;
  Op op = (Op)ir_get(fn, r)->op;
  if (op_loops(op)) {
    forget_region(f, r, ir_region_end(fn, r));
    forget_constants(f);
  } else if (op == OP_ELSE || op == OP_END) {
    forget_region(f, ir_region_around(fn, r), r);
  }
  copy(f, r);
}

static void scalar_ins(Form *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  Op op = (Op)i->op;
  f->src = i->src;
  if (op_effect(op) & (EF_OPENS | EF_CLOSES)) {
    scalar_region(f, r);
  } else if (op == OP_LD) {
    scalar_load(f, r);
  } else if (op == OP_ST || op == OP_FILL) {
    scalar_store(f, r, op == OP_FILL ? i->imm : 1);
  } else if (op == OP_COPY) {
    scalar_copy(f, r);
  } else {
    if (op == OP_BITCAST) f->to[r] = unpack(f, r, (DType)i->type);
    if (!f->to[r]) copy(f, r);
    if (op == OP_OR) pack(f, r);
    if (op == OP_INTRIN) scalar_pair(f, r);
    if (!op_pure(op)) forget_written(f, r);
  }
}

const Fn *scalar_form(Ctx *cx, const Fn *fn) {
  size_t n = fn->ins.n;
  Arena *a = &cx->scratch;
  Form f = {.cx = cx, .fn = fn, .out = NEW(cx, Fn, 1)};
  f.to = arena_zero(cx, a, n * sizeof *f.to);
  f.halves = arena_zero(cx, a, n * sizeof *f.halves);
  f.first = arena_zero(cx, a, (fn->mem.n + 1) * sizeof *f.first);
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    bool registers = m->space == SP_RMEM && m->count > 0;
    f.first[k + 1] = f.first[k] + (registers ? (size_t)m->count : 0);
  }
  f.element = arena_zero(cx, a, f.first[fn->mem.n] * sizeof *f.element + 1);
  *f.out = *fn;
  f.out->ins.cap = f.out->fact.cap = n + 1;
  f.out->ins.p = NEW(cx, Ins, n + 1);
  f.out->fact.p = NEW(cx, Fact, n + 1);
  f.out->ins.n = f.out->fact.n = f.out->claim.n = 0;
  f.out->ext.p = NEW(cx, Ref, fn->ext.n + 1);
  f.out->mem.p = NEW(cx, Mem, fn->mem.n + 1);
  if (fn->mem.n) memcpy(f.out->mem.p, fn->mem.p, fn->mem.n * sizeof(Mem));
  push(&f, *ir_get(fn, 0));
  for (Ref r = 1; r < n; r++)
    if (ir_get(fn, r)->op != OP_NOP) scalar_ins(&f, r);
  return f.out;
}
// SPDX-License-Identifier: MIT
