// Races between CTAs in global memory. CTAs run in any order and on many host
// threads, so the records must not depend on this order. The unit of recorded
// memory is a granule. Each granule that the kernel writes has records for each
// class of access: weak or strong, read or write. One record describes the CTA
// with the lowest number that performed such an access. If several CTAs did,
// another record describes the CTA with the highest number. A record contains
// the lowest thread of the CTA that performed the access, the line, and whether
// all stores stored the same value. Memory that a kernel only reads has no
// records.
//
// Strong accesses are atomics, and loads and stores with a memory order, of GPU
// scope or wider. Two accesses race if different CTAs perform them, at least
// one of them writes, and at most one of them is strong. Stores of elements
// narrower than a byte are not checked; a GPU executes them as atomics. Stores
// of the same value do not race in this check, because memory has that value
// after any order of the stores. If reads race with these stores, however, the
// stored values may depend on the order in this run (x = x + 1 by two CTAs).
// The stores then race whatever they stored. The check assumes that nothing
// orders two CTAs; programs with such ordering use hb_grid.c instead. shadow.c
// finds races inside a cluster.
#include "ir/intrin.h"
#include "watch/cta_race.h"
#include "watch/race_records.h"
#include "watch/waits.h"

void cta_race_start(Ctx *cx, SimProg *p) {
  uint64_t n = p->nunit * (uint64_t)p->ncta;
  if (p->nunit == 1 || n > MAX_CTA || p->common) return;
  race_records_start(cx, p);
}

// ---- accesses ----

void cta_race_access(SimWarp *w, const SimIns *i, const SimMem *m,
                     uint32_t mask, const int64_t *at, int bytes,
                     const uint8_t *data, int stride) {
  SimCluster *c = w->cluster;
  const SimArea *a = m->area;
  bool strong = i->sem && i->scope >= SCOPE_GPU;
  bool atomic = i->op == OP_ATOMIC;
  int class = (data || atomic ? WRITE : READ) + (strong ? STRONG_READ : 0);
  int shift = a->shift, size = 1 << shift;
  size_t n = (size_t)bytes >> shift;
  uint64_t x = (w->cta->number + 1) << CTA_AT |
               (uint64_t)w->in << (THREAD_AT + 5) |
               (i->src < MAX_SRC ? (uint64_t)i->src << SRC_AT : 0) |
               (atomic ? MANY : 0);
  // Stored values matter only for races between two plain stores.
  bool values = data && class == WRITE;
  int64_t from = m->p - a->p;
  RaceChunk chunk = {.c = c, .a = a, .class = class};
  size_t entered = SIZE_MAX;
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    uint64_t y = x | (uint64_t)l << THREAD_AT;
    size_t g = (size_t)(from + at[l]) >> shift, end = g + n;
    const uint8_t *value = data + l * stride;
    for (; g < end; g++, value += size) {
      if (g / CHUNK != entered) {
        if (entered != SIZE_MAX) race_leave(&chunk);
        entered = g / CHUNK;
        if (!race_enter(&chunk, entered)) return;
      }
      race_add(&chunk, g % CHUNK, values ? y | race_digest(value, size) : y);
    }
  }
  if (entered != SIZE_MAX) race_leave(&chunk);
}

// ---- races ----

typedef struct Side { int class; uint64_t x; } Side;

static uint64_t cta_of(const Side *s) { return race_cta(s->x) - 1; }
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
  f->blocks.mine = b->class;
  f->blocks.other = a->class;
  waits_blocks(f, p);
  f->r.counter = p->counter;
  simcluster_place(p, cta_of(b), f->r.block);
  simcluster_place(p, cta_of(a), f->blocks.cta);
  const uint8_t *byte = area->p + (g << area->shift);
  for (size_t k = 0; k < p->fn->mem.n; k++) {
    const Mem *m = &p->fn->mem.p[k];
    if (!mem_is_global(m)) continue;
    const SimMem *s = p->mem[m->ref];
    // The report names the argument that contains the byte, or else the raw
    // pointer.
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

// Reports whether different CTAs race at granule g with accesses of classes x
// and y. Sets `pair` to the two accesses.
static bool find_pair(const SimProg *p, const uint64_t *row[RACE_KINDS],
                      int x, int y, size_t g, Side pair[2]) {
  const uint64_t *s = row[x], *u = row[LAST + x];
  const uint64_t *t = row[y], *v = row[LAST + y];
  if (!s || !t || !s[g] || !t[g]) return false;
  const Side a[2] = {{x, s[g]}, {x, u && u[g] ? u[g] : s[g]}};
  const Side b[2] = {{y, v && v[g] ? v[g] : t[g]}, {y, t[g]}};
  for (int k = 0; k < 4; k++) {
    pair[0] = a[k & 1];
    pair[1] = b[k >> 1];
    if (race(p, &pair[0], &pair[1])) return true;
  }
  return false;
}

// Reports whether all plain stores to granule g stored the same value, and
// would do so in any order of the CTAs.
static bool stored_same(const SimProg *p, const uint64_t *row[RACE_KINDS],
                        size_t g) {
  Side pair[2];
  return (row[WRITE][g] & MANY) != MANY &&
         !find_pair(p, row, WRITE, READ, g, pair);
}

// Finds races in chunk n between accesses of class x and accesses of class y.
static void find_in_chunk(const SimProg *p, const SimArea *area, size_t n,
                          const uint64_t *row[RACE_KINDS], int x, int y,
                          SimFound *found, void *ud) {
  bool stores = x == WRITE && y == WRITE;
  if (!row[x] || !row[y] || (x == y && !row[LAST + x])) return;
  for (size_t g = 0; g < CHUNK; g++) {
    Side pair[2];
    SimFault f;
    if (stores && stored_same(p, row, g)) continue;
    if (!find_pair(p, row, x, y, g, pair)) continue;
    fault(p, area, n * CHUNK + g, &pair[0], &pair[1], &f);
    found(ud, &f);
  }
}

static void find_in_page(const SimProg *p, const SimArea *area, size_t n,
                         int x, int y, SimFound *found, void *ud) {
  const uint64_t *row[RACE_KINDS];
  size_t end = n + RACE_PAGE;
  for (; n < end && n < race_chunks(area); n++)
    if (race_rows(area, n, row))
      find_in_chunk(p, area, n, row, x, y, found, ud);
}

void cta_race_find(const SimProg *p, SimFound *found, void *ud) {
  static const uint8_t clash[][2] = {
    {WRITE, WRITE}, {WRITE, READ}, {WRITE, STRONG_WRITE},
    {WRITE, STRONG_READ}, {STRONG_WRITE, READ}};
  for (int k = 0; k < p->narea; k++) {
    const SimArea *a = &p->area[k];
    for (size_t n = 0; n < race_chunks(a); n += RACE_PAGE)
      for (size_t c = 0; c < sizeof clash / sizeof *clash; c++)
        find_in_page(p, a, n, clash[c][0], clash[c][1], found, ud);
  }
}
// SPDX-License-Identifier: MIT
