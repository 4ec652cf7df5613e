// ops.c: operands of PTX instructions as values of the IR, by the typing rules
// of the PTX ISA ("Operand Size Exceeding Instruction-Type Size").
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/intrin.h"
#include "ptx/inside.h"

void ptx_fail(const PtxBuild *b, const char *fmt, ...) {
  char text[600];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  const char *place = b->at ? ptx_place(b->cx, b->m, b->at->loc) : NULL;
  ctx_fail(b->cx, ERR_PTX, "line %u: %s%s%s%s",
           (unsigned)(b->at ? b->at->line : b->f->line), text,
           place ? " (" : "", place ? place : "", place ? ")" : "");
}

// Returns the index into PtxBuild.bound of the memory of module variable `var`,
// or PLAIN if the launch passes none.
static int32_t bound_variable(const PtxBuild *b, int64_t var) {
  for (size_t k = 0; k < b->nbound; k++) {
    if (b->bound[k].var == var + 1) return (int32_t)k;
  }
  return PLAIN;
}

// Returns the index into PtxBuild.bound of the pointer that is stored at byte
// `offset` of the parameters, or PLAIN if there is none.
int32_t ptx_bound_pointer(const PtxBuild *b, int64_t offset) {
  for (size_t k = 0; k < b->nbound; k++) {
    const PtxBound *p = &b->bound[k];
    if (p->mem && !p->var && p->offset == offset) return (int32_t)k;
  }
  return PLAIN;
}

int32_t ptx_root(const PtxBuild *b, const PtxArg *a) {
  if (a->kind == PTX_A_REG) return b->slot[a->value].root;
  if (a->kind == PTX_A_VAR) {
    const PtxVar *v = &b->m->vars.p[a->value];
    // The address of a parameter counts as a pointer into the parameter only if
    // the parameter is a tensor map.
    if (v->space == PTX_PARAM) {
      int32_t k = ptx_bound_pointer(b, v->offset);
      return k >= 0 && b->bound[k].map ? k : PLAIN;
    }
    if (v->space == PTX_GLOBAL || v->space == PTX_CONST) {
      return bound_variable(b, a->value);
    }
  }
  return PLAIN;
}

