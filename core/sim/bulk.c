// Bulk copies (TMA). A lane starts a copy, which executes asynchronously. Boxes
// of a tensor map are copied row by row. Elements outside the tensor are read
// as zeros and are not written. In shared memory, bytes are swizzled as the
// tensor map states.
#include "ir/eval.h"
#include "sim/async.h"
#include "sim/cluster.h"
#include "sim/mbar.h"
#include "sim/tensormap_ops.h"

#include <pthread.h>
#include <string.h>

// A bulk copy. The copied bytes follow this struct in memory.
typedef struct Copy {
  const SimBulk *b;
  SimMapped m;
  // offset of the box, or of the bytes, in the cluster's shared memory
  uint32_t shared;
  // BULKSEND: offset of the destination in the cluster's shared memory
  uint32_t to;
  // offset of the first byte in the global memory object
  int64_t global;
  int64_t at[2 * TENSORMAP_RANK];  // coordinates and im2col offsets
} Copy;

static uint8_t *bytes_of(Copy *k) { return (uint8_t *)(k + 1); }

// ---- boxes ----

// A run of elements of a box along mode 0. All values are in bytes. `at` is the
// offset of the run in the box. `skip` is the offset in the run of the first
// byte that is inside the tensor. `n` is the number of bytes inside the tensor.
// `global` is the offset in global memory of the first byte inside the tensor.
typedef struct Run {
  int64_t at, skip, n, global;
} Run;

// Returns the number of bytes of n elements.
static int64_t size_of(const Copy *k, int64_t n) { return n * k->m.bits / 8; }

// Returns the coordinate of run *r of the box in mode i >= 1. Divides *r by the
// extent of mode i, for the next mode.
static int64_t coordinate(const Copy *k, int i, int64_t *r) {
  const TensorMap *m = &k->m.map;
  if (k->b->flags & BKF_ROWS) return k->at[1 + *r];
  int64_t n = tensormap_count(m, i), c;
  if (!m->im2col) {
    c = k->at[i] + *r % n * m->step[i];
    *r /= n;
    return c;
  }
  // im2col: the last mode counts images. In an image, pixels are visited row by
  // row, at all positions where the filter fits.
  if (i == m->rank - 1) return k->at[i] + *r;
  int64_t low = m->lower[i - 1], step = m->step[i];
  n = (m->extent[i] + m->upper[i - 1] - low - 1) / step + 1;
  c = (k->at[i] - low) / step + *r;
  *r = c / n;
  return low + c % n * step + k->at[m->rank + i - 1];
}

static int64_t row_of(const TensorMap *m) {
  return m->im2col ? m->channels : m->box[0];
}

// Returns run r of the box. Run.n is 0 if the run is outside the tensor.
static Run run_at(const Copy *k, int64_t r) {
  const TensorMap *m = &k->m.map;
  int64_t from = k->at[0], to = from + row_of(m);
  Run run = {.at = r * size_of(k, row_of(m))};
  int64_t where = 0;
  for (int i = 1; i < m->rank; i++) {
    int64_t c = coordinate(k, i, &r);
    if (c < 0 || c >= m->extent[i]) return run;
    where += c * m->stride[i - 1];
  }
  if (from < 0) from = 0;
  if (to > m->extent[0]) to = m->extent[0];
  if (from >= to) return run;
  run.skip = size_of(k, from - k->at[0]);
  run.n = size_of(k, to - from);
  run.global = k->global + where + size_of(k, from);
  return run;
}

static int64_t runs_of(const Copy *k) {
  const TensorMap *m = &k->m.map;
  int64_t n = 1;
  if (!k->b->boxes) return 1;
  if (m->im2col) return m->pixels;
  if (k->b->flags & BKF_ROWS) return BULK_ROWS;
  for (int i = 1; i < m->rank; i++) n *= tensormap_count(m, i);
  return n;
}

// Returns run r of a copy. A copy without a tensor map is a single run.
static Run run_of(const Copy *k, int64_t r) {
  if (k->b->boxes) return run_at(k, r);
  return (Run){.n = k->m.bytes, .global = k->global};
}

