// Lists the facts of a fault: named values, from which lua/cute/lang/kinds.lua
// forms the sentence of a report.
#include "faults/facts.h"

#include <stddef.h>
#include <string.h>

const char *facts_kind_name(SimKind k) {
  static const char *const names[] = {
#define SK(id, name) name,
    SIM_KINDS(SK)
#undef SK
  };
  return k < SIM_KIND_COUNT ? names[k] : "unknown";
}

const char *facts_lack_name(SimLack k) {
  static const char *const names[] = {
#define SL(id, name) name,
    SIM_LACKS(SL)
#undef SL
  };
  return k < SIM_LACK_COUNT ? names[k] : "";
}

// ---- fields ----

typedef enum FieldType {
  AS_FLAG, AS_INT, AS_WORD, AS_LONG, AS_BLOCK, AS_NAME
} FieldType;

// A field of SimFault that is a fact in reports of certain kinds. `kinds` is
// the bit mask of these SimKinds. For AS_NAME, `names` has a name for each
// value of the field.
typedef struct Field {
  uint32_t kinds;
  const char *name;
  FieldType type;
  size_t at;
  const char *const *names;
} Field;

_Static_assert(SIM_KIND_COUNT <= 32, "a set of kinds has 32 bits");
#define K(kind) (1u << SIM_##kind)
#define TYPE_OF(member) \
  _Generic(((SimFault *)0)->member, bool: AS_FLAG, int: AS_INT, \
           uint32_t: AS_WORD, int64_t: AS_LONG, uint64_t: AS_LONG, \
           int32_t *: AS_BLOCK)
#define FACT(kinds, name, member) \
  {kinds, name, TYPE_OF(member), offsetof(SimFault, member), NULL}
#define NAME(id, name, ...) name,
#define NAMED(kinds, name, member, list) \
  {kinds, name, AS_NAME, offsetof(SimFault, member), \
   (const char *const[]){list(NAME)}}
// names of the access classes of cta_race.c
#define PLANES(X) \
  X(0, "read") X(1, "write") X(2, "atomic read") X(3, "atomic write")
#define RACES (K(RACE) | K(WARPRACE))
#define FOUND (K(INFLIGHT) | K(UNINIT))
// the values of r.lack with which SimFault.late describes an mbarrier
#define LATE (1u << LACK_WAIT | 1u << LACK_STAGE | 1u << LACK_STAY | \
              1u << LACK_PARITY | 1u << LACK_BYTES)

