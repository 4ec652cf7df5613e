// Composes plain layouts: composes each leaf of the right layout with the left
// layout. Then checks that sums of the leaves do not carry into the next mode
// of the left layout.
#include "layout/inside.h"

#include <string.h>

// Returns text for a message that f, evaluated along leaf r of the right
// layout, is not one mode. Names the first coordinate where the step changes.
static const char *counter(Ctx *cx, Flat f, Mode r) {
  Layout l = flat_layout(cx, f);
  if (!dim_static(r.s) || !dim_static(r.d) || !layout_static(l) ||
      layout_has_basis(l))
    return NULL;
  int64_t n = r.s.w < 4096 ? r.s.w : 4096, step = 0;
  if (dim_abs(cx, r.d).w > (DIM_MAX >> 13)) return NULL;
  for (int64_t i = 1; i < n; i++) {
    int64_t y = layout_eval_at(cx, l, dim_int(cx, i * r.d.w)).w;
    if (i == 1) step = y;
    if (y != i * step)
      return arena_printf(
        cx, &cx->scratch,
        "e.g. coordinate %lld of %lld:%lld is coordinate %lld of %s: offset "
        "%lld, where equal steps of %lld would give %lld",
        (long long)i, (long long)r.s.w, (long long)r.d.w,
        (long long)(i * r.d.w), layout_text(cx, l), (long long)y,
        (long long)step, (long long)(i * step));
  }
  return NULL;
}

// Returns d if it is a static integer. For a static basis, returns a hash that
// is linear in the basis value and in practice unique for each path, so that
// code can compare sums of bases as integers.
static int64_t weight(Dim d) {
  if (dim_static(d)) return d.w;
  int path[DIM_LEVELS], n = dim_basis_path(d, path);
  uint64_t h = (uint64_t)dim_basis_value(d).w;
  for (int i = 0; i < n; i++)
    h *= 0x9e3779b97f4a7c15u + 0xbf58476d1ce4e5bau * (uint64_t)path[i];
  return (int64_t)h;
}

// Reports whether flat_at can evaluate the modes: their extents and strides are
// static and not XORed.
static bool flat_static(Flat f) {
  for (int i = 0; i < f.n; i++)
    if (!dim_static(f.s[i]) || dim_dynamic(f.d[i]) ||
        dim_kind(f.d[i]) == DIM_XOR)
      return false;
  return true;
}

int64_t flat_at(Flat f, int64_t i) {
  uint64_t sum = 0;
  for (int k = 0; k < f.n; k++) {
    int64_t own = k + 1 < f.n ? i % f.s[k].w : i;
    if (k + 1 < f.n) i /= f.s[k].w;
    sum += (uint64_t)own * (uint64_t)weight(f.d[k]);
  }
  return (int64_t)sum;
}

typedef enum Verdict { SAME, OTHER, TOO_MANY } Verdict;

// Compares a(b(i)) with r(i) for all i < n for which b(i) < end. Sets *at to
// the first i where they differ.
static Verdict look(Flat a, Flat b, Flat r, int64_t n, int64_t end,
                    int64_t *at) {
  for (*at = 0; *at < n; ++*at) {
    if (*at == LOOK_MAX) return TOO_MANY;
    int64_t x = flat_at(b, *at);
    if (x < end && flat_at(a, x) != flat_at(r, *at)) return OTHER;
  }
  return SAME;
}

// Reports whether out(i) equals f(i * r.d) for all i < r.s. Also returns true
// if traced numbers leave this undecided.
static bool follows(Flat f, Mode r, Flat out) {
  Flat right = {&r.s, &r.d, 1};
  int64_t at;
  if (!flat_static(f) || !flat_static(right) || !flat_static(out))
    // Traced numbers have no value yet. The caller appends an assertion of the
    // equality to the kernel.
    return true;
  return look(f, right, out, r.s.w, INT64_MAX, &at) == SAME;
}

