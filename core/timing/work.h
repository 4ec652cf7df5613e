// Cost of each instruction of a program: the values that it reads and writes,
// what it waits for, and the cycles for which it occupies its pipe.
#ifndef CUTE_TIMING_WORK_H
#define CUTE_TIMING_WORK_H

#include "sim/machine.h"

typedef enum SimWorkKind {
  // costs nothing; its result is ready as soon as its operands are
  K_NONE,
  K_ALU,
  K_BRANCH,     // waits for all earlier arithmetic
  // K_HEAD: a loop starts. K_TURN: a loop iteration ends.
  K_HEAD, K_TURN,
  K_MEET,       // arrival at a barrier
  // A fence. SimWork.work: cycles for which the SM's fence unit is busy.
  // SimWork.late: latency.
  K_FENCE,
  K_SHARED, K_SEND, K_ATOMIC, K_PEER, K_LDMATRIX, K_LOAD, K_STORE,
  K_CPASYNC, K_CPCOMMIT, K_CPWAIT, K_CPARRIVE,
  K_MMA, K_WGMMA, K_WGCOMMIT, K_WGWAIT,
  // tcgen05.
  // - K_TCMMA: an MMA or a copy from shared memory.
  // - K_TCCOMMIT: its commit.
  // - K_TCMOVE: a copy between tensor memory and registers.
  // - K_TCWAIT: a wait for such copies.
  K_TCMMA, K_TCCOMMIT, K_TCMOVE, K_TCWAIT,
  K_BULKLOAD, K_BULKSTORE, K_BULKCOMMIT, K_BULKWAIT
} SimWorkKind;

typedef struct SimWork {
  uint8_t kind;           // a SimWorkKind
  float slots;            // issue slots in the warp's quarter of the SM
  float work;             // cycles of the instruction's pipe
  // cycles of the arithmetic pipes of the warp's quarter of the SM
  float fma, alu, xu, f64;
  // latency until the result is ready, or until the warp continues
  float late;
  // shared-memory passes in which a tensor-core instruction reads its operands
  float shared;
  // number of floating-point operations of each lane or, if the instruction is
  // an MMA, of the whole warp
  float flops;
  // index in SimWorks.id of the ids of the instruction's values: first the
  // `nread` values that it reads, then the `nwrite` values that it writes
  uint32_t ids, nread, nwrite;
} SimWork;

typedef struct SimWorks {
  const SimProg *p;
  const SimMachine *m;
  SimWork *work;          // for each instruction: its cost
  uint32_t *id;           // lists of ids, to which SimWork.ids refers
  uint32_t nid;           // number of distinct ids (values and registers)
} SimWorks;
SimWorks *work_new(Ctx *cx, const SimProg *p, const SimMachine *m);

#endif
// SPDX-License-Identifier: MIT
