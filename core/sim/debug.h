// The debugger's interface to a run. The simulator calls it before every
// instruction. It stops the run under given conditions, and reads the state at
// a stop.
//
// The instructions of a run are numbered from 1 on, in the order in which the
// simulator executes them; clusters run on one host thread. A run with the same
// seed has the same steps. Therefore a debugger steps back by a new run to an
// earlier step.
#ifndef CUTE_SIMDEBUG_H
#define CUTE_SIMDEBUG_H

#include "sim/sim.h"

// A breakpoint: a line, for all warps or for one.
typedef struct SimPoint {
  int64_t cta;             // CTA, counted cluster by cluster; -1: any
  int warp;                // warp number in its CTA; -1: any
  const char *file;        // chunk name as in Fn.src
  uint32_t line;           // line number; 0: any
  bool every;              // stop at each instruction of the line, not only at
                           // its first
} SimPoint;
// A watchpoint: the run stops when an element of a memory object changes.
typedef struct SimElement {
  Ref mem;
  int64_t element;
  int64_t cta;             // owner of the shared memory or registers
  int warp, lane;          // owner of the registers
} SimElement;

// Why a run stops. STEP: `until` is reached. CHANGE: the element changed, or
// the same value was stored to it. END: a fault was found at the end of a
// cluster.
typedef enum SimWhy {
  WHY_STEP, WHY_POINT, WHY_CHANGE, WHY_FAULT, WHY_END
} SimWhy;

// An instruction that a warp executed.
typedef struct SimAt {
  uint64_t step;           // step number; 0: none
  int64_t cta;
  int32_t block[3];
  int warp;                // warp number in its CTA
  uint32_t lanes, src;
  Ref ref;                 // the instruction in the IR
  const char *op;
} SimAt;

typedef struct SimDebug SimDebug;
struct SimDebug {
  // Conditions, which are set before the run and at every stop. recall:
  // conditions that hold are recorded in `met` and do not stop the run.
  uint64_t until;          // latest step before which the run stops
  bool recall, faults;
  const SimPoint *point;
  int npoint;
  const SimElement *change;
  int nchange;
  bool (*stop)(SimDebug *d);  // false ends the run. Must not longjmp
  void *ud;
  // The current stop.
  uint64_t step;
  SimWhy why;
  int which;               // index of the breakpoint or watchpoint
  SimAt met;               // instruction that met a condition last; for a
                           // change, the writer
  bool over;               // the caller ended the run
  // Private to debug.c.
  struct SimCluster *c;
  struct SimWarp *w;
  const struct SimIns *i;  // next instruction of w; NULL: the cluster is done
  SimAt before;            // previous instruction
  struct SimKept *kept;    // state of the watched elements
  int nkept;
};

// ---- called by the interpreter ----
// w is about to execute i; false: it must not.
bool simdebug_before(struct SimWarp *w, const struct SimIns *i);
void simdebug_end(struct SimCluster *c);
void simdebug_free(SimDebug *d);

// ---- called at a stop ----
SimAt simdebug_at(const SimDebug *d);
const char *simdebug_fault(const SimDebug *d);  // base_realloc'd; NULL: none
int simdebug_warps(const SimDebug *d);  // number of warps in the cluster
// Returns warp `warp` of CTA `cta` as a number in the cluster; -1: the CTA is
// not in this cluster.
int simdebug_warp(const SimDebug *d, int64_t cta, int warp);

// State of warp k of the cluster. state: "runs", "barrier", "mbarrier",
// "cluster", "registers", "warpgroup", "ended".
typedef struct SimWarpAt {
  int64_t cta;
  int warp;
  const char *state;
  uint32_t src, active;    // src: next instruction, or the one at which it
                           // waits
  Ref ref;
  int bar, mbar;           // number of the barrier or mbarrier at which it
                           // waits, or -1
  uint64_t count;          // instructions executed
  int copies, agents;      // copies: cp.async instructions in flight; agents:
                           // other asynchronous operations in flight
} SimWarpAt;
SimWarpAt simdebug_warp_at(const SimDebug *d, int k);

// Barriers of warp k's CTA that are in use, and mbarriers.
typedef struct SimBarAt {
  int64_t cta;
  int32_t mem;             // the mbarrier's object; -1: a barrier
  int64_t element;         // the mbarrier's element, or the barrier's number
  int64_t phase, arrived, expected, bytes;
} SimBarAt;
int simdebug_bars(const SimDebug *d, SimBarAt *out, int max);

typedef enum SimThere {
  THERE, THERE_UNDEFINED, THERE_FLYING, THERE_NOT
} SimThere;
// Reads a value of the IR in a lane of warp k of the cluster.
bool simdebug_value(const SimDebug *d, Ref r, int k, int lane, uint64_t *out);
// Reads an element of a memory object as a lane of warp k would access it.
SimThere simdebug_element(const SimDebug *d, Ref mem, int64_t element, int k,
                          int lane, uint64_t *out);
// Returns the last writer of an element in this cluster. Its step is 0 if there
// is none, or if it is unknown.
SimAt simdebug_writer(const SimDebug *d, Ref mem, int64_t element, int k,
                      int lane);

#endif
// SPDX-License-Identifier: MIT