// Finds by evaluation a layout `out` with out(i) equal to f(i * r.d) for i <
// r.s. Each mode extends until the difference between adjacent values changes.
// Returns false if no such layout exists or there are too many elements. The
// result has at most as many modes as int64_t has bits.
static bool fit(Ctx *cx, Flat f, Mode r, Flat *out) {
  Flat right = {&r.s, &r.d, 1};
  int64_t unit = 1, at, last;
  if (!dim_static(r.s) || !dim_static(r.d) || !flat_static(f)) return false;
  for (int i = 0; i < f.n; i++)
    if (!dim_static(f.d[i]) && r.s.w > 1) return false;
  if (r.s.w > LOOK_MAX || __builtin_mul_overflow(r.s.w, r.d.w, &last))
    return false;
  *out = (Flat){NEW(cx, Dim, 64), NEW(cx, Dim, 64), 0};
  do {
    int64_t rest = r.s.w / unit, step = flat_at(f, unit * r.d.w), run = 1;
    while (run < rest && flat_at(f, run * unit * r.d.w) == run * step) run++;
    if (rest % run != 0) return false;
    out->s[out->n] = dim_int(cx, run);
    out->d[out->n++] = dim_int(cx, dim_static(f.d[0]) ? step : 0);
    unit *= run;
  } while (unit < r.s.w);
  return look(f, right, *out, r.s.w, INT64_MAX, &at) == SAME;
}

// Bounds on the coordinates that the leaves of the right layout produce in the
// left layout, with one array entry for each mode of the left layout. There is
// one Digits for leaves with positive strides, and one for leaves with negative
// strides.
typedef struct Digits {
  // largest coordinate in the mode that sums of the leaves reach, or DIM_MAX if
  // unknown
  int64_t *used;
  // step size of the leaf that reaches the end of a mode of traced extent, or 0
  // if no leaf does. The sums of all other leaves must stay below this step.
  int64_t *step;
} Digits;

// Records that a leaf of the right layout takes n steps of size `step` in mode
// i of the left layout. whole: the leaf reaches the end of the mode.
static void add_digit(Digits *g, int i, Dim n, Dim step, bool whole) {
  int64_t most;
  if (whole && !dim_static(n) && dim_static(step) && !g->step[i]) {
    g->step[i] = step.w;
    return;
  }
  if (!dim_static(n) || !dim_static(step) ||
      __builtin_mul_overflow(n.w - 1, step.w, &most) ||
      most > DIM_MAX - g->used[i])
    g->used[i] = DIM_MAX;
  else
    g->used[i] += most;
}

// The composition of one leaf of the right layout. `out` contains the modes of
// the result. Mode k of the result takes steps of size step[k] in mode mode[k]
// of the left layout. mode and step are NULL if the leaf was composed by
// evaluation.
typedef struct Leaf {
  Flat out;
  int *mode;
  Dim *step;
} Leaf;

// Handles a leaf r that violates the divisibility conditions of composition.
// Finds the result by evaluation, or fails.
static Leaf bad_leaf(Ctx *cx, Note *nt, Flat f, Mode r, const char *what,
                     Dim x, Dim y, Digits *g) {
  Leaf leaf = {0};
  if (!nt->weak && fit(cx, f, r, &leaf.out)) {
    for (int i = 0; i < f.n && r.s.w > 1; i++) g->used[i] = DIM_MAX;
    return leaf;
  }
  if (nt->quiet) {
    nt->bad = true;
    return leaf;
  }
  const char *s =
    arena_printf(cx, &cx->scratch,
                 "%s %lld is not divisible by extent %lld (%s on %s)",
                 what, (long long)x.w, (long long)y.w,
                 layout_text(cx, layout_leaf(cx, r.s, r.d)),
                 layout_text(cx, flat_layout(cx, f)));
  note_fail(cx, nt, s, counter(cx, f, r));
  return leaf;
}

static Dim with_sign(Ctx *cx, Dim v, Dim like) {
  return dim_static(like) && like.w < 0 ? dim_neg(cx, v) : v;
}

