// Finds warp roles. Threads have different roles if their code is in different
// halves of a branch on the thread index, or in loops in different branches.
#include "ir/operands.h"
#include "lint/thread_value.h"
#include "sim/bulk.h"
#include "watch/warp_roles.h"

#include <string.h>

bool warp_roles_has(const SimProg *p, Op op) {
  for (uint32_t k = 0; k < p->nins; k++)
    if (p->ins[k].op == op) return true;
  return false;
}

// ---- regions around a line ----

enum { DEEP = 32, MOST_OPERANDS = 64 };

typedef struct Region {
  uint32_t head;
  uint8_t op;
  bool other;              // whether the region is the second half of a branch
} Region;
typedef struct Path { Region r[DEEP]; int n; } Path;

// Reports whether i accesses data, which is memory other than mbarriers and
// tensor maps.
static bool accesses(const SimIns *i) {
  Op op = (Op)i->op;
  bool other = op_flag_kind(op) == FLAGS_MBAR || operand_has(op, ROLE_TMAP);
  return op_effect(op) & EF_MEMORY && !other;
}

// Changes *at from the regions around instruction k to the regions around
// instruction k + 1. Returns false if regions are nested too deeply.
static bool step(const SimProg *p, uint32_t k, Path *at) {
  const SimIns *i = &p->ins[k];
  if (i->op == OP_ELSE) at->r[at->n - 1].other = true;
  if (i->op == OP_END) at->n--;
  if (!op_opens((Op)i->op)) return true;
  if (at->n == DEEP) return false;
  at->r[at->n++] = (Region){k, i->op, false};
  return true;
}

// Finds the regions around the first access of line src to data. Returns false
// if the line has no such access, or if regions are nested too deeply.
static bool path_of(const SimProg *p, uint32_t src, Path *at) {
  at->n = 0;
  for (uint32_t k = 0; k < p->nins; k++) {
    if (p->ins[k].src == src && accesses(&p->ins[k])) return true;
    if (!step(p, k, at)) return false;
  }
  return false;
}

static bool loops(const Path *at, int from) {
  for (int k = from; k < at->n; k++)
    if (op_loops((Op)at->r[k].op)) return true;
  return false;
}

// Reports whether value r depends on the thread index. Examines at most *left
// operands.
static bool by_thread(const Fn *fn, Ref r, int *left) {
  const Ins *i = ir_get(fn, r);
  if (i->op == OP_SREG)
    return i->imm == SR_TID_X || i->imm == SR_TID_Y || i->imm == SR_TID_Z ||
           i->imm == SR_LANE || i->imm == SR_WARP;
  if (i->op == OP_INTRIN || i->op == OP_ASK) return true;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if ((o.kind == OPERAND_VALUE || o.kind == OPERAND_PRED) &&
        --*left > 0 && by_thread(fn, o.ref, left))
      return true;
  return false;
}

bool warp_roles_parts(const SimProg *p, const SimIns *branch) {
  int left = MOST_OPERANDS;
  return by_thread(p->fn, branch->ref, &left);
}

// Reports whether different threads execute the code at the two paths.
static bool parted(const SimProg *p, const Path *a, const Path *b) {
  int k = 0;
  while (k < a->n && k < b->n && a->r[k].head == b->r[k].head &&
         a->r[k].other == b->r[k].other)
    k++;
  if (k == a->n || k == b->n || a->r[k].op != OP_IF || b->r[k].op != OP_IF)
    return false;
  if (!warp_roles_parts(p, &p->ins[a->r[k].head])) return false;
  return a->r[k].head == b->r[k].head || (loops(a, k) && loops(b, k));
}

bool warp_roles_apart(const SimProg *p, uint32_t src, uint32_t src2) {
  Path a, b;
  return path_of(p, src, &a) && path_of(p, src2, &b) && parted(p, &a, &b);
}

// Returns the memory object that i fills, or NULL. Sets *copy to whether i is
// an asynchronous copy whose bytes an mbarrier counts.
static const SimMem *filled_by(const SimProg *p, const SimIns *i, bool *copy) {
  const Ins *own = ir_get(p->fn, i->ref);
  Ref dst = operand_ref(p->fn, own, ROLE_DST);
  *copy = op_effect((Op)i->op) & EF_LATER && operand_has((Op)i->op, ROLE_BAR);
  bool store = i->op == OP_ST || i->op == OP_COPY;
  return dst && own->op == i->op && (*copy || store) ? p->mem[dst] : NULL;
}

uint32_t warp_roles_bringer(const SimProg *p, const SimMem *m, uint32_t src,
                            SimLack *lack) {
  Path own, at = {.n = 0};
  bool known = path_of(p, src, &own);
  for (uint32_t k = 0; k < p->nins; known = known && step(p, k, &at), k++) {
    bool copy;
    const SimMem *to = filled_by(p, &p->ins[k], &copy);
    if (!to || to->index != m->index) continue;
    if (!copy && !(known && parted(p, &at, &own))) continue;
    *lack = copy ? LACK_WAIT : LACK_ROLES;
    return p->ins[k].src;
  }
  return 0;
}

bool warp_roles_some(const SimWarp *w) {
  const SimProg *p = w->cluster->prog;
  for (uint32_t k = 0; k < w->depth; k++) {
    const SimIns *head = &p->ins[w->frame[k].head];
    if (head->op == OP_IF && warp_roles_parts(p, head)) return true;
  }
  return false;
}

// ---- reachable instructions ----

