// Places: where the elements of a view are in the kernel's argument that it is
// a view of (place.c).
#ifndef CUTE_TENSORPLACE_H
#define CUTE_TENSORPLACE_H

#include "tensor/tensor.h"

enum { PLACE_MODES = 8 };  // of an argument

// The coordinates that a view's elements have in the argument of that shape:
// an identity tensor, of the view's shape. whole: all of it.
typedef struct TensorPlace {
  Tup shape;
  Tensor at;
  bool whole;
} TensorPlace;

// f(t, x), where f is a view by coordinates: what is known of t's place goes
// along.
typedef Tensor TensorView(Ctx *cx, Tensor t, const void *x);
Tensor place_view(Ctx *cx, Tensor t, TensorView *f, const void *x);
// Where was's elements are then; NULL where that is not of this shape.
const TensorPlace *place_along(Ctx *cx, const TensorPlace *was, Tup shape,
                               TensorView *f, const void *x);

// All of an argument: NULL where the offset tells as much.
const TensorPlace *place_whole(Ctx *cx, Layout l);
// All of a place as one block: size, and a copy in `mem` (8-aligned).
size_t place_bytes(const TensorPlace *p);
const TensorPlace *place_copy(void *mem, const TensorPlace *p);

// Claims that an element of t is one of the argument; that the first and the
// last of t are; that these two are (where `when` is true, unless 0).
void place_claim(Ctx *cx, const Tensor *t, Tup coord, bool write);
void place_claim_all(Ctx *cx, const Tensor *t, bool write);
void place_claim_ends(Ctx *cx, const Tensor *t, int64_t first, int64_t last,
                      bool write, Ref when);

#endif
