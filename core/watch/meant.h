// Finds arguments of which a kernel may access only a part on purpose
// (meant.c).
#ifndef CUTE_WATCH_MEANT_H
#define CUTE_WATCH_MEANT_H

#include "decode/areas.h"
#include "sim/sim.h"

// SimMeant: how the kernel accesses the memory of an argument.
// - free: the accessed part depends on data, on a scalar argument or on a limit
//   in the kernel's code, so that an omitted part does not suggest a mistake.
// - data, scalar: data, or a scalar argument, decides whether an access is
//   executed.
// - picked: an address depends on data.
// - moves: an address depends on the block or on a loop. threads: an address
//   depends on the thread's index.
// - blocks: mask of the modes along which an address depends on the block.
// - mode: mask of the modes along which an address is not constant.
// - limit: the n constants with which conditions compare. how[k]: the kind of
//   the value that is compared with limit[k] (SimLimit).
// - end[k]: the constant at which loop[k], a loop around the accesses, ends.
//   moved[k]: mask of the modes along which an address may depend on loop[k].
// SimLimit: kinds of values that conditions compare.
// - FAR: a value that depends on the block.
// - THREAD: a value that depends only on the thread's index.
// - NEAR: any other value.
typedef enum SimLimit { LIMIT_NEAR, LIMIT_FAR, LIMIT_THREAD } SimLimit;
enum { MEANT_ENDS = 8 };  // maximum number of loop bounds that are recorded
typedef struct SimMeant {
  bool free, data, scalar, picked, moves, threads;
  uint32_t blocks, mode;
  // largest number of elements that divides the variable parts of all
  // addresses; 0: no address has a variable part
  int64_t unit;
  uint32_t n, cap;
  int64_t *limit;
  uint8_t *how;
  uint32_t ends;
  int64_t end[MEANT_ENDS];
  Ref loop[MEANT_ENDS];
  uint32_t moved[MEANT_ENDS];
  // mask of the loops (bit k is loop[k]) whose counter begins at a block's
  // index
  uint32_t strides;
} SimMeant;
// Returns the accesses to each argument of the function.
SimMeant *meant_all(Ctx *cx, const SimProg *p);
// Returns an array with an entry for each memory object (by index in Fn.mem).
// The entry of a shared tensor is true if data, scalar arguments or the block
// decide which elements of the tensor the kernel reads, or whether it reads
// any.
bool *meant_shared(Ctx *cx, const SimProg *p);
// Reports whether a condition may exclude the elements of mode `mode` from
// coordinate `end` on.
bool meant_ends(const SimMeant *m, int mode, int64_t end);
// Reports whether a condition compares with n, or a loop ends at n.
bool meant_bounds(const SimMeant *m, int64_t n);
// Reports whether a condition compares a value of kind `how` with n.
bool meant_guards(const SimMeant *m, int64_t n, SimLimit how);

// The top-level modes of an argument's layout, and the leaves of each mode.
enum { COVER_MODES = 8, COVER_LEAVES = 16 };
typedef struct SimShape {
  int rank, n;                  // numbers of modes and of leaves of the shape
  int64_t size[COVER_MODES];    // extent of each mode
  // for each leaf: its mode (of), and the change of the mode's coordinate for
  // one step along the leaf (step)
  int of[COVER_LEAVES];
  int64_t step[COVER_LEAVES];
  int64_t extent[COVER_LEAVES], stride[COVER_LEAVES];
} SimShape;
// Writes to *s the shape of the tensor of argument k. Returns the index in
// Fn.mem of the memory object with this tensor, or -1 if the shape is unknown.
int32_t meant_shape(Ctx *cx, const SimProg *p, int32_t k, SimShape *s);

// Reports whether the grid has no blocks, although all arguments have elements.
bool meant_empty(Ctx *cx, const SimProg *p);

#endif
// SPDX-License-Identifier: MIT
