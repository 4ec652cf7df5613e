// How long multiprocessors take for what a tape says. Warps issue in their
// order, when what an instruction reads is there, its quarter of the SM is
// free, and the pipe that it needs takes more: the first that can goes first.
// Results come after the pipe's work and a latency. Agents fill shared memory
// through a pipe of their own. Gates open with the last part that is given.
//
// That is no simulation of an SM: the compiler's order of instructions and
// its registers are not known, addresses that it folds are taken for free
// (sums with constants, what does not change in a loop).
#include "sim/clock.h"

#include <string.h>

#include "ir/operands.h"
#include "sim/address.h"
#include "sim/bulk.h"
#include "sim/tables.h"

enum { QUARTERS = 4, GROUPED = 64, SECTOR = 32, LINE = 128 };
// Cycles that a pipe's work may pile up before an instruction has to wait.
enum { QUEUE = 64, FAR_QUEUE = 1500 };

typedef enum Kind {
  K_NONE,       // costs nothing; its result is there when its operands are
  K_ALU,
  K_SHARED, K_LDMATRIX, K_LOAD, K_STORE,
  K_CPASYNC, K_CPCOMMIT, K_CPWAIT, K_CPARRIVE,
  K_MMA, K_WGMMA, K_WGCOMMIT, K_WGWAIT,
  K_BULKLOAD, K_BULKSTORE, K_BULKCOMMIT, K_BULKWAIT
} Kind;

typedef struct Cost {
  uint8_t kind;
  float slots;            // of its quarter's issue
  float work;             // cycles of its pipe
  float shared;           // passes that operands in shared memory need
  float flops;            // of a lane; MMAs: of the warp
  uint32_t ids, nread, nwrite;  // in SimClock.id: what it reads, writes
} Cost;

// What a thread, or a warp, has started and can wait for: when the groups, each
// not before those in front of it, end.
typedef struct Groups {
  double from, open;      // what is in no group yet: begin, end
  double end[GROUPED];
  uint32_t n;
} Groups;

typedef struct Player {   // a warp of a cluster that runs
  struct Stage *stage;
  int warp, quarter;      // of its cluster; of its SM
  size_t at;              // its next step
  double t;               // not before
  uint32_t last;          // the instruction that it issued last
  bool done;
  uint32_t gate;          // it waits for; 0: none
  double tensor;          // its next mma not before
  double asked, agents;   // when its last bulk load went off, and is there
  Groups copies, sums, stores;
  uint32_t *ready;        // of each id, when it is there
} Player;

typedef struct Gate {
  uint32_t missing;
  double open;
} Gate;

typedef struct Stage {    // a cluster that runs
  Player *player;
  Gate *gate;
  int live;
  uint32_t number;        // in the order in which they began
  double began;
} Stage;

typedef struct Sm {
  double issue[QUARTERS], alu[QUARTERS], tensor[QUARTERS];
  double shared, l1, memory, fill;
} Sm;

struct SimClock {
  const SimProg *p;
  const SimMachine *m;
  Cost *cost;
  uint32_t *id;           // lists of Cost
  uint32_t nid;           // different ones
  uint32_t *object;       // first id of each object of registers
  double *stall;          // of each instruction
  const SimTape *tape;
  uint32_t *parts;        // of each gate
  Stage *stage;
  Sm *sm;
  double busy[PIPES];
  Player **heap;
  size_t nheap;
  double end;
  uint32_t began;         // clusters
  SimTiming *out;
  bool oom;
};

// ---- what instructions read and write ----

typedef void See(void *ud, uint32_t id, bool written);

static void see_units(const SimClock *k, const SimMem *m, int64_t first,
                      int64_t bits, bool written, See *see, void *ud) {
  int64_t n = (bits + m->unit - 1) / m->unit;
  for (int64_t u = first; u < first + n && u < m->count; u++)
    if (u >= 0) see(ud, k->object[m->index] + (uint32_t)u, written);
}

