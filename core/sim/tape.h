// What one cluster did, warp by warp, for a model of how long that takes
// (clock.c): the instructions, what they moved, and who waited for whom.
//
// Whoever waits for others waits at a gate: a round of a barrier, a phase of
// an mbarrier. It is open when all that the tape says of it gave their part.
#ifndef CUTE_SIMTAPE_H
#define CUTE_SIMTAPE_H

#include "sim/inside.h"

typedef enum SimMark {
  TAPE_RUN,    // instruction `at` of the program
  TAPE_GIVE,   // a part of gate `at`
  TAPE_NEED,   // goes on when gate `at` is open
  TAPE_BEGIN, TAPE_END,  // of a range whose name is text `at`
  TAPE_AGENT   // an agent began, whose end is a part of gate `at` (0: never)
} SimMark;

typedef struct SimStep {
  uint8_t mark;        // SimMark
  uint8_t lanes;       // RUN: that took part
  uint8_t lines;       // RUN: of L1, 128 bytes each, that they ask for
  uint8_t cta;         // AGENT: of the cluster, whose memory it fills;
                       // GIVE: 1 where the gate is another CTA's
  uint8_t same;        // RUN: of an atomic, most lanes at one word
  uint32_t at;
  uint32_t passes;     // RUN: of shared memory
  uint32_t sectors;    // RUN: of global memory, 32 bytes each,
  uint32_t missed;     // ... and those that L1 had not
  uint32_t bytes;      // AGENT
} SimStep;

typedef struct SimReel {  // of a warp
  SimStep *step;
  size_t n, cap;
  size_t run;          // the instruction that is under way
  SimStat before;      // its statistics until then
  uint32_t missed, lines;  // sectors, lines so far
} SimReel;

typedef struct SimTape {
  SimReel *reel;       // of each warp of the cluster
  int nreel;
  uint32_t ngate;      // gates are 1 to ngate
  uint64_t steps, most;
  uint64_t *line;      // L1's, of each CTA: sectors that it holds
  size_t nline;        // of a CTA, a power of two
  bool full;           // there were more than `most` steps
} SimTape;

// l1: bytes of each CTA's. NULL: out of memory.
SimTape *simtape_new(const SimProg *p, int64_t l1, uint64_t most);
void simtape_free(SimTape *t);

// Around an instruction of w; `again`: it will run once more.
void simtape_begin(SimWarp *w, const SimIns *i);
void simtape_end(SimWarp *w, const SimIns *i, bool again);
// The lanes of mask access n bytes each of global memory at start + at; keeps:
// L1 does.
void simtape_global(SimWarp *w, uint64_t start, const int64_t *at,
                    uint32_t mask, int n, bool keeps);
// A range of that name begins, or ends.
void simtape_mark(SimWarp *w, uint32_t name, bool begins);
// So many lanes of an atomic ask for one word, at the most.
void simtape_same(SimWarp *w, const int64_t *at, uint32_t mask);
// w gives its part of a gate, which is made where *gate is 0; far: of another
// CTA of the cluster.
void simtape_give(SimWarp *w, uint32_t *gate, bool far);
void simtape_need(SimWarp *w, uint32_t gate);
// An agent of w begins; it ends, a part of *gate, in memory of a CTA.
size_t simtape_agent(SimWarp *w);
void simtape_land(SimWarp *w, size_t agent, uint32_t *gate, int cta,
                  uint32_t bytes);

#endif
