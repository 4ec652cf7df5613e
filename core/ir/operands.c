// Iterates over an instruction's operands, which the row of its operation in
// ops.h describes.
#include "ir/operands.h"

#include <pthread.h>
#include <string.h>

#include "atoms/atom.h"
#include "ir/fold.h"
#include "ir/intrin.h"

// ---- operands that rows of other tables specify ----

// Operand lists for instructions whose row in ops.h has the letter `=`.
typedef enum RowShape {
  EACH1, EACH2, EACH3, MASK1, MASK2, MASK3,    // values, a mask of lanes
  // MMAs, by their number of operands
  MMA1, MMA2, MMA3, MMA4, MMA5, MMA6, MMA7,
  WG, WG_SMEM_A, WG_SPARSE, WG_SPARSE_SMEM_A,
  // tcgen05.mma: TC, + 1 if A is in shared memory, + 2 with scale factors, + 4
  // if A is sparse
  TC, TC_SMEM_A, TC_SCALED, TC_SCALED_SMEM_A, TC_SPARSE, TC_SPARSE_SMEM_A,
  TC_SCALED_SPARSE, TC_SCALED_SPARSE_SMEM_A,
  LDSM, STSM, MOVM, TMEM_LOAD, TMEM_STORE, NOTHING, ROW_SHAPES
} RowShape;
static const char *const row_operands[ROW_SHAPES] = {
  [EACH1] = "v", [EACH2] = "vv", [EACH3] = "vvv",
  [MASK1] = "lanes:l", [MASK2] = "v lanes:l", [MASK3] = "vv lanes:l",
  [MMA1] = "acc:W", [MMA2] = "acc:W a:R", [MMA3] = "acc:W a:R b:R",
  [MMA4] = "acc:W a:R b:R c:R", [MMA5] = "acc:W a:R b:R c:R R",
  [MMA6] = "acc:W a:R b:R c:R RR", [MMA7] = "acc:W a:R b:R c:R RRR",
  [WG] = "acc:W a:R b:v add:p", [WG_SMEM_A] = "acc:W a:v b:v add:p",
  [WG_SPARSE] = "acc:W a:R b:v add:p meta:R",
  [WG_SPARSE_SMEM_A] = "acc:W a:v b:v add:p meta:R",
  [TC] = "acc:a.t a:r.t b:v add:p", [TC_SMEM_A] = "acc:a.t a:v b:v add:p",
  [TC_SCALED] = "acc:a.t a:r.t b:v add:p sfa:r.t sfb:r.t",
  [TC_SCALED_SMEM_A] = "acc:a.t a:v b:v add:p sfa:r.t sfb:r.t",
  [TC_SPARSE] = "acc:a.t a:r.t b:v add:p meta:r.t",
  [TC_SPARSE_SMEM_A] = "acc:a.t a:v b:v add:p meta:r.t",
  [TC_SCALED_SPARSE] = "acc:a.t a:r.t b:v add:p sfa:r.t sfb:r.t meta:r.t",
  [TC_SCALED_SPARSE_SMEM_A] = "acc:a.t a:v b:v add:p sfa:r.t sfb:r.t meta:r.t",
  [TMEM_LOAD] = "dst:W src:r.t", [TMEM_STORE] = "dst:w.t src:R",
  [LDSM] = "dst:W src:r.s", [STSM] = "dst:w.s src:R", [MOVM] = "dst:W src:R",
  [NOTHING] = "",
};

static RowShape intrin_shape(const Ins *i) {
  IntrinId id = intrin_id(i->imm);
  int n = intrin_arity(id);
  if (!n) return NOTHING;
  bool m = intrin_row(id)->class == INTRIN_M;
  return (RowShape)((int)(m ? MASK1 : EACH1) + n - 1);
}

