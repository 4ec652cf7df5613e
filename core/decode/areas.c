// Areas: the host memory of the arguments of a launch. Accesses to an area are
// recorded in granules, which are as wide as the kernel's narrowest access to
// the area.
#include "decode/areas.h"
#include "decode/raw_pointer.h"

enum { ALIGN = 256 };

static bool meets(const SimArea *a, const SimArea *b) {
  return a->p < b->p + b->bytes && b->p < a->p + a->bytes;
}

static void unite(SimArea *a, const SimArea *b) {
  uint8_t *end = a->p + a->bytes, *e = b->p + b->bytes;
  if (e > end) end = e;
  if (b->p < a->p) a->p = b->p;
  a->bytes = (size_t)(end - a->p);
}

void areas_find(Ctx *cx, SimProg *p) {
  size_t n = raw_pointer_pieces(p);
  p->area = arena_zero(cx, &cx->scratch, (n + 1) * sizeof *p->area);
  for (size_t k = 0; k < n; k++) {
    const LaunchArg *a = raw_pointer_piece(p, k);
    if (!a) continue;
    SimArea new = {.p = a->p, .bytes = a->bytes, .shift = 5};
    for (int j = p->narea; j-- > 0;)
      if (meets(&new, &p->area[j])) {
        unite(&new, &p->area[j]);
        p->area[j] = p->area[--p->narea];
        j = p->narea;
      }
    p->area[p->narea++] = new;
  }
  uint64_t end = ALIGN;  // No object has address 0.
  for (int k = 0; k < p->narea; k++) {
    SimArea *a = &p->area[k];
    a->start = end + (uintptr_t)a->p % ALIGN;
    end = (a->start + a->bytes + ALIGN - 1) / ALIGN * ALIGN;
  }
}

uint64_t areas_start_of(const SimMem *m) {
  if (!m->area) return (uintptr_t)m->p;
  return m->area->start + (uint64_t)(m->p - m->area->p);
}

SimArea *areas_area(const SimProg *p, int32_t arg) {
  return areas_area_of(p, &p->launch->arg[arg]);
}

SimArea *areas_area_of(const SimProg *p, const LaunchArg *a) {
  SimArea one = {.p = a->p, .bytes = a->bytes};
  for (int k = 0; k < p->narea; k++)
    if (meets(&one, &p->area[k])) return &p->area[k];
  return NULL;
}

void areas_note(const SimMem *m, int bytes, bool write) {
  SimArea *a = m->area;
  if (!a) return;
  while (bytes >> a->shift == 0 || (m->p - a->p) % ((ptrdiff_t)1 << a->shift))
    a->shift--;
  a->written |= write;
}
// SPDX-License-Identifier: MIT
