// Views of tensors. Every operation changes the plain layout (in a swizzled
// tensor, the layout inside the swizzle). It also moves the iterator or, in a
// swizzled tensor, changes the offset inside the swizzle. A slice of a swizzled
// tensor is therefore correct even if traced coordinates change address bits
// that the swizzle reads.
#include "tensor/place.h"

#include <inttypes.h>
#include <string.h>

#include "ir/fold.h"
#include "layout/composed.h"

// ---- small helpers ----

static Dim zero(void) { return (Dim){0}; }

bool tup_has_any(Tup t) { return tup_has(t, DIM_ANY); }

const char *tensor_show(Ctx *cx, const Tensor *t) {
  Buf b = {0};
  tensor_print(cx, *t, &b);
  char *s = arena_alloc(cx, &cx->scratch, b.n + 1);
  memcpy(s, b.p, b.n + 1);
  buf_free(&b);
  return s;
}

// ---- coordinate checks ----

typedef struct Check {
  const Tensor *t;  // the tensor; NULL: `shape` is that of a vector
  Tup shape;
  Tup coord;
  int mode;  // top-level mode to check; -1: all modes
} Check;

// Returns a hint if coord contains all three values of a call such as
// thread_idx(), otherwise "". In Lua, such a call as the last entry of a table
// constructor adds three entries instead of one.
static const char *three_values(Ctx *cx, Tup coord) {
  static const char *const names[] = {"thread_idx", "block_idx", "block_dim",
                                      "grid_dim"};
  Tup c = coord;
  int64_t last = -1;
  int run = 0;
  for (size_t i = 0, n = tup_leaves(coord); i < n; i++, c++) {
    while (dim_kind(*c) == DIM_TUP) c++;
    const Ins *s = dim_kind(*c) == DIM_DYN && ir_fn(cx)
                     ? ir_get(ir_fn(cx), dim_getref(*c)) : NULL;
    int64_t r = s && s->op == OP_SREG && s->imm < SR_LANE ? s->imm : -1;
    run = r < 0 ? 0 : r % 3 && r == last + 1 ? run + 1 : 1;
    if (run == 3)
      return arena_printf(cx, &cx->scratch, "\n  %s() returns x, y and z, and "
                          "a table ends with all three: write (cute.arch.%s()) "
                          "for x alone", names[r / 3], names[r / 3]);
    last = r;
  }
  return "";
}

static _Noreturn void bad_coord(Ctx *cx, const Check *k, const char *why,
                                const char *cure) {
  const char *mode = "";
  if (k->mode >= 0)
    mode = arena_printf(cx, &cx->scratch, " in mode %d", k->mode);
  const char *of = k->t ? tensor_show(cx, k->t) : tup_text(cx, k->shape);
  ctx_fail(cx, ERR_ARG, "coordinate %s of the %s %s%s\n  %s%s%s%s",
           tup_text(cx, k->coord), k->t ? "tensor" : "vector", why, mode,
           k->t ? "" : "its shape is ", of, three_values(cx, k->coord), cure);
}

static void check_leaf(Ctx *cx, const Check *k, Tup shape, Dim c) {
  if (dim_kind(c) == DIM_BASIS) bad_coord(cx, k, "holds a basis", "");
  if (!dim_static(c)) return;
  int64_t v = dim_value(c);
  if (v < 0) bad_coord(cx, k, "is negative", "");
  if (v == 0) return;
  if (!tup_static(shape)) return;
  Dim n = tup_size(cx, shape);
  if (v >= dim_value(n))
    bad_coord(cx, k, arena_printf(cx, &cx->scratch,
                                  "is outside of the %" PRId64 " elements",
                                  dim_value(n)),
              v == dim_value(n) ? "\n  coordinates count from 0" : "");
}

