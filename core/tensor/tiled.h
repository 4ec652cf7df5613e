// Tiled operations: TiledMma and TiledCopy, their slices and partitions, and
// copy() and gemm(), which append the instructions.
#ifndef CUTE_TILED_H
#define CUTE_TILED_H

#include "atoms/atom.h"
#include "tensor/tensor.h"

// MmaAtom and CopyAtom: a row of the atom table, with the row's layouts in
// parsed form. The layouts of a CopyAtom count values of `type`, not bits.
typedef struct MmaAtom {
  int id;
  const AtomMma *row;
  Layout thr, a, b, c;
  // sparse atoms: layouts of A's stored values and metadata
  Layout stored, meta;
} MmaAtom;
typedef struct CopyAtom {
  int id;
  const AtomCopy *row;
  DType type;          // type of the copied values
  // number of bits that one instruction copies; for autovec copies, the maximum
  int bits;
  unsigned hints;      // hints of global loads, such as HINT_PREFETCH
  // thr: layout of the atom's threads. src, dst, ref: layouts from
  // (thread,value) to the value's index among all values that the atom copies.
  Layout thr, src, dst, ref;
} CopyAtom;

// The tile of mode M, N or K of a TiledMma: `_`, an extent, or a layout.
typedef struct TiledPerm {
  enum { PERM_ANY, PERM_INT, PERM_LAYOUT } kind;
  Layout l;            // the tile's layout; an extent n is stored as n:1
} TiledPerm;

typedef struct TiledMma {
  MmaAtom atom;
  Layout atoms;        // atom layout: how atoms repeat along (M,N,K)
  TiledPerm perm[3];
  Layout thr_vmnk;     // (V,M,N,K) -> thread
} TiledMma;

enum { TILED_MODES = 4 };
typedef struct TiledCopy {
  CopyAtom atom;
  Layout tv;  // TiledLayout_TV of CuTe: (thread,value) -> element of the tile
  Layout tiler[TILED_MODES];  // Tiler_MN of CuTe: a tile for each mode
  // for each mode: whether the tile is an integer n, which is printed as n
  // instead of n:1
  bool tiler_int[TILED_MODES];
  int ntiler;
  // operand ('A' or 'B') of the tiled MMA for which the copy was made; 0: no
  // MMA, or A and B have the same layouts
  char operand;
} TiledCopy;

// ---- tiled.c ----
// mma_atom and copy_atom look up an atom by name. They fail with ERR_NAME,
// whose message lists the nearest names. If `name` is a family such as
// "UniversalCopy" (without <type>), `bits` selects the atom. bits = 0 selects
// the width of the type for UniversalCopy, and 128 bits for cp.async.
MmaAtom mma_atom(Ctx *cx, const char *name);
CopyAtom copy_atom(Ctx *cx, const char *name, DType type, int bits);

// Makes a TiledMma. `atoms` has rank 1 to 3; missing modes become 1:0.
TiledMma tiled_mma_make(Ctx *cx, MmaAtom a, Layout atoms,
                        const TiledPerm perm[3]);
int64_t tiled_mma_size(Ctx *cx, const TiledMma *m);  // number of threads
// Returns the extent of the tile along mode i (M, N, K), including the
// permutation.
Dim tiled_mma_tile(Ctx *cx, const TiledMma *m, int i);
// Returns how far one tile extends along mode i (M, N, K) in the tensor of
// operand `which`. For a sparse A, this tensor has only the stored values, so
// its K is shorter than the K of the product.
int64_t tiled_mma_extent(Ctx *cx, const TiledMma *m, char which, int i);

// Partition an operand. `which` is 'A' (M,K,...), 'B' (N,K,...) or 'C'
// (M,N,...). A sparse A is the tensor of its stored values, (M,K/2,...). 'E' is
// its metadata, with 16 bits for four groups of elements of a row. The results
// have the form ((ThrV,(Thr0,Thr1)),(FrgV,(Rest0,Rest1,...))), or
// (FrgV,Rest0,Rest1,...) for one thread. `thr` is the index of this thread,
// static or traced.
Layout tiled_mma_thrfrg(Ctx *cx, const TiledMma *m, char which, Layout l);
Tensor tiled_mma_partition(Ctx *cx, const TiledMma *m, char which, Tensor t,
                           Dim thr);
Tup tiled_mma_shape(Ctx *cx, const TiledMma *m, char which, Tup shape);
// Returns a register layout for the partition of a tensor with layout l. For C,
// the register layout is compact in the order of its modes. For A and B, it is
// compact in the order of l's strides.
Layout tiled_mma_fragment(Ctx *cx, const TiledMma *m, char which, Layout l);
DType tiled_mma_type(const MmaAtom *a, char which);
// Implements make_fragment_A, _B and _C: returns the register layout of a
// fragment for a partition (V,Rest0,Rest1,..).
Layout tiled_mma_make_fragment(Ctx *cx, const MmaAtom *a, char which,
                               Layout part);
Layout tiled_mma_tv(Ctx *cx, const TiledMma *m, char which);
void tiled_mma_print(Ctx *cx, const TiledMma *m, Buf *out);
void tiled_mma_print_atom(Ctx *cx, const MmaAtom *a, Buf *out);

