// Passes the events of the simulated machine (sim/hooks.h) to the checks that
// need them.
#include "watch/watch.h"
#include "watch/wrong_sums.h"

#include "hardware/access.h"
#include "sim/tensormap_ops.h"
#include "watch/assertions.h"
#include "watch/cover.h"
#include "watch/cta_race.h"
#include "watch/deadlock.h"
#include "watch/debugger.h"
#include "watch/exact.h"
#include "watch/finite.h"
#include "watch/hb_grid.h"
#include "watch/livelock.h"
#include "watch/meant.h"
#include "watch/overflow.h"
#include "watch/peer.h"
#include "watch/race_records.h"
#include "watch/root_cause.h"
#include "watch/same_reads.h"
#include "watch/scales.h"
#include "watch/shadow.h"
#include "watch/tensor.h"
#include "watch/undefined.h"
#include "watch/unread.h"
#include "watch/unwritten.h"
#include "watch/waits.h"

#include <string.h>

// ---- the launch and its clusters ----

static void decoded(Ctx *cx, SimProg *p) {
  p->watched = finite_wanted(p->fn);
  exact_rules(cx, p);
  for (uint32_t k = 0; k < p->nins && p->watched; k++) {
    SimIns *i = &p->ins[k];
    if (!i->watch) i->watch = (uint8_t)finite_rule(i);
  }
  overflow_find(cx, p);
  finite_guards(cx, p);
}

static void start(Ctx *cx, SimProg *p, bool all, bool whole) {
  p->own[OWN_FINITE] = all ? finite_make(cx, p) : NULL;
  if (p->common) hb_grid_start(cx, p);
  else cta_race_start(cx, p);
  p->own[OWN_UNWRITTEN] = unwritten_make(cx, p);
  if (!whole) return;
  cover_start(cx, p);
  unread_start(cx, p);
  same_reads_start(cx, p);
  scales_start(cx, p);
}

static bool ended(const SimProg *p) { return p->launch->debug->over; }

static int64_t unwritten(const SimProg *p, SimFound *found, void *ud) {
  return unwritten_find(p, p->own[OWN_UNWRITTEN], found, ud);
}

static void origin(const SimProg *p, const SimOrigins *all,
                   SimNonfinite *out) {
  const SimOrigin *o = finite_first(p, p->own[OWN_FINITE], all);
  if (o) *out = finite_facts(o);
}

static void inexact(const SimOrigins *all, SimNonfinite *out) {
  const SimOrigin *o = exact_first(all);
  if (o) *out = finite_facts(o);
}

static void parts(Ctx *cx, SimProg *p, SimParts *out) {
  out->nunread = unread_find(cx, p, out->unread);
  out->ngap = cover_find(cx, p, out->gap);
  same_reads_find(cx, p, &out->twins);
  scales_find(cx, p, &out->scale);
  wrong_sums_find(cx, p, &out->wrong);
}

static void stop(SimProg *p) {
  scales_stop(p);
  race_records_free(p);
  hb_grid_free(p);
}

static bool make(SimCluster *c) {
  return shadow_init(c) && hb_cluster_init(c) && peer_init(c) &&
         tensor_init(c) && scales_init(c);
}

static void reset(SimCluster *c) {
  shadow_reset(c);
  hb_cluster_reset(c);
  peer_reset(c);
  tensor_reset(c);
  scales_reset(c);
}

static void end(SimCluster *c) {
  c->out->granules = shadow_of(c)->maxgran;
  if (c->prog->launch->debug) debugger_end(c);
  unread_add(c);
  race_records_fold(c);
}

static void release(SimCluster *c) {
  shadow_free(c);
  hb_cluster_free(c);
  peer_free(c);
  tensor_free(c);
  race_records_release(c);
  scales_free(c);
}

// ---- bytes of global memory that were never written ----

static bool all_defined(const uint8_t *bits, int64_t at, int n) {
  for (int64_t k = at; k < at + n; k++)
    if (!(__atomic_load_n(&bits[k / 8], __ATOMIC_RELAXED) >> (k & 7) & 1))
      return false;
  return true;
}

// Reports a fault if lane l reads undefined bytes of an object for which this
// is not allowed.
static void check_defined(const Access *x, int l) {
  const SimMem *m = x->m;
  if (!m->defined || m->lax || all_defined(m->defined, x->at[l], x->bytes))
    return;
  int64_t bit = x->agent ? x->at[l] * 8 : simprog_bit(m, x->off[l]);
  SimFault *f = simreport_fault(x->w, SIM_UNINIT, l, x->i->src, 0, m->index,
                                bit / m->own);
  if (!f || x->agent) return;
  f->access.write = x->write;
  f->access.size = x->bytes;
}

