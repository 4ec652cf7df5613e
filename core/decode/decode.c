// Decodes a function of the IR (Fn) into a SimProg: finds the values that are
// equal in all lanes of a warp, assigns storage (slots) to values, and resolves
// the jumps of loops and branches.
#include "decode/areas.h"
#include "decode/assertion.h"
#include "decode/copies.h"
#include "decode/fits.h"
#include "decode/footprint.h"
#include "decode/fragments.h"
#include "decode/raw_pointer.h"
#include "decode/ring.h"
#include "decode/try_wait.h"
#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/target.h"

#include <string.h>

typedef struct Prog {
  Ctx *cx;
  const Launch *l;
  const Fn *fn;
  SimProg *p;
  bool *uni;  // for each Ref: whether its value is equal in all lanes of a warp
  bool *bad;  // for each VAR or region: whether it was found to be divergent
  bool *need;        // for each Ref: whether some instruction reads it
  bool *spread;  // for each Ref: whether some instruction reads it in all lanes
  uint32_t *slot;
  // for a try_wait and the wait after it: a slot that both use (try_wait.h)
  uint32_t *token;
  // for each VAR: number of divergent regions that enclose it
  uint32_t *home;
  // stack of the open regions: index of the SimIns that opens each one
  uint32_t *head;
  uint32_t nhead;
  uint32_t top;      // bytes of slots assigned so far
  uint32_t full;  // slot with a mask of all lanes, if the program is patched
  // from this IR instruction on, instructions compute operands of patches
  Ref end;
  int gran;
  const SimMmaIns *mma;  // the last decoded MMA
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

// Reports whether i may be omitted if its value is not needed.
static bool is_pure(const Ins *i) {
  return op_pure((Op)i->op) || i->op == OP_VGET;
}

static bool is_leaf(const Ins *i) { return op_effect((Op)i->op) & EF_FIXED; }

static const SimMem *mem_at(Prog *g, Ref r) {
  if (!ir_is_mem(g->fn, r))
    ctx_fail(g->cx, ERR_INTERNAL, "operand %u is not a memory object", r);
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
    case SR_WARP: case SR_SMID:
    case SR_CLUSTERID_X: case SR_CLUSTERID_Y: case SR_CLUSTERID_Z:
    case SR_NCLUSTERID_X: case SR_NCLUSTERID_Y: case SR_NCLUSTERID_Z:
    case SR_CLUSTER_CTAID_X: case SR_CLUSTER_CTAID_Y: case SR_CLUSTER_CTAID_Z:
    case SR_CLUSTER_NCTAID_X: case SR_CLUSTER_NCTAID_Y:
    case SR_CLUSTER_NCTAID_Z: case SR_CLUSTER_CTARANK:
    case SR_CLUSTER_NCTARANK: case SR_COUNT:
      break;
  }
  return true;
}

// Reports whether r is uniform, which means equal in all lanes of a warp. A
// value that depends only on its operands is uniform if the operands are. A
// region is uniform if its condition or its bounds are. Everything else is
// divergent.
static bool find_uniform(Prog *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  Operand o;
  if (!(op_effect((Op)i->op) & (EF_PURE | EF_VAR | EF_OPENS))) return false;
  if (i->op == OP_SREG) return sreg_uniform(g, (SReg)i->imm);
  if (i->op == OP_VAR && g->bad[r]) return false;
  if (i->op == OP_INTRIN && intrin_row(intrin_id(i->imm))->class == INTRIN_L)
    return false;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
    if (o.ref && !g->uni[o.ref]) return false;
  return true;
}

// Marks a VAR or region as divergent. Returns true if it was not marked before.
static bool spoil(Prog *g, Ref r) {
  bool news = !g->bad[r];
  g->bad[r] = true;
  return news;
}

// Reports whether break i may take some lanes of a warp out of a region while
// other lanes of the warp stay in it.
static bool parts_lanes(Prog *g, const Ins *i, const uint32_t *open,
                        uint32_t n) {
  bool one = g->uni[i->a[0]];
  for (uint32_t k = 1; k < (uint64_t)i->imm; k++) one &= g->uni[open[n - k]];
  return !one;
}

// Visits all instructions once. Returns true if it found a new divergent VAR or
// region.
static bool uniform_pass(Prog *g, uint32_t *open) {
  bool changed = false;
  // n: number of open regions. div: number of divergent regions among them.
  uint32_t n = 0, div = 0;
  for (Ref r = g->end; r < g->fn->ins.n; r++) g->uni[r] = find_uniform(g, r);
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    g->uni[r] = find_uniform(g, r);
    unsigned effect = op_effect((Op)i->op);
    bool opens = effect & EF_OPENS, closes = effect & EF_CLOSES;
    if (i->op == OP_VAR) g->home[r] = div;
    if (i->op == OP_VSET && !(g->uni[i->a[1]] && div <= g->home[i->a[0]]))
      changed |= spoil(g, i->a[0]);
    if (i->op == OP_BREAKIF && parts_lanes(g, i, open, n))
      changed |= spoil(g, open[n - (uint32_t)i->imm]);
    if (opens && !closes) {
      // A region is divergent if some lanes leave it while others stay, or if
      // its condition or one of its bounds is divergent.
      if (g->bad[r]) g->uni[r] = false;
      if (!g->uni[r]) g->home[r] = 1;
      div += !g->uni[r];
      open[n++] = r;
    }
    if (closes && !opens) div -= !g->uni[open[--n]];
  }
  return changed;
}

static void find_all_uniform(Prog *g) {
  size_t n = g->fn->ins.n;
  uint32_t *open = NEW(g->cx, uint32_t, n);
  while (uniform_pass(g, open)) {}
}

// ---- needed values ----

static void want(Prog *g, Ref r, bool lanes) {
  g->need[r] = true;
  if (lanes) g->spread[r] = true;
}

