// Cost model: estimates the time that SMs need for an event log. Each warp
// issues its instructions in order. An instruction issues when its inputs are
// ready, its quarter of the SM (one warp scheduler) is free, and its pipe
// accepts work. A result is ready after the pipe's work and a latency. The
// model always advances the warp that can issue earliest. Asynchronous copies
// fill shared memory through a separate pipe. A gate is one round of a barrier
// or one phase of an mbarrier. It opens at its last arrival or completion.
//
// A warp does not wait for the operands of an arithmetic instruction when it
// issues the instruction, because the compiler moves independent instructions
// before instructions that wait. The warp waits for its arithmetic at the end
// of a loop iteration, at branches and at barriers.
//
// The model does not simulate an SM exactly, because it does not know the
// compiler's schedule and registers. Address arithmetic that a compiler folds
// (sums with constants, loop invariants) costs nothing.
#include "timing/cost_model.h"

#include <math.h>
#include <string.h>

#include "timing/work.h"

enum { QUARTERS = 4, GROUPED = 64, SECTOR = 32, LINE = 128 };
// Cycles of work that may be queued at a pipe before an instruction must wait.
// QUEUE: for a pipe of the SM. FAR_QUEUE: for global memory.
enum { QUEUE = 64, FAR_QUEUE = 1500 };
// Number of arithmetic instructions that may issue before an earlier arithmetic
// instruction has its operands.
enum { AHEAD = 24 };
// If at least this many lanes of an atomic access one word of shared memory,
// other warps must also wait for the word.
enum { CROWD = 16 };

// Asynchronous operations of a thread or warp. `end` has the completion times
// of the latest groups. No group completes before an earlier one.
typedef struct Groups {
  // start (from) and end (open) of the operations that belong to no group yet
  double from, open;
  double end[GROUPED];
  uint32_t n;
} Groups;

// a warp of a running cluster, whose log the model plays
typedef struct Player {
  struct Stage *stage;
  // warp: number of the warp in its cluster. quarter: the warp's quarter of the
  // SM.
  int warp, quarter;
  size_t at;              // index in the log of the warp's next step
  double t;  // earliest time at which the warp can execute its next step
  uint32_t last;          // last instruction issued
  bool done;
  uint32_t gate;          // gate (event_log.h) at which the warp waits; 0: none
  double tensor;  // earliest time at which the warp can issue the next mma
  // last_end: time at which all arithmetic issued so far has its operands.
  // last_at: the arithmetic instruction whose operands are ready last.
  double last_end;
  uint32_t last_at;
  // The latest arithmetic instructions. t: time at which the instruction has
  // its operands. at: index of the instruction.
  struct { double t; uint32_t at; } ahead[AHEAD];
  uint32_t nahead;
  double turn;            // time at which the current loop iteration started
  uint32_t passes;        // number of completed loop iterations
  double given;  // earliest time at which the warp can arrive at a gate again
  // The last bulk load. asked: time at which it was issued. agents: time at
  // which its data arrives.
  double asked, agents;
  Groups copies, sums, stores;
  // time at which all copies between tensor memory and registers are done
  double moved;
  // for each value or register, by its id (work.h): time at which it is ready
  uint32_t *ready;
} Player;

typedef struct Gate {
  uint32_t missing;
  double open;
} Gate;

typedef struct Stage {    // a running cluster
  Player *player;
  Gate *gate;
  int live;
  // number of the cluster, in the order in which clusters start
  uint32_t number;
  double began;
  // for each CTA: the end of an atomic in which CROWD or more lanes access one
  // word
  double *word;
} Stage;

typedef struct Sm {
  double issue[QUARTERS], fma[QUARTERS], alu[QUARTERS], xu[QUARTERS],
         f64[QUARTERS], tensor[QUARTERS], tmem[QUARTERS];
  double shared, l1, memory, fill, peer, meet, fence;
} Sm;

