// Tensors as values of Lua (tensorbox.c), and what tensorlib.c (their methods)
// and hostlib.c (host memory behind them) offer to other faces.
#ifndef CUTE_TENSORLIB_H
#define CUTE_TENSORLIB_H

#include "bind/face.h"

// The tensor userdata, one block with the words of its layout. Uservalue 1: the
// host or device buffer; 2: TensorMarks or nil.
typedef struct TensorBox {
  const void *mark;  // identifies the type, as in a LayoutBox
  Tensor t;
  const HostBuf *host;        // the host buffer, or NULL
  struct DevBuf *dev;     // the device buffer, or NULL
  uint32_t serial;  // serial of the Fn whose values t uses; 0: none
  uint32_t born;    // that Fn's `births` when t was created
} TensorBox;

// Returns the tensor without a check; NULL if it is none (tensorbox.c).
TensorBox *tensorlib_box(lua_State *L, int idx);
// Raises the error for a kernel's tensor that is used on the host.
_Noreturn void tensorlib_outside(lua_State *L);
// Returns the arguments first..top as one coordinate; a single one is
// unchanged.
Tup tensorlib_coord(Ctx *cx, lua_State *L, int first);
// Pushes a tensor of the device buffer at a stack index.
void tensorlib_push_of(lua_State *L, const Tensor *t, struct DevBuf *dev,
                       int owner);
// Pushes a view of the tensor at src, with the same buffer.
void tensorlib_push_view(lua_State *L, const Tensor *t, int src);

// hostlib.c
// Pushes the element of the host tensor at idx, or sets it to the value at
// `value`.
void hostlib_get(Ctx *cx, lua_State *L, int idx, const Tensor *t, Dim off);
void hostlib_set(Ctx *cx, lua_State *L, int idx, const Tensor *t, Dim off,
                 int value);
// Sets every element of the host tensor at idx.
void hostlib_fill(Ctx *cx, lua_State *L, int idx, const Tensor *t, int value);
// full, full_like and others, which create host tensors outside kernels. x and
// type are argument indices. If x is 0, the number is used.
int hostlib_full(lua_State *L);
int hostlib_like(lua_State *L, int x, int number, int type);
extern const luaL_Reg hostlib_methods[];

int tensorlib_fragment_like(lua_State *L);  // make_fragment_like in kernels
int atomlib_size(lua_State *L);             // threads of a tiled operation

#endif
// SPDX-License-Identifier: MIT
