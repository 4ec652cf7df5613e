// copy() and gemm(): tensors taken apart into the instructions of an atom.
#include "tensor/tiled.h"

#include <inttypes.h>
#include <string.h>

#include "ir/intrin.h"
#include "layout/composed.h"
#include "ir/operands.h"

static int64_t count(Ctx *cx, Layout l, const char *what) {
  if (!tup_static(l.shape))
    ctx_fail(cx, ERR_STATIC, "%s needs static shapes, got %s", what,
             layout_text(cx, l));
  return dim_value(layout_size(cx, l));
}

static Layout unit(Ctx *cx) {
  return layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0));
}

// Mode 0 of l and the others as one; a leaf is all mode 0.
static void split(Ctx *cx, Layout l, Layout *v, Layout *rest) {
  if (tup_is_leaf(l.shape)) {
    *v = l;
    *rest = unit(cx);
    return;
  }
  int n = layout_rank(l);
  *v = layout_mode(cx, l, 0);
  *rest = n > 1 ? layout_take(cx, l, 1, n) : unit(cx);
}

static Dim at(Ctx *cx, Layout l, int64_t i) {
  return layout_eval_at(cx, l, dim_int(cx, i));
}

// ---- copy ----

typedef struct Copy {
  Ctx *cx;
  const CopyAtom *a;
  const Tensor *src, *dst, *pred;
  int64_t nsrc, ndst;    // values of a thread in one instruction
  Layout pred_v, pred_rest;
  int64_t atom, rest;    // which atom of V, which of the rest
} Copy;

static const char *const spaces[] = {
  "host memory", "global memory", "shared memory", "registers",
  "coordinates"};

static const char *pair_text(const Copy *k) {
  return arena_printf(k->cx, &k->cx->scratch,
                      "\n  source      %s\n  destination %s",
                      tensor_show(k->cx, k->src), tensor_show(k->cx, k->dst));
}

_Noreturn static void misaligned(const Copy *k, bool dst, int64_t have,
                                 int64_t need) {
  const Tensor *t = dst ? k->dst : k->src;
  ctx_fail(k->cx, ERR_ALIGN, "copy: %s needs addresses that are multiples of "
           "%" PRId64 " bytes, the %s is known to be aligned to %" PRId64 "%s"
           "\n  make the stride or the offset a multiple of %" PRId64
           " elements, promise more (assumed_align, a stride's "
           "divisibility), or use a copy atom of %" PRId64 " bits",
           k->a->row->name, need, dst ? "destination" : "source", have,
           pair_text(k), need * 8 / dtype_bits(t->type), have * 8);
}

// Where the values of v (at `base`) lie: the element offset of the first one,
// when n of them are contiguous and aligned for one access.
static Dim run_of(const Copy *k, bool dst, Layout v, Dim base, int64_t n) {
  Ctx *cx = k->cx;
  const Tensor *t = dst ? k->dst : k->src;
  Layout c = layout_coalesce(cx, v);
  bool dense = n == 1 || (tup_is_leaf(c.shape) && dim_is(c.stride[0], 1));
  if (!dense)
    ctx_fail(cx, ERR_SHAPE, "copy: %s moves %" PRId64 " contiguous values, "
             "the %s has them at %s%s\n  a value layout along the contiguous "
             "mode, or autovec_copy, would fit", k->a->row->name, n,
             dst ? "destination" : "source", layout_text(cx, v),
             pair_text(k));
  int bits = dtype_bits(t->type);
  int64_t need = n * bits / 8, have = t->align;
  int64_t grain = layout_grain(cx, t->l);
  if (grain < have * 8) have = grain * bits >= 8 ? grain * bits / 8 : 1;
  int64_t div = dim_div(cx, base) * bits;
  while (have > 1 && div % (have * 8)) have /= 2;
  if (t->space != SP_RMEM && have < need) misaligned(k, dst, have, need);
  return dim_add(cx, t->off, layout_through_dim(cx, t->l, base));
}

static Ref pred_ref(const Copy *k) {
  if (!k->pred) return 0;
  Ctx *cx = k->cx;
  int64_t n = count(cx, k->pred_v, "copy");
  Tensor e = *k->pred;
  e.off = dim_add(cx, e.off, at(cx, k->pred_v, n == 1 ? 0 : k->atom));
  e.off = dim_add(cx, e.off, at(cx, k->pred_rest, k->rest));
  e.l = unit(cx);
  Dim zero = {0};
  return tensor_load(cx, e, &zero);
}

static void emit_move(const Copy *k, Op op, Layout s, Dim so, Layout d,
                      Dim dof) {
  Ctx *cx = k->cx;
  Dim o[2] = {run_of(k, true, d, dof, k->ndst),
              run_of(k, false, s, so, k->nsrc)};
  int64_t bits = k->nsrc * dtype_bits(k->src->type);
  Ref pred = pred_ref(k);
  unsigned flags = k->a->row->flags;
  if (!pred) flags &= ~(unsigned)CPF_ZFILL;
  // 256 bits at once where the atom says so; else in parts.
  bool whole = bits == 256 && k->a->row->ptx;
  int64_t step = bits > 128 && !whole ? 128 / dtype_bits(k->src->type)
                                      : k->nsrc;
  for (int64_t i = 0; i < k->nsrc; i += step) {
    Dim n = dim_int(cx, i);
    Ref x[5] = {k->dst->mem, dim_asref(cx, dim_add(cx, o[0], n)),
                k->src->mem, dim_asref(cx, dim_add(cx, o[1], n)), pred};
    Ins ins = {.op = (uint8_t)op, .imm = bits > 128 && !whole ? 128 : bits,
               .flags = (uint16_t)flags};
    operands_emit(cx, ir_fn(cx), ins, x, 5, NULL, 0);
  }
}

