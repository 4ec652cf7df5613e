// Writes mbarrier operations and st.async as calls of small functions.
// Operations with a single form are blocks of prelude*.cu. The functions for
// arrivals, expected bytes, waits and st.async have several forms and are
// generated here. The form depends on the memory order, and on whether the
// mbarrier is in this CTA or in another CTA of the cluster.
#include "emit/asm.h"
#include "emit/expr.h"

#include <string.h>

#include "ir/target.h"

struct MbarCall {
  Op op;
  unsigned flags;
  // many: the operation has a number of arrivals other than 1. far: the
  // operation takes the rank of a CTA in the cluster.
  bool many, far;
  bool token;      // whether a token, not a parity, names the phase
  // whether this target needs several instructions for the operation
  bool old;
  bool timed;      // whether the wait has a time limit
  DType type;      // STASYNC: type of the stored values
  int values;
};

// ---- forms ----

static bool arrives_once(const Emit *e, const Ins *i) {
  int64_t n;
  Ref each = operand_ref(e->fn, i, ROLE_EACH);
  return each && ir_const(e->fn, each, &n) && n == 1;
}

static bool waits(const struct MbarCall *m) {
  return m->op == OP_MBARWAIT || m->op == OP_MBARTRY;
}

static struct MbarCall form_of(const Emit *e, const Ins *i) {
  if (i->op == OP_STASYNC) {
    DType t = ir_type(e->fn, operand_ref(e->fn, i, ROLE_VALUE));
    return (struct MbarCall){.op = OP_STASYNC, .type = t,
                             .values = (int)i->imm / dtype_bits(t)};
  }
  struct MbarCall m = {.op = (Op)i->op, .flags = i->flags,
                       .many = !arrives_once(e, i)};
  Ref phase = operand_ref(e->fn, i, ROLE_PARITY);
  m.token = phase && ir_type(e->fn, phase) == DT_U64;
  m.timed = operand_ref(e->fn, i, ROLE_TIME);
  m.far = operand_ref(e->fn, i, ROLE_RANK);
  m.old = !target_has(e->sm, FT_MBARTRY);
  if (m.old && phase) m.flags |= MBF_TEST;
  if (m.old) m.flags &= ~hint_mask(HINT_SEM);
  return m;
}

// Returns the block of the prelude with the function, or H_COUNT if this file
// generates the function.
static Helper block_of(const struct MbarCall *m) {
  if (m->op == OP_MBARINIT) return H_MBAR_INIT;
  if (m->op == OP_MBARINVAL) return H_MBAR_INVAL;
  if (m->op == OP_MBARCPASYNC)
    return m->flags & MBF_NOINC ? H_MBAR_CP_ASYNC_NOINC : H_MBAR_CP_ASYNC;
  return H_COUNT;
}

// Returns qualifiers such as ".relaxed.cluster", or "" if the script requests
// neither a memory order nor a scope.
static const char *order_of(Emit *e, const struct MbarCall *m) {
  const char *sem = hint_text(m->flags, HINT_SEM);
  const char *scope = hint_text(m->flags, HINT_SCOPE);
  bool arrives = m->op == OP_MBARARRIVE || m->op == OP_MBARTOKEN ||
                 m->flags & MBF_ARRIVE;
  if (!*sem && !*scope) return "";
  if (!*sem) sem = waits(m) ? ".acquire" : arrives ? ".release" : ".relaxed";
  if (!*scope) scope = m->far ? ".cluster" : ".cta";
  return arena_printf(e->cx, &e->cx->scratch, "%s%s", sem, scope);
}

