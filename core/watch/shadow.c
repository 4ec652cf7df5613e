// Shadow memory: records reads and writes, and reports accesses that conflict
// with recorded accesses.
#include "sim/async.h"
#include "sim/mbar.h"
#include "sim/tcgen05.h"
#include "sim/wgmma.h"
#include "watch/late.h"
#include "watch/shadow.h"
#include "watch/waits.h"
#include "watch/warp_roles.h"

#include <string.h>

#define READ_SRC ((1u << 28) - 1)  // maximum value of SimRead.src

static bool no_memory(SimCluster *c) {
  c->oom = c->stop = true;
  return false;
}

// ---- room for granules ----

static bool grow(SimCluster *c, uint32_t n) {
  Shadow *s = shadow_of(c);
  SimGran *p = base_realloc(s->gran, n * sizeof *p);
  if (!p) return no_memory(c);
  s->gran = p;
  if (s->farat) {
    uint32_t *far = base_realloc(s->farat, n * sizeof *far);
    if (!far) return no_memory(c);
    s->farat = far;
  }
  if (s->place) {
    uint32_t *place = base_realloc(s->place, n * sizeof *place);
    if (!place) return no_memory(c);
    memset(place + s->maxgran, 0, (n - s->maxgran) * sizeof *place);
    s->place = place;
  }
  s->maxgran = n;
  return true;
}

// ---- tracked lines of global memory ----

// A hash table of lines (runs of LINE granules); its capacity is a power of 2.
// A key of 0 marks an unused entry. `last` is the line that was found last.
typedef struct ShadowLine { uint64_t key; uint32_t first; } ShadowLine;
typedef struct SimLines {
  ShadowLine *at, last;
  uint32_t n, max;
  // first granule of the first released line; 0: none. Its field `clk` holds
  // the first granule of the next released line, and so on.
  uint32_t free;
} SimLines;

static bool more_room(SimCluster *c) {
  Shadow *s = shadow_of(c);
  return grow(c, s->maxgran ? s->maxgran * 2 : 64 * LINE);
}

static ShadowLine *find_line(ShadowLine *line, uint32_t n, uint64_t key) {
  uint64_t k = key * 0x9e3779b97f4a7c15ull >> 32;
  for (;; k++) {
    ShadowLine *at = &line[k & (n - 1)];
    if (!at->key || at->key == key) return at;
  }
}

static bool more_lines(SimCluster *c) {
  SimLines *t = shadow_of(c)->lines;
  uint32_t n = t->max ? t->max * 2 : 256;
  ShadowLine *p = base_realloc(NULL, n * sizeof *p);
  if (!p) return no_memory(c);
  memset(p, 0, n * sizeof *p);
  for (uint32_t k = 0; k < t->max; k++)
    if (t->at[k].key) *find_line(p, n, t->at[k].key) = t->at[k];
  base_free(t->at);
  t->at = p;
  t->max = n;
  return true;
}

// Reports whether epoch clk of an actor (vector-clock entry) happens before all
// warps that still run.
static bool is_known(const SimCluster *c, int actor, uint32_t clk) {
  if (actors_is(&c->prog->actors, ACTOR_CPASYNC, actor)) return false;
  for (int k = 0; k < c->prog->nall; k++)
    if (c->warp[k].state != SW_DONE && hb_of(&c->warp[k])->vc[actor] < clk)
      return false;
  return true;
}

// Reports whether no later access can race with the recorded accesses to
// granule g (a unit of shadow memory).
static bool is_old(const SimCluster *c, uint32_t g) {
  Shadow *s = shadow_of(c);
  const SimGran *q = &s->gran[g];
  if (q->flags & (GF_PENDING | GF_RELEASED) || (s->place && s->place[g]))
    return false;
  if (q->flags & GF_DEFINED && !is_known(c, q->warp, q->clk)) return false;
  uint32_t k = q->flags & GF_FAR ? s->farat[g] : 0;
  for (; k; k = s->far[k].next)
    if (!is_known(c, s->far[k].actor, s->far[k].read.clk)) return false;
  return true;
}

static bool is_old_line(const SimCluster *c, uint32_t first) {
  uint32_t k = 0;
  while (k < LINE && is_old(c, first + k)) k++;
  return k == LINE;
}

static void give_back(SimCluster *c, uint32_t first) {
  Shadow *s = shadow_of(c);
  for (uint32_t g = first; g < first + LINE; g++)
    if (s->gran[g].flags & GF_FAR) shadow_drop(c, g);
  s->gran[first].clk = s->lines->free;
  s->lines->free = first;
}

// Releases the lines (runs of granules) with which no later access can race.
// Rebuilds the hash table of the remaining lines. Returns false if memory is
// exhausted.
static bool collect(SimCluster *c) {
  SimLines *t = shadow_of(c)->lines;
  ShadowLine *p = base_realloc(NULL, t->max * sizeof *p);
  if (!p) return no_memory(c);
  memset(p, 0, t->max * sizeof *p);
  t->n = 0;
  for (uint32_t k = 0; k < t->max; k++) {
    ShadowLine *line = &t->at[k];
    if (!line->key) continue;
    if (is_old_line(c, line->first)) {
      give_back(c, line->first);
      continue;
    }
    *find_line(p, t->max, line->key) = *line;
    t->n++;
  }
  base_free(t->at);
  t->at = p;
  t->last.key = 0;
  return true;
}

// Returns the first granule of a line that was released or is new. Returns 0 if
// memory is exhausted.
static uint32_t line_room(SimCluster *c) {
  Shadow *s = shadow_of(c);
  // number of granules (1.5 MB) above which lines are collected
  enum { MANY = 1 << 16 };
  SimLines *t = s->lines;
  if (!t->free && s->ngran + LINE > s->maxgran) {
    uint32_t lines = t->n;
    if (s->maxgran >= MANY && !collect(c)) return 0;
    // If few lines were released, also add memory, so that collections become
    // rarer.
    if (t->n > lines / 2 && !more_room(c)) return 0;
  }
  uint32_t first = t->free;
  if (first) {
    t->free = s->gran[first].clk;
    return first;
  }
  while (s->ngran + LINE > s->maxgran)
    if (!more_room(c)) return 0;
  first = s->ngran;
  s->ngran += LINE;
  return first;
}

static bool new_line(SimCluster *c, uint64_t key) {
  Shadow *s = shadow_of(c);
  uint32_t first = line_room(c);
  if (c->stop) return false;
  SimLines *t = s->lines;
  ShadowLine *at = find_line(t->at, t->max, key);
  *at = (ShadowLine){key, first};
  memset(s->gran + first, 0, LINE * sizeof *s->gran);
  if (s->place) memset(s->place + first, 0, LINE * sizeof *s->place);
  t->n++;
  t->last = *at;
  return true;
}

int64_t shadow_granule(SimCluster *c, const SimArea *a, size_t g) {
  uint64_t key = (uint64_t)(a - c->prog->area) << 48 | (g / LINE + 1);
  SimLines *t = shadow_of(c)->lines;
  if (key != t->last.key) {
    if (2 * t->n >= t->max && !more_lines(c)) return NO_GRANULE;
    ShadowLine *at = find_line(t->at, t->max, key);
    if (at->key) t->last = *at;
    else if (!new_line(c, key)) return NO_GRANULE;
  }
  return t->last.first + g % LINE;
}

// Reports whether x accesses global memory. The tensor of a tensor map is in
// global memory too.
static bool is_global(const Access *x) { return x->m->memory != MEMORY_SHARED; }

// ---- lists of reads ----