// Returns the swizzled address of 16 bytes of a box in shared memory. `addr` is
// the address before the swizzle.
static uint32_t place(const Copy *k, uint32_t addr) {
  uint32_t bits = (1u << k->m.map.swizzle) - 1;
  return addr ^ ((addr >> 7 & bits) << 4);
}

static void move_shared(Copy *k, SimCluster *c, bool in) {
  uint8_t *data = bytes_of(k);
  uint32_t from = k->shared % (uint32_t)c->prog->smem_bytes;
  uint8_t *cta = c->smem + k->shared - from;
  for (uint32_t at = 0; at < (uint32_t)k->m.bytes; at += 16) {
    uint8_t *p = cta + place(k, from + at);
    memcpy(in ? p : data + at, in ? data + at : p, 16);
  }
}

// ---- global memory ----

// Fills the copy's buffer with the value of elements outside the tensor: zeros,
// or 7ff7 in every 16 bits (a NaN).
static void fill(Copy *k) {
  uint8_t *p = bytes_of(k);
  memset(p, 0, (size_t)k->m.bytes);
  if (k->m.map.fill == TENSORMAP_ZEROS) return;
  for (int64_t at = 0; at + 1 < k->m.bytes; at += 2)
    memcpy(p + at, "\xf7\x7f", 2);
}

// Rounds f32 elements to tf32, to nearest even. Every NaN becomes the same NaN.
static void round_tf32(uint8_t *p, int64_t n) {
  for (int64_t at = 0; at < n; at += 4) {
    uint32_t u;
    memcpy(&u, p + at, sizeof u);
    bool nan = (u & 0x7fffffff) > 0x7f800000;
    u = nan ? 0x7fffe000 : (u + 0xfff + (u >> 13 & 1)) & ~(uint32_t)0x1fff;
    memcpy(p + at, &u, sizeof u);
  }
}

static void read_global(Copy *k) {
  bool rounds = k->b->boxes && k->m.map.type == TMT_TF32;
  fill(k);
  for (int64_t r = 0; r < runs_of(k); r++) {
    Run run = run_of(k, r);
    uint8_t *to = bytes_of(k) + run.at + run.skip;
    memcpy(to, k->m.tensor->p + run.global, (size_t)run.n);
    if (rounds) round_tf32(to, run.n);
  }
}

static void combine(const Copy *k, uint8_t *p, const uint8_t *x, int64_t n) {
  const SimBulk *b = k->b;
  TensorMapType own = (TensorMapType)k->m.map.type;
  Op op = (Op)atomic_row((AtomicKind)(b->flags & BKF_ATOMIC))->op;
  DType t = b->boxes ? tensormap_dtype(own) : b->global->type;
  bool ftz = b->boxes && (own == TMT_F32_FTZ || own == TMT_TF32_FTZ);
  int64_t size = size_of(k, 1);
  for (int64_t at = 0; at < n; at += size) {
    uint64_t old = 0, v = 0;
    memcpy(&old, p + at, (size_t)size);
    memcpy(&v, x + at, (size_t)size);
    v = op == OP_ADD && dtype_is_float(t)
          ? eval_reduce(t, old, v, ftz) : eval_scalar(op, t, old, v, 0);
    memcpy(p + at, &v, (size_t)size);
  }
}

static void write_global(SimAsync *a, Copy *k) {
  const SimBulk *b = k->b;
  const SimMem *m = k->m.tensor;
  pthread_mutex_t *lock = a->w->cluster->host.lock;
  bool reduces = b->flags & BKF_REDUCES;
  if (reduces) pthread_mutex_lock(lock);
  for (int64_t r = 0; r < runs_of(k); r++) {
    Run run = run_of(k, r);
    const uint8_t *from = bytes_of(k) + run.at + run.skip;
    if (!run.n) continue;
    simmem_bulk(a->w, a->i, m, a->lane, run.global, (int)run.n,
                reduces ? NULL : from);
    if (reduces) {
      combine(k, m->p + run.global, from, run.n);
      continue;
    }
    memcpy(m->p + run.global, from, (size_t)run.n);
    simasync_wrote_global(a, m, run.global, (int)run.n);
  }
  if (reduces) pthread_mutex_unlock(lock);
}

