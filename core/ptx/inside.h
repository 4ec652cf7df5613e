// Declarations that the files of the PTX translation share.
#ifndef PTX_INSIDE_H
#define PTX_INSIDE_H

#include "base/soft.h"
#include "ir/intrin.h"
#include "ir/operands.h"
#include "ptx/module.h"
#include "ptx/shape.h"
#include "ptx/translate.h"

enum { PLAIN = -1, UNSEEN = -2, MIXED = -3 };

// A register of the function.
typedef struct PtxSlot {
  Ref now;        // its value, where one definition is visible at all uses
  Ref var;        // else its variable
  int32_t root;   // the parameter that it points into (index into bound), or
                  // PLAIN, MIXED; then its value is bytes from there
  uint32_t defs;
  uint8_t pool;   // index into PtxBuild.pool
  int32_t home;   // a register there, where an instruction takes
                  // its registers as they are (mma, ldmatrix); or -1
  bool variable;
} PtxSlot;

// Registers that have a home, of one width, kept as the elements that MMAs see
// in them: the simulator reads these fastest.
typedef struct PtxPool {
  DType type;
  int bits;         // width of a register
  int64_t n;        // registers
  Ref mem;
} PtxPool;
enum { POOLS = 12 };

typedef struct PtxRow PtxRow;
typedef struct PtxBuild {
  Ctx *cx;
  Fn *fn;
  const PtxModule *m;
  const PtxFunc *f;
  const PtxBound *bound;
  size_t nbound;
  PtxSlot *slot;          // one for each register
  Ref *object;            // bytes of each bound pointer
  PtxPool pool[POOLS];
  int pools;
  const PtxRow **row;     // one for each instruction, or NULL
  bool *waits;            // for each of PtxModule.ins: a try_wait that is
                          // tried again until it is true
  const char *mma_text;   // the last MMA instruction that was looked up
  int mma;                // ... its atom
  Ref viewed[8];          // op_view's latest results, the newest first
  Ref smem;               // the CTA's shared memory as bytes, or 0
  int64_t *shared;        // each variable's offset in shared memory, or -1
  const PtxIns *at;       // the instruction being translated
  bool ptx_lines;         // not those of .loc
  int64_t reduced;        // the word of barrier.red in shared memory, or -1
  Ref local;              // memory of the thread, or 0
  int64_t *local_at;      // each variable's offset there
  int64_t local_bytes;
  bool generic_shared, generic_local;  // there are generic addresses of these
  Ref carry;              // the condition code's carry, a variable, or 0
} PtxBuild;

// An instruction taken apart: its modifiers, and which were looked at.
enum { PTX_MODS = 20 };
typedef struct PtxOp {
  PtxBuild *b;
  const PtxIns *i;
  const PtxArg *arg;      // i->args of them
  char text[160];         // the opcode, its points made NULs
  const char *mod[PTX_MODS];
  int n;
  uint32_t used;          // a bit a modifier
  PtxType type[4];        // the types among the modifiers, in order
  DType elem[4];          // ... and of one element, where a register holds two
  bool pair[4];           // ... or one: f16x2 is a pair of f16
  int types;
} PtxOp;

// A row of the table of opcodes.
struct PtxRow {
  const char *name;   // its first words: "ld", "cp.async.bulk"
  uint8_t dsts;       // operands that it writes, the first ones
  bool homes;         // it may take registers as they are
  void (*emit)(PtxOp *o, int k);  // NULL: rejected
  int k;              // number that tells rows of one function apart
  const char *takes;  // the modifiers behind the name, types among them
  const char *note;   // "": exact; else the bound, or why it is rejected
};
// The row with the longest name that an opcode begins with, or NULL.
const PtxRow *ptxrow_find(const char *op);
// Row k, in the order of docs/ptx.md, or NULL.
const PtxRow *ptxrow_at(size_t k);
// Rejects modifiers that the row does not take.
void ptxrow_check(PtxOp *o, const PtxRow *row);

_Noreturn void ptx_fail(const PtxBuild *b, const char *fmt, ...)
  PRINTF_LIKE(2, 3);

// Does an opcode take its registers as they are?
bool ptxrow_homes(const char *op);
// The element type that operand k of an MMA has in its registers; DT_NONE: no
// MMA, or a plain register.
DType ptxrow_elements(PtxBuild *b, const PtxIns *i, uint32_t k);
// The element of the pool that register a of such an instruction is.
const PtxPool *op_home(PtxOp *o, const PtxArg *a, uint32_t *at);

// Where an operand points to: an index into PtxBuild.bound, or PLAIN, MIXED.
int32_t ptx_root(const PtxBuild *b, const PtxArg *a);
// The bound pointer at a byte offset of the parameters, or PLAIN.
int32_t ptx_bound_pointer(const PtxBuild *b, int64_t offset);

