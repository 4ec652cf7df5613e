// Happens-before inside a cluster: barriers, warp synchronization, release and
// acquire, fences. Implements the causality order of the PTX memory model with
// vector clocks.
//
// An actor is an entry of the vector clocks: a warp, an mbarrier, or the
// asynchronous operations of a warp (decode/actors.h). Warps have the lowest
// actor numbers. Each actor counts epochs; the lanes of a warp share w->clk.
// HbWarp.vc is the vector clock of a warp. For each actor, it has the epoch up
// to which everything happens before all lanes of the warp. Barriers and
// synchronization of whole warps need no other clocks. Accesses that happen
// before single lanes only are stored in rows: vector clocks with an epoch for
// every thread and every other actor. Rows are allocated when a kernel first
// releases, fences, or synchronizes a part of a warp. A lane has up to four
// rows:
//
//   seen     accesses that happen before the lane, in addition to HbWarp.vc
//            (HbWarp.level: lane 0's row is the row of all lanes)
//   pending  accesses whose release a relaxed read observed; a fence adds them
//            to `seen`
//   distant  accesses of other CTAs whose release a relaxed read observed; a
//            fence with cluster scope or wider adds them to `seen`
//   fenced   accesses before the lane's last fence; a later strong write
//            releases them
//
// Each barrier has a row of the accesses that arriving threads released
// (SimPast). Each location that holds a released value has a location record of
// two rows: one for all releases, and one for the releases with cluster scope
// or wider.
//
// hb_grid.c handles the accesses of other clusters.
#include "ir/intrin.h"
#include "sim/bulk.h"
#include "sim/mbar.h"
#include "watch/hb_cluster.h"
#include "watch/shadow.h"

#include <string.h>

// The happens-before records of a cluster, allocated when needed.
typedef struct Order {
  HbWarp *warp;            // for each warp of the cluster
  uint32_t *clocks;        // the vector clocks of the warps
  uint32_t *row;           // see row()
  // location records, for locations to which strong writes released; each
  // consists of two rows
  uint32_t *location, nplace, maxplace;
} Order;

static Order *order_of(const SimCluster *c) { return c->own[OWN_HB_CLUSTER]; }

// Returns the number of bytes of a vector clock with an epoch for each actor.
static size_t clock_bytes(const SimCluster *c) {
  return (size_t)actors_clocked(&c->prog->actors) * sizeof(uint32_t);
}

enum { SEEN, PENDING, DISTANT, FENCED, KINDS };

static size_t threads(const SimCluster *c) {
  return (size_t)c->prog->nall * LANES;
}

// A row is a vector clock with an epoch for each thread and for each actor that
// is not a warp. words returns the length of a row. word returns the index of
// actor u's epoch in a row. For a warp, this is the epoch of lane 0.
static size_t words(const SimProg *p) {
  return (size_t)(p->nall * (LANES - 1) + actors_clocked(&p->actors));
}

static size_t word(const SimProg *p, int u) {
  return (size_t)(u < p->nall ? u * LANES : p->nall * (LANES - 1) + u);
}

// Returns row number k. The rows `seen` of all threads come first, then the
// rows `pending`, `distant` and `fenced` of all threads. A scratch row follows.
static uint32_t *row(SimCluster *c, size_t k) {
  return order_of(c)->row + k * words(c->prog);
}

static uint32_t *lane_row(SimWarp *w, int kind, int l) {
  return row(w->cluster, (size_t)kind * threads(w->cluster) +
                       (size_t)(w->id * LANES + l));
}

static uint32_t *seen_row(SimWarp *w, int l) {
  return lane_row(w, SEEN, hb_of(w)->level ? 0 : l);
}

static uint32_t *work_row(SimCluster *c) {
  return row(c, KINDS * threads(c));
}

static bool no_memory(SimCluster *c) {
  c->oom = c->stop = true;
  return false;
}

static bool make_rows(SimCluster *c) {
  Order *o = order_of(c);
  if (o->row) return true;
  size_t n = KINDS * threads(c) + 1;
  o->row = base_realloc(NULL, n * words(c->prog) * sizeof *o->row);
  return o->row || no_memory(c);
}

// ---- rows ----

static void copy(const SimCluster *c, uint32_t *to, const uint32_t *from) {
  memcpy(to, from, words(c->prog) * sizeof *to);
}

