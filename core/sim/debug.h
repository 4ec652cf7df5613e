// A debugger's hold on a run: it is told of every instruction before it is
// executed, stops where it was asked to, and looks at what is there then.
//
// The instructions of a run are numbered, from 1 on, in the order in which the
// simulator takes them: clusters on one thread of the host. The same seed comes
// to the same steps again, so that going back is running again, to a step
// before.
#ifndef CUTE_SIMDEBUG_H
#define CUTE_SIMDEBUG_H

#include "sim/sim.h"

// Where a run stops: a line, in whatever warp comes to it, or in one.
typedef struct SimPoint {
  int64_t cta;             // in the order of clusters; -1: any
  int warp;                // of its CTA; -1: any
  const char *file;        // a chunk's name as Fn.src has it
  uint32_t line;           // 0: any
  bool every;              // each instruction; else where a line begins
} SimPoint;
// ... or when an element of a memory object changes.
typedef struct SimElement {
  Ref mem;
  int64_t element;
  int64_t cta;             // whose shared memory or registers
  int warp, lane;          // whose registers
} SimElement;

// STEP: `until` is reached; CHANGE: the element is another, or was stored
// anew; END: of a cluster whose end brought a fault.
typedef enum SimWhy {
  WHY_STEP, WHY_POINT, WHY_CHANGE, WHY_FAULT, WHY_END
} SimWhy;

// An instruction of a warp.
typedef struct SimAt {
  uint64_t step;           // 0: there is none
  int64_t cta;
  int32_t block[3];
  int warp;                // of its CTA
  uint32_t lanes, src;
  Ref ref;                 // of the IR
  const char *op;
} SimAt;

typedef struct SimDebug SimDebug;
struct SimDebug {
  // What is asked for, before the run and in every stop. recall: what is met
  // on the way is noted, and does not stop.
  uint64_t until;          // before this step at the latest
  bool recall, faults;
  const SimPoint *point;
  int npoint;
  const SimElement *change;
  int nchange;
  bool (*stop)(SimDebug *d);  // false: the run is given up. Must not longjmp
  void *ud;
  // Where it is.
  uint64_t step;
  SimWhy why;
  int which;               // point or element
  SimAt met;               // what was met last; of a change, who did it
  bool over;               // given up
  // debug.c's own.
  struct SimCluster *c;
  struct SimWarp *w;
  const struct SimIns *i;  // next of w; NULL: the cluster is done
  SimAt before;            // the instruction that ran last
  struct SimKept *kept;    // of the elements
  int nkept;
};

// ---- the interpreter's ----
// w is about to execute i; false: it may not.
bool simdebug_before(struct SimWarp *w, const struct SimIns *i);
void simdebug_end(struct SimCluster *c);
void simdebug_free(SimDebug *d);

// ---- looking, in a stop ----
SimAt simdebug_at(const SimDebug *d);
const char *simdebug_fault(const SimDebug *d);  // base_realloc'd; NULL: none
int simdebug_warps(const SimDebug *d);  // of the cluster
// The warp of that number in its CTA; -1: the cluster has none such.
int simdebug_warp(const SimDebug *d, int64_t cta, int warp);

// What warp k of the cluster is at. state: "runs", "barrier", "mbarrier",
// "cluster", "registers", "warpgroup", "ended".
typedef struct SimWarpAt {
  int64_t cta;
  int warp;
  const char *state;
  uint32_t src, active;    // of the next instruction, or where it waits
  Ref ref;
  int bar, mbar;           // which; -1
  uint64_t count;          // instructions executed
  int copies, agents;      // in flight: cp.async instructions; other agents
} SimWarpAt;
SimWarpAt simdebug_warp_at(const SimDebug *d, int k);

// The barriers of the CTA of warp k that somebody came to, and mbarriers.
typedef struct SimBarAt {
  int64_t cta;
  int32_t mem;             // mbarrier: its object and element; -1: a barrier,
  int64_t element;         // its number
  int64_t phase, arrived, expected, bytes;
} SimBarAt;
int simdebug_bars(const SimDebug *d, SimBarAt *out, int max);

typedef enum SimThere {
  THERE, THERE_UNDEFINED, THERE_FLYING, THERE_NOT
} SimThere;
// A value of the IR in a lane of warp k of the cluster.
bool simdebug_value(const SimDebug *d, Ref r, int k, int lane, uint64_t *out);
// An element of a memory object as that lane has it.
SimThere simdebug_element(const SimDebug *d, Ref mem, int64_t element, int k,
                          int lane, uint64_t *out);
// Who in this cluster wrote it last; step 0: nobody, or it is not known.
SimAt simdebug_writer(const SimDebug *d, Ref mem, int64_t element, int k,
                      int lane);

#endif
