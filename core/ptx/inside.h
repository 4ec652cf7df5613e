// Declarations that the files of the PTX translation share.
#ifndef PTX_INSIDE_H
#define PTX_INSIDE_H

#include <string.h>

#include "base/soft.h"
#include "ir/intrin.h"
#include "ir/operands.h"
#include "ptx/module.h"
#include "ptx/shape.h"
#include "ptx/translate.h"

enum { PLAIN = -1, UNSEEN = -2, MIXED = -3 };

// How a register of the function is represented in the IR.
typedef struct PtxSlot {
  // the register's value, if the register has a single definition that all uses
  // can see
  Ref now;
  Ref var;        // else: the variable that holds the register
  // index into PtxBuild.bound of the parameter into whose memory the register
  // points, or PLAIN or MIXED. With an index, the register's value is a byte
  // offset from the start of this memory.
  int32_t root;
  // whether the register may point into, not to the start of, a tensor map that
  // is a parameter
  bool inside;
  uint32_t defs;
  // index into PtxBuild.pool of the group that holds the register
  uint8_t pool;
  // number of the register in this group if mma or ldmatrix uses the register
  // without a conversion, else -1
  int32_t home;
  bool variable;
  bool read;  // whether a PTX instruction reads the register
  bool loaded;  // whether a tcgen05.ld writes the register
  // whether an instruction may read the register before any instruction writes
  // it
  bool early;
} PtxSlot;

// A group of registers of one width, stored as elements of the type that MMAs
// read. The simulator reads this layout fastest.
typedef struct PtxPool {
  DType type;
  int bits;         // width of a register in bits
  int64_t n;        // number of registers
  Ref mem;
} PtxPool;
enum { POOLS = 12 };

// The text of an MMA instruction, and the ids of the MMA atoms with this text.
enum { MMAS = 16, MMA_ATOMS = 16 };
typedef struct PtxMma {
  const char *text;
  int n, id[MMA_ATOMS];
} PtxMma;

// The opcode, instruction descriptor and atom of a tcgen05.mma. `smem_a` is
// true if A is in shared memory.
enum { UMMAS = 4 };
typedef struct PtxUmma {
  const char *op;
  uint32_t desc;
  bool smem_a;
  int id;
} PtxUmma;

// Bytes of shared memory that the system reserves on a GPU. Cooperative groups
// of several warps keep their barriers in the second half.
enum { RESERVED_BYTES = 1024 };

typedef struct PtxRow PtxRow;
typedef struct PtxBuild {
  Ctx *cx;
  Fn *fn;
  const PtxModule *m;
  const PtxFunc *f;
  const PtxBound *bound;
  size_t nbound;
  PtxSlot *slot;          // one entry for each register
  Ref *object;            // for each pointer that the launch passes: its memory
                          // as bytes
  PtxPool pool[POOLS];
  int pools;
  const PtxRow **row;     // the opcode's row for each instruction, or NULL
  // for each instruction in PtxModule.ins: whether it is a try_wait that
  // repeats in a loop until it succeeds
  bool *waits;
  PtxMma mma[MMAS];       // cache of ptx_mma
  PtxUmma umma[UMMAS];  // the latest tcgen05.mma instructions, the newest first
  Ref viewed[8];          // latest results of op_view, the newest first
  Ref vector[8];          // latest registers of vector accesses, newest first
  Ref smem;               // shared memory of the CTA as bytes, or 0
  int64_t *shared;        // each variable's offset in shared memory, or -1
  const PtxIns *at;       // the instruction being translated
  unsigned flags;  // the flags that ptx_translate was given, such as PTX_LINES
  int64_t reduced;        // offset in shared memory of the word for
                          // barrier.red, or -1
  // offset in shared memory of the bytes that the system reserves, or -1 if the
  // function does not use them
  int64_t reserved;
  Ref local;              // local memory of the thread, or 0
  int64_t *local_at;      // offset of each variable in local memory
  int64_t local_bytes;
  // Whether cvta creates generic addresses of shared or local memory.
  bool generic_shared, generic_local;
  // whether the function has mapa, which returns addresses in other CTAs'
  // shared memory
  bool generic_cluster;
  // for PTX_LOADS_ORDERED: the latest tcgen05.ld (load), and the latest wait
  // for such loads (waited)
  Ref load, waited;
  Ref carry;              // the variable for the condition code's carry, or 0
} PtxBuild;

