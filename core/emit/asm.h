// Builds device functions that consist of one asm statement (asm.c).
#ifndef CUTE_EMITASM_H
#define CUTE_EMITASM_H

#include "emit/inside.h"

// Line breaks before the parameters of a function.
// - WHOLE: none.
// - FITS: one if the first line is otherwise longer than 80 columns.
// - SPLIT: always one.
typedef enum AsmLines { ASM_WHOLE, ASM_FITS, ASM_SPLIT } AsmLines;

// A function that is being built. Its PTX refers to operands as %0, %1 ...:
// first the outputs, then the inputs. Outputs and inputs are numbered in the
// order of the calls that added them. The fields after `name` are optional.
typedef struct AsmFn {
  Emit *e;
  const char *result;  // C type of the result
  const char *name;
  const char *over;  // text before the function, such as `template<...>`
  // C type of an output variable called r, which the function declares
  const char *r;
  const char *before;  // C code before the asm statement, and after it
  const char *after;
  // whether the asm statement has no `volatile`, so that the compiler may move
  // it
  bool movable;
  bool apart;  // whether a line break precedes the function's name
  bool line;  // whether a line break precedes the next parameter
  AsmLines lines;
  Buf params, out, in;
  int n;               // number of operands so far
} AsmFn;

// asm_param adds a parameter. asm_out and asm_in add an operand and return its
// number. asm_arg adds a parameter that is also an input.
void asm_param(AsmFn *f, const char *type, const char *name);
int asm_out(AsmFn *f, const char *constraint, const char *variable);
int asm_in(AsmFn *f, char constraint, const char *value);
int asm_arg(AsmFn *f, const char *type, const char *name, char constraint);

// Adds parameters for n registers called `name`. If `refs` is true, adds one
// for each register, otherwise a pointer to the first register. `out` says that
// the function sets the registers.
void asm_registers(AsmFn *f, bool refs, bool out, const char *type,
                   const char *name, int n);

// asm_braces returns the text of n register operands, such as {%4, %5}, for a
// string literal. The first number is *at. asm_constraints returns n asm
// operands with constraints, for registers called `name`.
const char *asm_braces(Emit *e, int n, int *at);
const char *asm_constraints(Emit *e, bool refs, const char *mode, char c,
                            const char *name, int n);

// Returns formatted text, such as PTX with the numbers of operands.
#define PTX(e, ...) arena_printf((e)->cx, &(e)->cx->scratch, __VA_ARGS__)

// Writes the function. `ptx` is its PTX as C string literals. `operands` is the
// text after these literals. In this text, $o stands for the outputs, $i for
// the inputs, and $I for the inputs with line breaks.
void asm_print(AsmFn *f, const char *ptx, const char *operands);
// Two parts of asm_print, for functions with more code. asm_head writes the
// first line. asm_statement writes the asm statement and clears the lists of
// operands.
void asm_head(AsmFn *f);
void asm_statement(AsmFn *f, const char *ptx, const char *operands);

#endif
// SPDX-License-Identifier: MIT
