// Builds and inspects functions of the IR (fn.h).
#ifndef CUTE_IR_H
#define CUTE_IR_H

#include "ir/fn.h"

// The state of tracing in a context (Ctx.work).
struct Work {
  Fn *fn;        // the function being traced, or NULL on the host
  Fn *aside;     // function whose tracing ir_aside suspended, or NULL
  uint32_t fns;  // number of functions traced so far
  // buffer for the steps of the layout algebra (explain_say), or NULL
  Buf *steps;
};

// Returns the function being traced, or NULL on the host.
static inline Fn *ir_fn(const Ctx *cx) {
  return cx->work ? cx->work->fn : NULL;
}

// Makes fn the function being traced (NULL: the host). The context must have a
// Work.
static inline void ir_trace(Ctx *cx, Fn *fn) { cx->work->fn = fn; }

// Suspends tracing until ir_back: operations then compute on the host. If an
// error is raised, ir_back is called, too.
static inline void ir_aside(Ctx *cx) {
  cx->work->aside = cx->work->fn;
  cx->work->fn = NULL;
}

static inline void ir_back(Ctx *cx) {
  if (!cx->work || !cx->work->aside) return;
  cx->work->fn = cx->work->aside;
  cx->work->aside = NULL;
}

// ir_init initializes a zeroed Fn in place. ir_clear frees the memory that an
// Fn owns but not the Fn, which may be inside a larger block.
Fn *ir_init(Ctx *cx, Fn *fn, const char *name);
void ir_clear(Fn *fn);

// ---- building (ctx errors: memory, type mismatch) ----
// Interns a text and returns its index into Fn.text.
uint32_t ir_text(Ctx *cx, Fn *fn, const char *s, size_t n);
const char *ir_str(const Fn *fn, uint32_t text);
void ir_at(Ctx *cx, Fn *fn, const char *file, uint32_t line);
// Gives value r the name of a script's variable, `name`, unless r already has a
// name.
void ir_name(Ctx *cx, Fn *fn, Ref r, const char *name);

Ref ir_int(Ctx *cx, Fn *fn, DType t, int64_t v);
Ref ir_float(Ctx *cx, Fn *fn, DType t, double v);
Ref ir_sreg(Ctx *cx, Fn *fn, SReg r);
Ref ir_op1(Ctx *cx, Fn *fn, Op op, Ref a);
Ref ir_op2(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);  // op: ADD to NE, SHL, SHR
Ref ir_op3(Ctx *cx, Fn *fn, Op op, Ref a, Ref b, Ref c);  // op: FMA, SEL
Ref ir_math(Ctx *cx, Fn *fn, MathFn f, Ref a, Ref b);
Ref ir_cvt(Ctx *cx, Fn *fn, DType t, Ref a);
Ref ir_bitcast(Ctx *cx, Fn *fn, DType t, Ref a);
// Appends an instruction for which there is no function above, without
// simplification. Use operands_emit if it has more operands than Ins.a[] holds.
Ref ir_emit(Ctx *cx, Fn *fn, Ins ins);
// Records that instruction r is less exact than the row of its operation in
// ops.h states.
void ir_note_fidelity(Ctx *cx, Fn *fn, Ref r, Fidelity how);
// Declares memory object m: sets m.ref and returns that Ref.
Ref ir_mem(Ctx *cx, Fn *fn, Mem m);
// Declares an OP_DSMEM: shared object `object` as seen in the CTA of rank
// `rank`.
Ref ir_mem_of(Ctx *cx, Fn *fn, Mem m, Ref object, Ref rank);
// Declares an OP_PTR: global memory at an i64 address. The memory may alias any
// argument.
Ref ir_at_address(Ctx *cx, Fn *fn, Mem m, Ref address);
// Declares an OP_TMAPAT: a tensor map in the memory of `object` at `offset`.
// The tensor map has the boxes of the argument `map`. If `map` is 0, the boxes
// and the address of the tensor are unknown.
Ref ir_map_at(Ctx *cx, Fn *fn, Ref object, Ref offset, Ref map);
// Computes `a op b` for indices. Converts the operands to a common integer
// type, which is i64 if either operand is i64.
Ref ir_index(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);

// Regions: ir_open appends ins (FOR, LOOP, ONCE or IF) and enters its region.
// ir_else and ir_close append ELSE and END.
Ref ir_open(Ctx *cx, Fn *fn, Ins ins);
void ir_else(Ctx *cx, Fn *fn);
void ir_close(Ctx *cx, Fn *fn);
// Reports whether r was computed in a region that is still open, so that it can
// be used here.
bool ir_visible(const Fn *fn, Ref r);

// Narrow the known facts about value r. ir_narrow adds a fact that follows from
// r's definition. ir_assume adds an assumption or a branch condition, which
// holds until the innermost open region ends.
void ir_narrow(Fn *fn, Ref r, Fact f);
void ir_assume(Ctx *cx, Fn *fn, Ref r, Fact f);

