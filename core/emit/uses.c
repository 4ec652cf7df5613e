// Plans the text. Decides which values are live. Each live value is either
// inlined in the expressions that use it, or gets a statement and a name. Also
// decides how helpers of atoms receive registers. Visits the instructions from
// last to first, so that the users of a value are decided before the value.
#include <string.h>

#include "atoms/atom.h"
#include "emit/expr.h"

enum {
  // maximum number of expressions that are inlined in a statement
  MAX_WEIGHT = 14,
  // if the text accesses register elements more often than this, register
  // arrays become scalars
  MANY = 1024,
  // maximum number of 8- or 16-bit elements of an array that is not packed
  FEW = 32,
  // if the packed arrays have more words than this, all arrays are packed
  ROOM = 560,
  ROLL = 100,       // loops with more instructions are not unrolled
  // Loops traced from one script line are not unrolled if they would have more
  // instructions than this in total.
  UNROLLED = 1 << 15,
  TRIPS = 16,       // assumed number of iterations of a loop if it is unknown
  MOST_TRIPS = 32   // limit of the number of iterations in estimates
};

typedef struct Flow {
  Emit *e;
  const Fn *fn;
  // for each instruction: the FOR or LOOP of the innermost loop around it
  Ref *loop;
  Ref *end;         // for each instruction that opens a region: its END
  Ref *vset;        // for each VAR: the next VSET in program order
  // for each element of each register array: the next write in program order
  Ref **regs;
  // for each word of each register array: whether it was written so far
  bool **wrote;
  bool *read;       // for each VAR: whether a live instruction reads it
  Ref memory;  // for the backward walk: the next instruction that orders or
               // writes memory
} Flow;

int64_t uses_int(const Emit *e, Ref r) {
  return ir_get(e->fn, r)->imm;
}

// Reports whether instruction r is a statement of its own.
bool uses_is_line(const Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  // an object with a computed address has operands
  bool computed = *op_rows[i->op].operands != '\0';
  return e->use[r].how == HOW_NAME && i->op != OP_ARG && i->op != OP_DESC &&
         (computed || !ir_is_mem(e->fn, r));
}

// Returns the bits that an element of type t occupies in registers. An element
// of a 6-bit type occupies a byte.
int uses_bits(DType t) {
  int bits = dtype_bits(t);
  return bits == 6 ? 8 : bits;
}

bool uses_run_of_words(const Emit *e, const Operand *o) {
  const Ins *m = ir_get(e->fn, o->ref);
  const Regs *g = &e->regs[m->imm];
  int64_t bits = uses_bits((DType)m->type);
  for (int k = 0; k < o->n; k++) {
    int64_t at = o->reg[k] * bits;
    int64_t want = o->reg[0] * bits + k * g->wbits;
    if (at % g->wbits || at != want) return false;
  }
  return true;
}

// ---- writes to registers and variables ----

// Sets [*lo,*hi) to the range of declared elements of a register array that an
// access occupies: `bits` bits from element `off` of view mem on.
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

// A function that is called for each write to registers: instruction `by`
// writes `bits` bits from element `off` of mem on.
typedef void (*Tell)(Flow *f, Ref by, Ref mem, int64_t off, int64_t bits);

static void tell_write(Flow *f, Ref r, const Operand *o, Tell tell) {
  const Ins *m = ir_get(f->fn, o->ref);
  if (m->op != OP_RMEM) return;
  if (o->kind == OPERAND_MEM) {
    int64_t own = dtype_bits((DType)m->type), n = o->bits / own;
    // whether the bits are whole elements
    bool whole = n * own == o->bits;
    tell(f, r, o->ref, uses_int(f->e, o->off),
         whole ? n * uses_bits((DType)m->type) : o->bits);
    return;
  }
  int wbits = f->e->regs[m->imm].wbits;
  int64_t bits = o->bits > wbits ? o->bits : wbits;
  for (int k = 0; k < o->n; k++) tell(f, r, o->ref, o->reg[k], bits);
}

