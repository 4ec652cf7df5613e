// Executes a Launch on the CPU, stricter than the hardware.
//
// Each warp is a 32-lane vector machine with its own program counter and
// divergence mask; warps of a cluster (of a CTA where there is none) take turns
// in an order that a seed permutes; clusters are spread over threads of the
// host. Faults of a kernel are reports, never a failure of sim_run.
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
  void *p;           // pointer arguments: host memory
  size_t bytes;      // size of that memory
  uint8_t *defined;  // a bit per byte: was it written? or NULL: all
  const TensorMap *map;  // those that a tensor map tells of
  uint64_t bits;     // scalar arguments: raw bits
  uint8_t before;    // SIM_READ, SIM_WRITTEN: by the launch in front; shifted
} LaunchArg;         // by SIM_FAR: by those farther in front that still run
typedef struct Launch {
  const Fn *fn;
  int32_t grid[3], block[3], cluster[3];
  const LaunchArg *arg;  // fn->arg.n of them
  const LaunchArg *known;  // memory that the kernel may have the address of
  size_t nknown;
  int sm;                // target: 80, 90, ...
  bool pdl;              // may begin before the launch in front of it is done
  bool tries;            // answers of all try_waits are turns (orders.h)
  const SimEdit *edit;   // changes of fn
  size_t nedit;
  struct SimDebug *debug;  // who looks at it (debug.h); or NULL
} Launch;

// How the program goes from one access to a later one: not known; on; to a line
// that is there again (of an unrolled loop); through the end of a loop.
typedef enum SimWay { WAY_NONE, WAY_STRAIGHT, WAY_AGAIN, WAY_LOOP } SimWay;

// One distinct fault: (kind, lines, memory object, state); the first one is
// described, `count` tells how many warp instructions met it.
enum { SIM_MODES = 8 };
typedef struct SimReport {
  SimKind kind;
  int32_t mem;         // index into Fn.mem, or -1
  int64_t offset;      // element of mem where there is one
  int32_t block[3];
  int32_t thread[3];   // first thread concerned
  int32_t other;       // races: linear index of a thread of the other side
                       // (warp of it where the lane is unknown), or -1
  uint32_t src, src2;  // Fn.src of this and of the other access, or 0
  int modes;           // of the coordinate asked for, where it lies outside of
  int64_t coord[SIM_MODES];  // the shape; 0: it is that of the element
  uint64_t count;
  uint64_t state;      // of what a deadlock is at: others are other faults
  SimLack lack;
  SimWay way;          // races: from the other access to this one
  uint32_t loop;       // a loop (Fn.src) with no barrier on the way through its
                       // end: LOOP, and STRAIGHT on the way back
  bool outside;        // the barrier has to be outside of a branch
  int32_t leads;       // the report that this may follow from, or -1
  int32_t mbar;        // the mbarrier's index into Fn.mem, or -1: its phase
  int64_t arrivals, bytes;  // should count so many more of each (< 0: fewer)
  uint32_t pending, most;  // LACK_PENDING: groups that the wait left; may leave
  char *text;          // one sentence without file names: "line N" is left
                       // to src and src2
} SimReport;

// A tensor that blocks store tiles of one size to, side by side, and none from
// coordinate `from` of a mode on.
typedef struct SimShort {
  int32_t mem;         // index into Fn.mem, or -1: there is none
  uint32_t src;        // of the store
  int mode;
  int64_t from, extent, each, none, all;  // each: of a tile, in that mode
} SimShort;

// Memory traffic; conflicts = wavefronts - least.
typedef struct SimStat {
  uint64_t count;      // warp instructions
  uint64_t wavefronts, least;  // shared memory
  uint64_t requests, sectors, least_sectors;  // global memory
  uint64_t bytes;      // moved for the lanes that took part
} SimStat;

// That of one source line and kind of instruction, summed over the launch.
typedef struct SimLine {
  uint32_t src;
  const char *op;      // "ld.shared", "cp.async", "ldmatrix" ...
  int32_t smem, gmem;  // memory objects (index into Fn.mem), or -1
  bool out;            // from smem to gmem
  SimStat sum;
} SimLine;

typedef struct SimOpts {
  uint64_t seed;
  int threads;         // 0: as many as the host has cores
  int max_reports;     // distinct ones; 0: 16
  const SimMachine *machine;  // runs one cluster alone, and says how long that
                       // takes there; NULL: does not
  uint64_t budget;     // instructions of one warp; 0: 40 million
  bool strict;         // notes of the run are faults
  bool decided, all;   // the schedule is no chance, but
  const uint64_t *turn;  // begins so (NULL: as it likes)
  size_t nturn;
  int64_t unit;        // machine, decided: this cluster (all: of all); -1: the
                       // first, all
  // Called now and then on the calling thread with the part done (0..1); false
  // stops the run. May be NULL. Must not longjmp.
  bool (*progress)(void *ud, double done);
  void *ud;
  bool record;         // requests to shared memory; on one thread
} SimOpts;

typedef struct SimResult {
  SimReport *report, *note;  // note: what PTX does not promise
  size_t nreport, nnote;
  SimLine *line;
  size_t nline;
  SimOrders *order;    // decided: of clusters that have swaps or flags, or of
  size_t norder;       // of `unit`
  uint64_t turns, instructions, mmas;  // of warps; mmas: on tensor cores
  uint64_t ctas, early;   // CTAs that were run to their end; of these, those
                          // that let the next launch in before they waited
  uint64_t granules;      // of memory that a cluster kept who used it: most
  char *output;           // what the kernel printed, in order of CTAs
  size_t noutput;
  int64_t left;           // elements of outputs that are unwritten
  SimShort few;           // a grid that is too small for an output
  bool stopped;           // too many reports, or progress said so
  double seconds;
  struct SimRequests *requests;  // requests.h; NULL: nobody asked
  SimTiming timing;       // where SimOpts.machine is
} SimResult;

// Fails with ERR_LAUNCH, ERR_ARG (it cannot do this) and ERR_MEMORY only.
SimResult *sim_run(Ctx *cx, const Launch *l, const SimOpts *o);
void sim_free(SimResult *r);

#endif
