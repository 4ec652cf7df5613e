// What is written where: which values are live, which stand inside the
// expressions that use them and which get a line and a name, and which
// helpers' shapes the atoms need. One walk backwards: all users of a value
// are decided before it is.
#include <string.h>

#include "atoms/atom.h"
#include "emit/inside.h"

enum {
  MAX_WEIGHT = 14,  // expressions in one statement
  MANY = 1024,      // accesses to elements of registers
  ROLL = 100,       // instructions of a loop's body
  UNROLLED = 1 << 15,  // of the loops that one line of the script wrote
  TRIPS = 16, MOST_TRIPS = 32  // of a loop that does not tell, or has more
};

typedef struct Flow {
  Emit *e;
  const Fn *fn;
  Ref *loop;        // of each instruction: head of its innermost loop
  Ref *end;         // of a region head: its END
  Ref *vset;        // of a VAR: its next VSET after the walk's place
  Ref **regs;       // of a register array: next write of each element
  bool **wrote;     // of a register array: was this word written yet?
  Ref memory;       // next instruction that touches or orders memory
} Flow;

int64_t uses_int(const Emit *e, Ref r) {
  return ir_get(e->fn, r)->imm;
}

// Types of 6 bits have a byte each: they divide no register.
int uses_bits(DType t) {
  int bits = dtype_bits(t);
  return bits == 6 ? 8 : bits;
}

int64_t uses_reg(const Emit *e, uint32_t x) {
  (void)e;
  return x;
}

int uses_mma_regs(const Emit *e, const Ins *i, int o) {
  const AtomMma *row = atom_mma((int)i->imm);
  (void)e;
  return row->kind == MK_FMA ? 1 : row->nreg[o];
}

bool uses_run_of_words(const Emit *e, Ref mem, const uint32_t *off, int n) {
  const Ins *m = ir_get(e->fn, mem);
  const Regs *g = &e->regs[m->imm];
  int64_t bits = uses_bits((DType)m->type);
  for (int k = 0; k < n; k++) {
    int64_t at = uses_reg(e, off[k]) * bits;
    int64_t want = uses_reg(e, off[0]) * bits + k * g->wbits;
    if (at % g->wbits || at != want) return false;
  }
  return true;
}

// ---- operands ----

// Values that instruction i reads, one after the other; 0 when k is past the
// end, UINT32_MAX for a place without a value.
static Ref operand(const Flow *f, const Ins *i, uint32_t k) {
  const uint32_t none = UINT32_MAX;
  uint32_t n = (uint32_t)op_arity((Op)i->op);
  if (k < n) return i->a[k] ? i->a[k] : none;
  k -= n;
  if (k >= i->nx) return 0;
  uint32_t x = f->fn->ext.p[i->ext + k];
  switch ((int)i->op) {
    case OP_COPY: case OP_CPASYNC: case OP_PRINTF: case OP_ATOMIC:
    case OP_ASM:
      return x ? x : none;
    case OP_MATRIX: {
      const AtomCopy *row = atom_copy((int)i->imm);
      bool load = row->op == CO_LDSM;
      bool store = row->op == CO_STSM;
      if (load && k == i->nx - 1) return x;
      if (store && k == 1) return x;
      if (k == 0) return x;
      if (k == (store ? 2u : 1u + (uint32_t)row->num)) return x;
      return none;
    }
    case OP_MMA: {
      uint32_t at = 0;
      for (int o = 0; o < atom_mma((int)i->imm)->nop; o++) {
        if (k == at) return x;
        at += 1 + (uint32_t)uses_mma_regs(f->e, i, o);
      }
      return none;
    }
    default: return none;
  }
}

// ---- writes to registers and variables ----

// Base elements that bits [at, at + n) of a register array lie in.
static void reg_range(const Flow *f, Ref mem, int64_t off, int64_t bits,
                      int64_t *lo, int64_t *hi) {
  const Ins *m = ir_get(f->fn, mem);
  int64_t base = uses_bits(f->fn->mem.p[m->imm].type);
  int64_t at = off * uses_bits((DType)m->type);
  *lo = at / base;
  *hi = (at + bits + base - 1) / base;
  int64_t count = f->fn->mem.p[m->imm].count;
  if (*hi > count) *hi = count;
}

