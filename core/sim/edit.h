// A program that runs with changes, as the surgeon asks (edit.c): without an
// instruction, with another one in its place, with one more, or with another
// operand.
#ifndef CUTE_SIMEDIT_H
#define CUTE_SIMEDIT_H

#include "ir/ir.h"

typedef enum SimHow {
  EDIT_DROP,     // it does nothing
  EDIT_AS,       // it is another: op, imm, flags, count
  EDIT_BEFORE,   // op, imm, flags and count come before it
  EDIT_SEM,      // it has another HINT_SEM, HINT_SCOPE: sem, scope; 0: its own
  EDIT_VALUE     // its Ref number `operand` is another value: from, step
} SimHow;

// What the value of an operand is computed from, in its type.
typedef enum SimFrom {
  FROM_SELF,     // what it was
  FROM_NUMBER,   // imm
  FROM_RANK,     // the block's rank in its cluster
  FROM_LANE,     // the number of the lane
  FROM_WARP,     // that of the warp
  FROM_REF       // mem: another value, or object, that is known there
} SimFrom;

// x becomes `x op y`, or `y op x`: y is the value `with`, or imm without one.
typedef struct SimCalc {
  uint8_t op;    // Op of two integers
  bool flip;
  Ref with;
  int64_t imm;
} SimCalc;

enum { EDIT_STEPS = 6 };

typedef struct SimEdit {
  Ref ref;       // an instruction of the function that has effects; BEFORE:
                 // or the end, as many as there are
  uint8_t how;   // SimHow
  uint8_t op;    // Op without operands: a barrier, a wait, a fence; or one with
                 // those that `mem` gives:
                 // MBARWAIT, MBARARRIVE at a ring: the n-th time at mbarrier
                 //   base + n % count of that object, MBARWAIT for phase
                 //   n / count + imm, MBARARRIVE where imm is 1 by one lane,
                 //   MBARTX by one lane, expecting imm bytes; MBARCPASYNC.
                 //   AS: MBARWAIT
                 // MAPACQUIRE: the map in memory that a TMAPAT names
  uint8_t sem, scope;  // scope: of MBARWAIT, too
  uint16_t flags;
  uint32_t count;  // of BAR: threads, 0: all
  Ref mem;
  int64_t imm, base;
  uint8_t operand, from, nstep;  // VALUE; from: SimFrom
  SimCalc step[EDIT_STEPS];
  Ref first, last;  // VALUE: instructions that compute it, of simedit_launch
} SimEdit;

struct Launch;
struct SimIns;
// The launch of a function whose operands are those of its EDIT_VALUEs; l
// itself without any. What computes them is behind the last instruction of
// l's function.
const struct Launch *simedit_launch(Ctx *cx, const struct Launch *l);
// Decodes what edits put in before instruction r to out (room for l->nedit);
// returns how many. end: instructions that the function had without edits;
// full: slot of a mask of all lanes; x: of each edit, SimIns.x of what it puts
// in.
uint32_t simedit_before(const struct Launch *l, Ref r, Ref end, uint32_t full,
                        const void *const *x, struct SimIns *out);
// Changes decoded instruction d.
void simedit_apply(const struct Launch *l, uint32_t full, const void *const *x,
                   struct SimIns *d);

#endif
