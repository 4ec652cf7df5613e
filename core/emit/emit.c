// Emits a function of the IR as CUDA C that resembles a kernel written by hand.
// This file writes declarations and statements. uses.c decides which
// instructions become statements, expr.c writes expressions, and helper.c
// writes the helper functions.
//
// Compile the text with --fmad=false. A multiplication and an addition that are
// separate in the IR are then rounded separately, on the GPU as in the
// simulator. As in C, signed integers must not overflow, and unsigned integers
// wrap.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "atoms/atom.h"
#include "emit/expr.h"
#include "emit/retire.h"
#include "emit/tcgen05.h"
#include "emit/wgmma.h"
#include "ir/target.h"

// ---- names ----

// Returns a name for the temporary that holds value r. The name depends on the
// operation that computes r.
static const char *temp_name(const Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  if (i->op == OP_SREG) return sreg_row((SReg)i->imm)->temp;
  if (i->op == OP_FOR) return "k";
  switch (dtype_class((DType)i->type)) {
    case 'P': return "p";
    case 'U': return "u";
    case 'F': return dtype_bits((DType)i->type) >= 32 ? "x" : "h";
    default: return "i";
  }
}

static void give_name(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const char *own = ir_str(e->fn, i->name);
  // Reject a name that consists only of underscores.
  if (own[strspn(own, "_")]) {
    e->use[r].name = names_new(e, own);
    return;
  }
  const char *want = temp_name(e, r);
  // Append a number to a name of a single letter.
  if (!want[1])
    want = arena_printf(e->cx, &e->cx->scratch, "%s%u", want,
                        e->temp[want[0] - 'a']++);
  e->use[r].name = names_new(e, want);
}

static const char *mem_name(const Emit *e, const Mem *m) {
  if (m->name) return ir_str(e->fn, m->name);
  switch (m->space) {
    case SP_RMEM: return "r";
    case SP_SMEM: return "s";
    case SP_DSMEM: return "peer";
    case SP_TMEM: return "tmem";
    case SP_GMEM: case SP_TMAP: case SP_HOST: case SP_COORD: case SP_DESC:
      break;
  }
  return "g";
}

// ---- atoms ----

// Writes an operand of a scalar FMA. Unless `raw`, converts a small float to
// f32.
static void put_fma_operand(Emit *e, const Ins *i, const Operand *o, DType t,
                            bool raw) {
  bool small = expr_small_float(t) && !raw;
  if (small) text_printf(e, "%s(", convert_to_f32(e, i, t));
  expr_reg(e, o->ref, o->reg[0], t);
  if (small) text_puts(e, ")");
}

static void put_fma(Emit *e, const Ins *i, const AtomMma *row) {
  Operand acc = operand_of(e->fn, i, ROLE_ACC);
  Operand a = operand_of(e->fn, i, ROLE_A), b = operand_of(e->fn, i, ROLE_B);
  Operand c = operand_of(e->fn, i, ROLE_C);
  DType d = row->d_type;
  bool f = dtype_is_float(d), half = d == DT_F16 || d == DT_BF16;
  bool raw = half && row->a_type == d && row->b_type == d && row->c_type == d;
  bool round = f && !raw && d != DT_F32 && d != DT_F64;
  text_begin(e, i);
  expr_reg_open(e, acc.ref, acc.reg[0], d, false);
  if (round) text_printf(e, "%s(", convert_from_f32(e, i, d));
  Helper h = d == DT_F16 ? H_FMA_F16 : H_FMA_BF16;
  const char *fma = raw ? helper_use(e, h) : d == DT_F64 ? "__fma_rn"
                    : f ? "fmaf" : "";
  text_printf(e, "%s(", fma);
  put_fma_operand(e, i, &a, row->a_type, raw);
  text_puts(e, f ? ", " : " * ");
  put_fma_operand(e, i, &b, row->b_type, raw);
  text_puts(e, f ? ", " : " + ");
  put_fma_operand(e, i, &c, row->c_type, raw);
  text_puts(e, round ? "))" : ")");
  expr_reg_close(e, acc.ref, acc.reg[0], d);
  text_end(e);
}

static void put_mma(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const AtomMma *row = atom_mma((int)i->imm);
  if (row->kind == MK_FMA) {
    put_fma(e, i, row);
    return;
  }
  if (!atom_mma_runs(row))
    text_no_way(e, i, row->name);
  const AtomUse *u = uses_atom(e, true, i->imm);
  Operand o[OPERANDS];
  int n = operands_all(e->fn, i, o);
  bool same = operands_accumulate(e->fn, i);
  text_begin(e, i);
  text_printf(e, "%s%s(", atomtext_name(e, true, u->id), same ? "" : "_dabc");
  for (int k = 0; k < n; k++) {
    if (k == 3 && same) continue;
    text_puts(e, k ? ", " : "");
    expr_regs(e, u->refs, &o[k],
             atomtext_reg_type(row->regs[k], atom_mma_type(row, k)));
  }
  text_puts(e, ")");
  text_end(e);
}

