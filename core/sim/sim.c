// Runs the clusters of a launch (its CTAs, if there are no clusters) on host
// threads. Merges the results of the clusters in the order of their indices, so
// that reports do not depend on the number of threads.
#define _POSIX_C_SOURCE 200809L
#include "sim/sim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/platform.h"
#include "base/signals.h"
#include "decode/fits.h"
#include "faults/facts.h"
#include "hardware/access.h"
#include "ir/operands.h"
#include "sim/async.h"
#include "sim/divergence.h"
#include "sim/mbar.h"
#include "sim/record.h"
#include "sim/regs.h"
#include "sim/tcgen05.h"
#include "sim/tensormap_ops.h"
#include "sim/wgmma.h"

enum { MAX_THREADS = 256, AHEAD = 1024, TILE_ALIGN = 64,
       // cost of starting a cluster, in instructions of Run.guard's budget
       CLUSTER_COST = 256 };

typedef struct Run {
  const SimProg *prog;
  const SimOpts *opts;
  int max_reports;
  // index of the first cluster, and number of clusters to run
  uint64_t first, total;
  // maximum number of communicating clusters that run at once
  uint64_t most;
  // begun: number of started clusters. merged: number with merged results.
  uint64_t begun, merged;
  bool stop, oom, stopped;
  uint32_t cut;           // SimResult.cut
  // told: time of the last call of SimOpts.progress. part: its argument.
  uint64_t told;
  double part;
  int nasleep;  // number of clusters that wait for others (Worker.asleep)
  Guard *guard;           // limits on the run's instructions and time, or NULL
  // results of finished clusters that wait until earlier clusters finish
  SimOut *done;
  pthread_mutex_t lock, atomics;
  pthread_cond_t moved;   // signaled when `merged` increases
  SimFault *fault, *note;
  uint32_t nfault, nnote;
  SimOrigins origins, inexact;
  SimStat *stat;
  uint64_t instructions, mmas, turns, granules, early;
  SimOrders *order;  // results of the schedules that `cutelua check` explores
  size_t norder, maxorder;
  SimText text;
  SimRequests *requests;  // recorded requests; NULL: none are recorded
  struct SimTape *tape;   // the event log, if SimOpts.machine is set, else NULL
  SimTiming timing;
} Run;

typedef struct Worker {
  Run *run;
  SimCluster **cluster;         // clusters, allocated when needed
  // live: number of running clusters; they come first in `cluster`. made:
  // number of allocated clusters. max: capacity of `cluster`.
  int live, made, max;
  // Linked list of the Run.nasleep clusters that wait for other clusters,
  // longest waiting first. asleep: first cluster. last: last cluster.
  SimCluster *asleep, *last;
  struct SimTurns *turns;              // state of systematic schedules
  pthread_t thread;
  bool main;
} Worker;

// ---- results of a cluster ----

static void out_free(SimOut *o) {
  if (!o) return;
  base_free(o->text.p);
  base_free(o);
}

static size_t round16(size_t n) { return (n + 15) & ~(size_t)15; }

static SimOut *out_new(const Run *r, uint64_t cluster) {
  size_t head = round16(sizeof(SimOut));
  size_t faults = round16((size_t)r->max_reports * sizeof(SimFault));
  size_t notes = round16(MAX_NOTES * sizeof(SimFault));
  size_t n = head + faults + notes + r->prog->nstat * sizeof(SimStat);
  char *p = base_realloc(NULL, n);
  if (!p) return NULL;
  memset(p, 0, n);
  SimOut *o = (SimOut *)(void *)p;
  o->cluster = cluster;
  o->fault = (SimFault *)(void *)(p + head);
  o->note = (SimFault *)(void *)(p + head + faults);
  o->stat = (SimStat *)(void *)(p + head + faults + notes);
  return o;
}

static void stop(Run *r) {
  r->stopped = true;
  // other host threads read this flag
  __atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
}

// Merges fault f into the n faults of `all`, which has capacity for `most`.
static void merge_into(SimFault *all, uint32_t *n, uint32_t most,
                       const SimFault *f) {
  for (uint32_t k = 0; k < *n; k++) {
    if (!simreport_same(&all[k].r, &f->r)) continue;
    all[k].r.count += f->r.count;
    return;
  }
  if (*n < most) all[(*n)++] = *f;
}

