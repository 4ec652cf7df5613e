// Checks accesses to shared memory of other CTAs of the cluster: reports CTAs
// that may have exited before such an access.
#include "sim/mbar.h"
#include "watch/hb_cluster.h"
#include "watch/peer.h"

#include <string.h>

// The last access of a warp to shared memory of another CTA: its epoch (clk),
// lanes, and line (src).
typedef struct SimReach { uint32_t clk, lanes, src; } SimReach;

// Returns a table with an entry for each CTA and each warp: the warp's last
// access to the CTA's shared memory.
static SimReach *reaches_of(const SimCluster *c) { return c->own[OWN_PEER]; }

static size_t bytes_of(const SimCluster *c) {
  const SimProg *p = c->prog;
  return (size_t)p->ncta * (size_t)p->nall * sizeof(SimReach);
}

bool peer_init(SimCluster *c) {
  c->own[OWN_PEER] = base_realloc(NULL, bytes_of(c));
  return c->own[OWN_PEER];
}

void peer_free(SimCluster *c) { base_free(reaches_of(c)); }

void peer_reset(SimCluster *c) { memset(reaches_of(c), 0, bytes_of(c)); }

static bool is_gone(const SimCluster *c, int rank) {
  const SimWarp *w = &c->warp[rank * c->prog->nwarp];
  for (int k = 0; k < c->prog->nwarp; k++)
    if (w[k].state != SW_DONE) return false;
  return true;
}

// Reports that a CTA may have exited before an access to its memory. `landed`
// is NULL if a thread made the access. Otherwise a copy or a commit made it,
// and `landed` is the mbarrier at which it completes, and at which no thread
// waits.
static void tell_gone(SimWarp *w, uint32_t src, int lane, int rank,
                      const SimMbar *landed) {
  SimFault *f = simreport_fault(w, SIM_EXIT, lane, src, 0, -1, 0);
  if (!f) return;
  memcpy(f->gone.cta, w->cluster->cta[rank].id, sizeof f->gone.cta);
  f->gone.landed = landed;
  f->gone.commit = landed && landed->land->op == OP_TCCOMMIT;
  if (landed) simmbar_rounds(w->cluster, landed, &f->r);
}

void peer_reach(SimWarp *w, const SimIns *i, int l, int rank, bool keep) {
  SimCluster *c = w->cluster;
  if (is_gone(c, rank)) tell_gone(w, i->src, l, rank, NULL);
  if (!keep) return;
  SimReach *r = &reaches_of(c)[rank * c->prog->nall + w->id];
  if (r->clk != w->clk) r->lanes = 0;
  r->clk = w->clk;
  r->lanes |= 1u << l;
  r->src = i->src;
}

// Reports whether the accesses by `lanes` of warp u in epoch clk happen before
// the current instruction of some thread of CTA `rank`.
static bool knows(SimCluster *c, int rank, int u, uint32_t lanes,
                  uint32_t clk) {
  SimWarp *w = &c->warp[rank * c->prog->nwarp];
  for (int k = 0; k < c->prog->nwarp; k++, w++)
    if (hb_cluster_some(w, u, lanes, clk)) return true;
  return false;
}

void peer_exited(SimCluster *c) {
  const SimProg *p = c->prog;
  for (int k = 0; k < p->ncta * p->nall && p->ncta > 1; k++) {
    const SimReach *r = &reaches_of(c)[k];
    SimWarp *w = &c->warp[k % p->nall];
    int rank = k / p->nall;
    if (r->clk && !knows(c, rank, w->id, r->lanes, r->clk))
      tell_gone(w, r->src, __builtin_ctz(r->lanes), rank, NULL);
  }
  for (int k = 0; k < c->mbars.n; k++) {
    const SimMbar *b = &c->mbars.p[k];
    int rank = (int)(b->at / p->smem_bytes);
    if (!b->landed || knows(c, rank, simmbar_actor(c, b), 1, b->landed))
      continue;
    if (b->moved || !knows(c, rank, b->lander, 1u << b->lane, b->left))
      tell_gone(&c->warp[b->lander], b->land->src, b->lane, rank,
                b->moved ? b : NULL);
  }
}
// SPDX-License-Identifier: MIT
