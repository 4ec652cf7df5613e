// Copy and MMA atoms: tables of instructions with their layouts.
#ifndef CUTE_ATOM_H
#define CUTE_ATOM_H

#include "base/base.h"
#include "base/dtype.h"

enum {
  // Flags of cp.async. GLOBAL: .cg instead of .ca. ZFILL: writes zeros for
  // lanes whose predicate is false.
  CPF_GLOBAL = 1, CPF_ZFILL = 2,
  // The script guarantees that all addresses have the alignment that the atom's
  // name states, so the alignment is not checked.
  CPF_PROMISED = 4,
  // tcgen05.ld, .st: each register holds two 16-bit values, from the lower
  // halves of two columns.
  CPF_PACK = 8
};

// The kind of instruction that executes an MMA. The emitter, the simulator and
// the checks have code for each kind. An atom of an existing kind therefore
// needs only a row in its family's table.
typedef enum MmaKind {
  MK_FMA,           // UniversalFMA: plain C, no PTX
  MK_DP4A, MK_DP2A, // integer dot products
  MK_FMA2,          // FMA of two pairs of f32, each pair in a 64-bit register
  MK_MMA,           // mma.sync
  MK_WGMMA,         // wgmma.mma_async of a warpgroup
  MK_TCGEN05        // tcgen05.mma, with accumulators in tensor memory
} MmaKind;
// The first kinds are those that each lane executes alone.
CONSECUTIVE(4, 0, MK_FMA2);

// One MMA instruction. Its TV layouts, in CuTe notation, map (thread,value) to
// a linear coordinate of the column-major MxK / NxK / MxN tile.
typedef struct AtomMma {
  const char *name;             // "SM80_16x8x16_F32BF16BF16F32_TN"
  int m, n, k;
  // Layout of the threads that execute the MMA, which CuTe calls ThrID: "32:1".
  const char *thr;
  const char *a, *b, *c;        // TV layouts
  DType d_type, a_type, b_type, c_type;
  uint8_t bits[4];  // number of bits of one value of D, A, B and C in registers
  // TV layouts of the values of a sparse A that are stored (M x K/2), and of
  // its metadata. A group is 4 elements of a row (tf32: 2; 4-bit: 8), half of
  // which are stored. Two 2-bit indices select the stored elements. A 16-bit
  // metadata value covers four groups. A register holds two metadata values.
  const char *stored, *meta;
  int group;
  // Sparse wgmma: two of the four lanes that need the same metadata supply it:
  // lanes 2i and 2i + 1, where i is this selector.
  int selector;
  // Operands: D A B C, then the scales of A and of B (AMF_SCALE), then the
  // metadata of A (AMF_SPARSE). nop is the number of operands. nreg[i] is the
  // number of registers of operand i in each thread, or 0 if it is in tensor
  // memory. regs[i] is the PTX constraint letter of these registers: 'r' and
  // 'f' have 32 bits, 'd' and 'l' have 64 bits, and 'z' is a pair of doubles.
  // An operand in shared memory has one register 'l', its descriptor.
  int nop;
  char regs[8];                 // e.g. "frrf"
  uint8_t nreg[7];              // e.g. 4 4 2 4 for D A B C
  DType sf_type;                // type of the scales
  int vs;  // number of elements along K that share one scale
  // PTX instruction, "mma.sync.aligned...". The emitter appends the operands in
  // the order D, A, B, C.
  const char *ptx;
  bool mn_major[2];   // wgmma, tcgen05: whether A, B are MN-major
  // Range of architectures. sm_max is 0 if there is no upper limit.
  int sm_min, sm_max;
  bool arch_specific;           // needs sm_XXa
  MmaKind kind;
  unsigned flags;               // AMF_*
} AtomMma;
enum {
  AMF_SAT = 1,      // .satfinite
  AMF_XORPOPC = 2, AMF_ANDPOPC = 4,
  AMF_SMEM_A = 8,   // wgmma, tcgen05: A is in shared memory (B always is)
  AMF_TABLE = 16,   // the atom is only described: neither emitted nor simulated
  AMF_SPARSE = 32,  // sparse A: only half of its elements are stored
  AMF_SCALE = 64,   // block-scaled: has the scales SFA and SFB as operands
  // Each element of A and B takes a byte. A 6-bit element is at bit 0 of the
  // byte, a 4-bit element at bit 2.
  AMF_BYTE = 128,
  // tcgen05.mma.ws (weight-stationary): D occupies all lanes. If D has 32 or 64
  // rows, the other lanes contain other columns of D.
  AMF_WS = 256
};
// Reports whether a single thread executes the MMA, not a warp or more.
static inline bool atom_mma_alone(const AtomMma *a) {
  return a->kind <= MK_FMA2;
}
// Returns how many CTAs execute the MMA together. For tcgen05.mma.cta_group::2,
// this is 2: each CTA has half of A along M, of B along N, and of C along M.
static inline int atom_mma_ctas(const AtomMma *a) {
  return a->kind == MK_TCGEN05 && a->thr[0] == '2' ? 2 : 1;
}
// tcgen05.mma: a CTA may hold the columns of D in several parts, one below the
// other. Returns the number of parts. The lanes of part k follow those of part
// k - 1.
static inline int atom_umma_parts(const AtomMma *a) {
  bool pair = atom_mma_ctas(a) == 2;
  return a->flags & AMF_WS ? 128 / a->m : pair && a->m == 128 ? 2 : 1;
}
// Reports whether the MMA is emitted and simulated, not only described.
static inline bool atom_mma_runs(const AtomMma *a) {
  return !(a->flags & AMF_TABLE);
}
enum { ATOM_OPERANDS = 7 };

