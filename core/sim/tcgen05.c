// Tensor memory, its allocation, and the tcgen05 operations.
//
// The MMAs of a warp, and its copies from shared memory, execute in the order
// of issue, when a later commit completes. This is soon enough, because no
// thread can observe the results earlier. Until then the operands may be read
// from shared memory at any time. A commit is an asynchronous operation that
// arrives at an mbarrier (async.h). Each warp has an actor, an entry of the
// vector clocks. The epoch of the actor is the number of the warp's completed
// operations. Threads that wait at the mbarrier acquire this epoch.
//
// A warp's loads and stores of tensor memory move their data at once. Until the
// warp waits for them, core/watch/tensor.c treats them as incomplete.
//
// CTAs of ranks 2k and 2k + 1 are a pair. An MMA of a pair (cta_group::2) reads
// A and B from the shared memory of both CTAs, and writes the tensor memory of
// both. Both CTAs allocate and free the same columns: an allocation waits until
// the other CTA also allocates.
#include "sim/tcgen05.h"

#include "decode/fits.h"
#include "hardware/descriptor.h"
#include "hardware/mma.h"
#include "sim/async.h"
#include "sim/mbar.h"
#include "sim/regs.h"

#include <string.h>

enum { ALL_GROUPS = (1 << TMEM_GROUPS) - 1, ALL_LANES = (1 << TMEM_GROUP) - 1 };

// An allocation of columns by warp `warp` of the CTA, in line src. `pair` is
// true if the other CTA of the pair holds the same columns.
typedef struct Claimed {
  int column, n, warp;
  uint32_t src;
  bool pair;
} Claimed;

// An allocation that a warp of a CTA pair has begun. `column` is the first
// column, or -1 until the other CTA also allocates. `i` is the instruction;
// NULL: no allocation has begun.
typedef struct Ask {
  const SimIns *i;
  int warp, n, column;
} Ask;

// The tensor memory of a CTA. `defined` has, for each group of lanes and each
// column, a mask of those lanes of the group that were written. `freed` has,
// for each block of columns, the last freed allocation, with the line of the
// deallocation.
typedef struct Tensor {
  uint32_t cell[TMEM_LANES][TMEM_COLUMNS];
  uint16_t defined[TMEM_GROUPS][TMEM_COLUMNS];
  Claimed claimed[TMEM_COLUMNS / TMEM_BLOCK], freed[TMEM_COLUMNS / TMEM_BLOCK];
  int nclaimed;
  Ask ask;
  uint32_t gone;  // line that gave up the permission to allocate; 0: none
} Tensor;

// An MMA, a copy from shared memory or a shift in flight.
typedef struct Job {
  const SimIns *i;
  uint64_t desc[2];      // descriptors of A (0: A is in tensor memory) and of B
  // Addresses in tensor memory. d: of D, or of the columns that a shift moves.
  // a: of A. meta: of A's metadata. sf: of the scale factors of A and B. byte:
  // the byte in a column at which the scale factors begin.
  uint32_t d, a, meta, sf[2];
  uint8_t byte[2];
  bool add;
} Job;

// The MMAs, copies and shifts that a warp issued. job[0] is the warp's
// operation number `done`, counted from 0. closed: number of operations that a
// commit follows. issued: for each kind of actor, number of issued operations.
typedef struct Pipe {
  Job *job;
  uint32_t njob, cap;
  uint32_t done, closed, commits, issued[ACTOR_COUNT];
} Pipe;

struct SimTensors {
  Tensor *cta;
  Pipe *pipe;
  bool pair;  // whether pairs of CTAs allocate
  // Buffers for that part of an MMA which is being computed. a, b, d: operands
  // A, B and D. raw: raw bytes of an operand.
  float a[TMEM_LANES * 64], b[256 * 128], d[TMEM_LANES * 256];
  uint8_t sf[2][256 * 4];
  uint32_t meta[TMEM_LANES * 2];
  char raw[256 * 64 * 4];
};

// ---- state ----

bool simtcgen05_init(SimCluster *c) {
  const SimProg *p = c->prog;
  if (!actors_of(&p->actors, ACTOR_TCMMA)) return true;
  struct SimTensors *t = c->tensors = base_zeros(sizeof *t);
  if (!t) return false;
  t->cta = base_zeros((size_t)p->ncta * sizeof *t->cta);
  t->pipe = base_zeros((size_t)p->nall * sizeof *t->pipe);
  return t->cta && t->pipe;
}

void simtcgen05_free(SimCluster *c) {
  struct SimTensors *t = c->tensors;
  if (!t) return;
  for (int k = 0; t->pipe && k < c->prog->nall; k++) base_free(t->pipe[k].job);
  base_free(t->pipe);
  base_free(t->cta);
  base_free(t);
}

void simtcgen05_reset(SimCluster *c) {
  struct SimTensors *t = c->tensors;
  if (!t) return;
  for (int k = 0; k < c->prog->ncta; k++) {
    memset(t->cta[k].defined, 0, sizeof t->cta[k].defined);
    memset(t->cta[k].freed, 0, sizeof t->cta[k].freed);
    t->cta[k].nclaimed = 0;
    t->cta[k].gone = 0;
    t->cta[k].ask.i = NULL;
  }
  for (int k = 0; k < c->prog->nall; k++) {
    Pipe was = t->pipe[k];
    t->pipe[k] = (Pipe){.job = was.job, .cap = was.cap};
  }
}

// Returns the rank of w's CTA in its cluster.
static int rank_of(const SimWarp *w) { return (int)(w->cta - w->cluster->cta); }

// Returns the tensor memory of the CTA of rank `cta`.
static Tensor *tensor_at(const SimWarp *w, int cta) {
  return &w->cluster->tensors->cta[cta];
}

static Tensor *tensor_of(const SimWarp *w) { return tensor_at(w, rank_of(w)); }

static Pipe *pipe_of(const SimWarp *w) {
  return &w->cluster->tensors->pipe[w->id];
}

// ---- faults ----

static SimFault *misuse(SimWarp *w, const SimIns *i, int l, uint32_t src2,
                        const SimMem *m, SimTensorWrong how) {
  SimFault *f = simreport_fault(w, SIM_TENSOR, l, i->src, src2,
                                m ? m->index : -1, 0);
  if (!f) return NULL;
  f->tensor.how = how;
  f->tensor.warp = w->in;
  return f;
}

// Stops the run after a fault that makes later results meaningless.
static bool stop(SimWarp *w) {
  w->cluster->stop = true;
  return false;
}

// Reads an operand that must have the same value in all active lanes. Returns
// false and reports a fault if the values differ.
static bool one_value(SimWarp *w, const SimIns *i, uint32_t slot, uint32_t *u) {
  int first = __builtin_ctz(w->active);
  *u = u32_at(w, slot)[first];
  for (uint32_t m = w->active; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    if (u32_at(w, slot)[l] == *u) continue;
    misuse(w, i, l, 0, NULL, TENSOR_DIFFERS);
    return stop(w);
  }
  return true;
}

