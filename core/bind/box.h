// The userdata of atoms and tiled operations.
#ifndef CUTE_BOX_H
#define CUTE_BOX_H

#include "bind/face.h"
#include "tensor/tiled.h"

// AtomBox: an atom or a tiled operation. Its userdata contains this struct,
// followed by the words of its layouts.
typedef enum BoxKind { BOX_MMA, BOX_COPY } BoxKind;
typedef struct AtomBox {
  BoxKind kind;
  bool tiled;
  TiledMma mma;    // unless `tiled`, only mma.atom or copy.atom is set
  TiledCopy copy;
} AtomBox;

// Returns the tiled operation of the slice at idx (uservalue 1 of the slice),
// and sets *thr to its thread (uservalue 2). Returns NULL if idx has no slice.
const AtomBox *fields_slice(Ctx *cx, lua_State *L, int idx, Dim *thr);

// Implement __index and __tostring of atoms, tiled operations and slices.
int fields_index(lua_State *L);
int fields_tostring(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
