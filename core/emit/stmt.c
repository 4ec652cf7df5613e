// Writes statements that move data: stores, fills, vector copies and cp.async.
#include <inttypes.h>
#include <string.h>

#include "atoms/atom.h"
#include "emit/expr.h"

// ---- register stores ----

static void store_reg(Emit *e, Ref mem, int64_t off, Ref value, bool fresh) {
  DType t = ir_type(e->fn, value);
  int wbits = e->regs[ir_get(e->fn, mem)->imm].wbits;
  bool part = uses_bits(ir_type(e->fn, mem)) < wbits;
  expr_reg_open(e, mem, off, t, fresh);
  expr_val(e, value, part ? PR_UNARY : PR_ANY);
  expr_reg_close(e, mem, off, t);
  text_end(e);
}

// Reports whether r is an inlined conversion of an f32 to type t.
static bool rounds_f32(const Emit *e, Ref r, DType t) {
  const Ins *i = ir_get(e->fn, r);
  return i->op == OP_CVT && i->type == t && e->use[r].how == HOW_INLINE &&
         ir_type(e->fn, i->a[0]) == DT_F32;
}

// Reports whether lo and hi are inlined loads of the two halves of one register
// word.
static bool halves_of_word(const Emit *e, Ref lo, Ref hi) {
  const Ins *x = ir_get(e->fn, lo), *y = ir_get(e->fn, hi);
  if (x->op != OP_LD || y->op != OP_LD || x->a[0] != y->a[0] ||
      e->use[lo].how != HOW_INLINE || e->use[hi].how != HOW_INLINE)
    return false;
  const Ins *m = ir_get(e->fn, x->a[0]);
  if (m->op != OP_RMEM || dtype_bits((DType)m->type) != 16 ||
      e->regs[m->imm].type != DT_U32)
    return false;
  int64_t at = uses_int(e, x->a[1]);
  return at % 2 == 0 && uses_int(e, y->a[1]) == at + 1;
}

// Writes both halves of a register word in one assignment. If both values are
// rounded from f32, one conversion instruction produces the pair.
static void store_pair(Emit *e, Ref r, Ref r2) {
  const Ins *i = ir_get(e->fn, r);
  Ref lo = i->a[2], hi = ir_get(e->fn, r2)->a[2];
  DType t = ir_type(e->fn, lo);
  expr_word(e, i->a[0], uses_int(e, i->a[1]) * 16);
  text_puts(e, " = ");
  bool half = t == DT_F16 || t == DT_BF16;
  const Ins *from = ir_get(e->fn, lo);
  if (halves_of_word(e, lo, hi)) {
    expr_word(e, from->a[0], uses_int(e, from->a[1]) * 16);
  } else if (half && rounds_f32(e, lo, t) && rounds_f32(e, hi, t)) {
    Helper pack = t == DT_F16 ? H_PACK_F16 : H_PACK_BF16;
    text_printf(e, "%s(", helper_use(e, pack));
    expr_val(e, ir_get(e->fn, lo)->a[0], PR_ANY);
    text_puts(e, ", ");
    expr_val(e, ir_get(e->fn, hi)->a[0], PR_ANY);
    text_puts(e, ")");
  } else {
    const char *cast = dtype_class(t) == 'I' ? "(unsigned short)" : "";
    text_puts(e, cast);
    expr_val(e, lo, PR_UNARY);
    text_printf(e, " | (unsigned)%s", cast);
    expr_val(e, hi, PR_UNARY);
    text_puts(e, " << 16");
  }
  text_end(e);
}

// Reports whether store i has the form r = a * b + r, where r is a scalar
// register.
static bool grows(const Emit *e, const Ins *i) {
  const Ins *m = ir_get(e->fn, i->a[0]), *v = ir_get(e->fn, i->a[2]);
  if (m->op != OP_RMEM || m->type != DT_F32 || !e->regs[m->imm].scalars ||
      v->op != OP_FMA || e->use[i->a[2]].how != HOW_INLINE)
    return false;
  const Ins *c = ir_get(e->fn, v->a[2]);
  return c->op == OP_LD && e->use[v->a[2]].how == HOW_INLINE &&
         c->a[0] == i->a[0] && uses_int(e, c->a[1]) == uses_int(e, i->a[1]);
}

