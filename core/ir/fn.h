// The IR of a kernel: a flat, append-only array of instructions whose operands
// are 32-bit Refs. Pure instructions are folded and hash-consed. Control flow
// consists of structured regions, without a CFG or phis. Only VARs and memory
// objects are mutable.
#ifndef CUTE_IRFN_H
#define CUTE_IRFN_H

#include "base/base.h"
#include "base/dtype.h"
#include "ir/kinds.h"
#include "ir/rows.h"

typedef uint32_t Ref;  // index of an instruction in Fn.ins; 0: none

typedef struct Ins {
  uint8_t op;       // Op
  uint8_t type;     // DType of the result, or of a memory object's elements
  // flags whose meaning depends on the operation (CPF_*, HINT_*: kinds.h)
  uint16_t flags;
  uint32_t src;     // index into Fn.src: the script's file and line
  // the first three operands; operands.h describes how others are stored
  Ref a[3];
  uint32_t ext, nx; // further operands: Fn.ext.p[ext .. ext+nx)
  uint32_t reg;  // index into Fn.reg of the instruction's first register number
  // the script's name of the value, an index into Fn.text; 0: none
  uint32_t name;
  // serial number: no other instruction gets the same number, even after a
  // rollback
  uint32_t birth;
  int64_t imm;
} Ins;

// Known facts about an integer x: lo <= x <= hi, and div divides x.
typedef struct Fact {
  int64_t lo, hi, div;  // div >= 1, but 0 for the constant 0
} Fact;

// LF(ID, "exists"): how long the contents of memory exist.
#define LIFETIMES(LF) \
  LF(NONE, "") LF(LAUNCH, "beyond the launch") \
  LF(BLOCK, "the block; undefined at its start") \
  LF(THREAD, "the thread; undefined at its start") \
  LF(ALLOCATION, "from its allocation to its deallocation")
typedef enum Lifetime {
#define LF(id, exists) LIFETIME_##id,
  LIFETIMES(LF)
#undef LF
} Lifetime;

// ME(ID, "granule"): the memories that contain objects, and the unit in which
// the simulator records accesses. NONE: objects of the host. Code that computes
// the byte or the granule of an address has a case for each memory.
#define MEMORIES(ME) \
  ME(NONE, "") ME(GLOBAL, "the kernel's narrowest access to the argument") \
  ME(SHARED, "the kernel's narrowest access to shared memory") \
  ME(REGISTERS, "the narrowest element of the object's views") \
  ME(TENSOR, "a column of 16 lanes")
typedef enum Memory {
#define ME(id, ...) MEMORY_##id,
  MEMORIES(ME)
#undef ME
} Memory;

// SP(ID, "name", "word", OP, MEMORY, LIFETIME, "elements"): memory spaces.
// Reports use "word". Operation OP declares an object of the space, and the
// object is in MEMORY. If OP is NOP, the space exists on the host only. The
// last column, for docs/ir.md, states how an offset becomes an address.
#define SPACES(SP) \
  SP(HOST, "host", "host", NOP, NONE, NONE, "") \
  SP(GMEM, "gmem", "global", GMEM, GLOBAL, LAUNCH, \
     "offset k is k elements from the argument's address") \
  SP(SMEM, "smem", "shared", SMEM, SHARED, BLOCK, \
     "offset k is k elements from Mem.offset in the block's shared memory") \
  SP(RMEM, "rmem", "register", RMEM, REGISTERS, THREAD, \
     "offset k is register k, a constant; registers have no address") \
  SP(COORD, "coord", "coordinate", NOP, NONE, NONE, "") \
  SP(DSMEM, "dsmem", "distributed shared", DSMEM, SHARED, BLOCK, \
     "as smem, in the block of the cluster that rank names") \
  SP(DESC, "desc", "descriptor", NOP, NONE, NONE, "") \
  SP(TMAP, "tmap", "global", TMAP, GLOBAL, LAUNCH, \
     "a tensor map, which only copies and operations on maps use") \
  SP(TMEM, "tmem", "tensor", TMEM, TENSOR, ALLOCATION, \
     "offset k is k * bits / 32 columns from the object's address")
