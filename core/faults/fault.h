// A fault of a kernel: what its report states, and its details.
#ifndef CUTE_FAULTS_FAULT_H
#define CUTE_FAULTS_FAULT_H

#include "decode/launch.h"
#include "faults/kinds.h"
#include "faults/missing.h"
#include "faults/variants.h"

// The path through the program from one access of a race to the later one.
// - NONE: unknown.
// - STRAIGHT: without a loop.
// - AGAIN: to the next copy of the same line in an unrolled loop.
// - LOOP: through the back edge of a loop.
typedef enum SimWay { WAY_NONE, WAY_STRAIGHT, WAY_AGAIN, WAY_LOOP } SimWay;

enum { SIM_MODES = 8, SIM_ROUNDS = 8 };

// mem: an array of mbarriers, as an index into Fn.mem. phases: how many phases
// its elements began in total.
typedef struct SimRound { int32_t mem; int64_t phases; } SimRound;

// How a warp accesses a stage of a ring too early. WRITE, READ: it waited for
// another stage before this access. RELEASED: the reading thread had already
// released the stage.
typedef enum SimStray {
  STRAY_NONE, STRAY_WRITE, STRAY_READ, STRAY_RELEASED
} SimStray;

// A fact of a fault: a named value for the report.
// - FLAG: a condition that holds.
// - NUMBER, LIST: v has the number, or n numbers.
// - REAL, TEXT: the value is in `real` or `text`.
// - MEM: v has an index into Fn.mem.
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

// A distinct fault. Faults with equal kind, lines, memory object and state are
// counted as one. The report describes the first occurrence. `count` is the
// number of warp instructions with the fault.
typedef struct SimReport {
  SimKind kind;
  int32_t mem;         // memory object, an index into Fn.mem, or -1
  int64_t offset;      // element of the object, if known
  int32_t block[3];
  int32_t thread[3];   // the first thread in which the fault occurred
  // races: linear index of the thread that made the other access, or -1. If
  // only the warp is known, `other` is any thread of the warp.
  int32_t other;
  // src: line of this access. src2: line of the other access. Both are indices
  // into Fn.src; 0: none.
  uint32_t src, src2;
  // LACK_PARITY, LACK_STAY, LACK_LANES: line of the wait that succeeded too
  // early, or 0. LACK_STAGE: line of the last wait. LACK_NOBODY: line of a wait
  // that succeeded too early at another mbarrier, or 0.
  uint32_t waited;
  // LACK_WAIT: whether the thread waited for the preceding phase of the
  // mbarrier. For a read of an unwritten element: whether it waited at any
  // mbarrier.
  bool before;
  // number of modes of coord; 0: coord is not set, and `offset` is the element
  int modes;
  // coordinate of the access, outside the tensor's shape
  int64_t coord[SIM_MODES];
  uint64_t count;
  // deadlocks: hash of what each warp waits for; deadlocks with different
  // hashes are different faults
  uint64_t state;
  SimLack lack;
  // races: path of synchronization from the first access to the second
  SimWay way;
  // line of a loop without a barrier at its back edge. WAY_LOOP: the loop of
  // the path. WAY_STRAIGHT: a loop that connects the accesses by a second path.
  uint32_t loop;
  // whether the missing barrier belongs outside of the branch
  bool outside;
  // races: whether a cp.async refills a stage of a ring too early: after a read
  // that no barrier separates from it, or while another cp.async to the stage
  // is in flight
  bool refill;
  // index of the report whose fault may have caused this fault, or -1
  int32_t leads;
  // mbarrier whose phase expects wrong counts, an index into Fn.mem, or -1
  int32_t mbar;
  // arrivals and bytes to add to the expected counts; negative: to subtract
  int64_t arrivals, bytes;
  // deadlocks at an mbarrier: the CTA's arrays of mbarriers
  SimRound round[SIM_ROUNDS];
  int nround;
  SimCounter counter;  // BLOCKRACE: a copy of SimProg.counter
  // LACK_PENDING: `pending` is the number of groups that the wait leaves
  // pending, and `most` is the largest number that it should leave.
  // - same: the reported group also has a copy to another stage.
  // - open: a copy to another stage is in no group.
  // - idle: no group was committed between this wait and the preceding one.
  uint32_t pending, most;
  bool same, open, idle;
  // `elsewhere` is the element at the same position in another stage of the
  // ring, or -1. STRAY_WRITE, STRAY_READ: the access came after a wait for that
  // stage. `ready`: a wait covered the copy to that element, but nothing has
  // read the element yet. Neither: a copy fills the element.
  int64_t elsewhere;
  // `stages` is the number of stages of the shared tensor, or 0 if it is no
  // ring. `stage` is the stage of the element.
  int stages, stage;
  // If only the first elements of a shared tensor had been written when another
  // element was read, `filled` is their number. 0: unknown.
  int64_t filled;
  bool ready;
  SimStray strays;
  SimFact *fact;       // facts, for the report's sentence
  int nfact;
} SimReport;

