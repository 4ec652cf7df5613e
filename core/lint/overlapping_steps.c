// Finds loops whose tiles overlap. Each iteration adds elements of global
// memory to sums over all threads of the block. Because the step is smaller
// than the tile, an iteration adds elements again that the preceding iteration
// added.
//
// The tiles of a convolution overlap on purpose, but then those of its weights
// do not, or each thread has a separate sum. Therefore the analysis reports a
// loop only if all its tiles overlap by half or more. Tiles with a halo overlap
// by less than half.
#include "lint/overlapping_steps.h"

#include <stdlib.h>
#include <string.h>

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"
#include "lint/index_values.h"
#include "lint/repeated_sums.h"

enum { NEAR = 24, BUDGET = 1 << 18, LOADS = 256, DEPTH = 64,
       VISITS = 1 << 16 };

// The analysis of a loop, whose instructions are `first` to `end`.
typedef struct Loop {
  Ctx *cx;
  const Fn *fn;
  Ref first, end;
  int64_t step;
  IndexValues *v;
  // for each instruction: whether it depends on the loop's counter
  bool *on;
  bool *filled;    // for each object of Fn.mem: whether the loop writes it
  // same_values() of the function, computed when it is needed; NULL: unknown
  const uint8_t *same;
  bool analysed;
  int left;        // number of values that is_plain may still visit
} Loop;

static bool is_space(const Fn *fn, Ref r, Space s) {
  return r && ir_is_mem(fn, r) && ir_memof(fn, r)->space == s;
}

// Reports whether the loop at r may have two or more iterations, and sets
// *step.
static bool is_loop(const Fn *fn, Ref r, int64_t *step) {
  const Ins *i = ir_get(fn, r);
  int64_t first, limit;
  if (i->op != OP_FOR || !ir_const(fn, i->a[2], step) || !*step) return false;
  if (!ir_const(fn, i->a[0], &first) || !ir_const(fn, i->a[1], &limit))
    return true;
  return *step > 0 ? limit - first > *step : first - limit > -*step;
}

// ---- the elements of an iteration ----

// The elements of one argument that an iteration loads.
typedef struct Tile {
  int32_t arg;
  Ref at;              // a load
  int64_t width;       // number of elements that load `at` reads in a thread
  // offsets of the n elements that were found; find_tiles sorts them at the end
  size_t n, cap;
  int64_t *element;
} Tile;

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// Sorts numbers and removes the repeated ones. Returns the number of distinct
// numbers.
static size_t unique(int64_t *x, size_t n) {
  size_t kept = 0;
  qsort(x, n, sizeof *x, compare);
  for (size_t k = 0; k < n; k++)
    if (!kept || x[k] != x[kept - 1]) x[kept++] = x[k];
  return kept;
}

// Clears active[t] for each thread t that does not execute the region at r (if
// `other` is set: its ELSE). Returns false if these threads are unknown.
static bool enter(Loop *g, Ref r, bool other, bool *active) {
  const Ins *i = ir_get(g->fn, r);
  const int64_t *p, *limit, *step;
  if (i->op == OP_IF) {
    if (!(p = index_values(g->v, i->a[0]))) return false;
    for (int32_t t = 0; t < g->v->n; t++) active[t] &= (p[t] & 1) != other;
    return true;
  }
  if (i->op != OP_FOR) return false;
  p = index_values(g->v, r);
  limit = index_values(g->v, i->a[1]);
  step = index_values(g->v, i->a[2]);
  if (!p || !limit || !step) return false;
  for (int32_t t = 0; t < g->v->n; t++)
    active[t] &= step[t] > 0 ? p[t] < limit[t] : p[t] > limit[t];
  return true;
}

// Adds to *tile the elements that load r reads in the active threads. Returns
// false if they are unknown.
static bool add_load(Loop *g, Tile *tile, Ref r, const Operand *from,
                     const bool *active) {
  const int64_t *at = index_values(g->v, from->off);
  size_t threads = (size_t)g->v->n;
  if (!at) return false;
  if (tile->n + threads > tile->cap) {
    tile->cap = (tile->n + threads) * 2;
    int64_t *all = NEW(g->cx, int64_t, tile->cap);
    if (tile->n) memcpy(all, tile->element, tile->n * sizeof *all);
    tile->element = all;
  }
  int64_t *own = tile->element + tile->n;
  size_t n = 0;
  for (size_t t = 0; t < threads; t++)
    if (active[t]) own[n++] = at[t];
  tile->n += unique(own, n);
  tile->at = r;
  tile->width = from->bits / dtype_bits(ir_type(g->fn, from->ref));
  return true;
}

