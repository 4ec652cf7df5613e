// Inside the simulator: the decoded program and the state of a CTA.
//
//   decode.c    Fn -> SimProg: uniform values, slots, jump targets
//   tables.c    tables of MMA and matrix-copy atoms from their TV layouts
//   alu.c     arithmetic, one lane or 32
//   mem.c     shared and global memory with shadow state, cp.async
//   order.c   what is ordered before what inside a CTA
//   blocks.c  races between CTAs in global memory
//   exec.c    the interpreter: one warp until it must wait
//   intrin.c  rows of ir/intrin.h
//   matrix.c  tensor cores and matrix copies
//   taint.c   uninitialised registers
//   cta.c     warps of a CTA: scheduling, barriers, deadlock
//   report.c  reports in words, statistics by line
//   sim.c        CTAs over the host's threads
#ifndef CUTE_SIMCORE_H
#define CUTE_SIMCORE_H

#include "atoms/atom.h"
#include "sim/sim.h"
#include "sim/mma.h"

enum { LANES = 32, MAX_WARPS = 32, MAX_BARS = 16 };
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
  int64_t count;       // elements that may be touched
  int64_t bytes;       // the same in bytes
  int32_t index;       // into Fn.mem
  uint32_t base;       // smem: byte offset in the CTA's shared memory;
                       // rmem: byte offset of unit 0 in the warp's values
  uint32_t def;        // rmem: byte offset of one lane mask a unit
  uint8_t *p, *defined;  // gmem
  struct SimArea *area;  // gmem: the host memory that it is a part of
} SimMem;

// One side of a move: object and slot of the offset (elements).
typedef struct SimSide {
  const SimMem *mem;
  uint32_t slot;
  bool wide;           // 64-bit offsets
  int64_t konst;       // rmem: the first unit
} SimSide;

typedef struct SimCopy {
  SimSide dst, src;
  uint32_t pred;       // slot, 0: always
  int bytes;           // a lane
} SimCopy;

// An MMA's operand: unit `reg[v]` of mem (and mem->per - 1 that follow) is
// value v of every thread; at[v * 32 + lane] is its place in the tile,
// row-major. Of a sparse A: of the tile of stored values.
typedef struct SimOperand {
  const SimMem *mem;
  DType type;
  int nval, size;      // values a thread; elements of the tile
  const uint32_t *reg;
  const uint16_t *at;
} SimOperand;

// A 32-bit register: units of mem from `unit` on.
typedef struct SimWord {
  const SimMem *mem;
  uint32_t unit;
} SimWord;

typedef struct SimMmaIns {
  const AtomMma *row;
  SimMma m;
  int groups;          // how many tiles a warp does at once (quad pairs: 4)
  int threads;         // of a group
  const uint8_t *lane; // lane[g * threads + t]
  SimOperand d, a, b, c;
  SimWord more[3];     // operands 4 and on: a 32-bit register each
} SimMmaIns;

typedef struct SimMatrix {
  const AtomCopy *row;
  bool store;          // stmatrix
  int num;             // matrices
  SimSide smem;
  const SimMem *rmem;
  SimWord from;        // movmatrix: the source
  const uint32_t *reg; // first unit of each 32-bit register
  const uint8_t *half; // half[(reg * 2 + h) * 32 + lane]: which 16-bit piece
} SimMatrix;

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
  bool wide;           // result has 64-bit lanes
  uint8_t head;        // END: Op of its region; FOR: uniform bounds
  uint8_t sem, scope;  // LD, ST, ATOMIC: order and for whom; 0: weak
  uint8_t who;         // Who: the lanes that must do it together
  uint32_t mask;       // WHO_MASK: slot of the mask, the last operand
  uint32_t d, a, b, c; // slots: byte offsets into the warp's values
  uint32_t jump;       // index of an instruction
  uint32_t src;        // index into Fn.src
  uint32_t ref;        // instruction of the IR
  int32_t stat;        // index of its statistics, or -1
  int64_t imm;
  const void *x;       // SimCopy, SimSide, SimMmaIns, SimMatrix, SimPrint
} SimIns;

