// The shared-memory operands of a wgmma, tcgen05.mma or tcgen05.cp: their
// canonical layouts, and the descriptors that encode these layouts.
//
// An operand of one instruction has MN x K elements; in a pair of CTAs, each
// CTA has half of them along MN. K covers 32 bytes, or 16 elements if MN is
// contiguous. If A is sparse, the K of B is twice as long. Distances are in
// units of 16 bytes. W is the width of the swizzle: 1 without a swizzle, and 2,
// 4 or 8 for swizzles of 32, 64 or 128 bytes. n and k count groups of 8 or W.
// LBO and SBO are fields of the descriptor. The canonical layouts are
//   K contiguous   ((8,n),2):((W,SBO),LBO)      LBO = 1 where W > 1
//   MN contiguous  ((W,n),(8,k)):((1,LBO),(W,SBO))     W > 1
//                  ((1,n),(8,k)):((_,SBO),(1,LBO))     W = 1
// The swizzle applies to byte addresses: Sw<log2 W,4,3>. If MN is contiguous,
// tcgen05 also has another swizzle of 128 bytes, which moves 32 bytes at a
// time: Sw<2,5,2>. With this swizzle, groups of K have 4 elements instead of 8,
// and W is 8.
#include <inttypes.h>

#include "ir/fold.h"
#include "tensor/inside.h"

// An operand in shared memory. Its layouts map to offsets in elements, before
// the swizzle is applied.
typedef struct Shared {
  Ctx *cx;
  // names for errors: the function that makes the descriptors (maker), the
  // instruction that reads them (reader), and the operand (what)
  const char *maker, *reader, *what;
  bool umma;            // whether the operand belongs to a tcgen05 operation
  Layout part;          // the thread's partition (V,Rest...)
  // bits: bits of an element. unit: number of elements in 16 bytes.
  int bits, unit;
  int w;                // width of the swizzle, in units of 16 bytes
  bool by32;            // whether the swizzle moves 32 bytes at a time
  bool mn;              // true if MN is contiguous, false if K is contiguous
  int rows, cols;       // extents of MN and of K
  Layout row, col;      // layouts of MN and of K
} Shared;

_Noreturn static void refuse(const Shared *o, const char *why) {
  ctx_fail(o->cx, ERR_SHAPE, "%s: %s\n  %s reads %s as %d x %d elements of %d "
           "bits, %s contiguous\n  from %s\n  tile_to_shape of "
           "cute.nvgpu.warpgroup.make_smem_layout_atom(%s_SW128, ...) makes "
           "a canonical layout", o->maker, why, o->reader, o->what, o->rows,
           o->cols, o->bits, !o->mn ? "K" : *o->what == 'A' ? "M" : "N",
           layout_text(o->cx, o->part), o->mn ? "MN" : "K");
}

// Returns the swizzle's width W in units of 16 bytes. Fails unless the swizzle
// of byte addresses is Sw<0..3,4,3> or Sw<2,5,2>. Sets o->by32 for the latter.
static int span_of(Shared *o) {
  const Swizzle *s = layout_swizzle(o->part);
  if (!o->part.outer) return 1;
  int shift = o->bits < 8 ? -1 : 0;
  while (o->bits > 8 && 8 << shift < o->bits) shift++;
  if (s && s->b == 0) return 1;
  o->by32 = o->umma && o->mn && s && s->b == 2 && s->m + shift == 5 &&
            s->s == 2;
  if (o->by32) return 8;
  if (s && s->b <= 3 && s->m + shift == 4 && s->s == 3) return 1 << s->b;
  refuse(o, arena_printf(o->cx, &o->cx->scratch, "the swizzle is not one of "
                         "Sw<0..3,%d,3>, which the instruction supports for "
                         "%d-bit elements", 4 - shift, o->bits));
}

static int64_t row_at(const Shared *o, int64_t r) {
  return dim_value(at(o->cx, o->row, r));
}

static int64_t col_at(const Shared *o, int64_t c) {
  return dim_value(at(o->cx, o->col, c));
}

// Fails unless `have` equals `want`. `have` is the distance, in elements, of
// element (r,c) from the first element. `want` is the same distance in a
// canonical layout.
static void same(const Shared *o, int64_t r, int64_t c, int64_t have,
                 int64_t want) {
  if (have == want) return;
  Ctx *cx = o->cx;
  refuse(o, arena_printf(cx, &cx->scratch, "the layout is not canonical: "
                         "element (%" PRId64 ",%" PRId64 ") lies %" PRId64 " "
                         "elements after the first, not %" PRId64, r, c,
                         have, want));
}

// Checks the offsets of all n indices of mode K (if `col` is set) or MN
// (otherwise). Indices in a group of `run` indices must be `step` elements
// apart. Adjacent groups must be `far` elements apart.
static void check_mode(const Shared *o, bool col, int n, int run,
                       int64_t step, int64_t far) {
  for (int i = 0; i < n; i++)
    same(o, col ? 0 : i, col ? i : 0, col ? col_at(o, i) : row_at(o, i),
         i % run * step + i / run * far);
}

