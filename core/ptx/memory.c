// memory.c: moves, loads and stores.
#include <string.h>

#include "ptx/inside.h"

// ---- mov, cvta ----

// Translates mov.b128, which packs two registers into one, unpacks one register
// into two, or copies a register.
static void mov_wide(PtxOp *o, const PtxArg *d, const PtxArg *s) {
  Ref v[2];
  for (int q = 0; q < 2; q++) {
    v[q] = s->kind == PTX_A_VECTOR
      ? op_value(o, op_part(o, s, (uint32_t)q), DT_U64) : op_half(o, s, q);
  }
  for (int q = 0; q < 2; q++) {
    if (d->kind == PTX_A_VECTOR) op_set(o, op_part(o, d, (uint32_t)q), v[q]);
    else op_set_half(o, d, q, v[q]);
  }
}

// Returns the number of bits of each register in vector v, which a mov of type
// t packs or unpacks.
static int part_bits(PtxOp *o, PtxType t, const PtxArg *v) {
  int n = (int)v->parts;
  if (t.bits % n || t.bits / n < 8) {
    ptx_fail(o->b, "'%s' cannot have a vector of %d registers", o->i->op,
             n);
  }
  return t.bits / n;
}

void row_mov(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  const PtxArg *d = op_arg(o, 0), *s = op_arg(o, 1);
  if (t.bits == 128) {
    mov_wide(o, d, s);
    return;
  }
  if (s->kind == PTX_A_VECTOR) {  // packs: the first register is the low part
    int each = part_bits(o, t, s);
    DType wide = unsigned_of(t.bits), narrow = unsigned_of(each);
    Ref all = number(o, wide, 0);
    for (uint32_t q = 0; q < s->parts; q++) {
      Ref v = to(o, wide, op_value(o, &o->b->m->args.p[s->part + q], narrow));
      v = op2(o, OP_SHL, v, number(o, DT_U32, (int64_t)q * each));
      all = op2(o, OP_OR, all, v);
    }
    op_set(o, d, all);
    return;
  }
  if (d->kind == PTX_A_VECTOR) {
    int each = part_bits(o, t, d);
    Ref all = op_value(o, s, unsigned_of(t.bits));
    for (uint32_t q = 0; q < d->parts; q++) {
      Ref v = op2(o, OP_SHR, all, number(o, DT_U32, (int64_t)q * each));
      op_set(o, &o->b->m->args.p[d->part + q], to(o, unsigned_of(each), v));
    }
    return;
  }
  if (op_root(o, d) >= 0) {
    op_set(o, d, op_offset(o, s));
    return;
  }
  op_set(o, d, op_value(o, s, op_dtype(t)));
}

// ---- memory ----

// Returns the cache, order and scope modifiers of an access.
uint16_t op_hints(PtxOp *o) {
  unsigned flags = 0;
  for (int f = 0; f < HINT_COUNT; f++) {
    const HintField *h = hint_field((HintId)f);
    for (unsigned v = 1; v < 8; v++) {
      const char *text = h->value[v].ptx;
      if (text && text[0] == '.' && op_has(o, text + 1)) {
        flags |= v << h->shift;
      }
    }
  }
  op_has(o, "weak");
  op_has(o, "nc");
  op_has(o, "L2::cache_hint");
  return (uint16_t)flags;
}

int op_vector(PtxOp *o) {
  return op_has(o, "v2") ? 2 : op_has(o, "v4") ? 4 : op_has(o, "v8") ? 8 : 1;
}

// Returns the offset, from the start of all parameters, of byte `at` of
// parameter v. Rejects a read of `bytes` bytes there that is misaligned or
// reaches beyond v.
static uint32_t param_offset(PtxOp *o, const PtxVar *v, int64_t at,
                             int64_t bytes) {
  int64_t size = v->type.bits / 8 * v->type.lanes * v->count;
  if (at < 0 || at > size - bytes) {
    ptx_fail(o->b, "'%s' reads %lld bytes from byte %lld of parameter %s, "
             "which has %lld", o->i->op, (long long)bytes, (long long)at,
             v->name, (long long)size);
  }
  uint32_t offset = v->offset + (uint32_t)at;
  if (offset % bytes) {
    ptx_fail(o->b, "'%s' of byte %lld of parameter %s is not aligned to %lld "
             "bytes", o->i->op, (long long)at, v->name, (long long)bytes);
  }
  return offset;
}

