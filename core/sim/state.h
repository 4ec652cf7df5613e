// State of a running cluster, its CTAs and their warps. CTA k's shared memory
// starts at byte k * SimProg.smem_bytes.
#ifndef CUTE_SIMSTATE_H
#define CUTE_SIMSTATE_H

#include "sim/report.h"
#include "sim/waited.h"

typedef struct SimFrame {  // an open region
  uint32_t mask;           // lanes that become active when the region ends
  uint32_t other;          // lanes that take the other half of a branch
  uint32_t head;           // instruction that opened the region
} SimFrame;

typedef enum SimState {
  SW_RUN, SW_BARRIER, SW_MBAR, SW_CLUSTER, SW_REGISTERS, SW_TEAM, SW_DONE
} SimState;

// SIM_ROOM is the number of bytes of the largest operand of an MMA, 256 x 64 in
// f32.
enum { FENCES = 16, SIM_ROOM = 256 * 64 * 4 };

// These types are defined below, and in regs.h, mem.c, cluster.c, shadow.h,
// mbar.h, async.h ...
typedef struct SimCta SimCta;
typedef struct SimCluster SimCluster;
typedef struct SimBatch SimBatch;
typedef struct SimReach SimReach;
typedef struct SimTaint SimTaint;
typedef struct SimGran SimGran;
typedef struct SimRead SimRead;
typedef struct SimFar SimFar;
typedef struct SimLines SimLines;
typedef struct SimPages SimPages;
typedef struct SimMbar SimMbar;
typedef struct SimAsync SimAsync;
typedef struct SimSpin SimSpin;
typedef struct SimPart SimPart;
typedef struct SimTeam SimTeam;
typedef struct SimPattern SimPattern;
struct SimWarp {
  SimCluster *cluster;
  SimCta *cta;
  int id, in;              // id: number of the warp in the cluster; in: its
                           // number in its CTA
  uint32_t home;           // first byte of its CTA's shared memory
  SimState state;
  uint32_t pc, active, valid;
  uint32_t gone;           // lanes that exited the kernel early
  // lanes.c. here: lanes of the running part. waits: failed polls. tries:
  // switches between parts since memory change number `stamp`.
  uint32_t here, waits, tries;
  uint64_t stamp;
  SimPart *part;           // list of the waiting parts of a diverged warp, or
                           // NULL
  uint32_t clk;            // current epoch of the memory order, see order.c
  uint32_t depth, ring;    // depth: number of open regions; ring: executions of
                           // a patch's ring (edit.c)
  SimFrame *frame;
  char *v;                 // storage of values and registers
  uint64_t count;          // instructions executed
  uint32_t src, line;      // src: instruction at which it waits; line: last
                           // instruction (debugger)
  int bar, mbar;           // barrier, or mbarrier, at which it waits
  bool refused, polling;   // refused: the last try_wait failed by chance;
                           // polling: the last try_wait failed
  uint32_t *vc;            // vector clock: what happens before all lanes
  uint32_t seen, pending, distant, fenced;  // order.c: lanes whose rows are set
  bool level, vain;        // level: the row of lane 0 holds for all lanes;
                           // vain: its last poll failed
  uint32_t sent, started;  // sent: lanes that fenced for the GPU; started: CTAs
                           // known to run
  uint32_t committed[LANES];  // number of committed cp.async groups
  SimBatch *batch;         // cp.asyncs; those from `first` to `end` - 1 are in
                           // flight
  size_t first, end, cap;
  uint64_t batches;        // number of cp.asyncs executed so far
  uint32_t groups[BY_COUNT][LANES];  // number of committed groups of agents'
                                     // operations
  uint32_t issued;         // epoch of the warp's agent
  uint32_t teamwork;       // number of committed groups of warpgroup MMAs
  SimWaited waited[GROUPS_COUNT];  // last wait for each kind of group
  // The latest proxy fences: number k is fence[k % FENCES]. spaces: shared (1)
  // and global memory (2).
  struct { uint32_t clk, met, lanes, spaces; } fence[FENCES];  // met: vc[id]
  uint32_t nfence;
  uint32_t *proxied;       // epochs that proxy fences cover: those for shared,
                           // then those for global memory
  uint32_t met, came, passed;  // cluster barrier; met: rounds; came: lanes that
                               // arrived; passed: lanes that passed
  // wider: lanes that fenced for the cluster or wider. fresh: lanes that
  // acquired nothing since their proxy fence for shared, and for global memory.
  uint32_t wider, fresh[2];
  int registers, wanted;   // registers: registers per thread; wanted: number
                           // that setmaxnreg requests (SW_REGISTERS)
  struct { const SimIns *i; uint32_t n, clk; } allot;  // last setmaxnreg
  uint32_t *wrapped;       // for each product: lanes in which it overflowed
                           // last
  bool wraps, tainted;     // wraps: some result overflowed; tainted: see
                           // taint.c
  SimTaint *taint;         // undefined lanes of each value, by slot
  // Registers that hold the result of a division by zero, and the line of the
  // division.
  struct { const SimMem *mem; uint32_t src; } quotient;
  SimText text;            // output of printf
};

