// Executes a launch on the CPU, with stricter checks than the hardware.
//
// Each warp is a vector machine of 32 lanes with a program counter and a mask
// of active lanes. The warps of a cluster (of a CTA if there are no clusters)
// are interleaved in an order that a seed determines. Clusters are distributed
// over host threads. Faults of a kernel become reports; sim_run does not fail
// then.
#ifndef CUTE_SIM_H
#define CUTE_SIM_H

#include "decode/origins.h"
#include "faults/fault.h"
#include "sim/orders.h"
#include "sim/timing.h"

// Ranges of coordinates in one mode of a tensor; both ends belong to a range.
// If `period` is not 0, range k is from[0] + k * period to to[0] + k * period.
// A nonzero `tail` is then where the last range begins, which ends at the
// extent. If `period` is 0, `from` and `to` hold the first SIM_RANGES of the n
// ranges.
enum { SIM_RANGES = 3, SIM_GAPS = 4 };
typedef struct SimRanges {
  int mode;
  int64_t extent, n, period, tail, from[SIM_RANGES], to[SIM_RANGES];
} SimRanges;

// A part of an argument that a launch never reads or stores (cover.c): the
// elements with a coordinate in at least one of the ranges `of`. If `all` is
// set, the elements with coordinates in each of these ranges.
typedef struct SimGap {
  int32_t mem;         // memory object of the tensor, an index into Fn.mem
  uint32_t src;        // source line of the first load or store
  bool stored;         // whether the elements are never stored
  bool doubtful;       // whether the kernel may omit the elements on purpose
  bool map;            // whether the modes are those of a tensor map
  bool all;
  bool few;            // whether a launch with more blocks might access the
                       // elements
  bool blocks;  // whether the address of an access depends on the block index
                // along all modes in `of`
  bool alone;  // whether the launch accesses all elements of every other tensor
  int rank, n;         // rank of the tensor; number of ranges
  SimRanges of[2];
  int64_t none, size;  // numbers of elements: never accessed (none), all (size)
} SimGap;

// A shared tensor of which a launch stored `count` elements and never read n.
typedef struct SimUnread {
  int32_t mem;         // an index into Fn.mem
  uint32_t src;        // source line of a store to element `first`
  bool whole;          // whether nothing read any element of the tensor
  // whether the n elements were read, but not after the last copy wrote them
  bool stale;
  // n, count: as described above. first: index of the first of the n elements.
  int64_t n, count, first;
} SimUnread;

// Two blocks that load the same elements, in clusters that store equal sums to
// different elements. `src` is the source line of the store; 0: not found.
typedef struct SimTwins {
  uint32_t src;
  int32_t block[2][3];
} SimTwins;

// A wrong element of output `out` of a launch. Its coordinate is `at`, which
// has `modes` modes, and its value is `got`. The shapes suggest `want`: the sum
// of elements of input in[0], or the sum of products of elements of in[0] and
// in[1]. `src` is the source line of a store; 0: none was found.
typedef struct SimWrongSum {
  uint32_t src;
  int32_t out, in[2];      // arguments, as indices into Fn.arg
  int n;                   // number of inputs
  int modes, inmodes[2];   // numbers of modes with more than one coordinate
  // inat: coordinates of the summed elements of each input; -1: all of a mode
  int64_t at[3], inat[2][3];
  double got, want;
  bool copies;  // whether each sum has only one term, so that `out` is a copy
  bool scaled;             // whether the sums are multiplied by a constant
  bool shifted;  // whether all elements exceed their sums by got - want
  // extent of square tiles whose tile coordinates are exchanged; 0: no tiles
  int64_t tile;
} SimWrongSum;

// The first operation that computed a NaN or infinity from finite operands, in
// a launch that stored a NaN or infinity to an output.
typedef struct SimNonfinite {
  // Name of the operation; NULL: there is none. For "mma", v holds the
  // accumulator and the factors of the largest product. "cvt" is a conversion
  // to the type named `to`. Other names are "fma", "+", and names of functions.
  const char *op;
  const char *to;
  int n;                   // number of operands
  double v[3], result;
  bool nan;
  uint32_t src;            // source line
  int32_t block[3], thread[3];
  uint64_t count;  // number of NaNs and infinities that this line computed from
                   // finite operands
  // SimResult.inexact only: the key of its message in cutelua.text.notes
  const char *key;
} SimNonfinite;

