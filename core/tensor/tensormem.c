// Traced tensors in memory: allocates shared memory and registers, accesses
// single elements, and fills tensors.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/fold.h"
#include "ir/operands.h"
#include "tensor/preflight.h"
#include "tensor/place.h"

// ---- allocation ----

// Returns the number of elements of memory that layout l needs. A swizzle
// permutes elements within blocks whose size is a power of two, so the number
// is rounded up to full blocks. Sets *below to the number of elements before
// offset 0.
static int64_t reach(Ctx *cx, Layout l, const char *what, Dim *below) {
  Layout in = layout_inner(l);
  const Swizzle *sw = layout_swizzle(l);
  if (!layout_static(l))
    ctx_fail(cx, ERR_STATIC, "%s needs a static layout, got %s", what,
             layout_text(cx, l));
  if (layout_has_basis(in) && (sw || !l.outer))
    ctx_fail(cx, ERR_ARG, "%s: %s gives coordinates, not offsets", what,
             layout_text(cx, l));
  tup_need_elements(cx, what, l.shape);
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

Ref tensor_make_peer(Ctx *cx, Ref mem, Ref rank) {
  Fn *fn = ir_fn(cx);
  const Ins *i = ir_get(fn, mem);
  Mem m = *ir_memof(fn, mem);
  int own = dtype_bits(m.type), bits = dtype_bits((DType)i->type);
  m.space = SP_DSMEM;
  m.name = m.layout = 0;
  // the new object counts elements of the view's type
  m.count = m.count * own / bits;
  m.type = (DType)i->type;
  return ir_mem_of(cx, fn, m, mem, rank);
}

enum { MAX_REGS = 4096 };  // maximum number of elements of a fragment

Tensor tensor_make_rmem(Ctx *cx, DType t, Layout l) {
  l = layout_linear(cx, l);
  Dim below;
  Mem m = {.space = SP_RMEM, .type = t, .align = 16,
           .count = reach(cx, l, "make_rmem_tensor", &below)};
  if (l.outer)
    ctx_fail(cx, ERR_ARG, "a register fragment cannot have the composed "
             "layout %s", layout_text(cx, l));
  if (m.count > MAX_REGS)
    ctx_fail(cx, ERR_LIMIT, "a register fragment of %" PRId64 " elements "
             "is too large: at most %d\n  %s", m.count, MAX_REGS,
             layout_text(cx, l));
  m.layout = layout_name(cx, l);
  m.ref = ir_mem(cx, ir_fn(cx), m);
  return (Tensor){.space = SP_RMEM, .type = t, .mem = m.ref, .l = l,
                  .off = below, .align = 16};
}

// Reports whether two modes of l, each with more than one element, have the
// same nonzero stride.
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

// Returns a register fragment with one register for each element. CuTe orders
// the modes of a fragment by their strides. Modes with equal strides (as in a
// matrix of one column) would then share registers. Such a layout therefore
// gets a compact fragment.
Tensor tensor_make_like(Ctx *cx, DType t, Layout l) {
  Layout f = l;
  // basis strides have no order, so the fragment is compact
  bool coords = l.outer && layout_has_basis(l);
  if (!coords) f = layout_fragment_like(cx, l);
  if (coords || strides_tie(cx, f)) f = layout_compact(cx, l.shape);
  return tensor_make_rmem(cx, t, f);
}

int64_t tensor_count(Ctx *cx, const Tensor *t, const char *what) {
  if (!tup_static(t->l.shape))
    ctx_fail(cx, ERR_STATIC, "%s needs a static shape, because it is "
             "unrolled\n  %s", what, tensor_show(cx, t));
  return dim_value(tup_size(cx, t->l.shape));
}

// ---- offsets ----

static Dim element(Ctx *cx, const Tensor *t, Tup coord) {
  return dim_add(cx, t->off, layout_eval(cx, t->l, coord));
}

Dim tensor_at(Ctx *cx, Tensor t, Dim i) {
  return dim_add(cx, t.off, layout_eval_at(cx, t.l, i));
}

static int64_t register_count(Ctx *cx, const Tensor *t) {
  const Mem *m = ir_memof(ir_fn(cx), t->mem);
  int own = dtype_bits(m->type), bits = dtype_bits(t->type);
  return own == bits ? m->count : m->count * own / bits;
}

static int64_t register_index(Ctx *cx, const Tensor *t, Dim o) {
  if (!dim_static(o))
    ctx_fail(cx, ERR_REGS, "a register fragment was indexed by a traced "
             "value\n  %s\n  registers have no addresses: unroll with a plain "
             "Lua loop (for i = 0, n - 1 do), or keep it in shared memory",
             tensor_show(cx, t));
  int64_t i = dim_value(o), n = register_count(cx, t);
  if (i < 0 || i >= n)
    ctx_fail(cx, ERR_REGS, "register %" PRId64 " is outside of a fragment of %"
             PRId64 "\n  %s", i, n, tensor_show(cx, t));
  return i;
}

static Ref offset_ref(Ctx *cx, const Tensor *t, Dim o) {
  if (t->space == SP_RMEM) register_index(cx, t, o);
  tensor_check_reach(cx, o);
  return dim_asref(cx, o);
}

// ---- registers at a traced index ----

// The registers among which a traced coordinate of a fragment selects. There
// are n registers of `mem`, beginning with register `first`, and each is `step`
// registers after the previous one. The run-time index `at` (0 to n - 1)
// selects one of them.
typedef struct Span {
  Ref mem;
  int64_t first, n, step;
  Dim at;
} Span;

// Appends coord to b, with `_` in place of each traced entry.
static void put_open(Ctx *cx, TupB *b, Tup coord) {
  if (tup_is_leaf(coord)) {
    tupb_leaf(cx, b, dim_static(*coord) ? *coord : dim_any());
    return;
  }
  tupb_open(cx, b);
  Tup c = tup_first(coord);
  for (int n = tup_rank(coord); n-- > 0; c = tup_next(c)) put_open(cx, b, c);
  tupb_close(cx, b);
}

static Span span_of(Ctx *cx, const Tensor *t, Tup coord) {
  Span s = {.mem = t->mem, .n = register_count(cx, t), .step = 1,
            .at = element(cx, t, coord)};
  TupB b = {0};
  Dim base;
  put_open(cx, &b, coord);
  Layout l = layout_slice(cx, t->l, tupb_done(cx, &b), &base);
  base = dim_add(cx, t->off, base);
  // If the first register depends on a traced value, the index may select any
  // register of the fragment.
  if (!dim_static(base)) return s;
  s.first = dim_value(base) - dim_value(layout_below(cx, l));
  s.n = dim_value(layout_cosize(cx, l));
  register_index(cx, t, dim_int(cx, s.first));
  register_index(cx, t, dim_int(cx, s.first + s.n - 1));
  s.at = dim_sub(cx, s.at, dim_int(cx, s.first));
  l = layout_coalesce(cx, l);
  if (tup_is_leaf(l.shape) && dim_value(*l.stride) > 1) {
    s.step = dim_value(*l.stride);
    s.n = dim_value(*l.shape);
    s.at = dim_quo(cx, s.at, dim_int(cx, s.step));
  }
  return s;
}

static Ref register_load(Ctx *cx, Ref mem, int64_t at) {
  Ref off = ir_int(cx, ir_fn(cx), DT_I32, at);
  return ir_emit(cx, ir_fn(cx), (Ins){.op = OP_LD, .a = {mem, off},
                              .type = (uint8_t)ir_type(ir_fn(cx), mem)});
}

static void register_store(Ctx *cx, Ref mem, int64_t at, Ref value) {
  Ref off = ir_int(cx, ir_fn(cx), DT_I32, at);
  ir_emit(cx, ir_fn(cx), (Ins){.op = OP_ST, .a = {mem, off, value}});
}

// Returns a span of adjacent registers that contains the registers of s. If s
// has few registers that are not adjacent, copies them to a new fragment. If s
// has many, includes the registers between them in the span.
static Span gathered(Ctx *cx, const Tensor *t, Span s) {
  if (s.step == 1) return s;
  if (s.n > PICK_SELECTS) {
    s.at = dim_mul(cx, s.at, dim_int(cx, s.step));
    s.n = (s.n - 1) * s.step + 1;
    s.step = 1;
    return s;
  }
  DType type = ir_type(ir_fn(cx), t->mem);
  Layout l = layout_leaf(cx, dim_int(cx, s.n), dim_int(cx, 1));
  Span g = {.mem = tensor_make_rmem(cx, type, l).mem, .n = s.n, .step = 1,
            .at = s.at};
  for (int64_t k = 0; k < s.n; k++)
    register_store(cx, g.mem, k,
                   register_load(cx, s.mem, s.first + k * s.step));
  return g;
}

static Ref choose(Ctx *cx, const Span *s, Ref value) {
  Fn *fn = ir_fn(cx);
  Ref at = ir_cvt(cx, fn, DT_I32, dim_asref(cx, s->at));
  Ref x[4] = {s->mem, ir_int(cx, fn, DT_I32, s->first), value ? value : at,
              at};
  Ins i = {.op = value ? OP_PUT : OP_PICK, .imm = s->n};
  if (!value) i.type = (uint8_t)ir_type(fn, s->mem);
  return operands_emit(cx, fn, i, x, value ? 4 : 3, NULL, 0);
}

static bool traced_register(Ctx *cx, const Tensor *t, Tup coord) {
  return t->space == SP_RMEM && !dim_static(element(cx, t, coord));
}

static Ref pick_register(Ctx *cx, const Tensor *t, Tup coord) {
  Span s = gathered(cx, t, span_of(cx, t, coord));
  return choose(cx, &s, 0);
}

static void put_register(Ctx *cx, const Tensor *t, Tup coord, Ref value) {
  Span s = span_of(cx, t, coord), g = gathered(cx, t, s);
  choose(cx, &g, value);
  for (int64_t k = 0; g.mem != s.mem && k < s.n; k++)
    register_store(cx, s.mem, s.first + k * s.step,
                   register_load(cx, g.mem, k));
}

// ---- single elements ----

static void need_memory(Ctx *cx, const Tensor *t, const char *what) {
  tensor_use(cx, t, UINT32_MAX);
  if (!tensor_in_kernel(t))
    ctx_fail(cx, ERR_ARG, "%s: the tensor is not in the kernel's memory\n  %s",
             what, tensor_show(cx, t));
}

Tensor tensor_undefined_ok(Ctx *cx, Tensor t) {
  need_memory(cx, &t, "undefined_ok");
  Fn *fn = ir_fn(cx);
  fn->mem.p[ir_get(fn, t.mem)->imm].undefined_ok = true;
  return t;
}

Tensor tensor_nonfinite_ok(Ctx *cx, Tensor t) {
  need_memory(cx, &t, "nonfinite_ok");
  Fn *fn = ir_fn(cx);
  fn->mem.p[ir_get(fn, t.mem)->imm].nonfinite_ok = true;
  return t;
}

Tensor tensor_partial_ok(Ctx *cx, Tensor t) {
  need_memory(cx, &t, "partial_ok");
  Fn *fn = ir_fn(cx);
  fn->mem.p[ir_get(fn, t.mem)->imm].partial_ok = true;
  return t;
}

Ref tensor_load(Ctx *cx, Tensor t, Tup coord) {
  need_memory(cx, &t, "load");
  tensor_check_coord(cx, &t, coord);
  DType mt = ir_type(ir_fn(cx), t.mem);
  Ref r;
  if (traced_register(cx, &t, coord)) {
    r = pick_register(cx, &t, coord);
  } else {
    Ref off = offset_ref(cx, &t, element(cx, &t, coord));
    tensor_claim(cx, &t, coord, false);
    r = ir_emit(cx, ir_fn(cx), (Ins){.op = OP_LD, .type = (uint8_t)mt,
                                     .a = {t.mem, off}});
  }
  return mt == t.type ? r : ir_bitcast(cx, ir_fn(cx), t.type, r);
}

void tensor_store(Ctx *cx, Tensor t, Tup coord, Ref value) {
  need_memory(cx, &t, "store");
  tensor_check_coord(cx, &t, coord);
  DType vt = ir_type(ir_fn(cx), value), mt = ir_type(ir_fn(cx), t.mem);
  if (vt != t.type)
    ctx_fail(cx, ERR_TYPE, "a value of type %s cannot be stored to a tensor of "
             "%s\n  %s\n  convert it with :to(cute.%s)", dtype_name(vt),
             dtype_name(t.type), tensor_show(cx, &t), dtype_name(t.type));
  if (mt != vt) value = ir_bitcast(cx, ir_fn(cx), mt, value);
  if (traced_register(cx, &t, coord)) {
    put_register(cx, &t, coord, value);
    return;
  }
  Ref off = offset_ref(cx, &t, element(cx, &t, coord));
  tensor_claim(cx, &t, coord, true);
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
  if (t.space == SP_RMEM && mt == t.type && dim_static(t.off) &&
      tensor_dense(cx, t.l)) {
    Ref off = offset_ref(cx, &t, t.off);
    ir_emit(cx, ir_fn(cx), (Ins){.op = OP_FILL, .a = {t.mem, off, value},
                              .imm = n});
    return;
  }
  Dim i = {0};
  for (; i.w < n; i.w++) tensor_store(cx, t, &i, value);
}
// SPDX-License-Identifier: MIT
