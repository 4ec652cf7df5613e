// The decoded program, which all clusters share.
#ifndef CUTE_DECODE_PROG_H
#define CUTE_DECODE_PROG_H

#include "decode/actors.h"
#include "decode/launch.h"

// Maximum numbers, in this order, of lanes of a warp, warps of a CTA, barriers
// of a CTA, CTAs of a cluster, and warps of a cluster.
enum { LANES = 32, MAX_WARPS = 32, MAX_BARS = 16, MAX_CTAS = 16,
       MAX_ALL = 256 };
// size in bytes of a slot; a slot holds a 32-bit value of all lanes, and a
// 64-bit value takes two slots
enum { SLOT = 4 * LANES };
#define FULL 0xffffffffu

// The class of a value determines how it is stored in its slot: 4 or 8 bytes
// for each of 32 lanes. Each lane holds the raw bits of the value's type,
// zero-extended. A boolean is 0 or 1.
typedef enum SimClass {
  SC_I32, SC_U32, SC_I64, SC_U64, SC_F32, SC_F64, SC_PRED, SC_OTHER
} SimClass;
SimClass sim_class(DType t);
static inline bool sim_wide(DType t) { return dtype_bits(t) > 32; }

// A memory object, seen through one of its names in the IR. A kernel that
// recasts an object creates another name, whose elements may have another size.
// Registers are stored in units as wide as the narrowest element among all
// names of the object. Unit u of lane l is at base + (u * 32 + l) * size.
typedef struct SimMem {
  Memory memory;       // the memory that contains the object
  DType type;
  int bits;            // bits of an element
  int own;             // bits of an element in the object's own type
  // Registers: number of bits of a unit, number of bytes of a unit, and number
  // of units of an element.
  int unit, size, per;
  // `count` is the number of accessible elements. `bytes` is the size of the
  // object.
  int64_t count, bytes;
  // `index` is the index into Fn.mem of the object that is accessed. `named` is
  // the index of the object in the script's expression. The two differ only if
  // a raw address of one object leads to another one.
  int32_t index, named;
  // shared memory: slot of the rank of the CTA that owns the object; 0: this
  // CTA
  uint32_t rank;
  // byte offset of the object in the CTA's shared memory or, for registers, in
  // SimWarp.v
  uint32_t base;
  // registers: byte offset in SimWarp.v of the definedness masks. Each unit has
  // a mask of the lanes in which it is defined.
  uint32_t def;
  // Global memory: `p` points to the object's bytes. `defined` has one bit for
  // each byte, which is set if the byte is defined.
  uint8_t *p, *defined;
  // global memory at a raw address: slot of the address; 0: none
  uint32_t address;
  // raw address: whether it is in memory of Launch.known, not in an argument's
  // memory
  bool known;
  bool lax;  // whether the kernel may read undefined elements without a report
  bool mbars;          // shared memory: whether it may hold mbarriers
  // global memory: how preceding launches use it (LaunchArg.before)
  uint8_t before;
  // global memory: the host memory that contains the object
  struct SimArea *area;
  const struct SimFootprint *members;  // the footprint, if the layout has gaps
  // shared memory: number of stages and bytes of a stage, if the object is a
  // ring of stages (ring.c)
  int stages;
  int64_t stage;
} SimMem;

static inline bool sim_in_registers(const SimMem *m) {
  return m->memory == MEMORY_REGISTERS;
}

// Returns the position of an element's first bit in m, element * bits. If the
// product overflows, returns INT64_MIN or INT64_MAX, which no object contains.
static inline int64_t simprog_bit(const SimMem *m, int64_t element) {
  int64_t bit;
  if (!__builtin_mul_overflow(element, (int64_t)m->bits, &bit)) return bit;
  return element < 0 ? INT64_MIN : INT64_MAX;
}

// A memory operand: an object, and the slot of the offset in elements.
typedef struct SimSide {
  const SimMem *mem;
  uint32_t slot;
  // the DType of the access, which may be wider than an element of the object
  uint8_t type;
  bool wide;  // whether the offset has 64 bits
  // Registers: index of the first unit. Otherwise, in patches (patch.c): index
  // of the first element of a ring of mbarriers.
  int64_t konst;
} SimSide;

typedef struct SimCopy {
  SimSide dst, src;
  uint32_t pred;       // slot of the predicate; 0: none
  // slot of the number of bytes that each lane reads (0: all); the rest of the
  // destination is zero-filled
  uint32_t part;
  int bytes;           // bytes that each lane copies
} SimCopy;

// st.async: its destination, its mbarrier, and its n values of 4 or 8 bytes.
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

// The values that must be defined when an instruction executes: the slots of
// its operands, as ops.h specifies them. A value that is stored to registers
// may be undefined, so it is not among them.
typedef struct SimUses {
  uint32_t value;  // slot of a value that is stored to registers; 0: none
  const SimMem *to;  // the registers to which it is stored
  int n;
  uint32_t slot[];
} SimUses;

