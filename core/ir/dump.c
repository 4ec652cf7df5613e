// Writes an Fn as readable text. Uses the script's names, writes constants in
// place, names operands, and indents regions.
#include <inttypes.h>
#include <string.h>

#include "atoms/atom.h"
#include "ir/intrin.h"
#include "ir/operands.h"

struct Dump {
  Ctx *cx;
  const Fn *fn;
  Buf *out;
  // for each name (an index into Fn.text): the first value that has the name
  Ref *first;
  // for each name: 1 + the index of the first memory object that has the name
  uint32_t *mem;
  uint32_t src;   // source line that was printed last
  bool bare;      // whether to omit the script's names and lines
  int depth;
};

#define PUT(d, ...) buf_printf((d)->cx, (d)->out, __VA_ARGS__)

// ---- names ----

Dump *dump_new(Ctx *cx, const Fn *fn, Buf *out) {
  Dump *d = arena_zero(cx, &cx->scratch, sizeof *d);
  *d = (Dump){.cx = cx, .fn = fn, .out = out, .depth = 1};
  d->first = arena_zero(cx, &cx->scratch, fn->text.n * sizeof(Ref));
  d->mem = arena_zero(cx, &cx->scratch, fn->text.n * sizeof(uint32_t));
  for (size_t k = fn->mem.n; k-- > 0;)
    if (fn->mem.p[k].name) d->mem[fn->mem.p[k].name] = (uint32_t)k + 1;
  for (Ref r = (Ref)fn->ins.n; r-- > 1;)
    if (fn->ins.p[r].name && !ir_is_mem(fn, r)) d->first[fn->ins.p[r].name] = r;
  return d;
}

// Writes the name of a memory object. Appends the object's number if another
// object has the same name, and the element type if the object is recast.
static void put_object(Dump *d, Ref r) {
  const Mem *m = ir_memof(d->fn, r);
  uint32_t k = (uint32_t)ir_get(d->fn, r)->imm;
  bool named = m->name && !d->bare;
  if (named) PUT(d, "%s", ir_str(d->fn, m->name));
  else PUT(d, "%s%u", ir_space(m->space), k);
  if (named && d->mem[m->name] != k + 1) PUT(d, ".%u", k);
  if (m->ref != r) PUT(d, ":%s", dtype_name(ir_type(d->fn, r)));
}

static void put_const(Dump *d, const Ins *i) {
  DType t = (DType)i->type;
  if (dtype_is_float(t))
    PUT(d, "%.9g", dtype_to_double(t, (uint64_t)i->imm));
  else if (t == DT_BOOL) PUT(d, i->imm ? "true" : "false");
  else PUT(d, "%" PRId64, i->imm);
}

static void put_value(Dump *d, Ref r) {
  const Ins *i = ir_get(d->fn, r);
  if (i->op == OP_CONST) put_const(d, i);
  else if (ir_is_mem(d->fn, r)) put_object(d, r);
  else if (!i->name || d->bare) PUT(d, "%%%u", r);
  else if (d->first[i->name] == r) PUT(d, "%s", ir_str(d->fn, i->name));
  else PUT(d, "%s.%u", ir_str(d->fn, i->name), r);
}

// ---- operands ----

// Writes the registers of a run: 0 1 2 3 as "0..3", 0 2 4 6 as "0..6 by 2",
// other runs as "0,1,8,9".
static void put_run(Dump *d, const Operand *o) {
  uint32_t by = o->n > 1 ? o->reg[1] - o->reg[0] : 1;
  bool even = o->n > 2;
  for (int k = 1; k < o->n; k++) even &= o->reg[k] - o->reg[k - 1] == by;
  if (even && (int32_t)by > 0) {
    PUT(d, by == 1 ? "%u..%u" : "%u..%u by %u", o->reg[0], o->reg[o->n - 1],
        by);
    return;
  }
  for (int k = 0; k < o->n; k++) PUT(d, k ? ",%u" : "%u", o->reg[k]);
}

static void put_operand(Dump *d, const Operand *o) {
  put_value(d, o->ref);
  if (o->kind != OPERAND_MEM && o->kind != OPERAND_RUN) return;
  PUT(d, "[");
  if (o->kind == OPERAND_RUN) put_run(d, o);
  else put_value(d, o->off);
  PUT(d, "]");
}

