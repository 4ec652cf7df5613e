// Translation of a PTX entry to the IR (docs/ptx.md).
#ifndef PTX_TRANSLATE_H
#define PTX_TRANSLATE_H

#include "base/tensormap.h"
#include "ir/ir.h"
#include "ptx/module.h"

// The value that a launch passes for a parameter, or for a part of a parameter.
// The part starts at byte `offset`.
typedef struct PtxBound {
  uint32_t offset;  // bytes from the start of the first parameter
  // 1 + the index in PtxModule.vars, if `mem` is the memory of a variable of
  // the module and not of a parameter; otherwise 0
  uint32_t var;
  Ref mem;          // GMEM object of a pointer or a tensor map; otherwise 0
  const TensorMap *map;  // the tensor map, or NULL
  Ref value;        // value of a scalar
  const char *bytes;  // constant bytes of a parameter, instead of `value`
  uint32_t size;    // number of bytes in `bytes`
} PtxBound;

// Flags of a translation.
enum {
  PTX_LINES = 1,  // instructions get the lines of the PTX text, not the source
                  // lines of .loc
  PTX_INIT_FENCED = 2,  // each mbarrier.init is followed by a
                        // fence.mbarrier_init
  // a TMA store that several lanes execute together is executed only once
  PTX_STORE_ONCE = 4,
  PTX_ALLOC_FENCED = 8,  // each tcgen05.alloc is followed by a
                         // fence.proxy.async
  // each use of a register that tcgen05.ld writes first waits for the load, as
  // in code that ptxas generates
  PTX_LOADS_ORDERED = 16,
  PTX_SETMAXNREG_ALIKE = 32,  // sets Fn.setmaxnreg_alike
};

// Appends the body of entry f to fn, which is being traced. `smem` is the
// number of bytes of dynamic shared memory. `flags` is PTX_LINES and others.
// Fails with ERR_PTX, whose message names the line, or with ERR_ARG for
// parameters that do not fit.
void ptx_translate(Ctx *cx, Fn *fn, const PtxModule *m, const PtxFunc *f,
                   const PtxBound *bound, size_t n, int64_t smem,
                   const char *file, unsigned flags);

// Returns the reason why an opcode is rejected because of its name or a
// modifier, or NULL if the opcode is accepted. A translation may still reject
// the instruction because of its operands.
const char *ptx_rejects(Ctx *cx, const char *op);
// Returns f with each call replaced by the text of the called function. This is
// f itself if there is nothing to replace, otherwise a copy, which is made only
// once. Errors: ERR_PTX for calls that cannot be replaced.
const PtxFunc *ptx_whole(Ctx *cx, PtxModule *m, const PtxFunc *f);

// Returns the number of bytes of f's shared variables. Sets *dynamic to whether
// f names an external array, whose size a launch specifies.
int64_t ptx_shared(const PtxModule *m, const PtxFunc *f, bool *dynamic);

// Pushes onto `used` the module's .global and .const variables that f names.
// Errors: ERR_PTX for variables that a launch cannot pass.
typedef VEC(uint32_t) PtxVars;
void ptx_variables(Ctx *cx, const PtxModule *m, const PtxFunc *f,
                   PtxVars *used);

// Returns the entry whose name, or demangled name, is `name`, or else the only
// entry whose name ends in `name`. Errors: ERR_PTX, listing the entries.
const PtxFunc *ptx_entry(Ctx *cx, const PtxModule *m, const char *name);

// ptx_function returns a number that represents the address of the function
// called `name`, or 0 if the module has no such function with a body.
// ptx_function_at returns the index of the function at such an address.
int64_t ptx_function(const PtxModule *m, const char *name);
static inline size_t ptx_function_at(int64_t address) {
  return (size_t)(address & INT32_MAX) / 16 - 1;
}

#endif
// SPDX-License-Identifier: MIT
