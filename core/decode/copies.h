// Decoded bulk copies, and operations on tensor maps in memory.
#ifndef CUTE_DECODE_COPIES_H
#define CUTE_DECODE_COPIES_H

#include "decode/prog.h"

typedef struct SimBulk {
  SimSide shared;          // operand in shared memory of this CTA
  // the operand in global memory, for copies without a tensor map
  SimSide plain;
  SimSide bar;             // the mbarrier on which a load completes
  // whether the copy moves a box of a tensor map, not contiguous bytes
  bool boxes;
  // the tensor map; NULL: `place` is the address of a map in memory
  const TensorMap *map;
  // operand with the tensor map, if the map is in memory
  SimSide place;
  // object in global memory; NULL: the copy is between CTAs, or only the map in
  // memory determines the object
  const SimMem *global;
  // slots of two operands, or 0: the mask of CTAs, and the rank of the
  // destination CTA
  uint32_t mask, rank;
  uint32_t at[2 * TENSORMAP_RANK];  // slots of the coordinates and of the
                                    // im2col offsets
  // modes: number of modes of the box. bytes: size of a copy; 0: the map in
  // memory determines it.
  int modes, bytes;
  unsigned flags;          // flags BKF_*
} SimBulk;

// Operands of the operations on tensor maps in memory (MAPCOPY to MAPPUBLISH).
// `dst` is the map that is written. `src` is the map to publish, or the tensor
// whose address MAPADDRESS writes. `map` is the kernel argument that MAPCOPY
// copies. MAPSET writes the value in slot `value` to `field` of mode `mode`.
typedef struct SimMapOp {
  SimSide dst, src;
  const TensorMap *map;
  uint32_t value;
  bool wide;
  TensorMapField field;
  int mode;
} SimMapOp;

#endif
// SPDX-License-Identifier: MIT