static void check_coord(Ctx *cx, Check *k, Tup shape, Tup coord) {
  if (tup_is_leaf(coord)) {
    check_leaf(cx, k, shape, *coord);
    return;
  }
  int n = tup_rank(coord);
  if (tup_is_leaf(shape) ? n != 1 : n != tup_rank(shape))
    bad_coord(cx, k, arena_printf(
      cx, &cx->scratch, "has %d modes instead of %d", n,
      tup_is_leaf(shape) ? 1 : tup_rank(shape)), "");
  Tup s = tup_first(shape), c = tup_first(coord);
  for (int i = 0; i < n; i++, s = tup_next(s), c = tup_next(c)) {
    Check sub = *k;
    if (k->mode < 0) sub.mode = i;
    check_coord(cx, &sub, s, c);
  }
}

void tensor_check_coord(Ctx *cx, const Tensor *t, Tup coord) {
  Check k = {t, t->l.shape, coord, -1};
  check_coord(cx, &k, t->l.shape, coord);
}

// Reports whether coordinate c is known to be less than n. A static coordinate
// was checked earlier.
static bool within(Ctx *cx, Dim c, Dim n) {
  if (!dim_static(n)) return false;
  if (dim_static(c)) return true;
  Fact f = ir_fact(ir_fn(cx), dim_getref(c));
  return f.lo >= 0 && f.hi < dim_value(n);
}

// Returns the extent of a mode, or -1 if the kernel would need instructions to
// compute it.
static Dim extent_of(Ctx *cx, Tup shape) {
  if (tup_static(shape)) return tup_size(cx, shape);
  return tup_is_leaf(shape) ? *shape : (Dim){-1};
}

// Checks that the element at coord is inside the shape. If `claim` is NULL,
// only reports whether all coordinates are known to be inside. Otherwise
// appends an assertion for each coordinate that may be outside. *claim is true
// if the access is a write.
static bool look(Ctx *cx, const Tensor *t, Tup shape, Tup coord,
                 const bool *claim) {
  bool known = true;
  if (!tup_is_leaf(coord)) {
    Tup s = tup_first(shape), c = tup_first(coord);
    for (int i = 0; i < tup_rank(coord); i++) {
      known &= look(cx, t, s, c, claim);
      s = tup_next(s);
      c = tup_next(c);
    }
    return known;
  }
  Dim n = extent_of(cx, shape), c = *coord;
  if (dim_kind(c) != DIM_INT && dim_kind(c) != DIM_DYN) return true;
  if (!claim) return dim_is(n, -1) || within(cx, c, n);
  Claim k = {.mem = t->mem, .hi = INT64_MAX, .div = 1, .write = *claim,
             .more = true};
  if (dim_static(c)) k.lo = dim_value(c);
  else k.v = dim_getref(c);
  if (dim_static(n) && !dim_is(n, -1)) k.hi = dim_value(n) - 1;
  else if (!dim_static(n)) k.limit = dim_getref(n);
  ir_claim(cx, ir_fn(cx), k);
  return true;
}

// Reports whether all coordinates have the same element: all strides are 0.
static bool has_one_element(const Layout *l) {
  size_t n = tup_leaves(l->shape);
  for (size_t k = 0; k < n; k++)
    if (!dim_is(l->stride[k], 0)) return false;
  return !l->outer;
}

void tensor_claim(Ctx *cx, const Tensor *t, Tup coord, bool write) {
  bool plain = t->space == SP_GMEM || t->space == SP_SMEM;
  bool leaf = tup_is_leaf(coord);
  place_claim(cx, t, coord, write);
  if (!plain || (!leaf && tup_is_leaf(t->l.shape))) return;
  // The bounds of the memory limit one coordinate, unless strides are 0.
  if ((leaf || tup_rank(coord) < 2) && !has_one_element(&t->l)) return;
  if (look(cx, t, t->l.shape, coord, NULL)) return;
  look(cx, t, t->l.shape, coord, &write);
  Fn *fn = ir_fn(cx);
  fn->claim.p[fn->claim.n - 1].more = false;
}

