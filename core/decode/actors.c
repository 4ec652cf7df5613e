// Maps actors (the entries of a vector clock) to agents (hardware such as TMA).
#include "decode/actors.h"

Agent actors_agent(const SimActors *a, int actor) {
  static const Agent agents[] = {
#define AC(id, agent, number) AGENT_##agent,
    SIM_ACTORS(AC)
#undef AC
  };
  int kind = 0;
  while (kind < ACTOR_COUNT - 1 && actor >= a->first[kind + 1]) kind++;
  return agents[kind];
}
// SPDX-License-Identifier: MIT