// Values known before a warp starts.
typedef struct SimInit {
  uint32_t slot;
  bool spread, wide;
  uint8_t kind;        // OP_CONST, OP_ARG or OP_SREG
  int64_t imm;         // bits, or SReg
} SimInit;

// Host memory that arguments share, where they overlap or are one. Accesses
// of CTAs are kept in pages of granules (the narrowest access) made when
// first touched; see blocks.c.
enum { SIM_PLANES = 8 };
typedef struct SimArea {
  uint8_t *p;
  size_t bytes;
  int shift;               // log2 of a granule's bytes
  bool written, watched;   // by the kernel; there may be races
  uint64_t **first[SIM_PLANES], **last[SIM_PLANES];
} SimArea;

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
  uint32_t value_bytes;  // of one warp: registers, then values
  uint32_t value_base, ntaint;  // first value; records of taint
  uint32_t depth;      // deepest nesting of regions
  int nthread, nwarp;
  int64_t smem_bytes;
  int gran;            // bytes of a granule: no access is narrower
  uint32_t ngran;
  SimArea *area;
  int narea;
  uint8_t *released;   // a bit a CTA: it released something to the others
} SimProg;

// Decodes into cx->scratch. Fails as sim_run does.
SimProg *simdecode_make(Ctx *cx, const Launch *l);

// tables.c: the decoded form of an MMA or MATRIX, in cx->scratch.
SimMmaIns *simtables_mma(Ctx *cx, const Launch *l, const SimMem **mem,
                         const Ins *i);
SimMatrix *simtables_matrix(Ctx *cx, const Launch *l, const SimMem **mem,
                            const Ins *i);

// ---- state ----

// STRONG: written by an atomic or with an order; RELEASED: and what that
// carries is kept.
enum { GF_DEFINED = 1, GF_PENDING = 2, GF_STRONG = 4, GF_RELEASED = 8 };
typedef struct SimGran {   // the last write, and who read since
  uint32_t clk, src, lanes;
  uint32_t readers;        // warps
  uint8_t warp, flags;
} SimGran;
typedef struct SimRead {   // of one warp: its last reads since the write,
  uint32_t clk, lanes;     // weak ones where there are any
  uint32_t src : 30, weak : 1, strong : 1;  // kinds of reads since the write
} SimRead;

typedef struct SimBatch {  // one cp.async instruction on its way
  uint32_t mask;           // lanes still in flight
  uint32_t open;           // lanes that did not commit it yet
  uint32_t src;
  uint32_t bytes;
  uint32_t group[LANES];
  uint32_t dst[LANES];     // byte offset in shared memory
  uint8_t data[LANES][16];
} SimBatch;

typedef struct SimFrame { uint32_t mask, other; } SimFrame;

typedef struct SimTaint {  // lanes in which a value is undefined, and the
  uint32_t mask, src;      // read of registers where that came from
  int32_t mem;
  uint32_t elem;
} SimTaint;

typedef enum SimState {
  SW_RUN, SW_BARRIER, SW_DONE
} SimState;

typedef struct SimText { char *p; size_t n, cap; } SimText;

typedef struct SimCta SimCta;
typedef struct SimWarp {
  SimCta *cta;
  int id;
  SimState state;
  uint32_t pc, active, valid;
  uint32_t clk;            // epoch of memory order, see order.c
  uint32_t depth;
  SimFrame *frame;
  char *v;                 // values
  uint64_t count;          // instructions executed
  uint32_t src;            // where it waits or ended
  int bar;                 // barrier it waits at
  uint32_t vc[MAX_WARPS];  // what is ordered before all lanes; order.c:
  uint32_t seen, pending, fenced;  // lanes whose rows hold something
  bool level;              // ... all lanes the same
  uint32_t late;           // lanes after an acquire from other CTAs
  uint32_t unfenced, sent; // ... but for a fence; after a fence for them
  uint32_t committed[LANES];  // cp.async groups
  SimBatch *batch;         // batches [first, end) are in flight
  size_t first, end, cap;
  bool tainted;            // an undefined register was read: see taint.c
  SimTaint *taint;         // of the values, by slot
  SimText text;            // printed
} SimWarp;

