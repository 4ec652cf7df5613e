// Races between CTAs in global memory. CTAs run in any order and on many host
// threads, so the records must not depend on the order. Each granule that the
// kernel writes has records for each class of access: one for the CTA with the
// lowest number that performed such an access and, if several CTAs did, one for
// the CTA with the highest number. A record has the lowest thread of the CTA
// that performed the access, the line, and whether all stores stored the same
// value. Memory that a kernel only reads costs nothing.
//
// Strong accesses are atomics, and loads and stores with a memory order, of GPU
// scope or wider. Two accesses race if different CTAs perform them, at least
// one of them writes, and at most one is strong. Stores of elements narrower
// than a byte, which are atomics on a GPU, are not checked. Stores of the same
// value do not race in this check, because memory has that value after any
// order of the stores. The check assumes that nothing orders two CTAs; programs
// with such ordering use hb_grid.c instead. Races inside a cluster are found by
// shadow.c.
#include "ir/intrin.h"
#include "watch/cta_race.h"
#include "watch/waits.h"

#include <string.h>

enum { READ, WRITE, STRONG_READ, STRONG_WRITE };
enum { PAGE = 4096 };

// Fields of a record, from the lowest bit on:
// - the stored value: a digest, or MANY if values differed;
// - the line: an index into Fn.src, or 0 if it is too large;
// - the thread;
// - the CTA, numbered from 1 on; 0: there was no access.
enum { SRC_AT = 16, THREAD_AT = 28, CTA_AT = 38, MANY = 0xffff };
enum { MAX_SRC = 1 << (THREAD_AT - SRC_AT), MAX_CTA = (1 << 26) - 2 };

void cta_race_start(Ctx *cx, SimProg *p) {
  uint64_t n = p->nunit * (uint64_t)p->ncta;
  if (p->nunit == 1 || n > MAX_CTA || p->common) return;
  for (int k = 0; k < p->narea; k++) {
    SimArea *a = &p->area[k];
    if (!a->written) continue;
    size_t npage = (a->bytes >> a->shift) / PAGE + 1;
    for (int q = 0; q < SIM_PLANES; q++) {
      a->first[q] = arena_zero(cx, &cx->scratch, npage * sizeof(uint64_t *));
      a->last[q] = arena_zero(cx, &cx->scratch, npage * sizeof(uint64_t *));
    }
    a->watched = true;
  }
}

static size_t pages(const SimArea *a) {
  return a->watched ? (a->bytes >> a->shift) / PAGE + 1 : 0;
}

void cta_race_free(SimProg *p) {
  for (int k = 0; k < p->narea; k++) {
    SimArea *a = &p->area[k];
    for (size_t i = 0; i < pages(a); i++) {
      for (int q = 0; q < SIM_PLANES; q++) {
        base_free(a->first[q][i]);
        base_free(a->last[q][i]);
      }
    }
  }
}

// ---- accesses ----

