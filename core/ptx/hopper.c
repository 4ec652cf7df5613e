// hopper.c: instructions that sm_90 introduced: mbarriers, bulk copies, tensor
// maps, wgmma, clusters.
#include <string.h>

#include "atoms/atom.h"
#include "ptx/inside.h"

static Ref emit(PtxOp *o, Ins i, const Ref *x, uint32_t n) {
  return operands_emit(o->b->cx, o->b->fn, i, x, n, NULL, 0);
}

void op_require(PtxOp *o, Ref good, const char *text) {
  PtxBuild *b = o->b;
  uint32_t at = ir_text(b->cx, b->fn, text, strlen(text));
  ir_emit(b->cx, b->fn, (Ins){.op = OP_TRAP, .imm = at, .a = {good}});
}

void op_count_in(PtxOp *o, Place *p, DType t, int bytes,
                 const char *what) {
  PtxBuild *b = o->b;
  DType own = ir_type(b->fn, p->off);
  Ref odd = op2(o, OP_AND, p->off, number(o, own, bytes - 1));
  int64_t known;
  if (!ir_const(b->fn, odd, &known)) {
    op_require(o, op2(o, OP_EQ, odd, number(o, own, 0)),
               arena_printf(b->cx, &b->cx->scratch, "misaligned address of %s, "
                            "which needs a multiple of %d bytes", what,
                            bytes));
  } else if (known) {
    ptx_fail(b, "'%s': %s needs an address that is a multiple of %d bytes",
             o->i->op, what, bytes);
  }
  p->mem = op_view(o, p->mem, t);
  p->off = op2(o, OP_SHR, p->off, number(o, own, dtype_bits(t) == 64 ? 3 : 2));
}

// ---- mbarriers ----

static void count_barriers(PtxOp *o, Place *p) {
  op_count_in(o, p, DT_U64, 8, "an mbarrier");
}

// Returns the memory object of [a] in shared memory, and the offset in 64-bit
// elements.
static Place barrier_place(PtxOp *o, const PtxArg *a) {
  Place p = op_place(o, a, IN_SHARED);
  count_barriers(o, &p);
  return p;
}

static void semantics(PtxOp *o) {
  static const char *const all[] = {"release", "acquire", "relaxed", "cta",
    "cluster", "shared", "shared::cta", "b64", NULL};
  for (const char *const *m = all; *m; m++) op_has(o, *m);
}

static uint16_t order(PtxOp *o) {
  unsigned flags = 0;
  bool relaxed = op_has(o, "relaxed");
  if (relaxed) flags |= (unsigned)SEM_RELAXED << hint_field(HINT_SEM)->shift;
  if (op_has(o, "cluster")) {
    flags |= (unsigned)SCOPE_CLUSTER << hint_field(HINT_SCOPE)->shift;
  }
  semantics(o);
  return (uint16_t)flags;
}

static void barrier_wait(PtxOp *o, bool test) {
  PtxBuild *b = o->b;
  bool parity = op_has(o, "parity");
  Place p = barrier_place(o, op_arg(o, 1));
  uint16_t flags = order(o);
  Ref x[4] = {p.mem, p.off, 0, 0};
  x[2] = op_operand(o, 2, parity ? DT_I32 : DT_U64);
  if (b->waits && b->waits[o->i - b->m->ins.p]) {
    emit(o, (Ins){.op = OP_MBARWAIT, .flags = flags}, x, 3);
    return;
  }
  if (o->i->args > 3) x[3] = op_operand(o, 3, DT_I32);
  Ins i = {.op = OP_MBARTRY, .type = DT_BOOL,
           .flags = (uint16_t)(flags | (test ? MBF_TEST : 0))};
  op_result(o, emit(o, i, x, x[3] ? 4 : 3));
}

void row_mapa(PtxOp *o, int k) {
  (void)k;
  // Mark .shared::cluster as used. Without this modifier, the address is
  // generic.
  op_has(o, "shared::cluster");
  DType t = unsigned_of(op_type(o, 0).bits);
  Ref at = op2(o, OP_AND, op_operand(o, 1, t),
               number(o, t, ~((int64_t)255 << RANK_BIT)));
  Ref rank = op2(o, OP_ADD, op_operand(o, 2, DT_U32), number(o, DT_U32, 1));
  rank = op2(o, OP_SHL, to(o, t, rank), number(o, DT_U32, RANK_BIT));
  op_result(o, op2(o, OP_OR, at, rank));
}