// Returns min(a, b). Emits no instruction if a or b is known to divide the
// other.
static Dim part_min(Ctx *cx, Dim a, Dim b) {
  if (dim_static(b) && dim_dynamic(a) && dim_div(cx, a) % b.w == 0) return b;
  if (dim_static(a) && dim_dynamic(b) && dim_div(cx, b) % a.w == 0) return a;
  return dim_min(cx, a, b);
}

static void add_mode(Ctx *cx, Leaf *l, Flat f, int i, Dim s, Dim step) {
  int k = l->out.n++;
  l->out.s[k] = s;
  l->out.d[k] = dim_mul(cx, step, f.d[i]);
  l->mode[k] = i;
  l->step[k] = step;
}

// Composes the left modes f (coalesced, f.n >= 2) with the right leaf r, whose
// stride is not 0. For a negative stride, the result is that of the positive
// stride, negated, because l(-i) = -l(i).
static Leaf compose_leaf(Ctx *cx, Note *nt, Flat f, Mode r, Digits *g) {
  size_t n = (size_t)f.n;
  Leaf l = {{NEW(cx, Dim, n), NEW(cx, Dim, n), 0}, NEW(cx, int, n),
            NEW(cx, Dim, n)};
  Dim rest_s = r.s, rest_d = r.d;
  if (!note_elements(cx, nt, flat_layout(cx, f).shape) ||
      !note_elements(cx, nt, &r.s))
    return l;
  // whether the leaf meets CuTe's divisibility condition, but the result may
  // still be wrong
  bool weak = false;
  if (dim_dynamic(r.d) && !traced_positive(cx, r.d)) nt->trust = true;
  for (int i = 0; i + 1 < f.n; i++) {
    Dim cs = f.s[i], step = dim_abs(cx, rest_d);
    bool known = dim_static(cs) && dim_static(step);
    if (known && step.w >= cs.w && step.w % cs.w != 0)
      return bad_leaf(cx, nt, f, r, "stride", step, cs, g);
    if (dim_is(rest_s, 1) && dim_dynamic(cs)) {
      // With extent 1, the coordinate is 0. Only the stride is needed.
      if (!known) continue;
    }
    Dim next_s = dim_ceil_div(cx, cs, step);
    bool fits = traced_divides(cx, step, cs);
    if (dim_is(next_s, 1) || dim_is(rest_s, 1)) {
      if (!known && !dim_is(rest_s, 1) && !traced_divides(cx, cs, step))
        nt->trust = true;
      rest_d = with_sign(cx, dim_ceil_div(cx, step, cs), rest_d);
      continue;
    }
    Dim new_s = part_min(cx, next_s, rest_s);
    bool ends = dim_eq(new_s, rest_s);
    if (!ends && ((!known && !fits && !traced_divides(cx, cs, step)) ||
                  !traced_divides(cx, new_s, rest_s)))
      nt->trust = true;
    bool whole = dim_static(new_s) && dim_static(rest_s);
    if (whole && rest_s.w % new_s.w != 0)
      return bad_leaf(cx, nt, f, r, "extent", rest_s, new_s, g);
    if (known && !fits && !ends) weak = true;
    add_digit(g, i, new_s, step, fits && dim_eq(new_s, next_s));
    if (weak) g->used[i] = DIM_MAX;
    add_mode(cx, &l, f, i, new_s, rest_d);
    rest_s = ends ? (Dim){1} : dim_quo(cx, rest_s, new_s);
    if (dim_is(rest_s, 1)) break;
    rest_d = with_sign(cx, dim_ceil_div(cx, step, cs), rest_d);
  }
  if (l.out.n == 0 || !dim_is(rest_s, 1)) {
    add_mode(cx, &l, f, f.n - 1, rest_s, rest_d);
    // The last left mode has no bound. Record only that its coordinate may not
    // be 0.
    if (!dim_is(rest_s, 1)) g->used[f.n - 1] = 1;
  }
  if (!weak || nt->weak) return l;
  if (!flat_static(f)) nt->trust = true;
  else if (!follows(f, r, l.out))
    return bad_leaf(cx, nt, f, r, "stride", dim_abs(cx, r.d), f.s[0], g);
  return l;
}

