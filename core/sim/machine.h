// The simulated machine: a decoded program (decode/prog.h), the state of a
// cluster (state.h), and the functions that the files share. Files of
// core/watch/, core/explore/ and core/timing/ also include this header.
//
//   alu.c            arithmetic, one lane or 32
//   mem.c            shared and global memory, cp.async
//   mbar.c           mbarriers
//   async.c          asynchronous operations (async.h)
//   record.c         recorded shared-memory requests
//   st_async.c       st.async
//   bulk.c           bulk copies with and without tensor maps
//   tensormap_ops.c  tensor maps that kernels make
//   addressed.c      raw pointers: lanes that access different objects
//   divergence.c     lanes of a warp that wait for each other
//   exec.c           the interpreter: runs one warp until it must wait
//   intrin.c         rows of ir/intrin.h
//   matrix.c         tensor cores and matrix copies
//   wgmma.c          warpgroup MMAs
//   tcgen05.c        tensor memory, and MMAs that accumulate there
//   barrier.c        barriers of CTAs and clusters, setmaxnreg
//   cluster.c        warps of a cluster: initial state, scheduling
//   report.c         counts of faults
//   sim.c            clusters over host threads
//
//   hooks.h     what the machine announces to checks (core/watch/)
//   steps.h     what the machine announces to a scheduler (core/explore/)
//   log.h       what the machine writes to an event log (core/timing/)
#ifndef CUTE_SIMMACHINE_H
#define CUTE_SIMMACHINE_H

#include "sim/cluster.h"
#include "sim/hooks.h"
#include "sim/log.h"
#include "sim/steps.h"

// ---- alu.c ----
uint64_t simalu_one(const SimIns *i, uint64_t a, uint64_t b, uint64_t c);
// Computes an arithmetic instruction in all 32 lanes.
void simalu_lanes(const SimIns *i, char *v);

// ---- mem.c ----
struct SimMatrix;
// Returns the lanes of mask whose access is in bounds and aligned. Reports
// faults of the other lanes. Sets x->at. If the object belongs to another CTA,
// sets x->home.
uint32_t simmem_check(Access *x, uint32_t mask);
// Reports a fault if the preceding launch may still use an element of global
// memory. Lane l, or its asynchronous operation, reads or writes this element.
void simmem_depends(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                    int64_t element, bool write);
// Returns the mbarrier at an address of shared memory, or NULL if there is no
// mbarrier. Does not check whether the mbarrier is initialized.
SimMbar *simmem_mbar(const SimCluster *c, uint32_t addr);
// Reports a fault if lane l accesses an active mbarrier as data, that is, if
// one is among the n bytes at address addr of the cluster's shared memory.
void simmem_mbarriers(SimWarp *w, const SimIns *i, int l, uint32_t addr,
                      uint32_t n, bool write);
typedef uint8_t SimLaneBuf[LANES][32];
// Loads `bytes` bytes for each lane in mask into buf. `off` has offsets in
// elements of m. Returns the lanes that got data. Reports faults, counts
// statistics.
uint32_t simmem_load(SimWarp *w, const SimIns *i, const SimMem *m,
                     uint32_t mask, const int64_t *off, int bytes,
                     SimLaneBuf buf);
void simmem_store(SimWarp *w, const SimIns *i, const SimMem *m,
                  uint32_t mask, const int64_t *off, int bytes,
                  SimLaneBuf buf);
// Load or store elements narrower than a byte. A lane's element is in the low
// bits of its word.
void simmem_load_bits(SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t mask, const int64_t *off, uint32_t *out);
void simmem_store_bits(SimWarp *w, const SimIns *i, const SimMem *m,
                       uint32_t mask, const int64_t *off,
                       const uint32_t *value);
