// Dim, IntTuple, Swizzle, Layout. The algebra is written once, for
// static and for traced (dynamic) extents: arithmetic on Dims folds when
// both are static and appends to the function being traced otherwise.
//
// All results live in cx->scratch unless said otherwise; a face copies what
// it keeps (layout_bytes, layout_copy).
#ifndef CUTE_LAYOUT_H
#define CUTE_LAYOUT_H

#include "ir/ir.h"

// ---- Dim: one word (dim.c) ----
// The top four bits: 0 or -1 for a static integer v with |v| < 2^60, else a
// tag. Use the functions, not the encoding.
typedef struct Dim { int64_t w; } Dim;
typedef struct Layout Layout;
typedef enum DimKind {
  DIM_INT,    // static integer
  DIM_DYN,    // traced value: a Ref of the Fn being traced, which has its Fact
  DIM_ANY,    // `_`
  DIM_BASIS,  // v@j@i: v in mode j of mode i; v static (32 bits) or a Ref; up
              // to 4 levels, < 64
  DIM_TUP,    // a tuple node of an IntTuple (below)
  DIM_XOR,    // a stride of the field of two elements: F9
  DIM_LAYOUT  // a layout as leaf of a tiler, of which only modes are moved
} DimKind;
#define DIM_MAX (((int64_t)1 << 60) - 1)
#define DIM_LEVELS 4

static inline bool dim_static(Dim d) {     // a static integer
  return (uint64_t)d.w + (1ull << 60) < (1ull << 61);
}
static inline int64_t dim_value(Dim d) { return d.w; }  // of a static one
static inline bool dim_is(Dim d, int64_t v) { return d.w == v; }
static inline bool dim_eq(Dim a, Dim b) { return a.w == b.w; }  // structural
DimKind dim_kind(Dim d);
Dim dim_int(Ctx *cx, int64_t v);           // ERR_OVERFLOW beyond DIM_MAX
Dim dim_ref(Ref r);
// The same, but an IR constant becomes a static integer.
Dim dim_fold(Ctx *cx, Ref r);
Dim dim_any(void);
Dim dim_basis(Ctx *cx, Dim value, const int *path, int n);
Dim dim_layout(const Layout *l);    // l stays the caller's
const Layout *dim_getlayout(Dim d);  // of a DIM_LAYOUT, else NULL
// A stride whose multiples are carry-less products and add up by XOR; v >= 0,
// 0 being the integer.
Dim dim_xor(Ctx *cx, int64_t v);
int64_t dim_xor_value(Dim d);              // of a DIM_XOR or static integer
Dim dim_bit_xor(Ctx *cx, Dim a, Dim b);    // of integers
Dim dim_basis_value(Dim d);
int dim_basis_path(Dim d, int path[DIM_LEVELS]);  // returns the level count
Ref dim_asref(Ctx *cx, Dim d);             // as IR value (constants too)
Ref dim_getref(Dim d);                     // of a DIM_DYN (or its basis)
static inline bool dim_dynamic(Dim d) {    // DIM_DYN or a basis of one
  return (d.w >> 60) == 2 || (d.w >> 60) == 5;
}
// Known divisibility: |v| of a static one (0 for 0), the Fact of others.
int64_t dim_div(Ctx *cx, Dim d);
Dim dim_add(Ctx *cx, Dim a, Dim b);        // bases: same path only
Dim dim_sub(Ctx *cx, Dim a, Dim b);
Dim dim_neg(Ctx *cx, Dim a);
Dim dim_abs(Ctx *cx, Dim a);
Dim dim_mul(Ctx *cx, Dim a, Dim b);        // scalar * basis allowed
Dim dim_quo(Ctx *cx, Dim a, Dim b);        // floor division
Dim dim_rem(Ctx *cx, Dim a, Dim b);
// Toward zero, as C++ divides: what splits a coordinate. Coordinates below 0
// mirror those above then: a layout l has l(-i) = -l(i).
Dim dim_tquo(Ctx *cx, Dim a, Dim b);
Dim dim_trem(Ctx *cx, Dim a, Dim b);
Dim dim_ceil_div(Ctx *cx, Dim a, Dim b);
Dim dim_min(Ctx *cx, Dim a, Dim b);
Dim dim_max(Ctx *cx, Dim a, Dim b);
Dim dim_gcd(Ctx *cx, Dim a, Dim b);        // static ones; else what is known
// Truth as a Dim: static 0 or 1, or a traced predicate.
Dim dim_lt(Ctx *cx, Dim a, Dim b);
Dim dim_same(Ctx *cx, Dim a, Dim b);       // equal in value
Dim dim_and(Ctx *cx, Dim a, Dim b);
Dim dim_or(Ctx *cx, Dim a, Dim b);
Dim dim_not(Ctx *cx, Dim a);
Dim dim_sel(Ctx *cx, Dim p, Dim a, Dim b);  // p ? a : b

