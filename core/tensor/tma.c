// Copies through tensor maps: emits one instruction for each box. Source and
// destination are partitioned tensors.
#include "tensor/tma.h"

#include <inttypes.h>

#include "ir/operands.h"
#include "layout/composed.h"
#include "tensor/inside.h"

// Returns the extents of the leaves of t's layout.
static Dim *leaf_extents(Ctx *cx, const Tensor *t) {
  Dim *shape = NEW(cx, Dim, tup_leaves(t->l.shape));
  tup_collect(t->l.shape, shape);
  return shape;
}

// Returns the number of elements of t along mode 0 of the map. Fails if the
// leaves that the mode traverses are not contiguous.
static Dim row_of(Ctx *cx, const TmaAtom *a, const Tensor *t,
                  const Dim *shape) {
  Dim n = shape[a->leaf[0]];
  for (int k = 0; k < 64 && a->inner >> k; k++)
    if (a->inner >> k & 1) n = dim_mul(cx, n, shape[k]);
  for (int k = 0; k < 64 && a->inner >> k; k++) {
    if (!(a->inner >> k & 1)) continue;
    Dim end = dim_mul(cx, shape[k], t->l.stride[k]);
    if (dim_static(end) && dim_static(n) && dim_value(end) > dim_value(n))
      ctx_fail(cx, ERR_INADMISSIBLE, "the %" PRId64 " elements that mode 0 of "
               "the tensor map traverses must be contiguous\n  %s",
               dim_value(n), tensor_show(cx, t));
  }
  return n;
}

// Returns the extent of mode i of the map of t, in elements of the map. `shape`
// holds the extents of t's leaves.
static Dim extent_of(Ctx *cx, const TmaAtom *a, const Tensor *t,
                     const Dim *shape, int i) {
  if (a->leaf[i] < 0) return dim_int(cx, 1);
  if (i) return shape[a->leaf[i]];
  Dim n = row_of(cx, a, t, shape);
  int ratio = tma_ratio(a);
  if (dim_static(n) && dim_value(n) % ratio)
    ctx_fail(cx, ERR_SHAPE, "rows have %" PRId64 " elements of %s; a tensor "
             "map of %s needs a multiple of %d", dim_value(n),
             dtype_name(a->type), dtype_name(a->unit), ratio);
  return dim_quo(cx, n, dim_int(cx, ratio));
}

TensorMap tma_map(Ctx *cx, const TmaAtom *a, const Tensor *t,
                  uint64_t address) {
  TensorMap m = a->map;
  const Dim *shape = leaf_extents(cx, t);
  m.address = address;
  for (int i = 0; i < m.rank; i++) {
    int k = a->leaf[i];
    m.extent[i] = dim_value(extent_of(cx, a, t, shape, i));
    if (i == 0) continue;
    // A mode with one element may have any stride. Encode 0, which every tensor
    // map accepts.
    int64_t stride = k < 0 || m.extent[i] == 1 ? 0 : dim_value(t->l.stride[k]);
    m.stride[i - 1] = stride * dtype_bits(a->type) / 8;
  }
  return m;
}

// ---- the two sides ----

typedef struct Boxes {
  Ctx *cx;
  const TmaAtom *a;
  // the two tensors; for a prefetch, shared is NULL
  const Tensor *global, *shared;
  const Tensor *rows;             // see TmaCall
  int64_t n;                      // number of boxes
} Boxes;

static const char *pair_text(const Boxes *b) {
  const char *g = tensor_show(b->cx, b->global);
  if (!b->shared) return arena_printf(b->cx, &b->cx->scratch, "\n  %s", g);
  return arena_printf(b->cx, &b->cx->scratch, "\n  shared memory %s\n  "
                      "coordinates   %s", tensor_show(b->cx, b->shared), g);
}

_Noreturn static void not_partitioned(const Boxes *b, const char *what,
                                      int64_t n) {
  ctx_fail(b->cx, ERR_SHAPE, "copy: %s %" PRId64 " values, but boxes of this "
           "atom have %" PRId64 "%s\n  make both sides with "
           "cute.nvgpu.cpasync.tma_partition, from a tile in shared memory and "
           "a tile of the coordinate tensor",
           what, n, b->a->values, pair_text(b));
}