// Bits that a register of an atom's destination m covers.
static int64_t reg_bits(const Flow *f, const Ins *i, const Ins *m) {
  char c = i->op == OP_MMA ? atom_mma((int)i->imm)->regs[0] : 'r';
  int bits = c == 'z' ? 128 : c == 'd' || c == 'l' ? 64 : 32;
  int wbits = f->e->regs[m->imm].wbits;
  return bits > wbits ? bits : wbits;
}

// Calls `tell` for every write of instruction r to registers.
typedef void (*Tell)(Flow *f, Ref by, Ref mem, int64_t off, int64_t bits);

static void each_write(Flow *f, Ref r, Tell tell) {
  const Ins *i = ir_get(f->fn, r);
  const uint32_t *x = &f->fn->ext.p[i->ext];
  int64_t bits, n = 0;
  switch ((int)i->op) {
    case OP_ST: case OP_FILL:
      if (ir_get(f->fn, i->a[0])->op != OP_RMEM) break;
      bits = uses_bits(ir_type(f->fn, i->a[0]));
      tell(f, r, i->a[0], uses_int(f->e, i->a[1]),
           i->op == OP_FILL ? bits * i->imm : bits);
      break;
    case OP_COPY:
      if (ir_get(f->fn, x[0])->op == OP_RMEM)
        tell(f, r, x[0], uses_int(f->e, x[1]), i->imm);
      break;
    case OP_MMA: n = uses_mma_regs(f->e, i, 0); break;
    case OP_MATRIX:
      if (atom_copy((int)i->imm)->op != CO_STSM)
        n = atom_copy((int)i->imm)->num;
      break;
    default: break;
  }
  if (n) bits = reg_bits(f, i, ir_get(f->fn, x[0]));
  for (int64_t k = 1; k <= n; k++)
    tell(f, r, x[0], uses_reg(f->e, x[k]), bits);
}

// Backwards: r is now the next write of these elements.
static void next_write(Flow *f, Ref by, Ref mem, int64_t off, int64_t bits) {
  int64_t lo, hi;
  reg_range(f, mem, off, bits, &lo, &hi);
  for (int64_t k = lo; k < hi; k++) f->regs[ir_get(f->fn, mem)->imm][k] = by;
}

// Forwards: is this the first write to its word? Then a store to a part of
// it need not keep the rest. In a loop around the store, but not around the
// array, an earlier pass may have written it.
static void first_write(Flow *f, Ref by, Ref mem, int64_t off, int64_t bits) {
  const Ins *m = ir_get(f->fn, mem);
  int64_t wbits = f->e->regs[m->imm].wbits;
  int64_t at = off * uses_bits((DType)m->type), end = at + bits;
  bool *wrote = f->wrote[m->imm];
  Ref base = f->fn->mem.p[m->imm].ref;
  if (!wrote[at / wbits] && f->loop[by] == f->loop[base])
    f->e->fresh[by] = true;
  for (; at < end; at = (at / wbits + 1) * wbits) wrote[at / wbits] = true;
}

// Instructions that a load from memory must not move past.
static bool orders_memory(const Flow *f, const Ins *i) {
  switch ((int)i->op) {
    case OP_LD: return i->flags != 0;  // with an order, or past the caches
    case OP_ST: case OP_COPY: {
      Ref mem = i->op == OP_ST ? i->a[0] : f->fn->ext.p[i->ext];
      return ir_get(f->fn, mem)->op != OP_RMEM;
    }
    case OP_CPASYNC: case OP_CPCOMMIT: case OP_CPWAIT: case OP_MATRIX:
    case OP_BAR: case OP_BARARRIVE: case OP_SYNCWARP: case OP_FENCE:
    case OP_ATOMIC: case OP_ASK: case OP_ASM: case OP_PRINTF: case OP_TRAP:
    case OP_FOR: case OP_LOOP:
    case OP_BREAKIF: case OP_IF: case OP_ELSE: case OP_END:
      return true;
    default: return false;
  }
}

// ---- decisions ----

static void use(Flow *f, Ref r, Ref at, uint32_t times, bool cross, Ref root) {
  Use *u = &f->e->use[r];
  u->uses += times;
  if (at > u->last) u->last = at;
  if (cross || f->loop[r] != f->loop[at]) u->cross = true;
  if (u->uses == times) u->root = root;
}

// What stands as several statements reads its operands again when a part of
// it is written.
static bool has_steps(const Ins *i) {
  return i->op == OP_FILL || i->op == OP_COPY;
}

