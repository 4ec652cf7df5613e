// Tensor maps that a kernel creates in memory. The kernel copies the map of an
// argument, changes it to describe another tensor, and releases it to the TMA
// proxy. The threads that use the map acquire it. In the simulator, the
// tensor's address in such a map consists of an object number and a byte
// offset.
//
// Copies read a map through a separate proxy. A change to a map is visible to a
// copy after two fences: a release after all writes to the map, and an acquire
// of the map. A thread of the copy's CTA must acquire the map after the release
// and before the copy. Any threads and instructions may write the map.
// Therefore writes are recorded in all memory from which copies take maps.
#include "decode/raw_pointer.h"
#include "sim/async.h"
#include "sim/regs.h"
#include "sim/report.h"
#include "sim/tensormap_ops.h"

#include <string.h>

// A tensor's address in a map holds a byte offset in its WHERE low bits.
enum { WHERE = 40 };
enum { BYTES = 128, KEPT = 8 };

// An operation (fence or write) that `lanes` of a warp executed in epoch clk.
// unit: 1 + index of the cluster; 0: there is no operation.
typedef struct Deed { uint32_t unit, clk, lanes; uint16_t warp; } Deed;
// The latest KEPT fences of a map, either releases or acquires.
typedef struct Fences { Deed deed[KEPT]; uint32_t n; } Fences;
typedef struct Note {      // the writes to a map, and its fences
  uintptr_t at;  // host address of the map's 128 bytes; 0: the entry is unused
  // unit: cluster of the last write, as in Deed. src: line of the last write.
  uint32_t unit, src;
  Deed word[TENSORMAP_WORDS];  // for each word of the map: its last write
  Fences released, acquired;   // fences since the last write
} Note;
// a hash table of maps; `size` is a power of 2
typedef struct SimMaps { Note *note; uint32_t n, size; } SimMaps;

typedef uint64_t Words[TENSORMAP_WORDS];

static uint64_t address_of(const SimMem *m, int64_t byte) {
  return ((uint64_t)(m->index + 1) << WHERE) + (uint64_t)byte;
}

// Reports the misaligned tensor maps that the lanes of mask access, at elements
// `off` of m. Returns the lanes whose maps are aligned.
static uint32_t aligned(SimWarp *w, const SimIns *i, const SimMem *m,
                        uint32_t mask, const int64_t *off) {
  uint64_t base = m->base + (uintptr_t)m->p;
  for (uint32_t left = mask; left; left &= left - 1) {
    int l = __builtin_ctz(left);
    if ((base + (uint64_t)off[l] * 8) % BYTES == 0) continue;
    mask &= ~(1u << l);
    SimFault *f = simreport_fault(w, SIM_ALIGN, l, i->src, 0, m->index,
                                  off[l] * 64 / m->own);
    if (f) f->access.size = BYTES;
  }
  return mask;
}

// Loads the words of the tensor maps at operand s for the lanes of mask.
// Returns the lanes whose maps were loaded.
static uint32_t load(SimWarp *w, const SimIns *i, const SimSide *s,
                     uint32_t mask, Words *words) {
  int64_t off[LANES];
  SimLaneBuf buf;
  simmem_offsets(w, s, off);
  mask = aligned(w, i, s->mem, mask, off);
  for (int k = 0; k < TENSORMAP_WORDS; k++) {
    mask = simmem_load(w, i, s->mem, mask, off, 8, buf);
    for (int l = 0; l < LANES; l++) {
      memcpy(&words[l][k], buf[l], 8);
      off[l]++;
    }
  }
  return mask;
}

static void store(SimWarp *w, const SimIns *i, const SimSide *s, uint32_t mask,
                  Words *words) {
  int64_t off[LANES];
  SimLaneBuf buf;
  simmem_offsets(w, s, off);
  mask = aligned(w, i, s->mem, mask, off);
  for (int k = 0; k < TENSORMAP_WORDS; k++) {
    for (int l = 0; l < LANES; l++) memcpy(buf[l], &words[l][k], 8);
    simmem_store(w, i, s->mem, mask, off, 8, buf);
    for (int l = 0; l < LANES; l++) off[l]++;
  }
}

// ---- records of writes and fences ----

// Returns the table of maps of this cluster, or of all clusters if they
// communicate.
static SimMaps *maps_of(SimCluster *c) {
  SimMaps **p = c->prog->common ? &c->prog->common->maps : &c->maps;
  if (*p) return *p;
  *p = base_realloc(NULL, sizeof **p);
  if (*p) **p = (SimMaps){0};
  else c->oom = c->stop = true;
  return *p;
}

