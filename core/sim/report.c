// Counts faults while a cluster runs, and describes them in sentences.
#include "ir/operands.h"
#include "sim/inside.h"

#include <stdio.h>
#include <string.h>

const char *sim_kind_name(SimKind k) {
  static const char *const names[] = {
#define SK(id, name, what) name,
    SIM_KINDS(SK)
#undef SK
  };
  return k < SIM_KIND_COUNT ? names[k] : "unknown";
}

const char *sim_kind_about(SimKind k) {
  static const char *const texts[] = {
#define SK(id, name, what) what,
    SIM_KINDS(SK)
#undef SK
  };
  return k < SIM_KIND_COUNT ? texts[k] : "";
}

const char *sim_lack_name(SimLack k) {
  static const char *const names[] = {
#define SL(id, name) name,
    SIM_LACKS(SL)
#undef SL
  };
  return k < SIM_LACK_COUNT ? names[k] : "";
}

// ---- counting ----

void simreport_thread(const SimProg *p, int linear, int32_t out[3]) {
  const int32_t *b = p->launch->block;
  out[0] = linear % b[0];
  out[1] = linear / b[0] % b[1];
  out[2] = linear / b[0] / b[1];
}

bool simreport_same(const SimReport *a, const SimReport *b) {
  return a->kind == b->kind && a->src == b->src && a->src2 == b->src2 &&
         a->mem == b->mem && a->state == b->state;
}

const SimReport *simreport_of(const SimWarp *w, SimKind kind, uint32_t src,
                              int32_t mem) {
  const SimOut *o = w->cluster->out;
  for (uint32_t k = 0; k < o->nfault; k++) {
    const SimReport *r = &o->fault[k].r;
    if (r->kind == kind && r->src == src && r->mem == mem) return r;
  }
  return NULL;
}

// If report r equals one of the n reports in `all`, adds 1 to that report's
// count. Otherwise returns false.
static bool count_again(const SimCluster *c, SimFault *all, uint32_t n,
                        const SimReport *r) {
  for (uint32_t k = 0; k < n; k++) {
    SimFault *f = &all[k];
    if (!simreport_same(&f->r, r)) continue;
    if (f->serial != c->serial) f->r.count++;
    f->serial = c->serial;
    return true;
  }
  return false;
}

// Fills in the report of a fault by a lane of w.
static SimFault *begin(const SimWarp *w, SimFault *f, int lane,
                       const SimReport *r) {
  SimCluster *c = w->cluster;
  memset(f, 0, sizeof *f);
  f->r = *r;
  memcpy(f->r.block, w->cta->id, sizeof f->r.block);
  simreport_thread(c->prog, w->in * LANES + (lane < 0 ? 0 : lane),
                   f->r.thread);
  f->serial = c->serial;
  return f;
}

static SimReport report_of(SimKind kind, uint32_t src, uint32_t src2,
                           int32_t mem, int64_t offset, uint64_t state) {
  return (SimReport){.kind = kind, .mem = mem, .offset = offset, .src = src,
                     .src2 = src2, .count = 1, .other = -1, .state = state,
                     .leads = -1, .elsewhere = -1};
}

SimFault *simreport_fault(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset) {
  return simreport_state(w, kind, lane, src, src2, mem, offset, 0);
}

SimFault *simreport_state(SimWarp *w, SimKind kind, int lane, uint32_t src,
                          uint32_t src2, int32_t mem, int64_t offset,
                          uint64_t state) {
  SimCluster *c = w->cluster;
  SimOut *o = c->out;
  SimReport r = report_of(kind, src, src2, mem, offset, state);
  if (count_again(c, o->fault, o->nfault, &r)) return NULL;
  if (o->nfault >= (uint32_t)c->max_reports) {
    c->stop = true;
    return NULL;
  }
  return begin(w, &o->fault[o->nfault++], lane, &r);
}

SimFault *simreport_note(SimWarp *w, SimKind kind, int lane, uint32_t src,
                         uint32_t src2, int32_t mem, int64_t offset) {
  SimOut *o = w->cluster->out;
  if (w->cluster->strict)
    return simreport_fault(w, kind, lane, src, src2, mem, offset);
  SimReport r = report_of(kind, src, src2, mem, offset, 0);
  if (count_again(w->cluster, o->note, o->nnote, &r) || o->nnote == MAX_NOTES)
    return NULL;
  return begin(w, &o->note[o->nnote++], lane, &r);
}

void simreport_flight(const SimProg *p, SimFault *out) {
  const Flight *f = &p->fn->flight;
  uint32_t src = ir_get(p->fn, f->at)->src;
  uint32_t other = f->other ? ir_get(p->fn, f->other)->src : 0;
  memset(out, 0, sizeof *out);
  out->r = report_of(SIM_FLIGHT, src, other, -1, 0, 0);
}

// ---- text ----

bool simreport_printf(SimText *t, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (n < 0) return false;
  size_t need = t->n + (size_t)n + 1;
  if (need > t->cap) {
    size_t cap = t->cap * 2 > need ? t->cap * 2 : need;
    char *p = base_realloc(t->p, cap);
    if (!p) return false;
    t->p = p;
    t->cap = cap;
  }
  va_start(ap, fmt);
  vsnprintf(t->p + t->n, (size_t)n + 1, fmt, ap);
  va_end(ap);
  t->n += (size_t)n;
  return true;
}

