// Systematic schedules. A schedule begins with required steps and continues by
// fixed rules. A warp runs as long as it can. Then the other warps run, in the
// order of their numbers. When no warp can run, an operation of an agent (such
// as TMA) completes. Polls of memory come last.
//
// If a poll fails and returns its warp to the same state, the poll is not a
// step: the warp sleeps until memory changes. livelock.c predicts the outcome
// of polls, so failing polls are not executed. The last required step is an
// exception. It is executed even if it is a failing poll. Its read may race
// with an earlier step, and the poll might pass if it came before that step.
#include "explore/interleave.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "sim/addressed.h"
#include "sim/async.h"
#include "watch/livelock.h"

#include <string.h>

enum { NONE = UINT32_MAX };

typedef struct Turn {
  // the actor of the step: a warp, numbered among all warps, or an agent's
  // operation, as an agent_id
  uint64_t who;
  // src: line of the step. row: index of the step's vector clock in SimCauses.
  // NONE: this entry is not a step, or the clock was dropped.
  uint32_t src, row;
  int warp;  // number of the warp among all warps; -1: the step is an agent's
  uint32_t seq;
  // step of an agent: the mbarrier that received the completion
  int mbar;
  uint32_t phase;
  // The next instruction of the warp. If it is a poll, `pc` and `hash` identify
  // the state of the warp before the poll.
  uint32_t pc;
  // `hash` is a hash of the warp's state before the step. `stamp` is the number
  // of changes of memory before the step.
  uint64_t hash, stamp;
} Turn;

typedef struct Actor {     // the scheduler's data about a warp
  // number of memory changes when the warp began to sleep; 0: it is awake
  uint64_t asleep;
  // number of operations of agents that the warp started
  uint32_t started;
} Actor;

typedef struct SimTurns {
  const SimProg *p;
  const SimOpts *o;
  SimCauses *causes;
  uint32_t units;          // number of clusters that are scheduled together
  uint64_t first, count;
  Turn *turn;
  // wanted: index of the last required step
  uint32_t n, max, wanted;
  Actor *actor;
  char *room;              // scratch for trial runs (livelock.h)
  size_t at;  // index in o->turn of the next required step
  int last;  // warp of the last step; -1: the last step was an agent's
  uint64_t switches, began;
  // flags: the flags (SIM_FULL ...) of this run. always: the flags of every run
  // of the kernel. src: the source line that causes `always`.
  uint32_t flags, always, src;
  // clusters: whether clusters are interchangeable. warps: whether the warps of
  // a block are interchangeable.
  bool clusters, warps;
  // rank: if clusters or warps are interchangeable, the number of each warp in
  // the order of first steps. name: the inverse of rank.
  uint32_t *rank, *name;
  bool oom;
} SimTurns;

// Returns a number that identifies an asynchronous operation. It combines the
// number of the warp that started the operation with the operation's number
// among those of this warp.
static uint64_t agent_id(uint64_t warp, uint32_t number) {
  return warp | (uint64_t)number << 32;
}

// Reports whether clusters are interchangeable, because no cluster reads its
// index. Two runs are treated as equal if one becomes the other by a
// permutation of interchangeable clusters.
static bool alike_clusters(const SimProg *p) {
  for (uint32_t k = 0; k < p->ninit; k++) {
    const SimInit *i = &p->init[k];
    SReg r = i->kind == OP_SREG ? (SReg)i->imm : SR_COUNT;
    if ((r >= SR_CTAID_X && r <= SR_CTAID_Z) || r == SR_SMID ||
        (r >= SR_CLUSTERID_X && r <= SR_CLUSTERID_Z))
      return false;
  }
  return p->common != NULL;
}

// Reports whether i computes the lane number from the thread index.
static bool is_lane(const Fn *fn, const Ins *i) {
  int64_t n;
  if (!i->a[1] || !ir_const(fn, i->a[1], &n)) return false;
  return (i->op == OP_AND && n == 31) || (i->op == OP_MOD && n == 32);
}

