// Finds maxima, minima and products that start at 0. A maximum of negative
// numbers would be 0, and a product is always 0. A maximum of a warp is also
// wrong if lanes that a condition excludes contribute 0. The search reports
// only maxima whose elements come from global memory and may be negative.
// Absolute values, squares and exponentials are never negative.
//
// A loop that updates a maximum in a register must store the new maximum. If
// the register was filled with an infinity and nothing else sets it, the store
// is missing.
//
// Also finds sums of loaded elements that start at a constant other than 0.
// Three cases are correct, and are not reported: the constant is small and
// keeps a divisor from being 0; the loop begins with the second element; or a
// sum of exponentials starts at 1, because the first maximum is the first
// element.
#include "lint/zero_starts.h"

#include <math.h>

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"
#include "lint/updates.h"

enum { NEAR = 24, EQUAL = 8 };

typedef struct Search {
  const Fn *fn;
  Writers by;
  // met: for each instruction, the number of the last search that visited it;
  // search: number of the current search
  uint32_t *met, search;
  uint64_t args;  // mask of the arguments whose elements this search visited
  bool *seen;     // for each maximum: whether a tree contains it
} Search;

// Reports whether two values are known to be equal: the same value, loads of
// the same element, or the same operation on equal values.
static bool is_same(const Fn *fn, Ref a, Ref b, int depth) {
  const Ins *x = ir_get(fn, a), *y = ir_get(fn, b);
  if (a == b) return true;
  if (x->op != y->op || x->imm != y->imm || depth == 0) return false;
  if (x->op != OP_LD && !op_pure((Op)x->op)) return false;
  for (int k = 0; k < 3; k++)
    if (!is_same(fn, x->a[k], y->a[k], depth - 1)) return false;
  return x->op != OP_CONST;
}

// ---- signs ----

static bool may_be(Search *s, Ref r, bool below, int depth);

// Reports whether a value that instruction r writes to an object or a variable
// may be below 0 (above 0 if `below` is false).
static bool may_write(Search *s, Ref r, bool below, int depth) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  if (op_class((Op)i->op) == CLASS_MMA) {
    // The operands of the MMA may come from any argument.
    s->args = UINT64_MAX;
    return true;
  }
  Ref value = operand_ref(fn, i, ROLE_VALUE);
  if (value) return may_be(s, value, below, depth);
  Ref from = operand_ref(fn, i, ROLE_SRC);
  return from && ir_is_mem(fn, from) && may_be(s, from, below, depth);
}

// Reports whether any element of object r, or the value of variable r, may be
// below 0 (above 0 if `below` is false).
static bool may_have(Search *s, Ref r, bool below, int depth) {
  Space space = ir_is_mem(s->fn, r) ? ir_memof(s->fn, r)->space : SP_RMEM;
  if (space == SP_GMEM) {
    int32_t arg = ir_memof(s->fn, r)->arg;
    s->args |= arg >= 0 && arg < 64 ? (uint64_t)1 << arg : 0;
    return true;
  }
  if (space != SP_RMEM && space != SP_SMEM) return false;
  for (Ref w = s->by.last[r]; w; w = s->by.before[w])
    if (may_write(s, w, below, depth - 1)) return true;
  return false;
}

static bool is_positive(const Ins *i) {
  MathFn f = (MathFn)i->imm;
  if (i->op != OP_MATH) return i->op == OP_ABS;
  return f == MF_EXP || f == MF_EXP2 || f == MF_EX2APPROX || f == MF_SQRT ||
         f == MF_RSQRT || f == MF_SQRTAPPROX || f == MF_RSQRTAPPROX;
}