static const Field fields[] = {
  FACT(K(OOB) | K(ALIGN) | K(DEPENDENT), "write", access.write),
  FACT(K(OOB) | K(ALIGN), "wild", access.wild),
  FACT(K(OOB) | K(ALIGN), "box", access.box),
  FACT(K(OOB) | K(ALIGN), "size", access.size),
  FACT(K(OOB), "which", access.which), FACT(K(OOB), "most", access.most),
  FACT(K(OOB), "rank", access.rank), FACT(K(OOB), "ranks", access.ranks),
  NAMED(K(INFLIGHT), "agent", access.agent, AGENTS),
  FACT(K(INFLIGHT), "open", access.open),
  FACT(K(INFLIGHT), "pending", r.pending),
  FACT(FOUND, "late_element", late.element),
  FACT(FOUND, "late_other", late.other), FACT(FOUND, "late_came", late.came),
  FACT(FOUND, "late_all", late.all), FACT(FOUND, "late_phase", late.phase),
  FACT(FOUND, "late_open", late.open),
  NAMED(RACES, "how", race.how, SIM_CLASHES),
  NAMED(RACES, "agent", race.agent, AGENTS),
  FACT(RACES, "flying", race.flying), FACT(RACES, "proxy", race.proxy),
  FACT(RACES, "ordered", race.ordered), FACT(RACES, "fenced", race.fenced),
  FACT(RACES, "far", race.far), FACT(RACES, "alone", race.alone),
  NAMED(K(BLOCKRACE), "mine", blocks.mine, PLANES),
  NAMED(K(BLOCKRACE), "its", blocks.other, PLANES),
  FACT(K(BLOCKRACE), "cta", blocks.cta),
  FACT(K(BLOCKRACE), "draws", blocks.draws),
  FACT(K(DIVERGENT), "here", lanes.here),
  FACT(K(DIVERGENT), "named", lanes.named),
  FACT(K(DIVERGENT), "gone", lanes.gone),
  FACT(K(DIVERGENT), "there", lanes.there),
  FACT(K(DIVERGENT), "mask", lanes.mask),
  NAMED(K(BARRIER), "how", barrier.how, SIM_MISUSES),
  FACT(K(BARRIER), "id", barrier.id), FACT(K(BARRIER), "n", barrier.n),
  FACT(K(BARRIER), "others", barrier.others),
  NAMED(K(DEADLOCK), "how", deadlock.how, SIM_STUCKS),
  FACT(K(DEADLOCK), "waiting", deadlock.waiting),
  FACT(K(DEADLOCK), "ended", deadlock.ended),
  FACT(K(DEADLOCK), "lanes", deadlock.lanes),
  FACT(K(DEADLOCK), "barrier", deadlock.barrier),
  FACT(K(DEADLOCK), "came", deadlock.came),
  FACT(K(DEADLOCK), "needed", deadlock.needed),
  FACT(K(DEADLOCK), "bytes", deadlock.bytes),
  FACT(K(DEADLOCK), "twin", deadlock.twin),
  FACT(K(DEADLOCK), "mmas", deadlock.mmas),
  FACT(K(DEADLOCK), "written", spin.written),
  FACT(K(DEADLOCK), "cta", spin.cta),
  NAMED(K(MBARRIER), "how", mbar.how, SIM_WRONGS),
  FACT(K(MBARRIER), "n", mbar.n), FACT(K(MBARRIER), "bytes", mbar.bytes),
  FACT(K(MBARRIER), "came", mbar.came), FACT(K(MBARRIER), "far", mbar.far),
  FACT(K(MBARRIER), "missing", mbar.missing),
  FACT(K(EXIT) | K(START), "cta", gone.cta),
  FACT(K(EXIT), "landed", gone.landed), FACT(K(EXIT), "commit", gone.commit),
  NAMED(K(TENSORMAP), "how", map.how, SIM_MAP_WRONGS),
  FACT(K(TENSORMAP), "drained", map.drained),
  NAMED(K(REGISTERS), "how", registers.how, SIM_ALLOTMENTS),
  FACT(K(REGISTERS), "had", registers.had),
  FACT(K(REGISTERS), "wanted", registers.wanted),
  FACT(K(REGISTERS), "warp", registers.warp),
  FACT(K(REGISTERS), "other", registers.other),
  FACT(K(REGISTERS), "theirs", registers.theirs),
  NAMED(K(WARPGROUP), "how", team.how, SIM_TEAMWORKS),
  FACT(K(WARPGROUP), "warp", team.warp),
  FACT(K(WARPGROUP), "warps", team.warps),
  NAMED(K(TENSOR), "how", tensor.how, SIM_TENSOR_WRONGS),
  NAMED(K(TENSOR), "clash_of", tensor.clash, SIM_CLASHES),
  NAMED(K(TENSOR), "lacks", tensor.lacks, SIM_TENSOR_LACKS),
  FACT(K(TENSOR), "warp", tensor.warp), FACT(K(TENSOR), "other", tensor.other),
  FACT(K(TENSOR), "n", tensor.n), FACT(K(TENSOR), "most", tensor.most),
  FACT(K(TENSOR), "column", tensor.column),
  FACT(K(TENSOR), "peer", tensor.peer), FACT(K(TENSOR), "ready", tensor.ready),
  FACT(K(TENSOR), "strays", tensor.strays),
  FACT(K(TENSOR), "stage", tensor.stage),
  FACT(K(TENSOR), "mma_stage", tensor.mma_stage),
  FACT(K(UNWRITTEN), "none", left.none), FACT(K(UNWRITTEN), "all", left.all),
  FACT(K(METADATA), "four", metadata.four),
  FACT(K(METADATA), "group", metadata.group),
  FACT(K(RUNAWAY), "executed", runaway.executed),
  FACT(K(RUNAWAY), "quiet", runaway.quiet),
  FACT(K(SHUFFLE), "lane", lane),
  FACT(K(TRAP), "assumed", assumed.wrong),
  FACT(K(TRAP), "slice", assumed.slice), FACT(K(TRAP), "value", assumed.value),
  FACT(K(TRAP), "lo", assumed.lo), FACT(K(TRAP), "hi", assumed.hi),
  FACT(K(TRAP), "div", assumed.div)};
enum {
  FIELDS = sizeof fields / sizeof *fields,
  MOST_FACTS = 32          // larger than the number of facts of any report
};

// The facts of a report that is being built.
typedef struct Facts { SimFact *p; int n; } Facts;

