// Asynchronous operations (async.c). The caller starts an operation, and
// declares its accesses and the mbarrier at which it completes:
//
//   SimAsync *a = simasync_start(w, i, lane, run, sizeof *data);
//   if (!a) return;                       // out of memory
//   a->mbar = simmbar_for(w, i, lane, m, addr, true);  // unless a->grouped;
//   a->bytes = n;                                      // NULL after a fault
//   simasync_reads(a, src, at, n);        // ranges of shared memory
//   simasync_writes(a, dst, at, n);
//
// run(a, ASYNC_FETCH) then reads the sources into a->data, and run(a,
// ASYNC_DELIVER) writes the bytes to the destination. Each call happens once,
// some time after the start. run(a, ASYNC_DRAIN) tests whether a tensor map in
// memory (a->mapped) has changed. It is called when the operation's thread
// waits for a later bulk group, if the operation ends at an mbarrier. It may
// precede the other calls, because in PTX the wait does not cover the
// operation.
#ifndef CUTE_SIMASYNC_H
#define CUTE_SIMASYNC_H

#include "sim/machine.h"

typedef enum SimStage { ASYNC_FETCH, ASYNC_DELIVER, ASYNC_DRAIN } SimStage;
typedef void SimRun(SimAsync *a, SimStage stage);
typedef struct SimSpan { uint32_t addr, bytes; } SimSpan;
struct SimAsync {
  SimWarp *w;
  const SimIns *i;
  int lane;                // lane that started the operation
  bool grouped;  // whether the operation completes with its group, not at an
                 // mbarrier
  bool open;               // whether no bulk group contains the operation yet
  bool fetched;            // whether the sources have been read
  // whether the operation uses the generic proxy, not the async proxy; must be
  // set before simasync_reads and simasync_writes
  bool generic;
  // mapped: the operation uses a tensor map in memory. drained: the operation's
  // thread has since committed a bulk group and waited for it.
  bool mapped, drained;
  uint32_t group;
  int actor;  // actor (vector-clock entry, hb_cluster.c) that reads the sources
  uint32_t epoch;
  // Operations that end at an mbarrier: position in the order in which the
  // warp's operations must complete; 0: no such order.
  uint64_t turn;
  // number: number of the operation, counted from the warp's first operation
  // (interleave.c). cause: the scheduling step that started the operation.
  uint32_t number, cause;
  // number of the operation among the cluster's operations
  uint64_t began;
  // Operations that end at an mbarrier: mbarrier that counts the bytes.
  SimMbar *mbar;
  // bytes: number of bytes that the mbarrier counts at completion. phase: the
  // mbarrier's phase when the operation started.
  uint32_t bytes, phase;
  SimRun *run;
  void *data;
  // Operations that end at an mbarrier: index of their start in the event log.
  size_t tape;
  // Operations that end at an mbarrier: what the thread had acquired from turn
  // actors (mbar.h) when it started the operation.
  uint32_t *turns;
  // ranges of shared memory that are pending until the operation completes
  SimSpan *span;
  size_t nspan;
};

// Starts an operation by one lane of warp w at instruction i, with `data`
// zeroed bytes at a->data. Returns NULL if memory is exhausted. If threads wait
// for groups of such operations (agent_groups), the operation completes with
// its group. The operation's epoch is then `agents.issued` of w. Otherwise the
// operation completes a->bytes bytes at a->mbar; the caller sets both fields
// after this call.
SimAsync *simasync_start(SimWarp *w, const SimIns *i, int lane, SimRun *run,
                         size_t data);
// Declare that the operation reads or writes `bytes` bytes at address addr of
// the cluster's shared memory. Faults name object m.
void simasync_reads(SimAsync *a, const SimMem *m, uint32_t addr,
                    uint32_t bytes);
void simasync_writes(SimAsync *a, const SimMem *m, uint32_t addr,
                     uint32_t bytes);
// Declare that the operation reads or writes n bytes of global memory, which
// start at byte `at` of m. simasync_wrote_global makes the written bytes
// visible to other threads.
void simasync_reads_global(SimAsync *a, const SimMem *m, int64_t at, int n);
void simasync_writes_global(SimAsync *a, const SimMem *m, int64_t at, int n);
void simasync_wrote_global(SimAsync *a, const SimMem *m, int64_t at, int n);
// simasync_commit puts the active lanes' operations that are in no group yet
// into a new group. simasync_wait completes all groups of the active lanes
// except their last `pending` groups. With `read`, simasync_wait only waits
// until the sources of the groups have been read.
void simasync_commit(SimWarp *w);
void simasync_wait(SimWarp *w, uint32_t pending, bool read);

// Returns the operation in flight that will write byte addr of shared memory,
// or NULL if no operation will.
const SimAsync *simasync_to(const SimCluster *c, uint32_t addr);

// ---- for the scheduler ----
void simasync_chance(SimCluster *c);  // may complete a random operation
// Completes an operation in flight because no warp can run. Returns false if no
// operation can complete.
bool simasync_press(SimCluster *c);
// Completes operation k in the cluster's list.
void simasync_land(SimCluster *c, size_t k);
// Returns the index of the operation that must complete before operation k, or
// k.
size_t simasync_first(const SimCluster *c, size_t k);
void simasync_end(SimCluster *c);     // called after all warps have exited
void simasync_reset(SimCluster *c);
void simasync_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
