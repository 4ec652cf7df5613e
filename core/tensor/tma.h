// Copy atoms of the copy engine (TMA): boxes of a tensor in global memory, to
// and from shared memory, through a tensor map; and runs of bytes without a
// map.
#ifndef CUTE_TMA_H
#define CUTE_TMA_H

#include "base/tensormap.h"
#include "tensor/tensor.h"

// What moves: boxes of a map; or runs from global to shared memory, back, or to
// another CTA's shared memory; or values from registers to another CTA's shared
// memory (st.async).
typedef enum TmaRuns { TMA_BOXES, TMA_G2S, TMA_S2G, TMA_S2S, TMA_R2S } TmaRuns;

typedef struct TmaAtom {
  DType type;
  uint8_t runs;        // TmaRuns
  bool store;          // a store to global memory
  bool multicast;      // a load for the cluster's CTAs in a mask
  uint16_t flags;      // BKF_*
  int ctas;            // CTAs that share a tile, each copying a slice of a box
  int64_t values;      // elements of a box, all slices included
  int64_t tile;        // elements of a CTA's tile
  TensorMap map;       // the map's words, except the values of the launch's
                       // tensor
  int8_t leaf[TENSORMAP_RANK];  // leaf of the tensor's layout for each mode, or
                                // -1
  // im2col, by spatial mode; out: pixels of the result; dilation, first:
  // dilation and first position of the filter
  int32_t out[TENSORMAP_RANK - 2], dilation[TENSORMAP_RANK - 2],
    first[TENSORMAP_RANK - 2];
  Ref ref;             // the map's TMAP, in a kernel
} TmaAtom;

// Returns the map of tensor t at an address, with the extents and strides of
// its leaves. The map may violate a rule (tensormap_check).
TensorMap tma_map(Ctx *cx, const TmaAtom *a, const Tensor *t,
                  uint64_t address);
// Returns the bytes that each CTA's shared memory receives with a whole tile.
static inline int64_t tma_bytes(const TmaAtom *a) {
  return a->tile * dtype_bits(a->type) / 8;
}

// Returns the alignment of a box in shared memory in bytes: the period of its
// swizzle pattern.
static inline int64_t tma_pattern(const TmaAtom *a) {
  return a->map.swizzle ? 128 << a->map.swizzle : 128;
}

// Further arguments of a copy, as Refs; loads take the mbarrier and the CTAs.
typedef struct TmaCall {
  Ref bar, bar_off;    // mbarrier; 0: none
  Ref mask, policy;    // CTAs; 0: none
  Ref rank;            // for S2S and R2S: the destination CTA
} TmaCall;

// copy(): emits one instruction a box, ((TMA,TMA_Iter),Rest...) on both sides.
// Global memory is given by a tensor of coordinates.
void tma_copy(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
              const TmaCall *o);
// Implements copy() for runs. The first modes of both sides are contiguous. One
// instruction copies them for each index of the other modes.
void tma_copy_runs(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
                   const TmaCall *o);
// Copies from registers, 1, 2 or 4 adjacent values at once if they are
// contiguous and aligned.
void tma_copy_send(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
                   const TmaCall *o);
// ---- tensor maps in memory: 16 elements of 64 bits ----
typedef struct MapPlace { Ref mem, off; } MapPlace;
void tma_map_copy(Ctx *cx, const TmaAtom *a, MapPlace p);
// Makes the map describe tensor t (SP_GMEM), whose leaves match the atom's.
void tma_map_update(Ctx *cx, const TmaAtom *a, const Tensor *t, MapPlace p);
// prefetch(): copies the boxes of a tensor of coordinates into L2. NULL copies
// the map itself.
void tma_prefetch(Ctx *cx, const TmaAtom *a, const Tensor *src, Ref policy);

#endif
// SPDX-License-Identifier: MIT