static void check_space(const Boxes *b, const Tensor *t, Space want,
                        bool first) {
  if (t->space == want) return;
  const char *need = want == SP_SMEM ? "a tensor in shared memory"
                                     : "the coordinate tensor that came with "
                                       "the atom";
  ctx_fail(b->cx, ERR_TYPE, "copy: the %s of a TMA %s must be %s, not\n  %s",
           first ? "source" : "destination", b->a->store ? "store" : "load",
           need, tensor_show(b->cx, t));
}

static void check_shared(const Boxes *b) {
  Ctx *cx = b->cx;
  const Tensor *t = b->shared;
  if (t->type != b->a->type)
    ctx_fail(cx, ERR_TYPE, "copy: the atom copies %s, but shared memory holds "
             "%s%s",
             dtype_name(b->a->type), dtype_name(t->type), pair_text(b));
  Layout l = layout_coalesce(cx, layout_inner(t->l));
  Tup first = tup_first(l.shape);
  int64_t run = dim_is(l.stride[0], 1) ? dim_value(*first) : 1;
  if (run % b->a->values) not_partitioned(b, "shared memory has runs of", run);
}

// Returns the TMA swizzle of an atom as a swizzle of elements. The hardware
// permutes chunks of 16 bytes.
static Swizzle swizzle_of(const TmaAtom *a) {
  int m = 0;
  while (dtype_bits(a->type) << m < 128) m++;
  return (Swizzle){(int8_t)a->map.swizzle, (int8_t)m, 3};
}

static const char *swizzle_text(Ctx *cx, Swizzle sw) {
  if (!sw.b) return "no swizzle";
  return arena_printf(cx, &cx->scratch, "Sw<%d,%d,%d>", sw.b, sw.m, sw.s);
}

// Checks that the swizzle of the tensor in shared memory permutes the elements
// of a tile as the atom's swizzle does. Compares only the first tile, because
// boxes start at multiples of the swizzle's period.
static void check_swizzle(const Boxes *b, int64_t n) {
  Ctx *cx = b->cx;
  const Swizzle *its = layout_swizzle(b->shared->l);
  if (b->shared->l.outer && !its) return;
  Swizzle sw = its ? *its : SWIZZLE_NONE, want = swizzle_of(b->a);
  if (sw.b == want.b && sw.m == want.m && sw.s == want.s) return;
  for (int64_t x = 0; x < n; x++)
    if (swizzle_bits(sw, x) != swizzle_bits(want, x))
      ctx_fail(cx, ERR_INADMISSIBLE, "copy: the atom was made for a layout "
               "with %s, but shared memory has %s: element %" PRId64 " of the "
               "tile would be at another address%s\n  make the atom and the "
               "tensor from the same layout", swizzle_text(cx, want),
               swizzle_text(cx, sw), x, pair_text(b));
}

// Checks that the values of a box, which are contiguous in shared memory, have
// the right coordinates: the order of the tensor map, whose mode 0 varies
// fastest. If they do not, the tensor in shared memory does not have the layout
// for which the atom was made.
static void check_order(const Boxes *b) {
  Ctx *cx = b->cx;
  const TmaAtom *a = b->a;
  Dim from[TENSORMAP_RANK], to[TENSORMAP_RANK];
  if (a->flags & BKF_IM2COL || a->ctas > 1) return;
  Tup zero = layout_eval_tup(cx, b->global->l, tup_int(cx, 0));
  if ((int64_t)tup_leaves(zero) != a->map.rank) return;
  tup_collect(zero, from);
  for (int64_t i = 1; i < a->values; i *= 2) {
    tup_collect(layout_eval_tup(cx, b->global->l, tup_int(cx, i)), to);
    int64_t rest = i;
    for (int k = 0; k < a->map.rank; k++) {
      Dim d = dim_sub(cx, to[k], from[k]);
      int64_t extent = !k ? a->map.box[k] * tma_ratio(a)
                       : a->flags & BKF_ROWS ? BULK_ROWS : a->map.box[k];
      int64_t want = rest % extent;
      rest /= extent;
      if (a->map.step[k] > 1 || !dim_static(d)) return;
      if (dim_value(d) != want)
        ctx_fail(cx, ERR_INADMISSIBLE, "copy: the atom was made for another "
                 "layout: value %" PRId64 " of a box in shared memory is %"
                 PRId64 " after the first along mode %d of the tensor map, not "
                 "%" PRId64 "%s\n  make the atom and the tensor from the same "
                 "layout", i, want, (int)k, dim_value(d), pair_text(b));
    }
  }
}

