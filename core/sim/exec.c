// The interpreter: runs a warp until it must wait, yields, or ends.
#include "base/guard.h"
#include "decode/assertion.h"
#include "sim/addressed.h"
#include "sim/async.h"
#include "sim/barrier.h"
#include "sim/divergence.h"
#include "sim/matrix.h"
#include "sim/mbar.h"
#include "sim/regs.h"
#include "sim/tcgen05.h"
#include "sim/tensormap_ops.h"
#include "sim/wgmma.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void set_uniform(SimWarp *w, const SimIns *i, uint64_t u) {
  int n = i->spread ? LANES : 1;
  for (int l = 0; l < n; l++) set_lane(w, i->d, i->wide, l, u);
}

static uint32_t mask_of(SimWarp *w, uint32_t slot) {
  const uint32_t *p = u32_at(w, slot);
  uint32_t m = 0;
  for (int l = 0; l < LANES; l++) m |= (uint32_t)(p[l] != 0) << l;
  return m;
}

static uint32_t condition(SimWarp *w, const SimIns *i) {
  if (i->uniform) return u32_at(w, i->a)[0] ? FULL : 0;
  return mask_of(w, i->a);
}

// ---- values ----

static void compute(SimWarp *w, const SimIns *i) {
  if (!i->uniform) {
    simalu_lanes(i, w->v);
    return;
  }
  bool in = sim_wide((DType)i->type);
  bool sel = i->op == OP_SEL, sh = op_class((Op)i->op) == CLASS_SHIFT;
  uint64_t a = lane_bits(w, i->a, in && !sel, 0);
  uint64_t b = i->b ? lane_bits(w, i->b, in && !sh, 0) : 0;
  uint64_t c = i->c ? lane_bits(w, i->c, in, 0) : 0;
  set_uniform(w, i, simalu_one(i, a, b, c));
}

static void set_var(SimWarp *w, const SimIns *i) {
  if (i->uniform) {
    set_lane(w, i->d, i->wide, 0, lane_bits(w, i->a, i->wide, 0));
    return;
  }
  for (int l = 0; l < LANES; l++)
    if (w->active >> l & 1)
      set_lane(w, i->d, i->wide, l, lane_bits(w, i->a, i->wide, l));
}

// ---- registers ----

static void load_register(SimWarp *w, const SimIns *i, const SimSide *s) {
  const SimMem *m = s->mem;
  w->cluster->hooks->value.loaded(w, i, s);
  const char *p = rmem_at(w, m, s->konst);
  if (m->per == 1 && m->size >= 4) {
    memcpy(w->v + i->d, p, (size_t)m->size * LANES);
    return;
  }
  for (int l = 0; l < LANES; l++) {
    uint64_t u = 0;
    for (int k = 0; k < m->per; k++)
      u |= rmem_get(p + k * LANES * m->size, m->size, l) << (k * m->unit);
    set_lane(w, i->d, i->wide, l, u);
  }
}

// Stores the value in slot i->c to the n elements of a register object that
// start at unit s->konst. Stores only in the active lanes.
static void store_register(SimWarp *w, const SimIns *i, const SimSide *s,
                           int64_t n) {
  const SimMem *m = s->mem;
  uint64_t cut = unit_mask(m);
  uint32_t good = w->active & ~w->cluster->hooks->value.undefined(w, i->c);
  for (int64_t e = 0; e < n * m->per; e++) {
    char *p = rmem_at(w, m, s->konst + e);
    int shift = (int)(e % m->per) * m->unit;
    uint32_t *def = rmem_def(w, m) + s->konst + e;
    *def = (*def & ~w->active) | good;
    if (w->active == FULL && m->per == 1 && (m->size == 4 || m->size == 8)) {
      memcpy(p, w->v + i->c, (size_t)m->size * LANES);
      continue;
    }
    // Registers of more than 8 bytes receive only constants, which fit in the
    // lower half. First zero the whole register.
    if (m->size > 8)
      for (int l = 0; l < LANES; l++)
        if (w->active >> l & 1) memset(p + l * m->size, 0, (size_t)m->size);
    for (int l = 0; l < LANES; l++)
      if (w->active >> l & 1)
        rmem_put(p, m->size, l, lane_bits(w, i->c, i->wide, l) >> shift & cut);
  }
}

