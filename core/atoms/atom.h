// Copy and MMA atoms as const tables (AtomMma, AtomCopy).
#ifndef CUTE_ATOM_H
#define CUTE_ATOM_H

#include "base/base.h"
#include "base/dtype.h"

enum {
  CPF_GLOBAL = 1, CPF_ZFILL = 2,  // cp.async: .cg, not .ca; zero-fill
  CPF_PROMISED = 4  // what is traced is aligned as the atom's name says
};

// What executes an MMA: emitter, simulator and checks know these kinds, and
// an atom of one of them is a row of its family's table.
typedef enum MmaKind {
  MK_FMA,           // UniversalFMA: plain C, no PTX
  MK_DP4A, MK_DP2A, // sums of integer products
  MK_FMA2,          // two f32 in one register
  MK_MMA,           // mma.sync
  MK_WGMMA,         // wgmma.mma_async of a warpgroup
  MK_TCGEN05        // tensor memory accumulators, table only for now
} MmaKind;

// One MMA instruction. TV layouts in CuTe notation, (thread,value) -> linear
// coordinate of the column-major MxK / NxK / MxN tile.
typedef struct AtomMma {
  const char *name;             // "SM80_16x8x16_F32BF16BF16F32_TN"
  int m, n, k;
  const char *thr;              // ThrID, e.g. "32:1"
  const char *a, *b, *c;        // TV layouts
  DType d_type, a_type, b_type, c_type;
  uint8_t bits[4];              // one value of D A B C takes these in registers
  // Of a sparse A: of the MxK/2 values that are there; of its metadata, 16
  // bits for four groups of a row, two of these in a thread's register. A group
  // is 4 elements (tf32: 2, 4 bits: 8), of which half are there: two indices
  // of 2 bits say which.
  const char *stored, *meta;
  int group;
  int selector;                 // wgmma: where four lanes have the same, lanes
                                // 2i and 2i + 1 are looked at
  // Operands are D A B C, then the scales of A and of B (AMF_SCALE), then the
  // metadata of A (AMF_SPARSE): nop of them. Registers of one thread per
  // operand: 32-bit "r"/"f" or 64-bit "d"/"l", as the PTX constraint letter,
  // or "z", a pair of doubles; nreg of them. 'l' once for what a warpgroup
  // reads from shared memory: a descriptor.
  int nop;
  char regs[8];                 // e.g. "frrf"
  uint8_t nreg[7];              // e.g. 4 4 2 4
  DType sf_type;                // of scales
  int vs;                       // elements of K that one scale is for
  const char *ptx;              // "mma.sync.aligned...": instruction text;
                                // operands D, A, B, C are appended in braces
  bool mn_major[2];             // wgmma: is A, is B in shared memory so?
  int sm_min, sm_max;           // architectures; sm_max 0: no end
  bool arch_specific;           // needs sm_XXa
  MmaKind kind;
  unsigned flags;               // AMF_*
} AtomMma;
enum {
  AMF_SAT = 1,      // .satfinite
  AMF_XORPOPC = 2, AMF_ANDPOPC = 4,
  AMF_SMEM_A = 8,   // wgmma: A from shared memory, as B always is
  AMF_TABLE = 16,   // described, not yet emitted or simulated
  AMF_SPARSE = 32,  // A holds half of its values; metadata says which
  AMF_SCALE = 64,   // block-scaled: operands SFA, SFB
  AMF_BYTE = 128    // A and B take a byte a value, whatever their type:
                    // 6 bits at bit 0, 4 bits at bit 2
};
// Each thread for itself, not the warp together.
static inline bool atom_mma_alone(const AtomMma *a) {
  return a->kind <= MK_FMA2;
}
// Is it emitted and simulated, not only described?
static inline bool atom_mma_runs(const AtomMma *a) {
  return a->kind <= MK_WGMMA && !(a->flags & AMF_TABLE);
}
enum { ATOM_OPERANDS = 7 };

// The element type that fragments of operand i (D A B C SFA SFB E) have.
DType atom_mma_type(const AtomMma *a, int i);
// Which operand run number k of an MMA's registers is.
static inline int atom_mma_run(const AtomMma *a, int k) {
  bool last = a->kind == MK_WGMMA && k == (a->flags & AMF_SMEM_A ? 1 : 2);
  return last ? 4 : k;  // wgmma: D, A if it is in registers, metadata
}
// K of what is there of A: half of it is if A is sparse.
static inline int atom_mma_depth(const AtomMma *a) {
  return a->flags & AMF_SPARSE ? a->k / 2 : a->k;
}
// 16-bit values of metadata that a row of A has.
static inline int atom_mma_words(const AtomMma *a) {
  return a->k / a->group / 4;
}

typedef enum CopyOp {
  CO_UNIVERSAL,     // plain load/store of `bits`
  CO_AUTOVEC,       // as wide as layouts and alignment allow
  CO_CPASYNC,       // cp.async, bits; CPF_* in flags
  CO_LDSM, CO_STSM, // ldmatrix / stmatrix; num matrices; trans
  CO_SHUFFLE, CO_MOVM,
  CO_LOAD, CO_STORE, // as CO_UNIVERSAL, from or to global memory only
  CO_BULK, CO_TABLE // described, not yet emitted or simulated: bulk copies,
                    // and those of Blackwell's matrices and tensor memory
} CopyOp;

// One copy instruction; layouts (thread,value) -> bit, in CuTe notation.
typedef struct AtomCopy {
  const char *name;             // "SM75_U32x4_LDSM_N"
  CopyOp op;
  const char *thr, *src, *dst, *ref;
  int bits;                     // moved per thread
  int num;                      // LDSM/STSM: 8x8 matrices; SHUFFLE: the
                                // other lane is lane ^ num
  bool trans;
  unsigned flags;               // CPF_*
  const char *ptx;
  int sm_min;
} AtomCopy;

// Atoms have ids, places in the list of all names that the families of
// inside.h expand to: IR stores the id. A row is made of its family when it
// is first asked for and lives, unchanged, as long as the process; asking is
// safe from any thread. NULL: no such id, or out of memory. An id that
// atom_*_find gave has its row already.
const AtomMma *atom_mma(int id);
const AtomCopy *atom_copy(int id);
int atom_mma_find(const char *name);    // -1 when unknown
int atom_copy_find(const char *name);
int atom_mma_count(void);
int atom_copy_count(void);
// Each name that begins with prefix, up to the next "_" behind it: its first n
// characters. The same may come again.
void atom_each(bool mma, const char *prefix,
               void (*each)(void *ud, const char *name, size_t n), void *ud);
// Up to 3 nearest names, comma separated, for error messages.
const char *atom_nearest(Ctx *cx, const char *name, bool mma);
// A warp-wide atom of these types, or NULL.
const char *atom_mma_fitting(Ctx *cx, DType d, DType a, DType b, DType c);

#endif