// Returns the index in w->frame of the outermost loop that w executes, or -1 if
// it executes none.
static int loop_of(const SimWarp *w) {
  for (uint32_t k = 0; k < w->depth; k++) {
    if (op_loops((Op)w->cluster->prog->ins[w->frame[k].head].op)) return (int)k;
  }
  return -1;
}

// Reports whether the ELSE at k belongs to a branch that w has entered, and w
// will skip the second half of this branch.
static bool leaves(const SimWarp *w, uint32_t k) {
  for (uint32_t f = 0; f < w->depth; f++)
    if (w->cluster->prog->ins[w->frame[f].head].jump == k)
      return !w->frame[f].other;
  return false;
}

// Reads value r of lane l, if w computed r before instruction `first`. Returns
// false if it did not, so that r may still change.
static bool computed(const SimWarp *w, Ref r, uint32_t first, int l,
                     uint64_t *u) {
  const SimProg *p = w->cluster->prog;
  uint32_t slot = p->slot[r], k = 0, n = 0;
  bool wide = sim_wide(ir_type(p->fn, r)), spread;
  while (k < p->ninit && p->init[k].slot != slot) k++;
  while (k == p->ninit && n < first && p->ins[n].ref != r) n++;
  if (k == p->ninit && n == first) return false;
  spread = k < p->ninit ? p->init[k].spread
                        : !p->ins[n].uniform || p->ins[n].spread;
  memcpy(u, w->v + slot + (spread ? l * (wide ? 8 : 4) : 0), wide ? 8 : 4);
  return true;
}

// Evaluates value r of lane l, if it depends only on values that w computed
// before instruction `first`, through at most `depth` operations.
static bool evaluate(const SimWarp *w, Ref r, uint32_t first, int l, int depth,
                     uint64_t *u) {
  const Fn *fn = w->cluster->prog->fn;
  const Ins *i = ir_get(fn, r);
  uint64_t v[3] = {0};
  *u = 0;
  if (i->op != OP_CONST && computed(w, r, first, l, u)) return true;
  if (!depth || !thread_value_has(fn, i)) return false;
  for (int k = 0; k < 3; k++)
    if (i->a[k] && !evaluate(w, i->a[k], first, l, depth - 1, &v[k]))
      return false;
  return thread_value(fn, i, w->in * LANES + l, v, u);
}

// Reports whether the condition of branch i is known to differ from `want` in
// all lanes of w, in every later execution of i. w continues at instruction
// `first`, or in a loop that begins there.
static bool never(const SimWarp *w, uint32_t first, const SimIns *i,
                  bool want) {
  enum { DEPTH = 8 };
  const Fn *fn = w->cluster->prog->fn;
  uint32_t lanes = w->split.part ? w->valid : w->split.here;
  for (uint32_t m = lanes & ~w->gone; m; m &= m - 1) {
    uint64_t u;
    if (!evaluate(w, ir_get(fn, i->ref)->a[0], first, __builtin_ctz(m), DEPTH,
                  &u) || (u & 1) == want)
      return false;
  }
  return true;
}

// Reports whether w, which continues at instruction `first`, may enter all
// branches around instruction k.
static bool enters(const SimWarp *w, uint32_t first, uint32_t k) {
  const SimIns *ins = w->cluster->prog->ins;
  for (const SimIns *i = &ins[first]; i < &ins[k]; i++) {
    if (i->op != OP_IF) continue;
    const SimIns *other = &ins[i->jump];
    bool half = other->op == OP_ELSE && i->jump < k && other->jump > k;
    if ((i->jump > k || half) && never(w, first, i, !half)) return false;
  }
  return true;
}

bool warp_roles_ahead(const SimWarp *w, SimIs *is, const void *ud) {
  const SimProg *p = w->cluster->prog;
  int loop = loop_of(w);
  uint32_t first = loop >= 0 ? w->frame[loop].head : w->pc, k = first;
  for (; loop >= 0 && k < p->ins[first].jump; k++)
    if (is(&p->ins[k], ud) && enters(w, first, k)) return true;
  // Other lanes of a diverged warp may be at any instruction, so search all
  // instructions.
  if (w->split.part) k = first = 0;
  for (; k < p->nins; k++) {
    if (p->ins[k].op == OP_ELSE && leaves(w, k)) k = p->ins[k].jump;
    if (is(&p->ins[k], ud) && enters(w, first, k)) return true;
  }
  return false;
}

static bool is_shared(const SimMem *m) { return m->memory == MEMORY_SHARED; }

// Returns 1 if i fills shared memory, -1 if i reads shared memory, and 0
// otherwise.
static int fills(const SimIns *i) {
  OpClass c = op_class((Op)i->op);
  if (c == CLASS_BULKLOAD || c == CLASS_CPASYNC || c == CLASS_SEND ||
      i->op == OP_MBARTX)
    return 1;
  if (c == CLASS_BULKSTORE || c == CLASS_MATRIX || i->op == OP_WGMMA)
    return -1;
  if (i->op == OP_LD || i->op == OP_ST)
    return !is_shared(((const SimSide *)i->x)->mem) ? 0
           : i->op == OP_ST                         ? 1 : -1;
  if (i->op != OP_COPY) return 0;
  const SimCopy *copy = i->x;
  return is_shared(copy->dst.mem) ? 1 : is_shared(copy->src.mem) ? -1 : 0;
}

bool warp_roles_fills(const SimWarp *w) {
  const SimProg *p = w->cluster->prog;
  for (uint32_t k = w->pc; k < p->nins; k++) {
    if (p->ins[k].op == OP_ELSE && leaves(w, k)) k = p->ins[k].jump;
    int how = fills(&p->ins[k]);
    if (how) return how > 0;
  }
  return false;
}
// SPDX-License-Identifier: MIT
