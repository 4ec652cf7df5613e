// The state of a cluster, of its CTAs and their warps while they run. Threads
// of a cluster see each other's shared memory: here it is one piece, CTA k's
// from k * SimProg.smem_bytes on. Without clusters a CTA is one of its own.
#ifndef CUTE_SIMSTATE_H
#define CUTE_SIMSTATE_H

#include "sim/report.h"

// STRONG: written by an atomic or with an order; RELEASED: and what that
// carries is kept. FAR: read from elsewhere, too.
enum { GF_DEFINED = 1, GF_PENDING = 2, GF_STRONG = 4, GF_RELEASED = 8,
       GF_FAR = 16 };
typedef struct SimGran {   // the last write, and who read since
  uint32_t clk, src, lanes;
  uint32_t readers;        // warps of its CTA
  uint16_t warp;           // of the cluster
  uint8_t flags;
} SimGran;
typedef struct SimRead {   // of one warp: its last reads since the write,
  uint32_t clk, lanes;     // weak ones where there are any
  uint32_t src : 30, weak : 1, strong : 1;  // kinds of reads since the write
} SimRead;
typedef struct SimFar {    // reads by an actor of no warp of the CTA
  uint32_t next;
  int actor;
  SimRead read;
} SimFar;

typedef struct SimBatch {  // one cp.async instruction on its way
  uint32_t mask;           // lanes still in flight
  uint32_t open;           // lanes that did not commit it yet
  uint32_t src;
  uint32_t bytes;
  uint32_t group[LANES];
  uint32_t dst[LANES];     // byte offset in shared memory
  uint8_t data[LANES][16];
} SimBatch;

typedef struct SimFrame {  // of an open region
  uint32_t mask;           // lanes that are here when it ends
  uint32_t other;          // a branch: those that its other half is for
  uint32_t head;           // the instruction that opened it
} SimFrame;

typedef struct SimTaint {  // lanes in which a value is undefined, and the
  uint32_t mask, src;      // read of registers where that came from
  int32_t mem;
  uint32_t elem;
} SimTaint;

typedef enum SimState {
  SW_RUN, SW_BARRIER, SW_DONE
} SimState;

typedef struct SimCta SimCta;
typedef struct SimCluster SimCluster;
struct SimWarp {
  SimCluster *cluster;
  SimCta *cta;
  int id, in;              // number in the cluster, in its CTA
  uint32_t home;           // its CTA's first byte of shared memory
  SimState state;
  uint32_t pc, active, valid;
  uint32_t gone;           // lanes that left the kernel before its end
  uint32_t clk;            // epoch of memory order, see order.c
  uint32_t depth;
  SimFrame *frame;
  char *v;                 // values
  uint64_t count;          // instructions executed
  uint32_t src;            // where it waits or ended
  int bar;                 // barrier it waits at
  uint32_t *vc;            // what is ordered before all lanes; order.c:
  uint32_t seen, pending, fenced;  // lanes whose rows hold something
  bool level;              // ... all lanes the same
  uint32_t late;           // lanes after an acquire from other CTAs
  uint32_t unfenced, sent; // ... but for a fence; after a fence for them
  uint32_t committed[LANES];  // cp.async groups
  SimBatch *batch;         // batches [first, end) are in flight
  size_t first, end, cap;
  bool tainted;            // an undefined register was read: see taint.c
  SimTaint *taint;         // of the values, by slot
  SimText text;            // printed
};

// What is ordered before those who come to take it.
typedef struct SimPast {
  uint32_t *vc, *row;      // row: NULL until needed
  bool rows, late;         // its row holds something; see SimWarp
} SimPast;

typedef struct SimBar {
  int expected, arrived;   // threads; arrived 0: idle
  uint32_t members, waiting;  // warps of the CTA
  uint32_t src[MAX_WARPS];
  SimPast past;
} SimBar;

struct SimCta {
  uint64_t number;         // in the order of clusters; in the grid where a
  int32_t id[3];           // cluster is one CTA
  SimBar bar[MAX_BARS];
};

typedef struct SimPattern {  // the last address pattern and its answer
  uint32_t mask;
  uint32_t rel[LANES];
  int32_t x, y;
} SimPattern;

// What a finished cluster hands over.
typedef struct SimOut {
  struct SimOut *next;
  uint64_t cluster;
  SimFault *fault;
  uint32_t nfault;
  SimStat *stat;
  uint64_t instructions, mmas;
  SimText text;            // printed
} SimOut;

struct SimCluster {
  const SimProg *prog;
  uint64_t rng, serial, budget, mmas;
  uint64_t told;           // when tick was called
  int polls;               // global memory asked and unchanged, this turn
  bool stop, oom;          // stop: nothing more to learn of this cluster
  int max_reports;
  SimWarp *warp;           // of all CTAs, CTA by CTA
  SimCta *cta;
  uint32_t *clocks;        // of the warps, then of the barriers
  uint8_t *smem;
  SimGran *gran;
  SimRead *read;           // (granule, warp of its CTA): where a reader is
  SimFar *far;             // shadow.c: from 1 on; those of a granule begin at
  uint32_t *farat, nfar, maxfar, farfree;  // farat; NULL until needed
  uint32_t *row, *place, *location;  // order.c: NULL until needed
  uint32_t nplace, maxplace;
  bool global;             // something was released to global memory
  SimPattern *pattern;     // two per statistics record: shared, global
  SimOut *out;
  float *tile;             // scratch of MMA operands
  void *lock;              // pthread_mutex_t of global atomics
  const bool *quit;        // set by others: give up
  void (*tick)(void *ud);  // called now and then, or NULL
  void *tick_ud;
};

#endif