// Returns the word for an element of memory object mem: "byte" in PTX, which
// has no tensors, and otherwise "element".
static const char *unit(const SimProg *p, int32_t mem) {
  return mem >= 0 && p->fn->mem.p[mem].ptx ? "byte" : "element";
}

// Appends a name such as "shared tensor 'sA'". In PTX, which has no tensors,
// appends "shared memory".
static void say_mem(SimText *t, const SimProg *p, int32_t mem) {
  if (mem < 0) return;
  const Mem *m = &p->fn->mem.p[mem];
  const char *name = ir_str(p->fn, m->name);
  if (m->arg == NO_ARG && m->space == SP_GMEM) {
    simreport_printf(t, "memory at a raw address");
    return;
  }
  if (!*name && m->space == SP_GMEM)
    name = ir_str(p->fn, p->fn->arg.p[m->arg].name);
  if (m->ptx && m->space != SP_GMEM) {
    simreport_printf(t, "%s memory", ir_space_word(m->space));
    return;
  }
  simreport_printf(t, "%s tensor", ir_space_word(m->space));
  if (*name) simreport_printf(t, " '%s'", name);
}

// Appends the earlier launch with which the fault's access conflicts, and how
// that launch uses the memory.
static void say_front(SimText *t, const SimFault *f, const SimMem *m) {
  int how = m ? m->before : 0, near = how % (1 << SIM_FAR);
  // a read conflicts only with writes
  if (!f->access.write) near &= SIM_WRITTEN;
  const char *who = near || !m ? "the previous launch"
    : "an earlier launch, which the previous launch had not waited for when it "
      "let this launch start,";
  simreport_printf(t, "%s %s", who, (near ? near : how >> SIM_FAR) & SIM_WRITTEN
                   ? "writes" : "reads");
}

static void say_element(SimText *t, const SimProg *p, const SimFault *f) {
  simreport_printf(t, "%s %lld of ", unit(p, f->r.mem), (long long)f->r.offset);
  say_mem(t, p, f->r.mem);
}

// Appends the name of an mbarrier: "mbarrier 'full'[2]", or in PTX "mbarrier at
// byte 16 of shared memory".
static void say_one(SimText *t, const SimProg *p, int32_t mem, int64_t k) {
  if (p->fn->mem.p[mem].ptx) {
    simreport_printf(t, "mbarrier at byte %lld of ", (long long)k);
    say_mem(t, p, mem);
    return;
  }
  const char *name = ir_str(p->fn, p->fn->mem.p[mem].name);
  simreport_printf(t, "mbarrier ");
  if (*name) simreport_printf(t, "'%s'", name);
  simreport_printf(t, "[%lld]", (long long)k);
}

// Appends why the wait for an operation in flight did not suffice.
static void say_late(SimText *t, const SimProg *p, const SimFault *f) {
  if (f->r.lack == LACK_TURN) {
    simreport_printf(t, "it began before all threads had read the old data");
    return;
  }
  if (f->r.lack == LACK_AHEAD) {
    simreport_printf(t, "threads that are an iteration ahead started it");
    return;
  }
  if (f->r.lack == LACK_BARRIER) {
    simreport_printf(t, "no barrier after its wait");
    return;
  }
  if (f->r.lack == LACK_PENDING) {
    simreport_printf(t, "the preceding wait left %u group%s pending",
                     (unsigned)f->r.pending, f->r.pending == 1 ? "" : "s");
    return;
  }
  if (f->r.lack == LACK_ISSUER) {
    simreport_printf(t, "the waiting threads are not the copying threads");
    return;
  }
  if (f->r.lack == LACK_READ) {
    simreport_printf(t, "the wait covered only its reads");
    return;
  }
  if (f->r.lack == LACK_LANES) {
    simreport_printf(t, "other lanes waited for it");
    return;
  }
  if (f->r.lack == LACK_STAY) {
    simreport_printf(t, "the waits are all at ");
    say_one(t, p, f->late.mem, f->late.element);
    simreport_printf(t, ", and none is at ");
    say_one(t, p, f->late.mem, f->late.other);
    return;
  }
  if (f->r.lack == LACK_PARITY) simreport_printf(t, "the wait at ");
  else if (f->r.lack != LACK_BYTES) simreport_printf(t, "wait missing");
  if (f->r.lack == LACK_NONE) return;
  if (f->r.lack == LACK_WAIT || f->r.lack == LACK_STAGE)
    simreport_printf(t, ": ");
  say_one(t, p, f->late.mem, f->late.element);
  if (f->r.lack == LACK_STAGE) {
    simreport_printf(t, "; the last wait was at ");
    say_one(t, p, f->late.mem, f->late.other);
  }
  if (f->r.lack == LACK_PARITY)
    simreport_printf(t, " passed before the end of phase %u: wrong parity",
                     (unsigned)f->late.phase);
  if (f->r.lack == LACK_BYTES && f->late.open)
    simreport_printf(t, " expects %lld of %lld bytes in phase %u",
                     (long long)f->late.came, (long long)f->late.all,
                     (unsigned)f->late.phase);
  else if (f->r.lack == LACK_BYTES)
    simreport_printf(t, " ended phase %u with %lld of %lld bytes",
                     (unsigned)f->late.phase, (long long)f->late.came,
                     (long long)f->late.all);
}

static const char *verb(const SimFault *f) {
  return f->access.write ? "write" : "read";
}