// Checks the tensor that holds the indices of the rows that a copy gathers or
// scatters.
static void check_rows(const Boxes *b, int64_t n) {
  Ctx *cx = b->cx;
  bool needed = b->a->flags & BKF_ROWS;
  if (needed != (b->rows != NULL))
    ctx_fail(cx, ERR_ARG, needed
             ? "copy: this atom copies rows: in place of the coordinates, pass "
               "{coordinates, rows}, which tma_partition returned"
             : "copy: only gather4 and scatter4 take {coordinates, rows}");
  if (!needed) return;
  if (b->rows->type != DT_I32 || b->rows->space == SP_COORD)
    ctx_fail(cx, ERR_TYPE, "copy: the rows must be a tensor of i32 in memory, "
             "not\n  %s", tensor_show(cx, b->rows));
  int64_t have = count(cx, layout_inner(b->rows->l), "copy");
  if (have != n)
    ctx_fail(cx, ERR_SHAPE, "copy: the tensor of rows has %" PRId64 " values, "
             "but the coordinates name %" PRId64 "\n  %s", have, n,
             tensor_show(cx, b->rows));
}

static void check_boxes(Boxes *b) {
  Ctx *cx = b->cx;
  int64_t n = count(cx, layout_inner(b->global->l), "copy");
  if (n % b->a->values) not_partitioned(b, "the coordinates name", n);
  b->n = n / b->a->values;
  check_rows(b, n);
  if (!b->shared) return;
  int64_t have = count(cx, layout_inner(b->shared->l), "copy");
  if (have != n)
    ctx_fail(cx, ERR_SHAPE, "copy: shared memory holds %" PRId64 " values, but "
             "the coordinates name %" PRId64 "%s", have, n, pair_text(b));
  check_shared(b);
  check_swizzle(b, n);
  check_order(b);
}

// ---- one box ----

// Returns the offset of value i of t. Sets *known to the known alignment of the
// value's address, in bytes, at most `need`.
static Dim place_of(Ctx *cx, const Tensor *t, int64_t i, int64_t need,
                    int64_t *known) {
  Dim x = at(cx, layout_inner(t->l), i);
  Dim o = dim_add(cx, t->off, layout_through_dim(cx, t->l, x));
  int64_t bytes = dim_div(cx, o) * dtype_bits(t->type) / 8;
  *known = base_gcd(base_gcd(bytes, need),
                    ir_memof(ir_fn(cx), t->mem)->align);
  return o;
}

// Returns the offset in shared memory of box i, which consists of four rows.
// The box may start inside a period of the swizzle, because the copy applies
// the swizzle to addresses. The tensor must start at a period.
static Dim rows_at(const Boxes *b, int64_t i) {
  Ctx *cx = b->cx;
  const Tensor *t = b->shared;
  int64_t need = tma_pattern(b->a), bits = dtype_bits(t->type);
  Dim x = *layout_shifted(cx, t->l, tup_leaf(cx, at(
    cx, layout_inner(t->l), i * b->a->values)));
  Dim o = dim_add(cx, t->off, x);
  int64_t first = dim_div(cx, t->off) * bits / 8;
  int64_t own = dim_div(cx, o) * bits / 8;
  int64_t align = ir_memof(ir_fn(cx), t->mem)->align;
  if (first % need || align % need || own % TMA_ALIGN)
    ctx_fail(cx, ERR_ALIGN, "copy: the tile must start at a multiple of %"
             PRId64 " bytes of shared memory, and each four of its rows at a "
             "multiple of %d%s\n  make the tensor with make_smem_tensor(dtype, "
             "layout, %" PRId64 ")", need, TMA_ALIGN, pair_text(b), need);
  return o;
}

// Returns the offset of box i in shared memory.
static Dim shared_at(const Boxes *b, int64_t i) {
  Ctx *cx = b->cx;
  const Tensor *t = b->shared;
  if (b->a->flags & BKF_ROWS) return rows_at(b, i);
  int64_t need = tma_pattern(b->a), known;
  Dim o = place_of(cx, t, i * b->a->values, need, &known);
  if (known < need)
    ctx_fail(cx, ERR_ALIGN, "copy: a TMA box with %s must start at a multiple "
             "of %" PRId64 " bytes of shared memory, this one is only known to "
             "start at a multiple of %" PRId64 "%s\n  make the tensor with "
             "make_smem_tensor(dtype, layout, %" PRId64 ")",
             b->a->map.swizzle ? "this swizzle" : "no swizzle",
             need, known, pair_text(b), need);
  return o;
}

