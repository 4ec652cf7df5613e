// State of a running cluster, its CTAs and their warps. The shared memory of
// the CTA with rank k starts at byte k * SimProg.smem_bytes.
#ifndef CUTE_SIMSTATE_H
#define CUTE_SIMSTATE_H

#include "sim/report.h"
#include "sim/waited.h"

typedef struct SimFrame {  // an open region (branch or loop) of a warp
  uint32_t mask;           // lanes that become active when the region ends
  uint32_t other;          // lanes that execute the other half of a branch
  uint32_t head;           // instruction that opened the region
} SimFrame;

typedef enum SimState {
  SW_RUN, SW_BARRIER, SW_MBAR, SW_CLUSTER, SW_REGISTERS, SW_TEAM, SW_TMEM,
  SW_DONE
} SimState;

// SIM_ROOM: bytes of the largest operand of an MMA, 256 x 64 in f32. SIM_ROOMS:
// number of buffers of this size.
enum { SIM_ROOM = 256 * 64 * 4, SIM_ROOMS = 6 };

// Operands of MMAs in the form that mma_multiply needs (matrix.c). `row` is the
// AtomMma that uses them. `filled` is the mask of the slots in use.
typedef struct SimPrepared {
  const void *row;
  uint64_t filled;
} SimPrepared;

// Types that are defined below or in other files.
typedef struct SimCta SimCta;
typedef struct SimCluster SimCluster;
typedef struct SimBatch SimBatch;
typedef struct SimTaint SimTaint;
typedef struct SimMbar SimMbar;
typedef struct SimAsync SimAsync;
typedef struct SimPart SimPart;
typedef struct SimTeam SimTeam;
typedef struct SimPattern SimPattern;
// The last poll of a warp. `stuck` is true if the warp returned to an earlier
// state while memory was unchanged, so that it will repeat this state forever.
typedef struct SimPoll {
  // stamp: result of simmem_stamp at the poll. hash: hash of the warp's state
  // at the poll.
  uint64_t stamp, hash;
  // asked: number of polls since memory last changed. pc: index of the polling
  // instruction.
  uint32_t asked, pc;
  bool stuck;
  const SimIns *i;
  // m: memory object that the warp polls. lane: a lane that polls it. at: byte
  // offset in the object that this lane polls.
  const SimMem *m;
  int lane;
  int64_t at;
  uint32_t home;  // shared memory: first byte of the CTA that owns m
} SimPoll;

