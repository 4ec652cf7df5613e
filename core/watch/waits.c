// Explains why a wait for groups (cp.async, wgmma, bulk stores) did not order
// an access. Without this explanation, a fault's message would advise adding a
// wait that the kernel already has. There are four reasons: the wait left the
// group pending, the waiting threads had started no group, the wait was for
// reads only, or a barrier is missing after the wait. Also explains accesses to
// a stage of a ring (ring.h): the stage is probably wrong if the data of
// another stage is complete and waited for, but nothing has read it.
#include "watch/waits.h"

#include "sim/async.h"
#include "sim/mbar.h"
#include "sim/wgmma.h"
#include "watch/warp_roles.h"

static const uint32_t *committed(const SimWarp *w, Agent kind) {
  return kind == AGENT_CPASYNC ? w->copies.committed : w->agents.groups;
}

void waits_note(SimWarp *w, const SimIns *i) {
  Agent kind = agent_awaited((Op)i->op);
  SimWaited *d = &hb_of(w)->waited[kind];
  uint32_t idle = 0, still = 0;
  for (int l = 0; l < LANES; l++) {
    uint32_t n = kind == AGENT_WGMMA ? w->agents.teamwork
                                      : committed(w, kind)[l];
    still |= (uint32_t)(n == d->groups[l]) << l;
    idle |= (uint32_t)!n << l;
    d->groups[l] = n;
  }
  d->still = d->times ? still : 0;
  d->lanes = w->active;
  d->idle = w->active & idle;
  d->clk = w->clk;
  d->times++;
  d->src = i->src;
  d->pending = (uint32_t)i->imm;
  d->read = i->op == OP_BULKWAIT && i->flags & BKF_READ;
}

// Reports whether the last wait of lane k of warp u for groups happens before
// lane l of x->w.
static bool is_behind(const Access *x, int l, const SimWarp *u, Agent kind,
                      int k) {
  const SimWaited *d = &hb_of(u)->waited[kind];
  return d->lanes >> k & 1 &&
         hb_cluster_before(x->w, l, u->id, 1u << k, d->clk);
}

// Reports whether a wait by threads that had started no group happens before
// lane l of x->w.
static bool idly(const Access *x, int l, Agent kind) {
  const SimWarp *u = x->w - x->w->in;
  for (int k = 0; k < x->w->cluster->prog->nwarp; k++, u++) {
    uint32_t idle = hb_of(u)->waited[kind].idle;
    if (idle && is_behind(x, l, u, kind, __builtin_ctz(idle))) return true;
  }
  return false;
}

static bool is_wait(const SimIns *i, const void *ud) {
  const SimWaited *d = ud;
  return op_rows[i->op].imm == IMM_GROUPS && i->src == d->src;
}

// Reports whether u has not yet executed a wait that x->w has executed, but can
// still reach it.
static bool waits_later(const Access *x, const SimWarp *u, Agent kind) {
  const SimWaited *d = &hb_of(x->w)->waited[kind];
  return d->times > hb_of(u)->waited[kind].times &&
         warp_roles_ahead(u, is_wait, d);
}

// Finds the reason why a wait did not cover a group that lane k of warp u
// started. `in` is whether the lane committed the group before the wait.
// `behind` is the number of groups that the lane committed after this group and
// before the wait.
static void judge(SimFault *f, const Access *x, int l, const SimWarp *u,
                  Agent kind, int k, bool in, uint32_t behind) {
  const SimWaited *d = &hb_of(u)->waited[kind];
  if (waits_later(x, u, kind)) {
    f->r.lack = LACK_BARRIER;
  } else if (is_behind(x, l, u, kind, k)) {
    if (!in || behind >= d->pending) return;
    f->r.lack = LACK_PENDING;
    f->r.pending = d->pending;
    f->r.most = behind;
    f->r.idle = d->still >> k & 1;
  } else if (!(d->lanes >> k & 1) && idly(x, l, kind)) {
    f->r.lack = LACK_ISSUER;
  }
}

// Finds the reason why a wait did not cover group number g of lane k of warp u.
static void judge_group(SimFault *f, const Access *x, int l, const SimWarp *u,
                        Agent kind, int k, uint32_t g) {
  uint32_t n = hb_of(u)->waited[kind].groups[k];
  judge(f, x, l, u, kind, k, g < n, n - 1 - g);
}