// ---- operands ----
// Is the modifier there? Then it has been looked at.
bool op_has(PtxOp *o, const char *mod);
PtxType op_type(PtxOp *o, int k);  // type k among the modifiers
DType op_dtype(PtxType t);         // PTX_B as unsigned
Ref op_as(PtxOp *o, DType t, Ref a);  // the same bits as another type
// Operand k as a value of a type; of another width only where `sized` says
// that wider registers are cut or narrower ones extended.
Ref op_value(PtxOp *o, const PtxArg *a, DType t);
Ref op_operand(PtxOp *o, uint32_t k, DType t);
Ref op_pred(PtxOp *o, const PtxArg *a);
int64_t op_constant(PtxOp *o, uint32_t k);
const PtxArg *op_arg(PtxOp *o, uint32_t k);
// Writes a value (or, of pointers, an offset) to a register.
void op_set(PtxOp *o, const PtxArg *a, Ref v);
void op_result(PtxOp *o, Ref v);   // to operand 0
// The pointer that a is: an index into PtxBuild.bound, PLAIN or MIXED.
int32_t op_root(PtxOp *o, const PtxArg *a);
// Its bytes from there; of a plain number its value. An i64.
// (op_value gives a pointer's address.)
Ref op_offset(PtxOp *o, const PtxArg *a);

static inline Ref op1(PtxOp *o, Op op, Ref a) {
  return ir_op1(o->b->cx, o->b->fn, op, a);
}
static inline Ref op2(PtxOp *o, Op op, Ref a, Ref b) {
  return ir_op2(o->b->cx, o->b->fn, op, a, b);
}
static inline Ref op3(PtxOp *o, Op op, Ref a, Ref b, Ref c) {
  return ir_op3(o->b->cx, o->b->fn, op, a, b, c);
}
static inline Ref number(PtxOp *o, DType t, int64_t v) {
  return ir_int(o->b->cx, o->b->fn, t, v);
}
static inline Ref as(PtxOp *o, DType t, Ref a) {
  return op_as(o, t, a);
}
static inline Ref to(PtxOp *o, DType t, Ref a) {
  return ir_cvt(o->b->cx, o->b->fn, t, a);
}
Ref op_intrin(PtxOp *o, IntrinId id, int64_t imm, Ref a, Ref b, Ref c);
static inline DType unsigned_of(int bits) {
  return bits == 8 ? DT_U8 : bits == 16 ? DT_U16 : bits == 32 ? DT_U32 : DT_U64;
}
static inline DType signed_of(int bits) {
  return bits == 8 ? DT_I8 : bits == 16 ? DT_I16 : bits == 32 ? DT_I32 : DT_I64;
}


// The bits of the parameters from byte `at` on, as an unsigned number.
Ref op_param(PtxOp *o, uint32_t at, int bits);

// ---- memory ----
typedef struct Place {
  Ref mem, off;  // bytes
} Place;

// The state space among the modifiers.
typedef enum Where {
  ANYWHERE, IN_SHARED, IN_GLOBAL, IN_CLUSTER, IN_LOCAL
} Where;
// Shared addresses of the cluster: 1 + the CTA's rank from this bit on, 0 for
// the CTA's own.
enum { RANK_BIT = 24 };
Where op_where(PtxOp *o);
// Returns the place of [a] in a state space.
Place op_place(PtxOp *o, const PtxArg *a, Where space);

// Caches, order and scope among the modifiers, as Ins.flags.
uint16_t op_hints(PtxOp *o);
// How many registers .v2, .v4, .v8 say.
int op_vector(PtxOp *o);

// ---- local.c: memory of a thread, generic addresses ----

void local_memory(PtxBuild *b);  // lays it out
// off: bytes, which need not be known.
Ref local_load(PtxOp *o, DType t, Ref off);
void local_store(PtxOp *o, Ref off, Ref v);

// Global memory at a number.
Place op_at_address(PtxOp *o, Ref at);

// A generic address: whether it is in shared or local memory, and its offset
// there. Elsewhere it is in global memory, `at`.
typedef struct Spaces {
  Ref at, shared, local, in_shared, in_local;
} Spaces;
// false: the function makes no such addresses, or a is a parameter's.
bool op_spaces(PtxOp *o, const PtxArg *a, Spaces *s);

// The runs of registers of an instruction: their objects and elements.
typedef struct Runs {
  Ref mem[8];
  uint32_t n, reg[256], regs;
} Runs;

// t: of the elements that a register holds; DT_NONE: as it is.
void op_run(PtxOp *o, Runs *r, const PtxArg *a, DType t);
// Memory object as elements of type t.
Ref op_view(PtxOp *o, Ref mem, DType t);