static void put_operands(Dump *d, const Ins *i) {
  Operand o;
  const char *between = " ";
  for (Operands w = operands_of(d->fn, i); operands_next(&w, &o);) {
    if (!o.ref) continue;
    PUT(d, "%s", between);
    if (o.optional && o.kind == OPERAND_PRED) PUT(d, "if ");
    put_operand(d, &o);
    between = ", ";
  }
}

// ---- Ins.imm ----

static void put_text(Dump *d, const char *s) {
  PUT(d, " \"");
  for (; *s; s++) {
    if (*s == '\n') PUT(d, "\\n");
    else if (*s == '"' || *s == '\\') PUT(d, "\\%c", *s);
    else PUT(d, "%c", *s);
  }
  PUT(d, "\"");
}

static void put_mem(Dump *d, const Mem *m) {
  if (m->count >= 0) PUT(d, " x%" PRId64, m->count);
  PUT(d, " align %" PRId64, m->align);
  if (mem_is_shared(m))
    PUT(d, " at %" PRId64, m->offset);
  if (m->layout) PUT(d, " %s", ir_str(d->fn, m->layout));
}

static void put_imm(Dump *d, const Ins *i) {
  switch ((ImmKind)op_rows[i->op].imm) {
    case IMM_NONE: break;
    case IMM_RAW:
      PUT(d, " ");
      if (i->op == OP_DESC) PUT(d, "0x%016" PRIx64, (uint64_t)i->imm);
      else put_const(d, i);
      break;
    case IMM_ARG: PUT(d, " #%" PRId64, i->imm); break;
    case IMM_MEM: put_mem(d, &d->fn->mem.p[i->imm]); break;
    case IMM_TEXT:
      if (i->imm) put_text(d, ir_str(d->fn, (uint32_t)i->imm));
      break;
    case IMM_SREG: PUT(d, " %s", sreg_row((SReg)i->imm)->name); break;
    case IMM_MATH: PUT(d, " %s", math_name((MathFn)i->imm)); break;
    case IMM_INTRIN:
      PUT(d, " %s", intrin_row(intrin_id(i->imm))->name);
      if (intrin_imm(i->imm)) PUT(d, " #0x%" PRIx64, intrin_imm(i->imm));
      break;
    case IMM_ELEMENTS: PUT(d, " %" PRId64 " elements", i->imm); break;
    case IMM_BITS: PUT(d, " %" PRId64 " bits", i->imm); break;
    case IMM_MMA: PUT(d, " %s", atom_mma((int)i->imm)->name); break;
    case IMM_COPY: PUT(d, " %s", atom_copy((int)i->imm)->name); break;
    case IMM_UNROLL:
      if (i->imm) PUT(d, " unroll %" PRId64, i->imm);
      break;
    case IMM_BARRIER:
      // If operand a[1] is present, it is the barrier's number.
      if (i->a[1]) break;
      PUT(d, " #%" PRId64, i->imm);
      break;
    case IMM_GROUPS: PUT(d, " #%" PRId64, i->imm); break;
    case IMM_REGISTERS: PUT(d, " #%" PRId64, i->imm); break;
    case IMM_MODE:
      PUT(d, " %s of mode %" PRId64,
          tensormap_field((TensorMapField)i->flags), i->imm);
      break;
    case IMM_FENCE: PUT(d, " %s", fence_row((FenceKind)i->imm)->name); break;
    case IMM_ATOMIC: PUT(d, " %s", atomic_row((AtomicKind)i->imm)->name); break;
    case IMM_LEVELS:
      if (i->imm > 1) PUT(d, " %" PRId64 " regions", i->imm);
      break;
  }
}

static void put_hints(Dump *d, unsigned flags, int from) {
  for (int f = from; f < HINT_COUNT; f++)
    PUT(d, "%s", hint_text(flags, (HintId)f));
}