void tensor_check_index(Ctx *cx, Tup shape, Tup coord) {
  Check k = {NULL, shape, coord, -1};
  check_coord(cx, &k, shape, coord);
}

// ---- moving the iterator ----

Tup tensor_coord(Ctx *cx, Tensor t, Tup coord) {
  return tup_add(cx, t.base, layout_eval_tup(cx, t.l, coord));
}

// Returns the largest power of two, at most 2^20, that divides the number of
// bytes of `o` elements.
static int64_t align_of(Ctx *cx, DType type, Dim o) {
  int64_t div = dim_div(cx, o), bits = dtype_bits(type);
  if (div == 0) return 1 << 20;
  int64_t all = (int64_t)1 << 20, low = div & -div;
  if (low > all * 8) low = all * 8;
  int64_t b = base_gcd(low * bits, all * 8);
  return b >= 8 ? b / 8 : 1;
}

void tensor_check_reach(Ctx *cx, Dim o) {
  int64_t most = (int64_t)1 << 52;
  if (dim_static(o) && (dim_value(o) > most || dim_value(o) < -most))
    ctx_fail(cx, ERR_LIMIT, "a tensor can reach at most 2^52 elements from its "
             "start, not %lld", (long long)dim_value(o));
}

static Tensor advance(Ctx *cx, Tensor t, Dim o) {
  if (dim_is(o, 0)) return t;
  int64_t a = align_of(cx, t.type, o);
  tensor_check_reach(cx, o);
  t.off = dim_add(cx, t.off, o);
  tensor_check_reach(cx, t.off);
  if (a < t.align) t.align = a;
  return t;
}

// Returns the position of a slice of t in the whole tensor. `x` is the offset
// of the slice's coordinate in layout l. `o` is the part of this offset by
// which the iterator moves. If t is swizzled, the remaining part of x stays in
// the layout of the slice.
static Origin moved(Ctx *cx, Tensor t, Layout l, Tup x, Dim o) {
  Origin p = t.origin;
  const Swizzle *sw = layout_swizzle(l);
  if (!sw) {
    if (p.kind != ORIGIN_LAYOUT && !dim_is(o, 0)) p.kind = ORIGIN_LOST;
    return p;
  }
  int64_t period = swizzle_yyy(*sw) | swizzle_zzz(*sw);
  period = period ? (int64_t)2 << (63 - __builtin_clzll((uint64_t)period)) : 1;
  bool same = layout_swizzle(t.l) && dim_div(cx, o) % period == 0;
  if (p.kind == ORIGIN_LAYOUT && same) return p;
  if (!dim_static(*x) || (p.kind == ORIGIN_LAYOUT && !dim_static(l.offset)))
    p.kind = ORIGIN_LOST;
  else if (p.kind == ORIGIN_LAYOUT)
    p = (Origin){ORIGIN_SWIZZLED, *sw, l.offset.w + x->w, t.off};
  else
    p.at += x->w;
  return p;
}

Tensor tensor_iterator(Ctx *cx, Tensor t) {
  t.place = NULL;
  Layout one = layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0));
  if (t.origin.kind != ORIGIN_SWIZZLED) {
    t.l = layout_outer(one, t.l);
    return t;
  }
  t.off = t.origin.off;
  t.l = layout_after_swizzle(cx, t.origin.sw, dim_int(cx, t.origin.at), one);
  t.origin.kind = ORIGIN_LAYOUT;
  return t;
}

Tensor tensor_unswizzled(Ctx *cx, Tensor t) {
  t = tensor_iterator(cx, t);
  if (!layout_swizzle(t.l)) return t;
  Dim o = t.l.offset;
  t.l = layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0));
  return advance(cx, t, o);
}