static void say_mma(SimFault *f, const Access *x, int l, int team,
                    uint32_t epoch) {
  const SimCluster *c = x->w->cluster;
  int per = (c->prog->nwarp + 3) / 4;
  SimWarp *u = &c->warp[team / per * c->prog->nwarp + team % per * 4];
  int actor = actors_first(&c->prog->actors, ACTOR_TEAM) + team;
  for (int k = 0; k < 4; k++) {
    uint32_t behind;
    if (hb_cluster_before(&u[k], 0, actor, 1, epoch)) {
      f->r.lack = LACK_BARRIER;
      return;
    }
    uint32_t groups = hb_of(&u[k])->waited[AGENT_WGMMA].groups[0];
    bool in = simwgmma_closed(&u[k], epoch, groups, &behind);
    judge(f, x, l, &u[k], AGENT_WGMMA, 0, in, behind);
    if (f->r.lack) return;
  }
}

static void say_bulk(SimFault *f, const Access *x, int l, int actor,
                     uint32_t epoch) {
  const SimCluster *c = x->w->cluster;
  for (size_t k = 0; k < c->agents.n; k++) {
    const SimAsync *a = c->agents.p[k];
    if (!a->grouped || a->actor != actor || a->epoch != epoch) continue;
    if (a->fetched) f->r.lack = LACK_BARRIER;
    else if (!a->open)
      judge_group(f, x, l, a->w, AGENT_BULKSTORE, a->lane, a->group);
    return;
  }
  // a wait covered the copy, so a barrier is missing
  f->r.lack = LACK_BARRIER;
}

void waits_reader(SimFault *f, const Access *x, int l, int actor,
                  uint32_t epoch) {
  const SimProg *p = x->w->cluster->prog;
  const SimActors *all = &p->actors;
  if (actors_is(all, ACTOR_TEAM, actor))
    say_mma(f, x, l, actor - actors_first(all, ACTOR_TEAM), epoch);
  else if (actors_is(all, ACTOR_BULK, actor))
    say_bulk(f, x, l, actor, epoch);
}

void waits_flight(SimFault *f, const Access *x, int l, const SimWarp *u,
                  uint32_t g) {
  const SimCluster *c = x->w->cluster;
  uint32_t group;
  int lane;
  if (f->access.agent == AGENT_CPASYNC) {
    if (simmem_group(u, shadow_byte(u->cluster, g), &lane, &group))
      judge_group(f, x, l, u, AGENT_CPASYNC, lane, group);
    return;
  }
  if (f->access.agent != AGENT_BULKLOAD) return;
  for (size_t k = 0; k < c->agents.n; k++) {
    const SimAsync *a = c->agents.p[k];
    if (!a->grouped || a->w != u || a->i->src != f->r.src2) continue;
    if (a->fetched && hb_of(u)->waited[AGENT_BULKSTORE].read)
      f->r.lack = LACK_READ;
    else if (!a->open)
      judge_group(f, x, l, u, AGENT_BULKSTORE, a->lane, a->group);
    return;
  }
}

bool waits_ahead(const Access *x, int l, const SimWarp *u, uint32_t g) {
  uint32_t group;
  int lane;
  return simmem_group(u, shadow_byte(u->cluster, g), &lane, &group) &&
         x->w->copies.committed[l] &&
         group >= x->w->copies.committed[l];
}

// Reports whether an instruction is a fence, or an access with a memory order,
// whose scope is too narrow to order CTAs. src, src2: the lines of the accesses
// that race.
static bool is_narrow(const SimIns *i, uint32_t src, uint32_t src2) {
  if (i->op == OP_FENCE) return i->imm == FE_CTA || i->imm == FE_CLUSTER;
  return i->sem && i->scope < SCOPE_GPU && (i->src == src || i->src == src2);
}

void waits_blocks(SimFault *f, const SimProg *p) {
  bool stores = false, reads = false;
  for (uint32_t k = 0; k < p->nins; k++)
    if (is_narrow(&p->ins[k], f->r.src, f->r.src2)) {
      f->r.lack = LACK_SCOPE;
      return;
    }
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    stores |= (i->op == OP_BULKSTORE || i->op == OP_TMASTORE) &&
              (i->src == f->r.src || i->src == f->r.src2);
    if (i->op != OP_BULKWAIT) continue;
    if (!(i->flags & BKF_READ)) return;
    reads = true;
  }
  if (stores && reads) f->r.lack = LACK_READ;
}

// ---- other stages of a ring ----

static bool copies(const SimProg *p, uint32_t src, bool grouped) {
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    if (i->src != src) continue;
    if (i->op == OP_CPASYNC) return true;
    if (!grouped && (i->op == OP_TMALOAD || i->op == OP_BULKLOAD)) return true;
  }
  return false;
}