// Makes room for another entry in the lists of reads. Reads of shared memory by
// warps of other CTAs and by asynchronous operations are rare, so only granules
// with such reads (GF_FAR) have a list of them. Granules of global memory have
// a list of all their reads.
static bool make_far(SimCluster *c) {
  Shadow *s = shadow_of(c);
  if (!s->farat) {
    s->farat = base_realloc(NULL, s->maxgran * sizeof *s->farat);
    if (!s->farat) return no_memory(c);
  }
  if (s->farfree || s->nfar + 1 < s->maxfar) return true;
  uint32_t cap = s->maxfar ? s->maxfar * 2 : 256;
  SimFar *p = base_realloc(s->far, cap * sizeof *p);
  if (!p) return no_memory(c);
  s->far = p;
  s->maxfar = cap;
  return true;
}

// Returns an unused entry of the lists of reads. The caller must have called
// make_far before.
static uint32_t take_far(SimCluster *c) {
  Shadow *s = shadow_of(c);
  uint32_t k = s->farfree;
  if (!k) return ++s->nfar;
  s->farfree = s->far[k].next;
  return k;
}

void shadow_drop(SimCluster *c, uint32_t g) {
  Shadow *s = shadow_of(c);
  uint32_t last = s->farat[g];
  while (s->far[last].next) last = s->far[last].next;
  s->far[last].next = s->farfree;
  s->farfree = s->farat[g];
}

// ---- pages of shared memory ----

// Returns the level of a granule of shared memory: all granules of this width.
// Returns NULL for a granule of global memory.
static const SimLevel *level_of(const SimCluster *c, uint32_t g) {
  for (int s = WIDEST; s >= c->prog->shift; s--) {
    const SimLevel *v = &shadow_of(c)->pages->level[s];
    if (g - v->first < v->n) return v;
  }
  return NULL;
}

// Returns the records of the reads of granule g: one for each warp of the CTA
// whose memory contains the granule.
static inline SimRead *row_of(const SimCluster *c, const SimLevel *v,
                              uint32_t g) {
  return &v->read[(g - v->first) * (uint32_t)c->prog->nwarp];
}

static inline uint32_t byte_of(const SimLevel *v, uint32_t g) {
  return (g - v->first) << v->shift;
}

uint32_t shadow_byte(const SimCluster *c, uint32_t g) {
  const SimLevel *v = level_of(c, g);
  return v ? byte_of(v, g) : UINT32_MAX;
}

// Returns the number, in the cluster, of the first warp of the CTA whose memory
// contains granule g.
static int first_warp(const SimProg *p, const SimLevel *v, uint32_t g) {
  return (int)(byte_of(v, g) / (uint32_t)p->smem_bytes) * p->nwarp;
}

static inline uint32_t granule_at(const SimLevel *v, uint32_t addr) {
  return v->first + (addr >> v->shift);
}

// If the access to shared memory covers exactly one granule, returns the level
// of this granule. Otherwise returns NULL.
static inline const SimLevel *one_granule(const Access *x, uint32_t addr) {
  const SimPages *t = shadow_of(x->w->cluster)->pages;
  unsigned shift = t->shift[addr / SHADOW_PAGE];
  uint32_t bytes = (uint32_t)x->bytes;
  if (bytes != 1u << shift || addr & (bytes - 1)) return NULL;
  return &t->level[shift];
}

// Allocates a level's granules. Their records are initialized when a page
// begins to use the level.
static bool make_level(SimCluster *c, int shift) {
  Shadow *s = shadow_of(c);
  SimLevel *v = &s->pages->level[shift];
  if (v->n) return true;
  uint32_t n = s->pages->bytes >> shift;
  size_t rows = n * (size_t)c->prog->nwarp;
  v->read = base_realloc(NULL, (rows + 1) * sizeof *v->read);
  if (!v->read) return no_memory(c);
  if (s->ngran + n > s->maxgran && !grow(c, s->ngran + n)) return false;
  *v = (SimLevel){s->ngran, n, shift, v->read};
  s->ngran += n;
  return true;
}

// Copies the records of granule g to granule `to` of the same CTA, which has no
// records yet.
static void copy_granule(SimCluster *c, const SimLevel *from, uint32_t g,
                         const SimLevel *v, uint32_t to) {
  Shadow *s = shadow_of(c);
  SimGran *q = &s->gran[to];
  *q = s->gran[g];
  for (uint32_t m = q->readers; m; m &= m - 1)
    row_of(c, v, to)[__builtin_ctz(m)] = row_of(c, from, g)[__builtin_ctz(m)];
  if (!(q->flags & GF_FAR)) return;
  uint32_t last = s->farat[to] = 0;
  for (uint32_t k = s->farat[g]; k; k = s->far[k].next) {
    uint32_t new = make_far(c) ? take_far(c) : 0;
    if (!new) return;
    s->far[new] = s->far[k];
    s->far[new].next = 0;
    if (last) s->far[last].next = new;
    else s->farat[to] = new;
    last = new;
  }
}

// Splits granule g into the narrower granules of level v. Only the first
// granule keeps the location record of a strong access (hb_cluster.c).
static void split_granule(SimCluster *c, const SimLevel *from, uint32_t g,
                          const SimLevel *v) {
  Shadow *s = shadow_of(c);
  uint32_t first = v->first + (byte_of(from, g) >> v->shift);
  uint32_t n = 1u << (from->shift - v->shift);
  for (uint32_t k = 0; k < n; k++) {
    copy_granule(c, from, g, v, first + k);
    if (k) s->gran[first + k].flags &= (uint8_t)~GF_RELEASED;
    if (s->place) s->place[first + k] = k ? 0 : s->place[g];
  }
  if (s->gran[g].flags & GF_FAR) shadow_drop(c, g);
}

void shadow_split(SimCluster *c, uint32_t addr, uint32_t bytes) {
  SimPages *t = shadow_of(c)->pages;
  uint8_t *shift = &t->shift[addr / SHADOW_PAGE];
  int to = __builtin_ctz(addr | bytes | 1u << WIDEST);
  if (to < c->prog->shift) to = c->prog->shift;
  if (to >= *shift || !make_level(c, to)) return;
  const SimLevel *from = &t->level[*shift];
  uint32_t first = addr - addr % SHADOW_PAGE, end = first + SHADOW_PAGE;
  if (end > t->bytes) end = t->bytes;
  for (uint32_t at = first; at < end; at += 1u << *shift)
    split_granule(c, from, from->first + (at >> *shift), &t->level[to]);
  *shift = (uint8_t)to;
}

// ---- readers ----

// Returns the list entry for the reads of granule g by an actor (vector-clock
// entry). With `wrote`, returns the entry for the actor's writes instead.
// Returns NULL if memory is exhausted.
static SimRead *far_entry(SimCluster *c, uint32_t g, int actor, bool wrote) {
  Shadow *s = shadow_of(c);
  SimGran *q = &s->gran[g];
  if (!make_far(c)) return NULL;
  if (!(q->flags & GF_FAR)) s->farat[g] = 0;
  q->flags |= GF_FAR;
  for (uint32_t k = s->farat[g]; k; k = s->far[k].next)
    if (s->far[k].actor == actor &&
        wrote == (s->far[k].read.kind == READ_WROTE))
      return &s->far[k].read;
  uint32_t k = take_far(c);
  s->far[k] = (SimFar){.next = s->farat[g], .actor = actor};
  s->farat[g] = k;
  return &s->far[k].read;
}

