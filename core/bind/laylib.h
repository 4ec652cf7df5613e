// Layouts, constants of the algebra and IntTuples as Lua values (laylib.c), and
// as arguments (operands.c). layoutlib.c, alglib.c and tuplelib.c use these
// functions.
#ifndef CUTE_LAYLIB_H
#define CUTE_LAYLIB_H

#include "bind/face.h"

// The userdata of a layout. `mark` is the address of a constant of this
// program. It identifies the type, and comparing it is faster than comparing
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
  uint32_t serial;        // for a traced basis: serial number of its Fn
  Dim d;
  Swizzle sw;
} ConstBox;

// The addresses of these variables are the keys, in the registry, of the
// metatables of layouts, constants and tuples.
extern const char laylib_layout_key;
extern const char laylib_const_key;
extern const char laylib_tuple_key;

ConstBox *laylib_const(lua_State *L, int idx);  // NULL: none
ConstBox *laylib_push_const(lua_State *L, ConstKind kind);
// Returns the value of a basis. Raises an error if it is a traced value of
// another kernel.
Dim laylib_basis(lua_State *L, const ConstBox *b);
bool laylib_is(lua_State *L, int idx, ConstKind kind);
// Returns the layout at idx, or NULL. Does not check whether its traced extents
// can be used at this point of a trace.
LayoutBox *laylib_box(lua_State *L, int idx);
// Pushes a plain layout that can get dynamic marks, as a tensor can, in
// uservalue 2.
void laylib_push_markable(lua_State *L, Layout l);
void laylib_push_swizzle(lua_State *L, Swizzle sw);
bool laylib_test_swizzle(lua_State *L, int idx, Swizzle *sw);
// Pushes a boolean or a traced predicate.
void laylib_push_truth(lua_State *L, Dim d);
// Pushes a tuple. If it is a single leaf, pushes a value instead of a table.
void laylib_push_any(lua_State *L, Tup t);

void laylib_set_tuple(lua_State *L);  // makes the table on top print as a tuple

// operands.c: the first operand of most layout functions, a layout or a tensor.
// `l` is this layout, or the layout of the tensor.
typedef struct LayoutOperand {
  Layout l;
  Tensor t;
  int tensor;   // stack index of the tensor; 0: the operand is a layout
} LayoutOperand;
bool laylib_test_operand(lua_State *L, int idx, LayoutOperand *o);
LayoutOperand laylib_operand(lua_State *L, int idx);
// Pushes l, the result of an operation on the layout of o. Pushes a tensor if o
// is a tensor, else a layout. Returns 1.
int laylib_push_operand(lua_State *L, const LayoutOperand *o, Layout l);
// laylib_shape returns the tuple at idx, or the shape of a layout or tensor.
Tup laylib_shape(Ctx *cx, lua_State *L, int idx);
// Returns the tiler at idx, for operations that rearrange modes: a tuple whose
// leaves may be layouts (DIM_LAYOUT), or a single layout.
Tup laylib_tree(Ctx *cx, lua_State *L, int idx);
Layout laylib_layout(Ctx *cx, lua_State *L, int idx);
// Returns the strides of l, as layout_stride does. A layout composed with
// another layout has none, so an error is raised.
Tup laylib_stride(Ctx *cx, lua_State *L, Layout l);
Tiler laylib_tiler(Ctx *cx, lua_State *L, int idx);
int laylib_mode(lua_State *L, int idx);
// Reads numbers of modes from the arguments from `first` on, or from one table
// such as {0, 2}.
int *laylib_modes(Ctx *cx, lua_State *L, int first, int *n);
// Reads the arguments from `first` on as one coordinate. A single argument is
// the coordinate. Several arguments form a tuple.
Tup laylib_coord(Ctx *cx, lua_State *L, int first);
// Reads the argument `order` of ordered layouts. Returns a tuple, or NULL for
// LayoutLeft. For LayoutRight, returns a tuple that fits `shape`.
Tup laylib_order(Ctx *cx, lua_State *L, int idx, Tup shape);

// Functions of layoutfn.c, for Lua functions in composed layouts. layoutfn_make
// creates a LayoutFn for the Lua function at stack index f, and pushes the
// userdata that owns it. The table of options is at stack index opts, if
// present.
const LayoutFn *layoutfn_make(lua_State *L, int f, int opts);
// Pushes the Lua function of fn.
void layoutfn_push(lua_State *L, const LayoutFn *fn);
int layoutfn_count(Layout l);  // number of Lua functions in l
// Keeps the Lua functions in l alive: stores their userdata in uservalues of
// the userdata on top, from `first` on.
void layoutfn_hold(lua_State *L, Layout l, int first);

// Handles t[k] if tuple t has no entry k: pushes nil. For k < 1, raises an
// error, because indices of tuples begin at 1.
int tuplelib_index(lua_State *L);

#endif
// SPDX-License-Identifier: MIT