static void see_operand(const SimClock *k, const Operand *o, See *see,
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
      m = k->p->mem[o->ref];
      if (m->space != SP_RMEM) {
        see(ud, o->off, false);
      } else {
        ir_const(k->p->fn, o->off, &at);
        if (o->read) see_units(k, m, at * m->per, o->bits, false, see, ud);
        if (o->written) see_units(k, m, at * m->per, o->bits, true, see, ud);
      }
      break;
    case OPERAND_RUN:
      m = k->p->mem[o->ref];
      for (int j = 0; j < o->n; j++)
        see_units(k, m, (int64_t)o->reg[j] * m->per, o->bits, o->written, see,
                  ud);
      break;
    case OPERAND_OBJECT: case OPERAND_MAP:
      break;
  }
}

static void see_all(const SimClock *k, const SimIns *d, See *see, void *ud) {
  const Ins *i = ir_get(k->p->fn, d->ref);
  Operand o;
  if (d->op != i->op) return;  // a claim
  for (Operands w = operands_of(k->p->fn, i); operands_next(&w, &o);)
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

static void find_ids(Ctx *cx, SimClock *k) {
  const Fn *fn = k->p->fn;
  k->nid = (uint32_t)fn->ins.n;
  k->object = arena_zero(cx, &cx->scratch, (fn->mem.n + 1) * 4);
  for (size_t j = 0; j < fn->mem.n; j++) {
    const SimMem *m = k->p->mem[fn->mem.p[j].ref];
    if (!m || m->space != SP_RMEM) continue;
    k->object[j] = k->nid;
    k->nid += (uint32_t)m->count;
  }
  size_t all = 0;
  for (uint32_t j = 0; j < k->p->nins; j++) {
    Count n = {0};
    see_all(k, &k->p->ins[j], count_id, &n);
    k->cost[j].ids = (uint32_t)all;
    k->cost[j].nread = n.read;
    k->cost[j].nwrite = n.written;
    all += n.read + n.written;
  }
  k->id = NEW(cx, uint32_t, all + 1);
  for (uint32_t j = 0; j < k->p->nins; j++) {
    uint32_t *at = k->id + k->cost[j].ids;
    Fill f = {at, at + k->cost[j].nread};
    see_all(k, &k->p->ins[j], fill_id, &f);
  }
}

// ---- what instructions cost ----

// Loops that each value changes in: how many are around it that it depends on.
static uint8_t *find_loops(Ctx *cx, const Fn *fn, uint8_t *around) {
  uint8_t *in = arena_zero(cx, &cx->scratch, fn->ins.n);
  uint8_t *loops = arena_zero(cx, &cx->scratch, fn->ins.n);  // open regions:
  size_t n = 0;                                              // is it a loop?
  int depth = 0;
  Operand o;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    unsigned effect = op_effect((Op)i->op);
    bool loop = i->op == OP_FOR || i->op == OP_LOOP;
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

static bool has_const(const Fn *fn, const Ins *i, int64_t *v) {
  return (i->a[0] && ir_const(fn, i->a[0], v)) ||
         (i->a[1] && ir_const(fn, i->a[1], v));
}

static Cost alu(double slots, double work) {
  return (Cost){.kind = K_ALU, .slots = (float)slots, .work = (float)work};
}

static Cost integer_cost(const Fn *fn, const Ins *i, int wide) {
  int64_t v = 0;
  bool constant = has_const(fn, i, &v);
  if (constant && (i->op == OP_ADD || i->op == OP_SUB)) return (Cost){0};
  bool shift = constant && v > 0 && !(v & (v - 1));
  if ((i->op != OP_DIV && i->op != OP_MOD) || shift)
    return alu(wide, 2 * wide);
  return constant ? alu(4 * wide, 8 * wide) : alu(24 * wide, 40 * wide);
}

static Cost scalar_cost(const SimClock *k, const SimIns *d) {
  const Fn *fn = k->p->fn;
  const Ins *i = ir_get(fn, d->ref);
  DType t = (DType)d->type;
  int bits = dtype_bits(t);
  if (!dtype_is_float(t)) return integer_cost(fn, i, bits > 32 ? 2 : 1);
  double each = bits == 64 ? k->m->f64 : bits == 16 ? 0.5 : 1;
  Cost c = alu(bits == 64 ? 1 : each, each);
  if (i->op == OP_DIV) c = alu(10, 10 * each);
  if (i->op == OP_FMA) c.flops = 2;
  if (i->op == OP_ADD || i->op == OP_SUB || i->op == OP_MUL ||
      i->op == OP_DIV)
    c.flops = 1;
  return c;
}

static Cost mma_cost(const SimClock *k, const SimIns *d) {
  const SimMmaIns *x = d->x;
  const AtomMma *r = x->row;
  double n = (double)r->m * r->n * atom_mma_depth(r);
  double bits = dtype_bits(r->a_type);
  bool team = d->op == OP_WGMMA;
  Cost c = {.kind = team ? K_WGMMA : K_MMA, .slots = 1,
            .flops = (float)(2.0 * r->m * r->n * r->k / (team ? 4 : 1))};
  if (atom_mma_alone(r)) {  // each lane's own
    double each = bits == 64 ? k->m->f64 : r->kind == MK_FMA2 ? 2 : 1;
    c = alu(1, each);
    c.flops = (float)(2 * n);
    return c;
  }
  c.flops *= (float)(team ? 1 : x->groups);
  if (bits < 8) bits = 8;
  if (bits == 64) c.work = (float)(n / 32);
  else c.work = (float)(n * bits / 16 / (team ? 4 * k->m->wgmma : k->m->mma));
  if (!team) return c;
  double bytes = (double)r->n * r->k * bits / 8 / 4;  // B, by all four
  if (r->flags & AMF_SMEM_A) bytes += (double)r->m * r->k * bits / 8 / 4;
  c.shared = (float)(bytes / LINE);
  return c;
}

static Cost memory_cost(const SimIns *d) {
  const SimCopy *c = d->x;
  const SimSide *s = d->x;
  bool two = d->op == OP_COPY;
  Space from = two ? c->src.mem->space : s->mem->space;
  Space to = two ? c->dst.mem->space : s->mem->space;
  if (from == SP_RMEM && to == SP_RMEM) return (Cost){0};
  Cost out = {.kind = K_SHARED, .slots = 1};
  if (from == SP_GMEM) out.kind = K_LOAD;
  else if (to == SP_GMEM) out.kind = K_STORE;
  if (d->op == OP_ST && from == SP_GMEM) out.kind = K_STORE;
  return out;
}

static Cost cost_of(const SimClock *k, const SimIns *d) {
  Cost c = {.kind = K_ALU, .slots = 1};
  if (ir_is_aside(ir_get(k->p->fn, d->ref))) return (Cost){0};
  switch ((Op)d->op) {
    case OP_LD: case OP_ST: case OP_COPY: case OP_ATOMIC:
      return memory_cost(d);
    case OP_FILL: return (Cost){0};  // what is filled is, later, a constant
    case OP_PICK: case OP_PUT: return alu(8, 16);
    case OP_CPASYNC: c.kind = K_CPASYNC; return c;
    case OP_CPCOMMIT: c.kind = K_CPCOMMIT; return c;
    case OP_CPWAIT: c.kind = K_CPWAIT; return c;
    case OP_MBARCPASYNC: c.kind = K_CPARRIVE; return c;
    case OP_MMA: case OP_WGMMA: return mma_cost(k, d);
    case OP_WGCOMMIT: c.kind = K_WGCOMMIT; return c;
    case OP_WGWAIT: c.kind = K_WGWAIT; return c;
    case OP_MATRIX: c.kind = K_LDMATRIX; return c;
    case OP_MBARINIT: case OP_MBARINVAL: case OP_MBARARRIVE: case OP_MBARTX:
    case OP_MBARWAIT: case OP_MBARTRY: case OP_MBARTOKEN: case OP_STASYNC:
      c.kind = K_SHARED;
      return c;
    case OP_TMALOAD: case OP_BULKLOAD: case OP_BULKSEND:
      c.kind = K_BULKLOAD;
      return c;
    case OP_TMASTORE: case OP_BULKSTORE: c.kind = K_BULKSTORE; return c;
    case OP_BULKCOMMIT: c.kind = K_BULKCOMMIT; return c;
    case OP_BULKWAIT: c.kind = K_BULKWAIT; return c;
    case OP_MATH: return dtype_bits((DType)d->type) == 64 ? alu(20, 60)
                                                          : alu(3, 8);
    case OP_SEL: case OP_CVT: return alu(1, 1);
    case OP_ASK: c.kind = K_SHARED; c.shared = 1; return c;
    case OP_END: return d->head == OP_FOR ? alu(2, 2) : (Cost){0};
    case OP_BAR: case OP_BARARRIVE: case OP_SYNCWARP: case OP_FENCE:
    case OP_CLUSTERARRIVE: case OP_CLUSTERWAIT: case OP_SETMAXNREG:
    case OP_GRIDWAIT: case OP_GRIDLAUNCH: case OP_WGFENCE:
    case OP_TMAPREFETCH: case OP_MAPCOPY: case OP_MAPADDRESS: case OP_MAPSET:
    case OP_MAPACQUIRE: case OP_MAPPUBLISH: case OP_PRINTF: case OP_IF:
    case OP_BREAKIF: case OP_EXITIF: case OP_INTRIN:
      return c;
#define OP(...)
#define LEAF(id, ...) case OP_##id:
#include "ir/ops.h"
    case OP_PTR: return cost_of(k, ((const SimAddressed *)d->x)->ins);
    case OP_NOP: case OP_DSMEM: case OP_TMAPAT: case OP_ASM: case OP_COUNT:
    case OP_RMEM: case OP_BITCAST: case OP_VAR: case OP_VGET: case OP_VSET:
    case OP_FOR: case OP_LOOP: case OP_ONCE: case OP_ELSE: case OP_TRAP:
      return (Cost){0};
#define OP(...)
#define SCALAR(id, ...) case OP_##id:
#include "ir/ops.h"
      return scalar_cost(k, d);
  }
  return c;
}

static void find_costs(Ctx *cx, SimClock *k) {
  const Fn *fn = k->p->fn;
  uint8_t *around = arena_zero(cx, &cx->scratch, fn->ins.n);
  const uint8_t *in = find_loops(cx, fn, around);
  for (uint32_t j = 0; j < k->p->nins; j++) {
    const SimIns *d = &k->p->ins[j];
    bool pure = op_pure((Op)d->op) && d->op == ir_get(fn, d->ref)->op;
    Cost c = cost_of(k, d);
    // one for all lanes: of another pipe; the same in a loop: before it
    if (pure && (d->uniform || in[d->ref] < around[d->ref])) c = (Cost){0};
    c.ids = k->cost[j].ids;
    c.nread = k->cost[j].nread;
    c.nwrite = k->cost[j].nwrite;
    k->cost[j] = c;
  }
}

SimClock *simclock_new(Ctx *cx, const SimProg *p, const SimMachine *m) {
  SimClock *k = arena_zero(cx, &cx->scratch, sizeof *k);
  size_t stages = (size_t)m->resident, warps = (size_t)p->nall;
  k->p = p;
  k->m = m;
  k->cost = arena_zero(cx, &cx->scratch, (p->nins + 1) * sizeof *k->cost);
  k->stall = arena_zero(cx, &cx->scratch, (p->nins + 1) * sizeof *k->stall);
  find_ids(cx, k);
  find_costs(cx, k);
  k->sm = arena_zero(cx, &cx->scratch, (size_t)p->ncta * sizeof *k->sm);
  k->stage = NEW(cx, Stage, stages);
  k->heap = NEW(cx, Player *, stages * warps + 1);
  for (size_t s = 0; s < stages; s++) {
    k->stage[s] = (Stage){.player = NEW(cx, Player, warps)};
    for (size_t w = 0; w < warps; w++)
      k->stage[s].player[w].ready = NEW(cx, uint32_t, k->nid);
  }
  return k;
}

// ---- who goes next ----

static void sift_up(SimClock *k, size_t at) {
  Player *p = k->heap[at];
  for (; at && k->heap[(at - 1) / 2]->t > p->t; at = (at - 1) / 2)
    k->heap[at] = k->heap[(at - 1) / 2];
  k->heap[at] = p;
}

static void sift_down(SimClock *k) {
  Player *p = k->heap[0];
  size_t at = 0;
  for (size_t j; (j = 2 * at + 1) < k->nheap; at = j) {
    if (j + 1 < k->nheap && k->heap[j + 1]->t < k->heap[j]->t) j++;
    if (k->heap[j]->t >= p->t) break;
    k->heap[at] = k->heap[j];
  }
  k->heap[at] = p;
}

static void push(SimClock *k, Player *p) {
  k->heap[k->nheap++] = p;
  sift_up(k, k->nheap - 1);
}

static void pop(SimClock *k) {
  k->heap[0] = k->heap[--k->nheap];
  if (k->nheap) sift_down(k);
}

// ---- events ----

static void tell(SimClock *k, const Player *p, SimEvent e) {
  SimTiming *o = k->out;
  if (!k->m->events || k->oom) return;
  if (o->nevent == o->maxevent) {
    size_t max = o->maxevent ? o->maxevent * 2 : 1024;
    SimEvent *event = base_realloc(o->event, max * sizeof *event);
    if (!event) {
      k->oom = true;
      return;
    }
    o->event = event;
    o->maxevent = max;
  }
  e.warp = (uint8_t)(p->warp % k->p->nwarp);
  e.cta = (uint8_t)(p->warp / k->p->nwarp);
  e.cluster = p->stage->number;
  o->event[o->nevent++] = e;
}

static void tell_agent(SimClock *k, const Player *p, const SimIns *i,
                       const char *op, double from, double to) {
  tell(k, p, (SimEvent){.kind = EVENT_AGENT, .what = i->src, .op = op,
                        .t = from, .end = to});
}

// ---- groups ----

static void group_add(Groups *g, double from, double end) {
  if (g->open <= 0 || g->from > from) g->from = from;
  if (end > g->open) g->open = end;
}

// What was begun is a group from now on, which `op` does.
static void group_close(SimClock *k, const Player *p, Groups *g,
                        const SimIns *i, const char *op) {
  double before = g->n ? g->end[(g->n - 1) % GROUPED] : 0;
  g->end[g->n++ % GROUPED] = g->open > before ? g->open : before;
  if (g->open > 0) tell_agent(k, p, i, op, g->from, g->open);
  g->open = 0;
}

// When all but the last `pending` groups have ended.
static double group_end(const Groups *g, uint32_t pending) {
  if (g->n <= pending) return 0;
  return g->end[(g->n - 1 - pending) % GROUPED];
}

// ---- gates ----

static void give(SimClock *k, Stage *s, uint32_t gate, double t) {
  Gate *g = &s->gate[gate];
  if (t > g->open) g->open = t;
  if (--g->missing) return;
  for (int w = 0; w < k->p->nall; w++) {
    Player *p = &s->player[w];
    if (p->gate != gate) continue;
    p->gate = 0;
    double on = g->open + k->m->barrier;
    k->stall[p->last] += on > p->t ? on - p->t : 0;
    if (on > p->t) p->t = on;
    push(k, p);
  }
}

// ---- one step ----

static double most(double a, double b) { return a > b ? a : b; }

// So many cycles of a pipe, from t on at the earliest: its end.
static double take(SimClock *k, double *pipe, SimPipe which, double t,
                   double work, bool counts) {
  *pipe = most(*pipe, t) + work;
  if (counts) k->busy[which] += work;
  return *pipe;
}

// When instruction i of p can go: its operands are there, its pipe takes it.
static double can_go(const SimClock *k, const Player *p, const Cost *c,
                     const SimIns *i, const Sm *sm, int q) {
  double t = p->t;
  const uint32_t *id = k->id + c->ids;
  for (uint32_t j = 0; j < c->nread; j++)
    t = most(t, p->ready[id[j]]);
  if (c->kind == K_CPWAIT) t = most(t, group_end(&p->copies, (uint32_t)i->imm));
  if (c->kind == K_WGWAIT) t = most(t, group_end(&p->sums, (uint32_t)i->imm));
  if (c->kind == K_BULKWAIT)
    t = most(t, group_end(&p->stores, (uint32_t)i->imm));
  if (c->kind == K_NONE) return t;
  t = most(t, sm->issue[q]);
  switch ((Kind)c->kind) {
    case K_ALU: return most(t, sm->alu[q]);
    case K_MMA: return most(t, most(sm->tensor[q], p->tensor));
    case K_WGMMA: return most(t, sm->tensor[q] - 4 * c->work);
    case K_LOAD: case K_STORE:
      t = most(t, sm->l1 - QUEUE);
      return most(t, sm->memory - FAR_QUEUE);
    case K_CPASYNC:
      t = most(t, sm->memory - FAR_QUEUE);
      return most(t, sm->shared - QUEUE);
    case K_SHARED: case K_LDMATRIX: return most(t, sm->shared - QUEUE);
    case K_NONE: case K_CPCOMMIT: case K_CPWAIT: case K_CPARRIVE:
    case K_WGCOMMIT: case K_WGWAIT: case K_BULKLOAD: case K_BULKSTORE:
    case K_BULKCOMMIT: case K_BULKWAIT:
      break;
  }
  return t;
}

// Global memory: when the last of a step's sectors is there; work: of L1.
static double fetch(SimClock *k, Sm *sm, const SimStep *s, double work,
                    double t, bool one) {
  double end = take(k, &sm->l1, PIPE_L1, t, work, one) + k->m->l1_hit;
  if (!s->missed) return end;
  double far = take(k, &sm->memory, PIPE_MEMORY, t,
                    s->missed * (double)SECTOR / k->m->l2, one);
  return most(end, far + k->m->global);
}

// Does step s at time t; gives when its result is there.
static double perform(SimClock *k, Player *p, const Cost *c, const SimIns *i,
                      const SimStep *s, Sm *sm, int q, double t) {
  bool one = p->warp < k->p->nwarp;  // of the first CTA, which is counted
  const SimMachine *m = k->m;
  double bytes, work;
  switch ((Kind)c->kind) {
    case K_NONE: return t;
    case K_ALU:
      take(k, &sm->alu[q], PIPE_ALU, t, c->work, one);
      return t + m->alu + c->slots;
    case K_SHARED:
      return take(k, &sm->shared, PIPE_SHARED, t,
                  most(s->passes, most(c->shared, 1)), one) + m->shared;
    case K_LDMATRIX:
      return take(k, &sm->shared, PIPE_SHARED, t, most(s->passes, 1), one) +
             m->matrix;
    case K_LOAD: return fetch(k, sm, s, s->lines, t, one);
    case K_STORE:
      take(k, &sm->l1, PIPE_L1, t, s->lines, one);
      take(k, &sm->memory, PIPE_MEMORY, t,
           s->sectors * (double)SECTOR / m->store, one);
      return t + (i->op == OP_ATOMIC ? m->global : 0);
    case K_CPASYNC:
      // it writes when it comes: passes beyond the fewest hold up nobody
      take(k, &sm->shared, PIPE_SHARED, t,
           s->sectors * (double)SECTOR / LINE, one);
      work = most(s->sectors * (double)SECTOR / LINE, m->copy);
      group_add(&p->copies, t, fetch(k, sm, s, work, t, one));
      return t;
    case K_CPCOMMIT: group_close(k, p, &p->copies, i, "cp.async"); return t;
    case K_CPARRIVE: p->agents = p->copies.open; return t;
    case K_MMA:
      p->tensor = t + c->work * m->mma_again;
      return take(k, &sm->tensor[q], PIPE_TENSOR, t, c->work, one) + m->tensor;
    case K_WGMMA: {
      double there = take(k, &sm->shared, PIPE_SHARED, t, c->shared, one);
      double end = take(k, &sm->tensor[q], PIPE_TENSOR, t, c->work, one);
      sm->tensor[q] = most(end, there);
      group_add(&p->sums, t, sm->tensor[q] + m->tensor);
      return t;
    }
    case K_WGCOMMIT: group_close(k, p, &p->sums, i, "wgmma"); return t;
    case K_BULKLOAD:
      p->asked = t;
      p->agents = take(k, &sm->memory, PIPE_MEMORY, t,
                       s->sectors * (double)SECTOR / m->bulk, one) +
                  m->global + m->tma;
      return t;
    case K_BULKSTORE:
      bytes = s->sectors * (double)SECTOR;
      work = take(k, &sm->fill, PIPE_FILL, t, bytes / m->fill, one);
      take(k, &sm->memory, PIPE_MEMORY, work, bytes / m->store, one);
      group_add(&p->stores, t, work + m->tma);
      return t;
    case K_BULKCOMMIT: group_close(k, p, &p->stores, i, "tma.store"); return t;
    case K_CPWAIT: case K_WGWAIT: case K_BULKWAIT: return t;
  }
  return t;
}

// False: it cannot go at p->t, which says when.
static bool play_run(SimClock *k, Player *p, const SimStep *s) {
  const SimIns *i = &k->p->ins[s->at];
  const Cost *c = &k->cost[s->at];
  Sm *sm = &k->sm[p->warp / k->p->nwarp];
  int q = p->quarter;
  double t = can_go(k, p, c, i, sm, q);
  if (c->kind != K_NONE) {
    k->stall[s->at] += t - p->t;
    if (t > p->t) {
      p->t = t;
      return false;
    }
    take(k, &sm->issue[q], PIPE_ISSUE, t, c->slots, p->warp < k->p->nwarp);
    p->last = s->at;
    p->t = t + c->slots;
  }
  double end = perform(k, p, c, i, s, sm, q, t);
  const uint32_t *id = k->id + c->ids + c->nread;
  for (uint32_t j = 0; j < c->nwrite; j++)
    p->ready[id[j]] = (uint32_t)(end + 0.5);
  return true;
}

// What agents bring to a CTA's shared memory.
static void play_agent(SimClock *k, Player *p, const SimStep *s) {
  Sm *sm = &k->sm[s->cta];
  if (!s->at) return;
  double end = most(p->agents, p->t);
  if (s->bytes)  // while they come
    end = most(end, take(k, &sm->fill, PIPE_FILL, p->asked + k->m->global,
                         s->bytes / k->m->fill, s->cta == 0) + k->m->tma);
  if (s->bytes)
    tell_agent(k, p, &k->p->ins[p->last], "tma.load", p->asked, end);
  give(k, p->stage, s->at, end);
}

static void begin(SimClock *k, Stage *s, double t) {
  s->live = k->p->nall;
  s->number = k->began++;
  s->began = t;
  for (uint32_t g = 1; g <= k->tape->ngate; g++)
    s->gate[g] = (Gate){k->parts[g], 0};
  for (int w = 0; w < k->p->nall; w++) {
    Player *p = &s->player[w];
    uint32_t *ready = p->ready;
    memset(ready, 0, k->nid * sizeof *ready);
    int slot = (int)(s - k->stage) * k->p->nwarp + w % k->p->nwarp;
    *p = (Player){.stage = s, .warp = w, .quarter = slot % QUARTERS, .t = t,
                  .ready = ready};
    push(k, p);
  }
}

// The first of all players goes on; false: nobody is left.
static bool play(SimClock *k, int64_t *left) {
  if (!k->nheap) return false;
  Player *p = k->heap[0];
  const SimReel *r = &k->tape->reel[p->warp];
  if (p->at == r->n) {
    pop(k);
    tell(k, p, (SimEvent){.kind = EVENT_WARP, .t = p->stage->began,
                          .end = p->t});
    if (p->t > k->end) k->end = p->t;
    if (--p->stage->live == 0 && *left > 0) {
      --*left;
      begin(k, p->stage, p->t + k->m->start);
    }
    return true;
  }
  const SimStep *s = &r->step[p->at];
  switch ((SimMark)s->mark) {
    case TAPE_RUN:
      if (play_run(k, p, s)) p->at++;
      sift_down(k);
      return true;
    case TAPE_GIVE:
      p->at++;
      give(k, p->stage, s->at, p->t);
      return true;
    case TAPE_NEED: {
      const Gate *g = &p->stage->gate[s->at];
      p->at++;
      if (g->missing) {
        p->gate = s->at;
        pop(k);
      } else if (g->open + k->m->barrier > p->t) {
        k->stall[p->last] += g->open + k->m->barrier - p->t;
        p->t = g->open + k->m->barrier;
        sift_down(k);
      }
      return true;
    }
    case TAPE_BEGIN: case TAPE_END:
      p->at++;
      tell(k, p, (SimEvent){.kind = s->mark == TAPE_BEGIN ? EVENT_BEGIN
                                                          : EVENT_END,
                            .what = s->at, .t = p->t, .end = p->t});
      return true;
    case TAPE_AGENT:
      p->at++;
      play_agent(k, p, s);
      return true;
  }
  return false;
}

// ---- the result ----

static bool make_room(SimClock *k) {
  size_t n = (size_t)k->tape->ngate + 1;
  k->parts = base_zeros(n * sizeof *k->parts);
  if (!k->parts) return false;
  for (int64_t s = 0; s < k->m->resident; s++) {
    k->stage[s].gate = base_zeros(n * sizeof *k->stage[s].gate);
    if (!k->stage[s].gate) return false;
  }
  for (int w = 0; w < k->tape->nreel; w++) {
    const SimReel *r = &k->tape->reel[w];
    for (size_t j = 0; j < r->n; j++)
      if ((r->step[j].mark == TAPE_GIVE || r->step[j].mark == TAPE_AGENT) &&
          r->step[j].at)
        k->parts[r->step[j].at]++;
  }
  return true;
}

static void free_room(SimClock *k) {
  base_free(k->parts);
  for (int64_t s = 0; s < k->m->resident; s++) base_free(k->stage[s].gate);
}

static SimCost *cost_at(SimTiming *out, uint32_t src) {
  for (size_t k = out->ncost; k-- > 0;)
    if (out->cost[k].src == src) return &out->cost[k];
  out->cost[out->ncost] = (SimCost){.src = src};
  return &out->cost[out->ncost++];
}

static void add_costs(const SimClock *k, SimTiming *out) {
  const SimProg *p = k->p;
  for (int w = 0; w < k->tape->nreel; w++) {
    const SimReel *r = &k->tape->reel[w];
    for (size_t j = 0; j < r->n; j++) {
      const SimStep *s = &r->step[j];
      if (s->mark != TAPE_RUN) continue;
      const Cost *c = &k->cost[s->at];
      SimCost *to = cost_at(out, p->ins[s->at].src);
      bool mma = p->ins[s->at].op == OP_WGMMA || c->kind == K_MMA;
      if (c->kind != K_NONE) to->slots++;
      to->passes += s->passes;
      if (c->kind == K_WGMMA) to->passes += (uint64_t)(c->shared + 0.5f);
      to->sectors += s->sectors;
      to->missed += s->missed;
      to->flops += (double)c->flops * (mma ? 1 : s->lanes);
    }
  }
  for (uint32_t j = 0; j < p->nins; j++)
    if (k->stall[j] > 0) cost_at(out, p->ins[j].src)->stall += k->stall[j];
}

bool simclock_play(SimClock *k, const SimTape *t, SimTiming *out) {
  int64_t left = k->m->clusters;
  k->tape = t;
  k->out = out;
  *out = (SimTiming){.steps = t->steps, .full = t->full};
  if (t->full) return true;
  out->cost = base_zeros((k->p->fn->src.n + 1) * sizeof *out->cost);
  bool ok = out->cost && make_room(k);
  if (ok) {
    for (int64_t s = 0; s < k->m->resident && left > 0; s++, left--)
      begin(k, &k->stage[s], 0);
    while (play(k, &left)) {}
    out->cycles = k->end;
    memcpy(out->busy, k->busy, sizeof out->busy);
    for (int q = PIPE_ISSUE; q <= PIPE_TENSOR; q++) out->busy[q] /= QUARTERS;
    add_costs(k, out);
  }
  free_room(k);
  return ok && !k->oom;
}
