// Happens-before between clusters that communicate (hb_grid.c).
//
// Clusters communicate if a cluster's result may depend on other clusters of
// the launch: the cluster reads global memory with a memory order, or uses the
// result of an atomic. All clusters then run on one host thread, interleaved in
// an order that the seed determines. Results therefore do not depend on the
// number of host threads.
#ifndef CUTE_WATCH_HB_GRID_H
#define CUTE_WATCH_HB_GRID_H

#include "sim/machine.h"

void hb_grid_start(Ctx *cx, SimProg *p);  // called if clusters communicate
void hb_grid_free(SimProg *p);

// Checks and records an access to global memory by the lanes of mask. Each lane
// accesses x->bytes bytes, from byte x->at[lane] on. For a store, the stored
// bytes are at data + lane * stride. For an atomic, data is NULL.
void hb_grid_access(Access *x, uint32_t mask, const uint8_t *data,
                    int stride);
// Record that lane l reads or writes byte `at` of m with a memory order. `keep`
// is true if the write replaces a value that its thread released or read.
// Acquires that read the new value then still acquire the older releases.
void hb_grid_read(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                  int64_t at);
void hb_grid_write(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                   int64_t at, bool keep);
// Records that the active lanes execute a fence.
void hb_grid_fence(SimWarp *w, FenceKind kind);
// Reports whether epoch clk of lane `lane` of warp `warp` of cluster `unit`
// happens before lane l of w.
bool hb_grid_knows(SimWarp *w, int l, uint32_t unit, int warp, int lane,
                   uint32_t clk);
// Finds the line and the block of the last write to byte `at` of m. Returns
// false if no write to the byte is known.
bool hb_grid_writer(const SimProg *p, const SimMem *m, int64_t at,
                    uint32_t *src, int32_t block[3]);

#endif
// SPDX-License-Identifier: MIT
