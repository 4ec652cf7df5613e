// Elements that the layout of an argument has (members.c).
#ifndef CUTE_SIMMEMBERS_H
#define CUTE_SIMMEMBERS_H

#include "sim/sim.h"

enum { MEMBER_MODES = 16 };
// Its modes, nested ones one by one: extents, and strides in elements; those of
// stride 0 have the extent 1.
struct SimMembers {
  int n;
  int64_t extent[MEMBER_MODES], stride[MEMBER_MODES];
};
typedef struct SimMembers SimMembers;

// Of an object of global memory, of a map's tensor with elements of so many
// bits; false: they are not known at the launch.
bool simmembers_layout(Ctx *cx, SimMembers *t, const Launch *l, const Mem *m);
bool simmembers_map(SimMembers *t, const TensorMap *m, int bits);
// Those of an object that has gaps; NULL: it has none, as far as is known.
const SimMembers *simmembers_gaps(Ctx *cx, const Launch *l, const Mem *m);
// Is it one of them? coord: NULL, or room for t->n: where it is, whatever modes
// run over.
bool simmembers_has(const SimMembers *t, int64_t element, int64_t *coord);

#endif