_Noreturn static void no_pred(const Copy *k) {
  ctx_fail(k->cx, ERR_ARG, "copy: %s takes no predicate: all lanes of the warp "
           "take part", k->a->row->name);
}

// First elements of the 32-bit registers that hold v's values.
static void matrix_regs(const Copy *k, const Tensor *t, Layout v, Dim base,
                        uint32_t *out, int num) {
  Ctx *cx = k->cx;
  int64_t per = 32 / dtype_bits(t->type);
  base = dim_add(cx, t->off, base);
  for (int r = 0; r < num; r++)
    for (int64_t j = 0; j < per; j++) {
      Dim o = dim_add(cx, base, at(cx, v, r * per + j));
      if (!dim_static(o))
        ctx_fail(cx, ERR_REGS, "copy: the registers of %s are indexed by a "
                 "traced value%s", k->a->row->name, pair_text(k));
      if (j == 0) out[r] = (uint32_t)dim_value(o);
      else if (dim_value(o) != (int64_t)out[r] + j)
        ctx_fail(cx, ERR_SHAPE, "copy: %s fills 32-bit registers, %" PRId64
                 " neighbouring values each; the fragment %s does not hold "
                 "them so%s\n  retile a fragment of the MMA for this copy",
                 k->a->row->name, per, layout_text(cx, v), pair_text(k));
    }
}

static void emit_matrix(const Copy *k, Layout s, Dim so, Layout d, Dim dof) {
  Ctx *cx = k->cx;
  const AtomCopy *row = k->a->row;
  uint32_t reg[4];
  if (k->pred) no_pred(k);
  bool load = row->op == CO_LDSM;
  Dim shared = load ? run_of(k, false, s, so, k->nsrc)
                    : run_of(k, true, d, dof, k->ndst);
  if (load) matrix_regs(k, k->dst, d, dof, reg, row->num);
  Ref off = dim_asref(cx, shared);
  if (!load) matrix_regs(k, k->src, s, so, reg, row->num);
  Ref in[3] = {k->dst->mem, k->src->mem, off};
  Ref out[3] = {k->dst->mem, off, k->src->mem};
  Ins ins = {.op = OP_MATRIX, .imm = k->a->id};
  operands_emit(cx, ir_fn(cx), ins, load ? in : out, 3, reg,
                (uint32_t)row->num);
}

// Elements of word r of a fragment, one 32-bit value; and back.
static Tensor element_of(const Copy *k, const Tensor *t, uint32_t at) {
  Tensor e = *t;
  e.off = dim_int(k->cx, at);
  e.l = unit(k->cx);
  return e;
}

static DType raw_type(DType t) {
  return dtype_bits(t) == 32 ? DT_U32 : dtype_bits(t) == 16 ? DT_U16 : DT_U8;
}

static Ref load_word(const Copy *k, uint32_t at) {
  Ctx *cx = k->cx;
  Fn *fn = ir_fn(cx);
  const Tensor *t = k->src;
  int bits = dtype_bits(t->type);
  Ref word = 0;
  Dim zero = {0};
  for (int i = 0; i < 32 / bits; i++) {
    Ref x = tensor_load(cx, element_of(k, t, at + (uint32_t)i), &zero);
    x = ir_cvt(cx, fn, DT_U32, ir_bitcast(cx, fn, raw_type(t->type), x));
    Ref by = ir_int(cx, fn, DT_I32, i * bits);
    word = i ? ir_op2(cx, fn, OP_OR, word, ir_op2(cx, fn, OP_SHL, x, by)) : x;
  }
  return word;
}

static void store_word(const Copy *k, uint32_t at, Ref word) {
  Ctx *cx = k->cx;
  Fn *fn = ir_fn(cx);
  const Tensor *t = k->dst;
  int bits = dtype_bits(t->type);
  Dim zero = {0};
  for (int i = 0; i < 32 / bits; i++) {
    Ref by = ir_int(cx, fn, DT_I32, i * bits);
    Ref x = i ? ir_op2(cx, fn, OP_SHR, word, by) : word;
    if (bits < 32)
      x = ir_op2(cx, fn, OP_AND, x,
                 ir_int(cx, fn, DT_U32, ((int64_t)1 << bits) - 1));
    x = ir_bitcast(cx, fn, t->type, ir_cvt(cx, fn, raw_type(t->type), x));
    tensor_store(cx, element_of(k, t, at + (uint32_t)i), &zero, x);
  }
}