// Does instruction `by` write only after the last statement that needs u has
// read all?
static bool writes_behind(const Flow *f, Ref by, const Use *u) {
  return by > u->last || (by == u->last && !has_steps(ir_get(f->fn, by)));
}

// Can a read of registers or a variable wait until its last use?
static bool can_wait(const Flow *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  const Use *u = &f->e->use[r];
  if (u->cross || (i->op == OP_LD && i->flags)) return false;
  if (i->op == OP_VGET) return writes_behind(f, f->vset[i->a[0]], u);
  const Ins *m = ir_get(f->fn, i->a[0]);
  if (m->op != OP_RMEM) return u->uses == 1 && writes_behind(f, f->memory, u);
  int64_t lo, hi, bits = uses_bits((DType)m->type);
  reg_range(f, i->a[0], uses_int(f->e, i->a[1]), bits, &lo, &hi);
  for (int64_t k = lo; k < hi; k++)
    if (!writes_behind(f, f->regs[m->imm][k], u)) return false;
  return bits >= f->e->regs[m->imm].wbits || u->uses == 1;
}

static bool plus_constant(const Fn *fn, const Ins *i) {
  int64_t v;
  return i->op == OP_ADD && dtype_is_int((DType)i->type) &&
         ir_const(fn, i->a[1], &v);
}

// Is `set` where the variable that has r's name becomes r?
static bool becomes(const Flow *f, Ref r, Ref set) {
  const Ins *s = ir_get(f->fn, set);
  return s->op == OP_VSET && s->a[1] == r &&
         ir_get(f->fn, s->a[0])->name == ir_get(f->fn, r)->name;
}

static How decide(Flow *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  Use *u = &f->e->use[r];
  unsigned flags = op_flags((Op)i->op);
  switch ((int)i->op) {
    case OP_NOP: return HOW_DEAD;
    case OP_CONST: return u->uses ? HOW_INLINE : HOW_DEAD;
    case OP_ARG: case OP_GMEM: case OP_SMEM: case OP_RMEM: case OP_VAR:
      return u->uses ? HOW_NAME : HOW_DEAD;
    case OP_VGET: case OP_LD:
      if (!u->uses) return HOW_DEAD;
      return can_wait(f, r) ? HOW_INLINE : HOW_NAME;
    default: break;
  }
  if (!(flags & OPF_P)) return HOW_NAME;
  if (!u->uses) return HOW_DEAD;
  if (i->op == OP_SREG) return HOW_NAME;
  if (plus_constant(f->fn, i) && !i->name) return HOW_INLINE;
  if (u->uses > 1 || u->cross) return HOW_NAME;
  if (i->name && !becomes(f, r, u->root)) return HOW_NAME;
  Use *root = &f->e->use[u->root];
  return root->weight >= MAX_WEIGHT ? HOW_NAME : HOW_INLINE;
}

// Passes the uses of r, which was decided, on to its operands. The limit
// and step of a loop are read until its end.
static void spread(Flow *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  Use *u = &f->e->use[r];
  bool in = u->how == HOW_INLINE;
  Ref root = in && u->root ? u->root : r;
  if (in && i->op != OP_CONST) f->e->use[root].weight++;
  if (ir_is_mem(f->fn, r) && ir_memof(f->fn, r)->ref != r)  // a recast view
    use(f, ir_memof(f->fn, r)->ref, r, 1, false, r);
  for (uint32_t k = 0;; k++) {
    Ref x = operand(f, i, k);
    if (x == 0) break;
    if (x == UINT32_MAX) continue;
    Ref at = in ? u->last : i->op == OP_FOR && k ? f->end[r] : r;
    use(f, x, at, in ? u->uses : 1, in && u->cross, root);
  }
}

// Does instruction q, inside another's expression, read what the store r
// writes to registers?
static bool reads_stored(const Flow *f, Ref q, Ref r) {
  const Ins *i = ir_get(f->fn, q), *st = ir_get(f->fn, r);
  if (i->op != OP_LD || f->e->use[q].how != HOW_INLINE) return false;
  const Ins *m = ir_get(f->fn, i->a[0]), *d = ir_get(f->fn, st->a[0]);
  if (m->op != OP_RMEM || m->imm != d->imm) return false;
  int64_t lo, hi, from, to;
  reg_range(f, i->a[0], uses_int(f->e, i->a[1]),
            uses_bits((DType)m->type), &lo, &hi);
  reg_range(f, st->a[0], uses_int(f->e, st->a[1]),
            uses_bits((DType)d->type), &from, &to);
  return lo < to && from < hi;
}

