// What a fault lacks, where more is known than its kind says.
#ifndef CUTE_SIMLACKS_H
#define CUTE_SIMLACKS_H

// SL(id, "stable-name")
#define SIM_LACKS(SL) \
  SL(NONE, "") \
  SL(WAIT, "wait")         /* nobody waited at the agent's mbarrier */ \
  SL(BARRIER, "barrier")   /* none behind others' wait, or their begin */ \
  SL(PENDING, "pending")   /* the wait for groups left its group pending */ \
  SL(ISSUER, "issuer")     /* who waited for groups had started nothing */ \
  SL(READ, "read")         /* waited for its reads alone, not its writes */ \
  SL(PARITY, "parity")     /* ... the wait passed by another phase */ \
  SL(BYTES, "bytes")       /* ... its phase, or end, has other bytes */ \
  SL(TURN, "turn")         /* who fills comes before others have read */ \
  SL(ROLES, "roles")       /* it is between threads with roles */ \
  SL(FIRST, "first")       /* the first wait to fill: parity 1 passes */ \
  SL(COUNT, "count")       /* a phase needs more arrivals than come */ \
  SL(NOBODY, "nobody")     /* nobody who is left arrives there */
typedef enum SimLack {
#define SL(id, name) LACK_##id,
  SIM_LACKS(SL)
#undef SL
  SIM_LACK_COUNT
} SimLack;
const char *sim_lack_name(SimLack k);

#endif