static void put_matrix(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const AtomCopy *row = atom_copy((int)i->imm);
  const AtomUse *u = uses_atom(e, false, i->imm);
  Operand o[OPERANDS];
  int n = operands_all(e->fn, i, o);
  if (!n) text_no_way(e, i, row->name);
  text_begin(e, i);
  text_puts(e, atomtext_name(e, false, u->id));
  for (int k = 0; k < n; k++) {
    int64_t at = o[k].kind != OPERAND_MEM
                   ? 0 : expr_beyond(e, o[k].ref, o[k].off);
    if (at) text_printf(e, "<%" PRId64 ">", at);
  }
  text_puts(e, "(");
  for (int k = 0; k < n; k++) {
    if (k) text_puts(e, ", ");
    if (o[k].kind == OPERAND_MEM) expr_address(e, o[k].ref, o[k].off);
    else expr_regs(e, u->refs || row->op == CO_MOVM, &o[k], "unsigned");
  }
  text_puts(e, ")");
  text_end(e);
}

// ---- order among threads ----

static void put_simple(Emit *e, const Ins *i, const char *text) {
  text_begin(e, i);
  text_puts(e, text);
  text_end(e);
}

// Writes `ptx`, an instruction without operands, as an asm statement.
static void put_ptx(Emit *e, const Ins *i, const char *ptx) {
  text_begin(e, i);
  text_printf(e, "asm volatile(\"%s;\" ::: \"memory\")", ptx);
  text_end(e);
}

// Writes a fence. On targets without clusters, the fence after the
// initialization of mbarriers has block scope.
static void put_fence(Emit *e, const Ins *i) {
  bool block = i->imm == FE_MBARINIT && !target_has(e->sm, FT_CLUSTER);
  const char *text = fence_row(block ? FE_CTA : (FenceKind)i->imm)->text;
  if (strchr(text, '(')) put_simple(e, i, text);
  else put_ptx(e, i, text);
}

static void put_cluster(Emit *e, const Ins *i) {
  bool arrive = i->op == OP_CLUSTERARRIVE;
  put_ptx(e, i, arena_printf(e->cx, &e->cx->scratch, "barrier.cluster.%s%s%s",
                             arrive ? "arrive" : "wait",
                             !arrive ? ".acquire"
                             : i->flags & CLF_RELAXED ? ".relaxed"
                                                      : ".release",
                             i->flags & CLF_UNALIGNED ? "" : ".aligned"));
}

// Writes operand r of a barrier instruction. A constant becomes a number. A
// value known only on the device becomes a placeholder such as `%0`, numbered
// by *n. If r is 0, writes `plain`.
static void put_bar_operand(Emit *e, Ref r, int64_t plain, int *n) {
  if (!r || ir_const(e->fn, r, &plain)) text_printf(e, "%" PRId64, plain);
  else text_printf(e, "%%%d", (*n)++);
}

static void put_barrier(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  // In PTX, the barrier's number precedes the number of threads.
  const Ref x[2] = {i->a[1], i->a[0]};
  int n = 0;
  int64_t k;
  text_begin(e, i);
  bool apart = i->flags & BRF_UNALIGNED;
  if (i->op == OP_BAR && i->imm == 0 && !x[0] && !x[1] && !apart) {
    text_puts(e, "__syncthreads()");
    text_end(e);
    return;
  }
  text_printf(e, "asm volatile(\"%s.%s ", apart ? "barrier" : "bar",
              i->op == OP_BAR ? "sync" : "arrive");
  put_bar_operand(e, x[0], i->imm, &n);
  if (x[1]) text_puts(e, ", ");
  if (x[1]) put_bar_operand(e, x[1], 0, &n);
  text_puts(e, n ? ";\" :: " : ";\" ::");
  for (int at = 0, put = 0; at < 2; at++) {
    if (!x[at] || ir_const(e->fn, x[at], &k)) continue;
    text_puts(e, put++ ? ", \"r\"(" : "\"r\"(");
    expr_val(e, x[at], PR_ANY);
    text_puts(e, ")");
  }
  text_puts(e, n ? " : \"memory\")" : ": \"memory\")");
  text_end(e);
}

// ---- printf ----

// Ends a string literal and its line, and begins another literal on the next
// line.
static void put_line_break(Emit *e) {
  text_puts(e, "\"");
  text_newline(e);
  text_indent(e);
  text_puts(e, "  \"");
}

// Writes a call of printf. The format has C's conversions already
// (bind/printlib.c).
static void put_printf(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  uint32_t n;
  const Ref *x = operands_list(e->fn, i, &n);
  text_begin(e, i);
  text_puts(e, "printf(\"");
  for (const char *s = ir_str(e->fn, (uint32_t)i->imm); *s; s++) {
    text_quoted(e, *s);
    if (*s == '\n' && s[1]) put_line_break(e);
  }
  text_puts(e, "\"");
  for (uint32_t k = 0; k < n; k++) {
    text_wrap(e, ",");
    bool word = ir_type(e->fn, x[k]) == DT_BOOL;
    if (word) expr_val(e, x[k], PR_OROR);
    else expr_f32(e, x[k], PR_ANY);
    text_puts(e, word ? " ? \"true\" : \"false\"" : "");
  }
  text_puts(e, ")");
  text_end(e);
}