void simmem_atomic(SimWarp *w, const SimIns *i);
// The granules (units of shadow memory, shadow.h) that a lane accesses. `key`
// identifies the first granule (for conflicts_access), `p` points to the bytes
// of this granule in memory, and `size` is the number of bytes of a granule.
// `n` is the number of granules, or 0 if the kernel does not write the memory.
typedef struct SimPlaces {
  uint64_t key;
  const uint8_t *p;
  int n, size;
} SimPlaces;
SimPlaces simmem_places(const Access *x, int l);
// Counts a change of the cluster's memory. With `global`, counts a change of
// memory that all clusters share.
static inline void simmem_moved(SimCluster *c, bool global) {
  c->moved++;
  c->changed++;
  if (global && c->prog->common) c->prog->common->changes++;
}
// Returns the number of changes for which a warp of this cluster may wait.
static inline uint64_t simmem_stamp(const SimCluster *c) {
  return c->moved + (c->prog->common ? c->prog->common->changes : 0);
}
// The accesses that a load or an atomic would make if the warp executed it now:
// the bits that the active lanes would find in memory, and the keys of the
// granules (units of shadow memory) that a lane would access.
typedef struct SimAsk {
  // found: the bits that each lane would find. The granules have n successive
  // keys (for conflicts_access), of which `key` is the first.
  uint64_t found[LANES], key;
  int n, size;             // number of granules, and bytes in each
  bool one;                // whether all lanes access the same granules
} SimAsk;
// Finds what instruction i would access, without executing it. Returns false if
// i is neither a load nor an atomic, or is out of bounds.
bool simmem_ask(SimWarp *w, const SimIns *i, SimAsk *a);
// Reports whether atomic i would leave memory unchanged if each lane l found
// the bits found[l] in memory.
bool simmem_stays(SimWarp *w, const SimIns *i, const uint64_t *found);
// Executes the memory accesses of ldmatrix or stmatrix. Each lane moves a row
// of 16 bytes.
void simmem_rows(SimWarp *w, const SimIns *i, const struct SimMatrix *x,
                 const int64_t *off, SimLaneBuf buf);
void simmem_cpasync(SimWarp *w, const SimIns *i);
void simmem_commit(SimWarp *w);
// Reports whether a cp.async of w that is in no group yet will write byte `at`
// of the cluster's shared memory.
bool simmem_open(const SimWarp *w, uint32_t at);
// Finds the cp.async of warp w, in a committed group, that will write byte `at`
// of the cluster's shared memory. Sets *lane and *group to the lane and the
// group of this cp.async. Returns false if no such cp.async exists.
bool simmem_group(const SimWarp *w, uint32_t at, int *lane, uint32_t *group);
// Completes w's cp.asyncs with numbers below `upto`, for the lanes of mask. The
// bytes become visible as a write of `actor` (hb_cluster.c) in `epoch`.
void simmem_land(SimWarp *w, uint32_t mask, uint64_t upto, int actor,
                 uint32_t epoch);
void simmem_wait(SimWarp *w, uint32_t pending);
void simmem_reset(SimCluster *c);  // prepares the memory for the next cluster
void simmem_offsets(const SimWarp *w, const SimSide *s, int64_t *off);

// ---- st_async.c ----
void st_async_run(SimWarp *w, const SimIns *i);

// ---- exec.c ----
void simexec_warp(SimWarp *w);          // runs w until it waits, yields or ends
// simexec_spend subtracts the instructions since the last call from the
// instruction budget of the run. simexec_tick does the same, and reports
// progress. It also stops the cluster if the run of all clusters must end.
// `src` is the line that the cluster executes, or 0 if it is unknown.
void simexec_spend(SimCluster *c);
void simexec_tick(SimCluster *c, uint32_t src);
// simexec_is_turn reports whether i is a scheduling step (interleave.h).
// simexec_turn executes one step of w. simexec_between runs w up to the next.
bool simexec_is_turn(const SimIns *i);
void simexec_turn(SimWarp *w);
void simexec_between(SimWarp *w);

#endif
// SPDX-License-Identifier: MIT
