// Public functions with implementations for several kinds of arguments, and
// functions that are also methods. Each function is in one of the tables below.
#include "bind/row.h"

#include "bind/laylib.h"
#include "bind/tensorlib.h"
#include "bind/veclib.h"

static const FnRow rows[] = {
  {"size(x, modes...)", "B", FN(atomlib_size)},
  {OR, "H>d", FN(tup_size)},
  {"max(x, values...)", "N*", NUMBERED(mathlib_pick, OP_MAX)},
  {OR, "A>d", FN(tup_max)},
  {OR, "", NUMBERED(mathlib_pick, OP_MAX)},
  {"min(x, values...)", "N*", NUMBERED(mathlib_pick, OP_MIN)},
  {OR, "A>d", FN(tup_min)},
  {OR, "", NUMBERED(mathlib_pick, OP_MIN)},
  {"make_fragment_like(x, dtype?)", "X*", FN(tensorlib_fragment_like)},
  {OR, "AA", FN(tensorlib_fragment_like)},
  {OR, "L>l", FN(layout_fragment_like)},
  {OR, "P>l", FN(layout_compact)},
  LAST_ROW};

// Methods of layouts. The first OF_TENSORS of these names are also methods of
// tensors.
static const char *const methods[] = {
  "size", "rank", "depth", "cosize", "get", "take", "select", "group_modes",
  "flatten", "coalesce", "filter", "composition", "with_shape",
  "logical_divide", "zipped_divide", "tiled_divide", "flat_divide",
  "coshape", "get_hier_coord", "get_flat_coord", "get_1d_coord",
  "filter_zeros", "unflatten", "complement", "right_inverse", "left_inverse",
  "nullspace", "logical_product", "zipped_product", "tiled_product",
  "flat_product", "blocked_product", "raked_product", "tile_to_shape",
  "upcast", "downcast", "group", "append", "prepend", "replace",
  "max_alignment", "is_static", "get_swizzle_portion",
  "get_nonswizzle_portion", "dice"};
enum { METHODS = sizeof methods / sizeof *methods, OF_TENSORS = 17 };

// Copies the first n of the functions `methods` from the table on top to the
// metatable tname.
static void set_methods(lua_State *L, const char *tname, int n) {
  luaL_getmetatable(L, tname);
  for (int i = 0; i < n; i++) {
    lua_getfield(L, -2, methods[i]);
    lua_setfield(L, -2, methods[i]);
  }
  lua_pop(L, 1);
}

void generic_open(lua_State *L) {
  face_setrows(L, rows);
  set_methods(L, MT_LAYOUT, METHODS);
  set_methods(L, MT_TENSOR, OF_TENSORS);
}
// SPDX-License-Identifier: MIT
