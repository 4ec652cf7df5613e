// Expressions: what an instruction is as C text, and how tightly it binds.
#ifndef CUTE_EMITEXPR_H
#define CUTE_EMITEXPR_H

#include "emit/inside.h"
#include "ir/intrin.h"

// Precedences of C, tightest last.
typedef enum Prec {
  PR_ANY, PR_COND, PR_OROR, PR_ANDAND, PR_OR, PR_XOR, PR_AND, PR_EQ, PR_REL,
  PR_SHIFT, PR_ADD, PR_MUL, PR_UNARY, PR_POST
} Prec;

// ---- expr.c ----
// Writes r's text, parenthesised when it binds looser than `min`; returns how
// it binds then.
Prec expr_val(Emit *e, Ref r, Prec min);
// The expression behind r (its own definition); returns its precedence.
Prec expr_def(Emit *e, Ref r);
// Is t kept as raw bits and computed in f32?
bool expr_small_float(DType t);
// A value of a small float type (or f32) as f32.
void expr_f32(Emit *e, Ref r, Prec min);
// The same where the compiler is not to see its value.
void expr_at_run_time(Emit *e, Ref r);
// Pointer to element `off` of a GMEM or SMEM object: `A + x + 64`.
void expr_pointer(Emit *e, Ref mem, Ref off, Prec min);
// The element itself, as an lvalue: `A[x + 64]`.
void expr_element(Emit *e, Ref mem, Ref off);
void expr_choice(Emit *e, const Ins *i, Ref which);  // of PICK and PUT
// `r[i]` where i is what a loop counts that is unrolled whole, and true.
bool expr_chosen(Emit *e, const Ins *i, Ref which);
// What an instruction takes as a constant beside a register is left out of
// an element's pointer, `A + x`, and of its 32-bit shared address,
// `sA_addr + x * 2u`: so many bytes.
int64_t expr_beyond(Emit *e, Ref mem, Ref off);
void expr_base(Emit *e, Ref mem, Ref off);
void expr_address(Emit *e, Ref mem, Ref off);
void expr_place(Emit *e, Ref mem, Ref off);  // the address, with that
// A register element, offset in elements of mem's type, as a value of t.
void expr_reg(Emit *e, Ref mem, int64_t off, DType t);
// The word of registers that holds bit `bit` of the object: `tCrA[3]`, or
// `tCrA_3`.
void expr_word(Emit *e, Ref mem, int64_t bit);
// A run of registers as arguments of this type.
void expr_regs(Emit *e, bool refs, const Operand *o, const char *type);
// Both sides of `tCrA[3] = value`: the value goes between, binding as unary.
// fresh: nothing else was in the word yet.
void expr_reg_open(Emit *e, Ref mem, int64_t off, DType t, bool fresh);
void expr_reg_close(Emit *e, Ref mem, int64_t off, DType t);
// Value r as a word of registers of type t.
void expr_as_word(Emit *e, Ref r, DType t);
void expr_mbar(Emit *e, const Ins *i);  // "mbar_wait(bar_addr, phase)"
// A store of an element below a byte, without the semicolon.
void expr_store_bits(Emit *e, const Ins *i);

// ---- known.c ----
// Finds the values that the compiler may compute, where that matters.
void known_run(Emit *e);
// May it compute the first n operands of i?
bool known_is(const Emit *e, const Ins *i, int n);
bool known_folds(IntrinId id);  // an approximation that ptxas folds

// ---- convert.c ----
Prec convert_convert(Emit *e, const Ins *i);
Prec convert_bitcast(Emit *e, const Ins *i);
const char *convert_bits(DType from, DType to);  // "__float_as_uint"
// f32 of a small float: "bf16_to_f32"; and back.
const char *convert_to_f32(Emit *e, const Ins *i, DType t);
const char *convert_from_f32(Emit *e, const Ins *i, DType t);

// ---- ptx.c ----
// What is used, noted before anything is written; names; helpers.
void ptx_note(Emit *e, const Ins *i);
void ptx_note_access(Emit *e, const Ins *i);
// Bytes that a load with these flags is to bring to L2; 0: no more than it has.
int ptx_prefetch(const Emit *e, unsigned flags);
void ptx_reserve(Emit *e);
void ptx_print(Emit *e);
void ptx_asm(Emit *e, Ref r);  // ASM, a statement
Prec ptx_value(Emit *e, const Ins *i);   // INTRIN, ASK
Prec ptx_access(Emit *e, const Ins *i);  // LD, ST, ATOMIC with hints
void ptx_mask(Emit *e, Ref mask);         // of lanes
// Name of the function that reads a special register which CUDA has none for.
const char *ptx_sreg(Emit *e, SReg r);

// ---- bulk.c ----
static inline bool bulk_is(const Ins *i) {  // a bulk copy
  return i->op >= OP_TMALOAD && i->op <= OP_BULKSEND;
}
void bulk_note(Emit *e, const Ins *i);  // as those of mbar.c
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
// The function that i calls; many: the call has a count.
const char *mbar_function(Emit *e, const Ins *i, bool *many);

#endif
