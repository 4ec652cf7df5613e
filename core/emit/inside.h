// Shared state and functions of the emitter, except expressions (expr.h): the
// plan of uses, text and names, statements, helper functions.
#ifndef CUTE_EMITINSIDE_H
#define CUTE_EMITINSIDE_H

#include "emit/emit.h"
#include "ir/operands.h"

// How an instruction appears in the text.
typedef enum How {
  HOW_DEAD,    // nowhere, because no live instruction needs it
  HOW_INLINE,  // inside the expressions that use it
  HOW_NAME     // as a statement of its own (a value: `const int i0 = ...;`)
} How;

typedef struct Use {
  uint32_t uses;     // number of occurrences of its text or name
  Ref last;          // last statement that needs it
  Ref root;          // for an inlined instruction, the statement that contains
                     // it
  Ref pair;          // for a store, the store of the other half word that is
                     // merged with it
  uint16_t weight;   // for a statement, the number of expressions inlined in it
  uint8_t how;       // How
  bool cross;        // whether it is needed in another loop than its own
  bool rolled;       // whether it is a loop that the compiler must not unroll
  Ref leaves;        // BREAKIF: the region that C's break does not leave, or 0
  const char *label;  // for a region: goto label after its end, or NULL
  const char *name;  // C identifier (HOW_NAME, memory objects, parameters)
} Use;

// A register array as declared: `words` words of `wbits` bits each.
typedef struct Regs {
  int wbits;
  int64_t words;
  const char *ctype;  // type of a word
  DType type;         // element type of a word, or u32 when packed
  bool vector;        // whether it is accessed through uint2 or uint4
  bool taken;         // whether its address is taken, by an atom's helper or a
                      // wider view
  bool scalars;       // whether it is declared word by word: r_0, r_1, ...
} Regs;

// An atom that the kernel uses, and how its helper receives registers.
typedef struct AtomUse {
  bool mma;
  int id;
  bool refs;      // registers are passed one by one; otherwise as pointers to
                  // consecutive words
  bool same, separate;  // MMA; same: some call has D equal to C; separate: some
                        // call has D separate from C
} AtomUse;

// Small functions that a kernel may call, blocks of prelude*.cu.
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
  Use *use;           // use of each instruction, parallel to fn->ins
  Regs *regs;         // registers of each memory object, parallel to fn->mem
  bool *address, *pointer;  // by fn->ins, for shared memory: whether its shared
                            // address, or a pointer to it, is needed
  bool *fresh;        // by fn->ins: first write to a register word
  bool *known;        // by fn->ins, or NULL: see known.c
  uint32_t temp[26];  // numbers of temporaries, by letter
  const char *count;  // name of the counter of loops that fill registers, or
                      // NULL
  bool helper[H_COUNT];  // needed helpers
  AtomUse *atom;
  int64_t *intrin;    // Ins.imm of intrinsics that need a helper
  bool sreg[SR_COUNT];  // special registers that need a helper
  struct MbarCall *mbar;
  struct BulkCall *bulk;
  struct Access **access;
  struct Retire *retire;  // wgmma.h
  Ref *open;          // first instructions (heads) of the open regions
  size_t natom, nintrin, naccess, nmbar, nbulk, nopen, nretire;
  struct NameCell *names;    // hash table
  size_t nnames, namecap;
  int depth;          // number of open regions
  uint32_t src;       // Fn.src index of the line being written
  uint32_t told;      // Fn.src index of the last source line named in a comment
} Emit;

// ---- pack16.c ----
// Returns fn with pairs of 16-bit float operations merged where sm supports it,
// or fn itself if there are none. In cx->scratch.
const Fn *pack16_run(Ctx *cx, const Fn *fn, int sm);

// ---- uses.c ----
void uses_run(Emit *e);
// Reports whether a run of registers is consecutive words, aligned to a word.
bool uses_run_of_words(const Emit *e, const Operand *o);
int64_t uses_int(const Emit *e, Ref r);  // value of a constant
int uses_bits(DType t);  // register bits of an element
const AtomUse *uses_atom(const Emit *e, bool mma, int64_t id);
bool uses_is_line(const Emit *e, Ref r);  // reports whether r has its own line
const char *ptxas_options(const Emit *e);  // ptxas.c: compiler options

// ---- text.c ----
void text_puts(Emit *e, const char *s);
void text_printf(Emit *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_quoted(Emit *e, char c);  // a character of a string literal
void text_parens(Emit *e, size_t at);    // parenthesises the text since `at`
void text_begin(Emit *e, const Ins *i);  // starts a statement, and writes its
                                         // comment
void text_indent(Emit *e);
void text_end(Emit *e);                  // ends a statement by ";\n"
void text_newline(Emit *e);
void text_wrap(Emit *e, const char *s);  // writes s, then a blank or a new line
_Noreturn void text_no_way(Emit *e, const Ins *i, const char *what);

// ---- names.c ----
void names_reserve(Emit *e, const char *s);  // excludes s from the names
void names_reserve_words(Emit *e);           // excludes words of C++ and CUDA
// Returns a script's name as an identifier not reserved by the compiler.
const char *names_identifier(Emit *e, const char *want);
const char *names_new(Emit *e, const char *want);  // returns a unique name
// names_new_and returns a name that is unique with and without `suffix`.
// names_new_run returns one that is unique with each of _0 to _(n-1) appended.
const char *names_new_and(Emit *e, const char *want, const char *suffix);
const char *names_new_run(Emit *e, const char *want, int64_t n);
const char *names_kernel(Emit *e);           // reserves the name of the
                                             // function itself

// ---- stmt.c ----
Ref stmt_store(Emit *e, Ref r);  // returns the last instruction written
void stmt_fill(Emit *e, Ref r);
void stmt_put(Emit *e, Ref r);
void stmt_copy(Emit *e, Ref r);
void stmt_async(Emit *e, Ref r);

// ---- helper.c ----
const char *helper_use(Emit *e, Helper h);  // marks as needed, returns the name
// Marks the helpers that text calls as needed, except `own`.
void helper_note(Emit *e, const char *text, const char *own);
void helper_reserve(Emit *e);  // the names of all helpers
void helper_print(Emit *e);    // appends the needed helpers

// ---- atomtext.c ----
const char *atomtext_name(Emit *e, bool mma, int id);  // name of its helper
// Returns the C type of a register from its constraint letter and contents.
const char *atomtext_reg_type(char constraint, DType t);
void atomtext_reserve(Emit *e);  // names of all used atoms
void atomtext_print(Emit *e);    // their helpers

#endif
// SPDX-License-Identifier: MIT
