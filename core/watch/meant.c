// Finds the arguments of which a kernel may leave out a part on purpose.
// cover.c reports a part that is never read or stored, unless the kernel may
// leave it out on purpose. This is the case if an address of the argument
// depends on one of the inputs below. It is also the case if a condition or a
// loop around the accesses depends on one of them:
// - data: values in global memory, clocks, inline PTX;
// - a scalar argument of the kernel, unless a condition compares with it, or a
//   loop ends at it and it is an extent of the argument;
// - the block index, in a comparison with a number that is not a bound of an
//   argument. A bound is an extent, or a number that divides an extent (a
//   number of tiles).
//
// Dependences are found by a forward pass over the function. The pass is
// repeated until nothing changes, because variables and registers are mutable.
#include "decode/footprint.h"
#include "ir/intrin.h"
#include "ir/operands.h"
#include "layout/algebra.h"
#include "layout/notation.h"
#include "watch/meant.h"

#include <string.h>

// Inputs on which a value may depend. TICKET is the result of atomics that add
// a constant, as when blocks draw numbers of work items.
enum { ON_DATA = 1, ON_SCALAR = 2, ON_BLOCK = 4, ON_LOOP = 8,
       ON_THREAD = 16, ON_TICKET = 32, FREE = ON_DATA | ON_TICKET,
       GIVEN = ON_DATA | ON_SCALAR };

// The state of the analysis. Arrays are indexed by instruction, unless noted.
typedef struct Meant {
  Ctx *cx;
  const SimProg *p;
  const Fn *fn;
  // the inputs on which the instruction's value, variable or object depends
  uint8_t *on;
  // for each scalar argument: whether it is an extent or stride of a layout
  bool *sizes;
  // Linked lists. writer, next: the instructions that write a variable or a
  // register object. leaver, after: the BREAKIFs that leave a region.
  Ref *writer, *next;
  Ref *leaver, *after;
  // met[r] is the number of the last search that visited instruction r. search:
  // number of searches so far.
  uint32_t *met, search;
  // for a condition or a region: set of the arguments for which it was
  // searched; argument k is bit k % 64
  uint64_t *done;
  SimMeant *all;     // an entry for each argument of the kernel
  SimShape *shape;   // shape of each argument; rank 0: unknown
} Meant;

// ---- shapes ----

static bool put_shape(Ctx *cx, SimShape *s, Layout l) {
  s->rank = tup_rank(l.shape);
  if (s->rank > COVER_MODES || tup_leaves(l.shape) > COVER_LEAVES) return false;
  Tup mode = tup_first(l.shape);
  const Dim *stride = l.stride;
  for (int k = 0; k < s->rank; k++, mode = tup_next(mode)) {
    size_t n = tup_leaves(mode);
    Dim *leaf = NEW(cx, Dim, n);
    tup_collect(mode, leaf);
    s->size[k] = 1;
    for (size_t j = 0; j < n; j++, s->n++) {
      int64_t extent = dim_value(leaf[j]), d = dim_value(*stride++);
      if (d < 0 || extent < 1) return false;
      s->of[s->n] = k;
      s->step[s->n] = s->size[k];
      // a mode of stride 0 repeats a single element
      s->extent[s->n] = d ? extent : 1;
      s->stride[s->n] = d;
      s->size[k] *= s->extent[s->n];
    }
  }
  return true;
}

static bool map_shape(SimShape *s, const TensorMap *m, int bits) {
  SimFootprint t = {0};
  if (!footprint_map(&t, m, bits)) return false;
  s->rank = s->n = t.n;
  for (int k = 0; k < t.n; k++) {
    if (m->step[k] > 1) return false;
    s->of[k] = k;
    s->step[k] = 1;
    s->size[k] = s->extent[k] = t.extent[k];
    s->stride[k] = t.stride[k];
  }
  return true;
}

int32_t meant_shape(Ctx *cx, const SimProg *p, int32_t k, SimShape *s) {
  const Fn *fn = p->fn;
  for (size_t j = 0; j < fn->mem.n; j++) {
    const Mem *m = &fn->mem.p[j];
    if (!mem_outlives(m) || m->arg != k) continue;
    const LaunchArg *a = &p->launch->arg[k];
    memset(s, 0, sizeof *s);
    if (m->ptx || dtype_bits(m->type) < 8) return -1;
    if (a->map) return map_shape(s, a->map, dtype_bits(m->type)) ? (int32_t)j
                                                                : -1;
    Layout l;
    if (!footprint_parse(cx, p->launch, m, &l)) return -1;
    return put_shape(cx, s, l) ? (int32_t)j : -1;
  }
  return -1;
}

