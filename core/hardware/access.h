// Passes and sectors that the hardware counts for one memory access of a warp.
//
// Shared memory has 32 banks, which are 4 bytes wide. A pass (wavefront) serves
// any number of lanes that access at most one word in each bank. Bank conflicts
// are the passes beyond the minimum number for an access of that width. All
// functions are pure. Addresses are byte offsets from a base that is aligned to
// 1024 bytes (shared memory) or 32 bytes (global memory). Each is aligned to
// the access width.
#ifndef CUTE_HARDWARE_ACCESS_H
#define CUTE_HARDWARE_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

// The last address pattern of an instruction, and the result for this pattern.
struct SimPattern {
  uint32_t mask;
  uint32_t rel[32];
  // For shared memory: the number of passes, and the minimum number of passes.
  // For global memory: the number of sectors, and whether all lanes access
  // adjacent bytes.
  int32_t x, y;
};

typedef enum SimAccess {
  // ld.shared, where lanes that read the same word share a pass
  ACCESS_LOAD,
  ACCESS_STORE,   // st.shared
  ACCESS_CPASYNC,  // cp.async.ca, which writes to shared memory through L1
  ACCESS_CPASYNC_CG,  // cp.async.cg, which copies 16 bytes and bypasses L1
  ACCESS_MATRIX   // ldmatrix, stmatrix
} SimAccess;

// For each lane, counted from 0: the number of the lane's group, and the number
// of the pass that serves the lane. Lanes of one group share a pass if they
// have no bank conflicts.
typedef struct SimTurns {
  uint8_t group[32], pass[32];
} SimTurns;

typedef struct SimPasses {
  int wavefronts;  // passes that the hardware counts
  int least;       // minimum number of passes for the width and the lanes
} SimPasses;       // Bank conflicts are wavefronts - least.

// Returns the passes of an ACCESS_LOAD, ACCESS_STORE or ACCESS_CPASYNC of 1, 2,
// 4, 8 or 16 bytes. Ignores lanes outside `mask`, and does not read their
// `addr`. `turns` receives the pass of each lane unless it is NULL.
SimPasses access_shared(SimAccess kind, int width,
                        const uint32_t addr[32], uint32_t mask,
                        SimTurns *turns);

// Returns the passes of an ldmatrix or stmatrix of `num` matrices, transposed
// or not. addr contains the addresses of the 8 * num matrix rows.
SimPasses access_matrix(int num, const uint32_t *addr, SimTurns *turns);

// Returns the passes of cp.async.cg, which copies 16 bytes for each lane.
SimPasses access_cpasync_cg(const uint32_t dst[32], const uint64_t src[32],
                            uint32_t mask, SimTurns *turns);

// Returns the number of 32-byte sectors that a global access of 1 to 32 bytes
// for each lane touches.
int access_global(int width, const uint64_t addr[32], uint32_t mask);

#endif
// SPDX-License-Identifier: MIT