// ---- IntTuple: words in preorder (tuple.c) ----
// A leaf is one Dim. A tuple is a node word (rank, words, leaves) followed
// by its modes. `Tup` points at the first word of a (sub)tuple, so every
// mode of a tuple is itself a Tup, in place.
typedef const Dim *Tup;
#define TUP_DEPTH_MAX 32    // nesting
#define TUP_RANK_MAX 2047   // modes of one tuple
#define TUP_LEAVES_MAX 16384

// The node word: tag 1, rank (12 bits), leaves (24), words (24).
static inline bool tup_is_leaf(Tup t) { return (t->w >> 60) != 1; }
static inline int tup_rank(Tup t) {        // of a leaf: 1
  return tup_is_leaf(t) ? 1 : (int)((uint64_t)t->w >> 48 & 0xfff);
}
static inline size_t tup_words(Tup t) {    // words taken, node included
  return tup_is_leaf(t) ? 1 : (size_t)((uint64_t)t->w & 0xffffff);
}
static inline size_t tup_leaves(Tup t) {
  return tup_is_leaf(t) ? 1 : (size_t)((uint64_t)t->w >> 24 & 0xffffff);
}
static inline Tup tup_first(Tup t) { return tup_is_leaf(t) ? t : t + 1; }
static inline Tup tup_next(Tup t) { return t + tup_words(t); }
Tup tup_get(Ctx *cx, Tup t, int i);        // ERR_ARG when out of range
int tup_depth(Tup t);                      // of a leaf: 0
bool tup_has(Tup t, DimKind k);            // has a leaf of this kind
bool tup_static(Tup t);                    // nothing traced inside
bool tup_eq(Tup a, Tup b);                 // structurally equal

// Builder: `TupB b = {0};` then open / leaf / put / close, and done, which
// wants exactly one leaf or one closed tuple. Lives in cx->scratch.
typedef struct TupB {
  Dim *w;
  size_t n, cap;
  size_t leaves;                           // so far
  int nopen;
  struct { uint32_t at, rank, leaves; } open[TUP_DEPTH_MAX + 1];
} TupB;
void tupb_open(Ctx *cx, TupB *b);
void tupb_leaf(Ctx *cx, TupB *b, Dim d);
void tupb_put(Ctx *cx, TupB *b, Tup t);    // a copy of t as next mode
void tupb_close(Ctx *cx, TupB *b);
Tup tupb_done(Ctx *cx, TupB *b);

Tup tup_leaf(Ctx *cx, Dim d);              // the integer d
Tup tup_int(Ctx *cx, int64_t v);
Tup tup_of(Ctx *cx, const Dim *d, size_t n);      // flat tuple (d0,d1,..)
Tup tup_pack(Ctx *cx, const Tup *t, int n);       // (t0,t1,..)
Tup tup_like(Ctx *cx, Tup shape, const Dim *leaf);  // shape's profile
void tup_collect(Tup t, Dim *leaf);        // the leaves, in order
Tup tup_repeat_like(Ctx *cx, Tup profile, Dim d);

Tup tup_flatten(Ctx *cx, Tup t);           // a leaf stays a leaf
Tup tup_flatten_to_tuple(Ctx *cx, Tup t);
Tup tup_unflatten(Ctx *cx, Tup flat, Tup profile);
Tup tup_wrap(Ctx *cx, Tup t);
Tup tup_unwrap(Tup t);
Tup tup_reverse(Ctx *cx, Tup t);
Tup tup_group(Ctx *cx, Tup t, int b, int e);      // e < 0: to the end
Tup tup_take(Ctx *cx, Tup t, int b, int e);
Tup tup_select(Ctx *cx, Tup t, const int *i, int n);
Tup tup_append(Ctx *cx, Tup t, Tup x);
Tup tup_prepend(Ctx *cx, Tup t, Tup x);
Tup tup_append_to(Ctx *cx, Tup t, int rank, Tup x);
Tup tup_prepend_to(Ctx *cx, Tup t, int rank, Tup x);
Tup tup_replace(Ctx *cx, Tup t, int i, Tup x);
Tup tup_remove(Ctx *cx, Tup t, int i);
Tup tup_insert(Ctx *cx, Tup t, int i, Tup x);
Tup tup_cat(Ctx *cx, const Tup *t, int n);  // modes of all, leaves as modes
Tup tup_zip(Ctx *cx, Tup t);               // ((a,b),(c,d)) -> ((a,c),(b,d))
Tup tup_zip2_by(Ctx *cx, Tup t, Tup guide);
Tup tup_slice(Ctx *cx, Tup coord, Tup t);  // entries paired with `_`
Tup tup_dice(Ctx *cx, Tup coord, Tup t);   // the others