// Converts the coordinates of an im2col box (channel, pixel of the result,
// positions in the filter) to coordinates of the tensor, mode 0 first. For
// loads, also writes the offsets in the filter after the coordinates; stores
// have no such offsets. Returns the number of written values.
static int unfolded(const Boxes *b, const Dim *leaf, Ref *out) {
  Ctx *cx = b->cx;
  const TmaAtom *a = b->a;
  int spatial = (int)a->map.rank - 2;
  Dim x[TENSORMAP_RANK * 2], pixel = leaf[1];
  x[0] = leaf[0];
  for (int k = 0; k < spatial; k++) {
    Dim n = dim_int(cx, a->out[k]);
    x[k + 1] = dim_add(cx, dim_int(cx, a->map.lower[k]),
                       dim_mul(cx, dim_rem(cx, pixel, n),
                               dim_int(cx, a->map.step[k + 1])));
    pixel = dim_quo(cx, pixel, n);
    x[spatial + 2 + k] = dim_add(cx, dim_int(cx, a->first[k]),
                                 dim_mul(cx, leaf[k + 2],
                                         dim_int(cx, a->dilation[k])));
  }
  x[spatial + 1] = pixel;
  int n = (a->store ? 1 : 2) * spatial + 2;
  for (int k = 0; k < n; k++)
    out[k] = ir_cvt(cx, ir_fn(cx), DT_I32, dim_asref(cx, x[k]));
  return n;
}

// Writes the tensor coordinates of box i to `out`, mode 0 first. Returns the
// number of coordinates.
static int coordinates(const Boxes *b, int64_t i, Ref *out) {
  Ctx *cx = b->cx;
  Fn *fn = ir_fn(cx);
  Tup c = tensor_coord(cx, *b->global, tup_int(cx, i * b->a->values));
  int n = (int)tup_leaves(c);
  Dim *leaf = NEW(cx, Dim, (size_t)n);
  tup_collect(c, leaf);
  if (n != b->a->map.rank)
    ctx_fail(cx, ERR_SHAPE, "copy: the coordinates have %d modes, but the "
             "tensor map has %d%s\n  take the coordinate tensor that came "
             "with the atom", n,
             (int)b->a->map.rank, pair_text(b));
  if (b->a->flags & BKF_IM2COL) return unfolded(b, leaf, out);
  int ratio = tma_ratio(b->a);
  if (dim_div(cx, leaf[0]) % ratio)
    ctx_fail(cx, ERR_ALIGN, "copy: a box must start at a multiple of %d "
             "elements, because the tensor map has elements of %s%s", ratio,
             dtype_name(b->a->unit), pair_text(b));
  leaf[0] = dim_quo(cx, leaf[0], dim_int(cx, ratio));
  for (int k = 0; k < n; k++)
    out[k] = ir_cvt(cx, fn, DT_I32, dim_asref(cx, leaf[k]));
  if (!b->rows) return n;
  for (int k = 0; k < BULK_ROWS; k++)
    out[1 + k] = tensor_load(cx, *b->rows, tup_int(cx, i * b->a->values +
                                                       k * b->a->map.box[0]));
  return 1 + BULK_ROWS;
}

static void emit_box(const Boxes *b, const TmaCall *o, int64_t i) {
  const TmaAtom *a = b->a;
  Ctx *cx = b->cx;
  Ref x[OPERANDS + 2];
  uint32_t n = 0;
  Ins ins = {.op = a->store ? OP_TMASTORE : OP_TMALOAD, .flags = a->flags};
  ins.imm = a->values / a->ctas * dtype_bits(a->type);
  Ref place[2] = {b->shared->mem, dim_asref(cx, shared_at(b, i))};
  if (a->store) {
    x[n++] = a->ref;
    x[n++] = place[0], x[n++] = place[1];
  } else {
    x[n++] = place[0], x[n++] = place[1];
    x[n++] = a->ref;
    x[n++] = o->bar, x[n++] = o->bar_off;
    x[n++] = o->mask;
  }
  x[n++] = o->policy;
  n += (uint32_t)coordinates(b, i, x + n);
  operands_emit(cx, ir_fn(cx), ins, x, n, NULL, 0);
}

