// copy(): splits the copy of a tensor into instructions of an atom.
#include "tensor/inside.h"

#include <inttypes.h>
#include <string.h>

#include "ir/intrin.h"
#include "layout/composed.h"
#include "ir/operands.h"
#include "tensor/place.h"

// Splits l into mode 0 (v) and the other modes (rest). If l has no modes (a
// leaf), v is l.
static void split(Ctx *cx, Layout l, Layout *v, Layout *rest) {
  if (tup_is_leaf(l.shape)) {
    *v = l;
    *rest = layout_unit(cx);
    return;
  }
  int n = layout_rank(l);
  *v = layout_mode(cx, l, 0);
  *rest = n > 1 ? layout_take(cx, l, 1, n) : layout_unit(cx);
}

typedef struct Copy {
  Ctx *cx;
  const CopyAtom *a;
  const Tensor *src, *dst, *pred;
  int64_t nsrc, ndst;    // values that an instruction copies for each thread
  Layout pred_v, pred_rest;
  // atom: index of the current atom in V. rest: current linear index in the
  // rest modes.
  int64_t atom, rest;
  int64_t atoms;         // number of atoms in V
} Copy;

static const char *const spaces[] = {
  "host memory", "global memory", "shared memory", "registers",
  "coordinates", "another block's shared memory", "descriptors",
  "a tensor map", "tensor memory"};

static const char *pair_text(const Copy *k) {
  return arena_printf(k->cx, &k->cx->scratch,
                      "\n  source      %s\n  destination %s",
                      tensor_show(k->cx, k->src), tensor_show(k->cx, k->dst));
}

_Noreturn static void misaligned(const Copy *k, bool dst, int64_t have,
                                 int64_t need) {
  const Tensor *t = dst ? k->dst : k->src;
  ctx_fail(k->cx, ERR_ALIGN, "copy: %s needs addresses that are multiples of %"
           PRId64 " bytes, but the %s is only known to be aligned to %" PRId64
           "%s\n  make the stride or the offset a multiple of %" PRId64 " "
           "elements, declare more alignment (assumed_align, a stride's "
           "divisibility), or use a copy atom of %" PRId64 " bits",
           k->a->row->name, need, dst ? "destination" : "source", have,
           pair_text(k), need * 8 / dtype_bits(t->type), have * 8);
}

