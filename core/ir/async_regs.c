// Finds misuse of registers that a wgmma or tcgen05.ld still uses
// (async_regs.h), by data-flow analysis over the regions. The analysis repeats
// a loop until the merged state of all paths no longer changes.
#include "ir/async_regs.h"

#include <string.h>

#include "atoms/atom.h"
#include "ir/operands.h"

// State of one register element. The ages `writes` and `reads` are 0 if no
// pending wgmma writes or reads the element. Otherwise an age is 1 + the number
// of commit_groups after that wgmma.
typedef struct Cell {
  Ref by;          // wgmma that uses the element as accumulator or as A
  // last instruction that used the element since the last wgmma.fence
  Ref used;
  uint8_t writes, reads;  // ages of the pending write and of the pending read
  bool stale;  // whether no wgmma.fence followed the last use of the element
  bool constant;   // for kernels in PTX: whether the element holds a constant
} Cell;

enum { OLDEST = 255 };

typedef struct Region {
  Ref head;
  Cell *leave;     // merged states of all paths that leave this region by a
                   // break
  bool left;
} Region;

typedef struct Walk {
  Ctx *cx;
  const Fn *fn;
  uint32_t *first;  // index of the first cell of each memory object
  size_t n;
  Cell *cell;       // state of each cell at the current instruction
  bool gone;        // whether no path reaches the current instruction
  Ref *end;         // the END of each region, by the index of the instruction
                    // that opens the region
  Region *open;     // enclosing regions, innermost last
  size_t nopen;
  Flight bad;
  FlightDone *done;
  void *ud;
} Walk;

// ---- states ----

static Cell *copy_of(Walk *w, const Cell *from) {
  Cell *c = NEW(w->cx, Cell, w->n + 1);
  memcpy(c, from, w->n * sizeof *c);
  return c;
}

// Merges age `from` into *to: keeps the age of the younger pending operation,
// which completes last. Returns true if *to changed.
static bool join_age(uint8_t *to, uint8_t from) {
  if (!from || (*to && *to <= from)) return false;
  *to = from;
  return true;
}

// Merges the states `from` of another path into `to`. Returns true if `to`
// changed.
static bool join(Walk *w, Cell *to, const Cell *from) {
  bool news = false;
  for (size_t k = 0; k < w->n; k++) {
    bool age = join_age(&to[k].writes, from[k].writes);
    age |= join_age(&to[k].reads, from[k].reads);
    if (age) to[k].by = from[k].by;
    if (from[k].stale && !to[k].stale) {
      to[k].stale = news = true;
      to[k].used = from[k].used;
    }
    if (to[k].constant && !from[k].constant) {
      to[k].constant = false;
      news = true;
    }
    news |= age;
  }
  return news;
}

static void leave_to(Walk *w, Region *r) {
  if (w->gone) return;
  if (!r->left) r->leave = copy_of(w, w->cell);
  else join(w, r->leave, w->cell);
  r->left = true;
}

// ---- operands ----

static void found(Walk *w, FlightKind kind, Ref at, Ref other, Ref mem,
                  int64_t cell) {
  if (w->bad.kind || w->gone) return;
  int32_t k = (int32_t)ir_get(w->fn, mem)->imm;
  w->bad = (Flight){kind, at, other, k, cell - w->first[k]};
}

// Sets [*lo,*hi) to the range of cells for `bits` bits of mem, starting at
// element e.
static void cells(Walk *w, Ref mem, int64_t e, int64_t bits, int64_t *lo,
                  int64_t *hi) {
  const Mem *m = ir_memof(w->fn, mem);
  int own = dtype_bits(m->type), each = dtype_bits(ir_type(w->fn, mem));
  int64_t at = e * each;
  *lo = at / own;
  *hi = (at + bits + own - 1) / own;
  if (*hi > m->count) *hi = m->count;
  *lo += w->first[ir_get(w->fn, mem)->imm];
  *hi += w->first[ir_get(w->fn, mem)->imm];
}

