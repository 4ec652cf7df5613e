// What a script said of values (cute.assume), and coordinates, which are to lie
// in their tensor's shape: looked at where the script says it.
#include "sim/claim.h"

#include "sim/regs.h"
#include "sim/tape.h"

static int64_t value_at(SimWarp *w, const SimTerm *t, int l) {
  if (!t->slot) return t->konst;
  return index_at(w, t->slot, t->wide, t->uniform ? 0 : l);
}

static bool holds(SimWarp *w, const SimTold *t, int l) {
  int64_t v = value_at(w, &t->value, l);
  if (v < t->lo || (t->div > 1 && v % t->div)) return false;
  return t->limit.slot ? v < value_at(w, &t->limit, l) : v <= t->hi;
}

static bool all_hold(SimWarp *w, const SimClaim *c, int l) {
  for (int k = 0; k < c->n; k++)
    if (!holds(w, &c->part[k], l)) return false;
  return true;
}

static void tell_assumption(SimWarp *w, const SimIns *i, int l) {
  const SimTold *t = ((const SimClaim *)i->x)->part;
  SimFault *f = simreport_fault(w, SIM_TRAP, l, i->src, 0, -1, 0);
  if (!f) return;
  f->assumed.wrong = true;
  f->assumed.value = value_at(w, &t->value, l);
  f->assumed.lo = t->lo;
  f->assumed.hi = t->hi;
  f->assumed.div = t->div;
}

static void tell_coordinate(SimWarp *w, const SimIns *i, int l) {
  const SimClaim *c = i->x;
  SimFault *f = simreport_fault(w, SIM_OOB, l, i->src, 0, c->mem, -1);
  if (!f) return;
  f->access.write = c->write;
  f->r.modes = c->n < SIM_MODES ? c->n : SIM_MODES;
  for (int k = 0; k < f->r.modes; k++) {
    const SimTold *t = &c->part[k];
    int64_t v = value_at(w, &t->value, l);
    f->r.coord[k] = v < t->lo ? v - t->lo : v;  // the first one of a copy
    f->extent[k] = t->limit.slot ? value_at(w, &t->limit, l)
                     : t->hi == INT64_MAX ? -1 : t->hi + 1;
  }
}

void simclaim_check(SimWarp *w, const SimIns *i) {
  const SimClaim *c = i->x;
  if (c->note) {
    if (w->cluster->tape) simtape_mark(w, c->note, c->begins);
    return;
  }
  for (uint32_t m = w->active; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (!value_at(w, &c->when, l) || all_hold(w, c, l)) continue;
    if (c->mem < 0) tell_assumption(w, i, l);
    else tell_coordinate(w, i, l);
    return;
  }
}
