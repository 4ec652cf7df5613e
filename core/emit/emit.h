// Fn -> CUDA C text, header-less.
#ifndef CUTE_EMIT_H
#define CUTE_EMIT_H

#include "ir/ir.h"

// Appends the CUDA C of fn for target sm (80, 90, ...) to out. lines[i] is
// the Fn.src index of the text's line i+1 (0: none), so that compiler
// messages can be told in the script's lines.
//
// The text needs no header and no include path. It is to be compiled with
// `options`: --fmad=false, since products and sums that the IR keeps apart are
// rounded apart, as in the simulator (where the kernel says fma it is one), and
// what ptxas.c says. Signed integers must not overflow, as in C. Fails with
// ERR_ARCH for what sm lacks.
typedef struct EmitOut {
  Buf text;
  VEC(uint32_t) lines;
  const char *name;     // of the function, in cx->scratch: no word of C's
  const char *options;  // of the compiler, with blanks between them
} EmitOut;
void emit_fn(Ctx *cx, const Fn *fn, int sm, EmitOut *out);
void emit_free(EmitOut *out);

#endif