// Records that the bytes that lane l writes are defined. Uses atomic
// operations, because other host threads write neighbouring bits.
static void set_defined(const Access *x, int l) {
  uint8_t *bits = x->m->defined;
  int64_t end = x->at[l] + x->bytes;
  for (int64_t k = x->at[l]; bits && k < end;) {
    int64_t upto = (k | 7) + 1;
    if (upto > end) upto = end;
    unsigned m = ((1u << (upto - k)) - 1) << (k & 7);
    uint8_t old = __atomic_load_n(&bits[k / 8], __ATOMIC_RELAXED);
    if ((old & m) != m)
      __atomic_fetch_or(&bits[k / 8], (uint8_t)m, __ATOMIC_RELAXED);
    k = upto;
  }
}

// ---- values ----

static void computed(SimWarp *w, const SimIns *i) {
  if (i->op == OP_DIV || i->op == OP_MOD) undefined_divide(w, i);
  else if (i->jump) overflow_note(w, i);
  if (i->wraps && w->wraps.some) overflow_compare(w, i);
}

// ---- accesses ----

// Checks for races with other clusters. The lanes of mask read, or write the
// bytes at x->data. For an atomic that writes, x->data is NULL.
static void meet_others(Access *x, uint32_t mask) {
  const SimMem *m = x->m;
  if (m->area && m->area->place)
    hb_grid_access(x, mask, x->data, x->stride);
  else if (m->area && m->area->races)
    cta_race_access(x->w, x->i, m, mask, x->at, x->bytes, x->data, x->stride);
}

static bool in_relay(const Access *x) { return x->w->cluster->prog->common; }

// Returns the first granule (unit of shadow memory) of the bytes that lane l
// accesses, or NO_GRANULE if these bytes have none. Splits granules of shared
// memory that are wider than the access.
static int64_t granule(const Access *x, int l) {
  SimCluster *c = x->w->cluster;
  if (x->m->memory == MEMORY_SHARED)
    return shadow_run(c, simmem_address(x, l), (uint32_t)x->bytes).g;
  return shadow_find(c, x->m, x->w->home, x->at[l]);
}

// Records in the bits of `map` which bytes of global memory the lanes access
// (cover.h). The machine's statistics of the access tell whether these bytes
// are adjacent. A cp.async has no such statistics, because it is recorded
// later.
static void cover(const Access *x, uint32_t mask, uint64_t *map) {
  const SimPattern *q = x->w->cluster->pattern;
  bool counted = x->i->op != OP_CPASYNC && x->i->stat >= 0;
  if (counted) q += x->i->stat * 2 + 1;
  if (x->agent)
    cover_run(map, x->m, x->at[__builtin_ctz(mask)], x->bytes);
  else if (counted && mask == FULL && q->mask == FULL && q->y)
    cover_run(map, x->m, x->at[0], LANES * x->bytes);
  else
    cover_lanes(map, x->m, mask, x->at, x->bytes);
}

static void read_global(Access *x, uint32_t mask) {
  bool recorded = areas_recorded(x->m);
  if (!recorded && !x->m->defined && !x->i->sem) return;
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    check_defined(x, l);
    if (recorded) shadow_read_global(x, l);
    if (!x->i->sem) continue;
    hb_cluster_read(x->w, x->i, l, granule(x, l));
    if (in_relay(x)) hb_grid_read(x->w, x->i, l, x->m, x->at[l]);
  }
}

static void read_shared(Access *x, uint32_t mask) {
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    shadow_read(x, l, simmem_address(x, l));
    if (x->i->sem) hb_cluster_read(x->w, x->i, l, granule(x, l));
  }
}

// Reports whether the last write to granule g was a release by lane l of w.
static bool own_release(const SimWarp *w, int l, const SimGran *g) {
  return g->flags & GF_RELEASED && g->warp == w->id && g->lanes == 1u << l;
}

// Reports whether lane l's store, after the stores of the lower lanes of mask,
// leaves memory unchanged. All lanes store the same number of aligned bytes. A
// lower lane therefore stores either all of lane l's bytes or none of them.
static bool is_same(const Access *x, uint32_t mask, int l) {
  const SimCluster *c = x->w->cluster;
  uint32_t addr = simmem_address(x, l);
  const SimGran *q = shadow_at(c, addr);
  bool now = q->warp == x->w->id && q->clk == x->w->clk;
  uint32_t lower = now ? q->lanes & mask & ((1u << l) - 1) : 0;
  while (lower) {
    int k = LANES - 1 - __builtin_clz(lower);
    if (simmem_address(x, k) == addr)
      return memcmp(x->data + k * x->stride, x->data + l * x->stride,
                    (size_t)x->bytes) == 0;
    lower ^= 1u << k;
  }
  return x->same >> l & 1;
}

