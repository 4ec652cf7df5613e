// The userdata of atoms and tiled operations.
#ifndef CUTE_BOX_H
#define CUTE_BOX_H

#include "bind/face.h"
#include "tensor/tiled.h"

// AtomBox: an atom or a tiled operation. The words of its layouts follow the
// struct in its userdata.
typedef enum BoxKind { BOX_MMA, BOX_COPY } BoxKind;
typedef struct AtomBox {
  BoxKind kind;
  bool tiled;
  TiledMma mma;    // unless `tiled`, only mma.atom or copy.atom is set
  TiledCopy copy;
} AtomBox;

// Returns the tiled operation of the slice at idx (its uservalue 1), and stores
// the slice's thread (uservalue 2) in *thr. Returns NULL if there is no slice.
const AtomBox *fields_slice(Ctx *cx, lua_State *L, int idx, Dim *thr);

// Implement __index and __tostring of atoms, tiled operations and slices.
int fields_index(lua_State *L);
int fields_tostring(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
