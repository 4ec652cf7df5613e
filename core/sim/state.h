// State of a running cluster, its CTAs and their warps. The shared memory of
// the CTA with rank k starts at byte k * SimProg.smem_bytes.
#ifndef CUTE_SIMSTATE_H
#define CUTE_SIMSTATE_H

#include "sim/report.h"
#include "sim/waited.h"

typedef struct SimFrame {  // an open region of a warp
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

// Prepared operands of MMAs (matrix.c): the AtomMma to which they belong, and
// the mask of the slots in use.
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
// The last poll of a warp. stuck: the warp has returned to an earlier state
// while memory is unchanged, so it will return to this state again and again.
typedef struct SimPoll {
  // stamp: number of memory changes before the poll. hash: hash of the warp's
  // state.
  uint64_t stamp, hash;
  // asked: number of polls since memory last changed. pc: index of the polling
  // instruction.
  uint32_t asked, pc;
  bool stuck;
  const SimIns *i;
  // memory object that the warp polls; lane that polls it; byte offset of that
  // lane's access in the object
  const SimMem *m;
  int lane;
  int64_t at;
  uint32_t home;           // shared memory: first byte of the CTA's memory
} SimPoll;

struct SimWarp {
  SimCluster *cluster;
  SimCta *cta;
  // state of listeners (hooks.h), by their numbers
  void *own[SIM_OWNERS];
  // id: number of the warp in the cluster. in: number of the warp in its CTA.
  int id, in;
  uint32_t home;  // first byte of the shared memory of the warp's CTA
  SimState state;
  uint32_t pc, active, valid;
  uint32_t gone;           // lanes that exited the kernel early
  // State of divergence.c for a diverged warp, whose lanes are split into parts
  // of which one runs. `here` is the mask of the lanes of the running part.
  // `waits` is the number of failed polls. `tries` is the number of switches
  // between parts since memory change number `stamp`. `part` is the list of the
  // parts that do not run; NULL: no such parts.
  struct {
    uint32_t here, waits, tries;
    uint64_t stamp;
    SimPart *part;
  } split;
  SimPoll poll;            // last poll of memory (livelock.c)
  uint32_t clk;            // current epoch (hb_cluster.c)
  // depth: number of open regions. ring: number of times that patches used
  // their ring of mbarriers (patch.h).
  uint32_t depth, ring;
  SimFrame *frame;
  char *v;                 // storage of registers and values
  uint64_t count;          // number of executed instructions
  // src: line at which the warp waits. line: last line that the warp executed
  // (for the debugger).
  uint32_t src, line;
  // Number of the barrier, or mbarrier, of the warp's current or last wait.
  // mbar is -1 before the first wait.
  int bar, mbar;
  // polling: the last try_wait failed. refused: it failed only because the
  // simulator makes some polls fail at random. vain: the current step only
  // repeats a failed poll (core/explore/), so that checks ignore its accesses.
  bool polling, refused, vain;
  // cp.asyncs, of which those with indices `first` to `end` - 1 are in flight.
  // committed: for each lane, number of committed groups. count: number of
  // cp.asyncs executed so far.
  struct {
    uint32_t committed[LANES];
    SimBatch *batch;
    size_t first, end, cap;
    uint64_t count;
  } copies;
  // Agents of the warp. groups: for each lane, number of committed groups.
  // issued: current epoch. teamwork: number of committed groups of warpgroup
  // MMAs.
  struct { uint32_t groups[LANES], issued, teamwork; } agents;
  // cluster barrier: completed rounds; lanes that arrived; lanes that may pass
  struct { uint32_t met, came, passed; } round;
  // n: number of registers of a thread. wanted: number that a waiting
  // setmaxnreg requests (SW_REGISTERS). allot.i: the last setmaxnreg. allot.n:
  // number of setmaxnregs executed so far. allot.clk: epoch of the last one.
  struct {
    int n, wanted;
    struct { const SimIns *i; uint32_t n, clk; } allot;
  } regs;
  // lanes: for each result that may overflow, the lanes whose last value did
  // not fit. some: whether any result overflowed.
  struct { uint32_t *lanes; bool some; } wraps;
  // Undefined values (undefined.c). value: for each value, by slot, the lanes
  // in which it is undefined. some: there are undefined values. quotient.mem:
  // registers that hold the result of a division by zero. quotient.src: the
  // line of that division.
  struct {
    SimTaint *value;
    bool some;
    struct { const SimMem *mem; uint32_t src; } quotient;
  } taints;
  SimText text;            // output of printf
};

// Accesses that threads released, for other threads to acquire.
typedef struct SimPast {
  // `vc` is a vector clock with an epoch for each actor. `row` is a vector
  // clock with an epoch for each thread (hb_cluster.c), or NULL.
  uint32_t *vc, *row;
  bool rows;               // whether `row` is in use
  // gate of the event log (event_log.h) for threads that acquire this SimPast
  uint32_t gate;
} SimPast;

typedef struct SimBar {
  // expected: number of threads that the round needs. arrived: number of
  // threads that arrived (0: no round is open).
  int expected, arrived;
  // masks of the warps of the CTA that arrived, and that wait
  uint32_t members, waiting;
  // for each warp: line and epoch of its arrival
  uint32_t src[MAX_WARPS], clk[MAX_WARPS];
  // masks of the warps that arrived in, and that waited for, the previous round
  uint32_t before, knows;
  // for each warp: epoch of its arrival in the previous round
  uint32_t last[MAX_WARPS];
  SimPast past;
} SimBar;

struct SimCta {
  // number of the CTA, counted cluster by cluster (without clusters: in grid
  // order)
  uint64_t number;
  int32_t id[3];           // the CTA's position in the grid
  SimBar bar[MAX_BARS];
  int pool[4];  // for each quarter of the SM: free registers per lane
  // whether the CTA let the next launch start before it waited for the
  // preceding launch
  bool early;
};

struct SimCluster {
  const SimProg *prog;
  const struct SimHooks *hooks;  // prog->hooks
  uint32_t index;          // index of the cluster in the launch
  uint64_t rng, serial, mmas;
  // due: value of `serial` at which simexec_tick is called next. spent: value
  // of `serial` up to which it was subtracted from the guard's budget
  // (base/guard.h). cut: the source line at which the cluster was stopped; 0:
  // none.
  struct { uint64_t due, spent; uint32_t cut; } beat;
  // changed: number of changes of memory and of arrivals at barriers. moved:
  // number of changes of memory only.
  uint64_t changed, moved;
  // Counters to detect livelocks (quiet_for in exec.c). polls: number of reads
  // of unchanged global memory in this time slice. vain: number of failed
  // try_waits since a warp last progressed. look: a warp may be stuck.
  struct {
    uint64_t still, since, quiet, vain;
    int polls;
    bool look;
  } calm;
  // State of a cluster that waits for others. since: value of
  // prog->common->changes when it began to wait. next: the cluster that began
  // to wait next. hopeless: all clusters are stuck. unborn: number of blocks
  // that cannot start.
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
  // state of listeners (hooks.h), by their numbers
  void *own[SIM_OWNERS];
  // p: the n mbarriers (mbar.c); NULL: the cluster has created none yet. at:
  // for each 8 bytes of shared memory, index + 1 of the mbarrier there.
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
  // The n pending operations of agents. landing: number of those that end at an
  // mbarrier.
  struct { SimAsync **p; size_t n, max, landing; } agents;
  struct SimMaps *maps;    // tensor maps made by the kernel (tensormap_ops.c)
  // The cluster barrier. open, done: clocks that the threads acquire at the
  // current and the last round. met: number of completed rounds. meets: whether
  // a warp has used the barrier.
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
  // two entries for each statistics record: shared, global
  SimPattern *pattern;
  struct SimRequests *requests;  // recorded accesses, or NULL
  // whether a request of the cluster to cancel another cluster was refused
  bool refused;
  SimOut *out;
  // Scratch for operands of MMAs. rooms: the allocation. tile: SIM_ROOMS areas
  // of SIM_ROOM bytes, at a multiple of 64. kept: prepared operands A and B.
  struct { char *rooms, *tile; SimPrepared kept[2]; } mma;
  // Data of the run. lock: pthread_mutex_t that atomics on global memory lock.
  // quit: flag that other threads set to end the run. tick: function that is
  // called from time to time; NULL: none. strict: notes are faults. budget,
  // patience: numbers of instructions after which a warp, or a cluster in which
  // memory does not change, is reported as endless. cancel: takes the next
  // cluster of the grid that has not started, and sets *index to its index; may
  // refuse at any time by returning false.
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
