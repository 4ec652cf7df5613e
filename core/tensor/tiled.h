// Tiled operations: TiledMma and TiledCopy, their slices and partitions, and
// copy() and gemm(), which append the instructions.
#ifndef CUTE_TILED_H
#define CUTE_TILED_H

#include "atoms/atom.h"
#include "tensor/tensor.h"

// An atom with parsed layouts. Copy layouts are in units of values of `type`,
// not bits.
typedef struct MmaAtom {
  int id;
  const AtomMma *row;
  Layout thr, a, b, c;
  Layout stored, meta;  // layouts of a sparse A
} MmaAtom;
typedef struct CopyAtom {
  int id;
  const AtomCopy *row;
  DType type;          // value type
  int bits;            // bits of an instruction (auto-vectorising: the maximum)
  unsigned hints;      // HINT_PREFETCH for global loads
  Layout thr, src, dst, ref;  // (thr,val) -> value index
} CopyAtom;

// The tile of one of the modes M, N, K: `_`, an extent, or a layout.
typedef struct TiledPerm {
  enum { PERM_ANY, PERM_INT, PERM_LAYOUT } kind;
  Layout l;            // the layout; an extent n is stored as n:1
} TiledPerm;

typedef struct TiledMma {
  MmaAtom atom;
  Layout atoms;        // atom layout (M,N,K)
  TiledPerm perm[3];
  Layout thr_vmnk;     // (V,M,N,K) -> thread
} TiledMma;

enum { TILED_MODES = 4 };
typedef struct TiledCopy {
  CopyAtom atom;
  Layout tv;           // TiledLayout_TV
  Layout tiler[TILED_MODES];  // Tiler_MN: a tile for each mode
  bool tiler_int[TILED_MODES];  // whether a tile n:1 prints as n
  int ntiler;
} TiledCopy;

// ---- tiled.c ----
// Look up an atom by name; ERR_NAME lists the nearest names. copy_atom: `bits`
// selects a member of a family named without <type>, e.g. "UniversalCopy" (0:
// the type's width for UniversalCopy, 128 for cp.async).
MmaAtom mma_atom(Ctx *cx, const char *name);
CopyAtom copy_atom(Ctx *cx, const char *name, DType type, int bits);

// atoms: rank 1 to 3, padded with 1:0.
TiledMma tiled_mma_make(Ctx *cx, MmaAtom a, Layout atoms,
                        const TiledPerm perm[3]);
int64_t tiled_mma_size(Ctx *cx, const TiledMma *m);  // threads
// Returns the extent of a tile's mode i (M, N, K), including its permutation.
Dim tiled_mma_tile(Ctx *cx, const TiledMma *m, int i);
// Returns the extent of mode i of an operand's tensor that a tile covers: a
// sparse A has fewer elements along K.
int64_t tiled_mma_extent(Ctx *cx, const TiledMma *m, char which, int i);

// which: 'A' (M,K,...), 'B' (N,K,...), 'C' (M,N,...). The results have the form
// ((ThrV,(Thr0,Thr1)),(FrgV,(Rest0,Rest1,...))), or (FrgV,Rest0,Rest1,...) for
// a slice. thr: thread index, static or traced. A sparse A is the tensor of its
// stored values, (M,K/2,...); 'E' is its metadata, 16 bits for four groups of a
// row.
Layout tiled_mma_thrfrg(Ctx *cx, const TiledMma *m, char which, Layout l);
Tensor tiled_mma_partition(Ctx *cx, const TiledMma *m, char which, Tensor t,
                           Dim thr);
Tup tiled_mma_shape(Ctx *cx, const TiledMma *m, char which, Tup shape);
// Returns the register layout for a tensor of layout l: compact by shape for C,
// in the order of l's strides for A and B.
Layout tiled_mma_fragment(Ctx *cx, const TiledMma *m, char which, Layout l);
DType tiled_mma_type(const MmaAtom *a, char which);
// make_fragment_A for a partition (V,Rest0,Rest1,..).
Layout tiled_mma_make_fragment(Ctx *cx, const MmaAtom *a, char which,
                               Layout part);
Layout tiled_mma_tv(Ctx *cx, const TiledMma *m, char which);
void tiled_mma_print(Ctx *cx, const TiledMma *m, Buf *out);
void tiled_mma_print_atom(Ctx *cx, const MmaAtom *a, Buf *out);

// ---- gmma.c ----
// Reports whether a warpgroup's MMA reads this operand through descriptors.
bool gmma_from_shared(const MmaAtom *a, char which);
// For a partition (V,Rest...) in shared memory: returns the layout of its
// descriptors (1,Rest...), in units of 16 bytes, and sets *desc to the bits of
// a descriptor beyond its address. Fails with ERR_SHAPE if an instruction's
// operand is not canonical.
Layout gmma_layout(Ctx *cx, const MmaAtom *a, char which, Layout part,
                   uint64_t *desc);
// make_fragment_A, _B: returns the tensor of descriptors (SP_DESC).
Tensor gmma_fragment(Ctx *cx, const MmaAtom *a, char which, Tensor t);

// ---- tiledcopy.c ----
TiledCopy tiled_copy_make(Ctx *cx, CopyAtom a, Layout thr, Layout val);
// make_tiled_copy_impl: a TV layout on a tile given for each mode.
TiledCopy tiled_copy_tv(Ctx *cx, CopyAtom a, Layout tv, Tup tiler);
TiledCopy tiled_copy_cotiled(Ctx *cx, CopyAtom a, Layout tv, Layout data);
TiledCopy tiled_copy_of_mma(Ctx *cx, CopyAtom a, const TiledMma *m, char abc);
TiledCopy tiled_copy_of_copy(Ctx *cx, CopyAtom a, const TiledCopy *c,
                             char which);  // 'S' 'D'
TiledCopy tiled_copy_c_atom(Ctx *cx, CopyAtom a, const TiledMma *m);
int64_t tiled_copy_size(Ctx *cx, const TiledCopy *c);  // threads
// which: 'S' 'D'. tidfrg: (thr,(FrgV,FrgX),(RestM,RestN,...)).
Layout tiled_copy_tidfrg(Ctx *cx, const TiledCopy *c, char which, Layout l);
Tensor tiled_copy_partition(Ctx *cx, const TiledCopy *c, char which, Tensor t,
                            Dim thr);
Layout tiled_copy_retile(Ctx *cx, const TiledCopy *c, Layout l);
Layout tiled_copy_layout(Ctx *cx, const TiledCopy *c, char which);
void tiled_copy_print(Ctx *cx, const TiledCopy *c, Buf *out);
void tiled_copy_print_atom(Ctx *cx, const CopyAtom *a, Buf *out);

// ---- tiledcall.c ----
// copy(): appends the instructions that copy src to dst, atom by atom over the
// rest modes. pred is NULL or a bool tensor. It has src's shape, with a first
// mode over the atoms in V, or only the rest modes.
void tiled_copy_call(Ctx *cx, const CopyAtom *a, Tensor src, Tensor dst,
                     const Tensor *pred);

// ---- tiledgemm.c ----
// gemm(): D = A * B + C over (V,M,K) (V,N,K) (V,M,N) and lower ranks. more: the
// atom's scales of A and B, or metadata of A. accumulate: a predicate whether a
// warpgroup's first products are added to C (default: yes).
void tiled_gemm(Ctx *cx, const MmaAtom *a, Tensor d, Tensor ta, Tensor tb,
                Tensor tc, const Tensor *more, int nmore, Ref accumulate);

#endif
// SPDX-License-Identifier: MIT