Tensor tensor_offset(Ctx *cx, Tensor t, Dim o) {
  if (!dim_is(o, 0)) t.place = NULL;
  if (t.origin.kind != ORIGIN_LAYOUT && !dim_is(o, 0))
    t.origin.kind = ORIGIN_LOST;
  if (t.space == SP_COORD)
    t.base = tup_add(cx, t.base, tup_from_terms(cx, &o, 1));
  else if (t.l.outer)
    t.l = layout_with_offset(t.l, layout_shifted(cx, t.l, tup_from_terms(
                                                   cx, &o, 1)));
  else
    t = advance(cx, t, o);
  return t;
}

// Slices t as if its layout were l. Keeps the modes where coord has `_`, and
// moves the iterator to the other coordinates.
static Tensor sliced(Ctx *cx, Tensor t, Layout l, Tup coord) {
  t.l = l;
  tensor_check_coord(cx, &t, coord);
  if (t.space == SP_COORD) {
    Tup o;
    t.l = layout_slice_tup(cx, l, coord, &o);
    t.base = tup_add(cx, t.base, o);
    return t;
  }
  Dim o;
  t.l = layout_slice(cx, l, coord, &o);
  if (layout_swizzle(l) || t.origin.kind != ORIGIN_LAYOUT)
    t.origin = moved(cx, t, l, tup_crd2idx(cx, coord, l.shape, l.stride), o);
  return advance(cx, t, o);
}

// ---- views ----

Tensor tensor_with_layout(Tensor t, Layout l) {
  t.l = l;
  t.place = NULL;
  return t;
}

bool tensor_wide(Ctx *cx, Layout l) {
  // A user's function computes the offsets, so their bound is unknown.
  if (layout_has_fn(l)) return false;
  if (l.outer) return layout_static(l) && layout_bound(cx, l) > INT32_MAX;
  Dim n = layout_cosize(cx, l);
  return dim_static(n) && dim_value(n) > INT32_MAX;
}

// Records the layout through which a kernel views shared memory that it
// allocated as a plain number of elements. Views of a slice are not recorded.
static void note_view(Ctx *cx, const Tensor *t) {
  Fn *fn = ir_fn(cx);
  if (!fn || !t->mem || t->space != SP_SMEM || !dim_is(t->off, 0) ||
      (t->l.outer && !layout_swizzle(t->l)) || !layout_static(t->l) ||
      !dim_is(t->l.offset, 0))
    return;
  Mem *m = &fn->mem.p[ir_get(fn, t->mem)->imm];
  if (m->space != SP_SMEM || ir_type(fn, t->mem) != m->type) return;
  const Swizzle *sw = layout_swizzle(t->l);
  int8_t bits[3] = {sw ? sw->b : 0, sw ? sw->m : 0, sw ? sw->s : 0};
  if (m->view) {
    m->views |= memcmp(bits, m->swizzle, sizeof bits) != 0;
    return;
  }
  const char *s = layout_text(cx, t->l);
  m->view = ir_text(cx, fn, s, strlen(s));
  memcpy(m->swizzle, bits, sizeof bits);
}

Tensor tensor_view(Ctx *cx, Tensor t, Layout l) {
  l = layout_linear(cx, l);
  if (ir_fn(cx) && t.space == SP_GMEM && !l.outer && tensor_wide(cx, l))
    ir_fn(cx)->wide = true;
  if (t.origin.kind == ORIGIN_LOST && !dim_is(layout_size(cx, l), 1))
    ctx_fail(cx, ERR_ARG, "make_tensor: the iterator's position in its "
             "swizzled tensor is no longer known\n  %s\n  use the iterator of "
             "the whole tensor plus an offset", tensor_show(cx, &t));
  t.l = layout_seen_through(cx, l, t.l);
  t.place = NULL;
  note_view(cx, &t);
  return t;
}

static Tensor slice(Ctx *cx, Tensor t, const void *coord) {
  return sliced(cx, t, t.l, *(const Tup *)coord);
}

Tensor tensor_slice(Ctx *cx, Tensor t, Tup coord) {
  return place_view(cx, t, slice, &coord);
}