typedef struct SimBar {
  int expected, arrived;   // threads; arrived 0: idle
  uint32_t members, waiting;  // warps
  uint32_t src[MAX_WARPS];
  uint32_t vc[MAX_WARPS];
  bool rows, late;         // its row holds something; see SimWarp
} SimBar;

typedef struct SimPattern {  // the last address pattern and its answer
  uint32_t mask;
  uint32_t rel[LANES];
  int32_t x, y;
} SimPattern;

typedef enum SimClash { CLASH_WAW, CLASH_WAR, CLASH_RAW } SimClash;
// A barrier for a number of threads that is none of whole warps, or another
// than others use it for; or the same warp comes to it again.
typedef enum SimMisuse { BAR_ODD, BAR_DIFFERS, BAR_TWICE } SimMisuse;

typedef struct SimFault {
  SimReport r;
  uint64_t serial;         // of the warp instruction counted last
  union {                  // what its sentence needs besides, by r.kind
    // OOB, ALIGN: elements, bytes
    struct { bool write; int64_t size; } access;
    // RACE, WARPRACE; flying: with a cp.async
    struct { SimClash how; bool flying; } race;
    // BLOCKRACE: classes of access, as blocks.c has them; the other's CTA
    struct { int mine, other; uint64_t cta; } blocks;
    // DIVERGENT; mask: those named are an operand
    struct { uint32_t here, named; bool mask; } lanes;
    // BARRIER: threads, and those of others; TWICE: n is the barrier
    struct { SimMisuse how; int64_t n, others; } barrier;
    // DEADLOCK: warps, the barrier, threads
    struct { uint32_t waiting, ended; int barrier, came, needed; } deadlock;
    uint64_t executed;     // RUNAWAY: instructions
    int lane;              // SHUFFLE
    uint32_t text;         // TRAP: a string of Fn, or 0
  };
} SimFault;

// What a finished CTA hands over.
typedef struct SimOut {
  struct SimOut *next;
  uint64_t cta;
  SimFault *fault;
  uint32_t nfault;
  SimStat *stat;
  uint64_t instructions, mmas;
  SimText text;            // printed
} SimOut;

struct SimCta {
  const SimProg *prog;
  uint64_t index;
  int32_t id[3];
  uint64_t rng, serial, budget, mmas;
  bool stop, oom;          // stop: nothing more to learn of this CTA
  int max_reports;
  SimWarp *warp;
  SimBar bar[MAX_BARS];
  uint8_t *smem;
  SimGran *gran;
  SimRead *read;           // (granule, warp): where a reader is
  uint32_t *row, *place, *location;  // order.c: NULL until needed
  uint32_t nplace, maxplace;
  bool global;             // something was released to global memory
  SimPattern *pattern;     // two per statistics record: shared, global
  SimOut *out;
  float *tile;             // scratch of MMA operands
  void *lock;              // pthread_mutex_t of global atomics
  const bool *quit;        // set by others: give up
  void (*tick)(void *ud);  // called now and then, or NULL
  void *tick_ud;
};

// ---- alu.c ----
uint64_t simalu_one(const SimIns *i, uint64_t a, uint64_t b, uint64_t c);
void simalu_lanes(const SimIns *i, char *v);  // all 32
// op(type) on raw bits, for reductions and atomics.
uint64_t simalu_op(Op op, DType t, uint64_t a, uint64_t b);

