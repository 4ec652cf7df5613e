// Warpgroup MMAs. Four warps issue an MMA together. The MMA runs
// asynchronously: it is computed when one of the warps waits for its group,
// because no thread can observe the result sooner. Its registers must not be
// accessed before that wait (ir/async_regs.h). A and B are read from shared
// memory as the descriptors state, in pieces of 16 bytes with swizzled
// addresses.
//
// Each warpgroup has an actor, an entry of the vector clocks whose epoch is the
// number of issued MMAs. The n-th MMA reads shared memory in epoch n of this
// actor. Threads that wait for the MMA acquire this epoch. PTX guarantees
// completion only to the threads that execute the wait, so the waits of each
// warp are recorded. A write that happens after the wait of one warp, but not
// after the waits of the other three, is reported as a note (simwgmma_alone).
#include "sim/wgmma.h"

#include "hardware/descriptor.h"
#include "sim/matrix.h"
#include "sim/mbar.h"
#include "sim/regs.h"

enum { WARPS = 4, ROWS = 16, GROUPS = 8 };

// A wait of a warp for the first n MMAs. `clk` is the warp's epoch at the wait.
typedef struct Passed { uint32_t n, clk; } Passed;
typedef struct Waits { Passed *at; uint32_t n, cap; } Waits;

// An MMA in flight.
typedef struct Job {
  const SimIns *i;
  uint64_t desc[2];  // descriptors of A (0: A is in registers) and of B
  bool add;          // whether the products are added to the accumulators
  SimLent lent;      // how the first warp that issued the MMA read B
} Job;

struct SimTeam {
  // MMAs in flight. job[0] is the warpgroup's MMA with number `done`.
  Job *job;
  uint32_t njob, cap;
  uint32_t done;          // number of completed MMAs
  uint32_t issued[WARPS];
  // For each warp and each of its latest groups: how many MMAs the warp had
  // issued when it committed the group.
  uint32_t closed[WARPS][GROUPS];
  // for each warp: its waits that covered more MMAs than all earlier waits
  Waits waits[WARPS];
  // A cached result, valid at warp instruction number `serial`: the waits of
  // all four warps for the first `met` MMAs happen before lane `lane`.
  struct { uint64_t serial; uint32_t lane, met; } behind;
};

// ---- the warpgroups of a cluster ----

static int per_cta(const SimProg *p) { return (p->nwarp + WARPS - 1) / WARPS; }

// Returns the number of warpgroups of a cluster, 0 if the kernel has no wgmma.
static int teams(const SimProg *p) {
  return actors_of(&p->actors, ACTOR_TEAM);
}

bool simwgmma_init(SimCluster *c) {
  size_t n = (size_t)teams(c->prog) * sizeof *c->team;
  c->team = n ? base_realloc(NULL, n) : NULL;
  if (c->team) memset(c->team, 0, n);
  return !n || c->team;
}

void simwgmma_free(SimCluster *c) {
  for (int k = 0; c->team && k < teams(c->prog); k++) {
    base_free(c->team[k].job);
    for (int j = 0; j < WARPS; j++) base_free(c->team[k].waits[j].at);
  }
  base_free(c->team);
}

void simwgmma_reset(SimCluster *c) {
  for (int k = 0; k < teams(c->prog); k++) {
    SimTeam *t = &c->team[k];
    SimTeam was = *t;
    *t = (SimTeam){.job = was.job, .cap = was.cap};
    for (int j = 0; j < WARPS; j++)
      t->waits[j] = (Waits){was.waits[j].at, 0, was.waits[j].cap};
  }
}

static int number(const SimWarp *w) {
  const SimCluster *c = w->cluster;
  return (int)(w->cta - c->cta) * per_cta(c->prog) + w->in / WARPS;
}

static SimTeam *team_of(const SimWarp *w) {
  return &w->cluster->team[number(w)];
}

// first_of returns the first warp of w's warpgroup. actor_of returns the actor
// (vector-clock entry) that stands for the warpgroup's MMAs.
static SimWarp *first_of(SimWarp *w) { return w - w->in % WARPS; }

