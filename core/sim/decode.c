// Fn -> SimProg: which values are the same in all lanes of a warp, where
// each value lies, where regions jump to.
#include "ir/intrin.h"
#include "sim/inside.h"
#include "sim/tables.h"

#include <string.h>

typedef struct Prog {
  Ctx *cx;
  const Launch *l;
  const Fn *fn;
  SimProg *p;
  bool *uni;         // same in all lanes
  bool *bad;         // VAR or LOOP: found to differ between lanes
  bool *need;        // somebody reads it
  bool *spread;      // ... in all lanes
  uint32_t *slot;
  uint32_t *home;    // VAR: divergent regions around it
  uint32_t *head;    // region stack while decoding: index of SimIns
  uint32_t nhead;
  uint32_t top;      // bytes of values so far
  int gran;
} Prog;

SimClass sim_class(DType t) {
  switch ((int)t) {
    case DT_I32: return SC_I32;
    case DT_U32: return SC_U32;
    case DT_I64: return SC_I64;
    case DT_U64: return SC_U64;
    case DT_F32: return SC_F32;
    case DT_F64: return SC_F64;
    case DT_BOOL: return SC_PRED;
    default: return SC_OTHER;
  }
}

static bool is_pure(const Ins *i) {
  return (op_flags((Op)i->op) & OPF_P) || i->op == OP_VGET;
}

static bool is_leaf(const Ins *i) {
  return i->op == OP_CONST || i->op == OP_ARG || i->op == OP_SREG;
}

static const SimMem *mem_at(Prog *g, Ref r) {
  if (!ir_is_mem(g->fn, r))
    ctx_fail(g->cx, ERR_INTERNAL, "operand %u is no memory object", r);
  return g->p->mem[r];
}

// ---- uniform values ----

static bool sreg_uniform(Prog *g, SReg s) {
  switch (s) {
    case SR_TID_X: case SR_TID_Y: case SR_TID_Z:
      return g->l->block[s - SR_TID_X] == 1;
    case SR_LANE: return false;
    case SR_CTAID_X: case SR_CTAID_Y: case SR_CTAID_Z:
    case SR_NTID_X: case SR_NTID_Y: case SR_NTID_Z:
    case SR_NCTAID_X: case SR_NCTAID_Y: case SR_NCTAID_Z:
    case SR_WARP: case SR_SMID: case SR_COUNT:
      break;
  }
  return true;
}

static bool find_uniform(Prog *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  switch ((int)i->op) {
    case OP_CONST: case OP_ARG: return true;
    case OP_SREG: return sreg_uniform(g, (SReg)i->imm);
    case OP_LD: case OP_ATOMIC: case OP_ASK: return false;
    case OP_INTRIN:
      if (intrin_row(intrin_id(i))->class == INTRIN_L) return false;
      break;
    case OP_VAR: if (g->bad[r]) return false; break;
    default: break;
  }
  for (int k = 0; k < op_arity((Op)i->op); k++)
    if (i->a[k] && !g->uni[i->a[k]]) return false;
  return true;
}

// One pass over the regions; true when something was found to differ.
static bool uniform_pass(Prog *g, uint32_t *open) {
  bool changed = false;
  uint32_t n = 0, div = 0;  // open regions; divergent ones among them
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    g->uni[r] = find_uniform(g, r);
    switch ((int)i->op) {
      case OP_VAR: g->home[r] = div; break;
      case OP_VSET: {
        Ref v = i->a[0];
        if (g->bad[v] || (g->uni[i->a[1]] && div <= g->home[v])) break;
        changed = g->bad[v] = true;
        break;
      }
      case OP_BREAKIF: {
        Ref h = n ? open[n - 1] : 0;
        if (g->uni[i->a[0]] || g->bad[h]) break;
        changed = g->bad[h] = true;
        break;
      }
      case OP_FOR: case OP_IF: case OP_LOOP:
        if (i->op == OP_LOOP) g->uni[r] = !g->bad[r];
        if (!g->uni[r]) g->home[r] = 1;
        div += !g->uni[r];
        open[n++] = r;
        break;
      case OP_END: div -= !g->uni[open[--n]]; break;
      default: break;
    }
  }
  return changed;
}

