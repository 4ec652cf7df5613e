// State of a running cluster, its CTAs and their warps. CTA k's shared memory
// starts at byte k * SimProg.smem_bytes.
#ifndef CUTE_SIMSTATE_H
#define CUTE_SIMSTATE_H

#include "sim/report.h"
#include "sim/waited.h"

typedef struct SimFrame {  // an open region
  uint32_t mask;           // lanes that are active again when it ends
  uint32_t other;          // branch: lanes that take the other half
  uint32_t head;           // instruction that opened the region
} SimFrame;

typedef enum SimState {
  SW_RUN, SW_BARRIER, SW_MBAR, SW_CLUSTER, SW_REGISTERS, SW_TEAM, SW_DONE
} SimState;

// SIM_ROOM: bytes for an operand of the largest MMA, 256 x 64 in f32.
enum { FENCES = 16, SIM_ROOM = 256 * 64 * 4 };

// Defined below, and in regs.h, mem.c, cluster.c, shadow.h, mbar.h, async.h ...
typedef struct SimCta SimCta;
typedef struct SimCluster SimCluster;
typedef struct SimBatch SimBatch;
typedef struct SimReach SimReach;
typedef struct SimTaint SimTaint;
typedef struct SimGran SimGran;
typedef struct SimRead SimRead;
typedef struct SimFar SimFar;
typedef struct SimLines SimLines;
typedef struct SimMbar SimMbar;
typedef struct SimAsync SimAsync;
typedef struct SimSpin SimSpin;
typedef struct SimPart SimPart;
typedef struct SimTeam SimTeam;
typedef struct SimPattern SimPattern;
struct SimWarp {
  SimCluster *cluster;
  SimCta *cta;
  int id, in;              // number in the cluster; in its CTA
  uint32_t home;           // first byte of its CTA's shared memory
  SimState state;
  uint32_t pc, active, valid;
  uint32_t gone;           // lanes that exited the kernel early
  // lanes.c: lanes of the running part; failed polls; switches between parts
  // since memory change number `stamp`.
  uint32_t here, waits, tries;
  uint64_t stamp;
  SimPart *part;           // the waiting parts of a diverged warp, or NULL
  uint32_t clk;            // current epoch of the memory order, see order.c
  uint32_t depth, ring;    // region depth; visits of a ring of edit.c
  SimFrame *frame;
  char *v;                 // values
  uint64_t count;          // instructions executed
  uint32_t src, line;      // where it waits; last instruction (debugger)
  int bar, mbar;           // barrier, mbarrier that it waits at
  bool refused, polling;   // last try_wait failed by chance; last one failed
  uint32_t *vc;            // vector clock: what happens before all lanes
  uint32_t seen, pending, distant, fenced;  // order.c: lanes whose rows are set
  bool level, vain;        // level: one row for all lanes; vain: poll failed
  uint32_t sent, started;  // lanes fenced for the GPU; CTAs known to run
  uint32_t committed[LANES];  // cp.async groups
  SimBatch *batch;         // batches [first, end) are in flight
  size_t first, end, cap;
  uint64_t batches;        // number ever created
  uint32_t groups[BY_COUNT][LANES];  // committed groups of agents' operations
  uint32_t issued;         // epoch of its agent
  uint32_t teamwork;       // committed groups of warpgroup MMAs
  SimWaited waited[GROUPS_COUNT];  // waits.h
  // Proxy fence k, for shared (1) and global memory (2), is fence[k % FENCES].
  struct { uint32_t clk, met, lanes, spaces; } fence[FENCES];  // met: vc[id]
  uint32_t nfence;
  uint32_t *proxied;       // epochs fenced for agents: in shared, in global
  uint32_t met, came, passed;  // cluster barrier: rounds; lanes arrived; passed
  // Lanes fenced for the cluster or wider; lanes that acquired nothing since
  // their proxy fence for shared, and for global memory.
  uint32_t wider, fresh[2];
  int registers, wanted;   // of a thread; SW_REGISTERS: requested count
  struct { const SimIns *i; uint32_t n, clk; } allot;  // last setmaxnreg
  uint32_t *wrapped;       // of each product: lanes that overflowed last
  bool wraps, tainted;     // wraps: some overflowed; tainted: see taint.c
  SimTaint *taint;         // undefined lanes of the values, by slot
  // Registers that hold the result of a division by zero, and its line.
  struct { const SimMem *mem; uint32_t src; } quotient;
  SimText text;            // output of printf
};

