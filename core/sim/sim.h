// Executes a launch on the CPU, with stricter checks than the hardware.
//
// Each warp is a vector machine of 32 lanes with a program counter and a mask
// of active lanes. The warps of a cluster (of a CTA if there are no clusters)
// are interleaved in an order that a seed determines. Clusters are distributed
// over host threads. Faults of a kernel become reports and never make sim_run
// fail.
#ifndef CUTE_SIM_H
#define CUTE_SIM_H

#include "decode/launch.h"
#include "sim/kinds.h"
#include "sim/lacks.h"
#include "sim/orders.h"
#include "sim/timing.h"

// The path through the program from one access of a race to the later one.
// NONE: unknown. STRAIGHT: a straight line. AGAIN: to the next copy of the same
// line in an unrolled loop. LOOP: through the back edge of a loop.
typedef enum SimWay { WAY_NONE, WAY_STRAIGHT, WAY_AGAIN, WAY_LOOP } SimWay;

// A distinct fault, identified by kind, lines, memory object and state. The
// report describes the first occurrence. `count` is the number of warp
// instructions with the fault.
enum { SIM_MODES = 8, SIM_ROUNDS = 8 };

// An array of mbarriers, an index into Fn.mem, and how many phases its elements
// began.
typedef struct SimRound { int32_t mem; int64_t phases; } SimRound;

// How an access of a warp role misses the stage for which the warp waited.
// WRITE, READ: this access came after a wait for another stage. RELEASED: the
// reading thread had released the stage before.
typedef enum SimStray {
  STRAY_NONE, STRAY_WRITE, STRAY_READ, STRAY_RELEASED
} SimStray;

// A fact of a fault. FLAG: a condition that holds. NUMBER, LIST: v has the
// number, or n numbers. MEM: v has an index into Fn.mem.
typedef enum SimFactType {
  FACT_FLAG, FACT_NUMBER, FACT_REAL, FACT_TEXT, FACT_LIST, FACT_MEM
} SimFactType;
typedef struct SimFact {
  const char *name;
  SimFactType type;
  int n;
  int64_t v[SIM_MODES];
  double real;
  const char *text;
} SimFact;

typedef struct SimReport {
  SimKind kind;
  int32_t mem;         // memory object, an index into Fn.mem, or -1
  int64_t offset;      // element of the object, if known
  int32_t block[3];
  int32_t thread[3];   // the first thread in which the fault occurred
  // races: linear index of a thread on the other side, or -1. If the lane is
  // unknown, it is any thread of the warp.
  int32_t other;
  // src: line of this access. src2: line of the other access. Both are indices
  // into Fn.src; 0: none.
  uint32_t src, src2;
  // LACK_PARITY, LACK_STAY, LACK_LANES: line of the wait that succeeded too
  // early, or 0. LACK_STAGE: line of the last wait.
  uint32_t waited;
  // number of modes of coord; 0: coord is that of the element
  int modes;
  // coordinate of the access, outside the tensor's shape
  int64_t coord[SIM_MODES];
  uint64_t count;
  // Deadlocks: hash of what all warps wait for. Deadlocks with different hashes
  // are different faults.
  uint64_t state;
  SimLack lack;
  // races: path of synchronization from the first access to the second
  SimWay way;
  // line of a loop whose back edge has no barrier: for WAY_LOOP, and for the
  // way back of WAY_STRAIGHT
  uint32_t loop;
  bool outside;        // whether the missing barrier must be outside a branch
  // races: whether a cp.async writes a stage of a ring after a read of it, or
  // while another cp.async to it is in flight
  bool refill;
  // index of the report whose fault may have caused this fault, or -1
  int32_t leads;
  // mbarrier whose phase has wrong counts, an index into Fn.mem, or -1
  int32_t mbar;
  // arrivals and bytes that the phase should expect in addition; negative:
  // fewer
  int64_t arrivals, bytes;
  // for waits that no thread can end: arrays of mbarriers of the CTA
  SimRound round[SIM_ROUNDS];
  int nround;
  SimCounter counter;  // races of blocks: the counter, as in SimProg.counter
  // LACK_PENDING: number of groups that the wait leaves pending (pending), and
  // that it should leave at most (most). same: the reported group also has a
  // copy to another stage. open: a copy to another stage is in no group. idle:
  // no group was committed between this wait and the preceding one.
  uint32_t pending, most;
  bool same, open, idle;
  // element of another stage at the same place, or -1. ready: a wait covered
  // the copy to that element, but nothing has read it. With STRAY_WRITE and
  // STRAY_READ, the access came after a wait for that stage. Otherwise a copy
  // fills it.
  int64_t elsewhere;
  // number of stages of the shared tensor, and the element's stage; 0: the
  // tensor is no ring
  int stages, stage;
  // if only the first elements of a shared tensor were written when another one
  // was read: their number; 0: unknown
  int64_t filled;
  bool ready;
  SimStray strays;
  SimFact *fact;       // names and numbers for the report's sentence
  int nfact;
} SimReport;

