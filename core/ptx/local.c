// local.c: local memory of a thread, and generic addresses. All .local
// variables together are one register object of the IR, which is read and
// written in elements of any width. Generic addresses of shared and local
// memory are in separate windows (ranges of addresses), so that the value of an
// address determines its state space.
#include <string.h>

#include "ptx/inside.h"

enum { MOST_LOCAL = 512 << 10 };  // bytes per thread, on all targets

static const int64_t windows[] = {
  [IN_SHARED] = (int64_t)5 << 60, [IN_LOCAL] = (int64_t)6 << 60};

// ---- layout ----

// Returns the narrowest type of elements that the function reads or writes.
static DType narrowest(const PtxBuild *b) {
  int bits = 32;
  for (uint32_t k = 0; k < b->f->n_ins; k++) {
    const char *op = b->m->ins.p[b->f->ins + k].op;
    if (strncmp(op, "ld.", 3) && strncmp(op, "st.", 3)) continue;
    const char *last = strrchr(op, '.') + 2;
    if (strcmp(last, "8") == 0) bits = 8;
    else if (strcmp(last, "16") == 0 && bits > 16) bits = 16;
  }
  return unsigned_of(bits);
}

// Records in *b whether the function makes generic addresses of shared or local
// memory, and addresses of other CTAs' shared memory (mapa).
static void find_generic(PtxBuild *b) {
  for (uint32_t k = 0; k < b->f->n_ins; k++) {
    const char *op = b->m->ins.p[b->f->ins + k].op;
    if (strncmp(op, "cvta.shared", 11) == 0) b->generic_shared = true;
    if (strncmp(op, "cvta.local", 10) == 0) b->generic_local = true;
    if (strncmp(op, "mapa", 4) == 0) b->generic_cluster = true;
  }
}

void local_memory(PtxBuild *b) {
  const PtxModule *m = b->m;
  int64_t at = 0;
  find_generic(b);
  b->local_at = NEW(b->cx, int64_t, m->vars.n + 1);
  for (uint32_t k = b->f->var; k < b->f->var + b->f->vars; k++) {
    const PtxVar *v = &m->vars.p[k];
    if (v->space != PTX_LOCAL) continue;
    at = ptx_aligned(v, at);
    b->local_at[k] = at;
    at += ptx_size(v);
    if (at > MOST_LOCAL) {
      ptx_fail(b, "%lld bytes of local memory; a thread has at most %d",
               (long long)at, MOST_LOCAL);
    }
  }
  if (at == 0) return;
  Mem mem = {.space = SP_RMEM, .type = narrowest(b), .align = 16};
  mem.count = (at + 15) / 16 * 16 * 8 / dtype_bits(mem.type);
  mem.name = ir_text(b->cx, b->fn, "local memory", 12);
  b->local = ir_mem(b->cx, b->fn, mem);
  b->local_bytes = mem.count * dtype_bits(mem.type) / 8;
}

// ---- accesses ----

// Emits a report, with the message `text`, for threads where p is false.
static void demand(PtxOp *o, Ref p, const char *text) {
  uint32_t at = ir_text(o->b->cx, o->b->fn, text, strlen(text));
  ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_TRAP, .imm = at, .a = {p}});
}

// Returns the object with the element of type t at byte `off` of local memory.
// Stores the index of the element in *which. Sets *known to whether the index
// is a constant.
static Ref element(PtxOp *o, DType t, Ref off, Ref *which, bool *known) {
  PtxBuild *b = o->b;
  int bytes = dtype_bits(t) / 8;
  if (!b->local) op_reject(o, "the function declares no local memory");
  Ref unit = number(o, ir_type(b->fn, off), bytes - 1);
  Ref even = op2(o, OP_EQ, op2(o, OP_AND, off, unit),
                 number(o, ir_type(b->fn, off), 0));
  int64_t v;
  if (!ir_const(b->fn, even, &v) || !v) {
    demand(o, even, "an address in local memory is not aligned");
  }
  Ref shift = number(o, DT_U32, __builtin_ctz((unsigned)bytes));
  Ref at = op2(o, OP_SHR, off, shift);
  *which = to(o, DT_I32, at);
  *known = ir_const(b->fn, *which, &v) && v >= 0 &&
           v < b->local_bytes / bytes;
  return op_view(o, b->local, t);
}

