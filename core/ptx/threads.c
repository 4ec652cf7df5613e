// threads.c: instructions in which threads cooperate: barriers, fences,
// shuffles, votes.
#include <string.h>

#include "ptx/inside.h"

// ---- barriers ----

// Returns the current barrier as an IR instruction of opcode `op`. The
// barrier's operands start at operand k.
static Ins barrier_of(PtxOp *o, Op op, uint32_t k, bool aligned) {
  Ins i = {.op = (uint8_t)op, .flags = aligned ? 0 : BRF_UNALIGNED};
  const PtxArg *id = op_arg(o, k);
  if (id->kind == PTX_A_INT) i.imm = id->value;
  else i.a[1] = op_operand(o, k, DT_I32);
  return i;
}

// Translates barrier.red to three barriers. Between them, every thread combines
// its predicate with a word of shared memory.
static void reduce(PtxOp *o, bool aligned) {
  PtxBuild *b = o->b;
  bool popc = op_has(o, "popc"), all = op_has(o, "and");
  if (!popc && !all) op_has(o, "or");
  op_type(o, 0);
  uint32_t last = o->i->args - 1;
  Ref one = number(o, DT_U32, 1), zero = number(o, DT_U32, 0);
  Ref p = op3(o, OP_SEL, op_pred(o, op_arg(o, last)), one, zero);
  Ins meet = barrier_of(o, OP_BAR, 1, aligned);
  if (last > 2) meet.a[0] = op_operand(o, 2, DT_I32);
  Ref off = number(o, DT_I32, b->reduced);
  Ref x[3] = {b->smem, off, p};
  Ins atomic = {.op = OP_ATOMIC, .type = DT_U32,
                .imm = popc ? AT_ADD : all ? AT_AND : AT_OR};
  Ins clear = {.op = OP_ST, .a = {b->smem, off, all ? one : zero}};
  clear.flags = (uint16_t)(SEM_RELAXED << hint_field(HINT_SEM)->shift |
                           SCOPE_CTA << hint_field(HINT_SCOPE)->shift);
  ir_emit(b->cx, b->fn, meet);
  ir_emit(b->cx, b->fn, clear);  // All threads store the same word.
  ir_emit(b->cx, b->fn, meet);
  operands_emit(b->cx, b->fn, atomic, x, 3, NULL, 0);
  ir_emit(b->cx, b->fn, meet);
  Ref r = ir_emit(b->cx, b->fn, (Ins){.op = OP_LD, .type = DT_U32,
                                      .a = {b->smem, off}});
  op_result(o, popc ? r : op2(o, OP_NE, r, zero));
}

void row_barrier(PtxOp *o, int k) {
  PtxBuild *b = o->b;
  op_has(o, "cta");
  bool aligned = op_has(o, "aligned") || k;
  if (op_has(o, "red")) {
    reduce(o, aligned);
    return;
  }
  bool arrive = op_has(o, "arrive");
  if (!arrive && !op_has(o, "sync"))
    op_reject(o, ".sync or .arrive is missing");
  Ins i = barrier_of(o, arrive ? OP_BARARRIVE : OP_BAR, 0, aligned);
  if (o->i->args > 1) i.a[0] = op_operand(o, 1, DT_I32);
  ir_emit(b->cx, b->fn, i);
}

void row_warp_barrier(PtxOp *o, int k) {
  (void)k;
  op_has(o, "sync");
  ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_SYNCWARP,
                                    .a = {op_operand(o, 0, DT_U32)}});
}

void row_fence(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  FenceKind f = FE_COUNT;
  op_has(o, "acq_rel");
  op_has(o, "sc");
  if (op_has(o, "cta")) f = FE_CTA;
  else if (op_has(o, "cluster")) f = FE_CLUSTER;
  else if (op_has(o, "gpu") || op_has(o, "gl")) f = FE_GPU;
  else if (op_has(o, "sys")) f = FE_SYS;
  if (f == FE_COUNT) op_reject(o, "a scope such as .cta is missing");
  ir_emit(b->cx, b->fn, (Ins){.op = OP_FENCE, .imm = f});
}

// ---- shuffles ----

// Orders memory among the lanes of a mask, as __syncwarp does. The PTX ISA does
// not guarantee this for shfl.sync and match.sync, but headers of the toolkit
// rely on it.
static void order_lanes(PtxOp *o, Ref mask) {
  ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_SYNCWARP, .a = {mask}});
}