static void put_growth(Emit *e, const Ins *i) {
  const Ins *v = ir_get(e->fn, i->a[2]);
  text_printf(e, "%s(", helper_use(e, H_FMA_TO));
  expr_reg(e, i->a[0], uses_int(e, i->a[1]), DT_F32);
  for (int k = 0; k < 2; k++) {
    text_puts(e, ", ");
    expr_val(e, v->a[k], PR_ANY);
  }
  text_puts(e, ")");
  text_end(e);
}

// Writes store r. Returns the last instruction that this text covers.
Ref stmt_store(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  text_begin(e, i);
  if (grows(e, i)) {
    put_growth(e, i);
    return r;
  }
  const Ins *m = ir_get(e->fn, i->a[0]);
  if (m->op == OP_RMEM) {
    Ref other = e->use[r].pair;
    if (!other) store_reg(e, i->a[0], uses_int(e, i->a[1]), i->a[2],
                          e->fresh[r]);
    else store_pair(e, r, other);
    return other ? other : r;
  }
  if (i->flags) {
    ptx_access(e, i);
    text_end(e);
    return r;
  }
  DType t = ir_type(e->fn, i->a[2]);
  if (dtype_bits(t) < 8) {
    expr_store_bits(e, i);
    text_end(e);
    return r;
  }
  if (t == (DType)m->type) {
    expr_element(e, i->a[0], i->a[1]);
  } else {
    // The types have the same width, so the bits are reinterpreted.
    text_printf(e, "*(%s *)", dtype_cuda(t));
    expr_pointer(e, i->a[0], i->a[1], PR_UNARY);
  }
  text_puts(e, " = ");
  expr_val(e, i->a[2], PR_ANY);
  text_end(e);
  return r;
}

// Writes an expression for a register word that is filled with copies of a
// value.
static void splat(Emit *e, const Regs *g, Ref value, int bits) {
  const Ins *v = ir_get(e->fn, value);
  unsigned mask = bits < 32 ? (1u << bits) - 1 : ~0u, ones = ~0u / mask;
  if (bits >= g->wbits) {
    expr_as_word(e, value, g->type);
  } else if (v->op == OP_CONST) {
    unsigned u = ((unsigned)v->imm & mask) * ones;
    text_printf(e, u ? "0x%08xu" : "%u", u);
  } else {
    text_puts(e, "(");
    expr_val(e, value, PR_UNARY);
    text_printf(e, " & 0x%xu) * 0x%xu", mask, ones);
  }
}

void stmt_fill(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const Ins *m = ir_get(e->fn, i->a[0]);
  const Regs *g = &e->regs[m->imm];
  int bits = uses_bits((DType)m->type);
  int64_t at = uses_int(e, i->a[1]) * bits, n = i->imm * bits;
  text_begin(e, i);
  if (at % g->wbits || n % g->wbits || bits > g->wbits) {
    for (int64_t k = 0; k < i->imm; k++) {
      if (k) text_indent(e);
      store_reg(e, i->a[0], at / bits + k, i->a[2], false);
    }
    return;
  }
  int64_t first = at / g->wbits, words = n / g->wbits;
  if (words == 1 || g->scalars) {
    for (int64_t k = 0; k < words; k++) {
      if (k) text_wrap(e, " =");
      expr_word(e, i->a[0], at + k * g->wbits);
    }
    text_puts(e, " = ");
  } else {
    if (!e->count) e->count = names_new(e, "j");
    const char *c = e->count;
    text_puts(e, "#pragma unroll");
    text_newline(e);
    text_indent(e);
    text_printf(e, "for (int %s = %" PRId64 "; %s < %" PRId64 "; ++%s) "
                "%s[%s] = ", c, first, c, first + words, c,
                e->use[i->a[0]].name, c);
  }
  splat(e, g, i->a[2], bits);
  text_end(e);
}

