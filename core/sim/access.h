// What the hardware counts for one memory access of a warp.
//
// A shared-memory pass (wavefront) serves any number of lanes as long as no
// bank (4 bytes wide, 32 of them) is asked for two different words. Bank
// conflicts, as users know them, are the passes beyond the fewest that the
// width allows. Pure functions; addresses are bytes from a base aligned to
// 1024 (shared) or 32 (global), aligned to the access width.
#ifndef CUTE_SIMACCESS_H
#define CUTE_SIMACCESS_H

#include <stdbool.h>
#include <stdint.h>

struct SimPattern {  // the last address pattern and its answer
  uint32_t mask;
  uint32_t rel[32];
  int32_t x, y;
};

typedef enum SimAccess {
  SIMACCESS_LOAD,    // ld.shared: lanes may merge
  SIMACCESS_STORE,   // st.shared
  SIMACCESS_CPASYNC,     // cp.async.ca, its write to shared memory
  SIMACCESS_CPASYNC_CG,  // of 16 bytes past L1
  SIMACCESS_MATRIX   // ldmatrix, stmatrix
} SimAccess;

// How a request is served, by lane: lanes of one group could be served at once,
// those of one pass are. Both count from 0.
typedef struct SimTurns {
  uint8_t group[32], pass[32];
} SimTurns;

typedef struct SimPasses {
  int wavefronts;  // passes that the hardware counts
  int least;       // the fewest that this width and these lanes allow
} SimPasses;       // conflicts = wavefronts - least

// The first three kinds. width 1 2 4 8 16; lanes outside `mask` do not count
// (addr is not read). turns: to be filled in, or NULL.
SimPasses simaccess_shared(SimAccess kind, int width,
                           const uint32_t addr[32], uint32_t mask,
                           SimTurns *turns);

// ldmatrix, stmatrix, transposed or not: addr[8*num], the rows' addresses.
SimPasses simaccess_matrix(int num, const uint32_t *addr, SimTurns *turns);

// cp.async.cg of 16 bytes a lane (L1 bypassed): destination and source.
SimPasses simaccess_cpasync_cg(const uint32_t dst[32], const uint64_t src[32],
                               uint32_t mask, SimTurns *turns);

// 32-byte sectors that a global load or store of width 1..32 touches.
int simaccess_global(int width, const uint64_t addr[32], uint32_t mask);

#endif
