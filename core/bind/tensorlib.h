// Tensors as Lua values (tensorbox.c). Also functions of tensorlib.c (methods
// of tensors) and hostlib.c (host memory) for other bindings.
#ifndef CUTE_TENSORLIB_H
#define CUTE_TENSORLIB_H

#include "bind/face.h"

// The userdata of a tensor. The words of its layout follow the struct.
// Uservalue 1 is its host or device buffer. Uservalue 2 is its TensorMarks, or
// nil.
typedef struct TensorBox {
  const void *mark;  // address that identifies the type, as in LayoutBox
  Tensor t;
  const HostBuf *host;        // the tensor's host buffer, or NULL
  struct DevBuf *dev;     // the tensor's device buffer, or NULL
  // serial number of the Fn whose traced values t uses; 0: none
  uint32_t serial;
  uint32_t born;    // value of Fn.births when t was created
  // whether it is the result of tensor + integer outside of a kernel
  bool sum;
} TensorBox;

// Returns the tensor at idx, or NULL. Does not check whether the tensor can be
// used at this point of a trace (tensorbox.c).
TensorBox *tensorlib_box(lua_State *L, int idx);
// Raises the error that a kernel's tensor was used on the host.
_Noreturn void tensorlib_outside(lua_State *L);
// Returns the arguments from `first` on as one coordinate. A single argument is
// the coordinate. Several arguments form a tuple.
Tup tensorlib_coord(Ctx *cx, lua_State *L, int first);
// Pushes a tensor on the device buffer dev, which is at stack index `owner`.
void tensorlib_push_of(lua_State *L, const Tensor *t, struct DevBuf *dev,
                       int owner);
// Pushes tensor t, which shares the buffer of the tensor at stack index src.
void tensorlib_push_view(lua_State *L, const Tensor *t, int src);

// hostlib.c: hostlib_get pushes the element at offset off of the host tensor at
// idx. hostlib_set sets this element to the value at stack index `value`.
void hostlib_get(Ctx *cx, lua_State *L, int idx, const Tensor *t, Dim off);
void hostlib_set(Ctx *cx, lua_State *L, int idx, const Tensor *t, Dim off,
                 int value);
// Sets every element of the host tensor at idx to the value at stack index
// `value`.
void hostlib_fill(Ctx *cx, lua_State *L, int idx, const Tensor *t, int value);
// hostlib_full and hostlib_like implement full, full_like and others outside of
// kernels. x and type are stack indices of arguments. If x is 0, all elements
// are `number`.
int hostlib_full(lua_State *L);
int hostlib_like(lua_State *L, int x, int number, int type);
extern const luaL_Reg hostlib_methods[];

// Implements make_fragment_like and make_rmem_tensor_like.
int tensorlib_fragment_like(lua_State *L);
int atomlib_size(lua_State *L);  // pushes the threads of a tiled operation

#endif
// SPDX-License-Identifier: MIT