typedef enum Space {
#define SP(id, ...) SP_##id,
  SPACES(SP)
#undef SP
} Space;
typedef struct SpaceRow {
  const char *name, *word;
  uint8_t op, memory, lifetime;  // an Op, a Memory, a Lifetime
} SpaceRow;
extern const SpaceRow space_rows[];

// A memory object of `count` elements. If count is -1, the number is unknown,
// and accesses may reach the whole buffer of the argument.
typedef struct Mem {
  Ref ref;
  Space space;
  DType type;
  int64_t count;
  int64_t align;     // alignment of the first element in bytes
  // for SP_SMEM and SP_DSMEM: offset in shared memory, in bytes
  int64_t offset;
  int32_t arg;  // SP_GMEM, SP_TMAP: argument's index into Fn.arg, or NO_ARG
  uint32_t name;     // index into Fn.text; 0: none
  // index into Fn.text of a description for reports: of the layout or, for
  // SP_TMAP, of the box
  uint32_t layout;
  // index into Fn.text of the layout of the first view that starts at the
  // object's first element and has another layout; 0: none
  uint32_t view;
  int8_t swizzle[3]; // swizzle of the layout: b, m, s; 0 0 0: none
  bool views;        // whether views of the object differ in swizzle
  // whether the simulator accepts that parts of the object are never read or
  // never written
  bool partial_ok;
  bool undefined_ok; // whether the simulator allows reads of unwritten elements
  bool nonfinite_ok; // whether the values may be NaN or infinity
  // a fragment of a tiled MMA's operand: 'A', 'B' or 'C'; 0: another object
  char operand;
  // whether the object belongs to a kernel that was parsed from PTX; it then
  // consists of bytes or registers
  bool ptx;
} Mem;

static inline Memory mem_memory(const Mem *m) {
  return (Memory)space_rows[m->space].memory;
}
// mem_is_global reports whether an object is in global memory, mem_is_shared
// whether it is in shared memory of any block (DSMEM included).
static inline bool mem_is_global(const Mem *m) {
  return mem_memory(m) == MEMORY_GLOBAL;
}
static inline bool mem_is_shared(const Mem *m) {
  return mem_memory(m) == MEMORY_SHARED;
}
// Reports whether the contents of an object outlive the launch.
static inline bool mem_outlives(const Mem *m) {
  return space_rows[m->space].lifetime == LIFETIME_LAUNCH;
}

// Mem.arg of memory whose address the kernel computes, so that it belongs to no
// argument
enum { NO_ARG = -1 };

// Operations PICK and PUT use select instructions for up to this many
// registers. A fragment of more registers is placed in local memory.
enum { PICK_SELECTS = 8 };

typedef struct Arg {
  uint32_t name;     // index into Fn.text
  DType type;        // type of the scalar, or of the pointer's elements
  bool pointer;
  bool map;          // whether a tensor map describes the pointer
  bool written, read;
  // Pointers with the same number may share memory in the launches for which
  // this function was traced; 0: none.
  int32_t overlap;
  int64_t align;     // alignment in bytes, if the argument is a pointer
} Arg;

typedef struct Src {
  // name of the chunk (`source` of lua_Debug), an index into Fn.text
  uint32_t file;
  uint32_t line;
} Src;

// A fact that was narrowed while `depth` regions were open. When the innermost
// of these regions ends, the old fact `was` is restored.
typedef struct Assumed {
  Ref r;
  uint32_t depth;
  Fact was;
} Assumed;

// An assertion that the simulator checks at instruction `at` if `when` is true.
// It asserts that lo <= v <= hi, that v < `limit` if there is a limit, and that
// div divides v.
// - Assertions for the modes of one coordinate of mem are consecutive entries.
// - An entry with a note is not an assertion: it marks the beginning (lo is 1)
//   or the end (lo is 0) of a named range of the script.
// - Entries whose `rule` is not 0 hold the shapes and strides of three layouts,
//   one number per entry (layout/traced.c). If the number is static, it is lo.
//   If it is traced, v is its value and lo its encoding as a Dim.
typedef struct Claim {
  Ref at, v, limit;  // v: checked value; 0: lo is the checked value
  Ref mem;  // the accessed object; 0: cute.assume made the assertion
  Ref when;  // condition under which the assertion is checked; 0: always
  // write: the access writes mem; more: the next entry is about the next mode
  // of the same coordinate; slice: v is the thread index of a get_slice
  bool write, more, slice;
  uint32_t note;     // index into Fn.text; 0: none
  uint32_t src;
  uint32_t rule;     // a TracedRule (layout/traced.c), or 0
  int64_t lo, hi, div;
} Claim;

