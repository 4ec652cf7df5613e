// Records the distinct accesses of a run to shared memory.
#include "sim/record.h"

#include <string.h>

#include "base/base.h"

// ---- hash table ----

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15ull;
  return h ^ h >> 29;
}

static uint32_t hash(const SimRequest *r) {
  uint64_t h = mix(r->mask, (uint64_t)r->line << 32 | (uint32_t)r->mem);
  for (int l = 0; l < 32; l++) h = mix(h, r->src[l] << 32 ^ r->addr[l]);
  return (uint32_t)(h >> 32);
}

static bool same(const SimRequest *a, const SimRequest *b) {
  return a->line == b->line && a->mem == b->mem && a->mask == b->mask &&
         a->kind == b->kind && a->width == b->width &&
         memcmp(a->addr, b->addr, sizeof a->addr) == 0 &&
         memcmp(a->src, b->src, sizeof a->src) == 0;
}

static void put(SimRequests *all, uint32_t number) {
  uint32_t h = hash(&all->p[number]);
  while (all->slot[h & (all->nslot - 1)]) h++;
  all->slot[h & (all->nslot - 1)] = number + 1;
}

static bool grow(SimRequests *all) {
  uint32_t cap = all->cap ? all->cap * 2 : 64, nslot = cap * 2;
  SimRequest *p = base_realloc(all->p, cap * sizeof *p);
  if (!p) return false;
  all->p = p;
  uint32_t *slot = base_realloc(NULL, nslot * sizeof *slot);
  if (!slot) return false;
  memset(slot, 0, nslot * sizeof *slot);
  base_free(all->slot);
  all->slot = slot;
  all->nslot = nslot;
  all->cap = cap;
  for (uint32_t k = 0; k < all->n; k++) put(all, k);
  return true;
}

bool record_add(SimRequests *all, const SimRequest *r) {
  if (all->n == all->cap && all->n < RECORD_MOST && !grow(all))
    return false;
  uint32_t mask = all->nslot - 1;
  for (uint32_t h = hash(r); all->slot[h & mask]; h++) {
    SimRequest *q = &all->p[all->slot[h & mask] - 1];
    if (!same(q, r)) continue;
    q->count++;
    return true;
  }
  if (all->n == RECORD_MOST) {
    all->lost++;
    return true;
  }
  all->p[all->n] = *r;
  all->p[all->n].count = 1;
  put(all, all->n++);
  return true;
}

// ---- passes ----

SimPasses record_passes(const SimRequest *r, const uint32_t addr[32],
                        SimTurns *turns) {
  uint32_t at[32];
  for (int l = 0; l < 32; l++) at[l] = r->base + addr[l];
  switch (r->kind) {
    case ACCESS_LOAD: case ACCESS_STORE: case ACCESS_CPASYNC: break;
    case ACCESS_CPASYNC_CG:
      return access_cpasync_cg(at, r->src, r->mask, turns);
    case ACCESS_MATRIX:
      return access_matrix(__builtin_popcount(r->mask) / 8, at, turns);
  }
  return access_shared(r->kind, r->width, at, r->mask, turns);
}

void record_free(SimRequests *all) {
  base_free(all->p);
  base_free(all->slot);
  *all = (SimRequests){0};
}
// SPDX-License-Identifier: MIT
