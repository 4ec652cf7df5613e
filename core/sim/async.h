// Asynchronous operations (async.c). An operation is started with its reads,
// its writes and its completion:
//
//   SimAsync *a = simasync_start(w, i, lane, BY_MBAR, run, sizeof *data);
//   if (!a) return;                       // out of memory
//   a->mbar = simmbar_for(w, i, lane, m, addr, true);  // if BY_MBAR;
//   a->bytes = n;                                      // NULL after a fault
//   simasync_reads(a, src, at, n);        // ranges of shared memory
//   simasync_writes(a, dst, at, n);
//
// run(a, ASYNC_FETCH) then reads the sources into a->data, and run(a,
// ASYNC_DELIVER) writes the bytes to the destination. Both run once, as late as
// the program allows. run(a, ASYNC_DRAIN) comes earlier, for operations through
// a tensor map in memory (a->mapped) that end at an mbarrier. It runs when
// their thread waits for a later bulk group; by PTX that wait does not cover
// them.
#ifndef CUTE_SIMASYNC_H
#define CUTE_SIMASYNC_H

#include "sim/inside.h"

typedef enum SimStage { ASYNC_FETCH, ASYNC_DELIVER, ASYNC_DRAIN } SimStage;
typedef void SimRun(SimAsync *a, SimStage stage);
typedef struct SimSpan { uint32_t addr, bytes; } SimSpan;
struct SimAsync {
  SimWarp *w;
  const SimIns *i;
  int lane;                // lane that started the operation
  uint8_t by;              // SimBy
  bool open;               // the operation is in no group yet
  bool fetched;            // sources have been read
  bool generic;            // uses the generic proxy; set before the accesses
                           // are declared
  bool mapped, drained;    // mapped: BY_MBAR, through a tensor map in memory;
                           // drained: its thread waited for a bulk group that
                           // it committed later
  uint32_t group;
  int actor;               // actor that reads the sources
  uint32_t epoch;
  uint64_t turn;           // BY_MBAR: position in the order in which operations
                           // of a warp complete; 0: any order
  uint32_t number, cause;  // number: its number in its warp (turns.c); cause:
                           // step that started it
  uint64_t began;          // its number among all operations of the cluster
  SimMbar *mbar;           // BY_MBAR: mbarrier at which it completes `bytes`
                           // bytes
  uint32_t bytes, phase;   // phase: the phase in which it started
  SimRun *run;
  void *data;
  size_t tape;             // BY_MBAR: index of its step in the event log
  uint32_t *turns;         // BY_MBAR: epochs of the turn actors (mbar.h) that
                           // were known at its start
  SimSpan *span;           // accesses that are pending until it completes
  size_t nspan;
};

// Starts an operation of warp w at instruction i by one lane, with `data`
// zeroed bytes at a->data. Returns NULL if memory is exhausted. BY_MBAR: the
// operation ends when it completes a->bytes at a->mbar; the caller sets both
// next. BY_BULK: the operation ends with its group, and its epoch is
// `w->issued`.
SimAsync *simasync_start(SimWarp *w, const SimIns *i, int lane, SimBy by,
                         SimRun *run, size_t data);
// Declare that the operation reads, or writes, `bytes` bytes of the cluster's
// shared memory from address addr on. m is named in reports. Faults of the
// access are reported.
void simasync_reads(SimAsync *a, const SimMem *m, uint32_t addr,
                    uint32_t bytes);
void simasync_writes(SimAsync *a, const SimMem *m, uint32_t addr,
                     uint32_t bytes);
// Declare that the operation reads, or writes, n bytes of global memory from
// byte `at` of m on. simasync_wrote_global makes the written bytes visible.
void simasync_reads_global(SimAsync *a, const SimMem *m, int64_t at, int n);
void simasync_writes_global(SimAsync *a, const SimMem *m, int64_t at, int n);
void simasync_wrote_global(SimAsync *a, const SimMem *m, int64_t at, int n);
// simasync_commit puts the active lanes' open operations in a group.
// simasync_wait completes all groups except the last `pending`. With `read`, it
// only waits until the sources have been read.
void simasync_commit(SimWarp *w, SimBy by);
void simasync_wait(SimWarp *w, SimBy by, uint32_t pending, bool read);

// Returns the operation that will write granule g, or NULL.
const SimAsync *simasync_to(const SimCluster *c, uint32_t g);

// ---- for the scheduler ----
void simasync_chance(SimCluster *c);  // completes a random operation
bool simasync_press(SimCluster *c);   // no warp can run: completes an
                                      // operation, if there is one
// Completes operation k of the list.
void simasync_land(SimCluster *c, size_t k);
size_t simasync_first(const SimCluster *c, size_t k);  // returns the operation
                                                       // that must complete
                                                       // before operation k
void simasync_end(SimCluster *c);     // called when all warps have exited
void simasync_reset(SimCluster *c);
void simasync_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
