// Executes a Launch on the CPU, stricter than the hardware.
//
// Each warp is a 32-lane vector machine with its own program counter and
// divergence mask. The warps of a cluster (of a CTA if there are no clusters)
// are interleaved in an order that a seed permutes. Clusters are distributed
// over host threads. Faults of a kernel become reports; they never make sim_run
// fail.
#ifndef CUTE_SIM_H
#define CUTE_SIM_H

#include "base/tensormap.h"
#include "sim/edit.h"
#include "sim/kinds.h"
#include "sim/lacks.h"
#include "sim/orders.h"
#include "sim/timing.h"

enum { SIM_READ = 1, SIM_WRITTEN = 2, SIM_FAR = 2 };
typedef struct LaunchArg {
  void *p;           // pointer argument: host memory
  size_t bytes;      // size of the host memory
  uint8_t *defined;  // one bit per byte, set if written; NULL: all bytes are
  const TensorMap *map;  // tensor-map argument: its map
  uint64_t bits;     // scalar argument: raw bits
  // How earlier launches use the memory. SIM_READ and SIM_WRITTEN: the
  // preceding launch does. The same bits shifted by SIM_FAR: earlier launches
  // that still run do.
  uint8_t before;
} LaunchArg;
typedef struct Launch {
  const Fn *fn;
  int32_t grid[3], block[3], cluster[3];
  const LaunchArg *arg;  // fn->arg.n arguments
  const LaunchArg *known;  // memory whose addresses the kernel may hold in raw
                           // pointers
  size_t nknown;
  int sm;                // target architecture: 80, 90, ...
  bool pdl;              // the launch may start before the preceding one
                         // completes
  bool tries;            // results of all try_waits count as scheduling steps
  const SimEdit *edit;   // patches to fn (edit.h)
  size_t nedit;
  struct SimDebug *debug;  // attached debugger (debug.h), or NULL
} Launch;

// Control flow from one access to a later one. NONE: unknown. STRAIGHT:
// straight ahead. AGAIN: to the next copy of the same line in an unrolled loop.
// LOOP: through the back edge of a loop.
typedef enum SimWay { WAY_NONE, WAY_STRAIGHT, WAY_AGAIN, WAY_LOOP } SimWay;

// One distinct fault, identified by (kind, lines, memory object, state). The
// first occurrence is described; `count` is the number of warp instructions
// that hit it.
enum { SIM_MODES = 8 };
typedef struct SimReport {
  SimKind kind;
  int32_t mem;         // index into Fn.mem, or -1
  int64_t offset;      // element of mem, if known
  int32_t block[3];
  int32_t thread[3];   // first thread involved
  int32_t other;       // races: linear index of a thread on the other side (if
                       // the lane is unknown, of any thread of its warp), or -1
  uint32_t src, src2;  // Fn.src of this access and of the other one, or 0
  int modes;           // number of modes of coord; 0: use the element's
                       // coordinate
  int64_t coord[SIM_MODES];  // coordinate outside the shape
  uint64_t count;
  uint64_t state;      // deadlocks: hash of the state; deadlocks in different
                       // states are different faults
  SimLack lack;
  SimWay way;          // races: control flow from the other access to this one
  uint32_t loop;       // Fn.src of a loop whose back edge has no barrier: for
                       // WAY_LOOP, and for the way back of WAY_STRAIGHT
  bool outside;        // the barrier must be placed outside a branch
  int32_t leads;       // report that may have caused this one, or -1
  int32_t mbar;        // mbarrier whose phase is wrong: index into Fn.mem, or
                       // -1
  int64_t arrivals, bytes;  // arrivals and bytes that the phase should expect
                            // in addition (< 0: fewer)
  uint32_t pending, most;  // LACK_PENDING; pending: groups left pending; most:
                           // groups allowed
  char *text;          // message; file and line numbers are in src and src2
} SimReport;

// An output to which blocks store adjacent tiles of one size, but none from
// coordinate `from` of `mode` on.
typedef struct SimShort {
  int32_t mem;         // index into Fn.mem, or -1: there is no such output
  uint32_t src;        // line of the store
  int mode;
  int64_t from, extent, each, none, all;  // each: extent of a tile; none, all:
                                          // unwritten and all elements
} SimShort;

// Memory traffic. Bank conflicts = wavefronts - least.
typedef struct SimStat {
  uint64_t count;      // warp instructions
  uint64_t wavefronts, least;  // shared memory
  uint64_t requests, sectors, least_sectors;  // global memory
  uint64_t bytes;      // bytes moved by the active lanes
} SimStat;

// Traffic of one source line and kind of instruction, summed over the launch.
typedef struct SimLine {
  uint32_t src;
  const char *op;      // "ld.shared", "cp.async", "ldmatrix" ...
  int32_t smem, gmem;  // memory objects (index into Fn.mem), or -1
  bool out;            // the instruction copies from smem to gmem
  SimStat sum;
} SimLine;

typedef struct SimOpts {
  uint64_t seed;
  int threads;         // 0: one per core of the host
  int max_reports;     // distinct reports; 0: 16
  const SimMachine *machine;  // GPU model that estimates the time of one
                              // cluster, which runs alone; NULL: no estimate
  uint64_t budget;     // maximum number of instructions of one warp; 0: 40
                       // million
  bool strict;         // treats notes as faults
  bool decided, all;   // decided: the schedule is systematic, not random; all:
                       // see unit
  const uint64_t *turn;  // required first steps of the schedule, or NULL
  size_t nturn;
  int64_t unit;        // with machine or decided: index of the only cluster
                       // that runs (with all: all run, and this one is
                       // recorded); -1: the first one, or all
  // Called periodically on the calling thread with the fraction done (0..1);
  // false stops the run. May be NULL. Must not longjmp.
  bool (*progress)(void *ud, double done);
  void *ud;
  bool record;         // records shared-memory requests, using one host thread
} SimOpts;

typedef struct SimResult {
  SimReport *report, *note;  // note: behaviour that PTX does not guarantee
  size_t nreport, nnote;
  SimLine *line;
  size_t nline;
  SimOrders *order;    // with decided: results of clusters that have swaps or
                       // flags, or of cluster `unit`
  size_t norder;
  uint64_t turns, instructions, mmas;  // numbers that warps executed; turns:
                                       // scheduling steps; mmas: instructions
                                       // on tensor cores
  uint64_t ctas, early;   // number of CTAs that completed; early: those that
                          // let the next launch start before they waited
  uint64_t granules;      // largest number of granules for which a cluster
                          // tracked accesses
  char *output;           // output of printf, in CTA order
  size_t noutput;
  int64_t left;           // number of unwritten elements of outputs
  SimShort few;           // a grid that is too small for an output
  bool stopped;           // the run was ended by too many reports, or by
                          // `progress`
  double seconds;
  struct SimRequests *requests;  // requests.h; NULL: not recorded
  SimTiming timing;       // filled in if SimOpts.machine is set
} SimResult;

// Runs a launch. Fails only with ERR_LAUNCH, ERR_ARG (unsupported) and
// ERR_MEMORY.
SimResult *sim_run(Ctx *cx, const Launch *l, const SimOpts *o);
void sim_free(SimResult *r);

#endif
// SPDX-License-Identifier: MIT
