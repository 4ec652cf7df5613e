// Tiled operations: TiledMma and TiledCopy, their slices and partitions, and
// copy() and gemm(), which append what they come to.
#ifndef CUTE_TILED_H
#define CUTE_TILED_H

#include "atoms/atom.h"
#include "tensor/tensor.h"

// An atom with its layouts parsed and, for copies, in units of values of
// `type` (bits divided out).
typedef struct MmaAtom {
  int id;
  const AtomMma *row;
  Layout thr, a, b, c;
  Layout stored, meta;  // of a sparse A
} MmaAtom;
typedef struct CopyAtom {
  int id;
  const AtomCopy *row;
  DType type;          // value type
  int bits;            // per copy instruction (auto-vectorising: the limit)
  unsigned hints;      // of what is read in global memory: HINT_PREFETCH
  Layout thr, src, dst, ref;  // (thr,val) -> value index
} CopyAtom;

// A tile of one of the modes M, N, K: `_`, an extent, or a layout.
typedef struct TiledPerm {
  enum { PERM_ANY, PERM_INT, PERM_LAYOUT } kind;
  Layout l;            // extent n: n:1
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
  Layout tiler[TILED_MODES];  // Tiler_MN, by mode
  bool tiler_int[TILED_MODES];  // n:1 that prints as n
  int ntiler;
} TiledCopy;

// ---- tiled.c ----
// By name; ERR_NAME with the nearest ones. copy_atom: `bits` chooses a member
// of a family that is given without <type> ("UniversalCopy"; 0: type's own
// for UniversalCopy, 128 for cp.async).
MmaAtom mma_atom(Ctx *cx, const char *name);
CopyAtom copy_atom(Ctx *cx, const char *name, DType type, int bits);

// atoms: rank 1 to 3, filled up with 1:0.
TiledMma tiled_mma_make(Ctx *cx, MmaAtom a, Layout atoms,
                        const TiledPerm perm[3]);
int64_t tiled_mma_size(Ctx *cx, const TiledMma *m);  // threads
// Extent of a tile's mode i (M, N, K), permutation included.
Dim tiled_mma_tile(Ctx *cx, const TiledMma *m, int i);
// The same of an operand's tensor: a sparse A has fewer elements along K.
int64_t tiled_mma_extent(Ctx *cx, const TiledMma *m, char which, int i);

// which: 'A' (M,K,...), 'B' (N,K,...), 'C' (M,N,...); the results are
// ((ThrV,(Thr0,Thr1)),(FrgV,(Rest0,Rest1,...))), for a slice
// (FrgV,Rest0,Rest1,...). thr: thread index, static or traced. A sparse A is
// a tensor of the values that are there, (M,K/2,...), and 'E' its metadata,
// 16 bits for four groups of a row.
Layout tiled_mma_thrfrg(Ctx *cx, const TiledMma *m, char which, Layout l);
Tensor tiled_mma_partition(Ctx *cx, const TiledMma *m, char which, Tensor t,
                           Dim thr);
Tup tiled_mma_shape(Ctx *cx, const TiledMma *m, char which, Tup shape);
// Register layout for a tensor of layout l: of C compact by shape, of A and
// B in the order of l.
Layout tiled_mma_fragment(Ctx *cx, const TiledMma *m, char which, Layout l);
DType tiled_mma_type(const MmaAtom *a, char which);
// make_fragment_A of a partition (V,Rest0,Rest1,..).
Layout tiled_mma_make_fragment(Ctx *cx, const MmaAtom *a, char which,
                               Layout part);
Layout tiled_mma_tv(Ctx *cx, const TiledMma *m, char which);
void tiled_mma_print(Ctx *cx, const TiledMma *m, Buf *out);
void tiled_mma_print_atom(Ctx *cx, const MmaAtom *a, Buf *out);

// ---- gmma.c ----
// Does a warpgroup's MMA read this operand through descriptors?
bool gmma_from_shared(const MmaAtom *a, char which);
// Of a partition (V,Rest...) in shared memory: the layout of its descriptors
// (1,Rest...), in units of 16 bytes, and the bits of one beyond its address.
// ERR_SHAPE where what an instruction reads is not canonical.
Layout gmma_layout(Ctx *cx, const MmaAtom *a, char which, Layout part,
                   uint64_t *desc);
// make_fragment_A, _B: the tensor of descriptors (SP_DESC).
Tensor gmma_fragment(Ctx *cx, const MmaAtom *a, char which, Tensor t);

// ---- tiledcopy.c ----
TiledCopy tiled_copy_make(Ctx *cx, CopyAtom a, Layout thr, Layout val);
// make_tiled_copy_impl: a TV layout on a tile given by mode.
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
// copy(): appends the instructions that move src to dst, atom by atom over
// the rest modes; pred NULL or a bool tensor: as src's shape with a first
// mode of the atoms in V, or the rest modes alone.
void tiled_copy_call(Ctx *cx, const CopyAtom *a, Tensor src, Tensor dst,
                     const Tensor *pred);

// ---- tiledgemm.c ----
// gemm(): D = A * B + C over (V,M,K) (V,N,K) (V,M,N) and lower ranks. more:
// scales of A and B, metadata of A, as the atom takes them. accumulate: a
// predicate, whether a warpgroup's first products are added to C; 0: they are.
void tiled_gemm(Ctx *cx, const MmaAtom *a, Tensor d, Tensor ta, Tensor tb,
                Tensor tc, const Tensor *more, int nmore, Ref accumulate);

#endif