// Returns the element type of the fragments of operand i (D A B C SFA SFB E).
DType atom_mma_type(const AtomMma *a, int i);
// Returns the operand (0 to 3: D A B C; 4: metadata) whose registers are the
// k-th list of registers in the PTX instruction.
static inline int atom_mma_run(const AtomMma *a, int k) {
  bool last = a->kind == MK_WGMMA && k == (a->flags & AMF_SMEM_A ? 1 : 2);
  // The lists of wgmma are D, A (unless in shared memory), metadata.
  return last ? 4 : k;
}
// Returns the number of elements of a row of A that are stored: K, or half of K
// if A is sparse.
static inline int atom_mma_depth(const AtomMma *a) {
  return a->flags & AMF_SPARSE ? a->k / 2 : a->k;
}
// Returns the number of 16-bit metadata values of one row of a sparse A.
static inline int atom_mma_words(const AtomMma *a) {
  return a->k / a->group / 4;
}

typedef enum CopyOp {
  CO_UNIVERSAL,     // plain load or store of `bits`
  CO_AUTOVEC,       // copy as wide as layouts and alignment allow
  CO_CPASYNC,       // cp.async of `bits`; flags: CPF_*
  CO_LDSM, CO_STSM, // ldmatrix, stmatrix: copy `num` matrices
  CO_SHUFFLE, CO_MOVM,
  CO_LOAD, CO_STORE, // plain load or store that accesses only global memory
  // tcgen05.ld, tcgen05.st: copy `num` registers of each thread
  CO_TMEM_LOAD, CO_TMEM_STORE,
  CO_TMEM_CP,  // tcgen05.cp, from shared to tensor memory
  // Copies that are only described, neither emitted nor simulated. CO_BULK:
  // bulk copies. CO_TABLE: Blackwell's copies of 8-bit matrices.
  CO_BULK, CO_TABLE
} CopyOp;