static const char *const agent_names[] = {
  [AGENT_CPASYNC] = "a cp.async", [AGENT_SEND] = "an st.async",
  [AGENT_COPY] = "a bulk copy", [AGENT_WGMMA] = "wgmma"};

// Appends a tuple such as "(63,200)". extents: negative numbers are unknown and
// become `?`.
static void say_tuple(SimText *t, const int64_t *v, int n, bool extents) {
  for (int k = 0; k < n; k++) {
    simreport_printf(t, k ? "," : "(");
    if (extents && v[k] < 0) simreport_printf(t, "?");
    else simreport_printf(t, "%lld", (long long)v[k]);
  }
  simreport_printf(t, ")");
}

static void say_assumption(SimText *t, const SimFault *f) {
  long long v = (long long)f->assumed.value;
  if (f->assumed.slice)
    simreport_printf(t, "get_slice gets the negative thread index %lld", v);
  else if (f->assumed.value < f->assumed.lo || f->assumed.value > f->assumed.hi)
    simreport_printf(t, "a value that was assumed to lie in [%lld,%lld] is "
                     "%lld", (long long)f->assumed.lo,
                     (long long)f->assumed.hi, v);
  else
    simreport_printf(t, "a value that was assumed to be divisible by %lld is "
                     "%lld", (long long)f->assumed.div, v);
}

static void say_memory(SimText *t, const SimProg *p, const SimFault *f) {
  const SimMem *m =
    f->r.mem < 0 ? NULL : p->mem[p->fn->mem.p[f->r.mem].ref];
  int64_t n = m ? m->count : 0;
  switch ((int)f->r.kind) {
    case SIM_OOB:
      if (f->access.wild && f->access.which) {
        simreport_printf(t, "%s at address 0x%llx, which belongs to another "
                         "tensor than the pointer, 0x%llx", verb(f),
                         (unsigned long long)f->r.offset,
                         (unsigned long long)f->access.which);
        break;
      }
      if (f->access.wild) {
        simreport_printf(t, "%s at address 0x%llx, which belongs to no "
                         "argument and to no tensor whose address was taken",
                         verb(f),
                         (unsigned long long)f->r.offset);
        break;
      }
      simreport_printf(t, "%s outside ", verb(f));
      say_mem(t, p, f->r.mem);
      if (f->r.modes) {
        simreport_printf(t, ": coordinate ");
        say_tuple(t, f->r.coord, f->r.modes, false);
        simreport_printf(t, " of ");
        say_tuple(t, f->extent, f->r.modes, true);
        break;
      }
      if (f->access.ranks) {
        simreport_printf(t, ": block %d of a cluster of %d", f->access.rank,
                         f->access.ranks);
        break;
      }
      if (f->access.most) {
        simreport_printf(t, ": index %lld of %lld", (long long)f->access.which,
                         (long long)f->access.most);
        break;
      }
      simreport_printf(t, ": %s %lld", unit(p, f->r.mem),
                       (long long)f->r.offset);
      if (f->access.size > 1)
        simreport_printf(t, " to %lld",
                         (long long)(f->r.offset + f->access.size - 1));
      simreport_printf(t, " of %lld", (long long)n);
      break;
    case SIM_ALIGN:
      if (f->access.wild) {
        simreport_printf(t, "%s at address 0x%llx, which is not a multiple of "
                         "%lld bytes", verb(f),
                         (unsigned long long)f->r.offset,
                         (long long)f->access.size);
        break;
      }
      simreport_printf(t, "%s of %lld bytes not aligned to its width: ",
                       verb(f), (long long)f->access.size);
      say_element(t, p, f);
      break;
    case SIM_UNINIT:
      if (p->fn->mem.p[f->r.mem].ptx &&
          p->fn->mem.p[f->r.mem].space == SP_RMEM) {
        const char *name = ir_str(p->fn, p->fn->mem.p[f->r.mem].name);
        simreport_printf(t, "%s%s is used, but nothing wrote it", *name
                         ? "register " : "a register of a matrix instruction",
                         name);
        break;
      }
      simreport_printf(t, "read of uninitialised memory");
      if (f->r.lack == LACK_PARITY) {
        simreport_printf(t, " (");
        say_late(t, p, f);
        simreport_printf(t, ")");
      }
      simreport_printf(t, ": ");
      say_element(t, p, f);
      break;
    case SIM_UNWRITTEN:
      simreport_printf(t, "%lld of %lld %ss of ", (long long)f->left.none,
                       (long long)f->left.all, unit(p, f->r.mem));
      say_mem(t, p, f->r.mem);
      simreport_printf(t, ", an output, were not written: %s %lld",
                       unit(p, f->r.mem), (long long)f->r.offset);
      break;
    case SIM_DEPENDENT:
      simreport_printf(t, "%s of memory that ", verb(f));
      say_front(t, f, m);
      simreport_printf(t, ", with no griddepcontrol_wait() in between: ");
      say_element(t, p, f);
      break;
    case SIM_OVERFLOW:
      simreport_printf(t, "an index uses a product that overflows 32 bits: the "
                       "access reaches ");
      say_element(t, p, f);
      break;
    case SIM_INFLIGHT:
      simreport_printf(t, "read of %s memory while %s to it is in flight (",
                       ir_space_word(p->fn->mem.p[f->r.mem].space),
                       agent_names[f->access.agent]);
      if (f->access.open)
        simreport_printf(t, "it is in no group: commit missing");
      else
        say_late(t, p, f);
      simreport_printf(t, "): ");
      say_element(t, p, f);
      break;
    default: break;
  }
}

