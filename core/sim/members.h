// Footprints: which elements the layout of an argument reaches (members.c).
#ifndef CUTE_SIMMEMBERS_H
#define CUTE_SIMMEMBERS_H

#include "layout/layout.h"
#include "sim/sim.h"

enum { MEMBER_MODES = 16 };
// The modes of the layout, without nesting: extents, and strides in elements. A
// mode with stride 0 has extent 1.
struct SimMembers {
  int n;
  int64_t extent[MEMBER_MODES], stride[MEMBER_MODES];
};
typedef struct SimMembers SimMembers;

// Reads the layout of object m of global memory, with the extents that launch l
// gives, into *to. Returns false if the layout is unknown at the launch.
bool simmembers_parse(Ctx *cx, const Launch *l, const Mem *m, Layout *to);
// Fill in *t, the footprint of an object of global memory, or of the tensor
// that a tensor map with elements of `bits` bits describes. Return false if the
// footprint is unknown at the launch.
bool simmembers_layout(Ctx *cx, SimMembers *t, const Launch *l, const Mem *m);
bool simmembers_map(SimMembers *t, const TensorMap *m, int bits);
// Returns the footprint of object m if its layout skips elements of memory.
// Returns NULL if the layout skips no elements or the footprint is unknown.
const SimMembers *simmembers_gaps(Ctx *cx, const Launch *l, const Mem *m);
// Reports whether an element is in footprint t. Unless coord is NULL, writes to
// coord the element's index in each of the t->n modes.
bool simmembers_has(const SimMembers *t, int64_t element, int64_t *coord);

#endif
// SPDX-License-Identifier: MIT