static int actor_of(const SimWarp *w) {
  const SimProg *p = w->cluster->prog;
  return actors_first(&p->actors, ACTOR_TEAM) + number(w);
}

// ---- descriptors ----

// depth returns the number of stored elements in a row of A (which = 0) or B
// (which = 1), along K. bytes_of returns the number of bytes of an element.
static int depth(const AtomMma *r, int which) {
  return which ? r->k : atom_mma_depth(r);
}

static int bytes_of(const AtomMma *r, int which) {
  return dtype_bits(which ? r->b_type : r->a_type) / 8;
}

static void pieces_of(const SimMmaIns *x, int which, uint64_t desc, int first,
                      int rows, See *see, void *ud) {
  Place p = place_of(desc, false);
  each_piece(&p, x->row->mn_major[which], depth(x->row, which),
             bytes_of(x->row, which), first, rows, see, ud);
}

// ---- reads, at issue ----

typedef struct Lend {
  Access x;
  const SimMmaIns *mma;
  int actor;
  uint32_t epoch;
} Lend;

// Returns the object of shared memory that contains byte `at`, or NULL.
static const SimMem *object_at(const SimMmaIns *x, uint32_t at) {
  for (int k = 0; k < x->nsmem; k++) {
    const SimMem *m = x->smem[k];
    if (at >= m->base && at + PIECE <= m->base + m->bytes) return m;
  }
  return NULL;
}

static void lend_piece(void *ud, uint32_t at) {
  Lend *l = ud;
  SimWarp *w = l->x.w;
  const SimMem *m = l->x.m;
  if (!m || at < m->base || at + PIECE > m->base + m->bytes)
    m = l->x.m = object_at(l->mma, at);
  if (m) {
    w->cluster->hooks->agent_reads(&l->x, 0, w->home + at, l->actor, l->epoch);
    return;
  }
  if (l->x.lent) l->x.lent->n = LENT_UNKNOWN;
  SimFault *f = simreport_fault(w, SIM_OOB, 0, l->x.i->src, 0,
                                l->mma->smem[0]->index, at);
  if (f) f->access.size = PIECE;
}

// Records that an MMA reads w's part of the operands: the warp's rows of A, and
// all of B. `first` is true if w is the first warp that issues the MMA.
static void lend(SimWarp *w, Job *j, uint32_t epoch, bool first) {
  const SimMmaIns *x = j->i->x;
  Lend l = {.x = {.w = w, .i = j->i, .m = x->smem[0], .bytes = PIECE,
                  .agent = true},
            .mma = x, .actor = actor_of(w), .epoch = epoch};
  if (j->desc[0])
    pieces_of(x, 0, j->desc[0], w->in % WARPS * ROWS, ROWS, lend_piece, &l);
  if (first) l.x.lent = &j->lent;
  else if (w->cluster->hooks->agent_rereads(&l.x, 0, &j->lent)) return;
  else l.actor = -1;
  pieces_of(x, 1, j->desc[1], 0, x->row->n, lend_piece, &l);
}

// ---- computation, at the wait ----

typedef struct Load {
  const uint8_t *smem;
  int64_t bytes;
  char *to;
  // k: extent of K if the operand is MN-major, else 0. n: pieces loaded so far.
  int k, n;
} Load;

static void load_piece(void *ud, uint32_t at) {
  Load *l = ud;
  uint16_t piece[PIECE / 2] = {0};
  if (at + PIECE <= l->bytes) memcpy(piece, l->smem + at, PIECE);
  int n = l->n++;
  if (!l->k) {
    memcpy(l->to + n * PIECE, piece, PIECE);
    return;
  }
  char *to = l->to + (n / l->k * 8 * l->k + n % l->k) * 2;
  for (int r = 0; r < 8; r++) memcpy(to + r * l->k * 2, &piece[r], 2);
}