// Reports whether a barrier's thread count and number are uniform.
static bool bar_uniform(Prog *g, const Ins *i) {
  return (!i->a[0] || g->uni[i->a[0]]) && (!i->a[1] || g->uni[i->a[1]]);
}

// Reports whether instruction r reads its operands in all lanes, so that
// uniform operands must be copied to all lanes.
static bool reads_lanes(Prog *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  if (i->op == OP_VSET || op_effect((Op)i->op) & EF_LEAVES)
    return !g->uni[i->a[0]];
  if (i->op == OP_BAR || i->op == OP_BARARRIVE) return !bar_uniform(g, i);
  return !g->uni[r];
}

static void want_operands(Prog *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  bool lanes = reads_lanes(g, r);
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
    switch ((OperandKind)o.kind) {
      case OPERAND_VALUE: case OPERAND_PRED: case OPERAND_LANES:
        if (o.ref) want(g, o.ref, lanes);
        break;
      case OPERAND_MEM:
        if (!sim_in_registers(mem_at(g, o.ref))) want(g, o.off, true);
        break;
      case OPERAND_VAR: case OPERAND_MAP: case OPERAND_RUN: case OPERAND_OBJECT:
        break;  // Operands of these kinds are not values and have no slot.
    }
}

static bool has_value(const Ins *i) {
  return i->type != DT_NONE && !(op_effect((Op)i->op) & EF_OBJECT);
}

static void find_needs(Prog *g) {
  for (size_t k = 0; k < g->fn->claim.n; k++) {
    const Claim *c = &g->fn->claim.p[k];
    if (c->v) want(g, c->v, false);
    if (c->limit) want(g, c->limit, false);
    if (c->when) want(g, c->when, false);
  }
  for (Ref r = 1; g->l->debug && r < g->fn->ins.n; r++)
    if (has_value(ir_get(g->fn, r))) want(g, r, true);
  for (Ref r = g->end; r < g->fn->ins.n; r++) want(g, r, true);
  for (Ref r = (Ref)g->fn->ins.n; r-- > 1;)
    if (!is_pure(ir_get(g->fn, r)) || g->need[r]) want_operands(g, r);
}

// ---- slots ----

static uint32_t take(Prog *g, uint64_t bytes, uint32_t align) {
  uint64_t at = (g->top + align - 1) & ~(uint64_t)(align - 1);
  if (at + bytes > UINT32_MAX / 2)
    ctx_fail(g->cx, ERR_LIMIT, "the values of a warp take more than 2 GB: "
             "the kernel is too large for the simulator");
  g->top = (uint32_t)(at + bytes);
  return (uint32_t)at;
}

// Allocates rows for n elements. Each row has `size` bytes for each lane or, if
// size is 0, one bit for each lane.
static uint32_t take_rows(Prog *g, uint64_t n, uint32_t size) {
  uint32_t at = take(g, n * (size ? size * LANES : 4), 64);
  g->p->rows[g->p->nrows++] = (SimRows){at, (uint32_t)n, size};
  return at;
}

static void place_init(Prog *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  SimInit *n = &g->p->init[g->p->ninit++];
  int bits = dtype_bits((DType)i->type);
  uint64_t v = (uint64_t)i->imm;
  if (i->op == OP_ARG) v = g->l->arg[i->imm].bits;
  if (i->op == OP_ADDRESS) {
    const Mem *m = ir_memof(g->fn, i->a[0]);
    v = (uint64_t)(uintptr_t)g->l->arg[m->arg].p;
  }
  if (i->op == OP_MAPWORD) {
    uint64_t words[TENSORMAP_WORDS];
    tensormap_encode(g->l->arg[ir_memof(g->fn, i->a[0])->arg].map, words);
    v = words[i->imm];
  }
  if (i->op == OP_DESC) v |= (uint64_t)ir_memof(g->fn, i->a[0])->offset >> 4;
  if (i->op != OP_SREG && bits < 64) v &= ((uint64_t)1 << bits) - 1;
  *n = (SimInit){.slot = g->slot[r], .wide = sim_wide((DType)i->type),
                 .spread = g->spread[r] || !g->uni[r], .kind = i->op,
                 .imm = (int64_t)v, .src = i->src};
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
    g->slot[r] = one ? take(g, 8, 8) : take_rows(g, 1, lane);
    leaves += is_leaf(i);
  }
  g->p->init = NEW(g->cx, SimInit, leaves + 1);
  if (g->l->npatch) {
    g->full = take(g, SLOT, 64);
    g->p->init[g->p->ninit++] = (SimInit){.slot = g->full, .spread = true,
                                          .kind = OP_CONST, .imm = FULL};
  }
  for (Ref r = 1; r < n; r++)
    if (is_leaf(ir_get(g->fn, r)) && g->need[r]) place_init(g, r);
}

static void place_tokens(Prog *g) {
  g->token = try_wait_find(g->cx, g->fn);
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    uint32_t first = g->token[r];
    if (first) g->token[r] = first == r ? take_rows(g, 1, 4) : g->token[first];
  }
}

// Finds the unit in which each register object is stored: the width of the
// narrowest element among all names of the object.
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

// Reports whether some instruction initializes an mbarrier in m, an object in
// shared memory.
static bool holds_mbars(const Fn *fn, const Mem *m) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_MBARINIT && ir_overlaps(ir_memof(fn, i->a[0]), m))
      return true;
  }
  return false;
}

// Places a global memory object in the host memory of its pointer argument. An
// object at a raw address has no elements until the address is known.
static void place_argument(Prog *g, const Mem *m, SimMem *s) {
  if (m->arg == NO_ARG) {
    s->count = 0;
    return;
  }
  const LaunchArg *a = &g->l->arg[m->arg];
  s->p = a->p;
  s->defined = a->defined;
  s->before = g->l->pdl ? a->before : 0;
  s->area = areas_area(g->p, m->arg);
  if (m->space == SP_GMEM) s->members = footprint_gaps(g->cx, g->l, m);
  int64_t most = (int64_t)(a->bytes * 8) / s->bits;
  if (s->count < 0 || s->count > most) s->count = most;
}

