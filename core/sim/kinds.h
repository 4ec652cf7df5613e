// The kinds of the simulator's reports: names and descriptions.
#ifndef CUTE_SIM_KINDS_H
#define CUTE_SIM_KINDS_H

// SK(id, "stable-name", description): kinds of reports.
#define SIM_KINDS(SK) \
  SK(OOB, "out-of-bounds", "access outside a memory object") \
  SK(ALIGN, "misaligned", "vector access not on its width") \
  SK(UNINIT, "uninitialised", "read of what nobody wrote") \
  SK(UNWRITTEN, "unwritten", "a part of an output is written by nobody") \
  SK(INFLIGHT, "async-in-flight", \
     "read of what an asynchronous copy has not brought yet") \
  SK(RACE, "race", \
     "two accesses of warps, one a write, with no barrier between") \
  SK(WARPRACE, "warp-race", \
     "two accesses of lanes of one warp with no sync_warp between") \
  SK(BLOCKRACE, "block-race", \
     "two accesses of blocks, in global memory, that nothing orders") \
  SK(DIVERGENT, "divergent", \
     "only a part of a warp comes to what all its lanes do together") \
  SK(OVERFLOW, "index-overflow", "a product that 32 bits do not hold") \
  SK(SIGNED, "signed-overflow", \
     "a sum or product that 32 bits do not hold is compared or divided") \
  SK(MBARRIER, "mbarrier", "misuse of an mbarrier") \
  SK(TENSORMAP, "tensor-map", \
     "a tensor map that the kernel made is not ready, or is changed") \
  SK(START, "unstarted-block", \
     "memory of a block that may not have begun is used") \
  SK(EXIT, "exited-block", "memory of a block that may have ended is used") \
  SK(REGISTERS, "registers", \
     "setmaxregister by warps, or for counts, that do not fit") \
  SK(BARRIER, "barrier-mismatch", \
     "those at a barrier disagree about how many come, or who") \
  SK(METADATA, "bad-metadata", \
     "metadata of a sparse A that names no two elements") \
  SK(WARPGROUP, "warpgroup-mismatch", \
     "the four warps of a warpgroup disagree about an MMA") \
  SK(DEADLOCK, "deadlock", "no warp can go on") \
  SK(RUNAWAY, "runaway", "the instruction budget is spent") \
  SK(SHUFFLE, "inactive-lane", "a shuffle from a lane that is not there") \
  SK(DEPENDENT, "dependent-launch", \
     "memory that launches share, used before the wait for the others") \
  SK(LAYOUT, "wrong-layout", \
     "a layout that was traced is not what this launch's extents make it") \
  SK(TRAP, "assertion", "an assertion of the kernel failed") \
  SK(DIVZERO, "division-by-zero", \
     "a division of integers by zero whose result is used")
typedef enum SimKind {
#define SK(id, name, what) SIM_##id,
  SIM_KINDS(SK)
#undef SK
  SIM_KIND_COUNT
} SimKind;
const char *sim_kind_name(SimKind k);
const char *sim_kind_about(SimKind k);

#endif