// ---- structure ----

static void put_cond(Emit *e, const char *word, Ref cond, const char *rest) {
  text_printf(e, "%s (", word);
  expr_val(e, cond, PR_ANY);
  text_printf(e, ")%s", rest);
}

static void put_open(Emit *e, Ref r) {
  e->open[e->nopen++] = r;
  e->depth++;
}

// Reports whether the region or branch that contains position `at` also
// contains the later instruction r.
static bool contains(const Fn *fn, Ref at, Ref r) {
  int depth = 0;
  for (; at < r; at++) {
    Op op = (Op)ir_get(fn, at)->op;
    if (op_opens(op)) depth++;
    if (op == OP_ELSE && depth == 0) return false;
    if (op == OP_END && depth-- == 0) return false;
  }
  return true;
}

// Reports whether cute.assume says that the loop at r, which counts up, has an
// iteration.
static bool assumed_to_run(const Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  int64_t from;
  if (!ir_const(e->fn, i->a[0], &from)) return false;
  for (size_t k = 0; k < e->fn->claim.n; k++) {
    const Claim *c = &e->fn->claim.p[k];
    bool by_user = !c->mem && !c->rule && !c->note && !c->when;
    if (by_user && c->v == i->a[1] && c->lo > from && c->at <= r &&
        contains(e->fn, c->at, r))
      return true;
  }
  return false;
}

static void put_for(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  int64_t step = 0;
  bool known = ir_const(e->fn, i->a[2], &step);
  bool up = known ? step > 0 : ir_fact(e->fn, i->a[2]).lo > 0;
  bool down = known ? step < 0 : ir_fact(e->fn, i->a[2]).hi < 0;
  text_begin(e, i);
  if (up && assumed_to_run(e, r)) {
    // Without this, the compiler also generates code for no iteration, and
    // chooses worse registers.
    text_puts(e, "__builtin_assume(");
    expr_val(e, i->a[1], PR_REL);
    text_puts(e, " > ");
    expr_val(e, i->a[0], PR_REL);
    text_puts(e, ");");
    text_newline(e);
    text_indent(e);
  }
  int64_t unroll = i->imm ? i->imm : e->use[r].rolled, limit;
  // Prevent a bug of ptxas 13: when it unrolls a loop that counts down to a
  // negated limit, iterations are lost.
  if (!unroll && !up && !ir_const(e->fn, i->a[1], &limit)) unroll = 1;
  if (unroll) {
    text_printf(e, "#pragma unroll %" PRId64, unroll);
    text_newline(e);
    text_indent(e);
  }
  give_name(e, r);
  const char *k = e->use[r].name;
  text_printf(e, "for (%s %s = ", dtype_cuda((DType)i->type), k);
  expr_val(e, i->a[0], PR_ANY);
  text_puts(e, "; ");
  if (!up && !down) {
    expr_val(e, i->a[2], PR_REL);
    text_printf(e, " > 0 ? %s < ", k);
    expr_val(e, i->a[1], PR_SHIFT);
    text_printf(e, " : ");
  }
  text_printf(e, "%s %s ", k, up ? "<" : ">");
  expr_val(e, i->a[1], PR_SHIFT);
  if (known && (step == 1 || step == -1)) {
    text_printf(e, "; %s%s) {", step > 0 ? "++" : "--", k);
  } else {
    text_printf(e, "; %s += ", k);
    expr_val(e, i->a[2], PR_ANY);
    text_puts(e, ") {");
  }
  text_newline(e);
  put_open(e, r);
}

// Reports whether the branch after the ELSE at r is empty.
static bool nothing_until_end(const Emit *e, Ref r) {
  for (r++; e->fn->ins.p[r].op != OP_END; r++)
    if (uses_is_line(e, r)) return false;
  return true;
}

// Returns the BREAKIF that is the first statement of the loop at r, or 0. Its
// condition is negated to become the condition of a C loop.
static Ref loop_test(const Emit *e, Ref r) {
  for (r++; !uses_is_line(e, r);) r++;
  const Ins *i = ir_get(e->fn, r);
  return i->op == OP_BREAKIF && i->imm == 1 &&
         ir_get(e->fn, i->a[0])->op == OP_NOT &&
         e->use[i->a[0]].how == HOW_INLINE ? r : 0;
}

