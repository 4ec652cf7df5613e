// Clusters that hand things to one another (relay.c).
//
// Where what a cluster computes may depend on others of the launch (it reads
// global memory with an order, or an atomic gives it what it found), all of
// them run on one thread of the host, by turns that the seed chooses: what they
// compute is the same however many threads there are.
#ifndef CUTE_SIMRELAY_H
#define CUTE_SIMRELAY_H

#include "sim/inside.h"

struct Access;
void simrelay_start(Ctx *cx, SimProg *p);  // makes p->relay
void simrelay_free(SimProg *p);

// The lanes of mask read x->bytes bytes at x->at[lane], or write what is at
// data + lane * stride (NULL: an atomic).
void simrelay_access(struct Access *x, uint32_t mask, const uint8_t *data,
                     int stride);
// Lane l read, or writes, byte `at` of m with an order. keep: what this write
// replaces was released by its thread, or read by it.
void simrelay_read(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                   int64_t at);
void simrelay_write(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                    int64_t at, bool keep);
// The active lanes fence, for the GPU; for the agents of global memory.
void simrelay_fence(SimWarp *w);
void simrelay_proxy(SimWarp *w);
// Does lane l know that epoch of a thread of another cluster?
bool simrelay_knows(SimWarp *w, int l, uint32_t unit, int warp, int lane,
                    uint32_t clk);
struct SimMaps **simrelay_maps(const SimProg *p);
// Line and block of the last write there; false: none is known.
bool simrelay_writer(const SimProg *p, const SimMem *m, int64_t at,
                     uint32_t *src, int32_t block[3]);

// The simulator's machine: SMs, and how many clusters they hold at once.
int simrelay_sms(const SimProg *p);
uint64_t simrelay_resident(const SimProg *p);

#endif
