// Input and output of the cost model (clock.c): the multiprocessors to model,
// and the time that a launch takes on them.
#ifndef CUTE_SIMTIMING_H
#define CUTE_SIMTIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Costs of fences in cycles: latency until the warp continues; each: SM time of
// each warp.
typedef struct SimFenceCost {
  double cta, cta_each;
  double gpu, gpu_each;
  double sys, sys_each;
  double async;
} SimFenceCost;

// A model of multiprocessors (SMs), one for each CTA of a cluster. `resident`
// clusters run on them at once, `clusters` one after the other. Times are in
// cycles, rates in bytes per cycle and SM.
typedef struct SimMachine {
  int64_t clusters, resident;
  int64_t l1;          // bytes of L1 of each CTA
  uint64_t steps;      // maximum length of the event log
  bool events;         // collect events?
  double mma, wgmma;   // 16-bit multiply-adds per cycle and quarter
  double mma_again;    // part of an mma's time until its warp issues another
  double f64, integer, special;  // cycles of a warp's operation in a quarter:
                       // f64; integers and comparisons; special functions
  double l2, bulk;     // from L2: by threads; by TMA
  double store, fill;  // to L2; by TMA into shared memory
  double atomic;       // cost of an atomic, in stores
  double copy;         // minimum L1 cycles of a cp.async
  double peer;         // to and from another CTA's shared memory
  double cas;          // shared-memory cycles of an atomic that is implemented
                       // by compare-and-swap
  // Latencies: arithmetic, loads of shared memory, ldmatrix, mma.
  double alu, shared, matrix, tensor;
  double l1_hit, global;  // latency of an L1 hit; of L2 and memory on average
  double tma;             // additional latency of a bulk copy
  double far_shared;      // latency of another CTA's shared memory
  double swapped;         // latency of compare-and-swap in shared memory
  double barrier, start;  // latency of an mbarrier wait; of a block start
  double meet, round;     // barrier: cost of each arrival; latency of release
  double cluster;         // latency of a cluster barrier
  double loop;            // minimum time of a loop iteration of a warp
  SimFenceCost fence;
  double cluster_each;    // cost of each arrival at a cluster barrier
} SimMachine;

// What happened when, in cycles. EVENT_WARP: a warp ran from t to end.
// EVENT_BEGIN, EVENT_END: it began, or ended, a named range. EVENT_AGENT: an
// agent worked for it from t to end. `cluster` numbers the modelled clusters.
typedef enum SimEventKind {
  EVENT_WARP, EVENT_BEGIN, EVENT_END, EVENT_AGENT
} SimEventKind;
typedef struct SimEvent {
  uint8_t kind;        // SimEventKind
  uint8_t warp, cta;   // warp of its CTA; CTA of its cluster
  uint32_t cluster;
  uint32_t what;       // BEGIN, END: name, as text of the function; AGENT:
                       // source line
  const char *op;      // AGENT: operation
  double t, end;
} SimEvent;

// Units of an SM that can be busy.
typedef enum SimPipe {
  PIPE_ISSUE, PIPE_FMA, PIPE_ALU, PIPE_XU, PIPE_F64, PIPE_TENSOR,  // per
                                                                   // quarter
  PIPE_SHARED, PIPE_L1, PIPE_MEMORY, PIPE_FILL, PIPE_PEER, PIPES
} SimPipe;

// Cost of one source line, over all warps of one cluster.
typedef struct SimCost {
  uint32_t src;
  uint64_t slots;      // instructions issued
  uint64_t passes, sectors, missed;  // of shared memory; of global memory;
                                     // missed in L1
  double flops;
  double stall;        // cycles that warps waited at this line, in total
} SimCost;

typedef struct SimTiming {
  double cycles;       // until the last cluster ends
  double busy[PIPES];  // cycles on the first CTA's SM; mean of the quarters
  SimCost *cost;
  size_t ncost;
  SimEvent *event;     // in the order of discovery
  size_t nevent, maxevent;
  uint64_t steps;
  bool full;           // the event log was too short; other fields are unset
} SimTiming;

#endif
// SPDX-License-Identifier: MIT
