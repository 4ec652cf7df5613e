// Accesses to shared and global memory: checks bounds and alignment, counts
// statistics, announces the access to the checks (hooks.h), and moves bytes.
//
// A cp.async reads its source when it is issued. Its destination is marked as
// pending until a wait, which writes the bytes.
#include "decode/areas.h"
#include "decode/footprint.h"
#include "ir/eval.h"
#include "ir/intrin.h"
#include "sim/bulk.h"
#include "sim/mbar.h"
#include "sim/regs.h"

#include <pthread.h>
#include <string.h>

#include "decode/fragments.h"
#include "sim/record.h"

void simmem_reset(SimCluster *c) {
  const SimProg *p = c->prog;
  memset(c->smem, 0xff, (size_t)p->ncta * (size_t)p->smem_bytes);
  c->hooks->reset(c);
}

void simmem_offsets(const SimWarp *w, const SimSide *s, int64_t *off) {
  const void *p = w->v + s->slot;
  if (s->wide) {
    memcpy(off, p, LANES * 8);
    return;
  }
  const int32_t *v = p;
  for (int l = 0; l < LANES; l++) off[l] = v[l];
}

// ---- bounds and alignment ----

// Returns the first element of lane l's access that the object's layout does
// not contain. Returns -1 if the layout contains all of them.
static int64_t gap_at(const Access *x, int l) {
  const SimMem *m = x->m;
  int64_t first = x->at[l] * 8 / m->own;
  int64_t last = (x->at[l] * 8 + x->bytes * 8 - 1) / m->own;
  if (!footprint_has(m->members, first, NULL)) return first;
  return footprint_has(m->members, last, NULL) ? -1 : last;
}

static void name_place(const SimFootprint *t, SimFault *f) {
  int64_t coord[FOOTPRINT_MODES];
  footprint_has(t, f->r.offset, coord);
  f->r.modes = t->n < SIM_MODES ? t->n : SIM_MODES;
  memcpy(f->r.coord, coord, (size_t)f->r.modes * sizeof *coord);
  memcpy(f->extent, t->extent, (size_t)f->r.modes * sizeof *f->extent);
}

static void fault_gap(Access *x, int l) {
  SimFault *f = simreport_fault(x->w, SIM_OOB, l, x->i->src, 0, x->m->index,
                                gap_at(x, l));
  if (!f) return;
  f->access.write = x->write;
  name_place(x->m->members, f);
}

static uint32_t check_gaps(Access *x, uint32_t mask) {
  uint32_t good = mask;
  for (uint32_t m = mask; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (gap_at(x, l) < 0) continue;
    fault_gap(x, l);
    good &= ~(1u << l);
  }
  return good;
}

static void fault_place(Access *x, SimKind kind, int l) {
  SimFault *f = simreport_fault(x->w, kind, l, x->i->src, 0, x->m->index,
                                simprog_bit(x->m, x->off[l]) / x->m->own);
  if (!f) return;
  f->access.write = x->write;
  f->access.size = kind == SIM_OOB ? x->bytes * 8 / x->m->own : x->bytes;
  if (kind == SIM_OOB && x->m->known) {
    f->access.which = x->off[l];
    f->access.most = x->m->count;
  }
  if (kind == SIM_OOB && x->m->members && f->r.offset >= 0)
    name_place(x->m->members, f);
}

// Reports that lane l accesses memory of CTA `rank`, which may not have started
// yet. Not called for operations on mbarriers, which mbar.c checks.
static void fault_start(Access *x, int l, int rank) {
  SimFault *f = simreport_fault(x->w, SIM_START, l, x->i->src, 0, x->m->index,
                                simprog_bit(x->m, x->off[l]) / x->m->own);
  const SimCta *cta = &x->w->cluster->cta[rank];
  if (f) memcpy(f->gone.cta, cta->id, sizeof f->gone.cta);
}

// Sets x->home[l] to where the shared memory of lane l's accessed CTA begins.
static uint32_t find_home(Access *x, uint32_t mask) {
  SimWarp *w = x->w;
  const SimProg *p = w->cluster->prog;
  const int32_t *rank = (const int32_t *)(const void *)(w->v + x->m->rank);
  for (uint32_t m = mask; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (rank[l] < 0 || rank[l] >= p->ncta) {
      SimFault *f = simreport_fault(w, SIM_OOB, l, x->i->src, 0, x->m->index,
                                    simprog_bit(x->m, x->off[l]) / x->m->own);
      if (f) {
        f->access.write = x->write;
        f->access.rank = rank[l];
        f->access.ranks = p->ncta;
      }
      mask &= ~(1u << l);
      continue;
    }
    x->home[l] = (uint32_t)rank[l] * (uint32_t)p->smem_bytes;
    if (x->home[l] == w->home) continue;
    w->cluster->hooks->reach(w, x->i, l, rank[l], !x->barrier);
    if (!x->barrier && !w->cluster->hooks->runs(w, l, rank[l]))
      fault_start(x, l, rank[l]);
  }
  return mask;
}

