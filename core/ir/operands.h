// Iterates over the operands of an instruction, as the row of its op describes
// them (ops.h). Code that needs all operands, whatever the op, uses this walk.
//
// Encoding in an Ins: a value is one Ref; elements of memory are two (object,
// offset); a run of registers is one (the object) and numbers in Fn.reg. The
// first three Refs are Ins.a[], the others Fn.ext.p[ext..]; a list is entirely
// in Fn.ext. The numbers of all runs are consecutive from Ins.reg.
#ifndef CUTE_OPERANDS_H
#define CUTE_OPERANDS_H

#include "ir/ir.h"

enum { OPERANDS = 13 };  // maximum, without lists

typedef enum OperandKind {
  OPERAND_VALUE,    // ref, of the type that the op's rule requires
  OPERAND_PRED,     // ref, a boolean
  OPERAND_LANES,    // ref, a mask of lanes
  OPERAND_VAR,      // ref, a VAR
  OPERAND_MEM,      // `bits` of object ref from element `off`
  OPERAND_OBJECT,   // object ref
  OPERAND_MAP,      // ref, a TMAP or TMAPAT
  OPERAND_RUN       // n registers of `bits` each in object ref
} OperandKind;

typedef struct Operand {
  uint8_t kind;         // OperandKind
  uint8_t space;        // MEM, RUN: Space that the op requires, SP_HOST: any
  bool read, written;   // VAR, MEM, MAP, RUN
  char role;            // VALUE: role in synchronisation (ops.h), or 0
  bool optional;
  bool barrier, map;    // MEM: an mbarrier, a tensor map
  int n;                // RUN
  Ref ref;              // 0: a missing optional operand
  Ref off;              // MEM: a value
  int64_t bits;         // MEM, RUN
  const uint32_t *reg;  // RUN: first element of each register
} Operand;

typedef struct Operands {
  const Fn *fn;
  const Ins *i;
  const char *sig;      // unread rest of the row's operands
  uint32_t ref, list;   // number of Refs read, and of Refs of lists
  uint32_t reg;         // number of register numbers read
  int run;              // number of runs read
} Operands;

// for (Operands w = operands_of(fn, i); operands_next(&w, &o);) ...
Operands operands_of(const Fn *fn, const Ins *i);
bool operands_next(Operands *w, Operand *o);
// Writes all operands of an op without a list; returns their number.
int operands_all(const Fn *fn, const Ins *i, Operand o[OPERANDS]);
// Returns the values of an op with a list, without the variables before them.
const Ref *operands_list(const Fn *fn, const Ins *i, uint32_t *n);
// Reports whether two runs are the same registers.
bool operands_same(const Operand *a, const Operand *b);

// Returns Ref number k of an op without a list.
static inline Ref operands_ref(const Fn *fn, const Ins *i, uint32_t k) {
  return k < 3 ? i->a[k] : k - 3 < i->nx ? fn->ext.p[i->ext + k - 3] : 0;
}

// Appends ins with nref Refs, in order, and the nreg numbers of its runs.
Ref operands_emit(Ctx *cx, Fn *fn, Ins ins, const Ref *ref, uint32_t nref,
                  const uint32_t *reg, uint32_t nreg);

#endif
// SPDX-License-Identifier: MIT
