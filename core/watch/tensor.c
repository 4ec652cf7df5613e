// Checks the order of accesses to tensor memory. Barriers alone do not order
// these accesses.
//
// An MMA is complete for threads that wait at an mbarrier at which a later
// commit arrived. A warp's load or store is complete after its tcgen05.wait.
// The operations are counted by actors, which are entries of the vector clocks
// (tcgen05.h). An operation is complete for the threads that have acquired its
// epoch of the actor. If one thread waits for loads or stores, other threads
// acquire the epoch only when they synchronize with this thread.
//
// Two MMAs with the same accumulators and shape execute in the order of issue.
// The same is true of an MMA after a copy from shared memory or a shift, of a
// shift after an MMA, and of a copy of 4 lanes after a shift. In these cases,
// only the issue of the second operation must be ordered after the issue of the
// first. PTX orders no other operations of the tensor cores without a commit.
// GPUs may order them, so such findings are notes. PTX also requires a
// tcgen05.fence on both sides of a synchronization of threads, except before a
// commit. A missing fence is also a note.
#include "watch/tensor.h"

#include "sim/mbar.h"
#include "watch/hb_cluster.h"
#include "watch/own.h"
#include "watch/waits.h"
#include "watch/warp_roles.h"

#include <string.h>

enum { READERS = 4 };  // number of reads of a cell that are recorded

// An access by an operation that `warp` issued in its epoch clk. The operation
// executes asynchronously as epoch `epoch` of an actor (a vector-clock entry)
// of kind `unit`. serial: SimCluster.serial when the operation was issued.
typedef struct Past {
  uint32_t epoch, clk;
  int16_t warp;
  uint8_t unit, lane;
  bool some;           // whether the access exists
  // the mbarrier at which the warp had waited last, or -1, and the epoch of
  // that wait
  int16_t bar;
  uint32_t waited;
  uint64_t serial;
  int16_t start;       // for MMAs: first column of the accumulators
  const SimIns *i;
} Past;

// The accesses to one column of a group of lanes: the last write, and the reads
// since that write.
typedef struct Cell {
  Past wrote, read[READERS];
  int reads;
} Cell;

typedef struct Tensors {
  Cell (*cell)[TMEM_GROUPS][TMEM_COLUMNS];  // cells of each CTA
  // before: for each warp, epoch of its last fence::before_thread_sync. after:
  // for each warp and each kind of asynchronous operation on tensor memory, the
  // last epoch of these operations that happened before the warp's last
  // fence::after_thread_sync.
  uint32_t *before, *after;
} Tensors;

static Tensors *tensors_of(const SimCluster *c) { return c->own[OWN_TENSOR]; }

// Returns the number of actors (vector-clock entries) for tensor memory: those
// of the kinds TCMMA to TCST.
static int units(const SimProg *p) {
  return actors_first(&p->actors, ACTOR_TCST + 1) -
         actors_first(&p->actors, ACTOR_TCMMA);
}

static size_t after_bytes(const SimProg *p) {
  return (size_t)p->nall * (size_t)units(p) * sizeof(uint32_t);
}

bool tensor_init(SimCluster *c) {
  const SimProg *p = c->prog;
  if (!actors_of(&p->actors, ACTOR_TCMMA)) return true;
  Tensors *t = c->own[OWN_TENSOR] = base_zeros(sizeof *t);
  if (!t) return false;
  t->cell = base_zeros((size_t)p->ncta * sizeof *t->cell);
  t->before = base_zeros((size_t)p->nall * sizeof *t->before);
  t->after = base_zeros(after_bytes(p));
  return t->cell && t->before && t->after;
}

void tensor_reset(SimCluster *c) {
  const SimProg *p = c->prog;
  Tensors *t = tensors_of(c);
  if (!t) return;
  memset(t->cell, 0, (size_t)p->ncta * sizeof *t->cell);
  memset(t->before, 0, (size_t)p->nall * sizeof *t->before);
  memset(t->after, 0, after_bytes(p));
}

void tensor_free(SimCluster *c) {
  Tensors *t = tensors_of(c);
  if (!t) return;
  base_free(t->cell);
  base_free(t->before);
  base_free(t->after);
  base_free(t);
}