static void each_write(Flow *f, Ref r, Tell tell) {
  const Ins *i = ir_get(f->fn, r);
  Operand o;
  if (!(op_effect((Op)i->op) & (EF_REGS | EF_MEMORY))) return;
  for (Operands w = operands_of(f->fn, i); operands_next(&w, &o);)
    if (o.written) tell_write(f, r, &o, tell);
}

// Used in the backward walk. Records `by` as the next write to the elements.
static void next_write(Flow *f, Ref by, Ref mem, int64_t off, int64_t bits) {
  int64_t lo, hi;
  reg_range(f, mem, off, bits, &lo, &hi);
  for (int64_t k = lo; k < hi; k++) f->regs[ir_get(f->fn, mem)->imm][k] = by;
}

static void note_set(Flow *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  Operand o;
  if (i->op != OP_VSET && i->op != OP_ASM) return;
  for (Operands w = operands_of(f->fn, i); operands_next(&w, &o);)
    if (o.kind == OPERAND_VAR && o.written) f->vset[o.ref] = r;
}

// Used in the forward walk. Detects the first write to a register word. If this
// is a store to a part of the word, the store need not preserve the rest. A
// store in a loop is not a first write if the array is declared outside of the
// loop, because an earlier iteration may have written the word.
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

// Reports whether loads must not move past instruction i, because i orders
// memory, has flags (memory order, cache operators), or writes memory.
static bool orders_memory(const Flow *f, const Ins *i) {
  unsigned effect = op_effect((Op)i->op);
  Operand o;
  if (effect & EF_ORDERED) return true;
  if (!(effect & EF_MEMORY)) return false;
  if (i->flags) return true;
  for (Operands w = operands_of(f->fn, i); operands_next(&w, &o);)
    if (o.written && ir_get(f->fn, o.ref)->op != OP_RMEM) return true;
  return false;
}

// ---- decisions ----

static void use(Flow *f, Ref r, Ref at, uint32_t times, bool cross, Ref root) {
  Use *u = &f->e->use[r];
  u->uses += times;
  if (at > u->last) u->last = at;
  if (cross || f->loop[r] != f->loop[at]) u->cross = true;
  if (u->uses == times) u->root = root;
}

// Reports whether i becomes several statements. An operand inlined in such an i
// is read after the first statements have written a part of the destination.
static bool has_steps(const Ins *i) {
  return i->op == OP_FILL || i->op == OP_COPY;
}

// Reports whether the last statement that needs value u has read its operands
// before instruction `by` writes.
static bool writes_behind(const Flow *f, Ref by, const Use *u) {
  return by > u->last || (by == u->last && !has_steps(ir_get(f->fn, by)));
}

// Reports whether r, a load from registers or a read of a variable, can move to
// the expression that uses it.
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

// Reports whether r needs no statement, because `set` assigns r to a variable
// that has r's name.
static bool becomes(const Flow *f, Ref r, Ref set) {
  const Ins *s = ir_get(f->fn, set);
  return s->op == OP_VSET && s->a[1] == r &&
         ir_get(f->fn, s->a[0])->name == ir_get(f->fn, r)->name;
}

static How decide(Flow *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  Use *u = &f->e->use[r];
  unsigned effect = op_effect((Op)i->op);
  bool reads = i->op == OP_VGET || i->op == OP_LD;
  if (i->op == OP_NOP || (i->op == OP_VSET && !f->read[i->a[0]]))
    return HOW_DEAD;
  if (!u->uses && (reads || op_pure((Op)i->op) || i->op == OP_VAR ||
                   i->op == OP_PICK))
    return HOW_DEAD;
  if (effect & EF_OBJECT) return u->uses ? HOW_NAME : HOW_DEAD;
  if (i->op == OP_CONST) return HOW_INLINE;
  if (i->op == OP_ARG) return HOW_NAME;
  if (reads) return can_wait(f, r) ? HOW_INLINE : HOW_NAME;
  if (!(effect & EF_PURE)) return HOW_NAME;
  if (i->op == OP_SREG || i->op == OP_DESC) return HOW_NAME;
  if (plus_constant(f->fn, i) && !i->name) return HOW_INLINE;
  if (u->uses > 1 || u->cross) return HOW_NAME;
  if (i->name && !becomes(f, r, u->root)) return HOW_NAME;
  Use *root = &f->e->use[u->root];
  return root->weight >= MAX_WEIGHT ? HOW_NAME : HOW_INLINE;
}