static void place_registers(Prog *g, Ref r, SimMem *s, int unit) {
  const Mem *m = ir_memof(g->fn, r);
  s->unit = unit;
  s->size = (unit + 7) / 8;
  s->per = s->bits / unit;
  // Convert the counts from elements to units.
  s->count = m->count * s->own / unit;
  bool view = m->ref != r;
  s->base = view ? g->p->mem[m->ref]->base
                 : take_rows(g, (uint64_t)s->count, (uint32_t)s->size);
  s->def = view ? g->p->mem[m->ref]->def
                : take_rows(g, (uint64_t)s->count, 0);
}

static void place_mem(Prog *g, Ref r, SimMem *s, int unit) {
  const Ins *i = ir_get(g->fn, r);
  const Mem *m = &g->fn->mem.p[i->imm];
  *s = (SimMem){.memory = mem_memory(m), .type = (DType)i->type,
                .count = m->count, .own = dtype_bits(m->type),
                .bits = dtype_bits((DType)i->type), .index = (int32_t)i->imm,
                .named = (int32_t)i->imm, .lax = m->undefined_ok};
  if (s->count >= 0) s->count = s->count * s->own / s->bits;
  switch (s->memory) {
    case MEMORY_REGISTERS: place_registers(g, r, s, unit); return;
    case MEMORY_SHARED:
      s->base = (uint32_t)m->offset;
      s->mbars = holds_mbars(g->fn, m);
      ring_find(g->cx, g->fn, m, s);
      break;
    case MEMORY_GLOBAL: place_argument(g, m, s); break;
    // The kernel computes the address in tensor memory. Each use checks it.
    case MEMORY_TENSOR: s->count = 0; break;
    case MEMORY_NONE: return;
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

// Returns a copy of memory object m as seen in the CTA of rank `rank`.
static SimMem *peer_of(Prog *g, const SimMem *own, Ref rank) {
  SimMem *m = NEW(g->cx, SimMem, 1);
  *m = *own;
  m->rank = g->slot[rank];
  return m;
}

// Sets the slots by which memory objects depend on computed values. An object
// in another CTA needs the slot of that CTA's rank. An object at a raw address
// needs the slot of the address.
static void place_ranks(Prog *g) {
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    if (i->op == OP_DSMEM)
      g->p->mem[r] = peer_of(g, g->p->mem[r], i->a[1]);
    if (i->op != OP_PTR) continue;
    SimMem *m = peer_of(g, g->p->mem[r], 0);
    m->address = g->slot[i->a[0]];
    g->p->mem[r] = m;
  }
}

// ---- decoding ----

static int32_t new_stat(Prog *g, Ref r) {
  g->p->stat_ref[g->p->nstat] = r;
  return (int32_t)g->p->nstat++;
}

// Records that an instruction accesses `bytes` bytes of m at once. The
// simulator records accesses in granules, which must not be wider than that.
static void note_access(Prog *g, const SimMem *m, int bytes, bool write) {
  if (bytes < 1 || bytes > 32 || (bytes & (bytes - 1)))
    ctx_fail(g->cx, ERR_ARG, "the simulator cannot move %d bytes at once",
             bytes);
  switch (m->memory) {
    case MEMORY_SHARED: if (bytes < g->gran) g->gran = bytes; return;
    case MEMORY_GLOBAL: areas_note(m, bytes, write); return;
    case MEMORY_REGISTERS: case MEMORY_TENSOR: case MEMORY_NONE: return;
  }
}

static SimSide side(Prog *g, const Operand *o) {
  SimSide s = {.mem = mem_at(g, o->ref), .slot = g->slot[o->off]};
  s.type = (uint8_t)s.mem->type;
  s.wide = sim_wide(ir_type(g->fn, o->off));
  if (!sim_in_registers(s.mem)) return s;
  ir_const(g->fn, o->off, &s.konst);
  s.konst *= s.mem->per;
  return s;
}

static SimSide side_of(Prog *g, const Ins *i, Role role) {
  Operand o = operand_of(g->fn, i, role);
  return o.ref ? side(g, &o) : (SimSide){0};
}

static uint32_t slot_of(Prog *g, const Ins *i, Role role) {
  return g->slot[operand_ref(g->fn, i, role)];
}

static void decode_copy(Prog *g, const Ins *i, SimIns *d) {
  SimCopy *c = NEW(g->cx, SimCopy, 1);
  *c = (SimCopy){side_of(g, i, ROLE_DST), side_of(g, i, ROLE_SRC),
                 slot_of(g, i, ROLE_PRED), slot_of(g, i, ROLE_PART),
                 (int)(i->imm / 8)};
  if (i->imm % 8)
    ctx_fail(g->cx, ERR_ARG, "the simulator cannot move %d bits at once",
             (int)i->imm);
  note_access(g, c->dst.mem, c->bytes, true);
  note_access(g, c->src.mem, c->bytes, false);
  d->x = c;
  d->imm = i->flags;
  if (!sim_in_registers(c->dst.mem) || !sim_in_registers(c->src.mem))
    d->stat = new_stat(g, d->ref);
}

// Returns element k of an array of signed integers, which have `bytes` (4 or 8)
// bytes each.
static int64_t whole(const uint8_t *p, int64_t k, int bytes) {
  int64_t wide = 0;
  int32_t narrow = 0;
  if (bytes == 8) memcpy(&wide, p + 8 * k, sizeof wide);
  else memcpy(&narrow, p + 4 * k, sizeof narrow);
  return bytes == 8 ? wide : narrow;
}

// If m can be a tensor of counters, sets SimProg.counter to the first element
// of m that is not 0.
static void note_counter(Prog *g, const SimMem *m) {
  enum { MOST_COUNTERS = 4096 };
  int bytes = m->bits / 8;
  if (g->p->counter.mem || m->memory != MEMORY_GLOBAL || !m->p || m->defined ||
      !dtype_is_int(m->type) || bytes < 4)
    return;
  for (int64_t k = 0; k < m->count && k < MOST_COUNTERS; k++) {
    int64_t value = whole(m->p, k, bytes);
    if (!value) continue;
    g->p->counter = (SimCounter){m->index + 1, k, value};
    return;
  }
}

static void decode_element(Prog *g, const Ins *i, SimIns *d) {
  SimSide *s = NEW(g->cx, SimSide, 1);
  Operand o[OPERANDS];
  operands_all(g->fn, i, o);
  *s = side(g, &o[0]);
  DType t = i->op == OP_ST ? ir_type(g->fn, i->a[2]) : (DType)i->type;
  if (s->mem->type == DT_U8 && t != DT_NONE && dtype_bits(t) > 8)
    s->type = (uint8_t)t;
  int bits = dtype_bits((DType)s->type);
  if (s->mem->bits < 8 && i->op == OP_ATOMIC)
    ctx_fail(g->cx, ERR_ARG, "the simulator has no atomic operation on "
             "elements of type %s",
             dtype_name(s->mem->type));
  note_access(g, s->mem, (bits + 7) / 8, o[0].written);
  d->x = s;
  if (i->op == OP_PUT) d->b = g->slot[operand_ref(g->fn, i, ROLE_INDEX)];
  else d->b = g->slot[operand_ref(g->fn, i, ROLE_COMPARED)];
  d->wide = sim_wide((DType)s->type);
  if (i->op == OP_FILL) d->imm = i->imm;
  d->sem = (uint8_t)hint_get(i->flags, HINT_SEM);
  d->scope = (uint8_t)hint_get(i->flags, HINT_SCOPE);
  if (i->op == OP_ATOMIC && !d->sem) d->sem = SEM_RELAXED;
  d->idle = i->op == OP_ATOMIC && !g->need[d->ref];
  if (i->op == OP_ATOMIC && !d->idle && i->imm == AT_ADD)
    note_counter(g, s->mem);
  d->alone = d->idle && i->imm != AT_EXCH && i->imm != AT_CAS;
  if (d->sem && !d->scope) d->scope = SCOPE_GPU;
  g->p->polls |= d->sem && i->op != OP_ST && !d->idle;
  if (!sim_in_registers(s->mem)) d->stat = new_stat(g, d->ref);
}

static void decode_send(Prog *g, const Ins *i, SimIns *d) {
  SimSend *s = NEW(g->cx, SimSend, 1);
  Ref rank = operand_ref(g->fn, i, ROLE_RANK), value[OPERANDS];
  *s = (SimSend){.dst = side_of(g, i, ROLE_DST), .bar = side_of(g, i, ROLE_BAR),
                 .bytes = (int)(i->imm / 8),
                 .n = operand_refs(g->fn, i, ROLE_VALUE, value)};
  s->dst.mem = peer_of(g, s->dst.mem, rank);
  s->bar.mem = peer_of(g, s->bar.mem, rank);
  s->wide = sim_wide(ir_type(g->fn, value[0]));
  for (int k = 0; k < s->n; k++) s->value[k] = g->slot[value[k]];
  note_access(g, s->dst.mem, s->bytes, true);
  d->x = s;
}

// Decodes an operation on an mbarrier. Its operand c is the number of arrivals
// or of bytes, or the parity.
static void decode_mbarrier(Prog *g, const Ins *i, SimIns *d) {
  SimSide *s = NEW(g->cx, SimSide, 1);
  *s = side_of(g, i, ROLE_BAR);
  Ref rank = operand_ref(g->fn, i, ROLE_RANK);
  if (rank) s->mem = peer_of(g, s->mem, rank);
  d->x = s;
  Ref phase = operand_ref(g->fn, i, ROLE_PARITY);
  // whether the operand that names the phase is a token, not a parity
  d->wide = phase && ir_type(g->fn, phase) == DT_U64;
  d->jump = g->l->tries ? 0 : g->token[d->ref];
  d->sem = (uint8_t)hint_get(i->flags, HINT_SEM);
  d->scope = (uint8_t)hint_get(i->flags, HINT_SCOPE);
}

// Returns a number of bytes, at most 16, that divides a row of the tensor. It
// therefore divides the part of each box row that is inside the tensor.
static int box_unit(const TensorMap *m, int bits) {
  int unit = 16;
  while (m->extent[0] * bits / 8 % unit) unit /= 2;
  return unit;
}

static void decode_bulk(Prog *g, const Ins *i, SimIns *d) {
  Ref map = operand_ref(g->fn, i, ROLE_MAP), at[OPERANDS];
  bool any = map && ir_is_map_of_any(ir_get(g->fn, map));
  Operand dst = operand_of(g->fn, i, ROLE_DST);
  bool store = dst.space != SP_SMEM, send = i->op == OP_BULKSEND;
  Ref other = map ? map
                  : operand_ref(g->fn, i, store ? ROLE_DST : ROLE_SRC);
  SimBulk *b = arena_zero(g->cx, &g->cx->scratch, sizeof *b);
  b->bytes = (int)(i->imm / 8);
  b->flags = i->flags;
  b->boxes = map != 0;
  b->shared = side_of(g, i, store || send ? ROLE_SRC : ROLE_DST);
  b->plain = side_of(g, i, store || send ? ROLE_DST : ROLE_SRC);
  b->bar = side_of(g, i, ROLE_BAR);
  b->rank = slot_of(g, i, ROLE_RANK);
  b->mask = slot_of(g, i, ROLE_MASK);
  if (!send && !any) b->global = mem_at(g, other);
  if (map && !any) b->map = g->l->arg[ir_memof(g->fn, map)->arg].map;
  if (map) b->place = side_of(g, ir_get(g->fn, map), ROLE_TMAP);
  if (b->place.mem && b->place.mem->area) b->place.mem->area->maps = true;
  b->modes = operand_refs(g->fn, i, ROLE_AT, at);
  for (int k = 0; k < b->modes; k++) b->at[k] = g->slot[at[k]];
  note_access(g, b->shared.mem, 16, !store);
  if (send) note_access(g, b->plain.mem, 16, true);
  else if (any) raw_pointer_reach(g->cx, g->p, mem_at(g, other), store);
  else
    areas_note(b->global, map ? box_unit(b->map, b->global->bits) : 16,
                   store);
  d->x = b;
  d->stat = new_stat(g, d->ref);
}

static void decode_cancel(Prog *g, const Ins *i, SimIns *d) {
  SimBulk *b = arena_zero(g->cx, &g->cx->scratch, sizeof *b);
  b->bytes = (int)(i->imm / 8);
  b->shared = side_of(g, i, ROLE_DST);
  b->bar = side_of(g, i, ROLE_BAR);
  note_access(g, b->shared.mem, 16, true);
  d->x = b;
  d->stat = new_stat(g, d->ref);
}

static void decode_map(Prog *g, const Ins *i, SimIns *d) {
  SimMapOp *m = arena_zero(g->cx, &g->cx->scratch, sizeof *m);
  Ref map = operand_ref(g->fn, i, ROLE_MAP);
  Ref value = operand_ref(g->fn, i, ROLE_VALUE);
  m->dst = side_of(g, i, ROLE_TMAP);
  m->mode = (int)i->imm;
  m->field = (TensorMapField)(i->flags & ~INF_ASIDE);
  m->src = side_of(g, i, i->op == OP_MAPADDRESS ? ROLE_TENSOR : ROLE_FROM);
  if (map) {
    m->src.mem = mem_at(g, map);
    m->map = g->l->arg[ir_memof(g->fn, map)->arg].map;
  }
  m->value = g->slot[value];
  m->wide = value && sim_wide(ir_type(g->fn, value));
  note_access(g, m->dst.mem, 8, true);
  if (i->op == OP_MAPPUBLISH) note_access(g, m->src.mem, 8, false);
  if (i->op == OP_MAPADDRESS)
    areas_note(m->src.mem, m->src.mem->bits / 8, true);
  d->x = m;
  d->stat = new_stat(g, d->ref);
}

static void decode_print(Prog *g, const Ins *i, SimIns *d) {
  SimPrint *p = NEW(g->cx, SimPrint, 1);
  uint32_t n;
  const Ref *x = operands_list(g->fn, i, &n);
  uint32_t *slot = NEW(g->cx, uint32_t, n + 1);
  uint8_t *type = NEW(g->cx, uint8_t, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    slot[k] = g->slot[x[k]];
    type[k] = ir_get(g->fn, x[k])->type;
  }
  *p = (SimPrint){ir_str(g->fn, (uint32_t)i->imm), n, slot, type};
  d->x = p;
}

static void decode_matrix(Prog *g, const Ins *i, SimIns *d) {
  SimMatrix *m = fragments_matrix(g->cx, g->l, g->p->mem, i);
  Operand o;
  d->x = m;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    if (o.kind != OPERAND_MEM) continue;
    m->smem = side(g, &o);
    d->stat = new_stat(g, d->ref);
  }
}

