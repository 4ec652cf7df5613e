// Static analysis of warps (roles.c): whether different threads execute two
// lines, and what a warp can still reach.
#ifndef CUTE_SIMROLES_H
#define CUTE_SIMROLES_H

#include "sim/inside.h"

// Reports whether two lines that access memory are in branches for different
// threads, so that no barrier of the block can be between them.
bool simroles_apart(const SimProg *p, uint32_t src, uint32_t src2);
// Reports whether a branch depends on the thread index.
bool simroles_parts(const SimProg *p, const SimIns *branch);
// Reports whether w can still reach an instruction for which `is` returns true.
// Both halves of every branch count as reachable.
typedef bool SimIs(const SimIns *i, const void *ud);
bool simroles_ahead(const SimWarp *w, SimIs *is, const void *ud);
// Reports whether the next access of w to shared memory fills it: a store, a
// copy, or an expected byte count.
bool simroles_fills(const SimWarp *w);
// Reports whether w is in a branch that only some threads execute.
bool simroles_some(const SimWarp *w);
bool simroles_has(const SimProg *p, Op op);
// Returns a line that fills shared memory m before line src reads it, or 0.
// lack: what is missing if src comes too early: a wait after a copy
// (LACK_WAIT), or synchronization with another warp role (LACK_ROLES).
uint32_t simroles_bringer(const SimProg *p, const SimMem *m, uint32_t src,
                          SimLack *lack);

#endif
// SPDX-License-Identifier: MIT
