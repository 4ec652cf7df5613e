// Raw pointers: memory at addresses that a kernel computes or loads
// (address.c).
#ifndef CUTE_SIMADDRESS_H
#define CUTE_SIMADDRESS_H

#include "sim/inside.h"

// An instruction with raw pointers, SimIns.x of OP_PTR. It has one copy for
// each memory object that a lane's address may be in.
typedef struct SimAddressed {
  SimIns *ins;             // n copies, and one for lanes that access no memory
  const LaunchArg **piece;
  int n;
  uint32_t address, off;   // slots of the address and of the offset
  bool wide;               // offsets have 64 bits
  int bits;                // bits per element
  int64_t align;           // promised alignment of the addresses, in bytes
  uint32_t at;             // slot of the offsets in the object
  uint32_t pred;           // slot of the predicate; 0: none
  bool write;
  const SimMem *mem;
} SimAddressed;

// Returns memory object k of those that addresses may be in, or NULL.
const LaunchArg *simaddress_piece(const SimProg *p, size_t k);
size_t simaddress_pieces(const SimProg *p);
// Turns d into OP_PTR if it has raw pointers. Adds values to a warp's values,
// whose end is *top.
void simaddress_split(Ctx *cx, SimProg *p, uint32_t *top, SimIns *d);
// simaddress_lanes returns the lanes of `left` whose addresses are in object k,
// and writes their offsets. simaddress_wild reports lanes whose addresses are
// in no object.
uint32_t simaddress_lanes(SimWarp *w, const SimAddressed *m, int k,
                          uint32_t left);
void simaddress_wild(SimWarp *w, const SimIns *i, uint32_t lanes);

#endif
// SPDX-License-Identifier: MIT
