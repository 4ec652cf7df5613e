// Layouts, constants of the algebra and IntTuples as Lua values (laylib.c), and
// as arguments (operands.c). layoutlib.c, alglib.c and tuplelib.c use these
// functions.
#ifndef CUTE_LAYLIB_H
#define CUTE_LAYLIB_H

#include "bind/face.h"

// The userdata of a layout. `mark` is the address of a constant of this
// program. Comparing this address identifies the type faster than comparing
// metatables.
typedef struct LayoutBox {
  const void *mark;
  // serial: serial number of the Fn to which traced extents belong (0: none).
  // born: value of Fn.births when the layout was created.
  uint32_t serial, born;
  Layout l;               // points to words that follow in the userdata
} LayoutBox;

// Kinds of constants: cute._, cute.X, LayoutLeft, LayoutRight, bases, swizzles.
typedef enum ConstKind {
  CONST_ANY, CONST_X, CONST_LEFT, CONST_RIGHT, CONST_BASIS, CONST_SWIZZLE,
  CONST_F2
} ConstKind;
typedef struct ConstBox {
  const void *mark;
  ConstKind kind;
  uint32_t serial;        // for a traced basis: serial of its Fn
  Dim d;
  Swizzle sw;
} ConstBox;

// Keys (addresses) in the registry of the metatables of layouts, constants and
// tuples.
extern const char laylib_layout_key;
extern const char laylib_const_key;
extern const char laylib_tuple_key;

ConstBox *laylib_const(lua_State *L, int idx);  // NULL: none
ConstBox *laylib_push_const(lua_State *L, ConstKind kind);
// Returns the value of a basis. Raises an error if the value is traced and
// belongs to another kernel.
Dim laylib_basis(lua_State *L, const ConstBox *b);
bool laylib_is(lua_State *L, int idx, ConstKind kind);
// Returns the layout at idx, or NULL. Does not check that the layout's traced
// extents can be used at the current point of a trace.
LayoutBox *laylib_box(lua_State *L, int idx);
// Pushes a plain layout that, like a tensor, can get dynamic marks in uservalue
// 2.
void laylib_push_markable(lua_State *L, Layout l);
void laylib_push_swizzle(lua_State *L, Swizzle sw);
bool laylib_test_swizzle(lua_State *L, int idx, Swizzle *sw);
// Pushes a boolean or a traced predicate.
void laylib_push_truth(lua_State *L, Dim d);
// Pushes a tuple. A tuple that is one leaf is pushed as a value, not as a
// table.
void laylib_push_any(lua_State *L, Tup t);

void laylib_set_tuple(lua_State *L);  // makes the table on top print as a tuple

// operands.c: the first operand of most layout functions, a layout or a tensor.
// l is the layout, or the tensor's layout.
typedef struct LayoutOperand {
  Layout l;
  Tensor t;
  int tensor;   // stack index of the tensor; 0: the operand is a layout
} LayoutOperand;
bool laylib_test_operand(lua_State *L, int idx, LayoutOperand *o);
LayoutOperand laylib_operand(lua_State *L, int idx);
// Pushes l, the result of an operation on o's layout: as a layout or, if o is a
// tensor, as a tensor. Returns 1.
int laylib_push_operand(lua_State *L, const LayoutOperand *o, Layout l);
// laylib_shape returns the tuple at idx, or the shape of a layout or tensor.
Tup laylib_shape(Ctx *cx, lua_State *L, int idx);
// Returns the tuple at idx, whose leaves may be layouts (DIM_LAYOUT), or a
// single layout. The tuple represents a tiler for operations that rearrange
// modes.
Tup laylib_tree(Ctx *cx, lua_State *L, int idx);
Layout laylib_layout(Ctx *cx, lua_State *L, int idx);
// Returns the strides of l, as layout_stride does. Raises an error if l is
// composed with another layout, because such a layout has no strides.
Tup laylib_stride(Ctx *cx, lua_State *L, Layout l);
Tiler laylib_tiler(Ctx *cx, lua_State *L, int idx);
int laylib_mode(lua_State *L, int idx);
// Reads numbers of modes from the arguments from `first` on, or from one table:
// {0, 2}.
int *laylib_modes(Ctx *cx, lua_State *L, int first, int *n);
// Reads the arguments from `first` on as one coordinate: several arguments form
// a tuple; a single argument is the coordinate.
Tup laylib_coord(Ctx *cx, lua_State *L, int first);
// Reads the argument `order` of ordered layouts. Returns a tuple, or NULL for
// LayoutLeft. For LayoutRight, makes a tuple that fits `shape`.
Tup laylib_order(Ctx *cx, lua_State *L, int idx, Tup shape);

// Functions of layoutfn.c for Lua functions in composed layouts. layoutfn_make
// creates a LayoutFn of the Lua function at stack index f, with the table of
// options at stack index opts (if present), and pushes the userdata that owns
// the LayoutFn.
const LayoutFn *layoutfn_make(lua_State *L, int f, int opts);
// Pushes the Lua function of fn.
void layoutfn_push(lua_State *L, const LayoutFn *fn);
int layoutfn_count(Layout l);  // number of Lua functions in l
// Keeps the Lua functions in l alive: stores their userdata in uservalues of
// the userdata on top, from `first` on.
void layoutfn_hold(lua_State *L, Layout l, int first);

// Handles t[k] for a tuple t without an entry k: pushes nil, or raises an error
// for k < 1, because indices of tuples begin at 1.
int tuplelib_index(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
