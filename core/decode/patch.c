// Applies patches to a program. A patch removes, weakens, inserts or replaces
// an instruction, or replaces an operand. Other instructions keep their
// indices, because an inserted instruction is treated as part of the next one.
// IR instructions that compute a new operand are appended to the function, and
// are decoded before the instruction that uses it.
#include "decode/patch.h"

#include <string.h>

#include "decode/prog.h"

// ---- operands ----

// maximum number of IR instructions that compute one operand
enum { MADE = 1 + 2 * PATCH_STEPS };

static Ref append(Fn *fn, Ins i, Fact fact) {
  fn->ins.p[fn->ins.n] = i;
  fn->fact.p[fn->ins.n] = fact;
  fn->fact.n++;
  return (Ref)fn->ins.n++;
}

static Ref number(Fn *fn, DType t, int64_t v) {
  return append(fn, (Ins){.op = OP_CONST, .type = (uint8_t)t, .imm = v},
                (Fact){v, v, v < 0 ? 1 : v});
}

static Ref computed(Fn *fn, Op op, DType t, Ref a, Ref b, int64_t imm) {
  return append(fn, (Ins){.op = (uint8_t)op, .type = (uint8_t)t, .a = {a, b},
                          .imm = imm},
                (Fact){INT64_MIN, INT64_MAX, 1});
}

static Ref start(Fn *fn, const SimPatch *e, DType t, Ref was) {
  switch ((SimFrom)e->from) {
    case FROM_SELF: break;
    case FROM_NUMBER: return number(fn, t, e->imm);
    case FROM_RANK: return computed(fn, OP_SREG, t, 0, 0, SR_CLUSTER_CTARANK);
    case FROM_LANE: return computed(fn, OP_SREG, t, 0, 0, SR_LANE);
    case FROM_WARP: return computed(fn, OP_SREG, t, 0, 0, SR_WARP);
    case FROM_REF: return e->mem;
  }
  return was;
}

static void change(Fn *fn, SimPatch *e) {
  Ins *i = &fn->ins.p[e->ref];
  Ref *at = e->operand < 3 ? &i->a[e->operand]
                           : &fn->ext.p[i->ext + e->operand - 3];
  DType t = ir_type(fn, *at);
  e->first = (Ref)fn->ins.n;
  Ref x = start(fn, e, t, *at);
  for (int k = 0; k < e->nstep; k++) {
    const SimCalc *s = &e->step[k];
    Ref y = s->with ? s->with : number(fn, t, s->imm);
    x = computed(fn, (Op)s->op, t, s->flip ? y : x, s->flip ? x : y, 0);
  }
  *at = x;
  e->last = (Ref)fn->ins.n;
}

// Returns a copy of n elements of `size` bytes, with room for `more` elements.
static void *copied(Ctx *cx, const void *p, size_t n, size_t more,
                    size_t size) {
  void *to = arena_zero(cx, &cx->scratch, (n + more + 1) * size);
  if (n) memcpy(to, p, n * size);
  return to;
}

const Launch *patch_launch(Ctx *cx, const Launch *l) {
  size_t n = 0;
  for (size_t k = 0; k < l->npatch; k++) n += l->patch[k].how == PATCH_VALUE;
  if (!n) return l;
  Fn *fn = NEW(cx, Fn, 1);
  SimPatch *patch = NEW(cx, SimPatch, l->npatch);
  Launch *out = NEW(cx, Launch, 1);
  *fn = *l->fn;
  fn->ins.p = copied(cx, fn->ins.p, fn->ins.n, n * MADE, sizeof *fn->ins.p);
  fn->fact.p = copied(cx, fn->fact.p, fn->fact.n, n * MADE,
                      sizeof *fn->fact.p);
  fn->ext.p = copied(cx, fn->ext.p, fn->ext.n, 0, sizeof *fn->ext.p);
  memcpy(patch, l->patch, l->npatch * sizeof *patch);
  for (size_t k = 0; k < l->npatch; k++)
    if (patch[k].how == PATCH_VALUE) change(fn, &patch[k]);
  *out = *l;
  out->fn = fn;
  out->patch = patch;
  return out;
}

// ---- instructions ----

static void become(SimIns *d, const SimPatch *e, Op op, uint32_t full) {
  Who who = op_who(op);
  *d = (SimIns){.op = (uint8_t)op, .src = d->src, .ref = d->ref, .stat = -1,
                .imm = e->imm, .flags = e->flags, .uniform = true,
                .mask = full, .put = e->count,
                .who = (uint8_t)(who == WHO_ROW ? WHO_WARP : who)};
}

uint32_t patch_before(const Launch *l, Ref r, Ref end, uint32_t full,
                      const void *const *x, SimIns *out) {
  uint32_t n = 0;
  for (size_t k = 0; k < l->npatch; k++) {
    const SimPatch *e = &l->patch[k];
    if (e->ref != r || e->how != PATCH_BEFORE) continue;
    Ref at = r < end ? r : r - 1;
    out[n] = (SimIns){.src = ir_get(l->fn, at)->src, .ref = at};
    become(&out[n], e, (Op)e->op, full);
    out[n].scope = e->scope;
    out[n].x = x[k];
    n++;
  }
  return n;
}

void patch_apply(const Launch *l, uint32_t full, const void *const *x,
                 SimIns *d) {
  for (size_t k = 0; k < l->npatch; k++) {
    const SimPatch *e = &l->patch[k];
    if (e->ref != d->ref) continue;
    if (e->how == PATCH_DROP) become(d, e, OP_GRIDLAUNCH, full);
    else if (e->how == PATCH_AS) {
      uint8_t scope = e->scope ? e->scope : d->scope;
      become(d, e, (Op)e->op, full);
      d->scope = scope;
      d->x = x[k];
    } else if (e->how == PATCH_SEM) {
      if (e->sem) d->sem = e->sem;
      if (e->scope) d->scope = e->scope;
    }
  }
}
// SPDX-License-Identifier: MIT
