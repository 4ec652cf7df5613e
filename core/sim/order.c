// What is ordered before what inside a CTA: barriers, meetings of lanes,
// release and acquire, fences. The PTX memory model's causality order.
//
// Threads count epochs, the same number for all lanes of a warp (w->clk).
// What is ordered before every lane of w stands in w->vc, an epoch a warp:
// barriers and meetings of whole warps need no more. What single threads
// know beyond that stands in rows: an epoch for every thread of the CTA, and
// a last word that is set where the thread acquired from another CTA. Rows
// are made when a kernel first releases, fences, or lets part of a warp meet.
//
//   seen     what is ordered before the lane, beyond w->vc (w->level: one row
//            for all lanes, lane 0's)
//   pending  what the values of relaxed reads carried: seen after a fence
//   fenced   what was ordered before the lane's last fence: released by any
//            strong write that follows
//   barriers, and the locations that hold a released value
//
// Global memory is one location here: values go through other CTAs, too.
#include "ir/intrin.h"
#include "sim/inside.h"

#include <string.h>

enum { SEEN, PENDING, FENCED, KINDS };

static size_t threads(const SimCta *c) {
  return (size_t)c->prog->nwarp * LANES;
}

static size_t words(const SimProg *p) {
  return (size_t)p->nwarp * LANES + 1;
}

// Rows of the threads by kind, of the barriers, of global memory, and one to
// work in.
static uint32_t *row(SimCta *c, size_t k) {
  return c->row + k * words(c->prog);
}

static uint32_t *lane_row(SimWarp *w, int kind, int l) {
  return row(w->cta, (size_t)kind * threads(w->cta) +
                       (size_t)(w->id * LANES + l));
}

static uint32_t *seen_row(SimWarp *w, int l) {
  return lane_row(w, SEEN, w->level ? 0 : l);
}

static uint32_t *bar_row(SimCta *c, size_t id) {
  return row(c, KINDS * threads(c) + id);
}

static uint32_t *global_row(SimCta *c) { return bar_row(c, MAX_BARS); }
static uint32_t *work_row(SimCta *c) { return bar_row(c, MAX_BARS + 1); }

static bool no_memory(SimCta *c) {
  c->oom = c->stop = true;
  return false;
}

static bool make_rows(SimCta *c) {
  if (c->row) return true;
  size_t n = KINDS * threads(c) + MAX_BARS + 2;
  c->row = base_realloc(NULL, n * words(c->prog) * sizeof *c->row);
  return c->row || no_memory(c);
}

// ---- rows ----

static void copy(const SimCta *c, uint32_t *to, const uint32_t *from) {
  memcpy(to, from, words(c->prog) * sizeof *to);
}

static void join(const SimCta *c, uint32_t *to, const uint32_t *from) {
  size_t n = words(c->prog);
  for (size_t k = 0; k < n; k++) to[k] = from[k] > to[k] ? from[k] : to[k];
}

// Joins `from` to a row that holds something only if `some`.
static void add(const SimCta *c, uint32_t *to, bool some,
                const uint32_t *from) {
  if (some) join(c, to, from);
  else copy(c, to, from);
}

// Does vc, an epoch a warp, say all that the row does?
static bool within(const SimCta *c, const uint32_t *r, const uint32_t *vc) {
  uint32_t more = 0;
  for (int u = 0; u < c->prog->nwarp; u++)
    for (int k = 0; k < LANES; k++) more |= r[u * LANES + k] > vc[u];
  return !more;
}

// All that is ordered before lane l, its own accesses included.
static void view(SimWarp *w, int l, uint32_t *out) {
  SimCta *c = w->cta;
  for (int u = 0; u < c->prog->nwarp; u++)
    for (int k = 0; k < LANES; k++) out[u * LANES + k] = w->vc[u];
  out[threads(c)] = 0;
  if (w->seen >> l & 1) join(c, out, seen_row(w, l));
  out[w->id * LANES + l] = w->clk;
  out[threads(c)] |= w->late >> l & 1;
}

// A row for every lane again.
static void expand(SimWarp *w) {
  if (w->seen && w->level)
    for (int l = 1; l < LANES; l++)
      copy(w->cta, lane_row(w, SEEN, l), lane_row(w, SEEN, 0));
  w->level = false;
}