// ---- IntTuple arithmetic (tuplemath.c) ----
Dim tup_size(Ctx *cx, Tup t);              // product of the leaves
Tup tup_shape(Ctx *cx, Tup t);             // layouts become their shapes
Tup tup_product_each(Ctx *cx, Tup t);      // of an integer: (integer)
// The shape with the fewest extents: neighbours that are both static, or both
// traced, become one.
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
Tup tup_shape_div(Ctx *cx, Tup a, Tup b);
Tup tup_ceil_div(Ctx *cx, Tup a, Tup b);
Tup tup_round_up(Ctx *cx, Tup a, Tup b);
Tup tup_elem_scale(Ctx *cx, Tup a, Tup b);
Dim tup_inner_product(Ctx *cx, Tup a, Tup b);
Tup tup_filter_zeros(Ctx *cx, Tup guide, Tup t);
// Arithmetic tuples: element-wise, missing entries count as 0.
Tup tup_add(Ctx *cx, Tup a, Tup b);
Tup tup_scale(Ctx *cx, Tup a, Dim s);
Tup tup_basis_like(Ctx *cx, Tup t);        // (1@0,(1@0@1,..)): identity
// Leaves that are bases become the tuple that they sum up to; scalars must
// be 0 then. Without bases: the sum.
Tup tup_from_terms(Ctx *cx, const Dim *term, size_t n);
// Comparisons; which is lex, colex or element-wise.
typedef enum TupOrder { TUP_LEX, TUP_COLEX, TUP_ELEM } TupOrder;
Dim tup_less(Ctx *cx, TupOrder o, Tup a, Tup b);
Dim tup_same(Ctx *cx, Tup a, Tup b);
Tup tup_crd2idx(Ctx *cx, Tup c, Tup shape, const Dim *stride);  // NULL: compact
Tup tup_idx2crd(Ctx *cx, Tup idx, Tup shape, Tup stride);       // NULL: compact
Tup tup_crd2crd(Ctx *cx, Tup c, Tup src, Tup dst);
// first: where to begin; NULL: 1
Tup tup_compact(Ctx *cx, Tup shape, Tup first, bool right);
Tup tup_compact_order(Ctx *cx, Tup shape, Tup order);  // NULL: left to right
// The next coordinate of shape in colexicographic order; after the last one
// the end, where the last leaf is its extent and the others are 0.
Tup tup_increment(Ctx *cx, Tup coord, Tup shape);

// ---- Layout (layout.c) ----
typedef struct Swizzle { int8_t b, m, s; } Swizzle;  // Sw<b,m,s>

// shape:stride, the strides being one Dim per leaf of the shape, in order
// (congruence holds by construction). The values of a composed layout go on
// through a function, which may lead to a further one:
// value = outer(offset + shape:stride(c)).
struct Layout {
  Tup shape;
  const Dim *stride;
  Dim offset;                 // composed only, else 0
  const struct Outer *outer;  // NULL: a plain layout
};

// The left side of a composed layout: a swizzle, or a layout. The offset and
// the outer function of `l` say where the values go on: Sw o 3 o A o 2 o B is
// the layout B, offset 2, whose outer is A, offset 3, whose outer is Sw.
typedef struct Outer {
  enum { OUTER_SWIZZLE, OUTER_LAYOUT } kind;
  Swizzle sw;
  Layout l;                   // of a swizzle: 1:0
} Outer;

// The layouts that values go through, from the inside out: l itself first.
static inline const Layout *layout_next(const Layout *l) {
  return l->outer ? &l->outer->l : NULL;
}
// The swizzle of a layout that goes through one swizzle alone, else NULL.
static inline const Swizzle *layout_swizzle(Layout l) {
  const Outer *f = l.outer;
  return f && f->kind == OUTER_SWIZZLE && !f->l.outer ? &f->sw : NULL;
}