static void load_rows(const SimWarp *w, const Job *j, int which, int rows,
                      char *to) {
  const SimMmaIns *x = j->i->x;
  Load l = {.smem = w->cluster->smem + w->home, .to = to,
            .bytes = w->cluster->prog->smem_bytes,
            .k = x->row->mn_major[which] ? depth(x->row, which) : 0};
  int first = which == 0 ? w->in % WARPS * ROWS : 0;
  pieces_of(x, which, j->desc[which], first, rows, load_piece, &l);
}

static void widen(const SimMmaIns *x, DType t, const void *raw, int n,
                  void *out) {
  if (dtype_is_int(x->row->d_type)) {
    const uint8_t *u = raw;
    for (int k = 0; k < n; k++)
      ((int16_t *)out)[k] = t == DT_I8 ? (int8_t)u[k] : u[k];
  } else {
    mma_widen(t, raw, (size_t)n, out);
  }
}

// Computes D += A * B, for row-major A (rows,K), B (n,K) and D (rows,n).
static void multiply(const SimMmaIns *x, int rows, const void *a,
                     const void *b, void *d) {
  if (dtype_is_int(x->row->d_type))
    mma_tile_int(&x->m, rows, x->row->n, a, b, d, d);
  else
    mma_tile(&x->m, rows, x->row->n, a, b, d, d);
}

// Computes D += A * B for a sparse A. The metadata of each row of A selects the
// elements of B's rows (n,2K) that are multiplied.
static void multiply_sparse(SimWarp *w, const SimMmaIns *x, const char *a,
                            const char *b, char *d) {
  const AtomMma *r = x->row;
  uint16_t e[SIM_METADATA_MOST];
  simmatrix_metadata(w, x, e);
  char *met = simmatrix_room(w, 3);
  size_t size = dtype_is_int(r->d_type) ? sizeof(int16_t) : sizeof(float);
  int k_of = atom_mma_depth(r);
  for (int m = 0; m < ROWS; m++) {
    for (int k = 0; k < k_of; k++) {
      int from = simmatrix_stored_at(r, e, m, k);
      for (int n = 0; n < r->n; n++)
        memcpy(met + (size_t)(n * k_of + k) * size,
               b + (size_t)(n * r->k + from) * size, size);
    }
    multiply(x, 1, a + (size_t)(m * k_of) * size, met,
             d + (size_t)(m * r->n) * 4);
  }
}

// Reports whether mma_multiply can compute MMA x: A is not sparse, and the
// elements are not integers.
static bool is_dense(const SimMmaIns *x) {
  return !(x->row->flags & AMF_SPARSE) && !dtype_is_int(x->row->d_type);
}

// Writes a warp's rows of A to `to`, in the type of the computation.
static void load_a(SimWarp *w, const Job *j, void *to) {
  const SimMmaIns *x = j->i->x;
  char *raw = simmatrix_room(w, 3);
  if (j->desc[0]) load_rows(w, j, 0, ROWS, raw);
  else simmatrix_gather(w, x, &x->a, 0, raw);
  widen(x, x->row->a_type, raw, ROWS * atom_mma_depth(x->row), to);
}

// Loads B, and writes it to `to` in the type of the computation.
static void load_b(SimWarp *w, const Job *j, void *to) {
  const SimMmaIns *x = j->i->x;
  char *raw = simmatrix_room(w, 3);
  load_rows(w, j, 1, x->row->n, raw);
  widen(x, x->row->b_type, raw, x->row->n * x->row->k, to);
}

