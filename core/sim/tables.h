// Decoded MMAs and matrix copies, with their fragment layouts (tables.c).
#ifndef CUTE_SIMTABLES_H
#define CUTE_SIMTABLES_H

#include "atoms/atom.h"
#include "sim/inside.h"
#include "sim/mma.h"

// An MMA's operand. Unit `reg[v]` of mem (and the next mem->per - 1) is value v
// of every thread; at[v * 32 + lane] is its row-major position in the tile. For
// a sparse A: in the tile of stored values.
typedef struct SimOperand {
  const SimMem *mem;
  DType type;
  int nval, size;      // values per thread; elements of the tile
  const uint32_t *reg;
  const uint16_t *at;
} SimOperand;

// A 32-bit register: units of mem from `unit` on.
typedef struct SimWord {
  const SimMem *mem;
  uint32_t unit;
} SimWord;

typedef struct SimMmaIns {
  const AtomMma *row;
  SimMma m;
  int groups;          // tiles that a warp computes at once (quad pairs: 4)
  int threads;         // of a group
  const uint8_t *lane; // lane[g * threads + t]
  SimOperand d, a, b, c;
  // wgmma: d, a and c are a warp's 16 rows. Slots of the descriptors of A (0:
  // in registers) and B, and of the flag to accumulate.
  uint32_t desc[2], add;
  const SimMem **smem;  // all objects of shared memory
  int nsmem;
  SimWord more[3];     // operands from 4 on, a 32-bit register each
  SimOperand meta;     // sparse A: position of metadata half-words
} SimMmaIns;

typedef struct SimMatrix {
  const AtomCopy *row;
  bool store;          // stmatrix
  int num;             // matrices
  SimSide smem;
  const SimMem *rmem;
  SimWord from;        // movmatrix: the source
  const uint32_t *reg; // first unit of each 32-bit register
  const uint8_t *half; // half[(reg * 2 + h) * 32 + lane]: its 16-bit piece
} SimMatrix;

// Decode an MMA or MATRIX into cx->scratch. last: the MMA decoded before, or
// NULL; one of the same atom shares its tables.
SimMmaIns *simtables_mma(Ctx *cx, const Launch *l, const SimMem **mem,
                         const Ins *i, const SimMmaIns *last);
SimMmaIns *simtables_wgmma(Ctx *cx, const Launch *l, const SimMem **mem,
                           const uint32_t *slot, const Ins *i,
                           const SimMmaIns *last);
SimMatrix *simtables_matrix(Ctx *cx, const Launch *l, const SimMem **mem,
                            const Ins *i);

// ---- matrix.c: tiles of registers, row-major, raw elements ----
// Returns scratch k, 0 to 3, of SIM_ROOM bytes.
void *simmatrix_room(SimWarp *w, int k);
// Copy group g's part of an operand to a tile, and a tile to D.
void simmatrix_gather(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                      int g, void *to);
void simmatrix_scatter(SimWarp *w, const SimMmaIns *x, int g,
                       const void *from);
// Reads the metadata of a sparse A, (16 rows, atom_mma_words) row-major.
// simmatrix_check_metadata checks it when an instruction starts: it must be
// defined, and valid for the hardware.
enum { SIM_METADATA_MOST = 16 * 4 };
void simmatrix_metadata(SimWarp *w, const SimMmaIns *x, uint16_t *e);
void simmatrix_check_metadata(SimWarp *w, const SimIns *i,
                              const SimMmaIns *x);
// Returns the element of K that stored value i of row m is.
int simmatrix_stored_at(const AtomMma *r, const uint16_t *e, int m, int i);
// Convert f16 to f32 in place, and back.
void simmatrix_widen_f16(float *tile, int n);
void simmatrix_narrow_f16(float *tile, int n);

#endif
// SPDX-License-Identifier: MIT
