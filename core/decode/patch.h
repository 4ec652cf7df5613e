// Patches to a program, for `cutelua check` (patch.c). A patch removes or
// replaces an instruction, inserts one before it, or replaces an operand.
#ifndef CUTE_DECODE_PATCH_H
#define CUTE_DECODE_PATCH_H

#include "ir/ir.h"

typedef enum SimPatchKind {
  // remove the instruction
  PATCH_DROP,
  // replace the instruction by one with op, imm, flags and count
  PATCH_AS,
  // insert a new instruction with op, imm, flags and count before the patched
  // instruction
  PATCH_BEFORE,
  // change the instruction's memory order (HINT_SEM) and scope to the fields
  // `sem` and `scope`; 0: unchanged
  PATCH_SEM,
  // replace operand number `operand` of the instruction; `from` and `step`
  // specify how the new operand is computed
  PATCH_VALUE
} SimPatchKind;

// The value from which the computation of a new operand starts. The result is
// converted to the operand's type.
typedef enum SimFrom {
  FROM_SELF,     // the old operand of the instruction
  FROM_NUMBER,   // the constant imm
  FROM_RANK,     // the rank of the CTA in its cluster
  FROM_LANE,     // the lane number
  FROM_WARP,     // the warp number
  FROM_REF       // mem: a value or a memory object in the IR
} SimFrom;

// One step in the computation of an operand: x becomes `x op y`, or `y op x` if
// `flip` is set. y is the value `with`, or imm if `with` is 0.
typedef struct SimCalc {
  uint8_t op;    // operation with two integer operands, a value of Op
  bool flip;
  Ref with;
  int64_t imm;
} SimCalc;

enum { PATCH_STEPS = 6 };

typedef struct SimPatch {
  // The patched instruction. It must have an effect, because decoding may omit
  // instructions without effects. With PATCH_BEFORE, ref may also be the end of
  // the function. An instruction may have several PATCH_BEFOREs.
  Ref ref;
  uint8_t how;   // a SimPatchKind
  // The Op of a new instruction. It must have no operands (a barrier, a wait, a
  // fence), unless `mem` is set and determines them:
  // - MBARWAIT, MBARARRIVE, MBARTX and MBARCPASYNC on a ring of mbarriers,
  //   `mem`: execution n uses mbarrier base + n % count of the ring. MBARWAIT
  //   waits for phase n / count + imm. Only MBARWAIT may also be used with
  //   PATCH_AS. If imm is 1, only one lane executes MBARARRIVE. In MBARTX, one
  //   lane expects imm bytes.
  // - MAPACQUIRE acquires the tensor map in memory that `mem`, a TMAPAT, names.
  uint8_t op;
  // PATCH_SEM: the new memory order and scope. `scope` is also the scope of an
  // inserted MBARWAIT.
  uint8_t sem, scope;
  uint16_t flags;
  uint32_t count;  // thread count of a BAR; 0: all threads of the CTA
  Ref mem;
  int64_t imm, base;
  // PATCH_VALUE: the operand's number, a SimFrom, and the number of steps
  uint8_t operand, from, nstep;
  SimCalc step[PATCH_STEPS];
  // PATCH_VALUE: IR instructions `first` to last - 1 compute the new operand.
  // patch_launch sets both fields.
  Ref first, last;
} SimPatch;

struct Launch;
struct SimIns;
// Returns a launch whose function also computes the operands of all
// PATCH_VALUEs, or l if there are none. The IR instructions that compute them
// follow the last instruction of l's function.
const struct Launch *patch_launch(Ctx *cx, const struct Launch *l);
// Writes the instructions that patches insert before instruction r to `out`,
// which has room for l->npatch. Returns their number. `end` is the number of IR
// instructions before patch_launch appended others. `full` is the slot with a
// mask of all lanes. `x` has SimIns.x for each patch.
uint32_t patch_before(const struct Launch *l, Ref r, Ref end, uint32_t full,
                      const void *const *x, struct SimIns *out);
// Changes d, a decoded instruction, as the patches of its IR instruction state.
void patch_apply(const struct Launch *l, uint32_t full, const void *const *x,
                 struct SimIns *d);

#endif
// SPDX-License-Identifier: MIT
