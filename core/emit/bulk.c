// Writes bulk copies (boxes of a tensor map, or contiguous bytes) as calls of
// small functions. There is one function for each form of bulk copy in the
// kernel.
#include "emit/asm.h"
#include "emit/expr.h"

#include <string.h>

struct BulkCall {
  Op op;
  unsigned flags;
  // number of modes of the box, of coordinates, and of im2col offsets
  int modes, coordinates, offsets;
  bool mask, policy;
};

// ---- forms ----

// Returns the form of a bulk copy. In im2col mode, n + 2 coordinates are
// followed by n offsets. A copy that gathers or scatters rows has one more
// coordinate for each row after the first.
static struct BulkCall form_of(const Emit *e, const Ins *i) {
  Ref at[OPERANDS];
  struct BulkCall m = {.op = (Op)i->op, .flags = i->flags,
                       .coordinates = operand_refs(e->fn, i, ROLE_AT, at),
                       .mask = operand_ref(e->fn, i, ROLE_MASK),
                       .policy = operand_ref(e->fn, i, ROLE_POLICY)};
  if (i->op != OP_TMASTORE && i->flags & BKF_IM2COL) {
    m.offsets = m.coordinates / 2 - 1;
    m.coordinates -= m.offsets;
  }
  m.modes = m.coordinates - (m.flags & BKF_ROWS ? BULK_ROWS - 1 : 0);
  return m;
}

static const char *reduction(const struct BulkCall *m) {
  return atomic_row((AtomicKind)(m->flags & BKF_ATOMIC))->name;
}

// Returns `name` if the form gathers or scatters rows, else "".
static const char *rows_word(const struct BulkCall *m, const char *name) {
  return m->flags & BKF_ROWS ? name : "";
}

static const char *name_of(Emit *e, const struct BulkCall *m) {
  static const char *const names[OP_COUNT] = {
    [OP_TMALOAD] = "tma_load", [OP_TMASTORE] = "tma_store",
    [OP_TMAPREFETCH] = "tma_prefetch", [OP_BULKLOAD] = "bulk_load",
    [OP_BULKSTORE] = "bulk_store", [OP_BULKSEND] = "bulk_send",
    [OP_CLCTRY] = "cancel_cluster"};
  bool reduces = m->flags & BKF_REDUCES;
  char *modes = "";
  if (m->modes)
    modes = arena_printf(e->cx, &e->cx->scratch, "_%dd", m->modes);
  return arena_printf(e->cx, &e->cx->scratch, "%s%s%s%s%s%s%s%s",
                      reduces ? "tma_reduce_" : names[m->op],
                      reduces ? reduction(m) : "",
                      m->flags & BKF_IM2COL ? "_im2col" : "",
                      rows_word(m, "_rows"), modes,
                      m->flags & BKF_PAIR ? "_pair" : "",
                      m->mask ? "_multicast" : "", m->policy ? "_hint" : "");
}

static bool same_form(const struct BulkCall *a, const struct BulkCall *b) {
  return a->op == b->op && a->flags == b->flags && a->modes == b->modes &&
         a->mask == b->mask && a->policy == b->policy;
}

void bulk_note(Emit *e, const Ins *i) {
  struct BulkCall m = form_of(e, i);
  for (size_t k = 0; k < e->nbulk; k++)
    if (same_form(&e->bulk[k], &m)) return;
  struct BulkCall *v = NEW(e->cx, struct BulkCall, e->nbulk + 1);
  if (e->nbulk) memcpy(v, e->bulk, e->nbulk * sizeof *v);
  v[e->nbulk++] = m;
  e->bulk = v;
}

void bulk_reserve(Emit *e) {
  names_reserve(e, "TensorMap");
  for (size_t k = 0; k < e->nbulk; k++)
    names_reserve(e, name_of(e, &e->bulk[k]));
}

// ---- the functions ----

static int address(AsmFn *a, const char *name) {
  return asm_arg(a, "unsigned", name, 'r');
}

static int map_of(AsmFn *a) {
  return asm_arg(a, "const TensorMap *", "map", 'l');
}