// ---- copies ----

static void check_call(Ctx *cx, const TmaAtom *a, const TmaCall *o) {
  if (a->store && (o->bar || o->mask))
    ctx_fail(cx, ERR_ARG, "copy: a TMA store takes no %s\n  wait for its "
             "group: cp_async_bulk_commit_group, cp_async_bulk_wait_group",
             o->bar ? "tma_bar_ptr" : "mcast_mask");
  if (a->store) return;
  if (!o->bar)
    ctx_fail(cx, ERR_ARG, "copy: a TMA load needs tma_bar_ptr, the mbarrier "
             "that counts its bytes\n  cute.copy(atom, src, dst, {tma_bar_ptr "
             "= bar + stage})");
  if (a->multicast != (o->mask != 0))
    ctx_fail(cx, ERR_ARG, a->multicast
             ? "copy: a multicast needs mcast_mask, the CTAs of the cluster "
               "that get the tile\n  create_tma_multicast_mask makes it"
             : "copy: mcast_mask is valid only with "
               "CopyBulkTensorTileG2SMulticastOp");
}

void tma_copy(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
              const TmaCall *o) {
  Boxes b = {.cx = cx, .a = a, .global = a->store ? &dst : &src,
             .shared = a->store ? &src : &dst, .rows = o->rows};
  check_space(&b, &src, a->store ? SP_SMEM : SP_COORD, true);
  check_space(&b, &dst, a->store ? SP_COORD : SP_SMEM, false);
  check_call(cx, a, o);
  check_boxes(&b);
  for (int64_t i = 0; i < b.n; i++) emit_box(&b, o, i);
}

// ---- runs without a map ----

static const char *sides_text(Ctx *cx, const Tensor *t[2]) {
  return arena_printf(cx, &cx->scratch, "\n  source      %s\n  destination %s",
                      tensor_show(cx, t[0]), tensor_show(cx, t[1]));
}

// Returns the number of values in the first mode of one side of a copy, source
// or destination. Fails unless this mode is contiguous.
static int64_t run_of(Ctx *cx, const Tensor *t[2], int side) {
  Layout l = layout_inner(t[side]->l);
  Layout v = layout_rank(l) > 1 ? layout_mode(cx, l, 0) : l;
  int64_t n = count(cx, v, "copy");
  v = layout_coalesce(cx, v);
  if (n > 1 && !(tup_is_leaf(v.shape) && dim_is(v.stride[0], 1)))
    ctx_fail(cx, ERR_SHAPE, "copy: a bulk copy moves contiguous values, but "
             "the first mode of the %s is %s%s\n  "
             "cpasync.group_bulk_copy_modes makes one mode of what is "
             "contiguous on both sides",
             side ? "destination" : "source", layout_text(cx, v),
             sides_text(cx, t));
  return n;
}

static void check_runs(Ctx *cx, const TmaAtom *a, const Tensor *t[2],
                       const TmaCall *o) {
  Space want[2] = {a->runs == TMA_G2S ? SP_GMEM : SP_SMEM,
                   a->runs == TMA_S2G ? SP_GMEM : SP_SMEM};
  for (int i = 0; i < 2; i++) {
    if (t[i]->space != want[i])
      ctx_fail(cx, ERR_TYPE, "copy: the %s of this bulk copy must be a tensor "
               "in %s memory%s", i ? "destination" : "source",
               want[i] == SP_GMEM ? "global" : "shared", sides_text(cx, t));
    if (t[i]->type != a->type)
      ctx_fail(cx, ERR_TYPE, "copy: the atom copies %s, but the %s holds %s%s",
               dtype_name(a->type), i ? "destination" : "source",
               dtype_name(t[i]->type), sides_text(cx, t));
  }
  bool bar = a->runs != TMA_S2G;
  if (bar != (o->bar != 0))
    ctx_fail(cx, ERR_ARG, bar
             ? "copy: this bulk copy needs mbar_ptr, the mbarrier that counts "
               "its bytes"
             : "copy: a bulk store takes no mbar_ptr\n  wait for its group: "
               "cp_async_bulk_commit_group, cp_async_bulk_wait_group");
  if (a->multicast != (o->mask != 0) || (a->runs == TMA_S2S) != (o->rank != 0))
    ctx_fail(cx, ERR_ARG, a->runs == TMA_S2S
             ? "copy: cta_rank, the CTA that gets the bytes, is missing"
             : a->multicast ? "copy: a multicast needs mcast_mask"
                            : "copy: mcast_mask is valid only with a "
                              "multicast, cta_rank only with CopyBulkS2SOp");
}

