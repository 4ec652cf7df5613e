// Decoded MMAs, matrix copies and operations on tensor memory, with their
// fragment layouts (fragments.c).
#ifndef CUTE_DECODE_FRAGMENTS_H
#define CUTE_DECODE_FRAGMENTS_H

#include "atoms/atom.h"
#include "decode/prog.h"
#include "hardware/mma.h"
#include "hardware/ummamath.h"

// The elements of an MMA operand in the registers of each thread. Value v of a
// thread is stored in the mem->per units of mem from unit reg[v] on. at[v * 32
// + lane] is the value's row-major position in the tile. For a sparse A, the
// tile contains only the stored values.
typedef struct SimOperand {
  const SimMem *mem;
  DType type;
  // `nval` is the number of the operand's values in each thread. `size` is the
  // number of elements of the operand's tile.
  int nval, size;
  const uint32_t *reg;
  const uint16_t *at;
} SimOperand;

// A 32-bit register. It consists of the elements of mem, of 8, 16 or 32 bits,
// that begin at index `unit`.
typedef struct SimWord {
  const SimMem *mem;
  uint32_t unit;
} SimWord;

typedef struct SimMmaIns {
  const AtomMma *row;
  SimMma m;
  // number of groups of lanes; each group computes a separate tile (MMAs of
  // quad pairs have 4 groups)
  int groups;
  int threads;         // number of lanes of a group
  const uint8_t *lane; // lane[g * threads + t]: lane number t of group g
  // number of rows of a tile that the lanes of a group hold
  int rows;
  // whether value v of lane l of the accumulators is element v * 32 + l in the
  // order of mma_place; mma_multiply requires this order
  bool arranged;
  SimOperand d, a, b, c;
  // For a wgmma, d, a and c describe the 16 rows that one warp computes. `desc`
  // has the slots of the descriptors of A and B; A's is 0 if A is in registers.
  // `add` is the slot of the predicate that selects D = A * B + D over D = A *
  // B.
  uint32_t desc[2], add;
  const SimMem **smem;  // all objects of shared memory
  int nsmem;
  // scale factors of A and B, and metadata of A, each in one 32-bit register
  SimWord more[3];
  SimOperand meta;     // the 16-bit metadata words of a sparse A
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
  // half[(reg * 2 + h) * 32 + lane] is the index, among the 16-bit pieces of
  // the matrices, of half h of the lane's register `reg`
  const uint8_t *half;
} SimMatrix;

// Tensor memory of a CTA. Operations access whole groups of 16 lanes, except
// copies of single rows from shared memory.
enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_GROUP = 16, TMEM_GROUPS = 8,
       TMEM_BLOCK = 32 /* columns of the smallest allocation */ };

// The first element of an operand in tensor memory: the slots of the object's
// address and of the element's offset, in elements.
typedef struct SimTensorPlace {
  const SimMem *mem;
  uint32_t address, off;
  bool wide;           // whether the offset is a 64-bit value
} SimTensorPlace;

// A decoded MMA, copy or allocation. ctas: 2 if the operation belongs to a pair
// of CTAs (ranks 2k and 2k + 1), else 1.
typedef struct SimTensorIns {
  int ctas;
  SimTensorPlace acc;  // the accumulators, or the columns that a copy accesses
  // MMA: `a` is A in tensor memory (mem NULL: shared memory). desc has the
  // slots of the descriptors of A and B, and `add` is the slot of the
  // predicate.
  const AtomMma *row;
  SimUmma u;
  // sf: the scale factors of A and B, if u.scales is not 0. meta: the metadata
  // of a sparse A, if u.sparse.
  SimTensorPlace a, sf[2], meta;
  uint32_t desc[2], add;
  const SimMem **smem;  // all objects of shared memory
  int nsmem;
  // Copies: register v of each thread is stored in the units of rmem from
  // reg[v] on. Its cell in tensor memory is at[v * 32 + lane] = cell's lane *
  // 512 + column, relative to `acc`. `span` is the number of columns.
  const AtomCopy *copy;
  const SimMem *rmem;
  const uint32_t *reg;
  const uint16_t *at;
  int span;
  // TCCP (tcgen05.cp): desc[1] is the slot of the descriptor of the source,
  // which has `rows` rows of `bytes` bytes. The copy moves `pieces` pieces of
  // 16 bytes: source piece piece[k], counted row by row, to at[k]. `groups` is
  // the mask of the lane groups that the copy writes. Bit k of `lanes` is set
  // if it writes lane k of these groups.
  int rows, bytes, pieces;
  const uint8_t *piece;
  uint32_t groups, lanes;
  SimSide to;          // allocation: operand in shared memory that receives the
                       // address
  uint32_t columns;    // slot of the number of columns
} SimTensorIns;

// Decode an MMA or MATRIX instruction into cx->scratch. last: the previously
// decoded MMA, or NULL. Two instructions with the same atom share the atom's
// tables.
SimMmaIns *fragments_mma(Ctx *cx, const Launch *l, const SimMem **mem,
                         const Ins *i, const SimMmaIns *last);
SimMmaIns *fragments_wgmma(Ctx *cx, const Launch *l, const SimMem **mem,
                           const uint32_t *slot, const Ins *i,
                           const SimMmaIns *last);
// Decodes a tcgen05.mma, ld or st.
SimTensorIns *fragments_tensor(Ctx *cx, const Launch *l, const SimMem **mem,
                               const uint32_t *slot, const Ins *i);
SimMatrix *fragments_matrix(Ctx *cx, const Launch *l, const SimMem **mem,
                            const Ins *i);

#endif
// SPDX-License-Identifier: MIT