// The part of the left layout that a stride of the right layout selects. An
// integer selects all of the left layout, and a basis selects the mode that it
// names.
typedef struct Part {
  Dim stride;  // the first stride of the right layout that selects this part
  Flat left;         // the selected part, coalesced
  // Number of elements of the part. `left` does not determine it, because
  // `left` stores a last extent of 1 as 2.
  Dim size;
  // if a basis names the mode: extent of this mode. The composition is
  // undefined beyond this extent, where CuTe returns some value.
  int64_t end;
  Digits digits[2];  // bounds for positive and for negative strides
} Part;

typedef struct Compose {
  Note *nt;
  Layout left;
  Layout right;
  Part *part;
  int nparts, capparts;
  // part that each leaf of the right layout selects; -1: stride 0
  int *part_of;
  size_t leaf;        // index of the next leaf of the right layout
  TupB shape;
  struct Place *out;
  size_t n, cap;
} Compose;

// A mode of the result. s, d: its extent and stride. leaf: the leaf of the
// right layout from which it was computed. The mode takes steps of size `step`
// in mode `mode` of the left layout (-1: unknown; see Leaf).
typedef struct Place {
  Dim s, d;
  int leaf, mode;
  Dim step;
} Place;

static void put_mode(Ctx *cx, Compose *c, Dim s, Dim d, int mode, Dim step) {
  if (c->n == c->cap) {
    Place *w = NEW(cx, Place, c->cap * 2);
    memcpy(w, c->out, c->n * sizeof *w);
    c->out = w;
    c->cap *= 2;
  }
  tupb_leaf(cx, &c->shape, s);
  c->out[c->n++] = (Place){s, d, (int)c->leaf - 1, mode, step};
}

// Compares the modes of the coordinates along which strides a and b point.
// Returns 0 if they are the same mode, 1 if they are disjoint, and -1 if one
// contains the other, so that the strides cannot be added.
static int apart(Dim a, Dim b) {
  int p[DIM_LEVELS], q[DIM_LEVELS];
  int n = dim_basis_path(a, p), m = dim_basis_path(b, q);
  for (int k = 0; k < n && k < m; k++)
    if (p[k] != q[k]) return 1;
  return n == m ? 0 : -1;
}

static void find_left(Ctx *cx, Compose *c, Part *p) {
  Layout l = c->left;
  int path[DIM_LEVELS], n = dim_basis_path(p->stride, path);
  for (int i = 0; i < n; i++) {
    if (path[i] >= layout_rank(l)) {
      note_fail(cx, c->nt, "a basis names a mode that the left layout does not "
                "have", NULL);
      p->left = (Flat){0};
      return;
    }
    l = layout_mode(cx, l, path[i]);
  }
  p->size = layout_size(cx, l);
  p->end = n && dim_static(p->size) ? p->size.w : INT64_MAX;
  p->left = flat_coalesce(cx, flat_of(cx, l), true);
}

// Returns the index of the part that stride d selects. Adds the part if it is
// new.
static int part_of(Ctx *cx, Compose *c, Dim d) {
  for (int i = 0; i < c->nparts; i++) {
    int k = apart(c->part[i].stride, d);
    if (k == 0) return i;
    if (k < 0)
      note_fail(cx, c->nt, arena_printf(
        cx, &cx->scratch, "strides %s and %s cannot be added",
        tup_text(cx, &c->part[i].stride), tup_text(cx, &d)), NULL);
    if (c->nt->bad) return i;
  }
  if (c->nparts == c->capparts) {
    Part *p = NEW(cx, Part, (size_t)c->capparts * 2);
    memcpy(p, c->part, (size_t)c->nparts * sizeof *p);
    c->part = p;
    c->capparts *= 2;
  }
  Part *p = &c->part[c->nparts];
  p->stride = d;
  find_left(cx, c, p);
  size_t bytes = (size_t)p->left.n * sizeof(int64_t) + 8;
  for (int i = 0; i < 2; i++)
    p->digits[i] = (Digits){.used = arena_zero(cx, &cx->scratch, bytes),
                            .step = arena_zero(cx, &cx->scratch, bytes)};
  return c->nparts++;
}

