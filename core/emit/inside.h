// The state of an emission, and what is no expression: the plan of uses, text
// and names, statements, the functions in front. Expressions: expr.h.
#ifndef CUTE_EMITINSIDE_H
#define CUTE_EMITINSIDE_H

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
  Ref leaves;        // BREAKIF: the region that C's break does not leave, or 0
  const char *label;  // a region: behind its end, for a goto
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

// Small functions that a kernel may need, blocks of prelude*.cu.
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
  bool *address, *pointer;  // beside fn->ins: is one of shared memory needed?
  bool *fresh;        // beside fn->ins: first write to a word of registers
  bool *known;        // beside fn->ins, or NULL: see known.c
  uint32_t temp[26];  // numbers of temporaries, by letter
  const char *count;  // counter of the loops that fill registers, or NULL
  bool helper[H_COUNT];  // those needed
  AtomUse *atom;
  int64_t *intrin;    // Ins.imm of the intrinsics that need a helper
  bool sreg[SR_COUNT];  // special registers that need one
  struct MbarCall *mbar;
  struct BulkCall *bulk;
  struct Access **access;
  struct Retire *retire;  // wgmma.h
  Ref *open;          // heads of the regions that are open
  size_t natom, nintrin, naccess, nmbar, nbulk, nopen, nretire;
  struct NameCell *names;    // hash table
  size_t nnames, namecap;
  int depth;          // of regions
  uint32_t src;       // Fn.src index of the line being written
  uint32_t told;      // the one last told in a comment
} Emit;

// ---- pack16.c ----
// fn with pairs of operations on 16-bit floats as one where sm has that; fn
// itself where there are none. In cx->scratch.
const Fn *pack16_run(Ctx *cx, const Fn *fn, int sm);

// ---- uses.c ----
void uses_run(Emit *e);
// Is a run of registers one of consecutive words, starting at a word?
bool uses_run_of_words(const Emit *e, const Operand *o);
int64_t uses_int(const Emit *e, Ref r);  // of a constant
int uses_bits(DType t);  // that an element takes in registers
const AtomUse *uses_atom(const Emit *e, bool mma, int64_t id);
bool uses_is_line(const Emit *e, Ref r);  // has r a line of its own?
const char *ptxas_options(const Emit *e);  // ptxas.c: the compiler's

// ---- text.c ----
void text_puts(Emit *e, const char *s);
void text_printf(Emit *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_quoted(Emit *e, char c);  // a character of a string literal
void text_parens(Emit *e, size_t at);    // about what was written since `at`
void text_begin(Emit *e, const Ins *i);  // a statement of i: comment, indent
void text_indent(Emit *e);
void text_end(Emit *e);                  // ";\n"
void text_newline(Emit *e);
void text_wrap(Emit *e, const char *s);  // s, and a blank or a new line
_Noreturn void text_no_way(Emit *e, const Ins *i, const char *what);

// ---- names.c ----
void names_reserve(Emit *e, const char *s);  // never to be given
void names_reserve_words(Emit *e);           // those of C++ and CUDA
// A name of the script as an identifier that is none of the compiler's own.
const char *names_identifier(Emit *e, const char *want);
const char *names_new(Emit *e, const char *want);  // a unique one
// One that is unique with `suffix` behind it, too; with each of _0 to _(n-1).
const char *names_new_and(Emit *e, const char *want, const char *suffix);
const char *names_new_run(Emit *e, const char *want, int64_t n);
const char *names_kernel(Emit *e);           // of the function itself

// ---- stmt.c ----
Ref stmt_store(Emit *e, Ref r);  // returns the last instruction written
void stmt_fill(Emit *e, Ref r);
void stmt_put(Emit *e, Ref r);
void stmt_copy(Emit *e, Ref r);
void stmt_async(Emit *e, Ref r);

// ---- helper.c ----
const char *helper_use(Emit *e, Helper h);  // its name; it is needed
// Those that text calls, but for the one called `own`, are needed.
void helper_note(Emit *e, const char *text, const char *own);
void helper_reserve(Emit *e);  // the names of all helpers
void helper_print(Emit *e);    // appends those needed

// ---- atomtext.c ----
const char *atomtext_name(Emit *e, bool mma, int id);  // of its helper
// C type of a register by constraint letter and what it holds.
const char *atomtext_reg_type(char constraint, DType t);
void atomtext_reserve(Emit *e);  // the names of all that are used
void atomtext_print(Emit *e);    // their helpers

#endif