// If place p is in distributed shared memory, replaces it by the same offset in
// this CTA's shared memory. Returns the rank of the CTA that owned p, or 0 if p
// was in this CTA's memory.
static Ref place_rank(PtxOp *o, Place *p) {
  const Ins *i = ir_get(o->b->fn, p->mem);
  if (i->op != OP_DSMEM) return 0;
  Ref rank = i->a[1];
  p->mem = i->a[0];
  return rank;
}

Place op_barrier(PtxOp *o, const PtxArg *a, Ref *rank) {
  *rank = 0;
  if (!o->b->generic_cluster) return barrier_place(o, a);
  Place p = op_place(o, a, IN_CLUSTER);
  *rank = place_rank(o, &p);
  count_barriers(o, &p);
  return p;
}

static void barrier_arrive(PtxOp *o) {
  bool tx = op_has(o, "expect_tx");
  const PtxArg *state = op_arg(o, 0);
  uint32_t k = state->kind == PTX_A_ADDRESS ? 0 : 1;
  if (op_has(o, "noComplete")) {
    ptx_fail(o->b, "'%s' is not modelled", o->i->op);
  }
  Ref rank = 0;
  Place p;
  if (op_has(o, "shared::cluster")) p = op_barrier(o, op_arg(o, k), &rank);
  else p = barrier_place(o, op_arg(o, k));
  uint16_t flags = order(o);
  Ref n = o->i->args > k + 1 ? op_operand(o, k + 1, DT_I32)
                             : number(o, DT_I32, 1);
  Ref x[4] = {p.mem, p.off, n, rank};
  uint32_t count = rank ? 4 : 3;
  bool token = k == 1 && state->kind == PTX_A_REG &&
               (!tx || o->b->slot[state->value].read);
  if (tx && !token) {
    emit(o, (Ins){.op = OP_MBARTX, .flags = flags | MBF_ARRIVE}, x, count);
    return;
  }
  // With .expect_tx, emit the expect_tx, then one arrival. The state after the
  // arrival is the result.
  if (tx) {
    emit(o, (Ins){.op = OP_MBARTX, .flags = flags}, x, count);
    x[2] = number(o, DT_I32, 1);
  }
  if (token) {
    op_set(o, state, emit(o, (Ins){.op = OP_MBARTOKEN, .type = DT_U64,
                                   .flags = flags}, x, 3));
  } else {
    emit(o, (Ins){.op = OP_MBARARRIVE, .flags = flags}, x, count);
  }
}

void row_mbarrier(PtxOp *o, int k) {
  (void)k;
  if (op_has(o, "try_wait")) {
    barrier_wait(o, false);
    return;
  }
  if (op_has(o, "test_wait")) {
    barrier_wait(o, true);
    return;
  }
  if (op_has(o, "arrive")) {
    barrier_arrive(o);
    return;
  }
  bool init = op_has(o, "init"), tx = op_has(o, "expect_tx");
  bool gone = op_has(o, "inval");
  if (!init && !tx && !gone) ptx_fail(o->b, "'%s' is not modelled", o->i->op);
  Place p = barrier_place(o, op_arg(o, 0));
  Ref x[3] = {p.mem, p.off, 0};
  uint16_t flags = init || gone ? 0 : order(o);
  semantics(o);
  if (!gone) x[2] = op_operand(o, 1, DT_I32);
  Op op = init ? OP_MBARINIT : tx ? OP_MBARTX : OP_MBARINVAL;
  emit(o, (Ins){.op = (uint8_t)op, .flags = flags}, x, gone ? 2 : 3);
  if (init && o->b->flags & PTX_INIT_FENCED) {
    ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_FENCE, .imm = FE_MBARINIT});
  }
}

