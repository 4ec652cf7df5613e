// Tensor memory and the tcgen05 operations (tcgen05.c).
#ifndef CUTE_SIMTCGEN05_H
#define CUTE_SIMTCGEN05_H

#include "atoms/atom.h"
#include "sim/machine.h"
#include "hardware/ummamath.h"

// Tensor memory of a CTA. An operation accesses whole groups of 16 lanes.
enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_GROUP = 16, TMEM_GROUPS = 8,
       TMEM_BLOCK = 32 /* columns of the smallest allocation */ };

// The first element of an operand in tensor memory: slots of the object's
// address and of the offset in elements.
typedef struct SimTensorPlace {
  const SimMem *mem;
  uint32_t address, off;
  bool wide;           // whether the offset is a 64-bit value
} SimTensorPlace;

// A decoded MMA, copy or allocation. ctas: 2 if it belongs to a pair of CTAs,
// which are those of ranks 2k and 2k + 1, else 1.
typedef struct SimTensorIns {
  int ctas;
  SimTensorPlace acc;  // the accumulators, or the columns that are copied
  // MMA: `a` is A in tensor memory (mem NULL: shared memory). desc has the
  // slots of the descriptors of A and B, and `add` that of the predicate.
  const AtomMma *row;
  SimUmma u;
  // sf: the scale factors of A and B, if u.scales is not 0.
  SimTensorPlace a, sf[2];
  uint32_t desc[2], add;
  const SimMem **smem;  // all objects of shared memory
  int nsmem;
  // copies: registers of each thread, as the units of rmem that start at
  // reg[v]; at[v * 32 + lane] is lane * 512 + column, relative to the place.
  // span: number of columns.
  const AtomCopy *copy;
  const SimMem *rmem;
  const uint32_t *reg;
  const uint16_t *at;
  int span;
  // TCCP: desc[1] has the slot of the descriptor of `rows` rows of `bytes`
  // bytes. Piece k of 16 bytes of the copy is piece[k] of the source, counted
  // row by row, and goes to at[k]. groups: the groups of lanes that it writes.
  int rows, bytes, pieces;
  const uint8_t *piece;
  uint32_t groups;
  SimSide to;          // allocation: where the address is stored
  uint32_t columns;    // slot of the number of columns
} SimTensorIns;

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
void simtcgen05_commit(SimWarp *w, const SimIns *i);
void simtcgen05_load(SimWarp *w, const SimIns *i);
void simtcgen05_store(SimWarp *w, const SimIns *i);
void simtcgen05_wait(SimWarp *w, bool loads);
// Returns the number of free columns of w's CTA.
int simtcgen05_left(const SimWarp *w);
// Reports whether w waits for the other CTA of its pair to allocate.
bool simtcgen05_alone(const SimWarp *w);
// Returns the line of an MMA or copy of the CTA or its pair that no commit
// followed, or 0.
uint32_t simtcgen05_open(const SimWarp *w);
// called when all warps have exited
void simtcgen05_end(SimCluster *c);

// The agents of warp u, which are actors: for its operations in the tensor
// cores, its loads and its stores. A thread that acquired an epoch of an agent
// knows that the operations with numbers up to the epoch have completed.
typedef enum SimTensorUnit {
  TENSOR_MMA, TENSOR_LOAD, TENSOR_STORE, TENSOR_UNITS
} SimTensorUnit;
static inline int simtcgen05_actor(const SimProg *p, int warp,
                                   SimTensorUnit unit) {
  return p->tensor + (int)unit * p->nall + warp;
}

// An access to columns `column` to column + n - 1 of the groups of lanes in
// `groups` of the CTA of rank `cta`. It completes as epoch `epoch` of `unit` of
// the warp. row: for MMAs, the atom; `start` is then the first column of its
// accumulators. base: first column of the allocation. freed: the columns are
// deallocated, as by a write of the warp.
struct SimTensorAccess {
  SimWarp *w;
  const SimIns *i;
  const SimMem *m;
  int cta, lane;
  bool write, freed;
  SimTensorUnit unit;
  uint32_t epoch;
  const AtomMma *row;
  uint32_t groups;
  int column, n, start, base;
};

#endif
// SPDX-License-Identifier: MIT