static void find_all_uniform(Prog *g) {
  size_t n = g->fn->ins.n;
  uint32_t *open = NEW(g->cx, uint32_t, n);
  while (uniform_pass(g, open)) {}
}

// ---- who reads what ----

static void want(Prog *g, Ref r, bool lanes) {
  g->need[r] = true;
  if (lanes) g->spread[r] = true;
}

static void want_ext(Prog *g, const Ins *i) {
  const uint32_t *x = &g->fn->ext.p[i->ext];
  if (i->op == OP_PRINTF) {
    for (uint32_t k = 0; k < i->nx; k++) want(g, x[k], true);
    return;
  }
  if (i->op == OP_ATOMIC && i->nx) want(g, x[0], true);
  if (i->op == OP_COPY || i->op == OP_CPASYNC) {
    if (mem_at(g, x[0])->space != SP_RMEM) want(g, x[1], true);
    if (mem_at(g, x[2])->space != SP_RMEM) want(g, x[3], true);
    if (x[4]) want(g, x[4], true);
    return;
  }
  if (i->op != OP_MATRIX || atom_copy((int)i->imm)->op == CO_MOVM) return;
  // registers follow their object; shared memory has one offset
  if (mem_at(g, x[0])->space == SP_SMEM) want(g, x[1], true);
  else want(g, x[i->nx - 1], true);
}

static void want_operands(Prog *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  bool lanes = !g->uni[r];
  switch ((int)i->op) {
    case OP_VSET: want(g, i->a[1], !g->uni[i->a[0]]); return;
    case OP_VGET: return;
    case OP_LD: case OP_ST: case OP_ATOMIC: case OP_FILL:
      if (mem_at(g, i->a[0])->space != SP_RMEM) want(g, i->a[1], true);
      if (i->op != OP_LD) want(g, i->a[2], true);
      want_ext(g, i);
      return;
    case OP_IF: case OP_BREAKIF: lanes = !g->uni[i->a[0]]; break;
    case OP_BAR: case OP_BARARRIVE: lanes = false; break;
    case OP_SYNCWARP: case OP_ASK: case OP_TRAP: lanes = true; break;
    default: break;
  }
  want_ext(g, i);
  for (int k = 0; k < op_arity((Op)i->op); k++)
    if (i->a[k]) want(g, i->a[k], lanes);
}

static void find_needs(Prog *g) {
  for (Ref r = (Ref)g->fn->ins.n; r-- > 1;)
    if (!is_pure(ir_get(g->fn, r)) || g->need[r]) want_operands(g, r);
}

// ---- places ----

static uint32_t take(Prog *g, uint64_t bytes, uint32_t align) {
  uint64_t at = (g->top + align - 1) & ~(uint64_t)(align - 1);
  if (at + bytes > UINT32_MAX / 2)
    ctx_fail(g->cx, ERR_LIMIT, "a thread's values take over 64 MB a warp");
  g->top = (uint32_t)(at + bytes);
  return (uint32_t)at;
}

static bool has_value(const Ins *i) {
  switch ((int)i->op) {
    case OP_LD: case OP_ATOMIC: case OP_ASK: case OP_VAR: case OP_FOR:
      return true;
    case OP_GMEM: case OP_NOP: return false;
    default: return is_pure(i);
  }
}

static void place_init(Prog *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  SimInit *n = &g->p->init[g->p->ninit++];
  int bits = dtype_bits((DType)i->type);
  uint64_t v = (uint64_t)i->imm;
  if (i->op == OP_ARG) v = g->l->arg[i->imm].bits;
  if (i->op != OP_SREG && bits < 64) v &= ((uint64_t)1 << bits) - 1;
  *n = (SimInit){.slot = g->slot[r], .wide = sim_wide((DType)i->type),
                 .spread = g->spread[r] || !g->uni[r], .kind = i->op,
                 .imm = (int64_t)v};
}