// Translates cp.async.mbarrier.arrive.
void row_copy_arrive(PtxOp *o, int k) {
  (void)k;
  uint16_t flags = op_has(o, "noinc") ? MBF_NOINC : 0;
  semantics(o);
  Place p = barrier_place(o, op_arg(o, 0));
  Ref x[2] = {p.mem, p.off};
  emit(o, (Ins){.op = OP_MBARCPASYNC, .flags = flags}, x, 2);
}

// ---- tensor maps and bulk copies ----

// Reads operand c as numbers of type i32. It is a vector {c0, c1} or a single
// number. Returns how many numbers it read.
static uint32_t numbers(PtxOp *o, const PtxArg *c, DType t, Ref *x) {
  uint32_t n = c->kind == PTX_A_VECTOR ? c->parts : 1;
  if (n > TENSORMAP_RANK)
    ptx_fail(o->b, "'%s' cannot have %u coordinates", o->i->op, n);
  for (uint32_t k = 0; k < n; k++) {
    const PtxArg *v = c->kind == PTX_A_VECTOR
      ? &o->b->m->args.p[c->part + k] : c;
    x[k] = to(o, DT_I32, op_value(o, v, t));
  }
  return n;
}

// Rejects a tensor map that does not fit a copy with n coordinates: a map with
// another number of modes; an im2col map for a copy of tiles, or vice versa; a
// box of several rows for gathered rows; or 4-bit elements for a reduction.
static void check_map(PtxOp *o, const TensorMap *map, uint32_t n,
                      unsigned flags) {
  bool unfolds = flags & BKF_IM2COL, rows = flags & BKF_ROWS;
  if (rows && n != 1 + BULK_ROWS)
    ptx_fail(o->b, "'%s' needs a column and %d rows, not %u coordinates",
             o->i->op, BULK_ROWS, n);
  if (rows) n = 2;
  if (map && (uint32_t)map->rank != n)
    ptx_fail(o->b, "'%s' has %u coordinates, but the tensor map has %d modes",
             o->i->op, n, (int)map->rank);
  if (map && rows && (map->box[1] != 1 || map->interleave))
    ptx_fail(o->b, "'%s' needs a tensor map whose box has one row", o->i->op);
  if (map && map->im2col != unfolds)
    ptx_fail(o->b, "'%s' needs a tensor map of %s, but this one is of %s",
             o->i->op, unfolds ? "im2col" : "tiles",
             map->im2col ? "im2col" : "tiles");
  if (map && flags & BKF_REDUCES && map->type == TMT_U4)
    ptx_fail(o->b, "'%s' cannot reduce elements of 4 bits", o->i->op);
}

// Reads the coordinates in the operand [map, {c0, c1}]. Returns their number.
static uint32_t coordinates(PtxOp *o, const PtxArg *a, Ref *x) {
  if (a->parts != 2)
    ptx_fail(o->b, "'%s' needs coordinates: [map, {c0, c1}]", o->i->op);
  return numbers(o, &o->b->m->args.p[a->part + 1], DT_I32, x);
}

// Returns the number of bits that one copy through a tensor map moves. Returns
// 0 if the map is in memory, because its fields are then known only at run
// time.
static int64_t bits_of(const TensorMap *map, unsigned flags) {
  int times = flags & BKF_ROWS ? BULK_ROWS : 1;
  return map ? 8 * times * tensormap_bytes(map) : 0;
}

static void dimension(PtxOp *o) {
  static const char *const all[] = {"1d", "2d", "3d", "4d", "5d", "tile",
    "global", "shared::cluster", "shared::cta", "bulk", "async", "tensor",
    NULL};
  for (const char *const *m = all; *m; m++) op_has(o, *m);
}

// Reports whether a load's mbarrier address refers to the even CTA of its pair:
// an `and` clears bit 24 of the address. It may also clear the three lowest
// bits, which are 0 anyway.
static bool is_even(PtxOp *o, const PtxArg *bar) {
  const PtxBuild *b = o->b;
  const PtxArg *base = op_base(o, bar);
  for (uint32_t k = 0; k < b->f->n_ins && base->kind == PTX_A_REG; k++) {
    const PtxIns *i = &b->m->ins.p[b->f->ins + k];
    const PtxArg *a = &b->m->args.p[i->arg];
    if (i->args != 3 || !ptx_is(i->op, "and") || a->kind != PTX_A_REG ||
        a->value != base->value)
      continue;
    for (int q = 1; q < 3; q++) {
      if (a[q].kind == PTX_A_INT && ((uint32_t)a[q].value | 7) == 0xfeffffff)
        return true;
    }
  }
  return false;
}

