// Handlers of XLA's foreign function interface, for cutelua.jax.
#ifndef CUTE_LIBRARY_XLA_H
#define CUTE_LIBRARY_XLA_H

#include <stdint.h>

#define CUTELUA_BUILD
#include "library/cutelua.h"

// Returns the address of the handler for buffers on the host or on a GPU. An
// XLA program passes three i64 constants to the handler: `process`, which must
// equal `token`; `state`, the address of a state; and `number`, a reference to
// a function of that state. The function takes the arguments, then the results.
CUTELUA_API void *cutelua_xla_handler(int gpu, uint64_t token);

#endif
// SPDX-License-Identifier: MIT