// Two words of each lane, a 2x2 transposed between lanes l and l ^ num: the
// upper word of the lower lane and the lower word of the upper one change
// places.
static void emit_shuffle(const Copy *k, Layout s, Dim so, Layout d, Dim dof) {
  Ctx *cx = k->cx;
  Fn *fn = ir_fn(cx);
  uint32_t from[2], to[2];
  int num = k->a->row->num;
  if (dtype_bits(k->src->type) > 32 || dtype_bits(k->src->type) < 8)
    ctx_fail(cx, ERR_TYPE, "copy: %s moves values of 8 to 32 bits, not %s",
             k->a->row->name, dtype_name(k->src->type));
  matrix_regs(k, k->src, s, so, from, 2);
  matrix_regs(k, k->dst, d, dof, to, 2);
  Ref x[2] = {load_word(k, from[0]), load_word(k, from[1])};
  Ref bit = ir_op2(cx, fn, OP_AND, ir_sreg(cx, fn, SR_LANE),
                   ir_int(cx, fn, DT_I32, num));
  Ref upper = ir_op2(cx, fn, OP_NE, bit, ir_int(cx, fn, DT_I32, 0));
  Ref of[3] = {ir_op3(cx, fn, OP_SEL, upper, x[0], x[1]),
               ir_int(cx, fn, DT_I32, num), ir_int(cx, fn, DT_U32, UINT32_MAX)};
  Ref got = intrin_emit(cx, fn, IN_SHUFBFLY, 31, of);
  Ref y[2] = {ir_op3(cx, fn, OP_SEL, upper, got, x[0]),
              ir_op3(cx, fn, OP_SEL, upper, x[1], got)};
  for (int i = 0; i < 2; i++) store_word(k, to[i], y[i]);
}

// An 8x8 transpose of 16-bit values between the lanes.
static void emit_movm(const Copy *k, Layout s, Dim so, Layout d, Dim dof) {
  uint32_t reg[2];
  matrix_regs(k, k->dst, d, dof, reg, 1);
  matrix_regs(k, k->src, s, so, reg + 1, 1);
  Ref x[2] = {k->dst->mem, k->src->mem};
  Ins ins = {.op = OP_MATRIX, .imm = k->a->id};
  operands_emit(k->cx, ir_fn(k->cx), ins, x, 2, reg, 2);
}

static void copy_modes(Copy *k, Layout s, Dim so, Layout d, Dim dof, int top);

// One V: an instruction, or as many as its modes hold.
static void copy_values(Copy *k, Layout s, Dim so, Layout d, Dim dof) {
  Ctx *cx = k->cx;
  int64_t ns = count(cx, s, "copy"), nd = count(cx, d, "copy");
  if (ns == k->nsrc && nd == k->ndst) {
    switch (k->a->row->op) {
      case CO_LDSM: case CO_STSM: emit_matrix(k, s, so, d, dof); break;
      case CO_SHUFFLE: emit_shuffle(k, s, so, d, dof); break;
      case CO_MOVM: emit_movm(k, s, so, d, dof); break;
      case CO_CPASYNC: emit_move(k, OP_CPASYNC, s, so, d, dof); break;
      case CO_UNIVERSAL: case CO_AUTOVEC: case CO_LOAD: case CO_STORE:
      case CO_BULK: case CO_TABLE:
        emit_move(k, OP_COPY, s, so, d, dof);
        break;
    }
    k->atom++;
    return;
  }
  if (tup_is_leaf(s.shape) || tup_is_leaf(d.shape))
    ctx_fail(cx, ERR_SHAPE, "copy: %s takes %" PRId64 " values of the source "
             "and %" PRId64 " of the destination, the first modes are %s and "
             "%s%s\n  partition both with the tiled copy (partition_S, "
             "partition_D, retile)", k->a->row->name, k->nsrc, k->ndst,
             tup_text(cx, s.shape), tup_text(cx, d.shape), pair_text(k));
  copy_modes(k, s, so, d, dof, 0);
}

static void copy_modes(Copy *k, Layout s, Dim so, Layout d, Dim dof, int top) {
  Ctx *cx = k->cx;
  Layout sv, sr, dv, dr;
  split(cx, s, &sv, &sr);
  split(cx, d, &dv, &dr);
  int64_t n = count(cx, sr, "copy"), m = count(cx, dr, "copy");
  if (n != m)
    ctx_fail(cx, ERR_SHAPE, "copy: the source has %" PRId64 " and the "
             "destination %" PRId64 " times the first mode%s", n, m,
             pair_text(k));
  for (int64_t i = 0; i < n; i++) {
    if (top) k->rest = i, k->atom = 0;
    copy_values(k, sv, dim_add(cx, so, at(cx, sr, i)), dv,
                dim_add(cx, dof, at(cx, dr, i)));
  }
}

// ---- what an atom demands of its operands ----

static void check_space(const Copy *k, bool dst, Space want) {
  const Tensor *t = dst ? k->dst : k->src;
  if (t->space == want) return;
  const char *fit =
    k->src->space == SP_GMEM && k->dst->space == SP_SMEM
      ? "SM80_CP_ASYNC_CACHEALWAYS"
    : k->src->space == SP_SMEM && k->dst->space == SP_RMEM
      ? "SM75_U32x4_LDSM_N or UniversalCopy"
    : k->src->space == SP_RMEM && k->dst->space == SP_SMEM
      ? "SM90_U32x4_STSM_N or UniversalCopy" : "UniversalCopy";
  ctx_fail(k->cx, ERR_TYPE, "copy: the %s of %s must be in %s, not in %s%s"
           "\n  from %s to %s: %s", dst ? "destination" : "source",
           k->a->row->name, spaces[want], spaces[t->space], pair_text(k),
           spaces[k->src->space], spaces[k->dst->space], fit);
}

