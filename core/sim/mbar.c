// mbarriers. A phase completes when all expected arrivals and bytes have come.
// Threads that wait for the phase acquire what the arriving threads released,
// and the asynchronous writes whose bytes the phase counted. In hb_cluster.c,
// each mbarrier is an actor (an entry of the vector clocks) whose epochs are
// its phases.
//
// mbarrier.init creates an mbarrier at an address of shared memory. The
// mbarrier's state is a SimMbar, which this address identifies.
#include "ir/intrin.h"
#include "sim/async.h"
#include "sim/mbar.h"
#include "sim/regs.h"

// maximum number of arrivals, and maximum magnitude of the byte count
enum { MAX_COUNT = (1 << 20) - 1 };

// ---- lookup ----

static bool no_memory(SimCluster *c) {
  c->oom = c->stop = true;
  return false;
}

static int index_of(const SimCluster *c, const SimMbar *b) {
  return (int)(b - c->mbars.p);
}

static int actor_of(const SimCluster *c, const SimMbar *b) {
  return actors_first(&c->prog->actors, ACTOR_MBAR) + index_of(c, b);
}

static bool make_table(SimCluster *c) {
  const SimProg *p = c->prog;
  size_t n = (size_t)p->ncta * (size_t)p->smem_bytes / 8 + 1;
  size_t m = (size_t)p->nmbar, each = (size_t)actors_clocked(&p->actors);
  if (c->mbars.p) return true;
  if (!c->mbars.at) c->mbars.at = base_realloc(NULL, n * sizeof *c->mbars.at);
  if (!c->mbars.at) return no_memory(c);
  memset(c->mbars.at, 0, n * sizeof *c->mbars.at);
  c->mbars.clocks = base_realloc(c->mbars.clocks,
                               PASTS * m * each * sizeof *c->mbars.clocks);
  if (!c->mbars.clocks) return no_memory(c);
  size_t each_warp = m * (size_t)p->nall;
  if (!c->mbars.came)
    c->mbars.came = base_realloc(NULL, 2 * each_warp * sizeof *c->mbars.came);
  if (!c->mbars.uses)
    c->mbars.uses = base_realloc(NULL, each_warp * sizeof *c->mbars.uses);
  if (!c->mbars.passed)
    c->mbars.passed = base_realloc(NULL, each_warp * sizeof *c->mbars.passed);
  if (!c->mbars.came || !c->mbars.uses || !c->mbars.passed) return no_memory(c);
  c->mbars.p = base_realloc(NULL, m * sizeof *c->mbars.p);
  if (!c->mbars.p) return no_memory(c);
  memset(c->mbars.p, 0, m * sizeof *c->mbars.p);
  size_t waits = m * (size_t)p->nall * sizeof *c->mbars.waits;
  c->mbars.waits = base_realloc(NULL, waits);
  if (!c->mbars.waits) return no_memory(c);
  memset(c->mbars.waits, 0, waits);
  for (size_t k = 0; k < m; k++)
    for (size_t q = 0; q < PASTS; q++)
      c->mbars.p[k].past[q].vc = c->mbars.clocks + (PASTS * k + q) * each;
  return true;
}

void simmbar_reset(SimCluster *c) {
  for (int k = 0; k < c->mbars.n; k++) c->mbars.at[c->mbars.p[k].at / 8] = 0;
  c->mbars.n = 0;
}

void simmbar_free(SimCluster *c) {
  for (int k = 0; c->mbars.p && k < c->prog->nmbar; k++)
    for (int q = 0; q < PASTS; q++) base_free(c->mbars.p[k].past[q].row);
  base_free(c->mbars.p);
  base_free(c->mbars.at);
  base_free(c->mbars.came);
  base_free(c->mbars.waits);
  base_free(c->mbars.uses);
  base_free(c->mbars.passed);
  base_free(c->mbars.clocks);
}

// Reports whether mbarriers a and b are probably stages of one ring: they are
// in the same memory object and CTA, and one line initialized them. (A script
// may put several rings into one object, and PTX often has one object for all.)
bool simmbar_ring(const SimCluster *c, const SimMbar *a,
                       const SimMbar *b) {
  int64_t size = c->prog->smem_bytes;
  return a->mem == b->mem && a->src == b->src && a->at / size == b->at / size;
}

// Reports whether no warp has passed a wait at mbarrier b.
static bool is_unwatched(const SimCluster *c, const SimMbar *b) {
  for (int k = 0; k < c->prog->nall; k++)
    if (*simmbar_waits(c, k, b) != b->born) return false;
  return true;
}

