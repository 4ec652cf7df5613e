// Tensors: an iterator (memory object + offset, or coordinates) with a layout.
// Traced tensors name IR memory objects; host tensors name a buffer.
#ifndef CUTE_TENSOR_H
#define CUTE_TENSOR_H

#include "layout/algebra.h"

// Position of a swizzled tensor's slice in the whole tensor: its iterator is at
// element off + sw(at). The slice's layout alone no longer shows this if it
// became plain, or if part of its offset lies outside its swizzle.
typedef struct Origin {
  // ORIGIN_LAYOUT: the layout determines the position
  enum { ORIGIN_LAYOUT, ORIGIN_SWIZZLED, ORIGIN_LOST } kind;
  Swizzle sw;
  int64_t at;
  Dim off;
} Origin;

// SP_COORD: an identity tensor, whose iterator is the coordinate tuple `base`
// and whose layout has basis strides. SP_DESC: the descriptor `mem + off +
// layout(c)` of a warpgroup's operand of this type, in units of 16 bytes, where
// mem is a DESC. Other spaces: element `off + layout(c)` of memory object `mem`
// (traced) or of the host buffer. A swizzled layout keeps its own offset:
// element off + sw(o + inner(c)).
typedef struct Tensor {
  Space space;
  DType type;
  Ref mem;         // traced tensors: GMEM, SMEM or RMEM
  Dim off;         // elements
  Tup base;        // SP_COORD: coordinates of the iterator, else NULL
  Layout l;
  Origin origin;
  int64_t align;   // known alignment of the iterator (mem + off) in bytes
  const struct TensorPlace *place;  // position in the argument, or NULL if
                                    // unknown
} Tensor;

// Reports whether the tensor has elements in a kernel's memory.
static inline bool tensor_in_kernel(const Tensor *t) {
  return t->mem && t->space != SP_DESC;
}

// ---- views (no IR beyond index arithmetic) ----
Tensor tensor_slice(Ctx *cx, Tensor t, Tup coord);
Tensor tensor_with_layout(Tensor t, Layout l);
// Returns t's iterator as a tensor of one element. It passes through t's
// swizzle, according to its position in the tensor that t is a slice of.
Tensor tensor_iterator(Ctx *cx, Tensor t);
// Returns the position that t points to before its swizzle, without the
// swizzle.
Tensor tensor_unswizzled(Ctx *cx, Tensor t);
// make_tensor(iterator of t, l): a plain l is read through t's swizzle.
Tensor tensor_view(Ctx *cx, Tensor t, Layout l);
// Fails if an offset of o elements exceeds any memory.
void tensor_check_reach(Ctx *cx, Dim o);
// Moves the iterator by o elements (the swizzle's offset when composed).
Tensor tensor_offset(Ctx *cx, Tensor t, Dim o);
// domain_offset: the same layout, with element 0 at the position of coord.
Tensor tensor_domain_offset(Ctx *cx, Tensor t, Tup coord);
// Returns zipped_divide(t, select(tiler, proj))[_, coord]. proj is NULL or a
// tuple with 1 for each mode to use and DIM_ANY (X) for each mode to drop.
Tensor tensor_local_tile(Ctx *cx, Tensor t, Tiler tiler, Tup coord, Tup proj);
// Returns zipped_divide(t, tiler)[coord, _], where coord selects in the tile.
Tensor tensor_outer_partition(Ctx *cx, Tensor t, Tiler tiler, Tup coord);
Tensor tensor_local_partition(Ctx *cx, Tensor t, Layout thr, Dim idx);
Tensor tensor_recast(Ctx *cx, Tensor t, DType type);
Tensor tensor_identity(Ctx *cx, Tup shape);
// SP_COORD: returns the coordinate tuple at coord.
Tup tensor_coord(Ctx *cx, Tensor t, Tup coord);
// Fails with ERR_ARG if coord does not match t's profile, or is static and out
// of bounds. `_` is allowed anywhere.
void tensor_check_coord(Ctx *cx, const Tensor *t, Tup coord);
void tensor_check_index(Ctx *cx, Tup shape, Tup coord);  // checks a coordinate
                                                         // of a vector
