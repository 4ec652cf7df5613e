// Faults and their descriptions (report.c).
#ifndef CUTE_SIMREPORT_H
#define CUTE_SIMREPORT_H

#include "sim/misuse.h"
#include "sim/prog.h"

typedef struct SimText { char *p; size_t n, cap; } SimText;
bool simreport_printf(SimText *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

typedef struct SimFault {
  SimReport r;
  uint64_t serial;         // serial number of the warp instruction that was
                           // counted last
  union {                  // details for the message, by r.kind
    // OOB, ALIGN. size: number of elements, or bytes. which, most: an index,
    // and the number of elements (0: unused). rank, ranks: a CTA, and the
    // number of CTAs (0: unused). wild: r.offset is a raw address that is in no
    // memory, or that is in another tensor than the address `which` from which
    // it was computed.
    // INFLIGHT. agent: the one that accesses the element. open: the operation
    // is in no group. far: another CTA started it.
    struct {
      bool write, open, far, wild;
      SimAgent agent;
      int64_t size, which, most;
      int rank, ranks;
    } access;
    // RACE, WARPRACE. flying: the other access is by an operation in flight.
    // agent: the agent of that access, for which no thread here waited. proxy:
    // no proxy fence is between the accesses of a thread and an agent. far: the
    // threads are of two blocks. copy: a bulk copy writes. alone: 1 + number of
    // a warp that must itself wait for the reading wgmma before the write. cta:
    // CTA of a thread on the other side.
    struct {
      SimClash how;
      SimAgent agent;
      bool flying, proxy, far, copy;
      int alone;
      int32_t cta[3];
    } race;
    // BLOCKRACE. mine, other: access classes of blocks.c. cta: the other side.
    // draws: a number was drawn from a counter that another access reset.
    struct { int mine, other; int32_t cta[3]; bool draws; } blocks;
    // DIVERGENT. Masks of lanes. here: those that are present. named: those
    // that are required. gone: those that exited the kernel. there: those that
    // exist in the warp. mask: `named` is an operand of the instruction.
    struct { uint32_t here, named, gone, there; bool mask; } lanes;
    // BARRIER. id: number of the barrier. n, others: its thread count here, and
    // in other warps. LANES: n is the number that another lane names.
    // LANES_COUNT: n and others are the counts of two lanes.
    struct { SimMisuse how; int64_t id, n, others; } barrier;
    // DEADLOCK. waiting, ended: masks of warps of the CTA. The numbers describe
    // what the warps wait for: a barrier and threads; an mbarrier, arrivals and
    // bytes; the cluster barrier; or registers. FLAG: `needed` blocks have not
    // started. some: the wait is in a branch for some threads.
    struct {
      SimStuck how;
      bool some;
      uint32_t waiting, ended;
      int64_t barrier, came, needed, bytes;
    } deadlock;
    // MBARRIER. n, bytes: expected arrivals and bytes. OVER: came arrivals at
    // once, when `missing` were missing in the phase. EARLY: came is a phase.
    // LEFT: n is a phase.
    struct { SimWrong how; int64_t n, bytes, came, missing; } mbar;
    // EXIT, START. cta: the CTA. landed: an agent's copy in flight accesses it.
    struct { int32_t cta[3]; bool landed; } gone;
    // MAP. drained: the map changed during a load whose thread waited for a
    // later group.
    struct { SimMapWrong how; bool drained; } map;
    // REGISTERS. had, wanted: current and requested count. warp: number in its
    // CTA. other, theirs: another warp and its count.
    struct {
      SimAllotment how;
      int had, wanted, warp, other, theirs;
    } registers;
    // WARPGROUP. warp: number in its CTA. warps: number of warps in the CTA.
    struct { SimTeamwork how; int warp, warps; } team;
    struct { int64_t none, all; } left;  // UNWRITTEN: unwritten and all
                                         // elements
    // METADATA. four: a metadata value, for a group of `group` elements.
    struct { int four, group; } metadata;
    // RUNAWAY. executed: number of instructions. quiet: these are the cluster's
    // since memory changed; otherwise they are the warp's.
    struct { uint64_t executed; bool quiet; } runaway;
    int lane;              // SHUFFLE: the lane that is missing
    uint32_t text;         // TRAP: a string of Fn; 0: none
    char layout[280];      // LAYOUT: how the layout differs
    // TRAP of cute.assume: the value, and what was assumed.
    struct { uint32_t none; bool wrong; int64_t value, lo, hi, div; } assumed;
  };
  // Set with r.lack: the mbarrier, its phase, the bytes that came (open: the
  // bytes that are expected) and the number of all bytes.
  struct {
    int32_t mem;
    int64_t element, came, all;
    uint32_t phase;
    bool open;
  } late;
  int64_t extent[SIM_MODES];  // extents of the modes of r.coord; -1: unknown
  struct {                 // STUCK_FLAG: the polled value and its last writer
    DType type;
    bool written;
    int32_t cta[3];
    uint64_t value;
  } spin;
} SimFault;

// Results of a finished cluster.
typedef struct SimOut {
  struct SimOut *next;
  uint64_t cluster;
  SimFault *fault, *note;
  uint32_t nfault, shown;  // nfault: number of faults; shown: number already
                           // shown to a debugger
  uint32_t nnote;          // at most MAX_NOTES
  SimStat *stat;
  uint64_t instructions, mmas, early;
  uint64_t granules;       // largest number of tracked granules
  SimText text;            // output of printf
} SimOut;

enum { MAX_NOTES = 8 };

typedef struct SimWarp SimWarp;
// Counts a fault, in a lane or (lane -1) in no particular one. Returns the
// fault if it is new. Returns NULL if it is known, or if there are too many.
SimFault *simreport_state(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset,
                          uint64_t state);
SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset);
// Counts behaviour that the tested cards accept but PTX does not guarantee. It
// becomes a note, or a fault with SimOpts.strict. Returns the same as
// simreport_fault.
SimFault *simreport_note(SimWarp *w, SimKind kind, int lane, uint32_t src,
                         uint32_t src2, int32_t mem, int64_t offset);
// Reports whether two reports are equal except for their counts.
bool simreport_same(const SimReport *a, const SimReport *b);
// Returns the message of a fault, allocated with base_realloc; NULL: out of
// memory.
char *simreport_text(const SimProg *p, const SimFault *f);
// Fills in r.mbar, r.arrivals and r.bytes.
void simreport_amounts(SimFault *f);
// Returns the name of a memory instruction, and finds its objects. out: it
// moves data from shared to global memory.
const char *simreport_op(const SimProg *p, const Ins *i, int32_t *smem,
                         int32_t *gmem, bool *out);

#endif
// SPDX-License-Identifier: MIT
