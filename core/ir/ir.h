// Builds and inspects functions of the IR (fn.h).
#ifndef CUTE_IR_H
#define CUTE_IR_H

#include "ir/fn.h"

// The current work of a context, Ctx.work.
struct Work {
  Fn *fn;        // the function being traced, or NULL on the host
  Fn *aside;     // function that ir_aside suspended, or NULL
  uint32_t fns;  // functions traced so far
  Buf *steps;    // receives the steps of the algebra, or NULL (explain_say)
};

// Returns the function being traced, or NULL on the host.
static inline Fn *ir_fn(const Ctx *cx) {
  return cx->work ? cx->work->fn : NULL;
}

// Makes fn the function being traced (NULL: the host). The context has a Work.
static inline void ir_trace(Ctx *cx, Fn *fn) { cx->work->fn = fn; }

// Suspends tracing until ir_back; an error calls ir_back, too.
static inline void ir_aside(Ctx *cx) {
  cx->work->aside = cx->work->fn;
  cx->work->fn = NULL;
}

static inline void ir_back(Ctx *cx) {
  if (!cx->work || !cx->work->aside) return;
  cx->work->fn = cx->work->aside;
  cx->work->aside = NULL;
}

// ---- building (ctx errors: memory, type mismatch) ----
uint32_t ir_text(Ctx *cx, Fn *fn, const char *s, size_t n);  // interned
const char *ir_str(const Fn *fn, uint32_t text);
void ir_at(Ctx *cx, Fn *fn, const char *file, uint32_t line);
// Names r after the script's variable unless it has a name.
void ir_name(Ctx *cx, Fn *fn, Ref r, const char *name);

Ref ir_int(Ctx *cx, Fn *fn, DType t, int64_t v);
Ref ir_float(Ctx *cx, Fn *fn, DType t, double v);
Ref ir_sreg(Ctx *cx, Fn *fn, SReg r);
Ref ir_op1(Ctx *cx, Fn *fn, Op op, Ref a);
Ref ir_op2(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);  // ADD .. NE, SHL, SHR
Ref ir_op3(Ctx *cx, Fn *fn, Op op, Ref a, Ref b, Ref c);  // FMA, SEL
Ref ir_math(Ctx *cx, Fn *fn, MathFn f, Ref a, Ref b);
Ref ir_cvt(Ctx *cx, Fn *fn, DType t, Ref a);
Ref ir_bitcast(Ctx *cx, Fn *fn, DType t, Ref a);
// Appends any other instruction unchanged. Use operands_emit if it has more
// operands than Ins.a[] holds.
Ref ir_emit(Ctx *cx, Fn *fn, Ins ins);
// Declares a memory object, sets m.ref and returns that Ref.
Ref ir_mem(Ctx *cx, Fn *fn, Mem m);
// DSMEM: declares a shared object as seen in the CTA of rank `rank`.
Ref ir_mem_of(Ctx *cx, Fn *fn, Mem m, Ref object, Ref rank);
// PTR: declares global memory at an i64 address, which may alias any argument.
Ref ir_at_address(Ctx *cx, Fn *fn, Mem m, Ref address);
// TMAPAT: declares a tensor map in memory of object, with the boxes of `map`.
Ref ir_map_at(Ctx *cx, Fn *fn, Ref object, Ref offset, Ref map);
// Computes `a op b` in the index domain: the operands are converted to a common
// type (i64 if either is).
Ref ir_index(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);

// Regions: ir_open appends FOR/LOOP/ONCE/IF and enters it; ir_else and ir_close
// append ELSE and END.
Ref ir_open(Ctx *cx, Fn *fn, Ins ins);
void ir_else(Ctx *cx, Fn *fn);
void ir_close(Ctx *cx, Fn *fn);
// Reports whether r was computed in a region that is still open.
bool ir_visible(const Fn *fn, Ref r);

// Narrow the facts about r: permanently, from its definition (ir_narrow), or
// until the open region ends, from an assumption or a branch condition
// (ir_assume).
void ir_narrow(Fn *fn, Ref r, Fact f);
void ir_assume(Ctx *cx, Fn *fn, Ref r, Fact f);

// Appends a check (fn.h) at the current instruction and line.
void ir_claim(Ctx *cx, Fn *fn, Claim c);

// A mark to roll back to, which removes everything appended after it.
typedef struct IrMark {
  uint32_t serial;       // serial of the function
  uint32_t birth, scope;  // serial of the last instruction, and of the
                          // innermost region
  uint32_t ins, ext, reg, mem, region, open, assumed, claim;
  int64_t smem;
} IrMark;
IrMark ir_mark(const Fn *fn);
// Returns false, with nothing changed, if fn does not continue from the mark.
bool ir_rollback(Fn *fn, IrMark m);
// Returns a hash of the instructions appended since the mark, without names and
// lines. Two passes appended after the same mark are equivalent if their hashes
// are equal.
uint64_t ir_digest(const Fn *fn, IrMark m);

// ---- looking ----
static inline const Ins *ir_get(const Fn *fn, Ref r) { return &fn->ins.p[r]; }
static inline DType ir_type(const Fn *fn, Ref r) { return fn->ins.p[r].type; }
static inline Fact ir_fact(const Fn *fn, Ref r) { return fn->fact.p[r]; }
bool ir_const(const Fn *fn, Ref r, int64_t *v);   // integer/pred constant
bool ir_unrolled(const Fn *fn, Ref r);  // a constant, or constant in each
                                        // iteration of fully unrolled loops
bool ir_is_mem(const Fn *fn, Ref r);
bool ir_is_aside(const Ins *i);  // serves only checks
static inline const Mem *ir_memof(const Fn *fn, Ref r) {
  return &fn->mem.p[fn->ins.p[r].imm];
}
const char *ir_space(Space s);       // "gmem"
const char *ir_space_word(Space s);  // "global"

// Marks the pointer arguments that the function reads and writes.
void ir_mark_arguments(Fn *fn);
// Reports whether the memory of argument k may be modified through another one.
bool ir_arg_shared(const Fn *fn, size_t k);
// Reports whether fn accesses memory at addresses, which may alias any
// argument.
bool ir_has_addresses(const Fn *fn);
// Returns the number of named barriers that a block uses. ptxas counts up to
// the highest number, and all of them if a number is not constant.
enum { MOST_BARRIERS = 16 };
int ir_barriers(const Fn *fn);

// dump.c: writes the function as text, one instruction a line, regions
// indented. `bare` omits the script's names and lines.
void dump_fn(Ctx *cx, const Fn *fn, bool bare, Buf *out);
// Dumps single instructions, as dump_fn writes them; in cx->scratch.
typedef struct Dump Dump;
Dump *dump_new(Ctx *cx, const Fn *fn, Buf *out);
void dump_ins(Dump *d, Ref r);

// verify.c: verifies types, arity, regions, visibility, register indices and
// atom operands; fails with ERR_INTERNAL naming the instruction.
void check_fn(Ctx *cx, const Fn *fn);
// Returns the threads that execute i together: those of its op or of its row
// (never WHO_ROW).
Who check_who(const Ins *i);

#endif
// SPDX-License-Identifier: MIT