static SimFact *add(Facts *t, const char *name, SimFactType type, int64_t v) {
  SimFact *f = &t->p[t->n++];
  *f = (SimFact){.name = name, .type = type, .v = {v}};
  return f;
}

static void add_text(Facts *t, const char *name, const char *text) {
  if (*text) add(t, name, FACT_TEXT, 0)->text = text;
}

static void add_field(Facts *t, const Field *d, const SimFault *f) {
  const void *at = (const char *)f + d->at;
  const int32_t *i = at;
  switch (d->type) {
    case AS_FLAG: if (*(const bool *)at) add(t, d->name, FACT_FLAG, 1); break;
    case AS_INT: add(t, d->name, FACT_NUMBER, *i); break;
    case AS_WORD: add(t, d->name, FACT_NUMBER, *(const uint32_t *)at); break;
    case AS_LONG: add(t, d->name, FACT_NUMBER, *(const int64_t *)at); break;
    case AS_BLOCK: {
      SimFact *x = add(t, d->name, FACT_LIST, 0);
      for (x->n = 0; x->n < 3; x->n++) x->v[x->n] = i[x->n];
      break;
    }
    case AS_NAME: add_text(t, d->name, d->names[*i]); break;
  }
}

// Adds the facts that no single field of SimFault contains.
static void add_others(Facts *t, const SimProg *p, const SimFault *f) {
  static const char *const flights[] = {
    [FLIGHT_NONE] = "", [FLIGHT_READ] = "read", [FLIGHT_WRITE] = "write",
    [FLIGHT_SHAPE] = "shape", [FLIGHT_LOAD] = "load",
    [FLIGHT_FENCE] = "fence"};
  const SimReport *r = &f->r;
  const Fn *fn = p->fn;
  const SimMem *m = r->mem < 0 ? NULL : p->mem[fn->mem.p[r->mem].ref];
  if (r->mem >= 0) add(t, "memory", FACT_MEM, r->mem);
  if (m && r->kind == SIM_OOB) add(t, "count", FACT_NUMBER, m->count);
  if (m && r->kind == SIM_DEPENDENT) add(t, "before", FACT_NUMBER, m->before);
  if (r->kind == SIM_OOB && r->modes) {
    SimFact *x = add(t, "extent", FACT_LIST, 0);
    x->n = r->modes;
    memcpy(x->v, f->extent, (size_t)r->modes * sizeof *x->v);
  }
  if (FOUND >> r->kind & 1 && LATE >> r->lack & 1)
    add(t, "late", FACT_MEM, f->late.mem);
  if (r->kind == SIM_BARRIER) add(t, "threads", FACT_NUMBER, p->nthread);
  if (r->kind == SIM_DEADLOCK)
    add(t, "threads", FACT_NUMBER, p->nthread * p->ncta);
  if (r->kind == SIM_DEADLOCK && f->deadlock.how == STUCK_FLAG) {
    DType type = f->spin.type;
    SimFact *x = add(t, "value", FACT_REAL, 0);
    if (dtype_is_float(type)) x->real = dtype_to_double(type, f->spin.value);
    else x->type = FACT_NUMBER, x->v[0] = dtype_int(type, f->spin.value);
  }
  if (r->kind == SIM_TENSOR && f->tensor.op) add_text(t, "op", f->tensor.op);
  if (r->kind == SIM_FLIGHT) {
    add_text(t, "how", flights[fn->flight.kind]);
    if (fn->flight.other) add(t, "used", FACT_FLAG, 1);
  }
  if (r->kind == SIM_TRAP && !f->assumed.wrong)
    add_text(t, "said", ir_str(fn, f->text));
}

SimFact *facts_of(const SimProg *p, const SimFault *f, int *n) {
  size_t size = MOST_FACTS * sizeof(SimFact) + sizeof f->layout;
  Facts t = {base_realloc(NULL, size), 0};
  if (!t.p) return NULL;
  for (int k = 0; k < FIELDS; k++)
    if (fields[k].kinds >> f->r.kind & 1) add_field(&t, &fields[k], f);
  add_others(&t, p, f);
  if (f->r.kind == SIM_LAYOUT) {
    char *text = (char *)(t.p + MOST_FACTS);
    memcpy(text, f->layout, sizeof f->layout);
    add_text(&t, "why", text);
  }
  *n = t.n;
  return t.p;
}

void facts_amounts(SimFault *f) {
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
// SPDX-License-Identifier: MIT