bool tup_has_any(Tup coord);  // reports whether coord contains `_`

// ---- traced memory ----
Tensor tensor_make_smem(Ctx *cx, DType t, Layout l, int64_t align);
Tensor tensor_make_rmem(Ctx *cx, DType t, Layout l);
// DSMEM: returns a shared object as seen in the CTA of rank `rank` (an i32).
Ref tensor_make_peer(Ctx *cx, Ref mem, Ref rank);
// make_fragment_like: compact, in the order of l's strides.
Tensor tensor_make_like(Ctx *cx, DType t, Layout l);
// Returns the offset of element i in its memory object: off + layout(i).
Dim tensor_at(Ctx *cx, Tensor t, Dim i);
// Returns t marked so that the simulator allows reads of unwritten elements.
Tensor tensor_undefined_ok(Ctx *cx, Tensor t);
// Asserts, unless it is known, that an element's coordinate is inside the shape
// and its position inside the argument's shape.
void tensor_claim(Ctx *cx, const Tensor *t, Tup coord, bool write);
Ref tensor_load(Ctx *cx, Tensor t, Tup coord);
void tensor_store(Ctx *cx, Tensor t, Tup coord, Ref value);
// Load or store all n = tensor_count(t) elements in colexicographic order, with
// the widest possible moves.
void tensor_load_all(Ctx *cx, Tensor t, Ref *out);
void tensor_store_all(Ctx *cx, Tensor t, const Ref *in);
// Reports whether static l's values, in some order, are 0 to its size - 1.
bool tensor_dense(Ctx *cx, Layout l);
// Reports whether offsets in l need more than 32 bits.
bool tensor_wide(Ctx *cx, Layout l);
// Returns the static number of elements, or fails with ERR_STATIC naming
// `what`.
int64_t tensor_count(Ctx *cx, const Tensor *t, const char *what);
// Vectorised element-wise copy (autovec_copy); pred: NULL or a bool tensor.
typedef struct CopyHow {
  int64_t max_bits;
  bool promised;  // promised by the user: pointers and traced offsets and
                  // strides are aligned to max_bits
  unsigned hints; // HINT_PREFETCH for global loads
} CopyHow;
void tensor_copy(Ctx *cx, Tensor src, Tensor dst, const Tensor *pred,
                 CopyHow how);
void tensor_fill(Ctx *cx, Tensor t, Ref value);
void tensor_print(Ctx *cx, Tensor t, Buf *out);  // in "ptr o layout" notation
const char *tensor_show(Ctx *cx, const Tensor *t);  // the same, in scratch
// Fails with ERR_REGION if t's memory or a traced number of it is not visible
// here, or is newer than `born` (Ins.birth). In the latter case t belongs to a
// pass of a loop that has been traced again.
void tensor_use(Ctx *cx, const Tensor *t, uint32_t born);
bool tensor_usable(Ctx *cx, const Tensor *t, uint32_t born);  // never fails
bool tensor_traced(const Tensor *t);  // reports whether it names IR values

// ---- marks of mark_layout_dynamic on a host tensor ----
// For each leaf of the shape: 0 if static, else the divisibility of the dynamic
// extent or stride. Static strides remain part of the kernel's type.
#define TENSOR_MAX_MARKS 32
typedef struct TensorMarks {
  int n;  // leaves of the layout
  int64_t shape[TENSOR_MAX_MARKS];
  int64_t stride[TENSOR_MAX_MARKS];
  int64_t align;  // assumed_align in bytes; 0: alignment of the memory
  bool symbolic;  // no memory; dynamic leaves are `_`
  bool wide;      // symbolic tensors: offsets need 64 bits
  // Leaves with the same number are equal; 0: no symbol.
  uint32_t shape_symbol[TENSOR_MAX_MARKS], stride_symbol[TENSOR_MAX_MARKS];
} TensorMarks;

#endif
// SPDX-License-Identifier: MIT