// Returns the first register unit that lane l selects by the index in slot
// `which`. Returns -1 and reports a fault if the index is out of range.
static int64_t chosen(SimWarp *w, const SimIns *i, uint32_t which, int l) {
  const SimSide *s = i->x;
  const SimMem *m = s->mem;
  int64_t at = index_at(w, which, false, l);
  int64_t unit = s->konst + at * m->per;
  if (at >= 0 && at < i->imm) return unit;
  SimFault *f = simreport_fault(w, SIM_OOB, l, i->src, 0, m->index,
                                unit * m->unit / m->own);
  if (f) {
    f->access.write = i->op == OP_PUT;
    f->access.size = 1;
    f->access.which = at;
    f->access.most = i->imm;
  }
  return -1;
}

static void pick(SimWarp *w, const SimIns *i) {
  const SimMem *m = ((const SimSide *)i->x)->mem;
  uint32_t lack = 0;
  // first undefined unit that the lowest lane in `lack` selects
  int64_t first = 0;
  for (int l = 0; l < LANES; l++) {
    int64_t at = w->active >> l & 1 ? chosen(w, i, i->c, l) : -1;
    uint64_t u = 0;
    for (int k = 0; at >= 0 && k < m->per; k++) {
      u |= rmem_get(rmem_at(w, m, at + k), m->size, l) << (k * m->unit);
      if (rmem_def(w, m)[at + k] >> l & 1) continue;
      if (!lack) first = at + k;
      lack |= 1u << l;
    }
    set_lane(w, i->d, i->wide, l, u);
  }
  w->cluster->hooks->value.picked(w, i, m, first, lack);
}

static void put(SimWarp *w, const SimIns *i) {
  const SimMem *m = ((const SimSide *)i->x)->mem;
  uint32_t bad = w->cluster->hooks->value.undefined(w, i->c);
  for (int l = 0; l < LANES; l++) {
    int64_t at = w->active >> l & 1 ? chosen(w, i, i->b, l) : -1;
    uint64_t u = lane_bits(w, i->c, i->wide, l);
    for (int k = 0; at >= 0 && k < m->per; k++) {
      uint32_t *def = rmem_def(w, m) + at + k;
      *def = (*def & ~(1u << l)) | (~bad & 1u << l);
      rmem_put(rmem_at(w, m, at + k), m->size, l,
               u >> (k * m->unit) & unit_mask(m));
    }
  }
}

static uint64_t packed_get(const uint8_t *buf, const SimMem *m, int k) {
  uint64_t u = 0;
  if (m->unit < 8) return (uint64_t)buf[k * m->unit / 8] >>
                          (k * m->unit % 8) & unit_mask(m);
  memcpy(&u, buf + k * m->size, (size_t)m->size);
  return u;
}

static void packed_put(uint8_t *buf, const SimMem *m, int k, uint64_t u) {
  if (m->unit < 8) {
    uint8_t *b = &buf[k * m->unit / 8];
    int at = k * m->unit % 8;
    *b = (uint8_t)((*b & ~(unit_mask(m) << at)) | u << at);
  } else {
    memcpy(buf + k * m->size, &u, (size_t)m->size);
  }
}

// Copies `bytes` bytes of each lane's registers to buf, for the lanes of mask.
// Starts at the first unit of s, and packs the units without gaps.
static void gather(SimWarp *w, const SimIns *i, const SimSide *s,
                   uint32_t mask, int bytes, SimLaneBuf buf) {
  const SimMem *m = s->mem;
  int n = bytes * 8 / m->unit;
  for (int k = 0; k < n; k++) {
    const char *p = rmem_at(w, m, s->konst + k);
    w->cluster->hooks->value.registers(w, i, m, s->konst + k, mask);
    if (m->unit == 16) {
      for (int l = 0; l < LANES; l++) memcpy(buf[l] + k * 2, p + l * 2, 2);
    } else if (m->unit == 32) {
      for (int l = 0; l < LANES; l++) memcpy(buf[l] + k * 4, p + l * 4, 4);
    } else if (m->size > 8) {
      for (int l = 0; l < LANES; l++)
        memcpy(buf[l] + k * 16, p + l * 16, 16);
    } else {
      for (int l = 0; l < LANES; l++)
        packed_put(buf[l], m, k, rmem_get(p, m->size, l));
    }
  }
}

