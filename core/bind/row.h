// Describes Lua functions by rows of a table: the user's name, the types of
// arguments and result, and the C function that computes the result. dispatch.c
// converts arguments and results.
//
//   {"logical_divide(layout, tiler)", "LT>L", FN(layout_logical_divide)}
//
// Types: one letter per argument, `>`, a letter for the result.
//   L  layout, or the layout of a tensor     l  layout
//   V  layout, or tuple: compact layout      T  tiler
//   W  as L; also changes the tensor's Tensor.place
//   S  tuple, or shape of a layout or tensor
//   Y  as S; leaves of a tuple may be layouts
//   R  tuple whose leaves may be layouts
//   P  tuple                           p  the same, or NULL
//   s  as S, or NULL                   X  tensor
//   d  integer, static or traced       i  integer known while tracing
//   m  mode    b  mode, or 0    e  mode, or -1    t  element type
//   O  order of the preceding tuple; NULL: LayoutLeft
//   Z  swizzle
// all remaining arguments:
//   *  one coordinate    M  numbers of modes
//   H  as S, then numbers of modes, which select an entry of the shape
//   K  as L, then numbers of modes, which select a mode of the layout
// from the row, not from the call:
//   k  number of the row
// only for choosing among alternatives, which read their arguments themselves:
//   A  anything but nil   N  number, traced value, vector
//   B  tiled operation    F  `_` or a swizzle
// Results: L a layout, in the form of the first argument; X a view of the given
// tensor; l, P, d, i, Z as above; q truth (static or traced); Q a C boolean.
//
// A row named OR is an alternative to the row before it. A call uses the first
// alternative whose letters match the kinds and number of its arguments. If no
// alternative matches, the call uses the last one, which raises the error.
#ifndef CUTE_ROW_H
#define CUTE_ROW_H

#include "bind/face.h"

// S(name, type of the result, field of Slot for the result, types of the
// parameters, arguments): a type of C functions. The name has letters for the
// result and for the arguments (in_c in dispatch.c). If `_` precedes the
// letters of the arguments, the function has no parameter for the context.
#define SHAPES(S) \
  S(L_L, Layout, l, (Ctx *, Layout), (cx, a[0].l)) \
  S(L_LL, Layout, l, (Ctx *, Layout, Layout), (cx, a[0].l, a[1].l)) \
  S(L_LT, Layout, l, (Ctx *, Layout, Tiler), (cx, a[0].l, a[1].t)) \
  S(L_LP, Layout, l, (Ctx *, Layout, Tup), (cx, a[0].l, a[1].p)) \
  S(L_Li, Layout, l, (Ctx *, Layout, int64_t), (cx, a[0].l, a[1].i)) \
  S(L_Lmm, Layout, l, (Ctx *, Layout, int, int), (cx, a[0].l, a[1].m, a[2].m)) \
  S(L_LM, Layout, l, (Ctx *, Layout, const int *, int), \
    (cx, a[0].l, a[1].modes.at, a[1].modes.n)) \
  S(L_LmL, Layout, l, (Ctx *, Layout, int, Layout), \
    (cx, a[0].l, a[1].m, a[2].l)) \
  S(L_P, Layout, l, (Ctx *, Tup), (cx, a[0].p)) \
  S(L_PP, Layout, l, (Ctx *, Tup, Tup), (cx, a[0].p, a[1].p)) \
  S(L_Pi, Layout, l, (Ctx *, Tup, int64_t), (cx, a[0].p, a[1].i)) \
  S(P_P, Tup, p, (Ctx *, Tup), (cx, a[0].p)) \
  S(P_PP, Tup, p, (Ctx *, Tup, Tup), (cx, a[0].p, a[1].p)) \
  S(P_PPP, Tup, p, (Ctx *, Tup, Tup, Tup), (cx, a[0].p, a[1].p, a[2].p)) \
  S(P_PPk, Tup, p, (Ctx *, Tup, Tup, bool), (cx, a[0].p, a[1].p, a[2].m)) \
  S(P_Pm, Tup, p, (Ctx *, Tup, int), (cx, a[0].p, a[1].m)) \
  S(P_Pmm, Tup, p, (Ctx *, Tup, int, int), (cx, a[0].p, a[1].m, a[2].m)) \
  S(P_PmP, Tup, p, (Ctx *, Tup, int, Tup), (cx, a[0].p, a[1].m, a[2].p)) \
  S(P_PM, Tup, p, (Ctx *, Tup, const int *, int), \
    (cx, a[0].p, a[1].modes.at, a[1].modes.n)) \
  S(P_L, Tup, p, (Ctx *, Layout), (cx, a[0].l)) \
  S(P_LP, Tup, p, (Ctx *, Layout, Tup), (cx, a[0].l, a[1].p)) \
  S(d_P, Dim, d, (Ctx *, Tup), (cx, a[0].p)) \
  S(d_PP, Dim, d, (Ctx *, Tup, Tup), (cx, a[0].p, a[1].p)) \
  S(d_kPP, Dim, d, (Ctx *, int, Tup, Tup), (cx, a[0].m, a[1].p, a[2].p)) \
  S(d_L, Dim, d, (Ctx *, Layout), (cx, a[0].l)) \
  S(d_LP, Dim, d, (Ctx *, Layout, Tup), (cx, a[0].l, a[1].p)) \
  S(d_i, Dim, d, (Ctx *, int64_t), (cx, a[0].i)) \
  S(i_L, int64_t, i, (Ctx *, Layout), (cx, a[0].l)) \
  S(i_LL, int64_t, i, (Ctx *, Layout, Layout), (cx, a[0].l, a[1].l)) \
  S(i_Lm, int64_t, i, (Ctx *, Layout, int), (cx, a[0].l, a[1].m)) \
  S(i_d, int64_t, i, (Ctx *, Dim), (cx, a[0].d)) \
  S(i_Z, int64_t, i, (Ctx *, Swizzle), (cx, a[0].z)) \
  S(Z_L, Swizzle, z, (Ctx *, Layout), (cx, a[0].l)) \
  S(Z_Zi, Swizzle, z, (Ctx *, Swizzle, int64_t), (cx, a[0].z, a[1].i)) \
  S(Q_PP, bool, b, (Ctx *, Tup, Tup), (cx, a[0].p, a[1].p)) \
  S(Q_LL, bool, b, (Ctx *, Layout, Layout), (cx, a[0].l, a[1].l)) \
  S(Q_PT, bool, b, (Ctx *, Tup, Tiler), (cx, a[0].p, a[1].t)) \
  S(P__P, Tup, p, (Tup), (a[0].p)) \
  S(i__P, int, i, (Tup), (a[0].p)) \
  S(Q__P, bool, b, (Tup), (a[0].p)) \
  S(Q__PP, bool, b, (Tup, Tup), (a[0].p, a[1].p)) \
  S(Q__L, bool, b, (Layout), (a[0].l)) \
  S(X_XTP, Tensor, x, (Ctx *, Tensor, Tiler, Tup), \
    (cx, a[0].x, a[1].t, a[2].p)) \
  S(X_XTPP, Tensor, x, (Ctx *, Tensor, Tiler, Tup, Tup), \
    (cx, a[0].x, a[1].t, a[2].p, a[3].p)) \
  S(X_X, Tensor, x, (Ctx *, Tensor), (cx, a[0].x)) \
  S(X_Xt, Tensor, x, (Ctx *, Tensor, DType), (cx, a[0].x, a[1].type)) \
  S(X_PX, Tensor, x, (Ctx *, Tup, Tensor), (cx, a[0].p, a[1].x))

