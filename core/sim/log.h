// Functions by which the machine writes a cluster's event log (event_log.h).
#ifndef CUTE_SIMLOG_H
#define CUTE_SIMLOG_H

#include "sim/hooks.h"

// SimCluster.log is NULL unless the run of the cluster is logged.
typedef struct SimLog {
  // start creates a log and a cost model. If memory is exhausted, it sets *tape
  // to NULL. play estimates the time of the logged cluster, and returns false
  // if memory is exhausted. stop frees the log.
  void (*start)(Ctx *cx, const SimProg *p, const SimMachine *m,
                struct SimTape **tape);
  bool (*play)(struct SimTape *t, bool (*go)(void *ud), void *ud,
               SimTiming *out);
  void (*stop)(struct SimTape *t);

  // Log that instruction i of warp w begins or ends. `again` is true if w did
  // not execute i and will try again.
  void (*begin)(SimWarp *w, const SimIns *i);
  void (*end)(SimWarp *w, const SimIns *i, bool again);
  // Logs that each lane of mask accesses n bytes of global memory at start +
  // at[lane]. `keeps` is true if L1 caches the sectors with these bytes.
  void (*global)(SimWarp *w, uint64_t start, const int64_t *at, uint32_t mask,
                 int n, bool keeps);
  // Logs that the lanes of mask execute an atomic, lane l at byte offset at[l].
  void (*same)(SimWarp *w, const int64_t *at, uint32_t mask);
  // Logs that a named range of the script begins or ends.
  void (*mark)(SimWarp *w, uint32_t name, bool begins);
  // A gate is one round of a barrier or one phase of an mbarrier. `give` logs
  // that warp w contributes to the opening of a gate, for example by an
  // arrival. `far` is true if the gate belongs to another CTA. `need` logs that
  // w waits until a gate opens.
  void (*give)(SimWarp *w, uint32_t *gate, bool far);
  void (*need)(SimWarp *w, uint32_t gate);
  // `agent` logs that warp w starts an asynchronous operation, and returns the
  // index of this step. `land` logs that this operation has filled `bytes`
  // bytes of memory of CTA `cta`, which contributes to the opening of *gate.
  size_t (*agent)(SimWarp *w);
  void (*land)(SimWarp *w, size_t agent, uint32_t *gate, int cta,
               uint32_t bytes);
} SimLog;

#endif
// SPDX-License-Identifier: MIT
