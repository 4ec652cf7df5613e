// The operations of ops.h as a table.
#include "ir/target.h"

#define EF_NONE 0
#define EF_KNOWN (EF_PURE | EF_FIXED)
#define EF_MEET (EF_MEMORY | EF_ORDERED)
#define EF_ASYNC(by) (EF_MEMORY | EF_ORDERED | EF_LATER), .agent = AGENT_##by
#define EF_ORDER EF_ORDERED
#define EF_ASK EF_ORDERED
#define EF_ACT (EF_ORDERED | EF_VISIBLE)
#define EF_OPEN (EF_ORDERED | EF_OPENS)
#define EF_TURN (EF_ORDERED | EF_CLOSES | EF_OPENS)
#define EF_CLOSE (EF_ORDERED | EF_CLOSES)
#define EF_LEAVE (EF_ORDERED | EF_LEAVES)

const OpRow op_rows[OP_COUNT] = {
#define OP(id, text, sig, immediate, bits, demands, does, together, how, \
           feature, kind, step) \
  [OP_##id] = {.name = text, .operands = sig, .imm = IMM_##immediate, \
   .flags = FLAGS_##bits, .rule = RULE_##demands, .effect = EF_##does, \
   .who = WHO_##together, .fidelity = FI_##how, .need = FT_##feature, \
   .class = CLASS_##kind, .point = POINT_##step},
#include "ir/ops.h"
};

static const struct { const char *name; bool sync; } roles[] = {
#define RO(id, name, sync, meaning) {name, sync},
  ROLES(RO)
#undef RO
};

const char *role_name(Role r) { return roles[r].name; }

bool role_synchronizes(Role r) { return roles[r].sync; }

const AgentRow agent_rows[AGENT_COUNT] = {
#define AG(id, text, async, op) {text, async, OP_##op},
  AGENTS(AG)
#undef AG
};

Agent agent_awaited(Op op) {
  int k = AGENT_COUNT - 1;
  while (k && agent_rows[k].done != op) k--;
  return (Agent)k;
}

const char *who_name(Who who) {
  static const char *const t[] = {"", "lane", "mask", "warp", "full", "row",
                                  "text"};
  return t[who];
}
// SPDX-License-Identifier: MIT