// Returns an mbarrier of b's ring that w seems to have skipped, or NULL. This
// is an mbarrier that w never used and at which no warp has waited, although w
// waited several times at b. (A correct warp visits all stages before it waits
// again at b. It also uses both rings of a pipeline, which one line
// initializes.) With `used`, the returned mbarrier must be in use.
const SimMbar *simmbar_skipped(const SimWarp *w, const SimMbar *b, bool used) {
  const SimCluster *c = w->cluster;
  uint32_t stuck = w->state == SW_MBAR && w->mbar == index_of(c, b);
  if (*simmbar_waits(c, w->id, b) + stuck < b->born + 2) return NULL;
  for (int k = 0; k < c->mbars.n; k++) {
    const SimMbar *m = &c->mbars.p[k];
    if (m != b && simmbar_ring(c, m, b) && !m->use[w->id].clk &&
        (!used || m->begun || m->phase > m->born) && is_unwatched(c, m))
      return m;
  }
  return NULL;
}

bool simmbar_stays(const SimWarp *w, bool used) {
  const SimCluster *c = w->cluster;
  for (int k = 0; k < c->mbars.n; k++)
    if (simmbar_skipped(w, &c->mbars.p[k], used)) return true;
  return false;
}

// ---- faults ----

static SimFault *fault(SimWarp *w, const SimIns *i, int l, uint32_t src2,
                       const SimMem *m, int64_t off, SimWrong how) {
  SimFault *f = simreport_fault(w, SIM_MBARRIER, l, i->src, src2, m->index,
                                simprog_bit(m, off) / m->own);
  if (f) f->mbar.how = how;
  // Stop the run, because later results would be meaningless.
  w->cluster->stop = true;
  return f;
}

// Fills in a fault: an operation makes n arrivals, too many for b's phase.
static void over(SimFault *f, const SimMbar *b, int64_t n) {
  f->mbar.how = MBAR_OVER;
  f->mbar.n = b->expected;
  f->mbar.came = n;
  f->mbar.missing = b->missing;
  f->mbar.bytes = b->bytes;
}

// ---- phases ----

static void hand_on(SimCluster *c, SimPast *open, SimPast *done) {
  SimPast was = *done;
  *done = *open;
  *open = was;
  c->hooks->forget(c, open);
}

static size_t came_bytes(const SimCluster *c) {
  return (size_t)c->prog->nall * sizeof *c->mbars.came;
}

static void next_came(SimCluster *c, SimMbar *b) {
  uint32_t *old = b->came[1];
  b->came[1] = b->came[0];
  b->came[0] = old;
  memset(old, 0, came_bytes(c));
  b->fed[1] = b->fed[0];
  b->fed[0] = b->bytes != 0;
}

// Finds a wait for the previous phase that does not happen before the end of
// the current phase, and records it in b->missed. In another schedule, the
// current phase could end before this wait, which would then wait for a later
// phase.
static void note_missed(SimCluster *c, SimMbar *b) {
  const SimProg *p = c->prog;
  b->missed = NULL;
  int turn = actors_first(&p->actors, ACTOR_TURN);
  for (int k = 0; k < p->nall && !b->missed; k++) {
    struct SimPassed *d = &b->passed[k];
    if (!d->lanes || d->phase != b->phase ||
        c->hooks->holds(p, &b->past[OPEN], turn + k, d->clk))
      continue;
    b->missed = d;
    b->misser = k;
  }
}

static void end_phase(SimCluster *c, SimMbar *b) {
  if (!c->steps && !c->prog->polls) note_missed(c, b);
  hand_on(c, &b->past[OPEN], &b->past[DONE]);
  if (c->prog->ncta > 1) hand_on(c, &b->past[FAR_OPEN], &b->past[FAR_DONE]);
  if (c->steps) c->steps->phase(c, index_of(c, b));
  next_came(c, b);
  b->phase++;
  b->missing = b->expected;
  b->had = b->sum;
  b->sum = 0;
  b->begun = false;
  b->past[DONE].vc[actor_of(c, b)] = b->phase;
  b->past[DONE].vc[simmbar_twin(c->prog, actor_of(c, b))] = b->phase;
  c->calm.vain = 0;
  c->moved++;
  for (int k = 0; k < c->prog->nall; k++) {
    SimWarp *w = &c->warp[k];
    if (w->state == SW_MBAR && w->mbar == b - c->mbars.p) w->state = SW_RUN;
  }
}

static void look(SimCluster *c, SimMbar *b) {
  if (!b->missing && !b->bytes) end_phase(c, b);
}

void simmbar_complete(SimCluster *c, SimMbar *b, uint32_t bytes) {
  if (c->steps) c->steps->arrive(c, index_of(c, b), b->phase);
  b->fed[0] |= bytes > 0;
  b->bytes -= bytes;
  b->sum += bytes;
  b->begun = true;
  look(c, b);
}

void simmbar_turned(SimCluster *c, SimMbar *b, const uint32_t *turns) {
  uint32_t *to = simmbar_turns(c->prog, b->past[OPEN].vc);
  for (int k = 0; k < actors_of(&c->prog->actors, ACTOR_TURN); k++)
    if (turns[k] > to[k]) to[k] = turns[k];
}

