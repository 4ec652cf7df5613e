// A tensor: an iterator (memory object + offset, or coordinates) with a
// layout. Traced tensors name IR memory objects; host tensors a buffer.
#ifndef CUTE_TENSOR_H
#define CUTE_TENSOR_H

#include "layout.h"

// space SP_COORD: an identity tensor; the iterator is the coordinate tuple
// `base` and the layout has basis strides. Others: element `off +
// layout(c)` of memory object `mem` (traced) or of the face's host buffer.
// A swizzled layout keeps its own offset: element off + sw(o + inner(c)).
typedef struct Tensor {
  Space space;
  DType type;
  Ref mem;         // traced: GMEM/SMEM/RMEM
  Dim off;         // elements
  Tup base;        // SP_COORD: counting tuple, else NULL
  Layout l;
  int64_t align;   // bytes the iterator (mem + off) is known to be aligned to
} Tensor;

// ---- views (no IR beyond index arithmetic) ----
Tensor tensor_slice(Ctx *cx, Tensor t, Tup coord);
Tensor tensor_with_layout(Tensor t, Layout l);
// Moves the iterator by o elements (the swizzle's offset when composed).
Tensor tensor_offset(Ctx *cx, Tensor t, Dim o);
// zipped_divide(t, select(tiler, proj))[_, coord]: design section 11.
// proj: NULL or a tuple with 1 (use) and DIM_ANY for X (drop).
Tensor tensor_local_tile(Ctx *cx, Tensor t, Tup tiler, Tup coord, Tup proj);
Tensor tensor_local_partition(Ctx *cx, Tensor t, Layout thr, Dim idx);
Tensor tensor_recast(Ctx *cx, Tensor t, DType type);
Tensor tensor_identity(Ctx *cx, Tup shape);
int64_t tensor_alignment(Ctx *cx, Tensor t);  // bytes, of t's iterator

// ---- traced memory ----
Tensor tensor_make_smem(Ctx *cx, DType t, Layout l, int64_t align);
Tensor tensor_make_rmem(Ctx *cx, DType t, Layout l);
// Element i's offset in memory object elements: off + layout(i).
Dim tensor_at(Ctx *cx, Tensor t, Dim i);
Ref tensor_load(Ctx *cx, Tensor t, Tup coord);
void tensor_store(Ctx *cx, Tensor t, Tup coord, Ref value);
// Static register index of every element: fails with ERR_REGS otherwise.
int64_t tensor_reg(Ctx *cx, Tensor t, int64_t i);
// How many contiguous elements both tensors can move at once, at most
// max_bits (alignment of both considered).
int64_t tensor_common_vector(Ctx *cx, Tensor a, Tensor b, int64_t max_bits);
// Vectorised element-wise copy (autovec_copy); pred: NULL or a bool tensor.
void tensor_copy(Ctx *cx, Tensor src, Tensor dst, const Tensor *pred,
                 int64_t max_bits);
void tensor_fill(Ctx *cx, Tensor t, Ref value);
void tensor_print(Ctx *cx, Tensor t, Buf *out);  // "ptr o layout" notation

#endif
