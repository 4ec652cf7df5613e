// The kinds of the simulator's reports, with names and descriptions.
#ifndef CUTE_SIM_KINDS_H
#define CUTE_SIM_KINDS_H

// SK(id, "stable-name", description): a kind of report. The names do not change
// between versions.
#define SIM_KINDS(SK) \
  SK(OOB, "out-of-bounds", "access outside a memory object") \
  SK(ALIGN, "misaligned", \
     "vector access at an address that is not a multiple of its width") \
  SK(UNINIT, "uninitialised", "read of memory that was never written") \
  SK(UNWRITTEN, "unwritten", "a part of an output is never written") \
  SK(INFLIGHT, "async-in-flight", \
     "read of memory that an asynchronous copy is still writing") \
  SK(FLIGHT, "in-flight", \
     "registers of a warpgroup's MMA are used before it is complete") \
  SK(RACE, "race", \
     "two warps access one element, one of them writes, with no barrier " \
     "between") \
  SK(WARPRACE, "warp-race", \
     "two lanes of a warp access one element with no sync_warp between") \
  SK(BLOCKRACE, "block-race", \
     "two blocks access one element of global memory with nothing to order " \
     "them") \
  SK(DIVERGENT, "divergent", \
     "only some lanes of a warp reach an operation that needs all of them") \
  SK(OVERFLOW, "index-overflow", \
     "an index uses a product that overflows 32 bits") \
  SK(SIGNED, "signed-overflow", \
     "a sum or product that overflows 32 bits is compared or divided") \
  SK(MBARRIER, "mbarrier", "misuse of an mbarrier") \
  SK(TENSORMAP, "tensor-map", \
     "a tensor map that the kernel changes is not ready, or changes while in " \
     "use") \
  SK(START, "unstarted-block", \
     "shared memory of a block that may not have started is used") \
  SK(EXIT, "exited-block", \
     "shared memory of a block that may have exited is used") \
  SK(REGISTERS, "registers", \
     "setmaxregister with a wrong register count, or by only some warps") \
  SK(BARRIER, "barrier-mismatch", \
     "threads at a barrier disagree about its thread count or its " \
     "participants") \
  SK(METADATA, "bad-metadata", \
     "metadata of a sparse A that does not select two different elements") \
  SK(WARPGROUP, "warpgroup-mismatch", \
     "the four warps of a warpgroup disagree about an MMA") \
  SK(DEADLOCK, "deadlock", "no warp can go on") \
  SK(RUNAWAY, "runaway", "the instruction budget is exhausted") \
  SK(SHUFFLE, "inactive-lane", \
     "a shuffle reads from a lane that does not take part") \
  SK(DEPENDENT, "dependent-launch", \
     "memory shared with an earlier launch is used before the wait for that " \
     "launch") \
  SK(LAYOUT, "wrong-layout", \
     "a traced layout differs from the layout that this launch's extents " \
     "give") \
  SK(TRAP, "assertion", "an assertion of the kernel failed") \
  SK(DIVZERO, "division-by-zero", \
     "the result of an integer division by zero is used")
typedef enum SimKind {
#define SK(id, name, what) SIM_##id,
  SIM_KINDS(SK)
#undef SK
  SIM_KIND_COUNT
} SimKind;
const char *sim_kind_name(SimKind k);
const char *sim_kind_about(SimKind k);

#endif
// SPDX-License-Identifier: MIT
