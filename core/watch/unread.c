// Finds elements of shared tensors that a launch stores and never reads. Causes
// are loops over a tile that end early, fragments of the wrong part, or sums
// that lack the partial sums of some warps. A tensor is reported only if all of
// these conditions hold:
// - The kernel's code decides which elements it reads. Data, scalar arguments
//   and the block do not (meant.c).
// - At least one thread that reads the tensor is not among the threads whose
//   stores are never read. (Otherwise, the threads keep their own values in
//   registers.)
// - The accesses are not a scan, in which each thread reads only elements of
//   earlier threads.
// - cute.partial_ok does not name the tensor.
// - At least one unread element is not 0. (Copies fill elements outside of a
//   tensor with zeros.)
// If copies alone fill a tensor and some elements are read, elements that
// nothing has read since the last copy are reported: a loop over tiles ends
// early, or a tile is copied twice. An element counts as read if any element of
// the same vector is read, because vectors may contain more elements than a
// kernel needs.
#include "sim/bulk.h"
#include "watch/cover.h"
#include "watch/meant.h"
#include "watch/own.h"
#include "watch/shadow.h"
#include "watch/unread.h"

#include <string.h>

// The last store to a unit of shared memory in the first block, and the reads
// since that store.
typedef struct SimUnit {
  uint32_t src;              // line
  int32_t writer[2];         // lowest and highest thread that stored the unit
  // lowest and highest thread that read the unit; reader[1] < 0: no thread did
  int32_t reader[2];
} SimUnit;

// A set of threads of a block, with a mask of lanes for each warp.
typedef struct Threads { uint32_t lanes[MAX_WARPS]; } Threads;

// The launch's accesses to shared memory. A unit has as many bytes as the
// narrowest access.
typedef struct SimShared {
  // Sets of units.
  // - stored: units that were stored.
  // - used: units that were read.
  // - lost: units that held a value other than 0 and were never read.
  // - stale: units that were read, but not since the last store of a value
  //   other than 0.
  // - fresh: units that were read since the last store.
  uint64_t *stored, *used, *lost, *stale, *fresh;
  SimUnit *unit;
  bool begun;                // whether a block has set `unit`
  const bool *open;          // the result of meant_shared, or NULL
} SimShared;

void unread_start(Ctx *cx, SimProg *p) {
  size_t n = (size_t)(p->smem_bytes >> p->shift);
  if (!n || ir_has_addresses(p->fn)) return;
  size_t words = (n + 63) / 64 * sizeof(uint64_t);
  SimShared *s = arena_zero(cx, &cx->scratch, sizeof *s);
  s->stored = arena_zero(cx, &cx->scratch, words);
  s->used = arena_zero(cx, &cx->scratch, words);
  s->lost = arena_zero(cx, &cx->scratch, words);
  s->stale = arena_zero(cx, &cx->scratch, words);
  s->fresh = arena_zero(cx, &cx->scratch, words);
  s->unit = arena_zero(cx, &cx->scratch, n * sizeof *s->unit);
  p->own[OWN_UNREAD] = s;
}

// ---- at the end of a cluster ----

static void put_unit(const SimCluster *c, const SimLevel *v, uint32_t g,
                     SimUnit *u) {
  const SimProg *p = c->prog;
  const SimGran *q = &shadow_of(c)->gran[g];
  uint32_t n = (uint32_t)p->nwarp;
  *u = (SimUnit){.src = q->src, .writer = {-1, -1}, .reader = {-1, -1}};
  if (q->warp < p->nwarp && q->lanes) {
    u->writer[0] = q->warp * LANES + __builtin_ctz(q->lanes);
    u->writer[1] = q->warp * LANES + LANES - 1 - __builtin_clz(q->lanes);
  }
  for (uint32_t m = q->readers; m; m &= m - 1) {
    int w = __builtin_ctz(m);
    uint32_t lanes = v->read[(g - v->first) * n + (uint32_t)w].lanes;
    if (!lanes) continue;
    if (u->reader[1] < 0) u->reader[0] = w * LANES + __builtin_ctz(lanes);
    u->reader[1] = w * LANES + LANES - 1 - __builtin_clz(lanes);
  }
}

// Reports whether n bytes are zeros.
static bool is_zero(const uint8_t *p, uint32_t n) {
  while (n && !*p) p++, n--;
  return n == 0;
}

// One 64-bit word, with number `word`, of each set of SimShared.
typedef struct Word {
  size_t word;
  uint64_t stored, used, lost, stale, fresh;
} Word;

static void flush(SimShared *s, const Word *w) {
  if (w->stored) cover_set(&s->stored[w->word], w->stored);
  if (w->used) cover_set(&s->used[w->word], w->used);
  if (w->lost) cover_set(&s->lost[w->word], w->lost);
  if (w->stale) cover_set(&s->stale[w->word], w->stale);
  if (w->fresh) cover_set(&s->fresh[w->word], w->fresh);
}