// Tells the checks from where copy k took the bytes in shared memory.
static void announce_origins(Copy *k, SimCluster *c) {
  uint32_t from = k->shared % (uint32_t)c->prog->smem_bytes;
  bool boxes = k->b->boxes;
  int64_t row = boxes ? size_of(k, row_of(&k->m.map)) : k->m.bytes;
  for (int64_t at = 0; c->hooks->wanted(c) && at < k->m.bytes; at += 16) {
    int64_t r = at / row, in = at % row;
    Run run = run_of(k, r);
    bool inside = in >= run.skip && in - run.skip < run.n;
    SimOrigin16 o = {.mem = inside ? k->m.tensor : NULL,
      .at = run.global + in - run.skip,
      .row = boxes && k->m.map.rank > 1 ? coordinate(k, 1, &r) : 0,
      .column = in + (boxes ? size_of(k, k->at[0]) : k->global)};
    c->hooks->came(c, k->shared - from + place(k, from + (uint32_t)at), &o);
  }
}

// ---- execution of copies ----

static void still_mapped(SimAsync *a, const Copy *k) {
  if (k->b->place.mem) tensormap_ops_still(a, &k->b->place, &k->m);
}

static void load(SimAsync *a, SimStage stage) {
  Copy *k = a->data;
  if (stage == ASYNC_DELIVER) {
    move_shared(k, a->w->cluster, true);
    announce_origins(k, a->w->cluster);
    return;
  }
  still_mapped(a, k);
  if (stage == ASYNC_FETCH) read_global(k);
}

static void store(SimAsync *a, SimStage stage) {
  Copy *k = a->data;
  if (stage == ASYNC_DELIVER) {
    write_global(a, k);
    return;
  }
  // wait_group.read also guarantees that the copy has read its tensor map.
  still_mapped(a, k);
  move_shared(k, a->w->cluster, false);
}

static void send(SimAsync *a, SimStage stage) {
  Copy *k = a->data;
  if (stage == ASYNC_DELIVER) k->shared = k->to;
  move_shared(k, a->w->cluster, stage == ASYNC_DELIVER);
}

// ---- starting a copy ----

static int64_t value(const SimWarp *w, uint32_t slot, int l) {
  int32_t v;
  memcpy(&v, w->v + slot + l * 4, sizeof v);
  return v;
}

// Returns the byte offset in the memory object of lane l's first byte. Returns
// -1 and reports a fault if some of the bytes are out of bounds or not aligned
// to 16 bytes.
static int64_t byte_at(SimWarp *w, const SimIns *i, const SimSide *s, int l,
                       int bytes, bool write) {
  int64_t off[LANES];
  simmem_offsets(w, s, off);
  Access x = {.w = w, .i = i, .m = s->mem, .off = off, .bytes = 16,
              .write = write};
  if (!simmem_check(&x, 1u << l)) return -1;
  int64_t first = x.at[l];
  off[l] += (bytes - 16) * 8 / s->mem->bits;
  return bytes == 16 || simmem_check(&x, 1u << l) ? first : -1;
}

static SimAsync *start(SimWarp *w, const SimIns *i, int l, SimRun *run,
                       Copy from) {
  size_t n = sizeof from + (size_t)from.m.bytes;
  SimAsync *a = simasync_start(w, i, l, run, n);
  if (a) memcpy(a->data, &from, sizeof from);
  return a;
}

static Copy copy_of(SimWarp *w, const SimIns *i, int l) {
  const SimBulk *b = i->x;
  Copy k = {.b = b, .m.bytes = b->bytes};
  if (b->global) k.m.bits = b->global->bits;
  for (int c = 0; c < b->modes; c++) k.at[c] = value(w, b->at[c], l);
  k.m.tensor = b->global;
  if (b->map) k.m.map = *b->map;
  return k;
}