uint32_t simmbar_epoch(const SimMbar *b) { return b->phase + 1; }
int simmbar_actor(const SimCluster *c, const SimMbar *b) {
  return actor_of(c, b);
}

// ---- operations of lanes ----

// A group of lanes that use the same mbarrier with the same argument.
typedef struct Group {
  SimMbar *b;
  uint32_t mask;
  // the argument: number of arrivals, number of bytes, a parity or a token
  int64_t amount;
  bool far;         // whether the mbarrier belongs to another CTA
} Group;

// The execution of an mbarrier instruction by a warp.
typedef struct Visit {
  Access x;
  int64_t off[LANES];
  // left: lanes with a valid address that have not executed the instruction
  // yet. clk: epoch of the instruction.
  uint32_t left, clk;
} Visit;

static void visit(Visit *v, SimWarp *w, const SimIns *i) {
  const SimSide *s = i->x;
  v->x = (Access){.w = w, .i = i, .m = s->mem, .off = v->off, .bytes = 8,
                  .write = true, .barrier = true};
  if (i->put)
    for (int l = 0; l < LANES; l++) v->off[l] = s->konst + w->ring % i->put;
  else
    simmem_offsets(w, s, v->off);
  bool one = i->put && (i->op == OP_MBARTX ||
                        (i->op == OP_MBARARRIVE && i->imm));
  v->left = simmem_check(&v->x,
                         one ? w->active & (~w->active + 1) : w->active);
  v->clk = w->clk;
}

static int64_t amount(const SimWarp *w, const SimIns *i, int l) {
  if (i->put && i->op == OP_MBARTX) return i->imm;
  if (i->put && i->op == OP_MBARWAIT) return (w->ring / i->put + i->imm) & 1;
  if (i->put) return 1;
  const int32_t *p = (const int32_t *)(const void *)(w->v + i->c);
  if (i->wide) return ((const int64_t *)(const void *)(w->v + i->c))[l];
  return i->c ? p[l] : 1;
}

// Returns the line that will initialize mbarriers of object m. Returns 0 if
// there is no such line, or if an mbarrier of m is already initialized.
static uint32_t later_init(const SimCluster *c, const SimMem *m) {
  for (int k = 0; k < c->mbars.n; k++)
    if (c->mbars.p[k].mem == m->index) return 0;
  for (uint32_t k = 0; k < c->prog->nins; k++) {
    const SimIns *i = &c->prog->ins[k];
    if (i->op == OP_MBARINIT && ((const SimSide *)i->x)->mem->index == m->index)
      return i->src;
  }
  return 0;
}

// Checks that b is initialized, and that its initialization happens before lane
// l. Otherwise reports a fault, returns false. b is element `off` of object m.
static bool is_known(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                     int64_t off, const SimMbar *b) {
  uint32_t init = b ? 0 : later_init(w->cluster, m);
  if (init) {
    fault(w, i, l, init, m, off, MBAR_UNORDERED);
    return false;
  }
  if (!b || b->gone) {
    fault(w, i, l, b ? b->gone : 0, m, off, b ? MBAR_GONE : MBAR_NONE);
    return false;
  }
  if (b->shared && w->round.met >= b->shared) return true;
  if (w->cluster->hooks->before(w, l, b->warp, b->lanes, b->clk)) return true;
  fault(w, i, l, b->src, m, off, MBAR_UNORDERED);
  return false;
}

SimMbar *simmbar_for(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                     uint32_t addr, bool proxy) {
  int64_t size = w->cluster->prog->smem_bytes;
  int64_t off = ((int64_t)addr % size - m->base) * 8 / m->bits;
  SimMbar *b = simmem_mbar(w->cluster, addr);
  if (!is_known(w, i, l, m, off, b)) return NULL;
  if (proxy && !b->fenced) {
    fault(w, i, l, b->src, m, off, MBAR_UNFENCED);
    return NULL;
  }
  return b;
}

void simmbar_land(SimMbar *b, const SimWarp *w, int lane, const SimIns *i,
                  bool moved) {
  b->landed = b->phase + 1;
  b->land = i;
  b->lander = w->id;
  b->left = w->clk;
  b->lane = lane;
  b->moved = moved;
}