void simmem_depends(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                    int64_t element, bool write) {
  int how = m->before | m->before >> SIM_FAR;
  int actor = actors_first(&w->cluster->prog->actors, ACTOR_BEFORE);
  if (!how || (!write && !(how & SIM_WRITTEN)) ||
      w->cluster->hooks->before(w, l, actor, 1, 1))
    return;
  SimFault *f = simreport_fault(w, SIM_DEPENDENT, l, i->src, 0, m->index,
                                element);
  if (f) f->access.write = write;
}

static void check_before(Access *x, uint32_t mask) {
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    simmem_depends(x->w, x->i, l, x->m,
                   simprog_bit(x->m, x->off[l]) / x->m->own, x->write);
  }
}

SimMbar *simmem_mbar(const SimCluster *c, uint32_t addr) {
  uint16_t k = c->mbars.at ? c->mbars.at[addr / 8] : 0;
  return k ? &c->mbars.p[k - 1] : NULL;
}

void simmem_mbarriers(SimWarp *w, const SimIns *i, int l, uint32_t addr,
                      uint32_t n, bool write) {
  SimCluster *c = w->cluster;
  for (uint32_t at = addr & ~7u; c->mbars.n && at < addr + n; at += 8) {
    const SimMbar *b = simmem_mbar(c, at);
    if (!b || b->gone) continue;
    SimFault *f = simreport_fault(w, SIM_MBARRIER, l, i->src, b->src, b->mem,
                                  b->element);
    if (f) f->mbar.how = MBAR_DATA;
    if (f) f->mbar.n = write;
    c->stop = true;
    return;
  }
}

// Reports active mbarriers among the bytes that the lanes access as data.
static void check_mbarriers(Access *x, uint32_t mask) {
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    simmem_mbarriers(x->w, x->i, l, simmem_address(x, l), (uint32_t)x->bytes,
                     x->write);
  }
}

uint32_t simmem_check(Access *x, uint32_t mask) {
  const SimMem *m = x->m;
  if (m->rank) mask = find_home(x, mask);
  if (m->before) check_before(x, mask);
  int64_t bits = m->bits, last = m->bytes - x->bytes;
  int64_t unit = x->unit ? x->unit : x->bytes;
  // In PTX, a tensor may begin at any element of its memory. Therefore the
  // address is checked, not only the offset.
  int64_t base = m->base + (int64_t)(uintptr_t)m->p;
  uint32_t wrong = 0;
  for (int l = 0; l < LANES; l++) {
    x->at[l] = (int64_t)((uint64_t)x->off[l] * (uint64_t)bits) >> 3;
    wrong |= (uint32_t)((x->off[l] < 0) | (x->off[l] >= m->count) |
                        (x->at[l] > last) |
                        (((base + x->at[l]) & (unit - 1)) != 0)) << l;
  }
  wrong &= mask;
  uint32_t told = 0;
  if (x->w->wraps.some && x->i->wraps)
    told = x->w->cluster->hooks->value.wrapped(x, mask);
  if (m->members) mask = (mask & wrong) | check_gaps(x, mask & ~wrong);
  if (m->mbars && !x->barrier) check_mbarriers(x, mask & ~wrong);
  if (!wrong) return mask;
  for (int l = 0; l < LANES; l++) {
    if (!((wrong & ~told) >> l & 1)) continue;
    bool out = x->off[l] < 0 || x->off[l] >= m->count || x->at[l] > last;
    fault_place(x, out ? SIM_OOB : SIM_ALIGN, l);
  }
  return mask & ~wrong;
}

// ---- statistics ----

static int lane_count(uint32_t mask) { return __builtin_popcount(mask); }

// Writes to rel[l] the distance of lane l's address from the first lane's,
// which is rounded down to `unit`. Returns false if a distance is too large.
static bool relative(const Access *x, uint32_t mask, int64_t base,
                     int64_t unit, uint32_t rel[LANES]) {
  int64_t first = (x->at[__builtin_ctz(mask)] + base) & ~(unit - 1);
  bool fits = true;
  for (int l = 0; l < LANES; l++) {
    int64_t d = x->at[l] + base - first + (INT32_MAX & ~1023);
    bool in = mask >> l & 1;
    fits &= !in || (d >= 0 && d <= INT32_MAX * (int64_t)2);
    rel[l] = in ? (uint32_t)d : 0;
  }
  return fits;
}

