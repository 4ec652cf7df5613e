// Finds the path in the program between the two accesses of a race, which may
// run in either order. The missing barrier belongs on the path from one access
// to the other: in a straight line, or through the back edge of a loop. A path
// is clear if it contains no barrier. It is open if it contains a barrier in a
// branch that may be skipped, or a wait that orders only some threads.
#include "watch/path.h"

#include "decode/fragments.h"
#include "sim/machine.h"
#include "ir/operands.h"
#include "watch/warp_roles.h"

enum { MOST = 64 };  // maximum number of accesses of a line that are examined

typedef enum Way { CLEAR, OPEN, SHUT, APART } Way;

// the instructions of a source line that access one memory object
typedef struct Lines {
  uint32_t at[MOST];
  int n;
} Lines;

// ---- accesses ----

static bool is_memory(const SimMem *m, int32_t index) {
  return m && !sim_in_registers(m) && (index < 0 || m->index == index);
}

// Reports whether i reads memory object `mem` or, if `write` is set, writes to
// `mem`. mem = -1: any object.
static bool does(const SimIns *i, bool write, int32_t mem) {
  const SimSide *s = i->x;
  const SimCopy *c = i->x;
  const SimMatrix *m = i->x;
  if (i->op == OP_LD) return !write && is_memory(s->mem, mem);
  if (i->op == OP_ST) return write && is_memory(s->mem, mem);
  if (i->op == OP_ATOMIC) return is_memory(s->mem, mem);
  if (i->op == OP_MATRIX)
    return m->store == write && is_memory(m->smem.mem, mem);
  return (i->op == OP_COPY || i->op == OP_CPASYNC) &&
         is_memory(write ? c->dst.mem : c->src.mem, mem);
}

// Finds the instructions of line src that access memory object `mem`. If there
// are none, finds the accesses of the line to any object, because another
// object may be an alias of `mem`.
static void find(const SimProg *p, uint32_t src, bool write, int32_t mem,
                 Lines *out) {
  out->n = 0;
  for (uint32_t k = 0; k < p->nins && out->n < MOST; k++)
    if (p->ins[k].src == src && does(&p->ins[k], write, mem))
      out->at[out->n++] = k;
  if (!out->n && mem >= 0) find(p, src, write, -1, out);
}

// ---- paths ----

// Classifies instruction i as synchronization: SHUT if it orders all threads of
// the block, OPEN if it orders some of them, CLEAR if it orders none. For a
// race with another CTA, SHUT means that i orders all threads of the cluster.
// For a race inside a warp, SHUT means that i orders the warp's lanes.
static Way orders(const SimProg *p, const SimIns *i, const SimFault *f) {
  bool some = i->a || (i->put && (int64_t)i->put != p->nthread);
  if (i->op == OP_BAR) return f->race.far || some ? OPEN : SHUT;
  if (i->op == OP_CLUSTERWAIT) return SHUT;
  if (i->op == OP_SYNCWARP) return f->r.kind == SIM_WARPRACE ? SHUT : CLEAR;
  if (op_flag_kind((Op)i->op) == FLAGS_HINTS)
    return i->sem ? OPEN : CLEAR;
  bool waits = operand_has((Op)i->op, ROLE_PARITY);
  return waits || i->op == OP_BARARRIVE || i->op == OP_WGWAIT ? OPEN : CLEAR;
}

static Way worse(Way a, Way b) { return a > b ? a : b; }

// Reports whether the branch from instruction head to instruction end contains
// synchronization.
static bool has_order(const SimProg *p, uint32_t head, uint32_t end,
                      const SimFault *f) {
  for (uint32_t k = head; k < end; k++)
    if (orders(p, &p->ins[k], f) != CLEAR) return true;
  return false;
}

// Classifies the path from instruction `from` to the later instruction `to` by
// its synchronization (CLEAR, OPEN, SHUT). Ignores back edges of loops. Returns
// APART if no thread executes both.
static Way straight(const SimProg *p, uint32_t from, uint32_t to,
                    const SimFault *f) {
  Way way = CLEAR;
  for (uint32_t k = from + 1; k < to; k++) {
    const SimIns *i = &p->ins[k];
    // skip the ELSE branch; other threads execute it
    if (i->op == OP_ELSE) {
      if (to < i->jump) return APART;
      k = i->jump;
    } else if (i->op == OP_IF) {
      uint32_t half = i->jump, end = p->ins[half].jump;
      if (half < to && to < end) k = half;
      if (to < end) continue;
      if (has_order(p, k, end, f)) way = worse(way, OPEN);
      k = end;
    } else {
      way = worse(way, orders(p, i, f));
    }
  }
  return way;
}

// Examines all paths from an instruction of `a` to a later instruction of `b`.
// Returns the class of the path with the least synchronization.
static Way best(const SimProg *p, const Lines *a, const Lines *b,
                const SimFault *f) {
  Way way = APART;
  for (int k = 0; k < a->n && way; k++)
    for (int j = 0; j < b->n && way; j++) {
      if (a->at[k] >= b->at[j]) continue;
      Way its = straight(p, a->at[k], b->at[j], f);
      if (its < way) way = its;
    }
  return way;
}

