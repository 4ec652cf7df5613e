// Memory at addresses that a kernel computes or loads (address.c).
#ifndef CUTE_SIMADDRESS_H
#define CUTE_SIMADDRESS_H

#include "sim/inside.h"

// An instruction with memory at addresses, SimIns.x of OP_PTR: as it is where
// the lanes' addresses lie in one piece of memory, for each of these.
typedef struct SimAddressed {
  SimIns *ins;             // n of them, and one of no memory
  const LaunchArg **piece;
  int n;
  uint32_t address, off;   // slots
  bool wide;               // 64-bit offsets
  int bits;                // of an element
  int64_t align;           // bytes that addresses are told to be multiples of
  uint32_t at;             // slot of offsets in the piece
  uint32_t pred;           // slot, 0: always
  bool write;
  const SimMem *mem;
} SimAddressed;

// Memory that addresses may lie in: number k of the launch's, or NULL.
const LaunchArg *simaddress_piece(const SimProg *p, size_t k);
size_t simaddress_pieces(const SimProg *p);
// Makes d OP_PTR where it has memory at addresses; *top: the end of a warp's
// values, which grow.
void simaddress_split(Ctx *cx, SimProg *p, uint32_t *top, SimIns *d);
// The lanes' next piece: those of `left` that are in piece k, whose offsets are
// written. Those that are in none are told by simaddress_wild.
uint32_t simaddress_lanes(SimWarp *w, const SimAddressed *m, int k,
                          uint32_t left);
void simaddress_wild(SimWarp *w, const SimIns *i, uint32_t lanes);

#endif
