// A cluster, its CTAs and their warps while they run; CTA k's shared memory is
// that from k * SimProg.smem_bytes on.
#ifndef CUTE_SIMSTATE_H
#define CUTE_SIMSTATE_H

#include "sim/report.h"
#include "sim/waited.h"

typedef struct SimFrame {  // of an open region
  uint32_t mask;           // lanes that are here when it ends
  uint32_t other;          // a branch: those that its other half is for
  uint32_t head;           // the instruction that opened it
} SimFrame;

typedef enum SimState {
  SW_RUN, SW_BARRIER, SW_MBAR, SW_CLUSTER, SW_REGISTERS, SW_TEAM, SW_DONE
} SimState;

// SIM_ROOM: bytes for an operand of the largest MMA, 256 x 64 in f32.
enum { FENCES = 16, SIM_ROOM = 256 * 64 * 4 };

typedef struct SimCta SimCta;
typedef struct SimCluster SimCluster;
typedef struct SimBatch SimBatch;
typedef struct SimReach SimReach;
typedef struct SimTaint SimTaint;  // regs.h; mem.c, cluster.c; shadow.h
typedef struct SimGran SimGran;
typedef struct SimRead SimRead;
typedef struct SimFar SimFar;
typedef struct SimLines SimLines;
typedef struct SimMbar SimMbar;
typedef struct SimAsync SimAsync;
typedef struct SimSpin SimSpin;
typedef struct SimPart SimPart;
typedef struct SimTeam SimTeam;
typedef struct SimPattern SimPattern;
struct SimWarp {
  SimCluster *cluster;
  SimCta *cta;
  int id, in;              // number in the cluster, in its CTA
  uint32_t home;           // its CTA's first byte of shared memory
  SimState state;
  uint32_t pc, active, valid;
  uint32_t gone;           // lanes that left the kernel before its end
  uint32_t here, waits, tries;  // lanes.c: those that run, with their branches;
  uint64_t stamp;          // asked in vain; turns since so many changes
  SimPart *part;           // the others; NULL: none went their own way
  uint32_t clk;            // epoch of memory order, see order.c
  uint32_t depth, ring;    // how often it was at a ring of edit.c's
  SimFrame *frame;
  char *v;                 // values
  uint64_t count;          // instructions executed
  uint32_t src, line;      // where it waits; its last instruction, debugged
  int bar, mbar;           // barrier, mbarrier that it waits at
  bool refused, polling;   // its last try_wait was false by chance; at all
  uint32_t *vc;            // what is ordered before all lanes; order.c:
  uint32_t seen, pending, distant, fenced;  // lanes whose rows hold something
  bool level, vain;        // ... all lanes the same; its poll orders nothing
  uint32_t sent, started;  // lanes after a fence for other clusters; CTAs
  uint32_t committed[LANES];  // cp.async groups
  SimBatch *batch;         // batches [first, end) are in flight
  size_t first, end, cap;
  uint64_t batches;        // ever made
  uint32_t groups[BY_COUNT][LANES];  // of what agents do, committed
  uint32_t issued;         // epoch of its agent
  uint32_t teamwork;       // groups of its warpgroup's MMAs, committed
  SimWaited waited[GROUPS_COUNT];  // waits.h
  // Number k of its proxy fences, for shared (1), global (2): fence[k % FENCES]
  struct { uint32_t clk, met, lanes, spaces; } fence[FENCES];  // met: vc[id]
  uint32_t nfence;
  uint32_t *proxied;       // of each's writes: fenced in shared, in global
  uint32_t met, came, passed;  // the cluster: times; lanes there, and through
  uint32_t wider, fresh[2];  // lanes after a fence for the cluster or more;
                           // that learnt nothing since their proxy fences
  int registers, wanted;   // of a thread; SW_REGISTERS: that it asks for
  struct { const SimIns *i; uint32_t n, clk; } allot;  // its last setmaxnreg
  uint32_t *wrapped;       // of products, the lanes that wrapped last
  bool wraps, tainted;     // some did; an undefined register was read: taint.c
  SimTaint *taint;         // of the values, by slot
  struct { const SimMem *mem; uint32_t src; } quotient;  // by 0, put there
  SimText text;  // printed
};