static Ref put_loop(Emit *e, Ref r) {
  Ref test = loop_test(e, r);
  text_begin(e, ir_get(e->fn, r));
  if (test) {
    Ref no = ir_get(e->fn, test)->a[0];
    put_cond(e, "while", ir_get(e->fn, no)->a[0], " {");
  } else {
    text_puts(e, "while (true) {");
  }
  text_newline(e);
  put_open(e, r);
  return test ? test : r;
}

// Writes the BREAKIF or EXITIF at r: `if (p) break;`, `if (p) goto done;` or
// `if (p) return;`.
static void put_leave(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  Ref out = e->use[r].leaves;
  int64_t always = 0;
  if (out && !e->use[out].label) e->use[out].label = names_new(e, "done");
  text_begin(e, i);
  if (!ir_const(e->fn, i->a[0], &always)) put_cond(e, "if", i->a[0], " ");
  if (out) text_printf(e, "goto %s", e->use[out].label);
  else text_puts(e, i->op == OP_EXITIF ? "return" : "break");
  text_end(e);
}

static void put_end(Emit *e) {
  Ref head = e->open[--e->nopen];
  const char *label = e->use[head].label;
  e->depth--;
  text_indent(e);
  text_puts(e, ir_get(e->fn, head)->op == OP_ONCE ? "} while (false);" : "}");
  text_newline(e);
  if (!label) return;
  text_printf(e, "%*s%s:;", 2 * e->depth, "", label);
  text_newline(e);
}

// Reports whether r is an inlined read of the variable that VSET `set` writes.
static bool reads_itself(const Emit *e, Ref r, const Ins *set) {
  const Ins *i = ir_get(e->fn, r);
  return i->op == OP_VGET && i->a[0] == set->a[0] &&
         e->use[r].how == HOW_INLINE;
}

// Writes VSET `set` as `v += x` if the new value is v's old value plus x.
// Returns false otherwise.
static bool put_step(Emit *e, const Ins *set) {
  const Ins *sum = ir_get(e->fn, set->a[1]);
  DType t = (DType)sum->type;
  int64_t k;
  bool plain = t == DT_F32 || t == DT_F64 ||
               (dtype_is_int(t) && dtype_bits(t) >= 32);
  if (sum->op != OP_ADD || e->use[set->a[1]].how != HOW_INLINE || !plain)
    return false;
  int self = reads_itself(e, sum->a[0], set)   ? 0
             : reads_itself(e, sum->a[1], set) ? 1
                                               : -1;
  if (self < 0) return false;
  Ref other = sum->a[1 - self];
  text_printf(e, "%s ", e->use[set->a[0]].name);
  if (ir_const(e->fn, other, &k) && k < 0 && k > INT32_MIN && t == DT_I32) {
    text_printf(e, "-= %" PRId64, -k);
    return true;
  }
  text_puts(e, "+= ");
  expr_val(e, other, PR_ANY);
  return true;
}

static void put_set(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  text_begin(e, i);
  if (!put_step(e, i)) {
    text_printf(e, "%s = ", e->use[i->a[0]].name);
    expr_val(e, i->a[1], PR_ANY);
  }
  text_end(e);
}

// ---- values that have a line of their own ----

static void put_value(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  bool var = i->op == OP_VAR;
  text_begin(e, i);
  if (e->use[r].uses) {
    give_name(e, r);
    text_printf(e, "%s%s %s = ", var ? "" : "const ",
                dtype_cuda((DType)i->type), e->use[r].name);
  }
  if (var) expr_val(e, i->a[0], PR_ANY);
  else expr_def(e, r);
  text_end(e);
}

// Declares the words of a register array as scalars: `float C_acc_0, C_acc_1,
// ...;`.
static void put_scalars_decl(Emit *e, Ref r, const char *want) {
  const Ins *i = ir_get(e->fn, r);
  const Regs *g = &e->regs[i->imm];
  e->use[r].name = names_new_run(e, want, g->words);
  text_printf(e, "%s ", g->ctype);
  for (int64_t k = 0; k < g->words; k++) {
    if (k) text_wrap(e, ",");
    expr_word(e, r, k * g->wbits);
  }
  text_end(e);
}

static void put_regs_decl(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const Mem *m = &e->fn->mem.p[i->imm];
  // The object is a view of an array that is already declared.
  if (m->ref != r) {
    e->use[r].name = e->use[m->ref].name;
    return;
  }
  const Regs *g = &e->regs[i->imm];
  text_begin(e, i);
  if (g->scalars) {
    put_scalars_decl(e, r, mem_name(e, m));
    return;
  }
  e->use[r].name = names_new(e, mem_name(e, m));
  text_printf(e, "%s%s %s[%" PRId64 "]", g->vector ? "__align__(16) " : "",
              g->ctype, e->use[r].name, g->words);
  text_end(e);
}

