// What each instruction of a program asks of a multiprocessor: what it reads,
// writes, waits for and how long it keeps which pipe.
#ifndef CUTE_SIMWORK_H
#define CUTE_SIMWORK_H

#include "sim/inside.h"

typedef enum SimWorkKind {
  K_NONE,       // costs nothing; its result is there when its operands are
  K_ALU,
  K_BRANCH,     // waits for all arithmetic in front of it
  K_HEAD, K_TURN,  // a loop begins; its pass ends
  K_MEET,       // threads arrive at a barrier
  K_FENCE,      // work: its share of the SM's fences; late: until it is through
  K_SHARED, K_ATOMIC, K_PEER, K_LDMATRIX, K_LOAD, K_STORE,
  K_CPASYNC, K_CPCOMMIT, K_CPWAIT, K_CPARRIVE,
  K_MMA, K_WGMMA, K_WGCOMMIT, K_WGWAIT,
  K_BULKLOAD, K_BULKSTORE, K_BULKCOMMIT, K_BULKWAIT
} SimWorkKind;

typedef struct SimWork {
  uint8_t kind;           // SimWorkKind
  float slots;            // of its quarter's issue
  float work;             // cycles of its pipe
  float fma, alu, xu, f64;  // ... of arithmetic, its quarter's
  float late;             // until a result is there, or the warp goes on
  float shared;           // passes that operands in shared memory need
  float flops;            // of a lane; MMAs: of the warp
  uint32_t ids, nread, nwrite;  // in SimWorks.id: what it reads, writes
} SimWork;

typedef struct SimWorks {
  const SimProg *p;
  const SimMachine *m;
  SimWork *work;          // of each instruction
  uint32_t *id;           // lists of SimWork
  uint32_t nid;           // different ones
} SimWorks;
SimWorks *simwork_new(Ctx *cx, const SimProg *p, const SimMachine *m);

#endif