// Reports, for a kernel in PTX, whether instruction r writes a constant to
// registers: a number, or a copy of a register that holds a constant.
static bool writes_constant(Walk *w, Ref r, Ref mem) {
  const Ins *i = ir_get(w->fn, r);
  int64_t n, lo, hi;
  if (i->op != OP_ST || !ir_memof(w->fn, mem)->ptx) return false;
  Ref v = i->a[2];
  while (ir_get(w->fn, v)->op == OP_BITCAST) v = ir_get(w->fn, v)->a[0];
  const Ins *from = ir_get(w->fn, v);
  if (from->op == OP_CONST) return true;
  if (from->op != OP_LD || ir_get(w->fn, from->a[0])->op != OP_RMEM ||
      !ir_const(w->fn, from->a[1], &n)) {
    return false;
  }
  cells(w, from->a[0], n, dtype_bits(from->type), &lo, &hi);
  while (lo < hi && w->cell[lo].constant) lo++;
  return lo == hi;
}

// Reports whether `op`, such as wgmma.wait_group, waits for the operation that
// is pending on cell c.
static bool waits_for(const Walk *w, Op op, const Cell *c) {
  return agent_rows[op_agent((Op)ir_get(w->fn, c->by)->op)].done == op;
}

static void use(Walk *w, Ref r, Ref mem, int64_t e, int64_t bits,
                bool written) {
  int64_t lo, hi;
  bool constant = written && writes_constant(w, r, mem);
  cells(w, mem, e, bits, &lo, &hi);
  for (; lo < hi; lo++) {
    Cell *c = &w->cell[lo];
    bool idle = !c->writes && !c->reads;
    if (written) c->constant = constant;
    // A wgmma needs no fence after writes of constants: compilers move such
    // writes after the fence anyway, and ptxas orders the writes.
    if (idle && c->constant) continue;
    bool load = c->writes && waits_for(w, OP_TCWAITLD, c);
    if (load) found(w, FLIGHT_LOAD, r, c->by, mem, lo);
    else if (c->writes) found(w, FLIGHT_READ, r, c->by, mem, lo);
    else if (written && c->reads) found(w, FLIGHT_WRITE, r, c->by, mem, lo);
    c->stale = true;
    c->used = r;
  }
}

// Records that instruction r, which is not an MMA, reads or writes the
// registers of operand o.
static void use_operand(Walk *w, Ref r, const Operand *o) {
  if (!o->ref || (o->kind != OPERAND_RUN && o->kind != OPERAND_MEM)) return;
  if (ir_get(w->fn, o->ref)->op != OP_RMEM) return;
  if (o->kind == OPERAND_MEM) {
    int64_t e = ir_get(w->fn, o->off)->imm;
    use(w, r, o->ref, e, o->bits, o->written);
  }
  for (int k = 0; o->kind == OPERAND_RUN && k < o->n; k++)
    use(w, r, o->ref, o->reg[k], o->bits, o->written);
}

// Reports whether MMAs r and `by` have different shapes. MMAs of equal shapes
// may use the same accumulators without a wait between them.
static bool other_shape(const Walk *w, Ref r, Ref by) {
  const AtomMma *a = atom_mma((int)ir_get(w->fn, r)->imm);
  const AtomMma *b = atom_mma((int)ir_get(w->fn, by)->imm);
  return a->n != b->n || a->k != b->k;
}

