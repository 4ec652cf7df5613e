// Hooks: functions that the simulated machine calls at events of a launch. The
// machine does not name the functions that check a program. Instead, the checks
// (core/watch/) fill in SimProg.hooks. Their results never change what the
// machine computes.
#ifndef CUTE_SIMHOOKS_H
#define CUTE_SIMHOOKS_H

#include "sim/state.h"

typedef struct SimTensorAccess SimTensorAccess;  // tcgen05.h

// A read from shared memory by an asynchronous operation of one warp. If an
// operation reads the same bytes for another warp, the checks need not examine
// every byte again. The bytes are between the addresses first and end. `by` has
// the last n writes to them, with the fields of a granule (shadow.h). by.agent:
// the write was made through the async proxy. n is LENT_UNKNOWN if there are
// more than LENT_MOST writes, or if bytes are undefined. serial: number of
// writes to shared memory before the read.
enum { LENT_MOST = 4, LENT_UNKNOWN };
typedef struct SimLent {
  uint64_t serial;
  uint32_t first, end;
  int n;
  struct { uint32_t clk, lanes; uint16_t warp; bool agent; } by[LENT_MOST];
} SimLent;

// An access by lanes of a warp to elements of memory object m.
typedef struct Access {
  SimWarp *w;
  const SimIns *i;
  const SimMem *m;
  const int64_t *off;     // for each lane: offset in elements
  int64_t at[LANES];      // for each lane: byte offset in the object
  // global memory: byte offset of the granule (shadow.h) that is being checked
  int64_t piece;
  // memory of other CTAs: for each lane, where the accessed CTA's shared memory
  // begins in the cluster's shared memory
  uint32_t home[LANES];
  int bytes;
  // alignment in bytes that the access requires; 0: `bytes`
  int64_t unit;
  bool write;
  bool agent;             // whether the access uses the async proxy
  // whether the access belongs to a cp.async, which may execute it later
  bool flying;
  // whether the access is an operation on an mbarrier; threads that wait at the
  // mbarrier acquire such accesses
  bool barrier;
  // where agent_reads stores a description of the read; NULL: nowhere
  SimLent *lent;
  // mbarrier that signals that the access is complete; NULL: none
  const struct SimMbar *ends;
  // Writes: lane l writes the bytes at data + l * stride; NULL: the bytes are
  // unknown. same: the lanes whose bytes shared memory already contains.
  const uint8_t *data;
  int stride;
  uint32_t same;
} Access;

// Returns the address in the cluster's shared memory that lane l accesses.
static inline uint32_t simmem_address(const Access *x, int l) {
  uint32_t home = x->m->rank ? x->home[l] : x->w->home;
  return home + x->m->base + (uint32_t)x->at[l];
}

// Returns the host address of the first byte of m for the warp w. Lane l of an
// access x accesses the byte at simmem_first(w, m) + simmem_from(x, l).
static inline uint8_t *simmem_first(const SimWarp *w, const SimMem *m) {
  switch (m->memory) {
    case MEMORY_GLOBAL: return m->p;
    case MEMORY_SHARED: return w->cluster->smem + w->home + m->base;
    case MEMORY_REGISTERS: case MEMORY_TENSOR: case MEMORY_NONE: break;
  }
  return NULL;
}
static inline int64_t simmem_from(const Access *x, int l) {
  return x->m->rank ? x->at[l] + x->home[l] - x->w->home : x->at[l];
}

// Accesses that the releasing lanes add to a SimPast. ALL: their accesses, and
// all accesses that happen before them. AGENTS: the epochs of all actors
// (vector-clock entries) except warps and mbarriers. FENCED: accesses before
// the lanes' last fence with cluster or wider scope.
typedef enum SimGive { GIVE_ALL, GIVE_AGENTS, GIVE_FENCED } SimGive;

// A product d (m,n) = a (m,k) * b (n,k) + c that tensor cores computed.
typedef struct SimTile { const float *a, *b, *c, *d; int m, n, k; } SimTile;

typedef void SimFound(void *ud, const SimFault *f);