static bool is_loop(const SimIns *i) {
  return op_loops((Op)i->op);
}

// Reports whether the loop from head to end has a path without synchronization
// from an access of `a` to the loop's end. With `back`, examines the paths from
// the loop's head to an access of `a` instead.
static bool is_clear(const SimProg *p, const Lines *a, uint32_t head,
                     uint32_t end, bool back, const SimFault *f) {
  for (int k = 0; k < a->n; k++) {
    uint32_t at = a->at[k];
    if (at >= head && at <= end &&
        straight(p, back ? head : at, back ? at : end, f) == CLEAR)
      return true;
  }
  return false;
}

// Returns the innermost loop that has a path without synchronization through
// its back edge: from an instruction of `a` to an instruction of `b` in the
// next iteration. Returns NULL if there is none.
static const SimIns *clear_loop(const SimProg *p, const Lines *a,
                                const Lines *b, const SimFault *f) {
  const SimIns *found = NULL;
  for (uint32_t head = 0; head < p->nins; head++) {
    if (!is_loop(&p->ins[head])) continue;
    uint32_t end = p->ins[head].jump - 1;
    if (is_clear(p, a, head, end, false, f) &&
        is_clear(p, b, head, end, true, f))
      found = &p->ins[head];
  }
  return found;
}

// ---- the race ----

static void turn(const SimProg *p, SimFault *f) {
  const int32_t *b = p->launch->block;
  SimReport *r = &f->r;
  uint32_t src = r->src;
  int32_t *t = r->thread, other = r->other;
  int32_t cta[3];
  r->src = r->src2;
  r->src2 = src;
  r->other = (t[2] * b[1] + t[1]) * b[0] + t[0];
  simreport_thread(p, other, t);
  for (int k = 0; k < 3; k++) {
    cta[k] = r->block[k];
    r->block[k] = f->race.cta[k];
    f->race.cta[k] = cta[k];
  }
  if (f->race.how == CLASH_RAW) f->race.how = CLASH_WAR;
  else if (f->race.how == CLASH_WAR) f->race.how = CLASH_RAW;
}

// Reports whether a barrier between accesses a and b must be outside of a
// branch. This is the case if a branch contains only one of the accesses, has
// them in different halves, or is taken only by some threads.
static bool is_outside(const SimProg *p, uint32_t a, uint32_t b) {
  for (uint32_t k = 0; k < a || k < b; k++) {
    if (p->ins[k].op != OP_IF) continue;
    uint32_t half = p->ins[k].jump, end = p->ins[half].jump;
    bool in = k < a && a < end, its = k < b && b < end;
    if (in != its || (in && (a < half) != (b < half)) ||
        (in && warp_roles_parts(p, &p->ins[k])))
      return true;
  }
  return false;
}

// Records in f the path between the two accesses of the race. With `turned`,
// exchanges the accesses first.
static void settle(const SimProg *p, SimFault *f, bool turned, SimWay way,
                   const SimIns *loop) {
  if (turned) turn(p, f);
  f->r.way = way;
  f->r.loop = loop ? loop->src : 0;
}

// If a path without barriers and back edges leads from an instruction of `a` to
// an instruction of `b`, records the path in f and returns true. Otherwise
// returns false.
static bool goes_on(const SimProg *p, SimFault *f, const Lines *a,
                    const Lines *b, bool turned) {
  if (best(p, a, b, f) != CLEAR) return false;
  settle(p, f, turned, b->at[0] < a->at[0] ? WAY_AGAIN : WAY_STRAIGHT,
         clear_loop(p, b, a, f));
  return true;
}

static bool comes_back(const SimProg *p, SimFault *f, const Lines *a,
                       const Lines *b, bool turned) {
  const SimIns *loop = clear_loop(p, a, b, f);
  if (loop) settle(p, f, turned, WAY_LOOP, loop);
  return loop;
}

void path_turn(const SimProg *p, SimFault *f) {
  if ((f->r.kind != SIM_RACE && f->r.kind != SIM_WARPRACE) || f->r.lack ||
      f->race.agent || f->race.proxy || f->race.flying || f->r.other < 0)
    return;
  bool raw = f->race.how == CLASH_RAW, waw = f->race.how == CLASH_WAW;
  Lines mine, its;
  find(p, f->r.src, !raw, f->r.mem, &mine);
  find(p, f->r.src2, raw || waw, f->r.mem, &its);
  if (!mine.n || !its.n) return;
  f->r.outside = is_outside(p, mine.at[0], its.at[0]);
  bool war = f->race.how == CLASH_WAR, one_line = f->r.src == f->r.src2;
  const Lines *a = war ? &mine : &its, *b = war ? &its : &mine;
  // If there are paths in both directions, prefer the path from a write to a
  // later read.
  if (goes_on(p, f, a, b, war) ||
      (one_line && !waw && comes_back(p, f, a, b, war)) ||
      goes_on(p, f, b, a, !war))
    return;
  if (best(p, a, b, f) == OPEN || best(p, b, a, f) == OPEN) return;
  if (!comes_back(p, f, a, b, war)) comes_back(p, f, b, a, !war);
}
// SPDX-License-Identifier: MIT
