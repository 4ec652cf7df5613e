// The kinds of the simulator's reports.
#ifndef CUTE_FAULTS_KINDS_H
#define CUTE_FAULTS_KINDS_H

// SK(id, "stable-name"): a kind of report. The names do not change between
// versions. lua/cute/lang/kinds.lua has a row for each kind.
#define SIM_KINDS(SK) \
  SK(OOB, "out-of-bounds") SK(ALIGN, "misaligned") \
  SK(UNINIT, "uninitialised") SK(UNWRITTEN, "unwritten") \
  SK(INFLIGHT, "async-in-flight") SK(FLIGHT, "in-flight") SK(RACE, "race") \
  SK(WARPRACE, "warp-race") SK(BLOCKRACE, "block-race") \
  SK(DIVERGENT, "divergent") SK(OVERFLOW, "index-overflow") \
  SK(SIGNED, "signed-overflow") SK(MBARRIER, "mbarrier") \
  SK(TENSORMAP, "tensor-map") SK(START, "unstarted-block") \
  SK(EXIT, "exited-block") SK(REGISTERS, "registers") \
  SK(BARRIER, "barrier-mismatch") SK(METADATA, "bad-metadata") \
  SK(WARPGROUP, "warpgroup-mismatch") \
  SK(TENSOR, "tensor-memory") SK(DEADLOCK, "deadlock") \
  SK(RUNAWAY, "runaway") SK(SHUFFLE, "inactive-lane") \
  SK(DEPENDENT, "dependent-launch") SK(LAYOUT, "wrong-layout") \
  SK(TRAP, "assertion") SK(DIVZERO, "division-by-zero")
typedef enum SimKind {
#define SK(id, name) SIM_##id,
  SIM_KINDS(SK)
#undef SK
  SIM_KIND_COUNT
} SimKind;

#endif
// SPDX-License-Identifier: MIT
