// Input and output of the cost model (clock.c): the multiprocessors to model,
// and the time that a launch takes on them.
#ifndef CUTE_SIMTIMING_H
#define CUTE_SIMTIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Costs of a fence in cycles. cta, gpu, sys, async: latency until the warp
// continues. Names with _each: time of the SM for each warp.
typedef struct SimFenceCost {
  double cta, cta_each;
  double gpu, gpu_each;
  double sys, sys_each;
  double async;
} SimFenceCost;

// A model of multiprocessors (SMs), one for each CTA of a cluster. On these
// SMs, `resident` clusters run at once, and `clusters` in all, one after the
// other. Times are in cycles, rates in bytes per cycle and SM.
typedef struct SimMachine {
  int64_t clusters, resident;
  int64_t l1;          // bytes of L1 of each CTA
  uint64_t steps;      // maximum length of the event log
  bool events;         // whether to collect events
  double mma, wgmma;   // 16-bit multiply-adds per cycle and quarter
  double mma_again;    // fraction of an mma's time after which its warp may
                       // issue another
  double f64, integer, special;  // cycles of a quarter of the SM for an
                                 // operation of a warp; f64: on f64; integer:
                                 // on integers, or a comparison; special: a
                                 // special function
  double l2, bulk;     // rates of loads from L2; l2: by threads; bulk: by TMA
  double store, fill;  // rates; store: of stores to L2; fill: of TMA into
                       // shared memory
  double atomic;       // cost of an atomic, as a multiple of a store's
  double copy;         // minimum L1 cycles of a cp.async
  double peer;         // rate to and from another CTA's shared memory
  double cas;          // shared-memory cycles of an atomic that is implemented
                       // by compare-and-swap
  // Latencies of arithmetic, loads of shared memory, ldmatrix, mma.
  double alu, shared, matrix, tensor;
  double l1_hit, global;  // l1_hit: latency of an L1 hit; global: average
                          // latency of L2 and memory
  double tma;             // additional latency of a bulk copy
  double far_shared;      // latency of another CTA's shared memory
  double swapped;         // latency of compare-and-swap in shared memory
  double barrier, start;  // barrier: latency of an mbarrier wait; start:
                          // latency of a block start
  double meet, round;     // barrier; meet: cost of each arrival; round: latency
                          // of its release
  double cluster;         // latency of a cluster barrier
  double loop;            // minimum time of a loop iteration of a warp
  SimFenceCost fence;
  double cluster_each;    // cost of each arrival at a cluster barrier
} SimMachine;

// An event; times are in cycles. EVENT_WARP: a warp ran from t to end.
// EVENT_BEGIN, EVENT_END: the warp began, or ended, a named range. EVENT_AGENT:
// an agent that the warp started worked from t to end. `cluster` numbers the
// modelled clusters.
typedef enum SimEventKind {
  EVENT_WARP, EVENT_BEGIN, EVENT_END, EVENT_AGENT
} SimEventKind;
typedef struct SimEvent {
  uint8_t kind;        // SimEventKind
  uint8_t warp, cta;   // warp: its number in the CTA; cta: its number in the
                       // cluster
  uint32_t cluster;
  uint32_t what;       // BEGIN, END: name, as a text of the function; AGENT:
                       // source line
  const char *op;      // AGENT: operation
  double t, end;
} SimEvent;

// Units of an SM that can be busy.
typedef enum SimPipe {
  PIPE_ISSUE, PIPE_FMA, PIPE_ALU, PIPE_XU, PIPE_F64, PIPE_TENSOR,  // one per
                                                                   // quarter
  PIPE_SHARED, PIPE_L1, PIPE_MEMORY, PIPE_FILL, PIPE_PEER, PIPES
} SimPipe;

// Cost of one source line, over all warps of one cluster.
typedef struct SimCost {
  uint32_t src;
  uint64_t slots;      // number of instructions issued
  uint64_t passes, sectors, missed;  // passes: shared-memory passes; sectors:
                                     // global-memory sectors; missed: sectors
                                     // that missed L1
  double flops;
  double stall;        // cycles that all warps waited at the line
} SimCost;

typedef struct SimTiming {
  double cycles;       // time at which the last cluster ends
  double busy[PIPES];  // busy cycles of the first CTA's SM; per-quarter pipes:
                       // mean
  SimCost *cost;
  size_t ncost;
  SimEvent *event;     // events in the order in which the model found them
  size_t nevent, maxevent;
  uint64_t steps;
  bool full;           // the event log was too short; other fields are unset
} SimTiming;

#endif
// SPDX-License-Identifier: MIT