static void explain_leaf(Ctx *cx, Dim s, Dim d, Flat out) {
  explain_say(cx, "  %s of the right becomes %s",
              layout_text(cx, layout_leaf(cx, s, d)),
              layout_text(cx, flat_layout(cx, out)));
}

static void compose_walk(Ctx *cx, Compose *c, Tup shape) {
  if (!tup_is_leaf(shape)) {
    bool top = c->shape.nopen == 0 && c->nt->modes;
    tupb_open(cx, &c->shape);
    Tup m = tup_first(shape);
    for (int i = 0, n = tup_rank(shape); i < n; i++, m = tup_next(m)) {
      if (top) c->nt->mode = i;
      compose_walk(cx, c, m);
    }
    if (top) c->nt->mode = -1;
    tupb_close(cx, &c->shape);
    return;
  }
  Dim d = c->right.stride[c->leaf], v = dim_basis_value(d);
  int at = dim_is(v, 0) ? -1 : part_of(cx, c, d);
  c->part_of[c->leaf++] = at;
  if (c->nt->bad) return;
  if (at < 0) {
    put_mode(cx, c, *shape, v, 0, v);
    return;
  }
  Part *p = &c->part[at];
  Dim one[2] = {*shape, {0}};
  Leaf l = {{one, one + 1, 1}, &(int){0}, &v};
  if (p->left.n == 1)
    one[1] = dim_mul(cx, v, p->left.d[0]);
  else
    l = compose_leaf(cx, c->nt, p->left, (Mode){*shape, v},
                     &p->digits[dim_static(v) && v.w < 0]);
  if (c->nt->bad) return;
  if (explain_on(cx)) explain_leaf(cx, *shape, d, l.out);
  if (l.out.n > 1) tupb_open(cx, &c->shape);
  for (int i = 0; i < l.out.n; i++)
    put_mode(cx, c, l.out.s[i], l.out.d[i], l.mode ? l.mode[i] : -1,
             l.mode ? l.step[i] : v);
  if (l.out.n > 1) tupb_close(cx, &c->shape);
}

// Returns the smallest value that extent s can have, as far as it is known.
static int64_t least(Ctx *cx, Dim s) {
  if (dim_static(s)) return s.w;
  int64_t lo = ir_fact(ir_fn(cx), dim_getref(s)).lo, div = dim_div(cx, s);
  return lo > div ? lo : div;
}

// Reports whether the sum of several leaves of the right layout may exceed the
// extent of a left mode. The sum then carries into the next mode, which no
// layout represents.
static bool may_carry(Ctx *cx, const Part *p) {
  // index of the only left mode that positive (met[0]) or negative (met[1])
  // strides reach; -1: none; left.n: several modes
  int met[2] = {-1, -1};
  for (int i = 0; i < p->left.n; i++) {
    for (int k = 0; k < 2; k++) {
      int64_t used = p->digits[k].used[i], step = p->digits[k].step[i];
      if (!used && !step) continue;
      int64_t room = step ? step : least(cx, p->left.s[i]);
      if (i + 1 < p->left.n && used >= room) return true;
      met[k] = met[k] < 0 || met[k] == i ? i : p->left.n;
    }
  }
  return met[0] >= 0 && met[1] >= 0 &&
         (met[0] != met[1] || met[0] == p->left.n);
}

