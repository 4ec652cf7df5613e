// Event log of one cluster, for the cost model (clock.c). For each warp, it
// lists the instructions, the bytes that they move, and the waits for other
// threads.
//
// A wait is for a gate: a round of a barrier, or a phase of an mbarrier. A gate
// has parts: the arrivals and completions that the log assigns to it. It opens
// when all its parts are given.
#ifndef CUTE_SIMTAPE_H
#define CUTE_SIMTAPE_H

#include "sim/inside.h"

typedef enum SimMark {
  TAPE_RUN,    // instruction `at` of the program
  TAPE_GIVE,   // gives a part of gate `at`
  TAPE_NEED,   // waits until gate `at` opens
  TAPE_BEGIN, TAPE_END,  // a range begins or ends; `at` is its name's text
  TAPE_AGENT   // starts an agent; its end is a part of gate `at` (0: of none)
} SimMark;

typedef struct SimStep {
  uint8_t mark;        // SimMark
  uint8_t lanes;       // RUN: active lanes
  uint8_t lines;       // RUN: 128-byte L1 lines accessed
  uint8_t cta;         // AGENT: CTA whose memory it fills; GIVE: 1 if the gate
                       // is in another CTA
  uint8_t same;        // RUN of an atomic: largest number of lanes at one word
  uint32_t at;
  uint32_t passes;     // RUN: shared-memory passes
  uint32_t sectors;    // RUN: 32-byte sectors of global memory
  uint32_t missed;     // RUN: sectors that missed L1
  uint32_t bytes;      // AGENT: bytes that it moves
} SimStep;

typedef struct SimReel {  // log of a warp
  SimStep *step;
  size_t n, cap;
  size_t run;          // step of the current instruction
  SimStat before;      // statistics record of the current instruction before it
                       // ran
  uint32_t missed, lines;  // sectors that missed and lines, so far, of the
                           // current instruction
} SimReel;

typedef struct SimTape {
  SimReel *reel;       // one log per warp of the cluster
  int nreel;
  uint32_t ngate;      // number of gates, numbered from 1 on
  uint64_t steps, most;
  uint64_t *line;      // L1 of each CTA: addresses of the sectors that it holds
  size_t nline;        // number of sectors per CTA, a power of two
  bool full;           // the log exceeded `most` steps
} SimTape;

// Creates an event log. l1: bytes of each CTA's L1. NULL: out of memory.
SimTape *simtape_new(const SimProg *p, int64_t l1, uint64_t most);
void simtape_free(SimTape *t);

// Log an instruction of w, at its beginning and its end. again: it will be
// repeated.
void simtape_begin(SimWarp *w, const SimIns *i);
void simtape_end(SimWarp *w, const SimIns *i, bool again);
// Logs an access of the lanes of mask to n bytes each of global memory, at
// start + at[lane]. keeps: L1 caches the sectors.
void simtape_global(SimWarp *w, uint64_t start, const int64_t *at,
                    uint32_t mask, int n, bool keeps);
// Logs the beginning, or end, of a named range.
void simtape_mark(SimWarp *w, uint32_t name, bool begins);
// Logs the largest number of lanes of an atomic that access one word.
void simtape_same(SimWarp *w, const int64_t *at, uint32_t mask);
// Logs that w gives a part of a gate, which is created if *gate is 0. far: the
// gate is in another CTA of the cluster.
void simtape_give(SimWarp *w, uint32_t *gate, bool far);
void simtape_need(SimWarp *w, uint32_t gate);
// simtape_agent logs the start of an agent by w. simtape_land logs the end of
// an agent that fills a CTA's memory; the end is a part of *gate.
size_t simtape_agent(SimWarp *w);
void simtape_land(SimWarp *w, size_t agent, uint32_t *gate, int cta,
                  uint32_t bytes);

#endif
// SPDX-License-Identifier: MIT
