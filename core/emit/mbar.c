// mbarriers: what they do as calls of small functions. Those for which one
// form is enough are blocks of prelude.cu; those that arrive, or say what
// bytes to expect, are written here: for this CTA's barrier or that of another
// CTA of the cluster, with what order.
#include "emit/expr.h"

#include <string.h>

struct MbarCall {
  Op op;
  unsigned flags;
  bool many, far;  // operands: another count than 1; a CTA's rank
};

bool mbar_is(const Ins *i) {
  return i->op >= OP_MBARINIT && i->op <= OP_MBARCPASYNC;
}

// ---- forms ----

static bool arrives_once(const Emit *e, const Ins *i) {
  int64_t n;
  return i->op == OP_MBARARRIVE && ir_const(e->fn, i->a[2], &n) && n == 1;
}

static struct MbarCall form_of(const Emit *e, const Ins *i) {
  return (struct MbarCall){(Op)i->op, i->flags, !arrives_once(e, i),
                           operands_ref(e->fn, i, 3) != 0};
}

// What stands in the prelude; H_COUNT: it is written here.
static Helper block_of(const struct MbarCall *m) {
  if (m->op == OP_MBARINIT) return H_MBAR_INIT;
  if (m->op == OP_MBARWAIT) return H_MBAR_WAIT;
  if (m->op == OP_MBARTRY)
    return m->flags & MBF_TEST ? H_MBAR_TEST_WAIT : H_MBAR_TRY_WAIT;
  if (m->op == OP_MBARCPASYNC)
    return m->flags & MBF_NOINC ? H_MBAR_CP_ASYNC_NOINC : H_MBAR_CP_ASYNC;
  return H_COUNT;
}

// ".relaxed.cluster"; "" where nothing was asked for.
static const char *order_of(Emit *e, const struct MbarCall *m) {
  const char *sem = hint_text(m->flags, HINT_SEM);
  const char *scope = hint_text(m->flags, HINT_SCOPE);
  bool arrives = m->op == OP_MBARARRIVE || m->flags & MBF_ARRIVE;
  if (!*sem && !*scope) return "";
  if (!*sem) sem = arrives ? ".release" : ".relaxed";
  if (!*scope) scope = m->far ? ".cluster" : ".cta";
  return arena_printf(e->cx, &e->cx->scratch, "%s%s", sem, scope);
}

static const char *name_of(Emit *e, const struct MbarCall *m) {
  const char *what = m->op == OP_MBARARRIVE ? "arrive"
                     : m->flags & MBF_ARRIVE ? "arrive_expect_tx"
                                             : "expect_tx";
  char *s = arena_printf(e->cx, &e->cx->scratch, "mbar_%s%s%s", what,
                         order_of(e, m), m->far ? "_remote" : "");
  for (char *p = s; *p; p++)
    if (*p == '.') *p = '_';
  return s;
}

// ---- the functions ----

static bool same_form(const struct MbarCall *a, const struct MbarCall *b) {
  return a->op == b->op && a->flags == b->flags && a->many == b->many &&
         a->far == b->far;
}

void mbar_note(Emit *e, const Ins *i) {
  struct MbarCall m = form_of(e, i);
  Helper h = block_of(&m);
  if (h != H_COUNT) {
    helper_use(e, h);
    return;
  }
  for (size_t k = 0; k < e->nmbar; k++)
    if (same_form(&e->mbar[k], &m)) return;
  struct MbarCall *v = NEW(e->cx, struct MbarCall, e->nmbar + 1);
  if (e->nmbar) memcpy(v, e->mbar, e->nmbar * sizeof *v);
  v[e->nmbar++] = m;
  e->mbar = v;
}

void mbar_reserve(Emit *e) {
  for (size_t k = 0; k < e->nmbar; k++)
    names_reserve(e, name_of(e, &e->mbar[k]));
}

// The barrier of another CTA is at the same address there.
static void print_one(Emit *e, const struct MbarCall *m) {
  bool bytes = m->op == OP_MBARTX, sink = !bytes || m->flags & MBF_ARRIVE;
  const char *args = arena_printf(
    e->cx, &e->cx->scratch, "unsigned bar%s%s",
    bytes ? ", unsigned bytes" : m->many ? ", unsigned count" : "",
    m->far ? ", unsigned rank" : "");
  const char *head = "static __device__ __forceinline__ void ";
  bool fits = strlen(head) + strlen(name_of(e, m)) + strlen(args) + 4 <= 80;
  text_printf(e, "%s%s(%s%s) {\n  asm volatile(\"", head, name_of(e, m),
              fits ? "" : "\n    ", args);
  if (m->far)
    text_printf(e, "{ .reg .b32 there;\\n\"\n      "
                "\"mapa.shared::cluster.u32 there, %%0, %%%d;\\n\"\n      \"",
                m->many ? 2 : 1);
  text_printf(e, "mbarrier.%s%s.shared::%s.b64 %s[%s]%s;%s\"\n"
              "      :: \"r\"(bar)%s%s : \"memory\");\n}\n",
              m->op == OP_MBARARRIVE ? "arrive"
              : m->flags & MBF_ARRIVE ? "arrive.expect_tx" : "expect_tx",
              order_of(e, m), m->far ? "cluster" : "cta", sink ? "_, " : "",
              m->far ? "there" : "%0", m->many ? ", %1" : "",
              m->far ? " }" : "",
              bytes ? ", \"r\"(bytes)" : m->many ? ", \"r\"(count)" : "",
              m->far ? ", \"r\"(rank)" : "");
}

void mbar_print(Emit *e) {
  for (size_t k = 0; k < e->nmbar; k++) print_one(e, &e->mbar[k]);
}

void mbar_call(Emit *e, const Ins *i) {
  struct MbarCall m = form_of(e, i);
  Helper h = block_of(&m);
  Ref count = i->a[2], rank = operands_ref(e->fn, i, 3);
  text_printf(e, "%s(", h == H_COUNT ? name_of(e, &m) : helper_use(e, h));
  expr_place(e, i->a[0], i->a[1]);
  if (count && m.many) text_puts(e, ", "), expr_val(e, count, PR_ANY);
  if (rank) text_puts(e, ", "), expr_val(e, rank, PR_ANY);
  text_puts(e, ")");
}
