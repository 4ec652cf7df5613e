// maps.c: tensor maps that are parameters, and tensor maps that a kernel builds
// or changes in memory.
#include <string.h>

#include "ptx/inside.h"

static Ref emit(PtxOp *o, Ins i, const Ref *x, uint32_t n) {
  return operands_emit(o->b->cx, o->b->fn, i, x, n, NULL, 0);
}

// Returns the parameter that is the tensor map at [a], as an index into
// PtxBuild.bound. Returns PLAIN if the tensor map is not a parameter.
static int32_t parameter_of(PtxOp *o, const PtxArg *a) {
  int32_t root = op_root(o, op_base(o, a));
  return root >= 0 && o->b->bound[root].map ? root : PLAIN;
}

static void whole(PtxOp *o, const PtxArg *a) {
  int64_t at = 0;
  Ref off = op_offset(o, op_base(o, a));
  if (ir_const(o->b->fn, off, &at) && at + a->value == 0) return;
  ptx_fail(o->b, "'%s' must address the start of the tensor map that is a "
           "parameter", o->i->op);
}

// ---- words of a parameter ----

bool maps_load(PtxOp *o, const PtxArg *a, int bits, int n, Ref *v) {
  PtxBuild *b = o->b;
  int32_t root = parameter_of(o, a);
  if (root < 0) return false;
  int64_t at;
  if (!ir_const(b->fn, op_offset(o, op_base(o, a)), &at)) {
    ptx_fail(b, "'%s' reads a tensor map at an offset that is not constant",
             o->i->op);
  }
  at += a->value;
  int64_t each = bits / 8;
  if (at < 0 || at > 128 - n * each || at % each) {
    ptx_fail(b, "'%s' reads %lld bytes from byte %lld of a tensor map, which "
             "has 128", o->i->op, (long long)(n * each), (long long)at);
  }
  for (int q = 0; q < n; q++, at += each) {
    Ref w = ir_emit(b->cx, b->fn, (Ins){.op = OP_MAPWORD, .type = DT_U64,
      .imm = at / 8, .a = {b->bound[root].mem}});
    w = op2(o, OP_SHR, w, number(o, DT_U32, at % 8 * 8));
    v[q] = to(o, unsigned_of(bits), w);
  }
  return true;
}

// ---- maps in memory ----

// Returns p with its offset counted in 64-bit words instead of bytes.
static Place words_of(PtxOp *o, Place p) {
  op_count_in(o, &p, DT_U64, 128, "a tensor map");
  return p;
}

// Returns the memory object and offset of the tensor map at [a] in state space
// `space`. The offset counts 64-bit words.
static Place map_place(PtxOp *o, const PtxArg *a, Where space) {
  return words_of(o, op_place(o, a, space));
}

typedef void Use(PtxOp *o, Place p, const Ref *v);

// Calls use(), which emits an access to the map at [a] with the values v. If
// the address is generic, calls use() in two branches: for shared and for
// global memory.
static void use_at(PtxOp *o, const PtxArg *a, Where w, Use *use,
                   const Ref *v) {
  PtxBuild *b = o->b;
  Spaces s;
  int64_t known = 0;
  if (w != ANYWHERE || !op_spaces(o, a, &s)) {
    use(o, map_place(o, a, w), v);
    return;
  }
  if (!ir_const(b->fn, s.shared, &known)) {
    ir_open(b->cx, b->fn, (Ins){.op = OP_IF, .a = {s.shared}});
    use(o, words_of(o, op_in_space(o, &s, IN_SHARED)), v);
    ir_else(b->cx, b->fn);
    use(o, words_of(o, op_in_space(o, &s, IN_GLOBAL)), v);
    ir_close(b->cx, b->fn);
  } else {
    use(o, words_of(o, op_in_space(o, &s, known ? IN_SHARED : IN_GLOBAL)), v);
  }
}

Ref ptx_map(PtxOp *o, const PtxArg *a, const TensorMap **map) {
  PtxBuild *b = o->b;
  int32_t root = parameter_of(o, a);
  if (root >= 0) {
    whole(o, a);
    *map = b->bound[root].map;
    return b->bound[root].mem;
  }
  *map = NULL;
  const PtxArg *base = op_base(o, a);
  if (base->kind != PTX_A_REG && op_root(o, base) < 0) {
    ptx_fail(b, "'%s': %s is not a tensor map", o->i->op,
             base->name ? base->name : "the address");
  }
  Place p = map_place(o, a, IN_GLOBAL);
  return ir_map_at(b->cx, b->fn, p.mem, p.off, 0);
}

// ---- instructions ----

// Translates prefetch.tensormap. A prefetch of a map in memory has no effect.
void row_prefetch(PtxOp *o, int k) {
  (void)k;
  const PtxArg *a = op_arg(o, 0);
  o->used = UINT32_MAX;
  const TensorMap *map;
  if (parameter_of(o, a) < 0) return;
  Ref x[1] = {ptx_map(o, a, &map)};
  emit(o, (Ins){.op = OP_TMAPREFETCH}, x, 1);
}