// An f32 is a tf32 of which the last bits are not read.
static bool type_moves(DType a, DType b) {
  return a == b || (a == DT_F32 && b == DT_TF32) ||
         (a == DT_TF32 && b == DT_F32);
}

static void check_copy_types(const Copy *k) {
  Ctx *cx = k->cx;
  DType src = k->src->type, dst = k->dst->type, own = k->a->type;
  if (dtype_bits(src) == dtype_bits(dst) && !type_moves(src, dst))
    ctx_fail(cx, ERR_TYPE, "copy of %s to %s moves bits and converts nothing"
             "%s\n  convert with dst:store(src:load():to(cute.%s)), or make "
             "the %s of %s", dtype_name(src), dtype_name(dst), pair_text(k),
             dtype_name(dst), k->dst->space == SP_RMEM ? "fragment" : "tensor",
             dtype_name(src));
  DType wrong = type_moves(own, src) ? dst : src;
  if (type_moves(own, wrong)) return;
  ctx_fail(cx, ERR_TYPE, "copy: %s was made for %s values (%d bits), the %s "
           "holds %s%s\n  make_copy_atom(\"%s\", cute.%s) would fit",
           k->a->row->name, dtype_name(own), dtype_bits(own),
           wrong == src ? "source" : "destination", dtype_name(wrong),
           pair_text(k), k->a->row->name, dtype_name(wrong));
}

static void check_operands(const Copy *k) {
  Ctx *cx = k->cx;
  const Tensor *t[2] = {k->src, k->dst};
  for (int i = 0; i < 2; i++)
    if (!t[i]->mem)
      ctx_fail(cx, ERR_ARG, "copy: the %s is not in the kernel's memory%s",
               i ? "destination" : "source", pair_text(k));
  check_copy_types(k);
  switch (k->a->row->op) {
    case CO_CPASYNC:
      check_space(k, false, SP_GMEM);
      check_space(k, true, SP_SMEM);
      break;
    case CO_LDSM:
      check_space(k, false, SP_SMEM);
      check_space(k, true, SP_RMEM);
      break;
    case CO_STSM:
      check_space(k, false, SP_RMEM);
      check_space(k, true, SP_SMEM);
      break;
    case CO_SHUFFLE: case CO_MOVM:
      check_space(k, false, SP_RMEM);
      check_space(k, true, SP_RMEM);
      if (k->pred) no_pred(k);
      break;
    case CO_BULK: case CO_TABLE:
      ctx_fail(cx, ERR_ARG, "copy: %s is described by its layouts alone: %s",
               k->a->row->name, k->a->row->op == CO_BULK
               ? "bulk copies do not execute yet"
               : "Blackwell's own matrix and tensor-memory copies do not "
                 "execute yet");
    case CO_LOAD:
      check_space(k, false, SP_GMEM);
      check_space(k, true, SP_RMEM);
      break;
    case CO_STORE:
      check_space(k, true, SP_GMEM);
      check_space(k, false, SP_RMEM);
      break;
    case CO_UNIVERSAL: case CO_AUTOVEC: break;
  }
}

// Predicates: as many modes as the source, the first running over the atoms
// in V; or the rest modes alone.
static void set_pred(Copy *k, const Tensor *pred) {
  Ctx *cx = k->cx;
  if (!pred) return;
  if (pred->type != DT_BOOL)
    ctx_fail(cx, ERR_TYPE, "copy: a predicate tensor holds booleans, not %s",
             dtype_name(pred->type));
  Layout sv, rest;
  split(cx, layout_inner(k->src->l), &sv, &rest);
  int64_t n = count(cx, rest, "copy");
  k->pred = pred;
  split(cx, pred->l, &k->pred_v, &k->pred_rest);
  int64_t atoms = k->nsrc ? count(cx, sv, "copy") / k->nsrc : 1;
  int64_t v = count(cx, k->pred_v, "copy");
  if (count(cx, k->pred_rest, "copy") == n && (v == 1 || v == atoms)) return;
  k->pred_v = unit(cx);
  k->pred_rest = pred->l;
  if (count(cx, pred->l, "copy") == n) return;
  ctx_fail(cx, ERR_SHAPE, "copy: the predicate tensor %s fits neither the "
           "rest modes of the source nor (%" PRId64 " atoms,rest...)%s",
           layout_text(cx, pred->l), atoms, pair_text(k));
}