static void scatter(SimWarp *w, const SimSide *s, uint32_t mask, int bytes,
                    SimLaneBuf buf) {
  const SimMem *m = s->mem;
  int n = bytes * 8 / m->unit;
  for (int k = 0; k < n; k++) {
    char *p = rmem_at(w, m, s->konst + k);
    rmem_def(w, m)[s->konst + k] |= mask;
    if (mask == FULL && m->unit == 32) {
      for (int l = 0; l < LANES; l++) memcpy(p + l * 4, buf[l] + k * 4, 4);
      continue;
    }
    for (int l = 0; l < LANES; l++) {
      if (!(mask >> l & 1)) continue;
      if (m->unit == 16) memcpy(p + l * 2, buf[l] + k * 2, 2);
      else if (m->unit == 32) memcpy(p + l * 4, buf[l] + k * 4, 4);
      else if (m->size > 8) memcpy(p + l * 16, buf[l] + k * 16, 16);
      else rmem_put(p, m->size, l, packed_get(buf[l], m, k));
    }
  }
}

static void declare_registers(SimWarp *w, const SimMem *m) {
  uint32_t *def = rmem_def(w, m);
  for (int64_t e = 0; e < m->count; e++) def[e] &= ~w->active;
}

// ---- elements and vectors ----

static void load(SimWarp *w, const SimIns *i) {
  const SimSide *s = i->x;
  if (sim_in_registers(s->mem)) {
    load_register(w, i, s);
    return;
  }
  int64_t off[LANES];
  SimLaneBuf buf;
  memset(buf, 0, sizeof buf);
  simmem_offsets(w, s, off);
  if (s->mem->bits < 8) {
    simmem_load_bits(w, i, s->mem, w->active, off, u32_at(w, i->d));
    return;
  }
  int bytes = dtype_bits((DType)s->type) / 8;
  simmem_load(w, i, s->mem, w->active, off, bytes, buf);
  for (int l = 0; l < LANES; l++) {
    uint64_t u;
    memcpy(&u, buf[l], 8);
    set_lane(w, i->d, i->wide, l, u);
  }
}

static void store(SimWarp *w, const SimIns *i) {
  const SimSide *s = i->x;
  if (sim_in_registers(s->mem)) {
    store_register(w, i, s, 1);
    return;
  }
  int64_t off[LANES];
  SimLaneBuf buf;
  simmem_offsets(w, s, off);
  if (s->mem->bits < 8) {
    simmem_store_bits(w, i, s->mem, w->active, off, u32_at(w, i->c));
    return;
  }
  for (int l = 0; l < LANES; l++) {
    uint64_t u = lane_bits(w, i->c, i->wide, l);
    memcpy(buf[l], &u, 8);
  }
  int bytes = dtype_bits((DType)s->type) / 8;
  simmem_store(w, i, s->mem, w->active, off, bytes, buf);
}

// Copies registers to registers. Undefined elements stay undefined. If source
// and destination overlap, every element is read before it is overwritten.
static void copy_registers(SimWarp *w, const SimCopy *c, uint32_t mask) {
  const SimMem *m = c->src.mem, *n = c->dst.mem;
  int units = c->bytes * 8 / m->unit;
  bool back = m->base == n->base && c->dst.konst > c->src.konst;
  for (int at = 0; at < units; at++) {
    int k = back ? units - 1 - at : at;
    const char *p = rmem_at(w, m, c->src.konst + k);
    char *q = rmem_at(w, n, c->dst.konst + k);
    uint32_t from = rmem_def(w, m)[c->src.konst + k];
    uint32_t *to = rmem_def(w, n) + c->dst.konst + k;
    *to = (*to & ~mask) | (from & mask);
    for (int l = 0; l < LANES; l++)
      if (mask >> l & 1)
        memmove(q + l * n->size, p + l * m->size, (size_t)m->size);
  }
}

static void copy(SimWarp *w, const SimIns *i) {
  const SimCopy *c = i->x;
  uint32_t mask = w->active;
  if (c->pred) mask &= mask_of(w, c->pred);
  if (!mask) return;
  if (sim_in_registers(c->src.mem) && sim_in_registers(c->dst.mem) &&
      c->src.mem->unit == c->dst.mem->unit) {
    copy_registers(w, c, mask);
    return;
  }
  int64_t off[LANES];
  SimLaneBuf buf;
  if (sim_in_registers(c->src.mem)) {
    gather(w, i, &c->src, mask, c->bytes, buf);
  } else {
    simmem_offsets(w, &c->src, off);
    uint32_t got = simmem_load(w, i, c->src.mem, mask, off, c->bytes, buf);
    for (uint32_t m = mask & ~got; m; m &= m - 1)
      memset(buf[__builtin_ctz(m)], 0, sizeof *buf);
  }
  if (sim_in_registers(c->dst.mem)) {
    scatter(w, &c->dst, mask, c->bytes, buf);
  } else {
    simmem_offsets(w, &c->dst, off);
    simmem_store(w, i, c->dst.mem, mask, off, c->bytes, buf);
  }
}