static void join(const SimCluster *c, uint32_t *to, const uint32_t *from) {
  size_t n = words(c->prog);
  for (size_t k = 0; k < n; k++) to[k] = from[k] > to[k] ? from[k] : to[k];
}

// Joins `from` into row `to`. If `some` is false, `to` holds no clock yet, so
// `from` is copied.
static void add(const SimCluster *c, uint32_t *to, bool some,
                const uint32_t *from) {
  if (some) join(c, to, from);
  else copy(c, to, from);
}

// Reports whether no epoch of row r is newer than the epoch in vc. vc has one
// epoch for each actor, r has one for each thread.
static bool within(const SimCluster *c, const uint32_t *r,
                   const uint32_t *vc) {
  const SimProg *p = c->prog;
  uint32_t more = 0;
  int n = actors_clocked(&p->actors);
  for (int u = 0; u < p->nall; u++)
    for (int k = 0; k < LANES; k++) more |= r[u * LANES + k] > vc[u];
  for (int u = p->nall; u < n; u++) more |= r[word(p, u)] > vc[u];
  return !more;
}

// Expands a vector clock, which has an epoch for each actor, into a row, which
// has an epoch for each thread.
static void spread(const SimProg *p, const uint32_t *vc, uint32_t *out) {
  int n = actors_clocked(&p->actors);
  for (int u = 0; u < p->nall; u++)
    for (int k = 0; k < LANES; k++) out[u * LANES + k] = vc[u];
  for (int u = p->nall; u < n; u++) out[word(p, u)] = vc[u];
}

// Writes to `out` the vector clock of everything that happens before lane l,
// including lane l's own accesses.
static void view(SimWarp *w, int l, uint32_t *out) {
  HbWarp *h = hb_of(w);
  SimCluster *c = w->cluster;
  spread(c->prog, h->vc, out);
  if (h->seen >> l & 1) join(c, out, seen_row(w, l));
  out[w->id * LANES + l] = w->clk;
}

// If lane 0's row is the row of all lanes, copies it to the rows of the other
// lanes, so that these rows can change separately.
static void expand(SimWarp *w) {
  HbWarp *h = hb_of(w);
  if (h->seen && h->level)
    for (int l = 1; l < LANES; l++)
      copy(w->cluster, lane_row(w, SEEN, l), lane_row(w, SEEN, 0));
  h->level = false;
}

// Records that the lanes of mask may have acquired accesses since their last
// proxy fences.
static void learn(SimWarp *w, uint32_t mask) {
  HbWarp *h = hb_of(w);
  h->fresh[0] &= ~mask;
  h->fresh[1] &= ~mask;
}

static void acquire(SimWarp *w, int l, const uint32_t *r) {
  HbWarp *h = hb_of(w);
  SimCluster *c = w->cluster;
  if (within(c, r, h->vc)) return;
  learn(w, 1u << l);
  expand(w);
  add(c, lane_row(w, SEEN, l), h->seen >> l & 1, r);
  h->seen |= 1u << l;
}

// Updates w's vector clock from lane 0's row, which is the row of all lanes:
// raises the epoch of each warp u to the smallest epoch of u's lanes.
static void settle(SimWarp *w) {
  HbWarp *h = hb_of(w);
  const SimCluster *c = w->cluster;
  const SimProg *p = c->prog;
  const uint32_t *r = lane_row(w, SEEN, 0);
  for (int u = 0; u < p->nall; u++) {
    uint32_t valid = c->warp[u].valid, least = UINT32_MAX;
    for (int k = 0; k < LANES; k++)
      if (valid >> k & 1 && r[u * LANES + k] < least) least = r[u * LANES + k];
    if (least > h->vc[u]) h->vc[u] = least;
  }
  int n = actors_clocked(&p->actors);
  for (int u = p->nall; u < n; u++)
    if (r[word(p, u)] > h->vc[u]) h->vc[u] = r[word(p, u)];
  h->level = true;
  h->seen = within(c, r, h->vc) ? 0 : FULL;
}

// ---- synchronisation of lanes and warps ----