static void say_map(SimText *t, const SimProg *p, const SimFault *f) {
  static const char *const how[] = {
    [MAP_NONE] = "the memory holds no valid tensor map",
    [MAP_BEYOND] = "this tensor map describes more elements than its tensor "
                   "has",
    [MAP_UNRELEASED] = "this tensor map was changed but not released "
                       "afterwards",
    [MAP_UNACQUIRED] = "this tensor map was changed but not acquired "
                       "afterwards",
    [MAP_OTHER] = "the simulator models no tensor maps by im2col, with an "
                  "interleave or with an element stride of mode 0",
    [MAP_CHANGED] = "this tensor map is changed while a copy that uses it is "
                    "in flight"};
  simreport_printf(t, "%s", how[f->map.how]);
  if (f->map.drained)
    simreport_printf(t, ", and its mbarrier was not waited for (commit_group "
                     "and wait_group do not wait for bulk loads)");
  simreport_printf(t, ": ");
  say_element(t, p, f);
}

static void say_race(SimText *t, const SimProg *p, const SimFault *f) {
  static const char *const how[] = {
    [CLASH_WAW] = "write after a write", [CLASH_WAR] = "write after a read",
    [CLASH_RAW] = "read after a write"};
  // the agent's name; NULL: no agent is involved
  const char *agent = agent_names[f->race.agent];
  bool warps = f->r.kind == SIM_RACE;
  const char *one = *unit(p, f->r.mem) == 'b' ? "a byte" : "an element";
  if (f->r.src == f->r.src2 && f->race.how == CLASH_WAW && !f->race.agent &&
      !f->race.far)
    simreport_printf(t, "two %s write one %s with no %s in between: ",
                     warps ? "warps" : "lanes of a warp", unit(p, f->r.mem),
                     warps ? "barrier" : "__syncwarp");
  else if (f->race.flying && f->race.agent == AGENT_CPASYNC)
    simreport_printf(t, "%s by a cp.async that is in flight: ",
                     how[f->race.how]);
  else if (f->race.proxy && f->race.how == CLASH_WAR)
    simreport_printf(t, "write by %s after a thread's read, with no "
                     "fence_proxy(\"async\") in between: ", agent);
  else if (f->race.proxy)
    simreport_printf(t, "%s by %s after a thread's write, with no "
                     "fence_proxy(\"async\") and barrier in between: ",
                     f->race.how == CLASH_RAW ? "read" : "write", agent);
  else if (f->race.alone)
    simreport_printf(t, "write after a read by wgmma, ordered after one warp's "
                     "wait_group but not after that of warp %d: ",
                     f->race.alone - 1);
  else if (f->race.agent && (f->race.agent >= AGENT_COPY || !f->race.flying))
    simreport_printf(t, "%s by %s whose completion was not waited for: ",
                     how[f->race.how], agent);
  else if (f->race.how == CLASH_RAW && f->r.way && f->race.far)
    simreport_printf(t, "read of %s that a thread of another block "
                     "writes, with nothing that orders them at cluster "
                     "scope: ", one);
  else if (f->race.how == CLASH_RAW && f->r.way)
    simreport_printf(t, "read of %s that another %s %s: ", one,
                     warps ? "warp writes, with no barrier"
                           : "lane of the warp writes, with no __syncwarp",
                     f->r.way == WAY_LOOP || f->r.src == f->r.src2
                         ? "in between" : "between the two lines");
  else if (f->race.far)
    simreport_printf(t, "%s by a thread of another block with nothing "
                     "that orders them at cluster scope: ", how[f->race.how]);
  else
    simreport_printf(t, "%s by another %s in between: ", how[f->race.how],
                     warps ? "warp with no barrier"
                           : "lane of the warp with no __syncwarp");
  say_element(t, p, f);
  if (f->race.flying && f->race.agent == AGENT_SEND)
    simreport_printf(t, " (%s to it is in flight)", agent);
}

static void say_block_race(SimText *t, const SimProg *p, const SimFault *f) {
  static const char *const what[] = {"read", "write", "atomic read",
                                     "atomic write"};
  const int32_t *b = f->r.block, *o = f->blocks.cta;
  if (f->blocks.draws) {
    simreport_printf(t, "block (%d,%d,%d) takes a number from a counter that "
                     "block (%d,%d,%d) resets, with nothing to order the reset "
                     "after every take: ", (int)b[0], (int)b[1], (int)b[2],
                     (int)o[0], (int)o[1], (int)o[2]);
    say_element(t, p, f);
    return;
  }
  simreport_printf(t, "%s by block (%d,%d,%d) and %s by block (%d,%d,%d) with "
                   "nothing to order them: ", what[f->blocks.mine],
                   (int)b[0], (int)b[1], (int)b[2], what[f->blocks.other],
                   (int)o[0], (int)o[1], (int)o[2]);
  say_element(t, p, f);
}

