// The debugger's interface to a run. The simulator calls the debugger before
// every instruction. The debugger stops the run when a condition is met, and
// reads the state at a stop.
//
// The instructions of a run are numbered from 1 on, in the order of their
// execution. With a debugger, all clusters run on one host thread, and runs
// with the same seed execute the same instructions. To step back, the debugger
// starts a new run that stops at an earlier instruction.
#ifndef CUTE_WATCH_DEBUGGER_H
#define CUTE_WATCH_DEBUGGER_H

#include "sim/sim.h"

// A breakpoint at a line, for all warps or for one warp.
typedef struct SimPoint {
  int64_t cta;             // CTA, counted cluster by cluster; -1: any CTA
  int warp;                // number of the warp in its CTA; -1: any warp
  const char *file;        // chunk name, as in Fn.src
  uint32_t line;           // line number; 0: any line
  // whether to stop at each instruction of the line, not only at the first
  bool every;
} SimPoint;
// A watchpoint: stops when an element of a memory object changes.
typedef struct SimElement {
  Ref mem;
  int64_t element;
  int64_t cta;             // the CTA that owns the shared memory or registers
  int warp, lane;          // the thread that owns the registers
} SimElement;

// The reason why a run stops.
// - STEP: the next instruction has step number `until`.
// - POINT: the run reached a breakpoint.
// - CHANGE: a watched element changed, or a store wrote an equal value to it.
// - FAULT: a new fault was found.
// - END: a fault was found at the end of a cluster.
typedef enum SimWhy {
  WHY_STEP, WHY_POINT, WHY_CHANGE, WHY_FAULT, WHY_END
} SimWhy;

// Position of an instruction that a warp executes.
typedef struct SimAt {
  uint64_t step;           // step number; 0: no instruction
  int64_t cta;
  int32_t block[3];
  int warp;                // number of the warp in its CTA
  uint32_t lanes, src;
  Ref ref;                 // the instruction in the IR
  const char *op;
} SimAt;

typedef struct SimDebug SimDebug;
struct SimDebug {
  // Stop conditions, which the caller sets before the run and at every stop. If
  // `recall` is set, the run does not stop when a condition is met. Instead,
  // `met` records the instruction. faults: whether a fault is a stop condition.
  uint64_t until;  // the run stops before this step number at the latest
  bool recall, faults;
  const SimPoint *point;
  int npoint;
  const SimElement *change;
  int nchange;
  // Called at a stop. If it returns false, the run ends. Must not call longjmp.
  bool (*stop)(SimDebug *d);
  void *ud;
  // The current stop.
  uint64_t step;
  SimWhy why;
  // index in `point` or `change` of the breakpoint or watchpoint that was met
  int which;
  // The instruction at which a condition was last met. For a changed element,
  // this is the instruction that wrote the element.
  SimAt met;
  bool over;               // whether the caller ended the run
  // Private to debugger.c.
  struct SimCluster *c;
  struct SimWarp *w;
  // next instruction of warp w; NULL: the cluster has ended
  const struct SimIns *i;
  SimAt before;  // the instruction that was executed before i
  struct SimKept *kept;    // last recorded state of each watched element
  int nkept;
};

// ---- called by the interpreter ----
// Called before w executes i. Returns false if w must not execute i.
bool debugger_before(struct SimWarp *w, const struct SimIns *i);
void debugger_end(struct SimCluster *c);
void debugger_free(SimDebug *d);

// ---- called at a stop ----
SimAt debugger_at(const SimDebug *d);
// Writes the newest fault to *out. The fault's facts are allocated by
// base_realloc. Returns false if there is no fault, or if memory is exhausted.
bool debugger_fault(const SimDebug *d, SimReport *out);
// Returns the number of warps in the cluster.
int debugger_warps(const SimDebug *d);
// Returns the index, among the warps of this cluster, of warp `warp` of CTA
// `cta`. Returns -1 if the CTA is not in this cluster.
int debugger_warp(const SimDebug *d, int64_t cta, int warp);

// The state of a warp. state is "runs", "barrier", "mbarrier", "cluster",
// "registers", "warpgroup", "tensor memory" or "ended".
typedef struct SimWarpAt {
  int64_t cta;
  int warp;
  const char *state;
  // `src` is the line of the next instruction, or of the instruction at which
  // the warp waits. `active` is the mask of the warp's active lanes.
  uint32_t src, active;
  Ref ref;
  // bar: number of the barrier at which the warp waits, or -1. mbar: number of
  // the mbarrier at which it waits, or -1.
  int bar, mbar;
  uint64_t count;          // number of instructions that the warp executed
  // copies: number of cp.async instructions in flight. agents: number of other
  // asynchronous operations in flight.
  int copies, agents;
} SimWarpAt;
SimWarpAt debugger_warp_at(const SimDebug *d, int k);

// The state of a barrier of a warp's CTA, or of an mbarrier.
typedef struct SimBarAt {
  int64_t cta;
  int32_t mem;  // index of the mbarrier's memory object; -1: this is a barrier
  int64_t element;  // the mbarrier's element, or the number of the barrier
  int64_t phase, arrived, expected, bytes;
} SimBarAt;
int debugger_bars(const SimDebug *d, SimBarAt *out, int max);

typedef enum SimThere {
  THERE, THERE_UNDEFINED, THERE_FLYING, THERE_NOT
} SimThere;
// Reads the value that IR instruction r has in a lane of warp k of the cluster.
// Returns false if r has no value there.
bool debugger_value(const SimDebug *d, Ref r, int k, int lane, uint64_t *out);
// Reads an element of a memory object as a lane of warp k would access it.
SimThere debugger_element(const SimDebug *d, Ref mem, int64_t element, int k,
                          int lane, uint64_t *out);
// Returns the instruction of this cluster that last wrote an element. Its step
// is 0 if no instruction wrote the element, or if the instruction is not known.
SimAt debugger_writer(const SimDebug *d, Ref mem, int64_t element, int k,
                      int lane);

#endif
// SPDX-License-Identifier: MIT