// ---- fences ----

void tensor_fence(SimWarp *w, const SimIns *i) {
  const SimProg *p = w->cluster->prog;
  Tensors *t = tensors_of(w->cluster);
  uint32_t *after = t->after + w->id * units(p);
  int first = actors_first(&p->actors, ACTOR_TCMMA);
  if (!(i->flags & TCF_AFTER)) {
    t->before[w->id] = w->clk;
    return;
  }
  for (int k = 0; k < units(p); k++)
    for (uint32_t m = w->active; m; m &= m - 1) {
      uint32_t e = hb_cluster_epoch(w, __builtin_ctz(m), first + k);
      if (e > after[k]) after[k] = e;
    }
}

// ---- checks ----

static bool before(const SimTensorAccess *x, int actor, uint32_t lanes,
                   uint32_t clk) {
  return x->w->cluster->hooks->before(x->w, x->lane, actor, lanes, clk);
}

// Returns the actor (vector-clock entry) of access p.
static int actor_of(const SimTensorAccess *x, const Past *p) {
  return actors_own(&x->w->cluster->prog->actors, p->unit, p->warp);
}

// Reports whether access p is complete for the thread that makes access x.
static bool completed(const SimTensorAccess *x, const Past *p) {
  return before(x, actor_of(x, p), 1, p->epoch);
}

// Reports whether the tensor cores execute the operations of accesses p and x
// in the order of issue.
static bool pipelined(const SimTensorAccess *x, const Past *p) {
  const SimTensorIns *q = p->i->x, *own = x->i->x;
  if (x->i->op == OP_TCSHIFT) return p->i->op == OP_TCMMA;
  if (x->i->op == OP_TCCP)
    return p->i->op == OP_TCSHIFT && strstr(own->copy->ptx, ".4x256b");
  if (x->i->op != OP_TCMMA) return false;
  if (p->i->op != OP_TCMMA) return true;
  return q->row == x->row && p->start == x->start;
}

// Reports whether the tensor cores execute access p before access x because p
// was issued first.
static bool in_order(const SimTensorAccess *x, const Past *p) {
  if (p->unit != ACTOR_TCMMA || x->freed || !pipelined(x, p)) return false;
  return p->warp == x->w->id || before(x, p->warp, 1u << p->lane, p->clk);
}

static SimTensorLack lack_of(const SimTensorAccess *x, const Past *p) {
  if (p->unit == ACTOR_TCMMA) return TENSOR_LACKS_COMMIT;
  // An access of the same warp is complete only after the warp's wait.
  SimCluster *c = x->w->cluster;
  if (c->hooks->before(&c->warp[p->warp], 0, actor_of(x, p), 1, p->epoch))
    return TENSOR_LACKS_ORDER;
  return p->unit == ACTOR_TCLD ? TENSOR_LACKS_LOAD : TENSOR_LACKS_STORE;
}

// ---- explanations ----

// Sets f->tensor.ready if other columns than those of x have results of MMAs
// that are complete for the thread of x, and that nothing has read.
static void find_ready(SimFault *f, const SimTensorAccess *x) {
  const Cell *cell = tensors_of(x->w->cluster)->cell[x->cta]
                                                    [__builtin_ctz(x->groups)];
  for (int k = x->base; k < TMEM_COLUMNS; k++) {
    const Past *p = &cell[k].wrote;
    if ((k >= x->column && k < x->column + x->n) || cell[k].reads ||
        !p->some || p->unit != ACTOR_TCMMA || !completed(x, p))
      continue;
    f->tensor.ready = true;
    f->tensor.n = k - x->base;
    return;
  }
}

void tensor_unwritten(SimFault *f, const SimTensorAccess *x) {
  find_ready(f, x);
}

// Finds an arrival for which x's warp waited, and which the warp of p made
// between the last wait before p and the completion of p. Returns its line, or
// 0 if there is none.
static uint32_t early_arrival(const SimTensorAccess *x, const Past *p) {
  const SimCluster *c = x->w->cluster;
  for (int k = 0; k < c->mbars.n; k++) {
    const SimMbar *b = &c->mbars.p[k];
    uint32_t at = b->came[1][p->warp];
    if (at && at >= p->waited && b->phase > b->born &&
        b->passed[x->w->id].phase == b->phase)
      return b->use[p->warp].src;
  }
  return 0;
}

