// Checks, before a kernel is compiled, that its memory and registers fit the
// target. ir/target.h checks that the target supports its operations.
#ifndef CUTE_PREFLIGHT_H
#define CUTE_PREFLIGHT_H

#include "ir/ir.h"

int64_t preflight_bytes(const Mem *m);  // bytes of m's elements
// Fails with ERR_SMEM and a table of fn's shared tensors if they exceed the
// shared memory of architecture sm (0: the target is not known yet).
void preflight_smem(Ctx *cx, const Fn *fn, int sm);
// Returns a sentence for the user if m is a fragment too large for a thread's
// registers, otherwise NULL.
const char *preflight_fragment(Ctx *cx, const Fn *fn, const Mem *m);
// Returns a sentence for the user if the compiler will place fragment m in
// local memory, otherwise NULL. The compiler does so if a traced index selects
// among many of m's registers.
const char *preflight_indexed(Ctx *cx, const Fn *fn, const Mem *m);

#endif
// SPDX-License-Identifier: MIT