// Sets k->global, the offset of lane l's bytes in global memory. Returns false
// after a fault.
static bool find_global(SimWarp *w, const SimIns *i, int l, Copy *k,
                        bool write) {
  const SimBulk *b = k->b;
  if (!b->boxes) k->global = byte_at(w, i, &b->plain, l, b->bytes, write);
  else if (b->place.mem) {
    if (!tensormap_ops_take(w, i, l, &b->place, &k->m)) return false;
    k->global = k->m.first;
  }
  return k->global >= 0;
}

// Sets k->shared, the offset in shared memory of lane l's bytes. Returns false
// after reporting a fault.
static bool find_shared(SimWarp *w, const SimIns *i, int l, Copy *k,
                        bool write) {
  const SimSide *s = &k->b->shared;
  int64_t at = byte_at(w, i, s, l, k->m.bytes, write);
  k->shared = w->home + s->mem->base + (uint32_t)at;
  return at >= 0;
}

// Reports whether lane l's box in shared memory has the alignment that TMA
// needs, and reports a fault otherwise.
static bool box_aligned(SimWarp *w, const SimIns *i, int l, bool write) {
  const SimBulk *b = i->x;
  const SimMem *m = b->shared.mem;
  int64_t off[LANES];
  simmem_offsets(w, &b->shared, off);
  if (!b->boxes || (m->base + off[l] * m->bits / 8) % TMA_ALIGN == 0)
    return true;
  SimFault *f = simreport_fault(w, SIM_ALIGN, l, i->src, 0, m->index, off[l]);
  if (!f) return false;
  f->access.write = write;
  f->access.size = TMA_ALIGN;
  return false;
}

// Reports that lane l's box may not begin where it does.
static SimFault *tell_box(SimWarp *w, const SimIns *i, int l, const Copy *k,
                          SimKind kind, bool write) {
  SimFault *f = simreport_fault(w, kind, l, i->src, 0, k->m.tensor->index, 0);
  if (!f) return NULL;
  f->access.write = write;
  f->access.box = true;
  for (f->r.modes = 0; f->r.modes < k->m.map.rank; f->r.modes++)
    f->r.coord[f->r.modes] = k->at[f->r.modes];
  return f;
}

// Checks where a box begins: at a multiple of 16 bytes and, if it is stored and
// not a box of im2col or of rows, at no negative coordinate. On an H200, other
// boxes raise an illegal instruction, even if they are outside of the tensor.
static void check_box(SimWarp *w, const SimIns *i, int l, const Copy *k,
                      bool write) {
  const TensorMap *m = &k->m.map;
  if (k->at[0] * k->m.bits % 128) {
    SimFault *f = tell_box(w, i, l, k, SIM_ALIGN, write);
    if (f) f->access.size = 16;
    return;
  }
  bool negative = false;
  for (int c = 0; c < m->rank; c++) negative |= k->at[c] < 0;
  if (!write || !negative || m->im2col || k->b->flags & BKF_ROWS) return;
  SimFault *f = tell_box(w, i, l, k, SIM_OOB, true);
  for (int c = 0; f && c < m->rank; c++) f->extent[c] = m->extent[c];
}

// Reports a box whose coordinates come from products that overflowed.
static void check_coordinates(SimWarp *w, const SimIns *i, int l,
                              const Copy *k) {
  const TensorMap *m = &k->m.map;
  int64_t off[LANES] = {0}, at = size_of(k, k->at[0]);
  for (int c = 1; c < m->rank; c++) at += k->at[c] * m->stride[c - 1];
  off[l] = at * 8 / k->m.bits;
  Access x = {.w = w, .i = i, .m = k->m.tensor, .off = off};
  w->cluster->hooks->value.wrapped(&x, 1u << l);
}