static uint64_t *make_page(SimCluster *c, uint64_t **at) {
  uint64_t *none = NULL, *p = base_realloc(NULL, PAGE * sizeof *p);
  if (!p) {
    c->oom = c->stop = true;
    return NULL;
  }
  memset(p, 0, PAGE * sizeof *p);
  if (__atomic_compare_exchange_n(at, &none, p, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return p;
  base_free(p);
  return none;
}

// Returns the page of records at *at, or NULL if memory is exhausted. Creates a
// missing page atomically.
static inline uint64_t *page(SimCluster *c, uint64_t **at) {
  uint64_t *p = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  return p ? p : make_page(c, at);
}

static uint64_t cta(uint64_t x) { return x >> CTA_AT; }

// Merges two records of accesses and returns the record to keep. If both
// records belong to one CTA, keeps the lower record. Otherwise keeps the record
// of the CTA with the lower number or, with `higher`, of the CTA with the
// higher number.
static uint64_t merge(uint64_t x, uint64_t y, bool higher) {
  bool first = x >> SRC_AT < y >> SRC_AT;
  uint64_t kept = first != (higher && cta(x) != cta(y)) ? x : y;
  return ((x ^ y) & MANY) == 0 ? kept : kept | MANY;
}

// Merges access x into the record at *at. If the record and x belong to
// different CTAs, returns the access that was dropped, otherwise 0.
static inline uint64_t put(uint64_t *at, uint64_t x, bool higher) {
  uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED), new;
  do {
    new = old ? merge(old, x, higher) : x;
    if (new == old) break;
  } while (!__atomic_compare_exchange_n(at, &old, new, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  if (!old || cta(old) == cta(x)) return 0;
  return cta(new) == cta(x) ? old : x;
}

static inline void keep(SimCluster *c, const SimArea *a, int plane, size_t g,
                        uint64_t x) {
  uint64_t *first = page(c, &a->first[plane][g / PAGE]);
  uint64_t rest = first ? put(first + g % PAGE, x, false) : 0;
  if (!rest) return;
  uint64_t *last = page(c, &a->last[plane][g / PAGE]);
  if (last) put(last + g % PAGE, rest, true);
}

static uint64_t digest(const uint8_t *data, int n) {
  uint64_t u = 0;
  for (int k = 0; k < n; k += 8) {
    uint64_t part = 0;
    if (n >= 8) memcpy(&part, data + k, 8);
    else if (n == 4) memcpy(&part, data, 4);
    else memcpy(&part, data, n == 2 ? 2 : 1);
    u = (u ^ part) * 0x9e3779b97f4a7c15ull;
  }
  return (u >> 32) % MANY;
}

void cta_race_access(SimWarp *w, const SimIns *i, const SimMem *m,
                     uint32_t mask, const int64_t *at, int bytes,
                     const uint8_t *data, int stride) {
  SimCluster *c = w->cluster;
  const SimArea *a = m->area;
  bool strong = i->sem && i->scope >= SCOPE_GPU;
  bool atomic = i->op == OP_ATOMIC;
  int plane = (data || atomic ? WRITE : READ) + (strong ? 2 : 0);
  int size = 1 << a->shift, n = bytes >> a->shift;
  uint64_t x = (w->cta->number + 1) << CTA_AT |
               (uint64_t)w->in << (THREAD_AT + 5) |
               (i->src < MAX_SRC ? (uint64_t)i->src << SRC_AT : 0) |
               (atomic ? MANY : 0);
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    size_t g = (size_t)(m->p - a->p + at[l]) >> a->shift;
    for (int k = 0; k < n; k++) {
      uint64_t v = data ? digest(data + l * stride + k * size, size) : 0;
      keep(c, a, plane, g + (size_t)k, x | (uint64_t)l << THREAD_AT | v);
    }
  }
}

// ---- races ----

typedef struct Side { int plane; uint64_t x; } Side;

static uint64_t cta_of(const Side *s) { return cta(s->x) - 1; }
static int thread_of(const Side *s) { return (int)(s->x >> THREAD_AT & 1023); }
static uint32_t src_of(const Side *s) {
  return (uint32_t)(s->x >> SRC_AT) & (MAX_SRC - 1);
}

static bool race(const SimProg *p, const Side *a, const Side *b) {
  uint64_t n = (uint64_t)p->ncta;
  return cta_of(a) / n != cta_of(b) / n;
}

static void fault(const SimProg *p, const SimArea *area, size_t g,
                  const Side *a, const Side *b, SimFault *f) {
  memset(f, 0, sizeof *f);
  f->r = (SimReport){
    .kind = SIM_BLOCKRACE, .count = 1, .mem = -1, .leads = -1, .elsewhere = -1,
    .src = src_of(b), .src2 = src_of(a), .other = thread_of(a)};
  simreport_thread(p, thread_of(b), f->r.thread);
  f->blocks.mine = b->plane;
  f->blocks.other = a->plane;
  waits_store(f, p);
  f->r.counter = p->counter;
  simcluster_place(p, cta_of(b), f->r.block);
  simcluster_place(p, cta_of(a), f->blocks.cta);
  const uint8_t *byte = area->p + (g << area->shift);
  for (size_t k = 0; k < p->fn->mem.n; k++) {
    const Mem *m = &p->fn->mem.p[k];
    if (!mem_is_global(m)) continue;
    const SimMem *s = p->mem[m->ref];
    // The report names the argument that contains the byte or, if none does,
    // the raw pointer.
    if (s && s->address) {
      f->r.mem = (int32_t)k;
      f->r.offset = (byte - area->p) * 8 / s->own;
    }
    if (!s || byte < s->p || byte >= s->p + s->bytes) continue;
    f->r.mem = (int32_t)k;
    f->r.offset = (byte - s->p) * 8 / s->own;
    return;
  }
}

static uint64_t last_key(const SimArea *a, size_t n, int plane, size_t g) {
  const uint64_t *p = a->last[plane][n];
  return p && p[g] ? p[g] : a->first[plane][n][g];
}

// Finds races in page n between the access classes x and y. Two stores race
// only if their values differ.
static void find_inpage(const SimProg *p, const SimArea *area, size_t n,
                        int x, int y, SimFound *found, void *ud) {
  const uint64_t *s = area->first[x][n], *t = area->first[y][n];
  if (!s || !t || (x == y && !area->last[x][n])) return;
  bool stores = x == WRITE && y == WRITE;
  for (size_t g = 0; g < PAGE; g++) {
    if (!s[g] || !t[g]) continue;
    if (stores && !((s[g] ^ t[g]) & MANY) && (s[g] & MANY) != MANY) continue;
    Side a[2] = {{x, s[g]}, {x, last_key(area, n, x, g)}};
    Side b[2] = {{y, last_key(area, n, y, g)}, {y, t[g]}};
    for (int k = 0; k < 4; k++)
      if (race(p, &a[k & 1], &b[k >> 1])) {
        SimFault f;
        fault(p, area, n * PAGE + g, &a[k & 1], &b[k >> 1], &f);
        found(ud, &f);
        break;
      }
  }
}

void cta_race_find(const SimProg *p, SimFound *found, void *ud) {
  static const uint8_t clash[][2] = {
    {WRITE, WRITE}, {WRITE, READ}, {WRITE, STRONG_WRITE},
    {WRITE, STRONG_READ}, {STRONG_WRITE, READ}};
  for (int k = 0; k < p->narea; k++) {
    const SimArea *a = &p->area[k];
    for (size_t n = 0; n < pages(a); n++)
      for (size_t c = 0; c < sizeof clash / sizeof *clash; c++)
        find_inpage(p, a, n, clash[c][0], clash[c][1], found, ud);
  }
}
// SPDX-License-Identifier: MIT