static void acquire(SimWarp *w, int l, const uint32_t *r) {
  SimCta *c = w->cta;
  if (r[threads(c)]) w->late |= 1u << l;
  if (within(c, r, w->vc)) return;
  expand(w);
  add(c, lane_row(w, SEEN, l), w->seen >> l & 1, r);
  w->seen |= 1u << l;
}

// What all lanes of warp u are known to, the warp is.
static void settle(SimWarp *w) {
  const SimCta *c = w->cta;
  const uint32_t *r = lane_row(w, SEEN, 0);
  for (int u = 0; u < c->prog->nwarp; u++) {
    uint32_t valid = c->warp[u].valid, least = UINT32_MAX;
    for (int k = 0; k < LANES; k++)
      if (valid >> k & 1 && r[u * LANES + k] < least) least = r[u * LANES + k];
    if (least > w->vc[u]) w->vc[u] = least;
  }
  w->level = true;
  w->seen = within(c, r, w->vc) ? 0 : FULL;
}

// ---- lanes and warps that meet ----

// What any lane of mask saw, in lane `to`'s row.
static void gather(SimWarp *w, uint32_t mask, int to) {
  uint32_t *r = lane_row(w, SEEN, to);
  bool some = w->seen >> to & 1;
  for (uint32_t m = w->seen & mask & ~(1u << to); m; m &= m - 1) {
    add(w->cta, r, some, lane_row(w, SEEN, __builtin_ctz(m)));
    some = true;
  }
}

static void meet_part(SimWarp *w, uint32_t mask) {
  SimCta *c = w->cta;
  if (!mask || !make_rows(c)) return;
  int first = __builtin_ctz(mask);
  expand(w);
  gather(w, mask, first);
  uint32_t *r = lane_row(w, SEEN, first);
  if (!(w->seen & mask)) memset(r, 0, words(c->prog) * sizeof *r);
  for (uint32_t m = mask; m; m &= m - 1)
    r[w->id * LANES + __builtin_ctz(m)] = w->clk;
  for (uint32_t m = mask & (mask - 1); m; m &= m - 1)
    copy(c, lane_row(w, SEEN, __builtin_ctz(m)), r);
  w->seen |= mask;
  if (w->late & mask) w->late |= mask;
  w->clk++;
}

void simorder_meet(SimWarp *w, uint32_t mask) {
  if (mask != w->valid) {
    meet_part(w, mask);
    return;
  }
  w->vc[w->id] = w->clk++;
  if (w->late) w->late = FULL;
  if (!w->seen || w->level) return;
  gather(w, FULL, 0);
  settle(w);
}

void simorder_arrive(SimWarp *w, SimBar *b, bool wait) {
  SimCta *c = w->cta;
  if (wait) simorder_meet(w, w->valid);
  for (int u = 0; u < c->prog->nwarp; u++)
    if (w->vc[u] > b->vc[u]) b->vc[u] = w->vc[u];
  b->late |= w->late != 0;
  for (uint32_t m = w->level ? w->seen & 1 : w->seen; m; m &= m - 1) {
    add(c, bar_row(c, (size_t)(b - c->bar)), b->rows,
        lane_row(w, SEEN, __builtin_ctz(m)));
    b->rows = true;
  }
  if (!wait) b->vc[w->id] = w->clk++;
}

void simorder_leave(SimWarp *w, const SimBar *b) {
  SimCta *c = w->cta;
  for (int u = 0; u < c->prog->nwarp; u++)
    if (b->vc[u] > w->vc[u]) w->vc[u] = b->vc[u];
  if (b->late) w->late = FULL;
  if (!b->rows && !w->seen) return;
  if (b->rows)
    add(c, lane_row(w, SEEN, 0), w->seen & 1,
        bar_row(c, (size_t)(b - c->bar)));
  settle(w);
}

bool simorder_before(SimWarp *w, int l, int u, uint32_t lanes, uint32_t clk) {
  if (clk <= w->vc[u]) return true;
  if (u == w->id) lanes &= ~(1u << l);
  if (!lanes) return true;
  if (!(w->seen >> l & 1)) return false;
  const uint32_t *r = seen_row(w, l) + u * LANES;
  for (; lanes; lanes &= lanes - 1)
    if (r[__builtin_ctz(lanes)] < clk) return false;
  return true;
}