static void place_values(Prog *g) {
  size_t n = g->fn->ins.n;
  uint32_t leaves = 0;
  for (Ref r = 1; r < n; r++) {
    const Ins *i = ir_get(g->fn, r);
    if (!has_value(i) || (is_pure(i) && !g->need[r])) continue;
    if (dtype_bits((DType)i->type) > 64 && i->op != OP_CONST)
      ctx_fail(g->cx, ERR_ARG, "the simulator has no scalars of type %s",
               dtype_name((DType)i->type));
    uint32_t lane = sim_wide((DType)i->type) ? 8 : 4;
    bool one = g->uni[r] && !g->spread[r];
    g->slot[r] = one ? take(g, 8, 8) : take(g, lane * LANES, 64);
    leaves += is_leaf(i);
  }
  g->p->init = NEW(g->cx, SimInit, leaves);
  for (Ref r = 1; r < n; r++)
    if (is_leaf(ir_get(g->fn, r)) && g->need[r]) place_init(g, r);
}

// Units of registers: the narrowest element of all names of the object.
static int *find_units(Prog *g) {
  int *unit = NEW(g->cx, int, g->fn->mem.n + 1);
  for (size_t k = 0; k < g->fn->mem.n; k++)
    unit[k] = dtype_bits(g->fn->mem.p[k].type);
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    if (!ir_is_mem(g->fn, r)) continue;
    const Ins *i = ir_get(g->fn, r);
    if (dtype_bits((DType)i->type) < unit[i->imm])
      unit[i->imm] = dtype_bits((DType)i->type);
  }
  return unit;
}

static void place_mem(Prog *g, Ref r, SimMem *s, int unit) {
  const Ins *i = ir_get(g->fn, r);
  const Mem *m = &g->fn->mem.p[i->imm];
  *s = (SimMem){.space = m->space, .type = (DType)i->type,
                .count = m->count, .own = dtype_bits(m->type),
                .bits = dtype_bits((DType)i->type), .index = (int32_t)i->imm};
  if (m->space == SP_RMEM) {
    s->unit = unit;
    s->size = (unit + 7) / 8;
    s->per = s->bits / unit;
    s->count = m->count * s->own / unit;  // units
    if (m->ref != r) {
      s->base = g->p->mem[m->ref]->base;
      s->def = g->p->mem[m->ref]->def;
      return;
    }
    s->base = take(g, (uint64_t)s->count * LANES * (uint64_t)s->size, 64);
    s->def = take(g, (uint64_t)s->count * 4, 64);
    return;
  }
  if (s->count >= 0) s->count = s->count * s->own / s->bits;
  if (m->space == SP_SMEM) {
    s->base = (uint32_t)m->offset;
  } else {
    const LaunchArg *a = &g->l->arg[m->arg];
    s->p = a->p;
    s->defined = a->defined;
    s->area = simblocks_area(g->p, m->arg);
    int64_t most = (int64_t)(a->bytes * 8) / s->bits;
    if (s->count < 0 || s->count > most) s->count = most;
  }
  s->bytes = (s->count * s->bits + 7) / 8;
}

static void place_all_mem(Prog *g) {
  const int *unit = find_units(g);
  size_t n = g->fn->ins.n;
  g->p->mem = arena_zero(g->cx, &g->cx->scratch, n * sizeof *g->p->mem);
  for (Ref r = 1; r < n; r++) {
    if (!ir_is_mem(g->fn, r)) continue;
    SimMem *m = NEW(g->cx, SimMem, 1);
    place_mem(g, r, m, unit[g->fn->ins.p[r].imm]);
    g->p->mem[r] = m;
  }
}

// ---- decoding ----

static int32_t new_stat(Prog *g, Ref r) {
  g->p->stat_ref[g->p->nstat] = r;
  return (int32_t)g->p->nstat++;
}

