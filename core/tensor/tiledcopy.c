// TiledCopy: copy atoms distributed over a tile, and each thread's part of the
// tile.
#include "tensor/place.h"
#include "tensor/tiled.h"

#include <inttypes.h>

static Layout leaf1(Ctx *cx, Dim n) {
  return layout_leaf(cx, n, dim_int(cx, !dim_is(n, 1)));
}

static Layout concat2(Ctx *cx, Layout a, Layout b) {
  Layout l[2] = {a, b};
  return layout_concat(cx, l, 2);
}

static int64_t count(Ctx *cx, Layout l) {
  return dim_value(layout_size(cx, l));
}

static int64_t mode_count(Ctx *cx, Layout l, int i) {
  return count(cx, layout_mode(cx, l, i));
}

int64_t tiled_copy_size(Ctx *cx, const TiledCopy *c) {
  return mode_count(cx, c->tv, 0);
}

// ---- construction ----

static void need_static(Ctx *cx, Layout l, const char *what) {
  if (!layout_static(l) || l.outer)
    ctx_fail(cx, ERR_STATIC, "make_tiled_copy: %s %s must be static and "
             "without swizzle", what, layout_text(cx, l));
}

// Checks the TV layout: its numbers of threads and of values must be multiples
// of those of the atom.
static void check_atom(Ctx *cx, const TiledCopy *c) {
  const CopyAtom *a = &c->atom;
  tup_need_elements(cx, "make_tiled_copy", c->tv.shape);
  int64_t thr = tiled_copy_size(cx, c), val = mode_count(cx, c->tv, 1);
  int64_t at = count(cx, a->thr), av = mode_count(cx, a->ref, 1);
  if (thr % at == 0 && val % av == 0) return;
  ctx_fail(cx, ERR_SHAPE, "make_tiled_copy: %" PRId64 " threads with %" PRId64
           " values each are not a multiple of the %" PRId64 " threads and %"
           PRId64 " values (%s) of %s\n  (thread,value) layout %s", thr, val,
           at, av, dtype_name(a->type), a->row->name,
           layout_text(cx, c->tv));
}

static void set_tiler(Ctx *cx, TiledCopy *c, Tup tiler) {
  int n = tup_rank(tiler);
  tup_need_elements(cx, "make_tiled_copy", tiler);
  if (n > TILED_MODES)
    ctx_fail(cx, ERR_LIMIT, "make_tiled_copy: a tile of %d modes has too "
             "many: at most %d", n, TILED_MODES);
  Tup m = tup_first(tiler);
  for (int i = 0; i < n; i++, m = tup_next(m)) {
    c->tiler_int[i] = tup_is_leaf(m);
    c->tiler[i] = tup_is_leaf(m) ? leaf1(cx, *m) : layout_compact(cx, m);
  }
  c->ntiler = n;
}

TiledCopy tiled_copy_tv(Ctx *cx, CopyAtom a, Layout tv, Tup tiler) {
  need_static(cx, tv, "the (thread,value) layout");
  if (tup_is_leaf(tv.shape) || layout_rank(tv) != 2)
    ctx_fail(cx, ERR_SHAPE, "make_tiled_copy: %s is not a (thread,value) "
             "layout",
             layout_text(cx, tv));
  TiledCopy c = {.atom = a, .tv = tv};
  set_tiler(cx, &c, tiler);
  check_atom(cx, &c);
  return c;
}

TiledCopy tiled_copy_make(Ctx *cx, CopyAtom a, Layout thr, Layout val) {
  need_static(cx, thr, "the thread layout");
  need_static(cx, val, "the value layout");
  Layout mn = layout_raked_product(cx, thr, val);
  Dim size[2] = {layout_size(cx, thr), layout_size(cx, val)};
  Layout tv = layout_with_shape(cx, layout_right_inverse(cx, mn),
                                tup_of(cx, size, 2));
  return tiled_copy_tv(cx, a, tv, tup_product_each(cx, mn.shape));
}

TiledCopy tiled_copy_of_mma(Ctx *cx, CopyAtom a, const TiledMma *m, char abc) {
  int mode[2] = {abc == 'B' ? 1 : 0, abc == 'C' ? 1 : 2};
  Dim tile[2];
  for (int i = 0; i < 2; i++)
    tile[i] = dim_int(cx, tiled_mma_extent(cx, m, abc, mode[i]));
  TiledCopy c = tiled_copy_tv(cx, a, tiled_mma_tv(cx, m, abc),
                              tup_of(cx, tile, 2));
  if (abc != 'C' && !layout_equals(cx, tiled_mma_tv(cx, m, 'A'),
                                   tiled_mma_tv(cx, m, 'B')))
    c.operand = abc;
  return c;
}

