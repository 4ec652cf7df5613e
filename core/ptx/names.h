// Interned names of a PTX module, and what each stands for where the parser is.
#ifndef PTX_NAMES_H
#define PTX_NAMES_H

#include "ptx/module.h"

typedef struct PtxNameEntry {
  const char *text;  // NULL: a free slot
  size_t n;
  int32_t var;       // PtxModule.vars of the innermost declaration, or -1
  uint32_t label;    // labels of the current function: the newest + 1, or 0
} PtxNameEntry;

// The entry of a name, made if it is missing. Valid until the next call.
PtxNameEntry *names_entry(Ctx *cx, PtxModule *m, const char *s, size_t n);
// The entry of a name, or NULL.
PtxNameEntry *names_find(const PtxModule *m, const char *s, size_t n);
void names_free(PtxModule *m);

#endif
// SPDX-License-Identifier: MIT
