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
  int lane;                // that started it
  uint8_t by;              // SimBy
  bool open;               // in no group yet
  bool fetched;            // sources have been read
  bool generic;            // its accesses are generic-proxy; set before them
  bool mapped, drained;    // BY_MBAR through a tensor map in memory: its thread
                           // waited for a group committed after it
  uint32_t group;
  int actor;               // actor that reads the sources, until that epoch
  uint32_t epoch;
  uint64_t turn;           // BY_MBAR: operations of a warp with a turn complete
                           // in that order; 0: in any order
  uint32_t number, cause;  // turns.c: number in its warp; step that started it
  uint64_t began;          // number among all
  SimMbar *mbar;           // BY_MBAR: where it completes `bytes` bytes
  uint32_t bytes, phase;   // phase: the phase in which it started
  SimRun *run;
  void *data;
  size_t tape;             // BY_MBAR: its step in the event log
  uint32_t *turns;         // BY_MBAR: turn epochs known at its start
  SimSpan *span;           // pending until it completes
  size_t nspan;
};

// Starts an operation of warp w at instruction i, by a lane, with `data` zeroed
// bytes at a->data; NULL: out of memory. BY_MBAR: it ends when it completes
// a->bytes at a->mbar, which is set next. BY_BULK: it ends with its group; its
// epoch is `w->issued`.
SimAsync *simasync_start(SimWarp *w, const SimIns *i, int lane, SimBy by,
                         SimRun *run, size_t data);
// Declares a read, or write, of `bytes` bytes from address addr of the
// cluster's shared memory on; m is for reports. Reports faults of the access.
void simasync_reads(SimAsync *a, const SimMem *m, uint32_t addr,
                    uint32_t bytes);
void simasync_writes(SimAsync *a, const SimMem *m, uint32_t addr,
                     uint32_t bytes);
// Declare a read, or write, of n bytes of global memory from byte `at` of m on.
// simasync_wrote_global: the written bytes are visible.
void simasync_reads_global(SimAsync *a, const SimMem *m, int64_t at, int n);
void simasync_writes_global(SimAsync *a, const SimMem *m, int64_t at, int n);
void simasync_wrote_global(SimAsync *a, const SimMem *m, int64_t at, int n);
// simasync_commit makes a group of the active lanes' open operations.
// simasync_wait completes all groups but the last `pending`; with `read`, their
// sources have been read, but they are not complete.
void simasync_commit(SimWarp *w, SimBy by);
void simasync_wait(SimWarp *w, SimBy by, uint32_t pending, bool read);

// Returns the operation that will write granule g, or NULL.
const SimAsync *simasync_to(const SimCluster *c, uint32_t g);

// ---- for the scheduler ----
void simasync_chance(SimCluster *c);  // completes one at random
bool simasync_press(SimCluster *c);   // no warp can run: completes one, if any
// Completes number k of the list.
void simasync_land(SimCluster *c, size_t k);
size_t simasync_first(const SimCluster *c, size_t k);  // must complete before k
void simasync_end(SimCluster *c);     // all warps have exited
void simasync_reset(SimCluster *c);
void simasync_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
