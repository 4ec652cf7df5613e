// Computes the cost (work.h) of memory instructions, synchronization and
// tensor-core instructions. price.c has the cost of arithmetic.
#include "timing/work.h"

#include "decode/fragments.h"
#include "decode/raw_pointer.h"
#include "ir/intrin.h"
#include "ir/operands.h"
#include "sim/bulk.h"
#include "sim/tcgen05.h"
#include "timing/price.h"

enum { LINE = 128 };
// The compiler unrolls loops whose bodies have at most SHORT_LOOP instructions,
// and repeats the body COPIES times.
enum { SHORT_LOOP = 64, COPIES = 4 };

// ---- registers and values of instructions ----

typedef void See(void *ud, uint32_t id, bool written);

typedef struct Works {
  SimWorks out;
  SimPrices *prices;
  // for each register object: id of its first unit (prog.h); others follow
  uint32_t *object;
} Works;

static void see_units(const Works *k, const SimMem *m, int64_t first,
                      int64_t bits, bool written, See *see, void *ud) {
  int64_t n = (bits + m->unit - 1) / m->unit;
  for (int64_t u = first; u < first + n && u < m->count; u++)
    if (u >= 0) see(ud, k->object[m->index] + (uint32_t)u, written);
}

static void see_operand(const Works *k, const Operand *o, See *see,
                        void *ud) {
  const SimMem *m;
  int64_t at = 0;
  switch ((OperandKind)o->kind) {
    case OPERAND_VALUE: case OPERAND_PRED: case OPERAND_LANES:
      if (o->ref) see(ud, o->ref, false);
      break;
    case OPERAND_VAR:
      if (o->ref) see(ud, o->ref, o->written);
      break;
    case OPERAND_MEM:
      m = k->out.p->mem[o->ref];
      if (!sim_in_registers(m)) {
        see(ud, o->off, false);
      } else {
        ir_const(k->out.p->fn, o->off, &at);
        if (o->read) see_units(k, m, at * m->per, o->bits, false, see, ud);
        if (o->written) see_units(k, m, at * m->per, o->bits, true, see, ud);
      }
      break;
    case OPERAND_RUN:
      m = k->out.p->mem[o->ref];
      for (int j = 0; j < o->n; j++)
        see_units(k, m, (int64_t)o->reg[j] * m->per, o->bits, o->written, see,
                  ud);
      break;
    case OPERAND_OBJECT: case OPERAND_MAP:
      break;
  }
}

static void see_all(const Works *k, const SimIns *d, See *see, void *ud) {
  const Ins *i = ir_get(k->out.p->fn, d->ref);
  Operand o;
  // If the ops differ, d is an assertion at i, whose values do not count.
  if (d->op != i->op) return;
  for (Operands w = operands_of(k->out.p->fn, i); operands_next(&w, &o);)
    see_operand(k, &o, see, ud);
  if (i->type != DT_NONE && !(op_effect((Op)i->op) & EF_OBJECT))
    see(ud, d->ref, true);
}

typedef struct Count { uint32_t read, written; } Count;
static void count_id(void *ud, uint32_t id, bool written) {
  Count *n = ud;
  (void)id;
  if (written) n->written++;
  else n->read++;
}

typedef struct Fill { uint32_t *read, *written; } Fill;
static void fill_id(void *ud, uint32_t id, bool written) {
  Fill *f = ud;
  if (written) *f->written++ = id;
  else *f->read++ = id;
}