// Returns v truncated to the width of type t, as a number of type t.
static int64_t fitting(DType t, int64_t v) {
  int bits = dtype_bits(t);
  if (t == DT_BOOL) return v != 0;
  if (bits >= 64) return v;
  if (dtype_class(t) == 'U') return v & (int64_t)((1ull << bits) - 1);
  return (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
}

bool op_has(PtxOp *o, const char *mod) {
  for (int k = 0; k < o->n; k++) {
    if (strcmp(o->mod[k], mod)) continue;
    o->used |= 1u << k;
    return true;
  }
  return false;
}

Ref op_as(PtxOp *o, DType t, Ref a) {
  PtxBuild *b = o->b;
  int64_t v;
  if (ir_type(b->fn, a) == t) return a;
  const Ins *i = ir_get(b->fn, a);
  if (i->op == OP_BITCAST) {  // Two bitcasts in a row become one.
    a = i->a[0];
    if (ir_type(b->fn, a) == t) return a;
  }
  if (dtype_is_int(t) && dtype_is_int(ir_type(b->fn, a)) &&
      ir_const(b->fn, a, &v)) {
    return ir_int(b->cx, b->fn, t, fitting(t, v));
  }
  return ir_bitcast(b->cx, b->fn, t, a);
}

PtxType op_type(PtxOp *o, int k) {
  if (k >= o->types) ptx_fail(o->b, "'%s' has no type", o->i->op);
  return o->type[k];
}

DType op_dtype(PtxType t) {
  switch ((PtxKind)t.kind) {
  case PTX_P: return DT_BOOL;
  case PTX_S:
    return t.bits == 8 ? DT_I8 : t.bits == 16 ? DT_I16 : t.bits == 32 ? DT_I32
                                                                      : DT_I64;
  case PTX_F: return t.bits == 16 ? DT_U16 : t.bits == 32 ? DT_F32 : DT_F64;
  case PTX_B: case PTX_U: case PTX_OTHER: break;
  }
  return t.bits == 8 ? DT_U8 : t.bits == 16 ? DT_U16 : t.bits == 32 ? DT_U32
         : t.bits == 64 ? DT_U64 : DT_U128;
}

const PtxArg *op_arg(PtxOp *o, uint32_t k) {
  if (k >= o->i->args) {
    ptx_fail(o->b, "'%s' cannot have %u operands", o->i->op,
             (unsigned)o->i->args);
  }
  return &o->arg[k];
}

void op_await(PtxOp *o, const PtxSlot *s) {
  PtxBuild *b = o->b;
  if (!s->loaded || !b->load || !(b->flags & PTX_LOADS_ORDERED)) return;
  bool known = b->waited > b->load && ir_visible(b->fn, b->waited);
  if (known) return;
  b->waited = ir_emit(b->cx, b->fn, (Ins){.op = OP_TCWAITLD,
                                          .flags = TCF_UNALIGNED});
}

// Returns the value of a register in the register's type. For a pointer, this
// is its byte offset from the start of its parameter's memory.
static Ref read_register(PtxOp *o, uint32_t reg) {
  PtxBuild *b = o->b;
  PtxSlot *s = &b->slot[reg];
  if (s->home >= 0) {
    op_await(o, s);
    DType t = op_dtype(b->m->regs.p[b->f->reg + reg].type);
    return ir_emit(b->cx, b->fn, (Ins){.op = OP_LD, .type = (uint8_t)t,
      .a = {op_view(o, b->pool[s->pool].mem, t),
            ir_int(b->cx, b->fn, DT_I32, s->home)}});
  }
  if (!s->variable) return s->now;
  DType t = ir_type(b->fn, s->var);
  return ir_emit(b->cx, b->fn, (Ins){.op = OP_VGET, .type = (uint8_t)t,
                                     .a = {s->var}});
}

static Ref special(PtxOp *o, const char *name) {
  PtxBuild *b = o->b;
  if (strcmp(name, "WARP_SZ") == 0) return ir_int(b->cx, b->fn, DT_I32, 32);
  static const struct { const char *name; IntrinId id; } rows[] = {
    {"%lanemask_eq", IN_LMEQ}, {"%lanemask_le", IN_LMLE},
    {"%lanemask_lt", IN_LMLT}, {"%lanemask_ge", IN_LMGE},
    {"%lanemask_gt", IN_LMGT}, {"%nsmid", IN_NSMID}, {"%nwarpid", IN_NWARPID},
    {"%gridid", IN_GRIDID}, {"%dynamic_smem_size", IN_DYNSMEM},
    {"%total_smem_size", IN_TOTSMEM}, {"%aggr_smem_size", IN_AGGSMEM},
    {"%warpid", IN_WARPID}, {"%clock", IN_CLOCK}, {"%clock64", IN_CLOCK64},
    {"%globaltimer", IN_TIMER}, {"%globaltimer_lo", IN_TIMERLO}};
  Ref none[3] = {0, 0, 0};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (strcmp(name, rows[k].name)) continue;
    return intrin_emit(b->cx, b->fn, rows[k].id, 0, none);
  }
  static const struct { const char *name; int at; } reserved[] = {
    {"%reserved_smem_offset_begin", 0}, {"%reserved_smem_offset_0", 0},
    {"%reserved_smem_offset_1", RESERVED_BYTES / 2},
    {"%reserved_smem_offset_cap", RESERVED_BYTES},
    {"%reserved_smem_offset_end", RESERVED_BYTES}};
  for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++) {
    if (strcmp(name, reserved[k].name)) continue;
    return number(o, DT_U32, b->reserved + reserved[k].at);
  }
  SReg r = sreg_find(name + 1);
  if (r != SR_COUNT && r != SR_WARP) return ir_sreg(b->cx, b->fn, r);
  ptx_fail(b, "special register %s is not modelled", name);
}

// Returns the address of byte `off` in the memory to which parameter `root`
// points.
static Ref address_of(PtxOp *o, int32_t root, Ref off) {
  PtxBuild *b = o->b;
  if (!b->object[root]) {
    ptx_fail(b, "'%s': the address of a tensor map is used as a number",
             o->i->op);
  }
  Ref base = ir_emit(b->cx, b->fn, (Ins){.op = OP_ADDRESS, .type = DT_I64,
                                         .a = {b->object[root]}});
  return op2(o, OP_ADD, base, off);
}

