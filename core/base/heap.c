// Heap allocation. libcutelua has another version of this file, which counts
// the bytes of each Lua state (library/heap.c).
#include <stdlib.h>

#include "base/base.h"

#ifdef CUTE_MEMERR
// Returns 0 if this allocation must fail. The Nth allocation and all later ones
// fail, where N is the environment variable CUTELUA_MEMERR. If N is absent or
// 0, none fails.
static long memerr_left(void) {
  static long left = -2;
  if (left == -2) {
    const char *s = getenv("CUTELUA_MEMERR");
    left = s ? atol(s) : 0;
    if (left <= 0) left = -1;
  }
  if (left > 0) left--;
  return left;
}
#endif

void *base_realloc(void *p, size_t n) {
#ifdef CUTE_MEMERR
  if (memerr_left() == 0) return NULL;
#endif
  return realloc(p, n ? n : 1);
}

void *base_zeros(size_t n) {
#ifdef CUTE_MEMERR
  if (memerr_left() == 0) return NULL;
#endif
  return calloc(n ? n : 1, 1);
}

void base_free(void *p) { free(p); }

void *base_lasting(size_t n) { return base_realloc(NULL, n); }
// SPDX-License-Identifier: MIT
