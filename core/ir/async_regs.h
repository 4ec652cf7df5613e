// Checks registers in flight. A warpgroup's MMA reads and writes its registers
// asynchronously, from its issue to the wait_group that completes it. Until
// then no other instruction may use these registers. A wgmma.fence must be
// between an earlier use of these registers and the MMA. A load from tensor
// memory writes its registers asynchronously until tcgen05.wait::ld.
#ifndef CUTE_ASYNC_REGS_H
#define CUTE_ASYNC_REGS_H

#include "ir/ir.h"

// Callback for each pair of a wait and an MMA or load that the wait may
// complete. A pair may be reported more than once.
typedef void FlightDone(void *ud, Ref wait, Ref of);

// Walks all paths of fn. Returns the first misuse of registers in flight. If
// there is none, its kind is FLIGHT_NONE. `done` may be NULL. Uses cx->scratch.
Flight async_regs_run(Ctx *cx, const Fn *fn, FlightDone *done, void *ud);

#endif
// SPDX-License-Identifier: MIT