static void merge_fault(void *run, const SimFault *f) {
  Run *r = run;
  merge_into(r->fault, &r->nfault, (uint32_t)r->max_reports, f);
}

static void add_stat(SimStat *a, const SimStat *b) {
  a->count += b->count;
  a->wavefronts += b->wavefronts;
  a->least += b->least;
  a->requests += b->requests;
  a->sectors += b->sectors;
  a->least_sectors += b->least_sectors;
  a->bytes += b->bytes;
}

static void merge(Run *r, SimOut *o) {
  bool endless = false;
  for (uint32_t k = 0; k < o->nfault; k++) {
    merge_fault(r, &o->fault[k]);
    endless |= o->fault[k].r.kind == SIM_RUNAWAY;
  }
  for (uint32_t k = 0; k < o->nnote; k++)
    merge_into(r->note, &r->nnote, MAX_NOTES, &o->note[k]);
  for (uint32_t k = 0; k < r->prog->nstat; k++)
    add_stat(&r->stat[k], &o->stat[k]);
  r->prog->hooks->launch.merge(&r->origins, &o->origins);
  r->prog->hooks->launch.merge(&r->inexact, &o->inexact);
  r->instructions += o->instructions;
  r->mmas += o->mmas;
  r->early += o->early;
  if (o->granules > r->granules) r->granules = o->granules;
  if (o->text.n && !simreport_printf(&r->text, "%s", o->text.p)) r->oom = true;
  r->merged++;
  if (r->merged < r->total &&
      (endless || r->nfault >= (uint32_t)r->max_reports))
    stop(r);
}

// Hands over `o`, the results of a finished cluster. Then merges results in the
// order of clusters, up to the first unfinished one. The caller holds the lock.
static void hand_over(Run *r, SimOut *o) {
  SimOut **at = &r->done;
  while (*at && (*at)->cluster < o->cluster) at = &(*at)->next;
  o->next = *at;
  *at = o;
  while (r->done && r->done->cluster == r->merged && !r->stop) {
    SimOut *first = r->done;
    r->done = first->next;
    merge(r, first);
    out_free(first);
  }
  pthread_cond_broadcast(&r->moved);
}

// Reports progress. Called by the thread that called sim_run.
static void report_progress(void *p) {
  Run *r = p;
  if (!r->opts->progress) return;
  r->told = base_nanotime();
  pthread_mutex_lock(&r->lock);
  // a cluster that waits for other clusters counts as half done
  double part = ((double)r->merged + (double)r->nasleep / 2) /
                (double)r->total;
  if (part > r->part) r->part = part;
  part = r->part;
  bool over = r->stop;
  pthread_mutex_unlock(&r->lock);
  if (over || r->opts->progress(r->opts->ud, part)) return;
  pthread_mutex_lock(&r->lock);
  stop(r);
  pthread_cond_broadcast(&r->moved);
  pthread_mutex_unlock(&r->lock);
}

// Reports progress at most 20 times a second.
static void tick(void *p) {
  enum { EACH = 50000000 };  // minimum interval in nanoseconds
  Run *r = p;
  if (base_nanotime() - r->told > EACH) report_progress(r);
}

static bool goes_on(void *run) {
  const Run *r = run;
  tick(run);
  return !r->stopped;
}

// ---- clusters that others cancel ----

// Implements SimCluster.host.cancel. If the kernel cancels clusters, all
// clusters run on one thread, so that the results do not depend on time. One
// request in four is refused at random. Later requests of a cluster with a
// refused request are also refused, because PTX does not allow them.
static bool cancel(void *run, SimCluster *c, uint64_t *cluster) {
  Run *r = run;
  if (c->refused || r->begun == r->total || base_random(&c->rng) % 4 == 0) {
    c->refused = true;
    return false;
  }
  SimOut *o = out_new(r, r->begun);
  if (!o) {
    c->oom = c->refused = true;
    return false;
  }
  *cluster = r->begun++;
  pthread_mutex_lock(&r->lock);
  hand_over(r, o);
  pthread_mutex_unlock(&r->lock);
  return true;
}

static bool cancels(const SimProg *p) {
  for (uint32_t k = 0; k < p->nins; k++)
    if (p->ins[k].op == OP_CLCTRY) return true;
  return false;
}

