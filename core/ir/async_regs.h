// Registers in flight: a warpgroup's MMA reads and writes registers from its
// issue to the wait_group that it is done at. Until then nobody else may use
// them, and before it a wgmma.fence must follow whoever did.
#ifndef CUTE_ASYNC_REGS_H
#define CUTE_ASYNC_REGS_H

#include "ir/ir.h"

typedef enum FlightKind {
  FLIGHT_NONE,
  FLIGHT_READ,     // accumulators read before the wait
  FLIGHT_WRITE,    // ... or operands written
  FLIGHT_SHAPE,    // ... or accumulated into by an MMA of another shape
  FLIGHT_FENCE     // no fence between a use and the MMA
} FlightKind;

// What is wrong: instruction `at` and the MMA that is on its way, or (FENCE)
// the MMA and who used its registers before (0: nobody did yet).
typedef struct Flight {
  FlightKind kind;
  Ref at, other;
  int32_t mem;     // index into Fn.mem
  int64_t elem;
} Flight;

// Told of every wait_group and the MMAs whose accumulators it may end, more
// than once.
typedef void FlightDone(void *ud, Ref wait, Ref mma);

// Follows fn along all its paths; the first thing that is wrong, if any.
// done: NULL, or told. Scratch is in cx->scratch.
Flight async_regs_run(Ctx *cx, const Fn *fn, FlightDone *done, void *ud);

#endif
