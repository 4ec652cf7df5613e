// The order of two accesses in the program. Which of them comes first in a run
// is chance; what is missing is a barrier on the way from one to the other: in
// a straight line, or through the end of a loop. A way is clear where no
// barrier stands on it; barriers of a branch that may be passed by, and waits
// that order some threads only, leave it open.
#include "sim/path.h"

#include "sim/roles.h"
#include "sim/tables.h"

enum { MOST = 64 };            // accesses of a line that are looked at

typedef enum Way { CLEAR, OPEN, SHUT, APART } Way;

typedef struct Lines {         // instructions of a line that do this
  uint32_t at[MOST];
  int n;
} Lines;

// ---- accesses ----

static bool is_memory(const SimMem *m, int32_t index) {
  return m && m->space != SP_RMEM && (index < 0 || m->index == index);
}

// Does i read, or write, that memory?
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

// Other names of one memory count where none of this name does it.
static void find(const SimProg *p, uint32_t src, bool write, int32_t mem,
                 Lines *out) {
  out->n = 0;
  for (uint32_t k = 0; k < p->nins && out->n < MOST; k++)
    if (p->ins[k].src == src && does(&p->ins[k], write, mem))
      out->at[out->n++] = k;
  if (!out->n && mem >= 0) find(p, src, write, -1, out);
}

// ---- ways ----

// Does i order all threads of a block (far: of a cluster; lanes: of a warp)
// (SHUT), or perhaps some (OPEN)?
static Way orders(const SimProg *p, const SimIns *i, const SimFault *f) {
  bool some = i->a || (i->put && (int64_t)i->put != p->nthread);
  if (i->op == OP_BAR) return f->race.far || some ? OPEN : SHUT;
  if (i->op == OP_CLUSTERWAIT) return SHUT;
  if (i->op == OP_SYNCWARP) return f->r.kind == SIM_WARPRACE ? SHUT : CLEAR;
  if (i->op == OP_LD || i->op == OP_ST || i->op == OP_ATOMIC)
    return i->sem ? OPEN : CLEAR;
  return i->op == OP_BARARRIVE || i->op == OP_MBARWAIT ||
         i->op == OP_MBARTRY || i->op == OP_WGWAIT ? OPEN : CLEAR;
}

static Way worse(Way a, Way b) { return a > b ? a : b; }

// Does a branch from head to end have something that orders threads?
static bool has_order(const SimProg *p, uint32_t head, uint32_t end,
                      const SimFault *f) {
  for (uint32_t k = head; k < end; k++)
    if (orders(p, &p->ins[k], f) != CLEAR) return true;
  return false;
}

// The way from behind `from` to `to`, which comes later, with no loop begun
// anew.
static Way straight(const SimProg *p, uint32_t from, uint32_t to,
                    const SimFault *f) {
  Way way = CLEAR;
  for (uint32_t k = from + 1; k < to; k++) {
    const SimIns *i = &p->ins[k];
    if (i->op == OP_ELSE) {    // the first half ends, the second is for others
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

// The best way from one of a to one of b behind it.
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
  return i->op == OP_FOR || i->op == OP_LOOP;
}

// The innermost loop through whose end a clear way leads from one of a to one
// of b, in its next step; NULL: there is none.
static const SimIns *clear_loop(const SimProg *p, const Lines *a,
                                const Lines *b, const SimFault *f) {
  const SimIns *found = NULL;
  for (uint32_t head = 0; head < p->nins; head++) {
    if (!is_loop(&p->ins[head])) continue;
    uint32_t end = p->ins[head].jump - 1;
    for (int k = 0; k < a->n; k++)
      for (int j = 0; j < b->n; j++) {
        uint32_t from = a->at[k], to = b->at[j];
        if (from < head || from > end || to < head || to > end) continue;
        if (straight(p, from, end, f) == CLEAR &&
            straight(p, head, to, f) == CLEAR)
          found = &p->ins[head];
      }
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
  t[0] = other % b[0];
  t[1] = other / b[0] % b[1];
  t[2] = other / b[0] / b[1];
  for (int k = 0; k < 3; k++) {
    cta[k] = r->block[k];
    r->block[k] = f->race.cta[k];
    f->race.cta[k] = cta[k];
  }
  if (f->race.how == CLASH_RAW) f->race.how = CLASH_WAR;
  else if (f->race.how == CLASH_WAR) f->race.how = CLASH_RAW;
}

// Would a barrier have to stand outside of a branch: one that only one of two
// accesses is in, or only some threads?
static bool is_outside(const SimProg *p, uint32_t a, uint32_t b) {
  for (uint32_t k = 0; k < a || k < b; k++) {
    if (p->ins[k].op != OP_IF) continue;
    uint32_t half = p->ins[k].jump, end = p->ins[half].jump;
    bool in = k < a && a < end, its = k < b && b < end;
    if (in != its || (in && (a < half) != (b < half)) ||
        (in && simroles_parts(p, &p->ins[k])))
      return true;
  }
  return false;
}

// Into f: there is a way from one of the accesses a to one of b, those of the
// other side if `turned`.
static void settle(const SimProg *p, SimFault *f, bool turned, SimWay way,
                   const SimIns *loop) {
  if (turned) turn(p, f);
  f->r.way = way;
  f->r.loop = loop ? loop->src : 0;
}

// A clear way in a straight line from one of a to one of b?
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

void simpath_turn(const SimProg *p, SimFault *f) {
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
  // A write and a read behind it are told where there are ways both ways.
  if (goes_on(p, f, a, b, war) ||
      (one_line && !waw && comes_back(p, f, a, b, war)) ||
      goes_on(p, f, b, a, !war))
    return;
  if (best(p, a, b, f) == OPEN || best(p, b, a, f) == OPEN) return;
  if (!comes_back(p, f, a, b, war)) comes_back(p, f, b, a, !war);
}
