// Global memory that clusters share, and races between them (blocks.c).
#ifndef CUTE_SIMBLOCKS_H
#define CUTE_SIMBLOCKS_H

#include "sim/inside.h"

// Allocates the areas' records in cx->scratch.
void simblocks_start(Ctx *cx, SimProg *p);
// Records that the lanes of mask read `bytes` bytes from byte at[lane] of m on,
// or write the bytes at data + lane * stride. data is NULL if an atomic writes.
void simblocks_access(SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t mask, const int64_t *at, int bytes,
                      const uint8_t *data, int stride);
// Calls `found` for all races, in the order of addresses.
void simblocks_find(const SimProg *p, SimFound *found, void *ud);
void simblocks_free(SimProg *p);

#endif
// SPDX-License-Identifier: MIT