static void emit_run(Ctx *cx, const TmaAtom *a, const Tensor *t[2],
                     const TmaCall *o, int64_t i, int64_t n) {
  static const uint8_t op[] = {OP_NOP, OP_BULKLOAD, OP_BULKSTORE, OP_BULKSEND};
  Ref x[OPERANDS];
  uint32_t k = 0;
  int64_t bits = n * dtype_bits(a->type);
  for (int side = 1; side >= 0; side--) {
    int64_t known;
    Dim at = place_of(cx, t[side], i * n, 16, &known);
    if (known < 16 || bits % 128)
      ctx_fail(cx, ERR_ALIGN, "copy: bulk copies move multiples of 16 bytes at "
               "16-byte aligned addresses; this one moves %" PRId64
               " bytes%s%s",
               bits / 8,
               known < 16 ? ", and an address is not known to be aligned" : "",
               sides_text(cx, t));
    x[k++] = t[side]->mem;
    x[k++] = dim_asref(cx, at);
  }
  if (a->runs != TMA_S2G) x[k++] = o->bar, x[k++] = o->bar_off;
  if (a->runs == TMA_G2S) x[k++] = o->mask;
  x[k++] = a->runs == TMA_S2S ? o->rank : o->policy;
  Ins ins = {.op = op[a->runs], .imm = bits};
  operands_emit(cx, ir_fn(cx), ins, x, k, NULL, 0);
}

void tma_copy_runs(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
                   const TmaCall *o) {
  const Tensor *t[2] = {&src, &dst};
  check_runs(cx, a, t, o);
  int64_t n = run_of(cx, t, 0), m = run_of(cx, t, 1);
  int64_t all = count(cx, layout_inner(src.l), "copy");
  if (n != m || all != count(cx, layout_inner(dst.l), "copy"))
    ctx_fail(cx, ERR_SHAPE, "copy: the first modes must have equally many "
             "values, not %" PRId64 " and %" PRId64 "%s", n, m,
             sides_text(cx, t));
  for (int64_t i = 0; i < all / n; i++) emit_run(cx, a, t, o, i, n);
}

// ---- registers to another CTA ----

static void check_send(Ctx *cx, const TmaAtom *a, const Tensor *t[2],
                       const TmaCall *o) {
  int bits = dtype_bits(a->type);
  if (t[0]->space != SP_RMEM || t[1]->space != SP_SMEM)
    ctx_fail(cx, ERR_TYPE, "copy: st.async must go from registers to shared "
             "memory%s", sides_text(cx, t));
  if (t[0]->type != a->type || t[1]->type != a->type)
    ctx_fail(cx, ERR_TYPE, "copy: the atom copies only %s%s",
             dtype_name(a->type), sides_text(cx, t));
  if (bits != 32 && bits != 64)
    ctx_fail(cx, ERR_TYPE, "copy: st.async stores values of 32 or 64 bits, "
             "not %s: recast both tensors with cute.recast_tensor%s",
             dtype_name(a->type), sides_text(cx, t));
  if (!o->bar || !o->rank)
    ctx_fail(cx, ERR_ARG, "copy: this copy needs %s", o->bar
             ? "cta_rank, the CTA that gets the values"
             : "mbar_ptr, the mbarrier there that counts their bytes");
}

// Returns how many values of t, beginning with value i, one instruction can
// store. These values are below index n, contiguous and aligned.
static int together(Ctx *cx, const Tensor *t, int64_t i, int64_t n) {
  int bits = dtype_bits(t->type);
  for (int w = 128 / bits; w > 1; w /= 2) {
    int64_t known;
    if (i + w > n) continue;
    place_of(cx, t, i, w * bits / 8, &known);
    bool run = known == w * bits / 8 && !t->l.outer;
    for (int k = 1; run && k < w; k++)
      run = dim_is(dim_sub(cx, at(cx, t->l, i + k), at(cx, t->l, i)), k);
    if (run) return w;
  }
  return 1;
}

