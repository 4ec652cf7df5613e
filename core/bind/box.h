// Atoms and tiled operations as userdata.
#ifndef CUTE_BOX_H
#define CUTE_BOX_H

#include "bind/face.h"
#include "tensor/tiled.h"

// An atom or a tiled operation; the words of its layouts follow.
typedef enum BoxKind { BOX_MMA, BOX_COPY } BoxKind;
typedef struct AtomBox {
  BoxKind kind;
  bool tiled;
  TiledMma mma;    // without `tiled`, only .atom is set
  TiledCopy copy;
} AtomBox;

// Returns the tiled operation and the thread of a slice (uservalues 1 and 2);
// NULL: not a slice.
const AtomBox *fields_slice(Ctx *cx, lua_State *L, int idx, Dim *thr);

// __index and __tostring of atoms, tiled operations and slices.
int fields_index(lua_State *L);
int fields_tostring(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
