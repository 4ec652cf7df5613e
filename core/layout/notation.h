// Parses CuTe notation (notation.c).
#ifndef CUTE_NOTATION_H
#define CUTE_NOTATION_H

#include "layout/algebra.h"

// The result of parsing CuTe notation.
typedef struct Notation {
  enum { NOTE_TUP, NOTE_LAYOUT, NOTE_TILER, NOTE_SWIZZLE } kind;
  Tup t;
  Layout l;
  Tiler tiler;       // NOTE_TILER: a tuple that contains a layout
  Swizzle sw;
} Notation;
Notation note_parse(Ctx *cx, const char *s, size_t n);
// Parses a layout. A shape without strides gets compact column-major strides.
Layout layout_parse(Ctx *cx, const char *s, size_t n);

#endif
// SPDX-License-Identifier: MIT
