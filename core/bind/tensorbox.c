// Tensors as Lua values, and coordinates as arguments.
#include "bind/tensorlib.h"

#include <string.h>

#include "bind/laylib.h"
#include "gpu/memory.h"
#include "layout/composed.h"
#include "tensor/place.h"

// ---- userdata ----

static const char tensor_mark = 'T';

static size_t words_bytes(Tup t) { return t ? tup_words(t) * sizeof(Dim) : 0; }

static TensorBox *push_box(lua_State *L, const Tensor *t) {
  Ctx *cx = face_state(L);
  size_t lb = (layout_bytes(t->l) + 7) & ~(size_t)7;
  size_t bb = words_bytes(t->base);
  TensorBox *b =
    lua_newuserdatauv(L, sizeof *b + lb + bb + place_bytes(t->place),
                      2 + layoutfn_count(t->l));
  layoutfn_hold(L, t->l, 3);
  b->mark = &tensor_mark;
  b->t = *t;
  b->host = NULL;
  b->dev = NULL;
  b->serial = 0;
  b->sum = false;
  b->t.l = layout_copy(b + 1, t->l);
  if (t->base) {
    Dim *base = (Dim *)(void *)((char *)(b + 1) + lb);
    memcpy(base, t->base, words_bytes(t->base));
    b->t.base = base;
  }
  if (t->place) b->t.place = place_copy((char *)(b + 1) + lb + bb, t->place);
  if (tensor_traced(t)) {
    b->serial = ir_fn(cx) ? ir_fn(cx)->serial : UINT32_MAX;
    b->born = ir_fn(cx) ? ir_fn(cx)->births : 0;
  }
  luaL_setmetatable(L, MT_TENSOR);
  return b;
}

void face_push_tensor(lua_State *L, const Tensor *t, int owner) {
  if (owner) owner = lua_absindex(L, owner);
  TensorBox *b = push_box(L, t);
  if (!owner) return;
  b->host = face_test(L, owner, MT_BUFFER);
  if (!b->host) b->dev = face_test(L, owner, MT_DEVBUF);
  lua_pushvalue(L, owner);
  lua_setiuservalue(L, -2, 1);
}

void tensorlib_push_of(lua_State *L, const Tensor *t, DevBuf *dev, int owner) {
  owner = lua_absindex(L, owner);
  push_box(L, t)->dev = dev;
  lua_pushvalue(L, owner);
  lua_setiuservalue(L, -2, 1);
}

void tensorlib_push_view(lua_State *L, const Tensor *t, int src) {
  src = lua_absindex(L, src);
  TensorBox *b = push_box(L, t);
  const TensorBox *from = tensorlib_box(L, src);
  if (from) b->host = from->host, b->dev = from->dev;
  lua_getiuservalue(L, src, 1);
  lua_setiuservalue(L, -2, 1);
}

TensorBox *tensorlib_box(lua_State *L, int idx) {
  TensorBox *b = lua_touserdata(L, idx);
  if (!b || lua_rawlen(L, idx) < sizeof *b || b->mark != &tensor_mark)
    return NULL;
  return b;
}

const Tensor *face_peek_tensor(lua_State *L, int idx) {
  TensorBox *b = tensorlib_box(L, idx);
  return b ? &b->t : NULL;
}

const Tensor *face_live_tensor(lua_State *L, int idx) {
  TensorBox *b = tensorlib_box(L, idx);
  if (!b || b->serial == 0) return b ? &b->t : NULL;
  Ctx *cx = face_state(L);
  if (!ir_fn(cx) || ir_fn(cx)->serial != b->serial) return NULL;
  return tensor_usable(cx, &b->t, b->born) ? &b->t : NULL;
}

void tensorlib_outside(lua_State *L) {
  face_error(L, ERR_FOREIGN, "a tensor of a kernel was used outside of it\n"
             "  it stands for memory that exists only while the kernel runs");
}

// Raises an error if the tensor belongs to another kernel than the one being
// traced, or to a region of this kernel that has ended.
static void own_box(lua_State *L, const TensorBox *b) {
  if (b->serial == 0) return;
  Ctx *cx = face_state(L);
  if (!ir_fn(cx)) tensorlib_outside(L);
  if (b->serial != ir_fn(cx)->serial)
    face_error(L, ERR_FOREIGN, "a tensor of another kernel was used in '%s'",
               ir_str(ir_fn(cx), ir_fn(cx)->name));
  tensor_use(cx, &b->t, b->born);
}

bool face_test_tensor(lua_State *L, int idx, Tensor *t) {
  TensorBox *b = tensorlib_box(L, idx);
  if (!b) return false;
  own_box(L, b);
  *t = b->t;
  if (t->place && !tensor_usable(face_state(L), &t->place->at, b->born))
    // Drop `place`, because it refers to values of a loop or branch that has
    // ended.
    t->place = NULL;
  return true;
}

Tensor face_check_tensor(lua_State *L, int idx) {
  Tensor t;
  if (!face_test_tensor(L, idx, &t)) face_argerror(L, idx, "tensor");
  return t;
}

const TensorMarks *tensor_marks(lua_State *L, int idx) {
  lua_getiuservalue(L, idx, 2);
  const TensorMarks *m = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return m;
}

// ---- arguments ----

Tup tensorlib_coord(Ctx *cx, lua_State *L, int first) {
  int top = lua_gettop(L);
  if (top < first)
    face_error(L, ERR_ARG, "a coordinate is missing: write an index, or an "
               "index for each mode");
  if (top == first && !lua_isnil(L, first))
    return face_check_tup(cx, L, first);
  TupB b = {0};
  tupb_open(cx, &b);
  for (int i = first; i <= top; i++) {
    Dim d;
    if (lua_isnil(L, i))
      face_error(L, ERR_ARG, "mode %d of the coordinate is nil\n  write "
                 "cute._ for all of a mode", i - first);
    if (face_test_dim(cx, L, i, &d))
      tupb_leaf(cx, &b, d);
    else
      tupb_put(cx, &b, face_check_tup(cx, L, i));
  }
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}
// SPDX-License-Identifier: MIT