void stmt_put(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const Ins *m = ir_get(e->fn, i->a[0]);
  const Regs *g = &e->regs[m->imm];
  int bits = uses_bits((DType)m->type);
  bool few = i->imm <= PICK_SELECTS, part = bits < g->wbits;
  static const Helper put[2][2] = {{H_PUT_LOCAL, H_PUT_LOCAL_PART},
                                   {H_PUT_REGISTER, H_PUT_PART}};
  Ref which = operand_ref(e->fn, i, ROLE_INDEX);
  text_begin(e, i);
  if (expr_chosen(e, i, which)) {
    text_puts(e, " = ");
    expr_as_word(e, i->a[2], g->type);
    text_end(e);
    return;
  }
  text_printf(e, "%s(", helper_use(e, put[few][part]));
  expr_choice(e, i, which);
  text_puts(e, ", ");
  if (part) expr_val(e, i->a[2], PR_ANY);
  else expr_as_word(e, i->a[2], bits > g->wbits ? (DType)m->type : g->type);
  text_puts(e, ")");
  text_end(e);
}

// ---- vector moves ----

typedef struct Side {
  Ref mem, off;
  bool regs;
  // for a side in registers: the declaration of the register array
  const Regs *g;
  int64_t bit;     // bit offset in the register array
  bool fresh;  // whether this is the first write to the register's word
  bool cut;        // memory only: whether the move is split into pieces
  int l2;          // number of bytes that a load prefetches to L2, or 0
  unsigned level2; // L2 eviction priority of a load, or 0
  int64_t piece;   // index of the current piece in a move that is split
} Side;

static Side side_of(const Emit *e, const Operand *o) {
  const Ins *m = ir_get(e->fn, o->ref);
  Side s = {.mem = o->ref, .off = o->off, .regs = m->op == OP_RMEM};
  if (!s.regs) return s;
  s.g = &e->regs[m->imm];
  s.bit = uses_int(e, o->off) * uses_bits((DType)m->type);
  return s;
}

// Returns the type of a register word, or of a memory element, of one side.
static DType side_type(const Emit *e, const Side *s) {
  return s->regs ? s->g->type : ir_type(e->fn, s->mem);
}

// Returns the CUDA vector type of `bits` bits with elements of type t, such as
// `float4`. If there is none, returns uint2 or uint4.
static const char *vector_of(Emit *e, DType t, int64_t bits) {
  static const struct { DType t; const char *name; } of[] = {
    {DT_F32, "float"}, {DT_I32, "int"}, {DT_F64, "double"},
    {DT_I64, "longlong"}, {DT_U64, "ulonglong"}};
  for (size_t k = 0; k < sizeof of / sizeof *of; k++)
    if (of[k].t == t && bits > dtype_bits(t))
      return arena_printf(e->cx, &e->cx->scratch, "%s%" PRId64, of[k].name,
                          bits / dtype_bits(t));
  return bits == 64 ? "uint2" : "uint4";
}

static const char *vector_type(Emit *e, const Side *d, const Side *s,
                               int64_t bits) {
  DType t = side_type(e, d);
  switch (bits) {
    case 8: return "unsigned char";
    case 16: return "unsigned short";
    case 32: return "unsigned";
    case 64: case 128:
      return vector_of(e, t == side_type(e, s) ? t : DT_U32, bits);
    default:
      ctx_fail(e->cx, ERR_ARCH, "line %u: a move of %" PRId64 " bits per "
               "thread cannot be written in CUDA C on sm_%d",
               e->fn->src.p[e->src].line, bits, e->sm);
  }
}

// Writes a load with an L2 prefetch or priority. `type` is the loaded type, or
// NULL for the type of the element.
static void put_hinted(Emit *e, const Side *s, const char *type) {
  if (s->l2) text_printf(e, "%s<%d>(", helper_use(e, H_LD_L2), s->l2);
  else text_printf(e, "%s<%s>(", helper_use(e, H_LD_POLICY),
                   s->level2 == LEVEL2_LAST ? "true" : "false");
  if (type) text_printf(e, "(const %s *)", type);
  expr_pointer(e, s->mem, s->off, type ? PR_UNARY : PR_ANY);
  if (s->cut && s->piece) text_printf(e, " + %" PRId64, s->piece);
  text_puts(e, ")");
}