// Returns the only active lane. If several lanes are active, each of them would
// issue the operation; then reports a fault and returns -1.
static int one_lane(SimWarp *w, const SimIns *i) {
  int l = __builtin_ctz(w->active), n = __builtin_popcount(w->active);
  if (n == 1) return l;
  SimFault *f = misuse(w, i, l, 0, NULL, TENSOR_THREADS);
  if (f) f->tensor.n = n;
  stop(w);
  return -1;
}

// ---- allocation ----

// Returns the allocation with the columns `column` to column + n - 1, or NULL.
static const Claimed *holder(const Tensor *t, int column, int n) {
  for (int k = 0; k < t->nclaimed; k++) {
    const Claimed *c = &t->claimed[k];
    if (column >= c->column && column + n <= c->column + c->n) return c;
  }
  return NULL;
}

// Returns the last freed allocation that had the column, or NULL.
static const Claimed *freed_at(const Tensor *t, uint32_t column) {
  const Claimed *c = &t->freed[column % TMEM_COLUMNS / TMEM_BLOCK];
  return column < TMEM_COLUMNS && c->n ? c : NULL;
}

// Reports whether one of the n columns from `column` on is allocated.
static bool taken(const Tensor *t, int column, int n) {
  for (int k = 0; k < t->nclaimed; k++)
    if (column < t->claimed[k].column + t->claimed[k].n &&
        t->claimed[k].column < column + n)
      return true;
  return false;
}

int simtcgen05_left(const SimWarp *w) {
  const Tensor *t = tensor_of(w);
  int n = TMEM_COLUMNS;
  for (int k = 0; k < t->nclaimed; k++) n -= t->claimed[k].n;
  return n;
}

// Returns the first of n adjacent columns that are free in t and u, or -1.
// Chooses at random in random schedules, as the GPU may choose any columns.
static int find_free(SimCluster *c, const Tensor *t, const Tensor *u, int n) {
  int found = -1;
  uint64_t seen = 0;
  for (int at = 0; at + n <= TMEM_COLUMNS; at += n)
    if (!taken(t, at, n) && !taken(u, at, n) &&
        (found < 0 || (!c->steps && base_random(&c->rng) % ++seen == 0)))
      found = at;
  return found;
}

static bool is_amount(uint32_t n) {
  return n >= TMEM_BLOCK && n <= TMEM_COLUMNS && !(n & (n - 1));
}

static void claim(Tensor *t, Claimed claimed) {
  t->claimed[t->nclaimed++] = claimed;
  for (int g = 0; g < TMEM_GROUPS; g++)
    memset(&t->defined[g][claimed.column], 0,
           (size_t)claimed.n * sizeof **t->defined);
}

// Wakes the warps of CTA `cta` that wait for free columns.
static void wake(SimCluster *c, int cta) {
  SimWarp *w = &c->warp[cta * c->prog->nwarp];
  for (int k = 0; k < c->prog->nwarp; k++)
    if (w[k].state == SW_TMEM) w[k].state = SW_RUN;
  c->moved++;
}

// Allocates n columns in both CTAs of w's pair, once the other CTA also
// allocates. Returns the first column, or -1 if w must wait.
static int claim_pair(SimWarp *w, const SimIns *i, int n) {
  SimCluster *c = w->cluster;
  int peer = rank_of(w) ^ 1;
  Tensor *t = tensor_of(w), *u = tensor_at(w, peer);
  c->tensors->pair = true;
  if (t->ask.i && t->ask.warp != w->in) return -1;
  if (!t->ask.i) t->ask = (Ask){i, w->in, n, -1};
  if (t->ask.column < 0 && u->ask.i && u->ask.column < 0) {
    if (u->ask.n != n) {
      SimFault *f = misuse(w, i, 0, u->ask.i->src, NULL, TENSOR_PAIR);
      if (f) f->tensor.n = n, f->tensor.most = u->ask.n;
      stop(w);
      return -1;
    }
    int at = find_free(c, t, u, n);
    if (at < 0) return -1;
    t->ask.column = u->ask.column = at;
    claim(t, (Claimed){at, n, w->in, i->src, true});
    claim(u, (Claimed){at, n, u->ask.warp, u->ask.i->src, true});
    wake(c, peer);
  }
  if (t->ask.column < 0) return -1;
  t->ask.i = NULL;
  wake(c, rank_of(w));
  return t->ask.column;
}

bool simtcgen05_alone(const SimWarp *w) {
  const Tensor *t = tensor_of(w);
  return t->ask.i && t->ask.warp == w->in && t->ask.column < 0 &&
         !tensor_at(w, rank_of(w) ^ 1)->ask.i;
}

// Reports, as a note, that w allocates n columns while its CTA already holds
// other columns. All blocks on an SM share the SM's columns. If each of them
// holds as many columns and waits for n more, they may deadlock.
static void note_residents(SimWarp *w, const SimIns *i, int n) {
  const SimProg *p = w->cluster->prog;
  int left = simtcgen05_left(w), held = TMEM_COLUMNS - left;
  if (!held || n > left) return;
  int blocks = fits_blocks(p);
  if ((uint64_t)blocks > p->nunit) blocks = (int)p->nunit;
  if (blocks > TMEM_COLUMNS / held) blocks = TMEM_COLUMNS / held;
  if (blocks < 2 || blocks * held + n <= TMEM_COLUMNS) return;
  SimFault *f = simreport_note(w, SIM_TENSOR, 0, i->src,
                               tensor_of(w)->claimed[0].src, -1, 0);
  if (!f) return;
  f->tensor.how = TENSOR_RESIDENTS;
  f->tensor.n = n, f->tensor.most = held, f->tensor.other = blocks;
}

bool simtcgen05_alloc(SimWarp *w, const SimIns *i) {
  const SimTensorIns *x = i->x;
  SimCluster *c = w->cluster;
  Tensor *t = tensor_of(w);
  uint32_t n;
  SimFault *f;
  if (!one_value(w, i, x->columns, &n)) return true;
  if (!is_amount(n) || t->gone) {
    f = misuse(w, i, 0, t->gone, NULL,
               t->gone ? TENSOR_GIVEN_UP : TENSOR_COLUMNS);
    if (f) f->tensor.n = (int32_t)n;
    stop(w);
    return true;
  }
  if (!t->ask.i) note_residents(w, i, (int)n);
  bool pair = i->flags & TCF_PAIR;
  int at = pair ? claim_pair(w, i, (int)n) : find_free(c, t, t, (int)n);
  if (at < 0) {
    if (c->stop) return true;
    w->state = SW_TMEM;
    w->src = i->src;
    return false;
  }
  if (!pair) claim(t, (Claimed){at, (int)n, w->in, i->src, false});
  SimLaneBuf buf;
  int64_t off[LANES];
  uint32_t address = (uint32_t)at;
  int first = __builtin_ctz(w->active);
  memcpy(buf[first], &address, sizeof address);
  simmem_offsets(w, &x->to, off);
  simmem_store(w, i, x->to.mem, 1u << first, off, 4, buf);
  return true;
}

