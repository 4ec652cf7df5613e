// The checks, which listen to the simulated machine's hooks (sim/hooks.h).
//
//   watch.c       passes the machine's events to the checks
//   shadow.c      last write and reads of each unit of memory in a cluster
//   hb_cluster.c  happens-before inside a cluster
//   hb_grid.c     happens-before and races between communicating clusters
//   cta_race.c    races between CTAs in global memory
//   race_records.c  the records of accesses that cta_race.c compares
//   waits.c       waits for groups that did not suffice
//   warp_roles.c  warp roles, and instructions that a warp can still reach
//   peer.c        accesses to shared memory of other CTAs
//   path.c        program order of the two accesses of a race
//   undefined.c   undefined values in registers
//   overflow.c    integer overflow
//   finite.c      NaNs and infinities that come from finite operands
//   assertions.c  assumptions about values, traced layouts
//   livelock.c    warps that poll memory forever
//   deadlock.c    warps that wait for each other
//   root_cause.c  root causes among faults
//   unwritten.c   elements of outputs that were never written
//   cover.c       parts of arguments that are never read or stored
//   unread.c      elements of shared tensors that are never read
//   scales.c      blocks that are multiplied with another block's scale factor
//   meant.c       arguments that a kernel accesses in part on purpose
//   debugger.c    the debugger's stop conditions
//   own.h         the numbers of checks that own state
#ifndef CUTE_WATCH_H
#define CUTE_WATCH_H

#include "sim/hooks.h"

extern const SimHooks watch_hooks;

#endif
// SPDX-License-Identifier: MIT