// Joins the vector clocks of the lanes of mask into the clock of lane `to`.
static void gather(SimWarp *w, uint32_t mask, int to) {
  HbWarp *h = hb_of(w);
  uint32_t *r = lane_row(w, SEEN, to);
  bool some = h->seen >> to & 1;
  for (uint32_t m = h->seen & mask & ~(1u << to); m; m &= m - 1) {
    add(w->cluster, r, some, lane_row(w, SEEN, __builtin_ctz(m)));
    some = true;
  }
}

static void meet_part(SimWarp *w, uint32_t mask) {
  HbWarp *h = hb_of(w);
  SimCluster *c = w->cluster;
  if (!mask || !make_rows(c)) return;
  int first = __builtin_ctz(mask);
  expand(w);
  gather(w, mask, first);
  uint32_t *r = lane_row(w, SEEN, first);
  if (!(h->seen & mask)) memset(r, 0, words(c->prog) * sizeof *r);
  for (uint32_t m = mask; m; m &= m - 1)
    r[w->id * LANES + __builtin_ctz(m)] = w->clk;
  for (uint32_t m = mask & (mask - 1); m; m &= m - 1)
    copy(c, lane_row(w, SEEN, __builtin_ctz(m)), r);
  h->seen |= mask;
  w->clk++;
}

void hb_cluster_meet(SimWarp *w, uint32_t mask) {
  HbWarp *h = hb_of(w);
  learn(w, mask);
  if (mask != w->valid) {
    meet_part(w, mask);
    return;
  }
  h->vc[w->id] = w->clk++;
  if (!h->seen || h->level) return;
  gather(w, FULL, 0);
  settle(w);
}

// ---- releases for other threads ----

static bool make_past(SimCluster *c, SimPast *p) {
  if (!p->row) p->row = base_realloc(NULL, words(c->prog) * sizeof *p->row);
  return p->row || no_memory(c);
}

static void add_past(SimCluster *c, SimPast *to, const uint32_t *from) {
  if (!make_past(c, to)) return;
  add(c, to->row, to->rows, from);
  to->rows = true;
}

static void join_clocks(const SimProg *p, uint32_t *to, const uint32_t *from) {
  int n = actors_clocked(&p->actors);
  for (int u = 0; u < n; u++)
    if (from[u] > to[u]) to[u] = from[u];
}

bool hb_cluster_holds(const SimProg *p, const SimPast *past, int actor,
                      uint32_t clk) {
  return past->vc[actor] >= clk ||
         (past->rows && past->row[word(p, actor)] >= clk);
}

// Adds to `to` the accesses of the lanes of mask up to the current epoch.
static void give_own(SimWarp *w, uint32_t mask, SimPast *to) {
  SimCluster *c = w->cluster;
  if (!make_past(c, to)) return;
  if (!to->rows) memset(to->row, 0, words(c->prog) * sizeof *to->row);
  to->rows = true;
  for (; mask; mask &= mask - 1)
    to->row[w->id * LANES + __builtin_ctz(mask)] = w->clk;
}

// Records in vector clock vc that w arrived at an mbarrier. This record does
// not order memory accesses.
static void give_turn(SimWarp *w, uint32_t *vc) {
  const SimProg *p = w->cluster->prog;
  if (actors_of(&p->actors, ACTOR_TURN)) simmbar_turns(p, vc)[w->id] = w->clk;
}

void hb_cluster_give(SimWarp *w, uint32_t mask, SimPast *to) {
  HbWarp *h = hb_of(w);
  SimCluster *c = w->cluster;
  join_clocks(c->prog, to->vc, h->vc);
  give_turn(w, to->vc);
  uint32_t seen = h->level && h->seen ? 1 : h->seen & mask;
  for (; seen; seen &= seen - 1)
    add_past(c, to, lane_row(w, SEEN, __builtin_ctz(seen)));
  if (mask == w->valid) to->vc[w->id] = w->clk;
  else give_own(w, mask, to);
  w->clk++;
}

static void join_words(uint32_t *to, const uint32_t *from, int n) {
  for (int k = 0; k < n; k++) to[k] = from[k] > to[k] ? from[k] : to[k];
}

// Adds to `to` the epochs that the lanes of mask have acquired of n consecutive
// actors, the first of which is `first`. None of these actors is a warp.
static void give_actors(SimWarp *w, uint32_t mask, int first, int n,
                        uint32_t *to) {
  HbWarp *h = hb_of(w);
  join_words(to, h->vc + first, n);
  size_t at = word(w->cluster->prog, first);
  uint32_t seen = h->level && h->seen ? 1 : h->seen & mask;
  for (; seen; seen &= seen - 1)
    join_words(to, lane_row(w, SEEN, __builtin_ctz(seen)) + at, n);
}