void simtcgen05_dealloc(SimWarp *w, const SimIns *i) {
  SimCluster *c = w->cluster;
  Tensor *t = tensor_of(w);
  uint32_t address, n;
  if (!one_value(w, i, i->a, &address) || !one_value(w, i, i->b, &n)) return;
  int k = 0;
  while (k < t->nclaimed && (uint32_t)t->claimed[k].column != address) k++;
  Claimed *own = k < t->nclaimed ? &t->claimed[k] : NULL;
  SimTensorWrong how = !own                          ? TENSOR_FREE
                       : (uint32_t)own->n != n       ? TENSOR_PART
                       : own->warp != w->in          ? TENSOR_OWNER
                                                     : TENSOR_NONE;
  if (how != TENSOR_NONE) {
    const Claimed *at = own ? own : freed_at(t, address);
    SimFault *f = misuse(w, i, 0, at ? at->src : 0, NULL, how);
    if (f) {
      f->tensor.n = (int32_t)n;
      f->tensor.column = (int32_t)address;
      f->tensor.most = own ? own->n : 0;
      f->tensor.other = own ? own->warp : 0;
    }
    stop(w);
    return;
  }
  // If a pair allocated the columns, they are freed in both CTAs.
  for (int p = 0; p <= own->pair; p++) {
    SimTensorAccess x = {.w = w, .i = i, .cta = rank_of(w) ^ p, .write = true,
                         .freed = true, .groups = ALL_GROUPS,
                         .column = own->column, .n = own->n,
                         .base = own->column};
    c->hooks->tensor(&x);
  }
  bool pair = own->pair;
  own->src = i->src;
  for (int b = 0; b < own->n; b += TMEM_BLOCK)
    t->freed[(own->column + b) / TMEM_BLOCK] = *own;
  t->claimed[k] = t->claimed[--t->nclaimed];
  wake(c, rank_of(w));
  if (pair) wake(c, rank_of(w) ^ 1);
}

void simtcgen05_relinquish(SimWarp *w) {
  tensor_of(w)->gone = w->cluster->prog->ins[w->pc - 1].src;
}

// ---- places ----

// Returns the address of an operand for lane l.
static uint32_t address_of(SimWarp *w, const SimTensorPlace *p, int l) {
  int64_t off = index_at(w, p->off, p->wide, l);
  return u32_at(w, p->address)[l] + (uint32_t)(off * p->mem->bits / 32);
}

// The columns of tensor memory that an operation accesses: n columns of CTA
// `cta`, from an address on, in the groups of lanes in `groups`. `m` is the
// memory object. `what` names the contents of the columns in reports; NULL: an
// operand of the operation.
typedef struct Columns {
  const SimMem *m;
  int cta;
  uint32_t address, groups;
  int n;
  const char *what;
} Columns;

// Reports whether n columns of CTA `cta` are allocated. Columns of a pair must
// be allocated in both CTAs.
static bool allocated(const SimWarp *w, int cta, int column, int n) {
  const Claimed *c = holder(tensor_at(w, cta), column, n);
  return c && (!c->pair || holder(tensor_at(w, cta ^ 1), column, n));
}

// Checks that columns are allocated and, for a read, that they were written.
// Otherwise reports a fault and returns false.
static bool check_columns(SimWarp *w, const SimIns *i, int l,
                          const Columns *x, bool read) {
  const Tensor *t = tensor_at(w, x->cta);
  int column = (int)(x->address & 0xffff), n = x->n;
  uint32_t groups = x->groups;
  SimTensorWrong how = TENSOR_NONE;
  if (!allocated(w, x->cta, column, n)) how = TENSOR_OUTSIDE;
  for (int g = 0; how == TENSOR_NONE && read && g < TMEM_GROUPS; g++)
    for (int k = column; groups >> g & 1 && k < column + n; k++)
      if (t->defined[g][k] != ALL_LANES)
        how = TENSOR_UNWRITTEN, column = k, k += n;
  if (how == TENSOR_NONE) return true;
  const Claimed *own = holder(t, column, 1), *gone = NULL;
  bool peer = how == TENSOR_OUTSIDE && own && holder(t, column, n);
  if (how == TENSOR_OUTSIDE && (!own || peer))
    gone = freed_at(tensor_at(w, x->cta ^ peer), (uint32_t)column);
  if (gone) own = gone, how = TENSOR_FREED;
  SimFault *f = misuse(w, i, l, own ? own->src : 0, x->m, how);
  if (f) {
    f->tensor.peer = peer;
    f->tensor.n = n;
    f->tensor.column = column - (own ? own->column : 0);
    f->tensor.most = own ? own->n : 0;
    f->tensor.op = x->what ? x->what : op_name((Op)i->op);
  }
  SimTensorAccess load = {.w = w, .i = i, .cta = x->cta, .groups = groups,
                          .column = (int)(x->address & 0xffff), .n = n};
  if (f && how == TENSOR_UNWRITTEN && i->op == OP_TCLD) {
    load.base = own->column;
    w->cluster->hooks->tensor_unwritten(f, &load);
  }
  return how == TENSOR_UNWRITTEN || stop(w);
}

static void define(Tensor *t, uint32_t groups, uint32_t lanes, int column,
                   int n) {
  for (int g = 0; g < TMEM_GROUPS; g++)
    for (int k = column; groups >> g & 1 && k < column + n; k++)
      t->defined[g][k] |= (uint16_t)lanes;
}

// ---- copies of a warp ----

// Checks a copy by w between registers and tensor memory. Sets *address to its
// address in tensor memory, and *groups to the groups of lanes that it
// accesses.
static bool check_copy(SimWarp *w, const SimIns *i, uint32_t *address,
                       uint32_t *groups) {
  const SimTensorIns *x = i->x;
  bool read = x->copy->op == CO_TMEM_LOAD, half = !strstr(x->copy->ptx, "32x");
  for (int l = 0; l < LANES; l++) {
    uint32_t its = address_of(w, &x->acc, l);
    if (!l) *address = its;
    if (its == *address) continue;
    misuse(w, i, l, 0, x->acc.mem, TENSOR_DIFFERS);
    return stop(w);
  }
  uint32_t lane = *address >> 16, window = (uint32_t)w->in % 4 * 32;
  if (lane != window && !(half && lane == window + TMEM_GROUP)) {
    SimFault *f = misuse(w, i, 0, 0, x->acc.mem, TENSOR_WINDOW);
    if (f) f->tensor.n = (int)lane, f->tensor.most = (int)window;
    return stop(w);
  }
  *groups = (half ? 1u : 3u) << lane / TMEM_GROUP;
  Columns all = {.m = x->acc.mem, .cta = rank_of(w), .address = *address,
                 .groups = *groups, .n = x->span};
  return check_columns(w, i, 0, &all, read);
}

