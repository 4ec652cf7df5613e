// Divergence that branches alone do not cause. The lanes of a warp run
// together, branch by branch, until some of them wait for a flag, a phase or a
// lock that other lanes must provide. Then the warp splits into parts, each
// with its own program counter, open branches and loops, and values. The parts
// run alternately. They merge when they reach the same collective operation
// (sync_warp, a barrier, a shuffle).
//
// The SimWarp itself is the running part. The other parts are in the list
// w->split.part, longest waiting part first.
#include "sim/divergence.h"
#include "sim/barrier.h"
#include "sim/regs.h"

struct SimPart {
  SimPart *next;
  uint32_t here, active, pc, depth, src;
  SimState state;
  int mbar;
  bool polling, tainted, wraps;
  // whether the lanes of the part wait at a collective operation
  bool waits;
  SimFrame *frame;
  char *v;
  SimTaint *taint;
  uint32_t *wrapped;
  SimPoll poll;
};

static void part_free(SimPart *t) {
  if (!t) return;
  base_free(t->frame);
  base_free(t->v);
  base_free(t->taint);
  base_free(t->wrapped);
  base_free(t);
}

void divergence_reset(SimWarp *w) {
  while (w->split.part) {
    SimPart *t = w->split.part;
    w->split.part = t->next;
    part_free(t);
  }
}

#define SWAP(a, b, type) do { type t_ = a; a = b; b = t_; } while (0)

// Exchanges the running lanes of w with t, another part of the warp's lanes.
static void swap(SimWarp *w, SimPart *t) {
  SWAP(w->split.here, t->here, uint32_t);
  SWAP(w->active, t->active, uint32_t);
  SWAP(w->pc, t->pc, uint32_t);
  SWAP(w->depth, t->depth, uint32_t);
  SWAP(w->src, t->src, uint32_t);
  SWAP(w->state, t->state, SimState);
  SWAP(w->mbar, t->mbar, int);
  SWAP(w->polling, t->polling, bool);
  SWAP(w->taints.some, t->tainted, bool);
  SWAP(w->wraps.some, t->wraps, bool);
  SWAP(w->frame, t->frame, SimFrame *);
  SWAP(w->v, t->v, char *);
  SWAP(w->taints.value, t->taint, SimTaint *);
  SWAP(w->wraps.lanes, t->wrapped, uint32_t *);
  SWAP(w->poll, t->poll, SimPoll);
  t->waits = false;
  w->refused = false;
  w->split.waits = 0;
  w->cluster->calm.look |= w->poll.stuck;
}

static void append(SimWarp *w, SimPart *t) {
  SimPart **at = &w->split.part;
  while (*at) at = &(*at)->next;
  t->next = NULL;
  *at = t;
}

static SimPart *remove_part(SimWarp *w, SimPart *t) {
  SimPart **at = &w->split.part;
  while (*at != t) at = &(*at)->next;
  *at = t->next;
  return t;
}

// ---- splitting ----

static void *copy_of(const void *p, size_t n) {
  void *q = base_realloc(NULL, n);
  if (q && n) memcpy(q, p, n);
  return q;
}

static SimPart *part_of(const SimWarp *w) {
  const SimProg *p = w->cluster->prog;
  SimPart *t = base_realloc(NULL, sizeof *t);
  if (!t) return NULL;
  *t = (SimPart){.poll = w->poll, .active = w->active,
                 .here = w->active, .pc = w->pc, .depth = w->depth,
                 .src = w->src, .state = w->state, .mbar = w->mbar,
                 .polling = w->polling, .tainted = w->taints.some,
                 .wraps = w->wraps.some};
  t->frame = copy_of(w->frame, (p->depth + 1) * sizeof *t->frame);
  t->v = copy_of(w->v, p->value_bytes);
  t->taint = copy_of(w->taints.value, p->ntaint * sizeof *t->taint);
  t->wrapped = copy_of(w->wraps.lanes, p->wraps.n * sizeof *t->wrapped);
  if (t->frame && t->v && t->taint && t->wrapped) return t;
  part_free(t);
  return NULL;
}

static void keep(SimFrame *frame, uint32_t depth, uint32_t lanes) {
  for (uint32_t k = 0; k < depth; k++) {
    frame[k].mask &= lanes;
    frame[k].other &= lanes;
  }
}

