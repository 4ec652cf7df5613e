// Copy atoms of TMA as userdata, for the bindings of kernels and launches.
#ifndef CUTE_BINDTMA_H
#define CUTE_BINDTMA_H

#include "bind/face.h"
#include "tensor/tma.h"

#define MT_TMA "cute.tma_atom"

// An atom. Uservalue 1: the host tensor or, inside a kernel, the tensor of the
// map (SP_TMAP).
typedef struct TmaBox {
  TmaAtom a;
} TmaBox;
TmaBox *tmalib_box(lua_State *L, int idx);  // NULL: not a TMA atom
// Pushes the atom that a kernel sees for b, whose map is m's.
void tmalib_push_traced(lua_State *L, const TmaBox *b, const Mem *m);
// Returns the 128 bytes of the map of t at an address; ERR_LAUNCH: it is not
// representable.
void tmalib_encode(Ctx *cx, const TmaAtom *a, const Tensor *t,
                   uint64_t address, uint64_t words[TENSORMAP_WORDS]);
// Reads the parameters of a tensor map in the table at 1, by the names of
// TensorMap (base/tensormap.h); pushes its words as a list.
void tmalib_parameters(lua_State *L, TensorMap *m);
void tmalib_push_words(lua_State *L, const uint64_t *words);
// make_copy_atom(operation, dtype) for copies of contiguous bytes without a
// map.
int tmalib_bulk_atom(lua_State *L);
// copy(atom, src, dst, options) with such an atom.
int tmalib_copy(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
