// Lines where operations computed NaNs or infinities (finite.c).
#ifndef CUTE_SIMORIGIN_H
#define CUTE_SIMORIGIN_H

#include "decode/prog.h"

// A line that computed a NaN or infinity from finite operands. All fields
// except `count` describe the first such result.
typedef struct SimOrigin {
  const SimIns *i;
  bool nan;                // whether the result is a NaN
  // whether the operation is an MMA; v then holds the accumulator, and the two
  // factors of the largest product
  bool sum;
  int n;                   // number of operands in v
  double v[3], result;
  int32_t block[3], thread[3];
  uint64_t count;  // number of NaNs and infinities that the line computed
} SimOrigin;
enum { SIM_ORIGINS = 8 };  // maximum number of lines that a SimOrigins holds
typedef struct SimOrigins {
  SimOrigin at[SIM_ORIGINS];
  int n;
} SimOrigins;

#endif
// SPDX-License-Identifier: MIT