// ---- release and acquire ----

// For threads of other CTAs, too?
static bool wide(const SimIns *i) {
  return i->scope >= SCOPE_GPU;
}

// The row of granule g's location; NULL: there is none. Makes it.
static uint32_t *location(SimCta *c, int64_t g, bool make) {
  if (!make_rows(c)) return NULL;
  if (g < 0) return global_row(c);
  if (!c->place) {
    c->place = base_realloc(NULL, c->prog->ngran * sizeof *c->place);
    if (!c->place) return no_memory(c), NULL;
    memset(c->place, 0, c->prog->ngran * sizeof *c->place);
  }
  size_t n = words(c->prog);
  if (!c->place[g] && make) {
    if (c->nplace == c->maxplace) {
      uint32_t cap = c->maxplace ? c->maxplace * 2 : 16;
      uint32_t *p = base_realloc(c->location, cap * n * sizeof *p);
      if (!p) return no_memory(c), NULL;
      c->location = p;
      c->maxplace = cap;
    }
    c->place[g] = ++c->nplace;
  }
  return c->place[g] ? c->location + (c->place[g] - 1) * n : NULL;
}

void simorder_read(SimWarp *w, const SimIns *i, int l, int64_t g) {
  SimCta *c = w->cta;
  bool acq = i->sem == SEM_ACQUIRE || i->sem == SEM_ACQ_REL;
  uint32_t bit = 1u << l;
  if (g < 0 && wide(i)) {
    if (acq) w->late |= bit;
    else w->unfenced |= bit;
  }
  bool some = g < 0 ? c->global : c->gran[g].flags & GF_RELEASED;
  uint32_t *r = some ? location(c, g, false) : NULL;
  if (r && acq) {
    acquire(w, l, r);
  } else if (r) {
    add(c, lane_row(w, PENDING, l), w->pending & bit, r);
    w->pending |= bit;
  }
  if (!acq || !(w->pending & bit)) return;
  acquire(w, l, lane_row(w, PENDING, l));
  w->pending &= ~bit;
}

// What a strong write of lane l releases; NULL: nothing.
static const uint32_t *released(SimWarp *w, const SimIns *i, int l) {
  if (i->sem >= SEM_RELEASE) {
    if (!make_rows(w->cta)) return NULL;
    view(w, l, work_row(w->cta));
    return work_row(w->cta);
  }
  return w->fenced >> l & 1 ? lane_row(w, FENCED, l) : NULL;
}

void simorder_write(SimWarp *w, const SimIns *i, int l, int64_t g,
                    bool keep) {
  SimCta *c = w->cta;
  const uint32_t *r = released(w, i, l);
  if (g < 0) {
    if (wide(i) && (i->sem >= SEM_RELEASE || w->sent >> l & 1))
      simblocks_release(c);
    if (r) add(c, global_row(c), c->global, r);
    c->global |= r != NULL;
    return;
  }
  uint32_t *to = r ? location(c, g, true) : NULL;
  if (to) add(c, to, keep, r);
  if (to || keep) c->gran[g].flags |= GF_RELEASED;
}

void simorder_fence(SimWarp *w, int kind) {
  SimCta *c = w->cta;
  if (!make_rows(c)) return;
  for (uint32_t m = w->active & w->pending; m; m &= m - 1)
    acquire(w, __builtin_ctz(m), lane_row(w, PENDING, __builtin_ctz(m)));
  w->pending &= ~w->active;
  if (kind > FE_CLUSTER) {  // a cluster is one CTA
    w->late |= w->unfenced & w->active;
    w->unfenced &= ~w->active;
    w->sent |= w->active;
  }
  for (uint32_t m = w->active; m; m &= m - 1)
    view(w, __builtin_ctz(m), lane_row(w, FENCED, __builtin_ctz(m)));
  w->fenced |= w->active;
  w->clk++;
}

void simorder_reset(SimCta *c) {
  if (c->nplace) memset(c->place, 0, c->prog->ngran * sizeof *c->place);
  c->nplace = 0;
  c->global = false;
}