// State of the cost model: what a program's instructions cost on a GPU, and the
// dependences between the instructions.
typedef struct SimClock {
  const SimProg *p;
  const SimMachine *m;
  const SimWorks *w;
  double *stall;  // for each instruction: cycles that warps waited at it
  const SimTape *tape;
  // for each gate (event_log.h): how many arrivals and completions open it
  uint32_t *parts;
  Stage *stage;
  Sm *sm;
  double busy[PIPES];
  Player **heap;
  size_t nheap;
  double end;
  uint32_t began;         // number of clusters started so far
  SimTiming *out;
  bool oom;
} SimClock;

// ---- creation ----

static SimClock *new_clock(Ctx *cx, const SimProg *p, const SimMachine *m) {
  SimClock *k = arena_zero(cx, &cx->scratch, sizeof *k);
  size_t stages = (size_t)m->resident, warps = (size_t)p->nall;
  k->p = p;
  k->m = m;
  k->w = work_new(cx, p, m);
  k->stall = arena_zero(cx, &cx->scratch, (p->nins + 1) * sizeof *k->stall);
  k->sm = arena_zero(cx, &cx->scratch, (size_t)p->ncta * sizeof *k->sm);
  k->stage = NEW(cx, Stage, stages);
  k->heap = NEW(cx, Player *, stages * warps + 1);
  for (size_t s = 0; s < stages; s++) {
    k->stage[s] = (Stage){
      .player = NEW(cx, Player, warps),
      .word = arena_zero(cx, &cx->scratch, (size_t)p->ncta * sizeof(double))};
    for (size_t w = 0; w < warps; w++)
      k->stage[s].player[w].ready = NEW(cx, uint32_t, k->w->nid);
  }
  return k;
}

// ---- heap of warps by time ----

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

// Ends the current group of operations. `op` is the operations' name.
static void group_close(SimClock *k, const Player *p, Groups *g,
                        const SimIns *i, const char *op) {
  double before = g->n ? g->end[(g->n - 1) % GROUPED] : 0;
  g->end[g->n++ % GROUPED] = g->open > before ? g->open : before;
  if (g->open > 0) tell_agent(k, p, i, op, g->from, g->open);
  g->open = 0;
}

// Returns the time at which all groups except the last `pending` ones are
// complete.
static double group_end(const Groups *g, uint32_t pending) {
  if (g->n <= pending) return 0;
  return g->end[(g->n - 1 - pending) % GROUPED];
}

// ---- gates ----

// Returns the time between the opening of p's gate and p's next instruction.
static double passage(const SimClock *k, const Player *p) {
  Op op = (Op)k->p->ins[p->last].op;
  if (op == OP_BAR) return k->m->round;
  return op == OP_CLUSTERWAIT ? k->m->cluster : k->m->barrier;
}

static void give(SimClock *k, Stage *s, uint32_t gate, double t) {
  Gate *g = &s->gate[gate];
  if (t > g->open) g->open = t;
  if (--g->missing) return;
  for (int w = 0; w < k->p->nall; w++) {
    Player *p = &s->player[w];
    if (p->gate != gate) continue;
    p->gate = 0;
    double on = g->open + passage(k, p);
    k->stall[p->last] += on > p->t ? on - p->t : 0;
    if (on > p->t) p->t = on;
    push(k, p);
  }
}

// ---- one step ----

static double most(double a, double b) { return a > b ? a : b; }

// Occupies a pipe for `work` cycles, from time t on. If the pipe is busy at
// that time, waits until it is free. Returns the time at which the work ends.
// With `counts`, adds the work to the pipe's busy cycles.
static double take(SimClock *k, double *pipe, SimPipe which, double t,
                   double work, bool counts) {
  *pipe = most(*pipe, t) + work;
  if (counts) k->busy[which] += work;
  return *pipe;
}

static double operands(const SimClock *k, const Player *p, const SimWork *c,
                       double t) {
  const uint32_t *id = k->w->id + c->ids;
  for (uint32_t j = 0; j < c->nread; j++)
    t = most(t, p->ready[id[j]]);
  return t;
}