// Declares a pointer to a shared object of another CTA. For a recast view of
// the object, declares a second pointer with another type.
static void put_peer(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const Mem *m = &e->fn->mem.p[i->imm];
  const char *type = dtype_cuda((DType)i->type), *name = mem_name(e, m);
  bool view = m->ref != r;
  if (view)
    name = arena_printf(e->cx, &e->cx->scratch, "%s_%s", name,
                        dtype_name((DType)i->type));
  e->use[r].name = names_new(e, name);
  text_begin(e, i);
  text_printf(e, "%s *const %s = (%s *)", type, e->use[r].name, type);
  if (view) {
    text_puts(e, e->use[m->ref].name);
  } else {
    text_printf(e, "%s(%s, ", helper_use(e, H_MAP_SHARED),
                e->use[i->a[0]].name);
    expr_val(e, i->a[1], PR_ANY);
    text_puts(e, ")");
  }
  text_end(e);
}

// Declares a pointer to global memory at an address. For a recast view,
// declares a second pointer with another type.
static void put_pointer(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const Mem *m = &e->fn->mem.p[i->imm];
  const char *type = dtype_cuda((DType)i->type), *name = mem_name(e, m);
  if (m->ref != r)
    name = arena_printf(e->cx, &e->cx->scratch, "%s_%s", name,
                        dtype_name((DType)i->type));
  e->use[r].name = names_new(e, name);
  text_begin(e, i);
  text_printf(e, "%s *const %s = (%s *)", type, e->use[r].name, type);
  expr_val(e, i->a[0], PR_UNARY);
  text_end(e);
}

// ---- the switch over all instructions ----

// Writes instruction r. Returns the last instruction that this text covers,
// usually r.
static Ref put(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  switch ((Op)i->op) {
    case OP_NOP: case OP_CONST: case OP_ARG: case OP_GMEM: case OP_TMAP:
    case OP_SMEM: case OP_DESC: case OP_COUNT:
      break;
    case OP_RMEM: put_regs_decl(e, r); break;
    case OP_DSMEM: put_peer(e, r); break;
    case OP_TMAPAT: bulk_map_at(e, r); break;
    case OP_PTR: put_pointer(e, r); break;
    case OP_TMEM: tcgen05_object(e, r, mem_name(e, &e->fn->mem.p[i->imm]));
      break;
    case OP_MAPCOPY: case OP_MAPADDRESS: case OP_MAPSET: case OP_MAPACQUIRE:
    case OP_MAPPUBLISH:
      text_begin(e, i);
      bulk_call_map(e, i);
      text_end(e);
      break;
#define OP(...)
#define SCALAR(id, ...) case OP_##id:
#include "ir/ops.h"
    case OP_ADDRESS: case OP_MAPWORD: case OP_SREG: case OP_SEL: case OP_CVT:
    case OP_BITCAST: case OP_MATH:
    case OP_INTRIN: case OP_LD: case OP_PICK: case OP_VGET: case OP_VAR:
    case OP_ATOMIC: case OP_ASK: case OP_MBARTRY: case OP_MBARTOKEN:
      put_value(e, r);
      break;
    case OP_ST: return stmt_store(e, r);
    case OP_FILL: stmt_fill(e, r); break;
    case OP_PUT: stmt_put(e, r); break;
    case OP_COPY: stmt_copy(e, r); break;
    case OP_CPASYNC: stmt_async(e, r); break;
    case OP_MBARINIT: case OP_MBARARRIVE: case OP_MBARTX: case OP_MBARWAIT:
    case OP_MBARINVAL:
    case OP_MBARCPASYNC: case OP_STASYNC:
      text_begin(e, i);
      expr_mbar(e, i);
      text_end(e);
      break;
    case OP_TMALOAD: case OP_TMASTORE: case OP_TMAPREFETCH: case OP_BULKLOAD:
    case OP_BULKSTORE: case OP_BULKSEND: case OP_CLCTRY:
      text_begin(e, i);
      bulk_call(e, i);
      text_end(e);
      break;
    case OP_BULKCOMMIT: put_ptx(e, i, "cp.async.bulk.commit_group"); break;
    case OP_BULKWAIT:
      put_ptx(e, i, arena_printf(e->cx, &e->cx->scratch,
                                 "cp.async.bulk.wait_group%s %d",
                                 i->flags & BKF_READ ? ".read" : "",
                                 (int)i->imm));
      break;
    case OP_CLUSTERARRIVE: case OP_CLUSTERWAIT: put_cluster(e, i); break;
    case OP_SETMAXNREG:
      put_ptx(e, i, arena_printf(e->cx, &e->cx->scratch,
                                 "setmaxnreg.%s.sync.aligned.u32 %d",
                                 i->flags & RGF_INC ? "inc" : "dec",
                                 (int)i->imm));
      break;
    case OP_GRIDWAIT: put_ptx(e, i, "griddepcontrol.wait"); break;
    case OP_GRIDLAUNCH:
      put_ptx(e, i, "griddepcontrol.launch_dependents");
      break;
    case OP_CPCOMMIT: put_ptx(e, i, "cp.async.commit_group"); break;
    case OP_CPWAIT:
      put_ptx(e, i, arena_printf(e->cx, &e->cx->scratch,
                                 "cp.async.wait_group %d", (int)i->imm));
      break;
    case OP_MMA: put_mma(e, r); break;
    case OP_WGMMA: wgmma_mma(e, r); break;
    case OP_WGFENCE: put_ptx(e, i, "wgmma.fence.sync.aligned"); break;
    case OP_WGCOMMIT: put_ptx(e, i, "wgmma.commit_group.sync.aligned"); break;
    case OP_WGWAIT:
      put_ptx(e, i, arena_printf(e->cx, &e->cx->scratch,
                                 "wgmma.wait_group.sync.aligned %d",
                                 (int)i->imm));
      retire_at(e, r);
      break;
    case OP_TCALLOC: case OP_TCDEALLOC: case OP_TCCOMMIT: case OP_TCSHIFT:
      tcgen05_call(e, i);
      break;
    case OP_TCRELINQUISH:
      put_ptx(e, i, i->flags & TCF_PAIR
        ? "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned"
        : "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned");
      break;
    case OP_TCMMA: tcgen05_mma(e, r); break;
    case OP_TCLD: case OP_TCST: case OP_TCCP: tcgen05_copy(e, r); break;
    case OP_TCWAITLD:
      put_ptx(e, i, "tcgen05.wait::ld.sync.aligned");
      retire_at(e, r);
      break;
    case OP_TCWAITST: put_ptx(e, i, "tcgen05.wait::st.sync.aligned"); break;
    case OP_TCFENCE:
      put_ptx(e, i, i->flags & TCF_AFTER
                      ? "tcgen05.fence::after_thread_sync"
                      : "tcgen05.fence::before_thread_sync");
      break;
    case OP_MATRIX: put_matrix(e, r); break;
    case OP_BAR: case OP_BARARRIVE: put_barrier(e, r); break;
    case OP_SYNCWARP:
      text_begin(e, i);
      text_puts(e, "__syncwarp(");
      ptx_mask(e, i->a[0]);
      text_puts(e, ")");
      text_end(e);
      break;
    case OP_FENCE: put_fence(e, i); break;
    case OP_PRINTF: put_printf(e, r); break;
    case OP_ASM: ptx_asm(e, r); break;
    case OP_TRAP:
      text_begin(e, i);
      text_puts(e, "if (!");
      expr_val(e, i->a[0], PR_POST);
      text_puts(e, ") __trap()");
      text_end(e);
      break;
    case OP_VSET: put_set(e, r); break;
    case OP_FOR: put_for(e, r); break;
    case OP_LOOP: return put_loop(e, r);
    case OP_ONCE:
      text_begin(e, i);
      text_puts(e, "do {");
      text_newline(e);
      put_open(e, r);
      break;
    case OP_BREAKIF: case OP_EXITIF: put_leave(e, r); break;
    case OP_IF:
      text_begin(e, i);
      put_cond(e, "if", i->a[0], " {");
      text_newline(e);
      put_open(e, r);
      break;
    case OP_ELSE:
      if (nothing_until_end(e, r)) break;
      e->depth--;
      text_indent(e);
      text_puts(e, "} else {");
      text_newline(e);
      e->depth++;
      break;
    case OP_END: put_end(e); break;
  }
  return r;
}