// Takes from v->left the lanes that use the same mbarrier with the same
// argument as the lowest lane, and puts them into *g. Returns false if no lanes
// are left or a fault was reported.
static bool next_group(Visit *v, Group *g) {
  SimWarp *w = v->x.w;
  if (!v->left || w->cluster->stop) return false;
  int first = __builtin_ctz(v->left);
  uint32_t addr = simmem_address(&v->x, first);
  *g = (Group){.b = simmem_mbar(w->cluster, addr),
               .amount = amount(w, v->x.i, first)};
  g->far = addr / w->cluster->prog->smem_bytes !=
           w->home / w->cluster->prog->smem_bytes;
  for (uint32_t m = v->left; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (simmem_address(&v->x, l) == addr && amount(w, v->x.i, l) == g->amount)
      g->mask |= 1u << l;
  }
  v->left &= ~g->mask;
  for (uint32_t m = g->mask; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (!is_known(w, v->x.i, l, v->x.m, v->off[l], g->b)) return false;
  }
  if (v->x.i->op == OP_MBARINVAL) return true;
  struct SimUse *u = &g->b->use[w->id];
  uint32_t lanes = u->clk == v->clk ? u->lanes : 0;
  *u = (struct SimUse){v->clk, lanes | g->mask, v->x.i->src, u->waited};
  return true;
}

// Returns why lane l cannot initialize an mbarrier for n arrivals, or
// MBAR_NONE. `old` is the previous mbarrier at the same address, or NULL.
static SimWrong unmakeable(SimWarp *w, int l, const SimMbar *old, int64_t n) {
  if (old && !old->gone) return MBAR_TWICE;
  if (n < 1 || n > MAX_COUNT) return MBAR_COUNT;
  if (!old && w->cluster->mbars.n == w->cluster->prog->nmbar) return MBAR_MANY;
  if (old && !w->cluster->hooks->before(w, l, old->warp, old->lanes, old->clk))
    return MBAR_AGAIN;
  return MBAR_NONE;
}

// Initializes an mbarrier at addr. If `b`, an earlier mbarrier at this address,
// is not NULL, the phases continue b's numbers, beginning with an even number.
static SimMbar *make(SimCluster *c, SimMbar *b, uint32_t addr) {
  uint32_t phase = b ? (b->phase + 2) & ~1u : 0;
  SimPast past[PASTS];
  if (!b) {
    b = &c->mbars.p[c->mbars.n++];
    c->mbars.at[addr / 8] = (uint16_t)c->mbars.n;
  }
  for (int q = 0; q < PASTS; q++) c->hooks->forget(c, &b->past[q]);
  memcpy(past, b->past, sizeof past);
  size_t all = (size_t)c->prog->nall;
  uint32_t *came = c->mbars.came + 2 * all * (size_t)index_of(c, b);
  memset(came, 0, 2 * came_bytes(c));
  struct SimUse *use = c->mbars.uses + all * (size_t)index_of(c, b);
  memset(use, 0, all * sizeof *use);
  struct SimPassed *passed = c->mbars.passed + all * (size_t)index_of(c, b);
  memset(passed, 0, all * sizeof *passed);
  *b = (SimMbar){.at = addr, .phase = phase, .born = phase,
                 .came = {came, came + all}, .use = use, .passed = passed};
  for (int k = 0; k < c->prog->nall; k++) *simmbar_waits(c, k, b) = phase;
  memcpy(b->past, past, sizeof past);
  return b;
}

void simmbar_init(SimWarp *w, const SimIns *i) {
  SimCluster *c = w->cluster;
  Visit v;
  visit(&v, w, i);
  for (; v.left && !c->stop && make_table(c); v.left &= v.left - 1) {
    int l = __builtin_ctz(v.left);
    uint32_t addr = simmem_address(&v.x, l);
    int64_t n = amount(w, i, l);
    SimMbar *b = simmem_mbar(c, addr);
    SimWrong how = unmakeable(w, l, b, n);
    if (how != MBAR_NONE) {
      uint32_t other = !b ? 0 : b->gone ? b->gone : b->src;
      SimFault *f = fault(w, i, l, other, v.x.m, v.off[l], how);
      if (f) f->mbar.n = how == MBAR_MANY ? c->prog->nmbar : n;
      return;
    }
    b = make(c, b, addr);
    b->mem = v.x.m->index;
    b->element = simprog_bit(v.x.m, v.off[l]) / v.x.m->own;
    b->expected = b->missing = (uint32_t)n;
    b->warp = w->id, b->lanes = 1u << l, b->clk = w->clk;
    b->src = i->src;
  }
}

// Reports whether a thread waits for b, or bytes are expected or in flight.
static bool is_busy(const SimCluster *c, const SimMbar *b) {
  for (int k = 0; k < c->prog->nall; k++)
    if (c->warp[k].state == SW_MBAR && &c->mbars.p[c->warp[k].mbar] == b)
      return true;
  for (size_t k = 0; k < c->agents.n; k++)
    if (c->agents.p[k]->mbar == b) return true;
  return b->bytes != 0;
}

// Returns the line of a use of b that does not happen before lane l, or 0.
static uint32_t used_still(SimWarp *w, int l, const SimMbar *b) {
  for (int u = 0; u < w->cluster->prog->nall; u++) {
    const struct SimUse *x = &b->use[u];
    if (x->clk && !w->cluster->hooks->before(w, l, u, x->lanes, x->clk))
      return x->src;
  }
  return 0;
}

