// Writes intrinsics, inline PTX of the script, and memory accesses with hints.
// If the row of an intrinsic in ir/intrin.h is a C expression, it is inlined.
// If the row is PTX, the intrinsic gets a helper function.
#include "base/soft.h"
#include "ir/intrin.h"
#include "ir/target.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "emit/asm.h"
#include "emit/expr.h"

enum { LANES = 32 };

// A memory access with hints, and the helper function that performs it.
typedef struct Access {
  DType type;
  bool smem, peer, atom, st, cas;
  unsigned level2;  // the L2 eviction priority (HINT_LEVEL2), or 0
  const char *ptx, *name;
  // Atomic min and max of f32: the function that computes the new value for a
  // compare-and-swap. NULL: another access.
  const char *tries;
} Access;

static bool is_call(const char *text) { return strchr(text, '$') &&
                                               !strchr(text, '%'); }
static bool is_plain(const char *text) { return !strpbrk(text, "$%( "); }

static char constraint(DType t) {
  if (t == DT_F32) return 'f';
  if (t == DT_F64) return 'd';
  int bits = dtype_bits(t);
  return bits > 32 ? 'l' : bits == 16 ? 'h' : 'r';
}

// ---- helpers of intrinsics, one for each row and immediate in use ----

static const char *call_name(Emit *e, IntrinId id, int64_t imm) {
  const Intrin *r = intrin_row(id);
  const char *base = is_plain(r->text) ? r->text : r->name;
  const char *type = !is_plain(r->text) && intrin_arity(id)
                       ? dtype_name(intrin_operand(id, 0)) : NULL;
  // The prefix avoids a clash with CUDA's function clock: read_clock.
  bool asks = !intrin_arity(id);
  char *s = arena_printf(e->cx, &e->cx->scratch, "%s%s%s%s",
                         asks ? "read_" : "", base, type ? "_" : "",
                         type ? type : "");
  if (strstr(r->text, "$i"))
    s = arena_printf(e->cx, &e->cx->scratch, "%s_%02" PRIx64, s,
                     (uint64_t)imm);
  if (strstr(r->text, "$m"))
    s = arena_printf(e->cx, &e->cx->scratch, "%s%s", s, intrin_modifiers(imm));
  for (char *p = s; *p; p++)
    if (!isalnum((unsigned char)*p)) *p = '_';
  return s;
}

// Returns the text of an intrinsic's row. For a shuffle in segments of 1 << n
// lanes, returns a call of CUDA's function, in which $w stands for the
// segment's width.
static const char *text_of(IntrinId id, int64_t imm) {
  static const char *const shuffles[] = {
    "__shfl_sync($2, $0, $1$w)", "__shfl_up_sync($2, $0, $1$w)",
    "__shfl_down_sync($2, $0, $1$w)", "__shfl_xor_sync($2, $0, $1$w)"};
  if (!intrin_is_shuffle(id)) return intrin_row(id)->text;
  ShuffleKind kind = intrin_shuffle(id);
  int width = LANES - intrin_segment(imm);
  bool plain = intrin_clamp(imm) == (kind == SH_UP ? 0 : 31) &&
               (width & (width - 1)) == 0;
  return plain ? shuffles[kind] : intrin_row(id)->text;
}

static bool needs_helper(IntrinId id, int64_t imm) {
  const char *t = text_of(id, imm);
  return !is_call(t) && !strchr(t, '(');
}

// ---- special registers of PTX ----

const char *ptx_sreg(Emit *e, SReg r) {
  char *s = arena_printf(e->cx, &e->cx->scratch, "%s", sreg_row(r)->name);
  for (char *p = s; *p; p++)
    if (*p == '.') *p = '_';
  return s;
}

static void print_sreg(Emit *e, SReg r) {
  AsmFn f = {.e = e, .result = "int", .name = ptx_sreg(e, r), .r = "int",
             .movable = true, .after = "  return r;\n"};
  asm_out(&f, "=r", "r");
  asm_print(&f, PTX(e, "\"mov.u32 %%0, %%%%%s;\"", sreg_row(r)->name), " : $o");
}