// Returns the distance, in elements, between the first two groups of a mode,
// where a group has `run` adjacent indices. Returns 0 if the mode has only one
// group.
static int64_t far_of(const Shared *o, bool col, int n, int run) {
  if (n % run)
    refuse(o, arena_printf(o->cx, &o->cx->scratch, "its %d %s are not a "
                           "multiple of the %d that are contiguous", n,
                           col ? "columns" : "rows", run));
  return n == run ? 0 : col ? col_at(o, run) : row_at(o, run);
}

// Encodes a distance of `elements` elements as a 14-bit field in units of 16
// bytes.
static uint64_t field(const Shared *o, int64_t elements) {
  int64_t units = elements / o->unit;
  if (elements % o->unit || units < 0 || units >= 1 << 14)
    refuse(o, arena_printf(o->cx, &o->cx->scratch, "a distance of %" PRId64 " "
                           "elements; a multiple of 16 bytes below 256 KB is "
                           "needed", elements));
  return (uint64_t)units;
}

// Returns the descriptor bits that encode the swizzle. For tcgen05, adds the
// version of the descriptor.
static uint64_t kind_bits(const Shared *o) {
  static const uint8_t type[9] = {[1] = 0, [2] = 3, [4] = 2, [8] = 1};
  uint64_t t = type[o->w];
  if (o->by32) return (uint64_t)1 << 61 | (uint64_t)1 << 46;
  return t << 62 | (o->umma ? (uint64_t)1 << 46 : 0);
}

static uint64_t describe(const Shared *o) {
  // number of elements in one row of the swizzle pattern
  int span = o->w * o->unit;
  int64_t lead, stride;
  if (!o->mn) {
    int group = o->rows < 8 ? o->rows : 8;
    stride = far_of(o, false, o->rows, group);
    lead = far_of(o, true, o->cols, o->unit);
    check_mode(o, false, o->rows, group, span, stride);
    check_mode(o, true, o->cols, o->unit, 1, o->w > 1 ? o->unit : lead);
  } else {
    int64_t rows = far_of(o, false, o->rows, span);
    int group = o->by32 ? 4 : 8;
    int64_t cols = far_of(o, true, o->cols, group);
    check_mode(o, false, o->rows, span, 1, rows);
    check_mode(o, true, o->cols, group, span, cols);
    lead = o->w > 1 ? rows : cols;
    stride = o->w > 1 ? cols : rows;
  }
  return field(o, lead) << 16 | field(o, stride) << 32 | kind_bits(o);
}

// Returns the operand (A or B) that an MMA reads from shared memory.
static Shared operand_of_mma(Ctx *cx, const MmaAtom *a, char which) {
  const AtomMma *r = a->row;
  int k = which != 'A';
  static const char *const maker[2] = {"make_fragment_A", "make_fragment_B"};
  return (Shared){.cx = cx, .maker = maker[k], .reader = r->name,
                  .what = k ? "B" : "A", .umma = r->kind == MK_TCGEN05,
                  .bits = dtype_bits(atom_mma_type(r, k + 1)),
                  .mn = r->mn_major[k],
                  .rows = (k ? r->n : r->m) / atom_mma_ctas(r),
                  .cols = k ? r->k : atom_mma_depth(r)};
}

// Sets the other fields of o from a partition (V,Rest...), where V is (MN,K).
// Rest has one index for each instruction. Returns a layout of the descriptors,
// one for each instruction. Sets *desc to a descriptor with address 0.
static Layout describe_part(Shared *o, Layout part, uint64_t *desc) {
  Ctx *cx = o->cx;
  o->part = part;
  o->unit = 128 / o->bits;
  Layout in = layout_inner(part), v = layout_rank(part) < 2
    ? layout_unit(cx) : layout_mode(cx, in, 0);
  if (layout_rank(v) != 2 || count(cx, v, o->maker) != o->rows * o->cols)
    refuse(o, arena_printf(cx, &cx->scratch, "the tensor is not a partition "
                           "(V,%s) of the layout", *o->what == 'A' ? "M,K"
                           : *o->what == 'B' ? "N,K" : "Rest..."));
  if (!layout_static(v))
    ctx_fail(cx, ERR_STATIC, "%s needs a static layout of the elements that "
             "one instruction reads, got %s", o->maker, layout_text(cx, part));
  o->row = layout_mode(cx, v, 0), o->col = layout_mode(cx, v, 1);
  o->w = span_of(o);
  *desc = describe(o);
  Layout one = layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0));
  return layout_replace(cx, layout_recast(cx, in, o->bits, 128), 0, one);
}

Layout gmma_layout(Ctx *cx, const MmaAtom *a, char which, Layout part,
                   uint64_t *desc) {
  Shared o = operand_of_mma(cx, a, which);
  return describe_part(&o, part, desc);
}

// ---- in a kernel ----

// Returns the period of l's swizzle in bytes: 8 rows of W units of 16 bytes.
static int64_t pattern(Layout l) {
  const Swizzle *s = layout_swizzle(l);
  return s && s->b ? 128 << s->b : 16;
}

