// What the parts of the emitter share: emit.c (the walk), uses.c (what is
// written where), expr.c, convert.c and warp.c (expressions), stmt.c
// (statements that move data), helper.c (helper functions), atomtext.c (those
// of atoms).
#ifndef CUTE_EMITX_H
#define CUTE_EMITX_H

#include "emit/emit.h"
#include "ir/operands.h"

// How an instruction appears in the text.
typedef enum How {
  HOW_DEAD,    // nowhere: nothing live needs it
  HOW_INLINE,  // inside the expressions that use it
  HOW_NAME     // a statement of its own (a value: `const int i0 = ...;`)
} How;

typedef struct Use {
  uint32_t uses;     // places where its text or name stands
  Ref last;          // the last statement that needs it
  Ref root;          // inlined: the statement it goes into
  Ref pair;          // a store: that of the other half word, joined to it
  uint16_t weight;   // a statement: how many expressions went into it
  uint8_t how;       // How
  bool cross;        // needed in another loop than its own
  bool rolled;       // a loop: the compiler is not to unroll it
  const char *name;  // C identifier (HOW_NAME, memory objects, parameters)
} Use;

// A register array as declared: `words` of `wbits` bits each.
typedef struct Regs {
  int wbits;
  int64_t words;
  const char *ctype;  // of a word
  DType type;         // what a word is: its element, or u32 when packed
  bool vector;        // read or written through uint2 or uint4
  bool taken;         // its address is: an atom's helper, a wider view
  bool scalars;       // declared word by word: r_0, r_1, ...
} Regs;

// An atom that the kernel uses, and how its helper takes registers.
typedef struct AtomUse {
  bool mma;
  int id;
  bool refs;      // one by one; else as pointers to consecutive words
  bool same, separate;  // MMA: calls where D is C, and where it is not
} AtomUse;

// A memory access with hints and its helper function.
typedef struct Access {
  DType type;
  bool smem, atom, st, cas;
  const char *ptx, *name;
} Access;

typedef struct NameCell {
  const char *s;
  uint32_t next;  // suffix to try next
} NameCell;

// Small functions that a kernel may need, blocks of prelude.cu.
typedef enum Helper {
#define HELPER(id, name, text) H_##id,
#include "emit/prelude.inc"
#undef HELPER
  H_COUNT
} Helper;

typedef struct Emit {
  Ctx *cx;
  const Fn *fn;
  int sm;
  EmitOut *out;
  Use *use;           // beside fn->ins
  Regs *regs;         // beside fn->mem
  bool *address;      // beside fn->ins: a 32-bit shared address is needed
  bool *pointer;      // beside fn->ins: a pointer is needed
  bool *fresh;        // beside fn->ins: first write to a word of registers
  uint32_t temp[26];  // numbers of temporaries, by letter
  const char *count;  // counter of the loops that fill registers, or NULL
  bool helper[H_COUNT];  // those needed
  AtomUse *atom;
  size_t natom;
  int64_t *intrin;    // Ins.imm of the intrinsics that need a helper
  size_t nintrin;
  Access **access;
  size_t naccess;
  NameCell *names;    // hash table
  size_t nnames, namecap;
  int depth;          // of regions
  uint32_t src;       // Fn.src index of the line being written
  uint32_t told;      // the one last told in a comment
} Emit;

// Precedences of C, tightest last.
typedef enum Prec {
  PR_ANY, PR_COND, PR_OROR, PR_ANDAND, PR_OR, PR_XOR, PR_AND, PR_EQ, PR_REL,
  PR_SHIFT, PR_ADD, PR_MUL, PR_UNARY, PR_POST
} Prec;

// A sum of integers, taken apart: terms, and the constant that comes last.
enum { LIN_MAX = 24 };
typedef struct Lin {
  Ref term[LIN_MAX];
  bool minus[LIN_MAX];
  int n;
  int64_t k;
} Lin;

// ---- uses.c ----
void uses_run(Emit *e);
// Is a run of registers one of consecutive words, starting at a word?
bool uses_run_of_words(const Emit *e, const Operand *o);
int64_t uses_int(const Emit *e, Ref r);  // of a constant
int uses_bits(DType t);  // that an element takes in registers