// Writes n values of type t to the register or vector d.
static void set_vector(PtxOp *o, const PtxArg *d, PtxType t, const Ref *v,
                       uint32_t n) {
  for (uint32_t q = 0; q < n; q++) {
    const PtxArg *x = d->kind == PTX_A_VECTOR ? &o->b->m->args.p[d->part + q]
                                              : d;
    op_set_wider(o, x, as(o, op_dtype(t), v[q]), t);
  }
}

static void load_param(PtxOp *o) {
  PtxBuild *b = o->b;
  PtxType t = op_type(o, 0);
  const PtxArg *a = op_arg(o, 1), *d = op_arg(o, 0);
  const PtxArg *base = op_base(o, a);
  uint32_t n = d->kind == PTX_A_VECTOR ? d->parts : 1;
  if (n != (uint32_t)op_vector(o)) {
    ptx_fail(b, "'%s' cannot have %u registers", o->i->op, (unsigned)n);
  }
  Ref words[8];
  if (maps_load(o, a, t.bits, (int)n, words)) {
    set_vector(o, d, t, words, n);
    return;
  }
  if (base->kind != PTX_A_VAR) {
    op_reject(o, "parameters at computed addresses");
  }
  if (b->m->vars.p[base->value].space != PTX_PARAM) {
    ptx_fail(b, "'%s': a parameter's name is expected", o->i->op);
  }
  uint32_t at = param_offset(o, &b->m->vars.p[base->value], a->value,
                             (int64_t)n * t.bits / 8);
  if (d->kind == PTX_A_REG && b->slot[d->value].root >= 0) {
    op_set(o, d, number(o, DT_I64, 0));
    return;
  }
  for (uint32_t q = 0; q < n; q++) {
    words[q] = op_param(o, at + q * t.bits / 8, t.bits);
  }
  set_vector(o, d, t, words, n);
}

// Returns an array of n registers for a vector access. All vector accesses of
// the text with the same type and length share one array, which saves memory in
// the simulator. Sharing is correct because each access sets all of the
// registers before it reads them.
static Ref through(PtxOp *o, DType t, int n) {
  PtxBuild *b = o->b;
  for (int k = 0; k < 8 && b->vector[k]; k++) {
    const Mem *own = ir_memof(b->fn, b->vector[k]);
    bool same = own->type == t && own->count == n;
    if (same && ir_visible(b->fn, b->vector[k])) return b->vector[k];
  }
  Mem m = {.space = SP_RMEM, .type = t, .align = 16, .count = n};
  memmove(b->vector + 1, b->vector, 7 * sizeof *b->vector);
  return b->vector[0] = ir_mem(b->cx, b->fn, m);
}

// Returns the memory order and scope of an access. .volatile means relaxed
// order in system scope.
static uint16_t order_of(PtxOp *o) {
  unsigned flags = op_hints(o);
  if (op_has(o, "volatile")) {
    flags |= (unsigned)SEM_RELAXED << hint_field(HINT_SEM)->shift |
             (unsigned)SCOPE_SYS << hint_field(HINT_SCOPE)->shift;
  }
  return (uint16_t)flags;
}

// An access of n elements of one type. Each element is in a register, but a
// 128-bit register holds two elements.
typedef struct Access {
  const PtxArg *reg;   // a register or a vector
  int n;
  bool wide;           // whether registers have 128 bits
  PtxType type;
  DType own;
  uint16_t flags;
} Access;

static Access access_of(PtxOp *o, uint32_t k) {
  Access x = {.reg = op_arg(o, k), .n = op_vector(o), .type = op_type(o, 0)};
  x.own = op_dtype(x.type);
  x.flags = order_of(o);
  bool list = op_registers(o, x.reg, x.n);
  if (x.type.bits == 128) {
    if (list) op_reject(o, "vectors of 128 bits");
    x.n = 2;
    x.wide = true;
    x.type.bits = 64;
    x.own = DT_U64;
  }
  return x;
}