static void announce(SimWarp *w, const SimIns *i, SimActor unit,
                     uint32_t address, uint32_t groups) {
  const SimTensorIns *x = i->x;
  int column = (int)(address & 0xffff);
  SimTensorAccess a = {.w = w, .i = i, .m = x->acc.mem, .cta = rank_of(w),
                       .base = holder(tensor_of(w), column, 1)->column,
                       .write = unit == ACTOR_TCST, .unit = unit,
                       .epoch = ++pipe_of(w)->issued[unit], .groups = groups,
                       .column = column, .n = x->span};
  w->cluster->hooks->tensor(&a);
}

// Returns the cell (a lane's 32-bit column) that register v of lane l copies,
// or the first of two such cells.
static uint32_t *cell_of(Tensor *t, const SimTensorIns *x, uint32_t address,
                         int v, int l) {
  uint32_t at = x->at[v * LANES + l];
  return &t->cell[(address >> 16) + at / TMEM_COLUMNS]
                 [(address & 0xffff) + at % TMEM_COLUMNS];
}

// Returns the register value that is loaded from `cell`. If `packed` is set,
// the register consists of the lower halves of two cells.
static uint32_t register_of(const uint32_t *cell, bool packed) {
  return packed ? (cell[0] & 0xffff) | cell[1] << 16 : cell[0];
}

static void set_cells(uint32_t *cell, bool packed, uint32_t value) {
  cell[0] = packed ? value & 0xffff : value;
  if (packed) cell[1] = value >> 16;
}

void simtcgen05_load(SimWarp *w, const SimIns *i) {
  const SimTensorIns *x = i->x;
  const SimMem *m = x->rmem;
  uint32_t address, groups;
  if (!check_copy(w, i, &address, &groups)) return;
  announce(w, i, ACTOR_TCLD, address, groups);
  Tensor *t = tensor_of(w);
  bool packed = x->copy->flags & CPF_PACK;
  for (int v = 0; v < x->copy->num; v++)
    for (int u = 0; u < 32 / m->unit; u++) {
      char *p = rmem_at(w, m, x->reg[v] + (uint32_t)u);
      rmem_def(w, m)[x->reg[v] + (uint32_t)u] = FULL;
      for (int l = 0; l < LANES; l++) {
        uint32_t value = register_of(cell_of(t, x, address, v, l), packed);
        rmem_put(p, m->size, l, value >> u * m->unit & unit_mask(m));
      }
    }
}

void simtcgen05_store(SimWarp *w, const SimIns *i) {
  const SimTensorIns *x = i->x;
  const SimMem *m = x->rmem;
  uint32_t address, groups;
  if (!check_copy(w, i, &address, &groups)) return;
  announce(w, i, ACTOR_TCST, address, groups);
  Tensor *t = tensor_of(w);
  bool packed = x->copy->flags & CPF_PACK;
  define(t, groups, ALL_LANES, (int)(address & 0xffff), x->span);
  for (int v = 0; v < x->copy->num; v++)
    for (int u = 0; u < 32 / m->unit; u++) {
      uint32_t unit = x->reg[v] + (uint32_t)u;
      const char *p = rmem_at(w, m, unit);
      w->cluster->hooks->value.registers(w, i, m, unit, FULL);
      for (int l = 0; l < LANES; l++) {
        uint32_t *cell = cell_of(t, x, address, v, l);
        uint32_t old = u ? register_of(cell, packed) : 0;
        set_cells(cell, packed, old | (uint32_t)(rmem_get(p, m->size, l)
                                                 << u * m->unit));
      }
    }
}

void simtcgen05_wait(SimWarp *w, bool loads) {
  SimActor unit = loads ? ACTOR_TCLD : ACTOR_TCST;
  int actor = actors_own(&w->cluster->prog->actors, unit, w->id);
  w->cluster->hooks->learn(w, w->valid, actor, pipe_of(w)->issued[unit]);
}

// ---- MMAs, copies from shared memory, and shifts: issue ----

// Reports whether the rows of A or D are in 16 lanes of each 32 lanes.
static bool in_windows(const AtomMma *r) {
  return r->m == 64 && atom_mma_ctas(r) == 1 && !(r->flags & AMF_WS);
}

// Returns the groups of lanes that hold the rows of A or D at `address`.
static uint32_t groups_of(const AtomMma *r, uint32_t address) {
  return in_windows(r) ? 0x55u << (address >> 16) / TMEM_GROUP : ALL_GROUPS;
}

// Returns the lane of row m of A or D, relative to the operand's address.
static int lane_of(const AtomMma *r, int m) {
  return in_windows(r) ? m % 16 + m / 16 * 32 : m;
}

// Reports a fault: an operand starts at a lane at which it may not start.
static bool misplaced(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                      uint32_t lane) {
  SimFault *f = misuse(w, i, l, 0, m, TENSOR_LANE);
  if (f) f->tensor.n = (int)lane, f->tensor.op = op_name((Op)i->op);
  return stop(w);
}

static bool check_lane(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                       uint32_t address) {
  const AtomMma *r = ((const SimTensorIns *)i->x)->row;
  uint32_t lane = address >> 16;
  if (!lane || (lane == TMEM_GROUP && r && in_windows(r))) return true;
  return misplaced(w, i, l, m, lane);
}

// Returns the number of columns that the stored elements of A occupy.
static int columns_of_a(const AtomMma *r) {
  return atom_mma_depth(r) * dtype_bits(r->a_type) / 32;
}

// Returns the number of columns of tensor memory that the rows of D occupy.
static int columns_of_d(const AtomMma *r) {
  return r->n / atom_umma_parts(r);
}

// Returns the lowest rank of the CTAs that take part in an operation of w.
static int first_cta(const SimWarp *w, const SimTensorIns *x) {
  return rank_of(w) & ~(x->ctas - 1);
}

static uint32_t home_of(const SimWarp *w, int cta) {
  return (uint32_t)cta * (uint32_t)w->cluster->prog->smem_bytes;
}

typedef struct Lend {
  Access x;
  const SimTensorIns *mma;
  int lane, actor;
  uint32_t epoch, home;
} Lend;