// A value of type t into the register of operand a: extended by its sign or by
// zeros where the register is wider.
void op_set_wider(PtxOp *o, const PtxArg *a, Ref v, PtxType t);
// The low bits of operand a, as type t.
Ref op_low(PtxOp *o, const PtxArg *a, PtxType t);
// Half q of a register of 128 bits.
Ref op_half(PtxOp *o, const PtxArg *a, int q);
void op_set_half(PtxOp *o, const PtxArg *a, int q, Ref v);
// Part k of a vector operand, a pair or a list.
const PtxArg *op_part(PtxOp *o, const PtxArg *a, uint32_t k);
// Rejects the instruction: this form of it is not modelled.
_Noreturn void op_reject(PtxOp *o, const char *what);

// ---- soft.h's operations ----

// The flags of soft.h among the modifiers.
uint8_t op_flags(PtxOp *o);
// The rounding among the modifiers: .rn where there is none.
SoftRound op_rounding(PtxOp *o);
// Emits s on up to three values of any width. The result has `bits`.
Ref op_soft(PtxOp *o, Soft s, int bits, Ref a, Ref b, Ref c);

// ---- the families ----

// arith.c: floats and integers
void row_sum(PtxOp *o, int k);       // k: OP_ADD, OP_SUB
void row_mul(PtxOp *o, int k);       // k: 0: mul, 1: mad, fma, 2: madc
void row_divide(PtxOp *o, int k);    // k: OP_DIV, OP_MOD
void row_extreme(PtxOp *o, int k);   // k: OP_MIN, OP_MAX
void row_sign(PtxOp *o, int k);      // k: OP_NEG, OP_ABS
void row_function(PtxOp *o, int k);  // k: SoftApprox
void row_mul24(PtxOp *o, int k);     // k: it adds
void row_sad(PtxOp *o, int k);
void row_dot(PtxOp *o, int k);       // k: SoftOp
// bits.c
void row_logic(PtxOp *o, int k);     // k: OP_AND, OP_OR, OP_XOR
void row_not(PtxOp *o, int k);
void row_cnot(PtxOp *o, int k);
void row_shift(PtxOp *o, int k);     // k: OP_SHL, OP_SHR
void row_funnel(PtxOp *o, int k);
void row_count(PtxOp *o, int k);     // k: IntrinId of 32 bits
void row_bfind(PtxOp *o, int k);
void row_bitfield(PtxOp *o, int k);  // k: it inserts
void row_mask(PtxOp *o, int k);      // k: SoftOp
void row_lop3(PtxOp *o, int k);
void row_prmt(PtxOp *o, int k);
// compare.c
void row_setp(PtxOp *o, int k);
void row_set(PtxOp *o, int k);
void row_selp(PtxOp *o, int k);
void row_slct(PtxOp *o, int k);
void row_testp(PtxOp *o, int k);
void row_copysign(PtxOp *o, int k);
// convert.c
void row_cvt(PtxOp *o, int k);
void row_cvt_pack(PtxOp *o, int k);
// memory.c
void row_mov(PtxOp *o, int k);
void row_cvta(PtxOp *o, int k);  // local.c
void row_isspacep(PtxOp *o, int k);  // local.c
void row_load(PtxOp *o, int k);
void row_store(PtxOp *o, int k);
void row_atomic(PtxOp *o, int k);    // k: it has no result
void row_copy(PtxOp *o, int k);      // cp.async
void row_copy_wait(PtxOp *o, int k);
void row_copy_arrive(PtxOp *o, int k);  // hopper.c
// threads.c
void row_barrier(PtxOp *o, int k);   // k: it is .aligned
void row_warp_barrier(PtxOp *o, int k);
void row_fence(PtxOp *o, int k);
void row_shuffle(PtxOp *o, int k);
void row_vote(PtxOp *o, int k);
void row_match(PtxOp *o, int k);
void row_redux(PtxOp *o, int k);
void row_elect(PtxOp *o, int k);
void row_active(PtxOp *o, int k);
void row_trap(PtxOp *o, int k);
void row_sleep(PtxOp *o, int k);
void row_nothing(PtxOp *o, int k);
// matrix.c
void row_mma(PtxOp *o, int k);
void row_matrix(PtxOp *o, int k);    // k: it stores
void row_movmatrix(PtxOp *o, int k);
// hopper.c: mbarriers, bulk copies, wgmma, clusters
void row_mbarrier(PtxOp *o, int k);
void row_bulk(PtxOp *o, int k);
void row_prefetch(PtxOp *o, int k);
void row_proxy(PtxOp *o, int k);
void row_wgmma(PtxOp *o, int k);
void row_cluster(PtxOp *o, int k);
void row_mapa(PtxOp *o, int k);

#endif
// SPDX-License-Identifier: MIT
