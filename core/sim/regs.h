// Values and registers of a warp, for exec.c, matrix.c and undefined.c.
#ifndef CUTE_SIMREGS_H
#define CUTE_SIMREGS_H

#include <string.h>

#include "sim/machine.h"

struct SimTaint {  // why a value is undefined, and in which lanes
  // `mask` is the mask of the lanes in which the value is undefined. `src` is
  // the line that read the undefined register.
  uint32_t mask, src;
  int32_t mem;
  uint32_t elem;
  uint64_t bits;           // bits of the value that are undefined in some lane
};

// ---- values: 32 lanes of 4 or 8 bytes in a slot ----

static inline uint32_t *u32_at(SimWarp *w, uint32_t slot) {
  return (uint32_t *)(void *)(w->v + slot);
}

static inline uint64_t *u64_at(SimWarp *w, uint32_t slot) {
  return (uint64_t *)(void *)(w->v + slot);
}

static inline uint64_t lane_bits(SimWarp *w, uint32_t slot, bool wide, int l) {
  return wide ? u64_at(w, slot)[l] : u32_at(w, slot)[l];
}

static inline void set_lane(SimWarp *w, uint32_t slot, bool wide, int l,
                            uint64_t u) {
  if (wide) u64_at(w, slot)[l] = u;
  else u32_at(w, slot)[l] = (uint32_t)u;
}

// Returns lane l's value of a signed index (i32, or i64 if wide) in a slot.
static inline int64_t index_at(SimWarp *w, uint32_t slot, bool wide, int l) {
  return wide ? (int64_t)u64_at(w, slot)[l] : (int32_t)u32_at(w, slot)[l];
}

// ---- registers ----

static inline uint32_t *rmem_def(SimWarp *w, const SimMem *m) {
  return u32_at(w, m->def);
}

static inline char *rmem_at(SimWarp *w, const SimMem *m, int64_t unit) {
  return w->v + m->base + unit * LANES * m->size;
}

static inline uint64_t rmem_get(const char *p, int size, int l) {
  uint64_t u = 0;
  switch (size) {
    case 1: return ((const uint8_t *)p)[l];
    case 2: return ((const uint16_t *)(const void *)p)[l];
    case 4: return ((const uint32_t *)(const void *)p)[l];
    default: memcpy(&u, p + l * size, 8); return u;
  }
}

static inline void rmem_put(char *p, int size, int l, uint64_t u) {
  switch (size) {
    case 1: ((uint8_t *)p)[l] = (uint8_t)u; break;
    case 2: ((uint16_t *)(void *)p)[l] = (uint16_t)u; break;
    case 4: ((uint32_t *)(void *)p)[l] = (uint32_t)u; break;
    default: memcpy(p + l * size, &u, 8); break;
  }
}

static inline uint64_t unit_mask(const SimMem *m) {
  return m->unit < 64 ? ((uint64_t)1 << m->unit) - 1 : UINT64_MAX;
}

// ---- intrin.c ----
void simintrin_run(SimWarp *w, const SimIns *i);  // executes an INTRIN or ASK

#endif
// SPDX-License-Identifier: MIT
