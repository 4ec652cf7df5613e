// CuTe notation read (notation.c).
#ifndef CUTE_NOTATION_H
#define CUTE_NOTATION_H

#include "layout/algebra.h"

// A value in CuTe notation.
typedef struct Notation {
  enum { NOTE_TUP, NOTE_LAYOUT, NOTE_TILER, NOTE_SWIZZLE } kind;
  Tup t;
  Layout l;
  Tiler tiler;       // a tuple with a layout inside
  Swizzle sw;
} Notation;
Notation note_parse(Ctx *cx, const char *s, size_t n);
// A layout; of a shape without strides the compact one, column-major.
Layout layout_parse(Ctx *cx, const char *s, size_t n);

#endif
