// Finds the largest coordinates of an access, and the thread and block indices
// on which they depend (reach.c).
#ifndef CUTE_REACH_H
#define CUTE_REACH_H

#include "ir/ir.h"

enum { REACH_MODES = 8 };

// The coordinates at which a script line can access an object. If no assertion
// records the coordinates, the offset of the element is the only mode.
// - most: for each mode, the largest coordinate, or -1 if it depends on data.
// - block, thread: for each mode, mask of the axes (bit 0: x) of the indices on
//   which the coordinate depends.
// - atomic: an atomic operation on whose result a coordinate depends, or 0.
// - guarded: whether a condition that compares with < or > surrounds each
//   access of the line.
typedef struct Reach {
  int modes;
  int64_t most[REACH_MODES];
  uint32_t block[REACH_MODES], thread[REACH_MODES];
  Ref atomic;
  bool guarded;
} Reach;

// Finds the coordinates at which script line `src` accesses object `mem` (an
// index into Fn.mem). Ignores conditions around the access. Returns false if
// the accesses are unknown.
bool reach_of(Ctx *cx, const Fn *fn, const int32_t grid[3], int32_t mem,
              uint32_t src, Reach *r);

#endif
// SPDX-License-Identifier: MIT