static SimRead *far_read(SimCluster *c, uint32_t g, int actor) {
  return far_entry(c, g, actor, false);
}

// An iteration over all recorded reads of a granule since its last write.
typedef struct Readers {
  const SimCluster *c;
  // row: reads by the warps of the CTA. read: the current read. actor: the warp
  // or asynchronous operation that made the current read.
  const SimRead *row, *read;
  uint32_t left, far;
  int first, actor;
} Readers;

static Readers readers_of(const SimCluster *c, uint32_t g) {
  Shadow *s = shadow_of(c);
  const SimProg *p = c->prog;
  const SimGran *q = &s->gran[g];
  const SimLevel *v = level_of(c, g);
  Readers r = {.c = c, .left = v ? q->readers : 0,
               .far = q->flags & GF_FAR ? s->farat[g] : 0};
  if (!r.left) return r;
  r.row = row_of(c, v, g);
  r.first = first_warp(p, v, g);
  return r;
}

static bool next_reader(Readers *r) {
  if (r->left) {
    int u = __builtin_ctz(r->left);
    r->left &= r->left - 1;
    r->actor = r->first + u;
    r->read = &r->row[u];
    return true;
  }
  if (!r->far) return false;
  const SimFar *f = &shadow_of(r->c)->far[r->far];
  r->far = f->next;
  r->actor = f->actor;
  r->read = &f->read;
  return true;
}

// ---- faults ----

// Returns the index of the element at granule g (a unit of shadow memory) in
// the memory object of access x.
static int64_t element_at(const Access *x, uint32_t g) {
  const SimCluster *c = x->w->cluster;
  if (is_global(x)) return x->piece * 8 / x->m->own;
  int64_t byte = shadow_byte(c, g) % c->prog->smem_bytes;
  return (byte - x->m->base) * 8 / x->m->own;
}

// Returns the index, in its block, of the first thread in `lanes` of actor u (a
// vector-clock entry). Returns -1 if u is not a warp.
static int thread_of(const SimProg *p, int u, uint32_t lanes) {
  if (actors_is(&p->actors, ACTOR_CPASYNC, u)) u -= actors_clocked(&p->actors);
  if (u >= p->nall) return -1;
  return u % p->nwarp * LANES + (lanes ? __builtin_ctz(lanes) : 0);
}

static SimFault *fault_at(Access *x, SimKind kind, int l, uint32_t src2,
                          uint32_t g) {
  SimFault *f = simreport_fault(x->w, kind, l, x->i->src, src2, x->m->index,
                                element_at(x, g));
  if (f && x->m->stages) {
    f->r.stages = x->m->stages;
    f->r.stage = (int)(f->r.offset * x->m->own / 8 / x->m->stage);
  }
  return f;
}

// Returns the kind of asynchronous operation whose pending write covers granule
// g.
static Agent flying_to(const SimCluster *c, uint32_t g) {
  if (shadow_of(c)->gran[g].flags & GF_AGENT) return AGENT_BULKLOAD;
  return simasync_to(c, shadow_byte(c, g)) ? AGENT_STASYNC : AGENT_CPASYNC;
}

// Returns the mbarrier to which an actor (vector-clock entry) belongs, or NULL
// if the actor belongs to no mbarrier.
static const SimMbar *mbarrier_of(const SimCluster *c, int actor) {
  int k = actor - actors_first(&c->prog->actors, ACTOR_MBAR);
  return k >= 0 && k < c->mbars.n ? &c->mbars.p[k] : NULL;
}

// Finds an asynchronous operation at line src that completes in the same way as
// operations of kind `like`. `proxy` is whether it must use the async proxy.
// Returns its kind, or `like` if there is no such operation.
static Agent agent_at(const SimProg *p, uint32_t src, Agent like, bool proxy) {
  for (uint32_t k = 0; k < p->nins; k++) {
    Agent agent = op_agent((Op)p->ins[k].op);
    if (agent && p->ins[k].src == src && agent_rows[agent].proxy == proxy &&
        agent_rows[agent].done == agent_rows[like].done)
      return agent;
  }
  return like;
}

// Returns the kind of asynchronous operation that accessed granule g as `actor`
// at line src, or AGENT_NONE if a thread did.
static Agent agent_of(const SimCluster *c, int actor, uint32_t src,
                      uint32_t g) {
  const SimGran *q = &shadow_of(c)->gran[g];
  Agent agent = actors_agent(&c->prog->actors, actor);
  bool generic = mbarrier_of(c, actor) && q->warp == actor && q->src == src &&
                 !(q->flags & GF_AGENT);
  Agent found = agent_at(c->prog, src, agent,
                         agent_rows[agent].proxy && !generic);
  // If the generic proxy was used and no other asynchronous operation was
  // found, a cp.async of this line arrived at the mbarrier.
  return generic && found == agent ? AGENT_CPASYNC : found;
}

// Fills in f with the reason why x accesses granule g before an asynchronous
// write to g is complete.
static void say_late(SimFault *f, const Access *x, int l, uint32_t g) {
  const SimCluster *c = x->w->cluster;
  const SimGran *q = &shadow_of(c)->gran[g];
  const SimAsync *a = simasync_to(c, shadow_byte(c, g));
  if (q->flags & GF_PENDING) {
    if (!a && q->warp < c->prog->nall) a = simmbar_landing(&c->warp[q->warp]);
    if (!a || !a->mbar) return;
    late_explain(f, x->w, l, a->mbar, a->phase, false);
    if (f->r.kind == SIM_INFLIGHT)
      f->access.far = !a->generic && a->w->cta != x->w->cta;
    return;
  }
  const SimMbar *b = mbarrier_of(c, q->warp);
  if (b) late_explain(f, x->w, l, b, q->clk - 1, true);
}

// If the race with `actor` is between warp roles, fills in f with the missing
// synchronization. Warp roles cannot be separated by a barrier of the whole
// block.
static void say_roles(SimFault *f, const Access *x, uint32_t g, int actor) {
  const SimCluster *c = x->w->cluster;
  if (!warp_roles_apart(c->prog, f->r.src, f->r.src2)) return;
  f->r.lack = f->race.how == CLASH_RAW ? LACK_ROLES : LACK_TURN;
  if (x->w->mbar < 0 || is_global(x)) return;
  uint32_t clk = 0;
  for (Readers r = readers_of(c, g); next_reader(&r);)
    if (r.actor == actor && f->race.how == CLASH_WAR) clk = r.read->clk;
  waits_stray(f, x, g, clk ? &c->warp[actor] : NULL, clk);
}

// Fills in f with the reason why no wait covers the read of granule g by
// `actor` (a vector-clock entry).
static void say_reader(SimFault *f, const Access *x, int l, uint32_t g,
                       int actor) {
  const SimCluster *c = x->w->cluster;
  Shadow *s = shadow_of(c);
  for (uint32_t k = s->gran[g].flags & GF_FAR ? s->farat[g] : 0; k;
       k = s->far[k].next)
    if (s->far[k].actor == actor)
      waits_reader(f, x, l, actor, s->far[k].read.clk);
}

