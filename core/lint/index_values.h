// Values of integer expressions in all threads of a block (index_values.c).
#ifndef CUTE_INDEX_VALUES_H
#define CUTE_INDEX_VALUES_H

#include "ir/ir.h"

// A point of the execution: a block, iteration k of `loop`, and the first
// iteration of all other loops (if `last` is set, the last). `value` caches the
// values of instructions at this point.
typedef struct IndexValues {
  Ctx *cx;
  const Fn *fn;
  int32_t n;           // number of threads
  int32_t block[3];    // index of the block
  Ref loop;            // loop (a FOR) in iteration k; 0: none
  int64_t k;           // iteration of `loop`, from 0 on
  bool last;
  int64_t **value;  // for each instruction: its value in each thread, or NULL
  // for each instruction: 0 if not computed, 1 if `value` is known, 2 if
  // unknown
  uint8_t *met;
  int budget;          // number of values that may still be computed
  int depth;           // current depth of recursion of index_values
} IndexValues;

IndexValues index_values_at(Ctx *cx, const Fn *fn, int budget);
// Forgets all values. Call it after setting another block or iteration.
void index_values_forget(IndexValues *v);
// Returns the value of r in each thread. Returns NULL if r depends on more than
// indices and constants.
const int64_t *index_values(IndexValues *v, Ref r);

#endif
// SPDX-License-Identifier: MIT
