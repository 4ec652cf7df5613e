// Register vectors for the faces: the userdata MT_VECTOR.
#ifndef CUTE_VECLIB_H
#define CUTE_VECLIB_H

#include "bind/tensorlib.h"

// An immutable list of traced values of one type with a shape, which they
// fill in colexicographic order. One block: the shape's words come last.
typedef struct Vector {
  uint32_t serial, born;  // as in TensorBox
  uint32_t src;           // where it was made: an index into Fn.src
  DType type;
  bool consumed;          // of booleans: did anything use it?
  int64_t n;
  Tup shape;
  Ref r[];
} Vector;

// Copies r and shape. Result of the function being traced.
Vector *veclib_push(lua_State *L, DType type, Tup shape, const Ref *r,
                    int64_t n);
// NULL when it is none; an error when it cannot be used here.
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
  Tup shape;      // of the result; NULL: a scalar
  int64_t count;  // its elements
  DType type;     // common type
} Elements;

// Arguments first .. first + n - 1 (n <= MAX_OPERANDS), not yet converted to
// the common type. Vectors are broadcast to one shape. Numbers take the type
// of the traced ones; those of operators have to fit it, where all are
// scalars.
Elements veclib_operands(Ctx *cx, lua_State *L, int first, int n);
Elements veclib_operators(Ctx *cx, lua_State *L, int first, int n);
// Broadcasts both to one shape.
void veclib_join(Ctx *cx, Elements *a, Elements *b);
// Is any of the n arguments from `first` a vector or a traced value?
bool veclib_any_traced(lua_State *L, int first, int n);
Vector *veclib_check(lua_State *L, int idx);  // or an argument error
// The type that float functions of t compute in, and what `/` gives.
DType veclib_float(DType t);

// Pushes f over the operands, each brought to type `in` first; returns 1.
typedef Ref Apply(Ctx *cx, int how, const Ref *a);
int veclib_map(lua_State *L, Ctx *cx, const Elements *a, DType in, Apply *f,
               int how);
// Pushes a->count values of one type as a's shape says; returns 1.
int veclib_result(lua_State *L, const Elements *a, DType type, const Ref *r);
Ref veclib_apply1(Ctx *cx, int how, const Ref *a);      // how: Op
Ref veclib_apply2(Ctx *cx, int how, const Ref *a);
Ref veclib_apply_math(Ctx *cx, int how, const Ref *a);  // how: MathFn

// max and min (op) of numbers, traced values and vectors.
int mathlib_pick(lua_State *L, int op);

#endif