void tiled_copy_call(Ctx *cx, const CopyAtom *a, Tensor src, Tensor dst,
                     const Tensor *pred) {
  Copy k = {.cx = cx, .a = a, .src = &src, .dst = &dst};
  k.nsrc = count(cx, layout_mode(cx, a->src, 1), "copy");
  k.ndst = count(cx, layout_mode(cx, a->dst, 1), "copy");
  check_operands(&k);
  set_pred(&k, pred);
  Layout s = layout_inner(src.l), d = layout_inner(dst.l);
  if (a->row->op != CO_AUTOVEC) {
    copy_modes(&k, s, dim_int(cx, 0), d, dim_int(cx, 0), 1);
    return;
  }
  int bits = a->bits > 128 ? 128 : a->bits;
  // DefaultCopy promises nothing of what is traced
  bool promised = a->row->flags & CPF_PROMISED;
  if (!pred) {
    (promised ? tensor_copy_promised : tensor_copy)(cx, src, dst, NULL, bits);
    return;
  }
  // The predicate of each element: the same for all of V, or its own.
  Layout sv, sr;
  split(cx, s, &sv, &sr);
  Layout l[2] = {k.pred_v, k.pred_rest};
  if (count(cx, k.pred_v, "copy") == 1)
    l[0] = layout_leaf(cx, layout_size(cx, sv), dim_int(cx, 0));
  Tensor p = tensor_with_layout(*pred, layout_concat(cx, l, 2));
  (promised ? tensor_copy_promised : tensor_copy)(cx, src, dst, &p, bits);
}

// ---- gemm ----

// An operand as (V,M,K) or (V,M,N), with its registers.
typedef struct Part {
  const Tensor *t;
  char name;
  Layout v, mode[2];
  int64_t n[2];
  uint32_t reg[256];  // of V: first element of each register, from base 0
  int nreg;
} Part;

typedef struct Gemm {
  Ctx *cx;
  const MmaAtom *a;
  Part d, x, y, c;   // D, A, B, C
  Part more[3];      // scales of A and B, metadata of A, as the atom has
} Gemm;

static const char *gemm_text(const Gemm *g) {
  Ctx *cx = g->cx;
  return arena_printf(cx, &cx->scratch, "\n  D %s\n  A %s\n  B %s\n  C %s",
                      tensor_show(cx, g->d.t), tensor_show(cx, g->x.t),
                      tensor_show(cx, g->y.t), tensor_show(cx, g->c.t));
}

static int rank_of(const Tensor *t) {
  return tup_is_leaf(t->l.shape) ? 1 : layout_rank(t->l);
}

// Which of CuTe's forms: modes[i] says which mode of the operand is V, and
// which its two others, -1: none.
static void set_modes(const Gemm *g, Part *o, const int mode[3]) {
  Ctx *cx = g->cx;
  Layout l = o->t->l, m[3];
  if (l.outer)
    ctx_fail(cx, ERR_ARG, "gemm: operand %c is composed; copy it to a "
             "fragment first%s", o->name, gemm_text(g));
  for (int i = 0; i < 3; i++)
    m[i] = mode[i] < 0 ? unit(cx)
           : tup_is_leaf(l.shape) ? l : layout_mode(cx, l, mode[i]);
  o->v = m[0];
  for (int i = 0; i < 2; i++) {
    o->mode[i] = m[i + 1];
    o->n[i] = count(cx, m[i + 1], "gemm");
  }
}

static void dispatch(Gemm *g) {
  // by rank of A (= B) and C: modes of A and B, modes of C and D
  static const struct { int ab, c; int mab[3], mc[3]; } form[] = {
    {1, 1, {0, -1, -1}, {0, -1, -1}},   // (V) x (V) => (V)
    {1, 2, {-1, 0, -1}, {-1, 0, 1}},    // (M) x (N) => (M,N)
    {2, 2, {-1, 0, 1}, {-1, 0, 1}},     // (M,K) x (N,K) => (M,N)
    {2, 3, {0, 1, -1}, {0, 1, 2}},      // (V,M) x (V,N) => (V,M,N)
    {3, 3, {0, 1, 2}, {0, 1, 2}}};      // (V,M,K) x (V,N,K) => (V,M,N)
  int ra = rank_of(g->x.t), rb = rank_of(g->y.t), rc = rank_of(g->c.t);
  int rd = rank_of(g->d.t);
  for (size_t i = 0; ra == rb && rc == rd && i < 5; i++) {
    if (form[i].ab != ra || form[i].c != rc) continue;
    set_modes(g, &g->x, form[i].mab);
    set_modes(g, &g->y, form[i].mab);
    set_modes(g, &g->c, form[i].mc);
    set_modes(g, &g->d, form[i].mc);
    return;
  }
  ctx_fail(g->cx, ERR_SHAPE, "gemm: no form for tensors of ranks D %d, A %d, "
           "B %d, C %d; there are (V,M,K) x (V,N,K) => (V,M,N), (V,M) x (V,N)"
           " => (V,M,N), (M,K) x (N,K) => (M,N), (M) x (N) => (M,N), (V) x "
           "(V) => (V)%s", rd, ra, rb, rc, gemm_text(g));
}

