// A program that is run with changes, as the surgeon asks (edit.c): without an
// instruction, with a weaker one in its place, or with one more.
#ifndef CUTE_SIMEDIT_H
#define CUTE_SIMEDIT_H

#include "ir/ir.h"

typedef enum SimHow {
  EDIT_DROP,     // it does nothing
  EDIT_AS,       // it is another: op, imm, flags
  EDIT_BEFORE,   // op, imm and flags come before it
  EDIT_SEM       // it has another order: imm is the HINT_SEM, count the
                 // HINT_SCOPE if it changes, too
} SimHow;
typedef struct SimEdit {
  Ref ref;       // an instruction of the function that has effects
  uint8_t how;   // SimHow
  uint8_t op;    // Op without operands: a barrier, a wait, a fence; or
                 // MBARWAIT at a ring: the n-th time at mbarrier n % count of
                 // `mem`, for phase n / count + imm
  uint16_t flags;
  uint32_t count;  // of BAR: threads, 0: all
  Ref mem;
  int64_t imm;
} SimEdit;

struct Launch;
struct SimIns;
struct SimSide;
// What comes before instruction r, at out (room for l->nedit); how many. full:
// slot of a mask of all lanes; side: of each edit, what a ring lies in.
uint32_t simedit_before(const struct Launch *l, Ref r, uint32_t full,
                        const struct SimSide *side, struct SimIns *out);
// Changes decoded instruction d.
void simedit_apply(const struct Launch *l, uint32_t full, struct SimIns *d);

#endif