static void fault_race(Access *x, int l, SimClash how, int actor,
                       uint32_t lanes, uint32_t src2, uint32_t g,
                       bool flying) {
  const SimCluster *c = x->w->cluster;
  bool same_warp = actor == x->w->id;
  SimFault *f = fault_at(x, same_warp ? SIM_WARPRACE : SIM_RACE, l, src2, g);
  if (!f) return;
  f->race.how = how;
  f->race.flying = flying;
  f->race.copy = x->agent && x->write;
  f->race.far = actor < c->prog->nall &&
                actor / c->prog->nwarp != x->w->id / c->prog->nwarp;
  if (actor < c->prog->nall)
    memcpy(f->race.cta, c->cta[actor / c->prog->nwarp].id,
           sizeof f->race.cta);
  f->race.agent = flying ? flying_to(c, g) : agent_of(c, actor, src2, g);
  f->r.other = thread_of(c->prog, actor, lanes);
  f->r.refill = (how == CLASH_WAR || (how == CLASH_WAW && flying)) &&
                x->i->op == OP_CPASYNC && x->m->stages;
  if (same_warp) return;
  if (how == CLASH_WAR && x->ends && actor < c->prog->nall)
    late_explain(f, &c->warp[actor], -1, x->ends, x->ends->phase, true);
  else if (!f->race.agent) say_roles(f, x, g, actor);
  else if (how == CLASH_RAW) say_late(f, x, l, g);
  else if (x->agent) f->r.lack = LACK_TURN;
  if (!flying && how == CLASH_WAR) say_reader(f, x, l, g, actor);
  if (how == CLASH_RAW && f->race.agent) waits_look(f, x, l, g);
}

// ---- reads ----

// Reports whether the last write of granule g is strong and a strong read that
// observed it happens before lane l.
static bool observed(SimWarp *w, int l, uint32_t g, const SimGran *q) {
  if (!(q->flags & GF_STRONG)) return false;
  for (Readers r = readers_of(w->cluster, g); next_reader(&r);) {
    if (!r.read->strong || r.read->kind == READ_WROTE) continue;
    for (uint32_t m = r.read->lanes; m; m &= m - 1)
      if (hb_cluster_before(w, l, r.actor, m & -m, r.read->clk)) return true;
  }
  return false;
}

// Reports whether a proxy fence for `space` comes after epoch clk of lane k of
// warp u, and before lane l of w. Lane k executed the fence, or another lane of
// u that had synchronized with lane k after epoch clk.
static bool has_fenced(SimWarp *w, int l, const SimWarp *u, int k,
                       uint32_t clk, int space) {
  HbWarp *h = hb_of(u);
  uint32_t n = h->nfence < FENCES ? h->nfence : FENCES;
  for (uint32_t f = 0; f < n; f++) {
    uint32_t lanes = h->fence[f].lanes;
    if (!(h->fence[f].spaces >> space & 1) || h->fence[f].clk < clk) continue;
    if (h->fence[f].met < clk) lanes &= 1u << k;
    for (; lanes; lanes &= lanes - 1)
      if (hb_cluster_before(w, l, u->id, lanes & -lanes, h->fence[f].clk))
        return true;
  }
  return false;
}

// Reports whether a proxy fence is missing between an earlier access and x, an
// asynchronous access. `lanes`, `u` and `clk` are the lanes, the actor
// (vector-clock entry) and the epoch of the earlier access. A fence by the warp
// of lane l, which started the asynchronous operation, also suffices.
static bool lacks_fence(const Access *x, int l, int u, uint32_t lanes,
                        uint32_t clk) {
  SimWarp *w = x->w;
  HbWarp *h = hb_of(w);
  const SimCluster *c = w->cluster;
  int space = is_global(x), n = actors_clocked(&c->prog->actors);
  if (clk <= h->proxied[space * n + u]) return false;
  if (u != w->id && h->fresh[space] >> l & 1) return false;
  if (u >= c->prog->nall) return true;
  for (; lanes; lanes &= lanes - 1)
    if (!has_fenced(w, l, &c->warp[u], __builtin_ctz(lanes), clk, space))
      return true;
  return false;
}

// Reports whether each of `lanes` of actor u is covered by a proxy fence for
// `space` after epoch clk (see has_fenced).
static bool fenced_since(const SimCluster *c, int u, uint32_t lanes,
                         uint32_t clk, int space) {
  if (u >= c->prog->nall) return false;
  const HbWarp *h = hb_of(&c->warp[u]);
  uint32_t n = h->nfence < FENCES ? h->nfence : FENCES;
  for (uint32_t f = 0; f < n; f++)
    if (h->fence[f].spaces >> space & 1 && h->fence[f].clk >= clk)
      lanes &= h->fence[f].met < clk ? ~h->fence[f].lanes : 0;
  return !lanes;
}

static void check_proxy(Access *x, int l, uint32_t g, const SimGran *q) {
  if (!x->agent || q->flags & GF_AGENT || !(q->flags & GF_DEFINED) ||
      !lacks_fence(x, l, q->warp, q->lanes, q->clk))
    return;
  SimFault *f = fault_at(x, SIM_RACE, l, q->src, g);
  if (!f) return;
  f->race.how = x->write ? CLASH_WAW : CLASH_RAW;
  const SimCluster *c = x->w->cluster;
  f->race.proxy = true;
  f->race.ordered = hb_cluster_before(x->w, l, q->warp, q->lanes, q->clk);
  f->race.fenced = fenced_since(c, q->warp, q->lanes, q->clk, is_global(x));
  f->race.agent = op_agent((Op)x->i->op);
  f->r.other = thread_of(c->prog, q->warp, q->lanes);
}

// Reports whether `lanes` of w stored the value that granule q holds now. If
// several lanes of an atomic made the last write, each of them stored a
// different value.
static bool stored(const SimWarp *w, uint32_t lanes, const SimGran *q) {
  if (q->warp == w->id && !(lanes & ~q->lanes) &&
      (lanes == q->lanes || !(q->flags & GF_STRONG)))
    return true;
  int n = w->cluster->prog->nwarp;
  return q->also >> w->in & 1 && q->warp / n == w->id / n;
}

// Reports whether a write by w with these flags and the last write of q are
// both strong. The scope of each write must include the CTA of the other one.
static bool both_strong(const SimWarp *w, uint8_t flags, const SimGran *q) {
  if (!(flags & q->flags & GF_STRONG)) return false;
  int n = w->cluster->prog->nwarp;
  return q->warp / n == w->id / n || !((flags | q->flags) & GF_NARROW);
}

// Reports whether x and a recorded write d by `actor` (a vector-clock entry)
// are both strong. The scope of each access must include the CTA of the other
// access.
static bool strong_for(const Access *x, int actor, const SimRead *d) {
  int n = x->w->cluster->prog->nwarp;
  bool narrow = d->narrow || shadow_flags(x->i) & GF_NARROW;
  return x->i->sem && d->strong && (!narrow || actor / n == x->w->id / n);
}

// Reports whether the recorded write d is strong for all actors, whatever their
// CTA. Such a write is recorded only if atomics without a result followed it,
// because these atomics may execute in any order.
static bool is_loose(const SimCluster *c, const SimRead *d) {
  return d->kind == READ_WROTE && d->strong &&
         !(d->narrow && c->prog->ncta > 1);
}

// Reports races of x with weaker writes before the last strong write (GF_KEPT),
// unless these writes happen before lane l.
static void check_kept(Access *x, int l, uint32_t g) {
  SimWarp *w = x->w;
  const SimGran *q = &shadow_of(w->cluster)->gran[g];
  for (Readers r = readers_of(w->cluster, g); next_reader(&r);) {
    const SimRead *d = r.read;
    if (d->kind != READ_WROTE || strong_for(x, r.actor, d) ||
        hb_cluster_before(w, l, r.actor, d->lanes, d->clk) ||
        (is_loose(w->cluster, d) && observed(w, l, g, q)))
      continue;
    uint32_t others = d->lanes & ~(r.actor == w->id ? 1u << l : 0);
    fault_race(x, l, x->write ? CLASH_WAW : CLASH_RAW, r.actor, others, d->src,
               g, false);
  }
}