typedef enum FlightKind {
  FLIGHT_NONE,
  FLIGHT_READ,     // an accumulator is read before a wait completes the MMA
  FLIGHT_WRITE,    // an operand is written before a wait completes the MMA
  FLIGHT_SHAPE,    // an MMA of another shape has the same accumulators
  // a register is used before the wait for the tcgen05.ld that writes it
  FLIGHT_LOAD,
  // no wgmma.fence separates an earlier use of the registers from the MMA
  FLIGHT_FENCE
} FlightKind;

// A misuse of registers in flight (async_regs.h): instruction `at` conflicts
// with the pending MMA or load `other`. For FLIGHT_FENCE, `at` is the MMA and
// `other` the earlier use of its registers (0: they were never used).
typedef struct Flight {
  FlightKind kind;
  Ref at, other;
  int32_t mem;     // memory object of the registers, an index into Fn.mem
  int64_t elem;
} Flight;

// A hash table of entries (texts or source lines), keyed by their contents. A
// slot holds the index of an entry; 0: free.
typedef struct Index {
  uint32_t *slot;
  size_t n, cap;          // n: used slots; cap: all slots, a power of 2
} Index;

// Records that instruction `at` is less exact than its row in ops.h states,
// because of the PTX text from which it was translated.
typedef struct Loose {
  Ref at;
  Fidelity how;
} Loose;

typedef struct Fn {
  uint32_t serial;        // number that no other traced function has
  uint32_t name;          // index into Fn.text
  int32_t block[3];       // block size in threads; 0: not known yet
  int32_t cluster[3];     // cluster size in blocks; 0: not known yet
  int32_t min_blocks;     // second argument of __launch_bounds__; 0: none
  // .maxnreg of PTX: the maximum number of registers of a thread at the start;
  // 0: none; -1: ptxas chooses a number
  int32_t registers;
  bool fmad, fastmath;    // float options (fast.c)
  // whether to print to standard error how options replace operations (fast.c)
  bool tell;
  VEC(Ins) ins;           // instructions; ins.p[0] is a NOP
  // fact.p[k]: known range and divisor of the value of ins.p[k]
  VEC(Fact) fact;
  VEC(Ref) ext;
  VEC(uint32_t) reg;  // register numbers that the instructions list (Ins.reg)
  VEC(Src) src;           // source lines; src.p[0]: unknown
  VEC(uint32_t) text;     // offsets of texts in chars; text.p[0]: ""
  Buf chars;
  VEC(Mem) mem;
  VEC(Arg) arg;
  VEC(Loose) loose;
  // for kernels in PTX: the first misuse of registers, which the simulator
  // reports
  Flight flight;
  // for kernels in PTX: whether the warps of a warpgroup may execute different
  // setmaxnreg instructions with equal register counts
  bool setmaxnreg_alike;
  int64_t smem_bytes;     // bytes of dynamic shared memory that objects use
  // whether the instructions that are being appended serve only assertions
  bool aside;
  // whether an argument has over 2^31 elements, so that index arithmetic that
  // may not fit in i32 uses i64
  bool wide;
  // State that only tracing uses.
  uint32_t at;            // src index of new instructions
  // instructions that opened the open regions, outermost first
  VEC(Ref) region;
  // serial number of each instruction's region, parallel to ins
  VEC(uint32_t) scope;
  uint32_t scopes;        // serial number of the newest region
  // number of instructions appended so far, including removed ones
  uint32_t births;
  // number of operations traced from each source line, parallel to src
  VEC(uint32_t) hits;
  VEC(uint32_t) open;     // serial numbers of the open regions; open.p[0] == 0
  VEC(Claim) claim;       // assertions for the simulator
  VEC(Assumed) assumed;   // facts narrowed in open regions, the newest last
  uint32_t *cons;         // hash table of the pure instructions
  size_t ncons, conscap;
  Index text_at, src_at;  // hash tables of the entries of text and of src
} Fn;

#endif
// SPDX-License-Identifier: MIT
