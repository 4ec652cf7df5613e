// Checks registers in flight. A warpgroup's MMA reads and writes its registers
// asynchronously, from its issue to the wait_group that completes it. Until
// then no other instruction may use them, and a wgmma.fence must separate an
// earlier use from the MMA.
#ifndef CUTE_ASYNC_REGS_H
#define CUTE_ASYNC_REGS_H

#include "ir/ir.h"

typedef enum FlightKind {
  FLIGHT_NONE,
  FLIGHT_READ,     // accumulators read before the wait
  FLIGHT_WRITE,    // operands written before the wait
  FLIGHT_SHAPE,    // accumulated into by an MMA of another shape
  FLIGHT_FENCE     // no fence between a use and the MMA
} FlightKind;

// A violation: instruction `at` and the pending MMA `other`. For FENCE, `at` is
// the MMA and `other` the earlier use of its registers (0: never used).
typedef struct Flight {
  FlightKind kind;
  Ref at, other;
  int32_t mem;     // index into Fn.mem
  int64_t elem;
} Flight;

// Called, possibly more than once, for every wait_group and each MMA whose
// accumulators it may complete.
typedef void FlightDone(void *ud, Ref wait, Ref mma);

// Follows fn along all its paths and returns the first violation, if any.
// `done` may be NULL. Scratch is in cx->scratch.
Flight async_regs_run(Ctx *cx, const Fn *fn, FlightDone *done, void *ud);

#endif
// SPDX-License-Identifier: MIT
