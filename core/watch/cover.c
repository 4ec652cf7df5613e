// Finds parts of arguments that a launch never reads or stores, although no
// code of the kernel omits them on purpose. Such a part suggests a wrong
// coordinate of a tile, a step between tiles that exceeds the tile, or too few
// blocks. A part is noted only if all of the conditions below hold. A part of
// an input for which they do not all hold is doubtful: it is reported only if
// a comparison finds that the result is wrong.
// - The kernel reads the argument and does not write it, or writes the argument
//   and does not read it. An atomic whose result is unused is a store.
// - Data, scalar arguments and limits in the kernel do not decide the part
//   (meant.c). No scalar argument equals the part's first coordinate.
// - The accessed elements are all elements with coordinates in certain ranges.
//   For outputs, the omitted elements may instead form a box.
// - In each mode with gaps, the ranges have at least two coordinates unless
//   is_flat or is_alone holds, and begin at 0 unless is_late holds. There are
//   at most three gaps, or the gaps are periodic. Periodic gaps may begin at 0
//   if they are as wide as a block.
// - In each mode with gaps, an address is not constant. It may be constant if
//   the gaps begin at coordinate 8 or later and the kernel compares with the
//   extent, or if is_counted, is_gridded, is_short, is_rest or is_alone holds.
// - Another tensor of the kernel has a mode of the same extent (for an output,
//   the kernel reads that tensor), or the kernel compares with the extent.
// - The accessed elements do not form a smaller tensor (is_part).
// - Periodic gaps are not unused fields of records (is_record).
// - If there is only one block, it accesses more than the first part of a mode,
//   or an address depends on the block.
// - No other argument shares the memory.
// - cute.partial_ok and, for an output, cute.undefined_ok do not name the
//   argument.
#include "ir/operands.h"
#include "sim/bulk.h"
#include "watch/cover.h"
#include "watch/meant.h"
#include "watch/own.h"

#include <string.h>

static const SimMeant *meant_of(const SimProg *p) {
  return p->own[OWN_MEANT];
}

// ---- recording ----

// Returns the argument whose memory is area a, or -1 if several arguments share
// the area.
static int32_t owner(const SimProg *p, const SimArea *a) {
  int32_t found = -1;
  for (size_t k = 0; k < p->fn->arg.n; k++) {
    if (!p->fn->arg.p[k].pointer ||
        areas_area(p, (int32_t)k) != a) continue;
    if (found >= 0) return -1;
    found = (int32_t)k;
  }
  return found;
}

// Returns the number of 64-bit words of a bitmap of area a. The bitmap has one
// bit for each granule, the smallest unit of memory that is recorded.
static size_t words_of(const SimArea *a) {
  return ((a->bytes >> a->shift) + 1) / 64 + 1;
}

static uint64_t *bits_of(Ctx *cx, const SimArea *a) {
  return arena_zero(cx, &cx->scratch, words_of(a) * sizeof(uint64_t));
}

static bool is_partial(const Fn *fn, int32_t arg) {
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    bool own = mem_outlives(m) && m->arg == arg;
    if (own && (m->partial_ok || (m->undefined_ok && fn->arg.p[arg].written)))
      return true;
  }
  return false;
}

// Sets reads[k] for each argument k that the kernel reads. An atomic whose
// result is unused does not count as a read.
static void find_reads(const SimProg *p, bool *reads) {
  Operand o;
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *s = &p->ins[k];
    const Ins *i = ir_get(p->fn, s->ref);
    if (!(op_effect((Op)i->op) & EF_MEMORY) || s->idle) continue;
    for (Operands w = operands_of(p->fn, i); operands_next(&w, &o);) {
      if (!o.read || (o.kind != OPERAND_MEM && o.kind != OPERAND_MAP)) continue;
      const Mem *m = ir_memof(p->fn, o.ref);
      bool global = mem_outlives(m);
      if (global && m->arg != NO_ARG) reads[m->arg] = true;
    }
  }
}