// The store to the upper half of the word whose lower half r stores, if it
// is the next line and needs nothing of the lower half.
static Ref other_half(const Flow *f, Ref r) {
  const Emit *e = f->e;
  const Ins *i = ir_get(f->fn, r), *m = ir_get(f->fn, i->a[0]);
  if (m->op != OP_RMEM || dtype_bits((DType)m->type) != 16 ||
      uses_int(e, i->a[1]) % 2 || e->regs[m->imm].type == DT_F32)
    return 0;
  Ref n = r + 1;
  for (; n < f->fn->ins.n && !stmt_is_line(e, n); n++)
    if (reads_stored(f, n, r)) return 0;
  if (n >= f->fn->ins.n) return 0;
  const Ins *j = ir_get(f->fn, n);
  bool ok = j->op == OP_ST && j->a[0] == i->a[0] &&
            uses_int(e, j->a[1]) == uses_int(e, i->a[1]) + 1;
  return ok ? n : 0;
}

static void find_regions(Flow *f) {
  const Fn *fn = f->fn;
  Ref *stack = NEW(f->e->cx, Ref, fn->ins.n + 1);
  size_t n = 0;
  Ref loop = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    unsigned flags = op_flags((Op)i->op);
    if (flags & OPF_X && n) {
      Ref head = stack[--n];
      f->end[head] = r;
      if (ir_get(fn, head)->op != OP_IF) loop = f->loop[head];
    }
    f->loop[r] = loop;
    if (flags & OPF_B) {
      stack[n++] = r;
      if (i->op != OP_IF) loop = r;
    }
  }
}

// ---- register arrays ----

// The narrowest and widest element of all names of each array.
static void name_widths(const Emit *e, int *least, int *most) {
  for (size_t k = 0; k < e->fn->mem.n; k++)
    least[k] = most[k] = uses_bits(e->fn->mem.p[k].type);
  for (Ref r = 1; r < e->fn->ins.n; r++) {
    const Ins *i = ir_get(e->fn, r);
    if (i->op != OP_RMEM) continue;
    int bits = uses_bits((DType)i->type);
    if (bits < least[i->imm]) least[i->imm] = bits;
    if (bits > most[i->imm]) most[i->imm] = bits;
  }
}

// Words have the type of the elements; elements below 32 bits are packed, and
// what is named with several widths is kept in words that all fit.
static void declare_regs(Emit *e) {
  int *least = NEW(e->cx, int, e->fn->mem.n + 1);
  int *most = NEW(e->cx, int, e->fn->mem.n + 1);
  name_widths(e, least, most);
  for (size_t k = 0; k < e->fn->mem.n; k++) {
    const Mem *m = &e->fn->mem.p[k];
    if (m->space != SP_RMEM) continue;
    int bits = uses_bits(m->type);
    Regs *g = &e->regs[k];
    bool one = least[k] == most[k];
    bool packed = least[k] < 32 && !(one && m->type == DT_BOOL);
    g->wbits = packed ? 32 : least[k];
    g->type = packed || (!one && least[k] == 32) ? DT_U32
              : one ? m->type : least[k] == 64 ? DT_U64 : m->type;
    g->ctype = dtype_cuda(g->type);
    g->words = (m->count * bits + g->wbits - 1) / g->wbits;
    g->vector = g->taken = most[k] > g->wbits;
  }
}

static void note_vector(Emit *e, const Ins *i) {
  const uint32_t *x = &e->fn->ext.p[i->ext];
  for (int k = 0; k < 4; k += 2) {
    const Ins *m = ir_get(e->fn, x[k]);
    if (m->op != OP_RMEM || i->imm <= e->regs[m->imm].wbits) continue;
    e->regs[m->imm].vector = true;
    if (i->imm == 256) e->regs[m->imm].taken = true;
  }
}

// ---- atoms ----

static AtomUse *atom_use(Emit *e, bool mma, int id) {
  for (size_t k = 0; k < e->natom; k++)
    if (e->atom[k].mma == mma && e->atom[k].id == id) return &e->atom[k];
  AtomUse *v = arena_zero(e->cx, &e->cx->scratch,
                          (e->natom + 1) * sizeof *v);
  if (e->natom) memcpy(v, e->atom, e->natom * sizeof *v);
  e->atom = v;
  v[e->natom] = (AtomUse){.mma = mma, .id = id};
  return &v[e->natom++];
}