static void decode_tcgen05(Prog *g, const Ins *i, SimIns *d) {
  if (i->op == OP_TCCOMMIT) {
    decode_mbarrier(g, i, d);
    d->b = d->c;  // The mask of CTAs was decoded as operand c.
    d->c = 0;
  } else if (i->op == OP_TCALLOC) {
    SimTensorIns *x = arena_zero(g->cx, &g->cx->scratch, sizeof *x);
    x->to = side_of(g, i, ROLE_DST);
    x->columns = slot_of(g, i, ROLE_COLUMNS);
    note_access(g, x->to.mem, 4, true);
    d->x = x;
    d->stat = new_stat(g, d->ref);
  } else if (i->op != OP_TCDEALLOC) {
    d->x = fragments_tensor(g->cx, g->l, g->p->mem, g->slot, i);
  }
}

// Decodes an instruction that opens, divides, leaves or closes a region. d is
// instruction `at` of the program.
static void decode_region(Prog *g, const Ins *i, SimIns *d, uint32_t at) {
  SimIns *prog = g->p->ins;
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
  if (op_rows[i->op].rule == RULE_CMP || i->op == OP_CVT ||
      i->op == OP_BITCAST) {
    d->type = (uint8_t)ir_type(g->fn, o);
  } else if (i->op == OP_VSET) {
    d->type = (uint8_t)ir_type(g->fn, i->a[1]);
    d->wide = sim_wide((DType)d->type);
    d->uniform = g->uni[o];
    d->a = d->b;
    d->d = g->slot[o];
  } else if (i->op == OP_IF || op_effect((Op)i->op) & EF_LEAVES) {
    d->uniform = g->uni[o];
  }
  d->cls = (uint8_t)sim_class((DType)d->type);
}

