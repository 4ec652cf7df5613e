// Checks the order of accesses to tensor memory (tensor.c).
#ifndef CUTE_WATCH_TENSOR_H
#define CUTE_WATCH_TENSOR_H

#include "sim/tcgen05.h"

bool tensor_init(SimCluster *c);   // returns false if memory is exhausted
void tensor_reset(SimCluster *c);
void tensor_free(SimCluster *c);
// Checks an access against earlier accesses that conflict with it, and records
// it.
void tensor_access(const SimTensorAccess *x);
// Explains f, a read x of columns that were never written.
void tensor_unwritten(SimFault *f, const SimTensorAccess *x);
void tensor_fence(SimWarp *w, const SimIns *i);  // w executed a tcgen05.fence

#endif
// SPDX-License-Identifier: MIT
