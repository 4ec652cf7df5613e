// Reports for executed instructions whether a GPU computes the same bits as the
// simulator. Also reports where values that may differ reach control flow,
// addresses or synchronization.
#ifndef CUTE_IRFIDELITY_H
#define CUTE_IRFIDELITY_H

#include "ir/ir.h"

// How a value on a GPU compares with the simulator's value.
// - EXACT: equal bits.
// - SM90: equal bits in measurements on an H100 and H200.
// - BOUND: a difference within a bound.
// - TIMING: equal bits, but the simulator orders accesses less than PTX does.
typedef enum Agreement {
  AGREE_EXACT, AGREE_SM90, AGREE_BOUND, AGREE_TIMING, AGREE_COUNT
} Agreement;
const char *agreement_name(Agreement a);
const char *fidelity_name(Fidelity f);
const char *fidelity_text(Fidelity f);

// Uses of a value in which a small difference can change more than the rounding
// of results, such as an address or a branch.
typedef enum Reach {
  REACH_NONE, REACH_CONTROL, REACH_ADDRESS, REACH_SYNC, REACH_CHOICE
} Reach;
const char *reach_name(Reach r);

// Fidelity of one instruction.
typedef struct Faith {
  uint64_t count;   // number of times that warps executed the instruction
  Fidelity how;
  Agreement agree;
  Reach reach;      // how the instruction uses an operand that may differ
  // from: if `reach` is set, the instruction that made this operand inexact
  Ref from;
} Faith;

// Returns an entry for each instruction of fn, in cx->scratch. executed[r] is
// the number of executions of instruction r. sm: the architecture, such as 90.
Faith *fidelity_find(Ctx *cx, const Fn *fn, int sm, const uint64_t *executed);

#endif
// SPDX-License-Identifier: MIT
