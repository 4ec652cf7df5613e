// Finds root causes. One missing barrier or wait causes many faults: races in
// both directions on all tensors that it protects, reads of elements that have
// not arrived, and deadlocks. Memory faults that share a line or a tensor form
// a group, together with the deadlocks that they cause. The root cause is the
// first fault of each group in the report.
#include "watch/root_cause.h"

#include "watch/path.h"

#include <stdlib.h>
#include <string.h>

static bool is_race(const SimFault *f, SimClash how) {
  return f->r.kind == SIM_RACE && f->race.how == how && !f->race.proxy;
}

// ---- faults covered by another ----

// Reports whether fault a, about an out-of-range coordinate, explains fault f,
// about the out-of-bounds element at this coordinate.
static bool names(const SimFault *a, const SimFault *f) {
  return a->r.kind == SIM_OOB && f->r.kind == SIM_OOB && a->r.modes &&
         !f->r.modes && a->r.mem == f->r.mem && a->r.src == f->r.src;
}

static bool repeats(const SimFault *a, const SimFault *f) {
  return a->r.way && f->r.way && a->r.kind == f->r.kind &&
         a->r.src == f->r.src && a->r.src2 == f->r.src2 &&
         a->r.mem == f->r.mem && a->race.how == f->race.how;
}

// Reports whether a, a race between warps, explains f, a race between lanes of
// one warp at the same two lines.
static bool covers(const SimFault *a, const SimFault *f) {
  return a->r.kind == SIM_RACE && f->r.kind == SIM_WARPRACE &&
         a->r.mem == f->r.mem &&
         ((a->r.src == f->r.src && a->r.src2 == f->r.src2) ||
          (a->r.src == f->r.src2 && a->r.src2 == f->r.src));
}

// Merges faults that are equal now that path.c has put the accesses of races in
// program order. Returns the number of remaining faults.
static uint32_t joined(SimFault *f, uint32_t n) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t j = 0;
    while (j < kept && !repeats(&f[j], &f[k])) j++;
    if (j == kept) f[kept++] = f[k];
    else f[j].r.count += f[k].r.count;
  }
  return kept;
}

static uint32_t without_twins(SimFault *f, uint32_t n) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < n; k++) {
    uint32_t j = 0;
    while (j < n && !covers(&f[j], &f[k]) && !names(&f[j], &f[k])) j++;
    if (j == n) f[kept++] = f[k];
  }
  return kept;
}

// ---- groups ----

static bool of_memory(const SimFault *f) {
  SimKind k = f->r.kind;
  return k == SIM_RACE || k == SIM_WARPRACE || k == SIM_INFLIGHT ||
         k == SIM_UNINIT || k == SIM_EXIT || k == SIM_START;
}

// Reports whether fault f is about synchronization: threads that wait forever,
// or misuse of a barrier or of an MMA.
static bool of_order(const SimFault *f) {
  SimKind k = f->r.kind;
  return k == SIM_DEADLOCK || k == SIM_BARRIER || k == SIM_WARPGROUP ||
         k == SIM_MBARRIER || k == SIM_REGISTERS;
}

static bool shares_line(const SimFault *a, const SimFault *b) {
  return (a->r.src && (a->r.src == b->r.src || a->r.src == b->r.src2)) ||
         (a->r.src2 && (a->r.src2 == b->r.src || a->r.src2 == b->r.src2));
}

static bool within(const Fn *fn, const SimFault *f, uint32_t *lo,
                   uint32_t *hi) {
  const Src *a = &fn->src.p[f->r.src], *b = &fn->src.p[f->r.src2];
  *lo = a->line < b->line ? a->line : b->line;
  *hi = a->line < b->line ? b->line : a->line;
  return f->r.src && f->r.src2 && a->file == b->file;
}

// Reports whether races a and b, on different tensors, may have the same cause.
// This is the case if the ranges between their two lines overlap: one barrier
// or wait could then separate the accesses of both races.
static bool overlap(const Fn *fn, const SimFault *a, const SimFault *b) {
  uint32_t lo, hi, lo2, hi2;
  return a->r.kind == b->r.kind && a->r.lack == b->r.lack && a->r.src2 &&
         b->r.src2 && fn->src.p[a->r.src].file == fn->src.p[b->r.src].file &&
         within(fn, a, &lo, &hi) && within(fn, b, &lo2, &hi2) && lo < hi2 &&
         lo2 < hi;
}

