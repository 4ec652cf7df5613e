// Computes values that depend on no index other than the thread's
// (thread_value.c).
#ifndef CUTE_THREAD_VALUE_H
#define CUTE_THREAD_VALUE_H

#include "ir/ir.h"

// Reports whether instruction i is a constant, a special register or an integer
// operation.
bool thread_value_has(const Fn *fn, const Ins *i);
// Computes instruction i, for which thread_value_has returns true, in thread t
// of a block. v contains the bits of i's operands. Returns false for a special
// register that depends on more than the thread's index.
bool thread_value(const Fn *fn, const Ins *i, int32_t t, const uint64_t v[3],
                  uint64_t *value);
// Computes value r in thread t, through at most `depth` operations. Returns
// false if r depends on anything other than the thread's index.
bool thread_value_of(const Fn *fn, Ref r, int32_t t, int depth,
                     uint64_t *value);

#endif
// SPDX-License-Identifier: MIT