static void find_ids(Ctx *cx, Works *k) {
  const Fn *fn = k->out.p->fn;
  k->out.nid = (uint32_t)fn->ins.n;
  k->object = arena_zero(cx, &cx->scratch, (fn->mem.n + 1) * 4);
  for (size_t j = 0; j < fn->mem.n; j++) {
    const SimMem *m = k->out.p->mem[fn->mem.p[j].ref];
    if (!m || !sim_in_registers(m)) continue;
    k->object[j] = k->out.nid;
    k->out.nid += (uint32_t)m->count;
  }
  size_t all = 0;
  for (uint32_t j = 0; j < k->out.p->nins; j++) {
    Count n = {0};
    see_all(k, &k->out.p->ins[j], count_id, &n);
    k->out.work[j].ids = (uint32_t)all;
    k->out.work[j].nread = n.read;
    k->out.work[j].nwrite = n.written;
    all += n.read + n.written;
  }
  k->out.id = NEW(cx, uint32_t, all + 1);
  for (uint32_t j = 0; j < k->out.p->nins; j++) {
    uint32_t *at = k->out.id + k->out.work[j].ids;
    Fill f = {at, at + k->out.work[j].nread};
    see_all(k, &k->out.p->ins[j], fill_id, &f);
  }
}

// ---- costs of instructions ----

// Returns, for each value, the depth of the innermost loop that changes the
// value. Sets around[r] to the depth of the loops that enclose the instruction
// of value r.
static uint8_t *find_loops(Ctx *cx, const Fn *fn, uint8_t *around) {
  uint8_t *in = arena_zero(cx, &cx->scratch, fn->ins.n);
  // Stack of the open regions: 1 for a loop, 0 for another region.
  uint8_t *loops = arena_zero(cx, &cx->scratch, fn->ins.n);
  size_t n = 0;
  int depth = 0;
  Operand o;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    unsigned effect = op_effect((Op)i->op);
    bool loop = op_loops((Op)i->op);
    if (effect & EF_CLOSES && !(effect & EF_OPENS) && n) depth -= loops[--n];
    if (effect & EF_OPENS && !(effect & EF_CLOSES)) {
      loops[n++] = loop;
      depth += loop;
    }
    around[r] = (uint8_t)depth;
    if (!(effect & (EF_PURE | EF_FIXED))) {
      in[r] = (uint8_t)depth;
      continue;
    }
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
      if (o.ref && in[o.ref] > in[r]) in[r] = in[o.ref];
  }
  return in;
}

// Returns the cost of an arithmetic instruction. Its latency is the time from
// its last operand to its result. A function consists of several instructions,
// which may overlap with other work, because compilers interleave them.
static SimWork arithmetic(const Works *k, SimPrice p, double flops) {
  const SimMachine *m = k->out.m;
  double steps = p.issue > 1 ? p.issue - 1 : 0;
  return (SimWork){
    .kind = p.issue > 0 ? K_ALU : K_NONE, .slots = p.issue, .fma = p.fma,
    .alu = (float)(p.alu * m->integer), .xu = (float)(p.xu * m->special),
    .f64 = (float)(p.f64 * m->f64), .flops = (float)flops,
    .late = (float)(m->alu + p.issue + 1.5 * steps + 2 * m->special * p.xu +
                    4 * p.f64)};
}

static SimWork scalar_cost(const Works *k, const SimIns *d, bool fixed) {
  static const uint8_t FLOPS[OP_COUNT] = {
    [OP_FMA] = 2, [OP_ADD] = 1, [OP_SUB] = 1, [OP_MUL] = 1, [OP_DIV] = 1};
  double flops = dtype_is_float((DType)d->type) ? FLOPS[d->op] : 0;
  return arithmetic(k, price_of(k->prices, d, fixed), flops);
}

static SimWork ask_cost(const Works *k, const SimIns *d) {
  const Ins *i = ir_get(k->out.p->fn, d->ref);
  if (!intrin_is_shuffle(intrin_id(i->imm))) return scalar_cost(k, d, false);
  return (SimWork){.kind = K_SHARED, .slots = 1, .shared = 1};
}

