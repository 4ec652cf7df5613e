// Reads the first operand of most layout functions: a layout, a tensor with a
// layout, or a shape.
#include "bind/laylib.h"

#include "bind/tensorlib.h"

bool laylib_test_operand(lua_State *L, int idx, LayoutOperand *o) {
  o->tensor = 0;
  if (face_test_layout(L, idx, &o->l)) return true;
  if (lua_type(L, idx) != LUA_TUSERDATA || laylib_const(L, idx) ||
      !face_test_tensor(L, idx, &o->t))
    return false;
  o->l = o->t.l;
  o->tensor = idx;
  return true;
}

LayoutOperand laylib_operand(lua_State *L, int idx) {
  LayoutOperand o;
  if (!laylib_test_operand(L, idx, &o)) face_argerror(L, idx, "layout");
  return o;
}

int laylib_push_operand(lua_State *L, const LayoutOperand *o, Layout l) {
  if (!o->tensor) {
    face_push_layout(L, l);
    return 1;
  }
  Tensor t = tensor_with_layout(o->t, l);
  tensorlib_push_view(L, &t, o->tensor);
  return 1;
}

Tup laylib_shape(Ctx *cx, lua_State *L, int idx) {
  LayoutOperand o;
  return laylib_test_operand(L, idx, &o)
           ? o.l.shape
           : tup_shape(cx, laylib_tree(cx, L, idx));
}

Layout laylib_layout(Ctx *cx, lua_State *L, int idx) {
  Layout l;
  if (face_test_layout(L, idx, &l)) return l;
  return layout_compact(cx, face_check_tup(cx, L, idx));
}

Tup laylib_stride(Ctx *cx, lua_State *L, Layout l) {
  if (l.outer && !layout_swizzle(l))
    face_error(L, ERR_INADMISSIBLE, "a composed layout has no strides: %s\n  "
               "the strides of its right side are "
               "get_nonswizzle_portion(l).stride or l.outer.stride",
               layout_text(cx, l));
  return layout_stride(cx, l);
}
// SPDX-License-Identifier: MIT