// Reports whether n is a bound of an argument: an extent, an extent minus 1, or
// a number that divides an extent or the number of elements.
static bool is_bound(const Meant *g, int64_t n) {
  if (n == 0 || n == INT64_MIN) return false;
  if (n < 0) n = -n;
  for (size_t k = 0; k < g->fn->arg.n; k++) {
    const SimShape *s = &g->shape[k];
    int64_t size = 1;
    for (int j = 0; j < s->rank; j++) {
      size *= s->size[j];
      if (s->size[j] % n == 0 || s->size[j] - 1 == n) return true;
    }
    if (s->rank && size % n == 0) return true;
  }
  return false;
}

// Reports whether r is a scalar argument whose value is an extent of shape s. A
// loop that ends at such an argument omits no coordinate of a mode of this
// extent.
static bool is_extent(const Meant *g, const SimShape *s, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  if (i->op != OP_ARG) return false;
  int64_t n = (int32_t)g->p->launch->arg[i->imm].bits;
  for (int k = 0; k < s->rank; k++)
    if (s->size[k] == n) return true;
  return false;
}

static bool is_any_extent(const Meant *g, Ref r) {
  for (size_t k = 0; k < g->fn->arg.n; k++)
    if (is_extent(g, &g->shape[k], r)) return true;
  return false;
}

// ---- what values depend on ----

static uint8_t on_arg(const Meant *g, const Ins *i) {
  return g->sizes[i->imm] ? 0 : ON_SCALAR;
}

static uint8_t on_special(SReg s) {
  bool block = (s >= SR_CTAID_X && s <= SR_CTAID_Z) ||
               (s >= SR_CLUSTERID_X && s <= SR_CLUSTERID_Z) ||
               (s >= SR_CLUSTER_CTAID_X && s <= SR_CLUSTER_CTAID_Z) ||
               s == SR_CLUSTER_CTARANK;
  bool thread = s == SR_LANE || s == SR_WARP ||
                (s >= SR_TID_X && s <= SR_TID_Z);
  return block ? ON_BLOCK : thread ? ON_THREAD : s == SR_SMID ? ON_DATA : 0;
}

static bool reads_hardware(const Ins *i) {
  IntrinId id = intrin_id(i->imm);
  return intrin_is_clock(id) || id == IN_WARPID;
}

// Returns the inputs on which instruction i itself makes its result depend.
// Does not include the inputs of its operands.
static uint8_t on_own(const Meant *g, const Ins *i) {
  Op op = (Op)i->op;
  if (op == OP_ARG) return on_arg(g, i);
  if (op == OP_SREG) return on_special((SReg)i->imm);
  if (op_loops(op)) return ON_LOOP;
  bool data = op == OP_ASM || op == OP_MAPWORD || op == OP_ADDRESS ||
              op == OP_TMALOAD || op == OP_BULKLOAD ||
              (op == OP_ASK && reads_hardware(i));
  return data ? ON_DATA : 0;
}

static bool is_registers(const Meant *g, Ref r) {
  return r && ir_get(g->fn, r)->op == OP_RMEM;
}

// Reports whether object r is in registers or in the block's shared memory.
static bool is_own(const Meant *g, Ref r) {
  return is_registers(g, r) || (r && ir_get(g->fn, r)->op == OP_SMEM);
}

// Reports whether i is an atomic that adds a constant, so that it may draw
// tickets (numbers of work items).
static bool is_ticket(const Meant *g, const Ins *i) {
  if (i->op != OP_ATOMIC || (i->imm != AT_ADD && i->imm != AT_INC))
    return false;
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
    if (o.kind == OPERAND_VALUE && o.ref &&
        ir_get(g->fn, o.ref)->op != OP_CONST)
      return false;
  return true;
}

