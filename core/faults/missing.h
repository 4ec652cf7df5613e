// Kinds of missing synchronization: the cause of a fault in a report, if it is
// known in detail.
#ifndef CUTE_FAULTS_MISSING_H
#define CUTE_FAULTS_MISSING_H

// SL(id, "stable-name"): a kind of missing synchronization.
#define SIM_LACKS(SL) \
  SL(NONE, "") \
  SL(WAIT, "wait")         /* no wait at the asynchronous access's mbarrier */ \
  SL(STAGE, "stage")       /* the last wait was at another mbarrier */ \
  SL(BARRIER, "barrier")   /* no barrier after another thread's wait */ \
  SL(PENDING, "pending")   /* the wait left the group of the access pending */ \
  SL(AHEAD, "ahead")       /* a later iteration started a cp.async */ \
  SL(ISSUER, "issuer")     /* the waiting thread started no group */ \
  SL(READ, "read")         /* the wait covers reads only, not writes */ \
  SL(PARITY, "parity")     /* the wait succeeded in a wrong phase */ \
  SL(STAY, "stay")         /* all waits are at one mbarrier of a ring */  \
  SL(LANES, "lanes")       /* only other lanes of the warp waited */ \
  SL(BYTES, "bytes")       /* a phase expects a wrong byte count */ \
  SL(TURN, "turn")         /* a stage is overwritten before it is read */ \
  SL(ROLES, "roles")       /* the race is between warp roles */ \
  SL(FIRST, "first")       /* first wait of a producer: use parity 1 */ \
  SL(COUNT, "count")       /* a phase expects too many arrivals */ \
  SL(NOBODY, "nobody")     /* no remaining thread can arrive */ \
  SL(COMMIT, "commit")     /* no commit follows a tcgen05.mma */ \
  SL(SCOPE, "scope")       /* an access or a fence has less than GPU scope */
typedef enum SimLack {
#define SL(id, name) LACK_##id,
  SIM_LACKS(SL)
#undef SL
  SIM_LACK_COUNT
} SimLack;

#endif
// SPDX-License-Identifier: MIT