// A shared-memory access of so many bytes: granules are no wider.
static void note_access(Prog *g, const SimMem *m, int bytes, bool write) {
  if (bytes < 1 || bytes > 32 || (bytes & (bytes - 1)))
    ctx_fail(g->cx, ERR_ARG, "the simulator cannot move %d bytes at once",
             bytes);
  if (m->space == SP_SMEM && bytes < g->gran) g->gran = bytes;
  if (m->space == SP_GMEM) simblocks_note(m, bytes, write);
}

static SimSide side(Prog *g, Ref mem, Ref off) {
  SimSide s = {.mem = mem_at(g, mem), .slot = g->slot[off]};
  s.wide = sim_wide(ir_type(g->fn, off));
  if (s.mem->space != SP_RMEM) return s;
  ir_const(g->fn, off, &s.konst);
  s.konst *= s.mem->per;
  return s;
}

static void decode_copy(Prog *g, const Ins *i, SimIns *d) {
  const uint32_t *x = &g->fn->ext.p[i->ext];
  SimCopy *c = NEW(g->cx, SimCopy, 1);
  *c = (SimCopy){side(g, x[0], x[1]), side(g, x[2], x[3]),
                 x[4] ? g->slot[x[4]] : 0, (int)(i->imm / 8)};
  if (i->imm % 8)
    ctx_fail(g->cx, ERR_ARG, "the simulator cannot move %d bits at once",
             (int)i->imm);
  note_access(g, c->dst.mem, c->bytes, true);
  note_access(g, c->src.mem, c->bytes, false);
  d->x = c;
  d->imm = i->flags;
  if (c->dst.mem->space != SP_RMEM || c->src.mem->space != SP_RMEM)
    d->stat = new_stat(g, d->ref);
}

static void decode_element(Prog *g, const Ins *i, SimIns *d) {
  SimSide *s = NEW(g->cx, SimSide, 1);
  *s = side(g, i->a[0], i->a[1]);
  if (s->mem->bits < 8 && i->op == OP_ATOMIC)
    ctx_fail(g->cx, ERR_ARG, "an atomic operation on elements of type %s",
             dtype_name(s->mem->type));
  note_access(g, s->mem, (s->mem->bits + 7) / 8, i->op != OP_LD);
  d->x = s;
  d->wide = sim_wide(s->mem->type);
  if (i->op == OP_FILL) d->imm = i->imm;
  d->sem = (uint8_t)hint_get(i->flags, HINT_SEM);
  d->scope = (uint8_t)hint_get(i->flags, HINT_SCOPE);
  if (i->op == OP_ATOMIC && !d->sem) d->sem = SEM_RELAXED;
  if (d->sem && !d->scope) d->scope = SCOPE_GPU;
  if (s->mem->space != SP_RMEM) d->stat = new_stat(g, d->ref);
}

static void decode_print(Prog *g, const Ins *i, SimIns *d) {
  SimPrint *p = NEW(g->cx, SimPrint, 1);
  uint32_t *slot = NEW(g->cx, uint32_t, i->nx + 1);
  uint8_t *type = NEW(g->cx, uint8_t, i->nx + 1);
  for (uint32_t k = 0; k < i->nx; k++) {
    Ref r = g->fn->ext.p[i->ext + k];
    slot[k] = g->slot[r];
    type[k] = ir_get(g->fn, r)->type;
  }
  *p = (SimPrint){ir_str(g->fn, (uint32_t)i->imm), i->nx, slot, type};
  d->x = p;
}