static const PtxArg *register_of(PtxOp *o, const Access *x, int q) {
  return x->n > 1 ? op_part(o, x->reg, (uint32_t)q) : x->reg;
}

static Ref behind(PtxOp *o, Ref off, int64_t bytes) {
  return op2(o, OP_ADD, off, number(o, ir_type(o->b->fn, off), bytes));
}

// Reports whether the elements of a vector are accessed together. With a memory
// order, they are accessed one by one.
static bool moves_whole(const Access *x) {
  return x->n > 1 && !hint_get(x->flags, HINT_SEM);
}

static void load_from(PtxOp *o, const Access *x, Place p, Ref v[8]) {
  PtxBuild *b = o->b;
  Ins ld = {.op = OP_LD, .type = (uint8_t)x->own, .flags = x->flags};
  if (moves_whole(x)) {
    Ref regs = through(o, x->own, x->n);
    Ref y[4] = {regs, number(o, DT_I32, 0), p.mem, p.off};
    unsigned kept = hint_mask(HINT_PREFETCH) | hint_mask(HINT_LEVEL2);
    operands_emit(b->cx, b->fn, (Ins){.op = OP_COPY,
      .imm = x->n * x->type.bits, .flags = (uint16_t)(x->flags & kept)}, y, 4,
      NULL, 0);
    p = (Place){regs, 0};
    ld.flags = 0;
  }
  for (int q = 0; q < x->n; q++) {
    ld.a[0] = p.mem;
    ld.a[1] = p.off ? behind(o, p.off, q * x->type.bits / 8)
                    : number(o, DT_I32, q);
    v[q] = ir_emit(b->cx, b->fn, ld);
  }
}

static void load_local(PtxOp *o, const Access *x, Ref off, Ref v[8]) {
  for (int q = 0; q < x->n; q++) {
    v[q] = local_load(o, x->own, behind(o, off, q * x->type.bits / 8));
  }
}

static void store_to(PtxOp *o, const Access *x, Place p, const Ref v[8]) {
  PtxBuild *b = o->b;
  Ins st = {.op = OP_ST, .flags = x->flags};
  bool whole = moves_whole(x);
  Ref regs = whole ? through(o, x->own, x->n) : p.mem;
  if (whole) st.flags = 0;
  for (int q = 0; q < x->n; q++) {
    st.a[0] = regs;
    st.a[1] = whole ? number(o, DT_I32, q)
                    : behind(o, p.off, q * x->type.bits / 8);
    st.a[2] = v[q];
    ir_emit(b->cx, b->fn, st);
  }
  if (!whole) return;
  Ref y[4] = {p.mem, p.off, regs, number(o, DT_I32, 0)};
  operands_emit(b->cx, b->fn, (Ins){.op = OP_COPY, .imm = x->n * x->type.bits},
                y, 4, NULL, 0);
}

static void store_local(PtxOp *o, const Access *x, Ref off, const Ref v[8]) {
  for (int q = 0; q < x->n; q++) {
    local_store(o, behind(o, off, q * x->type.bits / 8), v[q]);
  }
}

Place op_in_space(PtxOp *o, const Spaces *s, Where w) {
  if (w == IN_SHARED) return (Place){o->b->smem, s->in_shared};
  if (w == IN_CLUSTER) return op_cluster(o, as(o, DT_U32, s->in_shared));
  Mem m = {.type = DT_U8, .align = 1, .count = -1, .ptx = true};
  return (Place){ir_at_address(o->b->cx, o->b->fn, m, s->at),
                 number(o, DT_I64, 0)};
}

typedef void Each(PtxOp *o, const Access *x, const Spaces *s, Where w,
                  Ref *v);

// Emits a branch for each space that a generic address may be in. Considers
// only space[k] and the spaces after it. each() emits the access in the branch.
// If the space is known, emits the access without a branch.
static void each_space(PtxOp *o, const Access *x, const Spaces *s, Ref *v,
                       Each *each, int k) {
  static const Where space[] = {IN_CLUSTER, IN_SHARED, IN_LOCAL};
  PtxBuild *b = o->b;
  Ref test = k == 0 ? s->cluster : k == 1 ? s->shared : s->local;
  int64_t known;
  if (k == 3) {
    each(o, x, s, IN_GLOBAL, v);
  } else if (ir_const(b->fn, test, &known)) {
    if (known) each(o, x, s, space[k], v);
    else each_space(o, x, s, v, each, k + 1);
  } else {
    ir_open(b->cx, b->fn, (Ins){.op = OP_IF, .a = {test}});
    each(o, x, s, space[k], v);
    ir_else(b->cx, b->fn);
    each_space(o, x, s, v, each, k + 1);
    ir_close(b->cx, b->fn);
  }
}