// ---- function head ----

static const char **name_params(Emit *e) {
  const Fn *fn = e->fn;
  const char **names = NEW(e->cx, const char *, fn->arg.n + 1);
  for (size_t k = 0; k < fn->arg.n; k++)
    names[k] = names_new(e, fn->arg.p[k].name
                               ? ir_str(fn, fn->arg.p[k].name) : "arg");
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_ARG) e->use[r].name = names[i->imm];
    if (i->op == OP_GMEM || i->op == OP_TMAP)
      e->use[r].name = names[fn->mem.p[i->imm].arg];
  }
  return names;
}

// Reports whether the kernel both loads from and writes to some argument.
static bool reads_back(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    Operand o;
    if (i->op != OP_LD && i->op != OP_COPY) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      const Ins *m = ir_get(fn, o.ref);
      if (o.kind == OPERAND_MEM && o.read && m->op == OP_GMEM &&
          fn->arg.p[fn->mem.p[m->imm].arg].written)
        return true;
    }
  }
  return false;
}

// Reports whether threads may communicate through an argument: the kernel reads
// and writes some argument, and has operations that order memory.
static bool hands_over(const Fn *fn) {
  bool both = false;
  for (size_t k = 0; k < fn->arg.n; k++)
    both |= fn->arg.p[k].read && fn->arg.p[k].written;
  for (Ref r = 1; r < fn->ins.n && both; r++) {
    Op op = (Op)ir_get(fn, r)->op;
    OpClass c = op_class(op);
    bool orders = c == CLASS_BARRIER || c == CLASS_SYNCWARP || c == CLASS_FENCE;
    if (orders || op == OP_ATOMIC || op == OP_CLUSTERWAIT ||
        operand_has(op, ROLE_PARITY))
      return true;
  }
  return false;
}

