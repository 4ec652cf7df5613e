// Bulk copies as they are decoded, and their execution (bulk.c); tensor maps
// that kernels make (maps.c).
#ifndef CUTE_SIMBULK_H
#define CUTE_SIMBULK_H

#include "sim/inside.h"

typedef struct SimBulk {
  SimSide shared;          // of this CTA
  SimSide plain;           // without a map: the other side
  SimSide bar;             // of loads: the mbarrier
  const TensorMap *map;    // NULL: a run of bytes
  SimSide place;           // where a map like it stands in memory, if any
  const SimMem *global;    // the tensor; NULL: the other side is shared, too
  uint32_t mask, rank;     // slots; 0: none
  uint32_t at[2 * TENSORMAP_RANK];  // of the coordinates, im2col's offsets
  int modes, bytes;        // of a copy
  unsigned flags;          // BKF_*
} SimBulk;

// TMALOAD .. BULKSEND, lane by lane.
void simbulk_run(SimWarp *w, const SimIns *i);

// ---- maps.c ----
struct SimAsync;
// MAPCOPY .. MAPPUBLISH: dst; what is published, or the tensor (src); of
// MAPCOPY the map; MAPSET: the slot of its value.
typedef struct SimMapOp {
  SimSide dst, src;
  const TensorMap *map;
  uint32_t value;
  bool wide, stride;
  int mode;
} SimMapOp;
// The map of a copy, which may stand in memory at `at`.
typedef struct SimMapped {
  TensorMap map;
  const SimMem *tensor;    // where it tells of, from byte `first` on
  int64_t first;
  const uint8_t *at;
  uint64_t words[TENSORMAP_WORDS];
} SimMapped;
void simmaps_run(SimWarp *w, const SimIns *i);
void simmaps_release(SimWarp *w);      // fence.proxy.tensormap
// The lanes of mask wrote to memory that copies take maps from.
void simmaps_wrote(const struct Access *x, uint32_t mask);
void simmaps_reset(SimCluster *c);
void simmaps_free(struct SimMaps *t);
// Takes the map that stands at s for lane l, of boxes as t->map has them, of
// elements of so many bytes; false: there is none, which is told.
bool simmaps_take(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                  SimMapped *t, int64_t size);
// Is it still there as it was? Else that is told: a note, of a load that was
// drained.
void simmaps_still(struct SimAsync *a, const SimSide *s, const SimMapped *t);

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
