// The decoded program, which is the same for all clusters.
#ifndef CUTE_SIMPROG_H
#define CUTE_SIMPROG_H

#include "sim/sim.h"

// Warps and barriers of a CTA, CTAs and warps of a cluster.
enum { LANES = 32, MAX_WARPS = 32, MAX_BARS = 16, MAX_CTAS = 16,
       MAX_ALL = 256 };
enum { SLOT = 4 * LANES };  // bytes of a value's lanes; 64-bit ones have two
#define FULL 0xffffffffu

// How a value lies in its slot: lanes of 4 or 8 bytes, raw bits of the type
// zero-extended (booleans 0 or 1).
typedef enum SimClass {
  SC_I32, SC_U32, SC_I64, SC_U64, SC_F32, SC_F64, SC_PRED, SC_OTHER
} SimClass;
SimClass sim_class(DType t);
static inline bool sim_wide(DType t) { return dtype_bits(t) > 32; }

// A memory object as the interpreter sees it, through one of its names: a
// recast name has elements of another size. Registers are kept in units, the
// narrowest element of any name: unit u of lane l is at
// base + (u * 32 + l) * size.
typedef struct SimMem {
  Space space;
  DType type;
  int bits;            // of an element
  int own;             // bits of an element of the object itself
  int unit, size, per; // rmem: bits and bytes of a unit, units an element
  int64_t count, bytes;  // elements that may be touched; in bytes
  int32_t index, named;  // into Fn.mem; named: not that of an address's piece
  uint32_t rank;       // smem: slot of the CTA whose it is; 0: its own
  uint32_t base;       // bytes: smem in the CTA's, rmem in the warp's values
  uint32_t def;        // rmem: byte offset of one lane mask a unit
  uint8_t *p, *defined;  // gmem
  uint32_t address;    // gmem at addresses: their slot; 0: it is one piece
  bool known;          // ... of memory that no argument is
  bool lax;            // what nobody wrote may be read
  bool mbars;          // smem: mbarriers may be made there
  uint8_t before;      // gmem: what the launch in front does with it
  struct SimArea *area;  // gmem: the host memory that it is a part of;
  const struct SimMembers *members;  // the elements, where there are gaps
} SimMem;

// One side of a move: object and slot of the offset (elements).
typedef struct SimSide {
  const SimMem *mem;
  uint32_t slot;
  uint8_t type;        // DType of an access: of bytes it may be a wider one
  bool wide;           // 64-bit offsets
  int64_t konst;       // rmem: the first unit; edit.c's: of a ring
} SimSide;

typedef struct SimCopy {
  SimSide dst, src;
  uint32_t pred;       // slot, 0: always
  uint32_t part;       // slot: bytes of the source, 0: all
  int bytes;           // a lane
} SimCopy;

// st.async: n values of 4 or 8 bytes, and the mbarrier.
typedef struct SimSend {
  SimSide dst, bar;
  int n, bytes;
  bool wide;
  uint32_t value[4];
} SimSend;

typedef struct SimPrint {
  const char *fmt;
  uint32_t n;
  const uint32_t *slot;
  const uint8_t *type;
} SimPrint;

typedef struct SimIns {
  uint8_t op;          // Op
  uint8_t type;        // DType: of the operands where they matter (CMP, CVT)
  uint8_t cls;         // SimClass of type
  uint8_t to;          // DType of the result (CVT, BITCAST)
  bool uniform;        // same in all lanes: lane 0 only is computed
  bool spread;         // ... and then copied to all
  bool wide, idle, alone;  // 64-bit lanes; nobody uses an ATOMIC's; and adds
  uint8_t head;        // END: Op of its region; FOR: uniform bounds
  uint16_t flags;      // Ins.flags
  uint8_t sem, scope;  // LD, ST, ATOMIC, MBAR*: order, for whom; 0: weak
  uint8_t who;         // Who: the lanes that must do it together
  uint32_t mask;       // WHO_MASK: slot of the mask, the last operand
  uint32_t d, a, b, c; // slots: byte offsets into the warp's values
  uint32_t jump;       // index of an instruction; MBARTRY, MBARWAIT: token.h's
  uint32_t src, ref;   // index into Fn.src; instruction of the IR
  int32_t stat;        // index of its statistics, or -1
  uint32_t put;        // edit.c's: threads of a barrier, mbarriers of a ring
  int64_t imm;
  const struct SimWraps *wraps;  // products that its addresses rest on
  const void *x;       // SimCopy, SimSide, SimMmaIns, SimMatrix, SimPrint
} SimIns;

// Values known before a warp starts.
typedef struct SimInit {
  uint32_t slot;
  bool spread, wide;
  uint8_t kind;        // OP_CONST, OP_ARG or OP_SREG
  int64_t imm;         // bits, or SReg
} SimInit;

// n rows of 32 lanes of so many bytes each, of a warp's values; size 0: words
// of a bit for each lane.
typedef struct SimRows { uint32_t at, n, size; } SimRows;

typedef struct SimArea SimArea;    // blocks.h
typedef struct SimRelay SimRelay;  // relay.c
typedef struct SimProg {
  const Launch *launch;
  const Fn *fn;
  SimIns *ins;
  uint32_t nins;
  SimInit *init;
  uint32_t ninit;
  const SimMem **mem;  // of the instructions that name memory objects
  uint32_t nstat;
  uint32_t *stat_ref;  // IR instruction of each statistics record
  uint32_t value_bytes, *slot;  // of one warp: registers, then values
  uint32_t value_base, ntaint;  // first value; records of taint
  SimRows *rows;       // all that lanes have of their own
  uint32_t nrows;
  uint32_t nwrap, *wrap_src;  // products that may wrap, and their lines
  uint32_t depth;      // deepest nesting of regions
  int nthread, nwarp;  // of a CTA
  int ncta, nall;      // CTAs of a cluster, and their warps
  int registers;       // of a thread at first, where setmaxnreg is used
  int nmbar;           // mbarriers that there may be
  bool polls;          // memory is accessed with an order
  int before;          // the actor that is the launch in front; 0: done
  int nteam;           // warpgroups, where they multiply
  int nactor, nturn;   // whoever has epochs (order.c): warps, an agent of each
                       // warp, those of warpgroups, that launch; mbar.h: turns
  uint64_t nunit;      // clusters of the grid
  int64_t smem_bytes;  // of a CTA
  int gran, shift;     // bytes of a granule: no access is narrower; log2
  uint32_t ngran;      // of a CTA
  SimArea *area;
  int narea;
  SimRelay *relay;     // clusters take turns, as relay.h says; or NULL
  uint64_t *changes;   // ... of global memory so far
} SimProg;

// Decodes into cx->scratch. Fails as sim_run does.
SimProg *simdecode_make(Ctx *cx, const Launch *l);

#endif
