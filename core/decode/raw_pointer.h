// Raw pointers: memory at addresses that a kernel computes or loads
// (raw_pointer.c).
#ifndef CUTE_DECODE_RAW_POINTER_H
#define CUTE_DECODE_RAW_POINTER_H

#include "decode/prog.h"

// An instruction with raw pointers: SimIns.x of an OP_PTR. It has a copy for
// each memory object that may contain a lane's address.
typedef struct SimAddressed {
  // n copies, and one more for lanes that access no memory
  SimIns *ins;
  const LaunchArg **piece;
  int n;
  // address: slot of the base address. off: slot of the offset in elements.
  uint32_t address, off;
  bool wide;               // whether offsets have 64 bits
  int bits;                // bits per element
  // alignment in bytes that the script guarantees for base addresses
  int64_t align;
  uint32_t at;  // slot that receives each lane's offset in its object
  uint32_t pred;           // slot of the predicate; 0: no predicate
  bool write;
  const SimMem *mem;
} SimAddressed;

// raw_pointer_pieces returns the number of memory objects that raw pointers may
// address. raw_pointer_piece returns object number k of these, from 0 on, or
// NULL.
const LaunchArg *raw_pointer_piece(const SimProg *p, size_t k);
size_t raw_pointer_pieces(const SimProg *p);
// Reports whether an address is in a memory object.
static inline bool raw_pointer_in(const LaunchArg *a, uint64_t address) {
  return address - (uintptr_t)a->p < a->bytes;
}
// Prepares p for copies through tensor maps in memory. Such a map may describe
// any object that raw pointers may address. Reports use m's name for an object
// that has no name. write: whether the copies write.
void raw_pointer_reach(Ctx *cx, SimProg *p, const SimMem *m, bool write);
// Returns the object that contains an address, or NULL. Call raw_pointer_reach
// first.
const SimMem *raw_pointer_object(const SimProg *p, uint64_t address);
// Turns instruction d into an OP_PTR if it has raw pointers. Allocates slots
// for the offsets at *top, the end of a warp's values.
void raw_pointer_split(Ctx *cx, SimProg *p, uint32_t *top, SimIns *d);

#endif
// SPDX-License-Identifier: MIT
