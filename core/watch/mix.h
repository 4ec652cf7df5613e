// A hash of an integer, for the hash tables of the checks.
#ifndef CUTE_WATCH_MIX_H
#define CUTE_WATCH_MIX_H

#include <stdint.h>

// Returns a hash of x. The factor is 2^64 divided by the golden ratio (Knuth,
// The Art of Computer Programming, volume 3, section 6.4).
static inline uint64_t watch_mix(uint64_t x) {
  x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}

#endif
// SPDX-License-Identifier: MIT
