// A function of the IR (fn.h): building it, and looking at it.
#ifndef CUTE_IR_H
#define CUTE_IR_H

#include "ir/fn.h"

// What a context is at work on: Ctx.work of whoever traces or explains.
struct Work {
  Fn *fn;        // the function being traced, or NULL on the host
  Fn *aside;     // the one that ir_aside has put there, or NULL
  uint32_t fns;  // functions traced so far
  Buf *steps;    // told the steps of the algebra, or NULL (explain_say)
};

// The function being traced, or NULL on the host.
static inline Fn *ir_fn(const Ctx *cx) {
  return cx->work ? cx->work->fn : NULL;
}

// From now on it is fn (NULL: the host). The context has a Work.
static inline void ir_trace(Ctx *cx, Fn *fn) { cx->work->fn = fn; }

// Looks from the host until ir_back, which an error calls, too.
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
// Gives r the script's name for it unless it has one.
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
// Anything else: appends as it is. With more operands than Ins.a[] holds:
// operands_emit.
Ref ir_emit(Ctx *cx, Fn *fn, Ins ins);
// Memory objects; returns the Ref that declares it. Fills m.ref.
Ref ir_mem(Ctx *cx, Fn *fn, Mem m);
// DSMEM: a shared object as the CTA of that rank has it.
Ref ir_mem_of(Ctx *cx, Fn *fn, Mem m, Ref object, Ref rank);
// PTR: global memory at an address (an i64), which any argument may be in.
Ref ir_at_address(Ctx *cx, Fn *fn, Mem m, Ref address);
// TMAPAT: a tensor map of boxes as `map` has them, in memory of object.
Ref ir_map_at(Ctx *cx, Fn *fn, Ref object, Ref offset, Ref map);
// One operation on shared and global integers `a op b` in the index domain:
// types are unified (i64 if either is).
Ref ir_index(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);

// Regions. ir_open appends FOR/LOOP/IF and enters it; ir_else, ir_close.
Ref ir_open(Ctx *cx, Fn *fn, Ins ins);
void ir_else(Ctx *cx, Fn *fn);
void ir_close(Ctx *cx, Fn *fn);
// Is r computed in a region that is open now (or still current)?
bool ir_visible(const Fn *fn, Ref r);

// Narrows what is known of r: for good, by how it was made; or, as is said of
// an argument or where a branch was taken, to the end of the open region.
void ir_narrow(Fn *fn, Ref r, Fact f);
void ir_assume(Ctx *cx, Fn *fn, Ref r, Fact f);

// Here, v is within f; a claim as fn.h has them, without place and line.
void ir_claim(Ctx *cx, Fn *fn, Claim c);

// Roll back: everything appended since the mark is gone.
typedef struct IrMark {
  uint32_t serial;       // the function's
  uint32_t birth, scope;  // of the last instruction, of the innermost region
  uint32_t ins, ext, reg, mem, region, open, assumed, claim;
  int64_t smem;
} IrMark;
IrMark ir_mark(const Fn *fn);
// False, and nothing done, when fn is not what went on from there.
bool ir_rollback(Fn *fn, IrMark m);
// A hash of what was appended since the mark. Two passes that were appended
// behind one mark do the same where it is equal; names and lines are left out.
uint64_t ir_digest(const Fn *fn, IrMark m);

// ---- looking ----
static inline const Ins *ir_get(const Fn *fn, Ref r) { return &fn->ins.p[r]; }
static inline DType ir_type(const Fn *fn, Ref r) { return fn->ins.p[r].type; }
static inline Fact ir_fact(const Fn *fn, Ref r) { return fn->fact.p[r]; }
bool ir_const(const Fn *fn, Ref r, int64_t *v);   // integer/pred constant
bool ir_unrolled(const Fn *fn, Ref r);  // a constant, or one in each pass of
                                        // loops that are unrolled whole
bool ir_is_mem(const Fn *fn, Ref r);
bool ir_is_aside(const Ins *i);  // computed for claims alone?
static inline const Mem *ir_memof(const Fn *fn, Ref r) {
  return &fn->mem.p[fn->ins.p[r].imm];
}
const char *ir_space(Space s);       // "gmem"
const char *ir_space_word(Space s);  // "global"

// Notes which pointer arguments the function reads and writes.
void ir_mark_arguments(Fn *fn);
// May memory that argument k reads or writes change through another argument?
bool ir_arg_shared(const Fn *fn, size_t k);
// Is there memory at addresses, which may be that of any argument?
bool ir_has_addresses(const Fn *fn);
// Named barriers that a block takes: ptxas counts them up to the highest number
// in use, and all of them where a number is no constant.
enum { MOST_BARRIERS = 16 };
int ir_barriers(const Fn *fn);

// dump.c: the function as text, one instruction a line, regions indented; bare:
// with nothing of the names and lines that the script gave it.
void dump_fn(Ctx *cx, const Fn *fn, bool bare, Buf *out);
// Single instructions, as dump_fn has them; in cx->scratch.
typedef struct Dump Dump;
Dump *dump_new(Ctx *cx, const Fn *fn, Buf *out);
void dump_ins(Dump *d, Ref r);

// verify.c: verifies types, arity, regions, visibility, register indices and
// atom operands; fails with ERR_INTERNAL naming the instruction.
void check_fn(Ctx *cx, const Fn *fn);
// Who does i together: as its op says, or its row (never WHO_ROW).
Who check_who(const Ins *i);

#endif