// Reports whether the result of arithmetic instruction i may be below 0 (above
// 0 if `below` is false).
static bool may_result(Search *s, const Ins *i, bool below, int depth) {
  OpClass class = op_class((Op)i->op);
  Ref a = i->a[0], b = i->a[1], c = i->a[2];
  bool product = class == CLASS_PRODUCT || class == CLASS_FUSED;
  if (is_positive(i)) return !below && may_be(s, a, true, depth);
  if (class == CLASS_SIGN) return may_be(s, a, !below, depth);
  if (product && is_same(s->fn, a, b, EQUAL))
    return c ? may_be(s, c, below, depth)
             : !below && may_be(s, a, below, depth);
  if (class == CLASS_EXTREME && (i->op == OP_MAX) == below)
    return may_be(s, a, below, depth) && may_be(s, b, below, depth);
  if (class == CLASS_SELECT)
    return may_be(s, b, below, depth) || may_be(s, c, below, depth);
  if (!product && class != CLASS_EXTREME && class != CLASS_SUM) return false;
  return may_be(s, a, below, depth) ||
         may_be(s, b, below == (i->op != OP_SUB), depth) ||
         (c && may_be(s, c, below, depth));
}

// Reports whether r, a float or an object of floats, is computed from loaded
// elements and may be below 0 (above 0 if `below` is false).
static bool may_be(Search *s, Ref r, bool below, int depth) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  if (depth <= 0 || s->met[r] == s->search) return false;
  s->met[r] = s->search;
  if (ir_is_mem(fn, r) || i->op == OP_VAR)
    return may_have(s, r, below, depth);
  if (!dtype_is_float((DType)i->type)) return false;
  bool moves = op_class((Op)i->op) == CLASS_ACCESS ||
               op_class((Op)i->op) == CLASS_CONVERT || i->op == OP_VGET ||
               intrin_shuffles(i);
  return moves ? may_be(s, i->a[0], below, depth - 1)
               : may_result(s, i, below, depth - 1);
}

static bool may(Search *s, Ref r, Op op) {
  s->search++;
  s->args = 0;
  return may_be(s, r, op == OP_MAX, NEAR);
}

// ---- running maxima ----

// If instruction `set` updates its target by a maximum, minimum or product of
// the target and an element, returns this operation, and stores the element in
// *element. Otherwise returns 0.
static Ref update_of(const Fn *fn, const Ins *set, Ref *element) {
  bool store = set->op == OP_ST && ir_memof(fn, set->a[0])->space == SP_RMEM;
  if (!store && set->op != OP_VSET) return 0;
  Ref r = operand_ref(fn, set, ROLE_VALUE), first = r;
  Op op = (Op)ir_get(fn, r)->op;
  for (int n = 0; n < NEAR; n++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_SEL && ir_get(fn, i->a[0])->op == OP_LT) {
      // the selection `x > old and x, or old`
      *element = updates_reads_back(fn, i->a[1], set) ? i->a[2] : i->a[1];
      Ref old = *element == i->a[1] ? i->a[2] : i->a[1];
      const Ins *p = ir_get(fn, i->a[0]);
      bool less = is_same(fn, p->a[0], *element, EQUAL) && p->a[1] == old;
      bool more = is_same(fn, p->a[1], *element, EQUAL) && p->a[0] == old;
      return (less || more) && updates_reads_back(fn, old, set) ? r : 0;
    }
    OpClass class = op_class(op);
    if (i->op != op || (class != CLASS_EXTREME && class != CLASS_PRODUCT))
      return 0;
    for (int k = 0; k < 2; k++) {
      *element = i->a[1 - k];
      if (updates_reads_back(fn, i->a[k], set)) return first;
    }
    // In a chain of operations, the first operation reads the old value.
    int k = (Op)ir_get(fn, i->a[0])->op != op;
    *element = i->a[1 - k];
    r = i->a[k];
  }
  return 0;
}

// Returns the kind of operation r, which update_of returned: OP_MAX, OP_MIN or
// OP_MUL.
static Op op_of(const Fn *fn, Ref r, Ref element) {
  const Ins *i = ir_get(fn, r);
  if (i->op != OP_SEL) return (Op)i->op;
  bool less = is_same(fn, ir_get(fn, i->a[0])->a[0], element, EQUAL);
  return less == (i->a[1] == element) ? OP_MIN : OP_MAX;
}

// Reports whether instruction w sets its target to 0, to the target's old
// value, or to the maximum (minimum, product) of the old value and an element.
static bool is_update(const Fn *fn, Ref w, Op op) {
  const Ins *i = ir_get(fn, w);
  Ref element, value = operand_ref(fn, i, ROLE_VALUE);
  if (value && (updates_is_zero(fn, value) || updates_reads_back(fn, value, i)))
    return true;
  Ref r = update_of(fn, i, &element);
  return r && op_of(fn, r, element) == op;
}