// Returns a float's bits as a value of type t, which has 32 or 64 bits.
static Ref float_constant(PtxOp *o, const PtxArg *a, DType t) {
  Ctx *cx = o->b->cx;
  Fn *fn = o->b->fn;
  uint64_t u = (uint64_t)a->value;
  if (dtype_bits(t) == 64) {
    double v = a->bits == 32 ? (double)bits_float((uint32_t)u)
                             : bits_double(u);
    bool number = (double_bits(v) & INT64_MAX) < (uint64_t)0x7ff << 52;
    if (t == DT_F64 && number) return ir_float(cx, fn, t, v);
    return op_as(o, t, ir_int(cx, fn, DT_U64, (int64_t)double_bits(v)));
  }
  uint32_t w = a->bits == 32 ? (uint32_t)u
               : float_bits((float)bits_double(u));
  if (t == DT_F32 && (w & 0x7fffffff) < 0x7f800000) {
    return ir_float(cx, fn, t, (double)bits_float(w));
  }
  return op_as(o, t, ir_int(cx, fn, DT_U32, w));
}

// Rejects a name that is neither a register nor a variable.
_Noreturn static void unknown_name(PtxOp *o, const PtxArg *a) {
  const PtxBuild *b = o->b;
  for (size_t k = 0; k < b->m->funcs.n; k++) {
    if (strcmp(b->m->funcs.p[k].name, a->name)) continue;
    ptx_fail(b,
             "'%s' takes the address of %s, but only a .func with a body has "
             "one", o->i->op, a->name);
  }
  ptx_fail(b, "'%s': %s is not declared here", o->i->op, a->name);
}

Ref op_value(PtxOp *o, const PtxArg *a, DType t) {
  PtxBuild *b = o->b;
  Ctx *cx = b->cx;
  Fn *fn = b->fn;
  int bits = dtype_bits(t);
  switch ((PtxArgKind)a->kind) {
  case PTX_A_INT:
    if (!dtype_is_float(t)) {
      return ir_int(cx, fn, t, fitting(t, a->value));
    }
    return op_as(o, t, ir_int(cx, fn, bits == 64 ? DT_I64 : DT_I32,
                              a->value));
  case PTX_A_FLOAT:
    if (bits >= 32) return float_constant(o, a, t);
    break;
  case PTX_A_SPECIAL: {
    Ref r = special(o, a->name);
    if (dtype_bits(ir_type(fn, r)) != bits) return ir_cvt(cx, fn, t, r);
    return op_as(o, t, r);
  }
  case PTX_A_VAR:
    if (b->m->vars.p[a->value].space == PTX_SHARED) {
      return ir_int(cx, fn, t, b->shared[a->value]);
    }
    if (b->m->vars.p[a->value].space == PTX_LOCAL) {
      return ir_int(cx, fn, t, b->local_at[a->value]);
    }
    if (op_root(o, a) >= 0 && b->object[op_root(o, a)]) {
      return op_as(o, t, address_of(o, op_root(o, a),
                                    ir_int(cx, fn, DT_I64, 0)));
    }
    ptx_fail(b, "'%s': the address of %s is not modelled here", o->i->op,
             a->name);
  case PTX_A_REG: {
    Ref r = read_register(o, (uint32_t)a->value);
    int32_t root = b->slot[a->value].root;
    if (root >= 0) r = address_of(o, root, r);
    DType own = ir_type(fn, r);
    if (own == DT_BOOL && t != DT_BOOL) {
      ptx_fail(b, "'%s': operand %s is a predicate", o->i->op, a->name);
    }
    if (dtype_bits(own) != bits) {
      ptx_fail(b, "'%s': operand %s must have the instruction's %d bits, "
               "not %d", o->i->op, a->name, bits, dtype_bits(own));
    }
    return op_as(o, t, r);
  }
  case PTX_A_FUNC:
    unknown_name(o, a);
  case PTX_A_LABEL: case PTX_A_SINK: case PTX_A_ADDRESS:
  case PTX_A_VECTOR: case PTX_A_LIST: case PTX_A_PAIR:
    break;
  }
  ptx_fail(b, "'%s': an operand of this kind is not modelled", o->i->op);
}

Ref op_operand(PtxOp *o, uint32_t k, DType t) {
  return op_value(o, op_arg(o, k), t);
}

Ref op_pred(PtxOp *o, const PtxArg *a) {
  Ref p = op_value(o, a, DT_BOOL);
  return a->negated ? ir_op1(o->b->cx, o->b->fn, OP_NOT, p) : p;
}

