// Faults, and what is said of them (report.c).
#ifndef CUTE_SIMREPORT_H
#define CUTE_SIMREPORT_H

#include "sim/prog.h"

typedef struct SimText { char *p; size_t n, cap; } SimText;
bool simreport_printf(SimText *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

typedef enum SimClash { CLASH_WAW, CLASH_WAR, CLASH_RAW } SimClash;
// A barrier for a number of threads that is none of whole warps, or another
// than others use it for; the same warp comes to it again; a number that no
// barrier has; lanes of a warp that name other barriers, or other counts.
typedef enum SimMisuse {
  BAR_ODD, BAR_DIFFERS, BAR_TWICE, BAR_RANGE, BAR_LANES, BAR_LANES_COUNT
} SimMisuse;

typedef struct SimFault {
  SimReport r;
  uint64_t serial;         // of the warp instruction counted last
  union {                  // what its sentence needs besides, by r.kind
    // OOB, ALIGN: elements, bytes; which of so many registers
    struct { bool write; int64_t size, which, most; } access;
    // RACE, WARPRACE; flying: with a cp.async
    struct { SimClash how; bool flying; } race;
    // BLOCKRACE: classes of access, as blocks.c has them; the other's CTA
    struct { int mine, other; int32_t cta[3]; } blocks;
    // DIVERGENT; gone: left the kernel; mask: those named are an operand
    struct { uint32_t here, named, gone; bool mask; } lanes;
    // BARRIER: its number; threads, and those of others; LANES: n is what
    // another lane names; LANES_COUNT: threads of two lanes
    struct { SimMisuse how; int64_t id, n, others; } barrier;
    // DEADLOCK: warps, the barrier, threads
    struct { uint32_t waiting, ended; int barrier, came, needed; } deadlock;
    uint64_t executed;     // RUNAWAY: instructions
    int lane;              // SHUFFLE
    uint32_t text;         // TRAP: a string of Fn, or 0
  };
} SimFault;

typedef struct SimWarp SimWarp;
// Counts a fault; lane -1: none in particular.
SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset);
// The sentence of a fault, base_realloc'd; NULL when out of memory.
char *simreport_text(const SimProg *p, const SimFault *f);
const char *simreport_op(const SimProg *p, const Ins *i, int32_t *smem,
                         int32_t *gmem);

#endif
