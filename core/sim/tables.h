// Decoded MMAs and matrix copies, with their fragment layouts (tables.c).
#ifndef CUTE_SIMTABLES_H
#define CUTE_SIMTABLES_H

#include "atoms/atom.h"
#include "sim/inside.h"
#include "sim/mma.h"

// An operand of an MMA. Value v of every thread is in unit `reg[v]` of mem and
// the next mem->per - 1 units. at[v * 32 + lane] is its row-major position in
// the tile. For a sparse A, this is the tile of stored values.
typedef struct SimOperand {
  const SimMem *mem;
  DType type;
  int nval, size;      // nval: values per thread; size: elements of the tile
  const uint32_t *reg;
  const uint16_t *at;
} SimOperand;

// A 32-bit register, which consists of units of mem from `unit` on.
typedef struct SimWord {
  const SimMem *mem;
  uint32_t unit;
} SimWord;

typedef struct SimMmaIns {
  const AtomMma *row;
  SimMma m;
  int groups;          // number of tiles that a warp computes at once (quad
                       // pairs: 4)
  int threads;         // number of threads of a group
  const uint8_t *lane; // lane[g * threads + t]
  SimOperand d, a, b, c;
  // wgmma: d, a and c describe a warp's 16 rows. desc: slots of the descriptors
  // of A (0: A is in registers) and B. add: slot of the flag to accumulate.
  uint32_t desc[2], add;
  const SimMem **smem;  // all objects of shared memory
  int nsmem;
  SimWord more[3];     // operands from number 4 on, a 32-bit register each
  SimOperand meta;     // sparse A: positions of metadata half-words
} SimMmaIns;

typedef struct SimMatrix {
  const AtomCopy *row;
  bool store;          // true for stmatrix
  int num;             // number of matrices
  SimSide smem;
  const SimMem *rmem;
  SimWord from;        // movmatrix: source register
  const uint32_t *reg; // first unit of each 32-bit register
  const uint8_t *half; // half[(reg * 2 + h) * 32 + lane]: its 16-bit piece
} SimMatrix;

// Decode an MMA or MATRIX instruction into cx->scratch. last: the MMA decoded
// before, or NULL. If both have the same atom, they share its tables.
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
// simmatrix_gather copies group g's part of an operand to a tile.
// simmatrix_scatter copies a tile to D.
void simmatrix_gather(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                      int g, void *to);
void simmatrix_scatter(SimWarp *w, const SimMmaIns *x, int g,
                       const void *from);
// simmatrix_metadata reads the metadata of a sparse A, (16 rows,
// atom_mma_words) row-major. simmatrix_check_metadata checks, when an
// instruction starts, that the metadata is defined and that the hardware
// accepts it.
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