void hb_cluster_give_agents(SimWarp *w, uint32_t mask, SimPast *to) {
  const SimProg *p = w->cluster->prog;
  int end = actors_first(&p->actors, ACTOR_MBAR);
  give_actors(w, mask, p->nall, end - p->nall, to->vc + p->nall);
  give_turn(w, to->vc);
}

void hb_cluster_give_turns(SimWarp *w, uint32_t mask, uint32_t *to) {
  const SimProg *p = w->cluster->prog;
  int n = actors_of(&p->actors, ACTOR_TURN);
  if (!n) return;
  give_actors(w, mask, actors_first(&p->actors, ACTOR_TURN), n, to);
  to[w->id] = w->clk;
}

void hb_cluster_give_fenced(SimWarp *w, uint32_t mask, SimPast *to) {
  HbWarp *h = hb_of(w);
  for (uint32_t m = mask & h->fenced & h->wider; m; m &= m - 1)
    add_past(w->cluster, to, lane_row(w, FENCED, __builtin_ctz(m)));
}

void hb_cluster_learn(SimWarp *w, uint32_t mask, int actor, uint32_t epoch) {
  HbWarp *h = hb_of(w);
  SimCluster *c = w->cluster;
  if (epoch <= h->vc[actor]) return;
  if (mask == w->valid) {
    h->vc[actor] = epoch;
    return;
  }
  if (!make_rows(c)) return;
  uint32_t *r = work_row(c);
  memset(r, 0, words(c->prog) * sizeof *r);
  r[word(c->prog, actor)] = epoch;
  for (; mask; mask &= mask - 1) acquire(w, __builtin_ctz(mask), r);
}

// Makes the lanes of mask, which are only a part of the warp, acquire `from`.
static void take_part(SimWarp *w, uint32_t mask, const SimPast *from) {
  SimCluster *c = w->cluster;
  if (!make_rows(c)) return;
  uint32_t *r = work_row(c);
  spread(c->prog, from->vc, r);
  if (from->rows) join(c, r, from->row);
  for (; mask; mask &= mask - 1) acquire(w, __builtin_ctz(mask), r);
}

void hb_cluster_take(SimWarp *w, uint32_t mask, const SimPast *from) {
  HbWarp *h = hb_of(w);
  SimCluster *c = w->cluster;
  if (mask != w->valid || (h->seen && !h->level)) {
    take_part(w, mask, from);
    return;
  }
  join_clocks(c->prog, h->vc, from->vc);
  learn(w, FULL);
  if (!from->rows && !h->seen) return;
  if (!make_rows(c)) return;
  if (from->rows) add(c, lane_row(w, SEEN, 0), h->seen & 1, from->row);
  settle(w);
}

void hb_cluster_forget(const SimCluster *c, SimPast *p) {
  memset(p->vc, 0, (size_t)actors_clocked(&c->prog->actors) * sizeof *p->vc);
  p->rows = false;
  p->gate = 0;
}

bool hb_cluster_before(SimWarp *w, int l, int u, uint32_t lanes, uint32_t clk) {
  HbWarp *h = hb_of(w);
  if (clk <= h->vc[u]) return true;
  if (u == w->id) lanes &= ~(1u << l);
  if (!lanes) return true;
  if (!(h->seen >> l & 1)) return false;
  const uint32_t *r = seen_row(w, l) + word(w->cluster->prog, u);
  for (; lanes; lanes &= lanes - 1)
    if (r[__builtin_ctz(lanes)] < clk) return false;
  return true;
}

uint32_t hb_cluster_epoch(SimWarp *w, int l, int u) {
  HbWarp *h = hb_of(w);
  uint32_t all = h->vc[u];
  if (!(h->seen >> l & 1)) return all;
  uint32_t own = seen_row(w, l)[word(w->cluster->prog, u)];
  return own > all ? own : all;
}

// ---- release and acquire ----

