// Checks tokens of mbarriers. The result of an arrival is opaque: a kernel may
// store, select and wait for it, but not interpret its bits.
#ifndef CUTE_IROPAQUE_H
#define CUTE_IROPAQUE_H

#include "ir/ir.h"

typedef enum OpaqueKind {
  OPAQUE_NONE,
  OPAQUE_USED,    // a token is used as a number
  OPAQUE_STORED,  // ... or stored in global memory
  OPAQUE_PHASE    // a wait for a 64-bit value that no arrival returned
} OpaqueKind;

// Finds the first invalid use of a token, at instruction *at. Scratch is in
// cx->scratch.
OpaqueKind opaque_check(Ctx *cx, const Fn *fn, Ref *at);

#endif
// SPDX-License-Identifier: MIT