static void put_flags(Dump *d, const Ins *i) {
  unsigned f = i->flags;
  switch (op_flag_kind((Op)i->op)) {
    case FLAGS_NONE: case FLAGS_OUTPUTS: case FLAGS_FIELD: break;
    case FLAGS_TCGEN05:
      if (f & TCF_PAIR) PUT(d, ".cta_group_2");
      if (f & TCF_UNALIGNED) PUT(d, ".unaligned");
      if (i->op == OP_TCFENCE)
        PUT(d, f & TCF_AFTER ? ".after_thread_sync" : ".before_thread_sync");
      break;
    case FLAGS_HINTS: put_hints(d, f, 0); break;
    case FLAGS_LEVEL2: put_hints(d, f, HINT_PREFETCH); break;
    case FLAGS_CPASYNC:
      PUT(d, "%s%s%s", f & CPF_GLOBAL ? ".cg" : "",
          f & CPF_ZFILL ? ".zfill" : "", hint_text(f, HINT_PREFETCH));
      break;
    case FLAGS_MBAR:
      put_hints(d, f, HINT_SEM);
      PUT(d, "%s%s%s", f & MBF_ARRIVE ? ".arrive" : "",
          f & MBF_TEST ? ".test" : "", f & MBF_NOINC ? ".noinc" : "");
      break;
    case FLAGS_CLUSTER:
      PUT(d, "%s%s", f & CLF_RELAXED ? ".relaxed" : "",
          f & CLF_UNALIGNED ? "" : ".aligned");
      break;
    case FLAGS_BARRIER:
      PUT(d, "%s", f & BRF_UNALIGNED ? ".unaligned" : "");
      break;
    case FLAGS_BULK:
      if (f & BKF_REDUCES)
        PUT(d, ".%s", atomic_row((AtomicKind)(f & BKF_ATOMIC))->name);
      PUT(d, "%s", f & BKF_IM2COL ? ".im2col" : f & BKF_ROWS ? ".rows" : "");
      break;
    case FLAGS_READ: PUT(d, "%s", f & BKF_READ ? ".read" : ""); break;
    case FLAGS_REGISTERS: PUT(d, "%s", f & RGF_INC ? ".inc" : ".dec"); break;
  }
}

// ---- the walk ----

static void put_line(Dump *d, const Ins *i) {
  const Src *s = &d->fn->src.p[i->src];
  if (!i->src || i->src == d->src || d->bare) return;
  // name of the file or chunk, as in Lua's debug info
  const char *file = ir_str(d->fn, s->file);
  file = *file == '@' || *file == '=' ? file + 1 : "chunk";
  PUT(d, "%*s-- %.*s:%u\n", 2 * d->depth, "", (int)strcspn(file, "\n"), file,
      s->line);
  d->src = i->src;
}

void dump_ins(Dump *d, Ref r) {
  const Ins *i = ir_get(d->fn, r);
  if (i->type != DT_NONE) {
    put_value(d, r);
    PUT(d, " = %s ", dtype_name((DType)i->type));
  }
  PUT(d, "%s", op_name((Op)i->op));
  put_flags(d, i);
  put_imm(d, i);
  put_operands(d, i);
}

static void put_head(Dump *d) {
  const Fn *fn = d->fn;
  PUT(d, "fn %s, %" PRId64 " bytes of shared memory\n",
      ir_str(fn, fn->name), fn->smem_bytes);
  for (size_t k = 0; k < fn->arg.n; k++) {
    const Arg *a = &fn->arg.p[k];
    PUT(d, "  arg %zu %s%s %s%s\n", k, dtype_name(a->type),
        a->pointer ? "*" : "", ir_str(fn, a->name),
        ir_arg_shared(fn, k) ? " shared" : "");
  }
}

void dump_fn(Ctx *cx, const Fn *fn, bool bare, Buf *out) {
  Dump *d = dump_new(cx, fn, out);
  d->bare = bare;
  if (!bare) put_head(d);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    unsigned effect = op_effect((Op)i->op);
    if (i->op == OP_CONST || ir_is_aside(i)) continue;
    if (effect & EF_CLOSES) d->depth--;
    else put_line(d, i);
    PUT(d, "%*s", 2 * d->depth, "");
    dump_ins(d, r);
    PUT(d, "\n");
    if (effect & EF_OPENS) d->depth++;
  }
}
// SPDX-License-Identifier: MIT