// ---- the memory of a cluster ----

static void cluster_free(SimCluster *c) {
  if (!c) return;
  if (c->warp)
    for (int k = 0; k < c->prog->nall; k++) {
      divergence_reset(&c->warp[k]);
      base_free(c->warp[k].frame);
      base_free(c->warp[k].v);
      base_free(c->warp[k].copies.batch);
      base_free(c->warp[k].taints.value);
      base_free(c->warp[k].wraps.lanes);
      base_free(c->warp[k].text.p);
    }
  simcluster_free(c);
  base_free(c->warp);
  base_free(c->smem);
  if (c->hooks) c->hooks->free(c);
  simmbar_free(c);
  simasync_free(c);
  tensormap_ops_free(c->maps);
  simwgmma_free(c);
  simtcgen05_free(c);
  base_free(c->pattern);
  base_free(c->mma.rooms);
  base_free(c);
}

static bool cluster_init(SimCluster *c, Run *r) {
  const SimProg *p = r->prog;
  // default limit of a warp's instructions
  enum { MOST = 40000000,
         // limit of a cluster's instructions while memory does not change
         STILL = 32 << 20, EACH = 4 << 20 };
  size_t n = (size_t)p->nall, ctas = (size_t)p->ncta;
  c->prog = p;
  c->hooks = p->hooks;
  c->host.budget = r->opts->budget ? r->opts->budget : MOST;
  c->host.patience = r->opts->budget ? UINT64_MAX : STILL + EACH * n;
  c->host.max_reports = r->max_reports;
  c->host.strict = r->opts->strict;
  c->host.cancel = cancel;
  c->host.run = r;
  c->host.lock = &r->atomics;
  c->host.quit = &r->stop;
  c->requests = r->requests;
  c->warp = base_realloc(NULL, n * sizeof *c->warp);
  if (!c->warp) return false;
  memset(c->warp, 0, n * sizeof *c->warp);
  for (size_t k = 0; k < n; k++) {
    c->warp[k].frame = base_realloc(NULL, (p->depth + 1) * sizeof(SimFrame));
    c->warp[k].v = base_realloc(NULL, p->value_bytes);
    c->warp[k].taints.value = base_realloc(NULL, p->ntaint * sizeof(SimTaint));
    c->warp[k].wraps.lanes = base_realloc(NULL, p->wraps.n * sizeof(uint32_t));
    if (!c->warp[k].wraps.lanes) return false;
    if (!c->warp[k].frame || !c->warp[k].v || !c->warp[k].taints.value)
      return false;
    memset(c->warp[k].v, 0, p->value_bytes);
  }
  size_t patterns = (size_t)p->nstat * 2 * sizeof *c->pattern;
  c->smem = base_realloc(NULL, ctas * (size_t)p->smem_bytes);
  c->pattern = base_realloc(NULL, patterns);
  c->mma.rooms = base_realloc(NULL, SIM_ROOMS * SIM_ROOM + TILE_ALIGN);
  if (!simcluster_init(c) || !simwgmma_init(c) || !simtcgen05_init(c) ||
      !c->hooks->make(c))
    return false;
  if (c->pattern) memset(c->pattern, 0, patterns);
  if (!c->smem || !c->pattern || !c->mma.rooms) return false;
  c->mma.tile = c->mma.rooms + (-(uintptr_t)c->mma.rooms & (TILE_ALIGN - 1));
  return true;
}

static SimCluster *cluster_new(const Worker *w) {
  SimCluster *c = base_realloc(NULL, sizeof *c);
  if (!c) return NULL;
  memset(c, 0, sizeof *c);
  if (w->main) {
    c->host.tick = tick;
    c->host.tick_ud = w->run;
  }
  if (cluster_init(c, w->run)) return c;
  cluster_free(c);
  return NULL;
}

// ---- workers ----

