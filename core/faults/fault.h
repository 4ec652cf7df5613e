// A fault of a kernel: what a report states about it, and its details.
#ifndef CUTE_FAULTS_FAULT_H
#define CUTE_FAULTS_FAULT_H

#include "decode/launch.h"
#include "faults/kinds.h"
#include "faults/missing.h"
#include "faults/variants.h"

// The path through the program from one access of a race to the later access.
// NONE: unknown. STRAIGHT: a straight line. AGAIN: to the next copy of the same
// line in an unrolled loop. LOOP: through the back edge of a loop.
typedef enum SimWay { WAY_NONE, WAY_STRAIGHT, WAY_AGAIN, WAY_LOOP } SimWay;

enum { SIM_MODES = 8, SIM_ROUNDS = 8 };

// mem: an array of mbarriers, as an index into Fn.mem. phases: number of phases
// that its elements began.
typedef struct SimRound { int32_t mem; int64_t phases; } SimRound;

// The mistake of a warp role that accesses a stage of a ring too early. WRITE,
// READ: this access came after a wait for another stage. RELEASED: the reading
// thread had already released the stage.
typedef enum SimStray {
  STRAY_NONE, STRAY_WRITE, STRAY_READ, STRAY_RELEASED
} SimStray;

// A fact of a fault. FLAG: a condition that holds. NUMBER, LIST: v has the
// number, or n numbers. MEM: v has an index into Fn.mem.
typedef enum SimFactType {
  FACT_FLAG, FACT_NUMBER, FACT_REAL, FACT_TEXT, FACT_LIST, FACT_MEM
} SimFactType;
typedef struct SimFact {
  const char *name;
  SimFactType type;
  int n;
  int64_t v[SIM_MODES];
  double real;
  const char *text;
} SimFact;

// A distinct fault, identified by kind, lines, memory object and state. The
// report describes the first occurrence. `count` is the number of warp
// instructions with the fault.
typedef struct SimReport {
  SimKind kind;
  int32_t mem;         // memory object, an index into Fn.mem, or -1
  int64_t offset;      // element of the object, if known
  int32_t block[3];
  int32_t thread[3];   // the first thread in which the fault occurred
  // races: linear index of the thread that made the other access, or -1. If its
  // lane is unknown, `other` is any thread of its warp.
  int32_t other;
  // src: line of this access. src2: line of the other access. Both are indices
  // into Fn.src; 0: none.
  uint32_t src, src2;
  // LACK_PARITY, LACK_STAY, LACK_LANES: line of the wait that succeeded too
  // early, or 0. LACK_STAGE: line of the last wait. LACK_NOBODY: line of a wait
  // at another mbarrier that succeeded too early, or 0.
  uint32_t waited;
  // LACK_WAIT: whether the thread waited for the preceding phase of the
  // mbarrier, or, for a read of an unwritten element, at any mbarrier
  bool before;
  // number of modes of coord; 0: coord is not set, and `offset` is the element
  int modes;
  // coordinate of the access, outside the tensor's shape
  int64_t coord[SIM_MODES];
  uint64_t count;
  // Deadlocks: hash of what all warps wait for. Deadlocks with different hashes
  // are different faults.
  uint64_t state;
  SimLack lack;
  // races: path of synchronization from the first access to the second
  SimWay way;
  // line of a loop without a barrier at its back edge. WAY_LOOP: the loop of
  // the path. WAY_STRAIGHT: a loop through which another path leads from one
  // access to the other.
  uint32_t loop;
  bool outside;        // whether the missing barrier must be outside a branch
  // races: whether a cp.async writes a stage of a ring after a read of the
  // stage, or while another cp.async to the stage is in flight
  bool refill;
  // index of the report whose fault may have caused this fault, or -1
  int32_t leads;
  // mbarrier whose phase has wrong counts, an index into Fn.mem, or -1
  int32_t mbar;
  // arrivals and bytes that the phase should expect in addition; negative:
  // fewer
  int64_t arrivals, bytes;
  // deadlocks at an mbarrier: the CTA's arrays of mbarriers
  SimRound round[SIM_ROUNDS];
  int nround;
  SimCounter counter;  // BLOCKRACE: a copy of SimProg.counter
  // LACK_PENDING: pending: number of groups that the wait leaves pending; most:
  // maximum number that it should leave. same: the reported group also has a
  // copy to another stage. open: a copy to another stage is in no group. idle:
  // no group was committed between this wait and the preceding one.
  uint32_t pending, most;
  bool same, open, idle;
  // element at the same position in another stage, or -1. ready: a wait covered
  // the copy to that element, but nothing has read it. With STRAY_WRITE and
  // STRAY_READ, the access came after a wait for that stage. Otherwise a copy
  // fills that stage.
  int64_t elsewhere;
  // number of stages of the shared tensor, and the element's stage; 0: the
  // tensor is not a ring
  int stages, stage;
  // number of elements that were written if only the first elements of a shared
  // tensor were written when another element was read; 0: unknown
  int64_t filled;
  bool ready;
  SimStray strays;
  SimFact *fact;       // names and numbers for the report's sentence
  int nfact;
} SimReport;

