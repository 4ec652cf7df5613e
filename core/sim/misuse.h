// What can be wrong with an access, a barrier, a map ...: kinds of faults, as
// report.h has them.
#ifndef CUTE_SIMMISUSE_H
#define CUTE_SIMMISUSE_H

typedef enum SimClash { CLASH_WAW, CLASH_WAR, CLASH_RAW } SimClash;
// Who carries out what a thread began; those from COPY on by a proxy of their
// own.
typedef enum SimAgent {
  AGENT_NONE, AGENT_CPASYNC, AGENT_SEND, AGENT_COPY, AGENT_WGMMA
} SimAgent;
// A barrier for a number of threads that is none of whole warps, or another
// than others use it for; the same warp comes to it again; a number that no
// barrier has; lanes of a warp that name other barriers, or other counts; the
// cluster's barrier: arrives twice, waits without having arrived. LEFT: n came
// when the block ended, of those it is for. EARLY: one that may come among
// those of the round before.
typedef enum SimMisuse {
  BAR_ODD, BAR_DIFFERS, BAR_TWICE, BAR_RANGE, BAR_LANES, BAR_LANES_COUNT,
  BAR_TWICE_CLUSTER, BAR_UNCAME_CLUSTER, BAR_LEFT, BAR_EARLY
} SimMisuse;

// An mbarrier that was never made; not before this, for this thread; not for
// agents; a second time; with a count of none or too many; beyond all that
// there is room for; more arrivals or bytes than it takes. TOKEN: of a phase
// that is long over; FOREIGN: of another mbarrier, or none. DATA: stored over,
// or read, as data. MISSED: a wait that may come a phase too late.
typedef enum SimWrong {
  MBAR_NONE, MBAR_UNORDERED, MBAR_UNFENCED, MBAR_TWICE, MBAR_COUNT, MBAR_MANY,
  MBAR_OVER, MBAR_BYTES, MBAR_GONE, MBAR_BUSY, MBAR_AGAIN, MBAR_DATA,
  MBAR_EARLY, MBAR_TOKEN, MBAR_FOREIGN, MBAR_LEFT, MBAR_STILL, MBAR_MISSED
} SimWrong;
// A tensor map in memory that is none; that tells of more than there is; whose
// change nobody released, or acquired; that changes while a copy needs it.
typedef enum SimMapWrong {
  MAP_NONE, MAP_BEYOND, MAP_UNRELEASED, MAP_UNACQUIRED, MAP_CHANGED
} SimMapWrong;
// What a warp waits for that does not come.
typedef enum SimStuck {
  STUCK_BARRIER, STUCK_MBAR, STUCK_CLUSTER, STUCK_REGISTERS, STUCK_TEAM,
  STUCK_FLAG
} SimStuck;
// A warpgroup's MMA by lanes, or warps, that name other operands; in a block
// without all of its warps; not by all of them.
typedef enum SimTeamwork {
  TEAM_LANES, TEAM_DIFFERS, TEAM_SHORT, TEAM_LACKS
} SimTeamwork;

// setmaxnreg: a count that is none of its direction; of another instruction, or
// not ordered behind the one before, of a warp of the warpgroup; not by all.
typedef enum SimAllotment {
  ALLOT_COUNT, ALLOT_DIFFERS, ALLOT_APART, ALLOT_LACKS
} SimAllotment;

#endif
