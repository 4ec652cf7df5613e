// Tensor maps: the 128-byte descriptors that TMA, Hopper's copy engine, reads.
// A map describes a tensor in global memory and the size of the boxes to copy.
// This file checks the maps by the driver's rules and encodes them as the
// driver does, without a GPU.
#ifndef CUTE_TENSORMAP_H
#define CUTE_TENSORMAP_H

#include "base/dtype.h"

// TT(ID, dtype, bits, code, class, reductions): element types in the order of
// CUtensorMapDataType. `code` is the number that encodes the type in a map. The
// class is 'I' for integers, 'F' for floats, and 'T' for floats that loads
// round to tf32. FTZ types load like the types without FTZ, but their
// reductions flush subnormal numbers. `reductions` lists those that H100 and
// H200 execute. Any other reduction is an illegal instruction on these GPUs. U4
// is Blackwell's 16U4_ALIGN8B: 4-bit elements of any type, packed in global and
// shared memory. Its code, the next free number, is a guess, because no map of
// U4 that a driver encoded has been seen.
#define TENSORMAP_TYPES(TT) \
  TT(U8, U8, 8, 0, 'I', "") TT(U16, U16, 16, 1, 'I', "") \
  TT(U32, U32, 32, 2, 'I', "add min max and or xor") \
  TT(I32, I32, 32, 3, 'I', "add min max and or xor") \
  TT(U64, U64, 64, 4, 'I', "add min max and or xor") \
  TT(I64, I64, 64, 5, 'I', "min max") \
  TT(F16, F16, 16, 6, 'F', "add min max") TT(F32, F32, 32, 7, 'F', "add") \
  TT(F64, F64, 64, 9, 'F', "add") TT(BF16, BF16, 16, 10, 'F', "add min max") \
  TT(F32_FTZ, NONE, 32, 8, 'F', "add") TT(TF32, TF32, 32, 7, 'T', "add") \
  TT(TF32_FTZ, NONE, 32, 8, 'T', "add") TT(U4, U4, 4, 11, 'I', "")
typedef enum TensorMapType {
#define TT(id, ...) TMT_##id,
  TENSORMAP_TYPES(TT)
#undef TT
  TMT_COUNT
} TensorMapType;
// Returns the map type for elements of type t. Returns TMT_COUNT if there is
// none, or if not all targets with TMA support it (U4).
TensorMapType tensormap_type(DType t);
// Return a map type's element type (f32 for the FTZ types), and the
// space-separated names of the reductions that copies of this type support.
DType tensormap_dtype(TensorMapType t);
const char *tensormap_reductions(TensorMapType t);

enum { TMA_ALIGN = 128 };  // alignment of a box in shared memory in bytes
enum { TENSORMAP_RANK = 5, TENSORMAP_WORDS = 16 };
// Interleaving of the channels of an image. PLAIN: none. 16B, 32B: groups of 16
// or 32 bytes (the layouts NC/8HWC8 and NC/16HWC16).
enum { TENSORMAP_PLAIN, TENSORMAP_16B, TENSORMAP_32B };
enum { TENSORMAP_ZEROS, TENSORMAP_NAN };  // value of elements out of bounds

// The parameters of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, in
// their order. Enumerations have the driver's values. Mode 0 is the contiguous
// mode.
typedef struct TensorMap {
  bool im2col;
  bool sm100;               // whether the GPU supports type U4 (sm_100)
  int64_t type, rank;       // type: a TensorMapType
  uint64_t address;
  int64_t extent[TENSORMAP_RANK];      // elements
  // in bytes; stride[i] belongs to mode i + 1
  int64_t stride[TENSORMAP_RANK - 1];
  int64_t box[TENSORMAP_RANK];         // in elements; unused by im2col maps
  // im2col maps: corners of the pixel box, and the channels and pixels of one
  // copy
  int64_t lower[TENSORMAP_RANK - 2], upper[TENSORMAP_RANK - 2];
  int64_t channels, pixels;
  int64_t step[TENSORMAP_RANK];  // element stride of each mode
  int64_t interleave;            // TENSORMAP_PLAIN ..
  int64_t swizzle;               // 0: none; 1, 2, 3: swizzles 32, 64, 128 bytes
  int64_t l2;  // L2 promotion: 0 none; 1, 2, 3: to 64, 128, 256 bytes
  int64_t fill;                  // TENSORMAP_ZEROS ..
} TensorMap;

// Reports whether the driver would accept the map. If not, w names the violated
// rule.
bool tensormap_check(const TensorMap *m, Why *w);
// Encodes a map that passed tensormap_check, as 64-bit words in memory order.
void tensormap_encode(const TensorMap *m, uint64_t words[TENSORMAP_WORDS]);
// Decodes a map. It is valid if encoding the result gives the same words.
// Otherwise returns false and stores the reason in w.
bool tensormap_decode(const uint64_t words[TENSORMAP_WORDS], TensorMap *m,
                      Why *w);
// tensormap_read reads the address, the extents and the strides of an encoded
// map. tensormap_write replaces them. Both handle all TENSORMAP_RANK modes.
void tensormap_read(const uint64_t words[TENSORMAP_WORDS], TensorMap *m);
void tensormap_write(const TensorMap *m, uint64_t words[TENSORMAP_WORDS]);

// TF(ID, "name"): the fields of an encoded map that tensormap.replace sets,
// with their names in PTX. EXTENT, STRIDE, BOX and STEP exist once for each
// mode.
#define TENSORMAP_FIELDS(TF) \
  TF(EXTENT, "global_dim") TF(STRIDE, "global_stride") \
  TF(ADDRESS, "global_address") TF(RANK, "rank") TF(BOX, "box_dim") \
  TF(STEP, "element_stride") TF(TYPE, "elemtype") \
  TF(INTERLEAVE, "interleave_layout") TF(SWIZZLE, "swizzle_mode") \
  TF(FILL, "fill_mode")
typedef enum TensorMapField {
#define TF(id, name) TMF_##id,
  TENSORMAP_FIELDS(TF)
#undef TF
  TMF_COUNT
} TensorMapField;
CONSECUTIVE(2, 0, TMF_STRIDE);
CONSECUTIVE(4, TMF_TYPE, TMF_COUNT - 1);
const char *tensormap_field(TensorMapField f);  // returns the field's name
// Sets a field of an encoded tiled map to v. The map need not be valid. v has
// the units of tensormap.replace: for example, the rank minus 1, or a stride in
// bytes.
void tensormap_replace(uint64_t words[TENSORMAP_WORDS], TensorMapField f,
                       int mode, int64_t v);
// Returns the number of elements of mode i of a tiled map that one copy moves.
int64_t tensormap_count(const TensorMap *m, int i);
// Returns the bytes of shared memory that one copy fills or reads.
int64_t tensormap_bytes(const TensorMap *m);

#endif
// SPDX-License-Identifier: MIT
