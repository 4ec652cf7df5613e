// Asynchronous operations: bulk copies, st.async, and arrivals of cp.async at
// an mbarrier. A thread starts an operation, which completes later. An
// operation that ends at an mbarrier completes at a random time, or when no
// thread can run. An operation in a bulk group completes when its thread waits
// for the group.
//
// Until the operation completes, its destination is marked as pending in the
// shadow memory. An actor (a vector-clock entry that is not a warp) reads the
// source. Only threads that wait for the operation acquire the actor's epoch.
// Thus a write to the source that does not happen after such a wait is reported
// as a race.
#include "sim/async.h"
#include "sim/mbar.h"

#include <string.h>

// ---- operations in flight ----

static void drop(SimCluster *c, size_t k) {
  SimAsync *a = c->agents.p[k];
  c->agents.p[k] = c->agents.p[--c->agents.n];
  c->agents.landing -= !a->grouped;
  base_free(a->span);
  base_free(a);
}

void simasync_reset(SimCluster *c) {
  while (c->agents.n) drop(c, c->agents.n - 1);
}

void simasync_free(SimCluster *c) {
  simasync_reset(c);
  base_free(c->agents.p);
}

static void *no_memory(SimCluster *c) {
  c->oom = c->stop = true;
  return NULL;
}

SimAsync *simasync_start(SimWarp *w, const SimIns *i, int lane, SimRun *run,
                         size_t data) {
  SimCluster *c = w->cluster;
  bool grouped = agent_groups(op_agent((Op)i->op));
  if (c->agents.n == c->agents.max) {
    size_t cap = c->agents.max ? c->agents.max * 2 : 32;
    SimAsync **p = base_realloc(c->agents.p, cap * sizeof *p);
    if (!p) return no_memory(c);
    c->agents.p = p;
    c->agents.max = cap;
  }
  const SimProg *p = c->prog;
  SimAsync *a;
  size_t head = (sizeof *a + data + 7) & ~(size_t)7;
  size_t turns = (size_t)actors_of(&p->actors, ACTOR_TURN);
  size_t tail = !grouped ? turns * sizeof *a->turns : 0;
  a = base_realloc(NULL, head + tail);
  if (!a) return no_memory(c);
  memset(a, 0, head + tail);
  *a = (SimAsync){.w = w, .i = i, .lane = lane, .grouped = grouped,
                  .run = run, .data = a + 1, .open = true,
                  .actor = actors_first(&p->actors, ACTOR_BULK) + w->id};
  if (grouped) {
    a->epoch = ++w->agents.issued;
  } else {
    a->turns = (uint32_t *)(void *)((char *)a + head);
    c->hooks->give_turns(w, 1u << lane, a->turns);
  }
  c->agents.p[c->agents.n++] = a;
  c->agents.landing += !grouped;
  if (c->log && !grouped) a->tape = c->log->agent(w);
  if (c->steps && !grouped) c->steps->started(a);
  return a;
}

// ---- accesses ----

static Access access_of(const SimAsync *a, const SimMem *m, uint32_t bytes) {
  return (Access){.w = a->w, .i = a->i, .m = m, .bytes = (int)bytes,
                  .agent = !a->generic};
}

// actor_of returns the actor (vector-clock entry) that reads the sources.
// epoch_of returns the actor's epoch for threads that wait for the operation.
static int actor_of(const SimAsync *a) {
  return a->mbar ? simmbar_actor(a->w->cluster, a->mbar) : a->actor;
}

static uint32_t epoch_of(const SimAsync *a) {
  return a->mbar ? simmbar_epoch(a->mbar) : a->epoch;
}

void simasync_reads(SimAsync *a, const SimMem *m, uint32_t addr,
                    uint32_t bytes) {
  Access x = access_of(a, m, bytes);
  if (m->mbars) simmem_mbarriers(a->w, a->i, a->lane, addr, bytes, false);
  a->w->cluster->hooks->agent_reads(&x, a->lane, addr, actor_of(a),
                                    epoch_of(a));
}