int64_t op_constant(PtxOp *o, uint32_t k) {
  const PtxArg *a = op_arg(o, k);
  int64_t v = a->value;
  if (a->kind == PTX_A_REG) {
    Ref r = read_register(o, (uint32_t)a->value);
    if (ir_const(o->b->fn, r, &v)) return v;
  } else if (a->kind == PTX_A_INT) {
    return v;
  }
  ptx_fail(o->b, "'%s': operand %u must be a constant", o->i->op,
           (unsigned)k + 1);
}

int64_t op_constant_in(PtxOp *o, uint32_t k, int64_t least, int64_t most) {
  int64_t v = op_constant(o, k);
  if (v < least || v > most) {
    ptx_fail(o->b, "'%s': operand %u must be %lld to %lld, not %lld",
             o->i->op, (unsigned)k + 1, (long long)least, (long long)most,
             (long long)v);
  }
  return v;
}

void op_set(PtxOp *o, const PtxArg *a, Ref v) {
  PtxBuild *b = o->b;
  if (a->kind == PTX_A_SINK) return;
  if (a->kind == PTX_A_FUNC) unknown_name(o, a);
  if (a->kind != PTX_A_REG) {
    ptx_fail(b, "'%s': the result must be a register", o->i->op);
  }
  PtxSlot *s = &b->slot[a->value];
  PtxType own = b->m->regs.p[b->f->reg + (uint32_t)a->value].type;
  DType t = s->root >= 0 ? DT_I64 : op_dtype(own);
  DType is = ir_type(b->fn, v);
  if (is != t) {
    if (dtype_bits(is) != dtype_bits(t)) {
      ptx_fail(b, "'%s': result register %s must have %d bits, not %d",
               o->i->op, a->name, dtype_bits(is), dtype_bits(t));
    }
    v = op_as(o, t, v);
  }
  if (s->home >= 0) {
    op_await(o, s);
    ir_emit(b->cx, b->fn, (Ins){.op = OP_ST,
      .a = {op_view(o, b->pool[s->pool].mem, t),
            ir_int(b->cx, b->fn, DT_I32, s->home), v}});
  } else if (s->variable) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_VSET, .a = {s->var, v}});
  } else {
    s->now = v;
    ir_name(b->cx, b->fn, v, a->name);
  }
}

// Returns the group (PtxPool) that holds register a. Stores the index of the
// register in this group in *at.
static const PtxPool *op_home(PtxOp *o, const PtxArg *a, uint32_t *at) {
  PtxBuild *b = o->b;
  if (a->kind != PTX_A_REG || b->slot[a->value].home < 0) {
    ptx_fail(b, "'%s': a register is expected", o->i->op);
  }
  const PtxSlot *s = &b->slot[a->value];
  op_await(o, s);
  *at = (uint32_t)s->home;
  return &b->pool[s->pool];
}

void op_result(PtxOp *o, Ref v) { op_set(o, op_arg(o, 0), v); }

// ---- wider registers, vectors ----

void op_set_wider(PtxOp *o, const PtxArg *a, Ref v, PtxType t) {
  if (a->kind == PTX_A_REG) {
    const PtxBuild *b = o->b;
    PtxType own = b->m->regs.p[b->f->reg + (uint32_t)a->value].type;
    if (own.bits > t.bits && own.kind != PTX_P) {
      v = as(o, t.kind == PTX_S ? signed_of(t.bits) : unsigned_of(t.bits), v);
      v = to(o, t.kind == PTX_S ? signed_of(own.bits) : unsigned_of(own.bits),
             v);
    }
  }
  op_set(o, a, v);
}

Ref op_low(PtxOp *o, const PtxArg *a, PtxType t) {
  DType want = op_dtype(t);
  if (a->kind == PTX_A_REG) {
    const PtxBuild *b = o->b;
    PtxType own = b->m->regs.p[b->f->reg + (uint32_t)a->value].type;
    if (own.bits > t.bits && own.kind != PTX_P) {
      Ref v = op_value(o, a, unsigned_of(own.bits));
      return as(o, want, to(o, unsigned_of(t.bits), v));
    }
  }
  return op_value(o, a, want);
}

// Returns the memory object of a 128-bit register. Stores in *at the index of
// half q of the register, a 64-bit element.
static Ref half_of(PtxOp *o, const PtxArg *a, int q, Ref *at) {
  uint32_t home;
  const PtxPool *pool = op_home(o, a, &home);
  *at = number(o, DT_I32, 2 * (int64_t)home + q);
  return pool->mem;
}

Ref op_half(PtxOp *o, const PtxArg *a, int q) {
  Ref at, mem = half_of(o, a, q, &at);
  return ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_LD, .type = DT_U64,
                                           .a = {mem, at}});
}

