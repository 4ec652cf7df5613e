// Faults, and what is said of them (report.c).
#ifndef CUTE_SIMREPORT_H
#define CUTE_SIMREPORT_H

#include "sim/misuse.h"
#include "sim/prog.h"

typedef struct SimText { char *p; size_t n, cap; } SimText;
bool simreport_printf(SimText *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

typedef struct SimFault {
  SimReport r;
  uint64_t serial;         // of the warp instruction counted last
  union {                  // what its sentence needs besides, by r.kind
    // OOB, ALIGN: elements, bytes; which of so many registers
    // or another CTA's of which there are so many (0: that is not it)
    // wild: an address that no memory has, or another tensor's than that of
    // the address which: r.offset
    // INFLIGHT: by what; open: no group has it; far: another CTA began it
    struct {
      bool write, open, far, wild;
      SimAgent agent;
      int64_t size, which, most;
      int rank, ranks;
    } access;
    // RACE, WARPRACE; flying: with what is on its way; agent: with this one,
    // that nobody here waited for; proxy: of this one with a thread, for want
    // of a fence between their proxies; far: threads of two blocks
    // copy: a bulk copy's write; alone: a warp whose own wait for the wgmma
    // that read comes not before, plus one; cta: of a thread on the other side
    struct {
      SimClash how;
      SimAgent agent;
      bool flying, proxy, far, copy;
      int alone;
      int32_t cta[3];
    } race;
    // BLOCKRACE: classes of access, as blocks.c has them; the other's CTA;
    // draws: a number, from what another one put back
    struct { int mine, other; int32_t cta[3]; bool draws; } blocks;
    // DIVERGENT; gone: left the kernel; there: the warp has; mask: those named
    // are an operand
    struct { uint32_t here, named, gone, there; bool mask; } lanes;
    // BARRIER: its number; threads, and those of others; LANES: n is what
    // another lane names; LANES_COUNT: threads of two lanes
    struct { SimMisuse how; int64_t id, n, others; } barrier;
    // DEADLOCK: warps of the CTA, what they wait for: a barrier, threads; an
    // mbarrier, arrivals, bytes; the cluster's barrier; registers; FLAG: as
    // many blocks as that have not begun; some: in a branch for some threads
    struct {
      SimStuck how;
      bool some;
      uint32_t waiting, ended;
      int64_t barrier, came, needed, bytes;
    } deadlock;
    // MBARRIER: a count, or bytes expected; OVER: so many at once, and what
    // the phase lacked; EARLY: came: a phase; LEFT: n: a phase
    struct { SimWrong how; int64_t n, bytes, came, missing; } mbar;
    // EXIT: the CTA that is gone; a barrier of its own: nobody waited there
    struct { int32_t cta[3]; bool landed; } gone;
    // MAP; drained: by a load behind which its thread committed and waited
    struct { SimMapWrong how; bool drained; } map;
    // REGISTERS: had, asked for; the warp of its CTA and another, what it has
    struct {
      SimAllotment how;
      int had, wanted, warp, other, theirs;
    } registers;
    // WARPGROUP: the warp of its CTA, how many that has
    struct { SimTeamwork how; int warp, warps; } team;
    struct { int64_t none, all; } left;  // UNWRITTEN: elements
    struct { int four, group; } metadata;  // of a group of so many elements
    struct { uint64_t executed; bool quiet; } runaway;  // of all: exec.c
    int lane;              // SHUFFLE
    uint32_t text;         // TRAP: a string of Fn, or 0
    char layout[280];      // LAYOUT: what differs
    // ... or what was assumed of a value
    struct { uint32_t none; bool wrong; int64_t value, lo, hi, div; } assumed;
  };
  // Of r.lack: the mbarrier, a phase of it, the bytes that came (open: that are
  // expected) and all of them
  struct {
    int32_t mem;
    int64_t element, came, all;
    uint32_t phase;
    bool open;
  } late;
  int64_t extent[SIM_MODES];  // of r.coord; -1: not at hand
  struct {                 // STUCK_FLAG: what stands there, and who wrote it
    DType type;
    bool written;
    int32_t cta[3];
    uint64_t value;
  } spin;
} SimFault;

// What a finished cluster hands over.
typedef struct SimOut {
  struct SimOut *next;
  uint64_t cluster;
  SimFault *fault, *note;
  uint32_t nfault, shown;  // so many a debugger was told of
  uint32_t nnote;          // at most MAX_NOTES
  SimStat *stat;
  uint64_t instructions, mmas, early;
  uint64_t granules;       // that it had room for
  SimText text;            // printed
} SimOut;

enum { MAX_NOTES = 8 };

typedef struct SimWarp SimWarp;
// Counts a fault; lane -1: none in particular. NULL: it is known, or there are
// too many.
SimFault *simreport_state(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset,
                          uint64_t state);
SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset);
// Counts what is right on the cards that were tried, but not by PTX's text: a
// note, or (SimOpts.strict) a fault. NULL as above.
SimFault *simreport_note(SimWarp *w, SimKind kind, int lane, uint32_t src,
                         uint32_t src2, int32_t mem, int64_t offset);
// Are they the same but for their counts?
bool simreport_same(const SimReport *a, const SimReport *b);
// The sentence of a fault, base_realloc'd; NULL when out of memory.
char *simreport_text(const SimProg *p, const SimFault *f);
// Fills r.mbar, r.arrivals and r.bytes.
void simreport_amounts(SimFault *f);
// out: from shared memory to global.
const char *simreport_op(const SimProg *p, const Ins *i, int32_t *smem,
                         int32_t *gmem, bool *out);

#endif