// What is ordered before those who come to take it.
typedef struct SimPast {
  uint32_t *vc, *row;      // row: NULL until needed
  bool rows;               // its row holds something
  uint32_t gate;           // of tape.h that they pass
} SimPast;

typedef struct SimBar {
  int expected, arrived;   // threads; arrived 0: idle
  uint32_t members, waiting;  // warps of the CTA
  uint32_t src[MAX_WARPS], clk[MAX_WARPS];  // where they arrived, and when
  uint32_t before, knows;  // of the last round: members, those who waited
  uint32_t last[MAX_WARPS];  // when they arrived
  SimPast past;
} SimBar;

struct SimCta {
  uint64_t number;         // in the order of clusters; in the grid where a
  int32_t id[3];           // cluster is one CTA
  SimBar bar[MAX_BARS];
  int pool[4];             // registers a lane that each quarter has left
  bool early;              // it let the next launch in before it waited
};

struct SimCluster {
  const SimProg *prog;
  uint32_t index;          // among those of the launch
  uint64_t rng, serial, budget, patience, mmas;
  uint64_t due;            // serial at which a loop calls simcluster_tick
  int polls;               // global memory asked and unchanged, this turn
  uint64_t changed, still, since, quiet;  // of memory: exec.c's end_region
  uint64_t moved, asleep;  // spin.h; it waits for others since *prog->changes,
  SimCluster *next;        // the next one later
  SimSpin *spin;
  struct SimTurns *turns;  // turns.h
  struct SimCauses *causes;
  int64_t unborn;          // a deadlock: blocks that cannot begin
  bool look, hopeless;     // somebody is stuck; so are all
  bool stop, oom, strict;  // nothing more to learn of it; notes are faults
  int max_reports;
  SimWarp *warp;           // of all CTAs, CTA by CTA
  SimCta *cta;
  uint32_t *clocks;        // of the warps, then of the barriers
  uint8_t *smem;
  SimGran *gran;           // ngran of them, room for maxgran (shadow.h)
  uint32_t ngran, maxgran;
  SimLines *lines;         // of global memory
  SimRead *read;           // (granule, warp of its CTA): where a reader is
  SimFar *far;             // shadow.c: from 1 on; those of a granule begin at
  uint32_t *farat, nfar, maxfar, farfree;  // farat; NULL until needed
  SimMbar *mbar;           // mbar.c; NULL until needed
  uint16_t *mbarat;        // which is at an address / 8, from 1 on
  uint32_t *mbarclocks, *mbarwaits, *came;
  struct SimUse *uses;
  struct SimPassed *passed;
  int nmbar;
  uint64_t vain;           // try_waits in vain, since something happened
  SimTeam *team;           // of each warpgroup; NULL: they multiply nothing
  SimAsync **async;        // in flight; `landing` of them end at an mbarrier
  size_t nasync, maxasync, landing;
  struct SimMaps *maps;    // maps.c: tensor maps that it made
  SimPast open, done;      // of the cluster's barrier
  uint32_t met;            // times that all came
  bool meets;              // somebody did
  struct SimTape *tape;    // what it does is written there, or NULL
  SimReach *reach;    // (CTA, warp): its last access there
  uint32_t *row, *place, *location, nplace, maxplace;  // order.c, if needed
  SimPattern *pattern;     // two per statistics record: shared, global
  struct SimRequests *requests;  // where they are recorded, or NULL
  SimOut *out;
  float *tile;             // scratch of MMA operands: 4 of SIM_ROOM bytes
  void *lock;              // pthread_mutex_t of global atomics
  const bool *quit;        // set by others: give up
  void (*tick)(void *ud), *tick_ud;  // called now and then, or NULL
};

#endif
