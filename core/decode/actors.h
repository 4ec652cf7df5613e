// Actors: the warps, agents and mbarriers of a cluster. An agent is hardware
// that accesses memory for a thread, such as TMA. Vector clocks have an epoch
// for each actor.
#ifndef CUTE_DECODE_ACTORS_H
#define CUTE_DECODE_ACTORS_H

#include "ir/rows.h"

// AC(ID, AGENT, NUMBER): kinds of actors, in the order of actor numbers. AGENT
// is the agent whose operations the actor's epochs count, or BULKLOAD if they
// count operations of several agents. NUMBER is the number of such actors in a
// cluster, a variable of count_actors (decode.c).
// - WARP: the threads of a warp.
// - BULK: one for each warp. It stands for the warp's bulk copies that complete
//   as bulk groups.
// - TEAM: one for each warpgroup. It stands for the wgmmas of the warpgroup.
// - TCMMA, TCLD, TCST: three for each warp. They stand for its tcgen05
//   operations in the tensor cores, its loads from tensor memory, and its
//   stores to tensor memory. If a thread has acquired epoch n of such an actor,
//   the actor's first n operations have completed for the thread.
// - BEFORE: the preceding launch, if it may still run.
// - TURN, MBAR: each mbarrier has two actors (mbar.h). Each warp has a TURN
//   actor, too. Those of the warps precede those of the mbarriers.
// - CPASYNC: one for each warp. It stands for reads by the warp's cp.asyncs in
//   flight. These reads have no epoch, because no access is ordered after them.
#define SIM_ACTORS(AC) \
  AC(WARP, NONE, warps) AC(BULK, BULKSTORE, bulk) AC(TEAM, WGMMA, teams) \
  AC(TCMMA, TCMMA, tensor) AC(TCLD, TCLD, tensor) AC(TCST, TCST, tensor) \
  AC(BEFORE, BULKLOAD, before) AC(TURN, BULKLOAD, turns) \
  AC(MBAR, BULKLOAD, mbars) AC(CPASYNC, CPASYNC, warps)
typedef enum SimActor {
#define AC(id, ...) ACTOR_##id,
  SIM_ACTORS(AC)
#undef AC
  ACTOR_COUNT
} SimActor;
CONSECUTIVE(3, ACTOR_TCMMA, ACTOR_TCST);

// The numbers of the actors of a cluster. An actor's number is its index in a
// vector clock. Actors of kind k have the numbers first[k] to first[k + 1] - 1.
typedef struct SimActors { int first[ACTOR_COUNT + 1]; } SimActors;

// Returns the number of the first actor of a kind.
static inline int actors_first(const SimActors *a, SimActor kind) {
  return a->first[kind];
}
// Returns how many actors of a kind there are.
static inline int actors_of(const SimActors *a, SimActor kind) {
  return a->first[kind + 1] - a->first[kind];
}
// Returns how many actors have epochs: the size of a vector clock.
static inline int actors_clocked(const SimActors *a) {
  return a->first[ACTOR_CPASYNC];
}
static inline bool actors_is(const SimActors *a, SimActor kind, int actor) {
  return actor >= a->first[kind] && actor < a->first[kind + 1];
}
// Returns the number of the actor of a kind that belongs to a warp.
static inline int actors_own(const SimActors *a, SimActor kind, int warp) {
  return a->first[kind] + warp;
}
// Returns the agent whose operations an actor's epochs count (AGENT in
// SIM_ACTORS), or AGENT_NONE for warps.
Agent actors_agent(const SimActors *a, int actor);

#endif
// SPDX-License-Identifier: MIT
