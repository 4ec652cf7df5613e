// Interned names of a PTX module, and the declaration that each name has in the
// parser's current scope.
#ifndef PTX_NAMES_H
#define PTX_NAMES_H

#include "ptx/module.h"

typedef struct PtxNameEntry {
  const char *text;  // NULL in a free entry
  size_t n;
  int32_t var;       // index into PtxModule.vars of the innermost declaration,
                     // or -1
  // 1 + number of the newest label with this name in the function, or 0
  uint32_t label;
} PtxNameEntry;

// Returns the entry of a name, and creates the entry if it is missing. The
// pointer is valid until the next call of this function.
PtxNameEntry *names_entry(Ctx *cx, PtxModule *m, const char *s, size_t n);
// Returns the entry of a name, or NULL if the name has no entry.
PtxNameEntry *names_find(const PtxModule *m, const char *s, size_t n);
void names_free(PtxModule *m);

#endif
// SPDX-License-Identifier: MIT