static void check_sizes(const Gemm *g) {
  const struct { const Part *p, *q; int i, j; char m; } pair[] = {
    {&g->x, &g->c, 0, 0, 'M'}, {&g->y, &g->c, 0, 1, 'N'},
    {&g->x, &g->y, 1, 1, 'K'}, {&g->d, &g->c, 0, 0, 'M'},
    {&g->d, &g->c, 1, 1, 'N'}};
  for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
    int64_t p = pair[i].p->n[pair[i].i], q = pair[i].q->n[pair[i].j];
    if (p != q)
      ctx_fail(g->cx, ERR_SHAPE, "gemm: mode %c is %" PRId64 " in %c and %"
               PRId64 " in %c%s", pair[i].m, p, pair[i].p->name, q,
               pair[i].q->name, gemm_text(g));
  }
  const Part *o[4] = {&g->d, &g->x, &g->y, &g->c};
  Layout tv[4] = {g->a->c, g->a->a, g->a->b, g->a->c};
  for (int i = 0; i < 4; i++) {
    int64_t want = count(g->cx, layout_mode(g->cx, tv[i], 1), "gemm");
    int64_t have = count(g->cx, o[i]->v, "gemm");
    want = atom_mma_stored(g->a->row, i, (int)want);
    if (want != have)
      ctx_fail(g->cx, ERR_SHAPE, "gemm: %s takes %" PRId64 " values of %c a "
               "thread, the fragment's first mode has %" PRId64 "%s\n  make "
               "it with partition_fragment_%c or make_fragment_%c of this "
               "tiled MMA", g->a->row->name, want, o[i]->name, have,
               gemm_text(g), o[i]->name == 'D' ? 'C' : o[i]->name,
               o[i]->name == 'D' ? 'C' : o[i]->name);
  }
}

// Narrow floats of A and B come as plain bytes where the atom takes bytes.
static bool type_fits(const AtomMma *r, int i, DType have) {
  DType want = atom_mma_type(r, i);
  return want == have || (want == DT_TF32 && have == DT_F32) ||
         (have == DT_U8 && r->flags & AMF_BYTE && (i == 1 || i == 2));
}

static void check_types(const Gemm *g) {
  const AtomMma *r = g->a->row;
  DType have[4] = {g->d.t->type, g->x.t->type, g->y.t->type, g->c.t->type};
  DType want[4];
  bool ok = true;
  for (int i = 0; i < 4; i++) {
    want[i] = atom_mma_type(r, i);
    ok = ok && type_fits(r, i, have[i]);
  }
  if (ok) return;
  const char *fit = atom_mma_fitting(g->cx, have[0], have[1], have[2],
                                     have[3]);
  ctx_fail(g->cx, ERR_TYPE, "gemm: %s computes D:%s = A:%s * B:%s + C:%s, got "
           "D:%s A:%s B:%s C:%s%s%s%s", r->name, dtype_name(want[0]),
           dtype_name(want[1]), dtype_name(want[2]), dtype_name(want[3]),
           dtype_name(have[0]), dtype_name(have[1]), dtype_name(have[2]),
           dtype_name(have[3]), gemm_text(g),
           fit ? "\n  this atom would fit: " : "", fit ? fit : "");
}

static int64_t static_of(const Gemm *g, const Part *o, Dim d) {
  if (dim_static(d)) return dim_value(d);
  ctx_fail(g->cx, ERR_REGS, "gemm: fragment %c is indexed by a traced value; "
           "registers have no addresses: unroll with a plain Lua loop%s",
           o->name, gemm_text(g));
}

// The registers of operand i (D A B C): first elements of V's runs.
static void set_regs(const Gemm *g, Part *o, int i) {
  const AtomMma *r = g->a->row;
  Ctx *cx = g->cx;
  if (o->t->space != SP_RMEM)
    ctx_fail(cx, ERR_TYPE, "gemm: %s takes %c from registers\n  copy it to a "
             "fragment (partition_fragment_%c) first%s", r->name, o->name,
             o->name == 'D' ? 'C' : o->name, gemm_text(g));
  int64_t n = count(cx, o->v, "gemm");
  o->nreg = r->nreg[i];
  int64_t per = n / o->nreg;  // at least one: a value fills a register or more
  for (int64_t v = 0; v < n; v++) {
    int64_t e = static_of(g, o, at(cx, o->v, v));
    if (v % per == 0) o->reg[v / per] = (uint32_t)e;
    else if (e != (int64_t)o->reg[v / per] + v % per)
      ctx_fail(cx, ERR_SHAPE, "gemm: the values of %c are not packed in "
               "registers: first mode %s, %" PRId64 " neighbours make a "
               "register%s", o->name, layout_text(cx, o->v), per,
               gemm_text(g));
  }
}

// The operands of an MMA: objects and the elements that registers begin at.
typedef struct Parts {
  Ref mem[OPERANDS];
  uint32_t n, nreg, reg[4 * 256 + 3];
} Parts;

static void put_operand(const Gemm *g, const Part *o, int64_t i, int64_t j,
                        Parts *p) {
  Ctx *cx = g->cx;
  Dim base = dim_add(cx, o->t->off, dim_add(cx, at(cx, o->mode[0], i),
                                            at(cx, o->mode[1], j)));
  uint32_t from = (uint32_t)static_of(g, o, base);
  p->mem[p->n++] = o->t->mem;
  for (int r = 0; r < o->nreg; r++) p->reg[p->nreg++] = from + o->reg[r];
}

static void emit_mma(const Gemm *g, int64_t m, int64_t n, int64_t k) {
  Parts p;
  p.n = p.nreg = 0;
  put_operand(g, &g->d, m, n, &p);
  put_operand(g, &g->x, m, k, &p);
  put_operand(g, &g->y, n, k, &p);
  put_operand(g, &g->c, m, n, &p);
  const AtomMma *r = g->a->row;
  for (int i = 4; i < r->nop; i++) {
    bool of_b = i == 5 && r->flags & AMF_SCALE;
    put_operand(g, &g->more[i - 4], of_b ? n : m, k, &p);
  }
  Ins ins = {.op = OP_MMA, .imm = g->a->id};
  operands_emit(g->cx, ir_fn(g->cx), ins, p.mem, p.n, p.reg, p.nreg);
}