// ---- uses ----

static void add_use(Prog *g, SimUses *u, Ref r) {
  if (r) u->slot[u->n++] = g->slot[r];
}

// Adds the values from which the address of memory operand o is computed. (For
// a raw address, SimAddressed has these values.)
static void add_place(Prog *g, SimUses *u, const Operand *o) {
  const Ins *m = ir_get(g->fn, o->ref);
  if (m->op == OP_PTR || sim_in_registers(g->p->mem[o->ref])) return;
  add_use(g, u, o->off);
  add_use(g, u, operand_ref(g->fn, m, ROLE_RANK));
}

// Adds the values that must be defined when i executes. The first operand of a
// shuffle may be undefined, because a shuffle only moves it.
static void add_uses(Prog *g, const Ins *i, SimUses *u) {
  bool moves = intrin_shuffles(i);
  Operand o, dst = operand_of(g->fn, i, ROLE_DST);
  Ref value = operand_ref(g->fn, i, ROLE_VALUE);
  const SimMem *to = dst.ref && value ? g->p->mem[dst.ref] : NULL;
  bool kept = to && sim_in_registers(to);
  if (kept) u->to = to, u->value = g->slot[value];
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);
       moves = false)
    switch ((OperandKind)o.kind) {
      case OPERAND_VALUE: case OPERAND_PRED: case OPERAND_LANES:
        if (!moves && !(kept && o.role == ROLE_VALUE)) add_use(g, u, o.ref);
        break;
      case OPERAND_MEM: add_place(g, u, &o); break;
      case OPERAND_MAP: {
        Operand at = operand_of(g->fn, ir_get(g->fn, o.ref), ROLE_TMAP);
        if (at.ref) add_place(g, u, &at);
        break;
      }
      case OPERAND_VAR: case OPERAND_OBJECT: case OPERAND_RUN: break;
    }
}