static Tensor domain_offset(Ctx *cx, Tensor t, const void *x) {
  Tup coord = *(const Tup *)x, o;
  Layout was = t.l;
  t.l = layout_domain_offset(cx, t.l, coord, &o);
  if (t.origin.kind != ORIGIN_LAYOUT)
    t.origin = moved(cx, t, was, tup_crd2idx(cx, coord, was.shape, was.stride),
                    layout_swizzle(was) ? (Dim){0} : *o);
  if (t.space == SP_COORD) {
    t.base = tup_add(cx, t.base, o);
    return t;
  }
  return advance(cx, t, *o);
}

Tensor tensor_domain_offset(Ctx *cx, Tensor t, Tup coord) {
  return place_view(cx, t, domain_offset, &coord);
}

// ---- tiling ----

enum { MAX_MODES = 32 };

// The result of dividing a layout by a tile, as in zipped_divide. tile[i] and
// rest[i] are the two parts of divided mode i. The last entries of `rest` are
// the modes that the tiler does not cover.
typedef struct Zipped {
  Layout tile[MAX_MODES], rest[MAX_MODES];
  int ntile, nrest;
} Zipped;

// Appends the extents of tiler t to b. Returns false if the tiler contains a
// layout. A tuple of extents may tile a mode that is less nested; it then
// stands for the compact layout of this shape.
static bool put_extents(Ctx *cx, TupB *b, Tiler t) {
  if (t.kind != TILER_TUPLE) {
    if (t.extent) tupb_leaf(cx, b, *t.l.shape);
    return t.extent;
  }
  tupb_open(cx, b);
  for (int i = 0; i < t.n; i++)
    if (!put_extents(cx, b, t.mode[i])) return false;
  tupb_close(cx, b);
  return true;
}

static Layout divided(Ctx *cx, Layout mode, Tiler tile) {
  if (tile.kind == TILER_LAYOUT) return layout_logical_divide(cx, mode, tile);
  if (!tup_is_leaf(mode.shape) && layout_rank(mode) >= tile.n)
    return layout_zipped_divide(cx, mode, tile);
  TupB b = {0};
  if (!put_extents(cx, &b, tile))
    ctx_fail(cx, ERR_SHAPE, "the tiler %s has more modes than the mode that it "
             "tiles\n  %s", tiler_text(cx, tile), layout_text(cx, mode));
  Layout by = layout_compact(cx, tupb_done(cx, &b));
  return layout_logical_divide(cx, mode, tiler_layout(by));
}

static void divide_mode(Ctx *cx, Zipped *z, Layout mode, Tiler tile) {
  Layout d = divided(cx, mode, tile);
  z->tile[z->ntile++] = layout_mode(cx, d, 0);
  z->rest[z->nrest++] = layout_mode(cx, d, 1);
}

static int put_all(Ctx *cx, Layout *to, Layout l) {
  int n = layout_rank(l);
  if (n > MAX_MODES)
    ctx_fail(cx, ERR_LIMIT, "a tensor of more than %d modes cannot be tiled",
             MAX_MODES);
  for (int i = 0; i < n; i++) to[i] = layout_mode(cx, l, i);
  return n;
}

// Divides the whole tensor by one layout. Returns the modes of the tile and the
// modes that count the tiles.
static Zipped zip_whole(Ctx *cx, Layout l, Tiler tiler) {
  Zipped z;
  Layout d = layout_logical_divide(cx, l, tiler);
  z.ntile = put_all(cx, z.tile, layout_mode(cx, d, 0));
  z.nrest = put_all(cx, z.rest, layout_mode(cx, d, 1));
  return z;
}