void cover_start(Ctx *cx, SimProg *p) {
  if (ir_has_addresses(p->fn)) return;
  bool *reads = arena_zero(cx, &cx->scratch, p->fn->arg.n + 1);
  find_reads(p, reads);
  for (int k = 0; k < p->narea; k++) {
    SimArea *a = &p->area[k];
    int32_t arg = owner(p, a);
    if (arg < 0 || a->maps) continue;
    const Arg *g = &p->fn->arg.p[arg];
    if (reads[arg] == g->written || is_partial(p->fn, arg)) continue;
    if (g->written) a->stored = bits_of(cx, a);
    else a->read = bits_of(cx, a);
  }
}

// ---- the covered coordinates ----

// An argument and its accessed elements. seen[k] has one byte for each
// coordinate of mode k. The byte has the bit HIT if some element with this
// coordinate was accessed, and the bit MISSED if some element with this
// coordinate was not.
// MOST: largest number of elements that are visited. DOUBTFUL_MOST: the same
// for an input whose omitted part is doubtful in any case, so that launches
// stay fast.
enum { HIT = 1, MISSED = 2, MOST = 1 << 26, DOUBTFUL_MOST = 1 << 16 };
typedef struct Cover {
  const SimArea *area;
  const uint64_t *map;
  const LaunchArg *arg;
  int bits;
  SimShape s;
  uint8_t *seen[COVER_MODES];
  int64_t hit, size;
} Cover;

static bool is_hit(const Cover *c, int64_t element) {
  const uint8_t *byte = (const uint8_t *)c->arg->p + element * c->bits / 8;
  size_t g = (size_t)(byte - c->area->p) >> c->area->shift;
  return c->map[g / 64] >> (g & 63) & 1;
}

// Visits all elements of the argument that are inside its memory.
static void visit(Cover *c) {
  const SimShape *s = &c->s;
  int64_t at[COVER_LEAVES] = {0}, x[COVER_MODES] = {0}, element = 0;
  for (;;) {
    bool there = (element + 1) * c->bits <= (int64_t)c->arg->bytes * 8;
    bool hit = there && is_hit(c, element);
    c->size += there;
    c->hit += hit;
    for (int k = 0; k < s->rank && there; k++)
      c->seen[k][x[k]] |= hit ? HIT : MISSED;
    int k = 0;
    while (k < s->n && at[k] == s->extent[k] - 1) {
      element -= at[k] * s->stride[k];
      x[s->of[k]] -= at[k] * s->step[k];
      at[k++] = 0;
    }
    if (k == s->n) return;
    at[k]++;
    element += s->stride[k];
    x[s->of[k]] += s->step[k];
  }
}

// Allocates `seen`. Returns the number of elements of the shape, or 0 if the
// shape has too many.
static int64_t allocate(Ctx *cx, Cover *c) {
  int64_t size = 1;
  for (int k = 0; k < c->s.rank; k++) {
    size *= c->s.size[k];
    if (size > MOST) return 0;
    c->seen[k] = arena_zero(cx, &cx->scratch, (size_t)c->s.size[k]);
  }
  return size;
}

// Reports whether the launch accessed all of the argument's memory.
static bool is_full(const Cover *c) {
  size_t g = (size_t)((const uint8_t *)c->arg->p - c->area->p);
  size_t end = g + c->arg->bytes;
  g >>= c->area->shift;
  end >>= c->area->shift;
  while (g < end && (g & 63) == 0 && g + 64 <= end && !~c->map[g / 64]) g += 64;
  for (; g < end; g++) {
    if (!(c->map[g / 64] >> (g & 63) & 1)) return false;
    while ((g & 63) == 63 && g + 65 <= end && !~c->map[g / 64 + 1]) g += 64;
  }
  return true;
}

static int64_t count_of(const Cover *c, int mode, uint8_t bit) {
  int64_t n = 0;
  for (int64_t k = 0; k < c->s.size[mode]; k++)
    n += (c->seen[mode][k] & bit) != 0;
  return n;
}

static int64_t product_of(const Cover *c, uint8_t bit) {
  int64_t n = 1;
  for (int k = 0; k < c->s.rank; k++) n *= count_of(c, k, bit);
  return n;
}