// Computes a warp's rows of D. `b` is B in the form that mma_multiply needs.
static void compute_dense(SimWarp *w, const Job *j, const float *b) {
  const SimMmaIns *x = j->i->x;
  float *a = simmatrix_room(w, 0), *c = simmatrix_room(w, 2);
  float *d = c + SIM_ROOM / 8;
  load_a(w, j, d);
  mma_rows(&x->m, ROWS, d, a);
  if (j->add) simmatrix_accumulators(w, x, 0, c);
  else memset(c, 0, (size_t)(ROWS * x->row->n) * sizeof *c);
  bool nonfinite = mma_multiply(&x->m, x->row->n, a, b, c, d);
  simmatrix_results(w, x, 0, d);
  if (!nonfinite || !w->cluster->prog->watched) return;
  // buffer 1 still holds B in the form that mma_multiply needs
  float *b_tile = base_realloc(NULL, SIM_ROOM);
  if (!b_tile) {
    w->cluster->oom = w->cluster->stop = true;
    return;
  }
  load_b(w, j, b_tile);
  load_a(w, j, a);
  simmatrix_nonfinite(w, j->i, 0, a, b_tile, c, d);
  base_free(b_tile);
}

// Computes a warp's rows of D if the elements are integers or A is sparse. `b`
// is B as load_b writes it.
static void compute(SimWarp *w, const Job *j, const void *b) {
  const SimMmaIns *x = j->i->x;
  const AtomMma *row = x->row;
  void *a = simmatrix_room(w, 0), *c = simmatrix_room(w, 2);
  load_a(w, j, a);
  int n = ROWS * row->n;
  bool half = row->d_type == DT_F16;
  if (j->add) simmatrix_gather(w, x, &x->c, 0, c);
  else memset(c, 0, (size_t)n * 4);
  if (half && j->add) simmatrix_widen_f16(c, n);
  if (row->flags & AMF_SPARSE) multiply_sparse(w, x, a, b, c);
  else multiply(x, ROWS, a, b, c);
  if (half) simmatrix_narrow_f16(c, n);
  simmatrix_scatter(w, x, 0, c);
}

static void run(SimWarp *first, const Job *j) {
  const SimMmaIns *x = j->i->x;
  void *b = simmatrix_room(first, 1), *b_tile = simmatrix_room(first, 0);
  bool dense = is_dense(x);
  load_b(first, j, dense ? b_tile : b);
  if (dense) mma_columns(&x->m, x->row->n, b_tile, b);
  for (int k = 0; k < WARPS; k++) {
    if (dense) compute_dense(&first[k], j, b);
    else compute(&first[k], j, b);
  }
}

// ---- issue ----

// Reports undefined registers that an MMA reads. Defines its accumulators.
static void define(SimWarp *w, const Job *j) {
  const SimMmaIns *x = j->i->x;
  const SimOperand *o[2] = {j->add ? &x->c : NULL, j->desc[0] ? NULL : &x->a};
  for (int k = 0; k < 2; k++)
    for (int v = 0; o[k] && v < o[k]->nval; v++)
      for (int u = 0; u < o[k]->mem->per; u++)
        w->cluster->hooks->value.registers(w, j->i, o[k]->mem,
                                           o[k]->reg[v] + (uint32_t)u, FULL);
  if (x->row->flags & AMF_SPARSE) simmatrix_check_metadata(w, j->i, x);
  for (int v = 0; v < x->d.nval; v++)
    for (int u = 0; u < x->d.mem->per; u++)
      rmem_def(w, x->d.mem)[x->d.reg[v] + (uint32_t)u] = FULL;
}

static void misuse(SimWarp *w, const SimIns *i, uint32_t src2, SimTeamwork how,
                   int warp) {
  SimFault *f = simreport_fault(w, SIM_WARPGROUP, 0, i->src, src2, -1, 0);
  if (f) {
    f->team.how = how;
    f->team.warp = warp;
    f->team.warps = w->cluster->prog->nwarp;
  }
  w->cluster->stop = true;
}

// Reads an operand that must have the same value in all lanes. Returns false
// and reports a fault if the values differ.
static bool one_value(SimWarp *w, const SimIns *i, uint32_t slot, bool wide,
                      uint64_t *u) {
  *u = lane_bits(w, slot, wide, 0);
  for (int l = 1; l < LANES; l++) {
    if (lane_bits(w, slot, wide, l) == *u) continue;
    misuse(w, i, 0, TEAM_LANES, w->in);
    return false;
  }
  return true;
}