// Records the access as a shared-memory request. Lanes outside mask get address
// 0. `src` has the source addresses of a cp.async; NULL: 0 for all lanes.
static void record(const Access *x, SimAccess kind, uint32_t mask,
                   const uint64_t *src) {
  SimWarp *w = x->w;
  SimRequest r = {.kind = kind, .width = x->bytes, .mask = mask,
                  .mem = x->m->index, .line = x->i->stat, .base = x->m->base,
                  .warp = w->in};
  memcpy(r.block, w->cta->id, sizeof r.block);
  uint64_t line = src ? src[__builtin_ctz(mask)] & ~127ull : 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    r.addr[l] = (uint32_t)x->at[l];
    if (src) r.src[l] = src[l] - line;
  }
  if (!record_add(w->cluster->requests, &r))
    w->cluster->oom = w->cluster->stop = true;
}

static void count_shared(Access *x, uint32_t mask, int matrix) {
  SimCluster *c = x->w->cluster;
  SimAccess kind = x->i->op == OP_CPASYNC ? ACCESS_CPASYNC
                 : x->write ? ACCESS_STORE : ACCESS_LOAD;
  if (c->requests) record(x, matrix ? ACCESS_MATRIX : kind, mask, NULL);
  SimStat *s = &c->out->stat[x->i->stat];
  SimPattern *q = &c->pattern[x->i->stat * 2];
  uint32_t rel[LANES];
  relative(x, mask, x->m->base, 1024, rel);
  if (q->mask != mask || memcmp(q->rel, rel, sizeof rel) != 0) {
    SimPasses n = matrix ? access_matrix(matrix, rel, NULL)
                         : access_shared(kind, x->bytes, rel, mask, NULL);
    q->mask = mask;
    memcpy(q->rel, rel, sizeof rel);
    q->x = n.wavefronts;
    q->y = n.least;
  }
  s->wavefronts += (uint64_t)q->x;
  s->least += (uint64_t)q->y;
}

static int global_sectors(const Access *x, uint32_t mask) {
  uint64_t addr[LANES];
  for (int l = 0; l < LANES; l++) addr[l] = (uint64_t)x->at[l];
  return access_global(x->bytes, addr, mask);
}

// Reports whether L1 caches the sectors of this access. L1 does not cache
// sectors that the access stores or that may change.
static bool keeps(const Access *x) {
  if (x->i->op == OP_CPASYNC) return !(x->i->imm & CPF_GLOBAL);
  return !x->write && (x->i->op == OP_COPY || (x->i->op == OP_LD &&
                                               !x->i->sem));
}

static void count_global(Access *x, uint32_t mask) {
  SimCluster *c = x->w->cluster;
  SimStat *s = &c->out->stat[x->i->stat];
  SimPattern *q = &c->pattern[x->i->stat * 2 + 1];
  uint32_t rel[LANES];
  if (c->log)
    c->log->global(x->w, areas_start_of(x->m), x->at, mask, x->bytes,
                   keeps(x));
  s->requests++;
  s->least_sectors += (uint64_t)((lane_count(mask) * x->bytes + 31) / 32);
  if (!relative(x, mask, 0, 32, rel)) {
    q->mask = 0;
    s->sectors += (uint64_t)global_sectors(x, mask);
    return;
  }
  if (q->mask != mask || memcmp(q->rel, rel, sizeof rel) != 0) {
    q->mask = mask;
    memcpy(q->rel, rel, sizeof rel);
    q->x = global_sectors(x, mask);
    q->y = 1;
    for (int l = 0; l < LANES; l++)
      if (rel[l] != rel[0] + (uint32_t)(l * x->bytes)) q->y = 0;
  }
  s->sectors += (uint64_t)q->x;
}

static void count(Access *x, uint32_t mask, bool whole) {
  if (x->i->stat < 0) return;
  SimStat *s = &x->w->cluster->out->stat[x->i->stat];
  if (whole) {
    s->count++;
    s->bytes += (uint64_t)(lane_count(mask) * x->bytes);
  }
  if (!mask) return;
  if (x->i->op == OP_ATOMIC && x->w->cluster->log)
    x->w->cluster->log->same(x->w, x->at, mask);
  switch (x->m->memory) {
    case MEMORY_SHARED: count_shared(x, mask, 0); return;
    case MEMORY_GLOBAL: count_global(x, mask); return;
    case MEMORY_REGISTERS: case MEMORY_TENSOR: case MEMORY_NONE: return;
  }
}

// ---- moving bytes ----

static inline void copy_bytes(void *d, const void *s, int n) {
  switch (n) {
    case 1: memcpy(d, s, 1); break;
    case 2: memcpy(d, s, 2); break;
    case 4: memcpy(d, s, 4); break;
    case 8: memcpy(d, s, 8); break;
    case 16: memcpy(d, s, 16); break;
    case 32: memcpy(d, s, 32); break;
    default: memcpy(d, s, (size_t)n); break;
  }
}

