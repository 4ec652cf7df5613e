// Executes the intrinsics of ir/intrin.h in 32 lanes.
#include "base/approx.h"
#include "decode/fits.h"
#include "ir/eval.h"
#include "ir/intrin.h"
#include "sim/divergence.h"
#include "sim/regs.h"

static bool wide_operand(IntrinId id, int k) {
  return k < intrin_arity(id) && sim_wide(intrin_operand(id, k));
}

// Reads operand k of all lanes.
static void operands(SimWarp *w, const SimIns *i, IntrinId id, int k,
                     uint64_t x[LANES]) {
  uint32_t slot = k == 0 ? i->a : k == 1 ? i->b : i->c;
  bool wide = wide_operand(id, k);
  for (int l = 0; l < LANES; l++) x[l] = slot ? lane_bits(w, slot, wide, l) : 0;
}

static void fill(SimWarp *w, const SimIns *i, uint64_t u) {
  int n = i->uniform && !i->spread ? 1 : LANES;
  for (int l = 0; l < n; l++) set_lane(w, i->d, i->wide, l, u);
}

// ---- one lane at a time ----

static void by_lane(SimWarp *w, const SimIns *i, IntrinId id, int64_t imm) {
  int n = i->uniform ? 1 : LANES;
  if (id == IN_EX2FTZ && !i->uniform) {  // softmax spends its time here
    approx_ex2_all(u32_at(w, i->a), LANES, u32_at(w, i->d));
    return;
  }
  const uint32_t slot[3] = {i->a, i->b, i->c};
  bool wide[3];
  uint64_t r = 0, x[3] = {0, 0, 0};
  for (int k = 0; k < 3; k++) wide[k] = wide_operand(id, k);
  for (int l = 0; l < n; l++) {
    for (int k = 0; k < 3; k++) {
      if (slot[k]) x[k] = lane_bits(w, slot[k], wide[k], l);
    }
    r = intrin_eval(id, imm, x);
    if (!i->uniform) set_lane(w, i->d, i->wide, l, r);
  }
  if (i->uniform) fill(w, i, r);
}

static void lane_masks(SimWarp *w, const SimIns *i, IntrinId id) {
  for (int l = 0; l < LANES; l++) {
    uint32_t eq = 1u << l, lt = eq - 1, r = eq;
    switch ((int)id) {
      case IN_LMLE: r = lt | eq; break;
      case IN_LMLT: r = lt; break;
      case IN_LMGE: r = ~lt; break;
      case IN_LMGT: r = ~(lt | eq); break;
      default: break;
    }
    set_lane(w, i->d, false, l, r);
  }
}

// ---- properties of the device ----

// Returns a property of the simulated GPU, such as a clock. The clock of a warp
// is the number of instructions that the warp has executed.
static uint64_t machine(const SimWarp *w, IntrinId id) {
  const SimProg *p = w->cluster->prog;
  // in bytes: unit in which shared memory is allocated, and its reserved part
  enum { UNIT = 128, RESERVED = 1024 };
  uint64_t smem = (uint64_t)p->fn->smem_bytes;
  uint64_t total = (smem + UNIT - 1) / UNIT * UNIT;
  switch ((int)id) {
    case IN_NSMID: return (uint64_t)fits_sms(p);
    case IN_NWARPID: return 64;
    case IN_GRIDID: return 1;
    case IN_DYNSMEM: return smem;
    case IN_TOTSMEM: return total;
    case IN_AGGSMEM: return total + RESERVED;
    case IN_WARPID: return (uint64_t)w->id;
    case IN_ACTIVE: return w->active;
    case IN_CLOCK: case IN_CLOCK64: case IN_TIMER: case IN_TIMERLO:
      return w->count;
    default: return 0;
  }
}

// ---- collective operations ----

// The following functions execute an intrinsic for the active lanes, w->active.

static void tell(SimWarp *w, const SimIns *i, uint64_t u) {
  for (uint32_t m = w->active; m; m &= m - 1)
    set_lane(w, i->d, i->wide, __builtin_ctz(m), u);
}

static void match(SimWarp *w, const SimIns *i, IntrinId id) {
  uint64_t x[LANES];
  uint32_t same[LANES], one = 0;
  operands(w, i, id, 0, x);
  for (int l = 0; l < LANES; l++) {
    same[l] = 0;
    for (int k = 0; k < LANES; k++)
      same[l] |= (uint32_t)(x[k] == x[l]) << k;
    same[l] &= w->active;
    if (w->active >> l & 1) one = same[l];
  }
  bool all = id == IN_MATCHALL || id == IN_MATCHALL64;
  for (uint32_t m = w->active; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    set_lane(w, i->d, false, l, !all ? same[l]
                                : one == w->active ? one : 0);
  }
}