// Functions have CuTe's names with the prefix layout_. Those that take a
// profile (`by`) work on the sub-layouts at its terminals.
Layout layout_make(Ctx *cx, Tup shape, Tup stride);   // congruent or fails
Layout layout_leaf(Ctx *cx, Dim shape, Dim stride);   // s:d
Layout layout_compact(Ctx *cx, Tup shape);            // LayoutLeft
Layout layout_compact_right(Ctx *cx, Tup shape);      // LayoutRight
Layout layout_ordered(Ctx *cx, Tup shape, Tup order); // make_ordered_layout;
                                           // order NULL: LayoutLeft
Layout layout_like(Ctx *cx, Layout l);                // make_layout_like
Layout layout_fragment_like(Ctx *cx, Layout l);       // make_fragment_like
Layout layout_identity(Ctx *cx, Tup shape);
Layout layout_concat(Ctx *cx, const Layout *l, int n);  // plain ones
Tup layout_stride(Ctx *cx, Layout l);                 // as an IntTuple
Layout layout_inner(Layout l);                        // the plain right side
Layout layout_outer(Layout l, Layout like);  // plain l under like's outer
bool layout_static(Layout l);                         // nothing traced
bool layout_has_basis(Layout l);
bool layout_eq(Layout a, Layout b);                   // structurally
bool layout_equals(Ctx *cx, Layout a, Layout b);      // as functions, static

Layout layout_mode(Ctx *cx, Layout l, int i);         // get
int layout_rank(Layout l);
int layout_depth(Layout l);
Dim layout_size(Ctx *cx, Layout l);
Tup layout_coshape(Ctx *cx, Layout l);
Dim layout_cosize(Ctx *cx, Layout l);
// Elements that memory for l must have from its origin on, where values are
// at least 0.
Dim layout_reach(Ctx *cx, Layout l);
// How far the values of negative strides go below 0; 0 without any.
Dim layout_below(Ctx *cx, Layout l);
Layout layout_take(Ctx *cx, Layout l, int b, int e);
Layout layout_select(Ctx *cx, Layout l, const int *i, int n);
Layout layout_group(Ctx *cx, Layout l, int b, int e);
Layout layout_append(Ctx *cx, Layout l, Layout x);
Layout layout_prepend(Ctx *cx, Layout l, Layout x);
Layout layout_append_to(Ctx *cx, Layout l, int rank, Layout x);
Layout layout_prepend_to(Ctx *cx, Layout l, int rank, Layout x);
Layout layout_replace(Ctx *cx, Layout l, int i, Layout x);
Layout layout_flatten(Ctx *cx, Layout l);
Layout layout_unflatten(Ctx *cx, Layout l, Tup profile);
Layout layout_zip(Ctx *cx, Layout l);
Layout layout_zip_of(Ctx *cx, const Layout *l, int n);
Layout layout_coalesce(Ctx *cx, Layout l);
Layout layout_coalesce_by(Ctx *cx, Layout l, Tup by);  // by NULL: plain
Layout layout_filter_zeros(Ctx *cx, Layout l, Tup guide);  // NULL: strides
Layout layout_filter(Ctx *cx, Layout l);
Layout layout_filter_by(Ctx *cx, Layout l, Tup by);

// Offset of a coordinate (1-D, flat or hierarchical).
// Fails for basis strides: layout_eval_tup gives their coordinate tuple.
Dim layout_eval(Ctx *cx, Layout l, Tup coord);
Dim layout_eval_at(Ctx *cx, Layout l, Dim i);          // 1-D coordinate
Tup layout_eval_tup(Ctx *cx, Layout l, Tup coord);
// Slice by a coordinate that may hold `_`: the part that stays, and the
// offset of the part that went. Of a composed layout that goes into the
// result's own offset, but for what may leave a swizzle.
Layout layout_slice(Ctx *cx, Layout l, Tup coord, Dim *offset);
Layout layout_slice_tup(Ctx *cx, Layout l, Tup coord, Tup *offset);
Layout layout_dice(Ctx *cx, Layout l, Tup coord);
Layout layout_domain_offset(Ctx *cx, Layout l, Tup coord, Tup *offset);
// get_hier_coord and its kin: the coordinate whose offset is x, for layouts
// whose strides are compact in some order.
Tup layout_hier_coord(Ctx *cx, Layout l, Tup x);
Tup layout_flat_coord(Ctx *cx, Layout l, Tup x);
Dim layout_1d_coord(Ctx *cx, Layout l, Tup x);