// Fills in f for an access to granule g while an asynchronous operation is
// writing to it.
static void say_flight(SimFault *f, const Access *x, int l, uint32_t g,
                       const SimGran *q) {
  const SimProg *p = x->w->cluster->prog;
  const SimWarp *u = &x->w->cluster->warp[q->warp];
  bool grouped = warp_roles_has(p, OP_CPCOMMIT);
  bool arrives = warp_roles_has(p, OP_MBARCPASYNC);
  f->access.agent = flying_to(x->w->cluster, g);
  if (f->access.agent == AGENT_CPASYNC)
    f->access.open = simmem_open(u, shadow_byte(u->cluster, g)) &&
                     (grouped || !arrives);
  f->r.other = thread_of(p, q->warp, q->lanes);
  if (f->access.open) return;
  say_late(f, x, l, g);
  if (!f->r.lack) waits_flight(f, x, l, u, g);
  if (f->access.agent == AGENT_CPASYNC && !f->r.lack && u != x->w &&
      !hb_cluster_before(x->w, l, q->warp, q->lanes, q->clk))
    f->r.lack = waits_ahead(x, l, u, g) ? LACK_AHEAD : LACK_BARRIER;
}

// If the written elements of a shared tensor of this CTA are exactly its first
// elements, returns their number. Otherwise returns 0.
static int64_t filled_of(const Access *x) {
  const Shadow *s = shadow_of(x->w->cluster);
  const SimPages *t = s->pages;
  if (is_global(x) || x->m->rank) return 0;
  int64_t bytes = 0;
  bool end = false;
  for (int64_t at = 0; at < x->m->bytes; at++) {
    uint32_t addr = x->w->home + x->m->base + (uint32_t)at;
    const SimLevel *v = &t->level[t->shift[addr / SHADOW_PAGE]];
    bool is = s->gran[granule_at(v, addr)].flags & (GF_DEFINED | GF_PENDING);
    if (is && end) return 0;
    end |= !is;
    bytes += is;
  }
  return bytes * 8 / x->m->own;
}

// If w's last successful wait was for a phase that had not ended, describes
// this wait in f.
static void say_parity(SimFault *f, const SimWarp *w) {
  if (w->mbar < 0) return;
  const SimMbar *b = &w->cluster->mbars.p[w->mbar];
  if (simmbar_ahead(w, b) < 1) return;
  f->r.lack = LACK_PARITY;
  f->r.waited = b->use[w->id].waited;
  f->late.mem = b->mem;
  f->late.element = b->element;
  f->late.phase = b->phase;
}

// Reports a read of an unwritten element. The report names the copy or the warp
// role that should have written it.
static void say_undefined(Access *x, int l, uint32_t g) {
  const SimCluster *c = x->w->cluster;
  SimLack lack = LACK_NONE;
  // If the line was reported before, reuse src2 of that report, because a
  // search at each read would take too long.
  const SimReport *same =
    simreport_of(x->w, SIM_UNINIT, x->i->src, x->m->index);
  bool full = c->out->nfault >= (uint32_t)c->host.max_reports;
  uint32_t src2 = same   ? same->src2
                  : full ? 0
                         : warp_roles_bringer(c->prog, x->m, x->i->src, &lack);
  SimFault *f = fault_at(x, SIM_UNINIT, l, src2, g);
  if (!f) return;
  f->r.lack = lack;
  f->r.before = lack == LACK_WAIT && x->w->mbar >= 0;
  if (lack == LACK_ROLES && !warp_roles_fills(x->w)) say_parity(f, x->w);
  if (!same) f->r.filled = filled_of(x);
  waits_look(f, x, l, g);
}

// Returns the lanes that made the last write of q, except lane l of x->w.
static uint32_t others_of(const Access *x, int l, const SimGran *q) {
  return q->lanes & ~(q->warp == x->w->id ? 1u << l : 0);
}

static void read_slow(Access *x, int l, uint32_t g, const SimGran *q) {
  if (q->flags & GF_KEPT) check_kept(x, l, g);
  if (q->flags & GF_PENDING) {
    SimFault *f = fault_at(x, SIM_INFLIGHT, l, q->src, g);
    if (f) {
      say_flight(f, x, l, g, q);
      waits_look(f, x, l, g);
    }
    return;
  }
  if (!(q->flags & GF_DEFINED)) {
    if (!is_global(x) && !x->m->lax) say_undefined(x, l, g);
    return;
  }
  if (stored(x->w, 1u << l, q)) return;
  if (both_strong(x->w, shadow_flags(x->i), q) ||
      hb_cluster_before(x->w, l, q->warp, q->lanes, q->clk) ||
      observed(x->w, l, g, q))
    return;
  fault_race(x, l, CLASH_RAW, q->warp, others_of(x, l, q), q->src, g, false);
}

// Flags that decide whether the quick check suffices: if a granule has none of
// these flags except GF_DEFINED, comparing an access with the last write is
// enough.
enum { SURE = GF_DEFINED | GF_PENDING | GF_KEPT };

// Returns r, the record for reads of granule q by w. Clears the record if it is
// older than the last write. w is a warp of the CTA whose memory contains q.
static inline SimRead *near_read(const SimWarp *w, SimGran *q, SimRead *r) {
  if (!(q->readers >> w->in & 1)) *r = (SimRead){0};
  q->readers |= 1u << w->in;
  return r;
}

// Reports whether lane l accesses shared memory of another CTA.
static bool is_far(const Access *x, int l) {
  return x->m->rank && x->home[l] != x->w->home;
}

// Returns the actor (vector-clock entry) of a warp's cp.async operations in
// flight. No thread acquires this actor's epochs, so any write to the source of
// such an operation is a race.
static int flyer(const SimWarp *w) {
  return actors_first(&w->cluster->prog->actors, ACTOR_CPASYNC) + w->id;
}

static unsigned kind_of(const SimIns *i) {
  if (!i->sem) return READ_WEAK;
  return shadow_flags(i) & GF_NARROW ? READ_NARROW : READ_STRONG;
}

// Checks and records that lane l reads granule g. `near` is the record of the
// warp's reads of g, or NULL if g is not in memory of the warp's CTA.
static inline void read_granule(Access *x, int l, uint32_t g, SimRead *near) {
  SimWarp *w = x->w;
  SimCluster *c = w->cluster;
  unsigned kind = kind_of(x->i);
  SimGran *q = &shadow_of(c)->gran[g];
  q->used = READ_EVER | READ_SINCE;
  if ((q->flags & SURE) != GF_DEFINED ||
      q->clk > hb_of(w)->vc[q->warp])
    read_slow(x, l, g, q);
  SimRead *r = x->flying ? far_read(c, g, flyer(w))
             : near ? near_read(w, q, near) : far_read(c, g, w->id);
  if (!r) return;
  if (kind != READ_WEAK) r->strong = 1;
  if (kind < r->kind) return;
  if (r->clk != w->clk || r->kind != kind) r->lanes = 0;
  r->kind = kind & 3;
  r->clk = w->clk;
  r->src = x->i->src & READ_SRC;
  r->lanes |= 1u << l;
}

static void read_many(Access *x, int l, uint32_t addr) {
  bool far = is_far(x, l);
  uint32_t end = addr + (uint32_t)x->bytes;
  while (addr < end) {
    Granules r = shadow_run(x->w->cluster, addr, end - addr);
    for (uint32_t k = 0; k < r.n; k++) {
      SimRead *row = row_of(x->w->cluster, r.level, r.g + k);
      read_granule(x, l, r.g + k, far ? NULL : row + x->w->in);
    }
    addr += r.bytes;
  }
}

