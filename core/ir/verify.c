// Verifies the IR: the guarantees that the back ends rely on. A failure is a
// defect of cutelua, never a user's mistake.
#include "ir/ir.h"

#include "atoms/atom.h"
#include "ir/intrin.h"
#include "ir/operands.h"

typedef struct Check {
  Ctx *cx;
  const Fn *fn;
  Ref at;            // instruction that is being verified
  uint32_t *scope;   // serial number of each instruction's region, recomputed
  VEC(Ref) open;     // heads of the open regions
  VEC(uint32_t) serial;
  uint32_t serials;
} Check;

_Noreturn static void bad(Check *c, const char *what) {
  const Ins *i = ir_get(c->fn, c->at);
  vec_free(c->open);
  vec_free(c->serial);
  ctx_fail(c->cx, ERR_INTERNAL, "instruction %%%u (%s, line %u): %s", c->at,
           op_name((Op)i->op), c->fn->src.p[i->src].line, what);
}

static bool sees(Check *c, Ref r) {
  if (r == 0 || r >= c->at) return false;
  for (size_t i = 0; i < c->serial.n; i++)
    if (c->serial.p[i] == c->scope[r]) return true;
  return false;
}

static DType type_of(Check *c, Ref r) {
  if (!sees(c, r)) bad(c, "an operand is not visible here");
  return ir_type(c->fn, r);
}

static void same(Check *c, DType a, DType b) {
  if (a != b) bad(c, "operand types differ");
}

// ---- operands ----

static void check_space(Check *c, const Operand *o) {
  type_of(c, o->ref);
  if (!ir_is_mem(c->fn, o->ref)) bad(c, "not a memory object");
  if (o->space != SP_HOST && ir_memof(c->fn, o->ref)->space != o->space)
    bad(c, "memory of another kind than it works on");
}

// Checks that `bits` bits from element v of mem are inside the register object.
static void check_register(Check *c, Ref mem, int64_t v, int64_t bits) {
  const Mem *m = ir_memof(c->fn, mem);
  // the type of a view may differ from the object's
  int64_t at = v * dtype_bits(ir_type(c->fn, mem));
  if (v < 0 || at + bits > m->count * dtype_bits(m->type))
    bad(c, "register index out of range");
}

static void check_mem(Check *c, const Operand *o) {
  check_space(c, o);
  DType t = type_of(c, o->off), own = ir_type(c->fn, o->ref);
  if (o->barrier && !(dtype_is_int(own) && dtype_bits(own) == 64))
    bad(c, "no mbarrier");
  if (t != DT_I32 && t != DT_I64) bad(c, "offset is not an index");
  if (ir_memof(c->fn, o->ref)->space != SP_RMEM) return;
  int64_t v;
  if (!ir_const(c->fn, o->off, &v)) bad(c, "register index is not constant");
  check_register(c, o->ref, v, o->bits);
}

static void check_run(Check *c, const Operand *o) {
  check_space(c, o);
  if (o->reg + o->n > c->fn->reg.p + c->fn->reg.n)
    bad(c, "operands are missing");
  uint32_t last = 0;
  for (int k = 0; k < o->n; k++)
    if (o->reg[k] > last) last = o->reg[k];
  check_register(c, o->ref, last, dtype_bits(ir_type(c->fn, o->ref)));
}

static void check_operand(Check *c, const Operand *o) {
  if (!o->ref && o->optional) return;
  if (o->role == ROLE_RANK) same(c, type_of(c, o->ref), DT_I32);
  switch ((OperandKind)o->kind) {
    case OPERAND_VALUE: type_of(c, o->ref); break;
    case OPERAND_PRED: same(c, type_of(c, o->ref), DT_BOOL); break;
    case OPERAND_LANES: same(c, type_of(c, o->ref), DT_U32); break;
    case OPERAND_VAR:
      type_of(c, o->ref);
      if (ir_get(c->fn, o->ref)->op != OP_VAR) bad(c, "not a variable");
      break;
    case OPERAND_OBJECT: check_space(c, o); break;
    case OPERAND_MEM: check_mem(c, o); break;
    case OPERAND_MAP:
      type_of(c, o->ref);
      if (ir_memof(c->fn, o->ref)->space != SP_TMAP) bad(c, "not a tensor map");
      break;
    case OPERAND_RUN: check_run(c, o); break;
  }
}

