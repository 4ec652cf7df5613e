// Register vectors for the faces: the userdata MT_VECTOR.
#ifndef CUTE_VECLIB_H
#define CUTE_VECLIB_H

#include "bind/tensorlib.h"

// An immutable list of traced values of one type with a shape, which they
// fill in colexicographic order. One block: the shape's words come last.
typedef struct Vector {
  uint32_t serial, born;  // as in TensorBox
  DType type;
  int64_t n;
  Tup shape;
  Ref r[];
} Vector;

// Copies r and shape. Result of the function being traced.
Vector *veclib_push(lua_State *L, DType type, Tup shape, const Ref *r,
                    int64_t n);
// NULL when it is none; an error when it cannot be used here.
Vector *veclib_test(lua_State *L, int idx);

// One operand of an element-wise function: a vector, or one value for all.
typedef struct Element {
  const Vector *v;
  Ref s;
} Element;

static inline Ref veclib_at(const Element *o, int64_t i) {
  return o->v ? o->v->r[i] : o->s;
}

enum { MAX_OPERANDS = 3 };
typedef struct Elements {
  Element o[MAX_OPERANDS];
  int n;
  const Vector *like;  // whose shape the result has; NULL: a scalar
  DType type;          // common type
} Elements;

// Arguments first .. first + n - 1 (n <= MAX_OPERANDS), not yet converted to
// the common type. Vectors must have one shape. Numbers take the type of the
// traced ones; those of operators have to fit it, where all are scalars.
Elements veclib_operands(Ctx *cx, lua_State *L, int first, int n);
Elements veclib_operators(Ctx *cx, lua_State *L, int first, int n);
void veclib_same_shape(Ctx *cx, const Vector *a, const Vector *b);
// Is any of the n arguments from `first` a vector or a traced value?
bool veclib_any_traced(lua_State *L, int first, int n);
Vector *veclib_check(lua_State *L, int idx);  // or an argument error
// The type that float functions of t compute in, and what `/` gives.
DType veclib_float(DType t);

// Pushes f over the operands, each brought to type `in` first; returns 1.
typedef Ref Apply(Ctx *cx, int how, const Ref *a);
int veclib_map(lua_State *L, Ctx *cx, const Elements *a, DType in, Apply *f,
               int how);
Ref veclib_apply1(Ctx *cx, int how, const Ref *a);      // how: Op
Ref veclib_apply2(Ctx *cx, int how, const Ref *a);
Ref veclib_apply_math(Ctx *cx, int how, const Ref *a);  // how: MathFn

// max and min (op) of numbers, traced values and vectors.
int mathlib_pick(lua_State *L, int op);

#endif