static bool together(const Fn *fn, const SimFault *a, const SimFault *b) {
  bool near = shares_line(a, b) || (a->r.mem >= 0 && a->r.mem == b->r.mem);
  if (a->r.kind == SIM_BLOCKRACE || b->r.kind == SIM_BLOCKRACE)
    return a->r.kind == b->r.kind && near;
  if (of_memory(a) && of_memory(b)) return near || overlap(fn, a, b);
  return (of_memory(a) || of_order(a)) && (of_memory(b) || of_order(b));
}

// Groups the faults. of[k] becomes the index of the first fault in the group of
// fault k.
static void group(const Fn *fn, const SimFault *f, uint32_t n, uint32_t *of) {
  for (uint32_t k = 0; k < n; k++) of[k] = k;
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t j = 0; j < k; j++) {
      uint32_t a = of[j], b = of[k];
      if (a == b || !together(fn, &f[j], &f[k])) continue;
      for (uint32_t i = 0; i < n; i++)
        if (of[i] == (a > b ? a : b)) of[i] = a < b ? a : b;
    }
}

// ---- conclusions from several faults ----

// Returns a race in which the line of f reads an element before a later write
// overwrites the element, or NULL if there is none.
static const SimFault *filled_later(const SimFault *f, const SimFault *all,
                                    uint32_t n) {
  for (uint32_t k = 0; k < n; k++)
    if (is_race(&all[k], CLASH_WAR) && all[k].r.src2 == f->r.src &&
        all[k].r.mem == f->r.mem)
      return &all[k];
  return NULL;
}

static void conclude(SimFault *all, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    SimFault *f = &all[k];
    const SimFault *later = filled_later(f, all, n);
    bool early = f->r.kind == SIM_INFLIGHT || is_race(f, CLASH_RAW);
    if (early && f->r.lack == LACK_TURN && !later) {
      f->r.lack = LACK_WAIT;
      f->r.before = true;
    }
    if (f->r.kind != SIM_UNINIT || f->r.lack != LACK_WAIT || !later ||
        later->r.lack != LACK_PARITY)
      continue;
    f->r.lack = LACK_PARITY;
    f->late = later->late;
    f->r.waited = later->r.waited;
  }
}

// Reports whether an earlier fault in `all` than f states that line src reads
// f's tensor before the first write of the tensor.
static bool is_early(const SimFault *f, uint32_t src, const SimFault *all) {
  for (const SimFault *u = all; u < f; u++)
    if (u->r.src == src && u->r.mem == f->r.mem && u->r.kind == SIM_UNINIT)
      return true;
  return false;
}

// ---- order of reports ----

static int race_place(const SimFault *f, const SimFault *all) {
  if (f->race.proxy) return 7;
  if (f->race.how == CLASH_RAW && f->race.agent)
    return f->r.lack == LACK_TURN ? 7 : 3;
  bool early = f->race.how == CLASH_WAR && is_early(f, f->r.src2, all);
  return early && (f->r.lack || f->race.agent) ? 9 : 5;
}

// Returns the rank of fault f. Faults with a lower rank are closer to the root
// cause.
static int place_of(const SimFault *f, const SimFault *all) {
  switch ((int)f->r.kind) {
    case SIM_MBARRIER:
      return f->mbar.how == MBAR_OVER    ? 5
             : f->mbar.how >= MBAR_EARLY ? 9
                                         : 0;
    case SIM_BARRIER: return 1;
    case SIM_INFLIGHT:
      if (f->r.lack == LACK_BYTES) return f->access.far ? 6 : 0;
      return f->r.lack == LACK_TURN    ? 7
             : f->r.lack || f->access.open ? 3
             : is_early(f, f->r.src, all)  ? 9
                                           : 5;
    case SIM_RACE: return race_place(f, all);
    case SIM_WARPRACE: return 6;
    case SIM_UNINIT:
      return !f->r.lack ? 8 : f->r.lack == LACK_ROLES ? 6 : 4;
    case SIM_DEADLOCK:
      return f->r.lack == LACK_BYTES || f->deadlock.some ? 2 : 10;
    case SIM_EXIT: return 12;
    case SIM_WARPGROUP: return 11;
    default: return 0;
  }
}