Ref local_load(PtxOp *o, DType t, Ref off) {
  PtxBuild *b = o->b;
  Ref which;
  bool known;
  Ref mem = element(o, t, off, &which, &known);
  Ins i = {.op = known ? OP_LD : OP_PICK, .type = (uint8_t)t};
  Ref x[3] = {mem, known ? which : number(o, DT_I32, 0), which};
  if (!known) i.imm = b->local_bytes * 8 / dtype_bits(t);
  return operands_emit(b->cx, b->fn, i, x, known ? 2 : 3, NULL, 0);
}

void local_store(PtxOp *o, Ref off, Ref v) {
  PtxBuild *b = o->b;
  DType t = ir_type(b->fn, v);
  Ref which;
  bool known;
  Ref mem = element(o, t, off, &which, &known);
  Ins i = {.op = known ? OP_ST : OP_PUT};
  Ref x[4] = {mem, known ? which : number(o, DT_I32, 0), v, which};
  if (!known) i.imm = b->local_bytes * 8 / dtype_bits(t);
  operands_emit(b->cx, b->fn, i, x, known ? 3 : 4, NULL, 0);
}

// ---- generic addresses ----

// Emits a test of whether a generic address is in the window of shared or local
// memory.
static Ref is_in(PtxOp *o, Ref at, Where space) {
  Ref off = op2(o, OP_SUB, as(o, DT_U64, at),
                number(o, DT_U64, windows[space]));
  return op2(o, OP_LT, off, number(o, DT_U64, (int64_t)1 << 32));
}

bool op_spaces(PtxOp *o, const PtxArg *a, Spaces *s) {
  PtxBuild *b = o->b;
  const PtxArg *base = a->kind == PTX_A_ADDRESS ? &b->m->args.p[a->part] : a;
  bool shared = b->smem && b->generic_shared;
  bool local = b->local && b->generic_local;
  if (op_root(o, base) >= 0 || (!shared && !local)) return false;
  Ref no = number(o, DT_BOOL, 0);
  s->at = op_value(o, base, DT_I64);
  s->at = op2(o, OP_ADD, s->at, number(o, DT_I64, a->value));
  s->shared = shared ? is_in(o, s->at, IN_SHARED) : no;
  s->local = local ? is_in(o, s->at, IN_LOCAL) : no;
  Ref base_shared = number(o, DT_I64, windows[IN_SHARED]);
  Ref base_local = number(o, DT_I64, windows[IN_LOCAL]);
  s->in_shared = to(o, DT_I32, op2(o, OP_SUB, s->at, base_shared));
  s->in_local = to(o, DT_I32, op2(o, OP_SUB, s->at, base_local));
  s->cluster = no;
  if (b->generic_cluster) {
    Ref rank = op2(o, OP_SHR, as(o, DT_U32, s->in_shared),
                   number(o, DT_U32, RANK_BIT));
    s->cluster = op2(o, OP_AND, s->shared,
                     op2(o, OP_NE, rank, number(o, DT_U32, 0)));
  }
  return true;
}

// Translates cvta and cvta.to. Addresses of global memory and parameters are
// already generic.
void row_cvta(PtxOp *o, int k) {
  (void)k;
  bool back = op_has(o, "to");
  op_type(o, 0);
  Where space = op_where(o);
  const PtxArg *d = op_arg(o, 0), *a = op_arg(o, 1);
  if (space == IN_SHARED || space == IN_LOCAL || space == IN_CLUSTER) {
    Ref base = number(o, DT_I64, windows[space == IN_LOCAL ? IN_LOCAL
                                                           : IN_SHARED]);
    op_set(o, d, op2(o, back ? OP_SUB : OP_ADD, op_value(o, a, DT_I64),
                     base));
    return;
  }
  if (space == ANYWHERE && !op_has(o, "param"))
    op_reject(o, "a state space such as .shared is missing");
  op_set(o, d, op_root(o, d) >= 0 ? op_offset(o, a)
                                  : op_value(o, a, DT_I64));
}

void row_isspacep(PtxOp *o, int k) {
  (void)k;
  const PtxArg *a = op_arg(o, 1);
  Ref at = op_value(o, a, DT_I64);
  Where space = op_where(o);
  Ref shared = is_in(o, at, IN_SHARED), local = is_in(o, at, IN_LOCAL);
  if (space == IN_SHARED || space == IN_CLUSTER) {
    op_result(o, shared);
  } else if (space == IN_LOCAL) {
    op_result(o, local);
  } else if (space == IN_GLOBAL) {
    op_result(o, op1(o, OP_NOT, op2(o, OP_OR, shared, local)));
  } else {
    op_reject(o, "the state space must be .global, .shared or .local");
  }
}
// SPDX-License-Identifier: MIT
