// Finds parts of register fragments that a kernel loads and never reads
// (unread_parts.c).
#ifndef CUTE_UNREAD_PARTS_H
#define CUTE_UNREAD_PARTS_H

#include "ir/ir.h"

typedef struct UnreadPart {
  Ref at;  // the first instruction that loads elements that nothing reads
  const Mem *mem;
  // n: number of unread elements. first: offset of the first one.
  int64_t n, first;
} UnreadPart;

// Calls `found` for each fragment with an unread part.
void unread_parts(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const UnreadPart *u), void *ud);

#endif
// SPDX-License-Identifier: MIT