// Finds the tiles that iteration k loads, one for each argument. Returns their
// number. Returns -1 if the elements are not known, or if several loads of the
// iteration read the same elements.
static int find_tiles(Loop *g, int64_t k, Tile *tile, int most) {
  const Fn *fn = g->fn;
  bool *active[DEPTH + 1];
  Ref head[DEPTH];
  int depth = 0, n = 0, loads = 0;
  g->v->loop = g->first;
  g->v->k = k;
  index_values_forget(g->v);
  for (int d = 0; d <= DEPTH; d++) active[d] = NULL;
  active[0] = arena_zero(g->cx, &g->cx->scratch, (size_t)g->v->n);
  memset(active[0], 1, (size_t)g->v->n);
  if (!enter(g, g->first, false, active[0])) return -1;
  for (Ref r = g->first + 1; r < g->end; r++) {
    const Ins *i = ir_get(fn, r);
    bool opens = op_opens((Op)i->op);
    if (i->op == OP_NOP) continue;
    if (i->op == OP_END) depth--;
    if (opens && depth == DEPTH) return -1;
    if (opens) head[depth++] = r;
    if (opens || i->op == OP_ELSE) {
      if (!active[depth])
        active[depth] = arena_zero(g->cx, &g->cx->scratch, (size_t)g->v->n);
      memcpy(active[depth], active[depth - 1], (size_t)g->v->n);
      if (!enter(g, head[depth - 1], i->op == OP_ELSE, active[depth]))
        return -1;
    }
    Operand o;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (!operand_is_global(fn, &o) || !o.read) continue;
      int32_t arg = ir_memof(fn, o.ref)->arg;
      int j = 0;
      while (j < n && tile[j].arg != arg) j++;
      if (j == most || ++loads > LOADS || o.kind == OPERAND_MAP) return -1;
      if (j == n) tile[n++] = (Tile){.arg = arg};
      if (!add_load(g, &tile[j], r, &o, active[depth])) return -1;
    }
  }
  for (int j = 0; j < n; j++) {
    size_t all = tile[j].n;
    tile[j].n = unique(tile[j].element, all);
    if (tile[j].n != all) return -1;
  }
  return n;
}

// Returns the number of elements that both tiles have.
static size_t shared(const Tile *a, const Tile *b) {
  size_t n = 0;
  for (size_t j = 0, k = 0; j < a->n && k < b->n;) {
    if (a->element[j] == b->element[k]) n++, j++, k++;
    else if (a->element[j] < b->element[k]) j++;
    else k++;
  }
  return n;
}

// ---- sums ----

// Marks the instructions that depend on the loop's counter, and the variables
// that the loop sets.
static void find_dependent(Loop *g) {
  const Fn *fn = g->fn;
  memset(g->on, 0, fn->ins.n * sizeof *g->on);
  memset(g->filled, 0, fn->mem.n * sizeof *g->filled);
  g->on[g->first] = true;
  for (Ref r = g->first + 1; r < g->end; r++) {
    const Ins *i = ir_get(fn, r);
    Operand o;
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (!o.ref) continue;
      if (o.kind == OPERAND_VAR && o.written) g->on[o.ref] = true;
      bool value = o.kind == OPERAND_VALUE || o.kind == OPERAND_PRED ||
                   (o.kind == OPERAND_VAR && o.read);
      g->on[r] |= value && g->on[o.ref];
      if (o.written && ir_is_mem(fn, o.ref))
        g->filled[ir_get(fn, o.ref)->imm] = true;
    }
  }
}

// If r is a matrix descriptor, or is computed from one, returns the shared
// object that it describes. Otherwise returns 0.
static Ref described(const Fn *fn, Ref r, int depth) {
  const Ins *i = ir_get(fn, r);
  if (i->op == OP_DESC) return i->a[0];
  if (i->op != OP_ADD || depth == 0) return 0;
  Ref a = described(fn, i->a[0], depth - 1);
  return a ? a : described(fn, i->a[1], depth - 1);
}