// Writes one side of a move as an lvalue of C type `type`.
static void put_side(Emit *e, const Side *s, const char *type, bool src) {
  const char *own =
    s->regs ? s->g->ctype : dtype_cuda(ir_type(e->fn, s->mem));
  bool below = !s->regs && dtype_bits(ir_type(e->fn, s->mem)) < 8;
  bool plain = strcmp(own, type) == 0 && !below;
  if (src && (s->l2 || s->level2)) {
    put_hinted(e, s, plain ? NULL : type);
    return;
  }
  if (s->cut) {
    text_printf(e, "((%s%s *)", src ? "const " : "", type);
    expr_pointer(e, s->mem, s->off, PR_UNARY);
    text_printf(e, ")[%" PRId64 "]", s->piece);
    return;
  }
  if (!s->regs && plain) {
    expr_element(e, s->mem, s->off);
    return;
  }
  if (!plain) text_printf(e, "*(%s%s *)", src ? "const " : "", type);
  if (!s->regs) {
    expr_pointer(e, s->mem, s->off, PR_UNARY);
    return;
  }
  if (!plain) text_puts(e, "&");
  expr_word(e, s->mem, s->bit);
}

// Writes the part of a register word that the move reads, as an integer of C
// type `type`.
static void put_part(Emit *e, const Side *s, const char *type) {
  int64_t shift = s->bit % s->g->wbits;
  text_printf(e, "(%s)", type);
  if (shift) text_puts(e, "(");
  expr_word(e, s->mem, s->bit);
  if (shift) text_printf(e, " >> %" PRId64 ")", shift);
}

// Writes an assignment to a part of a register word of d, up to the assigned
// value.
static void open_part(Emit *e, const Side *d, int64_t bits) {
  unsigned mask = ((1u << bits) - 1) << (d->bit % 32);
  expr_word(e, d->mem, d->bit);
  text_puts(e, " = ");
  if (!d->fresh) {
    text_puts(e, "(");
    expr_word(e, d->mem, d->bit);
    text_printf(e, " & 0x%08xu) | ", ~mask);
  }
  text_puts(e, "(unsigned)");
}

static void close_part(Emit *e, const Side *d) {
  if (d->bit % 32) text_printf(e, " << %" PRId64, d->bit % 32);
}

// Reports whether a vector access of `bits` bits can access this side as a
// whole.
static bool aligned(const Side *s, int64_t bits) {
  if (!s->regs) return true;
  if (s->g->scalars && bits != s->g->wbits) return false;
  return s->bit % bits == 0 && bits >= s->g->wbits;
}

static bool partial(const Side *s, int64_t bits) {
  return s->regs && bits < s->g->wbits;
}

// Writes one assignment. Registers or elements of exactly `bits` bits keep
// their type. For other widths, the type is an integer or a vector.
static void move(Emit *e, const Side *d, const Side *s, int64_t bits) {
  const char *type = vector_type(e, d, s, bits);
  const char *own[2];
  const Side *both[2] = {d, s};
  for (int k = 0; k < 2; k++)
    own[k] = both[k]->regs ? both[k]->g->ctype
                           : dtype_cuda(ir_type(e->fn, both[k]->mem));
  if (partial(d, bits)) {
    open_part(e, d, bits);
    if (partial(s, bits)) put_part(e, s, type);
    else put_side(e, s, type, true);
    close_part(e, d);
    text_end(e);
    return;
  }
  int64_t w[2];
  for (int k = 0; k < 2; k++)
    w[k] = both[k]->regs ? both[k]->g->wbits
                         : dtype_bits(ir_type(e->fn, both[k]->mem));
  // Keep the type of a register of `bits` bits. Reinterpreting it through a
  // pointer would take its address.
  if (d->regs && w[0] == bits) type = own[0];
  else if (s->regs && w[1] == bits) type = own[1];
  else if (w[0] == bits && w[1] == bits && !strcmp(own[0], own[1]))
    type = own[0];
  put_side(e, d, type, false);
  text_puts(e, " = ");
  if (partial(s, bits)) put_part(e, s, vector_type(e, d, s, bits));
  else if (d->regs && s->regs && w[0] == bits && w[1] == bits &&
           strcmp(own[0], own[1]) != 0)
    expr_reg(e, s->mem, s->bit / uses_bits(ir_type(e->fn, s->mem)),
             d->g->type);
  else put_side(e, s, type, true);
  text_end(e);
}