// Returns BKF_ROWS if the copy has `modifier`, which selects gathered or
// scattered rows, else 0.
static unsigned rows_of(PtxOp *o, const char *modifier) {
  return op_has(o, modifier) ? BKF_ROWS : 0;
}

static void tensor_load(PtxOp *o) {
  Ref x[16];
  uint32_t n = 0, k = 3;
  bool multicast = op_has(o, "multicast::cluster");
  bool hint = op_has(o, "L2::cache_hint"), unfolds = op_has(o, "im2col");
  unsigned flags = (unfolds ? BKF_IM2COL : 0) | rows_of(o, "tile::gather4");
  op_has(o, "mbarrier::complete_tx::bytes");
  op_has(o, "cta_group::1");
  if (op_has(o, "cta_group::2") && is_even(o, op_arg(o, 2))) flags |= BKF_PAIR;
  dimension(o);
  Ref offsets[TENSORMAP_RANK];
  const TensorMap *map;
  Place d = op_place(o, op_arg(o, 0), IN_SHARED);
  Place bar = barrier_place(o, op_arg(o, 2));
  x[n++] = d.mem;
  x[n++] = d.off;
  x[n++] = ptx_map(o, op_arg(o, 1), &map);
  x[n++] = bar.mem;
  x[n++] = bar.off;
  uint32_t more = unfolds ? numbers(o, op_arg(o, k++), DT_U16, offsets) : 0;
  x[n++] = multicast ? to(o, DT_I32, op_operand(o, k++, DT_U16)) : 0;
  x[n++] = hint ? op_operand(o, k++, DT_I64) : 0;
  uint32_t modes = coordinates(o, op_arg(o, 1), x + n);
  check_map(o, map, modes, flags);
  if (unfolds && more + 2 != modes)
    ptx_fail(o->b, "'%s' has %u offsets; %u coordinates need %d", o->i->op,
             more, modes, (int)modes - 2);
  n += modes;
  memcpy(x + n, offsets, more * sizeof *offsets);
  emit(o, (Ins){.op = OP_TMALOAD, .imm = bits_of(map, flags),
                .flags = (uint16_t)flags}, x, n + more);
}

// Emits a test of whether this lane is the lowest of the lanes that execute the
// instruction together.
static Ref is_lowest(PtxOp *o) {
  Ref active = op_intrin(o, IN_ACTIVE, 0, 0, 0, 0);
  Ref below = op2(o, OP_AND, active, op_intrin(o, IN_LMLT, 0, 0, 0, 0));
  return op2(o, OP_EQ, below, number(o, DT_U32, 0));
}

static void tensor_store(PtxOp *o, bool reduce) {
  Ref x[16];
  uint32_t n = 0;
  unsigned flags = 0;
  bool hint = op_has(o, "L2::cache_hint");
  op_has(o, "bulk_group");
  dimension(o);
  if (reduce) {
    op_has(o, "reduce");
    for (int a = 0; a <= BKF_ATOMIC; a++) {
      if (op_has(o, atomic_row((AtomicKind)a)->name)) {
        flags = BKF_REDUCES | (unsigned)a;
      }
    }
  }
  if (op_has(o, "im2col_no_offs")) flags |= BKF_IM2COL;
  flags |= rows_of(o, "tile::scatter4");
  const TensorMap *map;
  x[n++] = ptx_map(o, op_arg(o, 0), &map);
  Place s = op_place(o, op_arg(o, 1), IN_SHARED);
  x[n++] = s.mem;
  x[n++] = s.off;
  x[n++] = hint ? op_operand(o, 2, DT_I64) : 0;
  uint32_t modes = coordinates(o, op_arg(o, 0), x + n);
  check_map(o, map, modes, flags);
  PtxBuild *b = o->b;
  bool once = b->flags & PTX_STORE_ONCE && !reduce;
  if (once) ir_open(b->cx, b->fn, (Ins){.op = OP_IF, .a = {is_lowest(o)}});
  emit(o, (Ins){.op = OP_TMASTORE, .imm = bits_of(map, flags),
                .flags = (uint16_t)flags}, x, n + modes);
  if (!once) return;
  ir_else(b->cx, b->fn);
  ir_close(b->cx, b->fn);
}

