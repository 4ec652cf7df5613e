// What the program's text says of warps (roles.c): whether two lines are those
// of different threads, and what a warp may still come to.
#ifndef CUTE_SIMROLES_H
#define CUTE_SIMROLES_H

#include "sim/inside.h"

// Are two lines that access memory in branches for different threads, so that
// no barrier of the block can stand between them?
bool simroles_apart(const SimProg *p, uint32_t src, uint32_t src2);
// Does a branch depend on which thread takes it?
bool simroles_parts(const SimProg *p, const SimIns *branch);
// May w come to an instruction of which `is` holds? Branches count as taken.
typedef bool SimIs(const SimIns *i, const void *ud);
bool simroles_ahead(const SimWarp *w, SimIs *is, const void *ud);
// Is the next thing that w does with shared memory a fill: a store, a copy to
// it, bytes that are expected?
bool simroles_fills(const SimWarp *w);
// Is w in a branch for some threads?
bool simroles_some(const SimWarp *w);
bool simroles_has(const SimProg *p, Op op);
// A line that fills shared memory m for line src, with what that lacks where it
// comes too early: a copy (LACK_WAIT), or a store of another role (LACK_ROLES);
// 0: there is none.
uint32_t simroles_bringer(const SimProg *p, const SimMem *m, uint32_t src,
                          SimLack *lack);

#endif
