// Enumerations of the rows of ops.h and of the functions in MATHS.
#ifndef CUTE_IRROWS_H
#define CUTE_IRROWS_H

#include "base/base.h"
#include "base/fidelity.h"

typedef enum Op {
#define OP(id, ...) OP_##id,
#include "ir/ops.h"
  OP_COUNT
} Op;

// RO(ID, "name", synchronizes, "meaning"): roles of operands. A role
// synchronizes if its operand is a number of threads, arrivals or bytes, a
// phase, or a set of CTAs.
#define ROLES(RO) \
  RO(NONE, "", false, "no role: an operand of a scalar operation") \
  RO(DST, "dst", false, "destination: memory or registers that are written") \
  RO(SRC, "src", false, "source: memory or registers that are read") \
  RO(VALUE, "value", false, "value that is stored, set or printed") \
  RO(COMPARED, "compared", false, "value to which the old value is compared") \
  RO(OBJECT, "object", false, "memory object") \
  RO(ADDRESS, "address", false, "address in global memory, an i64") \
  RO(MAP, "map", false, "tensor map of a copy, or that is copied") \
  RO(TMAP, "tmap", false, "tensor map in memory") \
  RO(FROM, "from", false, "tensor map that is published") \
  RO(TENSOR, "tensor", false, "tensor that a map describes") \
  RO(BAR, "bar", false, "mbarrier that counts arrivals or bytes") \
  RO(POLICY, "policy", false, "cache policy, a u64") \
  RO(AT, "at", false, "coordinate of a box, mode 0 first, or im2col offset") \
  RO(PRED, "pred", false, "condition") \
  RO(PART, "part", false, "bytes that are read; the other bytes become 0") \
  RO(INDEX, "index", false, "index of a register") \
  RO(LANES, "lanes", false, "mask of the lanes that take part") \
  RO(NUMBER, "number", false, "barrier's number") \
  RO(TIME, "time", false, "time limit in nanoseconds") \
  RO(VAR, "var", false, "variable") \
  RO(FIRST, "first", false, "first value of a counter") \
  RO(LIMIT, "limit", false, "value that a counter does not reach") \
  RO(STEP, "step", false, "difference of two values of a counter") \
  RO(ARRIVALS, "arrivals", true, "arrivals that complete a phase") \
  RO(EACH, "each", true, "arrivals that are made at once") \
  RO(BYTES, "bytes", true, "bytes that a phase waits for") \
  RO(PARITY, "parity", true, "phase: a parity, or an arrival's token") \
  RO(THREADS, "threads", true, "threads that take part in a barrier") \
  RO(RANK, "rank", true, "rank of a CTA in the cluster") \
  RO(MASK, "mask", true, "mask of CTAs of the cluster") \
  RO(ACC, "acc", false, "accumulators") \
  RO(A, "a", false, "operand A of an MMA: registers or a descriptor") \
  RO(B, "b", false, "operand B of an MMA: registers or a descriptor") \
  RO(C, "c", false, "operand C of an MMA") \
  RO(ADD, "add", false, "whether the accumulators are added") \
  RO(META, "meta", false, "metadata of a sparse operand A") \
  RO(SFA, "sfa", false, "scale factors of A in tensor memory") \
  RO(SFB, "sfb", false, "scale factors of B in tensor memory") \
  RO(COLUMNS, "columns", false, "number of columns of tensor memory")
typedef enum Role {
#define RO(id, name, sync, meaning) ROLE_##id,
  ROLES(RO)
#undef RO
  ROLE_COUNT
} Role;
const char *role_name(Role r);
bool role_synchronizes(Role r);

// AG(ID, "name", proxy, OP): agents: hardware that executes asynchronous
// operations (those with the effect ASYNC(ID) in ops.h). Operation OP waits
// until these operations are complete, or makes an mbarrier count them. proxy:
// whether the agent accesses global and shared memory through the async proxy,
// not the generic proxy.
#define AGENTS(AG) \
  AG(NONE, "", false, NOP) \
  AG(CPASYNC, "cp.async", false, CPWAIT) \
  AG(STASYNC, "st.async", false, MBARWAIT) \
  AG(BULKLOAD, "bulk copy", true, MBARWAIT) \
  AG(BULKSTORE, "bulk copy", true, BULKWAIT) \
  AG(WGMMA, "wgmma", true, WGWAIT) \
  AG(TCMMA, "tcgen05.mma", true, TCCOMMIT) \
  AG(TCCP, "tcgen05.cp", true, TCCOMMIT) \
  AG(TCLD, "tcgen05.ld", false, TCWAITLD) \
  AG(TCST, "tcgen05.st", false, TCWAITST)