// Reports whether the warps of a block are interchangeable: the kernel reads
// lane numbers but no warp numbers, and the kernel has no warpgroup
// instructions.
static bool alike_warps(const SimProg *p) {
  const Fn *fn = p->fn;
  const int32_t *n = p->launch->block;
  if (n[0] % LANES || n[1] > 1 || n[2] > 1 || fn->claim.n) return false;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_WGMMA || i->op == OP_SETMAXNREG) return false;
    if (i->op == OP_SREG && i->imm == SR_WARP) return false;
    Operand o;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      Ref use[2] = {o.ref, o.kind == OPERAND_MEM ? o.off : 0};
      for (int k = 0; k < 2; k++) {
        const Ins *x = ir_get(fn, use[k]);
        bool tid = use[k] && x->op == OP_SREG && x->imm == SR_TID_X;
        if (tid && !is_lane(fn, i)) return false;
      }
    }
  }
  return true;
}

// Returns flags such as SIM_CLOCK: the reasons why the kernel's results may
// depend on more than the schedule. Sets *src to the source line of a reason.
static uint32_t undecided(const SimProg *p, uint32_t *src) {
  uint32_t flags = 0;
  for (uint32_t k = 0; k < p->ninit; k++) {
    const SimInit *n = &p->init[k];
    if (n->kind != OP_SREG || n->imm != SR_SMID) continue;
    flags |= SIM_CLOCK;
    *src = n->src;
  }
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    const SimSide *s = i->x;
    bool clock = (i->op == OP_INTRIN || i->op == OP_ASK) &&
                 intrin_is_clock(intrin_id(i->imm));
    bool sum = i->op == OP_ATOMIC && i->alone &&
               dtype_is_float((DType)s->type);
    if (!flags && (clock || sum)) *src = i->src;
    flags |= (clock ? SIM_CLOCK : 0u) | (sum ? SIM_SUMS : 0u);
  }
  return flags;
}

static void stop(SimTurns *t) {
  if (!t) return;
  conflicts_free(t->causes);
  base_free(t->actor);
  base_free(t->turn);
  base_free(t->rank);
  base_free(t->room);
  base_free(t);
}

static SimTurns *start(const SimProg *p, const SimOpts *o) {
  enum { MOST = 4096 };
  SimTurns *t = base_realloc(NULL, sizeof *t);
  if (!t) return NULL;
  uint64_t units = p->common ? p->nunit : 1;
  *t = (SimTurns){.p = p, .o = o};
  if (units > MOST || units * (uint64_t)(p->nall + p->nmbar) > MOST) {
    t->always = SIM_MANY;
    return t;
  }
  t->units = (uint32_t)units;
  t->always = undecided(p, &t->src);
  size_t n = t->units * (size_t)p->nall * sizeof *t->actor;
  t->actor = base_realloc(NULL, n);
  t->causes = conflicts_new(p, t->units);
  t->clusters = alike_clusters(p);
  t->warps = alike_warps(p);
  size_t ranks = t->units * (size_t)(2 * p->nall + p->ncta + 1);
  t->rank = base_realloc(NULL, 2 * ranks * sizeof *t->rank);
  if (t->rank) t->name = t->rank + ranks;
  t->room = base_realloc(NULL, livelock_room(p) + 1);
  if (t->actor && t->causes && t->rank && t->room) return t;
  stop(t);
  return NULL;
}

// ---- warps ----

static Actor *actor_of(const SimTurns *t, const SimWarp *w) {
  size_t unit = (size_t)(w->cluster->index - t->first);
  return &t->actor[unit * (size_t)t->p->nall + (size_t)w->id];
}

static int number_of(const SimTurns *t, const SimWarp *w) {
  return (int)(actor_of(t, w) - t->actor);
}

static uint64_t stamp_of(const SimCluster *c) { return simmem_stamp(c) + 1; }

static bool can_go(const SimTurns *t, const SimWarp *w) {
  return w->state == SW_RUN &&
         actor_of(t, w)->asleep != stamp_of(w->cluster);
}

// Reports whether instruction i reads memory or the phase of an mbarrier. If it
// is executed again, it may return another value.
static bool asks(const SimIns *i) {
  return i->op == OP_LD || i->op == OP_MBARTRY || i->op == OP_ATOMIC;
}

// Runs all warps up to their next scheduling steps.
static void settle(SimCluster *c) {
  for (bool more = true; more && !c->stop;) {
    more = false;
    for (int k = 0; k < c->prog->nall && !c->stop; k++) {
      SimWarp *w = &c->warp[k];
      if (w->state != SW_RUN || simexec_is_turn(addressed_next(w))) continue;
      simexec_between(w);
      more = true;
    }
  }
}

// ---- a step ----

