// Translation of a PTX entry to the IR (docs/ptx.md).
#ifndef PTX_TRANSLATE_H
#define PTX_TRANSLATE_H

#include "ir/ir.h"
#include "ptx/module.h"

// A parameter at this launch, or its bytes from `offset` on.
typedef struct PtxBound {
  uint32_t offset;  // bytes from the first parameter's first byte
  uint32_t var;     // or PtxModule.vars + 1: a module's variable, whose mem is
  Ref mem;          // a pointer: its GMEM object, or a tensor map's; else 0
  int64_t box;      // a tensor map's: bits that one copy moves
  Ref value;        // a scalar's value
  const char *bytes;  // or constant bytes
  uint32_t size;    // ... and how many
} PtxBound;

// Appends the body of entry f to fn, which is being traced. smem: bytes of
// dynamic shared memory; ptx_lines: instructions get lines of the PTX, not
// those of .loc. Errors: ERR_PTX, whose message names the line; ERR_ARG
// for parameters that do not fit.
void ptx_translate(Ctx *cx, Fn *fn, const PtxModule *m, const PtxFunc *f,
                   const PtxBound *bound, size_t n, int64_t smem,
                   const char *file, bool ptx_lines);

// The entry of that name, of that demangled name, or the only one that ends
// so. Errors: ERR_PTX, listing the entries.
// Reports whether an opcode's family is modelled; its modifiers may still be
// rejected by a translation.
bool ptx_models(const char *op);

// Pushes onto `used` the module's .global and .const variables that f names.
// Errors: ERR_PTX for those that cannot be passed.
typedef VEC(uint32_t) PtxVars;
void ptx_variables(Ctx *cx, const PtxModule *m, const PtxFunc *f,
                   PtxVars *used);

const PtxFunc *ptx_entry(Ctx *cx, const PtxModule *m, const char *name);

#endif
// SPDX-License-Identifier: MIT
