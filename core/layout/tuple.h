// IntTuples, stored as words in preorder. Results are in cx->scratch.
//
// A leaf is one Dim. A tuple is a node word (rank, words, leaves) followed by
// its modes. `Tup` points to the first word of a (sub)tuple, so every mode of a
// tuple is itself a Tup, without a copy.
#ifndef CUTE_TUPLE_H
#define CUTE_TUPLE_H

#include "layout/dim.h"

typedef const Dim *Tup;
#define TUP_DEPTH_MAX 32    // maximum nesting
#define TUP_RANK_MAX 2047   // maximum number of modes of one tuple
#define TUP_LEAVES_MAX 16384

static inline bool tup_is_leaf(Tup t) { return dim_tag(*t) != TAG_TUP; }
static inline int tup_rank(Tup t) {        // number of modes; 1 for a leaf
  return tup_is_leaf(t) ? 1 : (int)t->tup.rank;
}
// number of words, including the node word
static inline size_t tup_words(Tup t) {
  return tup_is_leaf(t) ? 1 : t->tup.words;
}
static inline size_t tup_leaves(Tup t) {
  return tup_is_leaf(t) ? 1 : t->tup.leaves;
}
static inline Tup tup_first(Tup t) { return tup_is_leaf(t) ? t : t + 1; }
static inline Tup tup_next(Tup t) { return t + tup_words(t); }
Tup tup_get(Ctx *cx, Tup t, int i);  // fails with ERR_ARG if i is out of range
int tup_depth(Tup t);                      // returns 0 for a leaf
bool tup_has(Tup t, DimKind k);            // whether a leaf is of kind k
bool tup_static(Tup t);                    // whether no leaf is traced
bool tup_eq(Tup a, Tup b);  // whether nesting and leaves are equal

// Builds a tuple: start with `TupB b = {0};`, then call tupb_open, tupb_leaf,
// tupb_put and tupb_close. tupb_done requires exactly one leaf or one closed
// tuple. The words are in cx->scratch.
typedef struct TupB {
  Dim *w;
  size_t n, cap;
  size_t leaves;  // number of leaves appended so far
  int nopen;
  struct { uint32_t at, rank, leaves; } open[TUP_DEPTH_MAX + 1];
} TupB;
void tupb_open(Ctx *cx, TupB *b);
void tupb_leaf(Ctx *cx, TupB *b, Dim d);
void tupb_put(Ctx *cx, TupB *b, Tup t);  // appends a copy of t as the next mode
void tupb_close(Ctx *cx, TupB *b);
Tup tupb_done(Ctx *cx, TupB *b);

Tup tup_leaf(Ctx *cx, Dim d);              // returns the integer d as a tuple
Tup tup_int(Ctx *cx, int64_t v);
// returns the flat tuple (d0,d1,..)
Tup tup_of(Ctx *cx, const Dim *d, size_t n);
Tup tup_pack(Ctx *cx, const Tup *t, int n);  // returns the tuple (t0,t1,..)
// returns a tuple with the nesting of `shape` and the leaves leaf[0], leaf[1],
// ...
Tup tup_like(Ctx *cx, Tup shape, const Dim *leaf);
void tup_collect(Tup t, Dim *leaf);  // copies t's leaves to an array, in order
Tup tup_repeat_like(Ctx *cx, Tup profile, Dim d);

Tup tup_flatten(Ctx *cx, Tup t);           // returns leaf t unchanged
Tup tup_flatten_to_tuple(Ctx *cx, Tup t);
Tup tup_unflatten(Ctx *cx, Tup flat, Tup profile);
Tup tup_wrap(Ctx *cx, Tup t);
Tup tup_unwrap(Tup t);
Tup tup_reverse(Ctx *cx, Tup t);
Tup tup_group(Ctx *cx, Tup t, int b, int e);  // if e < 0, e is the rank of t
Tup tup_take(Ctx *cx, Tup t, int b, int e);
Tup tup_select(Ctx *cx, Tup t, const int *i, int n);
Tup tup_append(Ctx *cx, Tup t, Tup x);
Tup tup_prepend(Ctx *cx, Tup t, Tup x);
Tup tup_append_to(Ctx *cx, Tup t, int rank, Tup x);
Tup tup_prepend_to(Ctx *cx, Tup t, int rank, Tup x);
Tup tup_replace(Ctx *cx, Tup t, int i, Tup x);
Tup tup_remove(Ctx *cx, Tup t, int i);
Tup tup_insert(Ctx *cx, Tup t, int i, Tup x);
// Concatenates the modes of the tuples. A leaf is one mode.
Tup tup_cat(Ctx *cx, const Tup *t, int n);
Tup tup_zip(Ctx *cx, Tup t);               // ((a,b),(c,d)) -> ((a,c),(b,d))
Tup tup_zip2_by(Ctx *cx, Tup t, Tup guide);
// keeps the entries of t where coord has `_`
Tup tup_slice(Ctx *cx, Tup coord, Tup t);
// keeps the entries of t where coord has no `_`
Tup tup_dice(Ctx *cx, Tup coord, Tup t);