typedef struct SimIns {
  uint8_t op;          // the Op
  uint8_t type;        // DType of the operands, if it matters (CMP, CVT)
  uint8_t cls;         // the SimClass of type
  uint8_t to;          // DType of the result (CVT, BITCAST)
  // whether the result is equal in all lanes, so that only lane 0 is computed
  bool uniform;
  // whether a uniform result is also copied to the slots of the other lanes
  bool spread;
  // `wide`: values have 64 bits. `idle`: the result of an ATOMIC is unused.
  // `alone`: it is unused, and the ATOMIC commutes with others of its
  // AtomicKind.
  bool wide, idle, alone;
  uint8_t watch;       // how to check the result for NaN: a SimWatch (finite.h)
  // END: the Op that opened the region. FOR: whether the bounds are uniform.
  uint8_t head;
  uint16_t flags;      // Ins.flags
  // LD, ST, ATOMIC, MBAR*: memory order (0: weak) and scope
  uint8_t sem, scope;
  // a Who: the threads that must execute the instruction together
  uint8_t who;
  // WHO_MASK: slot of the mask of these threads, the last operand
  uint32_t mask;
  // slots of the result (d) and of the three operands, as byte offsets in
  // SimWarp.v
  uint32_t d, a, b, c;
  // index of the target of a jump. For MBARTRY and MBARWAIT, see try_wait.h.
  uint32_t jump;
  // `src` is the source line, an index into Fn.src. `ref` is the IR
  // instruction.
  uint32_t src, ref;
  int32_t stat;        // index of the instruction's statistics record, or -1
  // Patches (patch.c): thread count of an inserted barrier, or number of
  // mbarriers in a ring.
  uint32_t put;
  int64_t imm;
  const SimUses *uses;  // NULL: the instruction uses no per-lane value
  // the integer results that may overflow and that the instruction depends on,
  // or NULL
  const struct SimWraps *wraps;
  const void *x;  // data of the operation: a SimCopy, SimSide, SimMmaIns ...
} SimIns;

// A value that is known before a warp starts.
typedef struct SimInit {
  uint32_t slot;
  bool spread, wide;
  uint8_t kind;        // Op of the IR instruction that defines the value
  int64_t imm;         // the bits of a constant, or an SReg
  uint32_t src;        // source line of the first use, or 0
} SimInit;

// Storage in SimWarp.v, from offset `at` on: n rows, each with `size` bytes for
// each of 32 lanes. If size is 0, each row has one bit for each lane.
typedef struct SimRows { uint32_t at, n, size; } SimRows;

typedef struct SimArea SimArea;    // see areas.h
// Data that communicating clusters share: the number of changes of global
// memory so far, and tensor maps that the kernel made (tensormap_ops.c).
typedef struct SimCommon { uint64_t changes; struct SimMaps *maps; } SimCommon;
// maximum number of listeners that keep state in SimProg.own
enum { SIM_OWNERS = 12 };

typedef struct SimProg {
  const Launch *launch;
  const Fn *fn;
  const struct SimHooks *hooks;  // listeners (hooks.h)
  SimIns *ins;
  uint32_t nins;
  SimInit *init;
  uint32_t ninit;
  // for each IR instruction that names a memory object: that object
  const SimMem **mem;
  uint32_t nstat;
  uint32_t *stat_ref;  // for each statistics record: the instruction it counts
  // `value_bytes` is the number of bytes of a warp's registers and values.
  // `slot` has, for each Ref, the slot of the value of that instruction.
  uint32_t value_bytes, *slot;
  // `value_base` is the offset in SimWarp.v of the first value. `ntaint` is the
  // number of SimTaint records (regs.h) of each warp.
  uint32_t value_base, ntaint;
  SimRows *rows;  // all storage in SimWarp.v with one value for each lane
  uint32_t nrows;
  // The n integer results that may overflow, and the source line of each.
  struct { uint32_t n, *src; } wraps;
  uint32_t depth;      // maximum depth of nested regions
  int nthread, nwarp;  // number of threads and warps of a CTA
  // number of CTAs and warps of a cluster
  int ncta, nall;
  int registers;       // with setmaxnreg: registers per thread at the start
  int nmbar;           // maximum number of mbarriers of a cluster
  SimCounter counter;
  bool polls;          // whether some access has a memory order (it may poll)
  bool watched;        // whether results are checked for NaNs (finite.h)
  SimActors actors;    // the actors: warps, agents and mbarriers (actors.h)
  uint64_t nunit;      // number of clusters of the grid
  int64_t smem_bytes;  // bytes of shared memory of each CTA
  // log2 of the number of bytes of the narrowest access to shared memory
  int shift;
  SimArea *area;
  int narea;
  // the memory objects that raw pointers may address (raw_pointer.h), if the
  // kernel copies through a tensor map in memory, which may describe any of
  // them
  const SimMem **reach;
  SimCommon *common;   // NULL: clusters do not communicate
  // state of listeners (hooks.h), by their numbers
  void *own[SIM_OWNERS];
} SimProg;

// Decodes a launch into cx->scratch. Raises the same errors as sim_run.
SimProg *decode_make(Ctx *cx, const Launch *l);

// ---- dump.c ----
void decode_dump(Ctx *cx, const SimProg *p, Buf *out);

#endif
// SPDX-License-Identifier: MIT
