// Copy atoms of TMA as userdata: what the faces of kernels and launches ask of
// them.
#ifndef CUTE_BINDTMA_H
#define CUTE_BINDTMA_H

#include "bind/face.h"
#include "tensor/tma.h"

#define MT_TMA "cute.tma_atom"

// Uservalue 1: the host tensor; in a kernel one of the map (SP_TMAP).
typedef struct TmaBox {
  TmaAtom a;
} TmaBox;
TmaBox *tmalib_box(lua_State *L, int idx);  // NULL: it is none
// The atom that a kernel sees in the place of b, whose map is m's.
void tmalib_push_traced(lua_State *L, const TmaBox *b, const Mem *m);
// The 128 bytes of the map of t at an address; ERR_LAUNCH where none has them.
void tmalib_encode(Ctx *cx, const TmaAtom *a, const Tensor *t,
                   uint64_t address, uint64_t words[TENSORMAP_WORDS]);
// The parameters of a tensor map in the table at 1, by the names of TensorMap
// (base/tensormap.h), and its words as a list.
void tmalib_parameters(lua_State *L, TensorMap *m);
void tmalib_push_words(lua_State *L, const uint64_t *words);
// make_copy_atom(operation, dtype) of runs of bytes without a map.
int tmalib_bulk_atom(lua_State *L);
// copy(atom, src, dst, options) of such an atom.
int tmalib_copy(lua_State *L);

#endif
