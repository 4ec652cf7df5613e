// Global memory that clusters share, and their races there (blocks.c).
#ifndef CUTE_SIMBLOCKS_H
#define CUTE_SIMBLOCKS_H

#include "sim/inside.h"

// Host memory that arguments share, where they overlap or are one. Accesses
// of CTAs are kept in pages of granules (the narrowest access) made when
// first touched; see blocks.c, and relay.c where clusters take turns.
enum { SIM_PLANES = 4 };
typedef struct SimPlace SimPlace;
struct SimArea {
  uint8_t *p;
  size_t bytes;
  uint64_t start;          // in a card's memory, one area behind the other
  int shift;               // log2 of a granule's bytes
  bool written, watched;   // by the kernel; there may be races
  bool maps;               // copies take tensor maps from there
  uint64_t **first[SIM_PLANES], **last[SIM_PLANES];
  SimPlace **place;
};

// Finds the areas of all pointer arguments, and of memory that addresses may
// lie in; notes an access to one of them;
// makes what the launch needs, in cx->scratch.
void simblocks_areas(Ctx *cx, SimProg *p);
SimArea *simblocks_area(const SimProg *p, int32_t arg);
SimArea *simblocks_area_of(const SimProg *p, const LaunchArg *a);
// Where an object begins in a card's memory: the same in every run, whatever
// the host gave.
uint64_t simblocks_start_of(const SimMem *m);
void simblocks_note(const SimMem *m, int bytes, bool write);
void simblocks_start(Ctx *cx, SimProg *p);
// The lanes of mask read so many bytes at byte at[lane] of m, or write what is
// at data + lane * stride (NULL: an atomic).
void simblocks_access(SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t mask, const int64_t *at, int bytes,
                      const uint8_t *data, int stride);
// The block that stored to a byte of an area first, from 1 on; 0: none.
uint64_t simblocks_writer(const SimArea *a, const uint8_t *byte);
// All races, in order of places.
typedef void (*Found)(void *ud, const SimFault *f);
void simblocks_find(const SimProg *p, Found found, void *ud);
void simblocks_free(SimProg *p);

#endif
