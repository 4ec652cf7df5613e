// Finds the pairs of scheduling steps whose order another schedule could
// reverse (dynamic partial-order reduction). Two steps are such a pair if they
// conflict, and happens-before does not order them. Two steps conflict if their
// order affects the result of one of them, or whether one of them can run.
//
// Steps are ordered by the program order of a thread, by barriers, by waits for
// a phase of an mbarrier, and by the conflicts themselves. The start of a copy
// whose bytes complete a phase also orders steps. Memory order (hb_cluster.c)
// does not matter here: a relaxed arrival orders steps as a releasing arrival
// does.
//
// Arrivals in one phase of an mbarrier commute. All schedules have the same
// phases under two conditions. First, every operation in a phase happens after
// the end of the preceding phase. Second, every operation that must be in a
// phase happens before some arrival in this phase. Each violation of a
// condition gives a pair of steps:
// - An arrival in phase n, or bytes expected or completed in it, is paired with
//   each arrival in phase n - 1 that does not happen before it. In another
//   schedule, phase n - 1 could count it.
// - A wait that passes in phase n is paired with each arrival in phase n - 2
//   that does not happen before it. The wait could also have passed in phase n
//   - 2, which has the same parity. A test of the phase (try_wait) is paired
//   with the arrivals in phase n - 1.
// - A wait, a test, or expected bytes in phase n is paired with the step that
//   completes the phase, if no arrival in phase n happens after it.
//
// In memory, two accesses to one granule conflict if they are ordered or
// atomic, and one of them writes. (A granule is the unit in which accesses are
// recorded.) Atomics of one AtomicKind commute if their results are unused.
#include "explore/interleave.h"

#include <string.h>

enum { NONE = UINT32_MAX, KEPT = 3, MOST_PAIRS = 1 << 14 };
enum { MOST_WORDS = 1 << 25 };

typedef struct Guests { SimCause *p; uint32_t n, max; } Guests;
typedef struct Mbar {
  // came[0] has the arrivals in the current phase, came[1] those in the
  // previous phase, and so on
  Guests came[KEPT];
  // operations that must happen before the current phase ends
  Guests due;
} Mbar;
typedef struct Place { uint64_t key; uint32_t first; } Place;
typedef struct Touch {
  SimCause by;
  // the next older access to the same granule of memory; 0: none
  uint32_t next;
  int how;
  uint64_t was;            // contents of the granule before the step
} Touch;

struct SimCauses {
  const SimProg *p;
  uint32_t units;          // number of clusters for which memory is allocated
  uint64_t first;          // index of the first cluster that is explored now
  // nwarp: number of warps of all clusters. n: number of words in a vector
  // clock.
  uint32_t nwarp, n;
  // vector clocks: one for each warp; one for the agent (such as TMA) of the
  // current step; and a copy of the current warp's clock before its step
  uint32_t *vc;
  uint32_t *bar;           // vector clocks of barriers, sorted by cluster
  // two vector clocks for each mbarrier: of the open phase and of the completed
  // phase
  uint32_t *phase;
  Mbar *mbar;
  SimCause now;
  uint32_t *row;  // vector clock of the current step; NULL: no step runs
  // at: the mbarrier that the current step used last. in: the phase of this
  // mbarrier.
  int at;
  uint32_t in;
  uint32_t *rows, nrow, maxrow;  // vector clocks of finished steps
  uint32_t *of, nof, maxof;  // for each step: index of its vector clock in rows
  // a step in which several lanes access one granule and conflict, or NONE
  uint32_t lanes;
  Place *place;
  uint32_t nplace, maxplace;
  Touch *touch;            // accesses to granules of memory; index 0 is unused
  uint32_t ntouch, maxtouch;
  SimPair *pair;
  uint32_t npair, maxpair;
  bool full;
};

static bool room(SimCauses *s, void **p, uint32_t *max, uint32_t n,
                 size_t size) {
  if (base_room(p, max, n, size)) return true;
  s->full = true;
  return false;
}
#define ROOM(s, p, max, n) \
  room(s, (void **)(void *)&(p), &(max), n, sizeof *(p))