void unread_add(const SimCluster *c) {
  const SimProg *p = c->prog;
  const SimPages *t = shadow_of(c)->pages;
  SimShared *s = p->own[OWN_UNREAD];
  if (!s) return;
  bool first = !__atomic_exchange_n(&s->begun, true, __ATOMIC_RELAXED);
  uint32_t size = (uint32_t)p->smem_bytes, home = 0;
  Word now = {0};
  for (uint32_t at = 0; at < t->bytes;) {
    const SimLevel *v = &t->level[t->shift[at / SHADOW_PAGE]];
    uint32_t end = (at / SHADOW_PAGE + 1) * SHADOW_PAGE;
    int more = v->shift - p->shift;
    uint64_t unit = ((uint64_t)1 << (1 << more)) - 1;
    if (end > t->bytes) end = t->bytes;
    for (; at < end; at += 1u << v->shift) {
      if (at - home >= size) home += size;
      uint32_t g = v->first + (at >> v->shift), k = (at - home) >> p->shift;
      const SimGran *q = &shadow_of(c)->gran[g];
      uint64_t bits = unit << (k & 63);
      if (k / 64 != now.word) {
        flush(s, &now);
        now = (Word){.word = k / 64};
      }
      if (q->used) now.used |= bits;
      if (!(q->flags & GF_DEFINED)) continue;
      now.stored |= bits;
      if (q->used & READ_SINCE) now.fresh |= bits;
      else if (!is_zero(c->smem + at, 1u << v->shift))
        *(q->used ? &now.stale : &now.lost) |= bits;
      for (uint32_t j = 0; first && !home && j < 1u << more; j++)
        put_unit(c, v, g, &s->unit[k + j]);
    }
  }
  flush(s, &now);
}

// ---- at the end of the launch ----

static bool has(const uint64_t *map, size_t k) {
  return map[k / 64] >> (k & 63) & 1;
}

// Returns the number of bytes of the widest store to object number j. Sets *src
// to the line of the first store.
static int64_t width_of(const SimProg *p, int32_t j, uint32_t *src) {
  enum { BULK = 16 };
  int64_t most = 1;
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    int64_t n = 0;
    if (i->op == OP_ST && ((const SimSide *)i->x)->mem->index == j)
      n = dtype_bits((DType)((const SimSide *)i->x)->type) / 8;
    bool copies = i->op == OP_COPY || i->op == OP_CPASYNC;
    if (copies && ((const SimCopy *)i->x)->dst.mem->index == j)
      n = ((const SimCopy *)i->x)->bytes;
    if (n && !*src) *src = i->src;
    if (i->op == OP_TMALOAD || i->op == OP_BULKLOAD) n = BULK;
    if (n > most) most = n;
  }
  return most;
}

static bool overlaps(const Fn *fn, const Mem *m) {
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *o = &fn->mem.p[k];
    if (o != m && o->space == SP_SMEM && ir_overlaps(o, m)) return true;
  }
  return false;
}

// The threads that access a tensor.
// - lost: threads that stored units that are never read.
// - kept: threads that stored units that are read.
// - read: threads that read units.
typedef struct Sides {
  Threads lost, kept, read;
  // lowest (from) and highest (to) thread that stored unread units ([0]), and
  // that stored read units ([1])
  int32_t from[2], to[2];
  // up: every read unit is only read by threads after the threads that stored
  // it. down: only by threads before them.
  bool up, down;
} Sides;

static void add_threads(Threads *t, const int32_t of[2]) {
  for (int32_t k = of[0]; k >= 0 && k <= of[1]; k++)
    t->lanes[k / LANES] |= 1u << k % LANES;
}

static void add_unit(Sides *s, const SimUnit *u, bool used) {
  add_threads(used ? &s->kept : &s->lost, u->writer);
  if (u->writer[0] >= 0 && u->writer[0] < s->from[used])
    s->from[used] = u->writer[0];
  if (u->writer[1] > s->to[used]) s->to[used] = u->writer[1];
  if (!used) return;
  add_threads(&s->read, u->reader);
  bool known = u->writer[0] >= 0 && u->reader[1] >= 0;
  s->up &= known && u->reader[0] > u->writer[1];
  s->down &= known && u->reader[1] < u->writer[0];
}

// Reports whether every reading thread also stored to the tensor, but nothing
// ever reads the stores of these threads. Such threads keep their own values in
// registers.
static bool is_kept(const Sides *s) {
  bool some = false;
  for (int k = 0; k < MAX_WARPS; k++) {
    if (s->lost.lanes[k] & s->kept.lanes[k]) return false;
    if (s->read.lanes[k] & ~s->lost.lanes[k]) return false;
    some |= s->read.lanes[k] != 0;
  }
  return some;
}

