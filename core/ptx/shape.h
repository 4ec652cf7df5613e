// Structured control flow: the IR regions made from a graph of basic blocks.
#ifndef PTX_SHAPE_H
#define PTX_SHAPE_H

#include "base/base.h"

enum { SHAPE_NONE = UINT32_MAX };

// A basic block. A block without a successor ends the thread. A block with two
// successors branches to `to[0]` if its condition is true, and otherwise to
// `to[1]`.
typedef struct ShapeBlock {
  uint32_t to[2];  // successors, or SHAPE_NONE
} ShapeBlock;

typedef enum ShapeKind {
  SHAPE_BLOCK,  // the instructions of block `b`, without its branch
  SHAPE_ONCE,   // opens a region that BREAK leaves
  SHAPE_LOOP,   // opens a region that repeats until a BREAK
  SHAPE_IF,     // opens a region for lanes where the condition of block `b`
                // holds
  SHAPE_ELSE,
  SHAPE_END,    // closes the innermost region
  SHAPE_BREAK,  // leaves `levels` ONCEs and LOOPs, the innermost first
  SHAPE_EXIT,   // ends the thread
  SHAPE_CASE,   // opens a region that runs if the next block is `b`
  SHAPE_NEXT    // makes `to` the next block
} ShapeKind;

typedef enum ShapeWhen { SHAPE_ALWAYS, SHAPE_TRUE, SHAPE_FALSE } ShapeWhen;

typedef struct ShapeItem {
  uint8_t kind;     // ShapeKind
  // ShapeWhen: the result of the condition of block b for which an IF, BREAK or
  // NEXT takes effect
  uint8_t when;
  uint32_t b, to;
  uint32_t levels;
} ShapeItem;

typedef struct Shape {
  ShapeItem *item;  // array of n items, in cx->scratch
  size_t n;
  // whether the graph is irreducible. If it is, the items are one LOOP that has
  // a CASE for each block, block 0 first.
  bool dispatch;
  uint32_t loops;   // number of natural loops
} Shape;

// Structures n blocks. Block 0 is entered first. Omits unreachable blocks.
// Errors: ERR_LIMIT if regions are nested too deeply.
void shape_of(Ctx *cx, const ShapeBlock *block, uint32_t n, Shape *out);

#endif
// SPDX-License-Identifier: MIT