// Reports whether the copy that wrote granule q (a unit of shadow memory)
// happens before lane l of x, and nothing has read q yet.
static bool is_ready(const Access *x, int l, const SimGran *q) {
  int busy = GF_PENDING | GF_FAR;
  return q->flags & GF_DEFINED && !(q->flags & busy) && !q->readers &&
         hb_cluster_before(x->w, l, q->warp, q->lanes, q->clk) &&
         copies(x->w->cluster->prog, q->src, false);
}

// If one warp has pending writes to both granules a and b, and the write to b
// is by a cp.async, returns the warp. Otherwise returns NULL.
static const SimWarp *filler_of(const SimCluster *c, uint32_t a, uint32_t b) {
  const SimGran *p = &shadow_of(c)->gran[a], *q = &shadow_of(c)->gran[b];
  bool both = p->flags & q->flags & GF_PENDING && p->warp == q->warp &&
              p->warp < c->prog->nall && copies(c->prog, q->src, true);
  return both ? &c->warp[p->warp] : NULL;
}

// Reports whether the cp.asyncs of warp u that fill granules a and b are in one
// group.
static bool share_group(const SimWarp *u, uint32_t a, uint32_t b) {
  int lane[2];
  uint32_t group[2];
  return simmem_group(u, shadow_byte(u->cluster, a), &lane[0], &group[0]) &&
         simmem_group(u, shadow_byte(u->cluster, b), &lane[1], &group[1]) &&
         lane[0] == lane[1] && group[0] == group[1];
}

// Reports whether a cp.async fills granule q, and its threads may also execute
// line `src`, because they have the same warp role.
static bool is_filled(const SimProg *p, uint32_t src, const SimGran *q) {
  return q->flags & (GF_DEFINED | GF_PENDING) && copies(p, q->src, true) &&
         !warp_roles_apart(p, src, q->src);
}

// Reports whether warp u arrived at b in b's last complete phase, before epoch
// clk of u.
static bool arrived(const SimMbar *b, const SimWarp *u, uint32_t clk) {
  uint32_t at = b->came[1][u->id];
  return b->phase > b->born && at && at < clk;
}

int waits_ring(const SimCluster *c, const SimMbar *b) {
  int64_t size = c->prog->smem_bytes;
  int n = 0;
  for (int k = 0; k < c->mbars.n; k++)
    n += c->mbars.p[k].mem == b->mem && c->mbars.p[k].at / size == b->at / size;
  return n;
}

void waits_stray(SimFault *f, const Access *x, uint32_t g, const SimWarp *u,
                 uint32_t clk) {
  const SimCluster *c = x->w->cluster;
  const SimMem *m = x->m;
  const SimMbar *b = &c->mbars.p[x->w->mbar];
  if (!m->stages || m->rank || waits_ring(c, b) != m->stages) return;
  int64_t k = (shadow_byte(c, g) - x->w->home - m->base) / m->stage;
  if (b->element != k) {
    f->r.elsewhere = f->r.offset + (b->element - k) * m->stage * 8 / m->own;
    f->r.strays = x->write ? STRAY_WRITE : STRAY_READ;
  } else if (u && arrived(b, u, clk)) {
    f->r.strays = STRAY_RELEASED;
  }
}

void waits_look(SimFault *f, const Access *x, int l, uint32_t g) {
  SimCluster *c = x->w->cluster;
  const SimMem *m = x->m;
  if (!m->stages || m->rank) return;
  int64_t first = x->w->home + m->base, at = shadow_byte(c, g) - first;
  for (int k = 0; k < m->stages; k++) {
    int64_t to = at % m->stage + k * m->stage;
    if (to == at || to >= m->bytes) continue;
    uint32_t other = shadow_shared(c, (uint32_t)(first + to));
    const SimGran *q = &shadow_of(c)->gran[other];
    bool ready = is_ready(x, l, q);
    // A warp that also fills granule `other` and whose copy to granule g is
    // still pending after its wait; else NULL
    const SimWarp *u =
      f->r.lack == LACK_PENDING ? filler_of(c, g, other) : NULL;
    bool same = u && share_group(u, g, other);
    bool open = u && simmem_open(u, (uint32_t)(first + to));
    bool filled = f->r.kind == SIM_UNINIT && is_filled(c->prog, f->r.src, q);
    if (!ready && (f->r.elsewhere >= 0 || !(same || open || filled))) continue;
    f->r.elsewhere = f->r.offset + (to - at) * 8 / m->own;
    f->r.ready = ready;
    f->r.same = same;
    f->r.open = open;
    if (ready) return;
  }
}
// SPDX-License-Identifier: MIT