// ---- mem.c ----
typedef uint8_t SimLaneBuf[LANES][32];
// Loads `bytes` of each lane in mask at off (elements of mem) into buf; gives
// the lanes that got data. Faults are reported, statistics counted.
uint32_t simmem_load(SimWarp *w, const SimIns *i, const SimMem *m,
                     uint32_t mask, const int64_t *off, int bytes,
                     SimLaneBuf buf);
void simmem_store(SimWarp *w, const SimIns *i, const SimMem *m,
                  uint32_t mask, const int64_t *off, int bytes,
                  SimLaneBuf buf);
// The same for elements below a byte, in the low bits of a word a lane.
void simmem_load_bits(SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t mask, const int64_t *off, uint32_t *out);
void simmem_store_bits(SimWarp *w, const SimIns *i, const SimMem *m,
                       uint32_t mask, const int64_t *off,
                       const uint32_t *value);
void simmem_atomic(SimWarp *w, const SimIns *i);
// ldmatrix / stmatrix rows of 16 bytes, one a lane.
void simmem_rows(SimWarp *w, const SimIns *i, const SimMatrix *x,
                 const int64_t *off, SimLaneBuf buf);
void simmem_cpasync(SimWarp *w, const SimIns *i);
void simmem_commit(SimWarp *w);
void simmem_wait(SimWarp *w, uint32_t pending);
void simmem_reset(SimCta *c);           // for the next CTA
void simmem_offsets(const SimWarp *w, const SimSide *s, int64_t *off);

// ---- order.c ----
// The lanes of mask meet: what any of them did is ordered before all of them.
void simorder_meet(SimWarp *w, uint32_t mask);
void simorder_arrive(SimWarp *w, SimBar *b, bool wait);
void simorder_leave(SimWarp *w, const SimBar *b);
// Is what lanes of warp u did in epoch clk ordered before lane l?
bool simorder_before(SimWarp *w, int l, int u, uint32_t lanes, uint32_t clk);
// Lane l reads, or writes, with an order at granule g (-1: global memory).
// keep: what this write replaces was released by its thread, or read by it.
void simorder_read(SimWarp *w, const SimIns *i, int l, int64_t g);
void simorder_write(SimWarp *w, const SimIns *i, int l, int64_t g, bool keep);
void simorder_fence(SimWarp *w, int kind);
void simorder_reset(SimCta *c);

// ---- blocks.c ----
// Finds the areas of all pointer arguments; notes an access to one of them;
// makes what the launch needs, in cx->scratch.
void simblocks_areas(Ctx *cx, SimProg *p);
SimArea *simblocks_area(const SimProg *p, int32_t arg);
void simblocks_note(const SimMem *m, int bytes, bool write);
void simblocks_start(Ctx *cx, SimProg *p);
// The lanes of mask read so many bytes at byte at[lane] of m, or write what is
// at data + lane * stride (NULL: an atomic).
void simblocks_access(SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t mask, const int64_t *at, int bytes,
                      const uint8_t *data, int stride);
void simblocks_release(SimCta *c);
// All races, in order of places.
typedef void (*Found)(void *ud, const SimFault *f);
void simblocks_find(const SimProg *p, Found found, void *ud);
void simblocks_free(SimProg *p);

// ---- exec.c ----
void simexec_warp(SimWarp *w);          // until it waits, yields or ends

// ---- cta.c ----
void simcta_run(SimCta *c);
void simcta_arrive(SimWarp *w, const SimIns *i, int id, int64_t threads,
                   bool wait);

// ---- report.c ----
// Counts a fault; lane -1: none in particular.
SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset);
// The sentence of a fault, base_realloc'd; NULL when out of memory.
char *simreport_text(const SimProg *p, const SimFault *f);
const char *simreport_op(const SimProg *p, const Ins *i, int32_t *smem,
                         int32_t *gmem);
bool simreport_printf(SimText *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