static Turn *new_turn(SimTurns *t) {
  if (t->n == t->max) {
    uint32_t cap = t->max ? t->max * 2 : 256;
    Turn *p = base_realloc(t->turn, cap * sizeof *p);
    if (!p) {
      t->oom = true;
      return NULL;
    }
    t->turn = p;
    t->max = cap;
  }
  return &t->turn[t->n++];
}

// Predicts the next poll of w. If the poll fails, returns the number of steps
// after which w is again in its current state. Returns 0 if the poll passes or
// the number is unknown.
static int fails(const SimTurns *t, SimWarp *w) {
  SimAsk a;
  bool asked = simmem_ask(w, addressed_next(w), &a);
  return asked ? livelock_fails(w, &a, t->room) : 0;
}

static bool is_at(SimWarp *w, uint32_t pc, uint64_t hash) {
  return hash && w->state == SW_RUN && w->pc == pc && livelock_state(w) == hash;
}

// Reports whether w, after step k, is again in the state that it had before an
// earlier step, and would read the same values again. In this case, the steps
// since then had no effect. Considers earlier steps only back to the last
// required step.
static bool is_back(const SimTurns *t, SimWarp *w, uint32_t k) {
  enum { FAR = 64 };
  int g = t->turn[k].warp;
  if (t->wanted == NONE && t->at == t->o->nturn) return false;
  for (uint32_t n = 0; n <= k && n < FAR; n++) {
    const Turn *u = &t->turn[k - n];
    if (u->warp != g) continue;
    if (!u->hash) return false;
    if (k - n > t->wanted || !is_at(w, u->pc, u->hash)) continue;
    return u->stamp == stamp_of(w->cluster) ||
           (livelock_only_reads(w) && conflicts_still(t->causes, g, k - n));
  }
  return false;
}

// Why a step is executed.
// - ASKED: it is a required step.
// - LAST: it is the last required step.
// - FREE: after all required steps, the fixed rules select it.
typedef enum Reason { FREE, ASKED, LAST } Reason;

// Reports whether a failing poll of w could pass if it came before one of the
// earlier steps. Also returns true if this is unknown.
static bool could_pass(SimWarp *w, char *room) {
  SimAsk a, old;
  if (!simmem_ask(w, &w->cluster->prog->ins[w->pc], &a) ||
      livelock_fails(w, &a, room) != 1 || !conflicts_plain(w, &a))
    return true;
  old = a;
  uint64_t found;
  for (uint32_t turn = UINT32_MAX;
       (turn = conflicts_earlier(w, &a, turn, &found)) != UINT32_MAX;) {
    for (uint32_t m = w->active; m; m &= m - 1)
      old.found[__builtin_ctz(m)] = found;
    if (livelock_fails(w, &old, room) != 1) return true;
  }
  return false;
}

static void run_warp(SimTurns *t, SimWarp *w, Reason why) {
  SimCluster *c = w->cluster;
  Actor *a = actor_of(t, w);
  const SimIns *i = addressed_next(w);
  uint32_t pc = w->pc, k = t->n;
  uint64_t stamp = stamp_of(c), hash = asks(i) ? livelock_state(w) : 0;
  int turns = hash ? fails(t, w) : 0;
  a->asleep = turns && why == FREE ? stamp : 0;
  Turn *u = a->asleep ? NULL : new_turn(t);
  if (!u) return;
  int g = number_of(t, w);
  *u = (Turn){.who = (uint64_t)g, .src = i->src, .warp = g, .mbar = -1,
              .pc = pc, .hash = hash, .stamp = stamp};
  conflicts_begin(t->causes, k, g, NONE);
  u->seq = conflicts_seq(t->causes);
  bool vain = w->vain = turns == 1;
  simexec_turn(w);
  w->vain = false;
  if (vain) w->pc = pc;
  u->row = conflicts_end(t->causes);
  bool blocked = w->state == SW_MBAR;
  settle(c);
  bool back = vain || (stamp_of(c) == stamp && is_at(w, pc, hash));
  if (why == LAST && blocked) t->flags |= SIM_MISSED;
  if ((why == LAST && back) || is_back(t, w, k)) t->flags |= SIM_IDLE;
  if (back) a->asleep = stamp;
  if (!blocked && !back) return;
  u->row = NONE;
  conflicts_void(t->causes, true);
  if (why != LAST || blocked || !could_pass(w, t->room))
    conflicts_void(t->causes, false);
}