static void note_mma(Emit *e, const Ins *i) {
  const AtomMma *row = atom_mma((int)i->imm);
  if (row->kind == MK_FMA) return;
  AtomUse *u = atom_use(e, true, (int)i->imm);
  const uint32_t *x = &e->fn->ext.p[i->ext], *d = x;
  for (int o = 0; o < row->nop; o++) {
    int n = row->nreg[o];
    if (!uses_run_of_words(e, x[0], x + 1, n)) u->refs = true;
    bool same = memcmp(x, d, (size_t)(n + 1) * sizeof *x) == 0;
    if (o == 3) *(same ? &u->same : &u->separate) = true;
    x += n + 1;
  }
}

static void note_matrix(Emit *e, const Ins *i) {
  const AtomCopy *row = atom_copy((int)i->imm);
  AtomUse *u = atom_use(e, false, (int)i->imm);
  const uint32_t *x = &e->fn->ext.p[i->ext];
  const uint32_t *reg = row->op == CO_STSM ? x + 2 : x;
  if (!uses_run_of_words(e, reg[0], reg + 1, row->num)) u->refs = true;
  if (row->op == CO_LDSM) e->address[x[row->num + 1]] = true;
  if (row->op == CO_STSM) e->address[x[0]] = true;
}

// Helpers of atoms that take pointers to registers.
static void note_taken(Emit *e, const Ins *i) {
  const uint32_t *x = &e->fn->ext.p[i->ext];
  const AtomMma *row = i->op == OP_MMA ? atom_mma((int)i->imm) : NULL;
  const AtomCopy *copy = row ? NULL : atom_copy((int)i->imm);
  if (row ? row->kind == MK_FMA : copy->op == CO_MOVM) return;
  if (atom_use(e, row != NULL, (int)i->imm)->refs) return;
  for (int o = 0; row && o < row->nop; x += row->nreg[o++] + 1)
    e->regs[ir_get(e->fn, x[0])->imm].taken = true;
  if (!row)
    e->regs[ir_get(e->fn, x[copy->op == CO_STSM ? 2 : 0])->imm].taken = true;
}

// Places of the text where instruction i touches an element of registers.
static size_t touches(const Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  if (i->op == OP_MMA && atom_mma((int)i->imm)->kind == MK_FMA) return 4;
  bool one = i->op == OP_ST || i->op == OP_LD;
  return one && ir_get(e->fn, i->a[0])->op == OP_RMEM;
}

// A compiler's time goes with the square of the accesses to arrays, and
// little more than evenly with those to scalars (NVRTC 13: 2048 fmaf on three
// arrays 5.6 s, on scalars 1.4 s; 128 of them 0.17 and 0.14 s). So kernels
// that touch registers one by one in many places have them as scalars; few
// places read better as an array, which is what the script has.
static void choose_scalars(Emit *e) {
  size_t n = 0;
  for (Ref r = 1; r < e->fn->ins.n; r++) {
    const Ins *i = ir_get(e->fn, r);
    if (e->use[r].how == HOW_DEAD) continue;
    n += touches(e, r);
    if (i->op == OP_MMA || i->op == OP_MATRIX) note_taken(e, i);
  }
  for (size_t k = 0; k < e->fn->mem.n; k++)
    e->regs[k].scalars = n > MANY && !e->regs[k].taken;
}

static void note_pointers(Emit *e, const Ins *i) {
  const uint32_t *x = &e->fn->ext.p[i->ext];
  if (i->op == OP_COPY) e->pointer[x[0]] = e->pointer[x[2]] = true;
  else if (i->op != OP_CPASYNC) e->pointer[i->a[0]] = true;
  else e->pointer[x[2]] = true;
}

static void note_needs(Emit *e, const Ins *i) {
  switch ((int)i->op) {
    case OP_LD: case OP_ST: case OP_ATOMIC:
      note_pointers(e, i);
      ptx_note_access(e, i);
      break;
    case OP_INTRIN: case OP_ASK: ptx_note(e, i); break;
    case OP_MMA: note_mma(e, i); break;
    case OP_MATRIX: note_matrix(e, i); break;
    case OP_COPY: note_vector(e, i); note_pointers(e, i); break;
    case OP_CPASYNC:
      e->address[e->fn->ext.p[i->ext]] = true;
      note_pointers(e, i);
      break;
    default: break;
  }
}