// Sets *cluster to the index of the next cluster to run. Returns false if none
// is left. With `wait`, waits until there is room for another cluster's
// results.
static bool next_cluster(Run *r, uint64_t *cluster, bool wait) {
  if (r->prog->launch->debug && r->prog->hooks->ended(r->prog)) return false;
  pthread_mutex_lock(&r->lock);
  while (wait && !r->stop && !r->oom && r->begun < r->total &&
         r->begun >= r->merged + AHEAD + r->most)
    pthread_cond_wait(&r->moved, &r->lock);
  bool go = !r->stop && !r->oom && !guard_ended() && r->begun < r->total &&
            r->begun < r->merged + AHEAD + r->most;
  if (go) *cluster = r->begun++;
  pthread_mutex_unlock(&r->lock);
  return go;
}

static void fail_memory(Run *r) {
  pthread_mutex_lock(&r->lock);
  r->oom = true;
  __atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&r->moved);
  pthread_mutex_unlock(&r->lock);
}

static bool begin(Run *r, SimCluster *c, uint64_t index) {
  SimOut *o = out_new(r, index);
  if (!o) return false;
  c->rng = r->opts->seed * 0x9e3779b97f4a7c15ull + index;
  c->serial = 1;
  c->beat.due = 0;
  c->beat.cut = 0;
  c->beat.spent = c->serial;
  c->out = o;
  c->tape = r->tape;
  c->log = r->tape ? r->opts->log : NULL;
  guard_spend(CLUSTER_COST);
  simcluster_begin(c, index);
  return true;
}

// Returns an unused SimCluster of a worker, and allocates it if necessary.
// Returns NULL if memory is exhausted.
static SimCluster *place_for(Worker *w) {
  if (w->live < w->made) return w->cluster[w->live];
  if (w->made + w->run->nasleep == w->max) {
    int max = w->max ? w->max * 2 : 4;
    SimCluster **p = base_realloc(w->cluster, (size_t)max * sizeof *p);
    if (!p) return NULL;
    w->cluster = p;
    w->max = max;
  }
  SimCluster *c = cluster_new(w);
  if (c) w->cluster[w->made++] = c;
  return c;
}

// Starts another cluster on a worker. Returns false if there is none to start,
// or if memory is exhausted.
static bool another(Worker *w) {
  Run *r = w->run;
  uint64_t index;
  if (!next_cluster(r, &index, !w->live && !w->run->nasleep)) return false;
  SimCluster *c = place_for(w);
  if (!c || !begin(r, c, index)) {
    fail_memory(r);
    return false;
  }
  if (w->turns) r->opts->steps->join(w->turns, c);
  w->live++;
  return true;
}

static void finish(Worker *w, int k) {
  Run *r = w->run;
  SimCluster *c = w->cluster[k];
  w->cluster[k] = w->cluster[--w->live];
  w->cluster[w->live] = c;
  if (c->oom) fail_memory(r);
  pthread_mutex_lock(&r->lock);
  if (!r->cut) r->cut = c->beat.cut;
  hand_over(r, c->out);
  pthread_mutex_unlock(&r->lock);
}

// ---- communicating clusters ----

// Reports whether a worker may start another communicating cluster.
static bool has_room(const Worker *w) {
  return (uint64_t)(w->live + w->run->nasleep) < w->run->most;
}

// Suspends running cluster k until other clusters change memory.
static void put_to_sleep(Worker *w, int k) {
  SimCluster *c = w->cluster[k];
  w->cluster[k] = w->cluster[--w->live];
  w->cluster[w->live] = w->cluster[--w->made];
  c->sleep.next = NULL;
  *(w->asleep ? &w->last->sleep.next : &w->asleep) = c;
  w->last = c;
  w->run->nasleep++;
}

// Reports whether cluster c must continue to wait, because memory has not
// changed since it began to wait.
static bool is_waiting(const SimCluster *c) {
  return c->sleep.since == c->prog->common->changes && !c->sleep.hopeless;
}

// Resumes at most n waiting clusters, longest waiting first, if memory has
// changed since they began to wait. With `all`, resumes them even if memory has
// not changed. Returns false if it resumed no cluster.
static bool wake(Worker *w, int n, bool all) {
  bool some = false;
  for (SimCluster *c; n-- > 0 && (c = w->asleep); some = true) {
    if (!all && is_waiting(c)) break;
    w->asleep = c->sleep.next;
    w->run->nasleep--;
    w->cluster[w->made++] = w->cluster[w->live];
    w->cluster[w->live++] = c;
  }
  return some;
}