TiledCopy tiled_copy_of_copy(Ctx *cx, CopyAtom a, const TiledCopy *c,
                             char which) {
  TiledCopy n = *c;
  n.atom = a;
  n.tv = tiled_copy_layout(cx, c, which);
  check_atom(cx, &n);
  return n;
}

// Makes a TiledCopy whose tile consists of those elements of `shape` that tv
// reaches. `tv` maps (thread,value) to linear coordinates of shape. Sets the
// tiler of each mode, and changes tv to linear coordinates of the tile.
static TiledCopy on_touched(Ctx *cx, CopyAtom a, Tup shape, Layout tv) {
  TiledCopy c = {.atom = a};
  int n = tup_rank(shape);
  if (n > TILED_MODES)
    ctx_fail(cx, ERR_LIMIT, "a tile has at most %d modes, not %d",
             TILED_MODES, n);
  Tiler by[TILED_MODES];
  for (int i = 0; i < n; i++) {
    Dim stride[TILED_MODES] = {{0}, {0}, {0}, {0}};
    stride[i] = dim_int(cx, 1);
    Layout pick = layout_make(cx, shape, tup_of(cx, stride, (size_t)n));
    c.tiler[i] = layout_filter(cx, layout_compose(cx, pick, tv));
    by[i] = tiler_layout(c.tiler[i]);
  }
  c.ntiler = n;
  Tiler all = {.kind = TILER_TUPLE, .n = n, .mode = by};
  Layout tile2whole = layout_compose_tiler(cx, layout_compact(cx, shape), all);
  c.tv = layout_compose(cx, layout_left_inverse(cx, tile2whole), tv);
  check_atom(cx, &c);
  return c;
}

TiledCopy tiled_copy_cotiled(Ctx *cx, CopyAtom a, Layout tv, Layout data) {
  need_static(cx, tv, "the (thread,value) layout");
  need_static(cx, data, "the data layout");
  // the appended mode 1:0 maps indices beyond the size of the data to 0
  Layout none = layout_unit(cx);
  Layout inv = concat2(cx, layout_left_inverse(cx, data), none);
  Layout coord = layout_compose(cx, inv, tv);
  Layout back = layout_compose(cx, concat2(cx, data, none), coord);
  if (!layout_equals(cx, back, tv))
    ctx_fail(cx, ERR_INADMISSIBLE, "make_cotiled_copy: the data layout %s has "
             "no elements at some offsets of the (thread,value) layout %s",
             layout_text(cx, data), layout_text(cx, tv));
  Tup shape = tup_flatten_to_tuple(cx, tup_product_each(cx, data.shape));
  return on_touched(cx, a, shape, coord);
}

TiledCopy tiled_copy_c_atom(Ctx *cx, CopyAtom a, const TiledMma *m) {
  Layout tv = tiled_mma_tv(cx, m, 'C');
  int64_t n = mode_count(cx, a.src, 1), have = mode_count(cx, tv, 1);
  if (n > have)
    ctx_fail(cx, ERR_SHAPE, "make_tiled_copy_C_atom: %s moves %" PRId64
             " values of a thread, but a thread of %s has %" PRId64,
             a.row->name, n, m->atom.row->name, have);
  Dim size[2] = {layout_size(cx, layout_mode(cx, tv, 0)), dim_int(cx, n)};
  tv = layout_compose(cx, tv, layout_compact(cx, tup_of(cx, size, 2)));
  Dim tile[2] = {tiled_mma_tile(cx, m, 0), tiled_mma_tile(cx, m, 1)};
  return on_touched(cx, a, tup_of(cx, tile, 2), tv);
}

// ---- partition ----

enum { MAX_RANK = 12 };