// Appends an assertion (Claim in fn.h) at the current instruction and line.
void ir_claim(Ctx *cx, Fn *fn, Claim c);

// A position in fn. ir_rollback removes everything that was appended after the
// position.
typedef struct IrMark {
  uint32_t serial;       // serial number of the function
  // birth of the last instruction, serial number of the innermost region
  uint32_t birth, scope;
  uint32_t ins, ext, reg, mem, region, open, assumed, claim;
  int64_t smem;
} IrMark;
IrMark ir_mark(const Fn *fn);
// Removes all that was appended after mark m. Returns false, and changes
// nothing, if fn no longer contains the mark's position.
bool ir_rollback(Fn *fn, IrMark m);
// Returns a hash of the instructions appended since mark m, without names and
// lines. The tracer treats two traces of a loop body as equal if their hashes
// are equal.
uint64_t ir_digest(const Fn *fn, IrMark m);

// ---- inspection ----
static inline const Ins *ir_get(const Fn *fn, Ref r) { return &fn->ins.p[r]; }
static inline DType ir_type(const Fn *fn, Ref r) { return fn->ins.p[r].type; }
static inline Fact ir_fact(const Fn *fn, Ref r) { return fn->fact.p[r]; }
// Reports whether r is an integer or boolean constant, and sets *v to its
// value.
bool ir_const(const Fn *fn, Ref r, int64_t *v);
// Reports whether r is constant, or constant in each iteration of fully
// unrolled loops.
bool ir_unrolled(const Fn *fn, Ref r);
bool ir_is_mem(const Fn *fn, Ref r);
bool ir_is_aside(const Ins *i);  // reports whether i serves only assertions
static inline const Mem *ir_memof(const Fn *fn, Ref r) {
  return &fn->mem.p[fn->ins.p[r].imm];
}
// Reports whether r is an object in global memory.
static inline bool ir_is_global(const Fn *fn, Ref r) {
  return ir_is_mem(fn, r) && mem_is_global(ir_memof(fn, r));
}
// Returns the number of threads of a block, or 0 if it is not known yet.
static inline int32_t ir_threads(const Fn *fn) {
  return fn->block[0] * fn->block[1] * fn->block[2];
}
// Reports whether two objects in a block's shared memory overlap.
bool ir_overlaps(const Mem *a, const Mem *b);
// Return a space's name, such as "gmem", and its word for reports, such as
// "global".
static inline const char *ir_space(Space s) { return space_rows[s].name; }
static inline const char *ir_space_word(Space s) { return space_rows[s].word; }

// Sets for each pointer argument whether the function reads its memory, and
// whether the function writes it.
void ir_mark_arguments(Fn *fn);
// Reports whether the kernel may write the memory of argument k through another
// argument.
bool ir_arg_shared(const Fn *fn, size_t k);
// Reports whether instruction i is a TMAPAT whose boxes are unknown.
static inline bool ir_is_map_of_any(const Ins *i) {
  return i->op == OP_TMAPAT && !i->a[2];
}
// Reports whether fn accesses global memory at computed addresses, which may
// alias any argument.
bool ir_has_addresses(const Fn *fn);
// Reports whether the function has no visible effect: no store, no output, no
// trap, no assertion.
bool ir_is_idle(const Fn *fn);
// Returns the END of the region that instruction r begins, or the number of
// instructions if no END closes it.
Ref ir_region_end(const Fn *fn, Ref r);
// ir_region_around returns the instruction that begins the innermost region
// that contains r, or 0. An ELSE or END is in the region that it ends.
// ir_loop_around returns the innermost loop that contains r, or 0.
Ref ir_region_around(const Fn *fn, Ref r);
Ref ir_loop_around(const Fn *fn, Ref r);
// Returns how many named barriers a block uses, as ptxas counts them: 1 + the
// highest barrier number, or 16 if a number is not constant.
enum { MOST_BARRIERS = 16 };
int ir_barriers(const Fn *fn);

// ---- dump.c ----
// Writes the function as text, one instruction a line, with indented regions.
// `bare` omits the script's names and lines.
void dump_fn(Ctx *cx, const Fn *fn, bool bare, Buf *out);
// Writes single instructions, as dump_fn writes them. The Dump is allocated in
// cx->scratch.
typedef struct Dump Dump;
Dump *dump_new(Ctx *cx, const Fn *fn, Buf *out);
void dump_ins(Dump *d, Ref r);

// ---- verify.c ----
// Verifies types, number of operands, regions, visibility, register indices and
// operands of atoms. Fails with ERR_INTERNAL and the instruction.
void check_fn(Ctx *cx, const Fn *fn);
// Returns which threads must execute i together, according to its operation or
// its table row (never WHO_ROW).
Who check_who(const Ins *i);

#endif
// SPDX-License-Identifier: MIT