// Counts how often r uses its operands. A loop needs its limit and step until
// its end.
static void spread(Flow *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  Use *u = &f->e->use[r];
  bool in = u->how == HOW_INLINE;
  Ref root = in && u->root ? u->root : r;
  if (in && i->op != OP_CONST) f->e->use[root].weight++;
  // A use of a recast view is also a use of the viewed object.
  if (ir_is_mem(f->fn, r) && ir_memof(f->fn, r)->ref != r)
    use(f, ir_memof(f->fn, r)->ref, r, 1, false, r);
  uint32_t n = in ? u->uses : 1;
  Ref at = in ? u->last : r;
  Operand o;
  for (Operands w = operands_of(f->fn, i); operands_next(&w, &o);) {
    if (o.ref) use(f, o.ref, at, n, in && u->cross, root);
    if (o.kind == OPERAND_MEM) use(f, o.off, at, n, in && u->cross, root);
    if (i->op == OP_FOR) at = f->end[r];
  }
}

// Reports whether q is an inlined load from registers to which store r writes.
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

// If r stores the lower half of a word, returns the store to its upper half.
// Returns 0 unless this store is the next statement and does not read the lower
// half.
static Ref other_half(const Flow *f, Ref r) {
  const Emit *e = f->e;
  const Ins *i = ir_get(f->fn, r), *m = ir_get(f->fn, i->a[0]);
  if (m->op != OP_RMEM || dtype_bits((DType)m->type) != 16 ||
      uses_int(e, i->a[1]) % 2 || e->regs[m->imm].type == DT_F32)
    return 0;
  Ref n = r + 1;
  for (; n < f->fn->ins.n && !uses_is_line(e, n); n++)
    if (reads_stored(f, n, r)) return 0;
  if (n >= f->fn->ins.n) return 0;
  const Ins *j = ir_get(f->fn, n);
  bool ok = j->op == OP_ST && j->a[0] == i->a[0] &&
            uses_int(e, j->a[1]) == uses_int(e, i->a[1]) + 1;
  return ok ? n : 0;
}

static bool is_loop(const Ins *i) {
  return op_loops((Op)i->op);
}

// If C's `break` does not suffice for BREAKIF r, records which region it
// leaves. C's `break` leaves only the innermost region that is not an IF.
static void note_leave(Flow *f, Ref r, const Ref *open, size_t n) {
  size_t left = (size_t)ir_get(f->fn, r)->imm;
  for (size_t k = 1; k < left; k++)
    if (ir_get(f->fn, open[n - k])->op != OP_IF)
      f->e->use[r].leaves = open[n - left];
}

static void find_regions(Flow *f) {
  const Fn *fn = f->fn;
  Ref *stack = NEW(f->e->cx, Ref, fn->ins.n + 1);
  size_t n = 0;
  Ref loop = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    unsigned effect = op_effect((Op)i->op);
    bool opens = effect & EF_OPENS, closes = effect & EF_CLOSES;
    if (closes && !opens && n) {
      Ref head = stack[--n];
      f->end[head] = r;
      if (is_loop(ir_get(fn, head))) loop = f->loop[head];
    }
    f->loop[r] = loop;
    if (opens && !closes) {
      stack[n++] = r;
      if (is_loop(i)) loop = r;
    }
    if (i->op == OP_BREAKIF) note_leave(f, r, stack, n);
  }
}

// Reports whether instruction i can be removed if its result is unused.
static bool for_its_result(const Ins *i) {
  return op_effect((Op)i->op) & (EF_PURE | EF_VAR) || i->op == OP_LD ||
         i->op == OP_PICK;
}