// Copies n bytes per lane of mask, from p + at[lane] to buf + lane * stride.
static inline void copy_lanes(uint8_t *buf, int stride, const uint8_t *p,
                              const int64_t *at, uint32_t mask, int n) {
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    copy_bytes(buf + l * stride, p + at[l], n);
  }
}

SimPlaces simmem_places(const Access *x, int l) {
  const SimCluster *c = x->w->cluster;
  const SimProg *p = c->prog;
  const SimMem *m = x->m;
  int shift = 0;
  uint64_t where = 0, first = 0;
  switch (m->memory) {
    case MEMORY_SHARED:
      shift = p->shift;
      where = c->index * 2 + 1, first = simmem_address(x, l) >> shift;
      break;
    case MEMORY_GLOBAL:
      if (!areas_recorded(m)) return (SimPlaces){0};
      shift = m->area->shift;
      where = (uint64_t)(m->area - p->area) * 2 + 2;
      first = areas_granule(m, x->at[l]);
      break;
    case MEMORY_REGISTERS: case MEMORY_TENSOR: case MEMORY_NONE:
      return (SimPlaces){0};
  }
  return (SimPlaces){.key = where << 40 | first, .n = x->bytes >> shift,
                     .p = simmem_first(x->w, m) + simmem_from(x, l),
                     .size = 1 << shift};
}

static void announce(Access *x, uint32_t mask) {
  const SimSteps *steps = x->w->cluster->steps;
  if (steps && x->i->sem && !x->agent) steps->access(x, mask);
  x->w->cluster->hooks->access(x, mask);
}

// Returns, for each lane, the distance of the lane's bytes from simmem_first.
// If the lanes access memory of several CTAs, stores the distances in `far`.
static const int64_t *distances(const Access *x, int64_t far[LANES]) {
  if (!x->m->rank) return x->at;
  for (int l = 0; l < LANES; l++) far[l] = simmem_from(x, l);
  return far;
}

// Copies the bytes that each lane of mask loads to buf + lane * stride.
static void read_lanes(Access *x, uint32_t mask, uint8_t *buf, int stride) {
  const uint8_t *p = simmem_first(x->w, x->m);
  int64_t far[LANES];
  const int64_t *at = distances(x, far);
  announce(x, mask);
  // each common width has its own call, so that the compiler specializes it
  if (x->bytes == 4) copy_lanes(buf, stride, p, at, mask, 4);
  else if (x->bytes == 16) copy_lanes(buf, stride, p, at, mask, 16);
  else copy_lanes(buf, stride, p, at, mask, x->bytes);
}

uint32_t simmem_load(SimWarp *w, const SimIns *i, const SimMem *m,
                     uint32_t mask, const int64_t *off, int bytes,
                     SimLaneBuf buf) {
  Access x = {.w = w, .i = i, .m = m, .off = off, .bytes = bytes};
  mask = simmem_check(&x, mask);
  count(&x, mask, true);
  read_lanes(&x, mask, buf[0], sizeof *buf);
  return mask;
}

static void write_lanes(Access *x, uint32_t mask, SimLaneBuf buf) {
  uint8_t *p = simmem_first(x->w, x->m);
  int64_t far[LANES];
  const int64_t *at = distances(x, far);
  for (uint32_t m = mask; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    bool same = memcmp(p + at[l], buf[l], (size_t)x->bytes) == 0;
    x->same |= (uint32_t)same << l;
  }
  x->data = buf[0];
  x->stride = sizeof *buf;
  announce(x, mask);
  for (uint32_t m = mask; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    copy_bytes(p + at[l], buf[l], x->bytes);
  }
  if (x->i->sem || mask & ~x->same)
    simmem_moved(x->w->cluster, x->m->memory == MEMORY_GLOBAL);
}

void simmem_store(SimWarp *w, const SimIns *i, const SimMem *m,
                  uint32_t mask, const int64_t *off, int bytes,
                  SimLaneBuf buf) {
  Access x = {.w = w, .i = i, .m = m, .off = off, .bytes = bytes,
              .write = true};
  mask = simmem_check(&x, mask);
  count(&x, mask, true);
  // While this thread holds the lock, no other host thread executes an atomic.
  bool whole = i->sem && m->memory == MEMORY_GLOBAL;
  if (whole) pthread_mutex_lock(w->cluster->host.lock);
  write_lanes(&x, mask, buf);
  if (whole) pthread_mutex_unlock(w->cluster->host.lock);
}

// ---- asynchronous operations ----

void simmem_bulk_read(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                      int64_t at, int n) {
  Access x = {.w = w, .i = i, .m = m, .bytes = n, .agent = true};
  x.at[lane] = at;
  announce(&x, 1u << lane);
}

