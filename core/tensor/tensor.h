// Tensors: an iterator with a layout. The iterator is a memory object and an
// offset, or coordinates. A traced tensor refers to a memory object of the IR,
// a host tensor to a buffer.
#ifndef CUTE_TENSOR_H
#define CUTE_TENSOR_H

#include "layout/algebra.h"

// The position of a slice of a swizzled tensor in the whole tensor: the slice's
// iterator is at element off + sw(at). The slice's own layout does not
// determine this position if that layout is not swizzled, or if a part of its
// offset is outside the swizzle.
typedef struct Origin {
  // ORIGIN_LAYOUT: the slice's layout determines the position. ORIGIN_SWIZZLED:
  // sw, at and off determine the position. ORIGIN_LOST: the position is
  // unknown.
  enum { ORIGIN_LAYOUT, ORIGIN_SWIZZLED, ORIGIN_LOST } kind;
  Swizzle sw;
  int64_t at;
  Dim off;
} Origin;

// The meaning of the fields depends on `space`:
// - SP_COORD: an identity tensor. Its iterator is the coordinate tuple `base`,
//   and its layout has basis strides.
// - SP_DESC: descriptors of an MMA's operand with elements of type `type`.
//   Coordinate c has the descriptor mem + off + layout(c), in units of 16
//   bytes. `mem` is a DESC instruction.
// - Other spaces: coordinate c has element off + layout(c) of memory object
//   `mem` (traced) or of the host buffer. A swizzled layout has its own offset
//   o: c has element off + sw(o + inner(c)).
typedef struct Tensor {
  Space space;
  DType type;
  Ref mem;         // memory object of a traced tensor: GMEM, SMEM or RMEM
  Dim off;         // offset of the iterator in mem, in elements
  // SP_COORD: coordinate of the tensor's first element; other spaces: NULL
  Tup base;
  Layout l;
  Origin origin;
  int64_t align;   // known alignment of the iterator (mem + off) in bytes
  // position in the kernel argument; NULL: unknown
  const struct TensorPlace *place;
} Tensor;

// Reports whether the tensor has elements in a kernel's memory.
static inline bool tensor_in_kernel(const Tensor *t) {
  return t->mem && t->space != SP_DESC;
}

// ---- views (no IR beyond index arithmetic) ----
Tensor tensor_slice(Ctx *cx, Tensor t, Tup coord);
Tensor tensor_with_layout(Tensor t, Layout l);
// Returns t's iterator as a tensor of one element. If t is swizzled, the
// swizzle is applied to the element's address, at t's position in the whole
// tensor.
Tensor tensor_iterator(Ctx *cx, Tensor t);
// Returns a tensor of one element at t's iterator. The swizzle of t is not
// applied to its address.
Tensor tensor_unswizzled(Ctx *cx, Tensor t);
// Implements make_tensor(t.iterator, l). If t is swizzled and layout l is not,
// applies t's swizzle to the addresses.
Tensor tensor_view(Ctx *cx, Tensor t, Layout l);
// Fails if an offset of o elements exceeds the size of any memory.
void tensor_check_reach(Ctx *cx, Dim o);
// Moves the iterator by o elements. In a swizzled layout, changes the offset
// inside the swizzle instead.
Tensor tensor_offset(Ctx *cx, Tensor t, Dim o);
// Implements domain_offset(coord, t): returns t shifted so that its coordinate
// 0 is the former coordinate coord.
Tensor tensor_domain_offset(Ctx *cx, Tensor t, Tup coord);
// Returns zipped_divide(t, select(tiler, proj))[_, coord]. `proj` is NULL, or a
// tuple that selects modes: 1 for each mode to use, DIM_ANY (X) for each mode
// to drop.
Tensor tensor_local_tile(Ctx *cx, Tensor t, Tiler tiler, Tup coord, Tup proj);
// Returns zipped_divide(t, tiler)[coord, _], where coord selects an element of
// each tile.
Tensor tensor_outer_partition(Ctx *cx, Tensor t, Tiler tiler, Tup coord);
Tensor tensor_local_partition(Ctx *cx, Tensor t, Layout thr, Dim idx);
Tensor tensor_recast(Ctx *cx, Tensor t, DType type);
Tensor tensor_identity(Ctx *cx, Tup shape);
// Returns the coordinates that identity tensor t (SP_COORD) holds at coord.
Tup tensor_coord(Ctx *cx, Tensor t, Tup coord);
// Fails with ERR_ARG if coord does not match t's profile, or is static and out
// of bounds. `_` is allowed anywhere.
void tensor_check_coord(Ctx *cx, const Tensor *t, Tup coord);
// Checks a coordinate of a vector of shape `shape`, like tensor_check_coord.
void tensor_check_index(Ctx *cx, Tup shape, Tup coord);
bool tup_has_any(Tup coord);  // whether coord contains `_`