void ptx_note(Emit *e, const Ins *i) {
  if (i->op == OP_SREG) {
    e->sreg[i->imm] = i->imm >= SR_CLUSTERID_X;
    return;
  }
  IntrinId id = intrin_id(i->imm);
  if (id == IN_SOFT || id == IN_SOFT64) {
    ctx_fail(e->cx, ERR_ARCH, "'%s' of a kernel read from PTX has no CUDA C: "
             "compile the PTX itself",
             soft_name((SoftOp)soft_unpack(intrin_imm(i->imm)).op));
  }
  if (!needs_helper(id, intrin_imm(i->imm))) {
    helper_note(e, intrin_row(intrin_id(i->imm))->text, "");
    return;
  }
  for (size_t k = 0; k < e->nintrin; k++)
    if (e->intrin[k] == i->imm) return;
  int64_t *v = NEW(e->cx, int64_t, e->nintrin + 1);
  if (e->nintrin) memcpy(v, e->intrin, e->nintrin * sizeof *v);
  v[e->nintrin++] = i->imm;
  e->intrin = v;
}

void ptx_reserve(Emit *e) {
  for (int r = 0; r < SR_COUNT; r++)
    if (e->sreg[r]) names_reserve(e, ptx_sreg(e, (SReg)r));
  for (size_t k = 0; k < e->nintrin; k++)
    names_reserve(e, call_name(e, intrin_id(e->intrin[k]),
                               intrin_imm(e->intrin[k])));
  for (size_t k = 0; k < e->naccess; k++) names_reserve(e, e->access[k]->name);
}

// Returns a PTX instruction with its operands, as a string literal.
static const char *ptx_of(Emit *e, IntrinId id, int64_t imm) {
  const char *t = intrin_row(id)->text, *s = "", *i = strstr(t, "$i");
  const char *m = strstr(t, "$m");
  if (m)
    return PTX(e, "\"%.*s%s%s\"", (int)(m - t), t, intrin_modifiers(imm),
               m + 2);
  if (i) return PTX(e, "\"%.*s%" PRId64 "%s\"", (int)(i - t), t, imm, i + 2);
  if (!is_plain(t)) return PTX(e, "\"%s\"", t);
  for (int k = 1; k <= intrin_arity(id); k++) s = PTX(e, "%s, %%%d", s, k);
  return PTX(e, "\"%s %%0%s;\"", t, s);
}

static void print_helper(Emit *e, IntrinId id, int64_t imm) {
  DType t = intrin_result(id);
  int n = intrin_arity(id);
  bool pred = t == DT_BOOL;
  AsmFn f = {.e = e, .result = dtype_cuda(t), .name = call_name(e, id, imm),
             .r = pred ? "unsigned" : dtype_cuda(t),
             .movable = intrin_pure(id),
             .after = pred ? "  return r != 0;\n" : "  return r;\n"};
  asm_out(&f, (char[]){'=', constraint(t), 0}, "r");
  for (int k = 0; k < n; k++) {
    DType u = intrin_operand(id, k);
    char name[2] = {(char)('a' + k), 0};
    asm_param(&f, dtype_cuda(u), name);
    asm_in(&f, constraint(u), u == DT_BOOL ? PTX(e, "(unsigned)%s", name)
                                           : name);
  }
  asm_print(&f, ptx_of(e, id, imm), n ? "\n      : $o : $i" : "\n      : $o");
}

// ---- the expression ----

void ptx_mask(Emit *e, Ref mask) {
  int64_t v;
  if (ir_const(e->fn, mask, &v)) text_printf(e, "0x%08x", (unsigned)v);
  else expr_val(e, mask, PR_ANY);
}