static Zipped zip(Ctx *cx, const Tensor *t, Tiler tiler, Tup proj) {
  Zipped z = {.ntile = 0};
  Layout l = layout_inner(t->l);
  bool tuple = tiler.kind == TILER_TUPLE;
  int rank = layout_rank(l), n = tuple ? tiler.n : 1, mode = 0;
  if (proj && tup_rank(proj) != n)
    ctx_fail(cx, ERR_SHAPE, "local_tile: the projection %s does not have the "
             "%d modes of the tiler %s", tup_text(cx, proj), n,
             tiler_text(cx, tiler));
  if (rank > MAX_MODES || n > MAX_MODES)
    ctx_fail(cx, ERR_LIMIT, "a tensor of more than %d modes cannot be tiled",
             MAX_MODES);
  if (tiler.kind == TILER_LAYOUT && !proj) return zip_whole(cx, l, tiler);
  const Tiler *m = tuple ? tiler.mode : &tiler;
  Tup p = proj ? tup_first(proj) : NULL;
  for (int i = 0; i < n; i++, m++, p = p ? tup_next(p) : NULL) {
    if (p && dim_kind(*p) == DIM_ANY) continue;
    if (mode >= rank)
      ctx_fail(cx, ERR_SHAPE, "the tiler %s has more modes than the tensor"
               "\n  %s", tiler_text(cx, tiler), tensor_show(cx, t));
    Layout whole = layout_mode(cx, l, mode++);
    if (m->kind == TILER_ANY)
      z.tile[z.ntile++] = whole;
    else
      divide_mode(cx, &z, whole, *m);
  }
  while (mode < rank) z.rest[z.nrest++] = layout_mode(cx, l, mode++);
  return z;
}

// Appends to b the modes of coord that the projection keeps. Then appends `_`
// until b has n modes.
static void put_coord(Ctx *cx, TupB *b, Tup coord, Tup proj, int n) {
  int got = 0, rank = tup_rank(coord);
  Tup c = tup_first(coord), p = proj ? tup_first(proj) : NULL;
  for (int i = 0; i < rank; i++, c = tup_next(c)) {
    bool drop = p && dim_kind(*p) == DIM_ANY;
    if (p) p = tup_next(p);
    if (drop) continue;
    tupb_put(cx, b, c);
    got++;
  }
  if (got > n)
    ctx_fail(cx, ERR_SHAPE, "the coordinate %s has %d modes, but the tiles "
             "have %d%s", tup_text(cx, coord), got, n, three_values(cx, coord));
  while (got++ < n) tupb_leaf(cx, b, dim_any());
}

static Tensor pick(Ctx *cx, Tensor t, const Layout *l, int n, TupB *coord) {
  tupb_close(cx, coord);
  Layout all = layout_concat(cx, l, n);
  return sliced(cx, t, layout_outer(all, t.l), tupb_done(cx, coord));
}

// Stores the modes that coord indexes in l, and their coordinates in b. coord
// has at most n coordinates, or it is one linear coordinate for all n modes. In
// the second case, l has these modes as one mode.
static int put_modes(Ctx *cx, Layout *l, TupB *b, const Layout *from, int n,
                     Tup coord, Tup proj) {
  bool leaf = tup_is_leaf(coord);
  if (leaf && dim_kind(*coord) != DIM_ANY && n > 1) {
    *l = layout_concat(cx, from, n);
    tupb_leaf(cx, b, *coord);
    return 1;
  }
  memcpy(l, from, (size_t)n * sizeof *l);
  put_coord(cx, b, coord, leaf ? NULL : proj, n);
  return n;
}

static int put_whole(Ctx *cx, Layout *l, TupB *b, const Layout *from, int n) {
  memcpy(l, from, (size_t)n * sizeof *l);
  for (int i = 0; i < n; i++) tupb_leaf(cx, b, dim_any());
  return n;
}

typedef struct Tile {
  Tiler tiler;
  Tup coord, proj;
} Tile;