// Returns how many copies of a loop's body the compiler makes.
static int copies_of(const Fn *fn, Ref head) {
  const Ins *i = ir_get(fn, head);
  if (i->op == OP_FOR && i->imm) return (int)i->imm;
  int depth = 0, n = 0;
  for (Ref r = head; r < fn->ins.n; r++) {
    unsigned effect = op_effect((Op)ir_get(fn, r)->op);
    if (effect & EF_OPENS && !(effect & EF_CLOSES)) depth++;
    if (effect & EF_CLOSES && !(effect & EF_OPENS) && --depth == 0) break;
    if (++n > SHORT_LOOP || ir_get(fn, r)->op == OP_MBARWAIT) return 1;
  }
  return i->op == OP_FOR ? COPIES : 1;
}

static SimWork turn_cost(const Works *k, const SimIns *d) {
  if (d->head != OP_FOR && d->head != OP_LOOP) return (SimWork){0};
  int copies = copies_of(k->out.p->fn, k->out.p->ins[d->jump - 1].ref);
  return (SimWork){.kind = K_TURN, .slots = 2.0f / (float)copies,
                   .work = (float)copies,
                   .late = (float)(k->out.m->loop / copies)};
}

static SimWork fence_cost(const Works *k, FenceKind f) {
  const SimMachine *m = k->out.m;
  double late = m->fence.cta, each = m->fence.cta_each;
  switch (f) {
    case FE_CLUSTER: case FE_GPU: case FE_TENSORMAP: case FE_ALIAS:
      late = m->fence.gpu;
      each = m->fence.gpu_each;
      break;
    case FE_SYS:
      late = m->fence.sys;
      each = m->fence.sys_each;
      break;
    case FE_ASYNC: case FE_ASYNC_CLUSTER: late = m->fence.async; break;
    case FE_CTA: case FE_MBARINIT: case FE_ASYNC_GLOBAL: case FE_ASYNC_CTA:
    case FE_COUNT:
      break;
  }
  return (SimWork){.kind = K_FENCE, .slots = 1, .work = (float)each,
                   .late = (float)late};
}

// Reports whether the operands of an MMA are 4-bit floats without padding.
static bool is_packed_f4(const AtomMma *r) {
  return r->flags & AMF_SCALE && !(r->flags & AMF_BYTE) &&
         r->a_type == DT_E2M1;
}

// Returns the cost of a tcgen05 operation. An instruction with unpacked floats
// of any size takes as long as one with 16 elements of 16 bits along K. All
// quarters of the SM work on an instruction. In a pair of CTAs, all quarters of
// both SMs do.
static SimWork tensor_cost(const Works *k, const SimIns *d, SimWorkKind kind) {
  const SimTensorIns *x = d->x;
  const SimMachine *m = k->out.m;
  SimWork c = {.kind = (uint8_t)kind, .slots = 1};
  if (d->op == OP_TCLD || d->op == OP_TCST) c.work = (float)x->copy->num;
  if (d->op == OP_TCCP) c.shared = (float)(x->rows * (double)x->bytes / LINE);
  if (d->op != OP_TCMMA) return c;
  const AtomMma *r = x->row;
  double sms = x->ctas, each = (double)r->m * r->n / sms;
  double n = each * atom_mma_depth(r), longer = r->k / atom_mma_depth(r);
  c.flops = (float)(2.0 * r->m * r->n * r->k);
  if (dtype_is_int(r->d_type)) c.work = (float)(n / (4 * m->tcgen05_i8));
  else if (is_packed_f4(r)) c.work = (float)(n / (4 * m->tcgen05_f4));
  else c.work = (float)(each * 16 / (4 * m->tcgen05));
  // A row has 32 bytes. If A is sparse, a row of B has 64 bytes.
  double rows = r->n / sms * longer + (r->flags & AMF_SMEM_A ? r->m / sms : 0);
  c.shared = (float)(rows * 32 / LINE);
  return c;
}