static void run_agent(SimTurns *t, SimCluster *c, size_t k) {
  const SimAsync *a = c->agents.p[k];
  uint32_t n = t->n;
  Turn *u = new_turn(t);
  if (!u) return;
  uint64_t g = (uint64_t)number_of(t, a->w);
  *u = (Turn){.who = agent_id(g, a->number), .src = a->i->src, .warp = -1,
              .row = NONE};
  conflicts_begin(t->causes, n, -1, a->cause);
  simasync_land(c, k);
  conflicts_where(t->causes, &u->mbar, &u->phase);
  u->row = conflicts_end(t->causes);
  settle(c);
}

// ---- choice of the next step ----

static SimCluster *cluster_of(const SimTurns *t, SimCluster **c, int n,
                              uint64_t warp) {
  for (int k = 0; k < n; k++)
    if (c[k]->index - t->first == warp / (uint64_t)t->p->nall) return c[k];
  return NULL;
}

// Finds operation `number` of those that w started and that complete on an
// mbarrier. Returns its index in agents.p. Returns -1 if there is no such
// operation, or if other operations must complete first.
static int64_t agent_of(const SimCluster *c, const SimWarp *w,
                        uint32_t number) {
  for (size_t k = 0; k < c->agents.n; k++)
    if (c->agents.p[k]->w == w && !c->agents.p[k]->grouped &&
        c->agents.p[k]->number == number)
      return simasync_first(c, k) == k ? (int64_t)k : -1;
  return -1;
}

// Executes the next required step. Returns false if that is impossible.
static bool run_wanted(SimTurns *t, SimCluster **c, int n) {
  uint64_t who = t->o->turn[t->at++];
  uint64_t g = (uint32_t)who;
  bool last = t->at == t->o->nturn;
  SimCluster *its = cluster_of(t, c, n, g);
  if (!its) return false;
  if (last) t->wanted = t->n;
  SimWarp *w = &its->warp[g % (uint64_t)t->p->nall];
  if (!(who >> 32)) {
    if (w->state != SW_RUN) return false;
    if (t->last >= 0 && t->last != (int)g) t->switches++;
    t->last = (int)g;
    run_warp(t, w, last ? LAST : ASKED);
    return true;
  }
  int64_t k = agent_of(its, w, (uint32_t)(who >> 32));
  if (k < 0) return false;
  run_agent(t, its, (size_t)k);
  return true;
}

// Finds the oldest asynchronous operation of n clusters that completes on an
// mbarrier. Returns the operation's cluster and sets *at to its index. Returns
// NULL if there is no such operation.
static SimCluster *oldest(SimCluster **c, int n, size_t *at) {
  SimCluster *its = NULL;
  for (int k = 0; k < n; k++)
    for (size_t j = 0; j < c[k]->agents.n; j++) {
      const SimAsync *a = c[k]->agents.p[j];
      if (a->grouped || (its && its->agents.p[*at]->began < a->began))
        continue;
      its = c[k];
      *at = j;
    }
  return its;
}

// Reports whether w recently executed the last required step. In this case,
// polls of other warps run before w continues. Such a poll may be an atomic and
// change the memory that w reads next.
static bool is_held(const SimTurns *t, const SimWarp *w) {
  enum { LONG = 64 };
  return t->wanted < t->n && t->n - t->wanted < LONG &&
         t->turn[t->wanted].warp == number_of(t, w);
}

// Returns the first warp that can run, counted from warp `after` on. If `late`
// is true, considers only warps whose next step is a poll. Otherwise considers
// only the other warps.
static SimWarp *first(const SimTurns *t, SimCluster **c, int n, int after,
                      bool late) {
  SimWarp *best = NULL;
  uint64_t least = 0, all = (uint64_t)t->units * (uint64_t)t->p->nall;
  for (int k = 0; k < n; k++)
    for (int j = 0; j < t->p->nall; j++) {
      SimWarp *w = &c[k]->warp[j];
      if (!can_go(t, w) || asks(addressed_next(w)) != late) continue;
      uint64_t far = ((uint64_t)number_of(t, w) + all -
                      (uint64_t)(after + late)) % all;
      if (is_held(t, w)) far = all;
      if (best && far >= least) continue;
      best = w;
      least = far;
    }
  return best;
}

static bool run_any(SimTurns *t, SimCluster **c, int n) {
  size_t at = 0;
  int after = t->last < 0 ? 0 : t->last;
  SimWarp *w = first(t, c, n, after, false);
  SimCluster *its = w ? NULL : oldest(c, n, &at);
  if (its) {
    run_agent(t, its, simasync_first(its, at));
    return true;
  }
  if (!w) w = first(t, c, n, after, true);
  if (!w) return false;
  t->last = number_of(t, w);
  run_warp(t, w, FREE);
  return true;
}