// Reports whether instruction r uses the loop's counter for anything other than
// addresses of loads and bounds checks, such as to choose weights or as a term
// of a result.
static bool weighs(const Loop *g, Ref r) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  Operand o;
  if (i->op == OP_CVT && dtype_is_float((DType)i->type) && g->on[i->a[0]] &&
      dtype_is_int(ir_type(fn, i->a[0])))
    return true;
  if (i->op == OP_PICK && g->on[operand_ref(fn, i, ROLE_INDEX)]) return true;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    Ref object = o.kind == OPERAND_MEM && o.read && g->on[o.off] ? o.ref : 0;
    if (i->op == OP_WGMMA && o.kind == OPERAND_VALUE && o.ref && g->on[o.ref])
      object = described(fn, o.ref, NEAR);
    if (object && !o.barrier && !operand_is_global(fn, &o) &&
        !g->filled[ir_get(fn, object)->imm])
      return true;
  }
  return false;
}

// Reports whether instruction r has an effect outside of the block, or uses
// memory that may change during the loop.
static bool is_barred(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  Operand o;
  if (op_effect((Op)i->op) & (EF_VISIBLE | EF_LEAVES) || i->op == OP_ATOMIC)
    return true;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (is_space(fn, o.ref, SP_DSMEM)) return true;
    if (!operand_is_global(fn, &o)) continue;
    const Mem *m = ir_memof(fn, o.ref);
    if (o.written || m->arg == NO_ARG || fn->arg.p[m->arg].written ||
        ir_arg_shared(fn, (size_t)m->arg))
      return true;
  }
  return false;
}

// Reports whether value r is the same in all threads and all iterations.
static bool is_uniform(Loop *g, Ref r) {
  enum { THREADS = SAME_LANES | SAME_WARPS };
  if (ir_get(g->fn, r)->op == OP_CONST) return true;
  if (g->on[r]) return false;
  if (!g->analysed) g->same = same_values(g->cx, g->fn);
  g->analysed = true;
  return g->same && (g->same[r] & THREADS) == THREADS;
}

// Reports whether r is computed only from uniform values and from elements that
// the loop loads. Selections by bounds checks are allowed.
static bool is_plain(Loop *g, Ref r, int depth) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  if (is_uniform(g, r)) return true;
  if (depth == 0 || r < g->first || g->left-- <= 0) return false;
  if (i->op == OP_LD) return is_space(fn, i->a[0], SP_GMEM);
  if (!op_pure((Op)i->op) || !dtype_is_float((DType)i->type)) return false;
  bool sel = i->op == OP_SEL;
  if (sel && !g->on[i->a[0]]) return false;
  for (int k = sel; k < 3; k++)
    if (i->a[k] && !is_plain(g, i->a[k], depth - 1)) return false;
  return true;
}

// Reports whether value r is the sum of variable `var` and other values. If
// `plain` is set, the other values must satisfy is_plain.
static bool is_sum(Loop *g, Ref r, Ref var, bool plain, int depth) {
  const Ins *i = ir_get(g->fn, r);
  if (i->op == OP_VGET) return i->a[0] == var;
  if (depth == 0) return false;
  if (i->op == OP_FMA)
    return is_sum(g, i->a[2], var, plain, depth - 1) &&
           (!plain || (is_plain(g, i->a[0], NEAR) &&
                       is_plain(g, i->a[1], NEAR)));
  for (int k = 0; i->op == OP_ADD && k < 2; k++)
    if (is_sum(g, i->a[k], var, plain, depth - 1))
      return !plain || is_plain(g, i->a[1 - k], NEAR);
  return false;
}

// Reports whether instruction i adds an operand to another value, or copies an
// operand unchanged.
static bool adds_or_moves(const Ins *i) {
  OpClass class = op_class((Op)i->op);
  return class == CLASS_SUM || class == CLASS_SELECT || i->op == OP_VSET ||
         intrin_shuffles(i);
}