// Adds n parameters whose names start with c: coordinates, or im2col offsets.
// Returns their asm operands, such as ", {%2, %3}".
static const char *list_of(AsmFn *a, int n, char c) {
  Buf b = {0};
  Ctx *cx = a->e->cx;
  for (int k = 0; k < n; k++) {
    char name[4] = {c, (char)('0' + k), 0};
    int at = c == 'c' ? asm_arg(a, "int", name, 'r')
                      : asm_arg(a, "unsigned short", name, 'h');
    buf_printf(cx, &b, "%s%%%d", k ? ", " : ", {", at);
  }
  if (n) buf_puts(cx, &b, "}");
  const char *s = arena_printf(cx, &cx->scratch, "%s", n ? b.p : "");
  buf_free(&b);
  return s;
}

// Returns the last asm operands of the instruction: the CTA mask and the cache
// policy.
static const char *tail_of(AsmFn *a, const struct BulkCall *m) {
  Ctx *cx = a->e->cx;
  const char *s = "";
  if (m->mask)
    s = arena_printf(cx, &cx->scratch, ", %%%d",
                     asm_arg(a, "unsigned short", "ctas", 'h'));
  if (m->policy)
    s = arena_printf(cx, &cx->scratch, "%s, %%%d", s,
                     asm_arg(a, "unsigned long long", "policy", 'l'));
  return s;
}

static const char *hint_of(const struct BulkCall *m) {
  return m->policy ? ".L2::cache_hint" : "";
}

static const char *print_tma_load(AsmFn *a, const struct BulkCall *m) {
  Emit *e = a->e;
  int dst = address(a, "dst"), map = map_of(a);
  int bar = address(a, "bar");
  const char *c = list_of(a, m->coordinates, 'c');
  const char *w = list_of(a, m->offsets, 'w'), *t = tail_of(a, m);
  bool pair = m->flags & BKF_PAIR;
  // Some targets can gather rows only to .shared::cta.
  bool own = m->flags & BKF_ROWS && !pair && !m->mask;
  // Clearing bit 24 of the address selects the mbarrier in the even CTA of the
  // pair.
  const char *head = !pair ? "" : PTX(e, "\"{ .reg .b32 full;\\n\"\n"
    "      \"and.b32 full, %%%d, 0xfeffffff;\\n\"\n      ", bar);
  const char *full = pair ? "full" : PTX(e, "%%%d", bar);
  return PTX(e, "%s\"cp.async.bulk.tensor.%dd%s.shared::%s.global%s%s\""
    "\n      \".mbarrier::complete_tx::bytes%s%s\"\n"
    "      \" [%%%d], [%%%d%s], [%s]%s%s;%s\"", head, m->modes,
    pair ? ".cta_group::2" : "", own ? "cta" : "cluster",
    m->flags & BKF_IM2COL ? ".im2col" : "", rows_word(m, ".tile::gather4"),
    m->mask ? ".multicast::cluster" : "", hint_of(m), dst, map, c, full, w, t,
    pair ? " }" : "");
}

static const char *print_tma_store(AsmFn *a, const struct BulkCall *m) {
  Emit *e = a->e;
  int map = map_of(a), src = address(a, "src");
  const char *c = list_of(a, m->coordinates, 'c'), *t = tail_of(a, m);
  bool reduces = m->flags & BKF_REDUCES;
  return PTX(e, "\"cp%s.async.bulk.tensor.%dd.global.shared::cta%s%s"
    "%s\"\n      \".bulk_group%s [%%%d%s], [%%%d]%s;\"",
    reduces ? ".reduce" : "", m->modes, reduces ? "." : "",
    reduces ? reduction(m) : "",
    m->flags & BKF_IM2COL ? ".im2col_no_offs"
      : m->flags & BKF_ROWS ? ".tile::scatter4" : ".tile", hint_of(m), map, c,
    src, t);
}