// Returns the place in this CTA's shared memory at the offset of a cluster
// address. Stores in *rank the rank of the CTA that the address names. If *rank
// held the rank of an earlier operand, emits a report for threads where the two
// ranks differ.
static Place peer_place(PtxOp *o, const PtxArg *a, Ref *rank) {
  Place p = op_place(o, a, IN_CLUSTER);
  Ref was = *rank;
  *rank = place_rank(o, &p);
  if (!was || was == *rank) return p;
  op_require(o, op2(o, OP_EQ, was, *rank), "the mbarrier is in the shared "
             "memory of another block than the data");
  return p;
}

// Does the same as peer_place for the mbarrier of a store or copy to another
// CTA.
static Place peer_barrier(PtxOp *o, const PtxArg *a, Ref *rank) {
  Place p = peer_place(o, a, rank);
  count_barriers(o, &p);
  return p;
}

// Translates st.async.
void row_send(PtxOp *o, int k) {
  (void)k;
  op_has(o, "weak");
  op_has(o, "mbarrier::complete_tx::bytes");
  op_has(o, "shared::cluster");
  PtxType t = op_type(o, 0);
  int n = op_vector(o);
  Ref rank = 0;
  Place d = peer_place(o, op_arg(o, 0), &rank);
  Place bar = peer_barrier(o, op_arg(o, 2), &rank);
  op_count_in(o, &d, op_dtype(t), n * t.bits / 8, "st.async");
  Ref x[9] = {d.mem, d.off, bar.mem, bar.off, rank};
  const PtxArg *v = op_arg(o, 1);
  bool list = op_registers(o, v, n);
  for (int q = 0; q < n; q++) {
    x[5 + q] = op_value(o, list ? op_part(o, v, (uint32_t)q) : v, op_dtype(t));
  }
  emit(o, (Ins){.op = OP_STASYNC, .imm = n * t.bits}, x, 5 + (uint32_t)n);
}

// Returns the size of a bulk copy in bytes. The simulator reports a size that
// is not a multiple of 16.
static int64_t bulk_size(PtxOp *o) {
  return op_constant_in(o, 2, 16, 1 << 28);
}

// Translates bulk copies from this CTA's shared memory to the shared memory of
// another CTA.
static void bulk_send(PtxOp *o) {
  op_has(o, "mbarrier::complete_tx::bytes");
  dimension(o);
  Ref rank = 0;
  Place d = peer_place(o, op_arg(o, 0), &rank);
  Place s = op_place(o, op_arg(o, 1), IN_SHARED);
  Place bar = peer_barrier(o, op_arg(o, 3), &rank);
  Ref x[7] = {d.mem, d.off, s.mem, s.off, bar.mem, bar.off, rank};
  emit(o, (Ins){.op = OP_BULKSEND, .imm = bulk_size(o) * 8}, x, 7);
}

// Translates bulk copies of bytes from global to shared memory and back.
static void bulk_bytes(PtxOp *o) {
  bool hint = op_has(o, "L2::cache_hint");
  bool multicast = op_has(o, "multicast::cluster");
  bool load = op_has(o, "mbarrier::complete_tx::bytes");
  op_has(o, "bulk_group");
  dimension(o);
  int64_t bytes = bulk_size(o);
  Place d = op_place(o, op_arg(o, 0), load ? IN_SHARED : IN_GLOBAL);
  Place s = op_place(o, op_arg(o, 1), load ? IN_GLOBAL : IN_SHARED);
  Ref x[8] = {d.mem, d.off, s.mem, s.off};
  uint32_t n = 4, k = 3;
  if (load) {
    Place bar = barrier_place(o, op_arg(o, k++));
    x[n++] = bar.mem;
    x[n++] = bar.off;
    x[n++] = multicast ? to(o, DT_I32, op_operand(o, k++, DT_U16)) : 0;
  }
  x[n++] = hint ? op_operand(o, k, DT_I64) : 0;
  emit(o, (Ins){.op = load ? OP_BULKLOAD : OP_BULKSTORE, .imm = bytes * 8}, x,
       n);
}

