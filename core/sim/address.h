// Raw pointers: memory at addresses that a kernel computes or loads
// (address.c).
#ifndef CUTE_SIMADDRESS_H
#define CUTE_SIMADDRESS_H

#include "sim/machine.h"

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

// simaddress_pieces returns the number of memory objects that raw pointers may
// address. simaddress_piece returns number k of these objects, from 0 on, or
// NULL.
const LaunchArg *simaddress_piece(const SimProg *p, size_t k);
size_t simaddress_pieces(const SimProg *p);
// Prepares p for copies through tensor maps in memory. Such a map may describe
// any object that raw pointers may address. Reports use m's name for an object
// that has no name. write: whether the copies write.
void simaddress_reach(Ctx *cx, SimProg *p, const SimMem *m, bool write);
// Returns the object that contains an address, or NULL. Call simaddress_reach
// first.
const SimMem *simaddress_object(const SimProg *p, uint64_t address);
// Turns instruction d into an OP_PTR if it has raw pointers. Allocates slots
// for the offsets at *top, the end of a warp's values.
void simaddress_split(Ctx *cx, SimProg *p, uint32_t *top, SimIns *d);
// simaddress_lanes returns the lanes among `left` whose addresses are in object
// k, and writes the offsets of these lanes to slot m->at. simaddress_one
// returns the copy of instruction i that all active lanes execute, with their
// offsets in its slot; it returns i if i has no raw pointers, or if the lanes
// access several objects. simaddress_next does the same for the instruction
// that w executes next. simaddress_wild reports a fault of lanes whose
// addresses are in no object.
uint32_t simaddress_lanes(SimWarp *w, const SimAddressed *m, int k,
                          uint32_t left);
const SimIns *simaddress_one(SimWarp *w, const SimIns *i);
const SimIns *simaddress_next(SimWarp *w);
void simaddress_wild(SimWarp *w, const SimIns *i, uint32_t lanes);

#endif
// SPDX-License-Identifier: MIT
