// Patches to a program, for `cutelua check` (edit.c). A patch removes or
// replaces an instruction, inserts one before it, or replaces an operand.
#ifndef CUTE_SIMEDIT_H
#define CUTE_SIMEDIT_H

#include "ir/ir.h"

typedef enum SimHow {
  EDIT_DROP,     // the instruction is removed
  EDIT_AS,       // it is replaced: op, imm, flags, count describe the new one
  EDIT_BEFORE,   // another is inserted before it: op, imm, flags and count
  EDIT_SEM,      // its HINT_SEM or HINT_SCOPE changes: sem, scope; 0: unchanged
  EDIT_VALUE     // its operand number `operand` is replaced: from, step
} SimHow;

// Where the computation of a replaced operand starts. The value is converted to
// the operand's type.
typedef enum SimFrom {
  FROM_SELF,     // the original value
  FROM_NUMBER,   // the constant imm
  FROM_RANK,     // the block's rank in its cluster
  FROM_LANE,     // the lane number
  FROM_WARP,     // the warp number
  FROM_REF       // mem: another value, or an object, defined at that
                 // instruction
} SimFrom;

// One step of the computation of an operand: x becomes `x op y`, or `y op x` if
// flip is set. y is the value `with`, or imm.
typedef struct SimCalc {
  uint8_t op;    // Op with two integer operands
  bool flip;
  Ref with;
  int64_t imm;
} SimCalc;

enum { EDIT_STEPS = 6 };

typedef struct SimEdit {
  Ref ref;       // an instruction with effects; BEFORE: or the end of the
                 // function, any number of times
  uint8_t how;   // SimHow
  uint8_t op;    // The Op of a new instruction. Either it has no operands (a
                 // barrier, a wait, a fence), or `mem` gives them:
                 // - MBARWAIT, MBARARRIVE on a ring: execution n uses mbarrier
                 //   base + n % count of mem. MBARWAIT waits for phase n /
                 //   count + imm. If imm is 1, one lane executes MBARARRIVE.
                 // - MBARTX: one lane expects imm bytes.
                 // - MBARCPASYNC; with EDIT_AS also MBARWAIT.
                 // - MAPACQUIRE: the map in memory that a TMAPAT names.
  uint8_t sem, scope;  // scope: also applies to MBARWAIT
  uint16_t flags;
  uint32_t count;  // thread count of a BAR; 0: all threads
  Ref mem;
  int64_t imm, base;
  uint8_t operand, from, nstep;  // VALUE; operand: its number; from: SimFrom;
                                 // nstep: length of step
  SimCalc step[EDIT_STEPS];
  Ref first, last;  // VALUE: instructions that compute the operand, appended by
                    // simedit_launch
} SimEdit;

struct Launch;
struct SimIns;
// Returns the launch of a function with the operands of its EDIT_VALUEs, or l
// if there are none. Instructions that compute operands follow the last
// instruction of l's function.
const struct Launch *simedit_launch(Ctx *cx, const struct Launch *l);
// Decodes the insertions before instruction r to out, which has room for
// l->nedit; returns their number. end: number of original instructions. full:
// slot of a full lane mask. x: SimIns.x of each patch's instruction.
uint32_t simedit_before(const struct Launch *l, Ref r, Ref end, uint32_t full,
                        const void *const *x, struct SimIns *out);
// Patches decoded instruction d.
void simedit_apply(const struct Launch *l, uint32_t full, const void *const *x,
                   struct SimIns *d);

#endif
// SPDX-License-Identifier: MIT