// Returns the flags of a granule after x writes it. Elements narrower than a
// byte are stored by atomics.
static uint8_t flags_of(const Access *x) {
  if (x->flying) return GF_PENDING;
  return x->m->bits < 8 ? GF_DEFINED | GF_STRONG : shadow_flags(x->i);
}

static void write_shared(Access *x, uint32_t mask) {
  SimCluster *c = x->w->cluster;
  uint8_t flags = flags_of(x);
  for (uint32_t m = mask; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    int64_t g = NO_GRANULE;
    if (x->i->sem) g = granule(x, l);
    bool keep = g >= 0 && own_release(x->w, l, &shadow_of(c)->gran[g]);
    uint32_t addr = simmem_address(x, l);
    shadow_write(x, l, addr, x->data && is_same(x, mask, l), flags);
    scales_forget(c, addr, (uint32_t)x->bytes);
    if (x->i->sem) hb_cluster_write(x->w, x->i, l, g, keep);
  }
}

static void write_global(Access *x, uint32_t mask) {
  const SimMem *m = x->m;
  SimCluster *c = x->w->cluster;
  uint8_t flags = flags_of(x);
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    int64_t g = x->i->sem ? granule(x, l) : NO_GRANULE;
    bool keep = g >= 0 && own_release(x->w, l, &shadow_of(c)->gran[g]);
    if (areas_recorded(m))
      shadow_write_global(x, l, x->data ? x->data + l * x->stride : NULL,
                          flags);
    if (x->i->sem) hb_cluster_write(x->w, x->i, l, g, keep);
    if (x->i->sem && in_relay(x))
      hb_grid_write(x->w, x->i, l, m, x->at[l], keep);
    set_defined(x, l);
  }
}

// Passes an access to global memory to the checks for races between clusters,
// for coverage, and for equal loads.
static void announce(Access *x, uint32_t mask) {
  const SimArea *a = x->m->area;
  if (!a) return;
  meet_others(x, mask);
  if (!x->write) same_reads_add(x, mask);
  uint64_t *map = x->write ? a->stored : a->read;
  if (map) cover(x, mask, map);
  bool atomic = x->i->op == OP_ATOMIC && !x->agent;
  if (x->write && a->maps && !atomic) tensormap_ops_wrote(x, mask);
}

// Handles an access to global memory that an asynchronous operation makes for
// lane l. agent_reads or agent_writes handled the start of the operation.
static void complete(Access *x, int l) {
  bool combines = x->write && !x->data;
  if (combines) check_defined(x, l);
  announce(x, 1u << l);
  if (x->write) set_defined(x, l);
  else check_defined(x, l);
}

static void global_access(Access *x, uint32_t mask) {
  // Stores of elements narrower than a byte are not compared with accesses of
  // other clusters.
  if (!x->write || x->m->bits >= 8) announce(x, mask);
  if (x->i->op == OP_ATOMIC) return;  // see atomic()
  if (x->write) write_global(x, mask);
  else read_global(x, mask);
}

static void shared_access(Access *x, uint32_t mask) {
  if (!x->write) read_shared(x, mask);
  else if (x->i->op != OP_ATOMIC) write_shared(x, mask);
}

static void access(Access *x, uint32_t mask) {
  if (x->agent) {
    complete(x, __builtin_ctz(mask));
    return;
  }
  switch (x->m->memory) {
    case MEMORY_GLOBAL: global_access(x, mask); break;
    case MEMORY_SHARED: shared_access(x, mask); break;
    case MEMORY_REGISTERS: case MEMORY_TENSOR: case MEMORY_NONE: return;
  }
  // after the release, later accesses are in a new epoch
  bool releases = x->write && x->i->sem >= SEM_RELEASE;
  if (releases && x->i->op != OP_ATOMIC) x->w->clk++;
}

// Records that lane l executed an atomic on granule g (a unit of memory).
// `stored` is true if the atomic stored a value.
static void atomic_lane(Access *x, int l, int64_t g, bool stored) {
  SimCluster *c = x->w->cluster;
  bool relay = x->m->memory == MEMORY_GLOBAL && in_relay(x);
  bool keep = shadow_of(c)->gran[g].flags & GF_RELEASED;
  uint8_t flags = shadow_flags(x->i);
  if (x->m->memory == MEMORY_SHARED) {
    uint32_t addr = simmem_address(x, l);
    shadow_defined(x, l, addr);
    hb_cluster_read(x->w, x->i, l, g);
    shadow_write(x, l, addr, false, flags);
  } else {
    check_defined(x, l);
    set_defined(x, l);
    hb_cluster_read(x->w, x->i, l, g);
    if (relay) hb_grid_read(x->w, x->i, l, x->m, x->at[l]);
    shadow_write_global(x, l, NULL, flags);
  }
  if (!x->w->vain && stored) {
    hb_cluster_write(x->w, x->i, l, g, keep);
    if (relay) hb_grid_write(x->w, x->i, l, x->m, x->at[l], true);
  } else if (keep) {
    shadow_of(c)->gran[g].flags |= GF_RELEASED;
  }
}

