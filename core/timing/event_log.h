// The event log of one cluster, which the cost model (cost_model.c) reads. For
// each warp, the log has the executed instructions, the bytes that they move,
// and the waits for other threads.
//
// A warp waits for a gate: one round of a barrier or one phase of an mbarrier.
// The arrivals and completions in that round or phase are the parts of the
// gate. A gate opens when all its parts have arrived.
#ifndef CUTE_TIMING_EVENT_LOG_H
#define CUTE_TIMING_EVENT_LOG_H

#include "sim/machine.h"

typedef enum SimMark {
  TAPE_RUN,    // executes instruction `at` of the program
  TAPE_GIVE,   // the warp arrives at gate `at`
  TAPE_NEED,   // the warp waits until gate `at` opens
  // A named range begins or ends. `at` is the range's name, an index into
  // Fn.text.
  TAPE_BEGIN, TAPE_END,
  // An asynchronous operation starts. Its completion counts for gate `at` (0:
  // for no gate).
  TAPE_AGENT
} SimMark;

typedef struct SimStep {
  uint8_t mark;        // a SimMark
  uint8_t lanes;       // RUN: number of active lanes
  // RUN: number of 128-byte lines of L1 that the instruction accesses
  uint8_t lines;
  // AGENT: CTA whose memory the asynchronous operation fills. GIVE: 1 if the
  // gate belongs to another CTA.
  uint8_t cta;
  // RUN of an atomic: maximum number of lanes that access one word
  uint8_t same;
  uint32_t at;
  uint32_t passes;     // RUN: number of shared-memory passes
  uint32_t sectors;    // RUN: number of 32-byte sectors of global memory
  uint32_t missed;     // RUN: number of sectors that missed L1
  uint32_t bytes;      // AGENT: bytes that the operation moves
} SimStep;

typedef struct SimReel {  // the log of a warp
  SimStep *step;
  size_t n, cap;
  size_t run;          // index of the current instruction's step
  // memory statistics (SimStat) from before the warp executed this instruction
  SimStat before;
  // missed: sectors that missed L1 in the current instruction so far. lines:
  // lines of L1 that it has accessed so far.
  uint32_t missed, lines;
} SimReel;

typedef struct SimTape {
  SimReel *reel;       // for each warp of the cluster: its log
  int nreel;
  uint32_t ngate;      // number of gates; the first one has number 1
  uint64_t steps, most;
  // for each CTA: the addresses of the `nline` sectors that its L1 caches
  uint64_t *line;
  size_t nline;        // number of sectors of an L1, a power of two
  bool full;           // whether the log reached its limit of steps
  struct SimClock *clock;  // the cost model that reads the log (cost_model.c)
} SimTape;

// Creates an event log of at most `most` steps. `l1` is the number of bytes of
// each CTA's L1. Returns NULL if memory is exhausted.
SimTape *event_log_new(const SimProg *p, int64_t l1, uint64_t most);
void event_log_free(SimTape *t);

// Log that instruction i of warp w begins or ends. `again` is true if i was not
// executed and will be repeated.
void event_log_begin(SimWarp *w, const SimIns *i);
void event_log_end(SimWarp *w, const SimIns *i, bool again);
// Logs an access to global memory. Each lane of mask accesses n bytes at start
// + at[lane]. `keeps` is true if L1 caches the accessed sectors.
void event_log_global(SimWarp *w, uint64_t start, const int64_t *at,
                      uint32_t mask, int n, bool keeps);
// Logs the beginning or the end of a named range.
void event_log_mark(SimWarp *w, uint32_t name, bool begins);
// Logs an atomic: the largest number of lanes of mask that access one word.
void event_log_same(SimWarp *w, const int64_t *at, uint32_t mask);
// Logs that w contributes to the opening of a gate, for example by an arrival.
// If *gate is 0, creates the gate. `far` is true if the gate belongs to another
// CTA of the cluster.
void event_log_give(SimWarp *w, uint32_t *gate, bool far);
void event_log_need(SimWarp *w, uint32_t gate);
// event_log_agent logs that w starts an asynchronous operation, and returns the
// index of this step. event_log_land logs that the operation has filled `bytes`
// bytes of CTA `cta`'s memory, and is complete. The completion counts for
// *gate.
size_t event_log_agent(SimWarp *w);
void event_log_land(SimWarp *w, size_t agent, uint32_t *gate, int cta,
                    uint32_t bytes);

#endif
// SPDX-License-Identifier: MIT