static Note *find(Note *note, uint32_t size, uintptr_t at) {
  uint64_t k = (uint64_t)(at / BYTES) * 0x9e3779b97f4a7c15ull >> 32;
  for (;; k++) {
    Note *n = &note[k & (size - 1)];
    if (!n->at || n->at == at) return n;
  }
}

static bool grow(SimCluster *c, SimMaps *t) {
  uint32_t size = t->size ? t->size * 2 : 64;
  Note *p = base_realloc(NULL, size * sizeof *p);
  if (!p) {
    c->oom = c->stop = true;
    return false;
  }
  memset(p, 0, size * sizeof *p);
  for (uint32_t k = 0; k < t->size; k++)
    if (t->note[k].at) *find(p, size, t->note[k].at) = t->note[k];
  base_free(t->note);
  t->note = p;
  t->size = size;
  return true;
}

// Returns the entry for the map at address p. If there is no entry, creates one
// if `make` is set, else returns NULL.
static Note *note_of(SimCluster *c, const uint8_t *p, bool make) {
  SimMaps *t = maps_of(c);
  uintptr_t at = (uintptr_t)p & ~(uintptr_t)(BYTES - 1);
  if (!t || (!t->size && !make)) return NULL;
  if (make && 2 * t->n >= t->size && !grow(c, t)) return NULL;
  Note *n = find(t->note, t->size, at);
  if (n->at || !make) return n->at ? n : NULL;
  n->at = at;
  t->n++;
  return n;
}

void tensormap_ops_reset(SimCluster *c) {
  SimMaps *t = c->maps;
  if (t && t->n) memset(t->note, 0, t->size * sizeof *t->note);
  if (t) t->n = 0;
}

void tensormap_ops_free(SimMaps *t) {
  if (t) base_free(t->note);
  base_free(t);
}

static Deed deed_of(const SimWarp *w, uint32_t lanes) {
  return (Deed){w->cluster->index + 1, w->clk, lanes, (uint16_t)w->id};
}

// Reports whether operation d of lane `lane` happens before lane l of w.
static bool knows(SimWarp *w, int l, const Deed *d, int lane) {
  if (d->unit == w->cluster->index + 1)
    return w->cluster->hooks->before(w, l, d->warp, 1u << lane, d->clk);
  return w->cluster->hooks->knows(w, l, d->unit - 1, d->warp, lane, d->clk);
}

static bool knows_all(SimWarp *w, int l, const Deed *d) {
  for (uint32_t m = d->lanes; m; m &= m - 1)
    if (!knows(w, l, d, __builtin_ctz(m))) return false;
  return true;
}

static bool knows_one(SimWarp *w, int l, const Fences *f, bool here) {
  uint32_t n = f->n < KEPT ? f->n : KEPT;
  int each = w->cluster->prog->nwarp;
  for (uint32_t k = 0; k < n; k++) {
    const Deed *d = &f->deed[k];
    if (here && (d->unit != w->cluster->index + 1 ||
                 d->warp / each != w->id / each))
      continue;
    for (uint32_t m = d->lanes; m; m &= m - 1)
      if (knows(w, l, d, __builtin_ctz(m))) return true;
  }
  return false;
}

static void fenced(SimWarp *w, uint32_t lanes, Fences *f) {
  Deed d = deed_of(w, lanes), *last = &f->deed[(f->n - 1) % KEPT];
  if (!lanes) return;
  if (f->n && last->unit == d.unit && last->warp == d.warp &&
      last->clk == d.clk)
    last->lanes |= lanes;
  else
    f->deed[f->n++ % KEPT] = d;
}

void tensormap_ops_wrote(const Access *x, uint32_t mask) {
  SimWarp *w = x->w;
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    const uint8_t *p = x->m->p + x->at[l];
    for (int k = 0; k < x->bytes; k += 8, p += 8) {
      Note *n = note_of(w->cluster, p, true);
      if (!n) return;
      n->word[(uintptr_t)p % BYTES / 8] = deed_of(w, 1u << l);
      n->unit = w->cluster->index + 1;
      n->src = x->i->src;
      n->released.n = n->acquired.n = 0;
    }
  }
}

