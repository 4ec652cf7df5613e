// What the machine writes to the event log of a cluster (event_log.h).
#ifndef CUTE_SIMLOG_H
#define CUTE_SIMLOG_H

#include "sim/hooks.h"

// SimCluster.log is NULL unless the run of a cluster is logged.
typedef struct SimLog {
  // start creates a log and a cost model, play estimates the time of the logged
  // cluster, and stop frees the log. start sets *tape to NULL, and play returns
  // false, if memory is exhausted.
  void (*start)(Ctx *cx, const SimProg *p, const SimMachine *m,
                struct SimTape **tape);
  bool (*play)(struct SimTape *t, bool (*go)(void *ud), void *ud,
               SimTiming *out);
  void (*stop)(struct SimTape *t);

  // Instruction i of w begins or ends. again: i was not executed and will be
  // repeated.
  void (*begin)(SimWarp *w, const SimIns *i);
  void (*end)(SimWarp *w, const SimIns *i, bool again);
  // Each lane of mask accesses n bytes of global memory at start + at[lane].
  // keeps: L1 caches the sectors.
  void (*global)(SimWarp *w, uint64_t start, const int64_t *at, uint32_t mask,
                 int n, bool keeps);
  // The lanes of mask execute an atomic at the byte offsets `at`.
  void (*same)(SimWarp *w, const int64_t *at, uint32_t mask);
  // A named range begins or ends.
  void (*mark)(SimWarp *w, uint32_t name, bool begins);
  // give: w contributes a part of a gate (a round of a barrier or a phase of an
  // mbarrier). need: w waits until a gate opens. far: the gate belongs to
  // another CTA.
  void (*give)(SimWarp *w, uint32_t *gate, bool far);
  void (*need)(SimWarp *w, uint32_t gate);
  // agent: w starts an agent; returns the step's index. land: this agent
  // completes, having filled `bytes` bytes of CTA `cta`, as a part of *gate.
  size_t (*agent)(SimWarp *w);
  void (*land)(SimWarp *w, size_t agent, uint32_t *gate, int cta,
               uint32_t bytes);
} SimLog;

#endif
// SPDX-License-Identifier: MIT