void simmbar_inval(SimWarp *w, const SimIns *i) {
  Visit v;
  Group g;
  visit(&v, w, i);
  while (next_group(&v, &g)) {
    SimMbar *b = g.b;
    int l = __builtin_ctz(g.mask);
    // Only one lane may invalidate an mbarrier.
    if (g.mask & (g.mask - 1)) {
      fault(w, i, l, i->src, v.x.m, v.off[l], MBAR_GONE);
      return;
    }
    if (is_busy(w->cluster, b)) {
      fault(w, i, l, b->src, v.x.m, v.off[l], MBAR_BUSY);
      return;
    }
    uint32_t use = used_still(w, l, b);
    if (use) {
      fault(w, i, l, use, v.x.m, v.off[l], MBAR_STILL);
      return;
    }
    b->gone = i->src;
    b->warp = w->id, b->lanes = g.mask, b->clk = w->clk;
  }
}

// Records that the active lanes of w executed a fence.mbarrier_init or a fence
// of the async proxy. After the next barrier, other threads may use the
// mbarriers that these lanes initialized.
void simmbar_fence(SimWarp *w) {
  SimCluster *c = w->cluster;
  for (int k = 0; k < c->mbars.n; k++)
    if (c->mbars.p[k].warp == w->id && c->mbars.p[k].lanes & w->active)
      c->mbars.p[k].fenced = true;
}

// Records that round `met` of the cluster barrier is complete. Threads of all
// CTAs may now use the mbarriers for which a fence was executed before.
void simmbar_share(SimCluster *c, uint32_t met) {
  for (int k = 0; k < c->mbars.n; k++)
    if (c->mbars.p[k].fenced && !c->mbars.p[k].shared)
      c->mbars.p[k].shared = met;
}

// Adds the accesses that an arrival releases to b's phase: everything that
// happens before the arriving lanes. There are two exceptions. A relaxed
// arrival releases only turn epochs (mbar.h), which order no memory. An arrival
// with CTA scope at another CTA's mbarrier releases only asynchronous accesses.
static void release(SimWarp *w, const SimIns *i, const Group *g) {
  SimCluster *c = w->cluster;
  if (i->sem == SEM_RELAXED) {
    uint32_t *vc = g->b->past[OPEN].vc;
    c->hooks->give_turns(w, g->mask, simmbar_turns(c->prog, vc));
    return;
  }
  if (!g->far) {
    c->hooks->give(w, g->mask, &g->b->past[OPEN], GIVE_ALL);
    return;
  }
  c->hooks->give(w, g->mask, &g->b->past[OPEN], GIVE_AGENTS);
  if (i->scope >= SCOPE_CLUSTER)
    c->hooks->give(w, g->mask, &g->b->past[FAR_OPEN], GIVE_ALL);
}

// Reports whether all arrivals in b's previous phase happen before lane l. If
// so, the phase is known to be complete at lane l.
static bool knows_came(SimWarp *w, int l, const SimMbar *b) {
  // Expected bytes may complete the phase after its last arrival.
  if (b->fed[1]) return false;
  const SimProg *p = w->cluster->prog;
  int turn = actors_first(&p->actors, ACTOR_TURN);
  for (int u = 0; u < p->nall; u++)
    if (u != w->id &&
        !w->cluster->hooks->before(w, l, turn + u, 1, b->came[1][u]))
      return false;
  return true;
}

// Checks that an arrival happens after the previous phase ends. Otherwise, in
// another schedule, that phase could count it in place of another arrival.
static bool is_next(SimWarp *w, const SimIns *i, const Visit *v,
                    const Group *g) {
  SimMbar *b = g->b;
  SimCluster *c = w->cluster;
  int actor = simmbar_twin(c->prog, actor_of(c, b));
  for (uint32_t m = b->phase > b->born ? g->mask : 0; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (c->hooks->before(w, l, actor, 1, b->phase) || knows_came(w, l, b))
      continue;
    SimFault *f = fault(w, i, l, b->src, v->x.m, v->off[l], MBAR_EARLY);
    if (!f) return false;
    f->mbar.n = b->expected;
    f->mbar.came = b->phase - 1;
    if (simmbar_stays(w, true)) f->r.lack = LACK_STAY;
    return false;
  }
  b->came[0][w->id] = v->clk;
  b->last = i->src;
  b->comer = w->id;
  b->at_lane = __builtin_ctz(g->mask);
  return true;
}

// Returns the token of an arrival at b now: b's index + 1, and b's phase.
static int64_t token_of(const SimCluster *c, const SimMbar *b) {
  return (int64_t)(index_of(c, b) + 1) << 32 | b->phase;
}

static int64_t phase_of(int64_t token) { return token & UINT32_MAX; }

