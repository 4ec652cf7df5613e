// Records of where the elements and scale factors of an MMA come from. The
// simulator passes them to listeners (sim/hooks.h).
#ifndef CUTE_SIMORIGINS_H
#define CUTE_SIMORIGINS_H

#include "decode/fragments.h"

// The origin of 16 bytes that a bulk copy wrote to shared memory. mem, at:
// global memory object, and byte offset in it; mem NULL: the bytes are zeros
// for elements outside a tensor. row, column: position in a matrix, not
// counting the index of the matrix in a batch; `column` is in bytes.
typedef struct SimOrigin16 {
  const SimMem *mem;
  int64_t at, row, column;
} SimOrigin16;

// The rows `first` to end - 1 of A (which = 0) or B (1) that a part of an MMA
// multiplies with scale factors. desc: the descriptor of the rows in shared
// memory. home: the first CTA whose shared memory contains rows. Each CTA
// contains `rows` rows. The factors start in CTA `cta` at byte `byte` of the
// column of address sf. `factor` points to the factors.
typedef struct SimScaledRows {
  const SimTensorIns *x;
  uint64_t desc;
  const uint8_t *factor;
  uint32_t sf;
  int which, first, end, home, rows, cta, byte;
} SimScaledRows;

// Two pairs of a block of elements and its scale factor that contradict each
// other: one factor scales two blocks, or one block has two factors. src:
// source line of an MMA; 0: no contradiction was found. n: number of
// contradictions. block, factor: objects of each pair, as indices into Fn.mem.
// factor -1: the factor is outside its tensor, and the two pairs are the same.
// block_at, factor_at: offsets in bytes.
typedef struct SimWrongScale {
  uint32_t src, n;
  int32_t block[2], factor[2];
  int64_t block_at[2], factor_at[2];
} SimWrongScale;

#endif
// SPDX-License-Identifier: MIT