void simmem_bulk(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                 int64_t at, int n, const uint8_t *data) {
  SimIns as = *i;
  Access x = {.w = w, .i = &as, .m = m, .bytes = n, .write = true,
              .agent = true, .data = data};
  x.at[lane] = at;
  // A reduction combines its bytes with memory, as an atomic does.
  if (!data) {
    as.op = OP_ATOMIC;
    as.imm = AT_ADD;
    as.idle = as.alone = true;
    as.sem = SEM_RELAXED;
    as.scope = SCOPE_GPU;
  }
  announce(&x, 1u << lane);
  simmem_moved(w->cluster, true);
}

int64_t simmem_byte(SimWarp *w, const SimIns *i, const SimSide *s, int lane) {
  int64_t off[LANES];
  simmem_offsets(w, s, off);
  Access x = {.w = w, .i = i, .m = s->mem, .off = off, .bytes = 8,
              .write = true, .barrier = true};
  return simmem_check(&x, 1u << lane) ? x.at[lane] : -1;
}

// ---- elements narrower than a byte ----

// Returns the position of the first bit of lane l's element in its first byte.
static int part_shift(const Access *x, int l) {
  return (int)((uint64_t)x->off[l] * (uint64_t)x->m->bits & 7);
}

void simmem_load_bits(SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t mask, const int64_t *off, uint32_t *out) {
  Access x = {.w = w, .i = i, .m = m, .off = off, .bytes = 1};
  SimLaneBuf buf;
  // mask of the lanes whose element extends into a second byte
  uint32_t two = 0;
  mask = simmem_check(&x, mask);
  count(&x, mask, true);
  for (int part = 0; part < 2 && mask; part++) {
    read_lanes(&x, mask, buf[0], sizeof *buf);
    for (int l = 0; l < LANES; l++) {
      if (!(mask >> l & 1)) continue;
      int shift = part_shift(&x, l);
      if (part) out[l] |= (uint32_t)buf[l][0] << (8 - shift);
      else out[l] = (uint32_t)buf[l][0] >> shift;
      if (shift + m->bits > 8) two |= 1u << l;
      x.at[l]++;
    }
    mask = two;
  }
  for (int l = 0; l < LANES; l++) out[l] &= (1u << m->bits) - 1;
}

// Stores byte number `part` of the lanes' elements. The stores are atomic,
// because other host threads may write the other bits of that byte.
static void put_bits(Access *x, uint32_t mask, const uint32_t *value,
                     int part) {
  const SimMem *m = x->m;
  unsigned all = (1u << m->bits) - 1;
  announce(x, mask);
  if (mask) simmem_moved(x->w->cluster, m->memory == MEMORY_GLOBAL);
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask), shift = part_shift(x, l);
    uint8_t *p = simmem_first(x->w, m) + simmem_from(x, l);
    unsigned bits = part ? all >> (8 - shift) : all << shift;
    unsigned u = part ? value[l] >> (8 - shift) : value[l] << shift;
    __atomic_fetch_and(p, (uint8_t)~bits, __ATOMIC_RELAXED);
    __atomic_fetch_or(p, (uint8_t)(u & bits), __ATOMIC_RELAXED);
  }
}

void simmem_store_bits(SimWarp *w, const SimIns *i, const SimMem *m,
                       uint32_t mask, const int64_t *off,
                       const uint32_t *value) {
  Access x = {.w = w, .i = i, .m = m, .off = off, .bytes = 1, .write = true};
  // mask of the lanes whose element extends into a second byte
  uint32_t two = 0;
  mask = simmem_check(&x, mask);
  count(&x, mask, true);
  put_bits(&x, mask, value, 0);
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    if (part_shift(&x, l) + m->bits <= 8) continue;
    x.at[l]++;
    two |= 1u << l;
  }
  put_bits(&x, two, value, 1);
}

// ---- ldmatrix, stmatrix ----

void simmem_rows(SimWarp *w, const SimIns *i, const SimMatrix *x,
                 const int64_t *off, SimLaneBuf buf) {
  Access a = {.w = w, .i = i, .m = x->smem.mem, .off = off, .bytes = 16,
              .write = x->store};
  uint32_t rows = x->num == 4 ? FULL : (1u << x->num * 8) - 1;
  uint32_t mask = simmem_check(&a, rows);
  SimStat *s = &w->cluster->out->stat[i->stat];
  s->count++;
  s->bytes += (uint64_t)lane_count(mask) * 16;
  if (mask == rows) count_shared(&a, mask, x->num);
  if (x->store) write_lanes(&a, mask, buf);
  else read_lanes(&a, mask, buf[0], sizeof *buf);
}

// ---- atomics ----