void tma_copy_send(Ctx *cx, const TmaAtom *a, Tensor src, Tensor dst,
                   const TmaCall *o) {
  const Tensor *t[2] = {&src, &dst};
  check_send(cx, a, t, o);
  int64_t n = count(cx, layout_inner(src.l), "copy");
  if (n != count(cx, layout_inner(dst.l), "copy"))
    ctx_fail(cx, ERR_SHAPE, "copy: both sides must have the same number of "
             "values%s",
             sides_text(cx, t));
  for (int64_t i = 0; i < n;) {
    int w = together(cx, &dst, i, n);
    int64_t known;
    Dim at = place_of(cx, &dst, i, 1, &known);
    Ref x[9] = {dst.mem, dim_asref(cx, at), o->bar, o->bar_off, o->rank};
    for (int k = 0; k < w; k++)
      x[5 + k] = tensor_load(cx, src, tup_int(cx, i + k));
    Ins ins = {.op = OP_STASYNC, .imm = w * dtype_bits(a->type)};
    operands_emit(cx, ir_fn(cx), ins, x, 5 + (uint32_t)w, NULL, 0);
    i += w;
  }
}

// ---- tensor maps in memory ----

void tma_map_copy(Ctx *cx, const TmaAtom *a, MapPlace p) {
  Ref x[3] = {p.mem, p.off, a->ref};
  operands_emit(cx, ir_fn(cx), (Ins){.op = OP_MAPCOPY}, x, 3, NULL, 0);
}

static void set_mode(Ctx *cx, MapPlace p, int mode, unsigned flags, Ref v) {
  Ref x[3] = {p.mem, p.off, v};
  Ins ins = {.op = OP_MAPSET, .flags = (uint16_t)flags, .imm = mode};
  operands_emit(cx, ir_fn(cx), ins, x, 3, NULL, 0);
}

void tma_map_update(Ctx *cx, const TmaAtom *a, const Tensor *t, MapPlace p) {
  Fn *fn = ir_fn(cx);
  const Dim *shape = leaf_extents(cx, t);
  Ref x[4] = {p.mem, p.off, t->mem, dim_asref(cx, t->off)};
  operands_emit(cx, fn, (Ins){.op = OP_MAPADDRESS}, x, 4, NULL, 0);
  for (int i = 0; i < a->map.rank; i++) {
    int k = a->leaf[i];
    if (k < 0) continue;
    set_mode(cx, p, i, 0, ir_cvt(cx, fn, DT_I32, dim_asref(
      cx, extent_of(cx, a, t, shape, i))));
    if (i == 0) continue;
    Ref bytes = ir_op2(cx, fn, OP_MUL,
      ir_cvt(cx, fn, DT_I64, dim_asref(cx, t->l.stride[k])),
      ir_int(cx, fn, DT_I64, dtype_bits(a->type) / 8));
    set_mode(cx, p, i, TMF_STRIDE, bytes);
  }
}

// ---- prefetches ----

void tma_prefetch(Ctx *cx, const TmaAtom *a, const Tensor *src,
                  const Tensor *rows) {
  Boxes b = {.cx = cx, .a = a, .global = src, .rows = rows};
  Ref x[OPERANDS] = {a->ref};  // no cache policy
  Ins ins = {.op = OP_TMAPREFETCH};
  if (src) {
    ins.flags = a->flags & (BKF_IM2COL | BKF_ROWS);
    if (ins.flags && a->store)
      ctx_fail(cx, ERR_ARG, "prefetch of %s: an atom that loads is needed, and "
               "this one stores", a->flags & BKF_ROWS ? "rows"
                                                      : "an im2col box");
    check_space(&b, src, SP_COORD, true);
    check_boxes(&b);
  } else {
    operands_emit(cx, ir_fn(cx), ins, x, 2, NULL, 0);
  }
  for (int64_t i = 0; i < b.n; i++) {
    uint32_t n = 2 + (uint32_t)coordinates(&b, i, x + 2);
    operands_emit(cx, ir_fn(cx), ins, x, n, NULL, 0);
  }
}
// SPDX-License-Identifier: MIT