void shadow_read(Access *x, int l, uint32_t addr) {
  const SimLevel *v = one_granule(x, addr);
  if (!v) {
    read_many(x, l, addr);
    return;
  }
  uint32_t g = granule_at(v, addr);
  SimRead *row = row_of(x->w->cluster, v, g);
  read_granule(x, l, g, is_far(x, l) ? NULL : row + x->w->in);
}

void shadow_defined(Access *x, int l, uint32_t addr) {
  SimCluster *c = x->w->cluster;
  Shadow *s = shadow_of(c);
  uint32_t end = addr + (uint32_t)x->bytes;
  while (addr < end) {
    Granules r = shadow_run(c, addr, end - addr);
    for (uint32_t k = 0; k < r.n; k++) {
      if (!x->i->idle) s->gran[r.g + k].used = READ_EVER | READ_SINCE;
      if (!x->m->lax && !(s->gran[r.g + k].flags & (GF_DEFINED | GF_PENDING)))
        say_undefined(x, l, r.g + k);
    }
    addr += r.bytes;
  }
}

// Returns the k-th granule that lane l accesses in global memory. Sets x->piece
// to the granule's byte offset, for reports. Returns NO_GRANULE if there is no
// such granule, or if memory is exhausted.
static int64_t piece(Access *x, int l, size_t k) {
  const SimArea *a = x->m->area;
  if (k >= (size_t)x->bytes >> a->shift) return NO_GRANULE;
  int64_t at = shadow_granule(x->w->cluster, a,
                              areas_granule(x->m, x->at[l]) + k);
  if (at != NO_GRANULE) x->piece = x->at[l] + (int64_t)(k << a->shift);
  return at;
}

void shadow_read_global(Access *x, int l) {
  int64_t at;
  for (size_t k = 0; (at = piece(x, l, k)) != NO_GRANULE; k++)
    read_granule(x, l, (uint32_t)at, NULL);
}

static void extend_lent(const SimCluster *c, SimLent *t, uint32_t addr,
                        uint32_t bytes) {
  if (!t->n) {
    t->first = addr;
    t->serial = shadow_of(c)->pages->writes;
  }
  if (addr < t->first) t->first = addr;
  if (addr + bytes > t->end) t->end = addr + bytes;
}

// Adds the last write of granule q (a unit of shadow memory) to the list in *t.
static void note_lent(SimLent *t, const SimGran *q) {
  int n = t->n;
  if ((q->flags & SURE) != GF_DEFINED) n = t->n = LENT_UNKNOWN;
  if (n == LENT_UNKNOWN) return;
  bool agent = q->flags & GF_AGENT;
  for (int k = n; k-- > 0;)
    if (t->by[k].clk == q->clk && t->by[k].warp == q->warp &&
        t->by[k].lanes == q->lanes && t->by[k].agent == agent)
      return;
  t->n = n == LENT_MOST ? LENT_UNKNOWN : n + 1;
  if (n == LENT_MOST) return;
  t->by[n].clk = q->clk, t->by[n].lanes = q->lanes;
  t->by[n].warp = q->warp, t->by[n].agent = agent;
}

bool shadow_lent(Access *x, int l, const SimLent *t) {
  const SimPages *p = shadow_of(x->w->cluster)->pages;
  if (!t->n || t->n == LENT_UNKNOWN) return false;
  for (uint32_t k = t->first / WROTE; k * WROTE < t->end; k++)
    if (p->wrote[k] > t->serial) return false;
  for (int k = 0; k < t->n; k++) {
    if (t->by[k].clk > hb_of(x->w)->vc[t->by[k].warp]) return false;
    if (!t->by[k].agent &&
        lacks_fence(x, l, t->by[k].warp, t->by[k].lanes, t->by[k].clk))
      return false;
  }
  return true;
}

static void lend_granule(Access *x, int l, uint32_t g, int actor,
                         uint32_t epoch) {
  SimWarp *w = x->w;
  SimCluster *c = w->cluster;
  SimGran *q = &shadow_of(c)->gran[g];
  q->used = READ_EVER | READ_SINCE;
  if ((q->flags & SURE) != GF_DEFINED ||
      q->clk > hb_of(w)->vc[q->warp])
    read_slow(x, l, g, q);
  check_proxy(x, l, g, q);
  if (x->lent) note_lent(x->lent, q);
  if (actor < 0) return;
  SimRead *r = far_read(c, g, actor);
  if (r)
    *r = (SimRead){.clk = epoch, .lanes = 1, .src = x->i->src & READ_SRC,
                   .kind = READ_WEAK};
}

void shadow_lend(Access *x, int l, uint32_t addr, int actor, uint32_t epoch) {
  if (x->lent) extend_lent(x->w->cluster, x->lent, addr, (uint32_t)x->bytes);
  const SimLevel *v = one_granule(x, addr);
  if (v) {
    lend_granule(x, l, granule_at(v, addr), actor, epoch);
    return;
  }
  uint32_t end = addr + (uint32_t)x->bytes;
  while (addr < end) {
    Granules r = shadow_run(x->w->cluster, addr, end - addr);
    for (uint32_t k = 0; k < r.n; k++)
      lend_granule(x, l, r.g + k, actor, epoch);
    addr += r.bytes;
  }
}

void shadow_lend_global(Access *x, int l, int actor, uint32_t epoch) {
  int64_t at;
  for (size_t k = 0; (at = piece(x, l, k)) != NO_GRANULE; k++)
    lend_granule(x, l, (uint32_t)at, actor, epoch);
}

void shadow_landed_global(Access *x, int l, int actor, uint32_t epoch) {
  SimWarp *w = x->w;
  SimCluster *c = w->cluster;
  Shadow *s = shadow_of(c);
  const SimArea *a = x->m->area;
  size_t g = areas_granule(x->m, x->at[l]), n = (size_t)x->bytes >> a->shift;
  for (size_t k = 0; k < n; k++) {
    int64_t at = shadow_granule(c, a, g + k);
    if (at == NO_GRANULE) return;
    if (!(s->gran[at].flags & GF_FAR)) continue;
    for (uint32_t f = s->farat[at]; f; f = s->far[f].next) {
      SimFar *r = &s->far[f];
      if (r->actor != flyer(w) || !(r->read.lanes >> l & 1)) continue;
      r->actor = actor;
      r->read.clk = epoch;
      r->read.lanes = actor == w->id ? r->read.lanes : 1;
    }
  }
}

// ---- writes ----

// Reports whether write x and an earlier read d by `actor` are both strong. The
// scope of each access must include the CTA of the other one.
static bool strong_too(const Access *x, int actor, const SimRead *d) {
  if (!x->i->sem || d->kind == READ_WEAK) return false;
  int n = x->w->cluster->prog->nwarp;
  bool narrow = d->kind == READ_NARROW || shadow_flags(x->i) & GF_NARROW;
  return !narrow || actor / n == x->w->id / n;
}

static SimFault *note_at(Access *x, int l, uint32_t src2, uint32_t g) {
  SimFault *f = simreport_note(x->w, SIM_RACE, l, x->i->src, src2, x->m->index,
                               element_at(x, g));
  if (f) f->race.how = CLASH_WAR;
  return f;
}