#define DEFINE(name, type, field, takes, from) typedef type Fn_##name takes;
SHAPES(DEFINE)
#undef DEFINE

typedef enum Shape {
  SHAPE_FACE,      // a lua_CFunction that reads its own arguments
  // like SHAPE_FACE, but the function also gets the row's number
  SHAPE_NUMBERED,
#define NAME(name, type, field, takes, from) SHAPE_##name,
  SHAPES(NAME)
#undef NAME
} Shape;

typedef int NumberedFace(lua_State *L, int number);
typedef void AnyFn(void);

typedef struct FnRow {
  const char *sig;    // name and parameters, or the value OR (see above)
  const char *types;
  Shape shape;
  AnyFn *f;           // the function, cast to the type of `shape` for a call
  int number;
} FnRow;
#define OR "|"
#define LAST_ROW {NULL, NULL, SHAPE_FACE, NULL, 0}

#define SHAPE_CASE(name, type, field, takes, from) \
  , Fn_##name *: SHAPE_##name
#define NUMBERED(f, number) \
  _Generic((f), lua_CFunction: SHAPE_FACE, NumberedFace *: SHAPE_NUMBERED \
           SHAPES(SHAPE_CASE)), (AnyFn *)(f), number
#define FN(f) NUMBERED(f, 0)

// Kinds of arguments, as bits. They select one of several alternatives.
enum {
  KIND_NONE = 1, KIND_NIL = 2, KIND_NUMBER = 4, KIND_TABLE = 8,
  KIND_LAYOUT = 16, KIND_TENSOR = 32, KIND_SWIZZLE = 64, KIND_ANY = 128,
  KIND_BASIS = 256, KIND_VALUE = 512, KIND_VECTOR = 1024, KIND_TILED = 2048,
  KIND_OTHER = 4096,
  // for a letter that takes all remaining arguments
  KIND_REST = 8192,
  KIND_ABSENT = KIND_NONE | KIND_NIL,
  KIND_CONSTANT = KIND_SWIZZLE | KIND_ANY | KIND_BASIS,
  KIND_DIM = KIND_NUMBER | KIND_ANY | KIND_BASIS | KIND_VALUE,
  KIND_TUPLE = KIND_DIM | KIND_TABLE,
  KIND_SHAPE = KIND_TUPLE | KIND_LAYOUT | KIND_TENSOR
};
int dispatch_kind(lua_State *L, int idx);

#endif
// SPDX-License-Identifier: MIT