// An instruction during its translation: opcode, operands, modifiers, and a
// record of which modifiers were used.
enum { PTX_MODS = 20 };
typedef struct PtxOp {
  PtxBuild *b;
  const PtxIns *i;
  const PtxArg *arg;      // the operands of the instruction
  char text[160];         // the opcode, with a NUL instead of each point
  const char *mod[PTX_MODS];
  int n;
  uint32_t used;          // bit k: the translation has examined mod[k]
  PtxType type[4];        // the types among the modifiers, in order
  DType elem[4];          // the element type of type[k], such as f16 of f16x2
  bool pair[4];  // whether a register holds two elements (as for f16x2)
  int types;
} PtxOp;

// Reports whether the first words of an opcode are `name`.
static inline bool ptx_is(const char *op, const char *name) {
  size_t n = strlen(name);
  return strncmp(op, name, n) == 0 && (op[n] == 0 || op[n] == '.');
}

// A row of the table of opcodes.
struct PtxRow {
  const char *name;   // first words of the opcode: "ld", "cp.async.bulk"
  // a Fidelity: how closely the simulator computes the GPU's result. FI_ROW: as
  // closely as the IR operations that compute the result. FI_CONTRACTED applies
  // only to floats whose text allows contraction, and FI_WEAKER only to
  // accesses with .sc or .volatile.
  uint8_t fidelity;
  uint8_t dsts;       // number of leading operands that the instruction writes
  // whether the instruction may use registers of a PtxPool without a conversion
  bool homes;
  void (*emit)(PtxOp *o, int k);  // the translation; NULL: the opcode is
                                  // rejected
  // argument of `emit`, which distinguishes rows with the same function
  int k;
  const char *takes;  // modifiers that may follow the name, including types
  const char *note;   // "" if the result is exact; otherwise the error bound,
                      // or the reason why the opcode is rejected
};
// Returns the row with the longest name that the opcode begins with, or NULL.
const PtxRow *ptxrow_find(const char *op);
// Returns the row of instruction i of the function that is being translated, or
// NULL if no row has i's opcode.
static inline const PtxRow *ptx_row(const PtxBuild *b, const PtxIns *i) {
  return b->row[(size_t)(i - b->m->ins.p) - b->f->ins];
}
// Rejects the instruction if it has modifiers that the row does not allow.
void ptxrow_check(PtxOp *o, const PtxRow *row);

_Noreturn void ptx_fail(const PtxBuild *b, const char *fmt, ...)
  PRINTF_LIKE(2, 3);

// Returns the element type of the registers of operand k of MMA i. Returns
// DT_NONE if i is not an MMA, or if operand k is not a register operand of the
// atom.
DType ptxrow_elements(PtxBuild *b, const PtxIns *i, uint32_t k);
// Reports whether operand k is the register with the metadata of a sparse A.
bool ptxrow_metadata(const PtxIns *i, uint32_t k);
// Returns the atoms of the MMA instruction with opcode op.
const PtxMma *ptx_mma(PtxBuild *b, const char *op);

// Returns the parameter that an operand points into, as an index into
// PtxBuild.bound. Returns PLAIN or MIXED if there is no single parameter.
int32_t ptx_root(const PtxBuild *b, const PtxArg *a);
// Returns the index into PtxBuild.bound of the pointer that is stored at byte
// `offset` of the parameters, or PLAIN if there is none.
int32_t ptx_bound_pointer(const PtxBuild *b, int64_t offset);