// Finds the variables whose value is needed. If a loop's body only sets a
// variable, and no later iteration or loop reads it, it is not needed.
static void find_read(Flow *f) {
  const Fn *fn = f->fn;
  bool *needed = NEW(f->e->cx, bool, fn->ins.n), again = true;
  memset(needed, 0, fn->ins.n);
  Operand o;
  while (again) {
    again = false;
    for (Ref r = (Ref)fn->ins.n; r-- > 1;) {
      const Ins *i = ir_get(fn, r);
      if (i->op == OP_VSET ? !f->read[i->a[0]]
                           : for_its_result(i) && !needed[r])
        continue;
      for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
        bool read = o.kind != OPERAND_VAR || i->op != OP_VSET;
        if (read && o.kind == OPERAND_VAR && !f->read[o.ref])
          f->read[o.ref] = again = true;
        needed[o.ref] |= read;
        if (o.kind == OPERAND_MEM) needed[o.off] = true;
      }
    }
  }
}

// ---- register arrays ----

// Computes, for each register array, the widths of the narrowest and the widest
// element type among its views.
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

// Finds the arrays that stay unpacked: at most FEW elements of 8 or 16 bits,
// which are only copied in and out one at a time. Packing these would cost
// instructions and text. If the packed arrays have more than ROOM words, all
// arrays are packed, because unpacked ones would need too many registers.
static bool *passing(const Emit *e) {
  size_t n = e->fn->mem.n;
  bool *only = NEW(e->cx, bool, n + 1);
  Operand o;
  for (size_t k = 0; k < n; k++) {
    const Mem *m = &e->fn->mem.p[k];
    int bits = dtype_bits(m->type);
    only[k] = (bits == 8 || bits == 16) && m->count <= FEW;
  }
  for (Ref r = 1; r < e->fn->ins.n; r++) {
    const Ins *i = ir_get(e->fn, r);
    for (Operands w = operands_of(e->fn, i); operands_next(&w, &o);) {
      const Ins *m = ir_get(e->fn, o.ref);
      if (m->op != OP_RMEM) continue;
      only[m->imm] &= i->op == OP_FILL ||
                      (i->op == OP_COPY && o.kind == OPERAND_MEM &&
                       o.bits == dtype_bits(e->fn->mem.p[m->imm].type));
    }
  }
  int64_t others = 0;
  for (size_t k = 0; k < n; k++) {
    const Mem *m = &e->fn->mem.p[k];
    if (m->space == SP_RMEM && m->type != DT_BOOL && !only[k])
      others += (m->count * uses_bits(m->type) + 31) / 32;
  }
  if (others > ROOM) memset(only, 0, n * sizeof *only);
  return only;
}

// Chooses the word type of each register array: the element's type, but
// elements below 32 bits are packed. If the array has views of several widths,
// the words suit all views.
static void declare_regs(Emit *e) {
  bool *only = passing(e);
  int *least = NEW(e->cx, int, e->fn->mem.n + 1);
  int *most = NEW(e->cx, int, e->fn->mem.n + 1);
  name_widths(e, least, most);
  for (size_t k = 0; k < e->fn->mem.n; k++) {
    const Mem *m = &e->fn->mem.p[k];
    if (m->space != SP_RMEM) continue;
    int bits = uses_bits(m->type);
    Regs *g = &e->regs[k];
    bool one = least[k] == most[k];
    bool packed = least[k] < 32 &&
                  !(one && (m->type == DT_BOOL || only[k]));
    g->wbits = packed ? 32 : least[k];
    g->type = packed || (!one && least[k] == 32) ? DT_U32
              : one ? m->type : least[k] == 64 ? DT_U64 : m->type;
    g->ctype = dtype_cuda(g->type);
    g->words = (m->count * bits + g->wbits - 1) / g->wbits;
    g->vector = g->taken = most[k] > g->wbits;
  }
}