// Counts `each` arrivals for every lane of g, all of them in the same phase.
static void arrive(Visit *v, const Group *g, int64_t each) {
  SimCluster *c = v->x.w->cluster;
  SimMbar *b = g->b;
  int64_t n = each * __builtin_popcount(g->mask);
  if (n <= b->missing && !is_next(v->x.w, v->x.i, v, g)) return;
  if (c->steps) c->steps->arrive(c, index_of(c, b), b->phase);
  if (g->far)
    simmbar_land(b, v->x.w, __builtin_ctz(g->mask), v->x.i, false);
  release(v->x.w, v->x.i, g);
  if (c->log) c->log->give(v->x.w, &b->past[OPEN].gate, g->far);
  if (n <= b->missing) {
    b->missing -= (uint32_t)n;
    look(c, b);
    return;
  }
  int l = __builtin_ctz(g->mask);
  SimFault *f = fault(v->x.w, v->x.i, l, b->src, v->x.m, v->off[l], MBAR_OVER);
  if (!f) return;
  over(f, b, n);
  f->mbar.far = c->warp[b->comer].cta != v->x.w->cta;
}

void simmbar_arrive(SimWarp *w, const SimIns *i) {
  Visit v;
  Group g;
  visit(&v, w, i);
  while (next_group(&v, &g)) {
    for (uint32_t m = i->op == OP_MBARTOKEN ? g.mask : 0; m; m &= m - 1)
      set_lane(w, i->d, true, __builtin_ctz(m),
               (uint64_t)token_of(w->cluster, g.b));
    arrive(&v, &g, g.amount);
  }
  w->ring += i->put > 0;
}

void simmbar_expect(SimWarp *w, const SimIns *i) {
  Visit v;
  Group g;
  visit(&v, w, i);
  while (next_group(&v, &g)) {
    SimMbar *b = g.b;
    int l = __builtin_ctz(g.mask);
    SimCluster *c = w->cluster;
    if (c->steps) c->steps->expect(c, index_of(c, b), b->phase);
    b->bytes += g.amount * __builtin_popcount(g.mask);
    b->fed[0] = true;
    b->expect = i->src;
    b->begun = true;
    if (b->bytes < -MAX_COUNT || b->bytes > MAX_COUNT) {
      SimFault *f = fault(w, i, l, b->src, v.x.m, v.off[l], MBAR_BYTES);
      if (f) f->mbar.bytes = b->bytes;
    } else if (i->flags & MBF_ARRIVE) {
      arrive(&v, &g, 1);
    } else {
      look(w->cluster, b);
    }
  }
  w->ring += i->put > 0;
}

// Reports whether the phase for which group g waits is complete.
static bool is_over(const Visit *v, const Group *g) {
  if (v->x.i->wide) return g->b->phase > phase_of(g->amount);
  return (g->b->phase & 1) != (g->amount & 1);
}

// Checks that the token in g->amount is from mbarrier g->b, and from its
// current or previous phase. Otherwise reports a fault and returns false.
static bool fits_token(Visit *v, const Group *g) {
  SimWarp *w = v->x.w;
  int64_t phase = g->b->phase, asked = phase_of(g->amount);
  bool own = g->amount >> 32 == index_of(w->cluster, g->b) + 1;
  if (!v->x.i->wide || (own && (asked == phase || asked == phase - 1)))
    return true;
  int l = __builtin_ctz(g->mask);
  SimFault *f = fault(w, v->x.i, l, g->b->src, v->x.m, v->off[l],
                      own ? MBAR_TOKEN : MBAR_FOREIGN);
  if (f) f->mbar.n = asked;
  if (f) f->mbar.came = phase;
  return false;
}

static void acquire(SimWarp *w, const SimIns *i, const Group *g) {
  if (!g->b->phase) return;
  if (w->cluster->log) w->cluster->log->need(w, g->b->past[DONE].gate);
  w->cluster->hooks->take(w, g->mask, &g->b->past[DONE]);
  if (i->scope >= SCOPE_CLUSTER && w->cluster->prog->ncta > 1)
    w->cluster->hooks->take(w, g->mask, &g->b->past[FAR_DONE]);
}

// Records that w passed wait i at the mbarrier of group g.
static void pass(SimWarp *w, const SimIns *i, const Group *g) {
  SimMbar *b = g->b;
  ++*simmbar_waits(w->cluster, w->id, b);
  b->early |= !b->phase;
  b->use[w->id].waited = i->src;
  w->mbar = index_of(w->cluster, b);
  struct SimPassed *d = &b->passed[w->id];
  if (d == b->missed || i->wide || w->agents.teamwork) return;
  *d = (struct SimPassed){b->phase, w->clk, g->mask, i->src,
                          w->cluster->serial};
}

static void look_at(SimWarp *w, const SimMbar *b, bool wait) {
  SimCluster *c = w->cluster;
  if (c->steps) c->steps->look(w, index_of(c, b), b->phase, wait);
}

