// Recorded accesses: the distinct requests that a run made to shared memory. A
// request has the lanes, their bytes in the memory object, and a count. These
// data suffice to compute the bank conflicts for another layout of the object.
#ifndef CUTE_SIM_RECORD_H
#define CUTE_SIM_RECORD_H

#include "hardware/access.h"

// maximum number of distinct requests that are recorded
enum { RECORD_MOST = 1 << 15 };

typedef struct SimRequest {
  SimAccess kind;
  int width;           // bytes that each lane accesses
  // active lanes; for ldmatrix and stmatrix, the lanes that supply the address
  // of a row
  uint32_t mask;
  int32_t mem;         // index into Fn.mem
  int32_t line;        // index of the source line in SimResult.line
  // offset of the object's first byte in the CTA's shared memory
  uint32_t base;
  uint32_t addr[32];   // for each lane: byte offset in the object
  // ACCESS_CPASYNC_CG: source addresses, relative to a multiple of 128
  uint64_t src[32];
  uint64_t count;      // number of warp instructions that made this request
  int32_t block[3], warp;  // block and warp that first made the request
} SimRequest;

typedef struct SimRequests {
  SimRequest *p;
  uint32_t n, cap;
  uint32_t *slot, nslot;  // hash table: index of a request + 1; 0: unused
  // number of requests that were not recorded (there are RECORD_MOST already)
  uint64_t lost;
} SimRequests;

// Counts request r, and records it if it is new. Returns false if memory is
// exhausted.
bool record_add(SimRequests *all, const SimRequest *r);
// Returns the number of passes (bank-conflict cycles) of request r if each lane
// l accessed byte addr[l] of the object. For `turns`, see access.h.
SimPasses record_passes(const SimRequest *r, const uint32_t addr[32],
                        SimTurns *turns);
void record_free(SimRequests *all);

#endif
// SPDX-License-Identifier: MIT
