// Host memory of the arguments of a launch (areas.c).
#ifndef CUTE_DECODE_AREAS_H
#define CUTE_DECODE_AREAS_H

#include "decode/prog.h"

// Host memory of one argument, or of several arguments that overlap. Accesses
// of CTAs to this memory are recorded for each granule. A granule has the size
// of the narrowest access.
typedef struct SimPlace SimPlace;
struct SimArea {
  uint8_t *p;
  size_t bytes;
  // Address on the simulated device. In this address space, each area follows
  // the previous one.
  uint64_t start;
  int shift;               // log2 of the bytes of a granule
  bool written;            // whether the kernel writes this memory
  // whether the memory contains tensor maps that copies use
  bool maps;
  // `races`: records of accesses by CTAs (race_records.c). `place`: records of
  // accesses by clusters that communicate (hb_grid.c). NULL: not recorded.
  struct RaceRecords *races;
  SimPlace **place;
  // for each granule, a bit: read: whether the launch read it; stored: whether
  // the launch stored to it; NULL: not recorded (cover.h)
  uint64_t *read, *stored;
};

// areas_find finds the areas of all pointer arguments and of memory that
// raw pointers may access. areas_note records that an instruction of the
// kernel reads or writes `bytes` bytes of an area in one access.
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