// Reports whether the kernel waits for the preceding launch
// (griddepcontrol.wait).
static bool waits(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++)
    if (ir_get(fn, r)->op == OP_GRIDWAIT) return true;
  return false;
}

// Writes a parameter. __restrict__ lets the compiler keep loaded values across
// stores through another pointer, and load constants through the non-coherent
// cache. The parameter gets no __restrict__ in three cases, where it would
// break the kernel:
// - NVRTC 13 merges `p ? constant[i] : written[j]` into one non-coherent load
//   and moves it before the stores to written[j], if the pointer to the
//   constants has __restrict__.
// - __restrict__ promises that no other thread writes to the memory. NVRTC then
//   moves a load above a barrier, even if the barrier orders it after another
//   thread's store.
// - ptxas assumes that nothing writes the data of a non-coherent load while the
//   kernel runs. It moves such loads above the wait for the preceding launch,
//   which writes that data.
static void put_param(Emit *e, size_t k, const char *name, bool coherent) {
  const Arg *a = &e->fn->arg.p[k];
  const char *type = dtype_cuda(a->type);
  bool plain = ir_arg_shared(e->fn, k) || (!a->written && coherent) ||
               hands_over(e->fn) || ir_has_addresses(e->fn);
  if (a->map) text_printf(e, "const __grid_constant__ TensorMap %s", name);
  else if (!a->pointer) text_printf(e, "%s %s", type, name);
  else text_printf(e, "%s%s *%s%s", a->written ? "" : "const ", type,
                   plain ? "" : "__restrict__ ", name);
}

// Returns the second argument of __launch_bounds__: the minimum number of
// blocks on a multiprocessor, or 0 to omit it. A kernel with setmaxnreg needs
// this argument, because it determines the number of registers at the start.
static int blocks_of(const Fn *fn) {
  if (fn->min_blocks) return fn->min_blocks;
  for (Ref r = 1; r < fn->ins.n; r++)
    if (ir_get(fn, r)->op == OP_SETMAXNREG) return 1;
  return 0;
}

// Reports whether the kernel must be launched with clusters even if a cluster
// has only one block. Without clusters, st.async and bulk copies between CTAs
// are illegal instructions. Other accesses to a CTA's shared memory work
// without clusters (tested on an H200).
static bool wants_clusters(const Fn *fn) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    Op op = (Op)ir_get(fn, r)->op;
    if (op_effect(op) & EF_LATER && operand_has(op, ROLE_RANK)) return true;
  }
  return false;
}

static void put_head(Emit *e, const char *name, const char **params) {
  const Fn *fn = e->fn;
  const int32_t *b = fn->block, *c = fn->cluster;
  bool coherent = reads_back(fn) || waits(fn);
  text_puts(e, "extern \"C\" __global__ void");
  if (b[0] && b[1] && b[2]) {
    text_printf(e, " __launch_bounds__(%d", b[0] * b[1] * b[2]);
    if (blocks_of(fn)) text_printf(e, ", %d", blocks_of(fn));
    text_puts(e, ")");
  }
  if (c[0] && (c[0] * c[1] * c[2] > 1 || wants_clusters(fn)))
    text_printf(e, " __cluster_dims__(%d, %d, %d)", c[0], c[1], c[2]);
  text_printf(e, "\n%s(", name);
  for (size_t k = 0; k < fn->arg.n; k++) {
    if (k) text_printf(e, ",\n%*s", (int)strlen(name) + 1, "");
    put_param(e, k, params[k], coherent);
  }
  text_puts(e, ") {\n");
}

// Declares a pointer of another type to the memory of a pointer argument, if
// the view r needs one.
static void put_gmem_view(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const Arg *a = &e->fn->arg.p[e->fn->mem.p[i->imm].arg];
  const char *type = dtype_cuda((DType)i->type);
  if (strcmp(type, dtype_cuda(a->type)) == 0) return;
  const char *base = e->use[r].name;
  e->use[r].name = names_new(e, arena_printf(e->cx, &e->cx->scratch, "%s_%s",
                                             base,
                                             dtype_name((DType)i->type)));
  const char *c = a->written ? "" : "const ";
  text_indent(e);
  text_printf(e, "%s%s *const %s = (%s%s *)%s", c, type, e->use[r].name, c,
              type, base);
  text_end(e);
}

static void put_smem(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const Mem *m = &e->fn->mem.p[i->imm];
  const char *type = dtype_cuda((DType)i->type), *name = mem_name(e, m);
  if (m->ref != r)
    name = arena_printf(e->cx, &e->cx->scratch, "%s_%s", name,
                        dtype_name((DType)i->type));
  bool address = e->address[r];
  e->use[r].name =
    address ? names_new_and(e, name, "_addr") : names_new(e, name);
  if (e->pointer[r]) {
    text_indent(e);
    text_printf(e, "%s *const %s = (%s *)", type, e->use[r].name, type);
    text_printf(e, m->offset ? "(smem + %" PRId64 ")" : "smem", m->offset);
    text_end(e);
  }
  if (address) {
    text_indent(e);
    text_printf(e, "const unsigned %s_addr = smem_addr", e->use[r].name);
    if (m->offset) text_printf(e, " + %" PRId64 "u", m->offset);
    text_end(e);
  }
}