static RowShape row_shape(const Ins *i) {
  if (op_rows[i->op].imm == IMM_INTRIN) return intrin_shape(i);
  if (op_rows[i->op].imm == IMM_MMA) {
    const AtomMma *row = atom_mma((int)i->imm);
    if (i->op == OP_MMA) return (RowShape)((int)MMA1 + row->nop - 1);
    bool smem = row->flags & AMF_SMEM_A, sparse = row->flags & AMF_SPARSE;
    bool scale = row->flags & AMF_SCALE;
    if (i->op == OP_TCMMA)
      return (RowShape)((int)TC + smem + 2 * scale + 4 * sparse);
    if (sparse) return smem ? WG_SPARSE_SMEM_A : WG_SPARSE;
    return smem ? WG_SMEM_A : WG;
  }
  switch (atom_copy((int)i->imm)->op) {
    case CO_LDSM: return LDSM;
    case CO_STSM: return STSM;
    case CO_MOVM: return MOVM;
    case CO_TMEM_LOAD: return TMEM_LOAD;
    case CO_TMEM_STORE: return TMEM_STORE;
    case CO_UNIVERSAL: case CO_AUTOVEC: case CO_CPASYNC: case CO_SHUFFLE:
    case CO_LOAD: case CO_STORE: case CO_TMEM_CP: case CO_BULK: case CO_TABLE:
      break;  // Other operations are not matrix instructions.
  }
  return NOTHING;
}

// Sets the number and the width of the registers in run k of i's atom.
static void run_of(const Ins *i, int k, Operand *o) {
  o->bits = 32;
  if (op_rows[i->op].imm != IMM_MMA) {
    o->n = atom_copy((int)i->imm)->num;
    return;
  }
  const AtomMma *row = atom_mma((int)i->imm);
  k = atom_mma_run(row, k);
  char c = row->regs[k];
  o->n = row->nreg[k];
  if (c == 'z') o->bits = 128;
  if (c == 'd' || c == 'l') o->bits = 64;
}

static int64_t moved(const Fn *fn, const Ins *i, Ref mem) {
  int64_t bits = dtype_bits(ir_type(fn, mem));
  switch ((ImmKind)op_rows[i->op].imm) {
    case IMM_ELEMENTS: return bits * i->imm;
    case IMM_BITS: return i->imm;
    // One row of an 8x8 matrix of 16-bit elements.
    case IMM_COPY: return i->op == OP_MATRIX ? 128 : bits;
    case IMM_NONE: case IMM_RAW: case IMM_ARG: case IMM_MEM: case IMM_TEXT:
    case IMM_SREG: case IMM_MATH: case IMM_INTRIN: case IMM_MMA:
    case IMM_UNROLL: case IMM_BARRIER: case IMM_GROUPS: case IMM_FENCE:
    case IMM_ATOMIC: case IMM_REGISTERS: case IMM_MODE: case IMM_LEVELS:
      break;
  }
  return bits;
}

// ---- shapes: the operands of each row, read once ----

// One word of a row's operands. list: whether the word describes any number of
// operands.
typedef struct Form {
  uint8_t kind, space, role;
  bool read, written, barrier, map, optional, list;
} Form;

typedef struct OpShape {
  Form form[OPERANDS];
  int n;
  // for each role: 1 + the number of Refs before the first operand with the
  // role; 0: no operand has it
  uint8_t at[ROLE_COUNT];
} OpShape;

// The meaning of each letter, without suffixes.
static const Form letters['x' + 1] = {
  ['v'] = {.kind = OPERAND_VALUE},
  ['p'] = {.kind = OPERAND_PRED},
  ['l'] = {.kind = OPERAND_LANES},
  ['x'] = {.kind = OPERAND_VAR, .read = true},
  ['X'] = {.kind = OPERAND_VAR, .written = true},
  ['r'] = {.kind = OPERAND_MEM, .read = true},
  ['w'] = {.kind = OPERAND_MEM, .written = true},
  ['a'] = {.kind = OPERAND_MEM, .read = true, .written = true},
  ['b'] = {.kind = OPERAND_MEM, .space = SP_SMEM, .read = true,
           .written = true, .barrier = true},
  ['o'] = {.kind = OPERAND_OBJECT},
  ['d'] = {.kind = OPERAND_MEM, .read = true, .map = true},
  ['D'] = {.kind = OPERAND_MEM, .read = true, .written = true, .map = true},
  ['m'] = {.kind = OPERAND_MAP, .read = true},
  ['M'] = {.kind = OPERAND_MAP, .written = true},
  ['R'] = {.kind = OPERAND_RUN, .space = SP_RMEM, .read = true},
  ['W'] = {.kind = OPERAND_RUN, .space = SP_RMEM, .written = true},
};

