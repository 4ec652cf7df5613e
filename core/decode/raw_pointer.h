// Raw pointers: memory at addresses that a kernel computes or loads
// (raw_pointer.c).
#ifndef CUTE_DECODE_RAW_POINTER_H
#define CUTE_DECODE_RAW_POINTER_H

#include "decode/prog.h"

// An instruction with raw pointers: SimIns.x of an OP_PTR. The instruction is
// copied once for each memory object that may contain a lane's address.
typedef struct SimAddressed {
  // n copies of the instruction, one for each object that the pointer may point
  // to, and one more for lanes that access no memory
  SimIns *ins;
  const LaunchArg **piece;
  int n;
  // slots of the base address and of the offset in elements
  uint32_t address, off;
  bool wide;               // whether offsets have 64 bits
  int bits;                // bits per element
  // alignment in bytes that the script guarantees for base addresses
  int64_t align;
  uint32_t at;  // slot that receives the offset of each lane in its object
  uint32_t pred;           // slot of the predicate; 0: no predicate
  bool write;
  const SimMem *mem;
} SimAddressed;

// raw_pointer_pieces returns the number of memory objects that raw pointers may
// address. raw_pointer_piece returns object k of these, counted from 0, or
// NULL.
const LaunchArg *raw_pointer_piece(const SimProg *p, size_t k);
size_t raw_pointer_pieces(const SimProg *p);
// Reports whether an address is in a memory object.
static inline bool raw_pointer_in(const LaunchArg *a, uint64_t address) {
  return address - (uintptr_t)a->p < a->bytes;
}
// Prepares p for copies through tensor maps in memory. Such a map may describe
// any object that raw pointers may address. If an object has no name, reports
// use m's name. `write` says whether the copies write.
void raw_pointer_reach(Ctx *cx, SimProg *p, const SimMem *m, bool write);
// Returns the object that contains an address, or NULL. Call raw_pointer_reach
// first.
const SimMem *raw_pointer_object(const SimProg *p, uint64_t address);
// Turns instruction d into an OP_PTR if it has raw pointers. *top is the end of
// a warp's values, where the slots for the offsets are allocated.
void raw_pointer_split(Ctx *cx, SimProg *p, uint32_t *top, SimIns *d);

#endif
// SPDX-License-Identifier: MIT
