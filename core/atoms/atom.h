// Copy and MMA atoms as constant tables (AtomMma, AtomCopy).
#ifndef CUTE_ATOM_H
#define CUTE_ATOM_H

#include "base/base.h"
#include "base/dtype.h"

enum {
  CPF_GLOBAL = 1, CPF_ZFILL = 2,  // cp.async: .cg instead of .ca; zero-fill
  CPF_PROMISED = 4  // the traced addresses are aligned as the atom's name
                    // requires
};

// The kind of instruction that executes an MMA. The emitter, the simulator and
// the checks handle these kinds; an atom of an existing kind needs only a row
// in its family's table.
typedef enum MmaKind {
  MK_FMA,           // UniversalFMA: plain C, no PTX
  MK_DP4A, MK_DP2A, // integer dot products
  MK_FMA2,          // two f32 in one register
  MK_MMA,           // mma.sync
  MK_WGMMA,         // wgmma.mma_async of a warpgroup
  MK_TCGEN05        // tensor memory accumulators, table only for now
} MmaKind;

// One MMA instruction. Its TV layouts, in CuTe notation, map (thread,value) to
// a linear coordinate of the column-major MxK / NxK / MxN tile.
typedef struct AtomMma {
  const char *name;             // "SM80_16x8x16_F32BF16BF16F32_TN"
  int m, n, k;
  const char *thr;              // ThrID, e.g. "32:1"
  const char *a, *b, *c;        // TV layouts
  DType d_type, a_type, b_type, c_type;
  uint8_t bits[4];              // bits of one value of D A B C in registers
  // TV layouts of a sparse A's stored MxK/2 values and of its metadata. One
  // 16-bit metadata value covers four groups of a row; a thread's register
  // holds two. A group is 4 elements (tf32: 2; 4-bit: 8), half of which are
  // stored; two 2-bit indices select them.
  const char *stored, *meta;
  int group;
  int selector;                 // wgmma: where four lanes hold the same
                                // metadata, lanes 2i and 2i + 1 supply it
  // There are `nop` operands: D A B C, then the scales of A and of B
  // (AMF_SCALE), then the metadata of A (AMF_SPARSE). Each has nreg registers a
  // thread, of the kind in regs: a PTX constraint letter, 32-bit "r"/"f" or
  // 64-bit "d"/"l", or "z" for a pair of doubles. An operand that a warpgroup
  // reads from shared memory has one 'l', a descriptor.
  int nop;
  char regs[8];                 // e.g. "frrf"
  uint8_t nreg[7];              // e.g. 4 4 2 4
  DType sf_type;                // type of the scales
  int vs;                       // elements of K per scale
  const char *ptx;              // instruction text "mma.sync.aligned...";
                                // operands D, A, B, C are appended in braces
  bool mn_major[2];             // wgmma: A, B are MN-major in shared memory
  int sm_min, sm_max;           // architectures; sm_max 0: no upper limit
  bool arch_specific;           // needs sm_XXa
  MmaKind kind;
  unsigned flags;               // AMF_*
} AtomMma;
enum {
  AMF_SAT = 1,      // .satfinite
  AMF_XORPOPC = 2, AMF_ANDPOPC = 4,
  AMF_SMEM_A = 8,   // wgmma: A in shared memory, as B always is
  AMF_TABLE = 16,   // in the table only: not emitted or simulated yet
  AMF_SPARSE = 32,  // A stores half of its values; metadata selects them
  AMF_SCALE = 64,   // block-scaled: operands SFA, SFB
  AMF_BYTE = 128    // each value of A and B takes a byte, whatever its type: 6
                    // bits at bit 0, 4 bits at bit 2
};
// Reports whether each thread executes the MMA alone, not with its warp.
static inline bool atom_mma_alone(const AtomMma *a) {
  return a->kind <= MK_FMA2;
}
// Reports whether the MMA is emitted and simulated, not only described.
static inline bool atom_mma_runs(const AtomMma *a) {
  return a->kind <= MK_WGMMA && !(a->flags & AMF_TABLE);
}
enum { ATOM_OPERANDS = 7 };

// Returns the element type of the fragments of operand i (D A B C SFA SFB E).
DType atom_mma_type(const AtomMma *a, int i);
// Returns the operand (D A B C E: 0 to 4) that group k of the MMA's registers
// belongs to.
static inline int atom_mma_run(const AtomMma *a, int k) {
  bool last = a->kind == MK_WGMMA && k == (a->flags & AMF_SMEM_A ? 1 : 2);
  return last ? 4 : k;  // wgmma: the groups are D, A (if in registers),
                        // metadata
}
// Returns the K extent of A's stored values: half of K if A is sparse.
static inline int atom_mma_depth(const AtomMma *a) {
  return a->flags & AMF_SPARSE ? a->k / 2 : a->k;
}
// Returns the number of 16-bit metadata values of a row of A.
static inline int atom_mma_words(const AtomMma *a) {
  return a->k / a->group / 4;
}

typedef enum CopyOp {
  CO_UNIVERSAL,     // plain load or store of `bits`
  CO_AUTOVEC,       // as wide as layouts and alignment allow
  CO_CPASYNC,       // cp.async, bits; CPF_* in flags
  CO_LDSM, CO_STSM, // ldmatrix / stmatrix; num matrices; trans
  CO_SHUFFLE, CO_MOVM,
  CO_LOAD, CO_STORE, // CO_UNIVERSAL from or to global memory only
  CO_BULK, CO_TABLE // in the table only, not emitted or simulated yet: bulk
                    // copies, and copies of Blackwell's matrices and tensor
                    // memory
} CopyOp;

// One copy instruction. Its layouts, in CuTe notation, map (thread,value) to a
// bit.
typedef struct AtomCopy {
  const char *name;             // "SM75_U32x4_LDSM_N"
  CopyOp op;
  const char *thr, *src, *dst, *ref;
  int bits;                     // bits moved per thread
  int num;                      // LDSM/STSM: 8x8 matrices; SHUFFLE: the partner
                                // lane is lane ^ num
  bool trans;
  unsigned flags;               // CPF_*
  const char *ptx;
  int sm_min;
} AtomCopy;

// An atom's id is its position in the list of all names that the families of
// inside.h expand to; the IR stores ids. The first request for an id expands
// its row, which then stays unchanged until the process ends. These functions
// are thread-safe and return NULL for an unknown id or when memory is
// exhausted. The row of an id returned by atom_*_find exists already.
const AtomMma *atom_mma(int id);
const AtomCopy *atom_copy(int id);
int atom_mma_find(const char *name);    // -1 when unknown
int atom_copy_find(const char *name);
// Stores the ids of the MMAs whose PTX text is `text`, at most `max`. Returns
// their number. Expands no other rows.
int atom_mma_ptx(const char *text, int *id, int max);
int atom_copy_ptx(const char *text);    // the first id; -1: there is none
int atom_mma_count(void);
int atom_copy_count(void);
// Calls `each` for every name that begins with prefix. The name is cut after
// the first "_" beyond the prefix: only its first n characters count. The same
// cut name may be passed repeatedly.
void atom_each(bool mma, const char *prefix,
               void (*each)(void *ud, const char *name, size_t n), void *ud);
// Returns the 3 nearest names, comma separated, for error messages.
const char *atom_nearest(Ctx *cx, const char *name, bool mma);
// Returns the name of a warp-wide atom of these types, or NULL.
const char *atom_mma_fitting(Ctx *cx, DType d, DType a, DType b, DType c);

#endif
// SPDX-License-Identifier: MIT