static void say_barrier(SimText *t, const SimProg *p, const SimFault *f) {
  long long n = (long long)f->barrier.n, others = (long long)f->barrier.others;
  long long id = (long long)f->barrier.id;
  switch (f->barrier.how) {
    case BAR_ODD:
      if (n > p->nthread)
        simreport_printf(t, "a barrier for %lld threads in a block of %lld", n,
                         (long long)p->nthread);
      else
        simreport_printf(t, "a barrier for %lld threads, which is not a whole "
                         "number of warps of the block", n);
      break;
    case BAR_TWICE:
      simreport_printf(t, "the same warp arrives twice at barrier %lld before "
                       "the barrier completes", id);
      break;
    case BAR_LEFT:
      simreport_printf(t, "the block exits with %lld of %lld threads arrived "
                       "at barrier %lld, where no thread waits for them",
                       n, others,
                       id);
      break;
    case BAR_EARLY:
      simreport_printf(t, "nothing orders this arrival at barrier %lld after "
                       "the barrier's previous phase: that phase may count it "
                       "instead of another arrival", id);
      break;
    case BAR_TWICE_CLUSTER:
      simreport_printf(t, "a thread arrives twice at the cluster's barrier "
                       "with no cluster_wait in between");
      break;
    case BAR_UNCAME_CLUSTER:
      simreport_printf(t, "a thread waits at the cluster's barrier without "
                       "having arrived");
      break;
    case BAR_RANGE:
      simreport_printf(t, "barrier %lld does not exist: a block has barriers 0 "
                       "to %d", id, MAX_BARS - 1);
      break;
    case BAR_LANES:
      simreport_printf(t, "lanes of a warp are at barriers %lld and %lld", id,
                       n);
      break;
    case BAR_LANES_COUNT:
      simreport_printf(t, "lanes of a warp name different thread counts for a "
                       "barrier: %lld and %lld", others, n);
      break;
    case BAR_DIFFERS:
      simreport_printf(t, "a barrier for %lld threads that other warps use for "
                       "%lld", n, others);
      if (id == 0)
        simreport_printf(t, " (barrier 0 is the barrier of sync_threads)");
      break;
  }
}

static void say_team(SimText *t, const SimFault *f) {
  int first = f->team.warp & ~3;
  switch (f->team.how) {
    case TEAM_LANES:
      simreport_printf(t, "lanes of a warp name different operands of a "
                       "warpgroup's MMA: descriptors and ACCUMULATE must be "
                       "the same for all 128 threads");
      break;
    case TEAM_DIFFERS:
      simreport_printf(t, "warp %d issues a different MMA than the rest of its "
                       "warpgroup (warps %d to %d), or uses different "
                       "descriptors or ACCUMULATE",
                       f->team.warp, first, first + 3);
      break;
    case TEAM_SHORT:
      simreport_printf(t, "warp %d issues a warpgroup's MMA in a block of %d "
                       "warps, but warps %d to %d must issue it together",
                       f->team.warp,
                       f->team.warps, first, first + 3);
      break;
    case TEAM_LACKS:
      simreport_printf(t, "warp %d exited without issuing the MMA that other "
                       "warps of its warpgroup (warps %d to %d) issued",
                       f->team.warp,
                       first, first + 3);
      break;
  }
}

static void say_allotment(SimText *t, const SimFault *f) {
  int first = f->registers.warp & ~3, had = f->registers.had;
  int n = f->registers.wanted, u = f->registers.other;
  switch (f->registers.how) {
    case ALLOT_COUNT:
      simreport_printf(t, "setmaxnreg.%s cannot change %d registers a thread "
                       "to %d",
                       had < n ? "dec" : "inc", had, n);
      break;
    case ALLOT_DIFFERS:
      simreport_printf(t, "warp %d executes setmaxnreg for %d registers and "
                       "warp %d another one, for %d: all warps of a warpgroup "
                       "(%d to %d) must execute the same one",
                       f->registers.warp, n, u,
                       f->registers.theirs, first, first + 3);
      break;
    case ALLOT_APART:
      simreport_printf(t, "warp %d executes its next setmaxnreg with nothing "
                       "that orders it after warp %d's previous one: warps of "
                       "a warpgroup (%d to %d) must synchronize in between",
                       f->registers.warp, u,
                       first, first + 3);
      break;
    case ALLOT_LACKS:
      simreport_printf(t, "warp %d exited without executing the setmaxnreg for "
                       "%d registers that warp %d executed: all warps of a "
                       "warpgroup (%d to %d) must execute it",
                       f->registers.warp, n, u,
                       first, first + 3);
      break;
  }
}

static void say_metadata(SimText *t, const SimFault *f) {
  int four = f->metadata.four;
  simreport_printf(t, "the metadata of a sparse A has 0x%x for a group of %d "
                   "elements, ", four, f->metadata.group);
  if (f->metadata.group == 2)
    simreport_printf(t, "but only 0x4 (the first element is kept) and 0xe (the "
                     "second) are valid");
  else
    simreport_printf(t, "which selects element %d twice: it must select two "
                     "different elements of four", four & 3);
}

static void say_flight(SimText *t, const SimProg *p) {
  static const char *const how[] = {
    [FLIGHT_READ] = "used", [FLIGHT_WRITE] = "written",
    [FLIGHT_SHAPE] = "accumulated into by an MMA of another shape"};
  const Flight *f = &p->fn->flight;
  if (f->kind == FLIGHT_FENCE)
    simreport_printf(t, "no wgmma.fence is between this MMA and %s",
                     f->other ? "an earlier use of its registers"
                              : "the beginning");
  else
    simreport_printf(t, "a register of an MMA is %s while the MMA is still in "
                     "flight", how[f->kind]);
}

