// Areas: the host memory of a launch's arguments (areas.c).
#ifndef CUTE_DECODE_AREAS_H
#define CUTE_DECODE_AREAS_H

#include "decode/prog.h"

// An area: host memory of one argument, or of several arguments that overlap.
// The race checks record the accesses to an area in granules. A granule is as
// large as the narrowest access to the area.
typedef struct SimPlace SimPlace;
struct SimArea {
  uint8_t *p;
  size_t bytes;
  // Address on the simulated device. In this address space, each area follows
  // the previous one.
  uint64_t start;
  int shift;               // log2 of the size of a granule in bytes
  bool written;            // whether the kernel writes this memory
  // whether the memory contains tensor maps that copies use
  bool maps;
  // `races` records the accesses by CTAs (race_records.c). `place` records the
  // accesses by clusters that communicate (hb_grid.c). NULL: not recorded.
  struct RaceRecords *races;
  SimPlace **place;
  // Bit masks with one bit for each granule (cover.h). `read`: the launch read
  // the granule. `stored`: the launch stored to it. NULL: not recorded.
  uint64_t *read, *stored;
};

// areas_find finds the areas of all pointer arguments and of memory that raw
// pointers may access. areas_note records that an instruction of the kernel
// reads or writes an area, `bytes` bytes in one access.
void areas_find(Ctx *cx, SimProg *p);
SimArea *areas_area(const SimProg *p, int32_t arg);
SimArea *areas_area_of(const SimProg *p, const LaunchArg *a);
// Returns the address of an object on the simulated device. Unlike host
// addresses, this address is the same in every run.
uint64_t areas_start_of(const SimMem *m);
void areas_note(const SimMem *m, int bytes, bool write);

// Reports whether the kernel writes the area of an object in global memory, so
// that accesses to the object are recorded.
static inline bool areas_recorded(const SimMem *m) {
  return m->area && m->area->written;
}
// Returns the index of the granule of m's area that contains byte `at` of m.
static inline size_t areas_granule(const SimMem *m, int64_t at) {
  return (size_t)(m->p - m->area->p + at) >> m->area->shift;
}

#endif
// SPDX-License-Identifier: MIT
