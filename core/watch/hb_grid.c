// Happens-before between clusters that communicate through global memory
// (SimProg.common), by the causality order of PTX, and races between such
// clusters.
//
// A release stores a snapshot (Message) at its address. A snapshot is a vector
// clock of the accesses that happen before the releasing thread, with an epoch
// for each thread of its cluster (hb_cluster.c). It is linked to the older
// snapshots at the address that the thread has read. An acquire from this
// address adds an edge (Hint) from the acquiring thread to the snapshot. The
// edge is valid from the thread's current epoch on. It is also valid for all
// threads that acquire this epoch.
//
// An access of another cluster happens before a thread if the thread reaches a
// snapshot that covers the epoch of the access. A thread reaches the snapshots
// of its valid edges. From a snapshot, it reaches the snapshots of all edges
// that the snapshot's cluster had when the snapshot was stored.
//
// Each granule (as wide as the narrowest access) records the last write, and
// all accesses from the last weak write on. Strong accesses are unordered among
// each other. A thread that is ordered after one strong access may therefore be
// unordered with the others. For this reason, the granule records the last
// strong access of each block and kind.
#include "watch/hb_grid.h"

#include "ir/intrin.h"
#include "watch/own.h"
#include "watch/shadow.h"
#include "watch/waits.h"

#include <string.h>

enum { PAGE = 1024 };

typedef struct Hint { uint32_t message, clk; uint16_t warp, lane; } Hint;
// A proxy fence for global memory that `lanes` of a warp executed together.
// Snapshot `message` covers all accesses that happen before the fence.
typedef struct Proxy {
  uint32_t clk, lanes, message;
  // warp: number of the warp. lane: lowest lane of `lanes`.
  uint16_t warp, lane;
} Proxy;

typedef struct Unit {  // the acquire edges (Hint) and proxy fences of a cluster
  Hint *hint;
  // edges of relaxed reads; they become valid at the next fence
  Hint *soon;
  Proxy *proxy;
  uint32_t nhint, maxhint, nsoon, maxsoon, nproxy, maxproxy;
} Unit;

typedef struct Message {
  uint32_t next;           // next older snapshot at the same address; 0: none
  // chain: number of the chain, which has all snapshots at this address. nth:
  // position of the snapshot in the chain.
  uint32_t chain, nth;
  // the next older snapshot of the same cluster in the chain; 0: none
  uint32_t prior;
  // unit: the cluster that stored the snapshot. nhint: number of edges that
  // this cluster had at that time.
  uint32_t unit, nhint;
  // Index in SimRelay.word of the vector clock. If `full` is set, the clock has
  // an epoch for each thread. Otherwise it has an epoch for each warp, followed
  // by the number of the releasing thread and its epoch.
  uint32_t word;
  bool full;
  // number of the last query (SimRelay.question) that visited the snapshot
  uint32_t asked;
} Message;

typedef struct Touch {     // an access to a granule by lanes of a warp
  // unit: index of the cluster, counted from 1; 0: the entry is unused
  uint32_t unit, clk, lanes, src;
  // number of the access, counted over all accesses of the launch
  uint32_t turn;
  uint16_t warp;
  // narrow: whether the access is strong with CTA scope
  bool strong : 1, agent : 1, narrow : 1;
  bool wrote : 1, atomic : 1;
  // draws: whether the access is an atomic addition whose result is used. puts:
  // whether the access stores a value that does not depend on the old value.
  bool draws : 1, puts : 1;
} Touch;

typedef struct Reader { Touch by; uint32_t next; } Reader;
struct SimPlace {
  Touch write;
  // list of the reads since the last write, and of older writes with which
  // later accesses may still race
  uint32_t others;
  uint32_t message;        // newest snapshot at this address; 0: none
  // number (Touch.turn) of the last write that is not an atomic
  uint32_t cut;
};

// The last snapshot of a cluster in a chain. key: the chain and the cluster.
// message: the snapshot; 0: the entry is unused.
typedef struct Last { uint64_t key; uint32_t message; } Last;