// Returns the first vector clock of the location record of granule g (a unit of
// memory). If there is no record, creates one if `make` is set, else returns
// NULL.
static uint32_t *location(SimCluster *c, int64_t g, bool make) {
  Order *o = order_of(c);
  Shadow *s = shadow_of(c);
  if (!make_rows(c)) return NULL;
  if (!s->place) {
    size_t all = s->maxgran * sizeof *s->place;
    s->place = base_realloc(NULL, all);
    if (!s->place) return no_memory(c), NULL;
    memset(s->place, 0, all);
  }
  size_t n = 2 * words(c->prog);
  if (!s->place[g] && make) {
    if (o->nplace == o->maxplace) {
      uint32_t cap = o->maxplace ? o->maxplace * 2 : 16;
      uint32_t *p = base_realloc(o->location, cap * n * sizeof *p);
      if (!p) return no_memory(c), NULL;
      o->location = p;
      o->maxplace = cap;
    }
    s->place[g] = ++o->nplace;
  }
  return s->place[g] ? o->location + (s->place[g] - 1) * n : NULL;
}

// Makes the lanes of mask acquire the releases that their earlier relaxed reads
// observed. With `wide`, includes releases by other CTAs.
static void see(SimWarp *w, uint32_t mask, bool wide) {
  HbWarp *h = hb_of(w);
  for (uint32_t m = mask & h->pending; m; m &= m - 1)
    acquire(w, __builtin_ctz(m), lane_row(w, PENDING, __builtin_ctz(m)));
  h->pending &= ~mask;
  for (uint32_t m = wide ? mask & h->distant : 0; m; m &= m - 1)
    acquire(w, __builtin_ctz(m), lane_row(w, DISTANT, __builtin_ctz(m)));
  if (wide) h->distant &= ~mask;
}

void hb_cluster_read(SimWarp *w, const SimIns *i, int l, int64_t g) {
  HbWarp *h = hb_of(w);
  SimCluster *c = w->cluster;
  if (w->vain) return;
  bool acq = i->sem == SEM_ACQUIRE || i->sem == SEM_ACQ_REL;
  uint32_t bit = 1u << l;
  const SimGran *q = g >= 0 ? &shadow_of(c)->gran[g] : NULL;
  bool some = q && q->flags & GF_RELEASED;
  bool far = some && q->warp / c->prog->nwarp != w->id / c->prog->nwarp;
  if (far && i->scope < SCOPE_CLUSTER) some = false;
  uint32_t *r = some ? location(c, g, false) : NULL;
  if (r && far) r += words(c->prog);
  uint32_t *later = far ? &h->distant : &h->pending;
  if (r && acq) {
    acquire(w, l, r);
  } else if (r) {
    add(c, lane_row(w, far ? DISTANT : PENDING, l), *later & bit, r);
    *later |= bit;
  }
  if (acq) see(w, bit, i->scope >= SCOPE_CLUSTER);
}

const uint32_t *hb_cluster_view(SimWarp *w, int l) {
  if (!make_rows(w->cluster)) return NULL;
  view(w, l, work_row(w->cluster));
  return work_row(w->cluster);
}

const uint32_t *hb_cluster_released(SimWarp *w, const SimIns *i, int l) {
  if (i->sem >= SEM_RELEASE) return hb_cluster_view(w, l);
  return hb_of(w)->fenced >> l & 1 ? lane_row(w, FENCED, l) : NULL;
}

void hb_cluster_write(SimWarp *w, const SimIns *i, int l, int64_t g,
                      bool keep) {
  SimCluster *c = w->cluster;
  const uint32_t *r = hb_cluster_released(w, i, l);
  if (g < 0) return;
  uint32_t *to = r ? location(c, g, true) : NULL;
  bool wide = i->scope >= SCOPE_CLUSTER &&
              (i->sem >= SEM_RELEASE || hb_of(w)->wider >> l & 1);
  uint32_t *far = to ? to + words(c->prog) : NULL;
  if (far && wide) add(c, far, keep, r);
  else if (far && !keep) memset(far, 0, words(c->prog) * sizeof *far);
  if (to) add(c, to, keep, r);
  if (to || keep) shadow_of(c)->gran[g].flags |= GF_RELEASED;
}

