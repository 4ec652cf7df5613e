// A copy of a PTX function in which each call is replaced by the text of the
// called function.
#ifndef PTX_CALLS_H
#define PTX_CALLS_H

#include "ptx/inside.h"

// Limits on the number of instructions of a copy, the number of calls that are
// replaced in the copy, and the depth of nested calls.
enum { MOST_COPIED = 1 << 19, MOST_CALLS = 1 << 16, DEEPEST_CALL = 64 };

enum { SEVERAL = UINT32_MAX };

// The workspace of a cooperative launch: its size, and the offset of the word
// that states whether the launch is cooperative.
enum { GRID_BYTES = 64, GRID_FLAG = 60 };

// The text of one function in the copy: the entry, or a called function for one
// of its calls.
typedef struct PtxBody {
  const PtxFunc *f;
  const struct PtxBody *outer;  // the body with the call; NULL for the entry
  uint32_t reg;     // number in the copy of the function's first register
  uint32_t first;   // index into PtxModule.vars of the function's first
                    // variable
  int32_t *var;     // for each variable of the function from `first` on, its
                    // index in the copy
  uint32_t *label;  // for each label of the function, its index in the copy
  uint32_t end;     // label after the text, to which `ret` branches
  uint32_t loc;     // position of the call, as number + 1 in PtxModule.locs
} PtxBody;

// A text that a call of printf prints: the operand with the text's address (a),
// the text, and the instruction that calls printf (at).
typedef struct PtxText {
  PtxArg a;
  const char *text;
  const PtxIns *at;
} PtxText;

typedef struct PtxCopy {
  PtxBuild b;        // module, function and line, for messages
  PtxModule *m;
  PtxFunc out;
  // for each shared variable of a function: its index in the copy, or 0; all
  // calls of the function share the variable
  int32_t *shared;
  uint32_t calls;     // number of calls that were replaced
  // whether the entry reads its parameters at addresses that it computes
  bool computes;
  // for each register of the copy: 1 + the index in PtxModule.ins of its only
  // definition; 0: no definition; SEVERAL: several definitions
  uint32_t *def;
  uint32_t defs;      // number of elements of def
  PtxText *text;      // the texts of all calls of printf
  uint32_t texts, text_cap;
  int32_t workspace;  // variable that %envreg1 and %envreg2 address, or -1
  bool *taken;        // for each function of the module, whether its address is
                      // taken; NULL before the first indirect call
} PtxCopy;

// Appends an instruction with n operands, at the position of the instruction
// that is being copied.
void copy_push(PtxCopy *x, const char *op, const PtxArg *a, uint32_t n);
// Declares a register of the copy. Returns the register as an operand.
PtxArg copy_register(PtxCopy *x, PtxType t);
// Returns the address [base + value] as an operand.
PtxArg copy_address(PtxCopy *x, PtxArg base, int64_t value);

// prints.c: replace calls of vprintf and of __assertfail. p has the call's
// arguments.
void prints_call(PtxCopy *x, const PtxArg *p);
void prints_assert(PtxCopy *x, const PtxArg *p);
// Rejects a printf whose text is changed by another instruction of the copy.
void prints_check(PtxCopy *x);

// wmma.c: replaces the wmma instruction that is being copied, whose n operands
// are a[0] to a[n-1].
void wmma_replace(PtxCopy *x, const PtxArg *a, uint32_t n);

#endif
// SPDX-License-Identifier: MIT
