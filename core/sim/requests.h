// Recorded accesses: the distinct requests of a run to shared memory, with the
// lanes, the bytes in the memory object, and a count. From these records the
// cost of the same requests can be computed for another layout of the object.
#ifndef CUTE_SIMREQUESTS_H
#define CUTE_SIMREQUESTS_H

#include "sim/access.h"

enum { SIMREQUESTS_MOST = 1 << 15 };  // further requests are only counted

typedef struct SimRequest {
  SimAccess kind;
  int width;           // bytes per lane
  uint32_t mask;       // lanes; for ldmatrix and stmatrix: lanes that name a
                       // row
  int32_t mem;         // index into Fn.mem
  int32_t line;        // index into SimResult.line
  uint32_t base;       // the object's first byte in the CTA's shared memory
  uint32_t addr[32];   // bytes from `base`
  uint64_t src[32];    // SIMACCESS_CPASYNC_CG: sources, relative to a multiple
                       // of 128
  uint64_t count;      // number of warp instructions with this request
  int32_t block[3], warp;  // block and warp of the first one
} SimRequest;

typedef struct SimRequests {
  SimRequest *p;
  uint32_t n, cap;
  uint32_t *slot, nslot;  // hash table: index + 1, or 0 for a free entry
  uint64_t lost;          // requests that were not recorded: too many
} SimRequests;

// Counts r once more; false: out of memory.
bool simrequests_add(SimRequests *all, const SimRequest *r);
// Returns the passes of r if its lanes' bytes start at base + addr[l]. turns:
// see access.h.
SimPasses simrequests_passes(const SimRequest *r, const uint32_t addr[32],
                             SimTurns *turns);
void simrequests_free(SimRequests *all);

#endif
// SPDX-License-Identifier: MIT