// Translates cp.async.bulk.prefetch.
static void bulk_prefetch(PtxOp *o) {
  bool hint = op_has(o, "L2::cache_hint"), unfolds = op_has(o, "im2col");
  op_has(o, "L2");
  dimension(o);
  // A prefetch of bytes has no effect here.
  if (!strstr(o->i->op, ".tensor")) return;
  unsigned flags = (unfolds ? BKF_IM2COL : 0) | rows_of(o, "tile::gather4");
  Ref x[2 + 2 * TENSORMAP_RANK], offsets[TENSORMAP_RANK];
  const TensorMap *map;
  x[0] = ptx_map(o, op_arg(o, 0), &map);
  uint32_t more = unfolds ? numbers(o, op_arg(o, 1), DT_U16, offsets) : 0;
  x[1] = hint ? op_operand(o, unfolds ? 2 : 1, DT_I64) : 0;
  uint32_t modes = coordinates(o, op_arg(o, 0), x + 2);
  check_map(o, map, modes, flags);
  memcpy(x + 2 + modes, offsets, more * sizeof *offsets);
  emit(o, (Ins){.op = OP_TMAPREFETCH, .flags = (uint16_t)flags}, x,
       2 + modes + more);
}

void row_bulk(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  op_has(o, "async");
  op_has(o, "bulk");
  if (op_has(o, "commit_group")) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_BULKCOMMIT});
  } else if (op_has(o, "wait_group")) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_BULKWAIT,
                                .imm = op_constant_in(o, 0, 0, INT32_MAX),
                                .flags = op_has(o, "read") ? BKF_READ : 0});
  } else if (op_has(o, "prefetch")) {
    bulk_prefetch(o);
  } else if (strstr(o->i->op, ".tensor")) {
    bool store = op_arg(o, 1)->kind == PTX_A_ADDRESS && o->i->args < 4 &&
                 op_arg(o, 0)->parts == 2;
    if (store) tensor_store(o, strncmp(o->i->op, "cp.reduce", 9) == 0);
    else tensor_load(o);
  } else if (strstr(o->i->op, ".shared::cluster.shared::cta")) {
    bulk_send(o);
  } else {
    // libcu++ omits the fence after mbarrier.init that the PTX ISA requires.
    if (ptx_through(b->m, o->i->loc, "/cuda/__memcpy_async/")) {
      ir_emit(b->cx, b->fn, (Ins){.op = OP_FENCE, .imm = FE_MBARINIT});
    }
    bulk_bytes(o);
  }
}

void row_proxy(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  if (op_has(o, "tensormap::generic") && op_has(o, "acquire")) {
    maps_acquire(o);
    return;
  }
  for (int f = 0; f < FE_COUNT; f++) {
    if (strcmp(fence_row((FenceKind)f)->text, o->i->op)) continue;
    o->used = UINT32_MAX;
    ir_emit(b->cx, b->fn, (Ins){.op = OP_FENCE, .imm = f});
    return;
  }
  ptx_fail(b, "'%s' is not modelled", o->i->op);
}

// ---- wgmma ----

// Returns the atom of a wgmma. `ta` and `tb` state whether A and B are
// MN-major. `selector` names the lanes that supply the metadata of a sparse A.
static int find_wgmma(PtxOp *o, bool smem_a, bool ta, bool tb, int selector) {
  const PtxMma *m = ptx_mma(o->b, o->i->op);
  for (int q = 0; q < m->n; q++) {
    const AtomMma *a = atom_mma(m->id[q]);
    if (!a || a->kind != MK_WGMMA) continue;
    if (!(a->flags & AMF_SMEM_A) == smem_a || !atom_mma_runs(a)) continue;
    if (a->mn_major[1] != tb || (smem_a && a->mn_major[0] != ta)) continue;
    if (a->selector != selector) continue;
    return m->id[q];
  }
  ptx_fail(o->b, "'%s' is not modelled", o->i->op);
}

