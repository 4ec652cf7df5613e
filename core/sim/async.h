// Operations that other agents carry out (async.c): how whoever starts one
// says what it reads, what it writes and what its end is.
//
//   SimAsync *a = simasync_start(w, i, lane, BY_MBAR, run, sizeof *data);
//   if (!a) return;                       // out of memory
//   a->mbar = simmbar_for(w, i, lane, m, addr, true);  // of BY_MBAR, which
//   a->bytes = n;                                      // may be NULL: faulted
//   simasync_reads(a, src, at, n);        // ranges of shared memory
//   simasync_writes(a, dst, at, n);
//
// run(a, ASYNC_FETCH) then reads the sources into a->data, and
// run(a, ASYNC_DELIVER) writes the bytes to where they go, both once, as late
// as the program allows. Before that run(a, ASYNC_DRAIN) of those that a tensor
// map in memory tells of (a->mapped) and that end at an mbarrier, when their
// thread waits for a bulk group behind them: by PTX it waits for none of them.
#ifndef CUTE_SIMASYNC_H
#define CUTE_SIMASYNC_H

#include "sim/inside.h"

typedef enum SimStage { ASYNC_FETCH, ASYNC_DELIVER, ASYNC_DRAIN } SimStage;
typedef void SimRun(SimAsync *a, SimStage stage);
typedef struct SimSpan { uint32_t addr, bytes; } SimSpan;
struct SimAsync {
  SimWarp *w;
  const SimIns *i;
  int lane;                // who started it
  uint8_t by;              // SimBy
  bool open;               // no group yet
  bool fetched;            // sources were read
  bool generic;            // its accesses are a thread's: set before them
  bool mapped, drained;    // BY_MBAR, by a tensor map in memory: its thread
                           // waited for a group that was committed behind it
  uint32_t group;
  int actor;               // who reads the sources, until which epoch
  uint32_t epoch;
  uint64_t turn;           // BY_MBAR: those of its warp that have one land in
                           // their order; 0: in any
  uint32_t number, cause;  // turns.c: which of its warp's; what was before it
  uint64_t began;          // ... of all
  SimMbar *mbar;           // BY_MBAR: completes so many bytes there
  uint32_t bytes, phase;   // ... of which phase, as it began
  SimRun *run;
  void *data;
  size_t tape;             // BY_MBAR: its step there
  uint32_t *turns;         // BY_MBAR: that were known where it began
  SimSpan *span;           // pending until its end
  size_t nspan;
};

// A new one of warp w at i, started by a lane, with so many zeroed bytes at
// a->data; NULL: out of memory.
// BY_MBAR: it ends when it completes a->bytes at a->mbar, which is set next.
// BY_BULK: it ends with its group, and is one of `w->issued`.
SimAsync *simasync_start(SimWarp *w, const SimIns *i, int lane, SimBy by,
                         SimRun *run, size_t data);
// It reads, or writes, so many bytes of m (for reports) from address addr of
// the cluster's shared memory on: what is wrong with that now is told.
void simasync_reads(SimAsync *a, const SimMem *m, uint32_t addr,
                    uint32_t bytes);
void simasync_writes(SimAsync *a, const SimMem *m, uint32_t addr,
                     uint32_t bytes);
// It reads, or writes, n bytes of global memory from byte `at` of m on; what it
// wrote there is there.
void simasync_reads_global(SimAsync *a, const SimMem *m, int64_t at, int n);
void simasync_writes_global(SimAsync *a, const SimMem *m, int64_t at, int n);
void simasync_wrote_global(SimAsync *a, const SimMem *m, int64_t at, int n);
// The active lanes' open ones are a group; all groups but the last `pending`
// end, or (read) have read their sources.
void simasync_commit(SimWarp *w, SimBy by);
void simasync_wait(SimWarp *w, SimBy by, uint32_t pending, bool read);

// Who will write granule g; NULL: nobody of these.
const SimAsync *simasync_to(const SimCluster *c, uint32_t g);

// ---- the scheduler's ----
void simasync_chance(SimCluster *c);  // perhaps one lands
bool simasync_press(SimCluster *c);   // nobody can go on: one lands, if any
void simasync_land(SimCluster *c, size_t k);     // number k of the list
size_t simasync_first(const SimCluster *c, size_t k);  // lands before k can
void simasync_end(SimCluster *c);     // all warps are done
void simasync_reset(SimCluster *c);
void simasync_free(SimCluster *c);

#endif
