// Footprints: which elements the layout of an argument reaches (members.c).
#ifndef CUTE_SIMMEMBERS_H
#define CUTE_SIMMEMBERS_H

#include "layout/layout.h"
#include "sim/sim.h"

enum { MEMBER_MODES = 16 };
// The modes of the layout, without nesting: their extents, and their strides in
// elements. The extent of a mode with stride 0 is set to 1.
struct SimMembers {
  int n;
  int64_t extent[MEMBER_MODES], stride[MEMBER_MODES];
};
typedef struct SimMembers SimMembers;

// Reads the layout of an object of global memory, with the extents of the
// launch. Returns false if it is unknown at the launch.
bool simmembers_parse(Ctx *cx, const Launch *l, const Mem *m, Layout *to);
// Fill in the footprint of an object of global memory, or of the tensor of a
// tensor map with elements of `bits` bits. Return false if it is unknown at the
// launch.
bool simmembers_layout(Ctx *cx, SimMembers *t, const Launch *l, const Mem *m);
bool simmembers_map(SimMembers *t, const TensorMap *m, int bits);
// Returns the footprint of an object if it has gaps. Returns NULL if it has
// none or they are unknown.
const SimMembers *simmembers_gaps(Ctx *cx, const Launch *l, const Mem *m);
// Reports whether an element is in the footprint. Unless coord is NULL, writes
// to it the element's coordinate in the t->n modes.
bool simmembers_has(const SimMembers *t, int64_t element, int64_t *coord);

#endif
// SPDX-License-Identifier: MIT
