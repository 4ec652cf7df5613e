// Finds blocks of elements that an MMA multiplies with the scale factor of
// another block. A tile may take the factors of other rows, of another part of
// K, or of another stage of the ring. No single access is wrong in this case.
//
// The check infers from the kernel's MMAs which factor belongs to a block. It
// assumes that all MMAs take a block's factor from one address, and that no
// other block uses this address. Bulk copies load blocks and factors from
// global memory. Therefore each 16 bytes of shared memory, and each column of
// tensor memory that tcgen05.cp fills, have an origin: an address in global
// memory. An MMA yields pairs: the origin of a block and the origin of its
// factor. A launch is reported if
// - a factor belongs to blocks in different rows or parts of K (matrices of a
//   batch may share factors);
// - a block has two factors with different values; or
// - a block is inside its tensor, but its factor is outside of the factors'
//   tensor.
// Bytes that threads store have no origin, so the check ignores them. It also
// ignores operands whose M or N is contiguous, sparse operands, and A in tensor
// memory.
#include "watch/scales.h"

#include "decode/fragments.h"
#include "hardware/descriptor.h"
#include "watch/mix.h"
#include "watch/own.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 21 };  // maximum number of recorded pairs

// The origin of a byte. `at` is its address in global memory; 0: unknown;
// OUTSIDE: the byte is outside its tensor, and was read as zero. `place` is the
// position of the byte in its matrix.
enum { OUTSIDE = 1 };
typedef struct Origin {
  uint64_t at, place;
  int32_t mem;
} Origin;

typedef struct Pair {
  Origin block, factor;
  uint32_t src;            // line of the MMA
  uint8_t value;           // bits of the factor
} Pair;

// All pairs of a launch (the origins of a block and of its factor), in a hash
// table with open addressing.
typedef struct Pairs {
  pthread_mutex_t lock;
  Pair *pair;
  uint32_t n, cap;
} Pairs;

// The origins of data in a cluster. piece[k] is the origin of 16 bytes of
// shared memory. `cell` has the origin of the first byte of each cell of tensor
// memory.
typedef struct Origins {
  Origin *piece;
  Origin (*cell)[TMEM_LANES][TMEM_COLUMNS];
} Origins;

static Pairs *pairs_of(const SimProg *p) { return p->own[OWN_SCALES]; }
static Origins *origins_of(const SimCluster *c) { return c->own[OWN_SCALES]; }

void scales_start(Ctx *cx, SimProg *p) {
  bool some = false;
  for (uint32_t k = 0; k < p->nins; k++)
    some |= p->ins[k].op == OP_TCMMA &&
            ((const SimTensorIns *)p->ins[k].x)->u.scales;
  if (!some) return;
  Pairs *t = arena_zero(cx, &cx->scratch, sizeof *t);
  pthread_mutex_init(&t->lock, NULL);
  p->own[OWN_SCALES] = t;
}

void scales_stop(SimProg *p) {
  Pairs *t = pairs_of(p);
  if (!t) return;
  pthread_mutex_destroy(&t->lock);
  base_free(t->pair);
  t->pair = NULL;
}

// ---- origins ----

static size_t pieces(const SimProg *p) {
  return (size_t)p->ncta * (size_t)p->smem_bytes / PIECE;
}

bool scales_init(SimCluster *c) {
  const SimProg *p = c->prog;
  if (!pairs_of(p)) return true;
  Origins *o = c->own[OWN_SCALES] = base_zeros(sizeof *o);
  if (!o) return false;
  o->piece = base_zeros(pieces(p) * sizeof *o->piece);
  o->cell = base_zeros((size_t)p->ncta * sizeof *o->cell);
  return o->piece && o->cell;
}

void scales_reset(SimCluster *c) {
  const SimProg *p = c->prog;
  Origins *o = origins_of(c);
  if (!o) return;
  memset(o->piece, 0, pieces(p) * sizeof *o->piece);
  memset(o->cell, 0, (size_t)p->ncta * sizeof *o->cell);
}

void scales_free(SimCluster *c) {
  Origins *o = origins_of(c);
  if (!o) return;
  base_free(o->piece);
  base_free(o->cell);
  base_free(o);
}