static void multiply(PtxOp *o) {
  const PtxArg *a = op_arg(o, 1);
  bool smem_a = a->kind == PTX_A_REG;
  // A sparse A has metadata and a selector in front of the predicate.
  uint32_t n = o->i->args, more = op_has(o, "sp") ? 2 : 0;
  if (n < 4 + more) ptx_fail(o->b, "'%s' cannot have %u operands", o->i->op, n);
  // Instructions on floats have the operands imm-scale-a and imm-scale-b.
  // Instructions on 16-bit floats also have imm-trans-a and imm-trans-b.
  bool floats = n > 4 + more;
  if (floats && (op_constant(o, 4 + more) != 1 ||
                 op_constant(o, 5 + more) != 1)) {
    ptx_fail(o->b, "'%s' with imm-scale -1 is not modelled", o->i->op);
  }
  bool ta = n == 8 + more && op_constant(o, 6 + more);
  bool tb = n >= 7 + more && op_constant(o, n - 1);
  int selector = more ? (int)op_constant_in(o, 4, 0, 1) : 0;
  int id = find_wgmma(o, smem_a, ta, tb, selector);
  o->used = UINT32_MAX;
  const AtomMma *row = atom_mma(id);
  Runs r = {.n = 0};
  Ref x[5];
  uint32_t k = 0;
  x[k++] = mma_run(o, &r, 0, row, 0);
  x[k++] = smem_a ? op_operand(o, 1, DT_U64) : mma_run(o, &r, 1, row, 1);
  x[k++] = op_operand(o, 2, DT_U64);
  x[k++] = op_pred(o, op_arg(o, 3 + more));
  if (more) x[k++] = mma_run(o, &r, 3, row, row->nop - 1);
  operands_emit(o->b->cx, o->b->fn, (Ins){.op = OP_WGMMA, .imm = id}, x, k,
                r.reg, r.regs);
}

void row_wgmma(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  if (op_has(o, "mma_async")) {
    multiply(o);
    return;
  }
  op_has(o, "sync");
  op_has(o, "aligned");
  if (op_has(o, "fence")) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_WGFENCE});
  } else if (op_has(o, "commit_group")) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_WGCOMMIT});
  } else if (op_has(o, "wait_group")) {
    ir_emit(b->cx, b->fn, (Ins){.op = OP_WGWAIT,
                                .imm = op_constant_in(o, 0, 0, INT32_MAX)});
  } else {
    ptx_fail(b, "'%s' is not modelled", o->i->op);
  }
}

// ---- clusters, registers, dependent launches ----

void row_cluster(PtxOp *o, int k) {
  (void)k;
  PtxBuild *b = o->b;
  const char *op = o->i->op;
  if (strncmp(op, "setmaxnreg", 10) == 0) {
    bool inc = op_has(o, "inc");
    op_has(o, "dec");
    op_has(o, "sync");
    op_has(o, "aligned");
    op_has(o, "u32");
    ir_emit(b->cx, b->fn, (Ins){.op = OP_SETMAXNREG,
                                .imm = op_constant_in(o, 0, 24, 256),
                                .flags = inc ? RGF_INC : 0});
  } else if (strncmp(op, "griddepcontrol", 14) == 0) {
    bool wait = op_has(o, "wait");
    op_has(o, "launch_dependents");
    ir_emit(b->cx, b->fn, (Ins){.op = wait ? OP_GRIDWAIT : OP_GRIDLAUNCH});
  } else {
    bool arrive = op_has(o, "arrive");
    bool wait = op_has(o, "wait");
    unsigned flags = op_has(o, "relaxed") ? CLF_RELAXED : 0;
    op_has(o, "cluster");
    op_has(o, "release");
    op_has(o, "acquire");
    if (!op_has(o, "aligned")) flags |= CLF_UNALIGNED;
    if (!arrive && !wait) ptx_fail(b, "'%s' is not modelled", op);
    ir_emit(b->cx, b->fn, (Ins){.op = arrive ? OP_CLUSTERARRIVE
                                             : OP_CLUSTERWAIT,
                                .flags = (uint16_t)flags});
  }
}
// SPDX-License-Identifier: MIT
