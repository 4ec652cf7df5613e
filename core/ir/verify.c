// The IR verifier: what the back ends may rely on. A failure here is a
// defect of cutelua, never a user's mistake.
#include "ir/ir.h"

#include "atoms/atom.h"
#include "ir/intrin.h"

typedef enum Rule {
  R_NONE, R_SAME, R_INT, R_FLT, R_CMP, R_SHF, R_SEL, R_ANY
} Rule;
#define NONE R_NONE
#define SAME R_SAME
#define INT R_INT
#define FLT R_FLT
#define CMP R_CMP
#define SHF R_SHF
#define SEL R_SEL
#define ANY R_ANY
static const unsigned char rules[] = {
#define OP(id, name, n, rule, flags, who, c) rule,
#include "ir/ops.h"
#undef OP
};

typedef struct Check {
  Ctx *cx;
  const Fn *fn;
  Ref at;            // the instruction being looked at
  uint32_t *scope;   // of each instruction, recomputed
  VEC(Ref) open;     // region heads
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

static void check_rule(Check *c, const Ins *i) {
  int n = op_arity((Op)i->op);
  DType t[3] = {DT_NONE, DT_NONE, DT_NONE};
  for (int k = 0; k < n; k++)
    if (i->a[k]) t[k] = type_of(c, i->a[k]);
  DType r = (DType)i->type;
  switch ((Rule)rules[i->op]) {
    case R_NONE: if (r != DT_NONE) bad(c, "has a result type"); break;
    case R_FLT: if (!dtype_is_float(r)) bad(c, "not a float"); // fall through
    case R_SAME: case R_INT:
      for (int k = 0; k < n; k++) if (i->a[k]) same(c, t[k], r);
      if (rules[i->op] == R_INT && dtype_is_float(r)) bad(c, "not an integer");
      break;
    case R_CMP: same(c, t[0], t[1]); same(c, r, DT_BOOL); break;
    case R_SHF: same(c, t[0], r); break;
    case R_SEL: same(c, t[0], DT_BOOL); same(c, t[1], r); same(c, t[2], r);
      break;
    case R_ANY: break;
  }
}

static const Mem *mem_of(Check *c, Ref r) {
  type_of(c, r);
  if (!ir_is_mem(c->fn, r)) bad(c, "not a memory object");
  return ir_memof(c->fn, r);
}

// An access of n elements at off: register indices are constants in range.
static void check_access(Check *c, Ref mem, Ref off, int64_t n) {
  const Mem *m = mem_of(c, mem);
  DType t = type_of(c, off);
  if (t != DT_I32 && t != DT_I64) bad(c, "offset is not an index");
  if (m->space != SP_RMEM) return;
  int64_t v;
  if (!ir_const(c->fn, off, &v)) bad(c, "register index is not constant");
  int64_t bits = dtype_bits(ir_type(c->fn, mem));  // a recast view has its own
  if (v < 0 || (v + n) * bits > m->count * dtype_bits(m->type))
    bad(c, "register index out of range");
}

static void check_copy(Check *c, const Ins *i) {
  if (i->nx != 5) bad(c, "needs five operands");
  const uint32_t *x = &c->fn->ext.p[i->ext];
  for (int k = 0; k < 4; k += 2) {
    mem_of(c, x[k]);
    check_access(c, x[k], x[k + 1], i->imm / dtype_bits(ir_type(c->fn, x[k])));
  }
  if (x[4]) same(c, type_of(c, x[4]), DT_BOOL);
  if (i->op != OP_CPASYNC) return;
  if (mem_of(c, x[0])->space != SP_SMEM || mem_of(c, x[2])->space != SP_GMEM)
    bad(c, "cp.async goes from global to shared memory");
}

// What is stored has the element's type; what is swapped may have another of
// its width.
static void check_value(Check *c, const Ins *i) {
  DType v = type_of(c, i->a[2]), t = ir_type(c->fn, i->a[0]);
  if (dtype_bits(v) != dtype_bits(t)) bad(c, "element and value differ");
  if (i->op == OP_ATOMIC && i->imm < AT_EXCH) same(c, v, t);
}

// The first operand of an atom; how many registers follow is the row's.
static void check_atom(Check *c, const Ins *i) {
  if (i->nx < 4) bad(c, "operands are missing");
  mem_of(c, c->fn->ext.p[i->ext]);
}

static void check_var(Check *c, const Ins *i) {
  type_of(c, i->a[0]);
  if (i->op == OP_VAR) {
    same(c, ir_type(c->fn, i->a[0]), (DType)i->type);
    return;
  }
  const Ins *v = ir_get(c->fn, i->a[0]);
  if (v->op != OP_VAR) bad(c, "not a variable");
  if (i->op == OP_VGET) same(c, (DType)v->type, (DType)i->type);
  else same(c, (DType)v->type, type_of(c, i->a[1]));
}

static void check_intrin(Check *c, const Ins *i) {
  IntrinId id = intrin_id(i);
  if (id >= IN_COUNT) bad(c, "no such intrinsic");
  if (intrin_pure(id) != (i->op == OP_INTRIN))
    bad(c, "not this operation's intrinsic");
  same(c, (DType)i->type, intrin_result(id));
  for (int k = 0; k < intrin_arity(id); k++)
    same(c, type_of(c, i->a[k]), intrin_operand(id, k));
}

Who check_who(const Ins *i) {
  Who who = op_who((Op)i->op);
  if (who != WHO_ROW) return who;
  if (i->op == OP_ASK)
    return intrin_row(intrin_id(i))->class == INTRIN_M ? WHO_MASK : WHO_LANE;
  return atom_mma_alone(atom_mma((int)i->imm)) ? WHO_LANE : WHO_FULL;
}

// The last operand of what lanes do together is their mask. A pure operation
// is nobody else's concern: it may move to where other lanes are.
static void check_together(Check *c, const Ins *i) {
  Who who = check_who(i);
  if (who != WHO_LANE && op_flags((Op)i->op) & OPF_P)
    bad(c, "pure, but lanes do it together");
  if (who != WHO_MASK) return;
  int n = i->op == OP_ASK ? intrin_arity(intrin_id(i)) : op_arity((Op)i->op);
  same(c, type_of(c, i->a[n - 1]), DT_U32);
}

static void check_asm(Check *c, const Ins *i) {
  for (uint32_t k = 0; k < i->nx; k++) {
    Ref x = c->fn->ext.p[i->ext + k];
    type_of(c, x);
    if (k < i->flags && ir_get(c->fn, x)->op != OP_VAR)
      bad(c, "writes what is no variable");
  }
}

static void check_special(Check *c, const Ins *i) {
  int64_t n = i->imm;
  switch ((int)i->op) {
    case OP_LD: case OP_ST: case OP_ATOMIC:
      check_access(c, i->a[0], i->a[1], 1);
      if (i->op != OP_LD) check_value(c, i);
      break;
    case OP_FILL:
      check_access(c, i->a[0], i->a[1], n);
      if (mem_of(c, i->a[0])->space != SP_RMEM) bad(c, "not registers");
      same(c, type_of(c, i->a[2]), ir_type(c->fn, i->a[0]));
      break;
    case OP_COPY: case OP_CPASYNC: check_copy(c, i); break;
    case OP_MMA:
      if (!atom_mma((int)n)) bad(c, "no such MMA atom");
      check_atom(c, i);
      break;
    case OP_MATRIX:
      if (!atom_copy((int)n)) bad(c, "no such copy atom");
      check_atom(c, i);
      break;
    case OP_VAR: case OP_VGET: case OP_VSET: check_var(c, i); break;
    case OP_INTRIN: case OP_ASK: check_intrin(c, i); break;
    case OP_ASM: check_asm(c, i); break;
    case OP_IF: case OP_BREAKIF: case OP_TRAP:
      same(c, type_of(c, i->a[0]), DT_BOOL);
      break;
    case OP_FOR:
      for (int k = 0; k < 3; k++) same(c, type_of(c, i->a[k]), (DType)i->type);
      break;
    default: break;
  }
}

static void enter(Check *c) { vec_push(c->cx, c->serial, ++c->serials); }

static void check_region(Check *c, const Ins *i) {
  unsigned f = op_flags((Op)i->op);
  if (i->op == OP_BREAKIF &&
      (!c->open.n || ir_get(c->fn, c->open.p[c->open.n - 1])->op != OP_LOOP))
    bad(c, "break.if outside a loop");
  if (f & (OPF_M | OPF_X)) {
    if (!c->open.n) bad(c, "no open region");
    c->serial.n--;
  }
  if (f & OPF_X) c->open.n--;
  if (i->op == OP_ELSE && ir_get(c->fn, c->open.p[c->open.n - 1])->op != OP_IF)
    bad(c, "else without if");
  c->scope[c->at] = c->serial.p[c->serial.n - 1];
  if (f & OPF_B) vec_push(c->cx, c->open, c->at);
  if (f & (OPF_B | OPF_M)) enter(c);
  if (i->op == OP_FOR) c->scope[c->at] = c->serials;
}

void check_fn(Ctx *cx, const Fn *fn) {
  Check c = {.cx = cx, .fn = fn, .scope = NEW(cx, uint32_t, fn->ins.n)};
  enter(&c);
  for (c.at = 1; c.at < fn->ins.n; c.at++) {
    const Ins *i = ir_get(fn, c.at);
    check_rule(&c, i);
    check_special(&c, i);
    check_together(&c, i);
    check_region(&c, i);
  }
  c.at = c.open.n ? c.open.p[c.open.n - 1] : 0;
  if (c.at) bad(&c, "the region is still open");
  vec_free(c.open);
  vec_free(c.serial);
}
