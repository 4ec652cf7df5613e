// A tensor: an iterator (memory object + offset, or coordinates) with a
// layout. Traced tensors name IR memory objects; host tensors a buffer.
#ifndef CUTE_TENSOR_H
#define CUTE_TENSOR_H

#include "layout/algebra.h"

// Where the iterator of a slice of a swizzled tensor is, in the whole of it:
// element off + sw(at). The slice's layout alone has lost that where it became
// plain, or has a part of the offset outside of its swizzle.
typedef struct Origin {
  // ORIGIN_LAYOUT: where the layout says
  enum { ORIGIN_LAYOUT, ORIGIN_SWIZZLED, ORIGIN_LOST } kind;
  Swizzle sw;
  int64_t at;
  Dim off;
} Origin;

// space SP_COORD: an identity tensor; the iterator is the coordinate tuple
// `base` and the layout has basis strides. SP_DESC: descriptor `mem + off +
// layout(c)` of a warpgroup's operand of this type, in units of 16 bytes; mem
// is a DESC. Others: element `off + layout(c)` of memory object `mem` (traced)
// or of the face's host buffer.
// A swizzled layout keeps its own offset: element off + sw(o + inner(c)).
typedef struct Tensor {
  Space space;
  DType type;
  Ref mem;         // traced: GMEM/SMEM/RMEM
  Dim off;         // elements
  Tup base;        // SP_COORD: counting tuple, else NULL
  Layout l;
  Origin origin;
  int64_t align;   // bytes the iterator (mem + off) is known to be aligned to
  const struct TensorPlace *place;  // place.h; NULL: not known
} Tensor;

// Has it elements in the memory of a kernel?
static inline bool tensor_in_kernel(const Tensor *t) {
  return t->mem && t->space != SP_DESC;
}

// ---- views (no IR beyond index arithmetic) ----
Tensor tensor_slice(Ctx *cx, Tensor t, Tup coord);
Tensor tensor_with_layout(Tensor t, Layout l);
// t's iterator, of one element: it goes through t's swizzle, by where it is in
// the tensor that t is a slice of.
Tensor tensor_iterator(Ctx *cx, Tensor t);
// The place that it points to before its swizzle, and without it.
Tensor tensor_unswizzled(Ctx *cx, Tensor t);
// make_tensor(iterator of t, l): a plain l is read through t's swizzle.
Tensor tensor_view(Ctx *cx, Tensor t, Layout l);
// Fails when o elements are farther than memory can be.
void tensor_check_reach(Ctx *cx, Dim o);
// Moves the iterator by o elements (the swizzle's offset when composed).
Tensor tensor_offset(Ctx *cx, Tensor t, Dim o);
// domain_offset: the same layout, element 0 being where coord was.
Tensor tensor_domain_offset(Ctx *cx, Tensor t, Tup coord);
// zipped_divide(t, select(tiler, proj))[_, coord]: design section 11.
// proj: NULL or a tuple with 1 (use) and DIM_ANY for X (drop).
Tensor tensor_local_tile(Ctx *cx, Tensor t, Tiler tiler, Tup coord, Tup proj);
// zipped_divide(t, tiler)[coord, _]; coord in the tile.
Tensor tensor_outer_partition(Ctx *cx, Tensor t, Tiler tiler, Tup coord);
Tensor tensor_local_partition(Ctx *cx, Tensor t, Layout thr, Dim idx);
Tensor tensor_recast(Ctx *cx, Tensor t, DType type);
Tensor tensor_identity(Ctx *cx, Tup shape);
// SP_COORD: the coordinate tuple at coord.
Tup tensor_coord(Ctx *cx, Tensor t, Tup coord);
// Fails with ERR_ARG when coord does not have t's profile, or is static and
// outside of it. `_` is allowed anywhere.
void tensor_check_coord(Ctx *cx, const Tensor *t, Tup coord);
void tensor_check_index(Ctx *cx, Tup shape, Tup coord);  // of a vector
bool tup_has_any(Tup coord);  // does it hold `_`?