// Makes the active lanes a separate part. Continues with those other lanes of
// the running part that wait at the end of their branches and loops. Returns
// false if there are no such lanes.
static bool part(SimWarp *w) {
  uint32_t rest = w->split.here & ~w->gone & ~w->active;
  if (!rest) return false;
  SimPart *t = part_of(w);
  if (!t) {
    w->cluster->oom = w->cluster->stop = true;
    return false;
  }
  keep(t->frame, t->depth, t->here);
  append(w, t);
  keep(w->frame, w->depth, rest);
  w->split.here = rest;
  w->active = 0;
  w->state = SW_RUN;
  w->polling = false;
  w->split.waits = 0;
  w->poll = (SimPoll){0};
  divergence_find(w);
  return true;
}

// ---- switching ----

// Switches to lanes that do not wait at a collective operation. Returns false
// if the warp has no such lanes.
static bool turn(SimWarp *w) {
  if (part(w)) return true;
  SimPart *t = w->split.part;
  while (t && t->waits) t = t->next;
  if (!t) return false;
  remove_part(w, t);
  swap(w, t);
  // these lanes continue at the instruction at which they stopped
  w->state = SW_RUN;
  append(w, t);
  return true;
}

void divergence_turn(SimWarp *w) {
  w->split.waits = 0;
  turn(w);
}

uint32_t divergence_parts(const SimWarp *w) {
  uint32_t n = 1;
  for (const SimPart *t = w->split.part; t; t = t->next) n++;
  return n;
}

SimWarp divergence_view(const SimWarp *w, uint32_t k) {
  SimWarp view = *w;
  view.split.part = NULL;
  if (!k) return view;
  const SimPart *t = w->split.part;
  while (--k) t = t->next;
  SimPart copy = *t;
  swap(&view, &copy);
  return view;
}

// If the running lanes of w wait, switches to a part that polls memory, because
// other warps may change that memory.
static void show(SimWarp *w) {
  for (SimPart *t = w->split.part; t && w->state != SW_RUN; t = t->next) {
    if (t->state != SW_RUN || t->waits) continue;
    swap(w, t);
    return;
  }
}

bool divergence_press(SimCluster *c) {
  uint64_t stamp = simmem_stamp(c);
  for (int k = 0; k < c->prog->nall; k++) {
    SimWarp *w = &c->warp[k];
    if (w->state == SW_DONE || w->state == SW_BARRIER) continue;
    if (w->split.stamp != stamp) w->split.tries = 0;
    w->split.stamp = stamp;
    if (w->split.tries > 2 * divergence_parts(w)) continue;
    w->split.tries++;
    if (turn(w)) return true;
  }
  for (int k = 0; k < c->prog->nall; k++) show(&c->warp[k]);
  return false;
}

bool divergence_ended(SimWarp *w) {
  if (!w->split.part) return false;
  w->gone |= w->split.here;
  SimPart *t = w->split.part;
  while (t->waits && t->next) t = t->next;
  remove_part(w, t);
  swap(w, t);
  part_free(t);
  w->state = SW_RUN;
  simbarrier_exited(w->cluster);
  return true;
}

// ---- merging ----

// Reports whether the lanes of part t wait at the instruction that w executes.
// Both must be in the same iteration of every loop around that instruction.
static bool is_here(const SimWarp *w, const SimPart *t) {
  const SimIns *prog = w->cluster->prog->ins;
  if (!t->waits || t->pc != w->pc - 1 || t->depth != w->depth) return false;
  for (uint32_t k = 0; k < w->depth; k++) {
    const SimIns *head = &prog[w->frame[k].head];
    if (t->frame[k].head != w->frame[k].head) return false;
    if (head->op == OP_FOR && head->uniform &&
        memcmp(w->v + head->d, t->v + head->d, head->wide ? 8 : 4) != 0)
      return false;
  }
  return true;
}

static void join_rows(SimWarp *w, const SimPart *t, const SimRows *r) {
  for (uint32_t k = 0; k < r->n; k++) {
    uint32_t at = r->at + k * (r->size ? r->size * LANES : 4);
    if (!r->size) {
      uint32_t *to = u32_at(w, at), from;
      memcpy(&from, t->v + at, sizeof from);
      *to = (*to & ~t->here) | (from & t->here);
      continue;
    }
    for (uint32_t m = t->here; m; m &= m - 1) {
      uint32_t l = at + (uint32_t)__builtin_ctz(m) * r->size;
      memcpy(w->v + l, t->v + l, r->size);
    }
  }
}