// Collects the coordinates of a mode at which no element was accessed. With
// `boxed`, collects the coordinates at which at least one element was not
// accessed.
static void ranges_of(const Cover *c, int mode, bool boxed, SimRanges *r) {
  const uint8_t *seen = c->seen[mode];
  int64_t n = c->s.size[mode], from = -1, last = -1;
  bool even = true;
  *r = (SimRanges){.mode = mode, .extent = n};
  for (int64_t k = 0; k <= n; k++) {
    bool in = k < n && (boxed ? (seen[k] & MISSED) != 0 : !(seen[k] & HIT));
    if (in && from < 0) from = k;
    if (in || from < 0) continue;
    if (r->n == 1) r->period = from - last;
    // The last range may end with the tensor. It may then be shorter or longer
    // than the others.
    int64_t length = r->to[0] - r->from[0] + 1;
    if (r->n)
      even &= from - last == r->period && (k == n || k - from == length);
    if (r->n && k - from > length) r->tail = from;
    if (r->n < SIM_RANGES) r->from[r->n] = from, r->to[r->n] = k - 1;
    r->n++;
    last = from;
    from = -1;
  }
  if (!even || r->n < 2) r->period = 0;
}

// ---- what is reported ----

static bool is_scalar(const SimProg *p, int64_t n) {
  for (size_t k = 0; k < p->fn->arg.n; k++)
    if (!p->fn->arg.p[k].pointer &&
        (int32_t)p->launch->arg[k].bits == (int32_t)n)
      return true;
  return false;
}

// Reports whether another argument has a mode of extent n. With `stored`,
// considers only arguments that the kernel reads.
static bool is_shared(Ctx *cx, const SimProg *p, int32_t arg, int64_t n,
                      bool stored) {
  for (size_t k = 0; k < p->fn->arg.n; k++) {
    const Arg *a = &p->fn->arg.p[k];
    SimShape s;
    if ((int32_t)k == arg || !a->pointer || (stored && !a->read)) continue;
    if (!stored && !a->read && !a->written) continue;
    if (meant_shape(cx, p, (int32_t)k, &s) < 0) continue;
    for (int j = 0; j < s.rank; j++)
      if (s.size[j] == n) return true;
  }
  return false;
}

// Reports whether periodic gaps are unused fields of records: each thread
// accesses only some elements of its records, at constant offsets.
static bool is_record(const Cover *c, const SimMeant *m, const SimRanges *r) {
  int k = 0;
  while (c->s.of[k] != r->mode) k++;
  int64_t step = r->period * c->s.stride[k];
  return step > 0 && m->unit > 0 && m->unit % step == 0;
}

// Reports whether the launch accessed no element of argument k at the last
// coordinate of its mode of extent n.
static bool lacks_end(Ctx *cx, const SimProg *p, int32_t k, int64_t n) {
  const SimArea *a = areas_area(p, k);
  Cover c = {.area = a, .arg = &p->launch->arg[k]};
  int32_t mem = meant_shape(cx, p, k, &c.s);
  if (mem < 0 || !a || (!a->read && !a->stored)) return false;
  c.map = a->read ? a->read : a->stored;
  c.bits = dtype_bits(p->fn->mem.p[mem].type);
  if (!allocate(cx, &c)) return false;
  visit(&c);
  bool lacks = false;
  for (int j = 0; j < c.s.rank; j++) {
    if (c.s.size[j] != n) continue;
    if (c.seen[j][n - 1] & HIT) return false;
    lacks = true;
  }
  return lacks;
}

