// The userdata of register vectors (MT_VECTOR), for other bindings.
#ifndef CUTE_VECLIB_H
#define CUTE_VECLIB_H

#include "bind/tensorlib.h"

// The userdata of a vector: an immutable list of n traced values of one type.
// `shape` arranges them in colexicographic order. Its words follow r in memory.
typedef struct Vector {
  // values of Fn.serial and Fn.births when the vector was created
  uint32_t serial, born;
  uint32_t src;           // line that created the vector: an index into Fn.src
  DType type;
  // for booleans: whether an operation has used the vector
  bool consumed;
  int64_t n;
  Tup shape;
  Ref r[];
} Vector;

// Pushes a vector of n values of the function being traced. Copies r and shape.
Vector *veclib_push(lua_State *L, DType type, Tup shape, const Ref *r,
                    int64_t n);
// Returns the vector at idx, or NULL if there is none. Raises an error if it
// cannot be used at this point of a trace.
Vector *veclib_test(lua_State *L, int idx);

// An operand of an element-wise function. r[i] is its value for element i of
// the result. If r is NULL, s is the value for all elements.
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
  Tup shape;      // shape of the result; NULL if it is a scalar
  int64_t count;  // number of elements of the result
  DType type;     // common type of the operands
} Elements;

// Reads n arguments from `first` on (n <= MAX_OPERANDS). Vectors are broadcast
// to one shape, and numbers take the type of the traced operands. Otherwise,
// types are not converted to the common type. veclib_operators also requires
// that numbers fit the type if all operands are scalars.
Elements veclib_operands(Ctx *cx, lua_State *L, int first, int n);
Elements veclib_operators(Ctx *cx, lua_State *L, int first, int n);
// Broadcasts the operands in a and b to one shape.
void veclib_join(Ctx *cx, Elements *a, Elements *b);
// Reports whether one of the n arguments from `first` on is a vector or a
// traced value.
bool veclib_any_traced(lua_State *L, int first, int n);
// Returns the vector at idx. Raises an argument error if there is none.
Vector *veclib_check(lua_State *L, int idx);
// Returns the type in which float functions and `/` compute with values of type
// t.
DType veclib_float(DType t);

// Applies f to each element of the operands, converted to type `in`, and pushes
// the result. f also receives `how`. Returns 1.
typedef Ref Apply(Ctx *cx, int how, const Ref *a);
int veclib_map(lua_State *L, Ctx *cx, const Elements *a, DType in, Apply *f,
               int how);
// Pushes the values r, one for each element of a's shape, as a vector. If a is
// scalar, pushes a scalar. Returns 1.
int veclib_result(lua_State *L, const Elements *a, DType type, const Ref *r);
Ref veclib_apply1(Ctx *cx, int how, const Ref *a);      // `how` is an Op
Ref veclib_apply2(Ctx *cx, int how, const Ref *a);
Ref veclib_apply_math(Ctx *cx, int how, const Ref *a);  // `how` is a MathFn

// Implements max and min (op is an Op) of numbers, traced values and vectors.
int mathlib_pick(lua_State *L, int op);

#endif
// SPDX-License-Identifier: MIT
