// Patches to a program, for `cutelua check` (edit.c): without an instruction,
// with another one in its place, with one more, or with another operand.
#ifndef CUTE_SIMEDIT_H
#define CUTE_SIMEDIT_H

#include "ir/ir.h"

typedef enum SimHow {
  EDIT_DROP,     // removed
  EDIT_AS,       // replaced: op, imm, flags, count
  EDIT_BEFORE,   // inserted before it: op, imm, flags and count
  EDIT_SEM,      // other HINT_SEM, HINT_SCOPE: sem, scope; 0: unchanged
  EDIT_VALUE     // operand number `operand` is replaced: from, step
} SimHow;

// The initial value of a replaced operand, in its type.
typedef enum SimFrom {
  FROM_SELF,     // the original value
  FROM_NUMBER,   // imm
  FROM_RANK,     // the block's rank in its cluster
  FROM_LANE,     // the lane number
  FROM_WARP,     // the warp number
  FROM_REF       // mem: another value or object defined there
} SimFrom;

// One step of the computation: x becomes `x op y`, or (flip) `y op x`. y is the
// value `with`, or imm.
typedef struct SimCalc {
  uint8_t op;    // Op on two integers
  bool flip;
  Ref with;
  int64_t imm;
} SimCalc;

enum { EDIT_STEPS = 6 };

typedef struct SimEdit {
  Ref ref;       // an instruction with effects; BEFORE: or the end of the
                 // function, any number of times
  uint8_t how;   // SimHow
  uint8_t op;    // Op without operands: a barrier, a wait, a fence; or one with
                 // operands that `mem` gives:
                 // MBARWAIT, MBARARRIVE on a ring: execution n uses mbarrier
                 //   base + n % count of that object; MBARWAIT for phase
                 //   n / count + imm; MBARARRIVE, if imm is 1, by one lane;
                 //   MBARTX by one lane, expecting imm bytes; MBARCPASYNC.
                 //   AS: MBARWAIT
                 // MAPACQUIRE: the map in memory that a TMAPAT names
  uint8_t sem, scope;  // scope: also of MBARWAIT
  uint16_t flags;
  uint32_t count;  // BAR: threads; 0: all
  Ref mem;
  int64_t imm, base;
  uint8_t operand, from, nstep;  // VALUE; from: SimFrom
  SimCalc step[EDIT_STEPS];
  Ref first, last;  // VALUE: instructions that compute it, appended by
                    // simedit_launch
} SimEdit;

struct Launch;
struct SimIns;
// Returns the launch of a function with the operands of its EDIT_VALUEs, or l
// if there are none. Instructions that compute operands follow the last
// instruction of l's function.
const struct Launch *simedit_launch(Ctx *cx, const struct Launch *l);
// Decodes the insertions before instruction r to out (room for l->nedit);
// returns their number. end: number of original instructions; full: slot of a
// full lane mask; x: SimIns.x of each patch's instruction.
uint32_t simedit_before(const struct Launch *l, Ref r, Ref end, uint32_t full,
                        const void *const *x, struct SimIns *out);
// Patches decoded instruction d.
void simedit_apply(const struct Launch *l, uint32_t full, const void *const *x,
                   struct SimIns *d);

#endif
// SPDX-License-Identifier: MIT