static bool is_over(const SimCluster *c) {
  if (c->stop) return true;
  for (int k = 0; k < c->prog->nall; k++)
    if (c->warp[k].state != SW_DONE) return false;
  return true;
}

static int next(SimTurns *t, SimCluster **c, int n) {
  simexec_tick(c[0], t->n ? t->turn[t->n - 1].src : 0);
  for (int k = 0; k < n; k++)
    if (is_over(c[k])) return k;
  while (t->at < t->o->nturn)
    if (run_wanted(t, c, n)) return -1;
    else if (t->at == t->o->nturn) t->flags |= SIM_MISSED;
  if (run_any(t, c, n)) return t->oom ? TURNS_NONE : -1;
  t->flags |= SIM_APART;
  return TURNS_NONE;
}

static void join(SimTurns *t, SimCluster *c) {
  c->steps = NULL;
  c->turns = NULL;
  c->causes = NULL;
  if (t->always & SIM_MANY) return;
  if (!t->p->common || !c->index) {
    size_t n = t->units * (size_t)t->p->nall;
    bool its = t->p->common || t->o->unit < 0 || t->o->unit == c->index;
    t->first = c->index;
    t->count += t->n;
    t->n = 0;
    t->at = its ? 0 : t->o->nturn;
    t->last = -1;
    t->wanted = NONE;
    t->switches = t->flags = 0;
    memset(t->actor, 0, n * sizeof *t->actor);
    conflicts_reset(t->causes, t->first);
  }
  c->steps = &turns_steps;
  c->turns = t;
  c->causes = t->causes;
  settle(c);
}

// Records lane l's access as a part of the current step.
static void note(const Access *x, int l, int how) {
  SimPlaces s = simmem_places(x, l);
  for (int k = 0; k < s.n; k++) {
    uint64_t was = 0;
    memcpy(&was, s.p + k * s.size, s.size < 8 ? (size_t)s.size : 8);
    conflicts_access(x->w, s.key + (uint64_t)k, how, was);
  }
}

static void access(const Access *x, uint32_t mask) {
  int how = !x->write ? CAUSE_READ
            : x->i->alone ? CAUSE_ADD + (int)x->i->imm : CAUSE_WRITE;
  for (; mask; mask &= mask - 1) note(x, __builtin_ctz(mask), how);
}

static void started(SimAsync *a) {
  SimTurns *t = a->w->cluster->turns;
  a->number = ++actor_of(t, a->w)->started;
  a->began = ++t->began;
  a->cause = conflicts_start(a->w);
}

static void stray(SimCluster *c) { c->turns->flags |= SIM_TRIES; }

// ---- results ----

static uint64_t count(const SimTurns *t) { return t->count + t->n; }

// Builds the schedule s in which step p->second comes before step p->first. It
// consists of the steps before `first`, the steps between the two that do not
// happen after `first`, and `second`.
static bool swapped(const SimTurns *t, const SimPair *p, SimSwap *s) {
  const Turn *a = &t->turn[p->first], *b = &t->turn[p->second];
  const SimCause by = {p->first, a->warp, a->seq};
  s->src = a->src;
  s->src2 = b->src;
  s->turn = base_realloc(NULL, (p->second + 1) * sizeof *s->turn);
  if (!s->turn) return false;
  for (uint32_t k = 0; k < p->first; k++)
    if (t->turn[k].row != NONE) s->turn[s->nturn++] = t->turn[k].who;
  for (uint32_t k = p->first + 1; k < p->second; k++) {
    const Turn *u = &t->turn[k];
    if (u->row != NONE &&
        !conflicts_after(t->causes, u->row, &by, a->mbar, a->phase))
      s->turn[s->nturn++] = u->who;
  }
  s->turn[s->nturn++] = b->who;
  return true;
}

static bool add_swaps(const SimTurns *t, SimOrders *r) {
  enum { MOST_WORDS = 1 << 24 };
  size_t n, words = 0;
  const SimPair *p = conflicts_pairs(t->causes, &n);
  r->swap = base_realloc(NULL, n * sizeof *r->swap + 1);
  if (!r->swap) return false;
  for (size_t k = 0; k < n; k++) {
    SimSwap *s = &r->swap[r->nswap];
    *s = (SimSwap){0};
    if (t->turn[p[k].first].row == NONE) continue;
    if (r->flags & SIM_IDLE && p[k].second != t->wanted) continue;
    if (words > MOST_WORDS || !swapped(t, &p[k], s)) {
      r->flags |= SIM_FULL;
      return true;
    }
    words += s->nturn;
    r->nswap++;
  }
  return true;
}

