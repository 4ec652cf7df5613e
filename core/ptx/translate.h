// Translation of a PTX entry to the IR (docs/ptx.md).
#ifndef PTX_TRANSLATE_H
#define PTX_TRANSLATE_H

#include "ir/ir.h"
#include "ptx/module.h"

// What a parameter, or the bytes of one from `offset` on, is at this launch.
typedef struct PtxBound {
  uint32_t offset;  // bytes from the first parameter's first byte
  uint32_t var;     // or PtxModule.vars + 1: a module's variable, whose mem is
  Ref mem;          // a pointer: its GMEM object, or a tensor map's; else 0
  int64_t box;      // of a tensor map: bits that one copy moves
  Ref value;        // a scalar's value
  const char *bytes;  // or constant bytes
  uint32_t size;    // ... and how many
} PtxBound;

// Appends the body of entry f to fn, which is being traced. smem: bytes of
// dynamic shared memory. Errors: ERR_PTX, whose message names the line; ERR_ARG
// for parameters that do not fit.
void ptx_translate(Ctx *cx, Fn *fn, const PtxModule *m, const PtxFunc *f,
                   const PtxBound *bound, size_t n, int64_t smem,
                   const char *file);

// The entry of that name, of that demangled name, or the only one that ends
// so. Errors: ERR_PTX, listing the entries.
// Pushes onto `used` the module's .global and .const variables that f names.
// Errors: ERR_PTX for those that cannot be passed.
typedef VEC(uint32_t) PtxVars;
void ptx_variables(Ctx *cx, const PtxModule *m, const PtxFunc *f,
                   PtxVars *used);

const PtxFunc *ptx_entry(Ctx *cx, const PtxModule *m, const char *name);

#endif
