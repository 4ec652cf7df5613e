// Cost of each instruction of a program: its inputs and outputs, its waits, and
// the cycles of its pipe.
#ifndef CUTE_SIMWORK_H
#define CUTE_SIMWORK_H

#include "sim/inside.h"

typedef enum SimWorkKind {
  K_NONE,       // costs nothing; the result is ready with its operands
  K_ALU,
  K_BRANCH,     // waits for all earlier arithmetic
  K_HEAD, K_TURN,  // a loop starts; an iteration ends
  K_MEET,       // arrival at a barrier
  K_FENCE,      // work: cycles of the SM's fences; late: latency
  K_SHARED, K_ATOMIC, K_PEER, K_LDMATRIX, K_LOAD, K_STORE,
  K_CPASYNC, K_CPCOMMIT, K_CPWAIT, K_CPARRIVE,
  K_MMA, K_WGMMA, K_WGCOMMIT, K_WGWAIT,
  K_BULKLOAD, K_BULKSTORE, K_BULKCOMMIT, K_BULKWAIT
} SimWorkKind;

typedef struct SimWork {
  uint8_t kind;           // SimWorkKind of the instruction
  float slots;            // issue slots of its quarter of the SM
  float work;             // cycles of the instruction's pipe
  float fma, alu, xu, f64;  // cycles of the arithmetic pipes of its quarter
  float late;             // latency until the result is ready, or the warp
                          // continues
  float shared;           // shared-memory passes for the instruction's operands
  float flops;            // operations per lane; for MMAs, per warp
  uint32_t ids, nread, nwrite;  // index of its ids in SimWorks.id: nread ids
                                // that it reads, then nwrite that it writes
} SimWork;

typedef struct SimWorks {
  const SimProg *p;
  const SimMachine *m;
  SimWork *work;          // cost of each instruction
  uint32_t *id;           // lists of ids, see SimWork.ids
  uint32_t nid;           // number of distinct ids
} SimWorks;
SimWorks *simwork_new(Ctx *cx, const SimProg *p, const SimMachine *m);

#endif
// SPDX-License-Identifier: MIT