// Writes to b the modes of the right layout that select part i, and to r the
// corresponding modes of the result. Returns the size of b. A size above
// LOOK_MAX may be inexact.
static int64_t sides(Ctx *cx, Compose *c, int i, Flat *b, Flat *r) {
  Flat right = flat_of(cx, c->right);
  Dim *w = NEW(cx, Dim, 2 * ((size_t)right.n + c->n) + 1);
  *b = (Flat){w, w + right.n, 0};
  *r = (Flat){w + 2 * right.n, w + 2 * (size_t)right.n + c->n, 0};
  int64_t size = 1;
  for (int k = 0; k < right.n; k++) {
    if (c->part_of[k] != i) continue;
    b->s[b->n] = right.s[k];
    b->d[b->n++] = dim_basis_value(right.d[k]);
    if (size > LOOK_MAX / right.s[k].w) size = LOOK_MAX + 1;
    else size *= right.s[k].w;
  }
  for (size_t k = 0; k < c->n; k++) {
    if (c->part_of[c->out[k].leaf] != i) continue;
    r->s[r->n] = c->out[k].s;
    r->d[r->n++] = c->out[k].d;
  }
  return size;
}

// Reports whether the result of a division, with extents rounded up as needed,
// covers all coordinates of part i of the left layout. For this, the result's
// modes must enumerate the coordinates in the order of the right layout's
// values, without gaps. Coordinates and values are linear in these modes, so
// comparing their strides suffices.
static bool rounds_up(Ctx *cx, Compose *c, int i) {
  Flat left = c->part[i].left;
  int64_t elements = c->part[i].size.w;
  int64_t *extent = NEW(cx, int64_t, (size_t)left.n);
  int64_t *unit = NEW(cx, int64_t, (size_t)left.n);
  int64_t size = 1, last = 0, own = 1, most, step;
  for (int m = 0; m < left.n; m++) extent[m] = 1;
  for (size_t k = 0; k < c->n; k++) {
    const Place *p = &c->out[k];
    if (c->part_of[p->leaf] != i) continue;
    if (p->mode < 0 || __builtin_mul_overflow(p->s.w - 1, p->step.w, &most) ||
        __builtin_add_overflow(extent[p->mode], most, &extent[p->mode]) ||
        __builtin_mul_overflow(size, p->s.w, &size))
      return false;
  }
  for (int m = 0; m < left.n; m++) {
    int64_t s = m + 1 < left.n ? left.s[m].w : elements;
    int64_t before = m ? unit[m - 1] : 1;
    elements /= s;
    if (extent[m] < s) extent[m] = s;
    // If a traced stride merged left modes, this extent is not rounded up. The
    // kernel must then assert the result.
    if (extent[m] > s && m + 1 < left.n && !flat_static(left))
      c->nt->trust = true;
    unit[m] = before;
    if (m && __builtin_mul_overflow(before, extent[m - 1], &unit[m]))
      return false;
    if (__builtin_mul_overflow(s - 1, unit[m], &most) ||
        __builtin_add_overflow(last, most, &last))
      return false;
  }
  for (size_t k = 0; k < c->n; k++) {
    const Place *p = &c->out[k];
    if (c->part_of[p->leaf] != i) continue;
    own = k && c->out[k - 1].leaf == p->leaf ? own * c->out[k - 1].s.w : 1;
    if (p->s.w == 1) continue;
    int64_t by = dim_basis_value(c->right.stride[p->leaf]).w;
    if (__builtin_mul_overflow(unit[p->mode], p->step.w, &step) ||
        __builtin_mul_overflow(by, own, &most) || step != most)
      return false;
  }
  return last < size;
}

// Reports whether part i of the left layout and the result's modes for it have
// static extents and steps.
static bool counted(Compose *c, int i) {
  for (int m = 0; m < c->part[i].left.n; m++)
    if (!dim_static(c->part[i].left.s[m])) return false;
  for (size_t k = 0; k < c->n; k++)
    if (c->part_of[c->out[k].leaf] == i &&
        (!dim_static(c->out[k].s) || !dim_static(c->out[k].step)))
      return false;
  return true;
}