// ---- the algebra (algebra.c, divide.c) ----
// What may stand on the right of a composition, divide or product: `_`, a
// layout (an integer n is n:1), or a tuple of such, applied mode by mode.
typedef struct Tiler {
  enum { TILER_ANY, TILER_LAYOUT, TILER_TUPLE } kind;
  int n;
  const struct Tiler *mode;  // TILER_TUPLE: n of them
  Layout l;                  // TILER_LAYOUT
  bool extent;               // l is n:1, from the integer n
} Tiler;
Tiler tiler_layout(Layout l);
Tiler tiler_tup(Ctx *cx, Tup t);           // by-mode shape tiler
void tiler_print(Ctx *cx, Tiler t, Buf *out);

Layout layout_compose(Ctx *cx, Layout a, Layout b);
Layout layout_compose_tiler(Ctx *cx, Layout a, Tiler b);
Layout layout_compose_swizzle(Ctx *cx, Layout a, Swizzle b);  // a o Sw
Layout layout_with_shape(Ctx *cx, Layout l, Tup shape);
Layout layout_complement(Ctx *cx, Layout l, Dim cotarget);
Layout layout_complement_shape(Ctx *cx, Layout l, Tup cotarget);  // NULL:
                                                           // its cosize
Layout layout_right_inverse(Ctx *cx, Layout l);
Layout layout_left_inverse(Ctx *cx, Layout l);
Layout layout_nullspace(Ctx *cx, Layout l);
Layout layout_max_common_layout(Ctx *cx, Layout a, Layout b);
int64_t layout_max_common_vector(Ctx *cx, Layout a, Layout b);
int64_t layout_max_alignment(Ctx *cx, Layout l);
Layout layout_domain_distribute(Ctx *cx, Tup shape, int64_t n);
Layout layout_logical_divide(Ctx *cx, Layout l, Tiler t);
Layout layout_zipped_divide(Ctx *cx, Layout l, Tiler t);
Layout layout_tiled_divide(Ctx *cx, Layout l, Tiler t);
Layout layout_flat_divide(Ctx *cx, Layout l, Tiler t);
Layout layout_logical_product(Ctx *cx, Layout l, Tiler t);
Layout layout_zipped_product(Ctx *cx, Layout l, Tiler t);
Layout layout_tiled_product(Ctx *cx, Layout l, Tiler t);
Layout layout_flat_product(Ctx *cx, Layout l, Tiler t);
Layout layout_blocked_product(Ctx *cx, Layout l, Layout t);
Layout layout_raked_product(Ctx *cx, Layout l, Layout t);
Layout layout_tile_unzip(Ctx *cx, Layout l, Tiler t);
Layout layout_tile_to_shape(Ctx *cx, Layout block, Tup shape, Tup order);
                                           // order NULL: LayoutLeft
Tup layout_ceil_div(Ctx *cx, Tup shape, Tiler t);
Layout layout_upcast(Ctx *cx, Layout l, int64_t n);
Layout layout_downcast(Ctx *cx, Layout l, int64_t n);
Layout layout_recast(Ctx *cx, Layout l, int64_t old_bits, int64_t new_bits);
// make_layout_tv(thr, val): *tiler gets the tile shape, the result is
// (thread,value) -> coordinate in the tile.
Layout layout_tv(Ctx *cx, Layout thr, Layout val, Tup *tiler);

// ---- XORed strides (xor.c) ----
bool layout_has_xor(Layout l);             // of its right side
// The same function with integers as strides of the right side, which then
// goes through what was the right side.
Layout layout_linear(Ctx *cx, Layout l);

// ---- domains and codomains (domain.c) ----
Tup layout_coprofile(Ctx *cx, Layout l);   // of zeros, as l's values are
// The factors by which both shapes count, in order, at the indices where they
// do: shape (s0,s1,..), strides those indices. (1):(0) without any.
Layout layout_greatest_common_domain(Ctx *cx, Tup a, Tup b);
Layout layout_add(Ctx *cx, Layout a, Layout b);  // a(i) + b(i)