typedef struct SimRelay {
  Unit *unit;
  Message *message;        // snapshots; index 0 is unused
  Last *last;              // hash table by chain and cluster
  uint32_t nlast, maxlast, nchain;
  // entries of the granules' lists (SimPlace.others); index 0 is unused
  Reader *reader;
  uint32_t *word;
  uint32_t *todo;          // snapshots that a query must still visit
  uint32_t nmessage, maxmessage, nreader, maxreader, free, nword, maxword,
           maxtodo, question, turn;
} SimRelay;

// Makes room for n elements in a growing array. Returns false if memory is
// exhausted.
static bool room(SimCluster *c, void **p, uint32_t *max, uint32_t n,
                 size_t size) {
  if (base_room(p, max, n, size)) return true;
  c->oom = c->stop = true;
  return false;
}
#define ROOM(c, p, max, n) \
  room(c, (void **)(void *)&(p), &(max), n, sizeof *(p))

static SimRelay *relay_of(const SimProg *p) { return p->own[OWN_HB_GRID]; }

static Unit *unit_of(const SimCluster *c) {
  return &relay_of(c->prog)->unit[c->index];
}

static int lanes_of(const SimProg *p) { return p->nall * LANES; }

// ---- snapshots ----

// Returns the last epoch of lane `lane` of warp `warp` that snapshot m (a
// released vector clock) covers.
static uint32_t told(const SimProg *p, const Message *m, int warp, int lane) {
  const uint32_t *r = relay_of(p)->word + m->word;
  if (m->full) return r[warp * LANES + lane];
  uint32_t own = r[p->nall];
  if (own == (uint32_t)(warp * LANES + lane)) return r[p->nall + 1];
  return r[warp];
}

// Reports whether, in vector clock r, all lanes of each warp have the same
// epoch. Ignores thread `own`.
static bool is_level(const SimProg *p, const uint32_t *r, uint32_t own) {
  for (int u = 0; u < p->nall; u++) {
    const uint32_t *w = r + u * LANES;
    uint32_t one = w[own == (uint32_t)(u * LANES)];
    for (int l = 0; l < LANES; l++)
      if (w[l] != one && own != (uint32_t)(u * LANES + l)) return false;
  }
  return true;
}

static Last *find_last(Last *p, uint32_t n, uint64_t key) {
  uint64_t k = key * 0x9e3779b97f4a7c15ull >> 32;
  for (;; k++) {
    Last *at = &p[k & (n - 1)];
    if (!at->message || at->key == key) return at;
  }
}

static uint64_t key_of(uint32_t chain, uint32_t unit) {
  return (uint64_t)chain << 32 | unit;
}

// Records snapshot k as the newest snapshot of its cluster in its chain (the
// snapshots at one address). Returns false if memory is exhausted.
static bool keep_last(SimCluster *c, uint32_t k) {
  SimRelay *r = relay_of(c->prog);
  if (2 * r->nlast >= r->maxlast) {
    uint32_t n = r->maxlast ? r->maxlast * 2 : 64;
    Last *p = base_zeros(n * sizeof *p);
    if (!p) return c->oom = c->stop = true, false;
    for (uint32_t j = 0; j < r->maxlast; j++)
      if (r->last[j].message) *find_last(p, n, r->last[j].key) = r->last[j];
    base_free(r->last);
    r->last = p;
    r->maxlast = n;
  }
  Message *m = &r->message[k];
  uint64_t key = key_of(m->chain, m->unit);
  Last *at = find_last(r->last, r->maxlast, key);
  r->nlast += !at->message;
  m->prior = at->message;
  *at = (Last){key, k};
  return true;
}

