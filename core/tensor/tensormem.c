// Traced tensors in memory: shared and register allocation, single elements,
// fills.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/fold.h"
#include "tensor/preflight.h"
#include "tensor/tensor.h"

// ---- allocation ----

// Elements that values of l reach to: a swizzle moves them about within
// blocks of a power of two. below: how many come before l's origin.
static int64_t reach(Ctx *cx, Layout l, const char *what, Dim *below) {
  Layout in = layout_inner(l);
  const Swizzle *sw = layout_swizzle(l);
  if (!layout_static(l))
    ctx_fail(cx, ERR_STATIC, "%s needs a static layout, got %s", what,
             layout_text(cx, l));
  if (layout_has_basis(in) && (sw || !l.outer))
    ctx_fail(cx, ERR_ARG, "%s: %s gives coordinates, not offsets", what,
             layout_text(cx, l));
  *below = layout_below(cx, l);
  if (l.outer && !dim_is(*below, 0))
    ctx_fail(cx, ERR_ARG, "%s: %s, got %s", what,
             sw ? "a swizzle needs strides >= 0"
                : "a composed layout needs offsets >= 0", layout_text(cx, l));
  int64_t c = dim_value(layout_cosize(cx, l));
  if (sw) {
    int s = sw->s < 0 ? -sw->s : 0;
    int64_t block = (int64_t)1 << (sw->b + sw->m + s);
    c = (c + dim_value(l.offset) + block - 1) / block * block;
  }
  return c;
}

static uint32_t layout_name(Ctx *cx, Layout l) {
  const char *s = layout_text(cx, l);
  return ir_text(cx, ir_fn(cx), s, strlen(s));
}

Tensor tensor_make_smem(Ctx *cx, DType t, Layout l, int64_t align) {
  Fn *fn = ir_fn(cx);
  l = layout_linear(cx, l);
  int64_t least = layout_swizzle(l) ? 128 : 16;
  if (align == 0) align = least;
  if (align < 0 || (align & (align - 1)) || align > 1 << 20)
    ctx_fail(cx, ERR_ARG, "an alignment of %" PRId64 " bytes is not a power "
             "of two", align);
  if (align * 8 < dtype_bits(t)) align = (dtype_bits(t) + 7) / 8;
  Dim below;
  Mem m = {.space = SP_SMEM, .type = t, .align = align,
           .count = reach(cx, l, "make_smem_tensor", &below),
           .offset = (fn->smem_bytes + align - 1) / align * align,
           .layout = layout_name(cx, l)};
  int64_t bytes = preflight_bytes(&m);
  m.ref = ir_mem(cx, fn, m);
  fn->smem_bytes = m.offset + bytes;
  preflight_smem(cx, fn, 0);
  Tensor made = {.space = SP_SMEM, .type = t, .mem = m.ref, .l = l,
                 .align = align};
  return dim_is(below, 0) ? made : tensor_offset(cx, made, below);
}

enum { MAX_REGS = 4096 };  // elements of one fragment

Tensor tensor_make_rmem(Ctx *cx, DType t, Layout l) {
  l = layout_linear(cx, l);
  Dim below;
  Mem m = {.space = SP_RMEM, .type = t, .align = 16,
           .count = reach(cx, l, "make_rmem_tensor", &below)};
  if (l.outer)
    ctx_fail(cx, ERR_ARG, "a register fragment cannot be composed: %s",
             layout_text(cx, l));
  if (m.count > MAX_REGS)
    ctx_fail(cx, ERR_LIMIT, "a register fragment of %" PRId64 " elements "
             "(at most %d)\n  %s", m.count, MAX_REGS, layout_text(cx, l));
  m.layout = layout_name(cx, l);
  m.ref = ir_mem(cx, ir_fn(cx), m);
  return (Tensor){.space = SP_RMEM, .type = t, .mem = m.ref, .l = l,
                  .off = below, .align = 16};
}

// Have two modes of more than one element the same stride, not 0?
static bool strides_tie(Ctx *cx, Layout l) {
  size_t n = tup_leaves(l.shape);
  Dim *shape = NEW(cx, Dim, n);
  tup_collect(l.shape, shape);
  for (size_t i = 0; i < n; i++)
    for (size_t j = i + 1; j < n; j++)
      if (!dim_is(shape[i], 1) && !dim_is(shape[j], 1) &&
          !dim_is(l.stride[i], 0) && dim_eq(l.stride[i], l.stride[j]))
        return true;
  return false;
}

// Modes of equal strides (of a matrix of one column) would share registers
// under CuTe's order by strides; here each element has its own.
Tensor tensor_make_like(Ctx *cx, DType t, Layout l) {
  Layout f = l;
  bool coords = l.outer && layout_has_basis(l);  // no order
  if (!coords) f = layout_fragment_like(cx, l);
  if (coords || strides_tie(cx, f)) f = layout_compact(cx, l.shape);
  return tensor_make_rmem(cx, t, f);
}

