// The one IR. A flat, append-only array of instructions; operands
// are 32-bit Refs; pure instructions are folded and hash-consed; structured
// regions, no CFG, no phi: mutation only through VARs and memory objects.
#ifndef CUTE_IRFN_H
#define CUTE_IRFN_H

#include "base/base.h"
#include "base/dtype.h"
#include "ir/kinds.h"
#include "ir/rows.h"

typedef uint32_t Ref;  // index of an instruction; 0: none

typedef struct Ins {
  uint8_t op;       // Op
  uint8_t type;     // DType of the result or the memory object
  uint16_t flags;   // op's own (CPF_*, HINT_*: kinds.h)
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

// SP(ID, "name", "word", OP): spaces, the word of reports, and the op that
// declares an object there.
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

// A memory object. `count` elements (-1: unknown, bounded by the argument's
// buffer); smem, dsmem: byte offset in a CTA's dynamic shared memory.
typedef struct Mem {
  Ref ref;
  Space space;
  DType type;
  int64_t count;
  int64_t align;     // bytes the base is aligned to
  int64_t offset;    // SP_SMEM, SP_DSMEM: byte offset
  int32_t arg;       // SP_GMEM, SP_TMAP: index into Fn.arg, or NO_ARG
  uint32_t name;     // index into Fn.text, 0: none
  uint32_t layout;   // index into Fn.text: layout as printed, for reports; of
                     // SP_TMAP its box
  uint32_t view;     // the same of the first other layout that it is seen
                     // through, from its first element on; 0: none
  int8_t swizzle[3]; // that of this layout, 0 0 0: none
  bool views;        // it is seen through another swizzle, too
  bool undefined_ok; // for the simulator: reading what nobody wrote is meant
} Mem;

enum { NO_ARG = -1 };  // of memory at an address

// PICK and PUT among at most so many registers choose by selects; with more
// the fragment lies in memory of the thread.
enum { PICK_SELECTS = 8 };

typedef struct Arg {
  uint32_t name;     // index into Fn.text
  DType type;        // of the scalar, or of the pointee
  bool pointer;
  bool map;          // of these: it is told by a tensor map
  bool written, read;
  int32_t overlap;   // pointers: those of one number share memory at the
                     // launches that this was traced for; 0: alone
  int64_t align;     // pointers: bytes
} Arg;

typedef struct Src {
  uint32_t file;     // index into Fn.text (chunk source as in lua_Debug)
  uint32_t line;
} Src;

// A fact that was narrowed where so many regions were open.
typedef struct Assumed {
  Ref r;
  uint32_t depth;
  Fact was;
} Assumed;

// What is to hold where instruction `at` comes, if `when` is true: lo <= v <=
// hi, v below the value of `limit` where there is one, divisible by div. The
// terms of one coordinate of an element of mem follow each other.
// note: nothing is claimed, here begins (lo 1) or ends what has that name.
// rule: the words of three layouts follow each other (layout/traced.c): lo, or
// v where traced, whose word is lo then.
typedef struct Claim {
  Ref at, v, limit;  // v: 0 is the integer lo
  Ref mem;           // 0: said of v by cute.assume
  Ref when;          // 0: always
  bool write, more;  // of mem; the next one is a term of it, too
  uint32_t note;     // index into Fn.text
  uint32_t src;
  uint32_t rule;     // a TracedRule, or 0
  int64_t lo, hi, div;
} Claim;

typedef struct Fn {
  uint32_t serial;        // differs for every traced function
  uint32_t name;          // index into text
  int32_t block[3];       // threads, when fixed while tracing; else 0
  int32_t cluster[3];     // blocks of a cluster, likewise
  int32_t min_blocks;     // __launch_bounds__' second argument, or 0
  bool fmad, fastmath;    // see fast.c
  bool tell;              // on standard error, what passes change
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
  bool aside;             // what is computed now is for claims alone
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
  VEC(Claim) claim;       // for the simulator, which checks them
  VEC(Assumed) assumed;   // what open regions narrowed, the last one last
  uint32_t *cons;         // hash table of pure instructions
  size_t ncons, conscap;
} Fn;

#endif
