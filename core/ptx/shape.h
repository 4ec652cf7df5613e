// Structured control flow: the regions of the IR that a graph of basic blocks
// becomes.
#ifndef PTX_SHAPE_H
#define PTX_SHAPE_H

#include "base/base.h"

enum { SHAPE_NONE = UINT32_MAX };

// A basic block: with no successor it ends the thread; with two, its condition
// chooses `to[0]` where it is true.
typedef struct ShapeBlock {
  uint32_t to[2];  // SHAPE_NONE: none
} ShapeBlock;

typedef enum ShapeKind {
  SHAPE_BLOCK,  // the instructions of block `b`, without its branch
  SHAPE_ONCE,   // opens a region that BREAK leaves
  SHAPE_LOOP,   // opens a region that runs again and again until a BREAK
  SHAPE_IF,     // opens a region, by the condition of block `b`
  SHAPE_ELSE,
  SHAPE_END,    // closes the innermost region
  SHAPE_BREAK,  // leaves `levels` ONCEs and LOOPs, the innermost first
  SHAPE_EXIT,   // the thread ends
  SHAPE_CASE,   // opens a region, taken where the next block is `b`
  SHAPE_NEXT    // the next block is `to`
} ShapeKind;

typedef enum ShapeWhen { SHAPE_ALWAYS, SHAPE_TRUE, SHAPE_FALSE } ShapeWhen;

typedef struct ShapeItem {
  uint8_t kind;     // ShapeKind
  uint8_t when;     // ShapeWhen: IF, BREAK, NEXT: of the condition of block b
  uint32_t b, to;
  uint32_t levels;
} ShapeItem;

typedef struct Shape {
  ShapeItem *item;  // n of them, in cx->scratch
  size_t n;
  bool dispatch;    // irreducible: one LOOP of CASEs; block 0 comes first
  uint32_t loops;   // natural loops
} Shape;

// Structures n blocks, of which block 0 is entered first. Blocks that cannot
// be reached are left out. Errors: ERR_LIMIT, regions nested too deeply.
void shape_of(Ctx *cx, const ShapeBlock *block, uint32_t n, Shape *out);

#endif
// SPDX-License-Identifier: MIT