static void say_order(SimText *t, const SimProg *p, const SimFault *f) {
  switch ((int)f->r.kind) {
    case SIM_DIVERGENT:
      if (f->lanes.mask)
        simreport_printf(t, "lanes 0x%08x execute an operation whose mask "
                         "names lanes 0x%08x", f->lanes.here, f->lanes.named);
      else if (f->lanes.named & ~f->lanes.there)
        simreport_printf(t, "an operation needs %d threads, but its warp has "
                         "%d",
                         __builtin_popcount(f->lanes.named),
                         __builtin_popcount(f->lanes.there));
      else
        simreport_printf(t, "only %d of the warp's %d threads reach an "
                         "operation that all of them must execute together",
                         __builtin_popcount(f->lanes.here),
                         __builtin_popcount(f->lanes.named));
      if (f->lanes.gone)
        simreport_printf(t, "; %d ha%s returned",
                         __builtin_popcount(f->lanes.gone),
                         __builtin_popcount(f->lanes.gone) == 1 ? "s" : "ve");
      break;
    case SIM_BARRIER: say_barrier(t, p, f); break;
    case SIM_METADATA: say_metadata(t, f); break;
    case SIM_WARPGROUP: say_team(t, f); break;
    case SIM_FLIGHT: say_flight(t, p); break;
    case SIM_REGISTERS: say_allotment(t, f); break;
    case SIM_RUNAWAY:
      simreport_printf(t, f->runaway.quiet
                       ? "a loop makes no progress: %lld instructions since "
                         "any memory changed"
                       : "a warp executed %lld instructions without finishing",
                         (long long)f->runaway.executed);
      break;
    case SIM_SHUFFLE:
      simreport_printf(t, "shuffle reads lane %d, which does not take part in "
                       "it",
                       f->lane);
      break;
    case SIM_LAYOUT: simreport_printf(t, "%s", f->layout); break;
    case SIM_TRAP:
      if (f->assumed.wrong) {
        say_assumption(t, f);
        break;
      }
      simreport_printf(t, "assertion failed");
      if (f->text) simreport_printf(t, ": %s", ir_str(p->fn, f->text));
      break;
    case SIM_DIVZERO:
      simreport_printf(t, "the result of an integer division by zero is used");
      break;
    case SIM_SIGNED:
      simreport_printf(t, "a result that overflows 32 bits is compared, "
                       "divided or shifted: compilers assume that signed "
                       "integers do not overflow");
      break;
    default: break;
  }
}

// Appends a number with its noun: "2 bytes", "1 arrival".
static void say_count(SimText *t, int64_t n, const char *what) {
  simreport_printf(t, "%lld %s%s", (long long)n, what, n == 1 ? "" : "s");
}

static void say_mbarrier(SimText *t, const SimProg *p, const SimFault *f) {
  say_one(t, p, f->r.mem, f->r.offset);
}

static void say_wrong(SimText *t, const SimProg *p, const SimFault *f) {
  long long n = (long long)f->mbar.n;
  say_mbarrier(t, p, f);
  switch (f->mbar.how) {
    case MBAR_NONE:
      simreport_printf(t, " is used, but was never initialized with "
                       "mbarrier_init");
      break;
    case MBAR_UNORDERED:
      simreport_printf(t, " is used with nothing that orders its mbarrier_init "
                       "before the use");
      break;
    case MBAR_UNFENCED:
      simreport_printf(t, " is passed to a bulk copy with no "
                       "mbarrier_init_fence() after its mbarrier_init");
      break;
    case MBAR_TWICE:
      simreport_printf(t, " is initialized a second time, for ");
      say_count(t, n, "arrival");
      simreport_printf(t, ", with no mbarrier_inval between");
      break;
    case MBAR_COUNT:
      simreport_printf(t, " is initialized for %lld arrivals; the count must "
                       "be 1 to %d", n,
                       (1 << 20) - 1);
      break;
    case MBAR_MANY:
      simreport_printf(t, " exceeds the simulator's limit of %lld mbarriers a "
                       "cluster", n);
      break;
    case MBAR_OVER:
      simreport_printf(t, " counts ");
      say_count(t, n, "arrival");
      simreport_printf(t, " a phase; ");
      say_count(t, f->mbar.came, "arrival");
      simreport_printf(t, " come%s when %lld %s missing",
                       f->mbar.came == 1 ? "s" : " at once",
                       (long long)f->mbar.missing,
                       f->mbar.missing == 1 ? "is" : "are");
      if (!f->mbar.missing && f->mbar.bytes) {
        simreport_printf(t, " (but ");
        say_count(t, f->mbar.bytes, "byte");
        simreport_printf(t, f->mbar.bytes == 1 ? " is)" : " are)");
      }
      break;
    case MBAR_GONE:
      simreport_printf(t, " is used after its mbarrier_inval");
      break;
    case MBAR_BUSY:
      simreport_printf(t, " is invalidated while threads wait for it or bytes "
                       "are in flight");
      break;
    case MBAR_DATA:
      simreport_printf(t, " is in use in the memory where this %s data",
                       n ? "stores" : "reads");
      break;
    case MBAR_STILL:
      simreport_printf(t, " is invalidated with nothing that orders an earlier "
                       "use before the mbarrier_inval");
      break;
    case MBAR_AGAIN:
      simreport_printf(t, " is initialized again with nothing that orders its "
                       "mbarrier_inval before that");
      break;
    case MBAR_EARLY:
      simreport_printf(t, " counts ");
      say_count(t, n, "arrival");
      simreport_printf(t, " a phase; nothing orders this one after the end of "
                       "phase %lld: that phase may count it instead of another "
                       "arrival", (long long)f->mbar.came);
      break;
    case MBAR_TOKEN:
      simreport_printf(t, " is asked for phase %lld by a token while phase "
                       "%lld is current: a token is valid in the phase of its "
                       "arrival and in the next one", n,
                       (long long)f->mbar.came);
      break;
    case MBAR_MISSED:
      simreport_printf(t, ": nothing orders this wait for the end of phase "
                       "%lld before the end of phase %lld; after that it would "
                       "wait for phase %lld, which never ends", n, n + 1,
                       n + 2);
      break;
    case MBAR_FOREIGN:
      simreport_printf(t, " is waited on with a token that none of its "
                       "arrivals returned: a token is valid only for its own "
                       "mbarrier");
      break;
    case MBAR_LEFT:
      simreport_printf(t, " ends in phase %lld, which still lacks %lld of ", n,
                       (long long)f->mbar.missing);
      say_count(t, f->mbar.came, "arrival");
      simreport_printf(t, ": its phases get fewer or more arrivals than it "
                       "counts");
      break;
    case MBAR_BYTES:
      simreport_printf(t, " expects %lld bytes; the maximum is %d",
                       (long long)f->mbar.bytes, (1 << 20) - 1);
      break;
  }
}