static Job *new_job(SimCluster *c, SimTeam *t) {
  if (!base_room((void **)(void *)&t->job, &t->cap, t->njob + 1,
                 sizeof *t->job)) {
    c->oom = c->stop = true;
    return NULL;
  }
  return &t->job[t->njob++];
}

void simwgmma_issue(SimWarp *w, const SimIns *i) {
  const SimMmaIns *x = i->x;
  SimCluster *c = w->cluster;
  int me = w->in % WARPS;
  uint64_t add = 0;
  Job now = {.i = i}, *j;
  if ((w->in / WARPS + 1) * WARPS * LANES > c->prog->nthread) {
    misuse(w, i, 0, TEAM_SHORT, w->in);
    return;
  }
  for (int k = 0; k < 2; k++)
    if (x->desc[k] && !one_value(w, i, x->desc[k], true, &now.desc[k])) return;
  if (!one_value(w, i, x->add, false, &add)) return;
  now.add = add != 0;
  SimTeam *t = team_of(w);
  // index in t->job of the MMA that this warp issues
  uint32_t n = t->issued[me]++ - t->done;
  bool first = n == t->njob;
  if (first) {
    if (!(j = new_job(c, t))) return;
    *j = now;
  } else {
    j = &t->job[n];
    if (j->i != i || j->desc[0] != now.desc[0] || j->desc[1] != now.desc[1] ||
        j->add != now.add) {
      misuse(w, i, j->i->src, TEAM_DIFFERS, w->in);
      return;
    }
  }
  c->mmas++;
  lend(w, j, t->done + n + 1, first);
  define(w, j);
  SimWarp *all = first_of(w);
  for (int k = 0; k < WARPS; k++)
    if (all[k].state == SW_TEAM) all[k].state = SW_RUN;
}

void simwgmma_commit(SimWarp *w) {
  SimTeam *t = team_of(w);
  int me = w->in % WARPS;
  t->closed[me][w->agents.teamwork++ % GROUPS] = t->issued[me];
}

// Returns the number, within the warpgroup, of the first warp that has not yet
// issued the first n MMAs. Returns -1 if there is none.
static int laggard(const SimTeam *t, uint32_t n) {
  for (int k = 0; k < WARPS; k++)
    if (t->issued[k] < n) return k;
  return -1;
}

// Records that w waited for the first n MMAs, unless an earlier wait did.
static void keep_wait(SimWarp *w, SimTeam *t, uint32_t n) {
  Waits *p = &t->waits[w->in % WARPS];
  if (p->n && p->at[p->n - 1].n >= n) return;
  if (p->n == p->cap) {
    uint32_t cap = p->cap ? p->cap * 2 : 16;
    Passed *at = base_realloc(p->at, cap * sizeof *at);
    if (!at) {
      w->cluster->oom = w->cluster->stop = true;
      return;
    }
    p->at = at;
    p->cap = cap;
  }
  // The wait gets a new epoch of the warp, which no thread has acquired yet.
  p->at[p->n++] = (Passed){n, ++w->clk};
}

// Reports whether a wait by warp u for the first n MMAs happens before lane l
// of w. `p` has the recorded waits of u.
static bool waited_before(SimWarp *w, int l, const SimWarp *u, const Waits *p,
                          uint32_t n) {
  uint32_t lo = 0, hi = p->n;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (p->at[mid].n < n) lo = mid + 1;
    else hi = mid;
  }
  if (lo == p->n) return false;
  const SimProg *prog = w->cluster->prog;
  uint32_t clk = p->at[lo].clk;
  // All lanes of u wait together. It suffices that one of them waits before
  // lane l.
  for (uint32_t m = u->valid; m; m &= m - 1)
    if (w->cluster->hooks->before(w, l, u->id, m & -m, clk)) return true;
  // If u arrived at another block's mbarrier after the wait, lane l may have
  // acquired only the epoch of u's turn actor (mbar.h).
  int turn = actors_first(&prog->actors, ACTOR_TURN) + u->id;
  return actors_is(&prog->actors, ACTOR_TURN, turn) &&
         w->cluster->hooks->before(w, l, turn, 1, clk);
}