static void lend_piece(void *ud, uint32_t at) {
  Lend *l = ud;
  SimWarp *w = l->x.w;
  const SimMem *m = l->x.m;
  for (int k = 0; k < l->mma->nsmem && (!m || at < m->base ||
                                        at + PIECE > m->base + m->bytes); k++)
    m = l->mma->smem[k];
  if (at >= m->base && at + PIECE <= m->base + m->bytes) {
    l->x.m = m;
    w->cluster->hooks->agent_reads(&l->x, l->lane, l->home + at, l->actor,
                                   l->epoch);
    return;
  }
  SimFault *f = simreport_fault(w, SIM_OOB, l->lane, l->x.i->src, 0,
                                l->mma->smem[0]->index, at);
  if (f) f->access.size = PIECE;
}

// Reports whether A and B consist of packed e2m1 elements.
static bool is_packed(const AtomMma *r) {
  return r->flags & AMF_SCALE && !(r->flags & AMF_BYTE);
}

// Returns the number of bytes of an element of A (0) or B (1). For packed
// elements, returns the bytes of two elements.
static int bytes_of(const AtomMma *r, int which) {
  int bits = dtype_bits(which ? r->b_type : r->a_type);
  return bits < 8 ? 1 : bits / 8;
}

// Returns how many elements of each row of A (0) or B (1) are stored.
static int depth_of(const AtomMma *r, int which) {
  return which ? r->k : atom_mma_depth(r);
}

// Returns the length of a row of A (0) or B (1) in units of bytes_of(r, which).
static int units_of(const AtomMma *r, int which) {
  return depth_of(r, which) / (is_packed(r) ? 2 : 1);
}

// Returns the number of rows of an operand that are in a CTA's shared memory.
// The operand is A (0) or B (1) of an MMA, or the source of a copy (1).
static int rows_of(const SimTensorIns *x, int which) {
  const AtomMma *r = x->row;
  return r ? (which ? r->n : r->m) / x->ctas : x->rows;
}

// Calls `see` for each 16-byte piece of an operand in a CTA's shared memory.
static void pieces_of(const SimTensorIns *x, int which, uint64_t desc, See *see,
                      void *ud) {
  const AtomMma *r = x->row;
  Place p = place_of(desc, true);
  int rows = rows_of(x, which);
  if (!r) each_piece(&p, false, x->bytes, 1, 0, rows, see, ud);
  else
    each_piece(&p, r->mn_major[which], units_of(r, which), bytes_of(r, which),
               0, rows, see, ud);
}

// Records that an operation will read an operand from each CTA's shared memory.
static bool lend(SimWarp *w, const SimIns *i, int l, int which, uint64_t desc,
                 uint32_t epoch) {
  const SimTensorIns *x = i->x;
  if (!place_of(desc, true).w || (desc >> 46 & 3) != 1) {
    misuse(w, i, l, 0, NULL, TENSOR_DESCRIPTOR);
    return stop(w);
  }
  Lend t = {.x = {.w = w, .i = i, .bytes = PIECE, .agent = true}, .mma = x,
            .lane = l, .epoch = epoch,
            .actor = actors_own(&w->cluster->prog->actors, ACTOR_TCMMA, w->id)};
  for (int k = 0; k < x->ctas; k++) {
    t.home = home_of(w, first_cta(w, x) + k);
    pieces_of(x, which, desc, lend_piece, &t);
  }
  return true;
}

static Job *new_job(SimCluster *c, Pipe *p) {
  if (!base_room((void **)(void *)&p->job, &p->cap, p->njob + 1,
                 sizeof *p->job)) {
    c->oom = c->stop = true;
    return NULL;
  }
  return &p->job[p->njob++];
}

// Checks the columns that an operation accesses, in each CTA that takes part.
static bool check_all(SimWarp *w, const SimIns *i, int l, Columns x,
                      bool read) {
  const SimTensorIns *ins = i->x;
  x.cta = first_cta(w, ins);
  for (int k = 0; k < ins->ctas; k++, x.cta++) {
    if (x.cta != rank_of(w)) w->cluster->hooks->reach(w, i, l, x.cta, false);
    if (!check_columns(w, i, l, &x, read)) return false;
  }
  return true;
}

// Announces accesses to columns in each CTA that takes part. `start` is the
// first column of an MMA's accumulators.
static void announce_all(SimWarp *w, const SimIns *i, int l, Columns x,
                         bool write, uint32_t epoch, int start) {
  const SimTensorIns *ins = i->x;
  int column = (int)(x.address & 0xffff);
  x.cta = first_cta(w, ins);
  for (int k = 0; k < ins->ctas; k++, x.cta++) {
    SimTensorAccess t = {
      .w = w, .i = i, .m = x.m, .cta = x.cta, .lane = l, .write = write,
      .unit = ACTOR_TCMMA, .epoch = epoch, .row = ins->row, .start = start,
      .groups = x.groups, .column = column, .n = x.n,
      .base = holder(tensor_at(w, x.cta), column, 1)->column};
    w->cluster->hooks->tensor(&t);
    uint32_t lanes = ins->row ? ALL_LANES : ins->lanes;
    if (write) define(tensor_at(w, x.cta), x.groups, lanes, column, x.n);
  }
}

// Sets the address, in job j, of the scale factors of A (0) or B (1). Lane l
// issues the job. Sets *all to the columns that contain the scale factors.
// Returns false and reports a fault if this address is not allowed.
static bool find_scales(SimWarp *w, const SimIns *i, int l, int which, Job *j,
                        Columns *all) {
  const SimTensorIns *x = i->x;
  const SimTensorPlace *p = &x->sf[which];
  int rows = which ? x->row->n : rows_of(x, 0);
  j->sf[which] = address_of(w, p, l);
  j->byte[which] = (uint8_t)(index_at(w, p->off, p->wide, l) & 3);
  *all = (Columns){.m = p->mem, .address = j->sf[which], .groups = ALL_GROUPS,
                   .n = (rows + 31) / 32, .what = "factors"};
  if (!check_lane(w, i, l, p->mem, j->sf[which]) ||
      !check_all(w, i, l, *all, true))
    return false;
  if (j->byte[which] % x->u.scales == 0) return true;
  SimFault *f = misuse(w, i, l, 0, p->mem, TENSOR_BYTE);
  if (f) f->tensor.n = j->byte[which], f->tensor.most = x->u.scales;
  return stop(w);
}

// Sets the address, in job j, of the metadata. Lane l issues the job. Sets *all
// to the columns that contain the metadata. Returns false and reports a fault
// if this address is not allowed.
static bool find_metadata(SimWarp *w, const SimIns *i, int l, Job *j,
                          Columns *all) {
  const SimTensorIns *x = i->x;
  j->meta = address_of(w, &x->meta, l);
  *all = (Columns){.m = x->meta.mem, .address = j->meta, .groups = ALL_GROUPS,
                   .n = atom_umma_metadata(x->row), .what = "metadata"};
  return check_lane(w, i, l, x->meta.mem, j->meta) &&
         check_all(w, i, l, *all, true);
}

