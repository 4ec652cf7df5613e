// Communicating clusters (relay.c).
//
// The result of a cluster may depend on other clusters of the launch if it
// reads global memory with a memory order, or uses the result of an atomic.
// Then all clusters run on one host thread, interleaved in an order that the
// seed determines. Therefore results do not depend on the number of host
// threads.
#ifndef CUTE_SIMRELAY_H
#define CUTE_SIMRELAY_H

#include "sim/inside.h"

void simrelay_start(Ctx *cx, SimProg *p);  // if clusters communicate
void simrelay_free(SimProg *p);

// Checks and records accesses to global memory. The lanes of mask read x->bytes
// bytes at x->at[lane], or write the bytes at data + lane * stride. data is
// NULL if an atomic writes.
void simrelay_access(Access *x, uint32_t mask, const uint8_t *data,
                     int stride);
// Record that lane l reads or writes byte `at` of m with a memory order. keep:
// the write replaces a value that its thread released or read, so acquires from
// the byte still acquire the older releases.
void simrelay_read(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                   int64_t at);
void simrelay_write(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                    int64_t at, bool keep);
// Records a fence by the active lanes.
void simrelay_fence(SimWarp *w, FenceKind kind);
// Reports whether epoch clk of a thread of cluster `unit` happens before lane l
// of w.
bool simrelay_knows(SimWarp *w, int l, uint32_t unit, int warp, int lane,
                    uint32_t clk);
// Finds the line and the block of the last write to a byte of m. Returns false
// if none is known.
bool simrelay_writer(const SimProg *p, const SimMem *m, int64_t at,
                     uint32_t *src, int32_t block[3]);

#endif
// SPDX-License-Identifier: MIT