// Returns 1 for a write-after-read or write-after-write race with a known path,
// otherwise 0. Among faults with equal place_of, those with 0 come first: a
// read that comes too early often also causes a race in which a write
// overwrites data before another read.
static int rank_of(const SimFault *f) {
  return f->r.kind == SIM_RACE && f->r.way && f->race.how != CLASH_RAW;
}

// Reports whether f is a write outside of a tensor, or a read outside of a
// tensor in shared memory.
static bool is_wild(const Fn *fn, const SimFault *f) {
  return f->r.kind == SIM_OOB &&
         (f->access.write ||
          (f->r.mem >= 0 && fn->mem.p[f->r.mem].space == SP_SMEM));
}

// Reports whether f is likely a consequence of `wild`, an access outside of a
// tensor. Consequences of such a write are: a read outside of a tensor, a read
// of an unwritten register, and a race in the tensor of `wild`. For example,
// swapped predicates of a copy cause all of these. The only consequence of a
// read outside of a shared tensor is a race in that tensor.
static bool yields(const Fn *fn, const SimFault *f, const SimFault *wild) {
  bool write = wild->access.write;
  if (f->r.kind == SIM_OOB) return write && !f->access.write;
  if (f->r.mem < 0) return false;
  if (f->r.kind == SIM_RACE || (!write && f->r.kind == SIM_WARPRACE))
    return f->r.mem == wild->r.mem;
  return write && f->r.kind == SIM_UNINIT &&
         fn->mem.p[f->r.mem].space == SP_RMEM;
}

// Reports whether the faults of group number `group` come last in the report,
// because all may be consequences of one access outside of a tensor.
static bool is_late(const Fn *fn, const SimFault *f, uint32_t n,
                    const uint32_t *of, uint32_t group) {
  for (uint32_t w = 0; w < n; w++) {
    if (!is_wild(fn, &f[w])) continue;
    bool late = true;
    for (uint32_t k = 0; k < n && late; k++)
      late = of[k] != group || yields(fn, &f[k], &f[w]);
    if (late) return true;
  }
  return false;
}

typedef struct Seat {
  uint32_t group, fault;
  int place, rank;
  bool late;
} Seat;

static int by_seat(const void *a, const void *b) {
  const Seat *x = a, *y = b;
  if (x->late != y->late) return x->late ? 1 : -1;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  if (x->place != y->place) return x->place < y->place ? -1 : 1;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return x->fault < y->fault ? -1 : 1;
}

uint32_t root_cause_arrange(const SimProg *p, SimFault *f, uint32_t n) {
  const Fn *fn = p->fn;
  for (uint32_t k = 0; k < n; k++) path_turn(p, &f[k]);
  n = without_twins(f, joined(f, n));
  if (!n) return 0;
  conclude(f, n);
  uint32_t *of = base_realloc(NULL, n * sizeof *of);
  Seat *seat = base_realloc(NULL, n * sizeof *seat);
  SimFault *all = base_realloc(NULL, n * sizeof *all);
  // If there is no memory for sorting, the faults keep their order.
  bool room = of && seat && all;
  if (room) {
    group(fn, f, n, of);
    for (uint32_t k = 0; k < n; k++)
      seat[k] = (Seat){of[k], k, place_of(&f[k], f), rank_of(&f[k]),
                       is_late(fn, f, n, of, of[k])};
    qsort(seat, n, sizeof *seat, by_seat);
    memcpy(all, f, n * sizeof *f);
  }
  for (uint32_t k = 0, lead = 0; room && k < n; k++) {
    f[k] = all[seat[k].fault];
    if (k && seat[k].group == seat[lead].group) f[k].r.leads = (int32_t)lead;
    else lead = k;
  }
  base_free(of);
  base_free(seat);
  base_free(all);
  return n;
}
// SPDX-License-Identifier: MIT