// Returns the time at which instruction i of warp p can issue: its operands are
// ready, and its pipe accepts it. Arithmetic instructions do not wait for their
// operands here.
static double can_go(const SimClock *k, const Player *p, const SimWork *c,
                     const SimIns *i, const Sm *sm, int q) {
  double t = c->kind == K_ALU ? p->t : operands(k, p, c, p->t);
  if (c->kind == K_CPWAIT) t = most(t, group_end(&p->copies, (uint32_t)i->imm));
  if (c->kind == K_WGWAIT) t = most(t, group_end(&p->sums, (uint32_t)i->imm));
  if (c->kind == K_BULKWAIT)
    t = most(t, group_end(&p->stores, (uint32_t)i->imm));
  if (c->kind == K_NONE || c->kind == K_HEAD) return t;
  t = most(t, sm->issue[q]);
  switch ((SimWorkKind)c->kind) {
    case K_ALU:
      t = most(t, p->ahead[p->nahead % AHEAD].t);
      if (c->fma > 0) t = most(t, sm->fma[q]);
      if (c->alu > 0) t = most(t, sm->alu[q]);
      if (c->xu > 0) t = most(t, sm->xu[q]);
      return c->f64 > 0 ? most(t, sm->f64[q]) : t;
    // In an unrolled loop, a warp waits for its arithmetic only after the last
    // copy of the body.
    case K_TURN:
      return (p->passes + 1) % (uint32_t)c->work ? t : most(t, p->last_end);
    case K_BRANCH: case K_MEET: case K_FENCE:
      t = most(t, p->last_end);
      return c->alu > 0 ? most(t, sm->alu[q]) : t;
    case K_MMA: return most(t, most(sm->tensor[q], p->tensor));
    case K_WGMMA: case K_TCMMA: return most(t, sm->tensor[q] - 4 * c->work);
    case K_TCWAIT: return most(t, p->moved);
    case K_LOAD: case K_STORE:
      t = most(t, sm->l1 - QUEUE);
      return most(t, sm->memory - FAR_QUEUE);
    case K_CPASYNC:
      t = most(t, sm->memory - FAR_QUEUE);
      return most(t, sm->shared - QUEUE);
    case K_SHARED: case K_SEND: case K_ATOMIC: case K_LDMATRIX:
      return most(t, sm->shared - QUEUE);
    case K_PEER: return most(t, sm->peer - QUEUE);
    case K_NONE: case K_HEAD: case K_CPCOMMIT: case K_CPWAIT: case K_CPARRIVE:
    case K_WGCOMMIT: case K_WGWAIT: case K_TCCOMMIT: case K_TCMOVE:
    case K_BULKLOAD: case K_BULKSTORE: case K_BULKCOMMIT: case K_BULKWAIT:
      break;
  }
  return t;
}

// Returns the time at which the last sector of a global access arrives. The
// access occupies L1 for `work` cycles. With `one`, counts them as busy cycles.
static double fetch(SimClock *k, Sm *sm, const SimStep *s, double work,
                    double t, bool one) {
  double end = take(k, &sm->l1, PIPE_L1, t, work, one) + k->m->l1_hit;
  if (!s->missed) return end;
  double far = take(k, &sm->memory, PIPE_MEMORY, t,
                    s->missed * (double)SECTOR / k->m->l2, one);
  return most(end, far + k->m->global);
}