static void join(const SimCauses *s, uint32_t *to, const uint32_t *from) {
  for (uint32_t k = 0; k < s->n; k++) to[k] = from[k] > to[k] ? from[k] : to[k];
}

static uint32_t *vc(const SimCauses *s, int g) {
  return s->vc + (size_t)g * s->n;
}

static int warp_of(const SimWarp *w) {
  const SimCluster *c = w->cluster;
  return (int)((c->index - c->causes->first) *
               (uint64_t)c->prog->nall) + w->id;
}

static uint32_t unit_of(const SimCauses *s, const SimCluster *c) {
  return (uint32_t)(c->index - s->first);
}

// ---- saved vector clocks ----

static uint32_t *row(const SimCauses *s, uint32_t k) {
  return s->rows + (size_t)k * s->n;
}

static uint32_t keep(SimCauses *s, const uint32_t *r) {
  if ((uint64_t)(s->nrow + 1) * s->n > MOST_WORDS) {
    s->full = true;
    return NONE;
  }
  if (s->nrow == s->maxrow) {
    uint32_t cap = s->maxrow ? s->maxrow * 2 : 64;
    uint32_t *p = base_realloc(s->rows, (size_t)cap * s->n * sizeof *p);
    if (!p) {
      s->full = true;
      return NONE;
    }
    s->rows = p;
    s->maxrow = cap;
  }
  memcpy(row(s, s->nrow), r, s->n * sizeof *r);
  return s->nrow++;
}

uint32_t conflicts_start(SimWarp *w) {
  SimCauses *s = w->cluster->causes;
  return keep(s, vc(s, warp_of(w)));
}

// ---- steps ----

void conflicts_begin(SimCauses *s, uint32_t turn, int g, uint32_t start) {
  uint32_t *work = vc(s, (int)s->nwarp), *old = work + s->n;
  s->at = -1;
  if (g < 0) {
    if (start == NONE) memset(work, 0, s->n * sizeof *work);
    else memcpy(work, row(s, start), s->n * sizeof *work);
    s->row = work;
    s->now = (SimCause){turn, -1, 0};
    return;
  }
  s->row = vc(s, g);
  memcpy(old, s->row, s->n * sizeof *old);
  s->now = (SimCause){turn, g, ++s->row[g]};
}

uint32_t conflicts_seq(const SimCauses *s) { return s->now.seq; }

void conflicts_void(SimCauses *s, bool pairs) {
  const uint32_t *old = vc(s, (int)s->nwarp) + s->n;
  memcpy(vc(s, s->now.warp), old, s->n * sizeof *old);
  for (uint32_t k = s->ntouch; k && s->touch[k].by.turn == s->now.turn; k--)
    s->touch[k].by.warp = -1;
  for (int k = 0; k < s->p->nmbar * (int)s->units; k++) {
    Guests *d = &s->mbar[k].due;
    if (d->n && d->p[d->n - 1].turn == s->now.turn) d->n--;
  }
  while (!pairs && s->npair && s->pair[s->npair - 1].second == s->now.turn)
    s->npair--;
}

uint32_t conflicts_end(SimCauses *s) {
  uint32_t k = keep(s, s->row);
  s->row = NULL;
  if (!ROOM(s, s->of, s->maxof, s->now.turn + 1)) return k;
  while (s->nof < s->now.turn) s->of[s->nof++] = NONE;
  s->of[s->now.turn] = k;
  s->nof = s->now.turn + 1;
  return k;
}

void conflicts_where(const SimCauses *s, int *mbar, uint32_t *phase) {
  *mbar = s->at;
  *phase = s->in;
}

static uint32_t word_of(const SimCauses *s, int mbar) {
  return s->nwarp + (uint32_t)mbar;
}

bool conflicts_after(const SimCauses *s, uint32_t k, const SimCause *c,
                     int mbar, uint32_t phase) {
  const uint32_t *r = row(s, k);
  if (c->warp >= 0) return r[c->warp] >= c->seq;
  return mbar >= 0 && r[word_of(s, mbar)] > phase;
}

static uint64_t mixed(uint64_t h, uint32_t word) {
  h = (h ^ word) * 0x9e3779b97f4a7c15ull;
  return h ^ h >> 29;
}