static void add_turns(const SimTurns *t, SimOrders *r) {
  r->turn = base_realloc(NULL, t->n * sizeof *r->turn + 1);
  r->line = base_realloc(NULL, t->n * sizeof *r->line + 1);
  for (uint32_t k = 0; r->turn && r->line && k < t->n; k++) {
    r->turn[k] = t->turn[k].who;
    r->line[k] = t->turn[k].src;
    r->nturn++;
  }
}

static uint64_t mix(uint64_t h) {
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
  return h ^ h >> 27;
}

// Numbers interchangeable clusters, and interchangeable warps of each block, in
// the order of their first steps. Other clusters and warps keep their numbers.
static void rank_all(SimTurns *t) {
  uint32_t nall = (uint32_t)t->p->nall, nwarp = (uint32_t)t->p->nwarp;
  uint32_t all = t->units * nall;
  uint32_t *unit = t->rank + all, *came = unit + t->units, units = 0;
  memset(t->rank, 0xff, (all + t->units) * sizeof *t->rank);
  memset(came, 0, all / nwarp * sizeof *came);
  // Warps that executed no step get the highest numbers.
  for (uint32_t k = 0; k < t->n + all; k++) {
    const Turn *u = k < t->n ? &t->turn[k] : NULL;
    uint32_t g = u ? (uint32_t)u->who : k - t->n, at = g / nall;
    if (u && u->row == NONE) continue;
    if (unit[at] == NONE) unit[at] = t->clusters ? units++ : at;
    if (t->rank[g] == NONE)
      t->rank[g] = t->warps ? came[g / nwarp]++ : g % nwarp;
  }
  for (uint32_t g = 0; g < all; g++) {
    t->rank[g] += unit[g / nall] * nall + g % nall / nwarp * nwarp;
    t->name[t->rank[g]] = g;
  }
}

static uint64_t called(const SimTurns *t, uint64_t who) {
  return who - (uint32_t)who + t->rank[(uint32_t)who];
}

// Returns a hash that is equal for schedules that differ only in the order of
// commuting steps, or by a permutation of interchangeable warps or clusters.
static uint64_t hash_of(SimTurns *t) {
  uint64_t h = 0;
  rank_all(t);
  for (uint32_t k = 0; k < t->n; k++)
    if (t->turn[k].row != NONE)
      h += mix(called(t, t->turn[k].who) * 0x9e3779b97f4a7c15ull ^
               conflicts_hash(t->causes, t->turn[k].row, t->name));
  return h;
}

static SimOrders *orders(SimTurns *t) {
  SimOrders r = {.cluster = t->first, .count = t->n,
                 .flags = t->flags | t->always, .src = t->src,
                 .switches = t->switches};
  size_t n = 0;
  if (t->o->all && (uint64_t)t->o->unit != t->first) return NULL;
  if (!(t->always & SIM_MANY)) {
    conflicts_pairs(t->causes, &n);
    if (conflicts_full(t->causes)) r.flags |= SIM_FULL;
    int64_t k = conflicts_lanes(t->causes);
    if (k >= 0) r.flags |= SIM_LANES, r.src = t->turn[k].src;
  }
  if (!n && !r.flags && t->o->unit < 0 && !t->p->common) return NULL;
  SimOrders *s = base_realloc(NULL, sizeof *s);
  if (!s) return NULL;
  if (n && !add_swaps(t, &r)) r.flags |= SIM_FULL;
  if (!(t->always & SIM_MANY)) r.hash = hash_of(t);
  if (t->o->turn) add_turns(t, &r);
  *s = r;
  return s;
}

const SimSteps turns_steps = {
  .start = start, .stop = stop, .join = join, .next = next, .orders = orders,
  .count = count,
  .access = access, .give = conflicts_give, .take = conflicts_take,
  .forget = conflicts_forget, .meet = conflicts_meet,
  .arrive = conflicts_arrive, .expect = conflicts_expect,
  .look = conflicts_look, .phase = conflicts_phase,
  .started = started, .stray = stray,
};
// SPDX-License-Identifier: MIT
