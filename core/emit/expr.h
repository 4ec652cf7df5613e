// Writes instructions as C expressions and reports their precedence.
#ifndef CUTE_EMITEXPR_H
#define CUTE_EMITEXPR_H

#include "emit/inside.h"
#include "ir/intrin.h"

// Precedences of C's operators, from the lowest to the highest.
typedef enum Prec {
  PR_ANY, PR_COND, PR_OROR, PR_ANDAND, PR_OR, PR_XOR, PR_AND, PR_EQ, PR_REL,
  PR_SHIFT, PR_ADD, PR_MUL, PR_UNARY, PR_POST
} Prec;

// ---- expr.c ----
// Writes value r as an expression, in parentheses if its precedence is lower
// than `min`. Returns its precedence.
Prec expr_val(Emit *e, Ref r, Prec min);
// Writes the operation that defines r as an expression, even if r has a name.
// Returns its precedence.
Prec expr_def(Emit *e, Ref r);
// Reports whether t is a float type whose values the text stores as raw bits
// and computes in f32.
bool expr_small_float(DType t);
// Writes value r, an f32 or a small float, as an f32.
void expr_f32(Emit *e, Ref r, Prec min);
// Writes value r in a form that the compiler cannot fold.
void expr_at_run_time(Emit *e, Ref r);
// Writes a pointer to element `off` of an object in global or shared memory,
// such as `A + x + 64`.
void expr_pointer(Emit *e, Ref mem, Ref off, Prec min);
// Writes element `off` of mem as an lvalue, such as `A[x + 64]`.
void expr_element(Emit *e, Ref mem, Ref off);
// Writes the arguments of the helper for a PICK or PUT, which selects one of
// several registers by an index.
void expr_choice(Emit *e, const Ins *i, Ref which);
// Writes `r[i]` and returns true if `which`, the index of the register, is the
// counter of a fully unrolled loop. Otherwise returns false.
bool expr_chosen(Emit *e, const Ins *i, Ref which);
// Instructions have a field for a constant offset, so adding a constant to an
// address costs nothing. Therefore the constant part of an offset is split off.
// expr_beyond returns this part in bytes. expr_base writes the rest: a pointer
// `A + x`, or a 32-bit shared address `sA_addr + x * 2u`.
int64_t expr_beyond(Emit *e, Ref mem, Ref off);
void expr_base(Emit *e, Ref mem, Ref off);
void expr_address(Emit *e, Ref mem, Ref off);
// Writes the shared address of element `off` of mem, with its constant part.
void expr_place(Emit *e, Ref mem, Ref off);
// Writes register element `off`, counted in elements of mem's type, as a value
// of type t.
void expr_reg(Emit *e, Ref mem, int64_t off, DType t);
// Writes the register word of array mem that contains bit number `bit`:
// `tCrA[3]`, or `tCrA_3`.
void expr_word(Emit *e, Ref mem, int64_t bit);
// Writes the registers of operand o as arguments of C type `type`. If `refs` is
// set, writes one argument for each register, otherwise a pointer to the first
// register.
void expr_regs(Emit *e, bool refs, const Operand *o, const char *type);
// Write the parts of an assignment `tCrA[3] = value` before the value
// (expr_reg_open) and after it (expr_reg_close). The caller writes the value,
// as a unary expression or with a higher precedence. `fresh` says that the word
// was not written before.
void expr_reg_open(Emit *e, Ref mem, int64_t off, DType t, bool fresh);
void expr_reg_close(Emit *e, Ref mem, int64_t off, DType t);
// Writes value r in the form in which it is stored in a register word of type
// t.
void expr_as_word(Emit *e, Ref r, DType t);
// Writes a call for an mbarrier operation, such as mbar_wait(bar_addr, phase).
void expr_mbar(Emit *e, const Ins *i);
// Writes a store of an element of less than a byte, without the semicolon.
void expr_store_bits(Emit *e, const Ins *i);

// ---- known.c ----
// If the kernel has operations whose results change when the compiler folds
// constants, finds the values that the compiler may fold.
void known_run(Emit *e);
// Reports whether the compiler may fold any of the first n operands of
// instruction i.
bool known_is(const Emit *e, const Ins *i, int n);
// Reports whether the intrinsic is an approximate function that ptxas folds.
bool known_folds(IntrinId id);

// ---- convert.c ----
Prec convert_convert(Emit *e, const Ins *i);
Prec convert_bitcast(Emit *e, const Ins *i);
// returns a name such as __float_as_uint
const char *convert_bits(DType from, DType to);
// Return the functions that convert a small float t to f32, such as
// bf16_to_f32, and back.
const char *convert_to_f32(Emit *e, const Ins *i, DType t);
const char *convert_from_f32(Emit *e, const Ins *i, DType t);

// ---- ptx.c ----
// The functions *_note run before any text is written, and record the needed
// helpers. The functions *_reserve reserve the names of the helpers, and
// *_print write the helpers.
void ptx_note(Emit *e, const Ins *i);
void ptx_note_access(Emit *e, const Ins *i);
// Returns how many bytes a load with these flags prefetches to L2, or 0.
int ptx_prefetch(const Emit *e, unsigned flags);
// Returns the L2 eviction priority of a load with these flags: LEVEL2_FIRST,
// LEVEL2_LAST, or 0 for the default.
unsigned ptx_level2(const Emit *e, unsigned flags);
void ptx_reserve(Emit *e);
void ptx_print(Emit *e);
void ptx_asm(Emit *e, Ref r);  // writes an ASM as a statement
Prec ptx_value(Emit *e, const Ins *i);   // writes an INTRIN or ASK
// Writes an LD, ST or ATOMIC with hints (memory order, scope, cache operators).
Prec ptx_access(Emit *e, const Ins *i);
void ptx_mask(Emit *e, Ref mask);         // writes a mask of lanes
// Returns the name of the helper that reads a special register for which CUDA C
// has no name.
const char *ptx_sreg(Emit *e, SReg r);

// ---- bulk.c ----
// Reports whether i is a bulk copy or prefetch.
static inline bool bulk_is(const Ins *i) {
  return op_flag_kind((Op)i->op) == FLAGS_BULK;
}
void bulk_note(Emit *e, const Ins *i);  // see ptx_note
void bulk_reserve(Emit *e);
void bulk_print(Emit *e);
void bulk_call(Emit *e, const Ins *i);
// Reports whether i changes a tensor map in memory, or makes such a change
// visible.
static inline bool bulk_is_map(const Ins *i) {
  return operand_has((Op)i->op, ROLE_TMAP) && i->op != OP_TMAPAT;
}
void bulk_note_map(Emit *e, const Ins *i);
void bulk_call_map(Emit *e, const Ins *i);
void bulk_map_at(Emit *e, Ref r);  // writes a TMAPAT as a statement

// ---- mbar.c ----
// Reports whether i is an mbarrier operation or a st.async.
static inline bool mbar_is(const Ins *i) {
  return op_flag_kind((Op)i->op) == FLAGS_MBAR ||
         op_class((Op)i->op) == CLASS_SEND;
}
void mbar_note(Emit *e, const Ins *i);  // see ptx_note
void mbar_reserve(Emit *e);
void mbar_print(Emit *e);
// Returns the name of the function that i calls. Sets *many if the function has
// a parameter for the number of arrivals.
const char *mbar_function(Emit *e, const Ins *i, bool *many);

#endif
// SPDX-License-Identifier: MIT