// ---- try_waits that decide whether a wait follows (try_wait.h) ----

// Returns a pointer to the word that encodes lane l's last try_wait: the
// mbarrier and the parity. The word is 0 if the lane has executed none.
static uint32_t *test_of(const SimWarp *w, const SimIns *i, int l) {
  return (uint32_t *)(void *)(w->v + i->jump) + l;
}

static uint32_t asked(uint32_t addr, int64_t parity) {
  return addr << 2 | (uint32_t)(parity & 1) << 1 | 1;
}

// Records that lane l tests the mbarrier at addr for parity `parity`.
static void note_test(SimWarp *w, const SimIns *i, int l, uint32_t addr,
                      int64_t parity) {
  *test_of(w, i, l) = asked(addr, parity);
}

// Reports whether a wait is for the mbarrier and parity of lane l's last
// try_wait, or lane l has executed no try_wait.
static bool same_test(const SimWarp *w, const SimIns *i, int l, uint32_t addr,
                      int64_t parity) {
  uint32_t last = *test_of(w, i, l);
  return !last || last == asked(addr, parity);
}

// Checks that a wait is for the phase that its linked try_wait tested.
static void check_token(const Visit *v) {
  const SimWarp *w = v->x.w;
  const SimIns *i = v->x.i;
  for (uint32_t m = v->left; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (!same_test(w, i, l, simmem_address(&v->x, l), amount(w, i, l)))
      w->cluster->steps->stray(w->cluster);
  }
}

bool simmbar_wait(SimWarp *w, const SimIns *i) {
  Visit v;
  Group g;
  visit(&v, w, i);
  uint32_t all = v.left;
  if (i->jump && w->cluster->steps) check_token(&v);
  while (next_group(&v, &g)) {
    if (is_over(&v, &g)) continue;
    if (!fits_token(&v, &g)) return true;
    w->state = SW_MBAR;
    w->mbar = (int)(g.b - w->cluster->mbars.p);
    w->src = i->src;
    return false;
  }
  v.left = all;
  while (next_group(&v, &g)) {
    if (!fits_token(&v, &g)) return true;
    look_at(w, g.b, true);
    pass(w, i, &g);
    acquire(w, i, &g);
  }
  w->ring += i->put > 0;
  return true;
}

// Executes a try_wait whose result only decides whether a wait follows. The
// result is false in all lanes, so that the program executes the wait.
static void put_off(Visit *v) {
  SimWarp *w = v->x.w;
  const SimIns *i = v->x.i;
  Group g;
  while (next_group(v, &g))
    for (uint32_t m = g.mask; m; m &= m - 1)
      note_test(w, i, __builtin_ctz(m), g.b->at, g.amount);
  for (int l = 0; l < LANES; l++) set_lane(w, i->d, false, l, false);
}

void simmbar_try(SimWarp *w, const SimIns *i) {
  SimCluster *c = w->cluster;
  Visit v;
  Group g;
  uint32_t yes = 0;
  visit(&v, w, i);
  if (i->jump && c->steps) {
    put_off(&v);
    return;
  }
  bool refuse = !c->steps && !w->refused && base_random(&c->rng) % 4 == 0;
  w->refused = refuse;
  while (next_group(&v, &g)) {
    if (!fits_token(&v, &g)) return;
    look_at(w, g.b, false);
    if (refuse || !is_over(&v, &g)) {
      w->mbar = index_of(c, g.b);
      continue;
    }
    pass(w, i, &g);
    acquire(w, i, &g);
    yes |= g.mask;
  }
  for (int l = 0; l < LANES; l++) set_lane(w, i->d, false, l, yes >> l & 1);
  w->polling = yes != w->active;
  w->src = i->src;
  w->split.waits += w->polling;
  if (w->polling) c->calm.vain++;
}

// Reports the wait at b that note_missed recorded, because it may come late. In
// another schedule, the next phase could end before this wait. The wait would
// then be for a phase that never completes.
static void tell_missed(SimCluster *c, const SimMbar *b) {
  const struct SimPassed *d = b->missed;
  if (!d || d->phase + 1 != b->phase) return;
  SimFault *f = simreport_fault(&c->warp[b->misser], SIM_MBARRIER,
                                __builtin_ctz(d->lanes), d->src, b->last,
                                b->mem, b->element);
  if (!f) return;
  f->mbar.how = MBAR_MISSED;
  f->mbar.n = (int64_t)d->phase - 1;
}

// Called after all warps have exited. Reports waits that may come late, and
// phases with arrivals that never completed.
void simmbar_end(SimCluster *c) {
  for (int k = 0; k < c->mbars.n; k++) {
    const SimMbar *b = &c->mbars.p[k];
    if (!b->gone) tell_missed(c, b);
    if (b->gone || b->missing == b->expected) continue;
    SimFault *f = simreport_fault(&c->warp[b->comer], SIM_MBARRIER, b->at_lane,
                                  b->last, b->src, b->mem, b->element);
    if (!f) continue;
    f->mbar.how = MBAR_LEFT;
    f->mbar.n = b->phase;
    f->mbar.came = b->expected;
    f->mbar.missing = b->missing;
  }
}