// If *s starts with a role and a colon, reads both.
static uint8_t read_role(const char **s) {
  size_t n = strcspn(*s, ": ");
  if ((*s)[n] != ':') return ROLE_NONE;
  Role r = ROLE_NONE;
  while (r < ROLE_COUNT - 1 &&
         (strlen(role_name(r)) != n || memcmp(role_name(r), *s, n) != 0))
    r++;
  *s += n + 1;
  return (uint8_t)r;
}

// Reads one word of a row's operands. Sets *times to the number of operands
// that it describes.
static Form read_form(const char **at, int *times) {
  const char *s = *at;
  Role role = read_role(&s);
  Form f = letters[(unsigned char)*s++];
  f.role = (uint8_t)role;
  if (*s == '.') {
    f.space = s[1] == 'g' ? SP_GMEM : s[1] == 's' ? SP_SMEM
              : s[1] == 't' ? SP_TMEM : SP_RMEM;
    s += 2;
  }
  if (*s == '?') f.optional = *s++;
  *times = *s >= '1' && *s <= '9' ? *s++ - '0' : 1;
  if (*s == '*') f.list = *s++;
  *at = s;
  return f;
}

static void read_shape(OpShape *shape, const char *s) {
  int refs = 0, times;
  while (*s == ' ') s++;
  for (; *s; s += strspn(s, " ")) {
    Form f = read_form(&s, &times);
    if (!shape->at[f.role]) shape->at[f.role] = (uint8_t)(1 + refs);
    for (int k = 0; k < times; k++) {
      shape->form[shape->n++] = f;
      refs += 1 + (f.kind == OPERAND_MEM);
    }
  }
  shape->at[ROLE_NONE] = 0;
}

static OpShape shapes[OP_COUNT + ROW_SHAPES];
static pthread_once_t shapes_once = PTHREAD_ONCE_INIT;

static void read_shapes(void) {
  for (int k = 0; k < OP_COUNT; k++)
    if (op_rows[k].operands[0] != '=')
      read_shape(&shapes[k], op_rows[k].operands);
  for (int k = 0; k < ROW_SHAPES; k++)
    read_shape(&shapes[OP_COUNT + k], row_operands[k]);
}

static const OpShape *shape_of(const Ins *i) {
  pthread_once(&shapes_once, read_shapes);
  bool row = op_rows[i->op].operands[0] == '=';
  return &shapes[row ? OP_COUNT + (int)row_shape(i) : i->op];
}

bool operand_has(Op op, Role role) {
  pthread_once(&shapes_once, read_shapes);
  return shapes[op].at[role];
}

// ---- the walk ----

Operands operands_of(const Fn *fn, const Ins *i) {
  return (Operands){.fn = fn, .i = i, .shape = shape_of(i)};
}

// Returns the k-th Ref of an instruction whose op has no list, or 0.
static Ref ref_at(const Fn *fn, const Ins *i, uint32_t k) {
  return k < 3 ? i->a[k] : k - 3 < i->nx ? fn->ext.p[i->ext + k - 3] : 0;
}

static Ref take(Operands *w) { return ref_at(w->fn, w->i, w->ref++); }

static void take_mem(Operands *w, Operand *o) {
  o->ref = take(w);
  o->off = take(w);
  o->bits = o->barrier ? 64 : o->map ? 1024 : moved(w->fn, w->i, o->ref);
}

static void take_run(Operands *w, Operand *o) {
  o->ref = take(w);
  o->reg = w->fn->reg.p + w->i->reg + w->reg;
  run_of(w->i, w->run++, o);
  w->reg += (uint32_t)o->n;
}

// Reports whether operands remain unread in the list that form f describes.
static bool listed(const Operands *w, const Form *f) {
  return w->list < (f->written ? w->i->flags : w->i->nx);
}

bool operands_next(Operands *w, Operand *o) {
  const Form *f = &w->shape->form[w->k];
  while (w->k < w->shape->n && f->list && !listed(w, f)) w->k++, f++;
  if (w->k == w->shape->n) return false;
  *o = (Operand){.kind = f->kind, .space = f->space, .role = f->role,
                 .read = f->read, .written = f->written,
                 .barrier = f->barrier, .map = f->map,
                 .optional = f->optional};
  if (f->list) {
    o->ref = w->fn->ext.p[w->i->ext + w->list++];
    return true;
  }
  w->k++;
  if (f->kind == OPERAND_RUN) take_run(w, o);
  else if (f->kind == OPERAND_MEM) take_mem(w, o);
  else o->ref = take(w);
  return true;
}

