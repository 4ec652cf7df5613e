// Checks the dimensions of a launch, and how many blocks a GPU runs (fits.c).
#ifndef CUTE_SIMFITS_H
#define CUTE_SIMFITS_H

#include "sim/prog.h"

// Fails with ERR_LAUNCH if the dimensions are invalid.
void simfits_check(Ctx *cx, const Launch *l);
// Fails with ERR_LAUNCH if the grid is too large to run all of its blocks.
void simfits_all(Ctx *cx, const Launch *l);

// Return properties of the simulated GPU: the number of SMs, of blocks that run
// at once on an SM, and of clusters that run at once.
int simfits_sms(const SimProg *p);
int simfits_blocks(const SimProg *p);
uint64_t simfits_resident(const SimProg *p);

#endif
// SPDX-License-Identifier: MIT