// Hooks for a whole launch.
typedef struct SimLaunchHooks {
  // decoded prepares a program's instructions. start allocates records in
  // cx->scratch; all: all clusters run; whole: findings about the launch as a
  // whole are also wanted. find calls `found` for the faults that only the
  // whole launch shows. unwritten returns the number of unwritten elements of
  // outputs, and calls `found`, unless NULL, for each such output. parts
  // describes memory that the launch did not access. merge adds a cluster's
  // NaNs and infinities to those of the launch. origin describes the first NaN
  // or infinity that may have reached an output. inexact describes the first
  // result that its type could not represent. arrange sorts n faults, each
  // cause before its consequences, and returns how many faults it keeps. empty
  // reports whether a launch without blocks has arguments with elements. stop
  // frees the records.
  void (*decoded)(Ctx *cx, SimProg *p);
  void (*start)(Ctx *cx, SimProg *p, bool all, bool whole);
  void (*find)(const SimProg *p, SimFound *found, void *ud);
  int64_t (*unwritten)(const SimProg *p, SimFound *found, void *ud);
  void (*parts)(Ctx *cx, SimProg *p, SimParts *out);
  void (*merge)(SimOrigins *all, const SimOrigins *more);
  void (*origin)(const SimProg *p, const SimOrigins *all, SimNonfinite *out);
  void (*inexact)(const SimOrigins *all, SimNonfinite *out);
  uint32_t (*arrange)(const SimProg *p, SimFault *f, uint32_t n);
  bool (*empty)(Ctx *cx, const SimProg *p);
  void (*stop)(SimProg *p);
} SimLaunchHooks;

// Hooks of values and registers.
typedef struct SimValueHooks {
  // The lanes of mask read unit number `unit` of a register object.
  void (*registers)(SimWarp *w, const SimIns *i, const SimMem *m, int64_t unit,
                    uint32_t mask);
  // loaded: i loaded a register. picked: i selected registers by an index; in
  // the lanes of `lack`, they are undefined. `at` is an undefined unit of the
  // lowest lane in `lack`. shuffled: lane l got the value of lane from[l].
  void (*loaded)(SimWarp *w, const SimIns *i, const SimSide *s);
  void (*picked)(SimWarp *w, const SimIns *i, const SimMem *m, int64_t at,
                 uint32_t lack);
  void (*shuffled)(SimWarp *w, const SimIns *i, const int *from);
  // Returns the lanes in which the value in a slot is undefined.
  uint32_t (*undefined)(SimWarp *w, uint32_t slot);
  // Called around each instruction of a warp that has undefined values.
  void (*before_value)(SimWarp *w, const SimIns *i);
  void (*after_value)(SimWarp *w, const SimIns *i);
  // i computed a quotient, a value that may overflow, or a value that depends
  // on a value that may overflow.
  void (*computed)(SimWarp *w, const SimIns *i);
  // Returns, and reports, the lanes of mask whose addresses in x overflowed.
  uint32_t (*wrapped)(const Access *x, uint32_t mask);
  // w executed i, an assertion.
  void (*asserted)(SimWarp *w, const SimIns *i);
  // nonfinite: i computed results that are watched by the rule SimIns.watch
  // (finite.h). fma: lane l computed a * b + c = result in type t; all four are
  // given as bits. tile: an MMA by lane group g computed a NaN or an infinity.
  void (*nonfinite)(SimWarp *w, const SimIns *i);
  void (*fma)(SimWarp *w, const SimIns *i, int l, DType t, uint64_t a,
              uint64_t b, uint64_t c, uint64_t result);
  void (*tile)(SimWarp *w, const SimIns *i, int g, const SimTile *t);
} SimValueHooks;