static uint8_t on_operand(const Meant *g, const Ins *i, const Operand *o) {
  OperandKind k = (OperandKind)o->kind;
  if (i->op == OP_FOR && o->ref == i->a[1] && is_any_extent(g, o->ref))
    return g->on[o->ref] & (uint8_t)~ON_SCALAR;
  if (k == OPERAND_VALUE || k == OPERAND_PRED || k == OPERAND_LANES)
    return g->on[o->ref];
  if (k == OPERAND_OBJECT && is_own(g, o->ref)) return g->on[o->ref];
  if (!o->read || o->barrier || k == OPERAND_OBJECT || k == OPERAND_MAP)
    return 0;
  if (k != OPERAND_MEM) return g->on[o->ref];
  if (is_own(g, o->ref)) return g->on[o->ref] | g->on[o->off];
  return is_ticket(g, i) ? ON_TICKET : ON_DATA;
}

// Reports whether operand o is written and is a variable or a register object.
static bool is_target(const Meant *g, const Operand *o) {
  if (!o->ref || !o->written) return false;
  if (o->kind == OPERAND_VAR || o->kind == OPERAND_RUN) return true;
  return o->kind == OPERAND_MEM && !o->barrier && is_own(g, o->ref);
}

static uint8_t on_result(const Meant *g, const Ins *i) {
  uint8_t on = on_own(g, i);
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
    if (o.ref) on |= on_operand(g, i, &o);
  return on;
}

// Propagates the inputs of instruction r to its result, and to the variables
// and registers that r writes. `control` is the set of inputs on which the
// region around r depends. Returns whether a set of inputs changed.
static bool pass_on(Meant *g, Ref r, uint8_t control) {
  const Ins *i = ir_get(g->fn, r);
  uint8_t on = on_result(g, i);
  bool changed = (g->on[r] | on) != g->on[r];
  g->on[r] |= on;
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    if (!is_target(g, &o)) continue;
    uint8_t to = g->on[o.ref] | on | (control & (uint8_t)~ON_LOOP);
    changed |= to != g->on[o.ref];
    g->on[o.ref] = to;
  }
  return changed;
}

enum { DEPTH = 256 };  // maximum number of open regions

static bool pass(Meant *g) {
  uint8_t control[DEPTH + 1] = {0};
  int depth = 0;
  bool changed = false;
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    Op op = (Op)ir_get(g->fn, r)->op;
    if (op == OP_NOP) continue;
    changed |= pass_on(g, r, control[depth]);
    if (op_opens(op) && depth < DEPTH) {
      control[depth + 1] = control[depth] | g->on[r];
      depth++;
    } else if (op == OP_END && depth) {
      depth--;
    }
  }
  return changed;
}

// ---- conditions ----

// Adds limit n of a condition to m, unless m already has it.
static void add_limit(Meant *g, SimMeant *m, int64_t n, SimLimit how) {
  for (uint32_t k = 0; k < m->n; k++)
    if (m->limit[k] == n && m->how[k] == how) return;
  if (m->n == m->cap) {
    uint32_t cap = m->cap ? m->cap * 2 : 16;
    int64_t *limit = NEW(g->cx, int64_t, cap);
    uint8_t *to = NEW(g->cx, uint8_t, cap);
    if (m->n) memcpy(limit, m->limit, m->n * sizeof *limit);
    if (m->n) memcpy(to, m->how, m->n * sizeof *to);
    m->limit = limit;
    m->how = to;
    m->cap = cap;
  }
  m->limit[m->n] = n;
  m->how[m->n++] = (uint8_t)how;
}

static void see(Meant *g, SimMeant *m, Ref r, bool limits);

// Adds the constants and the scalar arguments in sum r to the limits of m.
// Collects the comparisons on which its other terms depend. Returns true if a
// constant or a scalar argument in the sum is a bound (is_bound).
static bool add_terms(Meant *g, SimMeant *m, Ref r, SimLimit how, int depth) {
  const Ins *i = ir_get(g->fn, r);
  if (i->op == OP_CONST || i->op == OP_ARG) {
    uint64_t bits = i->op == OP_ARG ? g->p->launch->arg[i->imm].bits : 0;
    bool wide = dtype_bits((DType)i->type) > 32;
    int64_t n = i->op == OP_CONST ? i->imm
              : wide ? (int64_t)bits : (int32_t)bits;
    add_limit(g, m, n, how);
    return is_bound(g, n);
  }
  bool sum = i->op == OP_ADD || i->op == OP_SUB;
  if (depth > 8 || (!sum && i->op != OP_CVT && i->op != OP_NEG)) {
    // the condition depends on a scalar argument in a way from which no limit
    // follows
    if (g->on[r] & ON_SCALAR) m->free = true;
    see(g, m, r, false);
    return false;
  }
  bool bound = add_terms(g, m, i->a[0], how, depth + 1);
  return (sum && add_terms(g, m, i->a[1], how, depth + 1)) | bound;
}