// Checks that operand x shares no columns with d, the MMA's accumulators.
static bool check_apart(SimWarp *w, const SimIns *i, int l, const Columns *x,
                        const Columns *d) {
  int from = (int)(x->address & 0xffff), to = (int)(d->address & 0xffff);
  if (from + x->n <= to || to + d->n <= from || !(x->groups & d->groups))
    return true;
  SimFault *f = misuse(w, i, l, 0, x->m, TENSOR_OVERLAP);
  if (f) f->tensor.column = from > to ? from - to : 0, f->tensor.n = x->n;
  return stop(w);
}

void simtcgen05_mma(SimWarp *w, const SimIns *i) {
  const SimTensorIns *x = i->x;
  const AtomMma *r = x->row;
  SimCluster *c = w->cluster;
  Pipe *p = pipe_of(w);
  int l = one_lane(w, i);
  if (l < 0) return;
  Job now = {.i = i, .d = address_of(w, &x->acc, l),
             .a = x->a.mem ? address_of(w, &x->a, l) : 0,
             .add = u32_at(w, x->add)[l] != 0};
  Columns d = {.m = x->acc.mem, .address = now.d,
               .groups = groups_of(r, now.d), .n = columns_of_d(r)};
  Columns a = {.m = x->a.mem, .address = now.a,
               .groups = groups_of(r, now.a), .n = columns_of_a(r)};
  Columns sf[2], meta = {0};
  if (!check_lane(w, i, l, d.m, now.d) || !check_all(w, i, l, d, now.add) ||
      (a.m && (!check_lane(w, i, l, a.m, now.a) ||
               !check_all(w, i, l, a, true) || !check_apart(w, i, l, &a, &d))))
    return;
  for (int k = 0; x->u.scales && k < 2; k++)
    if (!find_scales(w, i, l, k, &now, &sf[k]) ||
        !check_apart(w, i, l, &sf[k], &d))
      return;
  if (x->u.sparse && (!find_metadata(w, i, l, &now, &meta) ||
                      !check_apart(w, i, l, &meta, &d)))
    return;
  uint32_t epoch = p->done + p->njob + 1;
  for (int k = 0; k < 2; k++) {
    if (!x->desc[k]) continue;
    now.desc[k] = lane_bits(w, x->desc[k], true, l);
    if (!lend(w, i, l, k, now.desc[k], epoch)) return;
  }
  int start = (int)(now.d & 0xffff);
  if (a.m) announce_all(w, i, l, a, false, epoch, start);
  for (int k = 0; x->u.scales && k < 2; k++)
    announce_all(w, i, l, sf[k], false, epoch, start);
  if (x->u.sparse) announce_all(w, i, l, meta, false, epoch, start);
  announce_all(w, i, l, d, true, epoch, start);
  Job *j = new_job(c, p);
  if (j) *j = now;
  c->mmas++;
}

void simtcgen05_rows(SimWarp *w, const SimIns *i) {
  const SimTensorIns *x = i->x;
  Pipe *p = pipe_of(w);
  int l = one_lane(w, i);
  if (l < 0) return;
  Job now = {.i = i, .d = address_of(w, &x->acc, l),
             .desc[1] = lane_bits(w, x->desc[1], true, l)};
  uint32_t epoch = p->done + p->njob + 1;
  Columns to = {.m = x->acc.mem, .address = now.d, .groups = x->groups,
                .n = x->span};
  if (!check_lane(w, i, l, x->acc.mem, now.d) ||
      !check_all(w, i, l, to, false) ||
      !lend(w, i, l, 1, now.desc[1], epoch))
    return;
  announce_all(w, i, l, to, true, epoch, 0);
  Job *j = new_job(w->cluster, p);
  if (j) *j = now;
}

// a shift moves 8 columns of 32 lanes
enum { SHIFT_COLUMNS = 8, SHIFT_LANES = 32 };

void simtcgen05_shift(SimWarp *w, const SimIns *i) {
  Pipe *p = pipe_of(w);
  int l = one_lane(w, i);
  if (l < 0) return;
  Job now = {.i = i, .d = u32_at(w, i->a)[l]};
  uint32_t lane = now.d >> 16;
  if (lane % SHIFT_LANES || lane >= TMEM_LANES) {
    misplaced(w, i, l, NULL, lane);
    return;
  }
  Columns all = {.address = now.d, .groups = 3u << lane / TMEM_GROUP,
                 .n = SHIFT_COLUMNS};
  if (!check_all(w, i, l, all, true)) return;
  announce_all(w, i, l, all, true, p->done + p->njob + 1, 0);
  Job *j = new_job(w->cluster, p);
  if (j) *j = now;
}

// ---- MMAs, copies from shared memory, and shifts: execution ----

typedef struct Load {
  const uint8_t *smem;
  int64_t limit;
  char *to;
  // bytes: bytes of an element. bits: bits of an element in a piece, where
  // elements narrower than a byte are packed. k: extent of K if the operand is
  // MN-major, else 0. n: number of pieces loaded so far.
  int bytes, bits, k, n;
} Load;

static void load_piece(void *ud, uint32_t at) {
  Load *l = ud;
  uint8_t piece[PIECE] = {0};
  if (at + PIECE <= l->limit) memcpy(piece, l->smem + at, PIECE);
  if (l->bits < 8) unpack_piece(piece, l->bits);
  int n = l->n++, b = l->bytes, unit = PIECE / b;
  if (!l->k) {
    memcpy(l->to + n * PIECE, piece, PIECE);
    return;
  }
  char *to = l->to + (n / l->k * unit * l->k + n % l->k) * b;
  for (int r = 0; r < unit; r++)
    memcpy(to + r * l->k * b, piece + r * b, (size_t)b);
}

// Copies the rows of A or B that CTA `cta` has in its shared memory.
static void load_shared(const SimWarp *w, const Job *j, int which, int cta,
                        char *to) {
  const AtomMma *r = ((const SimTensorIns *)j->i->x)->row;
  Load l = {.smem = w->cluster->smem + home_of(w, cta), .to = to,
            .limit = w->cluster->prog->smem_bytes, .bytes = bytes_of(r, which),
            .bits = is_packed(r) ? 8
                    : dtype_bits(which ? r->b_type : r->a_type),
            .k = r->mn_major[which] ? depth_of(r, which) : 0};
  pieces_of(j->i->x, which, j->desc[which], load_piece, &l);
}

// A part of D: `rows` rows in CTA `cta`, from lane `lane` on, and columns
// `first` to first + n - 1.
typedef struct Part { int cta, lane, rows, first, n; } Part;

