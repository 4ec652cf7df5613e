// MMAs and matrix copies as decoded: who holds which element (tables.c).
#ifndef CUTE_SIMTABLES_H
#define CUTE_SIMTABLES_H

#include "atoms/atom.h"
#include "sim/inside.h"
#include "sim/mma.h"

// An MMA's operand: unit `reg[v]` of mem (and mem->per - 1 that follow) is
// value v of every thread; at[v * 32 + lane] is its place in the tile,
// row-major. Of a sparse A: of the tile of stored values.
typedef struct SimOperand {
  const SimMem *mem;
  DType type;
  int nval, size;      // values a thread; elements of the tile
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
  int groups;          // how many tiles a warp does at once (quad pairs: 4)
  int threads;         // of a group
  const uint8_t *lane; // lane[g * threads + t]
  SimOperand d, a, b, c;
  // wgmma: d, a and c are a warp's 16 rows; slots of the descriptors of A (0:
  // it is in registers) and of B, and of whether to add.
  uint32_t desc[2], add;
  const SimMem **smem;  // the objects of shared memory
  int nsmem;
  SimWord more[3];     // operands 4 and on: a 32-bit register each
  SimOperand meta;     // sparse A: where halves of metadata words belong
} SimMmaIns;

typedef struct SimMatrix {
  const AtomCopy *row;
  bool store;          // stmatrix
  int num;             // matrices
  SimSide smem;
  const SimMem *rmem;
  SimWord from;        // movmatrix: the source
  const uint32_t *reg; // first unit of each 32-bit register
  const uint8_t *half; // half[(reg * 2 + h) * 32 + lane]: which 16-bit piece
} SimMatrix;

// The decoded form of an MMA or MATRIX, in cx->scratch. last: an MMA decoded
// before, or NULL; one of the same atom shares its tables.
SimMmaIns *simtables_mma(Ctx *cx, const Launch *l, const SimMem **mem,
                         const Ins *i, const SimMmaIns *last);
SimMmaIns *simtables_wgmma(Ctx *cx, const Launch *l, const SimMem **mem,
                           const uint32_t *slot, const Ins *i,
                           const SimMmaIns *last);
SimMatrix *simtables_matrix(Ctx *cx, const Launch *l, const SimMem **mem,
                            const Ins *i);

// ---- matrix.c: tiles of registers, row-major, raw elements ----
// Scratch of SIM_ROOM bytes: 0 to 3.
void *simmatrix_room(SimWarp *w, int k);
// Group g's part of an operand, and of D.
void simmatrix_gather(SimWarp *w, const SimMmaIns *x, const SimOperand *o,
                      int g, void *to);
void simmatrix_scatter(SimWarp *w, const SimMmaIns *x, int g,
                       const void *from);
// The metadata of a sparse A: (16 rows, atom_mma_words), row-major. That of an
// instruction that begins is checked: defined, and known to the hardware.
enum { SIM_METADATA_MOST = 16 * 4 };
void simmatrix_metadata(SimWarp *w, const SimMmaIns *x, uint16_t *e);
void simmatrix_check_metadata(SimWarp *w, const SimIns *i,
                              const SimMmaIns *x);
// Which element of K stored value i of row m is.
int simmatrix_stored_at(const AtomMma *r, const uint16_t *e, int m, int i);
// f16 in place to f32, and back.
void simmatrix_widen_f16(float *tile, int n);
void simmatrix_narrow_f16(float *tile, int n);

#endif