// Makes the tensor of the descriptors for operand o, whose elements are in t.
static Tensor descriptors(Shared *o, Tensor t) {
  Ctx *cx = o->cx;
  Fn *fn = ir_fn(cx);
  Ins d = {.op = OP_DESC, .type = DT_U64};
  uint64_t bits = 0;
  Layout l = describe_part(o, t.l, &bits);
  if (o->umma && o->mn && (o->bits == 32) != o->by32)
    refuse(o, o->by32 ? "tcgen05 has MN_SW128_32B only for 32-bit elements"
                      : "tcgen05 has 32-bit elements whose M or N is "
                        "contiguous only in the layout MN_SW128_32B");
  const Mem *m = ir_memof(fn, t.mem);
  int64_t each = o->bits, whole = pattern(t.l);
  if (m->align < whole || dim_div(cx, t.off) * each % (whole * 8))
    ctx_fail(cx, ERR_ALIGN, "%s: the swizzle requires tiles at multiples of %"
             PRId64 " bytes\n  %s\n  make the tensor with "
             "make_smem_tensor(dtype, layout, %" PRId64 ")", o->maker, whole,
             tensor_show(cx, &t), whole);
  Dim off = dim_add(cx, t.off, t.l.offset);
  if (dim_div(cx, off) * each % 128)
    ctx_fail(cx, ERR_ALIGN, "%s: the offset is not a multiple of 16 bytes\n"
             "  %s", o->maker, tensor_show(cx, &t));
  d.imm = (int64_t)bits;
  d.a[0] = m->ref;
  ir_use(cx, fn, m->ref);
  return (Tensor){.space = SP_DESC, .type = t.type, .l = l, .align = 16,
                  .mem = ir_cons(cx, fn, d, fold_full(DT_U64)),
                  .off = dim_quo(cx, off, dim_int(cx, 128 / each))};
}

Tensor gmma_fragment(Ctx *cx, const MmaAtom *a, char which, Tensor t) {
  const AtomMma *r = a->row;
  DType want = atom_mma_type(r, which == 'A' ? 1 : 2);
  if (t.space != SP_SMEM)
    ctx_fail(cx, ERR_ARG, "make_fragment_%c: %s reads %c from shared memory, "
             "got %s", which, r->name, which, tensor_show(cx, &t));
  if (t.type != want && !(want == DT_TF32 && t.type == DT_F32))
    ctx_fail(cx, ERR_TYPE, "make_fragment_%c: %s reads %s, got %s", which,
             r->name, dtype_name(want), tensor_show(cx, &t));
  Shared o = operand_of_mma(cx, a, which);
  return descriptors(&o, t);
}

// Describes the operand of a tcgen05 operation, whose elements have the layout
// l, ((MN,K),Rest...).
static Shared operand_of_umma(Ctx *cx, const char *maker, const char *reader,
                              Layout l, int bits, bool mn_major) {
  Layout in = layout_inner(l);
  Layout v = layout_rank(in) < 2 ? in : layout_mode(cx, in, 0);
  if (layout_rank(v) != 2)
    ctx_fail(cx, ERR_SHAPE, "%s: %s is not a layout ((MN,K),Rest...)", maker,
             layout_text(cx, l));
  return (Shared){.cx = cx, .maker = maker, .reader = reader, .umma = true,
                  .what = "the source", .bits = bits, .mn = mn_major,
                  .rows = (int)count(cx, layout_mode(cx, v, 0), maker),
                  .cols = (int)count(cx, layout_mode(cx, v, 1), maker)};
}

Tensor gmma_of_umma(Ctx *cx, const char *maker, const char *reader, Tensor t,
                    bool mn_major) {
  if (t.space != SP_SMEM)
    ctx_fail(cx, ERR_ARG, "%s: %s reads shared memory, got %s", maker, reader,
             tensor_show(cx, &t));
  Shared o = operand_of_umma(cx, maker, reader, t.l, dtype_bits(t.type),
                             mn_major);
  return descriptors(&o, t);
}

uint64_t gmma_descriptor(Ctx *cx, const char *maker, Layout l, int bits,
                         bool mn_major) {
  uint64_t desc = 0;
  Shared o = operand_of_umma(cx, maker, "tcgen05", l, bits, mn_major);
  describe_part(&o, l, &desc);
  return desc;
}

Ref gmma_beyond(Ctx *cx, Ref desc, Dim units) {
  Fn *fn = ir_fn(cx);
  if (dim_is(units, 0)) return desc;
  return ir_op2(cx, fn, OP_ADD, desc,
                ir_cvt(cx, fn, DT_U64, dim_asref(cx, units)));
}

bool gmma_from_shared(const MmaAtom *a, char which) {
  const AtomMma *r = a->row;
  return (r->kind == MK_WGMMA || r->kind == MK_TCGEN05) &&
         (which == 'B' || (which == 'A' && r->flags & AMF_SMEM_A));
}
// SPDX-License-Identifier: MIT
