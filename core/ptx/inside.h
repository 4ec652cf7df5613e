// What the files of the PTX translation share.
#ifndef PTX_INSIDE_H
#define PTX_INSIDE_H

#include "ir/ir.h"
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
  int32_t home;   // an element of PtxBuild.pool, where an instruction takes
                  // its registers as they are (mma, ldmatrix); or -1
  bool variable;
} PtxSlot;

// Registers of 32 and of 64 bits that have a home.
enum { POOL_32, POOL_64, POOLS };

typedef struct PtxBuild {
  Ctx *cx;
  Fn *fn;
  const PtxModule *m;
  const PtxFunc *f;
  const PtxBound *bound;
  size_t nbound;
  PtxSlot *slot;          // of each register
  Ref *object;            // of each bound pointer: its bytes
  Ref pool[POOLS];        // 0: none
  int64_t pooled[POOLS];  // elements
  const char *mma_text;   // the last MMA instruction that was looked up
  int mma;                // ... its atom
  Ref smem;               // the CTA's shared memory as bytes, or 0
  int64_t *shared;        // of each variable: its offset in shared memory, -1
  const PtxIns *at;       // the instruction being translated
  uint32_t text_file;
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
typedef struct PtxRow {
  const char *name;       // the opcode's first word: "ld"
  uint8_t dsts;           // operands that it writes, the first ones
  void (*emit)(PtxOp *o, int k);
  int k;                  // what tells rows of one function apart
  const char *note;       // "": exact; else the bound, for docs/ptx.md
} PtxRow;
const PtxRow *ptxrow_find(const char *op);

_Noreturn void ptx_fail(const PtxBuild *b, const char *fmt, ...)
  PRINTF_LIKE(2, 3);

// Does an opcode take its registers as they are?
bool ptxrow_homes(const char *op);
// The element of the pool that register a of such an instruction is.
uint32_t op_home(PtxOp *o, const PtxArg *a, Ref *pool);

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
Ref op_offset(PtxOp *o, const PtxArg *a);

#endif