// ---- collective operations ----

// Checks that all lanes of the warp are active. If lanes are missing at a
// barrier, stops the run, because later results would be meaningless.
static bool all_here(SimWarp *w, const SimIns *i) {
  if (divergence_are(w, i, i->who == WHO_FULL ? FULL : w->valid)) return true;
  if (i->who == WHO_WARP) w->cluster->stop = true;
  return false;
}

// ---- regions ----

static bool goes_on(int64_t at, int64_t hi, int64_t step) {
  return step < 0 ? at > hi : at < hi;
}

static uint32_t for_lanes(SimWarp *w, const SimIns *i) {
  uint32_t m = 0;
  for (int l = 0; l < LANES; l++)
    m |= (uint32_t)goes_on(index_at(w, i->d, i->wide, l),
                           index_at(w, i->b, i->wide, l),
                           index_at(w, i->c, i->wide, l)) << l;
  return m;
}

static void push(SimWarp *w, const SimIns *i, uint32_t other) {
  uint32_t head = (uint32_t)(i - w->cluster->prog->ins);
  w->frame[w->depth++] = (SimFrame){w->active, other, head};
}

static void pop(SimWarp *w) { w->active = w->frame[--w->depth].mask; }

// Makes the active lanes for which i's condition holds leave the innermost
// `levels` branches and loops or, for OP_EXITIF, the kernel.
static void leave_if(SimWarp *w, const SimIns *i, uint32_t levels) {
  uint32_t out = condition(w, i) & w->active;
  if (i->op == OP_EXITIF) {
    w->gone |= out;
    simbarrier_exited(w->cluster);
  }
  w->active &= ~out;
  for (uint32_t k = 1; k < levels; k++) w->frame[w->depth - k].mask &= ~out;
  if (!w->active) divergence_find(w);
}

static void begin_for(SimWarp *w, const SimIns *i) {
  uint32_t m;
  if (i->uniform) {
    int64_t lo = index_at(w, i->a, i->wide, 0);
    set_uniform(w, i, (uint64_t)lo);
    m = goes_on(lo, index_at(w, i->b, i->wide, 0),
                index_at(w, i->c, i->wide, 0)) ? FULL : 0;
  } else {
    memcpy(w->v + i->d, w->v + i->a, (i->wide ? 8 : 4) * LANES);
    m = for_lanes(w, i);
  }
  if (!(w->active & m)) {
    w->pc = i->jump;
    return;
  }
  push(w, i, 0);
  w->active &= m;
}

static void end_for(SimWarp *w, const SimIns *i) {
  uint32_t m;
  if (i->uniform) {
    int64_t step = index_at(w, i->c, i->wide, 0);
    int64_t at = (int64_t)((uint64_t)index_at(w, i->d, i->wide, 0) +
                           (uint64_t)step);
    set_uniform(w, i, (uint64_t)at);
    m = goes_on(at, index_at(w, i->b, i->wide, 0), step) ? FULL : 0;
  } else {
    for (int l = 0; l < LANES; l++)
      set_lane(w, i->d, i->wide, l,
               (uint64_t)index_at(w, i->d, i->wide, l) +
               (uint64_t)index_at(w, i->c, i->wide, l));
    m = for_lanes(w, i);
  }
  if (w->active & m) {
    w->active &= m;
    w->pc = i->jump;
  } else {
    pop(w);
  }
}

static void begin_if(SimWarp *w, const SimIns *i) {
  uint32_t m = condition(w, i) & w->active;
  push(w, i, w->active & ~m);
  w->active = m;
  if (!m) w->pc = i->jump;
}

static void go_else(SimWarp *w, const SimIns *i) {
  SimFrame *f = &w->frame[w->depth - 1];
  w->active = f->other;
  f->other = 0;
  if (!w->active) w->pc = i->jump;
}

static void runaway(SimWarp *w, const SimIns *i, uint64_t quiet) {
  SimFault *f = simreport_fault(w, SIM_RUNAWAY, __builtin_ctz(w->active),
                                i->src, 0, -1, 0);
  if (f) f->runaway.executed = quiet ? quiet : w->count;
  if (f) f->runaway.quiet = quiet > 0;
  w->cluster->stop = true;
}

