// Register vectors for the bindings: the userdata MT_VECTOR.
#ifndef CUTE_VECLIB_H
#define CUTE_VECLIB_H

#include "bind/tensorlib.h"

// An immutable list of traced values of one type, with a shape that they fill
// in colexicographic order. One block of memory: the shape's words come last.
typedef struct Vector {
  uint32_t serial, born;  // as in TensorBox
  uint32_t src;           // line that created it: index into Fn.src
  DType type;
  bool consumed;          // for booleans: whether it was used
  int64_t n;
  Tup shape;
  Ref r[];
} Vector;

// Pushes a vector of the traced function; copies r and shape.
Vector *veclib_push(lua_State *L, DType type, Tup shape, const Ref *r,
                    int64_t n);
// Returns NULL if it is no vector; raises an error if it cannot be used here.
Vector *veclib_test(lua_State *L, int idx);

// One operand of an element-wise function: a value for each element of the
// result, or one for all.
typedef struct Element {
  const Ref *r;
  Ref s;
} Element;

static inline Ref veclib_at(const Element *o, int64_t i) {
  return o->r ? o->r[i] : o->s;
}

enum { MAX_OPERANDS = 3 };
typedef struct Elements {
  Element o[MAX_OPERANDS];
  int n;
  Tup shape;      // shape of the result; NULL: a scalar
  int64_t count;  // number of elements of the result
  DType type;     // common type of the operands
} Elements;

// Reads arguments first .. first + n - 1 (n <= MAX_OPERANDS), without
// conversion to the common type. Vectors are broadcast to one shape. Numbers
// take the type of the traced operands. veclib_operators: if all operands are
// scalars, numbers must fit the type.
Elements veclib_operands(Ctx *cx, lua_State *L, int first, int n);
Elements veclib_operators(Ctx *cx, lua_State *L, int first, int n);
// Broadcasts both operands to one shape.
void veclib_join(Ctx *cx, Elements *a, Elements *b);
// Reports whether any of the n arguments from `first` is a vector or a traced
// value.
bool veclib_any_traced(lua_State *L, int first, int n);
// Raises an argument error if the value is no vector.
Vector *veclib_check(lua_State *L, int idx);
// Returns the type in which float functions of t compute. It is also the type
// of a quotient (`/`).
DType veclib_float(DType t);

// Maps f over the operands, each converted to type `in`, and pushes the result;
// returns 1.
typedef Ref Apply(Ctx *cx, int how, const Ref *a);
int veclib_map(lua_State *L, Ctx *cx, const Elements *a, DType in, Apply *f,
               int how);
// Pushes a->count values of one type in a's shape; returns 1.
int veclib_result(lua_State *L, const Elements *a, DType type, const Ref *r);
Ref veclib_apply1(Ctx *cx, int how, const Ref *a);      // how is an Op
Ref veclib_apply2(Ctx *cx, int how, const Ref *a);
Ref veclib_apply_math(Ctx *cx, int how, const Ref *a);  // how is a MathFn

// max and min (op) of numbers, traced values and vectors.
int mathlib_pick(lua_State *L, int op);

#endif
// SPDX-License-Identifier: MIT
