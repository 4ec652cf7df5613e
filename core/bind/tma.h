// The userdata of TMA copy atoms, for the bindings of kernels and launches.
#ifndef CUTE_BINDTMA_H
#define CUTE_BINDTMA_H

#include "bind/face.h"
#include "tensor/tma.h"

#define MT_TMA "cute.tma_atom"

// The userdata of a TMA copy atom. Uservalue 1 is the host tensor to copy.
// Inside a kernel, it is the tensor of the map (SP_TMAP).
typedef struct TmaBox {
  TmaAtom a;
} TmaBox;
TmaBox *tmalib_box(lua_State *L, int idx);  // NULL: no TMA atom
// Pushes the traced atom that replaces argument b in a kernel. m is the memory
// object of its tensor map.
void tmalib_push_traced(lua_State *L, const TmaBox *b, const Mem *m);
// Encodes the tensor map of atom a for tensor t at `address`. Raises an error
// (ERR_LAUNCH) if no map can describe t.
void tmalib_encode(Ctx *cx, const TmaAtom *a, const Tensor *t,
                   uint64_t address, uint64_t words[TENSORMAP_WORDS]);
// tmalib_parameters reads the parameters of a tensor map from the table at 1.
// Its fields are named as in TensorMap (base/tensormap.h). tmalib_push_words
// pushes encoded words as a list.
void tmalib_parameters(lua_State *L, TensorMap *m);
void tmalib_push_words(lua_State *L, const uint64_t *words);
// Implements make_copy_atom(operation, dtype) for bulk copies, which copy
// contiguous bytes without a tensor map.
int tmalib_bulk_atom(lua_State *L);
// Implements copy(atom, src, dst, options) with a TMA or bulk copy atom.
int tmalib_copy(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
