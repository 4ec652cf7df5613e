// Rewrites a function so that searches find the values of elements that pass
// through registers and packed pairs (scalar_form.c).
#ifndef CUTE_SCALAR_FORM_H
#define CUTE_SCALAR_FORM_H

#include "ir/ir.h"

// Returns a copy of fn in cx->scratch, in scalar form. The copy is valid until
// fn changes, and has no assertions.
const Fn *scalar_form(Ctx *cx, const Fn *fn);

#endif
// SPDX-License-Identifier: MIT