// Marks all waiting clusters as deadlocked: they wait for each other, and no
// further cluster can start.
static void give_up(Worker *w) {
  Run *r = w->run;
  wake(w, w->run->nasleep, true);
  for (int k = 0; k < w->live; k++) {
    w->cluster[k]->sleep.hopeless = true;
    w->cluster[k]->sleep.unborn =
      (int64_t)(r->total - r->begun) * r->prog->ncta;
  }
}

// Runs communicating clusters alternately. At first only a few clusters run.
// When all of them wait, more clusters start, up to the number that fits on the
// GPU's SMs. If many clusters wait, a change of memory resumes them one at a
// time, so that the time of a grid barrier is linear in the number of blocks.
static void take_turns(Worker *w) {
  enum { FEW = 4, MANY = 16, OFTEN = 4 };
  Run *r = w->run;
  uint64_t rng = r->opts->seed * 0x9e3779b97f4a7c15ull;
  for (uint64_t n = 0;; n++) {
    if (r->nasleep <= MANY) wake(w, MANY, false);
    else if (n % OFTEN == 0) wake(w, 1, false);
    while (w->live + r->nasleep < FEW && has_room(w) && another(w)) {}
    if (!w->live && !r->nasleep) return;
    if (!w->live && (!has_room(w) || !another(w)) && !wake(w, MANY, false))
      give_up(w);
    int k = (int)(base_random(&rng) % (uint64_t)w->live);
    if (simcluster_run(w->cluster[k])) {
      finish(w, k);
      report_progress(r);
    } else if (is_waiting(w->cluster[k])) {
      put_to_sleep(w, k);
    }
  }
}

// ---- systematic schedules ----

static void orders_free(SimOrders *o) {
  for (size_t k = 0; k < o->nswap; k++) base_free(o->swap[k].turn);
  base_free(o->swap);
  base_free(o->turn);
  base_free(o->line);
}

static void keep_orders(Worker *w) {
  Run *r = w->run;
  SimOrders *o = r->opts->steps->orders(w->turns);
  if (!o) return;
  pthread_mutex_lock(&r->lock);
  if (r->norder == r->maxorder) {
    size_t max = r->maxorder ? r->maxorder * 2 : 16;
    SimOrders *p = base_realloc(r->order, max * sizeof *p);
    if (p) r->order = p, r->maxorder = max;
  }
  bool room = r->norder < r->maxorder;
  if (room) r->order[r->norder++] = *o;
  pthread_mutex_unlock(&r->lock);
  if (!room) orders_free(o), fail_memory(r);
  base_free(o);
}

// Lets the running clusters continue with random schedules.
static void leave(Worker *w) {
  for (int k = 0; k < w->live; k++) w->cluster[k]->steps = NULL;
}

static void *work_decided(Worker *w) {
  const Run *r = w->run;
  const SimSteps *steps = r->opts->steps;
  uint64_t most = r->prog->common ? r->most : 1;
  while ((uint64_t)w->live < most && another(w)) {}
  while (w->live) {
    int k = w->cluster[0]->steps ? steps->next(w->turns, w->cluster, w->live)
                                 : TURNS_NONE;
    if (k == -1) continue;
    if (k == TURNS_NONE && r->prog->common) {
      leave(w);
      take_turns(w);
      break;
    }
    if (k == TURNS_NONE) {
      leave(w);
      while (!simcluster_run(w->cluster[0])) {}
    } else {
      simcluster_end(w->cluster[k]);
    }
    finish(w, k < 0 ? 0 : k);
    if (!r->prog->common) keep_orders(w);
    if (w->main) report_progress(w->run);
    while ((uint64_t)w->live < most && another(w)) {}
  }
  if (r->prog->common) keep_orders(w);
  pthread_mutex_lock(&w->run->lock);
  w->run->turns += steps->count(w->turns);
  pthread_mutex_unlock(&w->run->lock);
  return NULL;
}

// Thread function of a worker: runs clusters one after another.
static void *work(void *p) {
  Worker *w = p;
  guard_now = w->run->guard;
  if (w->turns) return work_decided(w);
  while (another(w)) {
    while (!simcluster_run(w->cluster[0])) {}
    finish(w, 0);
    if (w->main) report_progress(w->run);
  }
  return NULL;
}