// Rejects a number of bytes that is not the size of a tensor map.
static void all_bytes(PtxOp *o, uint32_t k) { op_constant_in(o, k, 128, 128); }

static void acquire_at(PtxOp *o, Place p, const Ref *v) {
  (void)v;
  Ref x[2] = {p.mem, p.off};
  emit(o, (Ins){.op = OP_MAPACQUIRE}, x, 2);
}

// Translates fence.proxy.tensormap::generic.acquire. Rejects scopes narrower
// than .gpu, which do not order changes by other blocks.
void maps_acquire(PtxOp *o) {
  const PtxArg *a = op_arg(o, 0);
  if (!op_has(o, "gpu") && !op_has(o, "sys")) {
    op_reject(o, "its scope must be .gpu or .sys");
  }
  all_bytes(o, 1);
  if (parameter_of(o, a) < 0) use_at(o, a, ANYWHERE, acquire_at, NULL);
}

// Translates tensormap.cp_fenceproxy.
void row_publish(PtxOp *o, int k) {
  (void)k;
  static const char *const needs[] = {"global", "shared::cta",
    "tensormap::generic", "release", "sync", "aligned", NULL};
  for (const char *const *m = needs; *m; m++) {
    if (!op_has(o, *m)) op_reject(o, "a modifier is missing");
  }
  if (!op_has(o, "gpu") && !op_has(o, "sys")) {
    op_reject(o, "its scope must be .gpu or .sys");
  }
  all_bytes(o, 2);
  Place d = map_place(o, op_arg(o, 0), IN_GLOBAL);
  Place s = map_place(o, op_arg(o, 1), IN_SHARED);
  Ref x[4] = {d.mem, d.off, s.mem, s.off};
  emit(o, (Ins){.op = OP_MAPPUBLISH}, x, 4);
}

static TensorMapField field_of(PtxOp *o) {
  for (int f = 0; f < TMF_COUNT; f++) {
    if (op_has(o, tensormap_field((TensorMapField)f))) return (TensorMapField)f;
  }
  op_reject(o, "a field such as .global_dim is missing");
}

static bool has_modes(TensorMapField f) {
  return f == TMF_EXTENT || f == TMF_STRIDE || f == TMF_BOX || f == TMF_STEP;
}

// Returns the new value of field f in a tensormap.replace (operand k), as an
// i64.
static Ref replaced_by(PtxOp *o, TensorMapField f, uint32_t k) {
  static const int8_t most[TMF_COUNT] = {[TMF_RANK] = TENSORMAP_RANK - 1,
    [TMF_TYPE] = TMT_COUNT - 1, [TMF_INTERLEAVE] = 2, [TMF_SWIZZLE] = 3,
    [TMF_FILL] = 1};
  bool wide = f == TMF_ADDRESS || f == TMF_STRIDE;
  if (op_type(o, 0).kind != PTX_B || op_type(o, 0).bits != (wide ? 64 : 32)) {
    ptx_fail(o->b, "'%s': the type must be .b%d", o->i->op, wide ? 64 : 32);
  }
  if (f >= TMF_TYPE || (f == TMF_RANK && op_arg(o, k)->kind == PTX_A_INT)) {
    return number(o, DT_I64, op_constant_in(o, k, 0, most[f]));
  }
  if (wide) return op_operand(o, k, DT_I64);
  return to(o, DT_I64, op_operand(o, k, DT_U32));
}

static void set_at(PtxOp *o, Place p, const Ref *v) {
  TensorMapField f = field_of(o);
  int64_t mode = 0;
  if (has_modes(f)) {
    mode = op_constant_in(o, 1, 0, TENSORMAP_RANK - 1 - (f == TMF_STRIDE));
  }
  // The IR numbers the stride of mode i by i. PTX numbers strides from mode 1
  // on, so its stride 0 belongs to mode 1.
  if (f == TMF_STRIDE) mode++;
  Ref x[3] = {p.mem, p.off, v[0]};
  emit(o, (Ins){.op = OP_MAPSET, .flags = (uint16_t)f, .imm = mode}, x, 3);
}

// Translates tensormap.replace.
void row_replace(PtxOp *o, int k) {
  (void)k;
  if (!op_has(o, "tile") || !op_has(o, "b1024")) {
    op_reject(o, ".tile and .b1024 are needed");
  }
  TensorMapField f = field_of(o);
  uint32_t value = has_modes(f) ? 2 : 1;
  if (o->i->args != value + 1) {
    ptx_fail(o->b, "'%s' cannot have %u operands", o->i->op,
             (unsigned)o->i->args);
  }
  const PtxArg *a = op_arg(o, 0);
  if (parameter_of(o, a) >= 0) {
    op_reject(o, "a tensor map that is a parameter is read-only");
  }
  Ref v = replaced_by(o, f, value);
  use_at(o, a, op_where(o), set_at, &v);
}
// SPDX-License-Identifier: MIT