static const char *name_of(Emit *e, const struct MbarCall *m) {
  if (m->op == OP_STASYNC)
    return arena_printf(e->cx, &e->cx->scratch, "st_async_%sx%d",
                        dtype_name(m->type), m->values);
  static const char *const names[OP_COUNT] = {
    [OP_MBARWAIT] = "wait", [OP_MBARTRY] = "try_wait",
    [OP_MBARARRIVE] = "arrive", [OP_MBARTOKEN] = "arrive_token",
    [OP_MBARTX] = "expect_tx"};
  const char *what = names[m->op];
  if (m->op == OP_MBARTRY && m->flags & MBF_TEST) what = "test_wait";
  if (m->op == OP_MBARTX && m->flags & MBF_ARRIVE) what = "arrive_expect_tx";
  char *s = arena_printf(e->cx, &e->cx->scratch, "mbar_%s%s%s%s%s", what,
                         m->token ? "_token" : "", m->timed ? "_for" : "",
                         order_of(e, m), m->far ? "_remote" : "");
  for (char *p = s; *p; p++)
    if (*p == '.') *p = '_';
  return s;
}

// ---- the functions ----

static bool same_form(const struct MbarCall *a, const struct MbarCall *b) {
  return a->op == b->op && a->flags == b->flags && a->many == b->many &&
         a->far == b->far && a->token == b->token && a->timed == b->timed &&
         a->type == b->type && a->values == b->values;
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

// Writes the device function for an arrival or for an expected byte count. If
// `far` is set, the mbarrier is in CTA `rank`, at the same offset as `bar`.
static void print_one(Emit *e, const struct MbarCall *m) {
  bool bytes = m->op == OP_MBARTX, sink = !bytes || m->flags & MBF_ARRIVE;
  bool loop = m->many && m->old, count = m->many && !m->old;
  AsmFn f = {.e = e, .result = "void", .name = name_of(e, m),
             .lines = ASM_FITS, .before = loop ? "do " : "",
             .after = loop ? "  while (--count);\n" : ""};
  asm_arg(&f, "unsigned", "bar", 'r');
  if (bytes) asm_arg(&f, "unsigned", "bytes", 'r');
  else if (count) asm_arg(&f, "unsigned", "count", 'r');
  else if (loop) asm_param(&f, "unsigned", "count");
  int rank = m->far ? asm_arg(&f, "unsigned", "rank", 'r') : 0;
  const char *there = !m->far ? ""
    : PTX(e, "{ .reg .b32 there;\\n\"\n      "
          "\"mapa.shared::cluster.u32 there, %%0, %%%d;\\n\"\n      \"", rank);
  const char *ptx = PTX(e, "\"%smbarrier.%s%s.shared::%s.b64 %s[%s]%s;%s\"",
    there, m->op == OP_MBARARRIVE ? "arrive"
           : m->flags & MBF_ARRIVE ? "arrive.expect_tx" : "expect_tx",
    order_of(e, m), m->far ? "cluster" : "cta", sink ? "_, " : "",
    m->far ? "there" : "%0", count ? ", %1" : "", m->far ? " }" : "");
  asm_print(&f, ptx, "\n      :: $i : \"memory\"");
}

// Writes a function that arrives once or `count` times at an mbarrier and
// returns the token of the last arrival. All arrivals are in one phase.
static void print_token(Emit *e, const struct MbarCall *m) {
  bool loop = m->many && m->old, count = m->many && !m->old;
  AsmFn f = {.e = e, .result = "unsigned long long", .name = name_of(e, m),
             .apart = true, .r = "unsigned long long",
             .before = loop ? "do " : "",
             .after = loop ? "  while (--count);\n  return r;\n"
                           : "  return r;\n"};
  asm_out(&f, "=l", "r");
  asm_arg(&f, "unsigned", "bar", 'r');
  if (count) asm_arg(&f, "unsigned", "count", 'r');
  else if (loop) asm_param(&f, "unsigned", "count");
  asm_print(&f, PTX(e, "\"mbarrier.arrive%s.shared::cta.b64 %%0, [%%1]%s;\"",
                    order_of(e, m), count ? ", %2" : ""),
            "\n      : $o : $i : \"memory\"");
}

// Writes a function that waits until a phase completes, or that tests it.
static void print_wait(Emit *e, const struct MbarCall *m) {
  bool loop = m->op == OP_MBARWAIT;
  AsmFn f = {.e = e, .result = loop ? "void" : "bool", .name = name_of(e, m),
             .lines = ASM_SPLIT, .r = loop ? NULL : "unsigned",
             .after = loop ? "" : "  return r != 0;\n"};
  if (!loop) asm_out(&f, "=r", "r");
  int bar = asm_arg(&f, "unsigned", "bar", 'r');
  int phase = m->token ? asm_arg(&f, "unsigned long long", "token", 'l')
                       : asm_arg(&f, "unsigned", "parity", 'r');
  if (m->timed) asm_arg(&f, "unsigned", "ns", 'r');
  const char *end = loop ? "\"@p bra DONE;\\n\"\n      \"bra WAIT;\\n\"\n"
                           "      \"DONE: }\""
                         : "\"selp.u32 %0, 1, 0, p; }\"";
  asm_print(&f, PTX(e, "\"{ .reg .pred p;\\n\"\n      \"%smbarrier.%s_wait%s%s"
                    ".shared::cta.b64 p, [%%%d], %%%d%s;\\n\"\n      %s",
                    loop ? "WAIT: " : "", m->flags & MBF_TEST ? "test" : "try",
                    m->token ? "" : ".parity", order_of(e, m), bar, phase,
                    m->timed ? ", %3" : "", end),
            loop ? " :: $i : \"memory\"" : "\n      : $o : $i : \"memory\"");
}

// Writes a st.async. The parameters are addresses of the destination and of the
// mbarrier as in this CTA. mapa converts them to addresses in the other CTA.
static void print_store(Emit *e, const struct MbarCall *m) {
  bool real = dtype_is_float(m->type), wide = dtype_bits(m->type) == 64;
  char constraint = real ? wide ? 'd' : 'f' : wide ? 'l' : 'r';
  AsmFn f = {.e = e, .result = "void", .name = name_of(e, m),
             .lines = ASM_SPLIT};
  asm_arg(&f, "unsigned", "dst", 'r');
  asm_arg(&f, "unsigned", "bar", 'r');
  asm_arg(&f, "unsigned", "rank", 'r');
  const char *values = "";
  for (int k = 0; k < m->values; k++) {
    f.line = k == 0;
    int at = asm_arg(&f, dtype_cuda(m->type), (char[]){(char)('a' + k), 0},
                     constraint);
    values = PTX(e, "%s%s%%%d", values, k ? ", " : "", at);
  }
  const char *vector = m->values > 1 ? PTX(e, ".v%d", m->values) : "";
  asm_print(&f, PTX(e, "\"{ .reg .b32 to, count;\\n\"\n"
                    "      \"mapa.shared::cluster.u32 to, %%0, %%2;\\n\"\n"
                    "      \"mapa.shared::cluster.u32 count, %%1, %%2;\\n\"\n"
                    "      \"st.async.weak.shared::cluster"
                    ".mbarrier::complete_tx::bytes\"\n      \"%s.%c%d [to], "
                    "{%s}, [count]; }\"", vector, real ? 'f' : 'b',
                    wide ? 64 : 32, values),
            "\n      :: $i\n      : \"memory\"");
}

void mbar_print(Emit *e) {
  for (size_t k = 0; k < e->nmbar; k++)
    if (e->mbar[k].op == OP_STASYNC) print_store(e, &e->mbar[k]);
    else if (e->mbar[k].op == OP_MBARTOKEN) print_token(e, &e->mbar[k]);
    else if (waits(&e->mbar[k])) print_wait(e, &e->mbar[k]);
    else print_one(e, &e->mbar[k]);
}

const char *mbar_function(Emit *e, const Ins *i, bool *many) {
  struct MbarCall m = form_of(e, i);
  Helper h = block_of(&m);
  *many = m.many;
  return h == H_COUNT ? name_of(e, &m) : helper_use(e, h);
}
// SPDX-License-Identifier: MIT
