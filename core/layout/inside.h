// Shared by the files of core/layout only: flat arrays of modes, and the
// context of an operation's error messages.
#ifndef CUTE_LAYINNER_H
#define CUTE_LAYINNER_H

#include "layout/algebra.h"

// n unnested modes s[i]:d[i], in scratch.
typedef struct Flat {
  Dim *s, *d;
  int n;
} Flat;

typedef struct Mode {
  Dim s, d;
} Mode;

// The public operation in progress: its name and operands, for messages. With
// `quiet`, an inadmissible step sets `bad` instead of failing.
typedef struct Note {
  const char *op;
  const Layout *a;
  const Layout *bl;   // right operand: a layout
  const Tiler *bt;    // right operand: a tiler
  Tup bs;             // right operand: a tuple (or all three are NULL)
  int mode;           // number of the mode in a by-mode operation, or -1
  bool modes;         // whether the right layout's modes are the user's, so
                      // that messages name them
  bool quiet, bad;
  bool weak;          // whether it is a divide: extents that a tile does not
                      // divide are rounded up in each mode, as in CuTe
  bool gaps;          // whether a complement leaves some gaps unfilled
  bool trust;         // whether traced extents leave a condition undecided
  bool many;          // whether the failing step exceeds LOOK_MAX
} Note;

// Fails with `what`, then the operands; detail: a further line or NULL.
void note_fail(Ctx *cx, Note *nt, const char *what, const char *detail);
// Fails unless the shape has elements. All algebra that counts across several
// modes checks this first, so it never divides by an extent of 0.
bool note_elements(Ctx *cx, Note *nt, Tup shape);

// Conditions that cheap tests leave undecided are tested on up to this many
// elements; larger layouts are rejected.
#define LOOK_MAX ((int64_t)1 << 20)

Flat flat_of(Ctx *cx, Layout l);
Layout flat_layout(Ctx *cx, Flat f);     // one mode: a leaf
// x: also keep indices outside the domain (CuTe's coalesce_x).
Flat flat_coalesce(Ctx *cx, Flat f, bool x);
Flat flat_filter(Ctx *cx, Layout l);     // coalesced, without strides of 0
// Returns the modes' strides in the domain: prefix products. (inverse.c)
Dim *flat_prefix(Ctx *cx, Flat f);

Layout compose_plain(Ctx *cx, Note *nt, Layout a, Layout b);  // compose.c
// Returns the value of static modes at index i. Strides that are bases count as
// integer weights, so that sums can be compared.
int64_t flat_at(Flat f, int64_t i);
// Report whether n is known to be a multiple of by, and whether d is known to
// be positive (true for static d). (traced.c)
bool traced_divides(Ctx *cx, Dim by, Dim n);
bool traced_positive(Ctx *cx, Dim d);
// If nt trusts traced extents, makes the kernel assert that r is the result of
// the rule for a and b; the simulator checks this.
void traced_claim(Ctx *cx, Note *nt, TracedRule rule, Layout a, Layout b,
                  Layout r);
// Returns the right inverse of a plain layout's offsets; for bases 1:0.
Layout inverse_offsets(Ctx *cx, Layout l);
Layout compose_in(Ctx *cx, Note *nt, Layout a, Layout b);
Layout compose_xor(Ctx *cx, Layout a, Layout b);  // b is plain, or a or b has
                                                  // XORed strides
Layout inverse_xor(Ctx *cx, Note *nt, Layout l, bool left);
Layout complement_in(Ctx *cx, Note *nt, Layout l, Tup cotarget);
// complement_in for basis strides: each mode of the coordinates separately.
Layout complement_based(Ctx *cx, Note *nt, Layout l, Tup cotarget);
// Returns the codomain of l's complement in a product with t.
Tup product_room(Ctx *cx, Layout l, Layout t);

#endif
// SPDX-License-Identifier: MIT