// Ranges of coordinates in one mode of a tensor. With a period, range k is
// from[0] + k * period to to[0] + k * period, and if tail is not 0, the last
// range is tail to extent - 1. Without a period, only the first RANGES ranges
// are here. Ranges include both ends.
enum { SIM_RANGES = 3, SIM_GAPS = 4 };
typedef struct SimRanges {
  int mode;
  int64_t extent, n, period, tail, from[SIM_RANGES], to[SIM_RANGES];
} SimRanges;

// A part of an argument that a launch never reads or stores (cover.c): the
// elements with a coordinate in at least one of the ranges or, if `all` is set,
// in each of them.
typedef struct SimGap {
  int32_t mem;         // memory object of the tensor, an index into Fn.mem
  uint32_t src;        // source line of the first load or store
  bool stored;         // whether the elements are never stored
  bool map;            // whether the modes are those of a tensor map
  bool all;
  bool few;            // whether more blocks might reach the elements
  bool blocks;  // whether an address depends on the block along all modes `of`
  bool alone;          // whether all other tensors are accessed completely
  int rank, n;         // rank of the tensor; number of ranges
  SimRanges of[2];
  int64_t none, size;  // number of the omitted elements, and of all elements
} SimGap;

// A shared tensor. A launch stored `count` elements, and never read n of them.
typedef struct SimUnread {
  int32_t mem;         // an index into Fn.mem
  uint32_t src;        // source line of a store to the first of the elements
  bool whole;          // whether nothing read any element of the tensor
  bool stale;  // whether the n elements were read, but not since the last copy
  // numbers of elements, and the first of the n
  int64_t n, count, first;
} SimUnread;

// Two blocks that load the same elements, in clusters that store equal sums to
// different elements, and the source line of the store; 0: no such blocks.
typedef struct SimTwins {
  uint32_t src;
  int32_t block[2][3];
} SimTwins;

// The first operation that computed a NaN or infinity from finite operands, in
// a launch that stored one to an output.
typedef struct SimNonfinite {
  // "mma": the sum of an MMA, with the accumulator and the factors of the
  // largest product in v. "cvt": a conversion to the type named `to`. "fma",
  // "+", or the name of a function. NULL: no such operation.
  const char *op;
  const char *to;
  int n;                   // number of operands
  double v[3], result;
  bool nan;
  uint32_t src;            // source line
  int32_t block[3], thread[3];
  uint64_t count;  // number of such results that this line computed
  // whether the operation adds to a sum in a loop, which no longer grows
  bool sum;
} SimNonfinite;

// Memory traffic of an instruction. Its bank conflicts are the wavefronts
// beyond `least`.
typedef struct SimStat {
  uint64_t count;      // number of executed warp instructions
  // shared memory: number of passes, and their minimum
  uint64_t wavefronts, least;
  uint64_t requests, sectors, least_sectors;  // global memory
  uint64_t bytes;      // bytes that the active lanes moved
} SimStat;