// ---- operands ----
// Reports whether the modifier is present, and marks it as used.
bool op_has(PtxOp *o, const char *mod);
PtxType op_type(PtxOp *o, int k);  // returns type number k of the modifiers
// returns the IR type of PTX type t, where PTX_B is unsigned
DType op_dtype(PtxType t);
// returns the bits of value a, reinterpreted as a value of type t
Ref op_as(PtxOp *o, DType t, Ref a);
// Returns an operand as a value of type t. The operand must be as wide as t.
Ref op_value(PtxOp *o, const PtxArg *a, DType t);
Ref op_operand(PtxOp *o, uint32_t k, DType t);
Ref op_pred(PtxOp *o, const PtxArg *a);
int64_t op_constant(PtxOp *o, uint32_t k);
// Returns operand k, a constant from `least` to `most`.
int64_t op_constant_in(PtxOp *o, uint32_t k, int64_t least, int64_t most);
const PtxArg *op_arg(PtxOp *o, uint32_t k);
// Writes a value to register a. If a holds a pointer, the value is an offset in
// bytes.
void op_set(PtxOp *o, const PtxArg *a, Ref v);
void op_result(PtxOp *o, Ref v);  // writes v to operand 0, the destination
// Returns the parameter that operand a points into, as ptx_root does.
int32_t op_root(PtxOp *o, const PtxArg *a);
// Returns an operand as an i64: the byte offset of a pointer from the start of
// its parameter's memory, or the value of any other number. (op_value returns a
// pointer's address instead.)
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
// Returns the result of comparing a with b. The instruction's modifier, such as
// .lt, names the comparison. `floats` is true if a and b are floats, which may
// be NaNs.
Ref op_compare(PtxOp *o, bool floats, Ref a, Ref b);
static inline DType unsigned_of(int bits) {
  return bits == 8 ? DT_U8 : bits == 16 ? DT_U16 : bits == 32 ? DT_U32 : DT_U64;
}
static inline DType signed_of(int bits) {
  return bits == 8 ? DT_I8 : bits == 16 ? DT_I16 : bits == 32 ? DT_I32 : DT_I64;
}


// Returns `bits` bits of the parameters from byte `at` on, as an unsigned
// number.
Ref op_param(PtxOp *o, uint32_t at, int bits);

// With PTX_LOADS_ORDERED, emits a wait before a use of a register that a
// tcgen05.ld writes.
void op_await(PtxOp *o, const PtxSlot *s);

// ---- memory ----
typedef struct Place {
  Ref mem, off;  // off counts bytes
} Place;

// The state space that the modifiers name.
typedef enum Where {
  ANYWHERE, IN_SHARED, IN_GLOBAL, IN_CLUSTER, IN_LOCAL
} Where;
// In an address in the cluster's shared memory, the bits from RANK_BIT on
// identify a CTA: 1 + the CTA's rank, or 0 for the CTA that uses the address.
enum { RANK_BIT = 24 };
Where op_where(PtxOp *o);
// Returns the shared memory of the CTA that a cluster address names.
Place op_cluster(PtxOp *o, Ref at);
// Returns the base of the address [a], without the offset: a register, a
// variable or a number.
const PtxArg *op_base(PtxOp *o, const PtxArg *a);
// Returns the memory object and offset that address operand [a] names in state
// space `space`.
Place op_place(PtxOp *o, const PtxArg *a, Where space);

// Changes the unit of p's offset from bytes to elements of type t. The address
// must be a multiple of `bytes`; `what` names the object in messages. Rejects a
// constant address that is not. For any other address, emits a check that the
// kernel executes.
void op_count_in(PtxOp *o, Place *p, DType t, int bytes, const char *what);

// Emits a report, with the message `text`, for threads where `good` is false.
void op_require(PtxOp *o, Ref good, const char *text);
// Returns the memory object of the mbarrier at [a], and its offset in 64-bit
// elements. Stores in *rank the rank of the CTA that has the mbarrier, or 0 if
// the mbarrier must be in this CTA.
Place op_barrier(PtxOp *o, const PtxArg *a, Ref *rank);

// Returns the cache, order and scope modifiers as Ins.flags.
uint16_t op_hints(PtxOp *o);
// Returns the number of registers that .v2, .v4 or .v8 names.
int op_vector(PtxOp *o);

// ---- local.c: memory of a thread, generic addresses ----