static const char *print_prefetch(AsmFn *a, const struct BulkCall *m) {
  Emit *e = a->e;
  int map = map_of(a);
  if (!m->modes) return PTX(e, "\"prefetch.tensormap [%%%d];\"", map);
  const char *c = list_of(a, m->coordinates, 'c');
  const char *w = list_of(a, m->offsets, 'w'), *t = tail_of(a, m);
  return PTX(e, "\"cp.async.bulk.prefetch.tensor.%dd.L2.global.%s"
                     "%s [%%%d%s]%s%s;\"", m->modes,
                     m->flags & BKF_IM2COL ? "im2col"
                       : m->flags & BKF_ROWS ? "tile::gather4" : "tile",
                     hint_of(m),
                     map, c, w, t);
}

static const char *print_load(AsmFn *a, const struct BulkCall *m) {
  Emit *e = a->e;
  int dst = address(a, "dst"), src = asm_arg(a, "const void *", "src", 'l');
  int n = address(a, "bytes"), bar = address(a, "bar");
  const char *t = tail_of(a, m);
  return PTX(e, "\"cp.async.bulk.shared::cluster.global\"\n"
    "      \".mbarrier::complete_tx::bytes%s%s\"\n"
    "      \" [%%%d], [%%%d], %%%d, [%%%d]%s;\"",
    m->mask ? ".multicast::cluster" : "", hint_of(m), dst, src, n, bar, t);
}

static const char *print_store(AsmFn *a, const struct BulkCall *m) {
  Emit *e = a->e;
  int dst = asm_arg(a, "void *", "dst", 'l'), src = address(a, "src");
  int n = address(a, "bytes");
  const char *t = tail_of(a, m);
  return PTX(e, "\"cp.async.bulk.global.shared::cta.bulk_group%s\"\n"
    "      \" [%%%d], [%%%d], %%%d%s;\"", hint_of(m), dst, src, n, t);
}

// Writes a copy to shared memory of another CTA. `dst` and `bar` are addresses
// in this CTA. mapa converts them, because a shared object has the same offset
// in all CTAs of a cluster.
static const char *print_send(AsmFn *a, const struct BulkCall *m) {
  Emit *e = a->e;
  (void)m;
  int dst = address(a, "dst"), src = address(a, "src");
  int n = address(a, "bytes"), bar = address(a, "bar");
  int rank = address(a, "rank");
  return PTX(e, "\"{ .reg .b32 to, told;\\n\"\n"
    "      \"mapa.shared::cluster.u32 to, %%%d, %%%d;\\n\"\n"
    "      \"mapa.shared::cluster.u32 told, %%%d, %%%d;\\n\"\n"
    "      \"cp.async.bulk.shared::cluster.shared::cta\"\n"
    "      \".mbarrier::complete_tx::bytes [to], [%%%d], %%%d, [told]; }\"",
    dst, rank, bar, rank, src, n);
}

static const char *print_cancel(AsmFn *a, const struct BulkCall *m) {
  (void)m;
  int answer = address(a, "answer"), bar = address(a, "bar");
  return PTX(a->e, "\"clusterlaunchcontrol.try_cancel.async.shared::cta\"\n"
    "      \".mbarrier::complete_tx::bytes.multicast::cluster::all.b128\"\n"
    "      \" [%%%d], [%%%d];\"", answer, bar);
}

static void print_one(Emit *e, const struct BulkCall *m) {
  static const char *(*const print[OP_COUNT])(AsmFn *a,
                                              const struct BulkCall *m) = {
    [OP_TMALOAD] = print_tma_load, [OP_TMASTORE] = print_tma_store,
    [OP_TMAPREFETCH] = print_prefetch, [OP_BULKLOAD] = print_load,
    [OP_BULKSTORE] = print_store, [OP_BULKSEND] = print_send,
    [OP_CLCTRY] = print_cancel};
  AsmFn f = {.e = e, .result = "void", .name = name_of(e, m),
             .lines = ASM_FITS};
  asm_print(&f, print[m->op](&f, m), "\n      :: $I : \"memory\"");
}

void bulk_print(Emit *e) {
  bool maps = false;
  for (size_t k = 0; k < e->fn->arg.n; k++) maps |= e->fn->arg.p[k].map;
  if (maps)
    text_puts(e, "struct __align__(64) TensorMap {\n"
                 "  unsigned long long words[16];\n};\n");
  for (size_t k = 0; k < e->nbulk; k++) print_one(e, &e->bulk[k]);
}