// Executes an arithmetic instruction, which occupies its pipes from time t on.
// Returns the time of the result: when the last operand is ready, plus a
// latency.
static double compute(SimClock *k, Player *p, const SimWork *c, Sm *sm, int q,
                      double t, uint32_t at) {
  bool one = p->warp < k->p->nwarp;
  double from = operands(k, p, c, t);
  if (c->fma > 0) take(k, &sm->fma[q], PIPE_FMA, t, c->fma, one);
  if (c->alu > 0) take(k, &sm->alu[q], PIPE_ALU, t, c->alu, one);
  if (c->xu > 0) take(k, &sm->xu[q], PIPE_XU, t, c->xu, one);
  if (c->f64 > 0) take(k, &sm->f64[q], PIPE_F64, t, c->f64, one);
  uint32_t slot = p->nahead++ % AHEAD;
  p->ahead[slot].t = from;
  p->ahead[slot].at = at;
  if (from > p->last_end) {
    p->last_end = from;
    p->last_at = at;
  }
  return from + c->late;
}

// Executes a fence. The warp continues when this fence and all earlier fences
// of the SM are complete. `each` is the time that the fence occupies the SM,
// and `late` is its latency.
static void fence(Player *p, Sm *sm, double each, double late, double t) {
  sm->fence = most(sm->fence, t) + each;
  p->t = most(t + late, sm->fence);
}

// Reports whether access or arrival i implies a fence.
static bool releases(const SimIns *i) {
  bool arrival = i->op == OP_MBARARRIVE || i->op == OP_MBARTX ||
                 i->op == OP_MBARTOKEN;
  if (arrival) return i->scope >= SCOPE_CLUSTER && i->sem != SEM_RELAXED;
  return i->sem >= SEM_RELEASE && i->scope >= SCOPE_CLUSTER;
}

// Executes an atomic in shared memory, and returns the time of its result.
// Lanes that access the same word are serialized. If CROWD or more lanes access
// one word, other warps also wait for that word.
static double combine(SimClock *k, Player *p, const SimWork *c, const SimIns *i,
                      const SimStep *s, Sm *sm, double t) {
  bool one = p->warp < k->p->nwarp;
  const SimMachine *m = k->m;
  double same = s->same ? s->same : 1, passes = most(s->passes, 1);
  if (c->work <= 0) {
    double work = passes + (i->idle ? 1.5 : 9.3) * cbrt((same - 1) / 31);
    return take(k, &sm->shared, PIPE_SHARED, t, work, one) + m->shared;
  }
  double end = take(k, &sm->shared, PIPE_SHARED, t, passes * m->cas * same,
                    one) + m->swapped * same;
  double *word = &p->stage->word[p->warp / k->p->nwarp];
  if (same >= CROWD) {
    *word = most(*word, t) + 0.55 * m->swapped * same;
    end = most(end, *word);
  }
  p->t = most(p->t, end - m->swapped / 2);
  return end;
}

