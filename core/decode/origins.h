// The origins of the elements and the scale factors of an MMA, which the
// machine announces (sim/hooks.h).
#ifndef CUTE_SIMORIGINS_H
#define CUTE_SIMORIGINS_H

#include "decode/fragments.h"

// The origin of 16 bytes of shared memory that a bulk copy delivered: byte `at`
// of global memory object mem; NULL: zeros for elements outside a tensor. row,
// column: position in a matrix, which is equal for the matrices of a batch;
// `column` is in bytes.
typedef struct SimOrigin16 {
  const SimMem *mem;
  int64_t at, row, column;
} SimOrigin16;

// The rows `first` to end - 1 of A (which = 0) or B (1) that a part of an MMA
// multiplies with scale factors. desc: the descriptor of the rows in shared
// memory. home: the first CTA that has rows; each CTA has `rows` of them. The
// factors start in CTA `cta` at byte `byte` of the column of address sf;
// `factor` has their bits.
typedef struct SimScaledRows {
  const SimTensorIns *x;
  uint64_t desc;
  const uint8_t *factor;
  uint32_t sf;
  int which, first, end, home, rows, cta, byte;
} SimScaledRows;

// A block of elements with the scale factor of another block. src: line of an
// MMA; 0: there is no such block. n: number of such blocks. block, factor:
// objects, as indices into Fn.mem; factor -1: it is outside its tensor, and
// both entries are the same pair. block_at, factor_at: their offsets in bytes.
typedef struct SimWrongScale {
  uint32_t src, n;
  int32_t block[2], factor[2];
  int64_t block_at[2], factor_at[2];
} SimWrongScale;

#endif
// SPDX-License-Identifier: MIT