static void see_compare(Meant *g, SimMeant *m, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  if (dtype_is_float(ir_type(g->fn, i->a[0]))) {
    if (g->on[r] & ON_SCALAR) m->free = true;
    return;
  }
  uint8_t on = g->on[i->a[0]] | g->on[i->a[1]];
  bool far = on & ON_BLOCK;
  SimLimit how = far ? LIMIT_FAR : on == ON_THREAD ? LIMIT_THREAD : LIMIT_NEAR;
  const Ins *sum = ir_get(g->fn, i->a[0]), *end = ir_get(g->fn, i->a[1]);
  const Ins *more = sum->op == OP_ADD ? ir_get(g->fn, sum->a[1]) : NULL;
  if (more && more->op == OP_CONST && end->op == OP_CONST &&
      is_bound(g, end->imm) && i->op != OP_EQ && i->op != OP_NE) {
    // x + 16 < 70: the limit of x is 54
    add_limit(g, m, end->imm, how);
    add_limit(g, m, end->imm - more->imm, how);
    add_terms(g, m, sum->a[0], how, 0);
    return;
  }
  bool bound = add_terms(g, m, i->a[0], how, 0);
  bound |= add_terms(g, m, i->a[1], how, 0);
  if (far && !bound) m->free = true;
}

static void see_writers(Meant *g, SimMeant *m, Ref r, bool limits) {
  for (Ref w = g->writer[r]; w; w = g->next[w]) see(g, m, w, limits);
}

// Collects the comparisons on which value r depends. With `limits`, a minimum
// or a selection that depends on the block also counts as a limit.
static void see(Meant *g, SimMeant *m, Ref r, bool limits) {
  if (!r || g->met[r] == g->search) return;
  g->met[r] = g->search;
  const Ins *i = ir_get(g->fn, r);
  Op op = (Op)i->op;
  if (op == OP_ARG && on_arg(g, i)) m->free = true;
  if (op_class(op) == CLASS_COMPARE) {
    see_compare(g, m, r);
    return;
  }
  bool chooses = op_class(op) == CLASS_EXTREME || op == OP_SEL;
  if (limits && chooses && g->on[r] & ON_BLOCK) m->free = true;
  if (op == OP_VAR || op == OP_RMEM) see_writers(g, m, r, limits);
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    bool deep = o.kind == OPERAND_MEM ? is_registers(g, o.ref)
                                      : o.kind != OPERAND_OBJECT &&
                                        o.kind != OPERAND_MAP;
    if (o.ref && deep) see(g, m, o.ref, limits);
  }
}

// Reports whether condition or region r was already searched for argument m,
// and marks r as searched.
static bool is_done(Meant *g, const SimMeant *m, Ref r) {
  uint64_t bit = (uint64_t)1 << ((m - g->all) & 63);
  bool done = g->done[r] & bit && g->fn->arg.n <= 64;
  g->done[r] |= bit;
  return done;
}

static void see_condition(Meant *g, SimMeant *m, Ref p) {
  if (g->on[p] & FREE) m->free = true;
  if (m->free || is_done(g, m, p)) return;
  g->search++;
  see(g, m, p, false);
}

// Reports whether the loop at r ends one step before an extent of an argument.
static bool ends_early(const Meant *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  int64_t end, step;
  if (!ir_const(g->fn, i->a[1], &end) || !ir_const(g->fn, i->a[2], &step))
    return false;
  for (size_t k = 0; k < g->fn->arg.n; k++)
    for (int j = 0; j < g->shape[k].rank; j++)
      if (g->shape[k].size[j] == end + step) return true;
  return false;
}

static void see_bounds(Meant *g, SimMeant *m, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  for (int k = 0; k < 3; k++) {
    bool whole = k == 1 && is_extent(g, &g->shape[m - g->all], i->a[k]);
    if (g->on[i->a[k]] & (whole ? FREE : FREE | ON_SCALAR)) m->free = true;
  }
  if (g->on[i->a[1]] & ON_BLOCK) m->free = true;
  if (m->free) return;
  const Ins *end = ir_get(g->fn, i->a[1]);
  if (end->op == OP_CONST && m->ends < MEANT_ENDS) {
    m->loop[m->ends] = r;
    if (g->on[i->a[0]] & ON_BLOCK) m->strides |= 1u << m->ends;
    m->end[m->ends++] = end->imm;
  }
  g->search++;
  // If a loop begins at a block's index, the end of the loop limits this index.
  bool far = g->on[i->a[0]] & ON_BLOCK;
  if (far && !add_terms(g, m, i->a[1], LIMIT_FAR, 0) && !ends_early(g, r))
    m->free = true;
  see(g, m, i->a[0], true);
}

