// What the files of the PTX translation share.
#ifndef PTX_INSIDE_H
#define PTX_INSIDE_H

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
  int bits;         // of a register
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
  PtxSlot *slot;          // of each register
  Ref *object;            // of each bound pointer: its bytes
  PtxPool pool[POOLS];
  int pools;
  const PtxRow **row;     // of each instruction of the function, or NULL
  bool *waits;            // of PtxModule.ins: a try_wait that is tried again
                          // until it is true
  const char *mma_text;   // the last MMA instruction that was looked up
  int mma;                // ... its atom
  Ref viewed[8];          // op_view's latest results, the newest first
  Ref smem;               // the CTA's shared memory as bytes, or 0
  int64_t *shared;        // of each variable: its offset in shared memory, -1
  const PtxIns *at;       // the instruction being translated
  bool ptx_lines;         // not those of .loc
} PtxBuild;

// An instruction taken apart: its modifiers, and which were looked at.
enum { PTX_MODS = 20 };
typedef struct PtxOp {
  PtxBuild *b;
  const PtxIns *i;
  const PtxArg *arg;      // i->args of them
  char text[160];         // of the opcode, its points made NULs
  const char *mod[PTX_MODS];
  int n;
  uint32_t used;          // a bit a modifier
  PtxType type[4];        // the types among the modifiers, in order
  int types;
} PtxOp;

// What there is to do for an opcode.
struct PtxRow {
  const char *name;       // the opcode's first word: "ld"
  uint8_t dsts;           // operands that it writes, the first ones
  void (*emit)(PtxOp *o, int k);
  int k;                  // what tells rows of one function apart
  bool homes;             // it may take registers as they are
  const char *note;       // "": exact; else the bound, for docs/ptx.md
};
const PtxRow *ptxrow_find(const char *op);

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
typedef enum Where { ANYWHERE, IN_SHARED, IN_GLOBAL, IN_CLUSTER } Where;
// Shared addresses of the cluster: 1 + the CTA's rank from this bit on, 0 for
// the CTA's own.
enum { RANK_BIT = 24 };
Where op_where(PtxOp *o);
// What [a] is, in the state space that the opcode says.
Place op_place(PtxOp *o, const PtxArg *a, Where space);

// The runs of registers of an instruction: their objects and elements.
typedef struct Runs {
  Ref mem[8];
  uint32_t n, reg[256], regs;
} Runs;

// t: of the elements that a register holds; DT_NONE: as it is.
void op_run(PtxOp *o, Runs *r, const PtxArg *a, DType t);
// Memory object as elements of type t.
Ref op_view(PtxOp *o, Ref mem, DType t);

// ---- hopper.c: mbarriers, bulk copies, wgmma, clusters ----
void ptx_mbarrier(PtxOp *o, int k);
void ptx_bulk(PtxOp *o, int k);
void ptx_wgmma(PtxOp *o, int k);
void ptx_cluster(PtxOp *o, int k);
void ptx_proxy(PtxOp *o, int k);
void ptx_mapa(PtxOp *o, int k);

#endif
