// Emits an Fn as CUDA C that needs no headers.
#ifndef CUTE_EMIT_H
#define CUTE_EMIT_H

#include "ir/ir.h"

// The result of emitting fn for target sm (80, 90, ...): CUDA C text. lines[i]
// is the Fn.src index of line i+1 of the text (0: none). `lines` serves to name
// lines of the script in compiler messages.
//
// The text must be compiled with `options`: --fmad=false, and the options that
// ptxas.c selects. Products and sums that are separate in the IR are then
// rounded separately, as in the simulator. A kernel's fma is rounded once.
// Signed integers must not overflow, as in C. Emitting fails with ERR_ARCH for
// operations that sm lacks.
typedef struct EmitOut {
  Buf text;
  VEC(uint32_t) lines;
  // The function's name in the text, in cx->scratch. The name is not a reserved
  // word of C++ or CUDA.
  const char *name;
  const char *options;  // compiler options, separated by blanks
} EmitOut;
void emit_fn(Ctx *cx, const Fn *fn, int sm, EmitOut *out);
void emit_free(EmitOut *out);

#endif
// SPDX-License-Identifier: MIT