// Checks that the tile and the rest of a division together cover the left
// layout. Extents may be rounded up.
static void check_divide(Ctx *cx, Compose *c) {
  for (int i = 0; i < c->nparts; i++) {
    if (!counted(c, i))
      c->nt->trust |= c->nt->gaps || may_carry(cx, &c->part[i]);
    else if (c->nt->gaps || !rounds_up(cx, c, i))
      note_fail(cx, c->nt, "the tile and the rest of the division do not cover "
                "the left layout exactly", NULL);
  }
}

// Returns text for a message about element `at` of b, where the value of `left`
// differs from the sum of the modes r.
static const char *carried(Ctx *cx, Flat left, Flat b, Flat r, int64_t at) {
  Layout l = flat_layout(cx, left);
  int64_t x = flat_at(b, at);
  const char *s = arena_printf(
    cx, &cx->scratch, "e.g. coordinate %lld of %s is coordinate %lld of %s",
    (long long)at, layout_text(cx, flat_layout(cx, b)), (long long)x,
    layout_text(cx, l));
  if (layout_has_basis(l)) return s;
  return arena_printf(
    cx, &cx->scratch, "%s: offset %lld, where the modes add up to %lld", s,
    (long long)flat_at(left, x), (long long)flat_at(r, at));
}

// Checks sums that may carry: compares the result with the exact values by
// evaluation. CuTe makes no such check.
static void check_sums(Ctx *cx, Compose *c) {
  for (int i = 0; i < c->nparts; i++) {
    Part *p = &c->part[i];
    Flat b, r;
    int64_t at = 0;
    if (!may_carry(cx, p)) continue;
    int64_t n = sides(cx, c, i, &b, &r);
    if (!flat_static(p->left) || !flat_static(b) || !flat_static(r)) {
      c->nt->trust |= b.n > 1;
      continue;
    }
    Verdict v = look(p->left, b, r, n, p->end, &at);
    if (v == SAME) continue;
    const char *why = NULL;
    if (v == OTHER && !c->nt->quiet) why = carried(cx, p->left, b, r, at);
    c->nt->many = v == TOO_MANY;
    note_fail(cx, c->nt, v == OTHER
      ? "modes of the right layout add up beyond an extent of the left"
      : "modes of the right layout may add up beyond an extent of the left, "
        "and have too many elements to check", why);
    return;
  }
}

static void explain_compose(Ctx *cx, Layout a, Layout b) {
  Layout f = flat_layout(cx, flat_coalesce(cx, flat_of(cx, a), true));
  explain_say(cx, "composition %s o %s", layout_text(cx, a),
              layout_text(cx, b));
  if (!layout_has_basis(b) && !layout_eq(a, f))
    explain_say(cx, "  left, coalesced: %s", layout_text(cx, f));
}

Layout compose_plain(Ctx *cx, Note *nt, Layout a, Layout b) {
  size_t n = tup_leaves(b.shape);
  Compose c = {.nt = nt, .left = a, .right = b, .capparts = 4,
               .cap = 2 * n + 4};
  c.part = NEW(cx, Part, (size_t)c.capparts);
  c.part_of = NEW(cx, int, n + 1);
  c.out = NEW(cx, Place, c.cap);
  if (explain_on(cx)) explain_compose(cx, a, b);
  compose_walk(cx, &c, b.shape);
  if (nt->bad) return b;
  Dim *d = NEW(cx, Dim, c.n + 1);
  for (size_t k = 0; k < c.n; k++) d[k] = c.out[k].d;
  Layout r = {.shape = tupb_done(cx, &c.shape), .stride = d};
  if (nt->weak) check_divide(cx, &c);
  else check_sums(cx, &c);
  if (explain_on(cx)) explain_say(cx, "  result %s", layout_text(cx, r));
  return r;
}
// SPDX-License-Identifier: MIT