// Returns the lane that a shuffle reads. Sets *inside to whether this lane is
// in the segment that operand c describes (PTX ISA, shfl.sync).
static Ref source_lane(PtxOp *o, IntrinId id, Ref by, Ref c, Ref *inside) {
  Ref all = number(o, DT_I32, 31);
  Ref seg = op2(o, OP_AND, op2(o, OP_SHR, c, number(o, DT_U32, 8)), all);
  Ref rest = op2(o, OP_XOR, seg, all);
  Ref lane = ir_sreg(o->b->cx, o->b->fn, SR_LANE);
  Ref least = op2(o, OP_AND, lane, seg);
  Ref most = op2(o, OP_OR, least, op2(o, OP_AND, c, rest));
  by = op2(o, OP_AND, by, all);
  if (id == IN_SHUFUP) {
    Ref from = op2(o, OP_SUB, lane, by);
    *inside = op2(o, OP_LE, most, from);
    return from;
  }
  Ref from = id == IN_SHUFDOWN ? op2(o, OP_ADD, lane, by)
             : id == IN_SHUFBFLY ? op2(o, OP_XOR, lane, by)
             : op2(o, OP_OR, least, op2(o, OP_AND, by, rest));
  *inside = op2(o, OP_LE, from, most);
  return from;
}

void row_shuffle(PtxOp *o, int k) {
  (void)k;
  op_has(o, "sync");
  op_type(o, 0);
  IntrinId id = op_has(o, "idx") ? IN_SHUFIDX : op_has(o, "up") ? IN_SHUFUP
                : op_has(o, "down") ? IN_SHUFDOWN : IN_SHUFBFLY;
  if (id == IN_SHUFBFLY) op_has(o, "bfly");
  const PtxArg *d = op_arg(o, 0), *p = NULL;
  if (d->kind == PTX_A_PAIR) {
    p = op_part(o, d, 1);
    d = op_part(o, d, 0);
  }
  Ref c = op_operand(o, 3, DT_I32), by = op_operand(o, 2, DT_I32), inside = 0;
  Ref mask = op_operand(o, 4, DT_U32), v = op_operand(o, 1, DT_U32), from = 0;
  // In the toolkit's sync.h, tiles of several warps synchronize by means of
  // this shuffle.
  if (ptx_through(o->b->m, o->i->loc, "/cooperative_groups/details/sync.h")) {
    order_lanes(o, mask);
  }
  int64_t fixed;
  bool is_fixed = ir_const(o->b->fn, c, &fixed);
  if (p || !is_fixed) from = source_lane(o, id, by, c, &inside);
  if (is_fixed) {
    v = op_intrin(o, id, fixed & SHUFFLE_BITS, v, by, mask);
  } else {
    // The segment is known only at run time, so the kernel computes the source
    // lane.
    Ref lane = ir_sreg(o->b->cx, o->b->fn, SR_LANE);
    from = op3(o, OP_SEL, inside, from, lane);
    v = op_intrin(o, IN_SHUFIDX, 31, v, from, mask);
  }
  if (p) op_set(o, p, inside);
  op_set(o, d, v);
}

// ---- votes ----

void row_vote(PtxOp *o, int k) {
  (void)k;
  op_has(o, "sync");
  op_type(o, 0);
  IntrinId id = op_has(o, "any") ? IN_VOTEANY : op_has(o, "all") ? IN_VOTEALL
                : op_has(o, "uni") ? IN_VOTEUNI : IN_VOTEBALLOT;
  if (id == IN_VOTEBALLOT) op_has(o, "ballot");
  Ref p = op_pred(o, op_arg(o, 1));
  op_result(o, op_intrin(o, id, 0, p, op_operand(o, 2, DT_U32), 0));
}

void row_match(PtxOp *o, int k) {
  (void)k;
  op_has(o, "sync");
  PtxType t = op_type(o, 0);
  bool all = op_has(o, "all"), wide = t.bits == 64;
  if (!all) op_has(o, "any");
  // The destructor of libcu++'s pipelines relies on an order of the lanes.
  if (ptx_through(o->b->m, o->i->loc, "/cuda/pipeline")) {
    order_lanes(o, op_operand(o, 2, DT_U32));
  }
  IntrinId id = all ? (wide ? IN_MATCHALL64 : IN_MATCHALL)
                    : (wide ? IN_MATCHANY64 : IN_MATCHANY);
  Ref v = op_intrin(o, id, 0, op_operand(o, 1, unsigned_of(t.bits)),
                    op_operand(o, 2, DT_U32), 0);
  const PtxArg *d = op_arg(o, 0);
  if (d->kind != PTX_A_PAIR) {
    op_set(o, d, v);
    return;
  }
  op_set(o, op_part(o, d, 1), op2(o, OP_NE, as(o, DT_U32, v),
                                  number(o, DT_U32, 0)));
  op_set(o, op_part(o, d, 0), v);
}

