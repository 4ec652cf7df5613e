// Tiled operations: TiledMma and TiledCopy, their slices and partitions.
#ifndef CUTE_TILED_H
#define CUTE_TILED_H

#include "atom.h"
#include "tensor.h"

// An atom with its layouts parsed and, for copies, in units of values of
// `type` (bits divided out).
typedef struct MmaAtom {
  int id;
  const AtomMma *row;
  Layout thr, a, b, c;
} MmaAtom;
typedef struct CopyAtom {
  int id;
  const AtomCopy *row;
  DType type;          // value type
  int bits;            // per copy instruction (auto-vectorising: the limit)
  Layout thr, src, dst, ref;  // (thr,val) -> value index
} CopyAtom;

typedef struct TiledMma {
  MmaAtom atom;
  Layout atoms;        // atom layout (M,N,K)
  Tup perm;            // permutation tile: 3 modes, `_`, int or layouts
  Layout perm_l[3];    // the same as layouts where given
  Layout thr_vmnk;     // (V,M,N,K) -> thread
} TiledMma;

typedef struct TiledCopy {
  CopyAtom atom;
  Layout tv;           // TiledLayout_TV
  Layout tiler[4];     // Tiler_MN, by mode
  int ntiler;
} TiledCopy;

MmaAtom mma_atom(Ctx *cx, const char *name);
CopyAtom copy_atom(Ctx *cx, const char *name, DType type, int bits);
TiledMma tiled_mma_make(Ctx *cx, MmaAtom a, Layout atoms, Tup perm,
                        const Layout *perm_l);
TiledCopy tiled_copy_make(Ctx *cx, CopyAtom a, Layout thr, Layout val);
TiledCopy tiled_copy_of_mma(Ctx *cx, CopyAtom a, const TiledMma *m, char abc);

// which: 'A' 'B' 'C'; thr: thread index (static or traced)
Layout tiled_mma_thrfrg(Ctx *cx, const TiledMma *m, char which, Layout l);
Tensor tiled_mma_partition(Ctx *cx, const TiledMma *m, char which, Tensor t,
                           Dim thr);
Layout tiled_mma_fragment(Ctx *cx, const TiledMma *m, char which, Layout l);
// which: 'S' 'D'
Tensor tiled_copy_partition(Ctx *cx, const TiledCopy *c, char which, Tensor t,
                            Dim thr);
Tensor tiled_copy_retile(Ctx *cx, const TiledCopy *c, char which, Tensor t);

// copy(): appends the instructions that move src to dst, atom by atom over
// the rest modes; pred NULL or a bool tensor over the rest modes.
void tiled_copy_call(Ctx *cx, const CopyAtom *a, Tensor src, Tensor dst,
                     const Tensor *pred);
// gemm(): D = A * B + C over (V,M,K) (V,N,K) (V,M,N) and lower ranks.
void tiled_gemm(Ctx *cx, const MmaAtom *a, Tensor d, Tensor ta, Tensor tb,
                Tensor tc);

#endif