static SimWork mma_cost(const Works *k, const SimIns *d) {
  const SimMmaIns *x = d->x;
  const AtomMma *r = x->row;
  double n = (double)r->m * r->n * atom_mma_depth(r);
  double bits = dtype_bits(r->a_type);
  bool team = d->op == OP_WGMMA;
  SimWork c = {.kind = team ? K_WGMMA : K_MMA, .slots = 1,
            .flops = (float)(2.0 * r->m * r->n * r->k / (team ? 4 : 1))};
  if (atom_mma_alone(r)) {  // each lane computes its own result
    bool wide = bits == 64;
    SimPrice p = {.issue = 1, .fma = wide ? 0 : r->kind == MK_FMA2 ? 2 : 1,
                  .f64 = wide};
    return arithmetic(k, p, 2 * n);
  }
  c.flops *= (float)(team ? 1 : x->groups);
  double rate = team ? 4 * k->out.m->wgmma : k->out.m->mma;
  if (is_packed_f4(r)) {
    bits = 16;
    rate = k->out.m->mma_f4;
  } else if (bits < 8) {
    bits = 8;
  }
  c.work = (float)(bits == 64 ? n / 32 : n * bits / 16 / rate);
  if (!team) return c;
  // All four warps share one read of B, so a quarter of its bytes is counted
  // for each warp.
  double bytes = (double)r->n * r->k * bits / 8 / 4;
  if (r->flags & AMF_SMEM_A) bytes += (double)r->m * r->k * bits / 8 / 4;
  c.shared = (float)(bytes / LINE);
  return c;
}

// Reports whether the GPU implements an atomic in shared memory by a
// compare-and-swap loop. This is the case for float sums, and for types that do
// not have 32 bits.
static bool by_swaps(int64_t kind, DType t) {
  if (kind == AT_EXCH || kind == AT_CAS) return dtype_bits(t) < 32;
  return dtype_is_float(t) || dtype_bits(t) != 32;
}

static SimWork memory_cost(const Works *k, const SimIns *d) {
  const SimCopy *c = d->x;
  const SimSide *s = d->x;
  bool two = d->op == OP_COPY;
  const SimMem *from = two ? c->src.mem : s->mem;
  const SimMem *to = two ? c->dst.mem : s->mem;
  if (sim_in_registers(from) && sim_in_registers(to))
    return (SimWork){0};
  SimWork out = {.kind = K_SHARED, .slots = 1};
  if (from->memory == MEMORY_GLOBAL) out.kind = K_LOAD;
  else if (to->memory == MEMORY_GLOBAL) out.kind = K_STORE;
  else if (from->rank || to->rank) out.kind = K_PEER;
  else if (d->op == OP_ATOMIC) out.kind = K_ATOMIC;
  if ((d->op == OP_ST || d->op == OP_ATOMIC) && from->memory == MEMORY_GLOBAL)
    out.kind = K_STORE;
  if (out.kind == K_ATOMIC)
    out.work = by_swaps(ir_get(k->out.p->fn, d->ref)->imm, (DType)s->type);
  return out;
}

