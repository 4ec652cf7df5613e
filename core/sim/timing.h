// Input and output of the cost model (cost_model.c): the multiprocessors to
// model, and the estimated time of a launch on them.
#ifndef CUTE_SIMTIMING_H
#define CUTE_SIMTIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Costs of a fence in cycles. cta, gpu, sys, async: latency until the warp
// continues. cta_each, gpu_each, sys_each: time of the SM for each warp's
// fence.
typedef struct SimFenceCost {
  double cta, cta_each;
  double gpu, gpu_each;
  double sys, sys_each;
  double async;
} SimFenceCost;

// The GPU to model. It has as many multiprocessors (SMs) as a cluster has CTAs.
// `resident` clusters run on them at a time, and `clusters` is the total number
// of clusters. Times are in cycles, rates in bytes per cycle and SM.
typedef struct SimMachine {
  int64_t clusters, resident;
  int64_t l1;          // bytes of each CTA's L1
  uint64_t steps;      // maximum number of steps in the event log
  bool events;         // whether to collect events
  double mma, wgmma;   // 16-bit multiply-adds per cycle and quarter of the SM
  double mma_f4;  // FMAs per cycle of mma instructions with packed 4-bit floats
  // multiply-adds of tcgen05.mma per cycle and quarter of the SM: of 16-bit
  // floats, of integers, of packed 4-bit floats
  double tcgen05, tcgen05_i8, tcgen05_f4;
  // fraction of an mma's time after which the warp may issue its next mma
  double mma_again;
  // cycles for which one warp instruction occupies its quarter of the SM. f64:
  // f64 arithmetic. integer: integer arithmetic or a comparison. special: a
  // special function.
  double f64, integer, special;
  double l2, bulk;     // rates of loads from L2 by threads, and by TMA
  // rates of stores to L2, and of writes to shared memory by TMA
  double store, fill;
  // cost of an atomic in global memory, as a multiple of the cost of a store
  double atomic;
  double copy;         // minimum number of L1 cycles of a cp.async
  double peer;         // rate to and from shared memory of another CTA
  // shared-memory cycles of an atomic that a compare-and-swap loop implements
  double cas;
  // Latencies: of arithmetic, of loads from shared memory, of ldmatrix, of mma.
  double alu, shared, matrix, tensor;
  // l1_hit: latency of an L1 hit. global: average latency of L2 and memory.
  double l1_hit, global;
  double tma;             // latency that a bulk copy adds
  double far_shared;      // latency of shared memory of another CTA
  double swapped;         // latency of a compare-and-swap in shared memory
  // latencies of a wait at an mbarrier (barrier), of the start of a block
  // (start)
  double barrier, start;
  // Barriers of a block. meet: cost of each arrival. round: latency from the
  // last arrival until the waiting warps continue.
  double meet, round;
  double cluster;         // latency of a cluster barrier
  double loop;            // minimum time of a warp's loop iteration
  SimFenceCost fence;
  double cluster_each;    // cost of each arrival at a cluster barrier
} SimMachine;

// An event of the estimate; times are in cycles. EVENT_WARP: a warp ran from t
// to end. EVENT_BEGIN, EVENT_END: the warp began or ended a named range.
// EVENT_AGENT: an asynchronous operation that the warp started ran from t to
// end. `cluster` is the number of the modelled cluster.
typedef enum SimEventKind {
  EVENT_WARP, EVENT_BEGIN, EVENT_END, EVENT_AGENT
} SimEventKind;
typedef struct SimEvent {
  uint8_t kind;        // a SimEventKind
  // warp: number of the warp in its CTA. cta: rank of the CTA in the cluster.
  uint8_t warp, cta;
  uint32_t cluster;
  // BEGIN, END: name of the range, an index into Fn.text; AGENT: source line
  uint32_t what;
  const char *op;      // AGENT: name of the operation
  double t, end;
} SimEvent;

// Units of an SM whose busy cycles are counted.
typedef enum SimPipe {
  // Each quarter of an SM has the six units PIPE_ISSUE to PIPE_TENSOR. The
  // other units exist once per SM.
  PIPE_ISSUE, PIPE_FMA, PIPE_ALU, PIPE_XU, PIPE_F64, PIPE_TENSOR,
  PIPE_SHARED, PIPE_L1, PIPE_MEMORY, PIPE_FILL, PIPE_PEER, PIPES
} SimPipe;

// Cost of one source line, summed over all warps of one cluster.
typedef struct SimCost {
  uint32_t src;
  uint64_t slots;      // number of issue slots of the line's instructions
  // passes of shared memory, sectors of global memory, sectors that missed L1
  uint64_t passes, sectors, missed;
  double flops;
  double stall;  // cycles that warps waited at the line, summed over all warps
} SimCost;

typedef struct SimTiming {
  double cycles;       // time at which the last cluster ends
  // busy cycles of the first CTA's SM; for units of quarters, their mean
  double busy[PIPES];
  SimCost *cost;
  size_t ncost;
  SimEvent *event;     // events, in the order in which the model found them
  size_t nevent, maxevent;
  uint64_t steps;
  // whether the event log was too short for the run; the other fields are then
  // not set
  bool full;
} SimTiming;

#endif
// SPDX-License-Identifier: MIT
