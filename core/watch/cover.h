// Parts of arguments that a launch never reads or stores (cover.c).
#ifndef CUTE_WATCH_COVER_H
#define CUTE_WATCH_COVER_H

#include "decode/areas.h"
#include "sim/machine.h"

// Starts recording which parts of the arguments' memory the launch reads and
// stores. The unit of recorded memory is a granule (decode/areas.h).
void cover_start(Ctx *cx, SimProg *p);
// Writes to `gap` the parts of arguments that the launch never read or never
// stored and that suggest a mistake, then the doubtful ones. Returns their
// number.
int cover_find(Ctx *cx, SimProg *p, SimGap gap[SIM_GAPS]);
// Reports whether the launch accessed all elements of argument k. Returns false
// if the kernel both reads and writes the argument, because such accesses are
// not recorded.
bool cover_complete(const SimProg *p, int32_t k);

static inline void cover_set(uint64_t *word, uint64_t bits) {
  if (bits & ~__atomic_load_n(word, __ATOMIC_RELAXED))
    __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

// Records an access to `bytes` bytes of object m, from byte `at` on. `map` has
// one bit for each granule (unit of recorded memory); sets the bits of the
// accessed granules.
static inline void cover_run(uint64_t *map, const SimMem *m, int64_t at,
                             int64_t bytes) {
  if (bytes < 1) return;
  const SimArea *a = m->area;
  size_t g = (size_t)(m->p - a->p + at) >> a->shift;
  size_t last = (size_t)(m->p - a->p + at + bytes - 1) >> a->shift;
  for (; g / 64 < last / 64; g = (g / 64 + 1) * 64)
    cover_set(&map[g / 64], ~(uint64_t)0 << (g & 63));
  uint64_t upto = ~(uint64_t)0 >> (63 - (last & 63));
  cover_set(&map[last / 64], upto & ~(uint64_t)0 << (g & 63));
}

// Records that the lanes of mask access `bytes` bytes each, from byte at[lane]
// on. `map` is m->area->read or m->area->stored.
static inline void cover_lanes(uint64_t *map, const SimMem *m, uint32_t mask,
                               const int64_t *at, int bytes) {
  const SimArea *a = m->area;
  if (bytes >> a->shift > 1) {
    for (; mask; mask &= mask - 1)
      cover_run(map, m, at[__builtin_ctz(mask)], bytes);
    return;
  }
  int64_t base = m->p - a->p;
  size_t word = SIZE_MAX;
  uint64_t bits = 0;
  for (; mask; mask &= mask - 1) {
    size_t g = (size_t)(base + at[__builtin_ctz(mask)]) >> a->shift;
    if (g / 64 != word) {
      if (bits) cover_set(&map[word], bits);
      word = g / 64;
      bits = 0;
    }
    bits |= (uint64_t)1 << (g & 63);
  }
  if (bits) cover_set(&map[word], bits);
}

#endif
// SPDX-License-Identifier: MIT