// Returns the new value of an atomic. In global memory, L2 adds floats and
// flushes subnormal f32 to zero. In shared memory, a loop of instructions adds
// the old value to the operand. `cmp` is the value with which CAS compares.
static uint64_t atomic_new(AtomicKind k, const SimSide *s, uint64_t old,
                           uint64_t v, uint64_t cmp) {
  DType t = (DType)s->type;
  Op op = (Op)atomic_row(k)->op;
  if (k == AT_CAS) return old == cmp ? v : old;
  if (k == AT_EXCH) return v;
  if (k == AT_INC) return old >= v ? 0 : old + 1;
  if (k == AT_DEC) return old == 0 || old > v ? v : old - 1;
  if (op == OP_ADD && dtype_is_float(t))
    return s->mem->memory == MEMORY_GLOBAL ? eval_reduce(t, old, v, true)
                                    : eval_scalar(op, t, v, old, 0);
  return eval_scalar(op, t, old, v, 0);
}

// Executes an atomic for lane l. Sets *old to the previous value in memory.
// Returns whether the atomic stored a value.
static bool atomic_lane(Access *x, int l, uint64_t v, uint64_t cmp,
                        uint64_t *old) {
  const SimMem *m = x->m;
  SimCluster *c = x->w->cluster;
  bool global = m->memory == MEMORY_GLOBAL;
  uint8_t *p = simmem_first(x->w, m) + simmem_from(x, l);
  *old = 0;
  memcpy(old, p, (size_t)x->bytes);
  AtomicKind kind = (AtomicKind)x->i->imm;
  uint64_t new = atomic_new(kind, x->i->x, *old, v, cmp);
  memcpy(p, &new, (size_t)x->bytes);
  c->calm.polls += global && new == *old;
  if (new != *old) simmem_moved(c, global);
  return kind != AT_CAS || *old == cmp;
}

void simmem_atomic(SimWarp *w, const SimIns *i) {
  const SimSide *s = i->x;
  bool wide = sim_wide((DType)s->type);
  bool global = s->mem->memory == MEMORY_GLOBAL;
  int64_t off[LANES];
  simmem_offsets(w, s, off);
  Access x = {.w = w, .i = i, .m = s->mem, .off = off, .write = true,
              .bytes = dtype_bits((DType)s->type) / 8};
  uint32_t mask = simmem_check(&x, w->active), stored = 0;
  count(&x, mask, true);
  if (global) pthread_mutex_lock(w->cluster->host.lock);
  announce(&x, mask);
  for (int l = 0; l < LANES; l++) {
    if (!(mask >> l & 1)) continue;
    uint64_t v = 0, cmp = 0, old;
    memcpy(&v, w->v + i->c + l * (wide ? 8 : 4), wide ? 8 : 4);
    if (i->b)
      memcpy(&cmp, w->v + i->b + l * (wide ? 8 : 4), wide ? 8 : 4);
    stored |= (uint32_t)atomic_lane(&x, l, v, cmp, &old) << l;
    memcpy(w->v + i->d + l * (wide ? 8 : 4), &old, wide ? 8 : 4);
  }
  w->cluster->hooks->atomic(&x, mask, stored);
  if (global) pthread_mutex_unlock(w->cluster->host.lock);
}

// ---- polls ----

// Sets x->at and x->home of lane l for an access at element offset `off`.
// Returns false, without a report, if the access is out of bounds.
static bool reaches(Access *x, int l, int64_t off) {
  const SimMem *m = x->m;
  const SimProg *p = x->w->cluster->prog;
  uint32_t rank = m->rank ? u32_at(x->w, m->rank)[l] : 0;
  x->home[l] = rank * (uint32_t)p->smem_bytes;
  x->at[l] = (int64_t)((uint64_t)off * (uint64_t)m->bits) >> 3;
  return off >= 0 && off < m->count && x->at[l] <= m->bytes - x->bytes &&
         rank < (uint32_t)p->ncta;
}

bool simmem_ask(SimWarp *w, const SimIns *i, SimAsk *a) {
  const SimSide *s = i->x;
  if (i->op != OP_LD && i->op != OP_ATOMIC) return false;
  int bits = dtype_bits((DType)s->type);
  if (bits > 64) return false;
  int64_t off[LANES];
  Access x = {.w = w, .i = i, .m = s->mem, .bytes = bits / 8};
  simmem_offsets(w, s, off);
  *a = (SimAsk){.one = true};
  for (uint32_t m = w->active; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    SimPlaces at = {0};
    if (reaches(&x, l, off[l])) at = simmem_places(&x, l);
    if (!at.n) return false;
    a->one &= !a->n || a->key == at.key;
    a->key = at.key, a->n = at.n, a->size = at.size;
    memcpy(&a->found[l], at.p, (size_t)x.bytes);
  }
  return true;
}