// If operand o is wider than a register word, records that vector copies access
// its array.
static void note_vector(Emit *e, const Operand *o) {
  const Ins *m = ir_get(e->fn, o->ref);
  if (m->op != OP_RMEM || o->bits <= e->regs[m->imm].wbits) return;
  e->regs[m->imm].vector = true;
  if (o->bits == 256) e->regs[m->imm].taken = true;
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

const AtomUse *uses_atom(const Emit *e, bool mma, int64_t id) {
  const AtomUse *u = e->atom;
  while (u->mma != mma || u->id != id) u++;
  return u;
}

// Reports whether i is an atom's instruction that is written as a call of a
// helper.
static bool is_helper(const Ins *i) {
  ImmKind imm = (ImmKind)op_rows[i->op].imm;
  return imm == IMM_COPY ||
         (imm == IMM_MMA && atom_mma((int)i->imm)->kind != MK_FMA);
}

static void note_atom(Emit *e, const Ins *i) {
  if (!is_helper(i)) return;
  AtomUse *u = atom_use(e, op_rows[i->op].imm == IMM_MMA, (int)i->imm);
  Operand o;
  for (Operands w = operands_of(e->fn, i); operands_next(&w, &o);)
    if (o.kind == OPERAND_RUN && !uses_run_of_words(e, &o)) u->refs = true;
  if (i->op == OP_MMA)
    *(operands_accumulate(e->fn, i) ? &u->same : &u->separate) = true;
}

// Marks register arrays whose address is taken, by helpers with pointer
// parameters or by an index that is known only on the device.
static void note_taken(Emit *e, const Ins *i) {
  if (i->op == OP_PICK || i->op == OP_PUT)
    e->regs[ir_get(e->fn, i->a[0])->imm].taken = true;
  if (!is_helper(i)) return;
  if (i->op == OP_MATRIX && atom_copy((int)i->imm)->op == CO_MOVM) return;
  bool mma = op_rows[i->op].imm == IMM_MMA;
  if (atom_use(e, mma, (int)i->imm)->refs) return;
  Operand o;
  for (Operands w = operands_of(e->fn, i); operands_next(&w, &o);)
    if (o.kind == OPERAND_RUN)
      e->regs[ir_get(e->fn, o.ref)->imm].taken = true;
}

// Reports whether i calls a helper that can receive its registers one by one. A
// helper of wgmma has too many registers for this.
static bool can_split(const Ins *i) {
  return is_helper(i) && (op_rows[i->op].imm == IMM_COPY ||
                          atom_mma((int)i->imm)->kind != MK_WGMMA);
}

// Returns how often the text of instruction r accesses register elements.
static size_t touches(const Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  size_t n = 0;
  if (i->op == OP_MMA && atom_mma((int)i->imm)->kind == MK_FMA) return 4;
  if (can_split(i)) {
    Operand o;
    for (Operands w = operands_of(e->fn, i); operands_next(&w, &o);)
      if (o.kind == OPERAND_RUN) n += (size_t)o.n;
    return n;
  }
  bool one = i->op == OP_ST || i->op == OP_LD;
  return one && ir_get(e->fn, i->a[0])->op == OP_RMEM;
}

// Chooses between arrays and scalars for registers. Compile time grows with the
// square of the number of accesses to arrays, but little more than linearly for
// scalars. (NVRTC 13: 2048 fmaf on three arrays take 5.6 s, on scalars 1.4 s;
// 128 of them 0.17 and 0.14 s.) Kernels that access register elements in many
// places therefore use scalars, which are passed to helpers one by one. In
// other kernels, arrays are easier to read and match the script.
static void choose_scalars(Emit *e) {
  size_t n = 0;
  for (Ref r = 1; r < e->fn->ins.n; r++)
    if (e->use[r].how != HOW_DEAD) n += touches(e, r);
  bool many = n > MANY;
  for (Ref r = 1; r < e->fn->ins.n; r++) {
    const Ins *i = ir_get(e->fn, r);
    if (many && e->use[r].how != HOW_DEAD && can_split(i))
      atom_use(e, i->op != OP_MATRIX, (int)i->imm)->refs = true;
  }
  for (Ref r = 1; r < e->fn->ins.n; r++)
    if (e->use[r].how != HOW_DEAD) note_taken(e, ir_get(e->fn, r));
  for (size_t k = 0; k < e->fn->mem.n; k++)
    e->regs[k].scalars = many && !e->regs[k].taken;
}

// Records how i accesses objects in memory: through a pointer or, in PTX, by a
// shared address.
static void note_memory(Emit *e, const Ins *i) {
  bool ptx = i->op == OP_CPASYNC || i->op == OP_MATRIX || mbar_is(i) ||
             bulk_is(i) || op_flag_kind((Op)i->op) == FLAGS_TCGEN05;
  if (i->op == OP_DSMEM || i->op == OP_TMAPAT) e->pointer[i->a[0]] = true;
  Operand o;
  if (!(op_effect((Op)i->op) & EF_MEMORY)) return;
  for (Operands w = operands_of(e->fn, i); operands_next(&w, &o);) {
    if (o.kind != OPERAND_MEM) continue;
    bool address = ptx && ir_memof(e->fn, o.ref)->space == SP_SMEM;
    *(address ? &e->address[o.ref] : &e->pointer[o.ref]) = true;
    if (i->op == OP_COPY) note_vector(e, &o);
  }
}

static void note_needs(Emit *e, const Ins *i) {
  note_memory(e, i);
  note_atom(e, i);
  if (i->op == OP_DESC) e->address[i->a[0]] = true;
}

static void *zeroes(Emit *e, size_t n, size_t size) {
  return arena_zero(e->cx, &e->cx->scratch, (n + 1) * size);
}

// ---- loops ----

// Reports whether the loop at r has a body of more than ROLL instructions.
static bool is_long(const Flow *f, Ref r) {
  int n = 0;
  for (Ref k = r; k <= f->end[r] && n <= ROLL; k++)
    n += !ir_is_aside(ir_get(f->fn, k));
  return n > ROLL;
}

static int64_t trips(const Flow *f, Ref r) {
  const Ins *i = ir_get(f->fn, r);
  int64_t lo, hi, step;
  if (i->imm) return i->imm;
  if (is_long(f, r)) return 1;
  if (!ir_const(f->fn, i->a[0], &lo) || !ir_const(f->fn, i->a[1], &hi) ||
      !ir_const(f->fn, i->a[2], &step) || step == 0)
    return TRIPS;
  double n = ((double)hi - (double)lo) / (double)step;
  return n < 1 ? 1 : n > MOST_TRIPS ? MOST_TRIPS : (int64_t)n;
}

// Chooses the loops that the compiler must not unroll:
// - Loops with long bodies.
// - Loops from a script line that is traced many times (in a Lua loop), if
//   unrolling all of them would take the compiler too long. (NVRTC 13: 128
//   loops of 32 iterations with 35 instructions each take 3.2 s, or 0.7 s when
//   not unrolled. The limit here allows half a second.)
// - Loops that wait on an mbarrier. The compiler assumes that their asm
//   statements are short and unrolls them, although this does not make them
//   faster. (A GEMM's loop of four 64x256 wgmmas would contain 28 of them and
//   take 3.5 times as long to compile.)
static void choose_rolled(Flow *f) {
  const Fn *fn = f->fn;
  Emit *e = f->e;
  int64_t *line = zeroes(e, fn->src.n, sizeof *line);
  int64_t *cost = zeroes(e, fn->ins.n, sizeof *cost);
  for (Ref r = (Ref)fn->ins.n; r-- > 1;) {
    const Ins *i = ir_get(fn, r);
    int64_t all = !ir_is_aside(i);
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
    e->use[r].rolled = i->op == OP_FOR &&
                       (is_long(f, r) || line[i->src] > UNROLLED);
    if (i->op == OP_MBARWAIT && f->loop[r]) e->use[f->loop[r]].rolled = true;
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
  f.read = zeroes(e, n, sizeof *f.read);
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
  find_read(&f);
  for (Ref r = (Ref)n; r-- > 1;) {
    const Ins *i = ir_get(e->fn, r);
    How how = decide(&f, r);
    e->use[r].how = (uint8_t)how;
    if (how == HOW_DEAD) continue;
    note_needs(e, i);
    spread(&f, r);
    each_write(&f, r, next_write);
    if (i->op == OP_ST) e->use[r].pair = other_half(&f, r);
    note_set(&f, r);
    if (orders_memory(&f, i)) f.memory = r;
  }
  for (Ref r = 1; r < n; r++) each_write(&f, r, first_write);
  choose_rolled(&f);
  choose_scalars(e);
}
// SPDX-License-Identifier: MIT
