// Tokens of mbarriers: what an arrival gives is opaque. It may be kept, chosen
// and waited for; its bits mean nothing to the kernel.
#ifndef CUTE_IROPAQUE_H
#define CUTE_IROPAQUE_H

#include "ir/ir.h"

typedef enum OpaqueKind {
  OPAQUE_NONE,
  OPAQUE_USED,    // a token is used as a number
  OPAQUE_STORED,  // ... or stored in global memory
  OPAQUE_PHASE    // a wait is for 64 bits that no arrival gave
} OpaqueKind;

// Finds the first wrong use of a token: *at is its instruction. Scratch is in
// cx->scratch.
OpaqueKind opaque_check(Ctx *cx, const Fn *fn, Ref *at);

#endif
