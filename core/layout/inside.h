// Declarations for the files of core/layout only: flat arrays of modes, and the
// context of error messages.
#ifndef CUTE_LAYINNER_H
#define CUTE_LAYINNER_H

#include "layout/algebra.h"

// A list of n modes s[i]:d[i] without nesting, in the scratch arena.
typedef struct Flat {
  Dim *s, *d;
  int n;
} Flat;

typedef struct Mode {
  Dim s, d;
} Mode;

// The public operation in progress and its operands, for messages. If `quiet`
// is set, an inadmissible step does not fail, but sets `bad`.
typedef struct Note {
  const char *op;
  const Layout *a;
  const Layout *bl;   // right operand if it is a layout
  const Tiler *bt;    // right operand if it is a tiler
  // right operand if it is a tuple. Without a right operand, bl, bt and bs are
  // NULL.
  Tup bs;
  int mode;  // for by-mode operations: index of the current mode; otherwise -1
  // whether messages may name modes of the right layout, because the user wrote
  // these modes
  bool modes;
  bool quiet, bad;
  // whether a division rounds up extents that the tile does not divide, mode by
  // mode, as in CuTe
  bool weak;
  bool gaps;          // whether a complement leaves gaps that no mode can fill
  // whether traced extents left a condition undecided, so that the kernel must
  // assert it
  bool trust;
  // whether the failing step had more than LOOK_MAX elements to check
  bool many;
} Note;

// Fails with the message `what` and the operands. detail: another line, or
// NULL.
void note_fail(Ctx *cx, Note *nt, const char *what, const char *detail);
// Checks that the shape has no extent of 0. If the shape has such an extent,
// fails or, with `quiet`, sets nt->bad and returns false. Operations that
// linearize several modes call this function first, so that they never divide
// by an extent of 0.
bool note_elements(Ctx *cx, Note *nt, Tup shape);

// If cheap tests do not decide a condition, up to this many elements are
// evaluated. Layouts with more elements are rejected.
#define LOOK_MAX ((int64_t)1 << 20)

Flat flat_of(Ctx *cx, Layout l);
Layout flat_layout(Ctx *cx, Flat f);     // converts a single mode to a leaf
// Coalesces modes. x: the last mode keeps its stride even if its extent is 1,
// so that indices beyond the domain evaluate as before (CuTe's coalesce_x).
Flat flat_coalesce(Ctx *cx, Flat f, bool x);
// Returns l's modes coalesced, without modes of stride 0.
Flat flat_filter(Ctx *cx, Layout l);
// Returns the index stride of each mode: the product of the extents before it
// (inverse.c).
Dim *flat_prefix(Ctx *cx, Flat f);

Layout compose_plain(Ctx *cx, Note *nt, Layout a, Layout b);  // compose.c
// Returns the value of static modes at index i. Replaces strides that are bases
// by integer weights (compose.c), so that sums can be compared.
int64_t flat_at(Flat f, int64_t i);
// traced_divides reports whether n is known to be a multiple of `by`.
// traced_positive reports whether d is known to be positive (true for a static
// d). (traced.c)
bool traced_divides(Ctx *cx, Dim by, Dim n);
bool traced_positive(Ctx *cx, Dim d);
// If nt->trust is set, appends to the kernel the assertion that r equals the
// layout that the rule computes from a and b. The simulator checks the
// assertion when the extents are known.
void traced_claim(Ctx *cx, Note *nt, TracedRule rule, Layout a, Layout b,
                  Layout r);
// Returns the right inverse of a plain layout with integer strides, or 1:0 if
// its strides are not integers.
Layout inverse_offsets(Ctx *cx, Layout l);
Layout compose_in(Ctx *cx, Note *nt, Layout a, Layout b);
// Composes a with plain layout b if a or b has XORed strides.
Layout compose_xor(Ctx *cx, Layout a, Layout b);
Layout inverse_xor(Ctx *cx, Note *nt, Layout l, bool left);
Layout complement_in(Ctx *cx, Note *nt, Layout l, Tup cotarget);
// Implements complement_in for strides that are bases: each mode of the
// coordinates has its own complement.
Layout complement_based(Ctx *cx, Note *nt, Layout l, Tup cotarget);
// Returns the codomain (cotarget) of the complement of l that a product of l
// with t uses.
Tup product_room(Ctx *cx, Layout l, Layout t);

#endif
// SPDX-License-Identifier: MIT