bool scales_wanted(const SimCluster *c) { return origins_of(c) != NULL; }

void scales_came(SimCluster *c, uint32_t addr, const SimOrigin16 *from) {
  Origin *o = &origins_of(c)->piece[addr / PIECE];
  if (!from->mem) *o = (Origin){.at = OUTSIDE};
  else
    *o = (Origin){(uint64_t)(uintptr_t)from->mem->p + (uint64_t)from->at,
                  (uint64_t)from->row << 32 ^ (uint64_t)from->column,
                  from->mem->index};
}

void scales_forget(const SimCluster *c, uint32_t addr, uint32_t bytes) {
  Origins *o = origins_of(c);
  if (!o || !bytes) return;
  size_t first = addr / PIECE, end = (addr + bytes - 1) / PIECE + 1;
  memset(o->piece + first, 0, (end - first) * sizeof *o->piece);
}

// Returns the origin of the byte that is `more` bytes after a byte with origin
// o.
static Origin behind(Origin o, uint32_t more) {
  if (o.at > OUTSIDE) o.at += more, o.place += more;
  return o;
}

typedef struct Addresses { uint32_t *at; int n; } Addresses;

static void add_address(void *ud, uint32_t at) {
  Addresses *l = ud;
  l->at[l->n++] = at;
}

static uint32_t home_of(const SimCluster *c, int cta) {
  return (uint32_t)cta * (uint32_t)c->prog->smem_bytes;
}

void scales_copied(SimCluster *c, const SimTensorIns *x, uint64_t desc, int cta,
                   int column) {
  // CELLS: cells in a piece. ROWS: maximum number of pieces.
  enum { CELLS = 4, ROWS = TMEM_LANES * 2 };
  Origins *o = origins_of(c);
  uint32_t at[ROWS];
  Addresses l = {at, 0};
  Place place = place_of(desc, true);
  if (!o) return;
  each_piece(&place, false, x->bytes, 1, 0, x->rows, add_address, &l);
  for (int k = 0; k < x->pieces; k++) {
    const Origin *from = &o->piece[(home_of(c, cta) + at[x->piece[k]]) / PIECE];
    Origin *to = &o->cell[cta][x->at[k] / TMEM_COLUMNS]
                         [column + x->at[k] % TMEM_COLUMNS];
    for (uint32_t n = 0; n < CELLS; n++) to[n] = behind(*from, n * 4);
  }
}

// ---- pairs ----

// Returns the entry of pair p in a table of capacity `cap`, or a free entry for
// it.
static Pair *find(Pair *table, uint32_t cap, const Pair *p) {
  uint64_t h = watch_mix(p->block.at) + p->factor.at;
  for (uint32_t k = (uint32_t)watch_mix(h);; k++) {
    Pair *q = &table[k & (cap - 1)];
    if (!q->block.at ||
        (q->block.at == p->block.at && q->factor.at == p->factor.at))
      return q;
  }
}

// Grows the table if necessary, so that another pair fits. Returns false if
// there are too many pairs, or if memory is exhausted.
static bool grow(Pairs *t) {
  if (t->n * 2 < t->cap) return true;
  uint32_t cap = t->cap ? t->cap * 2 : 1 << 12;
  Pair *more = t->n < MOST ? base_zeros(cap * sizeof *more) : NULL;
  if (!more) return false;
  for (uint32_t k = 0; k < t->cap; k++)
    if (t->pair[k].block.at) *find(more, cap, &t->pair[k]) = t->pair[k];
  base_free(t->pair);
  t->pair = more;
  t->cap = cap;
  return true;
}

static void add(Pairs *t, const Pair *p) {
  if (!grow(t)) return;
  Pair *q = find(t->pair, t->cap, p);
  if (!q->block.at) *q = *p, t->n++;
  else if (p->src < q->src) q->src = p->src;
}