// Regions: d is instruction number `at` of the program.
static void decode_region(Prog *g, const Ins *i, SimIns *d, uint32_t at) {
  SimIns *prog = g->p->ins;
  if (i->op == OP_BREAKIF) {
    d->jump = g->head[g->nhead - 1];  // its LOOP, mended at the end
    return;
  }
  if (i->op == OP_ELSE) {
    prog[g->head[g->nhead - 1]].jump = at;
    d->uniform = prog[g->head[g->nhead - 1]].uniform;
    g->head[g->nhead - 1] = at;
    return;
  }
  if (i->op != OP_END) {
    g->head[g->nhead++] = at;
    if (g->nhead > g->p->depth) g->p->depth = g->nhead;
    return;
  }
  uint32_t h = g->head[--g->nhead];
  SimIns *f = &prog[h];
  d->head = f->op == OP_ELSE ? OP_IF : f->op;
  if (d->head == OP_IF) {
    f->jump = at;
    return;
  }
  d->jump = h + 1;
  f->jump = at + 1;
  if (f->op == OP_FOR) {
    d->d = f->d;
    d->b = f->b;
    d->c = f->c;
    d->type = f->type;
    d->wide = f->wide;
    d->uniform = f->uniform;
    d->spread = f->spread;
    d->stat = -1;
  } else {
    for (uint32_t k = h + 1; k < at; k++)
      if (prog[k].op == OP_BREAKIF && prog[k].jump == h && !prog[k].imm) {
        prog[k].jump = at + 1;
        prog[k].imm = 1;
      }
  }
}

static void decode_scalars(Prog *g, Ref r, const Ins *i, SimIns *d) {
  Ref o = i->a[0];
  d->a = o ? g->slot[o] : 0;
  d->b = i->a[1] ? g->slot[i->a[1]] : 0;
  d->c = i->a[2] ? g->slot[i->a[2]] : 0;
  d->d = g->slot[r];
  d->to = i->type;
  d->type = i->type;
  d->wide = sim_wide((DType)i->type);
  switch ((int)i->op) {
    case OP_LT: case OP_LE: case OP_EQ: case OP_NE: case OP_CVT:
    case OP_BITCAST:
      d->type = (uint8_t)ir_type(g->fn, o);
      break;
    case OP_VSET:
      d->type = (uint8_t)ir_type(g->fn, i->a[1]);
      d->wide = sim_wide((DType)d->type);
      d->uniform = g->uni[o];
      d->a = d->b;
      d->d = g->slot[o];
      break;
    case OP_IF: case OP_BREAKIF: d->uniform = g->uni[o]; break;
    default: break;
  }
  d->cls = (uint8_t)sim_class((DType)d->type);
}

static void decode(Prog *g, Ref r, const Ins *i, SimIns *d, uint32_t at) {
  *d = (SimIns){.op = i->op, .src = i->src, .ref = r, .stat = -1,
                .imm = i->imm, .uniform = g->uni[r],
                .spread = g->spread[r], .who = (uint8_t)check_who(i)};
  decode_scalars(g, r, i, d);
  d->mask = d->c ? d->c : d->b ? d->b : d->a;
  switch ((int)i->op) {
    case OP_COPY: case OP_CPASYNC: decode_copy(g, i, d); break;
    case OP_LD: case OP_ST: case OP_FILL: case OP_ATOMIC:
      decode_element(g, i, d);
      d->b = i->nx ? g->slot[g->fn->ext.p[i->ext]] : 0;
      break;
    case OP_ASM:
      ctx_fail(g->cx, ERR_ARG, "line %u: the simulator cannot execute inline "
               "PTX\n  it runs on a GPU; on the simulator use the functions "
               "of cute.arch", g->fn->src.p[i->src].line);
    case OP_MMA: d->x = simtables_mma(g->cx, g->l, g->p->mem, i); break;
    case OP_MATRIX: {
      SimMatrix *m = simtables_matrix(g->cx, g->l, g->p->mem, i);
      const uint32_t *x = &g->fn->ext.p[i->ext];
      d->x = m;
      if (m->from.mem) break;
      m->smem = m->store ? side(g, x[0], x[1])
                         : side(g, x[i->nx - 2], x[i->nx - 1]);
      d->stat = new_stat(g, r);
      break;
    }
    case OP_RMEM: d->x = mem_at(g, r); break;
    case OP_PRINTF: decode_print(g, i, d); break;
    case OP_FOR: case OP_LOOP: case OP_IF: case OP_ELSE: case OP_END:
    case OP_BREAKIF:
      decode_region(g, i, d, at);
      break;
    default: break;
  }
}

