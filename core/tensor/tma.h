// Copy atoms of the copy engine (TMA): boxes of a tensor in global memory, to
// and from shared memory, through a tensor map; and runs of bytes without one.
#ifndef CUTE_TMA_H
#define CUTE_TMA_H

#include "base/tensormap.h"
#include "tensor/tensor.h"

// What moves: boxes of a map, or runs from global to shared memory, back, to
// another CTA's; from registers there (st.async).
typedef enum TmaRuns { TMA_BOXES, TMA_G2S, TMA_S2G, TMA_S2S, TMA_R2S } TmaRuns;

typedef struct TmaAtom {
  DType type;
  uint8_t runs;        // TmaRuns
  bool store;          // to global memory
  bool multicast;      // a load for CTAs of the cluster that a mask names
  uint16_t flags;      // BKF_*
  int ctas;            // that share a tile, each copying its slice of a box
  int64_t values;      // elements of a box, all slices together
  int64_t tile;        // elements of a CTA's tile
  TensorMap map;       // but for what the launch's tensor says
  int8_t leaf[TENSORMAP_RANK];  // of its layout, that mode i is; -1: none
  // im2col, by spatial mode: pixels of the result, and how far apart and from
  // where on its filter reads
  int32_t out[TENSORMAP_RANK - 2], dilation[TENSORMAP_RANK - 2],
    first[TENSORMAP_RANK - 2];
  Ref ref;             // in a kernel: the TMAP
} TmaAtom;

// The map of tensor t at an address: extents and strides of its leaves. It
// may break a rule (tensormap_check).
TensorMap tma_map(Ctx *cx, const TmaAtom *a, const Tensor *t,
                  uint64_t address);
// Bytes that arrive in each CTA's shared memory with a whole tile.
static inline int64_t tma_bytes(const TmaAtom *a) {
  return a->tile * dtype_bits(a->type) / 8;
}

// Bytes that the place of a box in shared memory is a multiple of: those after
// which the pattern of its swizzle begins anew.
static inline int64_t tma_pattern(const TmaAtom *a) {
  return a->map.swizzle ? 128 << a->map.swizzle : 128;
}

// What a copy is told besides: of loads the mbarrier, the CTAs, as Refs.
typedef struct TmaCall {
  Ref bar, bar_off;    // 0: none
  Ref mask, policy;    // 0: none
  Ref rank;            // of S2S, R2S: the CTA
} TmaCall;

// copy(): one instruction a box, ((TMA,TMA_Iter),Rest...) on both sides, of
// which global memory is a tensor of coordinates.
void tma_copy(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
              const TmaCall *o);
// The same of runs: the first modes of both are contiguous; one instruction
// for each of the rest.
void tma_copy_runs(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
                   const TmaCall *o);
// From registers: 1, 2 or 4 neighbours at once, as they and their place allow.
void tma_copy_send(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
                   const TmaCall *o);
// ---- tensor maps in memory, 16 elements of 64 bits at a place ----
typedef struct MapPlace { Ref mem, off; } MapPlace;
void tma_map_copy(Ctx *cx, const TmaAtom *a, MapPlace p);
// It tells of tensor t (SP_GMEM) from now on, whose leaves are as the atom's.
void tma_map_update(Ctx *cx, const TmaAtom *a, const Tensor *t, MapPlace p);
// prefetch(): the boxes of a tensor of coordinates into L2; NULL: the map.
void tma_prefetch(Ctx *cx, const TmaAtom *a, const Tensor *src, Ref policy);

#endif
