// A program that is run with changes, as the surgeon asks (edit.c): without an
// instruction, with a weaker one in its place, or with one more.
#ifndef CUTE_SIMEDIT_H
#define CUTE_SIMEDIT_H

#include "ir/ir.h"

typedef enum SimHow {
  EDIT_DROP,     // it does nothing
  EDIT_AS,       // it is another: op, imm, flags, count
  EDIT_BEFORE,   // op, imm, flags and count come before it
  EDIT_SEM,      // it has another HINT_SEM, HINT_SCOPE: sem, scope; 0: its own
  EDIT_AMOUNT    // of MBAR*: the count, the bytes or the parity XOR imm
} SimHow;
typedef struct SimEdit {
  Ref ref;       // an instruction of the function that has effects; BEFORE:
                 // or the end, as many as there are
  uint8_t how;   // SimHow
  uint8_t op;    // Op without operands: a barrier, a wait, a fence; or one with
                 // those that `mem` gives:
                 // MBARWAIT, MBARARRIVE at a ring: the n-th time at mbarrier
                 //   n % count of that object, MBARWAIT for phase
                 //   n / count + imm, MBARARRIVE where imm is 1 by one lane,
                 //   MBARTX by one lane, expecting imm bytes; MBARCPASYNC
                 // MAPACQUIRE: the map in memory that a TMAPAT names
  uint8_t sem, scope;  // scope: of MBARWAIT, too
  uint16_t flags;
  uint32_t count;  // of BAR: threads, 0: all
  Ref mem;
  int64_t imm;
} SimEdit;

struct Launch;
struct SimIns;
// What comes before instruction r, at out (room for l->nedit); how many. full:
// slot of a mask of all lanes; x: of each edit, SimIns.x of what it puts in.
uint32_t simedit_before(const struct Launch *l, Ref r, uint32_t full,
                        const void *const *x, struct SimIns *out);
// Changes decoded instruction d.
void simedit_apply(const struct Launch *l, uint32_t full, struct SimIns *d);

#endif