// Traffic of one kind of instruction on one source line, summed over the
// launch.
typedef struct SimLine {
  uint32_t src;
  const char *op;      // "ld.shared", "cp.async", "ldmatrix" ...
  // memory objects, as indices into Fn.mem, or -1
  int32_t smem, gmem;
  bool out;            // whether the instruction copies from smem to gmem
  SimStat sum;
} SimLine;

typedef struct SimOpts {
  uint64_t seed;
  int threads;         // host threads; 0: one for each core
  int max_reports;     // maximum number of distinct reports; 0: 16
  // model of a GPU, on which the time of a single cluster is estimated; NULL:
  // no estimate
  const SimMachine *machine;
  // writer of the event log (log.h), used if `machine` is set
  const struct SimLog *log;
  // maximum number of instructions of one warp; 0: 40 million
  uint64_t budget;
  bool strict;         // whether notes count as faults
  const struct SimHooks *hooks;  // checks that listen to the run (hooks.h)
  // steps: scheduler of a systematic schedule (interleave.h); NULL: the
  // schedule is random. all: with `unit`, all clusters run, not only cluster
  // `unit`.
  const struct SimSteps *steps;
  bool all;
  // required first steps of the schedule; NULL: none
  const uint64_t *turn;
  size_t nturn;
  // With `machine` or `steps`: index of the only cluster to run; with `all`, of
  // the only one to record. -1 means the first cluster with `machine`, and all
  // clusters with `steps`.
  int64_t unit;
  // Called periodically on the calling thread with the completed fraction of
  // the run (0 to 1). If it returns false, the run stops. May be NULL. Must not
  // call longjmp.
  bool (*progress)(void *ud, double done);
  void *ud;
  // whether shared-memory requests are recorded, which needs one host thread
  bool record;
} SimOpts;

// Parts of arguments that were never read or stored, outputs first, and of
// shared tensors that were never read.
typedef struct SimParts {
  SimGap gap[SIM_GAPS];
  int ngap;
  SimUnread unread[SIM_GAPS];
  int nunread;
  SimTwins twins;
} SimParts;

typedef struct SimResult {
  // report: faults. note: uses of behaviour that PTX does not guarantee.
  SimReport *report, *note;
  size_t nreport, nnote;
  SimLine *line;
  size_t nline;
  // with SimOpts.steps: results of the clusters that have swaps (SimSwap) or
  // flags (SIM_FULL ...), and of cluster `unit`
  SimOrders *order;
  size_t norder;
  // numbers of scheduling steps, of instructions, and of tensor-core
  // instructions that warps executed
  uint64_t turns, instructions, mmas;
  // numbers of CTAs that completed, and of those that let the next launch start
  // before they waited for the preceding one
  uint64_t ctas, early;
  // largest number of granules whose accesses one cluster tracked
  uint64_t granules;
  char *output;           // output of printf, in the order of CTAs
  size_t noutput;
  int64_t left;           // number of unwritten elements of all outputs
  SimNonfinite nonfinite;
  SimNonfinite inexact;   // the first result that its type cannot represent
  SimParts parts;
  // whether too many reports or `progress` ended the run
  bool stopped;
  bool empty;  // whether the grid has no blocks, although no argument is empty
  double seconds;
  // recorded requests (record.h); NULL: none were recorded
  struct SimRequests *requests;
  SimTiming timing;       // filled in if SimOpts.machine is set
} SimResult;

// Runs a launch. Fails only with ERR_LAUNCH, ERR_ARG (not supported) and
// ERR_MEMORY.
SimResult *sim_run(Ctx *cx, const Launch *l, const SimOpts *o);
void sim_free(SimResult *r);

#endif
// SPDX-License-Identifier: MIT