// Returns the values that must be defined when instruction i executes. Returns
// NULL if there are none with a separate value for each lane.
static const SimUses *uses_of(Prog *g, const Ins *i, const SimIns *d) {
  if (d->uniform || op_effect((Op)i->op) & (EF_PURE | EF_VAR)) return NULL;
  size_t most = 2 * (OPERANDS + (size_t)i->nx);
  SimUses *u = arena_zero(g->cx, &g->cx->scratch,
                          sizeof *u + most * sizeof *u->slot);
  add_uses(g, i, u);
  return u->n || u->to ? u : NULL;
}

// ---- instructions ----

static void decode(Prog *g, Ref r, const Ins *i, SimIns *d, uint32_t at) {
  *d = (SimIns){.op = i->op, .src = i->src, .ref = r, .stat = -1,
                .imm = i->imm, .flags = i->flags, .uniform = g->uni[r],
                .spread = g->spread[r], .who = (uint8_t)check_who(i)};
  decode_scalars(g, r, i, d);
  d->mask = d->c ? d->c : d->b ? d->b : d->a;
  switch ((Op)i->op) {
    case OP_COPY: case OP_CPASYNC: decode_copy(g, i, d); break;
    case OP_LD: case OP_ST: case OP_FILL: case OP_PICK: case OP_PUT:
    case OP_ATOMIC:
      decode_element(g, i, d);
      break;
    case OP_ASM:
      ctx_fail(g->cx, ERR_ARG, "line %u: the simulator cannot execute inline "
               "PTX\n  run it on a GPU, or use the functions of cute.arch",
               g->fn->src.p[i->src].line);
    case OP_MBARINIT: case OP_MBARARRIVE: case OP_MBARTX: case OP_MBARWAIT:
    case OP_MBARINVAL:
    case OP_MBARTRY: case OP_MBARTOKEN: case OP_MBARCPASYNC:
      decode_mbarrier(g, i, d);
      break;
    case OP_STASYNC: decode_send(g, i, d); break;
    case OP_TMALOAD: case OP_TMASTORE: case OP_BULKLOAD: case OP_BULKSTORE:
    case OP_BULKSEND:
      decode_bulk(g, i, d);
      break;
    case OP_CLCTRY: decode_cancel(g, i, d); break;
    case OP_MAPCOPY: case OP_MAPADDRESS: case OP_MAPSET: case OP_MAPACQUIRE:
    case OP_MAPPUBLISH:
      decode_map(g, i, d);
      break;
    case OP_MMA:
      d->x = g->mma = fragments_mma(g->cx, g->l, g->p->mem, i, g->mma);
      break;
    case OP_WGMMA:
      d->x = g->mma = fragments_wgmma(g->cx, g->l, g->p->mem, g->slot, i,
                                      g->mma);
      break;
    case OP_TCMMA: case OP_TCLD: case OP_TCST: case OP_TCCP: case OP_TCALLOC:
    case OP_TCCOMMIT: case OP_TCDEALLOC: case OP_TCSHIFT:
      decode_tcgen05(g, i, d);
      break;
    case OP_MATRIX: decode_matrix(g, i, d); break;
    case OP_RMEM: d->x = mem_at(g, r); break;
    case OP_BAR: case OP_BARARRIVE: d->uniform = bar_uniform(g, i); break;
    case OP_PRINTF: decode_print(g, i, d); break;
    case OP_FOR: case OP_LOOP: case OP_ONCE: case OP_IF: case OP_ELSE:
    case OP_END:
      decode_region(g, i, d, at);
      break;
#define OP(...)
#define SCALAR(id, ...) case OP_##id:
#include "ir/ops.h"
    case OP_SEL: case OP_CVT: case OP_BITCAST: case OP_MATH: case OP_INTRIN:
    case OP_ASK: case OP_VAR: case OP_VGET: case OP_VSET: case OP_CPCOMMIT:
    case OP_CPWAIT: case OP_SYNCWARP:
    case OP_FENCE: case OP_CLUSTERARRIVE: case OP_CLUSTERWAIT:
    case OP_SETMAXNREG: case OP_GRIDWAIT: case OP_GRIDLAUNCH:
    case OP_WGFENCE: case OP_WGCOMMIT: case OP_WGWAIT:
    case OP_TCRELINQUISH: case OP_TCWAITLD: case OP_TCWAITST: case OP_TCFENCE:
    case OP_TMAPREFETCH: case OP_BULKCOMMIT: case OP_BULKWAIT:
    case OP_TRAP: case OP_BREAKIF: case OP_EXITIF:
      // The other operations need no data beyond slots, Ins.imm and flags.
      break;
#define OP(...)
#define LEAF(id, ...) case OP_##id:
#include "ir/ops.h"
    case OP_NOP: case OP_DSMEM: case OP_TMAPAT: case OP_PTR: case OP_TMEM:
    case OP_COUNT:
      break;  // These operations do not occur in a decoded program.
  }
}