// ---- types ----

typedef struct Types {
  // types of the value operands, and of the variables that are read
  DType value[OPERANDS];
  int n;
  DType to;               // type of the destination
} Types;

static Types check_operands(Check *c, const Ins *i) {
  Types t = {.to = DT_NONE};
  Operand o;
  for (Operands w = operands_of(c->fn, i); operands_next(&w, &o);) {
    check_operand(c, &o);
    DType own = o.ref ? ir_type(c->fn, o.ref) : DT_NONE;
    bool value = o.kind == OPERAND_VALUE || (o.kind == OPERAND_VAR && o.read);
    if (o.written) t.to = own;
    else if (value && o.ref && t.n < OPERANDS) t.value[t.n++] = own;
  }
  return t;
}

static void check_rule(Check *c, const Ins *i, const Types *t) {
  DType r = (DType)i->type;
  Rule rule = (Rule)op_rows[i->op].rule;
  switch (rule) {
    case RULE_NONE: if (r != DT_NONE) bad(c, "has a result type"); break;
    case RULE_SAME: case RULE_INT: case RULE_FLT: case RULE_SEL:
      for (int k = 0; k < t->n; k++) same(c, t->value[k], r);
      if (rule == RULE_INT && dtype_is_float(r)) bad(c, "not an integer");
      if (rule == RULE_FLT && !dtype_is_float(r)) bad(c, "not a float");
      break;
    case RULE_CMP:
      same(c, t->value[0], t->value[1]);
      same(c, r, DT_BOOL);
      break;
    case RULE_SHF: same(c, t->value[0], r); break;
    case RULE_SET:
      if (r != DT_NONE) bad(c, "has a result type");
      for (int k = 0; k < t->n; k++) same(c, t->value[k], t->to);
      break;
    case RULE_ANY: break;
  }
}

// Checks the type of a stored value. It must be the element's type or, for an
// exchange, a type of the same width. Objects of bytes accept any type.
static void check_value(Check *c, const Ins *i) {
  DType v = ir_type(c->fn, i->a[2]), t = ir_type(c->fn, i->a[0]);
  if (t == DT_U8 && ir_memof(c->fn, i->a[0])->type == DT_U8) return;
  if (dtype_bits(v) != dtype_bits(t)) bad(c, "element and value differ");
  if (i->op == OP_ATOMIC && i->imm < AT_EXCH) same(c, v, t);
}

// Checks the types of the values of an mbarrier operation. Counts, parities and
// CTA ranks must be i32, and a token u64.
static void check_mbarrier(Check *c, const Ins *i, const Types *t) {
  bool waits = operand_has((Op)i->op, ROLE_PARITY);
  for (int k = 0; k < t->n; k++)
    if (!waits || k || t->value[k] != DT_U64) same(c, t->value[k], DT_I32);
  if (i->op == OP_MBARTRY) same(c, (DType)i->type, DT_BOOL);
  if (i->op == OP_MBARTOKEN) same(c, (DType)i->type, DT_U64);
}

// Checks that all values that instruction i stores have one type, and that
// Ins.imm is the total number of their bits.
static void check_moved(Check *c, const Ins *i) {
  Ref v[OPERANDS];
  int n = operand_refs(c->fn, i, ROLE_VALUE, v);
  for (int k = 1; k < n; k++) same(c, type_of(c, v[k]), type_of(c, v[0]));
  if (n && i->imm != n * dtype_bits(type_of(c, v[0])))
    bad(c, "other bits than those of its values");
}

static void check_intrin(Check *c, const Ins *i) {
  IntrinId id = intrin_id(i->imm);
  if (id >= IN_COUNT) bad(c, "no such intrinsic");
  if (intrin_pure(id) != (i->op == OP_INTRIN))
    bad(c, "not this operation's intrinsic");
  same(c, (DType)i->type, intrin_result(id));
  for (int k = 0; k < intrin_arity(id); k++)
    same(c, type_of(c, i->a[k]), intrin_operand(id, k));
}

