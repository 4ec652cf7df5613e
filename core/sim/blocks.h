// Global memory that clusters share, and races between them (blocks.c).
#ifndef CUTE_SIMBLOCKS_H
#define CUTE_SIMBLOCKS_H

#include "sim/inside.h"

// Host memory of one argument, or of several arguments that overlap. CTAs'
// accesses to it are recorded in pages of granules (blocks.c; relay.c if
// clusters communicate), which are created on first use. A granule has the size
// of the narrowest access.
enum { SIM_PLANES = 4 };
typedef struct SimPlace SimPlace;
struct SimArea {
  uint8_t *p;
  size_t bytes;
  // address on the simulated device, where each area follows the previous one
  uint64_t start;
  int shift;               // log2 of the bytes of a granule
  // whether the kernel writes the memory, and whether races are possible
  bool written, watched;
  // whether the memory contains tensor maps that copies use
  bool maps;
  uint64_t **first[SIM_PLANES], **last[SIM_PLANES];
  SimPlace **place;
  // for each granule a bit: whether the launch read it, and whether it stored
  // to it; NULL: not recorded (cover.h)
  uint64_t *read, *stored;
};

// simblocks_areas finds the areas of all pointer arguments and of memory that
// raw pointers may access. simblocks_note records that an instruction of the
// kernel reads or writes `bytes` bytes of an area in one access.
// simblocks_start allocates the areas' records in cx->scratch.
void simblocks_areas(Ctx *cx, SimProg *p);
SimArea *simblocks_area(const SimProg *p, int32_t arg);
SimArea *simblocks_area_of(const SimProg *p, const LaunchArg *a);
// Returns the address of an object on the simulated device. Unlike host
// addresses, it is the same in every run.
uint64_t simblocks_start_of(const SimMem *m);
void simblocks_note(const SimMem *m, int bytes, bool write);
void simblocks_start(Ctx *cx, SimProg *p);
// Records that the lanes of mask read `bytes` bytes from byte at[lane] of m on,
// or write the bytes at data + lane * stride. data is NULL if an atomic writes.
void simblocks_access(SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t mask, const int64_t *at, int bytes,
                      const uint8_t *data, int stride);
// Calls `found` for all races, in the order of addresses.
typedef void (*Found)(void *ud, const SimFault *f);
void simblocks_find(const SimProg *p, Found found, void *ud);
void simblocks_free(SimProg *p);

#endif
// SPDX-License-Identifier: MIT