static bool skipped(Prog *g, Ref r, const Ins *i) {
  bool object = op_effect((Op)i->op) & EF_OBJECT;
  bool view = object && g->fn->mem.p[i->imm].ref != r;
  if (is_leaf(i) || i->op == OP_NOP || (object && i->op != OP_RMEM) || view)
    return true;
  return is_pure(i) && !g->need[r];
}

// ---- assertions ----

static SimTerm term_of(Prog *g, Ref r, int64_t konst) {
  if (!r) return (SimTerm){.konst = konst};
  return (SimTerm){.slot = g->slot[r], .wide = sim_wide(ir_type(g->fn, r)),
                   .uniform = g->uni[r]};
}

// Decodes the assertion that begins at entry k of Fn.claim into d. Returns the
// index in Fn.claim of the next assertion.
static size_t decode_assertion(Prog *g, size_t k, SimIns *d) {
  const Claim *c = &g->fn->claim.p[k];
  size_t n = 1;
  while (c[n - 1].more) n++;
  SimAssertion *s = NEW(g->cx, SimAssertion, 1);
  SimBounded *part = NEW(g->cx, SimBounded, n);
  const Ins *at = c->at < g->fn->ins.n ? ir_get(g->fn, c->at) : NULL;
  for (size_t j = 0; j < n; j++)
    part[j] = (SimBounded){.value = term_of(g, c[j].v, c[j].lo),
                        .limit = term_of(g, c[j].limit, 0),
                        .lo = c[j].v ? c[j].lo : 0, .hi = c[j].hi,
                        .div = c[j].div};
  *s = (SimAssertion){.n = (int)n, .part = part,
                  .mem = c->mem ? (int32_t)g->fn->ins.p[c->mem].imm : -1,
                  .write = c->write, .when = term_of(g, c->when, true),
                  .note = c->note, .begins = c->lo, .rule = c->rule,
                  .slice = c->slice,
                  .good = arena_zero(g->cx, &g->cx->scratch, 8)};
  *d = (SimIns){.op = OP_TRAP, .src = c->src, .ref = at ? c->at : 0, .stat = -1,
                .who = WHO_LANE, .x = s};
  return k + n;
}

// Returns an array with one entry for each patch: the SimIns.x of the
// instruction that the patch inserts. It is NULL unless this instruction
// operates on an mbarrier or a tensor map.
static const void *const *edited(Prog *g) {
  const void **x = arena_zero(g->cx, &g->cx->scratch,
                              (g->l->npatch + 1) * sizeof *x);
  for (size_t k = 0; k < g->l->npatch; k++) {
    const SimPatch *e = &g->l->patch[k];
    SimSide *ring = arena_zero(g->cx, &g->cx->scratch, sizeof *ring);
    if (e->mem && e->op == OP_MAPACQUIRE) {
      // The inserted MAPACQUIRE takes its operands from the TMAPAT e->mem,
      // whose tensor map it acquires.
      Ins i = *ir_get(g->fn, e->mem);
      SimIns d = {.op = i.op = e->op, .ref = e->mem};
      decode_map(g, &i, &d);
      x[k] = d.x;
    } else if (e->mem && e->how != PATCH_VALUE) {
      *ring = (SimSide){.mem = mem_at(g, e->mem), .konst = e->base};
      x[k] = ring;
    }
  }
  return x;
}

static void decode_one(Prog *g, Ref r, const void *const *put) {
  SimProg *p = g->p;
  SimIns *d = &p->ins[p->nins];
  const Ins *i = ir_get(g->fn, r);
  decode(g, r, i, d, p->nins);
  d->uses = uses_of(g, i, d);
  raw_pointer_split(g->cx, p, &g->top, d);
  patch_apply(g->l, g->full, put, d);
  p->nins++;
}

// Decodes the IR instructions that compute the new operands of instruction r
// for its patches.
static void decode_operands(Prog *g, Ref r, const void *const *put) {
  for (size_t k = 0; k < g->l->npatch; k++) {
    const SimPatch *e = &g->l->patch[k];
    for (Ref q = e->first; e->ref == r && q < e->last; q++)
      if (!is_leaf(ir_get(g->fn, q))) decode_one(g, q, put);
  }
}

static void decode_all(Prog *g) {
  size_t n = g->end;
  SimProg *p = g->p;
  size_t claims = g->fn->claim.n, k = 0;
  size_t made = g->fn->ins.n - n;
  p->ins = NEW(g->cx, SimIns, n + claims + g->l->npatch + made + 1);
  p->stat_ref = NEW(g->cx, uint32_t, n);
  g->head = NEW(g->cx, uint32_t, n);
  const void *const *put = edited(g);
  for (Ref r = 1; r < n; r++) {
    const Ins *i = ir_get(g->fn, r);
    while (k < claims && g->fn->claim.p[k].at <= r)
      k = decode_assertion(g, k, &p->ins[p->nins++]);
    decode_operands(g, r, put);
    if (skipped(g, r, i)) continue;
    p->nins += patch_before(g->l, r, g->end, g->full, put, &p->ins[p->nins]);
    decode_one(g, r, put);
  }
  while (k < claims) k = decode_assertion(g, k, &p->ins[p->nins++]);
  p->nins += patch_before(g->l, g->end, g->end, g->full, put,
                          &p->ins[p->nins]);
  // The last instruction ends the program.
  p->ins[p->nins] = (SimIns){.op = OP_NOP, .stat = -1};
  if (p->nins) p->ins[p->nins].src = p->ins[p->nins - 1].src;
}

