// Looked at before a kernel is compiled: whether its target has what it uses,
// and room for it.
#ifndef CUTE_PREFLIGHT_H
#define CUTE_PREFLIGHT_H

#include "ir/ir.h"

int64_t preflight_bytes(const Mem *m);  // that its elements take
// Bytes a CTA may have on sm_<sm>; the largest known for 0.
int64_t preflight_budget(int sm);
// Fails with ERR_SMEM and the table of fn's shared tensors when they are
// over the budget of sm (0: while the target is not known).
void preflight_smem(Ctx *cx, const Fn *fn, int sm);
// Fails with ERR_ARCH when fn uses an atom that sm_<sm> does not have. arch,
// if given, says by a letter behind the number whether it may use what is of
// one chip or family alone.
void preflight_arch(Ctx *cx, const Fn *fn, int sm, const char *arch);
// A sentence if m is a fragment that no thread's registers can hold, or NULL.
const char *preflight_fragment(Ctx *cx, const Fn *fn, const Mem *m);

#endif
