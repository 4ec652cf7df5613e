// The operands of an instruction, as the row of its op says (ops.h): who
// needs them all walks over them here, whatever the op is.
//
// In an Ins: a value is a Ref, elements of memory are two (the object, the
// offset), a run of registers is one (the object) and numbers in Fn.reg. The
// first three Refs are Ins.a[], the others Fn.ext.p[ext..]; a list stands in
// Fn.ext as a whole. The numbers of all runs follow each other from Ins.reg.
#ifndef CUTE_OPERANDS_H
#define CUTE_OPERANDS_H

#include "ir/ir.h"

enum { OPERANDS = 13 };  // at most, but for lists

typedef enum OperandKind {
  OPERAND_VALUE,    // ref, of the type that the op's rule asks for
  OPERAND_PRED,     // ref, a boolean
  OPERAND_LANES,    // ref, a mask of lanes
  OPERAND_VAR,      // ref, a VAR
  OPERAND_MEM,      // `bits` of object ref from element `off` on
  OPERAND_OBJECT,   // object ref
  OPERAND_MAP,      // ref, a TMAP or TMAPAT
  OPERAND_RUN       // n registers of `bits` each, of object ref
} OperandKind;

typedef struct Operand {
  uint8_t kind;         // OperandKind
  uint8_t space;        // MEM, RUN: Space that the op wants, SP_HOST: any
  bool read, written;   // VAR, MEM, MAP, RUN
  char role;            // VALUE: in synchronisation, a letter of ops.h, or 0
  bool optional;
  bool barrier, map;    // MEM: it is an mbarrier, a tensor map
  int n;                // RUN
  Ref ref;              // 0: an optional one that is missing
  Ref off;              // MEM: a value
  int64_t bits;         // MEM, RUN
  const uint32_t *reg;  // RUN: the element that each register begins at
} Operand;

typedef struct Operands {
  const Fn *fn;
  const Ins *i;
  const char *sig;      // not read yet
  uint32_t ref, list;   // Refs taken; of lists
  uint32_t reg;         // numbers taken
  int run;              // runs taken
} Operands;

// for (Operands w = operands_of(fn, i); operands_next(&w, &o);) ...
Operands operands_of(const Fn *fn, const Ins *i);
bool operands_next(Operands *w, Operand *o);
// All of an op without a list; returns how many.
int operands_all(const Fn *fn, const Ins *i, Operand o[OPERANDS]);
// The values of a list's op, without the variables before them.
const Ref *operands_list(const Fn *fn, const Ins *i, uint32_t *n);
// Are two runs the same registers?
bool operands_same(const Operand *a, const Operand *b);

// Ref number k of those that are no list.
static inline Ref operands_ref(const Fn *fn, const Ins *i, uint32_t k) {
  return k < 3 ? i->a[k] : k - 3 < i->nx ? fn->ext.p[i->ext + k - 3] : 0;
}

// Appends ins with nref Refs, in their order, and nreg numbers of its runs.
Ref operands_emit(Ctx *cx, Fn *fn, Ins ins, const Ref *ref, uint32_t nref,
                  const uint32_t *reg, uint32_t nreg);

#endif