static void load_there(PtxOp *o, const Access *x, const Spaces *s, Where w,
                       Ref *var) {
  Ref v[8];
  if (w == IN_LOCAL) load_local(o, x, s->in_local, v);
  else load_from(o, x, op_in_space(o, s, w), v);
  for (int q = 0; q < x->n; q++) {
    ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_VSET, .a = {var[q], v[q]}});
  }
}

static void store_there(PtxOp *o, const Access *x, const Spaces *s, Where w,
                        Ref *v) {
  if (w == IN_LOCAL) store_local(o, x, s->in_local, v);
  else store_to(o, x, op_in_space(o, s, w), v);
}

// Loads x->n values from an address whose state space is known only at run
// time. A branch for each space loads the values to variables, which are read
// after the branches.
static void load_anywhere(PtxOp *o, const Access *x, const Spaces *s,
                          Ref v[8]) {
  PtxBuild *b = o->b;
  Ref var[8];
  for (int q = 0; q < x->n; q++) {
    Ref zero = as(o, x->own, number(o, unsigned_of(x->type.bits), 0));
    var[q] = ir_emit(b->cx, b->fn, (Ins){.op = OP_VAR,
      .type = (uint8_t)x->own, .a = {zero}});
  }
  each_space(o, x, s, var, load_there, 0);
  for (int q = 0; q < x->n; q++) {
    v[q] = ir_emit(b->cx, b->fn, (Ins){.op = OP_VGET,
      .type = (uint8_t)x->own, .a = {var[q]}});
  }
}

// Returns the byte offset of [a] in local memory.
static Ref local_offset(PtxOp *o, const PtxArg *a) {
  const PtxBuild *b = o->b;
  const PtxArg *base = op_part(o, a, 0);
  bool narrow = base->kind == PTX_A_REG &&
    b->m->regs.p[b->f->reg + (uint32_t)base->value].type.bits == 32;
  Ref off = op_value(o, base, narrow ? DT_I32 : DT_I64);
  return to(o, DT_I32, behind(o, off, a->value));
}

void row_load(PtxOp *o, int k) {
  (void)k;
  if (op_has(o, "param") || op_has(o, "param::entry")) {
    op_vector(o);
    load_param(o);
    return;
  }
  Access x = access_of(o, 0);
  Where w = op_where(o);
  const PtxArg *a = op_arg(o, 1);
  Spaces s;
  Ref v[8];
  if (w == IN_LOCAL) load_local(o, &x, local_offset(o, a), v);
  else if (w == ANYWHERE && op_spaces(o, a, &s)) load_anywhere(o, &x, &s, v);
  else load_from(o, &x, op_place(o, a, w), v);
  for (int q = 0; q < x.n && x.wide; q++) op_set_half(o, x.reg, q, v[q]);
  for (int q = 0; q < x.n && !x.wide; q++) {
    op_set_wider(o, register_of(o, &x, q), v[q], x.type);
  }
}

void row_store(PtxOp *o, int k) {
  (void)k;
  if (op_has(o, "param")) {
    op_reject(o, "a parameter of the entry cannot be written");
  }
  Access x = access_of(o, 1);
  Where w = op_where(o);
  const PtxArg *a = op_arg(o, 0);
  Spaces s;
  Ref v[8];
  for (int q = 0; q < x.n; q++) {
    v[q] = x.wide ? op_half(o, x.reg, q)
                  : op_low(o, register_of(o, &x, q), x.type);
  }
  if (w == IN_LOCAL) store_local(o, &x, local_offset(o, a), v);
  else if (w == ANYWHERE && op_spaces(o, a, &s)) {
    each_space(o, &x, &s, v, store_there, 0);
  } else {
    store_to(o, &x, op_place(o, a, w), v);
  }
}
// SPDX-License-Identifier: MIT