static bool skipped(Prog *g, Ref r, const Ins *i) {
  if (is_leaf(i) || i->op == OP_GMEM || i->op == OP_SMEM || i->op == OP_NOP ||
      (i->op == OP_RMEM && g->fn->mem.p[i->imm].ref != r))
    return true;
  return is_pure(i) && !g->need[r];
}

static void decode_all(Prog *g) {
  size_t n = g->fn->ins.n;
  SimProg *p = g->p;
  p->ins = NEW(g->cx, SimIns, n + 1);
  p->stat_ref = NEW(g->cx, uint32_t, n);
  g->head = NEW(g->cx, uint32_t, n);
  for (Ref r = 1; r < n; r++) {
    const Ins *i = ir_get(g->fn, r);
    if (skipped(g, r, i)) continue;
    decode(g, r, i, &p->ins[p->nins], p->nins);
    p->nins++;
  }
  p->ins[p->nins] = (SimIns){.op = OP_NOP, .stat = -1};  // the end
  if (p->nins) p->ins[p->nins].src = p->ins[p->nins - 1].src;
}

static void check_launch(Ctx *cx, const Launch *l) {
  int64_t n = 1;
  for (int k = 0; k < 3; k++) {
    if (l->grid[k] < 1 || l->block[k] < 1)
      ctx_fail(cx, ERR_LAUNCH, "grid (%d,%d,%d) and block (%d,%d,%d) must be "
               "positive", l->grid[0], l->grid[1], l->grid[2], l->block[0],
               l->block[1], l->block[2]);
    n *= l->block[k];
    int32_t want_n = l->fn->block[k];
    if (want_n && want_n != l->block[k])
      ctx_fail(cx, ERR_LAUNCH, "the kernel was traced for a block of "
               "(%d,%d,%d) threads, not (%d,%d,%d)", l->fn->block[0],
               l->fn->block[1], l->fn->block[2], l->block[0], l->block[1],
               l->block[2]);
  }
  if (n > LANES * MAX_WARPS)
    ctx_fail(cx, ERR_LAUNCH, "a block of %lld threads; at most %d",
             (long long)n, LANES * MAX_WARPS);
}

SimProg *simdecode_make(Ctx *cx, const Launch *l) {
  check_launch(cx, l);
  const Fn *fn = l->fn;
  size_t n = fn->ins.n;
  SimProg *p = arena_zero(cx, &cx->scratch, sizeof *p);
  Prog g = {.cx = cx, .l = l, .fn = fn, .p = p, .gran = 16};
  g.uni = arena_zero(cx, &cx->scratch, n);
  g.bad = arena_zero(cx, &cx->scratch, n);
  g.need = arena_zero(cx, &cx->scratch, n);
  g.spread = arena_zero(cx, &cx->scratch, n);
  g.slot = arena_zero(cx, &cx->scratch, n * 4);
  g.home = arena_zero(cx, &cx->scratch, n * 4);
  p->launch = l;
  p->fn = fn;
  p->nthread = l->block[0] * l->block[1] * l->block[2];
  p->nwarp = (p->nthread + LANES - 1) / LANES;
  take(&g, 64, 64);  // slot 0 is nobody's
  simblocks_areas(cx, p);
  place_all_mem(&g);
  p->value_base = take(&g, 0, SLOT);
  find_all_uniform(&g);
  find_needs(&g);
  place_values(&g);
  decode_all(&g);
  p->value_bytes = (g.top + 63) & ~63u;
  p->ntaint = (p->value_bytes - p->value_base) / SLOT + 1;
  p->gran = g.gran;
  p->smem_bytes = (fn->smem_bytes + 15) & ~(int64_t)15;
  p->ngran = (uint32_t)(p->smem_bytes / p->gran);
  simblocks_start(cx, p);
  return p;
}