struct SimWarp {
  SimCluster *cluster;
  SimCta *cta;
  // records of the checks (hooks.h); the index is the check's number
  void *own[SIM_OWNERS];
  // id: number of the warp in the cluster. in: number of the warp in its CTA.
  int id, in;
  uint32_t home;  // first byte of the shared memory of the warp's CTA
  SimState state;
  uint32_t pc, active, valid;
  uint32_t gone;           // lanes that exited the kernel early
  // State of divergence.c for a diverged warp. The lanes of such a warp are
  // split into parts, which run alternately. `here` is the mask of the lanes of
  // the running part, and `waits` its number of failed polls. `tries` is the
  // number of switches between parts since simmem_stamp returned `stamp`.
  // `part` is the list of the parts that do not run; NULL: there are none.
  struct {
    uint32_t here, waits, tries;
    uint64_t stamp;
    SimPart *part;
  } split;
  SimPoll poll;            // last poll of memory (livelock.c)
  uint32_t clk;            // current epoch (hb_cluster.c)
  // depth: number of open branches and loops. ring: how many times the warp
  // used the ring of mbarriers that the kernel's patches add (patch.h).
  uint32_t depth, ring;
  SimFrame *frame;
  char *v;                 // storage of registers and values
  uint64_t count;          // number of executed instructions
  // src: line at which the warp waits. line: line that the warp executed last,
  // for the debugger.
  uint32_t src, line;
  // bar, mbar: numbers of the barrier and of the mbarrier at which the warp
  // waits or last waited. mbar is -1 before the first wait.
  int bar, mbar;
  // polling: the last try_wait failed. refused: it failed only because the
  // simulator lets some polls fail at random. vain: the current step only
  // repeats a failed poll (core/explore/), so the checks ignore its accesses.
  bool polling, refused, vain;
  // The warp's cp.asyncs: entries `first` to `end` - 1 of `batch` are in
  // flight. committed: for each lane, number of committed groups. count: number
  // of cp.asyncs executed so far.
  struct {
    uint32_t committed[LANES];
    SimBatch *batch;
    size_t first, end, cap;
    uint64_t count;
  } copies;
  // Asynchronous operations of the warp. groups: for each lane, number of
  // committed bulk groups. issued: current epoch of these operations in the
  // vector clocks. teamwork: number of committed groups of warpgroup MMAs.
  struct { uint32_t groups[LANES], issued, teamwork; } agents;
  // Cluster barrier. met: number of completed rounds. came: lanes that arrived.
  // passed: lanes that may pass.
  struct { uint32_t met, came, passed; } round;
  // n: registers of a thread. wanted: registers that a waiting setmaxnreg
  // requests (SW_REGISTERS). allot: the last setmaxnreg (i), the number of
  // setmaxnregs so far (n), and the epoch of the last one (clk).
  struct {
    int n, wanted;
    struct { const SimIns *i; uint32_t n, clk; } allot;
  } regs;
  // lanes: for each result that may overflow, the lanes in which its last value
  // overflowed. some: whether any result overflowed.
  struct { uint32_t *lanes; bool some; } wraps;
  // Undefined values (undefined.c).
  // - value: for each value, by slot, the lanes in which it is undefined.
  // - some: whether there are undefined values.
  // - quotient.mem: registers that hold the result of a division by zero.
  // - quotient.src: line of that division.
  struct {
    SimTaint *value;
    bool some;
    struct { const SimMem *mem; uint32_t src; } quotient;
  } taints;
  SimText text;            // output of printf
};

// Accesses that threads released, as vector clocks, for threads that acquire.
typedef struct SimPast {
  // `vc` is a vector clock with an epoch for each actor (decode/actors.h).
  // `row` has an epoch for each thread (hb_cluster.c), or is NULL.
  uint32_t *vc, *row;
  bool rows;               // whether `row` is in use
  // gate (barrier round or mbarrier phase) of the event log (event_log.h) for
  // threads that acquire this SimPast
  uint32_t gate;
} SimPast;

typedef struct SimBar {
  // expected: number of threads that the round needs. arrived: number of
  // threads that arrived (0: no round is open).
  int expected, arrived;
  // members: mask of the CTA's warps that arrived. waiting: mask of those that
  // wait.
  uint32_t members, waiting;
  // for each warp: line and epoch of its arrival
  uint32_t src[MAX_WARPS], clk[MAX_WARPS];
  // masks of the previous round's warps: arrived (before), and waited (knows)
  uint32_t before, knows;
  // for each warp: epoch of its arrival in the previous round
  uint32_t last[MAX_WARPS];
  SimPast past;
} SimBar;

struct SimCta {
  // number of the CTA, counted cluster by cluster or, without clusters, in grid
  // order
  uint64_t number;
  int32_t id[3];           // the CTA's position in the grid
  SimBar bar[MAX_BARS];
  int pool[4];  // for each of the SM's four quarters: free registers per lane
  // whether the CTA let the next launch start before it waited for the
  // preceding launch
  bool early;
};