// Returns the number of instructions that the cluster executed since memory
// last changed. Returns 0 except once in every OFTEN instructions.
static uint64_t quiet_for(SimCluster *c) {
  enum { OFTEN = 1 << 20 };
  if (c->serial - c->calm.since < OFTEN) return 0;
  const SimCommon *all = c->prog->common;
  uint64_t changed = c->changed + (all ? all->changes : 0);
  uint64_t quiet = c->calm.quiet + (c->serial - c->calm.since);
  c->calm.quiet = changed == c->calm.still ? quiet : 0;
  c->calm.still = changed;
  c->calm.since = c->serial;
  return c->calm.quiet;
}

void simexec_spend(SimCluster *c) {
  if (!guard_spend(c->serial - c->beat.spent)) c->stop = true;
  c->beat.spent = c->serial;
}

void simexec_tick(SimCluster *c, uint32_t src) {
  simexec_spend(c);
  if (c->host.tick) c->host.tick(c->host.tick_ud);
  if (!__atomic_load_n(c->host.quit, __ATOMIC_RELAXED)) return;
  if (!c->stop) c->beat.cut = src;
  c->stop = true;
}

static void look_around(SimCluster *c, uint32_t src) {
  enum { OFTEN = 1 << 12 };
  c->beat.due = c->serial + OFTEN;
  simexec_tick(c, src);
}

static void end_region(SimWarp *w, const SimIns *i) {
  if (i->head == OP_IF || i->head == OP_ONCE) {
    pop(w);
    if (!w->active) divergence_find(w);
    return;
  }
  if (w->cluster->serial >= w->cluster->beat.due)
    look_around(w->cluster, i->src ? i->src : w->src);
  if (w->count > w->cluster->host.budget) runaway(w, i, 0);
  if (i->head == OP_FOR) {
    end_for(w, i);
    return;
  }
  w->pc = i->jump;
  uint64_t quiet = quiet_for(w->cluster);
  if (quiet > w->cluster->host.patience) runaway(w, i, quiet);
}

// ---- other instructions ----

static void trap(SimWarp *w, const SimIns *i) {
  if (i->x) {
    w->cluster->hooks->value.asserted(w, i);
    return;
  }
  uint32_t m = w->active & ~mask_of(w, i->a);
  if (!m) return;
  SimFault *f = simreport_fault(w, SIM_TRAP, __builtin_ctz(m), i->src, 0, -1,
                                0);
  if (f) f->text = (uint32_t)i->imm;
  w->cluster->stop = true;
}

// Prints value u of type `type`. `spec` is a conversion specification of n
// characters that fits the type, such as %5d.
static bool print_value(SimText *t, const char *spec, size_t n, DType type,
                        uint64_t u) {
  char fmt[32];
  if (n >= sizeof fmt) return true;
  memcpy(fmt, spec, n);
  fmt[n] = '\0';
  if (type == DT_BOOL) return simreport_printf(t, fmt, u ? "true" : "false");
  if (dtype_is_float(type))
    return simreport_printf(t, fmt, dtype_to_double(type, u));
  if (dtype_bits(type) > 32) return simreport_printf(t, fmt, (long long)u);
  return simreport_printf(t, fmt, (int)dtype_int(type, u));
}

static bool print_lane(SimWarp *w, const SimPrint *p, int l) {
  SimText *t = &w->text;
  uint32_t k = 0;
  for (const char *s = p->fmt; *s;) {
    size_t n = strcspn(s, "%");
    if (n && !simreport_printf(t, "%.*s", (int)n, s)) return false;
    s += n;
    if (!*s) break;
    n = 1 + strcspn(s + 1, "diuxXocsfFgGeEaA%") + 1;
    if (s[n - 1] == '%') {
      if (!simreport_printf(t, "%%")) return false;
    } else {
      DType type = (DType)p->type[k];
      uint64_t u = lane_bits(w, p->slot[k++], sim_wide(type), l);
      if (!print_value(t, s, n, type, u)) return false;
    }
    s += n;
  }
  return true;
}

static void print(SimWarp *w, const SimIns *i) {
  enum { MOST = 1 << 20 };  // size of the printf buffer of the GPU, in bytes
  if (w->text.n > MOST) return;
  for (int l = 0; l < LANES; l++)
    if (w->active >> l & 1 && !print_lane(w, i->x, l))
      w->cluster->oom = w->cluster->stop = true;
}

