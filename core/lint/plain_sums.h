// Finds functions that only multiply and add elements of their arguments
// (plain_sums.c).
#ifndef CUTE_PLAIN_SUMS_H
#define CUTE_PLAIN_SUMS_H

#include "ir/ir.h"

// Describes a function with one output. The output contains sums or copies of
// the elements of one input, or sums of products of elements of two inputs.
// `out` and `in` are indices into Fn.arg.
typedef struct PlainSums {
  int32_t out, in[2];
  int n;            // number of inputs
  bool copies;      // whether the function only copies the elements
  bool scaled;      // whether a constant or a scalar argument scales the sums
  Ref store;        // the first instruction that stores to the output
  // narrowest: the narrowest float type in which the function adds elements.
  // rounded: the narrowest float type to which it converts elements.
  DType narrowest, rounded;
} PlainSums;

// Sets the inputs and the output in *s. Returns false if fn does not have one
// output and one or two inputs.
bool plain_sums_arguments(const Fn *fn, PlainSums *s);
// Reports whether fn only multiplies and adds elements, and describes fn in *s.
bool plain_sums(Ctx *cx, const Fn *fn, PlainSums *s);

#endif
// SPDX-License-Identifier: MIT
