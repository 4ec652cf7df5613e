// Emits a function of the IR as CUDA C that needs no headers.
#ifndef CUTE_EMIT_H
#define CUTE_EMIT_H

#include "ir/ir.h"

// The CUDA C text of a function for one target sm (80, 90, ...). lines[i] is
// the Fn.src index of line i + 1 of the text, or 0. It serves to name lines of
// the script in compiler messages.
//
// Compile the text with `options`: --fmad=false, and the options that ptxas.c
// selects. Multiplications and additions that are separate in the IR are then
// rounded separately, as in the simulator. A kernel's fma is rounded once.
// Signed integers must not overflow, as in C. emit_fn fails with ERR_ARCH for
// operations that sm lacks.
typedef struct EmitOut {
  Buf text;
  VEC(uint32_t) lines;
  // The function's name in the text, allocated in cx->scratch. It is not a
  // reserved word of C++ or CUDA.
  const char *name;
  const char *options;  // compiler options, separated by blanks
} EmitOut;
void emit_fn(Ctx *cx, const Fn *fn, int sm, EmitOut *out);
void emit_free(EmitOut *out);

#endif
// SPDX-License-Identifier: MIT