static void join_taint(SimWarp *w, const SimPart *t) {
  const SimProg *p = w->cluster->prog;
  if (!w->taints.some) memset(w->taints.value, 0, p->ntaint * sizeof(SimTaint));
  for (uint32_t k = 0; k < p->ntaint; k++) {
    SimTaint *to = &w->taints.value[k];
    uint32_t from = t->tainted ? t->taint[k].mask & t->here : 0;
    to->mask &= ~t->here;
    if (from && !to->mask) *to = t->taint[k], to->mask = 0;
    if (from) to->bits |= t->taint[k].bits;
    to->mask |= from;
  }
  w->taints.some = true;
}

static void join(SimWarp *w, SimPart *t) {
  const SimProg *p = w->cluster->prog;
  for (uint32_t k = 0; k < p->nrows; k++) join_rows(w, t, &p->rows[k]);
  if (w->taints.some || t->tainted) join_taint(w, t);
  for (uint32_t k = 0; k < p->wraps.n; k++)
    w->wraps.lanes[k] = (w->wraps.lanes[k] & ~t->here) |
                        (t->wrapped[k] & t->here);
  w->wraps.some |= t->wraps;
  for (uint32_t k = 0; k < w->depth; k++) {
    w->frame[k].mask |= t->frame[k].mask;
    w->frame[k].other |= t->frame[k].other;
  }
  w->split.here |= t->here;
  w->active |= t->active;
  part_free(remove_part(w, t));
}

static uint32_t named(SimWarp *w, const SimIns *i) {
  if (i->who != WHO_MASK) return w->valid;
  uint32_t all = 0;
  for (uint32_t m = w->active; m; m &= m - 1)
    all |= u32_at(w, i->mask)[__builtin_ctz(m)];
  return all & w->valid;
}

bool divergence_together(SimWarp *w, const SimIns *i) {
  for (SimPart *t = w->split.part, *next; t; t = next) {
    next = t->next;
    if (is_here(w, t)) join(w, t);
  }
  if (!(named(w, i) & ~w->gone & ~w->split.here)) return true;
  SimPart *t = w->split.part;
  while (t && t->waits) t = t->next;
  // No other lanes can run, so the missing lanes will never arrive. The caller
  // reports the fault.
  if (!t) return true;
  w->pc--;
  remove_part(w, t);
  swap(w, t);
  w->state = SW_RUN;
  t->waits = true;
  append(w, t);
  return false;
}

// ---- lanes that must act together ----

bool divergence_are(SimWarp *w, const SimIns *i, uint32_t want) {
  if (w->active == want) return true;
  uint32_t lack = want & ~w->active;
  SimFault *f = simreport_fault(w, SIM_DIVERGENT,
                                __builtin_ctz(lack ? lack : w->active),
                                i->src, 0, -1, 0);
  if (f) {
    f->lanes.here = w->active;
    f->lanes.named = want;
    f->lanes.gone = w->gone & want;
    f->lanes.there = w->valid;
    f->lanes.mask = i->who == WHO_MASK;
  }
  return false;
}

void divergence_groups(SimWarp *w, const SimIns *i, SimGroup each) {
  uint32_t here = w->active;
  const uint32_t *mask = u32_at(w, i->mask);
  for (uint32_t left = here; left; left &= ~w->active) {
    uint32_t m = mask[__builtin_ctz(left)];
    w->active = 0;
    for (int l = 0; l < LANES; l++)
      w->active |= (uint32_t)(mask[l] == m) << l;
    w->active &= left;
    divergence_are(w, i, m & w->valid);
    // only sync_warp, for which `each` is NULL, orders memory
    if (each) each(w, i);
    else w->cluster->hooks->meet(w, w->active);
  }
  w->active = here;
}

// Moves a warp that has no active lanes to the next instruction with active
// lanes. Leaves branches and loops in which no lane remains, and enters the
// second half of a branch.
void divergence_find(SimWarp *w) {
  const SimIns *prog = w->cluster->prog->ins;
  while (!w->active && w->depth) {
    const SimFrame *f = &w->frame[w->depth - 1];
    const SimIns *head = &prog[f->head];
    w->pc = head->jump;
    if (head->op == OP_IF) {
      // If there are lanes for the other half of the branch, they run next.
      // Otherwise the branch ends.
      if (f->other) return;
      if (prog[w->pc].op == OP_ELSE) w->pc = prog[w->pc].jump;
      w->pc++;
    }
    w->active = w->frame[--w->depth].mask;
  }
  if (!w->active) w->pc = w->cluster->prog->nins;
}
// SPDX-License-Identifier: MIT