static void worker_free(Worker *w) {
  if (w->turns) w->run->opts->steps->stop(w->turns);
  wake(w, w->run->nasleep, true);
  for (int k = 0; k < w->made; k++) cluster_free(w->cluster[k]);
  base_free(w->cluster);
}

static int thread_count(const Run *r) {
  bool one = r->prog->common || cancels(r->prog) || r->prog->launch->debug ||
             r->requests;
  long n = one ? 1 : r->opts->threads;
  if (n <= 0) n = platform_cores();
  if (n > MAX_THREADS) n = MAX_THREADS;
  uint64_t most = r->total - r->first;
  if (most == 0) most = 1;
  return (uint64_t)n > most ? (int)most : (int)n;
}

// Starts threads for the workers w[1] to w[n-1], and returns the number of
// started threads. These threads block signals, so that the thread that runs
// Lua handles them.
static int start_workers(Worker *w, int n) {
  SigHold hold;
  int k = 1;
  signals_hold(&hold);
  while (k < n && pthread_create(&w[k].thread, NULL, work, &w[k]) == 0) k++;
  signals_release(&hold);
  return k - 1;
}

// Runs all clusters. Returns false if memory is exhausted.
static bool run_all(Run *r) {
  int n = thread_count(r), started = 0;
  Worker *w = base_realloc(NULL, (size_t)n * sizeof *w);
  if (!w) return false;
  memset(w, 0, (size_t)n * sizeof *w);
  for (int k = 0; k < n; k++) w[k].run = r;
  for (int k = 0; k < n && r->opts->steps; k++)
    if (!(w[k].turns = r->opts->steps->start(r->prog, r->opts))) r->oom = true;
  w[0].main = true;
  started = start_workers(w, n);
  if (r->prog->common && !w[0].turns) take_turns(&w[0]);
  else work(&w[0]);
  for (int k = 1; k <= started; k++) pthread_join(w[k].thread, NULL);
  if (!r->stop) report_progress(r);  // all clusters are done
  for (int k = 0; k < n; k++) worker_free(&w[k]);
  base_free(w);
  return !r->oom;
}

// ---- the result ----

static void timing_free(SimTiming *t) {
  base_free(t->cost);
  base_free(t->event);
}

void sim_free(SimResult *r) {
  if (!r) return;
  for (size_t k = 0; k < r->nreport; k++) base_free(r->report[k].fact);
  for (size_t k = 0; k < r->nnote; k++) base_free(r->note[k].fact);
  if (r->requests) record_free(r->requests);
  base_free(r->requests);
  for (size_t k = 0; k < r->norder; k++) orders_free(&r->order[k]);
  base_free(r->order);
  base_free(r->report);
  base_free(r->note);
  base_free(r->line);
  base_free(r->output);
  timing_free(&r->timing);
  base_free(r);
}

// Describes memory instruction i: returns its name, sets *smem and *gmem to its
// objects, and *out to whether it moves data from shared to global memory.
static const char *memory_op(const SimProg *p, const Ins *i, int32_t *smem,
                             int32_t *gmem, bool *out) {
  const Fn *fn = p->fn;
  const Mem *m[2] = {NULL, NULL};  // destination and source
  *smem = *gmem = -1;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if ((o.kind == OPERAND_MEM || o.kind == OPERAND_RUN ||
         o.kind == OPERAND_MAP) && !m[!o.written])
      m[!o.written] = ir_memof(fn, o.ref);
  for (int k = 0; k < 2; k++) {
    if (!m[k]) continue;
    int32_t at = (int32_t)(m[k] - fn->mem.p);
    if (mem_is_shared(m[k])) *smem = at;
    if (mem_is_global(m[k])) *gmem = at;
  }
  *out = *smem >= 0 && m[0] && mem_is_global(m[0]);
  if (op_flag_kind((Op)i->op) == FLAGS_BULK) return op_name((Op)i->op);
  if (i->op == OP_CPASYNC) return op_name(OP_CPASYNC);
  if (i->op == OP_MATRIX)
    return mem_is_shared(m[0]) ? "stmatrix" : "ldmatrix";
  if (i->op == OP_ATOMIC)
    return *smem >= 0 ? "atomic.shared" : "atomic.global";
  if (*smem >= 0 && *gmem >= 0) return "copy";
  bool store = m[0] && mem_memory(m[0]) != MEMORY_REGISTERS;
  if (*smem >= 0) return store ? "st.shared" : "ld.shared";
  return store ? "st.global" : "ld.global";
}