// ---- gmma.c ----
// Reports whether an MMA reads this operand from shared memory through
// descriptors.
bool gmma_from_shared(const MmaAtom *a, char which);
// Returns the layout of the descriptors, (1,Rest...) in units of 16 bytes, for
// a partition (V,Rest...) in shared memory. Sets *desc to all bits of a
// descriptor except its address. Fails with ERR_SHAPE if one instruction's part
// of the layout is not canonical.
Layout gmma_layout(Ctx *cx, const MmaAtom *a, char which, Layout part,
                   uint64_t *desc);
// Implements make_fragment_A and _B for operands in shared memory: returns a
// tensor of descriptors (SP_DESC).
Tensor gmma_fragment(Ctx *cx, const MmaAtom *a, char which, Tensor t);
// Makes the tensor of descriptors for a tcgen05 operation that reads tensor t,
// which has the layout ((MN,K),Rest...). For tcgen05.cp, MN counts rows, and K
// counts the elements of a row. For errors, `maker` names the function, and
// `reader` names the operation.
Tensor gmma_of_umma(Ctx *cx, const char *maker, const char *reader, Tensor t,
                    bool mn_major);
// Returns the descriptor with address 0 for a layout ((MN,K),Rest...) of
// elements of `bits` bits.
uint64_t gmma_descriptor(Ctx *cx, const char *maker, Layout l, int bits,
                         bool mn_major);
// Returns a descriptor whose address is `units` * 16 bytes after the address of
// desc.
Ref gmma_beyond(Ctx *cx, Ref desc, Dim units);

// ---- umma.c ----
// Returns the number of rows of a CTA's fragment of A or C in tensor memory. In
// a pair of CTAs, and with .ws, A always has 128 rows. If the CTA has only 64
// or 32 rows of M, each row of A is stored two or four times.
int umma_rows(const AtomMma *r, char which);
// Returns the layout in tensor memory of a fragment of A or C of a tcgen05.mma,
// for a partition (V,Rest...). Offsets are in elements. A column has 32 bits,
// and lanes are 2^16 columns apart.
Layout umma_fragment(Ctx *cx, const MmaAtom *a, char which, Layout part);

// ---- tiledcopy.c ----
TiledCopy tiled_copy_make(Ctx *cx, CopyAtom a, Layout thr, Layout val);
// Implements make_tiled_copy_impl: makes a TiledCopy. `tv` maps (thread,value)
// to an element of a tile. `tiler` has the tiler of each mode.
TiledCopy tiled_copy_tv(Ctx *cx, CopyAtom a, Layout tv, Tup tiler);
TiledCopy tiled_copy_cotiled(Ctx *cx, CopyAtom a, Layout tv, Layout data);
TiledCopy tiled_copy_of_mma(Ctx *cx, CopyAtom a, const TiledMma *m, char abc);
TiledCopy tiled_copy_of_copy(Ctx *cx, CopyAtom a, const TiledCopy *c,
                             char which);  // 'S': source; 'D': destination
TiledCopy tiled_copy_c_atom(Ctx *cx, CopyAtom a, const TiledMma *m);
int64_t tiled_copy_size(Ctx *cx, const TiledCopy *c);  // number of threads
// Partition the source (which = 'S') or the destination ('D'). tidfrg returns
// (thr,(FrgV,FrgX),(RestM,RestN,...)).
Layout tiled_copy_tidfrg(Ctx *cx, const TiledCopy *c, char which, Layout l);
Tensor tiled_copy_partition(Ctx *cx, const TiledCopy *c, char which, Tensor t,
                            Dim thr);
Layout tiled_copy_retile(Ctx *cx, const TiledCopy *c, Layout l);
Layout tiled_copy_layout(Ctx *cx, const TiledCopy *c, char which);
void tiled_copy_print(Ctx *cx, const TiledCopy *c, Buf *out);
void tiled_copy_print_atom(Ctx *cx, const CopyAtom *a, Buf *out);

// ---- tiledcall.c ----
// Implements copy(): appends the instructions that copy src to dst. There is
// one atom for each index of the rest modes. `pred` is NULL or a tensor of
// bools, with one element for each index of src's rest modes. `pred` may have
// an additional first mode, with one element for each atom in V.
void tiled_copy_call(Ctx *cx, const CopyAtom *a, Tensor src, Tensor dst,
                     const Tensor *pred);

// ---- tiledgemm.c ----
// Implements gemm(): D = A * B + C, where A is (V,M,K), B is (V,N,K), and C and
// D are (V,M,N). V is the mode of an atom's values. Some of the other modes may
// be absent. `more` has the scale factors of A and B, or the metadata of a
// sparse A. `accumulate` is a predicate for a warpgroup MMA or tcgen05.mma. If
// it is true, the first products are added to C, otherwise they overwrite C. 0:
// the products are added.
void tiled_gemm(Ctx *cx, const MmaAtom *a, Tensor d, Tensor ta, Tensor tb,
                Tensor tc, const Tensor *more, int nmore, Ref accumulate);

#endif
// SPDX-License-Identifier: MIT
