// Faults and their descriptions (report.c).
#ifndef CUTE_SIMREPORT_H
#define CUTE_SIMREPORT_H

#include "sim/misuse.h"
#include "sim/prog.h"

typedef struct SimText { char *p; size_t n, cap; } SimText;
bool simreport_printf(SimText *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

typedef struct SimFault {
  SimReport r;
  uint64_t serial;         // number of the warp instruction counted last
  union {                  // details for the sentence, by r.kind
    // OOB, ALIGN. size: elements, or bytes; which, most: an index, and the
    // number of elements (0: unused); rank, ranks: a CTA, and the number of
    // CTAs (0: unused); wild: r.offset is a raw address in no memory, or in
    // another tensor than the address `which` that it was computed from.
    // INFLIGHT. agent; open: it is in no group; far: started by another CTA.
    struct {
      bool write, open, far, wild;
      SimAgent agent;
      int64_t size, which, most;
      int rank, ranks;
    } access;
    // RACE, WARPRACE. flying: with an operation in flight; agent: with this
    // agent, which no thread here waited for; proxy: an agent and a thread
    // without a proxy fence; far: threads of two blocks; copy: a bulk copy
    // writes; alone: 1 + number of a warp whose own wait for the reading wgmma
    // does not come before; cta: of a thread on the other side.
    struct {
      SimClash how;
      SimAgent agent;
      bool flying, proxy, far, copy;
      int alone;
      int32_t cta[3];
    } race;
    // BLOCKRACE. mine, other: access classes of blocks.c; cta: the other side;
    // draws: a number was drawn from a counter that another access reset.
    struct { int mine, other; int32_t cta[3]; bool draws; } blocks;
    // DIVERGENT. Lanes: present; required; that exited the kernel; that exist
    // in the warp. mask: `named` is an operand of the instruction.
    struct { uint32_t here, named, gone, there; bool mask; } lanes;
    // BARRIER. Its number; its thread count, and that of other warps. LANES: n
    // is the number that another lane names. LANES_COUNT: counts of two lanes.
    struct { SimMisuse how; int64_t id, n, others; } barrier;
    // DEADLOCK. Masks of warps of the CTA; what they wait for: a barrier and
    // threads; an mbarrier, arrivals, bytes; the cluster barrier; registers.
    // FLAG: `needed` blocks have not started. some: in a branch for some
    // threads.
    struct {
      SimStuck how;
      bool some;
      uint32_t waiting, ended;
      int64_t barrier, came, needed, bytes;
    } deadlock;
    // MBARRIER. n, bytes: expected. OVER: came: arrivals at once; missing: in
    // the phase. EARLY: came is a phase. LEFT: n is a phase.
    struct { SimWrong how; int64_t n, bytes, came, missing; } mbar;
    // EXIT, START: the CTA; landed: by an agent's copy in flight
    struct { int32_t cta[3]; bool landed; } gone;
    // MAP. drained: changed during a load whose thread waited for a later group
    struct { SimMapWrong how; bool drained; } map;
    // REGISTERS. Current, requested; warp of its CTA; another warp, its count.
    struct {
      SimAllotment how;
      int had, wanted, warp, other, theirs;
    } registers;
    // WARPGROUP. Warp of its CTA; number of warps in the CTA.
    struct { SimTeamwork how; int warp, warps; } team;
    struct { int64_t none, all; } left;  // UNWRITTEN: elements
    // METADATA. A metadata value, for a group of `group` elements.
    struct { int four, group; } metadata;
    // RUNAWAY. Instructions: quiet: of the cluster since memory changed; else
    // of the warp.
    struct { uint64_t executed; bool quiet; } runaway;
    int lane;              // SHUFFLE: the lane that is missing
    uint32_t text;         // TRAP: a string of Fn, or 0
    char layout[280];      // LAYOUT: the difference
    // TRAP of cute.assume: the value, and what was assumed.
    struct { uint32_t none; bool wrong; int64_t value, lo, hi, div; } assumed;
  };
  // With r.lack: the mbarrier, its phase, the bytes that came (open: that are
  // expected) and all bytes.
  struct {
    int32_t mem;
    int64_t element, came, all;
    uint32_t phase;
    bool open;
  } late;
  int64_t extent[SIM_MODES];  // of r.coord; -1: unknown
  struct {                 // STUCK_FLAG: value, and its last writer
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
  uint32_t nfault, shown;  // number already shown to a debugger
  uint32_t nnote;          // at most MAX_NOTES
  SimStat *stat;
  uint64_t instructions, mmas, early;
  uint64_t granules;       // most that were tracked
  SimText text;            // output of printf
} SimOut;

enum { MAX_NOTES = 8 };

typedef struct SimWarp SimWarp;
// Counts a fault; lane -1: none in particular. Returns it the first time; NULL:
// it is known, or there are too many.
SimFault *simreport_state(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset,
                          uint64_t state);
SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset);
// Counts behaviour that the tested cards accept but PTX does not guarantee: a
// note, or (SimOpts.strict) a fault. Returns as above.
SimFault *simreport_note(SimWarp *w, SimKind kind, int lane, uint32_t src,
                         uint32_t src2, int32_t mem, int64_t offset);
// Reports whether two reports are equal except for their counts.
bool simreport_same(const SimReport *a, const SimReport *b);
// Returns the sentence of a fault, base_realloc'd; NULL: out of memory.
char *simreport_text(const SimProg *p, const SimFault *f);
// Fills in r.mbar, r.arrivals and r.bytes.
void simreport_amounts(SimFault *f);
// Returns the name of a memory instruction, and its objects. out: it moves data
// from shared to global memory.
const char *simreport_op(const SimProg *p, const Ins *i, int32_t *smem,
                         int32_t *gmem, bool *out);

#endif
// SPDX-License-Identifier: MIT