// A released past, for threads that acquire it.
typedef struct SimPast {
  uint32_t *vc, *row;      // vector clock; per-thread epochs (NULL: unused)
  bool rows;               // row is set
  uint32_t gate;           // gate of the event log (tape.h) that they pass
} SimPast;

typedef struct SimBar {
  int expected, arrived;   // threads; arrived 0: idle
  uint32_t members, waiting;  // warps of the CTA
  uint32_t src[MAX_WARPS], clk[MAX_WARPS];  // of each warp's arrival
  uint32_t before, knows;  // previous round: members; warps that waited
  uint32_t last[MAX_WARPS];  // previous round: epochs of the arrivals
  SimPast past;
} SimBar;

struct SimCta {
  uint64_t number;         // cluster by cluster; without clusters: grid order
  int32_t id[3];           // position in the grid
  SimBar bar[MAX_BARS];
  int pool[4];             // free registers per lane in each SM quarter
  bool early;              // let the next launch start before it waited
};

struct SimCluster {
  const SimProg *prog;
  uint32_t index;          // index in the launch
  uint64_t rng, serial, budget, patience, mmas;
  uint64_t due;            // serial at which a loop calls simcluster_tick
  int polls;               // unchanged global memory read this time slice
  uint64_t changed, still, since, quiet;  // livelock: quiet_for in exec.c
  uint64_t moved, asleep;  // memory changes (spin.h); *prog->changes when it
                           // began to wait for other clusters
  SimCluster *next;        // the cluster that began to wait after this one
  SimSpin *spin;
  struct SimTurns *turns;  // turns.h
  struct SimCauses *causes;
  int64_t unborn;          // deadlocks: blocks that cannot start
  bool look, hopeless;     // a warp may be stuck; all clusters are stuck
  bool stop, oom, strict;  // stop: end the run; strict: notes are faults
  int max_reports;
  SimWarp *warp;           // of all CTAs, in CTA order
  SimCta *cta;
  uint32_t *clocks;        // vector clocks of the warps, then of the barriers
  uint8_t *smem;
  SimGran *gran;           // ngran granules, room for maxgran (shadow.h)
  uint32_t ngran, maxgran;
  SimLines *lines;         // tracked lines of global memory
  SimRead *read;           // (granule, warp of its CTA): last read
  // shadow.c: list entries from 1 on; granule g's list starts at farat[g].
  SimFar *far;
  uint32_t *farat, nfar, maxfar, farfree;  // farat: NULL until needed
  SimMbar *mbar;           // mbar.c; NULL until needed
  uint16_t *mbarat;        // by address / 8: index + 1 of its mbarrier
  uint32_t *mbarclocks, *mbarwaits, *came;
  struct SimUse *uses;
  struct SimPassed *passed;
  int nmbar;
  uint64_t vain;           // failed try_waits since the last progress
  SimTeam *team;           // of each warpgroup; NULL: no wgmma in the kernel
  SimAsync **async;        // in flight; landing: those that end at an mbarrier
  size_t nasync, maxasync, landing;
  struct SimMaps *maps;    // maps.c: tensor maps made by the kernel
  SimPast open, done;      // cluster barrier: this round, the last one
  uint32_t met;            // completed rounds
  bool meets;              // a warp has used the cluster barrier
  struct SimTape *tape;    // event log to write to, or NULL
  SimReach *reach;    // (CTA, warp): its last access to that CTA's memory
  uint32_t *row, *place, *location, nplace, maxplace;  // order.c, if needed
  SimPattern *pattern;     // two per statistics record: shared, global
  struct SimRequests *requests;  // recorded accesses, or NULL
  SimOut *out;
  float *tile;             // scratch for MMA operands: 4 of SIM_ROOM bytes
  void *lock;              // pthread_mutex_t of global atomics
  const bool *quit;        // set by other threads: give up
  void (*tick)(void *ud), *tick_ud;  // called periodically, or NULL
};

#endif
// SPDX-License-Identifier: MIT
