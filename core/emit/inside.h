// State and functions that the files of the emitter share, except expressions
// (expr.h).
#ifndef CUTE_EMITINSIDE_H
#define CUTE_EMITINSIDE_H

#include "emit/emit.h"
#include "ir/operands.h"

// How an instruction appears in the CUDA text.
typedef enum How {
  HOW_DEAD,    // not in the text, because no live instruction needs the value
  HOW_INLINE,  // inside the expressions that use its value
  HOW_NAME     // as a separate statement, for example `const int i0 = ...;`
} How;

typedef struct Use {
  uint32_t uses;     // how often the value's expression or name occurs in the
                     // text
  Ref last;          // the last statement of the text that needs the value
  Ref root;  // the statement that contains the expression, if it is inlined
  // for a store to one half of a register word: the store to the other half, if
  // one assignment performs both
  Ref pair;
  uint16_t weight;   // for a statement: number of expressions inlined in it
  uint8_t how;       // a How
  // whether the value is needed by a loop that does not contain the instruction
  bool cross;
  bool rolled;       // for a loop: whether the compiler must not unroll it
  // for a BREAKIF: the region that it leaves by `goto`; 0: `break` suffices
  Ref leaves;
  const char *label;  // for a region: the goto label after its end, or NULL
  // C identifier of a named value, a memory object or a parameter
  const char *name;
} Use;

// Declaration of a register array: `words` words of `wbits` bits.
typedef struct Regs {
  int wbits;
  int64_t words;
  const char *ctype;  // C type of a 32-bit or 64-bit word
  DType type;         // element type if a word holds one element, otherwise u32
  bool vector;  // whether vector copies access the array by uint2 or uint4
  // whether the address of the array is taken: a helper gets a pointer to it,
  // or a view with wider elements accesses it through a pointer
  bool taken;
  bool scalars;       // whether each word is a scalar variable: r_0, r_1, ...
} Regs;

// An atom that the kernel uses, and how its helper receives registers.
typedef struct AtomUse {
  bool mma;
  int id;
  // whether registers are passed one by one, not as a pointer to consecutive
  // words
  bool refs;
  // MMAs: `same` says that some call has the same registers for D and C.
  // `separate` says that some call has different registers for them.
  bool same, separate;
} AtomUse;

// Helper functions that a kernel may call, which are blocks of prelude*.cu.
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
  Use *use;           // an element for each instruction in fn->ins
  Regs *regs;         // an element for each memory object in fn->mem
  // for each instruction that declares an object: whether the text needs the
  // shared address of the object, and whether it needs a pointer to the object
  bool *address, *pointer;
  // for each store, whether it is the first write to its register word
  bool *fresh;
  // for each instruction, whether the compiler can fold its value (known.c);
  // NULL: not computed
  bool *known;
  // for each letter of the alphabet: the number that the next temporary
  // variable with this letter gets
  uint32_t temp[26];
  // name of the counter in loops that fill register arrays, or NULL
  const char *count;
  bool helper[H_COUNT];  // which helpers are needed
  AtomUse *atom;
  int64_t *intrin;    // Ins.imm of each intrinsic that needs a helper
  bool sreg[SR_COUNT];  // which special registers need a helper
  struct MbarCall *mbar;
  struct BulkCall *bulk;
  struct Access **access;
  // waits for pending asynchronous operations on registers (retire.h)
  struct Retire *retire;
  // the instructions that opened the regions around the current one
  Ref *open;
  size_t natom, nintrin, naccess, nmbar, nbulk, nopen, nretire;
  struct NameCell *names;    // hash table of the names in use
  size_t nnames, namecap;
  int depth;          // number of open regions
  uint32_t src;       // Fn.src index of the statement that is being written
  uint32_t told;  // line that the last comment named, as an Fn.src index
} Emit;

// ---- pack16.c ----
// Merges pairs of operations on 16-bit floats. Returns a rewritten copy of fn
// in cx->scratch, or fn itself if fn has no such pairs or sm cannot merge them.
const Fn *pack16_run(Ctx *cx, const Fn *fn, int sm);

// ---- uses.c ----
void uses_run(Emit *e);
// Reports whether the registers of operand o are consecutive words of an array.
// Each register must begin at a word.
bool uses_run_of_words(const Emit *e, const Operand *o);
int64_t uses_int(const Emit *e, Ref r);  // returns the value of constant r
// Returns the bits that an element occupies in registers.
int uses_bits(DType t);
const AtomUse *uses_atom(const Emit *e, bool mma, int64_t id);
// Reports whether instruction r is a separate statement in the text.
bool uses_is_line(const Emit *e, Ref r);
// ---- ptxas.c ----
// Returns the compiler options for the text.
const char *ptxas_options(const Emit *e);

// ---- text.c ----
void text_puts(Emit *e, const char *s);
void text_printf(Emit *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_quoted(Emit *e, char c);  // writes a character of a string literal
// adds parentheses around the text since position `at`
void text_parens(Emit *e, size_t at);
// Starts the statement of instruction i. If its script line differs from the
// one in the last such comment, first writes a comment that names the line.
void text_begin(Emit *e, const Ins *i);
void text_indent(Emit *e);
// ends a statement with a semicolon and a newline
void text_end(Emit *e);
void text_newline(Emit *e);
// Writes s, followed by a blank or, at the end of a line, a line break.
void text_wrap(Emit *e, const char *s);
_Noreturn void text_no_way(Emit *e, const Ins *i, const char *what);

// ---- names.c ----
// Excludes s from the names that names_new returns.
void names_reserve(Emit *e, const char *s);
// Excludes the reserved words of C++ and CUDA from the names that names_new
// returns.
void names_reserve_words(Emit *e);
// Turns `want`, a name of the script, into a C identifier that the compiler
// does not reserve.
const char *names_identifier(Emit *e, const char *want);
// Returns a new name, similar to `want`, that is not in use.
const char *names_new(Emit *e, const char *want);
// names_new_and returns a new name such that name + `suffix` is not in use
// either. names_new_run returns a new name such that name_0 to name_(n-1) are
// not in use.
const char *names_new_and(Emit *e, const char *want, const char *suffix);
const char *names_new_run(Emit *e, const char *want, int64_t n);
// Returns the name of the kernel, and reserves it.
const char *names_kernel(Emit *e);

// ---- stmt.c ----
// Writes store r. Returns the last instruction that this text covers: r, or a
// second store that was merged with r.
Ref stmt_store(Emit *e, Ref r);
void stmt_fill(Emit *e, Ref r);
void stmt_put(Emit *e, Ref r);
void stmt_copy(Emit *e, Ref r);
void stmt_async(Emit *e, Ref r);

// ---- helper.c ----
// Marks helper h as needed by the text. Returns the helper's name.
const char *helper_use(Emit *e, Helper h);
// Marks all helpers that `text` calls as needed, except the helper `own`.
void helper_note(Emit *e, const char *text, const char *own);
void helper_reserve(Emit *e);  // reserves the names of all helpers
void helper_print(Emit *e);    // writes the needed helper functions

// ---- atomtext.c ----
// Returns the name of the atom's helper.
const char *atomtext_name(Emit *e, bool mma, int id);
// Returns the C type of a register with contents of type t. `constraint` is the
// constraint letter of its asm operand.
const char *atomtext_reg_type(char constraint, DType t);
// Reserves the names of the helpers of all atoms in use.
void atomtext_reserve(Emit *e);
// Writes the helpers of all atoms in use.
void atomtext_print(Emit *e);

#endif
// SPDX-License-Identifier: MIT