// Collects the conditions of the region that instruction r opens.
static void see_region(Meant *g, SimMeant *m, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  if (is_done(g, m, r)) return;
  if (i->op == OP_IF) see_condition(g, m, i->a[0]);
  if (i->op == OP_FOR) see_bounds(g, m, r);
  for (Ref b = g->leaver[r]; b && !m->free; b = g->after[b])
    see_condition(g, m, ir_get(g->fn, b)->a[0]);
}

// ---- accesses ----

static SimMeant *meant_of(Meant *g, Ref mem) {
  const Mem *m = ir_memof(g->fn, mem);
  bool global = mem_outlives(m);
  return global && m->arg != NO_ARG ? &g->all[m->arg] : NULL;
}

static void see_value(Meant *g, SimMeant *m, Ref r) {
  if (g->on[r] & (FREE | ON_SCALAR)) m->free = true;
  if (g->on[r] & (ON_BLOCK | ON_LOOP)) m->moves = true;
  if (g->on[r] & ON_THREAD) m->threads = true;
}

// Finds the modes of an argument along which offset r depends on the block. The
// offset is a sum; its terms that depend on the block are compared with each
// mode. Such a term moves along a mode if it is a multiple of the mode's
// stride, but not of stride times extent.
static void see_blocks(Meant *g, SimMeant *m, const SimShape *s, Ref r,
                       int depth) {
  const Ins *i = ir_get(g->fn, r);
  if (!(g->on[r] & ON_BLOCK)) return;
  if (depth < 16 && (i->op == OP_ADD || i->op == OP_CVT)) {
    see_blocks(g, m, s, i->a[0], depth + 1);
    if (i->op == OP_ADD) see_blocks(g, m, s, i->a[1], depth + 1);
    return;
  }
  int64_t div = ir_fact(g->fn, r).div;
  for (int k = 0; k < s->n; k++) {
    int64_t step = s->stride[k];
    if (s->extent[k] > 1 && step && div % step == 0 &&
        div % (s->extent[k] * step) != 0)
      m->blocks |= 1u << s->of[k];
  }
}

// Finds the modes of argument `mem` along which offset r varies. These are the
// modes for which the variable part of r is not a multiple of stride times
// extent.
static void see_offset(Meant *g, SimMeant *m, const Mem *mem, Ref r) {
  const SimShape *s = &g->shape[mem->arg];
  see_value(g, m, r);
  // The search needs static strides. A `?` in the layout's text is a stride
  // that is not static.
  if (!strchr(ir_str(g->fn, mem->layout), '?')) see_blocks(g, m, s, r, 0);
  else if (g->on[r] & ON_BLOCK) m->blocks = UINT32_MAX;
  const Ins *i = ir_get(g->fn, r);
  while (i->op == OP_CVT) i = ir_get(g->fn, r = i->a[0]);
  bool sum = i->op == OP_ADD;
  if (sum && ir_get(g->fn, i->a[1])->op == OP_CONST) r = i->a[0];
  else if (sum && ir_get(g->fn, i->a[0])->op == OP_CONST) r = i->a[1];
  if (ir_get(g->fn, r)->op == OP_CONST) return;
  int64_t div = ir_fact(g->fn, r).div;
  m->unit = base_gcd(div, m->unit);
  for (int k = 0; k < s->n; k++)
    if (s->extent[k] > 1 && div % (s->extent[k] * s->stride[k]) != 0)
      m->mode |= 1u << s->of[k];
}

// Writes to `at` the coordinates of the box of TMA copy i, and returns their
// number.
static int box_at(const Meant *g, const Ins *i, Ref at[COVER_MODES]) {
  Operand q;
  int mode = 0;
  // a load has a mask and a policy before its coordinates, a store has only a
  // policy
  int skip = i->op == OP_TMALOAD ? 2 : 1;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &q);)
    if (q.kind == OPERAND_VALUE && skip-- <= 0 && q.ref && mode < COVER_MODES)
      at[mode++] = q.ref;
  return mode;
}