static void *zeroes(Emit *e, size_t n, size_t size) {
  return arena_zero(e->cx, &e->cx->scratch, (n + 1) * size);
}

// ---- loops ----

static int64_t trips(const Flow *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  int64_t lo, hi, step;
  if (i->imm) return i->imm;
  if (f->end[r] + 1 - r > ROLL) return 1;
  if (!ir_const(f->fn, i->a[0], &lo) || !ir_const(f->fn, i->a[1], &hi) ||
      !ir_const(f->fn, i->a[2], &step) || step == 0)
    return TRIPS;
  double n = ((double)hi - (double)lo) / (double)step;
  return n < 1 ? 1 : n > MOST_TRIPS ? MOST_TRIPS : (int64_t)n;
}

// Which loops stay loops: those with long bodies, and those of a script's line
// that stands in many copies (in a loop of Lua), when all of them unrolled
// would be too much for the compiler. (NVRTC 13: 128 loops of 32 iterations
// with 35 instructions each take 3.2 s, 0.7 s when they are not unrolled; what
// is allowed here takes half a second.)
static void choose_rolled(Flow *f) {
  const Fn *fn = f->fn;
  Emit *e = f->e;
  int64_t *line = zeroes(e, fn->src.n, sizeof *line);
  int64_t *cost = zeroes(e, fn->ins.n, sizeof *cost);
  for (Ref r = (Ref)fn->ins.n; r-- > 1;) {
    const Ins *i = ir_get(fn, r);
    int64_t all = 1;
    if (i->op == OP_FOR) {
      all += cost[r] * trips(f, r);
      line[i->src] += all;
    } else if (i->op == OP_LOOP) {
      all += cost[r];
    }
    if (all > UNROLLED) all = UNROLLED + 1;
    cost[f->loop[r]] += all;
  }
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    e->use[r].rolled = i->op == OP_FOR && (f->end[r] + 1 - r > ROLL ||
                                           line[i->src] > UNROLLED);
  }
}

// ---- the walk ----

static Flow new_flow(Emit *e) {
  const Fn *fn = e->fn;
  size_t n = fn->ins.n;
  Flow f = {.e = e, .fn = fn, .memory = (Ref)n};
  f.loop = zeroes(e, n, sizeof *f.loop);
  f.end = zeroes(e, n, sizeof *f.end);
  f.vset = zeroes(e, n, sizeof *f.vset);
  f.regs = zeroes(e, fn->mem.n, sizeof *f.regs);
  f.wrote = zeroes(e, fn->mem.n, sizeof *f.wrote);
  for (size_t k = 0; k < n; k++) f.vset[k] = (Ref)n;
  for (size_t k = 0; k < fn->mem.n; k++) {
    if (fn->mem.p[k].space != SP_RMEM) continue;
    size_t count = (size_t)fn->mem.p[k].count;
    f.regs[k] = zeroes(e, count, sizeof **f.regs);
    f.wrote[k] = zeroes(e, count, sizeof **f.wrote);
    for (size_t j = 0; j < count; j++) f.regs[k][j] = (Ref)n;
  }
  return f;
}

void uses_run(Emit *e) {
  size_t n = e->fn->ins.n;
  e->use = zeroes(e, n, sizeof *e->use);
  e->regs = zeroes(e, e->fn->mem.n, sizeof *e->regs);
  e->address = zeroes(e, n, sizeof *e->address);
  e->pointer = zeroes(e, n, sizeof *e->pointer);
  e->fresh = zeroes(e, n, sizeof *e->fresh);
  declare_regs(e);
  Flow f = new_flow(e);
  find_regions(&f);
  for (Ref r = (Ref)n; r-- > 1;) {
    const Ins *i = ir_get(e->fn, r);
    How how = decide(&f, r);
    e->use[r].how = (uint8_t)how;
    if (how == HOW_DEAD) continue;
    note_needs(e, i);
    spread(&f, r);
    each_write(&f, r, next_write);
    if (i->op == OP_ST) e->use[r].pair = other_half(&f, r);
    if (i->op == OP_VSET) f.vset[i->a[0]] = r;
    for (uint32_t k = 0; i->op == OP_ASM && k < i->flags; k++)
      f.vset[e->fn->ext.p[i->ext + k]] = r;
    if (orders_memory(&f, i)) f.memory = r;
  }
  for (Ref r = 1; r < n; r++) each_write(&f, r, first_write);
  choose_rolled(&f);
  choose_scalars(e);
}