// Returns the element offset in memory of the values with layout v. `base` is
// the offset of the first value in the tensor's layout. Fails unless the n
// values are contiguous and aligned for one access.
static Dim run_of(const Copy *k, bool dst, Layout v, Dim base, int64_t n) {
  Ctx *cx = k->cx;
  const Tensor *t = dst ? k->dst : k->src;
  Layout c = layout_coalesce(cx, v);
  bool dense = n == 1 || (tup_is_leaf(c.shape) && dim_is(c.stride[0], 1));
  if (!dense)
    ctx_fail(cx, ERR_SHAPE, "copy: %s moves %" PRId64 " contiguous values, but "
             "the %s has them at %s%s\n  use a value layout along the "
             "contiguous mode, or autovec_copy", k->a->row->name, n,
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
  Tensor e = tensor_with_layout(*k->pred, layout_unit(cx));
  e.off = dim_add(cx, e.off, at(cx, k->pred_v, n == 1 ? 0 : k->atom));
  e.off = dim_add(cx, e.off, at(cx, k->pred_rest, k->rest));
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
  int64_t first = (k->rest * k->atoms + k->atom) * k->nsrc;
  int64_t last = first + k->nsrc - 1;
  if (pred) place_claim_ends(cx, k->src, first, last, false, pred);
  if (pred) place_claim_ends(cx, k->dst, first, last, true, pred);
  unsigned flags = k->a->row->flags | k->a->hints;
  if (!pred) flags &= ~(unsigned)CPF_ZFILL;
  // Copy 256 bits by one instruction if the atom supports this, otherwise in
  // several parts.
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

// Writes to `out`, for each of the `num` 32-bit registers that hold the values
// with layout v, the register's first element.
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
        ctx_fail(cx, ERR_SHAPE, "copy: %s fills 32-bit registers with %" PRId64
                 " values each, but the fragment %s does not have these values "
                 "in one register%s\n  retile a fragment of the MMA for this "
                 "copy",
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

// Copies between tensor memory (the lanes that a warp may access) and the
// warp's registers.
static void emit_tensor(const Copy *k, Layout s, Dim so, Layout d, Dim dof) {
  Ctx *cx = k->cx;
  const AtomCopy *row = k->a->row;
  uint32_t reg[128];
  if (k->pred) no_pred(k);
  bool load = row->op == CO_TMEM_LOAD;
  const Tensor *t = load ? k->src : k->dst;
  Dim at = dim_add(cx, t->off, load ? so : dof);
  if (load) matrix_regs(k, k->dst, d, dof, reg, row->num);
  else matrix_regs(k, k->src, s, so, reg, row->num);
  Ref off = dim_asref(cx, at);
  Ref in[3] = {k->dst->mem, k->src->mem, off};
  Ref out[3] = {k->dst->mem, off, k->src->mem};
  Ins ins = {.op = load ? OP_TCLD : OP_TCST, .imm = k->a->id};
  operands_emit(cx, ir_fn(cx), ins, load ? in : out, 3, reg,
                (uint32_t)row->num);
}

// Copies rows from shared memory to tensor memory. A descriptor describes the
// rows in shared memory.
static void emit_rows(const Copy *k, Dim so, Dim dof) {
  Ctx *cx = k->cx;
  if (k->pred)
    ctx_fail(cx, ERR_ARG, "copy: %s takes no predicate: let one thread call "
             "copy inside cute.when", k->a->row->name);
  Ref x[3] = {k->dst->mem, dim_asref(cx, dim_add(cx, k->dst->off, dof)),
              gmma_beyond(cx, gmma_beyond(cx, k->src->mem, k->src->off), so)};
  bool pair = strstr(k->a->row->ptx, "cta_group::2");
  Ins ins = {.op = OP_TCCP, .imm = k->a->id, .flags = pair ? TCF_PAIR : 0};
  operands_emit(cx, ir_fn(cx), ins, x, 3, NULL, 0);
}

// Returns a tensor of one element: the element of fragment t at offset `at`.
static Tensor element_of(const Copy *k, const Tensor *t, uint32_t at) {
  Tensor e = tensor_with_layout(*t, layout_unit(k->cx));
  e.off = dim_int(k->cx, at);
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

// Exchanges words between each pair of lanes l and l ^ num, each of which has
// two words: the second word of the lower lane and the first word of the upper
// lane change places. num is a field of the atom's row.
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

// Transposes an 8x8 matrix of 16-bit values that the lanes of a warp hold.
static void emit_movm(const Copy *k, Layout s, Dim so, Layout d, Dim dof) {
  uint32_t reg[2];
  matrix_regs(k, k->dst, d, dof, reg, 1);
  matrix_regs(k, k->src, s, so, reg + 1, 1);
  Ref x[2] = {k->dst->mem, k->src->mem};
  Ins ins = {.op = OP_MATRIX, .imm = k->a->id};
  operands_emit(k->cx, ir_fn(k->cx), ins, x, 2, reg, 2);
}

static void copy_modes(Copy *k, Layout s, Dim so, Layout d, Dim dof, int top);

// Copies the values of mode V, by one instruction if possible. Otherwise emits
// one instruction for each index of the modes inside V.
static void copy_values(Copy *k, Layout s, Dim so, Layout d, Dim dof) {
  Ctx *cx = k->cx;
  int64_t ns = count(cx, s, "copy"), nd = count(cx, d, "copy");
  if (ns == k->nsrc && nd == k->ndst) {
    switch (k->a->row->op) {
      case CO_LDSM: case CO_STSM: emit_matrix(k, s, so, d, dof); break;
      case CO_SHUFFLE: emit_shuffle(k, s, so, d, dof); break;
      case CO_MOVM: emit_movm(k, s, so, d, dof); break;
      case CO_CPASYNC: emit_move(k, OP_CPASYNC, s, so, d, dof); break;
      case CO_TMEM_LOAD: case CO_TMEM_STORE:
        emit_tensor(k, s, so, d, dof);
        break;
      case CO_TMEM_CP: emit_rows(k, so, dof); break;
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
             "and %" PRId64 " of the destination, but the first modes of the "
             "tensors are %s and %s%s\n  partition both with the tiled copy "
             "(partition_S, partition_D, retile)",
             k->a->row->name, k->nsrc, k->ndst,
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
    ctx_fail(cx, ERR_SHAPE, "copy: the modes after the first must have equally "
             "many elements, not %" PRId64 " in the source and %" PRId64
             " in the destination%s", n, m, pair_text(k));
  for (int64_t i = 0; i < n; i++) {
    if (top) k->rest = i, k->atom = 0;
    copy_values(k, sv, dim_add(cx, so, at(cx, sr, i)), dv,
                dim_add(cx, dof, at(cx, dr, i)));
  }
}

// ---- an atom's requirements on its operands ----

static void check_space(const Copy *k, bool dst, Space want, const char *more) {
  const Tensor *t = dst ? k->dst : k->src;
  if (t->space == want) return;
  const char *fit =
    k->src->space == SP_GMEM && k->dst->space == SP_SMEM
      ? "SM80_CP_ASYNC_CACHEALWAYS"
    : k->src->space == SP_SMEM && k->dst->space == SP_RMEM
      ? "SM75_U32x4_LDSM_N or UniversalCopy"
    : k->src->space == SP_TMEM ? "an atom of cute.nvgpu.tcgen05.Ld32x32bOp"
    : k->dst->space == SP_TMEM ? "an atom of cute.nvgpu.tcgen05.St32x32bOp"
    : k->src->space == SP_RMEM && k->dst->space == SP_SMEM
      ? "SM90_U32x4_STSM_N or UniversalCopy" : "UniversalCopy";
  ctx_fail(k->cx, ERR_TYPE, "copy: the %s of %s must be in %s, not in %s%s"
           "\n  from %s to %s: %s%s", dst ? "destination" : "source",
           k->a->row->name, spaces[want], spaces[t->space], pair_text(k),
           spaces[k->src->space], spaces[k->dst->space], fit, more);
}

// Checks that the source and the destination are in the state spaces that the
// atom needs.
static void check_spaces(const Copy *k, Space src, Space dst) {
  bool exchanged = src != dst && k->src->space == dst && k->dst->space == src;
  const char *more = !exchanged ? "" : "\n  are the source and the destination "
    "exchanged? copy(atom, source, destination)";
  check_space(k, false, src, more);
  check_space(k, true, dst, more);
}

// Reports whether values of type a can be copied as type b without a
// conversion. An f32 can be copied as tf32, which ignores the low bits.
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

static void check_operands(Copy *k) {
  Ctx *cx = k->cx;
  const Tensor *t[2] = {k->src, k->dst};
  for (int i = 0; i < 2; i++)
    if (!tensor_in_kernel(t[i]) && t[i]->space != SP_DESC)
      ctx_fail(cx, ERR_ARG, "copy: the %s is not in the kernel's memory%s",
               i ? "destination" : "source", pair_text(k));
  check_copy_types(k);
  if (k->a->hints && k->src->space != SP_GMEM)
    ctx_fail(cx, ERR_ARG, "copy: %s applies to reads of global memory, but "
             "the source is in %s%s",
             hint_field(hint_get(k->a->hints, HINT_LEVEL2) ? HINT_LEVEL2
                                                           : HINT_PREFETCH)
               ->name, spaces[k->src->space], pair_text(k));
  switch (k->a->row->op) {
    case CO_CPASYNC:
      check_spaces(k, SP_GMEM, SP_SMEM);
      break;
    case CO_LDSM:
      check_spaces(k, SP_SMEM, SP_RMEM);
      break;
    case CO_STSM:
      check_spaces(k, SP_RMEM, SP_SMEM);
      break;
    case CO_TMEM_LOAD:
      check_spaces(k, SP_TMEM, SP_RMEM);
      break;
    case CO_TMEM_STORE:
      check_spaces(k, SP_RMEM, SP_TMEM);
      break;
    case CO_TMEM_CP:
      if (k->src->space == SP_SMEM)
        ctx_fail(cx, ERR_TYPE, "copy: %s reads shared memory through "
                 "descriptors%s\n  cute.nvgpu.tcgen05.get_s2t_smem_desc_tensor "
                 "makes them from the source's partition", k->a->row->name,
                 pair_text(k));
      check_spaces(k, SP_DESC, SP_TMEM);
      k->nsrc = 1;
      break;
    case CO_SHUFFLE: case CO_MOVM:
      check_spaces(k, SP_RMEM, SP_RMEM);
      if (k->pred) no_pred(k);
      break;
    case CO_BULK: case CO_TABLE:
      ctx_fail(cx, ERR_ARG, "copy: %s can be partitioned, but cutelua cannot "
               "execute it: %s",
               k->a->row->name, k->a->row->op == CO_BULK
               ? "bulk copies do not execute yet"
               : "Blackwell's own matrix copies do not execute yet");
    case CO_LOAD:
      check_spaces(k, SP_GMEM, SP_RMEM);
      break;
    case CO_STORE:
      check_spaces(k, SP_RMEM, SP_GMEM);
      break;
    case CO_UNIVERSAL: case CO_AUTOVEC: break;
  }
}

// Checks the predicate tensor and splits it into pred_v and pred_rest. The
// predicate tensor has the rest modes of the source. Before them, it may have a
// mode with one predicate for each atom in V.
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
  k->atoms = atoms;
  int64_t v = count(cx, k->pred_v, "copy");
  if (count(cx, k->pred_rest, "copy") == n && (v == 1 || v == atoms)) return;
  k->pred_v = layout_unit(cx);
  k->pred_rest = pred->l;
  if (count(cx, pred->l, "copy") == n) return;
  ctx_fail(cx, ERR_SHAPE, "copy: the predicate tensor %s fits neither the "
           "rest modes of the source nor (%" PRId64 " atoms,rest...)%s",
           layout_text(cx, pred->l), atoms, pair_text(k));
}

void tiled_copy_call(Ctx *cx, const CopyAtom *a, Tensor src, Tensor dst,
                     const Tensor *pred) {
  src.l = layout_indexed(cx, src.l);
  dst.l = layout_indexed(cx, dst.l);
  Copy k = {.cx = cx, .a = a, .src = &src, .dst = &dst};
  k.nsrc = count(cx, layout_mode(cx, a->src, 1), "copy");
  k.ndst = count(cx, layout_mode(cx, a->dst, 1), "copy");
  check_operands(&k);
  set_pred(&k, pred);
  if (!pred && a->row->op != CO_AUTOVEC) {
    place_claim_all(cx, &src, false);
    place_claim_all(cx, &dst, true);
  }
  Layout s = layout_inner(src.l), d = layout_inner(dst.l);
  if (a->row->op != CO_AUTOVEC) {
    copy_modes(&k, s, dim_int(cx, 0), d, dim_int(cx, 0), 1);
    return;
  }
  CopyHow how = {.max_bits = a->bits > 128 ? 128 : a->bits, .hints = a->hints,
    // an atom without CPF_PROMISED, such as DefaultCopy, does not guarantee
    // that traced offsets are aligned
    .promised = a->row->flags & CPF_PROMISED};
  if (!pred) {
    tensor_copy(cx, src, dst, NULL, how);
    return;
  }
  // Expand the predicate tensor to one predicate for each element. If it has no
  // mode V, each predicate applies to all of V.
  Layout sv, sr;
  split(cx, s, &sv, &sr);
  Layout l[2] = {k.pred_v, k.pred_rest};
  if (count(cx, k.pred_v, "copy") == 1)
    l[0] = layout_leaf(cx, layout_size(cx, sv), dim_int(cx, 0));
  Tensor p = tensor_with_layout(*pred, layout_concat(cx, l, 2));
  tensor_copy(cx, src, dst, &p, how);
}
// SPDX-License-Identifier: MIT