void simasync_reads_global(SimAsync *a, const SimMem *m, int64_t at, int n) {
  Access x = access_of(a, m, (uint32_t)n);
  x.at[a->lane] = at;
  a->w->cluster->hooks->agent_reads(&x, a->lane, 0, actor_of(a), epoch_of(a));
}

void simasync_writes_global(SimAsync *a, const SimMem *m, int64_t at, int n) {
  Access x = access_of(a, m, (uint32_t)n);
  x.at[a->lane] = at;
  x.write = true;
  a->w->cluster->hooks->agent_writes(&x, a->lane, 0);
}

void simasync_wrote_global(SimAsync *a, const SimMem *m, int64_t at, int n) {
  Access x = access_of(a, m, (uint32_t)n);
  x.at[a->lane] = at;
  x.write = true;
  a->w->cluster->hooks->settled(&x, a->lane, a->w->id, a->w->clk);
}

void simasync_writes(SimAsync *a, const SimMem *m, uint32_t addr,
                     uint32_t bytes) {
  Access x = access_of(a, m, bytes);
  SimSpan *p = base_realloc(a->span, (a->nspan + 1) * sizeof *p);
  if (!p) {
    no_memory(a->w->cluster);
    return;
  }
  a->span = p;
  if (!a->nspan && a->mbar) a->phase = a->mbar->phase;
  p[a->nspan++] = (SimSpan){addr, bytes};
  x.write = true;
  x.ends = a->mbar;
  if (m->mbars) simmem_mbarriers(a->w, a->i, a->lane, addr, bytes, true);
  a->w->cluster->hooks->agent_writes(&x, a->lane, addr);
}

const SimAsync *simasync_to(const SimCluster *c, uint32_t addr) {
  for (size_t k = 0; k < c->agents.n; k++) {
    const SimAsync *a = c->agents.p[k];
    for (size_t s = 0; s < a->nspan; s++)
      if (addr - a->span[s].addr < a->span[s].bytes) return a;
  }
  return NULL;
}

// ---- completion ----

static void fetch(SimAsync *a) {
  if (!a->fetched) a->run(a, ASYNC_FETCH);
  a->fetched = true;
}

// Tells the checks that operation a wrote its destination, as `actor` in
// `epoch`.
static void settle(SimAsync *a, int actor, uint32_t epoch) {
  SimCluster *c = a->w->cluster;
  for (size_t k = 0; k < a->nspan; k++)
    c->hooks->landed(c, a->span[k].addr, a->span[k].bytes, actor, 1, epoch,
                     a->i->src, !a->generic);
}

void simasync_land(SimCluster *c, size_t k) {
  SimAsync *a = c->agents.p[k];
  SimMbar *b = a->mbar;
  fetch(a);
  a->run(a, ASYNC_DELIVER);
  settle(a, simmbar_actor(c, b), simmbar_epoch(b));
  if (a->nspan)
    simmbar_land(b, a->w, a->lane, a->i, true);
  simmbar_turned(c, b, a->turns);
  uint32_t bytes = a->bytes;
  if (c->log)
    c->log->land(a->w, a->tape, &b->past[OPEN].gate,
                 (int)(b->at / c->prog->smem_bytes), bytes);
  drop(c, k);
  c->calm.vain = 0;
  c->moved++;
  c->changed++;
  simmbar_complete(c, b, bytes);
}

// Reports whether a warp waits at the mbarrier of operation a.
static bool awaited(const SimCluster *c, const SimAsync *a) {
  for (int k = 0; k < c->prog->nall; k++)
    if ((c->warp[k].state == SW_MBAR || c->warp[k].polling) &&
        &c->mbars.p[c->warp[k].mbar] == a->mbar)
      return true;
  return false;
}

size_t simasync_first(const SimCluster *c, size_t k) {
  const SimAsync *a = c->agents.p[k];
  for (size_t j = 0; a->turn && j < c->agents.n; j++) {
    const SimAsync *o = c->agents.p[j];
    if (o->w == a->w && o->turn && o->turn < c->agents.p[k]->turn) k = j;
  }
  return k;
}