uint64_t conflicts_hash(const SimCauses *s, uint32_t k, const uint32_t *name) {
  const uint32_t *r = row(s, k), nall = (uint32_t)s->p->nall;
  uint32_t nmbar = (uint32_t)s->p->nmbar;
  uint64_t h = s->n;
  for (uint32_t i = 0; i < s->nwarp; i++) h = mixed(h, r[name[i]]);
  for (uint32_t i = 0; i < s->nwarp; i += nall)
    for (uint32_t j = 0; j < nmbar; j++)
      h = mixed(h, r[s->nwarp + name[i] / nall * nmbar + j]);
  return h;
}

const SimPair *conflicts_pairs(const SimCauses *s, size_t *n) {
  *n = s->npair;
  return s->pair;
}

bool conflicts_full(const SimCauses *s) { return s->full; }

int64_t conflicts_lanes(const SimCauses *s) {
  return s->lanes == NONE ? -1 : (int64_t)s->lanes;
}

static void pair(SimCauses *s, uint32_t first) {
  for (uint32_t k = s->npair; k-- > 0 && s->pair[k].second == s->now.turn;)
    if (s->pair[k].first == first) return;
  if (s->npair == MOST_PAIRS) s->full = true;
  if (s->npair == MOST_PAIRS || !ROOM(s, s->pair, s->maxpair, s->npair + 1))
    return;
  s->pair[s->npair++] = (SimPair){first, s->now.turn};
}

// Merges the saved vector clock of step number `turn` into vector clock r.
static void learn(const SimCauses *s, uint32_t *r, uint32_t turn) {
  uint32_t k = turn < s->nof ? s->of[turn] : NONE;
  if (k != NONE) join(s, r, row(s, k));
}

// ---- barriers ----

static uint32_t *bar_row(SimCauses *s, const SimCluster *c, const SimCta *a,
                         int at) {
  size_t each = (size_t)s->p->ncta * MAX_BARS + 2;
  size_t k = at < 0 ? each + (size_t)(ptrdiff_t)at
                    : (size_t)(a - c->cta) * MAX_BARS + (size_t)at;
  return s->bar + (unit_of(s, c) * each + k) * s->n;
}

void conflicts_give(SimWarp *w, int at) {
  SimCauses *s = w->cluster->causes;
  join(s, bar_row(s, w->cluster, w->cta, at), vc(s, warp_of(w)));
}

void conflicts_take(SimWarp *w, int at) {
  SimCauses *s = w->cluster->causes;
  join(s, vc(s, warp_of(w)), bar_row(s, w->cluster, w->cta, at));
}

void conflicts_forget(SimWarp *w, int at) {
  SimCauses *s = w->cluster->causes;
  memset(bar_row(s, w->cluster, w->cta, at), 0, s->n * sizeof(uint32_t));
}

void conflicts_meet(SimCluster *c) {
  SimCauses *s = c->causes;
  uint32_t *open = bar_row(s, c, NULL, CAUSE_OPEN);
  uint32_t *done = bar_row(s, c, NULL, CAUSE_DONE);
  memcpy(done, open, s->n * sizeof *done);
  memset(open, 0, s->n * sizeof *open);
}

// ---- mbarriers ----

static uint32_t *open_row(SimCauses *s, int k) {
  return s->phase + (size_t)k * 2 * s->n;
}

static uint32_t *done_row(SimCauses *s, int k) {
  return open_row(s, k) + s->n;
}

static void enter(SimCauses *s, Guests *g) {
  if (ROOM(s, g->p, g->max, g->n + 1)) g->p[g->n++] = s->now;
}

static bool known(const SimCauses *s, const SimCause *c, int k,
                  uint32_t phase) {
  if (c->warp >= 0) return s->row[c->warp] >= c->seq;
  return s->row[word_of(s, k)] >= phase;
}

// Pairs the current step with each arrival in `came` that does not happen
// before it. Does nothing if the step happens after the end of phase `over` -
// 1.
static void behind(SimCauses *s, int k, const Guests *came, uint32_t over) {
  if (s->row[word_of(s, k)] >= over) return;
  for (uint32_t j = 0; j < came->n; j++)
    if (!known(s, &came->p[j], k, over)) pair(s, came->p[j].turn);
}