// Reports whether variable `var` begins with 0, and all instructions that set
// it, except `set`, are updates (is_update).
static bool var_starts_at_zero(const Fn *fn, Ref var, Op op, Ref set) {
  Ref root = updates_root(fn, var);
  if (!updates_is_zero(fn, ir_get(fn, root)->a[0])) return false;
  for (Ref w = root; w < fn->ins.n; w++) {
    const Ins *i = ir_get(fn, w);
    if (i->op == OP_VSET && updates_root(fn, i->a[0]) == root && w != set &&
        !is_update(fn, w, op))
      return false;
  }
  return true;
}

// Reports whether the variable or the registers that `set` writes begin with 0,
// and all other writes to them are updates (is_update).
static bool starts_at_zero(const Search *s, const Ins *set, Op op) {
  const Fn *fn = s->fn;
  bool zero = false;
  if (set->op == OP_VSET) return var_starts_at_zero(fn, set->a[0], op, 0);
  for (Ref w = s->by.last[set->a[0]]; w; w = s->by.before[w]) {
    Ref value = operand_ref(fn, ir_get(fn, w), ROLE_VALUE);
    if (!is_update(fn, w, op)) return false;
    zero |= value && updates_is_zero(fn, value);
  }
  return zero;
}

// Sets *z if instruction r updates a maximum that starts at 0.
static void look_at_update(Search *s, Ref r, ZeroStart *z) {
  const Fn *fn = s->fn;
  const Ins *set = ir_get(fn, r);
  Ref element, at = update_of(fn, set, &element);
  if (!at || !dtype_is_float(ir_type(fn, at))) return;
  Op op = op_of(fn, at, element);
  if (!starts_at_zero(s, set, op)) return;
  if (op == OP_MUL || may(s, element, op))
    *z = (ZeroStart){.at = r, .op = op, .args = s->args};
}

// Sets *z if branch r computes a maximum or minimum in a variable that starts
// at 0.
static void look_at_branch(Search *s, Ref r, ZeroStart *z) {
  const Fn *fn = s->fn;
  const Ins *p = ir_get(fn, ir_get(fn, r)->a[0]);
  if (p->op != OP_LT || !dtype_is_float(ir_type(fn, p->a[0]))) return;
  Ref end = ir_region_end(fn, r);
  for (int k = 0; k < 2; k++) {
    Op op = k ? OP_MIN : OP_MAX;
    const Ins *old = ir_get(fn, p->a[k]);
    if (old->op != OP_VGET) continue;
    for (Ref set = r + 1; set < end; set++) {
      const Ins *i = ir_get(fn, set);
      if (i->op == OP_VSET && updates_reads_back(fn, p->a[k], i) &&
          is_same(fn, i->a[1], p->a[1 - k], EQUAL) &&
          var_starts_at_zero(fn, i->a[0], op, set) &&
          may(s, p->a[1 - k], op))
        *z = (ZeroStart){.at = set, .op = op, .args = s->args};
    }
  }
}

// ---- unrolled maxima ----

// ELEMENTS: minimum number of elements of an unrolled maximum
enum { ELEMENTS = 4, LEAVES = 16 };

// The leaves of a tree of maxima or minima: the operands that are not such
// operations themselves.
// - start: an operation whose operands are 0 and a leaf; 0: none.
// - zeros: number of leaves that are 0.
// - leaf: the first n other leaves.
typedef struct Tree {
  Ref start, leaf[LEAVES];
  int zeros, n;
} Tree;

static void add_leaf(const Fn *fn, Ref r, Tree *t) {
  if (updates_is_zero(fn, r)) t->zeros++;
  else if (t->n < LEAVES) t->leaf[t->n++] = r;
}