// Outer product (V,M) x (V,N) for one k, in a serpentine so that consecutive
// instructions share an operand's registers.
static void outer(const Gemm *g, int64_t k) {
  int64_t M = g->c.n[0], N = g->c.n[1];
  const AtomMma *r = g->a->row;
  int64_t bytes[2] = {count(g->cx, g->x.v, "gemm") * r->bits[1] / 8,
                      count(g->cx, g->y.v, "gemm") * r->bits[2] / 8};
  if (bytes[0] == 8 && bytes[1] == 8) {  // rows, each the other way
    for (int64_t m = 0; m < M; m++)
      for (int64_t n = 0; n < N; n++)
        emit_mma(g, m, m & 1 ? N - 1 - n : n, k);
  } else if (bytes[0] == 4 && bytes[1] == 4) {  // pairs of rows
    for (int64_t m = 0; m < M; m += 2)
      for (int64_t n = 0; n < N; n++) {
        int64_t s = m & 2 ? N - 1 - n : n;
        emit_mma(g, m, s, k);
        if (m + 1 < M) emit_mma(g, m + 1, s, k);
      }
  } else {  // columns, each the other way
    for (int64_t n = 0; n < N; n++)
      for (int64_t m = 0; m < M; m++)
        emit_mma(g, n & 1 ? M - 1 - m : m, n, k);
  }
}

// ---- gemm with plain multiply-adds ----

static Tensor element(const Gemm *g, const Part *o, int64_t i, int64_t j) {
  Ctx *cx = g->cx;
  Tensor e = *o->t;
  e.off = dim_add(cx, e.off, dim_add(cx, at(cx, o->mode[0], i),
                                     at(cx, o->mode[1], j)));
  e.l = unit(cx);
  return e;
}

static Ref load(const Gemm *g, const Part *o, int64_t i, int64_t j,
                DType t) {
  Dim zero = {0};
  Ref r = tensor_load(g->cx, element(g, o, i, j), &zero);
  return ir_type(ir_fn(g->cx), r) == t ? r : ir_cvt(g->cx, ir_fn(g->cx), t, r);
}

static void fma_gemm(const Gemm *g) {
  Ctx *cx = g->cx;
  Fn *fn = ir_fn(cx);
  DType t = g->d.t->type;
  int64_t M = g->c.n[0], N = g->c.n[1], K = g->x.n[1];
  Ref *a = NEW(cx, Ref, (size_t)M), *b = NEW(cx, Ref, (size_t)N);
  Dim zero = {0};
  for (int64_t k = 0; k < K; k++) {
    for (int64_t m = 0; m < M; m++) a[m] = load(g, &g->x, m, k, t);
    for (int64_t n = 0; n < N; n++) b[n] = load(g, &g->y, n, k, t);
    for (int64_t n = 0; n < N; n++)
      for (int64_t i = 0; i < M; i++) {
        int64_t m = n & 1 ? M - 1 - i : i;
        Ref c = load(g, k ? &g->d : &g->c, m, n, t);
        Ref d = dtype_is_float(t)
          ? ir_op3(cx, fn, OP_FMA, a[m], b[n], c)
          : ir_op2(cx, fn, OP_ADD, ir_op2(cx, fn, OP_MUL, a[m], b[n]), c);
        tensor_store(cx, element(g, &g->d, m, n), &zero, d);
      }
  }
}

static void check_executable(Ctx *cx, const AtomMma *r) {
  const char *why = r->kind == MK_WGMMA ? "warpgroups do not execute yet"
                    : r->kind == MK_TCGEN05 ? "tensor memory is not there yet"
                    : r->flags & AMF_TABLE
                      ? "its accumulator of three doubles is no element type"
                      : NULL;
  if (why)
    ctx_fail(cx, ERR_ARG, "gemm: %s is described by its layouts alone: %s",
             r->name, why);
}

// ---- scales and metadata ----

// Part 4 + i of the atom: (V,M,K) or (V,N,K), V one 32-bit register.
static void set_more(Gemm *g, int i, const Tensor *t) {
  static const char *const what[] = {"the scales of A", "the scales of B",
                                     "the metadata of A"};
  const AtomMma *r = g->a->row;
  Ctx *cx = g->cx;
  bool scales = i < 2 && r->flags & AMF_SCALE;
  const char *name = what[scales ? i : 2];
  const Part *main = scales && i == 1 ? &g->y : &g->x;
  Part *o = &g->more[i];
  *o = (Part){.t = t, .name = main->name};
  DType want = atom_mma_type(r, 4 + i);
  int bits = dtype_bits(t->type);
  if (t->space != SP_RMEM ||
      (t->type != want && t->type != DT_U8 && t->type != DT_U32 &&
       (scales || t->type != DT_U16)))
    ctx_fail(cx, ERR_TYPE, "gemm: %s takes %s from registers of %s or u8, got "
             "%s", r->name, name, dtype_name(want), tensor_show(cx, t));
  int mode[3] = {0, 1, 2};
  if (rank_of(t) < 3) mode[2] = -1;
  if (rank_of(t) < 2) mode[1] = -1;
  set_modes(g, o, mode);
  if (count(cx, o->v, "gemm") * bits != 32 || o->n[0] != main->n[0] ||
      o->n[1] != main->n[1])
    ctx_fail(cx, ERR_SHAPE, "gemm: %s of %s are a fragment (V,%c,K) with one "
             "32-bit register in V, (%d,%" PRId64 ",%" PRId64 ") here, got %s",
             name, r->name, main == &g->x ? 'M' : 'N', 32 / bits, main->n[0],
             main->n[1], tensor_show(cx, t));
  set_regs(g, o, 4 + i);
}