static int number(const SimCauses *s, const SimCluster *c, int k) {
  return (int)unit_of(s, c) * s->p->nmbar + k;
}

static void visit(SimCauses *s, int k, uint32_t phase) {
  s->at = k;
  s->in = phase;
}

// Records that the current step contributes to phase `phase` of mbarrier k of
// its cluster, and pairs it with arrivals in the previous phase. Returns the
// index of the mbarrier among those of all clusters, or -1 if no step is
// recorded.
static int come(SimCluster *c, int k, uint32_t phase) {
  SimCauses *s = c->causes;
  if (!s->row) return -1;
  k = number(s, c, k);
  visit(s, k, phase);
  behind(s, k, &s->mbar[k].came[1], phase);
  if (phase) join(s, s->row, done_row(s, k));
  return k;
}

void conflicts_arrive(SimCluster *c, int k, uint32_t phase) {
  SimCauses *s = c->causes;
  k = come(c, k, phase);
  if (k < 0) return;
  join(s, open_row(s, k), s->row);
  enter(s, &s->mbar[k].came[0]);
}

void conflicts_expect(SimCluster *c, int k, uint32_t phase) {
  k = come(c, k, phase);
  if (k >= 0) enter(c->causes, &c->causes->mbar[k].due);
}

void conflicts_look(SimWarp *w, int k, uint32_t phase, bool wait) {
  SimCauses *s = w->cluster->causes;
  if (!s->row) return;
  k = number(s, w->cluster, k);
  visit(s, k, phase);
  if (wait && phase > 1) behind(s, k, &s->mbar[k].came[2], phase - 1);
  if (!wait) behind(s, k, &s->mbar[k].came[1], phase);
  if (phase) join(s, s->row, done_row(s, k));
  enter(s, &s->mbar[k].due);
}

void conflicts_phase(SimCluster *c, int k) {
  SimCauses *s = c->causes;
  k = number(s, c, k);
  Mbar *b = &s->mbar[k];
  uint32_t *open = open_row(s, k), *done = done_row(s, k);
  for (uint32_t j = 0; s->row && j < b->due.n; j++) {
    const SimCause *d = &b->due.p[j];
    if (open[d->warp] >= d->seq) continue;
    pair(s, d->turn);
    learn(s, open, d->turn);
  }
  uint32_t word = word_of(s, k), phase = done[word] + 1;
  memcpy(done, open, s->n * sizeof *done);
  memset(open, 0, s->n * sizeof *open);
  done[word] = phase;
  b->due.n = 0;
  Guests last = b->came[KEPT - 1];
  memmove(&b->came[1], &b->came[0], (KEPT - 1) * sizeof last);
  last.n = 0;
  b->came[0] = last;
}

// ---- memory ----

static Place *find(Place *p, uint32_t n, uint64_t key) {
  uint64_t k = key * 0x9e3779b97f4a7c15ull >> 32;
  for (;; k++) {
    Place *at = &p[k & (n - 1)];
    if (!at->first || at->key == key) return at;
  }
}

static Place *place_of(SimCauses *s, uint64_t key) {
  if (2 * s->nplace >= s->maxplace) {
    uint32_t n = s->maxplace ? s->maxplace * 2 : 64;
    Place *p = base_realloc(NULL, n * sizeof *p);
    if (!p) {
      s->full = true;
      return NULL;
    }
    memset(p, 0, n * sizeof *p);
    for (uint32_t k = 0; k < s->maxplace; k++)
      if (s->place[k].first) *find(p, n, s->place[k].key) = s->place[k];
    base_free(s->place);
    s->place = p;
    s->maxplace = n;
  }
  return find(s->place, s->maxplace, key);
}

static bool commute(int a, int b) {
  return a == b && a != CAUSE_WRITE;
}