// Maps ((TileM,TileN),(RestM,RestN,...)) to (thr,(FrgV,FrgX),(RestM,...)).
// `trg` is the atom's layout (thread,value) of the source or of the
// destination.
static Layout tile2thrfrg(Ctx *cx, const TiledCopy *c, Layout zipped,
                          Layout trg) {
  const CopyAtom *a = &c->atom;
  Dim shape[2] = {layout_size(cx, a->thr),
                  layout_size(cx, layout_mode(cx, a->ref, 1))};
  // ((atom_tid,atom_val),(rest_tid,rest_val)) -> index in the tile
  Layout tv = layout_zipped_divide(cx, c->tv,
                                   tiler_tup(cx, tup_of(cx, shape, 2)));
  Layout ref2trg = layout_compose(cx, layout_right_inverse(cx, a->ref), trg);
  Layout atom = layout_compose(cx, layout_mode(cx, tv, 0), ref2trg);
  Layout both = layout_zip(cx, concat2(cx, atom, layout_mode(cx, tv, 1)));
  Tup one = tup_int(cx, 1), in[2] = {one, one}, by[2];
  by[0] = one;
  by[1] = tup_pack(cx, in, 2);
  both = layout_coalesce_by(cx, both, tup_pack(cx, by, 2));
  Layout t = layout_compose(cx, layout_mode(cx, zipped, 0), both);
  Layout l[3] = {layout_mode(cx, t, 0), layout_mode(cx, t, 1),
                 layout_mode(cx, zipped, 1)};
  return layout_concat(cx, l, 3);
}

static Layout side_of(const TiledCopy *c, char which) {
  return which == 'S' ? c->atom.src : c->atom.dst;
}

Layout tiled_copy_tidfrg(Ctx *cx, const TiledCopy *c, char which, Layout l) {
  int rank = layout_rank(l);
  if (rank < c->ntiler || rank > MAX_RANK ||
      (tup_is_leaf(l.shape) && c->ntiler > 1))
    ctx_fail(cx, ERR_SHAPE, "partition_%c needs a tensor of %d modes or more, "
             "got %s", which, c->ntiler, layout_text(cx, l));
  Layout in = layout_inner(l), tile[TILED_MODES], rest[MAX_RANK];
  for (int i = 0; i < rank; i++) {
    Layout m = layout_mode(cx, in, i);
    rest[i] = m;
    if (i >= c->ntiler) continue;
    Layout d = layout_logical_divide(cx, m, tiler_layout(c->tiler[i]));
    tile[i] = layout_mode(cx, d, 0);
    rest[i] = layout_mode(cx, d, 1);
  }
  Layout z = concat2(cx, layout_concat(cx, tile, c->ntiler),
                     layout_concat(cx, rest, rank));
  Layout all = tile2thrfrg(cx, c, z, side_of(c, which));
  return layout_outer(all, l);
}

Layout tiled_copy_layout(Ctx *cx, const TiledCopy *c, char which) {
  Tup mode[TILED_MODES];
  for (int i = 0; i < c->ntiler; i++)
    mode[i] = c->tiler_int[i] ? c->tiler[i].shape
                              : tup_product_each(cx, c->tiler[i].shape);
  Layout ref = layout_compact(cx, tup_pack(cx, mode, c->ntiler));
  Layout z = concat2(cx, ref, leaf1(cx, dim_int(cx, 1)));
  Layout t = tile2thrfrg(cx, c, z, side_of(c, which));
  return layout_take(cx, t, 0, 2);
}

typedef struct Part {
  const TiledCopy *c;
  char which;
  Dim thr;
} Part;

static Tensor part(Ctx *cx, Tensor t, const void *x) {
  const TiledCopy *c = ((const Part *)x)->c;
  char which = ((const Part *)x)->which;
  Dim thr = ((const Part *)x)->thr;
  int rank = layout_rank(t.l);
  Tensor all = tensor_with_layout(t, tiled_copy_tidfrg(cx, c, which, t.l));
  if (dim_static(thr) && dim_value(thr) >= tiled_copy_size(cx, c)) {
    // As in every layout, a thread index beyond the last thread continues in
    // the last mode.
    Layout tid = layout_mode(cx, layout_inner(all.l), 0);
    all = tensor_offset(cx, all, layout_eval(cx, tid, tup_leaf(cx, thr)));
    thr = dim_int(cx, 0);
  }
  TupB b = {0};
  tupb_open(cx, &b);
  tupb_leaf(cx, &b, thr);
  tupb_leaf(cx, &b, dim_any());
  tupb_open(cx, &b);
  for (int i = 0; i < rank; i++) tupb_leaf(cx, &b, dim_any());
  tupb_close(cx, &b);
  tupb_close(cx, &b);
  return tensor_slice(cx, all, tupb_done(cx, &b));
}

Tensor tiled_copy_partition(Ctx *cx, const TiledCopy *c, char which, Tensor t,
                            Dim thr) {
  Part p = {c, which, thr};
  return place_view(cx, t, part, &p);
}

// ---- retile ----