// ---- tensor maps in memory ----

static Helper map_helper(const Ins *i) {
  static const Helper helpers[OP_COUNT] = {
    [OP_MAPCOPY] = H_MAP_COPY, [OP_MAPADDRESS] = H_MAP_ADDRESS,
    [OP_MAPSET] = H_MAP_EXTENT, [OP_MAPACQUIRE] = H_MAP_ACQUIRE,
    [OP_MAPPUBLISH] = H_MAP_PUBLISH};
  if (i->op == OP_MAPSET && i->flags == TMF_STRIDE) return H_MAP_STRIDE;
  return helpers[i->op];
}

// Rejects an operation on tensor maps that exists only in kernels read from
// PTX.
static _Noreturn void no_text(Emit *e, const char *what) {
  ctx_fail(e->cx, ERR_ARCH, "'%s' of a kernel read from PTX has no CUDA C: "
           "compile the PTX itself", what);
}

void bulk_note_map(Emit *e, const Ins *i) {
  bool field = i->op == OP_MAPSET && i->flags > TMF_STRIDE;
  if (field) no_text(e, "tensormap.replace");
  helper_use(e, map_helper(i));
}

static void put_map(Emit *e, Ref map) {
  if (ir_get(e->fn, map)->op == OP_TMAP) text_puts(e, "&");
  text_puts(e, e->use[map].name);
}

void bulk_call_map(Emit *e, const Ins *i) {
  Operand o[OPERANDS];
  int n = operands_all(e->fn, i, o);
  text_puts(e, helper_use(e, map_helper(i)));
  if (i->op == OP_MAPSET) text_printf(e, "<%d>", (int)i->imm);
  text_puts(e, "(");
  for (int k = 0; k < n; k++) {
    if (k) text_puts(e, ", ");
    if (o[k].kind == OPERAND_MAP) put_map(e, o[k].ref);
    else if (o[k].kind == OPERAND_MEM)
      expr_pointer(e, o[k].ref, o[k].off, PR_ANY);
    else expr_val(e, o[k].ref, PR_ANY);
  }
  text_puts(e, ")");
}

void bulk_map_at(Emit *e, Ref r) {
  const Ins *i = ir_get(e->fn, r);
  const Mem *m = ir_memof(e->fn, r);
  if (ir_is_map_of_any(i)) no_text(e, "a tensor map in memory");
  e->use[r].name = names_new(e, m->name ? ir_str(e->fn, m->name) : "map");
  text_begin(e, i);
  text_printf(e, "const TensorMap *const %s = (const TensorMap *)",
              e->use[r].name);
  expr_pointer(e, i->a[0], i->a[1], PR_UNARY);
  text_end(e);
}

// ---- a call ----

static void put_argument(Emit *e, const Operand *o) {
  if (o->kind == OPERAND_MAP) put_map(e, o->ref);
  else if (o->kind != OPERAND_MEM) expr_val(e, o->ref, PR_ANY);
  else if (ir_memof(e->fn, o->ref)->space == SP_SMEM)
    expr_place(e, o->ref, o->off);
  else expr_pointer(e, o->ref, o->off, PR_ANY);
}

// Writes the call. Its arguments must have the order of the parameters that
// print_one writes. This is the order of the operands in ops.h, with the mask
// and the policy moved to the end.
void bulk_call(Emit *e, const Ins *i) {
  struct BulkCall m = form_of(e, i);
  Operand o[OPERANDS];
  int n = operands_all(e->fn, i, o);
  const char *between = "";
  text_printf(e, "%s(", name_of(e, &m));
  for (int last = 0; last < 2; last++)
    for (int k = 0; k < n; k++) {
      bool late = o[k].role == ROLE_MASK || o[k].role == ROLE_POLICY;
      if (!o[k].ref || late != last) continue;
      text_puts(e, between);
      put_argument(e, &o[k]);
      if (o[k].role == ROLE_SRC && !m.modes)
        text_printf(e, ", %d", (int)(i->imm / 8));
      between = ", ";
    }
  text_puts(e, ")");
}
// SPDX-License-Identifier: MIT