typedef enum Agent {
#define AG(id, name, proxy, done) AGENT_##id,
  AGENTS(AG)
#undef AG
  AGENT_COUNT
} Agent;
typedef struct AgentRow {
  const char *name;
  bool proxy;
  uint8_t done;  // the Op
} AgentRow;
extern const AgentRow agent_rows[AGENT_COUNT];

// The threads of a warp that must execute an operation together. ops.h
// describes the values.
typedef enum Who {
  WHO_LANE = 1, WHO_MASK, WHO_WARP, WHO_FULL, WHO_ROW, WHO_TEXT
} Who;
// From WHO_LANE to WHO_FULL, the number of threads increases.
CONSECUTIVE(4, WHO_LANE, WHO_FULL);
CONSECUTIVE(2, WHO_MASK, WHO_WARP);
typedef enum Rule {
  RULE_NONE, RULE_SAME, RULE_INT, RULE_FLT, RULE_CMP, RULE_SHF, RULE_SEL,
  RULE_SET, RULE_ANY
} Rule;
typedef enum ImmKind {
  IMM_NONE, IMM_RAW, IMM_ARG, IMM_MEM, IMM_TEXT, IMM_SREG, IMM_MATH,
  IMM_INTRIN, IMM_ELEMENTS, IMM_BITS, IMM_MMA, IMM_COPY, IMM_UNROLL,
  IMM_BARRIER, IMM_GROUPS, IMM_FENCE, IMM_ATOMIC, IMM_REGISTERS, IMM_MODE,
  IMM_LEVELS
} ImmKind;
typedef enum FlagKind {
  FLAGS_NONE, FLAGS_OUTPUTS, FLAGS_HINTS, FLAGS_LEVEL2, FLAGS_CPASYNC,
  FLAGS_MBAR, FLAGS_CLUSTER, FLAGS_BARRIER, FLAGS_BULK, FLAGS_READ,
  FLAGS_FIELD, FLAGS_REGISTERS, FLAGS_TCGEN05
} FlagKind;
// The kind of an operation's work. ops.h describes the values.
typedef enum OpClass {
  CLASS_NONE, CLASS_SUM, CLASS_PRODUCT, CLASS_QUOTIENT, CLASS_EXTREME,
  CLASS_SIGN, CLASS_FUSED, CLASS_LOGIC, CLASS_SHIFT, CLASS_COMPARE,
  CLASS_SELECT, CLASS_CONVERT, CLASS_FUNCTION, CLASS_INTRIN, CLASS_CHOICE,
  CLASS_ASK, CLASS_ACCESS, CLASS_SHARED, CLASS_SEND, CLASS_MATRIX, CLASS_MMA,
  CLASS_CPASYNC, CLASS_CPCOMMIT, CLASS_CPWAIT, CLASS_CPARRIVE,
  CLASS_WGCOMMIT, CLASS_WGWAIT, CLASS_BULKLOAD, CLASS_BULKSTORE,
  CLASS_BULKCOMMIT, CLASS_BULKWAIT, CLASS_BARRIER, CLASS_SYNCWARP,
  CLASS_FENCE, CLASS_CLUSTER, CLASS_LOOP, CLASS_END, CLASS_CONTROL
} OpClass;
typedef enum Point {
  POINT_NEVER, POINT_ALWAYS, POINT_ORDERED, POINT_UNLINKED
} Point;
// Bits that state what an operation depends on and affects. EF_ORDERED: no
// memory access moves past the operation, whatever its operands are.
enum {
  EF_PURE = 1, EF_FIXED = 2, EF_OBJECT = 4, EF_VAR = 8, EF_REGS = 16,
  EF_MEMORY = 32, EF_ORDERED = 64, EF_OPENS = 128, EF_CLOSES = 256,
  EF_LATER = 512, EF_VISIBLE = 1024, EF_LEAVES = 2048
};
typedef struct OpRow {
  const char *name, *operands;
  uint16_t effect;   // bits EF_*
  uint8_t agent;     // for EF_LATER: the Agent that carries it out
  uint8_t imm, flags, rule, who;
  uint8_t fidelity;  // the Fidelity
  uint8_t need;  // a Feature that targets need, FT_NONE or FT_ROW (target.h)
  uint8_t class, point;
} OpRow;
extern const OpRow op_rows[OP_COUNT];