// Reports whether a bounds check seems to be too small by 1. This is the case
// if the last coordinate of a mode is omitted in this argument, and in every
// other argument with a mode of this extent. If another argument is accessed at
// this coordinate, as in x[i + 1] - x[i], the script omits the coordinate on
// purpose.
static bool is_one_less(Ctx *cx, const SimProg *p, int32_t arg,
                        const SimRanges *r) {
  bool other = false;
  if (r->n != 1 || r->from[0] != r->extent - 1) return false;
  for (size_t k = 0; k < p->fn->arg.n; k++) {
    SimShape s;
    if ((int32_t)k == arg || !p->fn->arg.p[k].pointer ||
        meant_shape(cx, p, (int32_t)k, &s) < 0)
      continue;
    bool has = false;
    for (int j = 0; j < s.rank; j++) has |= s.size[j] == r->extent;
    if (has && !lacks_end(cx, p, (int32_t)k, r->extent)) return false;
    other |= has;
  }
  return other;
}

// Reports whether a loop around the accesses ends one step too early: it ends
// where the omitted coordinates begin, and one more step would reach the
// extent.
static bool is_one_step(const SimProg *p, const SimMeant *m,
                        const SimRanges *r) {
  int64_t step;
  if (r->n != 1 || r->to[0] != r->extent - 1) return false;
  for (uint32_t k = 0; k < m->ends; k++)
    if (m->end[k] == r->from[0] && m->moved[k] >> r->mode & 1 &&
        ir_const(p->fn, ir_get(p->fn, m->loop[k])->a[2], &step) && step > 1 &&
        m->end[k] + step >= r->extent)
      return true;
  return false;
}

// Reports whether the kernel omits all coordinates from r->from[0] on by an
// intentional limit. Two kinds of limits count as mistakes instead: a limit
// that equals the extent of another mode, and a limit that is too small by 1
// (is_one_less) or by one step of a loop (is_one_step).
static bool is_limit(Ctx *cx, const SimProg *p, const Cover *c, int32_t arg,
                     const SimMeant *m, const SimRanges *r) {
  int64_t end = r->from[0];
  if (!meant_ends(m, r->mode, end)) return false;
  if (r->n > 1 || r->to[0] != r->extent - 1 || !meant_bounds(m, end))
    return true;
  for (int k = 0; k < c->s.rank; k++)
    if (k != r->mode && c->s.size[k] == end) return false;
  return !is_one_less(cx, p, arg, r) && !is_one_step(p, m, r);
}

// If the accessed coordinates are exactly the first tile, returns the number of
// tiles in the extent. Otherwise returns 1.
static int64_t tiles_of(const SimRanges *r) {
  enum { LEAST = 8 };  // minimum tile size, unless the tile divides the extent
  int64_t tile = r->from[0];
  bool end = r->n == 1 && r->to[0] == r->extent - 1;
  bool good = end && tile && (tile >= LEAST || r->extent % tile == 0);
  return good ? (r->extent + tile - 1) / tile : 1;
}

// Reports whether the launch seems to have enough iterations or blocks for all
// tiles (tiles_of), although no address depends on them. Either a loop around
// the accesses has one iteration for each tile, or the grid has one block for
// each tile along x, y or z.
static bool is_counted(const SimProg *p, const SimMeant *m,
                       const SimRanges *r) {
  int64_t tiles = tiles_of(r);
  for (uint32_t k = 0; k < m->ends && tiles > 1; k++)
    if (m->end[k] == tiles && !(m->moved[k] >> r->mode & 1)) return true;
  for (int k = 0; k < 3 && tiles > 1 && !m->blocks; k++)
    if (p->launch->grid[k] == tiles) return true;
  return false;
}

// Returns in *first and *last the lowest and the highest value of the counter
// of loop k around the accesses. Returns false if these values are not
// constant.
static bool values_of(const SimProg *p, const SimMeant *m, uint32_t k,
                      int64_t *first, int64_t *last) {
  const Ins *i = ir_get(p->fn, m->loop[k]);
  int64_t from, end, step;
  if (!ir_const(p->fn, i->a[0], &from) || !ir_const(p->fn, i->a[1], &end) ||
      !ir_const(p->fn, i->a[2], &step) || (step != 1 && step != -1))
    return false;
  *first = step > 0 ? from : end + 1;
  *last = step > 0 ? end - 1 : from;
  return *first < *last;
}