static bool knows_words(SimWarp *w, int l, const Note *n) {
  for (int k = 0; k < TENSORMAP_WORDS; k++) {
    const Deed *d = &n->word[k];
    if (k && memcmp(d, d - 1, sizeof *d) == 0) continue;
    if (d->unit && !knows_all(w, l, d)) return false;
  }
  return true;
}

void tensormap_ops_release(SimWarp *w) {
  SimMaps *t = maps_of(w->cluster);
  for (uint32_t k = 0; t && k < t->size; k++) {
    Note *n = &t->note[k];
    uint32_t lanes = 0;
    if (!n->at || (n->released.n && n->unit != w->cluster->index + 1)) continue;
    for (uint32_t m = w->active; m; m &= m - 1)
      if (knows_words(w, __builtin_ctz(m), n)) lanes |= m & -m;
    fenced(w, lanes, &n->released);
  }
}

// Records that the active lanes acquire the map at operand s. Acquires of maps
// in shared memory are not recorded, because copies do not use such maps.
static void acquire(SimWarp *w, const SimSide *s) {
  int64_t off[LANES];
  if (s->mem->memory != MEMORY_GLOBAL) return;
  simmem_offsets(w, s, off);
  for (uint32_t m = w->active; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    Note *n = note_of(w->cluster, s->mem->p + off[l] * 8, false);
    if (n && knows_one(w, l, &n->released, false))
      fenced(w, 1u << l, &n->acquired);
  }
}

// Copies a map from shared memory to global memory and releases the map. All
// lanes execute the copy together.
static void publish(SimWarp *w, const SimIns *i, const SimMapOp *o,
                    Words *words) {
  uint32_t one = w->active & ~(w->active - 1);
  Access x = {.w = w, .i = i, .m = o->src.mem, .bytes = 8};
  int64_t off[LANES];
  simmem_offsets(w, &o->src, off);
  x.off = off;
  one = load(w, i, &o->src, one, words);
  uint32_t mask = one ? simmem_check(&x, w->active) : 0;
  x.bytes = BYTES;
  w->cluster->hooks->access(&x, mask);
  store(w, i, &o->dst, one, words);
  w->cluster->hooks->meet(w, w->active);
  if (!one || o->dst.mem->memory != MEMORY_GLOBAL) return;
  simmem_offsets(w, &o->dst, off);
  Note *n = note_of(w->cluster, o->dst.mem->p + off[__builtin_ctz(one)] * 8,
                    false);
  if (n) fenced(w, w->active, &n->released);
}

// ---- the operations ----

static void change(SimWarp *w, const SimIns *i, uint32_t mask, Words *words) {
  const SimMapOp *o = i->x;
  int64_t off[LANES];
  if (i->op == OP_MAPADDRESS) simmem_offsets(w, &o->src, off);
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    if (i->op == OP_MAPADDRESS)
      words[l][0] = address_of(o->src.mem,
                               simprog_bit(o->src.mem, off[l]) / 8);
    else
      tensormap_replace(words[l], o->field, o->mode - (o->field == TMF_STRIDE),
                        index_at(w, o->value, o->wide, l));
  }
}

void tensormap_ops_run(SimWarp *w, const SimIns *i) {
  const SimMapOp *o = i->x;
  uint32_t mask = w->active;
  Words words[LANES];
  switch (i->op) {
    case OP_MAPACQUIRE: acquire(w, &o->dst); return;
    case OP_MAPPUBLISH: publish(w, i, o, words); return;
    case OP_MAPCOPY: {
      TensorMap m = *o->map;
      m.address = address_of(o->src.mem, 0);
      for (int l = 0; l < LANES; l++) tensormap_encode(&m, words[l]);
      break;
    }
    default:
      mask = load(w, i, &o->dst, mask, words);
      change(w, i, mask, words);
      break;
  }
  store(w, i, &o->dst, mask, words);
}

// ---- copies through tensor maps ----

static void tell_two(SimWarp *w, const SimIns *i, int l, uint32_t src2,
                     const SimSide *s, int64_t off, SimMapWrong how) {
  SimFault *f = simreport_fault(w, SIM_TENSORMAP, l, i->src, src2,
                                s->mem->index, off * 64 / s->mem->own);
  if (f) f->map.how = how;
}

static bool tell(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                 int64_t off, SimMapWrong how) {
  tell_two(w, i, l, 0, s, off, how);
  return false;
}