static Tensor inner(Ctx *cx, Tensor t, const void *x) {
  const Tile *by = x;
  Zipped z = zip(cx, &t, by->tiler, by->proj);
  Layout l[2 * MAX_MODES];
  TupB b = {0};
  tupb_open(cx, &b);
  int n = put_whole(cx, l, &b, z.tile, z.ntile);
  n += put_modes(cx, l + n, &b, z.rest, z.nrest, by->coord, by->proj);
  return pick(cx, t, l, n, &b);
}

Tensor tensor_local_tile(Ctx *cx, Tensor t, Tiler tiler, Tup coord,
                         Tup proj) {
  Tile by = {tiler, coord, proj};
  return place_view(cx, t, inner, &by);
}

static Tensor outer(Ctx *cx, Tensor t, const void *x) {
  const Tile *by = x;
  Zipped z = zip(cx, &t, by->tiler, NULL);
  Layout l[2 * MAX_MODES];
  TupB b = {0};
  tupb_open(cx, &b);
  int n = put_modes(cx, l, &b, z.tile, z.ntile, by->coord, NULL);
  n += put_whole(cx, l + n, &b, z.rest, z.nrest);
  return pick(cx, t, l, n, &b);
}

Tensor tensor_outer_partition(Ctx *cx, Tensor t, Tiler tiler, Tup coord) {
  Tile by = {tiler, coord, NULL};
  return place_view(cx, t, outer, &by);
}

// Returns the coordinate of thread idx in mode m of the thread layout. The
// coordinate is a linear index.
static Dim thread_coord(Ctx *cx, Layout m, Dim idx) {
  Layout flat = layout_flatten(cx, m);
  Dim c = zero(), scale = dim_int(cx, 1);
  Tup s = tup_first(flat.shape);
  for (size_t k = 0, n = tup_leaves(m.shape); k < n; k++, s = tup_next(s)) {
    if (dim_is(*s, 1) || dim_is(flat.stride[k], 0)) continue;
    Dim x = dim_rem(cx, dim_quo(cx, idx, flat.stride[k]), *s);
    c = dim_add(cx, c, dim_mul(cx, x, scale));
    scale = dim_mul(cx, scale, *s);
  }
  return c;
}

Tensor tensor_local_partition(Ctx *cx, Tensor t, Layout thr, Dim idx) {
  int rank = layout_rank(thr);
  Dim size[MAX_MODES], crd[MAX_MODES];
  if (rank > layout_rank(t.l) || rank > MAX_MODES)
    ctx_fail(cx, ERR_SHAPE, "local_partition: the thread layout %s has more "
             "modes than the tensor\n  %s", layout_text(cx, thr),
             tensor_show(cx, &t));
  Dim reach = layout_static(thr) ? layout_cosize(cx, thr) : zero();
  if (dim_static(idx) && dim_value(reach) > 0 &&
      (dim_value(idx) < 0 || dim_value(idx) >= dim_value(reach)))
    ctx_fail(cx, ERR_ARG, "local_partition: there is no thread %" PRId64 " in "
             "the thread layout %s", dim_value(idx), layout_text(cx, thr));
  for (int i = 0; i < rank; i++) {
    Layout m = layout_mode(cx, thr, i);
    size[i] = layout_size(cx, m);
    crd[i] = thread_coord(cx, m, idx);
  }
  Tiler by = tiler_tup(cx, tup_of(cx, size, (size_t)rank));
  return tensor_outer_partition(cx, t, by, tup_of(cx, crd, (size_t)rank));
}

// ---- identity, recast ----

Tensor tensor_identity(Ctx *cx, Tup shape) {
  return (Tensor){.space = SP_COORD, .type = DT_I32,
                  .base = tup_repeat_like(cx, shape, zero()),
                  .l = layout_identity(cx, shape), .align = 1};
}

