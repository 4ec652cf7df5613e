// The one IR. A flat, append-only array of instructions; operands
// are 32-bit Refs; pure instructions are folded and hash-consed; structured
// regions, no CFG, no phi: mutation only through VARs and memory objects.
#ifndef CUTE_IR_H
#define CUTE_IR_H

#include "base/base.h"
#include "base/dtype.h"
#include "ir/kinds.h"

typedef uint32_t Ref;  // index of an instruction; 0: none

typedef enum Op {
#define OP(id, name, operands, imm, rule, effect, who) OP_##id,
#include "ir/ops.h"
  OP_COUNT
} Op;

// MF(id, "name", operands): float functions (OP_MATH). Approximate ones of
// the hardware have names of their own.
#define MATHS(MF) \
  MF(SQRT, "sqrt", 1) MF(RSQRT, "rsqrt", 1) MF(RCP, "rcp", 1) \
  MF(EXP, "exp", 1) MF(EXP2, "exp2", 1) MF(EXPM1, "expm1", 1) \
  MF(LOG, "log", 1) MF(LOG2, "log2", 1) MF(LOG10, "log10", 1) \
  MF(LOG1P, "log1p", 1) MF(SIN, "sin", 1) MF(COS, "cos", 1) \
  MF(TAN, "tan", 1) MF(ASIN, "asin", 1) MF(ACOS, "acos", 1) \
  MF(ATAN, "atan", 1) MF(SINH, "sinh", 1) MF(COSH, "cosh", 1) \
  MF(TANH, "tanh", 1) MF(ASINH, "asinh", 1) MF(ACOSH, "acosh", 1) \
  MF(ATANH, "atanh", 1) MF(ERF, "erf", 1) MF(ERFC, "erfc", 1) \
  MF(CBRT, "cbrt", 1) MF(FLOOR, "floor", 1) MF(CEIL, "ceil", 1) \
  MF(TRUNC, "trunc", 1) MF(ROUND, "round", 1) MF(RINT, "rint", 1) \
  MF(POW, "pow", 2) MF(ATAN2, "atan2", 2) MF(COPYSIGN, "copysign", 2) \
  MF(FMOD, "fmod", 2) MF(EX2APPROX, "ex2.approx", 1) \
  MF(TANHAPPROX, "tanh.approx", 1) MF(RCPAPPROX, "rcp.approx", 1) \
  MF(SINAPPROX, "sin.approx", 1) MF(COSAPPROX, "cos.approx", 1) \
  MF(LG2APPROX, "lg2.approx", 1) MF(SQRTAPPROX, "sqrt.approx", 1) \
  MF(RSQRTAPPROX, "rsqrt.approx", 1) MF(DIVAPPROX, "div.full", 2)
typedef enum MathFn {
#define MF(id, name, n) MF_##id,
  MATHS(MF)
#undef MF
  MF_COUNT
} MathFn;

typedef struct Ins {
  uint8_t op;       // Op
  uint8_t type;     // DType of the result or the memory object
  uint16_t flags;   // op's own (CPF_*; LD, ST, ATOMIC: HINT_*)
  uint32_t src;     // index into Fn.src: the script's file and line
  Ref a[3];         // operands, and the rest of them: see operands.h
  uint32_t ext, nx; // Fn.ext.p[ext .. ext+nx)
  uint32_t reg;     // Fn.reg.p[reg ..)
  uint32_t name;    // index into Fn.text of the script's name for it, or 0
  uint32_t birth;   // differs for every instruction ever appended
  int64_t imm;
} Ins;

// What is known of an integer: lo <= x <= hi, div divides x.
typedef struct Fact {
  int64_t lo, hi, div;  // div >= 1; 0 for the constant 0
} Fact;

typedef enum Space { SP_HOST, SP_GMEM, SP_SMEM, SP_RMEM, SP_COORD } Space;

// A memory object. `count` elements (-1: unknown, bounded by the argument's
// buffer); smem: byte offset in the CTA's dynamic shared memory.
typedef struct Mem {
  Ref ref;
  Space space;
  DType type;
  int64_t count;
  int64_t align;     // bytes the base is aligned to
  int64_t offset;    // SP_SMEM: byte offset
  int32_t arg;       // SP_GMEM: index into Fn.arg
  uint32_t name;     // index into Fn.text, 0: none
  uint32_t layout;   // index into Fn.text: layout as printed, for reports
} Mem;

typedef struct Arg {
  uint32_t name;     // index into Fn.text
  DType type;        // of the scalar, or of the pointee
  bool pointer;
  bool written, read;
  int32_t overlap;   // pointers: those of one number share memory at the
                     // launches that this was traced for; 0: alone
  int64_t align;     // pointers: bytes
} Arg;

typedef struct Src {
  uint32_t file;     // index into Fn.text (chunk source as in lua_Debug)
  uint32_t line;
} Src;

typedef struct Fn {
  uint32_t serial;        // differs for every traced function
  uint32_t name;          // index into text
  int32_t block[3];       // threads, when fixed while tracing; else 0
  int32_t min_blocks;     // __launch_bounds__' second argument, or 0
  bool fmad, fastmath;    // see fast.c
  VEC(Ins) ins;           // ins.p[0] is a NOP
  VEC(Fact) fact;         // beside ins
  VEC(Ref) ext;
  VEC(uint32_t) reg;      // elements that runs of registers consist of
  VEC(Src) src;           // src.p[0]: unknown
  VEC(uint32_t) text;     // offsets into chars; text.p[0]: ""
  Buf chars;
  VEC(Mem) mem;
  VEC(Arg) arg;
  int64_t smem_bytes;     // dynamic shared memory used
  bool wide;              // an argument has over 2^31 elements: index
                          // arithmetic that may not fit in i32 is in i64
  // state while tracing
  uint32_t at;            // src index given to new instructions
  VEC(Ref) region;        // open region heads, outermost first
  VEC(uint32_t) scope;    // ins -> serial of its region (see ir_visible)
  uint32_t scopes;        // serial of the newest region
  uint32_t births;        // instructions ever appended
  VEC(uint32_t) hits;     // beside src: operations traced from that line
  VEC(uint32_t) open;     // serials of the open regions; open.p[0] == 0
  uint32_t *cons;         // hash table of pure instructions
  size_t ncons, conscap;
} Fn;