int64_t tensor_count(Ctx *cx, const Tensor *t, const char *what) {
  if (!tup_static(t->l.shape))
    ctx_fail(cx, ERR_STATIC, "%s needs a static shape: it is unrolled\n  %s",
             what, tensor_show(cx, t));
  return dim_value(tup_size(cx, t->l.shape));
}

// ---- offsets ----

static Dim element(Ctx *cx, const Tensor *t, Tup coord) {
  return dim_add(cx, t->off, layout_eval(cx, t->l, coord));
}

Dim tensor_at(Ctx *cx, Tensor t, Dim i) {
  return dim_add(cx, t.off, layout_eval_at(cx, t.l, i));
}

static int64_t register_index(Ctx *cx, const Tensor *t, Dim o) {
  if (!dim_static(o))
    ctx_fail(cx, ERR_REGS, "a register fragment was indexed by a traced "
             "value\n  %s\n  registers have no addresses: unroll with a plain "
             "Lua loop (for i = 0, n - 1 do), or keep it in shared memory",
             tensor_show(cx, t));
  int64_t i = dim_value(o), n = ir_memof(ir_fn(cx), t->mem)->count;
  int from = dtype_bits(ir_memof(ir_fn(cx), t->mem)->type);
  if (from != dtype_bits(t->type)) n = n * from / dtype_bits(t->type);
  if (i < 0 || i >= n)
    ctx_fail(cx, ERR_REGS, "register %" PRId64 " of a fragment of %" PRId64
             "\n  %s", i, n, tensor_show(cx, t));
  return i;
}

static Ref offset_ref(Ctx *cx, const Tensor *t, Dim o) {
  if (t->space == SP_RMEM) register_index(cx, t, o);
  tensor_check_reach(cx, o);
  return dim_asref(cx, o);
}

// ---- single elements ----

static void need_memory(Ctx *cx, const Tensor *t, const char *what) {
  tensor_use(cx, t, UINT32_MAX);
  if (t->mem == 0)
    ctx_fail(cx, ERR_ARG, "%s: the tensor is not in the kernel's memory\n  %s",
             what, tensor_show(cx, t));
}

Ref tensor_load(Ctx *cx, Tensor t, Tup coord) {
  need_memory(cx, &t, "load");
  tensor_check_coord(cx, &t, coord);
  Ref off = offset_ref(cx, &t, element(cx, &t, coord));
  DType mt = ir_type(ir_fn(cx), t.mem);
  Ref r = ir_emit(cx, ir_fn(cx), (Ins){.op = OP_LD, .type = (uint8_t)mt,
                                    .a = {t.mem, off}});
  return mt == t.type ? r : ir_bitcast(cx, ir_fn(cx), t.type, r);
}

void tensor_store(Ctx *cx, Tensor t, Tup coord, Ref value) {
  need_memory(cx, &t, "store");
  tensor_check_coord(cx, &t, coord);
  DType vt = ir_type(ir_fn(cx), value), mt = ir_type(ir_fn(cx), t.mem);
  if (vt != t.type)
    ctx_fail(cx, ERR_TYPE, "a value of type %s stored to a tensor of %s\n"
             "  %s\n  convert it with :to(cute.%s)", dtype_name(vt),
             dtype_name(t.type), tensor_show(cx, &t), dtype_name(t.type));
  Ref off = offset_ref(cx, &t, element(cx, &t, coord));
  if (mt != vt) value = ir_bitcast(cx, ir_fn(cx), mt, value);
  ir_emit(cx, ir_fn(cx), (Ins){.op = OP_ST, .a = {t.mem, off, value}});
}

// ---- fill ----

bool tensor_dense(Ctx *cx, Layout l) {
  if (l.outer || !layout_static(l)) return false;
  Layout f = layout_flatten(cx, l);
  int64_t cur = 1, size = dim_value(layout_size(cx, f));
  size_t n = tup_leaves(f.shape);
  while (cur < size) {
    bool found = false;
    Tup s = tup_first(f.shape);
    for (size_t i = 0; i < n; i++, s = tup_next(s))
      if (dim_is(f.stride[i], cur) && !dim_is(*s, 1)) {
        cur *= dim_value(*s);
        found = true;
        break;
      }
    if (!found) return false;
  }
  return true;
}

void tensor_fill(Ctx *cx, Tensor t, Ref value) {
  need_memory(cx, &t, "fill");
  int64_t n = tensor_count(cx, &t, "fill");
  DType mt = ir_type(ir_fn(cx), t.mem);
  if (t.space == SP_RMEM && mt == t.type && tensor_dense(cx, t.l)) {
    Ref off = offset_ref(cx, &t, t.off);
    ir_emit(cx, ir_fn(cx), (Ins){.op = OP_FILL, .a = {t.mem, off, value},
                              .imm = n});
    return;
  }
  Dim i = {0};
  for (; i.w < n; i.w++) tensor_store(cx, t, &i, value);
}