// Reports whether a loop around the accesses omits only the first tiles of a
// mode: the loop begins after tile 0, and its last tile is the last tile of the
// mode.
static bool is_late(const SimProg *p, const SimMeant *m, const SimRanges *r) {
  int64_t gap = r->to[0] + 1, first, last;
  if (r->n != 1 || r->from[0] || gap < 2) return false;
  for (uint32_t k = 0; k < m->ends; k++) {
    if (!(m->moved[k] >> r->mode & 1) || !values_of(p, m, k, &first, &last) ||
        first < 1 || gap % first)
      continue;
    int64_t tile = gap / first;
    if (last == (r->extent - 1) / tile) return true;
  }
  return false;
}

// Reports whether a loop around the accesses never reaches the last tile of a
// mode, although it seems to have one iteration for each tile.
static bool is_early(const SimProg *p, const SimMeant *m, const SimRanges *r) {
  int64_t first, last;
  if (r->n != 1 || r->to[0] != r->extent - 1) return false;
  for (uint32_t k = 0; k < m->ends; k++) {
    if (!(m->moved[k] >> r->mode & 1) || !values_of(p, m, k, &first, &last) ||
        first || r->extent % (last + 1))
      continue;
    if (r->extent - r->from[0] == r->extent / (last + 1)) return true;
  }
  return false;
}

// Reports whether a loop moves the accesses to the argument along a mode, but
// does not move the accesses to outputs. Such a loop computes sums over this
// mode.
static bool is_summed(const SimProg *p, int32_t arg, int mode) {
  const SimMeant *m = &meant_of(p)[arg];
  for (uint32_t k = 0; k < m->ends; k++) {
    if (!(m->moved[k] >> mode & 1)) continue;
    bool moves = false;
    for (size_t a = 0; a < p->fn->arg.n; a++) {
      const SimMeant *o = &meant_of(p)[a];
      for (uint32_t j = 0; p->fn->arg.p[a].written && j < o->ends; j++)
        moves |= o->loop[j] == m->loop[k] && o->moved[j];
    }
    if (!moves) return true;
  }
  return false;
}

// Reports whether a loop around the accesses has one iteration for each whole
// tile of a mode, so that it omits the remaining coordinates. The loop must
// begin at a block's index, or there must be only one block. The kernel must
// not compare with the first omitted coordinate.
static bool is_rest(const SimProg *p, const SimMeant *m, const SimRanges *r) {
  int64_t from = r->from[0];
  bool one = p->nunit * (uint64_t)p->ncta == 1;
  if (r->n != 1 || r->to[0] != r->extent - 1) return false;
  for (int64_t n = from - 1; n <= from; n++)
    if (meant_guards(m, n, LIMIT_NEAR) || meant_guards(m, n, LIMIT_FAR))
      return false;
  for (uint32_t k = 0; k < m->ends; k++) {
    int64_t n = m->end[k];
    if (!one && !(m->strides >> k & 1)) continue;
    if (m->moved[k] >> r->mode & 1 && n > 0 && from % n == 0 && from > n &&
        r->extent - from < from / n)
      return true;
  }
  return false;
}

// Reports whether is_counted, is_late or is_summed holds for every mode with
// omitted ranges.
static bool is_counted_all(const SimProg *p, const SimGap *g, int32_t arg) {
  for (int k = 0; k < g->n; k++)
    if (!is_counted(p, &meant_of(p)[arg], &g->of[k]) &&
        !is_late(p, &meant_of(p)[arg], &g->of[k]) &&
        !(!g->stored && is_summed(p, arg, g->of[k].mode)))
      return false;
  return true;
}

// Reports whether the grid has as many blocks as the tensor has tiles
// (tiles_of), although no address depends on the block.
static bool is_gridded(const SimProg *p, const SimMeant *m, const SimGap *g) {
  int64_t tiles = 1;
  for (int k = 0; k < g->n; k++) tiles *= tiles_of(&g->of[k]);
  return tiles > 1 && !m->blocks && tiles == (int64_t)p->nunit * p->ncta;
}

