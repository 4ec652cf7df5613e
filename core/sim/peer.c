// Accesses to shared memory of other CTAs of the cluster.
#include "sim/mbar.h"
#include "sim/peer.h"

#include <string.h>

static bool is_gone(const SimCluster *c, int rank) {
  const SimWarp *w = &c->warp[rank * c->prog->nwarp];
  for (int k = 0; k < c->prog->nwarp; k++)
    if (w[k].state != SW_DONE) return false;
  return true;
}

// A CTA is known to run if w synchronized with a thread of the CTA, directly or
// through other threads. It is also known to run if w acquired what such a
// thread released.
bool simpeer_runs(SimWarp *w, int l, int rank) {
  const SimProg *p = w->cluster->prog;
  int n = p->nwarp, first = rank * n, turn = simmbar_turn(p);
  if (w->started >> rank & 1) return true;
  for (int u = first; u < first + n; u++) {
    if (w->vc[turn + u] || w->vc[u]) {
      w->started |= 1u << rank;
      return true;
    }
    if (w->cluster->hooks->before(w, l, turn + u, 1, 1)) return true;
    for (int k = 0; k < LANES; k++)
      if (w->cluster->hooks->before(w, l, u, 1u << k, 1)) return true;
  }
  return false;
}

void simpeer_reach(SimWarp *w, const SimIns *i, int l, int rank,
                      bool keep) {
  SimCluster *c = w->cluster;
  if (is_gone(c, rank)) {
    SimFault *f = simreport_fault(w, SIM_EXIT, l, i->src, 0, -1, 0);
    if (f) memcpy(f->gone.cta, c->cta[rank].id, sizeof f->gone.cta);
  }
  if (!keep) return;
  SimReach *r = &c->reach[rank * c->prog->nall + w->id];
  if (r->clk != w->clk) r->lanes = 0;
  r->clk = w->clk;
  r->lanes |= 1u << l;
  r->src = i->src;
}
// SPDX-License-Identifier: MIT
