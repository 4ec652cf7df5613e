// Expressions: the C text of an instruction, and its precedence.
#ifndef CUTE_EMITEXPR_H
#define CUTE_EMITEXPR_H

#include "emit/inside.h"
#include "ir/intrin.h"

// Precedences of C; the tightest is last.
typedef enum Prec {
  PR_ANY, PR_COND, PR_OROR, PR_ANDAND, PR_OR, PR_XOR, PR_AND, PR_EQ, PR_REL,
  PR_SHIFT, PR_ADD, PR_MUL, PR_UNARY, PR_POST
} Prec;

// ---- expr.c ----
// Writes r's text, parenthesised if it binds looser than `min`; returns its
// precedence.
Prec expr_val(Emit *e, Ref r, Prec min);
// Writes the definition of r as an expression; returns its precedence.
Prec expr_def(Emit *e, Ref r);
// Reports whether t is kept as raw bits and computed in f32.
bool expr_small_float(DType t);
// Writes a value of a small float type (or f32) as f32.
void expr_f32(Emit *e, Ref r, Prec min);
// Writes the value in a form that the compiler cannot fold.
void expr_at_run_time(Emit *e, Ref r);
// Writes a pointer to element `off` of a GMEM or SMEM object: `A + x + 64`.
void expr_pointer(Emit *e, Ref mem, Ref off, Prec min);
// Writes the element as an lvalue: `A[x + 64]`.
void expr_element(Emit *e, Ref mem, Ref off);
void expr_choice(Emit *e, const Ins *i, Ref which);  // used for PICK and PUT
// Writes `r[i]` and returns true if i is the counter of a fully unrolled loop.
bool expr_chosen(Emit *e, const Ins *i, Ref which);
// Instructions add a constant to a register for free. The constant bytes of an
// offset are therefore split off an element's pointer, `A + x`, and off its
// 32-bit shared address, `sA_addr + x * 2u`; expr_beyond returns them.
int64_t expr_beyond(Emit *e, Ref mem, Ref off);
void expr_base(Emit *e, Ref mem, Ref off);
void expr_address(Emit *e, Ref mem, Ref off);
void expr_place(Emit *e, Ref mem, Ref off);  // writes the full shared address
// Writes the register element at `off`, in elements of mem's type, as a value
// of t.
void expr_reg(Emit *e, Ref mem, int64_t off, DType t);
// Writes the register word that holds bit `bit` of the object: `tCrA[3]`, or
// `tCrA_3`.
void expr_word(Emit *e, Ref mem, int64_t bit);
// Writes a run of registers as arguments of type `type`.
void expr_regs(Emit *e, bool refs, const Operand *o, const char *type);
// Write an assignment `tCrA[3] = value`: expr_reg_open its text before the
// value, expr_reg_close its text after the value. The value must bind as a
// unary expression. fresh: the word holds nothing yet.
void expr_reg_open(Emit *e, Ref mem, int64_t off, DType t, bool fresh);
void expr_reg_close(Emit *e, Ref mem, int64_t off, DType t);
// Writes value r as a register word of type t.
void expr_as_word(Emit *e, Ref r, DType t);
void expr_mbar(Emit *e, const Ins *i);  // "mbar_wait(bar_addr, phase)"
// Writes a store of a sub-byte element, without the semicolon.
void expr_store_bits(Emit *e, const Ins *i);

// ---- known.c ----
// Finds the values that the compiler may fold, where that matters.
void known_run(Emit *e);
// Reports whether the compiler may fold the first n operands of i.
bool known_is(const Emit *e, const Ins *i, int n);
bool known_folds(IntrinId id);  // the instruction is an approximation that
                                // ptxas folds

// ---- convert.c ----
Prec convert_convert(Emit *e, const Ins *i);
Prec convert_bitcast(Emit *e, const Ins *i);
const char *convert_bits(DType from, DType to);  // "__float_as_uint"
// Return the conversion functions of a small float to f32, "bf16_to_f32", and
// back.
const char *convert_to_f32(Emit *e, const Ins *i, DType t);
const char *convert_from_f32(Emit *e, const Ins *i, DType t);

// The note functions record what is used, before anything is written. Others
// reserve names, and print helpers.
void ptx_note(Emit *e, const Ins *i);
void ptx_note_access(Emit *e, const Ins *i);
// Returns the bytes that a load with these flags prefetches to L2, or 0.
int ptx_prefetch(const Emit *e, unsigned flags);
void ptx_reserve(Emit *e);
void ptx_print(Emit *e);
void ptx_asm(Emit *e, Ref r);  // ASM, a statement
Prec ptx_value(Emit *e, const Ins *i);   // INTRIN, ASK
Prec ptx_access(Emit *e, const Ins *i);  // LD, ST, ATOMIC with hints
void ptx_mask(Emit *e, Ref mask);         // a mask of lanes
// Returns the name of the helper that reads a special register without a CUDA
// name.
const char *ptx_sreg(Emit *e, SReg r);

// ---- bulk.c ----
static inline bool bulk_is(const Ins *i) {  // a bulk copy
  return i->op >= OP_TMALOAD && i->op <= OP_BULKSEND;
}
void bulk_note(Emit *e, const Ins *i);  // like mbar_note
void bulk_reserve(Emit *e);
void bulk_print(Emit *e);
void bulk_call(Emit *e, const Ins *i);
// An operation on a tensor map in memory.
static inline bool bulk_is_map(const Ins *i) {
  return i->op >= OP_MAPCOPY && i->op <= OP_MAPPUBLISH;
}
void bulk_note_map(Emit *e, const Ins *i);
void bulk_call_map(Emit *e, const Ins *i);
void bulk_map_at(Emit *e, Ref r);  // TMAPAT, a statement

// ---- mbar.c ----
static inline bool mbar_is(const Ins *i) {  // an operation on an mbarrier
  return i->op >= OP_MBARINIT && i->op <= OP_STASYNC;
}
void mbar_note(Emit *e, const Ins *i);  // before anything is written
void mbar_reserve(Emit *e);
void mbar_print(Emit *e);
// Returns the function that i calls. *many: whether the call has a count.
const char *mbar_function(Emit *e, const Ins *i, bool *many);

#endif
// SPDX-License-Identifier: MIT
