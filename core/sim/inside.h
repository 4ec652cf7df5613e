// Inside the simulator: a decoded program (prog.h) and the state of a cluster
// (state.h), and what the files do with them.
//
//   decode.c    Fn -> SimProg: uniform values, slots, jump targets
//   tables.c    tables of MMA and matrix-copy atoms from their TV layouts
//   alu.c       arithmetic, one lane or 32
//   mem.c       shared and global memory, cp.async
//   shadow.c    who wrote and read what a cluster shares (shadow.h)
//   mbar.c      mbarriers
//   async.c     what other agents do (async.h)
//   access.c    passes and sectors; requests.c: requests recorded
//   send.c      st.async
//   bulk.c      bulk copies, through tensor maps and without
//   order.c     what is ordered before what inside a cluster
//   waits.c     waits for groups that did not do
//   spin.c      warps that ask memory in vain
//   lanes.c     lanes of a warp that wait for one another
//   roles.c     which threads a line is for, and what a warp may come to
//   path.c      which access of a race comes first in the program
//   stuck.c     deadlocks; lead.c: which faults follow from which
//   blocks.c    races between CTAs in global memory
//   relay.c     the same, and what they hand over, where CTAs take turns
//   exec.c      the interpreter: one warp until it must wait
//   intrin.c    rows of ir/intrin.h
//   matrix.c    tensor cores and matrix copies
//   wgmma.c     those of a warpgroup
//   members.c   elements of a layout; left.c: outputs that are unwritten
//   claim.c     what a script said of values, traced layouts; wrap.c: products
//               that wrap
//   taint.c     uninitialised registers
//   cluster.c   warps of a cluster: scheduling, barriers
//   turns.c     the same, decided; causes.c what else could be (turns.h)
//   tape.c      what a cluster did; clock.c how long that takes an SM,
//   work.c      instruction by instruction; price.c: arithmetic
//   dump.c      the program as text; report.c: reports in words
//   sim.c        clusters over the host's threads
#ifndef CUTE_SIMINSIDE_H
#define CUTE_SIMINSIDE_H

#include "sim/cluster.h"

// ---- alu.c ----
uint64_t simalu_one(const SimIns *i, uint64_t a, uint64_t b, uint64_t c);
void simalu_lanes(const SimIns *i, char *v);  // all 32

// ---- mem.c ----
struct SimMatrix;
struct Access;
// The lanes of mask whose access is in bounds and aligned; sets x->at, and
// x->home where the object is another CTA's.
uint32_t simmem_check(struct Access *x, uint32_t mask);
// Lane l, or an agent for it, reads or writes global memory: is the launch in
// front done with it?
void simmem_depends(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                    int64_t element, bool write);
typedef uint8_t SimLaneBuf[LANES][32];
// Loads `bytes` of each lane in mask at off (elements of mem) into buf; gives
// the lanes that got data. Faults are reported, statistics counted.
uint32_t simmem_load(SimWarp *w, const SimIns *i, const SimMem *m,
                     uint32_t mask, const int64_t *off, int bytes,
                     SimLaneBuf buf);
void simmem_store(SimWarp *w, const SimIns *i, const SimMem *m,
                  uint32_t mask, const int64_t *off, int bytes,
                  SimLaneBuf buf);
// The same for elements below a byte, in the low bits of a word a lane.
void simmem_load_bits(SimWarp *w, const SimIns *i, const SimMem *m,
                      uint32_t mask, const int64_t *off, uint32_t *out);
void simmem_store_bits(SimWarp *w, const SimIns *i, const SimMem *m,
                       uint32_t mask, const int64_t *off,
                       const uint32_t *value);