bool simmem_stays(SimWarp *w, const SimIns *i, const uint64_t *found) {
  const SimSide *s = i->x;
  bool wide = sim_wide((DType)s->type), stays = true;
  for (int l = 0; l < LANES && i->op == OP_ATOMIC; l++) {
    uint64_t v = lane_bits(w, i->c, wide, l), old = found[l];
    uint64_t cmp = i->b ? lane_bits(w, i->b, wide, l) : 0;
    stays &= !(w->active >> l & 1) ||
             atomic_new((AtomicKind)i->imm, s, old, v, cmp) == old;
  }
  return stays;
}

// ---- cp.async ----

// A cp.async instruction of a warp whose copies are in flight.
struct SimBatch {
  uint32_t mask;           // lanes whose copies are in flight
  uint32_t open;           // lanes for which the cp.async is in no group yet
  uint32_t read;           // mask of the lanes that read their source
  uint32_t src;
  uint32_t bytes;
  uint64_t number;
  uint32_t group[LANES];
  // destinations, as offsets in the cluster's shared memory
  uint32_t dst[LANES];
  uint8_t data[LANES][16];
  // the cp.async if the kernel also writes its source; otherwise NULL
  const SimIns *i;
  int64_t from[LANES];
};

static SimBatch *new_batch(SimWarp *w) {
  if (w->copies.end == w->copies.cap) {
    if (w->copies.first > w->copies.cap / 2) {
      memmove(w->copies.batch, w->copies.batch + w->copies.first,
              (w->copies.end - w->copies.first) * sizeof *w->copies.batch);
      w->copies.end -= w->copies.first;
      w->copies.first = 0;
    } else {
      size_t cap = w->copies.cap ? w->copies.cap * 2 : 32;
      SimBatch *b = base_realloc(w->copies.batch, cap * sizeof *b);
      if (!b) {
        w->cluster->oom = w->cluster->stop = true;
        return NULL;
      }
      w->copies.batch = b;
      w->copies.cap = cap;
    }
  }
  return &w->copies.batch[w->copies.end++];
}

static void count_cpasync(Access *d, const Access *s, uint32_t mask,
                          uint32_t read) {
  SimStat *st = &d->w->cluster->out->stat[d->i->stat];
  st->count++;
  st->bytes += (uint64_t)(lane_count(mask) * d->bytes);
  if (mask && (d->i->imm & CPF_GLOBAL) && d->bytes == 16 && read == mask) {
    uint32_t dst[LANES];
    uint64_t src[LANES];
    for (int l = 0; l < LANES; l++) {
      dst[l] = d->m->base + (uint32_t)d->at[l];
      src[l] = (uint64_t)s->at[l];
    }
    SimPasses n = access_cpasync_cg(dst, src, mask, NULL);
    st->wavefronts += (uint64_t)n.wavefronts;
    st->least += (uint64_t)n.least;
    if (d->w->cluster->requests) record(d, ACCESS_CPASYNC_CG, mask, src);
  } else if (mask) {
    count_shared(d, mask, 0);
  }
}

// Reads the sources of a cp.async. part[l] is the number of bytes that lane l
// reads; NULL: all lanes read all bytes. Returns the lanes that read.
static uint32_t read_sources(Access *s, uint32_t mask, const uint32_t *part,
                             SimBatch *b) {
  uint32_t read = 0;
  s->unit = s->bytes;
  // each iteration reads the lanes that have the same number of bytes
  while (mask) {
    uint32_t same = mask;
    for (int l = 0; part && l < LANES; l++) {
      if (part[l] != part[__builtin_ctz(mask)]) same &= ~(1u << l);
    }
    if (part) s->bytes = (int)part[__builtin_ctz(mask)];
    mask &= ~same;
    s->flying = false;
    same = simmem_check(s, same);
    s->flying = true;
    read_lanes(s, same, b->data[0], sizeof b->data[0]);
    read |= same;
  }
  s->bytes = (int)s->unit;
  if (read) count_global(s, read);
  return read;
}