static void put_operand(Emit *e, const Ins *i, int k) {
  IntrinId id = intrin_id(i->imm);
  if (known_folds(id) && known_is(e, i, 1)) {
    expr_at_run_time(e, i->a[k]);
    return;
  }
  if (intrin_row(id)->class == INTRIN_M && k == intrin_arity(id) - 1)
    ptx_mask(e, i->a[k]);
  else
    expr_val(e, i->a[k], PR_ANY);
}

static void put_call(Emit *e, const Ins *i, const char *text) {
  int width = LANES - intrin_segment(intrin_imm(i->imm));
  for (const char *t = text; *t; t++) {
    if (*t != '$') text_printf(e, "%c", *t);
    else if (*++t != 'w') put_operand(e, i, *t - '0');
    else if (width < LANES) text_printf(e, ", %d", width);
  }
}

Prec ptx_value(Emit *e, const Ins *i) {
  IntrinId id = intrin_id(i->imm);
  int64_t imm = intrin_imm(i->imm);
  if (!needs_helper(id, imm)) {
    put_call(e, i, text_of(id, imm));
    return PR_POST;
  }
  text_printf(e, "%s(", call_name(e, id, imm));
  for (int k = 0; k < intrin_arity(id); k++) {
    text_puts(e, k ? ", " : "");
    put_operand(e, i, k);
  }
  text_puts(e, ")");
  return PR_POST;
}

// ---- inline PTX: imm: text; ext: variables that it writes, then values ----

void ptx_asm(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  uint32_t k = 0, outs = i->flags;
  text_begin(e, i);
  text_puts(e, "asm volatile(\"");
  for (const char *s = ir_str(e->fn, (uint32_t)i->imm); *s; s++)
    text_quoted(e, *s);
  text_puts(e, "\"");
  Operand o;
  for (Operands w = operands_of(e->fn, i); operands_next(&w, &o); k++) {
    DType t = ir_type(e->fn, o.ref);
    text_puts(e, k == 0 && outs ? " : " : k == outs ? outs ? " : " : " :: "
                                                     : ", ");
    text_printf(e, "\"%s%c\"(", o.written ? "+" : "", constraint(t));
    if (o.written) {
      text_puts(e, e->use[o.ref].name);
    } else {
      if (t == DT_BOOL) text_puts(e, "(int)");
      expr_val(e, o.ref, t == DT_BOOL ? PR_UNARY : PR_ANY);
    }
    text_puts(e, ")");
  }
  text_puts(e, k == 0 ? " ::: \"memory\")"
                : k == outs ? " :: \"memory\")" : " : \"memory\")");
  text_end(e);
}

// ---- memory accesses with hints ----

int ptx_prefetch(const Emit *e, unsigned flags) {
  unsigned size = hint_get(flags, HINT_PREFETCH);
  return size && target_has(e->sm, FT_PREFETCH) ? 32 << size : 0;
}

unsigned ptx_level2(const Emit *e, unsigned flags) {
  unsigned priority = hint_get(flags, HINT_LEVEL2);
  bool other = priority == LEVEL2_FIRST || priority == LEVEL2_LAST;
  return other && target_has(e->sm, FT_PREFETCH) ? priority : 0;
}

// Returns the type suffix for ld and st (op is NULL) or for atom.op.
static const char *suffix(Emit *e, const Ins *i, DType t, const char *op) {
  int bits = dtype_bits(t);
  bool arith = op && (op[0] == 'm' || strcmp(op, "add") == 0);
  if (t == DT_F32 && (!op || strcmp(op, "add") == 0)) return "f32";
  if (t == DT_F64 && (!op || strcmp(op, "add") == 0)) return "f64";
  if (arith && dtype_is_int(t) && bits == 32)
    return t == DT_I32 ? "s32" : "u32";
  if (arith && dtype_is_int(t) && bits == 64)
    return t == DT_I64 && op[0] == 'm' ? "s64" : "u64";
  if (op && t == DT_F16 && strcmp(op, "add") == 0) return "noftz.f16";
  if (op && t == DT_BF16 && strcmp(op, "add") == 0 &&
      target_has(e->sm, FT_ATOMIC_BF16))
    return "noftz.bf16";
  if (arith || (op && dtype_is_float(t))) text_no_way(e, i, op);
  if (bits == 8 && !op) return "u8";
  if (bits == 16 && (!op || strcmp(op, "cas") == 0)) return "b16";
  if (bits == 32) return "b32";
  if (bits == 64) return "b64";
  text_no_way(e, i, op ? op : "this access");
}