void op_set_half(PtxOp *o, const PtxArg *a, int q, Ref v) {
  if (a->kind == PTX_A_SINK) return;
  Ref at, mem = half_of(o, a, q, &at);
  ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_ST, .a = {mem, at, v}});
}

const PtxArg *op_part(PtxOp *o, const PtxArg *a, uint32_t k) {
  if (k >= a->parts) {
    ptx_fail(o->b, "'%s': an operand has %u registers; more are needed",
             o->i->op, (unsigned)a->parts);
  }
  return &o->b->m->args.p[a->part + k];
}

bool op_registers(PtxOp *o, const PtxArg *a, int n) {
  bool list = a->kind == PTX_A_VECTOR;
  if (list != (n > 1) || (list && a->parts != (uint32_t)n)) {
    ptx_fail(o->b, "'%s' cannot have %u registers", o->i->op,
             (unsigned)(list ? a->parts : 1));
  }
  return list;
}

// ---- pointers ----

// Returns the parameter into whose memory operand a points. op_offset returns
// the byte offset from the start of this memory.
int32_t op_root(PtxOp *o, const PtxArg *a) { return ptx_root(o->b, a); }

Ref op_offset(PtxOp *o, const PtxArg *a) {
  if (a->kind == PTX_A_VAR && (op_root(o, a) >= 0 ||
      o->b->m->vars.p[a->value].space == PTX_PARAM)) {
    // The offset 0 is the first byte of the variable.
    return ir_int(o->b->cx, o->b->fn, DT_I64, 0);
  }
  int32_t root = op_root(o, a);
  if (root >= 0 && o->b->bound[root].map && !o->b->slot[a->value].inside) {
    return ir_int(o->b->cx, o->b->fn, DT_I64, 0);
  }
  if (root >= 0) return read_register(o, (uint32_t)a->value);
  return op_value(o, a, DT_I64);
}

Ref op_intrin(PtxOp *o, IntrinId id, int64_t imm, Ref a, Ref b, Ref c) {
  Ref x[3] = {a, b, c};
  for (int k = 0; k < intrin_arity(id); k++) {
    x[k] = as(o, intrin_operand(id, k), x[k]);
  }
  return intrin_emit(o->b->cx, o->b->fn, id, imm, x);
}

// ---- memory ----

Where op_where(PtxOp *o) {
  if (op_has(o, "shared") || op_has(o, "shared::cta")) return IN_SHARED;
  if (op_has(o, "shared::cluster")) return IN_CLUSTER;
  if (op_has(o, "local")) return IN_LOCAL;
  if (op_has(o, "const")) return IN_GLOBAL;
  return op_has(o, "global") ? IN_GLOBAL : ANYWHERE;
}

Place op_cluster(PtxOp *o, Ref at) {
  PtxBuild *b = o->b;
  Ref top = op2(o, OP_SHR, at, number(o, DT_U32, RANK_BIT));
  Ref off = op2(o, OP_AND, at, number(o, DT_U32, (1 << RANK_BIT) - 1));
  Ref own = ir_sreg(b->cx, b->fn, SR_CLUSTER_CTARANK);
  Ref rank = op2(o, OP_SUB, as(o, DT_I32, top), number(o, DT_I32, 1));
  Ref mine = op2(o, OP_EQ, top, number(o, DT_U32, 0));
  rank = op3(o, OP_SEL, mine, own, rank);
  Mem m = *ir_memof(b->fn, b->smem);
  m.space = SP_DSMEM;
  m.name = m.layout = 0;
  return (Place){ir_mem_of(b->cx, b->fn, m, b->smem, rank),
                 as(o, DT_I32, off)};
}

const PtxArg *op_base(PtxOp *o, const PtxArg *a) {
  if (a->kind != PTX_A_ADDRESS) {
    ptx_fail(o->b, "'%s': an address in brackets is expected", o->i->op);
  }
  return &o->b->m->args.p[a->part];
}

