// The decoded program, shared by all clusters.
#ifndef CUTE_SIMPROG_H
#define CUTE_SIMPROG_H

#include "sim/sim.h"

// Limits: warps and barriers of a CTA, CTAs and warps of a cluster.
enum { LANES = 32, MAX_WARPS = 32, MAX_BARS = 16, MAX_CTAS = 16,
       MAX_ALL = 256 };
enum { SLOT = 4 * LANES };  // bytes of a value's lanes; 64-bit values use two
#define FULL 0xffffffffu

// Format of a value in its slot: 32 lanes of 4 or 8 bytes. Each lane holds the
// raw bits of the value's type, zero-extended (booleans are 0 or 1).
typedef enum SimClass {
  SC_I32, SC_U32, SC_I64, SC_U64, SC_F32, SC_F64, SC_PRED, SC_OTHER
} SimClass;
SimClass sim_class(DType t);
static inline bool sim_wide(DType t) { return dtype_bits(t) > 32; }

// A memory object as the interpreter accesses it through one of its names. A
// recast name has elements of another size. Registers are stored in units; a
// unit is as wide as the narrowest element of any name. Unit u of lane l is at
// base + (u * 32 + l) * size.
typedef struct SimMem {
  Space space;
  DType type;
  int bits;            // bits per element
  int own;             // bits per element of the object's own type
  int unit, size, per; // rmem; unit: bits of a unit; size: bytes of a unit;
                       // per: units per element
  int64_t count, bytes;  // count: number of accessible elements; bytes: size of
                         // the object
  int32_t index, named;  // index, named: indices into Fn.mem of the object and
                         // of its name in the source, which differ for raw
                         // addresses
  uint32_t rank;       // smem: slot of the owner's CTA rank; 0: this CTA
  uint32_t base;       // byte offset: smem in the CTA, rmem in warp values
  uint32_t def;        // rmem: byte offset of one lane mask per unit
  uint8_t *p, *defined;  // gmem
  uint32_t address;    // gmem by raw address: slot of the address; 0: one
                       // object
  bool known;          // by raw address: memory that belongs to no argument
  bool lax;            // undefined elements may be read
  bool mbars;          // smem: may hold mbarriers
  uint8_t before;      // gmem: uses by the preceding launch
  struct SimArea *area;  // gmem: host memory that contains the object
  const struct SimMembers *members;  // footprint, if the layout has gaps
} SimMem;

// Returns the first bit of an element. An element that no memory has may have a
// number whose product overflows; the result is then the largest or smallest.
static inline int64_t simprog_bit(const SimMem *m, int64_t element) {
  int64_t bit;
  if (!__builtin_mul_overflow(element, (int64_t)m->bits, &bit)) return bit;
  return element < 0 ? INT64_MIN : INT64_MAX;
}

// A memory operand: the object, and the slot of the element offset.
typedef struct SimSide {
  const SimMem *mem;
  uint32_t slot;
  uint8_t type;        // DType of the access: wider than the element for copies
                       // of bytes
  bool wide;           // 64-bit offset
  int64_t konst;       // rmem: first unit; edit.c: first element of a ring
} SimSide;

typedef struct SimCopy {
  SimSide dst, src;
  uint32_t pred;       // slot of the predicate; 0: none
  uint32_t part;       // slot of the number of bytes to read; 0: all
  int bytes;           // bytes per lane
} SimCopy;

// st.async: its destination, its mbarrier, and n values of 4 or 8 bytes.
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
  uint8_t type;        // DType of the operands if it matters (CMP, CVT)
  uint8_t cls;         // SimClass of type
  uint8_t to;          // DType of the result (CVT, BITCAST)
  bool uniform;        // same value in all lanes: only lane 0 is computed
  bool spread;         // uniform, and copied to all lanes
  bool wide, idle, alone;  // wide: lanes have 64 bits; idle: an ATOMIC's result
                           // is unused; alone: the ATOMIC also commutes
  uint8_t head;        // END: Op of its region; FOR: bounds are uniform
  uint16_t flags;      // Ins.flags
  uint8_t sem, scope;  // LD, ST, ATOMIC, MBAR*: memory order; 0: weak
  uint8_t who;         // Who: lanes that must execute it together
  uint32_t mask;       // WHO_MASK: slot of the lane mask, the last operand
  uint32_t d, a, b, c; // slots: byte offsets into the warp's values
  uint32_t jump;       // target instruction; MBARTRY, MBARWAIT: see token.h
  uint32_t src, ref;   // src: index into Fn.src; ref: IR instruction
  int32_t stat;        // index of its statistics, or -1
  uint32_t put;        // edit.c: thread count of a barrier; number of mbarriers
                       // in a ring
  int64_t imm;
  const struct SimWraps *wraps;  // results that it depends on and that may
                                 // overflow
  const void *x;       // operation data: SimCopy, SimSide, SimMmaIns ...
} SimIns;

// Values known before a warp starts.
typedef struct SimInit {
  uint32_t slot;
  bool spread, wide;
  uint8_t kind;        // Op of the instruction that defines the value
  int64_t imm;         // bits, or SReg
} SimInit;

// n rows of 32 lanes of `size` bytes each, among a warp's values; size 0: words
// with one bit per lane.
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
  const SimMem **mem;  // for each IR instruction that names a memory object
  uint32_t nstat;
  uint32_t *stat_ref;  // IR instruction of each statistics record
  uint32_t value_bytes, *slot;  // value_bytes: bytes of a warp's registers and
                                // values; slot: slot of each value, by Ref
  uint32_t value_base, ntaint;  // value_base: offset of the first value;
                                // ntaint: number of SimTaint records
  SimRows *rows;       // all per-lane storage
  uint32_t nrows;
  uint32_t nwrap, *wrap_src;  // nwrap: number of results that may overflow;
                              // wrap_src: their lines
  uint32_t depth;      // deepest nesting of regions
  int nthread, nwarp;  // threads and warps of a CTA
  int ncta, nall;      // ncta: CTAs of a cluster; nall: warps of a cluster
  int registers;       // initial registers per thread, with setmaxnreg
  int nmbar;           // maximum number of mbarriers
  bool polls;          // the kernel accesses memory with a memory order
  int before;          // actor of the preceding launch; 0: it is complete
  int nteam;           // warpgroups, if the kernel uses wgmma
  int nactor, nturn;   // nactor: number of actors with epochs (order.c): warps,
                       // an agent of each warp, warpgroup agents, the preceding
                       // launch; nturn: number of turn actors among them
                       // (mbar.h)
  uint64_t nunit;      // clusters of the grid
  int64_t smem_bytes;  // bytes of shared memory of a CTA
  int shift;           // log2 of the bytes of the narrowest access to shared
                       // memory
  SimArea *area;
  int narea;
  SimRelay *relay;     // set if clusters communicate (relay.h)
  uint64_t *changes;   // with relay: number of changes of global memory
} SimProg;

// Decodes a launch into cx->scratch. Fails in the same cases as sim_run.
SimProg *simdecode_make(Ctx *cx, const Launch *l);

#endif
// SPDX-License-Identifier: MIT
