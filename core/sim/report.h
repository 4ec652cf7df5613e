// Faults and their descriptions (report.c).
#ifndef CUTE_SIMREPORT_H
#define CUTE_SIMREPORT_H

#include "sim/misuse.h"
#include "sim/origin.h"

typedef struct SimText { char *p; size_t n, cap; } SimText;
bool simreport_printf(SimText *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

typedef struct SimFault {
  SimReport r;
  // number of the warp instruction that was counted last
  uint64_t serial;
  union {                  // details of the fault; r.kind selects the member
    // OOB, ALIGN: size: number of elements or bytes. which, most: an index and
    // the number of elements (most 0: unused). rank, ranks: a CTA and the
    // number of CTAs (ranks 0: unused). wild: r.offset is a raw address that is
    // in no memory, or that is in another tensor than the address `which` from
    // which it was computed.
    // INFLIGHT: agent: which agent accesses the element. open: the agent's
    // operation is in no group. far: another CTA started it.
    struct {
      bool write, open, far, wild;
      SimAgent agent;
      int64_t size, which, most;
      int rank, ranks;
    } access;
    // RACE, WARPRACE: flying: the other access is by an operation in flight.
    // agent: the agent of the other access, for which no thread on this side
    // waited. proxy: no proxy fence is between the accesses of a thread and of
    // an agent. far: the threads are of two blocks. copy: a bulk copy writes.
    // alone: 1 + number of a warp that did not itself wait for the reading
    // wgmma. cta: the CTA of a thread on the other side.
    struct {
      SimClash how;
      SimAgent agent;
      bool flying, proxy, far, copy;
      int alone;
      int32_t cta[3];
    } race;
    // BLOCKRACE: mine, other: access classes (cta_race.c) of both sides. cta:
    // the CTA of the other side. draws: one side draws a number from a counter
    // that the other side resets.
    struct { int mine, other; int32_t cta[3]; bool draws; } blocks;
    // DIVERGENT: masks of lanes. here: lanes that execute the instruction.
    // named: lanes that must execute it. gone: lanes that exited the kernel.
    // there: lanes that the warp has. mask: `named` is an operand of the
    // instruction.
    struct { uint32_t here, named, gone, there; bool mask; } lanes;
    // BARRIER: id: number of the barrier. n: the thread count that this warp
    // names. others: the thread count that other warps name. LANES: n is the
    // barrier that another lane names. LANES_COUNT: n and others are the counts
    // of two lanes.
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
    // MBARRIER: n, bytes: expected arrivals and bytes. OVER: `came` arrivals at
    // once, but only `missing` were missing in the phase. EARLY: came is a
    // phase. LEFT: n is a phase.
    struct { SimWrong how; int64_t n, bytes, came, missing; } mbar;
    // EXIT, START: cta: the CTA that may have ended or not started. landed: an
    // agent's copy in flight accesses its memory.
    struct { int32_t cta[3]; bool landed; } gone;
    // MAP: drained: the map changed during a load whose thread waited for a
    // later group.
    struct { SimMapWrong how; bool drained; } map;
    // REGISTERS: had, wanted: current and requested number of registers. warp:
    // the warp's number in the CTA. other, theirs: another warp and its number
    // of registers.
    struct {
      SimAllotment how;
      int had, wanted, warp, other, theirs;
    } registers;
    // WARPGROUP: warp: the warp's number in the CTA. warps: number of warps of
    // the CTA.
    struct { SimTeamwork how; int warp, warps; } team;
    // UNWRITTEN: number of unwritten elements, and of all elements
    struct { int64_t none, all; } left;
    // METADATA: four: the metadata value of a group of `group` elements.
    struct { int four, group; } metadata;
    // RUNAWAY: executed: number of instructions of the warp or, if `quiet` is
    // set, of the cluster since memory last changed.
    struct { uint64_t executed; bool quiet; } runaway;
    int lane;              // SHUFFLE: the lane that is missing
    uint32_t text;         // TRAP: index into Fn.text; 0: none
    char layout[280];  // LAYOUT: text that describes how the layout is wrong
    // TRAP of cute.assume: the value, and the assumed range and divisor. slice:
    // the value is the thread index of a get_slice.
    struct {
      uint32_t none;
      bool wrong, slice;
      int64_t value, lo, hi, div;
    } assumed;
  };
  // Valid if r.lack is set. The mbarrier, its phase, the bytes that were
  // completed (or, if `open` is set, expected so far), and all bytes that
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
  // nfault: number of faults. shown: number of faults that were reported to a
  // debugger.
  uint32_t nfault, shown;
  uint32_t nnote;          // number of notes, at most MAX_NOTES
  SimStat *stat;
  uint64_t instructions, mmas, early;
  // largest number of granules whose accesses were tracked at a time
  uint64_t granules;
  SimText text;            // the output of printf
  SimOrigins origins;      // NaNs and infinities from finite operands
  SimOrigins inexact;      // results that their type cannot hold
} SimOut;

enum { MAX_NOTES = 8 };

// Finds the index of thread number `linear` of a block.
void simreport_thread(const SimProg *p, int linear, int32_t out[3]);

typedef struct SimWarp SimWarp;
// Returns the report of a fault of this kind at line src on a memory object, or
// NULL.
const SimReport *simreport_of(const SimWarp *w, SimKind kind, uint32_t src,
                              int32_t mem);
// Counts a fault of lane `lane` (-1: of no particular lane). Returns the fault
// if it is new. Returns NULL if it is known or there are too many faults.
SimFault *simreport_state(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset,
                          uint64_t state);
SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset);
// Counts behaviour that the tested cards accept but PTX does not guarantee: a
// note, or a fault with SimOpts.strict. Returns the same as simreport_fault.
SimFault *simreport_note(SimWarp *w, SimKind kind, int lane, uint32_t src,
                         uint32_t src2, int32_t mem, int64_t offset);
// Reports whether two reports are equal except for their counts.
bool simreport_same(const SimReport *a, const SimReport *b);
// Returns the n facts of a fault, allocated by base_realloc. Returns NULL if
// memory is exhausted.
SimFact *simreport_facts(const SimProg *p, const SimFault *f, int *n);
// Sets r.mbar, r.arrivals and r.bytes: what the mbarrier's phase should expect.
void simreport_amounts(SimFault *f);
// Describes the function's misuse of an MMA's registers, Fn.flight.
void simreport_flight(const SimProg *p, SimFault *out);

#endif
// SPDX-License-Identifier: MIT