static void say_gone(SimText *t, const SimFault *f) {
  const int32_t *b = f->gone.cta;
  if (f->gone.landed)
    simreport_printf(t, "block (%d,%d,%d) may exit before a copy to or from "
                     "its shared memory completes: none of its threads waits "
                     "for the copy", (int)b[0], (int)b[1], (int)b[2]);
  else
    simreport_printf(t, "access to shared memory of block (%d,%d,%d), which "
                     "may have exited: none of its threads waits for this "
                     "access", (int)b[0],
                     (int)b[1], (int)b[2]);
}

static void say_unstarted(SimText *t, const SimProg *p, const SimFault *f) {
  const int32_t *b = f->gone.cta;
  say_element(t, p, f);
  simreport_printf(t, " of block (%d,%d,%d), which may not have started: no "
                   "cluster barrier comes before this access", (int)b[0],
                   (int)b[1], (int)b[2]);
}

// Appends the element that a warp polls, its value, and its last writer.
static void say_flag(SimText *t, const SimProg *p, const SimFault *f) {
  const int32_t *b = f->spin.cta;
  DType type = f->spin.type;
  say_element(t, p, f);
  simreport_printf(t, ", which is ");
  if (dtype_is_float(type))
    simreport_printf(t, "%g", dtype_to_double(type, f->spin.value));
  else
    simreport_printf(t, "%lld", (long long)dtype_int(type, f->spin.value));
  if (f->spin.written)
    simreport_printf(t, " and was last written by block (%d,%d,%d)", (int)b[0],
                     (int)b[1], (int)b[2]);
  else
    simreport_printf(t, " and was never written");
  if (f->deadlock.needed)
    simreport_printf(t, "; %lld blocks cannot start before others exit: all "
                     "SMs are full", (long long)f->deadlock.needed);
}

static void say_stuck(SimText *t, const SimProg *p, const SimFault *f) {
  long long phase = (long long)f->deadlock.barrier;
  switch (f->deadlock.how) {
    case STUCK_BARRIER:
      simreport_printf(t, "barrier %lld, where %lld threads arrived and %lld "
                       "are needed", phase, (long long)f->deadlock.came,
                       (long long)f->deadlock.needed);
      break;
    case STUCK_MBAR:
      say_mbarrier(t, p, f);
      simreport_printf(t, " for the end of phase %lld (parity %lld), which "
                       "lacks ", phase, phase & 1);
      if (f->deadlock.came || !f->deadlock.bytes)
        simreport_printf(t, "%lld of ", (long long)f->deadlock.came);
      if (f->deadlock.came || !f->deadlock.bytes)
        say_count(t, f->deadlock.needed, "arrival");
      if (f->deadlock.bytes > 0) {
        if (f->deadlock.came) simreport_printf(t, " and ");
        say_count(t, f->deadlock.bytes, "byte");
      } else if (f->deadlock.bytes < 0) {
        if (f->deadlock.came) simreport_printf(t, "; ");
        else simreport_printf(t, "nothing; ");
        say_count(t, -f->deadlock.bytes, "byte");
        simreport_printf(t, " arrived that no expect_tx announced");
      }
      if (f->deadlock.needed > p->nthread * p->ncta)
        simreport_printf(t, " (there are %d threads; mbarrier_init counts "
                         "arrivals, expect_tx bytes)", p->nthread * p->ncta);
      break;
    case STUCK_CLUSTER:
      simreport_printf(t, "the cluster barrier, where %lld of %lld threads did "
                       "not arrive", (long long)f->deadlock.came,
                       (long long)f->deadlock.needed);
      break;
    case STUCK_REGISTERS:
      simreport_printf(t, "setmaxnreg for %lld registers a thread: these "
                       "threads have %lld, and other warps released %lld a "
                       "thread",
                       (long long)f->deadlock.needed,
                       (long long)f->deadlock.bytes,
                       (long long)f->deadlock.came);
      break;
    case STUCK_FLAG: say_flag(t, p, f); break;
    case STUCK_TEAM:
      simreport_printf(t, "an MMA of their warpgroup that warp %lld has not "
                       "issued", (long long)f->deadlock.came);
      break;
  }
}

