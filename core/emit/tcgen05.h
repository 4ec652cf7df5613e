// Writes tcgen05 operations and objects of tensor memory (tcgen05.c).
#ifndef CUTE_EMITTCGEN05_H
#define CUTE_EMITTCGEN05_H

#include "emit/inside.h"

// Writes a TMEM as a statement: the address of an object called `name`.
void tcgen05_object(Emit *e, Ref r, const char *name);
void tcgen05_mma(Emit *e, Ref r);   // writes the MMA as a statement
void tcgen05_copy(Emit *e, Ref r);  // writes TCLD, TCST, TCCP as a statement
// writes another tcgen05 operation as a statement
void tcgen05_call(Emit *e, const Ins *i);
// Write the helpers of an MMA, of a TCLD or TCST, and of a TCCP.
void tcgen05_mma_helper(Emit *e, const AtomUse *u);
void tcgen05_copy_helper(Emit *e, const AtomUse *u);
void tcgen05_rows_helper(Emit *e, const AtomUse *u);

#endif
// SPDX-License-Identifier: MIT