// ---- traced memory ----
Tensor tensor_make_smem(Ctx *cx, DType t, Layout l, int64_t align);
Tensor tensor_make_rmem(Ctx *cx, DType t, Layout l);
// Returns memory object `mem` as seen in the CTA of rank `rank` (an i32), in
// distributed shared memory.
Ref tensor_make_peer(Ctx *cx, Ref mem, Ref rank);
// Implements make_fragment_like: returns a compact register fragment. The order
// of its modes is the order of l's strides.
Tensor tensor_make_like(Ctx *cx, DType t, Layout l);
// Returns the offset, in t's memory object, of the element with linear index i:
// off + layout(i).
Dim tensor_at(Ctx *cx, Tensor t, Dim i);
// Return t with a mark for the simulator, which then accepts: reads of
// unwritten elements (tensor_undefined_ok), NaNs and infinities
// (tensor_nonfinite_ok), or parts that are never accessed (tensor_partial_ok).
Tensor tensor_undefined_ok(Ctx *cx, Tensor t);
Tensor tensor_nonfinite_ok(Ctx *cx, Tensor t);
Tensor tensor_partial_ok(Ctx *cx, Tensor t);
// Asserts that the element at coord is inside t's shape and inside the kernel
// argument that t views. Bounds that are known to hold are not asserted.
void tensor_claim(Ctx *cx, const Tensor *t, Tup coord, bool write);
Ref tensor_load(Ctx *cx, Tensor t, Tup coord);
void tensor_store(Ctx *cx, Tensor t, Tup coord, Ref value);
// Load or store all n = tensor_count(t) elements in colexicographic order, with
// the widest possible accesses.
void tensor_load_all(Ctx *cx, Tensor t, Ref *out);
void tensor_store_all(Ctx *cx, Tensor t, const Ref *in);
// Reports whether the offsets of static layout l are a permutation of 0 to size
// - 1.
bool tensor_dense(Ctx *cx, Layout l);
// Reports whether offsets in layout l need more than 32 bits.
bool tensor_wide(Ctx *cx, Layout l);
// Returns the number of t's elements. Fails with ERR_STATIC if the number is
// not static. `what` names the caller in the message.
int64_t tensor_count(Ctx *cx, const Tensor *t, const char *what);
// Options of a vectorized element-wise copy (autovec_copy). The predicate
// `pred` of tensor_copy is a tensor of bools, or NULL.
typedef struct CopyHow {
  int64_t max_bits;
  // the user guarantees that pointers, traced offsets and traced strides are
  // aligned to max_bits
  bool promised;
  unsigned hints; // hints of global loads, such as HINT_PREFETCH
} CopyHow;
void tensor_copy(Ctx *cx, Tensor src, Tensor dst, const Tensor *pred,
                 CopyHow how);
void tensor_fill(Ctx *cx, Tensor t, Ref value);
// Prints t in "ptr o layout" notation.
void tensor_print(Ctx *cx, Tensor t, Buf *out);
// Returns the text that tensor_print prints, in the scratch arena.
const char *tensor_show(Ctx *cx, const Tensor *t);
// Fails with ERR_REGION if t's memory, or a traced number of t, is not visible
// at the current point of the kernel. Also fails if it was created by an
// instruction whose number (Ins.birth) is above `born`: t then belongs to an
// earlier trace of a loop's body.
void tensor_use(Ctx *cx, const Tensor *t, uint32_t born);
// Reports whether tensor_use would succeed.
bool tensor_usable(Ctx *cx, const Tensor *t, uint32_t born);
// Reports whether t refers to IR values.
bool tensor_traced(const Tensor *t);

// ---- marks of mark_layout_dynamic on a host tensor ----
// The arrays `shape` and `stride` have one number for each leaf of the tensor's
// shape. If the leaf's extent or stride is static, the number is 0. Otherwise
// it is a known divisor of the dynamic extent or stride. Static strides remain
// a part of the kernel's type.
#define TENSOR_MAX_MARKS 32
typedef struct TensorMarks {
  int n;  // number of leaves of the layout's shape
  int64_t shape[TENSOR_MAX_MARKS];
  int64_t stride[TENSOR_MAX_MARKS];
  int64_t align;  // assumed_align in bytes; 0: the memory's alignment
  // whether the tensor has no memory; its dynamic leaves are then `_`
  bool symbolic;
  bool wide;      // for symbolic tensors: whether offsets need 64 bits
  // For each leaf: number of the symbol that stands for its dynamic extent or
  // stride; 0: no symbol. Extents and strides with the same symbol are equal at
  // run time.
  uint32_t shape_symbol[TENSOR_MAX_MARKS], stride_symbol[TENSOR_MAX_MARKS];
} TensorMarks;

#endif
// SPDX-License-Identifier: MIT