// Returns the layout (atom_vals,rest_vals) -> (v,m,n) of a fragment whose first
// mode has v values. Sets *by to how far one tile of the copy extends in the
// other modes of the fragment. If one tile has fewer values, the remaining
// values belong to the next tiles.
static Layout retiled(Ctx *cx, const TiledCopy *c, int64_t v, Tup *by) {
  Layout values = leaf1(cx, dim_int(cx, v)), all = values;
  Dim one[TILED_MODES];
  for (int i = 0; i < c->ntiler; i++) one[i] = dim_int(cx, 1);
  *by = tup_of(cx, one, (size_t)c->ntiler);
  if (mode_count(cx, c->tv, 1) >= v) {
    Tup mode[TILED_MODES];
    for (int i = 0; i < c->ntiler; i++) mode[i] = c->tiler[i].shape;
    Tup shape = tup_pack(cx, mode, c->ntiler);
    Layout inv = layout_with_shape(cx, layout_right_inverse(cx, c->tv), shape);
    // layout from (m,n) to the index of a group of v values
    Layout mn = layout_upcast(cx, inv, tiled_copy_size(cx, c) * v);
    all = layout_logical_product(
      cx, values, tiler_layout(layout_right_inverse(cx, mn)));
    *by = tup_product_each(cx, mn.shape);
  }
  Dim nval = layout_size(cx, layout_mode(cx, c->atom.ref, 1));
  return layout_zipped_divide(cx, all, tiler_layout(leaf1(cx, nval)));
}

// Reorders a fragment (V,Rest...) to ((FrgV,FrgX),Rest...). This is the order
// in which the copy accesses the values. Assumes, as CuTe does, that the
// fragment's first mode holds the first values of the TV layout. The other
// modes hold the values of the next tiles.
Layout tiled_copy_retile(Ctx *cx, const TiledCopy *c, Layout l) {
  int rank = layout_rank(l);
  tup_need_elements(cx, "retile", l.shape);
  if (tup_is_leaf(l.shape) || rank < c->ntiler + 1)
    ctx_fail(cx, ERR_SHAPE, "retile needs a fragment (V,M,N,...), got %s",
             layout_text(cx, l));
  int64_t v = mode_count(cx, layout_inner(l), 0);
  int64_t own = mode_count(cx, c->tv, 1);
  if (own % v && v % own)
    ctx_fail(cx, ERR_SHAPE, "retile: the fragment %s has %" PRId64 " values "
             "in its first mode, but the copy moves %" PRId64 " a thread",
             layout_text(cx, l), v, own);
  Tup by;
  Layout frg = retiled(cx, c, v, &by);
  by = tup_prepend(cx, by, tup_int(cx, v));
  Layout z = layout_zipped_divide(cx, l, tiler_tup(cx, by));
  // ((v,m,n),(0,TileM,TileN,..)) -> ((atom_vals,rest_vals),TileM,TileN,..)
  Layout part[MAX_RANK];
  part[0] = layout_compose(cx, layout_mode(cx, z, 0), frg);
  Layout rest = layout_mode(cx, z, 1);
  for (int i = 1; i < rank && i < MAX_RANK; i++)
    part[i] = layout_mode(cx, rest, i);
  return layout_concat(cx, part, rank);
}

// ---- text ----

void tiled_copy_print_atom(Ctx *cx, const CopyAtom *a, Buf *out) {
  buf_puts(cx, out, "Copy_Atom\n");
  buf_printf(cx, out, "  ThrID:        %s\n", layout_text(cx, a->thr));
  buf_printf(cx, out, "  ValLayoutSrc: %s\n", layout_text(cx, a->src));
  buf_printf(cx, out, "  ValLayoutDst: %s\n", layout_text(cx, a->dst));
  buf_printf(cx, out, "  ValLayoutRef: %s\n", layout_text(cx, a->ref));
  buf_printf(cx, out, "  ValueType:    %db", dtype_bits(a->type));
}

void tiled_copy_print(Ctx *cx, const TiledCopy *c, Buf *out) {
  buf_puts(cx, out, "TiledCopy\n  Tiler_MN:       (");
  for (int i = 0; i < c->ntiler; i++)
    buf_printf(cx, out, "%s%s", i ? "," : "",
               c->tiler_int[i] ? tup_text(cx, c->tiler[i].shape)
                               : layout_text(cx, c->tiler[i]));
  buf_printf(cx, out, ")\n  TiledLayout_TV: %s\n", layout_text(cx, c->tv));
  tiled_copy_print_atom(cx, &c->atom, out);
}
// SPDX-License-Identifier: MIT