// Returns the number of registers per thread at the start of a kernel with
// setmaxnreg. As in ptxas 13.0, this is the largest number with which the
// required number of CTAs fits on an SM. It is at most the kernel's own limit,
// and at most `largest`, the largest number that a setmaxnreg.inc requests (0:
// none). The warps are distributed over the four partitions of an SM. Registers
// are allocated in units of 8 for each thread.
static int registers_of(const SimProg *p, int64_t largest) {
  int blocks = p->fn->min_blocks > 0 ? p->fn->min_blocks : 1;
  int n = 65536 / 4 / LANES / (blocks * ((p->nwarp + 3) / 4));
  int most = p->fn->registers > 0 ? p->fn->registers : 256;
  if (largest && largest < most) most = (int)largest;
  return (n > most ? most : n) & ~7;
}

// Counts the actors of a cluster (actors.h). The mbarriers are the elements of
// all objects in which some instruction initializes an mbarrier.
static void count_actors(SimProg *p, const Launch *l) {
  enum { MOST = 128 };  // maximum number of mbarriers of a CTA
  const Fn *fn = l->fn;
  int64_t n = 0, most = 0;
  bool agents = false, groups = false, columns = false;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    Agent agent = op_agent((Op)i->op);
    agents |= agent && agent != AGENT_CPASYNC;
    if (i->op == OP_SETMAXNREG) {
      if (i->flags & RGF_INC && i->imm > most) most = i->imm;
      p->registers = registers_of(p, most);
    }
    OpClass c = op_class((Op)i->op);
    groups |= i->op == OP_WGMMA || c == CLASS_WGCOMMIT || c == CLASS_WGWAIT;
    columns |= op_rows[i->op].need == FT_TCGEN05 || i->op == OP_TCMMA;
    if (i->op == OP_MBARINIT) n += ir_memof(fn, i->a[0])->count;
  }
  p->nmbar = (int)(n > MOST || n < 0 ? MOST : n) * p->ncta;
  int warps = p->nall, mbars = p->nmbar, before = l->pdl;
  int bulk = agents || groups ? warps : 0, tensor = columns ? warps : 0;
  int teams = groups ? p->ncta * ((p->nwarp + 3) / 4) : 0;
  int turns = mbars || p->ncta > 1 ? warps + mbars : 0;
  const int count[] = {
#define AC(id, agent, number) number,
    SIM_ACTORS(AC)
#undef AC
  };
  int *first = p->actors.first;
  for (int k = 0; k < ACTOR_COUNT; k++) first[k + 1] = first[k] + count[k];
}

// Reports whether instruction d can make the results of a cluster depend on
// other clusters.
static bool depends(Prog *g, const SimIns *d) {
  const SimSide *s = d->x;
  if (d->op == OP_PTR) return depends(g, ((const SimAddressed *)d->x)->ins);
  if (d->op == OP_LD) return d->sem && s->mem->memory == MEMORY_GLOBAL;
  if (d->op == OP_ATOMIC)
    return s->mem->memory == MEMORY_GLOBAL &&
           (g->need[d->ref] || d->imm == AT_EXCH || d->imm == AT_CAS ||
            dtype_is_float((DType)s->type));
  if (d->op != OP_TMASTORE && d->op != OP_BULKSTORE) return false;
  const SimBulk *b = d->x;
  return b->flags & BKF_REDUCES &&
         (!b->global || dtype_is_float(b->global->type));
}

// Reports whether the result of a cluster may depend on other clusters.
static bool communicates(Prog *g) {
  const SimProg *p = g->p;
  for (uint32_t k = 0; k < p->nins && p->nunit > 1; k++)
    if (depends(g, &p->ins[k])) return true;
  return false;
}

static uint64_t clusters(const Launch *l) {
  uint64_t n = 1;
  for (int k = 0; k < 3; k++) n *= (uint64_t)(l->grid[k] / l->cluster[k]);
  return n;
}

SimProg *decode_make(Ctx *cx, const Launch *l) {
  fits_check(cx, l);
  Ref end = (Ref)l->fn->ins.n;
  l = patch_launch(cx, l);
  const Fn *fn = l->fn;
  size_t n = fn->ins.n;
  SimProg *p = arena_zero(cx, &cx->scratch, sizeof *p);
  Prog g = {.cx = cx, .l = l, .fn = fn, .p = p, .gran = 16,
            .end = end};
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
  p->ncta = l->cluster[0] * l->cluster[1] * l->cluster[2];
  p->nall = p->ncta * p->nwarp;
  count_actors(p, l);
  p->nunit = clusters(l);
  // Reserve slot 0, because 0 means "no slot".
  take(&g, 64, 64);
  p->rows = NEW(cx, SimRows, 2 * n);
  areas_find(cx, p);
  place_all_mem(&g);
  p->value_base = take(&g, 0, SLOT);
  find_all_uniform(&g);
  find_needs(&g);
  place_values(&g);
  place_tokens(&g);
  p->slot = g.slot;
  place_ranks(&g);
  decode_all(&g);
  p->value_bytes = (g.top + 63) & ~63u;
  p->ntaint = (p->value_bytes - p->value_base) / SLOT + 1;
  p->shift = __builtin_ctz((unsigned)g.gran);
  p->smem_bytes = (fn->smem_bytes + 15) & ~(int64_t)15;
  if (communicates(&g))
    p->common = arena_zero(cx, &cx->scratch, sizeof *p->common);
  return p;
}
// SPDX-License-Identifier: MIT