// Checks that the instruction names an existing table row.
static void check_row(Check *c, const Ins *i) {
  ImmKind imm = (ImmKind)op_rows[i->op].imm;
  if (imm == IMM_INTRIN) check_intrin(c, i);
  if (imm == IMM_MMA && !atom_mma((int)i->imm)) bad(c, "no such MMA atom");
  if (imm == IMM_COPY && !atom_copy((int)i->imm)) bad(c, "no such copy atom");
}

Who check_who(const Ins *i) {
  Who who = op_who((Op)i->op);
  if (who != WHO_ROW) return who;
  if (i->op == OP_ASK)
    return intrin_row(intrin_id(i->imm))->class == INTRIN_M ? WHO_MASK
                                                            : WHO_LANE;
  if (i->op == OP_CLUSTERARRIVE || i->op == OP_CLUSTERWAIT)
    return i->flags & CLF_UNALIGNED ? WHO_LANE : WHO_WARP;
  if (i->op == OP_TCWAITLD)
    return i->flags & TCF_UNALIGNED ? WHO_LANE : WHO_FULL;
  return atom_mma_alone(atom_mma((int)i->imm)) ? WHO_LANE : WHO_FULL;
}

// Checks that a pure operation does not involve other lanes, because it may
// move to a place where other lanes are active.
static void check_together(Check *c, const Ins *i) {
  if (check_who(i) != WHO_LANE && op_pure((Op)i->op))
    bad(c, "pure, but lanes do it together");
}

// ---- regions ----

static void enter(Check *c) { vec_push(c->cx, c->serial, ++c->serials); }

// Checks that a break leaves only open regions, and that it leaves a branch
// only together with a loop around it.
static void check_leave(Check *c, const Ins *i) {
  if (i->imm < 1 || (uint64_t)i->imm > c->open.n)
    bad(c, "break.if of regions that are not there");
  Op op = (Op)ir_get(c->fn, c->open.p[c->open.n - (size_t)i->imm])->op;
  if (op == OP_IF) bad(c, "break.if out of a branch alone");
}

static void check_region(Check *c, const Ins *i) {
  unsigned f = op_effect((Op)i->op);
  bool opens = f & EF_OPENS, closes = f & EF_CLOSES;
  if (i->op == OP_BREAKIF) check_leave(c, i);
  if (closes) {
    if (!c->open.n) bad(c, "no open region");
    c->serial.n--;
  }
  if (closes && !opens) c->open.n--;
  if (i->op == OP_ELSE && ir_get(c->fn, c->open.p[c->open.n - 1])->op != OP_IF)
    bad(c, "else without if");
  c->scope[c->at] = c->serial.p[c->serial.n - 1];
  if (opens && !closes) vec_push(c->cx, c->open, c->at);
  if (opens) enter(c);
  if (i->op == OP_FOR) c->scope[c->at] = c->serials;
}

void check_fn(Ctx *cx, const Fn *fn) {
  Check c = {.cx = cx, .fn = fn, .scope = NEW(cx, uint32_t, fn->ins.n)};
  enter(&c);
  for (c.at = 1; c.at < fn->ins.n; c.at++) {
    const Ins *i = ir_get(fn, c.at);
    check_row(&c, i);
    Types t = check_operands(&c, i);
    check_rule(&c, i, &t);
    if (i->op == OP_ST || i->op == OP_ATOMIC || i->op == OP_PUT)
      check_value(&c, i);
    if (op_flag_kind((Op)i->op) == FLAGS_MBAR) check_mbarrier(&c, i, &t);
    if (op_rows[i->op].imm == IMM_BITS) check_moved(&c, i);
    if (i->op == OP_PTR) same(&c, t.value[0], DT_I64);
    check_together(&c, i);
    check_region(&c, i);
  }
  c.at = c.open.n ? c.open.p[c.open.n - 1] : 0;
  if (c.at) bad(&c, "the region is still open");
  vec_free(c.open);
  vec_free(c.serial);
}
// SPDX-License-Identifier: MIT