// Moves a vector in pieces as wide as the registers of both sides allow. If
// source and destination overlap, moves the pieces from last to first if this
// order preserves the source.
static void move_pieces(Emit *e, Side d, Side s, int64_t bits) {
  int64_t step = 64;
  while (step > 8 && ((d.regs && (step > d.g->wbits || d.bit % step)) ||
                      (s.regs && (step > s.g->wbits || s.bit % step))))
    step /= 2;
  d.cut = !d.regs;
  s.cut = !s.regs;
  bool back = d.regs && s.regs && d.g == s.g && d.bit > s.bit;
  d.fresh &= !back;
  int64_t n = bits / step, to = d.bit, from = s.bit;
  for (int64_t k = 0; k < n; k++) {
    if (k) text_indent(e);
    d.piece = s.piece = back ? n - 1 - k : k;
    d.bit = to + d.piece * step;
    s.bit = from + s.piece * step;
    move(e, &d, &s, step);
    d.fresh = false;
  }
}

// Moves memory to registers word by word through a variable of a vector type.
static void move_in(Emit *e, const Side *d, const Side *s, int64_t bits) {
  const char *type = vector_of(e, d->g->type, bits), *v = names_new(e, "v");
  text_printf(e, "const %s %s = ", type, v);
  put_side(e, s, type, true);
  text_end(e);
  text_indent(e);
  for (int64_t k = 0; k < bits / d->g->wbits; k++) {
    if (k) text_wrap(e, ";");
    expr_word(e, d->mem, d->bit + d->g->wbits * k);
    text_printf(e, " = %s.%c", v, "xyzw"[k]);
  }
  text_end(e);
}

static void move_out(Emit *e, const Side *d, const Side *s, int64_t bits) {
  const char *type = vector_of(e, s->g->type, bits);
  put_side(e, d, type, false);
  text_printf(e, " = make_%s(", type);
  for (int64_t k = 0; k < bits / s->g->wbits; k++) {
    if (k) text_wrap(e, ",");
    expr_word(e, s->mem, s->bit + s->g->wbits * k);
  }
  text_puts(e, ")");
  text_end(e);
}

// Writes a move of `bits` bits to or from registers for which CUDA has no
// vector type.
static void move_words(Emit *e, const Side *d, const Side *s, int64_t bits) {
  const Side *r = d->regs ? d : s;
  bool words = r->g->wbits >= 32 && r->bit % r->g->wbits == 0 &&
               bits >= 2 * r->g->wbits && d->regs != s->regs;
  if (!words) move_pieces(e, *d, *s, bits);
  else if (d->regs) move_in(e, d, s, bits);
  else move_out(e, d, s, bits);
}

// Moves 256 bits between global memory and eight register words.
static void move_256(Emit *e, const Side *d, const Side *s) {
  const Side *r = d->regs ? d : s, *m = d->regs ? s : d;
  text_printf(e, "%s(", helper_use(e, d->regs ? H_LD_256 : H_ST_256));
  if (!d->regs) expr_pointer(e, m->mem, m->off, PR_ANY);
  text_puts(e, d->regs ? "(unsigned *)&" : ", (const unsigned *)&");
  expr_word(e, r->mem, r->bit);
  if (d->regs) text_puts(e, ", ");
  if (d->regs) expr_pointer(e, m->mem, m->off, PR_ANY);
  text_puts(e, ")");
  text_end(e);
}