void conflicts_access(SimWarp *w, uint64_t key, int how, uint64_t was) {
  SimCauses *s = w->cluster->causes;
  Place *p = s->row ? place_of(s, key) : NULL;
  if (!p || !ROOM(s, s->touch, s->maxtouch, s->ntouch + 2)) return;
  for (uint32_t k = p->first; k; k = s->touch[k].next) {
    const Touch *t = &s->touch[k];
    if (t->by.warp < 0 || commute(t->how, how)) continue;
    if (t->by.turn == s->now.turn) s->lanes = s->now.turn;
    if (s->row[t->by.warp] < t->by.seq) {
      pair(s, t->by.turn);
      learn(s, s->row, t->by.turn);
    }
    if (t->how == CAUSE_WRITE) break;
  }
  if (!p->first) s->nplace++;
  s->touch[++s->ntouch] = (Touch){s->now, p->first, how, was};
  *p = (Place){key, s->ntouch};
}

bool conflicts_still(const SimCauses *s, int g, uint32_t turn) {
  for (uint32_t k = s->ntouch; k && s->touch[k].by.turn >= turn; k--) {
    const Touch *t = &s->touch[k];
    if (t->how == CAUSE_READ || t->by.warp < 0) continue;
    if (t->by.warp == g) return false;
    for (uint32_t j = t->next; j && s->touch[j].by.turn >= turn;
         j = s->touch[j].next)
      if (s->touch[j].by.warp == g) return false;
  }
  return true;
}

// ---- earlier values ----

// Returns the newest access that changes the granule, starting at access k and
// going back in time. Returns 0 if there is none.
static uint32_t change(const SimCauses *s, uint32_t k) {
  while (k && (s->touch[k].how == CAUSE_READ || s->touch[k].by.warp < 0))
    k = s->touch[k].next;
  return k;
}

static uint32_t newest(const SimCauses *s, uint64_t key) {
  return s->maxplace ? change(s, find(s->place, s->maxplace, key)->first) : 0;
}

// Reports whether the step with vector clock `row` comes after access t in
// every schedule.
static bool follows(const uint32_t *row, const Touch *t) {
  return row[t->by.warp] >= t->by.seq;
}

// Reports whether access t is a plain write (CAUSE_WRITE) that comes before the
// step with vector clock `row` in every schedule. The step cannot read an older
// value than t's, because such a write conflicts with all other changes.
static bool closes(const uint32_t *row, const Touch *t) {
  return t->how == CAUSE_WRITE && follows(row, t);
}

static uint64_t low(uint64_t u, int size) {
  return size < 8 ? u & (((uint64_t)1 << size * 8) - 1) : u;
}

// Reports whether all changes of a granule since its last write (CAUSE_WRITE)
// are atomic additions of the same number. In this case, every order of the
// additions gives the values that the granule had in this run.
static bool adds_alike(const SimCauses *s, const uint32_t *row, uint64_t key,
                       int size, uint64_t now) {
  bool some = false;
  uint64_t first = 0;
  uint32_t turn = NONE;
  for (uint32_t k = newest(s, key); k; k = change(s, s->touch[k].next)) {
    const Touch *t = &s->touch[k];
    if (closes(row, t)) return true;
    if (t->by.turn == turn) continue;
    uint64_t by = low(now - t->was, size);
    now = t->was;
    turn = t->by.turn;
    bool add = t->how != CAUSE_WRITE;
    if (add && (t->how != CAUSE_ADD + AT_ADD || (some && by != first)))
      return false;
    some = add;
    first = by;
  }
  return true;
}

// Returns the bytes of the granule before step `turn`, computed back from
// `now`, its bytes after all steps.
static uint64_t before(const SimCauses *s, uint64_t key, uint32_t turn,
                       uint64_t now) {
  for (uint32_t k = newest(s, key); k && s->touch[k].by.turn >= turn;
       k = change(s, s->touch[k].next))
    now = s->touch[k].was;
  return now;
}

// Returns the last step before `turn` that changed the granule. Returns NONE if
// there is none. Also returns NONE if a later write replaced the changed value,
// and this write precedes the step with vector clock `row` in every schedule.
static uint32_t change_before(const SimCauses *s, const uint32_t *row,
                              uint64_t key, uint32_t turn) {
  uint32_t k = newest(s, key);
  while (k && s->touch[k].by.turn >= turn && !closes(row, &s->touch[k]))
    k = change(s, s->touch[k].next);
  return k && !closes(row, &s->touch[k]) ? s->touch[k].by.turn : NONE;
}