static void add_tree(const Search *s, Ref r, Tree *t, int depth) {
  const Fn *fn = s->fn;
  Op op = (Op)ir_get(fn, r)->op;
  while (!s->seen[r] && depth > 0) {
    const Ins *i = ir_get(fn, r);
    bool inner[2];
    s->seen[r] = true;
    for (int k = 0; k < 2; k++) {
      inner[k] = (Op)ir_get(fn, i->a[k])->op == op;
      if (!inner[k]) add_leaf(fn, i->a[k], t);
    }
    bool zero = updates_is_zero(fn, i->a[0]) || updates_is_zero(fn, i->a[1]);
    if (zero && !inner[0] && !inner[1]) t->start = r;
    if (inner[0] && inner[1]) add_tree(s, i->a[1], t, depth - 1);
    if (!inner[0] && !inner[1]) return;
    r = i->a[!inner[0]];
  }
}

// Sets *z if r ends an unrolled maximum or minimum that starts at 0. A tree
// with several zeros is not reported: it replaces each negative element by 0.
static void look_at_tree(Search *s, Ref r, ZeroStart *z) {
  Op op = (Op)ir_get(s->fn, r)->op;
  Tree t = {0};
  uint64_t args = 0;
  int elements = 0;
  add_tree(s, r, &t, NEAR);
  if (!t.start || t.zeros != 1 || t.n < ELEMENTS) return;
  for (int k = 0; k < t.n; k++) {
    elements += may(s, t.leaf[k], op);
    args |= s->args;
  }
  if (elements >= ELEMENTS)
    *z = (ZeroStart){.at = t.start, .op = op, .args = args};
}

// ---- elements that a condition excludes ----

// Reports whether p is a condition on integers, such as a bounds check.
static bool is_bound(const Fn *fn, Ref p, int depth) {
  const Ins *i = ir_get(fn, p);
  if (depth == 0) return false;
  if (op_class((Op)i->op) == CLASS_COMPARE)
    return dtype_is_int(ir_type(fn, i->a[0]));
  if (i->op == OP_NOT) return is_bound(fn, i->a[0], depth - 1);
  return (i->op == OP_AND || i->op == OP_OR) &&
         is_bound(fn, i->a[0], depth - 1) && is_bound(fn, i->a[1], depth - 1);
}

// Reports whether value r is an element if a bounds check holds, and 0
// otherwise. Sets *x to the element.
static bool is_masked(const Search *s, Ref r, Ref *x) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  if (i->op == OP_SEL && is_bound(fn, i->a[0], NEAR)) {
    *x = updates_is_zero(fn, i->a[2]) ? i->a[1] : i->a[2];
    return updates_is_zero(fn, i->a[2]) || updates_is_zero(fn, i->a[1]);
  }
  if (i->op != OP_VGET || !updates_is_zero(fn, ir_get(fn, i->a[0])->a[0]))
    return false;
  // a variable with the initial value 0 that only a branch sets
  Ref set = s->by.last[i->a[0]], end = 0;
  if (!set || s->by.before[set] || set > r) return false;
  Ref open = 0;
  for (Ref k = i->a[0] + 1; k < set; k++)
    if (ir_get(fn, k)->op == OP_IF && (end = ir_region_end(fn, k)) > set)
      open = k;
  *x = operand_ref(fn, ir_get(fn, set), ROLE_VALUE);
  return open && ir_region_end(fn, open) < r &&
         is_bound(fn, ir_get(fn, open)->a[0], NEAR);
}

// Sets *z if a condition replaces excluded elements by 0 in an operand of
// maximum r.
static void look_at_mask(Search *s, Ref r, ZeroStart *z) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  Ref x;
  for (int k = 0; k < 2 && !z->at; k++)
    if (is_masked(s, i->a[k], &x) && may(s, x, (Op)i->op))
      *z = (ZeroStart){.at = r, .op = (Op)i->op, .args = s->args,
                       .masked = true};
}

// ---- registers that nothing updates ----