// ---- expr.c ----
void expr_puts(Emit *e, const char *s);
void expr_printf(Emit *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
// A name of the script as an identifier that is none of the compiler's own.
const char *expr_identifier(Emit *e, const char *want);
const char *expr_name(Emit *e, const char *want);  // a unique one
// A unique identifier that is one with `suffix` behind it, too.
const char *expr_name_and(Emit *e, const char *want, const char *suffix);
void expr_quoted(Emit *e, char c);  // a character of a string literal
void expr_reserve(Emit *e, const char *s);         // never to be given
// A name such that name_0 to name_(n-1) are unique identifiers.
const char *expr_names(Emit *e, const char *want, int64_t n);
// Writes r's text, parenthesised when it binds looser than `min`; returns how
// it binds then.
Prec expr_val(Emit *e, Ref r, Prec min);
// The expression behind r (its own definition); returns its precedence.
Prec expr_def(Emit *e, Ref r);
// Is t kept as raw bits and computed in f32?
bool expr_small_float(DType t);
// A value of a small float type (or f32) as f32.
void expr_f32(Emit *e, Ref r, Prec min);
// Pointer to element `off` of a GMEM or SMEM object: `A + x + 64`.
void expr_pointer(Emit *e, Ref mem, Ref off, Prec min);
// The element itself, as an lvalue: `A[x + 64]`.
void expr_element(Emit *e, Ref mem, Ref off);
// 32-bit shared address of an element: `sA_addr + x * 2u + 128u`.
void expr_address(Emit *e, Ref mem, Ref off);
// A register element, offset in elements of mem's type, as a value of t.
void expr_reg(Emit *e, Ref mem, int64_t off, DType t);
// The word of registers that holds bit `bit` of the object: `tCrA[3]`, or
// `tCrA_3`.
void expr_word(Emit *e, Ref mem, int64_t bit);
// Both sides of `tCrA[3] = value`: the value goes between, binding as unary.
// fresh: nothing else was in the word yet.
void expr_reg_open(Emit *e, Ref mem, int64_t off, DType t, bool fresh);
void expr_reg_close(Emit *e, Ref mem, int64_t off, DType t);
// Value r as a word of registers of type t.
void expr_as_word(Emit *e, Ref r, DType t);
// A store of an element below a byte, without the semicolon.
void expr_store_bits(Emit *e, const Ins *i);
_Noreturn void expr_no_way(Emit *e, const Ins *i, const char *what);

// ---- convert.c ----
Prec convert_convert(Emit *e, const Ins *i);
Prec convert_bitcast(Emit *e, const Ins *i);
const char *convert_bits(DType from, DType to);  // "__float_as_uint"
// f32 of a small float: "bf16_to_f32"; and back.
const char *convert_to_f32(Emit *e, const Ins *i, DType t);
const char *convert_from_f32(Emit *e, const Ins *i, DType t);

// ---- warp.c ----
Prec warp_atomic(Emit *e, const Ins *i);

// ---- ptx.c ----
Prec ptx_value(Emit *e, const Ins *i);   // INTRIN, ASK
void ptx_mask(Emit *e, Ref mask);         // of lanes
void ptx_asm(Emit *e, Ref r);            // ASM, a statement
Prec ptx_access(Emit *e, const Ins *i);  // LD, ST, ATOMIC with hints
// What is used, noted before anything is written; names; helpers.
void ptx_note(Emit *e, const Ins *i);
void ptx_note_access(Emit *e, const Ins *i);
void ptx_reserve(Emit *e);
void ptx_print(Emit *e);

// ---- stmt.c ----
void stmt_begin(Emit *e, const Ins *i);  // a statement of i: comment, indent
void stmt_indent(Emit *e);
void stmt_end(Emit *e);                  // ";\n"
void stmt_newline(Emit *e);
void stmt_wrap(Emit *e, const char *s);  // s, and a blank or a new line
bool stmt_is_line(const Emit *e, Ref r);  // has r a line of its own?
Ref stmt_store(Emit *e, Ref r);  // returns the last instruction written
void stmt_fill(Emit *e, Ref r);
void stmt_copy(Emit *e, Ref r);
void stmt_async(Emit *e, Ref r);

// ---- helper.c ----
const char *helper_use(Emit *e, Helper h);  // its name; it is needed
void helper_reserve(Emit *e);  // the names of all helpers
void helper_print(Emit *e);    // appends those needed
// The cp.async helper for these bits and flags, likewise.
const char *helper_async(Emit *e, int64_t bits, unsigned flags, bool pred);

// ---- atomtext.c ----
const char *atomtext_name(Emit *e, bool mma, int id);  // of its helper
// C type of a register by constraint letter and what it holds.
const char *atomtext_reg_type(char constraint, DType t);
void atomtext_print(Emit *e, const AtomUse *u);  // the helper's text

#endif