static void barrier(SimWarp *w, const SimIns *i, bool wait) {
  int first = i->uniform ? 0 : __builtin_ctz(w->active);
  int64_t n = i->a ? index_at(w, i->a, false, first) : i->put;
  int64_t id = i->b ? index_at(w, i->b, false, first) : i->imm;
  for (int l = first; !i->uniform && l < LANES; l++) {
    if (!(w->active >> l & 1)) continue;
    int64_t its = i->b ? index_at(w, i->b, false, l) : id;
    if (its == id && (!i->a || index_at(w, i->a, false, l) == n)) continue;
    simbarrier_misuse(w, i, 0, its == id ? BAR_LANES_COUNT : BAR_LANES, id,
                  its == id ? index_at(w, i->a, false, l) : its, n);
    return;
  }
  simbarrier_arrive(w, i, id, n, wait);
}

static void end_warp(SimWarp *w, const SimIns *i) {
  w->count--;
  if (divergence_ended(w)) return;
  w->state = SW_DONE;
  w->src = i->src;
  simbarrier_exited(w->cluster);
}

// Records that the preceding launch is complete for the active lanes.
static void wait_before(SimWarp *w) {
  const SimActors *all = &w->cluster->prog->actors;
  if (actors_of(all, ACTOR_BEFORE))
    w->cluster->hooks->learn(w, w->active, actors_first(all, ACTOR_BEFORE), 1);
}

// Executes launch_dependents: the next launch may start. Marks the CTA as early
// if an active lane has not waited for the end of the preceding launch.
static void let_in(SimWarp *w) {
  const SimActors *all = &w->cluster->prog->actors;
  int actor = actors_first(all, ACTOR_BEFORE);
  bool any = actors_of(all, ACTOR_BEFORE);
  for (uint32_t m = any ? w->active : 0; m; m &= m - 1)
    if (!w->cluster->hooks->before(w, __builtin_ctz(m), actor, 1, 1))
      w->cta->early = true;
}

// Returns `done`, which states whether the current instruction was executed. If
// it was not, lets w execute the instruction again when w runs next.
static bool again(SimWarp *w, bool done) {
  if (done) return true;
  w->pc--;
  w->count--;
  return false;
}

// If i is a load with a memory order, records that it may poll; returns true.
static bool polls(SimWarp *w, const SimIns *i) {
  const SimSide *s = i->x;
  if (!i->sem) return false;
  w->cluster->calm.polls += s->mem->memory == MEMORY_GLOBAL;
  w->split.waits++;
  w->cluster->hooks->polled(w, i);
  return true;
}

// Executes an atomic. If it left memory unchanged, records a possible poll.
static void atomic(SimWarp *w, const SimIns *i) {
  uint64_t moved = w->cluster->moved;
  simmem_atomic(w, i);
  if (w->cluster->moved != moved) return;
  w->split.waits++;
  w->cluster->hooks->polled(w, i);
}

static void fence(SimWarp *w, FenceKind kind) {
  if (kind == FE_TENSORMAP) tensormap_ops_release(w);
  if (kind == FE_TENSORMAP || kind == FE_ALIAS) return;
  if (!fence_is_order(kind)) simmbar_fence(w);
  w->cluster->hooks->fence(w, kind);
}

static bool step(SimWarp *w, const SimIns *i);

// Executes instruction i, an access with raw pointers, once for each memory
// object that contains addresses of active lanes. Combines the values that the
// lanes load.
static bool at_addresses(SimWarp *w, const SimIns *i) {
  const SimAddressed *m = i->x;
  uint32_t all = w->active, left = all;
  bool tainted = w->taints.some, go = true;
  size_t size = m->ins->wide ? 8 : 4;
  char *d = m->ins->d ? w->v + m->ins->d : NULL, got[8 * LANES] = {0};
  for (int k = 0; k <= m->n && left; k++) {
    w->active = addressed_lanes(w, m, k, left);
    if (!w->active) continue;
    left &= ~w->active;
    if (tainted) w->cluster->hooks->value.before_value(w, &m->ins[k]);
    go = step(w, &m->ins[k]) && go;
    if (tainted) w->cluster->hooks->value.after_value(w, &m->ins[k]);
    for (uint32_t in = d ? w->active : 0; in; in &= in - 1) {
      size_t at = (size_t)__builtin_ctz(in) * size;
      memcpy(got + at, d + at, size);
    }
  }
  w->active = all;
  if (d) memcpy(d, got, size * LANES);
  addressed_wild(w, i, left);
  return go;
}

