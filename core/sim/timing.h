// How long a launch takes on multiprocessors that are not there: what the model
// (clock.c) is told of them, and what it says.
#ifndef CUTE_SIMTIMING_H
#define CUTE_SIMTIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Cycles of fences until a warp goes on; each: a warp's share of an SM's.
typedef struct SimFenceCost {
  double cta, cta_each;
  double gpu, gpu_each;
  double sys, sys_each;
  double async;
} SimFenceCost;

// A model of multiprocessors (SMs): one for each CTA of a cluster, on which
// `resident` clusters run at once, `clusters` in turn. Times in cycles, rates
// in bytes a cycle of an SM.
typedef struct SimMachine {
  int64_t clusters, resident;
  int64_t l1;          // bytes of L1, each CTA's
  uint64_t steps;      // of the tape, at most
  bool events;         // are they to be told?
  double mma, wgmma;   // multiply-adds of 16 bits a cycle, of a quarter
  double mma_again;    // of an mma's own, until its warp issues the next
  double f64, integer, special;  // cycles of a warp's operation in a quarter:
                       // f64; integers, comparisons; special functions
  double l2, bulk;     // from L2: of threads, of TMA
  double store, fill;  // to L2; of TMA into shared memory
  double atomic;       // times as long as a store takes an atomic
  double copy;         // cycles of L1 that a cp.async takes at least
  double peer;         // of another CTA's shared memory
  double cas;          // cycles of shared memory that an atomic by
                       // compare-and-swap takes
  double alu, shared, matrix, tensor;  // until a result is there: of
  double l1_hit, global;  // arithmetic, loads, ldmatrix, an mma; of L1, of L2
  double tma;             // and of memory in the mean; of a bulk copy besides
  double far_shared;      // of another CTA's shared memory
  double swapped;         // of a compare-and-swap in shared memory
  double barrier, start;  // on from an mbarrier; until a block begins
  double meet, round;     // each warp at a barrier; on from the last one
  double cluster;         // on from a cluster's barrier
  double loop;            // least time of a warp's pass of a loop
  SimFenceCost fence;
  double cluster_each;    // a share of arrivals at a cluster's barrier
} SimMachine;

// What happened when, in cycles: a warp of a CTA, of the clusters that were
// played number `cluster`, ran from t to end; it began a range, and ended one;
// an agent worked for it.
typedef enum SimEventKind {
  EVENT_WARP, EVENT_BEGIN, EVENT_END, EVENT_AGENT
} SimEventKind;
typedef struct SimEvent {
  uint8_t kind;        // SimEventKind
  uint8_t warp, cta;   // of its cluster
  uint32_t cluster;
  uint32_t what;       // BEGIN, END: text of the function; AGENT: source line
  const char *op;      // AGENT: what it does
  double t, end;
} SimEvent;

// What an SM was busy with.
typedef enum SimPipe {
  PIPE_ISSUE, PIPE_FMA, PIPE_ALU, PIPE_XU, PIPE_F64, PIPE_TENSOR,  // quarters'
  PIPE_SHARED, PIPE_L1, PIPE_MEMORY, PIPE_FILL, PIPE_PEER, PIPES
} SimPipe;

// Of one source line, of all warps of one cluster.
typedef struct SimCost {
  uint32_t src;
  uint64_t slots;      // instructions issued
  uint64_t passes, sectors, missed;  // of shared memory; of global, past L1
  double flops;
  double stall;        // cycles that warps waited there, of all that ran
} SimCost;

typedef struct SimTiming {
  double cycles;       // until the last cluster has ended
  double busy[PIPES];  // cycles, of the first CTA's SM, of a quarter's mean
  SimCost *cost;
  size_t ncost;
  SimEvent *event;     // in the order in which they were found
  size_t nevent, maxevent;
  uint64_t steps;
  bool full;           // the tape was too short: nothing else is known
} SimTiming;

#endif