// Finds the modes of a tensor map's tensor along which TMA copy i may move its
// box.
static void see_box(Meant *g, SimMeant *m, const Ins *i) {
  Ref at[COVER_MODES];
  int n = box_at(g, i, at);
  for (int k = 0; k < n; k++) {
    see_value(g, m, at[k]);
    // with gathered rows, all further coordinates are coordinates of mode 1
    int mode = k > 1 && i->flags & BKF_ROWS ? 1 : k;
    if (g->on[at[k]] & ON_BLOCK) m->blocks |= 1u << mode;
    if (ir_get(g->fn, at[k])->op != OP_CONST) m->mode |= 1u << mode;
  }
}

// Reports whether value r depends on a loop: on the loop's counter, or on a
// variable that the loop writes. `end` is the loop's END instruction.
static bool depends(Meant *g, Ref r, Ref loop, Ref end) {
  if (r == loop) return true;
  if (!r || g->met[r] == g->search) return false;
  g->met[r] = g->search;
  const Ins *i = ir_get(g->fn, r);
  if (i->op == OP_VAR || i->op == OP_RMEM)
    for (Ref w = g->writer[r]; w; w = g->next[w])
      if ((w > loop && w < end) || depends(g, w, loop, end)) return true;
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
    if (o.kind != OPERAND_OBJECT && o.kind != OPERAND_MAP &&
        (depends(g, o.ref, loop, end) ||
         (o.kind == OPERAND_MEM && depends(g, o.off, loop, end))))
      return true;
  return false;
}

// Marks the modes of the argument along which instruction i's access moves with
// the loops around it.
static void see_loops(Meant *g, SimMeant *m, const Ins *i, const Operand *o,
                      const Ref *open, int depth) {
  for (uint32_t k = 0; k < m->ends; k++) {
    int d = 0;
    while (d < depth && open[d] != m->loop[k]) d++;
    if (d == depth) continue;
    Ref loop = m->loop[k], end = ir_region_end(g->fn, loop), at[COVER_MODES];
    int n = o->kind == OPERAND_MAP ? box_at(g, i, at) : 0;
    for (int j = 0; j < n; j++) {
      g->search++;
      if (depends(g, at[j], loop, end)) m->moved[k] |= 1u << j;
    }
    g->search++;
    if (o->kind == OPERAND_MEM && depends(g, o->off, loop, end))
      m->moved[k] = UINT32_MAX;
  }
}

// Finds out whether data or scalar arguments decide if instruction i is
// executed, through its predicate or through the conditions of the regions
// around it.
static void see_given(const Meant *g, SimMeant *m, const Ins *i,
                      const Ref *open, int depth, Ref exits) {
  uint8_t on = 0;
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
    if (o.kind == OPERAND_PRED && o.ref) on |= g->on[o.ref];
  for (Ref e = exits; e; e = g->after[e]) on |= g->on[e];
  for (int k = 0; k < depth; k++) {
    on |= g->on[open[k]];
    for (Ref b = g->leaver[open[k]]; b; b = g->after[b]) on |= g->on[b];
  }
  m->data |= (on & ON_DATA) != 0;
  m->scalar |= (on & ON_SCALAR) != 0;
}

// Reports whether the address of the access o of instruction i depends on data.
static bool is_picked(const Meant *g, const Ins *i, const Operand *o) {
  if (o->kind == OPERAND_MEM) return (g->on[o->off] & FREE) != 0;
  Operand q;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &q);)
    if (q.kind == OPERAND_VALUE && q.ref && g->on[q.ref] & FREE) return true;
  return false;
}

// Records an access of instruction i to an argument. `open` lists the `depth`
// regions around i. `exits` is the list of the instructions before i that end
// threads.
static void see_access(Meant *g, const Ins *i, const Operand *o,
                       const Ref *open, int depth, Ref exits) {
  SimMeant *m = meant_of(g, o->ref);
  if (m) {
    see_given(g, m, i, open, depth, exits);
    m->picked |= is_picked(g, i, o);
  }
  if (!m || m->free) return;
  if (o->kind == OPERAND_MEM)
    see_offset(g, m, ir_memof(g->fn, o->ref), o->off);
  else
    see_box(g, m, i);
  Operand q;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &q);) {
    if (q.kind == OPERAND_PRED && q.ref) see_condition(g, m, q.ref);
    if (q.kind != OPERAND_VALUE || !q.ref) continue;
    // the number of bytes that a cp.async reads decides which elements it loads
    if (i->op == OP_CPASYNC) see_condition(g, m, q.ref);
  }
  for (int k = 0; k < depth && !m->free; k++) see_region(g, m, open[k]);
  if (!m->free) see_loops(g, m, i, o, open, depth);
  for (Ref e = exits; e && !m->free; e = g->after[e])
    see_condition(g, m, ir_get(g->fn, e)->a[0]);
}