static void vote(SimWarp *w, const SimIns *i, IntrinId id) {
  uint32_t m = 0, r = 0;
  uint64_t x[LANES];
  operands(w, i, id, 0, x);
  for (int l = 0; l < LANES; l++) m |= (uint32_t)(x[l] != 0) << l;
  m &= w->active;
  switch ((int)id) {
    case IN_VOTEANY: r = m != 0; break;
    case IN_VOTEALL: r = m == w->active; break;
    case IN_VOTEUNI: r = m == 0 || m == w->active; break;
    default: r = m; break;
  }
  tell(w, i, r);
}

// Executes elect. PTX does not specify which active lane is elected. Elects a
// lane in the middle or, if the immediate requests it, the lowest active lane.
static void elect(SimWarp *w, const SimIns *i) {
  uint32_t left = w->active;
  int skip = intrin_imm(i->imm) ? 0 : __builtin_popcount(left) / 2;
  for (; skip > 0; skip--) left &= left - 1;
  int one = __builtin_ctz(left);
  for (uint32_t m = w->active; m; m &= m - 1) {
    int l = __builtin_ctz(m);
    set_lane(w, i->d, i->wide, l, l == one);
  }
}

static Op reduction(IntrinId id) {
  switch ((int)id) {
    case IN_REDMIN: case IN_REDMINU: return OP_MIN;
    case IN_REDMAX: case IN_REDMAXU: return OP_MAX;
    case IN_REDAND: return OP_AND;
    case IN_REDOR: return OP_OR;
    case IN_REDXOR: return OP_XOR;
    default: return OP_ADD;
  }
}

static void reduce(SimWarp *w, const SimIns *i, IntrinId id) {
  uint32_t left = w->active;
  uint64_t x[LANES];
  operands(w, i, id, 0, x);
  DType t = intrin_operand(id, 0);
  uint64_t r = x[__builtin_ctz(left)];
  for (left &= left - 1; left; left &= left - 1)
    r = eval_scalar(reduction(id), t, r, x[__builtin_ctz(left)], 0);
  tell(w, i, r);
}

// Executes a shuffle. The caller has already reported inactive lanes of the
// mask, and active lanes outside the mask.
static void shuffle(SimWarp *w, const SimIns *i, IntrinId id) {
  uint64_t x[LANES], by[LANES];
  operands(w, i, id, 0, x);
  operands(w, i, id, 1, by);
  uint32_t part = u32_at(w, i->mask)[__builtin_ctz(w->active)] & w->valid;
  int from[LANES];
  for (int l = 0; l < LANES; l++) {
    int b = (int)(by[l] & 31);
    intrin_source(intrin_shuffle(id), intrin_imm(i->imm), l, b, &from[l]);
    if (!(w->active & part & 1u << l) || part >> from[l] & 1) continue;
    SimFault *f = simreport_fault(w, SIM_SHUFFLE, l, i->src, 0, -1, 0);
    if (f) f->lane = from[l];
  }
  w->cluster->hooks->value.shuffled(w, i, from);
  for (uint32_t m = w->active; m; m &= m - 1)
    set_lane(w, i->d, i->wide, __builtin_ctz(m), x[from[__builtin_ctz(m)]]);
}

static void together(SimWarp *w, const SimIns *i) {
  IntrinId id = intrin_id(i->imm);
  switch ((int)id) {
    case IN_MATCHANY: case IN_MATCHANY64: case IN_MATCHALL:
    case IN_MATCHALL64:
      match(w, i, id);
      return;
    case IN_VOTEANY: case IN_VOTEALL: case IN_VOTEUNI: case IN_VOTEBALLOT:
      vote(w, i, id);
      return;
    case IN_ELECT: elect(w, i); return;
    case IN_REDADD: case IN_REDMIN: case IN_REDMINU: case IN_REDMAX:
    case IN_REDMAXU: case IN_REDAND: case IN_REDOR: case IN_REDXOR:
      reduce(w, i, id);
      return;
    default: shuffle(w, i, id); return;
  }
}

// ---- dispatch ----

void simintrin_run(SimWarp *w, const SimIns *i) {
  IntrinId id = intrin_id(i->imm);
  int64_t imm = intrin_imm(i->imm);
  switch ((IntrinClass)intrin_row(id)->class) {
    case INTRIN_P: by_lane(w, i, id, imm); break;
    case INTRIN_L: lane_masks(w, i, id); break;
    case INTRIN_K: case INTRIN_A: fill(w, i, machine(w, id)); break;
    case INTRIN_M: divergence_groups(w, i, together); break;
  }
}
// SPDX-License-Identifier: MIT
