// Tensor memory and the tcgen05 operations (tcgen05.c).
#ifndef CUTE_SIMTCGEN05_H
#define CUTE_SIMTCGEN05_H

#include "decode/fragments.h"
#include "sim/machine.h"

bool simtcgen05_init(SimCluster *c);   // returns false if memory is exhausted
void simtcgen05_free(SimCluster *c);
void simtcgen05_reset(SimCluster *c);  // prepares for the next cluster
// Execute instructions. simtcgen05_alloc returns false if w must wait for free
// columns (SW_TMEM).
bool simtcgen05_alloc(SimWarp *w, const SimIns *i);
void simtcgen05_dealloc(SimWarp *w, const SimIns *i);
void simtcgen05_relinquish(SimWarp *w);
void simtcgen05_mma(SimWarp *w, const SimIns *i);
void simtcgen05_rows(SimWarp *w, const SimIns *i);
void simtcgen05_shift(SimWarp *w, const SimIns *i);
void simtcgen05_commit(SimWarp *w, const SimIns *i);
void simtcgen05_load(SimWarp *w, const SimIns *i);
void simtcgen05_store(SimWarp *w, const SimIns *i);
void simtcgen05_wait(SimWarp *w, bool loads);
// Returns the number of free columns of w's CTA.
int simtcgen05_left(const SimWarp *w);
// Reports whether w waits until the other CTA of its pair also allocates.
bool simtcgen05_alone(const SimWarp *w);
// Returns the line of an MMA or copy that no commit followed, by w's CTA or by
// the other CTA of its pair. Returns 0 if there is none.
uint32_t simtcgen05_open(const SimWarp *w);
// Called when all warps have exited.
void simtcgen05_end(SimCluster *c);

// An access to columns `column` to column + n - 1 of CTA `cta`, in the groups
// of lanes in `groups`. It is complete for threads that acquired epoch `epoch`
// of the warp's actor of kind `unit` (a vector-clock entry, decode/actors.h).
// row: the atom of an MMA. start: for an MMA, first column of the accumulators.
// base: first column of the allocation. freed: the columns are deallocated,
// which counts as a write by the warp.
struct SimTensorAccess {
  SimWarp *w;
  const SimIns *i;
  const SimMem *m;
  int cta, lane;
  bool write, freed;
  SimActor unit;  // ACTOR_TCMMA, ACTOR_TCLD or ACTOR_TCST
  uint32_t epoch;
  const AtomMma *row;
  uint32_t groups;
  int column, n, start, base;
};

#endif
// SPDX-License-Identifier: MIT