// Memory traffic of an instruction. `wavefronts` - `least` is the number of
// bank conflicts.
typedef struct SimStat {
  uint64_t count;      // number of executed warp instructions
  // shared memory: number of passes (wavefronts), and their minimum (least)
  uint64_t wavefronts, least;
  uint64_t requests, sectors, least_sectors;  // global memory
  uint64_t bytes;      // bytes that the active lanes moved
} SimStat;

// Traffic of one kind of instruction on a source line, summed over the launch.
typedef struct SimLine {
  uint32_t src;
  const char *op;      // "ld.shared", "cp.async", "ldmatrix" ...
  // memory objects that the instruction accesses, as indices into Fn.mem, or -1
  int32_t smem, gmem;
  bool out;            // whether the instruction copies from smem to gmem
  SimStat sum;
} SimLine;

typedef struct SimOpts {
  uint64_t seed;
  int threads;         // host threads; 0: one for each core
  int max_reports;     // maximum number of distinct reports; 0: 16
  // GPU whose time for a single cluster is estimated; NULL: no estimate
  const SimMachine *machine;
  // writer of the event log (log.h), used if `machine` is set
  const struct SimLog *log;
  // maximum number of instructions of one warp; 0: 40 million
  uint64_t budget;
  bool strict;         // whether notes are reported as faults
  const struct SimHooks *hooks;  // checks that listen to the run (hooks.h)
  // steps: scheduler of a systematic schedule (interleave.h); NULL: the
  // schedule is random. all: all clusters run, even if `unit` names one.
  const struct SimSteps *steps;
  bool all;
  // required first steps of the schedule; NULL: none
  const uint64_t *turn;
  size_t nturn;
  // With `machine` or `steps`: index of the only cluster that runs. With `all`,
  // all clusters run, and only this one is recorded. -1 means the first cluster
  // with `machine`, and all clusters with `steps`.
  int64_t unit;
  // Called periodically on the calling thread with the completed fraction of
  // the run (0 to 1). If it returns false, the run stops. May be NULL. Must not
  // call longjmp.
  bool (*progress)(void *ud, double done);
  void *ud;
  // whether shared-memory requests are recorded, on a single host thread
  bool record;
} SimOpts;

// Parts of arguments that were never read or stored (outputs first), and parts
// of shared tensors that were never read.
typedef struct SimParts {
  SimGap gap[SIM_GAPS];
  int ngap;
  SimUnread unread[SIM_GAPS];
  int nunread;
  SimTwins twins;
  SimWrongScale scale;
  SimWrongSum wrong;
} SimParts;

typedef struct SimResult {
  // report: faults. note: uses of behaviour that PTX does not guarantee.
  SimReport *report, *note;
  size_t nreport, nnote;
  SimLine *line;
  size_t nline;
  // with SimOpts.steps: results of each cluster that has swaps (SimSwap) or
  // flags (SIM_FULL ...), and of cluster `unit`
  SimOrders *order;
  size_t norder;
  // turns: number of scheduling steps. instructions: number of executed warp
  // instructions. mmas: number of executed tensor-core instructions.
  uint64_t turns, instructions, mmas;
  // ctas: number of CTAs that completed. early: number of CTAs that let the
  // next launch start before they waited for the preceding launch.
  uint64_t ctas, early;
  // largest number of granules (shadow.h) that one cluster tracked
  uint64_t granules;
  char *output;           // output of printf, in the order of CTAs
  size_t noutput;
  int64_t left;           // number of unwritten elements of all outputs
  SimNonfinite nonfinite;
  SimNonfinite inexact;   // the first result that its type cannot represent
  SimParts parts;
  // stopped: too many reports or `progress` ended the run. cut: the source line
  // that a cluster executed at that time; 0: unknown.
  bool stopped;
  uint32_t cut;
  bool empty;  // whether the grid has no blocks, although no argument is empty
  double seconds;
  // recorded requests (record.h); NULL: none were recorded
  struct SimRequests *requests;
  SimTiming timing;       // filled in if SimOpts.machine is set
} SimResult;

// Runs a launch. Fails with ERR_LAUNCH, ERR_ARG (not supported) or ERR_MEMORY.
SimResult *sim_run(Ctx *cx, const Launch *l, const SimOpts *o);
void sim_free(SimResult *r);

#endif
// SPDX-License-Identifier: MIT