int simwgmma_alone(SimWarp *w, int l, int actor, uint32_t epoch) {
  SimCluster *c = w->cluster;
  const SimActors *all = &c->prog->actors;
  int k = actor - actors_first(all, ACTOR_TEAM), n = per_cta(c->prog);
  if (!actors_is(all, ACTOR_TEAM, actor)) return -1;
  SimTeam *t = &c->team[k];
  uint32_t lane = (uint32_t)(w->id * LANES + l);
  if (t->behind.serial == c->serial && t->behind.lane == lane &&
      t->behind.met >= epoch)
    return -1;
  SimWarp *first = &c->warp[k / n * c->prog->nwarp + k % n * WARPS];
  for (int j = 0; j < WARPS; j++)
    if (!waited_before(w, l, &first[j], &t->waits[j], epoch))
      return first[j].in;
  t->behind.serial = c->serial;
  t->behind.lane = lane;
  t->behind.met = epoch;
  return -1;
}

bool simwgmma_wait(SimWarp *w, const SimIns *i) {
  SimTeam *t = team_of(w);
  uint32_t pending = (uint32_t)i->imm;
  if (w->agents.teamwork <= pending) return true;
  uint32_t last = w->agents.teamwork - 1 - pending;
  uint32_t n = t->closed[w->in % WARPS][last % GROUPS];
  if (!n) return true;
  if (laggard(t, n) >= 0) {
    w->state = SW_TEAM;
    w->src = i->src;
    return false;
  }
  uint32_t some = n > t->done ? n - t->done : 0;
  for (uint32_t k = 0; k < some; k++) run(first_of(w), &t->job[k]);
  if (some)
    memmove(t->job, t->job + some, (t->njob - some) * sizeof *t->job);
  t->njob -= some;
  t->done += some;
  keep_wait(w, t, n);
  w->cluster->hooks->learn(w, w->valid, actor_of(w), n);
  return true;
}

int simwgmma_lacks(const SimWarp *w) {
  const SimTeam *t = team_of(w);
  return w->in / WARPS * WARPS + laggard(t, t->issued[w->in % WARPS]);
}

bool simwgmma_closed(const SimWarp *w, uint32_t n, uint32_t groups,
                     uint32_t *behind) {
  const SimTeam *t = team_of(w);
  const uint32_t *closed = t->closed[w->in % WARPS];
  *behind = 0;
  uint32_t all = w->agents.teamwork;
  for (uint32_t g = groups; g > 0 && all - (g - 1) <= GROUPS; g--) {
    if (closed[(g - 1) % GROUPS] < n) return g < groups;
    *behind = groups - g;
  }
  return groups > 0 && closed[(groups - 1) % GROUPS] >= n;
}

bool simwgmma_flies(const SimWarp *w, const SimMem *m, int64_t unit) {
  if (!w->cluster->team) return false;
  const SimTeam *t = team_of(w);
  for (size_t k = 0; k < t->njob; k++) {
    const SimOperand *d = &((const SimMmaIns *)t->job[k].i->x)->d;
    if (t->done + k >= t->issued[w->in % WARPS] || d->mem->base != m->base)
      continue;
    for (int v = 0; v < d->nval; v++)
      if (unit >= d->reg[v] && unit < (int64_t)d->reg[v] + d->mem->per)
        return true;
  }
  return false;
}

// Reports warps that exited without issuing an MMA of their warpgroup.
void simwgmma_end(SimCluster *c) {
  for (int k = 0; k < teams(c->prog); k++) {
    const SimTeam *t = &c->team[k];
    int late = laggard(t, t->done + t->njob);
    if (!t->njob || late < 0) continue;
    int n = per_cta(c->prog);
    SimWarp *w = &c->warp[k / n * c->prog->nwarp + k % n * WARPS + late];
    misuse(w, t->job[t->issued[late] - t->done].i, 0, TEAM_LACKS, w->in);
  }
}
// SPDX-License-Identifier: MIT