void simmem_cpasync(SimWarp *w, const SimIns *i) {
  const SimCopy *c = i->x;
  uint32_t mask = w->active, read;
  const uint32_t *p = (const uint32_t *)(const void *)(w->v + c->pred);
  if (c->pred)
    for (int l = 0; l < LANES; l++) mask &= ~((uint32_t)!p[l] << l);
  read = mask;
  const uint32_t *part = c->part
    ? (const uint32_t *)(const void *)(w->v + c->part) : NULL;
  if (i->imm & CPF_ZFILL) mask = w->active;
  SimBatch *b = new_batch(w);
  if (!b) return;
  int64_t so[LANES], to[LANES];
  simmem_offsets(w, &c->src, so);
  simmem_offsets(w, &c->dst, to);
  Access s = {.w = w, .i = i, .m = c->src.mem, .off = so, .bytes = c->bytes};
  Access d = {.w = w, .i = i, .m = c->dst.mem, .off = to, .bytes = c->bytes,
              .write = true};
  memset(b->data, 0, sizeof b->data);
  read = read_sources(&s, read, part, b);
  b->i = areas_recorded(s.m) ? i : NULL;
  if (b->i) memcpy(b->from, s.at, sizeof b->from);
  b->read = read;
  mask = simmem_check(&d, mask);
  count_cpasync(&d, &s, mask, read);
  b->mask = b->open = mask;
  b->number = w->copies.count++;
  b->src = i->src;
  b->bytes = (uint32_t)c->bytes;
  for (int l = 0; l < LANES; l++) {
    if (!(mask >> l & 1)) continue;
    b->dst[l] = simmem_address(&d, l);
  }
  d.flying = true;
  announce(&d, mask);
}

void simmem_commit(SimWarp *w) {
  for (size_t k = w->copies.first; k < w->copies.end; k++) {
    SimBatch *b = &w->copies.batch[k];
    uint32_t mine = b->open & w->active;
    b->open &= ~mine;
    for (; mine; mine &= mine - 1) {
      int l = __builtin_ctz(mine);
      b->group[l] = w->copies.committed[l];
    }
  }
  for (int l = 0; l < LANES; l++) w->copies.committed[l] += w->active >> l & 1;
}

// Returns the pending cp.async of w that writes byte `at` of shared memory, and
// sets *lane to its lane. Returns NULL if there is none. With `open`, searches
// the cp.asyncs that are in no group yet, otherwise the cp.asyncs in groups.
static const SimBatch *batch_to(const SimWarp *w, uint32_t at, bool open,
                                int *lane) {
  for (size_t k = w->copies.first; k < w->copies.end; k++) {
    const SimBatch *b = &w->copies.batch[k];
    for (uint32_t m = b->mask & (open ? b->open : ~b->open); m; m &= m - 1) {
      *lane = __builtin_ctz(m);
      if (at - b->dst[*lane] < b->bytes) return b;
    }
  }
  return NULL;
}

bool simmem_open(const SimWarp *w, uint32_t at) {
  int lane;
  return batch_to(w, at, true, &lane) != NULL;
}

bool simmem_group(const SimWarp *w, uint32_t at, int *lane, uint32_t *group) {
  const SimBatch *b = batch_to(w, at, false, lane);
  if (b) *group = b->group[*lane];
  return b != NULL;
}

static void landed_source(SimWarp *w, const SimBatch *b, int l, int actor,
                          uint32_t clk) {
  Access x = {.w = w, .i = b->i, .m = ((const SimCopy *)b->i->x)->src.mem,
              .bytes = (int)b->bytes};
  x.at[l] = b->from[l];
  w->cluster->hooks->settled(&x, l, actor, clk);
}

static void land(SimWarp *w, SimBatch *b, int l, int actor, uint32_t lanes,
                 uint32_t clk) {
  SimCluster *c = w->cluster;
  copy_bytes(c->smem + b->dst[l], b->data[l], (int)b->bytes);
  c->changed++;
  if (b->i && b->read >> l & 1) landed_source(w, b, l, actor, clk);
  c->hooks->landed(c, b->dst[l], b->bytes, actor, lanes, clk, b->src, false);
}

static void forget_landed(SimWarp *w) {
  while (w->copies.first < w->copies.end &&
         !w->copies.batch[w->copies.first].mask)
    w->copies.first++;
  if (w->copies.first == w->copies.end) w->copies.first = w->copies.end = 0;
}

void simmem_wait(SimWarp *w, uint32_t pending) {
  for (size_t k = w->copies.first; k < w->copies.end; k++) {
    SimBatch *b = &w->copies.batch[k];
    uint32_t m = b->mask & ~b->open & w->active;
    for (; m; m &= m - 1) {
      int l = __builtin_ctz(m);
      if (b->group[l] + (uint64_t)pending >= w->copies.committed[l]) continue;
      land(w, b, l, w->id, 1u << l, w->clk);
      b->mask &= ~(1u << l);
    }
  }
  forget_landed(w);
}

void simmem_land(SimWarp *w, uint32_t mask, uint64_t upto, int actor,
                 uint32_t epoch) {
  for (size_t k = w->copies.first; k < w->copies.end; k++) {
    SimBatch *b = &w->copies.batch[k];
    if (b->number >= upto) break;
    for (uint32_t m = b->mask & mask; m; m &= m - 1)
      land(w, b, __builtin_ctz(m), actor, 1, epoch);
    b->mask &= ~mask;
  }
  forget_landed(w);
}
// SPDX-License-Identifier: MIT