// Executes a proxy fence: it orders accesses by threads and accesses through
// the async proxy. The fence covers the accesses by the active lanes, and all
// accesses that happen before the fence in these lanes.
static void fence_proxy(SimWarp *w, FenceKind kind) {
  HbWarp *h = hb_of(w);
  int n = actors_clocked(&w->cluster->prog->actors);
  uint32_t spaces = kind == FE_ASYNC ? 3 : kind == FE_ASYNC_GLOBAL ? 2 : 1;
  uint32_t k = h->nfence++ % FENCES;
  for (int s = 0; s < 2; s++) {
    uint32_t *proxied = h->proxied + s * n;
    if (!(spaces >> s & 1)) continue;
    for (int u = 0; u < n; u++)
      if (h->vc[u] > proxied[u]) proxied[u] = h->vc[u];
    h->fresh[s] |= w->active;
  }
  h->fence[k].clk = w->clk++;
  h->fence[k].met = h->vc[w->id];
  h->fence[k].lanes = w->active;
  h->fence[k].spaces = spaces;
}

void hb_cluster_fence(SimWarp *w, FenceKind kind) {
  HbWarp *h = hb_of(w);
  SimCluster *c = w->cluster;
  if (!fence_is_order(kind)) {
    if (kind != FE_MBARINIT) fence_proxy(w, kind);
    return;
  }
  if (!make_rows(c)) return;
  see(w, w->active, kind >= FE_CLUSTER);
  if (kind > FE_CLUSTER) h->sent |= w->active;
  for (uint32_t m = w->active; m; m &= m - 1)
    view(w, __builtin_ctz(m), lane_row(w, FENCED, __builtin_ctz(m)));
  h->fenced |= w->active;
  h->wider &= ~w->active;
  if (kind >= FE_CLUSTER) h->wider |= w->active;
  w->clk++;
}

bool hb_cluster_some(SimWarp *w, int u, uint32_t lanes, uint32_t clk) {
  for (int l = 0; l < LANES; l++) {
    if (hb_cluster_before(w, l, u, lanes, clk)) return true;
    if (!hb_of(w)->seen) return false;
  }
  return false;
}

// Reports whether CTA `rank` is known to run: w has synchronized with one of
// its threads, directly or through other threads, or has acquired a release by
// one of them.
bool hb_cluster_runs(SimWarp *w, int l, int rank) {
  const SimProg *p = w->cluster->prog;
  HbWarp *h = hb_of(w);
  int n = p->nwarp, first = rank * n;
  int turn = actors_first(&p->actors, ACTOR_TURN);
  if (h->started >> rank & 1) return true;
  for (int u = first; u < first + n; u++) {
    if (h->vc[turn + u] || h->vc[u]) {
      h->started |= 1u << rank;
      return true;
    }
    if (hb_cluster_before(w, l, turn + u, 1, 1)) return true;
    for (int k = 0; k < LANES; k++)
      if (hb_cluster_before(w, l, u, 1u << k, 1)) return true;
  }
  return false;
}

bool hb_cluster_init(SimCluster *c) {
  size_t n = (size_t)c->prog->nall;
  Order *o = c->own[OWN_HB_CLUSTER] = base_zeros(sizeof *o);
  if (!o) return false;
  o->warp = base_zeros(n * sizeof *o->warp);
  o->clocks = base_realloc(NULL, 3 * n * clock_bytes(c));
  return o->warp && o->clocks;
}

void hb_cluster_free(SimCluster *c) {
  Order *o = order_of(c);
  if (!o) return;
  base_free(o->warp);
  base_free(o->clocks);
  base_free(o->row);
  base_free(o->location);
  base_free(o);
}

void hb_cluster_reset(SimCluster *c) {
  Order *o = order_of(c);
  Shadow *s = shadow_of(c);
  size_t n = (size_t)actors_clocked(&c->prog->actors);
  if (o->nplace) memset(s->place, 0, s->ngran * sizeof *s->place);
  o->nplace = 0;
  memset(o->clocks, 0, 3 * (size_t)c->prog->nall * clock_bytes(c));
  for (int k = 0; k < c->prog->nall; k++) {
    uint32_t *vc = o->clocks + 3 * (size_t)k * n;
    o->warp[k] = (HbWarp){.vc = vc, .proxied = vc + n};
    c->warp[k].own[OWN_HB_CLUSTER] = &o->warp[k];
  }
}
// SPDX-License-Identifier: MIT
