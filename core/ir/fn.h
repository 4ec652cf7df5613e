// The IR of a kernel: a flat, append-only array of instructions whose operands
// are 32-bit Refs. Pure instructions are folded and hash-consed. Control flow
// is structured regions, without a CFG or phis; only VARs and memory objects
// are mutable.
#ifndef CUTE_IRFN_H
#define CUTE_IRFN_H

#include "base/base.h"
#include "base/dtype.h"
#include "ir/kinds.h"
#include "ir/rows.h"

typedef uint32_t Ref;  // index of an instruction; 0: none

typedef struct Ins {
  uint8_t op;       // Op
  uint8_t type;     // DType of the result, or of the memory object
  uint16_t flags;   // operation-specific flags (CPF_*, HINT_*: kinds.h)
  uint32_t src;     // index into Fn.src: the script's file and line
  Ref a[3];         // first operands; operands.h describes the rest
  uint32_t ext, nx; // Fn.ext.p[ext .. ext+nx)
  uint32_t reg;     // Fn.reg.p[reg ..)
  uint32_t name;    // script's name for the value, an index into Fn.text, or 0
  uint32_t birth;   // unique number of every instruction ever appended
  int64_t imm;
} Ins;

// Known facts about an integer x: lo <= x <= hi, and div divides x.
typedef struct Fact {
  int64_t lo, hi, div;  // div >= 1, but 0 for the constant 0
} Fact;

// SP(ID, "name", "word", OP): memory spaces. "word" appears in reports; OP
// declares an object of the space.
#define SPACES(SP) \
  SP(HOST, "host", "host", NOP) SP(GMEM, "gmem", "global", GMEM) \
  SP(SMEM, "smem", "shared", SMEM) SP(RMEM, "rmem", "register", RMEM) \
  SP(COORD, "coord", "coordinate", NOP) \
  SP(DSMEM, "dsmem", "distributed shared", DSMEM) \
  SP(DESC, "desc", "descriptor", NOP) \
  SP(TMAP, "tmap", "global", TMAP)
typedef enum Space {
#define SP(id, name, word, op) SP_##id,
  SPACES(SP)
#undef SP
} Space;

// A memory object of `count` elements (-1: unknown, bounded by the argument's
// buffer).
typedef struct Mem {
  Ref ref;
  Space space;
  DType type;
  int64_t count;
  int64_t align;     // bytes the base is aligned to
  int64_t offset;    // SP_SMEM, SP_DSMEM: byte offset in shared memory
  int32_t arg;       // SP_GMEM, SP_TMAP: index into Fn.arg, or NO_ARG
  uint32_t name;     // index into Fn.text, 0: none
  uint32_t layout;   // index into Fn.text: printed layout, for reports; the box
                     // of an SP_TMAP
  uint32_t view;     // index into Fn.text of the first other layout that views
                     // the object from its first element; 0: none
  int8_t swizzle[3]; // swizzle of the layout; 0 0 0: none
  bool views;        // another view of the memory has a different swizzle
  bool undefined_ok; // simulator: reading unwritten elements is allowed
  bool ptx;          // bytes, or registers, that PTX uses
} Mem;

enum { NO_ARG = -1 };  // memory given by an address

// PICK and PUT choose among up to this many registers by selects. A larger
// fragment is placed in local memory.
enum { PICK_SELECTS = 8 };

typedef struct Arg {
  uint32_t name;     // index into Fn.text
  DType type;        // type of the scalar or the pointee
  bool pointer;
  bool map;          // pointer described by a tensor map
  bool written, read;
  int32_t overlap;   // pointers with the same number share memory in the
                     // launches that this function was traced for; 0: none
  int64_t align;     // pointers: alignment in bytes
} Arg;

typedef struct Src {
  uint32_t file;     // index into Fn.text (chunk source as in lua_Debug)
  uint32_t line;
} Src;

// A fact that was narrowed while `depth` regions were open. `was` is restored
// when the innermost of them ends.
typedef struct Assumed {
  Ref r;
  uint32_t depth;
  Fact was;
} Assumed;

// A check that the simulator makes at instruction `at` if `when` is true: lo <=
// v <= hi, v < `limit` if given, and div divides v. The terms of one coordinate
// of an element of mem are consecutive entries. An entry with a note is no
// check: a named range begins (lo 1) or ends there. An entry with a rule
// belongs to consecutive entries with the words of three layouts
// (layout/traced.c). A word is lo, or v if it is traced (lo then describes it).
typedef struct Claim {
  Ref at, v, limit;  // v: checked value; 0: the integer lo
  Ref mem;           // object that is accessed; 0: checked by cute.assume
  Ref when;          // condition; 0: always
  bool write, more;  // write: mem is written; more: the next entry is a further
                     // term of the coordinate
  uint32_t note;     // index into Fn.text
  uint32_t src;
  uint32_t rule;     // a TracedRule, or 0
  int64_t lo, hi, div;
} Claim;

// A hash table of indices, found by the contents of their entries (a text, or a
// source line). A slot of 0 is free.
typedef struct Index {
  uint32_t *slot;
  size_t n, cap;          // capacity, a power of 2
} Index;

typedef struct Fn {
  uint32_t serial;        // unique number of every traced function
  uint32_t name;          // index into text
  int32_t block[3];       // block size in threads, 0 if not known yet
  int32_t cluster[3];     // cluster size in blocks, 0 if not known yet
  int32_t min_blocks;     // second argument of __launch_bounds__, or 0
  bool fmad, fastmath;    // float options (fast.c)
  bool tell;              // print to standard error how passes change code
  VEC(Ins) ins;           // ins.p[0] is a NOP
  VEC(Fact) fact;         // fact of each instruction, parallel to ins
  VEC(Ref) ext;
  VEC(uint32_t) reg;      // numbers of the elements in runs of registers
  VEC(Src) src;           // src.p[0]: unknown
  VEC(uint32_t) text;     // offsets into chars; text.p[0]: ""
  Buf chars;
  VEC(Mem) mem;
  VEC(Arg) arg;
  int64_t smem_bytes;     // dynamic shared memory used
  bool aside;             // instructions appended now serve only checks
  bool wide;              // whether an argument has over 2^31 elements: index
                          // arithmetic that may not fit in i32 then uses i64
                          // state while tracing
  // state while tracing
  uint32_t at;            // src index of new instructions
  VEC(Ref) region;        // open region heads, outermost first
  VEC(uint32_t) scope;    // serial of each instruction's region
  uint32_t scopes;        // serial of the newest region
  uint32_t births;        // number of instructions ever appended
  VEC(uint32_t) hits;     // number of operations traced from each line,
                          // parallel to src
  VEC(uint32_t) open;     // serials of the open regions; open.p[0] == 0
  VEC(Claim) claim;       // checks for the simulator
  VEC(Assumed) assumed;   // facts narrowed in open regions, newest last
  uint32_t *cons;         // hash table of pure instructions
  size_t ncons, conscap;
  Index text_at, src_at;  // hash tables of text and src
} Fn;

#endif
// SPDX-License-Identifier: MIT
