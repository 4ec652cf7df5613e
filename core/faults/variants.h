// Variants of the kinds of faults: misuse of barriers, mbarriers, tensor maps
// and MMAs. The rows of lua/cute/lang/kinds.lua refer to a variant X(ID,
// "name") by its name.
#ifndef CUTE_FAULTS_VARIANTS_H
#define CUTE_FAULTS_VARIANTS_H

#include "base/base.h"

#define SIM_ID(id, name) id,

#define SIM_CLASHES(X) \
  X(CLASH_WAW, "write after write") X(CLASH_WAR, "write after read") \
  X(CLASH_RAW, "read after write")
typedef enum SimClash { SIM_CLASHES(SIM_ID) } SimClash;
// Misuse of a barrier.
#define SIM_MISUSES(X) \
  X(BAR_ODD, "odd")          /* the count is not a multiple of 32 */ \
  X(BAR_DIFFERS, "differs")  /* the count differs from that of other warps */ \
  X(BAR_TWICE, "twice")      /* a warp arrives twice */ \
  X(BAR_RANGE, "range")      /* no barrier has this number */ \
  X(BAR_LANES, "lanes")      /* lanes of a warp name different barriers */ \
  X(BAR_LANES_COUNT, "lanes' counts")  /* lanes of a warp name two counts */ \
  /* cluster barrier: a second arrival, a wait without an arrival */ \
  X(BAR_TWICE_CLUSTER, "cluster twice") \
  X(BAR_UNCAME_CLUSTER, "cluster wait") \
  /* only a part of the threads had arrived when the block ended */ \
  X(BAR_LEFT, "left") \
  X(BAR_EARLY, "early")      /* the previous round may count the arrival */
typedef enum SimMisuse { SIM_MISUSES(SIM_ID) } SimMisuse;
// Kinds of misuse of an mbarrier or of an operation on one.
#define SIM_WRONGS(X) \
  X(MBAR_NONE, "none")            /* the mbarrier was never initialized */ \
  X(MBAR_UNORDERED, "unordered")  /* a use may precede the initialization */ \
  X(MBAR_UNFENCED, "unfenced")    /* agents may not see the initialization */ \
  X(MBAR_TWICE, "twice")  /* the mbarrier is not invalidated before an init */ \
  X(MBAR_COUNT, "count")          /* the arrival count is invalid */ \
  X(MBAR_MANY, "many")            /* the cluster has too many mbarriers */ \
  X(MBAR_OVER, "over")            /* a phase gets too many arrivals */ \
  X(MBAR_BYTES, "bytes")          /* a phase expects too many bytes */ \
  X(MBAR_GONE, "gone")            /* the mbarrier is used after its inval */ \
  X(MBAR_BUSY, "busy")            /* the mbarrier is invalidated in use */ \
  X(MBAR_AGAIN, "again")          /* an inval may follow the next init */ \
  X(MBAR_DATA, "data")            /* the mbarrier is accessed as data */ \
  X(MBAR_EARLY, "early")  /* the previous phase may count an arrival */ \
  X(MBAR_TOKEN, "token")          /* a token is from an old phase */ \
  X(MBAR_FOREIGN, "foreign")      /* a token is from another mbarrier */ \
  X(MBAR_LEFT, "left")            /* the last phase is incomplete */ \
  X(MBAR_STILL, "still")          /* an inval may precede an earlier use */ \
  X(MBAR_MISSED, "missed")        /* a wait may come a phase too late */
typedef enum SimWrong { SIM_WRONGS(SIM_ID) } SimWrong;
// Kinds of faults of a tensor map in memory.
#define SIM_MAP_WRONGS(X) \
  X(MAP_NONE, "none")             /* the memory has no valid map */ \
  X(MAP_BEYOND, "beyond")         /* the map describes more than the tensor */ \
  X(MAP_UNRELEASED, "unreleased")  /* a change was not released to TMA */ \
  X(MAP_UNACQUIRED, "unacquired")  /* the copy's CTA acquired no change */ \
  X(MAP_OTHER, "other")           /* the simulator does not support the map */ \
  X(MAP_CHANGED, "changed")       /* the map changes while a copy uses it */
typedef enum SimMapWrong { SIM_MAP_WRONGS(SIM_ID) } SimMapWrong;
// Events for which a stuck warp waits.
#define SIM_STUCKS(X) \
  X(STUCK_BARRIER, "barrier") X(STUCK_MBAR, "mbarrier") \
  X(STUCK_CLUSTER, "cluster") X(STUCK_REGISTERS, "registers") \
  X(STUCK_TEAM, "team") X(STUCK_TMEM, "tensor memory") X(STUCK_FLAG, "flag")
