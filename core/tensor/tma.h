// Copy atoms of TMA. With a tensor map, TMA copies boxes between a tensor in
// global memory and shared memory. Bulk copies move contiguous bytes without a
// tensor map.
#ifndef CUTE_TMA_H
#define CUTE_TMA_H

#include "base/tensormap.h"
#include "tensor/tensor.h"

// Kinds of copies. TMA_BOXES copies boxes, through a tensor map. The other
// kinds copy contiguous bytes without a map.
// - TMA_G2S: from global to shared memory.
// - TMA_S2G: from shared to global memory.
// - TMA_S2S: from shared memory to another CTA's shared memory.
// - TMA_R2S: from registers to another CTA's shared memory (st.async).
typedef enum TmaRuns { TMA_BOXES, TMA_G2S, TMA_S2G, TMA_S2S, TMA_R2S } TmaRuns;

typedef struct TmaAtom {
  DType type;
  // type of the map's elements; each contains one or several elements of `type`
  DType unit;
  uint8_t runs;        // TmaRuns
  bool store;          // whether the atom stores to global memory
  // whether a load writes to several CTAs, which TmaCall.mask selects
  bool multicast;
  uint16_t flags;      // flags BKF_*
  // number of CTAs that share a tile; each CTA copies a slice of a box
  int ctas;
  // number of elements of a box, for all CTAs that share the box
  int64_t values;
  int64_t tile;        // number of elements of a CTA's tile
  // the tensor map. Its address, extents and strides are filled in at each
  // launch.
  TensorMap map;
  // for each mode of the map: index of the leaf of the tensor's layout that the
  // mode traverses, or -1 if there is none
  int8_t leaf[TENSORMAP_RANK];
  // bit mask of further leaves that mode 0 of the map traverses: in memory,
  // they continue leaf[0]
  uint64_t inner;
  // for each spatial mode of an im2col load: extent of the convolution's
  // result, dilation of the filter, and first position of the filter
  int32_t out[TENSORMAP_RANK - 2], dilation[TENSORMAP_RANK - 2],
    first[TENSORMAP_RANK - 2];
  Ref ref;             // in a kernel: the TMAP instruction that names the map
} TmaAtom;

// Returns the tensor map of a tensor at `address`, with the extents and strides
// of t. The map may be invalid: see tensormap_check.
TensorMap tma_map(Ctx *cx, const TmaAtom *a, const Tensor *t,
                  uint64_t address);
// Returns how many elements of the tensor an element of the map contains.
static inline int tma_ratio(const TmaAtom *a) {
  return dtype_bits(a->unit) / dtype_bits(a->type);
}
// Returns how many bytes a tile writes to the shared memory of each CTA.
static inline int64_t tma_bytes(const TmaAtom *a) {
  return a->tile * dtype_bits(a->type) / 8;
}

// Returns the alignment of a box in shared memory in bytes: the period of its
// swizzle pattern.
static inline int64_t tma_pattern(const TmaAtom *a) {
  return a->map.swizzle ? 128 << a->map.swizzle : TMA_ALIGN;
}

// Optional arguments of a copy, as traced values. 0 or NULL means absent.
typedef struct TmaCall {
  // the mbarrier at which a load completes, and its offset
  Ref bar, bar_off;
  // mask: the CTAs to which a multicast load writes. policy: L2 cache policy.
  Ref mask, policy;
  Ref rank;            // S2S and R2S: rank of the destination CTA
  // BKF_ROWS: for each value of a tile, the index of its row in the tensor in
  // global memory
  const Tensor *rows;
} TmaCall;

// Implements copy() through a tensor map: emits one instruction for each box.
// Source and destination have modes ((TMA,TMA_Iter),Rest...). The tensor in
// global memory is given as a tensor of coordinates.
void tma_copy(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
              const TmaCall *o);
// Implements copy() without a tensor map. One instruction copies the first mode
// of the source to the first mode of the destination; both are contiguous.
// There is one instruction for each index of the other modes.
void tma_copy_runs(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
                   const TmaCall *o);
// Implements copy() from registers to another CTA's shared memory (st.async).
// Each instruction stores 1, 2 or 4 adjacent values, depending on alignment.
void tma_copy_send(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
                   const TmaCall *o);
// ---- tensor maps in memory, each stored as 16 elements of 64 bits ----
typedef struct MapPlace { Ref mem, off; } MapPlace;
void tma_map_copy(Ctx *cx, const TmaAtom *a, MapPlace p);
// Makes the map at p describe tensor t in global memory. The leaves of t's
// layout must match those of the tensor for which the atom was made.
void tma_map_update(Ctx *cx, const TmaAtom *a, const Tensor *t, MapPlace p);
// Implements prefetch(): prefetches into L2 the boxes that `src`, a tensor of
// coordinates, selects. If src is NULL, prefetches the tensor map instead.
// `rows` has the rows to prefetch (BKF_ROWS).
void tma_prefetch(Ctx *cx, const TmaAtom *a, const Tensor *src,
                  const Tensor *rows);

#endif
// SPDX-License-Identifier: MIT
