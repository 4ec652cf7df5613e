// Records of the memory from which an MMA's elements and scale factors come.
// The simulator passes them to listeners (sim/hooks.h).
#ifndef CUTE_SIMORIGINS_H
#define CUTE_SIMORIGINS_H

#include "decode/fragments.h"

// The origin of 16 bytes that a bulk copy wrote to shared memory: byte `at` of
// global memory object `mem`. If `mem` is NULL, the bytes are zeros for
// elements outside a tensor. `row` and `column` (in bytes) are the position
// within one matrix. Other matrices of a batch do not change this position.
typedef struct SimOrigin16 {
  const SimMem *mem;
  int64_t at, row, column;
} SimOrigin16;

// Rows of A (which = 0) or B (which = 1), from `first` to end - 1, that a part
// of an MMA multiplies with scale factors. `desc` is the descriptor of the rows
// in shared memory. Each CTA of the MMA contains `rows` of them, beginning with
// CTA `home`. `factor` points to the factors. In tensor memory, they begin in
// CTA `cta` at byte `byte` of the column of address sf.
typedef struct SimScaledRows {
  const SimTensorIns *x;
  uint64_t desc;
  const uint8_t *factor;
  uint32_t sf;
  int which, first, end, home, rows, cta, byte;
} SimScaledRows;

// Two pairs of a block of elements and its scale factor. They contradict each
// other: either one factor scales two blocks, or one block has two factors.
// `src` is the source line of an MMA, or 0 if no contradiction was found. `n`
// is the number of contradictions. `block` and `factor` are the objects of the
// two pairs, as indices into Fn.mem. block_at and factor_at are byte offsets in
// them. If factor is -1, the factor is outside its tensor, and both pairs are
// the same.
typedef struct SimWrongScale {
  uint32_t src, n;
  int32_t block[2], factor[2];
  int64_t block_at[2], factor_at[2];
} SimWrongScale;

#endif
// SPDX-License-Identifier: MIT
