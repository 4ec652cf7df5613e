// Keeps the properties of this machine's GPUs for later processes, in the
// user's cache (cache.h). cuInit takes 0.1 s and more. A process that reads the
// properties from the cache can trace and compile a kernel meanwhile.
//
// A record is valid until the machine starts again, or one of these changes:
// the driver's library, the environment variables that select GPUs, and which
// of the GPUs' device files this user can open.
#ifndef CUTE_KNOWN_H
#define CUTE_KNOWN_H

#include "gpu/cuda.h"

// Sets the properties of GPU g->ordinal for driver version g->driver. Returns
// false if there is no valid record.
bool known_read(Gpu *g);
void known_write(const Gpu *g);
void known_remove(const Gpu *g);  // makes the record of GPU g->ordinal invalid

// Reports whether the properties of two GPUs are equal.
bool known_same(const Gpu *a, const Gpu *b);

#endif
// SPDX-License-Identifier: MIT