// One copy instruction. Its layouts, in CuTe notation, map (thread,value) to
// the index of a bit.
typedef struct AtomCopy {
  const char *name;             // "SM75_U32x4_LDSM_N"
  CopyOp op;
  const char *thr, *src, *dst, *ref;
  // tcgen05.cp: layout from the bits of dst to tensor memory, whose lanes are
  // 2^21 bits apart
  const char *tmem;
  int bits;  // number of bits that one instruction copies for each thread
  // ldmatrix, stmatrix: number of 8x8 matrices. Shuffle: lane i exchanges
  // values with lane i ^ num. Copies of tensor memory: number of registers of a
  // thread.
  int num;
  bool trans;
  unsigned flags;               // CPF_*
  const char *ptx;
  int sm_min;
} AtomCopy;

// Bit positions, in an instruction descriptor, of the fields for the scale
// factors of A and of B. Each field is the index, 0 to 3, of the byte in a
// column of tensor memory where the scale factors start.
enum { UMMA_SFA_BIT = 29, UMMA_SFB_BIT = 4 };
// Returns the instruction descriptor of a tcgen05.mma, with zeros in the two
// fields of the scale factors.
uint32_t atom_umma_descriptor(const AtomMma *r);
// tcgen05.mma with a sparse A: returns the number of columns of tensor memory
// that hold the metadata of a CTA's rows. If it is 1, the lowest bits of the
// instruction descriptor select one column of a pair (UMMA_SELECTOR).
static inline int atom_umma_metadata(const AtomMma *a) {
  return atom_mma_words(a) / 2;
}
enum { UMMA_SELECTOR = 3 };
// Returns the position in tensor memory of 16-bit value w of a row's metadata:
// 4 * lane, plus the index of the value within the lane.
int atom_umma_metadata_at(const AtomMma *a, int row, int w);
// Reports whether four metadata bits are a valid selection of a group's stored
// elements.
bool atom_umma_metadata_valid(const AtomMma *a, unsigned nibble);
// Returns the id of the tcgen05.mma with this PTX text and instruction
// descriptor, or -1. smem_a says that A is in shared memory, not in tensor
// memory.
int atom_umma_find(const char *text, bool smem_a, uint32_t descriptor);
// Writes the PTX opcode of a copy to or from tensor memory, such as
// "tcgen05.ld.sync.aligned.32x32b.x4.b32", to `text`.
enum { TMEM_TEXT = 80 };  // bytes of the longest opcode
void atom_tmem_text(const AtomCopy *r, char text[TMEM_TEXT]);
// Returns the id of the copy with this opcode, or -1.
int atom_tmem_find(const char *opcode);

// An atom's id is its position in the list of all names that the families of
// inside.h expand to. The IR stores ids. The first request for an id expands
// its row, which then stays unchanged until the process ends. These functions
// are thread-safe and return NULL for an unknown id or when memory is
// exhausted. atom_*_find expands the row of the id that it returns.
const AtomMma *atom_mma(int id);
const AtomCopy *atom_copy(int id);
int atom_mma_find(const char *name);    // returns -1 if the name is unknown
int atom_copy_find(const char *name);
// Stores the ids of the MMAs whose PTX text is `text`, at most `max` of them,
// and returns their number. Does not add rows to the cache.
int atom_mma_ptx(const char *text, int *id, int max);
// Returns the id of the first copy atom whose PTX text is `text`, or -1.
int atom_copy_ptx(const char *text);
int atom_mma_count(void);
int atom_copy_count(void);
// Lists completions of a prefix: calls each(ud, name, n) for every name that
// begins with it. Cuts a name after its first "_" beyond the prefix, to n
// characters. May pass the same cut name repeatedly.
void atom_each(bool mma, const char *prefix,
               void (*each)(void *ud, const char *name, size_t n), void *ud);
// Returns the 3 existing names nearest to `name`, comma separated, for error
// messages.
const char *atom_nearest(Ctx *cx, const char *name, bool mma);
// Returns the name of a warp-wide MMA atom with these element types, or NULL.
const char *atom_mma_fitting(Ctx *cx, DType d, DType a, DType b, DType c);

#endif
// SPDX-License-Identifier: MIT