int operands_all(const Fn *fn, const Ins *i, Operand o[OPERANDS]) {
  int n = 0;
  for (Operands w = operands_of(fn, i); n < OPERANDS; n++)
    if (!operands_next(&w, &o[n])) break;
  return n;
}

Operand operand_of(const Fn *fn, const Ins *i, Role role) {
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.role == role) return o;
  return (Operand){.role = (uint8_t)role};
}

Ref operand_ref(const Fn *fn, const Ins *i, Role role) {
  unsigned at = shape_of(i)->at[role];
  return at ? ref_at(fn, i, at - 1) : 0;
}

int operand_refs(const Fn *fn, const Ins *i, Role role, Ref r[OPERANDS]) {
  int n = 0;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.role == role && o.ref) r[n++] = o.ref;
  return n;
}

const Ref *operands_list(const Fn *fn, const Ins *i, uint32_t *n) {
  uint32_t outs = i->op == OP_ASM ? i->flags : 0;
  *n = i->nx - outs;
  return fn->ext.p + i->ext + outs;
}

bool operand_range(const Fn *fn, const Operand *o, int k, int64_t *from,
                      int64_t *end) {
  const Mem *m = ir_memof(fn, o->ref);
  int64_t at, bits = dtype_bits(m->type);
  if (o->kind == OPERAND_RUN) at = o->reg[k];
  else if (o->kind != OPERAND_MEM || !ir_const(fn, o->off, &at)) return false;
  // the operand's type may differ from its object's type
  *from = at * dtype_bits(ir_type(fn, o->ref));
  *end = (*from + o->bits + bits - 1) / bits;
  *from /= bits;
  return m->count >= 1 && *from >= 0 && *end <= m->count;
}

bool operands_same(const Operand *a, const Operand *b) {
  return a->ref == b->ref && a->n == b->n &&
         memcmp(a->reg, b->reg, (size_t)a->n * sizeof *a->reg) == 0;
}

bool operands_accumulate(const Fn *fn, const Ins *i) {
  Operand acc = operand_of(fn, i, ROLE_ACC), c = operand_of(fn, i, ROLE_C);
  return operands_same(&acc, &c);
}

void ir_mark_arguments(Fn *fn) {
  Operand o;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (!(op_effect((Op)i->op) & EF_MEMORY)) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (o.kind != OPERAND_MEM && o.kind != OPERAND_MAP) continue;
      const Mem *m = ir_memof(fn, o.ref);
      if (!mem_is_global(m)) continue;
      if (m->arg == NO_ARG) continue;
      fn->arg.p[m->arg].written |= o.written;
      fn->arg.p[m->arg].read |= o.read;
    }
  }
}

// ---- building ----

Ref operands_emit(Ctx *cx, Fn *fn, Ins ins, const Ref *ref, uint32_t nref,
                  const uint32_t *reg, uint32_t nreg) {
  bool list = strchr(op_rows[ins.op].operands, '*') != NULL;
  // number of Refs in Ins.a[]
  uint32_t n = list ? 0 : nref < 3 ? nref : 3;
  for (uint32_t k = 0; k < n; k++) ins.a[k] = ref[k];
  for (uint32_t k = n; k < nref; k++) ir_use(cx, fn, ref[k]);
  ins.ext = (uint32_t)fn->ext.n;
  ins.nx = nref - n;
  vec_reserve(cx, fn->ext, fn->ext.n + ins.nx);
  if (ins.nx) memcpy(fn->ext.p + ins.ext, ref + n, ins.nx * sizeof *ref);
  fn->ext.n += ins.nx;
  ins.reg = (uint32_t)fn->reg.n;
  vec_reserve(cx, fn->reg, fn->reg.n + nreg);
  if (nreg) memcpy(fn->reg.p + ins.reg, reg, nreg * sizeof *reg);
  fn->reg.n += nreg;
  return ir_emit(cx, fn, ins);
}

bool operand_is_global(const Fn *fn, const Operand *o) {
  return o->ref && (o->kind == OPERAND_MEM || o->kind == OPERAND_MAP) &&
         ir_is_global(fn, o->ref);
}
// SPDX-License-Identifier: MIT