static bool is_access(const Ins *i, const Operand *o) {
  if (!o->ref) return false;
  if (o->kind == OPERAND_MAP)
    return i->op == OP_TMALOAD || i->op == OP_TMASTORE;
  return o->kind == OPERAND_MEM;
}

// Links the instructions that write the same variable or register object, and
// the BREAKIFs that leave the same region.
static void link_all(Meant *g) {
  Ref open[DEPTH];
  int depth = 0;
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    if (op_opens((Op)i->op) && depth < DEPTH) open[depth++] = r;
    if (i->op == OP_END && depth) depth--;
    if (i->op == OP_BREAKIF && i->imm <= depth && i->imm > 0) {
      Ref from = open[depth - i->imm];
      g->after[r] = g->leaver[from];
      g->leaver[from] = r;
    }
    Operand o;
    bool linked = false;
    for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
      // An instruction that writes several variables or objects is only in the
      // list of the first of them.
      if (!is_target(g, &o) || linked) continue;
      g->next[r] = g->writer[o.ref];
      g->writer[o.ref] = r;
      linked = true;
    }
  }
}

static void see_all(Meant *g) {
  Ref open[DEPTH], exits = 0;
  int depth = 0;
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    if (op_opens((Op)i->op) && depth < DEPTH) open[depth++] = r;
    if (i->op == OP_END && depth) depth--;
    if (i->op == OP_EXITIF) {
      g->after[r] = exits;
      exits = r;
    }
    Operand o;
    for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
      if (is_access(i, &o)) see_access(g, i, &o, open, depth, exits);
  }
}

// Marks the scalar arguments that are extents or strides of a layout.
static void find_sizes(Meant *g) {
  for (size_t k = 0; k < g->fn->mem.n; k++) {
    const Mem *m = &g->fn->mem.p[k];
    if (!mem_outlives(m) || m->arg == NO_ARG)
      continue;
    size_t arg = (size_t)m->arg;
    for (const char *s = ir_str(g->fn, m->layout); *s; s++)
      if (*s == '?' && ++arg < g->fn->arg.n) g->sizes[arg] = true;
  }
}

// Finds the inputs on which each value depends.
static void analyse(Ctx *cx, const SimProg *p, Meant *g) {
  const Fn *fn = p->fn;
  size_t n = fn->ins.n, args = fn->arg.n + 1;
  Arena *a = &cx->scratch;
  *g = (Meant){.cx = cx, .p = p, .fn = fn};
  g->on = arena_zero(cx, a, n);
  g->sizes = arena_zero(cx, a, args * sizeof *g->sizes);
  g->writer = arena_zero(cx, a, n * sizeof *g->writer);
  g->next = arena_zero(cx, a, n * sizeof *g->next);
  g->leaver = arena_zero(cx, a, n * sizeof *g->leaver);
  g->after = arena_zero(cx, a, n * sizeof *g->after);
  g->met = arena_zero(cx, a, n * sizeof *g->met);
  g->done = arena_zero(cx, a, n * sizeof *g->done);
  g->all = arena_zero(cx, a, args * sizeof *g->all);
  g->shape = arena_zero(cx, a, args * sizeof *g->shape);
  for (size_t k = 0; k < fn->arg.n; k++)
    if (meant_shape(cx, p, (int32_t)k, &g->shape[k]) < 0) g->shape[k].rank = 0;
  find_sizes(g);
  link_all(g);
  while (pass(g)) {}
}

SimMeant *meant_all(Ctx *cx, const SimProg *p) {
  Meant g;
  analyse(cx, p, &g);
  see_all(&g);
  return g.all;
}

// ---- reads of shared tensors ----