// Records, for row m of operand x, the pairs of a block's origin and the origin
// of its factor.
static void add_row(const SimCluster *c, const SimIns *i,
                    const SimScaledRows *x, int m) {
  const Origins *o = origins_of(c);
  const AtomMma *r = x->x->row;
  Place place = place_of(x->desc, true);
  int n = x->x->u.scales, packed = r->flags & AMF_BYTE ? 1 : 2;
  uint32_t each = (uint32_t)(r->k / packed / n);  // bytes of a block
  uint32_t home = home_of(c, x->home + m / x->rows);
  const Origin *cell = &o->cell[x->cta][m % 32]
                               [(int)(x->sf & 0xffff) + m / 32];
  for (int k = 0; k < n; k++) {
    uint32_t at = (uint32_t)k * each;
    uint32_t addr = home + piece_of_row(&place, (uint32_t)(m % x->rows),
                                        at / PIECE);
    Pair p = {.src = i->src, .value = x->factor[(m - x->first) * n + k],
              .block = behind(o->piece[addr / PIECE], at % PIECE),
              .factor = behind(*cell, (uint32_t)(x->byte + k))};
    if (p.block.at > OUTSIDE && p.factor.at) add(pairs_of(c->prog), &p);
  }
}

void scales_scaled(SimWarp *w, const SimIns *i, const SimScaledRows *x) {
  SimCluster *c = w->cluster;
  if (!origins_of(c) || !x->desc || x->x->u.sparse ||
      x->x->row->mn_major[x->which])
    return;
  pthread_mutex_lock(&pairs_of(c->prog)->lock);
  for (int m = x->first; m < x->end; m++) add_row(c, i, x, m);
  pthread_mutex_unlock(&pairs_of(c->prog)->lock);
}

// ---- at the end of the launch ----

static int order(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

static int by_factor(const void *a, const void *b) {
  const Pair *x = a, *y = b;
  int d = order(x->factor.at, y->factor.at);
  if (!d) d = order(x->block.place, y->block.place);
  return d ? d : order(x->block.at, y->block.at);
}

static int by_block(const void *a, const void *b) {
  const Pair *x = a, *y = b;
  int d = order(x->block.at, y->block.at);
  return d ? d : order(x->factor.at, y->factor.at);
}

static int64_t offset(const SimProg *p, const Origin *o) {
  const SimMem *m = p->mem[p->fn->mem.p[o->mem].ref];
  return (int64_t)(o->at - (uint64_t)(uintptr_t)m->p);
}

static void put(const SimProg *p, SimWrongScale *out, const Pair *x,
                const Pair *y) {
  const Pair *pair[2] = {x, y};
  if (out->src) {
    out->n++;
    return;
  }
  out->src = x->src < y->src ? x->src : y->src;
  out->n = 1;
  for (int k = 0; k < 2; k++) {
    const Pair *q = pair[k];
    out->block[k] = q->block.mem;
    out->block_at[k] = offset(p, &q->block);
    bool outside = q->factor.at == OUTSIDE;
    out->factor[k] = outside ? -1 : q->factor.mem;
    out->factor_at[k] = outside ? 0 : offset(p, &q->factor);
  }
}

void scales_find(Ctx *cx, const SimProg *p, SimWrongScale *out) {
  Pairs *t = pairs_of(p);
  if (!t || !t->n) return;
  uint32_t n = 0;
  Pair *all = NEW(cx, Pair, t->n);
  for (uint32_t k = 0; k < t->cap; k++)
    if (t->pair[k].block.at) all[n++] = t->pair[k];
  qsort(all, n, sizeof *all, by_factor);
  for (uint32_t k = 0; k < n && all[k].factor.at == OUTSIDE; k++)
    put(p, out, &all[k], &all[k]);
  for (uint32_t k = 1; k < n && !out->src; k++) {
    const Pair *x = &all[k - 1], *y = &all[k];
    if (x->factor.at == y->factor.at && (x->block.mem != y->block.mem ||
                                         x->block.place != y->block.place))
      put(p, out, x, y);
  }
  if (out->src) return;
  qsort(all, n, sizeof *all, by_block);
  for (uint32_t k = 1; k < n; k++)
    if (all[k - 1].block.at == all[k].block.at &&
        all[k - 1].value != all[k].value)
      put(p, out, &all[k - 1], &all[k]);
}
// SPDX-License-Identifier: MIT
