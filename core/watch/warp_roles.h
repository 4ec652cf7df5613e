// Static analysis of warp roles (warp_roles.c): whether different threads
// execute two lines, and which instructions a warp can still reach.
#ifndef CUTE_WATCH_WARP_ROLES_H
#define CUTE_WATCH_WARP_ROLES_H

#include "sim/machine.h"

// Reports whether two lines that access memory are in branches for different
// threads. The threads then cannot synchronize by a barrier of the block.
bool warp_roles_apart(const SimProg *p, uint32_t src, uint32_t src2);
// Reports whether a branch depends on the thread index.
bool warp_roles_parts(const SimProg *p, const SimIns *branch);
// Reports whether w can still reach an instruction for which `is` returns true.
// Both halves of a branch count as reachable, unless its condition depends only
// on values that w has computed and cannot change.
typedef bool SimIs(const SimIns *i, const void *ud);
bool warp_roles_ahead(const SimWarp *w, SimIs *is, const void *ud);
// Reports whether the next access of w to shared memory fills shared memory: a
// store, a copy, or an expect_tx.
bool warp_roles_fills(const SimWarp *w);
// Reports whether w is in a branch that only some threads execute.
bool warp_roles_some(const SimWarp *w);
bool warp_roles_has(const SimProg *p, Op op);
// Returns a line that fills shared memory m before line src reads it, or 0 if
// there is none. Sets *lack to the synchronization that is missing if src reads
// too early: a wait after a copy (LACK_WAIT), or synchronization with another
// warp role (LACK_ROLES).
uint32_t warp_roles_bringer(const SimProg *p, const SimMem *m, uint32_t src,
                            SimLack *lack);

#endif
// SPDX-License-Identifier: MIT
