// Checks the script's assertions: assumptions about values (cute.assume),
// coordinates that must be inside a tensor's shape, and layouts with traced
// extents. A violation is reported at the script line that made the assertion.
#include "watch/assertions.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "layout/algebra.h"
#include "sim/regs.h"

static int64_t value_at(SimWarp *w, const SimTerm *t, int l) {
  if (!t->slot) return t->konst;
  return index_at(w, t->slot, t->wide, t->uniform ? 0 : l);
}

static bool holds(SimWarp *w, const SimBounded *t, int l) {
  int64_t v = value_at(w, &t->value, l);
  if (v < t->lo || (t->div > 1 && v % t->div)) return false;
  return t->limit.slot ? v < value_at(w, &t->limit, l) : v <= t->hi;
}

static bool all_hold(SimWarp *w, const SimAssertion *c, int l) {
  for (int k = 0; k < c->n; k++)
    if (!holds(w, &c->part[k], l)) return false;
  return true;
}

static void tell_assumption(SimWarp *w, const SimIns *i, int l) {
  const SimBounded *t = ((const SimAssertion *)i->x)->part;
  SimFault *f = simreport_fault(w, SIM_TRAP, l, i->src, 0, -1, 0);
  if (!f) return;
  f->assumed.wrong = true;
  f->assumed.slice = ((const SimAssertion *)i->x)->slice;
  // If the thread index of a get_slice is wrong (slice), stop the run, so that
  // the lane's accesses cause no further reports.
  w->cluster->stop |= f->assumed.slice;
  f->assumed.value = value_at(w, &t->value, l);
  f->assumed.lo = t->lo;
  f->assumed.hi = t->hi;
  f->assumed.div = t->div;
}

static void tell_coordinate(SimWarp *w, const SimIns *i, int l) {
  const SimAssertion *c = i->x;
  SimFault *f = simreport_fault(w, SIM_OOB, l, i->src, 0, c->mem, -1);
  if (!f) return;
  f->access.write = c->write;
  f->r.modes = c->n < SIM_MODES ? c->n : SIM_MODES;
  for (int k = 0; k < f->r.modes; k++) {
    const SimBounded *t = &c->part[k];
    int64_t v = value_at(w, &t->value, l);
    // An assertion of a copy covers two elements, at coordinates v - lo and v.
    // Report the one that is out of range.
    f->r.coord[k] = v < t->lo ? v - t->lo : v;
    f->extent[k] = t->limit.slot ? value_at(w, &t->limit, l)
                     : t->hi == INT64_MAX ? -1 : t->hi + 1;
  }
}

// ---- layouts ----

// A context in which a layout is checked. It catches errors of the layout
// algebra.
typedef struct Try {
  jmp_buf env;
  ErrKind kind;
  char *text;
  size_t n;
} Try;

_Noreturn static void missed(Ctx *cx, ErrKind kind, const char *msg) {
  Try *t = cx->ud;
  t->kind = kind;
  snprintf(t->text, t->n, "%.*s", (int)strcspn(msg, "\n"), msg);
  longjmp(t->env, 1);
}

// Returns the numbers of assertion c: the shapes and strides of three layouts
// (see Claim in ir/fn.h). Traced numbers have the values of lane l. Returns
// NULL if one of the first two layouts has no elements.
static const Dim *words_at(Ctx *cx, SimWarp *w, const SimAssertion *c, int l) {
  Dim *word = NEW(cx, Dim, (size_t)c->n);
  for (int k = 0; k < c->n; k++) {
    const SimBounded *t = &c->part[k];
    int64_t v = value_at(w, &t->value, l);
    word[k].w = t->value.slot ? t->lo : v;
    if (t->value.slot) word[k] = traced_word(cx, word[k], v);
  }
  Layout part[3];
  traced_read(word, part);
  for (int k = 0; k < 2; k++)
    for (Tup s = part[k].shape; s < (Tup)part[k].stride; s++)
      if (dim_kind(*s) == DIM_INT && s->w < 1) return NULL;
  return word;
}

// Writes to `text` (n bytes) how the layout in assertion c differs from the
// correct layout. Returns false if the layout is correct, or if the correct
// layout is unknown.
static bool wrong_layout(SimWarp *w, const SimAssertion *c, int l, char *text,
                         size_t n) {
  Try t = {.text = text, .n = n};
  Ctx cx = {.fail = missed, .ud = &t};
  bool wrong;
  if (setjmp(t.env)) {
    wrong = t.kind == ERR_INADMISSIBLE;
  } else {
    Layout part[3];
    const Dim *word = words_at(&cx, w, c, l);
    if (word) traced_read(word, part);
    const char *why = word ? traced_differs(&cx, (TracedRule)c->rule, part[0],
                                            part[1], part[2]) : NULL;
    wrong = why != NULL;
    if (wrong) snprintf(text, n, "%s", why);
  }
  arena_free(&cx.scratch);
  return wrong;
}

static uint64_t values_hash(SimWarp *w, const SimAssertion *c, int l) {
  uint64_t h = HASH_INIT;
  for (int k = 0; k < c->n; k++) {
    if (!c->part[k].value.slot) continue;
    int64_t v = value_at(w, &c->part[k].value, l);
    h = base_hash(h, &v, sizeof v);
  }
  return h | 1;
}

static void check_layouts(SimWarp *w, const SimIns *i, int l) {
  const SimAssertion *c = i->x;
  char text[sizeof ((SimFault *)NULL)->layout];
  uint64_t h = values_hash(w, c, l);
  if (__atomic_load_n(c->good, __ATOMIC_RELAXED) == h) return;
  if (wrong_layout(w, c, l, text, sizeof text)) {
    SimFault *f = simreport_fault(w, SIM_LAYOUT, l, i->src, 0, -1, 0);
    if (f) memcpy(f->layout, text, sizeof text);
  } else {
    __atomic_store_n(c->good, h, __ATOMIC_RELAXED);
  }
}

void assertions_check(SimWarp *w, const SimIns *i) {
  const SimAssertion *c = i->x;
  if (c->note) {
    if (w->cluster->log) w->cluster->log->mark(w, c->note, c->begins);
    return;
  }
  for (uint32_t m = w->active; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (c->rule) {
      check_layouts(w, i, l);
      continue;
    }
    if (!value_at(w, &c->when, l) || all_hold(w, c, l)) continue;
    if (c->mem < 0) tell_assumption(w, i, l);
    else tell_coordinate(w, i, l);
    return;
  }
}
// SPDX-License-Identifier: MIT
