// Executes instructions with raw pointers. The decoder makes one copy of such
// an instruction for each memory object. Each lane executes the copy for the
// object that contains the lane's address.
#include "sim/addressed.h"

static int64_t base_of(const SimWarp *w, const SimAddressed *m, int l) {
  return ((const int64_t *)(const void *)(w->v + m->address))[l];
}

static int64_t address_of(const SimWarp *w, const SimAddressed *m, int l) {
  const void *p = w->v + m->off;
  int64_t off = m->wide ? ((const int64_t *)p)[l] : ((const int32_t *)p)[l];
  return (int64_t)((uint64_t)base_of(w, m, l) +
                   (uint64_t)off * (uint64_t)(m->bits / 8));
}

// Reports whether lane l accesses memory: it has no predicate, or a true one.
static bool acts(const SimWarp *w, const SimAddressed *m, int l) {
  return !m->pred || ((const uint32_t *)(const void *)(w->v + m->pred))[l];
}

// Reports whether an address is in one of the memory objects.
static bool is_known(const SimAddressed *m, int64_t address) {
  for (int k = 0; k < m->n; k++)
    if (raw_pointer_in(m->piece[k], (uint64_t)address)) return true;
  return false;
}

// Reports whether an address that was computed from `base` may be in object k.
// This is the case if `base` is in object k, or in no object at all.
static bool leads_to(const SimAddressed *m, int k, int64_t base) {
  return raw_pointer_in(m->piece[k], (uint64_t)base) || !is_known(m, base);
}

uint32_t addressed_lanes(SimWarp *w, const SimAddressed *m, int k,
                         uint32_t left) {
  int64_t *at = (int64_t *)(void *)(w->v + m->at);
  uint32_t in = 0;
  for (uint32_t rest = left; rest; rest &= rest - 1) {
    int l = __builtin_ctz(rest);
    // The last copy of the instruction (number n) is for lanes with a false
    // predicate.
    if (k == m->n) {
      at[l] = 0;
      in |= (uint32_t)!acts(w, m, l) << l;
      continue;
    }
    uint64_t first = (uintptr_t)m->piece[k]->p;
    // unsigned, so that an address below `first` gives a huge number
    uint64_t d = (uint64_t)address_of(w, m, l) - first;
    uint64_t size = (uint64_t)m->bits / 8;
    if (d >= m->piece[k]->bytes || d % size ||
        !acts(w, m, l) || base_of(w, m, l) % m->align ||
        !leads_to(m, k, base_of(w, m, l)))
      continue;
    at[l] = (int64_t)(d / size);
    in |= 1u << l;
  }
  return in;
}

const SimIns *addressed_one(SimWarp *w, const SimIns *i) {
  if (i->op != OP_PTR) return i;
  const SimAddressed *m = i->x;
  for (int k = 0; k < m->n; k++)
    if (addressed_lanes(w, m, k, w->active) == w->active) return &m->ins[k];
  return i;
}

const SimIns *addressed_next(SimWarp *w) {
  return addressed_one(w, &w->cluster->prog->ins[w->pc]);
}

void addressed_wild(SimWarp *w, const SimIns *i, uint32_t lanes) {
  const SimAddressed *m = i->x;
  for (; lanes; lanes &= lanes - 1) {
    int l = __builtin_ctz(lanes);
    int64_t at = address_of(w, m, l), base = base_of(w, m, l);
    bool odd = base % m->align != 0;
    SimFault *f = simreport_fault(w, odd ? SIM_ALIGN : SIM_OOB, l, i->src, 0,
                                  m->mem->index, odd ? base : at);
    if (!f) continue;
    f->access.write = m->write;
    f->access.wild = true;
    f->access.which = is_known(m, at) ? base : 0;
    f->access.size = m->align;
  }
}
// SPDX-License-Identifier: MIT