void stmt_copy(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  Operand dst = operand_of(e->fn, i, ROLE_DST);
  Operand src = operand_of(e->fn, i, ROLE_SRC);
  Ref pred = operand_ref(e->fn, i, ROLE_PRED);
  Side d = side_of(e, &dst), s = side_of(e, &src);
  d.fresh = e->fresh[r];
  s.l2 = ptx_prefetch(e, i->flags);
  s.level2 = ptx_level2(e, i->flags);
  bool wide = i->imm == 256;
  bool fits = wide || ((aligned(&d, i->imm) || partial(&d, i->imm)) &&
                       (aligned(&s, i->imm) || partial(&s, i->imm)));
  text_begin(e, i);
  if (pred) {
    text_puts(e, "if (");
    expr_val(e, pred, PR_ANY);
    text_puts(e, fits ? ") " : ") {");
    e->depth++;
    if (!fits) text_newline(e), text_indent(e);
  }
  if (wide) move_256(e, &d, &s);
  else if (fits) move(e, &d, &s, i->imm);
  else move_words(e, &d, &s, i->imm);
  if (!pred) return;
  e->depth--;
  if (fits) return;
  text_indent(e);
  text_puts(e, "}");
  text_newline(e);
}

// Returns the helper for a cp.async of `bits` bits with these flags.
static const char *async_helper(Emit *e, int64_t bits, unsigned flags,
                                bool pred) {
  if (bits != 32 && bits != 64 && bits != 128)
    ctx_fail(e->cx, ERR_ARG, "cp.async moves 32, 64 or 128 bits, not %" PRId64,
             bits);
  bool global = flags & CPF_GLOBAL, zfill = flags & CPF_ZFILL && pred;
  if (global && bits < 128)
    ctx_fail(e->cx, ERR_ARG, "cp.async.cg (CACHEGLOBAL) moves 128 bits, not %"
             PRId64, bits);
  // first index: zfill; second index: bits / 64
  static const Helper ca[2][3] = {
    {H_CP_ASYNC_CA4, H_CP_ASYNC_CA8, H_CP_ASYNC_CA16},
    {H_CP_ASYNC_CA4_ZFILL, H_CP_ASYNC_CA8_ZFILL, H_CP_ASYNC_CA16_ZFILL}};
  if (ptx_prefetch(e, flags))
    return helper_use(e, global ? H_CP_ASYNC_CG_L2 : H_CP_ASYNC_CA_L2);
  if (!global) return helper_use(e, ca[zfill][bits / 64]);
  return helper_use(e, zfill ? H_CP_ASYNC_CG16_ZFILL : H_CP_ASYNC_CG16);
}

void stmt_async(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  Operand dst = operand_of(e->fn, i, ROLE_DST);
  Operand src = operand_of(e->fn, i, ROLE_SRC);
  Ref pred = operand_ref(e->fn, i, ROLE_PRED);
  bool zfill = i->flags & CPF_ZFILL;
  text_begin(e, i);
  if (pred && !zfill) {
    text_puts(e, "if (");
    expr_val(e, pred, PR_ANY);
    text_puts(e, ") ");
  }
  text_puts(e, async_helper(e, i->imm, i->flags, pred != 0));
  int64_t to = expr_beyond(e, dst.ref, dst.off);
  int64_t from = expr_beyond(e, src.ref, src.off);
  int l2 = ptx_prefetch(e, i->flags);
  if (l2) text_printf(e, "<%d, %d, %" PRId64 ", %" PRId64 ">", l2,
                      (int)i->imm / 8, to, from);
  else if (from) text_printf(e, "<%" PRId64 ", %" PRId64 ">", to, from);
  else if (to) text_printf(e, "<%" PRId64 ">", to);
  text_puts(e, "(");
  expr_address(e, dst.ref, dst.off);
  text_puts(e, ", ");
  expr_base(e, src.ref, src.off);
  if (pred && zfill) {
    text_puts(e, ", ");
    expr_val(e, pred, PR_ANY);
  }
  text_puts(e, ")");
  text_end(e);
}
// SPDX-License-Identifier: MIT