// assigns offsets in local memory to the local variables
void local_memory(PtxBuild *b);
// Loads from local memory. off counts bytes and need not be a constant.
Ref local_load(PtxOp *o, DType t, Ref off);
void local_store(PtxOp *o, Ref off, Ref v);

// A generic address `at`. `shared` and `local` state whether it is in shared or
// local memory, at the offset in_shared or in_local. If neither is true, it is
// a global address. `cluster` states whether mapa returned the address;
// in_shared is then an address in the cluster's shared memory.
typedef struct Spaces {
  Ref at, cluster, shared, local, in_shared, in_local;
} Spaces;
// Fills in *s for the generic address a. Returns false if the function makes no
// generic addresses, or if a comes from a parameter.
bool op_spaces(PtxOp *o, const PtxArg *a, Spaces *s);
// Returns the memory object and offset of a generic address in memory space w,
// which is not IN_LOCAL.
Place op_in_space(PtxOp *o, const Spaces *s, Where w);

// The lists of registers that an instruction reads or writes, as memory objects
// and indices of elements.
typedef struct Runs {
  Ref mem[8];
  uint32_t n, reg[256], regs;
} Runs;

// Adds the registers of operand a to r. t is the type of the elements that a
// register holds. If t is DT_NONE, the registers keep their types.
void op_run(PtxOp *o, Runs *r, const PtxArg *a, DType t);
struct AtomMma;
// Adds the registers of an MMA's operand to r. It is operand k of the
// instruction and operand q of the atom. Returns the memory object of the
// registers.
Ref mma_run(PtxOp *o, Runs *r, uint32_t k, const struct AtomMma *row,
            int q);
// Returns a memory object viewed as elements of type t.
Ref op_view(PtxOp *o, Ref mem, DType t);

// Writes a value of type t to the register of operand a. If the register is
// wider, the upper bits become copies of the sign, or zeros.
void op_set_wider(PtxOp *o, const PtxArg *a, Ref v, PtxType t);
// Returns the low bits of operand a as type t.
Ref op_low(PtxOp *o, const PtxArg *a, PtxType t);
// Returns half q of a 128-bit register.
Ref op_half(PtxOp *o, const PtxArg *a, int q);
void op_set_half(PtxOp *o, const PtxArg *a, int q, Ref v);
// Returns part k of an operand that is a vector, a pair or a list.
const PtxArg *op_part(PtxOp *o, const PtxArg *a, uint32_t k);
// Rejects operand a unless it has n registers. Returns whether a is a vector.
bool op_registers(PtxOp *o, const PtxArg *a, int n);
// Rejects an instruction in a form that is not modelled.
_Noreturn void op_reject(PtxOp *o, const char *what);

// ---- soft.h's operations ----

// Returns the modifiers of the instruction as SOFT_* flags (base/soft.h).
uint8_t op_flags(PtxOp *o);
// Returns the rounding that the modifiers name, or .rn if they name no
// rounding.
SoftRound op_rounding(PtxOp *o);
// Emits the operation s on up to three values of any width. The result has
// `bits` bits.
Ref op_soft(PtxOp *o, Soft s, int bits, Ref a, Ref b, Ref c);

// ---- the families ----