// Creates a snapshot of vector clock `row` for a release by lane l. Puts it
// into the chain (the snapshots at one address) before snapshot `next`. Returns
// 0 if memory is exhausted.
static uint32_t new_message(SimWarp *w, int l, const uint32_t *row,
                            uint32_t next) {
  SimCluster *c = w->cluster;
  const SimProg *p = c->prog;
  SimRelay *r = relay_of(p);
  uint32_t own = (uint32_t)(w->id * LANES + l);
  bool full = !is_level(p, row, own);
  uint32_t n = (uint32_t)(full ? lanes_of(p) : p->nall + 2);
  if (!ROOM(c, r->message, r->maxmessage, r->nmessage + 2) ||
      !ROOM(c, r->word, r->maxword, r->nword + n))
    return 0;
  uint32_t *to = r->word + r->nword;
  if (full) memcpy(to, row, n * sizeof *to);
  for (int u = 0; !full && u < p->nall; u++)
    to[u] = row[u * LANES + (own == (uint32_t)(u * LANES))];
  if (!full) {
    to[p->nall] = own;
    to[p->nall + 1] = row[own];
  }
  const Message *older = &r->message[next];
  r->message[++r->nmessage] = (Message){
    .next = next, .chain = next ? older->chain : ++r->nchain,
    .nth = next ? older->nth + 1 : 0,
    .unit = c->index, .nhint = unit_of(c)->nhint,
    .word = r->nword, .full = full};
  r->nword += n;
  return keep_last(c, r->nmessage) ? r->nmessage : 0;
}

// Adds snapshot m to the n snapshots that the current query must still visit,
// unless the query has already visited m. Returns the new number.
static uint32_t ask(SimCluster *c, uint32_t m, uint32_t n) {
  SimRelay *r = relay_of(c->prog);
  if (!m || r->message[m].asked == r->question) return n;
  if (!ROOM(c, r->todo, r->maxtodo, n + 1)) return 0;
  r->message[m].asked = r->question;
  r->todo[n] = m;
  return n + 1;
}

// Tests a single snapshot, so that a query need not walk m's chain (the
// snapshots at one address). Reports whether the newest snapshot of cluster
// `unit` that is not newer than m covers epoch clk of a thread.
static bool chain_tells(const SimProg *p, uint32_t m, uint32_t unit, int warp,
                        int lane, uint32_t clk) {
  const SimRelay *r = relay_of(p);
  const Message *from = &r->message[m];
  uint32_t k = find_last(r->last, r->maxlast,
                         key_of(from->chain, unit))->message;
  while (k && r->message[k].nth > from->nth) k = r->message[k].prior;
  return k && told(p, &r->message[k], warp, lane) >= clk;
}

// Reports whether epoch clk of a thread of cluster `unit` is covered by
// snapshot `message`, or by a snapshot that can be reached from it.
static bool tells(SimCluster *c, uint32_t message, uint32_t unit, int warp,
                  int lane, uint32_t clk) {
  const SimProg *p = c->prog;
  SimRelay *r = relay_of(p);
  if (message && chain_tells(p, message, unit, warp, lane, clk)) return true;
  for (uint32_t n = ask(c, message, 0); n;) {
    Message m = r->message[r->todo[--n]];
    if (m.unit == unit && told(p, &m, warp, lane) >= clk) return true;
    n = ask(c, m.next, n);
    for (uint32_t k = 0; k < m.nhint; k++) {
      const Hint *h = &r->unit[m.unit].hint[k];
      if (told(p, &m, h->warp, h->lane) < h->clk) continue;
      uint32_t more = ask(c, h->message, n);
      if (more > n && chain_tells(p, h->message, unit, warp, lane, clk))
        return true;
      n = more;
    }
  }
  return false;
}

bool hb_grid_knows(SimWarp *w, int l, uint32_t unit, int warp, int lane,
                   uint32_t clk) {
  SimCluster *c = w->cluster;
  const Unit *u = unit_of(c);
  relay_of(c->prog)->question++;
  for (uint32_t k = u->nhint; k-- > 0;) {
    const Hint *h = &u->hint[k];
    if (hb_cluster_before(w, l, h->warp, 1u << h->lane, h->clk) &&
        tells(c, h->message, unit, warp, lane, clk))
      return true;
  }
  return false;
}

static bool knows(SimWarp *w, int l, const Touch *o) {
  for (uint32_t m = o->lanes; m; m &= m - 1)
    if (!hb_grid_knows(w, l, o->unit - 1, o->warp, __builtin_ctz(m), o->clk))
      return false;
  return true;
}

// ---- granules ----