// Reports whether the only accessed coordinates of a mode are multiples of the
// number of threads of a block, although the kernel compares coordinates with
// the mode's extent.
static bool is_stride(const SimProg *p, const SimMeant *m,
                      const SimRanges *r) {
  return r->from[0] == 1 && r->period == p->nthread && p->nthread > 1 &&
         meant_bounds(m, r->extent);
}

// Reports whether ranges of coordinates are omitted at regular distances, where
// the length of a range is a multiple of the block's number of threads.
static bool is_block_step(const SimProg *p, const SimRanges *r) {
  int64_t n = p->nthread;
  bool end = !r->from[0] && r->n <= SIM_RANGES &&
             r->to[r->n - 1] == r->extent - 1;
  return n > 1 && r->period && r->period % n == 0 && r->from[0] % n == 0 &&
         (r->to[0] + 1) % n == 0 && !end && !r->tail;
}

// Reports whether a launch seems to have too few threads: only the first
// elements of a mode are stored, no address depends on the block, and the
// kernel compares the thread's index with the extent. `r` has the elements that
// are not stored.
static bool is_short(const SimMeant *m, const SimRanges *r, bool stored) {
  return stored && r->from[0] && r->n == 1 && r->to[0] == r->extent - 1 &&
         !m->blocks && meant_guards(m, r->extent, LIMIT_THREAD);
}

bool cover_complete(const SimProg *p, int32_t k) {
  const SimArea *a = areas_area(p, k);
  if (!a || (!a->read && !a->stored)) return false;
  return is_full(&(Cover){.area = a, .map = a->read ? a->read : a->stored,
                          .arg = &p->launch->arg[k]});
}

// Reports whether the omission affects only argument `arg`: two other tensors
// have a mode of extent n, and the launch accesses all other tensors
// completely. (Vectors of extent n may lack their last element.)
static bool is_alone(Ctx *cx, const SimProg *p, int32_t arg, int64_t n) {
  int same = 0;
  for (size_t k = 0; k < p->fn->arg.n; k++) {
    const SimArea *a = areas_area(p, (int32_t)k);
    SimShape s;
    if ((int32_t)k == arg || !p->fn->arg.p[k].pointer || !a) continue;
    if (meant_shape(cx, p, (int32_t)k, &s) < 0) return false;
    // Several vectors, such as weights and biases, may all lack the last
    // element.
    if (a->read && s.rank == 1 && lacks_end(cx, p, (int32_t)k, n)) continue;
    if ((a->read || a->stored) && !cover_complete(p, (int32_t)k)) return false;
    int j = 0;
    while (j < s.rank && s.size[j] != n) j++;
    same += j < s.rank;
  }
  return same > 1;
}

// Reports whether all blocks access only coordinate 0 of a mode, although the
// kernel computes the coordinate. Examples are a grid without its third extent,
// and a quotient that is always 0.
static bool is_flat(Ctx *cx, const SimProg *p, int32_t arg, const SimMeant *m,
                    const SimGap *g, const SimRanges *r) {
  enum { LEAST = 4 };  // minimum extent, if no other tensor has this extent
  return g->rank > 1 && g->n == 1 && p->nunit * (uint64_t)p->ncta > 1 &&
         r->n == 1 && r->from[0] == 1 && r->to[0] == r->extent - 1 &&
         m->mode >> r->mode & 1 &&
         (r->extent >= LEAST || is_shared(cx, p, arg, r->extent, g->stored));
}

