// Checks tokens of mbarriers. The result of an arrival is opaque: a kernel may
// store, select and wait for it, but not interpret its bits.
#ifndef CUTE_IROPAQUE_H
#define CUTE_IROPAQUE_H

#include "ir/ir.h"

typedef enum OpaqueKind {
  OPAQUE_NONE,
  // a token is an operand of an operation other than a store, a select or a
  // wait
  OPAQUE_USED,
  OPAQUE_STORED,  // a token is stored in global memory
  // the phase of a wait is a 64-bit value that no arrival returned
  OPAQUE_PHASE
} OpaqueKind;

// Finds the first invalid use of a token and sets *at to its instruction. Uses
// cx->scratch.
OpaqueKind opaque_check(Ctx *cx, const Fn *fn, Ref *at);

#endif
// SPDX-License-Identifier: MIT
