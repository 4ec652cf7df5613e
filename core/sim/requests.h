// The distinct requests that a run makes to shared memory: what a warp asks
// for at once, where in the memory object, and how often. So it can be asked
// what the same requests would cost if the object's elements lay elsewhere.
#ifndef CUTE_SIMREQUESTS_H
#define CUTE_SIMREQUESTS_H

#include "sim/access.h"

enum { SIMREQUESTS_MOST = 1 << 15 };  // those beyond are only counted

typedef struct SimRequest {
  SimAccess kind;
  int width;           // bytes a lane
  uint32_t mask;       // lanes; of matrices those that name a row
  int32_t mem;         // index into Fn.mem
  int32_t line;        // index into SimResult.line
  uint32_t base;       // the object's first byte in the CTA's shared memory
  uint32_t addr[32];   // bytes from there on
  uint64_t src[32];    // SIMACCESS_CPASYNC_CG: sources, from a multiple of 128
  uint64_t count;      // warp instructions
  int32_t block[3], warp;  // the first that did it
} SimRequest;

typedef struct SimRequests {
  SimRequest *p;
  uint32_t n, cap;
  uint32_t *slot, nslot;  // by hash: number + 1, or 0
  uint64_t lost;          // not recorded: there were too many
} SimRequests;

// Counts r once more; false: out of memory.
bool simrequests_add(SimRequests *all, const SimRequest *r);
// What r takes if its lanes' bytes are those from base + addr[l] on. turns:
// as access.h has it.
SimPasses simrequests_passes(const SimRequest *r, const uint32_t addr[32],
                             SimTurns *turns);
void simrequests_free(SimRequests *all);

#endif