// Sets open[] for each shared tensor that instruction i reads, if the address
// depends on data or scalar arguments, or if the execution of i depends on more
// than the indices of threads and loops. `control` is the set of inputs that
// decide whether i is executed.
static void see_shared(const Meant *g, const Ins *i, uint8_t control,
                       bool *open) {
  enum { KNOWN = ON_THREAD | ON_LOOP };
  Operand o;
  uint8_t on = control;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
    if (o.kind == OPERAND_PRED && o.ref) on |= g->on[o.ref];
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    if (!o.ref || !ir_is_mem(g->fn, o.ref)) continue;
    const Mem *m = ir_memof(g->fn, o.ref);
    bool shared = mem_is_shared(m);
    uint8_t at = o.kind == OPERAND_MEM ? g->on[o.off] & GIVEN : 0;
    if (shared && (o.read || o.kind == OPERAND_OBJECT) && !o.barrier &&
        (on | at) & (uint8_t)~KNOWN)
      open[m - g->fn->mem.p] = true;
  }
}

bool *meant_shared(Ctx *cx, const SimProg *p) {
  Meant g;
  uint8_t control[DEPTH + 1] = {0}, exits = 0;
  int depth = 0;
  analyse(cx, p, &g);
  bool *open = arena_zero(cx, &cx->scratch, p->fn->mem.n + 1);
  // atomics whose results are unused are not reads
  bool *idle = arena_zero(cx, &cx->scratch, p->fn->ins.n);
  for (uint32_t k = 0; k < p->nins; k++) idle[p->ins[k].ref] |= p->ins[k].idle;
  uint8_t mma = 0;
  for (Ref r = 1; r < g.fn->ins.n; r++) {
    const Ins *i = ir_get(g.fn, r);
    if (op_opens((Op)i->op) && depth < DEPTH) {
      uint8_t on = g.on[r];
      // a loop with a known number of iterations reads all elements
      if (i->op != OP_IF) on &= (uint8_t)~ON_LOOP;
      else if (on & ON_LOOP) on |= ON_DATA;
      for (Ref b = g.leaver[r]; b; b = g.after[b]) on |= g.on[b] | ON_DATA;
      control[depth + 1] = control[depth] | on;
      depth++;
    }
    if (i->op == OP_END && depth) depth--;
    if (i->op == OP_EXITIF) exits |= g.on[r];
    if (i->op == OP_WGMMA) mma |= control[depth] | exits;
    if (!idle[r]) see_shared(&g, i, control[depth] | exits, open);
  }
  for (Ref r = 1; r < g.fn->ins.n; r++)
    if (ir_get(g.fn, r)->op == OP_DESC)
      see_shared(&g, ir_get(g.fn, r), mma, open);
  return open;
}

// Reports whether limit k may be a number of elements. A limit of the thread
// index is no number of elements if no address depends on the thread index.
static bool counts(const SimMeant *m, uint32_t k) {
  return m->threads || m->how[k] != LIMIT_THREAD;
}

bool meant_bounds(const SimMeant *m, int64_t n) {
  for (uint32_t k = 0; k < m->ends; k++)
    if (m->end[k] == n) return true;
  for (uint32_t k = 0; k < m->n; k++)
    if (m->limit[k] == n && counts(m, k)) return true;
  return false;
}

bool meant_guards(const SimMeant *m, int64_t n, SimLimit how) {
  for (uint32_t k = 0; k < m->n; k++)
    if (m->how[k] == how && m->limit[k] == n) return true;
  return false;
}

bool meant_ends(const SimMeant *m, int mode, int64_t end) {
  for (uint32_t k = 0; k < m->n; k++) {
    int64_t n = m->limit[k];
    bool far = m->how[k] == LIMIT_FAR;
    if (!counts(m, k) || (far && !(m->blocks >> mode & 1))) continue;
    if (n < 0 && n != INT64_MIN) n = -n;
    if (n == end || n == end - 1) return true;
    // a limit may count vectors or tiles instead of elements
    if (!far || n < 2 || !end || end % n) continue;
    int64_t q = end / n;
    if ((q & (q - 1)) == 0) return true;
  }
  return false;
}

bool meant_empty(Ctx *cx, const SimProg *p) {
  bool some = false;
  SimShape s;
  for (size_t k = 0; k < p->fn->arg.n && p->nunit == 0; k++) {
    if (!p->fn->arg.p[k].pointer) continue;
    some = meant_shape(cx, p, (int32_t)k, &s) >= 0;
    if (!some) return false;
  }
  return some;
}
// SPDX-License-Identifier: MIT