// What a context is at work on: Ctx.work of whoever traces or explains.
struct Work {
  Fn *fn;        // the function being traced, or NULL on the host
  uint32_t fns;  // functions traced so far
  Buf *steps;    // told the steps of the algebra, or NULL (explain_say)
};

// The function being traced, or NULL on the host.
static inline Fn *ir_fn(const Ctx *cx) {
  return cx->work ? cx->work->fn : NULL;
}

// From now on it is fn (NULL: the host); gives what it was. The context has a
// Work.
static inline Fn *ir_trace(Ctx *cx, Fn *fn) {
  Fn *was = cx->work->fn;
  cx->work->fn = fn;
  return was;
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
// Memory objects; returns the Ref of GMEM/SMEM/RMEM. Fills m.ref.
Ref ir_mem(Ctx *cx, Fn *fn, Mem m);
// One operation on shared and global integers `a op b` in the index domain:
// types are unified (i64 if either is).
Ref ir_index(Ctx *cx, Fn *fn, Op op, Ref a, Ref b);

// Regions. ir_open appends FOR/LOOP/IF and enters it; ir_else, ir_close.
Ref ir_open(Ctx *cx, Fn *fn, Ins ins);
void ir_else(Ctx *cx, Fn *fn);
void ir_close(Ctx *cx, Fn *fn);
// Is r computed in a region that is open now (or still current)?
bool ir_visible(const Fn *fn, Ref r);

// Roll back: everything appended since the mark is gone.
typedef struct IrMark {
  uint32_t serial;       // the function's
  uint32_t birth, scope;  // of the last instruction, of the innermost region
  uint32_t ins, ext, reg, mem, region, open;
  int64_t smem;
} IrMark;
IrMark ir_mark(const Fn *fn);
// False, and nothing done, when fn is not what went on from there.
bool ir_rollback(Fn *fn, IrMark m);

// ---- looking ----
static inline const Ins *ir_get(const Fn *fn, Ref r) { return &fn->ins.p[r]; }
static inline DType ir_type(const Fn *fn, Ref r) { return fn->ins.p[r].type; }
static inline Fact ir_fact(const Fn *fn, Ref r) { return fn->fact.p[r]; }
bool ir_const(const Fn *fn, Ref r, int64_t *v);   // integer/pred constant
bool ir_is_mem(const Fn *fn, Ref r);
static inline const Mem *ir_memof(const Fn *fn, Ref r) {
  return &fn->mem.p[fn->ins.p[r].imm];
}
const char *ir_space(Space s);  // "gmem"
// ---- the rows of ops.h ----
// Who does an operation together.
typedef enum Who {
  WHO_LANE = 1, WHO_MASK, WHO_WARP, WHO_FULL, WHO_ROW, WHO_TEXT
} Who;
typedef enum Rule {
  RULE_NONE, RULE_SAME, RULE_INT, RULE_FLT, RULE_CMP, RULE_SHF, RULE_SEL,
  RULE_SET, RULE_ANY
} Rule;
typedef enum ImmKind {
  IMM_NONE, IMM_RAW, IMM_ARG, IMM_MEM, IMM_TEXT, IMM_SREG, IMM_MATH,
  IMM_INTRIN, IMM_ELEMENTS, IMM_BITS, IMM_MMA, IMM_COPY, IMM_UNROLL,
  IMM_BARRIER, IMM_GROUPS, IMM_FENCE, IMM_ATOMIC
} ImmKind;
// What an operation depends on and does, as bits. EF_ORDERED: no access to
// memory moves past it, whatever its operands are.
enum {
  EF_PURE = 1, EF_FIXED = 2, EF_OBJECT = 4, EF_VAR = 8, EF_MEMORY = 16,
  EF_ORDERED = 32, EF_OPENS = 64, EF_CLOSES = 128, EF_LATER = 256
};
typedef struct OpRow {
  const char *name, *operands;
  uint16_t effect;   // EF_*
  uint8_t done;      // EF_LATER: the Op that waits for its end
  uint8_t imm, rule, who;
} OpRow;
extern const OpRow op_rows[OP_COUNT];

static inline const char *op_name(Op op) { return op_rows[op].name; }
static inline unsigned op_effect(Op op) { return op_rows[op].effect; }
static inline bool op_pure(Op op) { return op_rows[op].effect & EF_PURE; }
static inline Who op_who(Op op) { return (Who)op_rows[op].who; }
const char *who_name(Who who);  // "lane"
const char *math_name(MathFn f);
int math_arity(MathFn f);

// Notes which pointer arguments the function reads and writes.
void ir_mark_arguments(Fn *fn);
// May memory that argument k reads or writes change through another argument?
bool ir_arg_shared(const Fn *fn, size_t k);

// dump.c: the function as text, one instruction a line, regions indented.
void dump_fn(Ctx *cx, const Fn *fn, Buf *out);
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