// Returns the PTX of an access with hints, and the properties of its helper.
static Access make_access(Emit *e, const Ins *i) {
  const Mem *m = ir_memof(e->fn, i->a[0]);
  DType t = i->op == OP_LD ? (DType)i->type : ir_type(e->fn, i->a[2]);
  bool atom = i->op == OP_ATOMIC, st = i->op == OP_ST;
  const char *op = atom ? atomic_row((AtomicKind)i->imm)->name : NULL;
  unsigned f = i->flags;
  const char *sem = hint_text(f, HINT_SEM);
  const char *scope = hint_text(f, HINT_SCOPE);
  // An atomic without an order is relaxed, and has GPU scope by default. Scopes
  // make no difference in the block's shared memory.
  bool matters = *scope && strcmp(scope, ".gpu") != 0 && m->space != SP_SMEM;
  if (atom && matters && !*sem) sem = ".relaxed";
  if (!*sem) scope = "";
  if (*sem && !*scope) scope = ".gpu";
  bool tries = atom && t == DT_F32 && (i->imm == AT_MIN || i->imm == AT_MAX);
  const char *put = tries ? "cas" : op;
  Access a = {.type = t, .smem = m->space == SP_SMEM,
              .peer = m->space == SP_DSMEM, .atom = atom, .st = st,
              .cas = atom && i->imm == AT_CAS,
              .tries = !tries ? NULL : i->imm == AT_MIN ? "fminf" : "fmaxf"};
  bool global = !a.smem && !a.peer;  // cache hints apply only to global memory
  a.level2 = global ? ptx_level2(e, f) : 0;
  a.ptx = arena_printf(
    e->cx, &e->cx->scratch, "%s%s%s%s%s%s%s%s%s%s.%s",
    atom ? "atom" : st ? "st" : "ld", sem, scope,
    a.smem ? ".shared" : a.peer ? "" : ".global",
    global ? hint_text(f, HINT_COP) : "",
    global ? hint_text(f, HINT_EVICT) : "",
    a.level2 ? ".L2::cache_hint" : "",
    global && ptx_prefetch(e, f) ? hint_text(f, HINT_PREFETCH) : "",
    atom ? "." : "", atom ? put : "",
    tries ? "b32" : suffix(e, i, t, op));
  char *s = arena_printf(e->cx, &e->cx->scratch, "%s%s%s%s", a.ptx,
                         tries ? "." : "", tries ? a.tries : "",
                         a.level2 ? hint_field(HINT_LEVEL2)->value[a.level2].ptx
                                  : "");
  for (char *p = s; *p; p++)
    if (!isalnum((unsigned char)*p)) *p = '_';
  a.name = s;
  return a;
}

void ptx_note_access(Emit *e, const Ins *i) {
  if (!i->flags || ir_get(e->fn, i->a[0])->op == OP_RMEM) return;
  Access a = make_access(e, i);
  for (size_t k = 0; k < e->naccess; k++)
    if (strcmp(e->access[k]->name, a.name) == 0 && e->access[k]->type == a.type)
      return;
  Access **v = NEW(e->cx, Access *, e->naccess + 1);
  if (e->naccess) memcpy(v, e->access, e->naccess * sizeof *v);
  if (a.level2) helper_use(e, H_L2_POLICY);
  v[e->naccess] = NEW(e->cx, Access, 1);
  *v[e->naccess++] = a;
  e->access = v;
}

static const char *address_of(const Access *a) {
  return a->smem   ? "(unsigned)__cvta_generic_to_shared(p)"
         : a->peer ? "p"
                   : "__cvta_generic_to_global(p)";
}

