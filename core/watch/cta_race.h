// Races between clusters in global memory (cta_race.c).
#ifndef CUTE_WATCH_CTA_RACE_H
#define CUTE_WATCH_CTA_RACE_H

#include "sim/machine.h"

// Starts recording accesses to global memory, if several clusters run and do
// not communicate.
void cta_race_start(Ctx *cx, SimProg *p);
// Records that the lanes of mask access `bytes` bytes each, from byte at[lane]
// of m on. For a store, the stored bytes are at data + lane * stride. For a
// load or an atomic, data is NULL.
void cta_race_access(SimWarp *w, const SimIns *i, const SimMem *m,
                     uint32_t mask, const int64_t *at, int bytes,
                     const uint8_t *data, int stride);
// Calls `found` for each race, in the order of the races' addresses.
void cta_race_find(const SimProg *p, SimFound *found, void *ud);

#endif
// SPDX-License-Identifier: MIT