Tensor tensor_recast(Ctx *cx, Tensor t, DType type) {
  int from = dtype_bits(t.type), to = dtype_bits(type);
  if (t.space == SP_COORD || t.space == SP_DESC)
    ctx_fail(cx, ERR_TYPE, "recast_tensor: a %s tensor cannot be recast",
             ir_space_word(t.space));
  if (from != to) {
    t.place = NULL;
    if (t.origin.kind != ORIGIN_LAYOUT) t.origin.kind = ORIGIN_LOST;
    Dim was = dim_int(cx, from), is = dim_int(cx, to);
    t.l = layout_recast(cx, t.l, from, to);
    if (!dim_is(t.off, 0)) {
      int64_t div = dim_div(cx, t.off);
      // smallest number of elements whose size is a multiple of `to` bits
      int each = 1;
      while (each * from % to != 0) each++;
      if ((div * from) % to != 0)
        ctx_fail(cx, ERR_ALIGN,
                 "recast_tensor: the offset is not a multiple of %d bits\n"
                 "  %s\n  use an offset that is a multiple of %d elements", to,
                 tensor_show(cx, &t), each);
      t.off = dim_quo(cx, dim_mul(cx, t.off, was), is);
    }
    // Declare another memory object, with the new type, for the same memory.
    if (t.mem) {
      Ins m = *ir_get(ir_fn(cx), t.mem);
      m.type = (uint8_t)type;
      m.src = 0;
      t.mem = ir_emit(cx, ir_fn(cx), m);
    }
  }
  t.type = type;
  return t;
}

// ---- printing ----

void tensor_print(Ctx *cx, Tensor t, Buf *out) {
  if (t.space == SP_COORD) {
    tup_print(cx, t.base, out);
  } else {
    buf_printf(cx, out, "ptr[%s,%s]", dtype_name(t.type), ir_space(t.space));
    if (!dim_is(t.off, 0)) {
      buf_puts(cx, out, "+");
      tup_print(cx, &t.off, out);
    }
  }
  buf_puts(cx, out, " o ");
  layout_print(cx, t.l, out);
}

// ---- visibility ----

typedef struct Use {
  Ctx *cx;       // NULL: only finds out whether t has traced numbers
  uint32_t born;
  bool quiet;    // whether to set `bad` instead of failing
  bool any, bad;
} Use;

static void use_ref(Use *u, Ref r) {
  if (r == 0) return;
  u->any = true;
  if (!u->cx) return;
  const Fn *fn = ir_fn(u->cx);
  bool stale = r < fn->ins.n && ir_get(fn, r)->birth > u->born;
  if (u->quiet) {
    u->bad = u->bad || stale || !ir_visible(fn, r);
    return;
  }
  if (stale)
    ctx_fail(u->cx, ERR_REGION, "a tensor was used that an earlier trace of "
             "a loop's body made\n  keep it in a local of the loop, not in a "
             "table or a global");
  ir_use(u->cx, fn, r);
}

static void use_dims(Use *u, const Dim *d, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (dim_dynamic(d[i])) use_ref(u, dim_getref(d[i]));
}

static Use use_tensor(Use u, const Tensor *t) {
  use_ref(&u, t->mem);
  use_dims(&u, &t->off, 1);
  if (t->base) use_dims(&u, t->base, tup_words(t->base));
  for (const Layout *p = &t->l; p; p = layout_next(p)) {
    use_dims(&u, &p->offset, 1);
    if (p->at) use_dims(&u, p->at, tup_words(p->at));
    use_dims(&u, p->shape, tup_words(p->shape));
    use_dims(&u, p->stride, tup_leaves(p->shape));
  }
  return u;
}

void tensor_use(Ctx *cx, const Tensor *t, uint32_t born) {
  if (ir_fn(cx)) use_tensor((Use){.cx = cx, .born = born}, t);
}

bool tensor_usable(Ctx *cx, const Tensor *t, uint32_t born) {
  if (!ir_fn(cx)) return !tensor_traced(t);
  return !use_tensor((Use){.cx = cx, .born = born, .quiet = true}, t).bad;
}

bool tensor_traced(const Tensor *t) {
  return use_tensor((Use){.cx = NULL}, t).any;
}
// SPDX-License-Identifier: MIT