// Checks and counts the accesses of a starting copy to global memory.
static void see_global(SimWarp *w, const SimIns *i, int l, const Copy *k,
                       bool write) {
  const SimMem *m = k->m.tensor;
  SimStat *s = &w->cluster->out->stat[i->stat];
  int64_t moved = 0;
  if (k->b->boxes && w->wraps.some && i->wraps) check_coordinates(w, i, l, k);
  if (k->b->boxes) check_box(w, i, l, k, write);
  for (int64_t r = 0; r < runs_of(k); r++) {
    Run run = run_of(k, r);
    if (!run.n) continue;
    if (!moved)  // Report only the first invalid run of the copy.
      simmem_depends(w, i, l, m, run.global * 8 / m->own, write);
    moved += run.n;
    s->sectors += (uint64_t)((run.global + run.n - 1) / 32 - run.global / 32) +
                  1;
    if (!write) simmem_bulk_read(w, i, m, l, run.global, (int)run.n);
  }
  s->requests++;
  if (!k->b->bytes) s->bytes += (uint64_t)k->m.bytes;
  s->least_sectors += (uint64_t)((moved + 31) / 32);
}

// Sets the mbarrier at which operation a completes: it is at byte `bar` of the
// shared memory of CTA `rank`. Returns false after reporting a fault.
static bool complete_at(SimAsync *a, SimWarp *w, const SimIns *i, int l,
                        int rank, uint32_t bar, uint32_t bytes) {
  const SimBulk *b = i->x;
  uint32_t home = (uint32_t)rank * (uint32_t)w->cluster->prog->smem_bytes;
  a->mbar = simmbar_for(w, i, l, b->bar.mem, home + bar, true);
  a->bytes = bytes;
  if (home != w->home) w->cluster->hooks->reach(w, i, l, rank, false);
  return a->mbar;
}

// Starts a load to the shared memory of CTA `rank`. The load completes bytes at
// an mbarrier of that CTA. With BKF_PAIR, it completes bytes at an mbarrier of
// the even CTA of that CTA's pair.
static void load_to(SimWarp *w, const SimIns *i, int l, Copy k, int rank,
                    uint32_t bar) {
  const SimBulk *b = k.b;
  uint32_t home = (uint32_t)rank * (uint32_t)w->cluster->prog->smem_bytes;
  k.shared += home - w->home;
  SimAsync *a = start(w, i, l, load, k);
  if (!a) return;
  a->mapped = b->place.mem;
  int at = b->flags & BKF_PAIR ? rank & ~1 : rank;
  if (!complete_at(a, w, i, l, at, bar, (uint32_t)k.m.bytes)) return;
  simasync_writes(a, b->shared.mem, k.shared, a->bytes);
  for (int64_t r = 0; r < runs_of(&k); r++) {
    Run run = run_of(&k, r);
    if (run.n)
      simasync_reads_global(a, k.m.tensor, run.global, (int)run.n);
  }
}

static void tell_rank(SimWarp *w, const SimIns *i, int l, int rank) {
  const SimBulk *b = i->x;
  SimFault *f = simreport_fault(w, SIM_OOB, l, i->src, 0,
                                b->shared.mem->index, 0);
  if (!f) return;
  f->access.write = true;
  f->access.rank = rank;
  f->access.ranks = w->cluster->prog->ncta;
}

static void start_load(SimWarp *w, const SimIns *i, int l) {
  const SimBulk *b = i->x;
  if (!box_aligned(w, i, l, true)) return;
  Copy k = copy_of(w, i, l);
  if (!find_global(w, i, l, &k, false)) return;
  bool there = find_shared(w, i, l, &k, true);
  int64_t bar = simmem_byte(w, i, &b->bar, l);
  if (!there || bar < 0) return;
  see_global(w, i, l, &k, false);
  uint32_t own = (uint32_t)(w->cta - w->cluster->cta);
  uint32_t mask = b->mask ? (uint32_t)value(w, b->mask, l) : 1u << own;
  for (int rank = 0; mask && !w->cluster->stop; rank++, mask >>= 1) {
    if (!(mask & 1)) continue;
    if (rank >= w->cluster->prog->ncta) {
      tell_rank(w, i, l, rank);
      return;
    }
    load_to(w, i, l, k, rank, (uint32_t)(b->bar.mem->base + bar));
  }
}

