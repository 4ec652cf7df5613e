// Faults and their descriptions (report.c).
#ifndef CUTE_SIMREPORT_H
#define CUTE_SIMREPORT_H

#include "sim/misuse.h"
#include "sim/origin.h"
#include "sim/sim.h"

typedef struct SimText { char *p; size_t n, cap; } SimText;
bool simreport_printf(SimText *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

typedef struct SimFault {
  SimReport r;
  // number of the warp instruction that was counted last
  uint64_t serial;
  union {                  // details of the fault; r.kind selects the member
    // OOB, ALIGN and INFLIGHT faults. `size` is the number of elements or bytes
    // that are accessed. `which` and `most` are an index and the number of
    // elements that it indexes (unused if `most` is 0). `rank` and `ranks` are
    // the rank of a CTA and the number of CTAs (unused if `ranks` is 0). `wild`
    // says that r.offset is a raw address that is in no memory, or in another
    // tensor than the address `which` from which it was computed.
    // INFLIGHT only: `agent` is the asynchronous agent that accesses the
    // element, `open` says that the agent's operation is in no group, and `far`
    // says that another CTA started the operation.
    struct {
      bool write, open, far, wild;
      SimAgent agent;
      int64_t size, which, most;
      int rank, ranks;
    } access;
    // RACE, WARPRACE: flying: the other access is by a pending operation.
    // agent: the agent of the other access, for which no thread on this side
    // waited. proxy: a proxy fence is missing between the accesses of a thread
    // and of an agent. far: the threads are of two blocks. copy: a bulk copy
    // writes. alone: 1 + number of a warp that did not itself wait for the
    // reading wgmma. cta: the CTA of a thread on the other side.
    struct {
      SimClash how;
      SimAgent agent;
      bool flying, proxy, far, copy;
      int alone;
      int32_t cta[3];
    } race;
    // BLOCKRACE faults. `mine` and `other` are the access classes (cta_race.c)
    // of the two accesses, and `cta` is the CTA that made the other access.
    // `draws` says that one CTA draws a number from a counter that the other
    // CTA resets.
    struct { int mine, other; int32_t cta[3]; bool draws; } blocks;
    // DIVERGENT faults. `here` is the mask of the lanes that execute the
    // instruction, `named` of the lanes that must execute it, `gone` of the
    // lanes that exited the kernel, and `there` of the lanes that the warp has.
    // `mask` says that `named` is an operand of the instruction.
    struct { uint32_t here, named, gone, there; bool mask; } lanes;
    // BARRIER: id: number of the barrier. n: the thread count of this warp.
    // others: the thread count of other warps. LANES: n is the barrier of
    // another lane. LANES_COUNT: n and others are the counts of two lanes.
    struct { SimMisuse how; int64_t id, n, others; } barrier;
    // DEADLOCK: waiting, ended: masks of warps of the CTA. The other numbers
    // describe what the warps wait for: threads at a barrier, arrivals and
    // bytes at an mbarrier, the cluster barrier, or registers. FLAG: `needed`
    // blocks have not started. some: only some threads execute the branch that
    // contains the wait.
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
    // not have started (START). `landed` says that an agent's copy in flight
    // accesses the memory of this CTA, or a commit its mbarrier (`commit`).
    struct { int32_t cta[3]; bool landed, commit; } gone;
    // MAP: drained: the map changed during a load whose thread waited for a
    // later group.
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
    // TENSOR faults. `warp` is the warp's number in the CTA, and `other` that
    // of another warp. `n`, `most` and `column` are numbers of columns or
    // lanes. RESIDENTS: `other` is a number of CTAs. OUTSIDE: `peer` says that
    // only the other CTA of the pair lacks the columns.
    // RACE, FENCE: `clash` is the kind of conflict, `op` the operation that
    // made the first access, and `lacks` what is missing.
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
  // Valid if r.lack is set. The mbarrier, its phase, the bytes that were
  // completed (or, if `open` is set, expected so far), and the bytes that all
  // copies bring. other: the element of another mbarrier of the array, at which
  // the warp never waited (LACK_STAY) or waited last (LACK_STAGE).
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

// The results of a finished cluster.
typedef struct SimOut {
  struct SimOut *next;
  uint64_t cluster;
  SimFault *fault, *note;
  // `nfault` is the number of faults of the cluster. `shown` is the number of
  // these faults that were reported to a debugger.
  uint32_t nfault, shown;
  uint32_t nnote;          // number of notes, at most MAX_NOTES
  SimStat *stat;
  uint64_t instructions, mmas, early;
  // largest number of granules whose accesses were tracked at a time
  uint64_t granules;
  SimText text;            // the output of printf
  SimOrigins origins;      // NaNs and infinities from finite operands
  SimOrigins inexact;      // results that their type cannot represent
} SimOut;

enum { MAX_NOTES = 8 };

// Writes the index (x, y, z) of thread number `linear` of a block to `out`.
void simreport_thread(const SimProg *p, int linear, int32_t out[3]);

typedef struct SimWarp SimWarp;
// Returns the report of a fault of kind `kind` at source line `src` on memory
// object `mem`, or NULL if no such fault was reported.
const SimReport *simreport_of(const SimWarp *w, SimKind kind, uint32_t src,
                              int32_t mem);
// Counts a fault of lane `lane` (-1: of no particular lane). Returns the fault
// if this is the first such fault. Returns NULL if the fault was counted before
// or if there are too many faults.
SimFault *simreport_state(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset,
                          uint64_t state);
SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset);
// Counts behaviour that the tested cards accept but PTX does not guarantee: a
// note, or with SimOpts.strict a fault. Returns as simreport_fault does.
SimFault *simreport_note(SimWarp *w, SimKind kind, int lane, uint32_t src,
                         uint32_t src2, int32_t mem, int64_t offset);
// Reports whether two reports are equal except for their counts.
bool simreport_same(const SimReport *a, const SimReport *b);
// Returns the n facts of a fault, allocated by base_realloc. Returns NULL if
// memory is exhausted.
SimFact *simreport_facts(const SimProg *p, const SimFault *f, int *n);
// Sets f->r.mbar, f->r.arrivals and f->r.bytes: how the counts of the
// mbarrier's phase should change.
void simreport_amounts(SimFault *f);
// Describes the function's misuse of an MMA's registers (Fn.flight).
void simreport_flight(const SimProg *p, SimFault *out);

#endif
// SPDX-License-Identifier: MIT
