// Tensor maps: the 128 bytes that tell the copy engine (TMA) of Hopper of a
// tensor in global memory and of the boxes that are copied from and to it.
// Checked by the rules of the driver and encoded as it does, on any machine.
#ifndef CUTE_TENSORMAP_H
#define CUTE_TENSORMAP_H

#include "base/dtype.h"

// TT(ID, dtype, bytes, bits of the map, class, reductions): element types in
// the order of CUtensorMapDataType. I integers, F floats, T floats that loads
// round to tf32. The FTZ types load like the others; their sums flush
// subnormal numbers. Reductions are those that an H100 and an H200 execute;
// any other one is an illegal instruction there.
#define TENSORMAP_TYPES(TT) \
  TT(U8, U8, 1, 0, 'I', "") TT(U16, U16, 2, 1, 'I', "") \
  TT(U32, U32, 4, 2, 'I', "add min max and or xor") \
  TT(I32, I32, 4, 3, 'I', "add min max and or xor") \
  TT(U64, U64, 8, 4, 'I', "add min max and or xor") \
  TT(I64, I64, 8, 5, 'I', "min max") \
  TT(F16, F16, 2, 6, 'F', "add min max") TT(F32, F32, 4, 7, 'F', "add") \
  TT(F64, F64, 8, 9, 'F', "add") TT(BF16, BF16, 2, 10, 'F', "add min max") \
  TT(F32_FTZ, NONE, 4, 8, 'F', "add") TT(TF32, TF32, 4, 7, 'T', "add") \
  TT(TF32_FTZ, NONE, 4, 8, 'T', "add")
typedef enum TensorMapType {
#define TT(id, ...) TMT_##id,
  TENSORMAP_TYPES(TT)
#undef TT
  TMT_COUNT
} TensorMapType;
// The one that elements of type t are copied as; TMT_COUNT: there is none.
TensorMapType tensormap_type(DType t);
// The element type of a map, f32 for the FTZ ones; names of the reductions
// that a copy by a map of that type can make, with spaces between.
DType tensormap_dtype(TensorMapType t);
const char *tensormap_reductions(TensorMapType t);

enum { TENSORMAP_RANK = 5, TENSORMAP_WORDS = 16 };
// Channels of 16 or 32 bytes apart (NC/8HWC8, NC/16HWC16).
enum { TENSORMAP_PLAIN, TENSORMAP_16B, TENSORMAP_32B };
enum { TENSORMAP_ZEROS, TENSORMAP_NAN };  // what lies outside is read as

// What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col take, in their
// order; enumerations by the driver's numbers. Mode 0 is the contiguous one.
typedef struct TensorMap {
  bool im2col;
  int64_t type, rank;       // TensorMapType
  uint64_t address;
  int64_t extent[TENSORMAP_RANK];      // elements
  int64_t stride[TENSORMAP_RANK - 1];  // bytes, of modes 1 on
  int64_t box[TENSORMAP_RANK];         // elements; of tiled maps
  // im2col: the corners of the box of pixels, and what of it one copy takes
  int64_t lower[TENSORMAP_RANK - 2], upper[TENSORMAP_RANK - 2];
  int64_t channels, pixels;
  int64_t step[TENSORMAP_RANK];  // every how many elements of a mode
  int64_t interleave;            // TENSORMAP_PLAIN ..
  int64_t swizzle;               // 0: none; rows of 16 << swizzle bytes
  int64_t l2;                    // promotion to 0, 64, 128, 256 bytes
  int64_t fill;                  // TENSORMAP_ZEROS ..
} TensorMap;

// Would the driver take it? False, and in w the rule that it breaks.
bool tensormap_check(const TensorMap *m, Why *w);
// The bytes of one that passed tensormap_check, as words in memory order.
void tensormap_encode(const TensorMap *m, uint64_t words[TENSORMAP_WORDS]);
// What the words tell of a tensor, of all TENSORMAP_RANK modes: address,
// extents and strides; and the words with another.
void tensormap_read(const uint64_t words[TENSORMAP_WORDS], TensorMap *m);
void tensormap_write(const TensorMap *m, uint64_t words[TENSORMAP_WORDS]);
// Bytes of shared memory that one copy fills or reads.
int64_t tensormap_bytes(const TensorMap *m);

#endif