// Reports whether b is the element of its ring at which w waited last, and w
// has not waited at the ring since c->serial was `serial`.
static bool is_latest(const SimWarp *w, const SimMbar *b, uint64_t serial) {
  const SimCluster *c = w->cluster;
  uint64_t last = b->passed[w->id].serial;
  for (int k = 0; k < c->mbars.n; k++)
    if (simmbar_ring(c, &c->mbars.p[k], b) &&
        c->mbars.p[k].passed[w->id].serial > last)
      return false;
  return last && last <= serial;
}

static bool arrives(const SimIns *i, const void *ud) {
  return (i->op == OP_MBARARRIVE || i->op == OP_MBARTX) &&
         ((const SimSide *)i->x)->mem->index == *(const int32_t *)ud;
}

// Reports whether the program has no wait at mbarriers of object `mem`.
static bool is_unawaited(const SimProg *p, int32_t mem) {
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    if ((i->op == OP_MBARWAIT || i->op == OP_MBARTRY) &&
        ((const SimSide *)i->x)->mem->index == mem)
      return false;
  }
  return true;
}

// Explains fault f: threads of warp u, which wait at `bar`, and an MMA of warp
// w access the same columns. Finds the ring of mbarriers at which threads of u
// arrive, and at which w should wait before it issues the MMA. It has as many
// stages as the ring of `bar`. Sets in f whether no thread waits at the ring,
// and whether w's last wait there was for another stage than that of `bar`.
// Ignores this wait if it came after c->serial was `serial`.
static void look_at_ring(SimFault *f, const SimWarp *u, const SimMbar *bar,
                         const SimWarp *w, uint64_t serial) {
  const SimCluster *c = w->cluster;
  for (int k = 0; k < c->mbars.n; k++) {
    const SimMbar *b = &c->mbars.p[k];
    if (b->mem == bar->mem || waits_ring(c, b) != waits_ring(c, bar) ||
        !warp_roles_ahead(u, arrives, &b->mem))
      continue;
    if (is_unawaited(c->prog, b->mem)) f->r.lack = LACK_TURN;
    if (!is_latest(w, b, serial)) continue;
    f->tensor.strays = b->element != bar->element;
    f->tensor.stage = (int)bar->element;
    f->tensor.mma_stage = (int)b->element;
    return;
  }
}

// Adds the reason why access p is not complete for the thread of x.
static void explain(SimFault *f, const SimTensorAccess *x, const Past *p) {
  const SimCluster *c = x->w->cluster;
  const SimWarp *first = &c->warp[p->warp];
  bool mma = x->unit == ACTOR_TCMMA;
  if (!x->write) find_ready(f, x);
  if (x->freed || mma == (p->unit == ACTOR_TCMMA)) return;
  f->r.waited = mma ? early_arrival(x, p) : 0;
  if (f->r.waited) f->tensor.lacks = TENSOR_LACKS_ARRIVAL;
  else if (simmbar_stays(mma ? x->w : first, false)) f->r.lack = LACK_STAY;
  else if (mma && p->bar >= 0)
    look_at_ring(f, first, &c->mbars.p[p->bar], x->w, c->serial);
  else if (!mma && x->w->mbar >= 0)
    look_at_ring(f, x->w, &c->mbars.p[x->w->mbar], first, p->serial);
}

// ---- faults ----

static void fill(SimFault *f, const SimTensorAccess *x, const Past *p,
                 SimTensorWrong how, SimClash clash, SimTensorLack lacks,
                 int column) {
  if (!f) return;
  f->tensor.how = how;
  f->tensor.clash = clash;
  f->tensor.lacks = lacks;
  f->tensor.op = op_name((Op)p->i->op);
  f->tensor.warp = x->w->in;
  f->tensor.other = p->warp % x->w->cluster->prog->nwarp;
  f->tensor.column = column - x->base;
}