// Reports whether the kernel seems to omit the ranges r of a mode by mistake.
static bool is_odd(Ctx *cx, const SimProg *p, const Cover *c, int32_t arg,
                   const SimGap *g, const SimRanges *r) {
  const SimMeant *m = &meant_of(p)[arg];
  bool step = is_block_step(p, r), part = is_short(m, r, g->stored);
  bool counted = is_counted(p, m, r) || is_late(p, m, r), alone = g->alone;
  bool rest = is_rest(p, m, r), flat = is_flat(cx, p, arg, m, g, r);
  bool single = flat || (alone && r->from[0] == 1);
  bool compares = meant_bounds(m, r->extent) || counted || alone || part ||
                  rest || is_early(p, m, r) || is_one_step(p, m, r) ||
                  is_gridded(p, m, g) || (step && g->rank == 1) || flat;
  bool moves = m->mode >> r->mode & 1 || (r->from[0] >= 8 && compares);
  if (r->from[0] < 2 && !is_stride(p, m, r) && !step && !part && !counted &&
      !single)
    return false;
  if (!moves && !part && !counted && !single) return false;
  if (r->n > SIM_RANGES && !r->period) return false;
  if (is_record(c, m, r)) return false;
  if (is_scalar(p, r->from[0]) && r->from[0]) return false;
  if (!rest && !(counted && !r->from[0]) && is_limit(cx, p, c, arg, m, r))
    return false;
  if (!compares && !is_shared(cx, p, arg, r->extent, g->stored)) return false;
  return g->all || part || counted || single ||
         count_of(c, r->mode, HIT) >= 2;
}

static bool is_told(Ctx *cx, const SimProg *p, const Cover *c, int32_t arg,
                    SimGap *g) {
  const SimMeant *m = &meant_of(p)[arg];
  bool one = p->nunit * (uint64_t)p->ncta == 1, deep = false;
  g->few = m->moves;
  g->blocks = true;
  for (int k = 0; k < g->n; k++) {
    const SimRanges *r = &g->of[k];
    bool end = r->n == 1 && r->to[0] == r->extent - 1;
    bool part = is_short(m, r, g->stored);
    bool blocks = m->blocks >> r->mode & 1;
    bool first = r->from[0] == 1 && r->extent > 2 && g->rank > 1;
    g->alone = !g->stored && g->n == 1 && end && !blocks &&
               (r->from[0] >= 8 || first) && is_alone(cx, p, arg, r->extent);
    deep |= !end || part || blocks || g->alone || is_counted(p, m, r) ||
            is_rest(p, m, r) || is_early(p, m, r) || is_one_step(p, m, r);
    g->few &= !one || blocks;
    if (!one && !m->moves && !part && !g->alone && !is_gridded(p, m, g))
      return false;
    g->few &= end;
    g->blocks &= end && blocks;
    if (!is_odd(cx, p, c, arg, g, r)) return false;
  }
  return !one || deep;
}

// Returns the first line that reads the memory of an argument or, with
// `stored`, the first line that writes it.
static uint32_t line_of(const SimProg *p, int32_t arg, bool stored) {
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    const SimMem *m = NULL;
    if (i->op == (stored ? OP_ST : OP_LD) || (stored && i->op == OP_ATOMIC))
      m = ((const SimSide *)i->x)->mem;
    const SimCopy *c = i->x;
    if (i->op == OP_COPY) m = stored ? c->dst.mem : c->src.mem;
    if (i->op == OP_CPASYNC && !stored) m = c->src.mem;
    bool out = i->op == OP_TMASTORE || i->op == OP_BULKSTORE;
    if (stored ? out : i->op == OP_TMALOAD || i->op == OP_BULKLOAD)
      m = ((const SimBulk *)i->x)->global;
    if (!m || m->index < 0) continue;
    const Mem *own = &p->fn->mem.p[m->index];
    bool global = mem_outlives(own);
    if (global && own->arg == arg) return i->src;
  }
  return 0;
}

// Reports whether the accessed elements have the shape of another tensor, which
// the kernel accesses completely. An example is a matrix that is stored into
// the corner of a larger matrix. For an output, the other tensor is an input,
// and the kernel must read all inputs completely. For an input, the other
// tensor is an output, and the kernel must store all outputs completely.
static bool is_part(Ctx *cx, const SimProg *p, const Cover *c, int32_t arg,
                    bool stored) {
  bool found = false;
  for (size_t k = 0; k < p->fn->arg.n; k++) {
    const Arg *a = &p->fn->arg.p[k];
    if ((int32_t)k == arg || !a->pointer || !(stored ? a->read : a->written))
      continue;
    SimShape s;
    if (!cover_complete(p, (int32_t)k)) return false;
    if (meant_shape(cx, p, (int32_t)k, &s) < 0 || s.rank != c->s.rank)
      continue;
    int mode = 0;
    while (mode < s.rank && s.size[mode] == count_of(c, mode, HIT)) mode++;
    found |= mode == s.rank;
  }
  return found;
}