// What threads released, for threads that acquire it.
typedef struct SimPast {
  uint32_t *vc, *row;      // vc: vector clock; row: per-thread epochs, or NULL
                           // if unused
  bool rows;               // `row` is set
  uint32_t gate;           // gate of the event log (tape.h) for threads that
                           // acquire this
} SimPast;

typedef struct SimBar {
  int expected, arrived;   // expected: number of threads; arrived: number of
                           // those that arrived (0: the barrier is idle)
  uint32_t members, waiting;  // masks of warps of the CTA
  uint32_t src[MAX_WARPS], clk[MAX_WARPS];  // line and epoch of each warp's
                                            // arrival
  uint32_t before, knows;  // previous round; before: members; knows: warps that
                           // waited
  uint32_t last[MAX_WARPS];  // previous round: epochs of the arrivals
  SimPast past;
} SimBar;

struct SimCta {
  uint64_t number;         // number of the CTA, counted cluster by cluster;
                           // without clusters, in grid order
  int32_t id[3];           // position in the grid
  SimBar bar[MAX_BARS];
  int pool[4];             // free registers per lane in each SM quarter
  bool early;              // CTA let the next launch start before it waited
};

struct SimCluster {
  const SimProg *prog;
  uint32_t index;          // number of the cluster in the launch
  uint64_t rng, serial, budget, patience, mmas;
  uint64_t due;            // value of `serial` at which a loop calls
                           // simcluster_tick
  int polls;               // number of reads of unchanged global memory in this
                           // time slice
  uint64_t changed, still, since, quiet;  // counts for detecting livelocks; see
                                          // quiet_for in exec.c
  uint64_t moved, asleep;  // moved: number of memory changes (spin.h); asleep:
                           // *prog->changes when it began to wait for other
                           // clusters
  SimCluster *next;        // the cluster that began to wait after this one
  SimSpin *spin;
  struct SimTurns *turns;  // systematic schedule (turns.h)
  struct SimCauses *causes;
  int64_t unborn;          // deadlocks: number of blocks that cannot start
  bool look, hopeless;     // look: a warp may be stuck; hopeless: all clusters
                           // are stuck
  bool stop, oom, strict;  // stop: end the run; strict: notes are faults
  int max_reports;
  SimWarp *warp;           // warps of all CTAs, in CTA order
  SimCta *cta;
  uint32_t *clocks;        // vector clocks of the warps, then of the barriers
  uint8_t *smem;
  SimGran *gran;           // ngran granules, room for maxgran (shadow.h)
  uint32_t ngran, maxgran;
  SimLines *lines;         // tracked lines of global memory
  SimPages *pages;         // granules of shared memory
  // List entries of shadow.c, from 1 on. The list of granule g starts at
  // farat[g].
  SimFar *far;
  uint32_t *farat, nfar, maxfar, farfree;  // farat: NULL until needed
  SimMbar *mbar;           // mbarriers (mbar.c); NULL until needed
  uint16_t *mbarat;        // indexed by address / 8: index + 1 of the mbarrier
                           // there
  uint32_t *mbarclocks, *mbarwaits, *came;
  struct SimUse *uses;
  struct SimPassed *passed;
  int nmbar;
  uint64_t vain;           // number of failed try_waits since the last progress
  SimTeam *team;           // state of each warpgroup; NULL: the kernel has no
                           // wgmma
  SimAsync **async;        // operations in flight; landing: number of those
                           // that end at an mbarrier
  size_t nasync, maxasync, landing;
  struct SimMaps *maps;    // tensor maps made by the kernel (maps.c)
  SimPast open, done;      // releases at the cluster barrier; open: of the
                           // current round; done: of the last round
  uint32_t met;            // completed rounds of the cluster barrier
  bool meets;              // a warp has used the cluster barrier
  struct SimTape *tape;    // event log to write to, or NULL
  SimReach *reach;    // by CTA and warp: the warp's last access to the CTA's
                      // memory
  uint32_t *row, *place, *location, nplace, maxplace;  // rows of order.c, if
                                                       // needed
  SimPattern *pattern;     // two entries per statistics record: shared, global
  struct SimRequests *requests;  // recorded accesses, or NULL
  SimOut *out;
  float *tile;             // scratch for MMA operands: 4 areas of SIM_ROOM
                           // bytes
  void *lock;              // pthread_mutex_t that global atomics lock
  const bool *quit;        // set by other threads to end the run
  void (*tick)(void *ud), *tick_ud;  // called periodically, or NULL
};

#endif
// SPDX-License-Identifier: MIT
