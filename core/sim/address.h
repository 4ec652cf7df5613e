// Raw pointers: memory at addresses that a kernel computes or loads
// (address.c).
#ifndef CUTE_SIMADDRESS_H
#define CUTE_SIMADDRESS_H

#include "sim/inside.h"

// An instruction with raw pointers, SimIns.x of OP_PTR. It has one copy for
// each memory object that a lane's address may be in.
typedef struct SimAddressed {
  SimIns *ins;             // n copies, and one for lanes without memory
  const LaunchArg **piece;
  int n;
  uint32_t address, off;   // slots
  bool wide;               // 64-bit offsets
  int bits;                // bits of an element
  int64_t align;           // promised alignment of the addresses, in bytes
  uint32_t at;             // slot of the offsets in the piece
  uint32_t pred;           // slot of the predicate; 0: always
  bool write;
  const SimMem *mem;
} SimAddressed;

// Returns piece k of the memory that addresses may be in, or NULL.
const LaunchArg *simaddress_piece(const SimProg *p, size_t k);
size_t simaddress_pieces(const SimProg *p);
// Turns d into OP_PTR if it has raw pointers. *top: end of a warp's values,
// which grow.
void simaddress_split(Ctx *cx, SimProg *p, uint32_t *top, SimIns *d);
// simaddress_lanes returns the lanes of `left` whose addresses are in piece k,
// and writes their offsets. simaddress_wild reports lanes that are in no piece.
uint32_t simaddress_lanes(SimWarp *w, const SimAddressed *m, int k,
                          uint32_t left);
void simaddress_wild(SimWarp *w, const SimIns *i, uint32_t lanes);

#endif
// SPDX-License-Identifier: MIT
