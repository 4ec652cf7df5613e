// Looked at before a kernel is compiled: whether its target has room for it
// (and ir/target.h whether it has what the kernel uses).
#ifndef CUTE_PREFLIGHT_H
#define CUTE_PREFLIGHT_H

#include "ir/ir.h"

int64_t preflight_bytes(const Mem *m);  // that its elements take
// Fails with ERR_SMEM and the table of fn's shared tensors when they are
// over the budget of sm (0: while the target is not known).
void preflight_smem(Ctx *cx, const Fn *fn, int sm);
// A sentence if m is a fragment that no thread's registers can hold, or NULL.
const char *preflight_fragment(Ctx *cx, const Fn *fn, const Mem *m);
// A sentence if m is a fragment with so many registers at traced indices that
// it lies in memory, or NULL.
const char *preflight_indexed(Ctx *cx, const Fn *fn, const Mem *m);

#endif
