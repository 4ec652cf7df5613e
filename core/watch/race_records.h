// Records of the accesses to areas of global memory (race_records.c).
// cta_race.c compares them to find races between CTAs.
#ifndef CUTE_WATCH_RACE_RECORDS_H
#define CUTE_WATCH_RACE_RECORDS_H

#include "decode/areas.h"
#include "sim/machine.h"

#include <string.h>

// Fields of a record, from the lowest bit on:
// - the stored value: a digest, or MANY if different values were stored;
// - the line: an index into Fn.src, or 0 if the index is too large;
// - the thread;
// - the CTA, counted from 1.
// A record of 0 states that there was no access.
enum { SRC_AT = 16, THREAD_AT = 28, CTA_AT = 38, MANY = 0xffff };
enum { MAX_SRC = 1 << (THREAD_AT - SRC_AT), MAX_CTA = (1 << 26) - 2 };
static inline uint64_t race_cta(uint64_t record) { return record >> CTA_AT; }

// Returns a digest of a stored value of n bytes. It is less than MANY.
static inline uint64_t race_digest(const uint8_t *data, int n) {
  uint64_t u = 0;
  int k = 0;
  do {
    uint64_t part = 0;
    if (n == 4) memcpy(&part, data, 4);
    else if (n < 4) memcpy(&part, data, n == 2 ? 2 : 1);
    else memcpy(&part, data + k, 8);
    u = (u ^ part) * 0x9e3779b97f4a7c15ull;
  } while ((k += 8) < n);
  return (u >> 32) * MANY >> 32;
}

// Classes of accesses to a granule. For each class, a record describes the CTA
// with the lowest number that performed such an access. If several CTAs did,
// another record, whose kind is LAST plus the class, describes the CTA with the
// highest number.
enum { READ, WRITE, STRONG_READ, STRONG_WRITE, LAST, RACE_KINDS = 2 * LAST };

// A granule is the unit of recorded memory. The granules of an area are grouped
// into chunks of CHUNK, and the chunks into pages of RACE_PAGE. A chunk has one
// row of records for each kind of record that at least one of its granules has.
enum { CHUNK = 32, RACE_PAGE = 128 };
typedef struct RaceRow {
  struct RaceRow *next;  // another row of the chunk
  int kind;
  uint64_t record[CHUNK];
} RaceRow;

// A chunk of area a in which a cluster records accesses of one class. Other
// clusters wait until this cluster leaves the chunk. `rows` is the list of all
// rows of the chunk. `record` has the records of the class.
typedef struct RaceChunk {
  SimCluster *c;
  const SimArea *a;
  int class;
  uint64_t *slot;
  RaceRow *rows;
  uint64_t *record;
} RaceChunk;
// Enters chunk n of x->a. Returns false if memory is exhausted.
bool race_enter(RaceChunk *x, size_t n);
void race_leave(RaceChunk *x);
// Merges an access into the existing records of granule g of the chunk.
void race_merge(RaceChunk *x, size_t g, uint64_t access);
// Adds an access to the records of granule g of the chunk.
static inline void race_add(RaceChunk *x, size_t g, uint64_t access) {
  if (x->record[g]) race_merge(x, g, access);
  else x->record[g] = access;
}

// race_records_start allocates the records of a launch in cx->scratch.
// race_records_fold compresses the records of a cluster that has ended.
void race_records_start(Ctx *cx, SimProg *p);
void race_records_fold(SimCluster *c);
void race_records_release(SimCluster *c);
void race_records_free(SimProg *p);

// Returns the number of chunks of an area, or 0 if the area has no records.
size_t race_chunks(const SimArea *a);
// Sets row[kind], for each kind, to the records of this kind in chunk n, or to
// NULL if there are none. Returns false if the chunk is folded or has no rows:
// at most one CTA then accessed it. May only be called after the launch.
bool race_rows(const SimArea *a, size_t n, const uint64_t *row[RACE_KINDS]);

#endif
// SPDX-License-Identifier: MIT