// Returns part k of an MMA of w. The parts of the first CTA come first, then
// those of the second CTA of a pair.
static Part part_of(const SimWarp *w, const SimTensorIns *x, int k) {
  int parts = atom_umma_parts(x->row), own = k % parts;
  int n = columns_of_d(x->row);
  return (Part){first_cta(w, x) + k / parts, TMEM_LANES / parts * own,
                rows_of(x, 0), n * own, n};
}

// Returns a pointer to row m of part p in tensor memory, for an `address`.
static uint32_t *row_at(const SimWarp *w, const AtomMma *r, const Part *p,
                        uint32_t address, int m) {
  uint32_t lane = (address >> 16) + (uint32_t)(p->lane + lane_of(r, m));
  return &tensor_at(w, p->cta)->cell[lane][address & 0xffff];
}

// Copies the rows of A for a part of D from the columns of tensor memory.
static void load_tensor(const SimWarp *w, const Job *j, const Part *p,
                        char *to) {
  const AtomMma *r = ((const SimTensorIns *)j->i->x)->row;
  size_t bytes = (size_t)columns_of_a(r) * 4;
  for (int m = 0; m < p->rows; m++)
    memcpy(to + (size_t)m * bytes, row_at(w, r, p, j->a, m), bytes);
}

static void widen(const AtomMma *r, DType t, const void *raw, int n,
                  void *out) {
  const uint8_t *u = raw;
  if (dtype_bits(t) < 8 && !is_packed(r))
    for (int k = 0; k < n; k++) ((float *)out)[k] = dtype_to_float(t, u[k]);
  else if (!dtype_is_int(r->d_type)) mma_widen(t, raw, (size_t)n, out);
  else
    for (int k = 0; k < n; k++)
      ((int16_t *)out)[k] = t == DT_I8 ? (int8_t)u[k] : u[k];
}

// Copies scale factors for a part of D from tensor memory to `to`: those of A
// (0) or B (1). Each of the four windows of 32 lanes holds a copy of them.
// Reports a fault if the copies differ.
static void load_scales(SimWarp *w, const Job *j, const Part *p, int which,
                        uint8_t *to) {
  const SimTensorIns *x = j->i->x;
  const Tensor *t = tensor_at(w, p->cta);
  int n = x->u.scales, first = which ? p->first : 0;
  int end = which ? p->first + p->n : p->rows;
  for (int m = first; m < end; m++, to += n)
    for (int window = 0; window < 4; window++) {
      uint32_t column = (j->sf[which] & 0xffff) + (uint32_t)m / 32;
      const uint8_t *from = j->byte[which] +
        (const uint8_t *)&t->cell[window * 32 + m % 32][column];
      if (!window) memcpy(to, from, (size_t)n);
      if (memcmp(to, from, (size_t)n) == 0) continue;
      SimFault *f = misuse(w, j->i, 0, 0, x->sf[which].mem, TENSOR_COPIES);
      if (!f) return;
      f->tensor.n = m, f->tensor.most = window;
      f->tensor.op = which ? "B" : "A";
      return;
    }
}

// Copies the metadata of the rows of a part from tensor memory to `to`. Reports
// a fault if the tensor cores do not accept the metadata.
static void load_metadata(SimWarp *w, const Job *j, const Part *p,
                          uint32_t *to) {
  const AtomMma *r = ((const SimTensorIns *)j->i->x)->row;
  const Tensor *t = tensor_at(w, p->cta);
  int words = atom_mma_words(r);
  memset(to, 0, (size_t)(p->rows * words) * 2);
  for (int k = 0; k < p->rows * words; k++) {
    int at = atom_umma_metadata_at(r, k / words, k % words);
    uint32_t cell = t->cell[at / 4][(j->meta & 0xffff) + (uint32_t)at % 4 / 2];
    uint32_t value = cell >> at % 2 * 16 & 0xffff;
    to[k / 2] |= value << k % 2 * 16;
    for (int q = 0; q < 4; q++) {
      unsigned nibble = value >> 4 * q & 15;
      if (atom_umma_metadata_valid(r, nibble)) continue;
      SimFault *f = simreport_fault(w, SIM_METADATA, 0, j->i->src, 0, -1, 0);
      if (f) f->metadata.four = (int)nibble, f->metadata.group = r->group;
      stop(w);
      return;
    }
  }
}

// Moves a part of D between tensor memory and the buffer `d`. Elements of f16
// are in the lower halves of columns.
static void move_d(SimWarp *w, const Job *j, const Part *p, bool store) {
  const AtomMma *r = ((const SimTensorIns *)j->i->x)->row;
  float *tile = w->cluster->tensors->d;
  for (int m = 0; m < p->rows; m++, tile += p->n) {
    uint32_t *cell = row_at(w, r, p, j->d, m);
    if (r->d_type != DT_F16) {
      memcpy(store ? (void *)cell : tile, store ? (void *)tile : cell,
             (size_t)p->n * 4);
      continue;
    }
    for (int n = 0; n < p->n; n++)
      if (store) cell[n] = (uint32_t)dtype_from_float(DT_F16, tile[n]);
      else tile[n] = dtype_to_float(DT_F16, cell[n] & 0xffff);
  }
}

// Appends a 16-byte piece of the source of a copy.
static void add_piece(void *ud, uint32_t at) {
  Load *l = ud;
  char *to = l->to + l->n++ * PIECE;
  memset(to, 0, PIECE);
  if (at + PIECE <= l->limit) memcpy(to, l->smem + at, PIECE);
}

// Executes a copy from shared memory to tensor memory in CTA `cta`.
static void run_rows(SimWarp *w, const Job *j, int cta) {
  const SimTensorIns *x = j->i->x;
  Tensor *t = tensor_at(w, cta);
  char *raw = w->cluster->tensors->raw;
  Load l = {.smem = w->cluster->smem + home_of(w, cta), .to = raw,
            .limit = w->cluster->prog->smem_bytes};
  pieces_of(x, 1, j->desc[1], add_piece, &l);
  for (int k = 0; k < x->pieces; k++)
    memcpy(&t->cell[x->at[k] / TMEM_COLUMNS]
                   [(j->d & 0xffff) + x->at[k] % TMEM_COLUMNS],
           raw + x->piece[k] * PIECE, PIECE);
  w->cluster->hooks->copied(w->cluster, x, j->desc[1], cta, j->d & 0xffff);
}

