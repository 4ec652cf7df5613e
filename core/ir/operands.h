// Iterates over the operands of an instruction, which the row of its operation
// describes (ops.h). Code that handles operands of all operations alike uses
// this iterator.
//
// Encoding of operands in an Ins: A value is one Ref. Elements of memory are
// two Refs (object, offset). A run of registers is one Ref (the object) and a
// list of register numbers. The first three Refs are in Ins.a[], the others in
// Fn.ext from index Ins.ext. If an operation has a list of operands, all Refs
// are in Fn.ext. The register numbers of all runs are stored one after another
// in Fn.reg, from index Ins.reg.
#ifndef CUTE_OPERANDS_H
#define CUTE_OPERANDS_H

#include "ir/ir.h"

enum { OPERANDS = 13 };  // maximum number of operands, without lists

typedef enum OperandKind {
  OPERAND_VALUE,    // ref: a value whose type follows from the op's rule
  OPERAND_PRED,     // ref: a boolean
  OPERAND_LANES,    // ref: a mask of lanes
  OPERAND_VAR,      // ref: a kernel variable
  OPERAND_MEM,      // `bits` bits of object ref from element `off`
  OPERAND_OBJECT,   // ref: a whole object
  OPERAND_MAP,      // ref: a TMAP or TMAPAT
  OPERAND_RUN       // n registers of `bits` bits each in object ref
} OperandKind;

typedef struct Operand {
  uint8_t kind;         // the OperandKind
  // MEM, RUN: the memory space that the op requires; SP_HOST: any
  uint8_t space;
  bool read, written;   // VAR, MEM, MAP, RUN: how the op accesses the operand
  uint8_t role;         // the Role, or ROLE_NONE
  bool optional;
  // MEM. barrier: the operand is an mbarrier. map: the operand is a tensor map.
  bool barrier, map;
  int n;                // RUN: number of 32-bit registers
  Ref ref;  // the Ref (see `kind`); 0: an optional operand that is absent
  Ref off;              // MEM: offset in elements, a value
  int64_t bits;         // MEM, RUN: number of bits
  const uint32_t *reg;  // RUN: first element of each register
} Operand;

typedef struct Operands {
  const Fn *fn;
  const Ins *i;
  // the shape (operands.c) of the operands of i's operation
  const struct OpShape *shape;
  int k;                // number of operands read so far, not counting lists
  // ref: number of Refs read so far. list: number of Refs read from lists.
  uint32_t ref, list;
  uint32_t reg;         // number of register numbers that were read
  int run;              // number of runs that were read
} Operands;

// Iterates over operands: for (Operands w = operands_of(fn, i);
// operands_next(&w, &o);) ...
Operands operands_of(const Fn *fn, const Ins *i);
bool operands_next(Operands *w, Operand *o);
// Writes all operands of an op without a list to o. Returns their number.
int operands_all(const Fn *fn, const Ins *i, Operand o[OPERANDS]);
// Returns the first operand of i with this role. Its ref is 0 if it is absent,
// or if the op has no such operand.
Operand operand_of(const Fn *fn, const Ins *i, Role role);
// Returns the field `ref` of operand_of.
Ref operand_ref(const Fn *fn, const Ins *i, Role role);
// Writes the refs of all values with this role to r. Returns their number.
int operand_refs(const Fn *fn, const Ins *i, Role role, Ref r[OPERANDS]);
// Reports whether instructions of the op can have an operand with this role.
bool operand_has(Op op, Role role);
// Reports whether an operand is global memory or the tensor of a tensor map.
bool operand_is_global(const Fn *fn, const Operand *o);
// Returns the values of i's operand list (`v*` in ops.h), and sets *n to their
// number. If the op also lists variables, the values follow them.
const Ref *operands_list(const Fn *fn, const Ins *i, uint32_t *n);
// Finds the elements of a register object that operand o accesses. If o is a
// run, finds the elements of its register k. Sets *from and *end to their
// range. Returns false if they are not known.
bool operand_range(const Fn *fn, const Operand *o, int k, int64_t *from,
                      int64_t *end);
// Reports whether two runs consist of the same registers.
bool operands_same(const Operand *a, const Operand *b);
// Reports whether the accumulators of MMA i are also its operand C.
bool operands_accumulate(const Fn *fn, const Ins *i);

// Appends ins with nref Refs as operands, in order, and the nreg register
// numbers of its runs.
Ref operands_emit(Ctx *cx, Fn *fn, Ins ins, const Ref *ref, uint32_t nref,
                  const uint32_t *reg, uint32_t nreg);

#endif
// SPDX-License-Identifier: MIT
