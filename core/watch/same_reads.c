// Finds launches in which several clusters compute the same sums, and store
// them to different elements. For example, the kernel selects the tiles of B by
// the block's row instead of the block's column. Two clusters are twins if
// their sums are equal: the sums depend on the block only through loads
// (lint/block_sums.c), and each warp loads the same elements in both clusters.
// A launch is reported only if most clusters that load anything have a twin. A
// few blocks at the end of a tensor may repeat loads on purpose. Clusters with
// different z indices are not twins: z usually counts the products of a batch,
// which may share one operand. A cluster that executes only some of the lines
// with loads has no twin, because its sums may be 0 on purpose. Launches with a
// tensor that repeats elements (a stride is 0) are not searched, because they
// have twins on purpose.
//
// The loads of a cluster are recorded as a sum of hashes, which does not depend
// on their order.
#include "decode/areas.h"
#include "decode/footprint.h"
#include "lint/block_sums.h"
#include "sim/cluster.h"
#include "watch/mix.h"
#include "watch/own.h"
#include "watch/same_reads.h"

#include <stdlib.h>

// src: line of the store. sum[k]: hash of the loads of cluster k; 0: the
// cluster loads nothing. sites[k]: set of the lines of these loads; a line is
// bit (line % 64).
typedef struct SameReads {
  uint32_t src;
  uint64_t *sum, *sites;
} SameReads;

static bool has_repeats(Ctx *cx, const SimProg *p) {
  for (size_t k = 0; k < p->fn->mem.n; k++) {
    const Mem *m = &p->fn->mem.p[k];
    if (m->space == SP_GMEM && m->arg != NO_ARG &&
        footprint_repeats(cx, p->launch, m))
      return true;
  }
  return false;
}

void same_reads_start(Ctx *cx, SimProg *p) {
  enum { MOST = 1 << 20 };  // maximum size of a grid that is searched
  Ref r = p->nunit > 1 && p->nunit <= MOST ? block_sums(cx, p->fn) : 0;
  if (r && has_repeats(cx, p)) return;
  if (!r) return;
  SameReads *s = arena_zero(cx, &cx->scratch, sizeof *s);
  s->src = ir_get(p->fn, r)->src;
  s->sum = arena_zero(cx, &cx->scratch, (size_t)p->nunit * sizeof *s->sum);
  s->sites = arena_zero(cx, &cx->scratch, (size_t)p->nunit * sizeof *s->sites);
  p->own[OWN_SAME_READS] = s;
}

void same_reads_add(const Access *x, uint32_t mask) {
  SimCluster *c = x->w->cluster;
  SameReads *s = c->prog->own[OWN_SAME_READS];
  const SimMem *m = x->m;
  if (!s || !m->area) return;
  uint64_t h = m->area->start + (uint64_t)(m->p - m->area->p);
  for (uint32_t k = mask; k; k &= k - 1)
    h = h * 3 + (uint64_t)x->at[__builtin_ctz(k)];
  uint64_t who = (uint64_t)x->w->id << 40 | (uint64_t)x->bytes << 32 | mask;
  s->sum[c->index] += watch_mix(watch_mix(h) + who);
  s->sites[c->index] |= UINT64_C(1) << (x->i->src & 63);
}

static int compare(const void *a, const void *b) {
  const uint64_t *x = *(const uint64_t *const *)a;
  const uint64_t *y = *(const uint64_t *const *)b;
  if (*x != *y) return *x < *y ? -1 : 1;
  return x < y ? -1 : x > y;
}

void same_reads_find(Ctx *cx, const SimProg *p, SimTwins *out) {
  const SameReads *s = p->own[OWN_SAME_READS];
  if (!s) return;
  size_t n = 0;
  const uint64_t **by = NEW(cx, const uint64_t *, (size_t)p->nunit);
  uint64_t sites = 0;
  for (uint64_t k = 0; k < p->nunit; k++) sites |= s->sites[k];
  for (uint64_t k = 0; k < p->nunit; k++) {
    int32_t id[3];
    if (!s->sum[k]) continue;
    simcluster_place(p, k * (uint64_t)p->ncta, id);
    s->sum[k] += watch_mix(s->sites[k] == sites ? (uint64_t)id[2] : ~k);
    by[n++] = &s->sum[k];
  }
  qsort(by, n, sizeof *by, compare);
  // twins: number of clusters with a twin. first: index at which the first
  // group of twins begins.
  size_t twins = 0, first = n;
  for (size_t k = 0, end; k < n; k = end) {
    for (end = k + 1; end < n && *by[end] == *by[k];) end++;
    if (end - k < 2) continue;
    twins += end - k;
    if (first == n || by[k] < by[first]) first = k;
  }
  if (twins <= n / 2) return;
  out->src = s->src;
  for (size_t k = 0; k < 2; k++) {
    uint64_t cluster = (uint64_t)(by[first + k] - s->sum);
    simcluster_place(p, cluster * (uint64_t)p->ncta, out->block[k]);
  }
}
// SPDX-License-Identifier: MIT