void simmem_atomic(SimWarp *w, const SimIns *i);
// The bits that active lanes of a load or an atomic find in memory, and the
// places of a lane, as simcauses_access names them.
typedef struct SimAsk {
  uint64_t found[LANES], key;  // places: n from `key` on
  int n, size;             // bytes of a place
  bool one;                // all lanes have the same places
} SimAsk;
// Looks without executing i; false: i is something else, or out of bounds.
bool simmem_ask(SimWarp *w, const SimIns *i, SimAsk *a);
// Reports whether i leaves memory unchanged if its lanes find those bits.
bool simmem_stays(SimWarp *w, const SimIns *i, const uint64_t *found);
// ldmatrix / stmatrix rows of 16 bytes, one a lane.
void simmem_rows(SimWarp *w, const SimIns *i, const struct SimMatrix *x,
                 const int64_t *off, SimLaneBuf buf);
void simmem_cpasync(SimWarp *w, const SimIns *i);
void simmem_commit(SimWarp *w);
// Is a cp.async of w to granule g in no group yet?
bool simmem_open(const SimWarp *w, uint32_t g);
// The lane and the group of one that was committed; false: there is none.
bool simmem_group(const SimWarp *w, uint32_t g, int *lane, uint32_t *group);
// What lanes of mask copied in the first `upto` instructions is there; an
// actor says so, in that epoch.
void simmem_land(SimWarp *w, uint32_t mask, uint64_t upto, int actor,
                 uint32_t epoch);
void simmem_wait(SimWarp *w, uint32_t pending);
void simmem_reset(SimCluster *c);       // for the next cluster
void simmem_offsets(const SimWarp *w, const SimSide *s, int64_t *off);

// ---- send.c ----
void simsend_run(SimWarp *w, const SimIns *i);

// ---- order.c ----
// The lanes of mask meet: what any of them did is ordered before all of them.
void simorder_meet(SimWarp *w, uint32_t mask);
// The lanes of mask leave what is ordered before them, and what they did, for
// others to take.
void simorder_give(SimWarp *w, uint32_t mask, SimPast *to);
void simorder_take(SimWarp *w, uint32_t mask, const SimPast *from);
void simorder_forget(const SimCluster *c, SimPast *p);
// Is that epoch of an actor that is no warp in what was left there?
bool simorder_holds(const SimProg *p, const SimPast *past, int actor,
                    uint32_t clk);
// Is what lanes of actor u did in epoch clk ordered before lane l?
// The agents' part of simorder_give, without what they wrote for threads; of
// that the turns (mbar.h); what lanes fenced for the cluster.
void simorder_give_agents(SimWarp *w, uint32_t mask, SimPast *to);
void simorder_give_turns(SimWarp *w, uint32_t mask, uint32_t *turns);
void simorder_give_fenced(SimWarp *w, uint32_t mask, SimPast *to);
// The lanes of mask know what an actor that is no warp did until that epoch.
void simorder_learn(SimWarp *w, uint32_t mask, int actor, uint32_t epoch);
bool simorder_before(SimWarp *w, int l, int u, uint32_t lanes, uint32_t clk);
// Lane l reads, or writes, with an order at granule g (NO_GRANULE: where nobody
// writes). keep: what this write replaces was released by its thread, or read
// by it.
void simorder_read(SimWarp *w, const SimIns *i, int l, int64_t g);
void simorder_write(SimWarp *w, const SimIns *i, int l, int64_t g, bool keep);
// What is ordered before lane l, and what a strong write of it releases: an
// epoch for each thread of the cluster, warp by warp, first; NULL: nothing, or
// out of memory.
const uint32_t *simorder_view(SimWarp *w, int l);
const uint32_t *simorder_released(SimWarp *w, const SimIns *i, int l);
void simorder_fence(SimWarp *w, int kind);
void simorder_reset(SimCluster *c);

// ---- dump.c ----
void simdump_prog(Ctx *cx, const SimProg *p, Buf *out);

// ---- exec.c ----
void simexec_warp(SimWarp *w);          // until it waits, yields or ends
// No lane is left where w is: on to where some are.
void simexec_find(SimWarp *w);

#endif
