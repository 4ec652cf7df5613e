// Checks the grid, block and cluster dimensions of a launch (fits.c).
#ifndef CUTE_SIMFITS_H
#define CUTE_SIMFITS_H

#include "sim/sim.h"

// Fails with ERR_LAUNCH if the dimensions are invalid.
void simfits_check(Ctx *cx, const Launch *l);
// Fails with ERR_LAUNCH if the grid is too large to run all of its blocks.
void simfits_all(Ctx *cx, const Launch *l);

#endif
// SPDX-License-Identifier: MIT
