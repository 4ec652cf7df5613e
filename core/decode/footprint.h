// Footprints: the set of elements of memory that the layout of an argument
// reaches (footprint.c).
#ifndef CUTE_DECODE_FOOTPRINT_H
#define CUTE_DECODE_FOOTPRINT_H

#include "decode/launch.h"
#include "layout/layout.h"

enum { FOOTPRINT_MODES = 16 };
// The extents and strides (in elements) of all modes of the flattened layout. A
// mode with stride 0 has extent 1.
struct SimFootprint {
  int n;
  int64_t extent[FOOTPRINT_MODES], stride[FOOTPRINT_MODES];
};
typedef struct SimFootprint SimFootprint;

// Writes the layout of object m of global memory to *to. Launch l provides
// dynamic extents and strides. Returns false if the layout is unknown at the
// launch.
bool footprint_parse(Ctx *cx, const Launch *l, const Mem *m, Layout *to);
// Write to *t the footprint of an object of global memory, or of the tensor
// that tensor map m describes. `bits` is the size of that tensor's elements.
// Return false if the footprint is unknown at the launch.
bool footprint_layout(Ctx *cx, SimFootprint *t, const Launch *l, const Mem *m);
bool footprint_map(SimFootprint *t, const TensorMap *m, int bits);
// Reports whether the layout of object m repeats elements: a mode of several
// coordinates has stride 0. Returns false if the layout is unknown.
bool footprint_repeats(Ctx *cx, const Launch *l, const Mem *m);
// Returns the footprint of object m if its layout skips elements of memory.
// Returns NULL if the layout skips no elements or the footprint is unknown.
const SimFootprint *footprint_gaps(Ctx *cx, const Launch *l, const Mem *m);
// Reports whether an element is in footprint t. Unless coord is NULL, writes to
// coord the element's index in each of the t->n modes.
bool footprint_has(const SimFootprint *t, int64_t element, int64_t *coord);

#endif
// SPDX-License-Identifier: MIT