static inline const char *op_name(Op op) { return op_rows[op].name; }
static inline unsigned op_effect(Op op) { return op_rows[op].effect; }
static inline bool op_pure(Op op) { return op_rows[op].effect & EF_PURE; }
// Reports whether op begins a region and, unlike ELSE, ends none.
static inline bool op_opens(Op op) {
  return (op_rows[op].effect & (EF_OPENS | EF_CLOSES)) == EF_OPENS;
}
// Reports whether op begins a loop.
static inline bool op_loops(Op op) { return op == OP_FOR || op == OP_LOOP; }
static inline FlagKind op_flag_kind(Op op) {
  return (FlagKind)op_rows[op].flags;
}
static inline OpClass op_class(Op op) { return (OpClass)op_rows[op].class; }
static inline Agent op_agent(Op op) { return (Agent)op_rows[op].agent; }
static inline Who op_who(Op op) { return (Who)op_rows[op].who; }
const char *who_name(Who who);  // returns a name such as "lane"
// Reports whether threads wait for this agent's operations by groups, as with
// wait_group. For other agents, they wait at an mbarrier or for all operations.
static inline bool agent_groups(Agent a) {
  return op_rows[agent_rows[a].done].imm == IMM_GROUPS;
}
// Returns the agent whose operations op waits for, or AGENT_NONE.
Agent agent_awaited(Op op);

// MF(id, "name", operands, fidelity): float functions of OP_MATH. The last rows
// are the hardware's approximate functions under names of their own, for f32
// only.
#define MATHS(MF) \
  MF(SQRT, "sqrt", 1, EXACT) MF(RSQRT, "rsqrt", 1, CUDA) \
  MF(RCP, "rcp", 1, EXACT) MF(EXP, "exp", 1, CUDA) MF(EXP2, "exp2", 1, CUDA) \
  MF(EXPM1, "expm1", 1, CUDA) MF(LOG, "log", 1, CUDA) \
  MF(LOG2, "log2", 1, CUDA) MF(LOG10, "log10", 1, CUDA) \
  MF(LOG1P, "log1p", 1, CUDA) MF(SIN, "sin", 1, CUDA) MF(COS, "cos", 1, CUDA) \
  MF(TAN, "tan", 1, CUDA) MF(ASIN, "asin", 1, CUDA) MF(ACOS, "acos", 1, CUDA) \
  MF(ATAN, "atan", 1, CUDA) MF(SINH, "sinh", 1, CUDA) \
  MF(COSH, "cosh", 1, CUDA) MF(TANH, "tanh", 1, CUDA) \
  MF(ASINH, "asinh", 1, CUDA) MF(ACOSH, "acosh", 1, CUDA) \
  MF(ATANH, "atanh", 1, CUDA) MF(ERF, "erf", 1, CUDA) \
  MF(ERFC, "erfc", 1, CUDA) MF(CBRT, "cbrt", 1, CUDA) \
  MF(FLOOR, "floor", 1, EXACT) MF(CEIL, "ceil", 1, EXACT) \
  MF(TRUNC, "trunc", 1, EXACT) MF(ROUND, "round", 1, EXACT) \
  MF(RINT, "rint", 1, EXACT) MF(POW, "pow", 2, CUDA) \
  MF(ATAN2, "atan2", 2, CUDA) MF(COPYSIGN, "copysign", 2, EXACT) \
  MF(FMOD, "fmod", 2, EXACT) MF(EX2APPROX, "ex2.approx", 1, UNIT) \
  MF(TANHAPPROX, "tanh.approx", 1, UNIT) MF(RCPAPPROX, "rcp.approx", 1, UNIT) \
  MF(SINAPPROX, "sin.approx", 1, UNIT) MF(COSAPPROX, "cos.approx", 1, UNIT) \
  MF(LG2APPROX, "lg2.approx", 1, UNIT) MF(SQRTAPPROX, "sqrt.approx", 1, UNIT) \
  MF(RSQRTAPPROX, "rsqrt.approx", 1, UNIT) MF(DIVAPPROX, "div.full", 2, UNIT)
typedef enum MathFn {
#define MF(id, name, n, fidelity) MF_##id,
  MATHS(MF)
#undef MF
  MF_COUNT
} MathFn;
CONSECUTIVE(9, MF_EX2APPROX, MF_COUNT - 1);
const char *math_name(MathFn f);
Fidelity math_fidelity(MathFn f);
int math_arity(MathFn f);
static inline bool math_is_approx(MathFn f) { return f >= MF_EX2APPROX; }

#endif
// SPDX-License-Identifier: MIT