static void say_deadlock(SimText *t, const SimProg *p, const SimFault *f) {
  uint32_t waiting = f->deadlock.waiting, ended = f->deadlock.ended;
  simreport_printf(t, "no warp can go on: %d warp%s wait%s",
                   __builtin_popcount(waiting),
                   __builtin_popcount(waiting) == 1 ? "" : "s",
                   __builtin_popcount(waiting) == 1 ? "s" : "");
  simreport_printf(t, " (");
  bool first = true;
  for (int w = 0; w < MAX_WARPS; w++) {
    if (!(waiting >> w & 1)) continue;
    simreport_printf(t, "%s%d", first ? "warp " : ", ", w);
    first = false;
  }
  simreport_printf(t, ") at ");
  say_stuck(t, p, f);
  if (ended)
    simreport_printf(t, "; %d warp%s exited without arriving",
                     __builtin_popcount(ended),
                     __builtin_popcount(ended) == 1 ? "" : "s");
}

void simreport_amounts(SimFault *f) {
  SimReport *r = &f->r;
  r->mbar = -1;
  if (r->lack == LACK_BYTES && r->kind != SIM_DEADLOCK) {
    r->mbar = f->late.mem;
    r->bytes = f->late.all - f->late.came;
  } else if (r->kind == SIM_DEADLOCK && f->deadlock.how == STUCK_MBAR) {
    r->mbar = r->mem;
    r->arrivals = -f->deadlock.came;
    r->bytes = -f->deadlock.bytes;
  } else if (r->kind == SIM_MBARRIER && f->mbar.how == MBAR_OVER) {
    r->mbar = r->mem;
    r->arrivals = f->mbar.came - f->mbar.missing;
  }
}

char *simreport_text(const SimProg *p, const SimFault *f) {
  SimText t = {0};
  switch (f->r.kind) {
    case SIM_OOB: case SIM_ALIGN: case SIM_UNINIT: case SIM_INFLIGHT:
    case SIM_DEPENDENT: case SIM_OVERFLOW: case SIM_UNWRITTEN:
      say_memory(&t, p, f);
      break;
    case SIM_RACE: case SIM_WARPRACE: say_race(&t, p, f); break;
    case SIM_BLOCKRACE: say_block_race(&t, p, f); break;
    case SIM_TENSORMAP: say_map(&t, p, f); break;
    case SIM_DEADLOCK: say_deadlock(&t, p, f); break;
    case SIM_MBARRIER: say_wrong(&t, p, f); break;
    case SIM_EXIT: say_gone(&t, f); break;
    case SIM_START: say_unstarted(&t, p, f); break;
    case SIM_DIVERGENT: case SIM_REGISTERS: case SIM_WARPGROUP:
    case SIM_BARRIER: case SIM_METADATA: case SIM_FLIGHT:
    case SIM_RUNAWAY: case SIM_SHUFFLE:
    case SIM_LAYOUT: case SIM_TRAP: case SIM_DIVZERO: case SIM_SIGNED:
    case SIM_KIND_COUNT:
      say_order(&t, p, f);
      break;
  }
  return t.p;
}

// ---- names of memory instructions ----

const char *simreport_op(const SimProg *p, const Ins *i, int32_t *smem,
                         int32_t *gmem, bool *out) {
  const Fn *fn = p->fn;
  Ref m[2] = {0, 0};  // memory objects of destination and source
  *smem = *gmem = -1;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if ((o.kind == OPERAND_MEM || o.kind == OPERAND_RUN ||
         o.kind == OPERAND_MAP) && !m[!o.written])
      m[!o.written] = o.ref;
  for (int k = 0; k < 2; k++) {
    if (!m[k]) continue;
    int32_t at = (int32_t)fn->ins.p[m[k]].imm;
    Space space = fn->mem.p[at].space;
    if (space == SP_SMEM || space == SP_DSMEM) *smem = at;
    if (space == SP_GMEM || space == SP_TMAP) *gmem = at;
  }
  Space to = m[0] ? ir_memof(fn, m[0])->space : SP_RMEM;
  *out = *smem >= 0 && (to == SP_GMEM || to == SP_TMAP);
  if (i->op >= OP_TMALOAD && i->op <= OP_BULKSEND) return op_name((Op)i->op);
  if (i->op == OP_CPASYNC) return op_name(OP_CPASYNC);
  if (i->op == OP_MATRIX)
    return ir_memof(fn, m[0])->space == SP_SMEM ? "stmatrix" : "ldmatrix";
  if (i->op == OP_ATOMIC)
    return *smem >= 0 ? "atomic.shared" : "atomic.global";
  if (*smem >= 0 && *gmem >= 0) return "copy";
  bool store = m[0] && ir_memof(fn, m[0])->space != SP_RMEM;
  if (*smem >= 0) return store ? "st.shared" : "ld.shared";
  return store ? "st.global" : "ld.global";
}
// SPDX-License-Identifier: MIT