// Reports whether all elements of shared tensor `object` that the kernel reads
// are only added to other values or copied.
static bool only_adds(const Fn *fn, Ref object) {
  Operand o;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (!o.ref) continue;
      const Ins *x = ir_get(fn, o.ref);
      bool loads = o.kind == OPERAND_MEM && o.ref == object && o.read;
      bool uses = o.kind == OPERAND_VALUE && x->op == OP_LD &&
                  x->a[0] == object;
      if ((loads && i->op != OP_LD) || (uses && !adds_or_moves(i)))
        return false;
    }
  }
  return true;
}

// Reports whether the threads of the block add their values of variable `var`
// after the loop: by shuffles, atomics, or through shared memory.
static bool is_combined(const Loop *g, Ref var) {
  const Fn *fn = g->fn;
  Ref of;
  for (Ref r = g->end; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    Ref v = 0;
    if (i->op == OP_ADD && intrin_shuffled(fn, i, &of)) v = of;
    if (i->op == OP_ASK && intrin_id(i->imm) == IN_REDADD) v = i->a[0];
    if (i->op == OP_ATOMIC && i->imm == AT_ADD)
      v = operand_ref(fn, i, ROLE_VALUE);
    if (i->op == OP_ST && is_space(fn, i->a[0], SP_SMEM) &&
        only_adds(fn, i->a[0]))
      v = i->a[2];
    if (v && ir_get(fn, v)->op == OP_VGET && ir_get(fn, v)->a[0] == var)
      return true;
  }
  return false;
}

// Reports whether the loop adds each loaded element once to a sum over several
// threads: by an MMA, from shared memory that the loop fills, or in variables
// that the threads add up after the loop.
static bool sums(Loop *g) {
  const Fn *fn = g->fn;
  bool found = false, staged = false;
  for (Ref r = g->first + 1; r < g->end; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    if (weighs(g, r)) return false;
    found |= op_class((Op)i->op) == CLASS_MMA;
    staged |= i->op == OP_LD && is_space(fn, i->a[0], SP_SMEM) &&
              g->filled[ir_get(fn, i->a[0])->imm];
  }
  for (Ref r = g->first + 1; r < g->end && !found; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op != OP_VSET || i->a[0] > g->first ||
        !is_sum(g, i->a[1], i->a[0], !staged, NEAR * 4))
      continue;
    found = staged || is_combined(g, i->a[0]);
  }
  return found;
}

static bool find_overlap(Loop *g, OverlappingStep *s) {
  enum { ARGS = 8 };
  const Fn *fn = g->fn;
  Tile now[ARGS], next[ARGS];
  bool loads = false;
  for (Ref r = g->first + 1; r < g->end; r++) {
    const Ins *i = ir_get(fn, r);
    Operand o;
    if (i->op == OP_NOP) continue;
    if (is_barred(fn, r)) return false;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
      loads |= operand_is_global(fn, &o) && o.read;
  }
  if (!loads) return false;
  find_dependent(g);
  if (!sums(g)) return false;
  int n = find_tiles(g, 0, now, ARGS);
  if (n < 1 || find_tiles(g, 1, next, ARGS) != n) return false;
  s->at = 0;
  for (int k = 0; k < n; k++) {
    size_t again = shared(&now[k], &next[k]);
    if (again == next[k].n && again == now[k].n) continue;
    if (again * 2 < next[k].n || !again) return false;
    if (s->at) continue;
    *s = (OverlappingStep){.loop = g->first, .at = next[k].at, .step = g->step,
                        .n = (int64_t)next[k].n * next[k].width,
                        .again = (int64_t)again * next[k].width};
  }
  return s->at;
}

void overlapping_steps(Ctx *cx, const Fn *fn,
                       void (*found)(void *ud, const OverlappingStep *s),
                       void *ud) {
  if (!ir_threads(fn) || ir_has_addresses(fn)) return;
  IndexValues v = index_values_at(cx, fn, BUDGET);
  Loop g = {.cx = cx, .fn = fn, .v = &v, .left = VISITS};
  g.on = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *g.on);
  g.filled = arena_zero(cx, &cx->scratch, (fn->mem.n + 1) * sizeof *g.filled);
  for (Ref r = 1; r < fn->ins.n; r++) {
    OverlappingStep s;
    if (!is_loop(fn, r, &g.step)) continue;
    g.first = r;
    g.end = ir_region_end(fn, r);
    if (find_overlap(&g, &s)) found(ud, &s);
  }
}
// SPDX-License-Identifier: MIT