struct SimCluster {
  const SimProg *prog;
  const struct SimHooks *hooks;  // prog->hooks
  uint32_t index;          // index of the cluster in the launch
  uint64_t rng, serial, mmas;
  // due: value of `serial` at which simexec_tick is called next. spent: the
  // instructions up to this value of `serial` have been subtracted from the
  // instruction budget (base/guard.h). cut: the source line at which the
  // cluster was stopped; 0: none.
  struct { uint64_t due, spent; uint32_t cut; } beat;
  // changed: number of changes of memory. moved: number of changes for which a
  // warp may wait: of memory, barriers, mbarriers and free tensor memory.
  uint64_t changed, moved;
  // Counters to detect livelocks (quiet_for in exec.c). polls: number of reads
  // of unchanged global memory in this time slice. vain: number of failed
  // try_waits since a warp last progressed. look: whether a warp may be stuck.
  struct {
    uint64_t still, since, quiet, vain;
    int polls;
    bool look;
  } calm;
  // State of a cluster that waits for other clusters.
  // - since: value of prog->common->changes when it began to wait.
  // - next: the cluster that began to wait after this one.
  // - hopeless: whether all clusters are stuck.
  // - unborn: number of blocks that can never start.
  struct {
    uint64_t since;
    SimCluster *next;
    bool hopeless;
    int64_t unborn;
  } sleep;
  // stop: the run must end. oom: memory is exhausted.
  bool stop, oom;
  SimWarp *warp;           // warps of all CTAs, in CTA order
  SimCta *cta;
  uint32_t *clocks;        // vector clocks of the barriers
  uint8_t *smem;
  // records of the checks (hooks.h); the index is the check's number
  void *own[SIM_OWNERS];
  // p: the n mbarriers (mbar.c); NULL: the cluster has created none yet. at:
  // for each 8 bytes of shared memory, 1 + index in p of the mbarrier there.
  struct {
    SimMbar *p;
    uint16_t *at;
    uint32_t *clocks, *waits, *came;
    struct SimUse *uses;
    struct SimPassed *passed;
    int n;
  } mbars;
  SimTeam *team;  // warpgroups (wgmma.c); NULL: the kernel has no wgmma
  struct SimTensors *tensors;  // tensor memory (tcgen05.c), or NULL
  // The n pending asynchronous operations. landing: number of pending
  // operations that end at an mbarrier.
  struct { SimAsync **p; size_t n, max, landing; } agents;
  struct SimMaps *maps;    // tensor maps made by the kernel (tensormap_ops.c)
  // The cluster barrier. open, done: clocks that the threads acquire in the
  // current and in the last round. met: number of completed rounds. meets:
  // whether a warp has used the barrier.
  struct {
    SimPast open, done;
    uint32_t met;
    bool meets;
  } round;
  const struct SimSteps *steps;  // scheduler (steps.h), or NULL
  struct SimTurns *turns;    // state of the scheduler
  struct SimCauses *causes;
  const struct SimLog *log;  // writer of the event log (log.h), or NULL
  struct SimTape *tape;      // the event log, or NULL
  // for each statistics record: one entry for shared and one for global memory
  SimPattern *pattern;
  struct SimRequests *requests;  // recorded accesses, or NULL
  // whether this cluster asked to cancel another cluster, and was refused
  bool refused;
  SimOut *out;
  // Scratch for operands of MMAs. `rooms` is the allocation. `tile` points to
  // SIM_ROOMS buffers of SIM_ROOM bytes, 64-byte aligned. `kept` describes the
  // operands A and B that are kept for later MMAs.
  struct { char *rooms, *tile; SimPrepared kept[2]; } mma;
  // Data of the run.
  // - lock: pthread_mutex_t that atomics on global memory lock.
  // - quit: flag that other threads set to end the run.
  // - tick: function that is called from time to time; NULL: none.
  // - strict: notes are faults.
  // - budget: instructions after which a warp is reported as endless.
  // - patience: the same for a cluster, since memory last changed.
  // - cancel: takes the next cluster of the grid that has not started, and sets
  //   *index to its index. It may refuse at any time by returning false.
  struct {
    void *lock;
    const bool *quit;
    void (*tick)(void *ud), *tick_ud;
    bool (*cancel)(void *run, struct SimCluster *c, uint64_t *index);
    void *run;
    int max_reports;
    bool strict;
    uint64_t budget, patience;
  } host;
};

#endif
// SPDX-License-Identifier: MIT