static SimPlace *place_at(SimCluster *c, SimArea *a, size_t g) {
  SimPlace **page = &a->place[g / PAGE];
  if (!*page) {
    *page = base_realloc(NULL, PAGE * sizeof **page);
    if (!*page) {
      c->oom = c->stop = true;
      return NULL;
    }
    memset(*page, 0, PAGE * sizeof **page);
  }
  return &(*page)[g % PAGE];
}

static SimPlace *place_of(SimWarp *w, const SimMem *m, int64_t at) {
  if (!areas_recorded(m)) return NULL;
  return place_at(w->cluster, m->area, areas_granule(m, at));
}

static void drop_others(SimRelay *r, SimPlace *p) {
  if (!p->others) return;
  uint32_t last = p->others;
  while (r->reader[last].next) last = r->reader[last].next;
  r->reader[last].next = r->free;
  r->free = p->others;
  p->others = 0;
}

// Reports whether two accesses are by the same warp and of the same kind. There
// is one kind of read, and one kind of weak write. Two strong writes are of the
// same kind if they have the same effects (draws, puts).
static bool same_kind(const Touch *a, const Touch *b) {
  return a->unit == b->unit && a->warp == b->warp && a->agent == b->agent &&
         a->wrote == b->wrote && (!a->wrote || (a->strong == b->strong &&
         a->draws == b->draws && a->puts == b->puts));
}

// Returns the granule's list entry for accesses like `me` (same_kind), or a new
// entry. If the list is too long, reuses its last entry. Returns NULL if memory
// is exhausted.
static Touch *other_like(SimCluster *c, SimPlace *p, const Touch *me) {
  enum { MANY = 64 };
  SimRelay *r = relay_of(c->prog);
  uint32_t n = 0, last = 0;
  for (uint32_t k = p->others; k; last = k, k = r->reader[k].next, n++)
    if (same_kind(&r->reader[k].by, me)) return &r->reader[k].by;
  if (n >= MANY) {
    r->reader[last].by = (Touch){0};
    return &r->reader[last].by;
  }
  uint32_t k = r->free;
  if (k) {
    r->free = r->reader[k].next;
  } else {
    if (!ROOM(c, r->reader, r->maxreader, r->nreader + 2)) return NULL;
    k = ++r->nreader;
  }
  r->reader[k] = (Reader){.next = p->others};
  p->others = k;
  return &r->reader[k].by;
}

// ---- races ----

enum { READ, WRITE, STRONG };

static void cta_of(const SimProg *p, const Touch *t, int32_t id[3]) {
  uint64_t n = (uint64_t)p->ncta;
  simcluster_place(p, (t->unit - 1) * n + t->warp / (unsigned)p->nwarp, id);
}

static int thread_of(const SimProg *p, const Touch *t) {
  return t->warp % p->nwarp * LANES + __builtin_ctz(t->lanes);
}

static int kind_of(const Touch *t) {
  return (t->wrote ? WRITE : READ) + (t->strong ? STRONG : 0);
}

// Reports whether the report of a race names access a before access b. It names
// reads before writes, and the write of the later block before the write of the
// other block.
static bool comes_first(const Touch *a, int how, const Touch *b, int other) {
  bool write = how & WRITE, its = other & WRITE;
  return write != its ? !write : a->unit > b->unit;
}

// Reports a race. The report names access a first, then access b.
static SimFault *tell(Access *x, int l, const Touch *a, int how, const Touch *b,
                      int other) {
  const SimProg *p = x->w->cluster->prog;
  SimFault *f = simreport_fault(x->w, SIM_BLOCKRACE, l, a->src, b->src,
                                x->m->index, x->piece * 8 / x->m->own);
  if (!f) return NULL;
  f->blocks.mine = how;
  f->blocks.other = other;
  cta_of(p, a, f->r.block);
  cta_of(p, b, f->blocks.cta);
  simreport_thread(p, thread_of(p, a), f->r.thread);
  f->r.other = thread_of(p, b);
  waits_blocks(f, p);
  f->r.counter = p->counter;
  return f;
}

static void race(Access *x, int l, const Touch *me, const Touch *o) {
  int how = kind_of(me), other = kind_of(o);
  if (comes_first(me, how, o, other)) tell(x, l, me, how, o, other);
  else tell(x, l, o, other, me, how);
}