// Sets *z if maximum r in a loop has an operand in a register that was
// only filled with an infinity before the loop.
static void look_at_kept(const Search *s, Ref r, ZeroStart *z) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  for (int k = 0; k < 2; k++) {
    const Ins *x = ir_get(fn, i->a[k]);
    if (x->op != OP_LD || ir_get(fn, x->a[0])->op != OP_RMEM) continue;
    Ref w = s->by.last[x->a[0]], loop = w ? ir_loop_around(fn, r) : 0;
    for (; w && loop; w = s->by.before[w]) {
      const Ins *set = ir_get(fn, w);
      Ref value = operand_ref(fn, set, ROLE_VALUE);
      bool infinite = value && ir_get(fn, value)->op == OP_CONST &&
        dtype_to_double((DType)i->type, (uint64_t)ir_get(fn, value)->imm) ==
        (i->op == OP_MAX ? -INFINITY : INFINITY);
      if (w > loop || !infinite) loop = 0;
    }
    if (loop)
      *z = (ZeroStart){.at = r, .op = (Op)i->op,
                       .kept = ir_memof(fn, x->a[0])};
  }
}

// ---- sums ----

// minimum number of elements that an unrolled sum adds
enum { LOADS = 4 };
static const double SMALL = 1e-2;

// Facts about the terms of a sum.
// - loads: number of loads after instruction `after`.
// - product: whether two loaded elements are multiplied.
// - power: whether a term is an exponential.
// - known: whether a running maximum in the exponential starts at a value that
//   is not constant.
typedef struct Terms {
  Ref after;
  const Ins *set;
  int loads;
  bool product, power, known;
} Terms;

static void add_terms(Search *s, Ref r, Terms *t, int depth) {
  const Fn *fn = s->fn;
  const Ins *i = ir_get(fn, r);
  if (!r || depth == 0 || s->met[r] == s->search) return;
  s->met[r] = s->search;
  if (t->set && updates_reads_back(fn, r, t->set)) return;
  if (i->op == OP_LD || i->op == OP_PICK) t->loads += r > t->after;
  if (i->op == OP_VGET) {
    Ref start = ir_get(fn, updates_root(fn, i->a[0]))->a[0];
    double number;
    t->known |= !updates_constant(fn, start, &number);
    for (Ref w = s->by.last[i->a[0]]; w; w = s->by.before[w])
      add_terms(s, operand_ref(fn, ir_get(fn, w), ROLE_VALUE), t, depth - 1);
  }
  if (!op_pure((Op)i->op)) return;
  t->power |= is_positive(i) && i->op == OP_MATH;
  int before = t->loads;
  for (int k = 0; k < 3; k++) {
    int own = t->loads;
    add_terms(s, i->a[k], t, depth - 1);
    t->product |= k == 1 && own > before && t->loads > own &&
      (op_class((Op)i->op) == CLASS_PRODUCT || i->op == OP_FMA);
  }
}

// Reports whether instruction r adds loaded elements to its target in a loop
// whose counter may start at 0.
static bool adds_elements(Search *s, Ref r) {
  const Fn *fn = s->fn;
  const Ins *set = ir_get(fn, r);
  Ref loop = ir_loop_around(fn, r);
  int64_t first;
  if (!loop) return false;
  const Ins *l = ir_get(fn, loop);
  if (l->op == OP_FOR && ir_const(fn, l->a[0], &first) && first) return false;
  if (op_class((Op)set->op) == CLASS_MMA) return true;
  Terms t = {.after = loop, .set = set};
  Ref value = operand_ref(fn, set, ROLE_VALUE);
  s->search++;
  add_terms(s, value, &t, NEAR);
  bool number = dtype_is_float(ir_type(fn, value)) || t.product;
  return t.loads && number && !(t.power && t.known);
}

// Sets *z if variable r starts at a constant other than 0, and instructions
// only add loaded elements to it.
static void look_at_variable(Search *s, Ref r, ZeroStart *z) {
  const Fn *fn = s->fn;
  double start;
  Ref at = 0;
  if (!updates_constant(fn, ir_get(fn, r)->a[0], &start)) return;
  if (fabs(start) < SMALL || isinf(start)) return;
  for (Ref w = r + 1; w < fn->ins.n; w++) {
    const Ins *i = ir_get(fn, w);
    if (i->op != OP_VSET || updates_root(fn, i->a[0]) != r) continue;
    if (!updates_adds(fn, i) && !updates_reads_back(fn, i->a[1], i)) return;
    if (!at && adds_elements(s, w)) at = w;
  }
  if (at)
    *z = (ZeroStart){.at = updates_place(fn, at), .op = OP_ADD,
                     .start = start};
}