static void atomic(Access *x, uint32_t mask, uint32_t stored) {
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    int64_t g = granule(x, l);
    if (g != NO_GRANULE) atomic_lane(x, l, g, stored >> l & 1);
  }
  if (x->i->sem >= SEM_RELEASE) x->w->clk++;
}

// ---- asynchronous operations ----

static void agent_reads(Access *x, int l, uint32_t addr, int actor,
                        uint32_t epoch) {
  if (x->m->memory == MEMORY_SHARED) shadow_lend(x, l, addr, actor, epoch);
  else if (areas_recorded(x->m)) shadow_lend_global(x, l, actor, epoch);
}

static void agent_writes(Access *x, int l, uint32_t addr) {
  uint8_t flags = GF_PENDING | (x->agent ? GF_AGENT : 0);
  if (x->m->memory == MEMORY_SHARED) {
    shadow_write(x, l, addr, false, flags);
    scales_forget(x->w->cluster, addr, (uint32_t)x->bytes);
  } else if (areas_recorded(x->m)) {
    shadow_write_global(x, l, NULL, flags);
  }
}

static void landed(SimCluster *c, uint32_t addr, uint32_t bytes, int actor,
                   uint32_t lanes, uint32_t clk, uint32_t src, bool proxy) {
  shadow_set_all(c, addr, bytes, actor, lanes, clk, src,
                 GF_DEFINED | (proxy ? GF_AGENT : 0));
}

static void settled(Access *x, int l, int actor, uint32_t clk) {
  if (!areas_recorded(x->m)) return;
  if (x->write) shadow_settle_global(x, l);
  else shadow_landed_global(x, l, actor, clk);
}

// ---- order ----

static void give(SimWarp *w, uint32_t mask, SimPast *to, SimGive what) {
  switch (what) {
    case GIVE_ALL: hb_cluster_give(w, mask, to); return;
    case GIVE_AGENTS: hb_cluster_give_agents(w, mask, to); return;
    case GIVE_FENCED: hb_cluster_give_fenced(w, mask, to); return;
  }
}

static void take(SimWarp *w, uint32_t mask, const SimPast *from) {
  hb_cluster_take(w, mask, from);
}

static void fence(SimWarp *w, FenceKind kind) {
  if (w->cluster->prog->common) hb_grid_fence(w, kind);
  hb_cluster_fence(w, kind);
}

const SimHooks watch_hooks = {
  .launch = {
    .decoded = decoded, .start = start, .find = cta_race_find,
    .unwritten = unwritten, .parts = parts, .merge = finite_merge,
    .origin = origin, .inexact = inexact, .arrange = root_cause_arrange,
    .empty = meant_empty, .stop = stop},
  .value = {
    .registers = undefined_registers, .loaded = undefined_load,
    .picked = undefined_pick, .shuffled = undefined_shuffle,
    .undefined = undefined_mask, .before_value = undefined_before,
    .after_value = undefined_after, .computed = computed,
    .wrapped = overflow_check, .asserted = assertions_check,
    .nonfinite = finite_note, .fma = finite_fma, .tile = finite_tile},
  .make = make, .reset = reset, .end = end, .free = release,
  .step = debugger_before, .ended = ended, .polled = livelock_ask,
  .reach = peer_reach, .exited = peer_exited, .deadlock = deadlock_tell,
  .stuck = livelock_all, .access = access, .atomic = atomic,
  .agent_reads = agent_reads, .agent_rereads = shadow_lent,
  .agent_writes = agent_writes, .landed = landed,
  .settled = settled, .tensor = tensor_access,
  .tensor_unwritten = tensor_unwritten, .tensor_fence = tensor_fence,
  .wanted = scales_wanted, .came = scales_came,
  .copied = scales_copied, .scaled = scales_scaled, .meet = hb_cluster_meet,
  .give = give, .take = take, .give_turns = hb_cluster_give_turns,
  .forget = hb_cluster_forget, .learn = hb_cluster_learn, .fence = fence,
  .waits = waits_note, .before = hb_cluster_before,
  .before_some = hb_cluster_some, .runs = hb_cluster_runs,
  .knows = hb_grid_knows, .holds = hb_cluster_holds,
};
// SPDX-License-Identifier: MIT