// ---- traced memory ----
Tensor tensor_make_smem(Ctx *cx, DType t, Layout l, int64_t align);
Tensor tensor_make_rmem(Ctx *cx, DType t, Layout l);
// DSMEM: a shared object as the CTA of that rank (an i32) has it.
Ref tensor_make_peer(Ctx *cx, Ref mem, Ref rank);
// make_fragment_like: compact, in the order of l's strides.
Tensor tensor_make_like(Ctx *cx, DType t, Layout l);
// Element i's offset in memory object elements: off + layout(i).
Dim tensor_at(Ctx *cx, Tensor t, Dim i);
// t: reading elements that nobody wrote is no fault of the simulator.
Tensor tensor_undefined_ok(Ctx *cx, Tensor t);
// Claims that an element's coordinate lies in the shape, and its place in the
// argument's, unless that is known.
void tensor_claim(Ctx *cx, const Tensor *t, Tup coord, bool write);
Ref tensor_load(Ctx *cx, Tensor t, Tup coord);
void tensor_store(Ctx *cx, Tensor t, Tup coord, Ref value);
// All elements, in colexicographic order, through the widest moves there
// are: n = tensor_count(t) Refs in or out.
void tensor_load_all(Ctx *cx, Tensor t, Ref *out);
void tensor_store_all(Ctx *cx, Tensor t, const Ref *in);
// Do l's values, in some order, run from 0 to its size - 1? Static ones.
bool tensor_dense(Ctx *cx, Layout l);
// Do offsets in l need more than 32 bits?
bool tensor_wide(Ctx *cx, Layout l);
// The static number of elements; ERR_STATIC naming `what` otherwise.
int64_t tensor_count(Ctx *cx, const Tensor *t, const char *what);
// Vectorised element-wise copy (autovec_copy); pred: NULL or a bool tensor.
typedef struct CopyHow {
  int64_t max_bits;
  bool promised;  // by the user: pointers and whatever is traced of offsets and
                  // strides are aligned to max_bits
  unsigned hints; // of what is read in global memory: HINT_PREFETCH
} CopyHow;
void tensor_copy(Ctx *cx, Tensor src, Tensor dst, const Tensor *pred,
                 CopyHow how);
void tensor_fill(Ctx *cx, Tensor t, Ref value);
void tensor_print(Ctx *cx, Tensor t, Buf *out);  // "ptr o layout" notation
const char *tensor_show(Ctx *cx, const Tensor *t);  // the same, in scratch
// Fails with ERR_REGION when t's memory or any of its traced numbers cannot
// be used here, or was born after `born` (Ins.birth): then t is of a pass of
// a loop that was traced anew.
void tensor_use(Ctx *cx, const Tensor *t, uint32_t born);
bool tensor_usable(Ctx *cx, const Tensor *t, uint32_t born);  // does not fail
bool tensor_traced(const Tensor *t);  // does it name IR values?

// ---- what mark_layout_dynamic noted on a host tensor ----
// By leaf of the shape: 0 static, else the divisibility of the dynamic
// extent or stride. Static strides stay in the kernel's type.
#define TENSOR_MAX_MARKS 32
typedef struct TensorMarks {
  int n;  // leaves of the layout
  int64_t shape[TENSOR_MAX_MARKS];
  int64_t stride[TENSOR_MAX_MARKS];
  int64_t align;  // assumed_align in bytes; 0: that of its memory
  bool symbolic;  // it has no memory, and dynamic leaves are `_`
  bool wide;      // of a symbolic one: do offsets need 64 bits?
  // Those of one number are equal; 0: none.
  uint32_t shape_symbol[TENSOR_MAX_MARKS], stride_symbol[TENSOR_MAX_MARKS];
} TensorMarks;

#endif