// Executes step s of warp p at time t. Returns the time at which the result is
// ready.
static double perform(SimClock *k, Player *p, const SimWork *c, const SimIns *i,
                      const SimStep *s, Sm *sm, int q, double t) {
  // Count busy cycles only for the SM of the first CTA.
  bool one = p->warp < k->p->nwarp;
  const SimMachine *m = k->m;
  double bytes, work;
  switch ((SimWorkKind)c->kind) {
    case K_NONE: return t;
    case K_HEAD: p->turn = p->t; return t;
    case K_ALU: return compute(k, p, c, sm, q, t, s->at);
    case K_BRANCH:
      if (c->alu > 0) take(k, &sm->alu[q], PIPE_ALU, t, c->alu, one);
      return t;
    case K_TURN:
      p->passes++;
      p->t = p->turn = most(p->t, p->turn + c->late);
      return t;
    case K_MEET: p->given = sm->meet = most(sm->meet, t) + m->meet; return t;
    case K_FENCE: fence(p, sm, c->work, c->late, t); return t;
    case K_SEND:
      p->asked = t;
      p->agents = t + m->far_shared;  // fall through
    case K_SHARED:
      return take(k, &sm->shared, PIPE_SHARED, t,
                  most(s->passes, most(c->shared, 1)), one) + m->shared;
    case K_ATOMIC: return combine(k, p, c, i, s, sm, t);
    case K_PEER:
      return take(k, &sm->peer, PIPE_PEER, t,
                  most(s->passes, 1) * LINE / m->peer, one) + m->far_shared;
    case K_LDMATRIX:
      return take(k, &sm->shared, PIPE_SHARED, t, most(s->passes, 1), one) +
             m->matrix;
    case K_LOAD: return fetch(k, sm, s, s->lines, t, one);
    case K_STORE:
      take(k, &sm->l1, PIPE_L1, t, s->lines, one);
      take(k, &sm->memory, PIPE_MEMORY, t,
           s->sectors * (double)SECTOR / m->store *
             (i->op == OP_ATOMIC ? m->atomic : 1), one);
      return t + (i->op == OP_ATOMIC ? m->global : 0);
    case K_CPASYNC:
      // A cp.async writes shared memory when its data arrives, so its bank
      // conflicts do not delay other work.
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
    case K_TCMMA: {
      double end = take(k, &sm->shared, PIPE_SHARED, t, c->shared, one);
      for (int j = 0; j < QUARTERS; j++)
        end = most(end, take(k, &sm->tensor[j], PIPE_TENSOR, t, c->work, one));
      for (int j = 0; j < QUARTERS; j++) sm->tensor[j] = end;
      group_add(&p->sums, t, end + m->tensor);
      return t;
    }
    case K_TCCOMMIT:
      group_close(k, p, &p->sums, i, "tcgen05");
      p->agents = group_end(&p->sums, 0);
      return t;
    case K_TCMOVE:  // the work is one cycle for each register of a lane
      sm->tmem[q] = most(sm->tmem[q], t) + c->work;
      p->moved = most(p->moved, sm->tmem[q] + m->shared);
      return p->moved;
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
    case K_CPWAIT: case K_WGWAIT: case K_TCWAIT: case K_BULKWAIT: return t;
  }
  return t;
}

// Simulates one instruction of warp p. If it cannot issue at p->t, sets p->t to
// the time at which it can issue, and returns false.
static bool play_run(SimClock *k, Player *p, const SimStep *s) {
  const SimIns *i = &k->p->ins[s->at];
  const SimWork *c = &k->w->work[s->at];
  Sm *sm = &k->sm[p->warp / k->p->nwarp];
  int q = p->quarter;
  double t = can_go(k, p, c, i, sm, q);
  if (c->kind != K_NONE && c->kind != K_HEAD) {
    uint32_t blame = s->at;
    if (t > p->t && c->kind == K_ALU) {
      uint32_t slot = p->nahead % AHEAD;
      if (t == p->ahead[slot].t) blame = p->ahead[slot].at;
    } else if (t > p->t && t == p->last_end) {
      blame = p->last_at;
    }
    k->stall[blame] += t - p->t;
    if (t > p->t) {
      p->t = t;
      return false;
    }
    take(k, &sm->issue[q], PIPE_ISSUE, t, c->slots, p->warp < k->p->nwarp);
    p->last = s->at;
    p->given = 0;
    p->t = t + c->slots;
    if (releases(i)) {
      fence(p, sm, k->m->fence.gpu_each, k->m->fence.gpu, t);
      t = p->t;
    }
  }
  double end = perform(k, p, c, i, s, sm, q, t);
  const uint32_t *id = k->w->id + c->ids + c->nread;
  for (uint32_t j = 0; j < c->nwrite; j++)
    p->ready[id[j]] = (uint32_t)(end + 0.5);
  return true;
}

