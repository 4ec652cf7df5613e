// Tensors as values of Lua (tensorbox.c), and what tensorlib.c (their methods)
// and hostlib.c (host memory behind them) offer to other faces.
#ifndef CUTE_TENSORLIB_H
#define CUTE_TENSORLIB_H

#include "bind/face.h"

// What a tensor userdata holds, in one block with the layout's words behind
// it. Uservalue 1: the host or device buffer; 2: TensorMarks or nil.
typedef struct TensorBox {
  const void *mark;  // tells the type, as that of a LayoutBox does
  Tensor t;
  const HostBuf *host;        // that buffer, or NULL
  struct DevBuf *dev;     // that one, or NULL
  uint32_t serial;  // of the Fn whose values t names; 0: none
  uint32_t born;    // that Fn's births when t was made
} TensorBox;

// tensorbox.c
TensorBox *tensorlib_box(lua_State *L, int idx);  // unchecked; NULL: none
_Noreturn void tensorlib_outside(lua_State *L);  // of a kernel, on the host
// The arguments first..top as one coordinate: a lone one as it stands.
Tup tensorlib_coord(Ctx *cx, lua_State *L, int first);
// Pushes a tensor of the device buffer at a stack index.
void tensorlib_push_of(lua_State *L, const Tensor *t, struct DevBuf *dev,
                       int owner);
// Pushes a view of the tensor at src: the same buffer behind it.
void tensorlib_push_view(lua_State *L, const Tensor *t, int src);

// hostlib.c
// Element of the host tensor at idx; pushed, or taken from value.
void hostlib_get(Ctx *cx, lua_State *L, int idx, const Tensor *t, Dim off);
void hostlib_set(Ctx *cx, lua_State *L, int idx, const Tensor *t, Dim off,
                 int value);
// Every element of the host tensor at idx.
void hostlib_fill(Ctx *cx, lua_State *L, int idx, const Tensor *t, int value);
// full, full_like and its kin make host tensors outside of kernels: x and type
// are arguments, x 0 standing for the number.
int hostlib_full(lua_State *L);
int hostlib_like(lua_State *L, int x, int number, int type);
extern const luaL_Reg hostlib_methods[];

int tensorlib_fragment_like(lua_State *L);  // make_fragment_like in kernels
int atomlib_size(lua_State *L);             // threads of a tiled operation

#endif