// Declares shared memory and views of arguments at the start of the kernel.
static void put_memory(Emit *e) {
  bool shared = false, address = false;
  for (Ref r = 1; r < e->fn->ins.n; r++) {
    if (e->use[r].how == HOW_DEAD || e->fn->ins.p[r].op != OP_SMEM) continue;
    shared = true;
    address |= e->address[r];
  }
  if (shared) {
    text_indent(e);
    text_puts(e, "extern __shared__ __align__(1024) unsigned char smem[]");
    text_end(e);
  }
  if (address) {
    text_indent(e);
    text_puts(e, "const unsigned smem_addr = "
                  "(unsigned)__cvta_generic_to_shared(smem)");
    text_end(e);
  }
  for (Ref r = 1; r < e->fn->ins.n; r++) {
    if (e->use[r].how == HOW_DEAD) continue;
    if (e->fn->ins.p[r].op == OP_GMEM) put_gmem_view(e, r);
    if (e->fn->ins.p[r].op == OP_SMEM) put_smem(e, r);
  }
  for (Ref r = 1; r < e->fn->ins.n; r++)
    if (e->use[r].how != HOW_DEAD && e->fn->ins.p[r].op == OP_DESC)
      wgmma_descriptor(e, r);
}

// Moves the text after position `from` up to the earlier position `to`,
// together with its entries in `lines`.
static void to_front(Emit *e, size_t to, size_t from, size_t lines) {
  Buf *b = &e->out->text;
  size_t n = b->n - from, count = 0;
  char *head = arena_alloc(e->cx, &e->cx->scratch, n + 1);
  memcpy(head, b->p + from, n);
  memmove(b->p + to + n, b->p + to, from - to);
  memcpy(b->p + to, head, n);
  for (size_t k = 0; k < n; k++) count += head[k] == '\n';
  size_t old = e->out->lines.n;
  for (size_t k = 0; k < count; k++) vec_push(e->cx, e->out->lines, 0);
  uint32_t *p = e->out->lines.p;
  memmove(p + lines + count, p + lines, (old - lines) * sizeof *p);
  memset(p + lines, 0, count * sizeof *p);
}

// Records which helper functions the live instructions call. Visits the
// instructions from last to first, because a later one may use an earlier one.
static void note_functions(Emit *e) {
  for (Ref r = (Ref)e->fn->ins.n; r-- > 1;) {
    const Ins *i = ir_get(e->fn, r);
    ImmKind imm = (ImmKind)op_rows[i->op].imm;
    if (e->use[r].how == HOW_DEAD) continue;
    if (op_flag_kind((Op)i->op) == FLAGS_HINTS) ptx_note_access(e, i);
    if (imm == IMM_INTRIN || imm == IMM_SREG) ptx_note(e, i);
    if (mbar_is(i)) mbar_note(e, i);
    if (bulk_is(i)) bulk_note(e, i);
    if (bulk_is_map(i)) bulk_note_map(e, i);
  }
}

void emit_fn(Ctx *cx, const Fn *fn, int sm, EmitOut *out) {
  fn = pack16_run(cx, fn, sm);
  Emit e = {.cx = cx, .fn = fn, .sm = sm, .out = out, .depth = 1};
  size_t start = out->text.n, lines = out->lines.n;
  e.open = NEW(cx, Ref, fn->ins.n);
  uses_run(&e);
  note_functions(&e);
  known_run(&e);
  retire_note(&e);
  names_reserve_words(&e);
  helper_reserve(&e);
  ptx_reserve(&e);
  mbar_reserve(&e);
  bulk_reserve(&e);
  atomtext_reserve(&e);
  retire_reserve(&e);
  const char *name = out->name = names_kernel(&e);
  const char **params = name_params(&e);
  put_memory(&e);
  for (Ref r = 1; r < fn->ins.n; r++)
    if (e.use[r].how == HOW_NAME) r = put(&e, r);
  e.src = 0;
  text_puts(&e, "}");
  text_newline(&e);
  size_t from = out->text.n;
  out->options = ptxas_options(&e);
  text_printf(&e, "// %s for sm_%d, by cutelua. Compile with %s.\n", name, sm,
              out->options);
  helper_print(&e);
  ptx_print(&e);
  mbar_print(&e);
  bulk_print(&e);
  atomtext_print(&e);
  retire_print(&e);
  put_head(&e, name, params);
  to_front(&e, start, from, lines);
}

void emit_free(EmitOut *out) {
  buf_free(&out->text);
  vec_free(out->lines);
}
// SPDX-License-Identifier: MIT
