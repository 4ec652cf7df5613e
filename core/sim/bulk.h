// Decoded bulk copies and their execution (bulk.c); tensor maps made by kernels
// (maps.c).
#ifndef CUTE_SIMBULK_H
#define CUTE_SIMBULK_H

#include "sim/inside.h"

typedef struct SimBulk {
  SimSide shared;          // shared memory of this CTA
  SimSide plain;           // copies without a map: the operand in global memory
  SimSide bar;             // loads: the operand that names the mbarrier
  const TensorMap *map;    // NULL: contiguous bytes
  SimSide place;           // address of the map if it is in memory
  const SimMem *global;    // object in global memory; NULL: both operands are
                           // in shared memory
  uint32_t mask, rank;     // slots: mask of CTAs, rank of the destination; 0:
                           // none
  uint32_t at[2 * TENSORMAP_RANK];  // slots of the coordinates and im2col
                                    // offsets
  int modes, bytes;        // modes: number of modes of the box; bytes: size of
                           // a copy
  unsigned flags;          // BKF_*
} SimBulk;

// Executes the bulk copies, from TMALOAD to BULKSEND, lane by lane.
void simbulk_run(SimWarp *w, const SimIns *i);

// ---- maps.c ----
struct SimAsync;
// Operands of the instructions from MAPCOPY to MAPPUBLISH. dst: the map. src:
// the map to publish, or the tensor. map: the source of MAPCOPY. value: the
// slot of MAPSET's value.
typedef struct SimMapOp {
  SimSide dst, src;
  const TensorMap *map;
  uint32_t value;
  bool wide, stride;
  int mode;
} SimMapOp;
// The map that a copy uses. `at` is its address if it is in memory.
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
// Loads the map at operand s for lane l, with the box of t->map and elements of
// `size` bytes. Returns false, and reports a fault, if the map is not valid.
bool simmaps_take(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                  SimMapped *t, int64_t size);
// Checks that the map is unchanged since the copy loaded it. A change is
// reported as a fault, or as a note if the load was drained.
void simmaps_still(struct SimAsync *a, const SimSide *s, const SimMapped *t);

// ---- mem.c: functions for bulk.c and maps.c ----
// Reads, or writes, n bytes of global memory from byte `at` of m on, for an
// agent that a lane started. data: the written bytes; NULL: the agent combines
// its bytes with memory.
void simmem_bulk_read(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                      int64_t at, int n);
void simmem_bulk(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                 int64_t at, int n, const uint8_t *data);
// Returns the byte offset of a lane's mbarrier in its object; -1: a fault was
// reported.
int64_t simmem_byte(SimWarp *w, const SimIns *i, const SimSide *s, int lane);

#endif
// SPDX-License-Identifier: MIT