// Adds statistics record k to the result of its source line. Returns the index
// of the line in s->line, or -1 if the instruction was never executed.
static int32_t add_line(const Run *r, SimResult *s, uint32_t k) {
  const SimStat *a = &r->stat[k];
  if (!a->count) return -1;
  const Ins *i = ir_get(r->prog->fn, r->prog->stat_ref[k]);
  SimLine n = {.src = i->src};
  n.op = memory_op(r->prog, i, &n.smem, &n.gmem, &n.out);
  SimLine *at = s->line, *end = s->line + s->nline;
  while (at < end && (at->src != n.src || strcmp(at->op, n.op) != 0 ||
                      at->smem != n.smem || at->gmem != n.gmem ||
                      at->out != n.out))
    at++;
  if (at == end) {
    *at = n;
    s->nline++;
  }
  add_stat(&at->sum, a);
  return (int32_t)(at - s->line);
}

// Builds the lines of the result. The requests refer to statistics records;
// makes them refer to lines instead.
static bool add_lines(Run *r, SimResult *s) {
  uint32_t n = r->prog->nstat;
  int32_t *of = base_realloc(NULL, n * sizeof *of);
  s->line = base_realloc(NULL, n * sizeof *s->line);
  if (of && s->line)
    for (uint32_t k = 0; k < n; k++) of[k] = add_line(r, s, k);
  if (of && s->line && r->requests)
    for (uint32_t k = 0; k < r->requests->n; k++)
      r->requests->p[k].line = of[r->requests->p[k].line];
  base_free(of);
  return of && s->line;
}

static int by_cluster(const void *a, const void *b) {
  uint64_t x = ((const SimOrders *)a)->cluster;
  uint64_t y = ((const SimOrders *)b)->cluster;
  return (x > y) - (x < y);
}

// Returns reports of n faults, with their facts (faults/facts.h). Returns NULL
// if memory is exhausted. Sets *done to the number of finished reports.
static SimReport *report_all(const Run *r, SimFault *all, uint32_t n,
                             size_t *done) {
  SimReport *p = base_realloc(NULL, n * sizeof *p);
  for (uint32_t k = 0; p && k < n; k++) {
    facts_amounts(&all[k]);
    p[k] = all[k].r;
    p[k].fact = facts_of(r->prog, &all[k], &p[k].nfact);
    if (!p[k].fact) {
      while (k--) base_free(p[k].fact);
      base_free(p);
      return NULL;
    }
  }
  *done = p ? n : 0;
  return p;
}

static SimResult *result(Run *r) {
  SimResult *s = base_realloc(NULL, sizeof *s);
  if (!s) return NULL;
  memset(s, 0, sizeof *s);
  s->report = report_all(r, r->fault, r->nfault, &s->nreport);
  s->note = report_all(r, r->note, r->nnote, &s->nnote);
  if (!s->report || !s->note || !add_lines(r, s)) {
    sim_free(s);
    return NULL;
  }
  s->requests = r->requests;
  r->requests = NULL;
  s->timing = r->timing;
  r->timing = (SimTiming){0};
  if (r->norder) qsort(r->order, r->norder, sizeof *r->order, by_cluster);
  s->order = r->order;
  s->norder = r->norder;
  r->order = NULL;
  r->norder = 0;
  s->turns = r->turns;
  s->instructions = r->instructions;
  s->mmas = r->mmas;
  s->granules = r->granules;
  s->early = r->early;
  s->ctas = (r->merged - r->first) * (uint64_t)r->prog->ncta;
  s->stopped = r->stopped;
  s->cut = r->cut;
  s->output = r->text.p;
  s->noutput = r->text.n;
  r->text.p = NULL;
  return s;
}

static void print_program(Ctx *cx, const SimProg *p) {
  Buf text = {0};
  decode_dump(cx, p, &text);
  fwrite(text.p, 1, text.n, stderr);
  buf_free(&text);
}

// Prepares the run of a single cluster with an event log.
static void watch(Ctx *cx, Run *r) {
  r->opts->log->start(cx, r->prog, r->opts->machine, &r->tape);
  r->oom = !r->tape;
}

