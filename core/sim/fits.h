// Whether a launch's grid, blocks and clusters fit (fits.c).
#ifndef CUTE_SIMFITS_H
#define CUTE_SIMFITS_H

#include "sim/sim.h"

// Fails with ERR_LAUNCH where they do not.
void simfits_check(Ctx *cx, const Launch *l);

#endif