// Completes a random operation that ends at an mbarrier. With `wanted`,
// considers only operations for which a thread waits. Returns false if there is
// no such operation.
static bool land_any(SimCluster *c, bool wanted) {
  size_t n = 0, pick = 0;
  for (size_t k = 0; k < c->agents.n; k++) {
    const SimAsync *a = c->agents.p[k];
    if (a->grouped || (wanted && !awaited(c, a))) continue;
    if (base_random(&c->rng) % ++n == 0) pick = k;
  }
  if (n) simasync_land(c, simasync_first(c, pick));
  return n > 0;
}

void simasync_chance(SimCluster *c) {
  if (c->agents.landing && base_random(&c->rng) % 16 == 0) land_any(c, false);
}

bool simasync_press(SimCluster *c) {
  return c->agents.landing && (land_any(c, true) || land_any(c, false));
}

// ---- groups ----

void simasync_commit(SimWarp *w) {
  SimCluster *c = w->cluster;
  for (size_t k = 0; k < c->agents.n; k++) {
    SimAsync *a = c->agents.p[k];
    if (a->w != w || !(a->grouped || a->mapped) || !a->open) continue;
    if (!(w->active >> a->lane & 1)) continue;
    a->open = false;
    a->group = w->agents.groups[a->lane];
  }
  for (int l = 0; l < LANES; l++) w->agents.groups[l] += w->active >> l & 1;
}

// Makes load `a` read its tensor map now, because the thread that started the
// load waited for a later bulk group. The load itself completes at its
// mbarrier.
static void drain(SimAsync *a) {
  if (!a->drained) a->run(a, ASYNC_DRAIN);
  a->drained = true;
}

void simasync_wait(SimWarp *w, uint32_t pending, bool read) {
  SimCluster *c = w->cluster;
  for (size_t k = 0; k < c->agents.n;) {
    SimAsync *a = c->agents.p[k];
    int l = a->lane;
    bool mine = a->w == w && !a->open && w->active >> l & 1 &&
                a->group + (uint64_t)pending < w->agents.groups[l];
    if (mine && a->mapped) drain(a);
    if (!mine || !a->grouped) {
      k++;
      continue;
    }
    fetch(a);
    c->hooks->learn(w, 1u << l, a->actor, a->epoch);
    if (read) {
      k++;
      continue;
    }
    a->run(a, ASYNC_DELIVER);
    settle(a, w->id, w->clk);
    // drop() moved another operation to index k, so k is not incremented. The
    // order in which operations of a group complete does not matter.
    drop(c, k);
  }
}

// ---- the end of the cluster ----

// Reports whether the operation ends at an mbarrier of another CTA.
static bool is_far(const SimAsync *a) {
  int64_t size = a->w->cluster->prog->smem_bytes;
  return a->mbar && a->mbar->at / size != a->w->home / size;
}

static void tell_held(SimAsync *a) {
  SimCluster *c = a->w->cluster;
  int64_t size = c->prog->smem_bytes;
  int64_t at = a->nspan ? a->span[0].addr : a->mbar ? a->mbar->at : a->w->home;
  SimFault *f = simreport_fault(a->w, SIM_EXIT, a->lane, a->i->src, 0, -1, 0);
  if (!f) return;
  memcpy(f->gone.cta, c->cta[at / size].id, sizeof f->gone.cta);
  f->gone.landed = true;
  if (a->mbar) simmbar_rounds(c, a->mbar, &f->r);
}

void simasync_end(SimCluster *c) {
  while (c->agents.n) {
    SimAsync *a = c->agents.p[0];
    bool held = a->grouped ? !a->fetched : a->nspan > 0 || is_far(a);
    if (held && !c->stop)
      tell_held(a);
    if (!c->stop && a->grouped) {
      fetch(a);
      a->run(a, ASYNC_DELIVER);
    }
    drop(c, 0);
  }
}
// SPDX-License-Identifier: MIT