static void issue_run(Walk *w, Ref r, const Operand *o) {
  for (int k = 0; k < o->n; k++) {
    int64_t lo, hi;
    cells(w, o->ref, o->reg[k], o->bits, &lo, &hi);
    for (; lo < hi; lo++) {
      Cell *c = &w->cell[lo];
      if (c->stale) found(w, FLIGHT_FENCE, r, c->used, o->ref, lo);
      if (o->written && c->reads)
        found(w, FLIGHT_WRITE, r, c->by, o->ref, lo);
      if (!o->written && c->writes)
        found(w, FLIGHT_READ, r, c->by, o->ref, lo);
      if (o->written && c->writes && other_shape(w, r, c->by))
        found(w, FLIGHT_SHAPE, r, c->by, o->ref, lo);
      *(o->written ? &c->writes : &c->reads) = 1;
      if (o->written) c->constant = false;
      c->by = r;
    }
  }
}

// Records that r, a load from tensor memory, writes registers.
static void load_run(Walk *w, Ref r, const Operand *o) {
  for (int k = 0; k < o->n; k++) {
    int64_t lo, hi;
    cells(w, o->ref, o->reg[k], o->bits, &lo, &hi);
    for (; lo < hi; lo++) {
      Cell *c = &w->cell[lo];
      if (c->writes || c->reads) found(w, FLIGHT_LOAD, r, c->by, o->ref, lo);
      *c = (Cell){.by = r, .used = r, .writes = 1, .stale = true};
    }
  }
}

// ---- instructions ----

static void commit(Walk *w) {
  for (size_t k = 0; k < w->n; k++) {
    Cell *c = &w->cell[k];
    if (!waits_for(w, OP_WGWAIT, c)) continue;
    if (c->writes && c->writes < OLDEST) c->writes++;
    if (c->reads && c->reads < OLDEST) c->reads++;
  }
}

static void wait(Walk *w, Ref r, int64_t pending) {
  Ref told = 0;
  Op op = (Op)ir_get(w->fn, r)->op;
  for (size_t k = 0; k < w->n; k++) {
    Cell *c = &w->cell[k];
    if (!waits_for(w, op, c)) continue;
    if (c->reads && c->reads - 1 > pending) c->reads = 0;
    if (!c->writes || c->writes - 1 <= pending) continue;
    c->writes = 0;
    if (w->done && !w->gone && c->by != told) w->done(w->ud, r, c->by);
    told = c->by;
  }
}

static void declare(Walk *w, Ref r) {
  const Ins *i = ir_get(w->fn, r);
  const Mem *m = &w->fn->mem.p[i->imm];
  if (m->ref != r) return;
  for (int64_t k = 0; k < m->count; k++)
    w->cell[w->first[i->imm] + k] = (Cell){.stale = true};
}

static void plain(Walk *w, Ref r) {
  const Ins *i = ir_get(w->fn, r);
  Operand o;
  if (i->op == OP_RMEM) declare(w, r);
  else if (i->op == OP_WGCOMMIT) commit(w);
  else if (i->op == OP_WGWAIT) wait(w, r, i->imm);
  // loads from tensor memory have no groups: wait for all
  else if (i->op == OP_TCWAITLD) wait(w, r, -1);
  else if (i->op == OP_WGFENCE)
    for (size_t k = 0; k < w->n; k++) w->cell[k].stale = false;
  else if (op_effect((Op)i->op) & (EF_REGS | EF_MEMORY))
    for (Operands a = operands_of(w->fn, i); operands_next(&a, &o);) {
      if (i->op == OP_TCLD && o.kind == OPERAND_RUN) load_run(w, r, &o);
      else if (i->op != OP_WGMMA) use_operand(w, r, &o);
      else if (o.kind == OPERAND_RUN) issue_run(w, r, &o);
    }
}

// ---- regions ----

static void leave(Walk *w, const Ins *i) {
  int64_t always = -1;  // value of the condition if it is constant; -1: unknown
  ir_const(w->fn, i->a[0], &always);
  if (always != 0) leave_to(w, &w->open[w->nopen - (size_t)i->imm]);
  if (always == 1) w->gone = true;
}

static Ref region(Walk *w, Ref head);

