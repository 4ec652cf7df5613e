// Decoded MMAs and matrix copies, with their fragment layouts (tables.c).
#ifndef CUTE_SIMTABLES_H
#define CUTE_SIMTABLES_H

#include "atoms/atom.h"
#include "sim/machine.h"
#include "hardware/mma.h"
#include "sim/tcgen05.h"

// An operand of an MMA. Value v of each thread is in the mem->per units of mem
// that start at unit reg[v]. at[v * 32 + lane] is the value's row-major
// position in the tile. For a sparse A, this is the tile of stored values.
typedef struct SimOperand {
  const SimMem *mem;
  DType type;
  // `nval` is the number of the operand's values in each thread. `size` is the
  // number of elements of the operand's tile.
  int nval, size;
  const uint32_t *reg;
  const uint16_t *at;
} SimOperand;

// A 32-bit register: the units of mem that start at `unit`.
typedef struct SimWord {
  const SimMem *mem;
  uint32_t unit;
} SimWord;

typedef struct SimMmaIns {
  const AtomMma *row;
  SimMma m;
  // number of groups of lanes, each of which computes a tile of its own (4 for
  // MMAs of quad pairs)
  int groups;
  int threads;         // number of lanes of a group
  const uint8_t *lane; // lane[g * threads + t]: lane number t of group g
  // rows of a tile that the lanes of a group hold
  int rows;
  // whether value v of lane l of the accumulators is element v * 32 + l in the
  // arrangement of mma_multiply
  bool arranged;
  SimOperand d, a, b, c;
  // For a wgmma, the operands d, a and c describe the 16 rows that one warp
  // computes. `desc` has the slots of the descriptors of A (0 if A is in
  // registers) and of B. `add` is the slot of the predicate that decides
  // whether to accumulate.
  uint32_t desc[2], add;
  const SimMem **smem;  // all objects of shared memory
  int nsmem;
  // scale factors and metadata: operands of one 32-bit register
  SimWord more[3];
  SimOperand meta;     // sparse A: tile positions of the half-words of metadata
} SimMmaIns;

typedef struct SimMatrix {
  const AtomCopy *row;
  bool store;          // whether the instruction is a stmatrix
  int num;             // number of 8x8 matrices
  SimSide smem;
  const SimMem *rmem;
  SimWord from;        // movmatrix: the source register
  // for each 32-bit register of the fragment: the number of its first unit in
  // rmem
  const uint32_t *reg;
  // half[(reg * 2 + h) * 32 + lane]: index of the 16-bit piece that is half h
  // of register `reg`
  const uint8_t *half;
} SimMatrix;

// Decode an MMA or MATRIX instruction into cx->scratch. last: the previously
// decoded MMA, or NULL. Two instructions with the same atom share its tables.
SimMmaIns *simtables_mma(Ctx *cx, const Launch *l, const SimMem **mem,
                         const Ins *i, const SimMmaIns *last);
SimMmaIns *simtables_wgmma(Ctx *cx, const Launch *l, const SimMem **mem,
                           const uint32_t *slot, const Ins *i,
                           const SimMmaIns *last);
// Decodes a tcgen05.mma, ld or st.
SimTensorIns *simtables_tensor(Ctx *cx, const Launch *l, const SimMem **mem,
                               const uint32_t *slot, const Ins *i);
SimMatrix *simtables_matrix(Ctx *cx, const Launch *l, const SimMem **mem,
                            const Ins *i);

// ---- matrix.c: tiles of registers, row-major, raw elements ----
// Returns buffer k, 0 to 3, of SIM_ROOM bytes.
void *simmatrix_room(SimWarp *w, int k);
// simmatrix_gather copies the part of an operand that group g holds to a tile.
// simmatrix_scatter copies a tile to D.
void simmatrix_gather(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                      int g, void *to);
void simmatrix_scatter(SimWarp *w, const SimMmaIns *x, int g,
                       const void *from);
// Copy float accumulators between the registers of group g and the arrangement
// of mma_multiply.
void simmatrix_accumulators(SimWarp *w, const SimMmaIns *x, int g, float *to);
void simmatrix_results(SimWarp *w, const SimMmaIns *x, int g,
                       const float *from);
// Announces that MMA i of group g computed NaNs or infinities from row-major A
// and B, and arranged C and D.
void simmatrix_nonfinite(SimWarp *w, const SimIns *i, int g, const float *a,
                         const float *b, const float *c, const float *d);
// simmatrix_metadata reads the metadata of a sparse A into e, row-major (16
// rows, atom_mma_words). simmatrix_check_metadata reports a fault if the
// metadata is undefined or if the hardware does not accept it.
enum { SIM_METADATA_MOST = 16 * 4 };
void simmatrix_metadata(SimWarp *w, const SimMmaIns *x, uint16_t *e);
void simmatrix_check_metadata(SimWarp *w, const SimIns *i,
                              const SimMmaIns *x);
// Returns the index along K of stored value i of row m.
int simmatrix_stored_at(const AtomMma *r, const uint16_t *e, int m, int i);
// Convert n values in place: f16 to f32, and back.
void simmatrix_widen_f16(float *tile, int n);
void simmatrix_narrow_f16(float *tile, int n);

#endif
// SPDX-License-Identifier: MIT