// Executes instruction i. Returns false if another warp may run next.
static bool step(SimWarp *w, const SimIns *i) {
  if (i->who > WHO_MASK && !all_here(w, i)) return true;
  switch ((Op)i->op) {
    case OP_LD: load(w, i); return !polls(w, i);
    case OP_ST: store(w, i); return true;
    case OP_FILL: store_register(w, i, i->x, i->imm); return true;
    case OP_PICK: pick(w, i); return true;
    case OP_PUT: put(w, i); return true;
    case OP_COPY: copy(w, i); return true;
    case OP_CPASYNC: simmem_cpasync(w, i); return true;
    case OP_CPCOMMIT: simmem_commit(w); return true;
    case OP_CPWAIT:
      w->cluster->hooks->waits(w, i);
      simmem_wait(w, (uint32_t)i->imm);
      return false;
    case OP_MMA: simmatrix_mma(w, i); return true;
    case OP_WGMMA: simwgmma_issue(w, i); return true;
    case OP_WGFENCE: return true;
    case OP_WGCOMMIT: simwgmma_commit(w); return true;
    case OP_WGWAIT:
      if (simwgmma_wait(w, i)) w->cluster->hooks->waits(w, i);
      else w->pc--;
      return false;
    case OP_TCALLOC: return again(w, simtcgen05_alloc(w, i));
    case OP_TCDEALLOC: simtcgen05_dealloc(w, i); return false;
    case OP_TCRELINQUISH: simtcgen05_relinquish(w); return true;
    case OP_TCMMA: simtcgen05_mma(w, i); return true;
    case OP_TCCP: simtcgen05_rows(w, i); return true;
    case OP_TCSHIFT: simtcgen05_shift(w, i); return true;
    case OP_TCCOMMIT: simtcgen05_commit(w, i); return false;
    case OP_TCLD: simtcgen05_load(w, i); return true;
    case OP_TCST: simtcgen05_store(w, i); return true;
    case OP_TCWAITLD: case OP_TCWAITST:
      simtcgen05_wait(w, i->op == OP_TCWAITLD);
      return true;
    case OP_TCFENCE:
      w->cluster->hooks->tensor_fence(w, i);
      return true;
    case OP_MATRIX: simmatrix_matrix(w, i); return true;
    case OP_BAR: barrier(w, i, true); return false;
    case OP_BARARRIVE: barrier(w, i, false); return false;
    case OP_FENCE: fence(w, (FenceKind)i->imm); return true;
    case OP_MBARINIT: simmbar_init(w, i); return true;
    case OP_MBARINVAL: simmbar_inval(w, i); return true;
    case OP_MBARARRIVE: case OP_MBARTOKEN: simmbar_arrive(w, i); return false;
    case OP_MBARTX: simmbar_expect(w, i); return false;
    case OP_MBARWAIT: return again(w, simmbar_wait(w, i));
    case OP_MBARTRY: simmbar_try(w, i); return false;
    case OP_MBARCPASYNC: simmbar_cpasync(w, i); return true;
    case OP_STASYNC: st_async_run(w, i); return true;
    case OP_CLUSTERARRIVE: simbarrier_meet(w, i); return false;
    case OP_CLUSTERWAIT: return again(w, simbarrier_wait(w, i));
    case OP_SETMAXNREG: return again(w, simbarrier_registers(w, i));
    case OP_GRIDWAIT: wait_before(w); return true;
    case OP_GRIDLAUNCH: let_in(w); return true;
    case OP_TMALOAD: case OP_TMASTORE: case OP_BULKLOAD: case OP_BULKSTORE:
    case OP_BULKSEND: case OP_CLCTRY:
      simbulk_run(w, i);
      return true;
    case OP_TMAPREFETCH: return true;
    case OP_MAPCOPY: case OP_MAPADDRESS: case OP_MAPSET: case OP_MAPACQUIRE:
    case OP_MAPPUBLISH:
      tensormap_ops_run(w, i);
      return true;
    case OP_BULKCOMMIT: simasync_commit(w); return true;
    case OP_BULKWAIT:
      w->cluster->hooks->waits(w, i);
      simasync_wait(w, (uint32_t)i->imm, i->flags & BKF_READ);
      return true;
    case OP_SYNCWARP: divergence_groups(w, i, NULL); return true;
    case OP_ATOMIC: atomic(w, i); return false;
    case OP_INTRIN: case OP_ASK:
      simintrin_run(w, i);
      if (i->watch) w->cluster->hooks->value.nonfinite(w, i);
      return true;
    case OP_PRINTF: print(w, i); return true;
    case OP_TRAP: trap(w, i); return true;
    case OP_RMEM: declare_registers(w, i->x); return true;
    case OP_VSET: set_var(w, i); return true;
    case OP_FOR: begin_for(w, i); return true;
    case OP_LOOP: case OP_ONCE: push(w, i, 0); return true;
    case OP_BREAKIF: leave_if(w, i, (uint32_t)i->imm); return true;
    case OP_EXITIF: leave_if(w, i, w->depth + 1); return true;
    case OP_IF: begin_if(w, i); return true;
    case OP_ELSE: go_else(w, i); return true;
    case OP_END: end_region(w, i); return true;
    case OP_NOP: end_warp(w, i); return false;
#define OP(...)
#define LEAF(id, ...) case OP_##id:
#include "ir/ops.h"
    case OP_PTR: return at_addresses(w, i);
    case OP_ASM: case OP_DSMEM: case OP_TMAPAT: case OP_TMEM: case OP_COUNT:
      return true;  // other operations do not occur in a decoded program
#define OP(...)
#define SCALAR(id, ...) case OP_##id:
#include "ir/ops.h"
    case OP_SEL: case OP_CVT: case OP_BITCAST: case OP_MATH: case OP_VAR:
    case OP_VGET:
      compute(w, i);
      if (i->watch) w->cluster->hooks->value.nonfinite(w, i);
      if (i->op == OP_DIV || i->op == OP_MOD || i->jump ||
          (i->wraps && w->wraps.some))
        w->cluster->hooks->value.computed(w, i);
      return true;
  }
  return true;
}

