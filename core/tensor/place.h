// The positions of a view's elements in the kernel argument to which the view
// refers (place.c).
#ifndef CUTE_TENSORPLACE_H
#define CUTE_TENSORPLACE_H

#include "tensor/tensor.h"

enum { PLACE_MODES = 8 };  // maximum number of modes of an argument

// The place of a view: the coordinates of its elements in a kernel argument of
// shape `shape`. `at` is an identity tensor with the view's shape, which holds
// these coordinates. `whole` is true if the view is the entire argument.
typedef struct TensorPlace {
  Tup shape;
  Tensor at;
  bool whole;
} TensorPlace;

// A view operation f(t, x). place_view applies f to t and to the place of t.
typedef Tensor TensorView(Ctx *cx, Tensor t, const void *x);
Tensor place_view(Ctx *cx, Tensor t, TensorView *f, const void *x);
// Applies view operation f to a place and returns the resulting place, in the
// same kernel argument. Returns NULL if the result does not have shape `shape`.
const TensorPlace *place_along(Ctx *cx, const TensorPlace *was, Tup shape,
                               TensorView *f, const void *x);

// Returns the place (coordinates) of an entire kernel argument with layout l.
// Returns NULL if l is a composed layout or has too many modes.
const TensorPlace *place_whole(Ctx *cx, Layout l);
// place_bytes returns the number of bytes of a copy of a place. place_copy
// copies a place to a block of that size at `mem` (8-aligned).
size_t place_bytes(const TensorPlace *p);
const TensorPlace *place_copy(void *mem, const TensorPlace *p);

// These functions assert that elements of t are inside the kernel argument:
// - place_claim: the element at coord;
// - place_claim_all: the first and the last element of t;
// - place_claim_ends: elements `first` and `last` of t. `when` is the predicate
//   of the access; 0: the access has no predicate.
void place_claim(Ctx *cx, const Tensor *t, Tup coord, bool write);
void place_claim_all(Ctx *cx, const Tensor *t, bool write);
void place_claim_ends(Ctx *cx, const Tensor *t, int64_t first, int64_t last,
                      bool write, Ref when);

#endif
// SPDX-License-Identifier: MIT
