// Detects MMAs that multiply a block of elements with the scale factor of
// another block (scales.c).
#ifndef CUTE_WATCH_SCALES_H
#define CUTE_WATCH_SCALES_H

#include "sim/hooks.h"

// Begins to record which factor scales which block, if the kernel has MMAs with
// scale factors.
void scales_start(Ctx *cx, SimProg *p);
void scales_stop(SimProg *p);
bool scales_init(SimCluster *c);   // returns false if memory is exhausted
void scales_reset(SimCluster *c);
void scales_free(SimCluster *c);

// Implement the hooks wanted, came, copied and scaled of core/sim/hooks.h.
bool scales_wanted(const SimCluster *c);
void scales_came(SimCluster *c, uint32_t addr, const SimOrigin16 *from);
void scales_copied(SimCluster *c, const SimTensorIns *x, uint64_t desc, int cta,
                   int column);
void scales_scaled(SimWarp *w, const SimIns *i, const SimScaledRows *x);
// Records that `bytes` bytes of shared memory from addr on were overwritten, so
// that their origin is unknown.
void scales_forget(const SimCluster *c, uint32_t addr, uint32_t bytes);

// Finds the first block of elements that is multiplied with the scale factor of
// another block, or with a factor outside its tensor. Describes it in *out.
void scales_find(Ctx *cx, const SimProg *p, SimWrongScale *out);

#endif
// SPDX-License-Identifier: MIT