typedef struct SimFault {
  SimReport r;
  // number of the warp instruction that r.count counted last
  uint64_t serial;
  union {                  // details of the fault; r.kind selects the member
    // OOB, ALIGN and INFLIGHT faults. `size` is the number of elements or bytes
    // that are accessed. `which` and `most` are an index and the number of
    // elements that it indexes (unused if `most` is 0). `rank` and `ranks` are
    // the rank of a CTA and the number of CTAs (unused if `ranks` is 0).
    // `wild`: r.offset is a raw address. It is in no memory, or in another
    // tensor than the address `which` from which it was computed. INFLIGHT
    // only: `agent` is the asynchronous agent that accesses the element, `open`
    // says that the agent's operation is in no group, and `far` says that
    // another CTA started the operation.
    struct {
      bool write, open, far, wild;
      Agent agent;
      int64_t size, which, most;
      int rank, ranks;
    } access;
    // RACE, WARPRACE: flying: the other access is by a pending operation.
    // agent: the agent that made the other access; no thread of this access
    // waited for it. proxy: a proxy fence is missing between the accesses of a
    // thread and of an agent. far: the threads are of two blocks. copy: a bulk
    // copy writes. alone: 1 + number of a warp that did not execute a wait for
    // the reading wgmma. cta: the CTA of the thread that made the other access.
    struct {
      SimClash how;
      Agent agent;
      bool flying, proxy, far, copy;
      int alone;
      int32_t cta[3];
    } race;
    // BLOCKRACE faults. `mine` and `other` are the access classes (cta_race.c)
    // of the two accesses, and `cta` is the CTA that made the other access.
    // `draws` says that one CTA atomically increments a counter that the other
    // CTA resets.
    struct { int mine, other; int32_t cta[3]; bool draws; } blocks;
    // DIVERGENT faults. `here` is the mask of the lanes that execute the
    // instruction, `named` of the lanes that must execute it, `gone` of the
    // lanes that exited the kernel, and `there` of the lanes that the warp has.
    // `mask` says that `named` is an operand of the instruction.
    struct { uint32_t here, named, gone, there; bool mask; } lanes;
    // BARRIER: id: number of the barrier. n: the thread count of this warp.
    // others: the thread count of other warps. LANES: the lanes of a warp name
    // two barriers, id and n. LANES_COUNT: the lanes of a warp name two thread
    // counts, n and others.
    struct { SimMisuse how; int64_t id, n, others; } barrier;
    // DEADLOCK: waiting, ended: masks of warps of the CTA. barrier: number of
    // the barrier, or phase of the mbarrier. came: threads that arrived, or
    // arrivals that an mbarrier lacks. needed: expected threads or arrivals;
    // FLAG: blocks that have not started. bytes: bytes that an mbarrier lacks.
    // watch/deadlock.c lists other uses. some: only some threads execute the
    // branch that contains the wait.
    struct {
      SimStuck how;
      bool some;
      uint32_t waiting, ended;
      int64_t barrier, came, needed, bytes;
    } deadlock;
    // MBARRIER faults. `n` and `bytes` are the expected arrivals and bytes.
    // OVER: `came` arrivals were made at once, but only `missing` arrivals were
    // missing in the phase. EARLY: `came` is the number of a phase. LEFT: `n`
    // is the number of a phase.
    struct { SimWrong how; int64_t n, bytes, came, missing; } mbar;
    // EXIT and START faults. `cta` is the CTA that may have ended (EXIT) or may
    // not have started (START). `landed`: an agent's copy in flight accesses
    // the memory of this CTA. `commit`: a commit in flight accesses an mbarrier
    // of this CTA.
    struct { int32_t cta[3]; bool landed, commit; } gone;
    // MAP: drained: the map changed during a bulk copy whose thread has since
    // committed a bulk group and waited for this group.
    struct { SimMapWrong how; bool drained; } map;
    // REGISTERS faults. `had` and `wanted` are the current and the requested
    // number of registers of each thread. `warp` is the warp's number in the
    // CTA. `other` is the number of another warp, and `theirs` is the number of
    // registers of that warp.
    struct {
      SimAllotment how;
      int had, wanted, warp, other, theirs;
    } registers;
    // WARPGROUP faults. `warp` is the warp's number in the CTA, and `warps` is
    // the number of warps of the CTA.
    struct { SimTeamwork how; int warp, warps; } team;
    // TENSOR faults. `warp` is the warp's number in the CTA, and `other` is the
    // number of another warp. `n`, `most` and `column` are numbers of columns
    // or lanes. RESIDENTS: `other` is a number of CTAs. OUTSIDE: `peer` says
    // that only the other CTA of the pair lacks the columns. RACE, FENCE:
    // `clash` is the kind of conflict, `op` the operation that made the first
    // access, and `lacks` what is missing.
    struct {
      SimTensorWrong how;
      bool peer;
      int warp, other, n, most, column;
      SimClash clash;
      SimTensorLack lacks;
      const char *op;
    } tensor;
    // UNWRITTEN faults: number of elements that were never written, and of all
    // elements
    struct { int64_t none, all; } left;
    // METADATA faults: `four` is the metadata value of a group of `group`
    // elements.
    struct { int four, group; } metadata;
    // RUNAWAY faults. `executed` is the number of instructions that the warp
    // executed. If `quiet` is set, it is the number that the cluster executed
    // since memory last changed.
    struct { uint64_t executed; bool quiet; } runaway;
    int lane;              // SHUFFLE: the lane that is missing
    uint32_t text;         // TRAP: index into Fn.text; 0: none
    char layout[280];  // LAYOUT: text that describes how the layout is wrong
    // TRAP faults of cute.assume: the value, and the range and divisor that
    // were assumed. `slice` says that the value is the thread index of a
    // get_slice.
    struct {
      uint32_t none;
      bool wrong, slice;
      int64_t value, lo, hi, div;
    } assumed;
  };
  // Describes an mbarrier, if r.lack is set. mem, element: the mbarrier. came:
  // bytes that were completed in `phase` or, if `open` is set, expected so far.
  // all: bytes of all copies. other: the element of another mbarrier of the
  // array, at which the warp never waited (LACK_STAY) or waited last
  // (LACK_STAGE).
  struct {
    int32_t mem;
    int64_t element, other, came, all;
    uint32_t phase;
    bool open;
  } late;
  int64_t extent[SIM_MODES];  // extents of the modes in r.coord; -1: unknown
  // STUCK_FLAG: the polled value, and its last writer
  struct {
    DType type;
    bool written;
    int32_t cta[3];
    uint64_t value;
  } spin;
} SimFault;

#endif
// SPDX-License-Identifier: MIT