// Visits the instructions from r to the END or ELSE of r's region. Returns the
// index of that END or ELSE.
static Ref body(Walk *w, Ref r) {
  for (; r < w->fn->ins.n; r++) {
    const Ins *i = ir_get(w->fn, r);
    unsigned effect = op_effect((Op)i->op);
    if (effect & EF_CLOSES) return r;
    if (effect & EF_OPENS) {
      r = region(w, r);
    } else if (i->op == OP_BREAKIF) {
      leave(w, i);
    } else {
      plain(w, r);
    }
  }
  return r;
}

static void branch(Walk *w, Ref head) {
  Cell *before = copy_of(w, w->cell);
  bool gone = w->gone;
  Ref mid = body(w, head + 1);
  Cell *then = w->cell;
  bool then_gone = w->gone;
  w->cell = before, w->gone = gone;
  if (ir_get(w->fn, mid)->op == OP_ELSE) body(w, mid + 1);
  if (w->gone) w->cell = then, w->gone = then_gone;
  else if (!then_gone) join(w, w->cell, then);
}

static bool endless(const Ins *i) { return i->op == OP_LOOP; }

static void loop(Walk *w, Ref head) {
  const Ins *i = ir_get(w->fn, head);
  Cell *top = copy_of(w, w->cell);
  bool gone = w->gone, news = true;
  while (news && !w->bad.kind) {
    memcpy(w->cell, top, w->n * sizeof *top);
    w->gone = gone;
    body(w, head + 1);
    news = !w->gone && i->op != OP_ONCE && join(w, top, w->cell);
  }
  if (i->op == OP_FOR) memcpy(w->cell, top, w->n * sizeof *top);
  if (i->op == OP_FOR) w->gone = gone;
  // the loop has no condition, so only a break leaves it
  if (endless(i)) w->gone = true;
}

// Visits the region that instruction `head` opens. Returns the region's END.
static Ref region(Walk *w, Ref head) {
  w->open[w->nopen++] = (Region){.head = head};
  if (ir_get(w->fn, head)->op == OP_IF) branch(w, head);
  else loop(w, head);
  Region r = w->open[--w->nopen];
  if (r.left && w->gone) w->cell = r.leave, w->gone = false;
  else if (r.left) join(w, w->cell, r.leave);
  return w->end[head];
}

static void find_ends(Walk *w) {
  const Fn *fn = w->fn;
  Ref *stack = NEW(w->cx, Ref, fn->ins.n);
  size_t n = 0, most = 0;
  w->end = NEW(w->cx, Ref, fn->ins.n);
  for (Ref r = 1; r < fn->ins.n; r++) {
    unsigned effect = op_effect((Op)ir_get(fn, r)->op);
    bool opens = effect & EF_OPENS, closes = effect & EF_CLOSES;
    if (opens && !closes) stack[n++] = r;
    if (n > most) most = n;
    if (closes && !opens) w->end[stack[--n]] = r;
  }
  w->open = NEW(w->cx, Region, most + 1);
}

static bool has_any(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++)
    if (ir_get(fn, r)->op == OP_WGMMA || ir_get(fn, r)->op == OP_TCLD)
      return true;
  return false;
}

Flight async_regs_run(Ctx *cx, const Fn *fn, FlightDone *done, void *ud) {
  Walk w = {.cx = cx, .fn = fn, .done = done, .ud = ud};
  if (!has_any(fn)) return w.bad;
  w.first = NEW(cx, uint32_t, fn->mem.n + 1);
  for (size_t k = 0; k < fn->mem.n; k++) {
    w.first[k] = (uint32_t)w.n;
    if (fn->mem.p[k].space == SP_RMEM) w.n += (size_t)fn->mem.p[k].count;
  }
  w.cell = arena_zero(cx, &cx->scratch, (w.n + 1) * sizeof *w.cell);
  find_ends(&w);
  body(&w, 1);
  return w.bad;
}
// SPDX-License-Identifier: MIT