// Simulates the completion of an asynchronous operation, which may have filled
// shared memory of a CTA.
static void play_agent(SimClock *k, Player *p, const SimStep *s) {
  Sm *sm = &k->sm[s->cta];
  if (!s->at) return;
  double end = most(p->agents, p->t);
  // The pipe that fills shared memory writes bytes as they arrive.
  if (s->bytes)
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
  memset(s->word, 0, (size_t)k->p->ncta * sizeof *s->word);
  for (uint32_t g = 1; g <= k->tape->ngate; g++)
    s->gate[g] = (Gate){k->parts[g], 0};
  for (int w = 0; w < k->p->nall; w++) {
    Player *p = &s->player[w];
    uint32_t *ready = p->ready;
    memset(ready, 0, k->w->nid * sizeof *ready);
    int slot = (int)(s - k->stage) * k->p->nwarp + w % k->p->nwarp;
    *p = (Player){.stage = s, .warp = w, .quarter = slot % QUARTERS, .t = t,
                  .ready = ready};
    push(k, p);
  }
}

// Advances the warp with the earliest time by one step. *left is the number of
// clusters that have not started. Returns false if all warps have ended.
static bool play(SimClock *k, int64_t *left) {
  if (!k->nheap) return false;
  Player *p = k->heap[0];
  const SimReel *r = &k->tape->reel[p->warp];
  if (p->at == r->n) {
    pop(k);
    p->t = most(p->t, p->last_end);
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
      give(k, p->stage, s->at,
           most(p->t, p->given) + (s->cta ? k->m->far_shared : 0));
      return true;
    case TAPE_NEED: {
      const Gate *g = &p->stage->gate[s->at];
      p->at++;
      if (g->missing) {
        p->gate = s->at;
        pop(k);
      } else if (g->open + passage(k, p) > p->t) {
        k->stall[p->last] += g->open + passage(k, p) - p->t;
        p->t = g->open + passage(k, p);
        sift_down(k);
      }
      return true;
    }
    // A named range begins or ends when all earlier arithmetic has its
    // operands.
    case TAPE_BEGIN: case TAPE_END: {
      double t = most(p->t, p->last_end);
      p->at++;
      tell(k, p, (SimEvent){.kind = s->mark == TAPE_BEGIN ? EVENT_BEGIN
                                                          : EVENT_END,
                            .what = s->at, .t = t, .end = t});
      return true;
    }
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
      const SimWork *c = &k->w->work[s->at];
      SimCost *to = cost_at(out, p->ins[s->at].src);
      bool mma = c->kind == K_WGMMA || c->kind == K_MMA;
      if (c->kind != K_NONE) to->slots++;
      to->passes += s->passes;
      if (c->kind == K_WGMMA || c->kind == K_TCMMA)
        to->passes += (uint64_t)(c->shared + 0.5f);
      to->sectors += s->sectors;
      to->missed += s->missed;
      to->flops += (double)c->flops * (mma ? 1 : s->lanes);
    }
  }
  for (uint32_t j = 0; j < p->nins; j++)
    if (k->stall[j] > 0) cost_at(out, p->ins[j].src)->stall += k->stall[j];
}

static bool play_tape(SimTape *t, bool (*go)(void *ud), void *ud,
                      SimTiming *out) {
  enum { OFTEN = 1 << 12 };
  SimClock *k = t->clock;
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
    for (uint64_t n = 1; play(k, &left); n++)
      if (n % OFTEN == 0 && !go(ud)) break;
    out->cycles = k->end;
    memcpy(out->busy, k->busy, sizeof out->busy);
    for (int q = PIPE_ISSUE; q <= PIPE_TENSOR; q++) out->busy[q] /= QUARTERS;
    add_costs(k, out);
  }
  free_room(k);
  return ok && !k->oom;
}

static void start(Ctx *cx, const SimProg *p, const SimMachine *m,
                  SimTape **tape) {
  SimClock *k = new_clock(cx, p, m);
  *tape = event_log_new(p, m->l1, m->steps);
  if (*tape) (*tape)->clock = k;
}

const SimLog clock_log = {
  .start = start, .play = play_tape, .stop = event_log_free,
  .begin = event_log_begin, .end = event_log_end, .global = event_log_global,
  .same = event_log_same, .mark = event_log_mark, .give = event_log_give,
  .need = event_log_need, .agent = event_log_agent, .land = event_log_land,
};
// SPDX-License-Identifier: MIT