// Reports whether the launch stored to any argument.
static bool is_any_stored(const SimProg *p) {
  for (size_t k = 0; k < p->fn->arg.n; k++) {
    const SimArea *a = areas_area(p, (int32_t)k);
    if (!p->fn->arg.p[k].written || !a) continue;
    if (!a->stored) return true;
    for (size_t j = 0; j < words_of(a); j++)
      if (a->stored[j]) return true;
  }
  return false;
}

// Finds the part of argument `arg` that was never accessed. Returns false if
// there is none, or if the kernel's data decide it. Also returns false for an
// output whose part the kernel may omit on purpose.
static bool find_gap(Ctx *cx, SimProg *p, int32_t arg, SimGap *g) {
  SimArea *a = areas_area(p, arg);
  if (!a || (!a->read && !a->stored)) return false;
  Cover c = {.area = a, .map = a->read ? a->read : a->stored,
             .arg = &p->launch->arg[arg]};
  if (is_full(&c)) return false;
  if (!p->own[OWN_MEANT]) p->own[OWN_MEANT] = meant_all(cx, p);
  const SimMeant *m = &meant_of(p)[arg];
  if (!a->stored && (m->data || m->picked)) return false;
  int32_t mem = meant_shape(cx, p, arg, &c.s);
  if (mem < 0) return false;
  c.bits = dtype_bits(p->fn->mem.p[mem].type);
  int64_t size = allocate(cx, &c);
  if (!size || (m->free && !a->stored && size > DOUBTFUL_MOST)) return false;
  visit(&c);
  *g = (SimGap){.mem = mem, .stored = a->stored, .rank = c.s.rank,
                .map = c.arg->map, .none = c.size - c.hit, .size = c.size};
  if (g->none == 0 || c.size != size) return false;
  g->src = line_of(p, arg, g->stored);
  if (c.hit == 0)
    return g->stored && !m->scalar &&
           (!m->data || (c.size > 1 && !is_any_stored(p)));
  if (m->free && g->stored) return false;
  g->all = product_of(&c, HIT) != c.hit;
  if (g->all && (!g->stored || product_of(&c, MISSED) != g->none))
    return false;
  for (int k = 0; k < c.s.rank; k++) {
    int64_t n = g->all ? count_of(&c, k, MISSED) : count_of(&c, k, HIT);
    if (n == c.s.size[k]) continue;
    if (g->n == 2) return false;
    ranges_of(&c, k, g->all, &g->of[g->n++]);
  }
  g->doubtful = m->free ||
                (!g->all && !is_counted_all(p, g, arg) &&
                 is_part(cx, p, &c, arg, g->stored)) ||
                !is_told(cx, p, &c, arg, g);
  for (int k = 0; k < g->n; k++)
    if (g->of[k].n > SIM_RANGES && !g->of[k].period) return false;
  return !g->doubtful || !g->stored;
}

int cover_find(Ctx *cx, SimProg *p, SimGap gap[SIM_GAPS]) {
  SimGap doubtful[SIM_GAPS];
  int n = 0, others = 0;
  for (int stored = 1; stored >= 0; stored--)
    for (size_t k = 0; k < p->fn->arg.n && n < SIM_GAPS; k++) {
      SimGap g;
      if (!p->fn->arg.p[k].pointer || p->fn->arg.p[k].written != stored ||
          !find_gap(cx, p, (int32_t)k, &g))
        continue;
      if (!g.doubtful) gap[n++] = g;
      else if (others < SIM_GAPS) doubtful[others++] = g;
    }
  for (int k = 0; k < others && n < SIM_GAPS; k++) gap[n++] = doubtful[k];
  return n;
}
// SPDX-License-Identifier: MIT