// Reports, as a note, a read d that happens before write x, although PTX does
// not guarantee that it completes before x:
// - A warpgroup's MMA may still read, unless the waits of all four warps for
//   the MMA happen before x.
// - A thread's read of shared memory may come after an asynchronous write if no
//   proxy fence is between them.
static void check_promise(Access *x, int l, uint32_t g, int actor,
                          const SimRead *d) {
  const SimProg *p = x->w->cluster->prog;
  int warp = simwgmma_alone(x->w, l, actor, d->clk);
  bool proxy = x->agent && !is_global(x) && actor < p->nall &&
               lacks_fence(x, l, actor, d->lanes, d->clk);
  if (warp < 0 && !proxy) return;
  SimFault *f = note_at(x, l, d->src, g);
  if (!f) return;
  f->race.alone = warp + 1;
  f->race.proxy = proxy;
  f->race.agent = proxy ? op_agent((Op)x->i->op) : AGENT_WGMMA;
  f->r.other = proxy ? thread_of(p, actor, d->lanes) : -1;
}

// Reports races of write x with reads since the last write that do not happen
// before x. `same` is true if x stores the value that the granule already
// holds. Reads by threads that stored this value do not race then.
static void check_readers(Access *x, int l, uint32_t g, bool same) {
  SimWarp *w = x->w;
  const SimGran *q = &shadow_of(w->cluster)->gran[g];
  for (Readers r = readers_of(w->cluster, g); next_reader(&r);) {
    const SimRead *d = r.read;
    if (d->kind == READ_WROTE) continue;
    if (actors_is(&w->cluster->prog->actors, ACTOR_CPASYNC, r.actor)) {
      fault_race(x, l, CLASH_WAR, r.actor, d->lanes, d->src, g, false);
      continue;
    }
    int actor = simmbar_twin(w->cluster->prog, r.actor);
    if (strong_too(x, r.actor, d)) continue;
    if (d->clk <= hb_of(w)->vc[actor] ||
        hb_cluster_before(w, l, actor, d->lanes, d->clk)) {
      check_promise(x, l, g, r.actor, d);
      continue;
    }
    if ((same && r.actor < w->cluster->prog->nall &&
         stored(&w->cluster->warp[r.actor], d->lanes, q)))
      continue;
    uint32_t others = d->lanes & ~(r.actor == w->id ? 1u << l : 0);
    fault_race(x, l, CLASH_WAR, r.actor, others, d->src, g, false);
  }
}

// Reports a race of write x with the last write. If both writes are unordered
// but store the same value, returns the mask of the warps of the CTA that
// stored it. Otherwise returns 0.
static uint32_t check_writer(Access *x, int l, uint32_t g, const SimGran *q,
                             bool same, uint8_t flags) {
  SimWarp *w = x->w;
  if (q->flags & GF_PENDING) {
    fault_race(x, l, CLASH_WAW, q->warp, q->lanes, q->src, g, true);
    return 0;
  }
  // An asynchronous write is ordered by the end of the mbarrier's phase.
  bool agent = q->flags & GF_AGENT;
  int actor = agent ? simmbar_twin(w->cluster->prog, q->warp) : q->warp;
  if (hb_cluster_before(w, l, actor, q->lanes, q->clk)) return 0;
  if (both_strong(w, flags, q)) return 0;
  int n = w->cluster->prog->nwarp, other = q->warp % n;
  if (same && q->warp / n == w->id / n) return q->also | 1u << other;
  if (same || observed(w, l, g, q)) return 0;
  fault_race(x, l, CLASH_WAW, q->warp, others_of(x, l, q), q->src, g, false);
  return 0;
}

// Reports whether read or write d by `actor` must stay recorded after a strong
// write, because later accesses may race with d. This is not the case if d is
// strong, or happens before all warps.
static bool stays(const SimCluster *c, int actor, SimRead *d) {
  // a strong read before the strong write did not observe this write
  if (d->kind != READ_WROTE) d->strong = 0;
  return d->kind > (c->prog->ncta > 1 ? READ_STRONG : READ_NARROW) &&
         !is_known(c, actor, d->clk);
}

// Called after a strong write of granule g. Removes from g's list the entries
// with which no later access can race. `loosely` is true if the write is an
// atomic without a result. Loose entries (is_loose) then remain, even if they
// are old, because each actor has at most one.
static void keep_far(SimCluster *c, uint32_t g, bool loosely) {
  Shadow *s = shadow_of(c);
  SimGran *q = &s->gran[g];
  uint32_t *at = &s->farat[g], k;
  if (!(q->flags & GF_FAR)) return;
  q->flags &= (uint8_t)~GF_KEPT;
  while ((k = *at)) {
    SimFar *f = &s->far[k];
    bool loose = is_loose(c, &f->read);
    if (loose ? loosely : stays(c, f->actor, &f->read)) {
      if (f->read.kind == READ_WROTE) q->flags |= GF_KEPT;
      at = &f->next;
      continue;
    }
    *at = f->next;
    f->next = s->farfree;
    s->farfree = k;
  }
  if (!s->farat[g]) q->flags &= (uint8_t)~GF_FAR;
}

// Adds the last write of granule g to g's list, if later accesses may still
// race with it after the strong write that follows.
static void keep_write(SimCluster *c, uint32_t g, bool loosely) {
  SimGran *q = &shadow_of(c)->gran[g];
  bool weak = !(q->flags & GF_STRONG), narrow = q->flags & GF_NARROW;
  bool far = narrow && c->prog->ncta > 1;
  if (!(q->flags & GF_DEFINED) || !(weak || far || loosely) ||
      is_known(c, q->warp, q->clk))
    return;
  SimRead *d = far_entry(c, g, q->warp, true);
  if (!d) return;
  uint32_t lanes = d->clk == q->clk ? d->lanes : 0;
  *d = (SimRead){.clk = q->clk, .lanes = lanes | q->lanes, .kind = READ_WROTE,
                 .src = q->src & READ_SRC, .strong = !weak,
                 .narrow = !weak && narrow};
  q->flags |= GF_KEPT;
}

// Returns the lanes that made the last write, if they executed the same atomic
// instruction as x at the same time. Otherwise returns 0. The hardware executes
// the lanes of an atomic in any order, so a later access by one of these lanes
// is not ordered after the accesses of the others.
static uint32_t beside(const Access *x, int l, const SimGran *q) {
  const SimWarp *w = x->w;
  if (x->i->op != OP_ATOMIC || !(q->flags & GF_STRONG) || q->warp != w->id ||
      q->clk != w->clk || q->src != x->i->src)
    return 0;
  // If no writing lane below lane l has lane l's address, an earlier execution
  // of the atomic made the last write.
  for (uint32_t m = q->lanes & w->active & ((1u << l) - 1); m; m &= m - 1) {
    int k = __builtin_ctz(m);
    bool home = !x->m->rank || x->home[k] == x->home[l];
    if (home && x->at[k] == x->at[l]) return q->lanes;
  }
  return 0;
}

// Records a strong write of granule g by lane l. Keeps older accesses with
// which later accesses may race.
static void write_strong(Access *x, int l, uint32_t g, uint8_t flags) {
  SimWarp *w = x->w;
  SimCluster *c = w->cluster;
  SimGran *q = &shadow_of(c)->gran[g];
  uint32_t near = is_global(x) ? 0 : q->readers;
  const SimLevel *v = near ? level_of(c, g) : NULL;
  for (uint32_t m = near; m; m &= m - 1) {
    int u = __builtin_ctz(m);
    if (!stays(c, first_warp(c->prog, v, g) + u, &row_of(c, v, g)[u]))
      near &= ~(1u << u);
  }
  uint32_t lanes = beside(x, l, q);
  bool loosely = x->i->op == OP_ATOMIC && x->i->idle;
  keep_far(c, g, loosely);
  if (!lanes) keep_write(c, g, loosely && others_of(x, l, q));
  uint8_t kept = q->flags & (GF_FAR | GF_KEPT);
  q->flags &= (uint8_t)~GF_FAR;
  shadow_set(c, g, w->id, lanes | 1u << l, w->clk, x->i->src, flags | kept);
  q->readers = near;
}