// ---- swizzles (swizzle.c) ----
#define SWIZZLE_NONE ((Swizzle){0, 4, 3})
Swizzle swizzle_make(Ctx *cx, int64_t b, int64_t m, int64_t s);
Swizzle swizzle_from_masks(Ctx *cx, int64_t yyy, int64_t zzz);
bool swizzle_test_masks(int64_t yyy, int64_t zzz, Swizzle *sw);
int64_t swizzle_yyy(Swizzle sw);           // bits read
int64_t swizzle_zzz(Swizzle sw);           // bits changed
int64_t swizzle_bits(Swizzle sw, int64_t x);  // sw(x)
// sw(x) for a static or traced x, folding what is known of x's bits.
Dim swizzle_apply(Ctx *cx, Swizzle sw, Dim x);
Swizzle swizzle_compose(Ctx *cx, Swizzle a, Swizzle b);
Swizzle swizzle_upcast(Ctx *cx, Swizzle sw, int64_t n);
Swizzle swizzle_downcast(Ctx *cx, Swizzle sw, int64_t n);
// For layouts that go through one swizzle:
// What layout_slice_composed leaves of l: rest, at x of l's right side.
Layout layout_slice_swizzled(Ctx *cx, Layout l, Layout rest, Dim x,
                             Tup *offset);
Layout layout_product_swizzled(Ctx *cx, Layout l, Layout tiler);

// ---- composed layouts (composed.c) ----
// f o offset o l; the identity swizzle with offset 0 gives l.
Layout layout_swizzled(Ctx *cx, Swizzle sw, Dim offset, Layout l);
Layout layout_after_swizzle(Ctx *cx, Swizzle sw, Dim offset, Layout l);
                                           // the same, whatever sw
Layout layout_composed(Ctx *cx, Layout a, Dim offset, Layout l);
// l seen through what like goes through: its outer function and offset.
Layout layout_seen_through(Ctx *cx, Layout l, Layout like);
// What becomes of x, a value of l's right side.
Tup layout_through(Ctx *cx, Layout l, Tup x);
Dim layout_through_dim(Ctx *cx, Layout l, Dim x);
Layout layout_slice_composed(Ctx *cx, Layout l, Tup coord, Tup *offset);
// The function that values go through last: *rest is l without it (and
// without the offset before it).
const Outer *layout_last(Ctx *cx, Layout l, Layout *rest);
// A power of two: runs of so many values, aligned to it, stay runs (2^24 of a
// plain layout). Traced numbers count by what is known of their divisors.
int64_t layout_grain(Ctx *cx, Layout l);
// The least and the largest value of a static layout, by looking at all of
// them (ERR_LIMIT beyond 2^20).
void layout_range(Ctx *cx, Layout l, int64_t *lo, int64_t *hi);
// No value of a static layout is beyond this in magnitude.
int64_t layout_bound(Ctx *cx, Layout l);

// ---- text (notation.c) ----
// A value in CuTe notation.
typedef struct Notation {
  enum { NOTE_TUP, NOTE_LAYOUT, NOTE_TILER, NOTE_SWIZZLE } kind;
  Tup t;
  Layout l;
  Tiler tiler;       // a tuple with a layout inside
  Swizzle sw;
} Notation;
Notation note_parse(Ctx *cx, const char *s, size_t n);
Layout layout_parse(Ctx *cx, const char *s, size_t n);
Tup tup_parse(Ctx *cx, const char *s, size_t n);
void layout_print(Ctx *cx, Layout l, Buf *out);
void tup_print(Ctx *cx, Tup t, Buf *out);
void dim_print(Ctx *cx, Dim d, Buf *out);
// The same as NUL-terminated text in scratch, for messages.
const char *layout_text(Ctx *cx, Layout l);
const char *tup_text(Ctx *cx, Tup t);
const char *tiler_text(Ctx *cx, Tiler t);
// Tells a step to the listener of cute.explain, if there is one. Callers
// test explain_on first, so that steps cost nothing otherwise.
static inline Buf *explain_on(const Ctx *cx) {
  return cx->work ? cx->work->steps : NULL;
}
static inline void explain_to(Ctx *cx, Buf *b) { cx->work->steps = b; }
void explain_say(Ctx *cx, const char *fmt, ...) PRINTF_LIKE(2, 3);

// ---- storage ----
// Words of a layout as one block (header, shape words, strides): size, and
// copy into `mem` (8-aligned), returning the layout that lives there.
size_t layout_bytes(Layout l);
Layout layout_copy(void *mem, Layout l);

#endif
