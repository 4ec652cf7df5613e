// Reports of faults while a cluster runs (report.c).
#ifndef CUTE_SIMREPORT_H
#define CUTE_SIMREPORT_H

#include "sim/origin.h"
#include "sim/sim.h"

typedef struct SimText { char *p; size_t n, cap; } SimText;
bool simreport_printf(SimText *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

// The results of a finished cluster.
typedef struct SimOut {
  struct SimOut *next;
  uint64_t cluster;
  SimFault *fault, *note;
  // `nfault` is the number of faults of the cluster. `shown` is the number of
  // faults that were already reported to a debugger.
  uint32_t nfault, shown;
  uint32_t nnote;          // number of notes, at most MAX_NOTES
  SimStat *stat;
  uint64_t instructions, mmas, early;
  // largest number of granules (shadow.h) that were tracked at the same time
  uint64_t granules;
  SimText text;            // the output of printf
  SimOrigins origins;      // NaNs and infinities from finite operands
  SimOrigins inexact;      // results that their type cannot represent
} SimOut;

enum { MAX_NOTES = 8 };

// Writes the index (x, y, z) of thread number `linear` of a block to `out`.
void simreport_thread(const SimProg *p, int linear, int32_t out[3]);

typedef struct SimWarp SimWarp;
// Returns the report of a fault of kind `kind` at source line `src` on memory
// object `mem`, or NULL if no such fault was reported.
const SimReport *simreport_of(const SimWarp *w, SimKind kind, uint32_t src,
                              int32_t mem);
// Counts a fault of lane `lane` (-1: no particular lane). Returns the fault if
// it is the first one of this kind, line and object. Returns NULL if the fault
// was counted before, or if there are too many faults.
SimFault *simreport_state(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset,
                          uint64_t state);
SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset);
// Counts behaviour that PTX does not guarantee, although the tested cards
// accept it. It counts as a note or, with SimOpts.strict, as a fault. Returns
// the same as simreport_fault.
SimFault *simreport_note(SimWarp *w, SimKind kind, int lane, uint32_t src,
                         uint32_t src2, int32_t mem, int64_t offset);
// Reports whether two reports are equal except for their counts.
bool simreport_same(const SimReport *a, const SimReport *b);
// Describes in `out` the function's misuse of an MMA's registers (Fn.flight).
void simreport_flight(const SimProg *p, SimFault *out);

#endif
// SPDX-License-Identifier: MIT
