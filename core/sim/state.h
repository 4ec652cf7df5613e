// The state of a CTA and of its warps while they run.
#ifndef CUTE_SIMSTATE_H
#define CUTE_SIMSTATE_H

#include "sim/report.h"

// STRONG: written by an atomic or with an order; RELEASED: and what that
// carries is kept.
enum { GF_DEFINED = 1, GF_PENDING = 2, GF_STRONG = 4, GF_RELEASED = 8 };
typedef struct SimGran {   // the last write, and who read since
  uint32_t clk, src, lanes;
  uint32_t readers;        // warps
  uint8_t warp, flags;
} SimGran;
typedef struct SimRead {   // of one warp: its last reads since the write,
  uint32_t clk, lanes;     // weak ones where there are any
  uint32_t src : 30, weak : 1, strong : 1;  // kinds of reads since the write
} SimRead;

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
struct SimWarp {
  SimCta *cta;
  int id;
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
  uint32_t vc[MAX_WARPS];  // what is ordered before all lanes; order.c:
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

typedef struct SimBar {
  int expected, arrived;   // threads; arrived 0: idle
  uint32_t members, waiting;  // warps
  uint32_t src[MAX_WARPS];
  uint32_t vc[MAX_WARPS];
  bool rows, late;         // its row holds something; see SimWarp
} SimBar;

typedef struct SimPattern {  // the last address pattern and its answer
  uint32_t mask;
  uint32_t rel[LANES];
  int32_t x, y;
} SimPattern;

// What a finished CTA hands over.
typedef struct SimOut {
  struct SimOut *next;
  uint64_t cta;
  SimFault *fault;
  uint32_t nfault;
  SimStat *stat;
  uint64_t instructions, mmas;
  SimText text;            // printed
} SimOut;

struct SimCta {
  const SimProg *prog;
  uint64_t index;
  int32_t id[3];
  uint64_t rng, serial, budget, mmas;
  bool stop, oom;          // stop: nothing more to learn of this CTA
  int max_reports;
  SimWarp *warp;
  SimBar bar[MAX_BARS];
  uint8_t *smem;
  SimGran *gran;
  SimRead *read;           // (granule, warp): where a reader is
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