static SimWork cost_of(const Works *k, const SimIns *d, bool fixed) {
  static const uint8_t TENSOR[OP_COUNT] = {
    [OP_TCMMA] = K_TCMMA, [OP_TCCP] = K_TCMMA,
    [OP_TCSHIFT] = K_TCMMA, [OP_TCCOMMIT] = K_TCCOMMIT,
    [OP_TCLD] = K_TCMOVE, [OP_TCST] = K_TCMOVE, [OP_TCWAITLD] = K_TCWAIT,
    [OP_TCWAITST] = K_TCWAIT};
  SimWork c = {.kind = K_ALU, .slots = 1};
  if (ir_is_aside(ir_get(k->out.p->fn, d->ref))) return (SimWork){0};
  if (d->op == OP_PTR)
    return cost_of(k, ((const SimAddressed *)d->x)->ins, fixed);
  if (TENSOR[d->op]) return tensor_cost(k, d, (SimWorkKind)TENSOR[d->op]);
  switch (op_class((Op)d->op)) {
    case CLASS_NONE: return (SimWork){0};
    case CLASS_SUM: case CLASS_PRODUCT: case CLASS_QUOTIENT:
    case CLASS_EXTREME: case CLASS_SIGN: case CLASS_FUSED: case CLASS_LOGIC:
    case CLASS_SHIFT: case CLASS_COMPARE: case CLASS_SELECT:
    case CLASS_CONVERT: case CLASS_FUNCTION: case CLASS_INTRIN:
      return scalar_cost(k, d, fixed);
    case CLASS_CHOICE:
      return arithmetic(k, (SimPrice){.issue = 8, .alu = 8}, 0);
    case CLASS_ASK: return ask_cost(k, d);
    case CLASS_ACCESS: return memory_cost(k, d);
    case CLASS_SHARED: c.kind = K_SHARED; break;
    case CLASS_SEND: c.kind = K_SEND; break;
    case CLASS_MATRIX: c.kind = K_LDMATRIX; break;
    case CLASS_MMA: return mma_cost(k, d);
    case CLASS_CPASYNC: c.kind = K_CPASYNC; break;
    case CLASS_CPCOMMIT: c.kind = K_CPCOMMIT; break;
    case CLASS_CPWAIT: c.kind = K_CPWAIT; break;
    case CLASS_CPARRIVE: c.kind = K_CPARRIVE; break;
    case CLASS_WGCOMMIT: c.kind = K_WGCOMMIT; break;
    case CLASS_WGWAIT: c.kind = K_WGWAIT; break;
    case CLASS_BULKLOAD: c.kind = K_BULKLOAD; break;
    case CLASS_BULKSTORE: c.kind = K_BULKSTORE; break;
    case CLASS_BULKCOMMIT: c.kind = K_BULKCOMMIT; break;
    case CLASS_BULKWAIT: c.kind = K_BULKWAIT; break;
    case CLASS_BARRIER: c.kind = K_MEET; break;
    case CLASS_SYNCWARP:
      c.kind = K_BRANCH;
      c.alu = (float)(2 * k->out.m->integer);
      break;
    case CLASS_FENCE:
      return fence_cost(k, (FenceKind)ir_get(k->out.p->fn, d->ref)->imm);
    case CLASS_CLUSTER:
      c.kind = K_BRANCH;
      if (d->flags & CLF_RELAXED) break;
      c = fence_cost(k, FE_CLUSTER);
      c.work = (float)k->out.m->cluster_each;
      break;
    case CLASS_LOOP: c.kind = K_HEAD; c.slots = 0; break;
    case CLASS_END: return turn_cost(k, d);
    case CLASS_CONTROL: c.kind = K_BRANCH; break;
  }
  return c;
}

static void find_costs(Ctx *cx, Works *k) {
  const Fn *fn = k->out.p->fn;
  uint8_t *around = arena_zero(cx, &cx->scratch, fn->ins.n);
  const uint8_t *in = find_loops(cx, fn, around);
  for (uint32_t j = 0; j < k->out.p->nins; j++) {
    const SimIns *d = &k->out.p->ins[j];
    const Ins *i = ir_get(fn, d->ref);
    bool pure = op_pure((Op)d->op) && d->op == i->op;
    Ref by = pure ? i->a[1] : 0;
    SimWork c = cost_of(k, d, by && in[by] < around[d->ref]);
    // Uniform values use another pipe, and invariant values are computed before
    // the loop, so neither costs anything.
    if (pure && (d->uniform || in[d->ref] < around[d->ref])) c = (SimWork){0};
    c.ids = k->out.work[j].ids;
    c.nread = k->out.work[j].nread;
    c.nwrite = k->out.work[j].nwrite;
    k->out.work[j] = c;
  }
}

SimWorks *work_new(Ctx *cx, const SimProg *p, const SimMachine *m) {
  Works *k = arena_zero(cx, &cx->scratch, sizeof *k);
  k->out = (SimWorks){.p = p, .m = m,
    .work = arena_zero(cx, &cx->scratch, (p->nins + 1) * sizeof(SimWork))};
  k->prices = price_new(cx, p->fn);
  find_ids(cx, k);
  find_costs(cx, k);
  return &k->out;
}
// SPDX-License-Identifier: MIT