// Reports whether cluster `unit` executed a proxy fence after write o, and
// before lane l started an asynchronous operation such as a TMA copy.
static bool fenced_by(SimWarp *w, int l, const Touch *o, uint32_t unit) {
  SimCluster *c = w->cluster;
  SimRelay *r = relay_of(c->prog);
  const Unit *u = &r->unit[unit];
  for (uint32_t k = u->nproxy; k-- > 0;) {
    const Proxy *f = &u->proxy[k];
    bool before = unit == c->index
                    ? hb_cluster_before(w, l, f->warp, 1u << f->lane, f->clk)
                    : hb_grid_knows(w, l, unit, f->warp, f->lane, f->clk);
    bool own = unit == o->unit - 1 && f->warp == o->warp &&
               f->clk >= o->clk && !(o->lanes & ~f->lanes);
    r->question++;
    if (before && (own || tells(c, f->message, o->unit - 1, o->warp,
                                __builtin_ctz(o->lanes), o->clk)))
      return true;
  }
  return false;
}

static bool fenced(SimWarp *w, int l, const Touch *o) {
  SimCluster *c = w->cluster;
  if (fenced_by(w, l, o, c->index) || fenced_by(w, l, o, o->unit - 1))
    return true;
  for (uint32_t k = 0; k < c->prog->nunit; k++)
    if (k != c->index && k != o->unit - 1 && fenced_by(w, l, o, k))
      return true;
  return false;
}

static void check_proxy(Access *x, int l, const Touch *me, const Touch *o) {
  if (!me->agent || o->agent || o->strong || fenced(x->w, l, o)) return;
  SimFault *f = simreport_fault(x->w, SIM_RACE, l, me->src, o->src,
                                x->m->index, x->piece * 8 / x->m->own);
  if (!f) return;
  f->race.how = x->write ? CLASH_WAW : CLASH_RAW;
  f->race.proxy = true;
  f->race.agent = op_agent((Op)x->i->op);
}

// Reports whether atomic z observed write o, directly or through other atomics
// that observed o.
static bool sees(const SimPlace *p, const Touch *z, const Touch *o) {
  return z->atomic && z->strong && z->turn > o->turn &&
         (p->cut <= o->turn || p->cut > z->turn);
}

// Reports whether an atomic that happens before lane l observed strong write o.
// An atomic of another cluster must be the last write. An atomic of lane l's
// own cluster counts only if lane l writes, because in another schedule it
// might precede the other clusters' writes that lane l reads.
static bool observed(SimWarp *w, int l, const SimPlace *p, const Touch *me,
                     const Touch *o) {
  const SimRelay *r = relay_of(w->cluster->prog);
  if (!o->wrote || !o->strong || me->narrow) return false;
  const Touch *z = &p->write;
  if (sees(p, z, o) && z->unit != me->unit && knows(w, l, z)) return true;
  if (!me->wrote) return false;
  for (uint32_t k = p->others;; k = r->reader[k].next) {
    if (z->unit == me->unit && sees(p, z, o) &&
        hb_cluster_before(w, l, z->warp, z->lanes, z->clk))
      return true;
    if (!k) return false;
    z = &r->reader[k].by;
  }
}

// Reports whether access a draws a number (a ticket) from a counter that access
// b resets. If these accesses are unordered, the counter may return a number
// twice or skip one.
static bool draws(const Touch *a, const Touch *b) {
  return a->strong && b->strong && a->draws && b->puts;
}

// Reports a race if access `me` of lane l conflicts with the earlier access o
// of another cluster. `same` is true if both accesses store the same value.
static void check(Access *x, int l, const SimPlace *p, const Touch *me,
                  const Touch *o, bool same) {
  bool ours = draws(me, o), theirs = draws(o, me);
  if (!o->unit || o->unit == me->unit || !(me->wrote || o->wrote) ||
      (me->strong && o->strong && !ours && !theirs) ||
      (same && o->wrote && !me->strong && !o->strong))
    return;
  bool last = o == &p->write;
  if (knows(x->w, l, o) || (!last && observed(x->w, l, p, me, o))) {
    if (last) check_proxy(x, l, me, o);
  } else if (ours || theirs) {
    const Touch *draw = ours ? me : o, *put = ours ? o : me;
    SimFault *f = tell(x, l, draw, kind_of(draw), put, kind_of(put));
    if (f) f->blocks.draws = true;
  } else {
    race(x, l, me, o);
  }
}

