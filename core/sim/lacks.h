// What is missing where a fault occurs, if more is known than its kind.
#ifndef CUTE_SIMLACKS_H
#define CUTE_SIMLACKS_H

// SL(id, "stable-name")
#define SIM_LACKS(SL) \
  SL(NONE, "") \
  SL(WAIT, "wait")         /* no wait at the agent's mbarrier */ \
  SL(BARRIER, "barrier")   /* no barrier after another thread's wait */ \
  SL(PENDING, "pending")   /* the wait left its group pending */ \
  SL(ISSUER, "issuer")     /* the waiting thread started no group */ \
  SL(READ, "read")         /* the wait covers its reads only */ \
  SL(PARITY, "parity")     /* the wait passed on another phase */ \
  SL(BYTES, "bytes")       /* its phase expects other bytes */ \
  SL(TURN, "turn")         /* refilled before others have read */ \
  SL(ROLES, "roles")       /* it is between warp roles */ \
  SL(FIRST, "first")       /* first wait of a producer: use parity 1 */ \
  SL(COUNT, "count")       /* a phase expects too many arrivals */ \
  SL(NOBODY, "nobody")     /* no remaining thread arrives there */
typedef enum SimLack {
#define SL(id, name) LACK_##id,
  SIM_LACKS(SL)
#undef SL
  SIM_LACK_COUNT
} SimLack;
const char *sim_lack_name(SimLack k);

#endif
// SPDX-License-Identifier: MIT
