// Shared by the files of layouts and their algebra only: flat mode arrays and
// the note of the operation that a failure is told under.
#ifndef CUTE_LAYINNER_H
#define CUTE_LAYINNER_H

#include "layout/algebra.h"

// n modes s[i]:d[i] without nesting, in scratch.
typedef struct Flat {
  Dim *s, *d;
  int n;
} Flat;

typedef struct Mode {
  Dim s, d;
} Mode;

// The public operation under way: its name and operands, for messages. With
// `quiet` an inadmissible step sets `bad` instead of failing.
typedef struct Note {
  const char *op;
  const Layout *a;
  const Layout *bl;   // right operand: a layout,
  const Tiler *bt;    // a tiler,
  Tup bs;             // or a tuple (or all NULL)
  int mode;           // mode of a by-mode operation, or -1
  bool modes;         // the right layout's modes are the user's: name them
  bool quiet, bad;
  bool weak;          // a divide: extents that a tile does not divide are
                      // rounded up mode by mode, as in CuTe
  bool gaps;          // a complement does not fill all gaps
  bool trust;         // set where traced extents leave a condition open
  bool many;          // the step that fails is beyond LOOK_MAX
} Note;

// Fails with what, then the operands; detail: a further line or NULL.
void note_fail(Ctx *cx, Note *nt, const char *what, const char *detail);
// Has a shape elements? Else it fails so. The whole algebra that counts through
// several modes asks this, and divides by no extent of 0.
bool note_elements(Ctx *cx, Note *nt, Tup shape);

// What cheap conditions do not decide is decided by looking at so many
// elements, and refused beyond.
#define LOOK_MAX ((int64_t)1 << 20)

Flat flat_of(Ctx *cx, Layout l);
Layout flat_layout(Ctx *cx, Flat f);     // one mode: a leaf
// x: keep what lies outside the domain too (CuTe's coalesce_x).
Flat flat_coalesce(Ctx *cx, Flat f, bool x);
Flat flat_filter(Ctx *cx, Layout l);     // coalesced, no stride 0
// Strides that the modes have in the domain: prefix products. (inverse.c)
Dim *flat_prefix(Ctx *cx, Flat f);

Layout compose_plain(Ctx *cx, Note *nt, Layout a, Layout b);  // compose.c
// The value of static modes at i. Strides that are bases count by weights, so
// that sums can be compared.
int64_t flat_at(Flat f, int64_t i);
// Is n known to be a multiple of by? Is d known to be above 0 (a static one
// always)? (traced.c)
bool traced_divides(Ctx *cx, Dim by, Dim n);
bool traced_positive(Ctx *cx, Dim d);
// Where nt trusted what is traced: the kernel claims that r is what the rule
// makes of a and b, which the simulator checks.
void traced_claim(Ctx *cx, Note *nt, TracedRule rule, Layout a, Layout b,
                  Layout r);
// The right inverse of a plain layout's offsets; bases are none: 1:0.
Layout inverse_offsets(Ctx *cx, Layout l);
Layout compose_in(Ctx *cx, Note *nt, Layout a, Layout b);
Layout compose_xor(Ctx *cx, Layout a, Layout b);  // b plain, or a or b XORed
Layout inverse_xor(Ctx *cx, Note *nt, Layout l, bool left);
Layout complement_in(Ctx *cx, Note *nt, Layout l, Tup cotarget);
// The same for strides that are bases: mode by mode of the coordinates.
Layout complement_based(Ctx *cx, Note *nt, Layout l, Tup cotarget);
// The room in which the complement of l is asked for a product with t.
Tup product_room(Ctx *cx, Layout l, Layout t);

#endif