// Returns the bytes that the first active lane read from the k-th granule of
// the poll.
static uint64_t found_at(const SimWarp *w, const SimAsk *a, int k) {
  return low(a->found[__builtin_ctz(w->active)] >> k * a->size * 8, a->size);
}

bool conflicts_plain(const SimWarp *w, const SimAsk *a) {
  const SimCauses *s = w->cluster->causes;
  const uint32_t *row = vc(s, warp_of(w));
  bool plain = a->one;
  for (int k = 0; k < a->n && plain; k++)
    plain = adds_alike(s, row, a->key + (uint64_t)k, a->size,
                       found_at(w, a, k));
  return plain;
}

uint32_t conflicts_earlier(const SimWarp *w, const SimAsk *a, uint32_t turn,
                           uint64_t *found) {
  const SimCauses *s = w->cluster->causes;
  const uint32_t *row = vc(s, warp_of(w));
  uint32_t last = NONE;
  for (int k = 0; k < a->n; k++) {
    uint32_t at = change_before(s, row, a->key + (uint64_t)k, turn);
    if (at != NONE && (last == NONE || at > last)) last = at;
  }
  *found = 0;
  for (int k = 0; k < a->n && last != NONE; k++)
    *found |= before(s, a->key + (uint64_t)k, last, found_at(w, a, k))
              << k * a->size * 8;
  return last;
}

// ---- the launch ----

static void *zeroed(size_t n, size_t size) {
  void *p = base_realloc(NULL, n * size + 1);
  if (p) memset(p, 0, n * size + 1);
  return p;
}

SimCauses *conflicts_new(const SimProg *p, uint32_t units) {
  SimCauses *s = zeroed(1, sizeof *s);
  if (!s) return NULL;
  s->p = p;
  s->units = units;
  s->nwarp = units * (uint32_t)p->nall;
  s->n = s->nwarp + units * (uint32_t)p->nmbar;
  size_t bars = units * ((size_t)p->ncta * MAX_BARS + 2);
  s->vc = zeroed((size_t)(s->nwarp + 2) * s->n, sizeof *s->vc);
  s->bar = zeroed(bars * s->n, sizeof *s->bar);
  s->phase = zeroed(units * (size_t)p->nmbar * 2 * s->n, sizeof *s->phase);
  s->mbar = zeroed(units * (size_t)p->nmbar, sizeof *s->mbar);
  if (s->vc && s->bar && s->phase && s->mbar) return s;
  conflicts_free(s);
  return NULL;
}

void conflicts_reset(SimCauses *s, uint64_t first) {
  const SimProg *p = s->p;
  size_t each = s->n * sizeof *s->vc;
  size_t bars = s->units * ((size_t)p->ncta * MAX_BARS + 2);
  size_t mbars = s->units * (size_t)p->nmbar;
  memset(s->vc, 0, (s->nwarp + 2) * each);
  memset(s->bar, 0, bars * each);
  memset(s->phase, 0, mbars * 2 * each);
  for (size_t k = 0; k < mbars; k++) {
    s->mbar[k].due.n = 0;
    for (int j = 0; j < KEPT; j++) s->mbar[k].came[j].n = 0;
  }
  if (s->maxplace) memset(s->place, 0, s->maxplace * sizeof *s->place);
  s->nplace = s->ntouch = s->npair = s->nrow = s->nof = 0;
  s->lanes = NONE;
  s->first = first;
  s->row = NULL;
  s->full = false;
}

void conflicts_free(SimCauses *s) {
  if (!s) return;
  for (size_t k = 0; s->mbar && k < s->units * (size_t)s->p->nmbar; k++) {
    base_free(s->mbar[k].due.p);
    for (int j = 0; j < KEPT; j++) base_free(s->mbar[k].came[j].p);
  }
  base_free(s->mbar);
  base_free(s->vc);
  base_free(s->bar);
  base_free(s->phase);
  base_free(s->rows);
  base_free(s->of);
  base_free(s->place);
  base_free(s->touch);
  base_free(s->pair);
  base_free(s);
}
// SPDX-License-Identifier: MIT