bool simexec_is_turn(const SimIns *i) {
  if (i->op == OP_PTR)
    return simexec_is_turn(((const SimAddressed *)i->x)->ins);
  switch ((Point)op_rows[i->op].point) {
    case POINT_NEVER: break;
    case POINT_ALWAYS: return true;
    case POINT_ORDERED: return i->sem;
    // If a try_wait is linked to a wait (try_wait.h), only the wait is a step.
    case POINT_UNLINKED: return !i->jump;
  }
  return false;
}

// Executes i; w->pc is past i. Returns false if another warp may run now.
static inline bool execute(SimWarp *w, const SimIns *i) {
  w->cluster->serial++;
  w->count++;
  bool tainted = w->taints.some;
  if (tainted) w->cluster->hooks->value.before_value(w, i);
  bool go = step(w, i);
  if (tainted) w->cluster->hooks->value.after_value(w, i);
  return go;
}

void simexec_turn(SimWarp *w) {
  execute(w, &w->cluster->prog->ins[w->pc++]);
}

void simexec_between(SimWarp *w) {
  const SimIns *prog = w->cluster->prog->ins;
  w->polling = false;
  while (w->state == SW_RUN && !w->cluster->stop &&
         !simexec_is_turn(&prog[w->pc]))
    simexec_turn(w);
}

// Counts an execution of i, atomically, as several host threads may run.
static void count_execution(const SimProg *p, const SimIns *i) {
  uint64_t *n = &p->launch->executed[i->ref];
  __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

// Runs w until it must wait, yields, or ends. `watched` is true if a debugger
// or an event log is attached, or if executions are counted.
static inline void run(SimWarp *w, bool watched) {
  enum { SLICE = 1 << 16,  // number of instructions after which other warps run
         // number of failed polls after which other lanes of the warp run
         PATIENCE = 64 };
  SimCluster *c = w->cluster;
  const SimIns *prog = c->prog->ins;
  w->polling = false;
  for (int left = SLICE; left > 0 && !c->stop; left--) {
    const SimIns *i = &prog[w->pc];
    if (watched && c->prog->launch->debug && !c->hooks->step(w, i)) return;
    w->pc++;
    if (w->split.part && i->who > WHO_LANE && !divergence_together(w, i))
      return;
    if (watched && c->prog->launch->executed) count_execution(c->prog, i);
    if (watched && c->log) c->log->begin(w, i);
    bool go = execute(w, i);
    if (watched && c->log) c->log->end(w, i, prog + w->pc == i);
    if (go) continue;
    if (w->split.waits >= PATIENCE) divergence_turn(w);
    return;
  }
}

void simexec_warp(SimWarp *w) {
  const SimCluster *c = w->cluster;
  const Launch *l = c->prog->launch;
  if (l->debug || c->log || l->executed) run(w, true);
  else run(w, false);
}
// SPDX-License-Identifier: MIT