void tiled_gemm(Ctx *cx, const MmaAtom *a, Tensor d, Tensor ta, Tensor tb,
                Tensor tc, const Tensor *more, int nmore) {
  Gemm g = {.cx = cx, .a = a, .d = {.t = &d, .name = 'D'},
            .x = {.t = &ta, .name = 'A'}, .y = {.t = &tb, .name = 'B'},
            .c = {.t = &tc, .name = 'C'}};
  const Tensor *t[4] = {&d, &ta, &tb, &tc};
  check_executable(cx, a->row);
  for (int i = 0; i < 4; i++) {
    if (!t[i]->mem)
      ctx_fail(cx, ERR_ARG, "gemm: operand %c is not in the kernel's memory%s",
               "DABC"[i], gemm_text(&g));
  }
  dispatch(&g);
  check_sizes(&g);
  check_types(&g);
  if (a->row->kind == MK_FMA) {
    fma_gemm(&g);
    return;
  }
  if (nmore != a->row->nop - 4)
    ctx_fail(cx, ERR_ARG, "gemm: %s takes %s", a->row->name,
             a->row->nop == 4 ? "A and B alone"
             : a->row->nop == 5 ? "{A, metadata} and B"
             : a->row->nop == 6 ? "{A, scales} and {B, scales}"
                                : "{A, scales, metadata} and {B, scales}");
  Part *o[4] = {&g.d, &g.x, &g.y, &g.c};
  for (int i = 0; i < 4; i++) set_regs(&g, o[i], i);
  for (int i = 0; i < nmore; i++) set_more(&g, i, &more[i]);
  for (int64_t k = 0; k < g.x.n[1]; k++) {
    outer(&g, k);
    g.c = g.d;  // C comes in once
  }
}

// ---- architectures ----

// The atom that instruction i executes, if it needs an architecture.
typedef struct Need {
  const char *name;
  int least, most;
  bool specific;  // of one chip or family: sm_120a, sm_120f
} Need;

static Need need_of(const Ins *i) {
  if (i->op == OP_MMA) {
    const AtomMma *r = atom_mma((int)i->imm);
    return (Need){r->name, r->sm_min, r->sm_max, r->arch_specific};
  } else if (i->op == OP_MATRIX) {
    const AtomCopy *r = atom_copy((int)i->imm);
    return (Need){r->name, r->sm_min, 0, false};
  } else if (i->op == OP_CPASYNC) {
    return (Need){"cp.async", 80, 0, false};
  } else if (i->op == OP_COPY && i->imm > 128) {
    return (Need){"a 256-bit copy", 100, 0, false};
  }
  return (Need){NULL, 0, 0, false};
}

void tiled_check_arch(Ctx *cx, const Fn *fn, int sm, const char *arch) {
  bool plain = arch && !strchr("af", arch[strlen(arch) - 1]);
  for (size_t i = 1; i < fn->ins.n; i++) {
    const Ins *ins = &fn->ins.p[i];
    Need n = need_of(ins);
    if (!n.name) continue;
    const Src *s = &fn->src.p[ins->src];
    if (sm < n.least || (n.most && sm > n.most))
      ctx_fail(cx, ERR_ARCH, "%s (line %u) needs sm_%d or %s, the target is "
               "sm_%d", n.name, s->line, n.least, n.most ? "its own family"
               : "newer", sm);
    if (n.specific && plain)
      ctx_fail(cx, ERR_ARCH, "%s (line %u) is a feature of one family of "
               "chips: it needs sm_%da or sm_%df, the target is %s", n.name,
               s->line, sm, sm, arch);
  }
}

const char *tiled_fragment_warning(Ctx *cx, const Fn *fn, const Mem *m) {
  enum { THREAD_REGS = 255 };
  int bits = dtype_bits(m->type);
  int64_t regs = (m->count * (bits == 6 ? 8 : bits) + 31) / 32;
  if (m->space != SP_RMEM || regs <= THREAD_REGS) return NULL;
  const Src *s = &fn->src.p[ir_get(fn, m->ref)->src];
  return arena_printf(cx, &cx->scratch, "line %u: the fragment %s%s%s of %"
                      PRId64 " %s values takes %" PRId64 " registers; a thread "
                      "has %d, the rest spills to memory", s->line,
                      m->name ? ir_str(fn, m->name) : "", m->name ? " " : "",
                      ir_str(fn, m->layout), m->count, dtype_name(m->type),
                      regs, THREAD_REGS);
}