static void start_store(SimWarp *w, const SimIns *i, int l) {
  const SimBulk *b = i->x;
  if (!box_aligned(w, i, l, false)) return;
  Copy k = copy_of(w, i, l);
  if (!find_global(w, i, l, &k, true) || !find_shared(w, i, l, &k, false))
    return;
  see_global(w, i, l, &k, true);
  SimAsync *a = start(w, i, l, store, k);
  if (!a) return;
  simasync_reads(a, b->shared.mem, k.shared, (uint32_t)k.m.bytes);
  for (int64_t r = 0; r < runs_of(&k) && !(b->flags & BKF_REDUCES); r++) {
    Run run = run_of(&k, r);
    if (run.n)
      simasync_writes_global(a, k.m.tensor, run.global, (int)run.n);
  }
}

static void start_send(SimWarp *w, const SimIns *i, int l) {
  const SimBulk *b = i->x;
  const SimProg *p = w->cluster->prog;
  Copy k = copy_of(w, i, l);
  bool there = find_shared(w, i, l, &k, false);
  int64_t to = byte_at(w, i, &b->plain, l, b->bytes, true);
  int64_t bar = simmem_byte(w, i, &b->bar, l);
  int64_t rank = value(w, b->rank, l);
  if (!there || to < 0 || bar < 0) return;
  if (rank < 0 || rank >= p->ncta) {
    tell_rank(w, i, l, (int)rank);
    return;
  }
  uint32_t home = (uint32_t)rank * (uint32_t)p->smem_bytes;
  k.to = home + b->plain.mem->base + (uint32_t)to;
  SimAsync *a = start(w, i, l, send, k);
  if (!a) return;
  if (!complete_at(a, w, i, l, (int)rank, (uint32_t)(b->bar.mem->base + bar),
                   (uint32_t)b->bytes))
    return;
  simasync_reads(a, b->shared.mem, k.shared, a->bytes);
  simasync_writes(a, b->plain.mem, k.to, a->bytes);
}

static void answer(SimAsync *a, SimStage stage) {
  if (stage == ASYNC_DELIVER) move_shared(a->data, a->w->cluster, true);
}

// Executes clc.try_cancel, which asks the hardware to cancel a cluster that has
// not started. The response, which the intrinsics clc.* read, is the
// coordinates of that cluster's first CTA and 1 or, if refused, invalid
// coordinates and 0.
static void start_cancel(SimWarp *w, const SimIns *i, int l) {
  const SimBulk *b = i->x;
  const SimProg *p = w->cluster->prog;
  Copy k = copy_of(w, i, l);
  int64_t bar = simmem_byte(w, i, &b->bar, l);
  if (!find_shared(w, i, l, &k, true) || bar < 0) return;
  int32_t word[4] = {INT32_MAX, INT32_MAX, INT32_MAX, 0};
  uint64_t index;
  SimCluster *c = w->cluster;
  if (c->host.cancel(c->host.run, c, &index)) {
    simcluster_place(p, index * (uint64_t)p->ncta, word);
    word[3] = 1;
  }
  uint32_t at = k.shared - w->home;
  for (int rank = 0; rank < p->ncta && !w->cluster->stop; rank++) {
    k.shared = (uint32_t)rank * (uint32_t)p->smem_bytes + at;
    SimAsync *a = start(w, i, l, answer, k);
    if (!a) return;
    memcpy(bytes_of(a->data), word, sizeof word);
    if (!complete_at(a, w, i, l, rank, (uint32_t)(b->bar.mem->base + bar),
                     (uint32_t)b->bytes))
      return;
    simasync_writes(a, b->shared.mem, k.shared, a->bytes);
  }
}

void simbulk_run(SimWarp *w, const SimIns *i) {
  SimStat *s = &w->cluster->out->stat[i->stat];
  const SimBulk *b = i->x;
  s->count++;
  for (uint32_t m = w->active; m && !w->cluster->stop; m &= m - 1) {
    int l = __builtin_ctz(m);
    s->bytes += (uint64_t)b->bytes;
    if (i->op == OP_BULKSEND) start_send(w, i, l);
    else if (i->op == OP_CLCTRY) start_cancel(w, i, l);
    else if (b->bar.mem) start_load(w, i, l);
    else start_store(w, i, l);
  }
}
// SPDX-License-Identifier: MIT
