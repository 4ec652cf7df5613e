// Bulk copies as they are decoded, and their execution (bulk.c).
#ifndef CUTE_SIMBULK_H
#define CUTE_SIMBULK_H

#include "sim/inside.h"

typedef struct SimBulk {
  SimSide shared;          // of this CTA
  SimSide plain;           // without a map: the other side
  SimSide bar;             // of loads: the mbarrier
  const TensorMap *map;    // NULL: a run of bytes
  const SimMem *global;    // the tensor; NULL: the other side is shared, too
  uint32_t mask, rank;     // slots; 0: none
  uint32_t at[TENSORMAP_RANK];  // those of the coordinates
  int modes, bytes;        // of a copy
  unsigned flags;          // BKF_*
} SimBulk;

// TMALOAD .. BULKSEND, lane by lane.
void simbulk_run(SimWarp *w, const SimIns *i);

// ---- mem.c, for these ----
// An agent reads, or writes, n bytes of global memory from byte `at` of m on
// for a lane. data: what it writes; NULL: combined with what is there.
void simmem_bulk_read(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                      int64_t at, int n);
void simmem_bulk(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                 int64_t at, int n, const uint8_t *data);
// Byte of its object that a lane's mbarrier is; -1: it is told what is wrong.
int64_t simmem_byte(SimWarp *w, const SimIns *i, const SimSide *s, int lane);

#endif