static int32_t object(const SimTensorAccess *x) {
  return x->m ? x->m->index : -1;
}

// Reports, as a note, a missing tcgen05.fence between accesses p and x, which
// are ordered.
static void check_fences(const SimTensorAccess *x, const Past *p, SimClash how,
                         int column) {
  const Tensors *t = tensors_of(x->w->cluster);
  const SimProg *prog = x->w->cluster->prog;
  int unit = actor_of(x, p) - actors_first(&prog->actors, ACTOR_TCMMA);
  bool thread = p->unit != ACTOR_TCMMA;
  if (p->warp == x->w->id && thread) return;
  SimTensorLack lacks = TENSOR_LACKS_NONE;
  if (t->after[x->w->id * units(prog) + unit] < p->epoch)
    lacks = TENSOR_LACKS_AFTER;
  if (thread && t->before[p->warp] < p->clk)
    lacks = TENSOR_LACKS_BEFORE;
  if (!lacks || x->freed) return;
  SimFault *f = simreport_note(x->w, SIM_TENSOR, x->lane, x->i->src, p->i->src,
                               object(x), 0);
  fill(f, x, p, TENSOR_FENCE, how, lacks, column);
}

// Reports whether a fault of tensor memory whose first access is p has already
// been reported.
static bool is_told(const SimWarp *w, const Past *p) {
  const SimOut *o = w->cluster->out;
  for (uint32_t k = 0; k < o->nfault; k++)
    if (o->fault[k].r.kind == SIM_TENSOR && o->fault[k].r.src2 == p->i->src)
      return true;
  return false;
}

static void check(const SimTensorAccess *x, const Past *p, SimClash how,
                  int column) {
  if (!p->some || in_order(x, p)) return;
  if (completed(x, p)) {
    check_fences(x, p, how, column);
    return;
  }
  if (x->freed && is_told(x->w, p)) return;
  bool same = p->unit == ACTOR_TCMMA && x->unit == ACTOR_TCMMA && !x->freed &&
              p->warp == x->w->id;
  SimFault *f = (same ? simreport_note : simreport_fault)(
    x->w, SIM_TENSOR, x->lane, x->i->src, p->i->src, object(x), 0);
  fill(f, x, p, TENSOR_RACE, how, lack_of(x, p), column);
  if (f) explain(f, x, p);
}

static bool same_unit(const Past *p, const SimTensorAccess *x) {
  return p->some && p->warp == x->w->id && p->unit == x->unit;
}

static void keep_read(const SimTensorAccess *x, Cell *c, const Past *now) {
  int k = 0;
  while (k < c->reads && !same_unit(&c->read[k], x)) k++;
  if (k == READERS) k = 0;
  if (k == c->reads) c->reads++;
  c->read[k] = *now;
}

static void visit(const SimTensorAccess *x, Cell *c, const Past *now,
                  int column) {
  check(x, &c->wrote, x->write ? CLASH_WAW : CLASH_RAW, column);
  if (!x->write) {
    keep_read(x, c, now);
    return;
  }
  for (int k = 0; k < c->reads; k++) check(x, &c->read[k], CLASH_WAR, column);
  c->reads = 0;
  c->wrote = *now;
}

void tensor_access(const SimTensorAccess *x) {
  SimCluster *c = x->w->cluster;
  int bar = x->w->mbar;
  Past now = {.epoch = x->epoch, .clk = x->w->clk, .warp = (int16_t)x->w->id,
              .unit = (uint8_t)x->unit, .lane = (uint8_t)x->lane,
              .some = !x->freed, .start = (int16_t)x->start, .i = x->i,
              .bar = (int16_t)bar, .serial = c->serial};
  if (bar >= 0) now.waited = c->mbars.p[bar].passed[x->w->id].clk;
  Cell (*cell)[TMEM_COLUMNS] = tensors_of(c)->cell[x->cta];
  for (int g = 0; g < TMEM_GROUPS; g++)
    for (int k = x->column; x->groups >> g & 1 && k < x->column + x->n; k++)
      visit(x, &cell[g][k], &now, k);
}
// SPDX-License-Identifier: MIT