// Returns the global memory object that an encoded address names, or NULL.
static const SimMem *object_at(const SimProg *p, uint64_t address) {
  uint64_t k = address >> WHERE;
  if (k < 1 || k > p->fn->mem.n) return NULL;
  const SimMem *m = p->mem[p->fn->mem.p[k - 1].ref];
  return m && m->memory == MEMORY_GLOBAL ? m : NULL;
}

static bool is_inside(const TensorMap *m, const SimMem *of, int64_t at,
                      int bits) {
  int64_t last = at + m->extent[0] * bits / 8;
  for (int k = 1; k < m->rank; k++) {
    int64_t n = m->extent[k] - 1, stride = m->stride[k - 1];
    if (stride && n > of->bytes / stride) return false;
    last += n * stride;
  }
  return last <= of->bytes;
}

// Decodes t->words into *t. Returns false if the words do not encode a map, or
// encode one with another box than the previous t->map.
static bool decode_like(const SimProg *p, SimMapped *t) {
  uint64_t want[TENSORMAP_WORDS];
  TensorMap like = t->map;
  tensormap_encode(&like, want);
  tensormap_read(t->words, &like);
  tensormap_write(&like, want);
  for (int k = 0; k < TENSORMAP_RANK; k++)  // unused modes have extent 1
    if (k >= t->map.rank && like.extent[k] != 1) return false;
  t->map = like;
  t->tensor = object_at(p, like.address);
  t->first = (int64_t)(like.address & (((uint64_t)1 << WHERE) - 1));
  return memcmp(want, t->words, sizeof want) == 0 && t->tensor;
}

// Decodes t->words into *t, for a tensor at a raw address. The map may have any
// box. Returns false if copy b cannot use the words as a map.
static bool decode_any(const SimProg *p, SimMapped *t, const SimBulk *b) {
  bool rows = b->flags & BKF_ROWS;
  int modes = rows ? 2 : b->modes;
  Why why;
  if (!tensormap_decode(t->words, &t->map, &why) || t->map.rank != modes)
    return false;
  t->tensor = raw_pointer_object(p, t->map.address);
  if (!t->tensor) return false;
  t->first = (int64_t)(t->map.address - (uintptr_t)t->tensor->p);
  t->bits = dtype_bits(tensormap_dtype((TensorMapType)t->map.type));
  t->bytes = (int)tensormap_bytes(&t->map) * (rows ? BULK_ROWS : 1);
  return true;
}

bool tensormap_ops_take(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                        SimMapped *t) {
  const SimProg *p = w->cluster->prog;
  const SimBulk *b = i->x;
  Words words[LANES];
  int64_t off[LANES];
  simmem_offsets(w, s, off);
  if (!load(w, i, s, 1u << l, words)) return false;
  memcpy(t->words, words[l], sizeof t->words);
  t->at = s->mem->p + off[l] * 8;
  if (b->map ? !decode_like(p, t) : !decode_any(p, t, b))
    return tell(w, i, l, s, off[l], MAP_NONE);
  if (!b->map && (t->map.im2col || t->map.interleave || t->map.step[0] != 1 ||
                  (b->flags & BKF_ROWS && t->map.box[1] != 1) ||
                  (b->flags & BKF_REDUCES && t->map.type == TMT_U4)))
    return tell(w, i, l, s, off[l], MAP_OTHER);
  if (!is_inside(&t->map, t->tensor, t->first, t->bits))
    return tell(w, i, l, s, off[l], MAP_BEYOND);
  const Note *n = note_of(w->cluster, t->at, false);
  if (!n || knows_one(w, l, &n->acquired, true)) return true;
  tell_two(w, i, l, n->src, s, off[l],
           n->released.n ? MAP_UNACQUIRED : MAP_UNRELEASED);
  return true;
}

void tensormap_ops_still(SimAsync *a, const SimSide *s, const SimMapped *t) {
  int64_t off = (t->at - s->mem->p) / 8;
  if (memcmp(t->at, t->words, sizeof t->words) == 0) return;
  if (!a->drained) {
    tell(a->w, a->i, a->lane, s, off, MAP_CHANGED);
    return;
  }
  SimFault *f = simreport_note(a->w, SIM_TENSORMAP, a->lane, a->i->src, 0,
                               s->mem->index, off * 64 / s->mem->own);
  if (!f) return;
  f->map.how = MAP_CHANGED;
  f->map.drained = true;
}
// SPDX-License-Identifier: MIT