SimResult *sim_run(Ctx *cx, const Launch *l, const SimOpts *o) {
  uint64_t start = base_nanotime();
  bool single = o->machine || (o->steps && o->unit >= 0 && !o->all);
  if (!single) fits_all(cx, l);
  SimProg *prog = decode_make(cx, l);
  prog->hooks = o->hooks;
  prog->hooks->launch.decoded(cx, prog);
  if (base_debug("sim")) print_program(cx, prog);
  Run r = {.opts = o, .prog = prog, .guard = guard_now};
  r.max_reports = o->max_reports > 0 ? o->max_reports : 16;
  // nothing runs if the grid is empty, or if MMA registers are misused
  bool misused = prog->fn->flight.kind, none = prog->nunit == 0 || misused;
  bool one = !none && single && (o->machine || !prog->common);
  int64_t unwritten = 0;
  uint64_t unit = o->unit > 0 ? (uint64_t)o->unit : 0;
  r.begun = r.merged = r.first = one ? unit : 0;
  r.total = one ? r.first + 1 : prog->nunit;
  r.most = prog->common ? fits_resident(prog) : 0;
  r.fault = arena_zero(cx, &cx->scratch,
                       (size_t)r.max_reports * sizeof *r.fault);
  r.note = arena_zero(cx, &cx->scratch, MAX_NOTES * sizeof *r.note);
  r.stat = arena_zero(cx, &cx->scratch, r.prog->nstat * sizeof *r.stat);
  pthread_mutex_init(&r.lock, NULL);
  pthread_mutex_init(&r.atomics, NULL);
  pthread_cond_init(&r.moved, NULL);
  prog->hooks->launch.start(cx, prog, !one,
                            !single && !none && (!o->steps || o->unit < 0));
  r.requests = o->record ? base_zeros(sizeof *r.requests) : NULL;
  if (o->machine && !none) watch(cx, &r);
  bool ok = (r.requests || !o->record) && !r.oom &&
            (misused || run_all(&r));
  if (ok && r.tape) ok = o->log->play(r.tape, goes_on, &r, &r.timing);
  if (guard_ended()) r.stopped = true;
  if (misused) simreport_flight(prog, &r.fault[r.nfault++]);
  if (ok && !r.stopped) prog->hooks->launch.find(prog, merge_fault, &r);
  bool whole = ok && !r.stopped && !r.nfault && !none;
  // With an event log, only one cluster runs. It writes only a part of the
  // outputs, so elements that it does not write are no fault.
  if (whole && !r.tape)
    unwritten = prog->hooks->launch.unwritten(prog, one ? NULL : merge_fault,
                                              &r);
  SimNonfinite origin = {0}, inexact = {0};
  if (whole && !r.nfault) {
    prog->hooks->launch.origin(prog, &r.origins, &origin);
    prog->hooks->launch.inexact(&r.inexact, &inexact);
  }
  SimParts parts = {0};
  if (whole && !r.nfault) prog->hooks->launch.parts(cx, prog, &parts);
  r.nfault = prog->hooks->launch.arrange(prog, r.fault, r.nfault);
  prog->hooks->launch.stop(prog);
  if (prog->common) tensormap_ops_free(prog->common->maps);
  SimResult *s = ok ? result(&r) : NULL;
  if (s) s->nonfinite = origin, s->inexact = inexact;
  while (r.done) {
    SimOut *next = r.done->next;
    out_free(r.done);
    r.done = next;
  }
  for (size_t k = 0; k < r.norder; k++) orders_free(&r.order[k]);
  base_free(r.order);
  base_free(r.text.p);
  if (r.requests) record_free(r.requests);
  base_free(r.requests);
  timing_free(&r.timing);
  if (r.tape) o->log->stop(r.tape);
  pthread_cond_destroy(&r.moved);
  pthread_mutex_destroy(&r.atomics);
  pthread_mutex_destroy(&r.lock);
  if (!s) ctx_fail(cx, ERR_MEMORY, "out of memory in the simulator");
  s->left = unwritten;
  s->parts = parts;
  s->empty = prog->hooks->launch.empty(cx, prog);
  s->seconds = (double)(base_nanotime() - start) * 1e-9;
  return s;
}
// SPDX-License-Identifier: MIT
