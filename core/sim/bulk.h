// Decoded bulk copies and their execution (bulk.c), and tensor maps that
// kernels make (maps.c).
#ifndef CUTE_SIMBULK_H
#define CUTE_SIMBULK_H

#include "sim/machine.h"

typedef struct SimBulk {
  SimSide shared;          // operand in shared memory of this CTA
  // the operand in global memory, for copies without a tensor map
  SimSide plain;
  SimSide bar;             // the mbarrier at which a load completes
  // whether the copy moves a box of a tensor map, not contiguous bytes
  bool boxes;
  // the tensor map; NULL: the kernel made the map in memory, see `place`
  const TensorMap *map;
  // operand of the tensor map, if the map is in memory
  SimSide place;
  // object in global memory; NULL: the copy is between CTAs, or the object
  // depends on the map in memory
  const SimMem *global;
  // slots of the mask of CTAs and of the destination's rank; 0: no operand
  uint32_t mask, rank;
  uint32_t at[2 * TENSORMAP_RANK];  // slots of the coordinates and im2col
                                    // offsets
  // modes: number of modes of the box. bytes: size of a copy; 0: the map in
  // memory determines it.
  int modes, bytes;
  unsigned flags;          // flags BKF_*
} SimBulk;

// Executes bulk copies, the operations TMALOAD to BULKSEND, lane by lane.
void simbulk_run(SimWarp *w, const SimIns *i);

// ---- maps.c ----
struct SimAsync;
// Operands of the operations MAPCOPY to MAPPUBLISH. dst: the tensor map in
// memory that is written. src: the map to publish, or the tensor of MAPADDRESS.
// map: the argument that MAPCOPY copies. field, mode: the field that MAPSET
// sets, and the mode to which it belongs. value: slot of the new value.
typedef struct SimMapOp {
  SimSide dst, src;
  const TensorMap *map;
  uint32_t value;
  bool wide;
  TensorMapField field;
  int mode;
} SimMapOp;
// The tensor map that a copy uses. `at` is its host address if it is in memory.
typedef struct SimMapped {
  TensorMap map;
  // object with the tensor, which starts at byte `first`
  const SimMem *tensor;
  int64_t first;
  int size, bytes;         // bytes of an element and of a copy
  const uint8_t *at;
  uint64_t words[TENSORMAP_WORDS];
} SimMapped;
void simmaps_run(SimWarp *w, const SimIns *i);
void simmaps_release(SimWarp *w);      // for fence.proxy.tensormap
// Records that the lanes of mask wrote to memory that contains tensor maps.
void simmaps_wrote(const Access *x, uint32_t mask);
void simmaps_reset(SimCluster *c);
void simmaps_free(struct SimMaps *t);
// Loads the tensor map at operand s for lane l into t. If the copy has a map
// that states its box (SimBulk.map), t->map must be a copy of it. Returns false
// and reports a fault if the map is not valid.
bool simmaps_take(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                  SimMapped *t);
// Checks that a tensor map is unchanged since copy `a` loaded it. Reports a
// change as a fault, or as a note if copy `a` was drained (async.h).
void simmaps_still(struct SimAsync *a, const SimSide *s, const SimMapped *t);

// ---- mem.c: functions for bulk.c and maps.c ----
// Record that an agent reads or writes n bytes of global memory from byte `at`
// of m on, for the lane that started it. data: the written bytes; NULL: the
// agent combines its bytes with memory by a reduction.
void simmem_bulk_read(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                      int64_t at, int n);
void simmem_bulk(SimWarp *w, const SimIns *i, const SimMem *m, int lane,
                 int64_t at, int n, const uint8_t *data);
// Returns the byte offset of lane l's mbarrier in its object, or -1 if a fault
// was reported.
int64_t simmem_byte(SimWarp *w, const SimIns *i, const SimSide *s, int lane);

#endif
// SPDX-License-Identifier: MIT
