// The debugger's interface to a run. It is called before every instruction,
// stops under given conditions, and reads the state at a stop.
//
// The instructions of a run are numbered from 1 on, in the order in which the
// simulator executes them; clusters run on one host thread. The same seed
// reproduces the same steps, so that stepping back is a new run to an earlier
// step.
#ifndef CUTE_SIMDEBUG_H
#define CUTE_SIMDEBUG_H

#include "sim/sim.h"

// A breakpoint: a line, for all warps or for one.
typedef struct SimPoint {
  int64_t cta;             // CTA, counted cluster by cluster; -1: any
  int warp;                // of its CTA; -1: any
  const char *file;        // chunk name as in Fn.src
  uint32_t line;           // 0: any
  bool every;              // stop at each instruction, not only at the line's
                           // first
} SimPoint;
// A watchpoint: an element of a memory object changes.
typedef struct SimElement {
  Ref mem;
  int64_t element;
  int64_t cta;             // owner of the shared memory or registers
  int warp, lane;          // owner of the registers
} SimElement;

// STEP: `until` is reached; CHANGE: the element changed, or was stored again;
// END: a fault was found at the end of a cluster.
typedef enum SimWhy {
  WHY_STEP, WHY_POINT, WHY_CHANGE, WHY_FAULT, WHY_END
} SimWhy;

// An instruction of a warp.
typedef struct SimAt {
  uint64_t step;           // 0: none
  int64_t cta;
  int32_t block[3];
  int warp;                // of its CTA
  uint32_t lanes, src;
  Ref ref;                 // instruction of the IR
  const char *op;
} SimAt;

typedef struct SimDebug SimDebug;
struct SimDebug {
  // Conditions, set before the run and at every stop. recall: conditions are
  // recorded in `met` and do not stop the run.
  uint64_t until;          // stops before this step at the latest
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
  int which;               // index of the point or element
  SimAt met;               // last condition met; for a change, its writer
  bool over;               // the run was ended
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
int simdebug_warps(const SimDebug *d);  // of the cluster
// Returns the warp with that number in its CTA; -1: not in this cluster.
int simdebug_warp(const SimDebug *d, int64_t cta, int warp);

// State of warp k of the cluster. state: "runs", "barrier", "mbarrier",
// "cluster", "registers", "warpgroup", "ended".
typedef struct SimWarpAt {
  int64_t cta;
  int warp;
  const char *state;
  uint32_t src, active;    // src: next instruction, or where it waits
  Ref ref;
  int bar, mbar;           // number, or -1
  uint64_t count;          // instructions executed
  int copies, agents;      // in flight: cp.async instructions; other agents
} SimWarpAt;
SimWarpAt simdebug_warp_at(const SimDebug *d, int k);

// Barriers of warp k's CTA that are in use, and mbarriers.
typedef struct SimBarAt {
  int64_t cta;
  int32_t mem;             // mbarrier: its object; -1: a barrier
  int64_t element;         // mbarrier: its element; barrier: its number
  int64_t phase, arrived, expected, bytes;
} SimBarAt;
int simdebug_bars(const SimDebug *d, SimBarAt *out, int max);

typedef enum SimThere {
  THERE, THERE_UNDEFINED, THERE_FLYING, THERE_NOT
} SimThere;
// Reads a value of the IR in a lane of warp k of the cluster.
bool simdebug_value(const SimDebug *d, Ref r, int k, int lane, uint64_t *out);
// Reads an element of a memory object as that lane accesses it.
SimThere simdebug_element(const SimDebug *d, Ref mem, int64_t element, int k,
                          int lane, uint64_t *out);
// Returns the last writer in this cluster; step 0: none, or unknown.
SimAt simdebug_writer(const SimDebug *d, Ref mem, int64_t element, int k,
                      int lane);

#endif
// SPDX-License-Identifier: MIT
