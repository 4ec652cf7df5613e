// Tensor maps that kernels make in memory (tensormap_ops.c).
#ifndef CUTE_SIM_TENSORMAP_OPS_H
#define CUTE_SIM_TENSORMAP_OPS_H

#include "sim/bulk.h"

struct SimAsync;
// The tensor map that a copy uses. at: host address of a map in memory.
typedef struct SimMapped {
  TensorMap map;
  // object that contains the tensor, which starts at byte `first` of the object
  const SimMem *tensor;
  int64_t first;
  int bits, bytes;         // bits of an element, bytes of a copy
  const uint8_t *at;
  uint64_t words[TENSORMAP_WORDS];
} SimMapped;
void tensormap_ops_run(SimWarp *w, const SimIns *i);
void tensormap_ops_release(SimWarp *w);      // for fence.proxy.tensormap
// Records that the lanes of mask wrote to memory that contains tensor maps.
void tensormap_ops_wrote(const Access *x, uint32_t mask);
void tensormap_ops_reset(SimCluster *c);
void tensormap_ops_free(struct SimMaps *t);
// Loads the tensor map at operand s for lane l into t. If the copy's map is
// known from the program (SimBulk.map), t->map must be a copy of it, and the
// loaded map must have the same box. Returns false and reports a fault if the
// map is not valid.
bool tensormap_ops_take(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                        SimMapped *t);
// Checks that the tensor map is unchanged since copy `a` loaded it. Reports a
// change as a fault, or as a note if copy `a` was drained (async.h).
void tensormap_ops_still(struct SimAsync *a, const SimSide *s,
                         const SimMapped *t);

#endif
// SPDX-License-Identifier: MIT