typedef enum SimStuck { SIM_STUCKS(SIM_ID) } SimStuck;
// Kinds of misuse of a warpgroup's MMA.
#define SIM_TEAMWORKS(X) \
  X(TEAM_LANES, "lanes")      /* lanes of a warp have different operands */ \
  X(TEAM_DIFFERS, "differs")  /* warps have different operands */ \
  X(TEAM_SHORT, "short")      /* the block lacks warps of the warpgroup */ \
  X(TEAM_LACKS, "lacks")      /* some warps do not issue the MMA */
typedef enum SimTeamwork { SIM_TEAMWORKS(SIM_ID) } SimTeamwork;
// Kinds of misuse of tensor memory, or of a tcgen05 operation.
#define SIM_TENSOR_WRONGS(X) \
  X(TENSOR_NONE, "") \
  X(TENSOR_COLUMNS, "columns")  /* no allocation can have this many columns */ \
  X(TENSOR_GIVEN_UP, "given up")  /* the CTA gave up its permit to allocate */ \
  X(TENSOR_PAIR, "pair")        /* a pair's CTAs ask for different counts */ \
  X(TENSOR_HALF, "half")        /* one CTA of a pair gives up the permit */ \
  X(TENSOR_RESIDENTS, "residents")  /* blocks may wait for each other */ \
  X(TENSOR_FREE, "free")        /* columns that are freed are not allocated */ \
  X(TENSOR_PART, "part")        /* freed and allocated columns differ */ \
  X(TENSOR_OWNER, "owner")      /* another warp allocated the columns */ \
  X(TENSOR_LEFT, "left")        /* columns are never freed */ \
  X(TENSOR_OUTSIDE, "outside")  /* columns are not allocated */ \
  X(TENSOR_FREED, "freed")      /* columns are used after they were freed */ \
  X(TENSOR_UNWRITTEN, "unwritten")  /* columns are read, but never written */ \
  X(TENSOR_WINDOW, "window")    /* the warp cannot access these lanes */  \
  X(TENSOR_LANE, "lane")        /* an MMA's operand starts at a wrong lane */ \
  X(TENSOR_DIFFERS, "differs")  /* lanes of a warp have different operands */ \
  X(TENSOR_THREADS, "threads")  /* several threads issue an MMA */ \
  X(TENSOR_DESCRIPTOR, "descriptor")  /* the descriptor is not supported */    \
  X(TENSOR_CTAS, "ctas")        /* a commit names CTAs that do not exist */ \
  X(TENSOR_OPEN, "open")        /* no commit follows an MMA */ \
  X(TENSOR_BYTE, "byte")        /* scale factors start at a wrong byte */ \
  X(TENSOR_OVERLAP, "overlap")  /* an operand shares columns with D */ \
  X(TENSOR_COPIES, "copies")    /* copies of scale factors differ */ \
  X(TENSOR_RACE, "race")        /* accesses are not ordered */ \
  X(TENSOR_FENCE, "fence")      /* a tcgen05.fence is missing */
typedef enum SimTensorWrong { SIM_TENSOR_WRONGS(SIM_ID) } SimTensorWrong;
// Synchronization that is missing between two accesses to tensor memory.
#define SIM_TENSOR_LACKS(X) \
  X(TENSOR_LACKS_NONE, "") X(TENSOR_LACKS_COMMIT, "commit") \
  X(TENSOR_LACKS_LOAD, "load") X(TENSOR_LACKS_STORE, "store") \
  X(TENSOR_LACKS_ORDER, "order") X(TENSOR_LACKS_ARRIVAL, "arrival") \
  X(TENSOR_LACKS_BEFORE, "before") \
  X(TENSOR_LACKS_AFTER, "after")
typedef enum SimTensorLack { SIM_TENSOR_LACKS(SIM_ID) } SimTensorLack;
// Kinds of misuse of the instruction setmaxnreg, which reallocates registers.
#define SIM_ALLOTMENTS(X) \
  X(ALLOT_COUNT, "count")      /* the number of registers is invalid */ \
  X(ALLOT_DIFFERS, "differs")  /* warps execute different instructions */ \
  X(ALLOT_APART, "apart")      /* no barrier between two setmaxnregs */ \
  X(ALLOT_LACKS, "lacks")      /* some warps execute no setmaxnreg */
typedef enum SimAllotment { SIM_ALLOTMENTS(SIM_ID) } SimAllotment;

#endif
// SPDX-License-Identifier: MIT