static void read_place(Access *x, int l, SimPlace *p, const Touch *me) {
  SimRelay *r = relay_of(x->w->cluster->prog);
  check(x, l, p, me, &p->write, false);
  for (uint32_t k = me->strong ? 0 : p->others; k; k = r->reader[k].next) {
    Touch o = r->reader[k].by;
    if (o.wrote) check(x, l, p, me, &o, false);
  }
  Touch *t = other_like(x->w->cluster, p, me);
  if (!t || (t->unit && me->strong && !t->strong)) return;
  bool more = t->unit && t->clk == me->clk && t->strong == me->strong;
  uint32_t lanes = more ? t->lanes : 0;
  *t = *me;
  t->lanes |= lanes;
}

static void write_place(Access *x, int l, SimPlace *p, const Touch *me,
                        bool same) {
  SimCluster *c = x->w->cluster;
  SimRelay *r = relay_of(c->prog);
  check(x, l, p, me, &p->write, same);
  for (uint32_t k = p->others; k; k = r->reader[k].next) {
    Touch o = r->reader[k].by;
    check(x, l, p, me, &o, same);
  }
  if (!me->strong) {
    drop_others(r, p);
  } else if (p->write.unit) {
    Touch *t = other_like(c, p, &p->write);
    if (t) *t = p->write;
  }
  if (!me->atomic) p->cut = me->turn;
  p->write = *me;
}

void hb_grid_access(Access *x, uint32_t mask, const uint8_t *data,
                    int stride) {
  SimWarp *w = x->w;
  const SimMem *m = x->m;
  const SimIns *i = x->i;
  int size = 1 << m->area->shift;
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    Touch me = {.unit = w->cluster->index + 1, .clk = w->clk,
                .lanes = 1u << l, .src = i->src, .warp = (uint16_t)w->id,
                .strong = i->sem && i->scope >= SCOPE_GPU,
                .narrow = i->sem && i->scope < SCOPE_GPU,
                .wrote = x->write, .atomic = i->op == OP_ATOMIC,
                .agent = x->agent};
    me.draws = me.atomic && !i->idle && i->imm == AT_ADD;
    me.puts = me.wrote && (!me.atomic || (i->imm == AT_EXCH && i->idle));
    for (int k = 0; k < x->bytes; k += size) {
      SimPlace *p = place_of(w, m, x->at[l] + k);
      if (!p) return;
      x->piece = x->at[l] + k;
      me.turn = ++relay_of(w->cluster->prog)->turn;
      const uint8_t *from = data ? data + l * stride + k : NULL;
      if (x->write)
        write_place(x, l, p, &me, from && memcmp(m->p + x->piece, from,
                                                 (size_t)size) == 0);
      else
        read_place(x, l, p, &me);
    }
  }
}

// ---- release and acquire ----

static void hint(SimWarp *w, int l, uint32_t message) {
  SimCluster *c = w->cluster;
  Unit *u = unit_of(c);
  for (uint32_t k = u->nhint; k-- > 0;)
    if (u->hint[k].message == message && u->hint[k].warp == w->id &&
        u->hint[k].lane == l)
      return;
  if (!ROOM(c, u->hint, u->maxhint, u->nhint + 1)) return;
  u->hint[u->nhint++] = (Hint){message, w->clk, (uint16_t)w->id, (uint16_t)l};
}

static void hint_later(SimWarp *w, int l, uint32_t message) {
  SimCluster *c = w->cluster;
  Unit *u = unit_of(c);
  for (uint32_t k = u->nsoon; k-- > 0;)
    if (u->soon[k].message == message && u->soon[k].warp == w->id &&
        u->soon[k].lane == l)
      return;
  if (!ROOM(c, u->soon, u->maxsoon, u->nsoon + 1)) return;
  u->soon[u->nsoon++] = (Hint){message, 0, (uint16_t)w->id, (uint16_t)l};
}

