// Decoded bulk copies and their execution (bulk.c); tensor maps made by kernels
// (maps.c).
#ifndef CUTE_SIMBULK_H
#define CUTE_SIMBULK_H

#include "sim/inside.h"

typedef struct SimBulk {
  SimSide shared;          // of this CTA
  SimSide plain;           // without a map: the global side
  SimSide bar;             // loads: the mbarrier
  const TensorMap *map;    // NULL: contiguous bytes
  SimSide place;           // where such a map is in memory, if it is
  const SimMem *global;    // the tensor; NULL: both sides are shared
  uint32_t mask, rank;     // slots; 0: none
  uint32_t at[2 * TENSORMAP_RANK];  // of the coordinates and im2col offsets
  int modes, bytes;        // modes of the box; bytes of a copy
  unsigned flags;          // BKF_*
} SimBulk;

// Executes TMALOAD to BULKSEND, lane by lane.
void simbulk_run(SimWarp *w, const SimIns *i);

// ---- maps.c ----
struct SimAsync;
// MAPCOPY to MAPPUBLISH. dst: the map; src: the map to publish, or the tensor;
// map: source of MAPCOPY; value: MAPSET, slot of the value.
typedef struct SimMapOp {
  SimSide dst, src;
  const TensorMap *map;
  uint32_t value;
  bool wide, stride;
  int mode;
} SimMapOp;
// The map of a copy; `at` is its address if it is in memory.
typedef struct SimMapped {
  TensorMap map;
  const SimMem *tensor;    // the tensor, which starts at byte `first`
  int64_t first;
  const uint8_t *at;
  uint64_t words[TENSORMAP_WORDS];
} SimMapped;
void simmaps_run(SimWarp *w, const SimIns *i);
void simmaps_release(SimWarp *w);      // fence.proxy.tensormap
// Records that the lanes of mask wrote to memory that holds tensor maps.
void simmaps_wrote(const struct Access *x, uint32_t mask);
void simmaps_reset(SimCluster *c);
void simmaps_free(struct SimMaps *t);
// Loads the map at s for lane l, with boxes as in t->map and elements of `size`
// bytes; false: it is not valid, which is reported.
bool simmaps_take(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                  SimMapped *t, int64_t size);
// Checks that the map is unchanged since the copy took it. A change is
// reported: as a note if the load was drained.
void simmaps_still(struct SimAsync *a, const SimSide *s, const SimMapped *t);

// ---- mem.c, for these ----
// An agent reads, or writes, n bytes of global memory from byte `at` of m on
// for a lane. data: the written bytes; NULL: they are combined with memory.
void simmem_bulk_read(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                      int64_t at, int n);
void simmem_bulk(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                 int64_t at, int n, const uint8_t *data);
// Returns the byte of a lane's mbarrier in its object; -1: a fault was
// reported.
int64_t simmem_byte(SimWarp *w, const SimIns *i, const SimSide *s, int lane);

#endif
// SPDX-License-Identifier: MIT
