// Finds values that the compiler can fold. They depend only on constants,
// directly or through registers, variables and unrolled loops. Folding can
// change results. It rounds approximate functions correctly, unlike the
// hardware, and it may turn max(-0, 0) into -0.
#include "emit/expr.h"

#include <string.h>

typedef struct Known {
  const Fn *fn;
  // for each instruction, whether its value is known; for a VAR, whether the
  // value that was set last is known
  bool *value;
  // for each object of fn->mem, whether each of its register elements is known
  bool **element;
} Known;

// Returns the flags (Known.element) of the register elements that an access
// touches: `bits` bits from element `off` of view mem on. Sets *n to their
// number. Returns NULL if mem is not a register array.
static bool *elements(const Known *k, Ref mem, int64_t off, int64_t bits,
                      int64_t *n) {
  const Ins *m = ir_get(k->fn, mem);
  const Mem *a = &k->fn->mem.p[m->imm];
  *n = 0;
  if (m->op != OP_RMEM) return NULL;
  int64_t own = uses_bits((DType)m->type), base = uses_bits(a->type);
  int64_t lo = off * own / base, hi = (off * own + bits + base - 1) / base;
  *n = (hi < a->count ? hi : a->count) - lo;
  return k->element[m->imm] + lo;
}

static bool *operand_elements(const Known *k, const Operand *o, int64_t *n) {
  int64_t off;
  if (!ir_const(k->fn, o->off, &off)) off = 0;
  return elements(k, o->ref, off, o->bits, n);
}

static bool reads_known(const Known *k, const Operand *o) {
  int64_t n;
  if (o->kind == OPERAND_VALUE || o->kind == OPERAND_PRED ||
      o->kind == OPERAND_VAR)
    return k->value[o->ref];
  if (o->kind != OPERAND_MEM) return false;
  const bool *e = operand_elements(k, o, &n);
  while (n-- > 0)
    if (e[n]) return true;
  return false;
}

static void write(Known *k, const Operand *o, bool known) {
  int64_t n;
  if (o->kind == OPERAND_VAR) k->value[o->ref] = known;
  if (o->kind == OPERAND_MEM) {
    bool *e = operand_elements(k, o, &n);
    while (n-- > 0) e[n] = known;
  }
  for (int r = 0; o->kind == OPERAND_RUN && r < o->n; r++) {
    bool *e = elements(k, o->ref, o->reg[r], o->bits, &n);
    while (n-- > 0) e[n] = known;
  }
}

static bool can_fold(const Ins *i) {
  unsigned effect = op_effect((Op)i->op);
  if (i->op == OP_INTRIN)
    return intrin_row(intrin_id(i->imm))->class == INTRIN_P;
  return i->op == OP_FOR || effect & (EF_PURE | EF_VAR) ||
         (effect & (EF_REGS | EF_MEMORY) && !(effect & EF_ORDERED));
}

static void see(Known *k, Ref r) {
  const Ins *i = ir_get(k->fn, r);
  bool known = can_fold(i), any = i->op == OP_CONST;
  Operand o;
  for (Operands w = operands_of(k->fn, i); known && operands_next(&w, &o);)
    if (o.ref && (o.read || !o.written)) known = any = reads_known(k, &o);
  known = any && (known || i->op == OP_CONST);
  if (i->op == OP_VAR) k->value[r] = known;
  else k->value[r] |= known;
  for (Operands w = operands_of(k->fn, i); operands_next(&w, &o);)
    if (o.ref && o.written) write(k, &o, known);
}

// Visits the instructions from r to end in program order. Visits a loop's body
// twice, because an iteration may read a register that the previous iteration
// wrote.
static void walk(Known *k, Ref r, Ref end) {
  for (; r < end; r++) {
    const Ins *i = ir_get(k->fn, r);
    see(k, r);
    if (i->op != OP_FOR && i->op != OP_LOOP) continue;
    Ref last = ir_region_end(k->fn, r);
    walk(k, r + 1, last);
    walk(k, r + 1, last);
    r = last;
  }
}

bool known_folds(IntrinId id) {
  return strstr(intrin_row(id)->text, ".approx.ftz.f32") != NULL;
}

static bool matters(const Ins *i) {
  return i->op == OP_MATH || op_class((Op)i->op) == CLASS_EXTREME ||
         (i->op == OP_INTRIN && known_folds(intrin_id(i->imm)));
}

void known_run(Emit *e) {
  const Fn *fn = e->fn;
  bool any = false;
  for (Ref r = 1; r < fn->ins.n; r++) any |= matters(ir_get(fn, r));
  if (!any) return;
  Arena *a = &e->cx->scratch;
  Known k = {fn, arena_zero(e->cx, a, fn->ins.n + 1),
             NEW(e->cx, bool *, fn->mem.n + 1)};
  for (size_t m = 0; m < fn->mem.n; m++) {
    const Mem *mem = &fn->mem.p[m];
    k.element[m] = mem->space != SP_RMEM ? NULL
                   : arena_zero(e->cx, a, (size_t)mem->count + 1);
  }
  e->known = k.value;
  walk(&k, 1, (Ref)fn->ins.n);
}

bool known_is(const Emit *e, const Ins *i, int n) {
  for (int k = 0; k < n; k++)
    if (!e->known || !e->known[i->a[k]]) return false;
  return true;
}
// SPDX-License-Identifier: MIT