// Executes a fence for the active lanes: they acquire the releases that their
// relaxed reads observed.
static void fence(SimWarp *w) {
  Unit *u = unit_of(w->cluster);
  uint32_t n = 0;
  for (uint32_t k = 0; k < u->nsoon; k++) {
    Hint h = u->soon[k];
    if (h.warp == w->id && w->active >> h.lane & 1) hint(w, h.lane, h.message);
    else u->soon[n++] = h;
  }
  u->nsoon = n;
}

static void fence_proxy(SimWarp *w) {
  SimCluster *c = w->cluster;
  Unit *u = unit_of(c);
  int l = __builtin_ctz(w->active);
  const uint32_t *row = hb_cluster_view(w, l);
  if (!row || !ROOM(c, u->proxy, u->maxproxy, u->nproxy + 1)) return;
  u->proxy[u->nproxy++] = (Proxy){
    .clk = w->clk++, .lanes = w->active, .warp = (uint16_t)w->id,
    .message = new_message(w, l, row, 0), .lane = (uint16_t)l};
}

void hb_grid_fence(SimWarp *w, FenceKind kind) {
  if (kind == FE_ASYNC || kind == FE_ASYNC_GLOBAL) fence_proxy(w);
  else if (fence_is_order(kind) && kind > FE_CLUSTER) fence(w);
}

void hb_grid_read(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                  int64_t at) {
  SimPlace *p = place_of(w, m, at);
  if (!p || !p->message || i->scope < SCOPE_GPU || w->vain) return;
  if (i->sem == SEM_ACQUIRE || i->sem == SEM_ACQ_REL) hint(w, l, p->message);
  else hint_later(w, l, p->message);
}

void hb_grid_write(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                   int64_t at, bool keep) {
  SimPlace *p = place_of(w, m, at);
  if (!p) return;
  bool wide = i->scope >= SCOPE_GPU &&
              (i->sem >= SEM_RELEASE || hb_of(w)->sent >> l & 1);
  const uint32_t *row = wide ? hb_cluster_released(w, i, l) : NULL;
  uint32_t before = keep ? p->message : 0;
  p->message = row ? new_message(w, l, row, before) : before;
}

// ---- last writer ----

bool hb_grid_writer(const SimProg *p, const SimMem *m, int64_t at,
                    uint32_t *src, int32_t block[3]) {
  if (!relay_of(p) || !areas_recorded(m)) return false;
  size_t g = areas_granule(m, at);
  const SimPlace *page = m->area->place[g / PAGE];
  if (!page || !page[g % PAGE].write.unit) return false;
  const Touch *t = &page[g % PAGE].write;
  *src = t->src;
  cta_of(p, t, block);
  return true;
}

// ---- the launch ----

void hb_grid_start(Ctx *cx, SimProg *p) {
  SimRelay *r = arena_zero(cx, &cx->scratch, sizeof *r);
  p->own[OWN_HB_GRID] = r;
  r->unit = arena_zero(cx, &cx->scratch, base_bytes(p->nunit, sizeof(Unit)));
  for (int k = 0; k < p->narea; k++) {
    SimArea *a = &p->area[k];
    if (!a->written) continue;
    size_t n = (a->bytes >> a->shift) / PAGE + 1;
    a->place = arena_zero(cx, &cx->scratch, n * sizeof *a->place);
  }
}

void hb_grid_free(SimProg *p) {
  SimRelay *r = relay_of(p);
  if (!r) return;
  for (uint64_t k = 0; k < p->nunit; k++) {
    base_free(r->unit[k].hint);
    base_free(r->unit[k].soon);
    base_free(r->unit[k].proxy);
  }
  for (int k = 0; k < p->narea; k++) {
    SimArea *a = &p->area[k];
    for (size_t n = 0; a->place && n <= (a->bytes >> a->shift) / PAGE; n++)
      base_free(a->place[n]);
  }
  base_free(r->message);
  base_free(r->last);
  base_free(r->reader);
  base_free(r->word);
  base_free(r->todo);
}

// SPDX-License-Identifier: MIT
