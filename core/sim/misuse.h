// Details of faults, as report.h stores them: misuse of barriers, mbarriers,
// tensor maps and MMAs.
#ifndef CUTE_SIMMISUSE_H
#define CUTE_SIMMISUSE_H

typedef enum SimClash { CLASH_WAW, CLASH_WAR, CLASH_RAW } SimClash;
// The agent that executes an asynchronous operation. Agents from AGENT_COPY on
// use a proxy of their own.
typedef enum SimAgent {
  AGENT_NONE, AGENT_CPASYNC, AGENT_SEND, AGENT_COPY, AGENT_WGMMA
} SimAgent;
// Misuse of a barrier.
//   ODD                the thread count is not a multiple of the warp size
//   DIFFERS            the thread count differs from that of other warps
//   TWICE              the same warp arrives again
//   RANGE              no barrier has this number
//   LANES              lanes of a warp name different barriers
//   LANES_COUNT        lanes of a warp name different thread counts
//   TWICE_CLUSTER      cluster barrier: a second arrival
//   UNCAME_CLUSTER     cluster barrier: a wait without an arrival
//   LEFT               only n of the threads had arrived when the block ended
//   EARLY              the arrival may be counted in the previous round
typedef enum SimMisuse {
  BAR_ODD, BAR_DIFFERS, BAR_TWICE, BAR_RANGE, BAR_LANES, BAR_LANES_COUNT,
  BAR_TWICE_CLUSTER, BAR_UNCAME_CLUSTER, BAR_LEFT, BAR_EARLY
} SimMisuse;

// Misuse of an mbarrier:
// - NONE: it was never initialized.
// - UNORDERED: a use is not ordered after the initialization.
// - UNFENCED: no fence makes the initialization visible to agents.
// - TWICE: it is initialized again without an mbarrier_inval in between.
// - COUNT: the arrival count is invalid.
// - MANY: the cluster has too many mbarriers.
// - OVER: a phase gets too many arrivals.
// - BYTES: a phase expects too many bytes.
// - GONE: it is used after its mbarrier_inval.
// - BUSY: it is invalidated while it is in use.
// - AGAIN: a second initialization is not ordered after the mbarrier_inval.
// - DATA: its memory is accessed as data.
// - EARLY: an arrival may be counted in the previous phase.
// - TOKEN: a token is from an old phase.
// - FOREIGN: a token is from another mbarrier.
// - LEFT: its last phase is incomplete when the kernel ends.
// - STILL: an earlier use is not ordered before the mbarrier_inval.
// - MISSED: a wait may come a phase too late.
typedef enum SimWrong {
  MBAR_NONE, MBAR_UNORDERED, MBAR_UNFENCED, MBAR_TWICE, MBAR_COUNT, MBAR_MANY,
  MBAR_OVER, MBAR_BYTES, MBAR_GONE, MBAR_BUSY, MBAR_AGAIN, MBAR_DATA,
  MBAR_EARLY, MBAR_TOKEN, MBAR_FOREIGN, MBAR_LEFT, MBAR_STILL, MBAR_MISSED
} SimWrong;
// Faults of a tensor map in memory:
// - NONE: it is not a valid map.
// - BEYOND: it describes more than the tensor's memory.
// - UNRELEASED: a change was not released to the TMA proxy.
// - UNACQUIRED: the copy's CTA did not acquire a change.
// - OTHER: the simulator does not model it.
// - CHANGED: it changes while a copy uses it.
typedef enum SimMapWrong {
  MAP_NONE, MAP_BEYOND, MAP_UNRELEASED, MAP_UNACQUIRED, MAP_OTHER,
  MAP_CHANGED
} SimMapWrong;
// The things for which a stuck warp can wait.
typedef enum SimStuck {
  STUCK_BARRIER, STUCK_MBAR, STUCK_CLUSTER, STUCK_REGISTERS, STUCK_TEAM,
  STUCK_FLAG
} SimStuck;
// Misuse of a warpgroup's MMA:
// - LANES: lanes of a warp have different operands.
// - DIFFERS: warps of the warpgroup have different operands.
// - SHORT: the block does not have all warps of the warpgroup.
// - LACKS: some warps of the warpgroup do not issue the MMA.
typedef enum SimTeamwork {
  TEAM_LANES, TEAM_DIFFERS, TEAM_SHORT, TEAM_LACKS
} SimTeamwork;

// Misuse of setmaxnreg:
// - COUNT: the number of registers is invalid.
// - DIFFERS: warps of a warpgroup execute different instructions.
// - APART: it is not ordered after the previous setmaxnreg of other warps.
// - LACKS: some warps of the warpgroup do not execute it.
typedef enum SimAllotment {
  ALLOT_COUNT, ALLOT_DIFFERS, ALLOT_APART, ALLOT_LACKS
} SimAllotment;

#endif
// SPDX-License-Identifier: MIT