// ---- cp.async ----

// An arrival at mbarrier b by some lanes of a warp. It takes place when the
// lanes' cp.asyncs with numbers up to `upto` are complete.
typedef struct Landing {
  uint64_t upto;
  uint32_t mask;
  SimMbar *b;
} Landing;

// Counts n arrivals of operation a at its mbarrier. The caller then calls
// simmbar_complete, which checks whether the phase is complete.
static void count_late(SimCluster *c, const SimAsync *a, uint32_t n) {
  SimMbar *b = a->mbar;
  if (n <= b->missing) {
    b->missing -= n;
    return;
  }
  SimFault *f = simreport_fault(a->w, SIM_MBARRIER, a->lane, a->i->src, b->src,
                                b->mem, b->element);
  if (f) over(f, b, n);
  c->stop = true;
}

static void land(SimAsync *a, SimStage stage) {
  const Landing *d = a->data;
  SimCluster *c = a->w->cluster;
  SimMbar *b = d->b;
  uint32_t n = (uint32_t)__builtin_popcount(d->mask);
  if (stage != ASYNC_DELIVER) return;
  simmem_land(a->w, d->mask, d->upto, actor_of(c, b), simmbar_epoch(b));
  count_late(c, a, n);
}

void simmbar_arrived_by(SimCluster *c, const SimAsync *a, int actor,
                        uint32_t epoch) {
  uint32_t *vc = a->mbar->past[OPEN].vc;
  count_late(c, a, 1);
  if (vc[actor] < epoch) vc[actor] = epoch;
}

SimAsync *simmbar_commit(SimWarp *w, const SimIns *i, int rank, SimRun *run,
                         size_t data) {
  Visit v;
  Group g;
  SimCluster *c = w->cluster;
  visit(&v, w, i);
  // the mbarrier at the operand's offset, but in the memory of CTA `rank`
  SimMem there = *v.x.m;
  there.rank = true;
  v.x.m = &there;
  for (int l = 0; l < LANES; l++)
    v.x.home[l] = (uint32_t)(rank * c->prog->smem_bytes);
  if (!next_group(&v, &g) || !is_next(w, i, &v, &g)) return NULL;
  if (c->steps) c->steps->expect(c, index_of(c, g.b), g.b->phase);
  g.b->fed[0] = true;
  SimAsync *a = simasync_start(w, i, __builtin_ctz(g.mask), run, data);
  if (!a) return NULL;
  a->mbar = g.b;
  a->phase = g.b->phase;
  return a;
}

void simmbar_rounds(const SimCluster *c, const SimMbar *of, SimReport *r) {
  int64_t size = c->prog->smem_bytes;
  r->nround = 1;
  r->round[0] = (SimRound){of->mem, 0};
  for (int k = 0; k < c->mbars.n; k++) {
    const SimMbar *b = &c->mbars.p[k];
    int n = 0;
    if (b->at / size != of->at / size) continue;
    while (n < r->nround && r->round[n].mem != b->mem) n++;
    if (n == SIM_ROUNDS) continue;
    if (n == r->nround) r->round[r->nround++] = (SimRound){b->mem, 0};
    r->round[n].phases += (int64_t)b->phase - b->born + b->begun;
  }
}

const SimAsync *simmbar_landing(const SimWarp *w) {
  const SimCluster *c = w->cluster;
  for (size_t k = 0; k < c->agents.n; k++)
    if (c->agents.p[k]->run == land && c->agents.p[k]->w == w)
      return c->agents.p[k];
  return NULL;
}

void simmbar_cpasync(SimWarp *w, const SimIns *i) {
  Visit v;
  Group g;
  visit(&v, w, i);
  while (next_group(&v, &g)) {
    SimCluster *c = w->cluster;
    if (!is_next(w, i, &v, &g)) return;
    if (c->steps) c->steps->expect(c, index_of(c, g.b), g.b->phase);
    g.b->fed[0] = true;
    if (!(i->flags & MBF_NOINC))
      g.b->missing += (uint32_t)__builtin_popcount(g.mask);
    SimAsync *a = simasync_start(w, i, __builtin_ctz(g.mask), land,
                                 sizeof(Landing));
    if (!a) return;
    *(Landing *)a->data = (Landing){w->copies.count, g.mask, g.b};
    a->mbar = g.b;
    a->phase = g.b->phase;
    // this arrival completes after the earlier arrivals of the warp's cp.asyncs
    a->turn = w->copies.count + 1;
    a->generic = true;
  }
  w->ring += i->put > 0;
}
// SPDX-License-Identifier: MIT