typedef struct SimFault {
  SimReport r;
  // the last warp instruction that r.count includes
  uint64_t serial;
  union {                  // details of the fault; r.kind selects the member
    // OOB, ALIGN and INFLIGHT faults. `size` is the number of elements or bytes
    // of the access. `which` is an index, and `most` the number of elements
    // that it may select (0: both unused). `rank` is the rank of a CTA, and
    // `ranks` the number of CTAs (0: both unused). `wild`: r.offset is a raw
    // address that is in no memory, or in another tensor than `which`, the
    // address from which it was computed. INFLIGHT only: `agent` is the
    // asynchronous hardware that accesses the element, `open` says that its
    // operation is in no group, and `far` says that another CTA started the
    // operation. `box`: r.coord is where a TMA box begins.
    struct {
      bool write, open, far, wild, box;
      Agent agent;
      int64_t size, which, most;
      int rank, ranks;
    } access;
    // RACE, WARPRACE.
    // - flying: a pending operation makes the other access.
    // - agent: the agent (asynchronous hardware) that made the other access,
    //   and for which no thread of this access waited.
    // - proxy: no proxy fence separates the accesses of a thread and of an
    //   agent. After a write by a thread, `ordered` says that the write happens
    //   before the other access, and `fenced` that the thread executed a proxy
    //   fence after the write.
    // - far: the threads are in two blocks.
    // - copy: a bulk copy writes.
    // - alone: 1 + number of a warp that did not execute a wait for the wgmma
    //   that reads.
    // - cta: the CTA of the thread that made the other access.
    struct {
      SimClash how;
      Agent agent;
      bool flying, proxy, ordered, fenced, far, copy;
      int alone;
      int32_t cta[3];
    } race;
    // BLOCKRACE faults. `mine` and `other` are the access classes (cta_race.c)
    // of this access and of the other one, which CTA `cta` made. `draws` says
    // that one CTA atomically increments a counter that the other CTA resets.
    struct { int mine, other; int32_t cta[3]; bool draws; } blocks;
    // DIVERGENT faults. Each field is a mask of lanes: `here` execute the
    // instruction, `named` must execute it, `gone` exited the kernel, and
    // `there` exist in the warp. `mask` says that `named` is an operand of the
    // instruction.
    struct { uint32_t here, named, gone, there; bool mask; } lanes;
    // BARRIER: `id` is the number of the barrier, `n` the thread count that
    // this warp names, and `others` the count that other warps name. EARLY: at
    // least `n` threads use the barrier, which counts `others`. LANES: the
    // lanes of a warp name two barriers, id and n. LANES_COUNT: the lanes of a
    // warp name two thread counts, n and others.
    struct { SimMisuse how; int64_t id, n, others; } barrier;
    // DEADLOCK.
    // - waiting, ended: masks of warps of the CTA.
    // - lanes: how many threads of the waiting warps wait, without the warps
    //   whose lanes all wait.
    // - barrier: number of the barrier, or phase of the mbarrier.
    // - came: threads that arrived at the barrier, or arrivals that the
    //   mbarrier lacks.
    // - needed: expected threads or arrivals; FLAG: blocks that have not
    //   started.
    // - bytes: bytes that the mbarrier lacks. watch/deadlock.c lists other
    //   uses.
    // - twin: LACK_BYTES: bytes that came to the same mbarrier of CTA spin.cta,
    //   where no expect_tx announced them. LACK_NOBODY: 1 if threads arrive at
    //   that mbarrier, 2 if a tcgen05.commit does; else 0.
    // - mmas: the kernel has MMAs on tensor memory, and no instruction that
    //   arrives at the mbarrier.
    // - some: only some threads execute the branch that contains the wait.
    struct {
      SimStuck how;
      bool some, mmas;
      uint32_t waiting, ended;
      int lanes;
      int64_t barrier, came, needed, bytes, twin;
    } deadlock;
    // MBARRIER faults. `n` and `bytes` are the expected arrivals and bytes.
    // - OVER: `came` arrivals were made at once, but the phase lacked only
    //   `missing`. far: another CTA made the last arrival before.
    // - EARLY: `came` is the number of a phase.
    // - LEFT: `n` is the number of a phase.
    struct { SimWrong how; bool far; int64_t n, bytes, came, missing; } mbar;
    // EXIT and START faults. `cta` is the CTA that may have ended (EXIT) or may
    // not have started (START). `landed`: an asynchronous copy in flight
    // accesses the memory of this CTA. `commit`: a commit in flight accesses an
    // mbarrier of this CTA.
    struct { int32_t cta[3]; bool landed, commit; } gone;
    // MAP. drained: the map changed during a bulk copy. Since then, the thread
    // of the copy has committed a bulk group and waited for it.
    struct { SimMapWrong how; bool drained; } map;
    // REGISTERS faults. `had` and `wanted` are the current and the requested
    // number of registers of each thread of warp `warp`. `other` is another
    // warp, and `theirs` is its number of registers. Warps are numbered within
    // the CTA.
    struct {
      SimAllotment how;
      int had, wanted, warp, other, theirs;
    } registers;
    // WARPGROUP faults. `warp` is the warp's number in the CTA, and `warps` is
    // the number of warps of the CTA.
    struct { SimTeamwork how; int warp, warps; } team;
    // TENSOR faults. `warp` is the warp's number in the CTA, and `other` is the
    // number of another warp. `n`, `most` and `column` are numbers of columns
    // or lanes.
    // - RESIDENTS: `other` is a number of CTAs.
    // - FREED: `peer` says that only the other CTA of the pair freed the
    //   columns.
    // - RACE, FENCE: `clash` is the kind of conflict, `op` is the operation
    //   that made the first access, and `lacks` is the missing synchronization.
    //   `strays`: before these accesses, the thread that issued the MMA waited
    //   for stage mma_stage, and the thread of the other access for `stage`.
    // - RACE, UNWRITTEN: `ready` says that a wait completed an MMA to column n,
    //   which nothing has read.
    struct {
      SimTensorWrong how;
      bool peer, ready, strays;
      int warp, other, n, most, column, stage, mma_stage;
      SimClash clash;
      SimTensorLack lacks;
      const char *op;
    } tensor;
    // UNWRITTEN faults: the number of elements that were never written, and the
    // number of all elements
    struct { int64_t none, all; } left;
    // METADATA faults: `four` is the 4-bit metadata value of a group of `group`
    // elements of a sparse operand.
    struct { int four, group; } metadata;
    // RUNAWAY faults. `executed` is the number of instructions that the warp
    // executed. If `quiet` is set, it is the number that the cluster executed
    // since memory last changed.
    struct { uint64_t executed; bool quiet; } runaway;
    int lane;              // SHUFFLE: the lane that is missing
    uint32_t text;         // TRAP: index into Fn.text; 0: none
    char layout[280];  // LAYOUT: text that describes how the layout is wrong
    // TRAP faults of cute.assume: the value, and the range and divisor that the
    // script assumed. `slice` says that the value is a thread index, passed to
    // get_slice.
    struct {
      uint32_t none;
      bool wrong, slice;
      int64_t value, lo, hi, div;
    } assumed;
  };
  // Describes an mbarrier, if r.lack is set: element `element` of array `mem`.
  // `came` is the number of bytes completed in `phase` or, if `open` is set,
  // expected in it so far. `all` is the number of bytes of all copies. `other`
  // is the element of another mbarrier of the array. With LACK_STAY, the warp
  // never waited at it. With LACK_STAGE, the warp waited at it last.
  struct {
    int32_t mem;
    int64_t element, other, came, all;
    uint32_t phase;
    bool open;
  } late;
  int64_t extent[SIM_MODES];  // extents of the modes in r.coord; -1: unknown
  // STUCK_FLAG: the polled value, and its last writer. STUCK_MBAR: the CTA of
  // deadlock.twin.
  struct {
    DType type;
    bool written;
    int32_t cta[3];
    uint64_t value;
  } spin;
} SimFault;

#endif
// SPDX-License-Identifier: MIT