static inline void write_granule(Access *x, int l, uint32_t g, bool same,
                                 uint8_t flags) {
  SimWarp *w = x->w;
  SimCluster *c = w->cluster;
  SimGran *q = &shadow_of(c)->gran[g];
  uint32_t also = 0;
  if (q->clk > hb_of(w)->vc[q->warp] || (q->flags & GF_PENDING))
    also = check_writer(x, l, g, q, same, flags);
  if (x->agent) check_proxy(x, l, g, q);
  if ((q->readers && !is_global(x)) || q->flags & GF_FAR)
    check_readers(x, l, g, same);
  if (q->flags & GF_KEPT) check_kept(x, l, g);
  if (flags & GF_STRONG) {
    write_strong(x, l, g, flags);
    return;
  }
  bool join = q->warp == w->id && q->clk == w->clk && same &&
              !(flags & GF_PENDING);
  uint32_t lanes = (join ? q->lanes : 0) | 1u << l;
  shadow_set(c, g, w->id, lanes, w->clk, x->i->src, flags);
  q->also = also;
}

static void write_many(Access *x, int l, uint32_t addr, bool same,
                       uint8_t flags) {
  uint32_t end = addr + (uint32_t)x->bytes;
  while (addr < end) {
    Granules r = shadow_run(x->w->cluster, addr, end - addr);
    for (uint32_t k = 0; k < r.n; k++)
      write_granule(x, l, r.g + k, same, flags);
    addr += r.bytes;
  }
}

// Counts a write to `bytes` bytes of shared memory at addr.
static inline void count_write(SimCluster *c, uint32_t addr, uint32_t bytes) {
  SimPages *t = shadow_of(c)->pages;
  t->writes++;
  for (uint32_t k = addr / WROTE; k * WROTE < addr + bytes; k++)
    t->wrote[k] = t->writes;
}

void shadow_write(Access *x, int l, uint32_t addr, bool same, uint8_t flags) {
  count_write(x->w->cluster, addr, (uint32_t)x->bytes);
  const SimLevel *v = one_granule(x, addr);
  if (v) write_granule(x, l, granule_at(v, addr), same, flags);
  else write_many(x, l, addr, same, flags);
}

void shadow_set_all(SimCluster *c, uint32_t addr, uint32_t bytes, int actor,
                    uint32_t lanes, uint32_t clk, uint32_t src,
                    uint8_t flags) {
  uint32_t end = addr + bytes;
  count_write(c, addr, bytes);
  while (addr < end) {
    Granules r = shadow_run(c, addr, end - addr);
    for (uint32_t k = 0; k < r.n; k++)
      shadow_set(c, r.g + k, actor, lanes, clk, src, flags);
    addr += r.bytes;
  }
}

// Returns a hash of the n bytes of a granule. The hash is never 0, because 0
// stands for unknown bytes.
static uint32_t hash_of(const uint8_t *p, size_t n) {
  uint64_t h = 0;
  for (size_t at = 0; p && at < n; at += 8) {
    uint64_t u = 0;
    memcpy(&u, p + at, n - at < 8 ? n - at : 8);
    h = (h ^ u ^ 1) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 32;
  }
  return p ? (uint32_t)h | 1 : 0;
}

// Compares the new value with a hash of this cluster's last store, not with
// memory, because another cluster, on another host thread, may have stored to
// the granule.
void shadow_write_global(Access *x, int l, const uint8_t *data,
                         uint8_t flags) {
  SimCluster *c = x->w->cluster;
  Shadow *s = shadow_of(c);
  int shift = x->m->area->shift;
  int64_t at;
  for (size_t k = 0; (at = piece(x, l, k)) != NO_GRANULE; k++) {
    uint32_t h = hash_of(data ? data + (k << shift) : NULL, (size_t)1 << shift);
    bool same = h && s->gran[at].readers == h;
    write_granule(x, l, (uint32_t)at, same, flags);
    s->gran[at].readers = h;
  }
}

void shadow_settle_global(Access *x, int l) {
  const SimWarp *w = x->w;
  int64_t at;
  for (size_t k = 0; (at = piece(x, l, k)) != NO_GRANULE; k++)
    if (shadow_of(w->cluster)->gran[at].flags & GF_PENDING)
      shadow_set(w->cluster, (uint32_t)at, w->id, 1u << l, w->clk, x->i->src,
                 GF_DEFINED | GF_AGENT);
}

bool shadow_init(SimCluster *c) {
  uint32_t bytes = (uint32_t)(c->prog->ncta * c->prog->smem_bytes);
  size_t pages = bytes / SHADOW_PAGE + 1;
  Shadow *s = c->own[OWN_SHADOW] = base_zeros(sizeof *s);
  if (!s) return false;
  SimPages *t = s->pages = base_realloc(NULL, sizeof *t + pages);
  s->lines = base_zeros(sizeof *s->lines);
  if (!t || !s->lines) return false;
  *t = (SimPages){.bytes = bytes};
  t->wrote = base_zeros((bytes / WROTE + 1) * sizeof *t->wrote);
  if (!t->wrote) return false;
  memset(t->shift, WIDEST, pages);
  return make_level(c, WIDEST);
}

// Clears the records of pages in use.
static void reset_pages(SimCluster *c) {
  SimPages *t = shadow_of(c)->pages;
  memset(t->wrote, 0, (t->bytes / WROTE + 1) * sizeof *t->wrote);
  t->writes = 0;
  shadow_of(c)->ngran = 0;
  for (int s = WIDEST; s >= 0; s--) {
    t->level[s].first = shadow_of(c)->ngran;
    shadow_of(c)->ngran += t->level[s].n;
  }
  for (uint32_t at = 0, end; at < t->bytes; at = end) {
    const SimLevel *v = &t->level[t->shift[at / SHADOW_PAGE]];
    end = at;
    while (end < t->bytes && t->shift[end / SHADOW_PAGE] == v->shift)
      end += SHADOW_PAGE;
    if (end > t->bytes) end = t->bytes;
    memset(shadow_of(c)->gran + v->first + (at >> v->shift), 0,
           ((end - at) >> v->shift) * sizeof *shadow_of(c)->gran);
  }
}

void shadow_reset(SimCluster *c) {
  Shadow *s = shadow_of(c);
  reset_pages(c);
  s->nfar = s->farfree = 0;
  SimLines *t = s->lines;
  if (t->n) memset(t->at, 0, t->max * sizeof *t->at);
  t->n = t->free = 0;
  t->last.key = 0;
}

void shadow_free(SimCluster *c) {
  Shadow *s = shadow_of(c);
  if (!s) return;
  if (s->lines) base_free(s->lines->at);
  base_free(s->lines);
  for (int k = 0; s->pages && k <= WIDEST; k++)
    base_free(s->pages->level[k].read);
  if (s->pages) base_free(s->pages->wrote);
  base_free(s->pages);
  base_free(s->gran);
  base_free(s->far);
  base_free(s->farat);
  base_free(s->place);
  base_free(s);
}
// SPDX-License-Identifier: MIT