// arith.c: floats and integers
void row_sum(PtxOp *o, int k);       // k: OP_ADD, OP_SUB
void row_mul(PtxOp *o, int k);       // k = 0: mul; 1: mad, fma; 2: madc
void row_divide(PtxOp *o, int k);    // k: OP_DIV, OP_MOD
void row_extreme(PtxOp *o, int k);   // k: OP_MIN, OP_MAX
void row_sign(PtxOp *o, int k);      // k: OP_NEG, OP_ABS
void row_function(PtxOp *o, int k);  // k: SoftApprox
void row_mul24(PtxOp *o, int k);     // k = 0: mul24; 1: mad24
void row_sad(PtxOp *o, int k);
void row_dot(PtxOp *o, int k);       // k: SoftOp
// video.c: k is a VideoOp. With VIDEO_BYTES, a register has four bytes,
// otherwise two halves.
typedef enum VideoOp {
  VIDEO_ADD, VIDEO_SUB, VIDEO_MIN, VIDEO_MAX, VIDEO_ABSDIFF, VIDEO_SET
} VideoOp;
enum { VIDEO_BYTES = 8 };
void row_video(PtxOp *o, int k);
// bits.c
void row_logic(PtxOp *o, int k);     // k: OP_AND, OP_OR, OP_XOR
void row_not(PtxOp *o, int k);
void row_cnot(PtxOp *o, int k);
void row_shift(PtxOp *o, int k);     // k: OP_SHL, OP_SHR
void row_funnel(PtxOp *o, int k);
void row_count(PtxOp *o, int k);     // k: IntrinId of the 32-bit form
void row_bfind(PtxOp *o, int k);
void row_bitfield(PtxOp *o, int k);  // k = 0: bfe; 1: bfi
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
void row_atomic(PtxOp *o, int k);    // k = 0: atom; 1: red
void row_copy(PtxOp *o, int k);      // cp.async
void row_copy_wait(PtxOp *o, int k);
void row_copy_arrive(PtxOp *o, int k);  // hopper.c
// threads.c
void row_barrier(PtxOp *o, int k);   // k = 0: barrier; 1: bar
void row_warp_barrier(PtxOp *o, int k);
void row_fence(PtxOp *o, int k);
void row_shuffle(PtxOp *o, int k);
void row_vote(PtxOp *o, int k);
void row_match(PtxOp *o, int k);
void row_redux(PtxOp *o, int k);
void row_elect(PtxOp *o, int k);
void row_active(PtxOp *o, int k);
void row_trap(PtxOp *o, int k);
void row_call(PtxOp *o, int k);
void row_print(PtxOp *o, int k);
void row_check(PtxOp *o, int k);
void row_fetch(PtxOp *o, int k);     // params.c
void row_sleep(PtxOp *o, int k);
void row_nothing(PtxOp *o, int k);
void row_policy(PtxOp *o, int k);
// matrix.c
void row_mma(PtxOp *o, int k);
void row_matrix(PtxOp *o, int k);    // k = 0: ldmatrix; 1: stmatrix
void row_movmatrix(PtxOp *o, int k);
// hopper.c: mbarriers, bulk copies, wgmma, clusters
void row_mbarrier(PtxOp *o, int k);
void row_bulk(PtxOp *o, int k);
void row_send(PtxOp *o, int k);
void row_proxy(PtxOp *o, int k);
void row_wgmma(PtxOp *o, int k);
void row_cluster(PtxOp *o, int k);
void row_mapa(PtxOp *o, int k);
// tcgen05.c
void row_tmem_alloc(PtxOp *o, int k);
void row_tmem_dealloc(PtxOp *o, int k);     // k: OP_TCDEALLOC
void row_tmem_relinquish(PtxOp *o, int k);  // k: OP_TCRELINQUISH
void row_tmem_copy(PtxOp *o, int k);   // k: OP_TCLD, OP_TCST
void row_tmem_shift(PtxOp *o, int k);
void row_tmem_wait(PtxOp *o, int k);   // k: OP_TCWAITLD, OP_TCWAITST
void row_tmem_fence(PtxOp *o, int k);  // k: flags of OP_TCFENCE
void row_tmem_rows(PtxOp *o, int k);
void row_umma(PtxOp *o, int k);
void row_commit(PtxOp *o, int k);
void row_cancel(PtxOp *o, int k);
void row_canceled(PtxOp *o, int k);

// ---- maps.c: tensor maps ----

// Returns the tensor map at [a] as an operand of a copy. Stores in *map the
// contents of the map, or NULL if the map is in memory.
Ref ptx_map(PtxOp *o, const PtxArg *a, const TensorMap **map);
// If [a] is in a parameter that is a tensor map, loads n words of `bits` bits
// from [a] and returns true. Otherwise returns false.
bool maps_load(PtxOp *o, const PtxArg *a, int bits, int n, Ref *v);
void maps_acquire(PtxOp *o);
void row_prefetch(PtxOp *o, int k);
void row_publish(PtxOp *o, int k);
void row_replace(PtxOp *o, int k);

#endif
// SPDX-License-Identifier: MIT