static void run_part(SimWarp *w, const Job *j, const Part *p) {
  const SimTensorIns *x = j->i->x;
  const AtomMma *r = x->row;
  struct SimTensors *t = w->cluster->tensors;
  size_t size = dtype_is_int(r->d_type) ? sizeof(int16_t) : sizeof(float);
  if (x->a.mem) load_tensor(w, j, p, t->raw);
  else load_shared(w, j, 0, p->cta, t->raw);
  widen(r, r->a_type, t->raw, p->rows * depth_of(r, 0), t->a);
  if (j->add) move_d(w, j, p, false);
  else memset(t->d, 0, (size_t)(p->rows * p->n) * 4);
  for (int k = 0; x->u.scales && k < 2; k++) {
    load_scales(w, j, p, k, t->sf[k]);
    w->cluster->hooks->scaled(w, j->i, &(SimScaledRows){
      x, j->desc[k], t->sf[k], j->sf[k], k, k ? p->first : 0,
      k ? p->first + p->n : p->rows, k ? first_cta(w, x) : p->cta,
      rows_of(x, k), p->cta, j->byte[k]});
  }
  if (x->u.sparse) load_metadata(w, j, p, t->meta);
  ummamath_tile(&x->u, &(SimUmmaTile){
    .m = p->rows, .n = p->n, .a = t->a,
    .b = (char *)t->b + (size_t)(p->first * r->k) * size, .d = t->d,
    .sfa = t->sf[0], .sfb = t->sf[1], .meta = t->meta});
  move_d(w, j, p, true);
}

// Executes a shift in CTA `cta`: copies the columns of each lane to the next
// higher lane. The columns of the last lane are not copied.
static void run_shift(SimWarp *w, const Job *j, int cta) {
  Tensor *t = tensor_at(w, cta);
  uint32_t column = j->d & 0xffff, first = j->d >> 16;
  for (uint32_t r = first + SHIFT_LANES - 1; r > first; r--)
    memcpy(&t->cell[r][column], &t->cell[r - 1][column],
           SHIFT_COLUMNS * sizeof(uint32_t));
}

static void run(SimWarp *w, const Job *j) {
  const SimTensorIns *x = j->i->x;
  const AtomMma *r = x->row;
  struct SimTensors *t = w->cluster->tensors;
  int first = first_cta(w, x);
  for (int k = 0; !r && k < x->ctas; k++)
    if (j->i->op == OP_TCSHIFT) run_shift(w, j, first + k);
    else run_rows(w, j, first + k);
  if (!r) return;
  int bytes = rows_of(x, 1) * units_of(r, 1) * bytes_of(r, 1);
  for (int k = 0; k < x->ctas; k++)
    load_shared(w, j, 1, first + k, t->raw + k * bytes);
  widen(r, r->b_type, t->raw, r->n * r->k, t->b);
  for (int k = 0; k < x->ctas * atom_umma_parts(r); k++) {
    Part p = part_of(w, x, k);
    run_part(w, j, &p);
  }
}

// ---- commit ----

// A commit, which completes the first `upto` operations that its warp issued.
typedef struct Commit { uint32_t upto; } Commit;

static void land(SimAsync *a, SimStage stage) {
  SimWarp *w = a->w;
  SimCluster *c = w->cluster;
  Pipe *p = pipe_of(w);
  const Commit *d = a->data;
  if (stage != ASYNC_DELIVER) return;
  uint32_t some = d->upto > p->done ? d->upto - p->done : 0;
  for (uint32_t k = 0; k < some; k++) run(w, &p->job[k]);
  if (some) memmove(p->job, p->job + some, (p->njob - some) * sizeof *p->job);
  p->njob -= some;
  p->done += some;
  simmbar_arrived_by(c, a, actors_own(&c->prog->actors, ACTOR_TCMMA, w->id),
                     d->upto);
  if (a->mbar->at / (uint32_t)c->prog->smem_bytes != (uint32_t)rank_of(w))
    simmbar_land(a->mbar, w, a->lane, a->i, true);
}

void simtcgen05_commit(SimWarp *w, const SimIns *i) {
  Pipe *p = pipe_of(w);
  int l = one_lane(w, i);
  if (l < 0) return;
  const SimProg *prog = w->cluster->prog;
  uint32_t own = 1u << (w->cta - w->cluster->cta);
  uint32_t ctas = i->b ? u32_at(w, i->b)[l] : own;
  if (ctas >> prog->ncta || !ctas) {
    SimFault *f = misuse(w, i, l, 0, NULL, TENSOR_CTAS);
    if (f) f->tensor.n = (int)ctas, f->tensor.most = prog->ncta;
    stop(w);
    return;
  }
  p->closed = p->done + p->njob;
  p->commits++;
  for (; ctas; ctas &= ctas - 1) {
    SimAsync *a = simmbar_commit(w, i, __builtin_ctz(ctas), land,
                                 sizeof(Commit));
    if (!a) return;
    a->turn = p->commits;
    *(Commit *)a->data = (Commit){p->closed};
  }
}

// ---- the end ----

uint32_t simtcgen05_open(const SimWarp *w) {
  const SimCluster *c = w->cluster;
  int n = c->prog->nwarp, first = rank_of(w) * n;
  if (!c->tensors) return 0;
  if (c->tensors->pair) first = (rank_of(w) & ~1) * n, n *= 2;
  for (int k = first; k < first + n; k++) {
    const Pipe *p = &c->tensors->pipe[k];
    if (p->njob && p->closed < p->done + p->njob)
      return p->job[p->njob - 1].i->src;
  }
  return 0;
}

// Reports that only one CTA of a pair gave up the permission to allocate.
static void check_permit(SimCluster *c, int cta) {
  const Tensor *t = &c->tensors->cta[cta];
  if (!c->tensors->pair || !t->gone || c->tensors->cta[cta ^ 1].gone) return;
  SimIns i = {.src = t->gone};
  misuse(&c->warp[cta * c->prog->nwarp], &i, 0, 0, NULL, TENSOR_HALF);
}

// Reports columns that were not deallocated, permissions that only one CTA of a
// pair gave up, and operations that no commit followed.
void simtcgen05_end(SimCluster *c) {
  for (int k = 0; c->tensors && k < c->prog->ncta; k++) {
    const Tensor *t = &c->tensors->cta[k];
    for (int j = 0; j < t->nclaimed; j++) {
      const Claimed *d = &t->claimed[j];
      SimIns i = {.src = d->src};
      SimFault *f = misuse(&c->warp[k * c->prog->nwarp + d->warp], &i, 0, 0,
                           NULL, TENSOR_LEFT);
      if (f) f->tensor.n = d->n;
    }
    check_permit(c, k);
  }
  for (int k = 0; c->tensors && k < c->prog->nall; k++) {
    const Pipe *p = &c->tensors->pipe[k];
    if (!p->njob || p->closed == p->done + p->njob) continue;
    const SimIns *i = p->job[p->njob - 1].i;
    SimFault *f = misuse(&c->warp[k], i, 0, 0, NULL, TENSOR_OPEN);
    if (f) f->tensor.op = op_name((Op)i->op);
  }
}
// SPDX-License-Identifier: MIT