// Reports whether the accesses look like a scan: only later threads read a
// value, and the values of the last threads, which also read, are unread. Also
// accepts a scan in the opposite direction.
static bool is_scan(const Sides *s) {
  bool reads = false;
  for (int k = 0; k < MAX_WARPS; k++)
    reads |= (s->read.lanes[k] & s->lost.lanes[k]) != 0;
  if (!reads) return false;
  return (s->up && s->from[0] > s->to[1]) || (s->down && s->to[0] < s->from[1]);
}

// Reports whether any of the units `from` to end - 1 was never read although it
// held a value other than 0.
static bool is_lost(const SimShared *s, size_t from, size_t end) {
  for (size_t k = from; k < end; k++) {
    if (!(s->lost[k / 64] & ~s->used[k / 64])) k |= 63;
    else if (has(s->lost, k) && !has(s->used, k)) return true;
  }
  return false;
}

// Reports whether object number j is only filled by copies.
static bool is_copied(const SimProg *p, int32_t j) {
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    const SimMem *m = i->op == OP_ST ? ((const SimSide *)i->x)->mem
                    : i->op == OP_COPY ? ((const SimCopy *)i->x)->dst.mem
                                       : NULL;
    if (m && m->index == j) return false;
  }
  return true;
}

// Finds the elements of object number j that nothing has read since the last
// copy.
static bool find_stale(Ctx *cx, SimProg *p, int32_t j, size_t from, size_t end,
                       SimUnread *u) {
  SimShared *s = p->own[OWN_UNREAD];
  const Mem *m = &p->fn->mem.p[j];
  int64_t n = 0;
  *u = (SimUnread){.mem = j, .stale = true};
  for (size_t k = from; k < end; k++) {
    if (!has(s->stale, k) || has(s->fresh, k) || n++) continue;
    u->first = (int64_t)(k - from) * (8 << p->shift) / dtype_bits(m->type);
    u->src = s->unit[k].src;
  }
  u->n = n * (8 << p->shift) / dtype_bits(m->type);
  u->count = (int64_t)(end - from) * (8 << p->shift) / dtype_bits(m->type);
  if (!n || !is_copied(p, j)) return false;
  if (!s->open) s->open = meant_shared(cx, p);
  return !s->open[j];
}

static bool find_unread(Ctx *cx, SimProg *p, int32_t j, SimUnread *u) {
  const Mem *m = &p->fn->mem.p[j];
  SimShared *s = p->own[OWN_UNREAD];
  const SimMem *own = p->mem[m->ref];
  int bits = dtype_bits(m->type);
  if (m->space != SP_SMEM || bits < 8 || m->ptx || m->partial_ok || !own ||
      own->mbars || overlaps(p->fn, m))
    return false;
  size_t from = (size_t)(m->offset >> p->shift);
  size_t end = (size_t)((m->offset + m->count * bits / 8) >> p->shift);
  if (!is_lost(s, from, end)) return find_stale(cx, p, j, from, end, u);
  *u = (SimUnread){.mem = j, .whole = true};
  size_t width = (size_t)(width_of(p, j, &u->src) >> p->shift), n = 0, all = 0;
  if (!width) width = 1;
  Sides side = {.from = {INT32_MAX, INT32_MAX}, .to = {-1, -1}, .up = true,
                .down = true};
  bool lost = false;
  for (size_t k = from; k < end; k++) {
    if (!has(s->stored, k)) continue;
    all++;
    size_t at = k / width * width;
    bool used = false;
    for (size_t i = at; i < at + width && i < end; i++)
      used |= i >= from && has(s->used, i);
    add_unit(&side, &s->unit[k], used);
    u->whole &= !used;
    lost |= !used && has(s->lost, k);
    if (used || n++) continue;
    u->first = (int64_t)(k - from) * (8 << p->shift) / bits;
    if (s->unit[k].src) u->src = s->unit[k].src;
  }
  u->n = (int64_t)n * (8 << p->shift) / bits;
  u->count = (int64_t)all * (8 << p->shift) / bits;
  if (!lost || (!u->whole && (is_kept(&side) || is_scan(&side)))) return false;
  if (!s->open) s->open = meant_shared(cx, p);
  return !s->open[j];
}

int unread_find(Ctx *cx, SimProg *p, SimUnread unread[SIM_GAPS]) {
  int n = 0;
  if (!p->own[OWN_UNREAD]) return 0;
  for (size_t j = 0; j < p->fn->mem.n && n < SIM_GAPS; j++)
    n += find_unread(cx, p, (int32_t)j, &unread[n]);
  return n;
}
// SPDX-License-Identifier: MIT
