// Decoded bulk copies, and operations on tensor maps in memory.
#ifndef CUTE_DECODE_COPIES_H
#define CUTE_DECODE_COPIES_H

#include "decode/prog.h"

typedef struct SimBulk {
  SimSide shared;          // operand in shared memory of this CTA
  // the operand in global memory, for copies without a tensor map
  SimSide plain;
  SimSide bar;             // the mbarrier at which a load completes
  // whether the copy moves a box of a tensor map, not contiguous bytes
  bool boxes;
  // the tensor map; NULL: the map is in memory, as operand `place`
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

#endif
// SPDX-License-Identifier: MIT