// Sets *z if all elements of register object or shared tensor r start at a
// constant other than 0, and instructions only add loaded elements to them.
static void look_at_object(Search *s, Ref r, ZeroStart *z) {
  const Fn *fn = s->fn;
  double start = 0, other;
  Ref at = 0;
  bool any = false;
  for (Ref w = s->by.last[r]; w; w = s->by.before[w]) {
    const Ins *i = ir_get(fn, w);
    Ref value = operand_ref(fn, i, ROLE_VALUE);
    if (updates_adds(fn, i)) {
      if (adds_elements(s, w)) at = w;
    } else if (value && updates_constant(fn, value, &other)) {
      if (any && other != start) return;
      start = other;
      any = true;
    } else {
      return;
    }
  }
  if (at && fabs(start) >= SMALL && !isinf(start))
    *z = (ZeroStart){.at = at, .op = OP_ADD, .start = start};
}

// Sets *z if r ends an unrolled sum of products of elements, and the sum's
// first term is a constant other than 0. Sums without products are not
// reported, because cute.reduce may begin them with any number.
static void look_at_chain(Search *s, Ref r, const bool *inner, ZeroStart *z) {
  const Fn *fn = s->fn;
  double start = 0;
  Ref first = r;
  int terms = 0;  // number of terms that load an element
  if (inner[r] || !dtype_is_float(ir_type(fn, r))) return;
  s->search++;
  for (;; terms++) {
    const Ins *i = ir_get(fn, first);
    bool last = i->op == OP_ADD && updates_constant(fn, i->a[1], &start);
    Terms t = {0};
    if (i->op != OP_ADD && i->op != OP_FMA) break;
    for (int k = 0; k < 2; k++)
      if (i->op == OP_FMA || k != last) add_terms(s, i->a[k], &t, NEAR);
    first = i->op == OP_FMA ? i->a[2] : i->a[last];
    if (!t.product || t.power) return;
  }
  if (updates_constant(fn, first, &start) && terms >= LOADS &&
      fabs(start) >= SMALL && !isinf(start))
    *z = (ZeroStart){.at = r, .op = OP_ADD, .start = start};
}

// Returns, for each instruction, whether its result is a term of a later sum,
// or whether it is a maximum (minimum) and an operand of a later one.
static bool *inner_terms(Ctx *cx, const Fn *fn) {
  bool *inner = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *inner);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    bool extreme = op_class((Op)i->op) == CLASS_EXTREME;
    if (i->op == OP_ADD) inner[i->a[0]] = inner[i->a[1]] = true;
    if (i->op == OP_FMA) inner[i->a[2]] = true;
    for (int k = 0; k < 2 && extreme; k++)
      if (ir_get(fn, i->a[k])->op == i->op) inner[i->a[k]] = true;
  }
  return inner;
}

static void look_at_sum(Search *s, Ref r, const bool *inner, ZeroStart *z) {
  Op op = (Op)ir_get(s->fn, r)->op;
  if (op == OP_VAR) look_at_variable(s, r, z);
  if (op == OP_RMEM || op == OP_SMEM) look_at_object(s, r, z);
  if (op == OP_ADD || op == OP_FMA) look_at_chain(s, r, inner, z);
}

void zero_starts(Ctx *cx, const Fn *fn,
                 void (*found)(void *ud, const ZeroStart *z), void *ud) {
  Search s = {.fn = fn};
  s.met = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.met);
  s.by = updates_writers(cx, fn);
  const bool *inner = inner_terms(cx, fn);
  s.seen = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *s.seen);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    ZeroStart z = {0};
    look_at_sum(&s, r, inner, &z);
    bool extreme = i->op == OP_MAX || i->op == OP_MIN;
    if (extreme && dtype_is_float((DType)i->type)) {
      look_at_mask(&s, r, &z);
      if (!z.at) look_at_kept(&s, r, &z);
      if (!z.at && !inner[r]) look_at_tree(&s, r, &z);
    }
    if (i->op == OP_IF) look_at_branch(&s, r, &z);
    else if (i->op == OP_VSET || i->op == OP_ST) look_at_update(&s, r, &z);
    if (z.at) found(ud, &z);
  }
}
// SPDX-License-Identifier: MIT
