// Layouts, constants and IntTuples as values of Lua (laylib.c), and as
// arguments (operands.c). layoutlib.c, alglib.c and tuplelib.c use them.
#ifndef CUTE_LAYLIB_H
#define CUTE_LAYLIB_H

#include "bind/face.h"

// First word of the userdata: a mark (the address of a constant of this
// program), which identifies the type faster than a metatable.
typedef struct LayoutBox {
  const void *mark;
  uint32_t serial, born;  // serial of the Fn that traced extents belong to; 0:
                          // none
  Layout l;               // points into the data that follows
} LayoutBox;

// cute._, cute.X, LayoutLeft, LayoutRight, bases and swizzles.
typedef enum ConstKind {
  CONST_ANY, CONST_X, CONST_LEFT, CONST_RIGHT, CONST_BASIS, CONST_SWIZZLE,
  CONST_F2
} ConstKind;
typedef struct ConstBox {
  const void *mark;
  ConstKind kind;
  uint32_t serial;        // CONST_BASIS with a traced value
  Dim d;
  Swizzle sw;
} ConstBox;

// Registry: the metatables of layouts, constants and tuples.
extern const char laylib_layout_key;
extern const char laylib_const_key;
extern const char laylib_tuple_key;

ConstBox *laylib_const(lua_State *L, int idx);  // NULL: none
ConstBox *laylib_push_const(lua_State *L, ConstKind kind);
// Returns the value of a basis; raises an error if it is another kernel's.
Dim laylib_basis(lua_State *L, const ConstBox *b);
bool laylib_is(lua_State *L, int idx, ConstKind kind);
// Returns a layout without a check of its traced extents.
LayoutBox *laylib_box(lua_State *L, int idx);
// Pushes a plain layout with room for marks, like a tensor: uservalue 2.
void laylib_push_markable(lua_State *L, Layout l);
void laylib_push_swizzle(lua_State *L, Swizzle sw);
bool laylib_test_swizzle(lua_State *L, int idx, Swizzle *sw);
void laylib_push_truth(lua_State *L, Dim d);    // boolean or traced predicate
// Pushes a tuple; a leaf is pushed as its value, not as a table.
void laylib_push_any(lua_State *L, Tup t);

void laylib_set_tuple(lua_State *L);  // makes the table on top print as a tuple

// operands.c: the first operand of most functions: a layout, or a tensor with
// one.
typedef struct LayoutOperand {
  Layout l;
  Tensor t;
  int tensor;   // stack index, or 0
} LayoutOperand;
bool laylib_test_operand(lua_State *L, int idx, LayoutOperand *o);
LayoutOperand laylib_operand(lua_State *L, int idx);
// Pushes the result of an operation on o's layout. Returns 1.
int laylib_push_operand(lua_State *L, const LayoutOperand *o, Layout l);
// laylib_shape: a tuple, or the shape of a layout or tensor. laylib_layout: a
// layout, or a compact one for a tuple.
Tup laylib_shape(Ctx *cx, lua_State *L, int idx);
// A tuple whose leaves may be layouts (DIM_LAYOUT), or a single layout: a
// tiler, whose modes are rearranged like those of any tuple.
Tup laylib_tree(Ctx *cx, lua_State *L, int idx);
Layout laylib_layout(Ctx *cx, lua_State *L, int idx);
// Returns layout_stride(l). Raises an error if values go through another
// layout.
Tup laylib_stride(Ctx *cx, lua_State *L, Layout l);
Tiler laylib_tiler(Ctx *cx, lua_State *L, int idx);
int laylib_mode(lua_State *L, int idx);
// Reads modes from the arguments from first on, or from one table: {0, 2}.
int *laylib_modes(Ctx *cx, lua_State *L, int first, int *n);
// Reads the arguments first..top as one coordinate. A single argument is
// unchanged.
Tup laylib_coord(Ctx *cx, lua_State *L, int first);
// Reads the order argument of ordered layouts: a tuple, or NULL for LayoutLeft.
// For LayoutRight, the order is computed from shape.
Tup laylib_order(Ctx *cx, lua_State *L, int idx, Tup shape);

// layoutfn.c: Lua functions in composed layouts. Creates one from the function
// at f, with the options at opts, if any; pushes its owner.
const LayoutFn *layoutfn_make(lua_State *L, int f, int opts);
void layoutfn_push(lua_State *L, const LayoutFn *fn);  // pushes the Lua
                                                       // function
int layoutfn_count(Layout l);  // number of Lua functions in a layout
// Stores the owners in the userdata on top, in its uservalues from `first` on.
void layoutfn_hold(lua_State *L, Layout l, int first);

// Handles t[k] where the table of a tuple has no k: nil, or an error below 1.
int tuplelib_index(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