// Writes an atomic min or max of f32 as a loop of compare-and-swaps. The loop
// ends when no other thread has changed the element in between.
static void print_tries(Emit *e, const Access *a) {
  text_printf(e, "static __device__ __forceinline__ float %s(float *p, "
              "float x) {\n  int old = *(volatile int *)p, seen;\n  do {\n"
              "    seen = old;\n    asm volatile(\"%s %%0, [%%1], %%2, %%3;"
              "\"\n        : \"=r\"(old) : \"%c\"(%s), \"r\"(seen),\n"
              "          \"r\"(__float_as_int(%s(__int_as_float(seen), x)))"
              "\n        : \"memory\");\n  } while (old != seen);\n"
              "  return __int_as_float(old);\n}\n", a->name, a->ptx,
              a->smem ? 'r' : 'l', address_of(a), a->tries);
}

static void print_access(Emit *e, const Access *a) {
  if (a->tries) {
    print_tries(e, a);
    return;
  }
  const char *t = dtype_cuda(a->type);
  bool small = dtype_bits(a->type) == 8, value = a->st || a->atom;
  char c = small ? 'r' : constraint(a->type);
  AsmFn f = {.e = e, .result = a->st ? "void" : t, .name = a->name,
             .r = a->st ? NULL : small ? "unsigned" : t,
             .after = a->st ? "" : small ? "  return (unsigned char)r;\n"
                                         : "  return r;\n"};
  const char *ptx = "";
  if (!a->st) asm_out(&f, (char[]){'=', c, 0}, "r"), ptx = "%0, ";
  asm_param(&f, PTX(e, "%s%s *", value ? "" : "const ", t), "p");
  ptx = PTX(e, "%s[%%%d]", ptx, asm_in(&f, a->smem ? 'r' : 'l',
                                       address_of(a)));
  if (a->level2)
    ptx = PTX(e, "%s, %%%d", ptx, asm_in(&f, 'l', a->level2 == LEVEL2_LAST
      ? "l2_policy(true)" : "l2_policy(false)"));
  if (a->cas) ptx = PTX(e, "%s, %%%d", ptx, asm_arg(&f, t, "y", c));
  if (value) {
    asm_param(&f, t, "x");
    ptx = PTX(e, "%s, %%%d", ptx, asm_in(&f, c, small ? "(unsigned)x" : "x"));
  }
  asm_print(&f, PTX(e, "\"%s %s;\"", a->ptx, ptx),
            a->st ? "\n      : : $i\n      : \"memory\""
                  : "\n      : $o : $i\n      : \"memory\"");
}

// Writes an LD, ST or ATOMIC with hints as a call of its helper.
Prec ptx_access(Emit *e, const Ins *i) {
  Access a = make_access(e, i);
  bool view = a.type != ir_type(e->fn, i->a[0]);
  text_printf(e, "%s(", a.name);
  if (view) text_printf(e, "(%s%s *)(", a.st || a.atom ? "" : "const ",
                        dtype_cuda(a.type));
  expr_pointer(e, i->a[0], i->a[1], PR_ANY);
  if (view) text_puts(e, ")");
  if (a.cas) {
    text_puts(e, ", ");
    expr_val(e, operand_ref(e->fn, i, ROLE_COMPARED), PR_ANY);
  }
  if (a.st || a.atom) {
    text_puts(e, ", ");
    expr_val(e, i->a[2], PR_ANY);
  }
  text_puts(e, ")");
  return PR_POST;
}

void ptx_print(Emit *e) {
  for (int r = 0; r < SR_COUNT; r++)
    if (e->sreg[r]) print_sreg(e, (SReg)r);
  for (size_t k = 0; k < e->nintrin; k++)
    print_helper(e, intrin_id(e->intrin[k]), intrin_imm(e->intrin[k]));
  for (size_t k = 0; k < e->naccess; k++) print_access(e, e->access[k]);
}
// SPDX-License-Identifier: MIT
