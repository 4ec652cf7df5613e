// Checks the dimensions of a launch, and computes how many blocks a GPU runs at
// once (fits.c).
#ifndef CUTE_DECODE_FITS_H
#define CUTE_DECODE_FITS_H

#include "decode/prog.h"

// Fails with ERR_LAUNCH if the dimensions are invalid.
void fits_check(Ctx *cx, const Launch *l);
// Fails with ERR_LAUNCH if the grid has too many blocks for the simulator to
// run all of them.
void fits_all(Ctx *cx, const Launch *l);

// Return properties of the simulated GPU: the number of SMs, of blocks that run
// at once on an SM, and of clusters that run at once.
int fits_sms(const SimProg *p);
int fits_blocks(const SimProg *p);
uint64_t fits_resident(const SimProg *p);

#endif
// SPDX-License-Identifier: MIT
