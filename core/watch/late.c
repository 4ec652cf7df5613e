// Explains why a wait at an mbarrier did not order an access after the bytes of
// a copy that the mbarrier counts.
#include "watch/late.h"

// Reports whether w's last successful wait was at another mbarrier of b's ring.
static bool at_sibling(const SimWarp *w, const SimMbar *b) {
  const SimCluster *c = w->cluster;
  const SimMbar *m = w->mbar < 0 ? b : &c->mbars.p[w->mbar];
  return m != b && simmbar_ring(c, m, b);
}

// Returns the number of bytes that are in flight to mbarrier b by operations
// that started in phase `phase`.
static int64_t flying_to(const SimCluster *c, const SimMbar *b,
                         uint32_t phase) {
  int64_t n = 0;
  for (size_t k = 0; k < c->agents.n; k++)
    if (c->agents.p[k]->mbar == b && c->agents.p[k]->phase == phase)
      n += c->agents.p[k]->bytes;
  return n;
}

// Returns the warp whose waits at b ordered w's accesses. This is w if w waited
// at b, otherwise the warp of its block that waited most often at b.
static const SimWarp *waiter_of(const SimWarp *w, const SimMbar *b) {
  const SimCluster *c = w->cluster;
  const SimWarp *u = w - w->in, *best = w;
  if (*simmbar_waits(c, w->id, b)) return w;
  for (int k = 0; k < c->prog->nwarp; k++, u++)
    if (*simmbar_waits(c, u->id, b) > *simmbar_waits(c, best->id, b)) best = u;
  return best;
}

static SimLack lack_of(const SimWarp *w, int l, const SimMbar *b,
                       uint32_t phase, bool landed) {
  const SimCluster *c = w->cluster;
  uint32_t own = *simmbar_waits(c, w->id, b);
  uint32_t n = *simmbar_waits(c, waiter_of(w, b)->id, b);
  if (n && !landed && (b->phase > phase ? n > phase
                       : b->bytes < flying_to(c, b, phase)))
    return LACK_BYTES;
  if (n > phase && l >= 0 && own && b->passed[w->id].phase > phase &&
      !(b->passed[w->id].lanes >> l & 1))
    return LACK_LANES;
  if (n > phase && (own || !landed))
    return simmbar_skipped(w, b, true) ? LACK_STAY : LACK_PARITY;
  if (n && n == phase) return LACK_TURN;
  return l >= 0 && at_sibling(w, b) ? LACK_STAGE : LACK_WAIT;
}

void late_explain(SimFault *f, const SimWarp *w, int l, const SimMbar *b,
                  uint32_t phase, bool landed) {
  const SimCluster *c = w->cluster;
  SimLack lack = lack_of(w, l, b, phase, landed);
  bool passed = lack == LACK_PARITY || lack == LACK_STAY || lack == LACK_LANES;
  f->r.lack = lack;
  f->r.waited = passed ? b->use[waiter_of(w, b)->id].waited : 0;
  if (lack == LACK_STAY) f->late.other = simmbar_skipped(w, b, true)->element;
  if (lack == LACK_STAGE) {
    f->late.other = c->mbars.p[w->mbar].element;
    f->r.waited = c->mbars.p[w->mbar].use[w->id].waited;
  }
  f->late.mem = b->mem;
  f->late.element = b->element;
  f->late.phase = phase;
  f->late.open = b->phase == phase;
  f->late.came = f->late.open ? b->bytes + b->sum : b->had;
  f->late.all = flying_to(c, b, phase) + (f->late.open ? b->sum : b->had);
}
// SPDX-License-Identifier: MIT