// Rejects a variable whose state space differs from the space of the access.
static void check_space(PtxOp *o, const PtxArg *base, Where space) {
  static const char *const names[] = {[PTX_REG] = ".reg",
    [PTX_PARAM] = ".param", [PTX_SHARED] = ".shared", [PTX_GLOBAL] = ".global",
    [PTX_CONST] = ".const", [PTX_LOCAL] = ".local"};
  if (base->kind != PTX_A_VAR) return;
  uint8_t own = o->b->m->vars.p[base->value].space;
  bool shared = space == IN_SHARED || space == IN_CLUSTER;
  bool fits = shared ? own == PTX_SHARED : own == PTX_GLOBAL ||
                                           own == PTX_CONST;
  if (fits) return;
  ptx_fail(o->b, "'%s': %s is in %s, which the instruction does not access",
           o->i->op, base->name, names[own]);
}

Place op_place(PtxOp *o, const PtxArg *a, Where space) {
  PtxBuild *b = o->b;
  const PtxArg *base = op_base(o, a);
  int32_t root = op_root(o, base);
  check_space(o, base, space);
  if (space == IN_CLUSTER && b->smem) {
    Ref at = op_value(o, base, DT_U32);
    return op_cluster(o, op2(o, OP_ADD, at, number(o, DT_U32, a->value)));
  }
  if (space == IN_SHARED || space == IN_CLUSTER) {
    if (!b->smem) {
      ptx_fail(b, "'%s': the kernel has no shared memory", o->i->op);
    }
    Ref off;
    if (base->kind == PTX_A_INT) {
      return (Place){b->smem, number(o, DT_I32, base->value + a->value)};
    }
    bool wide = false;
    if (base->kind == PTX_A_REG) {
      wide = b->m->regs.p[b->f->reg + (uint32_t)base->value].type.bits == 64;
    }
    off = op_value(o, base, wide ? DT_I64 : DT_I32);
    DType t = ir_type(b->fn, off);
    return (Place){b->smem, op2(o, OP_ADD, off, number(o, t, a->value))};
  }
  if (root >= 0) {
    if (!b->object[root]) {
      ptx_fail(b, "'%s' through %s: the parameter with this address is not a "
               "tensor", o->i->op, base->name ? base->name : "a number");
    }
    return (Place){b->object[root], op2(o, OP_ADD, op_offset(o, base),
                                        number(o, DT_I64, a->value))};
  }
  Ref at = op_value(o, base, DT_I64);
  Mem m = {.type = DT_U8, .align = 1, .count = -1, .ptx = true};
  at = op2(o, OP_ADD, at, number(o, DT_I64, a->value));
  return (Place){ir_at_address(b->cx, b->fn, m, at), number(o, DT_I64, 0)};
}

// Returns memory object `pool` viewed as elements of type t. Registers with
// elements narrower than a byte are in groups of whole words (give_home).
Ref op_view(PtxOp *o, Ref pool, DType t) {
  PtxBuild *b = o->b;
  Ins own = *ir_get(b->fn, pool);
  if (t == DT_NONE || own.type == t) return pool;
  for (int k = 0; k < 8 && b->viewed[k]; k++) {
    const Ins *i = ir_get(b->fn, b->viewed[k]);
    bool same = i->op == own.op && i->imm == own.imm && i->type == t;
    if (same && ir_visible(b->fn, b->viewed[k])) return b->viewed[k];
  }
  own.type = (uint8_t)t;
  memmove(b->viewed + 1, b->viewed, 7 * sizeof *b->viewed);
  return b->viewed[0] = ir_emit(b->cx, b->fn, own);
}

void op_run(PtxOp *o, Runs *r, const PtxArg *a, DType t) {
  uint32_t n = a->kind == PTX_A_VECTOR ? a->parts : 1;
  int wide = 32;
  if (r->n == 8 || r->regs + n > 256) {
    ptx_fail(o->b, "'%s' has too many registers", o->i->op);
  }
  for (uint32_t k = 0; k < n; k++) {
    const PtxArg *x = n == 1 && a->kind != PTX_A_VECTOR ? a
                      : &o->b->m->args.p[a->part + k];
    uint32_t at;
    const PtxPool *pool = op_home(o, x, &at);
    if (k && pool->mem != r->mem[r->n]) {
      ptx_fail(o->b, "'%s': the registers of one operand must be of one "
               "kind", o->i->op);
    }
    r->mem[r->n] = pool->mem;
    int each = t == DT_NONE ? pool->bits : dtype_bits(t);
    r->reg[r->regs++] = at * (uint32_t)(pool->bits / each);
    wide = pool->bits;
  }
  if (t == DT_NONE) t = wide == 64 ? DT_U64 : DT_U32;
  r->mem[r->n] = op_view(o, r->mem[r->n], t);
  r->n++;
}

// SPDX-License-Identifier: MIT