void row_redux(PtxOp *o, int k) {
  (void)k;
  op_has(o, "sync");
  if (dtype_is_float(o->elem[0])) op_reject(o, "floats need sm_100");
  bool sign = op_type(o, 0).kind == PTX_S;
  static const struct { const char *name; IntrinId u, s; } rows[] = {
    {"add", IN_REDADD, IN_REDADD}, {"min", IN_REDMINU, IN_REDMIN},
    {"max", IN_REDMAXU, IN_REDMAX}, {"and", IN_REDAND, IN_REDAND},
    {"or", IN_REDOR, IN_REDOR}, {"xor", IN_REDXOR, IN_REDXOR}};
  for (size_t q = 0; q < sizeof rows / sizeof *rows; q++) {
    if (!op_has(o, rows[q].name)) continue;
    op_result(o, op_intrin(o, sign ? rows[q].s : rows[q].u, 0,
                           op_operand(o, 1, DT_U32),
                           op_operand(o, 2, DT_U32), 0));
    return;
  }
  op_reject(o, "an operation such as .add is missing");
}

// Translates elect.sync. The PTX ISA does not specify which lane is elected.
// The simulator elects a lane from the middle, or the lowest lane if the kernel
// reads the number of the elected lane.
void row_elect(PtxOp *o, int k) {
  (void)k;
  op_has(o, "sync");
  Ref mask = op_operand(o, 1, DT_U32);
  const PtxArg *d = op_arg(o, 0), *lane = NULL;
  if (d->kind == PTX_A_PAIR) {
    lane = op_part(o, d, 0);
    d = op_part(o, d, 1);
    if (lane->kind == PTX_A_SINK) lane = NULL;
  }
  Ref p = op_intrin(o, IN_ELECT, lane != NULL, mask, 0, 0);
  if (lane) {
    Ref low = op2(o, OP_AND, mask, op1(o, OP_NEG, mask));
    Ref below = op2(o, OP_SUB, low, number(o, DT_U32, 1));
    op_set(o, lane, op_intrin(o, IN_POPC, 0, below, 0, 0));
  }
  op_set(o, d, p);
}

void row_active(PtxOp *o, int k) {
  (void)k;
  op_type(o, 0);
  op_result(o, op_intrin(o, IN_ACTIVE, 0, 0, 0, 0));
}

// Emits a report, with the message `text`, for threads where p is false.
static void report_unless(PtxOp *o, Ref p, const char *text) {
  uint32_t at = ir_text(o->b->cx, o->b->fn, text, strlen(text));
  ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_TRAP, .imm = at, .a = {p}});
}

void row_trap(PtxOp *o, int k) {
  report_unless(o, number(o, DT_BOOL, 0), k ? "brkpt" : "trap");
}

// Translates .check p, text, an instruction that calls.c creates.
void row_check(PtxOp *o, int k) {
  (void)k;
  const PtxArg *text = op_arg(o, 1);
  report_unless(o, op_pred(o, op_arg(o, 0)), text->name);
}

// Translates .print text, values, an instruction that prints.c creates.
void row_print(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  const char *text = op_arg(o, 0)->name;
  uint32_t n = o->i->args - 1;
  Ref *v = NEW(b->cx, Ref, n + 1);
  for (uint32_t q = 0; q < n; q++) {
    const PtxArg *a = op_arg(o, q + 1);
    v[q] = op_value(o, a, op_dtype(b->m->regs.p[b->f->reg +
                                                (uint32_t)a->value].type));
  }
  Ins i = {.op = OP_PRINTF, .imm = ir_text(b->cx, b->fn, text, strlen(text))};
  operands_emit(b->cx, b->fn, i, v, n, NULL, 0);
}

// Rejects a call, brx or wmma for which calls.c found no replacement.
void row_call(PtxOp *o, int k) {
  (void)k;
  op_reject(o, "it has no text to replace it");
}

void row_sleep(PtxOp *o, int k) {
  (void)k;
  op_type(o, 0);
  op_intrin(o, IN_NANOSLEEP, 0, op_operand(o, 0, DT_U32), 0, 0);
}

// Translates hints and profiler counters, which have no effect.
void row_nothing(PtxOp *o, int k) {
  (void)k;
  o->used = UINT32_MAX;
}

void row_policy(PtxOp *o, int k) {
  row_nothing(o, k);
  op_result(o, number(o, DT_U64, 0));
}
// SPDX-License-Identifier: MIT