typedef struct SimHooks {
  SimLaunchHooks launch;
  SimValueHooks value;

  // ---- a cluster ----
  // make allocates the checks' records of a cluster, and returns false if
  // memory is exhausted. reset prepares the records for a run. end is called
  // after the run. free frees the records.
  bool (*make)(SimCluster *c);
  void (*reset)(SimCluster *c);
  void (*end)(SimCluster *c);
  void (*free)(SimCluster *c);

  // ---- warps ----
  // Called only in a launch with a debugger: w executes i next. Returns false
  // if w must not execute i.
  bool (*step)(SimWarp *w, const SimIns *i);
  // Returns whether a debugger ended the launch.
  bool (*ended)(const SimProg *p);
  // w polled memory at instruction i, and memory had not changed.
  void (*polled)(SimWarp *w, const SimIns *i);
  // Lane l accesses shared memory of CTA `rank`. `keep` is true if the CTA must
  // not exit before the access.
  void (*reach)(SimWarp *w, const SimIns *i, int l, int rank, bool keep);
  // Called after all warps exited.
  void (*exited)(SimCluster *c);
  // Called when no warp can run.
  void (*deadlock)(SimCluster *c);
  // Returns whether all runnable warps repeat polls that cannot succeed. Sets
  // *global to whether one of them polls global memory.
  bool (*stuck)(const SimCluster *c, bool *global);

  // ---- memory ----
  // The lanes of mask access memory. Called once for all lanes, before bytes
  // are moved.
  void (*access)(Access *x, uint32_t mask);
  // The lanes of mask executed an atomic, and the lanes of `stored` stored a
  // value. Called after `access`.
  void (*atomic)(Access *x, uint32_t mask, uint32_t stored);
  // An asynchronous operation of lane l will read or write memory: x->bytes
  // bytes at addr of shared memory, or at x->at[l] of global memory. The read
  // is complete for threads that have acquired `epoch` of `actor` (a
  // vector-clock entry). actor -1: an operation already reads these bytes for
  // another lane.
  void (*agent_reads)(Access *x, int l, uint32_t addr, int actor,
                      uint32_t epoch);
  // Reports whether an asynchronous operation of lane l may read the bytes in
  // *t, which an operation already read for another warp. If not, agent_reads
  // must check the bytes.
  bool (*agent_rereads)(Access *x, int l, const SimLent *t);
  void (*agent_writes)(Access *x, int l, uint32_t addr);
  // A write by an asynchronous operation or a cp.async at source line src, to
  // `bytes` bytes at addr of shared memory, became visible. It is recorded as a
  // write by `lanes` of `actor` in epoch clk. proxy: whether it used the async
  // proxy.
  void (*landed)(SimCluster *c, uint32_t addr, uint32_t bytes, int actor,
                 uint32_t lanes, uint32_t clk, uint32_t src, bool proxy);
  // An asynchronous operation of lane l completed a write to global memory, or
  // a cp.async of lane l completed a read. From now on, the access is recorded
  // as an access by `actor` (a vector-clock entry) in epoch clk.
  void (*settled)(Access *x, int l, int actor, uint32_t clk);

  // A warp accesses tensor memory. Called before bytes are moved.
  void (*tensor)(const SimTensorAccess *x);
  // x, a load, reads columns that were never written, which f reports.
  void (*tensor_unwritten)(SimFault *f, const SimTensorAccess *x);
  // w executed a tcgen05.fence.
  void (*tensor_fence)(SimWarp *w, const SimIns *i);

  // wanted: whether a check needs `came`. came: `from` is the origin of 16
  // bytes that a copy wrote at addr of shared memory. copied: tcgen05.cp copied
  // rows. scaled: some rows of a block-scaled MMA were computed.
  bool (*wanted)(const SimCluster *c);
  void (*came)(SimCluster *c, uint32_t addr, const SimOrigin16 *from);
  void (*copied)(SimCluster *c, const SimTensorIns *x, uint64_t desc, int cta,
                 int column);
  void (*scaled)(SimWarp *w, const SimIns *i, const SimScaledRows *x);

  // ---- happens-before order ----
  // All lanes of mask synchronize with each other.
  void (*meet)(SimWarp *w, uint32_t mask);
  // The lanes of mask release to `to`, or acquire `from`.
  void (*give)(SimWarp *w, uint32_t mask, SimPast *to, SimGive what);
  void (*take)(SimWarp *w, uint32_t mask, const SimPast *from);
  // The lanes of mask release only the epochs of turn actors, which order
  // phases but no memory accesses (mbar.h).
  void (*give_turns)(SimWarp *w, uint32_t mask, uint32_t *to);
  void (*forget)(const SimCluster *c, SimPast *p);
  // The lanes of mask acquire accesses up to epoch `epoch` of `actor`, a
  // vector-clock entry that is not a warp.
  void (*learn)(SimWarp *w, uint32_t mask, int actor, uint32_t epoch);
  void (*fence)(SimWarp *w, FenceKind kind);
  // Warp w executes instruction i, which waits for groups of asynchronous
  // operations, such as cp.async groups.
  void (*waits)(SimWarp *w, const SimIns *i);

  // ---- questions that the machine asks the checks ----
  // An actor is an entry of the vector clocks (decode/actors.h). "Before lane
  // l" means: before the current instruction of lane l of w.
  // - before: whether accesses by `lanes` of actor u in epoch clk happen before
  //   lane l.
  // - before_some: whether these accesses happen before some lane of w.
  // - runs: whether the start of some thread of CTA `rank` is before lane l.
  // - knows: like `before`, for accesses by a thread of cluster `unit`.
  // - holds: whether `past` covers epoch clk of an actor that is not a warp.
  bool (*before)(SimWarp *w, int l, int u, uint32_t lanes, uint32_t clk);
  bool (*before_some)(SimWarp *w, int u, uint32_t lanes, uint32_t clk);
  bool (*runs)(SimWarp *w, int l, int rank);
  bool (*knows)(SimWarp *w, int l, uint32_t unit, int warp, int lane,
                uint32_t clk);
  bool (*holds)(const SimProg *p, const SimPast *past, int actor, uint32_t clk);
} SimHooks;

#endif
// SPDX-License-Identifier: MIT