// ---- IntTuple arithmetic (tuplemath.c) ----
Dim tup_size(Ctx *cx, Tup t);              // returns the product of the leaves
// Reports whether t has a static leaf of 0. A layout of shape t then has no
// elements.
bool tup_empty(Tup t);
// Fails if `shape` has no elements (tup_empty). Operations that need elements
// call this.
void tup_need_elements(Ctx *cx, const char *op, Tup shape);
Tup tup_shape(Ctx *cx, Tup t);  // replaces layouts in t by their shapes
// returns the tuple of the modes' sizes; for an integer, a 1-tuple
Tup tup_product_each(Ctx *cx, Tup t);
// Returns a shape with fewer extents and the same number of elements: merges
// adjacent extents that are both static or both traced.
Tup tup_coalesce(Ctx *cx, Tup t);
Tup tup_product_like(Ctx *cx, Tup t, Tup guide);
Dim tup_sum(Ctx *cx, Tup t);
Dim tup_min(Ctx *cx, Tup t);
Dim tup_max(Ctx *cx, Tup t);
Dim tup_gcd(Ctx *cx, Tup t);
bool tup_congruent(Tup a, Tup b);
bool tup_weakly_congruent(Tup a, Tup b);
bool tup_compatible(Ctx *cx, Tup a, Tup b);
bool tup_weakly_compatible(Ctx *cx, Tup a, Tup b);
bool tup_evenly_divides(Ctx *cx, Tup shape, Tup tiler);
// Returns the shape of an element-wise operation on shapes a and b, as in the
// Python DSL, or NULL if the shapes do not match. Missing trailing modes are 1,
// and 1 matches any mode. An integer also matches a tuple with as many
// elements.
Tup tup_broadcast(Ctx *cx, Tup a, Tup b);
Tup tup_shape_div(Ctx *cx, Tup a, Tup b);
Tup tup_ceil_div(Ctx *cx, Tup a, Tup b);
Tup tup_round_up(Ctx *cx, Tup a, Tup b);
Tup tup_elem_scale(Ctx *cx, Tup a, Tup b);
Dim tup_inner_product(Ctx *cx, Tup a, Tup b);
Tup tup_filter_zeros(Ctx *cx, Tup guide, Tup t);
// Arithmetic tuples: element-wise operations in which missing entries are 0.
Tup tup_add(Ctx *cx, Tup a, Tup b);
// Returns the strides of the identity layout of shape t: (1@0,(1@0@1,..)).
Tup tup_basis_like(Ctx *cx, Tup t);
// Returns the sum of the terms. A sum of bases is a tuple. Integers among bases
// must be 0.
Tup tup_from_terms(Ctx *cx, const Dim *term, size_t n);
// The order of a comparison: lexicographic, colexicographic, or element-wise
// (all entries less).
typedef enum TupOrder { TUP_LEX, TUP_COLEX, TUP_ELEM } TupOrder;
Dim tup_less(Ctx *cx, TupOrder o, Tup a, Tup b);
Dim tup_same(Ctx *cx, Tup a, Tup b);
// if `stride` is NULL, the strides are compact
Tup tup_crd2idx(Ctx *cx, Tup c, Tup shape, const Dim *stride);
// if `stride` is NULL, the strides are compact
Tup tup_idx2crd(Ctx *cx, Tup idx, Tup shape, Tup stride);
Tup tup_crd2crd(Ctx *cx, Tup c, Tup src, Tup dst);
// Returns compact strides. `first` is the stride of the first mode, or NULL for
// 1. If `right` is set, the last mode gets this stride instead.
Tup tup_compact(Ctx *cx, Tup shape, Tup first, bool right);
// Returns compact strides of `shape`. The mode with the smallest number in
// `order` gets the smallest stride. If `order` is NULL, the strides grow from
// left to right.
Tup tup_compact_order(Ctx *cx, Tup shape, Tup order);
// Reports whether two modes with more than one element have equal numbers in
// `order`.
bool tup_order_ties(Ctx *cx, Tup shape, Tup order);
// Returns the coordinate that follows `coord` in colexicographic order of the
// coordinates of `shape`. After the last coordinate, returns an end coordinate:
// its last leaf is the extent and its other leaves are 0.
Tup tup_increment(Ctx *cx, Tup coord, Tup shape);

// ---- in CuTe notation (notation.c) ----
void tup_print(Ctx *cx, Tup t, Buf *out);
void dim_print(Ctx *cx, Dim d, Buf *out);
const char *tup_text(Ctx *cx, Tup t);      // in cx->scratch, for messages

#endif
// SPDX-License-Identifier: MIT
