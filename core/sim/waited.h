// How what agents do ends, and what is kept of waits for that (waits.c).
#ifndef CUTE_SIMWAITED_H
#define CUTE_SIMWAITED_H

#include "sim/prog.h"

// How what an agent does ends: it completes bytes at an mbarrier, or those who
// started it wait for the group that it is in.
typedef enum SimBy { BY_MBAR, BY_BULK, BY_COUNT } SimBy;

// The last wait for groups of a kind: the lanes that waited, those of them that
// had committed none; when; how many it left pending (read: of reads alone), of
// so many that each lane had committed; its line; how many waits there were.
typedef enum SimGroups {
  GROUPS_CPASYNC, GROUPS_WGMMA, GROUPS_BULK, GROUPS_COUNT
} SimGroups;
typedef struct SimWaited {
  uint32_t lanes, idle, clk, pending, src, times;
  bool read;
  uint32_t groups[LANES];
} SimWaited;

#endif
