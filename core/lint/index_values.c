// Computes addresses and conditions in all threads of a given block, in a given
// iteration of a loop. Callers compare the elements that two iterations or two
// blocks access.
#include "lint/index_values.h"

#include <string.h>

#include "ir/eval.h"
#include "lint/thread_value.h"

IndexValues index_values_at(Ctx *cx, const Fn *fn, int budget) {
  IndexValues v = {.cx = cx, .fn = fn, .n = ir_threads(fn), .budget = budget};
  v.value = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *v.value);
  v.met = arena_zero(cx, &cx->scratch, fn->ins.n);
  return v;
}

void index_values_forget(IndexValues *v) {
  memset(v->met, 0, v->fn->ins.n);
}

// Computes the counter of loop r in each thread's last iteration.
static bool last_counter(IndexValues *v, Ref r, int64_t *out) {
  const Ins *i = ir_get(v->fn, r);
  const int64_t *first = index_values(v, i->a[0]);
  const int64_t *limit = index_values(v, i->a[1]);
  int64_t step = 0;
  if (!first || !limit || !ir_const(v->fn, i->a[2], &step) || !step)
    return false;
  for (int32_t t = 0; t < v->n; t++) {
    int64_t left = limit[t] - first[t];
    bool runs = step > 0 ? left > 0 : left < 0;
    out[t] = first[t] + (runs ? (left + (step > 0 ? -1 : 1)) / step * step : 0);
  }
  return true;
}

// Computes the counter of loop r in each thread, in the iteration that *v
// selects.
static bool counter(IndexValues *v, Ref r, int64_t *out) {
  if (v->last && r != v->loop) return last_counter(v, r, out);
  const Ins *i = ir_get(v->fn, r);
  const int64_t *first = index_values(v, i->a[0]);
  int64_t step = 0;
  if (!first || (r == v->loop && !ir_const(v->fn, i->a[2], &step)))
    return false;
  for (int32_t t = 0; t < v->n; t++) out[t] = first[t] + step * v->k;
  return true;
}

static bool compute(IndexValues *v, Ref r, int64_t *out) {
  const Ins *i = ir_get(v->fn, r);
  const int64_t *of[3] = {0};
  if (i->op == OP_FOR) return counter(v, r, out);
  bool block = i->op == OP_SREG && i->imm >= SR_CTAID_X &&
               i->imm <= SR_CTAID_Z;
  for (int32_t t = 0; block && t < v->n; t++)
    out[t] = v->block[i->imm - SR_CTAID_X];
  if (block) return true;
  if (!thread_value_has(v->fn, i)) return false;
  for (int k = 0; k < 3; k++)
    if (i->a[k] && !(of[k] = index_values(v, i->a[k]))) return false;
  for (int32_t t = 0; t < v->n; t++) {
    uint64_t bits[3] = {0}, value;
    for (int k = 0; k < 3; k++)
      if (of[k]) bits[k] = (uint64_t)of[k][t];
    if (!thread_value(v->fn, i, t, bits, &value)) return false;
    out[t] = eval_widen((DType)i->type, value);
  }
  return true;
}

const int64_t *index_values(IndexValues *v, Ref r) {
  enum { KNOWN = 1, UNKNOWN = 2, DEPTH = 200 };
  if (v->met[r]) return v->met[r] == KNOWN ? v->value[r] : NULL;
  if (v->budget < v->n || v->depth == DEPTH) return NULL;
  v->budget -= v->n;
  v->met[r] = UNKNOWN;
  if (!v->value[r])
    v->value[r] = arena_zero(v->cx, &v->cx->scratch,
                             (size_t)v->n * sizeof(int64_t));
  v->depth++;
  if (compute(v, r, v->value[r])) v->met[r] = KNOWN;
  v->depth--;
  return v->met[r] == KNOWN ? v->value[r] : NULL;
}
// SPDX-License-Identifier: MIT
